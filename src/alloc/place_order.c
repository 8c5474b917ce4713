/* SPDX-License-Identifier: Apache-2.0 */
/* The order of the placements of a plan. */
#include <config.h>

#include <stdlib.h>

#include "alloc/place_order.h"
#include "base/sizes.h"
#include "ir/alias_roots.h"
#include "ir/live_interval.h"

struct order {
	const om_prog *p;
	const om_plan *plan;
	om_arena *mem;
	om_place_order *o;
	const om_alias **alias;  /* by value id */
	const om_alias_root *owner;  /* by value id: the value whose storage it is in */
	size_t capedge;
};

static bool
is_in_arena(const om_plan *plan, uint32_t value)
{
	return plan->place[value].where == OM_IN_ARENA;
}

/* Is the value where the owner of its storage is, and not in a cycle of aliases? */
static bool
is_with_owner(const struct order *w, uint32_t value)
{
	const om_alias *a = w->alias[value];
	const uint32_t owner = w->owner[value].value;
	const om_placement *at = &w->plan->place[owner];

	return !(a && (a->offset || !is_in_arena(w->plan, a->source))) && !w->alias[owner]
		&& at->arena == w->plan->place[value].arena && at->offset == w->plan->place[value].offset;
}

static bool
find_owners(struct order *w)
{
	w->alias = om_aliases_by_value(w->plan, w->plan->nplace, w->mem);
	w->owner = om_alias_roots(w->alias, w->plan->nplace, w->mem);
	for (uint32_t k = 0; k < w->plan->nplace; k++)
		if (is_in_arena(w->plan, k) && !is_with_owner(w, k))
			return false;
	return true;
}

/* ---- Storage. ---- */

/* Storage of a value or of scratch. */
struct piece {
	uint32_t arena;
	uint64_t offset;
	uint32_t value;          /* its owner; OM_NO_VALUE: */
	uint32_t scratch;        /* index of scratch */
};

static int
by_offset(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return (x->scratch > y->scratch) - (x->scratch < y->scratch);
}

static void
number_storage(struct order *w)
{
	const om_plan *plan = w->plan;
	struct piece *all = OM_NEWN(w->mem, struct piece, (size_t)plan->nplace + plan->nscratch);
	om_place_order *o = w->o;
	uint32_t n = 0;

	for (uint32_t k = 0; k < plan->nplace; k++)
		if (is_in_arena(plan, k) && w->owner[k].value == k)
			all[n++] = (struct piece){plan->place[k].arena, plan->place[k].offset, k, 0};
	for (uint32_t k = 0; k < plan->nscratch; k++)
		all[n++] = (struct piece){plan->scratch[k].arena, plan->scratch[k].offset, OM_NO_VALUE, k};
	if (n)
		qsort(all, n, sizeof *all, by_offset);
	o->nstorage = n;
	o->arena = OM_NEWN(w->mem, uint32_t, n);
	o->offset = OM_NEWN(w->mem, uint64_t, n);
	for (uint32_t k = 0; k < n; k++) {
		o->arena[k] = all[k].arena;
		o->offset[k] = all[k].offset;
		if (all[k].value != OM_NO_VALUE)
			o->storage_of_value[all[k].value] = k;
		else
			o->storage_of_scratch[all[k].scratch] = k;
	}
}

static void
list_boxes(struct order *w)
{
	const om_plan *plan = w->plan;
	om_place_order *o = w->o;

	o->box = OM_NEWN(w->mem, om_place_box, (size_t)plan->nplace + plan->nscratch);
	for (uint32_t k = 0; k < plan->nplace; k++)
		if (is_in_arena(plan, k)) {
			o->storage_of_value[k] = o->storage_of_value[w->owner[k].value];
			o->box[o->nbox++] = (om_place_box){o->storage_of_value[k], w->p->values[k], w->owner[k].value == k, 0,
				plan->place[k].live};
		}
	for (uint32_t k = 0; k < plan->nscratch; k++) {
		const om_steps at = plan->schedule->of_op[plan->scratch[k].op];
		o->box[o->nbox++] = (om_place_box){o->storage_of_scratch[k], NULL, true, plan->scratch[k].bytes,
			{at.first, at.last, NULL, 0}};
	}
}

/* ---- Edges. ---- */

/* The bytes of a box in the plan. */
static uint64_t
planned_bytes(const struct order *w, const om_place_box *x)
{
	return x->value ? w->plan->place[x->value->id].bytes : x->bytes;
}

static void
add_edge(struct order *w, const om_place_box *below, const om_place_box *above)
{
	om_place_order *o = w->o;

	OM_PUSH(w->mem, o->edge, o->nedge, w->capedge, ((om_place_edge){(uint32_t)(below - o->box), above->storage}));
}

/* Keep two boxes apart, if they have to be.  False: they overlap. */
static bool
separate(struct order *w, const om_place_box *a, const om_place_box *b)
{
	const om_place_order *o = w->o;
	const bool is_a_below = a->storage < b->storage;
	const om_place_box *below = is_a_below ? a : b, *above = is_a_below ? b : a;

	if (a->storage == b->storage || o->arena[a->storage] != o->arena[b->storage])
		return true;
	if (planned_bytes(w, a) == 0 || planned_bytes(w, b) == 0)
		return true;
	const bool is_apart = o->offset[below->storage] + planned_bytes(w, below) <= o->offset[above->storage];
	if (!w->plan->parallel_safe && !om_live_intervals_meet(&a->live, &b->live))
		return true;
	if (is_apart)
		add_edge(w, below, above);
	return is_apart || w->plan->parallel_safe;
}

static int
by_start(const void *a, const void *b)
{
	const om_place_box *x = a, *y = b;

	if (x->live.first != y->live.first)
		return x->live.first < y->live.first ? -1 : 1;
	return (x->storage > y->storage) - (x->storage < y->storage);
}

static int
by_above(const void *a, const void *b)
{
	const om_place_edge *x = a, *y = b;

	if (x->above != y->above)
		return x->above < y->above ? -1 : 1;
	return (x->box > y->box) - (x->box < y->box);
}

/* In a parallel-safe plan, lifetimes tell nothing: all that is apart stays apart. */
static bool
find_edges(struct order *w)
{
	om_place_order *o = w->o;

	if (o->nbox)
		qsort(o->box, o->nbox, sizeof *o->box, by_start);
	for (uint32_t a = 0; a < o->nbox; a++)
		for (uint32_t b = a + 1; b < o->nbox; b++) {
			if (!w->plan->parallel_safe && o->box[b].live.first > o->box[a].live.last)
				break;
			if (!separate(w, &o->box[a], &o->box[b]))
				return false;
		}
	if (o->nedge)
		qsort(o->edge, o->nedge, sizeof *o->edge, by_above);
	return true;
}

/* ---- Multi-views. ---- */

/* The storage at a region that rotates in the steps of a loop: there has to be one. */
static bool
find_region(const struct order *w, const om_region *at, om_steps steps, uint32_t *storage)
{
	uint32_t n = 0;

	*storage = OM_NO_VALUE;
	if (at->base != OM_NO_VALUE)
		return true;
	for (uint32_t k = 0; k < w->o->nbox; k++) {
		const om_place_box *x = &w->o->box[k];
		if (w->o->arena[x->storage] != at->arena || w->o->offset[x->storage] != at->offset || x->storage == *storage
		    || !om_live_interval_meets(&x->live, steps.first, steps.last))
			continue;
		*storage = x->storage;
		n++;
	}
	return n == 1;
}

static bool
find_regions(struct order *w)
{
	const om_plan *plan = w->plan;
	size_t n = 0, at = 0;

	for (uint32_t k = 0; k < plan->nview; k++)
		n += plan->view[k].period + plan->view[k].nprologue;
	w->o->storage_of_region = OM_NEWN(w->mem, uint32_t, n);
	for (uint32_t k = 0; k < plan->nview; k++) {
		const om_plan_multi_view *v = &plan->view[k];
		const om_value *of = w->p->values[v->value];
		const om_op *loop = v->is_output ? of->def : of->block->owner;
		const om_steps steps = plan->schedule->of_op[loop->id];
		if (v->stride)
			return false;
		for (uint32_t i = 0; i < v->period; i++)
			if (!find_region(w, &v->off[i], steps, &w->o->storage_of_region[at++]))
				return false;
		for (uint32_t i = 0; i < v->nprologue; i++)
			if (!find_region(w, &v->first[i], steps, &w->o->storage_of_region[at++]))
				return false;
	}
	return true;
}

om_place_order *
om_place_order_new(const om_prog *p, const om_plan *plan, om_arena *mem)
{
	struct order w = {.p = p, .plan = plan, .mem = mem, .o = OM_NEW(mem, om_place_order)};

	w.o->storage_of_value = OM_NEWN(mem, uint32_t, plan->nplace);
	w.o->storage_of_scratch = OM_NEWN(mem, uint32_t, plan->nscratch);
	for (uint32_t k = 0; k < plan->nplace; k++)
		w.o->storage_of_value[k] = OM_NO_VALUE;
	if (!find_owners(&w))
		return NULL;
	number_storage(&w);
	list_boxes(&w);
	return find_edges(&w) && find_regions(&w) ? w.o : NULL;
}

uint64_t
om_place_box_bytes(const om_place_order *o, const om_plan *plan, const om_place_box *x)
{
	const uint64_t bytes = x->value ? om_value_bytes(x->value) : x->bytes;

	return om_size_rounded_up(bytes, plan->arena[o->arena[x->storage]].align);
}

void
om_place_offsets(const om_place_order *o, const uint64_t *bytes, uint64_t *offset, uint64_t *height)
{
	for (size_t k = 0; k < o->nedge; k++) {
		const om_place_edge *e = &o->edge[k];
		const uint64_t end = om_size_sum(offset[o->box[e->box].storage], bytes[e->box]);
		if (end > offset[e->above])
			offset[e->above] = end;
	}
	for (uint32_t k = 0; k < o->nbox; k++) {
		const uint32_t storage = o->box[k].storage;
		const uint64_t end = om_size_sum(offset[storage], bytes[k]);
		uint64_t *most = &height[o->arena[storage]];
		*most = end > *most ? end : *most;
	}
}
