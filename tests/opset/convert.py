# SPDX-License-Identifier: Apache-2.0
"""Models of old opsets, raised.

    convert.py COMMAND PROGRAMS DATA FOLDER

Small models of every old form are made here; DATA has more, where it is there.  Each is raised, and
written: `bitwise` says whether it computes the same bits as before; the onnx package has to accept it, and
ONNX Runtime to compute the same numbers as from the original, where it runs that.  Then steps of training
are made of what is too old for gradients, and `finite_difference` compares gradients with differences.
"""
import glob
import os
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto as T, helper as h, numpy_helper as nh

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'onnx'))
from tap import Points, call  # noqa: E402

ort.set_default_logger_severity(4)
command, programs, data, folder = sys.argv[1:5]
EVERY = 1 if os.environ.get('RAISE_ALL') == '1' else 12
points = Points()
say = points.point


# ---- Small models: opset, IR version, nodes, inputs, weights. ----

def f(*dims):
    return ('f', dims)


def node(op, ins, outs='y', **attrs):
    return h.make_node(op, ins.split(), outs.split(), **attrs)


def scan8():
    body = h.make_graph([node('Add', 's v', 't'), node('Clip', 't', 'c', min=0.0)], 'step',
                        [h.make_tensor_value_info(n, T.FLOAT, [2]) for n in 'sv'],
                        [h.make_tensor_value_info(n, T.FLOAT, [2]) for n in 'tc'])
    return h.make_node('Scan', ['', 's0', 'x'], ['y', 'z'], body=body, num_scan_inputs=1, directions=[1])


MODELS = {
    'add_axis': (6, 3, [node('Add', 'x b', axis=1, broadcast=1)], {'x': f(2, 3, 4), 'b': f(3)}, {}),
    'prelu': (6, 3, [node('PRelu', 'x b')], {'x': f(2, 3, 4)}, {'b': f(3)}),
    'gemm': (6, 3, [node('Gemm', 'x w c', broadcast=1)], {'x': f(2, 3)}, {'w': f(3, 4), 'c': f(4)}),
    'batch': (6, 3, [node('BatchNormalization', 'x s b m v', is_test=1)], {'x': f(2, 3, 4)},
              {k: f(3) for k in 'sbmv'}),
    'cast': (5, 3, [node('Cast', 'x', to='DOUBLE')], {'x': f(2, 3)}, {}),
    'clip': (6, 3, [node('Clip', 'x', min=-0.5)], {'x': f(2, 3)}, {}),
    'concat': (1, 3, [node('Concat', 'x x', 'c'), node('Selu', 'c')], {'x': f(2, 3)}, {}),
    'dropout': (9, 3, [node('Dropout', 'x', 'd', ratio=0.25), node('Mul', 'd d')], {'x': f(2, 3)}, {}),
    'lstm': (6, 3, [node('LSTM', 'x w r', hidden_size=2)], {'x': f(2, 1, 3)}, {'w': f(1, 8, 3), 'r': f(1, 8, 2)}),
    'lp': (1, 3, [node('GlobalLpPool', 'x', p=2.0)], {'x': f(1, 2, 4, 4)}, {}),
    'softmax': (8, 3, [node('Softmax', 'x', axis=1)], {'x': f(2, 3, 4)}, {}),
    'softmax_last': (11, 6, [node('LogSoftmax', 'x', axis=-1)], {'x': f(2, 3, 4)}, {}),
    'pad': (8, 3, [node('Pad', 'x', pads=[0, 1, 0, 1], value=0.5)], {'x': f(2, 3)}, {}),
    'reduce': (12, 6, [node('ReduceSum', 'x', 's', axes=[1], keepdims=1), node('ReduceMean', 's', axes=[0])],
               {'x': f(2, 3)}, {}),
    'resize': (10, 5, [node('Resize', 'x s', mode='nearest')], {'x': f(1, 2, 4, 6)}, {'s': np.array([1, 1, 1.5, .5], 'f')}),
    'upsample': (8, 3, [node('Upsample', 'x', scales=[1., 1., 2., 2.], mode='linear')], {'x': f(1, 2, 3, 4)}, {}),
    'upsample_9': (9, 4, [node('Upsample', 'x s')], {'x': f(1, 2, 3, 4)}, {'s': np.array([1, 1, 2, 3], 'f')}),
    'scan': (8, 3, [scan8()], {'s0': f(3, 2), 'x': f(3, 4, 2)}, {}),
    'scatter': (9, 4, [node('Scatter', 'x i u')], {'x': f(3, 2), 'u': f(1, 2)}, {'i': np.array([[2, 0]], 'i8')}),
    'slice': (9, 3, [node('Slice', 'x', 's', starts=[1], ends=[9], axes=[1]), node('Squeeze', 's', 'q', axes=[0]),
                     node('Unsqueeze', 'q', axes=[0])], {'x': f(1, 4)}, {}),
    'split': (11, 6, [node('Split', 'x', 'a b', axis=1, split=[1, 3]), node('Concat', 'b a', axis=1)], {'x': f(2, 4)}, {}),
    'topk': (9, 3, [node('TopK', 'x', 'y i', k=2)], {'x': f(2, 4)}, {}),
    'roi': (10, 5, [node('RoiAlign', 'x b i', output_height=2, output_width=2)], {'x': f(1, 2, 4, 6)},
            {'b': np.array([[0, 0, 3, 3]], 'f'), 'i': np.array([0], 'i8')}),
}
# What the onnx package does not infer in old opsets.
SHAPES = {'cast': (2, 3), 'concat': (2, 6), 'dropout': (2, 3), 'lstm': (2, 1, 1, 2), 'lp': (1, 2, 1, 1)}


def make(name, opset, ir, nodes, inputs, weights):
    rng = np.random.default_rng(len(name))
    init = [nh.from_array(rng.random(w[1], 'f') if isinstance(w, tuple) else w, k) for k, w in weights.items()]
    ins = [h.make_tensor_value_info(k, T.FLOAT, d) for k, (_, d) in inputs.items()]
    if ir < 4:
        ins += [h.make_tensor_value_info(t.name, t.data_type, t.dims) for t in init]
    taken = {i for n in nodes for i in n.input}
    outs = [onnx.ValueInfoProto(name=o) for n in nodes for o in n.output if o not in taken]
    m = h.make_model(h.make_graph(nodes, name, ins, outs, init), opset_imports=[h.make_opsetid('', opset)], ir_version=ir)
    for o in outs:
        kind = {'cast': T.DOUBLE}.get(name, T.INT64 if o.name == 'i' else T.FLOAT)
        o.type.tensor_type.elem_type = kind
    del m.graph.output[:]
    m.graph.output.extend(outs)
    m = onnx.shape_inference.infer_shapes(m)
    for o in m.graph.output:
        if not o.type.tensor_type.HasField('shape'):
            o.type.CopyFrom(h.make_tensor_type_proto(o.type.tensor_type.elem_type, SHAPES[name]))
    os.makedirs(f'{folder}/{name}', exist_ok=True)
    path = f'{folder}/{name}/model.onnx'
    onnx.save(m, path)
    return path


# ---- What becomes of them. ----

def inputs_of(session, path):
    rng = np.random.default_rng(1)
    feeds = {}
    for k, i in enumerate(session.get_inputs()):
        pb = f'{os.path.dirname(path)}/test_data_set_0/input_{k}.pb'
        if os.path.exists(pb):
            feeds[i.name] = nh.to_array(onnx.load_tensor(pb))
        elif i.type == 'tensor(float)':
            feeds[i.name] = rng.random([d if isinstance(d, int) else 2 for d in i.shape], 'f') * 2 - 1
    return feeds


def run(path, feeds=None):
    s = ort.InferenceSession(path, providers=['CPUExecutionProvider'])
    feeds = inputs_of(s, path) if feeds is None else feeds
    return s.run(None, {i.name: feeds[i.name] for i in s.get_inputs()}), feeds


def is_near(a, b):
    if not isinstance(a, np.ndarray) or a.dtype.kind not in 'fiub':
        return True
    return a.shape == b.shape and a.dtype == b.dtype and np.allclose(a, b, 1e-5, 1e-6, equal_nan=True)


def judge(path, new):
    """What is wrong with a raised model; what ONNX Runtime says, where it runs the original."""
    try:
        onnx.checker.check_model(onnx.load(path), full_check=True)
        onnx.checker.check_model(onnx.load(new), full_check=True)
    except Exception as e:
        try:
            onnx.checker.check_model(onnx.load(path), full_check=True)
        except Exception:
            return '', None
        return f'{path}: {e}', None
    try:
        want, feeds = run(path)
    except Exception:
        return '', False
    try:
        got, _ = run(new, feeds)
    except Exception as e:
        return f'{path}: {e}', True
    return '' if all(map(is_near, got, want)) else f'{path}: numbers differ in ONNX Runtime', True


def raise_all(paths, what, opset):
    to = f'{folder}/raised'
    os.makedirs(to, exist_ok=True)
    out = subprocess.run([f'{programs}/bitwise', str(opset), to, *paths], capture_output=True, text=True).stdout
    lines = [line.split('\t') for line in out.splitlines()]
    said = {p: (v, why) for v, p, why in lines}
    bad = [f'{p}: {said.get(p, "crashed")}' for p in paths if said.get(p, ('',))[0] not in ('same', 'unfit', 'refused')]
    same = sum(v == 'same' for v, _ in said.values())
    say(not bad, f'{what}: the same bits in opset {opset}: {same} of {len(paths)}', *bad)
    ran = 0
    for k, p in enumerate(paths):
        if said.get(p, ('',))[0] == 'same':
            why, did = judge(p, f'{to}/{k}.onnx')
            bad += [why] if why else []
            ran += bool(did)
    say(not bad, f'{what}: checker and ONNX Runtime agree: {ran} run', *bad)
    return said


def is_old(path):
    m = onnx.load(path, load_external_data=False)
    return any(o.domain in ('', 'ai.onnx') and o.version < 16 for o in m.opset_import)


own = [make(k, *v) for k, v in MODELS.items()]
for opset in 17, 21:
    said = raise_all(own, 'small models', opset)
    say(all(v == 'same' for v, _ in said.values()), f'every small model can be raised to {opset}',
        [f'{p} {v}' for p, v in said.items() if v[0] != 'same'])
suites = sorted(glob.glob(f'{data}/onnx-backend/*/*/model.onnx'))
real = sorted(glob.glob(f'{data}/models/*.onnx') + glob.glob(f'{data}/light/*.onnx')) if EVERY == 1 else []
real = [p for p in real if 'ort_go_big_compute' not in p]  # takes minutes to run
for what, paths in ('backend tests', suites[::EVERY]), ('models', real):
    paths = [p for p in paths if is_old(p)]
    if paths:
        raise_all(paths, what, 17)


# ---- Steps of training. ----

def grad(*words):
    r = call('grad', *words, '-q', command=command)
    return r.stderr


def names(m):
    return [o for n in m.graph.node for o in n.output] + [i.name for i in m.graph.initializer]


step, info, again = (f'{folder}/{k}.onnx' for k in ('step', 'info', 'again'))
net = make('net', 8, 3, [node('Gemm', 'x w c', 'g', transB=1), node('Softmax', 'g', axis=1)], {'x': f(2, 3)},
           {'w': f(4, 3), 'c': f(4)})
why = grad(net, step, '--loss-fn', 'cross-entropy', '--optimizer', 'adam')
m = onnx.load(step) if not why else None
say(m and m.ir_version >= 8 and m.opset_import[0].version == 17, 'a step of a model of IR 3 is of a newer IR', why)
say(m and [i.name for i in m.graph.input][:3] == ['x', 'label', 'lr'], 'its weights are inputs behind the data', m and m.graph.input)
if m:
    onnx.checker.check_model(m, full_check=True)
    feeds = {'x': np.ones((2, 3), 'f'), 'label': np.zeros(2, 'i8')}
    s = ort.InferenceSession(step, providers=['CPUExecutionProvider'])
    say(np.isfinite(s.run(['loss'], feeds)[0]), 'ONNX Runtime runs it')
why = grad(net, info, '--loss-fn', 'cross-entropy', '--optimizer', 'sgd', '--emit', 'training-info')
m = onnx.load(info) if not why else None
say(m and len(m.training_info) == 1 and [i.name for i in m.graph.input] == ['x'],
    'training information stands beside a graph that was raised', why)
if m:
    onnx.checker.check_model(m, full_check=True)
    got, feeds = run(info)
    say(is_near(got[0], run(net, {**feeds, **{t.name: nh.to_array(t) for t in onnx.load(net).graph.initializer}})[0][0]),
        'the graph computes what it did')
why = grad(info, again, '--loss-fn', 'mse', '--optimizer', 'momentum')
m = onnx.load(again) if not why else None
say(m and not m.training_info and len(set(names(m))) == len(names(m)), 'a step of a model with training information has none', why)
if m:
    onnx.checker.check_model(m, full_check=True)
why = grad(info, again, '--loss-fn', 'mse', '--optimizer', 'momentum', '--emit', 'training-info')
m = onnx.load(again) if not why else None
say(m and len(m.training_info) == 1 and any(i.name == 'label' for i in m.training_info[0].algorithm.input),
    'new training information stands in place of the old', why)

nets = [f'{data}/models/{k}.onnx' for k in (['mnist_8', 'onnx2c_mnist_pytorch'] if EVERY > 1 else
        ['mnist_8', 'dtln_1', 'dtln_2', 'burn_mnist', 'onnx2c_mnist_pytorch', 'super_resolution_10', 'onnx2c_velardo_lesson14',
         'deeploy_autoencoder1d'])]
nets = [n for n in nets if os.path.exists(n)]
if nets:
    r = subprocess.run([f'{programs}/finite_difference', *nets], capture_output=True, text=True)
    say(r.returncode == 0, 'gradients of old models are the slopes of their losses', r.stdout)
points.end()
