/* SPDX-License-Identifier: Apache-2.0 */
/* A value and its surroundings: what is over and under it, and before and after it in its bytes. */
#include <config.h>

#include <string.h>

#include "report/why.h"

/* Boxes of a value and others. */
struct look {
	const om_report *r;
	om_report_tensor *t;
	const om_box *own;       /* the first box of the value */
	uint64_t from, to;       /* its bytes */
};

static bool
overlaps(const struct look *w, const om_box *x)
{
	return x->offset < w->to && w->from < x->offset + x->bytes;
}

/* The nearest box above or below: of several, the largest. */
static void
look_beside(struct look *w, const om_box *x)
{
	const om_box **over = &w->t->over, **under = &w->t->under;
	const uint64_t end = x->offset + x->bytes;

	if (x->offset >= w->to && (!*over || x->offset < (*over)->offset
		|| (x->offset == (*over)->offset && x->bytes > (*over)->bytes)))
		*over = x;
	if (end <= w->from && (!*under || end > (*under)->offset + (*under)->bytes
		|| (end == (*under)->offset + (*under)->bytes && x->bytes > (*under)->bytes)))
		*under = x;
}

static void
look_in_time(struct look *w, const om_box *x)
{
	const om_box **before = &w->t->before, **after = &w->t->after;

	if (x->last < w->t->live.first && (!*before || x->last > (*before)->last))
		*before = x;
	if (x->first > w->t->live.last && (!*after || x->first < (*after)->first))
		*after = x;
}

static void
look_around(struct look *w)
{
	const om_report *r = w->r;

	for (uint32_t k = 0; k < r->nbox; k++) {
		const om_box *x = &r->box[k];
		if (x->arena != w->own->arena || x->buffer == w->own->buffer || x->bytes == 0)
			continue;
		if (overlaps(w, x))
			look_in_time(w, x);
		else if (x->first <= w->t->live.last && w->t->live.first <= x->last)
			look_beside(w, x);
	}
}

static const char *
why_unplanned(const om_plan *plan, const om_value *v)
{
	for (uint32_t k = 0; k < plan->nunplanned; k++)
		if (plan->unplanned[k].value == v->id)
			return plan->unplanned[k].why;
	return "";
}

om_report_tensor
om_report_tensor_of(const om_report *r, const om_value *v)
{
	const om_plan *plan = r->prog->plan;
	const om_placement *at = &plan->place[v->id];
	om_report_tensor t = {.value = v, .at = at, .why = why_unplanned(plan, v)};
	const uint32_t box = r->box_of_value[v->id];

	t.live = om_report_life(r, v);
	if (box != UINT32_MAX)
		look_around(&(struct look){r, &t, &r->box[box], at->offset, at->offset + at->bytes});
	return t;
}
