# SPDX-License-Identifier: Apache-2.0
"""Real models run right: planned, with every value in memory of its own, and
with dead memory poisoned, to the same bits; like the reference outputs that
came with them; and like ONNX Runtime on random inputs.

Models are those of the tree, and those of the shared data where it is there.
`check.py NAME...` runs the models whose names contain one of the words."""
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from command import (ATOL, RTOL, DATA, Wrong, arrays, bound_shapes, compare, index_rows, np, onnx, onnxmem,
                     session)
from tap import Points, models, scratch

JOBS = 2
TYPES = {f"tensor({a})": b for a, b in (
    ("float", np.float32), ("double", np.float64), ("float16", np.float16), ("bool", np.bool_),
    *((t, np.dtype(t)) for t in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")))}


def near(got, want, scale=0):
    if got is None or want is None:
        return got == want
    return abs(got - want) <= ATOL + RTOL * max(abs(want), scale)


def compare_digest(name, got, d, only_dims):
    """The digests that golden/ has: dims, type, sums, extremes, samples."""
    if list(got.shape) != d["dims"] or got.dtype.name != d["type"]:
        raise Wrong(f"{name}: {got.dtype} {got.shape}, wanted {d['type']} {d['dims']}")
    flat = got.reshape(-1).astype(np.float64)
    finite = flat[np.isfinite(flat)]
    if only_dims:
        if finite.size != flat.size:
            raise Wrong(f"{name}: {flat.size - finite.size} elements are not finite")
        return
    for k, v in d["samples"]:
        want = float("nan") if v is None else float(v)
        if not (near(flat[k], want) or (np.isnan(want) and np.isnan(flat[k])) or flat[k] == want):
            raise Wrong(f"{name}: element {k} is {flat[k]}, wanted {v}")
    if finite.size == flat.size and flat.size:
        mean = d["abssum"] / flat.size
        for key, x, scale in (("sum", flat.sum() / flat.size, mean), ("abssum", np.abs(flat).sum() / flat.size, mean)):
            if not near(x, d[key] / flat.size, scale):
                raise Wrong(f"{name}: {key} is {x * flat.size}, wanted {d[key]}")
        for key, x in (("min", flat.min()), ("max", flat.max())):
            if not near(x, d[key]):
                raise Wrong(f"{name}: {key} is {x}, wanted {d[key]}")


# Operators outside the standard that have rows here.
KNOWN = ("com.microsoft::Gelu",)


# What the models of this tree need where no numbers nor sizes at random fit.
OWN = {"group_decoder": {"dims": {"input_ids": "2x1", "attention_mask": "2x3"}, "feeds": {"attention_mask": {"value": 1}}}}


def open_dim(name):
    """What --default-dim=2 makes of it: "a + b" follows from a and b."""
    return 2 * len(name.split(" + ")) if name else 2


class Model:
    def __init__(self, path, row):
        self.path = path
        self.stem = os.path.basename(path)[:-5]
        self.folder = os.path.basename(os.path.dirname(path))
        self.shared = path.startswith(DATA)
        self.name = ("shared/" if self.shared else "") + self.folder + "/" + self.stem
        self.row = row or {}
        self.nonstandard = self.row.get("nonstandard_ops", "-") not in ("-", "", *KNOWN)
        golden = os.path.join(DATA, "golden", self.stem + ".json")
        first = os.path.join(DATA, "models", self.stem + ".onnx")
        self.golden = None
        self.own = {} if self.shared else OWN.get(self.stem, {})
        self.feeds = self.own.get("feeds", {})
        if self.shared and os.path.exists(golden):
            with open(golden) as f:
                digests = json.load(f)
            self.feeds = digests["feeds"]
        if self.shared and self.feeds and (self.folder == "models" or not os.path.exists(first)):
            self.golden = digests
        self.proto = onnx.load(path, load_external_data=False)
        self.ops = set(self.op_types(self.proto.graph.node))
        for f in self.proto.functions:
            self.ops |= set(self.op_types(f.node))

    def op_types(self, nodes):
        for n in nodes:
            yield n.op_type
            for a in n.attribute:
                yield from self.op_types(a.g.node)

    def noisy(self):
        """Equal channels behind a normalization: only rounding is left."""
        return self.folder == "light" and ("LayerNormalization" in self.ops or {"ReduceMean", "Sqrt"} <= self.ops)

    def shapes(self):
        dims = self.own.get("dims", {})
        if self.folder == "models" and self.shared:
            dims = bound_shapes(self.row)
        if self.golden:
            dims = {n: "x".join(map(str, f["dims"])) for n, f in self.golden["feeds"].items()}
        return [f"--input-shape={n}:{d}" for n, d in dims.items() if d]

    def fills(self):
        fills = []
        for n, f in self.feeds.items():
            key = "value" if "value" in f else "mod"
            if key in f:
                fills.append(f"--fill={n}:{key}={f[key]}")
        return fills

    def open_dims(self):
        return ["--default-dim=2"] if not self.shared else []

    def args(self):
        return [self.path, *self.shapes(), *self.open_dims()]

    def random_inputs(self, runtime):
        rng = np.random.default_rng(1)
        sizes = {s.split("=", 1)[1].rsplit(":", 1)[0]: s.rsplit(":", 1)[1] for s in self.shapes()}
        inputs = {}
        for i in runtime.get_inputs():
            dims = [int(d) for d in sizes[i.name].split("x")] if i.name in sizes else \
                [d if isinstance(d, int) else open_dim(d) for d in i.shape]
            t, f = TYPES[i.type], self.feeds.get(i.name, {})
            if "value" in f:
                x = np.full(dims, f["value"])
            elif np.dtype(t).kind == "f":
                x = rng.uniform(-1, 1, dims)
            else:
                x = rng.integers(0, f.get("mod", 2), dims)
            inputs[i.name] = np.asarray(x, t)
        return inputs

    def refused(self):
        onnxmem("run", self.path, "--fill", "deterministic", *self.shapes(), code=5)
        onnxmem("report", *self.args())
        return "reported, but not run: " + self.row["nonstandard_ops"]

    def three_ways(self, tmp):
        out = {}
        for how in ("", "--no-reuse", "--poison"):
            to = os.path.join(tmp, "out" + how + ".npz")
            onnxmem("run", *self.args(), "--fill", "deterministic", *self.fills(), "--save", to, *filter(None, [how]))
            with open(to, "rb") as f:
                out[how] = f.read()
        for how in ("--no-reuse", "--poison"):
            if out[how] != out[""]:
                a, b = arrays(os.path.join(tmp, "out.npz")), arrays(os.path.join(tmp, f"out{how}.npz"))
                raise Wrong(f"{how} gives other bits for "
                            + ", ".join(k for k in a if a[k].tobytes() != b[k].tobytes()))
        return arrays(os.path.join(tmp, "out.npz"))

    def like_golden(self, got):
        for n, d in self.golden["outputs"].items():
            if n not in got:
                raise Wrong(f"there is no output {n}")
            compare_digest(n, got[n], d, self.noisy())

    def like_runtime(self, tmp):
        try:
            runtime = session(self.path)
        except Exception as e:
            if self.golden or not self.shared:
                raise Wrong(f"ONNX Runtime does not load it: {e}")
            return False
        feeds = self.random_inputs(runtime)
        want = dict(zip([o.name for o in runtime.get_outputs()], runtime.run(None, feeds)))
        np.savez(os.path.join(tmp, "in.npz"), **feeds)
        onnxmem("run", *self.args(), "--data", os.path.join(tmp, "in.npz"), "--save", os.path.join(tmp, "rt.npz"))
        got = arrays(os.path.join(tmp, "rt.npz"))
        for n, w in want.items():
            compare(n, got[n], w)
        return True

    def vectors(self, tmp):
        """Test vectors that came with the model."""
        folder = os.path.join(DATA, "vectors", self.stem)
        if self.folder != "models" or not os.path.isdir(folder):
            return 0
        if self.stem == "mnist_quantized":  # its vectors are those of the float model
            return 0
        sets = [(d, d) for d in sorted(os.path.join(folder, d) for d in os.listdir(folder))
                if os.path.basename(d).startswith("test_data_set")]
        if os.path.exists(os.path.join(folder, "inputs.npz")):
            # Weights follow the inputs, as arrays without names.
            given = list(arrays(os.path.join(folder, "inputs.npz")).values())
            weights = {i.name for i in self.proto.graph.initializer}
            names = [i.name for i in self.proto.graph.input if i.name not in weights]
            np.savez(os.path.join(tmp, "vector.npz"), **dict(zip(names, given)))
            sets.append((os.path.join(tmp, "vector.npz"), os.path.join(folder, "outputs.npz")))
        for data, expect in sets:
            said = onnxmem("run", self.path, "--data", data, "--expect", expect)
            if not said.splitlines()[-1].startswith("PASSED"):
                raise Wrong(f"{expect}: {said.splitlines()[-1]}")
        return len(sets)

    def check(self):
        if self.nonstandard:
            return self.refused()
        did = []
        with scratch() as tmp:
            got = self.three_ways(tmp)
            if self.golden:
                self.like_golden(got)
                did.append("golden dims" if self.noisy() else "golden")
            if self.shared and self.vectors(tmp):
                did.append("vectors")
            if not (self.noisy() or (self.folder == "light" and self.golden)) and self.like_runtime(tmp):
                did.append("ONNX Runtime")
        return "three ways the same; like " + (", ".join(did) or "itself")


def run(m):
    try:
        return True, m.check()
    except (Wrong, OSError, subprocess.TimeoutExpired) as e:
        return False, str(e)


def main():
    rows = index_rows()
    own, shared, _ = models()
    words = sys.argv[1:]
    paths = [p for p in own + shared if not words or any(w in p for w in words)]
    t = Points()
    with ThreadPoolExecutor(JOBS) as pool:
        todo = [Model(p, rows.get(os.path.basename(p)[:-5])) for p in paths]
        for m, (good, said) in zip(todo, pool.map(run, todo)):
            t.point(good, m.name + (": " + said if good else ""), said)
    t.end()


main()
