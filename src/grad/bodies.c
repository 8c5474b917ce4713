/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of ops, and their counterparts in the backward path. */
#include <config.h>

#include "grad/bodies.h"
#include "base/arena_internal.h"
#include "grad/grad_builder.h"
#include "ir/clone.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "opdef/op_context.h"

void
om_values_push(om_grad *g, struct om_values *l, om_value *v)
{
	OM_PUSH(om_grad_mem(g), l->v, l->n, l->cap, v);
}

/* ---- Building bodies. ---- */

static om_block *
add_body(om_grad *g, om_op *op, const char *attr)
{
	om_prog *p = om_grad_prog(g);
	om_block *b = om_block_new(p, op, attr, om_printf(om_grad_mem(g), "%s_%s", op->out[0]->name, attr));

	om_op_add_attr(p, op, &(om_attr){.name = attr, .kind = OM_ATTR_GRAPH, .n = 1, .g = &b});
	return b;
}

om_grad *
om_emit_inside(om_grad *g, om_block *b)
{
	om_scope *s = OM_NEW(om_grad_mem(g), om_scope);

	*s = *om_grad_scope(g);
	s->to = b;
	return om_scope_grad(s, g);
}

om_grad *
om_emit_body(om_grad *g, om_op *op, const char *attr)
{
	return om_emit_inside(g, add_body(g, op, attr));
}

om_value *
om_emit_at(om_grad *g, const struct om_place *at, const char *type, const om_attr *attrs, size_t nin, om_value *const *in,
	om_value *out)
{
	struct om_tape *t = om_grad_scope(g)->tape;
	om_op *op = om_op_new(t->p, "", type, 0, (uint32_t)nin, 1);

	op->phase = at->phase;
	for (uint32_t k = 0; k < nin; k++)
		om_op_set_in(op, k, in[k]);
	om_op_set_out(op, 0, out);
	for (; attrs && attrs->name; attrs++)
		om_op_add_attr(t->p, op, attrs);
	om_op_place(at->b, at->before, op);
	if (t->status == OM_OK)
		om_tape_fail(t, om_op_infer(t->session, t->p, op));
	return out;
}

om_value *
om_emit_param(om_grad *g, const om_value *like, const char *what)
{
	om_value *v = om_tape_value(om_grad_scope(g)->tape, om_grad_scope(g)->to,
		om_printf(om_grad_mem(g), "%s_%s", like->name, what));

	v->type = like->type;
	v->shape = like->shape;
	return v;
}

void
om_emit_result(om_grad *g, om_value *v)
{
	om_block *b = om_grad_scope(g)->to;
	bool is_own = v->block == b && v->def;

	for (uint32_t k = 0; k < b->nresult; k++)
		is_own &= b->result[k] != v;
	om_block_add_result(b, is_own ? v : om_emit(g, "Identity", v));
}

om_value *
om_emit_length(om_grad *g, om_value *forward, int axis)
{
	const int64_t first = 0;
	const om_shape *s = &forward->shape;

	if (s->rank > axis && s->dim[axis] >= 0)
		return om_emit_int64(g, s->dim[axis]);
	return om_emit_squeeze(g, om_emit_dim(g, forward, axis), 1, &first);
}

om_value *
om_emit_positions(om_grad *g, om_value *forward, int axis)
{
	return om_emit(g, "Range", om_emit_int64(g, 0), om_emit_length(g, forward, axis), om_emit_int64(g, 1));
}

om_value *
om_emit_zeros(om_grad *g, om_dtype type, om_value *shape)
{
	const int64_t one = 1;
	const om_tensor t = {.type = type, .shape = om_shape_of(1, &one),
		.data = om_alloc(om_grad_prog(g)->mem, sizeof(uint64_t))};
	const om_attr value = {.name = "value", .kind = OM_ATTR_TENSOR, .n = 1, .t = &t};

	return om_emit_attrs(g, "ConstantOfShape", OM_A(value), shape);
}

/* ---- Ops of the backward path. ---- */

void
om_back_args(om_grad *g, om_op *op, const struct om_values *in, size_t nout)
{
	om_prog *p = om_grad_prog(g);
	om_value **out = OM_NEWN(p->mem, om_value *, nout + 1);

	om_op_set_inputs(p, op, (uint32_t)in->n, in->v);
	out[0] = op->out[0];
	op->out = out;
	op->nout = (uint32_t)nout;
	for (uint32_t k = 1; k < nout; k++)
		om_op_set_out(op, k, om_tape_value(om_grad_scope(g)->tape, om_grad_scope(g)->to, out[0]->name));
}

void
om_back_abandon(om_op *op)
{
	for (uint32_t k = 0; k < op->nbody; k++)
		om_block_remove(op->body[k]);
	for (uint32_t k = 0; k < op->nout; k++)
		op->out[k]->def = NULL;
	om_op_set_inputs(op->block->prog, op, 0, NULL);
	op->block = NULL;
}

/* ---- Ops of the forward path. ---- */

/* Returns an op in the bodies of `op` that a copy would not reproduce: a random op would draw other
 * numbers, and a side effect would happen twice. */
static const om_op *
unrepeatable(const om_op *op)
{
	for (uint32_t k = 0; k < op->nbody; k++)
		for (const om_op *in = op->body[k]->first; in; in = in->next) {
			const om_op *found = unrepeatable(in);
			if (found || (in->opdef && in->opdef->flags & (OM_RANDOM | OM_EFFECT)))
				return found ? found : in;
		}
	return NULL;
}

om_op *
om_body_own_op(om_grad *g)
{
	om_scope *s = om_grad_scope(g);
	const om_op *op = om_grad_op(g), *once;
	om_op *copy;

	if (s->outer || !s->tape->copies)
		return (om_op *)op;
	if ((once = unrepeatable(op)))
		om_grad_fail(g, OM_UNSUPPORTED,
			"%s %s in its body is random: the drawn values are not available without a change to "
			"the forward graph", once->type, once->out[0]->name);
	om_clone c = om_clone_new(s->tape->session, s->tape->p, s->tape->p, s->tape->mem, "copy_");
	const om_status st = om_op_clone(&c, op, s->to, NULL, &copy);
	copy->phase = OM_BACKWARD;
	om_tape_fail(s->tape, st);
	if (s->tape->status == OM_OK)
		om_tape_fail(s->tape, om_op_infer(s->tape->session, s->tape->p, copy));
	return copy;
}

om_value *
om_body_add_output(struct om_body *b, const char *name)
{
	struct om_tape *t = b->s->tape;
	om_op *op = b->op;
	om_value **out = OM_NEWN(t->p->mem, om_value *, (size_t)op->nout + 1);

	if (op->nout)
		memcpy(out, op->out, op->nout * sizeof *out);
	op->out = out;
	om_op_set_out(op, op->nout++, om_tape_value(t, op->block, name));
	return op->out[op->nout - 1];
}

om_value *
om_body_take_output(struct om_body *b, uint32_t k, const char *name)
{
	if (!b->op->out[k])
		om_op_set_out(b->op, k, om_tape_value(b->s->tape, b->op->block, name));
	return b->op->out[k];
}

void
om_body_infer(struct om_body *b)
{
	struct om_tape *t = b->s->tape;

	if (t->status == OM_OK)
		om_tape_fail(t, om_op_infer(t->session, t->p, b->op));
}

/* ---- A body. ---- */

void
om_body_start(struct om_body *b, om_grad *g, om_op *op, om_op *back, const char *attr, om_keeper *keep, void *arg)
{
	om_block *from = om_attr_graph(op, attr);

	*b = (struct om_body){.op = op, .back = back, .from = from, .outer = g};
	b->s = om_scope_new(g, from, add_body(g, back, attr));
	b->s->keep = keep;
	b->s->arg = arg;
	b->in = om_scope_grad(b->s, g);
}

om_value *
om_body_known(const struct om_body *b, const om_value *v)
{
	for (size_t k = 0; k < b->n; k++)
		if (b->stand[k].v == v)
			return b->stand[k].by;
	return NULL;
}

om_value *
om_body_stands(struct om_body *b, om_value *v, om_value *by)
{
	OM_PUSH(om_grad_mem(b->outer), b->stand, b->n, b->cap, ((struct om_stand){v, by}));
	return by;
}

om_value *
om_body_reach(struct om_body *b, om_value *v)
{
	return om_scope_import(om_grad_scope(b->outer), b->outer, v);
}

void
om_body_captured(struct om_body *b, struct om_values *all)
{
	const om_prog *p = om_grad_prog(b->outer);

	for (uint32_t id = 0; id < b->s->nvalue; id++) {
		om_value *v = p->values[id];
		bool is_new = b->s->grad[id] && v->block != b->from && om_block_inside(b->from, v->block)
			&& om_grad_value_is_needed(b->outer, v);
		for (size_t k = 0; k < all->n; k++)
			is_new &= all->v[k] != v;
		if (is_new)
			om_values_push(b->outer, all, v);
	}
}
