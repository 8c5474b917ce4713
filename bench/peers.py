#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One process of a peer: loads a model, runs it for some seconds, and prints what that took as a line of JSON.

    bench/peers.py ort|ov MODEL INPUTS.npz [--seconds S] [--threads N] [--save OUTPUTS.npz] [--profile FILE] [--as-written]

`first`: milliseconds to load and to run once, without the import of the peer's module; `best`: of the runs after that; `cpu`: least
processor time of one; `rss`: peak resident MiB, `base`: that of Python with the inputs, before the peer is imported.
With --profile, which only ort has: a list of nodes with class, milliseconds, operations and bytes (bench/classes.py)."""
import argparse
import json
import os
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import classes


def peak_rss():
    """MiB of this program alone; getrusage() would count those of the parent at the fork."""
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM")) / 1024


class Ort:
    name = "ONNX Runtime"

    def __init__(self, a):
        import onnxruntime as ort
        self.ort, self.a, self.start = ort, a, time.perf_counter()
        o = ort.SessionOptions()
        o.intra_op_num_threads, o.inter_op_num_threads, o.log_severity_level = a.threads, 1, 4
        if a.as_written:
            o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
            o.add_session_config_entry("session.disable_prepacking", "1")      # the profile omits packed inputs
        if a.profile:
            o.enable_profiling, o.profile_file_prefix = True, os.path.join(tempfile.mkdtemp(), "ort")
        self.session = ort.InferenceSession(a.model, o, providers=["CPUExecutionProvider"])
        self.names = [x.name for x in self.session.get_outputs()]

    def bind(self, inputs):
        """Bound once, so that no run pays for Python objects; sequences and maps cannot be bound."""
        self.inputs = inputs
        if any(not x.type.startswith("tensor(") or "string" in x.type for x in self.session.get_outputs()):
            self.run = lambda: self.session.run(None, self.inputs)
            return
        self.io = self.session.io_binding()
        for k, x in inputs.items():
            self.io.bind_cpu_input(k, x)
        for k in self.names:
            self.io.bind_output(k)
        self.run = lambda: self.session.run_with_iobinding(self.io)

    def outputs(self):
        return dict(zip(self.names, self.session.run(None, self.inputs)))

    def write_profile(self, runs):
        path = self.session.end_profiling()
        with open(path) as f:
            events = json.load(f)
        os.remove(path)
        os.rmdir(os.path.dirname(path))
        with open(self.a.profile, "w") as f:
            json.dump(classes.of_ort(events, self.a.model if self.a.as_written else None), f)


class OpenVino:
    name = "OpenVINO"

    def __init__(self, a):
        import openvino
        self.openvino, self.a, self.start = openvino, a, time.perf_counter()

    def bind(self, inputs):
        core = self.openvino.Core()
        m = core.read_model(self.a.model)
        names = {n for i in m.inputs for n in i.get_names()}
        m.reshape({k: list(x.shape) for k, x in inputs.items() if k in names})
        self.compiled = core.compile_model(m, "CPU", {
            "INFERENCE_NUM_THREADS": self.a.threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"})
        self.request = self.compiled.create_infer_request()
        for k, x in inputs.items():
            if k in names:
                self.request.set_tensor(k, self.openvino.Tensor(x, shared_memory=True))
        self.run = lambda: self.request.infer(share_inputs=True, share_outputs=True)

    def outputs(self):
        return {name: np.array(self.request.get_tensor(o).data) for o in self.compiled.outputs for name in o.get_names()}


LEAST_CPU = 1e-4               # seconds of the processor, of runs that are taken together, as in `onnxmem run --stats`


def measure(peer, seconds):
    best = cpu = float("inf")
    runs, span, start = 0, 0, time.perf_counter()
    while runs < 2 or cpu == float("inf") or time.perf_counter() - start < seconds:
        if not span:
            cpu_at = time.process_time()
        at = time.perf_counter()
        peer.run()
        best = min(best, time.perf_counter() - at)
        took, span = time.process_time() - cpu_at, span + 1
        if took >= LEAST_CPU:
            cpu, span = min(cpu, took / span), 0
        runs += 1
    return {"best": best * 1e3, "cpu": cpu * 1e3, "runs": runs}


def main():
    a = argparse.ArgumentParser()
    for name in "peer", "model", "inputs":
        a.add_argument(name)
    a.add_argument("--seconds", type=float, default=1)
    a.add_argument("--threads", type=int, default=1)
    a.add_argument("--save")
    a.add_argument("--profile")
    a.add_argument("--as-written", action="store_true")
    a = a.parse_args()
    with np.load(a.inputs) as f:
        inputs = {k: f[k] for k in f.files}
    base = peak_rss()
    peer = {"ort": Ort, "ov": OpenVino}[a.peer](a)
    peer.bind(inputs)
    peer.run()
    took = {"first": (time.perf_counter() - peer.start) * 1e3, "base": base}
    took.update(measure(peer, a.seconds))
    took["rss"] = peak_rss()
    if a.save:
        np.savez(a.save, **{k: x for k, x in peer.outputs().items() if isinstance(x, np.ndarray)})
    if a.profile:
        peer.write_profile(took["runs"] + 1)
    print(json.dumps(took))


if __name__ == "__main__":
    main()
