#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fused gradients compared with decomposed ones: time of the backward path's ops, and arenas.

    bench/fused.py COMMAND [--repeat 30]

Each case is a graph with one layer and the gradients of its inputs, made with `onnxmem grad` with and without
--fused-gradients, or one weight and its update, with and without --fused-updates; both are run alternately, as is the
decomposed form by ONNX Runtime on one thread, if PYTHON has it.
In ms: medians of the best of each repetition (of all runs, for ONNX Runtime); arenas in KiB."""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh

try:
    import onnxruntime as ort
    ort.set_default_logger_severity(3)
except ImportError:
    ort = None

CONV = [(8, 16, 32, 32, 3, 1, 1), (8, 64, 28, 64, 3, 1, 1), (8, 64, 28, 128, 1, 1, 1), (4, 3, 64, 32, 7, 2, 1),
        (8, 256, 7, 256, 3, 1, 1), (8, 64, 28, 64, 3, 1, 64), (8, 96, 14, 96, 3, 2, 96), (8, 64, 28, 64, 3, 1, 4)]


def layers():
    for n, cin, size, cout, k, stride, group in CONV:
        w = np.random.default_rng(0).standard_normal((cout, cin // group, k, k)) * .1
        node = h.make_node('Conv', ['x', 'w'], ['y'], pads=[k // 2] * 4, strides=[stride] * 2, group=group)
        yield f'Conv {k}x{k} /{stride} g{group} {n}x{cin}x{size}x{size} to {cout}', [node], (n, cin, size, size), {'w': w}
    node = h.make_node('MaxPool', ['x'], ['y'], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    yield 'MaxPool 3x3 /2 8x64x56x56', [node], (8, 64, 56, 56), {}
    for shape in (8, 64, 28, 28), (32, 16, 14, 14):
        c = shape[1]
        node = h.make_node('BatchNormalization', ['x', 's', 'b', 'm', 'v'], ['y', 'mm', 'vv'], training_mode=1)
        yield f'BatchNormalization {"x".join(map(str, shape))}', [node], shape, {
            's': np.ones(c), 'b': np.zeros(c), 'm': np.zeros(c), 'v': np.ones(c)}


def updates():
    """The loss is the sum of the elements of x * w, so that the step is nearly the update alone."""
    for optimizer in 'sgd', 'momentum', 'adam', 'lamb':
        for n in 1 << 12, 1 << 16, 1 << 22:
            yield f'{optimizer}, {n} elements', optimizer, n


def build_update(n, path):
    nodes = [h.make_node('Mul', ['x', 'w'], ['q']), h.make_node('ReduceSum', ['q'], ['l'], keepdims=0)]
    init = [nh.from_array(np.random.default_rng(1).standard_normal(n).astype('f4'), k) for k in 'xw']
    g = h.make_graph(nodes, 'g', [], [h.make_tensor_value_info('l', T.FLOAT, [])], init)
    onnx.save(h.make_model(g, opset_imports=[h.make_opsetid('', 17)], ir_version=8), path)


def build(nodes, shape, weights, path):
    """The input is a weight too, so that its gradient is computed; the loss is the mean of squares."""
    nodes = [*nodes, h.make_node('Mul', ['y', 'y'], ['q']), h.make_node('ReduceMean', ['q'], ['l'], keepdims=0)]
    x = np.random.default_rng(1).standard_normal(shape)
    init = [nh.from_array(np.asarray(v, np.float32), k) for k, v in {'x': x, **weights}.items()]
    g = h.make_graph(nodes, 'g', [], [h.make_tensor_value_info('l', T.FLOAT, [])], init)
    onnx.save(h.make_model(g, opset_imports=[h.make_opsetid('', 17)], ir_version=8), path)


def measure(command, path, repeat):
    stats = path + '.json'
    r = subprocess.run([*command.split(), 'run', path, '--repeat', str(repeat), '--stats', stats, '--target', 'cpu'],
                       capture_output=True, text=True)
    if r.returncode:
        raise SystemExit(r.stderr)
    with open(stats) as f:
        return json.load(f)


def compare(name, form, a):
    ms, arena = {'plain': [], 'fused': [], 'ort': []}, {}
    session = None
    if ort:
        o = ort.SessionOptions()
        o.intra_op_num_threads = o.inter_op_num_threads = 1
        session = ort.InferenceSession(form['plain'], o, providers=['CPUExecutionProvider'])
    for _ in range(5):
        for k, path in form.items():
            s = measure(a.command, path, a.repeat)
            ms[k].append(s['best_ms'])
            arena[k] = s['arena_bytes']
        if session:
            session.run(None, {})
            for _ in range(a.repeat):
                start = time.perf_counter()
                session.run(None, {})
                ms['ort'].append(1000 * (time.perf_counter() - start))
    p, f = statistics.median(ms['plain']), statistics.median(ms['fused'])
    other = f"{statistics.median(ms['ort']):.3f}" if session else '-'
    print(f"| {name} | {p:.3f} | {f:.3f} | {p / f:.2f} | {other} | {arena['plain'] / 1024:.0f} | {arena['fused'] / 1024:.0f} |",
          flush=True)


def main():
    a = argparse.ArgumentParser()
    a.add_argument('command')
    a.add_argument('--repeat', type=int, default=30)
    a.add_argument('--only', choices=['gradients', 'updates'])
    a = a.parse_args()
    print('| step | plain, ms | one op, ms | ratio | ONNX Runtime, plain, ms | plain arena, KiB | one op, KiB |')
    print('|---|---|---|---|---|---|---|')
    with tempfile.TemporaryDirectory() as folder:
        net = os.path.join(folder, 'net.onnx')
        form = {k: os.path.join(folder, k + '.onnx') for k in ('plain', 'fused')}

        def grad(option, *options):
            for k, path in form.items():
                subprocess.run([*a.command.split(), 'grad', net, path, '--loss', 'l', *options, *([option] if k == 'fused' else [])],
                               check=True, capture_output=True)

        for name, nodes, shape, weights in layers() if a.only != 'updates' else ():
            build(nodes, shape, weights, net)
            grad('--fused-gradients', '--optimizer', 'sgd')
            compare(name, form, a)
        for name, optimizer, n in updates() if a.only != 'gradients' else ():
            build_update(n, net)
            grad('--fused-updates', '--optimizer', optimizer, '--wrt', 'w')
            compare(name, form, a)


if __name__ == '__main__':
    main()
