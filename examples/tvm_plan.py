#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The memory plan that TVM makes for an ONNX model (StaticPlanBlockMemory of Relax), as a table: a producer for
`onnxmem pack --check`.

    tvm_plan.py MODEL.onnx FILE.csv

Needs onnx and tvm (PyPI: apache-tvm).  TVM shares storages, each allocated by itself; the table has them one behind the other,
so its height is what they take together.  Each line is a tensor: in use in the steps [lower, upper), which are the calls of
the main function, at an offset in its storage.

    tvm_plan.py model.onnx plan.csv && onnxmem pack plan.csv --check --svg plan.svg"""
import csv
import sys

import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

PASSES = [relax.transform.LegalizeOps(), relax.transform.FoldConstant(), relax.transform.ToNonDataflow(),
          relax.transform.RemovePurityChecking(), relax.transform.CallTIRRewrite(), relax.transform.StaticPlanBlockMemory()]


def op_name(value):
    return getattr(getattr(value, "op", None), "name", "") if isinstance(value, relax.Call) else ""


def bytes_of(shape, dtype):
    count = 1
    for dim in shape:
        count *= int(dim)
    return (count * int(tvm.DataType(str(dtype)).bits) + 7) // 8


class Plan:
    def __init__(self):
        self.storage, self.end = {}, 0      # offset by variable; bytes of all storages
        self.tensor = {}                    # [name, offset, bytes, first, last] by variable
        self.alias = {}                     # variables that are other names
        self.step = 0

    def use(self, var):
        key = hash(var)
        while key in self.alias:
            key = self.alias[key]
        if key in self.tensor:
            row = self.tensor[key]
            row[3] = self.step if row[3] is None else row[3]
            row[4] = self.step

    def bind(self, var, value):
        op, key = op_name(value), hash(var)
        if op == "relax.memory.alloc_storage":
            self.storage[key] = self.end
            self.end += bytes_of(value.args[0].values, "uint8")
        elif op == "relax.memory.alloc_tensor":
            storage, offset, shape, dtype = value.args[:4]
            at = self.storage[hash(storage)] + int(offset.value)
            self.tensor[key] = [var.name, at, bytes_of(shape.values, dtype.value), None, None]
        elif isinstance(value, relax.Var):
            self.alias[key] = hash(value)
        elif isinstance(value, relax.Call):
            for arg in value.args:
                for var in arg.fields if isinstance(arg, relax.Tuple) else [arg]:
                    if isinstance(var, relax.Var):
                        self.use(var)
            self.step += 1


def main():
    mod = tvm.ir.transform.Sequential(PASSES)(from_onnx(onnx.load(sys.argv[1]), keep_params_in_input=False))
    plan = Plan()
    for block in mod["main"].body.blocks:
        for binding in block.bindings:
            plan.bind(binding.var, binding.value)
    with open(sys.argv[2], "w", newline="", encoding="utf-8") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(["id", "lower", "upper", "size", "offset", "name"])
        for k, (name, offset, size, first, last) in enumerate(plan.tensor.values()):
            if first is not None:
                out.writerow([k, first, last + 1, size, offset, name])


main()
