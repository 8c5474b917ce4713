# SPDX-License-Identifier: Apache-2.0
# needs: python
# Dims that follow from one with a range: "a + 1" and "2*a + 3" from a.
"$PYTHON" - <<'PY'
import onnx
from onnx import TensorProto, helper

inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [d, 8]) for n, d in (("x", "a"), ("y", "a + 1"), ("z", "2*a + 3"))]
outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in "pqr"]
nodes = [helper.make_node(k, [x], [y]) for k, x, y in (("Relu", "x", "p"), ("Exp", "y", "q"), ("Neg", "z", "r"))]
graph = helper.make_graph(nodes, "derived", inputs, outputs)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "derived.onnx")
PY
om plan derived.onnx planned.onnx --dim-range a=1..9 --io arena
om verify planned.onnx
for a in 1 5 9; do
	om run derived.onnx --dim a=$a --fill deterministic --save own.npz | tail -1
	om run planned.onnx --dim a=$a --fill deterministic --expect own.npz --rtol 0 --atol 0 | tail -2
done
om run planned.onnx --fill deterministic --dim a=5 --dim 'a + 1=6' | tail -1
om run planned.onnx --fill deterministic --dim a=5 --dim 'a + 1=7'
om run planned.onnx --fill deterministic --input-shape x:5,8 --input-shape y:7,8
om run planned.onnx --fill deterministic --dim a=10
om report derived.onnx --dim-range a=1..9 --io arena | sed -n '/memory by/,/^$/p'
# A dim with a range of its own does not follow; its name is one factor.
om report derived.onnx --dim-range a=1..9 --dim-range 'a + 1=1..4' --io arena --json - | grep '"total"'
