# SPDX-License-Identifier: Apache-2.0
"""Steps and samples for train.test; `near A B` compares two trainings, `weights A B`
two models, `epochs FILE` reads a checkpoint."""
import json
import os
import re
import subprocess
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper


def near(a, b):
    losses = [[float(x) for x in re.findall(r"loss ([0-9.]+)", open(f"{f}.txt").read())] for f in (a, b)]
    one, two = np.load(f"{a}.npz"), np.load(f"{b}.npz")
    last = losses[1]
    loss = max(abs(x - y) for x, y in zip(losses[0][-len(last):], last))
    weights = max(float(np.abs(one[k].astype("f8") - two[k].astype("f8")).max()) for k in one.files)
    print("losses differ by", loss, "weights by", weights)
    return bool(last) and loss <= 2e-6 and weights <= 2e-5


def weights(a, b):
    one, two = [{w.name: numpy_helper.to_array(w) for w in onnx.load(f).graph.initializer} for f in (a, b)]
    return one.keys() == two.keys() and all(np.abs(one[k] - two[k]).max() <= 2e-5 for k in one)


def arenas(report, told, ranks):
    sizes = {s["ranks"]: s["planned"] for s in json.load(open(report))["sizes"]}
    first, others = re.search(r"arena (\d+) bytes \(of the other ranks ([\d ]+)\)", open(told).read()).groups()
    have, want = [int(first), *map(int, others.split())], [r["arena_bytes"] for r in sizes[int(ranks)]]
    states = int(re.search(r"states (\d+)", open(told).read()).group(1))
    print(have, want, states)
    return have == want and states == sizes[int(ranks)][0]["state_bytes"] and [r["rank"] for r in sizes[64]] == [0, 1, 63]


def model():
    rng = np.random.default_rng(3)
    weights = {"w0": (6, 16), "b0": (16,), "w1": (16, 3), "b1": (3,)}
    init = [numpy_helper.from_array((rng.standard_normal(s) * 0.5).astype("f4"), n) for n, s in weights.items()]
    nodes = [helper.make_node("Gemm", ["x", "w0", "b0"], ["h"]), helper.make_node("Tanh", ["h"], ["t"]),
             helper.make_node("Gemm", ["t", "w1", "b1"], ["y"])]
    graph = helper.make_graph(nodes, "net", [helper.make_tensor_value_info("x", 1, ["N", 6])],
                              [helper.make_tensor_value_info("y", 1, ["N", 3])], init)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "net.onnx")


def grad(out, *options):
    subprocess.run([os.environ["ONNXMEM"], "grad", "net.onnx", out, "--loss-fn", "cross-entropy", "-q", *options], check=True)


def main():
    rng = np.random.default_rng(5)
    model()
    grad("sgd.onnx", "--optimizer", "momentum")
    grad("adam.onnx", "--optimizer", "adam")
    grad("lamb.onnx", "--optimizer", "lamb", "--weight-decay", "0.01")
    grad("nesterov.onnx", "--optimizer", "nesterov", "--weight-decay", "0.01")
    grad("clip.onnx", "--optimizer", "sgd", "--clip-norm", "0.2", "--clip-value", "0.05")
    for name in "train", "other":
        x = rng.standard_normal((99, 6)).astype("f4")
        np.savez(f"{name}.npz", x=x, label=(np.abs(x[:, 0]) * 2 + x[:, 1] > 1).astype("i8") + (x[:, 2] > 0.7))
    step = onnx.load("adam.onnx")
    for node in step.graph.node:
        if node.op_type == "SoftmaxCrossEntropyLoss":
            node.attribute.append(helper.make_attribute("ignore_index", -1))
    onnx.save(step, "ignoring.onnx")
    step = onnx.load("adam.onnx")
    for node in step.graph.node:
        del node.metadata_props[:]
    onnx.save(step, "bare.onnx")


if len(sys.argv) > 1 and sys.argv[1] == "near":
    sys.exit(not near(*sys.argv[2:]))
elif len(sys.argv) > 1 and sys.argv[1] == "weights":
    sys.exit(not weights(*sys.argv[2:]))
elif len(sys.argv) > 1 and sys.argv[1] == "arenas":
    sys.exit(not arenas(*sys.argv[2:]))
elif len(sys.argv) > 1:
    print(int(np.load(sys.argv[2])["onnxmem.epoch"]))
else:
    main()
