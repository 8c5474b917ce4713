/* SPDX-License-Identifier: Apache-2.0 */
/* Poison: memory is filled with a pattern when its contents die, so that reads of
 * dead bytes corrupt the results visibly; guards around every arena detect
 * out-of-bounds writes.
 *
 * The pattern is NaN in float16, bfloat16, float32 and float64, and an implausible
 * value as an integer. */
#include <config.h>

#include <stdlib.h>

#include "exec/device.h"
#include "exec/exec_internal.h"

enum { LOW = 0xfd, HIGH = 0x7f };

struct range {
	uint32_t arena;
	uint64_t from, to;
};

struct poison {
	struct range *range;       /* ranges that die, grouped by step */
	size_t n, cap;
	size_t *start;             /* by step: index into `range` */
};

void
om_poison_fill(void *p, uint64_t bytes)
{
	unsigned char *at = p;

	for (uint64_t k = 0; k < bytes; k++)
		at[k] = k & 1 ? HIGH : LOW;
}

/* A range in an arena with its lifetime. */
struct item {
	struct range at;
	uint32_t first, last;
};

static int
by_first(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	return (x->first > y->first) - (x->first < y->first);
}

static int
by_place(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->arena != y->arena)
		return x->arena < y->arena ? -1 : 1;
	return (x->from > y->from) - (x->from < y->from);
}

static size_t
list_items(const om_exec *e, struct item *item)
{
	const om_plan *plan = e->plan;
	size_t n = 0;

	for (uint32_t k = 0; k < plan->nplace; k++) {
		const om_placement *p = &plan->place[k];
		if (p->where == OM_IN_ARENA && p->bytes)
			item[n++] = (struct item){{p->arena, p->offset, p->offset + p->bytes}, p->live.first, p->live.last};
	}
	for (uint32_t k = 0; e->order[k]; k++) {
		const om_scratch *s = e->scratch[e->order[k]->id];
		if (s && s->bytes)
			item[n++] = (struct item){{s->arena, s->offset, s->offset + s->bytes},
				e->first_step[e->order[k]->id], e->last_step[e->order[k]->id]};
	}
	qsort(item, n, sizeof *item, by_first);
	return n;
}

/* Add the part of `dead` that no range of `still_live`, sorted by address, covers. */
static void
bury(om_exec *e, struct range dead, const struct range *still_live, size_t n)
{
	struct poison *p = e->poison;

	for (size_t k = 0; k < n && dead.from < dead.to; k++) {
		const struct range *a = &still_live[k];
		if (a->arena != dead.arena || a->to <= dead.from)
			continue;
		if (a->from >= dead.to)
			break;
		if (a->from > dead.from)
			OM_PUSH(e->mem, p->range, p->n, p->cap, ((struct range){dead.arena, dead.from, a->from}));
		dead.from = a->to;
	}
	if (dead.from < dead.to)
		OM_PUSH(e->mem, p->range, p->n, p->cap, dead);
}

/* Add the ranges that die at `step`.  `item` are the items live at it; those that stay live
 * are moved to the front, and their number is returned. */
static size_t
bury_step(om_exec *e, struct item *item, size_t n, uint32_t step, struct range *still_live)
{
	size_t nstill_live = 0, stay = 0;

	for (size_t k = 0; k < n; k++)
		if (item[k].last > step)
			still_live[nstill_live++] = item[k].at;
	if (nstill_live == n)
		return n;
	qsort(still_live, nstill_live, sizeof *still_live, by_place);
	for (size_t k = 0; k < n; k++) {
		if (item[k].last <= step)
			bury(e, item[k].at, still_live, nstill_live);
		else
			item[stay++] = item[k];
	}
	return stay;
}

struct poison *
om_poison_new(om_exec *e)
{
	om_arena *mem = om_arena_new();
	const size_t most = (size_t)e->plan->nplace + e->plan->nscratch;
	struct item *item = OM_NEWN(mem, struct item, most);
	struct item *live = OM_NEWN(mem, struct item, most);
	struct range *still_live = OM_NEWN(mem, struct range, most);
	const size_t n = list_items(e, item);
	size_t next = 0, nlive = 0;

	e->poison = OM_NEW(e->mem, struct poison);
	e->poison->start = OM_NEWN(e->mem, size_t, (size_t)e->nstep + 1);
	for (uint32_t step = 0; step < e->nstep; step++) {
		while (next < n && item[next].first <= step)
			live[nlive++] = item[next++];
		nlive = bury_step(e, live, nlive, step, still_live);
		e->poison->start[step + 1] = e->poison->n;
	}
	om_arena_free(mem);
	return e->poison;
}

om_status
om_poison_start(om_exec *e)
{
	for (uint32_t k = 0; k < e->narena; k++) {
		om_poison_fill(e->arena[k].data, e->arena[k].cap);
		if (!e->arena[k].data && e->device)
			OM_TRY(om_exec_device_fill(e, k, 0, e->plan->arena[k].bytes + 2 * e->guard));
	}
	return OM_OK;
}

om_status
om_poison_at(om_exec *e, uint32_t step)
{
	const struct poison *p = e->poison;

	for (size_t k = p->start[step]; k < p->start[step + 1]; k++) {
		const struct range *r = &p->range[k];
		if (!e->arena[r->arena].data)
			OM_TRY(om_exec_device_fill(e, r->arena, e->guard + r->from, e->guard + r->to));
		else
			om_poison_fill(e->arena[r->arena].data + e->guard + r->from, r->to - r->from);
	}
	return OM_OK;
}

static bool
is_whole(const om_exec *e, const struct room *r, uint64_t from)
{
	for (uint64_t k = from; k < from + e->guard; k++)
		if (r->data[k] != (k & 1 ? HIGH : LOW))
			return false;
	return true;
}

om_status
om_poison_check(om_exec *e, const om_op *op)
{
	for (uint32_t k = 0; k < e->narena; k++) {
		if (!e->arena[k].data)
			continue;
		const uint64_t bytes = e->arena[k].cap - 2 * e->guard;
		const bool front = is_whole(e, &e->arena[k], 0);
		if (front && is_whole(e, &e->arena[k], e->guard + bytes))
			continue;
		return om_op_fail(e->session, OM_RUN, op, "it wrote %s the arena of %llu bytes",
			front ? "after" : "before", (unsigned long long)bytes);
	}
	return om_exec_device_check(e, op);
}
