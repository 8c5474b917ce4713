#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The memory of training steps of well-known networks: a table and curves, for docs/training.md.

    bench/steps.py DATA [--table docs/training.md] [--curves docs/rematerialize.csv] [MODEL[:BATCH]...]
    bench/steps.py DATA --torch PYTHON --peaks docs/torch.csv [MODEL[:BATCH]...]
    bench/steps.py DATA --torch PYTHON --time SECONDS [--threads N] [MODEL[:BATCH]...]
    bench/steps.py --draw docs/rematerialize.svg --curves docs/rematerialize.csv

DATA is a folder of graphs with shapes and without weights.  Weights become parameters,
the batch size a parameter; bench/steps does the rest.  With --torch a Python that has PyTorch runs the same steps
(bench/torchstep.py), and their peaks are written to the file that the table reads.  With --time both run the steps
alternately, each in a process of its own, and a line is printed for each model: `make bench-train-step`."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import onnx
from onnx import helper as h, shape_inference, version_converter

MODELS = ["gen_resnet18", "gen_resnet50", "gen_mobilenet_v2", "gen_unet", "gen_bert_tiny", "gen_gpt_prefill"]
BATCHES = [1, 8, 32]
PERCENTS = [2, 5, 10, 15, 20, 30, 40, 50]
OPSET = 17
START, END = "<!-- made by bench/steps.py -->\n", "<!-- end -->\n"


def weights(graph):
    """Values that represent weights: splats, and copies of them."""
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
        if i.name.startswith("in") and i.type.tensor_type.shape.dim[0].dim_value == 1:
            i.type.tensor_type.shape.dim[0].dim_value = batch
    for o in g.output:
        o.type.tensor_type.ClearField("shape")
    del g.value_info[:]
    onnx.save(m, out)


def as_json(path, out):
    """The graph for bench/torchstep.py, whose Python may have no ONNX."""
    g = onnx.load(path).graph
    nodes, const = [], {}
    kind = lambda t: onnx.helper.tensor_dtype_to_np_dtype(t).name
    for i in g.initializer:
        x = onnx.numpy_helper.to_array(i)
        const[i.name] = x.dtype.name, x.tolist()
    for n in g.node:
        attrs = {a.name: h.get_attribute_value(a) for a in n.attribute}
        if n.op_type == "Constant":
            x = onnx.numpy_helper.to_array(attrs["value"])
            const[n.output[0]] = x.dtype.name, x.tolist()
        elif n.op_type != "ConstantOfShape":
            nodes.append({"op": n.op_type, "in": list(n.input), "out": list(n.output), "attr": {k: v for k, v in attrs.items() if k != "allowzero"}})
    inputs = [(i.name, kind(i.type.tensor_type.elem_type), [d.dim_value for d in i.type.tensor_type.shape.dim]) for i in g.input]
    with open(out, "w") as f:
        json.dump({"node": nodes, "const": const, "input": inputs, "output": g.output[0].name}, f)


def measure(path, batch, percents, limit):
    """Results of the step, and points of the curve: percent allowed, arena, percent done."""
    with tempfile.TemporaryDirectory() as d:
        prepare(path, batch, d + "/m.onnx")
        r = subprocess.run(["bench/steps", d + "/m.onnx", *map(str, percents)], capture_output=True, text=True, timeout=limit)
    if r.returncode:
        raise RuntimeError(r.stderr.strip())
    first, *points = r.stdout.splitlines()
    return [int(x) for x in first.split()], [(int(p), int(a), float(w)) for p, a, w in (line.split() for line in points)]


def measure_torch(python, path, batch, limit):
    with tempfile.TemporaryDirectory() as d:
        prepare(path, batch, d + "/m.onnx")
        as_json(d + "/m.onnx", d + "/m.json")
        r = subprocess.run([python, "-W", "ignore", os.path.join(os.path.dirname(__file__), "torchstep.py"), d + "/m.json"],
                           capture_output=True, text=True, timeout=limit)
    if r.returncode:
        raise RuntimeError(r.stderr.strip().splitlines()[-1])
    return r.stdout.split()[:2]


# ---- Time. ----

ROUNDS = 3
TIMED = ["gen_resnet18", "gen_gpt_prefill", "gen_lstm_lm"]


def last_line(command, limit, threads):
    r = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=dict(os.environ, ONNXMEM_THREADS=str(threads)))
    if r.returncode:
        raise RuntimeError((r.stderr.strip().splitlines() or ["no message"])[-1][:200])
    return [float(x) for x in r.stdout.split()]


def measure_time(a, model, batch):
    """Milliseconds of the best step of all rounds, then the least of the processor: ours, PyTorch's."""
    with tempfile.TemporaryDirectory() as d:
        prepare(f"{a.data}/{model}.onnx", batch, d + "/m.onnx")
        as_json(d + "/m.onnx", d + "/m.json")
        ours = ["bench/steps", d + "/m.onnx", "--time", str(a.time)]
        theirs = [a.torch, "-W", "ignore", os.path.join(os.path.dirname(__file__), "torchstep.py"), d + "/m.json",
                  "--time", str(a.time), "--threads", str(a.threads)]
        rounds = [(last_line(ours, a.limit, a.threads), last_line(theirs, a.limit, a.threads)) for _ in range(ROUNDS)]
    return [min(r[who][what] for r in rounds) for what in (0, 1) for who in (0, 1)]


def times(a, pairs):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:a.threads])
    print("| step | batch | ms | PyTorch ms | of PyTorch | processor ms | PyTorch | of PyTorch |\n|---|---:|---:|---:|---:|---:|---:|---:|")
    for model, batch in pairs:
        try:
            best, torch, cpu, torch_cpu = measure_time(a, model, batch)
            print(f"| {model.removeprefix('gen_')} | {batch} | {best:.2f} | {torch:.2f} | {torch / best:.2f} | {cpu:.2f} | {torch_cpu:.2f} "
                  f"| {torch_cpu / cpu:.2f} |", flush=True)
        except (RuntimeError, subprocess.TimeoutExpired) as e:
            print(model, batch, str(e)[:300], flush=True)


def read_rows(path):
    """The rows of a CSV file with a header, by model and batch."""
    found = {}
    if path and os.path.exists(path):
        with open(path) as f:
            for line in f.read().splitlines()[1:]:
                model, batch, *rest = line.split(",")
                found.setdefault((model, int(batch)), []).append([float(x) for x in rest])
    return found


def write_rows(path, head, found):
    with open(path, "w") as f:
        f.write(head + "\n")
        for model, batch in sorted(found):
            for rest in found[model, batch]:
                f.write(",".join([model, str(batch), *(f"{x:.10g}" for x in rest)]) + "\n")


def row(name, batch, n, points, torch):
    arena, bound, apart, ops, states = n
    mib = lambda x: f"{x / 2 ** 20:,.1f}"
    low = {p: f"{mib(a)} ({100 * (a / arena - 1):.0f} %)" for p, a, _ in points}
    peak, share = (mib(torch[0][0]), f"{arena / torch[0][0]:.2f}") if torch else ("-", "-")
    assert not torch or torch[0][1] == states, (name, torch, states)
    return (f"| {name} | {batch} | {ops} | {mib(states)} | {mib(arena)} | {arena / bound:.4f} | {mib(apart)} | {low[10]} | {low[30]} "
            f"| {peak} | {share} |")


# ---- The figure. ----

WIDE, HIGH, LEFT, TOP = 300, 200, 50, 40
COLORS = {1: "#1f77b4", 8: "#d62728", 32: "#2ca02c"}


def text(x, y, what, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{what}</text>'


def panel(model, curves):
    """Share of the arena by recomputed work; each curve starts at 100 % for none."""
    most = 50
    px = lambda w: LEFT + WIDE * w / most
    py = lambda s: TOP + HIGH * (1 - s)
    out = [text(LEFT, TOP - 14, model, ' font-weight="bold"')]
    for k in range(0, 101, 25):
        out += [f'<line x1="{LEFT}" y1="{py(k / 100):.1f}" x2="{LEFT + WIDE}" y2="{py(k / 100):.1f}" stroke="#ddd"/>',
                text(LEFT - 6, py(k / 100) + 4, f"{k} %", ' text-anchor="end"')]
    for k in range(0, most + 1, 10):
        out += [f'<line x1="{px(k):.1f}" y1="{TOP}" x2="{px(k):.1f}" y2="{TOP + HIGH}" stroke="#ddd"/>',
                text(px(k), TOP + HIGH + 16, f"+{k} %", ' text-anchor="middle"')]
    for n, (batch, points) in enumerate(sorted(curves.items())):
        all_of_it = points[0][1]
        at = [(px(p), py(a / all_of_it)) for p, a, _ in points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        out += [f'<polyline points="{line}" fill="none" stroke="{COLORS[batch]}" stroke-width="2"/>']
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{COLORS[batch]}"/>' for x, y in at]
        out += [text(LEFT + 8, TOP + HIGH - 10 - 16 * (len(curves) - 1 - n), f"batch {batch}: {all_of_it / 2 ** 20:,.1f} MiB", f' fill="{COLORS[batch]}"')]
    return out


def draw(path, found):
    models = [m.removeprefix("gen_") for m in MODELS if any(k[0] == m.removeprefix("gen_") for k in found)]
    step = WIDE + LEFT + 30, HIGH + TOP + 40
    width, height = 3 * step[0], (len(models) + 2) // 3 * step[1]
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>']
    for k, m in enumerate(models):
        out += [f'<g transform="translate({k % 3 * step[0]},{k // 3 * step[1]})">', *panel(m, {b: p for (n, b), p in found.items() if n == m}), "</g>"]
    with open(path, "w") as f:
        f.write("\n".join(out + ["</svg>", ""]))


def table(a, pairs):
    lines = ["| model | batch | ops | states, MiB | arena, MiB | over bound | halves apart, MiB | +10 % work, MiB | +30 % work, MiB | PyTorch, MiB | of it |",
             "|---|---|---|---|---|---|---|---|---|---|---|"]
    peaks, curves = read_rows(a.peaks), read_rows(a.curves)
    for model, batch in pairs:
        name = model.removeprefix("gen_")
        try:
            n, points = measure(f"{a.data}/{model}.onnx", batch, PERCENTS, a.limit)
            curves[name, batch] = [(0, n[0], 0), *points]
            lines.append(row(name, batch, n, points, peaks.get((name, batch))))
        except (RuntimeError, subprocess.TimeoutExpired) as e:
            lines.append(f"| {name} | {batch} | {str(e)[:160]} |")
        print(lines[-1], flush=True)
        if a.curves:
            write_rows(a.curves, "model,batch,percent,arena,again", curves)
    if a.table:
        with open(a.table) as f:
            old = f.read()
        first, end = old.index(START) + len(START), old.index(END)
        with open(a.table, "w") as f:
            f.write(old[:first] + "\n".join(merged(old[first:end].splitlines(), lines)) + "\n" + old[end:])


def merged(old, new):
    """Keep rows that were not measured, all in the order of the models."""
    places = {f"{m.removeprefix('gen_')} {b}": k for k, (m, b) in enumerate((m, b) for m in MODELS for b in BATCHES)}
    key = lambda line: " ".join(x.strip() for x in line.split("|")[1:3])
    rows = {key(line): line for line in old[2:] + new[2:]}
    return new[:2] + sorted(rows.values(), key=lambda line: places.get(key(line), len(places)))


def torch_peaks(a, pairs):
    peaks = read_rows(a.peaks)
    for model, batch in pairs:
        name = model.removeprefix("gen_")
        try:
            peaks[name, batch] = [[float(x) for x in measure_torch(a.torch, f"{a.data}/{model}.onnx", batch, a.limit)]]
            print(name, batch, *peaks[name, batch][0], flush=True)
        except (RuntimeError, subprocess.TimeoutExpired) as e:
            print(name, batch, str(e)[:160], flush=True)
        write_rows(a.peaks, "model,batch,peak,states", peaks)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("data", nargs="?")
    a.add_argument("what", nargs="*")
    for name in "table", "curves", "peaks", "torch", "draw":
        a.add_argument("--" + name)
    a.add_argument("--limit", type=float, default=900)
    a.add_argument("--time", type=float)
    a.add_argument("--threads", type=int, default=1)
    a = a.parse_intermixed_args()
    every = [(m, 1) for m in TIMED] if a.time else [(m, b) for m in MODELS for b in BATCHES]
    pairs = [(w.split(":")[0], int((w.split(":") + ["1"])[1])) for w in a.what] or every
    if a.time:
        times(a, pairs)
    elif a.draw:
        draw(a.draw, read_rows(a.curves))
    elif a.torch:
        torch_peaks(a, pairs)
    else:
        table(a, pairs)


if __name__ == "__main__":
    sys.exit(main())
