# SPDX-License-Identifier: Apache-2.0
"""The command on a terminal of a given width, and off it."""
import os
import pty
import random
import re
import subprocess
import sys
import time

COMMAND = os.environ["ONNXMEM"]
NAME = "a/very/long/name/of/a/value/as/exporters/like/to/make/them/" + "x" * 60 + "/the_end"


def on_terminal(columns, *words, errors=False, **more):
    """The lines that it writes there: its data, or what else it says."""
    env = dict(os.environ, COLUMNS=str(columns), TERM="dumb", **more)
    main, side = pty.openpty()
    how = {"stdout": subprocess.DEVNULL, "stderr": side} if errors else {"stdout": side, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([COMMAND, *words], stdin=subprocess.DEVNULL, env=env, **how)
    os.close(side)
    out = b""
    while True:
        try:
            piece = os.read(main, 65536)
        except OSError:
            break
        if not piece:
            break
        out += piece
    process.wait()
    os.close(main)
    assert process.returncode == 0, out
    return out.decode().replace("\r\n", "\n").splitlines()


with open("wide.ir", "w") as f:
    f.write('program "wide" ir 8 opset 13\n^main(%%x: float32[1000]) {\n\t%%"%s" = Neg(%%x)\n\t%%y = Add(%%"%s", %%x)\n'
            '\t%%s = ReduceSum(%%y)\n\tret %%s\n}\n' % (NAME, NAME))
for width in (72, 80, 100):
    for words in (("ops",), ("passes",), ("help", "plan"), ("help", "report-terms"), ("fetch", "--list", "--manifest",
                                                                              sys.argv[1] + "/manifest.json")):
        for line in on_terminal(width, *words)[:-2]:
            assert len(line) <= width or words[0] in ("help", "passes") and " " not in line[28:] or \
                line.startswith(("usage", "operator", "pass ", "onnxmem", "always", "default")), (width, words, line)
    shown = [line for line in on_terminal(width, "report", "wide.ir") if "…" in line]
    assert shown and all(len(line) <= width and line.endswith("/the_end") for line in shown), shown
whole = subprocess.run([COMMAND, "report", "wide.ir"], capture_output=True, text=True, check=True).stdout
assert NAME in whole and "…" not in whole


# ---- Long searches: how far they are, and nothing of it elsewhere. ----

def tangle(n):
    """Values of many sizes, each of two earlier ones: no order is good at first sight."""
    rand, names, used = random.Random(3), ["x"], set()
    lines = ['program "tangle" ir 8 opset 14', "^main(%x: float32[64]) {"]
    for k in range(n):
        a, b = rand.choice(names[-40:]), rand.choice(names[-40:])
        used |= {a, b}
        lines += ["\t%%s%d = const int64[1] {%d}" % (k, 16 * rand.randrange(1, 200)),
                  "\t%%a%d = ReduceMax(%%%s) {keepdims = 0}" % (k, a), "\t%%b%d = ReduceMax(%%%s) {keepdims = 0}" % (k, b),
                  "\t%%c%d = Add(%%a%d, %%b%d)" % (k, k, k), "\t%%v%d = Expand(%%c%d, %%s%d)" % (k, k, k)]
        names.append("v%d" % k)
    ends = [name for name in names if name not in used]
    lines += ["\t%%e%d = ReduceMax(%%%s) {keepdims = 0}" % (k, name) for k, name in enumerate(ends)]
    lines += ["\t%%y = Max(%s)" % ", ".join("%%e%d" % k for k in range(len(ends))), "\tret %y", "}"]
    return "\n".join(lines)


def crowd():
    """Buffers of which it is not known how low they can be packed."""
    rand = random.Random(5)
    rows = ["id,lower,upper,size,alignment"]
    for k in range(60):
        lower = rand.randrange(20)
        rows.append("%d,%d,%d,%d,%d" % (k, lower, lower + rand.randrange(1, 12), rand.randrange(1, 200), rand.choice((1, 16, 64))))
    return "\n".join(rows) + "\n"


with open("tangle.ir", "w") as f:
    f.write(tangle(150))
with open("crowd.csv", "w") as f:
    f.write(crowd())
SAYS = re.compile(r"best so far ([0-9.]+) ([KM]?)i?B(, bound of this search [0-9.]+ [KM]?i?B)?")


def check_progress(lines):
    """What was reached is not taken back, whatever is searched next."""
    unit = {"": 1, "K": 1 << 10, "M": 1 << 20}
    best = [float(m[1]) * unit[m[2]] for m in map(SAYS.search, lines)]
    assert best == sorted(best, reverse=True), lines


for what, words in ("order of the ops", ("report", "tangle.ir")), ("packing", ("pack", "crowd.csv", "--time-limit", "1.5", "-o", "out.csv")):
    start = time.monotonic()
    said = "\n".join(on_terminal(80, *words, errors=True)).replace("\r", "\n").split("\n")
    shown = [line for line in said if "best" in line]
    assert not shown or any(what + ":" in line for line in shown), shown
    assert (shown or time.monotonic() - start < 1) and all(SAYS.search(line) for line in shown), (words, said[:5])
    assert all(len(line.replace("\033[K", "")) < 80 for line in shown), shown
    check_progress(shown)
    if "crowd.csv" in words:
        for how in {"NO_COLOR": "1"}, {}:
            said = on_terminal(80, *words, *([] if how else ["-q"]), errors=True, **how)
            assert not [line for line in said if "best" in line], said
