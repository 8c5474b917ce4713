#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What other planners make of models, for totals.py; each runs in a process of its own, with the Python that has it.

    planners.py ort MODEL.onnx...          ONNX Runtime, measured
    planners.py executorch PROBLEM.csv...  ExecuTorch's memory planning
    planners.py tvm MODEL.onnx...          TVM's StaticPlanBlockMemory
    planners.py usmp MODEL.onnx...         USMP, the planner of TVM before Relax
    planners.py litert MODEL.onnx...       LiteRT's arena, measured

For each file a line: a JSON object with `bytes`, of intermediate values, inputs and outputs, or `fails`, why there are none.  usmp also
has `io`, whose memory inputs and outputs are in.

* ort: what the arena of the CPU has taken from the system after runs on zeros.  It takes what is requested, no more; weights
  are outside of it, and not packed.  The session is run once, and again without and with memory patterns; the smallest figure
  counts.  Inputs, which are the caller's, are added.  The arena has the scratch of kernels, too, and rounds to 256 bytes.
* executorch: `greedy`, the algorithm of its MemoryPlanningPass, with an alignment of 1.  The problem is a table of
  `onnxmem report --csv`: buffers in the order of the file, views sharing one, with inputs and outputs.  Its tensors have
  these sizes and lifetimes.  Models are not exported by torch, which would make other graphs of them.
* tvm: Relax, from the importer of ONNX by LegalizeOps, with and without fusion of ops, to StaticPlanBlockMemory; the sum of its
  storages, and inputs and outputs, which are the caller's.  The smaller figure counts.
* usmp: Relay, from the importer of ONNX by the ahead-of-time executor to UnifiedStaticMemoryPlanner, with an alignment of 1, and each
  of its algorithms; the smallest figure counts.  Inputs and outputs are in its pool; but of a model with several inputs they are
  added: in the pool an input lives from its first use on, so inputs would overlap, and not all could be written before the run.  It is that of hhb-tvm, a fork of TVM 0.16.dev0,
  because packages of TVM itself that have it cannot be installed.  Code is not generated.
* litert: onnx2tf makes a .tflite file of the model, with channels last; then, after allocate_tensors() without a delegate, from the
  first to the last byte of inputs and of results of ops.  onnx2tf would download pictures to compare results with, which is
  replaced by numbers.
"""
import contextlib
import io
import json
import logging
import math
import os
import re
import subprocess
import sys
import warnings


# ---- ONNX Runtime. ----

def ort_session(path, pattern):
    import numpy
    import onnxruntime as ort
    ort.set_default_logger_severity(1)
    info = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    ort.create_and_register_allocator(info, ort.OrtArenaCfg({"max_mem": 0, "arena_extend_strategy": 1, "initial_chunk_size_bytes": 1,
                                                             "max_dead_bytes_per_chunk": 1}))
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.enable_mem_pattern = pattern
    options.log_severity_level = 3
    for key in ("session.use_env_allocators", "session.use_device_allocator_for_initializers", "session.disable_prepacking"):
        options.add_session_config_entry(key, "1")
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    types = {"tensor(float)": numpy.float32, "tensor(double)": numpy.float64, "tensor(float16)": numpy.float16,
             "tensor(int64)": numpy.int64, "tensor(int32)": numpy.int32, "tensor(int8)": numpy.int8,
             "tensor(uint8)": numpy.uint8, "tensor(bool)": numpy.bool_}
    feeds = {i.name: numpy.zeros([d if isinstance(d, int) else 1 for d in i.shape], types[i.type]) for i in session.get_inputs()}
    print("SESSION", file=sys.stderr, flush=True)
    for _ in range(2 if pattern else 1):
        session.run(None, feeds)
    print("INPUTS", sum(f.nbytes for f in feeds.values()), file=sys.stderr, flush=True)


def ort(path):
    found, why = [], ""
    for pattern in ("", "pattern"):
        r = subprocess.run([sys.executable, __file__, "ort-session", path, pattern], capture_output=True, text=True)
        log = r.stderr.partition("SESSION\n")[2]
        if r.returncode or "INPUTS" not in log:
            why = (r.stderr.strip().splitlines() or ["its process crashed"])[-1]
            continue
        taken = sum(map(int, re.findall(r"Extended allocation by (\d+) bytes", log)))
        found.append(taken + int(log.split("INPUTS")[1].split()[0]))
    if not found:
        raise RuntimeError(why)
    return min(found)


# ---- ExecuTorch. ----

def executorch(path):
    import csv
    import torch
    from executorch.exir.memory_planning import greedy
    from executorch.exir.tensor import TensorSpec
    logging.disable(logging.CRITICAL)
    specs = set()
    with open(path, encoding="utf-8") as f:
        for row in csv.DictReader(f):
            if int(row["size"]) == 0:
                continue
            spec = TensorSpec(torch.uint8, torch.Size([int(row["size"])]))
            spec.lifetime = [int(row["lower"]), int(row["upper"]) - 1]
            specs.add(spec)
    module = torch.fx.GraphModule(torch.nn.Module(), torch.fx.Graph())
    return int(sum(greedy(1, specs, module, None).bufsizes))


# ---- TVM. ----

LOWER = ["DecomposeOpsForInference", "CanonicalizeBindings", "FoldConstant", "LegalizeOps", "AnnotateTIROpPattern", "FoldConstant"]
FUSE = ["FuseOps", "FuseTIR"]
PLAN = ["RewriteDataflowReshape", "ToNonDataflow", "RemovePurityChecking", "CallTIRRewrite", "StaticPlanBlockMemory"]


def bytes_of(info, of):
    if hasattr(info, "fields"):
        return sum(bytes_of(f, of) for f in info.fields)
    return math.prod(int(d) for d in info.shape) * of(info.dtype)


def tvm(path):
    import numpy
    import onnx
    import tvm as t
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    def size(dtype):
        return 1 if str(dtype) == "bool" else numpy.dtype(str(dtype)).itemsize
    found = []
    for passes in (LOWER + FUSE + PLAN, LOWER + PLAN):
        module = from_onnx(onnx.load(path))
        main = module["main"]
        outside = sum(bytes_of(p.struct_info if hasattr(p, "struct_info") else p.ty, size) for p in main.params)
        with t.target.Target("llvm"):
            for name in passes:
                module = getattr(relax.transform, name)()(module)
        text = module["main"].script()
        storages = re.findall(r"alloc_storage\(R\.shape\(\[([\d, ]+)\]\)", text)
        if len(storages) != text.count("alloc_storage("):
            raise RuntimeError("sizes that are not known")
        outputs = re.findall(r'builtin\.alloc_tensor\(R\.shape\(\[([\d, ]*)\]\), R\.dtype\("(\w+)"\)', text)
        if len(outputs) != text.count("builtin.alloc_tensor("):
            raise RuntimeError("outputs of unknown size")
        numbers = [math.prod(map(int, s.split(","))) for s in storages]
        found.append(sum(numbers) + outside + sum(math.prod(int(d) for d in s.split(",") if d.strip()) * size(k) for s, k in outputs))
    return min(found)


# ---- USMP. ----

USMP_ALGORITHMS = ("greedy_by_size", "greedy_by_conflicts", "hill_climb")


def usmp_pools(tvm, relay, module, params, algorithm, has_io):
    """Bytes of the pool of values, by the pass that ends the planning; the build ends there."""
    from tvm.relay.backend import Executor, Runtime
    found = []

    @tvm.instrument.pass_instrument
    class Planned:
        def run_after_pass(self, module, info):
            if info.name == "tir.transform.UnifiedStaticMemoryPlanner":
                pools = module["__tvm_main__"].attrs["pool_args"]
                found.append(sum(int(p.allocated_size) for p in pools if "const" not in str(p.pool_info.pool_name)))
                raise StopIteration

    settings = {"tir.disable_vectorize": True, "tir.usmp.enable": True, "tir.usmp.algorithm": algorithm, "tir.usmp.use_workspace_io": has_io}
    executor = Executor("aot", {"unpacked-api": True, "interface-api": "c", "workspace-byte-alignment": 1, "constant-byte-alignment": 1})
    try:
        with tvm.transform.PassContext(opt_level=3, instruments=[Planned()], config=settings):
            relay.build(module, "c", executor=executor, runtime=Runtime("crt"), params=params)
    except Exception:
        if not found:
            raise
    return found[0]


def relay_bytes(kind):
    import numpy
    if hasattr(kind, "fields"):
        return sum(relay_bytes(f) for f in kind.fields)
    return math.prod(int(d) for d in kind.shape) * numpy.dtype(kind.dtype).itemsize


def usmp(path):
    os.environ["TVM_FFI"] = "ctypes"  # the package is of another version of Python
    import onnx
    import tvm
    from tvm import relay
    module, params = relay.frontend.from_onnx(onnx.load(path), freeze_params=True)
    main = relay.transform.InferType()(module)["main"]
    has_io = len(main.params) == 1
    outside = 0 if has_io else sum(relay_bytes(p.checked_type) for p in main.params) + relay_bytes(main.ret_type)
    pool = min(usmp_pools(tvm, relay, module, params, a, has_io) for a in USMP_ALGORITHMS)
    return {"bytes": outside + pool, "io": "arena" if has_io else "caller"}


# ---- LiteRT. ----

def converted(path, folder):
    import glob
    import numpy
    import onnx2tf.onnx2tf
    import onnx2tf.utils.common_functions

    def pictures(*_, **__):
        return numpy.random.RandomState(1).rand(20, 128, 128, 3).astype("float32")
    for module in (onnx2tf.onnx2tf, onnx2tf.utils.common_functions):
        module.download_test_image_data = pictures
    onnx2tf.convert(input_onnx_file_path=path, output_folder_path=folder, non_verbose=True, verbosity="error")
    return glob.glob(folder + "/*_float32.tflite")[0]


def litert(path):
    import tempfile
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    with tempfile.TemporaryDirectory() as folder:
        i = Interpreter(model_path=converted(path, folder), num_threads=1,
                        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
        i.allocate_tensors()
        made = {d["index"] for d in i.get_input_details()}
        for op in i._get_ops_details():
            made.update(int(k) for k in op["outputs"])
        spans = []
        for d in i.get_tensor_details():
            if d["index"] in made:
                a = i.tensor(d["index"])()
                spans.append((a.__array_interface__["data"][0], a.nbytes))
    return max(at + n for at, n in spans) - min(at for at, _ in spans)


WAYS = {"ort": ort, "executorch": executorch, "tvm": tvm, "usmp": usmp, "litert": litert}


def reason(e):
    """A line that says why; TVM begins with a trace of the stack."""
    lines = str(e).strip().splitlines() or [type(e).__name__]
    return lines[-1] if lines[0].startswith("Traceback") else lines[0]


def main():
    if sys.argv[1] == "ort-session":
        ort_session(sys.argv[2], sys.argv[3] == "pattern")
        return
    warnings.filterwarnings("ignore")
    for path in sys.argv[2:]:
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                answer = WAYS[sys.argv[1]](path)
                answer = answer if isinstance(answer, dict) else {"bytes": answer}
        except Exception as e:
            if isinstance(e, ImportError) and "." not in (e.name or "."):
                print(json.dumps({"fails": "not installed: %s" % e}), flush=True)
                continue
            why = reason(e)
            answer = {"fails": why.replace(path, os.path.basename(path))[:200]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
