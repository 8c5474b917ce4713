# SPDX-License-Identifier: Apache-2.0
"""What bench/run.py concludes from profiles and times: classes, shares, targets, the page; and outputs in float64."""
import argparse
import os
import sys

SRC = os.environ.get("srcdir", ".")
sys.path[:0] = [os.path.join(SRC, "tests", "onnx"), os.path.join(SRC, "bench")]
sys.dont_write_bytecode = True
import classes
import models
import tables
from tap import Points, call, scratch

t = Points()


def node(op, ins, out, domain="", **attr):
    return {"op": op, "domain": domain, "in": ins, "out": [out], "attr": attr}


# ---- Classes. ----

OURS = "org.onnxmem.cpu"
for want, n in (
        ("depthwise", node("Conv", [[1, 32, 9, 9], [32, 1, 3, 3]], [1, 32, 9, 9])),
        ("grouped", node("Conv", [[1, 32, 9, 9], [32, 8, 3, 3]], [1, 32, 9, 9])),
        ("3x3 stride 1", node("Conv", [[1, 32, 9, 9], [64, 32, 3, 3]], [1, 64, 9, 9])),
        ("3x3 stride 2", node("Conv", [[1, 32, 8, 8], [64, 32, 3, 3]], [1, 64, 4, 4])),
        ("1x1", node("Conv", [[1, 32, 9, 9], [64, 32, 1, 1]], [1, 64, 9, 9])),
        ("other KxK", node("Conv", [[1, 32, 9, 9], [64, 32, 5, 5]], [1, 64, 9, 9])),
        ("first layer", node("Conv", [[1, 3, 8, 8], [64, 3, 3, 3]], [1, 64, 4, 4])),
        ("1-D convolution", node("Conv", [[1, 32, 9], [64, 32, 3]], [1, 64, 9])),
        ("3-D convolution", node("Conv", [[1, 32, 4, 9, 9], [64, 32, 3, 3, 3]], [1, 64, 4, 9, 9])),
        ("ConvTranspose", node("ConvTranspose", [[1, 32, 4, 4], [32, 16, 2, 2]], [1, 16, 8, 8])),
        ("3x3 stride 1", node("Conv", [[1, 9, 9, 32], [18432]], [1, 9, 9, 64], OURS, kernel_shape=[3, 3], strides=[1, 1])),
        ("3x3 stride 2", node("Conv", [[1, 8, 8, 32], [18432]], [1, 4, 4, 64], OURS, kernel_shape=[3, 3], strides=[2, 2])),
        ("first layer", node("Conv", [[1, 3, 8, 8], [1728]], [1, 4, 4, 64], OURS, kernel_shape=[3, 3], strides=[2, 2])),
        ("depthwise", node("DepthwiseConv", [[1, 9, 9, 32], [288]], [1, 9, 9, 32], OURS, kernel_shape=[3, 3])),
        ("grouped", node("GroupedConv", [[1, 9, 9, 32], [288]], [1, 9, 9, 32], OURS, kernel_shape=[3, 3])),
        ("matrix by vector", node("Gemm", [[1, 64], [10, 64]], [1, 10])),
        ("MatMul", node("MatMul", [[1, 128, 64], [64, 10]], [1, 128, 10])),
        ("MatMul", node("MatMul", [[128, 64], [640]], [128, 10], OURS)),
        ("batched MatMul", node("MatMul", [[1, 4, 8, 16], [1, 4, 16, 8]], [1, 4, 8, 8])),
        ("pools, reductions", node("GlobalAveragePool", [[1, 4, 8, 8]], [1, 4, 1, 1])),
        ("quantized", node("QLinearConv", [[1, 4, 8, 8]], [1, 4, 8, 8])),
        ("curves", node("Silu", [[4]], [4], OURS)),
        ("other", node("Strange", [None], None))):
    got = classes.class_of(n)
    t.point(got == want, f"{n['op']} of {n['in']} is of class {want}", f"it is of {got}")

for want, n in (
        (2 * 64 * 81 * 32 * 9, node("Conv", [[1, 32, 9, 9], [64, 32, 3, 3]], [1, 64, 9, 9])),
        (2 * 128 * 10 * 64, node("MatMul", [[1, 128, 64], [64, 10]], [1, 128, 10])),
        (2 * 5 * 10 * 64, node("Gemm", [[64, 5], [64, 10]], [5, 10])),
        (2 * 32 * 16 * 16 * 4, node("ConvTranspose", [[1, 32, 4, 4], [32, 16, 2, 2]], [1, 16, 8, 8])),
        (2 * 3 * 4 * 5, {**node("Einsum", [[3, 4], [4, 5]], [3, 5]), "equation": "ij,jk->ik"}),
        (12, node("Relu", [[3, 4]], [3, 4]))):
    got = classes.flops_of(n)
    t.point(got == want, f"{n['op']} of {n['in']} has {want} operations", f"it has {got}")


def event(name, op, dur, k):
    return {"cat": "Node", "name": f"{name}_kernel_time", "dur": dur, "args": {
        "op_name": op, "node_index": k, "input_type_shape": [{"float": [2, 3]}], "output_type_shape": [{"float": [2, 3]}]}}


found = classes.of_ort([{"name": "model_run"}, {"name": "model_run"}, event("a", "Relu", 10, "1"), event("a", "Relu", 30, "1"),
                        event("b", "Relu", 5, "2"), event("b", "Relu", 5, "2"), event("b", "Relu", 5, "2"), event("b", "Relu", 5, "2"),
                        event("c", "Loop", 1000, "3")])
t.point([(n["op"], n["ms"]) for n in found] == [("Relu", 0.02), ("Relu", 0.01)],
        "a node of a loop counts as often as it ran, its loop does not count", found)

# ---- Tables. ----


def row(name, own, ort, ov=None, **more):
    made = {"model": name, "work": [1e6, 1000], "work_classes": {"1x1": [1e6, 1000]},
            "classes": {"om": {"1x1": [3, 0, 0], "curves": [1, 0, 0]}, "ort": {"1x1": [1, 0, 0]}}}
    for key, ms in (("om", own), ("ort", ort), ("ov", ov)):
        if ms:
            made[key] = {"best": ms, "least": ms, "cpu": ms, "least_cpu": ms, "first": 10, "least_first": 10, "rss": 20, "base": 0,
                         **({"arena": 1000, "weights": 2000} if key == "om" else {})}
    return {**made, **more}


ROWS = [row("gen_resnet18", 1.0, 2.0, 1.5), row("gen_vgg16", 4.0, 2.0, 4.0), row("tiny", 0.1, 0.2),
        row("broken", None, 1.0, om={"failed": "the node N is strange"}), {"model": "lost", "failed": "no file"}]
WHERE = {"start": {"om": 4.0}, "peak": {"generic": 10.0, "read": 5.0}, "isa": "the best", "builds": {"om": "abc"}, "time": "today", "cpu": "C",
         "cpus": [0], "threads": 1, "rounds": 1, "seconds": 1, "commit": "abc"}
means = {g[0]: g[1:] for g in tables.groups(ROWS, "best")}
t.point(means["above 0.3 ms"][:2] == (2, 1.0) and means["below 0.3 ms"] == (1, 2.0, None, 2.0),
        "geometric means count models that both ran, by size", means)
t.point(abs(means["above 0.3 ms"][3] - (1.5 * 0.5) ** 0.5) < 1e-12, "the better peer is that of each model", means)
met = {name: (what, ok) for name, _, what, ok in tables.targets(ROWS, WHERE, "best")}
t.point(met["ResNet-18"] == ("2.00", True) and not met["VGG"][1] and not met["each of ONNX Runtime"][1] and "gen_vgg16 0.50" in
        met["each of ONNX Runtime"][0], "targets are met or name what falls short", met)
t.point(not met["load and first run, of ONNX Runtime's"][1] and "0.60" in met["load and first run, of ONNX Runtime's"][0],
        "the start of the process does not count as loading", met)
sums = tables.class_sums(ROWS[:1], "best")
t.point([round(x, 9) for x in sums["1x1"][:2]] == [0.75, 2.0] and round(sums["curves"][0], 9) == 0.25,
        "classes add up to the time that is compared", sums)
page = tables.page(ROWS, WHERE, "best")
t.point("broken, onnxmem: the node N is strange" in page and "lost: no file" in page, "the page names what did not run", page)

# ---- With the command. ----

digits = os.path.join(SRC, "models", "digits.onnx")
with scratch() as d:
    trace = os.path.join(d, "trace.json")
    r = call("run", "-q", digits, "--fill", "deterministic", "--profile", trace)
    found = {n["class"] for n in classes.of_ours(trace)} if r.returncode == 0 else r.stderr
    t.point(found and "other" not in found and "convolution of unknown size" not in found, "ops of the command's profile have a class", found)
    try:
        import numpy as np
        import onnx
    except ImportError as e:
        t.point(True, f"outputs in float64 # SKIP {e}")
        t.end()
    x = np.random.default_rng(1).standard_normal([1, 1, 8, 8]).astype("f4")
    double = os.path.join(d, "double.onnx")
    onnx.save(models.ToDouble(onnx.load(digits)).run(), double)
    outputs = []
    for path, elements in ((digits, x), (double, x.astype("f8"))):
        np.savez(os.path.join(d, "in.npz"), picture=elements)
        r = call("run", "-q", path, "--data", os.path.join(d, "in.npz"), "--save", os.path.join(d, "out.npz"))
        with np.load(os.path.join(d, "out.npz")) as f:
            outputs.append(next(iter(f.values())))
    far = float(np.abs(outputs[0] - outputs[1]).max())
    t.point(outputs[1].dtype == np.float64 and 0 < far < 1e-4, "a model in float64 has nearly the same outputs", outputs)
    import randwire
    small = os.path.join(d, "randwire.onnx")
    sizes = argparse.Namespace(nodes=8, channels=8, size=64, seed=1)
    onnx.save(randwire.model(sizes), small)
    t.point(randwire.model(sizes) == onnx.load(small) and randwire.model(argparse.Namespace(**{**vars(sizes), "seed": 2})) != onnx.load(small),
            "a seed gives one randomly wired network", small)
    r = call("run", "-q", small, "--streams", "2", "--fill", "deterministic", "--save", os.path.join(d, "two.npz"))
    r = r if r.returncode else call("run", "-q", small, "--fill", "deterministic", "--expect", os.path.join(d, "two.npz"))
    t.point(r.returncode == 0, "it runs, with streams as without", r.stderr)
t.end()
