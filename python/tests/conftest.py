# SPDX-License-Identifier: Apache-2.0
"""What the tests share: models of the tree, the command, and commands' results."""
from __future__ import annotations

import os
import pathlib
import signal
import subprocess
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import onnxmem

# Tests interrupt themselves; a job in the background of a shell ignores that.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = pathlib.Path(__file__).resolve().parents[2]


# A dim of this model is the sum of two others, so not all can be the same.
DECODER = {"batch_size": 1, "sequence_length": 1, "past_sequence_length": 2}
# Sizes of symbols; all others are as large as one another.
SIZES = {**DECODER, "past_sequence_length + sequence_length": DECODER["past_sequence_length"] + DECODER["sequence_length"]}


def dims_of(name: str) -> tuple[dict[str, Any], list[object]]:
    """Numbers for the open dims of a model of the tree: options, and words of the command."""
    if name != "decoder.onnx":
        return {"default_dim": 3}, ["--default-dim", 3]
    return {"dims": DECODER}, [word for symbol, n in DECODER.items() for word in ("--dim", f"{symbol}={n}")]


def filled(session: onnxmem.Session, seed: int = 0, open_dim: int = 3, shapes: Mapping[str, tuple[int, ...]] = {}) -> dict[str, Any]:
    """Random elements for all inputs that need them; some of these have shapes that are given."""
    random = np.random.default_rng(seed)
    values: dict[str, Any] = {}
    for one in session.inputs:
        if one.has_default:
            continue
        dims = shapes.get(one.name, one.shape) or ()
        shape = [dim if isinstance(dim, int) else SIZES.get(dim or "", open_dim) for dim in dims]
        dtype = np.dtype(one.dtype)
        values[one.name] = (random.standard_normal(shape).astype(dtype) if dtype.kind == "f" else
                            random.integers(0, 2, shape).astype(dtype))
    return values


@pytest.fixture
def root() -> pathlib.Path:
    """The folder of the tree."""
    return ROOT


@pytest.fixture
def models() -> pathlib.Path:
    """The models of the tree."""
    return ROOT / "models"


@pytest.fixture
def command() -> Any:
    """Runs ``onnxmem``, and returns what it prints."""
    program = os.environ.get("ONNXMEM")
    if not program:
        pytest.skip("ONNXMEM does not name the command")

    def run(*words: object, status: int = 0) -> str:
        done = subprocess.run([program, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert done.returncode == status, done.stderr
        return done.stdout
    return run
