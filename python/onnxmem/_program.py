# SPDX-License-Identifier: Apache-2.0
"""From a model to a planned program: load, bind dims, run passes."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Union

from . import _structs as s
from ._context import Context, Progress, array_of, byref, dims_of, path_of, raw, shape_of, text
from ._errors import ShapeError, UnsupportedError, UsageError
from ._library import lib, take_bytes

if TYPE_CHECKING:
    from onnx import ModelProto

#: A model: a path, the bytes of a file, or a ``ModelProto`` of the package onnx.
Model = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, "ModelProto"]


class Arena(TypedDict, total=False):
    """A memory that a plan may use.  Of several, the first is the fastest; only the last may have no size.

    name: in messages and plans; required.
    bytes: its size; no limit if missing.
    align: alignment of what is in it, if larger than that of the plan.
    """

    name: str
    bytes: int
    align: int


class ModelOptions(TypedDict, total=False):
    """How a model is loaded and its shapes are bound.

    Symbols of the first dim that are called a batch are 1 if nothing else is said; every other open dim is an error
    that names it.

    dims: the number that a symbolic dim stands for, or the dim or the expression of dims that it follows from, as "past + new".
    shapes: shapes of inputs.
    default_dim: what all other open dims are.
    ranges: least and largest size of symbolic dims: one plan for all of them.
    values: inputs that are constants: what follows from them is folded, and branches that they decide are left out.
        A single number fills all elements of an input whose shape is known.
    op_rules: what operators without a definition do: "DOMAIN:NAME=inplace:0", view:0, shape:0 or scratch:4K; see ``--op``.
    folder: where the external data of a model from memory are.
    name: of a model from memory, in messages and reports.
    """

    dims: Mapping[str, int | str]
    shapes: Mapping[str, Sequence[int]]
    default_dim: int
    ranges: Mapping[str, tuple[int, int]]
    values: Mapping[str, Any]
    op_rules: Sequence[str]
    folder: "str | os.PathLike[str]"
    name: str


class PlanOptions(ModelOptions, total=False):
    """What a plan has to comply with, and how it is searched; the options of ``onnxmem report``, which describes them.

    target: ``generic``, for any runtime, or ``cpu``, for :class:`onnxmem.Session`.
    order: order of the ops: ``original``, ``bfs`` or ``min-memory``.
    passes: a pipeline in place of the default.
    plugins: modules with further passes.
    io: memory of inputs and outputs: ``caller``, ``arena`` or ``keep``; or by name.
    align: alignment of offsets and sizes, 64 by default.
    arenas: the memories; one without a limit by default.
    pins: tensors that are placed in an arena of a name, and what shares memory with them.
    budget: bytes that a run may take; :class:`BudgetError` if it takes more.
    budget_of: what the budget limits: ``total``, the default, or ``arena``.
    parallel_safe: valid for every order of the ops that respects the data.
    streams: workers that run ops side by side, each op in one thread; 1 by default.
    device: ops run on a device where that is faster, as ``cuda`` or ``sim:seed=3``, with its options after colons; not with ``arenas``.
    place: with ``device``: ``cost``, what is faster there, the default; ``all``, whatever the device can run.
    exact_sizes: leave values whose size data decide outside of the plan.
    precise: with target ``cpu``: reference kernels alone.
    threads: with target ``cpu``: threads that kernels have scratch for.
    time_limit: seconds to search for better packings; by default, work is limited.
    rematerialize: recompute cheap values, with at most so many percent more work.
    flags: options of passes by the names of the command line, without dashes.
    progress: called with (what, best, bound) while a plan is searched, maybe in another thread; Ctrl-C then ends the search with the best plan so far.
    """

    target: str
    order: str
    passes: str
    plugins: "Sequence[str | os.PathLike[str]]"
    io: "str | Mapping[str, str]"
    align: int
    arenas: Sequence[Arena]
    pins: Mapping[str, str]
    budget: int
    budget_of: str
    parallel_safe: bool
    streams: int
    device: str
    place: str
    exact_sizes: bool
    precise: bool
    threads: int
    time_limit: float
    rematerialize: int
    flags: Mapping[str, object]
    progress: Progress


# Of places in the memory of a device.
DEVICE_ALIGN = 256

MODEL_OPTIONS = frozenset(ModelOptions.__annotations__)
ALL_OPTIONS = MODEL_OPTIONS | frozenset(PlanOptions.__annotations__)
# Options that do not decide about the plan: a plan in a model serves them.
NOT_OF_PLAN = frozenset(("folder", "name", "progress", "dims", "shapes", "default_dim", "ranges", "plugins", "threads"))


def check_options(options: Mapping[str, Any], known: frozenset[str], what: str) -> None:
    """Unknown keywords are errors, as in any function."""
    for name in options:
        if name not in known:
            raise TypeError(f"{what}() has no option {name!r}; the options are {', '.join(sorted(known))}")


def number_of(name: str, value: Any, least: int = 0, most: int = 2**63 - 1) -> int:
    """An integer in a range."""
    import operator
    number = operator.index(value)
    if not least <= number <= most:
        raise UsageError(f"{name} must be from {least} to {most}, not {number}")
    return number


class Binding:
    """Numbers for the open dims of a program."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.handle: int | None = lib.om_binding_new()
        if not self.handle:
            raise MemoryError

    def __enter__(self) -> Binding:
        return self

    def __exit__(self, *unused: object) -> None:
        lib.om_binding_free(self.handle)
        self.handle = None

    def dim(self, symbol: str, n: int) -> None:
        """Bind a symbol."""
        n = number_of(f"dim {symbol}", n)
        self.context.check(lib.om_binding_dim(self.context.handle, self.handle, raw(symbol), n))

    def shape(self, name: str, dims: Sequence[int]) -> None:
        """Bind an input."""
        self.context.check(lib.om_binding_shape(self.context.handle, self.handle, raw(name), byref(shape_of(dims))))

    def value(self, name: str, one: Any) -> None:
        """Make an input a constant."""
        self.context.check(lib.om_binding_value(self.context.handle, self.handle, raw(name), byref(one.tensor)))

    def default(self, program: Any, name: str) -> None:
        """Make the default of an input a constant."""
        self.context.check(lib.om_binding_default(self.context.handle, self.handle, program, raw(name)))

    def batches(self, program: Any) -> str:
        """Bind open symbols of batches to 1; which, as " batch=1"."""
        told = ctypes.c_char_p()
        with Memory() as memory:
            self.context.check(lib.om_binding_batches(self.context.handle, program, self.handle, memory, byref(told)))
            return text(told.value)

    def rest(self, n: int) -> None:
        """Bind all open dims."""
        lib.om_binding_rest(self.handle, number_of("default_dim", n, 1, 2**31 - 1))


class Memory:
    """An arena of the library, for results that are copied."""

    def __enter__(self) -> int:
        handle: int | None = lib.om_arena_new()
        if not handle:
            raise MemoryError
        self.handle = handle
        return handle

    def __exit__(self, *unused: object) -> None:
        lib.om_arena_free(self.handle)


class Program:
    """A loaded model, and copies of its program."""

    def __init__(self, model: Model, options: Mapping[str, Any]) -> None:
        self.options = options
        self.context = Context(options.get("progress"))
        self.handle = self._load(model)
        self.loaded = self._import()
        self._apply_rules()
        self.passes: list[tuple[dict[str, Any], float]] = []   # each with its milliseconds
        self.host: int | None = None
        self._ranges: list[tuple[str, int, int]] = []          # those that the program was bound for
        self._plan_ranges: list[Any] = []

    # ---- Loading. ----

    def _load(self, model: Model) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        session = self.context.handle
        if isinstance(model, (str, os.PathLike)):
            self.name = os.fspath(model)
            status = lib.om_model_load(session, path_of(model), byref(handle))
        else:
            self.name = self.options.get("name") or "model"
            data = model if isinstance(model, (bytes, bytearray, memoryview)) else _serialized(model)
            folder = self.options.get("folder")
            keep, size = _address(data)
            status = lib.om_model_load_memory(session, keep, size, raw(self.name),
                                              path_of(folder) if folder is not None else None, byref(handle))
        self.context.check(status)
        self.context.own(lib.om_model_free, handle)
        return handle

    def _import(self) -> Any:
        program = ctypes.POINTER(s.Prog)()
        self.context.check(lib.om_model_import(self.context.handle, self.handle, byref(program)))
        return self.context.own(lib.om_prog_free, program)

    def _apply_rules(self) -> None:
        used = ctypes.c_bool()
        for rule in self.options.get("op_rules", ()):
            self.context.check(lib.om_prog_op_rule(self.context.handle, self.loaded, raw(rule), byref(used)))
            if not used:
                raise UsageError(f"op_rules: the model has no operator of the rule {rule}")
        for symbol, dim in self.options.get("dims", {}).items():
            if isinstance(dim, str):
                self.context.check(lib.om_prog_define_dim(self.context.handle, self.loaded, raw(symbol), raw(dim)))

    def declare_state(self, name: str, output: str) -> None:
        """Output `output` replaces input `name` in the next run."""
        self.context.check(lib.om_prog_states_by_name(self.context.handle, self.loaded, raw(f"{name}={output}")))

    def imported(self) -> Any:
        """The program as the model has it now."""
        return self._import()

    def copy(self, of: Any = None) -> Any:
        """A copy of the loaded program."""
        program = ctypes.POINTER(s.Prog)()
        self.context.check(lib.om_prog_bind(self.context.handle, of or self.loaded, None, byref(program)))
        return self.context.own(lib.om_prog_free, program)

    def need_host(self) -> int | None:
        """The host, made when it is first needed."""
        if self.host is None:
            self.host = lib.om_host_new(self.context.handle, None)
            if not self.host:
                raise MemoryError
            self.context.own(lib.om_host_free, self.host)
            for plugin in self.options.get("plugins", ()):
                self.context.check(lib.om_host_plugin(self.host, path_of(plugin)))
            self._hook = s.pass_hook(_noter(self.passes))
            lib.om_host_hook(self.host, self._hook, None)
        return self.host

    # ---- Shapes. ----

    def open_shapes(self, program: Any) -> list[tuple[str, tuple[int | str | None, ...] | None]]:
        """Names and dims of the inputs that are tensors of an open shape."""
        found = []
        for value in inputs_of(program):
            dims = dims_of(value.shape)
            if value.type.kind == s.TENSOR and (dims is None or any(not isinstance(dim, int) for dim in dims)):
                found.append((text(value.name), dims))
        return found

    def _bind_named(self, binding: Binding, program: Any, known: Mapping[str, Sequence[int]]) -> None:
        for name, shape in known.items():
            binding.shape(name, shape)
        for symbol, n in self.options.get("dims", {}).items():
            if not isinstance(n, str):
                binding.dim(symbol, n)
        for name, shape in self.options.get("shapes", {}).items():
            binding.shape(name, [number_of(f"a dim of {name}", dim) for dim in shape])
        self._ranges = [self._range(program, known, symbol, *ends) for symbol, ends in self.options.get("ranges", {}).items()]
        for symbol, _, high in self._ranges:
            binding.dim(symbol, high)
        self._bind_values(binding, program)
        if self.options.get("default_dim"):
            binding.rest(self.options["default_dim"])

    def bind(self, program: Any, known: Mapping[str, Sequence[int]] | None = None, all_dims: bool = True) -> None:
        """Bind the dims of a program by the options and by the shapes of inputs that are known."""
        with Binding(self.context) as binding:
            self._bind_named(binding, program, known or {})
            self.context.check(lib.om_bind(self.context.handle, program, binding.handle))
        if not all_dims or not self.open_shapes(program):
            return
        with Binding(self.context) as binding:
            batches = binding.batches(program)
            if batches:
                _tell_batches(batches)
                self.context.check(lib.om_bind(self.context.handle, program, binding.handle))
        if self.open_shapes(program):
            raise ShapeError(self._open_message(program))

    def bind_defaults(self, program: Any, names: Iterable[str]) -> None:
        """Make the defaults of inputs constants, which are folded and packed as weights."""
        with Binding(self.context) as binding:
            for name in names:
                binding.default(program, name)
            self.context.check(lib.om_bind(self.context.handle, program, binding.handle))

    def _range(self, program: Any, known: Mapping[str, Sequence[int]], symbol: str, low: int, high: int) -> tuple[str, int, int]:
        """A range, up to the size that an input has already, if there is one."""
        if not 0 <= low <= high:
            raise UsageError(f"the range of {symbol} must be (least, largest), not {(low, high)}")
        for value in inputs_of(program):
            for dim, n in zip(dims_of(value.shape) or (), known.get(text(value.name), ())):
                if dim == symbol and not low <= n <= high:
                    raise ShapeError(f"{symbol} is {n}, which is not in the range {low}..{high}")
                high = n if dim == symbol else high
        return symbol, low, high

    def _bind_values(self, binding: Binding, program: Any) -> None:
        values = self.options.get("values", {})
        known = {text(one.name): one for one in inputs_of(program)} if values else {}
        for name, value in values.items():
            if name not in known:
                raise UsageError(f"values: the model has no input {name}; its inputs are {', '.join(known)}")
            from ._tensors import bound, filled
            binding.value(name, bound(name, filled(value, dims_of(known[name].shape)), known[name].type))

    def _open_message(self, program: Any) -> str:
        opened = self.open_shapes(program)
        symbols = sorted({dim for _, dims in opened for dim in dims or () if isinstance(dim, str)})
        unnamed = [name for name, dims in opened if dims is None or None in dims]
        ways = [f"dims={{{', '.join(f'{symbol!r}: N' for symbol in symbols)}}}"] if symbols else []
        ways += [f"shapes={{{', '.join(f'{name!r}: (...)' for name in unnamed)}}}"] if unnamed else []
        with Memory() as memory:
            inputs = text(lib.om_open_inputs_text(program, memory))
        return f"dims of inputs are open: {inputs}; give them with {' and '.join(ways)}, or all with default_dim=N"

    # ---- Planning. ----

    def threads(self) -> int:
        """The number of threads of a run."""
        n = ctypes.c_uint32()
        wanted = number_of("threads", self.options.get("threads") or 0, 0, 2**32 - 1)
        self.context.check(lib.om_threads(self.context.handle, wanted, byref(n)))
        return n.value

    def _request(self, target: str) -> s.PlanRequest:
        options = self.options
        request = s.PlanRequest(size=ctypes.sizeof(s.PlanRequest))
        request.target = _choice("target", options.get("target", target), s.TARGETS)
        request.align = number_of("align", options.get("align", 64), 1, 1 << 20)
        request.precise = bool(options.get("precise"))
        request.parallel_safe = bool(options.get("parallel_safe"))
        request.ranged = bool(options.get("ranges"))
        request.exact_sizes = bool(options.get("exact_sizes"))
        request.threads = self.threads() if target == "cpu" or options.get("threads") else 1
        if number_of("streams", options.get("streams", 1), 1, 8) > 1:
            if options.get("threads", 1) > 1:
                raise UsageError("each op of a plan with streams runs in one thread: leave out threads")
            request.streams, request.threads = options["streams"], 1
        if self.budget("total"):
            request.total = self.budget("total")
        _request_io(request, options.get("io", "caller"), self.loaded)
        pins = array_of(s.Pin, ((raw(name), raw(arena)) for name, arena in options.get("pins", {}).items()))
        request.pin, request.npin = pins, len(pins)
        if self.device()[0]:
            self._request_device(request)
        else:
            _request_arenas(request, options.get("arenas", ()), self.budget("arena"), "align" in options)
        return request

    def device(self) -> tuple[str, str]:
        """The device of the plan and its options; both are empty for the processor."""
        name, _, how = (self.options.get("device") or "").partition(":")
        if not name and self.options.get("place") is not None:
            raise UsageError("place requires a device")
        return name, how.replace(":", ",")

    def _request_device(self, request: s.PlanRequest) -> None:
        if self.options.get("arenas"):
            raise UsageError("a plan for a device has an arena of the processor and one of the device: leave out arenas")
        if request.streams > 1:
            raise UsageError("streams are of workers of the processor: leave out device")
        name = raw(self.device()[0])
        specs = array_of(s.ArenaSpec, [(b"host", b"cpu", self.budget("arena"), 0), (name, name, 0, DEVICE_ALIGN)])
        request.arena, request.narena, request.target = specs, len(specs), s.TARGETS.index("cpu")

    def budget(self, of: str) -> int:
        """The budget of this kind; 0: none."""
        kind = self.options.get("budget_of", "total")
        if kind not in ("total", "arena"):
            raise UsageError(f"budget_of must be total or arena, not {kind}")
        if self.options.get("budget") is None:
            return 0
        bytes_ = number_of("budget", self.options["budget"], 1)
        return bytes_ if kind == of else 0

    def _flag_values(self) -> dict[str, object]:
        values: dict[str, object] = dict(self.options.get("flags", {}))
        for option, flag in ("order", "schedule"), ("time_limit", "time-limit"), ("rematerialize", "rematerialize"):
            if self.options.get(option) is not None:
                values[flag] = self.options[option]
        if self.options.get("parallel_safe"):
            values["parallel-safe"] = True
        if self.budget("arena"):
            values["budget"] = self.budget("arena")
        if self.device()[0]:
            values["device"] = self.device()[0]
        if self.options.get("place") is not None:
            values["place"] = self.options["place"]
        return values

    def _dim_ranges(self) -> Any:
        return array_of(s.DimRange, ((raw(symbol), low, high) for symbol, low, high in self._ranges))

    def usual_pipeline(self, program: Any, flags: Any = None) -> bytes:
        """The pipeline that plans a program as the host requests it, with flags of passes."""
        out = ctypes.c_char_p()
        self.context.check(self.context.call(lib.om_host_pipeline_with, self.need_host(), self.loaded, program, self._dim_ranges(), len(self._ranges),
                                             flags, len(flags) if flags is not None else 0, byref(out)))
        assert out.value is not None
        return out.value

    def _pipeline(self, program: Any) -> bytes:
        named, given = self.options.get("passes"), self._given_flags()
        if named is None and not self.device()[0]:
            return self.usual_pipeline(program, given)
        # What rewrites a program for kernels of the processor would leave nothing to the device.
        out = ctypes.c_char_p(raw(named) if named is not None else lib.om_host_decided(self.host, program, lib.om_default_pipeline()))
        if given is not None:
            self.context.check(lib.om_host_flags(self.host, given, len(given), byref(out)))
        assert out.value is not None
        return out.value

    def _given_flags(self) -> Any:
        values = self._flag_values()
        if not values:
            return None
        flags = [(one, flag, values[text(flag.contents.name)]) for one, flag in self._flags() if text(flag.contents.name) in values]
        unknown = set(values) - {text(flag.contents.name) for _, flag, _ in flags}
        if unknown:
            raise UsageError(f"no pass has the option {sorted(unknown)[0]}")
        return array_of(s.FlagSet, ((one, flag, _flag_text(flag.contents, value)) for one, flag, value in flags))

    def _flags(self) -> Iterator[tuple[Any, Any]]:
        passes, k = lib.om_host_passes(self.host, False), 0
        while passes[k]:
            flags, i = passes[k].contents.flags, 0
            while flags and flags[i].name:
                yield passes[k], ctypes.pointer(flags[i])
                i += 1
            k += 1

    def request(self, target: str) -> int | None:
        """The host, which makes plans as the options require."""
        host, request = self.need_host(), self._request(target)
        self.context.check(lib.om_host_request(host, byref(request)))
        return host

    def plan(self, program: Any, target: str = "generic") -> None:
        """Run the passes; the program has a plan then, whose limits are checked."""
        host = self.request(target)
        pipeline = self._pipeline(program)
        self.context.search(lib.om_host_run, host, program, pipeline)
        if not program.contents.has & s.HAS_PLAN:
            raise UsageError(f"the passes {text(pipeline)} make no plan")
        self.limits(program)

    def limits(self, program: Any) -> None:
        """Give the plan its ranges, and check its limits."""
        plan = program.contents.plan
        self._set_ranges(plan)
        self.context.check(lib.om_plan_limits(self.context.handle, program, plan, self.budget("arena"), self.budget("total")))

    def _set_ranges(self, plan: Any) -> None:
        if self._ranges:
            self._plan_ranges.append(self._dim_ranges())       # plans refer to them
            plan.contents.range, plan.contents.nrange = self._plan_ranges[-1], len(self._ranges)

    def read_plan(self, program: Any, known: Mapping[str, Sequence[int]]) -> None:
        """Give a copy of the loaded program the plan in the model, for the shapes of inputs that are known."""
        with Binding(self.context) as binding:
            self._bind_named(binding, self.loaded, known)
            self.context.check(lib.om_host_read_plan(self.need_host(), self.handle, program, None, binding.handle))

    def verify(self, program: Any) -> None:
        """Check the plan of a program, and that what it does not plan is known."""
        plan = program.contents.plan
        for k in range(plan.contents.nunplanned):
            value = program.contents.values[plan.contents.unplanned[k].value].contents
            op = getattr(value, "def")
            if op and not op.contents.opdef and not op.contents.call:
                raise UnsupportedError(f"operator {text(op.contents.type)} of domain {text(op.contents.domain) or 'ai.onnx'} is "
                                       f"not known, and the shape of its output {text(value.name)} is not declared")
        self.context.check(lib.om_plan_verify(self.context.handle, program, plan))

    def planned(self, target: str = "generic") -> Any:
        """A planned and verified copy of the program."""
        program = self.copy()
        self.bind(program)
        self.plan(program, target)
        self.verify(program)
        if self.options.get("ranges"):
            self.context.check(lib.om_host_find_formulas(self.host, self.loaded, program))
        return program

    def report(self, program: Any, form: int) -> str:
        """A form of the report of a planned program."""
        out = ctypes.c_void_p()
        self.context.check(lib.om_plan_report(self.context.handle, program, raw(self.name), form, byref(out)))
        return take_bytes(out).decode("utf-8", "replace")

    def why(self, program: Any, name: str | None, form: int) -> str:
        """Why a plan takes what it takes, or why a value is where it is."""
        session, value, out = self.context.handle, ctypes.POINTER(s.Value)(), ctypes.c_void_p()
        if name is not None:
            self.context.check(lib.om_plan_find_value(session, program, self.loaded, raw(name), byref(value)))
        self.context.check(lib.om_plan_why(session, program, raw(self.name), value if value else None, form, byref(out)))
        return take_bytes(out).decode("utf-8", "replace")


# ---- Parts. ----

def _noter(passes: list[tuple[dict[str, Any], float]]) -> Any:
    def note(arg: object, which: Any, run: Any, program: object, ms: float) -> None:
        one, k = which.contents, 0
        counters: dict[str, int] = {}
        while one.counters and one.counters[k].name:
            counters[text(one.counters[k].name)] = run.contents.counter[k]
            k += 1
        passes.append(({"pass": text(one.name), "counters": counters}, ms))
    return note


def inputs_of(program: Any) -> list[Any]:
    """The values that are inputs of the graph."""
    graph = program.contents.first.contents
    return [graph.param[k].contents for k in range(graph.nparam)]


def outputs_of(program: Any) -> list[Any]:
    """The values that are outputs of the graph."""
    graph = program.contents.first.contents
    return [graph.result[k].contents for k in range(graph.nresult)]


def _serialized(model: Any) -> bytes:
    if not hasattr(model, "SerializeToString"):
        raise TypeError(f"a model is a path, bytes or a ModelProto, not {type(model).__name__}")
    data: bytes = model.SerializeToString()
    return data


def _address(data: bytes | bytearray | memoryview) -> tuple[Any, int]:
    if isinstance(data, bytes):
        return data, len(data)
    view = memoryview(data).cast("B")
    if view.readonly:
        return bytes(view), len(view)
    return ctypes.byref((ctypes.c_char * len(view)).from_buffer(view)), len(view)


def _tell_batches(batches: str) -> None:
    import logging
    logging.getLogger("onnxmem").info("planned for a batch of 1:%s", batches)


def _choice(name: str, value: Any, names: tuple[str, ...]) -> int:
    if value not in names:
        raise UsageError(f"{name} must be {' or '.join(names)}, not {value}")
    return names.index(value)


def _request_io(request: s.PlanRequest, io: str | Mapping[str, str], program: Any) -> None:
    if isinstance(io, str):
        request.io = _choice("io", io, s.IO)
        return
    known = {text(value.name) for value in inputs_of(program) + outputs_of(program)}
    for name in io:
        if name not in known:
            raise UsageError(f"io: the model has no input or output called {name}")
    rules = array_of(s.IoRule, ((raw(name), _choice(f"io of {name}", where, s.IO)) for name, where in io.items()))
    request.io_rule, request.nio_rule = rules, len(io)


def _request_arenas(request: s.PlanRequest, arenas: Sequence[Arena], budget: int, has_align: bool) -> None:
    usual = request.align
    names = [one["name"] for one in arenas]
    if len(set(names)) < len(names):
        raise UsageError(f"two arenas have one name, in {', '.join(names)}")
    for one in arenas[:-1]:
        if not one.get("bytes"):
            raise UsageError(f"arena {one['name']} requires a size: only the last arena may have none")
    if not arenas and budget:
        specs = array_of(s.ArenaSpec, [(b"arena", b"cpu", budget, 0)])
    else:
        specs = array_of(s.ArenaSpec, ((raw(one["name"]), b"cpu", number_of("bytes of an arena", one.get("bytes", 0)),
                                        number_of("align of an arena", one.get("align", usual), 1, 1 << 20)) for one in arenas))
    if arenas and not has_align:
        request.align = min(one.align for one in specs)
    request.arena, request.narena = specs, len(specs)


def _flag_text(flag: s.PassFlag, value: object) -> bytes:
    name = text(flag.name)
    if not flag.arg:
        if value is not True:
            raise UsageError(f"{name} takes no value but True")
        return flag.value or b""
    if flag.kind == s.FLAG_NUMBER and name != "budget":
        return str(number_of(name, value, flag.min, flag.max)).encode()
    if flag.kind == s.FLAG_FLOAT:
        number = float(str(value))
        if not 0 <= number < float("inf"):
            raise UsageError(f"{name} must be a number of at least 0, not {value}")
        return repr(number).encode()
    return raw(str(value))
