# SPDX-License-Identifier: Apache-2.0
"""Tiled models are those of the command."""
from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Any

import numpy as np
import onnx
import pytest

import onnxmem


def chain(width: int = 64) -> onnx.ModelProto:
    """Convolutions whose values are large beside their inputs and outputs."""
    random = np.random.default_rng(3)
    channels = [2, 16, 16, 2]
    nodes, weights = [], []
    for k in range(3):
        weights.append(onnx.numpy_helper.from_array(random.standard_normal((channels[k + 1], channels[k], 3, 3)).astype(np.float32), f"w{k}"))
        nodes.append(onnx.helper.make_node("Conv", ["x" if k == 0 else f"v{k}", f"w{k}"], ["y" if k == 2 else f"v{k + 1}"], pads=[1, 1, 1, 1]))
    shape = [1, 2, width, width]
    graph = onnx.helper.make_graph(nodes, "chain", [onnx.helper.make_tensor_value_info("x", 1, shape)],
                                   [onnx.helper.make_tensor_value_info("y", 1, shape)], weights)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


def renamed(found: onnxmem.Tiling) -> dict[str, Any]:
    figures = dataclasses.asdict(found)
    figures["lower_bound_bytes"] = figures.pop("lower_bound")
    return figures


@pytest.mark.parametrize("options,words", [
    ({}, []),
    ({"join": "concat"}, ["--join", "concat"]),
    ({"budget": 200 * 1024}, ["--budget", "200K"]),
    ({"budget": 150 * 1024, "budget_of": "arena"}, ["--budget", "150K", "--budget-of", "arena"]),
    ({"max_ops": 40}, ["--tile-nodes", 40]),
])
def test_tiled_files_are_those_of_the_command(options: Any, words: list[object], command: Any, tmp_path: pathlib.Path) -> None:
    onnx.save(chain(), tmp_path / "m.onnx")
    expected = json.loads(command("tile", tmp_path / "m.onnx", tmp_path / "command.onnx", "--json", "-", *words))
    found = onnxmem.tile(tmp_path / "m.onnx", tmp_path / "python.onnx", **options)
    assert renamed(found).items() <= expected.items()
    data = (tmp_path / "command.onnx").read_bytes()
    assert (tmp_path / "python.onnx").read_bytes() == data == onnxmem.tile(tmp_path / "m.onnx", **options)
    assert found.regions and found.arena_bytes < found.arena_bytes_before


def test_a_tiled_model_computes_the_same() -> None:
    model = chain()
    tiled = onnxmem.tile(model)
    assert isinstance(tiled, onnx.ModelProto)
    x = np.random.default_rng(0).standard_normal((1, 2, 64, 64)).astype(np.float32)
    one, other = (onnxmem.Session(each, precise=True).run({"x": x})["y"] for each in (model, tiled))
    assert (one == other).all()


def test_failures() -> None:
    with pytest.raises(onnxmem.BudgetError):
        onnxmem.tile(chain(), budget=2000)
    with pytest.raises(onnxmem.UsageError, match="join must be any or concat"):
        onnxmem.tile(chain(), join="sum")
    with pytest.raises(TypeError, match="no option 'align'"):
        onnxmem.tile(chain(), align=16)   # type: ignore[call-overload]
