# SPDX-License-Identifier: Apache-2.0
"""Plans in models: write, verify, remove."""
from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from . import _structs as s
from ._context import byref, path_of, text
from ._errors import InvalidModelError, UsageError
from ._library import lib, take_bytes
from ._program import ALL_OPTIONS, Model, PlanOptions, Program, check_options
from ._report import ArenaReport, Report

if TYPE_CHECKING:
    from onnx import ModelProto
    from typing_extensions import Unpack


@dataclass(frozen=True)
class Verified:
    """A plan that was verified."""

    arenas: list[ArenaReport]           #: Fastest first.
    placements: int                     #: Values that it has a place for.
    aliases: int                        #: Values in the memory of others.
    unplanned: int                      #: Values outside of the plan.
    ranges: dict[str, tuple[int, int]]  #: Least and largest sizes of symbolic dims; empty for a plan of one size.


# ---- Writing. ----

@overload
def plan(model: Model, out: str | os.PathLike[str], *, annotate: str = ..., original: bool = ...,
         **options: Unpack[PlanOptions]) -> Report: ...
@overload
def plan(model: str | os.PathLike[str] | bytes | bytearray | memoryview, out: None = None, *, annotate: str = ...,
         original: bool = ..., **options: Unpack[PlanOptions]) -> bytes: ...
@overload
def plan(model: ModelProto, out: None = None, *, annotate: str = ..., original: bool = ...,
         **options: Unpack[PlanOptions]) -> ModelProto: ...
def plan(model: Any, out: Any = None, *, annotate: str = "auto", original: bool = True, **options: Any) -> Any:
    """Write the plan of a model into a copy of it, as ``onnxmem plan`` does.

    With ``out``, the copy is the file of this name, and a :class:`Report` is returned; else the copy is returned: a
    ``ModelProto`` of a ``ModelProto``, bytes of anything else.  External data are copied to the folder of ``out``; for a
    copy in memory they stay where they are.

    ``annotate`` is where the plan is written: ``model``, its metadata; ``value``, also the metadata of values; ``auto``,
    both from IR version 10 on.  With ``original``, the copy keeps what ``onnxmem strip`` needs to give a model that came
    from a file back byte for byte.  The other options are those of :class:`PlanOptions`.

    The plan is verified, and read again from the copy and verified again.
    """
    check_options(options, ALL_OPTIONS, "plan")
    how = _annotations(annotate) | (s.ANNOTATE_ORIGINAL if original else 0)
    program = Program(model, options)
    planned = program.planned()
    context = program.context
    context.check(lib.om_model_annotate(context.handle, program.handle, planned, how))
    verified(program, None)
    if out is not None:
        context.check(lib.om_model_save(context.handle, program.handle, path_of(out)))
        return Report(program, planned)
    data = saved(program)
    return parsed(model, data) if hasattr(model, "SerializeToString") else data


def _annotations(annotate: str) -> int:
    ways = {"model": s.ANNOTATE_MODEL, "value": s.ANNOTATE_MODEL | s.ANNOTATE_VALUE, "auto": s.ANNOTATE_MODEL | s.ANNOTATE_AUTO}
    if annotate not in ways:
        raise UsageError(f"annotate must be model, value or auto, not {annotate}")
    return ways[annotate]


def saved(program: Program) -> bytes:
    """The bytes of the model as it is now."""
    data, size = ctypes.c_void_p(), ctypes.c_size_t()
    program.context.check(lib.om_model_save_memory(program.context.handle, program.handle, byref(data), byref(size)))
    return take_bytes(data, size.value)


def parsed(model: Any, data: bytes) -> Any:
    """A ``ModelProto`` of the class of another."""
    copy = type(model)()
    copy.ParseFromString(data)
    return copy


# ---- Verifying. ----

def verify(model: Model, *, sidecar: str | os.PathLike[str] | None = None, folder: str | os.PathLike[str] | None = None) -> Verified:
    """Check that the plan in a model belongs to it and is valid, by simulating a run.

    A plan for ranges of sizes is checked for each size, or for 1024 combinations of more.  ``sidecar`` is a document
    with the plan, in place of the one in the model; ``folder`` has the external data of a model from memory.
    Raises :class:`StalePlanError` or :class:`BadPlanError`; :class:`InvalidModelError` if there is no plan.

    >>> import onnxmem
    >>> onnxmem.verify(onnxmem.plan("models/trained.onnx")).arenas[0].bytes
    6144
    """
    program = Program(model, {"folder": folder})
    if sidecar is None and not lib.om_model_has_plan(program.handle):
        raise InvalidModelError(f"{program.name}: the model contains no plan")
    return verified(program, path_of(sidecar) if sidecar is not None else None)


def verified(program: Program, sidecar: bytes | None) -> Verified:
    """Read the plan of a model as another program would, and verify it."""
    context, host = program.context, program.need_host()
    again = program.copy(program.imported())
    context.check(lib.om_host_read_plan(host, program.handle, again, sidecar, None))
    found = again.contents.plan
    context.check(lib.om_plan_verify(context.handle, again, found))
    context.check(context.call(lib.om_host_check_sizes, host, program.handle, sidecar, found))
    return _summary(found.contents)


def _summary(found: s.Plan) -> Verified:
    arenas = [ArenaReport(text(found.arena[k].name), found.arena[k].bytes, found.arena[k].lower_bound, found.arena[k].align,
                          text(lib.om_plan_arena_status(ctypes.byref(found.arena[k])))) for k in range(found.narena)]
    ranges = {text(found.range[k].symbol): (found.range[k].low, found.range[k].high) for k in range(found.nrange)}
    return Verified(arenas, found.nplace - found.nunplanned, found.nalias, found.nunplanned, ranges)


# ---- Removing. ----

@overload
def strip(model: str | os.PathLike[str] | bytes | bytearray | memoryview) -> bytes: ...
@overload
def strip(model: ModelProto) -> ModelProto: ...
def strip(model: Any) -> Any:
    """A copy of a model without its plan.  The graph stays as it was planned; ``onnxmem strip`` can restore the file."""
    program = Program(model, {})
    lib.om_model_strip(program.handle)
    data = saved(program)
    return parsed(model, data) if hasattr(model, "SerializeToString") else data
