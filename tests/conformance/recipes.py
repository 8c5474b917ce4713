# SPDX-License-Identifier: Apache-2.0
"""How to draw a case of an operator: one recipe each, a row where a family is regular.

A recipe gets the draw `r`, the version `v` of the operator, and `t`, which gives
the element type of a type parameter; it returns inputs (None: left out) and
attributes, as Case takes them."""
import numpy as np
import onnx
from onnx import defs, helper

import draw
from draw import FLOATS, INTS, NUMPY, UINTS

NEWEST = defs.onnx_opset_version()
RECIPES = {}
NUMERIC = FLOATS + INTS + UINTS


class Case:
    def __init__(self, ins, outs=1, steer=(), opset=None, near=0, slack=1, by_scale=False, judge=None,
                 nodes=None, tolerance=None, twin=None, out_types=None, check=None, around=True, checks_bits=False,
                 known=None, blank=None, **attrs):
        self.ins = ins
        self.outs = [True] * outs if isinstance(outs, int) else outs
        self.steer = steer          # inputs that say what shape comes out: constants mostly
        self.near = near            # what integers may be off by
        self.slack = slack          # by what the tolerances are multiplied
        self.by_scale = by_scale    # is what counts the largest element?
        self.judge = judge          # "runtime", "reference", "recipe", "no value"; None: whoever can
        self.nodes = nodes          # more than one node, from x0.. to y0..
        self.out_types = out_types or {}
        self.check = check
        self.may_go_around = around
        self.attrs = {k.rstrip("_"): a for k, a in attrs.items() if a is not None}
        self.opset = opset
        self.domain = ""
        self.ir = 10
        self.why = ""
        self.tolerance = tolerance  # another than the types have
        self.twin = twin            # a case that gives the same, and a function of what it gives: for the judge
        self.checks_bits = checks_bits
        self.known = known          # what comes out, where the recipe can tell
        self.blank = blank          # an output, by its number, without what may be anything

    def __str__(self):
        ins = ", ".join("-" if a is None else f"{NAMES.get(a.dtype, a.dtype)}{list(a.shape)}{'c' if k in self.const else ''}"
                        + (f"={a.reshape(-1).tolist()}" if a.size <= 6 else "")
                        for k, a in enumerate(self.ins))
        return f"{self.op} version {self.version} opset {self.opset} ({ins}) {self.attrs} {self.outs}"


from draw import NAME as NAMES  # noqa: E402


def bits(t):
    """Of an element."""
    packed = {"float4e2m1": 4, "uint4": 4, "int4": 4, "uint2": 2, "int2": 2}
    return packed.get(t) or 8 * np.dtype(NUMPY[t]).itemsize


def recipe(*names, domain="", types=None, versions=None):
    def add(f):
        for n in names:
            RECIPES[domain + "." + n if domain else n] = (f, domain, n, types, versions)
        return f
    return add


# ---- Versions and types. ----

SCHEMAS, ENDS = {}, {}
for s in defs.get_all_schemas_with_history():
    if s.deprecated:
        ENDS[s.domain, s.name] = s.since_version
    else:
        SCHEMAS.setdefault((s.domain, s.name), []).append(s)
for rows in SCHEMAS.values():
    rows.sort(key=lambda s: s.since_version)


class Types:
    """Draws the type of a parameter, once; mostly what is common."""

    def __init__(self, r, schema, drawn):
        self.r, self.schema, self.drawn = r, schema, dict(drawn)

    def allowed(self, name):
        if self.schema is None:
            return ["float"]
        for c in self.schema.type_constraints:
            if c.type_param_str == name:
                kinds = [x[x.rfind("(") + 1:].rstrip(")") for x in c.allowed_type_strs]  # of what a sequence holds, too
                return [x for x in dict.fromkeys(kinds) if x in NUMPY]
        return []

    def __call__(self, name="T", among=None):
        if name not in self.drawn:
            can = [x for x in self.allowed(name) if among is None or x in among]
            common = [x for x in can if x in ("float", "int64", "bool", "double", "int32")]
            self.drawn[name] = self.r.pick(common if common and self.r.chance(0.5) else can) if can else "float"
        return self.drawn[name]


def operators():
    return sorted(RECIPES)


def case(key, r, schema=None, drawn=()):
    """Of one of its schemas, or of that; types of parameters may be `drawn` before."""
    f, domain, name, types, versions = RECIPES[key]
    rows = SCHEMAS.get((domain, name), [])
    schema = schema or (r.pick(rows) if rows else None)
    version = schema.since_version if schema else 1
    c = f(r, version, Types(r, schema, drawn))
    if c is None:
        return None
    c.op, c.domain, c.version = name, domain, version
    if c.opset is None:
        later = [s.since_version for s in rows if s.since_version > version]
        last = min(later + [ENDS.get((domain, name), NEWEST + 1), NEWEST + 1]) - 1
        last = max(last, version)
        c.opset = (version if r.chance(0.7) else r.int(version, last)) if not domain else 21
    c.newest = schema is rows[-1] if rows else True
    c.ir = 10 if c.opset <= 21 else 11 if c.opset <= 23 else 12 if c.opset < 26 else 13
    every = r.chance(0.12)
    if c.twin:
        c.twin[0].op = getattr(c.twin[0], "op", name)
        c.twin[0].domain, c.twin[0].version, c.twin[0].opset = domain, version, c.twin[0].opset or c.opset
        c.twin[0].const = set()
    c.const = {k for k, a in enumerate(c.ins)
               if a is not None and not isinstance(a, draw.Map) and (every or r.chance(0.75 if k in c.steer else 0.1))}
    c.symbolic = r.chance(0.5)
    c.around = r.chance(0.6) and c.may_go_around and c.opset >= 9
    return c


# ---- Elementwise. ----

def unary(name, lo=-4, hi=4, odd=True, wide=True, slack=1, **attrs):
    """`attrs`: ranges of float attributes, given now and then."""
    def f(r, v, t):
        drawn = {k: r.real(*span) for k, span in attrs.items() if r.chance(0.6)}
        return Case([r.tensor(t("T"), r.shape(), lo, hi, odd=odd, wide=wide)], slack=slack, **drawn)
    recipe(name)(f)


for n in ("Abs", "Neg", "Sign", "Floor", "Ceil", "Round", "Relu", "Sigmoid", "Tanh", "Softplus", "Softsign",
          "Erf", "Mish", "Not", "BitwiseNot"):
    unary(n)
for n, lo, hi in (("Exp", -4, 4), ("Log", -0.5, 5), ("Sqrt", -0.5, 9), ("Sin", -9, 9), ("Cos", -9, 9),
                  ("Tan", -1.4, 1.4), ("Asin", -1.1, 1.1), ("Acos", -1.1, 1.1), ("Atan", -9, 9),
                  ("Sinh", -4, 4), ("Cosh", -4, 4), ("Asinh", -9, 9), ("Acosh", 0.9, 9), ("Atanh", -1.05, 1.05),
                  ("Reciprocal", 0.2, 5)):
    unary(n, lo, hi, odd=n not in ("Sin", "Cos", "Tan"))  # of 1e30, every bit of it counts
unary("HardSwish", slack=100)  # a sixth of 32 bits
unary("Elu", alpha=(-1, 2))
unary("Selu", alpha=(0.5, 2), gamma=(0.5, 2))
unary("Celu", alpha=(0.2, 2))
unary("LeakyRelu", alpha=(-1, 2))
unary("ThresholdedRelu", alpha=(-1, 2))
unary("HardSigmoid", alpha=(-0.5, 0.5), beta=(-1, 1))
unary("Shrink", wide=False, slack=1000, bias=(-1, 2), lambd=(0, 2))
unary("Swish", alpha=(-1, 2))


@recipe("Identity")
def _(r, v, t):
    kind = t("V") if v >= 14 else t("T")
    return Case([r.tensor(kind, r.shape())], out_types={"y0": kind})


@recipe("IsNaN")
def _(r, v, t):
    return Case([r.tensor(t("T1"), r.shape())])


@recipe("IsInf")
def _(r, v, t):
    flags = {k: r.int(0, 1) for k in ("detect_negative", "detect_positive") if r.chance()}
    return Case([r.tensor(t("T1"), r.shape())], **flags)


@recipe("Gelu")
def _(r, v, t):
    return Case([r.tensor(t("T"), r.shape())], approximate=r.pick([None, "none", "tanh"]))


@recipe("Clip")
def _(r, v, t):
    a, b = sorted((r.real(-3, 3), r.real(-3, 3)))
    x = r.tensor(t("T"), r.shape(), odd=t("T") == "float")  # each type ends elsewhere
    if v < 11:
        return Case([x], **{k: y for k, y in (("min", a), ("max", b)) if r.chance(0.7)})
    if t("T") in UINTS:
        a, b = 1.0, 3.0
    bounds = [np.asarray(y).astype(NUMPY[t("T")]) if r.chance(0.7) else None for y in (a, b)]
    return Case([x] + bounds)


def binary(name, param="T", lo=-4, hi=4, second=None, odd=True, wide=True, **types):
    def f(r, v, t):
        if v < 7:  # only the second goes to the first, and only from an axis on
            x = r.shape(lo=1)
            axis, y = None, x
            if name != "PRelu" and r.chance(0.6):
                a = r.int(0, len(x) - 1)
                b = r.int(a, len(x) - 1)
                y, axis = x[a:b + 1], a
                if 0 in x:
                    y, axis = x, None
            shapes = [x, y]
            more = {"axis": axis, "broadcast": 1} if axis is not None else {}
        else:
            shapes, more = r.broadcast(2), {}
        a = r.tensor(t(param), shapes[0], lo, hi, odd=odd, wide=wide)
        to = r.tensor(t(param), shapes[1], *(second or (lo, hi)), odd=odd, wide=wide and second is None)
        c = Case([a, to], **more)  # before version 7, the runtime knows few of them
        if v < 7:
            behind = len(x) - axis - len(y) if axis is not None else 0
            c.twin = Case([a, to.reshape(to.shape + (1,) * behind)], opset=13), as_is
        return c
    recipe(name)(f)


def as_is(outs, wanted):
    """What a twin gives is what is wanted."""
    return outs


for n in ("Add", "Sub", "Mul", "And", "Or", "Xor", "Equal", "Less", "Greater", "LessOrEqual",
          "GreaterOrEqual", "BitwiseAnd", "BitwiseOr", "BitwiseXor"):
    binary(n)
binary("Div", second=(1, 5))


@recipe("Pow")
def _(r, v, t):
    x, y = r.broadcast(2) if v >= 7 else [r.shape(lo=1)] * 2
    ty = t("T1") if v >= 12 else t("T")
    whole = t("T") in INTS + UINTS
    a = r.tensor(t("T"), x, 0.2 if not whole and r.chance(0.7) else 0 if ty in FLOATS else -3, 4, wide=False)
    return Case([a, r.tensor(ty, y, odd=not whole, lo=0 if t("T") in INTS + UINTS or ty in INTS + UINTS else -2, hi=4, wide=False)])


@recipe("Mod")
def _(r, v, t):
    x, y = r.broadcast(2)
    isfloat = t("T") in FLOATS
    a = r.tensor(t("T"), x, -9, 9, odd=False)
    b = r.tensor(t("T"), y, 1, 5, odd=False, wide=False)
    if not isfloat and t("T") in INTS and r.chance():
        b = -b
    fmod = 1 if isfloat else r.pick([None, 0, 1])
    if fmod and not isfloat:  # the runtime goes through floats
        a = r.tensor(t("T"), x, -9, 9, wide=False)
    return Case([a, b], fmod=fmod)


@recipe("BitShift")
def _(r, v, t):
    x, y = r.broadcast(2)
    return Case([r.tensor(t("T"), x, 0, 100), r.tensor(t("T"), y, 0, 7, wide=False)], direction=r.pick(["LEFT", "RIGHT"]))


@recipe("PRelu")
def _(r, v, t):
    x = r.shape(lo=1)
    if v < 7:  # one for each channel: nobody else knows
        s = [1]
    else:
        s = r.to_broadcast(x)
    return Case([r.tensor(t("T"), x), r.tensor(t("T"), s)])


def variadic(name):
    def f(r, v, t):
        n = r.int(1, 4)
        shapes = r.broadcast(n) if v >= 8 else [r.shape()] * n
        return Case([r.tensor(t("T"), s) for s in shapes])
    recipe(name)(f)


for n in ("Max", "Min", "Sum", "Mean"):
    variadic(n)


@recipe("Where")
def _(r, v, t):
    c, x, y = r.broadcast(3)
    return Case([r.tensor("bool", c), r.tensor(t("T"), x), r.tensor(t("T"), y)])


@recipe("SwiGLU")
def _(r, v, t):
    s = r.shape()
    return Case([r.tensor(t("T"), s), r.tensor(t("T"), s)], alpha=r.real(0, 2) if r.chance() else None)


# ---- Casts. ----

def cast_input(r, source, target):
    if source == "string":
        x = r.shape(hi=2)
        words = np.empty(x, np.object_)
        flat = words.reshape(-1)
        for k in range(flat.size):
            real = r.pick(["1.5", "-2", "3e2", "inf", "-INF", "NaN", "0", "1e-3"])
            flat[k] = real if target in FLOATS or target.startswith("float") else str(r.int(0, 9))
        return words
    lo = 0 if target in UINTS + ("uint4", "uint2") else -2 if target in ("int2",) else -7
    hi = 3 if target == "uint2" else 1 if target == "int2" else 7
    return r.tensor(source, r.shape(), lo, hi, odd=target in FLOATS + ("bool",), wide=target in INTS + UINTS)


def cast_ok(source, target):
    return not ({source, target} & {"complex64", "complex128"}) and (source == "string") + (target == "string") < 2 \
        and not (target == "bool" and source == "string")


def cast_judge(source, target):
    """The runtime rounds to small integers."""
    return "reference" if target in ("int4", "uint4", "int2", "uint2") and source.startswith(("float", "double", "bf")) else None


@recipe("Cast")
def _(r, v, t):
    source, target = t("T1"), t("T2")
    if not cast_ok(source, target):
        return None
    code = helper.np_dtype_to_tensor_dtype(np.dtype(NUMPY[target]))
    more = {}
    if v < 6:
        code = onnx.TensorProto.DataType.Name(code)
    if v >= 19 and target.startswith("float8") and r.chance():
        more["saturate"] = r.int(0, 1)
    c = Case([cast_input(r, source, target)], to=code, out_types={"y0": target}, judge=cast_judge(source, target), **more)
    if target == "string":
        c.check = same_number
    if v == 1:
        number = helper.np_dtype_to_tensor_dtype(np.dtype(NUMPY[target]))
        c.twin = Case(c.ins, to=number, out_types=c.out_types, judge=c.judge, opset=9), as_is
    return c


@recipe("CastLike")
def _(r, v, t):
    source, target = t("T1"), t("T2")
    if not cast_ok(source, target):
        return None
    c = Case([cast_input(r, source, target), r.tensor(target, r.shape(hi=2))], out_types={"y0": target},
             judge=cast_judge(source, target))
    if target == "string":
        c.check = same_number
    return c


def same_number(case, k, got, want):
    """Texts of numbers, however they are written."""
    if list(got.shape) != list(np.shape(want)):
        return f"shape {list(got.shape)}, wanted {list(np.shape(want))}"
    for a, b in zip(got.reshape(-1), np.asarray(want).reshape(-1)):
        b = b.decode() if isinstance(b, bytes) else str(b)
        try:
            same = a == b or np.isclose(float(a), float(b), rtol=1e-3, equal_nan=True)
        except ValueError:
            same = a.lower() == b.lower() or (a in "01" and b in ("True", "False") and (a == "1") == (b == "True"))
        if not same:
            return f"text {a!r}, wanted {b!r}"
    return None


@recipe("BitCast")
def _(r, v, t):
    first, second = ("T2", "T1") if "T2" in t.drawn else ("T1", "T2")
    one = t(first)
    t(second, [x for x in t.allowed(second) if bits(x) == bits(one)])
    source, target = t("T1"), t("T2")
    x = r.tensor(source, r.shape())
    if target == "bool" and source != "bool":  # a truth is 0 or 1
        x = np.zeros(x.shape, NUMPY[source])
    strange = bits(one) < 8 or bits(one) == 128 or "bool" in (source, target)
    return Case([x], to=helper.np_dtype_to_tensor_dtype(np.dtype(NUMPY[target])), out_types={"y0": target},
                judge="no value" if strange else None, checks_bits=True)


# ---- Reductions. ----

def reduction(name, lo=-3, hi=3, among=None):
    since = 13 if name == "ReduceSum" else 18

    def f(r, v, t):
        x = r.shape(lo=0 if v >= 18 else 1, zero=0.08)
        a = r.axes(len(x), negative=v >= 11)
        keep = r.pick([None, 0, 1])
        if name == "ReduceMean" and 0 in x:
            return None
        given = r.tensor(t("T", among), x, lo, hi, wide=False, odd=False)
        # The runtime keeps dims of no elements that are counted from the end.
        judge = "reference" if 0 in x and any(k < 0 for k in a) else None
        if name in ("ReduceProd", "ReduceSumSquare") and t("T") in ("int8", "uint8"):
            given = r.tensor(t("T"), x, -1 if t("T") == "int8" else 0, 1, wide=False)
        if v < since:
            return Case([given], axes=a or None, keepdims=keep, slack=4, by_scale=True, judge=judge)
        noop = r.pick([None, 0, 1])
        axes = np.asarray(a, np.int64) if a or r.chance() else None
        return Case([given, axes], steer=(1,), keepdims=keep, noop_with_empty_axes=noop, slack=4, by_scale=True,
                    judge=judge)
    recipe(name)(f)


for n in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceSumSquare", "ReduceProd"):
    reduction(n)
reduction("ReduceLogSum", 0.2, 3, FLOATS)  # of integers: who knows how they are rounded
reduction("ReduceLogSumExp", among=FLOATS)
reduction("ReduceL2", among=FLOATS)


@recipe("ArgMax", "ArgMin")
def _(r, v, t):
    x = r.shape(lo=1, zero=0)
    return Case([r.tensor(t("T"), x, odd=False, wide=False)], keepdims=r.pick([None, 0, 1]),
                axis=r.axis(len(x), v) if r.chance(0.8) else None,
                select_last_index=r.pick([None, 0, 1]) if v >= 12 else None)


@recipe("TopK")
def _(r, v, t):
    x = r.shape(lo=1, zero=0)
    axis = r.axis(len(x), v) if r.chance(0.7) else None
    n = x[-1 if axis is None else axis]
    k = r.int(0 if v >= 10 else 1, n)
    given = r.tensor(t("T"), x, -3, 3, odd=False, wide=False)
    if v < 10:
        return Case([given], outs=2, axis=axis, k=k)
    more = {"largest": r.pick([None, 0, 1]), "sorted": 1} if v >= 11 else {}
    return Case([given, np.asarray([k], np.int64)], outs=2, steer=(1,), axis=axis, **more)


def cumulative(name):
    def f(r, v, t):
        x = r.shape(lo=1)
        axis = np.asarray(r.axis(len(x)), r.pick([np.int32, np.int64]))
        return Case([r.tensor(t("T"), x, -3, 3, odd=False, wide=False), axis], steer=(1,), by_scale=True,
                    exclusive=r.pick([None, 0, 1]), reverse=r.pick([None, 0, 1]))
    recipe(name)(f)


cumulative("CumSum")
cumulative("CumProd")


@recipe("Softmax", "LogSoftmax", "Hardmax")
def _(r, v, t):
    x = r.shape(lo=1 if v >= 13 else 2)
    return Case([r.tensor(t("T"), x, odd=False)], axis=r.axis(len(x), v) if r.chance(0.8) else None)


@recipe("LpNormalization")
def _(r, v, t):
    x = r.shape(lo=1)
    return Case([r.tensor(t("T"), x, odd=False)], axis=r.axis(len(x), 11) if r.chance(0.8) else None, judge="runtime",
                p=r.pick([None, 1, 2]))


# ---- Shapes. ----

@recipe("Reshape")
def _(r, v, t):
    x = r.shape(zero=0.1)
    n = int(np.prod(x, dtype=int))
    dims = []
    rest = n
    for _ in range(r.int(0, 3)):
        if rest <= 0:
            break
        d = r.pick([k for k in range(1, rest + 1) if rest % k == 0])
        dims.append(d)
        rest //= d
    dims.append(rest)
    if r.chance(0.3) and 0 not in dims:
        dims[r.int(0, len(dims) - 1)] = -1
    allow = None
    if v >= 14 and 0 in dims:
        allow = 1
    elif 0 not in dims and r.chance(0.3):
        for k, d in enumerate(dims):
            if k < len(x) and x[k] == d:
                dims[k] = 0
    elif v < 14 and 0 in dims:
        return None
    given = r.tensor(t("T"), x)
    if v < 5:
        return Case([given], shape=dims)
    return Case([given, np.asarray(dims, np.int64)], steer=(1,), allowzero=allow, out_types={"y0": t("T")})


@recipe("Flatten")
def _(r, v, t):
    x = r.shape(lo=0 if v >= 9 else 1)
    return Case([r.tensor(t("T"), x)], axis=r.int(-len(x) if v >= 11 else 0, len(x)) if r.chance(0.8) and x else 0,
                out_types={"y0": t("T")})


@recipe("Squeeze")
def _(r, v, t):
    x = [1 if r.chance() else d for d in r.shape()]
    ones = [k for k, d in enumerate(x) if d == 1]
    axes = [k - len(x) if v >= 11 and r.chance(0.3) else k for k in ones if r.chance(0.6)]
    given = r.tensor(t("T"), x)
    if not axes and r.chance():
        axes = None
    if v < 13:
        return Case([given], axes=axes or None)
    if not axes:
        axes = None
    return Case([given, None if axes is None else np.asarray(axes, np.int64)], steer=(1,), out_types={"y0": t("T")})


@recipe("Unsqueeze")
def _(r, v, t):
    x = r.shape(hi=3)
    n = r.int(1, 2)
    rank = len(x) + n
    axes = [int(k) for k in r.g.permutation(rank)[:n]]
    axes = [k - rank if v >= 11 and r.chance(0.3) else k for k in axes]
    given = r.tensor(t("T"), x)
    if v < 13:
        return Case([given], axes=axes)
    return Case([given, np.asarray(axes, np.int64)], steer=(1,), out_types={"y0": t("T")})


@recipe("Transpose")
def _(r, v, t):
    x = r.shape(hi=5, size=4)
    perm = [int(k) for k in r.g.permutation(len(x))] if r.chance(0.8) and x else None
    return Case([r.tensor(t("T"), x)], perm=perm, out_types={"y0": t("T")})


@recipe("Expand")
def _(r, v, t):
    x, y = r.broadcast(2)
    return Case([r.tensor(t("T"), x), np.asarray(y, np.int64)], steer=(1,), out_types={"y0": t("T")})


@recipe("Tile")
def _(r, v, t):
    x = r.shape(lo=1, hi=3)
    if v < 6:
        return None
    return Case([r.tensor(t("T"), x), np.asarray(r.ints(0 if r.chance(0.1) else 1, 3, len(x)), np.int64)], steer=(1,))


@recipe("Concat")
def _(r, v, t):
    x = r.shape(lo=1)
    axis = r.axis(len(x), v)
    ins = []
    for _ in range(r.int(1, 4)):
        y = list(x)
        y[axis] = r.int(0, 4)
        ins.append(r.tensor(t("T"), y))
    return Case(ins, axis=axis if v >= 4 or r.chance() or len(x) < 2 or axis != 1 else None)


@recipe("Split")
def _(r, v, t):
    x = r.shape(lo=1, size=7, zero=0)
    axis = r.axis(len(x), v)
    n = r.int(1, 4)
    cut = sorted(r.ints(0, x[axis], n - 1))
    parts = [b - a for a, b in zip([0] + cut, cut + [x[axis]])]
    equal = r.chance(0.4)
    if equal and v < 18:
        x[axis] = n * r.int(1, 3)
    given = r.tensor(t("T"), x)
    axis = axis if axis or r.chance() else None
    if v < 13:
        c = Case([given], outs=n, axis=axis, split=None if equal else parts)
        if v == 1:
            c.twin = Case([given], outs=n, opset=2, **c.attrs), as_is
        return c
    ins = [given] + ([] if equal else [np.asarray(parts, np.int64)])
    if v >= 18 and equal:
        n = min(n, x[axis or 0])
        size = -(-x[axis or 0] // n)
        if size * (n - 1) >= x[axis or 0]:
            return None
    return Case(ins, outs=n, axis=axis, steer=(1,), num_outputs=n if v >= 18 and equal else None)


@recipe("Slice")
def _(r, v, t):
    x = r.shape(lo=1, size=7)
    axes = r.axes(len(x), negative=v >= 10, some=True)
    starts, ends, steps = [], [], []
    for a in axes:
        d = x[a]
        step = r.pick([1, 1, 2, 3, -1, -2]) if v >= 10 else 1
        lo, hi = r.int(-d - 2, d + 2), r.int(-d - 2, d + 2)
        if r.chance(0.2):
            hi = 2**63 - 1 if step > 0 else -2**63 + 1
        starts.append(lo), ends.append(hi), steps.append(step)
    given = r.tensor(t("T"), x)
    if v < 10:
        whole = r.chance(0.3)
        if whole:
            return Case([given], starts=(starts + [0] * 9)[:len(x)], ends=(ends + [2**31] * 9)[:len(x)])
        return Case([given], starts=starts, ends=ends, axes=axes)
    kind = r.pick([np.int32, np.int64])
    if kind is np.int32:
        ends = [min(max(e, -2**31 + 1), 2**31 - 1) for e in ends]
    ins = [given] + [np.asarray(y, kind) for y in (starts, ends)]
    if r.chance(0.15):
        n = len(axes)
        ins += [None] if r.chance() else []
        if len(ins) == 4:
            ins.append(np.asarray(steps, kind))
        if sorted(a % len(x) for a in axes) != list(range(n)) or n != len(x):
            ins = [given] + [np.asarray((y + [0] * 9)[:len(x)], kind) for y in (starts, ends)]
    else:
        ins += [np.asarray(axes, kind)] + ([np.asarray(steps, kind)] if r.chance(0.8) else [])
    # The reference starts before the first element where the standard starts at it.
    return Case(ins, steer=(1, 2, 3, 4), judge="runtime", out_types={"y0": t("T")})


@recipe("Pad")
def _(r, v, t):
    x = r.shape(lo=1, zero=0)
    judge = "no value" if t("T") in ("float8e8m0", "string") else None  # have no zero to pad with, in the reference
    mode = r.pick([None, "constant", "reflect", "edge"] + (["wrap"] if v >= 19 else []))
    axes = None
    if v >= 18 and r.chance(0.4):
        axes = r.axes(len(x), some=True)
    dims = x if axes is None else [x[a] for a in axes]
    least = -1 if mode in (None, "constant") and r.chance(0.3) else 0
    pads = [r.int(max(least, 1 - d if least < 0 else 0), min(3, d - 1) if mode in ("reflect", "wrap") else 3) for d in dims * 2]
    if least < 0 and any(d + a + b < 1 for d, a, b in zip(dims, pads, pads[len(dims):])):
        pads = [abs(p) for p in pads]
    given = r.tensor(t("T"), x)
    value = r.real(-2, 2)
    if v < 11:
        more = {"mode": mode, "value": value if r.chance() else None}
        if v >= 2:
            return Case([given], pads=pads, **more)
        return Case([given], paddings=pads, twin=(Case([given], pads=pads, opset=2, **more), as_is), **more)
    fill = None
    if r.chance():
        fill = r.tensor(t("T"), [], odd=False)
    ins = [given, np.asarray(pads, np.int64), fill]
    if axes is not None:
        ins.append(np.asarray(axes, r.pick([np.int32, np.int64])))
    return Case(ins, steer=(1, 3), mode=mode, judge=judge, out_types={"y0": t("T")})


@recipe("Shape")
def _(r, v, t):
    x = r.shape()
    more = {k: r.int(-len(x) - 1, len(x) + 1) for k in ("start", "end") if r.chance()} if v >= 15 else {}
    return Case([r.tensor(t("T"), x)], judge="runtime", **more)


@recipe("Size")
def _(r, v, t):
    return Case([r.tensor(t("T"), r.shape(zero=0.1))])


@recipe("ConstantOfShape")
def _(r, v, t):
    target = t("T2")
    value = helper.make_tensor("v", onnx.TensorProto.FLOAT, [1], [2.5])
    if r.chance(0.7):
        from fuzz import constant
        value = constant(r.tensor(target, [1], odd=False), "v")
    else:
        target, value = "float", None
    return Case([np.asarray(r.shape(zero=0.1), np.int64)], steer=(0,), value=value, out_types={"y0": target})


@recipe("Range")
def _(r, v, t):
    kind = NUMPY[t("T")]
    step = r.pick([1, 2, -1, -3]) if t("T") in INTS else r.pick([0.5, 1.25, -0.75])
    a, b = r.int(-8, 8), r.int(-8, 8)
    return Case([np.asarray(x).astype(kind) for x in (a, b, step)], steer=(0, 1, 2))


@recipe("EyeLike")
def _(r, v, t):
    x = r.shape(2)
    dtype = None
    out = t("T1")
    if r.chance():
        out = t("T2")
        dtype = helper.np_dtype_to_tensor_dtype(np.dtype(NUMPY[out]))
    return Case([r.tensor(t("T1"), x)], k=r.int(-3, 3) if r.chance(0.7) else None, dtype=dtype, out_types={"y0": out})


@recipe("Trilu")
def _(r, v, t):
    x = r.shape(lo=2)
    k = np.asarray(r.int(-4, 4), np.int64) if r.chance(0.7) else None
    # Of strings the reference writes the text of zero.
    return Case([r.tensor(t("T"), x), k], judge="no value" if t("T") == "string" else None, upper=r.pick([None, 0, 1]))


@recipe("DepthToSpace")
def _(r, v, t):
    b = r.int(1, 3)
    x = [r.int(1, 2), r.int(1, 3) * b * b, r.int(1, 4), r.int(1, 4)]
    return Case([r.tensor(t("T"), x)], blocksize=b, mode=r.pick([None, "DCR", "CRD"]) if v >= 11 else None)


@recipe("SpaceToDepth")
def _(r, v, t):
    b = r.int(1, 3)
    x = [r.int(1, 2), r.int(1, 3), r.int(1, 3) * b, r.int(1, 3) * b]
    return Case([r.tensor(t("T"), x)], blocksize=b)


@recipe("ReverseSequence")
def _(r, v, t):
    x = r.shape(lo=2, zero=0)
    batch = r.int(0, 1)
    n = r.g.integers(1, x[1 - batch] + 1, x[batch]).astype(np.int64)
    return Case([r.tensor(t("T"), x), n], batch_axis=batch, time_axis=1 - batch)


@recipe("CenterCropPad")
def _(r, v, t):
    x = r.shape(lo=1, zero=0)
    axes = r.axes(len(x), some=True) if r.chance() else None
    n = len(x) if axes is None else len(axes)
    # Strings the reference pads with the text of zero.
    return Case([r.tensor(t("T"), x), np.asarray(r.ints(1, 7, n), NUMPY[t("Tind", ("int32", "int64"))])], steer=(1,),
                judge="no value" if t("T") == "string" else None, axes=axes)


# ---- Picking. ----

@recipe("Gather")
def _(r, v, t):
    x = r.shape(lo=1, zero=0)
    axis = r.axis(len(x), 11)
    i = r.index(x[axis], r.shape(hi=3), r.pick(["int32", "int64"]), v >= 11)
    # The runtime takes the first string of a slice, and none of the others.
    return Case([r.tensor(t("T"), x), i], judge="reference" if t("T") == "string" else None, axis=axis if axis or r.chance() else None)


@recipe("GatherElements")
def _(r, v, t):
    x = r.shape(lo=1, zero=0)
    axis = r.axis(len(x))
    y = [r.int(1, d) for d in x]
    y[axis] = r.int(0, 5)
    i = r.index(x[axis], y, r.pick(["int32", "int64"]))
    return Case([r.tensor(t("T"), x), i], axis=axis if axis or r.chance() else None)


def tuples(r, x, batch, lead):
    """Indices of the ND operators into `x`, and how many of its dims they name."""
    n = r.int(1, len(x) - batch)
    cols = [r.index(x[batch + k], x[:batch] + lead) for k in range(n)]
    return np.stack(cols, -1).astype(np.int64), n


@recipe("GatherND")
def _(r, v, t):
    x = r.shape(lo=1, zero=0)
    batch = r.int(0, min(1, len(x) - 1)) if v >= 12 else 0
    i, _n = tuples(r, x, batch, r.shape(hi=2))
    return Case([r.tensor(t("T"), x), i], batch_dims=batch if batch or (v >= 12 and r.chance()) else None)


@recipe("ScatterElements", "Scatter")
def _(r, v, t):
    x = r.shape(lo=1, zero=0)
    axis = r.axis(len(x), 11)
    y = [r.int(1, d) for d in x]
    red = r.pick([None, "none", "add", "mul"] + (["min", "max"] if v >= 18 else [])) if v >= 16 else None
    if t("T") in ("string", "bool") or t("T").startswith("complex"):
        red = None
    if red in (None, "none"):  # one place is written once
        order = np.stack([r.g.permutation(x[axis])[:y[axis]] for _ in range(int(np.prod(y)) // y[axis])])
        rest = [d for k, d in enumerate(y) if k != axis % len(x)]
        i = np.moveaxis(order.reshape(rest + [y[axis]]), -1, axis).astype(np.int64)
    else:
        i = r.index(x[axis], y)
    if v >= 11 and r.chance(0.3):
        i = i - x[axis] * (i >= 0) * (r.g.random(i.shape) < 0.5)
    i = i.astype(r.pick([np.int32, np.int64]))
    return Case([r.tensor(t("T"), x, odd=red is None), i, r.tensor(t("T"), i.shape, odd=red is None)],
                axis=axis if axis or r.chance() else None, reduction=red)


@recipe("ScatterND")
def _(r, v, t):
    x = r.shape(lo=1, zero=0)
    red = r.pick([None, "none", "add", "mul"] + (["min", "max"] if v >= 18 else [])) if v >= 16 else None
    if t("T") in ("string", "bool") or t("T").startswith("complex"):
        red = None
    n = r.int(1, len(x))
    if red in (None, "none"):
        places = int(np.prod(x[:n]))
        flat = r.g.permutation(places)[:r.int(0, min(places, 5))]
        i = np.stack(np.unravel_index(flat, x[:n]), -1).astype(np.int64).reshape(len(flat), n)
    else:
        i, n = tuples(r, x, 0, [r.int(0, 5)])
    return Case([r.tensor(t("T"), x, odd=red is None), i, r.tensor(t("T"), list(i.shape[:-1]) + x[n:], odd=red is None)],
                reduction=red)


@recipe("OneHot")
def _(r, v, t):
    x = r.shape(hi=3)
    depth = r.int(1, 6)
    kinds = [k for k in ("int64", "int32", "float") if k in t.allowed("T1")]
    i = r.index(depth + 1, x, "int64").astype(NUMPY[t("T1", kinds)])
    d = np.asarray([depth] if r.chance() else depth, NUMPY[t("T2", kinds)])
    values = r.tensor(t("T3"), [2], odd=False)
    return Case([i, d, values], steer=(1,), axis=r.int(-len(x) - 1, len(x)) if r.chance(0.7) else None)


@recipe("Compress")
def _(r, v, t):
    x = r.shape(lo=1)
    axis = r.axis(len(x), 11) if r.chance(0.7) else None
    n = x[axis] if axis is not None else int(np.prod(x))
    c = r.tensor("bool", [r.int(0, n)])
    return Case([r.tensor(t("T"), x), c], axis=axis)


@recipe("NonZero")
def _(r, v, t):
    return Case([r.tensor(t("T"), r.shape(lo=1), -1, 1, odd=False)])


@recipe("Unique")
def _(r, v, t):
    x = r.shape(lo=1, zero=0)
    outs = [True] + [r.chance(0.7) for _ in range(3)]
    while not outs[-1]:
        outs.pop()
    axis = r.axis(len(x), 11) if r.chance() else None
    # The reference does not count axes from the end.
    data = r.tensor(t("T"), x, -2, 2, odd=False, wide=False)
    nans = axis is None and t("T") in ("float", "double") and r.chance(0.2)
    if nans:  # the runtime finds them equal to anything
        data.reshape(-1)[r.int(0, data.size - 1)] = np.nan
    return Case([data], outs=outs, sorted=r.pick([None, 1] if nans else [None, 0, 1]), axis=axis,
                judge="runtime" if axis is not None else "reference" if nans else None)


@recipe("NonMaxSuppression")
def _(r, v, t):
    b, c, n = r.int(1, 2), r.int(1, 3), r.int(1, 8)
    boxes = np.sort(r.g.uniform(0, 1, (b, n, 2, 2)), 2).reshape(b, n, 4).astype(np.float32)
    form = r.pick([None, 0, 1])
    if r.chance(0.3):
        boxes = boxes[..., [2, 1, 0, 3]]
    ins = [boxes, r.tensor("float", [b, c, n], 0, 1, odd=False)]
    ins.append(np.asarray([r.int(0, 5)], np.int64) if r.chance(0.9) else None)
    ins.append(np.asarray([r.real(0, 1)], np.float32) if r.chance(0.7) else None)
    ins.append(np.asarray([r.real(0, 1)], np.float32) if r.chance(0.5) else None)
    return Case(ins, center_point_box=form)


# ---- Products. ----

@recipe("MatMul")
def _(r, v, t):
    m, k, n = r.int(0 if r.chance(0.1) else 1, 5), r.int(1, 5), r.int(0 if r.chance(0.1) else 1, 5)
    a, b = r.broadcast(2, 2)
    a, b = a + [m, k], b + [k, n]
    if r.chance(0.15):
        a = [k]
    if r.chance(0.15):
        b = [k]
    return Case([r.tensor(t("T"), a, odd=False, wide=False), r.tensor(t("T"), b, odd=False, wide=False)], by_scale=True)


@recipe("Gemm")
def _(r, v, t):
    m, k, n = r.int(0 if r.chance(0.05) else 1, 9), r.int(1, 9), r.int(0 if r.chance(0.05) else 1, 9)
    ta, tb = r.int(0, 1), r.int(0, 1)
    c = r.to_broadcast([m, n]) if v >= 7 else [m, n]
    whole = t("T") in INTS + UINTS
    more = {k: (float(r.int(1, 2)) if whole else r.real(-2, 2)) for k in ("alpha", "beta") if r.chance()}
    ins = [r.tensor(t("T"), s, odd=False, wide=False) for s in ([k, m] if ta else [m, k], [n, k] if tb else [k, n], c)]
    if v >= 11 and r.chance(0.3):
        ins.pop()
    return Case(ins, transA=ta or None, transB=tb or None, by_scale=True, **more)


def byte(r, t, shape, most=100):
    """On some machines the runtime adds two products of bytes in sixteen bits."""
    return r.tensor(t, shape, -most, most, wide=False)


@recipe("MatMulInteger")
def _(r, v, t):
    m, k, n = r.shape(3, zero=0)
    a, b = r.broadcast(2, 1)
    ins = [byte(r, t("T1"), a + [m, k]), byte(r, t("T2"), b + [k, n])]
    for which, x in (("T1", []), ("T2", [] if r.chance() else [n])):
        ins.append(byte(r, t(which), x) if r.chance(0.7) else None)
    return Case(ins)


@recipe("Einsum")
def _(r, v, t):
    eq, shapes = r.pick([
        ("ij,jk->ik", "ij jk"), ("ij->ji", "ij"), ("ij->", "ij"), ("ii->i", "ii"), ("ii->", "ii"), ("bij,bjk->bik", "bij bjk"),
        ("...ij,...jk->...ik", ".ij .jk"), ("i,j->ij", "i j"), ("ij,ij->i", "ij ij"), ("bhid,bhjd->bhij", "bhid bhjd"),
        ("ij,jk", "ij jk"), ("i,i", "i i"), ("...ij->...ji", ".ij"), ("ijk,jil->kl", "ijk jil"), ("a,b,c->abc", "a b c"),
        ("ij,jk,kl->il", "ij jk kl"), ("b...,b->...", "b. b"), ("ij , jk -> ik", "ij jk"), ("...i,...i->...", ".i .i")])
    dims = {c: r.int(1, 4) for c in "abcdhijkl"}
    dots = r.shape(hi=2, zero=0)
    ins = []
    for s in shapes.split():
        x = []
        for c in s:
            x += dots if c == "." else [dims[c]]
        ins.append(r.tensor(t("T"), x, odd=False, wide=False))
    return Case(ins, equation=eq, by_scale=True)


@recipe("Det")
def _(r, v, t):
    n = r.int(1, 4)
    return Case([r.tensor(t("T"), r.shape(hi=2) + [n, n], odd=False)], by_scale=True)


# ---- Windows. ----

def window(r, rank, dilate=True, auto=True, size=3):
    kernel = r.ints(1, size, rank)
    w = {"strides": r.ints(1, 3, rank) if r.chance() else None,
         "dilations": r.ints(1, 2, rank) if dilate and r.chance(0.4) else None}
    if auto and r.chance(0.35):
        w["auto_pad"] = r.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
        if w["auto_pad"] != "VALID":
            w["dilations"] = None
    elif r.chance(0.6):
        w["pads"] = [r.int(0, k - 1) for k in kernel * 2]
    return kernel, w


def image(r, kernel, w, zero=0.03):
    """Spatial dims that hold the window."""
    d = w["dilations"] or [1] * len(kernel)
    return [(k - 1) * s + 1 + r.int(0, 5) for k, s in zip(kernel, d)]


@recipe("Conv")
def _(r, v, t):
    rank = r.pick([1, 2, 2, 2, 3])
    kernel, w = window(r, rank)
    g = r.pick([1, 1, 2, 3])
    cin, m = r.int(1, 4), g * r.int(1, 4)
    if r.chance(0.2):
        g = r.int(1, 5)
        cin, m = 1, g
    n = r.int(0 if r.chance(0.1) else 1, 2)
    ins = [r.tensor(t("T"), [n, cin * g] + image(r, kernel, w), odd=False), r.tensor(t("T"), [m, cin] + kernel, odd=False)]
    if r.chance():
        ins.append(r.tensor(t("T"), [m], odd=False))
    return Case(ins, group=g if g > 1 or r.chance() else None, kernel_shape=kernel if r.chance() else None,
                by_scale=True, **w)


@recipe("ConvTranspose")
def _(r, v, t):
    rank = r.pick([1, 2, 2, 3])
    kernel, w = window(r, rank, auto=False)
    g = r.pick([1, 1, 2])
    cin, m = r.int(1, 3), r.int(1, 3)
    x = [r.int(1, 4) for _ in range(rank)]
    strides = w["strides"] or [1] * rank
    d = w["dilations"] or [1] * rank
    if r.chance(0.3):
        w["output_padding"] = [r.int(0, max(s, e) - 1) for s, e in zip(strides, d)]
    op = w.get("output_padding") or [0] * rank
    full = [s * (i - 1) + o + (k - 1) * e + 1 for s, i, o, k, e in zip(strides, x, op, kernel, d)]
    if r.chance(0.2):
        w.pop("pads", None)
        if r.chance():
            w["output_shape"] = [f - r.int(0, min(2, f - 1)) for f in full]
        w["auto_pad"] = r.pick(["SAME_UPPER", "SAME_LOWER", "NOTSET"])
        if w["auto_pad"] == "NOTSET" and "output_shape" not in w:
            del w["auto_pad"]
        elif "output_shape" not in w:
            if any(f < i * s for f, i, s in zip(full, x, strides)):
                return None
    elif w.get("pads") and any(f <= a + b for f, a, b in zip(full, w["pads"], w["pads"][rank:])):
        w.pop("pads")
    ins = [r.tensor(t("T"), [r.int(1, 2), cin * g] + x, odd=False), r.tensor(t("T"), [cin * g, m] + kernel, odd=False)]
    if r.chance():
        ins.append(r.tensor(t("T"), [m * g], odd=False))
    return Case(ins, group=g if g > 1 else None, kernel_shape=kernel if r.chance() else None, by_scale=True, **w)


@recipe("ConvInteger")
def _(r, v, t):
    kernel, w = window(r, r.pick([1, 2]))
    g = r.pick([1, 1, 2])
    cin, m = r.int(1, 3), g * r.int(1, 3)
    ins = [byte(r, t("T1"), [r.int(1, 2), cin * g] + image(r, kernel, w)), byte(r, t("T2"), [m, cin] + kernel)]
    ins.append(byte(r, t("T1"), []) if r.chance(0.7) else None)
    if r.chance(0.5):
        ins.append(byte(r, t("T2"), []))
    return Case(ins, group=g if g > 1 else None, kernel_shape=kernel if r.chance() else None, **w)


@recipe("DeformConv")
def _(r, v, t):
    kernel = r.ints(1, 3, 2)
    g, og = r.pick([1, 2]), r.pick([1, 2])
    cin, m = r.int(1, 2) * og, g * r.int(1, 2)
    strides, pads, dil = r.ints(1, 2, 2), r.ints(0, 1, 4), r.ints(1, 2, 2)
    x = [(k - 1) * d + 1 + r.int(0, 4) for k, d in zip(kernel, dil)]
    y = [(n + pads[k] + pads[k + 2] - (kernel[k] - 1) * dil[k] - 1) // strides[k] + 1 for k, n in enumerate(x)]
    n = r.int(1, 2)
    taps = og * kernel[0] * kernel[1]
    ins = [r.tensor(t("T"), [n, cin * g] + x, odd=False), r.tensor(t("T"), [m, cin] + kernel, odd=False),
           r.tensor(t("T"), [n, 2 * taps] + y, -2, 2, odd=False), r.tensor(t("T"), [m], odd=False) if r.chance() else None,
           r.tensor(t("T"), [n, taps] + y, 0, 1, odd=False) if r.chance() else None]
    return Case(ins, group=g, offset_group=og, strides=strides, pads=pads, dilations=dil, kernel_shape=kernel, by_scale=True)


def pool(r, v, t, average):
    rank = r.pick([1, 2, 2, 3])
    since = 19 if average else 10
    kernel, w = window(r, rank, dilate=v >= since)
    if w["dilations"] is None:
        del w["dilations"]
    if w.get("auto_pad", "VALID") != "VALID" and w["strides"]:  # the runtime pads by less than nothing
        w["strides"] = [min(s, k) for s, k in zip(w["strides"], kernel)]
    x = image(r, kernel, {"dilations": w.get("dilations")})
    ceil = r.pick([None, 0, 1]) if v >= 10 else None
    return [r.tensor(t("T"), r.shape(2, size=3) + x, odd=False)], dict(kernel_shape=kernel, ceil_mode=ceil, **w)


@recipe("MaxPool")
def _(r, v, t):
    ins, attrs = pool(r, v, t, False)
    two = v >= 8 and r.chance(0.4)
    return Case(ins, outs=2 if two else 1, judge="runtime", storage_order=r.pick([None, 0, 1]) if v >= 8 else None, **attrs)


@recipe("AveragePool")
def _(r, v, t):
    ins, attrs = pool(r, v, t, True)
    return Case(ins, judge="runtime", count_include_pad=r.pick([None, 0, 1]) if v >= 7 else None, **attrs)


@recipe("LpPool")
def _(r, v, t):
    ins, attrs = pool(r, 1 if v < 18 else 19, t, True)
    if v < 18:
        attrs["ceil_mode"] = None
    c = Case(ins, p=r.pick([None, 1, 2, 3]) if v >= 2 else r.pick([None, 1.0, 2.0]), **attrs)
    if v == 1:  # a power of floats, which the runtime has not
        c.twin = Case(ins, opset=10, **{**c.attrs, "p": int(c.attrs.get("p", 2))}), as_is
    return c


@recipe("GlobalAveragePool", "GlobalMaxPool")
def _(r, v, t):
    return Case([r.tensor(t("T"), r.shape(lo=3, hi=5, zero=0), odd=False)], judge="runtime")


@recipe("GlobalLpPool")
def _(r, v, t):
    c = Case([r.tensor(t("T"), r.shape(lo=3, hi=5, zero=0), odd=False)], p=r.pick([None, 1, 2, 3]) if v >= 2 else None)
    if v in (1, 22):  # the runtime has the version between
        c.twin = Case(c.ins, opset=21, **c.attrs), as_is
    return c


@recipe("MaxRoiPool")
def _(r, v, t):
    h, w, n = r.int(2, 8), r.int(2, 8), r.int(1, 2)
    k = r.int(1, 3)
    rois = np.stack([r.g.integers(0, n, k), r.g.integers(0, w, k), r.g.integers(0, h, k), r.g.integers(0, w, k),
                     r.g.integers(0, h, k)], 1).astype(NUMPY[t("T")])
    rois[:, 3] = np.maximum(rois[:, 3], rois[:, 1])
    rois[:, 4] = np.maximum(rois[:, 4], rois[:, 2])
    c = Case([r.tensor(t("T"), [n, r.int(1, 2), h, w], odd=False), rois], pooled_shape=r.ints(1, 3, 2),
             spatial_scale=r.pick([None, 0.5, 1.0]))
    if v == 22:  # the runtime has the one before
        c.twin = Case(c.ins, opset=21, **c.attrs), as_is
    return c


@recipe("MaxUnpool")
def _(r, v, t):
    n, c, h, w = r.int(1, 2), r.int(1, 2), r.int(1, 3), r.int(1, 3)
    size = [n, c, 2 * h, 2 * w]
    flat = np.stack([r.g.permutation(4 * h * w)[:h * w] for _ in range(n * c)])
    i = (flat + 4 * h * w * np.arange(n * c)[:, None]).reshape(n, c, h, w).astype(np.int64)
    ins = [r.tensor(t("T1"), [n, c, h, w], odd=False), i]
    if r.chance(0.3):
        ins.append(np.asarray(size, np.int64))
    return Case(ins, steer=(2,), kernel_shape=[2, 2], strides=[2, 2])


@recipe("RoiAlign")
def _(r, v, t):
    h, w, n, k = r.int(2, 8), r.int(2, 8), r.int(1, 2), r.int(0 if r.chance(0.1) else 1, 3)
    a = np.sort(r.g.uniform(0, 8, (k, 2, 2)), 1).reshape(k, 4).astype(NUMPY[t("T1")])
    more = {"coordinate_transformation_mode": r.pick([None, "half_pixel", "output_half_pixel"])} if v >= 16 else {}
    return Case([r.tensor(t("T1"), [n, r.int(1, 2), h, w], odd=False), a, r.g.integers(0, n, k).astype(np.int64)],
                mode=r.pick([None, "avg"]), output_height=r.int(1, 3), output_width=r.int(1, 3),
                sampling_ratio=r.int(0, 3), spatial_scale=r.pick([None, 0.5, 1.0]), **more)


@recipe("Col2Im")
def _(r, v, t):
    rank = r.pick([1, 2, 2, 3])
    kernel, w = window(r, rank, auto=False)
    d, s, p = w["dilations"] or [1] * rank, w["strides"] or [1] * rank, w.get("pads") or [0] * 2 * rank
    x = image(r, kernel, w)
    n = 1
    for k in range(rank):
        n *= (x[k] + p[k] + p[k + rank] - (kernel[k] - 1) * d[k] - 1) // s[k] + 1
    data = r.tensor(t("T"), [r.int(1, 2), r.int(1, 2) * int(np.prod(kernel)), n], odd=False)
    # The runtime loses its way with dilations, but in two dims.
    return Case([data, np.asarray(x, np.int64), np.asarray(kernel, np.int64)], steer=(1, 2), by_scale=True,
                judge="reference" if rank != 2 and w["dilations"] else None, **w)


# ---- Normalizations. ----

@recipe("BatchNormalization")
def _(r, v, t):
    x = r.shape(lo=2, hi=5, zero=0)
    c = x[1]
    types = [t("T")] * 5
    if v >= 14:
        types[1:3] = [t("T1") if v >= 15 else t("T")] * 2
        types[3:5] = [t("T2") if v >= 15 else t("U")] * 2
    spans = [(-4, 4), (-2, 2), (-2, 2), (-2, 2), (0.2, 3)]
    shapes = [x] + [[c]] * 4
    more = {"is_test": 1} if v < 7 else {}
    if v in (7, 8) and r.chance(0.3):
        more["spatial"] = 1
    outs = 1
    if v >= 14 and r.chance(0.3):
        more["training_mode"], outs = 1, 3
    return Case([r.tensor(k, s, *span, odd=False) for k, s, span in zip(types, shapes, spans)], outs=outs,
                epsilon=r.pick([None, 1e-3]), momentum=r.pick([None, 0.7]), by_scale=True, slack=2, **more)


@recipe("InstanceNormalization")
def _(r, v, t):
    x = r.shape(lo=3, hi=5, zero=0)
    x[-1] += 1
    return Case([r.tensor(t("T"), s, odd=False) for s in (x, [x[1]], [x[1]])], epsilon=r.pick([1e-2, 1e-1]), by_scale=True,
                slack=10)


@recipe("LayerNormalization")
def _(r, v, t):
    x = r.shape(lo=1, zero=0)
    x[-1] += 1
    axis = r.axis(len(x)) if r.chance() else None
    s = x[-1:] if axis is None else x[axis:]
    ins = [r.tensor(t("T"), x, odd=False), r.tensor(t("T"), s, odd=False)]
    if r.chance(0.7):
        ins.append(r.tensor(t("T"), s, odd=False))
    stash = {}
    if "U" in t.drawn:
        stash = {"stash_type": helper.np_dtype_to_tensor_dtype(np.dtype(NUMPY[t("U")])), "out_types": {"y1": t("U"), "y2": t("U")}}
    return Case(ins, outs=3 if stash else r.int(1, 3), axis=axis, epsilon=r.pick([1e-2, 1e-1]), by_scale=True, slack=10, **stash)


@recipe("RMSNormalization")
def _(r, v, t):
    x = r.shape(lo=1, zero=0)
    axis = r.axis(len(x)) if r.chance() else None
    s = x[-1:] if axis is None else x[axis:]
    return Case([r.tensor(t("T"), x, odd=False), r.tensor(t("V") if t.allowed("V") else t("T"), s, odd=False)], axis=axis,
                epsilon=r.pick([1e-2, 1e-1]), by_scale=True, slack=10)


@recipe("GroupNormalization")
def _(r, v, t):
    g = r.int(1, 3)
    c = g * r.int(1, 3)
    x = [r.int(1, 2), c] + r.shape(lo=1, hi=2, zero=0)
    n = [g] if v < 21 else [c]
    return Case([r.tensor(t("T"), s, odd=False) for s in (x, n, n)], num_groups=g, epsilon=r.pick([1e-2, 1e-1]), by_scale=True,
                slack=10, tolerance=(1e-4, 1e-5) if t("T") == "double" else None)


@recipe("MeanVarianceNormalization")
def _(r, v, t):
    x = r.shape(4, zero=0)
    x[0] += 1
    axes = sorted(a % 4 for a in r.axes(4, some=True)) if v >= 9 and r.chance() else None
    if np.prod([x[a] for a in axes or [0, 2, 3]]) < 2:  # the root of what should be zero
        return None
    return Case([r.tensor(t("T"), x, odd=False)], axes=axes, by_scale=True, slack=20)


@recipe("LRN")
def _(r, v, t):
    return Case([r.tensor(t("T"), r.shape(4, zero=0), odd=False)], judge="runtime", size=r.pick([1, 3, 5]), alpha=r.pick([None, 0.1]),
                beta=r.pick([None, 0.5]), bias=r.pick([None, 2.0]))


@recipe("Dropout")
def _(r, v, t):
    x = r.tensor(t("T"), r.shape())
    outs = r.int(1, 2)
    if v < 12:  # the runtime says that nothing was kept
        return Case([x], outs=1 if v < 10 else outs, ratio=r.pick([None, 0.3]), is_test=1 if v < 7 else None,
                    judge="reference" if v == 10 and outs == 2 else None)
    ratio = r.tensor(t("T1"), [], 0, 0.9, odd=False) if r.chance() else None
    return Case([x, ratio, np.asarray(False) if r.chance() else None], outs=outs, seed=r.pick([None, 3]))


# ---- Losses. ----

def loss(r, v, t, name):
    n, c = r.int(1, 4), r.int(1, 4)
    rest = r.shape(hi=2, zero=0)
    kind = [k for k in t.allowed("Tind") if k in ("int32", "int64")]
    i = r.g.integers(0, c, [n] + rest).astype(NUMPY[t("Tind", kind)])
    skip = r.int(-1, c) if r.chance() else None
    if skip is not None and r.chance() and i.size:
        i.reshape(-1)[0] = skip
    x = r.tensor(t("T"), [n, c] + rest, -3, 0, odd=False)
    ins = [x, i] + ([r.tensor(t("T"), [c], 0.2, 1, odd=False)] if r.chance() else [])
    return ins, dict(ignore_index=skip, reduction=r.pick([None, "none", "sum", "mean"]))


@recipe("NegativeLogLikelihoodLoss")
def _(r, v, t):
    ins, attrs = loss(r, v, t, "NLL")
    return Case(ins, by_scale=True, slack=4, **attrs)


@recipe("SoftmaxCrossEntropyLoss")
def _(r, v, t):
    ins, attrs = loss(r, v, t, "SCE")
    return Case(ins, outs=r.int(1, 2), by_scale=True, slack=4, **attrs)


# ---- Images. ----

@recipe("Resize")
def _(r, v, t):
    rank = r.pick([2, 4, 4, 3])
    kind = t("T1") if v >= 11 else t("T")
    x = [r.int(1, 2) for _ in range(rank - 2)] + r.ints(1, 6, 2)
    mode = r.pick([None, "nearest", "linear"] + (["cubic"] if v >= 11 else []))
    if kind not in NUMERIC:  # what is between two of them?
        mode = None
    if mode == "cubic" and rank != 4:
        mode = "linear"
    scales = [1.0] * (rank - 2) + [r.pick([0.5, 0.6, 1.0, 1.5, 2.0, 2.5]) for _ in range(2)]
    if any(int(d * s) < 1 for d, s in zip(x, scales)):
        return None
    data = r.tensor(kind, x, odd=False, wide=False)
    slack = dict(near=1 if mode in ("linear", "cubic") else 0, by_scale=True)
    if v < 11:
        return Case([data, np.asarray(scales, np.float32)], steer=(1,), mode=mode, **slack)
    way = r.pick([None, "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
                 + (["half_pixel_symmetric"] if v >= 19 else []))
    more = {"coordinate_transformation_mode": way}
    # With align_corners the runtime goes by the size rounded down; nobody knows
    # where the only place of pytorch_half_pixel lies.
    if way == "align_corners":
        slack["judge"] = "reference"
    if way == "pytorch_half_pixel":
        slack["judge"] = "runtime"
    if mode in (None, "nearest"):
        more["nearest_mode"] = r.pick([None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic":
        more["cubic_coeff_a"] = r.pick([None, -0.5])
        more["exclude_outside"] = r.pick([None, 0, 1])
    if v >= 18 and mode != "cubic" and mode and r.chance(0.25):
        more["antialias"] = 1
        if kind == "int8":  # the runtime takes them for unsigned
            slack["judge"] = "reference"
    roi = np.zeros(0, np.float32) if v < 13 else None
    if "T2" in t.drawn and v >= 11:
        roi = np.asarray([0] * rank + [1] * rank, NUMPY[t("T2")])
    if r.chance():
        sizes = x[:rank - 2] + [r.int(1, 9) for _ in range(2)]
        ins = [data, roi, np.zeros(0, np.float32) if v < 13 else None, np.asarray(sizes, np.int64)]
    else:
        ins = [data, roi, np.asarray(scales, np.float32)]
    if v >= 18 and r.chance(0.4):
        more["axes"] = [rank - 2, rank - 1]
        ins[-1] = ins[-1][rank - 2:]
        if len(ins) == 4 and r.chance(0.6):
            more["keep_aspect_ratio_policy"] = r.pick(["stretch", "not_larger", "not_smaller"])
    if len(ins) == 3 and more.get("nearest_mode") in ("floor", "ceil") and way != "align_corners":
        slack["judge"] = "runtime"  # halves by scales: the reference has them with other digits
    if kind.startswith("complex"):  # the reference drops the imaginary part
        slack["judge"] = "no value"
    return Case(ins, steer=(1, 2, 3), mode=mode, **more, **slack)


@recipe("Upsample")
def _(r, v, t):
    x = [1, 2] + r.ints(1, 5, 2)
    scales = [1.0, 1.0] + [r.pick([1.0, 1.5, 2.0]) for _ in range(2)]
    data = r.tensor(t("T"), x, odd=False, wide=False)
    mode = r.pick([None, "nearest", "linear"])
    if t("T") not in NUMERIC:  # what is between two of them?
        mode = None
    if v < 7:
        return None
    if v < 9:
        return Case([data], mode=mode, scales=scales, near=1)
    return Case([data, np.asarray(scales, np.float32)], steer=(1,), mode=mode, near=1)


@recipe("GridSample")
def _(r, v, t):
    rank = 2 if v < 20 or r.chance(0.7) else 3
    n = r.int(1, 2)
    padding = r.pick([None, "zeros", "border", "reflection"])
    mode = r.pick([None, "bilinear", "nearest", "bicubic"] if v < 20 else [None, "linear", "nearest"]
                  + (["cubic"] if rank == 2 else []))
    # The runtime takes other places outside of the border.
    beyond = mode in ("cubic", "bicubic") and padding == "border"
    if beyond and v < 20:
        return None
    judge = "reference" if beyond else None
    if t("T1") == "string":  # the reference writes the text of zero
        mode, judge = "nearest", "no value"
    elif t("T1") not in FLOATS and mode != "nearest":  # the reference makes weights of such elements
        judge = "no value"
    return Case([r.tensor(t("T1"), [n, r.int(1, 2)] + r.ints(1, 5, rank), odd=False),
                 r.tensor(t("T2", ("float", "double")), [n] + r.ints(1, 4, rank) + [rank], -1.3, 1.3, odd=False)], mode=mode, by_scale=True, slack=10,
                padding_mode=padding, judge=judge, align_corners=r.pick([None, 0, 1]))


@recipe("AffineGrid")
def _(r, v, t):
    rank = r.pick([2, 3])
    n = r.int(1, 2)
    size = [n, r.int(1, 3)] + r.ints(1, 4, rank)
    corners = r.pick([None, 0, 1])
    # The only place of an axis lies in the middle for the runtime, at -1 in the standard.
    judge = "reference" if corners and 1 in size[2:] else None
    return Case([r.tensor(t("T1"), [n, rank, rank + 1], odd=False), np.asarray(size, np.int64)], steer=(1,),
                align_corners=corners, by_scale=True, judge=judge)


# ---- Recurrent. ----

def recurrent(r, v, t, gates, name):
    n, b, i, h = r.int(1, 4), r.int(1, 3), r.int(1, 3), r.int(1, 4)
    way = r.pick([None, "forward", "reverse", "bidirectional"])
    d = 2 if way == "bidirectional" else 1
    layout = r.pick([0, 0, 0, 1]) if v >= 14 else 0
    kind = t("T")

    def give(*s, p=1.0):
        return r.tensor(kind, s, -1, 1, odd=False) if r.chance(p) else None
    x = give(b, n, i) if layout else give(n, b, i)
    state = (b, d, h) if layout else (d, b, h)
    lens = r.g.integers(1, n + 1, b).astype(np.int32) if r.chance(0.4) else None
    bias = [2 * gates * h]
    ins = [x, give(d, gates * h, i), give(d, gates * h, h), give(d, *bias, p=0.6), lens, give(*state, p=0.5)]
    more = {"hidden_size": h, "direction": way, "layout": layout or None}
    if r.chance(0.2):
        more["clip"] = r.real(0.3, 2)
    if name == "LSTM":
        ins += [give(*state, p=0.5), give(d, 3 * h, p=0.4)]
        more["input_forget"] = r.pick([None, 0, 1])
    if name == "GRU":
        more["linear_before_reset"] = r.pick([None, 0, 1]) if v >= 3 else None
    if r.chance(0.3):
        acts = {"RNN": 1, "GRU": 2, "LSTM": 3}[name] * d
        more["activations"] = [r.pick(["Tanh", "Sigmoid", "Relu", "Softsign"]) for _ in range(acts)]
    outs = [True] * (3 if name == "LSTM" else 2)
    if r.chance(0.3):
        outs[0] = False
    if v < 7:
        more["output_sequence"] = 1
    c = Case(ins, outs=outs, by_scale=True, judge="runtime", **more)
    if layout:
        c.twin = Case([a if a is None or k not in (0, 5, 6) else a.swapaxes(0, 1) for k, a in enumerate(ins)], outs=outs,
                      by_scale=True, judge="runtime", **{**more, "layout": None}), batch_first
    if v < 7:
        c.twin = Case(ins, outs=outs, by_scale=True, judge="runtime", opset=7, **{**more, "output_sequence": None}), as_is
    return c


def batch_first(outs, wanted):
    """Outputs as layout 1 requires them, of those that layout 0 gives."""
    all_of = iter(outs)
    given = [next(all_of) if w else None for w in wanted]
    turned = [given[0] if given[0] is None else given[0].transpose(2, 0, 1, 3)]
    turned += [g if g is None else g.swapaxes(0, 1) for g in given[1:]]
    return [g for g in turned if g is not None]


for n_, g_ in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
    recipe(n_)(lambda r, v, t, n=n_, g=g_: recurrent(r, v, t, g, n))


# ---- Quantization. ----

BYTES = ("int8", "uint8")


@recipe("QuantizeLinear")
def _(r, v, t):
    kind = t("T1", FLOATS)
    target = t("T2" if v < 23 else "T3")
    x = r.shape(lo=1)
    per_axis = v >= 13 and r.chance(0.4)
    axis = r.axis(len(x)) if per_axis else None
    s = [x[axis]] if per_axis else []
    skind = kind if v < 23 else t("T2", FLOATS)
    scale = r.tensor(skind, s, 0.1, 2, odd=False)
    zero = r.tensor(target, s, 0, 3 if target in ("int4", "uint4") else 9, wide=False) if r.chance(0.8) else None
    if target.startswith("float") and zero is not None:
        zero = np.zeros(s, NUMPY[target])
    if target in ("uint2", "int2") and zero is not None:
        zero = np.zeros(s, NUMPY[target])
    out = target if zero is not None else "uint8"
    data = r.tensor(kind, x, -20, 20, odd=False)
    if kind == "int32":
        data = r.tensor(kind, x, -50, 50, wide=False)
    return Case([data, scale, zero], axis=axis, out_types={"y0": out}, near=1 if kind != "float" else 0)


@recipe("DequantizeLinear")
def _(r, v, t):
    x = r.shape(lo=1)
    source = t("T1") if v >= 19 else t("T")
    per_axis = v >= 13 and r.chance(0.4)
    axis = r.axis(len(x)) if per_axis else None
    s = [x[axis]] if per_axis else []
    kind = t("T2", FLOATS + ("float8e8m0",)) if v >= 19 else "float"
    more = {}
    if "T3" in t.drawn or kind == "float8e8m0":
        if v < 23:
            return None
        more["output_dtype"] = helper.np_dtype_to_tensor_dtype(np.dtype(NUMPY[t("T3")]))
    zero = r.tensor(source, s, 0, 3, wide=False) if r.chance(0.7) and source != "int32" and not source.startswith("float") else None
    return Case([r.tensor(source, x), r.tensor(kind, s, 0.1, 2, odd=False), zero], axis=axis, **more)


@recipe("DynamicQuantizeLinear")
def _(r, v, t):
    return Case([r.tensor("float", r.shape(lo=1, zero=0), -20, 20, odd=False)], outs=3, near=1)


@recipe("QLinearMatMul")
def _(r, v, t):
    m, k, n = r.shape(3, zero=0)
    a, b = r.broadcast(2, 1)
    small = BYTES + tuple(x for x in t.drawn.values() if x.startswith("float8"))
    kinds = [t("T1", small), t("T2", small), t("T3", small)]
    s = [[], [n] if r.chance(0.3) else [], []]
    scale = [r.tensor(t("TS") if v >= 21 else "float", x, 0.05, 0.5, odd=False) for x in s]
    zero = [r.tensor(q, x, 0, 20, wide=False) for q, x in zip(kinds, s)]
    x, y = byte(r, kinds[0], a + [m, k]), byte(r, kinds[1], b + [k, n])
    judge = None if len(small) == len(BYTES) else "no value"
    return Case([x, scale[0], zero[0], y, scale[1], zero[1], scale[2], zero[2]], near=1, judge=judge)


@recipe("QLinearConv")
def _(r, v, t):
    kernel, w = window(r, r.pick([1, 2, 2]))
    g = r.pick([1, 1, 2])
    cin, m = r.int(1, 3), g * r.int(1, 3)
    kx, kw = t("T1", BYTES), t("T2", BYTES)
    ky = t("T3", (kx,) if r.chance(0.9) else BYTES)
    per = [m] if r.chance(0.4) else []
    ins = [byte(r, kx, [r.int(1, 2), cin * g] + image(r, kernel, w)), r.tensor("float", [], 0.05, 0.5, odd=False),
           r.tensor(kx, [], 0, 20, wide=False), byte(r, kw, [m, cin] + kernel), r.tensor("float", per, 0.05, 0.5, odd=False),
           np.zeros(per, NUMPY[kw]) if per else r.tensor(kw, [], 0, 20, wide=False), r.tensor("float", [], 0.05, 0.5, odd=False),
           r.tensor(ky, [], 0, 20, wide=False)]
    if r.chance():
        ins.append(r.tensor("int32", [m], -99, 99, wide=False))
    return Case(ins, judge="runtime", group=g if g > 1 else None, kernel_shape=kernel if r.chance() else None, near=1, **w)
