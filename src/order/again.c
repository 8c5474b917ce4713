/* A run in which some storages are dropped and made again.
 *
 * A storage that is dropped goes after a use, and comes back when it is needed: its op runs
 * once more.  What that needs is there, or is dropped as well and comes back before, or
 * is kept until then.  So a set of storages says all: the run follows from it, and with it
 * the peak and the cost. */
#include <config.h>

#include <string.h>

#include "order/again.h"

enum { NONE = OM_ORDER_NONE };

/* ---- Gaps. ---- */

static void
note_use(om_again *g, uint32_t *at, uint32_t *longest, uint32_t s, uint32_t i)
{
	if (at[s] != NONE && i > at[s] && i - at[s] > longest[s]) {
		longest[s] = i - at[s];
		g->gone[s] = at[s];
		g->back[s] = i;
	}
	at[s] = i;
}

/* Where each is not needed for longest; two ops that need it in a row leave no gap. */
static void
find_gaps(om_again *g)
{
	uint32_t *at = OM_NEWN(g->mem, uint32_t, g->q->nstorage), *longest = OM_NEWN(g->mem, uint32_t, g->q->nstorage);

	for (uint32_t s = 0; s < g->q->nstorage; s++)
		at[s] = NONE;
	for (uint32_t i = 0; i < g->q->nop; i++) {
		for (uint32_t k = 0; k < g->q->op[i].nuse; k++)
			note_use(g, at, longest, g->q->op[i].use[k], i);
		for (uint32_t k = g->made.at[i]; k < g->made.at[i + 1]; k++)
			note_use(g, at, longest, g->made.item[k], i);
	}
	for (uint32_t s = 0; s < g->q->nstorage; s++) {
		g->end[s] = g->q->storage[s].stays ? g->q->nop : at[s] == NONE ? 0 : at[s];
		if (longest[s] > 1 && !g->q->storage[s].stays)
			continue;
		g->gone[s] = g->end[s];
		g->back[s] = NONE;
	}
}

static void
list_made(om_again *g)
{
	const uint32_t n = g->q->nop;

	g->made.at = OM_NEWN(g->mem, uint32_t, (size_t)n + 2);
	g->made.item = OM_NEWN(g->mem, uint32_t, g->q->nstorage);
	for (uint32_t s = 0; s < g->q->nstorage; s++)
		if (g->q->storage[s].maker != NONE)
			g->made.at[g->q->storage[s].maker + 2]++;
	for (uint32_t i = 2; i < n + 2; i++)
		g->made.at[i] += g->made.at[i - 1];
	for (uint32_t s = 0; s < g->q->nstorage; s++)
		if (g->q->storage[s].maker != NONE)
			g->made.item[g->made.at[g->q->storage[s].maker + 1]++] = s;
}

om_again *
om_again_new(const om_recompute_want *w, om_arena *mem)
{
	const size_t ns = w->q->nstorage, most = w->q->nop + ns + 1;
	om_again *g = OM_NEW(mem, om_again);

	*g = (om_again){.w = w, .q = w->q, .mem = mem, .gone = OM_NEWN(mem, uint32_t, ns), .back = OM_NEWN(mem, uint32_t, ns),
		.end = OM_NEWN(mem, uint32_t, ns), .may = OM_NEWN(mem, bool, ns), .drop = OM_NEWN(mem, bool, ns),
		.run = OM_NEWN(mem, uint32_t, most), .before = OM_NEWN(mem, uint64_t, most),
		.during = OM_NEWN(mem, uint64_t, most), .is_new = OM_NEWN(mem, bool, ns),
		.instance = OM_NEWN(mem, uint32_t, ns), .seen = OM_NEWN(mem, uint64_t, ns)};
	list_made(g);
	find_gaps(g);
	for (uint32_t s = 0; s < ns; s++)
		g->may[s] = w->q->storage[s].maker != NONE && w->until[w->q->storage[s].maker] != 0
		    && !w->q->storage[s].stays;
	return g;
}

bool
om_again_is_main(const om_again *g, uint32_t s)
{
	return g->may[s] && g->back[s] != NONE && g->q->storage[s].bytes;
}

/* ---- The run. ---- */

/* Make `s` again before op `i`. */
static void
again(om_again *g, uint32_t s, uint32_t i)
{
	const uint32_t m = g->q->storage[s].maker;
	const om_order_op *op = &g->q->op[m];

	g->is_bad |= i > g->w->until[m];
	g->is_new[s] = true;
	for (uint32_t k = 0; k < op->nuse; k++) {
		const uint32_t u = op->use[k];
		if (g->drop[u] && i > g->gone[u] && !g->is_new[u])
			again(g, u, i);
	}
	for (uint32_t k = g->made.at[m]; k < g->made.at[m + 1]; k++)
		g->is_new[g->made.item[k]] |= g->drop[g->made.item[k]] && i > g->gone[g->made.item[k]];
	g->run[g->n++] = m;
	g->cost += g->w->cost[m];
}

static void
list_run(om_again *g)
{
	memset(g->is_new, 0, g->q->nstorage * sizeof *g->is_new);
	g->n = 0;
	g->cost = 0;
	g->is_bad = false;
	for (uint32_t i = 0; i < g->q->nop; i++) {
		const om_order_op *op = &g->q->op[i];
		for (uint32_t k = 0; k < op->nuse; k++) {
			const uint32_t s = op->use[k];
			if (g->drop[s] && g->back[s] != NONE && i >= g->back[s] && !g->is_new[s])
				again(g, s, i);
		}
		g->run[g->n++] = i;
	}
}

/* ---- What is alive. ---- */

static void
make_room(om_again *g)
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

/* By instance: who needs it last.  Storages that are there from the start come first, then
 * what the ops of the run make, in a row. */
static void
find_last(om_again *g)
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
		if (g->q->storage[s].stays)
			g->last[g->instance[s]] = g->n;
}

/* Bytes that the op computes over what dies with it. */
static uint64_t
shared(const om_again *g, const om_order_op *op, uint32_t at)
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
count_alive(om_again *g, uint32_t at, uint64_t *alive)
{
	const om_order_op *op = &g->q->op[g->run[at]];
	const uint64_t begin = op->middle > op->begin ? op->middle : op->begin;

	g->before[at] = *alive;
	g->during[at] = *alive + begin - shared(g, op, at);
	g->peak = g->during[at] > g->peak ? g->during[at] : g->peak;
	for (uint32_t k = 0; k < op->nuse; k++) {
		uint32_t *last = &g->last[g->instance[op->use[k]]];
		if (*last != at)
			continue;
		*alive -= g->q->storage[op->use[k]].bytes;
		*last = NONE;            /* it may be in the list twice */
	}
}

static void
sweep(om_again *g)
{
	uint64_t alive = 0;
	uint32_t n = g->q->nstorage;

	for (uint32_t s = 0; s < g->q->nstorage; s++) {
		g->instance[s] = s;
		if (g->q->storage[s].maker == NONE && g->last[s] != NONE)
			alive += g->q->storage[s].bytes;
	}
	for (uint32_t at = 0; at < g->n; at++) {
		const uint32_t i = g->run[at];
		count_alive(g, at, &alive);
		for (uint32_t k = g->made.at[i]; k < g->made.at[i + 1]; k++) {
			g->instance[g->made.item[k]] = n;
			if (g->last[n++] != NONE)
				alive += g->q->storage[g->made.item[k]].bytes;
		}
	}
	g->before[g->n] = alive;
}

void
om_again_run(om_again *g)
{
	list_run(g);
	g->peak = 0;
	make_room(g);
	find_last(g);
	sweep(g);
	g->looked += g->n;
}

/* ---- What belongs together. ---- */

/* Each once: there may be many ways to the same one. */
static void
needs(om_again *g, uint32_t s, uint32_t i, void (*visit)(void *arg, uint32_t s), void *arg)
{
	const om_order_op *op = &g->q->op[g->q->storage[s].maker];

	if (g->seen[s] == g->visits)
		return;
	g->seen[s] = g->visits;
	visit(arg, s);
	for (uint32_t k = 0; k < op->nuse; k++)
		if (g->may[op->use[k]] && g->end[op->use[k]] < i)
			needs(g, op->use[k], i, visit, arg);
}

void
om_again_needs(om_again *g, uint32_t s, void (*visit)(void *arg, uint32_t s), void *arg)
{
	g->visits++;
	needs(g, s, g->back[s] == NONE ? g->end[s] : g->back[s], visit, arg);
}
