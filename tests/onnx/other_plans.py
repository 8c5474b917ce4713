#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans that onnxsim makes: `report --plan-of onnxsim` verifies them, and tells their size and ours."""
import json
import os
import re
import sys
import tempfile

from tap import DATA, SRC, Points, call, skip_all

try:
    import onnx
    import onnxsim
except ImportError:
    skip_all("no PYTHON with onnxsim (PyPI: onnxsim)")

REAL = ("mnist_8", "dtln_2", "fastestdet", "onnx2c_mnist_pytorch")


def models():
    yield os.path.join(SRC, "models", "digits.onnx")
    for name in REAL:
        yield os.path.join(DATA, "models", name + ".onnx")


def report(path):
    """The status of the command, and its report."""
    done = call("-q", "report", path, "--plan-of", "onnxsim", "--json", "-")
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


def check_model(t, path, folder):
    plan = onnxsim.plan_activation_memory(onnx.load(path))
    annotated = os.path.join(folder, os.path.basename(path))
    onnx.save(onnxsim.annotate_memory_plan(onnx.load(path)), annotated)
    status, r, why = report(annotated)
    name = os.path.basename(path)
    if not t.point(status == 0 and r["plan"]["valid"] and not r["unplanned"], f"{name}: the plan of onnxsim is valid", why, r):
        return None
    t.point(r["arena_bytes"] == plan.arena_bytes, f"{name}: its arena has the size that onnxsim states", r["arena_bytes"], plan)
    t.point(r["ours"]["arena_bytes"] <= r["arena_bytes"], f"{name}: ours is not larger", r["ours"], r["arena_bytes"])
    return annotated


def check_fault(t, path):
    """Everything at the start of the arena: values overwrite others that are read later."""
    with open(path, "rb") as f:
        model = onnx.ModelProto.FromString(f.read())
    for info in [*model.graph.input, *model.graph.output, *model.graph.value_info]:
        for entry in info.metadata_props:
            if entry.key == "onnxsim.mem_offset":
                entry.value = "0"
    onnx.save(model, path)
    status, r, why = report(path)
    t.point(status == 4 and not r["plan"]["valid"] and re.search(r"stored over|overlaps|overwritten", why),
            "a plan whose values overlap is not valid", status, why)


def main():
    t = Points()
    with tempfile.TemporaryDirectory() as folder:
        for path in models():
            if not os.path.exists(path):
                t.point(True, f"{os.path.basename(path)} # SKIP it is not among the data")
                continue
            annotated = check_model(t, path, folder)
            if annotated and path.endswith("digits.onnx"):
                check_fault(t, annotated)
    t.end()


main()
