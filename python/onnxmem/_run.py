# SPDX-License-Identifier: Apache-2.0
"""Runs a model in the memory of its plan."""
from __future__ import annotations

import ctypes
import math
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _structs as s
from ._context import Context, byref, dims_of, text
from ._errors import RunError, ShapeError, UsageError
from ._library import lib
from ._program import ALL_OPTIONS, NOT_OF_PLAN, Model, PlanOptions, Program, check_options, inputs_of, number_of, outputs_of
from ._report import Report

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Seconds of a run that are long for someone who presses Ctrl-C.
LONG = 0.05
#: Executors for different shapes of inputs that a session keeps.
MOST_EXECUTORS = 8


@dataclass(frozen=True)
class TensorInfo:
    """An input or output of a model."""

    name: str                                       #: As in the model.
    kind: str                                       #: ``tensor``, ``sequence``, ``optional``, ``map`` or another.
    dtype: str                                      #: Element type; of a map, of its keys.
    shape: "tuple[int | str | None, ...] | None"    #: Numbers, symbols or None; None for an unknown rank.
    has_default: bool = False                       #: An input that need not be given.


@dataclass(frozen=True)
class OpTime:
    """Time of an op over all runs."""

    name: str       #: Of the node; may be empty.
    op: str         #: Its type.
    calls: int      #: Runs of its kernel.
    ms: float       #: Milliseconds of all of them.


@dataclass(frozen=True)
class Stats:
    """Memory that is held for runs, and counters; see ``om_exec_stats`` in ``onnxmem/executor.h``."""

    arena_bytes: int            #: Of all arenas.
    weight_bytes: int           #: Constants that were made when the executor was built.
    unplanned_bytes: int        #: Peak outside of the arenas.
    object_bytes: int           #: Peak of strings, sequences, optionals and maps in the last run.
    copied_bytes: int           #: Copied in the last run because the plan does not share memory.
    steps: int                  #: Ops that ran in the last run.
    runs: int                   #: Runs that were completed.
    device_bytes: int           #: Of memory of the device.
    transferred_bytes: int      #: Copied to the device and from it, by all runs.
    captured_commands: int      #: Launches, and copies in its memory, that the device captured.
    replays: int                #: How often captured commands were started.
    ops: list[OpTime]           #: With ``profile``: the time of each op.


def info_of(value: s.Value, is_fixed: bool = False) -> TensorInfo:
    """What a model declares about an input or output."""
    return TensorInfo(text(value.name), s.KINDS[value.type.kind], s.DTYPES[value.type.elem], dims_of(value.shape),
                      value.is_overridable or is_fixed)


class Executor:
    """An executor of a planned program, and the memory that it refers to."""

    def __init__(self, context: Context, planned: Any, options: s.ExecOptions) -> None:
        self.context, self.planned = context, planned
        self.handle = ctypes.c_void_p()
        self.inputs, self.outputs = inputs_of(planned), outputs_of(planned)
        has_plan = bool(planned.contents.has & s.HAS_PLAN)
        plan = planned.contents.plan if has_plan else None
        options.precise = options.precise or bool(plan and plan.contents.precise)
        weakref.finalize(self, _free, self.handle, planned)
        context.check(lib.om_exec_new(context.handle, planned, plan, byref(options), byref(self.handle)))
        self.aliased = _aliased(planned, plan)
        self.bound: dict[int, Any] = {}
        self.there: dict[int, Any] = {}    # outputs on the device
        self.seconds = math.inf    # of the last run

    def bind_input(self, k: int, one: Any) -> None:
        """Bind an input; it is kept until another is bound."""
        if is_there(one):
            self.context.check(lib.om_exec_device_input(self.handle, k, byref(one.tensor), one.keep.stream))
        else:
            self.context.check(lib.om_exec_input(self.handle, k, byref(one.tensor)))
        self.bound[k] = one

    def bind_output(self, k: int, array: Any) -> None:
        """Bind an output to an array, or to a tensor on the device; None: to no memory of the caller."""
        if is_there(array):
            self.context.check(lib.om_exec_device_output(self.handle, k, byref(array.tensor), array.keep.stream))
            self.there[k] = array
            return
        address, size = (array.ctypes.data, array.nbytes) if array is not None else (None, 0)
        self.context.check(lib.om_exec_output(self.handle, k, address, size))
        self.there.pop(k, None)

    def run(self) -> int:
        """Run; long runs so that Ctrl-C ends them.  The first one is taken to be long."""
        call = self.context.call if self.seconds > LONG else _directly
        start = time.perf_counter()
        status = call(lib.om_exec_run, self.handle)
        self.seconds = time.perf_counter() - start
        return status

    def result(self, k: int) -> s.Tensor:
        """Output of the last run."""
        found: s.Tensor = lib.om_exec_result(self.handle, k).contents
        return found


def is_there(one: Any) -> bool:
    """Is it a tensor on a device?"""
    from ._dlpack import Foreign
    keep = getattr(one, "keep", None)
    return isinstance(keep, Foreign) and keep.is_there


class Executors:
    """The executors of a program by the shapes of its inputs and by the defaults that are replaced, of which those that were used last
    are kept.

    A program whose dims are all known and whose defaults are kept has only one.  What makes them is not stored, as it refers to the owner of this object: both
    are to be freed without a search for cycles.
    """

    def __init__(self, program: Program) -> None:
        self._kept: OrderedDict[tuple[Any, ...], Executor] = OrderedDict()
        self._last: Executor | None = None
        self.is_open = bool(program.open_shapes(program.loaded))

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, shapes: Mapping[str, tuple[int, ...]], make: Callable[[Mapping[str, tuple[int, ...]]], Executor],
           replaced: frozenset[str] = frozenset()) -> Executor:
        """The executor for inputs of these shapes and other values than some defaults; ``make`` makes one."""
        key = (replaced, *sorted(shapes.items())) if self.is_open else (replaced,)
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = make(shapes)
            if len(self._kept) > MOST_EXECUTORS:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        self._last = found
        return found

    def last(self, otherwise: str) -> Executor:
        """The one that was used last; an error that says ``otherwise``, if none was."""
        if self._last is None:
            raise UsageError(otherwise)
        return self._last


def defaults_of(program: Any) -> frozenset[str]:
    """The inputs whose defaults are constants of each run that does not give them: no output replaces these inputs in the next run."""
    p = program.contents
    states = {p.io_alias[k].param for k in range(p.nio_alias)}
    return frozenset(text(value.name) for k, value in enumerate(inputs_of(program)) if value.is_overridable and value.data and k not in states)


def prepared(program: Program, shapes: Mapping[str, tuple[int, ...]], has_plan: bool, defaults: Iterable[str] = ()) -> Any:
    """A planned copy of a program, which an executor frees.  The defaults that are named are its constants, unless it has a plan."""
    context, planned = program.context, ctypes.POINTER(s.Prog)()
    context.check(lib.om_prog_bind(context.handle, program.loaded, None, byref(planned)))
    try:
        if has_plan:
            program.read_plan(planned, shapes)
        else:
            program.bind_defaults(planned, defaults)
            program.bind(planned, shapes)
            program.plan(planned, "cpu")
    except BaseException:
        lib.om_prog_free(planned)
        raise
    return planned


def _directly(function: Any, *arguments: Any) -> int:
    status: int = function(*arguments)
    return status


def _free(handle: ctypes.c_void_p, planned: Any) -> None:
    lib.om_exec_free(handle)
    lib.om_prog_free(planned)


def _aliased(planned: Any, plan: Any) -> dict[int, int]:
    """Outputs that the plan has in the memory of an input, which a run overwrites: their numbers, and those of the inputs."""
    if not plan:
        return {}
    inputs = {value.id: k for k, value in enumerate(inputs_of(planned))}
    outputs = {value.id: k for k, value in enumerate(outputs_of(planned))}
    aliases = [plan.contents.alias[k] for k in range(plan.contents.nalias)]
    return {outputs[one.value]: inputs[one.source] for one in aliases
            if one.kind in (s.ALIAS_IO, s.ALIAS_CONSUME) and one.source in inputs and one.value in outputs}


class Session:
    """A model that is ready to run, in arenas that are allocated once.

    A plan in the model is verified and used; without one, or with options about the plan (:class:`PlanOptions`), the
    model is planned first, for the executor (``target="cpu"``).  A model with open dims gets a plan for the shapes
    of the inputs when they first occur.  An input with a default is a constant of the plan for runs that do not give it; one for runs
    that do is made when it is first given.  The eight plans that were used last are kept.

    ``threads`` is the number of threads of kernels; results do not depend on it.  ``poison`` fills dead memory with a
    pattern and ``no_reuse`` gives every tensor memory of its own: both have to give the same numbers.  ``profile``
    measures the time of every op (``stats.ops``).  With ``in_place``, a run may overwrite an input that the model declares
    to be the state of an output, as the cache of a decoder: the output is the array of that input then.  ``max_memory`` and ``max_iterations`` are limits; ``cache`` is a folder
    for weights as kernels read them.

    With ``device``, ops run on a device.  Inputs and ``outputs`` may be tensors there with DLPack (PyTorch, CuPy): they are used where they
    are, without a copy to the processor.  A device of CUDA takes those of the kind ``kDLCUDA``, the simulated one those of ``kDLExtDev``,
    whose memory is that of the processor.  Without ``capture``, the device gets each command of a run anew; results are the same.

    A session may be used by several threads; its runs follow each other.  The GIL is released meanwhile.
    """

    def __init__(self, model: Model, *, poison: bool = False, no_reuse: bool = False, profile: bool = False, in_place: bool = False,
                 max_memory: int = 0, max_iterations: int = 0, cache: str | None = None, capture: bool = True,
                 **options: Unpack[PlanOptions]) -> None:
        from ._dlpack import DEVICES
        check_options(options, ALL_OPTIONS, "Session")
        self._program = Program(model, options)
        self._in_place = in_place
        self._cache = cache.encode() if cache is not None else None
        device, how = self._program.device()
        self._kind = DEVICES.get(device, 0)
        self._exec_options = s.ExecOptions(
            no_capture=not capture, device_options=how.encode() if how else None, size=ctypes.sizeof(s.ExecOptions), poison=poison, no_reuse=no_reuse, profile=profile,
            max_memory=number_of("max_memory", max_memory), max_iterations=number_of("max_iterations", max_iterations),
            threads=self._program.threads(), precise=bool(options.get("precise")), cache=self._cache)
        self._has_plan = bool(lib.om_model_has_plan(self._program.handle)) and not set(options) - NOT_OF_PLAN
        self._lock = threading.Lock()
        fixed = options.get("values", {})
        self.inputs = [info_of(value, text(value.name) in fixed) for value in inputs_of(self._program.loaded)]
        self.outputs = [info_of(value) for value in outputs_of(self._program.loaded)]
        self._index = {one.name: k for k, one in enumerate(self.inputs)}
        self._executors = Executors(self._program)
        self._defaults = frozenset() if self._has_plan else defaults_of(self._program.loaded) - set(fixed)
        if not self._executors.is_open:
            self._executor({}, frozenset())

    def _executor(self, shapes: Mapping[str, tuple[int, ...]], given: Collection[str]) -> Executor:
        replaced = self._defaults.intersection(given)
        return self._executors.of(shapes, lambda shapes: self._new_executor(shapes, self._defaults - replaced), replaced)

    def _new_executor(self, shapes: Mapping[str, tuple[int, ...]], defaults: Iterable[str]) -> Executor:
        planned = prepared(self._program, shapes, self._has_plan, defaults)
        return Executor(self._program.context, planned, s.ExecOptions.from_buffer_copy(self._exec_options))

    # ---- Running. ----

    def run(self, inputs: Mapping[str, Any] | None = None, outputs: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Run the model, and return its outputs by name.

        Inputs are NumPy arrays, tensors of other packages with DLPack (PyTorch, JAX), numbers, lists of strings; lists
        for sequences, None or a value for optionals, dicts for maps.  An array of the type of the model, in row-major
        order and aligned, is read where it is; nothing is converted to another type.  An input that the
        plan overwrites with an output is copied first.

        Outputs are new arrays, which the model writes directly where their size is known before the run.  ``outputs``
        has arrays, or writable tensors with DLPack, that outputs are written to instead.  A tensor on the device is never
        overwritten with an output of the plan: that one is a new array.
        """
        given, wanted = dict(inputs or {}), dict(outputs or {})
        self._check_names(given, wanted)
        with self._lock:
            values = self._values(given)
            executor = self._executor({name: one.shape for name, one in values.items() if one.tensor.shape.rank >= 0}, values)
            for name, one in values.items():
                executor.bind_input(self._index[name], self._writable(executor, name, one))
            self._bind_defaults(executor, values)
            arrays = [self._room(executor, k, wanted) for k in range(len(self.outputs))]
            for k, array in enumerate(arrays):
                executor.bind_output(k, array)
            self._program.context.check(executor.run())
            return {one.name: self._result(executor, k, arrays[k], wanted.get(one.name), given) for k, one in enumerate(self.outputs)}

    def _check_names(self, given: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        for name in given:
            if name not in self._index:
                raise UsageError(f"the model has no input {name}; its inputs are {', '.join(self._index)}")
        known = [one.name for one in self.outputs]
        for name in wanted:
            if name not in known:
                raise UsageError(f"the model has no output {name}; its outputs are {', '.join(known)}")
        for one in self.inputs:
            if one.name not in given and not one.has_default:
                raise RunError(f"input {one.name} has no value")

    def _values(self, given: Mapping[str, Any]) -> dict[str, Any]:
        from ._tensors import bound, bound_there
        loaded = inputs_of(self._program.loaded)
        types = {name: loaded[self._index[name]].type for name in given}
        return {name: bound_there(f"input {name}", value, types[name], self._kind) if self._is_there(value) else bound(name, value, types[name])
                for name, value in given.items()}

    def _is_there(self, value: Any) -> bool:
        from ._dlpack import device_kind
        return bool(self._kind) and device_kind(value) == self._kind

    def _writable(self, executor: Executor, name: str, one: Any) -> Any:
        """What is bound: a copy if the run writes there and may not."""
        if self._index[name] not in executor.aliased.values() or is_there(one):  # nothing is written on the device
            return one
        if self._in_place and (one.array is None or one.array.flags.writeable):
            return one
        from ._tensors import bound, taken
        type_ = executor.inputs[self._index[name]].type
        return bound(name, taken(one.tensor, type_), type_)

    def _bind_defaults(self, executor: Executor, values: Mapping[str, Any]) -> None:
        """An input that was bound in an earlier run, and is not given in this one, has its default again."""
        from ._tensors import bound, taken
        for k in executor.bound:
            value = executor.inputs[k]
            if text(value.name) not in values:
                executor.bind_input(k, bound(text(value.name), taken(value.data.contents, value.type), value.type))

    def _room(self, executor: Executor, k: int, wanted: Mapping[str, Any]) -> Any:
        from ._tensors import bound_there, dtype_of, fresh
        info, value = self.outputs[k], executor.outputs[k]
        if info.name not in wanted:
            return None if k in executor.aliased else fresh(value)
        if self._is_there(wanted[info.name]):
            return bound_there(f"output {info.name}", wanted[info.name], value.type, self._kind)
        array = _array_of(wanted[info.name])
        dims = dims_of(value.shape)
        expected = dtype_of(s.DTYPES[value.type.elem]) if value.type.kind == s.TENSOR else None
        if array.dtype != expected:
            raise ShapeError(f"output {info.name} must be written to {expected}, not {array.dtype}")
        if dims is not None and (len(dims) != array.ndim or any(isinstance(dim, int) and dim != n for dim, n in zip(dims, array.shape))):
            raise ShapeError(f"output {info.name} must be written to an array of the shape {dims}, not {array.shape}")
        if not (array.flags.c_contiguous and array.flags.aligned and array.flags.writeable):
            raise ShapeError(f"output {info.name} must be written to an array that is contiguous, aligned and writable")
        return array

    def _result(self, executor: Executor, k: int, array: Any, wanted: Any, given: Mapping[str, Any]) -> Any:
        from ._tensors import taken
        if is_there(array):
            return wanted
        state = executor.bound.get(executor.aliased.get(k, -1))
        if array is None and state and state.tensor.data == executor.result(k).data:
            name = self.inputs[executor.aliased[k]].name
            return state.array if state.array is not None else given[name]
        if array is None:
            return taken(executor.result(k), executor.outputs[k].type)
        shape = executor.result(k).shape
        dims = tuple(shape.dim[: shape.rank])
        if dims != array.shape:
            raise ShapeError(f"output {self.outputs[k].name} has the shape {dims} in this run, not that of the array, {array.shape}")
        return wanted if wanted is not None else array

    # ---- What there is to know. ----

    def _need_last(self) -> Executor:
        return self._executors.last("the model has open dims: it is planned in its first run")

    @property
    def stats(self) -> Stats:
        """Memory and counters of the executor that was used last."""
        found = lib.om_exec_get_stats(self._need_last().handle).contents
        ops = [OpTime(text(found.op[k].op.contents.name), text(found.op[k].op.contents.type), found.op[k].calls, found.op[k].ms)
               for k in range(found.nop)]
        return Stats(found.arena_bytes, found.weight_bytes, found.unplanned_bytes, found.object_bytes, found.copied_bytes,
                     found.steps, found.runs, found.device_bytes, found.transferred_bytes, found.captured_commands, found.replays, ops)

    def report(self) -> Report:
        """The report of the plan that was used last."""
        return Report(self._program, self._need_last().planned, self._need_last())


def _array_of(value: Any) -> Any:
    import numpy as np
    return value if isinstance(value, np.ndarray) else np.from_dlpack(value)
