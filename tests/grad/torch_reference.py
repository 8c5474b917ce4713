# SPDX-License-Identifier: Apache-2.0
"""Operators on random shapes, with PyTorch's words for the same: what rules.py compares.

PyTorch is named in functions alone, which are not called where it cannot be imported.
"""
import math
from collections import namedtuple

import numpy as np

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = F = None

Case = namedtuple('Case', 'name op args fn outs domain attrs')
Fixed = namedtuple('Fixed', 'x')         # not differentiated, though it has a fraction
found, dice = [], None


def case(op, args, fn, outs=1, domain='', label='', **attrs):
    """Arguments that have a fraction are differentiated, the loss is of all results but None."""
    found.append(Case(f'{op} {label}'.strip(), op, args, fn, outs, domain, attrs))


def x(*shape, lo=-2, hi=2):
    """Numbers of which no two are near each other, nor one near a whole number or a half: away
    from corners."""
    n = int(np.prod(shape))
    a = (dice.permutation(n) + 0.2 + 0.6 * dice.rand(n)) / max(n, 1) * (hi - lo) + lo
    a = a.astype('f4').reshape(shape)
    return a + np.float32(0.03) * (np.abs(a * 2 - np.round(a * 2)) < 0.02)


def n(lo=1, hi=4):
    return int(dice.randint(lo, hi + 1))


def shape(rank):
    return [n(2, 5) for _ in range(rank)]


def ints(*v):
    return np.array(v, 'i8')


def below(m, *shape):
    return dice.randint(0, m, shape).astype('i8')


def elementwise():
    one = lambda op, fn, lo=-2, hi=2, **a: case(op, [x(*shape(n(1, 4)), lo=lo, hi=hi)], fn, **a)
    for op, fn in (('Abs', 'abs'), ('Atan', 'atan'), ('Asinh', 'asinh'), ('Cos', 'cos'), ('Cosh', 'cosh'), ('Erf', 'erf'), ('Exp', 'exp'),
                   ('Neg', 'neg'), ('Relu', 'relu'), ('Sigmoid', 'sigmoid'), ('Sin', 'sin'), ('Sinh', 'sinh'), ('Tanh', 'tanh')):
        one(op, lambda a, fn=fn: getattr(torch, fn)(a))
    for op, fn in ('Acos', 'acos'), ('Asin', 'asin'), ('Atanh', 'atanh'), ('Tan', 'tan'):
        one(op, lambda a, fn=fn: getattr(torch, fn)(a), -.9, .9)
    for op, fn in ('Log', 'log'), ('Sqrt', 'sqrt'), ('Reciprocal', 'reciprocal'):
        one(op, lambda a, fn=fn: getattr(torch, fn)(a), .3, 3)
    one('Acosh', lambda a: torch.acosh(a), 1.2, 4)
    one('Celu', lambda a: F.celu(a, 1.5), alpha=1.5)
    one('Elu', lambda a: F.elu(a, .7), alpha=.7)
    one('Gelu', lambda a: F.gelu(a))
    one('Gelu', lambda a: F.gelu(a, approximate='tanh'), label='by tanh', approximate='tanh')
    one('HardSigmoid', lambda a: (a * .2 + .5).clamp(0, 1), -4, 4)
    one('HardSwish', lambda a: F.hardswish(a), -5, 5)
    one('Identity', lambda a: a)
    one('LeakyRelu', lambda a: F.leaky_relu(a, .1), alpha=.1)
    one('Mish', lambda a: F.mish(a))
    one('Selu', lambda a: F.selu(a))
    one('Shrink', lambda a: F.softshrink(a, .6), lambd=.6, bias=.6)
    one('Shrink', lambda a: F.hardshrink(a, .6), label='hard', lambd=.6)
    one('Softplus', lambda a: F.softplus(a))
    one('Softsign', lambda a: F.softsign(a))
    one('ThresholdedRelu', lambda a: F.threshold(a, .7, 0), alpha=.7)
    one('Swish', lambda a: a * torch.sigmoid(1.3 * a), alpha=1.3)
    one('Cast', lambda a: a, to=11)
    case('CastLike', [x(*shape(2)), Fixed(np.zeros(1, 'f8'))], lambda a, _: a)
    one('Dropout', lambda a: a)
    for op, fn in ('Gelu', lambda a: F.gelu(a)), ('QuickGelu', lambda a: a * torch.sigmoid(1.702 * a)):
        one(op, fn, domain='com.microsoft', label='of com.microsoft')
    for op, fn in ('BiasGelu', lambda a, b: F.gelu(a + b)), ('FastGelu', lambda a, b: F.gelu(a + b, approximate='tanh')):
        s = shape(3)
        case(op, [x(*s), x(s[-1])], fn, domain='com.microsoft')


def several():
    for op, fn, lo in (('Add', 'add', -2), ('Sub', 'sub', -2), ('Mul', 'mul', -2), ('Div', 'div', .4), ('Pow', 'pow', .4),
                       ('Max', 'maximum', -2), ('Min', 'minimum', -2)):
        a, b, c = shape(3)
        for label, s, t in ('', (a, b, c), (a, b, c)), ('broadcast', (a, 1, c), (b, 1)), ('to more axes', (c,), (a, b, c)):
            case(op, [x(*s, lo=lo), x(*t, lo=lo)], lambda p, q, fn=fn: getattr(torch, fn)(p, q), label=label)
    a, b, c = shape(3)
    three = lambda: [x(a, b, c), x(b, 1), x(1, c)]
    case('Sum', three(), lambda p, q, r: p + q + r)
    case('Mean', three(), lambda p, q, r: (p + q + r) / 3)
    case('Max', three(), lambda p, q, r: torch.maximum(torch.maximum(p, q), r), label='of three')
    case('Mod', [x(a, b), x(b, lo=.5)], lambda p, q: torch.fmod(p, q), fmod=1)
    case('Where', [dice.rand(b, 1) < .5, x(a, b, c), x(c)], lambda k, p, q: torch.where(k, p, q))
    case('PRelu', [x(a, b, c), x(b, 1)], lambda p, q: torch.where(p > 0, p, p * q))
    case('PRelu', [x(a, b, c), x(1)], lambda p, q: F.prelu(p, q), label='of one slope')
    case('Clip', [x(a, b), Fixed(np.float32(-.8)), Fixed(np.float32(.9))], lambda p, lo, hi: p.clamp(-.8, .9))


def products():
    a, b, c, k, m = shape(5)
    mul = lambda p, q: torch.matmul(p, q)
    for label, s, t in (('', (a, k), (k, b)), ('batches', (c, 1, a, k), (m, k, b)), ('vector left', (k,), (m, k, b)),
                        ('vector right', (m, a, k), (k,)), ('vectors', (k,), (k,)), ('one matrix', (c, a, k), (k, b))):
        case('MatMul', [x(*s), x(*t)], mul, label=label)
    for ta in 0, 1:
        for tb, last in (0, (b,)), (1, (a, 1)):
            p, q = (x(k, a) if ta else x(a, k)), (x(b, k) if tb else x(k, b))
            fn = lambda p, q, r, ta=ta, tb=tb: .7 * ((p.T if ta else p) @ (q.T if tb else q)) + 1.3 * r
            case('Gemm', [p, q, x(*last)], fn, label=f'{ta}{tb}', transA=ta, transB=tb, alpha=.7, beta=1.3)
    case('Gemm', [x(a, k), x(k, b)], mul, label='without a bias')
    case('FusedMatMul', [x(c, k, a), x(c, b, k)], lambda p, q: .5 * (p.transpose(1, 2) @ q.transpose(1, 2)), domain='com.microsoft',
         transA=1, transB=1, alpha=.5)
    d = dict(zip('ijkbc', (a, b, k, c, m)))
    for e in ('ij,jk->ik', 'bij,bjk->bik', 'bij,bkj->ik', 'ij,ij,i->j', 'ii->i', 'ij->', 'i,j->ij', 'bi,bci,cj->bj', '...ij,...jk->...ik',
              'ij,jk,kb->ib'):
        named = [s.replace('...', 'bc') for s in e.split('->')[0].split(',')]
        case('Einsum', [x(*(d[i] for i in s)) for s in named], lambda *p, e=e: torch.einsum(e, *p), label=e, equation=e)
    case('Det', [x(c, 3, 3)], lambda p: torch.linalg.det(p))


def padded(a, pads, value=0):
    h = len(pads) // 2
    flat = [v for i in reversed(range(h)) for v in (pads[i], pads[i + h])]
    return F.pad(a, flat, value=value)


def places(dims, lo, hi):
    return [n(lo, hi) for _ in range(dims)]


def convolutions():
    for dims in 1, 2, 3:
        for group, label in (1, ''), (2, 'grouped'), (4, 'depthwise'):
            k, st, di, pads = places(dims, 1, 3), places(dims, 1, 2), places(dims, 1, 2), places(2 * dims, 0, 2)
            cin, cout, label = 4, group * n(1, 2), f'{label} {dims}-d'
            w, s = x(cout, cin // group, *k), [n(6, 8) for _ in k] if dims < 3 else [5] * 3

            def conv(a, w, b=None, dims=dims, st=st, di=di, pads=pads, group=group):
                return getattr(F, f'conv{dims}d')(padded(a, pads), w, b, st, 0, di, group)
            case('Conv', [x(2, cin, *s), w] + [x(cout)] * (group < 4), conv, label=label, group=group, strides=st, dilations=di, pads=pads, kernel_shape=k)
            out = [min(n(0, 1), max(p, q) - 1) for p, q in zip(st, di)]
            pads = [min(p, 1) for p in pads]
            k = [max(p, 2) for p in k]

            def back(a, w, b, dims=dims, st=st, di=di, pads=pads, group=group, out=out):
                y = getattr(F, f'conv_transpose{dims}d')(a, w, b, st, 0, out, group, di)
                for i in range(dims):
                    y = y.narrow(i + 2, pads[i], y.shape[i + 2] - pads[i] - pads[i + dims])
                return y
            case('ConvTranspose', [x(2, cin, *places(dims, 3, 4)), x(cin, cout // group, *k), x(cout)], back, label=label, group=group, strides=st,
                 dilations=di, pads=pads, output_padding=out, kernel_shape=k)


def pools():
    for dims in 1, 2, 3:
        a = lambda: x(2, 2, *places(dims, 5, 7))
        k, st, di, pads = places(dims, 2, 3), places(dims, 1, 2), places(dims, 1, 2), places(2 * dims, 0, 1)
        most = lambda a, dims=dims, k=k, st=st, di=di, pads=pads: getattr(F, f'max_pool{dims}d')(padded(a, pads, -math.inf), k, st, 0, di)

        def mean(a, dims=dims, k=k, st=st, pads=pads, alone=True):
            f = getattr(F, f'avg_pool{dims}d')
            y = f(padded(a, pads), k, st)
            return y / f(padded(torch.ones_like(a), pads), k, st) if alone else y
        how = dict(kernel_shape=k, strides=st, pads=pads)
        case('MaxPool', [a()], most, label=f'{dims}-d', dilations=di, **how)
        case('AveragePool', [a()], mean, label=f'{dims}-d', **how)
        case('AveragePool', [a()], lambda p, m=mean: m(p, alone=False), label=f'{dims}-d with pads', count_include_pad=1, **how)
        how = dict(kernel_shape=[3] * dims, strides=[2] * dims, pads=[1] * 2 * dims, ceil_mode=1)
        case('MaxPool', [x(1, 2, *[6] * dims)], lambda a, dims=dims: getattr(F, f'max_pool{dims}d')(a, 3, 2, 1, ceil_mode=True), label=f'{dims}-d up', **how)
        for w in 0, 1:
            case('AveragePool', [x(1, 2, *[6] * dims)], lambda a, dims=dims, w=w: getattr(F, f'avg_pool{dims}d')(a, 3, 2, 1, True, bool(w)),
                 label=f'{dims}-d up {w}', count_include_pad=w, **how)
        axes = tuple(range(2, 2 + dims))
        case('GlobalAveragePool', [a()], lambda a, axes=axes: a.mean(axes, keepdim=True), label=f'{dims}-d')
        case('GlobalMaxPool', [a()], lambda a, axes=axes: a.amax(axes, keepdim=True), label=f'{dims}-d')
        for p in 1, 2, 3:
            case('GlobalLpPool', [a()], lambda a, axes=axes, p=p: a.abs().pow(p).sum(axes, keepdim=True).pow(1 / p), label=f'{dims}-d {p}', p=p)
            case('LpPool', [a()], lambda a, p=p, k=k, st=st, dims=dims:
                 (getattr(F, f'avg_pool{dims}d')(a.abs() ** p, k, st) * math.prod(k)) ** (1 / p), label=f'{dims}-d {p}', p=p, kernel_shape=k, strides=st)
    at = np.stack([p * 16 + dice.permutation(16)[:4] for p in range(6)]).reshape(2, 3, 2, 2).astype('i8')
    case('MaxUnpool', [x(2, 3, 2, 2), at], lambda a, i: F.max_unpool2d(a, i % 16, 2), kernel_shape=[2, 2], strides=[2, 2])


def norms():
    b, c = n(2, 3), 4
    for dims in 0, 1, 2, 3:
        s, axes = places(dims, 2, 4), (0, *range(2, 2 + dims))

        def old(a, w, o, m, v, wide=[1, c] + [1] * dims):
            w, o, m, v = (t.view(wide) for t in (w, o, m, v))
            return (a - m) / torch.sqrt(v + 1e-3) * w + o
        case('BatchNormalization', [x(b, c, *s), x(c), x(c), x(c), x(c, lo=.5)], old, label=f'{dims}-d', epsilon=1e-3)

        def train(a, w, o, m, v, axes=axes):
            y = F.batch_norm(a, None, None, w, o, True, eps=1e-3)
            return y, .8 * m + .2 * a.mean(axes), .8 * v + .2 * a.var(axes, unbiased=False)
        case('BatchNormalization', [x(4, c, *s), x(c), x(c), x(c), x(c, lo=.5)], train, outs=3, label=f'{dims}-d in training', epsilon=1e-3, momentum=.8, training_mode=1)
        if dims:
            case('InstanceNormalization', [x(b, c, *s), x(c), x(c)], lambda a, w, o: F.instance_norm(a, None, None, w, o, eps=1e-3), label=f'{dims}-d', epsilon=1e-3)
            case('GroupNormalization', [x(b, c, *s), x(c), x(c)], lambda a, w, o: F.group_norm(a, 2, w, o, 1e-3), label=f'{dims}-d', num_groups=2, epsilon=1e-3)
            case('LRN', [x(b, 5, *s)], lambda a: F.local_response_norm(a, 3, .5, .75, 1.5), label=f'{dims}-d', size=3, alpha=.5, beta=.75, bias=1.5)
    s = shape(3)
    for axis in -1, 1, 0:
        t, axes = s[axis:], tuple(range(axis % 3, 3))

        def layer(a, w, o=None, t=t, axes=axes):
            m, v = a.mean(axes, keepdim=True), a.var(axes, unbiased=False, keepdim=True)
            return F.layer_norm(a, t, w, o, 1e-3), m, 1 / torch.sqrt(v + 1e-3)
        case('LayerNormalization', [x(*s), x(*t), x(*t)], layer, outs=3, label=f'along {axis}', axis=axis, epsilon=1e-3)
        case('LayerNormalization', [x(*s), x(*t)], lambda *p, f=layer: f(*p)[0], label=f'without a bias along {axis}', axis=axis, epsilon=1e-3)
        case('RMSNormalization', [x(*s), x(*t)], lambda a, w, axes=axes: a / torch.sqrt(a.square().mean(axes, keepdim=True) + 1e-3) * w,
             label=f'along {axis}', axis=axis, epsilon=1e-3)
        for p in 1, 2:
            case('LpNormalization', [x(*s)], lambda a, p=p, axis=axis: F.normalize(a, p, axis), label=f'{p} along {axis}', axis=axis, p=p)
    case('MeanVarianceNormalization', [x(b, c, 3, 3)], lambda a: F.batch_norm(a, None, None, training=True, eps=0))
    w = s[-1]
    case('SkipLayerNormalization', [x(*s), x(*s), x(w), x(w), x(w)], lambda a, k, g, o, q: F.layer_norm(a + k + q, [w], g, o, 1e-3), domain='com.microsoft',
         epsilon=1e-3)
    scaled = lambda a, w: a / torch.sqrt(a.square().mean(-1, keepdim=True) + 1e-3) * w
    case('SimplifiedLayerNormalization', [x(*s), x(w)], scaled, epsilon=1e-3)
    case('SkipSimplifiedLayerNormalization', [x(*s), x(*s), x(w)], lambda a, k, g: scaled(a + k, g), domain='com.microsoft', epsilon=1e-3)


def softmaxes():
    for axis in -1, 1, 0:
        case('Softmax', [x(*shape(3))], lambda a, axis=axis: torch.softmax(a, axis), label=f'along {axis}', axis=axis)
        case('LogSoftmax', [x(*shape(3))], lambda a, axis=axis: torch.log_softmax(a, axis), label=f'along {axis}', axis=axis)
    for dims in 0, 1, 2:
        for reduction in 'none', 'sum', 'mean':
            for weighted in False, True:
                for ignore in None, 1:
                    b, c, s = n(3, 5), n(3, 4), places(dims, 2, 3)
                    t, w = below(c, b, *s), [Fixed(x(c, lo=.3))] if weighted else []
                    t.flat[0] = 0
                    how = dict(reduction=reduction, **({} if ignore is None else {'ignore_index': ignore}))
                    label = f'{dims}-d {reduction}{" weighted" * weighted}{" but 1" * (ignore is not None)}'
                    case('NegativeLogLikelihoodLoss', [x(b, c, *s), t, *w], lambda a, t, w=None, how=how: F.nll_loss(a, t, w, **how), label=label, **how)
                    case('SoftmaxCrossEntropyLoss', [x(b, c, *s), t, *w], lambda a, t, w=None, how=how:
                         (F.cross_entropy(a, t, w, **how), torch.log_softmax(a, 1)), outs=2, label=label, **how)


def flat_places(i, s):
    """Of tuples of indices that begin a shape, the places of all elements they name."""
    k, at = i.shape[-1], 0
    for d in range(k):
        at = at * s[d] + i[..., d] % s[d]
    m = math.prod(s[k:])
    return (at[..., None] * m + torch.arange(m)).reshape(-1)


def picks():
    a, b, c = shape(3)
    along = {0: a, 1: b, 2: c}
    for axis in 0, 1, 2:
        case('Gather', [x(a, b, c), below(along[axis], 2, 3) - along[axis] * below(2, 2, 3)],
             lambda p, i, axis=axis: p.movedim(axis, 0)[i].movedim((0, 1), (axis, axis + 1)), label=f'along {axis}', axis=axis)
        s = [n(1, d) for d in (a, b, c)]
        s[axis] = n(2, 4)
        case('GatherElements', [x(a, b, c), below(along[axis], *s)], lambda p, i, axis=axis: torch.gather(p, axis, i), label=f'along {axis}', axis=axis)
        for reduction, word in ('add', 'sum'), ('mul', 'prod'), ('max', 'amax'), ('min', 'amin'):
            case('ScatterElements', [x(a, b, c), below(along[axis], *s), x(*s)], lambda p, i, u, axis=axis, word=word:
                 p.scatter_reduce(axis, i, u, word), label=f'{reduction} along {axis}', axis=axis, reduction=reduction)
        s[axis] = n(1, along[axis])
        i = np.moveaxis(np.stack([dice.permutation(along[axis])[:s[axis]] for _ in range(math.prod(s) // s[axis])])
                        .reshape([s[d] for d in range(3) if d != axis] + [s[axis]]), -1, axis).astype('i8')
        case('ScatterElements', [x(a, b, c), i, x(*s)], lambda p, i, u, axis=axis: p.scatter(axis, i, u), label=f'along {axis}', axis=axis)
    case('GatherND', [x(a, b, c), np.stack([below(a, 2, 3), below(b, 2, 3)], -1)], lambda p, i: p[i[..., 0], i[..., 1]])
    case('GatherND', [x(a, b, c), below(b, a, 3, 1)], lambda p, i: torch.stack([p[k][i[k, :, 0]] for k in range(len(p))]), label='of a batch', batch_dims=1)
    one = np.stack(np.unravel_index(dice.permutation(a * b)[:4], (a, b)), -1).astype('i8')
    for reduction, word in ('none', None), ('add', 'sum'), ('mul', 'prod'), ('max', 'amax'), ('min', 'amin'):
        def scatter(p, i, u, word=word):
            at, q = flat_places(i, p.shape), p.reshape(-1)
            q = q.scatter_reduce(0, at, u.reshape(-1), word) if word else q.scatter(0, at, u.reshape(-1))
            return q.view(p.shape)
        i = np.stack([below(a, 4), below(b, 4)], -1) if word else one
        case('ScatterND', [x(a, b, c), i, x(4, c)], scatter, label=reduction, reduction=reduction)
    for largest in 0, 1:
        for axis in 0, -1:
            k = n(1, along[axis % 3])
            case('TopK', [x(a, b, c), ints(k)], lambda p, _, k=k, axis=axis, largest=largest: (torch.topk(p, k, axis, bool(largest))[0], None), outs=2,
                 label=f'{largest} along {axis}', largest=largest, axis=axis)


def moves():
    a, b, c = shape(3)
    t = lambda: x(a, b, c)
    case('Concat', [x(a, 2, c), x(a, 1, c), x(a, 3, c)], lambda *p: torch.cat(p, 1), axis=1)
    case('Split', [x(a, 6, c), ints(1, 3, 2)], lambda p, _: torch.split(p, [1, 3, 2], 1), outs=3, axis=1)
    case('Split', [x(7, c)], lambda p: torch.split(p, [3, 3, 1]), outs=3, label='unequal', num_outputs=3)
    case('Reshape', [t(), ints(0, -1)], lambda p, _: p.reshape(a, -1))
    case('Flatten', [t()], lambda p: p.reshape(a * b, c), axis=2)
    case('Squeeze', [x(a, 1, b, 1), ints(-1)], lambda p, _: p.squeeze(-1))
    case('Unsqueeze', [t(), ints(0, 3)], lambda p, _: p[None, :, :, None])
    case('Transpose', [t()], lambda p: p.permute(2, 0, 1), perm=[2, 0, 1])
    case('Expand', [x(a, 1, c), ints(2, 1, b, 1)], lambda p, _: p.expand(2, a, b, c))
    case('Tile', [t(), ints(2, 1, 3)], lambda p, r: p.repeat(2, 1, 3))
    case('Slice', [x(9, 8, c), ints(1, -1), ints(8, -7), ints(0, 1), ints(3, -2)], lambda p, *_: p[1:8:3].flip(1)[:, 0:6:2])
    for k in -1, 0, 1:
        for upper in 0, 1:
            case('Trilu', [t(), np.array(k, 'i8')], lambda p, _, k=k, upper=upper: (torch.triu if upper else torch.tril)(p, k), label=f'{k} {upper}', upper=upper)
    p = [0, 0, 1, 2, 0, 0, 2, 1]
    for mode, word in ('reflect', 'reflect'), ('edge', 'replicate'), ('wrap', 'circular'):
        case('Pad', [x(2, 3, 4, 5), ints(*p)], lambda q, _, word=word: F.pad(q, (2, 1, 1, 2), word), label=mode, mode=mode)
    case('Pad', [t(), ints(1, 0, 2, 0, -1, 1), Fixed(np.float32(.5))], lambda q, *_: padded(q, [1, 0, 2, 0, -1, 1], .5))
    case('DepthToSpace', [x(2, 12, 3, 2)], lambda q: F.pixel_shuffle(q, 2), blocksize=2, mode='CRD')
    case('DepthToSpace', [x(2, 12, 3, 2)], lambda q: q.view(2, 2, 2, 3, 3, 2).permute(0, 3, 4, 1, 5, 2).reshape(2, 3, 6, 4), label='by columns', blocksize=2)
    case('SpaceToDepth', [x(2, 3, 4, 6)], lambda q: q.view(2, 3, 2, 2, 3, 2).permute(0, 3, 5, 1, 2, 4).reshape(2, 12, 2, 3), blocksize=2)
    case('ReverseSequence', [x(5, 3, c), ints(5, 1, 3)], lambda q, m: torch.stack([torch.cat([q[:k, i].flip(0), q[k:, i]]) for i, k in enumerate(m.tolist())], 1))
    case('Col2Im', [x(2, 3 * 4, 12), ints(5, 4), ints(2, 2)], lambda q, *_: F.fold(q, (5, 4), (2, 2)))
    case('Col2Im', [x(2, 3 * 4, 9), ints(6, 6), ints(2, 2)], lambda q, *_: F.fold(q, (6, 6), 2, 2, 1, 2), label='spread', dilations=[2, 2], pads=[1] * 4, strides=[2, 2])


def reductions():
    for axes in (1,), (0, -1), ():
        for keep in 0, 1:
            dims, at = axes or (0, 1, 2), [ints(*axes)] if axes else []
            for op, lo, fn in (('Sum', -2, lambda p, d, k: p.sum(d, k)), ('Mean', -2, lambda p, d, k: p.mean(d, k)), ('Max', -2, lambda p, d, k: p.amax(d, k)),
                               ('Min', -2, lambda p, d, k: p.amin(d, k)), ('L1', -2, lambda p, d, k: p.abs().sum(d, k)),
                               ('L2', -2, lambda p, d, k: p.square().sum(d, k).sqrt()), ('SumSquare', -2, lambda p, d, k: p.square().sum(d, k)),
                               ('LogSum', .2, lambda p, d, k: p.sum(d, k).log()), ('LogSumExp', -2, lambda p, d, k: torch.logsumexp(p, d, k))):
                case('Reduce' + op, [x(*shape(3), lo=lo), *at], lambda p, *_, fn=fn, d=dims, k=keep: fn(p, d, bool(k)), label=f'{axes} {keep}', keepdims=keep)
    for axis in 0, 1, -1:
        case('ReduceProd', [x(*shape(3)), ints(axis)], lambda p, _, axis=axis: p.prod(axis), label=f'along {axis}', keepdims=0)

        def total(p, _, exclusive, reverse, axis=axis):
            p = p.flip(axis) if reverse else p
            y = p.cumsum(axis) - (p if exclusive else 0)
            return y.flip(axis) if reverse else y
        for e in 0, 1:
            for v in 0, 1:
                case('CumSum', [x(*shape(3)), np.array(axis, 'i8')], lambda p, i, f=total, e=e, v=v: f(p, i, e, v), label=f'along {axis} {e}{v}', exclusive=e, reverse=v)


def samplings():
    words = {1: 'linear', 2: 'bilinear', 3: 'trilinear'}
    for dims in 1, 2, 3:
        s, t = places(dims, 3, 5), places(dims, 2, 8)
        to = ints(2, 2, *t)
        add = lambda label, word, more, **attrs: case('Resize', [x(2, 2, *s), None, None, to], lambda a, *_, t=t, word=word, more=more:
                                                      F.interpolate(a, t, mode=word, **more), label=f'{label} {dims}-d', **attrs)
        add('nearest', 'nearest', {}, mode='nearest', nearest_mode='floor', coordinate_transformation_mode='asymmetric')
        add('nearest exact', 'nearest-exact', {}, mode='nearest', nearest_mode='round_prefer_ceil')
        kinds = [('linear', words[dims])] + [('cubic', 'bicubic')] * (dims == 2)
        for mode, word in kinds:
            add(mode, word, dict(align_corners=False), mode=mode, cubic_coeff_a=-.75)
            add(mode + ' by corners', word, dict(align_corners=True), mode=mode, cubic_coeff_a=-.75, coordinate_transformation_mode='align_corners')
            if dims == 2:
                add(mode + ' without aliases', word, dict(antialias=True), mode=mode, antialias=1, exclude_outside=1, cubic_coeff_a=-.5)
        case('Resize', [x(2, 2, *s), None, Fixed(np.array([1, 1] + [2] * dims, 'f4'))], lambda a, *_, word=words[dims]:
             F.interpolate(a, scale_factor=2, mode=word), label=f'twice {dims}-d', mode='linear')
    for dims in 2, 3:
        for mode, word in (('linear', 'bilinear'), ('nearest', 'nearest'), ('cubic', 'bicubic'))[:5 - dims]:
            for pad in 'zeros', 'border', 'reflection':
                for corners in 0, 1:
                    s = places(dims, 3, 5)
                    wide = .6 if (mode, pad) == ('cubic', 'border') else 1.3    # beyond, ONNX moves the place and PyTorch what is read
                    g = x(2, *places(dims, 2, 3), dims, lo=-wide, hi=wide)
                    g = Fixed(g) if mode == 'nearest' else g
                    case('GridSample', [x(2, 2, *s), g], lambda a, g, word=word, pad=pad, corners=corners: F.grid_sample(a, g, word, pad, bool(corners)),
                         label=f'{dims}-d {mode} {pad} {corners}', mode=mode, padding_mode=pad, align_corners=corners)
        for corners in 0, 1:
            size = [2, 3, *places(dims, 2, 4)]
            case('AffineGrid', [x(2, dims, dims + 1), ints(*size)], lambda a, _, size=size, corners=corners: F.affine_grid(a, size, bool(corners)),
                 label=f'{dims}-d {corners}', align_corners=corners)
    for inverse in 0, 1:
        case('DFT', [x(2, 5, 3, 2), None, np.array(1, 'i8')], lambda a, _, inverse=inverse:
             torch.view_as_real((torch.fft.ifft if inverse else torch.fft.fft)(torch.view_as_complex(a), dim=1)), label=f'{inverse}', inverse=inverse)
    case('DFT', [x(2, 6, 1), None, np.array(1, 'i8')], lambda a, _: torch.view_as_real(torch.fft.rfft(a[..., 0], dim=1)), label='of real numbers', onesided=1)


GATES = {'LSTM': [0, 2, 3, 1], 'GRU': [1, 0, 2], 'RNN': [0]}         # PyTorch's, in ONNX's order


def recurrent(op, a, w, r, b, h, c=None, act='tanh', both=False, back=False):
    def gates(v):
        parts = v.chunk(len(GATES[op]), 0)
        return torch.cat([parts[k] for k in GATES[op]], 0)
    params = []
    for d in range(len(w)):
        bw, br = b[d].chunk(2)
        params += [gates(w[d]), gates(r[d]), gates(bw), gates(br)]
    run = {'LSTM': torch._VF.lstm, 'GRU': torch._VF.gru, 'RNN': getattr(torch._VF, 'rnn_' + act)}[op]
    a = a.flip(0) if back else a
    y, *state = run(a, (h, c) if op == 'LSTM' else h, params, True, 1, 0.0, False, both, False)
    y = y.view(a.shape[0], a.shape[1], len(w), -1).permute(0, 2, 1, 3)
    return (y.flip(0) if back else y, *state)


def by_lengths(op, a, w, r, b, m, h, c=None, **how):
    """Each sequence for itself, zeros behind its end."""
    each = []
    for i, k in enumerate(m.tolist()):
        y, *state = recurrent(op, a[:k, i:i + 1], w, r, b, h[:, i:i + 1].contiguous(), None if c is None else c[:, i:i + 1].contiguous(), **how)
        each.append([F.pad(y, [0, 0] * 3 + [0, len(a) - k])] + state)
    return tuple(torch.cat(v, k) for v, k in zip(zip(*each), (2, 1, 1)))


def slow_gru(a, w, r, b, h):
    """With what is kept taken before the product, which PyTorch has not."""
    h, out, (bw, br) = h[0], [], b[0].chunk(2)
    for t in a:
        z, k, g = (t @ w[0].T + bw).chunk(3, 1)
        zr, kr, _ = (h @ r[0].T + br).chunk(3, 1)
        z, k = torch.sigmoid(z + zr), torch.sigmoid(k + kr)
        g = torch.tanh(g + (k * h) @ r[0].chunk(3)[2].T + br.chunk(3)[2])
        h = (1 - z) * g + z * h
        out.append(h)
    return torch.stack(out)[:, None], h[None]


def peeping_lstm(a, w, r, b, h, c, p):
    h, c, out, (bw, br), (pi, po, pf) = h[0], c[0], [], b[0].chunk(2), p[0].chunk(3)
    for t in a:
        i, o, f, g = (t @ w[0].T + bw + h @ r[0].T + br).chunk(4, 1)
        i, f = torch.sigmoid(i + pi * c), torch.sigmoid(f + pf * c)
        c = f * c + i * torch.tanh(g)
        h = torch.sigmoid(o + po * c) * torch.tanh(c)
        out.append(h)
    return torch.stack(out)[:, None], h[None], c[None]


def rnns():
    for op, gates in ('LSTM', 4), ('GRU', 3), ('RNN', 1):
        more = dict(linear_before_reset=1) if op == 'GRU' else {}
        outs = 3 if op == 'LSTM' else 2

        def args(d, lengths=False):
            s, b, i, h = n(3, 5), n(2, 3), n(2, 4), n(2, 4)
            m = ints(s, *(n(1, s) for _ in range(b - 1))).astype('i4') if lengths else None
            small = lambda *s: x(*s, lo=-1, hi=1)
            return [x(s, b, i), small(d, gates * h, i), small(d, gates * h, h), small(d, 2 * gates * h), m] + \
                [small(d, b, h) for _ in range(outs - 1)]

        def add(label, d, fn, lengths=False, **attrs):
            p = args(d, lengths)
            case(op, p, fn, outs=outs, label=label, hidden_size=p[2].shape[2], **{**more, **attrs})
        add('', 1, lambda *p, op=op: recurrent(op, *p))
        add('reverse', 1, lambda *p, op=op: recurrent(op, *p, back=True), direction='reverse')
        add('both ways', 2, lambda *p, op=op: recurrent(op, *p, both=True), direction='bidirectional')
        add('of lengths', 1, lambda *p, op=op: by_lengths(op, *p), True)
        add('both ways of lengths', 2, lambda *p, op=op: by_lengths(op, *p, both=True), True, direction='bidirectional')
        if op == 'RNN':
            add('by relu', 1, lambda *p: recurrent('RNN', *p, act='relu'), activations=['Relu'])
        if op == 'GRU':
            add('product of what is kept', 1, slow_gru, linear_before_reset=0)
        if op == 'LSTM':
            p = args(1)
            case(op, p + [x(1, 3 * p[2].shape[2], lo=-1, hi=1)], peeping_lstm, outs=3, label='with peepholes', hidden_size=p[2].shape[2])


def attend(q, k, v, mask=None, causal=False, cap=0, scale=None):
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    s = q @ k.transpose(2, 3) * (q.shape[3] ** -.5 if scale is None else scale)
    s = s + mask if mask is not None and mask.is_floating_point() else s
    s = s.masked_fill(~mask, -math.inf) if mask is not None and not mask.is_floating_point() else s
    s = s.masked_fill(~torch.ones(s.shape[2:], dtype=torch.bool).tril(), -math.inf) if causal else s
    s = cap * torch.tanh(s / cap) if cap else s
    return torch.softmax(s, 3) @ v


def heads(t, n):
    return t.view(t.shape[0], t.shape[1], n, -1).transpose(1, 2)


def attention():
    b, s, t, d, e = n(1, 2), n(3, 4), n(3, 5), n(2, 4), n(2, 4)
    qkv = lambda h=2, k=2: [x(b, h, s, d), x(b, k, t, d), x(b, k, t, e)]
    case('Attention', qkv(), lambda *p: attend(*p))
    case('Attention', qkv(4, 2), lambda *p: attend(*p), label='shared keys')
    case('Attention', qkv() + [x(s, t)], lambda *p: attend(*p), label='with a bias')
    case('Attention', qkv() + [x(b, 2, s, t)], lambda *p: attend(*p, scale=.3), label='with a bias of all heads', scale=.3)
    mask = dice.rand(s, t) < .6
    mask[:, 0] = True
    case('Attention', qkv() + [mask], lambda *p: attend(*p), label='masked')
    case('Attention', qkv(), lambda *p: attend(*p, causal=True), label='causal', is_causal=1)
    case('Attention', qkv(), lambda *p: attend(*p, cap=1.5), label='capped', softcap=1.5)
    case('Attention', [x(b, s, 4 * d), x(b, t, 2 * d), x(b, t, 2 * e)], lambda q, k, v:
         attend(heads(q, 4), heads(k, 2), heads(v, 2)).transpose(1, 2).reshape(b, s, -1), label='of three axes', q_num_heads=4, kv_num_heads=2)
    case('Attention', qkv() + [None, x(b, 2, 2, d), x(b, 2, 2, e)], lambda q, k, v, pk, pv:
         (attend(q, torch.cat([pk, k], 2), torch.cat([pv, v], 2)), torch.cat([pk, k], 2), torch.cat([pv, v], 2)), outs=3, label='with a past')
    case('MultiHeadAttention', [x(b, s, 2 * d), x(b, t, 2 * d), x(b, t, 2 * e)], lambda q, k, v:
         attend(heads(q, 2), heads(k, 2), heads(v, 2)).transpose(1, 2).reshape(b, s, -1), domain='com.microsoft', num_heads=2)

    def rotate(a, c, s, between=False):
        c, s = c[:, None], s[:, None]
        p, q = (a[..., 0::2], a[..., 1::2]) if between else a.chunk(2, 3)
        u, v = c * p - s * q, s * p + c * q
        return torch.stack([u, v], 4).flatten(3) if between else torch.cat([u, v], 3)
    for between in 0, 1:
        case('RotaryEmbedding', [x(b, 2, s, 6), x(b, s, 3), x(b, s, 3)], lambda *p, between=between: rotate(*p, bool(between)), label=f'{between}',
             interleaved=between)


def turned(a, c, s, between):
    """(length, heads, size), by cosines and sines of each place."""
    h = c.shape[1]
    p, q = (a[..., 0:2 * h:2], a[..., 1:2 * h:2]) if between else (a[..., :h], a[..., h:2 * h])
    c, s = c[:, None], s[:, None]
    u, v = c * p - s * q, s * p + c * q
    return torch.cat([torch.stack([u, v], 3).flatten(2) if between else torch.cat([u, v], 2), a[..., 2 * h:]], 2)


def group_query(q, k, v, lengths, total, past=None, turn=None, places=None, bias=None, sink=None, heads=2, kv=1, window=-1, cap=0, between=False):
    """A sequence after another; what is new comes behind what there is of each."""
    out, s = [[], [], []], q.shape[1]
    split = lambda t, n: t.reshape(s, n, -1)
    for i, length in enumerate(lengths.tolist()):
        before = 0 if s == total else length + 1 - s
        a, b, c = split(q[i], heads), split(k[i], kv), split(v[i], kv)
        if turn:
            at = places[i] if places is not None else before + torch.arange(s)
            a, b = (turned(t, turn[0][at], turn[1][at], between) for t in (a, b))
        b, c = b.transpose(0, 1), c.transpose(0, 1)
        room = max(int(total), past[0].shape[2] if past else 0)
        rows = [torch.cat(([p[i][:, :before]] if past else []) + [t, torch.zeros(kv, room - before - s, t.shape[2]).to(t)], 1)
                for p, t in zip(past or (None, None), (b, c))]
        b, c = (t.repeat_interleave(heads // kv, 0) for t in rows)
        score = a.transpose(0, 1) @ b.transpose(1, 2) * a.shape[2] ** -.5
        score = cap * torch.tanh(score / cap) if cap else score
        score = score + bias[min(i, len(bias) - 1)][..., :room] if bias is not None else score
        at, key = before + torch.arange(s)[:, None], torch.arange(room)
        seen = (key <= at) & (key > at - window if window > 0 else key >= 0)
        score = score.masked_fill(~seen, -math.inf)
        if sink is not None:
            score = torch.cat([score, sink[:, None, None].expand(-1, s, 1)], 2)
        out[0].append((torch.softmax(score, 2)[..., :room] @ c).transpose(0, 1).reshape(s, -1))
        out[1].append(rows[0])
        out[2].append(rows[1])
    return tuple(torch.stack(t) for t in out)


def grouped():
    b, s, d = 2, n(3, 4), 2 * n(2, 3)
    ends = lambda k: (np.full(b, k - 1, 'i4'), np.array(k, 'i4'))
    whole = lambda heads, kv: [x(b, s, heads * d), x(b, s, kv * d), x(b, s, kv * d)]

    def one(args, fn, label, outs=3, heads=2, kv=1, **attrs):
        case('GroupQueryAttention', args, fn, outs=outs, domain='com.microsoft', label=label, num_heads=heads, kv_num_heads=kv, **attrs)
    one(whole(4, 2) + [None, None, *ends(s)], lambda *p: group_query(*p, heads=4, kv=2)[0], 'of a prompt', 1, 4, 2)
    one(whole(2, 1) + [None, None, *ends(s)], lambda *p: group_query(*p), 'and its cache')
    cuts = [2 * d, 3 * d]
    one([x(b, s, 4 * d), None, None, None, None, *ends(s)], lambda q, *p: group_query(*torch.tensor_split(q, cuts, 2), *p, cap=1.5), 'packed and capped',
        softcap=1.5)
    step = lambda room: [x(b, 1, 2 * d), x(b, 1, d), x(b, 1, d), x(b, 1, room, d), x(b, 1, room, d), np.array([2, 4], 'i4'), np.array(5, 'i4')]
    past = lambda fn: lambda q, k, v, pk, pv, l, t, *p: fn(q, k, v, l, t, (pk, pv), *p)
    one(step(4), past(group_query), 'of a step')
    one(step(7), past(lambda *p: group_query(*p, window=2)), 'in a window of a cache with room', local_window_size=2)
    turn = lambda k: [x(k, d // 2), x(k, d // 2)]
    for between in 0, 1:
        one(step(4) + turn(6), past(lambda q, k, v, l, t, p, c, s, between=between: group_query(q, k, v, l, t, p, (c, s), between=between)), f'turned {between}',
            do_rotary=1, rotary_interleaved=between)
    one(whole(2, 1) + [None, None, *ends(s), *turn(9), below(9, b, s).astype('i8')], lambda q, k, v, l, t, c, w, at:
        group_query(q, k, v, l, t, None, (c, w), at), 'turned by places', do_rotary=1)
    one(step(4) + [None] * 3 + [x(1, 2, 1, 5), x(2)], past(lambda q, k, v, l, t, p, a, z: group_query(q, k, v, l, t, p, None, None, a, z)), 'with a bias and sinks')
    one(whole(2, 1) + [None, None, *ends(s)], lambda *p: group_query(*p, sink=torch.zeros(2))[0], 'smooth', 1, smooth_softmax=1)


def few_bits():
    """Numbers of a few bits, the first in the lowest."""
    def open_up(t, bits, count):
        parts = torch.stack([t.long() >> k & (1 << bits) - 1 for k in range(0, 8, bits)], -1)
        return parts.flatten(-2)[..., :count]

    def product(a, w, scale, zero, bits, block, groups=None, bias=0):
        rows, blocks = w.shape[:2]
        k, scale = a.shape[-1], scale.reshape(rows, blocks)
        zero = torch.tensor(float(1 << bits - 1)).expand(rows, blocks) if zero is None else zero.reshape(rows, blocks) if zero.is_floating_point() \
            else open_up(zero.reshape(rows, -1), bits, blocks)
        at = torch.arange(k) // block if groups is None else groups[:k].long()
        return a @ ((open_up(w.reshape(rows, -1), bits, k) - zero[:, at]) * scale[:, at]).T + bias
    for bits in 2, 4, 8:
        for kind in 'none', 'packed', 'real', 'grouped':
            k, rows, block = n(17, 40), n(2, 4), 16
            blocks = -(-k // block)
            zero = {'packed': below(256, rows, -(-blocks * bits // 8)).astype('u1'), 'real': x(rows, blocks)}.get(kind)
            args = [x(2, 3, k), below(256, rows, blocks, block * bits // 8).astype('u1'), x(rows * blocks), zero]
            if kind == 'grouped':
                args += [below(blocks, k).astype('i4'), x(rows)]

            def fn(a, w, s, *p, bits=bits, kind=kind):
                if kind == 'grouped':
                    return product(a, w, s, None, bits, 16, *p)
                return product(a, w, s, p[0] if p else None, bits, 16)
            case('MatMulNBits', args, fn, domain='com.microsoft', label=f'of {bits} bits, zeros {kind}', K=k, N=rows, bits=bits, block_size=block)


def compounds():
    take, b, w = dice.rand(4) < .5, n(1, 3), n(2, 4)
    take[1] = True
    case('Compress', [x(3, 4, w), take], lambda a, t: a[:, t], label='rows', axis=1)
    case('Compress', [x(2, 4), take], lambda a, t: a.flatten()[:4][t])
    case('OneHot', [below(5, b, 3), ints(5), x(2)], lambda i, _, v: v[F.one_hot(i, 5)])
    case('CenterCropPad', [x(b, 7, 2), ints(4, 5)], lambda a, _: F.pad(a[:, 1:5], (1, 2)), axes=[1, 2])
    cache = lambda a, u, at: torch.stack([p.index_copy(0, (t + torch.arange(2)) % 5, q) for p, q, t in zip(a, u, at)])
    case('TensorScatter', [x(b, 5, w), x(b, 2, w), below(5, b)], cache, axis=1, mode='circular')
    case('STFT', [x(b, 20, 1), ints(3)[0], x(6)], lambda a, _, v: torch.view_as_real(torch.stft(a[..., 0], 6, 3, window=v, center=False,
         return_complex=True)).transpose(1, 2), label='of real numbers')
    case('STFT', [x(b, 20), ints(4)[0], x(6)], lambda a, _, v: torch.view_as_real(torch.stft(a, 6, 4, window=v, center=False,
         return_complex=True)).transpose(1, 2), label='of real numbers, without an axis for their parts')
    frames = lambda a, _, v: torch.view_as_real(torch.fft.fft(torch.view_as_complex(a).unfold(1, 5, 2) * v))
    case('STFT', [x(b, 12, 2), ints(2)[0], x(5)], frames, onesided=0)
    zero = below(9, w).astype('i1')
    case('DequantizeLinear', [below(99, b, w, 3).astype('i1'), x(w), zero], lambda a, v, z: (a - z[:, None]) * v[:, None], axis=1)
    case('DequantizeLinear', [below(99, b, 6).astype('i1'), x(b, 2)], lambda a, v: a * v.repeat_interleave(3, 1), label='by blocks', axis=1, block_size=3)
    case('FusedGemm', [x(b, w), x(5, w), x(5)], lambda p, q, c: torch.tanh(.5 * (p @ q.T) + 2 * c), domain='com.microsoft', transB=1, alpha=.5, beta=2.,
         activation='Tanh')
    case('FusedConv', [x(b, 4, 5, 6), x(2, 2, 3, 3), x(2), x(b, 2, 3, 4)], lambda a, k, c, z: F.leaky_relu(F.conv2d(a, k, c, groups=2) + z, .2),
         domain='com.microsoft', group=2, activation='LeakyRelu', activation_params=[.2])
    case('EmbedLayerNormalization', [below(5, b, 3).astype('i4'), below(2, b, 3).astype('i4'), x(5, w), x(4, w), x(2, w), x(w), x(w)],
         lambda i, j, p, q, r, s, t: (F.layer_norm(p[i.long()] + q[:3] + r[j.long()], [w], s, t, 1e-3), None), outs=2, domain='com.microsoft', epsilon=1e-3)


def draw(seed):
    """All cases, on shapes and numbers of that seed."""
    global dice
    dice = np.random.RandomState(seed)
    found.clear()
    for family in (elementwise, several, products, convolutions, pools, norms, softmaxes, picks, moves, reductions, samplings, rnns, attention, grouped, few_bits,
                   compounds):
        family()
    return list(found)
