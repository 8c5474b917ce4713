# SPDX-License-Identifier: Apache-2.0
"""Models whose large values are never there as a whole."""
from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from . import _structs as s
from ._context import byref, path_of, text
from ._errors import UsageError
from ._library import lib
from ._plan import parsed, saved
from ._program import MODEL_OPTIONS, Memory, ModelOptions, Program, check_options, number_of

if TYPE_CHECKING:
    from onnx import ModelProto
    from typing_extensions import Unpack

    from ._context import Progress
    from ._program import Model


@dataclass(frozen=True)
class TiledRegion:
    """Ops that run in bands."""

    first: str      #: Its first op.
    last: str       #: Its last op.
    ops: int        #: Ops that it had.
    bands: int      #: Bands that they run in.
    axis: str       #: What is divided.
    join: str       #: How results become whole: ``concat`` or ``scatter``.
    ops_after: int  #: Ops that it has now.


@dataclass(frozen=True)
class TiledCopy:
    """A value that is computed a second time."""

    value: str      #: Its name.
    ops: int        #: Ops that run again for it.
    flops: float    #: Their work.


@dataclass(frozen=True)
class TiledStep:
    """A step that is in no region."""

    op: "str | None"  #: Its op; None: there are regions, but they take too many ops.
    bytes: int      #: In use while it runs, estimated.
    why: str        #: Why it is in none.


@dataclass(frozen=True)
class TiledPeak:
    """A peak for which regions were found, estimated."""

    bytes: int      #: It.
    ops: int        #: Ops of the model with these regions.
    regions: int    #: How many; 0: the model as it was.
    copies: int     #: Values that are computed twice.


@dataclass(frozen=True)
class Tiling:
    """What tiling did."""

    arena_bytes_before: int         #: The arena of the model as it was.
    arena_bytes: int                #: That of the result.
    lower_bound: int                #: No packing of the buffers of the result is smaller.
    ops_before: int                 #: Ops of the graph that run.
    ops: int                        #: Those of the result.
    flops_before: float             #: Work, for which a moved element counts as one.
    flops: float                    #: That of the result.
    regions: list[TiledRegion]      #: In order; empty if nothing was tiled.
    copies: list[TiledCopy]         #: Values that are computed twice.
    outside: list[TiledStep]        #: The highest steps that are in no region, the highest first.
    peaks: list[TiledPeak]          #: That were found, that of the model as it was first.
    missed_bytes: "int | None"      #: The highest peak for which none were found; None: all that were tried were found.
    stop: "TiledStep | None"        #: The step that prevented that.
    floor_bytes: int                #: Some op needs as many even row by row.
    floor_op: "str | None"          #: That op.

    @property
    def highest_outside(self) -> "str | None":
        """The op of the highest step that is in no region."""
        return self.outside[0].op if self.outside else None

    @property
    def highest_outside_bytes(self) -> int:
        """Bytes of that step, estimated."""
        return self.outside[0].bytes if self.outside else 0

    @property
    def highest_outside_why(self) -> "str | None":
        """Why it is in none."""
        return self.outside[0].why if self.outside else None


@overload
def tile(model: Model, out: str | os.PathLike[str], *, budget: int | None = ..., budget_of: str = ..., max_ops: int | None = ...,
         join: str = ..., extra_flops: int = ..., progress: Progress | None = ..., **options: Unpack[ModelOptions]) -> Tiling: ...
@overload
def tile(model: str | os.PathLike[str] | bytes | bytearray | memoryview, out: None = None, *, budget: int | None = ...,
         budget_of: str = ..., max_ops: int | None = ..., join: str = ..., extra_flops: int = ..., progress: Progress | None = ...,
         **options: Unpack[ModelOptions]) -> bytes: ...
@overload
def tile(model: ModelProto, out: None = None, *, budget: int | None = ..., budget_of: str = ..., max_ops: int | None = ...,
         join: str = ..., extra_flops: int = ..., progress: Progress | None = ..., **options: Unpack[ModelOptions]) -> ModelProto: ...
def tile(model: Any, out: Any = None, *, budget: int | None = None, budget_of: str = "total", max_ops: int | None = None,
         join: str = "any", extra_flops: int = 0, progress: Any = None, **options: Any) -> Any:
    """Make a model that computes the same in less memory, with standard operators alone, as ``onnxmem tile`` does.

    Ops of large values run in bands of rows, channels or hidden units.  With ``out``, the result is the file of this name, and
    what was done is returned (:class:`Tiling`); else the result is returned: a ``ModelProto`` of a ``ModelProto``, bytes of
    anything else.

    ``budget`` is what a run may take, reached with the fewest ops: :class:`BudgetError` if it cannot be.  Without one, the
    arena is the smallest that is found.  ``budget_of`` is ``total``, weights, inputs and outputs included, or ``arena``;
    ``max_ops`` limits the ops of the result; ``join="concat"`` joins results by Concat alone, not also by ScatterND.  Values may
    be computed twice, with at most ``extra_flops`` percent more work.  The other options are those of :class:`ModelOptions`.
    """
    check_options(options, MODEL_OPTIONS, "tile")
    if join not in ("any", "concat"):
        raise UsageError(f"join must be any or concat, not {join}")
    program = Program(model, {**options, "budget": budget, "budget_of": budget_of, "progress": progress})
    done = _tiled(program, s.TileOptions(
        size=ctypes.sizeof(s.TileOptions), budget=program.budget("arena"), only_concat=join == "concat",
        nodes=0 if max_ops is None else number_of("max_ops", max_ops, 1, 1000000),
        extra_flops=number_of("extra_flops", extra_flops, 0, 100000)))
    if out is not None:
        program.context.check(lib.om_model_save(program.context.handle, program.handle, path_of(out)))
        return done
    data = saved(program)
    return parsed(model, data) if hasattr(model, "SerializeToString") else data


def _tiled(program: Program, how: s.TileOptions) -> Tiling:
    """Tile the model of a program."""
    context, copy = program.context, program.copy()
    out = ctypes.POINTER(s.Tiling)()
    program.bind(copy)
    host = program.request("generic")
    with Memory() as memory:
        context.search(lib.om_host_tile, host, copy, byref(how), memory, byref(out))
        done = _told(out.contents, copy.contents.plan.contents.arena[0])
    program.limits(copy)
    lib.om_model_strip(program.handle)
    context.check(lib.om_model_update(context.handle, program.handle, copy))
    lib.om_model_drop_unused(program.handle, copy)
    return done


def _told(found: s.Tiling, arena: s.PlanArena) -> Tiling:
    regions = [found.region[k] for k in range(found.n)]
    copies = [found.copy[k] for k in range(found.ncopy)]
    return Tiling(
        found.before, arena.bytes, arena.lower_bound, found.ops_before, found.ops_after, found.flops_before, found.flops_after,
        [TiledRegion(text(one.first), text(one.last), one.ops, one.bands, text(one.axis), text(one.join), one.steps) for one in regions],
        [TiledCopy(text(one.value), one.ops, one.flops) for one in copies],
        [_step(found.outside[k]) for k in range(found.noutside)],
        [TiledPeak(one.bytes, one.ops, one.regions, one.copies) for one in (found.peak[k] for k in range(found.npeak))],
        found.missed or None, _step(found.stop) if found.missed else None, found.floor,
        text(found.floor_op) if found.floor_op else None)


def _step(one: s.TiledStep) -> TiledStep:
    return TiledStep(text(one.op) if one.op else None, one.bytes, text(one.why))
