#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory of a run without weights, as planned by onnxmem and by other planners of ONNX models.

    totals.py --onnxmem COMMAND [--page FILE] [--install FOLDER | --peers PYTHON --usmp PYTHON --litert PYTHON] [--answers FILE] [--limit SECONDS]
              [--memory GIB] MODEL.onnx...

For each model, all with an alignment of 1 and the same shapes (open dims are 1, or of DIMS below):

* onnxmem with inputs and outputs in the arena (`--io arena`), and with those of the caller beside it;
* onnxsim, `plan_activation_memory()` after shape inference: its arena has inputs and outputs, too.  A tensor whose size
  it does not know is left out, so a plan with such tensors is no plan of the model: it is shown in brackets;
* onnx-tool, `compress_memory()`;
* ONNX Runtime, ExecuTorch, TVM, USMP and LiteRT, by planners.py, which tells how.  The last four run with PYTHON, that of an environment
  which has them: executorch and apache-tvm; hhb-tvm; onnx2tf and ai-edge-litert: each wants other versions of packages.  --install makes
  the environments in FOLDER, unless they are there.

The five peers are asked side by side, for at most SECONDS a model (300), with at most GIB of memory each (12).  --answers keeps what they
answer in FILE, by peer, version, and digest of the model, so that they are asked once; with --install, in FOLDER.

Exits with 1 where a peer that plans the whole model takes less.  Versions are those that are installed.
"""
import argparse
import contextlib
import hashlib
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata

import onnx

# Sizes of inputs that models need where 1 is too small, by the start of the name of the model.
SHAPES = {"ppocr_v4_det": {"x": [1, 3, 640, 640]}, "ppocr_v4_rec": {"x": [1, 3, 48, 320]}, "ppocr_v2_cls": {"x": [1, 3, 48, 192]},
          "silero": {"input": [1, 512], "x": [1, 512], "state": [2, 1, 128], "h": [2, 1, 64], "c": [2, 1, 64]},
          "tract_byte_bilstm": {"input": [1, 64], "x": [1, 64]}}


NOTES = """\
* ONNX Runtime: what its arena has taken from the system after runs on zeros, taking no more than what is requested; the smaller figure of those with and without memory patterns, and the inputs, which are the caller's. The arena has the scratch
  of kernels, too, and rounds to 256 bytes; weights are outside of it and not packed. Its graph optimizations are on, so it runs another graph.
* ExecuTorch: `greedy`, the algorithm of its `MemoryPlanningPass`, on the values of the ONNX model with their lifetimes in the order of the file; views share memory. Exporting the models from torch would make other graphs.
* TVM: the importer of Relax for ONNX, `LegalizeOps` and `StaticPlanBlockMemory`, with and without fusion of ops; the smaller figure, with inputs and outputs.
* USMP: the planner of offsets of versions of TVM that had Relay. The package index has apache-tvm from 0.25.0 on, without it, so it is that of hhb-tvm, a fork of TVM 0.16.dev0: the importer of Relay for ONNX and
  `UnifiedStaticMemoryPlanner` of the ahead-of-time executor for C; the smallest figure of `greedy_by_size`, `greedy_by_conflicts` and `hill_climb`. Inputs and outputs are in its pool, but added where a model has several inputs: in the pool an input lives from its first use on, so it lets inputs overlap, and they could not all be written before the run. Buffers that ops need inside count, too; an input is dead once it is copied to one. So at a shape for which a convolution does not read all of its input, its figure can be the one below: silero_vad_ov16k changed to inputs of 512 elements, where the file has 576, takes 9,244 bytes of it and 9,500 of onnxmem (*caller*): the convolution copies 512 of 576 elements, and the other 256 bytes are not live beside its output. It takes models whose sizes are all known.
* LiteRT: it reads `.tflite` files alone, which onnx2tf makes of the models: with channels last, and transposes where that needs them. Without a delegate, from the first to the last byte of inputs and of results of ops, with scratch of kernels that lies between them; its arena keeps inputs during the whole run."""


def shapes_of(name, model):
    known = next((v for k, v in SHAPES.items() if name.startswith(k)), {})
    constants = {i.name for i in model.graph.initializer}
    for i in model.graph.input:
        if i.name in constants or not i.type.HasField("tensor_type"):
            continue
        dims = [d.dim_value if d.HasField("dim_value") and d.dim_value > 0 else 0 for d in i.type.tensor_type.shape.dim]
        given = known.get(i.name)
        if not given or len(given) != len(dims):
            given = [1] * len(dims)
        yield i, [declared or open_dim for declared, open_dim in zip(dims, given)]


def fixed(path, folder, name="fixed"):
    """The model with numbers for all open dims of its inputs; those that it declares stay."""
    model = onnx.load(path)
    for i, dims in shapes_of(os.path.basename(path), model):
        for d, n in zip(i.type.tensor_type.shape.dim, dims):
            d.dim_value = n
    out = os.path.join(folder, name + ".onnx")
    onnx.save(model, out)
    return out, model


# Whose memory inputs and outputs are in.  A peer is compared with our figure for what it does itself.
PLACES = {"arena": ("arena", "arena"), "inputs": ("caller", "arena"), "caller": ("caller", "caller")}
CONVENTIONS = {"onnxsim": "arena", "onnx-tool": "arena", "ort": "inputs", "executorch": "arena", "tvm": "caller", "litert": "inputs"}


def places(model, where):
    """Options of onnxmem."""
    inputs, outputs = PLACES[where]
    constants = {i.name for i in model.graph.initializer}
    yield from ("--io", outputs)
    for i in model.graph.input:
        if inputs != outputs and i.name not in constants:
            yield from ("--io", f"{i.name}={inputs}")


def ours(command, path, model, where):
    r = subprocess.run([command, "report", "-q", path, "--align", "1", "--default-dim", "1", *places(model, where), "--json", "-"],
                       capture_output=True, text=True)
    if r.returncode:
        return None
    j = json.loads(r.stdout)
    return j["arena_bytes"] + j["io_bytes"], j["status"], len(j["unplanned"])


def onnxsim_total(model):
    """Bytes, and how many tensors are left out."""
    import onnxsim
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
        plan = onnxsim.plan_activation_memory(inferred)
    except Exception as e:
        return str(e).split("\n")[0][:60]
    return plan.arena_bytes, len(plan.unplanned)


def onnx_tool_total(path):
    import onnx_tool
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
            m = onnx_tool.Model(path, {"verbose": False})
            m.graph.shape_infer(None)
            compute = m.graph.get_compute_graph()
            placed = compute.compress_memory(size_padding=1)
        placed = placed[0] if isinstance(placed, tuple) else placed
        return int(max(offset + size for offset, size in placed.values()))
    except Exception as e:
        return (str(e).split("\n")[0] or type(e).__name__)[:60]


# ---- Peers in processes of their own. ----

PEERS = ("ort", "executorch", "tvm", "usmp", "litert")
PACKAGES = {"ort": "onnxruntime", "executorch": "executorch", "tvm": "apache-tvm", "usmp": "hhb-tvm", "litert": "ai-edge-litert"}
TITLES = {"ort": "ONNX Runtime", "executorch": "ExecuTorch", "tvm": "TVM", "usmp": "USMP", "litert": "LiteRT"}


Limits = namedtuple("Limits", "seconds gib")


class Answers:
    """What peers answered before, in a file."""

    def __init__(self, file):
        self.file, self.known, self.lock = file, {}, threading.Lock()
        if file and os.path.exists(file):
            with open(file) as f:
                self.known = json.load(f)

    def key(self, way, version, path):
        with open(path, "rb") as f:
            return f"{way} {version} {hashlib.sha256(f.read()).hexdigest()}"

    def add(self, key, answer):
        """One that was not there in time is asked for again in the next call."""
        with self.lock:
            self.known[key] = answer
            if self.file:
                with open(self.file + ".part", "w") as f:
                    json.dump({k: v for k, v in self.known.items() if not v.get("late")}, f, indent=1)
                os.replace(self.file + ".part", self.file)


def resident(pid):
    """GiB that a process has in memory; 0 where the system does not say."""
    try:
        with open(f"/proc/{pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2 ** 30
    except (OSError, IndexError):
        return 0


class Watch:
    """Ends a process that takes too long for an answer, or too much memory; `why` is then the answer."""

    def __init__(self, process, limits):
        self.process, self.limits, self.why, self.over = process, limits, None, threading.Event()
        self.start()
        threading.Thread(target=self.look, daemon=True).start()

    def start(self):
        self.since = time.monotonic()

    def look(self):
        while not self.over.wait(0.5) and not self.why:
            if time.monotonic() - self.since > self.limits.seconds:
                self.why = {"fails": f"no answer in {self.limits.seconds} s", "late": True}
            elif resident(self.process.pid) > self.limits.gib:
                self.why = {"fails": f"it takes more than {self.limits.gib} GiB of memory"}
        if self.why:
            self.process.kill()


def answers_of(python, way, files, limits):
    """Answers to these files, one by one, until the process ends or is ended."""
    r = subprocess.Popen([python, os.path.join(os.path.dirname(os.path.abspath(__file__)), "planners.py"), way] + files,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    watch = Watch(r, limits)
    for _ in files:
        watch.start()
        line = r.stdout.readline()
        if not line:
            watch.over.set()
            yield watch.why or {"fails": "its process ends with status %d" % r.wait()}
            return
        yield json.loads(line)
    watch.over.set()
    r.wait()


def ask(python, way, files, version, before, limits):
    """By file, what the planner answers; after one that ends the process, the others are asked again."""
    keys = [before.key(way, version, f) for f in files]
    while left := [(k, f) for k, f in zip(keys, files) if k not in before.known]:
        for (key, _), answer in zip(left, answers_of(python, way, [f for _, f in left], limits)):
            before.add(key, answer)
    return [before.known[k] for k in keys]


def problem(command, path):
    """Buffers in the order of the file, each value but views on its own, with inputs and outputs."""
    out = path.removesuffix(".onnx") + ".csv"
    with open(out, "w") as f:
        subprocess.run([command, "report", "-q", path, "--default-dim", "1", "--align", "1", "--io", "arena",
                        "--passes", "inline,shapes,fold,prune,liveness,views,pack", "--csv", "-"], stdout=f, stderr=subprocess.DEVNULL)
    return out


def ask_all(command, python, files, before, limits):
    problems = [problem(command, f) for f in files]
    with ThreadPoolExecutor() as side_by_side:
        asked = {way: side_by_side.submit(ask, python[way], way, problems if way == "executorch" else files, version_of(python[way], PACKAGES[way]),
                                          before, limits) for way in PEERS if python[way]}
    return {way: asked[way].result() if way in asked else [{"fails": "not asked"}] * len(files) for way in PEERS}


ENVIRONMENTS = {"peers": ("torch", "executorch==1.5.1", "apache-tvm==0.27.0.post1", "onnx", "numpy"),
                "usmp": ("numpy<1.24", "onnx<1.17", "protobuf<5", "attrs", "cloudpickle", "decorator", "ml-dtypes", "psutil", "scipy", "tornado", "typing-extensions", "tqdm", "tflite"),
                "litert": ("ai-edge-litert==2.1.0", "onnx2tf==1.29.24")}
# Packages for another version of Python, whose shared libraries need none.
FOREIGN = {"usmp": ("3.10", "hhb-tvm==3.2.3")}


def install_foreign(python, version, package):
    where = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True, check=True)
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "--only-binary=:all:", "--python-version", version, "--target", where.stdout.strip(),
                    package], check=True)


def install(folder, name):
    """The Python of an environment with these packages, which is made if it is not there."""
    where = os.path.join(folder, name)
    python, done = os.path.join(where, "bin", "python"), os.path.join(where, "installed")
    if not os.path.exists(done):
        subprocess.run([sys.executable, "-m", "venv", where], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *ENVIRONMENTS[name]], check=True)
        if name in FOREIGN:
            install_foreign(python, *FOREIGN[name])
        open(done, "w").close()
    return python


def version_of(python, package):
    if not python:
        return None
    r = subprocess.run([python, "-c", "from importlib import metadata; print(metadata.version(%r))" % package], capture_output=True, text=True)
    return r.stdout.strip() if r.returncode == 0 else None


def cell(x):
    return f"{x:,}" if isinstance(x, int) else "–" if x is None else x


def row(command, path, folder):
    name = os.path.basename(path).removesuffix(".onnx")
    file, model = fixed(path, folder, name)
    arena, inputs, caller = (ours(command, file, model, where) for where in PLACES)
    if not arena or not inputs or not caller:
        return {"name": name, "file": file, "note": "onnxmem does not plan it", "worse": [], "arena": None, "inputs": None, "caller": None}
    sim, tool = onnxsim_total(model), onnx_tool_total(file)
    left_out = isinstance(sim, tuple) and sim[1]
    whole = isinstance(sim, tuple) and not left_out and not arena[2]
    worse = ["onnxsim"] * (whole and sim[0] < arena[0]) + ["onnx-tool"] * (isinstance(tool, int) and tool < arena[0])
    sim_text = f"({sim[0]:,}; {sim[1]} left out)" if left_out else cell(sim[0]) if isinstance(sim, tuple) else "fails"
    note = arena[1] + (f"; {arena[2]} values of unknown size" if arena[2] else "")
    return {"name": name, "file": file, "note": note, "worse": worse, "arena": arena[0], "inputs": inputs[0], "caller": caller[0], "onnxsim": sim_text,
            "onnx-tool": cell(tool) if isinstance(tool, int) else "fails"}


def in_convention(r, way):
    """Our figure for what this peer does with inputs and outputs; USMP tells which it did."""
    return r[CONVENTIONS.get(way) or r[way].get("io", "arena")]


def add_peers(rows, answers):
    for k, r in enumerate(rows):
        for way in PEERS:
            r[way] = answers[way][k]
            if r["arena"] and "bytes" in r[way] and r[way]["bytes"] < in_convention(r, way):
                r["worse"].append(TITLES[way])


# ---- The page. ----

def peer_cell(answer):
    return cell(answer["bytes"]) if "bytes" in answer else "–" if answer["fails"].startswith("not ") else "fails"


def reasons(rows):
    """Why peers fail, each reason with its models."""
    for way in PEERS:
        by = {}
        for r in rows:
            if "fails" in r[way]:
                by.setdefault(r[way]["fails"].replace("|", "/"), []).append(r["name"])
        for why, names in by.items():
            yield f"* {TITLES[way]}: {why} ({', '.join(names) if len(names) < len(rows) else 'all models'})"


def compared(rows, title, way, of):
    """A sentence about the models that a peer plans whole."""
    known = [(in_convention(r, way), of(r)) for r in rows if r["arena"] and of(r) is not None]
    less, same = sum(b > a for a, b in known), sum(b == a for a, b in known)
    ratio = 1.0
    for a, b in known:
        ratio *= (b / a) ** (1 / len(known))
    more = f", {ratio:.2f} times as much in the geometric mean" if known else ""
    return (f"* {title}, beside *{CONVENTIONS.get(way, 'arena* or *caller')}*: of {len(known)} models that it plans whole, onnxmem takes less on {less}, the same on {same}, "
            f"and more on {len(known) - less - same}{more}.")


def number_of(text):
    return int(text.replace(",", "")) if text and text[0].isdigit() else None


def page(rows, python):
    versions = [(p, metadata.version(p)) for p in ("onnxsim", "onnx-tool", "onnxruntime")]
    versions += [(p, version_of(python[way], p)) for way, p in (("executorch", "executorch"), ("tvm", "apache-tvm"), ("usmp", "hhb-tvm"), ("litert", "ai-edge-litert"), ("litert", "onnx2tf"))]
    yield "# Memory of a run, beside other planners\n"
    yield f"Made by `bench/totals.py`; {', '.join(f'{p} {v}' for p, v in versions if v)}. Bytes of intermediate values, inputs and outputs together, without weights, with an alignment of 1."
    yield "*arena*: with `--io arena`. *inputs*: inputs in memory of the caller, outputs in the arena, `--io arena --io INPUT=caller`. *caller*: both in memory of the caller, the default. A peer is compared with"
    yield "the figure for what it does itself; the sentences below the table name it. Brackets: onnxsim does not know the size of some tensors and leaves them out,"
    yield "so that its plan is not one of the whole model. *fails*: the peer reports an error for this model. *–*: it was not asked.\n"
    yield "| model | arena | inputs | caller | onnxsim | onnx-tool | ONNX Runtime | ExecuTorch | TVM | USMP | LiteRT | proof |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|"
    for r in rows:
        peer = " | ".join(peer_cell(r[way]) for way in PEERS)
        yield f"| {r['name']} | {cell(r['arena'])} | {cell(r['inputs'])} | {cell(r['caller'])} | {r.get('onnxsim', '–')} | {r.get('onnx-tool', '–')} | {peer} | {r['note']} |"
    yield ""
    for title in ("onnxsim", "onnx-tool"):
        yield compared(rows, title, title, lambda r: number_of(r.get(title)))
    for way in PEERS:
        yield compared(rows, TITLES[way], way, lambda r: r[way].get("bytes"))
    yield "\n## How the others are measured\n"
    yield NOTES
    yield "\n## What fails\n"
    yield from reasons(rows)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--onnxmem", required=True)
    a.add_argument("--page")
    a.add_argument("--peers", help="the Python of an environment with executorch and apache-tvm")
    a.add_argument("--usmp", help="the Python of an environment with hhb-tvm")
    a.add_argument("--litert", help="the Python of an environment with onnx2tf and ai-edge-litert")
    a.add_argument("--install", metavar="FOLDER", help="make the environments in this folder, unless they are there")
    a.add_argument("--answers", metavar="FILE", help="keep the answers of peers in this file")
    a.add_argument("--limit", metavar="SECONDS", type=int, default=300, help="the most that a peer takes for a model")
    a.add_argument("--memory", metavar="GIB", type=int, default=12, help="the most memory that a peer takes")
    a.add_argument("models", nargs="+")
    o = a.parse_args()
    if o.install:
        o.peers, o.usmp, o.litert = (install(o.install, name) for name in ENVIRONMENTS)
        o.answers = o.answers or os.path.join(o.install, "answers.json")
    python = {"ort": sys.executable, "executorch": o.peers, "tvm": o.peers, "usmp": o.usmp, "litert": o.litert}
    with tempfile.TemporaryDirectory() as folder:
        rows = [row(o.onnxmem, m, folder) for m in o.models]
        add_peers(rows, ask_all(o.onnxmem, python, [r["file"] for r in rows], Answers(o.answers), Limits(o.limit, o.memory)))
    text = "\n".join(page(rows, python)) + "\n"
    if o.page:
        with open(o.page, "w") as f:
            f.write(text)
    sys.stdout.write(text)
    for r in rows:
        if r["worse"]:
            print("%s: less by %s" % (r["name"], ", ".join(r["worse"])), file=sys.stderr)
    return any(r["worse"] for r in rows)


if __name__ == "__main__":
    sys.exit(main())
