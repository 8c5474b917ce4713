# SPDX-License-Identifier: Apache-2.0
"""The dynamic graph: operators are called one by one, and what repeats becomes a planned program.

>>> eager = onnxmem.Eager()                                     # doctest: +SKIP
>>> w = eager.variable(array, watch=True)                       # doctest: +SKIP
>>> with eager.record():                                        # doctest: +SKIP
...     loss = eager.ReduceMean((x @ w).relu() ** 2, keepdims=0)
>>> loss.backward()                                             # doctest: +SKIP
>>> w = eager.variable(w - 0.1 * w.grad, watch=True)            # doctest: +SKIP
"""
from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _structs as s
from ._context import Context, byref, dims_of, raw
from ._errors import ShapeError, Status, UnsupportedError, UsageError
from ._library import lib

if TYPE_CHECKING:
    import numpy as np

    from ._program import Model

#: What may stand for a variable: a variable, an array, a tensor of DLPack, or a number.
Value = Any


_SMALL, _MOST_CONSTANTS = 64, 512    # bytes of an array of which one variable is kept; and how many of them


@functools.cache
def _handles(n: int) -> Any:
    """The type of a C array of so many handles, at least one."""
    return ctypes.c_void_p * max(n, 1)


@functools.lru_cache(1024)
def _operator_name(name: str) -> bytes:
    return raw(name)


class EagerStats(NamedTuple):
    """Counters and memory of a dynamic graph: ``om_eager_stats`` of the C interface."""

    calls: int              #: of operators
    computed: int           #: calls that were computed one by one
    replayed: int           #: calls that were computed by a compiled program
    replays: int            #: runs of compiled programs
    diverged: int           #: how often deferred calls were computed one by one after all
    programs: int           #: compiled programs that exist
    kernels: int            #: prepared kernels: one for each signature of a call
    variables: int          #: that exist
    pool_bytes: int         #: held by the pool, in use or free
    used_bytes: int         #: of them in use
    peak_bytes: int         #: the most that were in use
    arena_bytes: int        #: arenas of all compiled programs together
    last_arena_bytes: int   #: the arena of the program that ran last
    remembered: int         #: calls whose results were remembered
    result_bytes: int       #: of remembered results
    dropped: int            #: results that were dropped for ``tape_bytes``
    recomputed: int         #: and those that were computed again


class Form(NamedTuple):
    """Type and shape of a tensor, without elements."""

    dtype: str
    shape: tuple[int, ...]


class Eager:
    """A dynamic graph.

    ``replay=False`` computes each call at once and never defers it.  ``max_memory`` limits the bytes of the pool.  ``result_bytes``
    of results are remembered for calls on the same variables; beyond ``tape_bytes``, results that only recorded calls hold are dropped and
    computed again.  ``programs`` limits how many compiled programs are kept.  0 is the default of each.

    Several threads may use it; their calls follow each other.
    """

    def __init__(self, *, opset: int = 0, threads: int = 1, replay: bool = True, max_memory: int = 0, result_bytes: int = 0,
                 tape_bytes: int = 0, programs: int = 0) -> None:
        for name, number in (("max_memory", max_memory), ("result_bytes", result_bytes), ("tape_bytes", tape_bytes),
                             ("programs", programs), ("threads", threads), ("opset", opset)):
            if number < 0:
                raise UsageError(f"{name} is not negative, as {number} is")
        self._context = Context()
        self._lock = threading.RLock()
        self._dead: deque[int] = deque()     # variables that were collected, to be freed by the next call
        self._kept: list[Any] = []           # what functions and programs refer to
        self._shared: dict[int, Any] = {}    # memory of others, by number
        self._release = s.release(self._forget_shared(weakref.ref(self)))
        self._constants: dict[Any, int] = {}    # variables of small arrays and numbers, by what they hold
        self._nshared = self._nwatched = 0
        self._watched: weakref.WeakValueDictionary[int, Variable] = weakref.WeakValueDictionary()
        self._callbacks, self._handle = ctypes.c_void_p(), ctypes.c_void_p()
        self._check(lib.om_callbacks_new(self._context.handle, byref(self._callbacks)))
        self._context.own(lib.om_callbacks_free, self._callbacks)
        options = s.EagerOptions(size=ctypes.sizeof(s.EagerOptions), opset=opset, threads=threads, no_replay=not replay,
                                 max_memory=max_memory, result_bytes=result_bytes, tape_bytes=tape_bytes, programs=programs,
                                 callbacks=self._callbacks)
        self._check(lib.om_eager_new(self._context.handle, byref(options), byref(self._handle)))
        self._context.own(_free_with(self._kept, self._release), self._handle)

    def _check(self, status: int) -> None:
        self._context.check(status)

    @contextlib.contextmanager
    def _entered(self) -> Iterator[None]:
        with self._lock:
            self._bury()
            self._inside += 1
            try:
                yield
            finally:
                self._inside -= 1

    # ---- Variables. ----

    def variable(self, value: Value, *, watch: bool = False) -> Variable:
        """A variable with a copy of the elements of an array, a tensor of DLPack, or numbers; another variable is itself, and if it
        is to be watched a new one, which follows from nothing."""
        if isinstance(value, Variable):
            if value.eager is not self:
                raise UsageError("the variable is of another Eager")
            if not watch:
                return value
            return self.variable(value.numpy(), watch=True)
        from ._tensors import bound
        one = bound("of Eager.variable", value, s.Type(kind=s.TENSOR, elem=0))
        handle = ctypes.c_void_p()
        with self._entered():
            self._check(lib.om_variable_new(self._handle, byref(one.tensor), byref(handle)))
            made = Variable(self, handle)
        return made.watch() if watch else made

    def from_dlpack(self, value: Any, *, watch: bool = False) -> Variable:
        """A variable with the elements of a tensor of another package, or of an array, where they are: they must not change while
        anything follows from them.  Those that are not dense are copied."""
        from ._dlpack import Foreign
        if getattr(value, "requires_grad", False):
            value = value.detach()
        foreign = Foreign(value)
        if foreign.dtype is None:
            raise ShapeError("the tensor has elements of a type that ONNX does not have")
        rank = len(foreign.shape)
        dims, strides = (ctypes.c_int64 * max(rank, 1))(*foreign.shape), (ctypes.c_int64 * max(rank, 1))(*foreign.strides or ())
        handle = ctypes.c_void_p()
        with self._entered():
            self._nshared += 1
            self._shared[self._nshared] = foreign
            memory = s.ForeignMemory(data=foreign.address, type=s.DTYPES.index(foreign.dtype), rank=rank, dim=dims,
                                     stride=strides if foreign.strides else None, release=self._release, arg=self._nshared)
            status = lib.om_variable_wrap(self._handle, byref(memory), byref(handle))
            if status:
                del self._shared[self._nshared]
            self._check(status)
            made = Variable(self, handle)
        return made.watch() if watch else made

    @staticmethod
    def _forget_shared(this: weakref.ref[Eager]) -> Callable[[int], None]:
        def forget(number: int) -> None:
            eager = this()
            if eager is not None:
                eager._shared.pop(number, None)
        return forget

    # ---- Calls. ----

    def call(self, operator: str, *inputs: Value, outputs: int = 1, attributes: dict[str, Any] | None = None) -> Any:
        """Call an operator, ``Conv``, or one of another domain, ``com.microsoft:Gelu``: a variable, or with ``outputs`` a tuple of them.

        None among the inputs is an omitted one.  Numbers in Python take the type of the first input that is a variable.  Attributes are
        integers, floats, strings, arrays, and lists of integers, floats or strings; a float attribute takes a float.
        """
        attrs, keep = _attributes(attributes) if attributes else (None, None)
        found = _handles(outputs)()
        with self._lock:
            self._limit_constants()
            self._bury()
            kept: list[Any] = []
            listed = _handles(len(inputs))(*[one._handle.value if isinstance(one, Variable) and one.eager is self
                                             else self._given(one, inputs, kept) for one in inputs])
            self._inside += 1
            try:
                status = lib.om_eager_run(self._handle, _operator_name(operator), attrs, len(inputs), listed, outputs, found)
            finally:
                self._inside -= 1
            self._context.check(status)
            if outputs == 1:
                return Variable(self, ctypes.c_void_p(found[0]))
            return tuple(Variable(self, ctypes.c_void_p(found[k])) for k in range(outputs))

    def _bury(self) -> None:
        """Free the variables that were collected.  A call that runs a function may be using their memory."""
        if self._inside:
            return
        while self._dead:
            lib.om_variable_free(self._dead.popleft())

    def _limit_constants(self) -> None:
        """Forget variables of small arrays, if there are too many: before a call, whose inputs may be among them."""
        if len(self._constants) > _MOST_CONSTANTS and not self._inside:
            self._dead.extend(self._constants.values())
            self._constants.clear()

    def _given(self, value: Value, beside: Sequence[Value], kept: list[Any]) -> int | None:
        """The handle of an input that is no variable of this graph.  Variables do not change, so that one serves all small arrays with the same elements:
        it is not copied again, and calls on it are known again."""
        import numpy as np
        if value is None:
            return None
        if isinstance(value, (bool, int, float)):
            value = self._number(value, beside)
        if not isinstance(value, np.ndarray) or value.nbytes > _SMALL or value.dtype.kind not in "biuf":
            made = self.variable(value)
            kept.append(made)
            return made._handle.value
        key = (value.dtype, value.shape, value.tobytes())
        handle = self._constants.get(key)
        if handle is None:
            made = self.variable(value)
            handle, made._handle = made._handle.value, ctypes.c_void_p()    # no longer freed with this object
            assert handle is not None
            self._constants[key] = handle
        return handle

    @staticmethod
    def _number(value: bool | int | float, beside: Sequence[Value]) -> Any:
        import numpy as np

        from ._tensors import dtype_of
        like = next((one for one in beside if isinstance(one, Variable)), None)
        return np.asarray(value, dtype_of(like.dtype) if like is not None else None)

    def _input(self, value: Value, beside: Sequence[Value]) -> Variable:
        return self.variable(self._number(value, beside) if isinstance(value, (bool, int, float)) else value)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """``eager.Conv(x, w, pads=[1, 1, 1, 1])``: operators of ai.onnx as methods, attributes by name."""
        if not name[:1].isupper():
            raise AttributeError(f"Eager has no attribute {name}")

        def operator(*inputs: Value, outputs: int = 1, **attributes: Any) -> Any:
            return self.call(name, *inputs, outputs=outputs, attributes=attributes)
        return operator

    def program(self, model: Model) -> Callable[..., Any]:
        """A model as an operator: a function of variables that returns one, or a tuple.  It is planned for each set of shapes.  No
        gradient passes through."""
        from ._program import Program, inputs_of, outputs_of
        program = Program(model, {})
        nout = len(outputs_of(program.loaded))
        self._kept.append(program)

        def run(*inputs: Value) -> Any:
            names = inputs_of(program.loaded)
            given = [None if one is None else self._input(one, inputs) for one in inputs]
            given += [None] * (len(names) - len(given))
            listed = (ctypes.c_void_p * max(len(given), 1))(*(None if one is None else one._handle.value for one in given))
            found = (ctypes.c_void_p * max(nout, 1))()
            with self._entered():
                self._check(lib.om_eager_run_program(self._handle, program.loaded, len(given), listed, nout, found))
                made = tuple(Variable(self, ctypes.c_void_p(one)) for one in found)
            return made[0] if nout == 1 else made
        return run

    def finish(self) -> None:
        """Compute what is deferred; a sequence of calls ends here."""
        with self._entered():
            self._check(lib.om_eager_finish(self._handle))

    def trim(self) -> None:
        """Forget compiled programs and remembered results, and give free memory back."""
        with self._entered():
            if self._inside == 1:    # else a call is running, whose inputs may be among them
                for handle in self._constants.values():
                    lib.om_variable_free(handle)
                self._constants.clear()
            self._check(lib.om_eager_trim(self._handle))

    @property
    def stats(self) -> EagerStats:
        """What was computed, replayed and remembered, and how much memory there is."""
        with self._entered():
            found = lib.om_eager_get_stats(self._handle).contents
            return EagerStats(*(getattr(found, name) for name in EagerStats._fields))

    # ---- Gradients. ----

    @contextlib.contextmanager
    def record(self) -> Iterator[None]:
        """Calls in this context are recorded, if they depend on a variable that is watched."""
        self._record(1)
        try:
            yield
        finally:
            self._record(-1)

    _depth = 0
    _inside = 0    # calls of the library that are running: one, or more where a function calls the dynamic graph

    def _record(self, more: int) -> None:
        with self._entered():
            self._depth += more
            lib.om_eager_record(self._handle, self._depth > 0)

    def gradient(self, loss: Variable, wrt: Sequence[Variable], seed: Value = None) -> list[Variable | None]:
        """The gradients of a loss by these variables; None: it does not depend on it.  ``seed`` is the gradient of the loss, and needed if
        that has several elements.  In :meth:`record`, they are recorded, too."""
        first = None if seed is None else self._input(seed, [loss])
        listed = (ctypes.c_void_p * max(len(wrt), 1))(*(one._handle.value for one in wrt))
        found = (ctypes.c_void_p * max(len(wrt), 1))()
        with self._entered():
            self._check(lib.om_eager_gradient(self._handle, loss._handle, None if first is None else first._handle, len(wrt), listed, found))
            return [None if not found[k] else Variable(self, ctypes.c_void_p(found[k])) for k in range(len(wrt))]

    def _watch(self, variable: Variable) -> None:
        with self._entered():
            lib.om_variable_watch(variable._handle)
            self._nwatched += 1
            self._watched[self._nwatched] = variable

    # ---- Functions. ----

    def function(self, name: str, run: Callable[..., Any], backward: Callable[..., Any] | None = None, *, inputs: int = 1, outputs: int = 1,
                 infer: Callable[..., Any] | None = None, pure: bool = True, reads_inputs: Sequence[int] | None = None,
                 reads_outputs: Sequence[int] = ()) -> Callable[..., Any]:
        """A function of arrays as an operator ``DOMAIN:NAME``, with a gradient of its own; it returns what calls it.

        ``run`` takes read-only arrays, and returns an array, or a tuple of them.  Arrays are the memory of the call: what is kept after it has to be
        a copy, and keeping an array itself is an error.  ``infer`` takes a :class:`Form` of each input, and
        returns one for each output; by default all are like the first input.  ``backward(inputs, outputs, gradients)`` takes lists, in which None is what
        it does not read (``reads_inputs``, by default all, and ``reads_outputs``) or an output that no gradient reaches; it returns the gradient of each
        input, or None for zero.  A function that is not ``pure`` is called where the call is, each time, and ends the sequence of calls.
        """
        reads = range(inputs) if reads_inputs is None else reads_inputs
        calls = _Functions(self._context, run, backward, infer, inputs, outputs)
        struct = s.Callback(size=ctypes.sizeof(s.Callback), name=raw(name), nin=inputs, nout=outputs, is_pure=pure, run=calls.run,
                            infer=calls.infer, backward=calls.backward, backward_inputs=sum(1 << k for k in set(reads)),
                            backward_outputs=sum(1 << k for k in set(reads_outputs)))
        with self._entered():
            self._check(lib.om_callbacks_add(self._context.handle, self._callbacks, byref(struct)))
            self._kept.append(calls)
        return lambda *given, **attributes: self.call(name, *given, outputs=outputs, attributes=attributes)


def _free_with(*kept: Any) -> Callable[[Any], None]:
    """Frees a dynamic graph, while what its functions refer to is there."""
    def free(handle: Any) -> None:
        lib.om_eager_free(handle)
        del kept_here[:]
    kept_here = list(kept)
    return free


class Variable:
    """A tensor of a dynamic graph.  It does not change; it is read by :meth:`numpy`, and by what takes arrays or tensors of DLPack."""

    __slots__ = ("eager", "_handle", "grad", "__weakref__")
    __array_priority__ = 1000
    __array_ufunc__ = None    # an array on the left leaves the operation to the variable

    def __init__(self, eager: Eager, handle: ctypes.c_void_p) -> None:
        self.eager, self._handle = eager, handle
        #: The gradient that the last :meth:`backward` found; None: it found none.
        self.grad: Variable | None = None

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None and handle.value:
            self.eager._dead.append(handle.value)

    # ---- What it is. ----

    def _form(self) -> s.Tensor:
        found: s.Tensor = lib.om_variable_form(self._handle).contents
        return found

    @property
    def dtype(self) -> str:
        """The element type, by its name in ONNX."""
        return s.DTYPES[self._form().type]

    @property
    def shape(self) -> tuple[int, ...]:
        """The dims."""
        return tuple(int(dim) for dim in dims_of(self._form().shape) or () if isinstance(dim, int))

    def __repr__(self) -> str:
        return f"<onnxmem.Variable {self.dtype}{list(self.shape)}>"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a variable of one element has no length")
        return self.shape[0]

    # ---- Its elements. ----

    def numpy(self) -> np.ndarray[Any, Any]:
        """Its elements, which are computed now if they were deferred: where they are, read-only; a copy, if the type is packed."""
        import numpy as np

        from ._tensors import dtype_of, is_packed, taken
        found = ctypes.POINTER(s.Tensor)()
        with self.eager._entered():
            self.eager._check(lib.om_variable_read(self._handle, byref(found)))
        one, name = found.contents, self.dtype
        if is_packed(name):
            copy: np.ndarray[Any, Any] = taken(one, s.Type(kind=s.TENSOR, elem=one.type))
            return copy
        dtype, shape = dtype_of(name), self.shape
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        if not size:
            return np.empty(shape, dtype)
        memory: Any = (ctypes.c_char * size).from_address(one.data)
        memory._owner = self    # it lives as long as arrays of its elements
        array: np.ndarray[Any, Any] = np.frombuffer(memory, dtype).reshape(shape)
        array.flags.writeable = False
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = self.numpy()
        return array.astype(dtype or array.dtype) if copy or (dtype is not None and dtype != array.dtype) else array

    def __dlpack__(self, **unused: object) -> Any:
        from ._dlpack import offer
        return offer(self.numpy(), self.dtype)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def item(self) -> Any:
        """Its only element, as a number of Python."""
        return self.numpy().item()

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    # ---- Gradients. ----

    def watch(self) -> Variable:
        """Gradients by this variable may be asked for; it is returned."""
        self.eager._watch(self)
        return self

    def backward(self, wrt: Sequence[Variable] | None = None, seed: Value = None) -> None:
        """Set ``grad`` of these variables, by default of all that are watched, to the gradient of this one by them; None: it does not depend
        on it.  Gradients of earlier calls are replaced, not added to."""
        by = list(self.eager._watched.values()) if wrt is None else list(wrt)
        for one, grad in zip(by, self.eager.gradient(self, by, seed)):
            one.grad = grad

    # ---- Operators. ----

    def _two(self, operator: str, other: Value, swap: bool = False) -> Any:
        if not isinstance(other, (Variable, int, float)) and not hasattr(other, "__array__") and not hasattr(other, "__dlpack__"):
            return NotImplemented
        return self.eager.call(operator, *((other, self) if swap else (self, other)))

    def __add__(self, other: Value) -> Variable:
        return self._two("Add", other)  # type: ignore[no-any-return]

    def __radd__(self, other: Value) -> Variable:
        return self._two("Add", other, True)  # type: ignore[no-any-return]

    def __sub__(self, other: Value) -> Variable:
        return self._two("Sub", other)  # type: ignore[no-any-return]

    def __rsub__(self, other: Value) -> Variable:
        return self._two("Sub", other, True)  # type: ignore[no-any-return]

    def __mul__(self, other: Value) -> Variable:
        return self._two("Mul", other)  # type: ignore[no-any-return]

    def __rmul__(self, other: Value) -> Variable:
        return self._two("Mul", other, True)  # type: ignore[no-any-return]

    def __truediv__(self, other: Value) -> Variable:
        return self._two("Div", other)  # type: ignore[no-any-return]

    def __rtruediv__(self, other: Value) -> Variable:
        return self._two("Div", other, True)  # type: ignore[no-any-return]

    def __matmul__(self, other: Value) -> Variable:
        return self._two("MatMul", other)  # type: ignore[no-any-return]

    def __rmatmul__(self, other: Value) -> Variable:
        return self._two("MatMul", other, True)  # type: ignore[no-any-return]

    def __pow__(self, other: Value) -> Variable:
        return self._two("Pow", other)  # type: ignore[no-any-return]

    def __rpow__(self, other: Value) -> Variable:
        return self._two("Pow", other, True)  # type: ignore[no-any-return]

    def __lt__(self, other: Value) -> Variable:
        return self._two("Less", other)  # type: ignore[no-any-return]

    def __le__(self, other: Value) -> Variable:
        return self._two("LessOrEqual", other)  # type: ignore[no-any-return]

    def __gt__(self, other: Value) -> Variable:
        return self._two("Greater", other)  # type: ignore[no-any-return]

    def __ge__(self, other: Value) -> Variable:
        return self._two("GreaterOrEqual", other)  # type: ignore[no-any-return]

    def _one(self, operator: str, **attributes: Any) -> Variable:
        return self.eager.call(operator, self, attributes=attributes)  # type: ignore[no-any-return]

    def __neg__(self) -> Variable:
        return self._one("Neg")

    def __abs__(self) -> Variable:
        return self._one("Abs")

    def relu(self) -> Variable:
        """Relu."""
        return self._one("Relu")

    def tanh(self) -> Variable:
        """Tanh."""
        return self._one("Tanh")

    def sigmoid(self) -> Variable:
        """Sigmoid."""
        return self._one("Sigmoid")

    def exp(self) -> Variable:
        """Exp."""
        return self._one("Exp")

    def log(self) -> Variable:
        """Log."""
        return self._one("Log")

    def softmax(self, axis: int = -1) -> Variable:
        """Softmax over an axis."""
        return self._one("Softmax", axis=axis)

    def transpose(self, *perm: int) -> Variable:
        """The axes in another order; without one, in reverse."""
        return self._one("Transpose", **({"perm": list(perm)} if perm else {}))

    @property
    def T(self) -> Variable:
        """The axes in reverse."""
        return self.transpose()

    def reshape(self, *shape: int) -> Variable:
        """The elements in another shape, of which one dim may be -1."""
        import numpy as np
        return self.eager.call("Reshape", self, np.asarray(shape, np.int64))  # type: ignore[no-any-return]

    def sum(self, *axes: int, keepdims: bool = False) -> Variable:
        """The sum over axes; without any, over all."""
        return self._reduced("ReduceSum", axes, keepdims)

    def mean(self, *axes: int, keepdims: bool = False) -> Variable:
        """The mean over axes; without any, over all."""
        return self._reduced("ReduceMean", axes, keepdims)

    def _reduced(self, operator: str, axes: tuple[int, ...], keepdims: bool) -> Variable:
        import numpy as np
        given = [np.asarray(axes, np.int64)] if axes else []
        return self.eager.call(operator, self, *given, attributes={"keepdims": int(keepdims)})  # type: ignore[no-any-return]


# ---- Attributes. ----

_FLOAT, _INT, _STRING, _TENSOR, _FLOATS, _INTS, _STRINGS = 1, 2, 3, 4, 6, 7, 8


def _attributes(given: dict[str, Any]) -> tuple[Any, list[Any]]:
    """A list for the library, and what it refers to."""
    if not given:
        return None, []
    attrs, keep = (s.Attr * (len(given) + 1))(), []
    for k, (name, value) in enumerate(given.items()):
        kind, n, elements = _elements(name, value)
        keep.append(elements)
        at = elements if isinstance(elements, ctypes.c_void_p) else ctypes.cast(elements, ctypes.c_void_p)
        attrs[k] = s.Attr(name=raw(name), kind=kind, n=n, i=at)
    return attrs, keep


def _elements(name: str, value: Any) -> tuple[int, int, Any]:
    if isinstance(value, (bool, int)):
        return _INT, 1, (ctypes.c_int64 * 1)(value)
    if isinstance(value, float):
        return _FLOAT, 1, (ctypes.c_float * 1)(value)
    if isinstance(value, (str, bytes)):
        return _STRING, 1, _strings([value])
    if isinstance(value, (list, tuple)):
        if all(isinstance(one, (bool, int)) for one in value):
            return _INTS, len(value), (ctypes.c_int64 * max(len(value), 1))(*value)
        if all(isinstance(one, (int, float)) for one in value):
            return _FLOATS, len(value), (ctypes.c_float * max(len(value), 1))(*value)
        if all(isinstance(one, (str, bytes)) for one in value):
            return _STRINGS, len(value), _strings(value)
    if hasattr(value, "__array__"):
        from ._tensors import bound
        one = bound(f"attribute {name}", value, s.Type(kind=s.TENSOR, elem=0))
        tensors: Any = (s.Tensor * 1)(one.tensor)
        tensors._owner = one
        return _TENSOR, 1, tensors
    raise UnsupportedError(f"attribute {name} is neither numbers nor strings nor an array")


def _strings(values: Sequence[str | bytes]) -> Any:
    encoded = [one if isinstance(one, bytes) else raw(one) for one in values]
    strings: Any = (s.String * max(len(encoded), 1))()
    for k, one in enumerate(encoded):
        strings[k] = s.String(data=ctypes.cast(ctypes.c_char_p(one), ctypes.c_void_p), size=len(one))
    strings._owner = encoded
    return strings


# ---- Functions of Python as operators. ----

class _Functions:
    """The functions of an operator as the library calls them.  What one raises is raised by the call that led to it, in place of a message."""

    def __init__(self, context: Context, run: Callable[..., Any], backward: Callable[..., Any] | None, infer: Callable[..., Any] | None,
                 nin: int, nout: int) -> None:
        self._context, self._nin, self._nout = weakref.ref(context), nin, nout
        self.run = s.callback(lambda call: self._told(call, lambda c: _lend(c, lambda arrays: _store(c, run(*arrays)))))
        self.infer = s.callback(lambda call: self._told(call, lambda c: _infer(c, infer))) if infer else s.callback()
        self.backward = s.callback(lambda call: self._told(call, lambda c: _lend(c, lambda arrays: self._back(c, backward, arrays)))) if backward else s.callback()

    def _told(self, call: Any, work: Callable[[Any], None]) -> int:
        try:
            work(call.contents)
            return 0
        except BaseException as error:
            context = self._context()
            if context is not None:
                context.raise_later(error)
            return int(Status.RUN)

    def _back(self, call: Any, backward: Callable[..., Any] | None, arrays: list[Any]) -> None:
        inputs, outputs, gradients = arrays[:self._nin], arrays[self._nin:self._nin + self._nout], arrays[self._nin + self._nout:]
        assert backward is not None
        _store(call, backward(inputs, outputs, gradients), zeros=True)


def _inputs(call: Any) -> Any:
    return getattr(call, "in")


def _array(tensor: s.Tensor, writeable: bool) -> Any:
    """The elements where they are; None for a tensor that is not there."""
    import numpy as np

    from ._tensors import dtype_of, is_packed
    name = s.DTYPES[tensor.type]
    if name == "undefined":
        return None
    if is_packed(name):
        raise UnsupportedError(f"functions of Python cannot have elements of type {name}")
    shape, dtype = tuple(tensor.shape.dim[: tensor.shape.rank]), dtype_of(name)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if not size:
        return np.empty(shape, dtype)
    if not tensor.data:
        return None
    memory: Any = (ctypes.c_char * size).from_address(tensor.data)
    array = np.frombuffer(memory, dtype).reshape(shape)
    array.flags.writeable = writeable
    return array


def _memory(array: Any) -> Any:
    while getattr(array, "base", None) is not None:
        array = array.base
    return array.obj if isinstance(array, memoryview) else array


def _lend(call: Any, use: Callable[[list[Any]], None]) -> None:
    """Lets a function use arrays that are the memory of this call; afterwards others use that."""
    arrays = [_array(_inputs(call)[k], False) for k in range(call.nin)]
    lent = [weakref.ref(_memory(one)) for one in arrays if one is not None and one.size]
    use(arrays)
    del arrays
    if any(one() is not None for one in lent):
        gc.collect()    # cycles
    if any(one() is not None for one in lent):
        raise UsageError("a function keeps an array that it was given, whose memory others use after its call: it has to keep a copy")


def _store(call: Any, results: Any, zeros: bool = False) -> None:
    import numpy as np
    listed = list(results) if isinstance(results, (tuple, list)) else [results]
    if len(listed) != call.nout:
        raise UsageError(f"a function returned {len(listed)} arrays, and its operator has {call.nout} of them")
    for k, value in enumerate(listed):
        to = _array(call.out[k], True)
        if to is None:
            continue
        if value is None and not zeros:
            raise UsageError(f"a function returned None for output {k}")
        array = np.zeros((), to.dtype) if value is None else np.asarray(value)
        if value is not None and array.shape != to.shape:
            raise ShapeError(f"a function returned an array of shape {list(array.shape)} for output {k}, whose shape is {list(to.shape)}")
        to[...] = array


def _infer(call: Any, infer: Callable[..., Any]) -> None:
    forms = [Form(s.DTYPES[_inputs(call)[k].type], tuple(_inputs(call)[k].shape.dim[: max(_inputs(call)[k].shape.rank, 0)])) for k in range(call.nin)]
    found = infer(*forms)
    listed = [found] if isinstance(found, Form) else list(found)
    if len(listed) != call.nout:
        raise UsageError(f"infer returned {len(listed)} forms, and the operator has {call.nout} outputs")
    from ._context import shape_of
    for k, form in enumerate(listed):
        if form.dtype not in s.DTYPES:
            raise UsageError(f"infer returned the element type {form.dtype}, which ONNX does not have")
        call.out[k].type = s.DTYPES.index(form.dtype)
        call.out[k].shape = shape_of(form.shape)
