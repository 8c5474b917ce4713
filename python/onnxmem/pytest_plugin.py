# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: tests that a model fits into memory, and that no change makes it need more.

``assert_arena`` is a function, and a fixture of the same name::

    def test_fits(assert_arena):
        assert_arena("model.onnx", max_bytes=512 * 1024)

``arena_baseline`` is a fixture that compares with numbers in a file beside the test, ``NAME.onnxmem.json`` for ``NAME.py``.
``pytest --onnxmem-update`` writes them::

    def test_does_not_grow(arena_baseline):
        arena_baseline("model.onnx")
"""
from __future__ import annotations

import json
import pathlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ._program import Model
    from ._report import Report

SHOWN = 4


def assert_arena(model: Model, max_bytes: int | None = None, *, max_total_bytes: int | None = None, **options: Any) -> Report:
    """Plan a model, and fail if its arena, or all memory of a run, is larger than that; the report is returned.

    The options are those of :func:`onnxmem.report`.
    """
    __tracebackhide__ = True
    if max_bytes is None and max_total_bytes is None:
        raise TypeError("assert_arena() requires max_bytes or max_total_bytes")
    from ._report import report
    found = report(model, **options)
    for what, got, most in (("arena", found.arena_bytes, max_bytes), ("total memory", found.total_bytes, max_total_bytes)):
        if most is not None and got > most:
            raise AssertionError(f"the {what} of {found.json()['model']} is {got} bytes, {got - most} more than {most}{_peak_of(found)}")
    return found


def _peak_of(found: Report) -> str:
    peak = found.peaks[0]
    largest = ", ".join(f"{one.name} ({one.bytes})" for one in peak.live[:SHOWN])
    rest = f" and {len(peak.live) - SHOWN} more" if len(peak.live) > SHOWN else ""
    where = f" at step {peak.step}, {peak.op} {peak.name}".rstrip() if peak.step is not None and peak.op else ""
    return f"; {peak.bytes} bytes are live{where}: {largest}{rest}" if peak.live else ""


class Baseline:
    """The numbers of one file of tests."""

    def __init__(self, path: pathlib.Path, updates: bool) -> None:
        self.path, self.updates = path, updates
        self.numbers: dict[str, dict[str, int]] = json.loads(path.read_text()) if path.exists() else {}

    def check(self, key: str, found: Report) -> None:
        """Compare with the numbers of this name, or write them."""
        __tracebackhide__ = True
        got = {"arena_bytes": found.arena_bytes, "total_bytes": found.total_bytes}
        if self.updates:
            self.numbers[key] = got
            self.path.write_text(json.dumps(self.numbers, indent=1, sort_keys=True) + "\n")
            return
        if key not in self.numbers:
            raise AssertionError(f"{self.path} has no numbers for {key}: write them with pytest --onnxmem-update")
        for name, most in self.numbers[key].items():
            if got[name] > most:
                raise AssertionError(f"{name} of {found.json()['model']} grew from {most} to {got[name]}{_peak_of(found)}; "
                                     "if that is right, accept it with pytest --onnxmem-update")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option of the command line."""
    parser.getgroup("onnxmem").addoption("--onnxmem-update", action="store_true",
                                         help="write the sizes that arena_baseline compares with")


@pytest.fixture(name="assert_arena")
def _assert_arena() -> Callable[..., Report]:
    """The function :func:`assert_arena`."""
    return assert_arena


@pytest.fixture
def arena_baseline(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """Plans a model and compares its sizes with those in the file beside the test; a test with several models names them by ``key``."""
    path = pathlib.Path(request.path)

    def check(model: Model, key: str = "", **options: Any) -> Report:
        __tracebackhide__ = True
        from ._report import report
        found = report(model, **options)
        name = f"{request.node.name}:{key}" if key else request.node.name
        Baseline(path.with_name(path.stem + ".onnxmem.json"), request.config.getoption("--onnxmem-update")).check(name, found)
        return found
    return check
