# SPDX-License-Identifier: Apache-2.0
"""Random models whose Scans and Loops have lags: values that are carried through 1 to 12 places.

    lags.py [FIRST [COUNT]]

Chains shift by one or more places, turn, are permuted, or have parts that stay, that are the same twice, or come from
outside.  Scans have several inputs and outputs, each with an axis and a direction; Loops end by their number of
iterations, known or not, or by what they compute; both are nested in each other and in Ifs.  Every model has a
plan in the file for the target generic and for cpu, with inputs and outputs of the caller or in the arena.  Runs by the
plan, with poisoned memory, and without reuse are equal bit for bit, and like ONNX Runtime.  Prints TAP."""
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models"))
from apart import apart
from command import Wrong, arrays, compare, np, onnx, onnxmem, session
from tap import Points, scratch
from onnx import TensorProto, helper, numpy_helper

DEPTH = 3
MOST_REFUSED = 0.15      # of models, by ONNX Runtime
MOST_ITERATIONS = 60     # of all nested bodies together
SHAPES = [(2, 3), (1, 5), (4, 8), (1, 1, 33), (3, 16)]


class Scope:
    """What the nodes of a graph can read; a body also reads what is around it."""

    def __init__(self, outer=None):
        self.nodes = []
        self.depth = outer.depth + 1 if outer else 0
        self.values = list(outer.values) if outer else []
        self.series = list(outer.series) if outer else []  # (name, axis, length, group): equal groups have equal lengths
        self.flags = list(outer.flags) if outer else []
        self.trips = list(outer.trips) if outer else []    # (name, most)
        self.left = outer.left if outer else MOST_ITERATIONS


class Maker:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.shape = self.rng.choice(SHAPES)
        self.constants, self.count, self.group = [], 0, 0

    # -- names, constants and ops

    def name(self, prefix="v"):
        self.count += 1
        return f"{prefix}{self.count}"

    def constant(self, a):
        name = self.name("c")
        self.constants.append(numpy_helper.from_array(np.asarray(a), name))
        return name

    def op(self, scope, kind, *inputs, **attributes):
        out = self.name()
        scope.nodes.append(helper.make_node(kind, inputs, [out], **attributes))
        return out

    def value(self, name, kind=TensorProto.FLOAT, shape=None):
        return helper.make_tensor_value_info(name, kind, shape)

    # -- elementwise

    def pick(self, scope):
        """Recent values are preferred."""
        n = len(scope.values)
        return scope.values[max(self.rng.randrange(n), self.rng.randrange(n))]

    def computed(self, scope, *read):
        """A value in [-1, 1] of what is to be read, and of others."""
        v = self.pick(scope) if not read else read[0]
        others = list(read[1:]) or ([self.pick(scope)] if self.rng.randrange(3) else [])
        for u in others:
            v = self.op(scope, self.rng.choice(["Add", "Sub", "Mul", "Max", "Min"]), v, u)
        v = self.op(scope, self.rng.choice(["Tanh", "Tanh", "Softsign"]), v)
        return self.op(scope, self.rng.choice(["Neg", "Identity", "Abs"]), v) if self.rng.randrange(4) == 0 else v

    # -- lags

    def results(self, scope, chain):
        """What follows on the parameters of a chain."""
        kind, n = self.rng.randrange(6), len(chain)
        if kind < 2:                                      # shift by one or more places
            by = 1 if kind == 0 else self.rng.randrange(1, n + 1)
            new = [self.computed(scope, chain[-1], self.rng.choice(chain)) for _ in range(min(by, n))]
            return new + chain[:n - len(new)]
        if kind == 2:                                     # turn, and compute one of them
            found = chain[1:] + chain[:1]
            k = self.rng.randrange(n)
            found[k] = self.computed(scope, found[k])
            return found
        if kind == 3:
            return self.rng.sample(chain, n)
        if kind == 4:                                     # the other way round
            return chain[1:] + [self.computed(scope, chain[0], self.rng.choice(chain))]
        return [self.rng.choice([p, self.rng.choice(chain), self.computed(scope, p), self.pick(scope)]) for p in chain]

    def distinct(self, scope, results, own):
        """Results of a body are its own, each once."""
        found = []
        for r in results:
            found.append(r if r not in found and r in own else self.op(scope, "Identity", r))
        return found

    def chains(self, scope):
        """Initial values by chain; some are the same."""
        lengths = [self.rng.choice([1, 1, 2, 2, 3, 3, 4, 5, 7, 12]) for _ in range(self.rng.choice([1, 1, 2, 3]))]
        same = self.pick(scope)
        return [[same if self.rng.randrange(4) == 0 else self.pick(scope) for _ in range(n)] for n in lengths]

    def filled(self, scope, chains):
        """The nodes of a body, and its results by chain."""
        own = set(v for c in chains for v in c)
        scope.values += [v for c in chains for v in c]
        before = len(scope.nodes)
        self.fill(scope, self.rng.randrange(0, 4))
        found = [r for c in chains for r in self.results(scope, c)]
        own |= {o for n in scope.nodes[before:] for o in n.output}
        return self.distinct(scope, found, own), own

    def stacked(self, scope, own):
        return self.distinct(scope, [self.pick(scope) for _ in range(self.rng.choice([0, 1, 1, 2]))], own)

    # -- bodies

    def graph(self, scope, inputs, outputs):
        return helper.make_graph(scope.nodes, self.name("g"), inputs, outputs)

    def carried(self, chains):
        """Parameters, with or without a declared shape."""
        names = [[self.name("p") for _ in c] for c in chains]
        infos = [self.value(p, shape=self.rng.choice([None, self.shape])) for c in names for p in c]
        return names, infos

    def loop(self, scope):
        trips = [t for t in scope.trips if t[1] <= scope.left]
        most = min(scope.left, self.rng.choice([0, 1, 2, 3, 5, 8]))
        count, most = self.rng.choice(trips) if trips and self.rng.randrange(2) else (self.constant(np.array(most, np.int64)), most)
        chains = self.chains(scope)
        body = Scope(scope)
        body.left = scope.left // max(most, 1)
        i, flag = self.name("i"), self.name("b")
        params, infos = self.carried(chains)
        body.flags.append(self.op(body, "Equal", self.op(body, "Mod", i, self.constant(np.array(2, np.int64))),
                                  self.constant(np.array(0, np.int64))))
        body.trips.append((i, max(most - 1, 0)))
        results, own = self.filled(body, params)
        ends = self.rng.randrange(4)
        if ends:
            go = self.op(body, "Identity", flag)
        elif self.rng.randrange(2):
            go = self.op(body, "Less", i, self.constant(np.array(self.rng.randrange(1, 5), np.int64)))
        else:
            total = self.op(body, "ReduceMean", self.pick(body), keepdims=0)
            go = self.op(body, "Less", total, self.constant(np.float32(self.rng.choice([0.2, 0.6, -0.1]))))
        stacked = self.stacked(body, own | set(results))
        stacked = self.distinct(body, [s if s not in results else self.op(body, "Identity", s) for s in stacked],
                                own | {o for n in body.nodes for o in n.output})
        outputs = [self.value(go, TensorProto.BOOL)] + [self.value(r, shape=self.shape) for r in results + stacked]
        inputs = [self.value(i, TensorProto.INT64, []), self.value(flag, TensorProto.BOOL, [])] + infos
        outs = [self.name() for _ in results + stacked]
        scope.nodes.append(helper.make_node("Loop", [count, self.rng.choice(["", "true"])] + [v for c in chains for v in c], outs,
                                            body=self.graph(body, inputs, outputs)))
        self.group += 1
        scope.values += self.rng.sample(outs[:len(results)], len(results))
        for s in outs[len(results):]:
            scope.series.append((s, 0, most, self.group))
            scope.values.append(self.summed(scope, s, 0))

    def summed(self, scope, series, axis):
        """One value of a series."""
        return self.op(scope, "Tanh", self.op(scope, "ReduceSum", series, self.constant(np.array([axis], np.int64)), keepdims=0))

    def scan(self, scope):
        groups = {}
        for s in scope.series:
            if s[2] <= scope.left:
                groups.setdefault(s[3], []).append(s)
        if not groups:
            return self.loop(scope)
        group = self.rng.choice(sorted(groups))
        given = [self.rng.choice(groups[group]) for _ in range(self.rng.choice([1, 2, 2, 3]))]
        most, rank = given[0][2], len(self.shape) + 1
        chains = self.chains(scope)
        body = Scope(scope)
        body.left = scope.left // max(most, 1)
        params, infos = self.carried(chains)
        slices = [self.name("s") for _ in given]
        infos += [self.value(s, shape=self.rng.choice([None, self.shape])) for s in slices]
        body.values += slices
        results, own = self.filled(body, params)
        own |= set(slices)
        stacked = self.stacked(body, own | set(results))
        stacked = self.distinct(body, [s if s not in results else self.op(body, "Identity", s) for s in stacked],
                                own | {o for n in body.nodes for o in n.output})
        axes = [self.rng.randrange(rank) for _ in stacked]
        outs = [self.name() for _ in results + stacked]
        where = {"scan_input_axes": [s[1] - rank * self.rng.randrange(2) for s in given],
                 "scan_input_directions": [self.rng.randrange(2) for _ in given],
                 "scan_output_axes": [a - rank * self.rng.randrange(2) for a in axes],
                 "scan_output_directions": [self.rng.randrange(2) for _ in stacked]}
        scope.nodes.append(helper.make_node(
            "Scan", [v for c in chains for v in c] + [s[0] for s in given], outs, num_scan_inputs=len(given),
            body=self.graph(body, infos, [self.value(r, shape=self.shape) for r in results + stacked]), **{k: v for k, v in where.items() if v}))
        scope.values += self.rng.sample(outs[:len(results)], len(results))
        for s, axis in zip(outs[len(results):], axes):
            scope.series.append((s, axis, most, group))
            scope.values.append(self.summed(scope, s, axis))
        return None

    def branch(self, scope):
        n = self.rng.choice([1, 1, 2])
        graphs = []
        for _ in range(2):
            body = Scope(scope)
            self.fill(body, self.rng.randrange(0, 3))
            own = {o for node in body.nodes for o in node.output}
            results = self.distinct(body, [self.rng.choice([self.pick(body), self.computed(body)]) for _ in range(n)], own)
            graphs.append(self.graph(body, [], [self.value(r) for r in results]))
        outs = [self.name() for _ in range(n)]
        scope.nodes.append(helper.make_node("If", [self.rng.choice(scope.flags)], outs, then_branch=graphs[0], else_branch=graphs[1]))
        scope.values += outs

    def fill(self, scope, n):
        for _ in range(n):
            kind = self.rng.randrange(8)
            if scope.depth >= DEPTH or kind < 3:
                scope.values.append(self.computed(scope))
            elif kind == 3:
                self.branch(scope)
            elif kind < 6:
                self.scan(scope)
            else:
                self.loop(scope)

    # -- the model

    def model(self):
        top = Scope()
        top.flags, top.trips, top.values = ["flag"], [("trips", 7)], ["x", "y"]
        self.constants.append(numpy_helper.from_array(np.array(True), "true"))
        top.values.append(self.constant(self.numbers.uniform(-1, 1, self.shape).astype(np.float32)))
        self.inputs = {"x": self.shape, "y": self.shape}
        length = self.rng.randrange(1, 7)
        for k in range(self.rng.choice([1, 2, 3])):
            axis = self.rng.randrange(len(self.shape) + 1)
            self.inputs[f"z{k}"] = self.shape[:axis] + (length,) + self.shape[axis:]
            top.series.append((f"z{k}", axis, length, 0))
        self.scan(top)
        self.fill(top, self.rng.randrange(1, 4))
        made = [v for n in top.nodes for v in n.output if v in top.values]
        outputs = dict.fromkeys(made[-2:] + [self.rng.choice(made) for _ in range(2)])
        infos = [self.value(k, shape=s) for k, s in self.inputs.items()]
        infos += [self.value("flag", TensorProto.BOOL, []), self.value("trips", TensorProto.INT64, [])]
        graph = helper.make_graph(top.nodes, "lags", infos, [self.value(v) for v in outputs], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)

    def data(self):
        x = {k: self.numbers.uniform(-1, 1, s).astype(np.float32) for k, s in self.inputs.items()}
        return {**x, "flag": np.array(bool(self.rng.randrange(2))), "trips": np.array(self.rng.randrange(0, 8), np.int64)}


def with_copies(graph):
    """Where a body returns a parameter as it is, ONNX Runtime 1.31 leaves the result of a Scan unwritten, and does not
    know the shape of what a Loop of no iterations stacks: it gets copies."""
    for node in graph.node:
        for a in node.attribute:
            if a.type != onnx.AttributeProto.GRAPH:
                continue
            with_copies(a.g)
            given = {i.name for i in a.g.input} if node.op_type != "If" else {}
            for out in a.g.output:
                if out.name in given:
                    a.g.node.append(helper.make_node("Identity", [out.name], ["copy_of_" + out.name]))
                    out.name = "copy_of_" + out.name


def equal(who, got, want):
    for k, x in want.items():
        if got[k].shape != x.shape or got[k].tobytes() != x.tobytes():
            raise Wrong(f"{who}: {k} is not bit for bit what a run without reuse gives")


class Model:
    """One model, in a folder."""

    def __init__(self, seed, tmp):
        self.seed, self.tmp = seed, tmp
        self.maker = Maker(seed)
        self.model = self.path("m.onnx")
        onnx.save(self.maker.model(), self.model)
        self.todo = [self.maker.data() for _ in range(3)]

    def path(self, name):
        return os.path.join(self.tmp, name)

    def run(self, *args):
        onnxmem("run", "-q", *args, "--data", self.path("in.npz"), "--save", self.path("out.npz"), "--threads", "1")
        return arrays(self.path("out.npz"))

    def plans(self):
        """Plans in files: (path, target)."""
        for target in ("generic", "cpu"):
            planned = self.path(target + ".onnx")
            more = ["--io", ("caller", "arena", "keep")[self.seed % 3]] + (["--parallel-safe"] if self.seed % 5 == 0 else [])
            onnxmem("plan", "-q", self.model, planned, "--target", target, "--threads", "1", *more)
            onnxmem("verify", planned)
            yield planned, target

    def by_command(self):
        """Results of each run without reuse, which all other runs have to be."""
        wanted, plans = [], list(self.plans())
        for n, data in enumerate(self.todo):
            np.savez(self.path("in.npz"), **data)
            for planned, target in plans:
                want = self.run(planned, "--no-reuse")
                for way in ("--repeat=2", "--poison"):
                    equal(f"data {n}, {way} by the plan for {target}", self.run(planned, way), want)
                wanted.append(want)
            equal(f"data {n}, planned for the run", self.run(self.model, "--poison"), wanted[-1])
        return wanted

    def like_runtime(self, wanted):
        try:
            model = onnx.load(self.model)
            with_copies(model.graph)
            onnx.save(model, self.path("copies.onnx"))
            runtime = session(self.path("copies.onnx"))
        except Exception as e:  # of the runtime, with classes of its own
            return str(e).splitlines()[0]
        names = [o.name for o in runtime.get_outputs()]
        taken = {i.name for i in runtime.get_inputs()}
        for k, got in enumerate(wanted):
            data = {name: x for name, x in self.todo[k // 2].items() if name in taken}
            try:
                wanted_here = runtime.run(None, data)
            except Exception as e:
                if "Invalid dim0_offset of 0" in str(e):  # a Scan of no iterations
                    return str(e).splitlines()[0][-200:]
                raise
            for name, want in zip(names, wanted_here):
                compare(f"data {k // 2}, {('generic', 'cpu')[k % 2]}, {name}", got[name], want)
        return None

    def check(self):
        wanted = self.by_command()
        return apart(lambda: self.like_runtime(wanted), self.model)


def main():
    first, count = (int(a) for a in (sys.argv[1:] + ["1", "10"][len(sys.argv) - 1:]))
    failed, refused = [], []
    t = Points()
    with scratch() as tmp:
        for seed in range(first, first + count):
            try:
                why = Model(seed, tmp).check()
                if why:
                    refused.append(f"seed {seed}: {why}")
            except (Wrong, OSError, KeyError, subprocess.TimeoutExpired) as e:
                failed.append(f"seed {seed}: {e}")
    t.point(not failed, f"{count} models with lags: planned, poisoned, without reuse and in ONNX Runtime", *failed[:10])
    t.point(len(refused) <= 1 + MOST_REFUSED * count, f"of which ONNX Runtime refuses {len(refused)}", *refused[:10])
    t.end()


if __name__ == "__main__":
    main()
