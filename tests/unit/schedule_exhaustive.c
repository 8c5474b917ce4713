/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule pass on small random graphs, compared with the passes on all orders. */
#include <config.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "onnxmem/builder.h"
#include "onnxmem/plan.h"
#include "tests/fixtures.h"
#include "unit.h"

enum { OPS = 6, GRAPHS = 150, VALUES = 16, TEXT = 2000, MOST_ORDERS = 200, MOST_OPS = 24 };

struct graph {
	uint64_t state;
	uint32_t rows[VALUES];   /* of 64 bytes */
	uint32_t n;              /* values; 0 is the input */
	uint32_t uses[VALUES];
	bool are_results;        /* values without a user are results of the graph; else summed */
	char text[TEXT];
	size_t at;
};

static uint32_t
below(struct graph *g, uint32_t n)
{
	return (uint32_t)om_rng_below(&g->state, n);
}

static void
say(struct graph *g, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	g->at += (size_t)vsnprintf(g->text + g->at, TEXT - g->at, fmt, ap);
	va_end(ap);
}

static uint32_t
pick(struct graph *g)
{
	const uint32_t k = g->n > 3 && below(g, 3) ? g->n - 1 - below(g, 3) : below(g, g->n);

	g->uses[k]++;
	return k;
}

static void
made(struct graph *g, uint32_t rows)
{
	g->rows[g->n++] = rows;
}

static void
add_op(struct graph *g)
{
	const uint32_t a = pick(g);
	uint32_t b;

	switch (below(g, 6)) {
	case 0:
		say(g, "%%v%u = Exp(%%v%u)\n", g->n, a);
		made(g, g->rows[a]);
		break;
	case 1:
		say(g, "%%v%u = CumSum(%%v%u, %%axis)\n", g->n, a);
		made(g, g->rows[a]);
		break;
	case 2:
		say(g, "%%v%u = ReduceMax(%%v%u) {axes = [0]}\n", g->n, a);
		made(g, 1);
		break;
	case 3:
		b = pick(g);
		say(g, "%%v%u = Concat(%%v%u, %%v%u) {axis = 0}\n", g->n, a, b);
		made(g, g->rows[a] + g->rows[b]);
		break;
	case 4:
		if (g->rows[a] % 2 == 0) {
			say(g, "%%v%u, %%v%u = Split(%%v%u) {axis = 0}\n", g->n, g->n + 1, a);
			made(g, g->rows[a] / 2);
			made(g, g->rows[a] / 2);
			break;
		}
		/* fallthrough */
	default:
		b = pick(g);
		if (g->rows[b] != g->rows[a])
			say(g, "%%v%u = Slice(%%v%u, %%from, %%to)\n", g->n, a);
		else
			say(g, "%%v%u = Add(%%v%u, %%v%u)\n", g->n, a, b);
		made(g, g->rows[b] != g->rows[a] ? 1 : g->rows[a]);
		break;
	}
}

/* Values without a user are summed at the end. */
static void
add_sum(struct graph *g)
{
	bool first = true;

	for (uint32_t k = 1; k < g->n; k++)
		if (!g->uses[k])
			say(g, "%%m%u = ReduceMax(%%v%u)\n", k, k);
	say(g, "%%y = Sum(");
	for (uint32_t k = 1; k < g->n; k++)
		if (!g->uses[k]) {
			say(g, "%s%%m%u", first ? "" : ", ", k);
			first = false;
		}
	say(g, ")\nret %%y\n}\n");
}

/* Values without a user are results. */
static void
add_results(struct graph *g)
{
	bool first = true;

	say(g, "ret ");
	for (uint32_t k = 1; k < g->n; k++)
		if (!g->uses[k]) {
			say(g, "%s%%v%u", first ? "" : ", ", k);
			first = false;
		}
	say(g, "\n}\n");
}

static void
make(struct graph *g, uint64_t seed, bool are_results)
{
	*g = (struct graph){.state = seed, .n = 1, .are_results = are_results};
	g->rows[0] = 1 + below(g, 4);
	say(g, "program \"\" ir 8 opset 11\n^g(%%v0: float32[%u,16]) {\n%%axis = const int64[] {0}\n"
		"%%from = const int64[1] {0}\n%%to = const int64[1] {1}\n", g->rows[0]);
	for (uint32_t k = 2 + below(g, OPS - 1); k > 0 && g->n + 2 < VALUES; k--)
		add_op(g);
	if (are_results)
		add_results(g);
	else
		add_sum(g);
}

/* ---- All orders. ---- */

struct walk {
	om_host *h;
	om_prog *p;
	const char *passes;
	om_op *op[MOST_OPS], *order[MOST_OPS];
	uint32_t n, orders;
	bool done[MOST_OPS];
	uint64_t lowest;
};

/* The bound of the buffers that these passes decide on. */
static uint64_t
in_use(om_host *h, om_prog *p, const char *passes)
{
	om_arena *mem = om_arena_new();

	CU_ASSERT_EQUAL_FATAL(om_host_run(h, p, passes), OM_OK);
	const om_buffers *b = om_buffers_new(p, p->assignment, mem);
	const uint64_t bound = om_pack_bound(b->buf, b->n, NULL);
	om_arena_free(mem);
	return bound;
}

static bool
can_run(const struct walk *w, const om_op *op)
{
	for (uint32_t k = 0; k < op->nin; k++)
		for (uint32_t i = 0; i < w->n; i++)
			if (op->in[k] && op->in[k]->def == w->op[i] && !w->done[i])
				return false;
	return true;
}

/* False: there are too many orders. */
static bool
try_all(struct walk *w, uint32_t at)
{
	if (at == w->n) {
		om_block_set_order(w->p->first, w->order);
		const uint64_t now = in_use(w->h, w->p, w->passes);
		w->lowest = now < w->lowest ? now : w->lowest;
		return ++w->orders < MOST_ORDERS;
	}
	for (uint32_t i = 0; i < w->n; i++) {
		if (w->done[i] || !can_run(w, w->op[i]))
			continue;
		w->done[i] = true;
		w->order[at] = w->op[i];
		const bool more = try_all(w, at + 1);
		w->done[i] = false;
		if (!more)
			return false;
	}
	return true;
}

static om_prog *
parsed(om_session *s, const char *text)
{
	om_prog *p;

	if (text_parse(s, text, &p) != OM_OK) {
		printf("# %s\n# in: %s\n", om_message(s), text);
		CU_FAIL_FATAL("the graph could not be read");
	}
	return p;
}

struct tally {
	unsigned compared, proven, lowest;
	unsigned floors, reached;        /* floors of all orders; equal to the lowest */
};

/* What the program needs in any order. */
static uint64_t
floor_of(om_host *h, om_prog *p)
{
	CU_ASSERT_EQUAL_FATAL(om_host_run(h, p, "pack"), OM_OK);
	return p->plan->floor;
}

/* Is the order that the pass finds the best of all, as these passes see it? */
static void
compare(om_session *s, om_host *h, const char *text, const char *passes, struct tally *t)
{
	struct walk w = {.h = h, .lowest = UINT64_MAX, .passes = passes};

	w.p = parsed(s, text);
	CU_ASSERT_EQUAL_FATAL(om_host_run(h, w.p, "shapes,fold,schedule=min-memory"), OM_OK);
	const bool is_proven = w.p->assignment->schedule->is_proven;
	const uint64_t found = in_use(h, w.p, passes), floor = floor_of(h, w.p);
	for (om_op *op = w.p->first->first; op && w.n < MOST_OPS; op = op->next)
		w.op[w.n++] = op;
	if (w.n < MOST_OPS && try_all(&w, 0)) {
		t->compared++;
		t->proven += is_proven;
		t->lowest += found == w.lowest;
		t->floors += floor > 0;
		t->reached += floor == w.lowest;
		CU_ASSERT(floor <= w.lowest);
		CU_ASSERT(found >= w.lowest);
		CU_ASSERT(!is_proven || found == w.lowest);
		if (found != w.lowest)
			printf("# %llu%s, but %llu can be had: %s\n", (unsigned long long)found, is_proven ? ", proven" : "",
				(unsigned long long)w.lowest, text);
	}
	om_prog_free(w.p);
}

static struct tally
compare_all(bool are_results, const char *passes)
{
	om_session *s = om_session_new();
	om_host *h = om_host_new(s, NULL);
	struct tally t = {0};

	for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
		struct graph g;
		make(&g, seed, are_results);
		compare(s, h, g.text, passes, &t);
	}
	CU_ASSERT(t.compared > GRAPHS / 3);
	CU_ASSERT(t.proven > t.compared / 2);
	printf("# %u graphs, lowest in %u, proven in %u; %u floors, %u of them reached\n", t.compared, t.lowest, t.proven, t.floors,
		t.reached);
	om_host_free(h);
	om_session_free(s);
	return t;
}

static void
proofs_hold(void)
{
	const struct tally t = compare_all(false, "liveness,views,inplace:concat=yes");

	CU_ASSERT(t.lowest > t.compared * 9 / 10);
	CU_ASSERT(t.floors > t.compared / 2);
	CU_ASSERT(t.reached > 0 && t.reached < t.compared);
}

/* Values may be computed in the memory of results, which is the caller's. */
static void
results_hold_values(void)
{
	const struct tally t = compare_all(true, "liveness,views,inplace");

	CU_ASSERT_EQUAL(t.lowest, t.compared);
}

/* %v3 consists of %v1, which may lie in the result: so may %v3, beyond the end of %v1. */
static void
parts_of_results_are_doubted(void)
{
	static const char text[] =
		"program \"\" ir 8 opset 11\n"
		"^g(%v0: float32[3,16]) {\n"
		"%v1 = Add(%v0, %v0)\n"
		"%v2 = Concat(%v0, %v1) {axis = 0}\n"
		"%v3 = Concat(%v1, %v0) {axis = 0}\n"
		"%v4 = Concat(%v1, %v2) {axis = 0}\n"
		"%v5 = ReduceMax(%v3) {axes = [0]}\n"
		"%v6 = Exp(%v5)\n"
		"%v7 = Exp(%v4)\n"
		"ret %v7, %v6\n"
		"}\n";
	om_session *s = om_session_new();
	om_host *h = om_host_new(s, NULL);
	struct tally t = {0};

	compare(s, h, text, "liveness,views,inplace", &t);
	CU_ASSERT_EQUAL(t.compared, 1);
	om_host_free(h);
	om_session_free(s);
}

static CU_TestInfo lowest_tests[] = {
	{"orders proven minimal are minimal", proofs_hold},
	{"orders are the lowest where values lie in results", results_hold_values},
	{"what consists of values in results is not proven", parts_of_results_are_doubted},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("lowest arenas", lowest_tests);
