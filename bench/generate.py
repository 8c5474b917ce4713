# SPDX-License-Identifier: Apache-2.0
"""Tokens of a decoder, beside ONNX Runtime: examples/generate, one executor for all steps, over caches with spare rows.

    generate.py --generate PATH [--past 1024,4096] [--models 23M,120M] [--threads 1] [--rounds 2] [--tokens 40] [--folder DIR]

The models are those of decode.py with open dims, as builders of onnxruntime-genai write them: a llama of 23 million parameters,
and one of 120 million, in float32 and with weights of 4 bits.  ONNX Runtime has past and present bound to one buffer each.  A step
is the run and the choice of the likeliest token.  Times are those of the shortest step, as the machine may have other work; the
two take turns.  Memory is the most resident memory of the process; that of ONNX Runtime has Python and NumPy in it."""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import decode
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

SIZES = {"23M": (6, 8, 4, 1536, 4096), "120M": (12, 12, 4, 2304, 24000)}   # layers, heads, those of keys, width, words


def take_size(name):
    decode.LAYERS, decode.HEADS, decode.KV, decode.WIDE, decode.WORDS = SIZES[name]
    decode.HIDDEN = decode.HEADS * decode.SIZE


class Open(decode.Net):
    """The net with open dims, and lengths from a mask."""

    def cache(self, kind, name):
        rows = "past_sequence_length" if kind == "past" else "total_sequence_length"
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, decode.KV, rows, decode.SIZE])

    def lengths(self):
        one = self.constant("one", np.asarray([1]))
        self.add("Sub", [self.add("ReduceSum", ["attention_mask", one], ["length"], domain=""), one], ["last"], domain="")
        self.add("Cast", [self.add("Squeeze", ["last", one], ["last1"], domain="")], ["seqlens_k"], domain="", to=TensorProto.INT32)
        total = self.add("Shape", ["attention_mask"], ["total1"], domain="", start=1)
        self.add("Cast", [self.add("Squeeze", [total], ["total2"], domain="")], ["total"], domain="", to=TensorProto.INT32)

    def model(self, past):
        m = super().model(past)
        del m.metadata_props[:]
        graph = m.graph
        ours = helper.make_graph([], "decoder", [], [])
        self.nodes.clear()
        self.weights.clear()
        self.lengths()
        ours.node.extend(self.nodes)
        ours.initializer.extend(self.weights)
        kept = [w for w in graph.initializer if w.name != "total"]
        del graph.initializer[:]
        graph.initializer.extend(kept + list(ours.initializer))
        nodes = list(ours.node) + list(graph.node)
        del graph.node[:]
        graph.node.extend(nodes)
        inputs = [i for i in graph.input if i.name not in ("input_ids", "seqlens_k")]
        del graph.input[:]
        graph.input.extend([helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "sequence_length"]),
                            helper.make_tensor_value_info("attention_mask", TensorProto.INT64, [1, "total_sequence_length"])] + inputs)
        for o in graph.output:
            if o.name == "logits":
                o.CopyFrom(helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, "sequence_length", decode.WORDS]))
            else:
                o.CopyFrom(self.cache("present", o.name))
        return m


def peer(path, past, tokens, threads):
    """Steps of ONNX Runtime; prints the shortest one, and the memory of this process."""
    o = ort.SessionOptions()
    o.intra_op_num_threads, o.inter_op_num_threads = threads, 1
    o.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])
    binding, rows = session.io_binding(), past + tokens + 1
    held = []
    for one in session.get_inputs():
        if not one.name.startswith("past"):
            continue
        value = ort.OrtValue.ortvalue_from_numpy(np.zeros((1, one.shape[1], rows, one.shape[3]), np.float32))
        held.append(value)
        binding.bind_ortvalue_input(one.name, value)
        binding.bind_ortvalue_output(one.name.replace("past_key_values", "present"), value)
    binding.bind_output("logits")
    token, least = 7, 1e9
    for k in range(tokens):
        start = time.perf_counter()
        binding.bind_cpu_input("input_ids", np.asarray([[token]]))
        binding.bind_cpu_input("attention_mask", np.ones((1, past + k + 1), np.int64))
        session.run_with_iobinding(binding)
        logits = next(v for v in binding.get_outputs() if len(v.shape()) == 3).numpy()
        token = int(logits[0, -1].argmax())
        least = min(least, time.perf_counter() - start)
    with open("/proc/self/status", encoding="utf-8") as f:
        most = next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))
    print(json.dumps([least * 1e3, most]))


def theirs(path, past, a):
    out = subprocess.run([sys.executable, __file__, "--peer", path, "--past", str(past), "--tokens", str(a.tokens),
                          "--threads", str(a.threads)], capture_output=True, text=True, check=True)
    return json.loads(out.stdout)


def ours(path, past, a):
    prompt = [str(k % 97) for k in range(past)]
    program = "import resource,subprocess,sys;r=subprocess.run(sys.argv[1:],stdout=-3);" \
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss);sys.exit(r.returncode)"
    out = subprocess.run([sys.executable, "-c", program, a.generate, "-c", str(past + a.tokens + 1), "-n", str(a.tokens), "-j",
                          str(a.threads), path, *prompt], capture_output=True, text=True, check=False)
    found = re.search(r"shortest step ([0-9.]+) ms; arena ([0-9]+) bytes; plans made: ([0-9]+)", out.stderr)
    if out.returncode or not found:
        raise SystemExit(out.stderr)
    return float(found[1]), int(out.stdout), int(found[2]), int(found[3])


def measure(a, folder, name, bits, past):
    take_size(name)
    path = os.path.join(folder, "m.onnx")
    onnx.save(Open(bits, 0, past + a.tokens + 2).model(past), path)
    least, memory = [1e9, 1e9], [0, 0]
    for _ in range(a.rounds):
        mine, other = ours(path, past, a), theirs(path, past, a)
        least = [min(least[0], mine[0]), min(least[1], other[0])]
        memory = [max(memory[0], mine[1]), max(memory[1], other[1])]
    print(f"| {name}, {'float32' if bits == 32 else 'int4'} | {a.threads} | {past} | {least[0]:.3f} | {least[1]:.3f} | {1e3 / least[0]:.0f} | "
          f"{1e3 / least[1]:.0f} | {least[1] / least[0]:.2f} | {memory[0] // 1024} | {memory[1] // 1024} | {mine[2]} |", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--generate")
    p.add_argument("--peer")
    p.add_argument("--past", default="1024,4096")
    p.add_argument("--models", default="23M,120M")
    p.add_argument("--bits", default="32,4")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--tokens", type=int, default=40)
    p.add_argument("--folder")
    a = p.parse_args()
    if a.peer:
        peer(a.peer, int(a.past), a.tokens, a.threads)
        return
    if not a.generate:
        p.error("--generate is required")
    print("| model | threads | past | onnxmem ms | ONNX Runtime ms | tokens/s | tokens/s | ratio | MiB | MiB | arena |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|", flush=True)
    with tempfile.TemporaryDirectory(dir=a.folder) as folder:
        for name in a.models.split(","):
            for bits in map(int, a.bits.split(",")):
                for past in map(int, a.past.split(",")):
                    measure(a, folder, name, bits, past)


if __name__ == "__main__":
    main()
