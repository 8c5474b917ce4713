# SPDX-License-Identifier: Apache-2.0
"""Tokens are those of whole runs without caches; memory, speed, interruption."""
from __future__ import annotations

import io
import os
import pathlib
import signal
from typing import Any

import numpy as np
import pytest

import onnxmem

PROMPT = [3, 1, 4]


def without_cache(model: pathlib.Path, prompt: list[int], n: int, size: int = 4) -> list[int]:
    """Each token by a run over all that precede it."""
    session = onnxmem.Session(str(model))
    tokens = list(prompt)
    for _ in range(n):
        inputs: dict[str, Any] = {"input_ids": np.array([tokens]), "attention_mask": np.ones((1, len(tokens)), np.int64)}
        for one in session.inputs:
            if one.name == "position_ids":
                inputs[one.name] = np.arange(len(tokens))[None]
            if one.name.startswith("past"):
                inputs[one.name] = np.zeros((1, 2, 0, size), np.float32)
        tokens.append(int(session.run(inputs)["logits"][0, -1].argmax()))
    return tokens[len(prompt):]


def test_tokens_are_those_without_a_cache(models: pathlib.Path) -> None:
    generation = onnxmem.generate(str(models / "decoder.onnx"), PROMPT, max_tokens=20)
    assert list(generation) == without_cache(models / "decoder.onnx", PROMPT, 20)
    stats = generation.stats
    assert stats.plans == 2 and stats.copied_bytes == 0 and stats.tokens == 20 and stats.prompt_tokens == 3
    assert stats.arena_bytes > 0 and stats.tokens_per_second > 0
    assert stats.cache_bytes == 2 * 2 * 23 * 4 * 4
    assert generation._decoder._all is not None     # one executor for all steps
    other = onnxmem.generate(str(models / "decoder.onnx"), PROMPT, max_tokens=20)
    first = next(other)
    for state in other._decoder._state.values():
        state[:, :, other._decoder.past:] = np.nan      # rows that are not in use are not read
    assert [first, *other] == generation.tokens
    exact = onnxmem.generate(str(models / "decoder.onnx"), PROMPT, max_tokens=20, precise=True)
    assert list(exact) == generation.tokens and exact._decoder._all is None
    assert list(onnxmem.generate(str(models / "decoder.onnx"), PROMPT, max_tokens=20, capacity=300)) == generation.tokens


def test_one_executor_for_all_steps(models: pathlib.Path) -> None:
    path = models / "group_decoder.onnx"
    generation = onnxmem.generate(str(path), PROMPT, max_tokens=20)
    assert list(generation) == without_cache(path, PROMPT, 20, 16)
    stats = generation.stats
    assert stats.plans == 2 and stats.copied_bytes == 0 and stats.cache_bytes == 2 * 2 * 23 * 16 * 4
    assert generation._decoder._all is not None
    with pytest.raises(onnxmem.Error, match="more than the capacity of 8"):
        list(onnxmem.generate(str(path), PROMPT, max_tokens=20, capacity=8))


def test_the_end(models: pathlib.Path) -> None:
    path = str(models / "decoder.onnx")
    tokens = list(onnxmem.generate(path, PROMPT, max_tokens=20))
    last = int(tokens[14])
    assert list(onnxmem.generate(path, PROMPT, max_tokens=20, stop=[last])) == tokens[: tokens.index(last)]
    assert list(onnxmem.generate(path, PROMPT, max_tokens=0)) == []
    assert list(onnxmem.generate(path, PROMPT, max_tokens=1)) == tokens[:1]
    with pytest.raises(onnxmem.Error, match="more than the capacity of 8"):
        list(onnxmem.generate(path, PROMPT, max_tokens=20, capacity=8))


def test_sampled(models: pathlib.Path) -> None:
    path = str(models / "decoder.onnx")

    def drawn(**options: Any) -> list[int | str]:
        return list(onnxmem.generate(path, PROMPT, max_tokens=12, **options))
    assert drawn(temperature=2, seed=5) == drawn(temperature=2, seed=5)
    assert len({tuple(drawn(temperature=2, seed=seed)) for seed in range(4)}) > 1
    assert drawn(temperature=2, seed=5, top_k=1) == drawn()


class Letters:
    """A tokenizer: a token is a letter."""

    def encode(self, words: str) -> list[int]:
        return [ord(letter) - ord("a") for letter in words]

    def decode(self, tokens: list[int]) -> str:
        return "".join(chr(ord("a") + token) for token in tokens)


def test_text(models: pathlib.Path) -> None:
    path = str(models / "decoder.onnx")
    generation = onnxmem.generate(path, "dbe", max_tokens=8, tokenizer=Letters())
    out, stats = io.StringIO(), io.StringIO()
    tokens = generation.show(out, stats)
    assert tokens == list(onnxmem.generate(path, PROMPT, max_tokens=8))
    assert out.getvalue() == Letters().decode(tokens) + "\n" == generation.text + "\n"
    assert "tokens/s" in stats.getvalue() and "arena" in stats.getvalue()
    with pytest.raises(onnxmem.UsageError, match="requires a tokenizer"):
        onnxmem.generate(path, "dbe")


def test_tokenizers(models: pathlib.Path, tmp_path: pathlib.Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    words = {chr(ord("a") + k): k for k in range(26)}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="a"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    generation = onnxmem.generate(str(models / "decoder.onnx"), "d b e", max_tokens=4, tokenizer=tmp_path / "tokenizer.json")
    assert "".join(map(str, generation)) == generation.text
    assert generation.tokens == list(onnxmem.generate(str(models / "decoder.onnx"), PROMPT, max_tokens=4))


def test_interrupted(models: pathlib.Path) -> None:
    """Ctrl-C ends what is shown; what came until then stays."""
    class Interrupting(io.StringIO):
        is_sent = False

        def write(self, words: str) -> int:
            if not self.is_sent and self.getvalue().count(" ") == 2:
                self.is_sent = True
                os.kill(os.getpid(), signal.SIGINT)
            return super().write(words)
    generation = onnxmem.generate(str(models / "decoder.onnx"), PROMPT, max_tokens=20)
    stats = io.StringIO()
    tokens = generation.show(Interrupting(), stats)
    assert 3 <= len(tokens) < 20 and f"{len(tokens)} tokens" in stats.getvalue()
    assert list(generation) == []


def test_no_decoder(models: pathlib.Path) -> None:
    with pytest.raises(onnxmem.UsageError, match="has an input input_ids"):
        onnxmem.generate(str(models / "dynamic.onnx"), PROMPT)


def test_ranges_with_spare_rows(models: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A file that is planned for a prefill and steps has the passes that its flags ask for, and its states."""
    ranges = {"sequence_length": (1, 4), "past_sequence_length": (0, 20)}
    path, planned = str(models / "decoder.onnx"), tmp_path / "planned.onnx"
    onnxmem.plan(path, planned, target="cpu", ranges=ranges, dims={"batch_size": 1}, flags={"capacity": 24})
    largest = onnxmem.report(path, target="cpu", dims={"batch_size": 1, "sequence_length": 4, "past_sequence_length": 20},
                             flags={"capacity": 24})
    assert onnxmem.verify(str(planned)).arenas[0].bytes == largest.arena_bytes
    with pytest.raises(onnxmem.Error, match="more than the capacity of 23"):
        onnxmem.plan(path, planned, target="cpu", ranges=ranges, dims={"batch_size": 1}, flags={"capacity": 23})


def test_states_of_one_size(tmp_path: pathlib.Path) -> None:
    """A recurrent model: nothing grows, and one plan is for all steps."""
    onnx = pytest.importorskip("onnx")
    helper, types = onnx.helper, onnx.TensorProto
    weights = {"words": np.eye(8, 4, dtype=np.float32), "back": (np.arange(32, dtype=np.float32).reshape(4, 8) * 5 % 7)}
    nodes = [helper.make_node("Gather", ["words", "input_ids"], ["x"]), helper.make_node("ReduceSum", ["x", "axis"], ["s"], keepdims=0),
             helper.make_node("Add", ["past_h", "s"], ["present_h"]), helper.make_node("MatMul", ["present_h", "back"], ["flat"]),
             helper.make_node("Unsqueeze", ["flat", "axis"], ["logits"])]
    held = [onnx.numpy_helper.from_array(one, name) for name, one in weights.items()]
    held.append(onnx.numpy_helper.from_array(np.array([1]), "axis"))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("input_ids", types.INT64, [1, "n"]),
                                           helper.make_tensor_value_info("past_h", types.FLOAT, [1, 4])],
                              [helper.make_tensor_value_info("logits", types.FLOAT, [1, 1, 8]),
                               helper.make_tensor_value_info("present_h", types.FLOAT, [1, 4])], held)
    path = tmp_path / "recurrent.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), str(path))
    generation = onnxmem.generate(path, [1, 2], max_tokens=6)
    tokens, expected, state = list(generation), [], np.zeros((1, 4), np.float32)
    new = [1, 2]
    for _ in range(6):
        state = state + weights["words"][new].sum(0)
        new = [int((state @ weights["back"]).argmax())]
        expected += new
    assert tokens == expected and generation.stats.plans == 2
