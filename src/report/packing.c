/* SPDX-License-Identifier: Apache-2.0 */
/* The picture of a packing: a report of buffers that belong to no program. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/system.h"
#include "report/report.h"

static om_plan *
plan_of(const om_problem *o, om_arena *mem)
{
	om_plan *plan = OM_NEW(mem, om_plan);

	plan->narena = o->npool;
	plan->arena = OM_NEWN(mem, om_plan_arena, o->npool);
	for (uint32_t k = 0; k < o->npool; k++)
		plan->arena[k] = (om_plan_arena){.name = o->pool[k].name ? o->pool[k].name : "", .bytes = o->pool[k].result.height,
			.lower_bound = o->pool[k].result.lower_bound};
	return plan;
}

static int
by_first(const void *a, const void *b)
{
	const om_box *x = a, *y = b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return (x->buffer > y->buffer) - (x->buffer < y->buffer);
}

/* A box for each interval in which a buffer is in use. */
static void
add_boxes(om_report *r, const om_problem *o, const char *const *name, om_arena *mem)
{
	size_t n = 0;

	for (uint32_t k = 0; k < o->n; k++)
		n += o->buf[k].nlive;
	r->box = OM_NEWN(mem, om_box, n);
	for (uint32_t k = 0; k < o->n; k++)
		for (uint32_t i = 0; i < o->buf[k].nlive; i++) {
			const om_buffer *b = &o->buf[k];
			const om_interval *l = &b->live[i];
			r->box[r->nbox++] = (om_box){.name = name[k], .kind = OM_BOX_OWN, .arena = b->pool, .offset = b->offset + l->from,
				.bytes = l->to ? l->to - l->from : b->bytes, .first = l->lower, .last = l->upper - 1, .is_later = i > 0,
				.buffer = k};
			r->nlive += l->lower <= r->peak_step && r->peak_step < l->upper;
		}
	if (r->nbox)
		qsort(r->box, r->nbox, sizeof *r->box, by_first);
}

om_report *
om_report_of_packing(const om_problem *o, const char *const *name, const char *path, om_arena *mem)
{
	om_report *r = OM_NEW(mem, om_report);
	const char *slash = om_path_slash(path);

	r->model = slash ? slash + 1 : path;
	r->plan = plan_of(o, mem);
	r->base = OM_NEWN(mem, uint64_t, o->npool);
	for (uint32_t k = 0; k < o->npool; k++) {
		r->base[k] = r->arena_bytes;
		r->arena_bytes += o->pool[k].result.height;
		r->lower_bound_bytes += o->pool[k].result.lower_bound;
	}
	for (uint32_t k = 0; k < o->n; k++)
		r->naive_bytes += o->buf[k].bytes;
	r->peak_step = o->pool[0].result.bound_step;
	r->parallel_safe = o->npool > 1;    /* then no one step decides */
	add_boxes(r, o, name, mem);
	return r;
}
