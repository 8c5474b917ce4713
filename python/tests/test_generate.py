# SPDX-License-Identifier: Apache-2.0
"""Tokens are those of whole runs without caches; memory, speed, interruption."""
from __future__ import annotations

import io
import json
import os
import pathlib
import re
import signal
from typing import Any

import numpy as np
import pytest

import onnxmem
from onnxmem import _generate, _run

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


def test_an_executor_that_is_refused_frees_its_program_once(models: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def first_refused(context: Any, planned: Any, options: Any) -> Any:
        made.append(len(made))
        if len(made) == 2:
            options.size = 1
        return _run.Executor(context, planned, options)

    monkeypatch.setattr(_generate, "Executor", first_refused)
    assert list(onnxmem.generate(str(models / "decoder.onnx"), PROMPT, max_tokens=5)) == without_cache(models / "decoder.onnx", PROMPT, 5)
    assert len(made) > 2


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


@pytest.mark.parametrize(("name", "size"), [("decoder", 4), ("group_decoder", 16)])
def test_a_long_prompt_runs_in_parts(models: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str, size: int) -> None:
    path, prompt = models / f"{name}.onnx", [3, 1, 4, 7, 9, 11, 2, 13]
    expected = without_cache(path, prompt, 12, size)
    for part in (1, 3, 4):
        monkeypatch.setattr("onnxmem._generate.PART", part)
        generation = onnxmem.generate(str(path), prompt, max_tokens=12)
        assert list(generation) == expected and generation.stats.copied_bytes == 0


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


def test_caches_that_slide(models: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Caches of a window have the size that the caller gives, from the first step on; the tokens are those of a window over whole caches."""
    onnx = pytest.importorskip("onnx")

    def save(name: str, *attributes: tuple[str, int]) -> pathlib.Path:
        model = onnx.load(str(models / "group_decoder.onnx"))
        for node in model.graph.node:
            if node.op_type == "GroupQueryAttention":
                node.attribute.extend(onnx.helper.make_attribute(key, value) for key, value in attributes)
        for one in (*model.graph.input, *model.graph.output):
            if len(attributes) > 1 and "." in one.name:
                one.type.tensor_type.shape.dim[2].dim_param = "window"
        onnx.save(model, str(tmp_path / name))
        return tmp_path / name
    slides = save("slides.onnx", ("local_window_size", 4), ("sliding_window_cache", 1))
    tokens = without_cache(save("window.onnx", ("local_window_size", 4)), PROMPT, 20, 16)
    assert tokens != without_cache(models / "group_decoder.onnx", PROMPT, 20, 16)
    for rows in (4, 7):
        generation = onnxmem.generate(slides, PROMPT, max_tokens=20, dims={"window": rows})
        assert list(generation) == tokens
        assert generation.stats.plans == 2 and generation.stats.copied_bytes == 0
        assert generation.stats.cache_bytes == 2 * 2 * rows * 16 * 4 and generation._decoder._all is not None
    for prompt in (PROMPT, [*PROMPT, 1, 5, 9, 2, 6, 5]):
        ring = onnxmem.generate(tmp_path / "window.onnx", prompt, max_tokens=20)
        assert list(ring) == without_cache(tmp_path / "window.onnx", prompt, 20, 16)
        assert ring.stats.plans == 2 and ring.stats.copied_bytes == 0
        assert ring.stats.cache_bytes == 2 * 2 * 4 * 16 * 4 and ring._decoder._all is not None
        assert list(onnxmem.generate(tmp_path / "window.onnx", prompt, max_tokens=20, precise=True)) == ring.tokens
    with pytest.raises(onnxmem.Error, match="at least local_window_size rows, which are 4, not 0"):
        list(onnxmem.generate(slides, PROMPT, max_tokens=20))


@pytest.mark.parametrize("heads", [1, 4])
def test_rings_with_a_bias(models: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, heads: int) -> None:
    """The bias of a score is that of the position of its key, which is in another row of the ring."""
    onnx = pytest.importorskip("onnx")
    model, path, prompt = onnx.load(str(models / "group_decoder.onnx")), tmp_path / "bias.onnx", [3, 1, 4, 7, 9, 11, 2, 13, 5]
    constants = {"one": np.int64(1), "outer": np.array([0, 1]), "inner": np.array([1, 3]), "none": np.float32(0), "some": np.float32(0.7),
                 "heads": np.linspace(2, 0.5, heads, dtype=np.float32).reshape(1, heads, 1, 1)}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(np.array(value), name) for name, value in constants.items())
    nodes = [("CumSum", "attention_mask one"), ("Cast", "at0"), ("Mul", "at1 some"), ("Sin", "at2"), ("Unsqueeze", "at3 outer"), ("Cast", "input_ids"),
             ("Mul", "at5 none"), ("Unsqueeze", "at6 inner"), ("Add", "at4 at7"), ("Mul", "at8 heads")]
    made = [onnx.helper.make_node(kind, given.split(), [f"at{k}"], **({"to": 1} if kind == "Cast" else {})) for k, (kind, given) in enumerate(nodes)]
    for node in model.graph.node:
        if node.op_type == "GroupQueryAttention":
            node.attribute.append(onnx.helper.make_attribute("local_window_size", 4))
            node.input.extend([""] * (10 - len(node.input)) + [made[-1].output[0]])
    made.extend(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(made)
    onnx.save(model, str(path))
    expected = without_cache(path, prompt, 14, 16)
    for part in (1, 3, 512):
        monkeypatch.setattr("onnxmem._generate.PART", part)
        for precise in (False, True):
            generation = onnxmem.generate(str(path), prompt, max_tokens=14, precise=precise)
            assert list(generation) == expected
            assert generation.stats.cache_bytes == 2 * 2 * 4 * 16 * 4 and generation.stats.copied_bytes == 0


class Pair:
    """An encoder, and a decoder with attention to its own tokens and to what the encoder made: without a past, as a step, and both in one."""

    SIZE, WORDS = 4, 8

    def __init__(self, folder: pathlib.Path) -> None:
        self.onnx = pytest.importorskip("onnx")
        self.folder, self.random = folder, np.random.default_rng(5)
        self.weights = {name: self.random.standard_normal(shape).astype(np.float32) for name, shape in {
            "words": (8, 4), "wq": (4, 4), "wk": (4, 4), "wv": (4, 4), "cross_k": (4, 4), "cross_v": (4, 4), "back": (4, 8)}.items()}
        self.save("encoder", [self.info("ids", [1, "length"], True)], self.nodes(("Gather", "words ids", "hidden")), [self.info("hidden", [1, "length", 4])])
        self.save("decoder", [self.tokens(), self.hidden()], self.decoder(False), self.outputs(True))
        self.save("step", [self.tokens(), *self.caches("past_key_values")], self.decoder(True), self.outputs(False))
        bodies = [self.onnx.helper.make_graph(nodes, name, [], self.outputs(True)) for name, nodes in (
            ("then", self.decoder(True) + self.nodes(("Identity", "none", "present.0.encoder.key"), ("Identity", "none", "present.0.encoder.value"))),
            ("else", self.decoder(False)))]
        both = self.onnx.helper.make_node("If", ["use_cache_branch"], [one.name for one in self.outputs(True)], then_branch=bodies[0], else_branch=bodies[1])
        which = self.onnx.helper.make_tensor_value_info("use_cache_branch", self.onnx.TensorProto.BOOL, [1])
        self.save("merged", [self.tokens(), self.hidden(), *self.caches("past_key_values"), which], [both], self.outputs(True))

    def info(self, name: str, dims: list[Any], is_integer: bool = False) -> Any:
        types = self.onnx.TensorProto
        return self.onnx.helper.make_tensor_value_info(name, types.INT64 if is_integer else types.FLOAT, dims)

    def tokens(self) -> Any:
        return self.info("input_ids", [1, "tokens"], True)

    def hidden(self) -> Any:
        return self.info("encoder_hidden_states", [1, "length", 4])

    def caches(self, stem: str, kinds: str = "decoder encoder") -> list[Any]:
        lengths = {"decoder": "past", "encoder": "length"} if stem == "past_key_values" else {"decoder": "all", "encoder": "crossed"}
        return [self.info(f"{stem}.0.{kind}.{what}", [1, 1, lengths[kind], 4]) for kind in kinds.split() for what in ("key", "value")]

    def outputs(self, has_cross: bool) -> list[Any]:
        return [self.info("logits", [1, "tokens", 8]), *self.caches("present", "decoder encoder" if has_cross else "decoder")]

    def nodes(self, *rows: tuple[str, str, str]) -> list[Any]:
        attributes: dict[str, dict[str, Any]] = {"Transpose": {"perm": [0, 1, 3, 2]}, "Concat": {"axis": 2}, "Softmax": {"axis": -1}}
        return [self.onnx.helper.make_node(kind, given.split(), [made], **attributes.get(kind, {})) for kind, given, made in rows]

    def attention(self, stem: str, query: str, key: str, value: str) -> list[tuple[str, str, str]]:
        return [("Transpose", key, f"{stem}_t"), ("MatMul", f"{query} {stem}_t", f"{stem}_scores"), ("Softmax", f"{stem}_scores", f"{stem}_weights"),
                ("MatMul", f"{stem}_weights {value}", f"{stem}_y")]

    def decoder(self, has_past: bool) -> list[Any]:
        present, past = "present.0.decoder", "past_key_values.0.decoder"
        rows = [("Gather", "words input_ids", "x"), ("MatMul", "x wq", "xq"), ("Unsqueeze", "xq one", "q")]
        for which, what in (("k", "key"), ("v", "value")):
            new = f"new_{which}" if has_past else f"{present}.{what}"
            rows += [("MatMul", f"x w{which}", f"x{which}"), ("Unsqueeze", f"x{which} one", new)]
            if has_past:
                rows.append(("Concat", f"{past}.{what} {new}", f"{present}.{what}"))
            else:
                rows += [("MatMul", f"encoder_hidden_states cross_{which}", f"c{which}"), ("Unsqueeze", f"c{which} one", f"present.0.encoder.{what}")]
        cross = "past_key_values.0.encoder" if has_past else "present.0.encoder"
        rows += self.attention("own", "q", f"{present}.key", f"{present}.value") + self.attention("cross", "own_y", f"{cross}.key", f"{cross}.value")
        return self.nodes(*rows, ("Add", "own_y cross_y", "both"), ("Squeeze", "both one", "flat"), ("MatMul", "flat back", "logits"))

    def save(self, name: str, inputs: list[Any], nodes: list[Any], outputs: list[Any]) -> None:
        from_array = self.onnx.numpy_helper.from_array
        held = [from_array(one, key) for key, one in self.weights.items()]
        held += [from_array(np.array([1]), "one"), from_array(np.zeros((0, 1, 1, 4), np.float32), "none")]
        graph = self.onnx.helper.make_graph(nodes, "g", inputs, outputs, held)
        self.onnx.save(self.onnx.helper.make_model(graph, opset_imports=[self.onnx.helper.make_opsetid("", 18)], ir_version=8),
                       str(self.folder / f"{name}.onnx"))

    def manifest(self, first: str, step: str, **changes: Any) -> pathlib.Path:
        """The set of these files."""
        parts: list[dict[str, Any]] = [{"name": "encoder", "model": "encoder.onnx"}, {"name": "first", "model": f"{first}.onnx"},
                                       {"name": "step", "model": f"{step}.onnx"}]
        ends = ["encoder.hidden", "first.encoder_hidden_states"]
        links: list[list[str]] = [ends]
        for what in ("key", "value"):
            for kind in ("encoder", "decoder"):
                ends_of = [f"first.present.*.{kind}.{what}", f"step.past_key_values.*.{kind}.{what}"]
                links.append(ends_of + ([f"step.present.*.{kind}.{what}"] if kind == "decoder" else [])
                             + ([f"first.past_key_values.*.{kind}.{what}"] if first == "merged" else []))
        if first == "merged":
            ends.append("step.encoder_hidden_states")
            parts[1]["values"], parts[2]["values"] = {"use_cache_branch": False}, {"use_cache_branch": [True]}
        path = self.folder / "set.json"
        path.write_text(json.dumps({"schema": "onnxmem-set/1", "parts": parts, "links": links, "order": ["encoder", "first", ["step"]], **changes}))
        return path

    def tokens_without_cache(self, ids: Any, prompt: list[int], n: int) -> list[int]:
        """Each token by a run of the decoder without a past over all before it: in one layer, no token changes those before it."""
        hidden = onnxmem.Session(str(self.folder / "encoder.onnx")).run({"ids": ids})["hidden"]
        session, tokens = onnxmem.Session(str(self.folder / "decoder.onnx")), list(prompt)
        for _ in range(n):
            logits = session.run({"input_ids": np.array([tokens]), "encoder_hidden_states": hidden})["logits"]
            tokens.append(int(logits[0, -1].argmax()))
        return tokens[len(prompt):]


IDS = np.array([[5, 2, 7, 1, 6]])


@pytest.mark.parametrize("first, step", [("decoder", "step"), ("merged", "merged")])
def test_sets(tmp_path: pathlib.Path, first: str, step: str) -> None:
    pair = Pair(tmp_path)
    generation = onnxmem.generate(pair.manifest(first, step), PROMPT, max_tokens=10, inputs={"encoder.ids": IDS})
    assert list(generation) == pair.tokens_without_cache(IDS, PROMPT, 10)
    stats = generation.stats
    # The rows of the prompt are spread into buffers once, and the steps write theirs.
    assert stats.plans == 3 and stats.copied_bytes == 2 * 3 * 4 * 4 and generation._decoder._all is not None
    held = 2 * 13 * 4 * 4 + 2 * 5 * 4 * 4 + (5 * 4 * 4 if first == "merged" else 0)
    assert stats.cache_bytes == held and stats.arena_bytes > 0


def windows(models: pathlib.Path, folder: pathlib.Path, **dims: Any) -> pathlib.Path:
    """The manifest of a set whose first part leaves all rows, and whose step has a window of four."""
    onnx = pytest.importorskip("onnx")
    step = onnx.load(str(models / "group_decoder.onnx"))
    for node in step.graph.node:
        if node.op_type == "GroupQueryAttention":
            node.attribute.append(onnx.helper.make_attribute("local_window_size", 4))
    onnx.save(step, str(folder / "step.onnx"))
    past = [one for one in step.graph.input if one.name.startswith("past")]
    for node in step.graph.node:
        for k, name in enumerate(node.input):
            if name in {one.name for one in past}:
                node.input[k] = ""
    for one in past:
        step.graph.input.remove(one)
    onnx.save(step, str(folder / "first.onnx"))
    links = [[f"first.present.*.{what}", f"step.past_key_values.*.{what}", f"step.present.*.{what}"] for what in ("key", "value")]
    parts = [{"name": name, "model": f"{name}.onnx", "dims": dims.get(name, {})} for name in ("first", "step")]
    (folder / "set.json").write_text(json.dumps({"schema": "onnxmem-set/1", "parts": parts, "links": links, "order": ["first", ["step"]]}))
    return folder / "set.json"


@pytest.mark.parametrize("tokens", [3, 4, 6])
def test_rings_of_sets(tokens: int, tmp_path: pathlib.Path, models: pathlib.Path, command: Any) -> None:
    """The command has rings as well: rows that a part left in order, more or fewer, go where those of their positions are."""
    manifest = windows(models, tmp_path, first={"sequence_length": [1, 6], "total_sequence_length": "sequence_length"},
                       step={"sequence_length": 1, "past_sequence_length": [1, 12], "total_sequence_length": "past_sequence_length + 1"})
    runs: list[object] = []
    for k in range(6):
        ids, rows = ([3, 1, 4, 9, 2, 6][:tokens], tokens) if k == 0 else ([5 * k % 24], tokens + k)
        np.savez(tmp_path / f"{k}.npz", input_ids=np.array([ids]), attention_mask=np.ones((1, rows), np.int64))
        runs += ["--run", f"{'step' if k else 'first'}={tmp_path / f'{k}.npz'}"]
    for name, options in (("rows", []), ("rings", ["--capacity", 16, "--rings", "--poison"])):
        printed = command("set", "run", manifest, *runs, "--target", "cpu", "--save", tmp_path / name, *options)
    assert [int(n) for n in re.findall(r"copied (\d+) bytes", printed)] == [0, 0 if tokens == 4 else 2 * 2 * min(tokens, 4) * 64, 0, 0, 0, 0]
    for k in range(6):
        file = f"{k}-{'step' if k else 'first'}.npz"
        with np.load(tmp_path / "rows" / file) as rows, np.load(tmp_path / "rings" / file) as rings:
            assert np.abs(rows["logits"] - rings["logits"]).max() < 1e-4
            assert k == 0 or rings["present.0.key"].shape[2] == 4


def test_sets_with_windows(tmp_path: pathlib.Path, models: pathlib.Path) -> None:
    """The first part leaves more rows than the window of the step has."""
    windows(models, tmp_path)
    for prompt in (PROMPT, [3, 1, 4, 1], [3, 1, 4, 1, 5, 2, 6, 5]):
        alone = list(onnxmem.generate(tmp_path / "step.onnx", prompt, max_tokens=12))
        generation = onnxmem.generate(tmp_path / "set.json", prompt, max_tokens=12)
        assert list(generation) == alone
        # Of the rows of the prompt those that the ring has are spread, unless they are as many.
        assert generation.stats.cache_bytes == 2 * 2 * 4 * 16 * 4 and generation._decoder._all is not None
        assert generation.stats.copied_bytes == (0 if len(prompt) == 4 else 2 * 2 * min(len(prompt), 4) * 16 * 4)


def test_inputs_that_stay(tmp_path: pathlib.Path) -> None:
    """A step alone, with what an encoder made as inputs; its own past is empty."""
    pair = Pair(tmp_path)
    hidden = pair.weights["words"][IDS]
    given = {f"past_key_values.0.encoder.{what}": (hidden @ pair.weights[f"cross_{what[0]}"])[:, None] for what in ("key", "value")}
    generation = onnxmem.generate(tmp_path / "step.onnx", PROMPT, max_tokens=10, inputs=given)
    assert list(generation) == pair.tokens_without_cache(IDS, PROMPT, 10)
    assert generation.stats.plans == 2 and generation.stats.copied_bytes == 0
    with pytest.raises(onnxmem.UsageError, match="present.0.decoder.key replaces it in the next step"):
        list(onnxmem.generate(tmp_path / "step.onnx", PROMPT, max_tokens=2, dims={"past": 0},
                              inputs={**given, "past_key_values.0.decoder.key": np.zeros((1, 1, 0, 4), np.float32)}))
    with pytest.raises(onnxmem.UsageError, match="inputs: other is not one that is given; those are past_key"):
        onnxmem.generate(tmp_path / "step.onnx", PROMPT, inputs={"other": 1})


def test_wrong_sets(tmp_path: pathlib.Path) -> None:
    pair = Pair(tmp_path)

    def refused(error: type[Exception], match: str, given: dict[str, Any] | None = None, **changes: Any) -> None:
        with pytest.raises(error, match=match):
            list(onnxmem.generate(pair.manifest("decoder", "step", **changes), PROMPT, max_tokens=2,
                                  inputs={"encoder.ids": IDS} if given is None else given))
    refused(onnxmem.MalformedError, "schema", schema="other")
    refused(onnxmem.MalformedError, "no manifest of a set", order=["encoder", "absent", ["step"]])
    refused(onnxmem.UsageError, "ends in a loop of one part", order=["encoder", "first", "step"])
    refused(onnxmem.UsageError, "ends in a loop of one part", order=["encoder", ["first"], ["step"]])
    refused(onnxmem.UsageError, "a part other", links=[["other.x", "step.y"]])
    refused(onnxmem.UsageError, "no input or output absent", links=[["encoder.hidden", "first.absent"]])
    refused(onnxmem.UsageError, "encoder_hidden_states of part first has no value", links=[])
    refused(onnxmem.UsageError, "ids of part encoder has no value: give it as encoder.ids", given={})
    refused(onnxmem.UsageError, "is no input of a part", given={"ids": IDS})


def test_positions_of_three_axes(tmp_path: pathlib.Path) -> None:
    """Positions of a text are alike for all axes of an image."""
    onnx = pytest.importorskip("onnx")
    helper, types = onnx.helper, onnx.TensorProto
    nodes = [helper.make_node("ReduceSum", ["position_ids", "axes"], ["sum"], keepdims=0), helper.make_node("Add", ["past_n", "sum"], ["present_n"]),
             helper.make_node("Mod", ["present_n", "seven"], ["class"]), helper.make_node("OneHot", ["class", "depth", "ends"], ["hot"]),
             helper.make_node("Unsqueeze", ["hot", "axis"], ["logits"]), helper.make_node("Identity", ["input_ids"], ["same"])]
    held = [onnx.numpy_helper.from_array(np.array(one), name) for name, one in {"axes": [0, 2], "seven": [7.0], "depth": 7, "axis": [1]}.items()]
    held[1] = onnx.numpy_helper.from_array(np.array([7], np.float32), "seven")
    held.append(onnx.numpy_helper.from_array(np.array([0, 1], np.float32), "ends"))
    nodes.insert(0, helper.make_node("Cast", ["position_ids"], ["position_floats"], to=types.FLOAT))
    nodes[1].input[0] = "position_floats"
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("input_ids", types.INT64, [1, "n"]),
                                           helper.make_tensor_value_info("position_ids", types.INT64, [3, 1, "n"]),
                                           helper.make_tensor_value_info("past_n", types.FLOAT, [1])],
                              [helper.make_tensor_value_info("logits", types.FLOAT, [1, 1, 7]), helper.make_tensor_value_info("present_n", types.FLOAT, [1]),
                               helper.make_tensor_value_info("same", types.INT64, [1, "n"])], held)
    path = tmp_path / "positions.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), str(path))
    sums = np.cumsum(np.arange(8))[2:] * 3      # of positions 0 to 2, 0 to 3, ...
    assert list(onnxmem.generate(path, PROMPT, max_tokens=6)) == [int(n % 7) for n in sums]


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
