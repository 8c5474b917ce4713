#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The packer from Python beside the memory planner of ExecuTorch, and the solver of minimalloc, on the same buffers.

    python_packers.py [--seconds N] FILE.csv...

Files are problems of minimalloc: lines id,lower,upper,size, in use in the steps [lower, upper).  For each the bytes that the planner
needs, and the processor time of the best of several calls.  onnxmem is called with the usual limits of its search; ExecuTorch's
algorithm is `greedy`, that of its MemoryPlanningPass.  minimalloc, by the module for Python of its repository, looks for a packing of a
capacity that it is told: it gets the bytes that onnxmem found, and N seconds (60).  Columns of what cannot be imported are empty."""
import argparse
import csv
import importlib
import os
import time

import numpy as np

import onnxmem


class Spec:
    """What ExecuTorch's planner reads of a tensor."""

    mem_id = None
    storage_base = None

    def __init__(self, size, first, last):
        self.allocated_memory, self.lifetime = size, [first, last]

    def realign(self, alignment):
        """Sizes are taken as they are."""


def read(path):
    with open(path, newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    return [np.array([int(row[name]) for row in rows]) for name in ("size", "lower", "upper")]


def timed(function, most=5, seconds=2.0):
    """The result, and the least processor time of some calls."""
    best, spent = float("inf"), 0.0
    for _ in range(most):
        start = time.process_time()
        result = function()
        best = min(best, time.process_time() - start)
        spent += best
        if spent > seconds:
            break
    return result, 1000 * best


def by_executorch(greedy, size, lower, upper):
    specs = [Spec(int(s), int(a), int(b) - 1) for s, a, b in zip(size, lower, upper)]
    return timed(lambda: sum(greedy(1, specs, None, None).bufsizes))


def by_minimalloc(minimalloc, path, capacity, seconds):
    """Whether minimalloc finds a packing of a capacity in so many seconds, one that it calls right itself, and its time."""
    with open(path, encoding="utf-8") as f:
        problem = minimalloc.from_csv(f.read())
    problem.capacity = capacity
    params = minimalloc.SolverParams()
    params.timeout = float(seconds)
    found, ms = timed(lambda: minimalloc.Solver(params).solve(problem))
    if found is not None:
        assert minimalloc.validate(problem, found) == minimalloc.ValidationResult.GOOD and found.height <= capacity, path
    return ["no" if found is None else "yes", f"{ms:.1f}"]


def module_of(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=int, default=60)
    options.add_argument("file", nargs="+")
    given = options.parse_args()
    executorch, minimalloc = module_of("executorch.exir.memory_planning"), module_of("minimalloc")
    print("| problem | buffers | onnxmem | proof | ms | ExecuTorch | ms | minimalloc fits these bytes | ms |")
    print("|---|---:|---:|---|---:|---:|---:|---|---:|")
    for path in given.file:
        size, lower, upper = read(path)
        packing, ms = timed(lambda: onnxmem.pack(size, lower, upper - 1))
        line = [os.path.basename(path), f"{len(size):,}", f"{packing.height:,}", "optimal" if packing.is_optimal else "–", f"{ms:.1f}"]
        other, ms = by_executorch(executorch.greedy, size, lower, upper) if executorch else (None, 0)
        line += [f"{other:,}", f"{ms:.1f}"] if other is not None else ["–", "–"]
        line += by_minimalloc(minimalloc, path, packing.height, given.seconds) if minimalloc else ["–", "–"]
        print("| " + " | ".join(line) + " |", flush=True)


main()
