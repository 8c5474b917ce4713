# SPDX-License-Identifier: Apache-2.0
"""Nets for nets.test: a residual net of 18 layers on images, and a GPT.

nets.py make FOLDER DIGITS [large]   steps (resnet.onnx, gpt.onnx, and digits.onnx of the model DIGITS) and samples
nets.py near A B...           losses of trainings B are those of A: all 50 within 1e-6 of their size, from 1 on
nets.py kill COUNT SEED ...   runs the training `...`, kills a process of it COUNT times, resumes, compares with an undisturbed one
"""
import glob
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import numpy as np
import onnx
from onnx import helper, numpy_helper

LIMIT = 30   # seconds in which all ranks have to end after one died


class Net:
    def __init__(self, seed):
        self.rng, self.nodes, self.init = np.random.default_rng(seed), [], []

    def weight(self, name, *shape, scale=None):
        scale = scale or np.sqrt(2 / np.prod(shape[1:] if len(shape) > 2 else shape[:1]))
        self.init.append(numpy_helper.from_array((self.rng.standard_normal(shape) * scale).astype("f4"), name))
        return name

    def const(self, name, value):
        self.init.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def op(self, kind, *inputs, **attrs):
        out = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], **attrs))
        return out

    def save(self, path, x, classes):
        self.nodes[-1].output[0] = "y"
        graph = helper.make_graph(self.nodes, "net", [x], [helper.make_tensor_value_info("y", 1, ["N", classes])], self.init)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def resnet(path, width):
    net = Net(7)

    def conv(x, name, m, c, k, stride):
        return net.op("Conv", x, net.weight(name, m, c, k, k), net.weight(name + "_b", m, scale=0.01), kernel_shape=[k, k],
                      strides=[stride] * 2, pads=[k // 2] * 4)

    x, c = net.op("Relu", conv("x", "stem", width, 3, 3, 1)), width
    for stage in range(4):
        for block in range(2):
            m, stride = width << stage, 2 if stage and not block else 1
            name = f"s{stage}b{block}"
            h = net.op("Relu", conv(x, name + "_1", m, c, 3, stride))
            h = conv(h, name + "_2", m, m, 3, 1)
            skip = x if m == c and stride == 1 else conv(x, name + "_skip", m, c, 1, stride)
            scale = net.const(name + "_scale", np.float32(0.5))
            x, c = net.op("Relu", net.op("Add", net.op("Mul", h, scale), skip)), m
    x = net.op("Flatten", net.op("GlobalAveragePool", x))
    net.op("Gemm", x, net.weight("head", c, 10), net.weight("head_b", 10, scale=0.01))
    edge = 32 if width == 64 else 8
    net.save(path, helper.make_tensor_value_info("x", 1, ["N", 3, edge, edge]), 10)


def gpt(path, vocabulary, length, width, heads, layers):
    net, size = Net(11), width // heads
    split = net.const("split", np.array([0, length, heads, size], "i8"))
    join = net.const("join", np.array([0, length, width], "i8"))
    mask = net.const("mask", np.triu(np.full((length, length), -1e4, "f4"), 1))
    root = net.const("root", np.float32(size ** -0.5))

    def norm(x, name):
        net.const(name + "_g", np.ones(width, "f4"))
        net.const(name + "_b", np.zeros(width, "f4"))
        return net.op("LayerNormalization", x, name + "_g", name + "_b", axis=-1)

    def heads_of(x, name, perm):
        y = net.op("MatMul", x, net.weight(name, width, width, scale=width ** -0.5))
        return net.op("Transpose", net.op("Reshape", y, split), perm=perm)

    h = net.op("Add", net.op("Gather", net.weight("tokens", vocabulary, width, scale=0.1), "x"),
               net.weight("places", length, width, scale=0.1))
    for k in range(layers):
        n = norm(h, f"l{k}_n1")
        q, v = (heads_of(n, f"l{k}_{w}", [0, 2, 1, 3]) for w in "qv")
        a = net.op("MatMul", net.op("Mul", q, root), heads_of(n, f"l{k}_k", [0, 2, 3, 1]))
        a = net.op("MatMul", net.op("Softmax", net.op("Add", a, mask), axis=-1), v)
        a = net.op("Reshape", net.op("Transpose", a, perm=[0, 2, 1, 3]), join)
        h = net.op("Add", h, net.op("MatMul", a, net.weight(f"l{k}_o", width, width, scale=width ** -0.5)))
        m = net.op("Relu", net.op("MatMul", norm(h, f"l{k}_n2"), net.weight(f"l{k}_up", width, 4 * width)))
        h = net.op("Add", h, net.op("MatMul", m, net.weight(f"l{k}_down", 4 * width, width, scale=0.5 * width ** -0.5)))
    last = net.op("Gather", norm(h, "last"), net.const("end", np.int64(length - 1)), axis=1)
    net.op("MatMul", last, net.weight("head", width, vocabulary, scale=width ** -0.5))
    net.save(path, helper.make_tensor_value_info("x", onnx.TensorProto.INT64, ["N", length]), vocabulary)


def open_batch(path, out):
    """Any number of pictures, and what the last Softmax gets."""
    model = onnx.load(path)
    graph = model.graph
    last = graph.node.pop()
    assert last.op_type == "Softmax"
    graph.node[-1].output[0] = graph.output[0].name
    for value in graph.input[0], graph.output[0]:
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    del graph.value_info[:]
    onnx.save(model, out)


def make(folder, digits, large=""):
    digits = os.path.abspath(digits)
    os.chdir(folder)
    rng, many = np.random.default_rng(13), 16
    resnet("resnet-net.onnx", 64 if large else 4)
    sizes = (512, 64, 256, 8, 4) if large else (50, 8, 32, 4, 2)
    gpt("gpt-net.onnx", *sizes)
    edge = 32 if large else 8
    np.savez("resnet.npz", x=rng.standard_normal((many, 3, edge, edge)).astype("f4"), label=rng.integers(0, 10, many))
    np.savez("gpt.npz", x=rng.integers(0, sizes[0], (many, sizes[1])), label=rng.integers(0, sizes[0], many))
    open_batch(digits, "digits-net.onnx")
    np.savez("digits.npz", picture=rng.random((many, 1, 8, 8)).astype("f4"), label=rng.integers(0, 10, many))
    for name, optimizer in ("resnet", "momentum"), ("gpt", "adam"), ("digits", "adam"):
        subprocess.run([os.environ["ONNXMEM"], "grad", f"{name}-net.onnx", f"{name}.onnx", "--loss-fn", "cross-entropy", "--optimizer",
                        optimizer, "-q"], check=True)


def losses(log):
    return [line["loss"] for line in map(json.loads, open(f"{log}.jsonl")) if "step" in line]


def near(a, *others):
    one, equal = losses(a), True
    for b in others:
        two = losses(b)
        worst = max(abs(x - y) / max(abs(x), 1) for x, y in zip(one, two))
        print(f"{b}: {len(two)} losses, from {two[0]} to {two[-1]}, differ by {worst} of them")
        equal &= len(one) == len(two) == 50 and worst <= 1e-6
    return equal and one[-1] < one[0]


def children(pid):
    try:
        return [int(c) for c in open(f"/proc/{pid}/task/{pid}/children").read().split()]
    except FileNotFoundError:
        return []


def program(pid):
    try:
        return open(f"/proc/{pid}/cmdline", "rb").read().split(b"\0")[0]
    except FileNotFoundError:
        return b""


def ranks_of(pid):
    """The processes that train: the command itself and those that it forks, or what a shell and mpirun start."""
    below, all_ = [pid], []
    while below:
        all_ += below
        below = [c for p in below for c in children(p)]
    return [p for p in all_ if program(p).endswith(b"onnxmem")]


def first_checkpoint(child, path):
    """The time at which the ranks have trained for some steps; None if the command ended before anybody looked."""
    while not os.path.exists(path):
        if child.poll() is not None:
            return None
        time.sleep(0.001)
    return time.monotonic()


def equal_files(a, b):
    one, two = np.load(a), np.load(b)
    return one.files == two.files and all(one[k].tobytes() == two[k].tobytes() for k in one.files)


def kill(count, seed, *command):
    """Kills only count while ranks train: on a fast machine a moment drawn in seconds may be after the end of the command, so moments are
    drawn as parts of the time that an undisturbed run takes after its first checkpoint, and what came too late is tried again."""
    chance, count, env = random.Random(int(seed)), int(count), dict(os.environ, LC_ALL="C")
    run = [*command, "--ordered", "--every", "7", "--resume", "--checkpoint"]
    for left in glob.glob("whole.npz") + glob.glob("dead.npz"):
        os.remove(left)   # a training that is over would go on with it
    whole = subprocess.Popen([*run, "whole.npz"], env=env, stdout=subprocess.DEVNULL)
    start = first_checkpoint(whole, "whole.npz")
    assert whole.wait() == 0
    lasts = time.monotonic() - start if start else 0
    longest = hit = equal = 0
    for _ in range(20 * count):
        if hit == count:
            break
        if os.path.exists("dead.npz"):
            os.remove("dead.npz")
        child = subprocess.Popen([*run, "dead.npz"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if first_checkpoint(child, "dead.npz"):
            time.sleep(chance.uniform(0, 0.7) * lasts)
        try:
            os.kill(chance.choice(ranks_of(child.pid)), signal.SIGKILL)
        except (IndexError, ProcessLookupError):
            child.communicate(timeout=LIMIT)
            continue
        start = time.monotonic()
        said = child.communicate(timeout=LIMIT)[1]
        assert re.search(b"rank [0-9]+ of [0-9]+ has (died|left)|exited on signal 9", said) or child.returncode == -signal.SIGKILL, said
        longest, hit = max(longest, time.monotonic() - start), hit + 1
        subprocess.run([*run, "dead.npz"], check=True, env=env, stdout=subprocess.DEVNULL)
        equal += equal_files("whole.npz", "dead.npz")
    print(hit, "kills, ends within", round(longest, 2), "s, the same in the end:", equal)
    return equal == hit == count


sys.exit({"make": make, "near": near, "kill": kill}[sys.argv[1]](*sys.argv[2:]) is False)
