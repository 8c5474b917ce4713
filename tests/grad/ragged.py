# SPDX-License-Identifier: Apache-2.0
"""Gradients of random programs of nested loops, three levels deep, that run 0 to 8 iterations each: their trip
counts depend on the iterations of the outer loops, or on data.

    ragged.py COMMAND FOLDER FIRST COUNT

A program is a list of statements, which is written twice: with its loops, and unrolled for given trip counts.  The
gradients of the first, by `onnxmem` planned, without reuse and poisoned, and by ONNX Runtime, are those of the
second, and agree with differences of the loss.
"""
import os
import sys

import numpy as np
import onnx
import onnx.parser
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from tolerance import Points, call, far, theirs

ort.set_default_logger_severity(3)

WRT = 'x', 'y', 'w', 'table'
MOST, TABLE, ROWS = 8, 9, (2, 3)        # iterations; slices of the table; the shape of all values
UNROLLED = 100                          # iterations at most in a program that is unrolled
WAYS = ('planned.onnx', []), ('planned.onnx', ['--poison']), (None, ['--no-reuse'])


# ---- Programs. ----

def block(rng, seen, depth, n):
    """Statements; each adds one value to those seen.  Returns them, and how many values are seen then."""
    out = []
    for k in range(n):
        kinds = ['sin', 'mul', 'add', 'matmul', 'slice']
        if depth < 3:
            kinds += ['loop', 'loop', 'until', 'scan', 'if', 'grow']
        kind = 'loop' if k == n - 1 and depth < 3 else kinds[rng.integers(len(kinds))]
        out.append(make(rng, kind, seen, depth))
        seen += 1
    return out, seen


def make(rng, kind, seen, depth):
    a, b = (int(v) for v in rng.integers(max(0, seen - 4), seen, 2))
    if kind in ('sin', 'mul', 'add', 'matmul'):
        return kind, a, b
    count = int(rng.integers(3)), [int(c) for c in rng.integers(0, 4, depth)]
    if kind == 'slice':
        return kind, a, count
    if kind == 'if':
        return kind, a, int(rng.integers(2)), [block(rng, seen, depth, int(rng.integers(1, 3)))[0] for _ in range(2)]
    inner = seen + 1 + (kind == 'scan')     # the state and the slice are seen as well
    body, last = block(rng, inner, depth + 1, int(rng.integers(1, 4)))
    return kind, a, count, body, int(rng.integers(inner, last))


def nest(depth, level=0):
    """One loop in another, each of which runs as often as the iteration of the one around it says, and m0 times more."""
    seen = 2 + level
    if level == depth:
        return [('mul', 0, seen - 1), ('matmul', seen, seen)]
    return [('loop', seen - 1, (0, [0] * (level - 1) + [1] * (level > 0)), nest(depth, level + 1), seen + 1)]


# An If whose branches differ in rank, in a loop: the rank of what it keeps differs, too.
RANKS = """<ir_version: 9, opset_import: ["": 18]>
g (double[2,3] x, double[2,3] y, double[3,3] w, double[9,2,3] table, int64 m0, int64 m1, int64 m2) => (double loss) {
  flat = Constant<value = int64[1] {-1}>()
  zero = Constant<value = int64[1] {0}>()
  two = Constant<value = int64 {2}>()
  one = Constant<value = int64 {1}>()
  h0 = ReduceSum<keepdims = 0>(y, zero)
  o, p = Loop(m0, , h0) <body = b (int64 i, bool c, double[3] h) => (bool co, double[3] hn, double row) {
    co = Identity(c)
    j = Add(i, m1)
    k = Mod(j, two)
    t = Less(k, one)
    u = If(t) <then_branch = tb () => (double[2,3] a) { a = Mul(x, h) }, else_branch = eb () => (double[3] b) { b = Sin(h) }>
    z = Mul(u, u)
    zr = Reshape(z, flat)
    row = ReduceSum<keepdims = 0>(zr, zero)
    hs = Mul(h, row)
    hn = Sin(hs)
  }>
  q = Mul(o, o)
  l0 = ReduceSum<keepdims = 0>(q)
  l1 = ReduceSum<keepdims = 0>(p)
  l2 = Add(l0, l1)
  l3 = ReduceSum<keepdims = 0>(w)
  l4 = ReduceSum<keepdims = 0>(table)
  l5 = Add(l3, l4)
  loss = Add(l2, l5)
}"""


class Loops:
    """Writes a program with loops."""

    def __init__(self):
        self.lists, self.names = [[]], 0

    def name(self):
        self.names += 1
        return f'v{self.names}'

    def op(self, kind, *ins, nout=1, **attrs):
        outs = [self.name() for _ in range(nout)]
        self.lists[-1].append(helper.make_node(kind, list(ins), outs, **attrs))
        return outs if nout > 1 else outs[0]

    def const(self, x, dtype=np.int64):
        return self.op('Constant', value=numpy_helper.from_array(np.array(x, dtype)))

    def graph(self, params, build):
        """A body: `build` returns the names of its results, each with its element type and rank or dims."""
        self.lists.append([])
        results = [(self.op('Identity', name), kind, dims) for name, kind, dims in build()]
        infos = [[helper.make_tensor_value_info(*v) for v in part] for part in (params, results)]
        return helper.make_graph(self.lists.pop(), 'body', *infos)

    def count(self, counters, count):
        """The number of iterations, from 0 to MOST."""
        which, factors = count
        n = f'm{which}'
        for c, f in zip(counters, factors):
            n = self.op('Add', n, self.op('Mul', c, self.const(f)))
        return self.op('Mod', n, self.const(MOST + 1))

    def scaled(self, x, by):
        """Scaled down: small differences must not grow from iteration to iteration."""
        return self.op('Mul', x, self.const(by, np.float64))

    def sum_rows(self, x):
        return self.scaled(self.op('ReduceSum', self.op('Sin', x), self.const([0]), keepdims=0), 0.1)

    def block(self, seen, counters, body):
        for s in body:
            seen = seen + [getattr(self, '_' + s[0])(seen, counters, *s[1:])]
        return seen

    def _sin(self, seen, counters, a, b):
        return self.op('Sin', seen[a])

    def _mul(self, seen, counters, a, b):
        return self.op('Mul', seen[a], self.op('Sin', seen[b]))

    def _add(self, seen, counters, a, b):
        return self.scaled(self.op('Add', self.op('Sin', seen[a]), self.op('Cos', seen[b])), 0.5)

    def _matmul(self, seen, counters, a, b):
        return self.op('Sin', self.op('MatMul', seen[a], 'w'))

    def _slice(self, seen, counters, a, count):
        end = self.op('Unsqueeze', self.count(counters, count), self.const([0]))
        rows = self.op('Slice', 'table', self.const([0]), end, self.const([0]))
        return self.sum_rows(self.op('Mul', rows, seen[a]))

    def _if(self, seen, counters, a, by_data, branches):
        if by_data or not counters:
            c = self.op('Less', self.op('ReduceSum', seen[a], keepdims=0), self.const(0.3, np.float64))
        else:
            c = self.op('Less', self.op('Mod', counters[-1], self.const(3)), self.const(1))
        names = ('then_branch', 'else_branch')
        graphs = [self.graph([], lambda b=b: [(self.block(seen, counters, b)[-1], TensorProto.DOUBLE, ROWS)])
                  for b in branches]
        return self.op('If', c, **dict(zip(names, graphs)))

    def loop(self, seen, counters, a, trips, body, stacked, until=False, grow=False):
        i, c, h = self.name(), self.name(), self.name()
        g = self.name()
        params = [(i, TensorProto.INT64, []), (c, TensorProto.BOOL, []), (h, TensorProto.DOUBLE, ROWS)]
        if grow:
            params.append((g, TensorProto.DOUBLE, [None, ROWS[1]]))

        def build():
            inner = self.block(seen + [h], counters + [i], body)
            inner.append(self.scaled(inner[-1], 0.5))
            goes_on = c
            if until:
                goes_on = self.op('Less', self.op('ReduceSum', inner[-1], keepdims=0), self.const(0.6, np.float64))
            results = [(goes_on, TensorProto.BOOL, []), (inner[-1], TensorProto.DOUBLE, ROWS)]
            if grow:
                results.append((self.op('Sin', self.op('Concat', g, inner[-1], axis=0)), TensorProto.DOUBLE, [None, ROWS[1]]))
            return results + [(inner[stacked], TensorProto.DOUBLE, ROWS)]
        states = [seen[a]] + ([seen[a]] if grow else [])
        outs = self.op('Loop', trips, '', *states, nout=2 + grow, body=self.graph(params, build))
        y = self.op('Add', outs[0], self.sum_rows(outs[-1]))
        if grow:
            y = self.op('Add', y, self.scaled(self.op('ReduceSum', outs[1], keepdims=0), 0.1))
        return self.op('Sin', y)

    def _loop(self, seen, counters, a, count, body, stacked):
        return self.loop(seen, counters, a, self.count(counters, count), body, stacked)

    def _until(self, seen, counters, a, count, body, stacked):
        return self.loop(seen, counters, a, self.const(MOST), body, stacked, until=True)

    def _grow(self, seen, counters, a, count, body, stacked):
        return self.loop(seen, counters, a, self.count(counters, count), body, stacked, grow=True)

    def _scan(self, seen, counters, a, count, body, stacked):
        n = self.op('Max', self.count(counters, count), self.const(1))     # ONNX Runtime refuses a Scan of no slices
        rows = self.op('Slice', 'table', self.const([0]), self.op('Unsqueeze', n, self.const([0])), self.const([0]))
        numbers = self.op('Range', self.const(0), n, self.const(1))
        h, x, i = self.name(), self.name(), self.name()
        params = [(h, TensorProto.DOUBLE, ROWS), (x, TensorProto.DOUBLE, ROWS), (i, TensorProto.INT64, [])]

        def build():
            inner = self.block(seen + [h, x], counters + [i], body)
            return [(self.scaled(inner[-1], 0.5), TensorProto.DOUBLE, ROWS), (inner[stacked], TensorProto.DOUBLE, ROWS)]
        outs = self.op('Scan', seen[a], rows, numbers, nout=2, num_scan_inputs=2, scan_input_directions=[1, 0],
                       scan_output_axes=[2], scan_output_directions=[1], body=self.graph(params, build))
        s = self.scaled(self.op('ReduceSum', self.op('Sin', outs[1]), self.const([2]), keepdims=0), 0.1)
        return self.op('Sin', self.op('Add', outs[0], s))

    def model(self, body):
        seen = self.block(['x', 'y'], [], body)
        loss = self.op('ReduceSum', self.op('Mul', seen[-1], self.op('Add', seen[-1], seen[-2])), keepdims=0)
        for name in WRT:
            loss = self.op('Add', loss, self.op('ReduceSum', name, keepdims=0))
        inputs = [('x', ROWS), ('y', ROWS), ('w', (ROWS[1], ROWS[1])), ('table', (TABLE, *ROWS))]
        infos = [helper.make_tensor_value_info(n, TensorProto.DOUBLE, s) for n, s in inputs]
        infos += [helper.make_tensor_value_info(f'm{k}', TensorProto.INT64, []) for k in range(3)]
        self.lists[-1][-1].output[0] = 'loss'
        graph = helper.make_graph(self.lists[-1], 'g', infos, [helper.make_tensor_value_info('loss', TensorProto.DOUBLE, [])])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 18)], ir_version=9)


class TooLong(Exception):
    pass


class Unrolled(Loops):
    """Writes a program without loops and branches.  Counters are numbers; a value whose elements decide something
    is computed as well."""

    def __init__(self, feeds):
        super().__init__()
        self.data, self.rounds = dict(feeds), 0
        self.known = {'Sin': np.sin, 'Cos': np.cos, 'Mul': np.multiply, 'Add': np.add, 'MatMul': np.matmul,
                      'Identity': lambda v: v}

    def op(self, kind, *ins, nout=1, **attrs):
        out = super().op(kind, *ins, nout=nout, **attrs)
        of = [self.data[i] for i in ins if i in self.data]
        if kind in self.known:
            y = self.known[kind](*of)
        elif kind == 'Constant':
            y = numpy_helper.to_array(attrs['value'])
        elif kind == 'ReduceSum':
            y = of[0].sum(axis=tuple(of[1]) if len(of) > 1 else None)
        elif kind == 'Slice':
            y = of[0][int(of[1][0]):int(of[2][0])]
        elif kind == 'Concat':
            y = np.concatenate(of, axis=attrs['axis'])
        elif kind == 'Unsqueeze':
            y = np.expand_dims(of[0], int(of[1][0]))
        else:
            y = of[0].reshape([int(d) for d in of[1]])
        self.data[out] = y
        return out

    def count(self, counters, count):
        which, factors = count
        return self.const((int(self.data[f'm{which}']) + sum(c * f for c, f in zip(counters, factors))) % (MOST + 1))

    def _if(self, seen, counters, a, by_data, branches):
        if by_data or not counters:
            c = self.data[seen[a]].sum() < 0.3
        else:
            c = counters[-1] % 3 < 1
        return self.block(seen, counters, branches[0 if c else 1])[-1]

    def stack(self, rows):
        if not rows:
            return self.const(np.zeros((0, *ROWS)), np.float64)
        return self.op('Concat', *[self.op('Unsqueeze', r, self.const([0])) for r in rows], axis=0)

    def again(self):
        self.rounds += 1
        if self.rounds > UNROLLED:
            raise TooLong

    def loop(self, seen, counters, a, trips, body, stacked, until=False, grow=False):
        h = g = seen[a]
        rows = []
        for i in range(int(self.data[trips])):
            self.again()
            inner = self.block(seen + [h], counters + [i], body)
            inner.append(self.scaled(inner[-1], 0.5))
            if grow:
                g = self.op('Sin', self.op('Concat', g, inner[-1], axis=0))
            rows.append(inner[stacked])
            h = inner[-1]
            if until and not self.data[h].sum() < 0.6:
                break
        y = self.op('Add', h, self.sum_rows(self.stack(rows)))
        if grow:
            y = self.op('Add', y, self.scaled(self.op('ReduceSum', g, keepdims=0), 0.1))
        return self.op('Sin', y)

    def _scan(self, seen, counters, a, count, body, stacked):
        n, h, rows = max(1, int(self.data[self.count(counters, count)])), seen[a], []
        for i in range(n):
            self.again()
            at = n - 1 - i
            x = self.op('Slice', 'table', self.const([at]), self.const([at + 1]), self.const([0]))
            inner = self.block(seen + [h, self.op('Reshape', x, self.const(ROWS))], counters + [i], body)
            h = self.scaled(inner[-1], 0.5)
            rows.append(inner[stacked])
        return self.op('Sin', self.op('Add', h, self.sum_rows(self.stack(rows))))


# ---- Gradients. ----

class Wrong(Exception):
    pass


class Check:
    def __init__(self, command, folder):
        self.command, self.folder = command, folder
        self.unrolled = self.differences = 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def ours(self, *args):
        r = call(*args, command=self.command)
        if r.returncode:
            raise Wrong(f'{args[0]}: {r.stderr.strip()}')

    def gradients(self, model, name):
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, self.path(name))
        self.ours('grad', self.path(name), self.path('grad-' + name), '--loss', 'loss', '--wrt', ','.join(WRT))
        made = onnx.load(self.path('grad-' + name))
        onnx.checker.check_model(made, full_check=True)
        return made

    def plan(self, name):
        self.ours('plan', '-q', self.path(name), self.path('planned.onnx'))

    def by_us(self, name, feeds):
        """In three ways, which give the same bits; planned before."""
        np.savez(self.path('in.npz'), **feeds)
        all = []
        for planned, way in WAYS:
            self.ours('run', '-q', self.path(planned or name), '--data', self.path('in.npz'), '--save', self.path('out.npz'), *way)
            with np.load(self.path('out.npz')) as z:
                all.append({k: z[k] for k in z.files})
        for (_, way), other in zip(WAYS[1:], all[1:]):
            for k, v in other.items():
                if not np.array_equal(v, all[0][k]):
                    raise Wrong(f'{k} has other bits with {way[0]}')
        return all[0]

    def same(self, who, got, want):
        for k in want:
            if far(got[k], want[k], 1e-3) > 1e-8:
                raise Wrong(f'{who}: {k} is off by {far(got[k], want[k], 1e-3):.2g}')

    def by_differences(self, model, feeds, rng, want):
        """The slope along a direction; none is compared where a condition on data changes nearby."""
        along = {k: rng.standard_normal(feeds[k].shape) for k in WRT}
        loss = [float(theirs(model, {**feeds, **{k: feeds[k] + h * along[k] for k in WRT}})['loss'])
                for h in (-2e-6, -1e-6, 0, 1e-6, 2e-6)]
        slope, wide = (loss[3] - loss[1]) / 2e-6, (loss[4] - loss[0]) / 4e-6
        got = sum(float((want[k + '_grad'] * along[k]).sum()) for k in WRT)
        if abs(slope - wide) > 1e-5 * (1 + abs(slope)):
            return
        self.differences += 1
        if abs(slope - got) > 1e-5 * (1 + abs(slope)):
            raise Wrong(f'the slope is {got:.9g}, but {slope:.9g} by differences')

    def step(self, model, feeds):
        """A training step with w as its weight."""
        model = onnx.ModelProto.FromString(model.SerializeToString())
        kept = [i for i in model.graph.input if i.name != 'w']
        del model.graph.input[:]
        model.graph.input.extend(kept)
        model.graph.initializer.append(numpy_helper.from_array(feeds['w'], 'w'))
        onnx.save(model, self.path('net.onnx'))
        self.ours('grad', self.path('net.onnx'), self.path('step.onnx'), '--loss', 'loss', '--optimizer', 'adam', '--lr', '0.1')
        self.plan('step.onnx')
        want = theirs(onnx.load(self.path('step.onnx')), feeds)
        if far(want['w_next'], feeds['w']) == 0:
            raise Wrong('a step leaves w as it was')
        feeds = {k: v for k, v in feeds.items() if k != 'w'}
        self.same('training step', self.by_us('step.onnx', feeds), want)

    def feeds(self, rng, m):
        feeds = {'x': rng.standard_normal(ROWS), 'y': rng.standard_normal(ROWS), 'w': rng.standard_normal((3, 3)) / 3,
                 'table': rng.standard_normal((TABLE, *ROWS))}
        feeds.update({f'm{k}': np.array(v, np.int64) for k, v in enumerate(m)})
        return feeds

    def plain(self, model):
        """A model of which m0 and m1 are small."""
        rng = np.random.default_rng(1)
        made = self.gradients(model, 'loops.onnx')
        self.plan('grad-loops.onnx')
        for m in (0, 0, 0), (1, 0, 0), (2, 1, 0), (3, 0, 0):
            feeds = self.feeds(rng, m)
            want = theirs(made, feeds)
            self.same(f'onnxmem, {m}', self.by_us('grad-loops.onnx', feeds), want)
            self.by_differences(model, feeds, rng, want)

    def run(self, seed):
        rng = np.random.default_rng(seed)
        body = block(rng, 2, 0, int(rng.integers(2, 4)))[0]
        model = Loops().model(body)
        made = self.gradients(model, 'loops.onnx')
        self.plan('grad-loops.onnx')
        for case in range(4):
            m = [case * MOST] * 3 if case < 2 else [int(v) for v in rng.integers(0, MOST + 1, 3)]
            feeds = self.feeds(rng, m)
            want = theirs(made, feeds)
            self.same(f'onnxmem, {m}', self.by_us('grad-loops.onnx', feeds), want)
            self.by_differences(model, feeds, rng, want)
            try:
                flat = Unrolled(feeds).model(body)
            except TooLong:
                continue
            self.unrolled += 1
            self.same(f'unrolled, {m}', want, theirs(self.gradients(flat, 'unrolled.onnx'), feeds))
        self.step(model, feeds)


def main(command, folder, first, count):
    check, failed = Check(command, folder), []
    for seed in range(int(first), int(first) + int(count)):
        try:
            check.run(seed)
        except Wrong as e:
            failed.append(f'seed {seed}: {e}')
    points = Points()
    for what, model in ('six levels of loops', Loops().model(nest(6))), ('branches of other ranks', onnx.parser.parse_model(RANKS)):
        try:
            check.plain(model)
            points.point(True, what)
        except Wrong as e:
            points.point(False, what, e)
    points.point(not failed, f'{count} nests of loops, in onnxmem and in ONNX Runtime', '\n'.join(failed[:10]))
    points.point(check.differences > 0 and check.unrolled > 0,
                 f'{check.differences} runs agree with differences, {check.unrolled} with the unrolled program')
    points.end()


main(*sys.argv[1:])
