/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs: every plan computes the same results.
 *
 * Each seed generates a program of elementwise ops, views, concatenations, products, normalizations,
 * branches and loops, nested; it is planned, verified, and run three ways: planned, planned with
 * poisoned memory, and with separate memory for every value.  All outputs have to agree bit for bit, in
 * two runs each, and with those of the same program with two arenas, in other orders, and by other
 * planners.  No order that a pass chooses makes the arena larger than the order of the program does.
 * A parallel-safe plan is run in several orders.  A failing program is printed, and
 * `programs SEED 1` repeats it.
 *
 *	programs [FIRST-SEED [COUNT [NODES]]]
 *
 * With NODES, all searches of packer, scheduler and rematerialization that have no limit of their own in the table
 * below end after so many nodes.  Few programs need nearly all of the time for searches, so that a campaign that
 * is about plans and results gets through many more programs with few nodes.
 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "../same.h"
#include "tests/fixtures.h"
#include "base/rng.h"

enum { MAX_VALUES = 64, MAX_DEPTH = 2, COUNT = 400 };

struct shape {
	int n, dim[4];
};

struct gen {
	uint64_t state;
	FILE *to;
	int next;                   /* number of the next value */
	int depth;
	int id[MAX_VALUES];         /* the values that may be used, and their shapes */
	struct shape shape[MAX_VALUES];
	int nvalue;
};

static unsigned
below(struct gen *g, unsigned n)
{
	return (unsigned)om_rng_below(&g->state, n);
}

static void
tabs(struct gen *g)
{
	for (int k = 0; k <= g->depth; k++)
		fputc('\t', g->to);
}

static int
add(struct gen *g, struct shape s)
{
	const int id = g->next++;

	if (g->nvalue == MAX_VALUES) {  /* drop one: its lifetime ends early */
		const unsigned k = below(g, MAX_VALUES);
		g->id[k] = g->id[g->nvalue - 1];
		g->shape[k] = g->shape[g->nvalue - 1];
		g->nvalue--;
	}
	g->id[g->nvalue] = id;
	g->shape[g->nvalue++] = s;
	return id;
}

/* Recent values are preferred: long chains, few long lifetimes. */
static int
pick(struct gen *g)
{
	const unsigned a = below(g, (unsigned)g->nvalue), b = below(g, (unsigned)g->nvalue);
	return (int)(a > b ? a : b);
}

static int
pick_same(struct gen *g, struct shape s)
{
	for (int tries = 0; tries < 20; tries++) {
		const int k = pick(g);
		if (memcmp(&g->shape[k], &s, sizeof s) == 0)
			return k;
	}
	return -1;
}

static int
count(struct shape s)
{
	int n = 1;

	for (int k = 0; k < s.n; k++)
		n *= s.dim[k];
	return n;
}

static void
print_ints(struct gen *g, const int *v, int n)
{
	for (int k = 0; k < n; k++)
		fprintf(g->to, "%s%d", k ? ", " : "", v[k]);
}

static void
unary(struct gen *g)
{
	static const char *const ops[] = {
		"Relu(%%v%d)", "Sigmoid(%%v%d)", "Tanh(%%v%d)", "Neg(%%v%d)", "Abs(%%v%d)",
		"Softmax(%%v%d) {axis = -1}", "Identity(%%v%d)", "LeakyRelu(%%v%d) {alpha = 0.5}",
		"Clip(%%v%d)", "Dropout(%%v%d)", "Softmax(%%v%d) {axis = 0}", "Sum(%%v%d)",
	};
	const int k = pick(g), x = g->id[k];
	const int y = add(g, g->shape[k]);

	tabs(g);
	fprintf(g->to, "%%v%d = ", y);
	fprintf(g->to, ops[below(g, sizeof ops / sizeof ops[0])], x);
	fputc('\n', g->to);
}

static void
binary(struct gen *g)
{
	static const char *const ops[] = {"Add", "Mul", "Sub", "Max", "Min"};
	const int k = pick(g);
	const struct shape s = g->shape[k];
	const int j = pick_same(g, s);
	const int a = g->id[k], b = j < 0 ? a : g->id[j];

	tabs(g);
	fprintf(g->to, "%%v%d = %s(%%v%d, %%v%d)\n", add(g, s), ops[below(g, 5)], a, b);
}

/* One operand is broadcast along the outer axes of the others. */
static void
broadcast(struct gen *g)
{
	const int k = pick(g);
	const struct shape s = g->shape[k];
	const int x = g->id[k], last = s.dim[s.n - 1];

	tabs(g);
	fprintf(g->to, "%%c%d = const float32[%d] {", g->next, last);
	for (int i = 0; i < last; i++)
		fprintf(g->to, "%s%d.5", i ? ", " : "", i % 3);
	fprintf(g->to, "}\n");
	tabs(g);
	const int c = g->next;
	if (below(g, 2))
		fprintf(g->to, "%%v%d = Mul(%%c%d, %%v%d)\n", add(g, s), c, x);
	else
		fprintf(g->to, "%%v%d = Add(%%v%d, %%c%d)\n", add(g, s), x, c);
}

static void
reshape(struct gen *g)
{
	const int k = pick(g), x = g->id[k];
	struct shape s = g->shape[k];
	const int c = g->next;

	if (s.n < 4 && below(g, 2)) {
		memmove(s.dim + 1, s.dim, (size_t)s.n * sizeof *s.dim);
		s.dim[0] = 1;
		s.n++;
	} else {
		s = (struct shape){2, {count(s) / s.dim[s.n - 1], s.dim[s.n - 1]}};
	}
	tabs(g);
	fprintf(g->to, "%%s%d = const int64[%d] {", c, s.n);
	print_ints(g, s.dim, s.n);
	fprintf(g->to, "}\n");
	tabs(g);
	fprintf(g->to, "%%v%d = Reshape(%%v%d, %%s%d)\n", add(g, s), x, c);
}

static void
transpose(struct gen *g)
{
	const int k = pick(g), x = g->id[k];
	struct shape s = g->shape[k], t = s;
	int perm[4];

	for (int i = 0; i < s.n; i++) {
		perm[i] = s.n - 1 - i;
		t.dim[i] = s.dim[perm[i]];
	}
	tabs(g);
	fprintf(g->to, "%%v%d = Transpose(%%v%d) {perm = [", add(g, t), x);
	print_ints(g, perm, s.n);
	fprintf(g->to, "]}\n");
}

static void
split(struct gen *g)
{
	const int k = pick(g), x = g->id[k];
	struct shape s = g->shape[k];
	const int axis = (int)below(g, (unsigned)s.n);

	if (s.dim[axis] % 2)
		return;
	s.dim[axis] /= 2;
	const int a = add(g, s), b = add(g, s);
	tabs(g);
	fprintf(g->to, "%%v%d, %%v%d = Split(%%v%d) {axis = %d}\n", a, b, x, axis);
}

static void
concat(struct gen *g)
{
	const int k = pick(g);
	struct shape s = g->shape[k];
	const int j = pick_same(g, s), axis = (int)below(g, (unsigned)s.n);
	const int a = g->id[k], b = j < 0 ? a : g->id[j];

	s.dim[axis] *= 2;
	if (count(s) > 4096)
		return;
	tabs(g);
	fprintf(g->to, "%%v%d = Concat(%%v%d, %%v%d) {axis = %d}\n", add(g, s), a, b, axis);
}

/* A square product: values stay small because the rows are the output of a softmax. */
static void
product(struct gen *g)
{
	const int k = pick(g), x = g->id[k];
	const struct shape s = g->shape[k];

	if (s.n != 2 || s.dim[0] > 32)
		return;
	const struct shape square = {2, {s.dim[0], s.dim[0]}};
	const int t = add(g, (struct shape){2, {s.dim[1], s.dim[0]}}), m = add(g, square);
	const int soft = add(g, square), y = add(g, s);
	tabs(g);
	fprintf(g->to, "%%v%d = Transpose(%%v%d) {perm = [1, 0]}\n", t, x);
	tabs(g);
	fprintf(g->to, "%%v%d = MatMul(%%v%d, %%v%d)\n", m, x, t);
	tabs(g);
	fprintf(g->to, "%%v%d = Softmax(%%v%d) {axis = 1}\n", soft, m);
	tabs(g);
	fprintf(g->to, "%%v%d = MatMul(%%v%d, %%v%d)\n", y, soft, x);
}

/* A new constant: distinct floating-point values, or these integers. */
static int
floats(struct gen *g, int n)
{
	const int c = g->next++;

	tabs(g);
	fprintf(g->to, "%%v%d = const float32[%d] {", c, n);
	for (int i = 0; i < n; i++)
		fprintf(g->to, "%s0.%d", i ? ", " : "", 5 + i % 4);
	fprintf(g->to, "}\n");
	return c;
}

static int
ints(struct gen *g, const int *v, int n)
{
	const int c = g->next++;

	tabs(g);
	fprintf(g->to, "%%v%d = const int64[%d] {", c, n);
	print_ints(g, v, n);
	fprintf(g->to, "}\n");
	return c;
}

static void
normalize(struct gen *g)
{
	const int k = pick(g), x = g->id[k];
	const struct shape s = g->shape[k];
	const bool batch = s.n > 1 && below(g, 2);
	const int c = floats(g, s.dim[batch ? 1 : s.n - 1]);

	tabs(g);
	if (batch)
		fprintf(g->to, "%%v%d = BatchNormalization(%%v%d, %%v%d, %%v%d, %%v%d, %%v%d)\n", add(g, s), x,
			c, c, c, c);
	else
		fprintf(g->to, "%%v%d = LayerNormalization(%%v%d, %%v%d, %%v%d)\n", add(g, s), x, c, c);
}

/* Through other types: a comparison and a selection, or integers and back. */
static void
types(struct gen *g)
{
	const int k = pick(g);
	const struct shape s = g->shape[k];
	const int j = pick_same(g, s), a = g->id[k], b = j < 0 ? a : g->id[j];
	const int m = g->next++;

	tabs(g);
	if (below(g, 2)) {
		fprintf(g->to, "%%v%d = Less(%%v%d, %%v%d)\n", m, a, b);
		tabs(g);
		fprintf(g->to, "%%v%d = Where(%%v%d, %%v%d, %%v%d)\n", add(g, s), m, b, a);
	} else {
		fprintf(g->to, "%%v%d = Cast(%%v%d) {to = %d}\n", m, a, below(g, 2) ? 6 : 11);
		tabs(g);
		fprintf(g->to, "%%v%d = Cast(%%v%d) {to = 1}\n", add(g, s), m);
	}
}

static void
sum(struct gen *g)
{
	const int k = pick(g), a = g->id[k];
	const struct shape s = g->shape[k];
	const int i = pick_same(g, s), j = pick_same(g, s);

	tabs(g);
	const int b = i < 0 ? a : g->id[i], c = j < 0 ? a : g->id[j];
	fprintf(g->to, "%%v%d = %s(%%v%d, %%v%d, %%v%d)\n", add(g, s), below(g, 2) ? "Sum" : "Max", b, a, c);
}

static void
slice(struct gen *g)
{
	const int k = pick(g), x = g->id[k];
	struct shape s = g->shape[k];
	const int axis = (int)below(g, (unsigned)s.n), from = (int)below(g, (unsigned)s.dim[axis]);
	const int to = from + 1 + (int)below(g, (unsigned)(s.dim[axis] - from));
	const int a = ints(g, &from, 1), b = ints(g, &to, 1), c = ints(g, &axis, 1);

	s.dim[axis] = to - from;
	tabs(g);
	fprintf(g->to, "%%v%d = Slice(%%v%d, %%v%d, %%v%d, %%v%d)\n", add(g, s), x, a, b, c);
}

/* An empty tensor, concatenated with another one. */
static void
empty(struct gen *g)
{
	const int k = pick(g), x = g->id[k], zero = 0;
	const struct shape s = g->shape[k];
	const int c = ints(g, &zero, 1), e = g->next++, f = g->next++;

	tabs(g);
	fprintf(g->to, "%%v%d = Slice(%%v%d, %%v%d, %%v%d)\n", e, x, c, c);
	tabs(g);
	fprintf(g->to, "%%v%d = Neg(%%v%d)\n", f, e);
	tabs(g);
	fprintf(g->to, "%%v%d = Concat(%%v%d, %%v%d) {axis = 0}\n", add(g, s), f, x);
}

/* Axes of length one that are added and removed, and repetition along them. */
static void
unsqueeze(struct gen *g)
{
	const int k = pick(g), x = g->id[k], zero = 0;
	const struct shape s = g->shape[k];
	struct shape t = {s.n + 1, {1}};
	const bool wide = below(g, 2);

	if (s.n == 4 || count(s) > 1024)
		return;
	memcpy(t.dim + 1, s.dim, (size_t)s.n * sizeof *s.dim);
	const int c = ints(g, &zero, 1), u = g->next++;
	tabs(g);
	fprintf(g->to, "%%v%d = Unsqueeze(%%v%d, %%v%d)\n", u, x, c);
	if (below(g, 2)) {
		tabs(g);
		fprintf(g->to, "%%v%d = Squeeze(%%v%d, %%v%d)\n", add(g, s), u, c);
		return;
	}
	t.dim[0] = wide ? 2 : 1;
	const int d = ints(g, t.dim, t.n);
	tabs(g);
	fprintf(g->to, "%%v%d = Expand(%%v%d, %%v%d)\n", add(g, t), u, d);
}

/* The last and the first slice of the outermost axis. */
static void
gather(struct gen *g)
{
	const int k = pick(g), x = g->id[k];
	const struct shape s = g->shape[k];
	const int at[2] = {s.dim[0] - 1, 0};
	struct shape t = s;

	t.dim[0] = 2;
	const int c = ints(g, at, 2);
	tabs(g);
	fprintf(g->to, "%%v%d = Gather(%%v%d, %%v%d)\n", add(g, t), x, c);
}

/* Two identical ops, which may be merged. */
static void
twins(struct gen *g)
{
	static const char *const kinds[] = {"Tanh(%%v%d)", "Transpose(%%v%d)", "Neg(%%v%d)", "Softmax(%%v%d) {axis = 0}"};
	const int k = pick(g), x = g->id[k];
	struct shape s = g->shape[k];
	const unsigned kind = below(g, 4);

	for (int i = 0; kind == 1 && i < s.n; i++)
		s.dim[i] = g->shape[k].dim[s.n - 1 - i];
	for (int twin = 0; twin < 2; twin++) {
		tabs(g);
		fprintf(g->to, "%%v%d = ", add(g, s));
		fprintf(g->to, kinds[kind], x);
		fputc('\n', g->to);
		if (twin == 0 && below(g, 2))
			unary(g);
	}
}

/* Operations without effect: x again, in two steps or in one. */
static void
nothing(struct gen *g)
{
	static const char *const first[] = {"Transpose(%%v%d)", "Cast(%%v%d) {to = 11}", "Neg(%%v%d)", "Identity(%%v%d)"};
	static const char *const second[] = {"Transpose(%%v%d)", "Cast(%%v%d) {to = 1}", "Add(%%minus, %%v%d)", "Mul(%%v%d, %%one)"};
	const int k = pick(g), x = g->id[k];
	const struct shape s = g->shape[k];
	const unsigned kind = below(g, 4);
	const int a = g->next++;

	tabs(g);
	fprintf(g->to, "%%v%d = ", a);
	fprintf(g->to, first[kind], x);
	fputc('\n', g->to);
	tabs(g);
	fprintf(g->to, "%%v%d = ", add(g, s));
	fprintf(g->to, second[kind], a);
	fputc('\n', g->to);
}

static void ops(struct gen *g, unsigned n);

/* Values defined in a body are not visible outside. */
static void
body(struct gen *g, unsigned n, struct shape s, const char *first_results)
{
	/* The last value from outside has this shape; ops of the body may drop it from the list. */
	const int given = g->id[g->nvalue - 1];

	g->depth++;
	ops(g, n);
	const int k = pick_same(g, s);
	/* A result has to be defined in the body. */
	const int y = g->next++;
	tabs(g);
	fprintf(g->to, "%%v%d = Tanh(%%v%d)\n", y, k < 0 ? given : g->id[k]);
	tabs(g);
	fprintf(g->to, "ret %s%%v%d\n", first_results, y);
	g->depth--;
}

static void
branch(struct gen *g)
{
	const struct gen before = *g;
	const int k = pick(g);
	const struct shape s = g->shape[k];
	struct gen inner = *g;
	const int y = inner.next++;

	/* Both branches end with a value of this shape; the last one always has it. */
	inner.id[inner.nvalue - 1] = g->id[k];
	inner.shape[inner.nvalue - 1] = s;
	struct gen start = inner;
	tabs(g);
	fprintf(g->to, "%%v%d = If(%%go) {then_branch = ^then() {\n", y);
	body(&inner, 1 + below(&inner, 5), s, "");
	tabs(g);
	fprintf(g->to, "}, else_branch = ^else() {\n");
	start.next = inner.next;
	start.state = inner.state;
	body(&start, 1 + below(&start, 5), s, "");
	tabs(g);
	fprintf(g->to, "}}\n");
	*g = before;
	g->next = start.next;
	g->state = start.state;
	if (g->nvalue < MAX_VALUES) {
		g->id[g->nvalue] = y;
		g->shape[g->nvalue++] = s;
	}
}

static void
loop(struct gen *g)
{
	const struct gen before = *g;
	const int k = pick(g), x = g->id[k];
	const struct shape s = g->shape[k];
	struct gen inner = *g;
	const int y = inner.next++, i = inner.next++, c = inner.next++, p = inner.next++, d = inner.next++;
	char results[32];

	inner.id[inner.nvalue - 1] = p;
	inner.shape[inner.nvalue - 1] = s;
	tabs(g);
	fprintf(g->to, "%%v%d = Loop(%%trips, _, %%v%d) {body = ^round(%%v%d: int64[], %%v%d: bool[], "
		"%%v%d: float32[..]) {\n", y, x, i, c, p);
	fprintf(g->to, "\t%%v%d = Identity(%%v%d)\n", d, c);
	snprintf(results, sizeof results, "%%v%d, ", d);
	body(&inner, 1 + below(&inner, 5), s, results);
	tabs(g);
	fprintf(g->to, "}}\n");
	*g = before;
	g->next = inner.next;
	g->state = inner.state;
	if (g->nvalue < MAX_VALUES) {
		g->id[g->nvalue] = y;
		g->shape[g->nvalue++] = s;
	}
}

/* A loop with a stacked output and a loop-carried value that grows; both are summed. */
static void
collect(struct gen *g)
{
	const struct gen before = *g;
	const int k = pick(g), x = g->id[k], zero = 0;
	const struct shape s = g->shape[k];
	const int axis = ints(g, &zero, 1), all = g->next++, grown = g->next++;
	struct gen inner = *g;
	const int i = inner.next++, c = inner.next++, p = inner.next++, d = inner.next++, q = inner.next++;
	char results[64];

	inner.id[inner.nvalue - 1] = x;
	inner.shape[inner.nvalue - 1] = s;
	tabs(g);
	fprintf(g->to, "%%v%d, %%v%d = Loop(%%trips, _, %%v%d) {body = ^round(%%v%d: int64[], %%v%d: bool[], "
		"%%v%d: float32[..]) {\n", grown, all, x, i, c, p);
	fprintf(g->to, "\t%%v%d = Identity(%%v%d)\n\t%%v%d = Concat(%%v%d, %%v%d) {axis = 0}\n", d, c, q, p, x);
	snprintf(results, sizeof results, "%%v%d, %%v%d, ", d, q);
	body(&inner, 1 + below(&inner, 5), s, results);
	tabs(g);
	fprintf(g->to, "}}\n");
	*g = before;
	g->next = inner.next;
	g->state = inner.state;
	tabs(g);
	const int a = g->next++, b = g->next++;
	fprintf(g->to, "%%v%d = ReduceSum(%%v%d, %%v%d) {keepdims = 0}\n", a, all, axis);
	tabs(g);
	fprintf(g->to, "%%v%d = ReduceSum(%%v%d, %%v%d) {keepdims = 1}\n", b, grown, axis);
	tabs(g);
	fprintf(g->to, "%%v%d = Add(%%v%d, %%v%d)\n", add(g, s), a, b);
}

/* A scan over the outermost axis: the state is one slice. */
static void
scan(struct gen *g)
{
	const struct gen before = *g;
	const int k = pick(g), x = g->id[k];
	const struct shape s = g->shape[k];
	struct shape t = {s.n - 1, {0}};

	if (s.n < 2)
		return;
	memcpy(t.dim, s.dim + 1, (size_t)t.n * sizeof *t.dim);
	const int first = g->next++, at = g->next++, last = g->next++, all = g->next++;
	struct gen inner = *g;
	const int p = inner.next++, e = inner.next++, n = inner.next++;
	char results[32];

	inner.id[inner.nvalue - 1] = e;
	inner.shape[inner.nvalue - 1] = t;
	tabs(g);
	fprintf(g->to, "%%v%d = const int64[] {0}\n", at);
	tabs(g);
	fprintf(g->to, "%%v%d = Gather(%%v%d, %%v%d)\n", first, x, at);
	tabs(g);
	fprintf(g->to, "%%v%d, %%v%d = Scan(%%v%d, %%v%d) {num_scan_inputs = 1, body = ^step(%%v%d: float32[..], "
		"%%v%d: float32[..]) {\n", last, all, first, x, p, e);
	fprintf(g->to, "\t%%v%d = Sub(%%v%d, %%v%d)\n", n, e, p);
	snprintf(results, sizeof results, "%%v%d, ", n);
	body(&inner, 1 + below(&inner, 5), t, results);
	tabs(g);
	fprintf(g->to, "}}\n");
	*g = before;
	g->next = inner.next;
	g->state = inner.state;
	tabs(g);
	fprintf(g->to, "%%v%d = Mul(%%v%d, %%v%d)\n", add(g, s), all, last);
}

static void
ops(struct gen *g, unsigned n)
{
	static void (*const plain[])(struct gen *) = {
		unary, unary, unary, binary, binary, binary, broadcast, reshape, transpose, split,
		concat, product, normalize, types, sum, slice, empty, unsqueeze, gather, twins, nothing,
	};

	for (unsigned k = 0; k < n; k++) {
		const unsigned what = below(g, 18);
		if (what == 17 && g->depth < MAX_DEPTH)
			collect(g);
		else if (what == 16 && g->depth < MAX_DEPTH)
			scan(g);
		else if (what == 15 && g->depth < MAX_DEPTH)
			branch(g);
		else if (what == 14 && g->depth < MAX_DEPTH)
			loop(g);
		else
			plain[below(g, sizeof plain / sizeof plain[0])](g);
	}
}

static char *
program(uint64_t seed)
{
	char *text;
	size_t size;
	struct gen g = {.state = seed, .to = open_memstream(&text, &size)};

	fprintf(g.to, "program \"random\" ir 8 opset 17\n"
		"^main(%%v0: float32[4,6], %%v1: float32[2,3,4], %%go: bool[], %%trips: int64[]) {\n"
		"\t%%minus = const float32[] {-0.0}\n\t%%one = const float32[] {1.0}\n");
	g.next = 2;
	g.nvalue = 2;
	g.id[1] = 1;
	g.shape[0] = (struct shape){2, {4, 6}};
	g.shape[1] = (struct shape){3, {2, 3, 4}};
	ops(&g, 4 + below(&g, 40));
	fprintf(g.to, "\tret ");
	for (unsigned k = 0, n = 1 + below(&g, 3); k < n; k++)
		fprintf(g.to, "%s%%v%d", k ? ", " : "", g.id[pick(&g)]);
	fprintf(g.to, "\n}\n");
	fclose(g.to);
	return text;
}

/* ---- Execution. ---- */

struct results {
	om_arena *mem;
	om_tensor out[2][8];   /* [run][output] */
	uint32_t n;
};

static om_status
bind(om_exec *e, bool go, int64_t trips, float *x)
{
	const om_tensor in[] = {
		{.data = x, .type = OM_FLOAT32, .shape = om_shape_of(2, (int64_t[]){4, 6})},
		{.data = x + 24, .type = OM_FLOAT32, .shape = om_shape_of(3, (int64_t[]){2, 3, 4})},
		{.data = &go, .type = OM_BOOL, .shape = om_shape_of(0, NULL)},
		{.data = &trips, .type = OM_INT64, .shape = om_shape_of(0, NULL)},
	};

	for (uint32_t k = 0; k < 4; k++)
		OM_TRY(om_exec_input(e, k, &in[k]));
	return om_exec_run(e);
}

static om_status
run_both(om_exec *e, const om_prog *p, struct results *r)
{
	float x[48];

	for (int k = 0; k < 48; k++)
		x[k] = (float)((k * 37) % 19) / 9 - 1;
	r->n = p->first->nresult;
	for (int run = 0; run < 2; run++) {
		OM_TRY(bind(e, run == 0, run == 0 ? 3 : 0, x));
		for (uint32_t k = 0; k < r->n; k++) {
			uint64_t bytes = 0;
			r->out[run][k] = *om_exec_result(e, k);
			om_tensor *t = &r->out[run][k];
			om_tensor_bytes(t->type, &t->shape, &bytes);
			t->data = om_memdup(r->mem, t->data, bytes);
		}
	}
	return OM_OK;
}

static om_status
run_one_way(om_session *s, om_prog *p, const om_exec_options *o, struct results *r)
{
	om_exec *e;

	OM_TRY(om_exec_new(s, p, o->no_reuse ? NULL : p->plan, o, &e));
	const om_status st = run_both(e, p, r);
	om_exec_free(e);
	return st;
}

static bool
same(const struct results *a, const struct results *b)
{
	for (int run = 0; run < 2; run++)
		for (uint32_t k = 0; k < a->n; k++)
			if (!same_tensors(&a->out[run][k], &b->out[run][k]))
				return false;
	return true;
}

/* `first` is filled if `fill` is set: the run that all others have to reproduce. */
static om_status
compare(om_session *s, om_prog *p, om_arena *mem, struct results *first, bool fill)
{
	struct results r;

	for (int way = fill ? SEPARATE : SEPARATE + 1; way < NWAY; way++) {
		r.mem = mem;
		OM_TRY(run_one_way(s, p, &ways[way], &r));
		if (way == SEPARATE)
			*first = r;
		if (!same(first, &r))
			return om_fail(s, OM_MISMATCH, "the %s run differs from the run without reuse", way_text[way]);
	}
	return OM_OK;
}

/* ---- Other orders. ---- */

/* Does `op`, or an op in its bodies, read the output of an op of the graph that is not `done`? */
static bool
waits(const om_prog *p, const om_op *op, const bool *done)
{
	for (uint32_t k = 0; k < op->nin; k++) {
		const om_op *from = op->in[k] ? op->in[k]->def : NULL;
		if (from && from->block == p->first && !done[from->id])
			return true;
	}
	for (uint32_t k = 0; k < op->nbody; k++) {
		const om_block *b = op->body[k];
		for (const om_op *inner = b->first; inner; inner = inner->next)
			if (waits(p, inner, done))
				return true;
		for (uint32_t i = 0; i < b->nresult; i++)
			if (b->result[i]->def && b->result[i]->def->block == p->first && !done[b->result[i]->def->id])
				return true;
	}
	return false;
}

/* Put the ops of the graph into a random topological order. */
static void
permute(om_prog *p, om_arena *mem, struct gen *g)
{
	om_block *b = p->first;
	bool *done = OM_NEWN(mem, bool, p->nop);
	om_op **left = OM_NEWN(mem, om_op *, b->nop);
	uint32_t n = 0;

	for (om_op *op = b->first; op; op = op->next)
		left[n++] = op;
	b->first = b->last = NULL;
	while (n) {
		uint32_t k = below(g, n);
		while (waits(p, left[k], done))
			k = (k + 1) % n;
		om_op *op = left[k];
		left[k] = left[--n];
		done[op->id] = true;
		op->prev = b->last;
		op->next = NULL;
		*(b->last ? &b->last->next : &b->first) = op;
		b->last = op;
	}
}

/* Assign the steps of a new order.  Within an op of the graph, relative steps are unchanged; values
 * that it reads may be live until it ends. */
static void
set_steps(om_prog *p, om_plan *plan, const uint32_t *was)
{
	for (uint32_t i = 0; i < plan->nplace; i++) {
		const om_value *v = p->values[i];
		om_placement *at = &plan->place[i];
		if (at->where != OM_IN_ARENA)
			continue;
		const om_op *holder = v->block->owner;
		while (holder && holder->block != p->first)
			holder = holder->block->owner;
		if (!holder) {
			at->live = p->assignment->live[i];
			continue;
		}
		at->live = (om_live_interval){.first = at->live.first - was[holder->id] + holder->step,
			.last = at->live.last - was[holder->id] + holder->step};
	}
	for (const om_op *op = p->first->first; op; op = op->next)
		for (uint32_t i = 0; i < plan->nplace && op->nbody; i++) {
			om_live_interval *live = &plan->place[i].live;
			if (p->values[i]->block == p->first && op->step <= live->last && live->last < op->end)
				*live = (om_live_interval){.first = live->first, .last = op->end};
		}
}

/* Run the same plan in other orders.  Memory is poisoned by step: the steps of the new order apply. */
static om_status
reorder(om_session *s, om_host *h, om_prog *p, om_arena *mem, struct results *first, uint64_t seed)
{
	struct gen g = {.state = seed};
	om_plan *const plan = p->plan;
	uint32_t *was = OM_NEWN(mem, uint32_t, p->nop);

	for (int k = 0; k < 3; k++) {
		for (const om_op *op = p->first->first; op; op = op->next)
			was[op->id] = op->step;
		permute(p, mem, &g);
		OM_TRY(om_verify(s, p));
		OM_TRY(om_host_run(h, p, "liveness"));
		p->plan = plan;
		set_steps(p, plan, was);
		OM_TRY(om_plan_verify(s, p, plan));
		OM_TRY(compare(s, p, mem, first, false));
	}
	return OM_OK;
}

/* ---- Checks of one program. ---- */

#define BEFORE  "inline,shapes,fold,prune,"
#define BEHIND  ",liveness,views,inplace,loops,pack"

/* A planner configuration. */
struct way {
	const char *passes;          /* NULL: the default pipeline */
	bool two_arenas, parallel_safe;
	bool is_file, is_rewritten;  /* schedule=original; the same of the rewritten program */
	bool is_searched;            /* schedule=min-memory */
	om_io io;
};

/* Sizes of arenas. */
struct sizes {
	uint64_t usual, original, searched; /* by the default pipeline; is_file; is_searched */
};

static const struct way always[] = {
	{NULL, false, false}, {NULL, true, false}, {NULL, false, true}, {NULL, true, true},
	{BEFORE "schedule=original" BEHIND, false, false, true, false}, {BEFORE "schedule=bfs" BEHIND, false, false},
	{BEFORE "schedule=bfs:priority=bytes" BEHIND, false, false}, {BEFORE "schedule=min-memory" BEHIND, .is_searched = true},
	{BEFORE "schedule=min-memory:search-nodes=60" BEHIND, true, false}, {BEFORE "rematerialize=60:search-nodes=100000" BEHIND, false, false},
	{"views,inplace,pack=color", false, false}, {"views,inplace,pack=nnc-paper", false, false},
	{"views,inplace,loops,pack=nnc-code", false, false},
	{BEFORE "cse,fuse,cse,fold,prune,schedule=original" BEHIND, false, false, true, true},
	{.io = OM_IO_ARENA}, {.io = OM_IO_KEEP}, {.io = OM_IO_ARENA, .parallel_safe = true},
	{.io = OM_IO_KEEP, .parallel_safe = true},
	{"alias-io=any,views,inplace,loops,pack", .io = OM_IO_ARENA},
};

/* One of these is used in addition, selected by the seed, so that a failure is reproducible. */
static const struct way sometimes[] = {
	{"pack=color", false, false}, {"pack=nnc-paper", false, false}, {"pack=nnc-code", true, false},
	{"views,inplace,pack=color-least", false, false}, {"views,inplace,pack=pool-exact", true, false},
	{"views,inplace,pack=pool-best-fit", false, false}, {"pack=color-least", false, true}, {"pack=nnc-paper", false, true},
	{"pack=nnc-code", false, true}, {"views,inplace,pack=nnc-code", false, true}, {"views,inplace,pack=color", false, true},
	{"views,inplace,loops:period=1,pack", false, false}, {"views,inplace,loops,pack=color", true, false},
	{"views,inplace,loops:period=2,pack=pool-best-fit", false, false},
	{"inline,shapes,fold,cse=any,fuse,fold,prune,schedule=min-memory" BEHIND, false, true},
	{"fuse,cse=any,fuse,views,inplace,loops,pack=color", true, false},
};

enum { ALWAYS = sizeof always / sizeof always[0], SOMETIMES = sizeof sometimes / sizeof sometimes[0] };

/* What all programs are planned with. */
struct planner {
	om_session *s;
	om_host *h;
	const char *nodes;           /* limit of each search; NULL: theirs */
	uint64_t compared;           /* the same, of those that compare decisions; 0: theirs */
};

static bool
searches(const char *pass, size_t n)
{
	static const char *const names[] = {"pack", "schedule", "rematerialize"};
	const size_t name = strcspn(pass, ":=,");

	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		if (name == strlen(names[k]) && memcmp(pass, names[k], name) == 0)
			return !memmem(pass, n, "search-nodes=", strlen("search-nodes="));
	return false;
}

/* The pipeline with a limit on each search that has none. */
static const char *
limited(const char *passes, const char *nodes, om_arena *mem)
{
	const char *out = "";

	for (size_t n; *passes; passes += n + (passes[n] == ',')) {
		n = strcspn(passes, ",");
		out = om_printf(mem, "%s%s%.*s", out, *out ? "," : "", (int)n, passes);
		if (searches(passes, n))
			out = om_printf(mem, "%s:search-nodes=%s", out, nodes);
	}
	return out;
}

/* The smaller arena has space for a part of the peak live bytes. */
static om_status
plan_as(const struct planner *pl, om_prog *p, const struct way *way, uint64_t bytes)
{
	const char *passes = way->passes ? way->passes : om_default_pipeline();
	om_arena_spec want[] = {{.name = "fast", .device = "cpu", .limit = bytes / 2 + 64}, {.name = "slow", .device = "cpu"}};

	OM_TRY(om_host_request(pl->h, &(om_plan_request)OM_PLAN_REQUEST(.arena = want, .narena = way->two_arenas ? 2 : 0,
		.parallel_safe = way->parallel_safe, .io = way->io, .search_nodes = pl->compared)));
	return om_host_run(pl->h, p, pl->nodes ? limited(passes, pl->nodes, p->mem) : passes);
}

static bool
is_loop_body(const om_block *b)
{
	return b->owner && b->owner->opdef && (b->owner->opdef->control == OM_LOOP || b->owner->opdef->control == OM_SCAN);
}

/* Is there a loop?  Which of its values get a buffer to rotate through is a heuristic choice of the pass `loops`, which
 * depends on what the outputs of the loop are used for, and so on rewriting. */
static bool
has_loops(const om_prog *p)
{
	for (const om_block *b = p->first; b; b = b->next)
		if (is_loop_body(b))
			return true;
	return false;
}

/* Rewriting by cse and fuse does not increase memory in file order, up to the fragmentation of the
 * packing. */
static om_status
compare_bytes(om_session *s, const om_prog *p, const struct way *way, struct sizes *z)
{
	const uint64_t bytes = p->plan->arena[0].bytes;

	if (way == always)
		z->usual = bytes;
	if (way->is_searched)
		z->searched = bytes;
	if (way->is_file && !way->is_rewritten)
		z->original = bytes;
	if (way->is_rewritten && p->plan->arena[0].lower_bound > z->original && !has_loops(p))
		return om_fail(s, OM_IR, "rewritten, %llu bytes are alive at once; as it stands, it fits into %llu",
			(unsigned long long)p->plan->arena[0].lower_bound, (unsigned long long)z->original);
	return OM_OK;
}

static om_status
check_one(const struct planner *pl, const char *text, uint64_t seed, const struct way *way, om_arena *mem,
	struct results *first, struct sizes *z)
{
	om_session *s = pl->s;
	om_prog *p;
	om_status st = text_parse(s, text, &p);

	if (st == OM_OK)
		st = plan_as(pl, p, way, z->usual);
	if (st == OM_OK)
		st = om_verify(s, p);
	if (st == OM_OK)
		st = om_plan_verify(s, p, p->plan);
	if (st == OM_OK)
		st = compare_bytes(s, p, way, z);
	if (st == OM_OK)
		st = compare(s, p, mem, first, way == always);
	if (st == OM_OK && way->parallel_safe)
		st = reorder(s, pl->h, p, mem, first, seed);
	om_prog_free(p);
	return st;
}

/* ---- Orders. ---- */

static om_status
arena_of(const struct planner *pl, const char *text, const char *passes, uint64_t *bytes)
{
	om_prog *p;
	om_status st = text_parse(pl->s, text, &p);

	if (st == OM_OK)
		st = plan_as(pl, p, &(struct way){.passes = passes}, 0);
	if (st == OM_OK)
		*bytes = p->plan->arena[0].bytes;
	om_prog_free(p);
	return st;
}

static om_status
compare_sizes(om_session *s, const char *passes, uint64_t after, uint64_t before)
{
	if (after <= before)
		return OM_OK;
	return om_fail(s, OM_IR, "%s: %llu bytes; without what it changes: %llu", passes, (unsigned long long)after,
		(unsigned long long)before);
}

/* A search with more nodes never gives a larger arena.  The last row has the usual number of them: where there is a
 * limit, it is less than those before. */
static om_status
check_effort(const struct planner *pl, const char *text, const struct sizes *z)
{
	static const struct {
		const char *passes;
	} effort[] = {
		{BEFORE "schedule=min-memory:search-nodes=47" BEHIND}, {BEFORE "schedule=min-memory:search-nodes=48" BEHIND},
		{BEFORE "schedule=min-memory:search-nodes=1500" BEHIND}, {BEFORE "schedule=min-memory:search-nodes=12288" BEHIND},
		{BEFORE "schedule=min-memory" BEHIND},
	};
	uint64_t before = z->original, after;

	const size_t n = sizeof effort / sizeof effort[0] - (pl->nodes ? 1 : 0);
	for (size_t k = 0; k < n; k++) {
		OM_TRY(arena_of(pl, text, effort[k].passes, &after));
		OM_TRY(compare_sizes(pl->s, effort[k].passes, after, before));
		before = after;
	}
	return OM_OK;
}

/* Passes that may change the order do not make the arena larger than that of the order they start from. */
static om_status
check_improvements(const struct planner *pl, const char *text, const struct sizes *z)
{
	const struct {
		const char *passes;
		uint64_t before;
	} improvement[] = {
		{BEFORE "schedule=min-memory:search-nodes=60" BEHIND, z->original},
		{BEFORE "schedule=original,rematerialize=100:search-nodes=100000" BEHIND, z->original},
		{BEFORE "schedule=min-memory,rematerialize=100:search-nodes=100000" BEHIND, z->searched},
	};

	OM_TRY(compare_sizes(pl->s, "schedule=min-memory", z->searched, z->original));
	for (size_t k = 0; k < sizeof improvement / sizeof improvement[0]; k++) {
		uint64_t after;
		OM_TRY(arena_of(pl, text, improvement[k].passes, &after));
		OM_TRY(compare_sizes(pl->s, improvement[k].passes, after, improvement[k].before));
	}
	return OM_OK;
}

/* Default plan, two arenas, other orders, other planners. */
static om_status
check(const struct planner *pl, const char *text, uint64_t seed)
{
	om_arena *mem = om_arena_new();
	struct results first;
	struct sizes z = {0};
	om_status st = OM_OK;

	for (size_t k = 0; k <= ALWAYS && st == OM_OK; k++) {
		const struct way *way = k < ALWAYS ? &always[k] : &sometimes[seed % SOMETIMES];
		st = check_one(pl, text, seed, way, mem, &first, &z);
		if (st != OM_OK)
			om_note(pl->s, st, "running %s%s%s%s", way->passes ? way->passes : "the usual passes",
				way->io ? ", with inputs and outputs in the arena" : "", way->two_arenas ? ", in two arenas" : "",
				way->parallel_safe ? ", in any order" : "");
	}
	om_arena_free(mem);
	if (st == OM_OK)
		st = check_improvements(pl, text, &z);
	return st == OM_OK ? check_effort(pl, text, &z) : st;
}

int
main(int argc, char **argv)
{
	const uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	const char *fewer = getenv("OM_RANDOM_PROGRAMS");  /* where each takes long */
	const uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : fewer ? strtoull(fewer, NULL, 10) : COUNT;
	om_session *s = om_session_new();
	const char *nodes = argc > 3 ? argv[3] : NULL;
	const struct planner pl = {s, om_host_new(s, NULL), nodes, nodes ? strtoull(nodes, NULL, 10) : 0};
	unsigned failed = 0;

	for (uint64_t seed = first; seed < first + n; seed++) {
		char *text = program(seed);
		if (check(&pl, text, seed) != OM_OK && failed++ < 5)
			printf("# seed %llu: %s\n%s", (unsigned long long)seed, om_message(s), n == 1 ? text : "");
		free(text);
	}
	om_host_free(pl.h);
	om_session_free(s);
	printf("1..1\n%sok 1 - %llu random programs: planned, poisoned and without reuse agree\n",
		failed ? "not " : "", (unsigned long long)n);
	return failed != 0;
}
