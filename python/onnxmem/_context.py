# SPDX-License-Identifier: Apache-2.0
"""A session of the library: messages become exceptions, the log goes to :mod:`logging`."""
from __future__ import annotations

import _thread
import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from . import _structs as s
from ._errors import StopSearch, error_of
from ._library import lib

#: Receives the progress of a search: what is searched, the best result so far and its lower bound, in bytes.
Progress = Callable[[str, int, int], object]


def text(raw: bytes | None) -> str:
    """Names of models may be any bytes."""
    return "" if raw is None else raw.decode("utf-8", "surrogateescape")


def raw(name: str) -> bytes:
    """The bytes of a name."""
    return name.encode("utf-8", "surrogateescape")


def _to_logging(arg: object, level: int, line: bytes) -> None:
    import logging
    logging.getLogger("onnxmem").log(logging.WARNING if level == s.LOG_WARN else logging.INFO, "%s", text(line))


_log = s.logger(_to_logging)


def _free_all(owned: list[tuple[Callable[[Any], Any], Any]]) -> None:
    while owned:
        free, handle = owned.pop()
        free(handle)


class Context:
    """An ``om_session``, and owner of what is made in it.  Used by one thread at a time."""

    def __init__(self, progress: Progress | None = None) -> None:
        self.handle: int | None = lib.om_session_new()
        if not self.handle:
            raise MemoryError
        self._owned: list[tuple[Callable[[Any], Any], Any]] = [(lib.om_session_free, self.handle)]
        weakref.finalize(self, _free_all, self._owned)
        self._raised: BaseException | None = None
        self._tell: Any = None
        lib.om_session_log(self.handle, _log, None, s.LOG_WARN)
        if progress:
            self._listen(progress)

    def _listen(self, progress: Progress) -> None:
        this = weakref.ref(self)

        def tell(arg: object, what: bytes, best: int, bound: int) -> None:
            context = this()
            if context is None or context._raised is not None:
                return
            try:
                progress(what.decode(), best, bound)
            except BaseException as error:   # raised again when the call returns
                context.stop(error)

        self._tell = s.progress(tell)
        lib.om_session_progress(self.handle, self._tell, None)

    def own(self, free: Callable[[Any], Any], handle: Any) -> Any:
        """Free a handle with this session, before all that are older."""
        self._owned.append((free, handle))
        return handle

    def stop(self, why: BaseException) -> None:
        """End the search or the run that is under way."""
        self._raised = why
        lib.om_session_stop(self.handle, True)

    def raise_later(self, why: BaseException) -> None:
        """Raise what a callback raised when the call that led to it returns, with its failure."""
        if self._raised is None:
            self._raised = why

    @property
    def is_stopped(self) -> bool:
        """Did a callback or a signal ask to end?"""
        return self._raised is not None

    def call(self, function: Callable[..., int], *arguments: Any) -> int:
        """Call a function that may take long, so that Ctrl-C ends it; its status.

        Python handles signals in the main thread, and not before a call there returns: another thread makes the call.
        """
        if threading.current_thread() is not threading.main_thread():
            return function(*arguments)
        begun, done, status = threading.Lock(), threading.Lock(), [0]
        finished: list[Context] = []
        done.acquire()

        def work() -> None:
            if not begun.acquire(blocking=False):
                return
            try:
                status[0] = function(*arguments)
            finally:
                finished.append(self)   # which lives as long as the call
                done.release()
        # A signal may come between any two of these steps: the call is made once, and waited for.
        while not finished:
            try:
                if not begun.locked():
                    _thread.start_new_thread(work, ())
                done.acquire()
            except BaseException as error:   # of the handler of a signal
                self.stop(error)
        return status[0]

    def search(self, function: Callable[..., int], *arguments: Any) -> None:
        """Call a function that searches, and check its status.

        Ctrl-C ends a search whose progress someone watches with its best result; without ``progress`` nothing tells that apart from the
        result of the whole search, and it is raised as ever.
        """
        status = self.call(function, *arguments)
        if self._tell is not None and status == 0 and isinstance(self._raised, KeyboardInterrupt):
            self._raised = StopSearch("Ctrl-C")
        self.check(status)

    def check(self, status: int) -> None:
        """Raise what a callback or a signal raised, or the failure of a call."""
        raised, self._raised = self._raised, None
        if raised is not None:
            lib.om_session_stop(self.handle, False)
            if not isinstance(raised, StopSearch):
                raise raised
        if status:
            raise error_of(status, text(lib.om_message(self.handle)))


def array_of(struct: type[Any], rows: Iterable[tuple[Any, ...]]) -> Any:
    """A C array of structs, from their fields."""
    structs = [struct(*row) for row in rows]
    return (struct * len(structs))(*structs)


def path_of(path: str | os.PathLike[str]) -> bytes:
    """A path as the library takes it."""
    return os.fsencode(path)


def shape_of(dims: Any) -> s.Shape:
    """A struct for a shape."""
    shape = s.Shape(rank=len(dims))
    if len(dims) > s.MAX_RANK:
        raise ValueError(f"a shape has at most {s.MAX_RANK} dims, not {len(dims)}")
    for k, dim in enumerate(dims):
        shape.dim[k] = dim
    return shape


def dims_of(shape: s.Shape) -> tuple[int | str | None, ...] | None:
    """The dims of a shape: numbers, symbols, or None; None for an unknown rank."""
    if shape.rank < 0:
        return None
    return tuple(shape.dim[k] if shape.dim[k] >= 0 else text(shape.sym[k]) if shape.sym[k] else None
                 for k in range(shape.rank))


byref = ctypes.byref
