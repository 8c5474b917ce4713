# SPDX-License-Identifier: Apache-2.0
"""How to draw a case of an operator that takes no input, that draws numbers itself,
or that reads an image: as in recipes.py.

What is drawn is right if it has the type and the shape that it should, lies where
it can, and its mean and its spread are those of the distribution, as far as so many
numbers tell."""
import struct
import zlib

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import draw
from draw import FLOATS, INTS, NUMPY, UINTS
from maps import texts
from recipes import Case, recipe

SIGMAS = 6


def code(t):
    return helper.np_dtype_to_tensor_dtype(np.dtype(NUMPY[t]))


# ---- Distributions. ----

class Drawn:
    """What is known of elements: range, mean, spread, in double."""

    def __init__(self, shape, kind, lo, hi, mean, spread):
        self.shape, self.dtype, self.of = tuple(shape), np.dtype(NUMPY[kind]), (lo, hi, mean, spread)

    def why_not(self, got):
        lo, hi, mean, spread = self.of
        if got.shape != self.shape or got.dtype != self.dtype:
            return f"is {got.dtype}{list(got.shape)}, wanted {self.dtype}{list(self.shape)}"
        x = got.astype(np.float64)
        near = 0.02 * max(1.0, np.max(np.abs(mean), initial=0.0), np.max(spread, initial=0.0))  # as narrow floats round
        if ((x < lo - near) | (x > hi + near)).any():
            return f"has an element outside of {lo} to {hi}"
        if not x.size:
            return None
        off = abs((x - mean).mean())
        if off > SIGMAS * np.sqrt(np.mean(np.square(spread))) / np.sqrt(x.size) + near:
            return f"has a mean that is {off} off"
        if x.size > 99 and not 0.6 < (np.std(x - mean) + near) / (np.sqrt(np.mean(np.square(spread))) + near) < 1.6:
            return f"has a spread of {np.std(x - mean)}"
        return None


def check(case, k, got, want):
    return want.why_not(got)


def seed(r):
    return r.pick([None, 0.0, 1.5, 7.0])


def many(r):
    """Enough of them to tell."""
    return [r.int(20, 40), r.int(10, 20)] if r.chance(0.7) else r.shape(lo=1)


def uniform(r, shape, kind, **more):
    lo, hi = sorted((r.real(-2, 1), r.real(1, 3)))
    given = r.chance(0.8)
    a, b = (lo, hi) if given else (0.0, 1.0)
    want = Drawn(shape, kind, a, b, (a + b) / 2, (b - a) / np.sqrt(12))
    return dict(low=lo if given else None, high=hi if given else None, seed=seed(r), known=[want], check=check,
                judge="recipe", around=False, **more)


def normal(r, shape, kind, **more):
    mean, scale = (r.real(-3, 3), r.real(0.1, 2)) if r.chance(0.8) else (None, None)
    want = Drawn(shape, kind, -np.inf, np.inf, mean or 0.0, scale or 1.0)
    return dict(mean=mean, scale=scale, seed=seed(r), known=[want], check=check, judge="recipe", around=False, **more)


def shaped(name, law):
    def f(r, v, t):
        shape, kind = many(r), t("T", FLOATS)
        return Case([], shape=shape, **law(r, shape, kind, dtype=code(kind)))
    recipe(name)(f)

    def like(r, v, t):
        shape, kind, given = many(r), t("T2", FLOATS), r.chance()
        source = t("T1", None if given else FLOATS)
        given = given or source not in FLOATS
        return Case([r.tensor(source, shape)], **law(r, shape, kind if given else source, dtype=code(kind) if given else None))
    recipe(name + "Like")(like)


shaped("RandomUniform", uniform)
shaped("RandomNormal", normal)


@recipe("Bernoulli")
def _(r, v, t):
    p = r.tensor(t("T1"), many(r), 0, 1, odd=False)
    given = r.chance()
    kind = t("T2", FLOATS + INTS + UINTS) if given else t("T1")
    odds = p.astype(np.float64)
    want = Drawn(p.shape, kind, 0, 1, odds, np.sqrt(np.clip(odds * (1 - odds), 0, 1)))
    return Case([p], dtype=code(kind) if given else None, seed=seed(r), known=[want], check=check, judge="recipe", around=False)


@recipe("Multinomial")
def _(r, v, t):
    rows, classes, size = r.int(1, 3), r.int(1, 4), r.pick([None, 1, 7, 300])
    x = r.tensor(t("T1"), [rows, classes], -1, 1, odd=False)  # logarithms of odds
    kind = r.pick([None, "int32", "int64"])
    odds = np.exp(x.astype(np.float64))
    odds /= odds.sum(1, keepdims=True)
    mean = odds @ np.arange(classes)
    spread = np.sqrt(odds @ np.square(np.arange(classes)) - np.square(mean))
    shape = [rows, size or 1]
    want = Drawn(shape, kind or "int32", 0, classes - 1, np.broadcast_to(mean[:, None], shape), np.broadcast_to(spread[:, None], shape))
    return Case([x], sample_size=size, dtype=code(kind) if kind else None, seed=seed(r), known=[want], check=check,
                judge="recipe", around=False)


# ---- Constants. ----

@recipe("Constant")
def _(r, v, t):
    forms = ["value"] * 4 + (["sparse_value"] if v >= 11 else []) + \
        (["value_float", "value_floats", "value_int", "value_ints", "value_string", "value_strings"] if v >= 12 else [])
    form = r.pick(forms)
    if form == "value":
        kind = t("T")
        a = r.tensor(kind, r.shape())
        if kind == "string":
            made = helper.make_tensor("", TensorProto.STRING, a.shape, [s.encode() for s in a.reshape(-1)])
        else:
            made = numpy_helper.from_array(np.ascontiguousarray(a).reshape(a.shape), "")
        return Case([], value=made, out_types={"y0": kind}, known=[a])
    if form == "sparse_value":
        return sparse(r)
    n = r.int(1, 4) if form.endswith("s") else 1
    if "string" in form:
        a = texts([r.pick(draw.WORDS) for _ in range(n)])
    else:
        a = r.tensor("float" if "float" in form else "int64", [n])
    a = a if form.endswith("s") else a.reshape(())
    return Case([], known=[a], **{form: a.tolist()})


def sparse(r):
    shape = r.shape(lo=1, hi=3, zero=0)
    places = np.sort(r.g.permutation(int(np.prod(shape)))[:r.int(1, 4)])
    values = r.tensor(r.pick(["float", "int64", "double", "int32"]), [len(places)], odd=False)
    flat = r.chance()
    at = places if flat else np.stack(np.unravel_index(places, shape), 1)
    whole = np.zeros(shape, values.dtype)
    whole.reshape(-1)[places] = values
    return Case([], known=[whole], judge="recipe",  # the runtime takes one form of places alone
                sparse_value=helper.make_sparse_tensor(numpy_helper.from_array(values, "v"),
                                                       numpy_helper.from_array(at.astype(np.int64), "i"), shape))


# ---- Images. ----

def as_bmp(a):
    """24 bits an element, rows from below."""
    h, w = a.shape[:2]
    line = (3 * w + 3) // 4 * 4
    rows = b"".join(a[k, :, ::-1].tobytes().ljust(line, b"\0") for k in reversed(range(h)))
    return struct.pack("<2sIHHIIiiHHIIiiII", b"BM", 54 + len(rows), 0, 0, 54, 40, w, h, 1, 24, 0, len(rows), 0, 0, 0, 0) + rows


def as_pnm(a):
    h, w = a.shape[:2]
    return b"P%d\n%d %d\n255\n" % (6 if a.shape[2] == 3 else 5, w, h) + a.tobytes()


def as_png(a):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    h, w = a.shape[:2]
    head = struct.pack(">IIBBBBB", w, h, 8, {1: 0, 3: 2, 4: 6}[a.shape[2]], 0, 0, 0)
    rows = b"".join(b"\0" + line.tobytes() for line in a)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@recipe("ImageDecoder")
def _(r, v, t):
    """Images whose elements survive, as they are or in other order."""
    write, channels = r.pick([(as_bmp, 3), (as_pnm, 3), (as_png, 3)])
    a = r.g.integers(0, 256, [r.int(1, 6), r.int(1, 6), channels]).astype(np.uint8)
    form = r.pick([None, "RGB", "BGR"])
    want = a[:, :, ::-1] if form == "BGR" else a
    return Case([np.frombuffer(write(a), np.uint8)], pixel_format=form, known=[want], judge="recipe", around=False)
