"""What the tests share: models of the tree, the command, and commands' results."""
from __future__ import annotations

import os
import pathlib
import subprocess
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


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
