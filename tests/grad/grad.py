# SPDX-License-Identifier: Apache-2.0
"""Whole models: losses and gradients as PyTorch has them, steps of optimizers as well, and the files
of our steps run by ONNX Runtime.  Where one of the two cannot be had, its part is skipped.

    grad.py COMMAND FOLDER reference   (PyTorch's side, by a Python that has it, into FOLDER)
    grad.py COMMAND FOLDER             (the comparison)

Some are built here (models.py), some exported by PyTorch (nets.py).  GRAD_ALL asks for all optimizers, by
ONNX Runtime and by us.
"""
import glob
import os
import sys
import warnings
from collections import namedtuple

import numpy as np

from tolerance import Points, call, far

STEPS = 20
OPTIMIZERS = {'sgd': 0.05, 'adam': 0.01}                        # with their rates
LIMIT, FAR = 1e-4, 1e-3
ALL = bool(os.environ.get('GRAD_ALL'))
if ALL:
    OPTIMIZERS.update(momentum=0.02, adamw=0.01)

# loss: arguments of `onnxmem grad`; ref: what PyTorch has, or None
Subject = namedtuple('Subject', 'name path weights samples loss ref')


# ---- PyTorch's side. ----

def without_onnx():
    """The Python that has PyTorch may have no ONNX, nor need it: models are not built there."""
    import types
    from unittest.mock import MagicMock
    fake = types.ModuleType('onnx')
    fake.TensorProto = fake.helper = fake.numpy_helper = MagicMock()
    sys.modules['onnx'] = fake


def learn(weights, loss_of, optimizers=OPTIMIZERS):
    """Loss, gradients, and the weights after some steps of each optimizer."""
    import torch
    make = {'sgd': lambda q, rate: torch.optim.SGD(q, rate), 'momentum': lambda q, rate: torch.optim.SGD(q, rate, momentum=.9),
            'adam': lambda q, rate: torch.optim.Adam(q, rate), 'adamw': lambda q, rate: torch.optim.AdamW(q, rate, weight_decay=.01)}

    def fresh():
        return {k: torch.tensor(v, requires_grad=True) for k, v in weights.items()}
    p = fresh()
    loss = loss_of(p)
    loss.backward()
    out = {'loss': loss.detach().numpy(), **{'grad ' + k: v.grad.numpy() for k, v in p.items()}}
    for opt in set(optimizers) & set(OPTIMIZERS):
        p = fresh()
        o = make[opt](p.values(), OPTIMIZERS[opt])
        for _ in range(STEPS):
            o.zero_grad()
            loss_of(p).backward()
            if opt == 'sgd':
                torch.nn.utils.clip_grad_norm_(p.values(), 0.5)
            o.step()
        out.update({f'{opt} {k}': v.detach().numpy() for k, v in p.items()})
    return out


def reference(folder):
    import torch
    from torch.nn.utils.stateless import functional_call
    import nets
    warnings.simplefilter('ignore')
    torch.set_num_threads(1)

    def path(name):
        return os.path.join(folder, name)
    for make in nets.ALL:
        name, net, x, t, optimizers = make()
        net.train()
        weights = {k: v.detach().numpy().copy() for k, v in net.named_parameters()}
        nets.export(net, x, t, path(name + '.onnx'))
        np.savez(path(name + '-in.npz'), x=x.numpy(), t=t.numpy())
        np.savez(path(name + '.npz'), **learn(weights, lambda p: functional_call(net, p, (x, t)), optimizers))
    without_onnx()
    import models
    for make in models.ALL:
        name, _, weights, samples, net, loss_fn = make()
        s = {k: torch.tensor(v) for k, v in samples.items()}

        def loss_of(p):
            y = net(p, s, torch)
            return torch.nn.functional.cross_entropy(y, s['label']) if loss_fn == 'cross-entropy' else ((y - s['label']) ** 2).mean()
        np.savez(path(name + '.npz'), **learn(weights, loss_of))


# ---- Ours, and ONNX Runtime's. ----

def subjects(folder):
    import onnx
    import models

    def load(path):
        if not os.path.exists(path):
            return None
        with np.load(path) as z:
            return dict(z)
    exported = sorted(glob.glob(os.path.join(folder, '*-in.npz')))
    for make in models.ALL:
        name, model, weights, samples, _, loss_fn = make()
        path = os.path.join(folder, name + '.onnx')
        onnx.save(model, path)
        yield Subject(name, path, list(weights), samples, ['--loss-fn', loss_fn, '--train-mode'], load(path[:-5] + '.npz'))
    for samples in exported:
        path = samples[:-7]
        ref = load(path + '.npz')
        if ref:
            yield Subject(os.path.basename(path), path + '.onnx', [k[5:] for k in ref if k.startswith('grad ')], load(samples), ['--loss', 'loss'], ref)


class Run:
    def __init__(self, command, folder, points):
        self.command, self.folder, self.points, self.sessions = command, folder, points, {}
        try:
            import onnxruntime
            onnxruntime.set_default_logger_severity(3)
            self.ort = onnxruntime
        except ImportError:
            self.ort = None

    def call(self, *args):
        r = call(*args, command=self.command)
        if r.returncode:
            print('# ' + r.stderr.strip()[:300].replace('\n', '\n# '))
        return r.returncode == 0

    def ours(self, model, inputs):
        feeds, into = (os.path.join(self.folder, f) for f in ('feeds.npz', 'out.npz'))
        np.savez(feeds, **inputs)
        if not self.call('run', model, '--input', feeds, '--save', into):
            return None
        with np.load(into) as z:
            return dict(z)

    def theirs(self, model, inputs):
        if model not in self.sessions:
            self.sessions[model] = self.ort.InferenceSession(model, providers=['CPUExecutionProvider'])
        s = self.sessions[model]
        return dict(zip([o.name for o in s.get_outputs()], s.run(None, inputs)))

    def say(self, distances, limit, what):
        d = max(distances)
        self.points.point(d[0] <= limit, f'{what}, the farthest by {d[0]:.1e} ({d[1]})')


def check_gradients(r, m):
    import onnx
    out = m.path[:-5] + '-grad.onnx'
    if not r.call('grad', m.path, out, *m.loss):
        r.points.point(False, f'{m.name}: gradients')
        return
    onnx.checker.check_model(onnx.load(out), full_check=True)
    got = r.ours(out, m.samples)
    r.points.point(got is not None, f'{m.name}: gradients are computed')
    if not got:
        return
    r.points.point(all(k + '_grad' in got for k in m.weights), f'{m.name}: all weights have gradients')
    if m.ref:
        # Where a gradient is zero, as that of a bias in front of a norm, both have rounding there.
        least = 1e-3 * max(np.abs(m.ref['grad ' + k]).max() for k in m.weights)
        r.say([(far(got['loss'], m.ref['loss']), 'loss')] + [(far(got[k + '_grad'], m.ref['grad ' + k], least), k) for k in m.weights],
              LIMIT, f'{m.name}: loss and gradients are PyTorch\'s')
    if r.ort:
        other = r.theirs(out, m.samples)
        least = 1e-3 * max(np.abs(v).max() for k, v in other.items() if k.endswith('_grad'))
        r.say([(far(got[k], v, least if k.endswith('_grad') else 1e-12), k) for k, v in other.items()], LIMIT,
              f'{m.name}: ONNX Runtime gives the same')


def moving(m):
    """What the loss changes with.  A shift in front of a norm moves by rounding alone, which adam makes as large as
    any other gradient."""
    most = {k: np.abs(m.ref['grad ' + k]).max() for k in m.weights}
    return [k for k in m.weights if most[k] > 1e-5 * max(most.values())]


def check_steps(r, m, opt):
    step = f'{m.path[:-5]}-{opt}.onnx'
    more = {'sgd': ['--clip-norm', '0.5'], 'adamw': ['--weight-decay', '0.01']}.get(opt, [])
    if not r.call('grad', m.path, step, *m.loss, '--optimizer', opt, '--lr', str(OPTIMIZERS[opt]), *more):
        r.points.point(False, f'{m.name}: a step of {opt}')
        return
    for who, run in ('we', r.ours), ('ONNX Runtime', r.theirs):
        if (run == r.theirs and not r.ort) or (run == r.ours and not ALL and m.name != 'mlp'):
            continue
        state = {}
        for _ in range(STEPS):
            out = run(step, {**m.samples, **state})
            if out is None:
                break
            state = {k[:-5]: v for k, v in out.items() if k.endswith('_next')}
        what = f'{m.name}: {STEPS} steps of {opt}, {who}'
        if out is None or not m.ref:
            r.points.point(out is not None, what)
        else:
            r.say([(far(state[k], m.ref[f'{opt} {k}'], 0.01), k) for k in moving(m)], FAR, what)


def main(command, folder):
    points = Points()
    r = Run(command, folder, points)
    for m in subjects(folder):
        check_gradients(r, m)
        for opt in OPTIMIZERS:
            if not m.ref or f'{opt} {m.weights[0]}' in m.ref:
                check_steps(r, m, opt)
    points.end()


if __name__ == '__main__':
    if len(sys.argv) > 3:
        reference(sys.argv[2])
    else:
        main(sys.argv[1], sys.argv[2])
