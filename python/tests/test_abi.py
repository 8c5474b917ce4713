# SPDX-License-Identifier: Apache-2.0
"""The structs, codes and functions of the package are those of the headers."""
from __future__ import annotations

import ctypes
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest

from onnxmem import _errors, _library, _structs as s

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "include" / "onnxmem"
HEADERS = "eager callback executor fetch onnx pass tiling trainer tune autodiff report pack".split()


def header(name: str) -> str:
    return (INCLUDE / f"{name}.h").read_text()


def declared() -> list[tuple[str, int]]:
    """C expressions with the values that they must have."""
    found = []
    for name, struct in s.STRUCTS.items():
        if struct not in s.PREFIXES:
            found.append((f"sizeof({name})", ctypes.sizeof(struct)))
        for field, kind in ((one[0], one[1]) for one in struct._fields_):
            found.append((f"offsetof({name}, {field})", getattr(struct, field).offset))
            found.append((f"sizeof((({name} *)0)->{field})", ctypes.sizeof(kind)))
    return found


def constants() -> list[tuple[str, int]]:
    names = {"OM_LOG_WARN": s.LOG_WARN, "OM_HAS_PLAN": s.HAS_PLAN, "OM_IN_ARENA": s.IN_ARENA, "OM_EXTERNAL": s.EXTERNAL,
             "OM_WEIGHT": s.WEIGHT, "OM_UNPLANNED": s.UNPLANNED, "OM_ALIAS_IO": s.ALIAS_IO, "OM_ALIAS_CONSUME": s.ALIAS_CONSUME, "OM_MAP": s.MAP,
             "OM_ALIAS_SUBBUFFER": s.ALIASES.index("subbuffer"), "OM_TARGET_CPU": s.TARGETS.index("cpu"),
             "OM_IO_ARENA": s.IO.index("arena"), "OM_IO_KEEP": s.IO.index("keep"), "OM_SEQUENCE": s.SEQUENCE,
             "OM_OPTIONAL": s.OPTIONAL, "OM_ANNOTATE_MODEL": s.ANNOTATE_MODEL, "OM_ANNOTATE_AUTO": s.ANNOTATE_AUTO,
             "OM_ANNOTATE_ORIGINAL": s.ANNOTATE_ORIGINAL, "OM_REPORT_JSON": s.REPORT_JSON, "OM_REPORT_HTML": s.REPORT_HTML,
             "OM_REPORT_ASCII": s.REPORT_ASCII, "OM_REPORT_MARKDOWN": s.REPORT_MARKDOWN, "OM_REPORT_ORT": s.REPORT_ORT, "OM_FLAG_FLOAT": s.FLAG_FLOAT, "OM_FETCH_LOCAL": s.FETCH_LOCAL, "OM_MAX_RANK": s.MAX_RANK,
             "OM_PACK_OPTIMAL": s.PACK_OPTIMAL, "OM_NDTYPE": len(s.DTYPES)}
    return list(names.items())


def test_structs_are_those_of_the_headers(tmp_path: pathlib.Path) -> None:
    compiler = shlex.split(os.environ.get("CC") or "cc")
    build = os.environ.get("abs_builddir")
    if not shutil.which(compiler[0]) or not build:
        pytest.skip("there is no compiler, or no build folder in abs_builddir")
    expected = declared() + constants()
    lines = "".join(f'\tprintf("%lld\\n", (long long)({expression}));\n' for expression, _ in expected)
    source = tmp_path / "abi.c"
    source.write_text("#include <stddef.h>\n#include <stdio.h>\n" + "".join(f"#include <onnxmem/{name}.h>\n" for name in HEADERS)
                      + "int main(void)\n{\n" + lines + "\treturn 0;\n}\n")
    program = tmp_path / "abi"
    subprocess.run([*compiler, f"-I{INCLUDE.parent}", f"-I{build}/include", str(source), "-o", str(program)], check=True)
    printed = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    wrong = [f"{expression} is {got}, not {want}" for (expression, want), got in zip(expected, printed) if int(got) != want]
    assert not wrong
    assert len(printed) == len(expected)


def test_statuses_are_those_of_the_header() -> None:
    names = re.findall(r"^\t_\((\w+), +\d+, \"", header("status"), re.M)
    assert names == [one.name for one in _errors.Status]
    for status in list(_errors.Status)[1:]:
        assert _errors.error_of(status, "text").status is status


def test_element_types_are_those_of_the_header() -> None:
    found = re.findall(r"^\t_\(\w+, +(\d+), +\d+, \"(\w+)\"", header("tensor"), re.M)
    assert [(int(code), name) for code, name in found] == list(enumerate(s.DTYPES))


def test_functions_are_declared_in_the_headers() -> None:
    text = "".join(path.read_text() for path in INCLUDE.glob("*.h*"))
    for name, (_, arguments) in _library._FUNCTIONS.items():
        found = re.search(rf"OM_API[^;]*[ *]{name}\(([^;]*)\)", text)
        assert found, name
        assert len(arguments) == (0 if found[1] == "void" else found[1].count(",") + 1), name
