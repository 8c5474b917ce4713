/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier: placements must reserve the bytes of every location that a multi-view gives a value.
 *
 * An observer of memory in a run, such as the executor when it poisons dead bytes, derives only from
 * placements when bytes are live.  So for every arena location that a value moves to, there must be
 * placements that reserve these bytes, one after the other, in all steps in which the value is live
 * and, for a parameter, also where an iteration ends and the next one starts.
 */
#include <config.h>

#include <stdlib.h>

#include "ir/live_interval.h"
#include "verify/simulator.h"

/* The placements in arenas, by arena and first step, as a balanced search tree: the root of a range of the
 * list is its middle.  Bounds leave out most of them in a search. */
struct places {
	const om_placement **place;
	struct bounds {
		uint32_t last;           /* the largest of the range, of which this is the root */
		uint64_t lower, upper;
	} *bounds;
	size_t *start;                   /* by arena */
};

/* A location of a value with a multi-view in some iteration. */
struct spot {
	const om_plan_multi_view *view;
	const struct places *all;
	uint32_t arena;
	uint64_t lower;
};

static int
by_start(const void *a, const void *b)
{
	const om_placement *x = *(const om_placement *const *)a, *y = *(const om_placement *const *)b;

	if (x->arena != y->arena)
		return x->arena < y->arena ? -1 : 1;
	return (x->live.first > y->live.first) - (x->live.first < y->live.first);
}

static struct bounds
bound(struct places *s, size_t from, size_t to)
{
	const size_t mid = from + (to - from) / 2;
	const om_placement *p = s->place[mid];
	struct bounds *b = &s->bounds[mid];

	*b = (struct bounds){p->live.last, p->offset, p->offset + p->bytes};
	for (int side = 0; side < 2; side++) {
		const size_t lower = side ? mid + 1 : from, upper = side ? to : mid;
		if (lower >= upper)
			continue;
		const struct bounds part = bound(s, lower, upper);
		b->last = part.last > b->last ? part.last : b->last;
		b->lower = part.lower < b->lower ? part.lower : b->lower;
		b->upper = part.upper > b->upper ? part.upper : b->upper;
	}
	return *b;
}

static struct places
list_places(const struct sim *c)
{
	const om_plan *plan = c->plan;
	struct places s = {.place = OM_NEWN(c->mem, const om_placement *, plan->nplace),
		.bounds = OM_NEWN(c->mem, struct bounds, plan->nplace),
		.start = OM_NEWN(c->mem, size_t, (size_t)plan->narena + 1)};
	size_t n = 0;

	for (uint32_t k = 0; k < plan->nplace; k++)
		if (plan->place[k].where == OM_IN_ARENA && plan->place[k].arena < plan->narena) {
			s.place[n++] = &plan->place[k];
			s.start[plan->place[k].arena + 1]++;
		}
	if (n)
		qsort(s.place, n, sizeof *s.place, by_start);
	for (uint32_t k = 0; k < plan->narena; k++) {
		s.start[k + 1] += s.start[k];
		if (s.start[k] < s.start[k + 1])
			bound(&s, s.start[k], s.start[k + 1]);
	}
	return s;
}

/* False: not in an arena, or moved by another loop. */
static bool
find_spot(const struct sim *c, const om_region *r, struct spot *s)
{
	const om_placement *base = r->base == OM_NO_VALUE ? NULL : &c->plan->place[r->base];

	if (base && (base->where != OM_IN_ARENA || c->mover[r->base] != OM_NOBODY || c->p->values[r->base]->is_const))
		return false;
	s->arena = base ? base->arena : r->arena;
	s->lower = (base ? base->offset : 0) + r->offset;
	return true;
}

/* The end of the longest of the places from..to that reserve bytes [lower, upper) in step `first`, or
 * `until` if none ends there or later. */
static uint64_t
reserved_until(const struct places *s, size_t from, size_t to, uint64_t lower, uint64_t upper, uint32_t first,
	uint64_t until)
{
	while (from < to) {
		const size_t mid = from + (to - from) / 2;
		const om_placement *p = s->place[mid];
		const struct bounds *b = &s->bounds[mid];
		if (b->last < until || b->lower > lower || b->upper < upper)
			break;
		if (p->live.first <= first) {
			const uint32_t end = om_live_interval_until(&p->live, first);
			if (p->offset <= lower && upper <= p->offset + p->bytes && end >= until
			    && om_live_interval_covers(&p->live, first, first))
				until = (uint64_t)end + 1;
			until = reserved_until(s, mid + 1, to, lower, upper, first, until);
		}
		to = mid;
	}
	return until;
}

/* Does a placement of all of these bytes exist from `step`, or earlier, to the next step, or later?  It need not be
 * live in between: bytes die after the last step of a placement, and after `step` if there is none. */
static bool
is_spanned(const struct places *s, size_t from, size_t to, uint64_t lower, uint64_t upper, uint32_t step)
{
	while (from < to) {
		const size_t mid = from + (to - from) / 2;
		const om_placement *p = s->place[mid];
		const struct bounds *b = &s->bounds[mid];
		if (b->last <= step || b->lower > lower || b->upper < upper)
			break;
		if (p->live.first <= step) {
			if (p->live.last > step && p->offset <= lower && upper <= p->offset + p->bytes)
				return true;
			if (is_spanned(s, mid + 1, to, lower, upper, step))
				return true;
		}
		to = mid;
	}
	return false;
}

/* Do consecutive placements reserve these bytes in all of these steps, without an end between two steps? */
static bool
is_kept(const struct spot *s, uint64_t lower, uint64_t bytes, uint64_t first, uint64_t last)
{
	const size_t *start = &s->all->start[s->arena];

	while (first <= last) {
		const uint64_t until = reserved_until(s->all, start[0], start[1], lower, lower + bytes, (uint32_t)first, first);
		if (until == first)
			return false;
		if (until <= last && !is_spanned(s->all, start[0], start[1], lower, lower + bytes, (uint32_t)until - 1))
			return false;
		first = until;
	}
	return true;
}

static om_status
check_kept(const struct sim *c, const struct spot *s, uint32_t v, uint32_t first, uint32_t last)
{
	const uint64_t lower = s->lower + c->delta[v], bytes = c->home[v].bytes;

	if (bytes == 0 || is_kept(s, lower, bytes, first, last))
		return OM_OK;
	return BAD(c,
		"%s may be in %s, but no placements reserve these bytes from step %u to %u", c->p->values[v]->name,
		om_sim_bytes_text(c, s->arena, lower, lower + bytes).s, first, last);
}

/* Of the steps in which `v` is used, those of its lifetime: in the others a branch runs that does not use it. */
static om_status
check_kept_used(const struct sim *c, const struct spot *s, uint32_t v)
{
	om_steps r;

	for (uint32_t k = 0; om_live_interval_range(&c->plan->place[v].live, k, &r); k++) {
		const uint32_t first = r.first > c->first[v] ? r.first : c->first[v];
		const uint32_t last = r.last < c->last[v] ? r.last : c->last[v];
		if (first <= last)
			OM_TRY(check_kept(c, s, v, first, last));
	}
	return OM_OK;
}

static om_status
check_region(struct sim *c, struct spot *s, const om_region *r, bool is_start)
{
	const uint32_t m = s->view->value, end = c->iteration_end[m];

	if (s->view->stride || !find_spot(c, r, s))
		return OM_OK;
	for (uint32_t k = c->follow[m]; k < c->follow[m + 1]; k++)
		OM_TRY(check_kept_used(c, s, c->follower[k]));
	return end && !is_start ? check_kept(c, s, m, end, end + 1) : OM_OK;
}

om_status
om_sim_check_kept(struct sim *c)
{
	if (c->plan->nview == 0)
		return OM_OK;
	const struct places all = list_places(c);
	struct spot s = {.all = &all};

	for (uint32_t k = 0; k < c->plan->nview; k++) {
		const om_plan_multi_view *v = s.view = &c->plan->view[k];
		for (uint32_t i = 0; i < v->nprologue; i++)
			OM_TRY(check_region(c, &s, &v->first[i], i == 0));
		for (uint32_t i = 0; i < v->period; i++)
			OM_TRY(check_region(c, &s, &v->off[i], false));
	}
	return OM_OK;
}
