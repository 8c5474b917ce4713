# SPDX-License-Identifier: Apache-2.0
"""The shared library and its functions.

The library is, in this order: the file that the environment variable ``ONNXMEM_LIBRARY`` names; the one in the
folder ``_lib`` of this package, where wheels have it; the installed one.  ctypes releases the GIL in every call.
"""
from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from typing import Any

from . import _structs as s

_NAME = "libonnxmem.so.0"

_status = c_int
_prog = POINTER(s.Prog)

# Results and arguments.
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "om_version": (c_char_p, ()),
    "om_isa": (c_char_p, (c_void_p,)),
    "om_threads": (_status, (c_void_p, c_uint32, POINTER(c_uint32))),
    # status.h
    "om_session_new": (c_void_p, ()),
    "om_session_free": (None, (c_void_p,)),
    "om_session_log": (None, (c_void_p, s.logger, c_void_p, c_int)),
    "om_session_progress": (None, (c_void_p, s.progress, c_void_p)),
    "om_session_stop": (None, (c_void_p, c_bool)),
    "om_session_load_limit": (None, (c_void_p, c_uint64)),
    "om_message": (c_char_p, (c_void_p,)),
    # arena.h
    "om_arena_new": (c_void_p, ()),
    "om_arena_free": (None, (c_void_p,)),
    # onnx.h
    "om_model_load": (_status, (c_void_p, c_char_p, POINTER(c_void_p))),
    "om_model_load_memory": (_status, (c_void_p, c_void_p, c_size_t, c_char_p, c_char_p, POINTER(c_void_p))),
    "om_model_free": (None, (c_void_p,)),
    "om_model_save": (_status, (c_void_p, c_void_p, c_char_p)),
    "om_model_save_memory": (_status, (c_void_p, c_void_p, POINTER(c_void_p), POINTER(c_size_t))),
    "om_model_import": (_status, (c_void_p, c_void_p, POINTER(_prog))),
    "om_model_update": (_status, (c_void_p, c_void_p, _prog)),
    "om_model_train": (_status, (c_void_p, c_void_p, _prog)),
    "om_model_annotate": (_status, (c_void_p, c_void_p, _prog, c_uint)),
    "om_model_has_plan": (c_bool, (c_void_p,)),
    "om_model_drop_unused": (c_size_t, (c_void_p, _prog)),
    "om_model_strip": (c_size_t, (c_void_p,)),
    "om_model_set_weight": (_status, (c_void_p, c_void_p, c_char_p, POINTER(s.Tensor))),
    "om_model_has_weight": (c_bool, (c_void_p, c_char_p)),
    "om_prog_free": (None, (_prog,)),
    "om_prog_define_dim": (_status, (c_void_p, _prog, c_char_p, c_char_p)),
    "om_prog_states_by_name": (_status, (c_void_p, _prog, c_char_p)),
    # binding.h
    "om_binding_new": (c_void_p, ()),
    "om_binding_free": (None, (c_void_p,)),
    "om_binding_dim": (_status, (c_void_p, c_void_p, c_char_p, c_int64)),
    "om_binding_shape": (_status, (c_void_p, c_void_p, c_char_p, POINTER(s.Shape))),
    "om_binding_value": (_status, (c_void_p, c_void_p, c_char_p, POINTER(s.Tensor))),
    "om_binding_default": (_status, (c_void_p, c_void_p, _prog, c_char_p)),
    "om_binding_batches": (_status, (c_void_p, _prog, c_void_p, c_void_p, POINTER(c_char_p))),
    "om_open_inputs_text": (c_char_p, (_prog, c_void_p)),
    "om_binding_rest": (None, (c_void_p, c_int64)),
    "om_bind": (_status, (c_void_p, _prog, c_void_p)),
    "om_prog_bind": (_status, (c_void_p, _prog, c_void_p, POINTER(_prog))),
    # pass.h
    "om_host_new": (c_void_p, (c_void_p, c_char_p)),
    "om_host_free": (None, (c_void_p,)),
    "om_host_hook": (None, (c_void_p, s.pass_hook, c_void_p)),
    "om_host_request": (_status, (c_void_p, POINTER(s.PlanRequest))),
    "om_host_plugin": (_status, (c_void_p, c_char_p)),
    "om_host_passes": (POINTER(POINTER(s.Pass)), (c_void_p, c_bool)),
    "om_host_run": (_status, (c_void_p, _prog, c_char_p)),
    "om_host_flags": (_status, (c_void_p, POINTER(s.FlagSet), c_size_t, POINTER(c_char_p))),
    "om_host_read_plan": (_status, (c_void_p, c_void_p, _prog, c_char_p, c_void_p)),
    "om_host_find_formulas": (_status, (c_void_p, _prog, _prog)),
    "om_default_pipeline": (c_char_p, ()),
    "om_host_decided": (c_char_p, (c_void_p, _prog, c_char_p)),
    "om_host_pipeline_with": (_status, (c_void_p, _prog, _prog, POINTER(s.DimRange), c_uint32, POINTER(s.FlagSet), c_size_t,
                                        POINTER(c_char_p))),
    "om_host_check_sizes": (_status, (c_void_p, c_void_p, c_char_p, POINTER(s.Plan))),
    "om_host_tile": (_status, (c_void_p, _prog, POINTER(s.TileOptions), c_void_p, POINTER(POINTER(s.Tiling)))),
    # tune.h
    "om_host_tune": (_status, (c_void_p, _prog, POINTER(s.TuneOptions), c_void_p, POINTER(_prog), POINTER(POINTER(s.Tuned)))),
    # fetch.h
    "om_fetch": (_status, (c_void_p, c_char_p, POINTER(s.FetchOptions), POINTER(c_void_p))),
    # opdef.h
    "om_prog_op_rule": (_status, (c_void_p, _prog, c_char_p, POINTER(c_bool))),
    # plan.h, report.h
    "om_plan_verify": (_status, (c_void_p, _prog, POINTER(s.Plan))),
    "om_plan_limits": (_status, (c_void_p, _prog, POINTER(s.Plan), c_uint64, c_uint64)),
    "om_plan_arena_status": (c_char_p, (POINTER(s.PlanArena),)),
    "om_plan_report": (_status, (c_void_p, _prog, c_char_p, c_int, POINTER(c_void_p))),
    "om_plan_report_steps": (_status, (c_void_p, _prog, POINTER(s.Steps))),
    "om_plan_find_value": (_status, (c_void_p, _prog, _prog, c_char_p, POINTER(POINTER(s.Value)))),
    "om_plan_why": (_status, (c_void_p, _prog, c_char_p, POINTER(s.Value), c_int, POINTER(c_void_p))),
    "om_reports_compare": (_status, (c_void_p, c_char_p, c_char_p, c_char_p, c_char_p, c_int, POINTER(c_void_p))),
    "om_value_bytes": (c_uint64, (POINTER(s.Value),)),
    # executor.h
    "om_exec_device_input": (_status, (c_void_p, c_uint32, POINTER(s.Tensor), c_void_p)),
    "om_exec_device_output": (_status, (c_void_p, c_uint32, POINTER(s.Tensor), c_void_p)),
    "om_exec_new": (_status, (c_void_p, _prog, POINTER(s.Plan), POINTER(s.ExecOptions), POINTER(c_void_p))),
    "om_exec_free": (None, (c_void_p,)),
    "om_exec_input": (_status, (c_void_p, c_uint32, POINTER(s.Tensor))),
    "om_exec_output": (_status, (c_void_p, c_uint32, c_void_p, c_uint64)),
    "om_exec_run": (_status, (c_void_p,)),
    "om_exec_result": (POINTER(s.Tensor), (c_void_p, c_uint32)),
    "om_exec_get_stats": (POINTER(s.ExecStats), (c_void_p,)),
    # pack.h
    "om_pack_solve": (_status, (c_void_p, POINTER(s.Problem))),
    "om_pack_check_problem": (_status, (c_void_p, POINTER(s.Problem))),
    # eager.h, callback.h
    "om_eager_new": (_status, (c_void_p, POINTER(s.EagerOptions), POINTER(c_void_p))),
    "om_eager_free": (None, (c_void_p,)),
    "om_eager_run": (_status, (c_void_p, c_char_p, POINTER(s.Attr), c_size_t, POINTER(c_void_p), c_size_t, POINTER(c_void_p))),
    "om_eager_run_program": (_status, (c_void_p, _prog, c_size_t, POINTER(c_void_p), c_size_t, POINTER(c_void_p))),
    "om_eager_finish": (_status, (c_void_p,)),
    "om_eager_trim": (_status, (c_void_p,)),
    "om_eager_get_stats": (POINTER(s.EagerStats), (c_void_p,)),
    "om_eager_record": (None, (c_void_p, c_bool)),
    "om_eager_gradient": (_status, (c_void_p, c_void_p, c_void_p, c_size_t, POINTER(c_void_p), POINTER(c_void_p))),
    "om_variable_new": (_status, (c_void_p, POINTER(s.Tensor), POINTER(c_void_p))),
    "om_variable_wrap": (_status, (c_void_p, POINTER(s.ForeignMemory), POINTER(c_void_p))),
    "om_variable_free": (None, (c_void_p,)),
    "om_variable_watch": (None, (c_void_p,)),
    "om_variable_form": (POINTER(s.Tensor), (c_void_p,)),
    "om_variable_read": (_status, (c_void_p, POINTER(POINTER(s.Tensor)))),
    "om_callbacks_new": (_status, (c_void_p, POINTER(c_void_p))),
    "om_callbacks_free": (None, (c_void_p,)),
    "om_callbacks_add": (_status, (c_void_p, c_void_p, POINTER(s.Callback))),
    # autodiff.h, trainer.h
    "om_prog_add_training_step": (_status, (c_void_p, _prog, POINTER(s.TrainOptions))),
    "om_verify": (_status, (c_void_p, _prog)),
    "om_rate_parse": (_status, (c_void_p, c_char_p, c_uint64, POINTER(s.RateSchedule))),
    "om_rate_at": (c_double, (POINTER(s.RateSchedule), c_double, c_uint64)),
    "om_step_find": (_status, (c_void_p, _prog, c_void_p, POINTER(s.Step))),
    "om_trainer_new": (_status, (c_void_p, _prog, POINTER(c_void_p))),
    "om_trainer_free": (None, (c_void_p,)),
    "om_trainer_state": (POINTER(s.Tensor), (c_void_p, c_uint32, POINTER(c_char_p))),
    "om_trainer_set": (_status, (c_void_p, c_char_p, POINTER(s.Tensor))),
    "om_trainer_first_uninitialized": (c_char_p, (c_void_p,)),
    "om_trainer_bind": (_status, (c_void_p, c_void_p)),
    "om_trainer_step": (_status, (c_void_p, c_void_p, POINTER(c_uint64))),
}


def beside(name: str) -> str:
    """The path of a file that wheels have beside the library."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "_lib", name)


def _find() -> str:
    named = os.environ.get("ONNXMEM_LIBRARY")
    if named:
        return named
    found = beside(_NAME)
    return found if os.path.exists(found) else _NAME


def _load() -> ctypes.CDLL:
    path = _find()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"the library of onnxmem cannot be loaded: {error}; install it, or name its file in the "
                          "environment variable ONNXMEM_LIBRARY") from None
    for name, (result, arguments) in _FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(f"{path} is another version of the library: it has no function {name}") from None
        function.restype = result
        function.argtypes = arguments
    return library


lib = _load()

_free = ctypes.CDLL(None).free
_free.argtypes = (c_void_p,)
_free.restype = None


def take_bytes(data: c_void_p, size: int | None = None) -> bytes:
    """A copy of memory that the library handed over, which is freed; without a size, it ends with a NUL."""
    try:
        assert data.value is not None
        return ctypes.string_at(data.value, -1 if size is None else size)
    finally:
        _free(data)


def version() -> str:
    """The version of the library."""
    text: bytes = lib.om_version()
    return text.decode()
