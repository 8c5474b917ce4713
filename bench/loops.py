#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of loops and branches: memory, bytes copied, time of an iteration.

    bench/loops.py [--iterations N] [--table docs/loops.md]

`make bench-loop` runs it in the build folder, after building bench/loop, and writes
the table.  It requires Python with onnxruntime; memory is measured without it."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "models"))
os.environ.setdefault("srcdir", os.path.join(HERE, ".."))
from command import np, onnxmem, session
from flow import cases

# Bodies planned with the rest of the program, without the loop pass for carried values.
COPYING = "inline,shapes,fold,prune,schedule=min-memory,liveness,views,inplace,pack"
CASES = ("count", "loop_horner", "loop_swap", "loop_toggle", "loop_collect", "inner")
RUNS = 3


# ---- Memory. ----

def blocks(text):
    """By value of the text of a program: the number of the block that defines it."""
    home, stack, n = {}, [], 0
    for line in text.splitlines():
        line = re.sub(r'"[^"]*"', lambda m: m[0].translate({ord(c): "_" for c in "{}();="}), line).split("\t; ")[0]
        here = next((b for b in reversed(stack) if b is not None), 0)
        if re.match(r"\s*[%_]", line) and " = " in line:
            for name in re.findall(r'%("[^"]*"|[^\s:,]+)', line.split(" = ")[0]):
                home[name.strip('"')] = here
        for m in re.finditer(r"\^[^(]*\(([^)]*)\) \{|\{|\}", line):
            if m[0] == "}":
                stack.pop()
            elif m[0] == "{":
                stack.append(None)
            else:
                stack.append(n)
                for name in re.findall(r'%("[^"]*"|[^\s:,]+)', m[1]):
                    home[name.strip('"')] = n
                n += 1
    return home, n


def apart(tmp, path, shapes):
    """Bytes of all bodies, each planned alone."""
    home, nblock = blocks(onnxmem("dump", "-q", path, *shapes, "--passes", COPYING.replace(",pack", "")))
    rows = onnxmem("report", "-q", path, *shapes, "--csv", "-", "--passes", COPYING).splitlines()
    parts = {}
    for row in rows[1:]:
        parts.setdefault(home.get(row.split(",")[5], 0), []).append(row)
    total = 0
    for part in parts.values():
        with open(os.path.join(tmp, "part.csv"), "w") as f:
            f.write("\n".join([rows[0], *part]) + "\n")
        onnxmem("pack", "-q", os.path.join(tmp, "part.csv"), "--ignore-offsets", "--align", "64", "--search-nodes", "1000",
                "--json", os.path.join(tmp, "part.json"))
        with open(os.path.join(tmp, "part.json")) as f:
            total += sum(p["height"] for p in json.load(f)["pools"])
    return total, nblock - 1


def copied(tmp, path, all_feeds, *options):
    """The most bytes that any of the runs copied."""
    most = 0
    for feeds in all_feeds:
        data, stats = os.path.join(tmp, "in.npz"), os.path.join(tmp, "stats.json")
        np.savez(data, **feeds)
        onnxmem("run", "-q", path, "--data", data, "--stats", stats, *options)
        with open(stats) as f:
            most = max(most, json.load(f)["copied_bytes"])
    return most


def memory(tmp, name, path, feeds):
    shapes = [f"--input-shape={k}:{'x'.join(map(str, x.shape))}" for k, x in feeds[0].items() if x.shape]
    separately, nbody = apart(tmp, path, shapes)
    plan = json.loads(onnxmem("report", "-q", path, *shapes, "--json", "-"))
    star = "" if plan["status"] == "optimal" else "*"
    return [name, nbody, f"{separately:,}", f"{plan['arena_bytes']:,}{star}",
            f"{copied(tmp, path, feeds, '--passes', COPYING):,}", f"{copied(tmp, path, feeds):,}"]


# ---- Time. ----

def runtime_ns(path, iterations):
    """CPU time of an iteration in ONNX Runtime, on one thread."""
    s = session(path)
    feeds = {i.name: np.array(iterations, np.int64) if i.name == "trips" else
             (np.arange(np.prod(i.shape)) % 7 / 16 - 0.25).astype(np.float32).reshape(i.shape)
             for i in s.get_inputs()}
    best = None
    for _ in range(RUNS):
        start = time.process_time()
        s.run(None, feeds)
        took = time.process_time() - start
        best = took if best is None else min(best, took)
    return best * 1e9 / iterations


def iteration_table(iterations):
    loop = os.path.join(os.environ.get("abs_builddir", "."), "bench", "loop")
    paths = [os.path.join(HERE, "..", "models", name + ".onnx") for name in CASES]
    for path in paths:
        line = subprocess.run([loop, str(iterations), path], check=True, capture_output=True, text=True).stdout
        name, ops, total, kernels, rest, moved, _ = line.split("\t")
        theirs = runtime_ns(path, max(1, iterations // 20))
        yield [name, ops, total, kernels, rest, moved, f"{theirs:.0f}"]


# ---- The page. ----

PAGE = """# The cost of loops and branches

Made by `make bench-loop`.

## Memory

*apart*: the sum of the arenas of the graph and of all bodies, each planned alone. *arena*: the plan, with bodies in the arena of the graph; an asterisk marks arenas above their
lower bound. *moved*: bytes that If, Loop and Scan copied in a run, the maximum over several inputs, first with loop-carried values copied in each iteration, then as planned.

"""
LEFT = """
Remaining copies: elements of a scan output whose trip count is known only at run time, once, into memory that grows and becomes that of the output (early, control, collect);
slices along an inner axis, and scan outputs along one (scans); values whose shape changes between iterations, or differs by branch, and is not known before the
run (grow, sizes); results of a branch that are in the memory of other values, as when a branch returns one value twice or a captured value.

"""
TIME = """
## Time

Loops of {:,} iterations over a small body, in nanoseconds of CPU time per iteration: total, kernels alone, overhead; bytes copied per iteration; and one iteration
of the same model in ONNX Runtime {} (one thread, graph optimization off; {:,} iterations).

"""


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|---|" + "---:|" * (len(head) - 1)
    for row in rows:
        line = "| " + " | ".join(map(str, row)) + " |"
        print(line, flush=True)
        yield line


def page(iterations):
    import onnxruntime
    yield PAGE.rstrip("\n") + "\n"
    with tempfile.TemporaryDirectory() as tmp:
        rows = (memory(tmp, name, path, feeds()) for name, path, feeds in cases())
        yield from table(["model", "bodies", "apart", "arena", "moved by copying", "moved"], rows)
    yield LEFT.rstrip("\n") + "\n"
    yield TIME.format(iterations, onnxruntime.__version__, max(1, iterations // 20)).rstrip("\n") + "\n"
    yield from table(["model", "ops per iteration", "total", "kernels", "overhead", "moved", "ONNX Runtime"], iteration_table(iterations))


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("--iterations", type=int, default=1000000)
    a.add_argument("--table")
    a = a.parse_args()
    text = "\n".join(page(a.iterations)) + "\n"
    if a.table:
        with open(a.table, "w") as f:
            f.write(text)


main()
