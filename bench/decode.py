# SPDX-License-Identifier: Apache-2.0
"""A step of a decoder, beside ONNX Runtime: one token after many, with a cache in one buffer.

    decode.py --onnxmem PATH [--past 1024,4096] [--rounds 5] [--threads 1] [--seconds 1] [--folder DIR] [--caches LIST] [--precise]

The model is a llama of 23 million parameters with random weights, as builders of onnxruntime-genai write it: 6 layers,
8 heads of 64 elements that share 4 of keys and values, in float32 and with weights of 4 bits (`accuracy_level` 0 and 4).
ONNX Runtime has past and present bound to one buffer each; for onnxmem one is aliased to the other.  Times are the least processor
time of a step; the two take turns.  Tokens per second are of that time.  With --caches, as float16,int8,int4, the model is the
attention of these layers alone, with such caches; --precise has the reference kernels run."""
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


class Attention(Net):
    """The attention of all layers, over caches of a type; queries, keys and values are inputs."""

    def __init__(self, kind, room):
        super().__init__(32, 0, room)
        self.kind, self.real = kind, TensorProto.FLOAT16 if kind == "float16" else TensorProto.FLOAT

    def cache(self, kind, name):
        types = {"int8": TensorProto.INT8, "int4": TensorProto.UINT8}
        return helper.make_tensor_value_info(name, types.get(self.kind, self.real), [1, KV, self.room, SIZE // 2 if self.kind == "int4" else SIZE])

    def times(self, x, name, k, n):
        return name

    def model(self, past):
        total = self.constant("total", np.asarray(past + 1, np.int32))
        angle = np.arange(self.room)[:, None] / 10000 ** (np.arange(SIZE // 2) / (SIZE // 2))
        for name, f in (("cos", np.cos), ("sin", np.sin)):
            self.constant(name, f(angle).astype(helper.tensor_dtype_to_np_dtype(self.real)))
        scale = self.constant("scale", np.asarray([0.02 if self.kind == "int8" else 0.3], np.float32)) if self.kind.startswith("int") else ""
        for i in range(LAYERS):
            self.layer(i, "", total)
            node = self.nodes[-1]
            if self.kind.startswith("int"):
                node.input.extend([""] * (12 - len(node.input)) + [scale] * 2)
                node.attribute.extend([helper.make_attribute("k_quant_type", "PER_TENSOR"), helper.make_attribute("v_quant_type", "PER_TENSOR"),
                                       helper.make_attribute("kv_cache_bit_width", int(self.kind[3:]))])
            for name, n in (("q", HEADS), ("k", KV), ("v", KV)):
                self.ins.append(helper.make_tensor_value_info(f"layers.{i}.{name}", self.real, [1, 1, n * SIZE]))
            self.outs.append(helper.make_tensor_value_info(f"layers.{i}.attention", self.real, [1, 1, HIDDEN]))
        self.ins.append(helper.make_tensor_value_info("seqlens_k", TensorProto.INT32, [1]))
        m = helper.make_model(helper.make_graph(self.nodes, "attention", self.ins, self.outs, self.weights),
                              opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)], ir_version=10)
        states = {o.name: o.name.replace("present", "past_key_values") for o in self.outs if o.name.startswith("present")}
        helper.set_model_props(m, {"org.onnxmem.io_alias": json.dumps(states)})
        return m

    def feeds(self, past):
        r, x = np.random.default_rng(2), {"seqlens_k": np.asarray([past], np.int32)}
        for i in self.ins:
            shape = [d.dim_value for d in i.type.tensor_type.shape.dim]
            t = helper.tensor_dtype_to_np_dtype(i.type.tensor_type.elem_type)
            if i.name != "seqlens_k":
                x[i.name] = r.integers(-128 if t == np.int8 else 0, 127, shape).astype(t) if t in (np.int8, np.uint8) \
                    else r.standard_normal(shape, np.float32).astype(t)
        return x


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
        for o in self.session.get_outputs():
            if not o.name.startswith("present"):
                self.binding.bind_output(o.name)

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
    out = subprocess.run([a.onnxmem, "run", path, "--data", data, "--threads", str(a.threads), *["--precise"] * a.precise, "--repeat", str(repeat), "--stats", stats,
                          "--save", os.path.join(folder, "out.npz")], capture_output=True, text=True, check=False)
    if out.returncode:
        raise SystemExit(out.stderr)
    with open(stats, encoding="utf-8") as f:
        return json.load(f)


def measure(a, folder, name, model, x, past):
    path, data = os.path.join(folder, "m.onnx"), os.path.join(folder, "in.npz")
    onnx.save(model, path)
    np.savez(data, **x)
    theirs = Runtime(path, x, a.threads)
    repeat = max(3, int(a.seconds / (ours(a, path, data, folder, 3)["best_cpu_ms"] / 1e3)))
    best = [1e9, 1e9]
    for _ in range(a.rounds):
        s = ours(a, path, data, folder, repeat)
        best = [min(best[0], s["best_cpu_ms"]), min(best[1], theirs.best(a.seconds) * 1e3)]
    last = [k for k, o in enumerate(model.graph.output) if not o.name.startswith("present")][-1]
    y = np.load(os.path.join(folder, "out.npz"))[model.graph.output[last].name].astype(np.float32)
    want = [v.numpy() for v in theirs.binding.get_outputs() if list(v.shape()) == list(y.shape)][-1].astype(np.float32)
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
    p.add_argument("--caches")
    p.add_argument("--precise", action="store_true")
    a = p.parse_args()
    with tempfile.TemporaryDirectory(dir=a.folder) as folder:
        print("| weights | past | onnxmem ms | ONNX Runtime ms | tokens/s | tokens/s | ratio | arena | difference |")
        print("|---|--:|--:|--:|--:|--:|--:|--:|--:|", flush=True)
        for past in map(int, a.past.split(",")) if a.caches else ():
            for kind in a.caches.split(","):
                net = Attention(kind, past + 8)
                measure(a, folder, kind, net.model(past), net.feeds(past), past)
        for name, bits, level in () if a.caches else (("float32", 32, 0), ("int4", 4, 0), ("int4, level 4", 4, 4)):
            for past in map(int, a.past.split(",")):
                measure(a, folder, name, Net(bits, level, past + 8).model(past), feeds(past, past + 8), past)


if __name__ == "__main__":
    main()
