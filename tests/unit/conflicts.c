/* SPDX-License-Identifier: Apache-2.0 */
/* Who conflicts with whom when any order may be run. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "onnxmem/builder.h"
#include "onnxmem/plan.h"
#include "tests/fixtures.h"
#include "unit.h"
#include "alloc/buffers.h"
#include "ir/edit.h"
#include "pack/baselines/interference_list.h"

struct bed {
	bench t;
	om_buffers *b;
	om_interference_list c;
};

static void
start(struct bed *b, const char *text, const char *passes)
{
	*b = (struct bed){.b = NULL};
	unit_start(&b->t, text, passes);
	b->b = om_buffers_new(b->t.p, b->t.p->assignment, b->t.mem);
	CU_ASSERT_FATAL(is_ok(b->t.s, om_buffers_interference(b->t.s, b->t.p, b->b, b->t.mem, &b->c)));
}

static uint32_t
buffer(const struct bed *b, const char *name)
{
	const om_value *v = om_prog_find(b->t.p, name);

	return v ? b->b->of_value[v->id] : UINT32_MAX;
}

static bool
conflict(const struct bed *b, const char *x, const char *y)
{
	const uint32_t i = buffer(b, x), k = buffer(b, y);
	unsigned n = 0;

	for (uint64_t at = 0; at < b->c.npair; at++)
		n += (b->c.pair[at][0] == i && b->c.pair[at][1] == k)
		  || (b->c.pair[at][0] == k && b->c.pair[at][1] == i);
	CU_ASSERT(n < 2);
	return n;
}

#define HEAD "program \"\" ir 8 opset 13\n"

static void
two_branches(void)
{
	struct bed b;

	start(&b, HEAD "^g(%x: float32[160]) {\n%i = const int64[] {0}\n%a = CumSum(%x, %i)\n"
		"%b = CumSum(%a, %i)\n%c = CumSum(%a, %i)\n%d = CumSum(%b, %i)\n%e = CumSum(%c, %i)\n"
		"%y = Add(%d, %e)\nret %y\n}\n", "liveness");
	CU_ASSERT_EQUAL(b.c.npair, 10);
	CU_ASSERT_EQUAL(b.c.bound, 3200);
	CU_ASSERT(b.c.is_heaviest);
	CU_ASSERT_EQUAL(b.c.npeak, 5);
	bench_close(&b.t);
}

static void
a_chain_has_one_order(void)
{
	struct bed b;

	start(&b, HEAD "^g(%x: float32[16]) {\n%a = Neg(%x)\n%b = Neg(%a)\n%c = Neg(%b)\n%d = Neg(%c)\n"
		"%y = Neg(%d)\nret %y\n}\n", "liveness");
	CU_ASSERT(conflict(&b, "a", "b"));
	CU_ASSERT(!conflict(&b, "a", "c"));
	CU_ASSERT(conflict(&b, "c", "d"));
	CU_ASSERT_EQUAL(b.c.bound, 128);
	bench_close(&b.t);
}

static void
a_body_is_part_of_its_op(void)
{
	struct bed b;

	start(&b, HEAD "^g(%x: float32[16], %go: bool[]) {\n%a = Neg(%x)\n%b = Neg(%a)\n"
		"%y = If(%go) {\nthen_branch = ^t() {\n%t = Neg(%b)\n%u = Neg(%t)\n%v = Neg(%u)\nret %v\n},\n"
		"else_branch = ^e() {\n%w = Neg(%x)\nret %w\n}\n}\n%z = Neg(%y)\nret %z\n}\n", "liveness");
	CU_ASSERT(conflict(&b, "b", "t"));
	CU_ASSERT(!conflict(&b, "b", "v"));   /* captured: live in the branch up to its last use */
	CU_ASSERT(!conflict(&b, "a", "t"));
	CU_ASSERT(conflict(&b, "t", "u"));
	CU_ASSERT(!conflict(&b, "t", "v"));   /* inside, the order is that of the steps */
	CU_ASSERT(!conflict(&b, "a", "y"));
	CU_ASSERT(!conflict(&b, "u", "y"));
	bench_close(&b.t);
}

/* ---- Against all that can be tried. ---- */

enum { OPS = 12, TRIALS = 300 };

struct graph {
	bool before[OPS][OPS];   /* ops */
	bool uses[OPS][OPS];     /* [value][op] */
};

/* Every op reads one or two values and writes a larger or smaller one. */
static char *
random_text(uint64_t seed, struct graph *g)
{
	char *text;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	memset(g, 0, sizeof *g);
	fprintf(to, HEAD "^g(%%x: float32[16]) {\n");
	for (int k = 0; k < OPS; k++) {
		const int a = (int)(om_rng_below(&seed, (uint64_t)k + 1)) - 1, b = (int)(om_rng_below(&seed, (uint64_t)k + 1)) - 1;
		fprintf(to, "%%r%d = Concat(%%%s%.0d, %%%s%.0d) {axis = 0}\n", k, a < 0 ? "x" : "v", a < 0 ? 0 : a + 1,
			b < 0 ? "x" : "v", b < 0 ? 0 : b + 1);
		fprintf(to, "%%v%d = ReduceSum(%%r%d) {keepdims = 1}\n", k + 1, k);
		if (a >= 0)
			g->uses[a][k] = true;
		if (b >= 0)
			g->uses[b][k] = true;
	}
	fprintf(to, "%%y = Neg(%%v%d)\nret %%y\n}\n", OPS);
	fclose(to);
	return text;
}

/* Node k stands for its two ops, which are in a row; its values are r and v. */
static void
close_order(struct graph *g)
{
	for (int a = 0; a < OPS; a++)
		for (int b = 0; b < OPS; b++)
			g->before[a][b] = g->uses[a][b];
	for (int k = 0; k < OPS; k++)
		for (int a = 0; a < OPS; a++)
			for (int b = 0; b < OPS; b++)
				g->before[a][b] |= g->before[a][k] && g->before[k][b];
}

/* Is value v of node `a` over before v of node `b` starts? */
static bool
is_over(const struct graph *g, int a, int b)
{
	if (!g->before[a][b])
		return false;
	for (int k = 0; k < OPS; k++)
		if (g->uses[a][k] && k != b && !g->before[k][b])
			return false;
	return true;
}

static void
random_graphs(void)
{
	for (uint64_t seed = 1; seed <= TRIALS; seed++) {
		struct graph g;
		struct bed b;
		char *text = random_text(seed, &g), x[16], y[16];
		start(&b, text, "liveness");
		close_order(&g);
		for (int i = 0; i < OPS; i++)
			for (int k = 0; k < i; k++) {
				snprintf(x, sizeof x, "v%d", i + 1);
				snprintf(y, sizeof y, "v%d", k + 1);
				const bool want = !is_over(&g, k, i) && !is_over(&g, i, k);
				CU_ASSERT_EQUAL(conflict(&b, x, y), want);
			}
		free(text);
		bench_close(&b.t);
	}
}

/* All sets of buffers that conflict with one another, one after the other. */
static uint64_t
heaviest(const struct bed *b, const bool *pair, uint32_t from, const uint32_t *set, uint32_t n, uint64_t weight)
{
	uint32_t more[2 * OPS];
	uint64_t best = weight;

	for (uint32_t k = from; k < b->b->n; k++) {
		bool fits = true;
		for (uint32_t i = 0; i < n && fits; i++)
			fits = pair[set[i] * b->b->n + k];
		if (!fits)
			continue;
		for (uint32_t i = 0; i < n; i++)
			more[i] = set[i];
		more[n] = k;
		const uint64_t w = heaviest(b, pair, k + 1, more, n + 1, weight + b->b->buf[k].bytes);
		best = w > best ? w : best;
	}
	return best;
}

static void
the_bound_is_the_heaviest_set(void)
{
	for (uint64_t seed = 1; seed <= TRIALS / 3; seed++) {
		struct graph g;
		struct bed b;
		char *text = random_text(seed, &g);
		start(&b, text, "liveness");
		bool *pair = OM_NEWN(b.t.mem, bool, b.b->n * b.b->n);
		uint64_t sum = 0;
		for (uint32_t k = 0; k < b.b->n; k++)  /* so that sizes differ */
			b.b->buf[k].bytes = 64 * (1 + (seed * 31 + k * k * 7) % 9);
		CU_ASSERT_EQUAL(om_buffers_interference(b.t.s, b.t.p, b.b, b.t.mem, &b.c), OM_OK);
		for (uint64_t k = 0; k < b.c.npair; k++)
			pair[b.c.pair[k][0] * b.b->n + b.c.pair[k][1]] =
				pair[b.c.pair[k][1] * b.b->n + b.c.pair[k][0]] = true;
		for (uint32_t k = 0; k < b.c.npeak; k++) {
			sum += b.b->buf[b.c.peak[k]].bytes;
			for (uint32_t i = 0; i < k; i++)
				CU_ASSERT(pair[b.c.peak[k] * b.b->n + b.c.peak[i]]);
		}
		CU_ASSERT(b.c.is_heaviest);
		CU_ASSERT_EQUAL(sum, b.c.bound);
		CU_ASSERT_EQUAL(b.c.bound, heaviest(&b, pair, 0, NULL, 0, 0));
		free(text);
		bench_close(&b.t);
	}
}

static CU_TestInfo conflicts_tests[] = {
	{"two branches never share", two_branches},
	{"a chain has one order", a_chain_has_one_order},
	{"a body is a part of its op", a_body_is_part_of_its_op},
	{"random graphs conflict as their definition says", random_graphs},
	{"no other set that conflicts is heavier", the_bound_is_the_heaviest_set},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("any order", conflicts_tests);
