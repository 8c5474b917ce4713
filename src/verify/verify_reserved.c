/* The verifier: placements must reserve the bytes of every location that a multi-view gives a value.
 *
 * An observer of memory in a run, such as the executor when it poisons dead bytes, derives only from
 * placements when bytes are live.  So for every arena location that a value moves to, there must be
 * placements that reserve these bytes, one after the other, in all steps in which the value is live
 * and, for a parameter, also where an iteration ends and the next one starts.
 */
#include <config.h>

#include "ir/live_interval.h"
#include "verify/simulator.h"

/* A location of a value with a multi-view in some iteration. */
struct spot {
	const om_plan_multi_view *view;
	uint32_t arena;
	uint64_t lower;
	const om_placement **place;      /* placements that overlap it; the array is reused */
	size_t n, cap;
};

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

static void
find_places(const struct sim *c, struct spot *s)
{
	const uint64_t upper = s->lower + c->home[s->view->value].bytes;

	s->n = 0;
	for (uint32_t k = 0; k < c->plan->nplace; k++) {
		const om_placement *p = &c->plan->place[k];
		if (p->where == OM_IN_ARENA && p->arena == s->arena && p->offset < upper && s->lower < p->offset + p->bytes)
			OM_PUSH(c->mem, s->place, s->n, s->cap, p);
	}
}

/* Do consecutive placements reserve these bytes in all of these steps? */
static bool
is_kept(const struct spot *s, uint64_t lower, uint64_t bytes, uint64_t first, uint64_t last)
{
	while (first <= last) {
		uint64_t until = first;
		for (size_t k = 0; k < s->n; k++) {
			const om_placement *p = s->place[k];
			const uint64_t end = om_live_interval_until(&p->live, (uint32_t)first);
			if (p->offset <= lower && lower + bytes <= p->offset + p->bytes && end >= until
			    && om_live_interval_covers(&p->live, (uint32_t)first, (uint32_t)first))
				until = end + 1;
		}
		if (until == first)
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
	find_places(c, s);
	for (uint32_t k = c->follow[m]; k < c->follow[m + 1]; k++)
		OM_TRY(check_kept_used(c, s, c->follower[k]));
	return end && !is_start ? check_kept(c, s, m, end, end + 1) : OM_OK;
}

om_status
om_sim_check_kept(struct sim *c)
{
	struct spot s = {0};

	for (uint32_t k = 0; k < c->plan->nview; k++) {
		const om_plan_multi_view *v = s.view = &c->plan->view[k];
		for (uint32_t i = 0; i < v->nprologue; i++)
			OM_TRY(check_region(c, &s, &v->first[i], i == 0));
		for (uint32_t i = 0; i < v->period; i++)
			OM_TRY(check_region(c, &s, &v->off[i], false));
	}
	return OM_OK;
}
