# SPDX-License-Identifier: Apache-2.0
"""Sessions: what can be bound in place is; defaults, states, types, limits; DLPack."""
from __future__ import annotations

import pathlib
import threading
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxmem
from conftest import filled
from onnxmem._program import inputs_of


def test_a_plan_in_the_model_is_used(models: pathlib.Path) -> None:
    data = onnxmem.plan(models / "trained.onnx", io="arena")
    session = onnxmem.Session(data)
    values = filled(session)
    found = session.run(values)["digit"]
    assert session.stats.arena_bytes == onnxmem.verify(data).arenas[0].bytes
    assert found.tobytes() == onnxmem.Session(models / "trained.onnx", target="generic").run(values)["digit"].tobytes()
    assert session.report().json()["target"] == "generic"
    assert onnxmem.Session(data, target="cpu").report().json()["target"] == "cpu"


def small(nodes: list[onnx.NodeProto], inputs: list[Any], outputs: list[Any], **more: Any) -> onnx.ModelProto:
    """A model of these nodes; inputs and outputs are (name, type, shape) or infos."""
    infos = [[one if isinstance(one, onnx.ValueInfoProto) else helper.make_tensor_value_info(*one) for one in some]
             for some in (inputs, outputs)]
    graph = helper.make_graph(nodes, "g", infos[0], infos[1], **more)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def address_of(array: Any) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


IDENTITY = [helper.make_node("Relu", ["x"], ["y"])]


def test_arrays_are_bound_in_place() -> None:
    model = small(IDENTITY, [("x", TensorProto.FLOAT, [64])], [("y", TensorProto.FLOAT, [64])])
    session = onnxmem.Session(model)
    x, y = np.linspace(-1, 1, 64, dtype=np.float32), np.zeros(64, np.float32)
    found = session.run({"x": x}, {"y": y})
    assert found["y"] is y
    assert (y == np.maximum(x, 0)).all()
    executor = session._need_last()
    assert executor.bound[0].tensor.data == address_of(x)
    assert executor.result(0).data == address_of(y)
    # The result of a run without an array is new memory, which no later run changes.
    first = session.run({"x": x})["y"]
    assert session._need_last().result(0).data == address_of(first)
    kept = first.copy()
    second = session.run({"x": -x})["y"]
    assert address_of(second) != address_of(first) and (first == kept).all()


def test_arrays_that_are_not_contiguous_are_copied() -> None:
    model = small(IDENTITY, [("x", TensorProto.FLOAT, [4, 3])], [("y", TensorProto.FLOAT, [4, 3])])
    session = onnxmem.Session(model)
    x = np.arange(12, dtype=np.float32).reshape(3, 4).T
    assert (session.run({"x": x})["y"] == x).all()
    assert session._need_last().bound[0].tensor.data != address_of(x)
    odd = np.zeros(4 * 12 + 1, np.uint8)[1:].view(np.float32).reshape(4, 3)
    odd[:] = x
    assert (session.run({"x": odd})["y"] == x).all()
    with pytest.raises(onnxmem.ShapeError, match="contiguous"):
        session.run({"x": x}, {"y": np.empty((3, 4), np.float32).T})
    reading = np.empty((4, 3), np.float32)
    reading.flags.writeable = False
    with pytest.raises(onnxmem.ShapeError, match="writable"):
        session.run({"x": x}, {"y": reading})


def test_wrong_arrays_are_refused() -> None:
    model = small(IDENTITY, [("x", TensorProto.FLOAT, [4])], [("y", TensorProto.FLOAT, [4])])
    session = onnxmem.Session(model)
    x = np.zeros(4, np.float32)
    with pytest.raises(onnxmem.ShapeError, match="input x must be float32, not float64"):
        session.run({"x": np.zeros(4)})
    with pytest.raises(onnxmem.Error, match=r"\[4\]"):
        session.run({"x": np.zeros(5, np.float32)})
    with pytest.raises(onnxmem.UsageError, match="no input z"):
        session.run({"z": x})
    with pytest.raises(onnxmem.UsageError, match="no output z"):
        session.run({"x": x}, {"z": x})
    with pytest.raises(onnxmem.RunError, match="input x has no value"):
        session.run()
    with pytest.raises(onnxmem.ShapeError, match="must be written to float32, not float64"):
        session.run({"x": x}, {"y": np.zeros(4)})
    with pytest.raises(onnxmem.ShapeError, match="must be written to an array of the shape"):
        session.run({"x": x}, {"y": np.zeros(5, np.float32)})
    assert (session.run({"x": [1, -2, 3.5, -4]})["y"] == [1, 0, 3.5, 0]).all()


def test_open_dims_are_planned_by_shape() -> None:
    model = small(IDENTITY, [("x", TensorProto.FLOAT, ["n", "seq"])], [("y", TensorProto.FLOAT, ["n", "seq"])])
    session = onnxmem.Session(model)
    with pytest.raises(onnxmem.UsageError, match="first run"):
        session.report()
    for n in list(range(1, 12)) + [1]:
        x = np.full((n, 2 * n), -1 + 2 * (n % 2), np.float32)
        assert (session.run({"x": x})["y"] == np.maximum(x, 0)).all()
    assert len(session._executors) == 8
    assert session.stats.runs == 1


def test_planned_ranges_serve_all_sizes() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["b"]), helper.make_node("Exp", ["b"], ["y"])]
    model = small(nodes, [("x", TensorProto.FLOAT, ["n"])], [("y", TensorProto.FLOAT, ["n"])])
    session = onnxmem.Session(onnxmem.plan(model, ranges={"n": (1, 50)}))
    for n in (1, 7, 50):
        x = np.linspace(-1, 1, n, dtype=np.float32)
        np.testing.assert_allclose(session.run({"x": x})["y"], np.exp(-np.maximum(x, 0)), rtol=1e-5)
    with pytest.raises(onnxmem.ShapeError):
        session.run({"x": np.zeros(51, np.float32)})


def test_a_dim_follows_from_another() -> None:
    model = small([helper.make_node("Add", ["x", "z"], ["y"])], [(k, TensorProto.FLOAT, [d]) for k, d in (("x", "a"), ("z", "b"))], [("y", TensorProto.FLOAT, ["a"])])
    session = onnxmem.Session(onnxmem.plan(model, dims={"b": "a"}, ranges={"a": (2, 9)}))
    for n in (2, 9):
        assert (session.run({"x": np.ones(n, np.float32), "z": np.ones(n, np.float32)})["y"] == 2).all()
    with pytest.raises(onnxmem.UsageError, match="no other open dim"):
        onnxmem.plan(model, dims={"b": "c"})


def test_defaults_come_back() -> None:
    weight = onnx.numpy_helper.from_array(np.full(3, 2, np.float32), "w")
    model = small([helper.make_node("Mul", ["x", "w"], ["y"])], [("x", TensorProto.FLOAT, [3]), ("w", TensorProto.FLOAT, [3])],
                  [("y", TensorProto.FLOAT, [3])], initializer=[weight])
    session = onnxmem.Session(model)
    x = np.arange(3, dtype=np.float32)
    assert [one.has_default for one in session.inputs] == [False, True]
    assert not inputs_of(session._need_last().planned)[1].is_overridable    # a constant, folded and packed like others
    for _ in range(2):
        assert (session.run({"x": x})["y"] == 2 * x).all()
        assert (session.run({"x": x, "w": np.full(3, 5, np.float32)})["y"] == 5 * x).all()
    assert len(session._executors) == 2


def test_defaults_of_states_are_no_constants() -> None:
    start = onnx.numpy_helper.from_array(np.full(3, 2, np.float32), "w")
    model = small([helper.make_node("Add", ["x", "w"], ["y"])], [("x", TensorProto.FLOAT, [3]), ("w", TensorProto.FLOAT, [3])],
                  [("y", TensorProto.FLOAT, [3])], initializer=[start])
    meta = model.metadata_props.add()
    meta.key, meta.value = "org.onnxmem.io_alias", '{"y": "w"}'
    session = onnxmem.Session(model)
    x = np.arange(3, dtype=np.float32)
    y = session.run({"x": x})["y"]
    assert (y == x + 2).all() and (session.run({"x": x, "w": y})["y"] == 2 * x + 2).all()
    assert (session.run({"x": x})["y"] == x + 2).all() and len(session._executors) == 1


@pytest.fixture
def stateful() -> onnx.ModelProto:
    """A model whose output is the next value of an input."""
    nodes = [helper.make_node("Add", ["state", "x"], ["next"])]
    model = small(nodes, [("state", TensorProto.FLOAT, [8]), ("x", TensorProto.FLOAT, [8])], [("next", TensorProto.FLOAT, [8])])
    meta = model.metadata_props.add()
    meta.key, meta.value = "org.onnxmem.io_alias", '{"next": "state"}'
    return model


def test_states_are_copied(stateful: onnx.ModelProto) -> None:
    session = onnxmem.Session(stateful)
    state, x = np.zeros(8, np.float32), np.ones(8, np.float32)
    assert session._need_last().aliased == {0: 0}
    found = session.run({"state": state, "x": x})["next"]
    assert (found == 1).all() and (state == 0).all()
    assert (session.run({"state": found, "x": x})["next"] == 2).all() and (found == 1).all()
    room = np.empty(8, np.float32)
    assert session.run({"state": found, "x": x}, {"next": room})["next"] is room and (room == 2).all()


def test_states_are_overwritten_where_that_is_allowed(stateful: onnx.ModelProto) -> None:
    session = onnxmem.Session(stateful, in_place=True)
    state, x = np.zeros(8, np.float32), np.ones(8, np.float32)
    for step in range(1, 4):
        assert session.run({"state": state, "x": x})["next"] is state
        assert (state == step).all() and session.stats.copied_bytes == 0
    state.flags.writeable = False
    assert (session.run({"state": state, "x": x})["next"] == 4).all() and (state == 3).all()
    tensor = Foreign(np.zeros(8, np.float32))
    assert session.run({"state": tensor, "x": x})["next"] is tensor and (tensor.inner.array == 1).all()


@pytest.mark.parametrize("kind,dtype", [
    (TensorProto.BFLOAT16, ml_dtypes.bfloat16), (TensorProto.INT4, ml_dtypes.int4), (TensorProto.UINT4, ml_dtypes.uint4),
    (TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn), (TensorProto.FLOAT16, np.float16), (TensorProto.BOOL, np.bool_),
    (TensorProto.INT64, np.int64), (TensorProto.DOUBLE, np.float64), (TensorProto.UINT8, np.uint8)])
@pytest.mark.parametrize("n", [1, 5, 8])
def test_element_types(kind: int, dtype: Any, n: int) -> None:
    model = small([helper.make_node("Reshape", ["x", "s"], ["y"])], [("x", kind, [n])], [("y", kind, [n, 1])],
                  initializer=[onnx.numpy_helper.from_array(np.array([n, 1], np.int64), "s")])
    x = (np.arange(n) % 2 - (0 if np.dtype(dtype).kind in "ub" or "uint" in np.dtype(dtype).name else 1)).astype(dtype)
    y = onnxmem.Session(model).run({"x": x})["y"]
    assert y.dtype == x.dtype and y.shape == (n, 1)
    assert (y.reshape(-1) == x).all()


def test_strings() -> None:
    model = small([helper.make_node("StringConcat", ["x", "x"], ["y"])], [("x", TensorProto.STRING, [2])],
                  [("y", TensorProto.STRING, [2])])
    session = onnxmem.Session(model)
    assert session.run({"x": ["a", "ß"]})["y"].tolist() == ["aa", "ßß"]
    assert session.run({"x": np.array(["one", ""])})["y"].tolist() == ["oneone", ""]


def test_sequences_and_optionals() -> None:
    element = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    sequence = helper.make_value_info("x", helper.make_sequence_type_proto(element))
    model = small([helper.make_node("ConcatFromSequence", ["x"], ["y"], axis=0),
                   helper.make_node("SplitToSequence", ["y"], ["z"], axis=0)], [sequence],
                  [("y", TensorProto.FLOAT, [None]), helper.make_value_info("z", helper.make_sequence_type_proto(
                      helper.make_tensor_type_proto(TensorProto.FLOAT, None)))])
    session = onnxmem.Session(model)
    found = session.run({"x": [np.ones(2, np.float32), np.zeros(2, np.float32)]})
    assert found["y"].tolist() == [1, 1, 0, 0]
    assert [one.tolist() for one in found["z"]] == [[1], [1], [0], [0]]
    optional = helper.make_value_info("x", helper.make_optional_type_proto(element))
    model = small([helper.make_node("OptionalHasElement", ["x"], ["y"])], [optional], [("y", TensorProto.BOOL, [])])
    session = onnxmem.Session(model)
    assert session.run({"x": None})["y"].tolist() is False
    assert session.run({"x": np.ones(2, np.float32)})["y"].tolist() is True


def test_empty_and_scalar_tensors() -> None:
    model = small(IDENTITY, [("x", TensorProto.FLOAT, [0, 3])], [("y", TensorProto.FLOAT, [0, 3])])
    assert onnxmem.Session(model).run({"x": np.empty((0, 3), np.float32)})["y"].shape == (0, 3)
    model = small(IDENTITY, [("x", TensorProto.FLOAT, [])], [("y", TensorProto.FLOAT, [])])
    assert onnxmem.Session(model).run({"x": 2})["y"].tolist() == 2


def test_threads_share_a_session(models: pathlib.Path) -> None:
    session = onnxmem.Session(models / "trained.onnx")
    cases = [filled(session, seed) for seed in range(8)]
    expected = [session.run(one)["digit"].tobytes() for one in cases]
    wrong: list[int] = []

    def work(k: int) -> None:
        for _ in range(20):
            if session.run(cases[k])["digit"].tobytes() != expected[k]:
                wrong.append(k)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


def test_profile_and_stats(models: pathlib.Path) -> None:
    session = onnxmem.Session(models / "trained.onnx", profile=True)
    session.run(filled(session))
    stats = session.stats
    assert stats.runs == 1 and stats.arena_bytes == session.report().arena_bytes
    assert sum(one.calls for one in stats.ops) == stats.steps > 0


def test_limits(models: pathlib.Path) -> None:
    with pytest.raises(onnxmem.OutOfMemoryError):
        onnxmem.Session(models / "trained.onnx", max_memory=100)
    session = onnxmem.Session(models / "loop_swap.onnx", max_iterations=1)
    with pytest.raises(onnxmem.RunError, match="iterations"):
        session.run(filled(session, open_dim=5) | {name: np.array(5) for name in ("n", "trips") if name in session._index})


def test_caches_are_written(models: pathlib.Path, tmp_path: pathlib.Path) -> None:
    first = onnxmem.Session(models / "trained.onnx", cache=str(tmp_path))
    values = filled(first)
    expected = first.run(values)["digit"].tobytes()
    assert onnxmem.Session(models / "trained.onnx", cache=str(tmp_path)).run(values)["digit"].tobytes() == expected


# ---- DLPack. ----

class Foreign:
    """A tensor of a package that has nothing but DLPack."""

    def __init__(self, array: Any, dtype: str | None = None) -> None:
        self.inner = onnxmem.DLPackArray(array, dtype)

    def __dlpack__(self, **how: object) -> Any:
        return self.inner.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.inner.__dlpack_device__()


def test_foreign_tensors_are_bound_in_place() -> None:
    from onnxmem import _dlpack
    model = small(IDENTITY, [("x", TensorProto.FLOAT, [16])], [("y", TensorProto.FLOAT, [16])])
    session = onnxmem.Session(model)
    x = np.linspace(-1, 1, 16, dtype=np.float32)
    y = session.run({"x": Foreign(x)})["y"]
    assert session._need_last().bound[0].tensor.data == address_of(x)
    assert (y == np.maximum(x, 0)).all()
    assert len(_dlpack._offered) == 1
    session.run({"x": x})
    assert len(_dlpack._offered) == 0          # given back when another was bound
    with pytest.raises(onnxmem.ShapeError, match="must be float32, not int32"):
        session.run({"x": Foreign(np.zeros(16, np.int32))})
    assert len(_dlpack._offered) == 0


def test_outputs_are_offered_without_a_copy() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    back = np.from_dlpack(onnxmem.DLPackArray(array))
    assert address_of(back) == address_of(array) and back.shape == (2, 3)
    unused = onnxmem.DLPackArray(array).__dlpack__()
    del unused, back
    from onnxmem import _dlpack
    assert len(_dlpack._offered) == 0


def test_bfloat16_goes_by_dlpack() -> None:
    model = small([helper.make_node("Neg", ["x"], ["y"])], [("x", TensorProto.BFLOAT16, [4])], [("y", TensorProto.BFLOAT16, [4])])
    session = onnxmem.Session(model)
    x = np.arange(4).astype(ml_dtypes.bfloat16)
    y = session.run({"x": Foreign(x, "bfloat16")})["y"]
    assert (y == -x).all()
    assert session._need_last().bound[0].tensor.data == address_of(x)


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    model = small(IDENTITY, [("x", TensorProto.FLOAT, [16])], [("y", TensorProto.FLOAT, [16])])
    session = onnxmem.Session(model)
    x = torch.linspace(-1, 1, 16, requires_grad=True)
    out = torch.zeros(16)
    found = session.run({"x": x}, {"y": out})
    executor = session._need_last()
    assert executor.bound[0].tensor.data == x.data_ptr()
    assert executor.result(0).data == out.data_ptr()
    assert found["y"] is out and torch.equal(out, torch.relu(x.detach()))
    y = session.run({"x": x})["y"]
    assert torch.from_dlpack(y).data_ptr() == address_of(y)
    sliced = torch.arange(32, dtype=torch.float32)[::2] - 8
    assert torch.equal(torch.from_dlpack(session.run({"x": sliced})["y"]), torch.relu(sliced))
    half = torch.arange(4).to(torch.bfloat16)
    model = small(IDENTITY, [("x", TensorProto.BFLOAT16, [4])], [("y", TensorProto.BFLOAT16, [4])])
    y = onnxmem.Session(model).run({"x": half})["y"]
    assert torch.equal(torch.from_dlpack(onnxmem.DLPackArray(y)), half)


def test_jax_arrays() -> None:
    jax = pytest.importorskip("jax")
    model = small(IDENTITY, [("x", TensorProto.FLOAT, [16])], [("y", TensorProto.FLOAT, [16])])
    session = onnxmem.Session(model)
    x = jax.numpy.linspace(-1, 1, 16)
    y = session.run({"x": x})["y"]
    assert session._need_last().bound[0].tensor.data == x.unsafe_buffer_pointer()
    assert (y == np.maximum(np.asarray(x), 0)).all()
    assert (jax.dlpack.from_dlpack(y) == y).all()
