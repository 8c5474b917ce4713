#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Large models: the time of `report`, and the memory of loading.

Makes a graph of 5,000 nodes and a model with 500 MB of external weights, then
runs `onnxmem report` and, for comparison, the loading of the same file by ONNX
Runtime (optimization off), alternately.  Prints medians and ratios.

    $PYTHON bench/large.py path/to/onnxmem [repetitions]
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time


def save(path, nodes, shape, output, weights=(), **how):
    import onnx
    from onnx import TensorProto, helper
    graph = helper.make_graph(
        nodes, "large",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)], list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path, **how)


def chain_of_blocks(path, count):
    """Residual blocks of five cheap nodes: almost all time is planning."""
    from onnx import helper
    value, nodes = "x", []
    for k in range(count // 5):
        nodes += [
            helper.make_node("Relu", [value], [f"r{k}"], name=f"relu{k}"),
            helper.make_node("Sigmoid", [f"r{k}"], [f"s{k}"], name=f"sigmoid{k}"),
            helper.make_node("Mul", [f"r{k}", f"s{k}"], [f"m{k}"], name=f"mul{k}"),
            helper.make_node("Transpose", [f"m{k}"], [f"t{k}"], perm=[0, 2, 1], name=f"turn{k}"),
            helper.make_node("Add", [f"t{k}", value], [f"a{k}"], name=f"add{k}"),
        ]
        value = f"a{k}"
    save(path, nodes, [1, 64, 64], value)


def external_weights(path, megabytes):
    """MatMuls with weights in one external file."""
    import numpy as np
    from onnx import helper, numpy_helper
    side = 2048
    count = megabytes * 1_000_000 // (side * side * 4) + 1
    one = np.random.default_rng(0).standard_normal((side, side), dtype=np.float32) / 64
    weights = [numpy_helper.from_array(one, f"w{k}") for k in range(count)]
    nodes = [helper.make_node("MatMul", [f"y{k - 1}" if k else "x", f"w{k}"], [f"y{k}"])
             for k in range(count)]
    save(path, nodes, [1, side], f"y{count - 1}", weights, save_as_external_data=True,
         all_tensors_to_one_file=True, location=os.path.basename(path) + ".data")


def measure(command):
    """Wall time in seconds and peak resident MB of a command that has to succeed."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    error = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)} failed: {error.decode()}")
    return time.perf_counter() - start, usage.ru_maxrss / 1000


IDLE = "import onnxruntime as o, sys; s = o.SessionOptions()"
ORT = (IDLE + "; s.graph_optimization_level = o.GraphOptimizationLevel.ORT_DISABLE_ALL"
       "; o.InferenceSession(sys.argv[1], s, providers=['CPUExecutionProvider'])")


def compare(label, path, tool, repetitions):
    ours, peer, idle = [], [], []
    for _ in range(repetitions):
        ours.append(measure([tool, "report", path]))
        peer.append(measure([sys.executable, "-c", ORT, path]))
        idle.append(measure([sys.executable, "-c", IDLE]))

    def median(runs, at):
        return statistics.median(run[at] for run in runs)

    row = []
    for at, unit in ((0, 1e3), (1, 1)):
        own, other = median(ours, at), median(peer, at) - median(idle, at)
        row += [own * unit, other * unit, other / own]
    print(f"{label:28}" + "".join(f"{x:10.2f}" for x in row))


def make(folder):
    chain_of_blocks(os.path.join(folder, "chain.onnx"), 5000)
    external_weights(os.path.join(folder, "weights.onnx"), 500)


def main():
    if sys.argv[1] == "--make":
        make(sys.argv[2])
        return
    tool = os.path.abspath(sys.argv[1])
    repetitions = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as folder:
        # In another process: the peak of a child includes the memory of its parent at the fork.
        subprocess.run([sys.executable, __file__, "--make", folder], check=True)
        print("medians; ONNX Runtime's loading without Python and its own import")
        print(f"{'':28}" + "".join(f"{h:>10}" for h in ("report", "ORT load", "", "report", "ORT load", "")))
        print(f"{'':28}" + "".join(f"{h:>10}" for h in ("ms", "ms", "ratio", "MB", "MB", "ratio")))
        compare("5,000 nodes", os.path.join(folder, "chain.onnx"), tool, repetitions)
        compare("500 MB of external weights", os.path.join(folder, "weights.onnx"), tool, repetitions)


if __name__ == "__main__":
    main()
