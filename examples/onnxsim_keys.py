#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run a model in one block of memory, by the keys of onnxsim alone: a consumer of
`onnxmem plan IN OUT --compat onnxsim --annotate model,value`.

    onnxsim_keys.py MODEL.onnx

Needs onnx and numpy.  Each node is computed by itself (onnx.reference); what it reads is
taken from memory, what it gives is written there, at `onnxsim.mem_offset`.  Values
without that key are inputs, outputs and weights.  At the end the results are compared with
those of the model as a whole."""
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator


def keys(thing):
    return {p.key: p.value for p in thing.metadata_props if p.key.startswith("onnxsim.")}


def some_numbers(info):
    dims = [d.dim_value or 1 for d in info.type.tensor_type.shape.dim]
    dtype = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
    return (np.modf((np.arange(np.prod(dims, dtype=int)) + 1) * 0.618034)[0] * 2 - 1).reshape(dims).astype(dtype)


def run(model, feeds):
    """Results by name, computed in one arena; the keys of a model tell its size where it has no
    inputs only, because onnxsim counts those."""
    place = {v.name: keys(v) for v in model.graph.value_info if "onnxsim.mem_offset" in keys(v)}
    arena = np.zeros(max([int(k["onnxsim.mem_offset"]) + int(k["onnxsim.mem_size"]) for k in place.values()], default=0), np.uint8)
    elsewhere = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer} | feeds
    shape = {}

    def bytes_of(name, size):
        at = int(place[name]["onnxsim.mem_offset"])
        if size > int(place[name]["onnxsim.mem_size"]):
            sys.exit("%s: %d bytes do not fit into its %s" % (name, size, place[name]["onnxsim.mem_size"]))
        return arena[at:at + size]

    def read(name):
        if name not in place:
            return elsewhere[name]
        dims, dtype = shape[name]
        return bytes_of(name, int(np.prod(dims, dtype=int)) * dtype.itemsize).view(dtype).reshape(dims)

    for node in model.graph.node:
        inputs = {name: read(name).copy() for name in node.input if name}
        results = ReferenceEvaluator(node).run(None, inputs)
        for name, value in zip(node.output, results):
            if name in place:
                shape[name] = value.shape, value.dtype
                bytes_of(name, value.nbytes)[:] = np.ascontiguousarray(value).view(np.uint8).reshape(-1)
            else:
                elsewhere[name] = value
    return {v.name: read(v.name) for v in model.graph.output}


def main():
    model = onnx.load(sys.argv[1])
    weights = {t.name for t in model.graph.initializer}
    feeds = {v.name: some_numbers(v) for v in model.graph.input if v.name not in weights}
    results = run(model, feeds)
    for name, want in zip(results, ReferenceEvaluator(model).run(None, feeds)):
        if not np.array_equal(results[name], want):
            sys.exit("%s differs" % name)
        print(name, results[name].shape, results[name].dtype)
    for key, value in sorted(keys(model).items()):
        print(key, value)


main()
