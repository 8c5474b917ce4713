# SPDX-License-Identifier: Apache-2.0
"""Explanations and comparisons are those of the command."""
from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

import onnxmem
from conftest import dims_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
TREE = sorted(path.name for path in (ROOT / "models").glob("*.onnx"))


@pytest.mark.parametrize("name", TREE)
def test_why_is_that_of_the_command(name: str, models: pathlib.Path, command: Any) -> None:
    dims, words = dims_of(name)
    found = onnxmem.why(models / name, **dims)
    assert found.json() == json.loads(command("why", models / name, *words, "--json", "-"))
    assert str(found) == found.text() == command("why", models / name, *words)


def test_why_of_a_value(models: pathlib.Path, command: Any) -> None:
    path = models / "trained.onnx"
    expected = json.loads(command("why", path, "r1", "--json", "-"))
    assert onnxmem.why(path, "r1").json() == onnxmem.report(path).why("r1").json() == expected
    assert onnxmem.why(path, "r1").text() == command("why", path, "r1")
    assert "trained.onnx: r1" in repr(onnxmem.why(path, "r1"))


def test_names_that_are_none(models: pathlib.Path) -> None:
    report = onnxmem.report(models / "trained.onnx")
    with pytest.raises(onnxmem.UsageError, match="no value is called r11; the nearest are r1"):
        report.why("r11")
    with pytest.raises(onnxmem.UsageError, match="takes no options"):
        onnxmem.why(report, align=16)


def test_diff_is_that_of_the_command(models: pathlib.Path, command: Any, tmp_path: pathlib.Path) -> None:
    old, new = models / "trained.onnx", models / "dynamic.onnx"
    found = onnxmem.diff(old, new, default_dim=3)
    words = ("diff", old, new, "--default-dim", 3)
    assert found.json() == json.loads(command(*words, "--json", "-"))
    assert found.text() == command(*words)
    assert found.markdown() == command(*words, "--markdown", "-")
    assert found.arena.before == onnxmem.report(old).arena_bytes
    assert found.arena.change == onnxmem.report(new, default_dim=3).arena_bytes - found.arena.before
    assert found.total.before == onnxmem.report(old).total_bytes and found.peak.before == 6144


def test_diff_of_reports(models: pathlib.Path, command: Any, tmp_path: pathlib.Path) -> None:
    path, file = models / "trained.onnx", tmp_path / "old.json"
    file.write_text(command("report", path, "--json", "-"))
    expected = json.loads(command("diff", file, path, "--schedule", "bfs", "--json", "-"))
    assert onnxmem.diff(file, onnxmem.report(path, order="bfs")).json() == onnxmem.diff(file, path, order="bfs").json() == expected


def test_what_is_no_report(models: pathlib.Path, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "other.json"
    file.write_text("{\"schema\": 1}")
    with pytest.raises(onnxmem.MalformedError, match="other.json"):
        onnxmem.diff(file, models / "trained.onnx")
