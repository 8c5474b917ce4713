#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tiling for the bundled executor: docs/tiling-executor.md.

    python bench/tile_cpu.py [--turns N] [--repeat N] [--slowdown PERCENT] [--extra-flops PERCENT] [--page FILE] MODEL...

For each model: the arena in the order of the file, that of the program lowered for the executor, as it is and tiled (`--target cpu --tile`), within the usual limit of the estimated time and without one
(`--tile-slowdown`).  The plans run in turn, A B A B, with one thread; the least processor time of a run of each turn counts, and the median of the turns' ratios is what is told.
Outputs of a tiled run are compared with those of the untiled one: the largest difference as a share of the largest element.  ONNXMEM names the command [onnxmem]."""
import argparse
import datetime
import json
import math
import os
import statistics
import sys

import each
import tables
import tile

TOP = """# Tiling for the executor

What `--target cpu --tile --extra-flops {extra}` reaches ([tile](../passes/tile.md)), made by `bench/tile_cpu.py` on {day}, {cpu}, one thread, load average {load}. Bytes of arenas, scratch of kernels included: *file order*, of the model as it
is, in the order of the file without anything in place; *untiled*, of the plan for the executor; *tiled*, within the usual limit of the estimated time (5 %); *lowest*, without a limit. *Time*: processor time
of a run, as a multiple of that of the untiled plan, median of {turns} turns of the least of {repeat} runs. *Difference*: of the outputs, largest difference as a share of the largest element; other sizes of rows make kernels add
in another order. *Search*: seconds of processor time of a report with `--tile`, planning included.

| model | file order | untiled | tiled | / file order | time | lowest | / file order | time | difference | search, s |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
"""


def report(model, *words):
    before = os.times()
    text = each.call("report", model, "--json", "-", "-q", *words)
    after = os.times()
    return json.loads(text), after.children_user + after.children_system - before.children_user - before.children_system


def plan(model, out, *words):
    each.call("plan", model, out, "--target", "cpu", "--threads", "1", "-q", *words)


def cpu_ms(path, repeat, folder, *words):
    stats = os.path.join(folder, "stats.json")
    each.call("run", path, "--fill", "deterministic", "--threads", "1", "--repeat", str(repeat), "--stats", stats, "-q", *words)
    with open(stats, encoding="utf-8") as f:
        return json.load(f)["best_cpu_ms"]


def outputs(path):
    import numpy
    with numpy.load(path) as f:
        return [f[name] for name in sorted(f.files)]


def difference(first, second):
    most = tile.difference(outputs(first), outputs(second))
    return math.inf if most is None else most


def measure(model, o, folder):
    tile = ["--tile", "--extra-flops", str(o.extra_flops)]
    ways = {"untiled": [], "tiled": tile + (["--tile-slowdown", str(o.slowdown)] if o.slowdown is not None else []),
            "lowest": tile + ["--tile-slowdown", "100000"]}
    row = {"model": os.path.basename(model).removesuffix(".onnx").removeprefix("gen_")}
    row["file_order"] = report(model)[0]["original_order_bytes"]
    paths = {}
    for way, words in ways.items():
        said, row[way + "_search"] = report(model, "--target", "cpu", "--threads", "1", *words)
        row[way] = said["arena_bytes"]
        paths[way] = os.path.join(folder, way + ".onnx")
        plan(model, paths[way], *words)
    times = {way: [] for way in ways}
    for way, path in paths.items():
        cpu_ms(path, 1, folder, "--save", os.path.join(folder, way + ".npz"))
    for _ in range(o.turns):
        for way, path in paths.items():
            times[way].append(cpu_ms(path, o.repeat, folder))
    for way in ("tiled", "lowest"):
        row[way + "_time"] = statistics.median(t / u for t, u in zip(times[way], times["untiled"]))
    row["difference"] = max(difference(os.path.join(folder, "untiled.npz"), os.path.join(folder, w + ".npz")) for w in ("tiled", "lowest"))
    print(line(row), end="", flush=True)
    return row


def line(r):
    def part(way):
        return f"{r[way]:,} | {r[way] / r['file_order']:.2f} | {r[way + '_time']:.2f}"
    return (f"| {r['model']} | {r['file_order']:,} | {r['untiled']:,} | {part('tiled')} | {part('lowest')} "
            f"| {r['difference']:.0e} | {r['lowest_search']:.0f} |\n")


def end(rows):
    def of(key):
        return statistics.geometric_mean([r[key] / r["file_order"] for r in rows])
    return (f"\nGeometric means of {len(rows)} models, of the file order: untiled {of('untiled'):.3f}, tiled {of('tiled'):.3f}, lowest {of('lowest'):.3f}; "
            f"times {statistics.geometric_mean([r['tiled_time'] for r in rows]):.3f} and {statistics.geometric_mean([r['lowest_time'] for r in rows]):.3f}. "
            f"The largest time within the limit is {max(r['tiled_time'] for r in rows):.2f}.\n")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--turns", type=int, default=5)
    p.add_argument("--repeat", type=int, default=10)
    p.add_argument("--slowdown", type=int, help="limit of the estimated time, in percent [that of the command]")
    p.add_argument("--extra-flops", type=int, default=10, help="limit of the work of values that are computed twice, in percent [10]")
    p.add_argument("--page")
    p.add_argument("models", nargs="+", metavar="MODEL")
    o = p.parse_args()
    load = os.getloadavg()[0]
    rows = each.found_of(o.models, lambda model, folder: measure(model, o, folder))
    if not rows:
        return 1
    print(end(rows))
    if o.page:
        top = TOP.format(extra=o.extra_flops, day=datetime.date.today(), cpu=tables.processor(), load=f"{load:.0f} to {os.getloadavg()[0]:.0f}", turns=o.turns, repeat=o.repeat)
        with open(o.page, "w", encoding="utf-8") as f:
            f.write(top + "".join(line(r) for r in rows) + end(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
