# SPDX-License-Identifier: Apache-2.0
"""A model with what cse and fuse take out (fusable.onnx).  With a model: its nodes, and whether
onnxruntime computes the same from both."""
import sys

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh


def make():
    f = lambda name, v: nh.from_array(np.array(v, dtype=np.float32), name)
    init = [f("one", [1]), f("minus", [-0.0]), f("w", np.arange(18).reshape(2, 1, 3, 3) / 8), f("w2", np.arange(18).reshape(2, 1, 3, 3) / 8),
            nh.from_array(np.array([0, 0, 1, 1, 0, 0, 1, 1]), "pads"), nh.from_array(np.array([-1]), "flat"),
            nh.from_array(np.array([2, -1]), "rows")]
    n = h.make_node
    nodes = [
        n("Identity", ["x"], ["a"]), n("Neg", ["a"], ["b"]), n("Transpose", ["b"], ["t1"], perm=[0, 1, 3, 2]),
        n("Transpose", ["t1"], ["t2"], perm=[0, 1, 3, 2]), n("Mul", ["t2", "one"], ["c"]), n("Add", ["minus", "c"], ["d"]),
        n("Pad", ["d", "pads"], ["p"]), n("Conv", ["p", "w"], ["e"]), n("Conv", ["p", "w2"], ["e2"]),
        n("Add", ["e", "e2"], ["s"]), n("Dropout", ["s"], ["o"]), n("Cast", ["o"], ["f64"], to=T.DOUBLE),
        n("Cast", ["f64"], ["f32"], to=T.FLOAT), n("Reshape", ["f32", "rows"], ["r"]), n("Reshape", ["r", "flat"], ["v"]),
        n("Relu", ["v"], ["rel"]), n("Identity", ["rel"], ["y"]), n("Identity", ["x"], ["z"]),
    ]
    info = h.make_tensor_value_info
    g = h.make_graph(nodes, "fusable", [info("x", T.FLOAT, [1, 1, 5, 5])],
                     [info("y", T.FLOAT, [50]), info("z", T.FLOAT, [1, 1, 5, 5])], init)
    m = h.make_model(g, opset_imports=[h.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(m, full_check=True)
    onnx.save(m, "fusable.onnx")


def show(path):
    import onnxruntime as ort
    m = onnx.load(path)
    onnx.checker.check_model(m, full_check=True)
    for node in m.graph.node:
        print(node.op_type, list(node.input), list(node.output))
    x = np.random.default_rng(0).standard_normal((1, 1, 5, 5)).astype(np.float32)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    run = lambda file: ort.InferenceSession(file, options, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    print("same" if all(np.allclose(a, b, rtol=1e-6) for a, b in zip(run("fusable.onnx"), run(path))) else "different")


make() if len(sys.argv) == 1 else show(sys.argv[1])
