# SPDX-License-Identifier: Apache-2.0
"""Why a plan takes as much memory as it takes, and what differs between two."""
from __future__ import annotations

import ctypes
import json as _json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union

from . import _structs as s
from ._context import Context, byref, raw
from ._errors import UsageError
from ._library import lib, take_bytes
from ._program import ALL_OPTIONS, Model, PlanOptions, Program, check_options
from ._report import Report, report as _report

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: What is compared: a model, a :class:`Report`, or the path of a report that ``onnxmem report --json`` wrote.
Compared = Union[Model, Report]


class _Forms:
    """A result of the library as text, Markdown and JSON."""

    def __init__(self, text: str, json: str) -> None:
        self._text, self._json = text, json

    def __str__(self) -> str:
        return self._text

    def text(self) -> str:
        """As the command prints it."""
        return self._text

    def json(self) -> dict[str, Any]:
        """All of it, as the command writes it with ``--json``."""
        found: dict[str, Any] = _json.loads(self._json)
        return found

    def _repr_html_(self) -> str:
        import html
        return f"<pre>{html.escape(self._text)}</pre>"


class Why(_Forms):
    """An explanation: of the peaks of a plan, or of the place of one value."""

    def __repr__(self) -> str:
        found = self.json()
        about = found.get("name", f"arena {found.get('arena_bytes')} bytes")
        return f"<onnxmem.Why of {found['model']}: {about}>"


@dataclass(frozen=True)
class SizeChange:
    """A size before and after."""

    before: int     #: Bytes of the old one.
    after: int      #: Bytes of the new one.

    @property
    def change(self) -> int:
        """By how many bytes it grew."""
        return self.after - self.before


class Diff(_Forms):
    """A comparison of two reports."""

    def __init__(self, text: str, json: str, markdown: str) -> None:
        super().__init__(text, json)
        self._markdown = markdown

    def __repr__(self) -> str:
        found = self.json()
        return f"<onnxmem.Diff of {found['old']['model']} and {found['new']['model']}: arena {self.arena.change:+d} bytes>"

    def markdown(self) -> str:
        """A table for a pull request."""
        return self._markdown

    def _change(self, name: str) -> SizeChange:
        found = self.json()
        return SizeChange(int(found["old"][name]), int(found["new"][name]))

    @property
    def arena(self) -> SizeChange:
        """The size of all arenas."""
        return self._change("arena_bytes")

    @property
    def total(self) -> SizeChange:
        """The memory of a run."""
        return self._change("total_bytes")

    @property
    def peak(self) -> SizeChange:
        """Bytes that are live at the peak."""
        return self._change("peak_bytes")


def why(model: "Model | Report", tensor: str | None = None, **options: "Unpack[PlanOptions]") -> Why:
    """Explain the peaks of a plan or, with ``tensor``, where this value is and why, as ``onnxmem why`` does.

    A value in a body is named ``SCOPE/NAME`` where its name alone is that of several.  The options are those of
    :class:`PlanOptions`; a :class:`Report` has been planned already, and takes none.

    >>> import onnxmem
    >>> onnxmem.why("models/trained.onnx").json()["arena_bytes"]
    6144
    """
    check_options(options, ALL_OPTIONS, "why")
    if isinstance(model, Report):
        if options:
            raise UsageError("why() of a report takes no options: it is planned already")
        return model.why(tensor)
    program = Program(model, options)
    planned = program.planned()
    return explained(program, planned, tensor)


def explained(program: Program, planned: Any, tensor: str | None) -> Why:
    """The explanation of a planned program."""
    return Why(program.why(planned, tensor, s.REPORT_TEXT), program.why(planned, tensor, s.REPORT_JSON))


def diff(old: Compared, new: Compared, **options: "Unpack[PlanOptions]") -> Diff:
    """Compare the memory of two models, as ``onnxmem diff`` does: which tensors make the difference.

    Each of the two is a model, which is planned with the options (:class:`PlanOptions`), a :class:`Report`, or the path of a
    file that ``onnxmem report --json`` wrote.
    """
    check_options(options, ALL_OPTIONS, "diff")
    sides = [_side(one, options) for one in (old, new)]
    context = Context()
    forms = [_compared(context, sides, form) for form in (s.REPORT_TEXT, s.REPORT_JSON, s.REPORT_MARKDOWN)]
    return Diff(*forms)


def _side(one: Any, options: Any) -> tuple[bytes, bytes]:
    """The JSON of a report, and its name in messages."""
    if isinstance(one, (str, os.PathLike)) and _begins_object(one):
        with open(one, "rb") as file:
            return file.read(), os.fsencode(one)
    found = one if isinstance(one, Report) else _report(one, **options)
    return _json.dumps(found.json()).encode(), raw(found.name)


def _begins_object(path: str | os.PathLike[str]) -> bool:
    """Is the file a text in JSON that begins as an object?  One that cannot be read is left to the library."""
    try:
        with open(path, "rb") as file:
            return file.read(256).lstrip()[:1] == b"{"
    except OSError:
        return False


def _compared(context: Context, sides: list[tuple[bytes, bytes]], form: int) -> str:
    out = ctypes.c_void_p()
    (old, old_name), (new, new_name) = sides
    context.check(lib.om_reports_compare(context.handle, old, old_name, new, new_name, form, byref(out)))
    return take_bytes(out).decode("utf-8", "replace")
