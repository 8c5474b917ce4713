# SPDX-License-Identifier: Apache-2.0
"""Tuned models compute the same; times differ, and are not compared."""
from __future__ import annotations

import pathlib

import numpy as np
import pytest

import onnxmem


def test_a_tuned_model_computes_the_same(models: pathlib.Path, tmp_path: pathlib.Path) -> None:
    found = onnxmem.tune(models / "digits.onnx", tmp_path / "tuned.onnx", seconds=100, threads=1, cache=tmp_path / "times")
    assert found.threads == 1 and len(found.layers) == 3 and found.unmeasured == 0
    for layer in found.layers:
        assert layer.chosen in layer.choices and all(choice.ms is not None and not choice.from_cache for choice in layer.choices)
    assert found.kept or found.chosen.ms < found.cost_model.ms
    assert found.chosen.total_bytes >= found.chosen.arena_bytes + found.chosen.weight_bytes
    one, other = onnxmem.Session(models / "digits.onnx", precise=True), onnxmem.Session(tmp_path / "tuned.onnx", threads=1)
    inputs = {each.name: np.full([int(dim or 1) for dim in each.shape or ()], 0.5, each.dtype) for each in one.inputs}
    for name, y in one.run(inputs).items():
        np.testing.assert_allclose(other.run(inputs)[name], y, rtol=1e-4, atol=1e-5)
    again = onnxmem.tune(models / "digits.onnx", seconds=100, threads=1, cache=tmp_path / "times")
    assert all(choice.from_cache for layer in again.layers for choice in layer.choices)


def test_limits_and_failures(models: pathlib.Path) -> None:
    least = onnxmem.tune(models / "digits.onnx", seconds=100, threads=1, slowdown=1000)
    assert least.chosen.total_bytes <= least.cost_model.total_bytes
    with pytest.raises(onnxmem.BudgetError, match="no choices were found that take at most 1000 bytes"):
        onnxmem.tune(models / "digits.onnx", seconds=100, threads=1, budget=1000)
    with pytest.raises(onnxmem.UsageError, match="must be for target cpu"):
        onnxmem.tune(models / "digits.onnx", target="generic")
    with pytest.raises(onnxmem.UsageError, match="numbers from 0"):
        onnxmem.tune(models / "digits.onnx", seconds=-1)
