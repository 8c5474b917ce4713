# SPDX-License-Identifier: Apache-2.0
"""Steps with gradients and updates in one op, as `onnxmem grad --fused-gradients --fused-updates` writes them, beside the
plain form.

    functions.py COMMAND FOLDER

The checker takes them, the inliner leaves standard operators alone, ONNX Runtime runs both with the numbers
of the plain form; so does `onnxmem`, planned, without reuse and poisoned, and over several steps.
"""
import os
import sys

import numpy as np
import onnx
import onnx.inliner
import onnxruntime as ort

import models
from tolerance import Points, call, far, theirs

ort.set_default_logger_severity(3)
DOMAIN, STEPS, SAME, NEAR = 'org.onnxmem.grad', 8, 1e-6, 2e-4
points = Points()
say = points.point


def farthest(got, want):
    return max(far(got[k], want[k], 1e-3) for k in want)


def updates(ours, path):
    """All optimizers, alone and with fused gradients."""
    name, model, _, samples, _, loss_fn = models.cnn()
    onnx.save(model, path('net.onnx'))
    np.savez(path('in.npz'), **samples)
    for k, optimizer in enumerate(('sgd', 'momentum', 'nesterov', 'adam', 'adamw', 'rmsprop', 'adagrad', 'lamb')):
        options = ['--loss-fn', loss_fn, '--optimizer', optimizer, '--lr', '0.01', '--epsilon', '1e-3', '--weight-decay', '0.1']
        more = ['--fused-updates'] + ['--fused-gradients'] * (k % 2)
        for form, option in ('plain.onnx', []), ('fused.onnx', more):
            r = ours('grad', path('net.onnx'), path(form), *options, *option)
            say(r.returncode == 0, f'{optimizer}: {form[:-5]} step is written', r.stderr)
        plain, fused = onnx.load(path('plain.onnx')), onnx.load(path('fused.onnx'))
        onnx.checker.check_model(fused, full_check=True)
        weights = sum(o.name.endswith('_next') for o in fused.graph.output)
        calls = sum(n.domain == DOMAIN and n.op_type == 'Update' for n in fused.graph.node)
        say(0 < calls <= weights, f'{optimizer}: {calls} weights are updated by one op each')
        want = theirs(plain, samples)
        say(farthest(theirs(fused, samples), want) <= SAME, f'{optimizer}: ONNX Runtime, with functions')
        for way in [], ['--no-reuse'], ['--poison'], ['--precise', '--poison'], ['--target', 'cpu', '--threads', '2']:
            r = ours('run', path('fused.onnx'), '--data', path('in.npz'), '--save', path('out.npz'), *way)
            ok = r.returncode == 0 and farthest(np.load(path('out.npz')), want) <= NEAR
            say(ok, f'{optimizer}: onnxmem {" ".join(way)}', r.stderr)


def main(command, folder):
    def ours(*args):
        return call(*args, command=command)

    def path(name):
        return os.path.join(folder, name)

    for make in models.cnn, models.mobile:
        name, model, _, samples, _, loss_fn = make()
        onnx.save(model, path('net.onnx'))
        for form, option in (('plain.onnx', []), ('fused.onnx', ['--fused-gradients'])):
            r = ours('grad', path('net.onnx'), path(form), '--loss-fn', loss_fn, '--optimizer', 'momentum',
                     '--lr', '0.05', '--train-mode', *option)
            say(r.returncode == 0, f'{name}: {form[:-5]} step is written', r.stderr)
        plain, fused = onnx.load(path('plain.onnx')), onnx.load(path('fused.onnx'))
        onnx.checker.check_model(fused, full_check=True)
        calls = {n.op_type for n in fused.graph.node if n.domain == DOMAIN}
        say(calls >= {'ConvGrad'} and len(fused.functions) > 0, f'{name}: {", ".join(sorted(calls))} in it')
        inlined = onnx.inliner.inline_local_functions(fused)
        onnx.checker.check_model(inlined, full_check=True)
        say(not any(n.domain for n in inlined.graph.node), f'{name}: the inliner leaves standard operators')
        want = theirs(plain, samples)
        say(farthest(theirs(fused, samples), want) <= SAME, f'{name}: ONNX Runtime, with functions')
        say(farthest(theirs(inlined, samples), want) <= SAME, f'{name}: ONNX Runtime, inlined')
        np.savez(path('in.npz'), **samples)
        for way in [], ['--no-reuse'], ['--poison'], ['--poison', '--rematerialize', '30']:
            r = ours('run', path('fused.onnx'), '--data', path('in.npz'), '--save', path('out.npz'), *way)
            ok = r.returncode == 0 and farthest(np.load(path('out.npz')), want) <= NEAR
            say(ok, f'{name}: onnxmem {" ".join(way)}', r.stderr)
        losses = []
        for form in 'plain.onnx', 'fused.onnx':
            r = ours('train', path(form), '--data', path('in.npz'), '--lr', '0.05', '--epochs', str(STEPS))
            losses.append([float(w[w.index('loss') + 1].rstrip(';,')) for w in map(str.split, r.stdout.splitlines())
                           if 'loss' in w])
        say(len(losses[0]) == STEPS and len(losses[1]) == STEPS and np.allclose(*losses, rtol=1e-3, atol=1e-5),
            f'{name}: both train alike', losses)
    updates(ours, path)
    points.end()


main(sys.argv[1], sys.argv[2])
