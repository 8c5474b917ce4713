/* Where values are: the arena and all that is outside of it. */
#include <config.h>

#include "exec/machine.h"

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
	const om_place *at = &e->plan->place[v->id];
	if (at->where == OM_IN_ARENA)
		t->data = e->arena[at->arena].data + OM_GUARD + at->offset;
}

static om_status
get_arenas(om_exec *e)
{
	const om_plan *plan = e->plan;

	e->narena = plan ? plan->narena : 0;
	e->arena = OM_NEWN(e->mem, struct room, e->narena);
	for (uint32_t k = 0; k < e->narena; k++) {
		const om_plan_arena *a = &plan->arena[k];
		if (a->bytes > PTRDIFF_MAX - 2 * OM_GUARD)
			return om_fail(e->session, OM_MEMORY, "the plan's arena of %llu bytes is too large",
				(unsigned long long)a->bytes);
		OM_TRY(om_room_fit(e, &e->arena[k], a->bytes + 2 * OM_GUARD, "the plan's arena"));
		e->stats.arena_bytes += a->bytes;
	}
	return OM_OK;
}

/* By value id: whose bytes it shares. */
static const om_alias **
list_aliases(const om_exec *e)
{
	const om_alias **alias = OM_NEWN(e->mem, const om_alias *, e->prog->nvalue);

	for (uint32_t k = 0; e->plan && k < e->plan->nalias; k++) {
		alias[e->plan->alias[k].value] = &e->plan->alias[k];
	}
	return alias;
}

/* What shares bytes outside the arena follows their owner; in the arena the plan
 * gives both their place. */
static void
follow_aliases(om_exec *e)
{
	const om_alias **alias = list_aliases(e);
	const om_plan *plan = e->plan;

	for (uint32_t id = 0; id < e->prog->nvalue; id++) {
		uint32_t at = id;
		uint64_t offset = 0;
		if (!alias[id] || !e->is_fixed[id] || e->prog->values[id]->is_const)
			continue;
		e->is_skipped[id] = alias[id]->kind == OM_ALIAS_VIEW;
		e->is_tied[id] = alias[id]->kind == OM_ALIAS_TIE;
		if (plan->place[id].where == OM_IN_ARENA)
			continue;
		for (; alias[at] && plan->place[at].where != OM_IN_ARENA; at = alias[at]->source)
			offset += alias[at]->offset;
		e->root[id] = e->prog->values[at];
		e->offset[id] = offset;
		om_exec_follow(e, e->prog->values[id], &e->slot[id]);
	}
}

/* A value that is fixed, but not in the arena, gets a room of its own.  Of the
 * graph's results that is left to the first run: the caller may bind them. */
static om_status
own_room(om_exec *e, om_value *v)
{
	const om_block *graph = e->prog->first;
	om_tensor *t = v ? &e->slot[v->id] : NULL;
	uint64_t bytes;

	if (!v || !e->is_fixed[v->id] || t->data || e->root[v->id] != v || v->is_const)
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
