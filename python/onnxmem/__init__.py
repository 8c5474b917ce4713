# SPDX-License-Identifier: Apache-2.0
"""Memory plans for ONNX models: reports, plans, verification, a packer, and an executor in a fixed arena.

>>> import onnxmem
>>> onnxmem.report("model.onnx").arena_bytes          # doctest: +SKIP
6021120

Everything is computed by the C library of the same name; see https://onnx.ai for the format of models.
"""
from __future__ import annotations

# Known to type checkers; importing typing would take most of the time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._errors import (BadPlanError as BadPlanError, BudgetError as BudgetError, DownloadError as DownloadError,
                          Error as Error, FileError as FileError, InvalidModelError as InvalidModelError,
                          MalformedError as MalformedError, MismatchError as MismatchError,
                          OutOfMemoryError as OutOfMemoryError, PassError as PassError, ProgramError as ProgramError,
                          RunError as RunError, ShapeError as ShapeError, StopSearch as StopSearch, StalePlanError as StalePlanError, StoppedError as StoppedError,
                          Status as Status, UnsupportedError as UnsupportedError, UsageError as UsageError)
    from ._report import (ArenaReport as ArenaReport, Live as Live, Peak as Peak, Report as Report, Tensor as Tensor,
                          report as report)
    from ._dlpack import DLPackArray as DLPackArray
    from ._eager import Eager as Eager, EagerStats as EagerStats, Form as Form, Variable as Variable
    from ._fetch import fetch as fetch
    from ._generate import Generation as Generation, GenerationStats as GenerationStats, generate as generate
    from ._library import version as version
    from ._pack import Packing as Packing, Pool as Pool, PoolResult as PoolResult, pack as pack
    from ._plan import Verified as Verified, plan as plan, strip as strip, verify as verify
    from ._tile import TiledPeak as TiledPeak, TiledRegion as TiledRegion, TiledStep as TiledStep, Tiling as Tiling, tile as tile
    from ._train import grad as grad
    from ._tune import TuneChoice as TuneChoice, Tuned as Tuned, TunedLayer as TunedLayer, TunedPlan as TunedPlan, tune as tune
    from ._trainer import Trainer as Trainer
    from ._why import Diff as Diff, SizeChange as SizeChange, Why as Why, diff as diff, why as why
    from ._run import OpTime as OpTime, Session as Session, Stats as Stats, TensorInfo as TensorInfo
    from ._program import Arena as Arena, Model as Model, ModelOptions as ModelOptions, PlanOptions as PlanOptions

# What is imported when it is first used, so that `import onnxmem` takes no time.
_MODULES = {
    "_errors": "BadPlanError BudgetError DownloadError Error FileError InvalidModelError MalformedError MismatchError "
               "OutOfMemoryError PassError ProgramError RunError ShapeError StalePlanError StoppedError StopSearch Status UnsupportedError UsageError",
    "_report": "ArenaReport Live Peak Report Tensor report",
    "_dlpack": "DLPackArray",
    "_eager": "Eager EagerStats Form Variable",
    "_fetch": "fetch",
    "_generate": "Generation GenerationStats generate",
    "_library": "version",
    "_pack": "Packing Pool PoolResult pack",
    "_plan": "Verified plan strip verify",
    "_tile": "TiledPeak TiledRegion TiledStep Tiling tile",
    "_train": "grad",
    "_tune": "TuneChoice Tuned TunedLayer TunedPlan tune",
    "_trainer": "Trainer",
    "_why": "Diff SizeChange Why diff why",
    "_run": "OpTime Session Stats TensorInfo",
    "_program": "Arena Model ModelOptions PlanOptions",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib
    value = getattr(importlib.import_module(f".{module}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
