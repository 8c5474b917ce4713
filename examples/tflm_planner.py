#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What TFLite Micro makes of an offline plan: a consumer of
`onnxmem plan MODEL OUT --export tflm:FILE`.

    tflm_planner.py OUT.onnx FILE

Needs onnx.  Takes the words of the array as the runtime reads them out of the model's metadata:
version, subgraph, number of tensors, an offset each.  Tensors with an offset stay there; those
with -1 are the planner's, which puts the largest first where nothing is in the way.  Then it
looks whether a tensor lies over one that is still needed."""
import re
import sys

import onnx
from onnx import helper, shape_inference


def words(path):
    with open(path, encoding="utf-8") as f:
        text = re.sub(r"//.*", "", f.read())
    return [int(word) for word in text[text.index("{") + 1:text.index("}")].split(",") if word.strip()]


def tensors(graph):
    """Names in the order of the array: inputs, then outputs of nodes; with bytes, and the
    nodes that write and last read each."""
    weights = {t.name for t in graph.initializer}
    size, made, used = {}, {}, {}
    for info in list(graph.input) + list(graph.value_info) + list(graph.output):
        t = info.type.tensor_type
        n = helper.tensor_dtype_to_np_dtype(t.elem_type).itemsize
        for dim in t.shape.dim:
            n *= dim.dim_value
        size[info.name] = n
    for info in graph.input:
        if info.name not in weights:
            made[info.name] = used[info.name] = 0
    for k, node in enumerate(graph.node):
        for name in node.input:
            if name in made:
                used[name] = k
        for name in filter(None, node.output):
            made[name] = used[name] = k
    for info in graph.output:
        used[info.name] = len(graph.node)
    return [[name, size[name], made[name], used[name]] for name in made]


def place_rest(all, offset):
    for k in sorted((k for k in range(len(all)) if offset[k] < 0), key=lambda k: -all[k][1]):
        _, size, made, used = all[k]
        at = 0
        for begin, end in sorted((offset[i], offset[i] + all[i][1]) for i in range(len(all))
                                 if offset[i] >= 0 and all[i][2] <= used and made <= all[i][3]):
            if begin < at + size and at < end:
                at = (end + 15) // 16 * 16
        offset[k] = at


def main():
    graph = shape_inference.infer_shapes(onnx.load(sys.argv[1])).graph
    all, (version, subgraph, n, *offset) = tensors(graph), words(sys.argv[2])
    if (version, subgraph, n) != (1, 0, len(all)) or len(offset) != n:
        sys.exit("the array is for %d tensors of subgraph %d, version %d; there are %d" % (n, subgraph, version, len(all)))
    given = [k for k in range(n) if offset[k] >= 0]
    if any(offset[k] % 16 for k in given):
        sys.exit("offsets are multiples of 16")
    for i in given:
        for k in given:         # one may be computed over another that is read for the last time
            if i < k and all[i][2] < all[k][3] and all[k][2] < all[i][3] and \
                    offset[i] < offset[k] + all[k][1] and offset[k] < offset[i] + all[i][1]:
                sys.exit("%s lies over %s, which is needed" % (all[k][0], all[i][0]))
    place_rest(all, offset)
    print("%d of %d tensors as planned, in %d bytes; %d with the rest" % (
        len(given), n, max((offset[k] + all[k][1] for k in given), default=0), max(o + t[1] for o, t in zip(offset, all))))


main()
