#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The memory of a rank of a training, ours beside PyTorch's, for docs/distributed.md.

    bench/ranks.py ONNXMEM --torch PYTHON [--batch 16] [--ranks 2,4] [--table docs/distributed.md]

The nets are those of tests/dist/nets.test, in the larger size: a residual net of 18 layers with momentum, and a GPT with Adam.  Ours is what
`report --ranks` says, which tests compare with runs: arena, states, and what else the caller holds.  PyTorch's is measured
(bench/torchranks.py): DistributedDataParallel beside --shard data, fully_shard beside --shard parameter."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import onnx
from onnx import helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
NETS = [("resnet", "momentum"), ("gpt", "adam")]
MODES = ["data", "state", "gradient", "parameter"]
START, END = "<!-- made by bench/ranks.py -->\n", "<!-- end -->\n"


def as_json(path, out, states):
    """What a training step updates is a parameter, all else is constant, as scalars are: fully_shard refuses them."""
    g = onnx.load(path).graph
    arrays = {i.name: numpy_helper.to_array(i) for i in g.initializer}
    params = {k: f"param.{k}" for k in arrays if k in states}
    nodes = [{"op": n.op_type, "in": [params.get(k, k) for k in n.input], "out": list(n.output),
              "attr": {a.name: helper.get_attribute_value(a) for a in n.attribute}} for n in g.node]
    x = g.input[0]
    kind = helper.tensor_dtype_to_np_dtype(x.type.tensor_type.elem_type).name
    inputs = [(params[k], a.dtype.name, list(a.shape)) for k, a in arrays.items() if k in params]
    inputs.append((x.name, kind, [d.dim_value for d in x.type.tensor_type.shape.dim]))
    const = {k: (a.dtype.name, a.tolist()) for k, a in arrays.items() if k not in params}
    with open(out, "w") as f:
        json.dump({"node": nodes, "const": const, "input": inputs, "output": g.output[0].name}, f)


def ours(onnxmem, step, batch, ranks, mode):
    out = step + ".json"
    subprocess.run([onnxmem, "report", step, "--ranks", str(ranks), "--batch", str(batch), "--shard", mode,
                    "--bucket", "0" if mode in MODES[2:] else "4M", "--json", out, "-q"], check=True, stdout=subprocess.DEVNULL)
    with open(out) as f:
        return max(r["total_bytes"] for r in json.load(f)["sizes"][0]["planned"])


def theirs(python, graph, optimizer, batch, ranks, how):
    r = subprocess.run([python, "-W", "ignore", os.path.join(HERE, "torchranks.py"), graph, optimizer, str(batch), str(ranks), how],
                       capture_output=True, text=True)
    if r.returncode:
        sys.exit((r.stderr.strip().splitlines() or ["no message"])[-1])
    return int(r.stdout.split()[-1])


def rows(a, folder):
    for net, optimizer in NETS:
        step = f"{folder}/{net}.onnx"
        g = onnx.load(step).graph
        updated = {o.name.removesuffix("_next") for o in g.output}
        as_json(f"{folder}/{net}-net.onnx", f"{folder}/{net}.graph", {i.name for i in g.initializer if i.dims} & updated)
        for ranks in map(int, a.ranks.split(",")):
            plan = [ours(a.onnxmem, step, a.batch, ranks, mode) for mode in MODES]
            peers = [theirs(a.torch, f"{folder}/{net}.graph", optimizer, a.batch, ranks, how) for how in ("ddp", "fsdp")]
            yield ["residual net, 18 layers" if net == "resnet" else "GPT, 4 layers", optimizer, ranks, plan[0], peers[0], plan[1], plan[2], plan[3], peers[1]]


def text(all_rows):
    out = ["| net | optimizer | ranks | `data` | PyTorch DDP | `state` | `gradient` | `parameter` | PyTorch `fully_shard` | "
           "DDP / `data` | `fully_shard` / `parameter` |",
           "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for r in all_rows:
        out.append("| " + " | ".join([*map(str, r[:2]), *(f"{x:,}" for x in r[2:]), f"{r[4] / r[3]:.2f}", f"{r[8] / r[7]:.2f}"]) + " |")
    return "\n".join(out) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("onnxmem")
    p.add_argument("--torch", required=True)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--ranks", default="2,4")
    p.add_argument("--table")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        nets = os.path.join(HERE, "../tests/dist/nets.py")
        subprocess.run([sys.executable, nets, "make", folder, os.path.join(HERE, "../models/digits.onnx"), "large"], check=True, env=dict(os.environ, ONNXMEM=os.path.abspath(a.onnxmem)))
        table = text(list(rows(a, folder)))
    print(table)
    if a.table:
        with open(a.table) as f:
            page = f.read()
        at, end = page.index(START) + len(START), page.index(END)
        with open(a.table, "w") as f:
            f.write(page[:at] + table + page[end:])


if __name__ == "__main__":
    main()
