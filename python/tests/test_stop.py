# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and callbacks end searches and runs that would go on for hours."""
from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxmem


def long_problem() -> dict[str, Any]:
    """A random graph of which no search proves much."""
    random = np.random.default_rng(1)
    a, b = np.triu_indices(700, 1)
    some = random.random(a.size) < 0.5
    return {"sizes": random.integers(1, 1000, 700), "pairs": np.stack([a[some], b[some]], 1), "seconds": 10000}


def searched_problem() -> dict[str, Any]:
    """Buffers whose best packing no heuristic finds at once."""
    random = np.random.default_rng(5)
    first = random.integers(0, 40, 120)
    last = first + random.integers(0, 12, 120)
    return {"sizes": random.integers(1, 10**6, 120), "first": first, "last": last}


def interrupted(call: Callable[[], object]) -> None:
    """Ctrl-C, some time after the call began."""
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            call()
    finally:
        timer.cancel()


def test_ctrl_c_ends_a_search() -> None:
    interrupted(lambda: onnxmem.pack(**long_problem()))


def test_ctrl_c_ends_a_search_that_is_watched_with_the_best_result() -> None:
    def interrupt(what: str, best: int, bound: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)
    packing = onnxmem.pack(**long_problem(), progress=interrupt)
    assert packing.height >= packing.lower_bound > 0 and packing.pools[0].is_limited


def test_a_callback_ends_a_search_with_the_best_result() -> None:
    def enough(what: str, best: int, bound: int) -> None:
        raise onnxmem.StopSearch
    assert onnxmem.pack(**searched_problem()).is_optimal
    packing = onnxmem.pack(**searched_problem(), progress=enough)
    assert packing.height > packing.lower_bound and packing.pools[0].is_limited

    def broken(what: str, best: int, bound: int) -> None:
        raise KeyError(what)
    with pytest.raises(KeyError, match="packing"):
        onnxmem.pack(**searched_problem(), progress=broken)


def test_a_search_of_another_thread_is_ended_by_its_callback() -> None:
    found: list[onnxmem.Packing] = []

    def stop(what: str, best: int, bound: int) -> None:
        raise onnxmem.StopSearch
    thread = threading.Thread(target=lambda: found.append(onnxmem.pack(**searched_problem(), progress=stop)))
    thread.start()
    thread.join()
    assert found[0].height >= found[0].lower_bound


def endless() -> onnx.ModelProto:
    """A loop of as many iterations as are allowed."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["still"]), helper.make_node("Add", ["v", "v"], ["w"])], "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         helper.make_tensor_value_info("v", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("still", TensorProto.BOOL, []), helper.make_tensor_value_info("w", TensorProto.FLOAT, [4])])
    graph = helper.make_graph([helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)], "g",
                              [helper.make_tensor_value_info("n", TensorProto.INT64, []),
                               helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_ctrl_c_ends_a_run() -> None:
    session = onnxmem.Session(endless(), max_iterations=10**15)
    x = np.ones(4, np.float32)
    interrupted(lambda: session.run({"n": np.int64(10**15), "x": x}))
    assert (session.run({"n": np.int64(3), "x": x})["y"] == 8).all()


def test_progress_of_a_plan_is_ended(models: pathlib.Path) -> None:
    def stop(what: str, best: int, bound: int) -> None:
        raise onnxmem.StopSearch
    report = onnxmem.report(models / "trained.onnx", progress=stop)
    assert report.arena_bytes >= report.lower_bound


def test_others_run_meanwhile(models: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A call waits for a pipe, which another thread fills: without the interpreter's lock, or neither would end."""
    script = tmp_path / "meanwhile.py"
    script.write_text(
        "import os, sys, threading, onnxmem\n"
        "model, pipe = sys.argv[1:]\n"
        "os.mkfifo(pipe)\n"
        "got = []\n"
        "reader = threading.Thread(target=lambda: got.append(onnxmem.report(pipe).arena_bytes))\n"
        "reader.start()\n"
        "with open(model, 'rb') as source, open(pipe, 'wb') as to:\n"
        "    to.write(source.read())\n"
        "reader.join()\n"
        "print(got[0])\n")
    done = subprocess.run([sys.executable, str(script), str(models / "digits.onnx"), str(tmp_path / "pipe")], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == onnxmem.report(models / "digits.onnx").arena_bytes
