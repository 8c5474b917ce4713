# SPDX-License-Identifier: Apache-2.0
"""Errors: a class for each status of the library."""
from __future__ import annotations

import enum


class Status(enum.IntEnum):
    """The kind of a failure, as in ``onnxmem/status.h``."""

    OK = 0
    IO = 1
    MALFORMED = 2
    INVALID = 3
    SHAPE = 4
    IR = 5
    MISMATCH = 6
    RUN = 7
    MEMORY = 8
    USAGE = 9
    NOPASS = 10
    BUDGET = 11
    STALE = 12
    BADPLAN = 13
    UNSUPPORTED = 14
    DOWNLOAD = 15
    STOPPED = 16


class Error(Exception):
    """A failure of the library; the text is its message, one sentence."""

    #: The kind of failure.
    status: Status = Status.OK


class FileError(Error, OSError):
    """Reading or writing a file failed."""

    status = Status.IO


class MalformedError(Error, ValueError):
    """A file is not what its format requires."""

    status = Status.MALFORMED


class InvalidModelError(Error, ValueError):
    """The model breaks a rule of ONNX."""

    status = Status.INVALID


class ShapeError(Error, ValueError):
    """Shapes or types do not agree, or are open."""

    status = Status.SHAPE


class ProgramError(Error):
    """The program breaks an invariant, after a pass for example."""

    status = Status.IR


class MismatchError(Error):
    """Numbers differ from those that were expected."""

    status = Status.MISMATCH


class RunError(Error, RuntimeError):
    """The model cannot be run on these inputs."""

    status = Status.RUN


class OutOfMemoryError(Error, MemoryError):
    """There is not enough memory, or a limit of memory is exceeded."""

    status = Status.MEMORY


class UsageError(Error, ValueError):
    """An argument is not valid."""

    status = Status.USAGE


class PassError(Error):
    """A pass could not be found or run."""

    status = Status.NOPASS


class BudgetError(Error):
    """The budget is not met."""

    status = Status.BUDGET


class StalePlanError(Error):
    """The plan does not belong to this model."""

    status = Status.STALE


class BadPlanError(Error):
    """The plan is not valid."""

    status = Status.BADPLAN


class UnsupportedError(Error, NotImplementedError):
    """The model, an operator or a type is not supported."""

    status = Status.UNSUPPORTED


class DownloadError(Error, OSError):
    """A download failed, or its checksum is wrong."""

    status = Status.DOWNLOAD


class StoppedError(Error):
    """A run was stopped."""

    status = Status.STOPPED


_CLASSES: dict[int, type[Error]] = {
    int(one.status): one
    for one in (FileError, MalformedError, InvalidModelError, ShapeError, ProgramError, MismatchError, RunError,
                OutOfMemoryError, UsageError, PassError, BudgetError, StalePlanError, BadPlanError, UnsupportedError,
                DownloadError, StoppedError)
}


class StopSearch(Exception):
    """Raised by a callback for progress: the search ends, with the best result so far."""


def error_of(status: int, message: str) -> Error:
    """The exception for a status of the library."""
    return _CLASSES.get(status, Error)(message)
