# SPDX-License-Identifier: Apache-2.0
"""Wheels: with what they contain, and in a fresh virtual environment."""
from __future__ import annotations

import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import zipfile

import pytest

import onnxmem

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
ROOT = PACKAGE.parent


def copied(folder: pathlib.Path, with_library: bool) -> pathlib.Path:
    """The folder of the package, with the library of the build."""
    source = folder / "source"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("__pycache__", "_bin", "_lib", "tests"))
    shutil.copy(ROOT / "LICENSE", source)
    if with_library:
        library = os.environ.get("ONNXMEM_LIBRARY")
        if not library:
            pytest.skip("ONNXMEM_LIBRARY does not name the library")
        (source / "onnxmem" / "_lib").mkdir()
        shutil.copy(library, source / "onnxmem" / "_lib" / "libonnxmem.so.0")
    return source


def call(source: pathlib.Path, function: str, out: pathlib.Path) -> pathlib.Path:
    done = subprocess.run([sys.executable, "-B", "-c", f"import backend, sys; print(backend.{function}(sys.argv[1]))", str(out)],
                          cwd=source, stdout=subprocess.PIPE, text=True, check=True)
    return out / done.stdout.strip()


def test_the_version_is_that_of_the_library() -> None:
    assert f'version = "{onnxmem.version()}"' in (PACKAGE / "pyproject.toml").read_text()


def test_all_files_are_distributed() -> None:
    listed = (PACKAGE / "local.mk").read_text()
    for path in [*(PACKAGE / "onnxmem").glob("*.py"), *(PACKAGE / "tests").glob("*.py")]:
        assert f"%D%/{path.relative_to(PACKAGE)}" in listed


def test_a_wheel_without_the_library(tmp_path: pathlib.Path) -> None:
    wheel = call(copied(tmp_path, False), "build_wheel", tmp_path)
    assert wheel.name == f"onnxmem-{onnxmem.version()}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        record = archive.read(next(name for name in names if name.endswith("RECORD"))).decode()
        assert "pytest11" in archive.read(next(name for name in names if name.endswith("entry_points.txt"))).decode()
    assert "onnxmem/py.typed" in names and "onnxmem/__init__.py" in names
    assert sorted(line.split(",")[0] for line in record.splitlines()) == sorted(names)


def test_archives_depend_on_their_contents_alone(tmp_path: pathlib.Path) -> None:
    source = copied(tmp_path, False)
    for function in ("build_wheel", "build_sdist"):
        (tmp_path / "b").mkdir(exist_ok=True)
        assert call(source, function, tmp_path).read_bytes() == call(source, function, tmp_path / "b").read_bytes()


def test_an_installed_wheel_plans_and_runs(tmp_path: pathlib.Path) -> None:
    wheel = call(copied(tmp_path, True), "build_wheel", tmp_path)
    assert "linux" in wheel.name
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    env = {key: value for key, value in os.environ.items() if not key.startswith(("ONNXMEM", "LD_LIBRARY", "PYTHONPATH"))}
    env["PYTHONPATH"] = str(site)
    script = ("import sys, numpy, onnxmem\n"
              "assert onnxmem.__file__.startswith(sys.argv[1]), onnxmem.__file__\n"
              "session = onnxmem.Session(sys.argv[2])\n"
              "print(onnxmem.report(sys.argv[2]).arena_bytes, session.run({'picture': numpy.zeros((1, 1, 8, 8), 'f')})['digit'].shape)\n"
              "from onnxmem import _library\n"
              "print(_library.lib._name)\n")
    done = subprocess.run([sys.executable, "-c", script, str(site), str(ROOT / "models" / "trained.onnx")], env=env, cwd=tmp_path,
                          stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.splitlines() == ["6144 (1, 10)", str(site / "onnxmem" / "_lib" / "libonnxmem.so.0")]


def test_a_wheel_has_the_command(tmp_path: pathlib.Path) -> None:
    source = copied(tmp_path, True)
    (source / "onnxmem" / "_bin").mkdir()
    program = source / "onnxmem" / "_bin" / "onnxmem"
    program.write_text('#!/bin/sh\necho "$ONNXMEM_MANIFEST" "$@"\n')
    (source / "onnxmem" / "_lib" / "manifest.json").write_text("{}")
    wheel = call(source, "build_wheel", tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        scripts = archive.read(next(name for name in archive.namelist() if name.endswith("entry_points.txt"))).decode()
        assert archive.getinfo("onnxmem/_bin/onnxmem").external_attr >> 16 == 0o100755
        archive.extractall(tmp_path / "site")
    assert "[console_scripts]\nonnxmem = onnxmem._command:main\n" in scripts
    folder = tmp_path / "site" / "onnxmem"
    (folder / "_bin" / "onnxmem").chmod(0o755)
    env = {key: value for key, value in os.environ.items() if not key.startswith(("ONNXMEM", "PYTHONPATH"))}
    env["PYTHONPATH"] = str(tmp_path / "site")
    run = [sys.executable, "-c", "from onnxmem._command import main; main()", "report", "a b"]
    done = subprocess.run(run, env=env, cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == f"{folder}/_lib/manifest.json report a b\n"
    (folder / "_bin" / "onnxmem").unlink()
    done = subprocess.run(run, env=env, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "_bin/onnxmem cannot be run: No such file" in done.stderr


def test_modules_are_beside_the_library(tmp_path: pathlib.Path) -> None:
    wheel = call(copied(tmp_path, True), "build_wheel", tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    library = tmp_path / "site" / "onnxmem" / "_lib"
    compiler, build = shlex.split(os.environ.get("CC") or "cc"), os.environ.get("abs_builddir")
    if not shutil.which(compiler[0]) or not build:
        pytest.skip("there is no compiler, or no build folder in abs_builddir")
    (library / "onnxmem").mkdir()
    subprocess.run([*compiler, "-shared", "-fPIC", f"-I{ROOT / 'include'}", f"-I{build}/include", str(ROOT / "tests" / "plugin" / "census.c"),
                    str(library / "libonnxmem.so.0"), "-o", str(library / "onnxmem" / "census.so")], check=True)
    env = {key: value for key, value in os.environ.items() if not key.startswith(("ONNXMEM", "LD_LIBRARY", "PYTHONPATH"))}
    env["PYTHONPATH"] = str(tmp_path / "site")
    script = ("import sys, onnxmem\n"
              "passes = onnxmem.report(sys.argv[1], passes='inline,shapes,census,liveness,pack').json()['passes']\n"
              "print([one['counters'] for one in passes if one['pass'] == 'census'])\n")
    done = subprocess.run([sys.executable, "-c", script, str(ROOT / "models" / "digits.onnx")], env=env, cwd=tmp_path,
                          stdout=subprocess.PIPE, text=True, check=True)
    assert "'ops': 11" in done.stdout


def test_a_missing_library_is_named(tmp_path: pathlib.Path) -> None:
    env = {**os.environ, "ONNXMEM_LIBRARY": str(tmp_path / "nothing.so")}
    done = subprocess.run([sys.executable, "-c", "import onnxmem; onnxmem.version()"], env=env, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "nothing.so" in done.stderr and "ONNXMEM_LIBRARY" in done.stderr
