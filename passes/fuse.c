/* SPDX-License-Identifier: Apache-2.0 */
/* fuse: simplify the graph without changing results, in standard ONNX.
 *
 * Each rule removes ops that have no effect, or merges two ops into one.  All but two are exact, except
 * that a NaN may have another payload.  None increases the live bytes at any step of the current order:
 *
 *   - The replacement of a value is a view of the same memory, or is live instead of a value that was at
 *     least as large.  So a rule is not applied if a value between the two ops has another use, or if it
 *     would keep a larger value live to keep a part of it.
 *   - No rule depends on a dim that may differ for other inputs: shapes may be bound for this plan alone,
 *     while the model serves all shapes.
 *
 * Two rules change rounding, so they are off by default: `norm=fold` folds a batch normalization into the
 * weights before it; `pad=fold` turns zeros around the input of a convolution into its pads, with which its
 * kernel may add in another order. */
#include <config.h>

#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/shape.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "opdef/rewrite_internal.h"
#include "opdef/op_context.h"
#include "onnxmem/pass.h"
#include "onnxmem/rewrite.h"

/* Slots: inputs of the matched ops, and the values between them. */
enum { ROOT, X, INNER, C, W, B, SCALE, SHIFT, MEAN, VARIANCE, PADS };

/* ---- Queries of values. ---- */

/* Has the value storage of its own, so that keeping it live keeps nothing else live? */
static bool
is_whole(const om_value *v)
{
	const om_value *owner = v;
	om_view_of of;

	for (bool more = true; more && owner->def;) {
		uint32_t k = 0;
		while (owner->def->out[k] != owner)
			k++;
		more = om_op_view(owner->def, k, &of);
		owner = more ? owner->def->in[of.in] : owner;
	}
	return owner == v || om_value_bytes(owner) == om_value_bytes(v);
}

/* May `v` be live in place of `old`, which was as large?  Two loops with one of the two values each would
 * share the merged value, and copy it. */
static bool
may_keep(const om_value *v, const om_value *old)
{
	return is_whole(v) && (v->nuse <= 1 || (!om_value_enters_body(v) && !om_value_enters_body(old)));
}

/* Element `k` of a floating-point or integer constant as a double; false for other types. */
static bool
number_at(const om_value *v, int64_t k, double *is)
{
	const om_tensor *t = v->data;
	const size_t size = om_dtype_bits(t->type) / 8;
	union { float f; double d; uint16_t h; int32_t i; int64_t l; } one;

	if (size > sizeof one)
		return false;
	memcpy(&one, (const char *)t->data + (t->splat ? 0 : (size_t)k * size), size);  /* at any address */
	switch (t->type) {
	case OM_FLOAT32: *is = (double)one.f; return true;
	case OM_FLOAT64: *is = one.d; return true;
	case OM_FLOAT16: *is = (double)om_half_to_float(one.h); return true;
	case OM_BFLOAT16: *is = (double)om_bfloat_to_float(one.h); return true;
	case OM_INT32: *is = one.i; return true;
	case OM_INT64: *is = (double)one.l; return true;
	default: return false;
	}
}

/* The elements of an int64 constant; false if they are not known. */
static bool
ints_of(const om_value *v, size_t *n, const int64_t **out)
{
	if (!v || !v->data || !v->data->data || v->is_overridable || v->data->type != OM_INT64)
		return false;
	*n = (size_t)om_shape_count(&v->data->shape);
	*out = v->data->data;
	return !v->data->splat || *n == 1;
}

/* ---- Ops without effect. ---- */

static om_value *
through(om_rewriter *w, const om_match *m)
{
	(void)w;
	return m->value[X];
}

static const om_pattern input = {.kind = OM_MATCH_ANY, .slot = X};

static const om_pattern identity = {.kind = OM_MATCH_OP, .type = "Identity", .in = {&input}};

/* Before version 7 an attribute selects inference, since version 12 an input does. */
static bool
keeps_all(const om_match *m, const om_value *v)
{
	const om_op *op = v->def;

	(void)m;
	if (op->nout > 1 && op->out[1] && op->out[1]->nuse)
		return false;
	if (op->version < 7)
		return om_attr_int(op, "is_test");
	return op->version < 12 || op->nin < 3 || !op->in[2] || om_value_is(op->in[2], false);
}

static const om_pattern dropout = {.kind = OM_MATCH_OP, .type = "Dropout", .in = {&input}, .holds = keeps_all};

/* ---- Neutral constants. ---- */

static const om_pattern constant = {.kind = OM_MATCH_CONST, .slot = C};

/* One element that does not change the shape of x and is exactly `number`, sign included. */
static bool
is_neutral(const om_match *m, const om_value *v, double number)
{
	const om_value *a = m->value[X], *b = m->value[C];
	double is;

	return v->def->nattr == 0 && a->shape.rank >= b->shape.rank && om_shape_is_known(&b->shape)
	    && om_shape_count(&b->shape) == 1 && number_at(b, 0, &is) && is == number
	    && (!om_dtype_is_float(b->type.elem) || !signbit(is) == !signbit(number)) && may_keep(a, v);
}

/* x + 0 is not x if x is -0; x + -0 is. */
static bool
adds_nothing(const om_match *m, const om_value *v)
{
	return is_neutral(m, v, om_dtype_is_float(m->value[C]->type.elem) ? -0.0 : 0);
}

static bool
takes_nothing(const om_match *m, const om_value *v)
{
	return is_neutral(m, v, 0);
}

static bool
is_times_one(const om_match *m, const om_value *v)
{
	return is_neutral(m, v, 1);
}

static const om_pattern
	plus = {.kind = OM_MATCH_OP, .flags = OM_MATCH_SWAP, .type = "Add", .in = {&input, &constant}, .holds = adds_nothing},
	minus = {.kind = OM_MATCH_OP, .type = "Sub", .in = {&input, &constant}, .holds = takes_nothing},
	times = {.kind = OM_MATCH_OP, .flags = OM_MATCH_SWAP, .type = "Mul", .in = {&input, &constant}, .holds = is_times_one},
	divided = {.kind = OM_MATCH_OP, .type = "Div", .in = {&input, &constant}, .holds = is_times_one};

/* ---- Transposes. ---- */

/* Output axis k is input axis perm[k]; false if the rank is not known. */
static bool
perm_of(const om_op *op, int64_t *perm, size_t *n)
{
	const int64_t *given = om_attr_ints(op, "perm", n);

	if (!given && op->in[0]->shape.rank < 0)
		return false;
	if (!given)
		*n = (size_t)op->in[0]->shape.rank;
	if (*n > OM_MAX_RANK)
		return false;
	for (size_t k = 0; k < *n; k++)
		perm[k] = given ? given[k] : (int64_t)(*n - 1 - k);
	return true;
}

static bool
is_in_order(const int64_t *perm, size_t n)
{
	for (size_t k = 0; k < n; k++)
		if (perm[k] != (int64_t)k)
			return false;
	return true;
}

static bool
moves_nothing(const om_match *m, const om_value *v)
{
	int64_t perm[OM_MAX_RANK];
	size_t n;

	(void)m;
	return perm_of(v->def, perm, &n) && is_in_order(perm, n);
}

/* If the permutations cancel out, x itself; otherwise one transpose at the position of the first one, whose
 * output is as large. */
static om_value *
one_transpose(om_rewriter *w, const om_match *m)
{
	const om_op *outer = m->value[ROOT]->def;
	om_op *inner = m->value[INNER]->def;
	int64_t first[OM_MAX_RANK], second[OM_MAX_RANK], perm[OM_MAX_RANK];
	size_t n, also;

	if (!perm_of(inner, first, &n) || !perm_of(outer, second, &also) || n != also)
		return NULL;
	for (size_t k = 0; k < n; k++)
		perm[k] = first[second[k]];
	if (is_in_order(perm, n))
		return may_keep(m->value[X], m->value[ROOT]) ? m->value[X] : NULL;
	om_rewrite_at(w, inner);
	om_value *y = om_rewrite_op(w, outer, NULL, 1, &m->value[X]);
	om_op_drop_attr(y->def, "perm");
	om_op_add_ints(om_rewrite_prog(w), y->def, "perm", n, perm);
	return y;
}

static const om_pattern
	transpose = {.kind = OM_MATCH_OP, .type = "Transpose", .in = {&input}, .holds = moves_nothing},
	transposed = {.kind = OM_MATCH_OP, .flags = OM_MATCH_ONCE, .slot = INNER, .type = "Transpose", .in = {&input}},
	transpose_transpose = {.kind = OM_MATCH_OP, .type = "Transpose", .in = {&transposed}};

/* ---- Shapes: views of views. ---- */

/* No dim of the new shape is copied from the input: the shape does not depend on the input. */
static bool
says_all(const om_match *m, const om_value *v)
{
	const om_op *op = v->def;
	const int64_t *dim;
	size_t n;

	(void)m;
	if (op->nin < 2 || !ints_of(op->in[1], &n, &dim))
		return false;
	for (size_t k = 0; k < n; k++)
		if (dim[k] == 0 && !om_attr_int(op, "allowzero"))
			return false;
	return true;
}

static om_value *
reshape_first(om_rewriter *w, const om_match *m)
{
	const om_op *op = m->value[ROOT]->def;

	return om_rewrite_op(w, op, NULL, 2, (om_value *[]){m->value[X], op->in[1]});
}

/* A matrix flattened to the same matrix. */
static bool
is_flat(const om_match *m, const om_value *v)
{
	const int64_t axis = om_attr_int(v->def, "axis");

	(void)m;
	return axis == 1 || axis == -1;
}

static om_value *
inner_value(om_rewriter *w, const om_match *m)
{
	(void)w;
	return m->value[INNER];
}

/* The axes of a Squeeze or an Unsqueeze, each once and counted from the front, among `rank`. */
static bool
axes_of(const om_op *op, int rank, bool *is_in)
{
	const int64_t *axis;
	size_t n;

	if (op->version < 13)
		axis = om_attr_ints(op, "axes", &n);
	else if (op->nin < 2 || !ints_of(op->in[1], &n, &axis))
		return false;
	if (!axis || rank < 0 || rank > OM_MAX_RANK)
		return false;
	memset(is_in, 0, OM_MAX_RANK * sizeof *is_in);
	for (size_t k = 0; k < n; k++) {
		int a;
		if (!om_axis(axis[k], rank, &a))
			return false;
		is_in[a] = true;
	}
	return true;
}

/* One inserts the axes that the other removes.  The axes of both refer to the larger rank. */
static bool
is_undone(const om_match *m, const om_value *v)
{
	const om_value *inner = m->value[INNER];
	const bool drops = strcmp(v->def->type, "Squeeze") == 0;
	const int rank = drops ? inner->shape.rank : v->shape.rank;
	bool a[OM_MAX_RANK], b[OM_MAX_RANK];

	return axes_of(inner->def, rank, a) && axes_of(v->def, rank, b) && memcmp(a, b, sizeof a) == 0;
}

/* Both insert axes, or both remove axes: the union, in terms of the larger rank.  The axes of the op next
 * to that rank are unchanged; those of the other op are numbered among the remaining axes. */
static bool
both_axes(const om_op *near, const om_op *far, int rank, int64_t *axis, size_t *n)
{
	bool a[OM_MAX_RANK], b[OM_MAX_RANK];
	int rest = 0, at = 0;

	*n = 0;
	if (!axes_of(near, rank, a))
		return false;
	for (int k = 0; k < rank; k++)
		rest += !a[k];
	if (!axes_of(far, rest, b))
		return false;
	for (int k = 0; k < rank; k++)
		if (a[k] || b[at++])
			axis[(*n)++] = k;
	return true;
}

static om_value *
one_of_both(om_rewriter *w, const om_match *m)
{
	const om_op *outer = m->value[ROOT]->def, *inner = m->value[INNER]->def;
	const bool drops = strcmp(outer->type, "Squeeze") == 0;
	int64_t axis[OM_MAX_RANK];
	size_t n;

	if (!(drops ? both_axes(inner, outer, m->value[X]->shape.rank, axis, &n)
	    : both_axes(outer, inner, m->value[ROOT]->shape.rank, axis, &n)))
		return NULL;
	if (outer->version >= 13)
		return om_rewrite_op(w, outer, NULL, 2, (om_value *[]){m->value[X],
			om_rewrite_ints(w, om_printf(om_rewrite_mem(w), "%s_axes", m->value[ROOT]->name), n, axis)});
	om_value *y = om_rewrite_op(w, outer, NULL, 1, &m->value[X]);
	om_op_drop_attr(y->def, "axes");
	om_op_add_ints(om_rewrite_prog(w), y->def, "axes", n, axis);
	return y;
}

#define VIEW(called, operator) \
	called = {.kind = OM_MATCH_OP, .slot = INNER, .type = operator, .in = {&input}}
#define RESHAPE(called, inner) \
	called = {.kind = OM_MATCH_OP, .type = "Reshape", .since = 5, .in = {&inner}, .holds = says_all}

static const om_pattern
	VIEW(reshaped, "Reshape"), VIEW(flattened, "Flatten"), VIEW(squeezed, "Squeeze"), VIEW(unsqueezed, "Unsqueeze"),
	RESHAPE(reshape_reshape, reshaped), RESHAPE(reshape_flatten, flattened),
	RESHAPE(reshape_squeeze, squeezed), RESHAPE(reshape_unsqueeze, unsqueezed),
	flatten_flatten = {.kind = OM_MATCH_OP, .type = "Flatten", .in = {&flattened}, .holds = is_flat},
	squeeze_unsqueeze = {.kind = OM_MATCH_OP, .type = "Squeeze", .in = {&unsqueezed}, .holds = is_undone},
	unsqueeze_squeeze = {.kind = OM_MATCH_OP, .type = "Unsqueeze", .in = {&squeezed}, .holds = is_undone},
	squeeze_squeeze = {.kind = OM_MATCH_OP, .type = "Squeeze", .in = {&squeezed}},
	unsqueeze_unsqueeze = {.kind = OM_MATCH_OP, .type = "Unsqueeze", .in = {&unsqueezed}};

/* ---- Casts. ---- */

/* Bits of the integers that a type represents exactly: without the sign for integers, the significand for
 * floats. */
static const struct {
	om_dtype type;
	bool is_float, is_signed;
	int digits;
} number_types[] = {
	{OM_BOOL, false, false, 1}, {OM_UINT8, false, false, 8}, {OM_INT8, false, true, 7},
	{OM_UINT16, false, false, 16}, {OM_INT16, false, true, 15}, {OM_UINT32, false, false, 32},
	{OM_INT32, false, true, 31}, {OM_UINT64, false, false, 64}, {OM_INT64, false, true, 63},
	{OM_FLOAT16, true, true, 11}, {OM_BFLOAT16, true, true, 8}, {OM_FLOAT32, true, true, 24},
	{OM_FLOAT64, true, true, 53},
};

static int
number_type(om_dtype t)
{
	for (int k = 0; k < (int)(sizeof number_types / sizeof number_types[0]); k++)
		if (number_types[k].type == t)
			return k;
	return -1;
}

/* Does type `b` represent every value of type `a`?  Neither of the two 16-bit floats represents all values
 * of the other. */
static bool
is_lossless(om_dtype a, om_dtype b)
{
	const int i = number_type(a), k = number_type(b);

	if (i < 0 || k < 0 || b == OM_BOOL)
		return a == b && i >= 0;
	if (a == b)
		return true;
	if (number_types[i].is_float)
		return number_types[k].is_float && number_types[k].digits >= 24 && number_types[k].digits > number_types[i].digits;
	return number_types[i].digits <= number_types[k].digits && (!number_types[i].is_signed || number_types[k].is_signed);
}

static bool
is_integral(om_dtype t)
{
	return number_type(t) >= 0 && !om_dtype_is_float(t);
}

static bool
is_same_type(const om_match *m, const om_value *v)
{
	const om_dtype t = m->value[X]->type.elem;

	return number_type(t) >= 0 && om_attr_int(v->def, "to") == (int64_t)t && may_keep(m->value[X], v);
}

/* From a to b to c: directly to c if b represents all values of a, or if the results are equal.  Floats are
 * equal only if no rounding takes place; integers wrap around in the same way. */
static om_value *
one_cast(om_rewriter *w, const om_match *m)
{
	const om_op *op = m->value[ROOT]->def;
	const om_dtype a = m->value[X]->type.elem, b = m->value[INNER]->type.elem, to = m->value[ROOT]->type.elem;

	if (!is_lossless(a, b) || om_dtype_bits(a) > om_dtype_bits(b) || !may_keep(m->value[X], m->value[ROOT]))
		return NULL;
	if (a == to)
		return m->value[X];
	if (!is_lossless(a, to) && !(is_integral(a) && is_integral(b) && is_integral(to)))
		return NULL;
	return om_rewrite_op(w, op, NULL, 1, &m->value[X]);
}

static const om_pattern
	cast = {.kind = OM_MATCH_OP, .type = "Cast", .since = 6, .in = {&input}, .holds = is_same_type},
	was_cast = {.kind = OM_MATCH_OP, .flags = OM_MATCH_ONCE, .slot = INNER, .type = "Cast", .since = 6, .in = {&input}},
	cast_cast = {.kind = OM_MATCH_OP, .type = "Cast", .since = 6, .in = {&was_cast}};

/* ---- Pads of a convolution. ---- */

static bool
is_finite(const om_value *v)
{
	const int64_t n = v->data->splat ? 1 : om_shape_count(&v->data->shape);
	double is;

	for (int64_t k = 0; k < n; k++)
		if (!number_at(v, k, &is) || !isfinite(is))
			return false;
	return true;
}

static bool
is_positive_zero(const om_value *v)
{
	double is;

	return v->data && v->data->data && !v->is_overridable && om_shape_count(&v->data->shape) == 1
	    && number_at(v, 0, &is) && is == 0 && !signbit(is);
}

/* The amounts of padding at the beginning and at the end of every axis. */
static bool
pads_of(const om_op *op, size_t *n, const int64_t **pads)
{
	const om_string mode = om_attr_string(op, "mode");

	if (mode.size && !om_attr_is(op, "mode", "constant"))
		return false;
	if (op->version < 11) {
		const float value = om_attr_float(op, "value");
		*pads = om_attr_ints(op, "pads", n);
		return *pads && value == 0 && !signbit(value);
	}
	return ints_of(op->in[1], n, pads) && (op->nin < 3 || !op->in[2] || is_positive_zero(op->in[2]))
	    && (op->nin < 4 || !op->in[3]);
}

/* Zero times a finite weight is zero and does not change a sum; zero times infinity is NaN. */
static om_value *
padded_conv(om_rewriter *w, const om_match *m)
{
	const om_op *op = m->value[ROOT]->def;
	const om_string given = om_attr_string(op, "auto_pad");
	int64_t sum[2 * OM_MAX_RANK];
	const int64_t *pads, *own;
	size_t n, nown;

	if (given.size && !om_attr_is(op, "auto_pad", "NOTSET"))
		return NULL;
	if (!pads_of(m->value[INNER]->def, &n, &pads) || n < 6 || n > 2 * OM_MAX_RANK || n % 2)
		return NULL;
	own = om_attr_ints(op, "pads", &nown);
	const size_t axes = n / 2 - 2;
	if ((own && nown != 2 * axes) || pads[0] || pads[1] || pads[n / 2] || pads[n / 2 + 1])
		return NULL;
	for (size_t k = 0; k < axes; k++) {
		sum[k] = pads[k + 2] + (own ? own[k] : 0);
		sum[axes + k] = pads[n / 2 + k + 2] + (own ? own[axes + k] : 0);
		if (pads[k + 2] < 0 || pads[n / 2 + k + 2] < 0)
			return NULL;
	}
	if (!is_whole(m->value[X]) || !is_finite(m->value[W]))
		return NULL;
	om_value **in = om_memdup(om_rewrite_mem(w), op->in, op->nin * sizeof *in);
	in[0] = m->value[X];
	om_value *y = om_rewrite_op(w, op, NULL, op->nin, in);
	om_op_drop_attr(y->def, "pads");
	om_op_add_ints(om_rewrite_prog(w), y->def, "pads", 2 * axes, sum);
	return y;
}

static const om_pattern
	weights = {.kind = OM_MATCH_CONST, .slot = W},
	padded = {.kind = OM_MATCH_OP, .flags = OM_MATCH_ONCE, .slot = INNER, .type = "Pad", .since = 2, .in = {&input}},
	conv_pad = {.kind = OM_MATCH_OP, .type = "Conv", .in = {&padded, &weights}};

/* ---- Batch normalization folded into weights: changes rounding. ---- */

/* y = (x - mean) * scale / sqrt(variance + epsilon) + shift, with constants per channel. */
struct norm {
	int64_t n;               /* channels */
	double *by, *mean, *shift;
};

static bool
channels(const om_value *v, int64_t n)
{
	return v->type.elem == OM_FLOAT32 && v->shape.rank == 1 && v->shape.dim[0] == n;
}

static bool
norm_of(om_rewriter *w, const om_match *m, int64_t n, struct norm *norm)
{
	const om_op *op = m->value[ROOT]->def;
	om_arena *mem = om_rewrite_mem(w);

	*norm = (struct norm){n, OM_NEWN(mem, double, (size_t)n), OM_NEWN(mem, double, (size_t)n),
		OM_NEWN(mem, double, (size_t)n)};
	if (om_attr_int(op, "training_mode") || (om_attr_has(op, "spatial") && !om_attr_int(op, "spatial"))
	    || (op->version < 7 && !om_attr_int(op, "is_test")))
		return false;
	for (uint32_t k = 1; k < op->nout; k++)
		if (op->out[k] && op->out[k]->nuse)
			return false;
	for (int k = SCALE; k <= VARIANCE; k++)
		if (!channels(m->value[k], n))
			return false;
	for (int64_t k = 0; k < n; k++) {
		double scale, variance;
		number_at(m->value[SCALE], k, &scale);
		number_at(m->value[VARIANCE], k, &variance);
		number_at(m->value[MEAN], k, &norm->mean[k]);
		number_at(m->value[SHIFT], k, &norm->shift[k]);
		norm->by[k] = scale / sqrt(variance + (double)om_attr_float(op, "epsilon"));
	}
	return true;
}

/* The weights scaled per channel: the channel of element `i` is `of[i / inner % n]` with `n` entries. */
static om_value *
scaled(om_rewriter *w, const om_match *m, const struct norm *norm, const int64_t *of, int64_t n, int64_t inner)
{
	const om_value *from = m->value[W];
	const int64_t count = om_shape_count(&from->shape);
	float *to = OM_NEWN(om_rewrite_mem(w), float, (size_t)count);

	for (int64_t i = 0; i < count; i++) {
		double is;
		number_at(from, i, &is);
		to[i] = (float)(is * norm->by[of[i / inner % n]]);
	}
	return om_rewrite_const(w, om_printf(om_rewrite_mem(w), "%s_folded", from->name),
		&(om_tensor){.type = OM_FLOAT32, .shape = from->shape, .data = to});
}

/* The bias: `factor` times the elements of `from`, one or one per channel; NULL: none. */
static om_value *
shifted(om_rewriter *w, const om_match *m, const struct norm *norm, const om_value *from, double factor)
{
	float *to = OM_NEWN(om_rewrite_mem(w), float, (size_t)norm->n);
	const bool one = from && om_shape_count(&from->shape) == 1;

	for (int64_t k = 0; k < norm->n; k++) {
		double is = 0;
		if (from)
			number_at(from, one ? 0 : k, &is);
		to[k] = (float)((factor * is - norm->mean[k]) * norm->by[k] + norm->shift[k]);
	}
	return om_rewrite_const(w, om_printf(om_rewrite_mem(w), "%s_bias", m->value[ROOT]->name),
		&(om_tensor){.type = OM_FLOAT32, .shape = om_shape_of(1, &norm->n), .data = to});
}

static int64_t *
count_up(om_rewriter *w, int64_t n)
{
	int64_t *of = OM_NEWN(om_rewrite_mem(w), int64_t, (size_t)n + 1);

	for (int64_t k = 0; k < n; k++)
		of[k] = k;
	return of;
}

static bool
has_known(const om_value *v)
{
	return !v || (v->data && v->data->data && !v->is_overridable && v->type.elem == OM_FLOAT32);
}

/* float32 weights, and a constant bias, if any. */
static bool
has_weights(const om_match *m, uint32_t bias)
{
	const om_op *op = m->value[INNER]->def;

	return m->value[W]->type.elem == OM_FLOAT32 && (op->nin <= bias || has_known(op->in[bias]));
}

/* The output channels are the outermost axis of the weights; for a transposed convolution the second axis,
 * repeated for each group. */
static om_value *
conv_norm(om_rewriter *w, const om_match *m)
{
	const om_op *op = m->value[INNER]->def;
	const om_shape *s = &m->value[W]->shape;
	const bool turned = strcmp(op->type, "ConvTranspose") == 0;
	const int64_t group = om_attr_has(op, "group") ? om_attr_int(op, "group") : 1;
	struct norm norm;

	if (!has_weights(m, 2) || s->rank < 3 || group < 1 || s->dim[0] % group)
		return NULL;
	const int64_t n = turned ? s->dim[1] * group : s->dim[0];
	if (!norm_of(w, m, n, &norm))
		return NULL;
	int64_t *of = count_up(w, n), cells = n;
	if (turned) {
		cells = s->dim[0] * s->dim[1];
		of = OM_NEWN(om_rewrite_mem(w), int64_t, (size_t)cells + 1);
		for (int64_t k = 0; k < cells; k++)
			of[k] = k / s->dim[1] / (s->dim[0] / group) * s->dim[1] + k % s->dim[1];
	}
	om_value *in[3] = {m->value[X], scaled(w, m, &norm, of, cells, om_shape_span(s, turned ? 2 : 1, s->rank)),
		shifted(w, m, &norm, op->nin > 2 ? op->in[2] : NULL, 1)};
	om_rewrite_at(w, m->value[INNER]->def);
	return om_rewrite_op(w, op, NULL, 3, in);
}

static om_value *
gemm_norm(om_rewriter *w, const om_match *m)
{
	const om_op *op = m->value[INNER]->def;
	const om_value *bias = op->nin > 2 ? op->in[2] : NULL;
	const om_shape *s = &m->value[W]->shape;
	const bool turned = om_attr_int(op, "transB");
	struct norm norm;

	if (!has_weights(m, 2) || s->rank != 2)
		return NULL;
	const int64_t n = s->dim[turned ? 0 : 1];
	if (bias && om_shape_count(&bias->shape) != 1 && (om_shape_count(&bias->shape) != n
	    || bias->shape.dim[bias->shape.rank - 1] != n))
		return NULL;
	if (!norm_of(w, m, n, &norm))
		return NULL;
	om_value *in[3] = {m->value[X], scaled(w, m, &norm, count_up(w, n), n, turned ? s->dim[1] : 1),
		shifted(w, m, &norm, bias, (double)om_attr_float(op, "beta"))};
	om_rewrite_at(w, m->value[INNER]->def);
	om_value *y = om_rewrite_op(w, op, NULL, 3, in);
	om_op_drop_attr(y->def, "beta");
	return y;
}

/* A matrix product becomes a Gemm with a bias. */
static om_value *
matmul_norm(om_rewriter *w, const om_match *m)
{
	const om_shape *s = &m->value[W]->shape;
	struct norm norm;

	if (!has_weights(m, 2) || s->rank != 2 || m->value[X]->shape.rank != 2 || !norm_of(w, m, s->dim[1], &norm))
		return NULL;
	om_rewrite_at(w, m->value[INNER]->def);
	return om_rewrite_op(w, m->value[INNER]->def, "Gemm", 3, (om_value *[]){m->value[X],
		scaled(w, m, &norm, count_up(w, norm.n), norm.n, 1), shifted(w, m, &norm, NULL, 1)});
}

#define WEIGHTED(called, operator, from) \
	called = {.kind = OM_MATCH_OP, .flags = OM_MATCH_ONCE, .slot = INNER, .type = operator, .since = from, .in = {&input, &weights}}
#define NORM(called, inner) \
	called = {.kind = OM_MATCH_OP, .type = "BatchNormalization", .in = {&inner, &scale, &shift, &mean, &variance}}

static const om_pattern
	scale = {.kind = OM_MATCH_CONST, .slot = SCALE}, shift = {.kind = OM_MATCH_CONST, .slot = SHIFT},
	mean = {.kind = OM_MATCH_CONST, .slot = MEAN}, variance = {.kind = OM_MATCH_CONST, .slot = VARIANCE},
	WEIGHTED(conv, "Conv", 1), WEIGHTED(conv_transpose, "ConvTranspose", 1), WEIGHTED(gemm, "Gemm", 7),
	WEIGHTED(matmul, "MatMul", 7),
	NORM(norm_conv, conv), NORM(norm_conv_transpose, conv_transpose), NORM(norm_gemm, gemm), NORM(norm_matmul, matmul);

/* ---- The rules. ---- */

static const om_rule rules[] = {
	{"identities", &identity, through},
	{"dropouts", &dropout, through},
	{"neutral", &plus, through},
	{"neutral", &minus, through},
	{"neutral", &times, through},
	{"neutral", &divided, through},
	{"transposes", &transpose, through},
	{"transposes", &transpose_transpose, one_transpose},
	{"views", &reshape_reshape, reshape_first},
	{"views", &reshape_flatten, reshape_first},
	{"views", &reshape_squeeze, reshape_first},
	{"views", &reshape_unsqueeze, reshape_first},
	{"views", &flatten_flatten, inner_value},
	{"views", &squeeze_unsqueeze, through},
	{"views", &unsqueeze_squeeze, through},
	{"views", &squeeze_squeeze, one_of_both},
	{"views", &unsqueeze_unsqueeze, one_of_both},
	{"casts", &cast, through},
	{"casts", &cast_cast, one_cast},
	/* The following rules change rounding. */
	{"pads", &conv_pad, padded_conv},
	{"norms", &norm_conv, conv_norm},
	{"norms", &norm_conv_transpose, conv_norm},
	{"norms", &norm_gemm, gemm_norm},
	{"norms", &norm_matmul, matmul_norm},
};

enum { ALL = sizeof rules / sizeof rules[0], NORMS = 4, EXACT = ALL - NORMS - 1 };

static om_status
is_enabled(const om_run *r, const char *name, bool *yes)
{
	const char *text = om_option(r, name);

	*yes = strcmp(text, "fold") == 0;
	if (!*yes && strcmp(text, "keep") != 0)
		return om_fail(r->session, OM_USAGE, "fuse: %s is keep or fold, not %s", name, text);
	return OM_OK;
}

static om_status
run(om_run *r, om_prog *p)
{
	bool norm, pad;
	om_rule list[ALL];
	uint64_t applied[ALL];
	size_t n = 0;

	OM_TRY(is_enabled(r, "norm", &norm));
	OM_TRY(is_enabled(r, "pad", &pad));
	for (size_t k = 0; k < ALL; k++)
		if (k < EXACT || (k == EXACT ? pad : norm))
			list[n++] = rules[k];
	OM_TRY(om_rewrite(r->session, p, list, n, applied));
	for (size_t k = 0; k < n; k++)
		om_count(r, list[k].name, applied[k]);
	return OM_OK;
}

static const om_pass_option options[] = {
	{"norm", "keep", "fold: fold batch normalizations into the preceding weights, which changes rounding"},
	{"pad", "keep", "fold: merge zero padding into convolutions, which may change rounding"},
	{0}
};

static const om_pass_counter counters[] = {
	{"identities", "Identity ops that were removed"},
	{"dropouts", "Dropout ops that were removed"},
	{"neutral", "additions of zero and multiplications by one that were removed"},
	{"transposes", "transposes that were merged or removed"},
	{"views", "ops that only change the shape and were merged or removed"},
	{"casts", "casts that were merged or removed"},
	{"pads", "pads that were merged into a convolution"},
	{"norms", "batch normalizations that were folded into weights"},
	{0}
};

OM_PASS(
	.name = "fuse",
	.brief = "simplify the graph without changing results",
	.needs = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES,
	.options = options,
	.counters = counters,
	.by_sizes = true,
	.run = run)
