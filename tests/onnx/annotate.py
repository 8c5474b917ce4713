# SPDX-License-Identifier: Apache-2.0
"""A plan inside a model harms nobody: the checker takes the file, ONNX Runtime
gives the same numbers, weights and version are what they were.  And it is
refused, with status 4, as soon as the model is another one."""
import hashlib
import json
import os
import shutil
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "../models")]
from command import np, onnx, ort, session
from canon import digest
from tap import DATA, Points, SRC, call, models, scratch

P = "org.onnxmem."
SHARED = ("mnist_8", "mnist_quantized", "burn_mnist", "dtln_2", "fastestdet", "magika_v3_3",
          "light_squeezenet", "tract_lgbm_classifier")
t = Points()
ort.set_default_logger_severity(4)


def onnxmem(*args):
    r = call(*args)
    return r.returncode, r.stdout + r.stderr


def plan(model, out, *more):
    return onnxmem("plan", model, out, "--default-dim", "2", *more)


def read(path):
    return onnx.load(path, load_external_data=False)


def write(m, path):
    with open(path, "wb") as f:
        f.write(m.SerializeToString())


def contents(path):
    with open(path, "rb") as f:
        return f.read()


def keys(m):
    return {e.key: e.value for e in m.metadata_props}


# ---- Numbers. ----

KINDS = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
         "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(int8)": np.int8,
         "tensor(uint8)": np.uint8, "tensor(bool)": np.bool_}


def feed(session):
    rng = np.random.default_rng(7)
    out = {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) else 2 for d in i.shape]
        kind = KINDS[i.type]
        some = rng.standard_normal(shape) if np.issubdtype(kind, np.floating) else rng.integers(0, 2, shape)
        out[i.name] = some.astype(kind)
    return out


def numbers(path):
    s = session(path)
    return s.run(None, feed(s))


def same_numbers(a, b):
    return all(np.array_equal(x, y, equal_nan=np.asarray(x).dtype.kind == "f") for x, y in zip(a, b))


# ---- One model. ----

def same_elsewhere(a, b):
    """Weights, versions and words are what they were, byte for byte."""
    weights = [i.SerializeToString() for i in a.graph.initializer]
    return (weights == [i.SerializeToString() for i in b.graph.initializer]
            and a.ir_version == b.ir_version and a.producer_name == b.producer_name
            and list(a.graph.input) == [strip_info(i) for i in b.graph.input])


def strip_info(info):
    copy = onnx.ValueInfoProto()
    copy.CopyFrom(info)
    left = [e for e in copy.metadata_props if not e.key.startswith(P)]
    del copy.metadata_props[:]
    copy.metadata_props.extend(left)
    return copy


def accepted(path):
    try:
        onnx.checker.check_model(path, full_check=True)
        return None
    except Exception as e:
        return str(e)


def checked(name, model, out, tmp):
    before = accepted(model)
    for places in ("model", "model,value"):
        code, said = plan(model, out, "--annotate", places)
        if code == 5:
            t.point(True, f"{name}: not supported")
            return False
        after = accepted(out) if code == 0 else said
        t.point(code == 0 and (before or not after), f"{name}: the checker takes it ({places})", before, after)
        if code:
            return False
        code, said = onnxmem("verify", out)
        t.point(code == 0, f"{name}: verified ({places})", said)
        a, b = read(model), read(out)
        t.point(same_elsewhere(a, b), f"{name}: weights, inputs and version are untouched ({places})")
        try:
            want = numbers(model)
        except Exception as e:
            t.point(True, f"{name}: ONNX Runtime does not run it")
            continue
        t.point(same_numbers(want, numbers(out)), f"{name}: ONNX Runtime gives the same numbers ({places})")
    return True


def resaved(name, out, tmp):
    again = os.path.join(tmp, "again.onnx")
    try:
        session(out, ort.GraphOptimizationLevel.ORT_ENABLE_BASIC, again)
    except Exception:
        return
    kept = keys(read(again)).get(P + "plan") == keys(read(out))[P + "plan"]
    code, said = onnxmem("verify", again)
    t.point(kept and code == 4 and "another graph" in said,
            f"{name}: saved again by ONNX Runtime, the plan is there and refused", kept, code, said)


def stripped(name, model, out, tmp):
    bare, planned = os.path.join(tmp, "bare.onnx"), os.path.join(tmp, "planned.onnx")
    sidecar = os.path.join(tmp, "planned.onnx.memplan.json")
    code, said = plan(model, planned, "--annotate", "model,value", "--compat", "onnxsim", "--sidecar", sidecar)
    t.point(code == 0 and json.load(open(sidecar))["schema"] == "memplan/1", f"{name}: a sidecar is written", said)
    code, said = onnxmem("strip", planned, bare)
    t.point(code == 0 and contents(bare) == contents(model), f"{name}: strip gives the file back byte for byte", said)
    code, said = onnxmem("strip", planned, bare, "--keep-graph")
    left = read(bare).SerializeToString()
    ours = [P + k for k in ("plan", "mem", "alias", "scope", "added", "compat")] + ["onnxsim.mem"]
    t.point(code == 0 and not any(k.encode() in left for k in ours),
            f"{name}: strip --keep-graph leaves nothing", said)
    code, said = onnxmem("verify", bare)
    t.point(code != 0, f"{name}: without a plan there is nothing to verify", said)
    code, said = onnxmem("verify", bare, "--sidecar", sidecar)
    t.point(code == 0, f"{name}: the sidecar alone will do", said)
    code, said = plan(planned, out)
    listed = [e.key for e in read(out).metadata_props]
    t.point(len(listed) == len(set(listed)), f"{name}: planned twice, keys are there once", listed)
    code, said = onnxmem("strip", out, bare)
    t.point(code == 0 and contents(bare) == contents(model), f"{name}: planned twice, strip gives the first file back", said)


# ---- The original in a planned file. ----

def originals(tmp):
    model, planned, bare = (os.path.join(tmp, n + ".onnx") for n in ("whole", "planned", "bare"))
    m = crowded()
    m.functions.append(onnx.helper.make_function("own", "unused", ["a"], ["b"],
                       [onnx.helper.make_node("Neg", ["a"], ["b"])], [onnx.helper.make_opsetid("", 17)]))
    m.graph.node.append(onnx.helper.make_node("Relu", ["x"], ["dead"]))
    write(m, model)
    with open(model, "ab") as f:
        f.write(b"\xfa\x7f\x03own")  # field 2047, which no reader knows
    code, said = plan(model, planned)
    t.point(code == 0 and not read(planned).functions, "a planned file has no dead code", said)
    code, said = onnxmem("strip", planned, bare)
    t.point(code == 0 and contents(bare) == contents(model), "dead nodes, functions and unknown fields come back", said)
    write(read(planned), planned)
    code, said = onnxmem("strip", planned, bare)
    t.point(code == 0 and contents(bare) == contents(model), "saved again by onnx, the original is still there", said)
    changed = read(planned)
    changed.producer_name = "other"
    write(changed, planned)
    code, said = onnxmem("strip", planned, bare)
    t.point(code == 0 and "was changed after it was planned" in said and (P + "plan").encode() not in contents(bare),
            "of a changed file only the plan is removed", code, said)
    for what, damage in (("no method", lambda v: "delta9" + v[6:]), ("another size", lambda v: v.replace(":", ":1", 1)),
                         ("no text", lambda v: v[:-9] + "\u00e4" + v[-8:]), ("cut", lambda v: v[:-40]), ("empty", lambda v: "")):
        plan(model, planned)
        changed = read(planned)
        entry = next(e for e in changed.metadata_props if e.key == P + "plan.original")
        entry.value = damage(entry.value)
        write(changed, planned)
        code, said = onnxmem("strip", planned, bare)
        t.point(code == 0 and "only the plan is removed" in said, f"a damaged original is refused: {what}", code, said)
    plan(model, planned, "--no-original")
    code, said = onnxmem("strip", planned, bare)
    t.point(code == 0 and P + "plan.original" not in keys(read(planned)) and not read(bare).functions,
            "--no-original keeps nothing", code, said)


# ---- Changes that make a plan stale or broken. ----

def swap_nodes(m):
    n = m.graph.node
    first = onnx.NodeProto()
    first.CopyFrom(n[0])
    n[0].CopyFrom(n[1])
    n[1].CopyFrom(first)


def change_reshape(m):
    shapes = {n.input[1] for n in m.graph.node if n.op_type in ("Reshape", "Concat", "Gather")}
    w = next(i for i in m.graph.initializer if i.name in shapes)
    a = onnx.numpy_helper.to_array(w) + 1
    w.CopyFrom(onnx.numpy_helper.from_array(a, w.name))


def rename(m):
    old = m.graph.node[0].output[0]
    for n in m.graph.node:
        for names in (n.input, n.output):
            for k, name in enumerate(names):
                if name == old:
                    names[k] = "another_name"


def change_dim(m):
    m.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 3


def entry(m, key):
    return next(e for e in m.metadata_props if e.key == P + key)


def drop_digest(m):
    m.metadata_props.remove(entry(m, "plan.digest"))


def edit_byte(m):
    e = entry(m, "plan")
    k = e.value.index('"bytes":') + 8
    e.value = e.value[:k] + chr(ord(e.value[k]) ^ 1) + e.value[k + 1:]


def rewrite(m, change):
    """A document that was changed by somebody who knows about the digest."""
    j = json.loads(entry(m, "plan").value)
    change(j)
    text = json.dumps(j, separators=(",", ":"), ensure_ascii=False)
    entry(m, "plan").value = text
    entry(m, "plan.digest").value = "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def double_scope(m):
    rewrite(m, lambda j: j["scopes"].append(j["scopes"][0]))


def overlap(m):
    def change(j):
        for k, row in enumerate(j["scopes"][0]["v"]):
            row[2] = 64 * (k % 2)
        j["arenas"][0]["bytes"] += 64
        j["alias"] = []
    rewrite(m, change)


def other_graph(m):
    def change(j):
        j["graph"] = "canon1:sha256:" + "0" * 64
    rewrite(m, change)


def two_plans(m):
    m.metadata_props.add().CopyFrom(entry(m, "plan"))


CHANGES = (swap_nodes, change_reshape, rename, change_dim, drop_digest, edit_byte, double_scope, overlap,
           other_graph, two_plans)


def refused(model, tmp):
    out = os.path.join(tmp, "changed.onnx")
    for change in CHANGES:
        m = read(model)
        change(m)
        write(m, out)
        code, said = onnxmem("verify", out)
        t.point(code == 4 and "FAILED" in said, "refused: " + change.__name__.replace("_", " "), code, said)


def harmless(model, tmp):
    m = read(model)
    m.doc_string = "other words"
    m.producer_name = "someone else"
    for n in m.graph.node:
        n.name += "_renamed"
    out = os.path.join(tmp, "harmless.onnx")
    write(m, out)
    code, said = onnxmem("verify", out)
    t.point(code == 0, "other words do not matter", said)


# ---- The digest. ----

def example():
    """That of docs/plan-format.md."""
    info = onnx.helper.make_tensor_value_info
    g = onnx.helper.make_graph(
        [onnx.helper.make_node("Relu", ["x"], ["r"]), onnx.helper.make_node("Reshape", ["r", "s"], ["y"])], "g",
        [info("x", 1, ["N", 4])], [info("y", 1, [2, "M"])], [onnx.helper.make_tensor("s", 7, [2], [2, -1])])
    return onnx.helper.make_model(g, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)


def digests(files, tmp):
    path = os.path.join(tmp, "example.onnx")
    write(example(), path)
    said = onnxmem("hash", path)[1].strip()
    text = open(os.path.join(SRC, "docs", "plan-format.md"), encoding="utf-8").read()
    t.point(said in text, "the digest of the example is that of the document", said)
    wrong = []
    for f in files:
        for more in ([], ["--full"]):
            said = onnxmem("hash", f, *more)[1].strip()
            want = digest(read(f), bool(more), os.path.dirname(f))
            if said != want:
                wrong.append(f"{f}: {said}, should be {want}")
    t.point(not wrong, f"digests of {len(files)} models follow the document", *wrong)


# ---- Another order. ----

def crowded():
    """Both the graph and the branch do better in another order; some shapes are known before."""
    node, info = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    inner = onnx.helper.make_graph(
        [node("Exp", ["t"], ["big_in"]), node("Concat", ["t", "t"], ["a_in"], axis=1),
         node("ReduceMax", ["a_in"], ["s_in"], axes=[1]), node("Shape", ["t"], ["dims_in"]),
         node("Mul", ["big_in", "s_in"], ["n_in"]), node("Reshape", ["n_in", "dims_in"], ["m_in"]),
         node("Transpose", ["m_in"], ["out_in"], perm=[1, 0])], "inner", [], [info("out_in", 1, [4, 64])])
    other = onnx.helper.make_graph([node("Transpose", ["t"], ["out_else"], perm=[1, 0])], "other", [],
                                   [info("out_else", 1, [4, 64])])
    g = onnx.helper.make_graph(
        [node("Transpose", ["x"], ["u"], perm=[1, 0]), node("Transpose", ["u"], ["t"], perm=[1, 0]),
         node("Exp", ["x"], ["big"]), node("Concat", ["t"] * 5, ["wide"], axis=1),
         node("ReduceMax", ["wide"], ["s"], axes=[1]), node("Shape", ["big"], ["dims"]),
         node("Mul", ["big", "s"], ["n"]), node("Reshape", ["n", "dims"], ["m"]),
         node("If", ["go"], ["v"], then_branch=inner, else_branch=other),
         node("Transpose", ["v"], ["w"], perm=[1, 0]), node("Add", ["m", "w"], ["z"]),
         node("Transpose", ["z"], ["y"], perm=[1, 0])], "crowded",
        [info("x", 1, [64, 4]), info("go", 9, [])], [info("y", 1, [4, 64])])
    return onnx.helper.make_model(g, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)


def nested(as_function):
    """An If in each branch of an If, with outputs of one name; in a function, or in the graph."""
    h = onnx.helper
    node, info = h.make_node, h.make_tensor_value_info
    value = info("y", 1, [4])

    def branch(kind):
        inner = [h.make_graph([node(k, ["x"], ["y"])], k, [], [value]) for k in (kind, "Neg")]
        return h.make_graph([node("If", ["c"], ["y"], then_branch=inner[0], else_branch=inner[1])], kind, [], [value])

    choose = node("If", ["c"], ["z"], then_branch=branch("Exp"), else_branch=branch("Abs"))
    opsets = [h.make_opsetid("", 17), h.make_opsetid("made.up", 1)]
    f = h.make_function("made.up", "F", ["x", "c"], ["z"], [choose], opsets[:1])
    first = node("F", ["x", "c"], ["z"], domain="made.up") if as_function else choose
    g = h.make_graph([first, node("Sqrt", ["z"], ["w"])], "nested", [info("x", 1, [4]), info("c", 9, [])],
                     [info("w", 1, [4])])
    return h.make_model(g, opset_imports=opsets, functions=[f] if as_function else [], ir_version=8)


def scopes(tmp):
    for as_function in (False, True):
        what = "a function's" if as_function else "nested"
        model, out = (os.path.join(tmp, n) for n in ("nested.onnx", "nested_out.onnx"))
        write(nested(as_function), model)
        code, said = onnxmem("plan", model, out)
        t.point(code == 0, f"{what} scopes are planned", said)
        code, said = onnxmem("verify", out)
        t.point(code == 0, f"{what} scopes are found again", said)
        paths = [s["path"] for s in json.loads(keys(read(out))[P + "plan"])["scopes"]]
        deep = [p for p in paths if p.count("/") >= 3]
        t.point(len(set(paths)) == len(paths) and len(deep) == 4, f"{what} scopes have the path of the scope around them",
                paths)


# ---- Plans that were found to be refused by who wrote them. ----

def recomputed():
    """A cheap value whose size follows from a declared one, read at both ends of a peak."""
    h = onnx.helper
    node, info = h.make_node, h.make_tensor_value_info
    g = h.make_graph(
        [node("Op", ["x"], ["r"], domain="made.up"), node("Exp", ["r"], ["h"]), node("Expand", ["h", "e"], ["a"]), node("Sin", ["a"], ["b"]),
         node("Concat", ["b", "a"], ["c"], axis=0), node("ReduceMax", ["c"], ["m"], keepdims=0), node("Add", ["h", "m"], ["s"]),
         node("ReduceMean", ["s"], ["y"], keepdims=0)], "recomputed", [info("x", 1, [1024])], [info("y", 1, [])],
        [h.make_tensor("e", 7, [2], [16, 1024])], value_info=[info("r", 1, [1024])])
    return h.make_model(g, opset_imports=[h.make_opsetid("", 17), h.make_opsetid("made.up", 1)], ir_version=8)


def odd():
    """States of a loop that change places, beside values of an odd number of bytes."""
    h = onnx.helper
    node, info = h.make_node, h.make_tensor_value_info
    body = h.make_graph(
        [node("Tanh", ["p"], ["q"]), node("Identity", ["c"], ["d"]), node("Identity", ["r"], ["r2"]), node("Identity", ["q"], ["q2"])],
        "body", [info("i", 7, []), info("c", 9, []), info("p", 1, [2]), info("r", 1, [2])],
        [info("d", 9, []), info("r2", 1, [2]), info("q2", 1, [2])])
    g = h.make_graph(
        [node("Greater", ["y", "y"], ["m"]), node("Exp", ["x"], ["a"]), node("Neg", ["x"], ["a2"]),
         node("Loop", ["n", "", "a", "a2"], ["o", "o2"], body=body), node("Add", ["o", "o2"], ["z"]), node("Not", ["m"], ["k"]),
         node("Where", ["k", "y", "x"], ["w"]), node("Mul", ["z", "w"], ["out"])], "odd",
        [info("n", 7, []), info("x", 1, [2]), info("y", 1, [13, 1])], [info("out", 1, [13, 2])])
    return h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


def control(branch_outputs, loop_outputs):
    """An If and a Loop, whose bodies have these outputs: names of values of the bodies."""
    h = onnx.helper
    node, info = h.make_node, h.make_tensor_value_info
    kinds = {"one": (1, [4]), "bit": (9, []), "wide": (1, [8])}
    made = [node("Neg", ["x"], ["one"]), node("Concat", ["x", "x"], ["wide"], axis=0), node("Not", ["c"], ["bit"])]

    def graph(name, inputs, outs):
        return h.make_graph(made, name, inputs, [info(n, *kinds[n]) for n in outs])

    loop = graph("body", [info("i", 7, []), info("c2", 9, []), info("s", 1, [4])], loop_outputs)
    g = h.make_graph(
        [node("If", ["c"], ["a"], then_branch=graph("then", [], branch_outputs), else_branch=graph("else", [], ["one"])),
         node("Loop", ["n", "", "a"], ["b"], body=loop)], "control", [info("x", 1, [4]), info("c", 9, []), info("n", 7, [])],
        [info("b", 1, [4])])
    return h.make_model(g, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


def own(tmp):
    model, out = (os.path.join(tmp, n) for n in ("own.onnx", "own_out.onnx"))
    for what, m, more in (("a recomputed value of declared size", recomputed(), ("--rematerialize", "50")),
                          ("alignment 1", odd(), ("--align", "1")), ("branches and a loop", control(["one"], ["bit", "one"]), ())):
        write(m, model)
        code, said = onnxmem("plan", model, out, *more)
        t.point(code == 0, f"{what}: is planned", said)
        code, said = onnxmem("verify", out)
        t.point(code == 0, f"{what}: the plan that was written is verified", said)
    for what, branch, loop in (("a branch without outputs", [], ["bit", "one"]), ("a branch with two", ["one", "bit"], ["bit", "one"]),
                               ("a branch of another type", ["bit"], ["bit", "one"]), ("a body without its state", ["one"], ["bit"]),
                               ("a body with more than the Loop", ["one"], ["bit", "one", "one"]),
                               ("a condition that is no bool", ["one"], ["one", "one"])):
        write(control(branch, loop), model)
        code, said = onnxmem("plan", model, out)
        t.point(code == 1, f"{what}: the model is refused, not the plan", code, said)


def outputs(path, tmp, *more):
    to = os.path.join(tmp, "outputs.npz")
    code, said = onnxmem("run", path, "--data", os.path.join(tmp, "feed.npz"), "--save", to, *more)
    if code:
        return said
    with np.load(to) as f:
        return {k: f[k] for k in f.files}


def reordered(tmp):
    model, out, side = (os.path.join(tmp, n) for n in ("crowded.onnx", "quiet.onnx", "crowded.json"))
    write(crowded(), model)
    x = np.random.default_rng(1).standard_normal((64, 4)).astype(np.float32)
    np.savez(os.path.join(tmp, "feed.npz"), x=x, go=np.array(True))
    code, said = onnxmem("plan", model, out)
    t.point(code == 0 and not accepted(out), "in another order: the checker takes it", said, accepted(out))
    a, b = read(model), read(out)
    order = [[n.output[0] for n in m.graph.node] for m in (a, b)]
    inner = [[n.output[0] for i in m.graph.node for branch in i.attribute if branch.name == "then_branch"
              for n in branch.g.node] for m in (a, b)]
    document = json.loads(keys(b)[P + "plan"])
    t.point(order[0] != order[1] and sorted(order[0]) == sorted(order[1]), "the file is in the plan's order", order)
    t.point(inner[0] != inner[1] and sorted(inner[0]) == sorted(inner[1]), "and so are bodies", inner)
    t.point(document["order"] == "file", "the plan says that it follows the file", document["order"])
    feeds = {"x": x, "go": np.array(True)}
    want, got = (session(m).run(None, feeds)[0] for m in (model, out))
    t.point(np.array_equal(want, got), "ONNX Runtime gives the same numbers")
    ways = [outputs(out, tmp, *how) for how in ((), ("--no-reuse",), ("--poison",))]
    ways.append(outputs(model, tmp, "--no-reuse", "--passes", "inline,shapes,fold"))
    code, said = onnxmem("plan", model, "--sidecar", side)
    t.point(code == 0, "a document for the file as it is", said)
    document = json.load(open(side))
    t.point(sorted(document["order"]) == list(range(len(order[0])))
            and [order[0][k] for k in document["order"]] == order[1], "lists its nodes", document["order"])
    lists = [s["order"] for s in document["scopes"] if "order" in s]
    t.point(len(lists) == 1 and [inner[0][k] for k in lists[0]] == inner[1], "and those of bodies", lists)
    code, said = onnxmem("verify", model, "--sidecar", side)
    t.point(code == 0, "it is verified", said)
    ways += [outputs(model, tmp, "--sidecar", side, *how) for how in ((), ("--poison",))]
    same = all(isinstance(w, dict) and np.array_equal(w["y"], ways[0]["y"]) for w in ways)
    t.point(same, "planned, poisoned, without reuse, by the document: the same numbers", *map(str, ways[:6]))
    for what, order in (("twice", [0, 0] + document["order"][2:]), ("short", document["order"][1:]),
                        ("backwards", document["order"][::-1]), ("no list", "any"), ("beyond", [99] * 9)):
        with open(side, "w") as f:
            json.dump({**document, "order": order}, f)
        code, said = onnxmem("verify", model, "--sidecar", side)
        t.point(code == 4 and "order" in said, f"a wrong order is refused: {what}", code, said)
    dead = crowded()
    dead.graph.node.append(onnx.helper.make_node("Relu", ["x"], ["no value"]))
    write(dead, model)
    code, said = onnxmem("plan", model, "--sidecar", side)
    t.point(code != 0 and "only a copy" in said, "nodes taken out: no document for the file as it is", code, said)


ours, _, _ = models()
shared = [os.path.join(DATA, "models", n + ".onnx") for n in SHARED]
shared = [f for f in shared if os.path.exists(f)]
with scratch() as tmp:
    shutil.copy(os.path.join(SRC, "models", "external.data"), tmp)
    digests(ours + shared, tmp)
    for f in ours + shared:
        label, to = os.path.basename(f), os.path.join(tmp, "out.onnx")
        if os.path.exists(to):
            os.unlink(to)
        if checked(label, f, to, tmp):
            resaved(label, to, tmp)
            stripped(label, f, to, tmp)
    dynamic = os.path.join(tmp, "dynamic.onnx")
    plan(os.path.join(SRC, "models", "dynamic.onnx"), dynamic)
    t.point(onnxmem("verify", dynamic)[0] == 0, "unchanged, it is verified")
    refused(dynamic, tmp)
    harmless(dynamic, tmp)
    originals(tmp)
    reordered(tmp)
    scopes(tmp)
    own(tmp)
t.end()
