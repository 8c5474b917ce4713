# SPDX-License-Identifier: Apache-2.0
"""Training: steps that update their states in place."""
from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import _structs as s
from ._context import byref, raw, text
from ._errors import RunError, UsageError
from ._library import lib
from ._program import ALL_OPTIONS, NOT_OF_PLAN, Memory, Model, PlanOptions, Program, check_options, inputs_of, outputs_of
from ._report import Report
from ._run import Executor, Executors, TensorInfo, info_of, prepared

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import Unpack

NO_INPUT = 0xFFFFFFFF


class Trainer:
    """A training step, such as :func:`grad` makes with an optimizer, and its states: weights and those of the optimizer.

    A plan in the model is used, as by :class:`Session`; otherwise the step is planned for the executor, again for each size of a
    batch.  All sizes share the states, which a step overwrites where they are, if its plan allows it.

    ``rate`` is the learning rate, if the step has an input for it (``lr``); by default it is that of the step.
    ``schedule`` changes it with the number of steps: ``step:STEPS:FACTOR``, ``cosine:STEPS[:LEAST]`` or ``linear:STEPS[:LEAST]``, where LEAST
    is the share of it that is left; ``warmup`` steps before that raise it to all of it.  The other options are those of :class:`PlanOptions`.  A trainer may be used by several threads; its steps follow each other.
    """

    def __init__(self, model: Model, *, rate: float | None = None, schedule: str = "constant", warmup: int = 0,
                 poison: bool = False, **options: Unpack[PlanOptions]) -> None:
        check_options(options, ALL_OPTIONS, "Trainer")
        self._program = Program(model, options)
        self._exec_options = s.ExecOptions(size=ctypes.sizeof(s.ExecOptions), poison=poison, threads=self._program.threads(),
                                           precise=bool(options.get("precise")))
        self._has_plan = bool(lib.om_model_has_plan(self._program.handle)) and not set(options) - NOT_OF_PLAN
        self._loss, self._rate_input, samples = _roles(self._program)
        inputs = inputs_of(self._program.loaded)
        self._at = {text(inputs[k].name): k for k in samples}
        #: What a step takes: samples, and labels.
        self.inputs: list[TensorInfo] = [info_of(inputs[k]) for k in samples]
        self._handle = ctypes.c_void_p()
        self._lock = threading.Lock()
        self._set_rate(rate)
        self._schedule = s.RateSchedule()
        if not 0 <= warmup < 2**32:
            raise UsageError(f"warmup is a number of steps, not {warmup}")
        if self._rate_input == NO_INPUT and (schedule != "constant" or warmup):
            raise UsageError("the step has no learning rate: it has no input called lr")
        self._program.context.check(lib.om_rate_parse(self._program.context.handle, raw(schedule), warmup, byref(self._schedule)))
        #: Steps that were run.
        self.steps = 0
        #: Bytes of states that were copied, because the plan does not have them in one place.
        self.copied_bytes = 0
        self._executors = Executors(self._program)
        if not self._executors.is_open:
            self._executors.of({}, self._new_executor)

    # ---- Steps. ----

    def step(self, samples: Mapping[str, Any]) -> float:
        """Run a step on a batch, and return the loss before it."""
        from ._tensors import bound
        for name in samples:
            if name not in self._at:
                raise UsageError(f"the step takes no input {name}; it takes {', '.join(self._at)}")
        for name in self._at:
            if name not in samples:
                raise RunError(f"input {name} has no value")
        with self._lock:
            loaded = inputs_of(self._program.loaded)
            values = {name: bound(name, one, loaded[self._at[name]].type) for name, one in samples.items()}
            executor = self._executors.of({name: one.shape for name, one in values.items()}, self._new_executor)
            self._need_states()
            for name, one in values.items():
                executor.bind_input(self._at[name], one)
            self._bind_rate(executor)
            return self._run(executor)

    def _run(self, executor: Executor) -> float:
        from ._tensors import taken
        copied = ctypes.c_uint64()
        context = self._program.context
        context.check(context.call(lib.om_trainer_step, self._handle, executor.handle, byref(copied)))
        self.steps += 1
        self.copied_bytes += copied.value
        return float(taken(executor.result(self._loss), executor.outputs[self._loss].type).reshape(-1)[0])

    def _new_executor(self, shapes: Mapping[str, tuple[int, ...]]) -> Executor:
        context = self._program.context
        planned = prepared(self._program, shapes, self._has_plan)
        executor = Executor(context, planned, s.ExecOptions.from_buffer_copy(self._exec_options))
        if not self._handle:
            context.check(lib.om_trainer_new(context.handle, planned, byref(self._handle)))
            weakref.finalize(self, lib.om_trainer_free, self._handle)
        context.check(lib.om_trainer_bind(self._handle, executor.handle))
        return executor

    # ---- The learning rate. ----

    @property
    def rate(self) -> float | None:
        """The learning rate of the steps that follow, before the schedule; None for a step without one."""
        return self._rate

    @rate.setter
    def rate(self, rate: float) -> None:
        self._set_rate(rate)

    def _set_rate(self, rate: float | None) -> None:
        if self._rate_input == NO_INPUT and rate is not None:
            raise UsageError("the step has no learning rate: it has no input called lr")
        self._rate = rate
        if rate is None and self._rate_input != NO_INPUT:
            from ._tensors import taken
            value = inputs_of(self._program.loaded)[self._rate_input]
            if not value.data:
                raise UsageError("the step requires a learning rate: use rate")
            self._rate = float(taken(value.data.contents, value.type).reshape(-1)[0])

    def _bind_rate(self, executor: Executor) -> None:
        if self._rate_input == NO_INPUT:
            return
        import numpy as np

        from ._tensors import bound, dtype_of
        value = executor.inputs[self._rate_input]
        rate = lib.om_rate_at(byref(self._schedule), float(np.float32(self._rate or 0)), self.steps)   # as the command rounds it
        array = np.full([max(one, 1) for one in value.shape.dim[: max(value.shape.rank, 0)]], rate, dtype_of(s.DTYPES[value.type.elem]))
        executor.bind_input(self._rate_input, bound(text(value.name), array, value.type))

    # ---- States. ----

    def _tensors(self) -> Iterator[tuple[str, s.Tensor]]:
        self._need_executor()
        name, k = ctypes.c_char_p(), 0
        while True:
            found = lib.om_trainer_state(self._handle, k, byref(name))
            if not found:
                return
            yield text(name.value), found.contents
            k += 1

    def state(self) -> dict[str, np.ndarray[Any, Any]]:
        """Copies of all states, by the names of the inputs of the step, as ``onnxmem train --checkpoint`` writes them."""
        from ._tensors import taken
        with self._lock:
            return {name: taken(one, s.Type(kind=s.TENSOR, elem=one.type)) for name, one in self._tensors()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Copy elements into states, by name."""
        from ._tensors import bound
        with self._lock:
            types = {name: s.Type(kind=s.TENSOR, elem=one.type) for name, one in self._tensors()}
            for name, value in state.items():
                if name not in types:
                    raise UsageError(f"the step has no state {name}; its states are {', '.join(types)}")
                one = bound(name, value, types[name])
                self._program.context.check(lib.om_trainer_set(self._handle, raw(name), byref(one.tensor)))

    def _need_states(self) -> None:
        name = lib.om_trainer_first_uninitialized(self._handle)
        if name:
            raise RunError(f"{text(name)} has no initial value: the model has no default, and load() has not given one")

    # ---- What there is to know. ----

    def _need_executor(self) -> Executor:
        return self._executors.last("the size of a batch is open: the step is planned for the first one")

    def report(self) -> Report:
        """The report of the plan that was used last."""
        executor = self._need_executor()
        return Report(self._program, executor.planned, executor)


def _roles(program: Program) -> tuple[int, int, list[int]]:
    """Numbers of the loss among the outputs, of the learning rate among the inputs, and of samples there."""
    context, copy, step = program.context, program.copy(), s.Step()
    context.check(lib.om_host_run(program.need_host(), copy, b"inline,shapes"))
    with Memory() as memory:
        context.check(lib.om_step_find(context.handle, copy, memory, byref(step)))
        return step.loss, step.rate, [step.sample[k] for k in range(step.nsample)]
