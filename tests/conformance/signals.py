# SPDX-License-Identifier: Apache-2.0
"""How to draw a case of an operator on signals, on strings, of attention: as in
recipes.py."""
import numpy as np
from onnx import helper

import draw
from recipes import FLOATS, NUMPY, Case, recipe


# ---- Signals. ----

@recipe("HannWindow", "HammingWindow", "BlackmanWindow")
def _(r, v, t):
    # One element that is not periodic: zero over zero, for the runtime.
    return Case([np.asarray(r.int(2, 9), NUMPY[t("T1")])], steer=(0,), periodic=r.pick([None, 0, 1]),
                **output_type(t, "T2"))


def output_type(t, name):
    """Where that is not left out."""
    if name not in t.drawn:
        return {}
    return {"output_datatype": helper.np_dtype_to_tensor_dtype(np.dtype(NUMPY[t(name)])), "out_types": {"y0": t(name)}}


@recipe("MelWeightMatrix")
def _(r, v, t):
    kind = NUMPY[t("T1")]
    real = NUMPY[t("T2", FLOATS)]
    return Case([np.asarray(r.int(1, 8), kind), np.asarray(r.pick([8, 16, 32]), kind), np.asarray(r.pick([8000, 16000]), kind),
                 np.asarray(r.real(0, 100), real), np.asarray(r.real(2000, 4000), real)], steer=(0, 1, 2),
                **output_type(t, "T3"))


@recipe("DFT")
def _(r, v, t):
    x = r.shape(lo=2, hi=3, zero=0) + [r.pick([1, 2])]
    axis = r.int(1, len(x) - 2)
    if r.chance(0.4):
        axis -= len(x)
    n = np.asarray(r.int(1, 7), NUMPY[t("T2")]) if r.chance(0.4) else None
    inverse = r.pick([None, 0, 1])
    one = r.pick([None, 0, 1]) if x[-1] == 1 and not inverse else None
    if inverse and x[-1] == 1:
        x[-1] = 2
    data = r.tensor(t("T1"), x, odd=False)
    if v < 20:
        return Case([data, n], steer=(1,), axis=axis, inverse=inverse, onesided=one, by_scale=True, slack=4)
    return Case([data, n, np.asarray(axis, np.int64)], steer=(1, 2), inverse=inverse, onesided=one, by_scale=True, slack=4)


@recipe("STFT")
def _(r, v, t):
    n, size, step = r.int(8, 20), r.int(2, 7), r.int(1, 4)
    x = r.tensor(t("T1"), [r.int(1, 2), n, 1][:r.int(2, 3)], odd=False)
    kind = NUMPY[t("T2")]
    w = r.tensor(t("T1"), [size], odd=False) if r.chance() else None
    length = np.asarray(size, kind) if w is None or r.chance() else None
    return Case([x, np.asarray(step, kind), w, length], steer=(1, 3), onesided=r.pick([None, 0, 1]), by_scale=True, slack=4)


# ---- Strings. ----

@recipe("StringConcat")
def _(r, v, t):
    x, y = r.broadcast(2)
    return Case([r.tensor("string", x), r.tensor("string", y)])


@recipe("StringSplit")
def _(r, v, t):
    # The runtime finds no part in an empty string; there is one, of nothing.
    by = r.pick([None, "", " ", "l", "b"])
    return Case([r.tensor("string", r.shape(hi=2))], outs=2, delimiter=by, maxsplit=r.pick([None, 1, 2]),
                judge="reference" if by else None)


@recipe("StringNormalizer")
def _(r, v, t):
    x = [r.int(1, 5)] if r.chance() else [1, r.int(1, 5)]
    plain = np.asarray([r.pick([w for w in draw.WORDS if w.isascii() and w]) for _ in range(x[-1])], object).reshape(x)
    return Case([plain], locale="C", judge="runtime", case_change_action=r.pick([None, "NONE", "LOWER", "UPPER"]),
                is_case_sensitive=r.pick([None, 0, 1]), stopwords=r.pick([None, ["a", "hello"], ["ab", "B"]]))


@recipe("RegexFullMatch")
def _(r, v, t):
    return Case([r.tensor("string", r.shape(hi=2))],
                pattern=r.pick(["a.*", "[a-zA-Z]+", r"\d+(\.\d+)?", "(a|ab)(c|bcd)?", ".*", "[^ ]*", "-?[0-9]+"]))


@recipe("TfIdfVectorizer")
def _(r, v, t):
    grams = [r.ints(0, 3, n) for n in (1, 1, 2, 2)]
    pool_ = [0, 1, 2] + sum([r.ints(0, 3, 2) for _ in range(3)], [])
    del grams
    counts = [0, 3]
    ng = 3 + 3
    lo, hi = r.pick([(1, 1), (1, 2), (2, 2)])
    mode = r.pick(["TF", "IDF", "TFIDF"])
    x = r.tensor("int64" if t("T") == "string" else t("T"), r.shape(lo=1, hi=2, size=6, zero=0), 0, 4, wide=False)
    pool = {"pool_int64s": pool_}
    if t("T") == "string":
        x, pool = x.astype(str).astype(np.object_), {"pool_strings": [str(k) for k in pool_]}
    pairs = [tuple(pool_[k:k + 2]) for k in (3, 5, 7)]
    if len(set(pairs)) < 3:
        return None
    return Case([x], max_gram_length=hi, min_gram_length=lo, max_skip_count=r.int(0, 2), mode=mode, ngram_counts=counts,
                ngram_indexes=list(range(ng)), **pool, weights=[r.real(0.5, 2) for _ in range(ng)] if r.chance() else None)


# ---- Attention. ----

@recipe("RotaryEmbedding")
def _(r, v, t):
    b, n, s, d = r.int(1, 2), r.int(1, 3), r.int(1, 4), 2 * r.int(1, 4)
    part = 2 * r.int(1, d // 2) if r.chance(0.4) else 0
    half = (part or d) // 2
    flat = r.chance(0.4)
    x = r.tensor(t("T"), [b, s, n * d] if flat else [b, n, s, d], odd=False)
    if r.chance():
        most = s + 3
        ins = [x] + [r.tensor(t("T"), [most, half], -1, 1, odd=False) for _ in range(2)] + [r.g.integers(0, most, (b, s)).astype(np.int64)]
    else:
        ins = [x] + [r.tensor(t("T"), [b, s, half], -1, 1, odd=False) for _ in range(2)]
    return Case(ins, interleaved=r.pick([None, 0, 1]), num_heads=n if flat or r.chance(0.3) else None,
                rotary_embedding_dim=part or None)


@recipe("Attention")
def _(r, v, t):
    b, s, total, d, dv = r.int(1, 2), r.int(1, 4), r.int(1, 5), r.int(1, 4), r.int(1, 4)
    kv = r.int(1, 2)
    heads = kv * r.pick([1, 1, 2, 3])
    flat = r.chance(0.4)
    kind, vkind = t("T1"), t("T2") if t.allowed("T2") else t("T1")
    past = r.int(1, 3) if r.chance(0.3) else 0

    def give(k, n, length, size):
        x = r.tensor(k, [b, n, length, size], odd=False)
        return np.ascontiguousarray(x.transpose(0, 2, 1, 3)).reshape(b, length, n * size) if flat else x
    ins = [give(kind, heads, s, d), give(kind, kv, total, d), give(vkind, kv, total, dv)]
    mask = None
    if r.chance(0.4) or "U" in t.drawn:
        whole = [b, heads, s, past + total]
        mask = r.tensor(t("U") if "U" in t.drawn else r.pick(["bool", kind]), r.pick([whole[2:], [1] + whole[1:], whole]), odd=False)
        if mask.dtype == np.bool_:
            mask[..., 0] = True
    ins.append(mask)
    if past:
        ins += [r.tensor(kind, [b, kv, past, d], odd=False), r.tensor(vkind, [b, kv, past, dv], odd=False)]
    outs = [True] if not past else [True, True, True]
    if past and r.chance(0.3):
        outs.append(True)
    causal = r.pick([None, 0, 1])
    mode = r.int(0, 3) if len(outs) > 3 else None
    softcap = r.pick([None, 0.0, 2.0]) if mode != 0 else None  # the reference gives capped scores
    masked = mode == 2 and mask is not None and mask.dtype == np.bool_  # by -inf, or by the least number
    # The runtime lets queries see other keys than the standard, behind past ones.
    return Case(ins, outs=outs, is_causal=causal, judge="reference" if (causal and past) or masked else None, scale=r.pick([None, 0.3]), softcap=softcap,
                q_num_heads=heads if flat else None, kv_num_heads=kv if flat else None,
                qk_matmul_output_mode=mode, by_scale=True, slack=50 if kind == "double" else 5)


@recipe("TensorScatter")
def _(r, v, t):
    x = r.shape(lo=2, hi=4, zero=0, size=4)
    axis = r.int(1, len(x) - 1)
    y = list(x)
    y[axis] = r.int(1, x[axis])
    mode = r.pick([None, "linear", "circular"])
    top = x[axis] if mode == "circular" else x[axis] - y[axis] + 1
    i = r.g.integers(0, top, x[0]).astype(np.int64) if r.chance(0.8) else None
    return Case([r.tensor(t("T"), x), r.tensor(t("T"), y), i], axis=axis - len(x) if r.chance() else axis, mode=mode)


# ---- States. ----

@recipe("CausalConvWithState")
def _(r, v, t):
    n, channels, length, size = r.int(1, 3), r.int(1, 4), r.int(1, 6), r.int(1, 4)
    kind = t("T")
    ins = [r.tensor(kind, [n, channels, length], odd=False), r.tensor(kind, [channels, 1, size], odd=False)]
    ins.append(r.tensor(kind, [channels], odd=False) if r.chance() else None)
    ins.append(r.tensor(kind, [n, channels, size - 1], odd=False) if r.chance() and size > 1 else None)
    return Case(ins, outs=2, activation=r.pick([None, "none", "silu", "swish"]), by_scale=True, slack=4)


@recipe("LinearAttention")
def _(r, v, t):
    b, steps, heads, size, wide = r.int(1, 2), r.int(1, 5), r.int(1, 2), r.int(1, 4), r.int(1, 4)
    queries = heads * r.int(1, 2)
    kind, rule = t("T"), r.pick([None, "linear", "gated", "delta", "gated_delta"])

    def give(*shape, lo=-1, hi=1, kind=kind):
        return r.tensor(kind, shape, lo, hi, odd=False)
    ins = [give(b, steps, queries * size), give(b, steps, heads * size), give(b, steps, heads * wide)]
    state = t("S")
    ins.append(give(b, heads, size, wide, kind=state) if r.chance() or "S" in t.drawn else None)
    gated, learns = rule in (None, "gated", "gated_delta"), rule in (None, "delta", "gated_delta")
    ins.append(give(b, steps, heads * r.pick([1, size]), lo=-2, hi=0) if gated else None)
    ins.append(give(b, steps, r.pick([1, heads]), lo=0, hi=1) if learns else None)
    return Case(ins, outs=2, q_num_heads=queries, kv_num_heads=heads, update_rule=rule, scale=r.pick([None, 0.0, 0.7]),
                chunk_size=r.pick([None, 2]), by_scale=True, slack=4)
