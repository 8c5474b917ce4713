# SPDX-License-Identifier: Apache-2.0
"""Greedy tokens of decoders over their own caches, beside ONNX Runtime.

    decoder_chains.py FOLDER [--steps 64] [--only NAME] [--rounds N]

FOLDER has a folder for each model with model.onnx, and files of inputs.  A decoder is run that has the input input_ids, and else only
attention_mask, position_ids, and floating-point states, or keys and values of an encoder, which its data has; an encoder, a decoder and its
step are a set; the others are named with the reason.  Where tokens differ, ONNX Runtime runs again
without int8 activations in products with dequantized weights, which it uses by default.  Prints a table; exit status 1 if tokens differ.
With --rounds, both decode so many times more, in turn, and two columns have the milliseconds of the shortest step."""
import argparse
import json
import logging
import os
import sys
import tempfile
import time

import numpy as np
import onnxruntime as ort

import onnxmem

PROMPT = [3, 1, 4]
FLOATS = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
GIVEN = {"input_ids", "attention_mask", "position_ids"}
# The Whisper of the folder has embeddings of 64 positions.
POSITIONS = {"dynamo_whisper_dec": 64, "optimum_whisper": 64, "optimum_whisper merged": 64, "optimum_whisper, step of ortext": 64}
# Encoder, decoder without a past, and its step.
SETS = {
    "optimum_t5": ("optimum_t5_encoder", "optimum_t5_decoder", "optimum_t5_decoder_with_past"),
    "optimum_t5 merged": ("optimum_t5_encoder", "optimum_t5_decoder_merged", "optimum_t5_decoder_merged"),
    "optimum_whisper": ("optimum_whisper_encoder", "optimum_whisper_decoder", "optimum_whisper_decoder_with_past"),
    "optimum_whisper merged": ("optimum_whisper_encoder", "optimum_whisper_decoder_merged", "optimum_whisper_decoder_merged"),
    "optimum_whisper, step of ortext": ("optimum_whisper_encoder", "optimum_whisper_decoder", "ortext_whisper_decoder_with_past"),
}


class Refused(Exception):
    """A model that is not such a decoder."""


def session_of(path, is_exact):
    o = ort.SessionOptions()
    o.intra_op_num_threads = 1
    if is_exact:
        o.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    return ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])


def check(session, fixed):
    inputs = {x.name: x for x in session.get_inputs()}
    if "input_ids" not in inputs:
        raise Refused("no input input_ids")
    outputs = {x.name for x in session.get_outputs()}
    for name, x in inputs.items():
        if name not in GIVEN and name not in fixed and (x.type not in FLOATS or state_output(name, outputs) is None):
            raise Refused(f"input {name} is no floating-point state")
    if not set(inputs) - GIVEN:
        raise Refused("no states")


def state_output(name, outputs):
    names = (name.replace("past_key_values", "present"), name.replace("past", "present"))
    return next((n for n in names if n in outputs and n != name), None)


def first_state(x, dims):
    shape = [d if isinstance(d, int) else dims.get(d, 1 if k == 0 or d.startswith("batch") else 0) for k, d in enumerate(x.shape)]
    return np.zeros(shape, FLOATS[x.type])


def of_tokens(inputs, tokens, past):
    positions = np.arange(past, len(tokens))
    given = {"input_ids": [tokens[past:]], "attention_mask": [[1] * len(tokens)]}
    if "position_ids" in inputs:
        given["position_ids"] = np.broadcast_to(positions, [d if isinstance(d, int) else 1 for d in inputs["position_ids"].shape[:-1]] + [positions.size])
    return {k: np.array(v, np.int32 if "int32" in inputs[k].type else np.int64) for k, v in given.items() if k in inputs}


def likeliest(made, names):
    logits = made["logits" if "logits" in made else names[0]]
    return int(logits.reshape(-1, logits.shape[-1])[-1].argmax())


def theirs(session, dims, steps, fixed, start=None, at=None):
    """Tokens of ONNX Runtime; `start` has the outputs of a decoder that took the prompt.  `at` gets the times of the tokens."""
    inputs, names = {x.name: x for x in session.get_inputs()}, [x.name for x in session.get_outputs()]
    fixed = {k: v for k, v in fixed.items() if k in inputs}
    state = {name: first_state(x, dims) for name, x in inputs.items() if name not in GIVEN and name not in fixed}
    tokens, past, made = list(PROMPT), 0, start
    while len(tokens) < len(PROMPT) + steps:
        if made is None:
            made = dict(zip(names, session.run(None, {**of_tokens(inputs, tokens, past), **state, **fixed})))
        past = len(tokens)
        tokens.append(likeliest(made, names))
        if at is not None:
            at.append(time.perf_counter())
        # Keys and values of an encoder come once, and then as outputs without elements, or not at all.
        state = {name: made[out] if (out := state_output(name, made)) and made[out].size else old for name, old in state.items()}
        made = None
    return tokens[len(PROMPT):]


def data_of(folder):
    """Inputs of a first step, of one sequence."""
    for name in ("prefill.npz", "static_prefill.npz", "set0.npz"):
        if os.path.exists(os.path.join(folder, name)):
            with np.load(os.path.join(folder, name)) as z:
                return {key: value[:1] if value.ndim else value for key, value in z.items()}
    return {}


def dims_of(session, data):
    """Numbers of dims of states that are neither batches nor lengths, but for those of windows: sizes in the data of a first step."""
    return {d: n for x in session.get_inputs() if x.name not in GIVEN and x.name in data
            for d, n in zip(x.shape[2:], data[x.name].shape[2:]) if isinstance(d, str) and n and d != "past_sequence_length"}


def fixed_of(session, data):
    """Keys and values of an encoder that are inputs alone."""
    outputs = {x.name for x in session.get_outputs()}
    return {x.name: data[x.name] for x in session.get_inputs()
            if ".encoder." in x.name and x.name in data and data[x.name].size and state_output(x.name, outputs) is None}


def row_of(generate, expected, rounds):
    """The row of a model: `expected` gives the tokens of ONNX Runtime, without int8 activations or with them."""
    generation = generate()
    ours, stats = list(generation), generation.stats
    result = "equal" if ours == expected(False) else "equal without int8 activations" if ours == expected(True) else "DIFFERENT"
    one = "yes" if generation._decoder._all is not None else "no"
    return f"{result} | {one} | {stats.plans} | {stats.copied_bytes} | {stats.arena_bytes} | {stats.cache_bytes}" + speed(generate, expected, rounds)


def speed(generate, expected, rounds):
    """Columns with the shortest steps of both, which take turns."""
    least = [float("inf")] * 2
    for _ in range(rounds):
        own, other = [time.perf_counter() for _ in generate()], []
        expected(False, other)
        for k, at in enumerate((own, other)):
            least[k] = min(least[k], *np.diff(at[1:]))
    return "".join(f" | {1e3 * one:.3f}" for one in least) if rounds else ""


def compare(folder, steps, rounds):
    path, data = os.path.join(folder, "model.onnx"), data_of(folder)
    session = session_of(path, False)
    fixed = fixed_of(session, data)
    check(session, fixed)
    dims = dims_of(session, data)
    return row_of(lambda: onnxmem.generate(path, PROMPT, max_tokens=steps, dims=dims, inputs=fixed, threads=1),
                  lambda is_exact, at=None: theirs(session_of(path, is_exact), dims, steps, fixed, at=at), rounds)


# ---- Sets. ----

def manifest_of(folder, names):
    """The set, and the names of inputs that the caller gives."""
    paths = [os.path.abspath(os.path.join(folder, name, "model.onnx")) for name in names]
    inputs = [{x.name for x in session_of(path, False).get_inputs()} for path in paths]
    parts = [{"name": part, "model": path} for part, path in zip(("encoder", "decoder", "step"), paths)]
    links = [["encoder.last_hidden_state"] + [f"{part}.encoder_hidden_states" for part, has in zip(("decoder", "step"), inputs[1:])
                                              if "encoder_hidden_states" in has]]
    masks = [f"{part}.{name}" for part, name, has in zip(("encoder", "decoder", "step"), ("attention_mask", "encoder_attention_mask",
                                                                                      "encoder_attention_mask"), inputs) if name in has]
    links += [masks] if len(masks) > 1 else []
    for what in "key", "value":
        for kind in "encoder", "decoder":
            past, present = f"past_key_values.*.{kind}.{what}", f"present.*.{kind}.{what}"
            link = [f"decoder.{present}", f"step.{past}"] + ([f"step.{present}"] if kind == "decoder" else [])
            links.append(link + ([f"decoder.{past}"] if names[1] == names[2] else []))
    if names[1] == names[2]:
        parts[1]["values"], parts[2]["values"] = {"use_cache_branch": False}, {"use_cache_branch": True}
    return {"schema": "onnxmem-set/1", "parts": parts, "links": links, "order": ["encoder", "decoder", ["step"]]}


def theirs_of_set(folder, names, data, steps, at):
    encoder, first, step = (session_of(os.path.join(folder, name, "model.onnx"), False) for name in names)
    fixed = {"encoder_hidden_states": encoder.run(["last_hidden_state"], data)[0], "encoder_attention_mask": data.get("attention_mask")}
    inputs = {x.name: x for x in first.get_inputs()}
    feed = {**of_tokens(inputs, PROMPT, 0), **{k: v for k, v in fixed.items() if k in inputs}}
    feed.update((name, first_state(x, {})) for name, x in inputs.items() if name.startswith("past"))
    if "use_cache_branch" in inputs:
        feed["use_cache_branch"], fixed["use_cache_branch"] = np.array([False]), np.array([True])
    start = dict(zip([x.name for x in first.get_outputs()], first.run(None, feed)))
    return theirs(step, {}, steps, fixed, start, at)


def compare_set(folder, names, steps, rounds):
    data = data_of(os.path.join(folder, names[0]))
    with tempfile.TemporaryDirectory() as temporary:
        path = os.path.join(temporary, "set.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(manifest_of(folder, names), f)
        given = {f"encoder.{name}": value for name, value in data.items()}
        return row_of(lambda: onnxmem.generate(path, PROMPT, max_tokens=steps, inputs=given, threads=1),
                      lambda is_exact, at=None: theirs_of_set(folder, names, data, steps, at), rounds)


# ---- All. ----

def jobs_of(folder):
    """Names of models and sets, each with what compares it."""
    of_sets = {name for names in SETS.values() for name in names}
    models = [name for name in sorted(os.listdir(folder)) if os.path.exists(os.path.join(folder, name, "model.onnx")) and name not in of_sets]
    def within(name, steps):
        return min(steps, POSITIONS.get(name, steps + len(PROMPT)) - len(PROMPT))
    return [(name, lambda steps, rounds, name=name: compare(os.path.join(folder, name), within(name, steps), rounds)) for name in models] \
        + [(name, lambda steps, rounds, name=name, names=names: compare_set(folder, names, within(name, steps), rounds)) for name, names in SETS.items()
           if all(os.path.exists(os.path.join(folder, one)) for one in names)]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    p.add_argument("--steps", type=int, default=64)
    p.add_argument("--only")
    p.add_argument("--rounds", type=int, default=0)
    a = p.parse_args()
    ort.set_default_logger_severity(4)
    logging.getLogger("onnxmem").setLevel(logging.ERROR)
    different, others = 0, []
    more = ("| onnxmem ms | ONNX Runtime ms |", "--:|--:|") if a.rounds else ("|", "")
    print(f"| model | tokens | one executor | plans | copied | arena | caches {more[0]}\n|---|---|---|--:|--:|--:|--:|{more[1]}", flush=True)
    for name, run in jobs_of(a.folder):
        if a.only not in (None, name):
            continue
        try:
            row = run(a.steps, a.rounds)
        except (Refused, onnxmem.Error) as error:
            others.append(f"{name}: {error}")
            continue
        different += "DIFFERENT" in row
        print(f"| {name} | {row} |", flush=True)
    print("\nNot run:\n" + "\n".join(others))
    return different > 0


if __name__ == "__main__":
    sys.exit(main())
