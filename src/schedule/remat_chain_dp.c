/* SPDX-License-Identifier: Apache-2.0 */
/* Chains: which storages to keep, exactly, by dynamic programming.
 *
 * Storages form a chain if they are used again in the reverse of the order in which
 * they are made, and each is recomputed from the one before it, with no other input
 * than storages that are live anyway.  Then the kept storages divide the chain into
 * segments.  A segment is recomputed as a whole when its last storage is used; the
 * bytes live from then until the use of its first one depend on the bytes kept
 * before it alone, not on which storages these are.
 *
 * So from left to right, for each storage that may be kept next: all Pareto-optimal
 * pairs of bytes kept so far and cost so far.  Every set of storages is considered
 * in that way, so none that stays within the budget costs less, with the bytes as
 * they are counted here: in-place computation that becomes possible because a
 * storage was dropped is not counted.
 *
 * After Beaumont, Herrmann, Pallez and Shilova, "Optimal memory-aware
 * backpropagation of deep join networks" (2020), with each storage recomputed at
 * most once.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "schedule/remat_schedule.h"

#define NONE OM_SCHEDULE_NONE
enum { MAX_CHAIN = 300 };

/* The step from one storage of the chain to the next. */
struct link {
	uint32_t s, gap;
	uint64_t bytes, recompute_peak;  /* recompute_peak: with intermediates */
	double cost;
	uint64_t forward, backward;  /* load if none is kept: up to its last use before the gap; after the gap */
	uint64_t live_at_reuse;          /* bytes live before the op that uses it again */
};

struct chain {
	om_remat *g;
	struct link *link;       /* from 1 to n; 0 is the start */
	uint32_t n;
	uint64_t budget;
	uint32_t before;         /* the storage that the current one is recomputed from */
	bool is_chain, reaches_before;
	bool *has_gap;           /* by storage: it has a gap to be dropped in */
	uint32_t *seen, visits;  /* by storage: the last visit */
};

struct chain_option {
	uint64_t kept;
	double cost;
	uint32_t from, option;      /* the previous kept link, and the index of its option */
};

struct chain_options {
	struct chain_option *option;
	size_t n, cap;
};

/* ---- Is it a chain? ---- */

static int
compare_gone(const void *a, const void *b)
{
	const struct link *x = a, *y = b;
	return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Follow the ops that recompute `s` before op `i`, from live storages or from the
 * storage before it in the chain. */
static void
follow_ops(struct chain *c, struct link *to, uint32_t s, uint32_t i)
{
	om_remat *g = c->g;
	const uint32_t m = g->q->storage[s].producer;
	const om_schedule_op *op = &g->q->op[m];

	c->is_chain &= c->seen[s] != c->visits;
	c->seen[s] = c->visits;
	if (!c->is_chain)
		return;
	to->cost += g->w->cost[m];
	to->recompute_peak += op->begin;
	c->is_chain &= i <= g->w->until[m];
	for (uint32_t k = 0; k < op->nuse && c->is_chain; k++) {
		const uint32_t u = op->use[k];
		if (u == c->before)
			c->reaches_before = true;
		else if (c->has_gap[u])
			c->is_chain = false;
		else if (g->end[u] < i && !g->may[u])
			c->is_chain = false;
		else if (g->end[u] < i)
			follow_ops(c, to, u, i);
	}
}

static bool
make_links(struct chain *c)
{
	om_remat *g = c->g;

	for (uint32_t k = 0; k < g->ngap; k++)
		if (om_remat_is_candidate(g, k)) {
			if (c->n == MAX_CHAIN || c->has_gap[g->gap[k].s])
				return false;
			c->has_gap[g->gap[k].s] = true;
			c->link[++c->n] = (struct link){.s = g->gap[k].s, .gap = k, .bytes = g->gap[k].gone};
		}
	qsort(c->link + 1, c->n, sizeof *c->link, compare_gone);
	c->is_chain = c->n > 0;
	for (uint32_t j = 1; j <= c->n && c->is_chain; j++) {
		struct link *to = &c->link[j];
		to->bytes = g->q->storage[to->s].bytes;
		c->before = j > 1 ? c->link[j - 1].s : NONE;
		c->reaches_before = j == 1;
		c->visits++;
		follow_ops(c, to, to->s, g->gap[to->gap].back);
		c->is_chain &= c->reaches_before;
		if (j > 1)
			c->is_chain &= g->gap[to[-1].gap].gone < g->gap[to->gap].gone && g->gap[to->gap].back < g->gap[to[-1].gap].back;
	}
	return c->is_chain;
}

/* ---- The load if no storage is kept. ---- */

static void
find_loads(struct chain *c)
{
	om_remat *g = c->g;
	const uint32_t nop = g->q->nop;
	uint32_t j = 0, down = 0;
	uint64_t in_gap = 0;

	memset(g->drop, 0, g->ngap * sizeof *g->drop);
	om_remat_run(g);
	for (uint32_t i = 0; i < nop; i++) {
		if (down && i == g->gap[c->link[down].gap].back)   /* the last one in its gap is used again */
			c->link[down].live_at_reuse = g->before[i] - in_gap;
		while (down && i >= g->gap[c->link[down].gap].back)
			in_gap -= c->link[down--].bytes;
		const uint64_t load = g->during[i] - in_gap;
		uint64_t *to = down == j && j < c->n ? &c->link[j + 1].forward : &c->link[down].backward;
		*to = load > *to ? load : *to;
		while (j < c->n && i >= g->gap[c->link[j + 1].gap].gone)
			in_gap += c->link[down = ++j].bytes;
	}
}

/* ---- Options: Pareto-optimal pairs of bytes and cost. ---- */

static void
add_option(om_arena *mem, struct chain_options *to, struct chain_option w)
{
	size_t at = 0, from;

	while (at < to->n && to->option[at].kept <= w.kept)
		if (to->option[at++].cost <= w.cost)
			return;
	for (from = at; from < to->n && to->option[from].cost >= w.cost; from++)
		;
	if (from == at)
		OM_PUSH(mem, to->option, to->n, to->cap, w);
	const size_t left = from == at ? to->n - 1 - at : to->n - from;
	memmove(to->option + at + 1, to->option + (from == at ? at : from), left * sizeof w);
	to->option[at] = w;
	to->n = at + 1 + left;
}

/* The peak of the segment between the links a and e, besides the bytes kept up to
 * a. */
static uint64_t
segment_peak(const struct chain *c, uint32_t a, uint32_t e, double *cost)
{
	uint64_t sum = 0, peak = c->link[a].backward, recompute_peak = 0;

	*cost = 0;
	for (uint32_t j = a + 1; j < e; j++) {
		const struct link *l = &c->link[j];
		recompute_peak = sum + l->recompute_peak > recompute_peak ? sum + l->recompute_peak : recompute_peak;
		sum += l->bytes;
		*cost += l->cost;
		/* A storage is used after those that follow it; the last one, before it is recomputed. */
		const uint64_t now = l->backward + (j + 1 < e ? sum : 0);
		peak = now > peak ? now : peak;
	}
	if (e > a + 1 && c->link[e - 1].live_at_reuse + recompute_peak > peak)
		peak = c->link[e - 1].live_at_reuse + recompute_peak;
	for (uint32_t j = a + 1; j <= e && j <= c->n; j++)
		peak = c->link[j].forward > peak ? c->link[j].forward : peak;
	return peak;
}

static void
extend_options(struct chain *c, struct chain_options *options, uint32_t a, uint32_t e)
{
	double cost;
	const uint64_t peak = segment_peak(c, a, e, &cost);

	for (size_t k = 0; k < options[a].n; k++) {
		const struct chain_option *w = &options[a].option[k];
		if (w->kept + peak <= c->budget)
			add_option(c->g->mem, &options[e], (struct chain_option){w->kept + (e <= c->n ? c->link[e].bytes
				: 0),
				w->cost + cost,
				a, (uint32_t)k});
	}
}

static void
drop_dependence(void *arg, uint32_t gap)
{
	om_remat *g = arg;

	g->drop[gap] |= !om_remat_is_candidate(g, gap);
}

/* Drop the storages that the best option does not keep. */
static void
drop_unkept(struct chain *c, const struct chain_options *options)
{
	om_remat *g = c->g;
	const struct chain_option *w = &options[c->n + 1].option[0];

	for (size_t k = 1; k < options[c->n + 1].n; k++)
		if (options[c->n + 1].option[k].cost < w->cost)
			w = &options[c->n + 1].option[k];
	for (uint32_t j = 1; j <= c->n; j++)
		g->drop[c->link[j].gap] = true;
	for (uint32_t at = w->from; at; at = w->from) {
		g->drop[c->link[at].gap] = false;
		w = &options[at].option[w->option];
	}
	for (uint32_t j = 1; j <= c->n; j++)
		if (g->drop[c->link[j].gap])
			om_remat_for_each_dependence(g, c->link[j].gap, drop_dependence, g);
}

bool
om_remat_chain(om_remat *g, uint64_t budget, bool *found)
{
	struct chain c = {.g = g, .link = OM_NEWN(g->mem, struct link, MAX_CHAIN + 2), .budget = budget,
		.has_gap = OM_NEWN(g->mem, bool, g->q->nstorage), .seen = OM_NEWN(g->mem, uint32_t, g->q->nstorage)};
	bool *old_drop = om_memdup(g->mem, g->drop, g->ngap * sizeof *old_drop);

	*found = false;
	if (!make_links(&c))
		return false;
	find_loads(&c);
	struct chain_options *options = OM_NEWN(g->mem, struct chain_options, (size_t)c.n + 2);
	add_option(g->mem, &options[0], (struct chain_option){0});
	for (uint32_t a = 0; a <= c.n; a++)
		for (uint32_t e = a + 1; e <= c.n + 1; e++)
			extend_options(&c, options, a, e);
	*found = options[c.n + 1].n > 0;
	if (*found)
		drop_unkept(&c, options);
	else
		memcpy(g->drop, old_drop, g->ngap * sizeof *old_drop);
	return true;
}
