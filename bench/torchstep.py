#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The peak of a training step in PyTorch: the same graph, loss and optimizer that bench/steps plans.

    bench/torchstep.py GRAPH.json        by a Python that has PyTorch; bench/steps.py writes the graph
    bench/torchstep.py GRAPH.json --time SECONDS [--threads N]

The nodes run one by one under autograd, each value is held until its last use; activations with one use are computed
in place, as in the modules from which the graphs were exported.  Then come the backward path and SGD with momentum.
The profiler's allocations and deallocations are counted from the start of the step, when inputs, parameters and
momentum exist already.

Prints: the peak above the start, bytes of parameters and momentum, seconds; with --time: milliseconds of the best step, the
least of the processor, number of steps."""
import argparse
import collections
import json
import math
import time

import torch
import torch.nn.functional as F

RATE, MOMENTUM = 0.1, 0.9


def halves(pads):
    """The padding of both sides is equal in these graphs."""
    n = len(pads) // 2
    assert pads[:n] == pads[n:], pads
    return pads[:n]


def norm(x, w, b, axis=-1, epsilon=1e-5):
    return F.layer_norm(x, x.shape[axis:], w, b, epsilon)


def reshape(x, s):
    return x.reshape([x.shape[k] if v == 0 else v for k, v in enumerate(s.tolist())])


def gather(x, i, axis=0):
    return F.embedding(i, x) if axis == 0 and x.dim() == 2 else x.select(axis, int(i)) if i.dim() == 0 else x.index_select(axis, i)


def gemm(x, w, b, transB=0, alpha=1, beta=1, transA=0):
    assert alpha == beta == 1 and not transA
    return torch.addmm(b, x, w.t() if transB else w)


def lstm(x, w, r, b, lengths, h, c, hidden_size, direction=b'forward', layout=0):
    """The order of the gates is PyTorch's, which makes no difference to random weights."""
    assert lengths is None and not layout and w.shape[0] == 1
    y, h, c = torch.lstm(x, (h, c), [w[0], r[0], *b[0].split(4 * hidden_size)], True, 1, 0.0, True, False, False)
    return y.unsqueeze(1), h, c


def cut(x, starts, ends, axes, steps=None):
    for a, k, n in zip(axes.tolist(), starts.tolist(), ends.tolist()):
        x = x.narrow(a, k, min(n, x.shape[a]) - k)
    return x


OPS = {
    'Add': lambda a, b: a + b, 'Sub': lambda a, b: a - b, 'Mul': lambda a, b: a * b, 'Div': lambda a, b: a / b,
    'Erf': torch.erf, 'Tanh': torch.tanh, 'Sigmoid': torch.sigmoid, 'MatMul': torch.matmul, 'Identity': lambda x: x,
    'Relu': torch.relu, 'Clip': lambda x, lo, hi: F.hardtanh(x, float(lo), float(hi)),
    'Softmax': lambda x, axis: torch.softmax(x, axis), 'LayerNormalization': norm, 'Reshape': reshape, 'Gather': gather, 'Gemm': gemm,
    'Transpose': lambda x, perm: x.permute(perm), 'Flatten': lambda x, axis=1: x.flatten(axis),
    'Cast': lambda x, to: x.to({1: torch.float32, 7: torch.int64}[to]),
    'Split': lambda x, s, axis: x.split(s.tolist(), axis), 'Concat': lambda *x, axis: torch.cat(x, axis),
    'LSTM': lstm, 'Slice': cut, 'Squeeze': lambda x, axes: x.squeeze(axes.tolist()), 'LogSoftmax': lambda x, axis: torch.log_softmax(x, axis),
    'GlobalAveragePool': lambda x: F.adaptive_avg_pool2d(x, 1),
    'Conv': lambda x, w, b=None, dilations=1, group=1, kernel_shape=0, pads=(0, 0), strides=1:
        F.conv2d(x, w, b, strides, halves(pads), dilations, group),
    'ConvTranspose': lambda x, w, b=None, dilations=1, group=1, kernel_shape=0, pads=(0, 0), strides=1:
        F.conv_transpose2d(x, w, b, strides, halves(pads), 0, group, dilations),
    'MaxPool': lambda x, kernel_shape, ceil_mode=0, pads=(0, 0), strides=1: F.max_pool2d(x, kernel_shape, strides, halves(pads), 1, bool(ceil_mode)),
}
OVER = {'Relu': torch.relu_, 'Clip': lambda x, lo, hi: F.hardtanh_(x, float(lo), float(hi))}


def needed(nodes, wanted):
    keep = []
    for n in reversed(nodes):
        if any(o in wanted for o in n['out']):
            wanted.update(n['in'])
            keep.append(n)
    return keep[::-1]


def forward(nodes, held, y):
    """`held`: values by name, deleted at their last use."""
    left = collections.Counter(k for n in nodes for k in n['in'])
    left[y] += 1
    made = set()
    for n in nodes:
        args = [held[k] if k else None for k in n['in']]
        first = n['in'][0]
        run = OVER[n['op']] if n['op'] in OVER and left[first] == 1 and first in made else OPS[n['op']]
        for k in n['in']:
            left[k] -= 1
            if left[k] == 0:
                held.pop(k, None)
        out = run(*args, **n['attr'])
        del args
        out = out if isinstance(out, (tuple, list)) else (out,)
        held.update((k, v) for k, v in zip(n['out'], out) if left[k])
        made.update(n['out'] if n['op'] not in ('Reshape', 'Transpose', 'Flatten', 'Identity', 'Split') else ())
        del out
    return held[y]


def start_counting():
    from torch.autograd import ProfilerConfig, ProfilerState, _enable_profiler_legacy
    _enable_profiler_legacy(ProfilerConfig(ProfilerState.CPU, False, True, False, False, False, torch._C._profiler._ExperimentalConfig()))


def peak():
    """The highest running sum of allocations and deallocations."""
    from torch.autograd import _disable_profiler_legacy
    now = most = 0
    for thread in _disable_profiler_legacy():
        for e in thread:
            if e.kind() == 'memory_alloc':
                now += e.cpu_memory_usage()
                most = max(most, now)
    return most


def prepare(path):
    """Nodes, values that exist before a step, and parameters that are used."""
    with open(path) as f:
        g = json.load(f)
    torch.manual_seed(0)
    held, params = {k: torch.tensor(v, dtype=getattr(torch, t)) for k, (t, v) in g['const'].items()}, []
    for name, kind, dims in g['input']:
        if name.startswith('param.'):
            held[name] = (torch.randn(dims) / math.sqrt(max(1, math.prod(dims[1:])))).requires_grad_()
            params.append((name, held[name]))
        else:
            held[name] = torch.randn(dims) if kind == 'float32' else torch.zeros(dims, dtype=getattr(torch, kind))
    nodes = needed(g['node'], {g['output']})
    used = {k for n in nodes for k in n['in']}
    return nodes, held, [p for name, p in params if name in used], g['output']


def optimizer(params):
    opt = torch.optim.SGD(params, RATE, momentum=MOMENTUM)
    for p in params:
        opt.state[p]['momentum_buffer'] = torch.zeros_like(p)
    return opt


def measure_peak(path):
    torch.set_num_threads(1)                 # one sequence of allocations
    nodes, held, params, output = prepare(path)
    opt = optimizer(params)
    fixed = dict(held)                       # inputs are kept
    start = time.time()
    start_counting()
    y = forward(nodes, held, output)
    loss = (y * y).mean()
    del y
    held.clear()
    loss.backward()
    opt.step()
    most = peak()
    took = time.time() - start
    del fixed
    assert all(p.grad is not None for p in params) and math.isfinite(float(loss)), (float(loss), sum(p.grad is None for p in params))
    print(most, 2 * sum(p.numel() * p.element_size() for p in params), f'{took:.1f}')


def measure_time(path, seconds, threads):
    torch.set_num_threads(threads)
    nodes, held, params, output = prepare(path)
    opt = optimizer(params)
    best = cpu = math.inf
    steps, start = 0, time.perf_counter()
    while steps < 3 or time.perf_counter() - start < seconds:
        cpu_at, at = time.process_time(), time.perf_counter()
        y = forward(nodes, dict(held), output)
        (y * y).mean().backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        best, cpu = min(best, time.perf_counter() - at), min(cpu, time.process_time() - cpu_at)
        steps += 1
    print(f'{best * 1e3:.3f} {cpu * 1e3:.3f} {steps}')


if __name__ == '__main__':
    a = argparse.ArgumentParser()
    a.add_argument('graph')
    a.add_argument('--time', type=float)
    a.add_argument('--threads', type=int, default=1)
    a = a.parse_args()
    if a.time:
        measure_time(a.graph, a.time, a.threads)
    else:
        measure_peak(a.graph)
