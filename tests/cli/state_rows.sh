# SPDX-License-Identifier: Apache-2.0
# needs: python
# Edited plans with the next state in the memory of another input, or with another input as the state: they are refused, or, where
# they say that the input is consumed, every run is given it again.
"$PYTHON" - <<'PY'
import onnx
from onnx import TensorProto, helper

def info(name): return helper.make_tensor_value_info(name, TensorProto.FLOAT, [4])
nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Add", ["s", "b"], ["s2"]), helper.make_node("Mul", ["a", "s2"], ["c"])]
graph = helper.make_graph(nodes, "step", [info(n) for n in "xsb"], [info("c"), info("s2")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.save(model, "open.onnx")
helper.set_model_props(model, {"org.onnxmem.io_alias": '{"s2":"s"}'})
onnx.save(model, "step.onnx")
PY
om plan step.onnx --sidecar plan.json -q
om run step.onnx --fill deterministic --repeat 3 --no-reuse --save own.npz | tail -1 | cut -d ";" -f 1
om run step.onnx --sidecar plan.json --fill deterministic --repeat 3 --expect own.npz --rtol 0 --atol 0 | tail -2 | cut -d ";" -f 1
sed 's/"s2","s","io_alias"/"s2","b","io_alias"/' plan.json >moved.json
om verify step.onnx --sidecar moved.json
om run step.onnx --sidecar moved.json --fill deterministic --repeat 3
sed 's/"s2","s","io_alias"/"s2","b","consume"/' plan.json >consumed.json
om verify step.onnx --sidecar consumed.json | tail -1 | cut -d ";" -f 1
om run step.onnx --sidecar consumed.json --fill deterministic --repeat 3 --poison --expect own.npz --rtol 0 --atol 0 | tail -2 | cut -d ";" -f 1
sed 's/"io_alias"/"consume"/' plan.json >state.json
om verify step.onnx --sidecar state.json
sed 's/{"s2":"s"}/{"s2":"b"}/; s/"s2","s","io_alias"/"s2","b","io_alias"/' plan.json >other.json
om verify step.onnx --sidecar other.json
sed 's/"states":{"s2":"s"},//' plan.json >without.json
om verify step.onnx --sidecar without.json | tail -1 | cut -d ";" -f 1

# The option of the command is in the document alone.
om plan open.onnx --sidecar tied.json --tie s=s2 -q
om run open.onnx --sidecar tied.json --fill deterministic --repeat 3 --expect own.npz --rtol 0 --atol 0 | tail -2 | cut -d ";" -f 1
sed 's/"states":{"s2":"s"},//' tied.json >without.json
om verify open.onnx --sidecar without.json

# Without a state: each run is the first one.
ties=inline,shapes,fold,prune,schedule=original,liveness,views,alias-io=any,pack
om run open.onnx --fill deterministic --no-reuse --save first.npz | tail -1 | cut -d ";" -f 1
om run open.onnx --fill deterministic --passes "$ties" --repeat 3 --expect first.npz --rtol 0 --atol 0 | tail -2 | cut -d ";" -f 1
