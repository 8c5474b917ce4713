# SPDX-License-Identifier: Apache-2.0
"""Pages whose commands are run: what they print has to be what the page shows.

    guide.py [--no-python] ROOT OUTPUT-DIRECTORY-OF-INSTALL [PAGE...]

In a page a block fenced by ``` and called `console` holds commands, each after "$ ", gone on with by "> ", with
what it prints behind; a block with a second word, as in "```c frames.c", is a file of that name, which a command has to name.
Blocks that are indented by four spaces and begin with "$ " are commands, too.  Run, whatever they print, are blocks called `sh` or
`python` without a second word, blocks indented by four spaces that begin with the name of a command, and blocks called `c`, which
are the body of a main() with all headers of the library; none may fail.  An indented line such as "onnxmem why MODEL [options]" is a
form: its command and its options have to be in the help.  A line "..." stands for any number of lines, times
for any time.  A page runs in one shell, in an empty folder with copies of the folders `models` and `examples`, and with
`models/digits.onnx` as `model.onnx`, a name for any model.

Comments before a block: <!-- before: COMMANDS --> are run and not shown; <!-- run by FILE --> names the test that runs the
block; <!-- not run: it needs ... --> says why nothing does.  Whatever else is shown and not run is a failure.

Without pages all are run that show something; with --no-python those that take no Python.  UPDATE=1 writes what is printed into the
page.  Prints TAP."""
import difflib
import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

ARGUMENTS = sys.argv[1:]
NO_PYTHON = ARGUMENTS[0] == "--no-python"
ROOT, INSTALL = ARGUMENTS[NO_PYTHON:NO_PYTHON + 2]
PAGES = ("README.md", "CONTRIBUTING.md", "docs/guide/*.md", "docs/*.md", "passes/*.md", "python/README.md")
# What begins a command in a block that is indented.
COMMANDS = ("onnxmem", "cc", "make", "mpirun", "apt", "pip", "python", "python3", "sudo", "./start", "./check", "./autogen.sh", "../configure")
LANGUAGES = ("console", "sh", "python", "c", "ir", "csv", "json")
COMMENT = re.compile(r"<!-- (before:|run by|not run: it needs) (.*?) *-->$", re.DOTALL)
PLACEHOLDER = re.compile(r"\[|\b[A-Z]{2,}\b")
MARK = "\001mark\001"
NUMBER = re.compile(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?")
TIMES = [(re.compile(r"\b[0-9.]+ ms\b"), "T ms"),
         (re.compile(r"((?:optimal|feasible|lower bound).*?)  +[0-9]+\.[0-9]+$"), r"\1  T"),
         (re.compile(r"^(onnxmem: pass \S+ ).*ms"), r"\1T ms")]


def silent(kind, lines):
    """A command that runs a block, and prints nothing unless it fails."""
    program = {"sh": "bash -e", "python": "python", "c": "run-c"}[kind]
    return "\n".join([program + " >block.log 2>&1 <<'END' || { echo failed; cat block.log; }"] + lines + ["END"])


def form(line):
    """A command that prints what the help does not have: the options of a form, or the command itself."""
    options = " ".join("-e '%s'" % word for word in re.findall(r"--[a-z][a-z0-9-]*", line))
    help = "onnxmem %s --help" % line.split()[1]
    return "%s >block.log 2>&1 || cat block.log%s" % (
        help, options and "; for one in %s; do grep -q -e \"$one\\b\" block.log || echo \"no option $one\"; done" % options.replace("-e ", ""))


def logical(lines):
    """The lines of a block, those that end in a backslash with the next one."""
    whole = ""
    for line in lines:
        whole += line
        if not line.endswith("\\"):
            yield whole
            whole = ""
        else:
            whole += "\n"


class Page:
    def __init__(self, path):
        self.path = path
        with open(path) as f:
            self.lines = f.read().split("\n")
        self.steps = []             # ("file", name, text) or ("run", command, first, end of its output, indent)
        self.forms = 0
        self.elsewhere = []         # (line, "run by" or "not run", the file or the reason)
        self.wrong = []             # what is shown and cannot be run
        self.mark = None
        self.read()
        text = "\n".join(step[1] for step in self.steps if step[0] == "run")
        self.wrong += ["no command takes the file %s" % step[1] for step in self.steps if step[0] == "file" and step[1] not in text]

    def read(self):
        at, n = 0, len(self.lines)
        while at < n:
            line = self.lines[at]
            if line.startswith("<!-- "):
                end = at
                while end < n and not self.lines[end].endswith("-->"):
                    end += 1
                self.comment(at, "\n".join(self.lines[at:end + 1]))
                at = end
            elif line.startswith("```"):
                end = self.lines.index("```", at + 1)
                self.fenced(line[3:].split(), at + 1, end)
                at = end
            elif line.startswith("    ") and line[4:5] not in ("", " ") and not self.lines[at - 1]:
                end = at
                while end < n and (self.lines[end].startswith("    ") or
                                   not self.lines[end] and self.lines[end + 1:end + 2] and self.lines[end + 1].startswith("    ")):
                    end += 1
                self.indented(at, end)
                at = end
            at += 1

    def comment(self, at, text):
        what = COMMENT.match(text)
        if what and what.group(1) == "before:":
            self.steps.append(("run", what.group(2), at, at, None))
        elif what:
            self.mark = (at + 1, what.group(1), what.group(2))
            # A distribution has no hidden files.
            folder = os.path.join(ROOT, what.group(2).split("/")[0])
            if what.group(1) == "run by" and not os.path.exists(os.path.join(ROOT, what.group(2))) and (
                    os.path.exists(folder) or not what.group(2).startswith(".")):
                self.wrong.append("line %d: there is no %s" % (at + 1, what.group(2)))
        elif re.match("<!-- *(before|run|not run)", text):
            self.wrong.append("line %d: not one of the three comments: %s" % (at + 1, text))

    def marked(self):
        """Whether a comment before a block tells that the page does not run it."""
        mark, self.mark = self.mark, None
        if mark:
            self.elsewhere.append(mark)
        return mark

    def fenced(self, words, at, end):
        if words[:1] and words[0] not in LANGUAGES or not words:
            self.wrong.append("line %d: a block that is not run" % at)
        elif self.marked():
            return
        elif words == ["console"]:
            self.commands(at, end, "")
        elif len(words) > 1:
            self.steps.append(("file", words[1], "\n".join(self.lines[at:end]) + "\n"))
        elif words[0] in ("sh", "python", "c"):
            self.steps.append(("run", silent(words[0], self.lines[at:end]), end, end, None))
        elif words[0] != "json":
            self.wrong.append("line %d: a block that is not run" % at)

    def indented(self, at, end):
        lines = [line[4:] for line in self.lines[at:end]]
        if lines[0].startswith("$ "):
            self.marked() or self.commands(at, end, "    ")
        elif lines[0].split()[0] in COMMANDS:
            if self.marked():
                return
            if re.search(r"\b(apt|sudo)\b", " ".join(lines)):
                self.wrong.append("line %d: what needs root is not run" % (at + 1))
                return
            for line in logical(line for line in lines if line):
                is_form = line.startswith("onnxmem ") and PLACEHOLDER.search(line)
                self.forms += bool(is_form)
                self.steps.append(("run", form(line) if is_form else silent("sh", [line]), end, end, None))
        elif any(line.split()[:1] and line.split()[0] in COMMANDS for line in lines):
            self.wrong.append("line %d: a command in the middle of a block is not run" % (at + 1))

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


# The body of a main() on standard input is compiled and run: the last message of its session `s` has to be none.
RUN_C = """#!/bin/sh
set -e
{ printf '%%s\\n' '#include <stdio.h>' '%s' 'int main(void) {'; cat; echo 'fputs(om_message(s), stderr); return om_message(s)[0] != 0; }'; } >block.c
cc -Wall -Werror block.c $(pkg-config --cflags --libs onnxmem) -o block
./block
"""


def environment(folder):
    bin = os.path.join(folder, "bin")
    os.mkdir(bin)
    for name, command in (("onnxmem", '"%s"' % os.environ["ONNXMEM"]), ("cc", os.environ.get("CC") or "/usr/bin/cc"),
                          ("python", '"%s" -B' % sys.executable)):
        with open(os.path.join(bin, name), "w") as f:
            f.write('#!/bin/sh\nexec %s "$@"\n' % command)
    headers = [os.path.join(where, name) for where, _, names in os.walk(INSTALL) for name in names if name.endswith(".h")]
    with open(os.path.join(bin, "run-c"), "w") as f:
        f.write(RUN_C % "".join("#include <onnxmem/%s>\n" % os.path.basename(name) for name in sorted(headers)))
    for name in os.listdir(bin):
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
        out, _ = shell.communicate(timeout=300)
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


def tried(path):
    """The page, as it is after UPDATE, and what is wrong."""
    page, folder = Page(path), tempfile.mkdtemp(prefix="onnxmem-guide-")
    try:
        printed = run(page, folder)
        if os.environ.get("UPDATE") == "1":
            update(page, printed)
            page = Page(path)
        return page, page.wrong + [line for lines in compare(page, printed) for line in lines]
    finally:
        shutil.rmtree(folder)


def shows(path):
    page = Page(path)
    return page.wrong or page.elsewhere or any(step[0] == "run" for step in page.steps)


def needs_python(path):
    return any(step[0] == "run" and re.search(r"\bpython\b", step[1]) for step in Page(path).steps)


def pages():
    """Those of the command line, or all that show something."""
    named = ARGUMENTS[NO_PYTHON + 2:]
    if named:
        return named
    return [path for pattern in PAGES for path in sorted(glob.glob(os.path.join(ROOT, pattern))) if shows(path)]


BAD = """
```rust
fn main() {}
```

```python never.py
print(1)
```

    a list of

    onnxmem report model.onnx

Text

    make && sudo make install

<!-- run by tests/nowhere.test -->

    ./check

<!-- not run: no reason -->

    onnxmem why MODEL --nothing
"""
FOUND = ["line 2: a block that is not run", "line 10: a command in the middle of a block is not run", "line 16: what needs root is not run", "line 18: there is no tests/nowhere.test",
         "line 22: not one of the three comments: <!-- not run: no reason -->", "no command takes the file never.py",
         "+no option --nothing"]


def found(folder):
    """What a page is found to show and not to run, with an option of a form that is not there."""
    path = os.path.join(folder, "bad.md")
    with open(path, "w") as f:
        f.write(BAD)
    page, wrong = tried(path)
    return [line for line in wrong if line in page.wrong or line.startswith("+no option")]


total = [0, 0, 0, 0]
paths = pages()
for n, path in enumerate(paths, 1):
    name = os.path.relpath(path, ROOT)
    if NO_PYTHON and needs_python(path):
        print("ok %d - %s # SKIP PYTHON has no numpy, onnx and pytest" % (n, name))
        continue
    page, wrong = tried(path)
    counts = [sum(step[0] == "run" for step in page.steps) - page.forms, page.forms] + [
        sum(one[1].startswith(what) for one in page.elsewhere) for what in ("run by", "not run")]
    total = [a + b for a, b in zip(total, counts)]
    print("%s %d - %s: %d commands, %d forms" % ("not ok" if wrong else "ok", n, name, counts[0], counts[1]))
    for line in wrong:
        print("# " + line.replace("\n", "\n# "))
    for line, what, whom in page.elsewhere:
        print("# line %d: %s %s" % (line, what, whom))
with tempfile.TemporaryDirectory() as scratch:
    seen = found(scratch)
print("%s %d - what is shown and not run is found" % ("ok" if seen == FOUND else "not ok", len(paths) + 1))
if seen != FOUND:
    print("# " + "\n# ".join(seen))
print("# %d commands and programs were run, %d forms compared with the help; %d blocks are run by other tests, %d by none, for the reason given" % tuple(total))
print("1..%d" % (len(paths) + 1))
