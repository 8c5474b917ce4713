"""Whole models: losses and gradients as PyTorch has them, steps of optimizers as well, and the files
of our steps run by ONNX Runtime.  Where one of the two cannot be had, its part is skipped.

    grad.py COMMAND FOLDER reference   (PyTorch's side, by a Python that has it, into FOLDER)
    grad.py COMMAND FOLDER             (the comparison)
"""
import os
import subprocess
import sys

import numpy as np

STEPS = 20
OPTIMIZERS = {'sgd': 0.05, 'momentum': 0.02, 'adam': 0.01, 'adamw': 0.01}
LIMIT, FAR = 1e-4, 1e-3
ALL = bool(os.environ.get('GRAD_ALL'))


def reference(folder):
    """The Python that has PyTorch may have no ONNX, nor need it: models are not built here."""
    import types
    from unittest.mock import MagicMock
    import torch
    fake = types.ModuleType('onnx')
    fake.TensorProto = fake.helper = fake.numpy_helper = MagicMock()
    sys.modules['onnx'] = fake
    import models
    for make in models.ALL:
        name, _, weights, samples, net, loss_fn = make()
        s = {k: torch.tensor(v) for k, v in samples.items()}

        def loss_of(p):
            y = net(p, s, torch)
            return torch.nn.functional.cross_entropy(y, s['label']) if loss_fn == 'cross-entropy' else ((y - s['label']) ** 2).mean()
        p = {k: torch.tensor(v, requires_grad=True) for k, v in weights.items()}
        loss = loss_of(p)
        loss.backward()
        out = {'loss': loss.detach().numpy(), **{'grad ' + k: v.grad.numpy() for k, v in p.items()}}
        for opt, rate in OPTIMIZERS.items():
            p = {k: torch.tensor(v, requires_grad=True) for k, v in weights.items()}
            o = {'sgd': lambda q: torch.optim.SGD(q, rate), 'momentum': lambda q: torch.optim.SGD(q, rate, momentum=.9),
                 'adam': lambda q: torch.optim.Adam(q, rate), 'adamw': lambda q: torch.optim.AdamW(q, rate, weight_decay=.01)}[opt](p.values())
            for _ in range(STEPS):
                o.zero_grad()
                l = loss_of(p)
                l.backward()
                if opt == 'sgd':
                    torch.nn.utils.clip_grad_norm_(p.values(), 0.5)
                o.step()
            out.update({f'{opt} {k}': v.detach().numpy() for k, v in p.items()})
        np.savez(os.path.join(folder, name + '.npz'), **out)


count = failed = 0


def say(ok, what):
    global count, failed
    count += 1
    failed += not ok
    print(f"{'ok' if ok else 'not ok'} {count} - {what}")


def far(a, b):
    a, b = np.asarray(a, 'f8'), np.asarray(b, 'f8')
    return float(np.max(np.abs(a - b)) / (np.max(np.abs(b)) + 1e-12)) if a.shape == b.shape else float('inf')


def worst(pairs):
    return max((far(a, b), k) for k, a, b in pairs)


def main(command, folder):
    import onnx
    import models
    try:
        import onnxruntime as ort
        ort.set_default_logger_severity(3)
    except ImportError:
        ort = None
    for make in models.ALL:
        name, model, weights, samples, _, loss_fn = make()
        path, ref = os.path.join(folder, name + '.onnx'), os.path.join(folder, name + '.npz')
        onnx.save(model, path)
        ref = np.load(ref) if os.path.exists(ref) else None
        feeds = os.path.join(folder, name + '-in.npz')
        np.savez(feeds, **samples)

        def grad(out, *more):
            r = subprocess.run([*command.split(), 'grad', path, out, '--loss-fn', loss_fn, '--train-mode', *more], capture_output=True, text=True)
            if r.returncode:
                print('# ' + r.stderr.strip())
            return r.returncode == 0

        def ours(model, inputs, extra=()):
            into = os.path.join(folder, name + '-out.npz')
            np.savez(feeds, **inputs)
            r = subprocess.run([*command.split(), 'run', model, '--input', feeds, '--save', into, *extra], capture_output=True, text=True)
            if r.returncode:
                print('# ' + r.stderr.strip()[:300])
                return None
            return dict(np.load(into))

        def theirs(model, inputs):
            s = ort.InferenceSession(model, providers=['CPUExecutionProvider'])
            return dict(zip([o.name for o in s.get_outputs()], s.run(None, inputs)))

        out = os.path.join(folder, name + '-grad.onnx')
        if not grad(out):
            say(False, f'{name}: gradients')
            continue
        onnx.checker.check_model(onnx.load(out), full_check=True)
        got = ours(out, samples)
        say(got is not None, f'{name}: gradients are computed')
        names = [k for k in weights if got and k + '_grad' in got]
        say(len(names) == len(weights), f'{name}: all weights have gradients')
        if ref is not None and got:
            d = worst([('loss', got['loss'], ref['loss'])] + [(k, got[k + '_grad'], ref['grad ' + k]) for k in names])
            say(d[0] <= LIMIT, f'{name}: loss and gradients are PyTorch\'s, the farthest by {d[0]:.1e} ({d[1]})')
        if ort and got:
            other = theirs(out, samples)
            d = worst([(k, got[k], other[k]) for k in other])
            say(d[0] <= LIMIT, f'{name}: ONNX Runtime gives the same, the farthest by {d[0]:.1e} ({d[1]})')
        for opt, rate in OPTIMIZERS.items():
            if not ALL and opt not in ('sgd', 'adam'):
                continue
            step = os.path.join(folder, f'{name}-{opt}.onnx')
            more = {'sgd': ['--clip-norm', '0.5'], 'adamw': ['--weight-decay', '0.01']}.get(opt, [])
            if not grad(step, '--optimizer', opt, '--rate', str(rate), *more):
                say(False, f'{name}: a step of {opt}')
                continue
            for who, run in ('we', ours), ('ONNX Runtime', theirs):
                if (run is theirs and not ort) or (run is ours and not ALL and name != 'mlp'):
                    continue
                state = {}
                for _ in range(STEPS):
                    r = run(step, {**samples, **state})
                    if r is None:
                        break
                    state = {k[:-5]: v for k, v in r.items() if k.endswith('_next')}
                if r is None:
                    say(False, f'{name}: {STEPS} steps of {opt}, {who}')
                elif ref is not None:
                    d = worst([(k, state[k], ref[f'{opt} {k}']) for k in weights])
                    say(d[0] <= FAR, f'{name}: {STEPS} steps of {opt}, {who}, the farthest by {d[0]:.1e} ({d[1]})')
                else:
                    say(True, f'{name}: {STEPS} steps of {opt}, {who}')
    print(f'1..{count}')
    return failed


if __name__ == '__main__':
    if len(sys.argv) > 3:
        reference(sys.argv[2])
    else:
        sys.exit(1 if main(sys.argv[1], sys.argv[2]) else 0)
