# SPDX-License-Identifier: Apache-2.0
"""Greedy tokens of decoders over their own caches, beside ONNX Runtime.

    decoder_chains.py FOLDER [--steps 64] [--only NAME]

FOLDER has a folder for each model with model.onnx.  A decoder is run that has the input input_ids, and else only attention_mask,
position_ids of two dims, and floating-point states; the others are named with the reason.  Where tokens differ, ONNX Runtime runs again
without int8 activations in products with dequantized weights, which it uses by default.  Prints a table; exit status 1 if tokens differ."""
import argparse
import logging
import os
import sys

import numpy as np
import onnxruntime as ort

import onnxmem

PROMPT = [3, 1, 4]
FLOATS = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
GIVEN = {"input_ids", "attention_mask", "position_ids"}


class Refused(Exception):
    """A model that is not such a decoder."""


def session_of(path, is_exact):
    o = ort.SessionOptions()
    o.intra_op_num_threads = 1
    if is_exact:
        o.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    return ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])


def check(session):
    inputs = {x.name: x for x in session.get_inputs()}
    if "input_ids" not in inputs:
        raise Refused("no input input_ids")
    if len(inputs.get("position_ids", inputs["input_ids"]).shape) != 2:
        raise Refused("position_ids of three dims")
    outputs = {x.name for x in session.get_outputs()}
    for name, x in inputs.items():
        if name not in GIVEN and (x.type not in FLOATS or state_output(name, outputs) is None):
            raise Refused(f"input {name} is no floating-point state")
    if not set(inputs) - GIVEN:
        raise Refused("no states")


def state_output(name, outputs):
    names = (name.replace("past_key_values", "present"), name.replace("past", "present"))
    return next((n for n in names if n in outputs and n != name), None)


def first_state(x, dims):
    shape = [d if isinstance(d, int) else dims.get(d, 1 if k == 0 or d.startswith("batch") else 0) for k, d in enumerate(x.shape)]
    return np.zeros(shape, FLOATS[x.type])


def theirs(session, dims, steps):
    inputs, names = {x.name: x for x in session.get_inputs()}, [x.name for x in session.get_outputs()]
    state = {name: first_state(x, dims) for name, x in inputs.items() if name not in GIVEN}
    tokens, past = list(PROMPT), 0
    while len(tokens) < len(PROMPT) + steps:
        given = {"input_ids": [tokens[past:]], "position_ids": [range(past, len(tokens))], "attention_mask": [[1] * len(tokens)]}
        feed = {k: np.array(v, np.int32 if "int32" in inputs[k].type else np.int64) for k, v in given.items() if k in inputs}
        made = dict(zip(names, session.run(None, {**feed, **state})))
        logits = made["logits" if "logits" in made else names[0]]
        past = len(tokens)
        tokens.append(int(logits.reshape(-1, logits.shape[-1])[-1].argmax()))
        state = {name: made[state_output(name, made)] for name in state}
    return tokens[len(PROMPT):]


def dims_of(session, folder):
    """Numbers of dims of states that are neither batches nor lengths: sizes in the data of a first step."""
    data = os.path.join(folder, "prefill.npz")
    if not os.path.exists(data):
        return {}
    with np.load(data) as z:
        return {d: n for x in session.get_inputs() if x.name not in GIVEN and x.name in z.files
                for d, n in zip(x.shape[2:], z[x.name].shape[2:]) if isinstance(d, str) and n}


def compare(folder, steps):
    path = os.path.join(folder, "model.onnx")
    session = session_of(path, False)
    check(session)
    dims = dims_of(session, folder)
    generation = onnxmem.generate(path, PROMPT, max_tokens=steps, dims=dims)
    ours, stats = list(generation), generation.stats
    result = "equal" if ours == theirs(session, dims, steps) else \
        "equal without int8 activations" if ours == theirs(session_of(path, True), dims, steps) else "DIFFERENT"
    return f"{result} | {stats.plans} | {stats.copied_bytes} | {stats.arena_bytes} | {stats.cache_bytes}"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    p.add_argument("--steps", type=int, default=64)
    p.add_argument("--only")
    a = p.parse_args()
    ort.set_default_logger_severity(4)
    logging.getLogger("onnxmem").setLevel(logging.ERROR)
    different, others = 0, []
    print("| model | tokens | plans | copied | arena | caches |\n|---|---|--:|--:|--:|--:|", flush=True)
    for name in sorted(os.listdir(a.folder)):
        if not os.path.exists(os.path.join(a.folder, name, "model.onnx")) or a.only not in (None, name):
            continue
        try:
            row = compare(os.path.join(a.folder, name), a.steps)
        except (Refused, onnxmem.Error) as error:
            others.append(f"{name}: {error}")
            continue
        different += "DIFFERENT" in row
        print(f"| {name} | {row} |", flush=True)
    print("\nNot run:\n" + "\n".join(others))
    return different > 0


if __name__ == "__main__":
    sys.exit(main())
