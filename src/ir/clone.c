/* SPDX-License-Identifier: Apache-2.0 */
/* Cloning of ops, with their bodies. */
#include <config.h>

#include "ir/edit.h"
#include "ir/clone.h"
#include "onnxmem/builder.h"

om_clone
om_clone_new(om_session *s, om_prog *to, const om_prog *from, om_arena *mem, const char *prefix)
{
	return (om_clone){.session = s, .p = to, .from = from, .mem = mem, .prefix = prefix,
		.value = OM_NEWN(mem, om_value *, from->nvalue),
		.block = OM_NEWN(mem, om_block *, from->nblock),
		.nvalue = from->nvalue, .nblock = from->nblock};
}

/* Symbols of another program have no meaning here: keep only whether a dimension is known. */
static om_shape
shape_of(const om_clone *c, const om_shape *s)
{
	om_shape shape = *s;

	for (int k = 0; k < shape.rank && c->from != c->p; k++)
		shape.sym[k] = NULL;
	return shape;
}

om_value *
om_clone_value(om_clone *c, const om_value *v, om_block *b)
{
	om_value *copy = om_value_new(c->p, b, om_printf(c->mem, "%s%s", c->prefix, v->name));

	copy->type = v->type;
	copy->shape = shape_of(c, &v->shape);
	copy->data = v->data;
	copy->is_const = v->is_const && !v->def;
	copy->is_overridable = v->is_overridable;
	copy->is_declared = v->is_declared;
	copy->has_run_sizes = v->has_run_sizes;
	copy->origin = v->data && !v->def ? v->origin : NULL;
	if (v->def)
		copy->data = NULL;
	c->value[v->id] = copy;
	return copy;
}

om_value *
om_clone_mapped(om_clone *c, om_value *v)
{
	if (!v || v->block->prog != c->from || v->id >= c->nvalue)
		return v;
	if (c->value[v->id])
		return c->value[v->id];
	if (v->block->id < c->nblock && c->block[v->block->id] && !v->def && v->data)
		return om_clone_value(c, v, c->block[v->block->id]);
	return c->from == c->p ? v : NULL;
}

static om_status
clone_body(om_clone *c, const om_block *from, om_block *to)
{
	c->block[from->id] = to;
	for (uint32_t k = 0; k < from->nparam; k++)
		om_block_add_param(to, om_clone_value(c, from->param[k], to));
	for (om_op *op = from->first; op; op = op->next) {
		om_op *copy;
		OM_TRY(om_op_clone(c, op, to, NULL, &copy));
	}
	for (uint32_t k = 0; k < from->nresult; k++)
		om_block_add_result(to, om_clone_mapped(c, from->result[k]));
	return OM_OK;
}

static om_status
clone_graphs(om_clone *c, om_op *copy, om_attr *a)
{
	om_block **g = OM_NEWN(c->mem, om_block *, a->n + 1);

	for (size_t k = 0; k < a->n; k++) {
		const om_block *from = a->g[k];
		g[k] = om_block_new(c->p, copy, from->attr ? from->attr : a->name, from->name);
		if (from->prog == c->from) {
			OM_TRY(clone_body(c, from, g[k]));
		} else {
			om_clone in = om_clone_new(c->session, c->p, from->prog, c->mem, c->prefix);
			OM_TRY(clone_body(&in, from, g[k]));
		}
	}
	a->g = g;
	return OM_OK;
}

static om_status
clone_attr(om_clone *c, om_op *copy, const om_attr *from)
{
	om_attr a = *from;

	if (from->ref) {
		const om_attr *stands = c->ref ? c->ref(c->arg, from) : from;
		if (!stands)
			return OM_OK;
		if (stands->kind != from->kind)
			return om_op_fail(c->session, OM_INVALID, copy,
				"attribute %s of its function does not have the type that %s requires",
				stands->name, from->name);
		a = *stands;
		a.name = from->name;
	}
	if (!a.ref && (a.kind == OM_ATTR_GRAPH || a.kind == OM_ATTR_GRAPHS))
		OM_TRY(clone_graphs(c, copy, &a));
	om_op_add_attr(c->p, copy, &a);
	return OM_OK;
}

om_status
om_op_clone(om_clone *c, const om_op *op, om_block *b, om_op *before, om_op **out)
{
	om_op *copy = om_op_new(c->p, op->domain, op->type, op->version, op->nin, op->nout);

	*out = copy;
	copy->opdef = op->opdef;
	copy->call = op->call;
	copy->overload = om_strdup(c->p->mem, op->overload);
	copy->phase = op->phase;
	copy->device = op->device ? om_strdup(c->p->mem, op->device) : NULL;
	copy->rematerialized_from = op->rematerialized_from ? om_strdup(c->p->mem, op->rematerialized_from) : NULL;
	copy->region = op->region;
	copy->band = op->band;
	if (*op->name)
		copy->name = om_printf(c->p->mem, "%s%s", c->prefix, op->name);
	for (uint32_t k = 0; k < op->nin; k++)
		om_op_set_in(copy, k, om_clone_mapped(c, op->in[k]));
	om_op_place(b, before, copy);
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k]) {
			om_value *v = c->value[op->out[k]->id];
			om_op_set_out(copy, k, v ? v : om_clone_value(c, op->out[k], b));
		}
	for (uint32_t k = 0; k < op->nattr; k++)
		OM_TRY(clone_attr(c, copy, &op->attr[k]));
	return OM_OK;
}

om_value **
om_clone_take_outputs(om_clone *c, om_op *op, const om_block *body)
{
	om_value **through = OM_NEWN(c->mem, om_value *, op->nout);

	for (uint32_t k = 0; k < op->nout; k++) {
		om_value *v = op->out[k], *inner = body->result[k];
		if (!v)
			continue;
		op->out[k] = NULL;
		v->def = NULL;
		if (inner->def && inner->block == body && !c->value[inner->id])
			c->value[inner->id] = v;
		else
			through[k] = v;
	}
	return through;
}

void
om_clone_through(om_clone *c, om_value *source, om_value *v, om_op *op)
{
	om_op *id = om_op_new(c->p, "", "Identity", 0, 1, 1);

	om_op_set_in(id, 0, source);
	om_op_set_out(id, 0, v);
	om_op_insert(op, id);
}
