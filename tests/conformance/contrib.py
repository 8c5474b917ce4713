# SPDX-License-Identifier: Apache-2.0
"""How to draw a case of an operator of com.microsoft: as in recipes.py."""
import numpy as np
from onnx import helper

from recipes import BYTES, Case, as_is, byte, image, recipe, window

MS = "com.microsoft"
SMALL_FLOATS = ("float", "float", "float16", "bfloat16")
ALL_FLOATS = SMALL_FLOATS + ("double",)


def ms(*names):
    return recipe(*names, domain=MS)


@ms("Gelu")
def _(r, v, t):
    return Case([r.tensor(r.pick(ALL_FLOATS), r.shape(), odd=False)])


@ms("QuickGelu")
def _(r, v, t):
    return Case([r.tensor(r.pick(ALL_FLOATS), r.shape(), odd=False)], alpha=r.real(-1, 2) if r.chance() else None)


@ms("BiasGelu")
def _(r, v, t):
    x, k = r.shape(lo=1), r.pick(ALL_FLOATS)
    return Case([r.tensor(k, x, odd=False), r.tensor(k, x[-1:], odd=False)])


@ms("FastGelu")
def _(r, v, t):
    x, k = r.shape(lo=1), r.pick(ALL_FLOATS)
    return Case([r.tensor(k, x, odd=False), r.tensor(k, x[-1:], odd=False) if r.chance() else None],
                tolerance=(1e-4, 1e-5) if k == "double" else None)  # the runtime computes with floats


@recipe("SimplifiedLayerNormalization")
def _(r, v, t):
    x = r.shape(lo=1, zero=0)
    return Case([r.tensor("float", x, odd=False), r.tensor("float", x[-1:], odd=False)], opset=17, axis=r.pick([None, -1]),
                outs=r.int(1, 2), epsilon=r.pick([None, 1e-2]), by_scale=True, slack=10)


@ms("SkipLayerNormalization")
def _(r, v, t):
    x = [r.int(1, 3), r.int(1, 4), r.int(2, 6)]
    k = r.pick(SMALL_FLOATS)
    skip = x if r.chance(0.6) else [1] + x[1:] if r.chance() else x[1:]
    ins = [r.tensor(k, s, odd=False) for s in (x, skip, x[2:])]
    ins += [r.tensor(k, x[2:], odd=False) if r.chance(0.6) else None for _ in range(2)]
    return Case(ins, outs=[True, False, False, True] if r.chance() else 1, epsilon=r.pick([1e-2, 1e-1] + [None] * (k == "float")),
                by_scale=True, slack=10)


@ms("SkipSimplifiedLayerNormalization")
def _(r, v, t):
    x = [r.int(1, 3), r.int(1, 4), r.int(2, 6)]
    k = r.pick(SMALL_FLOATS)
    skip = x if r.chance(0.6) else [1] + x[1:] if r.chance() else x[1:]
    ins = [r.tensor(k, s, odd=False) for s in (x, skip, x[2:])]
    ins += [r.tensor(k, x[2:], odd=False) if r.chance(0.6) else None]
    return Case(ins, outs=[True, False, False, True] if r.chance() else 1, epsilon=r.pick([1e-2, 1e-1] + [None] * (k == "float")),
                by_scale=True, slack=10)


@ms("EmbedLayerNormalization")
def _(r, v, t):
    b, s, h, words, places, segments = r.int(1, 3), r.int(1, 4), r.int(2, 5), r.int(2, 6), r.int(4, 7), r.int(1, 3)

    def ids(n):
        return r.g.integers(0, n, (b, s)).astype(np.int32)
    seg = r.chance(0.6)
    ins = [ids(words), ids(segments) if seg else None] + [r.tensor("float", [n, h], odd=False) for n in (words, places)]
    ins.append(r.tensor("float", [segments, h], odd=False) if seg else None)
    ins += [r.tensor("float", [h], odd=False), r.tensor("float", [h], odd=False)]
    ins.append((np.arange(s) < r.g.integers(0, s + 1, (b, 1))).astype(np.int32) if r.chance() else None)
    if r.chance(0.4):
        ins.append(ids(places))
    return Case(ins, outs=r.int(1, 3) if seg else 2, epsilon=r.pick([1e-2, 1e-1]), by_scale=True, slack=10)


@ms("FusedMatMul", "TransposeMatMul")
def _(r, v, t):
    m, k, n = r.ints(1, 4, 3)
    kind = r.pick(ALL_FLOATS)
    attrs = {a: r.int(0, 1) for a in ("transA", "transB") if r.chance()}
    a, b = r.broadcast(2, hi=2)
    a = list(a) + ([k, m] if attrs.get("transA") else [m, k])
    b = list(b) + ([n, k] if attrs.get("transB") else [k, n])
    return Case([r.tensor(kind, a, odd=False), r.tensor(kind, b, odd=False)], alpha=r.pick([None, 0.5, -2.0]), by_scale=True, **attrs)


@ms("FusedMatMul")
def _(r, v, t):
    m, k, n = r.ints(1, 4, 3)
    kind = r.pick(ALL_FLOATS)
    attrs = {a: r.int(0, 1) for a in ("transA", "transB") if r.chance()}
    if r.chance(0.1):  # a vector is not turned
        wide = r.shape(hi=2, zero=0)
        a, b = ([k], wide + ([n, k] if attrs.get("transB") else [k, n]))
        if r.chance():
            attrs.pop("transB", None)
            a, b = wide + ([k, m] if attrs.get("transA") else [m, k]), [k]
        else:
            attrs.pop("transA", None)
        return Case([r.tensor(kind, a, odd=False), r.tensor(kind, b, odd=False)], alpha=r.pick([None, 0.5]), by_scale=True, **attrs)
    batch, other = r.broadcast(2, hi=2)
    if r.chance():
        other = batch
    if batch and other == batch:
        attrs.update({a: r.int(0, 1) for a in ("transBatchA", "transBatchB") if r.chance(0.3)})

    def shape(batch, rows, cols, trans, first):
        x = [cols, rows] if trans else [rows, cols]
        return [x[0]] + list(batch) + [x[1]] if first else list(batch) + x
    a = shape(batch, m, k, attrs.get("transA"), attrs.get("transBatchA"))
    b = shape(other, k, n, attrs.get("transB"), attrs.get("transBatchB"))
    return Case([r.tensor(kind, a, odd=False), r.tensor(kind, b, odd=False)], alpha=r.pick([None, 0.5, -2.0]), by_scale=True,
                **attrs)


@ms("FusedGemm")
def _(r, v, t):
    m, k, n = r.ints(1, 6, 3)
    ta, tb = r.int(0, 1), r.int(0, 1)
    ins = [r.tensor("float", s, odd=False) for s in ([k, m] if ta else [m, k], [n, k] if tb else [k, n])]
    if r.chance(0.7):
        ins.append(r.tensor("float", r.to_broadcast([m, n]), odd=False))
    act = r.pick(["Relu", "Sigmoid", "Tanh", "LeakyRelu"])
    return Case(ins, transA=ta, transB=tb, alpha=r.pick([None, 0.5]), beta=r.pick([None, 2.0]), activation=act,
                activation_alpha=0.3 if act == "LeakyRelu" else None, by_scale=True)


@ms("FusedConv")
def _(r, v, t):
    rank = r.pick([1, 2, 2, 2, 3])
    kernel, w = window(r, rank)
    kind, g = r.pick(["float", "float", "double"]), r.pick([1, 1, 2])
    cin, m = r.int(1, 3), g * r.int(1, 3)
    n, size = r.int(1, 2), image(r, kernel, w)
    ins = [r.tensor(kind, [n, cin * g] + size, odd=False),
           r.tensor(kind, [m, cin] + kernel, odd=False), r.tensor(kind, [m], odd=False) if r.chance() else None]
    act, params = r.pick([("Relu", None), ("Sigmoid", None), ("Tanh", None), ("LeakyRelu", [0.3]), ("Clip", [-1.0, 2.0]),
                          ("HardSigmoid", [0.3, 0.4]), ("HardSwish", None), (None, None)])
    if r.chance(0.4):  # what is added before the activation
        w = {"pads": [k // 2 for k in kernel] + [(k - 1) // 2 for k in kernel]}
        ins.append(r.tensor(kind, [n, m] + size, odd=False))
    return Case(ins, group=g, kernel_shape=kernel if r.chance(0.8) else None, activation=act, activation_params=params,
                by_scale=True, **w)


def channels_first(a):
    return np.ascontiguousarray(np.moveaxis(a, -1, 1)) if a is not None else None


def channels_last(outs, _):
    return [np.moveaxis(y, 1, -1) for y in outs]


@ms("NhwcConv", "NhwcFusedConv")
def _(r, v, t):
    kernel, w = window(r, 2)
    g = r.pick([1, 1, 2])
    cin, m = r.int(1, 3), g * r.int(1, 3)
    x = r.tensor("float", [r.int(1, 2)] + image(r, kernel, w) + [cin * g], odd=False)
    rest = [r.tensor("float", [m, cin] + kernel, odd=False), r.tensor("float", [m], odd=False) if r.chance() else None]
    return by_channels_first(x, rest, "FusedConv", group=g, kernel_shape=kernel, by_scale=True, **w)


@ms("NhwcFusedConv")
def _(r, v, t):
    kernel = r.ints(1, 3, 2)
    pads = [r.int(0, k - 1) for k in kernel * 2]
    cin, m = r.int(1, 3), r.int(1, 3)
    size = [k + r.int(0, 4) for k in kernel]
    n = r.int(1, 2)
    x = r.tensor("float", [n] + size + [cin], odd=False)
    out = [s + pads[k] + pads[k + 2] - kernel[k] + 1 for k, s in enumerate(size)]
    act, params = r.pick([("Relu", None), ("Sigmoid", None), ("Tanh", None), ("LeakyRelu", [0.3]), (None, None)])
    rest = [r.tensor("float", [m, cin] + kernel, odd=False), r.tensor("float", [m], odd=False) if r.chance() else None]
    more = [r.tensor("float", [n] + out + [m], odd=False)] if r.chance(0.6) else []
    return by_channels_first(x, rest + more, "FusedConv", kernel_shape=kernel, pads=pads, activation=act,
                             activation_params=params, by_scale=True)


def by_channels_first(x, rest, op, **attrs):
    """The runtime has kernels for that on other devices alone: it judges by the same, turned around."""
    c = Case([x] + rest, **attrs)
    c.twin = Case([channels_first(x)] + rest[:2] + [channels_first(z) for z in rest[2:]], **attrs), channels_last
    c.twin[0].op = op
    return c


@ms("NhwcMaxPool")
def _(r, v, t):
    kernel, w = window(r, 2)
    if w.get("auto_pad", "VALID") != "VALID" and w["strides"]:  # the runtime pads by less than nothing
        w["strides"] = [min(s, k) for s, k in zip(w["strides"], kernel)]
    x = [r.int(1, 2)] + image(r, kernel, w) + [r.int(1, 3)]
    return Case([byte(r, r.pick(BYTES), x)], kernel_shape=kernel, ceil_mode=r.pick([None, 1]), **w)


@ms("MatMulNBits")
def _(r, v, t):
    bits, block = r.pick([2, 4, 4, 4, 8]), r.pick([16, 32, 64, 128])
    k, n = r.int(1, 140), r.int(1, 6)
    blocks, kind = -(-k // block), r.pick(["float", "float", "float16"])
    ins = [r.tensor(kind, ([r.int(17, 40)] if r.chance(0.2) else r.shape(hi=2, lo=1, zero=0)) + [k], odd=False),
           r.g.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8),
           r.tensor(kind, [n, blocks] if r.chance() else [n * blocks], 0.1, 1, odd=False)]
    zero = None
    if r.chance():
        zero = r.g.integers(0, 256, n * (-(-blocks * bits // 8))).astype(np.uint8)
        if r.chance():
            zero = zero.reshape(n, -1)
    elif r.chance(0.2):
        zero = r.tensor(kind, [n, blocks], 0, 1 << bits, odd=False)
    ins += [zero, None, r.tensor(kind, [n], odd=False) if r.chance(0.4) else None]
    # With a level of 4 the runtime rounds the input to eight bits.
    return Case(ins, K=k, N=n, bits=bits if bits != 4 or r.chance() else None, block_size=block, by_scale=True, steer=(1, 2, 3),
                accuracy_level=r.pick([None, None, 0, 1]), slack=1 if kind == "float" else 4)


def quantum(r, kind, per=()):
    return [r.tensor("float", per, 0.05, 0.5, odd=False), r.tensor(kind, per, 0, 20, wide=False)]


@ms("QLinearAdd", "QLinearMul")
def _(r, v, t):
    kind = r.pick(BYTES)
    x, y = r.broadcast(2)
    ins = [r.tensor(kind, x)] + quantum(r, kind) + [r.tensor(kind, y)] + quantum(r, kind) + quantum(r, kind)
    return without_zeros(r, Case(ins, near=1), [2, 5, 7])


def without_zeros(r, c, places):
    """Zero points may be left out, which the runtime does not know."""
    for k in places:
        if r.chance(0.15):
            zero = np.zeros_like(c.ins[k])
            ins = c.twin[0].ins if c.twin else list(c.ins)
            ins[k], c.ins[k] = zero, None
            c.twin = Case(ins, **c.attrs), as_is
    return c


@ms("QLinearSigmoid")
def _(r, v, t):
    kind = r.pick(BYTES)
    return without_zeros(r, Case([r.tensor(kind, r.shape())] + quantum(r, kind) + quantum(r, kind), near=1), [2, 4])


@ms("QLinearLeakyRelu")
def _(r, v, t):
    kind = r.pick(BYTES)
    return without_zeros(r, Case([r.tensor(kind, r.shape())] + quantum(r, kind) + quantum(r, kind), near=1,
                                 alpha=r.pick([None, 0.2, 1.5, -0.5])), [2, 4])


@ms("QLinearSoftmax")
def _(r, v, t):
    kind = r.pick(BYTES)
    x = r.shape(lo=2, zero=0)
    opset = r.pick([11, 13])
    return Case([r.tensor(kind, x)] + quantum(r, kind) + quantum(r, kind), near=1, axis=r.axis(len(x)), opset_=opset)


@ms("QLinearWhere")
def _(r, v, t):
    kind = r.pick(BYTES)
    c = x = y = r.shape(lo=1, zero=0)  # the runtime crashes on some of other shapes
    return Case([r.tensor("bool", c), r.tensor(kind, x)] + quantum(r, kind) + [r.tensor(kind, y)] + quantum(r, kind)
                + quantum(r, kind), near=1)


@ms("QLinearConcat")
def _(r, v, t):
    kind = r.pick(BYTES)
    x = r.shape(lo=1, zero=0)
    axis = r.axis(len(x))
    ins = quantum(r, kind)
    for _ in range(r.int(1, 3)):
        y = list(x)
        y[axis] = r.int(1, 3)
        ins += [r.tensor(kind, y)] + quantum(r, kind)
    return Case(ins, axis=axis, near=1)


@ms("QLinearGlobalAveragePool")
def _(r, v, t):
    kind = r.pick(BYTES)
    return Case([r.tensor(kind, r.shape(4, zero=0))] + quantum(r, kind) + quantum(r, kind), near=1,
                channels_last=r.pick([None, 0, 1]))


@ms("QLinearAveragePool")
def _(r, v, t):
    kind = r.pick(BYTES)
    kernel, w = window(r, 2, dilate=False)
    del w["dilations"]
    if w.get("auto_pad", "VALID") != "VALID" and w["strides"]:
        w["strides"] = [min(s, k) for s, k in zip(w["strides"], kernel)]
    last = r.pick([None, 0, 1])
    x = image(r, kernel, {"dilations": None})
    x = [r.int(1, 2)] + x + [r.int(1, 3)] if last else r.ints(1, 3, 2) + x
    return Case([r.tensor(kind, x)] + quantum(r, kind) + quantum(r, kind), near=1, kernel_shape=kernel,
                count_include_pad=r.pick([None, 0, 1]), channels_last=last, **w)


@ms("QLinearReduceMean")
def _(r, v, t):
    kind = r.pick(BYTES)
    x = r.shape(lo=1, zero=0)
    c = Case([r.tensor(kind, x)] + quantum(r, kind) + quantum(r, kind), near=1, axes=r.axes(len(x), some=True),
             keepdims=r.int(0, 1))
    parts = [helper.make_node("DequantizeLinear", ["x0", "x1", "x2"], ["wide"]),
             helper.make_node("ReduceMean", ["wide"], ["mean"], **c.attrs),
             helper.make_node("QuantizeLinear", ["mean", "x3", "x4"], ["y0"])]
    c.twin = Case(c.ins, nodes=parts, opset=13), as_is  # the runtime has lost its kernel
    return c


@ms("QLinearConv")
def _(r, v, t):
    kernel, w = window(r, 2)
    kx, kw = r.pick([("uint8", "uint8"), ("uint8", "int8"), ("int8", "int8")])
    cin, m = r.int(1, 3), r.int(1, 3)
    last = r.pick([None, 0, 1])
    x = image(r, kernel, w)
    x = [r.int(1, 2)] + x + [cin] if last else [r.int(1, 2), cin] + x
    ins = [byte(r, kx, x)] + quantum(r, kx) + [byte(r, kw, [m, cin] + kernel)] + quantum(r, kw) + quantum(r, kx)
    if r.chance():
        ins.append(r.tensor("int32", [m], -99, 99, wide=False))
    return Case(ins, near=1, kernel_shape=kernel, channels_last=last, **w)


@ms("QuantizeLinear")
def _(r, v, t):
    kind = r.pick(["int8", "uint8", "int16", "uint16", "int4", "uint4"])
    return Case([r.tensor("float", r.shape(), -20, 20, odd=False), r.tensor("float", [], 0.1, 1, odd=False),
                 r.tensor(kind, [], 0, 3, wide=False)], out_types={"y0": kind})


@ms("DequantizeLinear")
def _(r, v, t):
    kind = r.pick(["int8", "uint8", "int16", "uint16", "int32", "int4", "uint4"])
    return Case([r.tensor(kind, r.shape()), r.tensor("float", [], 0.1, 1, odd=False),
                 r.tensor(kind, [], 0, 3, wide=False) if kind != "int32" else None])


@ms("DynamicQuantizeMatMul")
def _(r, v, t):
    m, k, n = r.ints(1, 5, 3)
    kind = r.pick(BYTES)
    per = [n] if r.chance() else []
    q = quantum(r, kind, per)
    return Case([r.tensor("float", r.shape(hi=1, zero=0) + [m, k], odd=False), byte(r, kind, [k, n], 60), q[0],
                 q[1] if r.chance() else None, r.tensor("float", [n], odd=False) if r.chance() else None], by_scale=True, slack=10)


@ms("DynamicQuantizeLSTM")
def _(r, v, t):
    """What is off by rounding is on another byte now and then."""
    n, b, i, h = r.int(1, 4), r.int(1, 3), r.int(1, 3), r.int(1, 4)
    way = r.pick([None, "forward", "reverse", "bidirectional"])
    d = 2 if way == "bidirectional" else 1
    kind = r.pick(BYTES)
    per = [d, 4 * h] if r.chance() else [d]

    def give(*s):
        return r.tensor("float", s, -1, 1, odd=False) if r.chance() else None

    def scaled(per):
        middle = 128 if kind == "uint8" else 0
        return [r.tensor("float", per, 0.005, 0.01, odd=False), np.full(per, middle, kind)]
    ins = [r.tensor("float", [n, b, i], -1, 1, odd=False), byte(r, kind, [d, i, 4 * h], 60), byte(r, kind, [d, h, 4 * h], 60), give(d, 8 * h), None,
           give(d, b, h), give(d, b, h), give(d, 3 * h)] + scaled(per) + scaled(per)
    return Case(ins, outs=3, hidden_size=h, direction=way, input_forget=r.pick([None, 0]),
                clip=r.pick([None, None, 1.5]), by_scale=True, slack=20)


@ms("MatMulIntegerToFloat")
def _(r, v, t):
    m, k, n = r.ints(1, 5, 3)
    ka, kb = r.pick([("uint8", "uint8"), ("uint8", "int8"), ("int8", "int8")])
    qa, qb = quantum(r, ka), quantum(r, kb, [n] if r.chance() else [])
    return Case([byte(r, ka, r.shape(hi=1, zero=0) + [m, k], 60), byte(r, kb, [k, n], 60), qa[0], qb[0],
                 qa[1] if r.chance() else None, qb[1] if r.chance() else None,
                 r.tensor("float", [n], odd=False) if r.chance() else None], by_scale=True, slack=10)


@ms("QGemm")
def _(r, v, t):
    m, k, n = r.ints(1, 5, 3)
    ta, tb = r.int(0, 1), r.int(0, 1)
    ka, kb = r.pick([("uint8", "uint8"), ("uint8", "int8"), ("int8", "int8")])
    ins = [byte(r, ka, [k, m] if ta else [m, k], 60)] + quantum(r, ka) + [byte(r, kb, [n, k] if tb else [k, n], 60)] + quantum(r, kb)
    ins.append(r.tensor("int32", r.pick([[m, n], [1, n], [n]]), -99, 99, wide=False) if r.chance() else None)
    if r.chance():
        ins += quantum(r, ka)
    return Case(ins, near=1, transA=ta, transB=tb, alpha=r.pick([None, 0.5]), by_scale=True)


def key_mask(r, b, s, past, total, forms):
    """Keys that may be seen, at least the first."""
    form = r.pick(forms)
    if form == "none":
        return None
    if form == "lengths":
        return r.g.integers(1, total + 1, b).astype(np.int32)
    if form == "ends":
        ends = r.g.integers(1, total + 1, b)
        return np.concatenate([ends, r.g.integers(0, ends)]).astype(np.int32)
    if form == "keys":
        m = (r.g.random((b, total)) < 0.7).astype(np.int32)
        m[:, 0] = 1
        return m
    if form == "pairs":
        m = (r.g.random((b, s, total)) < 0.7).astype(np.int32)
        m[:, :, 0] = 1
        return m
    return None


@ms("Attention")
def _(r, v, t):
    b, s, d, n, h = r.int(1, 2), r.int(1, 4), r.int(1, 5), r.int(1, 3), r.int(1, 4)
    past = r.int(1, 3) if r.chance(0.3) else 0
    total, kind = past + s, r.pick(["float", "float", "float16", "bfloat16"])
    wide = r.int(1, 4) if not past and r.chance(0.3) else h  # of values, which may have another size than keys
    sizes = [n * h, n * h, n * wide]
    ins = [r.tensor(kind, x, -1, 1, odd=False) for x in ([b, s, d], [d, sum(sizes)], [sum(sizes)])]
    ins.append(key_mask(r, b, s, past, total, ["none", "lengths", "keys", "pairs"] + (["ends"] if not past else [])))
    ins.append(r.tensor(kind, [2, b, n, past, h], odd=False) if past else None)
    given = r.chance(0.3) and not past  # the runtime takes no bias of scores with a past
    ins.append(r.tensor(kind, [r.pick([1, b]), r.pick([1, n]), s, total], odd=False) if given else None)
    return Case(ins, outs=2 if past else 1, num_heads=n, unidirectional=r.pick([None, 0, 1]), scale=r.pick([None, 0.4]),
                qkv_hidden_sizes=sizes if wide != h or r.chance(0.2) else None,
                mask_filter_value=r.pick([None, None, -1.0, -1e4]), by_scale=True, slack=10, judge="runtime")


@ms("QAttention")
def _(r, v, t):
    b, s, d, n, h = r.int(1, 2), r.int(1, 4), r.int(1, 5), r.int(1, 3), r.int(1, 4)
    kind = r.pick(BYTES)
    per = [] if r.chance() else [3 * n * h]
    ins = [r.tensor("uint8", [b, s, d], 0, 60, wide=False), byte(r, kind, [d, 3 * n * h], 60),
           r.tensor("float", [3 * n * h], -1, 1, odd=False), r.tensor("float", [], 0.01, 0.05, odd=False),
           r.tensor("float", per, 0.01, 0.05, odd=False),
           key_mask(r, b, s, 0, s, ["none", "lengths", "keys"]), r.tensor("uint8", [], 0, 20, wide=False)]
    ins.append(r.tensor(kind, per, 0, 20, wide=False))
    return Case(ins, num_heads=n, unidirectional=r.pick([None, 0, 1]), by_scale=True, slack=10, steer=(1,))


@ms("MultiHeadAttention")
def _(r, v, t):
    b, s, n, h, hv = r.int(1, 2), r.int(1, 4), r.int(1, 3), r.int(1, 4), r.int(1, 4)
    form = r.pick(["three"] * 8 + ["cross"] * 3 + ["packed", "pair"])  # the last two nobody runs
    length = s if form == "packed" else r.int(1, 5)
    past = 0
    if form in ("packed", "pair", "cross"):
        hv = h
    if form == "three" and r.chance(0.4):
        past, length, hv = r.int(1, 3), s, h

    kind = r.pick(["float", "float", "float16", "bfloat16"])

    def give(*shape):
        return r.tensor(kind, shape, -2, 2, odd=False)
    if form == "packed":
        ins = [give(b, s, n, 3, h), None, None]
    elif form == "pair":
        ins = [give(b, s, n * h), give(b, length, n, 2, h), None]
    elif form == "cross":
        ins = [give(b, s, n * h), give(b, n, length, h), give(b, n, length, h)]
    else:
        ins = [give(b, s, n * h), give(b, length, n * h), give(b, length, n * hv)]
    ins.append(give(n * (2 * h + hv)) if form == "three" and r.chance() else None)
    total = past + length
    ins.append(key_mask(r, b, s, past, total, ["none", "none", "lengths", "keys", "pairs"]))
    ins.append(give(r.pick([1, b]), r.pick([1, n]), s, total) if r.chance(0.3) else None)
    if past:
        ins += [give(b, n, past, h), give(b, n, past, hv)]
    return Case(ins, outs=3 if past else 1, num_heads=n, unidirectional=r.pick([None, 0, 1]) if length == s else None,
                scale=r.pick([None, 0.4]), mask_filter_value=r.pick([None, None, -1.0, -1e4]), by_scale=True, slack=10)


def resident(length, room, window):
    """The rows of a cache that slides which so many positions leave."""
    step = room - window + 1
    return length if length <= room else length - step * -(-(length - room) // step)


def cache(r, kind, bits, shape, rows):
    """The first rows of each sequence have elements, the others zeros: the runtime gives zeros there."""
    if kind != "int":
        x = r.tensor(kind, shape, -2, 2, odd=False)
    elif bits == 8:
        x = r.g.integers(-128, 128, shape).astype(np.int8)
    else:
        x = r.g.integers(0, 256, shape[:3] + [shape[3] // 2]).astype(np.uint8)
    for b, n in enumerate(rows):
        x[b, :, n:] = 0
    return x


@ms("GroupQueryAttention")
def _(r, v, t):
    b, kv, h = r.int(1, 2), r.int(1, 2), r.pick([8, 16])
    heads = kv * r.pick([1, 2, 3])
    step, slides, bits = r.chance(0.6), r.chance(0.2), r.pick([0, 0, 0, 4, 8])  # a step of a decoder, or a prompt
    window = r.int(1, 3) if slides else r.pick([None, None, 2, 3])
    room = r.int(window, 6) if slides else r.int(1, 5) if step else 0
    s = 1 if step else r.int(1, 9 if slides else 5)
    # Every sequence of a step has its own length; the cache may have room for the new key.
    lengths = [r.int(1, 12 if slides else room) + 1 for _ in range(b)] if step else [s] * b
    total = max(lengths)
    if step and not slides and r.chance():
        room = max(room, total)
    whole, past = max(total, room), [n - s for n in lengths]
    rows = [resident(n, room, window) for n in past] if slides else past

    real = r.pick(["float", "float", "float16"])

    def give(*shape):
        return r.tensor(real, shape, -2, 2, odd=False)
    if r.chance(0.3):
        ins = [give(b, s, (heads + 2 * kv) * h), None, None]
    else:
        ins = [give(b, s, heads * h), give(b, s, kv * h), give(b, s, kv * h)]
    kind = "int" if bits else real
    ins += [cache(r, kind, bits, [b, kv, room, h], rows) for _ in range(2)] if step or slides or bits else [None, None]
    ins += [np.asarray(lengths, np.int32) - 1, np.asarray(total, np.int32)]
    rotary = r.pick([0, 0, 1])
    ins += [give(whole + 2, h // 2), give(whole + 2, h // 2)] if rotary else [None, None]
    ins.append(None)
    ins.append(give(r.pick([1, b]), r.pick([1, heads]), s, whole) if r.chance(0.2) else None)
    ins.append(give(heads) if r.chance(0.2) else None)
    smooth = r.pick([None, None, 1]) if ins[-1] is None else None
    per = r.pick(["PER_TENSOR", "PER_CHANNEL"]) if bits else None

    def blank(k, y):
        for row, n in enumerate(lengths):
            if slides and k > 0:
                y[row, :, resident(n, room, window):] = 0
        return y
    if bits:
        ins += [r.tensor("float", [1, kv, 1, h] if per == "PER_CHANNEL" else [1], 0.01, 0.3, odd=False) for _ in range(2)]
    return Case(ins, outs=3, num_heads=heads, kv_num_heads=kv, do_rotary=rotary or None, scale=r.pick([None, 0.4]),
                rotary_interleaved=r.pick([None, 0, 1]) if rotary else None, softcap=r.pick([None, 2.0]),
                local_window_size=window, smooth_softmax=smooth, sliding_window_cache=1 if slides else None,
                causal=0 if window is None and not step and r.chance(0.3) else None, k_quant_type=per, v_quant_type=per,
                kv_cache_bit_width=bits or None, near=1, blank=blank, steer=(6,), by_scale=True, slack=10, judge="runtime")


@ms("RotaryEmbedding")
def _(r, v, t):
    b, n, s, d = r.int(1, 2), r.int(1, 3), r.int(1, 4), 2 * r.int(1, 4)
    part = 2 * r.int(1, d // 2) if r.chance(0.4) else 0
    most = s + 3
    flat = r.chance()
    kind = r.pick(SMALL_FLOATS)
    ids = r.g.integers(0, most, (b, s)) if r.chance() else r.g.integers(0, 3, 1)
    return Case([r.tensor(kind, [b, s, n * d] if flat else [b, n, s, d], odd=False), ids.astype(np.int64)]
                + [r.tensor(kind, [most, (part or d) // 2], -1, 1, odd=False) for _ in range(2)],
                interleaved=r.pick([None, 0, 1]), num_heads=n if part or r.chance(0.3) else None,
                rotary_embedding_dim=part or None, scale=r.pick([None, None, 1.0]))


# ---- Layers with a state, and what is around them. ----

@ms("GatedAdd")
def _(r, v, t):
    x, kind = r.shape(lo=1), r.pick(SMALL_FLOATS)
    return Case([r.tensor(kind, s, odd=False) for s in (x, x, x[:-1] + [1])])


@ms("GatedRMSNorm")
def _(r, v, t):
    n, kind = r.int(1, 6), r.pick(SMALL_FLOATS)
    x = r.shape(lo=0, hi=3, zero=0) + [n * r.int(1, 3)]
    return Case([r.tensor(kind, s, odd=False) for s in (x, [n], x)], activation=r.pick([None, "silu", "swish", "sigmoid"]),
                epsilon=r.pick([None, 1e-2]), by_scale=True, slack=4)


@ms("LinearAttentionGate")
def _(r, v, t):
    x, kind = r.shape(rank=3), r.pick(SMALL_FLOATS)
    has_beta = r.chance(0.7)
    return Case([r.tensor(kind, x, odd=False), r.tensor("float", x[2:], odd=False), r.tensor("float", x[2:], -3, 0, odd=False)]
                + [r.tensor(kind, x, odd=False)] * has_beta, outs=1 + has_beta, slack=4)


@ms("MRotaryEmbedding")
def _(r, v, t):
    b, n, s, d = r.int(1, 2), r.int(1, 3), r.int(1, 4), 2 * r.int(1, 6)
    part = 2 * r.int(1, d // 2) if r.chance(0.3) else 0
    half, most, kind = (part or d) // 2, s + 3, r.pick(SMALL_FLOATS)
    cut = sorted(r.ints(0, half, 2))
    flat = r.chance(0.6)
    return Case([r.tensor(kind, [b, s, n * d] if flat else [b, n, s, d], odd=False),
                 r.g.integers(0, most, (3, b, s)).astype(np.int64)] + [r.tensor(kind, [most, half], -1, 1, odd=False) for _ in range(2)],
                mrope_section=[cut[0], cut[1] - cut[0], half - cut[1]], mrope_layout=r.pick([None, 0, 1]),
                interleaved=r.pick([None, 0, 1]), num_heads=n if part or r.chance(0.3) else None, rotary_embedding_dim=part or None)


@ms("GatherBlockQuantized")
def _(r, v, t):
    form, block = r.pick(["byte"] * 4 + ["int4", "uint4"] + ["float8e4m3fn", "float8e5m2", "float4e2m1"]), r.pick([16, 32])
    kind, x = r.pick(["float", "float", "float16"]), r.shape(lo=2, hi=3, zero=0)
    bits = r.pick([2, 4, 4, 8]) if form == "byte" else 4
    axis = r.int(1 if form == "byte" and bits < 8 else 0, len(x) - 1)
    x[axis] = r.int(1, 40)
    each = 8 // bits if form == "byte" else 1
    x[-1] = -(-x[-1] // each) * each
    gather = 0 if form == "byte" else r.int(0, len(x) - 1)
    per_row = "float" in form and r.chance(0.3)
    scales = [(1 if per_row else -(-d // block)) if k == axis else 1 if "float" in form and r.chance(0.3) else d
              for k, d in enumerate(x)]
    data = r.g.integers(0, 256, x[:-1] + [x[-1] // each]).astype(np.uint8) if form == "byte" else r.tensor(form, x, wide=False)
    zeros = None
    if "float" not in form and r.chance():
        zeros = (r.g.integers(0, 256, scales[:-1] + [-(-scales[-1] // each)]).astype(np.uint8) if form == "byte"
                 else r.tensor(form, scales, -8, 8))
    return Case([data, r.index(x[gather], r.shape(hi=2, zero=0), r.pick(["int32", "int64"])), r.tensor(kind, scales, 0.1, 1, odd=False),
                 zeros], bits=bits if form == "byte" and (bits != 4 or r.chance()) else None, block_size=0 if per_row else block,
                gather_axis=gather - len(x) if gather and r.chance() else gather or None,
                quantize_axis=axis if axis != 1 or r.chance() else None, steer=(0, 2, 3))


@ms("CausalConvWithState")
def _(r, v, t):
    n, channels, length, size, gap = r.int(1, 3), r.shape(hi=2, lo=1, zero=0), r.int(1, 6), r.int(1, 4), r.pick([1, 1, 2, 3])
    last = r.chance(0.4)
    whole, kind = int(np.prod(channels)), r.pick(SMALL_FLOATS)

    def wide(k):
        return [n, k] + channels if last else [n, whole, k]
    ins = [r.tensor(kind, wide(length), odd=False), r.tensor(kind, [whole, 1, size], odd=False)]
    ins.append(r.tensor(kind, [whole], odd=False) if r.chance() else None)
    ins.append(r.tensor(kind, wide((size - 1) * gap), odd=False) if r.chance() and size > 1 else None)
    return Case(ins, outs=2, activation=r.pick([None, "none", "silu", "swish"]), channels_last=1 if last else r.pick([None, 0]),
                dilation=gap if gap > 1 else None, ndim=r.pick([None, 1]), by_scale=True, slack=4)


@ms("LinearAttention")
def _(r, v, t):
    b, steps, least, size, wide = r.int(1, 2), r.int(1, 5), r.int(1, 2), r.int(1, 4), r.int(1, 4)
    queries, heads = r.pick([(least, least), (2 * least, least), (least, 2 * least)])
    keys = r.pick([k for k in (1, 2, heads) if heads % k == 0])
    kind, rule = r.pick(SMALL_FLOATS), r.pick([None, "linear", "gated", "delta", "gated_delta"])

    def give(*shape, lo=-1, hi=1):
        return r.tensor(kind, shape, lo, hi, odd=False)
    ins = [give(b, steps, queries * size), give(b, steps, keys * size), give(b, steps, heads * wide)]
    ins.append(give(b, heads, size, wide) if r.chance() else None)
    gated, learns = rule in (None, "gated", "gated_delta"), rule in (None, "delta", "gated_delta")
    ins.append(give(b, steps, heads * r.pick([1, size]), lo=-2, hi=0) if gated else None)
    ins.append(give(b, steps, r.pick([1, heads]), lo=0, hi=1) if learns else None)
    return Case(ins, outs=2, q_num_heads=queries, kv_num_heads=heads, update_rule=rule, scale=r.pick([None, 0.0, 0.7]),
                chunk_size=r.pick([None, 2]), by_scale=True, slack=4)


# ---- Mixtures of experts. ----

def gelu(x):
    return x / 2 * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x ** 3)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = {"relu": lambda x: np.maximum(x, 0), "gelu": gelu, "silu": lambda x: x * sigmoid(x), "identity": lambda x: x}


def experts(x, router, products, k, chosen_alone, normalizes, kind, fusion, alpha, beta, limit, own=None):
    """The formula, where the runtime has no kernel.  A product is weights and a bias."""
    def times(i, e, h):
        w, b = products[i]
        return w[e].astype(float) @ h + (0 if b is None else b[e].astype(float))
    y = np.zeros(x.shape)
    for t, row in enumerate(x.astype(float)):
        logits = router[t].astype(float)
        best = np.argsort(-logits, kind="stable")[:k]
        weights = np.exp(logits - logits.max())
        weights = weights[best] / (weights[best] if chosen_alone else weights).sum()
        weights = own[t].astype(float)[best] if own is not None else weights
        weights = weights / weights.sum() if normalizes else weights
        for e, weight in zip(best, weights):
            h = times(0, e, row)
            other = times(2, e, row) if products[2] else None
            if kind == "swiglu":
                g, other = (h, other) if fusion == 0 else (h[0::2], h[1::2]) if fusion == 1 else np.split(h, 2)
                g = np.minimum(g, limit)
                h = g * sigmoid(alpha * g) * (np.clip(other, -limit, limit) + beta)
            else:
                h = ACTIVATIONS[kind](h) * (1 if other is None else other)
            y[t] += weight * times(1, e, h)
    return y.astype(np.float32)


def mixture(r):
    """Attributes of both operators, and whether the runtime has a kernel."""
    kind = r.pick(["relu", "gelu", "silu", "identity", "swiglu", "swiglu"])
    fusion = r.pick([0, 1, 1, 2]) if kind == "swiglu" else 0
    third = fusion == 0 and (kind == "swiglu" or r.chance(0.2))
    alpha, beta, limit = (r.pick([None, 1.702]), r.pick([None, 1.0]), r.pick([None, 0.7])) if kind == "swiglu" else (None,) * 3
    attrs = dict(activation_type=kind if kind != "relu" or r.chance() else None, swiglu_fusion=fusion or None, activation_alpha=alpha,
                 activation_beta=beta, swiglu_limit=limit, normalize_routing_weights=r.pick([None, 0, 1]))
    given = (kind, fusion, alpha or 1.0, beta or 0.0, limit or np.inf)
    return attrs, given, third, not third and fusion != 2


@ms("MoE")
def _(r, v, t):
    attrs, given, third, is_known = mixture(r)
    tokens, h, n, e = r.int(1, 5), r.int(1, 6), r.int(1, 6), r.int(1, 4)
    wide, k = 2 * n if given[1] else n, r.int(1, e)

    def give(*shape, chance=1.0):
        return r.tensor("float", shape, -1, 1, odd=False) if r.chance(chance) else None
    x = give(tokens, h)
    ins = [x, give(tokens, e), give(e, wide, h), give(e, wide, chance=0.5), give(e, h, n), give(e, h, chance=0.5)]
    ins += [give(e, n, h), give(e, n, chance=0.5)] if third else []
    products = [ins[2:4], ins[4:6], ins[6:8]]
    known = None if is_known else [experts(x, ins[1], products, k, False, attrs["normalize_routing_weights"], *given)]
    if tokens % 2 == 0 and r.chance():
        ins[0] = x.reshape(2, -1, h)
        known = known and [known[0].reshape(2, -1, h)]
    return Case(ins, k=k if k != 1 or r.chance() else None, by_scale=True, slack=10,
                **attrs, **(dict(judge="recipe", known=known) if known else dict(judge="runtime")))


def packed_rows(q, bits):
    each = 8 // bits
    q = np.concatenate([q, np.zeros(q.shape[:-1] + (-q.shape[-1] % each,), np.uint8)], -1)
    return sum(q[..., i::each].astype(int) << bits * i for i in range(each)).astype(np.uint8)


def integers(r, e, n, k, bits, block, has_zeros):
    """Weights, scales and zero points of a product, and the weights as real numbers."""
    blocks = k // block if block else 1
    q = r.g.integers(0, 1 << bits, (e, n, k)).astype(np.uint8)
    scale = r.tensor("float", [e, n, blocks], 0.05, 0.2, odd=False)
    zero = r.g.integers(0, 1 << bits, (e, n, blocks)).astype(np.uint8) if has_zeros else np.full((e, n, blocks), 1 << bits - 1, np.uint8)
    real = (q.astype(float) - np.repeat(zero, k // blocks, -1)) * np.repeat(scale, k // blocks, -1)
    if not block:
        scale, zero = scale[..., 0], zero[..., 0]
    return packed_rows(q, bits), scale, packed_rows(zero, bits) if has_zeros else None, real


@ms("QMoE")
def _(r, v, t):
    attrs, given, third, is_known = mixture(r)
    bits, block, has_zeros = r.pick([2, 4, 4, 8]), r.pick([0, 16, 32]), r.chance()
    tokens, h, n, e = r.int(1, 4), 32 * r.int(1, 2), 32, r.int(1, 3)
    wide, k = 2 * n if given[1] else n, r.int(1, e)

    def give(*shape, chance=1.0):
        return r.tensor("float", shape, -1, 1, odd=False) if r.chance(chance) else None
    made = [integers(r, e, rows, cols, bits, block, has_zeros) for rows, cols in ((wide, h), (h, n), (n, h))]
    biases = [give(e, rows, chance=0.5) for rows in (wide, h, n)]
    x, router, own = give(tokens, h), give(tokens, e), np.abs(give(tokens, e)) if r.chance(0.2) else None
    ins = [x, router]
    for i in range(3):
        ins += [made[i][0], made[i][1], biases[i]] if i < 2 or third else [None] * 3
    ins += [made[i][2] if i < 2 or third else None for i in range(3)] + [own]
    products = [(m[3], b) if i < 2 or third else None for i, (m, b) in enumerate(zip(made, biases))]
    is_known = is_known and (bits != 8 or not block)  # the runtime rounds the input to eight bits
    known = None if is_known else [experts(x, router, products, k, True, own is not None and attrs["normalize_routing_weights"],
                                           *given, own=own)]
    return Case(ins, k=k, expert_weight_bits=bits if bits != 4 or r.chance() else None, block_size=block or None, by_scale=True,
                slack=10, steer=(2, 3, 5, 6), **attrs, **(dict(judge="recipe", known=known) if known else dict(judge="runtime")))
