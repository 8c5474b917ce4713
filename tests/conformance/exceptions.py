# SPDX-License-Identifier: Apache-2.0
"""The backend tests that are named exceptions: what we give is not what their files
expect, but what the reference evaluator of the installed onnx package gives for
the same models and inputs today."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fuzz
from fuzz import np, numpy_helper, onnx
from onnx.reference import ReferenceEvaluator
from tap import DATA, SRC, Points, scratch, skip_all

SUITES = os.path.join(DATA, "onnx-backend")


class Kept:
    """A test of the suite, as the driver takes it."""

    def __init__(self, folder):
        self.model = onnx.load(folder + "/model.onnx")
        self.inputs = []
        for k in range(len(self.model.graph.input)):
            t = onnx.TensorProto()
            with open(f"{folder}/test_data_set_0/input_{k}.pb", "rb") as f:
                t.ParseFromString(f.read())
            self.inputs.append(np.asarray(numpy_helper.to_array(t)))

    def ours(self):
        return self.model.SerializeToString(), self.inputs

    def theirs(self):
        names = [i.name for i in self.model.graph.input]
        return ReferenceEvaluator(self.model).run(None, dict(zip(names, self.inputs)))


def differs(result, want):
    status, why, got = result
    if status != 0 or len(got) != len(want):
        return why or "gives another number of outputs"
    for k, (g, w) in enumerate(zip(got, want)):
        rtol = 4e-3 if g.dtype == np.float16 else 1e-3
        if g.shape != np.shape(w) or not np.allclose(g.astype(np.float64), np.asarray(w).astype(np.float64), rtol=rtol,
                                                     atol=1e-6, equal_nan=True):
            return f"output {k} is not that of the reference"
    return None


def main():
    if not os.path.isdir(SUITES):
        skip_all(f"the ONNX backend tests are not at {SUITES}")
    with open(os.path.join(SRC, "tests/conformance/exceptions.tsv")) as f:
        names = [line.split("\t")[0] for line in f if line.startswith("node/")]
    kept = [Kept(os.path.join(SUITES, name)) for name in names]
    with scratch() as folder:
        results = fuzz.run_ours(kept, folder)
    t, bad = Points(), []
    for name, k, result in zip(names, kept, results):
        said = differs(result, k.theirs())
        bad += [f"{name}: {said}"] if said else []
    t.point(not bad, f"{len(names)} named exceptions give what the standard says today", *bad)
    t.end()


main()
