# SPDX-License-Identifier: Apache-2.0
"""Fetching shares the cache of the command, with the module of the library and without it."""
from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import onnxmem

ROOT = pathlib.Path(__file__).resolve().parents[2]


def loaded_server() -> Any:
    spec = importlib.util.spec_from_file_location("fetch_server", ROOT / "tests" / "hub" / "server.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def mirror(models: pathlib.Path) -> Iterator[Any]:
    found = loaded_server().Mirror({"zoo/a.onnx": (models / "trained.onnx").read_bytes()})
    yield found
    found.shutdown()


@pytest.fixture
def manifest(models: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    data = (models / "trained.onnx").read_bytes()
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps([{"model": "Tiny", "model_path": "zoo/a.onnx", "onnx_version": "1.9", "opset_version": 13,
                                 "metadata": {"model_sha": hashlib.sha256(data).hexdigest(), "model_bytes": len(data), "tags": []}}]))
    return path


def test_a_model_of_a_manifest(mirror: Any, manifest: pathlib.Path, models: pathlib.Path, command: Any, tmp_path: pathlib.Path) -> None:
    where: dict[str, Any] = {"manifest": manifest, "mirrors": [mirror.base("good")], "cache": tmp_path / "cache"}
    told: list[tuple[str, int, int]] = []
    path = onnxmem.fetch("tiny", progress=lambda *words: told.append(words), **where)
    assert pathlib.Path(path).read_bytes() == (models / "trained.onnx").read_bytes()
    assert told and told[-1][1] <= len(pathlib.Path(path).read_bytes())
    asked = len(mirror.asked("good"))
    assert onnxmem.fetch("Tiny", offline=True, **where) == path and len(mirror.asked("good")) == asked
    printed = command("fetch", "tiny", "--manifest", manifest, "--cache", tmp_path / "cache", "--offline")
    assert printed.splitlines()[0] == path
    with pytest.raises(onnxmem.UsageError, match="there are Tiny"):
        onnxmem.fetch("tinny", **where)


@pytest.mark.parametrize("behavior", ["good", "flaky", "plain", "chunked", "relative"])
@pytest.mark.parametrize("has_module", [True, False])
def test_mirrors(behavior: str, has_module: bool, mirror: Any, manifest: pathlib.Path, models: pathlib.Path, tmp_path: pathlib.Path) -> None:
    program = ("import sys, onnxmem\n"
               "print(onnxmem.fetch('tiny', manifest=sys.argv[1], mirrors=[sys.argv[2]], cache=sys.argv[3], retry_delay=0.01, timeout=5))\n")
    environment = {key: value for key, value in os.environ.items() if has_module or key != "LD_LIBRARY_PATH"}
    done = subprocess.run([sys.executable, "-c", program, manifest, mirror.base(behavior), tmp_path / "cache"], env=environment,
                          stdout=subprocess.PIPE, text=True, check=True)
    assert pathlib.Path(done.stdout.strip()).read_bytes() == (models / "trained.onnx").read_bytes()


@pytest.mark.parametrize("behavior", ["wrong", "status-404", "page", "flood"])
def test_mirrors_that_fail(behavior: str, mirror: Any, manifest: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with pytest.raises(onnxmem.DownloadError, match=mirror.base(behavior)):
        onnxmem.fetch("tiny", manifest=manifest, mirrors=[mirror.base(behavior)], cache=tmp_path / "cache", retries=1, timeout=3)
    assert not list((tmp_path / "cache").rglob("*.onnx"))


def test_an_address(mirror: Any, models: pathlib.Path, tmp_path: pathlib.Path) -> None:
    address = mirror.base("good") + "/zoo/a.onnx"
    digest = hashlib.sha256((models / "trained.onnx").read_bytes()).hexdigest()
    path = onnxmem.fetch(f"{address}#sha256={digest}", cache=tmp_path / "cache")
    assert onnxmem.report(path).arena_bytes == onnxmem.report(models / "trained.onnx").arena_bytes
    with pytest.raises(onnxmem.UsageError):
        onnxmem.fetch(address, cache=tmp_path / "cache")
    with pytest.raises(onnxmem.DownloadError, match="SHA-256 mismatch"):
        onnxmem.fetch(address, sha256="0" * 64, cache=tmp_path / "cache", retries=1)


def test_progress_that_fails_ends_it(mirror: Any, manifest: pathlib.Path, tmp_path: pathlib.Path) -> None:
    def fail(*words: object) -> None:
        raise KeyError("enough")
    with pytest.raises(KeyError, match="enough"):
        onnxmem.fetch("tiny", manifest=manifest, mirrors=[mirror.base("good")], cache=tmp_path / "cache", progress=fail)
