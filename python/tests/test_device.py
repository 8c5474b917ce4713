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
