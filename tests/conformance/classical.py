"""Classical machine learning: what our kernels say is what onnxruntime says, on
models with random coefficients.  Every case runs planned and poisoned.  A fifth of
them, unless ONNXMEM_MANY is set."""
import itertools
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "onnx"))
from tap import Points, scratch, skip_all

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as e:
    skip_all(str(e))

ONNXMEM = os.environ.get("ONNXMEM", os.path.join(os.environ.get("abs_builddir", "."), "onnxmem"))
POSTS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
STEP = 1 if os.environ.get("ONNXMEM_MANY") else 5
r = random.Random(5)


def floats(n, low=-2.0, high=2.0):
    return [float(np.float32(r.uniform(low, high))) for _ in range(n)]


def features(rows, n, dtype=np.float32):
    x = np.array([[r.uniform(-3, 3) for _ in range(n)] for _ in range(rows)])
    return x.astype(dtype)


def model(op, inputs, outputs, version, attrs):
    types = {np.dtype(np.float32): 1, np.dtype(np.float64): 11, np.dtype(np.int64): 7, np.dtype(np.int32): 6,
             np.dtype(object): 8}
    ins = [helper.make_tensor_value_info(f"x{k}", types[x.dtype], x.shape) for k, x in enumerate(inputs)]
    node = helper.make_node(op, [i.name for i in ins], [o.name for o in outputs], domain="ai.onnx.ml", **attrs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(helper.make_graph([node], op, ins, outputs), opset_imports=opsets, ir_version=9)


def out(name, kind):
    return helper.make_tensor_value_info(name, kind, None)


def tensor(x, name):
    return numpy_helper.from_array(x, name)


def message(value, name):
    if isinstance(value, list) and value and isinstance(value[0], dict):
        to = onnx.SequenceProto(name=name, elem_type=onnx.SequenceProto.MAP)
        for item in value:
            entry = to.map_values.add()
            keys = list(item)
            text = isinstance(keys[0], str)
            entry.key_type = TensorProto.STRING if text else TensorProto.INT64
            (entry.string_keys if text else entry.keys).extend([k.encode() for k in keys] if text else keys)
            entry.values.elem_type = onnx.SequenceProto.TENSOR
            entry.values.tensor_values.extend(tensor(np.float32(v), "") for v in item.values())
        return to
    return tensor(np.asarray(value), name)


def write(folder, kind, values):
    for k, value in enumerate(values):
        with open(os.path.join(folder, f"{kind}_{k}.pb"), "wb") as f:
            f.write(message(value, f"{kind}{k}").SerializeToString())


def ask(make, inputs):
    """onnxruntime; of operators that it has for float32 only, with float32."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    for cast in (lambda x: x, lambda x: x if x.dtype == object else x.astype(np.float32)):
        fed = [cast(x) for x in inputs]
        try:
            session = onnxruntime.InferenceSession(make(fed).SerializeToString(), options)
        except Exception as why:
            if "NOT_IMPLEMENTED" not in str(why):
                raise
            continue
        return session.run(None, {f"x{k}": x for k, x in enumerate(fed)})
    return None


def compare(make, inputs, folder):
    """None, or what differs."""
    path = os.path.join(folder, "model.onnx")
    onnx.save(make(inputs), path)
    want = ask(make, inputs)
    if want is None:
        return "onnxruntime has no kernel"
    if any(np.asarray(w).dtype.kind == "f" and not np.isfinite(w).all() for w in want if not isinstance(w, list)):
        return None  # both were asked for what is not defined
    write(folder, "input", inputs)
    write(folder, "output", want)
    for way in ([], ["--poison"]):
        p = subprocess.run([ONNXMEM, "run", path, "--data", folder, "--expect", folder, "--rtol", "1e-3",
                            "--atol", "1e-4", *way], capture_output=True, text=True)
        if p.returncode:
            return p.stderr.strip().splitlines()[-1:] or p.stdout[-300:]
    return None


# ---- Cases. ----

def linear():
    for post, targets, dtype in itertools.product(POSTS, (1, 3), (np.float32, np.float64, np.int64, np.int32)):
        x = features(4, 5, dtype)
        small = post == "PROBIT"
        w, b = floats(5 * targets, -0.02, 0.02) if small else floats(5 * targets), [0.5] * targets
        if targets > 1 or post in ("NONE", "PROBIT"):  # of one target ORT computes no other
            yield "LinearRegressor", [x], [out("y", 1)], 1, dict(coefficients=w, intercepts=b, targets=targets,
                                                                 post_transform=post)
    for post, classes, text in itertools.product(POSTS, (2, 3), (False, True)):
        x = features(6, 4)
        small = post == "PROBIT"
        labels = {"classlabels_strings": ["a", "bb", "c"][:classes]} if text else {"classlabels_ints": [3, 5, 9][:classes]}
        yield ("LinearClassifier", [x], [out("y", 8 if text else 7), out("z", 1)], 1,
               dict(coefficients=floats(4 * classes, -0.02, 0.02) if small else floats(4 * classes),
                    intercepts=[0.5] * classes if small else floats(classes), post_transform=post, **labels))
    yield ("LinearClassifier", [features(6, 4)], [out("y", 7), out("z", 1)], 1,
           dict(coefficients=floats(4), intercepts=[0.5], classlabels_ints=[3, 7]))


def machines():
    for kernel, one in itertools.product(("LINEAR", "POLY", "RBF", "SIGMOID"), (0, 1)):
        yield ("SVMRegressor", [features(5, 3)], [out("y", 1)], 1,
               dict(kernel_type=kernel, kernel_params=[0.3, 0.1, 2.0], n_supports=4, support_vectors=floats(12),
                    coefficients=floats(4), rho=floats(1), one_class=one))
    yield "SVMRegressor", [features(5, 3)], [out("y", 1)], 1, dict(coefficients=floats(3), rho=floats(1), kernel_params=[0.0] * 3)
    for kernel, classes, proba, post, text in itertools.product(("LINEAR", "RBF", "POLY", "SIGMOID"), (2, 3, 4), (0, 1),
                                                                ("NONE", "LOGISTIC", "SOFTMAX"), (0, 1)):
        if classes == 2 and post == "SOFTMAX" and not proba:
            continue  # onnxruntime computes none
        each = [2, 3, 1, 2][:classes]
        n, pairs = sum(each), classes * (classes - 1) // 2
        labels = {"classlabels_strings": list("abcd")[:classes]} if text else {"classlabels_ints": [4, 7, 9, 2][:classes]}
        attrs = dict(kernel_type=kernel, kernel_params=[0.3, 0.1, 2.0], vectors_per_class=each, rho=floats(pairs),
                     support_vectors=floats(3 * n), coefficients=floats(n * (classes - 1)), post_transform=post, **labels)
        if proba:
            attrs.update(prob_a=floats(pairs, -2, -0.5), prob_b=floats(pairs))
        yield "SVMClassifier", [features(6, 3)], [out("y", 8 if text else 7), out("z", 1)], 1, attrs
    for classes in (3, 4):
        yield ("SVMClassifier", [features(6, 3)], [out("y", 7), out("z", 1)], 1,
               dict(coefficients=floats(3 * classes), rho=[0.25], classlabels_ints=[5, 6, 7, 8][:classes],
                    kernel_params=[0.0] * 3))


def grow(tree, nodes, depth, modes, nfeature):
    """A random tree; the numbers of its leaves."""
    me = len([n for n in nodes if n["tree"] == tree])
    node = dict(tree=tree, id=me, mode="LEAF", feature=0, value=0.0, yes=0, no=0, missing=0)
    nodes.append(node)
    if depth == 0 or (depth < 3 and r.random() < 0.2):
        return [(tree, me)]
    node.update(mode=r.choice(modes), feature=r.randrange(nfeature), value=round(r.uniform(-2, 2), 1),
                missing=r.randrange(2))
    leaves = []
    for way in ("yes", "no"):
        node[way] = len([n for n in nodes if n["tree"] == tree])
        leaves += grow(tree, nodes, depth - 1, modes, nfeature)
    return leaves


def forest(ntree, depth, modes, nfeature=4):
    nodes, leaves = [], []
    for tree in range(ntree):
        leaves += grow(tree, nodes, depth, modes, nfeature)
    return leaves, dict(
        nodes_treeids=[n["tree"] for n in nodes], nodes_nodeids=[n["id"] for n in nodes],
        nodes_modes=[n["mode"] for n in nodes], nodes_featureids=[n["feature"] for n in nodes],
        nodes_values=[n["value"] for n in nodes], nodes_truenodeids=[n["yes"] for n in nodes],
        nodes_falsenodeids=[n["no"] for n in nodes], nodes_missing_value_tracks_true=[n["missing"] for n in nodes])


def trees():
    modes = [["BRANCH_LEQ"], ["BRANCH_LT"], ["BRANCH_GTE", "BRANCH_GT"], ["BRANCH_EQ", "BRANCH_NEQ", "BRANCH_LEQ"]]
    for mode, how, targets, version in itertools.product(modes, ("SUM", "AVERAGE", "MIN", "MAX"), (1, 3), (1, 3)):
        leaves, attrs = forest(3, 3, mode)
        x = np.round(features(8, 4), 1)
        votes = [leaf for leaf in leaves for _ in range(1 if targets == 1 else targets)]
        attrs.update(target_treeids=[v[0] for v in votes], target_nodeids=[v[1] for v in votes],
                     target_ids=[k % targets for k in range(len(votes))], target_weights=floats(len(votes)),
                     n_targets=targets, aggregate_function=how, base_values=floats(targets))
        yield "TreeEnsembleRegressor", [x], [out("y", 1)], version, attrs
    # Of two classes with votes for both, onnxruntime does not take the one that has more; of two classes
    # with votes for one, it computes no softmax, and one probit.
    for post, classes, kind, text in itertools.product(POSTS, (2, 3), ("all", "one", "positive"), (0, 1)):
        if (classes == 3) != (kind == "all") or (classes == 2 and post not in ("NONE", "LOGISTIC")):
            continue
        leaves, attrs = forest(3, 3, ["BRANCH_LEQ"])
        votes = [leaf for leaf in leaves for _ in range(1 if kind != "all" else classes)]
        weights = floats(len(votes), 0.0 if kind == "positive" or post == "PROBIT" else -1.0, 0.3)
        labels = {"classlabels_strings": ["a", "b", "c"][:classes]} if text else {"classlabels_int64s": [4, 2, 8][:classes]}
        attrs.update(class_treeids=[v[0] for v in votes], class_nodeids=[v[1] for v in votes],
                     class_ids=[k % classes if kind == "all" else 0 for k in range(len(votes))],
                     class_weights=weights, post_transform=post, **labels)
        yield "TreeEnsembleClassifier", [features(8, 4)], [out("y", 8 if text else 7), out("z", 1)], 3, attrs


def encoders():
    for dtype in (np.float32, np.float64, np.int64, np.int32):
        x = features(4, 3, dtype)
        yield "Scaler", [x], [out("y", 1)], 1, dict(offset=floats(3), scale=floats(3))
        yield "Scaler", [x], [out("y", 1)], 1, dict(offset=floats(1), scale=floats(1))
        for norm in ("MAX", "L1", "L2"):
            yield "Normalizer", [x], [out("y", 1)], 1, dict(norm=norm)
        yield "OneHotEncoder", [x], [out("y", 1)], 1, dict(cats_int64s=[0, 1, -1, 2], zeros=1)
        yield "FeatureVectorizer", [x, features(4, 2, dtype)], [out("y", 1)], 1, dict(inputdimensions=[3, 2])
        yield ("ArrayFeatureExtractor", [x, np.array([[2, 0]], np.int64)],
               [out("y", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))], 1, {})
    nan = features(4, 3)
    nan[1, 2] = np.nan
    yield "Imputer", [nan], [out("y", 1)], 1, dict(imputed_value_floats=floats(3), replaced_value_float=float("nan"))
    yield "Imputer", [np.round(nan)], [out("y", 1)], 1, dict(imputed_value_floats=[7.0], replaced_value_float=1.0)
    yield "Imputer", [features(4, 3, np.int64)], [out("y", 7)], 1, dict(imputed_value_int64s=[5, 6, 7], replaced_value_int64=1)
    text = np.array([["a", "b"], ["zz", "c"]], dtype=object)
    yield "OneHotEncoder", [text], [out("y", 1)], 1, dict(cats_strings=["b", "a", "c"], zeros=1)
    yield "CategoryMapper", [text], [out("y", 7)], 1, dict(cats_strings=["a", "c"], cats_int64s=[4, 9], default_int64=-3)
    yield ("CategoryMapper", [np.array([4, 5, 9], np.int64)], [out("y", 8)], 1,
           dict(cats_strings=["a", "c"], cats_int64s=[4, 9], default_string="?"))
    yield "LabelEncoder", [text], [out("y", 7)], 1, dict(classes_strings=["a", "c"], default_int64=-3)
    yield "LabelEncoder", [np.array([1, 5, 0], np.int64)], [out("y", 8)], 1, dict(classes_strings=["a", "c"])
    yield "LabelEncoder", [text], [out("y", 1)], 2, dict(keys_strings=["a", "c"], values_floats=[1.5, 2.5])
    yield "Binarizer", [features(4, 3)], [out("y", 1)], 1, dict(threshold=0.25)
    for keys, kind in ((dict(classlabels_strings=["a", "b", "c"]), 8), (dict(classlabels_int64s=[1, 2, 3]), 7)):
        of = helper.make_sequence_type_proto(helper.make_map_type_proto(kind, helper.make_tensor_type_proto(1, [])))
        yield "ZipMap", [features(4, 3)], [helper.make_value_info("y", of)], 1, keys


def main():
    t = Points()
    for group in (linear, machines, trees, encoders):
        bad, n = [], 0
        with scratch() as folder:
            for op, inputs, outputs, version, attrs in itertools.islice(group(), 0, None, STEP):
                n += 1
                here = os.path.join(folder, str(n))
                os.mkdir(here)
                why = compare(lambda x: model(op, x, outputs, version, attrs), inputs, here)
                if why:
                    few = {k: v for k, v in attrs.items() if isinstance(v, str) or len(str(v)) < 24}
                    bad.append(f"{op} {few} {inputs[0].dtype}: {why}")
        t.point(not bad, f"{group.__name__}: {n} models as in onnxruntime", *bad)
    t.end()


main()
