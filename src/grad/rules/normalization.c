/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of normalizations.
 *
 * All of them compute h = (x - mean) r, where r is the reciprocal of the standard deviation of n
 * elements, and then y = h scale + bias.  With u = dy scale, the gradient of h, and d = x - mean:
 *
 *     dx = r (u - sum(u) / n - d r^2 sum(u d) / n)
 *     dscale = the sum of dy h, dbias = the sum of dy, over the axes along which they were repeated
 *
 * If all elements of a mean share a scale, as for channels, it is factored out of the sums, and two
 * sums serve all gradients.  x is kept, and the moments if the operator has them as outputs; otherwise
 * they are recomputed, which costs less than keeping h. */
#include <config.h>

#include "grad/fused.h"
#include "grad/grad_builder.h"
#include "grad/train/training_step.h"
#include "grad/rules/conv_geometry.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "ir/type.h"
#include "opdef/op_context.h"

/* Sets of elements, each with a mean of its own. */
struct sets {
	size_t n;
	int64_t axis[OM_MAX_RANK];
	om_value *count;              /* number of elements of a set, as a floating-point value */
};

static om_value *
sum(om_grad *g, om_value *x, const struct sets *s)
{
	return om_emit_reduce(g, "ReduceSum", x, s->n, s->axis, true);
}

static om_value *
mean(om_grad *g, om_value *x, const struct sets *s)
{
	return om_emit_reduce(g, "ReduceMean", x, s->n, s->axis, true);
}

static om_value *
mean_square(om_grad *g, om_value *x, const struct sets *s)
{
	return om_emit(g, "Div", om_emit_reduce(g, "ReduceSumSquare", x, s->n, s->axis, true), s->count);
}

/* 1 / sqrt(variance + epsilon) */
static om_value *
one_over(om_grad *g, om_value *variance, double epsilon)
{
	return om_emit(g, "Reciprocal", om_emit(g, "Sqrt", om_emit_scalar(g, "Add", variance, epsilon)));
}

/* Cast `x` to the type of `like`. */
static om_value *
as_type(om_grad *g, om_value *x, const om_value *like)
{
	return om_emit_cast(g, x, om_type_elem(&like->type));
}

static bool
has_rank(om_grad *g, const om_value *x, int least)
{
	if (x->shape.rank >= least)
		return true;
	om_grad_fail(g, OM_UNSUPPORTED, "the rank of its input is not known");
	return false;
}

/* ---- Sets with a scale each: batches, channels, groups. ---- */

/* dx if a set has a single scale: a u - b d - c. */
static om_value *
centered(om_grad *g, const struct sets *s, om_value *dy, om_value *d, om_value *r, om_value *scale,
	om_value *sum_dy, om_value *sum_dyd)
{
	om_value *a = om_emit(g, "Mul", scale, r), *per = om_emit(g, "Div", a, s->count);
	om_value *b = om_emit(g, "Mul", om_emit(g, "Mul", per, om_emit(g, "Mul", r, r)), sum_dyd);
	om_value *off = om_emit(g, "Add", om_emit(g, "Mul", d, b), om_emit(g, "Mul", per, sum_dy));

	return om_emit(g, "Sub", om_emit(g, "Mul", dy, a), off);
}

/* ---- BatchNormalization. ---- */

/* Set a gradient per channel in the shape of the op's input, from a value per channel in any shape. */
static void
give_list(om_grad *g, uint32_t k, om_value *v)
{
	const int64_t flat = -1;

	if (om_grad_is_needed(g, k))
		om_grad_set_input_grad(g, k, as_type(g, om_emit_shaped(g, v, 1, &flat), om_grad_op(g)->in[k]));
}

static om_value *
list_of(om_grad *g, uint32_t k)
{
	const om_value *x = om_grad_op(g)->in[0];

	return as_type(g, om_emit_per_channel(g, om_grad_forward_input(g, k), x->shape.rank), x);
}

/* With given moments: an affine map per channel. */
static void
batch_given(om_grad *g, const struct sets *s)
{
	om_value *dy = om_grad_output_grad(g, 0), *sum_dy = NULL, *sum_dyd = NULL, *r, *scale = NULL;
	const double epsilon = om_attr_float(om_grad_op(g), "epsilon");

	r = one_over(g, list_of(g, 4), epsilon);
	if (om_grad_is_needed(g, 2) || om_grad_is_needed(g, 3))
		sum_dy = sum(g, dy, s);
	if (om_grad_is_needed(g, 1) || om_grad_is_needed(g, 4))
		sum_dyd = sum(g, om_emit(g, "Mul", dy, om_emit(g, "Sub", om_grad_forward_input(g, 0), list_of(g, 3))), s);
	if (om_grad_is_needed(g, 0) || om_grad_is_needed(g, 3) || om_grad_is_needed(g, 4))
		scale = om_emit(g, "Mul", list_of(g, 1), r);
	if (om_grad_is_needed(g, 1))
		give_list(g, 1, om_emit(g, "Mul", sum_dyd, r));
	if (om_grad_is_needed(g, 2))
		give_list(g, 2, sum_dy);
	if (om_grad_is_needed(g, 3))
		give_list(g, 3, om_emit(g, "Neg", om_emit(g, "Mul", sum_dy, scale)));
	if (om_grad_is_needed(g, 4)) {
		om_value *r2 = om_emit(g, "Mul", om_emit(g, "Mul", r, r), scale);
		give_list(g, 4, om_emit_scalar(g, "Mul", om_emit(g, "Mul", sum_dyd, r2), -0.5));
	}
	if (om_grad_is_needed(g, 0))
		om_grad_set_input_grad(g, 0, om_emit(g, "Mul", dy, scale));
}

/* The gradient through the running mean and variance: it flows with the factor momentum to the old
 * ones, and with the remaining factor to the moments of the batch, whose derivatives are 1 / n and 2 d
 * / n. */
static om_value *
batch_running(om_grad *g, const struct sets *s, om_value *d, om_value *dx)
{
	const double momentum = om_attr_float(om_grad_op(g), "momentum");
	const int rank = om_grad_op(g)->in[0]->shape.rank;

	for (uint32_t k = 1; k <= 2; k++) {
		om_value *dr = om_grad_output_grad(g, k);
		om_grad_set_input_grad(g, k + 2, dr ? om_emit_scalar(g, "Mul", dr, momentum) : NULL);
		if (!dr || !om_grad_is_needed(g, 0))
			continue;
		dr = as_type(g, om_emit_per_channel(g, dr, rank), om_grad_op(g)->in[0]);
		dr = om_emit_scalar(g, "Mul", om_emit(g, "Div", dr, s->count), (k == 1 ? 1 : 2) * (1 - momentum));
		om_value *more = k == 1 ? dr : om_emit(g, "Mul", dr, d);
		dx = dx ? om_emit(g, "Add", dx, more) : om_emit_expand_as(g, more, om_grad_op(g)->in[0]);
	}
	return dx;
}

static void
batch_training(om_grad *g, const struct sets *s)
{
	om_value *dy = om_grad_output_grad(g, 0), *dx = NULL, *d = NULL, *sum_dy = NULL;
	const bool wants_moments = om_grad_is_needed(g, 0) || (dy && om_grad_is_needed(g, 1));

	if (wants_moments) {
		om_value *x = om_grad_forward_input(g, 0);
		d = om_emit(g, "Sub", x, mean(g, x, s));
	}
	if (dy)
		sum_dy = sum(g, dy, s);
	if (om_grad_is_needed(g, 2))
		give_list(g, 2, sum_dy ? sum_dy : om_emit_zeros_as(g, om_grad_op(g)->in[2]));
	if (dy && wants_moments) {
		om_value *r = one_over(g, mean_square(g, d, s), om_attr_float(om_grad_op(g), "epsilon"));
		om_value *sum_dyd = sum(g, om_emit(g, "Mul", dy, d), s);
		give_list(g, 1, om_emit(g, "Mul", sum_dyd, r));
		if (om_grad_is_needed(g, 0))
			dx = centered(g, s, dy, d, r, list_of(g, 1), sum_dy, sum_dyd);
	}
	if (!dy)
		om_grad_set_input_grad(g, 1, NULL);
	om_grad_set_input_grad(g, 0, batch_running(g, s, d, dx));
}

static void
BatchNormalization_grad(om_grad *g)
{
	om_value *x = om_grad_op(g)->in[0];
	struct sets s = {.n = 1, .axis = {0}};

	if (!has_rank(g, x, 1))
		return;
	if (x->shape.rank == 1) {
		om_grad_fail(g, OM_UNSUPPORTED, "its input has no channel axis");
		return;
	}
	s.n += om_axes_between(2, x->shape.rank, s.axis + 1);
	s.count = om_emit_count(g, x, x, (int)s.n, s.axis);
	if (om_attr_int(om_grad_op(g), "training_mode") != 0)
		batch_training(g, &s);
	else if (om_grad_output_grad(g, 0))
		batch_given(g, &s);
	else
		om_grad_set_zero(g);
}

/* ---- InstanceNormalization, GroupNormalization. ---- */

/* As (batch, groups, channels per group, elements per channel). */
struct groups {
	int64_t groups, each;
	bool is_per_group;            /* one scale per group */
};

static om_value *
split(om_grad *g, om_value *x, const struct groups *k)
{
	const int64_t dim[] = {0, k->groups, k->each, -1};

	return om_emit_shaped(g, x, 4, dim);
}

/* The gradient of a scale or a bias, from values of shape (batch, groups, channels, 1). */
static void
give_of_groups(om_grad *g, uint32_t k, const struct groups *o, om_value *v)
{
	const int64_t batch = 0, axes[] = {0, 2};

	if (om_grad_is_needed(g, k))
		give_list(g, k, om_emit_reduce(g, "ReduceSum", v, o->is_per_group ? 2 : 1,
			o->is_per_group ? axes : &batch, false));
}

static om_value *
group_count(om_grad *g, const struct groups *o)
{
	om_value *x = om_grad_op(g)->in[0];
	int64_t axis[OM_MAX_RANK];
	const int n = (int)om_axes_between(2, x->shape.rank, axis);
	om_value *count = om_emit_count(g, x, x, n, axis);

	return o->each == 1 ? count : om_emit_scalar(g, "Mul", count, (double)o->each);
}

/* The sums over a channel are used for the scale and, weighted by it, for dx. */
static void
by_groups(om_grad *g, const struct groups *o)
{
	om_value *dy = split(g, om_grad_output_grad(g, 0), o), *x = split(g, om_grad_forward_input(g, 0), o), *scale;
	const struct sets channel = {.n = 1, .axis = {3}};
	const int64_t shape[] = {o->groups, o->is_per_group ? 1 : o->each, 1}, each = 2;
	struct sets s = {.n = 2, .axis = {2, 3}};

	s.count = group_count(g, o);
	scale = as_type(g, om_emit_shaped(g, om_grad_forward_input(g, 1), 3, shape), x);
	om_value *d = om_emit(g, "Sub", x, mean(g, x, &s));
	om_value *r = one_over(g, mean_square(g, d, &s), om_attr_float(om_grad_op(g), "epsilon"));
	om_value *sum_dy = sum(g, dy, &channel), *sum_dyd = sum(g, om_emit(g, "Mul", dy, d), &channel);

	give_of_groups(g, 2, o, sum_dy);
	if (om_grad_is_needed(g, 1))
		give_of_groups(g, 1, o, om_emit(g, "Mul", sum_dyd, r));
	if (!om_grad_is_needed(g, 0))
		return;
	sum_dy = om_emit_reduce(g, "ReduceSum", om_emit(g, "Mul", sum_dy, scale), 1, &each, true);
	sum_dyd = om_emit_reduce(g, "ReduceSum", om_emit(g, "Mul", sum_dyd, scale), 1, &each, true);
	om_value *a = om_emit(g, "Mul", scale, r), *per = om_emit(g, "Div", r, s.count);
	om_value *b = om_emit(g, "Mul", om_emit(g, "Mul", per, om_emit(g, "Mul", r, r)), sum_dyd);
	om_value *off = om_emit(g, "Add", om_emit(g, "Mul", d, b), om_emit(g, "Mul", per, sum_dy));
	om_value *dx = om_emit(g, "Sub", om_emit(g, "Mul", dy, a), off);
	om_grad_set_input_grad(g, 0, om_emit_reshape_as(g, dx, om_grad_op(g)->in[0]));
}

static int64_t
channels_of(om_grad *g)
{
	const int64_t n = om_grad_dim(om_grad_op(g)->in[0], 1);

	if (n < 0)
		om_grad_fail(g, OM_UNSUPPORTED, "its gradient requires a static number of channels");
	return n;
}

static void
InstanceNormalization_grad(om_grad *g)
{
	const struct groups o = {.groups = channels_of(g), .each = 1};

	if (!om_grad_failed(g))
		by_groups(g, &o);
}

static void
GroupNormalization_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	const int64_t n = om_attr_int(op, "num_groups");
	const struct groups o = {.groups = n, .each = channels_of(g) / (n ? n : 1), .is_per_group = op->version < 21};

	if (!om_grad_failed(g))
		by_groups(g, &o);
}

/* ---- LayerNormalization, RMSNormalization. ---- */

/* The type of the computation: that of the op's moment outputs, or the op's own if that is wider. */
static om_dtype
wide_type(const om_value *x)
{
	return om_type_elem(&x->type) == OM_FLOAT64 ? OM_FLOAT64 : OM_FLOAT32;
}

static void
give_wide_as(om_grad *g, uint32_t k, om_value *v)
{
	if (om_grad_is_needed(g, k))
		om_grad_set_input_grad(g, k, as_type(g, om_emit_sum_to(g, v, om_grad_op(g)->in[k]), om_grad_op(g)->in[k]));
}

/* A normalization along rows, and where the op stores its other operands. */
struct rows {
	uint32_t x, scale, bias;      /* inputs; x: or an input of the same shape */
	bool is_centred, has_moments; /* outputs 1 and 2 are mean and r */
	om_value *of_mean, *of_r;     /* gradients of mean and r; NULL: none */
	om_value *sum;                /* the normalized value; NULL: input x */
	bool wants_x;
	int axis;
};

/* dx, from the gradient of h = d r and optionally of r and the mean. */
static om_value *
of_rows(om_grad *g, const struct rows *o, const struct sets *s, om_value *u, om_value *h, om_value *r)
{
	om_value *along = NULL, *even = NULL, *more;
	const om_dtype wide = om_type_elem(&r->type);

	if (u) {
		along = mean(g, om_emit(g, "Mul", u, h), s);
		even = o->is_centred ? mean(g, u, s) : NULL;
	}
	if (o->of_r) {
		more = om_emit(g, "Div", om_emit(g, "Mul", om_emit_cast(g, o->of_r, wide), r), s->count);
		along = along ? om_emit(g, "Add", along, more) : more;
	}
	om_value *dx = along ? om_emit(g, "Mul", h, along) : NULL;
	if (u)
		dx = om_emit(g, "Sub", even ? om_emit(g, "Sub", u, even) : u, dx);
	else if (dx)
		dx = om_emit(g, "Neg", dx);
	dx = dx ? om_emit(g, "Mul", dx, r) : NULL;
	if (o->of_mean) {
		more = om_emit(g, "Div", om_emit_cast(g, o->of_mean, wide), s->count);
		dx = dx ? om_emit(g, "Add", dx, more) : om_emit_expand_as(g, more, om_grad_op(g)->in[o->x]);
	}
	return dx;
}

/* h, and r. */
static om_value *
normal_rows(om_grad *g, const struct rows *o, struct sets *s, om_value **r)
{
	const om_dtype wide = wide_type(om_grad_op(g)->in[o->x]);
	om_value *h = om_emit_cast(g, o->sum ? o->sum : om_grad_forward_input(g, o->x), wide);
	const bool has_moments = o->has_moments && wide == OM_FLOAT32;

	s->count = om_emit_count(g, h, om_grad_op(g)->in[o->x], (int)s->n, s->axis);
	if (o->is_centred)
		h = om_emit(g, "Sub", h, has_moments ? om_grad_forward_output(g, 1) : mean(g, h, s));
	*r = has_moments ? om_grad_forward_output(g, 2)
		: one_over(g, mean_square(g, h, s), om_attr_float(om_grad_op(g), "epsilon"));
	return om_emit(g, "Mul", h, *r);
}

/* Set the gradients of scale and bias; returns the gradient of the normalized value. */
static om_value *
rows(om_grad *g, const struct rows *o)
{
	om_value *x = om_grad_op(g)->in[o->x], *dy = om_grad_output_grad(g, 0), *h = NULL, *u, *r = NULL;
	const om_dtype wide = wide_type(x);
	struct sets s = {0};

	om_grad_set_input_grad(g, o->scale, NULL);
	om_grad_set_input_grad(g, o->bias, NULL);
	s.n = om_axes_between(o->axis, x->shape.rank, s.axis);
	if (dy)
		dy = om_emit_cast(g, dy, wide);
	if (o->wants_x || (dy && om_grad_is_needed(g, o->scale))) {
		h = normal_rows(g, o, &s, &r);
	}
	if (dy && om_grad_is_needed(g, o->scale))
		give_wide_as(g, o->scale, om_emit(g, "Mul", dy, h));
	if (dy)
		give_wide_as(g, o->bias, dy);
	if (!o->wants_x)
		return NULL;
	u = dy && om_grad_has(g, o->scale) ? om_emit(g, "Mul", dy, om_emit_cast(g, om_grad_forward_input(g, o->scale), wide)) : dy;
	om_value *dx = of_rows(g, o, &s, u, h, r);
	return dx ? as_type(g, dx, x) : NULL;
}

static bool
has_axis(om_grad *g, struct rows *o)
{
	const om_value *x = om_grad_op(g)->in[0];

	return has_rank(g, x, 1) && om_axis(om_attr_int(om_grad_op(g), "axis"), x->shape.rank, &o->axis);
}

static void
LayerNormalization_grad(om_grad *g)
{
	struct rows o = {.scale = 1, .bias = 2, .is_centred = true, .has_moments = true,
		.of_mean = om_grad_output_grad(g, 1), .of_r = om_grad_output_grad(g, 2), .wants_x = om_grad_is_needed(g, 0)};

	if (has_axis(g, &o))
		om_grad_set_input_grad(g, 0, rows(g, &o));
}

static void
RMSNormalization_grad(om_grad *g)
{
	struct rows o = {.scale = 1, .bias = 2, .wants_x = om_grad_is_needed(g, 0)};

	if (has_axis(g, &o))
		om_grad_set_input_grad(g, 0, rows(g, &o));
}

static void
SimplifiedLayerNormalization_grad(om_grad *g)
{
	struct rows o = {.scale = 1, .bias = 2, .of_r = om_grad_output_grad(g, 1), .wants_x = om_grad_is_needed(g, 0)};

	if (has_axis(g, &o))
		om_grad_set_input_grad(g, 0, rows(g, &o));
}

/* The normalization of a sum, which is an output too. */
static void
skipped(om_grad *g, bool is_centred)
{
	const uint32_t more = is_centred ? 4 : 3;
	om_value *x = om_grad_op(g)->in[0], *dx, *direct = om_grad_output_grad(g, 3);
	struct rows o = {.scale = 2, .bias = is_centred ? 3 : OM_VARIADIC, .is_centred = is_centred,
		.has_moments = is_centred, .of_mean = is_centred ? om_grad_output_grad(g, 1) : NULL, .of_r = om_grad_output_grad(g, 2),
		.wants_x = om_grad_is_needed(g, 0) || om_grad_is_needed(g, 1) || om_grad_is_needed(g, more)};

	if (!has_rank(g, x, 1))
		return;
	o.axis = x->shape.rank - 1;
	if (o.wants_x || om_grad_is_needed(g, 2))
		o.sum = om_grad_forward_output(g, 3);
	dx = rows(g, &o);
	if (direct)
		dx = dx ? om_emit(g, "Add", dx, direct) : direct;
	om_grad_set_broadcast_grad(g, 0, dx);
	om_grad_set_broadcast_grad(g, 1, dx);
	om_grad_set_broadcast_grad(g, more, dx);
}

static void
SkipLayerNormalization_grad(om_grad *g)
{
	skipped(g, true);
}

static void
SkipSimplifiedLayerNormalization_grad(om_grad *g)
{
	skipped(g, false);
}

/* ---- Normalizations without a scale. ---- */

/* The divisor is n = spread + epsilon, where spread is the standard deviation:
 * dx = (u - mean(u)) / n - d mean(u d) / (n^2 spread). */
static void
MeanVarianceNormalization_grad(om_grad *g)
{
	static const int64_t usual[] = {0, 2, 3};
	const om_op *op = om_grad_op(g);
	om_value *x = op->in[0], *dy = om_grad_output_grad(g, 0);
	bool is_over[OM_MAX_RANK] = {false};
	struct sets s = {.n = 0};
	size_t n;
	const int64_t *axes = om_attr_ints(op, "axes", &n);

	if (!has_rank(g, x, 1))
		return;
	if (!om_attr_has(op, "axes")) {
		axes = usual;
		n = 3;
	}
	for (size_t k = 0; k < n; k++) {
		int a;
		if (om_axis(axes[k], x->shape.rank, &a))
			is_over[a] = true;
	}
	for (int d = 0; d < x->shape.rank; d++)
		if (is_over[d])
			s.axis[s.n++] = d;
	if (s.n == 0) {
		om_grad_set_zero(g);
		return;
	}
	x = om_grad_forward_input(g, 0);
	s.count = om_emit_count(g, x, op->in[0], (int)s.n, s.axis);
	om_value *d = om_emit(g, "Sub", x, mean(g, x, &s));
	om_value *spread = om_emit(g, "Sqrt", mean_square(g, d, &s)), *norm = om_emit_scalar(g, "Add", spread, 1e-9);
	om_value *per = om_emit(g, "Mul", om_emit(g, "Mul", norm, norm), spread);
	om_value *off = om_emit(g, "Div", mean(g, om_emit(g, "Mul", dy, d), &s), per);
	om_value *even = om_emit(g, "Div", om_emit(g, "Sub", dy, mean(g, dy, &s)), norm);
	om_grad_set_input_grad(g, 0, om_emit(g, "Sub", even, om_emit(g, "Mul", d, off)));
}

/* Along an axis: dx = (dy - e sum(dy y)) / norm, where e is the gradient of the norm: y, or the sign of
 * x.  The gradient of a zero vector is zero. */
static void
LpNormalization_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	const bool is_square = om_attr_int(op, "p") == 2;
	om_value *dy = om_grad_output_grad(g, 0);
	struct sets s = {.n = 1};
	int axis;

	if (!has_rank(g, op->in[0], 1) || !om_axis(om_attr_int(op, "axis"), op->in[0]->shape.rank, &axis))
		return;
	s.axis[0] = axis;
	om_value *x = om_grad_forward_input(g, 0), *y = om_grad_forward_output(g, 0), *zero = om_emit_number(g, x, 0);
	om_value *norm = om_emit_reduce(g, is_square ? "ReduceL2" : "ReduceL1", x, 1, s.axis, true);
	om_value *along = sum(g, om_emit(g, "Mul", dy, y), &s);
	om_value *dx = om_emit(g, "Sub", dy, om_emit(g, "Mul", is_square ? y : om_emit(g, "Sign", x), along));
	dx = om_emit(g, "Div", dx, norm);
	om_grad_set_input_grad(g, 0, om_emit(g, "Where", om_emit(g, "Equal", norm, zero), zero, dx));
}

/* ---- LRN. ---- */

/* The sums over windows of `size` channels, `below` of which precede the channel: an average pool of
 * the channels as an axis of an image. */
static om_value *
around(om_grad *g, om_value *x, int64_t size, int64_t below)
{
	const int64_t kernel[] = {size, 1}, pads[] = {below, 0, size - 1 - below, 0};

	om_value *mean = om_emit_attrs(g, "AveragePool", OM_A(om_attr_make_int(g, "count_include_pad", 1),
		om_attr_make_ints(g, "kernel_shape", 2, kernel), om_attr_make_ints(g, "pads", 4, pads)), x);
	return om_emit_scalar(g, "Mul", mean, (double)size);
}

/* y = x s^-beta, s = bias + alpha / size times the sum of squares in the window: dx = dy s^-beta - 2
 * alpha beta / size x times the sum of dy x s^(-beta-1) over the channels whose windows contain x. */
static void
LRN_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	const int64_t size = om_attr_int(op, "size"), flat[] = {0, 1, channels_of(g), -1};
	const double beta = om_attr_float(op, "beta"), alpha = om_attr_float(op, "alpha") / (double)size;

	if (om_grad_failed(g))
		return;
	om_value *x = om_emit_shaped(g, om_grad_forward_input(g, 0), 4, flat), *dy = om_emit_shaped(g, om_grad_output_grad(g, 0), 4, flat);
	om_value *s = om_emit_scalar(g, "Mul", around(g, om_emit(g, "Mul", x, x), size, (size - 1) / 2), alpha);
	s = om_emit_scalar(g, "Add", s, om_attr_float(op, "bias"));
	om_value *u = om_emit(g, "Mul", dy, om_emit_scalar(g, "Pow", s, -beta));
	om_value *back = around(g, om_emit(g, "Div", om_emit(g, "Mul", u, x), s), size, size - 1 - (size - 1) / 2);
	back = om_emit_scalar(g, "Mul", om_emit(g, "Mul", back, x), 2 * alpha * beta);
	om_grad_set_input_grad(g, 0, om_emit_reshape_as(g, om_emit(g, "Sub", u, back), op->in[0]));
}

/* ---- Training mode. ---- */

/* A layer that is used several times updates its statistics each time: the last value is the
 * loop-carried one, and has the name of it. */
static void
goes_on(struct state *s, om_op *op, uint32_t in, om_value *next)
{
	const char *name = next->name;

	om_op_set_in(op, in, s->next);
	om_value_rename(next, s->next->name);
	om_value_rename(s->next, name);
	s->next = next;
}

/* The running statistics of a batch normalization become states: they are not weights, and are updated
 * with the moments of each batch. */
static void
train_batch_normalization(om_grad *g, om_op *op)
{
	struct om_tape *t = om_grad_scope(g)->tape;
	om_prog *p = t->p;
	om_value *out[3] = {op->out[0]};

	if (om_attr_int(op, "training_mode") || op->nout > 1)
		return;
	if (op->block != p->first) {
		om_tape_fail(t, om_op_fail(t->session, OM_UNSUPPORTED, op,
			"is in a body, so its running mean and variance cannot be carried to the next step: "
			"training mode is not possible"));
		return;
	}
	om_op_drop_attr(op, "training_mode");
	om_op_add_int(p, op, "training_mode", 1);
	for (uint32_t k = 1; k < 3; k++) {
		om_value *old = op->in[k + 2];
		struct state *s = om_step_state_of(t->step, old);
		out[k] = om_tape_value(t, op->block, om_printf(t->mem, "%s_next", old->name));
		if (s)
			goes_on(s, op, k + 2, out[k]);
		else
			om_step_state(t->step, old, out[k]);
	}
	op->out = om_memdup(p->mem, out, sizeof out);
	op->nout = 3;
	op->out[1]->def = op->out[2]->def = op;
	om_tape_fail(t, om_op_infer(t->session, p, op));
}

/* ---- The table. ---- */

static const struct om_fused batch_fused = {"BatchNormalizationGrad", {{"dY", OM_GRADIENT_OF, 0, true},
	{"X", OM_INPUT, 0, true}, {"scale", OM_INPUT, 1, true}, {"B", OM_INPUT, 2, false}}};

const om_gradient om_gradients_normalization[] = {
	{.name = "BatchNormalization", .since = 1, .until = 13, .rule = BatchNormalization_grad,
	 .statistics = 1u << 3 | 1u << 4},
	{.name = "BatchNormalization", .since = 14, .rule = BatchNormalization_grad,
	 .fused = &batch_fused, .to_training_mode = train_batch_normalization, .statistics = 1u << 3 | 1u << 4},
	{.name = "LayerNormalization", .since = 17, .rule = LayerNormalization_grad},
	{.name = "RMSNormalization", .since = 23, .rule = RMSNormalization_grad},
	{.name = "InstanceNormalization", .since = 1, .rule = InstanceNormalization_grad},
	{.name = "GroupNormalization", .since = 18, .rule = GroupNormalization_grad},
	{.name = "LRN", .since = 1, .rule = LRN_grad},
	{.name = "LpNormalization", .since = 1, .rule = LpNormalization_grad},
	{.name = "MeanVarianceNormalization", .since = 1, .rule = MeanVarianceNormalization_grad},
	{.name = "SimplifiedLayerNormalization", .since = 1, .rule = SimplifiedLayerNormalization_grad},
	{.domain = "com.microsoft", .name = "SkipLayerNormalization", .since = 1, .rule = SkipLayerNormalization_grad},
	{.domain = "com.microsoft", .name = "SkipSimplifiedLayerNormalization", .since = 1, .rule = SkipSimplifiedLayerNormalization_grad},
	{0}
};
