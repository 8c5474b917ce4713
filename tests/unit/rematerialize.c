/* SPDX-License-Identifier: Apache-2.0 */
/* Rematerialization: chains compared with all sets, and schedules checked by a
 * naive simulation. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "schedule/rematerialize.h"
#include "unit.h"

enum { LINKS = 9, OPS = 2 * LINKS + 2, STORAGES = 2 * OPS, CHAINS = 300, GRAPHS = 400 };

struct graph {
	om_schedule_op op[OPS];
	om_schedule_storage storage[STORAGES];
	uint32_t use[OPS][8], until[OPS];
	double cost[OPS];
	om_schedule_problem q;
	om_remat_request w;
	uint64_t state;
};

static uint32_t
below(struct graph *g, uint32_t n)
{
	return (uint32_t)om_rng_below(&g->state, n);
}

static uint32_t
add_op(struct graph *g, uint64_t bytes, double cost)
{
	const uint32_t i = g->q.nop++;

	g->op[i] = (om_schedule_op){.use = g->use[i], .begin = bytes};
	g->cost[i] = cost;
	g->until[i] = OM_SCHEDULE_NONE;
	g->storage[g->q.nstorage] = (om_schedule_storage){bytes, i, false};
	return g->q.nstorage++;
}

static void
use(struct graph *g, uint32_t s)
{
	om_schedule_op *op = &g->op[g->q.nop - 1];
	g->use[g->q.nop - 1][op->nuse++] = s;
}

static void
start(struct graph *g, uint64_t seed)
{
	*g = (struct graph){.state = seed};
	g->q.op = g->op;
	g->q.storage = g->storage;
	g->w = (om_remat_request){.q = &g->q, .cost = g->cost, .until = g->until, .most = 1e18, .effort = 1u << 24};
}

/* x1 = f(), x2 = f(x1), ...; then gradients from the last to the first, each of
 * which uses its x. */
static void
make_chain(struct graph *g, uint64_t seed)
{
	uint32_t x[LINKS], last = 0;

	start(g, seed);
	const uint32_t n = 2 + below(g, LINKS - 1);
	for (uint32_t k = 0; k < n; k++) {
		x[k] = add_op(g, 1 + below(g, 20), 1 + below(g, 9));
		if (k)
			use(g, x[k - 1]);
	}
	for (uint32_t k = n; k-- > 0;) {
		const uint32_t made = add_op(g, 1 + below(g, 6), 1);
		g->until[g->q.nop - 1] = 0;
		use(g, x[k]);
		if (k + 1 < n)
			use(g, last);
		last = made;
	}
	g->storage[last].live_out = true;
}

/* The least cost of a peak of at most `budget`; below 0: impossible. */
static double
least(const struct graph *g, uint64_t budget)
{
	double best = -1;

	for (uint32_t set = 0; set < 1u << (g->q.nstorage / 2); set++) {
		bool drop[STORAGES] = {0};
		double cost;
		for (uint32_t s = 0; s < g->q.nstorage / 2; s++)
			drop[s] = set >> s & 1;
		if (om_remat_peak(&g->w, drop, &cost) <= budget && (best < 0 || cost < best))
			best = cost;
	}
	return best;
}

static void
chains_are_solved_exactly(void)
{
	om_session *s = om_session_new();

	for (uint64_t seed = 0; seed < CHAINS; seed++) {
		struct graph g;
		om_remat_result r;
		om_arena *mem = om_arena_new();
		make_chain(&g, seed);
		CU_ASSERT_EQUAL_FATAL(om_remat_solve(s, &g.w, mem, &r), OM_OK);
		const uint64_t given = r.given, lowest = r.peak;
		g.w.budget = lowest + below(&g, (uint32_t)(given - lowest) + 1);
		const double best = least(&g, g.w.budget);
		CU_ASSERT_EQUAL_FATAL(om_remat_solve(s, &g.w, mem, &r), OM_OK);
		CU_ASSERT(r.peak <= g.w.budget);
		CU_ASSERT(r.peak >= given || r.is_exact || r.cost == 0);
		if (r.cost != best)
			printf("# chain %d: costs %g, best %g\n", (int)seed, r.cost, best);
		CU_ASSERT(r.cost == best);
		CU_ASSERT(least(&g, lowest) >= 0 && (lowest == 0 || least(&g, lowest - 1) < 0));
		om_arena_free(mem);
	}
	om_session_free(s);
}

/* ---- Any graph. ---- */

static void
make_graph(struct graph *g, uint64_t seed)
{
	start(g, seed);
	const uint32_t n = 3 + below(g, OPS - 3);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t made = add_op(g, 1 + below(g, 20), below(g, 9)), had = made;
		for (uint32_t k = 0; had && k < 3; k++) {
			const uint32_t back = below(g, 3) ? below(g, had < 3 ? had : 3) : below(g, had);
			use(g, had - 1 - back);
		}
		if (below(g, 5) == 0)
			g->until[i] = below(g, 2) ? 0 : i + below(g, n - i);
		g->storage[made].live_out = below(g, 9) == 0;
	}
	g->w.most = below(g, 3) ? 1e18 : below(g, 30);
	g->w.budget = below(g, 3) ? 0 : below(g, 80);
}

/* Every op has its inputs, runs in order, and again only within its limit; the peak
 * is that of the live bytes. */
static void
walk(const struct graph *g, const om_remat_result *r)
{
	bool seen[OPS] = {0};
	uint64_t peak = 0;
	uint32_t next = 0;
	double cost = 0;

	for (uint32_t at = 0; at < r->n; at++) {
		const om_schedule_op *op = &g->op[r->run[at]];
		uint64_t now = op->begin;
		if (seen[r->run[at]]) {
			cost += g->cost[r->run[at]];
			CU_ASSERT(next <= g->until[r->run[at]]);
		} else {
			CU_ASSERT(r->run[at] == next++);
		}
		seen[r->run[at]] = true;
		for (uint32_t s = 0; s < g->q.nstorage; s++) {
			bool born = false, needed = false;
			for (uint32_t k = 0; k < at; k++)
				born |= r->run[k] == g->storage[s].producer;
			for (uint32_t k = at; k < r->n && !(k > at && r->run[k] == g->storage[s].producer); k++)
				for (uint32_t u = 0; u < g->op[r->run[k]].nuse; u++)
					needed |= g->op[r->run[k]].use[u] == s;
			bool again = r->run[at] == g->storage[s].producer;
			for (uint32_t k = at + 1; k < r->n; k++)
				again |= r->run[k] == g->storage[s].producer;
			now += born && r->run[at] != g->storage[s].producer && (needed || (g->storage[s].live_out && !again))
				? g->storage[s].bytes : 0;
		}
		for (uint32_t k = 0; k < op->nuse; k++)
			CU_ASSERT(seen[g->storage[op->use[k]].producer]);
		peak = now > peak ? now : peak;
	}
	CU_ASSERT(next == g->q.nop);
	CU_ASSERT(cost == r->cost && cost <= g->w.most);
	if (peak != r->peak)
		printf("# peak %llu, said to be %llu\n", (unsigned long long)peak, (unsigned long long)r->peak);
	CU_ASSERT(peak == r->peak && r->peak <= r->given);
}

static void
runs_are_what_they_say(void)
{
	om_session *s = om_session_new();
	uint32_t lower = 0;

	for (uint64_t seed = 0; seed < GRAPHS; seed++) {
		struct graph g;
		om_remat_result r;
		om_arena *mem = om_arena_new();
		make_graph(&g, seed);
		CU_ASSERT_EQUAL_FATAL(om_remat_solve(s, &g.w, mem, &r), OM_OK);
		walk(&g, &r);
		lower += r.peak < r.given;
		om_arena_free(mem);
	}
	printf("# %d graphs, lower in %u\n", GRAPHS, lower);
	om_session_free(s);
}

/* x is used at the start, in the middle and at the end, and large storages are made
 * in both gaps: it is recomputed twice. */
static void
each_gap_by_itself(void)
{
	om_session *s = om_session_new();
	om_arena *mem = om_arena_new();
	om_remat_result r;
	struct graph g;
	uint32_t last = 0;

	start(&g, 1);
	const uint32_t x = add_op(&g, 10, 1);
	for (int gap = 0; gap < 2; gap++) {
		for (int k = 0; k < 3; k++) {
			const uint32_t large = add_op(&g, 40, 100);
			if (k)
				use(&g, last);
			last = large;
		}
		last = add_op(&g, 1, 100);
		use(&g, g.q.nstorage - 2);
		add_op(&g, 1, 100);
		use(&g, last);
		use(&g, x);
		g.storage[g.q.nstorage - 1].live_out = true;
	}
	CU_ASSERT_EQUAL_FATAL(om_remat_solve(s, &g.w, mem, &r), OM_OK);
	walk(&g, &r);
	CU_ASSERT(r.given == 91 && r.peak == 81);
	CU_ASSERT(r.n == g.q.nop + 2 && r.cost == 2);
	om_arena_free(mem);
	om_session_free(s);
}

static CU_TestInfo rematerialize_tests[] = {
	{"gaps are independent", each_gap_by_itself},
	{"chains are solved exactly", chains_are_solved_exactly},
	{"results match a simulation", runs_are_what_they_say},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("rematerialize", rematerialize_tests);
