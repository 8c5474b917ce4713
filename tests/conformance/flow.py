# SPDX-License-Identifier: Apache-2.0
"""How to draw a case of an operator whose values are no tensors or that holds
graphs: as in recipes.py, but a case is a small graph, which ends in tensors."""
import numpy as np
import onnx
from onnx import helper

import draw
from recipes import NUMPY, Case, bits, recipe

CODE = {t: helper.np_dtype_to_tensor_dtype(np.dtype(n)) for t, n in NUMPY.items()}
# What ONNX Runtime selects, adds up and multiplies.
SELECTED = ("float", "double", "int32", "int64", "uint8", "string")
COUNTED = ("float", "double", "int32", "int64")
# Of which a part begins at a byte.
WHOLE = [t for t in NUMPY if bits(t) >= 8]


def graph(nodes, ins, outs, name="body"):
    """A body: what it gives has the types that follow."""
    return helper.make_graph(nodes, name, ins, [onnx.ValueInfoProto(name=o) for o in outs])


def tensor(name, t, shape=None):
    return helper.make_tensor_value_info(name, CODE[t], shape)


def same(t, *params, among=None):
    """The type of several parameters, of which one may be drawn."""
    for p in params:
        if p in t.drawn:
            return t(p)
    return t(params[0], among)


class Net:
    """Nodes of a case, over its inputs."""

    def __init__(self, r, v=99):
        self.r, self.v, self.ins, self.nodes, self.steer = r, v, [], [], []
        self.outs, self.count, self.known = {}, 0, []

    def put(self, a, steers=False):
        self.ins.append(a)
        if steers:
            self.steer.append(len(self.ins) - 1)
        return f"x{len(self.ins) - 1}"

    def add(self, op, *ins, outs=1, **attrs):
        self.count += 1
        names = [f"v{self.count}_{k}" for k in range(outs)]
        self.nodes.append(helper.make_node(op, list(ins), names, **attrs))
        return names[0] if outs == 1 else names

    def give(self, name, t, known=None):
        """A tensor of the graph comes out; `known`: what it has to be."""
        self.known.append(known)
        y = f"y{len(self.outs)}"
        self.outs[y] = t
        self.nodes.append(helper.make_node("Identity", [name], [y]))

    def place(self, at, n, t):
        """One of n places, from the end too."""
        kind = NUMPY[self.r.pick(["int64", "int32"]) if t is None else t]
        return self.put(np.asarray(at - n if at < n and self.r.chance(0.4) else at, kind), steers=True)

    def computed(self, name, t):
        """The same in the arena, now and then."""
        if t not in SELECTED or self.v < 9 or self.r.chance():
            return name
        return self.add("Where", self.put(np.asarray(self.r.chance())), name, name)

    def case(self, is_known=True, **more):
        known = self.known if is_known and all(a is not None for a in self.known) else None
        return Case(self.ins, len(self.outs), self.steer, nodes=self.nodes, out_types=self.outs, known=known, **more)


# ---- Sequences. ----

class Items:
    """A sequence in a net, and what its elements are."""

    def __init__(self, net, name, tensors, t):
        self.net, self.name, self.tensors, self.t = net, name, tensors, t

    def insert(self, x, kind=None, computed=True):
        n, net = len(self.tensors), self.net
        at = net.r.int(0, n) if net.r.chance(0.7) else None
        put = net.put(x)
        name = net.computed(put, self.t) if computed else put
        places = [] if at is None else [net.place(at, n, kind)]
        self.name = net.add("SequenceInsert", self.name, name, *places)
        self.tensors.insert(n if at is None else at, x)

    def erase(self, kind=None):
        n, net = len(self.tensors), self.net
        at = net.r.int(0, n - 1) if net.r.chance(0.7) else None
        places = [] if at is None else [net.place(at, n, kind)]
        self.name = net.add("SequenceErase", self.name, *places)
        self.tensors.pop(n - 1 if at is None else at)

    def at(self, kind=None):
        n = len(self.tensors)
        k = self.net.r.int(0, n - 1)
        self.net.give(self.net.add("SequenceAt", self.name, self.net.place(k, n, kind)), self.t, self.tensors[k])

    def length(self):
        self.net.give(self.net.add("SequenceLength", self.name), "int64", np.asarray(len(self.tensors)))

    def joins(self):
        """(axis, new_axis) that it can be joined along; packed elements are none of the schema's."""
        if bits(self.t) < 8:
            return []
        shapes = [list(x.shape) for x in self.tensors]
        ranks = {len(s) for s in shapes}
        if len(ranks) != 1:
            return []
        rank = ranks.pop()
        can = [(a, 1) for a in range(-rank - 1, rank + 1)] if all(s == shapes[0] for s in shapes) else []
        for a in range(-rank, rank):
            rest = [[d for k, d in enumerate(s) if k != a % rank] for s in shapes]
            if all(s == rest[0] for s in rest):
                can += [(a, 0), (a, None)]
        return can

    def join(self):
        axis, new = self.net.r.pick(self.joins())
        more = {} if new is None else {"new_axis": new}
        whole = np.stack(self.tensors, axis) if new else np.concatenate(self.tensors, axis)
        self.net.give(self.net.add("ConcatFromSequence", self.name, axis=axis, **more), self.t, whole)

    def read(self, least=1):
        """Some of what can be known of it."""
        ways = [self.length] + ([self.at] if self.tensors else []) + ([self.join] if self.tensors and self.joins() else [])
        self.net.r.pick(ways[-least:])()
        for way in ways:
            if self.net.r.chance(0.3):
                way()

    def change(self, kind=None):
        for _ in range(self.net.r.int(0, 2)):
            if self.tensors and self.net.r.chance(0.3):
                self.erase(kind)
            else:
                self.insert(like(self.net.r, self.tensors, self.t), kind)


def like(r, tensors, t):
    """A tensor that fits among these, mostly."""
    shape = list(tensors[0].shape) if tensors else r.shape(lo=0, hi=3)
    if shape and r.chance(0.4):
        shape[r.int(0, len(shape) - 1)] = r.int(1, 4)
    return r.tensor(t, shape)


def construct(net, t, least=1):
    """By naming its elements."""
    tensors = [net.r.tensor(t, net.r.shape(lo=0, hi=3))]
    for _ in range(net.r.int(least, 4) - 1):
        tensors.append(tensors[0].copy() if net.r.chance() else like(net.r, tensors, t))
    names = [net.computed(net.put(x), t) for x in tensors]
    return Items(net, net.add("SequenceConstruct", *names), tensors, t)


def empty(net, t):
    given = {} if t == "float" and net.r.chance() else {"dtype": CODE[t]}
    return Items(net, net.add("SequenceEmpty", **given), [], t)


def split(net, t, kind=None):
    r = net.r
    shape = r.shape(lo=1, hi=3, zero=0)
    axis = r.int(0, len(shape) - 1)
    n, x = shape[axis], r.tensor(t, shape)
    name, lengths, attrs = net.computed(net.put(x), t), None, {}
    how = r.pick(["none", "each", "list"])
    kind = NUMPY[kind or r.pick(["int64", "int32"])]
    if how == "each":
        lengths = np.asarray(r.int(1, n + 1), kind)
        cuts = np.arange(int(lengths), n, int(lengths))
    elif how == "list":
        cuts = np.sort(np.asarray(r.ints(0 if r.chance(0.2) else min(1, n - 1), n, r.int(0, 2)), int))
        lengths = np.diff(np.concatenate([[0], cuts, [n]])).astype(kind)
    else:
        cuts = np.arange(1, n)
        attrs = {} if r.chance() else {"keepdims": r.int(0, 1)}
    parts = np.split(x, cuts, axis)
    if attrs.get("keepdims") == 0:
        parts = [p.squeeze(axis) for p in parts]
    if axis or r.chance():
        attrs["axis"] = axis - len(shape) if r.chance(0.4) else axis
    more = [] if lengths is None else [net.put(lengths, steers=True)]
    return Items(net, net.add("SplitToSequence", name, *more, **attrs), list(parts), t)


def some(net, t, kind=None):
    """A sequence with an element at least, of whatever origin."""
    s = split(net, t) if bits(t) >= 8 and net.r.chance(0.3) else construct(net, t)
    s.change(kind)
    if not s.tensors:
        s.insert(net.r.tensor(t, net.r.shape(hi=3)), kind)
    return s


@recipe("SequenceConstruct")
def _(r, v, t):
    net = Net(r)
    s = construct(net, same(t, "T", "S"))
    s.read(2)
    return net.case()


@recipe("SequenceEmpty")
def _(r, v, t):
    net = Net(r)
    s = empty(net, t("S"))
    old = Items(net, s.name, [], s.t)
    s.insert(r.tensor(s.t, r.shape(hi=3)))
    s.at()
    old.length()
    s.change()
    s.read(3)
    return net.case()


@recipe("SequenceInsert")
def _(r, v, t):
    net, kind = Net(r), same(t, "T", "S")
    s = empty(net, kind) if r.chance(0.3) else construct(net, kind)
    if not s.tensors:
        s.insert(r.tensor(kind, r.shape(hi=3)), t("I"))
    old = Items(net, s.name, list(s.tensors), kind)
    for _ in range(r.int(1, 3)):
        s.insert(like(r, s.tensors, kind), t("I"))
    s.read(2)
    if r.chance(0.4):
        old.read(2)  # it is what it was
    return net.case()


@recipe("SequenceErase")
def _(r, v, t):
    net, kind = Net(r), t("S")
    s = construct(net, kind)
    old = Items(net, s.name, list(s.tensors), kind)
    for _ in range(r.int(1, len(s.tensors))):
        s.erase(t("I"))
    s.read(2)
    if r.chance(0.4):
        old.read(2)
    return net.case()


@recipe("SequenceAt")
def _(r, v, t):
    net = Net(r)
    s = some(net, same(t, "S", "T"), t("I"))
    for _ in range(r.int(1, 3)):
        s.at(t("I"))
    return net.case()


@recipe("SequenceLength")
def _(r, v, t):
    net, kind = Net(r), t("S")
    s = empty(net, kind) if r.chance(0.2) else some(net, kind)
    if not net.ins:
        s.insert(r.tensor(kind, r.shape(hi=3)))
    s.length()
    return net.case()


@recipe("SplitToSequence")
def _(r, v, t):
    net = Net(r)
    s = split(net, same(t, "T", "S"), t("I"))
    s.read(2)
    return net.case()


@recipe("ConcatFromSequence")
def _(r, v, t):
    net = Net(r)
    s = some(net, same(t, "S", "T"))
    if not s.joins():
        return None
    s.join()
    return net.case()


@recipe("SequenceMap")
def _(r, v, t):
    net, kind = Net(r), t("S")
    s = some(net, kind)
    n, ins, inner, outs = len(s.tensors), [s.name], ["a0"], []
    if r.chance(0.4):  # another one, of as many
        ins.append(net.add("SequenceConstruct", *[net.put(r.tensor(kind, r.shape(hi=2))) for _ in range(n)]))
        inner.append("a1")
    if r.chance(0.4):  # a tensor
        ins.append(net.put(r.tensor(kind, r.shape(hi=2))))
        inner.append(f"a{len(inner)}")
    nodes = []
    for k in range(r.int(1, 2)):
        a = r.pick(inner)
        op = r.pick(["Shape", "Identity", "Size"] + (["Add"] if kind in COUNTED else []))
        nodes.append(helper.make_node(op, [a, a] if op == "Add" else [a], [f"b{k}"]))
        outs.append(kind if op in ("Identity", "Add") else "int64")
    body = graph(nodes, [tensor(a, kind) for a in inner], [])
    body.output.extend(tensor(f"b{k}", u) for k, u in enumerate(outs))
    made = net.add("SequenceMap", *ins, outs=len(outs), body=body)
    for name, u in zip([made] if len(outs) == 1 else made, outs):
        at = r.int(0, n - 1)
        net.give(net.add("SequenceAt", name, net.place(at, n, None)), u)
        if r.chance(0.3):
            net.give(net.add("SequenceLength", name), "int64")
    return net.case(judge="runtime")


# ---- Optionals. ----

def type_of(kind, sequence):
    tensor = helper.make_tensor_type_proto(CODE[kind], None)
    return helper.make_sequence_type_proto(tensor) if sequence else tensor


def optional(net, kind, param, v, may_be_empty):
    """(name, what is in it: Items, a tensor or None)."""
    r = net.r
    if may_be_empty and r.chance(0.3):
        return net.add("Optional", type=type_of(kind, r.chance(0.4))), None
    if r.chance(0.4):
        s = some(net, kind)
        return net.add("Optional", s.name), s
    x = r.tensor(kind, r.shape(hi=3))
    return net.add("Optional", net.computed(net.put(x), kind)), x


def take_out(net, name, inside, kind):
    got = net.add("OptionalGetElement", name)
    if isinstance(inside, Items):
        Items(net, got, inside.tensors, kind).read(2)
    else:
        net.give(got, kind, inside)


@recipe("Optional", "OptionalGetElement", "OptionalHasElement")
def _(r, v, t):
    net, kind = Net(r), same(t, "V", "O")
    name, inside = optional(net, kind, "V", v, True)
    if inside is None:
        net.put(r.tensor(kind, []))
    if inside is not None:
        take_out(net, name, inside, kind)
    if inside is None or r.chance():
        net.give(net.add("OptionalHasElement", name), "bool", np.asarray(inside is not None))
    if v >= 18 and r.chance(0.3):  # of none at all, and of what is no optional
        of = r.pick([[], ["x0"]])
        net.give(net.add("OptionalHasElement", *of), "bool", np.asarray(bool(of)))
        net.give(net.add("OptionalGetElement", "x0"), draw.name_of(net.ins[0]), net.ins[0])
    return net.case()


# ---- Control flow. ----

def step(r, kind, a, b, out):
    """A node that gives what has the shape of a; b has as many elements, or one."""
    if kind in COUNTED and r.chance(0.7):
        return helper.make_node(r.pick(["Add", "Sub", "Mul"]), [a, b], [out])
    return helper.make_node("Identity", [a], [out])


def branch(net, kind, outer, shapes, v, deep):
    """A graph that takes nothing and gives as many tensors as there are shapes."""
    r, nodes, outs = net.r, [], []
    for s in shapes:
        net.count += 1
        out, tag = f"b{net.count}", f"c{net.count}"
        how = r.int(0, 3)
        if how == 0:
            nodes.append(helper.make_node("Identity", [r.pick(outer)], [out]))
        elif how == 1 and kind in COUNTED:
            a = r.pick(outer)
            nodes.append(step(r, kind, a, a, out))
        elif how == 2 and deep:
            sides = [branch(net, kind, outer, [s], v, False) for _ in range(2)]
            nodes.append(helper.make_node("If", ["x0"], [out], then_branch=sides[0], else_branch=sides[1]))
        elif kind in draw.SMALL or kind == "bfloat16" or kind == "string":
            nodes.append(helper.make_node("Identity", [r.pick(outer)], [out]))
        else:
            a = onnx.numpy_helper.from_array(r.tensor(kind, s), tag)
            nodes.append(helper.make_node("Constant", [], [out], value=a))
        outs.append(out)
    return graph(nodes, [], outs, f"g{net.count}")


@recipe("If")
def _(r, v, t):
    net, kind = Net(r, v), t("V")
    cond = net.put(np.asarray(r.chance()).reshape([] if r.chance(0.7) else [1]))
    shape = r.shape(hi=3)
    names = [net.computed(net.put(r.tensor(kind, shape if v < 11 or r.chance() else r.shape(hi=3))), kind)
             for _ in range(r.int(1, 3))]
    if v >= 13 and r.chance(0.3):
        return if_sequence(net, kind, cond, names)
    if v >= 16 and r.chance(0.25):
        return if_optional(net, kind, cond, names)
    shapes = [shape] * r.int(1, 3)
    sides = [branch(net, kind, names, shapes, v, True) for _ in range(2)]
    outs = net.add("If", cond, outs=len(shapes), then_branch=sides[0], else_branch=sides[1])
    for o in [outs] if len(shapes) == 1 else outs:
        net.give(o, kind)
    return net.case()


def either(net, cond, nodes):
    """An If whose branches are a node each."""
    sides = [graph([n], [], [n.output[0]], n.output[0]) for n in nodes]
    return net.add("If", cond, then_branch=sides[0], else_branch=sides[1])


def if_sequence(net, kind, cond, names):
    r = net.r
    sides = [helper.make_node("SequenceConstruct", [r.pick(names) for _ in range(r.int(1, 3))], [f"s{k}"]) for k in (0, 1)]
    s = either(net, cond, sides)
    net.give(net.add("SequenceAt", s, net.put(np.asarray(r.pick([0, -1]), np.int64), steers=True)), kind)
    net.give(net.add("SequenceLength", s), "int64")
    return net.case()


def if_optional(net, kind, cond, names):
    some_, none = (helper.make_node("Optional", [net.r.pick(names)], ["s0"]),
                   helper.make_node("Optional", [], ["s1"], type=type_of(kind, False)))
    first = net.r.chance()
    o = either(net, cond, [some_, none] if first else [none, some_])
    net.give(net.add("OptionalHasElement", o), "bool", np.asarray(bool(net.ins[0].item()) == first))
    return net.case()


def end_of(net):
    """Loop's first two inputs, so that it ends after some rounds, and whether there is any."""
    r, n = net.r, net.r.int(0, 4)
    rounds = net.put(np.asarray(n, np.int64), steers=True)
    if r.chance(0.3):
        return rounds, "", n > 0
    begins = r.chance(0.85)
    return rounds, net.put(np.asarray(begins)), begins and n > 0


def rounds_taken():
    return [tensor("i", "int64", []), tensor("c", "bool", [])]


@recipe("Loop")
def _(r, v, t):
    net, kind = Net(r, v), t("V", WHOLE)
    rounds, cond, any_round = end_of(net)
    shape = r.shape(hi=3)
    nstate = r.int(1, 3)
    before = [r.tensor(kind, shape, odd=False, wide=False) for _ in range(nstate)]
    states = [net.computed(net.put(x), kind) for x in before]
    outer = net.put(r.tensor(kind, shape, lo=-2, hi=2, odd=False, wide=False))
    limit = net.put(np.asarray(r.int(0, 4), np.int64))
    nodes, typed = [helper.make_node("Less", ["i", limit], ["go"])], r.chance()
    if v < 11 and r.chance():
        nodes[0] = helper.make_node("Identity", ["c"], ["go"])
    if v >= 13 and bits(kind) >= 8 and r.chance(0.25):
        return loop_sequence(net, kind, rounds, cond, states[0], nodes)
    if shape and bits(kind) >= 8 and r.chance(0.25):
        return loop_growing(net, kind, rounds, cond, states[0], outer, nodes)
    ends = [f"e{k}" for k in range(nstate)]
    order = r.g.permutation(nstate)
    nodes += [step(r, kind, f"s{order[k]}", r.pick([outer] + [f"s{j}" for j in range(nstate)]), e) for k, e in enumerate(ends)]
    collected = [f"z{k}" for k in range(r.int(bits(kind) < 8, 2))]
    nodes += [helper.make_node("Identity", [r.pick(ends + ["s0", outer])], [z]) for z in collected]
    ins = rounds_taken() + [tensor(f"s{k}", kind) if typed else onnx.ValueInfoProto(name=f"s{k}") for k in range(nstate)]
    many = nstate + len(collected)
    outs = net.add("Loop", rounds, cond, *states, outs=many, body=graph(nodes, ins, ["go"] + ends + collected))
    nothing = [r.tensor(kind, [0] + shape)] * len(collected)
    for o, x in zip([outs] if many == 1 else outs, before + nothing):
        net.give(o, kind, x)
    # Of no round at all, the runtime forgets the shape of what is collected.
    return net.case(judge="runtime" if any_round else "recipe", is_known=not any_round)


def loop_sequence(net, kind, rounds, cond, state, nodes):
    """Elements are inserted, now and then at the front."""
    start = net.add("SequenceConstruct", state)
    place = [net.put(np.asarray(net.r.pick([0, -1]), np.int64))] if net.r.chance() else []
    nodes.append(helper.make_node("SequenceInsert", ["s", state] + place, ["e"]))
    ins = rounds_taken() + [helper.make_tensor_sequence_value_info("s", CODE[kind], None)]
    got = net.add("Loop", rounds, cond, start, body=graph(nodes, ins, ["go", "e"]))
    net.give(net.add("SequenceLength", got), "int64")
    net.give(net.add("ConcatFromSequence", got, axis=0, new_axis=1), kind)
    return net.case(judge="runtime")


def loop_growing(net, kind, rounds, cond, state, outer, nodes):
    """A carried tensor gets longer."""
    nodes.append(helper.make_node("Concat", net.r.pick([["s", outer], [outer, "s"], ["s", "s"]]), ["e"], axis=0))
    nodes.append(helper.make_node("Size", ["s"], ["z"]))
    ins = rounds_taken() + [tensor("s", kind)]
    got, sizes = net.add("Loop", rounds, cond, state, outs=2, body=graph(nodes, ins, ["go", "e", "z"]))
    net.give(got, kind)
    net.give(sizes, "int64")
    return net.case(judge="runtime")


@recipe("Scan")
def _(r, v, t):
    net, kind = Net(r, v), t("V", WHOLE)
    old, rounds, batch = v < 9, r.int(1, 4), [r.int(1, 3)] if v < 9 else []
    nstate, nscan, shape = r.int(0, 2), r.int(1, 2), r.shape(hi=2)
    attrs = {"num_scan_inputs": nscan}
    names, axes = [], []
    for k in range(nstate):
        names.append(net.computed(net.put(r.tensor(kind, batch + shape, odd=False, wide=False)), kind))
    for k in range(nscan):
        axes.append(0 if old else r.int(0, len(shape)))
        whole = shape[:axes[-1]] + [rounds] + shape[axes[-1]:]
        names.append(net.computed(net.put(r.tensor(kind, batch + whole, odd=False, wide=False)), kind))
    inner = [f"s{k}" for k in range(nstate)] + [f"a{k}" for k in range(nscan)]
    ends, collected = [f"e{k}" for k in range(nstate)], [f"z{k}" for k in range(r.int(0 if nstate else 1, 2))]
    nodes = [step(r, kind, r.pick(inner), r.pick(inner), e) for e in ends + collected]
    if r.chance():
        attrs["directions" if old else "scan_input_directions"] = r.ints(0, 1, nscan)
    if not old:
        if any(axes) or r.chance():
            attrs["scan_input_axes"] = [a - len(shape) - 1 if v >= 11 and r.chance(0.3) else a for a in axes]
        if collected and r.chance():
            attrs["scan_output_axes"] = [r.int(-len(shape) - 1 if v >= 11 else 0, len(shape)) for _ in collected]
        if collected and r.chance():
            attrs["scan_output_directions"] = r.ints(0, 1, len(collected))
    body = graph(nodes, [tensor(a, kind) for a in inner], ends + collected)
    many = len(ends + collected)
    outs = net.add("Scan", *([""] if old else []), *names, outs=many, body=body, **attrs)
    for o in [outs] if many == 1 else outs:
        net.give(o, kind)
    return net.case(judge="runtime")
