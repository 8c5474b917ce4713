# SPDX-License-Identifier: Apache-2.0
"""Gradients and training steps."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from . import _structs as s
from ._context import byref, path_of, raw
from ._errors import UsageError
from ._library import lib
from ._plan import parsed, saved
from ._program import MODEL_OPTIONS, ModelOptions, Program, check_options

if TYPE_CHECKING:
    from onnx import ModelProto
    from typing_extensions import Unpack

    from ._program import Model

_NUMBERS = {"clip_norm": 0.0, "clip_value": 0.0, "rate": 0.001, "momentum": 0.9, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "decay": 0.0}


@overload
def grad(model: Model, out: str | os.PathLike[str], *, loss: str | None = ..., loss_fn: str | None = ..., output: str | None = ...,
         label: str | None = ..., wrt: Sequence[str] | None = ..., optimizer: str | None = ..., train_mode: bool = ...,
         keep_outputs: bool = ..., fused: bool = ..., fused_updates: bool = ..., rate: float = ..., clip_norm: float = ..., clip_value: float = ...,
         momentum: float = ..., beta1: float = ..., beta2: float = ..., epsilon: float = ..., decay: float = ...,
         **options: Unpack[ModelOptions]) -> None: ...
@overload
def grad(model: str | os.PathLike[str] | bytes | bytearray | memoryview, out: None = None, *, loss: str | None = ..., loss_fn: str | None = ...,
         output: str | None = ..., label: str | None = ..., wrt: Sequence[str] | None = ..., optimizer: str | None = ...,
         train_mode: bool = ..., keep_outputs: bool = ..., fused: bool = ..., fused_updates: bool = ..., rate: float = ..., clip_norm: float = ...,
         clip_value: float = ..., momentum: float = ..., beta1: float = ..., beta2: float = ..., epsilon: float = ...,
         decay: float = ..., **options: Unpack[ModelOptions]) -> bytes: ...
@overload
def grad(model: ModelProto, out: None = None, *, loss: str | None = ..., loss_fn: str | None = ..., output: str | None = ...,
         label: str | None = ..., wrt: Sequence[str] | None = ..., optimizer: str | None = ..., train_mode: bool = ...,
         keep_outputs: bool = ..., fused: bool = ..., fused_updates: bool = ..., rate: float = ..., clip_norm: float = ..., clip_value: float = ...,
         momentum: float = ..., beta1: float = ..., beta2: float = ..., epsilon: float = ..., decay: float = ...,
         **options: Unpack[ModelOptions]) -> ModelProto: ...
def grad(model: Any, out: Any = None, *, loss: str | None = None, loss_fn: str | None = None, output: str | None = None,
         label: str | None = None, wrt: Sequence[str] | None = None, optimizer: str | None = None, train_mode: bool = False,
         keep_outputs: bool = False, fused: bool = False, fused_updates: bool = False,
         **options: Any) -> Any:
    """Add the gradients of a loss to a model, or make it a training step; the result is as that of :func:`plan`.

    ``loss`` is a value of the model with one element; or ``loss_fn``, ``cross-entropy`` or ``mse``, is computed of ``output``,
    the first output by default, and of a new input ``label``.  ``wrt`` names the values whose gradients are computed, all
    weights by default.  With an ``optimizer``, ``sgd``, ``momentum``, ``nesterov``, ``adam``, ``adamw``,
    ``rmsprop``, ``adagrad`` or ``lamb``, updated weights are outputs, and
    weights inputs with their old values as defaults; ``rate``, ``momentum``, ``beta1``, ``beta2``, ``epsilon`` and ``decay`` are its
    parameters, ``clip_norm`` and ``clip_value`` clip gradients.  ``train_mode`` runs BatchNormalization and Dropout in
    training mode, ``keep_outputs`` keeps the outputs of the model, ``fused`` computes gradients, and ``fused_updates`` updates
    each weight, by functions of the domain ``org.onnxmem.grad``.  The other options are those of :class:`ModelOptions`; dims may stay open.
    """
    check_options(options, MODEL_OPTIONS | frozenset(_NUMBERS), "grad")
    if not loss and not loss_fn:
        raise UsageError("a loss is required: loss or loss_fn")
    texts = {"loss": loss, "loss_fn": loss_fn, "output": output, "label": label, "optimizer": optimizer}
    step = s.TrainOptions(size=ctypes.sizeof(s.TrainOptions), trains=train_mode, keeps_outputs=keep_outputs, functions=fused,
                          fuses_updates=fused_updates,
                          **{name: raw(one) for name, one in texts.items() if one is not None},
                          **{name: float(options.get(name, usual)) for name, usual in _NUMBERS.items()})
    if wrt is not None:
        step.wrt, step.nwrt = (ctypes.c_char_p * len(wrt))(*(raw(one) for one in wrt)), len(wrt)
    program = Program(model, options)
    _differentiate(program, step)
    if out is not None:
        program.context.check(lib.om_model_save(program.context.handle, program.handle, path_of(out)))
        return None
    data = saved(program)
    return parsed(model, data) if hasattr(model, "SerializeToString") else data


def _differentiate(program: Program, step: s.TrainOptions) -> None:
    context, copy = program.context, program.copy()
    program.bind(copy, all_dims=False)
    context.check(lib.om_host_run(program.need_host(), copy, b"inline,shapes"))
    context.check(lib.om_prog_add_training_step(context.handle, copy, byref(step)))
    context.check(lib.om_verify(context.handle, copy))
    lib.om_model_strip(program.handle)
    context.check(lib.om_model_update(context.handle, program.handle, copy))
