#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which lines of the readers of files are executed by their tests: the corpora, mutations of them, and the unit tests of files.

    tests/fuzz/readers/coverage.py [--record] [--lines WORD]

Run by `make reader-coverage` in a build folder that was configured with CFLAGS="-O0 --coverage" --disable-shared --without-modules.  Prints
a table by reader, --lines those lines that are not executed of files whose names contain WORD; --record writes the table
into docs/fuzz-readers.md, and --check, as TAP, is that table complete, and above the limit?"""
import argparse
import glob
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
PAGE = os.path.join(ROOT, "docs", "fuzz-readers.md")
BEGIN, END = "<!-- coverage -->\n", "<!-- end of coverage -->\n"
LEAST = 90
SUITES = ["byte", "files", "models", "text"]     # words of their names

READERS = {
    "archive": ["src/hub/unpack.c"],
    "ir": ["src/ir/parse.c", "src/ir/tokens.c"],
    "manifest": ["src/hub/manifest.c"],
    "model": ["src/onnx/external.c", "src/onnx/import.c", "src/onnx/load.c", "src/onnx/metadata.c", "src/onnx/tensor.c",
              "src/onnx/wire_check.c"],
    "npy": ["src/cli/npy.c", "src/cli/npz.c"],
    "offline": ["src/report/tflite.c", "src/report/tflm_read.c"],
    "original": ["src/onnx/original.c", "src/base/byte_delta.c"],
    "plan": ["src/onnx/plan_read.c"],
    "table": ["src/cli/pack_csv.c", "src/cli/table.c"],
    "value": ["src/onnx/value_files.c"],
}


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if done.returncode or "not ok" in done.stdout:
        sys.exit(f"{' '.join(command[:3])} failed:\n{done.stdout[-3000:]}")


def run_tests():
    for name in glob.glob("**/*.gcda", recursive=True):
        os.remove(name)
    run(["sh", os.path.join(ROOT, "tests/fuzz/readers/readers.test")])
    for suite in SUITES:
        run(["tests/unit/run", suite])


def data_of(source):
    """Of all objects made of a source: each program and library has its own."""
    name = os.path.basename(source)[:-2] + ".gcda"
    found = [path for path in glob.glob(f"**/*{name}", recursive=True)
             if os.path.basename(path) == name or path.endswith("-" + name)]
    return [os.path.abspath(path) for path in found]


def counts(source):
    """Executions by line."""
    lines = {}
    for path in data_of(source):
        out = subprocess.run(["gcov", "--stdout", "--json-format", path], capture_output=True, check=True).stdout
        for document in out.splitlines():
            for f in json.loads(document)["files"]:
                if os.path.realpath(f["file"]) == os.path.join(ROOT, source):
                    for line in f["lines"]:
                        lines[line["line_number"]] = lines.get(line["line_number"], 0) + line["count"]
    return lines


def show_lines(source, lines):
    with open(os.path.join(ROOT, source), encoding="utf-8") as f:
        text = f.read().split("\n")
    for n in sorted(lines):
        if not lines[n]:
            print(f"{source}:{n}:{text[n - 1]}")


def measure(word):
    rows = []
    for reader, sources in READERS.items():
        each = {source: counts(source) for source in sources}
        for source in sources:
            if word and word in source:
                show_lines(source, each[source])
        total = sum(len(lines) for lines in each.values())
        done = sum(1 for lines in each.values() for n in lines.values() if n)
        rows.append(f"| {reader} | {', '.join(f'`{s}`' for s in sources)} | {total} | {100 * done / max(total, 1):.1f} % |\n")
    return rows


HEAD = "| reader | sources | lines | executed |\n|---|---|---:|---:|\n"


def record(rows):
    with open(PAGE, encoding="utf-8") as f:
        page = f.read()
    before, rest = page.split(BEGIN)
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write(before + BEGIN + HEAD + "".join(rows) + END + rest.split(END)[1])


def check():
    with open(PAGE, encoding="utf-8") as f:
        rows = f.read().split(BEGIN)[1].split(END)[0][len(HEAD):].splitlines()
    shown = {row.split("|")[1].strip(): float(row.split("|")[4].split("%")[0]) for row in rows}
    wrong = [f"{name} is not in the table" for name in READERS if name not in shown]
    wrong += [f"{name}: {shown[name]} %" for name in shown if shown[name] < LEAST]
    print(*("# " + w for w in wrong), f"{'not ' if wrong else ''}ok 1 - of each reader at least {LEAST} % of the lines are tested",
          "1..1", sep="\n")
    return bool(wrong)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--record", action="store_true", help="write docs/fuzz-readers.md")
    p.add_argument("--check", action="store_true", help="is the table of docs/fuzz-readers.md above the limit? (TAP)")
    p.add_argument("--lines", metavar="WORD", help="print the lines of such files that no test executes")
    p.add_argument("--kept", action="store_true", help="of the last run of the tests")
    args = p.parse_args()
    if args.check:
        return check()
    if not args.kept:
        run_tests()
    rows = measure(args.lines)
    print(HEAD + "".join(rows), end="")
    if args.record:
        record(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
