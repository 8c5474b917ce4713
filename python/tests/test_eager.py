# SPDX-License-Identifier: Apache-2.0
"""The dynamic graph from Python: calls, gradients, replays, functions of Python, memory of others."""
from __future__ import annotations

import gc
import pathlib
import threading
import weakref
from typing import Any

import numpy as np
import onnx
import pytest

import onnxmem
from onnxmem import Eager, Form, Variable

X = np.asarray([[1, -2, 3], [4, 5, -6]], np.float32)


def test_operators_are_those_of_numpy() -> None:
    eager = Eager()
    x, y = eager.variable(X), np.abs(X) + 1
    left: Any = y    # NumPy's types do not know what leaves the operation to the right
    pairs: list[tuple[Variable, Any]] = [
        (x + y, X + y), (left + x, y + X), (x - 2, X - 2), (2 - x, 2 - X), (x * y, X * y), (3.0 * x, 3 * X), (x / y, X / y), (1 / x, 1 / X),
        (x @ y.T, X @ y.T), (left.T @ x, y.T @ X), (x ** 2, X ** 2), (-x, -X), (abs(x), abs(X)), (x.relu(), np.maximum(X, 0)),
        (x < 0, X < 0), (x <= y, X <= y), (x > y, X > y), (x >= 1, X >= 1), (x.T, X.T), (x.transpose(1, 0), X.T),
        (x.reshape(3, -1), X.reshape(3, -1)), (x.sum(), X.sum()), (x.sum(1), X.sum(1)), (x.mean(0, keepdims=True), X.mean(0, keepdims=True)),
        (x.tanh(), np.tanh(X)), (x.sigmoid(), 1 / (1 + np.exp(-X))), (x.exp(), np.exp(X)), (abs(x).log(), np.log(abs(X))),
        (x.softmax(), np.exp(X) / np.exp(X).sum(1, keepdims=True)),
        (eager.Concat(x, x, axis=1), np.concatenate([X, X], 1)), (eager.call("com.microsoft:QuickGelu", x, attributes={"alpha": 1.0}), X / (1 + np.exp(-X)))]
    for k, (found, wanted) in enumerate(pairs):
        assert found.shape == np.shape(wanted), k
        np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5, err_msg=str(k))
        assert found.dtype == ("bool" if np.asarray(wanted).dtype == bool else "float32")
    assert float(x.sum()) == 5 and int(x.sum()) == 5 and bool(x.sum()) and len(x) == 2 and "float32[2, 3]" in repr(x)
    with pytest.raises(TypeError):
        x + "text"
    with pytest.raises(ValueError):
        x.numpy()[0] = 1


def test_several_outputs_and_omitted_inputs() -> None:
    eager = Eager()
    values, places = eager.TopK(eager.variable(X), np.asarray([2]), outputs=2, axis=-1)
    assert values.numpy().tolist() == [[3, 1], [5, 4]] and places.numpy().tolist() == [[2, 0], [1, 0]]
    assert eager.Clip(eager.variable(X), None, np.float32(1)).numpy().max() == 1
    assert eager.call("Cast", X, attributes={"to": 7}).dtype == "int64"


def test_what_is_wrong_is_said() -> None:
    eager, other = Eager(), Eager()
    x = eager.variable(X)
    with pytest.raises(onnxmem.UnsupportedError, match="Nothing"):
        eager.Nothing(x)
    with pytest.raises(onnxmem.UsageError, match="another Eager"):
        eager.call("Neg", other.variable(X))
    with pytest.raises(onnxmem.Error):
        x @ X
    with pytest.raises(onnxmem.UnsupportedError, match="attribute axis"):
        eager.call("Concat", x, attributes={"axis": object()})
    with pytest.raises(onnxmem.UsageError, match="tape_bytes"):
        Eager(tape_bytes=-1)
    with pytest.raises(AttributeError):
        eager.nothing
    eager.trim()    # of a small array that a refused call was given, a variable was kept
    assert eager.stats.variables == 1


def perceptron(eager: Eager, x: Variable, w: list[Variable]) -> Variable:
    hidden = (x @ w[0]).tanh()
    return ((hidden @ w[1]) ** 2).mean()


def test_training_is_replayed_and_is_the_same_without() -> None:
    random = np.random.default_rng(1)
    first = [random.standard_normal(shape).astype(np.float32) for shape in [(3, 8), (8, 2)]]
    ends, losses = [], []
    for replay in (False, True):
        eager = Eager(replay=replay)
        w = [eager.variable(one, watch=True) for one in first]
        x = eager.variable(X)
        for _ in range(12):
            with eager.record():
                loss = perceptron(eager, x, w)
            loss.backward()
            w = [one - 0.1 * one.grad for one in w if one.grad is not None]
            for one in w:
                one.watch()
            losses.append(loss.item())
        assert (eager.stats.replays > 5) == replay and (eager.stats.replayed > 0) == replay
        assert eager.stats.last_arena_bytes > 0 or not replay
        ends.append([one.numpy() for one in w])
    assert losses[:12] == losses[12:] and losses[11] < losses[0]
    for a, b in zip(*ends):
        assert (a == b).all()


def test_gradients() -> None:
    eager = Eager()
    x, unused = eager.variable(2.0, watch=True), eager.variable(1.0, watch=True)
    with eager.record():
        y = x * x * x
        (first,) = eager.gradient(y, [x])
        assert first is not None
        (second,) = eager.gradient(first, [x])
    assert second is not None and (first.item(), second.item()) == (12, 12)
    with eager.record():
        z = x * eager.variable([1.0, 2.0])
    z.backward(seed=np.asarray([10, 100], np.float64 if z.dtype == "float64" else np.float32))
    assert x.grad is not None and x.grad.item() == 210 and unused.grad is None
    with pytest.raises(onnxmem.Error):
        z.backward()


def test_memory_is_flat_and_results_are_remembered() -> None:
    flat = Eager()
    kept = flat.variable(X)
    for _ in range(1000):
        (kept + 1).relu().numpy()
    assert flat.stats.variables == 2 and flat.stats.peak_bytes < 4096    # `kept`, and that of the number
    eager = Eager(replay=False, result_bytes=1 << 20)
    x = eager.variable(X)
    one, before = eager.variable(np.float32(1)), eager.stats.remembered
    for _ in range(10):
        x + one
    assert eager.stats.remembered == before + 9
    eager.trim()
    assert eager.stats.variables == 2


def test_small_arrays_share_a_variable() -> None:
    eager = onnxmem.Eager(replay=False)
    x = eager.variable(np.arange(12, dtype=np.float32).reshape(4, 3))
    before = eager.stats.variables
    for k in range(4):
        for _ in range(5):
            row = eager.Slice(x, np.asarray([k]), np.asarray([k + 1]), np.asarray([0]))
            assert np.array_equal(row.numpy(), x.numpy()[k:k + 1])
    del row
    assert eager.stats.variables - before <= 5 + 1    # 0 to 4, and the last result
    # What is equal but not the same has variables of its own: zeros by their sign, types, shapes.
    assert np.signbit(eager.Add(eager.variable(np.float32(-0.0)), np.float32(-0.0)).numpy())
    assert not np.signbit(eager.Add(eager.variable(np.float32(-0.0)), np.float32(0.0)).numpy())
    assert np.signbit((eager.variable(np.float32(-0.0)) + -0.0).numpy()) and not np.signbit((eager.variable(np.float32(-0.0)) + 0.0).numpy())
    assert eager.Add(x, np.zeros((1, 1, 1), np.float32)).shape == (1, 4, 3)
    assert eager.Add(x, np.zeros(1, np.float32)).shape == (4, 3)
    assert eager.call("Neg", np.asarray([1], np.int32)).dtype == "int32" and eager.call("Neg", np.asarray([1])).dtype == "int64"
    # An array may change after the call.
    changing = np.asarray([2], np.float32)
    first = x * changing
    changing[0] = 3
    assert np.array_equal(first.numpy(), 2 * x.numpy()) and np.array_equal((x * changing).numpy(), 3 * x.numpy())
    # They are few, and trim() forgets them.
    for k in range(3000):
        eager.Neg(np.asarray([k]))
    assert eager.stats.variables < 1000
    eager.trim()
    assert eager.stats.variables <= before + 3
    # They are not forgotten while the inputs of a call are gathered, which may exceed their number.
    for k in range(1500):
        assert eager.Add(np.asarray([2 * k]), np.asarray([2 * k + 1])).numpy()[0] == 4 * k + 1
    assert np.array_equal((x * changing).numpy(), 3 * x.numpy())


def test_memory_of_others() -> None:
    eager = Eager()
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    gone = weakref.ref(array)
    x = eager.from_dlpack(array)
    address = array.ctypes.data
    assert x.numpy().ctypes.data == address
    strided = eager.from_dlpack(array.T)
    assert strided.shape == (3, 2) and (strided.numpy() == array.T).all() and strided.numpy().ctypes.data != address
    y = x * 2
    out = np.from_dlpack(y)
    assert out.ctypes.data == y.numpy().ctypes.data and out[1, 2] == 10
    del array, strided
    gc.collect()
    assert gone() is not None    # the variable has its elements
    del x, y
    eager.finish()
    gc.collect()
    assert gone() is None and out[1, 2] == 10    # what was lent stays
    del out


def test_elements_outlive_names() -> None:
    elements = (Eager().variable(X) + 1).numpy()
    gc.collect()
    assert (elements == X + 1).all()


def test_functions_of_python() -> None:
    eager = Eager()
    calls: list[str] = []

    def clamp(x: Any) -> Any:
        calls.append("run")
        return np.clip(x, -1, 1)

    def clamp_backward(inputs: list[Any], outputs: list[Any], gradients: list[Any]) -> Any:
        calls.append("backward")
        assert outputs == [None]
        return gradients[0] * (abs(inputs[0]) < 1) * 10
    straight = eager.function("test:Clamp", clamp, clamp_backward)
    for _ in range(6):
        x = eager.variable([0.5, 3.0, -0.25], watch=True)
        with eager.record():
            loss = (straight(x) ** 2).sum()
        loss.backward([x])
        assert x.grad is not None and x.grad.numpy().tolist() == [10, 0, -5]
    assert calls == ["run", "backward"] * 6 and eager.stats.replays > 0
    split = eager.function("test:Split", lambda x: (x[0], x.sum()), outputs=2, infer=lambda x: (Form(x.dtype, x.shape[1:]), Form(x.dtype, ())))
    row, total = split(eager.variable(X))
    assert row.numpy().tolist() == [1, -2, 3] and total.item() == 5
    count = eager.function("test:Count", lambda: np.float32(len(calls)), inputs=0, infer=lambda: Form("float32", ()), pure=False)
    assert [count().item() for _ in range(3)] == [12] * 3
    with pytest.raises(onnxmem.UsageError, match="already"):
        eager.function("test:Clamp", clamp)


def test_functions_that_raise() -> None:
    eager = Eager()
    x = eager.variable(X)

    def fail(x: Any) -> Any:
        raise KeyError("of the function")
    with pytest.raises(KeyError, match="of the function"):
        eager.function("test:Fail", fail)(x)
    with pytest.raises(onnxmem.ShapeError, match=r"\[3\] for output 0"):
        eager.function("test:Shape", lambda x: x[0])(x)
    with pytest.raises(onnxmem.UsageError, match="returned 2 arrays"):
        eager.function("test:Two", lambda x: (x, x))(x)
    with pytest.raises(onnxmem.UsageError, match="element type float"):
        eager.function("test:Type", lambda x: x, infer=lambda x: Form("float", ()))(x)
    assert (x + 0).numpy().tolist() == X.tolist()    # it is as before


def test_functions_that_keep_arrays() -> None:
    """The memory of an array that a function was given is used by others after its call."""
    eager, kept = Eager(), []

    def run(x: Any) -> Any:
        kept.append(x[1:])
        return x * 2

    def copied(x: Any) -> Any:
        kept.append(x.copy())
        return x

    with pytest.raises(onnxmem.UsageError, match="has to keep a copy"):
        eager.function("test:Keeps", run)(eager.variable(X)).numpy()
    kept.clear()
    same = eager.function("test:Copies", copied)
    for k in range(30):
        assert (same(eager.variable(X * k)).numpy() == X * k).all()
    assert all((x == X * k).all() for k, x in enumerate(kept))


def test_functions_that_call_the_graph() -> None:
    """That is refused; what dies meanwhile is freed when no call is running."""
    eager = Eager()
    dying: list[Variable] = []

    def run(x: Any) -> Any:
        dying.clear()
        with pytest.raises(onnxmem.UsageError, match="in use"):
            eager.variable(X)
        return x + 1

    f = eager.function("test:Calls", run)
    for k in range(20):
        dying.append(eager.variable(X))
        y = f(eager.variable(X + k))
        assert ((y * y).numpy() == (X + k + 1) ** 2).all()


def test_programs(models: pathlib.Path) -> None:
    eager = Eager()
    digits = eager.program(models / "digits.onnx")
    graph = onnx.load(models / "digits.onnx").graph
    dims = [one.dim_value or 1 for one in graph.input[0].type.tensor_type.shape.dim]
    image = np.random.default_rng(3).random(dims, np.float32)
    wanted = onnxmem.Session(models / "digits.onnx").run({graph.input[0].name: image})
    np.testing.assert_allclose(digits(eager.variable(image)).numpy(), wanted["digit"], rtol=1e-4, atol=1e-5)


def test_threads() -> None:
    eager = Eager()
    found: list[float] = []

    def work() -> None:
        for _ in range(50):
            found.append((eager.variable(X) * 2).sum().item())
    threads = [threading.Thread(target=work) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert found == [10.0] * 200
