#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Workers side by side: how much faster a run is, and how much larger the arena, by real time.

    python bench/streams.py [--turns N] [--repeat N] [--workers N,...] [--wait US] [--precise] MODEL...

Each model is planned for one worker and for each number of workers (`--streams`), every op with one thread.  The plans run in turn, each time for --repeat runs, of which the shortest
counts: A B A B, so that other programs of the machine disturb all plans alike; real time, as processor time does not shrink.  Other work makes runs longer, those
of two threads more often than those of one: "times" is the ratio of the least times of all turns, which have both processors to themselves if there are enough runs.  "path" is free of that: the shortest time of each op, measured one after the other (`--profile`), in the order of the streams with their
waits, each of which is taken as --wait microseconds.  It leaves out that workers share the memory of the machine.  Outputs are compared bit by bit.  A line for each model and number
of workers: the arenas, the waits, the shortest times of all turns and their ratio, that of the path, and "model", what the planner expects.  Then geometric means.  ONNXMEM names the command."""
import argparse
import json
import os
import sys

import each
import tables

def read(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def plan(model, workers, o, folder):
    """The path of the plan, its report, and the ops of its streams."""
    path, said, document = (os.path.join(folder, "%d.%s" % (workers, kind)) for kind in ("onnx", "json", "plan"))
    words = ["--target", "cpu", "-q"] + (["--streams", str(workers)] if workers > 1 else ["--threads", "1"]) + (["--precise"] if o.precise else [])
    each.call("plan", model, path, "--sidecar", document, *words)
    each.call("report", model, "--json", said, *words)
    return path, read(said), read(document).get("streams", {}).get("ops", [])


def run(path, o, folder, save=None):
    stats = os.path.join(folder, "stats.json")
    words = ["--save", save] if save else []
    one = ["--threads", "1"]
    each.call("run", path, "--fill", "deterministic", "--repeat", str(o.repeat), "--stats", stats, "-q", *one, *words)
    return read(stats)["best_ms"]


def path_gain(path, streams, o, folder):
    """The time of one worker over that of the streams, by the shortest time of each op."""
    trace = os.path.join(folder, "trace.json")
    each.call("run", path, "--fill", "deterministic", "--threads", "1", "--repeat", str(o.turns * o.repeat), "--profile", trace, "-q")
    ms = {e["args"]["output"]: e["args"]["least_ms"] for e in read(trace)["traceEvents"] if e["ph"] == "X"}
    finish, free = {}, {}
    for name, stream, *waits in streams:
        start = max([free.get(stream, 0)] + [finish[w] + o.wait / 1000 for w in waits])
        free[stream] = finish[name] = start + ms.get(name, 0)
    return sum(ms.get(name, 0) for name, *_ in streams) / max(free.values())


def same(one, other):
    names = sorted(os.listdir(one))
    for name in names:
        with open(os.path.join(one, name), "rb") as a, open(os.path.join(other, name), "rb") as b:
            if a.read() != b.read():
                return False
    return bool(names) and names == sorted(os.listdir(other))


def measure(model, o, folder):
    counts = [1] + o.workers
    plans = {n: plan(model, n, o, folder) for n in counts}
    for n in counts:
        run(plans[n][0], o, folder, os.path.join(folder, "out%d" % n))
        if not same(os.path.join(folder, "out1"), os.path.join(folder, "out%d" % n)):
            raise RuntimeError("%d workers compute something else" % n)
    times = [{n: run(plans[n][0], o, folder) for n in counts} for _ in range(o.turns)]
    found = {}
    for n in o.workers:
        found[n] = min(t[1] for t in times) / min(t[n] for t in times), path_gain(plans[n][0], plans[n][2], o, folder)
        streams = plans[n][1].get("streams", {})
        print("%-26s %d  arena %11d %11d %5.2f  waits %4d  ms %9.3f %9.3f  times %5.2f  path %5.2f  model %5.2f  load %.1f" % (
            os.path.splitext(os.path.basename(model))[0], n, plans[1][1]["arena_bytes"], plans[n][1]["arena_bytes"],
            plans[n][1]["arena_bytes"] / max(plans[1][1]["arena_bytes"], 1), streams.get("waits", 0), min(t[1] for t in times), min(t[n] for t in times),
            *found[n], streams.get("model_speedup") or 1, os.getloadavg()[0]), flush=True)
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--turns", type=int, default=5)
    p.add_argument("--repeat", type=int, default=10)
    p.add_argument("--workers", type=lambda text: [int(n) for n in text.split(",")], default=[2])
    p.add_argument("--wait", type=float, default=3)
    p.add_argument("--precise", action="store_true")
    p.add_argument("models", nargs="+")
    o = p.parse_args()
    all_found = each.found_of(o.models, lambda model, folder: measure(model, o, folder))
    for n in o.workers if all_found else ():
        for k, what in enumerate(("times", "path")):
            ratios = [found[n][k] for found in all_found]
            print("%d workers, %s: geometric mean %.2f, least %.2f, of %d models" % (n, what, tables.geometric(ratios), min(ratios), len(ratios)))
    return 0 if len(all_found) == len(o.models) else 1


if __name__ == "__main__":
    sys.exit(main())
