/* Constants: materialized if kernels read them; folded ops without elements are computed
 * once.
 *
 * Required are the constants that ops of the run read, and the constants from which those are
 * computed.  A splat is not expanded if its only users are folded ops that keep it a splat, or
 * read only its shape. */
#include <config.h>

#include "exec/exec_internal.h"
#include "base/arena_internal.h"
#include "base/mapping.h"
#include "base/shape.h"
#include "opdef/kernel_call.h"
#include "opdef/op_context.h"
#include "onnxmem/kernel.h"

struct weights {
	om_exec *e;
	bool *wanted;      /* by value: its elements are required while constants are computed */
	bool *kept;        /* by value: also required in runs */
};

static bool
is_left(const om_op *op)
{
	if (!op->is_folded)
		return false;
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && !op->out[k]->data)
			return true;
	return false;
}

static void
mark_wanted(struct weights *w, const om_value *v, bool in_runs)
{
	v = w->e->root[v->id];
	w->wanted[v->id] = true;
	w->kept[v->id] |= in_runs;
}

static void
want_inputs(struct weights *w, const om_op *op, bool in_runs)
{
	if (op->opdef && op->opdef->flags & OM_SHAPE_ONLY)
		return;
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k])
			mark_wanted(w, op->in[k], in_runs);
}

/* In reverse order, so that a folded op is visited after all of its users. */
static void
find_wanted(struct weights *w)
{
	const om_exec *e = w->e;
	uint32_t n = 0;

	for (const om_block *b = e->prog->first; b; b = b->next)
		for (uint32_t k = 0; k < b->nresult; k++)
			mark_wanted(w, b->result[k], true);
	while (e->order[n])
		n++;
	while (n-- > 0) {
		const om_op *op = e->order[n];
		bool any = !op->is_folded && e->is_needed[op->id];
		for (uint32_t o = 0; is_left(op) && o < op->nout; o++)
			any |= op->out[o] && w->wanted[op->out[o]->id];
		if (any)
			want_inputs(w, op, !op->is_folded);
	}
}

static om_status
own_memory(struct weights *w, const om_value *v)
{
	om_tensor *t = &w->e->slot[v->id];
	uint64_t bytes;

	if (!om_tensor_bytes(t->type, &t->shape, &bytes))
		return om_fail(w->e->session, OM_INVALID, "the size of constant %s overflows",
			v->name);
	OM_TRY(om_room_fit(w->e, &w->e->room[v->id], bytes, v->name));
	w->e->stats.weight_bytes += bytes;
	om_exec_move(w->e, v, w->e->room[v->id].data);
	return OM_OK;
}

/* Mapped elements are used in place; they are copied only where they are not aligned for their type, as in most
 * files, and for an alignment above OM_ROOM_ALIGN. */
static bool
is_aligned(const om_exec *e, const om_tensor *data)
{
	return om_tensor_is_aligned(data) && (e->align <= OM_ROOM_ALIGN || (uintptr_t)data->data % e->align == 0);
}

/* Pages of files are given back as soon as they were copied: both are never in memory whole. */
static void
copy_elements(struct weights *w, const om_value *v)
{
	const om_tensor *t = &w->e->slot[v->id];
	uint64_t bytes;

	if (v->data->splat || !om_tensor_bytes(t->type, &t->shape, &bytes))
		om_elements_copy(t->data, v->data, w->e->room[v->id].cap);
	else
		om_mappings_move(w->e->prog->files, t->data, v->data->data, bytes);
}

/* Bind a constant whose elements are known. */
static om_status
bind(struct weights *w, const om_value *v)
{
	om_exec *e = w->e;
	om_tensor *t = &e->slot[v->id];
	const om_tensor *data = v->data;

	if (!data->data)
		return om_fail(e->session, OM_RUN, "the elements of constant %s are not known", v->name);
	t->splat = data->splat && !w->wanted[v->id];
	if (t->splat || (!data->splat && is_aligned(e, data))) {
		om_exec_move(e, v, data->data);
		return OM_OK;
	}
	OM_TRY(own_memory(w, v));
	copy_elements(w, v);
	return OM_OK;
}

static bool
is_constant(const om_value *v)
{
	return v->data && (v->is_const || v->is_overridable);
}

/* The elements of a constant of which only the shape is read may be absent. */
static bool
is_readable(const struct weights *w, const om_value *v)
{
	return w->wanted[v->id] || v->data->data;
}

static om_status
alloc_constant(om_op_context *c, uint32_t k, const om_shape *shape)
{
	struct weights *w = c->host;
	const om_value *v = c->op->out[k];

	w->e->slot[v->id].shape = *shape;
	w->e->slot[v->id].type = c->out[k].type;
	OM_TRY(own_memory(w, v));
	c->out[k] = w->e->slot[v->id];
	return OM_OK;
}

/* Make an output of a folded op a view of its input, if the operator permits it. */
static bool
look_through(struct weights *w, om_op_context *c, uint32_t k)
{
	const om_opdef *row = c->op->opdef;
	om_view_of of;

	if (!row->view || !om_shape_is_known(&c->out[k].shape) || !row->view(c, k, &of))
		return false;
	w->e->slot[c->op->out[k]->id] = c->out[k];
	om_exec_move(w->e, c->op->out[k], (char *)c->in[of.in].data + of.offset);
	/* The view requires the memory of its source. */
	w->kept[c->op->in[of.in]->id] = true;
	return true;
}

static om_status
run_kernel(struct weights *w, om_op_context *c)
{
	const om_op *op = c->op;
	bool all = true;

	OM_TRY(om_op_check_shapes(c));
	for (uint32_t k = 0; k < op->nout; k++)
		all &= !op->out[k] || look_through(w, c, k);
	if (all)
		return OM_OK;
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && !(op->opdef->flags & OM_DATA_DEPENDENT_SHAPE))
			OM_TRY(alloc_constant(c, k, &c->out[k].shape));
	return om_kernel_call(c);
}

/* Infer missing shapes, as of a branch that is inconsistent with the rest. */
static om_status
complete(om_op_context *c)
{
	bool known = true;

	for (uint32_t k = 0; k < c->op->nout; k++)
		known &= !c->op->out[k] || om_shape_is_known(&c->out[k].shape);
	if (known || c->op->opdef->flags & OM_DATA_DEPENDENT_SHAPE || !c->op->opdef->infer)
		return OM_OK;
	for (uint32_t k = 0; k < c->op->nout; k++)
		c->out[k] = (om_tensor){.shape = om_shape_unknown()};
	return c->op->opdef->infer(c);
}

static om_status
compute(struct weights *w, om_op *op)
{
	om_exec *e = w->e;
	om_op_context c;
	bool any = false;

	for (uint32_t k = 0; k < op->nout; k++)
		any |= op->out[k] && w->wanted[op->out[k]->id] && !op->out[k]->data;
	if (!any)
		return OM_OK;
	om_op_context_init(&c, e->session, e->call, op);
	om_tensor *in = (om_tensor *)c.in;
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k])
			in[k] = e->slot[op->in[k]->id];
	c.alloc = alloc_constant;
	c.host = w;
	om_status st = complete(&c);
	if (st == OM_OK)
		st = run_kernel(w, &c);
	om_arena_clear(e->call);
	return st == OM_OK ? st : om_note(e->session, st, "preparing constants");
}

/* Free intermediate constants. */
static void
release(struct weights *w)
{
	om_exec *e = w->e;

	for (uint32_t k = 0; k < e->prog->nvalue; k++) {
		if (!e->prog->values[k]->is_const || w->kept[k] || !e->room[k].data)
			continue;
		e->stats.weight_bytes -= e->room[k].cap;
		om_room_free(e, &e->room[k]);
		om_exec_move(e, e->prog->values[k], NULL);
	}
}

om_status
om_exec_weights(om_exec *e)
{
	const om_prog *p = e->prog;
	struct weights w = {.e = e, .wanted = OM_NEWN(e->mem, bool, p->nvalue),
		.kept = OM_NEWN(e->mem, bool, p->nvalue)};

	find_wanted(&w);
	for (uint32_t k = 0; k < p->nvalue; k++)
		if (is_constant(p->values[k]) && is_readable(&w, p->values[k]))
			OM_TRY(bind(&w, p->values[k]));
	for (uint32_t k = 0; e->order[k]; k++)
		if (is_left(e->order[k]))
			OM_TRY(compute(&w, e->order[k]));
	release(&w);
	return OM_OK;
}
