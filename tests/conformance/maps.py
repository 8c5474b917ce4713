# SPDX-License-Identifier: Apache-2.0
"""How to draw a case of an operator of ai.onnx.ml on maps: as in recipes.py."""
import numpy as np

import draw
from recipes import Case, recipe

ML = "ai.onnx.ml"
WORDS = ["a", "b", "ab", "", "c d", "zz", "x", "yy"]


def texts(list_):
    a = np.empty(len(list_), np.object_)
    a[:] = list_
    return a


def keys_of(r, kind, n):
    """Different ones."""
    if kind == "string":
        return texts([WORDS[k] for k in r.g.permutation(len(WORDS))[:n]])
    return np.asarray([int(k) for k in r.g.permutation(12)[:n]], np.int64) - r.pick([0, 0, 4])


def known_of(r, keys):
    """Some of the keys, and some others, in any order."""
    others = [k for k in (WORDS if keys.dtype == np.object_ else range(-4, 14)) if k not in keys.tolist()]
    some = [k for k in keys.tolist() if r.chance(0.7)] + others[:r.int(0, 3)]
    some = some or others[:1]
    return [some[k] for k in r.g.permutation(len(some))]


@recipe("DictVectorizer", domain=ML)
def _(r, v, t):
    key, value = r.pick([("int64", "string"), ("int64", "float"), ("int64", "double"),
                         ("string", "int64"), ("string", "float"), ("string", "double")])
    keys = keys_of(r, key, r.int(0, 6))
    known = known_of(r, keys)
    attrs = {"string_vocabulary" if key == "string" else "int64_vocabulary": known}
    m = draw.Map(keys, r.tensor(value, [len(keys)], odd=False))
    of, none = m.feed(), "" if value == "string" else 0
    row = [of.get(k, none) for k in known]  # the runtime's Python hands few kinds of maps on
    return Case([m], known=[np.asarray([row], m.dtype)], **attrs)


@recipe("CastMap", domain=ML)
def _(r, v, t):
    n = r.int(1, 6)
    keys = np.abs(keys_of(r, "int64", n))
    keys = np.unique(keys)[r.g.permutation(len(np.unique(keys)))]
    if r.chance():
        values = r.tensor("float", [len(keys)], -50, 50, odd=False)
    else:
        values = texts([r.pick(["1", "-2.5", "3e2", "0", "17.25"]) for _ in keys])
    to = r.pick([None, "TO_FLOAT", "TO_INT64", "TO_STRING"])
    form = r.pick([None, "DENSE", "SPARSE", "SPARSE"])
    more = {"max_map": r.int(int(keys.max()) + 1, 15)} if form == "SPARSE" else {}
    if values.dtype == np.object_ and to == "TO_INT64":  # the runtime reads a whole number, or refuses
        values = texts([r.pick(["1", "-2", "300"]) for _ in keys])
    m = draw.Map(keys, values)
    known = cast(m.feed(), to, more.get("max_map")) if values.dtype == np.object_ else None
    return Case([m], cast_to=to, map_form=form, known=known, **more)


def cast(of, to, size):
    """What comes out of texts, which the runtime's Python does not hand on."""
    kind, none = {"TO_STRING": (np.object_, "0.f"), "TO_INT64": (np.int64, 0)}.get(to, (np.float32, 0))
    rows = [of.get(k, none) for k in range(size)] if size else [of[k] for k in sorted(of)]
    return [np.asarray([[x if kind == np.object_ else float(x) for x in rows]]).astype(kind)]


def same_maps(case, k, got, want):
    """Ours come as texts: place, key, value."""
    mine = [{} for _ in want]
    for text in got.reshape(-1):
        place, key, value = text.split("\t")
        mine[int(place)][key] = np.float32(value)
    theirs = [{str(a): np.float32(b) for a, b in m.items()} for m in want]
    return None if mine == theirs else f"{mine}, wanted {theirs}"


@recipe("ZipMap", domain=ML)
def _(r, v, t):
    key = r.pick(["int64", "string"])
    labels = keys_of(r, key, r.int(1, 6)).tolist()
    shape = [len(labels)] if r.chance(0.3) else [r.int(1, 4), len(labels)]
    return Case([r.tensor("float", shape, odd=False)], check=same_maps, around=False,
                **{"classlabels_strings" if key == "string" else "classlabels_int64s": labels})
