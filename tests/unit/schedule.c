/* SPDX-License-Identifier: Apache-2.0 */
/* Orders of low peak, compared with all orders. */
#include <config.h>

#include "base/rng.h"
#include "schedule/scheduler.h"
#include "unit.h"

enum { OPS = 9, STORAGES = 24, GRAPHS = 4000 };

struct graph {
	om_schedule_op op[OPS];
	om_schedule_storage storage[STORAGES];
	uint32_t after[OPS][OPS], use[OPS][STORAGES], early[OPS][STORAGES];
	om_inplace_pair over[OPS][4];
	om_schedule_problem q;
	uint64_t state;
};

static uint32_t
below(struct graph *g, uint32_t n)
{
	return (uint32_t)om_rng_below(&g->state, n);
}

static bool
is_listed(const uint32_t *list, uint32_t n, uint32_t k)
{
	for (uint32_t i = 0; i < n; i++)
		if (list[i] == k)
			return true;
	return false;
}

static void
make_storages(struct graph *g, uint32_t i)
{
	om_schedule_op *op = &g->op[i];

	for (uint32_t k = below(g, 8) ? 1 + below(g, 8) / 6 : 0; k > 0 && g->q.nstorage < STORAGES; k--) {
		om_schedule_storage *s = &g->storage[g->q.nstorage];
		*s = (om_schedule_storage){1 + below(g, 5) * below(g, 4), i, below(g, 10) == 0};
		op->begin += s->bytes;
		for (uint32_t j = 0; j < op->nuse && op->nover < 4; j++) {
			bool free = g->storage[op->use[j]].bytes == s->bytes && below(g, 4) > 0;
			for (uint32_t n = 0; n < op->nover; n++)
				free &= g->over[i][n].needed != op->use[j];
			if (free)
				g->over[i][op->nover++] = (om_inplace_pair){g->q.nstorage, op->use[j]};
		}
		g->q.nstorage++;
	}
}

static void
make_op(struct graph *g, uint32_t i)
{
	om_schedule_op *op = &g->op[i];

	*op = (om_schedule_op){.after = g->after[i], .use = g->use[i], .over = g->over[i], .early = g->early[i]};
	for (uint32_t k = 1 + below(g, 3); k > 0 && g->q.nstorage; k--) {
		const uint32_t s = g->q.nstorage < 5 || below(g, 3) == 0 ? below(g, g->q.nstorage)
			: g->q.nstorage - 1 - below(g, 5);
		if (!is_listed(op->use, op->nuse, s) || below(g, 4) == 0)
			g->use[i][op->nuse++] = s;
	}
	if (i && below(g, 8) == 0)
		g->after[i][op->nafter++] = below(g, i);
	make_storages(g, i);
	op->begin += below(g, 4) == 0 ? below(g, 6) : 0;
	if (below(g, 6) == 0) {
		op->middle = op->begin + below(g, 6);
		for (uint32_t k = 0; k < op->nuse; k++)
			if (!is_listed(op->use, k, op->use[k]) && below(g, 2))
				g->early[i][op->ndies_early++] = op->use[k];
	}
}

static void
make_graph(struct graph *g, uint64_t seed)
{
	g->state = seed;
	g->q = (om_schedule_problem){.op = g->op, .storage = g->storage};
	for (uint32_t k = below(g, 3); k > 0; k--)
		g->storage[g->q.nstorage++] = (om_schedule_storage){1 + below(g, 6), OM_SCHEDULE_NONE, below(g, 4) == 0};
	g->q.nop = 2 + below(g, OPS - 1);
	for (uint32_t i = 0; i < g->q.nop; i++)
		make_op(g, i);
}

/* ---- The definition of the header, by sets. ---- */

static bool
is_wanted(const struct graph *g, uint32_t s, uint32_t done)
{
	if (g->storage[s].live_out)
		return true;
	for (uint32_t i = 0; i < g->q.nop; i++)
		if (!(done >> i & 1) && is_listed(g->op[i].use, g->op[i].nuse, s))
			return true;
	return false;
}

static uint64_t
live_bytes(const struct graph *g, uint32_t done)
{
	uint64_t sum = 0;

	for (uint32_t s = 0; s < g->q.nstorage; s++)
		if ((g->storage[s].producer == OM_SCHEDULE_NONE || done >> g->storage[s].producer & 1) && is_wanted(g, s, done))
			sum += g->storage[s].bytes;
	return sum;
}

static uint64_t
during(const struct graph *g, uint32_t done, uint32_t i)
{
	const om_schedule_op *op = &g->op[i];
	uint64_t begin = live_bytes(g, done) + op->begin, middle = live_bytes(g, done) + op->middle;
	uint32_t lent = 0;

	for (uint32_t k = 0; k < op->nover; k++)
		if (!(lent >> op->over[k].made & 1) && !is_wanted(g, op->over[k].needed, done | 1u << i)) {
			lent |= 1u << op->over[k].made;
			begin -= g->storage[op->over[k].made].bytes;
		}
	for (uint32_t k = 0; k < op->ndies_early; k++)
		if (!is_wanted(g, op->early[k], done | 1u << i))
			middle -= g->storage[op->early[k]].bytes;
	return op->middle && middle > begin ? middle : begin;
}

static bool
can_run(const struct graph *g, uint32_t done, uint32_t i)
{
	const om_schedule_op *op = &g->op[i];

	for (uint32_t k = 0; k < op->nafter; k++)
		if (!(done >> op->after[k] & 1))
			return false;
	for (uint32_t k = 0; k < op->nuse; k++) {
		const uint32_t producer = g->storage[op->use[k]].producer;
		if (producer != OM_SCHEDULE_NONE && !(done >> producer & 1))
			return false;
	}
	return true;
}

/* Brute force: all orders, except those that are no better than `best` already. */
static uint64_t
lowest(const struct graph *g, uint32_t done, uint64_t peak, uint64_t best)
{
	if (done + 1 == 1u << g->q.nop)
		return peak;
	for (uint32_t i = 0; i < g->q.nop; i++) {
		if (done >> i & 1 || !can_run(g, done, i))
			continue;
		const uint64_t now = during(g, done, i), most = now > peak ? now : peak;
		if (most < best) {
			const uint64_t found = lowest(g, done | 1u << i, most, best);
			best = found < best ? found : best;
		}
	}
	return best;
}

static uint64_t
peak_of(const struct graph *g, const uint32_t *order)
{
	uint64_t peak = 0;
	uint32_t done = 0;

	for (uint32_t k = 0; k < g->q.nop; k++) {
		CU_ASSERT(!(done >> order[k] & 1) && can_run(g, done, order[k]));
		const uint64_t now = during(g, done, order[k]);
		peak = now > peak ? now : peak;
		done |= 1u << order[k];
	}
	return peak;
}

static void
exact(void)
{
	om_session *s = om_session_new();
	uint32_t order[OPS], better = 0, wrong = 0;
	om_schedule_result r;
	struct graph g;

	for (uint64_t seed = 1; seed <= GRAPHS && wrong < 3; seed++) {
		make_graph(&g, seed);
		CU_ASSERT_EQUAL_FATAL(om_schedule_solve(s, &g.q, 100000, order, &r), OM_OK);
		const uint64_t best = lowest(&g, 0, 0, UINT64_MAX);
		if (r.peak != best || !r.is_proven || r.lower_bound != best) {
			printf("# seed %llu: %llu, proven %d, bound %llu; best %llu\n", (unsigned long long)seed,
				(unsigned long long)r.peak, r.is_proven, (unsigned long long)r.lower_bound,
				(unsigned long long)best);
			wrong++;
		}
		wrong += peak_of(&g, order) != r.peak || om_schedule_peak(&g.q, order) != r.peak;
		better += r.peak < r.given;
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT(better > GRAPHS / 10);
	om_session_free(s);
}

/* With very few search nodes: a valid order, never a worse one, no false proof. */
static void
short_of_nodes(void)
{
	om_session *s = om_session_new();
	uint32_t order[OPS];
	om_schedule_result r;
	struct graph g;

	for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
		make_graph(&g, seed);
		CU_ASSERT_EQUAL_FATAL(om_schedule_solve(s, &g.q, seed % 24, order, &r), OM_OK);
		CU_ASSERT_EQUAL(peak_of(&g, order), r.peak);
		CU_ASSERT(r.peak <= r.given && r.lower_bound <= r.peak);
		if (seed % 8 == 0) {
			const uint64_t best = lowest(&g, 0, 0, UINT64_MAX);
			CU_ASSERT(r.lower_bound <= best && (!r.is_proven || r.peak == best));
		}
	}
	om_session_free(s);
}

static void
in_breadth(void)
{
	uint32_t order[OPS];
	struct graph g;

	for (uint64_t seed = 1; seed <= 500; seed++) {
		make_graph(&g, seed);
		om_schedule_bfs(&g.q, seed % 2, order);
		peak_of(&g, order);
	}
}

static void
refused(void)
{
	static const uint32_t later[] = {1}, none[] = {7};
	static const om_inplace_pair over[] = {{0, 1}};
	const om_schedule_storage storage[] = {{4, 0, false}, {8, 1, false}};
	const om_schedule_op wrong[] = {
		{.after = later, .nafter = 1}, {.use = none, .nuse = 1}, {.use = later, .nuse = 1},
		{.over = over, .nover = 1, .begin = 4},
	};
	om_session *s = om_session_new();
	om_schedule_result r;
	uint32_t order[2];

	for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
		const om_schedule_op op[] = {wrong[k], {.begin = 8}};
		const om_schedule_problem q = {op, storage, 2, 2};
		CU_ASSERT_EQUAL(om_schedule_solve(s, &q, 100, order, &r), OM_INVALID);
	}
	const om_schedule_problem nothing = {0};
	CU_ASSERT_EQUAL(om_schedule_solve(s, &nothing, 100, order, &r), OM_OK);
	om_session_free(s);
}

static CU_TestInfo order_tests[] = {
	{"the peak is minimal", exact},
	{"with few nodes: valid, not worse, no false proof", short_of_nodes},
	{"breadth-first orders are valid", in_breadth},
	{"invalid problems are refused", refused},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("orders", order_tests);
