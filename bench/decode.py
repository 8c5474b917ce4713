# SPDX-License-Identifier: Apache-2.0
"""A step of a decoder, beside ONNX Runtime: one token after many, with a cache in one buffer.

    decode.py --onnxmem PATH [--past 1024,4096] [--rounds 5] [--threads 1] [--seconds 1] [--folder DIR]

The model is a llama of 23 million parameters with random weights, as builders of onnxruntime-genai write it: 6 layers,
8 heads of 64 elements that share 4 of keys and values, in float32 and with weights of 4 bits (`accuracy_level` 0 and 4).
ONNX Runtime has past and present bound to one buffer each; for onnxmem one is aliased to the other.  Times are the least processor
time of a step; the two take turns.  Tokens per second are of that time."""
import argparse
import json
import os
import subprocess
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

LAYERS, HEADS, KV, SIZE, WIDE, WORDS, BLOCK = 6, 8, 4, 64, 1536, 4096, 32
HIDDEN = HEADS * SIZE


class Net:
    def __init__(self, bits, level, room):
        self.r = np.random.default_rng(1)
        self.bits, self.level, self.room = bits, level, room
        self.nodes, self.weights, self.ins, self.outs = [], [], [], []

    def add(self, op, ins, outs, domain="com.microsoft", **attrs):
        self.nodes.append(helper.make_node(op, ins, outs, domain=domain, **attrs))
        return outs[0]

    def constant(self, name, a):
        self.weights.append(numpy_helper.from_array(a, name))
        return name

    def norm_weight(self, name):
        return self.constant(name, np.ones(HIDDEN, np.float32))

    def times(self, x, name, k, n):
        if self.bits == 32:
            w = self.r.standard_normal((k, n), np.float32) * np.float32(k ** -0.5)
            return self.add("MatMul", [x, self.constant(name + ".weight", w)], [name], domain="")
        q = self.r.integers(0, 256, (n, k // BLOCK, BLOCK // 2)).astype(np.uint8)
        s = (self.r.random((n, k // BLOCK), np.float32) + np.float32(0.5)) * np.float32(0.2 * k ** -0.5)
        return self.add("MatMulNBits", [x, self.constant(name + ".weight", q), self.constant(name + ".scales", s)], [name],
                        K=k, N=n, bits=4, block_size=BLOCK, accuracy_level=self.level)

    def cache(self, kind, name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, KV, self.room, SIZE])

    def layer(self, i, x, total):
        p = f"layers.{i}."
        qkv = [self.times(x, p + name, HIDDEN, n * SIZE) for name, n in (("q", HEADS), ("k", KV), ("v", KV))]
        past = [f"past_key_values.{i}.{k}" for k in ("key", "value")]
        present = [f"present.{i}.{k}" for k in ("key", "value")]
        self.ins += [self.cache("past", n) for n in past]
        self.outs += [self.cache("present", n) for n in present]
        y = self.add("GroupQueryAttention", qkv + past + ["seqlens_k", total, "cos", "sin"], [p + "attention"] + present,
                     num_heads=HEADS, kv_num_heads=KV, do_rotary=1)
        return self.times(y, p + "o", HIDDEN, HIDDEN)

    def mlp(self, i, x):
        p = f"layers.{i}.mlp."
        gate, up = self.times(x, p + "gate", HIDDEN, WIDE), self.times(x, p + "up", HIDDEN, WIDE)
        act = self.add("Mul", [gate, self.add("Sigmoid", [gate], [p + "sigmoid"], domain="")], [p + "silu"], domain="")
        return self.times(self.add("Mul", [act, up], [p + "mul"], domain=""), p + "down", WIDE, HIDDEN)

    def skip_norm(self, x, skip, name):
        self.add("SkipSimplifiedLayerNormalization", [skip, x, self.norm_weight(name + ".weight")], [name, "", "", name + ".sum"])
        return name, name + ".sum"

    def model(self, past):
        self.ins += [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, 1]),
                     helper.make_tensor_value_info("seqlens_k", TensorProto.INT32, [1])]
        angle = np.arange(self.room)[:, None] / 10000 ** (np.arange(SIZE // 2) / (SIZE // 2))
        self.constant("cos", np.cos(angle).astype(np.float32))
        self.constant("sin", np.sin(angle).astype(np.float32))
        total = self.constant("total", np.asarray(past + 1, np.int32))
        words = self.r.standard_normal((WORDS, HIDDEN), np.float32)
        skip = self.add("Gather", [self.constant("embedding", words), "input_ids"], ["embedded"], domain="")
        x = self.add("SimplifiedLayerNormalization", [skip, self.norm_weight("first.weight")], ["first"], domain="", axis=-1)
        for i in range(LAYERS):
            x, skip = self.skip_norm(self.layer(i, x, total), skip, f"layers.{i}.norm")
            x, skip = self.skip_norm(self.mlp(i, x), skip, f"layers.{i}.norm2")
        self.outs.insert(0, helper.make_tensor_value_info(self.times(x, "logits", HIDDEN, WORDS), TensorProto.FLOAT, [1, 1, WORDS]))
        graph = helper.make_graph(self.nodes, "decoder", self.ins, self.outs, self.weights)
        m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)], ir_version=10)
        states = {f"present.{i}.{k}": f"past_key_values.{i}.{k}" for i in range(LAYERS) for k in ("key", "value")}
        helper.set_model_props(m, {"org.onnxmem.io_alias": json.dumps(states)})
        return m


def feeds(past, room):
    r = np.random.default_rng(2)
    x = {"input_ids": np.asarray([[7]]), "seqlens_k": np.asarray([past], np.int32)}
    for i in range(LAYERS):
        for k in ("key", "value"):
            x[f"past_key_values.{i}.{k}"] = r.standard_normal((1, KV, room, SIZE), np.float32)
            x[f"past_key_values.{i}.{k}"][:, :, past:] = 0
    return x


class Runtime:
    def __init__(self, path, x, threads):
        o = ort.SessionOptions()
        o.intra_op_num_threads, o.inter_op_num_threads = threads, 1
        o.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.session = ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        self.held = {k: ort.OrtValue.ortvalue_from_numpy(a) for k, a in x.items()}
        for k, v in self.held.items():
            self.binding.bind_ortvalue_input(k, v)
            if k.startswith("past"):
                self.binding.bind_ortvalue_output(k.replace("past_key_values", "present"), v)
        self.binding.bind_output("logits")

    def step(self):
        self.session.run_with_iobinding(self.binding)

    def best(self, seconds):
        best, end = 1e9, time.monotonic() + seconds
        while time.monotonic() < end:
            at = time.process_time()
            self.step()
            best = min(best, time.process_time() - at)
        return best


def ours(a, path, data, folder, repeat):
    stats = os.path.join(folder, "stats.json")
    out = subprocess.run([a.onnxmem, "run", path, "--data", data, "--threads", str(a.threads), "--repeat", str(repeat), "--stats", stats,
                          "--save", os.path.join(folder, "out.npz")], capture_output=True, text=True, check=False)
    if out.returncode:
        raise SystemExit(out.stderr)
    with open(stats, encoding="utf-8") as f:
        return json.load(f)


def measure(a, folder, name, bits, level, past):
    room = past + 8
    path, data, x = os.path.join(folder, "m.onnx"), os.path.join(folder, "in.npz"), feeds(past, room)
    onnx.save(Net(bits, level, room).model(past), path)
    np.savez(data, **x)
    theirs = Runtime(path, x, a.threads)
    repeat = max(3, int(a.seconds / (ours(a, path, data, folder, 3)["best_cpu_ms"] / 1e3)))
    best = [1e9, 1e9]
    for _ in range(a.rounds):
        s = ours(a, path, data, folder, repeat)
        best = [min(best[0], s["best_cpu_ms"]), min(best[1], theirs.best(a.seconds) * 1e3)]
    y = np.load(os.path.join(folder, "out.npz"))["logits"]
    want = theirs.binding.copy_outputs_to_cpu()
    want = next(o for o in want if o.shape == y.shape)
    error = np.abs(y - want).max() / np.abs(want).max()
    print(f"| {name} | {past} | {best[0]:.3f} | {best[1]:.3f} | {1e3 / best[0]:.0f} | {1e3 / best[1]:.0f} | "
          f"{best[1] / best[0]:.2f} | {s['arena_bytes']} | {error:.1e} |", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--onnxmem", required=True)
    p.add_argument("--past", default="1024,4096")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seconds", type=float, default=1)
    p.add_argument("--folder")
    a = p.parse_args()
    with tempfile.TemporaryDirectory(dir=a.folder) as folder:
        print("| weights | past | onnxmem ms | ONNX Runtime ms | tokens/s | tokens/s | ratio | arena | difference |")
        print("|---|--:|--:|--:|--:|--:|--:|--:|--:|", flush=True)
        for name, bits, level in (("float32", 32, 0), ("int4", 4, 0), ("int4, level 4", 4, 4)):
            for past in map(int, a.past.split(",")):
                measure(a, folder, name, bits, level, past)


if __name__ == "__main__":
    main()
