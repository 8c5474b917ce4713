/* What to drop, to keep to a budget.
 *
 * Greedy first: what brings the bytes above the budget down most for its cost, summed
 * over the whole run, so that a peak with many tops is worn down step by step.  How good a
 * storage is only gets worse as others are dropped, mostly: so those are looked at
 * again that were best, until the best live_out the best.  Then what turns out not to be needed is kept
 * after all, and one that is dropped is exchanged for a cheaper one, as long as that helps.
 * Chains are solved exactly (remat_chain_dp.c).
 *
 * Where no set keeps to the budget for the cost that is allowed, budgets between are tried, each from nothing
 * dropped and, where that leads nowhere, from the best set up to then; at last that set is brought down in small
 * steps.  It ends because budgets between get closer, and each step has a lower peak; and with the effort. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "schedule/remat_schedule.h"

enum { NONE = OM_ORDER_NONE, ROUNDS = 12 };

struct candidate {
	uint32_t gap;
	double gain;             /* bytes less above the budget, by op of the run, for a unit of cost */
};

struct search {
	om_remat *g;
	uint64_t budget;
	struct candidate *all;
	uint32_t n;
	uint64_t *top;           /* by op */
	bool *kept;              /* a set put by */
	bool *best;              /* the best set so far, of all budgets */
	double best_cost;
	uint64_t best_peak;
	bool is_exact;
};

static void
copy(const struct search *x, bool *to, const bool *from)
{
	memcpy(to, from, x->g->ngap * sizeof *to);
}

/* By op: the most while it runs, and what runs again for it.  That counts with it, or dropping would look
 * bad where much is above the budget still. */
static void
find_tops(struct search *x)
{
	const om_remat *g = x->g;
	uint32_t next = 0;
	uint64_t most = 0;

	for (uint32_t at = 0; at < g->n; at++) {
		most = g->during[at] > most ? g->during[at] : most;
		if (g->run[at] != next)
			continue;
		x->top[next++] = most;
		most = 0;
	}
}

/* Bytes above the budget, over the whole run; below 0 where it may not be. */
static double
excess(struct search *x)
{
	double sum = 0;

	om_remat_run(x->g);
	if (x->g->is_bad || x->g->cost > x->g->w->most)
		return -1;
	find_tops(x);
	for (uint32_t i = 0; i < x->g->q->nop; i++)
		if (x->top[i] > x->budget)
			sum += (double)(x->top[i] - x->budget);
	return sum;
}

static bool
is_tired(const struct search *x)
{
	return x->g->looked >= x->g->w->effort;
}

static void
drop_one(void *arg, uint32_t gap)
{
	om_remat *g = arg;

	g->drop[gap] = true;
}

static void
drop(struct search *x, uint32_t gap)
{
	om_remat_needs(x->g, gap, drop_one, x->g);
}

/* ---- Greedy. ---- */

/* The set is as it was afterwards. */
static double
gain_of(struct search *x, uint32_t gap, double now, double cost)
{
	copy(x, x->kept, x->g->drop);
	drop(x, gap);
	const double then = excess(x), more = x->g->cost - cost;
	copy(x, x->g->drop, x->kept);
	if (then < 0 || then >= now)
		return 0;
	return (now - then) / (more > 0 ? more : 1e-9);
}

/* Does it help where the bytes are above the budget? */
static bool
is_above(const struct search *x, const uint32_t *above, uint32_t gap)
{
	const om_gap *at = &x->g->gap[gap];
	return above[at->back] > above[at->gone + 1];
}

/* By op: how many before it run while the bytes are above the budget. */
static uint32_t *
count_above(const struct search *x, om_arena *mem)
{
	const uint32_t n = x->g->q->nop;
	uint32_t *above = OM_NEWN(mem, uint32_t, (size_t)n + 1);

	for (uint32_t i = 0; i < n; i++)
		above[i + 1] = above[i] + (x->top[i] > x->budget);
	return above;
}

static int
by_gain(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->gain != y->gain)
		return x->gain > y->gain ? -1 : 1;
	return (x->gap > y->gap) - (x->gap < y->gap);
}

static void
list_candidates(struct search *x, double now, double cost)
{
	om_arena *mem = om_arena_new();
	const uint32_t *above = count_above(x, mem);

	x->n = 0;
	for (uint32_t k = 0; k < x->g->ngap; k++)
		if (om_remat_is_main(x->g, k) && !x->g->drop[k] && is_above(x, above, k))
			x->all[x->n++] = (struct candidate){.gap = k};
	for (uint32_t k = 0; k < x->n; k++)
		x->all[k].gain = is_tired(x) ? 0 : gain_of(x, x->all[k].gap, now, cost);
	if (x->n)
		qsort(x->all, x->n, sizeof *x->all, by_gain);
	om_arena_free(mem);
}

/* The best is looked at again, and sinks to where it belongs. */
static bool
best_stays(struct search *x, double now, double cost)
{
	struct candidate first = x->all[0];
	uint32_t k = 0;

	first.gain = gain_of(x, first.gap, now, cost);
	while (k + 1 < x->n && by_gain(&x->all[k + 1], &first) < 0) {
		x->all[k] = x->all[k + 1];
		k++;
	}
	x->all[k] = first;
	return k == 0;
}

/* False: the budget is not met. */
static bool
greedy(struct search *x)
{
	double now = excess(x), cost = x->g->cost;

	if (now < 0)
		return false;
	list_candidates(x, now, cost);
	while (now > 0 && !is_tired(x) && x->n && x->all[0].gain > 0) {
		if (!best_stays(x, now, cost))
			continue;
		if (x->all[0].gain <= 0)
			break;
		drop(x, x->all[0].gap);
		memmove(x->all, x->all + 1, --x->n * sizeof *x->all);
		now = excess(x);
		cost = x->g->cost;
		if (now > 0 && (!x->n || x->all[0].gain <= 0))  /* what did not help may help now */
			list_candidates(x, now, cost);
	}
	return now == 0;
}

/* ---- Better ones near by. ---- */

/* Is the set as it is now within the budget, and cheaper? */
static bool
is_better(struct search *x, double *cost)
{
	if (excess(x) != 0 || x->g->cost >= *cost)
		return false;
	*cost = x->g->cost;
	return true;
}

static bool
keep_after_all(struct search *x, double *cost)
{
	om_remat *g = x->g;
	bool any = false;

	for (uint32_t k = 0; k < g->ngap && !is_tired(x); k++) {
		if (!g->drop[k])
			continue;
		g->drop[k] = false;
		if (is_better(x, cost))
			any = true;
		else
			g->drop[k] = true;
	}
	return any;
}

static bool
exchange(struct search *x, uint32_t old, double *cost)
{
	om_remat *g = x->g;
	bool *was = x->kept;

	copy(x, was, g->drop);
	for (uint32_t k = 0; k < g->ngap && !is_tired(x); k++) {
		if (g->drop[k] || !om_remat_is_main(g, k))
			continue;
		g->drop[old] = false;
		drop(x, k);
		if (is_better(x, cost))
			return true;
		copy(x, g->drop, was);
	}
	return false;
}

static void
improve(struct search *x)
{
	om_remat *g = x->g;
	bool again = true;

	om_remat_run(g);
	double cost = g->cost;
	while (again && !is_tired(x)) {
		again = keep_after_all(x, &cost);
		for (uint32_t k = 0; k < g->ngap && !is_tired(x); k++)
			if (g->drop[k] && om_remat_is_main(g, k))
				again |= exchange(x, k, &cost);
	}
	om_remat_run(g);
}

/* ---- Budgets. ---- */

/* Is the set as it is now the best so far, for who wants to keep to the budget first, and
 * else the lowest peak? */
static void
offer(struct search *x)
{
	const om_remat *g = x->g;
	const uint64_t want = g->w->budget;
	const uint64_t now = g->peak > want ? g->peak : want, best = x->best_peak > want ? x->best_peak : want;

	if (g->is_bad || g->cost > g->w->most || now > best || (now == best && g->cost >= x->best_cost))
		return;
	copy(x, x->best, g->drop);
	x->best_cost = g->cost;
	x->best_peak = g->peak;
}

/* Look for a set that keeps to `budget`; it is offered. */
static bool
meet(struct search *x, uint64_t budget)
{
	om_remat *g = x->g;
	bool found, met;

	x->budget = budget;
	memset(g->drop, 0, g->ngap * sizeof *g->drop);
	met = greedy(x);
	if (!met && x->best_cost > 0) {
		copy(x, g->drop, x->best);
		met = greedy(x);
	}
	if (met)
		improve(x);
	om_remat_run(g);
	if (met)
		offer(x);
	const bool chain = om_remat_chain(g, budget, &found);
	if (chain && found && excess(x) == 0) {
		offer(x);
		met = true;
	}
	x->is_exact = chain;
	return met;
}

/* The lowest peak that can be had for the cost, about. */
static void
search_budgets(struct search *x, uint64_t low, uint64_t high)
{
	const uint64_t start = high;

	for (unsigned k = 0; k < ROUNDS && low < high && high - low > start / 512 && !is_tired(x); k++) {
		const uint64_t middle = low + (high - low) / 2;
		if (meet(x, middle))
			high = x->best_peak < middle ? x->best_peak : middle;
		else
			low = middle + 1;
	}
}

/* No run goes below what one op takes. */
static uint64_t
lowest(const om_order_problem *q)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < q->nop; i++)
		most = q->op[i].begin > most ? q->op[i].begin : most;
	return most;
}

/* From the best that there is, in small steps. */
static void
creep(struct search *x, uint64_t low)
{
	while (!is_tired(x) && x->best_peak > low && meet(x, x->best_peak - x->best_peak / 256 - 1))
		;
}

static struct search
search_new(const om_remat_request *w, om_arena *mem)
{
	om_remat *g = om_remat_new(w, mem);
	const size_t n = g->ngap;

	return (struct search){.g = g, .all = OM_NEWN(mem, struct candidate, n),
		.top = OM_NEWN(mem, uint64_t, (size_t)w->q->nop + 1),
		.kept = OM_NEWN(mem, bool, n), .best = OM_NEWN(mem, bool, n)};
}

static om_status
recompute_solve_guarded(om_session *s, const om_remat_request *w, om_arena *mem, om_remat_result *r)
{
	OM_TRY(om_order_check(s, w->q));
	struct search x = search_new(w, mem);
	om_remat_run(x.g);
	x.best_peak = r->given = x.g->peak;
	if (x.best_peak > w->budget && !meet(&x, w->budget)) {
		x.is_exact = false;
		const uint64_t low = w->budget > lowest(w->q) ? w->budget : lowest(w->q);
		search_budgets(&x, low, r->given);
		creep(&x, low);
	}
	copy(&x, x.g->drop, x.best);
	om_remat_run(x.g);
	r->run = x.g->run;
	r->n = x.g->n;
	r->peak = x.g->peak;
	r->cost = x.g->cost;
	r->is_exact = x.is_exact;
	return OM_OK;
}

om_status
om_remat_solve(om_session *s, const om_remat_request *w, om_arena *mem, om_remat_result *r)
{
	OM_GUARDED(s, recompute_solve_guarded(s, w, mem, r));
}

/* The longest gap of a storage; the last one, where there is no other. */
static uint32_t
longest(const om_remat *g, uint32_t s)
{
	uint32_t best = g->first[s + 1] - 1;

	for (uint32_t k = g->first[s]; k + 1 < g->first[s + 1]; k++)
		if (g->gap[best].back == NONE || g->gap[k].back - g->gap[k].gone > g->gap[best].back - g->gap[best].gone)
			best = k;
	return best;
}

uint64_t
om_remat_peak(const om_remat_request *w, const bool *dropped, double *cost)
{
	om_arena *mem = om_arena_new();
	om_remat *g = om_remat_new(w, mem);

	for (uint32_t s = 0; s < w->q->nstorage; s++)
		g->drop[longest(g, s)] = dropped[s] && g->may[s];
	om_remat_run(g);
	const uint64_t peak = g->is_bad ? UINT64_MAX : g->peak;
	*cost = g->cost;
	om_arena_free(mem);
	return peak;
}
