/* SPDX-License-Identifier: Apache-2.0 */
/* A lower bound of the arena for all storage decisions.
 *
 * The bound of a packing holds for the buffers that are packed, that is, for the lifetimes, views and
 * in-place choices that were made.  This one holds for all of them: whatever is decided, values whose
 * contents are needed at the same moment and cannot be bytes of one another occupy different bytes.  So
 * the bound of a moment is the weight of a set of such values, and any moment of any run will do.
 *
 * Moments.  One is before each op: values are there that were computed earlier and are read by this op or
 * later.  One is while an op without bodies computes: its outputs and its workspace are there, too.  One is
 * where the body of a Loop starts: its counter and its condition were written, even if nothing reads them.  In a
 * body of a loop, it is that moment in an iteration that is neither one of the first nor the last one.
 *
 * Common bytes: see disjoint.h.
 *
 * The order of the ops is given, and so is the set of values in the arena: results, inputs and what
 * shares storage with them are in memory of the caller.
 */
#include <config.h>

#include <stdlib.h>

#include "alloc/disjoint.h"
#include "alloc/order_bound.h"
#include "base/arena_internal.h"
#include "ir/live_interval.h"

/* Values looked at, over all moments.  Those with most bytes come first, and the bound is that of the moments seen
 * until then. */
enum { MAX_WORK = 1 << 23 };

/* ---- The steps. ---- */

/* Values needed before the ops of a range of steps. */
struct need {
	const om_value *v;
	uint32_t first, last;
};

struct sweep {
	om_disjoint *w;
	struct need *need;       /* by first step */
	size_t n, cap;
	uint64_t *sum;           /* by step: bytes needed before it */
	om_moment at;
	uint64_t best, enough;
};

/* Is it an input that nothing reads?  The first op may overwrite it. */
static bool
is_unread_input(const om_disjoint *w, const om_value *v)
{
	return !v->def && v->block == w->p->first && w->live[v->id].last == 0 && !om_disjoint_is_read_at(w, v, 0);
}

/* The last step before which a value may be found that was not computed later. */
static uint32_t
defined_at(const om_disjoint *w, const om_value *v)
{
	const om_op *op = v->def;

	if (!op)
		return w->s->of_block[v->block->id].first - 1;
	const bool is_late = om_disjoint_is_branch(op) || (om_disjoint_is_loop(op) && w->live[v->id].first == w->s->of_op[op->id].last);
	return is_late ? w->s->of_op[op->id].last : w->s->of_op[op->id].first;
}

static void
list_needs(struct sweep *x)
{
	const om_disjoint *w = x->w;
	om_steps r;

	for (uint32_t k = 0; k < w->p->nvalue; k++) {
		const om_value *v = w->p->values[k];
		if (!om_disjoint_is_counted(w, v) || is_unread_input(w, v))
			continue;
		const uint32_t from = defined_at(w, v) + 1;
		for (uint32_t i = 0; om_live_interval_range(&w->live[k], i, &r); i++) {
			const struct need n = {v, r.first > from ? r.first : from, om_disjoint_last(w, v, r.last)};
			if (n.first <= n.last)
				OM_PUSH(w->mem, x->need, x->n, x->cap, n);
		}
	}
}

static int
by_first(const void *a, const void *b)
{
	const struct need *x = a, *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return (x->v->id > y->v->id) - (x->v->id < y->v->id);
}

static void
add_member(struct sweep *x, const om_value *v)
{
	OM_PUSH(x->w->mem, x->at.v, x->at.n, x->at.cap, v);
}

static void
find_members(struct sweep *x, uint32_t t)
{
	x->at.n = 0;
	for (size_t k = 0; k < x->n && x->need[k].first <= t; k++, x->w->work++)
		if (x->need[k].last >= t)
			add_member(x, x->need[k].v);
}

static void
improve(struct sweep *x, const om_op *op)
{
	const uint64_t bytes = om_moment_bytes(x->w, &x->at, op);

	x->best = bytes > x->best ? bytes : x->best;
}

static uint64_t
size_in_arena(const om_disjoint *w, const om_value *v)
{
	return v && om_disjoint_is_counted(w, v) ? om_disjoint_rounded(w, om_value_bytes(v)) : 0;
}

/* What `op` adds to what is needed before it: outputs and workspace. */
static uint64_t
bytes_added(const om_disjoint *w, const om_op *op)
{
	uint64_t sum = op && w->scratch[op->id] ? om_disjoint_rounded(w, w->scratch[op->id]->bytes) : 0;

	for (uint32_t k = 0; op && k < op->nout; k++)
		sum += size_in_arena(w, op->out[k]);
	return sum;
}

/* The counter and the condition, if nothing reads them: they are not among what is needed. */
static uint64_t
unread(const om_disjoint *w, const om_block *b, const om_value *v[2])
{
	uint64_t sum = 0;

	for (uint32_t k = 0; k < 2; k++) {
		const uint32_t start = b ? w->s->of_block[b->id].first : 0;
		v[k] = b && k < b->nparam ? b->param[k] : NULL;
		if (v[k] && om_disjoint_last(w, v[k], om_live_interval_until(&w->live[v[k]->id], start)) >= start)
			v[k] = NULL;
		sum += size_in_arena(w, v[k]);
	}
	return sum;
}

/* The most bytes that moments of a step may have. */
static uint64_t
most_at(const struct sweep *x, uint32_t t)
{
	const om_disjoint *w = x->w;
	const om_value *v[2];
	const uint64_t made = bytes_added(w, w->at[t]), written = unread(w, w->entry[t], v);

	return x->sum[t] + (made > written ? made : written);
}

static void
look_at_step(struct sweep *x, uint32_t t)
{
	om_disjoint *w = x->w;
	const om_op *op = w->at[t];
	const om_value *v[2];

	find_members(x, t);
	const size_t n = x->at.n;
	if (x->sum[t] > x->best)
		improve(x, NULL);
	if (x->sum[t] + unread(w, w->entry[t], v) > x->best) {
		for (uint32_t k = 0; k < 2; k++)
			if (size_in_arena(w, v[k]))
				add_member(x, v[k]);
		improve(x, NULL);
		x->at.n = n;
		find_members(x, t);
	}
	if (x->sum[t] + bytes_added(w, op) > x->best) {
		for (uint32_t k = 0; op && k < op->nout; k++)
			if (size_in_arena(w, op->out[k]))
				add_member(x, op->out[k]);
		improve(x, op);
	}
}

/* The bytes needed before each step. */
static void
add_up(struct sweep *x)
{
	const uint32_t n = x->w->s->nstep;

	x->sum = OM_NEWN(x->w->mem, uint64_t, (size_t)n + 1);
	for (size_t k = 0; k < x->n; k++) {
		const uint64_t bytes = size_in_arena(x->w, x->need[k].v);
		x->sum[x->need[k].first] += bytes;
		x->sum[x->need[k].last + 1] -= bytes;
	}
	for (uint32_t t = 1; t < n; t++)
		x->sum[t] += x->sum[t - 1];
}

struct candidate {
	uint64_t most;
	uint32_t step;
};

static int
most_first(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->most != y->most ? (x->most < y->most) - (x->most > y->most) : (x->step > y->step) - (x->step < y->step);
}

/* Before the first op, all inputs in the arena are there, those that nothing reads too. */
static uint64_t
bytes_of_inputs(const om_disjoint *w)
{
	uint64_t sum = 0;

	for (uint32_t k = 0; k < w->p->first->nparam; k++)
		sum += size_in_arena(w, w->p->first->param[k]);
	return sum;
}

static void
sweep(struct sweep *x)
{
	om_disjoint *w = x->w;
	struct candidate *list = OM_NEWN(w->mem, struct candidate, w->s->nstep);
	uint32_t n = 0;

	x->best = bytes_of_inputs(w);
	list_needs(x);
	if (x->n)
		qsort(x->need, x->n, sizeof *x->need, by_first);
	add_up(x);
	for (uint32_t t = 0; t < w->s->nstep; t++)
		if (!w->is_skipped[t])
			list[n++] = (struct candidate){most_at(x, t), t};
	if (n)
		qsort(list, n, sizeof *list, most_first);
	for (uint32_t k = 0; k < n && list[k].most > x->best && x->best < x->enough && w->work < MAX_WORK; k++)
		look_at_step(x, list[k].step);
}

uint64_t
om_order_bound(const om_prog *p, const om_assignment *a, const om_plan *plan, uint64_t enough)
{
	om_arena *mem = om_arena_new();
	om_disjoint w = om_disjoint_new(p, a, plan, mem);
	struct sweep x = {.w = &w, .enough = enough, .at = om_moment_new(&w)};

	if (!w.is_without)
		sweep(&x);
	om_arena_free(mem);
	return x.best;
}
