# SPDX-License-Identifier: Apache-2.0
"""Models with branches and loops, on inputs that take different branches and run
different numbers of rounds: like ONNX Runtime, and to the same bits planned,
poisoned, without reuse, and by a plan that was written into the model and verified.

`flow.py NAME...` runs the models whose names contain one of the words."""
import json
import os
import subprocess
import sys

from command import DATA, Wrong, arrays, compare, np, onnxmem, session
from tap import SRC, Points, scratch

WRITTEN = "the plan of the file"
WAYS = ("", "--poison", "--no-reuse", WRITTEN)


def noise(*dims, scale=1.0, seed=1):
    return (np.random.default_rng(seed).uniform(-1, 1, dims) * scale).astype(np.float32)


def number(x):
    return np.array(x, np.int64)


def truth(x):
    return np.array(x, np.bool_)


def of_size(*dims, name="x", scales=(1.0, 0.1)):
    return [{name: noise(*dims, scale=s, seed=k)} for k, s in enumerate(scales)]


def rounds(*dims):
    return [{"x": noise(*dims, seed=n + 1), "trips": number(n)} for n in (0, 1, 2, 3, 4, 5, 12, -1)]


def early():
    return [{"x": noise(1, 16, seed=n), "factor": np.array(f, np.float32), "trips": number(n), "more0": truth(go)}
            for n, f, go in ((0, 0.5, 1), (3, 0.9, 1), (100, 0.5, 1), (100, 0.95, 1), (100, 0.5, 0), (7, 0.0, 1))]


def chosen(*dims):
    return [{"x": noise(*dims), "which": truth(w)} for w in (0, 1)]


def control():
    return [{"x": noise(4, 8, seed=n, scale=s), "trips": number(n), "which": truth(w)}
            for n, w, s in ((3, 1, 1), (3, 0, 1), (0, 1, 1), (8, 1, 1), (8, 1, 0.01), (50, 1, 3))]


def speech(states, *sizes):
    """Frames of noise, quiet and loud, at both rates."""
    return [{"input": noise(1, n, scale=s, seed=n), **({"sr": number(rate)} if rate else {}),
             **{k: noise(2, 1, width, scale=0.1) for k, width in states}}
            for rate, n in sizes for s in (0.01, 0.5)]


def below_zero():
    """Rounds go on while numbers are large, four at most.  Their mean has to be
    clear of zero, where it is rounding that would choose the branch."""
    return [{"in0": noise(32, 256, scale=s) - np.float32(m)}
            for m, s in ((1, 0.5), (0.5, 0.01), (0.08, 0.01), (0.06, 0), (0, 0))]


OWN = {
    "branches": lambda: chosen(2, 16), "unsorted": lambda: chosen(4), "sizes": lambda: chosen(2, 8),
    "loop": lambda: of_size(1, 8), "scans": lambda: of_size(6, 4), "loop_early": early, "control": control,
    "count": lambda: rounds(1), "loop_horner": lambda: rounds(4, 8), "loop_toggle": lambda: rounds(4),
    "inner": lambda: rounds(4), "loop_collect": lambda: rounds(4),
    "loop_swap": lambda: rounds(2, 32), "loop_cycle": lambda: rounds(2, 32), "loop_grow": lambda: rounds(1, 8),
    **{name: lambda: of_size(1, 4, 5, 5) for name in
       ("nnc_pool", "nnc_conv", "nnc_residual", "nnc_nested", "nnc_chain", "nnc_lag", "nnc_branch")},
}
# NNC's loops: bytes of arena that NNC takes, of which 640 are weights, ours are not
# in the arena.  Nothing is moved in these, nor in those that only turn.
NNC = {"nnc_pool": 1536, "nnc_conv": 1536, "nnc_residual": 1984, "nnc_nested": 2432, "nnc_chain": 2432,
       "nnc_lag": 3776}
STILL = {*NNC, "nnc_branch", "loop_swap", "loop_cycle", "branches", "count", "loop_horner", "loop_toggle", "inner"}
NNC_WEIGHTS = 640
V4 = (("h", 64), ("c", 64))
V5 = (("state", 128),)
SHARED = {
    "models/silero_vad_v4": lambda: speech(V4, (16000, 1536), (16000, 512), (8000, 768), (8000, 256)),
    "models/silero_vad_v5": lambda: speech(V5, (16000, 576), (8000, 288)),
    "models/silero_vad_ifless": lambda: speech(V5, (16000, 576), (8000, 288)),
    "models/silero_vad_16k_op15": lambda: speech(V5, (16000, 576)),
    "models/silero_vad_half": lambda: speech(V5, (None, 576)),
    "light/gen_convlstm_loop": lambda: of_size(8, 3, 64, 64, name="in0"),
    "light/gen_script_nested_ctl": below_zero,
}


def stats(tmp):
    with open(os.path.join(tmp, "stats.json")) as f:
        return json.load(f)


def written(tmp, path, feeds):
    """The model with a plan for inputs like these."""
    shapes = [f"--input-shape={k}:{'x'.join(map(str, x.shape))}" for k, x in feeds.items() if x.shape]
    planned = os.path.join(tmp, f"planned{abs(hash(tuple(shapes)))}.onnx")
    if not os.path.exists(planned):
        onnxmem("plan", "-q", path, planned, *shapes)
        onnxmem("verify", "-q", planned)
    return planned


def all_ways(tmp, path, feeds):
    """Results, and what the planned run says about itself."""
    data = os.path.join(tmp, "in.npz")
    np.savez(data, **feeds)
    said, bits = {}, {}
    for way in WAYS:
        out = os.path.join(tmp, "out.npz")
        # The target of the plan in the file, without the scratch of kernels in its arena.
        model, options = ((written(tmp, path, feeds), []) if way == WRITTEN
                          else (path, ["--target", "generic", *filter(None, [way])]))
        onnxmem("run", "-q", model, "--data", data, "--save", out, "--stats", os.path.join(tmp, "stats.json"),
                *options)
        got = arrays(out)
        bits[way] = {k: x.tobytes() for k, x in got.items()}
        said[way] = stats(tmp)
        if bits[way] != bits[""]:
            raise Wrong(f"{way} gives other bits")
    for k in ("arena_bytes", "copied_bytes"):
        if said[WRITTEN][k] != said[""][k]:
            raise Wrong(f"{k}: {said[WRITTEN][k]} by the plan of the file, {said[''][k]} by the same made anew")
    return got, said[""]


def stays(name, said):
    """Only where the pass is there that does it."""
    if " loops " not in onnxmem("passes"):
        return
    if name in STILL and said["copied_bytes"]:
        raise Wrong(f"{said['copied_bytes']} bytes are moved")
    if name in NNC and said["arena_bytes"] > NNC[name] - NNC_WEIGHTS:
        raise Wrong(f"the arena needs {said['arena_bytes']} bytes, NNC's {NNC[name] - NNC_WEIGHTS}")


def check(tmp, name, path, all_feeds):
    runtime = session(path)
    names = [i.name for i in runtime.get_inputs()]
    copied = []
    for k, feeds in enumerate(all_feeds):
        feeds = {n: feeds[n] for n in names}
        got, said = all_ways(tmp, path, feeds)
        copied.append(said["copied_bytes"])
        stays(name, said)
        for o, want in zip(runtime.get_outputs(), runtime.run(None, feeds)):
            try:
                compare(o.name, got[o.name], want)
            except Wrong as e:
                raise Wrong(f"inputs {k}: {e}")
    return f"{len(all_feeds)} inputs, like ONNX Runtime; copied at most {max(copied)}"


def cases():
    for name, feeds in OWN.items():
        yield name, os.path.join(SRC, "models", name + ".onnx"), feeds
    for name, feeds in SHARED.items():
        path = os.path.join(DATA, name + ".onnx")
        if os.path.exists(path):
            yield "shared/" + name, path, feeds


def main():
    t = Points()
    words = sys.argv[1:]
    for name, path, feeds in cases():
        if words and not any(w in name for w in words):
            continue
        try:
            with scratch() as tmp:
                good, said = True, check(tmp, name, path, feeds())
        except (Wrong, OSError, subprocess.TimeoutExpired) as e:
            good, said = False, str(e)
        t.point(good, name + (": " + said if good else ""), said)
    t.end()


if __name__ == "__main__":
    main()
