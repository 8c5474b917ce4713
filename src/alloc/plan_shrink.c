/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for ranges of sizes, shrunk to the sizes of a run: see place_order.h. */
#include <config.h>

#include "alloc/place_order.h"
#include "alloc/plan_shrink.h"
#include "alloc/stated_formulas.h"
#include "base/guard.h"

struct shrink {
	const om_prog *p;
	om_plan *plan;
	const om_place_order *o;
	uint64_t *bytes;         /* by box */
	uint64_t *offset;        /* by storage */
	uint64_t *height;        /* by arena */
};

/* A value that has no bytes at the largest sizes is kept apart from nothing. */
static bool
find_sizes(struct shrink *w)
{
	for (uint32_t k = 0; k < w->o->nbox; k++) {
		const om_place_box *x = &w->o->box[k];
		w->bytes[k] = om_place_box_bytes(w->o, w->plan, x);
		if (x->value && w->bytes[k] && w->plan->place[x->value->id].bytes == 0)
			return false;
	}
	return true;
}

/* Is no arena larger than it was? */
static bool
fits(const struct shrink *w)
{
	for (uint32_t k = 0; k < w->plan->narena; k++)
		if (w->height[k] > w->plan->arena[k].bytes)
			return false;
	return true;
}

/* ---- The new places. ---- */

static const om_region *
move_regions(const struct shrink *w, const om_region *from, uint32_t n, const uint32_t *storage)
{
	om_region *to = om_memdup(w->plan->mem, from, n * sizeof *to);

	for (uint32_t k = 0; k < n; k++)
		if (storage[k] != OM_NO_VALUE)
			to[k].offset = w->offset[storage[k]];
	return to;
}

static void
move_views(const struct shrink *w)
{
	const uint32_t *storage = w->o->storage_of_region;

	for (uint32_t k = 0; k < w->plan->nview; k++) {
		om_plan_multi_view *v = &w->plan->view[k];
		v->off = move_regions(w, v->off, v->period, storage);
		v->first = move_regions(w, v->first, v->nprologue, storage + v->period);
		storage += v->period + v->nprologue;
	}
}

static void
move_values(const struct shrink *w)
{
	om_plan *plan = w->plan;

	for (uint32_t k = 0; k < plan->nplace; k++)
		if (w->o->storage_of_value[k] != OM_NO_VALUE)
			plan->place[k].offset = w->offset[w->o->storage_of_value[k]];
	for (uint32_t k = 0; k < plan->nscratch; k++)
		plan->scratch[k].offset = w->offset[w->o->storage_of_scratch[k]];
	for (uint32_t k = 0; k < w->o->nbox; k++) {
		const om_place_box *x = &w->o->box[k];
		om_placement *at = x->value ? &plan->place[x->value->id] : NULL;
		const uint64_t bytes = x->is_own ? w->bytes[k] : om_value_bytes(x->value);
		if (at && bytes < at->bytes)
			at->bytes = bytes;
	}
}

/* What was proven for the largest sizes is not known for others. */
static void
move(const struct shrink *w)
{
	move_views(w);
	move_values(w);
	for (uint32_t k = 0; k < w->plan->narena; k++) {
		om_plan_arena *a = &w->plan->arena[k];
		if (w->height[k] == a->bytes)
			continue;
		a->bytes = w->height[k];
		if (a->lower_bound <= a->bytes)
			continue;
		a->lower_bound = a->order_bound = 0;
		a->status = OM_PACK_FEASIBLE;
	}
}

bool
om_plan_lower_offsets(const om_prog *p, om_plan *plan)
{
	om_arena *mem = om_arena_new();
	struct shrink w = {.p = p, .plan = plan, .o = om_place_order_new(p, plan, mem)};
	bool is_done = false;

	if (w.o) {
		w.bytes = OM_NEWN(mem, uint64_t, w.o->nbox);
		w.offset = OM_NEWN(mem, uint64_t, w.o->nstorage);
		w.height = OM_NEWN(mem, uint64_t, plan->narena);
		is_done = find_sizes(&w);
	}
	if (is_done)
		om_place_offsets(w.o, w.bytes, w.offset, w.height);
	is_done = is_done && fits(&w);
	if (is_done)
		move(&w);
	om_arena_free(mem);
	return is_done;
}

static om_status
shrink_guarded(om_session *s, const om_prog *p, om_plan *plan)
{
	om_plan_lower_offsets(p, plan);
	return om_stated_formulas_check(s, plan);
}

om_status
om_plan_shrink(om_session *s, const om_prog *p, om_plan *plan)
{
	OM_GUARDED(s, shrink_guarded(s, p, plan));
}
