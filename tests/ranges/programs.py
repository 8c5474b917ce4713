# SPDX-License-Identifier: Apache-2.0
"""Random models with symbols N and S, and some with T, in which each size of a range runs by one plan.

    programs.py ONNXMEM FIRST COUNT [steps]

In every seventh, dims of another input follow from them: "N + 1", "2*S".  Three of seven have convolutions and pools with strides over N rows and S columns, so that sizes are
divided and rounded; one of these joins the pixels of several of its values, as the heads of a detector.  One of seven is possible at multiples of 4 only, and is planned for ranges with
steps.
Each is planned for N=1..5, S=1..4, T=1..3, with strides for N=9..14, S=8..12, alternately for the targets generic and cpu.  Every size runs by the plan of the
file, also with poisoned memory, in no more than its arena, and equals ONNX Runtime, and a plan that was made for that
size alone.  What it takes is what the formulas of the report say.  The size above the range is refused.  Every fifth model
is planned for N=1..60, S=1..50, with strides for N=9..90, S=8..70, too, where formulas are proven without looking at each size, and some sizes are
compared.  With `steps`, each symbol has a random range LO..HI:STEP, models also have Scans over rows and columns whose values lag, and the runs by the plan of the file equal those without reuse bit for bit.
Prints TAP."""
import itertools
import json
import math
import os
import random
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ONNXMEM, FIRST, COUNT, STEPS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:] == ["steps"]
CHANNELS = 4
RANGES = {"N": (1, 5, 1), "S": (1, 4, 1), "T": (1, 3, 1)}
LARGE = {"N": (1, 60, 1), "S": (1, 50, 1), "T": (1, 3, 1)}
STRIDED_RANGES = {"N": (9, 14, 1), "S": (8, 12, 1), "T": (1, 1, 1)}
STRIDED_LARGE = {"N": (9, 90, 1), "S": (8, 70, 1), "T": (1, 1, 1)}


class Maker:
    """Values of shape [N, S, CHANNELS]; ops that keep it, and some that leave it and come back."""

    ranges, large = RANGES, LARGE
    has_scans = False

    def shape(self, n, s):
        return (n, s, CHANNELS)

    def shapes(self, n, s):
        """Of the inputs x and y."""
        return self.shape(n, s), self.shape(n, s)

    def __init__(self, seed):
        self.has_third = seed % 3 == 0
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.nodes, self.constants, self.values = [], [], ["x", "y"]
        self.count = 0

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def constant(self, a):
        name = "c" + self.name()
        self.constants.append(numpy_helper.from_array(a, name))
        return name

    def weights(self, *shape):
        return self.constant(self.numbers.standard_normal(shape).astype(np.float32) / 2)

    def op(self, kind, *inputs, n=1, **attributes):
        outputs = [self.name() for _ in range(n)]
        self.nodes.append(helper.make_node(kind, inputs, outputs, **attributes))
        return outputs[0] if n == 1 else outputs

    def pick(self):
        return self.rng.choice(self.values[-4:])

    def pointwise(self, v):
        return self.op(self.rng.choice(["Relu", "Tanh", "Sigmoid", "Neg", "Abs"]), v)

    def binary(self, v):
        return self.op(self.rng.choice(["Add", "Mul", "Sub"]), v, self.rng.choice([self.pick(), self.weights(1, 1, CHANNELS)]))

    def product(self, v):
        return self.op("MatMul", v, self.weights(CHANNELS, CHANNELS))

    def there_and_back(self, v):
        """Through another shape: a view, or a transposition."""
        kind = self.rng.randrange(3)
        if kind == 0:
            flat = self.op("Reshape", v, self.constant(np.array([0, -1], np.int64)))
            return self.op("Reshape", self.op("Relu", flat), self.constant(np.array([0, -1, CHANNELS], np.int64)))
        if kind == 1:
            return self.op("Transpose", self.op("Tanh", self.op("Transpose", v, perm=[0, 2, 1])), perm=[0, 2, 1])
        return self.op("Squeeze", self.op("Unsqueeze", v, self.constant(np.array([0], np.int64))),
                       self.constant(np.array([0], np.int64)))

    def join(self, v):
        """Concatenate and take parts: offsets that depend on sizes."""
        axis = self.rng.randrange(3)
        both = self.op("Concat", v, self.pick(), axis=axis)
        if axis == 2:
            return self.op("MatMul", both, self.weights(2 * CHANNELS, CHANNELS))
        low, high = self.op("Split", both, axis=axis, n=2, num_outputs=2)
        return self.op("Add", low, high)

    def reduced(self, v):
        axes = self.constant(np.array([self.rng.randrange(3)], np.int64))
        return self.op("Sub", v, self.op(self.rng.choice(["ReduceMax", "ReduceMean"]), v, axes))

    def softmax(self, v):
        return self.op("Softmax", v, axis=self.rng.choice([-1, 1]))

    def third(self, v):
        """Values of shape [T, CHANNELS], whose sum is added."""
        if not self.has_third:
            return self.pointwise(v)
        w = "w"
        for _ in range(self.rng.randrange(1, 4)):
            w = self.op(self.rng.choice(["Relu", "Exp", "Neg"]), w)
        return self.op("Add", v, self.op("ReduceSum", w, self.constant(np.array([0], np.int64)), keepdims=0))

    def by_shape(self, v):
        """Shape arithmetic that is folded."""
        return self.op("Expand", self.op("ReduceSum", v, self.constant(np.array([1], np.int64))), self.op("Shape", v))

    def lagging(self, lag, more):
        """Nodes, parameters and results of a body: what was computed `lag` iterations before is added to `more`, or to itself."""
        past, (a, b, new) = [f"past{self.name()}" for _ in range(lag)], [self.name() for _ in range(3)]
        nodes = [helper.make_node(self.rng.choice(["Add", "Sub", "Max"]), [past[-1], more or past[0]], [a]),
                 helper.make_node("Tanh", [a], [new]), helper.make_node("Identity", [new], [b]),
                 *(helper.make_node("Identity", [x], ["next" + x]) for x in past[:-1])]
        return nodes, past, [b, *("next" + x for x in past[:-1])], new

    def slices(self, names):
        return [helper.make_tensor_value_info(x, TensorProto.FLOAT, [None, CHANNELS]) for x in names]

    def scan(self, v):
        """Over rows or columns: what was computed one, two, ... slices before is added, and each new slice is stacked.  Or
        as many iterations of a Loop."""
        axis, lag, way = self.rng.randrange(2), self.rng.choice([1, 2, 3, 5]), self.rng.randrange(2)
        at = self.constant(np.array([axis], np.int64))
        start = self.op("ReduceMean", v, at, keepdims=0)
        if self.rng.randrange(3):
            x = self.name()
            nodes, past, states, new = self.lagging(lag, x)
            body = helper.make_graph(nodes, "body" + x, self.slices([*past, x]), self.slices([*states, new]))
            *last, out = self.op("Scan", *[start] * lag, v, n=lag + 1, num_scan_inputs=1, body=body, scan_input_axes=[axis],
                                 scan_output_axes=[axis], scan_input_directions=[way], scan_output_directions=[way])
        else:
            i, go, on, out = self.name(), self.name(), self.name(), v
            nodes, past, states, _ = self.lagging(lag, None)
            body = helper.make_graph(
                [*nodes, helper.make_node("Identity", [go], [on])], "body" + i,
                [helper.make_tensor_value_info(i, TensorProto.INT64, []), helper.make_tensor_value_info(go, TensorProto.BOOL, []),
                 *self.slices(past)], [helper.make_tensor_value_info(on, TensorProto.BOOL, []), *self.slices(states)])
            count = self.op("Gather", self.op("Shape", v), self.constant(np.array(axis, np.int64)))
            last = self.op("Loop", count, self.constant(np.array(True)), *[start] * lag, n=lag, body=body)
            last = [last] if lag == 1 else last
        return self.op("Add", out, self.op("Unsqueeze", self.rng.choice(last), at)) if self.rng.randrange(2) else out

    def steps(self):
        """Ranges with steps from now on; for the large one, most are unlike those of the small one."""
        def one(low, most):
            step = self.rng.choice([2, 3, 4, 5, 7])
            low += self.rng.randrange(6)
            return low, low + step * self.rng.randrange(1, most), step
        lows = {k: low for k, (low, _, _) in self.ranges.items()}
        self.ranges = {k: one(lows[k], 4) for k in "NS"} | {"T": one(1, 3)}
        self.large = {k: one(lows[k], 20) for k in "NS"} | {"T": one(1, 3)}
        self.has_scans = True

    def model(self):
        makers = [self.pointwise, self.binary, self.product, self.there_and_back, self.join, self.reduced, self.softmax,
                  self.by_shape, self.third] + [self.scan] * 2 * self.has_scans
        for _ in range(self.rng.randrange(3, 14)):
            self.values.append(self.rng.choice(makers)(self.pick()))
        return self.finish()

    def inputs(self):
        return [(name, TensorProto.FLOAT, shape) for name, shape in zip("xy", self.shapes("N", "S"))]

    def finish(self):
        inputs = [helper.make_tensor_value_info(*x) for x in self.inputs()]
        if self.has_third:
            inputs.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, ["T", CHANNELS]))
        outputs = [helper.make_tensor_value_info(v, TensorProto.FLOAT, None)
                   for v in dict.fromkeys([self.values[-1], self.rng.choice(self.values[2:])])]
        graph = helper.make_graph(self.nodes, "g", inputs, outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


class Derived(Maker):
    """The input y has dims that follow from those of x; a part of it has the shape of x."""

    def shapes(self, n, s):
        return (n, s, CHANNELS), ("N + 1", "2*S", CHANNELS) if n == "N" else (n + 1, 2 * s, CHANNELS)

    def model(self):
        low, high = self.op("Split", "y", axis=1, n=2, num_outputs=2)
        rows = [self.constant(np.array([k], np.int64)) for k in (1, 2**31 - 1, 0)]
        self.values = ["x", self.op("Slice", self.op("Add", low, high), *rows)]
        return super().model()


class Strided(Maker):
    """Values of shape [1, CHANNELS, rows, columns] by the strides that lead to them; ops that divide rows and columns."""

    ranges, large = STRIDED_RANGES, STRIDED_LARGE

    def __init__(self, seed):
        super().__init__(seed)
        self.has_third = False
        self.way = {"x": (), "y": ()}  # by value: equal ways lead to equal shapes

    def shape(self, n, s):
        return (1, CHANNELS, n, s)

    def same(self, v):
        """A value of the shape of `v`."""
        return self.rng.choice([u for u in self.values if self.way[u] == self.way[v]])

    def window(self, v):
        """Rows and columns may have other strides; after two windows there are few left."""
        strides = [self.rng.choice([1, 2, 2, 3]) for _ in range(2)]
        size = self.rng.choice([1, 2, 3])
        low, high = self.rng.randrange(size), self.rng.randrange(size)
        kind = self.rng.choice(["Conv", "MaxPool", "AveragePool"])
        more = {} if kind == "Conv" else {"ceil_mode": self.rng.randrange(2)}
        if len(self.way[v]) == 2:
            strides, size, low, high = [1, 1], 3, 1, 1
        weights = [self.weights(CHANNELS, CHANNELS, size, size)] if kind == "Conv" else []
        out = self.op(kind, v, *weights, kernel_shape=[size, size], strides=strides, pads=[low, low, high, high], **more)
        is_same = strides == [1, 1] and low + high == size - 1
        self.way[out] = self.way[v] + (() if is_same else ((*strides, size, low, high, more.get("ceil_mode", 0)),))
        return out

    def extend(self):
        v = self.pick()
        kind = self.rng.randrange(4)
        out = self.window(v) if kind < 2 else self.pointwise(v) if kind == 2 else self.op("Add", v, self.same(v))
        self.way.setdefault(out, self.way[v])
        self.values.append(out)

    def model(self):
        for _ in range(self.rng.randrange(3, 12)):
            self.extend()
        return self.finish()


class Multiples(Maker):
    """Rows and columns are halved, doubled, and added to what they were made of, which is not possible for odd ones."""

    ranges, large = {"N": (8, 24, 4), "S": (4, 12, 4), "T": (1, 1, 1)}, {"N": (12, 240, 4), "S": (8, 400, 4), "T": (1, 1, 1)}

    def __init__(self, seed):
        super().__init__(seed)
        self.has_third = False
        self.level = {"x": 0, "y": 0}

    def shape(self, n, s):
        return (1, CHANNELS, n, s)

    def steps(self):
        def one(most):
            low, step = self.rng.choice([4, 8, 12, 20]), self.rng.choice([4, 8, 12, 20])
            return low, low + step * self.rng.randrange(1, most), step
        self.ranges = {"N": one(4), "S": one(4), "T": (1, 1, 1)}
        self.large = {"N": one(20), "S": one(20), "T": (1, 1, 1)}

    def down(self, v):
        if self.rng.randrange(2):
            return self.op("Conv", v, self.weights(CHANNELS, CHANNELS, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1])
        return self.op("MaxPool", v, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)

    def up(self, v):
        return self.op("Resize", v, "", self.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest")

    def step_from(self, v):
        at, kind = self.level[v], self.rng.randrange(4)
        if kind == 0 and at < 2:
            return self.down(v), at + 1
        if kind == 1 and at:
            return self.up(v), at - 1
        if kind == 2:
            return self.op("Add", v, self.rng.choice([u for u in self.values if self.level[u] == at])), at
        return self.pointwise(v), at

    def model(self):
        for _ in range(self.rng.randrange(4, 14)):
            out, at = self.step_from(self.pick())
            self.values.append(out)
            self.level[out] = at
        low = self.down(self.down("x"))
        self.values.append(self.op("Sub", self.up(self.up(low)), "x"))
        return self.finish()


class Joined(Strided):
    """The rows and columns of several values become pixels, which are joined: sizes are sums of quotients."""

    def join(self):
        shape = self.constant(np.array([0, 0, -1], np.int64))
        heads = [self.op("Reshape", v, shape) for v in self.rng.sample(self.values[2:], self.rng.choice([2, 3]))]
        return self.op("Concat", *heads, axis=2)

    def model(self):
        for _ in range(self.rng.randrange(4, 10)):
            self.extend()
        self.values = ["x", "y", self.join()]
        for _ in range(self.rng.randrange(1, 6)):
            v = self.rng.choice(self.values[2:])
            kind = self.rng.randrange(3)
            self.values.append(self.pointwise(v) if kind == 0 else self.op("Softmax", v, axis=1) if kind == 1
                               else self.op("Sub", v, self.rng.choice(self.values[2:])))
        return self.finish()


def run(*args):
    r = subprocess.run([ONNXMEM, *args], capture_output=True, text=True, check=False)
    return r.returncode, r.stdout + r.stderr


def formulas(folder, args):
    """A function from sizes to the exact bytes of the arena, or bounds of it; None where the report has no formula."""
    status, text = run("report", os.path.join(folder, "m.onnx"), *args, "--json", "-")
    if status:
        return None, text
    found = json.loads(text)["formulas"]

    def value(text, sizes):
        return eval(text, {"up": lambda n, to: -(-n // to) * to, "floor": math.floor, **sizes})  # of our own making

    def bounds(**sizes):
        for piece in found["pieces"]:
            if all(low <= sizes[k] <= high for k, (low, high, *_) in piece["ranges"].items()):
                low, high = piece.get("arenas_at_least"), piece.get("arenas_at_most")
                return [value((x or piece.get("arenas"))[0], sizes) for x in (low, high)]
        return None
    return bounds, found["why_none"] or found["why_unproven"]


def options(maker, ranges):
    return [x for k, (low, high, step) in ranges.items() if k != "T" or maker.has_third
            for x in ("--dim-range", f"{k}={low}..{high}" + (f":{step}" if step > 1 else ""))]


def sizes_of(low, high, step):
    return range(low, high + 1, step)


class Check:
    """One model, in a folder."""

    def __init__(self, seed, folder):
        self.seed, self.folder = seed, folder
        self.maker = {1: Derived, 3: Strided, 4: Multiples, 5: Strided, 6: Joined}.get(seed % 7, Maker)(seed)
        if STEPS:
            self.maker.steps()
        self.planning = ["--target", ["generic", "cpu"][seed % 2], "--io", ["caller", "arena"][seed // 2 % 2]]
        onnx.save(self.maker.model(), self.path("m.onnx"))
        self.session = onnxruntime.InferenceSession(self.path("m.onnx"))
        self.numbers = np.random.default_rng(seed)

    def path(self, name):
        return os.path.join(self.folder, name)

    def save_inputs(self, n, s, t):
        x = {k: self.numbers.standard_normal(shape).astype(np.float32) for k, shape in zip("xy", self.maker.shapes(n, s))}
        if self.maker.has_third:
            x["w"] = self.numbers.standard_normal((t, CHANNELS)).astype(np.float32)
        np.savez(self.path("in.npz"), **x)
        return x

    def save_outputs(self, x):
        names = [o.name for o in self.session.get_outputs()]
        np.savez(self.path("out.npz"), **dict(zip(names, self.session.run(names, x))))

    def largest(self):
        """Of the elements that ONNX Runtime computes on the way: what cancels has the rounding of those."""
        model = onnx.load(self.path("m.onnx"))
        known = {o.name for o in model.graph.output}
        model.graph.output.extend(onnx.ValueInfoProto(name=k) for n in model.graph.node for k in n.output if k and k not in known)
        with np.load(self.path("in.npz")) as x:
            values = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {i.name: x[i.name] for i in model.graph.input})
        return max(float(np.abs(v).max()) for v in values if v.dtype.kind == "f" and v.size)

    def compare(self, args, atol):
        return run("run", *args, "--data", self.path("in.npz"), "--expect", self.path("out.npz"), "--rtol", "1e-3",
                   "--atol", str(atol), "--threads", "1", "--save", self.path("got.npz"))

    def run(self, *args):
        status, text = self.compare(args, 1e-5)
        return self.compare(args, 1e-6 * self.largest()) if status and "elements differ" in text else (status, text)

    def saved(self):
        with np.load(self.path("got.npz")) as f:
            return {k: f[k].tobytes() for k in f.files}

    def at(self, sizes, ways, arena, bounds, is_top):
        """One size, by the plan of the file, and in other ways."""
        self.save_outputs(self.save_inputs(*sizes))
        wanted = None
        for args in ways:
            status, text = self.run(*args)
            if status:
                return f"{' '.join(args)}: {text}"
            if args[0] != self.path("p.onnx"):
                continue
            got = self.saved()
            wanted = wanted or got
            if got != wanted:
                return f"{' '.join(args)}: not bit for bit what {' '.join(ways[0])} gives"
            if "--no-reuse" in args:
                continue
            taken = int(text.split("arena ")[1].split()[0])
            if taken > arena or (taken < arena and is_top):
                return f"takes {taken} bytes of an arena of {arena}: {text}"
            at = bounds(**dict(zip("NST", sizes)))
            if at and not at[0] <= taken <= at[1]:
                return f"takes {taken} bytes, by the formula {at}"
        return None

    def ranges(self, ranges, all_sizes, ways):
        args = options(self.maker, ranges) + self.planning
        status, text = run("plan", self.path("m.onnx"), self.path("p.onnx"), *args)
        if status or "does not hold" in text:
            return f"plan: {text}"
        arena = int(text.split("arena ")[1].split()[0])
        bounds, why = formulas(self.folder, args)
        if not bounds:
            return f"report: {why}"
        if why:
            print(f"# seed {self.seed}: no formula that is proven: {why}")
        top = tuple(sizes_of(*r)[-1] for r in ranges.values())
        for sizes in all_sizes:
            is_top = sizes == top or (sizes[:2] == top[:2] and not self.maker.has_third)
            error = self.at(sizes, ways, arena, bounds, is_top)
            if error:
                return f"N, S, T = {sizes}: {error}"
        return None

    def small(self):
        planned, own = self.path("p.onnx"), self.path("m.onnx")
        ranges = self.maker.ranges
        each = [sizes_of(*r) for r in ranges.values()]
        if not self.maker.has_third:
            each[2] = range(1, 2)
        ways = ([planned], [planned, "--poison"], *([[planned, "--no-reuse"]] if STEPS else []), [own, *self.planning])
        error = self.ranges(ranges, itertools.product(*each), ways)
        if error:
            return error
        return self.refused(*ranges["N"], ranges["S"][0])

    def refused(self, low, high, step, s):
        """What is above the range, and between its steps."""
        found = [(high + 1, f"N is {high + 1}, but the plan is for {low} to "),
                 (low + 1, f"N is {low + 1}, but the plan is for {low} to ")][:1 + (step > 1)]
        for n, wanted in found:
            self.save_inputs(n, s, self.maker.ranges["T"][0])
            status, text = run("run", self.path("p.onnx"), "--data", self.path("in.npz"))
            if status != 1 or wanted not in text or (step > 1) != (f" in steps of {step}" in text):
                return f"N = {n} of {low}..{high}:{step}: exit {status}, {text}"
        return None

    def large(self):
        rng = random.Random(self.seed)
        large = self.maker.large
        sizes = [tuple(rng.choice(sizes_of(*r)) for r in large.values()) for _ in range(6)]
        return self.ranges(large, sizes, ([self.path("p.onnx")],))


def check(seed, folder):
    c = Check(seed, folder)
    return c.small() or (c.large() if seed % 5 == 0 else None)


def main():
    failed = 0
    print("1..1")
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(FIRST, FIRST + COUNT):
            error = check(seed, folder)
            if error:
                failed += 1
                print(f"# seed {seed}: {error}")
    print(f"{'not ' if failed else ''}ok 1 - {COUNT} random models: each size of a range runs by one plan")


main()
