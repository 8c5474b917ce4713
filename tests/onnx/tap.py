# SPDX-License-Identifier: Apache-2.0
"""What the Python tests share: a plan, points, and folders of models."""
import glob
import os
import subprocess
import sys
import tempfile

SRC = os.environ.get("srcdir", ".")
DATA = os.environ.get("ONNXMEM_DATA", os.path.join(SRC, "..", "shared", "data"))
ONNXMEM = os.environ.get("ONNXMEM", "onnxmem")


def call(*args, command=ONNXMEM, **how):
    """The command as it ended, with what it printed."""
    return subprocess.run([*command.split(), *args], capture_output=True, text=True, errors="replace", **how)


def skip_all(why):
    print("1..0 # SKIP " + why)
    sys.exit(0)


class Points:
    def __init__(self):
        self.n = 0
        self.failed = 0

    def point(self, good, what, *why):
        self.n += 1
        self.failed += not good
        print(("ok" if good else "not ok"), self.n, "-", what, flush=True)
        for line in () if good else why:
            print("#", str(line).replace("\n", "\n# ")[:2000])
        return good

    def end(self):
        print(f"1..{self.n}")
        sys.exit(1 if self.failed else 0)


def models():
    """Our own, and those of the shared data where it is there."""
    own = sorted(glob.glob(os.path.join(SRC, "models", "*.onnx")))
    shared = []
    for folder in ("models", "light"):
        shared += sorted(glob.glob(os.path.join(DATA, folder, "*.onnx")))
    backend = sorted(glob.glob(os.path.join(DATA, "onnx-backend", "*", "*", "model.onnx")))
    return own, shared, backend


def scratch():
    return tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR"))
