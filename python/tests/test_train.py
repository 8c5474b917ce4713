# SPDX-License-Identifier: Apache-2.0
"""Gradients and training steps are those of the command, and train a model in place."""
from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import onnx
import pytest

import onnxmem


@pytest.mark.parametrize("options,words", [
    ({"loss_fn": "cross-entropy"}, ["--loss-fn", "cross-entropy"]),
    ({"loss_fn": "mse", "wrt": ["w1"], "keep_outputs": True}, ["--loss-fn", "mse", "--wrt", "w1", "--keep-outputs"]),
    ({"loss_fn": "cross-entropy", "optimizer": "adam", "rate": 0.01, "clip_norm": 1.5, "decay": 0.1, "fused": True, "fused_updates": True, "train_mode": True},
     ["--loss-fn", "cross-entropy", "--optimizer", "adam", "--lr", 0.01, "--clip-norm", 1.5, "--weight-decay", 0.1, "--fused-gradients", "--fused-updates",
      "--train-mode"]),
])
def test_steps_are_those_of_the_command(options: Any, words: list[object], models: pathlib.Path, command: Any, tmp_path: pathlib.Path) -> None:
    command("grad", models / "digits.onnx", tmp_path / "command.onnx", *words)
    onnxmem.grad(models / "digits.onnx", tmp_path / "python.onnx", **options)
    expected = (tmp_path / "command.onnx").read_bytes()
    assert (tmp_path / "python.onnx").read_bytes() == expected
    assert onnxmem.grad(models / "digits.onnx", **options) == expected
    assert isinstance(onnxmem.grad(onnx.load(models / "digits.onnx"), **options), onnx.ModelProto)


def test_a_session_trains_in_place(models: pathlib.Path) -> None:
    step = onnxmem.grad(models / "digits.onnx", loss_fn="cross-entropy", optimizer="sgd", rate=0.1)
    session = onnxmem.Session(step, in_place=True)
    graph = onnx.load_model_from_string(step).graph
    weights = {one.name: onnx.numpy_helper.to_array(one).copy() for one in graph.initializer}
    random = np.random.default_rng(0)
    given = {one.name: random.integers(0, 10, [1]).astype(one.dtype) if one.name == "label" else
             random.standard_normal([int(dim or 1) for dim in one.shape or ()]).astype(one.dtype)
             for one in session.inputs if not one.has_default}
    states = {one.name: weights[one.name] for one in session.inputs if one.has_default and one.name != "lr"}
    losses = []
    for _ in range(20):
        found = session.run({**given, **states})
        losses.append(float(next(array for name, array in found.items() if name == "loss")))
    assert any(array is state for array in found.values() for state in states.values())
    assert losses[-1] < 0.5 * losses[0]


def test_failures(models: pathlib.Path) -> None:
    with pytest.raises(onnxmem.UsageError, match="a loss is required"):
        onnxmem.grad(models / "digits.onnx")
    with pytest.raises(onnxmem.UsageError, match="nothing"):
        onnxmem.grad(models / "digits.onnx", loss_fn="nothing")
    with pytest.raises(TypeError, match="no option 'target'"):
        onnxmem.grad(models / "digits.onnx", loss_fn="mse", target="cpu")   # type: ignore[call-overload]
