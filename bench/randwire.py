#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A randomly wired network as a plain ONNX model, for measurements of wide graphs.

    python bench/randwire.py OUT [--nodes N] [--channels N] [--size N] [--seed N]

After "Exploring Randomly Wired Neural Networks for Image Recognition" (Xie, Kirillov, Girshick, He, 2019): three stages, each of which is a
random graph of Watts and Strogatz (4 neighbours, rewired with a probability of 0.75) whose edges lead from lower to higher numbers.  A node
adds up its inputs with positive weights, and has ReLU, a separable convolution of 3 by 3, and a bias.  Nodes without inputs read the stage
before, with stride 2; the mean of those without readers is the output.  Weights are random, and the same for a seed everywhere."""
import argparse
import random

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

NEIGHBOURS, REWIRED, CLASSES, LAST = 4, 0.75, 1000, 1280


def edges_of(n, rng):
    """Pairs (from, to), from < to."""
    edges = {tuple(sorted((v, (v + i) % n))) for i in range(1, NEIGHBOURS // 2 + 1) for v in range(n)}
    for i in range(1, NEIGHBOURS // 2 + 1):
        for v in range(n):
            old = tuple(sorted((v, (v + i) % n)))
            free = [w for w in range(n) if w != v and tuple(sorted((v, w))) not in edges]
            if old in edges and free and rng.random() < REWIRED:
                edges.remove(old)
                edges.add(tuple(sorted((v, rng.choice(free)))))
    return sorted(edges)


class Net:
    def __init__(self, seed):
        self.nodes, self.weights = [], []
        self.rng, self.numbers = random.Random(seed), np.random.RandomState(seed)

    def constant(self, array):
        name = "w%d" % len(self.weights)
        self.weights.append(numpy_helper.from_array(np.asarray(array, np.float32), name))
        return name

    def add(self, kind, inputs, **attributes):
        name = "v%d" % len(self.nodes)
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def conv(self, x, channels_in, channels_out, kernel, stride=1, group=1):
        each = channels_in // group
        w = self.numbers.randn(channels_out, each, kernel, kernel) * (2 / (each * kernel * kernel)) ** 0.5
        return self.add("Conv", [x, self.constant(w), self.constant(self.numbers.randn(channels_out) * 0.1)], kernel_shape=[kernel] * 2,
                        strides=[stride] * 2, pads=[kernel // 2] * 4, group=group)

    def total(self, values):
        parts = [self.add("Mul", [v, self.constant(1 / (1 + np.exp(-self.numbers.randn())))]) for v in values] if len(values) > 1 else values
        x = parts[0]
        for part in parts[1:]:
            x = self.add("Add", [x, part])
        return x

    def stage(self, x, channels_in, channels, n):
        edges, values = edges_of(n, self.rng), []
        for k in range(n):
            inputs = [values[a] for a, b in edges if b == k]
            c, stride = (channels, 1) if inputs else (channels_in, 2)
            y = self.add("Relu", [self.total(inputs or [x])])
            values.append(self.conv(self.conv(y, c, c, 3, stride, c), c, channels, 1))
        ends = [v for k, v in enumerate(values) if all(a != k for a, _ in edges)]
        return self.add("Mean", ends) if len(ends) > 1 else ends[0]


def model(o):
    net = Net(o.seed)
    x = net.add("Relu", [net.conv("x", 3, o.channels // 2, 3, 2)])
    x, channels = net.conv(x, o.channels // 2, o.channels, 3, 2), o.channels
    for wider in (1, 2, 4):
        x, channels = net.stage(x, channels, o.channels * wider, o.nodes), o.channels * wider
    x = net.add("GlobalAveragePool", [net.add("Relu", [net.conv(net.add("Relu", [x]), channels, LAST, 1)])])
    w = net.constant(net.numbers.randn(CLASSES, LAST) * LAST ** -0.5)
    net.nodes.append(helper.make_node("Gemm", [net.add("Flatten", [x]), w], ["y"], transB=1))
    graph = helper.make_graph(net.nodes, "randwire", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, o.size, o.size])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, CLASSES])], net.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--nodes", type=int, default=32)
    p.add_argument("--channels", type=int, default=78)
    p.add_argument("--size", type=int, default=224)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("out")
    o = p.parse_args()
    onnx.save(model(o), o.out)


if __name__ == "__main__":
    main()
