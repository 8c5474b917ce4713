# SPDX-License-Identifier: Apache-2.0
"""Measuring models one after the other, by the command that ONNXMEM names."""
import os
import subprocess
import sys
import tempfile

COMMAND = os.environ.get("ONNXMEM", "onnxmem")


def call(*words):
    """What the command prints; RuntimeError with its message if it fails."""
    done = subprocess.run((COMMAND,) + words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["status %d" % done.returncode])[-1])
    return done.stdout


def found_of(models, measure):
    """What measure(model, folder) returns for each model, with a temporary folder; a model that fails is named and left out."""
    found = []
    for model in models:
        with tempfile.TemporaryDirectory() as folder:
            try:
                found.append(measure(model, folder))
            except (RuntimeError, OSError, KeyError) as e:
                print("%s: %s" % (model, e), file=sys.stderr)
    return found
