# SPDX-License-Identifier: Apache-2.0
"""Kernels that are chosen by measuring."""
from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import Any

from . import _structs as s
from ._context import byref, path_of, text
from ._library import lib
from ._plan import verified
from ._program import ALL_OPTIONS, Memory, Model, Program, check_options


@dataclass(frozen=True)
class TuneChoice:
    """A way to compute layers."""

    name: str           #: As ``winograd4`` or ``gemm@50``.
    ms: "float | None"  #: Of these layers in a run; None: not measured.
    from_cache: bool    #: The time is from the cache.


@dataclass(frozen=True)
class TunedLayer:
    """Layers of equal shapes."""

    key: str                    #: Their kind and shapes.
    ops: int                    #: How many.
    choices: list[TuneChoice]   #: That of the cost model first.
    chosen: TuneChoice          #: The one that the plan has.


@dataclass(frozen=True)
class TunedPlan:
    """A plan, and a run of it."""

    ms: float           #: The least time.
    arena_bytes: int    #: Of all arenas.
    weight_bytes: int   #: Constants that ops read.
    total_bytes: int    #: With inputs and outputs.


@dataclass(frozen=True)
class Tuned:
    """What tuning found."""

    isa: str                    #: Instruction set of the kernels.
    threads: int                #: Of the runs.
    layers: list[TunedLayer]    #: In the order of the program.
    cost_model: TunedPlan       #: With the choices of the cost model.
    chosen: TunedPlan           #: With those that were found.
    kept: bool                  #: The choices of the cost model are kept: no others were faster in whole runs.
    unmeasured: int             #: Choices that the time did not suffice for.


def tune(model: Model, out: "str | os.PathLike[str] | None" = None, *, seconds: float = 10, slowdown: "float | None" = None,
         cache: "str | os.PathLike[str] | None" = None, **options: Any) -> Tuned:
    """Choose by measuring on this machine how convolutions and products are computed, as ``onnxmem tune`` does.

    With ``out``, the model with the tuned plan is written to the file of this name.  ``budget`` and ``budget_of`` ask for the fastest
    choices that need no more, :class:`BudgetError` if none are found; ``slowdown`` for those that take the least memory while layers take at most so many
    percent longer than the fastest ones.  ``cache`` is a folder of times.  The other options are those of :class:`PlanOptions`.
    """
    check_options(options, ALL_OPTIONS, "tune")
    program = Program(model, options)
    context, copy = program.context, program.copy()
    program.bind(copy)
    how = s.TuneOptions(size=ctypes.sizeof(s.TuneOptions), seconds=seconds, total=program.budget("total"), arena=program.budget("arena"),
                        has_slowdown=slowdown is not None, slowdown=slowdown or 0, cache=path_of(cache) if cache is not None else None)
    planned, out_ = ctypes.POINTER(s.Prog)(), ctypes.POINTER(s.Tuned)()
    host = program.request("cpu")
    with Memory() as memory:
        context.search(lib.om_host_tune, host, copy, byref(how), memory, byref(planned), byref(out_))
        context.own(lib.om_prog_free, planned)
        found = _told(out_.contents)
    program.limits(planned)
    if out is not None:
        context.check(lib.om_model_annotate(context.handle, program.handle, planned, s.ANNOTATE_MODEL | s.ANNOTATE_AUTO | s.ANNOTATE_ORIGINAL))
        verified(program, None)
        context.check(lib.om_model_save(context.handle, program.handle, path_of(out)))
    return found


def _told(found: s.Tuned) -> Tuned:
    return Tuned(text(found.isa), found.threads, [_layer(found.layer[k]) for k in range(found.n)], _plan(found.usual), _plan(found.chosen),
                 found.is_kept, found.unmeasured)


def _layer(one: s.TunedLayer) -> TunedLayer:
    choices = [TuneChoice(text(c.name), c.ms if c.ms >= 0 else None, c.was_known) for c in (one.choice[k] for k in range(one.nchoice))]
    return TunedLayer(text(one.key), one.ops, choices, choices[one.chosen])


def _plan(one: s.TunedPlan) -> TunedPlan:
    return TunedPlan(one.ms, one.memory.arenas, one.memory.weights, one.memory.total)
