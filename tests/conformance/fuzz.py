# SPDX-License-Identifier: Apache-2.0
"""Random cases of every operator, against ONNX Runtime and, where that does not
run a case, the reference evaluator of the onnx package.

    fuzz.py CASES [OPERATOR...]

CASES cases an operator that somebody judges, always the same ones: more are drawn
where nobody can, up to DRAWS times as many.  An operator is a point.  What
recipes.py draws is a model of one node; inputs are constants now and then, so
that operators are folded too.  In our model there are nodes around it, so that
it computes in the arena: over its inputs, from views.

What we refuse as unsupported, in a sentence, is counted and not wrong.

SEED=N draws other cases.  KEEP=FOLDER keeps the models that went wrong.  SHOW=N
shows N of them an operator, UNSUPPORTED=1 also what was refused.  UPDATE=1 counts
the cases in fuzz.tsv, by operator and version: fuzzed.test makes a page of it."""
import collections
import copy
import os
import struct
import subprocess
import sys
import warnings
import zlib

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), d) for d in (".", "../onnx")]
from tap import Points, scratch, skip_all

try:
    import numpy as np
    import onnx
    import onnxruntime as ort
    from onnx import TensorProto, helper, numpy_helper, version_converter
    from onnx.reference import ReferenceEvaluator
    import distributions  # noqa: F401: its recipes are among the others
    import contrib  # noqa: F401
    import counts
    import draw
    import flow  # noqa: F401
    import learned  # noqa: F401
    import maps  # noqa: F401
    import recipes
    import signals  # noqa: F401
except ImportError as why:
    skip_all(f"{why}; PYTHON names an interpreter that has onnx and onnxruntime")

warnings.simplefilter("ignore")
np.seterr(all="ignore")
ort.set_default_logger_severity(4)
SEED = int(os.environ.get("SEED", 0))
SHOW_UNSUPPORTED = os.environ.get("UNSUPPORTED")
KEEP = os.environ.get("KEEP")
DRIVER = os.path.join(os.environ.get("abs_builddir", "."), "tests/conformance/cases")
UNSUPPORTED = 14  # OM_UNSUPPORTED
RUNTIME, REFERENCE, RECIPE, NOBODY = counts.JUDGES
DRAWS = 4
ODD = {1000: "differs between runs", 1001: "contradicts what was inferred", 1002: "crashes", 1003: "takes too long"}
MAP = 100  # of cases.c
SIX = ["float6e2m3", "float6e3m2"]     # packed in files, but the driver has a byte for each
CODE = {t: helper.np_dtype_to_tensor_dtype(np.dtype(draw.NUMPY[t])) for t in draw.NUMPY}
TOLERANCE = {"float": (1e-4, 1e-5), "double": (1e-7, 1e-9), "float16": (6e-3, 3e-3), "bfloat16": (4e-2, 2e-2),
             "complex64": (1e-4, 1e-5), "complex128": (1e-7, 1e-9)}


# ---- Models. ----

def value_info(name, a, symbolic):
    dims = [f"{name}_{k}" for k in range(a.ndim)] if symbolic else list(a.shape)
    return helper.make_tensor_value_info(name, CODE[draw.name_of(a)], dims)


def constant(a, name):
    if a.dtype == np.object_:
        flat = [s.encode() for s in a.reshape(-1)]
        return helper.make_tensor(name, TensorProto.STRING, a.shape, flat)
    return numpy_helper.from_array(np.ascontiguousarray(a).reshape(a.shape), name)


def map_info(name, m):
    value = helper.make_tensor_type_proto(CODE[draw.name_of(m.values)], [])
    return helper.make_value_info(name, helper.make_map_type_proto(CODE[draw.name_of(m.keys)], value))


class Model:
    """The model of a case; `inner` names its values where there are nodes around it."""

    def __init__(self, case):
        self.case = case
        self.names = ["" if a is None else f"x{k}" for k, a in enumerate(case.ins)]
        self.outs = [f"y{k}" if wanted else "" for k, wanted in enumerate(case.outs)]

    def nodes(self, names, outs):
        c = self.case
        if c.nodes:
            return c.nodes
        while names and not names[-1]:
            names = names[:-1]
        return [helper.make_node(c.op, names, outs, domain=c.domain, name="n", **c.attrs)]

    def make(self, nodes, inputs, outputs, constants):
        c = self.case
        graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
        ops = [helper.make_opsetid("", c.opset)]
        if c.domain:
            ops.append(helper.make_opsetid(c.domain, c.version))
        return helper.make_model(graph, opset_imports=ops, ir_version=c.ir).SerializeToString()

    def theirs(self):
        """Small types are constants and come out as wider ones: they cannot be
        passed by the runtime's Python.  Strings are none: it loses them."""
        c = self.case
        inputs, constants, feeds = [], [], {}
        for k, a in enumerate(c.ins):
            if a is None:
                continue
            if isinstance(a, draw.Map):
                inputs.append(map_info(self.names[k], a))
                feeds[self.names[k]] = a.feed()
                continue
            name = draw.name_of(a)
            if name != "string" and (k in c.const or name in draw.SMALL or name == "bfloat16"):
                constants.append(constant(a, self.names[k]))
            else:
                inputs.append(value_info(self.names[k], a, False))
                feeds[self.names[k]] = a
        nodes = list(self.nodes(self.names, self.outs))
        outputs = []
        for o in filter(None, self.outs):
            t = c.out_types.get(o)
            if t in draw.SMALL or t == "bfloat16":
                nodes.append(helper.make_node("Cast", [o], [o + "_wide"], to=TensorProto.FLOAT))
                o += "_wide"
            outputs.append(onnx.ValueInfoProto(name=o))
        return self.make(nodes, inputs, outputs, constants), feeds

    def ours(self):
        c = self.case
        names, outs, before, behind = list(self.names), list(self.outs), [], []
        inputs, constants, fed = [], [], []
        for k, a in enumerate(c.ins):
            if a is None:
                continue
            if isinstance(a, draw.Map):
                inputs.append(map_info(names[k], a))
                fed.append(a)
                continue
            if k in c.const:
                constants.append(constant(a, names[k]))
                continue
            inputs.append(value_info(names[k], a, c.symbolic))
            fed.append(a)
            if c.around and not c.nodes:
                if draw.name_of(a) in draw.SMALL:
                    continue
                before.append(helper.make_node("Where", ["true", names[k], names[k]], [names[k] + "_"]))
                names[k] += "_"
        results = [o for o in outs if o]
        if c.around and c.opset >= 9 and not c.nodes:
            large = [o for o in results if c.out_types.get(o) not in draw.SMALL]
            behind = [helper.make_node("Where", ["true", o + "_", o + "_"], [o]) for o in large]
            outs = [o + "_" if o in large else o for o in outs]
        if before or behind:
            true = np.asarray(True)
            inputs.append(value_info("true", true, False))
            fed.append(true)
        nodes = before + list(self.nodes(names, outs)) + behind
        return self.make(nodes, inputs, [onnx.ValueInfoProto(name=o) for o in results], constants), fed


# ---- What is right. ----

def run_session(proto, feeds):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(proto, options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def by_runtime(model):
    return run_session(*model.theirs())


def as_floats(a):
    return a.astype(np.float32) if a is not None and draw.NAME[a.dtype] in draw.FLOATS else a


def by_floats(model):
    """What the runtime gives where all real numbers are of its best type."""
    c = copy.copy(model.case)
    kinds = {draw.NAME[a.dtype] for a in c.ins if a is not None} & set(draw.FLOATS)
    if c.nodes or c.checks_bits or not kinds or kinds == {"float"}:
        raise NotImplementedError("there is no such form")
    c.ins = [as_floats(a) for a in c.ins]
    c.out_types = {o: t for o, t in c.out_types.items() if t in draw.SMALL}
    outputs = by_runtime(Model(c))
    small = min(kinds, key=lambda k: (TOLERANCE[k][0] < 1e-4, -TOLERANCE[k][0]))
    model.case.tolerance = tuple(max(a, 3 * b) for a, b in zip(TOLERANCE[small], TOLERANCE["float"]))
    return outputs


def by_converter(model):
    """What the runtime gives for the same in a version that it knows."""
    if model.case.domain or model.case.opset >= 8:
        raise NotImplementedError("it is new enough")
    proto, feeds = model.theirs()
    proto = version_converter.convert_version(onnx.load_from_string(proto), 13)
    return run_session(proto.SerializeToString(), feeds)


def by_reference(model):
    case = model.case
    proto = onnx.load_from_string(model.make(
        model.nodes(model.names, model.outs),
        [value_info(n, a, False) for n, a in zip(model.names, case.ins) if a is not None],
        [onnx.ValueInfoProto(name=o) for o in model.outs if o], []))
    feeds = {n: a for n, a in zip(model.names, case.ins) if a is not None}
    return ReferenceEvaluator(proto).run(None, feeds)


def expected(model):
    """Outputs, None where nobody knows them, and who says so."""
    who = model.case.judge
    if who == "no value":
        return None, NOBODY
    if model.case.twin:
        other, turn = model.case.twin
        other.newest = model.case.newest
        outputs, who = expected(Model(other))
        model.case.tolerance = other.tolerance
        return outputs and turn(outputs, model.case.outs), who
    if who not in ("reference", "recipe"):
        try:
            return by_runtime(model), RUNTIME
        except Exception as why:
            model.case.why = str(why)
        for other in (by_floats, by_converter):
            try:
                return other(model), RUNTIME
            except Exception:
                pass
    if model.case.known:
        return model.case.known, RECIPE
    if who == "reference" or (who is None and (model.case.opset >= 8 or model.case.ins and model.case.newest)):
        try:
            return by_reference(model), REFERENCE
        except Exception as why:
            model.case.why = str(why)
    return None, NOBODY


def wide(a):
    a = np.asarray(a)
    t = NAMES.get(a.dtype)
    return (a.astype(np.float32), t) if t in draw.SMALL or t == "bfloat16" else (a, t)


NAMES = draw.NAME


def compare(case, got, want, who):
    """Why they are not the same; None if they are."""
    if who is REFERENCE and got.dtype != np.asarray(want).dtype and got.dtype.kind in "iuf":
        want = np.asarray(want).astype(got.dtype)  # numpy makes sums wider, the reference floats narrower
    g, t = wide(got)
    w, _ = wide(want)
    if list(g.shape) != list(w.shape):
        return f"shape {list(g.shape)}, wanted {list(w.shape)}"
    if case.tolerance:
        g, w = (x.astype(np.float64) if draw.NAME.get(x.dtype) in draw.FLOATS else x for x in (g, w))
    if t not in draw.SMALL and t != "bfloat16" and g.dtype != w.dtype and w.dtype.kind not in "UO":
        return f"type {g.dtype}, wanted {w.dtype}"
    if g.dtype == np.object_ or w.dtype.kind in "UO":
        bad = np.asarray([str(a) != (b.decode() if isinstance(b, bytes) else str(b))
                          for a, b in zip(g.reshape(-1), w.reshape(-1))], bool)
    elif t in TOLERANCE:
        # The reference computes with 32 bits now and then, or as narrow as an input is.
        worst = max([t, "float"] + [NAMES[a.dtype] for a in case.ins if a is not None and NAMES[a.dtype] in draw.FLOATS],
                    key=lambda k: TOLERANCE[k])
        basis = case.tolerance or TOLERANCE[worst if who is REFERENCE else t]
        rtol, atol = (x * case.slack for x in basis)
        g, w = (x.astype(np.complex128 if g.dtype.kind == "c" else np.float64) for x in (g, w))
        scale = 1 if not case.by_scale or not w.size else max(1, np.abs(np.where(np.isfinite(w), w, 0)).max())
        bad = ~np.isclose(g, w, rtol=rtol, atol=atol * scale, equal_nan=True).reshape(-1)
    elif case.near and g.dtype.kind in "iu":
        bad = (np.abs(g.astype(np.float64) - w.astype(np.float64)) > case.near).reshape(-1)
    else:
        bad = ~((g == w) | ((g != g) & (w != w))).reshape(-1)
    if not bad.any():
        return None
    k = int(np.argmax(bad))
    return f"element {k} of {list(g.shape)} is {g.reshape(-1)[k]}, wanted {w.reshape(-1)[k]} ({int(bad.sum())} are wrong)"


# ---- What we give. ----

def pack_tensor(a):
    if isinstance(a, draw.Map):
        return struct.pack("<I", MAP) + pack_tensor(a.keys) + pack_tensor(a.values)
    data = b""
    if a.dtype == np.object_:
        texts = [s.encode() for s in a.reshape(-1)]
        strings = b"".join(struct.pack("<I", len(s)) + s for s in texts)
        size = 0
    else:
        strings = b""
        t = draw.name_of(a)
        data = constant(a, "").raw_data if t in draw.SMALL and t not in SIX else np.ascontiguousarray(a).tobytes()
        size = len(data)
    head = struct.pack("<Ii", CODE[draw.name_of(a)], a.ndim)
    return head + struct.pack(f"<{a.ndim}q", *a.shape) + struct.pack("<Q", size) + data + strings


def pack_case(model):
    proto, fed = model.ours()
    model.proto = proto
    return struct.pack("<I", len(proto)) + proto + struct.pack("<I", len(fed)) + b"".join(map(pack_tensor, fed))


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        v = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return v if len(v) != 1 else v[0]

    def bytes(self, n):
        self.at += n
        return self.data[self.at - n:self.at]

    def tensor(self):
        code, rank = self.take("Ii")
        dims = [self.take("q") for _ in range(rank)]
        data = self.bytes(self.take("Q"))
        if code == TensorProto.STRING:
            flat = [self.bytes(self.take("I")).decode("utf8", "replace") for _ in range(int(np.prod(dims, dtype=int)))]
            a = np.empty(len(flat), np.object_)
            a[:] = flat
            return a.reshape(dims)
        for t in SIX:
            if code == CODE[t]:
                return np.frombuffer(data, draw.NUMPY[t]).reshape(dims)
        return numpy_helper.to_array(TensorProto(data_type=code, dims=dims, raw_data=data))

    def result(self):
        self.take("Q")
        status = self.take("I")
        why = self.bytes(self.take("I")).decode("utf8", "replace")
        return status, why, [self.tensor() for _ in range(self.take("I"))]


def run_ours(models, folder):
    cases, results = os.path.join(folder, "cases"), os.path.join(folder, "results")
    with open(cases, "wb") as f:
        for m in models:
            f.write(pack_case(m))
    subprocess.run([DRIVER, cases, results], check=True, timeout=600, stderr=subprocess.DEVNULL)
    with open(results, "rb") as f:
        reader = Reader(f.read())
    return [reader.result() for _ in models]


# ---- An operator. ----

def judge(model, result, want, who):
    """What is wrong with a result; None if nothing."""
    status, why, got = result
    if status in ODD:
        return f"{ODD[status]}: {why}"
    if want is None:
        return None
    if status != 0:
        return f"refused, but not by {who}: {why}"
    if len(want) == len(got):
        for k, (g, w) in enumerate(zip(got, want)):
            if model.case.blank:
                g, w = (model.case.blank(k, np.array(x)) for x in (g, w))
            if model.case.check:
                said = model.case.check(model.case, k, g, w)
            else:
                said = compare(model.case, g, w, who)
            if said:
                return f"output {k}: {said}; says {who}"
        return None
    return f"{len(got)} outputs, {who} gives {len(want)}"


def keep(model, op, number):
    if KEEP:
        os.makedirs(KEEP, exist_ok=True)
        stem = os.path.join(KEEP, f"{op.replace('.', '_')}_{number}")
        with open(stem + ".onnx", "wb") as f:
            f.write(model.proto)
        with open(stem + ".case", "wb") as f:
            f.write(pack_case(model))


def draw_cases(op, ncase):
    """Until so many are judged: models, and what is expected of them and who says so."""
    models, wanted, judged = [], [], 0
    for k in range(DRAWS * ncase):
        if judged == ncase:
            break
        case = recipes.case(op, draw.Draw([zlib.crc32(op.encode()), k, SEED]))
        if not case:
            continue
        case.number = k
        models.append(Model(case))
        wanted.append(expected(models[-1]))
        judged += wanted[-1][1] is not NOBODY
    return models, wanted


def check_operator(op, ncase, folder):
    """What became of its cases, by version, and what is wrong: (number, case, sentence)."""
    models, wanted = draw_cases(op, ncase)
    results = run_ours(models, folder)
    wrong, by = [], collections.Counter()
    for m, result, (want, who) in zip(models, results, wanted):
        said = judge(m, result, want, who)
        by[m.case.version, who] += 1
        if result[0] == UNSUPPORTED and want is not None:
            by[m.case.version, counts.UNSUPPORTED] += 1
            if SHOW_UNSUPPORTED:
                print(f"# case {m.case.number} is unsupported: {result[1]}\n#    {m.case}")
            continue
        if said:
            by[m.case.version, counts.WRONG] += 1
            wrong.append((m.case.number, m.case, said))
            keep(m, op, m.case.number)
    return by, wrong


def main():
    ncase = int(sys.argv[1])
    t, found = Points(), {}
    for op in sys.argv[2:] or recipes.operators():
        with scratch() as folder:
            found[op], wrong = check_operator(op, ncase, folder)
        by = collections.Counter()
        for (_, what), n in found[op].items():
            by[what] += n
        told = f"{op}: {sum(by[who] for who in counts.JUDGES)} cases, {by[RUNTIME]} by {RUNTIME}, {by[REFERENCE]} by {REFERENCE}"
        told += f", {by[RECIPE]} by {RECIPE}" if by[RECIPE] else ""
        told += f", {by[NOBODY]} by {NOBODY}" if by[NOBODY] else ""
        told += f"; {by[counts.UNSUPPORTED]} unsupported" if by[counts.UNSUPPORTED] else ""
        t.point(not wrong, told,
                *[f"case {k}: {said}\n    {case}" for k, case, said in wrong[:int(os.environ.get("SHOW", 6))]],
                f"{len(wrong)} wrong")
    if os.environ.get("UPDATE") == "1":
        used = {"cases": ncase, "seed": SEED, "onnx": onnx.__version__, "onnxruntime": ort.__version__, "numpy": np.__version__}
        counts.write(used, {recipes.RECIPES[op][1:3]: by for op, by in found.items()})
    t.end()


if __name__ == "__main__":
    main()
