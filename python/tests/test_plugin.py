# SPDX-License-Identifier: Apache-2.0
"""The plugin of pytest, in runs of pytest of its own."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"


def run(folder: pathlib.Path, text: str, *words: str) -> tuple[int, str]:
    (folder / "test_it.py").write_text(text)
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "onnxmem.pytest_plugin", "-c", os.devnull,
                           "--rootdir", str(folder), str(folder), *words], cwd=folder,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def test_budgets(tmp_path: pathlib.Path) -> None:
    model = MODELS / "trained.onnx"
    status, printed = run(tmp_path, f"def test_a(assert_arena):\n    assert assert_arena({str(model)!r}, max_bytes=6144).arena_bytes == 6144\n")
    assert status == 0, printed
    status, printed = run(tmp_path, f"def test_a(assert_arena):\n    assert_arena({str(model)!r}, max_bytes=6000)\n")
    assert status == 1
    assert "the arena of trained.onnx is 6144 bytes, 144 more than 6000; 6144 bytes are live at step 4, Conv conv3: c3 (2048)" in printed
    status, printed = run(tmp_path, f"def test_a(assert_arena):\n    assert_arena({str(model)!r}, max_total_bytes=100)\n")
    assert status == 1 and "the total memory of trained.onnx" in printed
    status, printed = run(tmp_path, f"def test_a(assert_arena):\n    assert_arena({str(model)!r})\n")
    assert status == 1 and "requires max_bytes or max_total_bytes" in printed


def test_baselines(tmp_path: pathlib.Path) -> None:
    text = f"def test_a(arena_baseline):\n    arena_baseline({str(MODELS / 'trained.onnx')!r})\n"
    status, printed = run(tmp_path, text)
    assert status == 1 and "has no numbers for test_a: write them with pytest --onnxmem-update" in printed
    assert run(tmp_path, text, "--onnxmem-update")[0] == 0
    path = tmp_path / "test_it.onnxmem.json"
    numbers = json.loads(path.read_text())
    assert numbers["test_a"]["arena_bytes"] == 6144
    assert run(tmp_path, text)[0] == 0
    path.write_text(json.dumps({"test_a": {"arena_bytes": 6000, "total_bytes": 10**9}}))
    status, printed = run(tmp_path, text)
    assert status == 1 and "arena_bytes of trained.onnx grew from 6000 to 6144" in printed
    path.write_text(json.dumps({"test_a": {"arena_bytes": 7000, "total_bytes": 10**9}}))
    assert run(tmp_path, text)[0] == 0
