# SPDX-License-Identifier: Apache-2.0
"""Writes small .tflite files, byte by byte: a FlatBuffer of the schema's version 3, with what a reader of tensors needs.

    write.py MODEL.onnx OUT.tflite [PREFIX]

The file has the tensors and nodes of the model, weights and all, in an order of its own: weights first, then outputs of nodes from
the last to the first, then inputs; without PREFIX, by their names."""
import struct
import sys

import onnx

TYPES = {1: 0, 2: 3, 3: 9, 6: 2, 7: 4, 9: 6, 10: 1, 11: 10}
U8, U32 = "B", "I"


class File:
    def __init__(self):
        self.bytes = bytearray(8)
        self.bytes[4:8] = b"TFL3"
        self.later = []

    def align(self):
        while len(self.bytes) % 4:
            self.bytes.append(0)

    def refer(self, at, what):
        """The reference at `at` leads to what the function writes, later."""
        self.later.append((at, what))

    def table(self, fields):
        """Fields by number: (format, number), or a function that writes what is referred to."""
        self.align()
        n = max(fields, default=-1) + 1
        vtable = len(self.bytes)
        self.bytes += struct.pack("<HH", 4 + 2 * n, 4 + 4 * len(fields)) + bytes(2 * n)
        self.align()
        table = len(self.bytes)
        self.bytes += struct.pack("<i", table - vtable)
        for k, value in sorted(fields.items()):
            at = len(self.bytes)
            struct.pack_into("<H", self.bytes, vtable + 4 + 2 * k, at - table)
            self.bytes += bytes(4)
            if callable(value):
                self.refer(at, value)
            else:
                struct.pack_into("<" + value[0], self.bytes, at, value[1])
        return table

    def vector(self, items, format=None):
        """Of numbers, or of functions that write what is referred to."""
        self.align()
        start = len(self.bytes)
        self.bytes += struct.pack("<I", len(items))
        for item in items:
            at = len(self.bytes)
            if format:
                self.bytes += struct.pack("<" + format, item)
            else:
                self.bytes += bytes(4)
                self.refer(at, item)
        return start

    def string(self, text):
        start = self.vector(text.encode(), "B")
        self.bytes.append(0)
        return start

    def finish(self, root):
        self.refer(0, root)
        while self.later:
            at, what = self.later.pop(0)
            struct.pack_into("<I", self.bytes, at, what() - at)
        return bytes(self.bytes)


def write(tensors, ops, inputs, outputs, graphs=1, variables=(), offsets=None):
    """Tensors: (name, type, shape, has elements); ops: (inputs, outputs), numbers of tensors.  `offsets`: those of the
    metadata OfflineMemoryAllocation, which are not there without them."""
    f = File()

    def tensor(name, kind, shape, buffer):
        fields = {0: lambda: f.vector(shape, "i"), 1: (U8, kind), 2: (U32, buffer), 3: lambda: f.string(name)}
        return lambda: f.table({**fields, 5: (U8, 1)} if name in variables else fields)

    def op(ins, outs):
        return lambda: f.table({0: (U32, 0), 1: lambda: f.vector(ins, "i"), 2: lambda: f.vector(outs, "i")})

    def graph():
        return f.table({0: lambda: f.vector([tensor(t[0], t[1], t[2], k + 1) for k, t in enumerate(tensors)]),
                        1: lambda: f.vector(inputs, "i"), 2: lambda: f.vector(outputs, "i"),
                        3: lambda: f.vector([op(*o) for o in ops])})

    def buffer(full):
        return lambda: f.table({0: lambda: f.vector(bytes(4), "B")} if full else {})

    def words():
        return f.table({0: lambda: f.vector(struct.pack(f"<{3 + len(offsets)}i", 1, 0, len(offsets), *offsets), "B")})

    def metadata(name, buffer):
        return lambda: f.table({0: lambda: f.string(name), 1: (U32, buffer)})

    def model():
        fields = {0: (U32, 3), 1: lambda: f.vector([lambda: f.table({})]), 2: lambda: f.vector([graph] * graphs),
                  4: lambda: f.vector([buffer(False)] + [buffer(t[3]) for t in tensors] + [words] * (offsets is not None))}
        if offsets is not None:
            fields[6] = lambda: f.vector([metadata("min_runtime_version", 0), metadata("OfflineMemoryAllocation", len(tensors) + 1)])
        return f.table(fields)
    return f.finish(model)


def of_model(path, prefix="", order=None):
    graph = onnx.shape_inference.infer_shapes(onnx.load(path)).graph
    info = {v.name: v.type.tensor_type for v in list(graph.input) + list(graph.value_info) + list(graph.output)}
    weights = {t.name: t for t in graph.initializer}
    made = [name for node in graph.node for name in node.output if name]
    names = list(weights) + made[::-1] + [v.name for v in graph.input if v.name not in weights]
    number = {name: k for k, name in enumerate(names)}

    def tensor(name):
        if name in weights:
            return (name, TYPES[weights[name].data_type], list(weights[name].dims), True)
        return (prefix + name, TYPES[info[name].elem_type], [d.dim_value for d in info[name].shape.dim], False)
    nodes = order(list(graph.node)) if order else graph.node
    ops = [([number[i] if i else -1 for i in node.input], [number[o] for o in node.output if o]) for node in nodes]
    return write([tensor(name) for name in names], ops, [number[v.name] for v in graph.input if v.name not in weights],
                 [number[v.name] for v in graph.output]), names


if __name__ == "__main__":
    with open(sys.argv[2], "wb") as out:
        out.write(of_model(sys.argv[1], *sys.argv[3:])[0])
