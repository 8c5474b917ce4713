# SPDX-License-Identifier: Apache-2.0
"""Generates tokens with a decoder, whose caches are buffers with spare rows."""
from __future__ import annotations

import ctypes
import functools
import math
import os
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from . import _structs as s
from ._context import byref, dims_of, text
from ._errors import Error, UsageError
from ._library import lib
from ._program import Model, Program, inputs_of, number_of, outputs_of
from ._run import Executor, Session, TensorInfo, prepared
from ._sets import Manifest, Part
from ._tensors import bound, dtype_of, taken

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

TOKENS, POSITIONS, MASK = "input_ids", "position_ids", "attention_mask"
OF_TOKENS = (TOKENS, POSITIONS, MASK)
PART = 512      #: Tokens of a prompt that one run takes: its arena is that of so many.
IN_USE = "rows_in_use"      # the input that the pass open-rows adds


@dataclass(frozen=True)
class GenerationStats:
    """Memory and speed of a generation so far."""

    prompt_tokens: int          #: Given.
    tokens: int                 #: Generated.
    first_seconds: float        #: Until the first token, planning included.
    tokens_per_second: float    #: After the first token; 0 before the second.
    arena_bytes: int            #: The largest arena of a step.
    cache_bytes: int            #: Inputs that are states, with their spare rows, and what other parts of a set left for the steps.
    weight_bytes: int           #: Constants in the layout of kernels, of a step.
    copied_bytes: int           #: States that were copied between steps, because they are not in one place.
    plans: int                  #: Plans that were made; one serves all steps, if it holds for their sizes.

    def __str__(self) -> str:
        return (f"{self.tokens} tokens, the first after {self.first_seconds:.2f} s, then {self.tokens_per_second:.1f} tokens/s; "
                f"arena {self.arena_bytes} bytes, caches {self.cache_bytes} bytes, weights {self.weight_bytes} bytes")


def _open_batch(axis: int, dim: int | str | None) -> bool:
    return axis == 0 or str(dim).startswith("batch")


def _of_tokens(name: str, dims: Sequence[int | str | None], past: int, tokens: Sequence[int]) -> Array:
    """An input that follows from the tokens and their number: of these dims, the last of which counts tokens."""
    end = past + len(tokens)
    if name == TOKENS:
        return np.array([tokens])
    if name == MASK:
        return np.ones((1, dims[-1] if dims and isinstance(dims[-1], int) else end))
    # One position for each axis of an image, and all are alike for a text: [3, batch, tokens].
    return np.broadcast_to(np.arange(past, end), _position_dims(dims, end - past))


def _position_dims(dims: Sequence[int | str | None], new: int) -> tuple[int, ...]:
    return (*(dim if isinstance(dim, int) else 1 for dim in dims[:-1]), new)


class _Layout:
    """Of a planned program: names of its inputs, and its states, each as the name of the input and the number of the output."""

    def __init__(self, executor: Executor) -> None:
        self.executor, self.names = executor, [text(one.name) for one in executor.inputs]
        aliases = executor.planned.contents.io_alias
        self.states = [(self.names[aliases[k].param], aliases[k].result) for k in range(executor.planned.contents.nio_alias)]


class _Decoder:
    """A decoder with its states: a step takes tokens, and gives the logits after the last one."""

    def __init__(self, model: Model, rows: int, dims: Mapping[str, int], cache: str | None, options: dict[str, Any],
                 fixed: Mapping[str, Any]) -> None:
        self._base = {**options, "flags": {**options.get("flags", {}), "capacity": rows, "rings": True}}
        self.program = Program(model, self._base)
        self._dims, self._rows = dict(dims), rows
        self._cache = os.fsencode(cache) if cache is not None else None
        inputs = inputs_of(self.program.loaded)
        constants = options.get("values", {})
        self._given = {text(one.name): one for one in inputs if not one.is_overridable and text(one.name) not in constants}
        if TOKENS not in self._given:
            raise UsageError(f"a decoder has an input {TOKENS}; the inputs of the model are {', '.join(self._given)}")
        self._fixed: dict[str, Array] = {}      # inputs that are the same in all steps
        for name, value in fixed.items():
            self.fix(name, value)
        names = [text(one.name) for one in outputs_of(self.program.loaded)]
        self._logits = names.index("logits") if "logits" in names else 0
        self._state: dict[str, Array] = {}
        self._dense: set[str] = set()           # states without spare rows, of a part that ran before
        self._address: dict[str, int] = {}      # of a state
        self._layout: _Layout | None = None     # of the executor that ran last
        self._serves_all = False
        self._all: Executor | None = None      # of all steps
        self.past = self.arena_bytes = self.weight_bytes = self.copied_bytes = self.plans = 0

    @property
    def cache_bytes(self) -> int:
        """Of all states, and of inputs that are the same in all steps."""
        return sum(one.nbytes for held in (self._state, self._fixed) for one in held.values())

    def fix(self, name: str, value: Any) -> None:
        """Give an input that is the same in all steps."""
        if name not in self._given or name in OF_TOKENS:
            free = [one for one in self._given if one not in OF_TOKENS]
            raise UsageError(f"inputs: {name} is not one that is given; those are {', '.join(free) or 'none'}")
        dtype = dtype_of(s.DTYPES[self._given[name].type.elem])
        self._fixed[name] = value if isinstance(value, np.ndarray) else np.asarray(value, dtype)
        for dim in dims_of(self._given[name].shape) or ():
            self._dims.pop(str(dim), None)      # its size is known from the array

    # ---- Shapes. ----

    def _size(self, axis: int, dim: int | str | None, past: int) -> int:
        if isinstance(dim, int):
            return dim
        if dim in self._dims:
            return self._dims[str(dim)]
        return 1 if _open_batch(axis, dim) else past

    def _shape(self, name: str, past: int, new: int) -> tuple[int, ...]:
        if name in self._fixed:
            return tuple(self._fixed[name].shape)
        dims = dims_of(self._given[name].shape)
        if name in (TOKENS, MASK):
            return (1, past + new if name == MASK else new)
        if dims is None:
            raise UsageError(f"input {name} has no known rank")
        if name == POSITIONS:
            return _position_dims(dims, new)
        return tuple(self._size(axis, dim, past) for axis, dim in enumerate(dims))

    def _shapes(self, past: int, new: int) -> dict[str, tuple[int, ...]]:
        return {name: self._shape(name, past, new) for name in self._given}

    # ---- Plans. ----

    def _numbers(self) -> dict[str, int]:
        """What symbols stand for, but for those that grow from step to step."""
        known: dict[str, int] = {}
        for name, value in self._given.items():
            for axis, dim in enumerate(dims_of(value.shape) or () if name not in self._fixed else ()):
                if isinstance(dim, str) and (dim in self._dims or _open_batch(axis, dim)):
                    known[dim] = self._dims.get(dim, 1)
        return known

    def _has_states(self, planned: Any) -> bool:
        """Do all states have one size, that of the states there are, or do these fit into it?"""
        inputs, outputs = inputs_of(planned), outputs_of(planned)
        sizes = {text(one.name): dims_of(one.shape) for one in inputs}
        aliases = planned.contents.io_alias
        pairs = [aliases[k] for k in range(planned.contents.nio_alias) if text(inputs[aliases[k].param].name) not in self._fixed]
        return (all(sizes[name] == value.shape or self._fits(name, sizes[name]) for name, value in self._state.items())
                and all(dims_of(inputs[one.param].shape) == dims_of(outputs[one.result].shape) for one in pairs))

    def _fits(self, name: str, dims: tuple[int | str | None, ...] | None) -> bool:
        """Is a state, as a part that ran before left it, the first rows of a buffer of this size, or does a ring have the last of them?"""
        was = self._state[name].shape
        if name not in self._dense or dims is None or len(dims) != len(was):
            return False
        other = [axis for axis, (n, dim) in enumerate(zip(was, dims)) if n != dim]
        size = dims[other[0]] if len(other) == 1 else None
        return isinstance(size, int) and (was[other[0]] < size or self._is_ring(name, other[0]))

    def _is_ring(self, name: str, axis: int) -> bool:
        """Are fewer rows along this axis than a state of all positions has those of a ring?

        Where no other input has the dim and the caller gave no number, nothing but a window makes it less than the positions.
        """
        if self._state[name].ndim != 4 or axis != 2 or self._state[name].shape[axis] != self.past:
            return False
        dim = (dims_of(self._given[name].shape) or ())[axis]
        others = {str(one) for key in (*OF_TOKENS, *self._fixed) if key in self._given for one in dims_of(self._given[key].shape) or ()}
        return isinstance(dim, str) and dim not in others and dim not in self._dims and not _open_batch(axis, dim)

    def plan_all(self) -> None:
        """One program and one executor for all steps.

        Where caches grow by Concat, the pass open-rows makes it of the program of the largest step; attention ops may find the rows of
        a cache that are in use in other inputs.
        """
        self.program.request("cpu")
        pipeline = self._pipeline(self._rows - 1)
        opened = pipeline.replace(",fold,prune,", f",fold,open-rows={self._rows},prune,", 1)
        if "fuse-attention" in pipeline and self._plan_open({**self._base, "passes": opened}, self._shapes(self._rows - 1, 1), True):
            return
        fixed = {name: self._shape(name, 0, 1) for name in (TOKENS, POSITIONS, *self._fixed) if name in self._given}
        self._plan_open({**self._base, "dims": {**self._base.get("dims", {}), **self._numbers()}}, fixed, False)

    def _pipeline(self, past: int) -> str:
        """The usual pipeline of a step with so many tokens before it."""
        bound_program = self.program.copy()
        self.program.bind(bound_program, self._shapes(past, 1))
        return text(self.program.usual_pipeline(bound_program))

    def _plan_open(self, options: dict[str, Any], shapes: dict[str, tuple[int, ...]], all_dims: bool) -> bool:
        program, planned = self.program, None
        try:
            program.options = options
            planned = ctypes.POINTER(s.Prog)()
            program.context.check(lib.om_prog_bind(program.context.handle, program.loaded, None, byref(planned)))
            program.bind(planned, shapes, all_dims=all_dims)
            program.plan(planned, "cpu")
            if self._has_states(planned):
                mine, planned = planned, None       # the executor frees it, also one that is refused
                self._all = self._executor(mine)
                self.plans += 1
        except Error:
            self._all = None
        finally:
            program.options = self._base
            if planned is not None:
                lib.om_prog_free(planned)
        return self._all is not None

    def _growing(self, last: int) -> dict[str, tuple[int, int]]:
        """Symbols of dims that are larger in each step, up to a step with `last` tokens before it: their ranges."""
        found: dict[str, tuple[int, int]] = {}
        now, end = self._shapes(self.past, 1), self._shapes(last, 1)
        for name, value in self._given.items():
            for dim, low, high in zip(dims_of(value.shape) or (), now[name], end[name]):
                if isinstance(dim, str) and low < high:
                    found.setdefault(dim, (low, high))
        return found

    def plan_steps(self, last: int) -> None:
        """Plan the step with `last` tokens before it, so that the plan serves all steps up to it; it is written into the model.

        Without such a plan, each step is planned.  A model whose states have one size has no range.
        """
        self.plan_all()
        if self._all is not None:
            return
        ranges, program = self._growing(last), self.program
        try:
            program.options = {**self._base, "passes": self._pipeline(last), "ranges": ranges}
            planned = program.copy()
            program.bind(planned, self._shapes(last, 1))
            program.plan(planned, "cpu")
            self.plans += 1
            program.context.check(lib.om_model_annotate(program.context.handle, program.handle, planned, s.ANNOTATE_MODEL))
            self._serves_all = True
        except Error:
            self._serves_all = False
        finally:
            program.options = self._base

    def _planned(self, shapes: dict[str, tuple[int, ...]]) -> Any:
        if self._serves_all:
            try:
                planned = prepared(self.program, shapes, True)
                self.program.verify(planned)
                return planned
            except Error:
                self._serves_all = False
        self.plans += 1
        return prepared(self.program, shapes, False)

    # ---- Steps. ----

    def _value(self, name: str, executor: Executor, k: int, tokens: Sequence[int]) -> Array:
        if name in self._fixed:
            return self._fixed[name]
        if name == IN_USE:
            value = np.array(self.past)
        elif name in OF_TOKENS:
            value = _of_tokens(name, dims_of(executor.inputs[k].shape) or (), self.past, tokens)
        else:
            return self._state_of(name, executor.inputs[k])
        return value.astype(dtype_of(s.DTYPES[executor.inputs[k].type.elem]))

    def _state_of(self, name: str, value: s.Value) -> Array:
        """The state of an input; zeros at first."""
        dims = tuple(int(dim) for dim in dims_of(value.shape) or () if isinstance(dim, int))
        if name in self._state and self._fits(name, dims):
            self._spread(name, dims)
        if name not in self._state or self._state[name].shape != dims:
            if self.past:
                raise UsageError(f"input {name} is no state that an output replaces: give it, or a model without it")
            self._hold(name, np.zeros(dims, dtype_of(s.DTYPES[value.type.elem])))
        return self._state[name]

    def _hold(self, name: str, value: Array) -> None:
        self._state[name], self._address[name] = value, value.ctypes.data

    def _spread(self, name: str, dims: tuple[int, ...]) -> None:
        """Give the rows of a state that a part left room for more, once; those that a ring has go where their positions are."""
        was, held = self._state[name], np.zeros(dims, self._state[name].dtype)
        axis = next(k for k, (n, dim) in enumerate(zip(was.shape, dims)) if n != dim)
        kept = np.arange(max(0, was.shape[axis] - dims[axis]), was.shape[axis])
        np.moveaxis(held, axis, 0)[kept % dims[axis]] = np.moveaxis(was, axis, 0)[kept]
        self._hold(name, held)
        self._dense.discard(name)
        self.copied_bytes += kept.size * (was.nbytes // was.shape[axis])

    def _check_fixed(self, layout: _Layout) -> None:
        """Outputs replace no input that is given; one without elements replaces nothing."""
        for name, k in layout.states:
            output = layout.executor.outputs[k]
            if name in self._fixed and 0 not in (dims_of(output.shape) or ()):
                raise UsageError(f"input {name} is given, but output {text(output.name)} replaces it in the next step")

    def _bind(self, executor: Executor, tokens: Sequence[int]) -> _Layout:
        """Bind the inputs of a step: those that are the same arrays as in the last one are bound."""
        layout = self._layout
        if layout is None or layout.executor is not executor:
            layout = self._layout = _Layout(executor)
            self._check_fixed(layout)
        for k, name in enumerate(layout.names):
            if name not in self._given and name != IN_USE:
                continue
            was = executor.bound.get(k)
            if was is None or was.array is None or was.array is not self._state.get(name, self._fixed.get(name)):
                executor.bind_input(k, bound(name, self._value(name, executor, k, tokens), executor.inputs[k].type))
        return layout

    def _keep(self, layout: _Layout) -> None:
        """States that are not in the memory of their inputs are copied."""
        for name, k in layout.states:
            result = layout.executor.result(k)
            if name in self._state and result.data != self._address[name]:
                value = taken(result, layout.executor.outputs[k].type)
                if value.size == 0 and self._state[name].size:
                    continue    # such as that of cross attention after the first step: the input stays
                self._hold(name, value)
                self.copied_bytes += value.nbytes
        for name in set(self._state) - {name for name, _ in layout.states}:
            raise UsageError(f"input {name} is no state that an output replaces")

    def _executor(self, planned: Any) -> Executor:
        return Executor(self.program.context, planned, s.ExecOptions(size=ctypes.sizeof(s.ExecOptions), threads=self.program.threads(),
                                                                     precise=bool(self._base.get("precise")), cache=self._cache))

    def step(self, tokens: Sequence[int]) -> Array:
        """Run, and return the logits after the last token."""
        if self.past + len(tokens) > self._rows:
            raise UsageError(f"{self.past + len(tokens)} tokens are more than the capacity of {self._rows}")
        for k in range(0, len(tokens), PART):
            logits = self._run(tokens[k:k + PART])
        return logits

    def _run(self, tokens: Sequence[int]) -> Array:
        executor = self._all if self._all is not None and len(tokens) == 1 else self._executor(
            self._planned(self._shapes(self.past, len(tokens))))
        layout = self._bind(executor, tokens)
        self.program.context.check(executor.run())
        self._keep(layout)
        self._layout = layout if executor is self._all else None    # memory of other executors is free now
        self.past += len(tokens)
        stats = lib.om_exec_get_stats(executor.handle).contents
        self.arena_bytes = max(self.arena_bytes, stats.arena_bytes)
        self.weight_bytes = max(self.weight_bytes, stats.weight_bytes)
        logits = taken(executor.result(self._logits), executor.outputs[self._logits].type)
        return np.asarray(logits.reshape(-1, logits.shape[-1])[-1], np.float64)


class _Chain(_Decoder):
    """A set: parts that run once, as an encoder and a decoder without a past, and then the steps."""

    def __init__(self, manifest: Manifest, rows: int, dims: Mapping[str, int], cache: str | None, options: dict[str, Any],
                 given: Mapping[str, Any]) -> None:
        self._manifest, self._dims_of_all = manifest, dims
        self._values: dict[tuple[str, str], Any] = {}       # given, by part and name
        for name, value in given.items():
            part, dot, rest = name.partition(".")
            if part not in (*(one.name for one in manifest.once), manifest.step.name) or not dot:
                raise UsageError(f"inputs: {name} is no input of a part, PART.NAME")
            self._values[part, rest] = value
        self._of_once = options
        of_step = {rest: value for (part, rest), value in self._values.items() if part == manifest.step.name}
        super().__init__(manifest.step.model, rows, {**manifest.step.dims, **dims}, cache,
                         {**options, "values": {**manifest.step.values, **options.get("values", {})}}, of_step)

    def step(self, tokens: Sequence[int]) -> Array:
        """Run, and return the logits after the last token."""
        if self.past == 0:
            logits = self._run_once(tokens)
            if logits is not None:
                self.past = len(tokens)
                return logits
        return super().step(tokens)

    def _run_once(self, tokens: Sequence[int]) -> Array | None:
        """Run the parts before the loop.  The logits of the last of them, if it is a decoder."""
        sessions = [(part, Session(part.model, **{**self._of_once, "values": part.values})) for part in self._manifest.once]
        step = self._manifest.step.name
        outputs = [text(one.name) for one in outputs_of(self.program.loaded)]
        names = {part.name: [one.name for one in (*session.inputs, *session.outputs)] for part, session in sessions}
        shared = self._manifest.shared({**names, step: [*self._given, *outputs]})
        left: dict[int, Any] = {shared[end]: value for end, value in self._values.items() if end in shared}
        logits = None
        while sessions:
            part, session = sessions.pop(0)
            made = session.run(self._inputs_of(part, session, tokens, shared, left))
            left.update((shared[part.name, name], value) for name, value in made.items() if (part.name, name) in shared)
            logits = made.get("logits")
            self.arena_bytes = max(self.arena_bytes, session.stats.arena_bytes)
            self.weight_bytes = max(self.weight_bytes, session.stats.weight_bytes)
            self.plans += 1
            del session     # its memory is free before that of the next part is needed
        self._take(shared, left, {shared[step, name]: name for name in outputs if (step, name) in shared})
        return None if logits is None else np.asarray(logits.reshape(-1, logits.shape[-1])[-1], np.float64)

    def _take(self, shared: Mapping[tuple[str, str], int], left: Mapping[int, Any], replaced: Mapping[int, str]) -> None:
        """What the parts left: states, which outputs of a step replace, and inputs that are the same in all steps."""
        for name in self._given:
            number = shared.get((self._manifest.step.name, name), -1)
            if number not in left or name in self._fixed:
                continue
            if number in replaced:
                self._hold(name, np.array(left[number]))
                self.program.declare_state(name, replaced[number])
                self._dense.add(name)
            else:
                self.fix(name, left[number])

    def _inputs_of(self, part: Part, session: Session, tokens: Sequence[int], shared: Mapping[tuple[str, str], int],
                   left: Mapping[int, Any]) -> dict[str, Any]:
        """The inputs of a part: given, left by another part, of the tokens, or a state that is empty."""
        is_decoder = any(one.name == "logits" for one in session.outputs)
        free = [one for one in session.inputs if not one.has_default]
        found = {one.name: self._values[part.name, one.name] for one in free if (part.name, one.name) in self._values}
        found.update((one.name, left[shared[part.name, one.name]]) for one in free
                     if one.name not in found and shared.get((part.name, one.name)) in left)
        sizes = {dim: n for one in free if one.name in found for dim, n in zip(one.shape or (), np.shape(found[one.name]))}
        for one in free:
            if one.name in found:
                continue
            if is_decoder and one.name in OF_TOKENS:
                found[one.name] = _of_tokens(one.name, one.shape or (), 0, tokens).astype(dtype_of(one.dtype))
            elif is_decoder and (part.name, one.name) in shared:
                found[one.name] = _empty(one, {**sizes, **part.dims, **self._dims_of_all})
            else:
                raise UsageError(f"input {one.name} of part {part.name} has no value: give it as {part.name}.{one.name}")
        return found


def _empty(one: TensorInfo, sizes: Mapping[Any, int]) -> Array:
    """A state before the first token."""
    dims = [dim if isinstance(dim, int) else sizes.get(dim, 1 if _open_batch(axis, dim) else 0) for axis, dim in enumerate(one.shape or ())]
    return np.zeros(dims, dtype_of(one.dtype))


class Generation:
    """Tokens as they come: iterate over it, or :meth:`show` them.

    The items are tokens or, with a tokenizer, pieces of text.
    """

    def __init__(self, decoder: _Decoder, prompt: list[int], max_tokens: int, temperature: float, top_k: int, seed: int,
                 stop: Collection[int], tokenizer: Any) -> None:
        self._decoder, self._prompt, self._most, self._stop, self._tokenizer = decoder, prompt, max_tokens, frozenset(stop), tokenizer
        self._temperature, self._top_k, self._random = temperature, top_k, np.random.default_rng(seed)
        #: Generated so far, without a token that ended it.
        self.tokens: list[int] = []
        self._shown = ""
        self._start = self._first = self._last = math.nan
        self._is_over = False

    def __iter__(self) -> Generation:
        return self

    def __next__(self) -> int | str:
        if self._is_over or len(self.tokens) >= self._most:
            raise StopIteration
        if math.isnan(self._start):
            self._start = time.perf_counter()
        token = self._choose(self._decoder.step([self.tokens[-1]] if self.tokens else self._prompt))
        self._last = time.perf_counter()
        if token in self._stop:
            self._is_over = True
            raise StopIteration
        self.tokens.append(token)
        if len(self.tokens) == 1:
            self._first = self._last
            if self._most > 1:
                self._decoder.plan_steps(len(self._prompt) + self._most - 2)
        return token if self._tokenizer is None else self._piece()

    def _piece(self) -> str:
        """What the last token adds to the text; a character of several tokens comes with the last of them."""
        whole: str = self._tokenizer.decode(self.tokens)
        if whole.endswith("\ufffd") and len(self.tokens) < self._most:
            return ""
        piece = whole[len(self._shown):] if whole.startswith(self._shown) else whole
        self._shown = whole
        return piece

    def _choose(self, logits: Array) -> int:
        if self._temperature <= 0:
            return int(logits.argmax())
        if 0 < self._top_k < logits.size:
            logits = np.where(logits < np.partition(logits, -self._top_k)[-self._top_k], -np.inf, logits)
        weights = np.exp((logits - logits.max()) / self._temperature)
        return int(self._random.choice(logits.size, p=weights / weights.sum()))

    @property
    def text(self) -> str:
        """The text so far; requires a tokenizer."""
        if self._tokenizer is None:
            raise UsageError("there is no text without a tokenizer")
        decoded: str = self._tokenizer.decode(self.tokens)
        return decoded

    @property
    def stats(self) -> GenerationStats:
        """Memory and speed so far."""
        d, n, since = self._decoder, len(self.tokens), self._last - self._first
        return GenerationStats(len(self._prompt), n, self._first - self._start if n else 0.0, (n - 1) / since if n > 1 and since > 0 else 0.0,
                               d.arena_bytes, d.cache_bytes, d.weight_bytes, d.copied_bytes, d.plans)

    def show(self, file: TextIO | None = None, stats: TextIO | None = None) -> list[int]:
        """Write what comes to `file`, standard output by default, then a line about memory and speed to `stats`, standard error by default.

        Ctrl-C ends it early.  Returns the tokens.
        """
        out, to = file or sys.stdout, stats or sys.stderr
        try:
            for k, piece in enumerate(self):
                out.write(piece if isinstance(piece, str) else f"{' ' if k else ''}{piece}")
                out.flush()
        except KeyboardInterrupt:
            self._is_over = True
        out.write("\n")
        to.write(f"{self.stats}\n")
        return self.tokens


def _tokenizer_of(tokenizer: Any) -> Any:
    """A tokenizer; one of a file is of the package tokenizers."""
    if tokenizer is None or not isinstance(tokenizer, (str, os.PathLike)):
        return tokenizer
    try:
        import tokenizers  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        raise UsageError(f"{os.fspath(tokenizer)} requires the package tokenizers") from None
    return tokenizers.Tokenizer.from_file(os.fspath(tokenizer))


def _prompt_of(prompt: str | Sequence[int], tokenizer: Any) -> list[int]:
    if isinstance(prompt, str):
        if tokenizer is None:
            raise UsageError("a prompt that is a text requires a tokenizer")
        found = tokenizer.encode(prompt)
        tokens = [int(token) for token in getattr(found, "ids", found)]
    else:
        tokens = [number_of("a token", token) for token in prompt]
    if not tokens:
        raise UsageError("the prompt has no tokens")
    return tokens


def _decoder_of(model: Model) -> Callable[..., _Decoder]:
    if isinstance(model, (str, os.PathLike)) and os.fspath(model).endswith(".json"):
        return functools.partial(_Chain, Manifest(model))
    return functools.partial(_Decoder, model)


def generate(model: Model, prompt: str | Sequence[int], *, max_tokens: int = 64, capacity: int | None = None, temperature: float = 0.0,
             top_k: int = 0, seed: int = 0, stop: Collection[int] = (), tokenizer: Any = None, dims: Mapping[str, int] | None = None,
             cache: str | None = None, inputs: Mapping[str, Any] | None = None, **options: Any) -> Generation:
    """Generate tokens with a decoder that takes and returns its caches, as exporters of language models write it.

    The model has the inputs ``input_ids`` and maybe ``attention_mask`` and ``position_ids``, and caches whose names exporters give, or that it
    declares to be states; the other open dims are in ``dims``.  Caches are buffers with room for ``capacity`` rows, by default as many as there are tokens; a step writes its
    rows there.  That of an attention with a window has as many rows as the window.  Two plans are made, for the prompt and for all steps.  ``inputs`` are other inputs, which are the same in all steps, as what an
    encoder made.

    ``model`` may be a manifest of a set (``.json``): an encoder, a decoder and its step.  The parts before the loop of its order run once, with ``inputs``,
    called ``PART.NAME``; the last one takes the prompt, if it has an output ``logits``.  The part in the loop generates.  Sizes follow from the inputs.

    Without a ``temperature`` the likeliest token is taken; with one, tokens are drawn by ``seed``, of the ``top_k`` likeliest ones if that is above 0.
    A token of ``stop`` ends it.  ``tokenizer`` is the path of a ``tokenizer.json``, which requires the package tokenizers, or an object
    with ``encode`` and ``decode``: then the prompt may be a text, and the items are pieces of text.  ``cache`` is a folder for weights as kernels read them, which the
    steps then share.  Other options are those of :class:`PlanOptions`.

    >>> onnxmem.generate("decoder.onnx", [3, 1, 4], max_tokens=24).show()         # doctest: +SKIP
    """
    found = _tokenizer_of(tokenizer)
    tokens = _prompt_of(prompt, found)
    most = number_of("max_tokens", max_tokens)
    rows = number_of("capacity", capacity if capacity is not None else len(tokens) + most, 1, 2**31 - 1)
    decoder = _decoder_of(model)(rows, dict(dims or {}), cache, options, dict(inputs or {}))
    return Generation(decoder, tokens, most, float(temperature), number_of("top_k", top_k), number_of("seed", seed), stop, found)
