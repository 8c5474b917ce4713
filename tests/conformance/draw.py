# SPDX-License-Identifier: Apache-2.0
"""What random cases are made of: numbers, shapes, elements."""
import ml_dtypes
import numpy as np

FLOATS = ("float", "double", "float16", "bfloat16")
INTS = ("int8", "int16", "int32", "int64")
UINTS = ("uint8", "uint16", "uint32", "uint64")
NUMPY = {
    "float": np.float32, "double": np.float64, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16,
    "bool": np.bool_, "string": np.object_, "complex64": np.complex64, "complex128": np.complex128,
    "float8e4m3fn": ml_dtypes.float8_e4m3fn, "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2, "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float8e8m0": ml_dtypes.float8_e8m0fnu, "float4e2m1": ml_dtypes.float4_e2m1fn,
    "float6e2m3": ml_dtypes.float6_e2m3fn, "float6e3m2": ml_dtypes.float6_e3m2fn,
    "uint4": ml_dtypes.uint4, "int4": ml_dtypes.int4, "uint2": ml_dtypes.uint2, "int2": ml_dtypes.int2,
    **{t: np.dtype(t).type for t in INTS + UINTS},
}
NAME = {np.dtype(t): n for n, t in NUMPY.items()}
SMALL = {"float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0", "float4e2m1",
         "float6e2m3", "float6e3m2", "uint4", "int4", "uint2", "int2"}
WORDS = ["", "a", "ab", "abc", "B", "Hello", "w\u00f6rld", "a b", "  x ", "1", "2.5", "-7", "zz top", "\u00e9t\u00e9"]


class Map:
    """Keys and values of one length; what asks for its type gets that of the values."""

    def __init__(self, keys, values):
        self.keys, self.values = keys, values
        self.dtype, self.shape, self.size = values.dtype, values.shape, len(values) + 99

    def feed(self):
        return dict(zip(self.keys.tolist(), self.values.tolist()))

    def __repr__(self):
        return repr(self.feed())


def name_of(a):
    return NAME[a.dtype]


class Draw:
    """Random choices of one case."""

    def __init__(self, seed):
        self.g = np.random.default_rng(seed)

    def chance(self, p=0.5):
        return self.g.random() < p

    def int(self, lo, hi):
        """Both ends included."""
        return int(self.g.integers(lo, hi + 1))

    def ints(self, lo, hi, n):
        return [self.int(lo, hi) for _ in range(n)]

    def pick(self, things):
        things = list(things)
        return things[self.int(0, len(things) - 1)]

    def real(self, lo, hi):
        return float(np.float32(self.g.uniform(lo, hi)))

    # ---- Shapes. ----

    def shape(self, rank=None, lo=0, hi=4, size=5, zero=0.04):
        rank = self.int(lo, hi) if rank is None else rank
        return [0 if self.chance(zero / max(rank, 1)) else self.int(1, size) for _ in range(rank)]

    def to_broadcast(self, shape):
        """One that goes to `shape`."""
        s = [1 if self.chance(0.3) else d for d in shape]
        return s[self.int(0, len(s)):] if self.chance(0.4) else s

    def broadcast(self, n, hi=4):
        """Shapes of `n` tensors that broadcast together."""
        whole = self.shape(hi=hi)
        if self.chance(0.4):
            return [list(whole)] * n
        return [self.to_broadcast(whole) for _ in range(n)]

    def axis(self, rank, v=99, since=11):
        """From the end too, where the version knows that."""
        return self.int(-rank if v >= since else 0, rank - 1)

    def axes(self, rank, negative=True, some=False):
        n = self.int(1 if some else 0, rank)
        a = [int(x) for x in self.g.permutation(rank)[:n]]
        return [x - rank if negative and self.chance(0.3) else x for x in a]

    # ---- Elements. ----

    def floats(self, t, shape, lo, hi, odd):
        x = self.g.uniform(lo, hi, shape)
        if hi - lo > 2 and self.chance(0.2):
            x = np.round(x)
        x = np.asarray(x, np.float64)
        if odd and self.chance(0.15) and x.size:
            flat = x.reshape(-1)
            for _ in range(self.int(1, 3)):
                flat[self.int(0, x.size - 1)] = self.pick([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 1e30, -1e30])
        with np.errstate(over="ignore"):
            return x.astype(NUMPY[t])

    def integers(self, t, shape, lo, hi, wide):
        if t in ("uint4", "int4", "uint2", "int2"):
            i = ml_dtypes.iinfo(NUMPY[t])
            a, b = int(i.min), int(i.max)
        else:
            i = np.iinfo(NUMPY[t])
            a, b = int(i.min), int(i.max)
        if wide and self.chance(0.2):
            x = self.g.integers(a, b, shape, endpoint=True, dtype=np.uint64 if t == "uint64" else np.int64)
        else:
            lo, hi = max(int(lo), a), min(int(hi), b)
            x = self.g.integers(lo, max(lo, hi), shape, endpoint=True)
        return np.asarray(x).astype(NUMPY[t])

    def tensor(self, t, shape, lo=-4, hi=4, odd=True, wide=True):
        """Elements from lo to hi; `odd` puts in infinities and the like, `wide`
        all that an integer can be."""
        shape = tuple(shape)
        if t == "bool":
            return np.asarray(self.g.random(shape) < 0.5)
        if t == "string":
            x = np.empty(shape, np.object_)
            flat = x.reshape(-1)
            for k in range(flat.size):
                flat[k] = self.pick(WORDS)
            return x
        if t in ("complex64", "complex128"):
            return np.asarray(self.g.uniform(lo, hi, shape) + 1j * self.g.uniform(lo, hi, shape)).astype(NUMPY[t])
        if t == "float8e8m0":
            return np.asarray(2.0 ** self.g.integers(-3, 4, shape)).astype(NUMPY[t])
        if t in FLOATS or t.startswith("float"):
            return self.floats(t, shape, lo, hi, odd and t in FLOATS)
        return self.integers(t, shape, lo, hi, wide)

    def index(self, n, shape, t="int64", negative=True):
        """Indices into `n` things."""
        x = self.g.integers(-n if negative and self.chance(0.5) else 0, max(n, 1), shape)
        return np.asarray(x).astype(t)
