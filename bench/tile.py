#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tiling: docs/tiling.md.

    python bench/tile.py [--results FILE] [--page FILE] [--extra-flops PERCENT] [MODEL...]

For each model: the arena in the order of the file, planned, and tiled (`onnxmem tile`) without and with values that are computed twice, and ONNX Runtime on the
model and the last one: the largest difference of
the outputs, as a share of their largest element, and the processor time of a run with one thread, the least of several in turn.  A line of JSON for each model is added
to FILE [tile.jsonl], in which later lines replace earlier ones; the page is made of all of them.  ONNXMEM names the command [onnxmem].  The Python needs onnxruntime."""
import argparse
import json
import math
import os
import subprocess
import tempfile
import time

COMMAND = os.environ.get("ONNXMEM", "onnxmem")
REPEATS, SECONDS = 9, 12
# The networks that goals are given for: the page names those of them that were not run.
NETWORKS = ("mobilenet_v2 mobilenet_v3_large efficientnet_b0 resnet18 resnet50 vgg16 squeezenet1_1 googlenet inception_v3 densenet121 shufflenet_v2_x1_0 "
            "regnet_y_400mf unet unetpp hrnet_like convnext_tiny bert_base bert_tiny vit_b_16 swin_t gpt_prefill t5_like diffusion_unet r3d_18 alexnet "
            "fcn_resnet50 deeplabv3_resnet50 ssdlite320").split()
SMALL = 256 * 1024, 64 * 1024  # memories of microcontrollers

TOP = """# Tiling

What [`onnxmem tile`](../passes/tile.md) reaches, made by `bench/tile.py`. Bytes of the arena: *file order*, in the order of the file without anything in place; *planned*, by `onnxmem plan`; *tiled*, the plan
of the model that `onnxmem tile` writes: without values that are computed twice, and with `--extra-flops {extra}`, the lower bound of its buffers beside it. The columns after that are about the last. *Work*: the FLOPs that are
added, where a moved element counts as one. *Copies*: values that are computed twice. *Difference*: of the outputs in ONNX Runtime {version}, largest difference as a share of the largest element. *Time*: of ONNX Runtime with one thread, tiled as a multiple of the original. *Search*:
processor time of `onnxmem tile`, planning included, on a machine with other work.

| model | file order | planned | tiled | tiled, {extra} % | / planned | / file order | lower bound | ops | work | copies | regions | difference | time | search, s |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
"""


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, check=False)


def session(path):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def inputs(one, seed):
    import numpy
    rng, feed = numpy.random.default_rng(seed), {}
    kinds = {"tensor(int64)": "int64", "tensor(int32)": "int32", "tensor(bool)": "bool", "tensor(uint8)": "uint8"}
    for i in one.get_inputs():
        shape = [d if isinstance(d, int) else 1 for d in i.shape]
        if i.type in kinds:
            feed[i.name] = rng.integers(0, 2, shape).astype(kinds[i.type])
        else:
            feed[i.name] = rng.standard_normal(shape).astype("float32")
    return feed


def difference(first, second):
    """NaN and infinity are differences."""
    import numpy
    most = 0.0
    for x, y in zip(first, second):
        if x.shape != y.shape or not (numpy.isfinite(x).all() and numpy.isfinite(y).all()):
            return None
        if x.size:
            scale = float(numpy.abs(x.astype("float64")).max()) or 1.0
            most = max(most, float(numpy.abs(x.astype("float64") - y.astype("float64")).max()) / scale)
    return most


def least_times(one, two, feed):
    times, end = [math.inf, math.inf], time.monotonic() + SECONDS
    for _ in range(REPEATS):
        for k, s in enumerate((one, two)):
            start = time.process_time()
            s.run(None, feed)
            times[k] = min(times[k], time.process_time() - start)
        if time.monotonic() > end:
            break
    return times


def compare(path, tiled):
    one, two = session(path), session(tiled)
    feed = inputs(one, 1)
    found = {"difference": difference(one.run(None, feed), two.run(None, feed))}
    found["time"], found["tiled_time"] = least_times(one, two, feed)
    return found


def measure(path, folder, extra):
    name, out = os.path.basename(path)[:-5], os.path.join(folder, "tiled.onnx")
    report = json.loads(run(COMMAND, "report", path, "-q", "--json", "-").stdout)
    plain = run(COMMAND, "tile", path, out, "-q", "--json", "-")
    if plain.returncode:
        return {"model": name, "error": plain.stderr.strip()}
    start = os.times()
    done = run(COMMAND, "tile", path, out, "-q", "--extra-flops", str(extra), "--json", "-")
    end = os.times()
    if done.returncode:
        return {"model": name, "error": done.stderr.strip()}
    row = dict(json.loads(done.stdout), model=name, extra=extra, plain=json.loads(plain.stdout)["arena_bytes"], file_order=report["original_order_bytes"], planned=report["arena_bytes"],
               seconds=end.children_user + end.children_system - start.children_user - start.children_system)
    try:
        row.update(compare(path, out))
    except Exception as e:  # of ONNX Runtime, which refuses some models
        row["refused"] = str(e).splitlines()[0][:100]
    return row


def cells(r):
    regions = ", ".join(f"{k['ops']}x{k['bands']} {k['axis']}" for k in r["regions"][:2])
    regions += f", {len(r['regions']) - 2} more" if len(r["regions"]) > 2 else ""
    same = r.get("difference")
    return [r["model"].removeprefix("gen_"), f"{r['file_order']:,}", f"{r['planned']:,}", f"{r['plain']:,}", f"{r['arena_bytes']:,}", f"{r['arena_bytes'] / r['planned']:.2f}",
            f"{r['arena_bytes'] / r['file_order']:.2f}", f"{r['lower_bound_bytes']:,}", f"{r['ops_before']} to {r['ops']}",
            f"{100 * (r['flops'] / r['flops_before'] - 1):+.1f} %", str(len(r["copies"])), regions or "none", "not finite" if same is None and "time" in r else f"{same:.0e}" if same is not None
            else "refused", f"{r['tiled_time'] / r['time']:.2f}" if "time" in r else "", f"{r['seconds']:.0f}"]


def geometric(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))


def is_small(r):
    return "int8" in r["model"] or "mlperf" in r["model"]


def write_small(to, rows):
    """Networks for microcontrollers: in which memories do they fit?"""
    if not rows:
        return
    to.write("\n## Microcontrollers\n\nQuantized networks: arenas in bytes, and the share of two memories that the smallest takes; weights are not counted. "
             "*Difference* and *time* as above; ONNX Runtime fuses other parts of a tiled quantized graph, and rounds there in another way.\n\n"
             "| model | planned | tiled | tiled, with copies | of 256 KiB | of 64 KiB | difference | time | why not less |\n|---|---|---|---|---|---|---|---|---|\n")
    for r in rows:
        least = min(r["plain"], r["arena_bytes"])
        to.write("| " + " | ".join([r["model"].removeprefix("gen_"), f"{r['planned']:,}", f"{r['plain']:,}", f"{r['arena_bytes']:,}",
                                    *(f"{least / most:.2f}" for most in SMALL), *cells(r)[12:14], f"`{r['highest_outside']}`: {r['highest_outside_why']}"
                                    if r["highest_outside"] and r["highest_outside_bytes"] * 9 >= least * 8 else ""]) + " |\n")


def write_page(path, rows):
    import onnxruntime
    measured = [r for r in rows if "error" not in r]
    good = [r for r in measured if not is_small(r)]
    with open(path, "w", encoding="utf-8") as to:
        to.write(TOP.format(version=onnxruntime.__version__, extra=good[0]["extra"]))
        for r in good:
            to.write("| " + " | ".join(cells(r)) + " |\n")
        timed = [r for r in good if "time" in r]
        to.write(f"\nGeometric means of {len(good)} models: planned / file order {geometric([r['planned'] / r['file_order'] for r in good]):.3f}, tiled / file order "
                 f"{geometric([r['plain'] / r['file_order'] for r in good]):.3f}, with {good[0]['extra']} % {geometric([r['arena_bytes'] / r['file_order'] for r in good]):.3f}; "
                 f"time in ONNX Runtime x{geometric([r['tiled_time'] / r['time'] for r in timed]):.2f}.\n")
        missing = [n for n in NETWORKS if n not in {r["model"].removeprefix("gen_") for r in good}]
        if missing:
            to.write(f"\nNot run, of the {len(NETWORKS)} networks that goals are given for: {', '.join(missing)}. The means are those of the others.\n")
        limits = [r for r in good if r["highest_outside"] and r["highest_outside_bytes"] * 9 >= r["arena_bytes"] * 8]
        if limits:
            to.write("\nAn op that is in no region decides the arena of these models:\n\n")
        for r in limits:
            to.write(f"* {r['model'].removeprefix('gen_')}: `{r['highest_outside']}`, about {r['highest_outside_bytes']:,} bytes: {r['highest_outside_why']}.\n")
        write_small(to, [r for r in measured if is_small(r)])


def read_results(path):
    rows = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                r = json.loads(line)
                rows[r["model"]] = r
    return rows


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--results", default="tile.jsonl")
    ap.add_argument("--page")
    ap.add_argument("--extra-flops", type=int, default=10)
    ap.add_argument("models", nargs="*")
    a = ap.parse_args()
    for path in a.models:
        with tempfile.TemporaryDirectory() as folder:
            row = measure(path, folder, a.extra_flops)
        with open(a.results, "a", encoding="utf-8") as to:
            to.write(json.dumps(row) + "\n")
        print(row["model"], row.get("error") or f"{row['planned']} -> {row['arena_bytes']}, difference {row.get('difference')}", flush=True)
    if a.page:
        write_page(a.page, list(read_results(a.results).values()))


if __name__ == "__main__":
    main()
