"""Writes a small TensorFlow Lite model, without any package: the few tables that tell lifetimes and offsets.

    tflite.py FILE [offset,offset,...]

Its graph is x -> a -> b -> y with a variable v, a weight w, and a tensor that nothing uses; with offsets, an entry
OfflineMemoryAllocation of the metadata."""
import struct
import sys


class Buffer:
    def __init__(self):
        self.data = bytearray(struct.pack("<I4s", 0, b"TFL3"))
        self.later = []     # (place of a distance, what it leads to)

    def align(self):
        self.data += bytes(-len(self.data) % 4)

    def table(self, fields):
        """`fields` by number: an integer with its format, or a function that writes a thing and returns its place."""
        self.align()
        at, size = {}, 4
        for k, field in fields.items():
            at[k] = size
            size += 4 if callable(field) else max(4, struct.calcsize("<" + field[0]))
        vtable = len(self.data)
        count = max(fields, default=-1) + 1
        self.data += struct.pack(f"<HH{count}H", 4 + 2 * count, size, *(at.get(k, 0) for k in range(count)))
        self.align()
        place = len(self.data)
        self.data += struct.pack("<i", place - vtable) + bytes(size - 4)
        for k, field in fields.items():
            if callable(field):
                self.later.append((place + at[k], field))
            else:
                struct.pack_into("<" + field[0], self.data, place + at[k], field[1])
        return place

    def vector(self, count, data):
        self.align()
        place = len(self.data)
        self.data += struct.pack("<I", count) + data
        return place

    def tables(self, all):
        place = self.vector(len(all), bytes(4 * len(all)))
        self.later += [(place + 4 + 4 * k, write) for k, write in enumerate(all)]
        return place

    def finish(self, root):
        self.later.append((0, root))
        while self.later:
            at, write = self.later.pop(0)
            struct.pack_into("<I", self.data, at, write() - at)
        return bytes(self.data)


def model(offsets):
    b = Buffer()
    ints = lambda *v: lambda: b.vector(len(v), struct.pack(f"<{len(v)}i", *v))
    text = lambda s: lambda: b.vector(len(s), s.encode() + b"\0")
    data = lambda d: lambda: b.vector(len(d), d)
    table = lambda fields: lambda: b.table(fields)
    tables = lambda *all: lambda: b.tables(all)
    tensor = lambda name, shape, buffer=0, type=0, variable=0: table({
        0: ints(*shape), 1: ("B", type), 2: ("I", buffer), 3: text(name), 5: ("B", variable)})
    op = lambda inputs, outputs: table({0: ("I", 0), 1: ints(*inputs), 2: ints(*outputs)})
    graph = table({
        0: tables(tensor("x", [1, 16]), tensor("w", [16, 16], buffer=1), tensor("a", [1, 16]), tensor("b", [1, 16]),
                  tensor("y", [1, 4], type=9), tensor("v", [8], variable=1), tensor("unused", [1000])),
        1: ints(0), 2: ints(4), 3: tables(op([0, 1, -1], [2]), op([2, 5], [3]), op([3], [4]))})
    buffers = [table({}), table({0: data(bytes(1024))})]
    entries = [table({0: text("min_runtime_version"), 1: ("I", 0)})]
    if offsets:
        words = [1, 0, len(offsets), *offsets]
        buffers.append(table({0: data(struct.pack(f"<{len(words)}i", *words))}))
        entries.append(table({0: text("OfflineMemoryAllocation"), 1: ("I", 2)}))
    return b.finish(table({0: ("I", 3), 2: tables(graph), 4: tables(*buffers), 6: tables(*entries)}))


with open(sys.argv[1], "wb") as f:
    f.write(model([int(word) for word in sys.argv[2].split(",")] if len(sys.argv) > 2 else []))
