# SPDX-License-Identifier: Apache-2.0
"""Models for pipeline.test: branches over cuts, ops that join the samples of a batch, and one that is drawn."""
import os
import subprocess

import numpy as np
import onnx
from onnx import helper, numpy_helper

rng = np.random.default_rng(17)


def save(name, nodes, init=(), y=("N", 6), inputs=(("x", ("N", 6)),), opset=17):
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info(n, 1, s) for n, s in inputs],
                              [helper.make_tensor_value_info("y", 1, y)],
                              [numpy_helper.from_array(np.asarray(v), n) for n, v in dict(init).items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), name + ".onnx")


def node(kind, inputs, out, **attrs):
    return helper.make_node(kind, inputs.split(), [out], **attrs)


# Values that go from a part to each of several later ones, in an order other than that of their first reads.
weights = {f"w{k}": (rng.standard_normal((6, 6)) * 0.3).astype("f4") for k in range(6)}
save("branches", [node("MatMul", "x w0", "a"), node("MatMul", "a w1", "b"), node("MatMul", "b w2", "c"), node("Add", "c b", "d"),
                  node("MatMul", "d w3", "e"), node("Mul", "e a", "f"), node("MatMul", "f w4", "g"), node("Add", "g b", "h"),
                  node("Add", "h x", "i"), node("MatMul", "i w5", "j"), node("Add", "j d", "y")], weights)
save("opset11", [node("MatMul", "x w0", "a"), node("Relu", "a", "b"), node("MatMul", "b w1", "y")], weights, opset=11)
save("softmax", [node("Relu", "x", "a"), node("Softmax", "a", "y", axis=0)])
save("cumsum", [node("Relu", "x", "a"), node("CumSum", "a zero", "y")], {"zero": np.int64(0)})
save("reverse", [node("Relu", "x", "a"), node("CumSum", "a zero", "y", reverse=1)], {"zero": np.int64(0)})
save("mean", [node("Relu", "x", "a"), node("ReduceMean", "a", "y", axes=[0])], y=(1, 6))
# What follows from the number of samples: a mean over them, their positions; and what is the same for each, or only a shape.
count = [node("Shape", "x", "s"), node("Gather", "s zero", "n")]
save("per_sample", count + [node("Cast", "n", "f", to=1), node("Relu", "x", "a"), node("Div", "a f", "y")], {"zero": np.int64(0)})
save("position", count + [node("Range", "zero n one", "r"), node("Cast", "r", "f", to=1), node("Unsqueeze", "f axis", "u"), node("Relu", "x", "a"),
                          node("Add", "a u", "y")], {"zero": np.int64(0), "one": np.int64(1), "axis": np.array([1])})
save("only_count", count + [node("Range", "zero n one", "r"), node("Cast", "r", "y", to=1)], {"zero": np.int64(0), "one": np.int64(1)}, y=("N",))
save("by_size", count + [node("Greater", "n few", "g"), node("Where", "g big small", "f"), node("Relu", "x", "a"), node("Mul", "a f", "y")],
     {"zero": np.int64(0), "few": np.int64(7), "big": np.float32(10), "small": np.float32(0.5)})
save("same_rows", [node("Shape", "x", "s"), node("Expand", "row s", "e"), node("Add", "x e", "a"), node("ConstantOfShape", "s", "z"),
                   node("Sub", "a z", "b"), node("Reshape", "b t", "c"), node("Relu", "c", "d"), node("Reshape", "d s", "y")],
     {"row": rng.standard_normal((1, 6)).astype("f4"), "t": np.array([0, 2, 3])})
save("fixed", [node("Relu", "x", "a"), node("Neg", "a", "y")], y=(8, 6), inputs=(("x", (8, 6)),))
save("drawn", [node("RandomNormal", "", "n", shape=[6]), node("Relu", "x", "a"), node("Add", "a n", "y")])
# Steps of nets: a weight that two parts read, and a normalization whose statistics are states.
save("tied", [node("MatMul", "x w0", "a"), node("Tanh", "a", "b"), node("MatMul", "b w1", "c"), node("Tanh", "c", "d"),
              node("MatMul", "d w0", "e"), node("Relu", "e", "f"), node("Gemm", "f w2 bias", "y")], {**weights, "bias": np.zeros(6, "f4")})
save("norm", [node("Gemm", "x w0 bias", "a"),
              helper.make_node("BatchNormalization", ["a", "g", "bias", "m", "v"], ["n", "m_next", "v_next"], training_mode=1),
              node("Relu", "n", "c"), node("MatMul", "c w1", "d"), node("Tanh", "d", "e"), node("MatMul", "e w2", "y")],
     {**weights, "bias": np.zeros(6, "f4"), "g": np.ones(6, "f4"), "m": np.zeros(6, "f4"), "v": np.ones(6, "f4")})
for name, options in ("tied", ["adam"]), ("norm", ["momentum"]), ("branches", ["sgd", "--clip-norm", "0.2"]):
    subprocess.run([os.environ["ONNXMEM"], "grad", f"{name}.onnx", f"{name}-step.onnx", "--loss-fn", "mse", "-q", "--optimizer", *options], check=True)
np.savez("samples.npz", x=rng.standard_normal((99, 6)).astype("f4"), label=rng.standard_normal((99, 6)).astype("f4"))
np.savez("x.npz", x=rng.standard_normal((12, 6)).astype("f4"))
np.savez("other.npz", x=rng.standard_normal((12, 6)).astype("f4"))
