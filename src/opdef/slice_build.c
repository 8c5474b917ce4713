/* SPDX-License-Identifier: Apache-2.0 */
/* Building the op of a part; see onnxmem/slice.h.
 *
 * The new op is inferred, and the shapes of its outputs are compared with those of the parts, so that a column that
 * is wrong about a shape is an error here, not a wrong result in a run. */
#include <config.h>

#include <string.h>

#include "base/arena_internal.h"
#include "base/convert_elements.h"
#include "base/shape.h"
#include "base/strided_copy.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "opdef/slice.h"

/* What building needs all the time. */
struct builder {
	om_session *s;
	om_prog *p;
	const om_op *op;         /* whose part is built */
	om_op *at;               /* new ops go before it */
};

/* ---- Constants. ---- */

static om_value *
new_const(om_prog *p, om_block *b, const char *stem, const om_tensor *t)
{
	om_value *v = om_value_fresh(p, b, stem);

	v->type.elem = t->type;
	v->shape = t->shape;
	v->data = om_memdup(p->mem, t, sizeof *t);
	v->is_const = v->is_declared = true;
	return v;
}

/* A constant with a copy of the elements. */
static om_value *
copied_const(om_prog *p, om_block *b, const char *stem, const om_tensor *t)
{
	om_tensor copy = *t;
	uint64_t bytes = 0;

	om_tensor_bytes(t->type, &t->shape, &bytes);
	copy.data = bytes ? om_memdup(p->mem, t->data, bytes) : om_alloc(p->mem, 1);
	return new_const(p, b, stem, &copy);
}

static om_value *
ints_const(om_prog *p, om_block *b, const char *stem, int64_t v)
{
	const int64_t one = 1;

	return copied_const(p, b, stem, &(om_tensor){.type = OM_INT64, .shape = om_shape_of(1, &one), .data = &v});
}

static bool
can_cut(const om_value *v)
{
	return v->data && v->data->data && v->is_const && !v->is_overridable;
}

/* The same for several elements per byte. */
static void *
cut_packed(om_prog *p, const om_tensor *from, om_part part, const om_shape *shape)
{
	const unsigned bits = om_dtype_bits(from->type), each = 8 / bits, mask = (1u << bits) - 1;
	const int64_t inner = om_shape_span(shape, part.axis + 1, shape->rank);
	const int64_t n = shape->dim[part.axis] * inner, whole = from->shape.dim[part.axis] * inner;
	const int64_t count = om_shape_count(shape);
	const uint8_t *x = from->data;
	uint8_t *to = om_allocn(p->mem, 1, (size_t)(count / each) + 1);

	for (int64_t k = 0; k < count; k++) {
		const int64_t at = k / n * whole + part.lo * inner + k % n;
		const unsigned v = x[at / each] >> at % each * bits & mask;
		to[k / each] = (uint8_t)(to[k / each] | v << k % each * bits);
	}
	return to;
}

/* The elements of a part of a constant: where they are if they are contiguous, else copied. */
static void *
cut_elements(om_prog *p, const om_tensor *from, om_part part, const om_shape *shape)
{
	const size_t size = om_dtype_bits(from->type) / 8;
	const int64_t outer = om_shape_span(&from->shape, 0, part.axis);
	const int64_t inner = om_shape_span(&from->shape, part.axis + 1, from->shape.rank);
	const size_t whole = (size_t)(from->shape.dim[part.axis] * inner) * size;
	const size_t bytes = (size_t)(shape->dim[part.axis] * inner) * size;
	const char *x = (const char *)from->data + (size_t)(part.lo * inner) * size;

	if (outer == 1)
		return (void *)x;
	char *to = om_alloc(p->mem, (size_t)outer * bytes + 1);
	for (int64_t k = 0; k < outer && bytes; k++)
		memcpy(to + (size_t)k * bytes, x + (size_t)k * whole, bytes);
	return to;
}

/* A part of a large constant of a file may be small, so it must be aligned. */
static om_value *
cut_const(om_prog *p, om_block *b, const om_value *v, om_part part)
{
	om_tensor t = *v->data;
	uint64_t bytes = 0;

	t.shape = v->shape;
	t.shape.dim[part.axis] = part.hi - part.lo;
	if (!t.splat)
		t.data = om_dtype_bits(t.type) < 8 ? cut_packed(p, v->data, part, &t.shape)
		    : cut_elements(p, v->data, part, &t.shape);
	om_tensor_bytes(t.type, &t.shape, &bytes);
	if (!om_tensor_may_be_unaligned(t.type, bytes))
		om_tensor_align(p->mem, &t);
	return new_const(p, b, v->name, &t);
}

/* ---- Slice. ---- */

/* Starts, ends and axes are attributes until version 9, then inputs. */
static om_op *
slice_of(om_prog *p, om_value *v, om_part part, om_op *at)
{
	const int version = om_opset_version(p, "");
	const bool has_inputs = version >= 10;
	om_op *op = om_op_new(p, "", "Slice", version, has_inputs ? 4 : 1, 1);
	const int64_t list[] = {part.lo, part.hi, part.axis};
	static const char *const names[] = {"starts", "ends", "axes"};

	om_op_set_in(op, 0, v);
	for (uint32_t k = 0; k < 3; k++) {
		if (has_inputs)
			om_op_set_in(op, k + 1, ints_const(p, at->block, names[k], list[k]));
		else
			om_op_add_ints(p, op, names[k], 1, &list[k]);
	}
	om_op_set_out(op, 0, om_value_fresh(p, at->block, v->name));
	om_op_insert(at, op);
	return op;
}

static bool
is_all(const om_value *v, om_part part)
{
	return part.axis == OM_WHOLE || (part.lo == 0 && part.hi == v->shape.dim[part.axis]);
}

om_status
om_slice_value(om_session *s, om_prog *p, om_value *v, om_part part, om_op *at, om_value **made)
{
	*made = v;
	if (is_all(v, part))
		return OM_OK;
	if (part.axis >= v->shape.rank || part.lo < 0 || part.lo > part.hi || part.hi > v->shape.dim[part.axis])
		return om_fail(s, OM_INVALID, "%s has no elements %lld to %lld along axis %d", v->name, (long long)part.lo,
			(long long)part.hi, part.axis);
	if (can_cut(v)) {
		*made = cut_const(p, at->block, v, part);
		return OM_OK;
	}
	om_op *op = slice_of(p, v, part, at);
	OM_TRY(om_op_infer(s, p, op));
	*made = op->out[0];
	return OM_OK;
}

/* ---- The op of a part. ---- */

static const om_attr *
edited(const om_slice_edit *e, const char *name)
{
	for (uint32_t k = 0; k < e->nattr; k++)
		if (strcmp(e->attr[k].name, name) == 0)
			return &e->attr[k];
	return NULL;
}

static void
put_attrs(const struct builder *b, const om_slice_edit *e, om_op *op)
{
	for (uint32_t k = 0; k < b->op->nattr && !e->type; k++)
		if (!edited(e, b->op->attr[k].name))
			om_op_add_attr(b->p, op, &b->op->attr[k]);
	for (uint32_t k = 0; k < e->nattr; k++)
		if (e->attr[k].n)
			om_op_add_attr(b->p, op, &e->attr[k]);
}

/* The inputs of the new op; `*n` receives their number.  An input without elements is left out, and removed from a list
 * of any length. */
static om_value **
inputs_of(const struct builder *b, om_arena *mem, const om_slice *s, om_value *const *in, uint32_t *n)
{
	const bool is_list = b->op->opdef->max_in == OM_VARIADIC;
	om_value **v = OM_NEWN(mem, om_value *, s->edit->nin + 1);

	*n = 0;
	for (uint32_t k = 0; k < s->edit->nin; k++) {
		const bool is_old = k < b->op->nin && b->op->in[k];
		if (k < OM_SLICE_OPERANDS && s->edit->operand[k])
			v[(*n)++] = copied_const(b->p, b->at->block, is_old ? b->op->in[k]->name : "operand", s->edit->operand[k]);
		else if (k < b->op->nin && !om_part_is_none(&s->in[k]))
			v[(*n)++] = is_old ? in[k] : NULL;
		else if (!is_list)
			v[(*n)++] = NULL;
	}
	return v;
}

static om_op *
new_op(const struct builder *b, om_arena *mem, const om_slice *s, om_value *const *in)
{
	const char *type = s->edit->type;
	uint32_t n;
	om_value **v = inputs_of(b, mem, s, in, &n);
	om_op *op = om_op_new(b->p, type ? "" : b->op->domain, type ? type : b->op->type,
		type && *b->op->domain ? 0 : b->op->version, n, type ? 1 : b->op->nout);

	op->phase = b->op->phase;
	for (uint32_t k = 0; k < n; k++)
		om_op_set_in(op, k, v[k]);
	put_attrs(b, s->edit, op);
	return op;
}

/* The output of the op that output `k` of the part is; the op of another operator has one output. */
static om_value **
output_of(const om_slice *s, om_op *op, uint32_t k)
{
	return &op->out[s->edit->type ? 0 : k];
}

static void
put_outputs(const struct builder *b, const om_slice *s, om_op *op)
{
	for (uint32_t k = 0; k < b->op->nout; k++)
		if (b->op->out[k] && !om_part_is_none(&s->out[k]) && !*output_of(s, op, k))
			om_op_set_out(op, s->edit->type ? 0 : k, om_value_fresh(b->p, b->at->block, b->op->out[k]->name));
}

static om_status
check_shape(const struct builder *b, const om_slice *s, uint32_t k, const om_value *made)
{
	om_shape want = b->op->out[k]->shape;
	char text[128], other[128];

	if (s->out[k].axis != OM_WHOLE)
		want.dim[s->out[k].axis] = s->out[k].hi - s->out[k].lo + s->before + s->after;
	if (om_shape_equal(&want, &made->shape))
		return OM_OK;
	return om_op_fail(b->s, OM_IR, b->op, "a part of it has the shape %s, expected %s",
		om_shape_text(&made->shape, text, sizeof text), om_shape_text(&want, other, sizeof other));
}

/* Check the outputs, and cut off their surplus. */
static om_status
finish_outputs(const struct builder *b, const om_slice *s, om_op *op, om_value **made)
{
	for (uint32_t k = 0; k < b->op->nout; k++) {
		const om_part *p = &s->out[k];
		made[k] = NULL;
		if (!b->op->out[k] || om_part_is_none(p))
			continue;
		made[k] = *output_of(s, op, k);
		OM_TRY(check_shape(b, s, k, made[k]));
		if (p->axis != OM_WHOLE && (s->before || s->after)) {
			const om_part kept = om_part_of(p->axis, s->before, s->before + p->hi - p->lo);
			OM_TRY(om_slice_value(b->s, b->p, made[k], kept, b->at, &made[k]));
		}
	}
	return OM_OK;
}

/* Inputs have to have the parts that the slice asks for. */
static om_status
check_inputs(const struct builder *b, const om_slice *s, om_value *const *in)
{
	for (uint32_t k = 0; k < b->op->nin; k++) {
		const om_part *p = &s->in[k];
		if (!b->op->in[k] || om_part_is_none(p) || (k < OM_SLICE_OPERANDS && s->edit->operand[k]))
			continue;
		om_shape want = b->op->in[k]->shape;
		if (p->axis != OM_WHOLE)
			want.dim[p->axis] = p->hi - p->lo;
		if (!in[k] || !om_shape_equal(&want, &in[k]->shape))
			return om_op_fail(b->s, OM_INVALID, b->op, "input %u is not the part that is needed", k);
	}
	return OM_OK;
}

static om_status
build(const struct builder *b, om_arena *mem, const om_slice *s, om_value *const *in, om_value **made)
{
	OM_TRY(check_inputs(b, s, in));
	om_op *op = new_op(b, mem, s, in);
	put_outputs(b, s, op);
	om_op_insert(b->at, op);
	if (!op->opdef)
		return om_op_fail(b->s, OM_UNSUPPORTED, b->op, "%s, which computes a part of it, is not known", op->type);
	OM_TRY(om_op_infer(b->s, b->p, op));
	return finish_outputs(b, s, op, made);
}

/* The part of output `k`, or with `is_partial` the contribution of that of input `k`. */
static om_status
build_part(const struct builder *b, uint32_t k, bool is_partial, om_part part, om_value *const *in, om_value **made)
{
	om_arena *mem = om_arena_new();
	om_slice_edit edit;
	om_op_context c;
	om_slice slice;
	om_status st;

	if (b->op->opdef && om_op_query(&c, mem, b->op) && (is_partial ? om_op_context_partial(&c, k, part, &edit, &slice)
	    : om_op_context_slice(&c, k, part, &edit, &slice)))
		st = build(b, mem, &slice, in, made);
	else
		st = om_op_fail(b->s, OM_INVALID, b->op, "%s %u has no part %lld to %lld along axis %d",
			is_partial ? "input" : "output", k, (long long)part.lo, (long long)part.hi, part.axis);
	om_arena_free(mem);
	return st;
}

om_status
om_slice_op(om_session *s, om_prog *p, const om_op *op, uint32_t out, om_part part, om_value *const *in, om_op *at,
	om_value **made)
{
	return build_part(&(struct builder){s, p, op, at}, out, false, part, in, made);
}

/* ---- Partial results. ---- */

om_status
om_partial_op(om_session *s, om_prog *p, const om_op *op, uint32_t in, om_part part, om_value *const *parts, om_op *at,
	om_value **made)
{
	om_arena *mem = om_arena_new();
	om_value **all = OM_NEWN(mem, om_value *, op->nout + 1);
	const om_status st = build_part(&(struct builder){s, p, op, at}, in, true, part, parts, all);

	*made = all[0];
	om_arena_free(mem);
	return st;
}

/* An op of ai.onnx on one or two values of the same shape. */
static om_status
simple_op(const struct builder *b, const char *type, om_value *x, om_value *y, om_value **made)
{
	om_op *op = om_op_new(b->p, "", type, *b->op->domain ? 0 : b->op->version, y ? 2 : 1, 1);

	om_op_set_in(op, 0, x);
	if (y)
		om_op_set_in(op, 1, y);
	op->phase = b->op->phase;
	om_op_set_out(op, 0, om_value_fresh(b->p, b->at->block, b->op->out[0]->name));
	om_op_insert(b->at, op);
	OM_TRY(om_op_infer(b->s, b->p, op));
	*made = op->out[0];
	return OM_OK;
}

om_status
om_partial_combine(om_session *s, om_prog *p, const om_op *op, const om_slice *slice, om_value *a, om_value *b, om_op *at,
	om_value **made)
{
	static const char *const types[] = {"Add", "Mul", "Max", "Min"};

	return simple_op(&(struct builder){s, p, op, at}, types[slice->combine], a, b, made);
}

/* A constant with one element of the type of the output. */
static om_value *
scale_const(const struct builder *b, double scale)
{
	const om_dtype t = b->op->out[0]->type.elem;
	char one[16] = {0};

	om_convert(t, one, OM_FLOAT64, &scale, 1, true);
	return copied_const(b->p, b->at->block, "scale", &(om_tensor){.type = t, .shape = om_shape_of(0, NULL), .data = one});
}

om_status
om_partial_finish(om_session *s, om_prog *p, const om_op *op, const om_slice *slice, om_value *v, om_op *at,
	om_value **made)
{
	const struct builder b = {s, p, op, at};

	*made = v;
	if (slice->scale != 1)
		OM_TRY(simple_op(&b, "Mul", v, scale_const(&b, slice->scale), &v));
	if (slice->finish)
		OM_TRY(simple_op(&b, slice->finish, v, NULL, &v));
	*made = v;
	return OM_OK;
}
