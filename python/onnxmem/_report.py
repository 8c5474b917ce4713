# SPDX-License-Identifier: Apache-2.0
"""Reports: how much memory a model needs, and why."""
from __future__ import annotations

import json as _json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import _structs as s
from ._context import text
from ._program import ALL_OPTIONS, Model, PlanOptions, Program, check_options

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import Unpack

    from ._why import Why


@dataclass(frozen=True)
class Tensor:
    """A value of the program, and where the plan has it."""

    name: str                           #: As in the model, or made by a pass.
    block: str                          #: Path of the body that defines it; empty for the graph.
    dtype: str                          #: Element type, as ``float32``; ``undefined`` if it is not known.
    shape: "tuple[int | str | None, ...] | None"  #: Numbers, symbols or None; None for an unknown rank.
    where: str                          #: ``arena``, ``caller``, ``weight`` or ``unplanned``.
    arena: str                          #: Name of the arena; empty elsewhere.
    offset: int                         #: Bytes from the start of the arena.
    bytes: int                          #: Size of its placement or, elsewhere, of its elements; 0: not known.
    first: int                          #: First step of its life, of those of a run.
    last: int                           #: Last step, inclusive.
    alias: str                          #: How it shares memory: ``view``, ``inplace``, ``io``, ``subbuffer``; empty: it does not.
    source: str                         #: The tensor that it shares the memory of.


@dataclass(frozen=True)
class Live:
    """A buffer that is live at the peak."""

    name: str           #: Of the tensor that owns it.
    bytes: int          #: Its size.


@dataclass(frozen=True)
class Peak:
    """Where most memory is needed."""

    step: "int | None"  #: None for a plan that is valid in any order.
    op: str             #: Type of the op; empty at the end of the graph.
    name: str           #: Name of the op.
    bytes: int          #: Live there.
    phase: str = ""     #: Of a training step: ``forward``, ``backward`` or ``update``.
    live: list[Live] = field(default_factory=list)  #: Largest first; of the whole program alone.


@dataclass(frozen=True)
class ArenaReport:
    """An arena of a plan."""

    name: str           #: As requested.
    bytes: int          #: Its size.
    lower_bound: int    #: No packing of its buffers is smaller.
    align: int          #: Alignment of what is in it.
    status: str         #: What is proven: ``optimal``, ``optimal packing`` or ``feasible``.


class Report:
    """The memory of a planned model.  In a notebook it is the page of ``onnxmem report --html``."""

    def __init__(self, program: Program, planned: Any, owner: object = None) -> None:
        self._program, self._planned, self._owner = program, planned, owner
        self._json: dict[str, Any] = _json.loads(program.report(planned, s.REPORT_JSON))
        self._json["plan_ms"] = round(sum(ms for _, ms in program.passes), 3)
        self._json["passes"] = [one for one, _ in program.passes]
        self._tensors: list[Tensor] | None = None

    def __repr__(self) -> str:
        return (f"<onnxmem.Report of {self._json['model']}: arena {self.arena_bytes} bytes, {self.status}, "
                f"total {self.total_bytes} bytes>")

    def _repr_html_(self) -> str:
        import html
        return (f'<iframe srcdoc="{html.escape(self.html(), quote=True)}" width="100%" height="700" style="border: 0">'
                '</iframe>')

    # ---- Numbers. ----

    @property
    def arena_bytes(self) -> int:
        """The size of all arenas."""
        return int(self._json["arena_bytes"])

    @property
    def total_bytes(self) -> int:
        """The memory of a run: arenas, weights, inputs and outputs, without :attr:`total_without` and values outside of the plan."""
        return int(self._json["total_bytes"])

    @property
    def total_without(self) -> list[str]:
        """Inputs and outputs whose size only a run decides, which are not in the total."""
        return list(self._json["total_without"])

    @property
    def weights_bytes(self) -> int:
        """The size of the weights."""
        return int(self._json["weights_bytes"])

    @property
    def io_bytes(self) -> int:
        """The size of inputs and outputs in the memory of the caller."""
        return int(self._json["io_bytes"])

    @property
    def naive_bytes(self) -> int:
        """The arena if every tensor had memory of its own."""
        return int(self._json["naive_bytes"])

    @property
    def lower_bound(self) -> int:
        """No packing of these buffers needs less."""
        return int(self._json["lower_bound_bytes"])

    @property
    def status(self) -> str:
        """What is proven about the size: ``optimal``, ``optimal packing`` or ``feasible``."""
        return str(self._json["status"])

    @property
    def dims(self) -> dict[str, int]:
        """The numbers that symbolic dims were planned for."""
        return dict(self._json["dims"])

    @property
    def arenas(self) -> list[ArenaReport]:
        """The arenas, fastest first."""
        return [ArenaReport(one["name"], one["bytes"], one["lower_bound_bytes"], one["align"], one["status"])
                for one in self._json["arenas"]]

    @property
    def peaks(self) -> list[Peak]:
        """The peak of the program; then, of a training step, that of each phase."""
        whole = self._json["peak"]
        live = [Live(one["name"], one["bytes"]) for one in whole["live"]]
        peaks = [Peak(whole["step"], whole["op"], whole["name"], sum(one.bytes for one in live), live=live)]
        return peaks + [Peak(one["step"], one["op"], one["name"], one["bytes"], phase=one["phase"])
                        for one in self._json.get("phases", ())]

    @property
    def tensors(self) -> list[Tensor]:
        """All values that take part in a run, in order of their numbers."""
        if self._tensors is None:
            self._tensors = _tensors_of(self._program, self._planned)
        return self._tensors

    def columns(self) -> dict[str, "np.ndarray[Any, Any]"]:
        """The tensors as arrays, one for each field: ``pandas.DataFrame(report.columns())``."""
        import numpy as np
        numbers = ("offset", "bytes", "first", "last")
        columns = {}
        for name in Tensor.__dataclass_fields__:
            values = [getattr(one, name) for one in self.tensors]
            if name in numbers:
                columns[name] = np.array(values, dtype=np.uint64 if name in ("offset", "bytes") else np.uint32)
            else:
                columns[name] = np.empty(len(values), dtype=object)
                columns[name][:] = values
        return columns

    @property
    def name(self) -> str:
        """The path of the model, or its name."""
        return self._program.name

    def why(self, tensor: str | None = None) -> "Why":
        """Why the arena is as large as it is or, with ``tensor``, why this value is where it is."""
        from ._why import explained
        return explained(self._program, self._planned, tensor)

    # ---- Forms. ----

    def json(self) -> dict[str, Any]:
        """All figures, as ``onnxmem report --json`` writes them; a copy."""
        copy: dict[str, Any] = _json.loads(_json.dumps(self._json))
        return copy

    def text(self) -> str:
        """Tables, as ``onnxmem report`` prints them."""
        return self._program.report(self._planned, s.REPORT_TEXT)

    def ascii(self) -> str:
        """The memory map as text."""
        return self._program.report(self._planned, s.REPORT_ASCII)

    def svg(self) -> str:
        """The memory map: steps on the x axis, addresses on the y axis."""
        return self._program.report(self._planned, s.REPORT_SVG)

    def html(self) -> str:
        """A page: the memory map with search and zoom, and all figures."""
        return self._program.report(self._planned, s.REPORT_HTML)

    def ort_settings(self) -> dict[str, Any]:
        """Settings of a session of ONNX Runtime that fit the plan; see :func:`onnxmem.interop.ort_session`."""
        found: dict[str, Any] = _json.loads(self._program.report(self._planned, s.REPORT_ORT))
        return found

    def csv(self) -> str:
        """The buffers as a packing problem with its solution."""
        return self._program.report(self._planned, s.REPORT_CSV)


def _tensors_of(model: Program, planned: Any) -> list[Tensor]:
    from ._context import dims_of
    from ._library import lib
    program = planned.contents
    plan = program.plan.contents
    life = (s.Steps * max(plan.nplace, 1))()
    model.context.check(lib.om_plan_report_steps(model.context.handle, planned, life))
    aliases = {plan.alias[k].value: plan.alias[k] for k in range(plan.nalias)}
    arenas = [text(plan.arena[k].name) for k in range(plan.narena)]
    values, found = program.values, []
    for k in range(program.nvalue):
        place = plan.place[k]
        if place.where == s.UNUSED or not values[k]:
            continue
        value = values[k].contents
        in_arena = place.where == s.IN_ARENA
        alias = aliases.get(k)
        found.append(Tensor(
            text(value.name), text(value.block.contents.path) if value.block else "", s.DTYPES[value.type.elem],
            dims_of(value.shape), s.LOCATIONS[place.where], arenas[place.arena] if in_arena else "",
            place.offset if in_arena else 0, place.bytes if in_arena else lib.om_value_bytes(values[k]),
            life[k].first, life[k].last, s.ALIASES[alias.kind] if alias else "",
            text(values[alias.source].contents.name) if alias else ""))
    return found


def report(model: Model, **options: "Unpack[PlanOptions]") -> Report:
    """Plan a model without writing it, and report its memory.

    The options are those of :class:`PlanOptions`.  Raises :class:`ShapeError` if dims are open, :class:`BudgetError` if
    a budget is not met, and other subclasses of :class:`Error`.

    >>> import onnxmem
    >>> onnxmem.report("models/trained.onnx").arena_bytes
    4096
    """
    check_options(options, ALL_OPTIONS, "report")
    program = Program(model, options)
    return Report(program, program.planned())
