/* SPDX-License-Identifier: Apache-2.0 */
/* Values of fixed shape: one pass over the ops of a body and of its nested bodies, in order. */
#include <config.h>

#include <ctype.h>
#include <string.h>

#include "base/arena_internal.h"
#include "grad/fixed_shape.h"
#include "ir/query.h"
#include "onnxmem/opdef.h"

/* ---- Dims. ---- */

static void
note_dims(om_fixed *f, const om_block *graph)
{
	for (uint32_t k = 0; k < graph->nparam; k++) {
		const om_shape *s = &graph->param[k]->shape;
		for (int d = 0; d < s->rank; d++)
			if (s->dim[d] < 0 && s->sym[d])
				om_map_set(&f->dims, s->sym[d], (void *)s->sym[d]);
	}
}

/* Is the operand of a dim's expression, `n` characters, a number or a dim of an input? */
static bool
is_fixed_operand(const om_fixed *f, const char *text, size_t n)
{
	char name[256];
	size_t digits = 0;

	while (digits < n && isdigit((unsigned char)text[digits]))
		digits++;
	if (digits == n)
		return true;
	if (n >= sizeof name)
		return false;
	memcpy(name, text, n);
	name[n] = '\0';
	return om_map_get(&f->dims, name) != NULL;
}

/* An expression has operands, operators and parentheses: "2*N+1". */
static bool
is_fixed_symbol(const om_fixed *f, const char *sym)
{
	if (!sym)
		return false;
	if (om_map_get(&f->dims, sym))
		return true;
	while (*sym) {
		const size_t n = strcspn(sym, "+-*/() ");
		if (n && !is_fixed_operand(f, sym, n))
			return false;
		sym += n;
		sym += strspn(sym, "+-*/() ");
	}
	return true;
}

bool
om_fixed_dims(const om_fixed *f, const om_shape *s)
{
	bool is_fixed = s->rank != OM_RANK_UNKNOWN;

	for (int d = 0; d < s->rank && is_fixed; d++)
		is_fixed = s->dim[d] >= 0 || is_fixed_symbol(f, s->sym[d]);
	return is_fixed;
}

/* ---- Ops without bodies. ---- */

static bool has_fixed_data(const om_fixed *f, const om_value *v);

static bool
is_repeatable(const om_op *op)
{
	return op->opdef && op->nbody == 0 && !(op->opdef->flags & (OM_RANDOM | OM_EFFECT | OM_NON_TENSOR));
}

/* May elements of this input decide the shape of an output?  Those inputs are scalars or lists. */
static bool
may_decide_shape(const om_op *op, const om_value *in)
{
	return !(op->opdef->flags & (OM_POINTWISE | OM_SHAPE_ONLY)) && in->shape.rank <= 1;
}

static bool
gives_fixed_shape(const om_fixed *f, const om_op *op)
{
	if (!op->opdef || op->nbody || op->opdef->flags & (OM_DATA_DEPENDENT_SHAPE | OM_NON_TENSOR))
		return false;
	for (uint32_t k = 0; k < op->nin; k++) {
		const om_value *in = op->in[k];
		if (in && (!om_fixed_shape(f, in) || (may_decide_shape(op, in) && !has_fixed_data(f, in))))
			return false;
	}
	return true;
}

static bool
gives_fixed_data(const om_fixed *f, const om_op *op)
{
	if (!is_repeatable(op))
		return false;
	const bool reads_shapes = op->opdef->flags & OM_SHAPE_ONLY;
	for (uint32_t k = 0; k < op->nin; k++) {
		const om_value *in = op->in[k];
		if (in && !(reads_shapes ? om_fixed_shape(f, in) : has_fixed_data(f, in)))
			return false;
	}
	return true;
}

static bool
has_fixed_data(const om_fixed *f, const om_value *v)
{
	if (!om_block_inside(v->block, f->body) || v->data)
		return true;
	if (v->id < f->nvalue)
		return f->data[v->id];
	return v->def && gives_fixed_data(f, v->def);
}

/* ---- Ops with bodies. ---- */

static uint32_t
states_of(const om_op *op)
{
	return op->nin - (op->opdef->control == OM_LOOP ? 2 : (uint32_t)om_attr_int(op, "num_scan_inputs"));
}

/* Is `v` the condition that the body was called with, or true? */
static bool
stays_true(const om_block *body, const om_value *v)
{
	while (v->def && v->def->nin == 1 && v->block == body && strcmp(v->def->type, "Identity") == 0)
		v = v->def->in[0];
	return v == body->param[1] || om_value_is(v, true);
}

/* Does the Loop run as often in every iteration of the analysed body? */
static bool
has_fixed_count(const om_fixed *f, const om_op *op)
{
	return (!op->in[0] || has_fixed_data(f, op->in[0])) && (!op->in[1] || has_fixed_data(f, op->in[1]))
	    && stays_true(op->body[0], op->body[0]->result[0]);
}

/* Does shape inference know how often the Loop runs, and so how long the stacks of its iterations are? */
static bool
has_known_count(const om_op *op)
{
	return op->in[0] && op->in[0]->data && (!op->in[1] || om_value_is(op->in[1], true))
	    && stays_true(op->body[0], op->body[0]->result[0]);
}

static bool
loop_gives_fixed_shape(const om_fixed *f, const om_op *op, uint32_t k)
{
	return k >= states_of(op) && has_fixed_count(f, op) && om_fixed_shape(f, op->body[0]->result[k + 1]);
}

static bool
scan_gives_fixed_shape(const om_fixed *f, const om_op *op, uint32_t k)
{
	const uint32_t nstate = states_of(op);

	return k < nstate ? om_fixed_shape(f, op->in[k])
		: om_fixed_shape(f, op->in[nstate]) && om_fixed_shape(f, op->body[0]->result[k]);
}

static bool
output_is_fixed(const om_fixed *f, const om_op *op, uint32_t k)
{
	switch (op->opdef ? op->opdef->control : OM_PLAIN) {
	case OM_IF:
		return has_fixed_data(f, op->in[0]) && om_fixed_shape(f, op->body[0]->result[k])
		    && om_fixed_shape(f, op->body[1]->result[k]);
	case OM_LOOP:
		return loop_gives_fixed_shape(f, op, k);
	case OM_SCAN:
		return scan_gives_fixed_shape(f, op, k);
	default:
		return gives_fixed_shape(f, op);
	}
}

/* States of a Scan and the slices that it reads have one shape; states of a Loop may change theirs. */
static bool
param_is_fixed(const om_fixed *f, const om_block *b, uint32_t k)
{
	const om_op *owner = b->owner;

	if (!owner->opdef || owner->opdef->control != OM_SCAN)
		return false;
	return b == f->body || om_fixed_shape(f, owner->in[k]);
}

/* ---- The pass. ---- */

bool
om_fixed_shape(const om_fixed *f, const om_value *v)
{
	if (!om_block_inside(v->block, f->body) || v->data)
		return true;
	if (v->type.kind != OM_TENSOR)
		return false;
	if (om_fixed_dims(f, &v->shape))
		return true;
	if (v->id < f->nvalue)
		return f->shape[v->id];
	for (uint32_t k = 0; v->def && k < v->def->nout; k++)
		if (v->def->out[k] == v)
			return output_is_fixed(f, v->def, k);
	return false;
}

/* If a branch is not taken, a value that it keeps is replaced by one whose unknown dims are 0. */
static void
note_varying(om_fixed *f, const om_value *v, bool in_branch)
{
	if (v->type.kind == OM_TENSOR)
		f->any_varies |= in_branch ? !om_fixed_dims(f, &v->shape) : !om_fixed_shape(f, v);
}

static void visit(om_fixed *f, const om_block *b, bool in_branch);

static void
visit_bodies(om_fixed *f, const om_op *op, bool in_branch)
{
	const om_control control = op->opdef ? op->opdef->control : OM_PLAIN;

	for (uint32_t k = 0; k < op->nbody; k++)
		visit(f, op->body[k], in_branch || control == OM_IF);
	if (control == OM_LOOP)
		f->any_varies |= in_branch ? !has_known_count(op) : !has_fixed_count(f, op);
}

static void
visit(om_fixed *f, const om_block *b, bool in_branch)
{
	for (uint32_t k = 0; k < b->nparam; k++) {
		f->shape[b->param[k]->id] = param_is_fixed(f, b, k);
		note_varying(f, b->param[k], in_branch);
	}
	for (const om_op *op = b->first; op; op = op->next) {
		visit_bodies(f, op, in_branch);
		for (uint32_t k = 0; k < op->nout; k++) {
			if (!op->out[k])
				continue;
			f->shape[op->out[k]->id] = output_is_fixed(f, op, k);
			f->data[op->out[k]->id] = gives_fixed_data(f, op);
			note_varying(f, op->out[k], in_branch);
		}
	}
}

om_fixed
om_fixed_find(const om_prog *p, const om_block *body, om_arena *mem)
{
	om_fixed f = {.body = body, .dims = om_map_new(mem), .nvalue = p->nvalue};

	f.shape = OM_NEWN(mem, bool, (size_t)p->nvalue + 1);
	f.data = OM_NEWN(mem, bool, (size_t)p->nvalue + 1);
	note_dims(&f, p->first);
	visit(&f, body, false);
	return f;
}
