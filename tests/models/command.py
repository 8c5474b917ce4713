# SPDX-License-Identifier: Apache-2.0
"""What the tests of whole models share: the command, the runtime that it is
compared with, the comparison, and the list of the shared models."""
import csv
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "onnx"))
from tap import DATA, call, skip_all

try:
    import numpy as np
    import onnx
    import onnxruntime as ort
except ImportError as e:
    skip_all(str(e))

TIMEOUT = 300
RTOL, ATOL = 1e-3, 1e-5


class Wrong(Exception):
    pass


def onnxmem(*args, code=0):
    r = call(*args, timeout=TIMEOUT)
    if r.returncode != code:
        raise Wrong(f"onnxmem {' '.join(args)}: exit {r.returncode}, wanted {code}: "
                    f"{r.stderr.strip().splitlines()[-1:]}")
    return r.stdout


def arrays(path):
    with np.load(path) as f:
        return {k: f[k] for k in f.files}


def index_rows():
    """The rows of the shared models by name; none where there are none."""
    index = os.path.join(DATA, "index.tsv")
    if not os.path.exists(index):
        return {}
    with open(index) as f:
        return {r["name"]: r for r in csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE)}


def bound_shapes(row):
    """Dims of inputs, as 1x2x3, that a row binds."""
    bound = row.get("bound_inputs", "-")
    return {} if bound == "-" else dict(b.rsplit("=", 1) for b in bound.split(";"))


def session(path, level=ort.GraphOptimizationLevel.ORT_DISABLE_ALL, save=None):
    """ONNX Runtime as it computes what the file says: one thread, no rewriting unless `level` asks for it; the model
    as rewritten goes to `save`."""
    o = ort.SessionOptions()
    o.graph_optimization_level = level
    o.intra_op_num_threads = 1
    o.log_severity_level = 4
    if save:
        o.optimized_model_filepath = save
    return ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])


def compare(name, got, want, atol=ATOL):
    if got.dtype != want.dtype and not want.dtype.kind in "OU":
        raise Wrong(f"{name}: type {got.dtype}, wanted {want.dtype}")
    if got.shape != want.shape:
        raise Wrong(f"{name}: dims {got.shape}, wanted {want.shape}")
    if want.dtype.kind != "f":
        bad = got != want
    else:
        g, w = got.astype(np.float64), want.astype(np.float64)
        finite = np.abs(w[np.isfinite(w)])
        # Sums that cancel keep the rounding of their parts: small numbers among
        # large ones are as good as the large ones.
        atol *= max(1, finite.max() if finite.size else 1)
        with np.errstate(invalid="ignore"):
            bad = ~((np.abs(g - w) <= atol + RTOL * np.abs(w)) | (g == w) | (np.isnan(g) & np.isnan(w)))
    if bad.any():
        k = np.argmax(bad)
        raise Wrong(f"{name}: {bad.sum()} of {bad.size} differ; at {np.unravel_index(k, bad.shape)} is "
                    f"{got.reshape(-1)[k]}, wanted {want.reshape(-1)[k]}")
