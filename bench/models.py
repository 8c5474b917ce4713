# SPDX-License-Identifier: Apache-2.0
"""The models that bench/run.py measures: files with weights, inputs, work, and outputs in float64.

Weights that a graph states as a ConstantOfShape are replaced by random ones, the same in every run.  Everything is made once
and kept in a folder: NAME.onnx (where weights were filled in), NAME.npz (inputs), NAME.work.json (operations and bytes of
each node), NAME.f64.npz (outputs in float64) or NAME.f64.txt (the reason why there are none).

    bench/models.py [--data DIR] [--cache DIR] [--onnxmem PATH] [MODEL...]      makes all of these"""
import argparse
import csv
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.environ.get("ONNXMEM_DATA") or next(
    (d for up in ("../..", "../../..") if os.path.isdir(d := os.path.normpath(os.path.join(HERE, up, "shared", "data")))),
    os.path.join(HERE, "..", "..", "shared", "data"))
CACHE = os.environ.get("BENCH_CACHE") or os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "onnxmem-bench")
SMALL = 64                     # elements; a ConstantOfShape with fewer is no weight
VALUES = {"sr": 16000}         # by name of an input: what the model can take; this is a sampling rate


class Model:
    def __init__(self, name, source, bound, cache):
        self.name, self.source, self.bound, self.cache = name, source, bound, cache

    def file(self, ending):
        return os.path.join(self.cache, self.name + ending)

    def path(self):
        """The file to run."""
        return self.file(".onnx") if os.path.exists(self.file(".onnx")) else self.source

    def inputs(self):
        return self.file(".npz")


def bound_shapes(data):
    """Of each model of the index: shapes of inputs whose dims the file leaves open."""
    with open(os.path.join(data, "index.tsv")) as f:
        for row in csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE):
            text = row["bound_inputs"]
            yield row["name"], {} if text == "-" else {
                k: [int(d) for d in v.split("x")] for k, v in (part.rsplit("=", 1) for part in text.split(";"))}


def known(data=DATA, cache=CACHE):
    """All models by name: those with weights, graphs without weights, and what the cache has in `extra`."""
    bound, found = dict(bound_shapes(data)), {}
    for folder in (os.path.join(data, "models"), os.path.join(data, "light"), os.path.join(cache, "extra")):
        for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            name = file.removesuffix(".onnx")
            if file.endswith(".onnx") and name not in found:
                found[name] = Model(name, os.path.join(folder, file), bound.get(name, {}), cache)
    return found


def replace(path, write):
    """`write` makes the file under another name first: runs beside this one see all of it or nothing."""
    with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as d:
        new = os.path.join(d, os.path.basename(path))
        write(new)
        os.replace(new, path)


# ---- Weights. ----

def constants(graph):
    from onnx import numpy_helper
    found = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    for n in graph.node:
        if n.op_type == "Constant" and n.attribute[0].name == "value":
            found[n.output[0]] = numpy_helper.to_array(n.attribute[0].t)
    return found


def first_uses(graph):
    """By name of a value: operator and input of the first op that reads it, or a copy of it."""
    uses, source = {}, {}
    for n in graph.node:
        if n.op_type == "Identity":
            source[n.output[0]] = source.get(n.input[0], n.input[0])
            continue
        for k, name in enumerate(n.input):
            uses.setdefault(source.get(name, name), (n.op_type, k))
    return uses


def fan_in(op, dims):
    """How many products are added for an output; 0 if the tensor is no matrix of weights."""
    if op == "Conv":
        return math.prod(dims[1:])
    if op == "ConvTranspose":
        return dims[0] * math.prod(dims[2:])
    if op in ("MatMul", "Gemm"):
        return max(dims[-2:])
    return dims[-1] if op in ("LSTM", "GRU", "RNN") else 0


def is_scale(use):
    """The factor of a normalization, or its variance."""
    return use[0].endswith("Normalization") and use[1] in ((1, 4) if use[0] == "BatchNormalization" else (1,))


def random_weights(rng, value, dims, use):
    """Activations keep their scale through any number of layers: sums have a variance near that of a term, factors are near 1."""
    import numpy as np
    if value.dtype.kind != "f":
        return np.full(dims, value)
    n = fan_in(use[0], dims)
    if is_scale(use):
        return (1 + 0.1 * np.abs(rng.standard_normal(dims))).astype(value.dtype)
    return (rng.standard_normal(dims) * math.sqrt(1.6 / n) if n else value + 0.02 * rng.standard_normal(dims)).astype(value.dtype)


def fill(source, target):
    """False if the model has its weights already."""
    import numpy as np
    import onnx
    from onnx import numpy_helper
    m = onnx.load(source)
    rng, shapes, uses = np.random.default_rng(7), constants(m.graph), first_uses(m.graph)
    keep = []
    for n in m.graph.node:
        dims = shapes.get(n.input[0]) if n.op_type == "ConstantOfShape" else None
        if dims is None or math.prod(map(int, dims)) < SMALL:
            keep.append(n)
            continue
        value = numpy_helper.to_array(n.attribute[0].t).reshape(-1)[0] if n.attribute else np.float32(0)
        x = random_weights(rng, value, [int(d) for d in dims], uses.get(n.output[0], ("", 0)))
        m.graph.initializer.append(numpy_helper.from_array(x, n.output[0]))
    if len(keep) == len(m.graph.node):
        return False
    del m.graph.node[:]
    m.graph.node.extend(keep)
    replace(target, lambda path: onnx.save(m, path))
    return True


# ---- Inputs. ----

def make_inputs(model):
    """Normal numbers; integers are 0 or 1, which every table has.  Open dims are 1."""
    import numpy as np
    import onnx
    g = onnx.load(model.path(), load_external_data=False).graph
    rng, own, arrays = np.random.default_rng(3), {i.name for i in g.initializer}, {}
    for i in g.input:
        if i.name in own:
            continue
        if not i.type.HasField("tensor_type"):
            raise ValueError(f"the input {i.name} is no tensor")
        t = i.type.tensor_type
        dims = model.bound.get(i.name) or [max(d.dim_value, 1) for d in t.shape.dim]
        kind = onnx.helper.tensor_dtype_to_np_dtype(t.elem_type)
        if kind.kind not in "fiub":
            raise ValueError(f"the input {i.name} has elements of type {kind}")
        x = rng.standard_normal(dims) if kind.kind == "f" else rng.integers(0, 2, dims)
        arrays[i.name] = np.full(dims, VALUES[i.name], kind) if i.name in VALUES else np.asarray(x).astype(kind)
    with open(model.inputs() + f".{os.getpid()}", "wb") as f:
        np.savez(f, **arrays)
    os.replace(f.name, model.inputs())


# ---- Outputs in float64. ----

# Inputs whose element type an operator fixes; all of them where the operator has no double form.
FLOAT_INPUTS = {"Resize": (2,), "Upsample": (1,)}
FLOAT_OPS = {"NonMaxSuppression", "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul",
             "TreeEnsembleClassifier", "TreeEnsembleRegressor", "ZipMap", "ArrayFeatureExtractor"}


class ToDouble:
    """Turns a model's float32 into float64.  Ops without a double form are surrounded by casts."""

    def __init__(self, model):
        import onnx
        self.onnx, self.model, self.n = onnx, model, 0
        self.float, self.double = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE
        self.floats = self.types(model)

    def types(self, model):
        """Names of values that were float32."""
        inferred = self.onnx.shape_inference.infer_shapes(model)
        found = set()
        graphs = [inferred.graph]
        while graphs:
            g = graphs.pop()
            found |= {v.name for v in (*g.value_info, *g.input, *g.output) if v.type.tensor_type.elem_type == self.float}
            found |= {i.name for i in g.initializer if i.data_type == self.float}
            for n in g.node:
                found |= set(n.output) if n.op_type == "Constant" and any(a.t.data_type == self.float for a in n.attribute) else set()
                graphs += [a.g for a in n.attribute if a.HasField("g")]
        return found

    def tensor(self, t):
        helper = self.onnx.numpy_helper
        if t.data_type == self.float:
            t.CopyFrom(helper.from_array(helper.to_array(t).astype("f8"), t.name))

    def cast(self, name, to, nodes):
        self.n += 1
        out = f"{name}.cast{self.n}"
        nodes.append(self.onnx.helper.make_node("Cast", [name], [out], to=to))
        return out

    def attributes(self, n):
        for a in n.attribute:
            if a.type == a.TENSOR:
                self.tensor(a.t)
            elif a.type == a.GRAPH:
                self.graph(a.g)
            elif (n.op_type, a.name) in (("Cast", "to"), ("EyeLike", "dtype"), ("RandomNormalLike", "dtype")) and a.i == self.float:
                a.i = self.double
            elif n.op_type == "Constant" and a.name in ("value_float", "value_floats"):
                x = [a.f] if a.name == "value_float" else list(a.floats)
                t = self.onnx.helper.make_tensor("", self.double, [] if a.name == "value_float" else [len(x)], x)
                a.CopyFrom(self.onnx.helper.make_attribute("value", t))

    def node(self, n, nodes):
        self.attributes(n)
        alone = n.op_type in FLOAT_OPS or n.domain == "com.microsoft"
        fixed = range(len(n.input)) if alone else FLOAT_INPUTS.get(n.op_type, ())
        if n.op_type == "ConstantOfShape" and not n.attribute:
            n.attribute.append(self.onnx.helper.make_attribute("value", self.onnx.helper.make_tensor("", self.double, [1], [0.0])))
        for k in fixed:
            if k < len(n.input) and n.input[k] in self.floats:
                n.input[k] = self.cast(n.input[k], self.float, nodes)
        nodes.append(n)
        for k in range(len(n.output)) if alone else ():
            if n.output[k] in self.floats:
                name, n.output[k] = n.output[k], f"{n.output[k]}.float"
                nodes.append(self.onnx.helper.make_node("Cast", [n.output[k]], [name], to=self.double))

    def graph(self, g):
        for i in g.initializer:
            self.tensor(i)
        for v in (*g.input, *g.output):
            if v.type.tensor_type.elem_type == self.float:
                v.type.tensor_type.elem_type = self.double
        del g.value_info[:]
        nodes = []
        for n in list(g.node):
            copy = self.onnx.NodeProto()
            copy.CopyFrom(n)
            self.node(copy, nodes)
        del g.node[:]
        g.node.extend(nodes)

    def run(self):
        self.graph(self.model.graph)
        return self.model


def by_ours(onnxmem, env, path, data, out, limit):
    r = subprocess.run([*onnxmem, "run", "-q", path, "--data", data, "--save", out], capture_output=True, text=True, timeout=limit,
                       env=env)
    if r.returncode:
        raise RuntimeError("onnxmem: " + (r.stderr.strip().splitlines() or ["no message"])[0][:200])


REFERENCE = """
import sys
import numpy as np, onnx, onnx.reference
m = onnx.load(sys.argv[1])
x = np.load(sys.argv[2])
y = onnx.reference.ReferenceEvaluator(m).run(None, {k: x[k] for k in x.files})
np.savez(sys.argv[3], **{o.name: a for o, a in zip(m.graph.output, y)})
"""


def by_onnx(path, data, out, limit):
    r = subprocess.run([sys.executable, "-W", "ignore", "-c", REFERENCE, path, data, out], capture_output=True, text=True, timeout=limit)
    if r.returncode:
        raise RuntimeError("onnx.reference: " + (r.stderr.strip().splitlines() or ["no message"])[-1][:200])


def make_double(model, onnxmem, env, limit=900):
    """By our reference kernels, else by those of the onnx package."""
    import numpy as np
    import onnx
    reasons = []
    with tempfile.TemporaryDirectory(dir=model.cache) as d:
        path, data, out = (os.path.join(d, x) for x in ("m.onnx", "in.npz", "out.npz"))
        onnx.save(ToDouble(onnx.load(model.path())).run(), path)
        x = np.load(model.inputs())
        np.savez(data, **{k: x[k].astype("f8") if x[k].dtype == np.float32 else x[k] for k in x.files})
        for by in ((lambda: by_ours(onnxmem, env, path, data, out, limit)) if onnxmem else None, lambda: by_onnx(path, data, out, limit)):
            try:
                if by:
                    by()
                    os.replace(out, model.file(".f64.npz"))
                    return
            except (RuntimeError, subprocess.TimeoutExpired) as e:
                reasons.append(str(e) if isinstance(e, RuntimeError) else f"not done after {limit} s")
    raise RuntimeError("; ".join(reasons))


# ---- All of it. ----

def make_work(model):
    """Runs every node as the file has it, for shapes inside loops and branches too."""
    worker = os.path.join(HERE, "peers.py")
    with tempfile.TemporaryDirectory(dir=model.cache) as d:
        profile = os.path.join(d, "work.json")
        r = subprocess.run([sys.executable, worker, "ort", model.path(), model.inputs(), "--seconds", "0", "--as-written",
                            "--profile", profile], capture_output=True, text=True)
        if r.returncode:
            raise RuntimeError("ONNX Runtime: " + (r.stderr.strip().splitlines() or ["no message"])[-1][:200])
        os.replace(profile, model.file(".work.json"))


def attempt(model, ending, make):
    """Makes NAME.ending, or NAME.ending.txt with the reason why there is none."""
    failed = model.file(ending) + ".txt"
    if os.path.exists(model.file(ending)) or os.path.exists(failed):
        return
    try:
        make()
    except Exception as e:                     # whatever a library raises: it is the reason
        with open(failed, "w") as f:
            f.write(f"{e}\n")


def prepare(model):
    """What is needed to run it."""
    os.makedirs(model.cache, exist_ok=True)
    if not os.path.exists(model.file(".onnx")) and not os.path.exists(model.file(".whole")):
        if not fill(model.source, model.file(".onnx")):
            open(model.file(".whole"), "w").close()
    if not os.path.exists(model.inputs()):
        make_inputs(model)
    attempt(model, ".work.json", lambda: make_work(model))


def prepare_double(model, onnxmem, env=None):
    """What its outputs are compared with; `onnxmem`: the command as a list of words, or None."""
    attempt(model, ".f64.npz", lambda: make_double(model, onnxmem, env))


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("model", nargs="*")
    a.add_argument("--data", default=DATA)
    a.add_argument("--cache", default=CACHE)
    a.add_argument("--onnxmem")
    a.add_argument("--no-double", action="store_true")
    a = a.parse_args()
    models = known(a.data, a.cache)
    for name in a.model or models:
        prepare(models[name])
        if not a.no_double:
            prepare_double(models[name], [a.onnxmem] if a.onnxmem else None)


if __name__ == "__main__":
    main()
