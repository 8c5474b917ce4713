# SPDX-License-Identifier: Apache-2.0
"""The packer: buffers with lifetimes in, offsets out; no model, no operators."""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from . import _structs as s
from ._context import Context, Progress, array_of, byref, raw, text
from ._errors import UsageError
from ._library import lib
from ._program import number_of


class Pool(TypedDict, total=False):
    """A memory; of several, the first is the fastest."""

    name: str       #: In messages.
    limit: int      #: Its size; no limit if missing.
    align: int      #: Alignment of every buffer in it, besides its own.


@dataclass(frozen=True)
class PoolResult:
    """The packing of one pool."""

    name: str           #: As given.
    height: int         #: Bytes: the largest end of a buffer.
    lower_bound: int    #: No packing of these buffers is lower.
    bound_step: int     #: A step whose live bytes give the bound.
    is_optimal: bool    #: Is the height proven to be minimal?
    is_limited: bool    #: A search ended at its limit.
    strategy: str       #: The heuristic that found it.


@dataclass(frozen=True)
class Packing:
    """Offsets of buffers, and how good they are."""

    offsets: npt.NDArray[np.uint64]     #: From the start of the pool, in bytes.
    pool_of: npt.NDArray[np.uint32]     #: Number of the pool of each buffer.
    pools: list[PoolResult]             #: In the order that they were given in.

    @property
    def height(self) -> int:
        """Bytes of all pools."""
        return sum(one.height for one in self.pools)

    @property
    def lower_bound(self) -> int:
        """No packing in these pools needs less."""
        return sum(one.lower_bound for one in self.pools)

    @property
    def is_optimal(self) -> bool:
        """Is the height of every pool proven to be minimal?"""
        return all(one.is_optimal for one in self.pools)


def _layout(struct: type[ctypes.Structure]) -> np.dtype[Any]:
    """The NumPy type of an array of structs."""
    formats = {ctypes.c_uint32: "u4", ctypes.c_uint64: "u8", ctypes.c_int64: "i8", ctypes.c_char_p: "u8", ctypes.c_void_p: "u8"}
    names = [field[0] for field in struct._fields_]
    return np.dtype({"names": names, "formats": [formats[field[1]] for field in struct._fields_],
                     "offsets": [getattr(struct, name).offset for name in names], "itemsize": ctypes.sizeof(struct)})


def _filled(name: str, values: Any, n: int, low: int, high: int) -> npt.NDArray[Any]:
    """One integer for each buffer, in a range."""
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iub":
        raise UsageError(f"{name} must be integers, not {array.dtype}")
    if array.ndim > 1 or (array.ndim == 1 and array.size != n):
        raise UsageError(f"{name} must be one integer or {n}, not an array of the shape {array.shape}")
    if array.size and (int(array.min()) < low or int(array.max()) > high):
        raise UsageError(f"{name} must be from {low} to {high}")
    return np.broadcast_to(array, (n,))


def _intervals(sizes: Any, first: Any, last: Any, intervals: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """All intervals in use, those of a buffer together, with where each buffer's begin and how many they are."""
    n, most = len(sizes), 2**32 - 2
    if intervals is None:
        if first is None or last is None:
            raise UsageError("lifetimes are required: first and last, or intervals, or pairs")
        live = np.zeros(n, _layout(s.Interval))
        live["lower"] = _filled("first", first, n, 0, most)
        live["upper"] = _filled("last", last, n, 0, most).astype(np.uint64) + 1
        return live, np.arange(n, dtype=np.uint64), np.ones(n, np.uint32)
    rows = np.asarray(intervals)
    if rows.ndim != 2 or rows.shape[1] not in (3, 5) or (rows.size and rows.dtype.kind not in "iu"):
        raise UsageError("intervals must have rows of integers (buffer, first, last) or (buffer, first, last, from, to)")
    if rows.size and (rows.min() < 0 or int(rows[:, 0].max()) >= n or int(rows[:, 1:3].max()) > most):
        raise UsageError(f"intervals must name buffers from 0 to {n - 1} and steps from 0")
    rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
    live = np.zeros(len(rows), _layout(s.Interval))
    live["lower"], live["upper"] = rows[:, 1], rows[:, 2].astype(np.uint64) + 1
    if rows.shape[1] == 5:
        live["from"], live["to"] = rows[:, 3], rows[:, 4]
    count = np.bincount(rows[:, 0].astype(np.int64), minlength=n)
    return live, (np.cumsum(count) - count).astype(np.uint64), count.astype(np.uint32)


def _pools(pools: Sequence[Pool] | None) -> Any:
    given = pools if pools is not None else ({},)
    return (s.Pool * len(given))(*(s.Pool(name=raw(one["name"]) if "name" in one else None, limit=number_of("limit", one.get("limit", 0)),
                                          align=number_of("align", one.get("align", 0))) for one in given))


def _groups(groups: Sequence[Sequence[int]], n: int) -> tuple[Any, list[npt.NDArray[np.uint32]]]:
    members = [_filled("members of a group", list(one), len(one), 0, n - 1).astype(np.uint32) for one in groups]
    return array_of(s.PackGroup, ((one.ctypes.data, len(one)) for one in members)), members


def pack(sizes: npt.ArrayLike, first: npt.ArrayLike | None = None, last: npt.ArrayLike | None = None, *,
         intervals: npt.ArrayLike | None = None, pairs: npt.ArrayLike | None = None, align: npt.ArrayLike = 1,
         fixed: npt.ArrayLike = s.OFFSET_FREE, pool: npt.ArrayLike | None = None, access: npt.ArrayLike = 0,
         pools: Sequence[Pool] | None = None, groups: Sequence[Sequence[int]] = (), names: Sequence[str] | None = None,
         proven: int = 0, nodes: int = 0, seconds: float = 0, progress: Progress | None = None) -> Packing:
    """Assign an offset to every buffer, so that no two that are in use at the same step overlap.

    Buffer ``k`` has ``sizes[k]`` bytes and is in use from step ``first[k]`` to step ``last[k]``, both inclusive.  All that
    is said of buffers is one number for all, or an array with one for each; arrays of NumPy are taken in bulk.

    * ``intervals``, in place of ``first`` and ``last``: rows (buffer, first, last), any number for a buffer, which is in use in
      all of them; or rows (buffer, first, last, from, to), where only the bytes from ``from`` to before ``to`` are.
    * ``pairs``, in place of lifetimes: the pairs of buffers that may not overlap.
    * ``align``: a power of two.  ``fixed``: required offsets; -1: none.  ``pool``: numbers of required pools; -1: any.
    * ``access``: bytes moved to and from a buffer, which decides about the fastest pools.  ``pools``: the memories; one
      without a limit by default.  ``groups``: buffers that are placed back to back.
    * ``proven``: a lower bound that is known.  ``nodes`` and ``seconds`` limit the search; without ``seconds``, the result
      depends on the problem alone.  ``progress`` is called with (what, best, bound) after every attempt,
      maybe in another thread; if it raises :class:`StopSearch`, or on Ctrl-C, the best packing so far is returned.

    The result is checked by code that shares nothing with the packer.  Raises :class:`BudgetError` if a limit of a pool is
    exceeded, :class:`InvalidModelError` for a problem that makes no sense, as buffers at fixed offsets that overlap.

    >>> import onnxmem
    >>> onnxmem.pack([64, 32, 64], first=[0, 1, 2], last=[1, 2, 3]).height
    96
    """
    bytes_ = np.asarray(sizes)
    if bytes_.ndim != 1:
        raise UsageError(f"sizes must be a list of integers, not an array of the shape {bytes_.shape}")
    n, most = len(bytes_), 2**63 - 1
    if n >= s.POOL_ANY:
        raise UsageError(f"{n} buffers are too many")
    room = np.zeros(n, _layout(s.Buffer))
    room["bytes"] = _filled("sizes", bytes_, n, 0, most)
    room["align"] = _filled("align", align, n, 0, most)
    room["fixed"] = _filled("fixed", fixed, n, -1, most)
    room["access_bytes"] = _filled("access", access, n, 0, most)
    memories = _pools(pools)
    wanted = _filled("pool", -1 if pool is None else pool, n, -1, len(memories) - 1)
    room["fixed_pool"] = np.where(wanted < 0, s.POOL_ANY if len(memories) > 1 else 0, wanted)
    keep: list[Any] = []
    if names is not None:
        keep.append(_name_all(room, names))
    problem = s.Problem(size=ctypes.sizeof(s.Problem), buf=room.ctypes.data, n=n, pool=memories, npool=len(memories),
                        proven=number_of("proven", proven), nodes=number_of("nodes", nodes), seconds=float(seconds))
    if pairs is not None:
        keep.append(_set_pairs(problem, pairs, n))
    else:
        live, start, count = _intervals(bytes_, first, last, intervals)
        room["live"], room["nlive"] = live.ctypes.data + start * ctypes.sizeof(s.Interval), count
        keep.append(live)
    if groups:
        problem.group, members = _groups(groups, n)
        problem.ngroup = len(members)
        keep.append(members)
    _solve(problem, progress)
    return Packing(room["offset"].copy(), room["pool"].copy(), [_pool_result(one) for one in memories])


def _name_all(room: npt.NDArray[Any], names: Sequence[str]) -> Any:
    if len(names) != len(room):
        raise UsageError(f"names must be {len(room)}, not {len(names)}")
    texts = (ctypes.c_char_p * max(len(names), 1))(*(raw(name) for name in names))
    room["name"] = np.frombuffer(bytes(texts), dtype=np.uint64)[: len(names)]
    return texts


def _set_pairs(problem: s.Problem, pairs: Any, n: int) -> Any:
    rows = np.asarray(pairs).reshape(-1, 2)
    rows = np.ascontiguousarray(_filled("pairs", rows.reshape(-1), rows.size, 0, max(n - 1, 0)).astype(np.uint32))
    problem.by_pairs, problem.pair, problem.npair = True, rows.ctypes.data, rows.size // 2
    return rows


def _solve(problem: s.Problem, progress: Progress | None) -> None:
    context = Context(progress)
    context.search(lib.om_pack_solve, context.handle, byref(problem))
    context.check(lib.om_pack_check_problem(context.handle, byref(problem)))


def _pool_result(pool: s.Pool) -> PoolResult:
    found = pool.result
    return PoolResult(text(pool.name), found.height, found.lower_bound, found.bound_step, found.status == s.PACK_OPTIMAL,
                      found.is_limited, text(found.strategy))


