/* SPDX-License-Identifier: Apache-2.0 */
/* Queries of a program: attributes, scopes, storage, steps. */
#include <config.h>

#include "ir/query.h"
#include "ir/steps.h"
#include "onnxmem/opdef.h"

int
om_opset_version(const om_prog *p, const char *domain)
{
	for (size_t k = 0; k < p->nopset; k++)
		if (strcmp(p->opset[k].domain, domain) == 0)
			return p->opset[k].version;
	return 0;
}

const om_attr *
om_attr_find(const om_op *op, const char *name)
{
	for (uint32_t k = 0; k < op->nattr; k++)
		if (strcmp(op->attr[k].name, name) == 0)
			return &op->attr[k];
	return NULL;
}

bool
om_attr_has(const om_op *op, const char *name)
{
	return om_attr_find(op, name) != NULL;
}

static const om_attr_spec *
spec_of(const om_opdef *row, const char *name)
{
	if (row && row->attrs)
		for (const om_attr_spec *a = row->attrs; a->name; a++)
			if (strcmp(a->name, name) == 0)
				return a;
	return NULL;
}

const om_attr *
om_attrs_of(om_arena *mem, const om_op *op, const om_opdef *row)
{
	om_attr *list = OM_NEWN(mem, om_attr, (size_t)op->nattr + 1);
	size_t n = 0;

	for (uint32_t k = 0; k < op->nattr; k++)
		if (spec_of(row, op->attr[k].name))
			list[n++] = op->attr[k];
	return list;
}

/* The attribute, if it is present with the requested kind. */
static const om_attr *
of_kind(const om_op *op, const char *name, om_attr_kind kind)
{
	const om_attr *a = om_attr_find(op, name);
	return a && a->kind == kind ? a : NULL;
}

int64_t
om_attr_int(const om_op *op, const char *name)
{
	const om_attr *a = of_kind(op, name, OM_ATTR_INT);
	const om_attr_spec *d = spec_of(op->opdef, name);

	return a ? *a->i : d ? d->i : 0;
}

float
om_attr_float(const om_op *op, const char *name)
{
	const om_attr *a = of_kind(op, name, OM_ATTR_FLOAT);
	const om_attr_spec *d = spec_of(op->opdef, name);

	return a ? *a->f : d ? d->f : 0;
}

om_string
om_attr_string(const om_op *op, const char *name)
{
	const om_attr *a = of_kind(op, name, OM_ATTR_STRING);
	const om_attr_spec *d = spec_of(op->opdef, name);

	if (a)
		return *a->s;
	if (d && d->s)
		return (om_string){d->s, strlen(d->s)};
	return (om_string){"", 0};
}

bool
om_attr_is(const om_op *op, const char *name, const char *text)
{
	const om_string s = om_attr_string(op, name);
	return s.size == strlen(text) && memcmp(s.data, text, s.size) == 0;
}

const int64_t *
om_attr_ints(const om_op *op, const char *name, size_t *n)
{
	const om_attr *a = of_kind(op, name, OM_ATTR_INTS);

	if (n)
		*n = a ? a->n : 0;
	return a ? a->i : NULL;
}

int64_t
om_attr_int_at(const om_op *op, const char *name, size_t k, int64_t missing)
{
	size_t n;
	const int64_t *v = om_attr_ints(op, name, &n);

	return k < n ? v[k] : missing;
}

const float *
om_attr_floats(const om_op *op, const char *name, size_t *n)
{
	const om_attr *a = of_kind(op, name, OM_ATTR_FLOATS);

	if (n)
		*n = a ? a->n : 0;
	return a ? a->f : NULL;
}

const om_tensor *
om_attr_tensor(const om_op *op, const char *name)
{
	const om_attr *a = of_kind(op, name, OM_ATTR_TENSOR);
	return a ? a->t : NULL;
}

om_block *
om_attr_graph(const om_op *op, const char *name)
{
	const om_attr *a = of_kind(op, name, OM_ATTR_GRAPH);
	return a ? *a->g : NULL;
}

om_value *
om_block_param(const om_block *b, const char *name)
{
	for (uint32_t k = 0; k < b->nparam; k++)
		if (strcmp(b->param[k]->name, name) == 0)
			return b->param[k];
	return NULL;
}

bool
om_prog_is_state(const om_prog *p, uint32_t param)
{
	for (uint32_t k = 0; k < p->nio_alias; k++)
		if (p->io_alias[k].param == param)
			return true;
	return false;
}

bool
om_state_copies(const om_prog *p, const om_io_alias *state, const om_op **in, const om_op **out)
{
	const om_value *param = p->first->param[state->param], *result = p->first->result[state->result];

	*in = param->nuse == 1 ? param->first_use->op : NULL;
	*out = result->nuse == 1 ? result->def : NULL;
	return !state->rows_after && *in && *out && (*in)->block == p->first && (*in)->opdef && (*in)->opdef->copies == OM_COPIES_TO_DEVICE
	    && (*out)->opdef && (*out)->opdef->copies == OM_COPIES_TO_HOST;
}

bool
om_value_is(const om_value *v, bool truth)
{
	return v->data && v->data->data && !v->is_overridable && v->type.elem == OM_BOOL && om_shape_count(&v->shape) == 1
	    && (*(const uint8_t *)v->data->data != 0) == truth;
}

uint64_t
om_value_bytes(const om_value *v)
{
	uint64_t bytes = 0;

	return v->type.kind == OM_TENSOR && om_tensor_bytes(v->type.elem, &v->shape, &bytes) ? bytes : 0;
}

bool
om_block_inside(const om_block *inner, const om_block *outer)
{
	for (; inner && inner != outer; inner = inner->owner->block)
		if (!inner->owner)
			return false;
	return inner != NULL;
}

om_op *
om_block_enclosing_op(const om_block *b, const om_block *inner)
{
	while (inner && inner != b && inner->owner) {
		if (inner->owner->block == b)
			return inner->owner;
		inner = inner->owner->block;
	}
	return NULL;
}

om_op *
om_use_op_in(const om_block *b, const om_use *u)
{
	const om_block *in = u->op ? u->op->block : u->block;

	return in == b ? u->op : om_block_enclosing_op(b, in);
}

uint64_t
om_value_used_bytes(const om_plan *plan, const om_value *v)
{
	if (!v || (v->is_const && !v->is_overridable))
		return 0;
	const uint64_t bytes = om_value_bytes(v);
	return !bytes && plan && plan->place[v->id].where == OM_IN_ARENA ? plan->place[v->id].bytes : bytes;
}

bool
om_block_is_reached(const om_prog *p, const om_block *b)
{
	while (b && b != p->first)
		b = b->owner ? b->owner->block : NULL;
	return b != NULL;
}

/* Recursion is as deep as bodies are nested; loaders limit that. */
void
om_op_each_read(const om_op *op, void (*visit)(void *arg, om_value *v), void *arg)
{
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k])
			visit(arg, op->in[k]);
	for (uint32_t k = 0; k < op->nbody; k++) {
		const om_block *b = op->body[k];
		for (const om_op *inner = b->first; inner; inner = inner->next)
			om_op_each_read(inner, visit, arg);
		for (uint32_t i = 0; i < b->nresult; i++)
			if (b->result[i])
				visit(arg, b->result[i]);
	}
}

om_op **
om_block_run_ops(const om_block *b, om_arena *mem, uint32_t *n)
{
	om_op **ops = OM_NEWN(mem, om_op *, b->nop);

	*n = 0;
	for (om_op *op = b->first; op; op = op->next)
		if (!op->is_folded)
			ops[(*n)++] = op;
	return ops;
}

/* Recursion is as deep as bodies are nested; loaders limit that. */
static uint32_t
number(om_block *b, uint32_t step)
{
	uint32_t index = 0;

	b->begin = step;
	for (om_op *op = b->first; op; op = op->next) {
		op->index = index++;
		op->step = step++;
		for (uint32_t k = 0; k < op->nbody; k++)
			step = number(op->body[k], step);
		op->end = op->nbody ? step++ : op->step;
	}
	b->end = step++;
	return step;
}

const om_value *
om_op_first_output(const om_op *op)
{
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k])
			return op->out[k];
	return NULL;
}

void
om_timeline(om_prog *p)
{
	p->nstep = number(p->first, 0);
}

bool
om_alias_is_io(const om_alias *a)
{
	return a->kind == OM_ALIAS_IO || a->kind == OM_ALIAS_CONSUME;
}
