#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the models of this folder that have branches and loops.

`nnc_*` are the loops on which NNC tests its own allocation (study: shared
spec/algorithms.md, section 7): pictures of 5 x 5 x 4 floats through a 3 x 3
convolution.  What goes in is computed by an op first, and what comes out goes
through another one, so that everything between them is in the arena.

Deterministic, as make.py is; the files are committed."""
import os

from onnx import TensorProto as T, helper as h

from make import const, np, save, value, weights

PICTURE = [1, 4, 5, 5]
ROUND = [value("round", [], T.INT64), value("go", [], T.BOOL)]


def n(op, inputs, outputs, **attrs):
    inputs, outputs = inputs.split(), outputs.split()
    return h.make_node(op, ["" if i == "_" else i for i in inputs], outputs, outputs[0], **attrs)


def values(names, dims=PICTURE, elem=T.FLOAT):
    return [value(v, dims, elem) for v in names.split()]


def loop(inputs, outputs, nodes, carried, results, dims=PICTURE, extra=()):
    """A loop whose body goes on as it was told."""
    body = h.make_graph([*nodes, n("Identity", "go", "go_on")], "round", ROUND + values(carried, dims),
                        [value("go_on", [], T.BOOL), *values(results, dims), *extra])
    return n("Loop", inputs, outputs, body=body)


def conv(x, y):
    return n("Conv", f"{x} w b", y, pads=[1, 1, 1, 1])


def nnc(name, nodes, result, weighted=True):
    init = [const("five", 5), *([weights("w", 4, 4, 3, 3, scale=0.1), weights("b", 4, scale=0.1, seed=1)]
                                if weighted else [])]
    save(name + ".onnx", h.make_graph([n("Tanh", "x", "x0"), *nodes, n("Tanh", result, "y")], name,
                                      values("x"), values("y"), init))


def nnc_pool():
    """x = avgpool(conv(x)): the new x is born after the old one died."""
    pool = n("AveragePool", "c", "xn", kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    nnc("nnc_pool", [loop("five _ x0", "z", [conv("xi", "c"), pool], "xi", "xn")], "z")


def nnc_conv():
    """x = conv(x): two regions that change places."""
    nnc("nnc_conv", [loop("five _ x0", "z", [conv("xi", "xn")], "xi", "xn")], "z")


def nnc_residual():
    """The same, and the first x is needed behind the loop."""
    nnc("nnc_residual", [loop("five _ x0", "z", [conv("xi", "xn")], "xi", "xn"), n("Add", "x0 z", "s")], "s")


def nnc_nested():
    """That in a loop of its own."""
    inner = loop("five _ xo", "z", [conv("xi", "xn")], "xi", "xn")
    inner.attribute[0].g.input[0].name, inner.attribute[0].g.input[1].name = "inner_round", "inner_go"
    for node in inner.attribute[0].g.node:
        node.input[:] = ["inner_go" if i == "go" else i for i in node.input]
        node.output[:] = ["inner_go_on" if o == "go_on" else o for o in node.output]
    inner.attribute[0].g.output[0].name = "inner_go_on"
    nnc("nnc_nested", [loop("five _ x0", "u", [inner, n("Add", "xo z", "s")], "xo", "s")], "u")


def nnc_chain():
    """x2 = x0 + conv(x1), x0 <= x1 <= x2: three regions that take turns."""
    nnc("nnc_chain", [n("Abs", "x0", "x1"),
                      loop("five _ x0 x1", "u v", [conv("b1", "c"), n("Add", "b0 c", "b2")], "b0 b1", "b1 b2"),
                      n("Add", "u v", "s")], "s")


def nnc_lag():
    """x[c] = conv(x[c - 4]), the last four summed up."""
    start = [n("Abs", "x0", "x1"), n("Neg", "x0", "x2"), n("Relu", "x0", "x3")]
    nnc("nnc_lag", [*start, loop("five _ x0 x1 x2 x3", "p q r t", [conv("b0", "b4")], "b0 b1 b2 b3", "b1 b2 b3 b4"),
                    n("Sum", "p q r t", "s")], "s")


def nnc_branch():
    """A loop around a branch; four rounds."""
    small = h.make_graph([n("Mul", "xi third", "low")], "small", [], values("low"))
    large = h.make_graph([n("Add", "xi half", "t"), n("Mul", "t third", "high")], "large", [], values("high"))
    body = [n("ReduceMax", "xi", "m", keepdims=0), n("Less", "m half", "c"),
            n("If", "c", "xn", then_branch=small, else_branch=large)]
    save("nnc_branch.onnx", h.make_graph(
        [n("Tanh", "x", "x0"), loop("four _ x0", "z", body, "xi", "xn"), n("Tanh", "z", "y")], "nnc_branch",
        values("x"), values("y"),
        [const("four", 4), const("half", 0.5, np.float32), const("third", 0.3, np.float32)]))


def swap():
    """(a <= b, b <= a): no value is computed at all."""
    dims = [2, 32]
    save("loop_swap.onnx", h.make_graph(
        [n("Tanh", "x", "a0"), n("Abs", "x", "b0"),
         loop("trips _ a0 b0", "a1 b1", [], "a b", "b a", dims), n("Sub", "a1 b1", "y")], "swap",
        [value("x", dims), value("trips", [], T.INT64)], values("y", dims)))


def cycle():
    """(a <= b, b <= c, c <= a), and one that is passed through."""
    dims = [2, 32]
    save("loop_cycle.onnx", h.make_graph(
        [n("Tanh", "x", "a0"), n("Abs", "x", "b0"), n("Neg", "x", "c0"),
         loop("trips _ a0 b0 c0 x", "a1 b1 c1 d1", [], "a b c d", "b c a d", dims),
         n("Sub", "a1 b1", "s"), n("Mul", "s c1", "t"), n("Add", "t d1", "y")], "cycle",
        [value("x", dims), value("trips", [], T.INT64)], values("y", dims)))


def early():
    """A loop that ends when its value is small: how often it runs only the data
    say.  What it was in each round is collected."""
    dims = [1, 16]
    body = h.make_graph(
        [n("Mul", "v factor", "w"), n("ReduceMax", "w", "m", keepdims=0), n("Greater", "m least", "more")],
        "round", ROUND + values("v", dims), [value("more", [], T.BOOL), *values("w", dims), value("m", [])])
    save("loop_early.onnx", h.make_graph(
        [n("Abs", "x", "v0"), n("Loop", "trips more0 v0", "last maxima", body=body), n("Neg", "last", "y")],
        "early", [value("x", dims), value("factor", []), value("trips", [], T.INT64), value("more0", [], T.BOOL)],
        [*values("y", dims), value("maxima", ["rounds"])], [const("least", 0.125, np.float32)]))


def scans():
    """Two states, two scanned inputs, three outputs: forward and backward, along
    the first, the second and the last axis."""
    body = h.make_graph(
        [n("Add", "s a", "s1"), n("Mul", "s1 b", "p"), n("Sub", "p t", "t1"), n("Neg", "s1", "o1"),
         n("Tanh", "p", "o2"), n("Identity", "b", "o3")], "step",
        values("s t a b", [4]), values("s1 t1 o1 o2 o3", [4]))
    scan = n("Scan", "s0 t0 x z", "s9 t9 first second third", body=body, num_scan_inputs=2, scan_input_axes=[0, 1],
             scan_input_directions=[0, 1], scan_output_axes=[0, 1, -1], scan_output_directions=[0, 1, 0])
    save("scans.onnx", h.make_graph(
        [n("ReduceMax", "x", "s0", axes=[0], keepdims=0), n("Neg", "s0", "t0"), n("Transpose", "x", "z", perm=[1, 0]),
         scan, n("Add", "s9 t9", "y")], "scans", values("x", [6, 4]),
        [*values("y", [4]), *values("first", [6, 4]), *values("second third", [4, 6])]))


def grow():
    """What goes round grows by a row in each round: no plan has room for it."""
    body = h.make_graph(
        [n("Concat", "v row", "w", axis=0), n("ReduceMax", "w", "m", axes=[0]), n("Identity", "go", "go_on")],
        "round", ROUND + [value("v", None)], [value("go_on", [], T.BOOL), value("w", None), value("m", [1, 8])])
    save("loop_grow.onnx", h.make_graph(
        [n("Abs", "x", "row"), n("Loop", "trips _ x", "all maxima", body=body),
         n("ReduceMax", "all", "y", axes=[0])], "grow",
        [value("x", [1, 8]), value("trips", [], T.INT64)],
        [*values("y", [1, 8]), value("all", ["rows", 8]), value("maxima", ["rounds", 1, 8])]))


def sizes():
    """Branches of different shapes, and one output that has the same in both."""
    long = h.make_graph([n("Concat", "t t", "c", axis=0), n("Exp", "c", "a1"), n("Neg", "t", "b1")], "long", [],
                        [value("a1", [4, 8]), value("b1", [2, 8])])
    short = h.make_graph([n("Relu", "t", "a2"), n("Abs", "t", "b2")], "short", [],
                         [value("a2", [2, 8]), value("b2", [2, 8])])
    save("sizes.onnx", h.make_graph(
        [n("Tanh", "x", "t"), n("If", "which", "a b", then_branch=long, else_branch=short),
         n("ReduceMax", "a", "m", axes=[0]), n("Neg", "a", "all"), n("Add", "m b", "y")], "sizes",
        [value("x", [2, 8]), value("which", [], T.BOOL)], [*values("y", [2, 8]), value("all", ["rows", 8])]))


def control():
    """A branch in a loop in a branch; the inner one captures from every level."""
    dims = [4, 8]
    up = h.make_graph([n("Add", "v base", "u1"), n("Mul", "u1 slope", "up")], "up", [], values("up", dims))
    down = h.make_graph([n("Sub", "v x", "down")], "down", [], values("down", dims))
    body = h.make_graph(
        [n("Cast", "round", "r", to=T.FLOAT), n("ReduceMax", "v", "m", keepdims=0), n("Less", "m r", "low"),
         n("If", "low", "w", then_branch=up, else_branch=down), n("Less", "m limit", "more")],
        "round", ROUND + values("v", dims), [value("more", [], T.BOOL), *values("w", dims), value("m", [])])
    work = h.make_graph([n("Mul", "base base", "slope"), n("Loop", "trips _ slope", "last maxima", body=body),
                         n("ReduceSum", "maxima", "total", keepdims=0), n("Add", "last total", "worked")],
                        "work", [], values("worked", dims))
    rest = h.make_graph([n("Neg", "base", "rested")], "rest", [], values("rested", dims))
    save("control.onnx", h.make_graph(
        [n("Tanh", "x", "base"), n("If", "which", "z", then_branch=work, else_branch=rest), n("Add", "z base", "y")],
        "control", [value("x", dims), value("trips", [], T.INT64), value("which", [], T.BOOL)], values("y", dims),
        [const("limit", 100, np.float32)]))


# ---- Small bodies in as many rounds as one likes: for bench/loop. ----

def small(name, nodes, dims, carried="v", results="vn", init=(), outputs=("y",), before=(), file=None):
    """`trips` iterations, without a condition; x is the initial value."""
    save((file or name) + ".onnx", h.make_graph(
        [n("Tanh", "x", "v0"), *before, loop("trips _ v0", "last", nodes, carried, results, dims),
         n("Neg", "last", "y")], name,
        [value("x", dims), value("trips", [], T.INT64)], [value(o, dims) for o in outputs], list(init)))


def count():
    """One op on one number."""
    small("count", [n("Add", "v step", "vn")], [1], init=[const("step", [0.5], np.float32)])


def horner():
    """A polynomial: two ops on 32 numbers."""
    small("horner", file="loop_horner", nodes=[n("Mul", "v x", "t"), n("Add", "t one", "vn")], dims=[4, 8], init=[const("one", [1], np.float32)])


def toggle():
    """One of two branches in turn."""
    up = h.make_graph([n("Add", "v x", "up")], "up", [], values("up", [4]))
    down = h.make_graph([n("Sub", "v x", "down")], "down", [], values("down", [4]))
    small("toggle", file="loop_toggle", nodes=[n("Mod", "round two", "m"), n("Cast", "m", "odd", to=T.BOOL),
                     n("If", "odd", "vn", then_branch=up, else_branch=down)], dims=[4], init=[const("two", 2)])


def inner():
    """Ten rounds in each round."""
    few = h.make_graph([n("Add", "w x", "wn"), n("Identity", "inner_go", "inner_go_on")], "few",
                       [value("inner_round", [], T.INT64), value("inner_go", [], T.BOOL), value("w", [4])],
                       [value("inner_go_on", [], T.BOOL), value("wn", [4])])
    small("inner", [n("Loop", "ten _ v", "vn", body=few)], [4], init=[const("ten", 10)])


def collect():
    """What a round gives is kept, for every round."""
    body = h.make_graph([n("Sub", "x v", "vn"), n("Identity", "go", "go_on"), n("Identity", "vn", "item")], "round",
                        ROUND + values("v", [4]), [value("go_on", [], T.BOOL), *values("vn item", [4])])
    save("loop_collect.onnx", h.make_graph(
        [n("Tanh", "x", "v0"), n("Loop", "trips _ v0", "last all", body=body),
         n("ReduceSum", "all outer", "y", keepdims=0)], "collect",
        [value("x", [4]), value("trips", [], T.INT64)], values("y last", [4]), [const("outer", [0])]))


def rows():
    """A Scan over N rows with a state that lags, a loop over all rows, and an If."""
    def picture(v):
        return value(v, ["N", 4])
    scanned = h.make_graph([n("Sub", "q row", "s"), n("Tanh", "s", "pn"), n("Identity", "p", "qn"), n("Identity", "pn", "item")],
                           "scanned", values("p q row", [4]), values("pn qn item", [4]))
    thrice = h.make_graph([n("Softmax", "v", "e"), n("Sub", "e a", "vn"), n("Identity", "go", "go_on")], "thrice",
                          ROUND + [picture("v")], [value("go_on", [], T.BOOL), picture("vn")])
    up = h.make_graph([n("Exp", "all", "up")], "up", [], [picture("up")])
    down = h.make_graph([n("Softmax", "all", "d"), n("Sub", "d all", "down")], "down", [], [picture("down")])
    save("loop_rows.onnx", h.make_graph(
        [n("Tanh", "x", "a"), n("ReduceMean", "a", "start", axes=[0], keepdims=0),
         n("Scan", "start start a", "last_p last_q items", body=scanned, num_scan_inputs=1),
         n("Loop", "three _ items", "all", body=thrice), n("If", "which", "z", then_branch=up, else_branch=down),
         n("Add", "z last_p", "b"), n("Add", "b last_q", "y")], "rows",
        [picture("x"), value("which", [], T.BOOL)], [picture("y")], [const("three", 3)]))


if __name__ == "__main__":
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    for make in (nnc_pool, nnc_conv, nnc_residual, nnc_nested, nnc_chain, nnc_lag, nnc_branch, swap, cycle, early,
                 scans, grow, sizes, control, count, horner, toggle, inner, collect, rows):
        make()
