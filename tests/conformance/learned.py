# SPDX-License-Identifier: Apache-2.0
"""How to draw a case of an operator of ai.onnx.ml that was learned from data, or of
one that learns: as in recipes.py."""
import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from maps import ML, keys_of, texts
from recipes import NUMPY, Case, as_is, recipe

TRAINING = "ai.onnx.preview.training"
POSTS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def ml(*names):
    return recipe(*names, domain=ML)


def by_float(case, *known):
    """The runtime has some kernels for some types only; they give floats, whatever comes in."""
    x = case.ins[0]
    if x.dtype not in (np.float32, *(NUMPY[k] for k in known)):
        case.twin = Case([a.astype(np.float32) for a in case.ins], slack=case.slack, tolerance=case.tolerance, **case.attrs), as_is
    return case


def rows(r, t, n, param="T", flat=0.0):
    """Some samples of `n` features, or one without a dim for it."""
    kind = t(param)
    shape = [n] if r.chance(flat) else [r.int(1, 4), n]
    x = r.tensor(kind, shape, -3, 3, odd=False, wide=False)
    return np.round(x, 1).astype(x.dtype) if x.dtype.kind == "f" and r.chance() else x


def reals(r, n, lo=-2.0, hi=2.0):
    return [r.real(lo, hi) for _ in range(n)]


def labels(r, n, ints="classlabels_ints"):
    if r.chance():
        return {"classlabels_strings": keys_of(r, "string", n).tolist()}
    return {ints: keys_of(r, "int64", n).tolist()}


def near(post):
    """The quantile of a half is zero, near which floats have few digits."""
    return (1e-4, 2e-4) if post == "PROBIT" else None


# ---- Lines. ----

@ml("LinearRegressor")
def _(r, v, t):
    n, targets = r.int(1, 5), r.int(1, 3)
    post = r.pick(POSTS if targets > 1 else ["NONE", "PROBIT"])  # of one target the runtime computes no other
    w = 0.02 if post == "PROBIT" else 2.0
    b = [0.5] * targets if post == "PROBIT" else reals(r, targets) if r.chance(0.7) else None
    return by_float(Case([rows(r, t, n)], coefficients=reals(r, n * targets, -w, w), intercepts=b, slack=10, tolerance=near(post),
                         targets=targets if targets > 1 or r.chance() else None,
                         post_transform=post if post != "NONE" or r.chance() else None))


@ml("LinearClassifier")
def _(r, v, t):
    n, classes = r.int(1, 5), r.int(2, 4)
    post = r.pick(POSTS)
    w = 0.02 if post == "PROBIT" else 2.0
    lines = 1 if classes == 2 and post == "NONE" and r.chance(0.4) else classes
    b = [0.5] * lines if post == "PROBIT" else reals(r, lines)
    return Case([rows(r, t, n, "T1")], outs=2, coefficients=reals(r, n * lines, -w, w), intercepts=b, slack=10,
                tolerance=near(post),
                multi_class=r.pick([None, 0, 1]), post_transform=post if post != "NONE" or r.chance() else None,
                **labels(r, classes))


@ml("Scaler")
def _(r, v, t):
    n = r.int(1, 5)
    x, offset, scale = rows(r, t, n), reals(r, r.pick([1, n])), reals(r, r.pick([1, n]))
    c = Case([x], offset=offset, scale=scale)
    if len(offset) != len(scale):  # the runtime wants as many of one as of the other
        c.twin = Case([x], offset=offset * (n // len(offset)), scale=scale * (n // len(scale))), as_is
    return c


@ml("Normalizer")
def _(r, v, t):
    return Case([rows(r, t, r.int(1, 5))], norm=r.pick([None, "MAX", "L1", "L2"]))


# ---- Vectors. ----

def supports(r, n, count):
    kernel = r.pick([None, "LINEAR", "POLY", "RBF", "SIGMOID"])
    return {"kernel_type": kernel, "support_vectors": reals(r, n * count),
            "kernel_params": [r.real(0.1, 0.4), r.real(-0.2, 0.2), float(r.int(1, 3))]}


@ml("SVMRegressor")
def _(r, v, t):
    n, count = r.int(1, 4), r.int(1, 5)
    x = rows(r, t, n)
    post = r.pick([None, "NONE"])  # the runtime leaves out the others
    if r.chance(0.3):  # a line
        return by_float(Case([x], coefficients=reals(r, n), rho=reals(r, 1), kernel_params=[0.0] * 3, slack=20, n_supports=r.pick([None, 0]),
                             kernel_type=r.pick([None, "LINEAR"]), one_class=r.pick([None, 0, 1]), post_transform=post))
    return by_float(Case([x], coefficients=reals(r, count), rho=reals(r, 1), n_supports=count, slack=20, by_scale=True,
                         one_class=r.pick([None, 0, 1]), post_transform=post, **supports(r, n, count)))


@ml("SVMClassifier")
def _(r, v, t):
    n, classes = r.int(1, 4), r.int(2, 4)
    x = rows(r, t, n, "T1")
    if classes > 2 and r.chance(0.2):  # lines
        return Case([x], outs=2, coefficients=reals(r, n * classes), rho=reals(r, 1), kernel_params=[0.0] * 3, slack=20,
                    **labels(r, classes))
    each = r.ints(1, 3, classes)
    pairs = classes * (classes - 1) // 2
    probs = {"prob_a": reals(r, pairs, -2, -0.5), "prob_b": reals(r, pairs)} if r.chance() else {}
    posts = ["NONE", "LOGISTIC"] + (["SOFTMAX"] if classes > 2 or probs else [])  # of two the runtime computes none
    return Case([x], outs=2, vectors_per_class=each, rho=reals(r, pairs), slack=20, by_scale=True,
                coefficients=reals(r, sum(each) * (classes - 1)), post_transform=r.pick([None] + posts),
                **supports(r, n, sum(each)), **probs, **labels(r, classes))


# ---- Trees. ----

def grow(r, tree, nodes, depth, modes, nfeature):
    """A random tree; its leaves."""
    node = {"tree": tree, "id": sum(n["tree"] == tree for n in nodes), "mode": "LEAF", "feature": 0, "value": 0.0,
            "yes": 0, "no": 0, "missing": 0}
    nodes.append(node)
    if depth == 0 or (depth < 3 and r.chance(0.2)):
        return [node]
    node.update(mode=r.pick(modes), feature=r.int(0, nfeature - 1), value=round(r.real(-2, 2), 1), missing=r.int(0, 1))
    leaves = []
    for way in ("yes", "no"):
        node[way] = sum(n["tree"] == tree for n in nodes)
        leaves += grow(r, tree, nodes, depth - 1, modes, nfeature)
    return leaves


def forest(r, nfeature):
    modes = r.pick([[m] for m in MODES] + [MODES, MODES[:4]])
    nodes, leaves = [], []
    for tree in range(r.int(1, 4)):
        leaves += grow(r, tree, nodes, r.int(0, 3), modes, nfeature)
    names = {"treeids": "tree", "nodeids": "id", "modes": "mode", "featureids": "feature", "values": "value",
             "truenodeids": "yes", "falsenodeids": "no"}
    attrs = {f"nodes_{k}": [n[of] for n in nodes] for k, of in names.items()}
    if r.chance(0.7):
        attrs["nodes_missing_value_tracks_true"] = [n["missing"] for n in nodes]
    if r.chance(0.2):
        attrs["nodes_hitrates"] = [1.0] * len(nodes)
    return leaves, attrs


def samples(r, t, n, param):
    """Some at the very values of nodes, some not there."""
    x = r.tensor(t(param), [r.int(1, 6), n], -2, 2, odd=False, wide=False)
    if x.dtype.kind == "f":
        x = np.round(x, r.pick([0, 1, 1])).astype(x.dtype)
        if r.chance(0.3):
            x[r.int(0, x.shape[0] - 1), r.int(0, n - 1)] = np.nan
    return x


def as_tensors(attrs, names):
    """Of doubles, the numbers are tensors."""
    for k in names:
        if k in attrs:
            attrs[k + "_as_tensor"] = numpy_helper.from_array(np.asarray(attrs.pop(k), np.float64))
    return attrs


def voting(r, leaves, kinds, prefix, lo, hi, every=False):
    """Each leaf for each of the kinds, or for one."""
    every = r.chance() or every
    votes = [(leaf, k) for leaf in leaves for k in (range(kinds) if every else [r.int(0, kinds - 1)])]
    return {prefix + "_treeids": [v["tree"] for v, _ in votes], prefix + "_nodeids": [v["id"] for v, _ in votes],
            prefix + "_ids": [k for _, k in votes], prefix + "_weights": reals(r, len(votes), lo, hi)}


@ml("TreeEnsembleRegressor")
def _(r, v, t):
    n, targets = r.int(1, 4), r.int(1, 3)
    leaves, attrs = forest(r, n)
    if r.chance():
        attrs["base_values"] = reals(r, targets)
    # The runtime adds no base where no leaf votes.
    attrs.update(voting(r, leaves, targets, "target", -2, 2, "base_values" in attrs))
    x = samples(r, t, n, "T")
    if x.dtype == np.float64 and v >= 3 and r.chance():
        as_tensors(attrs, ["nodes_values", "nodes_hitrates", "target_weights", "base_values"])
    c = Case([x], n_targets=targets, slack=10, aggregate_function=r.pick([None, "SUM", "AVERAGE", "MIN", "MAX"]),
             post_transform=r.pick([None, "NONE"] + (["SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"] if targets > 1 else [])), **attrs)
    return by_float(c, "double")


@ml("TreeEnsembleClassifier")
def _(r, v, t):
    # Of two classes with votes for both, the runtime does not take the one that has more;
    # of two classes with votes for one, it computes no softmax, and one probit; of more it
    # takes none without votes, which may have the largest score.
    n, classes = r.int(1, 4), r.int(2, 4)
    leaves, attrs = forest(r, n)
    post = r.pick(POSTS if classes > 2 else ["NONE", "LOGISTIC"])
    lo, hi = (0.02, 0.1) if post == "PROBIT" else r.pick([(-1, 0.3), (0, 0.3)])
    attrs.update(voting(r, leaves, classes if classes > 2 else 1, "class", lo, hi, True))
    if r.chance(0.3) and classes > 2 and post != "PROBIT":
        attrs["base_values"] = reals(r, classes)
    x = samples(r, t, n, "T1")
    if x.dtype == np.float64 and v >= 3 and r.chance():
        as_tensors(attrs, ["nodes_values", "nodes_hitrates", "class_weights", "base_values"])
    return Case([x], outs=2, post_transform=post if post != "NONE" or r.chance() else None, slack=10,
                **labels(r, classes, "classlabels_int64s"), **attrs)





@ml("TreeEnsemble")
def _(r, v, t):
    n, targets, kind, wide = r.int(1, 4), r.int(1, 3), np.dtype(NUMPY[t("T")]), np.float32
    nodes, leaves, roots, sets = [], [], [], []

    def put(depth):
        """The place of a branch, and whether it is a leaf."""
        if depth == 0 or r.chance(0.2):
            leaves.append((r.int(0, targets - 1), r.real(-2, 2)))
            return len(leaves) - 1, 1
        node = {"mode": r.int(0, 6), "feature": r.int(0, n - 1), "split": round(r.real(-2, 2), 1), "missing": r.int(0, 1)}
        nodes.append(node)
        place = len(nodes) - 1
        if node["mode"] == 6:
            node["set"] = [float(r.int(-2, 2)) for _ in range(r.int(1, 3))]  # the runtime knows no others
        node["yes"], node["no"] = put(depth - 1), put(depth - 1)
        return place, 0
    for _ in range(r.int(1, 3)):
        before = len(leaves)
        at, is_leaf = put(r.int(1, 3))
        if is_leaf:  # a root is a node
            nodes.append({"mode": 0, "feature": 0, "split": 0.0, "missing": 0, "yes": (before, 1), "no": (before, 1)})
            at = len(nodes) - 1
        roots.append(at)

    def tensor(a, of=kind):
        return numpy_helper.from_array(np.asarray(a, of))
    for node in nodes:
        if node["mode"] == 6:
            sets += node["set"] + [np.nan]
    more = {"nodes_missing_value_tracks_true": [d["missing"] for d in nodes]} if r.chance() else {}
    if sets:
        more["membership_values"] = tensor(sets)
    if kind == np.float32 and r.chance(0.2):  # of other types, the schema refuses them
        more["nodes_hitrates"] = tensor([1.0] * len(nodes))
    x = samples(r, t, n, "T")
    if sets:  # for the runtime, 1.5 is a member where 1 is one
        x = np.round(x)
    c = Case([x], tree_roots=roots, n_targets=targets, slack=10,
                nodes_modes=tensor([d["mode"] for d in nodes], np.uint8), nodes_splits=tensor([d["split"] for d in nodes]),
                nodes_featureids=[d["feature"] for d in nodes],
                nodes_truenodeids=[d["yes"][0] for d in nodes], nodes_trueleafs=[d["yes"][1] for d in nodes],
                nodes_falsenodeids=[d["no"][0] for d in nodes], nodes_falseleafs=[d["no"][1] for d in nodes],
                leaf_targetids=[k for k, _ in leaves], leaf_weights=tensor([w for _, w in leaves]),
                aggregate_function=r.pick([None, 0, 1, 2, 3]), post_transform=r.pick([None, 0] + ([1, 2, 3] if targets > 1 else [])),
                **more)
    # The runtime has no kernel for half floats, and softmax for logistic; the reference has neither.
    attrs = dict(c.attrs)
    if attrs.get("post_transform") in (1, 2):
        attrs["post_transform"] = 3 - attrs["post_transform"]
    if kind == np.float16:
        attrs = {k: tensor(numpy_helper.to_array(a), wide) if isinstance(a, onnx.TensorProto) and a.data_type == TensorProto.FLOAT16
                 else a for k, a in attrs.items()}
    x = c.ins[0].astype(wide) if kind == np.float16 else c.ins[0]
    c.twin = Case([x], slack=10, judge="runtime", **attrs), lambda outs, _: [outs[0].astype(kind)]
    return c


# ---- Codes. ----

@ml("Binarizer")
def _(r, v, t):
    c = Case([rows(r, t, r.int(1, 5), flat=0.2)], threshold=r.pick([None, 0.25, -1.0]))
    kind = c.ins[0].dtype
    if kind != np.float32:
        c.twin = Case([c.ins[0].astype(np.float32)], **c.attrs), lambda outs, _: [outs[0].astype(kind)]
    return c


@ml("Imputer")
def _(r, v, t):
    n = r.int(1, 5)
    x = rows(r, t, n)
    kind, each = x.dtype, r.pick([1, n])
    if kind.kind == "f":
        gone = float("nan") if r.chance() else 1.0
        x[np.asarray(r.g.random(x.shape) < 0.4)] = gone
        c = Case([x], imputed_value_floats=reals(r, each), replaced_value_float=gone)
        wide = np.float32
    else:
        c = Case([x], imputed_value_int64s=r.ints(-5, 5, each), replaced_value_int64=r.pick([None, 1, -2]))
        wide = np.int64
    if kind != wide:
        c.twin = Case([x.astype(wide)], **c.attrs), lambda outs, _: [outs[0].astype(kind)]
    return c


@ml("OneHotEncoder")
def _(r, v, t):
    kind = t("T")
    cats = keys_of(r, "string" if kind == "string" else "int64", r.int(1, 5)).tolist()
    zeros = r.pick([None, 0, 1])
    among = cats if zeros == 0 else cats + (["?"] if kind == "string" else [99])
    x = texts([r.pick(among) for _ in range(6)]) if kind == "string" else np.asarray([r.pick(among) for _ in range(6)], NUMPY[kind])
    x = x.reshape(r.pick([[6], [3, 2], [1, 6], [1, 2, 3]]))
    c = Case([x], zeros=zeros, **{"cats_strings" if kind == "string" else "cats_int64s": cats})
    if kind == "int32":
        c.twin = Case([x.astype(np.int64)], **c.attrs), as_is
    return c


@ml("FeatureVectorizer")
def _(r, v, t):
    n = r.ints(1, 4, r.int(1, 3))
    many = r.int(1, 4)
    return Case([r.tensor(t("T1"), [many, k], odd=False, wide=False) for k in n], inputdimensions=n)


@ml("ArrayFeatureExtractor")
def _(r, v, t):
    x = r.shape(lo=1, hi=4, zero=0)
    return Case([r.tensor(t("T"), x), r.g.integers(0, x[-1], (1, r.int(1, 4))).astype(np.int64)], steer=(1,))


@ml("CategoryMapper")
def _(r, v, t):
    n = r.int(1, 6)
    words, numbers = keys_of(r, "string", n).tolist(), keys_of(r, "int64", n).tolist()
    from_text = t("T1") == "string"
    among = words + ["?"] if from_text else numbers + [77]
    shape = r.shape(hi=2, lo=1, zero=0)
    x = texts([r.pick(among) for _ in range(int(np.prod(shape)))]) if from_text \
        else np.asarray([r.pick(among) for _ in range(int(np.prod(shape)))], np.int64)
    none = {"default_int64": r.pick([None, 5])} if from_text else {"default_string": r.pick([None, "none"])}
    return Case([x.reshape(shape)], cats_strings=words, cats_int64s=numbers, **none)


def codes(r, v, kind, n):
    """Different keys of a type."""
    if kind in ("string", "int64"):
        return keys_of(r, kind, n)
    k = keys_of(r, "int64", n).astype(NUMPY[kind])
    if kind in ("float", "double"):
        k = k / np.asarray(2, k.dtype)
        if v >= 4 and r.chance(0.3):  # of version 2, the runtime does not find what is not a number
            k[r.int(0, n - 1)] = np.nan
    return k


@ml("LabelEncoder")
def _(r, v, t):
    n = r.int(1, 6)
    kind = t("T1")
    if v == 1:
        words = keys_of(r, "string", n).tolist()
        none = {"default_int64": r.pick([None, 7])} if kind == "string" else {"default_string": r.pick([None, "?"])}
        keys, attrs = texts(words) if kind == "string" else np.arange(n), {"classes_strings": words, **none}
    else:
        keys = codes(r, v, kind, n)
        to = t("T2", {"string": None, "int64": None, "float": None} if v == 2 else None)
        values = texts([r.pick(["p", "q", ""]) for _ in range(n)]) if to == "string" \
            else r.tensor(to, [n], -9, 9, odd=False, wide=False)
        attrs = coded("keys", keys, kind, r.chance(0.3) and v >= 4)
        attrs.update(coded("values", values, to, "keys_tensor" in attrs))
        if r.chance():
            none = texts(["none"]) if to == "string" else np.asarray([5], NUMPY[to])
            attrs.update(coded("default", none, to, "values_tensor" in attrs))
    among = keys.tolist() + {"string": ["?"]}.get(kind, [33])
    # Bits of keys are compared; the reference does not find what is not a number.
    judge = "runtime" if keys.dtype.kind == "f" and np.isnan(keys).any() else None
    shape = r.shape(hi=2, lo=1, zero=0)
    x = [r.pick(among) for _ in range(int(np.prod(shape)))]
    x = texts(x) if kind == "string" else np.asarray(x, NUMPY[kind])
    return Case([x.reshape(shape)], judge=judge, **attrs)


def coded(what, a, kind, as_tensor):
    """As a list where there is one for the type, or as a tensor."""
    if as_tensor or kind not in ("string", "int64", "float"):
        return {what + "_tensor": numpy_helper.from_array(a, "")}
    if what == "default":
        return {f"default_{kind}": a.tolist()[0]}
    return {f"{what}_{kind}s": a.tolist()}


# ---- Steps of training. ----

def step(r, t, lists):
    """Rate, number of steps before, and so many lists of tensors of the same shapes."""
    kind, n = t("T3"), r.int(1, 3)
    shapes = [r.shape(hi=3) for _ in range(n)]
    ins = [np.asarray(r.real(0.001, 0.3), NUMPY[t("T1")]), np.asarray(r.int(0, 5), np.int64)]
    for k in range(lists):
        ins += [r.tensor(kind, s, 0 if k >= 2 else -2, 2, odd=False) for s in shapes]
    return n, ins


@recipe("Adagrad", domain=TRAINING)
def _(r, v, t):
    n, ins = step(r, t, 3)
    return Case(ins, outs=2 * n, epsilon=r.pick([1e-3, 1e-6]), norm_coefficient=r.pick([None, 0.01]),
                decay_factor=r.pick([None, 0.1]), slack=4)


@recipe("Adam", domain=TRAINING)
def _(r, v, t):
    n, ins = step(r, t, 4)
    return Case(ins, outs=3 * n, alpha=r.pick([None, 0.8]), beta=r.pick([None, 0.9]), epsilon=r.pick([1e-3, 1e-2]),
                norm_coefficient=r.pick([None, 0.01]), norm_coefficient_post=r.pick([None, 0.02]), slack=4)


@recipe("Momentum", domain=TRAINING)
def _(r, v, t):
    n, ins = step(r, t, 3)
    return Case(ins, outs=2 * n, alpha=r.real(0.5, 1), beta=r.real(0.5, 1), mode=r.pick(["standard", "nesterov"]),
                norm_coefficient=r.pick([0.0, 0.01]), slack=4)
