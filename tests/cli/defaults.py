# SPDX-License-Identifier: Apache-2.0
"""defaults.onnx: y = MatMul(x, w + w) + b, where the weights are inputs with defaults."""
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

INPUTS = {"x": (4, 8), "w": (8, 16), "b": (16,)}
nodes = [h.make_node("Add", ["w", "w"], ["d"]), h.make_node("MatMul", ["x", "d"], ["m"]), h.make_node("Add", ["m", "b"], ["y"])]
weights = [nh.from_array(np.arange(np.prod(INPUTS[n]), dtype=np.float32).reshape(INPUTS[n]) / 64, n) for n in ("w", "b")]
graph = h.make_graph(nodes, "defaults", [h.make_tensor_value_info(n, T.FLOAT, s) for n, s in INPUTS.items()],
                     [h.make_tensor_value_info("y", T.FLOAT, (4, 16))], weights)
onnx.save(h.make_model(graph, ir_version=8, opset_imports=[h.make_opsetid("", 17)]), "defaults.onnx")
