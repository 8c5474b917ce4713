# SPDX-License-Identifier: Apache-2.0
"""Sessions on the simulated device: captured runs, and tensors that are there already."""
from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from conftest import ROOT, filled

import onnxmem
from onnxmem import _dlpack

DIGITS = ROOT / "models" / "digits.onnx"


class There:
    """A NumPy array that stands for memory of the simulated device."""

    def __init__(self, array: Any, kind: int = _dlpack.DEVICES["sim"]) -> None:
        self.array, self.kind = array, kind

    def __dlpack__(self, **unused: object) -> Any:
        return _dlpack.offer(self.array, str(self.array.dtype), self.kind)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 0


def on_sim(**options: Any) -> onnxmem.Session:
    return onnxmem.Session(DIGITS, device="sim:seed=3", place="all", **options)


def test_runs_are_captured_once() -> None:
    session, plain, host = on_sim(), on_sim(capture=False), onnxmem.Session(DIGITS, precise=True)
    for seed in range(3):
        inputs = filled(session, seed)
        out, want = session.run(inputs), plain.run(inputs)
        assert np.array_equal(out["digit"], want["digit"])
        assert np.allclose(out["digit"], host.run(inputs)["digit"], rtol=1e-5)
    assert session.stats.replays == 3 and session.stats.captured_commands > 5
    assert plain.stats.replays == 0 and session.stats.transferred_bytes == plain.stats.transferred_bytes > 0


def test_tensors_on_the_device_are_used_there() -> None:
    session, want = on_sim(), on_sim()
    inputs = filled(session, 1)
    picture, digit = There(inputs["picture"].copy()), There(np.zeros((1, 10), np.float32))
    out = session.run({"picture": picture}, {"digit": digit})
    assert out["digit"] is digit and session.stats.transferred_bytes == 0
    assert np.array_equal(digit.array, want.run(inputs)["digit"])
    # Other memory, and that of the processor.
    again = session.run({"picture": There(inputs["picture"].copy())})
    assert np.array_equal(again["digit"], digit.array) and np.array_equal(session.run(inputs)["digit"], digit.array)


def test_memory_is_given_back() -> None:
    gc.collect()
    before = len(_dlpack._offered)
    session = on_sim()
    inputs = filled(session, 1)
    for _ in range(3):
        session.run({"picture": There(inputs["picture"].copy())}, {"digit": There(np.zeros((1, 10), np.float32))})
        assert len(_dlpack._offered) <= before + 2
    session.run(inputs)
    assert len(_dlpack._offered) == before
    session.run({"picture": There(inputs["picture"].copy())})
    del session
    gc.collect()
    assert len(_dlpack._offered) == before


def test_what_does_not_fit_is_told() -> None:
    session = on_sim()
    inputs = filled(session, 1)
    with pytest.raises(onnxmem.ShapeError, match="input picture must be float32, not float64"):
        session.run({"picture": There(inputs["picture"].astype(np.float64))})
    with pytest.raises(onnxmem.Error, match=r"input picture must be float32 \[1,1,8,8\], not float32 \[8,8\]"):
        session.run({"picture": There(inputs["picture"].reshape(8, 8).copy())})
    with pytest.raises(onnxmem.Error, match=r"output digit must be float32 \[1,10\]"):
        session.run(inputs, {"digit": There(np.zeros(10, np.float32))})
    with pytest.raises(ValueError, match="on a device of the kind 2: copy it to the CPU first"):
        session.run({"picture": There(inputs["picture"], 2)})
    with pytest.raises(onnxmem.UsageError, match="leave out arenas"):
        on_sim(arenas=[{"name": "a"}])
    with pytest.raises(onnxmem.UsageError, match="place requires a device"):
        onnxmem.Session(DIGITS, place="all")
    with pytest.raises(onnxmem.Error, match="no option x"):
        onnxmem.Session(DIGITS, device="sim:x", place="all")


def relu_model(alias: str = "") -> Any:
    """t = Relu(x) + s, y = -t."""
    onnx = pytest.importorskip("onnx")
    h = onnx.helper
    x, state, t, y = (h.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4, 8]) for name in "xsty")
    nodes = [h.make_node("Relu", ["x"], ["r"]), h.make_node("Add", ["r", "s"], ["t"]), h.make_node("Neg", ["t"], ["y"])]
    model = h.make_model(h.make_graph(nodes, "g", [x, state], [t, y]), opset_imports=[h.make_opsetid("", 17)], ir_version=8)
    if alias:
        h.set_model_props(model, {"org.onnxmem.io_alias": alias})
    return model


def test_an_output_is_the_next_input() -> None:
    session = onnxmem.Session(relu_model(), device="sim:seed=3", place="all")
    s = np.ones((4, 8), np.float32)
    a, b, c = (There(np.full((4, 8), k, np.float32)) for k in range(3))
    session.run({"x": a, "s": s}, {"y": b})
    session.run({"x": b, "s": s}, {"t": c})
    assert np.array_equal(b.array, -s) and np.array_equal(c.array, s)
    with pytest.raises(onnxmem.RunError, match="output y: its memory on the device overlaps that of x"):
        session.run({"x": a, "s": s}, {"y": a})
    assert np.array_equal(session.run({"x": a, "s": s})["y"], -s)


@pytest.mark.parametrize("in_place", [False, True])
def test_a_state_on_the_device_stays_intact(in_place: bool) -> None:
    session = onnxmem.Session(relu_model('{"t":"s"}'), device="sim:seed=3", place="all", in_place=in_place)
    x = np.ones((4, 8), np.float32)
    for _ in range(2):
        session.run({"x": x, "s": np.zeros((4, 8), np.float32)})
        state = There(np.full((4, 8), 5, np.float32))
        out = session.run({"x": x, "s": state})
        assert np.all(out["t"] == 6) and np.all(out["y"] == -6) and np.all(state.array == 5)


def at_page(value: float, offset: int = 0) -> There:
    """Elements of the model above, so many bytes after the start of a page."""
    memory = np.zeros(2 * 4096, np.uint8)
    start = -memory.ctypes.data % 4096 + offset
    array = memory[start:start + 128].view(np.float32).reshape(4, 8)
    array[:] = value
    return There(array)


def test_what_moves_in_each_run_is_not_captured() -> None:
    session = onnxmem.Session(relu_model(), device="sim:seed=3", place="all")
    s = np.ones((4, 8), np.float32)
    for k in range(6):  # the first run is captured
        assert np.all(session.run({"x": at_page(k), "s": s}, {"y": at_page(0)})["y"].array == -1 - k)
    assert session.stats.replays == 1
    x, y = at_page(7), at_page(0)
    for _ in range(4):  # the first of these has other memory than the run before
        session.run({"x": x, "s": s}, {"y": y})
    assert np.all(y.array == -8) and session.stats.replays == 4


def test_what_is_copied_on_the_device_may_move() -> None:
    session = onnxmem.Session(relu_model(), device="sim:seed=3", place="all")
    s = np.ones((4, 8), np.float32)
    for k in range(4):
        assert np.all(session.run({"x": at_page(k, 4), "s": s}, {"y": at_page(0, 4)})["y"].array == -1 - k)
    assert session.stats.replays == 4
