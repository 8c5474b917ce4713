#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tuning: tuned and untuned plans, by the processor time of their runs.

    python bench/tune.py [--seconds N] [--turns N] [--budget PERCENT] MODEL...

Each model is planned for the executor as the cost model has it and by `onnxmem tune`, for one thread.  Then both plans run in turn, each time for REPEATS runs, of
which the least processor time counts; the ratio of the least times of all turns is what is printed, as other programs of the machine only ever make a run longer.  The measurement is
not the one that chose.  A plan that is the same, as no layer is computed in another way, is measured once: its ratio is 1.  With --budget the tuned plan may take that percentage of the total of the untuned one.  A line for each model, then the geometric mean.  ONNXMEM names the command."""
import argparse
import json
import os
import subprocess
import sys

import each
import tables

COMMAND = os.environ.get("ONNXMEM", "onnxmem")
REPEATS = 15


def call(*words):
    done = subprocess.run((COMMAND,) + words, capture_output=True, text=True, check=False)
    return done.returncode, (done.stderr.strip().splitlines() or [""])[-1]


def cpu_ms(model, folder):
    stats = os.path.join(folder, "stats.json")
    status, message = call("run", model, "--fill", "deterministic", "--threads", "1", "--repeat", str(REPEATS), "--stats", stats, "-q")
    if status:
        raise RuntimeError(message)
    with open(stats, encoding="utf-8") as f:
        return json.load(f)["best_cpu_ms"]


def tune(model, o, folder):
    """Paths of both plans, and what tuning says."""
    usual, tuned, said = (os.path.join(folder, name) for name in ("usual.onnx", "tuned.onnx", "tune.json"))
    status, message = call("plan", model, usual, "--target", "cpu", "--threads", "1", "-q")
    words = ["tune", model, tuned, "--seconds", str(o.seconds), "--threads", "1", "--json", said, "-q"]
    if status == 0 and o.budget:
        status, message = call(*words)
        with open(said, encoding="utf-8") as f:
            words += ["--budget", str(int(json.load(f)["cost_model"]["total_bytes"] * o.budget / 100))]
    if status == 0:
        status, message = call(*words)
    if status:
        raise RuntimeError(message)
    with open(said, encoding="utf-8") as f:
        return usual, tuned, json.load(f)


def measure(model, o, folder):
    usual, tuned, said = tune(model, o, folder)
    same = said["kept"] or all(layer["chosen"] == layer["choices"][0]["choice"] for layer in said["layers"])
    times = [(cpu_ms(usual, folder), None if same else cpu_ms(tuned, folder)) for _ in range(o.turns)]
    times = [(a, b or a) for a, b in times]
    ratio = min(a for a, _ in times) / min(b for _, b in times)
    print("%-24s %9.3f %9.3f  %6.3f  total %11d %11d  %s" % (
        os.path.splitext(os.path.basename(model))[0], min(a for a, _ in times), min(b for _, b in times), ratio,
        said["cost_model"]["total_bytes"], said["chosen"]["total_bytes"],
        "the same plan" if same else "%d not measured" % said["unmeasured"] if said["unmeasured"] else ""), flush=True)
    return ratio


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seconds", type=float, default=20)
    p.add_argument("--turns", type=int, default=5)
    p.add_argument("--budget", type=float)
    p.add_argument("models", nargs="+")
    o = p.parse_args()
    ratios = each.found_of(o.models, lambda model, folder: measure(model, o, folder))
    if ratios:
        print("geometric mean %.3f, least %.3f, of %d models" % (tables.geometric(ratios), min(ratios), len(ratios)))
    return 0 if len(ratios) == len(o.models) else 1


if __name__ == "__main__":
    sys.exit(main())
