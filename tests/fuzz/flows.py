# SPDX-License-Identifier: Apache-2.0
"""Random programs of nested If, Loop and Scan, as ONNX files: ONNX Runtime, the
interpreter that made them, and the command give the same numbers: with a plan out
of a file, poisoned, planned on the way, and without reuse.

`flows.py [FIRST [COUNT]]`: programs by seed."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models"))
from apart import apart
from command import Wrong, arrays, np, onnx, onnxmem, session
from tap import Points, scratch, skip_all

try:
    import onnx.parser
except ImportError as e:
    skip_all(str(e))

FLOWS = os.path.join(os.environ.get("abs_builddir", "."), "tests", "fuzz", "flows")
# With the plan that the file carries or not.
WAYS = ((True, "--repeat=2"), (True, "--poison"), (False, "-q"), (False, "--no-reuse"))
# Programs that ONNX Runtime refuses; all others have to agree.
MOST_REFUSED = 0.15


def numbers(line):
    """NAME TYPE DIMS : ELEMENTS"""
    head, elements = line.split(":")
    _, kind, *dims = head.split()
    x = np.array([float(e) for e in elements.split()])
    return x.astype(kind).reshape([int(d) for d in dims[0].split(",")] if dims else [])


def runs(path):
    """Inputs and results of every run."""
    found = []
    with open(path) as f:
        for line in f:
            if line.startswith("run"):
                found.append(([], []))
            else:
                found[-1][line.startswith("out")].append(numbers(line))
    return found


def same(who, k, got, want):
    """Numbers: zeros are equal whatever their sign."""
    if got.dtype != want.dtype:
        raise Wrong(f"{who}: result {k} is {got.dtype}, wanted {want.dtype}")
    if got.shape != want.shape and got.size + want.size:
        raise Wrong(f"{who}: result {k} has dims {got.shape}, wanted {want.shape}")
    if got.size and not np.array_equal(got, want):
        raise Wrong(f"{who}: result {k} differs")


def run_runtime(path, todo):
    """Why ONNX Runtime does not take the model; None where it does."""
    try:
        runtime = session(path)
    except Exception as e:
        return str(e).splitlines()[0]
    for n, (given, wanted) in enumerate(todo):
        feeds = {i.name: given[int(i.name[1:])] for i in runtime.get_inputs()}
        for k, (got, want) in enumerate(zip(runtime.run(None, feeds), wanted)):
            same(f"ONNX Runtime, run {n}", k, got, want)
    return None


def by_command(tmp, path, names, todo):
    planned = os.path.join(tmp, "planned.onnx")
    onnxmem("plan", "-q", path, planned)
    onnxmem("verify", planned)
    for n, (given, wanted) in enumerate(todo):
        data, out = os.path.join(tmp, "in.npz"), os.path.join(tmp, "out.npz")
        np.savez(data, **{f"v{k}": x for k, x in enumerate(given)})
        for has_plan, way in WAYS:
            onnxmem("run", "-q", planned if has_plan else path, "--data", data, "--save", out, way)
            got = arrays(out)
            for k, (name, want) in enumerate(zip(names, wanted)):
                same(f"run {n} {way}{', plan of the file' * has_plan}", k, got[name], want)


def complete(graph):
    """The parser drops an empty input at the end, which a Loop has to have."""
    for n in graph.node:
        if n.op_type == "Loop" and len(n.input) < 2:
            n.input.append("")
        for a in n.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                complete(a.g)


def check(tmp, seed):
    text = os.path.join(tmp, f"{seed}.txt")
    with open(text) as f:
        model = onnx.parser.parse_model(f.read())
    complete(model.graph)
    path = os.path.join(tmp, f"{seed}.onnx")
    onnx.save(model, path)
    todo = runs(os.path.join(tmp, f"{seed}.data"))
    refused = apart(lambda: run_runtime(path, todo), path)
    by_command(tmp, path, [o.name for o in model.graph.output], todo)
    return refused


def main():
    first, count = int(sys.argv[1]), int(sys.argv[2])
    failed, refused = [], []
    t = Points()
    with scratch() as tmp:
        subprocess.run([FLOWS, "--write", tmp, str(first), str(count)], check=True)
        for seed in range(first, first + count):
            try:
                why = check(tmp, seed)
                if why:
                    refused.append(f"seed {seed}: {why}")
            except (Wrong, OSError, subprocess.TimeoutExpired, onnx.parser.ParseError) as e:
                failed.append(f"seed {seed}: {e}")
    t.point(not failed, f"{count} programs as ONNX files: like ONNX Runtime and the interpreter, in four ways",
            *failed[:10])
    t.point(len(refused) <= MOST_REFUSED * count, f"of which ONNX Runtime refuses {len(refused)}", *refused[:10])
    t.end()


main()
