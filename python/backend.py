# SPDX-License-Identifier: Apache-2.0
"""Builds wheels and source distributions of the package (PEP 517), without another package.

A wheel has what is in ``onnxmem``.  With a library in ``onnxmem/_lib``, where ``make wheel`` puts it, it is a wheel
for this kind of machine; without one, the installed library is used.  The same holds for the command, in
``onnxmem/_bin``.
"""
from __future__ import annotations

import base64
import gzip
import hashlib
import io
import os
import pathlib
import sysconfig
import tarfile
import zipfile
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent
# The least time that a zip file can state: archives depend on their contents alone.
DATE = (1980, 1, 1, 0, 0, 0)


def _project() -> dict[str, Any]:
    try:
        import tomllib
    except ImportError:
        import tomli as tomllib   # type: ignore[import-not-found,no-redef]
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def _metadata(project: dict[str, Any]) -> str:
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {project['version']}",
             f"Summary: {project['description']}", f"License-Expression: {project['license']}",
             f"Requires-Python: {project['requires-python']}", f"Keywords: {','.join(project['keywords'])}"]
    lines += [f"Classifier: {one}" for one in project["classifiers"]]
    lines += [f"Requires-Dist: {one}" for one in project["dependencies"]]
    for extra, needs in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}"] + [f"Requires-Dist: {one}; extra == '{extra}'" for one in needs]
    return "\n".join(lines + ["Description-Content-Type: text/markdown", "", (ROOT / project["readme"]).read_text()])


def _entry_points(project: dict[str, Any]) -> str:
    groups = dict(project["entry-points"])
    if (ROOT / "onnxmem" / "_bin").is_dir():
        groups["console_scripts"] = {"onnxmem": "onnxmem._command:main"}
    return "\n".join(f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in some.items()) for group, some in groups.items())


def _tag() -> str:
    if not (ROOT / "onnxmem" / "_lib").is_dir():
        return "py3-none-any"
    return "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")


def _info_files(project: dict[str, Any], tag: str) -> dict[str, bytes]:
    info = f"{project['name']}-{project['version']}.dist-info"
    wheel = f"Wheel-Version: 1.0\nGenerator: onnxmem\nRoot-Is-Purelib: {str(tag.endswith('any')).lower()}\nTag: {tag}\n"
    files = {f"{info}/METADATA": _metadata(project).encode(), f"{info}/WHEEL": wheel.encode(),
             f"{info}/entry_points.txt": _entry_points(project).encode()}
    licence = ROOT / "LICENSE" if (ROOT / "LICENSE").exists() else ROOT.parent / "LICENSE"
    if licence.exists():
        files[f"{info}/licenses/LICENSE"] = licence.read_bytes()
    return files


def _package_files() -> dict[str, bytes]:
    paths = sorted(path for path in (ROOT / "onnxmem").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in paths}


def _write_wheel(path: pathlib.Path, files: dict[str, bytes], info: str) -> None:
    record = ""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(data)}\n"
            archive.writestr(_entry(name), data)
        archive.writestr(_entry(f"{info}/RECORD"), record + f"{info}/RECORD,,\n")


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, DATE)
    # What can be executed remains so by pip for entries that are said to be files.
    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, (0o100755 if ".so" in name or "/_bin/" in name else 0o100644) << 16
    return entry


def _build(folder: str, package: dict[str, bytes], tag: str) -> str:
    project = _project()
    name = f"{project['name']}-{project['version']}"
    os.makedirs(folder, exist_ok=True)
    _write_wheel(pathlib.Path(folder) / f"{name}-{tag}.whl", {**package, **_info_files(project, tag)}, f"{name}.dist-info")
    return f"{name}-{tag}.whl"


# ---- The functions of PEP 517 and PEP 660. ----

def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    """Write a wheel, and return its name."""
    return _build(wheel_directory, _package_files(), _tag())


def build_editable(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    """Write a wheel that refers to this folder."""
    return _build(wheel_directory, {"onnxmem.pth": f"{ROOT}\n".encode()}, "py3-none-any")


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    """Write a source distribution, which has no library, and return its name."""
    project = _project()
    name = f"{project['name']}-{project['version']}"
    files = {path: data for path, data in _package_files().items() if "/_lib/" not in path and "/_bin/" not in path}
    files |= {one: (ROOT / one).read_bytes() for one in ("backend.py", "pyproject.toml", "README.md")}
    files |= {"PKG-INFO": _metadata(project).encode()}
    licence = next((data for path, data in _info_files(project, "any").items() if path.endswith("LICENSE")), None)
    if licence:
        files["LICENSE"] = licence
    with open(os.path.join(sdist_directory, f"{name}.tar.gz"), "wb") as out, gzip.GzipFile("", "wb", mtime=0, fileobj=out) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, data in files.items():
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    return f"{name}.tar.gz"
