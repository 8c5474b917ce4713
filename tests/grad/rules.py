# SPDX-License-Identifier: Apache-2.0
"""Every gradient rule that PyTorch has a counterpart of: the gradients of all inputs, as torch.autograd
has them in float64, ours in float32.

    rules.py COMMAND FOLDER reference   (PyTorch's side, by a Python that has it, into FOLDER)
    rules.py COMMAND FOLDER             (the comparison)

Cases are drawn alike on both sides.  Each is summed up with a random weight for each element of its
results; some are made one model, and each its own where that fails.  GRAD_SEEDS asks for more shapes.
"""
import os
import sys

import numpy as np

import torch_reference
from tolerance import Points, call, far
from torch_reference import Fixed

SEEDS = range(int(os.environ.get('GRAD_SEEDS', 1)))
LIMIT, AT_ONCE, OPSET = 1e-4, 40, 24


def is_learned(a):
    return isinstance(a, np.ndarray) and a.dtype == np.float32


def elements(a):
    return a.x if isinstance(a, Fixed) else a


def reference(folder):
    import torch
    torch.set_num_threads(1)
    for seed in SEEDS:
        out = {}
        r = np.random.RandomState(1000 + seed)
        for i, c in enumerate(torch_reference.draw(seed)):
            args = [torch.tensor(elements(a)) for a in c.args if a is not None]
            args = [a.double() if a.is_floating_point() else a for a in args]
            learned = [is_learned(a) for a in c.args if a is not None]
            wrt = [a.requires_grad_() for a, l in zip(args, learned) if l]
            try:
                y = c.fn(*args)
                y = y if isinstance(y, tuple) else (y,)
                w = [None if v is None else r.uniform(-1, 1, tuple(v.shape)).astype('f4') for v in y]
                grads = torch.autograd.grad(sum((v * torch.tensor(u)).sum() for v, u in zip(y, w) if v is not None), wrt)
            except (RuntimeError, TypeError, NotImplementedError, IndexError) as e:
                raise RuntimeError(f'{c.name}: {e}') from e
            out.update({f'{i} weight {k}': u for k, u in enumerate(w) if u is not None})
            out.update({f'{i} grad {k}': g.numpy() for k, g in zip((k for k, a in enumerate(c.args) if is_learned(a)), grads)})
        np.savez(os.path.join(folder, f'{seed}.npz'), **out)


def model_of(some, ref):
    """All these cases as one graph, the values of each with its number in front; what goes in is an
    initializer where it is not differentiated."""
    from onnx import TensorProto as T, helper as h, numpy_helper as nh
    nodes, inputs, inits, losses, feeds = [], [], [], [], {}
    for i, c in some:
        names = [f'c{i}_{k}' if a is not None else '' for k, a in enumerate(c.args)]
        for a, name in zip(c.args, names):
            if is_learned(a):
                inputs.append(h.make_tensor_value_info(name, T.FLOAT, a.shape))
                feeds[name] = a
            elif a is not None:
                inits.append(nh.from_array(np.asarray(elements(a)), name))
        nodes.append(h.make_node(c.op, names, [f'c{i}_y{k}' for k in range(c.outs)], domain=c.domain, **c.attrs))
        for k in range(c.outs):
            if f'{i} weight {k}' not in ref:
                continue
            y, s = f'c{i}_y{k}', f'c{i}_s{k}'
            inits.append(nh.from_array(ref[f'{i} weight {k}'], f'c{i}_w{k}'))
            if c.op.startswith('Cast'):
                nodes.append(h.make_node('Cast', [y], [y + 'f'], to=T.FLOAT))
                y += 'f'
            nodes += [h.make_node('Mul', [y, f'c{i}_w{k}'], [s + 'm']), h.make_node('ReduceSum', [s + 'm'], [s], keepdims=0)]
            losses.append(s)
    nodes.append(h.make_node('Sum', losses, ['loss']))
    g = h.make_graph(nodes, 'operators', inputs, [h.make_tensor_value_info('loss', T.FLOAT, [])], inits)
    return h.make_model(g, opset_imports=[h.make_opsetid('', OPSET), h.make_opsetid('com.microsoft', 1)], ir_version=10), feeds


def gradients(command, folder, some, ref):
    """What `onnxmem run` gives for the model that `onnxmem grad` makes, or what was said instead."""
    import onnx
    model, feeds = model_of(some, ref)
    at, to, data, out = (os.path.join(folder, f) for f in ('m.onnx', 'g.onnx', 'in.npz', 'out.npz'))
    onnx.save(model, at)
    np.savez(data, **feeds)
    for args in ['grad', at, to, '--loss', 'loss', '--wrt', ','.join(feeds)], ['run', to, '--input', data, '--save', out, '--schedule', 'original']:
        r = call(*args, command=command)
        if r.returncode:
            return None, r.stderr.strip()
    with np.load(out) as z:
        return dict(z), ''


def compare(command, folder, some, ref, verdict):
    got, said = gradients(command, folder, some, ref)
    if got is None and len(some) > 1:
        for one in some:
            compare(command, folder, [one], ref, verdict)
        return
    for i, c in some:
        v = verdict.setdefault(c.op, [0, 0.0, []])
        v[0] += 1
        if got is None:
            v[2].append(f'{c.name}: {said[:300]}')
            continue
        for k, a in enumerate(c.args):
            if is_learned(a):
                d = far(got[f'c{i}_{k}_grad'], ref[f'{i} grad {k}'], 1e-3) if f'c{i}_{k}_grad' in got else float('inf')
                v[1] = max(v[1], d)
                if not d <= LIMIT:
                    v[2].append(f'{c.name}: of input {k} {a.shape}, off by {d:.1e}, {c.attrs}')


def main(command, folder):
    verdict = {}
    for seed in SEEDS:
        drawn = list(enumerate(torch_reference.draw(seed)))
        with np.load(os.path.join(folder, f'{seed}.npz')) as z:
            ref = dict(z)
        for k in range(0, len(drawn), AT_ONCE):
            compare(command, folder, drawn[k:k + AT_ONCE], ref, verdict)
    points = Points()
    for op, (count, worst, wrong) in sorted(verdict.items()):
        points.point(not wrong, f'{op}: {count} cases as PyTorch has them, the farthest by {worst:.1e}', *wrong)
    points.end()


if __name__ == '__main__':
    if len(sys.argv) > 3:
        reference(sys.argv[2])
    else:
        main(sys.argv[1], sys.argv[2])
