#!/usr/bin/env python3
"""What training steps of known nets take: a table, for docs/training.md.

    bench/steps.py DATA [--table docs/training.md] [MODEL[:BATCH]...]

DATA is a folder of graphs with shapes and without weights.  Weights become parameters,
the batch any number; bench/steps does the rest."""
import argparse
import os
import subprocess
import sys
import tempfile

import onnx
from onnx import helper as h, shape_inference, version_converter

MODELS = ["gen_resnet18", "gen_resnet50", "gen_mobilenet_v2", "gen_unet", "gen_bert_tiny", "gen_gpt_prefill"]
BATCHES = [1, 8, 32]
OPSET = 17
START, END = "<!-- made by bench/steps.py -->\n", "<!-- end -->\n"


def weights(graph):
    """Values that stand for weights: splats, and copies of them."""
    found = set()
    for n in graph.node:
        if n.op_type == "ConstantOfShape" or (n.op_type == "Identity" and n.input[0] in found):
            found.add(n.output[0])
    return found


def prepare(path, batch, out):
    m = onnx.load(path)
    if m.opset_import[0].version < OPSET:
        m = version_converter.convert_version(m, OPSET)
    known = shape_inference.infer_shapes(m, data_prop=True).graph.value_info
    info = {v.name: v for v in known}
    g, found = m.graph, weights(m.graph)
    ints = {n.output[0]: n for n in g.node if n.op_type == "Constant"}
    inits = {i.name: i for i in g.initializer}
    for n in g.node:
        if n.op_type in ("Identity", "ConstantOfShape"):
            continue
        for k, name in enumerate(n.input):
            v = info.get(name)
            if name in found and v and v.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
                own = onnx.ValueInfoProto()
                own.CopyFrom(v)
                own.name = f"param.{len(g.input)}"
                g.input.append(own)
                n.input[k] = own.name
        if n.op_type == "Reshape" and batch > 1:
            a = ints.get(n.input[1])
            t = a.attribute[0].t if a else inits.get(n.input[1])
            if t is not None:
                x = onnx.numpy_helper.to_array(t).copy()
                if x.size > 1 and x[0] == 1:
                    x[0] = batch
                    t.CopyFrom(onnx.numpy_helper.from_array(x, t.name))
    for i in g.input:
        if i.name.startswith("in"):
            i.type.tensor_type.shape.dim[0].dim_value = batch
    for o in g.output:
        o.type.tensor_type.ClearField("shape")
    del g.value_info[:]
    onnx.save(m, out)


def measure(path, batch, limit):
    with tempfile.TemporaryDirectory() as d:
        prepare(path, batch, d + "/m.onnx")
        r = subprocess.run(["bench/steps", d + "/m.onnx"], capture_output=True, text=True, timeout=limit)
    if r.returncode:
        raise RuntimeError(r.stderr.strip())
    return [int(x) for x in r.stdout.split()]


def row(name, batch, n):
    arena, bound, ten, thirty, apart, ops, states = n
    mib = lambda x: f"{x / 2 ** 20:,.1f}"
    return (f"| {name} | {batch} | {ops} | {mib(states)} | {mib(arena)} | {arena / bound:.4f} | {mib(apart)} | {mib(ten)} "
            f"({100 * (ten / arena - 1):.0f} %) | {mib(thirty)} ({100 * (thirty / arena - 1):.0f} %) |")


def main():
    a = argparse.ArgumentParser()
    a.add_argument("data")
    a.add_argument("what", nargs="*")
    a.add_argument("--table")
    a.add_argument("--limit", type=float, default=600)
    a = a.parse_args()
    lines = ["| model | batch | ops | states, MiB | arena, MiB | over bound | halves apart, MiB | +10 % work, MiB | +30 % work, MiB |",
             "|---|---|---|---|---|---|---|---|---|"]
    pairs = [(w.split(":")[0], int(w.split(":")[1])) for w in a.what] or [(m, b) for m in MODELS for b in BATCHES]
    for model, batch in pairs:
        name = model.removeprefix("gen_")
        try:
            lines.append(row(name, batch, measure(f"{a.data}/{model}.onnx", batch, a.limit)))
        except (RuntimeError, subprocess.TimeoutExpired) as e:
            lines.append(f"| {name} | {batch} | {str(e)[:160]} |")
        print(lines[-1], flush=True)
    if a.table:
        with open(a.table) as f:
            text = f.read()
        text = text[:text.index(START) + len(START)] + "\n".join(lines) + "\n" + text[text.index(END):]
        with open(a.table, "w") as f:
            f.write(text)


if __name__ == "__main__":
    sys.exit(main())
