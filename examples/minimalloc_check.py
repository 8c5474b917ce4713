#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Read a packing problem and its solution as minimalloc does, and check it: a consumer of
`onnxmem plan MODEL --export csv:FILE` and `onnxmem pack PROBLEM.csv -o FILE`.

    minimalloc_check.py FILE.csv [CAPACITY]

Columns are found by their names: id, lower, upper, size, offset; gaps, where there are any, are
`4-7 9-12`, and `9-12@0:64` says that of the buffer only these bytes are in use there."""
import csv
import sys


def rectangles(row):
    """Steps and addresses in use: (from step, to step, from byte, to byte), ends exclusive."""
    lower, upper, offset, size = (int(row[key]) for key in ("lower", "upper", "offset", "size"))
    for gap in (row.get("gaps") or "").split():
        steps, _, window = gap.partition("@")
        begin, end = map(int, steps.split("-"))
        if lower < begin:
            yield lower, begin, offset, offset + size
        if window:
            yield begin, end, *(offset + int(byte) for byte in window.split(":"))
        lower = end
    if lower < upper:
        yield lower, upper, offset, offset + size


def overlap(a, b):
    return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]


def main():
    with open(sys.argv[1], newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    for k, row in enumerate(rows):
        for other in rows[:k]:
            if any(overlap(a, b) for a in rectangles(row) for b in rectangles(other)):
                sys.exit("buffers %s and %s overlap" % (other["id"], row["id"]))
    height = max((int(row["offset"]) + int(row["size"]) for row in rows), default=0)
    if len(sys.argv) > 2 and height > int(sys.argv[2]):
        sys.exit("%d bytes are more than %s" % (height, sys.argv[2]))
    print("%d buffers in %d bytes" % (len(rows), height))


main()
