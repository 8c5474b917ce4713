# SPDX-License-Identifier: Apache-2.0
"""onnxmem in the tools of others: onnx_ir, onnxscript, onnxsim, onnxslim, ONNX Runtime, PyTorch, ExecuTorch and TVM.

Nothing of them is imported before a function is called that needs it.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._errors import UnsupportedError
from ._plan import plan
from ._program import Model, PlanOptions
from ._report import Report, report

if TYPE_CHECKING:
    from onnx import ModelProto
    from typing_extensions import Unpack

#: A step from a model to a model, as ``onnxslim.slim``; onnxsim's, which also tells whether its result is right, is one, too.
Step = Callable[[Any], Any]


# ---- onnx_ir, onnxscript. ----

def ir_pass(make: Step | None = None, **options: "Unpack[PlanOptions]") -> Any:
    """A pass of onnx_ir, for ``onnx_ir.passes.Sequential`` and for Olive's and onnxscript's pipelines.

    Its result is a model with a plan, as :func:`onnxmem.plan` makes it with the options; or what ``make`` returns, a function
    from ``ModelProto`` to ``ModelProto`` such as :func:`onnxmem.tile`.
    """
    onnx_ir: Any = import_module("onnx_ir")

    class OnnxmemPass(onnx_ir.passes.FunctionalPass):   # type: ignore[misc]
        """A model with a memory plan."""

        def call(self, model: Any) -> Any:
            proto = onnx_ir.to_proto(model)
            made = make(proto) if make else plan(proto, **options)
            return onnx_ir.passes.PassResult(onnx_ir.from_proto(made), modified=True)

    return OnnxmemPass()


# ---- Pipelines of steps: onnxsim, onnxslim. ----

def pipeline(steps: Sequence[Step], **options: "Unpack[PlanOptions]") -> Callable[["ModelProto"], "ModelProto"]:
    """A function that applies steps to a ``ModelProto``, one after the other, and plans the result.

    A step that returns a tuple, as ``onnxsim.simplify`` does, returns the model and whether it is right: if it is not,
    ``ValueError`` is raised.

    >>> import onnxmem.interop
    >>> planned = onnxmem.interop.pipeline([onnxslim.slim, onnxmem.tile])(model)    # doctest: +SKIP
    """
    def run(model: "ModelProto") -> "ModelProto":
        for step in steps:
            model = _checked(step, step(model))
        planned: "ModelProto" = plan(model, **options)
        return planned
    return run


def _checked(step: Step, made: Any) -> Any:
    if not isinstance(made, tuple):
        return made
    model, is_right = made
    if not is_right:
        raise ValueError(f"{getattr(step, '__name__', step)} returned a model that it could not check")
    return model


# ---- ONNX Runtime. ----

def ort_session_options(planned: Report) -> Any:
    """``onnxruntime.SessionOptions`` that fit a plan: sequential, the dims of the plan, memory shared by patterns."""
    onnxruntime: Any = import_module("onnxruntime")
    settings, options = planned.ort_settings(), onnxruntime.SessionOptions()
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    for name in ("enable_cpu_mem_arena", "enable_mem_pattern", "enable_mem_reuse"):
        setattr(options, name, settings[name])
    for name, number in settings["free_dimension_overrides"].items():
        options.add_free_dimension_override_by_name(name, number)
    for name, value in settings["config_entries"].items():
        options.add_session_config_entry(name, value)
    return options


def ort_session(model: "str | bytes", *, share_arena: bool = True, **options: "Unpack[PlanOptions]") -> Any:
    """A session of ONNX Runtime with the settings that fit a plan of the model.

    With ``share_arena``, the arena of the process is made with a first chunk of the size of the plan and of the outputs, and weights
    are outside of it.  ONNX Runtime has one such arena for a process: that of the first session that asks for it.
    """
    onnxruntime: Any = import_module("onnxruntime")
    planned = report(model, **options)
    session_options = ort_session_options(planned)
    if share_arena:
        memory = onnxruntime.OrtMemoryInfo("Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT)
        onnxruntime.create_and_register_allocator(memory, onnxruntime.OrtArenaCfg(planned.ort_settings()["arena_cfg"]))
    else:
        session_options.add_session_config_entry("session.use_env_allocators", "0")
    return onnxruntime.InferenceSession(model, session_options, providers=["CPUExecutionProvider"])


# ---- PyTorch. ----

def from_torch(module: Any, args: tuple[Any, ...], *, input_names: Sequence[str] | None = None, output_names: Sequence[str] | None = None,
               dynamic_shapes: Any = None, **export: Any) -> "ModelProto":
    """A ``ModelProto`` of a ``torch.nn.Module`` or of what ``torch.export.export`` made, for all functions of this package.

    >>> onnxmem.report(onnxmem.interop.from_torch(module, (torch.zeros(1, 3, 224, 224),)))   # doctest: +SKIP
    """
    torch: Any = import_module("torch")
    program = torch.onnx.export(module, args, dynamo=True, verbose=False, input_names=input_names, output_names=output_names,
                                dynamic_shapes=dynamic_shapes, **export)
    if program is None:
        raise ValueError("torch.onnx.export() made no program")
    model: "ModelProto" = program.model_proto
    return model


# ---- ExecuTorch. ----

def executorch_algorithm(alignment: int, specs: Any, graph_module: Any, graph_signature: Any, extra_padding: int = 0) -> Any:
    """A memory planning algorithm of ExecuTorch that is the packer of onnxmem.

    For ``MemoryPlanningAlgorithmSuite(algo_list=[executorch_algorithm])`` and, with it, ``MemoryPlanningPass``.
    """
    planning: Any = import_module("executorch.exir.memory_planning")
    roots: dict[int, list[Any]] = {}
    for spec in specs:
        spec.realign(alignment)
        if spec.storage_base is None:
            roots.setdefault(1 if spec.mem_id is None else spec.mem_id, []).append(spec)
    occupied = getattr(graph_module, "input_mem_buffer_sizes", None) or []
    found = planning.MemoryAlgoResult({}, [0] * (max(roots, default=1) + 1))
    for number, some in roots.items():
        start = occupied[number] if number < len(occupied) else 0
        offsets, height = _packed(some, alignment)
        found.bufsizes[number] = start + height + extra_padding
        for spec, offset in zip(some, offsets):
            found.spec_dict[spec] = planning.SpecAllocResult(number, 0, start + offset)    # all in one object, in which storages may overlap
    for spec in specs:
        if spec.storage_base is not None:
            _place_in_base(spec, found.spec_dict, planning.SpecAllocResult)
    return found


def _packed(specs: list[Any], alignment: int) -> tuple[list[int], int]:
    """Offsets of storages, and the size of their memory."""
    from ._pack import pack
    packing = pack([one.allocated_memory for one in specs], [one.lifetime[0] for one in specs], [one.lifetime[1] for one in specs],
                   align=alignment)
    return [int(one) for one in packing.offsets], packing.height


def _place_in_base(spec: Any, placed: dict[Any, Any], result: Any) -> None:
    """A tensor in the storage of another, which may itself be in one."""
    base, offset = spec.storage_base, spec.storage_base_offset
    while base.storage_base is not None:
        base, offset = base.storage_base, offset + base.storage_base_offset
    at = placed[base]
    placed[spec] = result(at.mem_id, at.mem_obj_id, at.mem_offset + offset)


def executorch_planning_pass(**options: Any) -> Any:
    """``MemoryPlanningPass`` of ExecuTorch with the packer of onnxmem, for ``ExecutorchBackendConfig(memory_planning_pass=...)``.

    The options are those of ``MemoryPlanningPass``.
    """
    suite: Any = import_module("executorch.exir.memory_planning").MemoryPlanningAlgorithmSuite
    return import_module("executorch.exir.passes").MemoryPlanningPass(memory_planning_algo=suite(algo_list=[executorch_algorithm]), **options)


# ---- TVM. ----

def tvm_usmp_algorithm(buffers: Any, pressure: Any) -> Any:
    """An algorithm of USMP, the memory planner of the versions of TVM that have Relay, that is the packer of onnxmem.

    ``tvm.register_func("tir.usmp.algo.onnxmem", tvm_usmp_algorithm)``, then ``PassContext(config={"tir.usmp.enable": True,
    "tir.usmp.custom_algorithm": "onnxmem"})``.  A buffer is in its only pool, or in any of them all.  Packages of
    apache-tvm from 0.25.0 on have no USMP; hhb-tvm, a fork, has it.
    """
    import numpy as np

    from ._pack import Pool, pack
    allocation: Any = import_module("tvm.tir.usmp.utils").PoolAllocation
    pools = {str(one.pool_name): one for buffer in buffers for one in buffer.pool_candidates}
    names, number = list(pools), {str(one.name_hint): k for k, one in enumerate(buffers)}
    if any(len(one.pool_candidates) not in (1, len(names)) for one in buffers):
        raise UnsupportedError("a buffer may be in some pools and not in others")
    pairs = {(min(k, n), max(k, n)) for k, one in enumerate(buffers) for other in one.conflicts for n in [number[str(other.name_hint)]]}
    limits = {name: int(one.size_hint_bytes) for name, one in pools.items()}
    memories: list[Pool] = [Pool(name=name, limit=n) if n >= 0 else Pool(name=name) for name, n in limits.items()]
    packing = pack([int(one.size_bytes) for one in buffers], pairs=np.array(sorted(pairs), np.int64).reshape(-1, 2),
                   align=[int(one.alignment) for one in buffers],
                   pool=[names.index(str(one.pool_candidates[0].pool_name)) if len(one.pool_candidates) == 1 else -1 for one in buffers],
                   pools=memories)
    return {one: allocation(pools[names[packing.pool_of[k]]], int(packing.offsets[k])) for k, one in enumerate(buffers)}


# ---- tqdm. ----

class Bar:
    """A bar of tqdm for ``progress=`` of reports, plans and packings: attempts, the best result and its bound.

    >>> with onnxmem.interop.Bar() as bar:                          # doctest: +SKIP
    ...     onnxmem.report("model.onnx", time_limit=10, progress=bar)

    ``options`` are those of tqdm.
    """

    def __init__(self, **options: Any) -> None:
        self._bar: Any = import_module("tqdm.auto").tqdm(**{"unit": "attempts", **options})

    def __call__(self, what: str, best: int, bound: int) -> None:
        self._bar.set_description(what, refresh=False)
        self._bar.set_postfix(best=best, bound=bound, refresh=False)
        self._bar.update()

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *unused: object) -> None:
        self._bar.close()


__all__ = ["Bar", "Model", "executorch_algorithm", "executorch_planning_pass", "from_torch", "ir_pass", "ort_session", "ort_session_options",
           "pipeline", "tvm_usmp_algorithm"]
