#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Large networks for bench/tile.py, with random weights: made here, since none are published with such inputs.

    python bench/tile_large.py FOLDER [NAME...]

Writes FOLDER/NAME.onnx: srgan (the generator of Ledig et al. 2017: 16 residual blocks, two pixel shuffles) for images of 540 by 960, unet_1024, and
bert_4096 (two layers of BERT-base for 4,096 tokens).  The Python needs onnx and numpy."""
import math
import os
import sys


class Net:
    def __init__(self, shape):
        import numpy
        self.rng, self.nodes, self.weights, self.shape = numpy.random.default_rng(3), [], [], shape

    def weight(self, *dims, fan=None):
        from onnx import numpy_helper
        a = self.rng.standard_normal(dims, dtype="float32") / math.sqrt(fan or math.prod(dims[1:]) or 1)
        self.weights.append(numpy_helper.from_array(a.astype("float32"), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def const(self, dims, value):
        import numpy
        from onnx import numpy_helper
        self.weights.append(numpy_helper.from_array(numpy.full(dims, value, "float32"), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def add(self, kind, *inputs, **attributes):
        from onnx import helper
        out = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [out], name=f"{kind}_{len(self.nodes)}", **attributes))
        return out

    def conv(self, x, of, to, side):
        return self.add("Conv", x, self.weight(to, of, side, side), self.const([to], 0.01), pads=[side // 2] * 4)

    def save(self, path, out):
        import onnx
        from onnx import TensorProto, helper
        ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", self.shape), (out, None))]
        graph = helper.make_graph(self.nodes, "net", ends[:1], ends[1:], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(onnx.shape_inference.infer_shapes(model), path)


def srgan():
    net = Net([1, 3, 540, 960])

    def prelu(x, n):
        return net.add("PRelu", x, net.const([n, 1, 1], 0.25))

    first = x = prelu(net.conv("x", 3, 64, 9), 64)
    for _ in range(16):
        inner = net.conv(prelu(net.conv(x, 64, 64, 3), 64), 64, 64, 3)
        x = net.add("Add", inner, x)
    x = net.add("Add", net.conv(x, 64, 64, 3), first)
    for _ in range(2):
        x = prelu(net.add("DepthToSpace", net.conv(x, 64, 256, 3), blocksize=2, mode="CRD"), 64)
    return net, net.add("Tanh", net.conv(x, 64, 3, 9))


def unet_1024():
    net, skips, x, of = Net([1, 3, 1024, 1024]), [], "x", 3

    def two(x, of, to):
        for k in (of, to):
            x = net.add("Relu", net.conv(x, k, to, 3))
        return x

    for to in (32, 64, 128, 256):
        x, of = two(x, of, to), to
        skips.append((x, to))
        x = net.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x, of = two(x, of, 512), 512
    for skip, to in reversed(skips):
        x = net.add("ConvTranspose", x, net.weight(of, to, 2, 2, fan=of * 4), strides=[2, 2])
        x, of = two(net.add("Concat", x, skip, axis=1), 2 * to, to), to
    return net, net.conv(x, of, 2, 1)


def bert_4096(tokens=4096, wide=768, heads=12):
    from onnx import numpy_helper
    import numpy
    net = Net([1, tokens, wide])
    net.weights += [numpy_helper.from_array(numpy.array(a, "int64"), n) for n, a in (("split", [1, tokens, heads, wide // heads]), ("join", [1, tokens, wide]))]

    def linear(x, of, to):
        return net.add("Add", net.add("MatMul", x, net.weight(of, to, fan=of)), net.const([to], 0.01))

    def norm(x):
        return net.add("LayerNormalization", x, net.const([wide], 1), net.const([wide], 0), axis=-1)

    def by_head(x, perm):
        return net.add("Transpose", net.add("Reshape", linear(x, wide, wide), "split"), perm=perm)

    x = "x"
    for _ in range(2):
        q, k, v = by_head(x, [0, 2, 1, 3]), by_head(x, [0, 2, 3, 1]), by_head(x, [0, 2, 1, 3])
        scores = net.add("Div", net.add("MatMul", q, k), net.const([], math.sqrt(wide / heads)))
        y = net.add("Transpose", net.add("MatMul", net.add("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        x = norm(net.add("Add", linear(net.add("Reshape", y, "join"), wide, wide), x))
        h = linear(x, wide, 4 * wide)
        h = net.add("Mul", net.add("Mul", h, net.const([], 0.5)), net.add("Add", net.add("Erf", net.add("Div", h, net.const([], math.sqrt(2)))), net.const([], 1)))
        x = norm(net.add("Add", linear(h, 4 * wide, wide), x))
    return net, x


def main():
    made = {"srgan": srgan, "unet_1024": unet_1024, "bert_4096": bert_4096}
    for name in sys.argv[2:] or made:
        net, out = made[name]()
        net.save(os.path.join(sys.argv[1], name + ".onnx"), out)


if __name__ == "__main__":
    main()
