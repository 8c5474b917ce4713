# SPDX-License-Identifier: Apache-2.0
"""Files for tests of training: a step made by hand (mlp.step.onnx), its net (mlp.onnx), and
samples of ten clouds, to train on and held out.  With a model: what onnxruntime makes of it."""
import json
import sys

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

DIMS = (16, 24, 10)


def step():
    r = np.random.default_rng(0)
    nodes, ins, outs, init, ties = [], [], [], [], {}

    def node(op, i, o, phase, **k):
        n = h.make_node(op, i, [o] if isinstance(o, str) else o, **k)
        n.metadata_props.add(key="org.onnxmem.phase", value=phase)
        nodes.append(n)
        return n.output[0]

    def state(name, values):
        ins.append(h.make_tensor_value_info(name, T.FLOAT, values.shape))
        init.append(nh.from_array(values.astype(np.float32), name))
        outs.append(h.make_tensor_value_info(name + "_next", T.FLOAT, values.shape))
        ties[name + "_next"] = name

    for name, elem, dims in (("x", T.FLOAT, ["N", DIMS[0]]), ("label", T.INT64, ["N"]), ("lr", T.FLOAT, [])):
        ins.append(h.make_tensor_value_info(name, elem, dims))
    for k in (0, 1):
        state(f"w{k}", r.standard_normal((DIMS[k], DIMS[k + 1])) * np.sqrt(2 / DIMS[k]))
        state(f"b{k}", np.zeros(DIMS[k + 1]))
        state(f"w{k}_m", np.zeros((DIMS[k], DIMS[k + 1])))
    init += [nh.from_array(np.array([0, 1], np.float32), "offon"), nh.from_array(np.array(DIMS[2]), "depth"),
             nh.from_array(np.array([0]), "rows"), nh.from_array(np.array(.9, np.float32), "mu"),
             nh.from_array(np.array(0, np.float32), "zero")]
    f, b, u = "forward", "backward", "update"
    a = node("Relu", [node("Gemm", ["x", "w0", "b0"], "z0", f)], "a", f)
    z = node("Gemm", [a, "w1", "b1"], "scores", f)
    node("SoftmaxCrossEntropyLoss", [z, "label"], ["loss", "log"], f)
    hot = node("OneHot", ["label", "depth", "offon"], "hot", b)
    n = node("Cast", [node("Shape", ["x"], "rows_of_x", b, start=0, end=1)], "n", b, to=T.FLOAT)
    g = node("Div", [node("Sub", [node("Exp", ["log"], "p", b), hot], "d", b), n], "g1", b)
    node("Gemm", [a, g], "w1_grad", b, transA=1)
    node("ReduceSum", [g, "rows"], "b1_grad", b, keepdims=0)
    ga = node("Gemm", [g, "w1"], "ga", b, transB=1)
    g = node("Where", [node("Greater", [a, "zero"], "on", b), ga, "zero"], "g0", b)
    node("Gemm", ["x", g], "w0_grad", b, transA=1)
    node("ReduceSum", [g, "rows"], "b0_grad", b, keepdims=0)
    for k in (0, 1):
        node("Add", [node("Mul", [f"w{k}_m", "mu"], f"m{k}", u), f"w{k}_grad"], f"w{k}_m_next", u)
        node("Sub", [f"w{k}", node("Mul", [f"w{k}_m_next", "lr"], f"s{k}", u)], f"w{k}_next", u)
        node("Sub", [f"b{k}", node("Mul", [f"b{k}_grad", "lr"], f"t{k}", u)], f"b{k}_next", u)
    outs.insert(0, h.make_tensor_value_info("loss", T.FLOAT, []))
    m = h.make_model(h.make_graph(nodes, "step", ins, outs, init), opset_imports=[h.make_opsetid("", 17)], ir_version=10)
    m.metadata_props.add(key="org.onnxmem.io_alias", value=json.dumps(ties))
    onnx.save(m, "mlp.step.onnx")
    weights = [i for i in init if i.name in ("w0", "b0", "w1", "b1")]
    net = h.make_model(h.make_graph(nodes[:3], "net", ins[:1], [h.make_tensor_value_info("scores", T.FLOAT, ["N", DIMS[2]])],
                       weights), opset_imports=[h.make_opsetid("", 17)], ir_version=10)
    onnx.save(net, "mlp.onnx")


def clouds(path, n, seed):
    r, center = np.random.default_rng(seed), 4 * np.random.default_rng(5).standard_normal((10, DIMS[0]))
    label = r.integers(0, 10, n)
    x = (center[label] + r.standard_normal((n, DIMS[0]))).astype(np.float32)
    if path:
        np.savez(path, x=x, label=label)
    return x, label


if len(sys.argv) == 1:
    step()
    clouds("train.npz", 410, 1)
    clouds("test.npz", 100, 2)
else:
    import onnxruntime as ort

    x, label = clouds(None, 100, 2)
    scores = ort.InferenceSession(sys.argv[1]).run(None, {"x": x})[0]
    print("onnxruntime:", (scores.argmax(1) == label).sum(), "of 100")
