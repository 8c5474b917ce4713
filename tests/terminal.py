"""The command on a terminal of a given width, and off it."""
import os
import pty
import subprocess
import sys

COMMAND = os.environ["ONNXMEM"]
NAME = "a/very/long/name/of/a/value/as/exporters/like/to/make/them/" + "x" * 60 + "/the_end"


def on_terminal(columns, *words):
    env = dict(os.environ, COLUMNS=str(columns), TERM="dumb")
    main, side = pty.openpty()
    process = subprocess.Popen([COMMAND, *words], stdout=side, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=env)
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
    for words in (("ops",), ("passes",), ("help", "plan"), ("help", "sizes"), ("fetch", "--list", "--manifest",
                                                                              sys.argv[1] + "/manifest.json")):
        for line in on_terminal(width, *words)[:-2]:
            assert len(line) <= width or words[0] in ("help", "passes") and " " not in line[28:] or \
                line.startswith(("usage", "operator", "pass ", "onnxmem", "always", "default")), (width, words, line)
    shown = [line for line in on_terminal(width, "report", "wide.ir") if "…" in line]
    assert shown and all(len(line) <= width and line.endswith("/the_end") for line in shown), shown
whole = subprocess.run([COMMAND, "report", "wide.ir"], capture_output=True, text=True, check=True).stdout
assert NAME in whole and "…" not in whole
