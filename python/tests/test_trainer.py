# SPDX-License-Identifier: Apache-2.0
"""Training from Python is that of the command, bit for bit."""
from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import onnx
import pytest

import onnxmem

SAMPLES, BATCH, EPOCHS = 10, 4, 3


def perceptron() -> onnx.ModelProto:
    """A model for batches of any size."""
    random = np.random.default_rng(1)
    weights = [onnx.numpy_helper.from_array(random.standard_normal(shape).astype(np.float32), f"w{k}") for k, shape in enumerate([(6, 8), (8, 10)])]
    nodes = [onnx.helper.make_node("MatMul", ["x", "w0"], ["a"]), onnx.helper.make_node("Tanh", ["a"], ["b"]),
             onnx.helper.make_node("MatMul", ["b", "w1"], ["y"])]
    graph = onnx.helper.make_graph(nodes, "perceptron", [onnx.helper.make_tensor_value_info("x", 1, ["batch", 6])],
                                   [onnx.helper.make_tensor_value_info("y", 1, ["batch", 10])], weights)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


def samples_of(trainer: onnxmem.Trainer, n: int) -> dict[str, Any]:
    random = np.random.default_rng(0)

    def draw(one: onnxmem.TensorInfo) -> Any:
        dims = [int(dim or 1) for dim in (one.shape or ())[1:]]
        return (random.integers(0, 10, [n]) if one.name == "label" else random.standard_normal([n, *dims])).astype(one.dtype)
    return {one.name: draw(one) for one in trainer.inputs}


@pytest.mark.parametrize("batch,how", [(1, "sgd"), (1, "adam"), (BATCH, "sgd"), (BATCH, "adamw")])
def test_states_are_those_of_the_command(batch: int, how: str, models: pathlib.Path, command: Any, tmp_path: pathlib.Path) -> None:
    model = onnx.load(models / "digits.onnx") if batch == 1 else perceptron()
    onnx.save(onnxmem.grad(model, loss_fn="cross-entropy", optimizer=how, rate=0.01), tmp_path / "step.onnx")
    trainer = onnxmem.Trainer(tmp_path / "step.onnx", threads=1)
    data = samples_of(trainer, SAMPLES)
    np.savez(tmp_path / "data.npz", **data)
    command("train", tmp_path / "step.onnx", "--data", tmp_path / "data.npz", "--epochs", EPOCHS, "--no-shuffle", "--batch", batch,
            "--checkpoint", tmp_path / "end.npz", "--threads", 1)
    losses = [trainer.step({name: every[k:k + batch] for name, every in data.items()})
              for _ in range(EPOCHS) for k in range(0, SAMPLES, batch)]
    expected, found = np.load(tmp_path / "end.npz"), trainer.state()
    assert found and trainer.steps == len(losses)
    for name, state in found.items():
        assert (expected[name] == state).all(), name
    assert sum(losses[-3:]) < sum(losses[:3])


@pytest.mark.parametrize("schedule", ["cosine:6:0.1", "linear:5", "step:2:0.5"])
def test_rates_are_those_of_the_command(schedule: str, command: Any, tmp_path: pathlib.Path) -> None:
    onnx.save(onnxmem.grad(perceptron(), loss_fn="cross-entropy", optimizer="sgd"), tmp_path / "step.onnx")
    trainer = onnxmem.Trainer(tmp_path / "step.onnx", threads=1, rate=0.3, schedule=schedule, warmup=3)
    constant = onnxmem.Trainer(tmp_path / "step.onnx", threads=1, rate=0.3)
    data = samples_of(trainer, SAMPLES)
    np.savez(tmp_path / "data.npz", **data)
    command("train", tmp_path / "step.onnx", "--data", tmp_path / "data.npz", "--epochs", EPOCHS, "--no-shuffle", "--batch", BATCH, "--lr", 0.3,
            "--lr-schedule", schedule, "--warmup", 3, "--checkpoint", tmp_path / "end.npz", "--threads", 1)
    for _ in range(EPOCHS):
        for k in range(0, SAMPLES, BATCH):
            batch = {name: every[k:k + BATCH] for name, every in data.items()}
            trainer.step(batch)
            constant.step(batch)
    expected, found, other = np.load(tmp_path / "end.npz"), trainer.state(), constant.state()
    for name, state in found.items():
        assert (expected[name] == state).all(), name
        assert (other[name] != state).any(), name


def test_wrong_schedules_are_refused(models: pathlib.Path) -> None:
    step = onnxmem.grad(models / "digits.onnx", loss_fn="cross-entropy", optimizer="sgd")
    with pytest.raises(onnxmem.UsageError, match="a schedule is constant, step:STEPS:FACTOR"):
        onnxmem.Trainer(step, schedule="sine:3")
    with pytest.raises(onnxmem.UsageError, match="warmup is a number of steps, not -1"):
        onnxmem.Trainer(step, warmup=-1)


def test_states_are_loaded(models: pathlib.Path) -> None:
    step = onnxmem.grad(models / "digits.onnx", loss_fn="cross-entropy", optimizer="momentum", rate=0.05)
    one, other = onnxmem.Trainer(step), onnxmem.Trainer(step, rate=0.5)
    assert one.rate == pytest.approx(0.05) and other.rate == 0.5
    data = samples_of(one, 1)
    assert one.step(data) == other.step(data)      # before the states differ
    assert one.step(data) != other.step(data)
    other.load(one.state())
    other.rate = 0.05
    assert one.step(data) == other.step(data)
    assert one.report().arena_bytes > 0
    assert all((a == b).all() for a, b in zip(one.state().values(), other.state().values()))


def test_failures(models: pathlib.Path) -> None:
    with pytest.raises(onnxmem.UsageError):
        onnxmem.Trainer(models / "digits.onnx")
    trainer = onnxmem.Trainer(onnxmem.grad(models / "digits.onnx", loss_fn="cross-entropy", optimizer="sgd"))
    with pytest.raises(onnxmem.UsageError, match="takes no input other"):
        trainer.step({"other": np.zeros(1)})
    with pytest.raises(onnxmem.RunError, match="has no value"):
        trainer.step({})
    trainer.step(samples_of(trainer, 1))
    with pytest.raises(onnxmem.UsageError, match="no state other"):
        trainer.load({"other": np.zeros(1)})
    with pytest.raises(onnxmem.ShapeError):
        trainer.load({next(iter(trainer.state())): np.zeros(1, np.float32)})
