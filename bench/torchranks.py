#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The memory of a rank that trains in PyTorch, by DistributedDataParallel or by fully_shard, over gloo.

    bench/torchranks.py GRAPH.json OPTIMIZER BATCH RANKS ddp|fsdp        by a Python that has PyTorch

bench/ranks.py writes the graph, and calls this.  The processes are started here.  The layers of a net are modules of their own, each of
which fully_shard divides, so that one after the other is whole.  Gradients of DistributedDataParallel are views of its buckets, which takes
the least memory.

Counted are all allocations of tensors since before the parameters were made: parameters, gradients, states of the optimizer, buckets,
activations, samples; the peak is that of the second step, when all of that is there.  Prints the bytes of the rank that takes most."""
import json
import math
import os
import re
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

from torchstep import OPS, needed, start_counting

MARK = 1234567      # bytes of a tensor that is made before the second step


def peak_of_second():
    """Of the thread that computes: what others allocate, as to exchange elements, is not counted."""
    from torch.autograd import _disable_profiler_legacy
    for thread in _disable_profiler_legacy():
        now, most, marked = 0, 0, False
        for e in thread:
            if e.kind() != "memory_alloc":
                continue
            marked |= e.cpu_memory_usage() == MARK
            now += e.cpu_memory_usage()
            most = max(most, now) if marked else 0
        if marked:
            return most - MARK
    raise RuntimeError("the second step was not seen")


def layer_of(node):
    """The layer to which the parameters of a node belong; None: it has none."""
    for name in node["in"]:
        found = re.match(r"param\.(s\d+b\d+|l\d+)_", name)
        if found:
            return found.group(1)
        if name.startswith("param."):
            return name[6:].split("_")[0]
    return None


def cut(nodes):
    """Runs of nodes, by layers."""
    runs, last = [], None
    for n in nodes:
        layer = layer_of(n) or last
        if layer != last or not runs:
            runs.append([])
        runs[-1].append(n)
        last = layer
    return runs


class Layer(nn.Module):
    def __init__(self, nodes, dims, const, takes, gives):
        super().__init__()
        self.nodes, self.const, self.takes, self.gives = nodes, const, takes, gives
        self.names = {n: n[6:].replace(".", "_") for k in nodes for n in k["in"] if n in dims}
        for name, own in self.names.items():
            self.register_parameter(own, nn.Parameter(torch.randn(dims[name]) / math.sqrt(max(1, math.prod(dims[name][1:])))))

    def forward(self, *args):
        held = dict(zip(self.takes, args))
        held.update(self.const)
        held.update((name, getattr(self, own)) for name, own in self.names.items())
        for at, n in enumerate(self.nodes):
            out = OPS[n["op"]](*(held[k] if k else None for k in n["in"]), **n["attr"])
            held.update(zip(n["out"], out if isinstance(out, (tuple, list)) else (out,)))
            del out
            for k in n["in"]:
                if k in held and k not in self.gives and not any(k in later["in"] for later in self.nodes[at + 1:]):
                    del held[k]
        return tuple(held[k] for k in self.gives)


class Net(nn.Module):
    def __init__(self, graph):
        super().__init__()
        const = {k: torch.tensor(v, dtype=getattr(torch, t)) for k, (t, v) in graph["const"].items()}
        dims = {name: d for name, _, d in graph["input"] if name.startswith("param.")}
        runs = cut(needed(graph["node"], {graph["output"]}))
        self.layers, self.output = nn.ModuleList(), graph["output"]
        made = [{k for n in r for k in n["out"]} for r in runs]
        for i, r in enumerate(runs):
            reads = {k for n in r for k in n["in"] if k} - made[i] - set(dims) - set(const)
            later = {k for n in sum(runs[i + 1:], []) for k in n["in"]} | {self.output}
            self.layers.append(Layer(r, dims, {k: const[k] for n in r for k in n["in"] if k in const}, sorted(reads), sorted(made[i] & later)))

    def forward(self, x):
        held = {"x": x}
        for i, layer in enumerate(self.layers):
            held.update(zip(layer.gives, layer(*(held[k] for k in layer.takes))))
            left = {k for other in self.layers[i + 1:] for k in other.takes} | {self.output}
            held = {k: v for k, v in held.items() if k in left}
        return held[self.output]


def samples(graph, n):
    name, kind, dims = next(i for i in graph["input"] if not i[0].startswith("param."))
    dims = [n, *dims[1:]]
    return torch.randn(dims) if kind == "float32" else torch.zeros(dims, dtype=getattr(torch, kind)), torch.zeros(n, dtype=torch.int64)


def divided(net, how, ranks):
    if how == "ddp":
        return nn.parallel.DistributedDataParallel(net, bucket_cap_mb=4, gradient_as_bucket_view=True)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh("cpu", (ranks,))
    for layer in net.layers:
        fully_shard(layer, mesh=mesh)
    return fully_shard(net, mesh=mesh)


def rank(k, path, optimizer, batch, ranks, how, out):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(29000 + os.getppid() % 1000))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=k, world_size=ranks)
    with open(path) as f:
        graph = json.load(f)
    torch.manual_seed(0)
    start_counting()
    net = divided(Net(graph), how, ranks)
    opt = torch.optim.Adam(net.parameters()) if optimizer == "adam" else torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)
    x, label = samples(graph, batch // ranks + (k < batch % ranks))
    for step in range(2):
        opt.zero_grad()
        mark = torch.empty(MARK, dtype=torch.uint8) if step else None
        loss = nn.functional.cross_entropy(net(x), label)
        loss.backward()
        opt.step()
    assert math.isfinite(float(loss.detach()))
    most = torch.tensor([peak_of_second()])
    del mark
    dist.all_reduce(most, op=dist.ReduceOp.MAX)
    if k == 0:
        out.put(int(most))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    path, optimizer, batch, ranks, how = sys.argv[1:]
    queue = mp.get_context("spawn").SimpleQueue()
    mp.spawn(rank, (path, optimizer, int(batch), int(ranks), how, queue), int(ranks))
    print(queue.get())
