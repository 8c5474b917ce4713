/* SPDX-License-Identifier: Apache-2.0 */
/* Faults in plans.
 *
 * A copy of a plan gets one fault: an entry is moved, replaced by another one, truncated or removed,
 * mostly among those related to iterations.  Some faults are harmless: the caller has to check whether
 * a plan that the verifier accepts computes the right results. */
#include <config.h>

#include <string.h>

#include "base/rng.h"
#include "flows.h"
#include "onnxmem/plan.h"

struct faults {
	om_arena *mem;
	const om_prog *p;
	om_plan *plan;
	uint64_t state;
};

static uint32_t
below(struct faults *f, uint32_t n)
{
	return n ? (uint32_t)om_rng_below(&f->state, n) : 0;
}

static void *
own(struct faults *f, const void *list, size_t size, size_t n)
{
	return om_memdup(f->mem, n ? list : "", n ? size * n : 1);
}

static om_plan *
copy(struct faults *f, const om_plan *plan)
{
	om_plan *c = own(f, plan, sizeof *plan, 1);

	c->arena = own(f, plan->arena, sizeof *plan->arena, plan->narena);
	c->place = own(f, plan->place, sizeof *plan->place, plan->nplace);
	c->alias = own(f, plan->alias, sizeof *plan->alias, plan->nalias);
	c->view = own(f, plan->view, sizeof *plan->view, plan->nview);
	for (uint32_t k = 0; k < c->nview; k++) {
		c->view[k].off = own(f, c->view[k].off, sizeof *c->view[k].off, c->view[k].period);
		c->view[k].first = own(f, c->view[k].first, sizeof *c->view[k].first, c->view[k].nprologue);
	}
	return c;
}

/* ---- Views. ---- */

static om_plan_multi_view *
any_view(struct faults *f)
{
	return f->plan->nview ? &f->plan->view[below(f, f->plan->nview)] : NULL;
}

static om_region *
any_region(struct faults *f, om_plan_multi_view *v)
{
	const uint32_t k = below(f, v->period + v->nprologue);
	return (om_region *)(k < v->period ? &v->off[k] : &v->first[k - v->period]);
}

static uint64_t
bytes_of(const struct faults *f, uint32_t v)
{
	return om_value_bytes(f->p->values[v]);
}

/* Up or down, by an element, by the size of the value, or by an alignment of arenas. */
static uint64_t
shifted(struct faults *f, uint64_t offset, uint64_t bytes)
{
	const uint64_t by[] = {4, bytes, 64, 128}, step = by[below(f, 4)];
	return below(f, 2) && offset >= step ? offset - step : offset + step;
}

static void
move_region(struct faults *f, om_plan_multi_view *v)
{
	om_region *r = any_region(f, v);

	r->offset = shifted(f, r->offset, bytes_of(f, v->value));
}

static void
swap_regions(struct faults *f, om_plan_multi_view *v)
{
	om_region *a = any_region(f, v), *b = any_region(f, below(f, 2) ? v : any_view(f)), was = *a;

	*a = *b;
	*b = was;
}

static void
other_base(struct faults *f, om_plan_multi_view *v)
{
	om_region *r = any_region(f, v);

	if (r->base != OM_NO_VALUE || below(f, 2)) {
		r->base = below(f, 2) ? below(f, f->p->nvalue) : OM_NO_VALUE;
		r->offset = below(f, 2) ? 0 : r->offset;
	} else {
		r->offset = f->plan->place[below(f, f->plan->nplace)].offset;
	}
}

static void
other_stride(struct faults *f, om_plan_multi_view *v)
{
	const int64_t bytes = (int64_t)bytes_of(f, v->value), by[] = {0, -v->stride, v->stride / 2, 2 * v->stride, bytes,
		-bytes, v->stride + 4};

	v->stride = by[below(f, sizeof by / sizeof *by)];
}

static void
other_rounds(struct faults *f, om_plan_multi_view *v)
{
	switch (below(f, 4)) {
	case 0: v->period -= v->period > 1; break;
	case 1: v->nprologue -= v->nprologue > 0; break;
	case 2: v->is_output = !v->is_output; break;
	default:
		if (v->nprologue == 0) {
			v->nprologue = 1;
			v->first = own(f, &v->off[below(f, v->period)], sizeof *v->off, 1);
		}
	}
}

/* Replace all but the value by another view's data. */
static void
other_view(struct faults *f, om_plan_multi_view *v)
{
	const om_plan_multi_view *w = any_view(f);
	const uint32_t value = v->value;
	const bool is_output = v->is_output;

	*v = *w;
	v->value = value;
	v->is_output = is_output;
}

static void
drop_view(struct faults *f, om_plan_multi_view *v)
{
	memmove(v, v + 1, (size_t)(--f->plan->nview - (v - f->plan->view)) * sizeof *v);
}

/* ---- Placements. ---- */

static bool
has_place(const struct faults *f, uint32_t v)
{
	return f->plan->place[v].where == OM_IN_ARENA && bytes_of(f, v);
}

/* A random value in an arena, or any value if none is found within 50 tries. */
static uint32_t
any_placed(struct faults *f)
{
	uint32_t v = below(f, f->p->nvalue);

	for (int tries = 0; tries < 50 && !has_place(f, v); tries++)
		v = below(f, f->p->nvalue);
	return v;
}

/* Move all values in its storage, including their multi-views. */
static void
move_storage(struct faults *f, uint32_t v, uint64_t to)
{
	const om_value *root = om_storage(f->p->assignment, f->p->values[v], NULL);
	const om_placement was = f->plan->place[root->id];

	if (was.where != OM_IN_ARENA)
		return;
	for (uint32_t k = 0; k < f->p->nvalue; k++)
		if (has_place(f, k) && om_storage(f->p->assignment, f->p->values[k], NULL) == root)
			f->plan->place[k].offset += to - was.offset;
	for (uint32_t k = 0; k < f->plan->nview; k++) {
		om_plan_multi_view *w = &f->plan->view[k];
		for (uint32_t i = 0; i < w->period + w->nprologue; i++) {
			om_region *r = (om_region *)(i < w->period ? &w->off[i] : &w->first[i - w->period]);
			if (r->base == OM_NO_VALUE && r->arena == was.arena && r->offset >= was.offset
			    && r->offset < was.offset + was.bytes)
				r->offset += to - was.offset;
		}
	}
}

static void
change_place(struct faults *f)
{
	const uint32_t a = any_placed(f), b = any_placed(f);
	om_placement *p = f->plan->place;

	if (!has_place(f, a) || !has_place(f, b))
		return;
	switch (below(f, 6)) {
	case 0: p[a].offset = shifted(f, p[a].offset, p[a].bytes); break;
	case 1: p[a].offset = p[b].offset; break;
	case 2: p[a].bytes -= below(f, 2) ? 64 : p[a].bytes / 2; break;
	case 3: f->plan->arena[p[a].arena].bytes -= 64; break;
	case 4: move_storage(f, a, p[b].offset); break;
	default: move_storage(f, a, shifted(f, p[a].offset, p[a].bytes));
	}
}

static void
change_alias(struct faults *f)
{
	om_alias *a = f->plan->nalias ? &f->plan->alias[below(f, f->plan->nalias)] : NULL;

	if (!a)
		return;
	switch (below(f, 4)) {
	case 0: a->kind = (om_alias_kind)below(f, OM_ALIAS_CONSUME + 1); break;
	case 1: a->source = below(f, f->p->nvalue); break;
	case 2: a->offset = shifted(f, a->offset, bytes_of(f, a->value)); break;
	default: memmove(a, a + 1, (size_t)(--f->plan->nalias - (a - f->plan->alias)) * sizeof *a);
	}
}

om_plan *
flow_fault(const om_prog *p, uint64_t seed, om_arena *mem, const char **what)
{
	static const struct {
		const char *name;
		void (*change)(struct faults *f, om_plan_multi_view *v);
	} kind[] = {
		{"a region is moved", move_region}, {"regions are swapped", swap_regions}, {"another base", other_base},
		{"another stride", other_stride}, {"other rounds", other_rounds}, {"another one's view", other_view},
		{"no view", drop_view},
	};
	struct faults f = {.mem = mem, .p = p, .state = seed};

	f.plan = copy(&f, p->plan);
	const uint32_t k = below(&f, 10);
	om_plan_multi_view *v = any_view(&f);
	if (v && k < 7) {
		*what = om_printf(mem, "%s: %s", p->values[v->value]->name, kind[k].name);
		kind[k].change(&f, v);
	} else if (k % 3) {
		*what = "a place is changed";
		change_place(&f);
	} else {
		*what = "an alias is changed";
		change_alias(&f);
	}
	return f.plan;
}
