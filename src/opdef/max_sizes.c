/* SPDX-License-Identifier: Apache-2.0 */
/* Upper bounds for sizes that elements of a run decide.
 *
 * An operator that decides sizes has a bound of its own (om_opdef.max_shape).  For one whose dims never shrink where dims of its
 * inputs grow (OM_MONOTONE, OM_POINTWISE), the shape that is inferred from bounds of all inputs is a bound.  Both are computed
 * from the first op to the last, so that bounds follow from bounds.  All inputs need one: next to an unknown dim, inference may
 * conclude that a dim is not 1, which is no bound of it. */
#include <config.h>

#include "base/arena_internal.h"
#include "base/shape.h"
#include "ir/query.h"
#include "opdef/max_sizes.h"
#include "opdef/op_context.h"

struct bounds {
	const om_prog *p;
	om_arena *mem, *tmp;
	const om_shape **most;   /* by value id; NULL: no bound, or known */
};

static bool
is_open(const om_value *v)
{
	return v && v->type.kind == OM_TENSOR && !om_shape_is_known(&v->shape);
}

/* A query in which inputs have their largest shapes.  False if one has none. */
static bool
at_most(const struct bounds *w, om_op_context *c, const om_op *op)
{
	om_tensor *in;
	bool all = true;

	om_op_context_init(c, NULL, w->tmp, op);
	c->keep = w->tmp;
	c->out_type = OM_NEWN(w->tmp, om_type, op->nout);
	in = (om_tensor *)c->in;
	for (uint32_t k = 0; k < op->nin; k++) {
		const om_value *v = op->in[k];
		if (is_open(v) && w->most[v->id])
			in[k].shape = *w->most[v->id];
		all &= !v || (v->type.kind == OM_TENSOR && om_shape_is_known(&in[k].shape));
	}
	return all;
}

/* What is inferred from the largest inputs. */
static const om_shape *
inferred(const struct bounds *w, om_op_context *c)
{
	om_shape *shape = OM_NEWN(w->tmp, om_shape, c->op->nout);

	for (uint32_t k = 0; k < c->op->nout; k++)
		c->out[k] = (om_tensor){.shape = om_shape_unknown()};
	if (c->op->opdef->infer(c) != OM_OK)
		return NULL;
	for (uint32_t k = 0; k < c->op->nout; k++)
		shape[k] = c->out[k].shape;
	return shape;
}

/* Dims that are known are exact; the rank has to be known. */
static void
complete(om_shape *most, const om_shape *found)
{
	for (int d = 0; most->rank == found->rank && d < most->rank; d++)
		if (most->dim[d] < 0)
			most->dim[d] = found->dim[d];
}

static void
bound_op(struct bounds *w, const om_op *op)
{
	const unsigned monotone = OM_MONOTONE | OM_POINTWISE;
	const om_opdef *row = op->opdef;
	const om_shape *found = NULL;
	om_op_context c;
	bool any = false;

	for (uint32_t k = 0; k < op->nout; k++)
		any |= is_open(op->out[k]);
	if (!any || !row || row->control != OM_PLAIN || !(row->max_shape || row->flags & monotone))
		return;
	om_arena_clear(w->tmp);
	if (at_most(w, &c, op) && row->flags & monotone && !(row->flags & OM_DATA_DEPENDENT_SHAPE) && row->infer)
		found = inferred(w, &c);
	for (uint32_t k = 0; k < op->nout; k++) {
		if (!is_open(op->out[k]))
			continue;
		om_shape most = op->out[k]->shape;
		if (found)
			complete(&most, &found[k]);
		if (!om_shape_is_known(&most) && row->max_shape)
			row->max_shape(&c, k, &most);
		if (om_shape_is_known(&most))
			w->most[op->out[k]->id] = om_memdup(w->mem, &most, sizeof most);
	}
}

/* The largest shape of a value; NULL: there is none. */
static const om_shape *
largest(const struct bounds *w, const om_value *v)
{
	if (v->type.kind != OM_TENSOR)
		return NULL;
	return om_shape_is_known(&v->shape) ? &v->shape : w->most[v->id];
}

/* An output is the result of one branch. */
static void
bound_if(struct bounds *w, const om_op *op)
{
	for (uint32_t k = 0; k < op->nout && op->nbody == 2; k++) {
		if (!is_open(op->out[k]) || k >= op->body[0]->nresult || k >= op->body[1]->nresult)
			continue;
		const om_shape *a = largest(w, op->body[0]->result[k]), *b = largest(w, op->body[1]->result[k]);
		if (!a || !b || a->rank != b->rank || op->out[k]->shape.rank != a->rank)
			continue;
		om_shape *most = om_memdup(w->mem, &op->out[k]->shape, sizeof *most);
		for (int d = 0; d < a->rank; d++)
			if (most->dim[d] < 0)
				most->dim[d] = a->dim[d] > b->dim[d] ? a->dim[d] : b->dim[d];
		w->most[op->out[k]->id] = most;
	}
}

static void
bound_block(struct bounds *w, const om_block *b)
{
	for (const om_op *op = b->first; op; op = op->next) {
		bound_op(w, op);
		for (uint32_t k = 0; k < op->nbody; k++)
			bound_block(w, op->body[k]);
		if (op->opdef && op->opdef->control == OM_IF)
			bound_if(w, op);
	}
}

static uint64_t
bytes_of(const om_value *v, const om_shape *most)
{
	uint64_t bytes = 0;

	return most && v->type.elem != OM_UNDEFINED && v->type.elem != OM_STRING && om_tensor_bytes(v->type.elem, most, &bytes)
		&& bytes <= INT64_MAX / 4 ? bytes : 0;
}

const uint64_t *
om_max_sizes_new(const om_prog *p, om_arena *mem)
{
	uint64_t *bytes = OM_NEWN(mem, uint64_t, p->nvalue);
	struct bounds w = {.p = p, .mem = om_arena_new(), .tmp = om_arena_new()};

	w.most = OM_NEWN(w.mem, const om_shape *, p->nvalue);
	bound_block(&w, p->first);
	for (uint32_t k = 0; k < p->nvalue; k++)
		bytes[k] = bytes_of(p->values[k], w.most[k]);
	om_arena_free(w.tmp);
	om_arena_free(w.mem);
	return bytes;
}

const uint64_t *
om_planned_max_sizes_new(const om_prog *p, om_arena *mem)
{
	uint64_t *bytes = (uint64_t *)om_max_sizes_new(p, mem);

	for (uint32_t k = 0; k < p->nvalue; k++) {
		const om_op *op = p->values[k]->def;
		if (p->values[k]->is_const || !op || op->is_folded || op->nbody)
			bytes[k] = 0;
	}
	for (const om_block *b = p->first; b; b = b->next)
		for (uint32_t k = 0; k < b->nresult; k++)
			bytes[b->result[k]->id] = 0;
	return bytes;
}
