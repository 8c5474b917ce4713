#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Long runs of the fuzzers, counted for docs/trust.md.

    tests/fuzz/campaign.py [--seconds S] [--jobs N] [--goal FACTOR] [--record] [NAME...]

Run in a build folder by `make campaign`, which builds the fuzzers first.  Each campaign runs a
fuzzer on new seeds, piece by piece, until its goal is reached or its time is used.  A piece that
fails is printed and counted, and the campaign goes on.  --record writes what was counted into
docs/trust.tsv, with the commit, and from there into the table of docs/trust.md."""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TSV = os.path.join(ROOT, "docs", "trust.tsv")
PAGE = os.path.join(ROOT, "docs", "trust.md")
BEGIN, END = "<!-- campaigns -->\n", "<!-- end of campaigns -->\n"
FIRST = 50_000_000  # seeds that no test of `make check` uses
NODES = "100"       # limit of the searches for the plans of random programs: `make check` has the usual ones


class Campaign:
    """`command` has {first} and {count}; `count` finds the number of cases in its output, if that is not
    the number of seeds, or a multiple in PER_SEED."""

    def __init__(self, name, what, unit, goal, piece, command, count=None):
        self.name, self.what, self.unit, self.goal, self.piece = name, what, unit, goal, piece
        self.command, self.count = command, count

    def run(self, first, count, ntotal):
        """(cases, what went wrong) of one piece."""
        argv = [a.format(first=first, count=count) for a in self.command]
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace")
        if done.returncode:
            return count * ntotal, f"{' '.join(argv)}\n{done.stdout[-4000:]}{done.stderr[-2000:]}"
        if not self.count:
            return count * ntotal, None
        return sum(int(n) for n in re.findall(self.count, done.stdout)), None


def fuzzer(name, *args):
    return [f"tests/fuzz/{name}", *args]


CAMPAIGNS = [
    Campaign("programs", "random programs × 19 ways to plan with short searches, each planned, poisoned and without reuse",
             "programs", 50_000, 100, fuzzer("programs", "{first}", "{count}", NODES)),
    Campaign("flows", "programs of nested If, Loop and Scan beside an interpreter, planned in all ways",
             "programs", 50_000, 500, fuzzer("flows", "{first}", "{count}")),
    Campaign("plan-faults", "faults in plans in memory: refused, or harmless",
             "faults", 50_000, 50, fuzzer("flows", "--faults", "{first}", "{count}", "100")),
    Campaign("gradients", "gradients of random programs beside differences",
             "programs", 20_000, 500, fuzzer("flowgrads", "{first}", "{count}")),
    Campaign("packing", "random packing problems, small ones beside all packings",
             "problems", 20_000, 500, fuzzer("packs", "{count}", "{first}")),
    Campaign("tables", "damaged packing problems",
             "tables", 20_000, 1000, fuzzer("tables", "{count}", "{first}")),
    Campaign("certificates", "small programs: plans below what is called optimal, or below a bound, searched exhaustively",
             "programs", 20_000, 100, fuzzer("certificates", "{first}", "{count}")),
    Campaign("hostile", "hostile calls of every operator: out-of-range attributes, shapes, elements",
             "calls", 93_000, 50, ["env", "CASES={count}", "SEED={first}", "tests/ops/hostile"], r"cases=(\d+)"),
    Campaign("ranges", "random models with symbols: every size of their ranges runs by one plan, by a plan of its own, and in ONNX Runtime",
             "models", 500, 10, [sys.executable, f"{ROOT}/tests/ranges/programs.py", "./onnxmem", "{first}", "{count}"]),
    Campaign("range-steps", "the same with random steps and with Scans and Loops over sizes: planned, poisoned and without reuse bit for bit",
             "models", 300, 10, [sys.executable, f"{ROOT}/tests/ranges/programs.py", "./onnxmem", "{first}", "{count}", "steps"]),
    Campaign("lags", "random models with Scans and Loops of lags, nested: planned, poisoned and without reuse bit for bit, and in ONNX Runtime",
             "models", 300, 10, ["env", "ONNXMEM=./onnxmem", sys.executable, f"{ROOT}/tests/fuzz/lags.py", "{first}", "{count}"]),
]

# What a seed stands for, where that is more than one case.
PER_SEED = {"plan-faults": 100}


def run_all(c, seconds, jobs, factor):
    """(cases, failed) of a campaign."""
    goal, end, cases, failed, first = int(c.goal * factor), time.time() + seconds, 0, 0, FIRST
    each = PER_SEED.get(c.name, 1)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        running = set()
        while running or (cases < goal and time.time() < end):
            while len(running) < jobs and cases + len(running) * c.piece * each < goal and time.time() < end:
                running.add(pool.submit(c.run, first, c.piece, each))
                first += c.piece
            done, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                n, wrong = future.result()
                cases += n
                if wrong:
                    failed += 1
                    print(wrong, flush=True)
    return cases, failed


def commit():
    def git(*args):
        return subprocess.run(["git", "-C", ROOT, *args], capture_output=True, text=True).stdout.strip()
    return git("rev-parse", "--short=10", "HEAD") + ("+" if git("status", "--porcelain", "-uno", "--", "src", "passes", "include") else "")


def read():
    with open(TSV, encoding="utf-8") as f:
        return {line.split("\t")[0]: line.rstrip("\n").split("\t") for line in f if not line.startswith("#")}


def table(rows):
    text = "| | cases | failed | at |\n|---|---|---|---|\n"
    for _, what, unit, cases, failed, at in rows:
        text += f"| {what} | {int(cases):,} {unit} | {failed} | {at} |\n"
    return text


def write(rows):
    with open(TSV, "w", encoding="utf-8") as f:
        f.write("# campaign, what it does, unit, cases, failed, commit; made by tests/fuzz/campaign.py --record\n")
        f.writelines("\t".join(row) + "\n" for row in rows)
    with open(PAGE, encoding="utf-8") as f:
        page = f.read()
    before, rest = page.split(BEGIN)
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write(before + BEGIN + table(rows) + END + rest.split(END)[1])


def is_shown():
    """Is the page what the figures give, of known campaigns, none of which failed?"""
    rows, known = list(read().values()), {c.name: c for c in CAMPAIGNS}
    with open(PAGE, encoding="utf-8") as f:
        page = f.read()
    wrong = [f"{row[0]} is no campaign" for row in rows if row[0] not in known]
    wrong += [f"{row[0]}: {row[4]} failed" for row in rows if row[4] != "0"]
    wrong += [f"{name} was never recorded" for name in known if name not in {row[0] for row in rows}]
    if page.split(BEGIN)[1].split(END)[0] != table(rows):
        wrong.append("the table of docs/trust.md is not that of docs/trust.tsv")
    return wrong


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--seconds", type=float, default=600, help="at most this long for each campaign [600]")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--goal", type=float, default=1, help="this many times the usual number of cases [1]")
    p.add_argument("--record", action="store_true", help="write docs/trust.tsv and docs/trust.md")
    p.add_argument("--check", action="store_true", help="is docs/trust.md up to date? (TAP)")
    p.add_argument("names", nargs="*", metavar="NAME")
    args = p.parse_args()
    if args.check:
        wrong = is_shown()
        print(*("# " + w for w in wrong), f"{'not ' if wrong else ''}ok 1 - docs/trust.md shows what the campaigns counted", "1..1", sep="\n")
        return bool(wrong)
    rows, bad = (read() if os.path.exists(TSV) else {}), 0
    for name in set(args.names) - {c.name for c in CAMPAIGNS}:
        p.error(f"there is no campaign {name}; there are {', '.join(c.name for c in CAMPAIGNS)}")
    for c in CAMPAIGNS:
        if args.names and c.name not in args.names:
            continue
        start = time.time()
        cases, failed = run_all(c, args.seconds, args.jobs, args.goal)
        print(f"{c.name}: {cases:,} {c.unit}, {failed} failed, {time.time() - start:.0f} s", flush=True)
        rows[c.name] = [c.name, c.what, c.unit, str(cases), str(failed), commit()]
        bad += failed
    if args.record:
        write([rows[c.name] for c in CAMPAIGNS if c.name in rows])
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
