# SPDX-License-Identifier: Apache-2.0
"""Pages whose commands are run: what they print has to be what the page shows.

    guide.py ROOT OUTPUT-DIRECTORY-OF-INSTALL PAGE...

In a page a block fenced by ``` and called `console` holds commands, each after "$ ", gone on with by "> ", with
what it prints behind; a block with a second word, as in "```c frames.c", is a file of that name.  Blocks that are
indented by four spaces and begin with "$ " are commands, too.  Blocks called `sh` or `python` without a second word are
run, whatever they print: none of their commands may fail.  A line "..." stands for any number of lines, times
for any time.  A page runs in one shell, in an empty folder with copies of the folders `models` and `examples`, and with
`models/digits.onnx` as `model.onnx`, a name for any model.

UPDATE=1 writes what is printed into the page.  Prints TAP."""
import difflib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

ROOT, INSTALL = sys.argv[1:3]
MARK = "\001mark\001"
NUMBER = re.compile(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?")
TIMES = [(re.compile(r"\b[0-9.]+ ms\b"), "T ms"),
         (re.compile(r"((?:optimal|feasible|lower bound).*?)  +[0-9]+\.[0-9]+$"), r"\1  T"),
         (re.compile(r"^(onnxmem: pass \S+ ).*ms"), r"\1T ms")]


def silent(kind, lines):
    """A command that runs a block, and prints nothing unless it fails."""
    program = "bash -e" if kind == "sh" else "python"
    return "\n".join([program + " >block.log 2>&1 <<'END' || cat block.log"] + lines + ["END"])


class Page:
    def __init__(self, path):
        self.path = path
        with open(path) as f:
            self.lines = f.read().split("\n")
        self.steps = []             # ("file", name, text) or ("run", command, first, end of its output, indent)
        self.read()

    def read(self):
        at, n = 0, len(self.lines)
        while at < n:
            line = self.lines[at]
            if line.startswith("```"):
                end = self.lines.index("```", at + 1)
                words = line[3:].split()
                if words[:1] == ["console"]:
                    self.commands(at + 1, end, "")
                elif len(words) > 1:
                    self.steps.append(("file", words[1], "\n".join(self.lines[at + 1:end]) + "\n"))
                elif words in (["sh"], ["python"]):
                    self.steps.append(("run", silent(words[0], self.lines[at + 1:end]), end, end, None))
                at = end
            elif line.startswith("    $ ") and not self.lines[at - 1]:
                end = at
                while end < n and (self.lines[end].startswith("    ") or
                                   not self.lines[end] and self.lines[end + 1:end + 2] and self.lines[end + 1].startswith("    ")):
                    end += 1
                self.commands(at, end, "    ")
                at = end
            at += 1

    def commands(self, at, end, indent):
        while at < end:
            words = [self.lines[at][len(indent) + 2:]]
            at += 1
            while at < end and self.lines[at].startswith(indent + "> "):
                words.append(self.lines[at][len(indent) + 2:])
                at += 1
            first = at
            while at < end and not self.lines[at].startswith(indent + "$ "):
                at += 1
            self.steps.append(("run", "\n".join(words), first, at, indent))

    def shown(self, step):
        return [line[len(step[4] or ""):] for line in self.lines[step[2]:step[3]]]


def alike(line):
    for what, by in TIMES:
        line = what.sub(by, line)
    return line


def same(shown, printed):
    """Whether two lines differ in times and digits of numbers alone, by the rule of all golden texts (tolerance.awk)."""
    shown, printed = alike(shown), alike(printed)
    if shown == printed:
        return True
    if NUMBER.sub("N", shown) != NUMBER.sub("N", printed):
        return False
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ("shown", "printed")]
        for path, line in zip(paths, (shown, printed)):
            with open(path, "w") as f:
                f.write(line + "\n")
        script = os.path.join(ROOT, "tests", "tolerance.awk")
        return subprocess.run([os.environ.get("AWK") or "awk", "-f", script] + paths, text=True, check=True,
                              stdout=subprocess.PIPE).stdout == shown + "\n"


def matches(shown, printed):
    """Whether lines with "..." among them stand for those."""
    if not shown:
        return not printed
    if shown[0] == "...":
        return any(matches(shown[1:], printed[k:]) for k in range(len(printed) + 1))
    return bool(printed) and same(shown[0], printed[0]) and matches(shown[1:], printed[1:])


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def environment(folder):
    bin = os.path.join(folder, "bin")
    os.mkdir(bin)
    for name, command in (("onnxmem", '"%s"' % os.environ["ONNXMEM"]), ("cc", os.environ.get("CC") or "/usr/bin/cc"),
                          ("python", '"%s" -B' % sys.executable)):
        with open(os.path.join(bin, name), "w") as f:
            f.write('#!/bin/sh\nexec %s "$@"\n' % command)
        os.chmod(os.path.join(bin, name), 0o755)
    # A reader's machine, not the one that tests: pytest does not shorten its lines where CI is set.
    env = {k: v for k, v in os.environ.items()
           if not re.search("(?i)proxy|^XDG|^ONNX_HOME|^ONNXMEM_(MIRR|MANI|CONF)|^CI$|^BUILD_NUMBER$|^PYTEST_|^GITHUB_", k)}
    pc = [where for where, _, names in os.walk(INSTALL) if "onnxmem.pc" in names]
    env.update(PYTEST_PLUGINS="onnxmem.pytest_plugin", PYTHONPATH=os.path.join(ROOT, "python"), PYTHONDONTWRITEBYTECODE="1", PATH=bin + ":" + env["PATH"], HOME=folder, LC_ALL="C", COLUMNS="100", PKG_CONFIG_SYSROOT_DIR=INSTALL,
               PKG_CONFIG_PATH=":".join(pc), LD_LIBRARY_PATH=":".join(os.path.dirname(where) for where in pc))
    return env


def script_of(page, port):
    """The commands, each followed by a mark; ports of their own, so that pages may be tried at the same time."""
    lines = []
    for step in page.steps:
        if step[0] == "run":
            command = step[1].replace("localhost:8000", "localhost:" + port).replace("http.server 8000", "http.server " + port)
            lines.append("%s\nlast=$?; echo '%s'; (exit $last)\n" % (command, MARK))
            if command.endswith("&"):
                lines.append("for k in $(seq 100); do (exec 3<>/dev/tcp/127.0.0.1/%s) 2>/dev/null && break; "
                             "sleep .1; done\n" % port)
    return "".join(lines)


def run(page, folder):
    """What each command prints, as lists of lines."""
    port = free_port()
    work = os.path.join(folder, "work")
    for name in ("models", "examples"):
        shutil.copytree(os.path.join(ROOT, name), os.path.join(work, name))
    os.mkdir(work + "/docs")
    shutil.copy(os.path.join(work, "models", "digits.onnx"), os.path.join(work, "model.onnx"))
    for step in page.steps:
        if step[0] == "file":
            with open(os.path.join(work, step[1]), "w") as f:
                f.write(step[2])
    with open(folder + "/script", "w") as f:
        f.write(script_of(page, port))
    shell = subprocess.Popen(["bash", folder + "/script"], cwd=work, env=environment(folder), text=True, start_new_session=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        out, _ = shell.communicate(timeout=100)
    finally:
        try:
            os.killpg(shell.pid, signal.SIGKILL)     # what runs in the background
        except ProcessLookupError:
            pass
    out = out.replace(work, "/home/me").replace("localhost:" + port, "localhost:8000")
    return [text.split("\n")[:-1] for text in re.split(MARK + "\n", out)[:-1]]


def compare(page, printed):
    """The commands that print something else than the page shows."""
    commands = [step for step in page.steps if step[0] == "run"]
    if len(printed) != len(commands):
        yield ["the shell ended before: " + commands[len(printed)][1]]
    for step, lines in zip(commands, printed):
        shown = [line for line in page.shown(step)]
        while shown and not shown[-1]:
            shown.pop()
        if not matches(shown, [line.rstrip() for line in lines]):
            yield ["$ " + step[1]] + list(difflib.unified_diff([alike(line) for line in shown], [alike(line) for line in lines],
                                                               "shown", "printed", lineterm="", n=1))


def update(page, printed):
    out, at = [], 0
    for step, lines in zip([step for step in page.steps if step[0] == "run"], printed):
        lines = [line.rstrip() for line in lines]
        shown = page.shown(step)
        blank = []
        while shown and not shown[-1]:
            blank.append(shown.pop())
        if step[4] is not None and not matches(shown, lines):
            out += page.lines[at:step[2]] + [(step[4] + line).rstrip() for line in lines] + blank
            at = step[3]
    with open(page.path, "w") as f:
        f.write("\n".join(out + page.lines[at:]))


for n, path in enumerate(sys.argv[3:], 1):
    page, folder = Page(path), tempfile.mkdtemp(prefix="onnxmem-guide-")
    try:
        printed = run(page, folder)
        if os.environ.get("UPDATE") == "1":
            update(page, printed)
            page = Page(path)
        wrong = [line for lines in compare(page, printed) for line in lines]
    finally:
        shutil.rmtree(folder)
    print("%s %d - %s: %d commands" % ("not ok" if wrong else "ok", n, os.path.relpath(path, ROOT),
                                       sum(step[0] == "run" for step in page.steps)))
    for line in wrong:
        print("# " + line.replace("\n", "\n# "))
print("1..%d" % len(sys.argv[3:]))
