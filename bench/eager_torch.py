#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The dynamic graph in Python beside PyTorch's: the same nets and training steps, call by call, on one thread.

    python bench/eager_torch.py [--turns N] [--seconds N]

Each case runs in a process of its own for each library, in turn, so that peaks of memory are its own: the resident peak of the process above what
it was when the weights were there.  Times are of the processor, the least of all turns.  The losses or outputs of both have to agree.
PYTHONPATH and ONNXMEM_LIBRARY name the package; the Python that runs it has PyTorch."""
import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

RATE = 0.01


def draw(random, *shape):
    return (random.standard_normal(shape) / np.sqrt(shape[-2] if len(shape) > 1 else 1)).astype(np.float32)


def perceptron_data(random):
    return [draw(random, 64, 256)], [draw(random, 256, 512), draw(random, 512, 512), draw(random, 512, 512), draw(random, 512, 10)]


def convnet_data(random):
    return [draw(random, 8, 3, 32, 32)], [draw(random, 32, 3, 3, 3), draw(random, 32, 32, 3, 3), draw(random, 64, 32, 3, 3), draw(random, 64, 64, 3, 3)]


def lengths_data(random):
    return [draw(random, n, 32) for n in (5, 9, 14, 9, 20, 5)], [draw(random, 32, 64) / 2, draw(random, 64, 64) / 2]


class Onnxmem:
    """The calls of a case."""

    def __init__(self):
        import onnxmem
        self.eager = onnxmem.Eager()

    def tensor(self, x, watch=False):
        return self.eager.variable(x, watch=watch)

    def loss_of(self, make, w):
        with self.eager.record():
            loss = make()
        return loss, self.eager.gradient(loss, w)

    def updated(self, w, grads):
        rate = np.float32(RATE)
        return [(one - rate * grad).watch() for one, grad in zip(w, grads)]

    def relu(self, x): return x.relu()
    def tanh(self, x): return x.tanh()
    def mean_square(self, x): return (x * x).mean()
    def conv(self, x, w): return self.eager.Conv(x, w, pads=[1, 1, 1, 1])
    def pool(self, x): return self.eager.MaxPool(x, kernel_shape=[2, 2], strides=[2, 2])
    def zeros(self, *shape): return self.eager.variable(np.zeros(shape, np.float32))
    def row(self, x, k): return self.eager.Slice(x, np.asarray([k]), np.asarray([k + 1]), np.asarray([0]))
    def number(self, x): return float(x)
    def stats(self): return self.eager.stats._asdict()


class Torch:
    """The same calls."""

    def __init__(self):
        import torch
        torch.set_num_threads(1)
        self.torch = torch

    def tensor(self, x, watch=False):
        return self.torch.from_numpy(x.copy()).requires_grad_(watch)

    def loss_of(self, make, w):
        loss = make()
        return loss, self.torch.autograd.grad(loss, w)

    def updated(self, w, grads):
        with self.torch.no_grad():
            return [(one - RATE * grad).requires_grad_(True) for one, grad in zip(w, grads)]

    def relu(self, x): return x.relu()
    def tanh(self, x): return x.tanh()
    def mean_square(self, x): return (x * x).mean()
    def conv(self, x, w): return self.torch.nn.functional.conv2d(x, w, padding=1)
    def pool(self, x): return self.torch.nn.functional.max_pool2d(x, 2)
    def zeros(self, *shape): return self.torch.zeros(shape)
    def row(self, x, k): return x[k:k + 1]
    def number(self, x): return x.item()
    def stats(self): return {}


def perceptron(lib, x, w):
    h = x[0]
    for one in w[:-1]:
        h = lib.relu(h @ one)
    return lib.mean_square(h @ w[-1])


def convnet(lib, x, w):
    h = x[0]
    for k, one in enumerate(w):
        h = lib.relu(lib.conv(h, one))
        if k % 2:
            h = lib.pool(h)
    return lib.mean_square(h)


def lengths(lib, x, w):
    """A recurrent net over sequences of varying lengths, in control flow of the host."""
    total = None
    for one in x:
        h = lib.zeros(1, 64)
        for k in range(one.shape[0]):
            h = lib.tanh(lib.row(one, k) @ w[0] + h @ w[1])
        loss = lib.mean_square(h)
        total = loss if total is None else total + loss
    return total


CASES = {"perceptron": (perceptron_data, perceptron, False), "convolutions": (convnet_data, convnet, False),
         "varying lengths": (lengths_data, lengths, False), "perceptron, training": (perceptron_data, perceptron, True),
         "convolutions, training": (convnet_data, convnet, True), "varying lengths, training": (lengths_data, lengths, True)}


def resident():
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def run_case(name, library, seconds):
    data, net, trains = CASES[name]
    lib = Torch() if library == "torch" else Onnxmem()
    given, weights = data(np.random.default_rng(1))
    x, w = [lib.tensor(one) for one in given], [lib.tensor(one, trains) for one in weights]
    before, most, least, n, losses = resident(), 0, float("inf"), 0, []
    end = time.monotonic() + seconds
    while n < 20 or time.monotonic() < end:
        start = time.process_time()
        if trains:
            loss, grads = lib.loss_of(lambda: net(lib, x, w), w)
            w = lib.updated(w, grads)
            loss = lib.number(loss)
        else:
            loss = lib.number(net(lib, x, w))
        n += 1
        if n > 10:
            least = min(least, time.process_time() - start)
        if n <= 5:
            losses.append(loss)
        most = max(most, resident())
    return {"ms": least * 1e3, "peak": max(0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before), "losses": losses, "stats": lib.stats()}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--turns", type=int, default=3)
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--case", nargs=2, metavar=("CASE", "LIBRARY"), help="run one, and print what was measured as JSON")
    o = p.parse_args()
    if o.case:
        print(json.dumps(run_case(*o.case, o.seconds)))
        return
    print("| case | onnxmem, ms | PyTorch, ms | ratio | onnxmem, peak | pool and arenas | PyTorch, peak |\n|---|---|---|---|---|---|---|")
    for name in CASES:
        found = {"onnxmem": [], "torch": []}
        for _ in range(o.turns):
            for library, all_of in found.items():
                done = subprocess.run([sys.executable, __file__, "--seconds", str(o.seconds), "--case", name, library], check=True, capture_output=True, text=True)
                all_of.append(json.loads(done.stdout))
        a, b = found["onnxmem"][0]["losses"], found["torch"][0]["losses"]
        if not np.allclose(a, b, rtol=1e-3):
            sys.exit(f"{name}: the losses differ: {a} and {b}")
        ours, theirs = (min(one["ms"] for one in found[library]) for library in ("onnxmem", "torch"))
        stats = found["onnxmem"][0]["stats"]
        print("| %s | %.3f | %.3f | %.2f | %d KiB | %d KiB | %d KiB |" % (
            name, ours, theirs, theirs / ours, min(one["peak"] for one in found["onnxmem"]) >> 10,
            (stats["pool_bytes"] + stats["arena_bytes"]) >> 10, min(one["peak"] for one in found["torch"]) >> 10), flush=True)


main()
