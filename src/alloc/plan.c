/* SPDX-License-Identifier: Apache-2.0 */
/* Makes plans from packed buffers. */
#include <config.h>

#include "ir/edit.h"
#include "alloc/assign.h"
#include "alloc/buffers.h"
#include "alloc/op_facts.h"
#include "alloc/op_floor.h"
#include "alloc/order_bound.h"
#include "alloc/plan_arenas.h"
#include "base/sizes.h"
#include "ir/query.h"
#include "onnxmem/builder.h"
#include "onnxmem/plan.h"

om_plan *
om_plan_empty(om_prog *p)
{
	om_plan *plan = OM_NEW(p->mem, om_plan);

	plan->mem = p->mem;
	plan->strategy = "";
	plan->arena = OM_NEW(p->mem, om_plan_arena);
	plan->place = OM_NEWN(p->mem, om_placement, p->nvalue);
	plan->alias = OM_NEWN(p->mem, om_alias, p->nvalue);
	plan->view = OM_NEWN(p->mem, om_plan_multi_view, p->nvalue);
	plan->scratch = OM_NEWN(p->mem, om_scratch, p->nop);
	plan->unplanned = OM_NEWN(p->mem, om_unplanned, p->nvalue);
	plan->nplace = p->nvalue;
	plan->align = 64;
	p->plan = plan;
	return plan;
}

struct writer {
	om_prog *p;
	om_plan *plan;
	const om_buffers *b;
	const om_assignment *a;  /* the assignment of the buffers */
	uint32_t arena;          /* index of the arena of pool 0 */
};

static void
add_naive(struct writer *w, uint32_t arena, uint64_t bytes)
{
	uint64_t *naive = &w->plan->arena[arena].naive;
	const uint64_t align = w->plan->align;

	*naive = om_size_sum(*naive, (bytes + align - 1) & ~(align - 1));
}

/* Place a value without a buffer.  A value in a weight or in the caller's memory has the location of
 * its root. */
static void
place_outside(struct writer *w, om_value *v, om_placement *at)
{
	uint64_t bytes;
	const om_value *root = w->b->root[v->id];
	const bool *unplanned = w->a->facts->is_unplanned;

	if (unplanned[v->id] || unplanned[root->id]) {
		const char *why = om_value_unplanned(w->p, unplanned[v->id] ? v : root, w->a->facts->most[unplanned[v->id] ? v->id : root->id]);
		at->where = OM_UNPLANNED;
		w->plan->unplanned[w->plan->nunplanned++] = (om_unplanned){v->id, why};
		return;
	}
	at->where = root->is_const || (!root->def && root->block != w->p->first)
		? OM_WEIGHT : OM_EXTERNAL;
	at->offset = w->b->offset[v->id];
	if (om_tensor_bytes(v->type.elem, &v->shape, &bytes))
		at->bytes = bytes;
}

/* An output in the memory of an input that it does not replace in the next run: who runs the plan has to know. */
static bool
is_consumed(const om_prog *p, const om_value *output, const om_value *input)
{
	for (uint32_t k = 0; k < p->nio_alias; k++)
		if (p->first->result[p->io_alias[k].result] == output && p->first->param[p->io_alias[k].param] == input)
			return false;
	return true;
}

static om_alias_kind
kind_of(const struct writer *w, const om_value *v, const om_backing *backing)
{
	static const om_alias_kind kinds[] = {
		[OM_VIEW] = OM_ALIAS_VIEW, [OM_INPLACE] = OM_ALIAS_INPLACE, [OM_IO_ALIAS] = OM_ALIAS_IO,
		[OM_SUBBUFFER] = OM_ALIAS_SUBBUFFER,
	};

	return backing->store == OM_IO_ALIAS && is_consumed(w->p, v, backing->source) ? OM_ALIAS_CONSUME : kinds[backing->store];
}

static void
place_value(struct writer *w, om_value *v)
{
	const uint64_t align = w->plan->align;
	om_placement *at = &w->plan->place[v->id];
	const om_backing *backing = &w->a->backing[v->id];
	const uint32_t n = w->b->of_value[v->id];

	at->live = w->a->live[v->id];
	at->live.range = om_memdup(w->p->mem, at->live.range, at->live.nrange * sizeof *at->live.range);
	if (n == UINT32_MAX) {
		place_outside(w, v, at);
	} else {
		const uint64_t bytes = w->a->facts->bytes[v->id];
		at->where = OM_IN_ARENA;
		at->arena = w->arena + w->b->buf[n].pool;
		add_naive(w, at->arena, bytes);
		at->offset = w->b->buf[n].offset + w->b->offset[v->id];
		at->bytes = backing->source ? bytes : (bytes + align - 1) & ~(align - 1);
	}
	if (backing->source && at->where != OM_UNPLANNED)
		w->plan->alias[w->plan->nalias++] =
			(om_alias){kind_of(w, v, backing), v->id, backing->source->id, backing->offset};
}

/* ---- Views. ---- */

/* The region of a value of the body: its placement in the arena, unless its storage moves with an
 * outer loop or is outside the arena. */
static om_region
home_of(const struct writer *w, const om_block *body, const om_value *v, uint64_t offset)
{
	const uint32_t n = w->b->of_value[v->id];
	const om_backing *backing = w->a->backing;
	const om_value *at = v;

	while (backing[at->id].source && om_block_inside(at->block, body)) {
		offset += backing[at->id].offset;
		at = backing[at->id].source;
	}
	if (!om_block_inside(at->block, body)) {
		for (const om_value *s = at; s; s = backing[s->id].source)
			if (w->a->multi_view[s->id] || !backing[s->id].source) {
				if (w->a->multi_view[s->id] || n == UINT32_MAX)
					return (om_region){at->id, 0, offset};
				break;
			}
	}
	return (om_region){OM_NO_VALUE, w->arena + w->b->buf[n].pool,
		w->b->buf[n].offset + w->b->offset[at->id] + offset};
}

static om_region
region(const struct writer *w, const om_block *body, const om_address *s)
{
	if (om_block_inside(s->in->block, body) && !s->in->is_const)
		return home_of(w, body, s->in, s->offset);
	return (om_region){s->in->id, 0, s->offset};
}

static void
place_view(struct writer *w, const om_value *v)
{
	const om_multi_view *r = w->a->multi_view[v->id];
	const om_op *loop = r->is_output ? v->def : v->block->owner;
	const om_block *body = loop->body[0];
	om_region *off = OM_NEWN(w->p->mem, om_region, r->period);
	om_region *first = OM_NEWN(w->p->mem, om_region, r->nprologue);

	for (uint32_t k = 0; k < r->period; k++)
		off[k] = region(w, body, &r->at[k]);
	for (uint32_t k = 0; k < r->nprologue; k++)
		first[k] = region(w, body, &r->first[k]);
	w->plan->view[w->plan->nview++] = (om_plan_multi_view){v->id, r->is_output, r->period, r->nprologue, off, first,
		r->stride};
}

static void
place_views(struct writer *w)
{
	for (uint32_t k = 0; k < w->p->nvalue; k++)
		if (w->a->multi_view[k])
			place_view(w, w->p->values[k]);
}

static void
place_scratch(struct writer *w, const om_op *op)
{
	const uint32_t n = w->b->of_op[op->id];

	if (n == UINT32_MAX)
		return;
	const om_buffer *buf = &w->b->buf[n];
	w->plan->scratch[w->plan->nscratch++] =
		(om_scratch){op->id, w->arena + buf->pool, buf->offset, buf->bytes};
	add_naive(w, w->arena + buf->pool, buf->bytes);
}

static void
place_block(struct writer *w, const om_block *b)
{
	for (uint32_t k = 0; k < b->nparam; k++)
		place_value(w, b->param[k]);
	for (const om_op *op = b->first; op; op = op->next) {
		for (uint32_t k = 0; k < op->nout; k++)
			if (op->out[k])
				place_value(w, op->out[k]);
		place_scratch(w, op);
		for (uint32_t k = 0; k < op->nbody; k++)
			place_block(w, op->body[k]);
	}
}

/* Constants have a separate location, wherever they are defined. */
static void
place_weights(struct writer *w)
{
	for (uint32_t k = 0; k < w->p->nvalue; k++) {
		const om_value *v = w->p->values[k];
		om_placement *at = &w->plan->place[k];
		if (at->where != OM_UNUSED || !v->is_const || (v->def && !v->def->block))
			continue;
		at->where = OM_WEIGHT;
		if (!om_tensor_bytes(v->type.elem, &v->shape, &at->bytes))
			at->bytes = 0;
	}
}

/* An arena as requested, still empty. */
static om_plan_arena
empty_arena(const om_plan_request *r, uint32_t k, om_arena *mem)
{
	const om_arena_spec *want = &r->arena[k];

	return (om_plan_arena){.name = om_strdup(mem, want->name), .device = om_strdup(mem, want->device),
		.limit = want->limit, .align = want->align > r->align ? want->align : r->align};
}

static om_plan *
start_plan(om_prog *p, const om_assignment *a, const char *strategy)
{
	const om_plan_request *r = a->request;
	om_plan *plan = om_plan_empty(p);

	plan->strategy = om_strdup(p->mem, strategy);
	plan->schedule = a->schedule;
	plan->parallel_safe = r->parallel_safe;
	plan->streams = a->schedule->streams;
	plan->target = r->target;
	plan->threads = r->threads;
	plan->precise = r->precise;
	plan->align = r->align;
	plan->narena = r->narena;
	plan->arena = OM_NEWN(p->mem, om_plan_arena, plan->narena);
	for (uint32_t k = 0; k < plan->narena; k++)
		plan->arena[k] = empty_arena(r, k, p->mem);
	plan->pin = om_plan_request_copy(r, p->mem)->pin;
	plan->npin = r->npin;
	return plan;
}

static void
fill_arena(om_plan_arena *a, const om_pack_result *r)
{
	a->bytes = r->height;
	a->lower_bound = r->lower_bound;
	a->bound_step = r->bound_step;
	a->status = r->status;
	a->is_limited = r->is_limited;
}

/* Without sharing, values stored in the memory of a graph result would require arena space, too. */
static void
add_rest(struct writer *w)
{
	uint64_t sum = 0;

	for (uint32_t k = 0; k < w->plan->narena; k++)
		if (__builtin_add_overflow(sum, w->plan->arena[k].naive, &sum))
			return;
	if (w->b->naive > sum)
		w->plan->arena[w->arena].naive += w->b->naive - sum;
}

/* A plan in which nothing has a place, though there are values, proves nothing. */
static void
withdraw_claim(om_plan *plan)
{
	bool is_empty = plan->nunplanned > 0;

	for (uint32_t k = 0; k < plan->narena; k++)
		is_empty &= plan->arena[k].bytes == 0;
	for (uint32_t k = 0; k < plan->narena && is_empty; k++)
		plan->arena[k].status = OM_PACK_FEASIBLE;
}

static void
fill_plan(struct writer *w)
{
	place_block(w, w->p->first);
	place_weights(w);
	place_views(w);
	add_rest(w);
	withdraw_claim(w->plan);
	uint64_t *of_op = OM_NEWN(w->p->mem, uint64_t, w->p->nop);
	w->plan->op_floor = of_op;
	w->plan->floor = om_op_floor(w->p, w->a, w->plan, of_op, &w->plan->floor_op);
	if (w->plan->narena != 1)
		return;
	const uint64_t bound = om_order_bound(w->p, w->a, w->plan, w->plan->arena->bytes);
	w->plan->arena->order_bound = bound > w->plan->floor ? bound : w->plan->floor;
}

void
om_plan_new(om_prog *p, const om_buffers *b, const om_pack_result *r, const char *strategy)
{
	struct writer w = {.p = p, .plan = start_plan(p, b->assignment, strategy), .b = b, .a = b->assignment};
	const om_plan *plan = w.plan;

	while (w.arena + 1 < plan->narena && plan->arena[w.arena].limit
	       && plan->arena[w.arena].limit < r->height)
		w.arena++;
	om_pack_result known = *r;
	known.lower_bound = om_pack_bound(b->buf, b->n, r->lower_bound ? NULL : &known.bound_step);
	known.lower_bound = known.lower_bound > r->lower_bound ? known.lower_bound : r->lower_bound;
	if (known.height <= known.lower_bound)
		known.status = OM_PACK_OPTIMAL;
	fill_arena(&plan->arena[w.arena], &known);
	fill_plan(&w);
}

om_pool *
om_plan_wanted(const om_plan_request *r, om_arena *mem)
{
	om_pool *pool = OM_NEWN(mem, om_pool, r->narena);

	for (uint32_t k = 0; k < r->narena; k++) {
		const om_plan_arena a = empty_arena(r, k, mem);
		pool[k] = (om_pool){.name = a.name, .limit = a.limit, .align = a.align};
	}
	return pool;
}

void
om_plan_pools(om_prog *p, const om_buffers *b, const om_pool *pool, const char *strategy)
{
	struct writer w = {.p = p, .plan = start_plan(p, b->assignment, strategy), .b = b, .a = b->assignment};

	for (uint32_t k = 0; k < w.plan->narena; k++)
		fill_arena(&w.plan->arena[k], &pool[k].result);
	fill_plan(&w);
}

const char *
om_plan_arena_status(const om_plan_arena *a)
{
	if (a->status != OM_PACK_OPTIMAL)
		return "feasible";
	return a->bytes == a->order_bound ? "optimal" : "optimal packing";
}

bool
om_plan_offset(const om_prog *p, const om_plan *plan, const char *name, uint32_t *arena, uint64_t *offset)
{
	const om_value *v = om_prog_find(p, name);
	const om_placement *at = v && v->id < plan->nplace ? &plan->place[v->id] : NULL;

	if (!at || at->where != OM_IN_ARENA)
		return false;
	if (arena)
		*arena = at->arena;
	if (offset)
		*offset = at->offset;
	return true;
}
