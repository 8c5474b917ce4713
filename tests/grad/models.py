# SPDX-License-Identifier: Apache-2.0
"""Models for the tests of gradients, with PyTorch's words for the same.

Each is (name, ONNX model, samples, what PyTorch makes of parameters and samples: the output). """
import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh


def build(name, nodes, inputs, outputs, weights, opset=17):
    g = h.make_graph(nodes, name, [h.make_tensor_value_info(n, t, s) for n, t, s in inputs],
                     [h.make_tensor_value_info(n, T.FLOAT, s) for n, s in outputs],
                     [nh.from_array(v, n) for n, v in weights.items()])
    return h.make_model(g, opset_imports=[h.make_opsetid('', opset)], ir_version=8)


def normal(r, *shape, scale=0.3):
    return (r.randn(*shape) * scale).astype('f4')


def mlp():
    r = np.random.RandomState(0)
    w = {'w1': normal(r, 5, 16), 'b1': normal(r, 16), 'w2': normal(r, 16, 3), 'b2': normal(r, 3)}
    nodes = [h.make_node('Gemm', ['x', 'w1', 'b1'], ['a']), h.make_node('Tanh', ['a'], ['c']),
             h.make_node('Gemm', ['c', 'w2', 'b2'], ['y'])]
    m = build('mlp', nodes, [('x', T.FLOAT, ['N', 5])], [('y', ['N', 3])], w)
    x = {'x': normal(r, 7, 5, scale=1), 'label': r.randint(0, 3, 7).astype('i8')}

    def torch(p, s, f):
        return f.tanh(s['x'] @ p['w1'] + p['b1']) @ p['w2'] + p['b2']
    return 'mlp', m, w, x, torch, 'cross-entropy'


def cnn():
    """Convolutions, batch normalization as in training, a residual, pooling."""
    r = np.random.RandomState(1)
    w = {'k1': normal(r, 8, 3, 3, 3), 's1': 1 + normal(r, 8, scale=.1), 'o1': normal(r, 8), 'k2': normal(r, 8, 8, 3, 3),
         's2': 1 + normal(r, 8, scale=.1), 'o2': normal(r, 8), 'w': normal(r, 4, 8), 'b': normal(r, 4)}
    stats = {'m1': np.zeros(8, 'f4'), 'v1': np.ones(8, 'f4'), 'm2': np.zeros(8, 'f4'), 'v2': np.ones(8, 'f4')}
    conv = dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    nodes = [h.make_node('Conv', ['x', 'k1'], ['a'], strides=[2, 2], **conv),
             h.make_node('BatchNormalization', ['a', 's1', 'o1', 'm1', 'v1'], ['c']), h.make_node('Relu', ['c'], ['d']),
             h.make_node('Conv', ['d', 'k2'], ['e'], **conv),
             h.make_node('BatchNormalization', ['e', 's2', 'o2', 'm2', 'v2'], ['f']),
             h.make_node('Add', ['f', 'd'], ['i']), h.make_node('Relu', ['i'], ['j']),
             h.make_node('MaxPool', ['j'], ['k'], kernel_shape=[2, 2], strides=[2, 2]),
             h.make_node('GlobalAveragePool', ['k'], ['l']), h.make_node('Flatten', ['l'], ['n']),
             h.make_node('Gemm', ['n', 'w', 'b'], ['y'], transB=1)]
    m = build('cnn', nodes, [('x', T.FLOAT, ['N', 3, 16, 16])], [('y', ['N', 4])], {**w, **stats})
    x = {'x': normal(r, 6, 3, 16, 16, scale=1), 'label': r.randint(0, 4, 6).astype('i8')}

    def torch(p, s, f):
        n = f.nn.functional
        d = n.relu(n.batch_norm(n.conv2d(s['x'], p['k1'], None, 2, 1), None, None, p['s1'], p['o1'], True))
        e = n.batch_norm(n.conv2d(d, p['k2'], None, 1, 1), None, None, p['s2'], p['o2'], True)
        return n.linear(n.max_pool2d(n.relu(e + d), 2).mean((2, 3)), p['w'], p['b'])
    return 'cnn', m, w, x, torch, 'cross-entropy'


def mobile():
    """Inverted residuals: expand, depthwise, project; clipped to 6."""
    r = np.random.RandomState(2)
    w = {'e': normal(r, 12, 4, 1, 1, scale=.6), 'd': normal(r, 12, 1, 3, 3, scale=.6), 'p': normal(r, 4, 12, 1, 1, scale=.6),
         'w': normal(r, 5, 4), 'b': normal(r, 5)}
    six = {'low': np.float32(0), 'high': np.float32(6)}
    nodes = [h.make_node('Conv', ['x', 'e'], ['a']), h.make_node('Clip', ['a', 'low', 'high'], ['c']),
             h.make_node('Conv', ['c', 'd'], ['f'], group=12, pads=[1, 1, 1, 1]),
             h.make_node('Clip', ['f', 'low', 'high'], ['g']), h.make_node('Conv', ['g', 'p'], ['i']),
             h.make_node('Add', ['i', 'x'], ['j']), h.make_node('ReduceMean', ['j'], ['k'], axes=[2, 3], keepdims=0),
             h.make_node('Gemm', ['k', 'w', 'b'], ['y'], transB=1)]
    m = build('mobile', nodes, [('x', T.FLOAT, ['N', 4, 9, 9])], [('y', ['N', 5])], {**w, **six})
    x = {'x': normal(r, 3, 4, 9, 9, scale=2), 'label': r.randint(0, 5, 3).astype('i8')}

    def torch(p, s, f):
        n = f.nn.functional
        g = n.relu6(n.conv2d(n.relu6(n.conv2d(s['x'], p['e'])), p['d'], None, 1, 1, 1, 12))
        return n.linear((n.conv2d(g, p['p']) + s['x']).mean((2, 3)), p['w'], p['b'])
    return 'mobile', m, w, x, torch, 'cross-entropy'


def transformer():
    """Two layers: attention of four heads, normalization of layers, Gelu; an embedding before."""
    r = np.random.RandomState(3)
    d, heads, length, words = 16, 4, 6, 11
    w, nodes, at = {'emb': normal(r, words, d, scale=1)}, [h.make_node('Gather', ['emb', 'x'], ['h0'])], 'h0'
    const = {'heads': np.array([0, 0, heads, d // heads], 'i8'), 'whole': np.array([0, 0, d], 'i8'),
             'scale': np.float32((d // heads) ** .5), 'half': np.float32(.5), 'one': np.float32(1),
             'root': np.float32(2 ** .5)}
    for k in range(2):
        def n(s):
            return f'{s}{k}'
        w.update({n('wq'): normal(r, d, d), n('wk'): normal(r, d, d), n('wv'): normal(r, d, d), n('wo'): normal(r, d, d),
                  n('g1'): 1 + normal(r, d, scale=.1), n('c1'): normal(r, d), n('g2'): 1 + normal(r, d, scale=.1),
                  n('c2'): normal(r, d), n('wi'): normal(r, d, 4 * d), n('wj'): normal(r, 4 * d, d)})
        for q, perm in ('q', [0, 2, 1, 3]), ('k', [0, 2, 3, 1]), ('v', [0, 2, 1, 3]):
            nodes += [h.make_node('MatMul', [at, n('w' + q)], [n('m' + q)]), h.make_node('Reshape', [n('m' + q), 'heads'], [n('r' + q)]),
                      h.make_node('Transpose', [n('r' + q)], [n(q)], perm=perm)]
        nodes += [h.make_node('MatMul', [n('q'), n('k')], [n('s')]), h.make_node('Div', [n('s'), 'scale'], [n('t')]),
                  h.make_node('Softmax', [n('t')], [n('p')], axis=-1), h.make_node('MatMul', [n('p'), n('v')], [n('o')]),
                  h.make_node('Transpose', [n('o')], [n('oo')], perm=[0, 2, 1, 3]), h.make_node('Reshape', [n('oo'), 'whole'], [n('u')]),
                  h.make_node('MatMul', [n('u'), n('wo')], [n('uu')]), h.make_node('Add', [n('uu'), at], [n('z')]),
                  h.make_node('LayerNormalization', [n('z'), n('g1'), n('c1')], [n('l')]),
                  h.make_node('MatMul', [n('l'), n('wi')], [n('i')]), h.make_node('Div', [n('i'), 'root'], [n('i1')]),
                  h.make_node('Erf', [n('i1')], [n('i2')]), h.make_node('Add', [n('i2'), 'one'], [n('i3')]),
                  h.make_node('Mul', [n('i'), n('i3')], [n('i4')]), h.make_node('Mul', [n('i4'), 'half'], [n('i5')]),
                  h.make_node('MatMul', [n('i5'), n('wj')], [n('j')]), h.make_node('Add', [n('j'), n('l')], [n('jj')]),
                  h.make_node('LayerNormalization', [n('jj'), n('g2'), n('c2')], [f'h{k + 1}'])]
        at = f'h{k + 1}'
    w['head'] = normal(r, words, d)
    nodes += [h.make_node('Transpose', ['head'], ['headt'], perm=[1, 0]), h.make_node('MatMul', [at, 'headt'], ['lg']),
              h.make_node('Transpose', ['lg'], ['y'], perm=[0, 2, 1])]
    m = build('transformer', nodes, [('x', T.INT64, ['N', length])], [('y', ['N', words, length])], {**w, **const})
    x = {'x': r.randint(0, words, (3, length)).astype('i8'), 'label': r.randint(0, words, (3, length)).astype('i8')}

    def torch(p, s, f):
        fn = f.nn.functional
        a = p['emb'][s['x']]
        for k in range(2):
            def q(c):
                return (a @ p[f'w{c}{k}']).reshape(-1, length, heads, d // heads).transpose(1, 2)
            t = f.softmax(q('q') @ q('k').transpose(2, 3) / (d // heads) ** .5, -1) @ q('v')
            z = t.transpose(1, 2).reshape(-1, length, d) @ p[f'wo{k}'] + a
            b = fn.layer_norm(z, (d,), p[f'g1{k}'], p[f'c1{k}'])
            a = fn.layer_norm(fn.gelu(b @ p[f'wi{k}']) @ p[f'wj{k}'] + b, (d,), p[f'g2{k}'], p[f'c2{k}'])
        return (a @ p['head'].T).transpose(1, 2)
    return 'transformer', m, w, x, torch, 'cross-entropy'


def lstm():
    """The operator; gates in ONNX's order: input, output, forget, cell."""
    r = np.random.RandomState(4)
    n, k = 6, 4
    w = {'w': normal(r, 1, 4 * n, k), 'r': normal(r, 1, 4 * n, n), 'b': normal(r, 1, 8 * n), 'v': normal(r, n, 2)}
    nodes = [h.make_node('LSTM', ['x', 'w', 'r', 'b'], ['a', 'c', 'e'], hidden_size=n),
             h.make_node('Squeeze', ['c', 'zero'], ['f']), h.make_node('MatMul', ['f', 'v'], ['y'])]
    m = build('lstm', nodes, [('x', T.FLOAT, [5, 'N', k])], [('y', ['N', 2])], {**w, 'zero': np.array([0], 'i8')})
    x = {'x': normal(r, 5, 3, k, scale=1), 'label': normal(r, 3, 2, scale=1)}

    return 'lstm', m, w, x, lstm_of_torch, 'mse'


def lstm_of_torch(p, s, f):
    n, (length, batch, _) = p['v'].shape[0], s['x'].shape
    hh, c = f.zeros(batch, n), f.zeros(batch, n)
    for t in range(length):
        a = s['x'][t] @ p['w'][0].T + hh @ p['r'][0].T + p['b'][0, :4 * n] + p['b'][0, 4 * n:]
        i, o, g, z = (f.sigmoid(a[:, :n]), f.sigmoid(a[:, n:2 * n]), f.sigmoid(a[:, 2 * n:3 * n]), f.tanh(a[:, 3 * n:]))
        c = g * c + i * z
        hh = o * f.tanh(c)
    return hh @ p['v']


def cell(n):
    """A round of it: from `xt`, `h` and `c` to `hn` and `cn`."""
    return [h.make_node('MatMul', ['xt', 'wt'], ['a1']), h.make_node('MatMul', ['h', 'rt'], ['a2']), h.make_node('Add', ['a1', 'a2'], ['a3']),
            h.make_node('Add', ['a3', 'bias'], ['a4']), h.make_node('Split', ['a4', 'gates'], ['ai', 'ao', 'af', 'az'], axis=1),
            *(h.make_node('Sigmoid', ['a' + k], ['g' + k]) for k in 'iof'), h.make_node('Tanh', ['az'], ['gz']),
            h.make_node('Mul', ['gf', 'c'], ['c1']), h.make_node('Mul', ['gi', 'gz'], ['c2']), h.make_node('Add', ['c1', 'c2'], ['cn']),
            h.make_node('Tanh', ['cn'], ['ct']), h.make_node('Mul', ['go', 'ct'], ['hn'])]


def rolled(name, nodes, length=5):
    """An LSTM of smaller operators; weights are those of the operator, cut and turned in front."""
    _, _, w, x, twin, loss = lstm()
    n = w['v'].shape[0]
    const = {'zero': np.array([0], 'i8'), 'gates': np.array([n] * 4, 'i8'), 'halves': np.array([4 * n] * 2, 'i8'),
             'width': np.array([n], 'i8'), 'nothing': np.float32(0), 'length': np.array(length, 'i8')}
    front = [h.make_node('Squeeze', [k, 'zero'], [k + '0']) for k in 'wrb']
    front += [h.make_node('Transpose', [k + '0'], [k + 't'], perm=[1, 0]) for k in 'wr']
    front += [h.make_node('Split', ['b0', 'halves'], ['b1', 'b2'], axis=0), h.make_node('Add', ['b1', 'b2'], ['bias']),
              h.make_node('Shape', ['x'], ['batch'], start=1, end=2), h.make_node('Concat', ['batch', 'width'], ['size'], axis=0),
              h.make_node('Expand', ['nothing', 'size'], ['h0'])]
    m = build(name, front + nodes + [h.make_node('MatMul', ['ht', 'v'], ['y'])], [('x', T.FLOAT, [length, 'N', w['w'].shape[2]])],
              [('y', ['N', 2])], {**w, **const})
    return name, m, w, x, twin, loss


def states(*names):
    return [h.make_tensor_value_info(k, T.FLOAT, ['N', 6]) for k in names]


def lstm_loop():
    """Rolled in a Loop, which picks its slices."""
    pick = h.make_node('Gather', ['x', 'i'], ['xt'], axis=0)
    keep = h.make_node('Identity', ['go_on'], ['goes_on'])
    body = h.make_graph([pick, keep, *cell(6)], 'round', [h.make_tensor_value_info('i', T.INT64, []), h.make_tensor_value_info('go_on', T.BOOL, []),
                                                         *states('h', 'c')], [h.make_tensor_value_info('goes_on', T.BOOL, []), *states('hn', 'cn')])
    return rolled('lstm_loop', [h.make_node('Loop', ['length', '', 'h0', 'h0'], ['ht', 'cl'], body=body)])


def lstm_scan():
    """Rolled in a Scan, which is handed them."""
    body = h.make_graph(cell(6), 'round', [*states('h', 'c'), h.make_tensor_value_info('xt', T.FLOAT, ['N', 4])], states('hn', 'cn'))
    return rolled('lstm_scan', [h.make_node('Scan', ['h0', 'h0', 'x'], ['ht', 'cl'], body=body, num_scan_inputs=1)])


ALL = [mlp, cnn, mobile, transformer, lstm, lstm_loop, lstm_scan]
