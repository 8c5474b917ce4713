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
# Dims that have names of their own follow from others where --dim says so, in the plan, too.
"$PYTHON" - <<'PY'
import onnx
from onnx import TensorProto, helper

given = {"q": [1, "S", 4], "past.key": [1, "P0", 4], "past.value": [1, "P1", 4], "new": [1, "S", 4], "mask": ["S", "T"]}
made = {"y": [1, "S", 4], "present.key": [1, "P0 + S", 4], "present.value": [1, "P1 + S", 4]}
inputs, outputs = ([helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in all.items()] for all in (given, made))
nodes = [helper.make_node("Concat", ["past.key", "new"], ["present.key"], axis=1), helper.make_node("Concat", ["past.value", "q"], ["present.value"], axis=1),
    helper.make_node("Transpose", ["present.key"], ["kt"], perm=[0, 2, 1]), helper.make_node("MatMul", ["q", "kt"], ["s"]),
    helper.make_node("Add", ["s", "mask"], ["m"]), helper.make_node("Softmax", ["m"], ["w"]), helper.make_node("MatMul", ["w", "present.value"], ["y"])]
graph = helper.make_graph(nodes, "named", inputs, outputs)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "named.onnx")
PY
om report named.onnx --dim P1=P0 --dim "T=P1 + S" --dim P0=7 --dim S=2 | grep inputs:
om report named.onnx --dim P1=P0 --dim T=P1+S | sed -n '1,/arena/p'
om plan named.onnx follows.onnx --dim P1=P0 --dim T=P1+S --dim-range P0=0..7 --dim-range S=1..3 --sidecar plan.json | tail -n 1
om verify follows.onnx | tail -3
sed -n "s/.*\(\"definitions\":{[^}]*}\).*/\1/p" plan.json
for sizes in "0 1" "7 3" "4 2"; do
	past=${sizes% *} new=${sizes#* }
	om run named.onnx --dim P0=$past --dim P1=$past --dim S=$new --dim T=$((past + new)) --fill deterministic --save own.npz -q >/dev/null
	om run follows.onnx --dim P0=$past --dim S=$new --fill deterministic --poison --expect own.npz | tail -2
done
om run follows.onnx --dim P0=8 --dim S=1 --fill deterministic
om run follows.onnx --dim P0=3 --input-shape past.value:1,4,4 --dim S=1 --fill deterministic
om report named.onnx --dim P1=P0 --dim T=P1+other
om report named.onnx --dim P1=P1+1
om report named.onnx --dim other=P0
om report named.onnx --dim T=max
om report named.onnx --dim "T=(P0 + S"
sed 's/"P1":"P0"/"P1":"P2"/' plan.json >other.json
om verify named.onnx --sidecar other.json
sed 's/"P1":"P0"/"P1":"2*P0"/' plan.json >other.json
om verify named.onnx --sidecar other.json
