#!/usr/bin/env python3
"""Memory of a run without weights, as planned by onnxmem and by other planners of ONNX models.

    totals.py --onnxmem COMMAND [--page FILE] MODEL.onnx...

For each model, all with an alignment of 1 and the same shapes (open dims are 1, or of DIMS below):

* onnxmem with inputs and outputs in the arena (`--io arena`), and with those of the caller beside it;
* onnxsim, `plan_activation_memory()` after shape inference: its arena has inputs and outputs, too.  A tensor whose size
  it does not know is left out, so a plan with such tensors is no plan of the model: it is shown in brackets;
* onnx-tool, `compress_memory()`.

Exits with 1 where a peer that plans the whole model takes less.  Versions are those that are installed.
"""
import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import warnings
from importlib import metadata

import onnx

# Sizes of inputs that models need where 1 is too small, by the start of the name of the model.
SHAPES = {"ppocr_v4_det": {"x": [1, 3, 640, 640]}, "ppocr_v4_rec": {"x": [1, 3, 48, 320]}, "ppocr_v2_cls": {"x": [1, 3, 48, 192]},
          "silero": {"input": [1, 512], "x": [1, 512], "state": [2, 1, 128], "h": [2, 1, 64], "c": [2, 1, 64]},
          "tract_byte_bilstm": {"input": [1, 64], "x": [1, 64]}}


def shapes_of(name, model):
    known = next((v for k, v in SHAPES.items() if name.startswith(k)), {})
    constants = {i.name for i in model.graph.initializer}
    for i in model.graph.input:
        if i.name in constants or not i.type.HasField("tensor_type"):
            continue
        dims = [d.dim_value if d.HasField("dim_value") and d.dim_value > 0 else 1 for d in i.type.tensor_type.shape.dim]
        given = known.get(i.name)
        yield i, given if given and len(given) == len(dims) else dims


def fixed(path, folder):
    """The model with numbers for all dims of its inputs."""
    model = onnx.load(path)
    for i, dims in shapes_of(os.path.basename(path), model):
        for d, n in zip(i.type.tensor_type.shape.dim, dims):
            d.dim_value = n
    out = os.path.join(folder, "fixed.onnx")
    onnx.save(model, out)
    return out, model


def ours(command, path, where):
    r = subprocess.run([command, "report", "-q", path, "--align", "1", "--default-dim", "1", "--io", where, "--json", "-"],
                       capture_output=True, text=True)
    if r.returncode:
        return None
    j = json.loads(r.stdout)
    return j["arena_bytes"] + j["io_bytes"], j["status"], len(j["unplanned"])


def onnxsim_total(model):
    """Bytes, and how many tensors are left out."""
    import onnxsim
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
        plan = onnxsim.plan_activation_memory(inferred)
    except Exception as e:
        return str(e).split("\n")[0][:60]
    return plan.arena_bytes, len(plan.unplanned)


def onnx_tool_total(path):
    import onnx_tool
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
            m = onnx_tool.Model(path, {"verbose": False})
            m.graph.shape_infer(None)
            compute = m.graph.get_compute_graph()
            placed = compute.compress_memory(size_padding=1)
        placed = placed[0] if isinstance(placed, tuple) else placed
        return int(max(offset + size for offset, size in placed.values()))
    except Exception as e:
        return (str(e).split("\n")[0] or type(e).__name__)[:60]


def cell(x):
    return f"{x:,}" if isinstance(x, int) else "–" if x is None else x


def row(command, path, folder):
    name = os.path.basename(path).removesuffix(".onnx")
    file, model = fixed(path, folder)
    arena, caller = (ours(command, file, where) for where in ("arena", "caller"))
    if not arena or not caller:
        return name, None, None, None, None, "onnxmem does not plan it", False
    sim, tool = onnxsim_total(model), onnx_tool_total(file)
    left_out = isinstance(sim, tuple) and sim[1]
    whole = isinstance(sim, tuple) and not left_out and not arena[2]
    worse = (whole and sim[0] < arena[0]) or (isinstance(tool, int) and tool < arena[0])
    sim_text = f"({sim[0]:,}; {sim[1]} left out)" if left_out else cell(sim[0]) if isinstance(sim, tuple) else "fails"
    note = arena[1] + (f"; {arena[2]} values of unknown size" if arena[2] else "")
    return name, arena[0], caller[0], sim_text, cell(tool) if isinstance(tool, int) else "fails", note, worse


def page(rows):
    versions = ", ".join(f"{p} {metadata.version(p)}" for p in ("onnxsim", "onnx-tool"))
    yield "# Memory of a run, beside other planners\n"
    yield f"Made by `bench/totals.py`; {versions}. Bytes of intermediate values, inputs and outputs together, without weights, with an alignment of 1."
    yield "*arena*: with `--io arena`. *caller*: inputs and outputs in memory of the caller, the default. Brackets: onnxsim does not know the size of some tensors and leaves them out,"
    yield "so that its plan is not one of the whole model. *fails*: the peer reports an error for this model.\n"
    yield "| model | arena | caller | onnxsim | onnx-tool | proof |\n|---|---:|---:|---:|---:|---|"
    for name, arena, caller, sim, tool, note, _ in rows:
        yield f"| {name} | {cell(arena)} | {cell(caller)} | {sim or '–'} | {tool or '–'} | {note} |"
    whole = [r for r in rows if r[3] and r[3][0].isdigit()]
    below = sum(int(r[3].replace(",", "")) > r[1] for r in whole)
    equal = sum(int(r[3].replace(",", "")) == r[1] for r in whole)
    yield f"\nOf {len(whole)} models that onnxsim plans whole, onnxmem takes less on {below}, the same on {equal}, and more on {sum(r[6] for r in rows)}."


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--onnxmem", required=True)
    a.add_argument("--page")
    a.add_argument("models", nargs="+")
    o = a.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [row(o.onnxmem, m, folder) for m in o.models]
    text = "\n".join(page(rows)) + "\n"
    if o.page:
        with open(o.page, "w") as f:
            f.write(text)
    sys.stdout.write(text)
    return any(r[6] for r in rows)


if __name__ == "__main__":
    sys.exit(main())
