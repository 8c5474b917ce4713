#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our executor beside ONNX Runtime and OpenVINO: time, memory, accuracy, and where the time is lost.

Three models with any build of the command, without `make`; the Python needs onnx, onnxruntime, numpy and, for `ov`, openvino:

    python bench/run.py --onnxmem build/onnxmem --rounds 3 --seconds 0.5 --peers ort gen_resnet18 gen_mobilenet_v2 gen_lstm_lm

Two builds side by side: --onnxmem OLD --onnxmem NEW (columns `om` and `om2`); other instruction sets: --isas "generic avx2".  On a loaded machine: --by cpu, which compares the
least processor time of a run instead of the best time by the clock (one thread only).  Results are kept in OUT (--out) by model, build
and options; a second call measures what is missing, --again everything.  `make bench-run` measures all models and writes
docs/executor.md:

    make bench-run MODELS="gen_resnet18 gen_vgg16" THREADS=1 ROUNDS=5 SECONDS=1 PEERS="ort ov" ISAS="generic avx2" OUT=bench-run

Rounds are interleaved, each executor in a process of its own: A B C A B C.  A round counts with the best run of its process; the
result is the median of the rounds.  Models with weights filled in, inputs and float64 outputs are kept in --cache (default
$BENCH_CACHE, else ~/.cache/onnxmem-bench)."""
import argparse
import datetime
import glob
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile

import classes
import models
import tables

HERE = os.path.dirname(os.path.abspath(__file__))
NUMBERS = ("best", "cpu", "first", "rss", "base", "arena", "weights")
LIMIT = 900                    # seconds that one process may take


class Failed(Exception):
    pass


def call(command, env=None):
    try:
        r = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=env)
    except subprocess.TimeoutExpired:
        raise Failed(f"not done after {LIMIT} s")
    if r.returncode:
        lines = r.stderr.strip().splitlines() or [f"exit status {r.returncode}"]
        raise Failed((lines[0] if "onnxmem" in lines[0] else lines[-1])[:300])
    return r.stdout


# ---- Executors. ----

class Ours:
    def __init__(self, name, path, a, isa=None):
        self.name, self.a, self.path = name, a, os.path.abspath(path)
        self.env = dict(os.environ, ONNXMEM_THREADS=str(a.threads), **({"ONNXMEM_ISA": isa} if isa else {}))
        self.program = self.unwrapped()
        self.digest = self.digest_of_build() + (f"-{isa}" if isa else "")
        self.one_run = {}                      # by model: milliseconds of a run, processor milliseconds of a process with one

    def unwrapped(self):
        """In a build folder the command is libtool's script, whose start would count; a copy has its library beside it."""
        folder, base = os.path.split(self.path)
        libs = os.path.join(folder, ".libs")
        with open(self.path, "rb") as f:
            script = f.read(2) == b"#!" and os.path.exists(os.path.join(libs, base))
        self.env["LD_LIBRARY_PATH"] = libs if script else folder
        return os.path.join(libs, base) if script else self.path

    def digest_of_build(self):
        h = hashlib.sha256()
        for path in [self.program, *sorted(glob.glob(os.path.join(os.path.dirname(self.program), "libonnxmem*.so")))]:
            with open(path, "rb") as f:
                h.update(f.read())
        return h.hexdigest()[:12]

    def start(self):
        """Milliseconds of a process that does nothing."""
        return min(self.spent(self.program, "--version")[0] for _ in range(10))

    def command(self, model, *options):
        return [self.program, "run", "-q", model.path(), "--data", model.inputs(), *options]

    def spent(self, *command):
        """Milliseconds by the clock, of the processor, peak MiB."""
        with tempfile.TemporaryDirectory() as d:
            call([self.a.tools["spent"], os.path.join(d, "spent"), *command], self.env)
            with open(os.path.join(d, "spent")) as f:
                wall, cpu, kib = map(float, f.read().split())
        return wall, cpu, kib / 1024

    def stats(self, model, repeat, folder):
        path = os.path.join(folder, "stats.json")
        took = self.spent(*self.command(model, "--repeat", str(repeat), "--stats", path))
        with open(path) as f:
            return took, json.load(f)

    def measure(self, model, folder):
        (first, cpu1, rss), one = self.stats(model, 1, folder)
        ms = min(self.one_run.get(model.name, one["best_ms"]), one["best_ms"])
        repeat = max(3, min(200000, int(self.a.seconds * 1e3 / max(ms, 1e-3))))
        (_, cpu, _), many = self.stats(model, repeat, folder)
        self.one_run[model.name] = many["best_ms"]
        mean_cpu = (cpu - cpu1) / (repeat - 1)          # of a build whose --stats do not have the least
        return {"best": many["best_ms"], "cpu": many.get("best_cpu_ms", mean_cpu), "first": first, "rss": rss, "base": 0,
                "arena": many["arena_bytes"], "weights": many["weight_bytes"]}

    def save(self, model, path):
        call(self.command(model, "--save", path), self.env)

    def profile(self, model, best, folder):
        path = os.path.join(folder, "ours.json")
        repeat = max(2, min(1000, int(self.a.seconds * 500 / max(best, 1e-3))))
        call(self.command(model, "--repeat", str(repeat), "--profile", path), self.env)
        return classes.of_ours(path)


class Peer:
    def __init__(self, name, a):
        self.name, self.a = name, a
        self.env = dict(os.environ, OMP_NUM_THREADS=str(a.threads))

    def run(self, model, *options):
        return json.loads(call([sys.executable, os.path.join(HERE, "peers.py"), self.name, model.path(), model.inputs(),
                                "--threads", str(self.a.threads), *options], self.env).splitlines()[-1])

    def measure(self, model, folder):
        return self.run(model, "--seconds", str(self.a.seconds))

    def save(self, model, path):
        self.run(model, "--seconds", "0", "--save", path)

    def profile(self, model, best, folder):
        path = os.path.join(folder, "peer.json")
        self.run(model, "--seconds", str(min(self.a.seconds / 2, best / 10)), "--profile", path)
        with open(path) as f:
            return json.load(f)


# ---- A model. ----

def rounds(executors, model, a, folder):
    """Of each executor: its rounds, or the reason why it cannot run the model."""
    found, failed = {e.name: [] for e in executors}, {}
    for _ in range(a.rounds):
        for e in executors:
            if e.name in failed:
                continue
            try:
                found[e.name].append(e.measure(model, folder))
            except Failed as reason:
                failed[e.name] = str(reason)
    return found, failed


def middle(results):
    """Medians; arena and weights are the same in all rounds."""
    keys = [k for k in NUMBERS if k in results[0]]
    row = {k: statistics.median(r[k] for r in results) for k in keys}
    row["least"], row["least_cpu"] = min(r["best"] for r in results), min(r["cpu"] for r in results)
    row["least_first"] = min(r["first"] for r in results)
    return row


def error(path, reference):
    """Largest and mean difference, relative to the largest element of each output; None: nothing to compare."""
    import numpy as np
    most = total = n = 0
    with np.load(path) as got, np.load(reference) as want:
        for k in want.files:
            if k not in got.files or got[k].shape != want[k].shape or want[k].dtype.kind not in "fiub":
                continue
            y = want[k].astype("f8")
            finite = np.isfinite(y)
            if not y.size or not finite.any():
                continue
            d = np.abs(got[k].astype("f8")[finite] - y[finite]) / max(np.abs(y[finite]).max(), 1e-30)
            most, total, n = max(most, float(d.max())), total + float(d.sum()), n + d.size
    return [most, total / n] if n else None


def compare(executors, model, row):
    """Adds errors against float64, and against ONNX Runtime."""
    ours = next((e for e in executors if isinstance(e, Ours)), None)
    models.prepare_double(model, [ours.program] if ours else None, ours.env if ours else None)
    double, reason = model.file(".f64.npz"), model.file(".f64.npz.txt")
    with tempfile.TemporaryDirectory() as folder:
        saved = {}
        for e in (e for e in executors if "failed" not in row[e.name]):
            path = os.path.join(folder, e.name + ".npz")
            try:
                e.save(model, path)
                saved[e.name] = path
            except Failed as reason:
                row[e.name]["no_outputs"] = str(reason)
        for name, path in saved.items():
            row[name]["error"] = error(path, double) if os.path.exists(double) else None
            row[name]["difference"] = error(path, saved["ort"]) if "ort" in saved and name != "ort" else None
    if os.path.exists(reason):
        with open(reason) as f:
            row["no_double"] = f.read().strip()
    elif saved and not any(row[name]["error"] for name in saved):
        row["no_double"] = "no output of all executors has a finite element to compare"
    row["compared"] = True


def profile(executors, model, row, folder):
    """Milliseconds, operations and bytes by class, with the profiler's overhead."""
    row["classes"] = {}
    for e in executors:
        if e.name not in ("om", "ort") or "best" not in row[e.name]:
            continue
        try:
            row["classes"][e.name] = classes.by_class(e.profile(model, row[e.name]["best"], folder))
        except Failed as reason:
            row[e.name]["no_profile"] = str(reason)


def work(model):
    """Floating-point operations of a run, bytes that it cannot avoid (the file's weights, the inputs); both by class of the
    nodes that the file has."""
    if not os.path.exists(model.file(".work.json")):
        return {"work": None, "work_classes": {}}
    with open(model.file(".work.json")) as f:
        nodes = json.load(f)
    sums = classes.by_class(nodes)
    return {"work": [sum(n["flops"] for n in nodes), os.path.getsize(model.path()) + os.path.getsize(model.inputs())],
            "work_classes": {k: s[1:] for k, s in sums.items()}}


def measure(model, executors, a):
    models.prepare(model)
    row = {"model": model.name, "key": key(executors, a), "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
           "load": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as folder:
        found, failed = rounds(executors, model, a, folder)
        for e in executors:
            row[e.name] = {"failed": failed[e.name]} if e.name in failed else middle(found[e.name])
        if not a.no_profile:
            profile(executors, model, row, folder)
    return row


# ---- Results that are kept. ----

def key(executors, a):
    """What a result depends on."""
    builds = [e.digest if isinstance(e, Ours) else e.name for e in executors]
    return "/".join([*builds, os.environ.get("ONNXMEM_ISA", "best"), str(a.threads), str(a.rounds), str(a.seconds)])


def read_rows(path):
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return [json.loads(line) for line in f]


def tools(folder, cache):
    """The programs beside this file: built by `make`, or here and now."""
    found = {}
    for name in ("spent", "peak"):
        built, source = os.path.join(folder or "", name), os.path.join(HERE, name + ".c")
        if not folder or not os.path.exists(built):
            built = os.path.join(cache, "tools", name)
            os.makedirs(os.path.dirname(built), exist_ok=True)
            if not os.path.exists(built) or os.path.getmtime(built) < os.path.getmtime(source):
                subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-O2", "-ffp-contract=fast", "-pthread", source, "-o", built], check=True)
        found[name] = built
    return found


def machine(executors, a):
    """The environment, for the head of the page."""
    words = {"time": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"), "threads": a.threads, "cpus": a.cpus,
             "rounds": a.rounds, "seconds": a.seconds, "isa": os.environ.get("ONNXMEM_ISA", "the best"), "cpu": tables.processor()}
    words["start"] = {e.name: e.start() for e in executors if isinstance(e, Ours)}
    words["builds"] = {e.name: e.digest for e in executors if isinstance(e, Ours)}
    git = subprocess.run(["git", "-C", HERE, "describe", "--always", "--dirty"], capture_output=True, text=True)
    words["commit"] = a.label or git.stdout.strip() or "unknown"
    import importlib.metadata
    for e, package in (("ort", "onnxruntime"), ("ov", "openvino")):
        if any(x.name == e for x in executors):
            words[package] = importlib.metadata.version(package)
    peak = subprocess.run([a.tools["peak"], str(a.threads)], capture_output=True, text=True, check=True)
    words["peak"] = dict((k, float(v)) for k, v in (line.split() for line in peak.stdout.splitlines()))
    return words


def options():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="\n".join(__doc__.splitlines()[2:]),
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("model", nargs="*", help="names, without .onnx; default: all")
    a.add_argument("--onnxmem", action="append", help="the command; repeatable")
    a.add_argument("--isas", default="", help="also measure the command with these instruction sets, as `generic avx2`")
    a.add_argument("--peers", default="ort ov", help="`ort`, `ov`, or both [ort ov]")
    a.add_argument("--threads", type=int, default=1)
    a.add_argument("--cpus", help="processors to run on, as 0,1 [as many as threads, from 0 on]")
    a.add_argument("--rounds", type=int, default=5)
    a.add_argument("--seconds", type=float, default=1, help="of each process of a round [1]")
    a.add_argument("--by", choices=("best", "least", "cpu"), default="best",
                   help="compare medians of the best times, the least of all, or the least processor time [best]")
    a.add_argument("--out", default="bench-run", help="folder of the results [bench-run]")
    a.add_argument("--data", default=models.DATA)
    a.add_argument("--cache", default=models.CACHE)
    a.add_argument("--tools", help="folder of the built programs spent and peak")
    a.add_argument("--page", help="write this page, as docs/executor.md")
    a.add_argument("--label", help="what was measured, for the page [the commit of this file]")
    a.add_argument("--again", action="store_true", help="measure again what OUT has")
    a.add_argument("--no-profile", action="store_true")
    a.add_argument("--no-accuracy", action="store_true", help="make no float64 outputs")
    a = a.parse_args()
    if a.by == "cpu" and a.threads > 1:
        sys.exit("--by cpu adds up the threads: it compares runs of one thread only")
    return a


def selected(a):
    found = models.known(a.data, a.cache)
    for name in a.model:
        if name not in found:
            sys.exit(f"there is no model {name} in {a.data} or {a.cache}/extra")
    return [found[name] for name in a.model or found]


def completed(model, row, executors, a):
    """The row with all that is asked for; the same object if nothing was missing."""
    try:
        row = row or measure(model, executors, a)
        row = row if "work_classes" in row or "failed" in row else {**row, **work(model)}
        if not a.no_accuracy and "compared" not in row and "failed" not in row:
            row = dict(row)
            compare(executors, model, row)
        return row
    except Exception as e:                     # one model that cannot be prepared must not end the others
        return {"model": model.name, "key": key(executors, a), "failed": f"{type(e).__name__}: {e}"[:300]}


def run_all(a, executors, path):
    """One row a model, appended as soon as it is measured; the last one of a model counts."""
    kept = {} if a.again else {r["model"]: r for r in read_rows(path) if r["key"] == key(executors, a)}
    rows = []
    for model in selected(a):
        row = completed(model, kept.get(model.name), executors, a)
        if row is not kept.get(model.name):
            with open(path, "a") as f:
                f.write(json.dumps(row) + "\n")
        rows.append(row)
        print(tables.line(row, a.by), flush=True)
    return rows


def main():
    a = options()
    a.cpus = [int(c) for c in a.cpus.split(",")] if a.cpus else sorted(os.sched_getaffinity(0))[:a.threads]
    os.sched_setaffinity(0, a.cpus)            # inherited by all processes that are measured
    a.cache = os.path.abspath(a.cache)
    a.tools = tools(a.tools, a.cache)
    os.makedirs(a.out, exist_ok=True)
    ours = [Ours("om" if k == 0 else f"om{k + 1}", path, a) for k, path in enumerate(a.onnxmem or ())]
    ours += [Ours(f"om-{isa}", a.onnxmem[0], a, isa) for isa in a.isas.split() if a.onnxmem]
    executors = [*ours, *(Peer(name, a) for name in a.peers.split())]
    rows = run_all(a, executors, os.path.join(a.out, "rows.jsonl"))
    where = machine(executors, a)
    tables.write_tsv(os.path.join(a.out, "table.tsv"), rows, where)
    print(tables.summary(rows, where, a.by))
    if a.page:
        with open(a.page, "w") as f:
            f.write(tables.page(rows, where, a.by))


if __name__ == "__main__":
    main()
