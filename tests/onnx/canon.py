# SPDX-License-Identifier: Apache-2.0
"""The digest of a graph, written a second time from docs/plan-format.md."""
import hashlib
import struct

import numpy as np
import onnx
from onnx import AttributeProto as A
from onnx import numpy_helper

INTEGERS = {2, 3, 4, 5, 6, 7, 12, 13, 21, 22, 25, 26}
BOOL, STRING = 9, 8
BITS = {1: 32, 2: 8, 3: 8, 4: 16, 5: 16, 6: 32, 7: 64, 9: 8, 10: 16, 11: 64, 12: 32, 13: 64, 14: 64, 15: 128,
        16: 16, 17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4, 24: 8, 25: 2, 26: 2, 27: 8, 28: 8}


class Canon:
    def __init__(self, full=False, base_dir=""):
        self.full = full
        self.base_dir = base_dir
        self.bytes = b""
        self.calls = []

    def token(self, b):
        if isinstance(b, int):
            b = str(b)
        if isinstance(b, str):
            b = b.encode()
        self.bytes += str(len(b)).encode() + b":" + b + b","

    def texts(self, all):
        self.token(len(all))
        for s in all:
            self.token(s)

    def shape(self, t):
        if not t.HasField("shape"):
            return self.token("?")
        self.token(len(t.shape.dim))
        for d in t.shape.dim:
            if d.HasField("dim_value"):
                self.token("value")
                self.token(d.dim_value)
            elif d.dim_param:
                self.token("param")
                self.token(d.dim_param)
            else:
                self.token("open")

    def type(self, t):
        which = t.WhichOneof("value")
        if which in ("tensor_type", "sparse_tensor_type"):
            inner = getattr(t, which)
            self.token("tensor" if which == "tensor_type" else "sparse")
            self.token(inner.elem_type)
            self.shape(inner)
        elif which in ("sequence_type", "optional_type"):
            self.token(which[:-5])
            self.type(getattr(t, which).elem_type)
        elif which == "map_type":
            self.token("map")
            self.token(t.map_type.key_type)
            self.type(t.map_type.value_type)
        else:
            self.token("none")

    def infos(self, all):
        self.token(len(all))
        for i in all:
            self.token(i.name)
            self.type(i.type)

    def tensor(self, t):
        self.token(t.data_type)
        self.token(len(t.dims))
        for d in t.dims:
            self.token(d)
        count = int(np.prod(t.dims, dtype=object)) if t.dims else 1
        size = (count * BITS[t.data_type] + 7) // 8 if t.data_type != STRING else sum(map(len, t.string_data))
        whole = t.data_type in INTEGERS or t.data_type == BOOL
        if not (self.full or size <= 1024 or (whole and size <= 65536)):
            return self.token("weights")
        self.token("elements")
        if t.data_type == STRING:
            return self.texts(t.string_data)
        if t.raw_data and BITS[t.data_type] >= 8:
            return self.token(t.raw_data)
        array = numpy_helper.to_array(t, self.base_dir)
        self.token(array.tobytes())

    def sparse(self, t):
        self.token(len(t.dims))
        for d in t.dims:
            self.token(d)
        self.tensor(t.values)
        self.tensor(t.indices)

    def value(self, a):
        one = {A.FLOAT: lambda: self.token(struct.pack("<f", a.f)), A.INT: lambda: self.token(a.i),
               A.STRING: lambda: self.token(a.s), A.TENSOR: lambda: self.tensor(a.t),
               A.GRAPH: lambda: self.graph(a.g), A.SPARSE_TENSOR: lambda: self.sparse(a.sparse_tensor),
               A.TYPE_PROTO: lambda: self.type(a.tp)}
        many = {A.FLOATS: (a.floats, lambda f: self.token(struct.pack("<f", f))), A.INTS: (a.ints, self.token),
                A.STRINGS: (a.strings, self.token), A.TENSORS: (a.tensors, self.tensor),
                A.GRAPHS: (a.graphs, self.graph), A.SPARSE_TENSORS: (a.sparse_tensors, self.sparse),
                A.TYPE_PROTOS: (a.type_protos, self.type)}
        if a.type in one:
            return one[a.type]()
        all, each = many[a.type]
        self.token(len(all))
        for x in all:
            each(x)

    def attributes(self, all):
        self.token(len(all))
        for a in sorted(all, key=lambda a: a.name.encode()):
            self.token(a.name)
            self.token(a.type)
            if a.ref_attr_name:
                self.token("ref")
                self.token(a.ref_attr_name)
            else:
                self.token("value")
                self.value(a)

    def nodes(self, all):
        self.token(len(all))
        for n in all:
            self.calls.append((domain(n.domain), n.op_type, n.overload))
            self.token(domain(n.domain))
            self.token(n.op_type)
            self.token(n.overload)
            self.texts(n.input)
            self.texts(n.output)
            self.attributes(n.attribute)

    def graph(self, g):
        self.token("graph")
        self.infos(g.input)
        self.token(len(g.initializer))
        for w in sorted(g.initializer, key=lambda w: w.name.encode()):
            self.token(w.name)
            self.tensor(w)
        self.nodes(g.node)
        self.infos(g.output)
        self.token(len(g.sparse_initializer))
        for w in sorted(g.sparse_initializer, key=lambda w: w.values.name.encode()):
            self.token(w.values.name)
            self.sparse(w)

    def opsets(self, all):
        self.token(len(all))
        for o in sorted(all, key=lambda o: domain(o.domain).encode()):
            self.token(domain(o.domain))
            self.token(o.version)

    def function(self, f):
        self.token("function")
        self.token(domain(f.domain))
        self.token(f.name)
        self.token(f.overload)
        self.opsets(f.opset_import)
        self.texts(f.input)
        self.texts(f.output)
        self.texts(f.attribute)
        self.attributes(f.attribute_proto)
        self.nodes(f.node)

    def model(self, m):
        self.token("canon1+weights" if self.full else "canon1")
        self.opsets(m.opset_import)
        self.graph(m.graph)
        known = {(domain(f.domain), f.name, f.overload): f for f in m.functions}
        used, todo = {}, list(self.calls)
        while todo:
            key = todo.pop()
            if key in known and key not in used:
                used[key] = known[key]
                inner = Canon(self.full, self.base_dir)
                inner.nodes(known[key].node)
                todo += inner.calls
        self.token(len(used))
        for key in sorted(used, key=lambda k: "\n".join(k).encode()):
            self.function(used[key])


def domain(s):
    return "" if s == "ai.onnx" else s


def canon(m, full=False, base_dir=""):
    c = Canon(full, base_dir)
    c.model(m)
    return c.bytes


def digest(m, full=False, base_dir=""):
    return "canon1:sha256:" + hashlib.sha256(canon(m, full, base_dir)).hexdigest()
