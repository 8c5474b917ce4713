# SPDX-License-Identifier: Apache-2.0
"""A pass of Olive, which writes a memory plan into a model.

Olive finds it by a package configuration that has, beside its own passes,
``"OnnxmemPlan": {"module_path": "onnxmem.olive.OnnxmemPlan"}``.  Importing this module takes the package olive-ai.
"""
from __future__ import annotations

import os
import tempfile
from importlib import import_module
from typing import Any

from ._plan import plan
from ._tile import tile

_passes: Any = import_module("olive.passes")


class OnnxmemPlan(_passes.Pass):   # type: ignore[misc]
    """A model with a memory plan; its ``options`` are those of :func:`onnxmem.plan`, and ``tile`` those of :func:`onnxmem.tile`, if it is tiled first."""

    @classmethod
    def _default_config(cls, accelerator_spec: Any) -> dict[str, Any]:
        parameter: Any = import_module("olive.passes.pass_config").PassConfigParam
        return {"options": parameter(type_=dict, default_value={}, description="Options of onnxmem.plan(), such as dims."),
                "tile": parameter(type_=dict, default_value=None, description="Options of onnxmem.tile(); without them, the model is not tiled.")}

    def _run_for_config(self, model: Any, config: Any, output_model_path: str) -> Any:
        path: str = import_module("olive.model.utils").resolve_onnx_path(output_model_path, os.path.basename(model.model_path))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            source = model.model_path
            if config.tile is not None:
                source = os.path.join(folder, os.path.basename(path))
                tile(model.model_path, source, **config.tile)
            plan(source, path, **config.options)
        return import_module("olive.model").ONNXModelHandler(path)
