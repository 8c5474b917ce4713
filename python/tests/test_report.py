# SPDX-License-Identifier: Apache-2.0
"""Reports and plans are those of the command."""
from __future__ import annotations

import json
import logging
import pathlib
from typing import Any

import onnx
import pytest

import onnxmem
from conftest import dims_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
TREE = sorted(path.name for path in (ROOT / "models").glob("*.onnx"))
TIMES = ("plan_ms",)


def without_times(figures: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in figures.items() if key not in TIMES}


@pytest.mark.parametrize("name", TREE)
@pytest.mark.parametrize("target", ["generic", "cpu"])
def test_figures_are_those_of_the_command(name: str, target: str, models: pathlib.Path, command: Any) -> None:
    dims, words = dims_of(name)
    expected = json.loads(command("report", models / name, *words, "--target", target, "--json", "-"))
    found = onnxmem.report(models / name, target=target, **dims)
    assert without_times(found.json()) == without_times(expected)
    assert found.arena_bytes == expected["arena_bytes"]
    assert found.total_bytes == expected["total_bytes"]
    assert found.lower_bound == expected["lower_bound_bytes"]


@pytest.mark.parametrize("name", TREE)
def test_planned_files_are_those_of_the_command(name: str, models: pathlib.Path, command: Any, tmp_path: pathlib.Path) -> None:
    dims, words = dims_of(name)
    command("plan", models / name, tmp_path / "command.onnx", *words)
    report = onnxmem.plan(models / name, tmp_path / "python.onnx", **dims)
    expected = (tmp_path / "command.onnx").read_bytes()
    assert (tmp_path / "python.onnx").read_bytes() == expected
    assert onnxmem.plan(models / name, **dims) == expected
    verified = onnxmem.verify(tmp_path / "python.onnx")
    assert sum(one.bytes for one in verified.arenas) == report.arena_bytes


@pytest.mark.parametrize("options,words", [
    ({"order": "bfs"}, ["--schedule", "bfs"]),
    ({"order": "original"}, ["--schedule", "original"]),
    ({"parallel_safe": True}, ["--parallel-safe"]),
    ({"streams": 2}, ["--streams", 2]),
    ({"align": 16}, ["--align", 16]),
    ({"io": "arena"}, ["--io", "arena"]),
    ({"io": {"picture": "keep", "digit": "arena"}}, ["--io", "picture=keep", "--io", "digit=arena"]),
    ({"arenas": [{"name": "fast", "bytes": 4096}, {"name": "slow", "align": 256}]}, ["--arena", "fast=4096", "--arena", "slow,align=256"]),
    ({"passes": "inline,shapes,liveness,pack"}, ["--passes", "inline,shapes,liveness,pack"]),
    ({"rematerialize": 50}, ["--rematerialize", 50]),
    ({"budget": 1 << 20}, ["--budget", "1M"]),
    ({"budget": 6144, "budget_of": "arena"}, ["--budget", 6144, "--budget-of", "arena"]),
    ({"target": "cpu", "threads": 3}, ["--target", "cpu", "--threads", 3]),
    ({"target": "cpu", "precise": True}, ["--target", "cpu", "--precise"]),
    ({"shapes": {"picture": (1, 1, 8, 8)}}, ["--input-shape", "picture:1,1,8,8"]),
    ({"arenas": [{"name": "fast", "bytes": 65536}, {"name": "slow"}], "pins": {"r1": "slow", "c3": "slow"}},
     ["--arena", "fast=64K", "--arena", "slow", "--pin", "r1=slow", "--pin", "c3=slow"]),
])
def test_options_are_those_of_the_command(options: Any, words: list[object], models: pathlib.Path, command: Any) -> None:
    expected = json.loads(command("report", models / "trained.onnx", "--json", "-", *words))
    assert without_times(onnxmem.report(models / "trained.onnx", **options).json()) == without_times(expected)


def test_models_come_from_paths_bytes_and_protos(models: pathlib.Path) -> None:
    path = models / "trained.onnx"
    sizes = {onnxmem.report(one).arena_bytes for one in (
        path, str(path), path.read_bytes(), bytearray(path.read_bytes()), memoryview(path.read_bytes()), onnx.load(path))}
    assert len(sizes) == 1
    assert onnxmem.report(path.read_bytes(), name="mine").json()["model"] == "mine"
    with pytest.raises(TypeError, match="a path, bytes or a ModelProto, not int"):
        onnxmem.report(3)   # type: ignore[arg-type]


def test_viewers_show_a_summary(models: pathlib.Path) -> None:
    """The entry of the metadata that is for people, by the names that Netron shows."""
    model = onnx.load(str(models / "digits.onnx"))
    planned = onnxmem.plan(model)
    assert isinstance(planned, onnx.ModelProto)
    shown = {entry.key: entry.value for entry in planned.metadata_props}["org.onnxmem.plan.summary"]
    report = onnxmem.report(model)
    assert shown == f"arena={report.arena_bytes} lower={report.lower_bound} naive={report.naive_bytes} status=optimal"


def test_external_data_of_a_model_from_memory(models: pathlib.Path) -> None:
    data = (models / "external.onnx").read_bytes()
    assert onnxmem.report(data, folder=models).total_bytes == onnxmem.report(models / "external.onnx").total_bytes
    with pytest.raises(onnxmem.Error, match="external"):
        onnxmem.report(data)


def test_tensors_and_columns(models: pathlib.Path) -> None:
    report = onnxmem.report(models / "trained.onnx")
    tensors = report.tensors
    placed = [one for one in tensors if one.where == "arena"]
    assert max(one.offset + one.bytes for one in placed) == report.arena_bytes
    assert {one.where for one in tensors} == {"arena", "caller", "weight"}
    picture = next(one for one in tensors if one.name == "picture")
    assert (picture.dtype, picture.shape, picture.where) == ("float32", (1, 1, 8, 8), "caller")
    assert any(one.alias == "inplace" and one.source for one in tensors)
    columns = report.columns()
    assert list(columns) == list(onnxmem.Tensor.__dataclass_fields__)
    assert columns["bytes"].tolist() == [one.bytes for one in tensors]
    assert columns["shape"][0] == tensors[0].shape
    # Plain tensors that live at the same step never overlap.
    alone = [one for one in placed if not one.alias and not any(other.source == one.name for other in placed)]
    for a in alone:
        for b in alone:
            if a is not b and a.first <= b.last and b.first <= a.last:
                assert a.offset + a.bytes <= b.offset or b.offset + b.bytes <= a.offset


def test_steps_are_those_of_a_run() -> None:
    matrix = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [4, 4])
    nodes = [("Neg", "w", "k"), ("Mul", "x k", "a"), ("MatMul", "a a", "b"), ("MatMul", "b a", "y")]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(op, inputs.split(), [output]) for op, inputs, output in nodes], "folded", [matrix],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [4, 4])],
        [onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [1], [2.0])])
    report = onnxmem.report(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8))
    placed = {one.name: (one.first, one.last) for one in report.tensors if one.where == "arena"}
    assert placed == {one["name"]: (one["first"], one["last"]) for one in report.json()["tensors"]} == {"a": (0, 2), "b": (1, 2)}


def test_peaks(models: pathlib.Path) -> None:
    whole, = onnxmem.report(models / "trained.onnx").peaks
    assert whole.bytes == sum(one.bytes for one in whole.live) == 6144
    assert whole.op == "Conv"


def test_forms(models: pathlib.Path, command: Any) -> None:
    report = onnxmem.report(models / "trained.onnx")
    assert report.svg() == command("report", models / "trained.onnx", "--svg", "-")
    assert report.csv() == command("report", models / "trained.onnx", "--csv", "-")
    assert "</html>" in report.html()
    assert "srcdoc" in report._repr_html_()
    assert "lower bound" in report.text()
    assert report.ascii()
    assert "6144 bytes, optimal" in repr(report)


def test_open_dims(models: pathlib.Path) -> None:
    model = onnx.helper.make_model(onnx.helper.make_graph(
        [onnx.helper.make_node("Relu", ["x"], ["y"])], "g",
        [onnx.helper.make_tensor_value_info("x", 1, ["batch_size", "seq", None])],
        [onnx.helper.make_tensor_value_info("y", 1, None)]), opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(onnxmem.ShapeError, match=r"x \[1,seq,\?\]; give them with dims={'seq': N} and shapes={'x': \(...\)}"):
        onnxmem.report(model)
    assert onnxmem.report(model, dims={"seq": 4}, default_dim=2).dims == {"batch_size": 2, "seq": 4}
    assert onnxmem.report(model, shapes={"x": (5, 4, 2)}).dims == {"batch_size": 5, "seq": 4}
    with pytest.raises(onnxmem.UsageError):
        onnxmem.report(model, dims={"nothing": 4}, default_dim=1)


def test_ranges(models: pathlib.Path, command: Any, tmp_path: pathlib.Path) -> None:
    symbol = next(dim for one in onnxmem.Session(models / "dynamic.onnx").inputs for dim in one.shape or () if isinstance(dim, str))
    data = onnxmem.plan(models / "dynamic.onnx", ranges={symbol: (1, 9)}, default_dim=3)
    command("plan", models / "dynamic.onnx", tmp_path / "x.onnx", "--dim-range", f"{symbol}=1..9", "--default-dim", 3)
    assert data == (tmp_path / "x.onnx").read_bytes()
    assert onnxmem.verify(data).ranges == {symbol: (1, 9)}


def test_ranges_for_the_executor(models: pathlib.Path, command: Any, tmp_path: pathlib.Path) -> None:
    symbol = next(dim for one in onnxmem.Session(models / "dynamic.onnx").inputs for dim in one.shape or () if isinstance(dim, str))
    data = onnxmem.plan(models / "dynamic.onnx", ranges={symbol: (1, 9)}, default_dim=3, target="cpu", threads=1)
    command("plan", models / "dynamic.onnx", tmp_path / "x.onnx", "--dim-range", f"{symbol}=1..9", "--default-dim", 3, "--target", "cpu",
            "--threads", 1)
    assert data == (tmp_path / "x.onnx").read_bytes()


def model_of(nodes: list[onnx.NodeProto], inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]) -> onnx.ModelProto:
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("my", 1)]
    return onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", inputs, outputs), opset_imports=opsets, ir_version=8)


def test_rules_for_operators(command: Any, tmp_path: pathlib.Path) -> None:
    value = onnx.helper.make_tensor_value_info
    model = model_of([onnx.helper.make_node("Neg", ["x"], ["a"]), onnx.helper.make_node("Twist", ["a"], ["b"], domain="my"),
                      onnx.helper.make_node("Neg", ["b"], ["y"])], [value("x", 1, [64])], [value("y", 1, [64])])
    onnx.save(model, tmp_path / "m.onnx")
    rule = "my:Twist=inplace:0,shape:0,scratch:4K"
    found = onnxmem.report(tmp_path / "m.onnx", op_rules=[rule])
    expected = json.loads(command("report", tmp_path / "m.onnx", "--op", rule, "--json", "-"))
    assert without_times(found.json()) == without_times(expected)
    with pytest.raises(onnxmem.UsageError, match="no operator of the rule my:Other"):
        onnxmem.report(model, op_rules=[rule, "my:Other=view:0"])


def test_values_of_inputs(command: Any, tmp_path: pathlib.Path) -> None:
    import numpy as np
    value = onnx.helper.make_tensor_value_info
    model = model_of([onnx.helper.make_node("Expand", ["x", "shape"], ["a"]), onnx.helper.make_node("Neg", ["a"], ["b"]),
                      onnx.helper.make_node("Exp", ["b"], ["y"])],
                     [value("x", 1, [1, 8]), value("shape", 7, [2])], [value("y", 1, [None, 8])])
    onnx.save(model, tmp_path / "m.onnx")
    shape = np.array([4, 8], np.int64)
    found = onnxmem.report(tmp_path / "m.onnx", values={"shape": shape})
    expected = json.loads(command("report", tmp_path / "m.onnx", "--value", "shape=4,8", "--json", "-"))
    assert without_times(found.json()) == without_times(expected)
    assert {one.name: one.shape for one in found.tensors}["y"] == (4, 8)
    x = np.ones((1, 8), np.float32)
    session = onnxmem.Session(model, values={"shape": shape})
    assert session.run({"x": x})["y"].shape == session.run({"x": x, "shape": shape})["y"].shape == (4, 8)
    with pytest.raises(onnxmem.UsageError, match="no input z; its inputs are x, shape"):
        onnxmem.report(model, values={"z": shape})


def test_failures_are_exceptions_by_status(models: pathlib.Path, tmp_path: pathlib.Path) -> None:
    path = models / "trained.onnx"
    with pytest.raises(onnxmem.FileError) as missing:
        onnxmem.report(tmp_path / "missing.onnx")
    assert missing.value.status is onnxmem.Status.IO and isinstance(missing.value, OSError)
    with pytest.raises(onnxmem.MalformedError):
        onnxmem.report(b"\xff\xff\xff")
    with pytest.raises(onnxmem.BudgetError, match="16592|budget|limit"):
        onnxmem.report(path, budget=100)
    with pytest.raises(onnxmem.BudgetError):
        onnxmem.report(path, budget=6143, budget_of="arena")
    with pytest.raises(onnxmem.PassError, match="no-such-pass"):
        onnxmem.report(path, passes="no-such-pass")
    with pytest.raises(onnxmem.UsageError, match="make no plan"):
        onnxmem.report(path, passes="shapes")
    wrong: list[Any] = [{"target": "gpu"}, {"io": "here"}, {"io": {"nothing": "arena"}}, {"align": 24}, {"flags": {"no-such-flag": 1}},
                {"budget_of": "all"}, {"rematerialize": 0}, {"arenas": [{"name": "a"}, {"name": "b"}]}]
    for bad in wrong:
        with pytest.raises(onnxmem.UsageError):
            onnxmem.report(path, **bad)
    with pytest.raises(TypeError, match="no option 'colour'"):
        onnxmem.report(path, colour=1)   # type: ignore[call-arg]


def test_wrong_plans_are_refused(models: pathlib.Path) -> None:
    with pytest.raises(onnxmem.InvalidModelError, match="contains no plan"):
        onnxmem.verify(models / "trained.onnx")
    model = onnxmem.plan(onnx.load(models / "trained.onnx"), annotate="model")
    assert isinstance(model, onnx.ModelProto)
    onnxmem.verify(model)
    model.graph.node[0].name = "another"
    model.graph.node[1].op_type = "Neg"
    with pytest.raises(onnxmem.StalePlanError):
        onnxmem.verify(model)


def test_strip(models: pathlib.Path) -> None:
    stripped = onnxmem.strip(onnxmem.plan(models / "trained.onnx"))
    with pytest.raises(onnxmem.InvalidModelError, match="contains no plan"):
        onnxmem.verify(stripped)
    assert isinstance(onnxmem.strip(onnx.load(models / "trained.onnx")), onnx.ModelProto)


def test_progress_is_told_and_can_fail(models: pathlib.Path) -> None:
    told: list[tuple[str, int, int]] = []
    onnxmem.report(models / "trained.onnx", progress=lambda what, best, bound: told.append((what, best, bound)))
    assert told and told[-1][0] == "packing" and told[-1][1] >= told[-1][2]

    def fails(what: str, best: int, bound: int) -> None:
        raise KeyError(what)
    with pytest.raises(KeyError):
        onnxmem.report(models / "trained.onnx", progress=fails)


def test_warnings_are_logged(caplog: Any) -> None:
    model = onnx.helper.make_model(onnx.helper.make_graph(
        [onnx.helper.make_node("Mystery", ["x"], ["y"], domain="some.where"), onnx.helper.make_node("Relu", ["y"], ["z"])], "g",
        [onnx.helper.make_tensor_value_info("x", 1, [2])], [onnx.helper.make_tensor_value_info("z", 1, [2])]),
        opset_imports=[onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("some.where", 1)], ir_version=8)
    with caplog.at_level(logging.INFO, "onnxmem"), pytest.raises(onnxmem.UnsupportedError, match="Mystery"):
        onnxmem.report(model)
