/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of values, inside and outside the arenas. */
#include <config.h>

#include "exec/device.h"
#include "exec/exec_internal.h"
#include "base/mapping.h"
#include "base/shape.h"
#include "ir/alias_roots.h"
#include "ir/type.h"
#include "opdef/op_context.h"

void
om_exec_follow(om_exec *e, const om_value *v, om_tensor *t)
{
	struct uses *u = &e->uses[e->root[v->id]->id];

	OM_PUSH(e->mem, u->use, u->n, u->cap, ((struct use){t, e->offset[v->id]}));
	t->data = e->slot[v->id].data;
}

void
om_exec_move(om_exec *e, const om_value *v, void *data)
{
	const struct uses *u = &e->uses[v->id];

	e->slot[v->id].data = data;
	for (size_t k = 0; k < u->n; k++)
		u->use[k].t->data = data ? (char *)data + u->use[k].offset : NULL;
}

static bool
is_fixed(const om_exec *e, const om_value *v)
{
	uint64_t bytes;

	if (v->type.kind != OM_TENSOR || !om_tensor_bytes(v->type.elem, &v->shape, &bytes))
		return false;
	if (v->type.elem == OM_UNDEFINED)
		return false;
	return v->is_const || !e->plan || e->plan->place[v->id].where != OM_UNPLANNED;
}

static void
fill_slot(om_exec *e, const om_value *v)
{
	om_tensor *t = &e->slot[v->id];

	*t = (om_tensor){.type = om_type_elem(&v->type), .shape = v->shape};
	if (v->type.kind != OM_TENSOR)
		t->shape = om_shape_unknown();
	e->is_fixed[v->id] = is_fixed(e, v);
	e->root[v->id] = (om_value *)v;
	if (!e->is_fixed[v->id] || !e->plan)
		return;
	const om_placement *at = &e->plan->place[v->id];
	if (at->where == OM_IN_ARENA && e->arena[at->arena].data)
		t->data = e->arena[at->arena].data + e->guard + at->offset;
}

/* Arena `k` in memory of the caller. */
static om_status
borrow_arena(om_exec *e, uint32_t k)
{
	const om_plan_arena *a = &e->plan->arena[k];
	const om_exec_memory *m = &e->options.arena[k];
	const uint64_t align = a->align ? a->align : e->plan->align;

	if (a->device && strcmp(a->device, "cpu") != 0)
		return om_fail(e->session, OM_UNSUPPORTED, "the arena %s is for the device %s: memory for it cannot be lent", a->name,
			a->device);
	if (a->bytes && (!m->data || m->bytes < a->bytes))
		return om_fail(e->session, OM_USAGE, "the arena %s requires %llu bytes, and memory of %llu bytes is lent", a->name,
			(unsigned long long)a->bytes, (unsigned long long)(m->data ? m->bytes : 0));
	if (align && (uintptr_t)m->data % align != 0)
		return om_fail(e->session, OM_USAGE, "the memory lent for the arena %s is not aligned to %llu bytes", a->name,
			(unsigned long long)align);
	e->arena[k] = (struct room){.data = m->data, .cap = a->bytes, .is_lent = true};
	e->stats.arena_bytes += a->bytes;
	return OM_OK;
}

static om_status
borrow_arenas(om_exec *e)
{
	if (e->options.narena != e->narena)
		return om_fail(e->session, OM_USAGE, "memory is lent for %u arenas, and the plan has %u", e->options.narena, e->narena);
	for (uint32_t k = 0; k < e->narena; k++)
		OM_TRY(borrow_arena(e, k));
	return OM_OK;
}

static om_status
get_arenas(om_exec *e)
{
	const om_plan *plan = e->plan;

	e->narena = plan ? plan->narena : 0;
	e->arena = OM_NEWN(e->mem, struct room, e->narena);
	if (e->options.arena)
		return borrow_arenas(e);
	for (uint32_t k = 0; k < e->narena; k++) {
		const om_plan_arena *a = &plan->arena[k];
		if (a->bytes > PTRDIFF_MAX - 2 * e->guard)
			return om_fail(e->session, OM_MEMORY, "the plan's arena of %llu bytes is too large",
				(unsigned long long)a->bytes);
		if (a->device && strcmp(a->device, "cpu") != 0) {
			OM_TRY(om_exec_device_arena(e, k, a->bytes + 2 * e->guard));
			continue;
		}
		OM_TRY(om_room_fit(e, &e->arena[k], a->bytes + 2 * e->guard, "the plan's arena"));
		om_pages_make(e->arena[k].data, e->arena[k].cap);
		e->stats.arena_bytes += a->bytes;
	}
	return OM_OK;
}

struct chains {
	om_exec *e;
	const om_alias **alias;
	uint32_t *hop;           /* values of one alias chain */
	bool *is_settled;
};

/* An alias of a value outside the arenas, or of a rotated value, is addressed relative to
 * that value; otherwise the plan gives both values their placement. */
static void
settle_root(struct chains *c, uint32_t id)
{
	om_exec *e = c->e;
	const om_alias *a = c->alias[id];

	c->is_settled[id] = true;
	if (!a || e->view[id] || !e->is_fixed[id] || e->prog->values[id]->is_const)
		return;
	const om_value *root = e->root[a->source];
	if (e->plan->place[id].where == OM_IN_ARENA && !e->view[root->id])
		return;
	e->root[id] = e->root[a->source];
	e->offset[id] = e->offset[a->source] + a->offset;
}

/* Alias chains can be as long as the program; each link is visited once. */
static void
follow_chain(struct chains *c, uint32_t id)
{
	uint32_t n = 0;

	for (; !c->is_settled[id]; id = c->alias[id]->source) {
		c->hop[n++] = id;
		if (!c->alias[id] || n > c->e->prog->nvalue)
			break;
	}
	while (n-- > 0)
		settle_root(c, c->hop[n]);
}

static void
follow_aliases(om_exec *e)
{
	const uint32_t n = e->prog->nvalue;
	struct chains c = {.e = e, .alias = om_aliases_by_value(e->plan, e->prog->nvalue, e->mem), .hop = OM_NEWN(e->mem, uint32_t, (size_t)n + 1),
		.is_settled = OM_NEWN(e->mem, bool, n)};

	for (uint32_t id = 0; id < n; id++) {
		const om_value *v = e->prog->values[id];
		follow_chain(&c, id);
		if (c.alias[id] && e->is_fixed[id] && !v->is_const) {
			e->is_skipped[id] = c.alias[id]->kind == OM_ALIAS_VIEW;
			e->is_tied[id] = om_alias_is_io(c.alias[id]);
			e->is_spent[c.alias[id]->source] |= e->is_tied[id];
			e->is_consumed[c.alias[id]->source] |= c.alias[id]->kind == OM_ALIAS_CONSUME;
		}
		if (e->root[id] != v)
			om_exec_follow(e, v, &e->slot[id]);
	}
}

/* Allocate a buffer for a fixed value that is not in an arena.  Buffers of graph results are
 * allocated in the first run, because the caller may bind them. */
static om_status
own_room(om_exec *e, om_value *v)
{
	const om_block *graph = e->prog->first;
	om_tensor *t = v ? &e->slot[v->id] : NULL;
	uint64_t bytes;

	if (!v || om_value_device(v) || !e->is_fixed[v->id] || t->data || e->root[v->id] != v || v->is_const || e->view[v->id])
		return OM_OK;
	for (uint32_t k = 0; k < graph->nresult; k++)
		if (graph->result[k] == v)
			return OM_OK;
	om_tensor_bytes(t->type, &t->shape, &bytes);
	OM_TRY(om_room_fit(e, &e->room[v->id], bytes, v->name));
	om_exec_move(e, v, e->room[v->id].data);
	return OM_OK;
}

om_status
om_exec_place(om_exec *e)
{
	const om_prog *p = e->prog;

	OM_TRY(get_arenas(e));
	e->scratch = OM_NEWN(e->mem, const om_scratch *, p->nop);
	for (uint32_t k = 0; e->plan && k < e->plan->nscratch; k++)
		e->scratch[e->plan->scratch[k].op] = &e->plan->scratch[k];
	for (uint32_t k = 0; k < p->nvalue; k++)
		fill_slot(e, p->values[k]);
	for (uint32_t k = 0; e->plan && k < e->plan->nview; k++)
		e->view[e->plan->view[k].value] = &e->plan->view[k];
	follow_aliases(e);
	for (uint32_t k = 0; e->order[k]; k++) {
		const om_op *op = e->order[k];
		for (uint32_t o = 0; o < op->nout && e->is_needed[op->id]; o++)
			OM_TRY(own_room(e, op->out[o]));
		for (uint32_t b = 0; b < op->nbody; b++)
			for (uint32_t i = 0; i < op->body[b]->nparam; i++)
				OM_TRY(own_room(e, op->body[b]->param[i]));
	}
	return OM_OK;
}
