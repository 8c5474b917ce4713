#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the small models of this folder.

Deterministic: weights follow a formula, nothing is random, files are the same
on every machine.  Run it in this folder after a change; the files are committed.
"""
import os

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

OPSET = 17
IR = 8


def weights(name, *dims, scale=0.5, dtype=np.float32, seed=0):
    """Numbers in (-scale, scale) that look like noise: fractions of multiples
    of the golden ratio."""
    n = int(np.prod(dims))
    u = np.modf((np.arange(n) + 1 + 31 * seed) * 0.6180339887498949)[0]
    return nh.from_array(((2 * u - 1) * scale).reshape(dims).astype(dtype), name)


def const(name, values, dtype=np.int64):
    return nh.from_array(np.array(values, dtype), name)


def value(name, dims, elem=T.FLOAT):
    return h.make_tensor_value_info(name, elem, dims)


def save(name, graph, functions=(), opset=OPSET, ir=IR, domains=()):
    imports = [h.make_opsetid("", opset)] + [h.make_opsetid(d, 1) for d in domains]
    m = h.make_model(graph, opset_imports=imports, ir_version=ir, functions=list(functions),
                     producer_name="onnxmem models/make.py")
    write(name, m)


def write(name, model):
    with open(name, "wb") as f:
        f.write(model.SerializeToString(deterministic=True))


def digits():
    """A small net for 8x8 pictures of digits, with a residual sum."""
    n = h.make_node
    nodes = [
        n("Conv", ["picture", "w1", "b1"], ["c1"], "conv1", pads=[1, 1, 1, 1]),
        n("Relu", ["c1"], ["r1"], "relu1"),
        n("Conv", ["r1", "w2", "b2"], ["c2"], "conv2", pads=[1, 1, 1, 1]),
        n("Relu", ["c2"], ["r2"], "relu2"),
        n("Conv", ["r2", "w3", "b3"], ["c3"], "conv3", pads=[1, 1, 1, 1]),
        n("Add", ["c3", "r1"], ["sum"], "residual"),
        n("Relu", ["sum"], ["r3"], "relu3"),
        n("MaxPool", ["r3"], ["small"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        n("Flatten", ["small"], ["flat"], "flatten"),
        n("Gemm", ["flat", "w4", "b4"], ["scores"], "dense", transB=1),
        n("Softmax", ["scores"], ["digit"], "softmax"),
    ]
    init = [
        weights("w1", 8, 1, 3, 3), weights("b1", 8, scale=0.1, seed=1),
        weights("w2", 8, 8, 3, 3, scale=0.2, seed=2), weights("b2", 8, scale=0.1, seed=3),
        weights("w3", 8, 8, 3, 3, scale=0.2, seed=4), weights("b3", 8, scale=0.1, seed=5),
        weights("w4", 10, 128, scale=0.2, seed=6), weights("b4", 10, scale=0.1, seed=7),
    ]
    save("digits.onnx", h.make_graph(nodes, "digits", [value("picture", [1, 1, 8, 8])],
                                     [value("digit", [1, 10])], init))


def branches():
    """Two ways of different size, which capture a value from outside."""
    n = h.make_node
    wide = h.make_graph([
        n("Concat", ["x2", "x2"], ["t"], "join", axis=1),
        n("Exp", ["t"], ["e"], "exp"),
        n("ReduceMean", ["e"], ["wide"], "mean", axes=[1], keepdims=1),
    ], "wide", [], [value("wide", [2, 1])])
    narrow = h.make_graph([
        n("Relu", ["x2"], ["t"], "relu"),
        n("ReduceMean", ["t"], ["narrow"], "mean", axes=[1], keepdims=1),
    ], "narrow", [], [value("narrow", [2, 1])])
    nodes = [
        n("Add", ["x", "x"], ["x2"], "double"),
        n("If", ["which"], ["y"], "choose", then_branch=wide, else_branch=narrow),
        n("Mul", ["x2", "y"], ["z"], "scale"),
    ]
    save("branches.onnx", h.make_graph(nodes, "branches",
         [value("which", [], T.BOOL), value("x", [2, 16])], [value("z", [2, 16])]))


def loop():
    """A carried sum, a scan output, and a captured weight."""
    n = h.make_node
    body = h.make_graph([
        n("MatMul", ["state", "w"], ["turned"], "turn"),
        n("Tanh", ["turned"], ["bent"], "bend"),
        n("Add", ["bent", "step"], ["next"], "step"),
        n("Identity", ["go"], ["go_on"], "go"),
        n("ReduceSum", ["next"], ["total"], "total", keepdims=0),
    ], "body", [value("round", [], T.INT64), value("go", [], T.BOOL), value("state", [1, 8])],
        [value("go_on", [], T.BOOL), value("next", [1, 8]), value("total", [])])
    nodes = [
        n("Mul", ["x", "half"], ["step"], "half_step"),
        n("Loop", ["rounds", "", "x"], ["last", "totals"], "loop", body=body),
        n("Relu", ["last"], ["y"], "relu"),
    ]
    save("loop.onnx", h.make_graph(nodes, "loop",
         [value("x", [1, 8])], [value("y", [1, 8]), value("totals", [5])],
         [weights("w", 8, 8), const("rounds", 5), const("half", 0.5, np.float32)]))


def function():
    """Functions with attribute references and defaults that call each other."""
    n = h.make_node
    domain = "org.onnxmem.test"
    slope = onnx.helper.make_node("LeakyRelu", ["s"], ["out"])
    slope.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT))
    lean = h.make_function(domain, "Lean", ["a", "b"], ["out", "s"], [
        n("Add", ["a", "b"], ["s"]), slope,
    ], [h.make_opsetid("", OPSET)], attributes=[], attribute_protos=[h.make_attribute("slope", 0.25)])
    inner = h.make_node("Lean", ["t", "t"], ["u", "rest"], domain=domain)
    inner.attribute.append(onnx.AttributeProto(name="slope", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT))
    twice = h.make_function(domain, "Twice", ["a", "c"], ["u", "through"], [
        n("Lean", ["a", "a"], ["t", "unused"], domain=domain), inner,
        n("Identity", ["c"], ["through"]),
    ], [h.make_opsetid("", OPSET), h.make_opsetid(domain, 1)], attributes=["slope"])
    nodes = [
        n("Twice", ["x", "x"], ["y", "same"], "first", domain=domain, slope=0.125),
        n("Lean", ["y", "same"], ["z", ""], "second", domain=domain),
    ]
    save("function.onnx", h.make_graph(nodes, "function", [value("x", [2, 3])], [value("z", [2, 3])]),
         functions=[lean, twice], domains=[domain])


def external():
    """Weights in a file beside the model."""
    n = h.make_node
    w, b = weights("w", 4, 6), weights("b", 6, seed=1)
    offset = 0
    with open("external.data", "wb") as f:
        for t in (w, b):
            raw = t.raw_data
            t.ClearField("raw_data")
            t.data_location = T.EXTERNAL
            for key, text in (("location", "external.data"), ("offset", str(offset)), ("length", str(len(raw)))):
                t.external_data.add(key=key, value=text)
            f.write(raw + bytes(-len(raw) % 64))
            offset += len(raw) + -len(raw) % 64
    save("external.onnx", h.make_graph([
        n("MatMul", ["x", "w"], ["m"], "matmul"), n("Add", ["m", "b"], ["s"], "bias"),
        n("Relu", ["s"], ["y"], "relu"),
    ], "external", [value("x", [2, 4])], [value("y", [2, 6])], [w, b]))


def dynamic():
    """A batch of any size, and shape arithmetic on it."""
    n = h.make_node
    nodes = [
        n("Conv", ["x", "w"], ["c"], "conv", pads=[1, 1, 1, 1]),
        n("Relu", ["c"], ["r"], "relu"),
        n("Shape", ["r"], ["dims"], "shape"),
        n("Gather", ["dims", "zero"], ["batch"], "batch", axis=0),
        n("Unsqueeze", ["batch", "zero1"], ["batch1"], "unsqueeze"),
        n("Concat", ["batch1", "rest"], ["to"], "concat", axis=0),
        n("Reshape", ["r", "to"], ["flat"], "reshape"),
        n("MatMul", ["flat", "w2"], ["y"], "matmul"),
    ]
    save("dynamic.onnx", h.make_graph(nodes, "dynamic", [value("x", ["N", 1, 6, 6])], [value("y", ["N", 5])], [
        weights("w", 4, 1, 3, 3), weights("w2", 144, 5, scale=0.1, seed=1),
        const("zero", 0), const("zero1", [0]), const("rest", [-1])]))


def quant():
    """Quantized: integers in the middle."""
    n = h.make_node
    f = np.float32
    nodes = [
        n("QuantizeLinear", ["x", "sx", "zx"], ["xq"], "quantize"),
        n("QLinearConv", ["xq", "sx", "zx", "wq", "sw", "zw", "sy", "zy", "bq"], ["cq"], "conv", pads=[1, 1, 1, 1]),
        n("MaxPool", ["cq"], ["pq"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        n("DequantizeLinear", ["pq", "sy", "zy"], ["p"], "dequantize"),
        n("Sigmoid", ["p"], ["y"], "sigmoid"),
    ]
    # Seven bits: products of two pairs stay in 16 bits, where some runtimes add them.
    wq = nh.from_array(((np.arange(4 * 9) * 37) % 127 - 63).reshape(4, 1, 3, 3).astype(np.int8), "wq")
    save("quant.onnx", h.make_graph(nodes, "quant", [value("x", [1, 1, 8, 8])], [value("y", [1, 4, 4, 4])], [
        const("sx", 0.0078125, f), const("zx", 128, np.uint8), wq, const("sw", 0.0078125, f),
        const("zw", 0, np.int8), const("sy", 0.03125, f), const("zy", 100, np.uint8),
        const("bq", [10, -20, 30, -40], np.int32)]))


def unsorted():
    """Nodes in an order that no checker takes, also through a captured value."""
    n = h.make_node
    yes = h.make_graph([n("Neg", ["late"], ["yes"], "neg")], "yes", [], [value("yes", [4])])
    no = h.make_graph([n("Abs", ["late"], ["no"], "abs")], "no", [], [value("no", [4])])
    nodes = [
        n("Add", ["chosen", "early"], ["y"], "last"),
        n("If", ["which"], ["chosen"], "choose", then_branch=yes, else_branch=no),
        n("Exp", ["early"], ["late"], "second"),
        n("Relu", ["x"], ["early"], "first"),
    ]
    save("unsorted.onnx", h.make_graph(nodes, "unsorted", [value("which", [], T.BOOL), value("x", [4])], [value("y", [4])]))


def names():
    """Bodies that call what they take and give like values around them."""
    n = h.make_node
    yes = h.make_graph([n("Neg", ["x"], ["y"], "neg")], "yes", [], [value("y", [4])])
    no = h.make_graph([n("Exp", ["x"], ["y"], "exp")], "no", [], [value("y", [4])])
    body = h.make_graph([n("Identity", ["more"], ["again"], "again"), n("Sin", ["x"], ["z"], "sin"), n("Mul", ["z", "s"], ["t"], "mul")],
                        "body", [value("i", [], T.INT64), value("more", [], T.BOOL), value("x", [4]), value("s", [4])],
                        [value("again", [], T.BOOL), value("t", [4]), value("z", [4])])
    nodes = [
        n("If", ["which"], ["y"], "choose", then_branch=yes, else_branch=no),
        n("Loop", ["rounds", "", "y", "x"], ["s", "e"], "repeat", body=body),
        n("Add", ["s", "e"], ["r"], "add"),
    ]
    inputs = [value("which", [], T.BOOL), value("rounds", [], T.INT64), value("x", [4])]
    save("names.onnx", h.make_graph(nodes, "names", inputs, [value("r", [4])]))


def decoder():
    """A decoder of one layer with a cache of keys and values, named as exporters name them."""
    n = h.make_node
    nodes = [
        n("Gather", ["words", "input_ids"], ["word"], "word"),
        n("Gather", ["places", "position_ids"], ["place"], "place"),
        n("Add", ["word", "place"], ["x"], "embed"),
    ]
    for k in "qkv":
        nodes += [
            n("MatMul", ["x", f"w{k}"], [f"{k}1"], f"{k}_project"),
            n("Reshape", [f"{k}1", "heads"], [f"{k}2"], f"{k}_heads"),
            n("Transpose", [f"{k}2"], [k], f"{k}_turn", perm=[0, 2, 1, 3]),
        ]
    nodes += [
        n("Concat", ["past_key_values.0.key", "k"], ["present.0.key"], "keys", axis=2),
        n("Concat", ["past_key_values.0.value", "v"], ["present.0.value"], "values", axis=2),
        n("Shape", ["attention_mask"], ["total"], "total", start=1),
        n("Squeeze", ["total"], ["total1"], "total1"),
        n("Range", ["zero", "total1", "one"], ["key_places"], "key_places"),
        n("Unsqueeze", ["position_ids", "axes"], ["query_places"], "query_places"),
        n("LessOrEqual", ["key_places", "query_places"], ["is_before"], "is_before"),
        n("Where", ["is_before", "nothing", "never"], ["mask"], "mask"),
        n("Transpose", ["present.0.key"], ["kt"], "turn_keys", perm=[0, 1, 3, 2]),
        n("MatMul", ["q", "kt"], ["scores"], "scores"),
        n("Mul", ["scores", "half"], ["scaled"], "scale"),
        n("Add", ["scaled", "mask"], ["masked"], "masked"),
        n("Softmax", ["masked"], ["share"], "softmax", axis=-1),
        n("MatMul", ["share", "present.0.value"], ["sum"], "sum"),
        n("Transpose", ["sum"], ["turned"], "turn_back", perm=[0, 2, 1, 3]),
        n("Reshape", ["turned", "rows"], ["flat"], "flat"),
        n("MatMul", ["flat", "wo"], ["out"], "out"),
        n("Add", ["x", "out"], ["y"], "residual"),
        n("MatMul", ["y", "w"], ["logits"], "logits"),
    ]
    total = "past_sequence_length + sequence_length"
    tokens = ["batch_size", "sequence_length"]
    def cache(name, rows):
        return value(name, ["batch_size", 2, rows, 4])
    inputs = [value("input_ids", tokens, T.INT64), value("attention_mask", ["batch_size", total], T.INT64),
              value("position_ids", tokens, T.INT64), cache("past_key_values.0.key", "past_sequence_length"),
              cache("past_key_values.0.value", "past_sequence_length")]
    outputs = [value("logits", tokens + [24]), cache("present.0.key", total), cache("present.0.value", total)]
    save("decoder.onnx", h.make_graph(nodes, "decoder", inputs, outputs, [
        weights("words", 24, 8, scale=2), weights("places", 64, 8, scale=1, seed=1), weights("wq", 8, 8, scale=2, seed=2),
        weights("wk", 8, 8, scale=2, seed=3), weights("wv", 8, 8, seed=4), weights("wo", 8, 8, seed=5), weights("w", 8, 24, seed=6),
        const("heads", [0, 0, 2, 4]), const("rows", [0, 0, 8]), const("zero", 0), const("one", 1), const("axes", [1, 3]),
        const("half", 0.5, np.float32), const("nothing", 0, np.float32), const("never", -1e9, np.float32)]))


def group_decoder():
    """A decoder of one layer whose caches an attention op writes, as onnxruntime-genai has it."""
    n = h.make_node
    nodes = [n("Gather", ["words", "input_ids"], ["x"], "word")]
    for k in "qkv":
        nodes.append(n("MatMul", ["x", f"w{k}"], [k], f"{k}_project"))
    nodes += [
        n("ReduceSum", ["attention_mask", "axis"], ["length"], "length"),
        n("Sub", ["length", "axis"], ["last"], "last"),
        n("Squeeze", ["last", "axis"], ["last1"], "last1"),
        n("Cast", ["last1"], ["lengths"], "lengths", to=T.INT32),
        n("Shape", ["attention_mask"], ["total"], "total", start=1),
        n("Squeeze", ["total"], ["total1"], "total1"),
        n("Cast", ["total1"], ["total2"], "total2", to=T.INT32),
        n("GroupQueryAttention", ["q", "k", "v", "past_key_values.0.key", "past_key_values.0.value", "lengths", "total2", "cos", "sin"],
          ["sum", "present.0.key", "present.0.value"], "attention", domain="com.microsoft", num_heads=4, kv_num_heads=2, do_rotary=1),
        n("MatMul", ["sum", "wo"], ["out"], "out"),
        n("Add", ["x", "out"], ["y"], "residual"),
        n("MatMul", ["y", "w"], ["logits"], "logits"),
    ]
    def cache(name, rows):
        return value(name, ["batch_size", 2, rows, 16])
    tokens = ["batch_size", "sequence_length"]
    inputs = [value("input_ids", tokens, T.INT64), value("attention_mask", ["batch_size", "total_sequence_length"], T.INT64),
              cache("past_key_values.0.key", "past_sequence_length"), cache("past_key_values.0.value", "past_sequence_length")]
    outputs = [value("logits", tokens + [24]), cache("present.0.key", "total_sequence_length"),
               cache("present.0.value", "total_sequence_length")]
    angle = np.arange(64)[:, None] / 10000 ** (np.arange(8) / 8)
    graph = h.make_graph(nodes, "group_decoder", inputs, outputs, [
        weights("words", 24, 8, scale=2), weights("wq", 8, 64, scale=2, seed=2), weights("wk", 8, 32, scale=2, seed=3),
        weights("wv", 8, 32, scale=2, seed=4), weights("wo", 64, 8, scale=2, seed=5), weights("w", 8, 24, seed=11), const("axis", [1]),
        const("cos", np.cos(angle), np.float32), const("sin", np.sin(angle), np.float32)])
    save("group_decoder.onnx", graph, domains=["com.microsoft"])


if __name__ == "__main__":
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    for make in (digits, branches, loop, function, external, dynamic, quant, unsorted, names, decoder, group_decoder):
        make()
