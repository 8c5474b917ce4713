# SPDX-License-Identifier: Apache-2.0
"""A session of ONNX Runtime with the settings that `onnxmem plan MODEL --export ort:FILE` wrote.

    python ort_session.py MODEL.onnx SETTINGS.json
"""
import json
import sys

import onnxruntime as ort


def session(model, settings):
    arena = ort.OrtArenaCfg(settings["arena_cfg"])
    memory = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    ort.create_and_register_allocator(memory, arena)      # once for a process
    options = ort.SessionOptions()
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.enable_cpu_mem_arena = settings["enable_cpu_mem_arena"]
    options.enable_mem_pattern = settings["enable_mem_pattern"]
    options.enable_mem_reuse = settings["enable_mem_reuse"]
    for name, number in settings["free_dimension_overrides"].items():
        options.add_free_dimension_override_by_name(name, number)
    for key, value in settings["config_entries"].items():
        options.add_session_config_entry(key, value)
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


if __name__ == "__main__":
    import numpy as np

    with open(sys.argv[2], encoding="utf-8") as f:
        run = session(sys.argv[1], json.load(f))
    inputs = {i.name: np.ones(i.shape, np.float32) for i in run.get_inputs()}
    for output in run.run(None, inputs):
        print(output.shape, output.dtype)
