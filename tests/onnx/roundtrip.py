# SPDX-License-Identifier: Apache-2.0
"""A model that is loaded and saved says what it said: same messages, same
fields, unknown ones as well.  The same through a program and back, where the
program was not changed."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tap import Points, models, scratch, skip_all

try:
    import numpy as np
    import onnx
    from onnx.reference import ReferenceEvaluator
except ImportError as e:
    skip_all(str(e))

RESAVE = os.path.join(os.environ.get("abs_builddir", "."), "tests", "onnx", "resave")
t = Points()


def read(path):
    m = onnx.ModelProto()
    with open(path, "rb") as f:
        m.ParseFromString(f.read())
    return m


def resave(how, files, folder):
    os.makedirs(folder)
    r = subprocess.run([RESAVE, how, folder] + files, capture_output=True, text=True)
    return r.stdout + r.stderr


def bytes_of(m):
    return m.SerializeToString(deterministic=True)


def sorted_nodes(m):
    """The model with its nodes in no order, to compare those that were sorted."""
    nodes = sorted(n.SerializeToString(deterministic=True) for n in m.graph.node)
    c = onnx.ModelProto()
    c.CopyFrom(m)
    del c.graph.node[:]
    return nodes, bytes_of(c)


def check(what, how, files, same=None):
    if not files:
        return
    with scratch() as tmp:
        out = os.path.join(tmp, "out")
        said = resave(how, files, out)
        wrong = []
        for k, f in enumerate(files):
            to = os.path.join(out, f"{k}.onnx")
            if not os.path.exists(to):
                wrong.append(f + " was not saved")
                continue
            a, b = read(f), read(to)
            if bytes_of(a) != bytes_of(b) and not (same and same(a, b)):
                wrong.append(f + " differs")
        t.point(not wrong, f"{what}: {len(files)} models", *wrong[:20], said)


def is_resorted(a, b):
    """Equal but for the order of nodes, and only where the file's was wrong."""
    try:
        onnx.checker.check_model(a)
        return False
    except onnx.checker.ValidationError:
        return sorted_nodes(a) == sorted_nodes(b)


def with_inner_names(graph, around=()):
    """What a body takes is called NAME.inner where that hides one around it."""
    mine = {i.name for i in graph.input}
    hides = {n for n in mine if n in around}
    for v in graph.input:
        v.name += ".inner" * (v.name in hides)
    for n in graph.node:
        for k, name in enumerate(n.input):
            n.input[k] += ".inner" * (name in hides)
    seen = set(around) | mine | {t.name for t in graph.initializer}
    for n in graph.node:
        for a in n.attribute:
            for g in ([a.g] if a.HasField("g") else []) + list(a.graphs):
                with_inner_names(g, seen)
        seen |= set(n.output)


def same_without_functions(a, b):
    """A function that nobody calls goes when the model is updated."""
    del a.functions[:], b.functions[:]
    if bytes_of(a) == bytes_of(b) or is_resorted(a, b):
        return True
    with_inner_names(a.graph)
    return bytes_of(a) == bytes_of(b)


def strange():
    """Unknown fields, explicit zeros and empty strings at many places."""
    m = read(os.path.join(os.environ.get("srcdir", "."), "models", "loop.onnx"))
    unknown = bytes([0xb8, 0x3e, 0x2a]) + bytes([0xc2, 0x3e, 0x03]) + b"abc"  # fields 999, 1000
    for part in (m.graph.node[0], m.graph.node[1].attribute[0], m.graph.input[0],
                 m.graph.initializer[0], m.graph, m.opset_import[0]):
        part.MergeFromString(unknown)
    m.MergeFromString(unknown)
    m.model_version = 0
    m.doc_string = ""
    m.graph.initializer[1].doc_string = ""
    m.graph.initializer[1].data_location = onnx.TensorProto.DEFAULT
    a = m.graph.node[0].attribute.add(name="zero", type=onnx.AttributeProto.INT)
    a.i = 0
    m.training_info.add().initialization.name = "start"
    m.configuration.add(name="devices", num_devices=2)
    return m


own, shared, backend = models()
for what, files in (("our models", own), ("shared models", shared), ("backend models", backend)):
    check(what + " loaded and saved", "plain", files)
    check(what + " through a program and back", "update", files, same_without_functions)

with scratch() as tmp:
    odd = os.path.join(tmp, "odd.onnx")
    with open(odd, "wb") as f:
        f.write(bytes_of(strange()))
    check("unknown fields and zeros", "plain", [odd])
    check("unknown fields and zeros, through a program", "update", [odd])

with scratch() as tmp:
    src = os.path.join(os.environ.get("srcdir", "."), "models")
    for f in ("external.onnx", "external.data"):
        shutil.copy(os.path.join(src, f), tmp)
    out = os.path.join(tmp, "out")
    said = resave("plain", [os.path.join(tmp, "external.onnx")], out)
    there = os.path.join(out, "external.data")
    t.point(os.path.exists(there) and not os.path.samefile(there, os.path.join(tmp, "external.data")),
            "external data is copied into the new folder", said)
    try:
        onnx.load(os.path.join(out, "0.onnx"))
        onnx.load(os.path.join(tmp, "external.onnx"))
        t.point(True, "and both models load")
    except Exception as e:
        t.point(False, "and both models load", e)

# Functions inlined: the same numbers, and the checker content.
with scratch() as tmp:
    src = os.path.join(os.environ.get("srcdir", "."), "models", "function.onnx")
    out = os.path.join(tmp, "out")
    said = resave("inline", [src], out)
    after = read(os.path.join(out, "0.onnx"))
    onnx.checker.check_model(after, full_check=True)
    x = (np.arange(6, dtype=np.float32) - 3).reshape(2, 3)
    lean = lambda v, slope: np.where(v < 0, np.float32(slope) * v, v)
    want = lean(lean(2 * lean(2 * x, 0.25), 0.125) + x, 0.25)
    got = ReferenceEvaluator(after).run(None, {"x": x})[0]
    t.point(not after.functions and np.allclose(want, got, rtol=1e-6),
            "functions inlined give the right numbers", said, want, got)
t.end()
