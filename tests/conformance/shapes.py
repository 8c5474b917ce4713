# SPDX-License-Identifier: Apache-2.0
"""Types and shapes beside those that onnx.shape_inference finds, strictly and
with propagation of data: never another one, and never less.

    shapes.py [WORD...]

of our models, the shared ones, and the backend tests, or those whose paths have
one of the words in them.  UPDATE=1 writes docs/shapes.md."""
import os
import subprocess
import sys
import warnings

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "../onnx")]
from tap import DATA, SRC, Points, models, skip_all

try:
    import onnx
    from onnx import shape_inference
except ImportError as why:
    skip_all(f"{why}; PYTHON names an interpreter that has onnx")

warnings.simplefilter("ignore")
PROGRAM = os.path.join(os.environ.get("abs_builddir", "."), "tests/conformance/shapes")
LARGE = 300 << 20  # bytes of a model that takes onnx too long
TYPES = {v: k.lower() for k, v in onnx.TensorProto.DataType.items()}
TYPES.update({onnx.TensorProto.FLOAT: "float32", onnx.TensorProto.DOUBLE: "float64"})
for k, v in list(TYPES.items()):
    TYPES[k] = v.replace("_", "")


def ours(paths):
    """By path: values by name, or a sentence."""
    said = subprocess.run([PROGRAM], input="\n".join(paths) + "\n", text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, timeout=600, errors="replace").stdout
    found, now = {}, None
    for line in said.splitlines():
        words = line.split("\t")
        if words[0] == "model":
            now = found[words[1]] = {}
        elif words[0] == "failed":
            found[list(found)[-1]] = "\t".join(words[1:])
        else:
            dims = None if words[2] == "?.." else words[2].split(",") if words[2] else []
            now[words[0]] = words[1], dims
    return found


def infer(model):
    """As strictly as the model bears."""
    for strict, data in ((True, True), (False, True), (False, False)):
        try:
            return shape_inference.infer_shapes(model, check_type=strict, strict_mode=strict, data_prop=data)
        except Exception:
            pass
    return None


# Elements decide the sizes of their outputs: what a file declares there holds for the inputs that its exporter had.
DECIDED_BY_DATA = {"NonZero", "NonMaxSuppression", "Compress", "Unique", "StringNormalizer", "StringSplit",
                   "ImageDecoder"}


def ranks(graph, of):
    """Add ranks by name, as far as they are declared or inferred."""
    for v in list(graph.input) + list(graph.value_info) + list(graph.output):
        if v.type.HasField("tensor_type") and v.type.tensor_type.HasField("shape"):
            of[v.name] = len(v.type.tensor_type.shape.dim)
    return of


def bodies(node):
    return [g for a in node.attribute for g in ([a.g] if a.HasField("g") else list(a.graphs))]


def drop_in(graph, told, reached, rank):
    """Of a graph and its bodies; `told` are values whose elements only a run tells."""
    ranks(graph, rank)
    told.update({v.name for v in graph.input} - {t.name for t in graph.initializer})
    for n in graph.node:
        inside = [drop_in(g, told, reached, rank) for g in bodies(n)]
        if n.op_type not in ("Shape", "Size") and (inside or told.intersection(n.input)):
            told.update(n.output)
        if n.op_type in DECIDED_BY_DATA or reached.intersection(n.input) or any(inside) \
                or any(i in told and rank.get(i, 2) <= 1 for i in n.input):
            reached.update(n.output)
    kept = [v for v in graph.value_info if v.name not in reached]
    del graph.value_info[:]
    graph.value_info.extend(kept)
    for v in graph.output:
        if v.name in reached and v.type.HasField("tensor_type"):
            v.type.tensor_type.ClearField("shape")
    return any(v.name in reached for v in graph.output)


def drop_hints(model):
    """Remove the declarations of values that such a size may reach: also of any op that reads a list, or a number, that
    only a run tells."""
    drop_in(model.graph, set(), set(), ranks((infer(model) or model).graph, {}))


def theirs(path):
    """Types and dims by name, as far as onnx knows them; and symbols that the file has."""
    if os.path.getsize(path) > LARGE:
        return None, None
    model = onnx.load(path, load_external_data=False)
    known = {i.name for i in model.graph.initializer}
    symbols = {d.dim_param for i in list(model.graph.input) + list(model.graph.value_info) + list(model.graph.output)
               for d in i.type.tensor_type.shape.dim if d.dim_param}
    drop_hints(model)
    inferred = infer(model)
    values = {}
    if inferred is None:
        return None, None
    made = {o for n in model.graph.node for o in n.output}
    for v in list(inferred.graph.value_info) + list(inferred.graph.output):
        t = v.type.tensor_type
        if v.type.HasField("tensor_type") and v.name in made and v.name not in known:
            dims = None
            if t.HasField("shape"):
                dims = [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in t.shape.dim]
            values[v.name] = TYPES.get(t.elem_type, "undefined"), dims
    return values, symbols


def is_number(d):
    return isinstance(d, str) and d.lstrip("-").isdigit()


# What a file declares of the sizes of elements of sequences and optionals is a hint, because each may have others: outputs
# that are such elements have no sizes before a run.
HINTS = {"test_optional_get_element_optional_tensor": ["output"], "test_sequence_model1": ["out"], "test_sequence_model5": ["out"]}


def compare(name, mine, other, symbols):
    """"", or what contradicts; and what we do not know."""
    (type_, dims), (their_type, their_dims) = mine, other
    if type_ != their_type and "undefined" not in (type_, their_type):
        return f"{name}: type {type_}, onnx says {their_type}", None
    less = None
    if type_ == "undefined" != their_type:
        less = f"{name}: no type, onnx says {their_type}"
    if their_dims is None:
        return "", less
    if dims is None:
        return "", f"{name}: no rank, onnx says {their_dims}"
    if len(dims) != len(their_dims):
        return f"{name}: {dims}, onnx says {their_dims}", less
    for a, b in zip(dims, their_dims):
        if isinstance(b, int) and is_number(a) and int(a) != b:
            return f"{name}: {dims}, onnx says {their_dims}", less
        if isinstance(b, int) and not is_number(a) or (isinstance(b, str) and b in symbols and a == "?"):
            less = f"{name}: {dims}, onnx says {their_dims}"
    return "", less


class Count:
    def __init__(self):
        self.models = self.values = self.same = self.more = self.less = self.wrong = self.failed = 0


def knows_more(mine, other):
    return other[0] == "undefined" != mine[0] or (mine[1] is not None and (
        other[1] is None or any((is_number(a) or a != "?") and b is None for a, b in zip(mine[1], other[1]))))


def check(path, found, count, lines):
    values, symbols = theirs(path)
    count.models += 1
    mine = found.get(path)
    short = os.path.relpath(path, DATA)
    if not isinstance(mine, dict):
        if values:
            count.failed += 1
            lines.append(f"{short}: {mine}")
        return
    for name, other in (values or {}).items():
        if name not in mine:
            continue
        count.values += 1
        wrong, less = compare(name, mine[name], other, symbols)
        if wrong:
            count.wrong += 1
            lines.append(f"{short}: {wrong}")
        elif less and name not in HINTS.get(os.path.basename(os.path.dirname(path)), ()):
            count.less += 1
            lines.append(f"{short}: less: {less}")
        elif knows_more(mine[name], other):
            count.more += 1
        else:
            count.same += 1


def write_table(counts):
    with open(os.path.join(SRC, "docs", "shapes.md"), "w") as f:
        f.write("# What is inferred, beside onnx.shape_inference\n\n"
                "Written by `make check UPDATE=1 TESTS=tests/conformance/shapes.test`; do not edit.\n\n"
                f"Types and shapes of what nodes give, before any input is known, beside onnx {onnx.__version__}, strict and\n"
                "with propagation of data where a model bears that.  *More* are values of which we know more.\n\n"
                "| models | number | values | the same | more | less | contradictions | refused |\n|---|---|---|---|---|---|---|---|\n")
        for name, c in counts.items():
            f.write(f"| {name} | {c.models} | {c.values} | {c.same} | {c.more} | {c.less} | {c.wrong} | {c.failed} |\n")


def main():
    own, shared, backend = models()
    words = sys.argv[1:]
    groups = {"ours": own}
    for p in shared:
        groups.setdefault(os.path.basename(os.path.dirname(p)), []).append(p)
    for p in backend:
        groups.setdefault("backend " + p.split(os.sep)[-3], []).append(p)
    t, counts = Points(), {}
    for name, paths in groups.items():
        paths = [p for p in paths if not words or any(w in p for w in words)]
        if not paths:
            continue
        found, count, lines = ours(paths), Count(), []
        for p in paths:
            check(p, found, count, lines)
        counts[name] = count
        t.point(not count.wrong and not count.less and not count.failed, f"{name}: {count.models} models, {count.values} values, "
                f"{count.same} the same, {count.more} more, {count.less} less, {count.wrong} contradictions, "
                f"{count.failed} refused", *lines[:int(os.environ.get("SHOW", 30))])
    if os.environ.get("UPDATE") == "1" and not words:
        write_table(counts)
    t.end()


if __name__ == "__main__":
    main()
