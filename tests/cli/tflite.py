# SPDX-License-Identifier: Apache-2.0
"""Writes a small .tflite file: x -> a -> b -> y with a variable v, a weight w, and a tensor that nothing uses; with offsets, they are
its offline plan.

    tflite.py FILE [offset,offset,...]"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tflite"))
from write import write     # noqa: E402

TENSORS = [("x", 0, [1, 16], False), ("w", 0, [16, 16], True), ("a", 0, [1, 16], False), ("b", 0, [1, 16], False),
           ("y", 9, [1, 4], False), ("v", 0, [8], False), ("unused", 0, [1000], False)]
OPS = [([0, 1, -1], [2]), ([2, 5], [3]), ([3], [4])]
OFFSETS = [int(word) for word in sys.argv[2].split(",")] if len(sys.argv) > 2 else None

with open(sys.argv[1], "wb") as f:
    f.write(write(TENSORS, OPS, [0], [4], variables=["v"], offsets=OFFSETS))
