/* SPDX-License-Identifier: Apache-2.0 */
/* Which storages to drop to stay within a budget.
 *
 * First greedily: the candidate that lowers the bytes above the budget most for its
 * cost, summed over the whole schedule, so that a peak with many maxima is lowered
 * step by step.  The gain of a candidate usually only shrinks as others are
 * dropped: so the best candidate is evaluated again until it remains the best.
 * Then storages whose drop turns out to be unnecessary are kept, and a dropped one
 * is exchanged for a cheaper one, while that helps.  Chains are solved exactly
 * (remat_chain_dp.c).
 *
 * If no set stays within the budget for the permitted cost, budgets between are
 * tried, each from the empty set and, if that fails, from the best set so far;
 * finally that set is improved in small steps.  It terminates because the budgets
 * between converge, and each step has a lower peak; and at the limit of effort.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "schedule/remat_schedule.h"

#define NONE OM_SCHEDULE_NONE
enum { MAX_BISECTIONS = 12 };

struct candidate {
	uint32_t gap;
	double gain;             /* decrease of the bytes above the budget, summed over ops, per unit of cost */
};

struct remat_search {
	om_remat *g;
	uint64_t budget;
	struct candidate *all;
	uint32_t n;
	uint64_t *peak_of;           /* by op */
	bool *saved;              /* a saved set */
	bool *best;              /* the best set so far, of all budgets */
	double best_cost;
	uint64_t best_peak;
	bool is_exact;
};

static void
copy_set(const struct remat_search *x, bool *to, const bool *from)
{
	memcpy(to, from, x->g->ngap * sizeof *to);
}

/* By op: the peak while it runs and while the recomputation for it runs.  That
 * recomputation counts for the op, else dropping would look bad while much is above
 * the budget. */
static void
find_peaks(struct remat_search *x)
{
	const om_remat *g = x->g;
	uint32_t next = 0;
	uint64_t most = 0;

	for (uint32_t at = 0; at < g->n; at++) {
		most = g->during[at] > most ? g->during[at] : most;
		if (g->run[at] != next)
			continue;
		x->peak_of[next++] = most;
		most = 0;
	}
}

/* Bytes above the budget, over the whole schedule; below 0 if it is not permitted. */
static double
excess(struct remat_search *x)
{
	double sum = 0;

	om_remat_run(x->g);
	if (x->g->is_bad || x->g->cost > x->g->w->most)
		return -1;
	find_peaks(x);
	for (uint32_t i = 0; i < x->g->q->nop; i++)
		if (x->peak_of[i] > x->budget)
			sum += (double)(x->peak_of[i] - x->budget);
	return sum;
}

static bool
is_out_of_effort(const struct remat_search *x)
{
	return x->g->looked >= x->g->w->effort;
}

static void
add_dropped(void *arg, uint32_t gap)
{
	om_remat *g = arg;

	g->drop[gap] = true;
}

static void
drop_gap(struct remat_search *x, uint32_t gap)
{
	om_remat_for_each_dependence(x->g, gap, add_dropped, x->g);
}

/* ---- Greedy. ---- */

/* The set is restored. */
static double
candidate_gain(struct remat_search *x, uint32_t gap, double current, double cost)
{
	copy_set(x, x->saved, x->g->drop);
	drop_gap(x, gap);
	const double after = excess(x), more = x->g->cost - cost;
	copy_set(x, x->g->drop, x->saved);
	if (after < 0 || after >= current)
		return 0;
	return (current - after) / (more > 0 ? more : 1e-9);
}

/* Does the gap contain an op at which the bytes are above the budget? */
static bool
has_excess(const struct remat_search *x, const uint32_t *above, uint32_t gap)
{
	const om_remat_gap *at = &x->g->gap[gap];
	return above[at->back] > above[at->gone + 1];
}

/* By op: how many ops before it run above the budget. */
static uint32_t *
count_above(const struct remat_search *x, om_arena *mem)
{
	const uint32_t n = x->g->q->nop;
	uint32_t *above = OM_NEWN(mem, uint32_t, (size_t)n + 1);

	for (uint32_t i = 0; i < n; i++)
		above[i + 1] = above[i] + (x->peak_of[i] > x->budget);
	return above;
}

static int
compare_gain(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->gain != y->gain)
		return x->gain > y->gain ? -1 : 1;
	return (x->gap > y->gap) - (x->gap < y->gap);
}

static void
list_candidates(struct remat_search *x, double current, double cost)
{
	om_arena *mem = om_arena_new();
	const uint32_t *above = count_above(x, mem);

	x->n = 0;
	for (uint32_t k = 0; k < x->g->ngap; k++)
		if (om_remat_is_candidate(x->g, k) && !x->g->drop[k] && has_excess(x, above, k))
			x->all[x->n++] = (struct candidate){.gap = k};
	for (uint32_t k = 0; k < x->n; k++)
		x->all[k].gain = is_out_of_effort(x) ? 0 : candidate_gain(x, x->all[k].gap, current, cost);
	if (x->n)
		qsort(x->all, x->n, sizeof *x->all, compare_gain);
	om_arena_free(mem);
}

/* Evaluate the best candidate again and move it to its place; true if it remains
 * the best. */
static bool
reevaluate_best(struct remat_search *x, double current, double cost)
{
	struct candidate first = x->all[0];
	uint32_t k = 0;

	first.gain = candidate_gain(x, first.gap, current, cost);
	while (k + 1 < x->n && compare_gain(&x->all[k + 1], &first) < 0) {
		x->all[k] = x->all[k + 1];
		k++;
	}
	x->all[k] = first;
	return k == 0;
}

/* False: the budget is exceeded. */
static bool
run_greedy(struct remat_search *x)
{
	double current = excess(x), cost = x->g->cost;

	if (current < 0)
		return false;
	list_candidates(x, current, cost);
	while (current > 0 && !is_out_of_effort(x) && x->n && x->all[0].gain > 0) {
		if (!reevaluate_best(x, current, cost))
			continue;
		if (x->all[0].gain <= 0)
			break;
		drop_gap(x, x->all[0].gap);
		memmove(x->all, x->all + 1, --x->n * sizeof *x->all);
		current = excess(x);
		cost = x->g->cost;
		if (current > 0 && (!x->n || x->all[0].gain <= 0))  /* a candidate without gain may have one now */
			list_candidates(x, current, cost);
	}
	return current == 0;
}

/* ---- Local improvement. ---- */

/* Is the current set within the budget, and cheaper? */
static bool
is_better(struct remat_search *x, double *cost)
{
	if (excess(x) != 0 || x->g->cost >= *cost)
		return false;
	*cost = x->g->cost;
	return true;
}

static bool
keep_unneeded(struct remat_search *x, double *cost)
{
	om_remat *g = x->g;
	bool any = false;

	for (uint32_t k = 0; k < g->ngap && !is_out_of_effort(x); k++) {
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
exchange_dropped(struct remat_search *x, uint32_t old, double *cost)
{
	om_remat *g = x->g;
	bool *saved = x->saved;

	copy_set(x, saved, g->drop);
	for (uint32_t k = 0; k < g->ngap && !is_out_of_effort(x); k++) {
		if (g->drop[k] || !om_remat_is_candidate(g, k))
			continue;
		g->drop[old] = false;
		drop_gap(x, k);
		if (is_better(x, cost))
			return true;
		copy_set(x, g->drop, saved);
	}
	return false;
}

static void
improve_set(struct remat_search *x)
{
	om_remat *g = x->g;
	bool improved = true;

	om_remat_run(g);
	double cost = g->cost;
	while (improved && !is_out_of_effort(x)) {
		improved = keep_unneeded(x, &cost);
		for (uint32_t k = 0; k < g->ngap && !is_out_of_effort(x); k++)
			if (g->drop[k] && om_remat_is_candidate(g, k))
				improved |= exchange_dropped(x, k, &cost);
	}
	om_remat_run(g);
}

/* ---- Budgets. ---- */

/* Save the current set if it is the best so far: first by the excess over the
 * budget, then by cost. */
static void
update_best(struct remat_search *x)
{
	const om_remat *g = x->g;
	const uint64_t budget = g->w->budget;
	const uint64_t current = g->peak > budget ? g->peak : budget, best = x->best_peak > budget ? x->best_peak
		: budget;

	if (g->is_bad || g->cost > g->w->most || current > best || (current == best && g->cost >= x->best_cost))
		return;
	copy_set(x, x->best, g->drop);
	x->best_cost = g->cost;
	x->best_peak = g->peak;
}

/* Search for a set that stays within `budget`, and save it if it is the best. */
static bool
try_budget(struct remat_search *x, uint64_t budget)
{
	om_remat *g = x->g;
	bool found, met;

	x->budget = budget;
	memset(g->drop, 0, g->ngap * sizeof *g->drop);
	met = run_greedy(x);
	if (!met && x->best_cost > 0) {
		copy_set(x, g->drop, x->best);
		met = run_greedy(x);
	}
	if (met)
		improve_set(x);
	om_remat_run(g);
	if (met)
		update_best(x);
	const bool chain = om_remat_chain(g, budget, &found);
	if (chain && found && excess(x) == 0) {
		update_best(x);
		met = true;
	}
	x->is_exact = chain;
	return met;
}

/* Bisect for about the lowest peak within the cost limit. */
static void
search_budgets(struct remat_search *x, uint64_t low, uint64_t high)
{
	const uint64_t start = high;

	for (unsigned k = 0; k < MAX_BISECTIONS && low < high && high - low > start / 512
		&& !is_out_of_effort(x); k++) {
		const uint64_t middle = low + (high - low) / 2;
		if (try_budget(x, middle))
			high = x->best_peak < middle ? x->best_peak : middle;
		else
			low = middle + 1;
	}
}

/* A lower bound: the bytes that one op requires. */
static uint64_t
max_op_bytes(const om_schedule_problem *q)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < q->nop; i++)
		most = q->op[i].begin > most ? q->op[i].begin : most;
	return most;
}

/* Lower the peak of the best set in small steps. */
static void
lower_in_steps(struct remat_search *x, uint64_t low)
{
	while (!is_out_of_effort(x) && x->best_peak > low && try_budget(x, x->best_peak - x->best_peak / 256 - 1))
		;
}

static struct remat_search
search_new(const om_remat_request *w, om_arena *mem)
{
	om_remat *g = om_remat_new(w, mem);
	const size_t n = g->ngap;

	return (struct remat_search){.g = g, .all = OM_NEWN(mem, struct candidate, n),
		.peak_of = OM_NEWN(mem, uint64_t, (size_t)w->q->nop + 1),
		.saved = OM_NEWN(mem, bool, n), .best = OM_NEWN(mem, bool, n)};
}

static om_status
remat_solve_guarded(om_session *s, const om_remat_request *w, om_arena *mem, om_remat_result *r)
{
	OM_TRY(om_schedule_check(s, w->q));
	struct remat_search x = search_new(w, mem);
	om_remat_run(x.g);
	x.best_peak = r->given = x.g->peak;
	if (x.best_peak > w->budget && !try_budget(&x, w->budget)) {
		x.is_exact = false;
		const uint64_t low = w->budget > max_op_bytes(w->q) ? w->budget : max_op_bytes(w->q);
		search_budgets(&x, low, r->given);
		lower_in_steps(&x, low);
	}
	copy_set(&x, x.g->drop, x.best);
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
	OM_GUARDED(s, remat_solve_guarded(s, w, mem, r));
}

/* The longest gap of a storage; the one after the last use if there is no other. */
static uint32_t
longest_gap(const om_remat *g, uint32_t s)
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
		g->drop[longest_gap(g, s)] = dropped[s] && g->may[s];
	om_remat_run(g);
	const uint64_t peak = g->is_bad ? UINT64_MAX : g->peak;
	*cost = g->cost;
	om_arena_free(mem);
	return peak;
}
