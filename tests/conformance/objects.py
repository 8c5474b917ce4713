# SPDX-License-Identifier: Apache-2.0
"""`onnxmem run --data --expect --save` on the backend tests whose inputs or outputs are sequences or optionals."""
import glob
import os
import sys
import warnings

import onnx.backend.test.case.node as node

import generate
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "onnx"))
import tap

# Of the cases that the package makes: more may be added, none may be lost.
LEAST = 8


def has_objects(case):
    infos = list(case.model.graph.input) + list(case.model.graph.output)
    return any(i.type.WhichOneof("value") != "tensor_type" for i in infos)


def runs(folder):
    """Why it does not: with the data as files, and with what it wrote itself as the expectation."""
    model = os.path.join(folder, "model.onnx")
    for data in sorted(glob.glob(os.path.join(folder, "test_data_set_*"))):
        for to in ("results", "results.npz"):
            saved = os.path.join(data, to)
            for last in (["--expect", data, "--save", saved], ["--expect", saved]):
                said = tap.call("run", model, "--data", data, *last)
                if said.returncode or "PASSED" not in said.stdout:
                    return said.stdout + said.stderr
    return None


def main():
    warnings.simplefilter("ignore")
    points = tap.Points()
    with tap.scratch() as tmp:
        for case in node.collect_testcases(None):
            folder = os.path.join(tmp, case.name)
            if has_objects(case):
                generate.write(case, folder)
                why = runs(folder)
                points.point(why is None, case.name, why)
    points.point(points.n >= LEAST, f"at least {LEAST} tests have sequences or optionals")
    points.end()


main()
