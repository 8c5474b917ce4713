# SPDX-License-Identifier: Apache-2.0
"""Training information, as `onnxmem grad --emit training-info` writes it.

    info.py COMMAND FOLDER

A step is the graph and the algorithm, one behind the other.  That has to be a model that the checker
takes, and to train as the plain step does; the graph has to be the old one, byte by byte.
"""
import os
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper as h, numpy_helper as nh

import models
from tolerance import Points, call, far, theirs

ort.set_default_logger_severity(3)
STEPS, FAR = 3, 2e-6
points = Points()
say = points.point


def together(m):
    """Graph and algorithm as one graph; parts of the same kind follow each other."""
    whole = onnx.ModelProto()
    whole.CopyFrom(m)
    a = m.training_info[0].algorithm
    for part in 'node', 'initializer', 'input', 'output', 'value_info':
        getattr(whole.graph, part).extend(getattr(a, part))
    del whole.training_info[:]
    return whole


def train(m, samples):
    """Steps, with what update_binding says put into the initializers."""
    whole = together(m)
    onnx.checker.check_model(whole, full_check=True)
    losses = []
    for _ in range(STEPS):
        out = theirs(whole, samples)
        losses.append(float(out[m.training_info[0].algorithm.output[0].name].reshape(())))
        at = {t.name: t for t in whole.graph.initializer}
        for b in m.training_info[0].update_binding:
            at[b.key].CopyFrom(nh.from_array(out[b.value], b.key))
    return losses, {b.key: nh.to_array(at[b.key]) for b in m.training_info[0].update_binding}


def train_plain(m, samples):
    losses, state = [], {}
    for _ in range(STEPS):
        out = theirs(m, {**samples, **state})
        losses.append(float(out[m.graph.output[0].name].reshape(())))
        state = {k[:-5]: v for k, v in out.items() if k.endswith('_next')}
    return losses, state


def loop():
    """Rounds of a body, whose values the backward path needs."""
    r = np.random.RandomState(5)
    w = {'w': models.normal(r, 4, 4), 'v': models.normal(r, 4, 3)}
    body = h.make_graph([h.make_node('MatMul', ['s', 'w'], ['a']), h.make_node('Tanh', ['a'], ['s_out']),
                         h.make_node('Identity', ['c'], ['c_out'])], 'body',
                        [h.make_tensor_value_info('i', T.INT64, []), h.make_tensor_value_info('c', T.BOOL, []),
                         h.make_tensor_value_info('s', T.FLOAT, ['N', 4])],
                        [h.make_tensor_value_info('c_out', T.BOOL, []), h.make_tensor_value_info('s_out', T.FLOAT, ['N', 4])])
    nodes = [h.make_node('Loop', ['n', '', 'x'], ['z'], body=body), h.make_node('MatMul', ['z', 'v'], ['y'])]
    m = models.build('loop', nodes, [('x', T.FLOAT, ['N', 4])], [('y', ['N', 3])], {**w, 'n': np.array(3, 'i8')})
    return 'loop', m, w, {'x': models.normal(r, 5, 4), 'label': r.randint(0, 3, 5).astype('i8')}, None, 'cross-entropy'


def calls():
    """A function, of which the graph has the outcome alone; a weight that two names stand for."""
    r = np.random.RandomState(6)
    w = {'w': models.normal(r, 4, 4), 'b': models.normal(r, 4)}
    f = h.make_function('local', 'layer', ['x', 'w', 'b'], ['y'],
                        [h.make_node('MatMul', ['x', 'w'], ['p']), h.make_node('Add', ['p', 'b'], ['o']),
                         h.make_node('Constant', [], ['two'], value=nh.from_array(np.float32(2))), h.make_node('Mul', ['o', 'two'], ['q']),
                         h.make_node('Sigmoid', ['q'], ['s']), h.make_node('Mul', ['q', 's'], ['y'])], [h.make_opsetid('', 17)])
    nodes = [h.make_node('layer', ['x', 'w', 'b'], ['h'], domain='local'), h.make_node('Identity', ['w'], ['u']),
             h.make_node('layer', ['h', 'u', 'b'], ['y'], domain='local')]
    m = models.build('calls', nodes, [('x', T.FLOAT, ['N', 4])], [('y', ['N', 4])], w)
    m.functions.append(f)
    m.opset_import.append(h.make_opsetid('local', 1))
    return 'calls', m, w, {'x': models.normal(r, 5, 4), 'label': models.normal(r, 5, 4)}, None, 'mse'


def old():
    """Of an opset that is raised, and an IR without training information; with a plan, which goes then."""
    name, m, w, x, t, loss = models.mlp()
    m.opset_import[0].version = 13
    m.ir_version = 5
    return 'old', m, w, x, t, loss


def main(command, folder):
    def ours(*args):
        return call(*args, command=command)

    def path(name):
        return os.path.join(folder, name + '.onnx')

    for make in [*models.ALL, loop, calls, old]:
        name, model, weights, samples, _, loss_fn = make()
        onnx.save(model, path(name))
        opt = 'adam' if name != 'mlp' else 'momentum'
        how = ['--loss-fn', loss_fn, '--optimizer', opt, '--lr', '0.01', '--clip-norm', '0.5']
        r = ours('grad', path(name), path('info'), *how, '--emit', 'training-info')
        if not say(r.returncode == 0, f'{name}: training information is written', r.stderr):
            continue
        m = onnx.load(path('info'))
        onnx.checker.check_model(m, full_check=True)
        say(m.graph.SerializeToString(deterministic=True) == model.graph.SerializeToString(deterministic=True)
            and len(m.functions) == len(model.functions) and not m.metadata_props, f'{name}: the graph is the old one')
        inputs = {k: v for k, v in samples.items() if k != 'label'}
        say(np.array_equal(theirs(m, inputs)['y'], theirs(model, inputs)['y']) if name != 'old' else 'y' in theirs(m, inputs),
            f'{name}: ONNX Runtime runs it as before')
        r = ours('grad', path(name), path('step'), *how)
        losses, state = train(m, samples)
        want, plain = train_plain(onnx.load(path('step')), samples)
        say(sorted(state) == sorted(plain) and set(weights) <= set(state), f'{name}: all weights and states are updated',
            (sorted(state), sorted(plain)))
        d = max([(far(losses, want), 'losses')] + [(far(v, plain[k]), k) for k, v in state.items()])
        say(d[0] <= FAR and losses[-1] < losses[0], f'{name}: {STEPS} steps do what the plain step does', d)
        r = ours('plan', path('info'), path('planned'), '--dim', 'N=3')
        kept = r.returncode == 0 and onnx.load(path('planned'))
        say(kept and kept.training_info == m.training_info and far(train(kept, samples)[0], losses) <= FAR,
            f'{name}: a plan leaves it there, and it does the same', r.stderr)
        if name == 'mlp':
            r = ours('grad', path('planned'), path('again'), *how, '--emit', 'training-info')
            again = r.returncode == 0 and onnx.load(path('again'))
            say(again and again.training_info == m.training_info and again.graph == kept.graph
                and ours('verify', path('again')).returncode == 0, 'made anew, in a model with a plan, which stays', r.stderr)

    def refused(says, model, *how):
        onnx.save(model, path('bad'))
        r = ours('grad', path('bad'), path('none'), *how, '--emit', 'training-info')
        say(r.returncode != 0 and says in r.stderr and not os.path.exists(path('none')), f'refused: {says}', r.stderr)

    _, m, *_ = models.mlp()
    refused('requires an --optimizer', m, '--loss-fn', 'cross-entropy')
    refused('changes the graph', m, '--loss-fn', 'cross-entropy', '--optimizer', 'sgd', '--train-mode')
    refused('x cannot be updated', models.build('m', [h.make_node('Mul', ['x', 'x'], ['y'])], [('x', T.FLOAT, [1])], [('y', [1])], {}),
            '--loss', 'y', '--wrt', 'x', '--optimizer', 'sgd')
    drop = models.build('m', [h.make_node('Mul', ['x', 'w'], ['a']), h.make_node('Dropout', ['a', 'r', 't'], ['b']),
                              h.make_node('ReduceSum', ['b'], ['y'], keepdims=0)], [('x', T.FLOAT, [4])], [('y', [])],
                        {'w': np.ones(4, 'f4'), 'r': np.float32(.5), 't': np.bool_(True)})
    refused('it is random', drop, '--loss', 'y', '--optimizer', 'sgd')
    # The loss is an output of the graph already.
    m = models.build('m', [h.make_node('Mul', ['x', 'w'], ['a']), h.make_node('ReduceSumSquare', ['a'], ['loss'], keepdims=0)],
                     [('x', T.FLOAT, [4])], [('loss', [])], {'w': np.ones(4, 'f4')})
    onnx.save(m, path('named'))
    r = ours('grad', path('named'), path('info'), '--loss', 'loss', '--optimizer', 'sgd', '--emit', 'training-info')
    if say(r.returncode == 0, 'a loss of the graph', r.stderr):
        losses, state = train(onnx.load(path('info')), {'x': np.ones(4, 'f4')})
        say(losses[0] == 4 and losses[1] < 4, 'a loss of the graph is an output with another name', losses)
    points.end()


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2])
