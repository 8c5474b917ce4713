/* SPDX-License-Identifier: Apache-2.0 */
/* The builder for gradient rules: standard operators, in the program's opset, appended to the backward
 * path.
 *
 * Types and shapes of every op are inferred as it is built, so that rules can rely on them.  Constants
 * are created once, in the graph, where every body can access them.
 */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>

#include "grad/gradients.h"
#include "base/arena_internal.h"
#include "base/half.h"
#include "base/shape.h"
#include "grad/grad_builder.h"
#include "grad/tape.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "ir/type.h"
#include "opdef/op_context.h"

/* ---- Names. ---- */

void
om_tape_start(struct om_tape *t)
{
	t->names = om_map_new(t->mem);
	t->constants = om_map_new(t->mem);
	t->known = om_map_new(t->mem);
	t->phase = OM_BACKWARD;
	for (uint32_t k = 0; k < t->p->nvalue; k++)
		om_map_set(&t->names, t->p->values[k]->name, (void *)(uintptr_t)1);
}

const char *
om_tape_name(struct om_tape *t, const char *stem)
{
	uintptr_t n = (uintptr_t)om_map_get(&t->names, stem);
	const char *name = stem;

	if (n)
		for (; om_map_get(&t->names, name); n++)
			name = om_printf(t->p->mem, "%s.%" PRIuPTR, stem, n);
	else
		name = om_strdup(t->p->mem, stem);
	if (n)
		om_map_set(&t->names, om_strdup(t->mem, stem), (void *)n);
	om_map_set(&t->names, name, (void *)(uintptr_t)1);
	return name;
}

void
om_tape_named(struct om_tape *t, const om_value *v)
{
	if (v->id >= t->cap) {
		const uint32_t cap = t->p->nvalue < UINT32_MAX / 2 ? 2 * t->p->nvalue : UINT32_MAX;
		bool *all = OM_NEWN(t->mem, bool, cap);
		if (t->cap)
			memcpy(all, t->has_name, t->cap * sizeof *all);
		t->has_name = all;
		t->cap = cap;
	}
	t->has_name[v->id] = true;
}

om_value *
om_tape_value(struct om_tape *t, om_block *b, const char *stem)
{
	return om_value_new(t->p, b, om_tape_name(t, stem));
}

/* ---- Queries of a rule. ---- */

const om_op *
om_grad_op(const om_grad *g)
{
	return g->op;
}

om_session *
om_grad_session(const om_grad *g)
{
	return g->scope->tape->session;
}

om_prog *
om_grad_prog(const om_grad *g)
{
	return g->scope->tape->p;
}

om_arena *
om_grad_mem(const om_grad *g)
{
	return g->scope->tape->mem;
}

om_scope *
om_grad_scope(const om_grad *g)
{
	return g->scope;
}

bool
om_grad_failed(const om_grad *g)
{
	return g->scope->tape->status != OM_OK;
}

void
om_grad_fail(om_grad *g, om_status st, const char *fmt, ...)
{
	char what[512];
	va_list ap;

	if (om_grad_failed(g))
		return;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	om_session *s = g->scope->tape->session;
	om_tape_fail(g->scope->tape, g->op ? om_op_fail(s, st, g->op, "%s", what) : om_fail(s, st, "%s", what));
}

void
om_grad_set_zero(om_grad *g)
{
	for (uint32_t k = 0; k < g->op->nin; k++)
		om_grad_set_input_grad(g, k, NULL);
}

bool
om_grad_has(const om_grad *g, uint32_t k)
{
	return k < g->op->nin && g->op->in[k];
}

bool
om_grad_is_needed(const om_grad *g, uint32_t k)
{
	return om_grad_has(g, k) && om_scope_is_requested(g->scope, g->op->in[k]);
}

om_value *
om_grad_output_grad(om_grad *g, uint32_t k)
{
	return k < g->op->nout ? om_scope_gradient(g->scope, g->op->out[k]) : NULL;
}

om_value *
om_grad_forward_input(om_grad *g, uint32_t k)
{
	return om_grad_has(g, k) ? om_scope_import(g->scope, g, g->op->in[k]) : NULL;
}

/* ---- Omitted outputs. ---- */

static void
take_output(struct om_tape *t, om_op *op, uint32_t k)
{
	if (k >= op->nout) {
		om_value **out = OM_NEWN(t->p->mem, om_value *, (size_t)k + 1);
		if (op->nout)
			memcpy(out, op->out, op->nout * sizeof *out);
		op->out = out;
		op->nout = k + 1;
	}
	const char *first = op->out[0] ? op->out[0]->name : op->type;
	om_op_set_out(op, k, om_tape_value(t, op->block, om_printf(t->mem, "%s_out%u", first, k)));
	om_tape_fail(t, om_op_infer(t->session, t->p, op));
}

/* A copy of the op in the backward path, whose outputs may be extended. */
static om_op *
copy_of(om_grad *g)
{
	struct om_tape *t = g->scope->tape;
	const char *key = om_printf(t->mem, "copy %" PRIu32, g->op->id);
	om_op *copy = om_map_get(&t->known, key);

	if (copy)
		return copy;
	om_attr *attrs = OM_NEWN(t->mem, om_attr, (size_t)g->op->nattr + 1);
	om_value **in = OM_NEWN(t->mem, om_value *, (size_t)g->op->nin + 1);
	if (g->op->nattr)
		memcpy(attrs, g->op->attr, g->op->nattr * sizeof *attrs);
	for (uint32_t k = 0; k < g->op->nin; k++)
		in[k] = om_grad_forward_input(g, k);
	if (g->op->opdef && g->op->opdef->flags & OM_RANDOM)
		om_grad_fail(g, OM_UNSUPPORTED,
			"it is random: its mask is not available without a change to the forward graph");
	copy = om_emit_open(g, g->op->domain, g->op->type, attrs, g->op->nin, in, g->op->nout);
	copy->version = g->op->version;
	copy->opdef = g->op->opdef;
	om_emit_done(g, copy);
	om_map_set(&t->known, key, copy);
	return copy;
}

om_value *
om_grad_forward_output(om_grad *g, uint32_t k)
{
	struct om_tape *t = g->scope->tape;
	om_op *op = (om_op *)g->op;  /* the builder may change the program; rules may not */

	if (k < op->nout && op->out[k])
		return om_scope_import(g->scope, g, op->out[k]);
	if (t->copies)
		op = copy_of(g);
	if (k >= op->nout || !op->out[k])
		take_output(t, op, k);
	return om_scope_import(g->scope, g, op->out[k]);
}

/* ---- Results of a rule. ---- */

static void
give_value(om_grad *g, om_value *of, om_value *v)
{
	char got[256], want[256];

	if (!v || om_grad_failed(g) || !om_scope_is_requested(g->scope, of))
		return;
	if (om_type_elem(&v->type) != om_type_elem(&of->type) || !om_shape_agree(&v->shape, &of->shape))
		om_grad_fail(g, OM_SHAPE, "its gradient of %s is %s%s, but the value is %s%s", of->name,
			om_dtype_text(om_type_elem(&v->type)), om_shape_text(&v->shape, got, sizeof got),
			om_dtype_text(om_type_elem(&of->type)), om_shape_text(&of->shape, want, sizeof want));
	else {
		if (v->shape.rank == OM_RANK_UNKNOWN && of->type.kind == OM_TENSOR)
			v->shape = of->shape;  /* which every gradient of the value has */
		om_scope_add(g->scope, g, of, v);
	}
}

void
om_grad_set_input_grad(om_grad *g, uint32_t k, om_value *v)
{
	if (!om_grad_has(g, k))
		return;
	if (g->is_said && k < g->nsaid)
		g->is_said[k] = true;
	give_value(g, g->op->in[k], v);
}

void
om_grad_set_broadcast_grad(om_grad *g, uint32_t k, om_value *v)
{
	if (om_grad_is_needed(g, k))
		om_grad_set_input_grad(g, k, v ? om_emit_sum_to(g, v, g->op->in[k]) : NULL);
}

void
om_grad_set_value_grad(om_grad *g, om_value *of, om_value *v)
{
	give_value(g, of, v);
}

bool
om_grad_value_is_needed(const om_grad *g, const om_value *v)
{
	return om_scope_is_requested(g->scope, v);
}

/* ---- Access from the backward path. ---- */

om_value *
om_scope_import(om_scope *s, om_grad *g, om_value *v)
{
	if (om_block_inside(s->to, v->block))
		return v;
	if (v->data && v->data->data && !v->is_overridable)
		return om_emit_tensor(g, v->data);
	if (v->block != s->from)
		return s->outer ? om_scope_import(s->outer, g, v) : v;
	if (!s->keep)
		return v;
	if (v->id >= s->nvalue)
		return s->keep(s, g, v);
	if (!s->kept[v->id])
		s->kept[v->id] = s->keep(s, g, v);
	return s->kept[v->id];
}

/* ---- Ops. ---- */

om_op *
om_emit_open(om_grad *g, const char *domain, const char *type, const om_attr *attrs, size_t nin,
	om_value *const *in, size_t nout)
{
	struct om_tape *t = g->scope->tape;
	om_op *op = om_op_new(t->p, domain, type, 0, (uint32_t)nin, (uint32_t)nout);

	op->phase = t->phase;
	for (uint32_t k = 0; k < nin; k++)
		om_op_set_in(op, k, in[k]);
	for (uint32_t k = 0; k < nout; k++)
		om_op_set_out(op, k, om_tape_value(t, g->scope->to, om_printf(t->mem, "%s_%s", g->stem, type)));
	op->block = g->scope->to;  /* required for the paths of bodies; om_emit_done() appends the op to
	                              the block */
	for (; attrs && attrs->name; attrs++)
		om_op_add_attr(t->p, op, attrs);
	return op;
}

void
om_emit_done(om_grad *g, om_op *op)
{
	struct om_tape *t = g->scope->tape;

	op->block = NULL;
	om_op_append(g->scope->to, op);
	if (t->status != OM_OK)
		return;
	if (!op->opdef)
		om_tape_fail(t, om_op_fail(t->session, OM_UNSUPPORTED, op,
			"does not exist in opset %d, and is required for a gradient", op->version));
	else
		om_tape_fail(t, om_op_infer(t->session, t->p, op));
}

om_value *
om_emit_op(om_grad *g, const char *type, const om_attr *attrs, size_t nin, om_value *const *in,
	size_t nout, om_value **out)
{
	om_op *op = om_emit_open(g, "", type, attrs, nin, in, nout);

	om_emit_done(g, op);
	if (out)
		memcpy(out, op->out, nout * sizeof *out);
	return op->out[0];
}

/* ---- Attributes. ---- */

om_attr
om_attr_make_ints(om_grad *g, const char *name, size_t n, const int64_t *v)
{
	return (om_attr){.name = name, .kind = OM_ATTR_INTS, .n = n,
		.i = n ? om_memdup(g->scope->tape->mem, v, n * sizeof *v) : NULL};
}

om_attr
om_attr_make_int(om_grad *g, const char *name, int64_t v)
{
	om_attr a = om_attr_make_ints(g, name, 1, &v);

	a.kind = OM_ATTR_INT;
	return a;
}

om_attr
om_attr_make_float(om_grad *g, const char *name, float v)
{
	return (om_attr){.name = name, .kind = OM_ATTR_FLOAT, .n = 1,
		.f = om_memdup(g->scope->tape->mem, &v, sizeof v)};
}

om_attr
om_attr_make_string(om_grad *g, const char *name, const char *v)
{
	const om_string s = {om_strdup(g->scope->tape->mem, v), strlen(v)};

	return (om_attr){.name = name, .kind = OM_ATTR_STRING, .n = 1,
		.s = om_memdup(g->scope->tape->mem, &s, sizeof s)};
}

om_attr
om_attr_make_copy(om_grad *g, const char *name, const char *as)
{
	om_attr a = *om_attr_find(g->op, name);

	a.name = as;
	return a;
}

/* ---- Constants. ---- */

static om_value *
constant(om_grad *g, const char *key, const char *stem, const om_tensor *t)
{
	struct om_tape *tape = g->scope->tape;
	om_value *v = om_map_get(&tape->constants, key);

	if (v)
		return v;
	om_tensor *copy = om_memdup(tape->p->mem, t, sizeof *t);
	v = om_const_new(tape->p, tape->p->first, om_tape_name(tape, stem), copy);
	om_map_set(&tape->constants, key, v);
	return v;
}

om_value *
om_emit_tensor(om_grad *g, const om_tensor *t)
{
	struct om_tape *tape = g->scope->tape;
	om_tensor copy = *t;
	uint64_t bytes = 0;

	if (t->splat)
		bytes = om_dtype_bits(t->type) / 8;
	else if (!om_tensor_bytes(t->type, &t->shape, &bytes))
		om_grad_fail(g, OM_SHAPE, "a constant of its gradient is too large");
	copy.data = om_memdup(tape->p->mem, t->data, bytes);
	const char *name = om_tape_name(tape, "grad_const");
	return om_const_new(tape->p, tape->p->first, name, om_memdup(tape->p->mem, &copy, sizeof copy));
}

static void
put_number(om_dtype type, void *to, double v)
{
	const float f = (float)v;
	const uint16_t half = type == OM_FLOAT16 ? om_float_to_half(f) : om_float_to_bfloat(f);

	if (type == OM_FLOAT64)
		memcpy(to, &v, sizeof v);
	else if (type == OM_FLOAT32)
		memcpy(to, &f, sizeof f);
	else
		memcpy(to, &half, sizeof half);
}

om_value *
om_emit_number(om_grad *g, const om_value *like, double v)
{
	struct om_tape *t = g->scope->tape;
	const om_dtype type = om_type_elem(&like->type);
	void *data = om_alloc(t->p->mem, sizeof v);
	const char *text = om_printf(t->mem, "%s %.17g", om_dtype_text(type), v);

	if (type != OM_FLOAT64 && type != OM_FLOAT32 && type != OM_FLOAT16 && type != OM_BFLOAT16)
		om_grad_fail(g, OM_UNSUPPORTED, "gradients are not computed in %s", om_dtype_text(type));
	put_number(type, data, v);
	return constant(g, text, om_printf(t->mem, "grad_%g", v),
		&(om_tensor){.type = type, .shape = om_shape_of(0, NULL), .data = data});
}

static om_value *
integers(om_grad *g, int rank, size_t n, const int64_t *v)
{
	struct om_tape *t = g->scope->tape;
	const int64_t dim = (int64_t)n;
	const char *text = rank ? "list" : "int64", *stem = "grad";

	for (size_t k = 0; k < n; k++) {
		text = om_printf(t->mem, "%s %" PRId64, text, v[k]);
		stem = om_printf(t->mem, "%s_%" PRId64, stem, v[k]);
	}
	return constant(g, text, om_printf(t->mem, "%s_%s", stem, rank ? "list" : "int"),
		&(om_tensor){.type = OM_INT64, .shape = om_shape_of(rank, &dim),
			.data = n ? om_memdup(t->p->mem, v, n * sizeof *v) : om_alloc(t->p->mem, 1)});
}

om_value *
om_emit_int64(om_grad *g, int64_t v)
{
	return integers(g, 0, 1, &v);
}

om_value *
om_emit_list(om_grad *g, size_t n, const int64_t *v)
{
	return integers(g, 1, n, v);
}

om_value *
om_emit_scalar(om_grad *g, const char *type, om_value *x, double v)
{
	return om_emit(g, type, x, om_emit_number(g, x, v));
}

/* ---- Axes. ---- */

/* The version since which an operator takes its axes as an input. */
static int
axes_are_input_since(const char *type)
{
	return strcmp(type, "ReduceSum") == 0 || strcmp(type, "Squeeze") == 0
	    || strcmp(type, "Unsqueeze") == 0 ? 13 : 18;
}

static om_value *
along(om_grad *g, const char *type, om_value *x, size_t n, const int64_t *axis, om_attr more)
{
	if (n == 0)
		return x;
	if (om_opset_version(g->scope->tape->p, "") >= axes_are_input_since(type))
		return om_emit_attrs(g, type, OM_A(more), x, om_emit_list(g, n, axis));
	return om_emit_attrs(g, type, OM_A(om_attr_make_ints(g, "axes", n, axis), more), x);
}

om_value *
om_emit_reduce(om_grad *g, const char *type, om_value *x, size_t n, const int64_t *axis, bool keepdims)
{
	return along(g, type, x, n, axis, om_attr_make_int(g, "keepdims", keepdims));
}

om_value *
om_emit_squeeze(om_grad *g, om_value *x, size_t n, const int64_t *axis)
{
	return along(g, "Squeeze", x, n, axis, (om_attr){0});
}

om_value *
om_emit_unsqueeze(om_grad *g, om_value *x, size_t n, const int64_t *axis)
{
	return along(g, "Unsqueeze", x, n, axis, (om_attr){0});
}

om_value *
om_emit_transpose(om_grad *g, om_value *x, size_t n, const int64_t *perm)
{
	return om_emit_attrs(g, "Transpose", OM_A(om_attr_make_ints(g, "perm", n, perm)), x);
}

om_value *
om_emit_cast(om_grad *g, om_value *x, om_dtype to)
{
	if (om_type_elem(&x->type) == to)
		return x;
	return om_emit_attrs(g, "Cast", OM_A(om_attr_make_int(g, "to", to)), x);
}

om_value *
om_emit_slice(om_grad *g, om_value *x, int64_t axis, int64_t from, int64_t to)
{
	return om_emit(g, "Slice", x, om_emit_list(g, 1, &from), om_emit_list(g, 1, &to), om_emit_list(g, 1, &axis));
}

/* ---- Shapes of the forward path. ---- */

static bool
is_same_shape(const om_shape *a, const om_shape *b)
{
	if (a->rank != b->rank || a->rank == OM_RANK_UNKNOWN)
		return false;
	for (int d = 0; d < a->rank; d++)
		if (a->dim[d] != b->dim[d] || (a->dim[d] < 0 && (!a->sym[d] || !b->sym[d]
		    || strcmp(a->sym[d], b->sym[d]) != 0)))
			return false;
	return true;
}

/* A Shape op directly after the definition of `v`, of its dims [from, to). */
static om_value *
shape_at(om_grad *g, om_value *v, int from, int to)
{
	struct om_tape *t = g->scope->tape;
	const char *key = om_printf(t->mem, "shape %" PRIu32 " %d %d", v->id, from, to);
	om_op *op = om_map_get(&t->known, key);

	if (!op) {
		op = om_op_new(t->p, "", "Shape", 0, 1, 1);
		om_op_set_in(op, 0, v);
		om_op_set_out(op, 0, om_tape_value(t, v->block, om_printf(t->mem, "%s_shape", v->name)));
		if (to >= 0) {
			om_op_add_int(t->p, op, "start", from);
			om_op_add_int(t->p, op, "end", to);
		}
		om_op *next = v->def ? v->def->next : v->block->first;
		op->phase = v->def ? v->def->phase : OM_FORWARD;
		om_op_place(v->block, next, op);
		om_tape_fail(t, om_op_infer(t->session, t->p, op));
		om_map_set(&t->known, key, op);
	}
	return om_scope_import(g->scope, g, op->out[0]);
}

om_value *
om_emit_shape(om_grad *g, om_value *v)
{
	if (om_shape_is_known(&v->shape))
		return om_emit_list(g, (size_t)v->shape.rank, v->shape.dim);
	return shape_at(g, v, 0, -1);
}

om_value *
om_emit_dim(om_grad *g, om_value *v, int axis)
{
	if (v->shape.rank > axis && v->shape.dim[axis] >= 0)
		return om_emit_list(g, 1, &v->shape.dim[axis]);
	return shape_at(g, v, axis, axis + 1);
}

/* The shape for a Reshape, which may leave one dim to be inferred. */
static om_value *
target_shape(om_grad *g, om_value *v)
{
	int open = 0, zero = 0;

	for (int d = 0; d < v->shape.rank; d++) {
		open += v->shape.dim[d] < 0;
		zero += v->shape.dim[d] == 0;
	}
	if (v->shape.rank == OM_RANK_UNKNOWN || open > 1 || zero)
		return om_emit_shape(g, v);
	return om_emit_list(g, (size_t)v->shape.rank, v->shape.dim);  /* an unknown dim is -1 */
}

om_value *
om_emit_reshape(om_grad *g, om_value *x, om_value *shape)
{
	const om_tensor *t = shape->data;
	bool may_be_zero = !t;

	for (int64_t k = 0; t && k < om_shape_count(&t->shape); k++)
		may_be_zero |= ((const int64_t *)t->data)[t->splat ? 0 : k] == 0;
	if (may_be_zero)
		return om_emit_attrs(g, "Reshape", OM_A(om_attr_make_int(g, "allowzero", 1)), x, shape);
	return om_emit(g, "Reshape", x, shape);
}

om_value *
om_emit_reshape_as(om_grad *g, om_value *x, om_value *v)
{
	return is_same_shape(&x->shape, &v->shape) ? x : om_emit_reshape(g, x, target_shape(g, v));
}

om_value *
om_emit_expand_as(om_grad *g, om_value *x, om_value *v)
{
	return is_same_shape(&x->shape, &v->shape) ? x : om_emit(g, "Expand", x, om_emit_shape(g, v));
}

om_value *
om_emit_zeros_as(om_grad *g, om_value *v)
{
	const om_value *zero = om_emit_number(g, v, 0);
	const int64_t one = 1;
	om_tensor t = *zero->data;

	t.shape = om_shape_of(1, &one);
	const om_attr value = {.name = "value", .kind = OM_ATTR_TENSOR, .n = 1, .t = &t};
	return om_emit_attrs(g, "ConstantOfShape", OM_A(value), om_emit_shape(g, v));
}

om_value *
om_emit_count(om_grad *g, const om_value *like, om_value *v, int n, const int64_t *axis)
{
	int64_t count = 1, all[OM_MAX_RANK];
	bool is_known = v->shape.rank != OM_RANK_UNKNOWN;

	if (n < 0 && is_known)
		for (n = 0; n < v->shape.rank; n++)
			all[n] = n;
	if (n >= 0 && !axis)
		axis = all;
	for (int k = 0; k < n && is_known; k++) {
		is_known = v->shape.dim[axis[k]] >= 0;
		if (is_known && __builtin_mul_overflow(count, v->shape.dim[axis[k]], &count))
			om_grad_fail(g, OM_SHAPE, "%s has too many elements", v->name);
	}
	if (is_known)
		return om_emit_number(g, like, (double)count);
	om_value *dims = om_emit_shape(g, v);
	if (n >= 0)
		dims = om_emit(g, "Gather", dims, om_emit_list(g, (size_t)n, axis));
	const int64_t first = 0;
	return om_emit_cast(g, om_emit_reduce(g, "ReduceProd", dims, 1, &first, false), om_type_elem(&like->type));
}

/* ---- Adjoints of broadcasts. ---- */

/* Get the axes of `x` to sum over; false if they are not known before the run. */
static bool
repeated_axes(const om_shape *x, const om_shape *to, int64_t *axis, size_t *n)
{
	const int more = x->rank - to->rank;

	*n = 0;
	if (x->rank == OM_RANK_UNKNOWN || to->rank == OM_RANK_UNKNOWN || more < 0)
		return false;
	for (int d = 0; d < x->rank; d++) {
		const int64_t want = d < more ? 1 : to->dim[d - more];
		const char *sym = d < more ? NULL : to->sym[d - more];
		if (d < more || (want == 1 && x->dim[d] != 1))
			axis[(*n)++] = d;
		else if (want < 0 && !(x->dim[d] < 0 && sym && x->sym[d] && strcmp(sym, x->sym[d]) == 0)
			 && x->dim[d] != 1)
			return false;
	}
	return true;
}

/* The axes along which the two shapes differ, the shorter one padded with leading ones. */
static om_value *
axes_at_run(om_grad *g, om_value *x, om_value *forward)
{
	const int64_t zero = 0, one = 1;
	om_value *to = om_emit_shape(g, forward), *have = om_emit(g, "Shape", x);
	om_value *first = om_emit_list(g, 1, &zero), *more;

	more = om_emit(g, "Sub", om_emit(g, "Shape", have), om_emit(g, "Shape", to));
	to = om_emit_attrs(g, "Concat", OM_A(om_attr_make_int(g, "axis", 0)),
		om_emit(g, "Expand", om_emit_list(g, 1, &one), more), to);
	om_value *differ = om_emit(g, "NonZero", om_emit(g, "Not", om_emit(g, "Equal", have, to)));
	return om_emit(g, "Squeeze", differ, first);
}

om_value *
om_emit_sum_to(om_grad *g, om_value *x, om_value *forward)
{
	int64_t axis[OM_MAX_RANK];
	size_t n;

	if (is_same_shape(&x->shape, &forward->shape))
		return x;
	if (repeated_axes(&x->shape, &forward->shape, axis, &n)) {
		const size_t more = (size_t)(x->shape.rank - forward->shape.rank);
		if (n == more)
			return om_emit_reduce(g, "ReduceSum", x, n, axis, false);
		x = om_emit_reduce(g, "ReduceSum", x, n, axis, true);
		return more ? om_emit_reshape_as(g, x, forward) : x;
	}
	x = om_emit_attrs(g, "ReduceSum", OM_A(om_attr_make_int(g, "keepdims", 1), om_attr_make_int(g, "noop_with_empty_axes", 1)),
		x, axes_at_run(g, x, forward));
	return om_emit_reshape(g, x, om_emit_shape(g, forward));
}
