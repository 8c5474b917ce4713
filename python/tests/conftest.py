# SPDX-License-Identifier: Apache-2.0
"""What the tests share: models of the tree, the command, and commands' results."""
from __future__ import annotations

import os
import pathlib
import signal
import subprocess
from typing import Any

import pytest

# Tests interrupt themselves; a job in the background of a shell ignores that.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = pathlib.Path(__file__).resolve().parents[2]


# A dim of this model is the sum of two others, so not all can be the same.
DECODER = {"batch_size": 1, "sequence_length": 1, "past_sequence_length": 2}


def dims_of(name: str) -> tuple[dict[str, Any], list[object]]:
    """Numbers for the open dims of a model of the tree: options, and words of the command."""
    if name != "decoder.onnx":
        return {"default_dim": 3}, ["--default-dim", 3]
    return {"dims": DECODER}, [word for symbol, n in DECODER.items() for word in ("--dim", f"{symbol}={n}")]


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
