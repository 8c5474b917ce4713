# SPDX-License-Identifier: Apache-2.0
"""Models through versions: IR 3 to 14 and every opset that the operators have,
as they come, all with the same numbers."""
import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "../models")]
from command import ATOL, Wrong, arrays, compare, np, onnx, onnxmem
from onnx import TensorProto, checker, helper, numpy_helper, version_converter
from tap import SRC, Points, scratch

NEWEST = onnx.defs.onnx_opset_version()
IRS = range(3, 15)


def run(path, to, feeds=None):
    """Planned, and with every value in memory of its own."""
    data = ["--data", feeds] if feeds else ["--fill", "deterministic"]
    onnxmem("run", path, *data, "--default-dim=2", "--save", to)
    onnxmem("run", path, *data, "--default-dim=2", "--save", to + ".own.npz", "--no-reuse")
    got = arrays(to)
    for n, a in arrays(to + ".own.npz").items():
        if got[n].tobytes() != a.tobytes():
            raise Wrong(f"{n} is another one without reuse")
    return got


def same(got, want):
    if set(got) != set(want):
        raise Wrong(f"outputs {sorted(got)}, wanted {sorted(want)}")
    for n in want:
        compare(n, got[n], want[n], ATOL)


# ---- Small models: what an operator asks for in each version. ----

def ints(name, *v):
    return numpy_helper.from_array(np.asarray(v, np.int64), name)


def steps(opset):
    """Nodes that compute the same in any version, and what they need beside the input."""
    old = opset < 7
    nodes, extra = [], []

    def add(op, ins, out, **attrs):
        nodes.append(helper.make_node(op, ins, [out], **attrs))
    add("Relu", ["x"], "a", **({"consumed_inputs": [0]} if opset < 6 else {}))
    add("Add", ["a", "w"], "b", **({"axis": 1, "broadcast": 1} if old else {}))
    if opset < 5:
        add("Reshape", ["b"], "c", shape=[2, -1])
    else:
        extra.append(ints("dims", 2, -1))
        add("Reshape", ["b", "dims"], "c")
    add("Concat", ["c", "c"], "d", axis=1)
    if opset < 10:
        add("Slice", ["d"], "e", axes=[1], starts=[1], ends=[9])
    else:
        extra += [ints("starts", 1), ints("ends", 9), ints("axes", 1)]
        add("Slice", ["d", "starts", "ends", "axes"], "e")
    if opset < 13:
        add("ReduceSum", ["e"], "f", axes=[1], keepdims=1)
        add("Squeeze", ["f"], "g", axes=[1])
    else:
        extra.append(ints("one", 1))
        add("ReduceSum", ["e", "one"], "f", keepdims=1)
        add("Squeeze", ["f", "one"], "g")
    add("Dropout", ["g"], "h", **({"is_test": 1} if old else {}))
    if opset < 11:
        add("Clip", ["h"], "y", min=-1.0, max=1.0)
    else:
        extra += [numpy_helper.from_array(np.float32(v), n) for n, v in (("low", -1), ("high", 1))]
        add("Clip", ["h", "low", "high"], "y")
    return nodes, extra


def small(opset, ir):
    nodes, extra = steps(opset)
    w = numpy_helper.from_array(np.asarray([0.5, -1, 2], np.float32), "w")
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 4])]
    if ir < 4:  # weights are inputs too
        inputs += [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in [w] + extra]
    w.dims[:] = [3] if opset < 7 else [3, 1]
    if ir < 4:
        inputs[1].CopyFrom(helper.make_tensor_value_info("w", TensorProto.FLOAT, list(w.dims)))
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])], [w] + extra)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)


def small_models(t, tmp):
    x = np.random.default_rng(1).uniform(-1, 1, (2, 3, 4)).astype(np.float32)
    feeds = os.path.join(tmp, "x.npz")
    np.savez(feeds, x=x)
    b = (np.maximum(x, 0) + np.asarray([0.5, -1, 2], np.float32)[:, None]).reshape(2, -1)
    want = {"y": np.clip(np.concatenate([b, b], 1)[:, 1:9].sum(1), -1, 1)}
    path, to = os.path.join(tmp, "m.onnx"), os.path.join(tmp, "y.npz")
    for what, pairs in (("opset 1 to %d" % NEWEST, [(o, 8) for o in range(1, NEWEST + 1)]),
                        ("IR 3 to 14", [(13, i) for i in IRS] + [(o, 3) for o in (1, 6, 8)])):
        wrong = []
        for opset, ir in pairs:
            model = small(opset, ir)
            try:
                onnx.save(model, path)
                same(run(path, to, feeds), want)
            except Wrong as e:
                wrong.append(f"opset {opset}, IR {ir}: {e}")
        t.point(not wrong, f"a small model, {what}", *wrong)


# ---- Our models, taken through versions by the converter of the onnx package. ----

def converted(model, opset):
    try:
        return version_converter.convert_version(model, opset)
    except Exception:  # not every operator has an adapter
        return None


def our_models(t, tmp):
    for name in ("digits", "branches", "loop", "scans"):
        model = onnx.load(os.path.join(SRC, "models", name + ".onnx"))
        path, to = os.path.join(tmp, "m.onnx"), os.path.join(tmp, "y.npz")
        onnx.save(model, path)
        want = run(path, to)
        now = next(o.version for o in model.opset_import if not o.domain)
        wrong, taken = [], []
        versions = [o for o in range(7, NEWEST + 1) if o != now]
        for opset in versions[::7] + [NEWEST]:
            other = converted(model, opset)
            if other is None:
                continue
            taken.append(opset)
            try:
                onnx.save(other, path)
                same(run(path, to), want)
            except (Wrong, checker.ValidationError) as e:
                wrong.append(f"opset {opset}: {e}")
        for ir in (14,):
            model.ir_version = ir
            try:
                onnx.save(model, path)
                same(run(path, to), want)
            except Wrong as e:
                wrong.append(f"IR {ir}: {e}")
        t.point(not wrong, f"{name}: opsets {', '.join(map(str, taken)) or 'none'}, and IR to 14", *wrong)


def main():
    t = Points()
    with scratch() as tmp:
        small_models(t, tmp)
        our_models(t, tmp)
    t.end()


main()
