# SPDX-License-Identifier: Apache-2.0
"""Models are cut, their parts run one after the other, and the outputs are those of the whole, bit by bit.

usage: parts.py ONNXMEM FOLDER MODEL...
"""
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import onnx

COMMAND, FOLDER = sys.argv[1], sys.argv[2]
DIMS = ["--default-dim", "4"]
RUN = ["--precise", "--threads", "1"] + DIMS
BUDGET = 3  # exit status: too little memory


def call(*args):
    done = subprocess.run([COMMAND, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stdout if done.returncode == 0 else done.stdout + done.stderr


def must(*args):
    status, out = call(*args)
    if status:
        raise AssertionError("onnxmem %s exits with %d: %s" % (" ".join(args), status, out[-400:]))
    return out


def make_inputs(model):
    """A tensor for each input: small integers, or numbers around 0."""
    shapes = json.loads(must("report", model, "--json", "-", *DIMS))["inputs"]
    graph = onnx.load(model, load_external_data=False).graph
    rng, inputs = np.random.default_rng(1), {}
    for i in graph.input:
        if i.name in shapes:
            dtype = onnx.helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type)
            values = rng.standard_normal(shapes[i.name]) if dtype.kind == "f" else rng.integers(0, 2, shapes[i.name])
            inputs[i.name] = values.astype(dtype)
    return inputs


def run_parts(where, listed, inputs):
    """The outputs of the model that the parts give."""
    outputs, made = {}, os.path.join(where, "made.npz")
    values = dict(inputs)
    for k, part in enumerate(listed["parts"]):
        np.savez(made, **{e["name"]: values[e["name"]] for e in part["inputs"] if e["name"] in values})
        given = ["--input", made] if part["inputs"] else []
        saved = os.path.join(where, "out.npz")
        must("run", os.path.join(where, part["file"]), *RUN, *given, "--save", saved)
        with np.load(saved) as got:
            for e in part["outputs"]:
                values[e["name"]] = got[e["name"]]
                if e["is_output"]:
                    outputs[e["name"]] = got[e["name"]]
                missing = [i for i in e["to"] if e["name"] not in [x["name"] for x in listed["parts"][i]["inputs"]]]
                assert not missing, "%s does not go to parts %s" % (e["name"], missing)
    return outputs


def check_cut(model, inputs, whole, *how):
    where = os.path.join(FOLDER, "parts")
    shutil.rmtree(where, ignore_errors=True)
    status, out = call("split", model, where, *how, *DIMS)
    if status == BUDGET or "cannot be cut into" in out:
        return None
    if status:
        raise AssertionError("split %s exits with %d: %s" % (" ".join(how), status, out[-400:]))
    with open(os.path.join(where, "parts.json")) as f:
        listed = json.load(f)
    for part in listed["parts"]:
        assert listed["budget_bytes"] is None or part["total_bytes"] <= listed["budget_bytes"], out
        planned = json.loads(must("report", os.path.join(where, part["file"]), "--io", "arena", "--json", "-", *DIMS))
        is_known = all(e["bytes"] is not None for e in part["inputs"])
        assert not is_known or planned["total_bytes"] <= part["total_bytes"], "%s takes more than it says" % part["file"]
    got = run_parts(where, listed, inputs)
    assert sorted(got) == sorted(whole), "the outputs are %s" % sorted(got)
    for name, values in whole.items():
        assert values.dtype == got[name].dtype and values.shape == got[name].shape, name
        assert values.tobytes() == got[name].tobytes(), "%s differs" % name
    return listed


def check(model):
    saved, given = os.path.join(FOLDER, "whole.npz"), os.path.join(FOLDER, "inputs.npz")
    inputs = make_inputs(model)
    np.savez(given, **inputs)
    status, out = call("run", model, *RUN, *(["--input", given] if inputs else []), "--save", saved)
    if status:
        return "does not run alone: " + out.strip().splitlines()[-1][:100]
    with np.load(saved) as f:
        whole = {name: f[name] for name in f.files}
    cuts = []
    for n in 2, 3, 5:
        listed = check_cut(model, inputs, whole, "--parts", str(n))
        if listed:
            cuts.append(len(listed["parts"]))
            most = max(p["total_bytes"] for p in listed["parts"])
            tight = check_cut(model, inputs, whole, "--budget", str(most))
            assert tight, "%d parts take at most %d bytes, but no cuts are found" % (n, most)
    return "cut into %s parts" % ", ".join(map(str, cuts))


def main():
    for k, model in enumerate(sys.argv[3:], 1):
        name = os.path.basename(model)
        try:
            print("ok %d - %s: %s" % (k, name, check(model)))
        except AssertionError as e:
            print("not ok %d - %s" % (k, name))
            print("# " + str(e).replace("\n", "\n# "))
        sys.stdout.flush()
    print("1..%d" % (len(sys.argv) - 3))


main()
