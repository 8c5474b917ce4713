# SPDX-License-Identifier: Apache-2.0
"""What trainings by ranks are compared with.

compare.py near A B...            losses and weights of trainings B are those of A: their output is in *.txt, their checkpoint in *.npz
compare.py weights A B            two models have the same weights, but for rounding
compare.py arenas JSON N B ...    ranks of the training B, of which there are N, have the arenas that a report says; another N, another B
compare.py parts JSON B            ranks of a pipeline have the arenas that a report says, and none sends to itself
compare.py epochs FILE            epochs of a checkpoint
"""
import json
import re
import sys


def read(path):
    with open(path) as f:
        return f.read()


def near(a, *others):
    import numpy as np
    losses = {f: [float(x) for x in re.findall(r"loss ([0-9.]+)", read(f"{f}.txt"))] for f in (a, *others)}
    one = np.load(f"{a}.npz")
    equal = True
    for b in others:
        two, last = np.load(f"{b}.npz"), losses[b]
        loss = max((abs(x - y) for x, y in zip(losses[a][-len(last):], last)), default=1)
        weights = max(float(np.abs(one[k].astype("f8") - two[k].astype("f8")).max()) for k in one.files)
        print(f"{b}: losses differ by", loss, "weights by", weights)
        equal &= loss <= 2e-6 and weights <= 2e-5
    return equal


def weights(a, b):
    import numpy as np
    import onnx
    one, two = [{w.name: onnx.numpy_helper.to_array(w) for w in onnx.load(f).graph.initializer} for f in (a, b)]
    return one.keys() == two.keys() and all(np.abs(one[k] - two[k]).max() <= 2e-5 for k in one)


def told_arenas(name):
    first, others = re.search(r"arena (\d+) bytes \(of the other ranks ([\d ]+)\)", read(f"{name}.txt")).groups()
    return [int(first), *map(int, others.split())]


def arenas(report, *told):
    sizes = {s["ranks"]: s["planned"] for s in json.loads(read(report))["sizes"]}
    equal = [r["rank"] for r in sizes[32]] == [0, 1, 31]
    for ranks, name in zip(told[::2], told[1::2]):
        have, want = told_arenas(name), [r["arena_bytes"] for r in sizes[int(ranks)]]
        states = int(re.search(r"states (\d+)", read(f"{name}.txt")).group(1))
        print(name, have, want, states)
        equal &= have == want and states == sizes[int(ranks)][0]["state_bytes"]
    return equal


def parts(report, name):
    r = json.loads(read(report))
    have, want = told_arenas(name), [p["arena_bytes"] for p in r["ranks"]]
    print(have, want)
    return have == want and r["messages"] and all(m["from"] != m["to"] < len(want) for m in r["messages"])


def epochs(path):
    import numpy as np
    print(int(np.load(path)["onnxmem.epoch"]))
    return True


sys.exit(not {"near": near, "weights": weights, "arenas": arenas, "parts": parts, "epochs": epochs}[sys.argv[1]](*sys.argv[2:]))
