#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The memory plan that ExecuTorch makes for a program, as a table: a producer for `onnxmem pack --check`.

    executorch_plan.py PROGRAM.pt2 FILE.csv

Needs torch and executorch.  PROGRAM.pt2 is what torch.export.save() writes.  Each line of the table is the storage of one
tensor: in use in the steps [lower, upper), which are nodes of ExecuTorch's graph, at an offset in the pool of its number.

    executorch_plan.py program.pt2 plan.csv && onnxmem pack plan.csv --check --svg plan.svg"""
import csv
import sys

import torch
from executorch.exir import to_edge


def specs_of(node):
    """What the node says of its tensors; of a view, what is said of the tensor that it is a view of."""
    specs = node.meta.get("spec")
    return [getattr(s, "_base", s) for s in (specs if isinstance(specs, (list, tuple)) else [specs]) if s is not None]


def rows(graph):
    """A row for each tensor that has an address."""
    seen = set()
    for node in graph.nodes:
        for spec in specs_of(node):
            if spec.mem_offset is None or id(spec) in seen:
                continue
            seen.add(id(spec))
            first, last = spec.lifetime
            yield [len(seen), first, last + 1, spec.allocated_memory, spec.mem_offset, spec.mem_id, node.name]


def main():
    program = to_edge(torch.export.load(sys.argv[1])).to_executorch()
    graph = program.exported_program().graph_module.graph
    with open(sys.argv[2], "w", newline="", encoding="utf-8") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(["id", "lower", "upper", "size", "offset", "pool", "name"])
        out.writerows(rows(graph))


main()
