/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include <assert.h>
#include <stdio.h>

#include "ir/facts.h"
#include "base/arena_internal.h"
#include "base/shape.h"
#include "ir/edit.h"
#include "ir/names.h"
#include "ir/operators.h"
#include "ir/query.h"
#include "ir/type.h"
#include "ir/uses.h"
#include "onnxmem/builder.h"

om_prog *
om_prog_new_with(const struct om_operators *operators)
{
	om_arena *mem = om_arena_new();
	om_prog *p = mem ? OM_NEW(mem, om_prog) : NULL;

	if (!p) {
		om_arena_free(mem);
		return NULL;
	}
	p->mem = mem;
	p->name = "";
	p->operators = operators;
	return p;
}

void
om_prog_free(om_prog *p)
{
	if (!p)
		return;
	om_facts_free(p);
	om_arena_free(p->mem);
}

bool
om_prog_pair_io(om_prog *p, uint32_t result, uint32_t param)
{
	for (uint32_t k = 0; k < p->nio_alias; k++)
		if (p->io_alias[k].result == result || p->io_alias[k].param == param)
			return false;
	size_t n = p->nio_alias;
	OM_PUSH(p->mem, p->io_alias, n, p->cap_io_alias, ((om_io_alias){.result = result, .param = param}));
	p->nio_alias = (uint32_t)n;
	return true;
}

bool
om_prog_alias_io(om_prog *p, uint32_t result, uint32_t param)
{
	if (result >= p->first->nresult || param >= p->first->nparam)
		return false;
	const om_value *r = p->first->result[result], *in = p->first->param[param];
	if (r->type.elem != OM_UNDEFINED && in->type.elem != OM_UNDEFINED && !om_type_equal(&r->type, &in->type))
		return false;
	if (om_shape_is_known(&r->shape) && om_shape_is_known(&in->shape) && !om_shape_equal(&r->shape, &in->shape))
		return false;
	return om_prog_pair_io(p, result, param);
}

void
om_prog_clear_ties(om_prog *p)
{
	p->io_alias = NULL;
	p->nio_alias = 0;
	p->cap_io_alias = 0;
}

bool
om_prog_add_state(om_prog *p, om_value *was, om_value *is)
{
	om_block *b = p->first;
	uint32_t param = 0;

	while (param < b->nparam && b->param[param] != was)
		param++;
	om_block_add_result(b, is);
	if (om_prog_alias_io(p, b->nresult - 1, param))
		return true;
	om_use_drop(b->use[--b->nresult]);
	return false;
}

/* One name as a part of a scope path: '~' and '/' escaped as in a JSON pointer. */
static const char *
escaped(om_arena *mem, const char *name)
{
	char *out = om_alloc(mem, 2 * strlen(name) + 1), *to = out;

	for (; *name; name++)
		if (*name == '~' || *name == '/') {
			*to++ = '~';
			*to++ = *name == '~' ? '0' : '1';
		} else {
			*to++ = *name;
		}
	return out;
}

static const char *
path_of(om_prog *p, const om_op *owner, const char *attr)
{
	const char *first = "";

	for (uint32_t k = 0; k < owner->nout && !*first; k++)
		if (owner->out[k])
			first = owner->out[k]->name;
	const char *outer = owner->block ? owner->block->path : "";
	return om_printf(p->mem, "%s%s%s/%s", outer, *outer ? "/" : "",
		escaped(p->mem, first), escaped(p->mem, attr));
}

void
om_prog_name_scopes(om_prog *p)
{
	for (om_block *b = p->first; b; b = b->next)
		if (b->owner)
			b->path = path_of(p, b->owner, b->attr);
}

om_block *
om_block_new(om_prog *p, om_op *owner, const char *attr, const char *name)
{
	om_block *b = OM_NEW(p->mem, om_block);

	b->prog = p;
	b->name = om_strdup(p->mem, name);
	b->owner = owner;
	b->attr = attr ? om_strdup(p->mem, attr) : NULL;
	b->path = owner ? path_of(p, owner, b->attr) : "";
	b->id = p->nblock++;
	if (p->last)
		p->last->next = b;
	else
		p->first = b;
	p->last = b;
	return b;
}

om_value *
om_value_new(om_prog *p, om_block *b, const char *name)
{
	om_value *v = OM_NEW(p->mem, om_value);

	assert(*name);
	v->name = om_strdup(p->mem, name);
	v->block = b;
	v->id = p->nvalue;
	v->shape = om_shape_unknown();
	size_t n = p->nvalue;
	OM_PUSH(p->mem, p->values, n, p->capvalue, v);
	p->nvalue = (uint32_t)n;
	om_names_add(p, v);
	return v;
}

om_value *
om_value_fresh(om_prog *p, om_block *b, const char *stem)
{
	return om_value_new(p, b, om_names_fresh(p, stem));
}

void
om_value_rename(om_value *v, const char *name)
{
	om_prog *p = v->block->prog;

	assert(*name);
	om_names_remove(p, v);
	v->name = om_strdup(p->mem, name);
	om_names_add(p, v);
}

om_value *
om_const_new(om_prog *p, om_block *b, const char *name, const om_tensor *data)
{
	om_value *v = om_value_new(p, b, name);

	v->type.elem = data->type;
	v->shape = data->shape;
	v->data = data;
	v->is_const = true;
	v->is_declared = true;
	return v;
}

static void *
push_pointer(om_arena *mem, void *list, uint32_t n, void *item)
{
	void **all = list;

	if ((n & (n - 1)) == 0) {  /* full at 0, 1, 2, 4, 8 ... */
		void **bigger = OM_NEWN(mem, void *, n ? 2 * (size_t)n : 1);
		if (n)
			memcpy(bigger, all, n * sizeof *all);
		all = bigger;
	}
	all[n] = item;
	return all;
}

void
om_block_add_param(om_block *b, om_value *v)
{
	b->prog->op_facts = NULL;
	b->param = push_pointer(b->prog->mem, b->param, b->nparam++, v);
}

void
om_block_add_result(om_block *b, om_value *v)
{
	om_arena *mem = b->prog->mem;
	om_use *use = OM_NEW(mem, om_use);

	b->prog->op_facts = NULL;
	b->use = push_pointer(mem, b->use, b->nresult, use);
	b->result = push_pointer(mem, b->result, b->nresult, v);
	om_use_result(b, b->nresult++);
}

void
om_block_set_result(om_block *b, uint32_t k, om_value *v)
{
	assert(k < b->nresult);
	om_use_drop(b->use[k]);
	b->prog->op_facts = NULL;
	b->result[k] = v;
	om_use_result(b, k);
}

void
om_block_clear_results(om_block *b)
{
	for (uint32_t k = 0; k < b->nresult; k++)
		om_use_drop(b->use[k]);
	b->prog->op_facts = NULL;
	b->nresult = 0;
	b->result = NULL;
	b->use = NULL;
}

const om_opdef *
om_opdef_own(const om_prog *p, const char *domain, const char *type)
{
	for (const om_opdef *const *def = p->own_opdefs; def && *def; def++)
		if (strcmp((*def)->name, type) == 0 && strcmp((*def)->domain, domain) == 0)
			return *def;
	return NULL;
}

om_op *
om_op_new(om_prog *p, const char *domain, const char *type, int version, uint32_t nin, uint32_t nout)
{
	om_op *op = OM_NEW(p->mem, om_op);

	op->domain = om_strdup(p->mem, domain);
	op->type = om_strdup(p->mem, type);
	op->overload = "";
	op->name = "";
	op->version = version ? version : om_opset_version(p, domain);
	op->operators = p->operators;
	op->opdef = p->operators->find(domain, type, op->version);
	if (!op->opdef)
		op->opdef = om_opdef_own(p, domain, type);
	op->nin = nin;
	op->nout = nout;
	op->in = OM_NEWN(p->mem, om_value *, nin);
	op->use = OM_NEWN(p->mem, om_use, nin);
	op->out = OM_NEWN(p->mem, om_value *, nout);
	op->id = p->nop++;
	op->node = OM_NO_NODE;
	return op;
}

void
om_op_set_in(om_op *op, uint32_t k, om_value *v)
{
	assert(k < op->nin);
	om_use_drop(&op->use[k]);
	op->in[k] = v;
	if (op->block)
		op->block->prog->op_facts = NULL;
	om_use_input(op, k);
}

void
om_op_set_inputs(om_prog *p, om_op *op, uint32_t n, om_value *const *in)
{
	om_value **list = OM_NEWN(p->mem, om_value *, (size_t)n + 1);

	for (uint32_t k = 0; k < op->nin; k++)
		om_use_drop(&op->use[k]);
	for (uint32_t k = 0; k < n; k++)
		list[k] = in[k];
	op->in = list;
	op->use = OM_NEWN(p->mem, om_use, (size_t)n + 1);
	op->nin = n;
	p->op_facts = NULL;
	for (uint32_t k = 0; k < n; k++)
		om_use_input(op, k);
}

void
om_op_set_out(om_op *op, uint32_t k, om_value *v)
{
	assert(k < op->nout && !op->out[k] && !(v && v->def));
	op->out[k] = v;
	if (v)
		v->def = op;
}

static const void *
copied_elements(om_arena *mem, const om_attr *a)
{
	switch (a->kind) {
	case OM_ATTR_FLOAT: case OM_ATTR_FLOATS:
		return om_memdup(mem, a->f, a->n * sizeof *a->f);
	case OM_ATTR_INT: case OM_ATTR_INTS:
		return om_memdup(mem, a->i, a->n * sizeof *a->i);
	case OM_ATTR_TENSOR: case OM_ATTR_TENSORS: case OM_ATTR_SPARSE: case OM_ATTR_SPARSES:
		return om_memdup(mem, a->t, a->n * sizeof *a->t);
	case OM_ATTR_GRAPH: case OM_ATTR_GRAPHS:
		return om_memdup(mem, a->g, a->n * sizeof *a->g);
	case OM_ATTR_STRING: case OM_ATTR_STRINGS: {
		om_string *s = om_memdup(mem, a->s, a->n * sizeof *s);
		for (size_t k = 0; k < a->n; k++)
			s[k].data = om_strndup(mem, a->s[k].data, a->s[k].size);
		return s;
	}
	case OM_ATTR_TYPE: case OM_ATTR_TYPES:
		return om_memdup(mem, a->type, a->n * sizeof *a->type);
	}
	return NULL;
}

static void
add_bodies(om_arena *mem, om_op *op, const om_attr *a)
{
	om_block **all = OM_NEWN(mem, om_block *, op->nbody + a->n);

	if (op->nbody)
		memcpy(all, op->body, op->nbody * sizeof *all);
	memcpy(all + op->nbody, a->g, a->n * sizeof *all);
	op->body = all;
	op->nbody += (uint32_t)a->n;
}

void
om_op_add_attr(om_prog *p, om_op *op, const om_attr *a)
{
	om_attr *all = OM_NEWN(p->mem, om_attr, (size_t)op->nattr + 1);

	p->op_facts = NULL;
	if (op->nattr)
		memcpy(all, op->attr, op->nattr * sizeof *all);
	om_attr *copy = &all[op->nattr++];
	*copy = *a;
	copy->name = om_strdup(p->mem, a->name);
	if (a->ref)
		copy->ref = om_strdup(p->mem, a->ref);
	copy->f = copied_elements(p->mem, a);
	op->attr = all;
	if (!a->ref && (a->kind == OM_ATTR_GRAPH || a->kind == OM_ATTR_GRAPHS))
		add_bodies(p->mem, op, copy);
}

void
om_op_drop_attr(om_op *op, const char *name)
{
	size_t n = 0;

	if (op->block)
		op->block->prog->op_facts = NULL;
	for (size_t k = 0; k < op->nattr; k++)
		if (strcmp(op->attr[k].name, name) != 0)
			op->attr[n++] = op->attr[k];
	op->nattr = n;
}

void
om_op_add_int(om_prog *p, om_op *op, const char *name, int64_t v)
{
	om_op_add_attr(p, op, &(om_attr){.name = name, .kind = OM_ATTR_INT, .n = 1, .i = &v});
}

void
om_op_add_float(om_prog *p, om_op *op, const char *name, float v)
{
	om_op_add_attr(p, op, &(om_attr){.name = name, .kind = OM_ATTR_FLOAT, .n = 1, .f = &v});
}

void
om_op_add_string(om_prog *p, om_op *op, const char *name, const char *v)
{
	const om_string s = {v, strlen(v)};
	om_op_add_attr(p, op, &(om_attr){.name = name, .kind = OM_ATTR_STRING, .n = 1, .s = &s});
}

void
om_op_add_ints(om_prog *p, om_op *op, const char *name, size_t n, const int64_t *v)
{
	om_op_add_attr(p, op, &(om_attr){.name = name, .kind = OM_ATTR_INTS, .n = n, .i = v});
}

void
om_op_append(om_block *b, om_op *op)
{
	assert(!op->block);
	b->prog->op_facts = NULL;
	op->block = b;
	op->prev = b->last;
	if (b->last)
		b->last->next = op;
	else
		b->first = op;
	b->last = op;
	b->nop++;
	om_uses_of_op(op);
}

void
om_op_insert(om_op *before, om_op *op)
{
	om_block *b = before->block;

	assert(!op->block);
	b->prog->op_facts = NULL;
	op->block = b;
	op->next = before;
	op->prev = before->prev;
	*(before->prev ? &before->prev->next : &b->first) = op;
	before->prev = op;
	b->nop++;
	om_uses_of_op(op);
}

void
om_op_place(om_block *b, om_op *before, om_op *op)
{
	if (before)
		om_op_insert(before, op);
	else
		om_op_append(b, op);
}

void
om_op_remove(om_op *op)
{
	om_block *b = op->block;

	b->prog->op_facts = NULL;
	*(op->prev ? &op->prev->next : &b->first) = op->next;
	*(op->next ? &op->next->prev : &b->last) = op->prev;
	b->nop--;
	om_uses_drop_op(op);
	op->block = NULL;
	op->prev = op->next = NULL;
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k])
			op->out[k]->def = NULL;
}

void
om_prog_remove_folded(om_prog *p)
{
	for (om_op *op = p->first->first, *next; op; op = next) {
		bool known = op->is_folded;
		next = op->next;
		for (uint32_t k = 0; k < op->nout; k++)
			known &= !op->out[k] || op->out[k]->data;
		if (known)
			om_op_remove(op);
	}
}

void
om_block_set_order(om_block *b, om_op *const *ops)
{
	om_op **to = &b->first;

	b->last = NULL;
	for (uint32_t k = 0; k < b->nop; k++) {
		ops[k]->prev = b->last;
		*to = b->last = ops[k];
		to = &ops[k]->next;
	}
	*to = NULL;
}

void
om_block_remove(om_block *b)
{
	om_prog *p = b->prog;
	om_block *prev = p->first;

	om_uses_drop_block(b);
	for (om_op *op = b->first; op; op = op->next)
		for (uint32_t k = 0; k < op->nbody; k++)
			om_block_remove(op->body[k]);
	while (prev && prev->next != b)
		prev = prev->next;
	if (!prev)
		return;
	prev->next = b->next;
	if (p->last == b)
		p->last = prev;
}

om_block *
om_block_find(const om_prog *p, const char *path)
{
	for (om_block *b = p->first; b; b = b->next)
		if (strcmp(b->path, path) == 0)
			return b;
	return NULL;
}
