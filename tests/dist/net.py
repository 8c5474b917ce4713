# SPDX-License-Identifier: Apache-2.0
"""Steps and samples for train.test and pipeline.test."""
import os
import subprocess

import numpy as np
import onnx
from onnx import helper, numpy_helper


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


main()
