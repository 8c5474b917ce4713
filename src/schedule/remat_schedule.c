/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule in which some storages are dropped and recomputed.
 *
 * A storage that is dropped in a gap dies after a use, and is recomputed when it is
 * used again: its op runs once more.  The inputs of that op are live, or are
 * dropped as well and recomputed before it, or are kept until then.  A storage may
 * be dropped in several gaps, and is recomputed once in each.  So a set of gaps
 * determines the schedule, its peak and its cost.
 */
#include <config.h>

#include <string.h>

#include "schedule/remat_schedule.h"

#define NONE OM_SCHEDULE_NONE

/* ---- Gaps. ---- */

struct uses {
	om_remat_gap *gap;
	uint32_t *at;            /* by storage: the last op so far that uses it */
	size_t n, cap;
};

static void
note_use(om_remat *g, struct uses *u, uint32_t s, uint32_t i)
{
	if (u->at[s] != NONE && i > u->at[s] + 1 && !g->q->storage[s].live_out)
		OM_PUSH(g->mem, u->gap, u->n, u->cap, ((om_remat_gap){s, u->at[s], i}));
	u->at[s] = i;
}

/* Sort by storage; those of one storage stay sorted by time. */
static void
sort_gaps(om_remat *g, const struct uses *u)
{
	g->ngap = (uint32_t)u->n;
	g->gap = OM_NEWN(g->mem, om_remat_gap, u->n + 1);
	for (size_t k = 0; k < u->n; k++)
		g->first[u->gap[k].s + 2]++;
	for (uint32_t s = 2; s < g->q->nstorage + 2; s++)
		g->first[s] += g->first[s - 1];
	for (size_t k = 0; k < u->n; k++)
		g->gap[g->first[u->gap[k].s + 1]++] = u->gap[k];
}

/* Consecutive uses leave no gap. */
static void
find_gaps(om_remat *g)
{
	struct uses u = {.at = OM_NEWN(g->mem, uint32_t, g->q->nstorage)};

	for (uint32_t s = 0; s < g->q->nstorage; s++)
		u.at[s] = NONE;
	for (uint32_t i = 0; i < g->q->nop; i++) {
		for (uint32_t k = 0; k < g->q->op[i].nuse; k++)
			note_use(g, &u, g->q->op[i].use[k], i);
		for (uint32_t k = g->made.at[i]; k < g->made.at[i + 1]; k++)
			note_use(g, &u, g->made.item[k], i);
	}
	for (uint32_t s = 0; s < g->q->nstorage; s++) {
		g->end[s] = g->q->storage[s].live_out ? g->q->nop : u.at[s] == NONE ? 0 : u.at[s];
		OM_PUSH(g->mem, u.gap, u.n, u.cap, ((om_remat_gap){s, g->end[s], NONE}));
	}
	sort_gaps(g, &u);
}

uint32_t
om_remat_gap_at(const om_remat *g, uint32_t s, uint32_t i)
{
	for (uint32_t k = g->first[s]; k < g->first[s + 1]; k++)
		if (g->gap[k].gone < i && i <= g->gap[k].back)
			return k;
	return NONE;
}

static void
list_made(om_remat *g)
{
	const uint32_t n = g->q->nop;

	g->made.at = OM_NEWN(g->mem, uint32_t, (size_t)n + 2);
	g->made.item = OM_NEWN(g->mem, uint32_t, g->q->nstorage);
	for (uint32_t s = 0; s < g->q->nstorage; s++)
		if (g->q->storage[s].producer != NONE)
			g->made.at[g->q->storage[s].producer + 2]++;
	for (uint32_t i = 2; i < n + 2; i++)
		g->made.at[i] += g->made.at[i - 1];
	for (uint32_t s = 0; s < g->q->nstorage; s++)
		if (g->q->storage[s].producer != NONE)
			g->made.item[g->made.at[g->q->storage[s].producer + 1]++] = s;
}

om_remat *
om_remat_new(const om_remat_request *w, om_arena *mem)
{
	const size_t ns = w->q->nstorage;
	om_remat *g = OM_NEW(mem, om_remat);

	*g = (om_remat){.w = w, .q = w->q, .mem = mem, .first = OM_NEWN(mem, uint32_t, ns + 2), .end = OM_NEWN(mem, uint32_t, ns),
		.may = OM_NEWN(mem, bool, ns), .instance = OM_NEWN(mem, uint32_t, ns)};
	list_made(g);
	find_gaps(g);
	for (uint32_t s = 0; s < ns; s++)
		g->may[s] = w->q->storage[s].producer != NONE && w->until[w->q->storage[s].producer] != 0
		    && !w->q->storage[s].live_out;
	g->drop = OM_NEWN(mem, bool, g->ngap);
	g->is_new = OM_NEWN(mem, bool, g->ngap);
	g->seen = OM_NEWN(mem, uint64_t, g->ngap);
	const size_t capacity = w->q->nop + g->ngap + 1;
	g->run = OM_NEWN(mem, uint32_t, capacity);
	g->before = OM_NEWN(mem, uint64_t, capacity);
	g->during = OM_NEWN(mem, uint64_t, capacity);
	return g;
}

bool
om_remat_is_candidate(const om_remat *g, uint32_t gap)
{
	const uint32_t s = g->gap[gap].s;
	return g->may[s] && g->gap[gap].back != NONE && g->q->storage[s].bytes;
}

/* ---- The schedule. ---- */

/* Is it dead at op `i`, or when the op at `i` is recomputed?  `*gap` is set to its
 * gap. */
static bool
is_dead(const om_remat *g, uint32_t s, uint32_t i, uint32_t *gap)
{
	*gap = om_remat_gap_at(g, s, i);
	return *gap != NONE && g->drop[*gap] && !g->is_new[*gap];
}

/* Recompute the storage of a gap before op `i`, with all dead storages that its op
 * makes. */
static void
recompute(om_remat *g, uint32_t gap, uint32_t i)
{
	const uint32_t m = g->q->storage[g->gap[gap].s].producer;
	const om_schedule_op *op = &g->q->op[m];
	uint32_t other;

	g->is_bad |= i > g->w->until[m];
	g->is_new[gap] = true;
	for (uint32_t k = 0; k < op->nuse; k++)
		if (is_dead(g, op->use[k], i, &other))
			recompute(g, other, i);
	for (uint32_t k = g->made.at[m]; k < g->made.at[m + 1]; k++)
		if (is_dead(g, g->made.item[k], i, &other))
			g->is_new[other] = true;
	g->run[g->n++] = m;
	g->cost += g->w->cost[m];
}

static void
list_run(om_remat *g)
{
	uint32_t gap;

	memset(g->is_new, 0, g->ngap * sizeof *g->is_new);
	g->n = 0;
	g->cost = 0;
	g->is_bad = false;
	for (uint32_t i = 0; i < g->q->nop; i++) {
		const om_schedule_op *op = &g->q->op[i];
		for (uint32_t k = 0; k < op->nuse; k++)
			if (is_dead(g, op->use[k], i, &gap) && g->gap[gap].back == i)
				recompute(g, gap, i);
		g->run[g->n++] = i;
	}
}

/* ---- Live bytes. ---- */

static void
reserve_instances(om_remat *g)
{
	size_t n = g->q->nstorage;

	for (uint32_t at = 0; at < g->n; at++)
		n += g->made.at[g->run[at] + 1] - g->made.at[g->run[at]];
	g->ninstance = n;
	if (n <= g->capinstance)
		return;
	g->capinstance = 2 * n;
	g->last = OM_NEWN(g->mem, uint32_t, g->capinstance);
}

/* By instance, the position of its last use.  Storages live from the start come
 * first, then those that the ops of the schedule make, in order. */
static void
find_last(om_remat *g)
{
	uint32_t n = g->q->nstorage;

	for (size_t k = 0; k < g->ninstance; k++)
		g->last[k] = NONE;
	for (uint32_t s = 0; s < g->q->nstorage; s++)
		g->instance[s] = s;
	for (uint32_t at = 0; at < g->n; at++) {
		const uint32_t i = g->run[at];
		for (uint32_t k = 0; k < g->q->op[i].nuse; k++)
			g->last[g->instance[g->q->op[i].use[k]]] = at;
		for (uint32_t k = g->made.at[i]; k < g->made.at[i + 1]; k++)
			g->instance[g->made.item[k]] = n++;
	}
	for (uint32_t s = 0; s < g->q->nstorage; s++)
		if (g->q->storage[s].live_out)
			g->last[g->instance[s]] = g->n;
}

/* Bytes that the op computes in place of storages that die at it. */
static uint64_t
in_place_bytes(const om_remat *g, const om_schedule_op *op, uint32_t at)
{
	uint64_t bytes = 0;
	uint32_t made = NONE;

	for (uint32_t k = 0; k < op->nover; k++) {
		if (op->over[k].made == made || g->last[g->instance[op->over[k].needed]] != at)
			continue;
		made = op->over[k].made;
		bytes += g->q->storage[made].bytes;
	}
	return bytes;
}

static void
update_live(om_remat *g, uint32_t at, uint64_t *live_bytes)
{
	const om_schedule_op *op = &g->q->op[g->run[at]];
	const uint64_t begin = op->middle > op->begin ? op->middle : op->begin;

	g->before[at] = *live_bytes;
	g->during[at] = *live_bytes + begin - in_place_bytes(g, op, at);
	g->peak = g->during[at] > g->peak ? g->during[at] : g->peak;
	for (uint32_t k = 0; k < op->nuse; k++) {
		uint32_t *last = &g->last[g->instance[op->use[k]]];
		if (*last != at)
			continue;
		*live_bytes -= g->q->storage[op->use[k]].bytes;
		*last = NONE;            /* the list may contain it twice */
	}
}

static void
sweep_schedule(om_remat *g)
{
	uint64_t live_bytes = 0;
	uint32_t n = g->q->nstorage;

	for (uint32_t s = 0; s < g->q->nstorage; s++) {
		g->instance[s] = s;
		if (g->q->storage[s].producer == NONE && g->last[s] != NONE)
			live_bytes += g->q->storage[s].bytes;
	}
	for (uint32_t at = 0; at < g->n; at++) {
		const uint32_t i = g->run[at];
		update_live(g, at, &live_bytes);
		for (uint32_t k = g->made.at[i]; k < g->made.at[i + 1]; k++) {
			g->instance[g->made.item[k]] = n;
			if (g->last[n++] != NONE)
				live_bytes += g->q->storage[g->made.item[k]].bytes;
		}
	}
	g->before[g->n] = live_bytes;
}

void
om_remat_run(om_remat *g)
{
	list_run(g);
	g->peak = 0;
	reserve_instances(g);
	find_last(g);
	sweep_schedule(g);
	g->looked += g->n;
}

/* ---- Dependences between gaps. ---- */

/* Visit each gap once: several paths may lead to it. */
static void
visit_dependences(om_remat *g, uint32_t gap, uint32_t i, void (*visit)(void *arg, uint32_t gap), void *arg)
{
	const om_schedule_op *op = &g->q->op[g->q->storage[g->gap[gap].s].producer];

	if (g->seen[gap] == g->visits)
		return;
	g->seen[gap] = g->visits;
	visit(arg, gap);
	for (uint32_t k = 0; k < op->nuse; k++)
		if (g->may[op->use[k]] && g->end[op->use[k]] < i)
			visit_dependences(g, g->first[op->use[k] + 1] - 1, i, visit, arg);
}

void
om_remat_for_each_dependence(om_remat *g, uint32_t gap, void (*visit)(void *arg, uint32_t gap), void *arg)
{
	g->visits++;
	visit_dependences(g, gap, g->gap[gap].back == NONE ? g->gap[gap].gone : g->gap[gap].back, visit, arg);
}
