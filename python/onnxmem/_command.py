# SPDX-License-Identifier: Apache-2.0
"""The command ``onnxmem`` of a wheel: the program in the folder ``_bin``, which uses the library in ``_lib``."""
from __future__ import annotations

import os
import sys

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def main() -> None:
    """Become the command, with the arguments of this process."""
    if os.path.exists(manifest := os.path.join(_PACKAGE, "_lib", "manifest.json")):
        os.environ.setdefault("ONNXMEM_MANIFEST", manifest)
    program = os.path.join(_PACKAGE, "_bin", "onnxmem")
    try:
        os.execv(program, ["onnxmem", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{program} cannot be run: {error.strerror}")
