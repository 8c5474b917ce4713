# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime on CUDA beside bench/gpu.sh: the least and the mean time of each model, as TAB-separated lines.

    bench/gpu_peers.py [--repeat N] [--out FILE] MODEL...

The status is 77 where it is not installed, or cannot use the device.  Inputs are copied in each run, as in `onnxmem run`;
dims that the file leaves open are 1."""
import argparse
import os
import sys
import time

SKIPPED = 77


def tensors(session, numpy):
    """Random inputs: small whole numbers for integers."""
    random = numpy.random.default_rng(3)
    kinds = {"tensor(float)": numpy.float32, "tensor(float16)": numpy.float16, "tensor(double)": numpy.float64,
             "tensor(int64)": numpy.int64, "tensor(int32)": numpy.int32, "tensor(uint8)": numpy.uint8,
             "tensor(int8)": numpy.int8, "tensor(bool)": numpy.bool_}
    made = {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) and d > 0 else 1 for d in i.shape]
        kind = kinds[i.type]
        made[i.name] = (random.random(shape) if "float" in i.type or "double" in i.type else random.integers(0, 2, shape)).astype(kind)
    return made


def measure(session, inputs, repeat):
    """Milliseconds: the least and the mean, after three runs that are not counted."""
    times = []
    for k in range(repeat + 3):
        start = time.perf_counter()
        session.run(None, inputs)
        if k >= 3:
            times.append(1e3 * (time.perf_counter() - start))
    return min(times), sum(times) / len(times)


def line(path, repeat, onnxruntime, numpy):
    name = os.path.basename(path).removesuffix(".onnx")
    try:
        session = onnxruntime.InferenceSession(path, providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
        if session.get_providers()[0] != "CUDAExecutionProvider":
            return f"{name}\t-\t-\tthe provider of CUDA was not taken"
        least, mean = measure(session, tensors(session, numpy), repeat)
        return f"{name}\t{least:.4f}\t{mean:.4f}\t"
    except Exception as e:  # what ONNX Runtime cannot run is a line of the table
        return f"{name}\t-\t-\t{str(e).splitlines()[0]}"


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--repeat", type=int, default=50)
    p.add_argument("--out")
    p.add_argument("models", nargs="*")
    a = p.parse_args()
    try:
        import numpy
        import onnxruntime
    except ImportError as e:
        print(f"= {e}")
        return SKIPPED
    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        print("= ONNX Runtime has no provider of CUDA here")
        return SKIPPED
    onnxruntime.set_default_logger_severity(4)
    lines = ["model\tbest ms\tmean ms\twhat"] + [line(m, a.repeat, onnxruntime, numpy) for m in a.models]
    print("\n".join(lines))
    if a.out:
        with open(a.out, "w") as f:
            print("\n".join(lines), file=f)
    print(f"= {sum(1 for x in lines[1:] if x.split(chr(9))[1] != '-')} models were timed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
