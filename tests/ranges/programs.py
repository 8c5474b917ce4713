"""Random models with two symbols, N and S, in which each size of a range runs by one plan.

    programs.py ONNXMEM FIRST COUNT

Each is planned for N=1..5, S=1..4, alternately for the targets generic and cpu.  Every size runs by the plan of the
file, also with poisoned memory, in no more than its arena, and equals ONNX Runtime, and a plan that was made for that
size alone.  The size above
the range is refused.  Prints TAP."""
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ONNXMEM, FIRST, COUNT = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
CHANNELS, N, S = 4, range(1, 6), range(1, 5)
RANGES = ["--dim-range", "N=1..5", "--dim-range", "S=1..4"]


class Maker:
    """Values of shape [N, S, CHANNELS]; ops that keep it, and some that leave it and come back."""

    def __init__(self, seed):
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

    def by_shape(self, v):
        """Shape arithmetic that is folded."""
        return self.op("Expand", self.op("ReduceSum", v, self.constant(np.array([1], np.int64))), self.op("Shape", v))

    def model(self):
        makers = [self.pointwise, self.binary, self.product, self.there_and_back, self.join, self.reduced, self.softmax,
                  self.by_shape]
        for _ in range(self.rng.randrange(3, 14)):
            self.values.append(self.rng.choice(makers)(self.pick()))
        dims = ["N", "S", CHANNELS]
        inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, dims) for n in ("x", "y")]
        outputs = [helper.make_tensor_value_info(v, TensorProto.FLOAT, None)
                   for v in dict.fromkeys([self.values[-1], self.rng.choice(self.values[2:])])]
        graph = helper.make_graph(self.nodes, "g", inputs, outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


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
        return eval(text, {"up": lambda n, to: -(-n // to) * to, **sizes})  # of our own making

    def bounds(**sizes):
        for piece in found["pieces"]:
            if all(low <= sizes[k] <= high for k, (low, high) in piece["ranges"].items()):
                low, high = piece.get("arenas_at_least"), piece.get("arenas_at_most")
                return [value((x or piece.get("arenas"))[0], sizes) for x in (low, high)]
        return None
    return bounds, found["why_none"]


def check(seed, folder):
    def path(name):
        return os.path.join(folder, name)

    model = Maker(seed).model()
    onnx.save(model, path("m.onnx"))
    target = ["generic", "cpu"][seed % 2]
    planning = ["--target", target, "--io", ["caller", "arena"][seed // 2 % 2]]
    status, text = run("plan", path("m.onnx"), path("p.onnx"), *RANGES, *planning)
    if status:
        return f"plan: {text}"
    arena = int(text.split("arena ")[1].split()[0])
    bounds, why = formulas(folder, RANGES + planning)
    if not bounds:
        return f"report: {why}"
    if why:
        print(f"# seed {seed}: no formula: {why}")
    session = onnxruntime.InferenceSession(path("m.onnx"))
    numbers = np.random.default_rng(seed)
    for n, s in itertools.product(N, S):
        x = {k: numbers.standard_normal((n, s, CHANNELS)).astype(np.float32) for k in ("x", "y")}
        np.savez(path("in.npz"), **x)
        names = [o.name for o in session.get_outputs()]
        np.savez(path("out.npz"), **dict(zip(names, session.run(names, x))))
        near = ["--data", path("in.npz"), "--expect", path("out.npz"), "--rtol", "1e-3", "--atol", "1e-5", "--threads", "1"]
        for args in ([path("p.onnx")], [path("p.onnx"), "--poison"], [path("m.onnx"), *planning]):
            status, text = run("run", *args, *near)
            if status:
                return f"N={n} S={s}, {' '.join(args)}: {text}"
            if args[0] != path("p.onnx"):
                continue
            taken = int(text.split("arena ")[1].split()[0])
            if taken > arena or (taken < arena and (n, s) == (N[-1], S[-1])):
                return f"N={n} S={s}: takes {taken} bytes of an arena of {arena}: {text}"
            at = bounds(N=n, S=s)
            if at and not at[0] <= taken <= at[1]:
                return f"N={n} S={s}: takes {taken} bytes, by the formula {at}"
    x = {k: np.zeros((6, 1, CHANNELS), np.float32) for k in ("x", "y")}
    np.savez(path("in.npz"), **x)
    status, text = run("run", path("p.onnx"), "--data", path("in.npz"))
    if status != 1 or "N is 6, but the plan is for 1 to 5" not in text:
        return f"above the range: exit {status}, {text}"
    return None


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
