# SPDX-License-Identifier: Apache-2.0
"""What examples/nets built and exported is for ONNX Runtime what it is for the command: nets, and their training steps.

    nets.py ONNXMEM FOLDER NET...

For each net, FOLDER/NET.onnx and FOLDER/NET_step.onnx are run by both on the same inputs; all outputs are compared: of a step, the loss
and every parameter and state after it.  Exit status 1, with the worst output, if one differs."""
import os
import subprocess
import sys

import numpy as np
import onnxruntime

TOLERANCE = 2e-4    # of the largest element of an output; Adam divides small numbers by small numbers


def inputs_of(session):
    """Values for inputs without a default: words or labels are small."""
    random = np.random.default_rng(1)
    given = {}
    for one in session.get_inputs():
        if one.name in overridable(session):
            continue
        is_float = one.type == "tensor(float)"
        given[one.name] = random.standard_normal(one.shape).astype(np.float32) if is_float else random.integers(0, 4, one.shape)
    return given


def overridable(session):
    return {one.name for one in session.get_overridable_initializers()}


def run_command(command, path, given, folder):
    words = []
    for name, value in given.items():
        at = os.path.join(folder, f"in_{len(words)}.npy")
        np.save(at, value)
        words += ["--input", f"{name}:{at}"]
    out = os.path.join(folder, "out.npz")
    subprocess.run([command, "run", path, *words, "--save", out, "-q"], check=True, stdout=subprocess.DEVNULL)
    return np.load(out)


def compare(command, path, folder):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    given = inputs_of(session)
    wanted = dict(zip([one.name for one in session.get_outputs()], session.run(None, given)))
    found = run_command(command, path, given, folder)
    worst, at = 0.0, ""
    for name, value in wanted.items():
        apart = np.abs(found[name].astype(np.float64) - value).max() / max(1e-3, np.abs(value).max())
        if not apart <= worst:    # NaN, too
            worst, at = apart, name
    print(f"# {os.path.basename(path)}: {len(wanted)} outputs, the worst is {worst:.1e} apart{': ' + at if at else ''}")
    return worst <= TOLERANCE and len(wanted) > 0


def main():
    command, folder, *nets = sys.argv[1:]
    same = [compare(command, os.path.join(folder, name + what + ".onnx"), folder) for name in nets for what in ("", "_step")]
    sys.exit(not all(same))


main()
