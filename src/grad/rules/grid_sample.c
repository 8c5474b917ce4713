/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of GridSample.
 *
 * Every position reads some elements along each axis of the image, with interpolation weights.  The
 * gradient at the position is scattered to all combinations of these elements, with the same weights;
 * the gradient of the position along an axis is the derivative of the weights along that axis, times
 * the elements read.  Positions are (batch, 1, positions), images (batch, channels, elements), so that
 * all are broadcast. */
#include <config.h>

#include "grad/rules/conv_geometry.h"
#include "grad/grad_builder.h"
#include "ir/query.h"
#include "ir/type.h"

enum { AXES = 3, MOST_TAPS = 4 };

enum padding { ZEROS, BORDER, REFLECTION };
enum mode { NEAREST, LINEAR, CUBIC };

struct tap {
	om_value *at;                 /* int64: index of the element in the image */
	om_value *weight, *change;    /* change: derivative by the position; NULL if it is not required */
};

struct places {
	om_grad *g;
	enum padding padding;
	enum mode mode;
	bool has_corners, wants_places;
	int axes, ntap;
	int64_t size[AXES];
	struct tap tap[AXES][MOST_TAPS];
	om_value *slope[AXES];        /* derivative of the position in elements by the grid coordinate */
};

/* Reflect between two bounds; `*sign` gets the sign of the derivative, 1 or -1. */
static om_value *
reflected(om_grad *g, om_value *x, double low, double high, om_value **sign)
{
	const double span = high - low;
	om_value *one = om_emit_number(g, x, 1), *minus = om_emit_number(g, x, -1);

	if (span <= 0) {
		*sign = om_emit_number(g, x, 0);
		return om_emit(g, "Add", om_emit_scalar(g, "Mul", x, 0), om_emit_number(g, x, low));
	}
	om_value *off = om_emit_scalar(g, "Sub", x, low), *far = om_emit(g, "Abs", off);
	om_value *spans = om_emit(g, "Floor", om_emit_scalar(g, "Div", far, span));
	om_value *rest = om_emit(g, "Sub", far, om_emit_scalar(g, "Mul", spans, span));
	om_value *half = om_emit_scalar(g, "Mul", spans, 0.5);
	om_value *is_even = om_emit(g, "Equal", half, om_emit(g, "Floor", half));
	om_value *is_below = om_emit(g, "Less", off, om_emit_number(g, x, 0));

	*sign = om_emit(g, "Mul", om_emit(g, "Where", is_even, one, minus), om_emit(g, "Where", is_below, minus, one));
	return om_emit(g, "Where", is_even, om_emit_scalar(g, "Add", rest, low), om_emit(g, "Sub", om_emit_number(g, x, high), rest));
}

static om_value *
clipped(om_grad *g, om_value *x, double low, double high)
{
	return om_emit(g, "Clip", x, om_emit_number(g, x, low), om_emit_number(g, x, high));
}

static om_value *
is_within(om_grad *g, om_value *x, double low, double high)
{
	return om_emit(g, "And", om_emit(g, "GreaterOrEqual", x, om_emit_number(g, x, low)),
		om_emit(g, "LessOrEqual", x, om_emit_number(g, x, high)));
}

/* The position along an axis of `n` elements, after padding. */
static om_value *
place_of(struct places *p, int axis, om_value *x, int64_t n)
{
	om_grad *g = p->g;
	const double last = (double)(n - 1), low = p->has_corners ? 0 : -0.5, high = p->has_corners ? last : last + 0.5;
	const double slope = p->has_corners ? last / 2 : (double)n / 2;
	om_value *sign = NULL, *moved = NULL;

	p->slope[axis] = om_emit_number(g, x, slope);
	x = om_emit_scalar(g, "Add", om_emit_scalar(g, "Mul", x, slope), last / 2);
	if (p->mode == NEAREST)
		x = om_emit(g, "Round", x);
	if (p->padding == ZEROS)
		return x;
	if (p->padding == BORDER) {
		moved = clipped(g, x, 0, last);
		sign = om_emit_number(g, x, 0);
	} else {
		moved = reflected(g, x, low, high, &sign);
	}
	om_value *inside = is_within(g, x, low, high);
	p->slope[axis] = om_emit(g, "Where", inside, p->slope[axis], om_emit(g, "Mul", sign, p->slope[axis]));
	return om_emit(g, "Where", inside, x, moved);
}

/* The cubic of Keys with a = -0.75, of a distance, and its derivative. */
static om_value *
polynomial(om_grad *g, om_value *x, int n, const double *factor)
{
	om_value *sum = om_emit_scalar(g, "Mul", x, factor[0]);

	for (int k = 1; k < n; k++) {
		sum = om_emit_scalar(g, "Add", sum, factor[k]);
		if (k < n - 1)
			sum = om_emit(g, "Mul", sum, x);
	}
	return sum;
}

static void
weigh_cubic(struct places *p, struct tap *t, om_value *off)
{
	static const double near[] = {1.25, -2.25, 0, 1}, far[] = {-0.75, 3.75, -6, 3};
	static const double near_slope[] = {3.75, -4.5, 0}, far_slope[] = {-2.25, 7.5, -6};
	om_grad *g = p->g;
	om_value *x = om_emit(g, "Abs", off), *is_near = om_emit(g, "LessOrEqual", x, om_emit_number(g, x, 1));

	t->weight = om_emit(g, "Where", is_near, polynomial(g, x, 4, near), polynomial(g, x, 4, far));
	if (p->wants_places)
		t->change = om_emit(g, "Mul", om_emit(g, "Sign", off), om_emit(g, "Where", is_near,
			polynomial(g, x, 3, near_slope), polynomial(g, x, 3, far_slope)));
}

/* Element `k` that the position `x` reads; the first one is at `first`. */
static void
weigh(struct places *p, struct tap *t, int k, om_value *x, om_value *at)
{
	om_grad *g = p->g;

	*t = (struct tap){.at = at};
	if (p->mode == NEAREST) {
		t->weight = om_emit_number(g, x, 1);
	} else if (p->mode == LINEAR) {
		om_value *off = om_emit(g, "Abs", om_emit(g, "Sub", x, at));
		t->weight = om_emit(g, "Sub", om_emit_number(g, x, 1), off);
		t->change = p->wants_places ? om_emit_number(g, x, k == 0 ? -1 : 1) : NULL;
	} else {
		weigh_cubic(p, t, om_emit(g, "Sub", x, at));
	}
}

/* The index of an element: outside of the image it is replaced by another one, or has a zero weight. */
static void
settle(struct places *p, struct tap *t, int64_t n, om_value *like)
{
	om_grad *g = p->g;
	const double last = (double)(n - 1);
	om_value *at = t->at, *sign;

	if (p->padding == ZEROS) {
		om_value *inside = om_emit_cast(g, is_within(g, at, 0, last), om_type_elem(&like->type));
		t->weight = om_emit(g, "Mul", t->weight, inside);
		t->change = t->change ? om_emit(g, "Mul", t->change, inside) : NULL;
	} else if (p->padding == REFLECTION) {
		om_value *back = reflected(g, at, p->has_corners ? 0 : -0.5, p->has_corners ? last : last + 0.5, &sign);
		at = om_emit(g, "Where", is_within(g, at, 0, last), at, back);
	}
	t->at = om_emit_cast(g, clipped(g, at, 0, last), OM_INT64);
}

static void
find_taps(struct places *p, int axis, om_value *x)
{
	om_grad *g = p->g;
	const int64_t n = p->size[axis];

	x = place_of(p, axis, x, n);
	om_value *first = p->mode == NEAREST ? x : om_emit(g, "Floor", x);
	for (int k = 0; k < p->ntap; k++) {
		const int step = p->mode == CUBIC ? k - 1 : k;
		struct tap *t = &p->tap[axis][k];
		weigh(p, t, k, x, step ? om_emit_scalar(g, "Add", first, step) : first);
		settle(p, t, n, x);
	}
}

/* ---- All combinations of elements. ---- */

/* Combination `c` selects one element per axis: the digits of `c` in the base of their number. */
static const struct tap *
tap_of(const struct places *p, int c, int axis)
{
	for (int d = p->axes - 1; d > axis; d--)
		c /= p->ntap;
	return &p->tap[axis][c % p->ntap];
}

static om_value *
element_of(const struct places *p, int c)
{
	om_value *at = tap_of(p, c, 0)->at;

	for (int d = 1; d < p->axes; d++)
		at = om_emit(p->g, "Add", om_emit(p->g, "Mul", at, om_emit_int64(p->g, p->size[d])), tap_of(p, c, d)->at);
	return at;
}

/* The product of the weights; for axis `moved`, of their derivative. */
static om_value *
weight_of(const struct places *p, int c, int moved)
{
	om_value *w = NULL;

	for (int d = 0; d < p->axes; d++) {
		om_value *one = d == moved ? tap_of(p, c, d)->change : tap_of(p, c, d)->weight;
		w = w ? om_emit(p->g, "Mul", w, one) : one;
	}
	return w;
}

static om_value *
sum_up(om_grad *g, om_value *sum, om_value *v)
{
	return sum ? om_emit(g, "Add", sum, v) : v;
}

static void
give_all(struct places *p, om_value *dy)
{
	om_grad *g = p->g;
	const om_op *op = om_grad_op(g);
	const int64_t flat[] = {0, 0, -1}, channels = 1;
	int combinations = 1;
	om_value *dx = NULL, *x = NULL, *moves[AXES] = {NULL}, *shape = om_emit(g, "Shape", dy);

	for (int d = 0; d < p->axes; d++)
		combinations *= p->ntap;
	if (om_grad_is_needed(g, 0))
		dx = om_emit_shaped(g, om_emit_zeros_as(g, op->in[0]), 3, flat);
	if (p->wants_places)
		x = om_emit_shaped(g, om_grad_forward_input(g, 0), 3, flat);
	for (int c = 0; c < combinations; c++) {
		om_value *at = om_emit(g, "Expand", element_of(p, c), shape), *axis_sum;
		if (dx)
			dx = om_emit_attrs(g, "ScatterElements", OM_A(om_attr_make_int(g, "axis", 2), om_attr_make_string(g, "reduction", "add")),
				dx, at, om_emit(g, "Mul", dy, weight_of(p, c, -1)));
		if (!x)
			continue;
		axis_sum = om_emit(g, "Mul", dy, om_emit_attrs(g, "GatherElements", OM_A(om_attr_make_int(g, "axis", 2)), x, at));
		axis_sum = om_emit_reduce(g, "ReduceSum", axis_sum, 1, &channels, true);
		for (int d = 0; d < p->axes; d++)
			moves[d] = sum_up(g, moves[d], om_emit(g, "Mul", axis_sum, weight_of(p, c, d)));
	}
	if (dx)
		om_grad_set_input_grad(g, 0, om_emit_reshape_as(g, dx, op->in[0]));
	if (!x)
		return;
	/* The grid stores the coordinate of the last axis first, after the positions: transposed to
	 * (batch, axes, positions). */
	om_value *in[AXES];
	const int64_t perm[] = {0, 2, 1};
	for (int d = 0; d < p->axes; d++)
		in[p->axes - 1 - d] = om_emit(g, "Mul", moves[d], p->slope[d]);
	om_value *all = om_emit_op(g, "Concat", OM_A(om_attr_make_int(g, "axis", 1)), (size_t)p->axes, in, 1, NULL);
	all = om_emit_cast(g, om_emit_transpose(g, all, 3, perm), om_type_elem(&op->in[1]->type));
	om_grad_set_input_grad(g, 1, om_emit_reshape_as(g, all, op->in[1]));
}

/* ---- The operator. ---- */

static bool
read_places(om_grad *g, struct places *p)
{
	const om_op *op = om_grad_op(g);
	const om_shape *x = &op->in[0]->shape;

	*p = (struct places){.g = g, .axes = x->rank - 2, .has_corners = om_attr_int(op, "align_corners") != 0};
	p->padding = om_attr_is(op, "padding_mode", "border") ? BORDER
		: om_attr_is(op, "padding_mode", "reflection") ? REFLECTION : ZEROS;
	p->mode = om_attr_is(op, "mode", "nearest") ? NEAREST
		: om_attr_is(op, "mode", "cubic") || om_attr_is(op, "mode", "bicubic") ? CUBIC : LINEAR;
	p->ntap = p->mode == NEAREST ? 1 : p->mode == LINEAR ? 2 : 4;
	p->wants_places = p->mode != NEAREST && om_grad_is_needed(g, 1);
	bool is_known = p->axes >= 1 && p->axes <= AXES;
	for (int d = 0; d < p->axes && is_known; d++) {
		p->size[d] = x->dim[d + 2];
		is_known = p->size[d] > 0;
	}
	if (!is_known)
		om_grad_fail(g, OM_UNSUPPORTED, "its gradient requires an image of static size");
	return is_known;
}

static void
GridSample_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	const int64_t flat[] = {0, 0, -1}, perm[] = {0, 2, 1};
	struct places p;

	om_grad_set_input_grad(g, 1, NULL);
	if (!read_places(g, &p) || (!om_grad_is_needed(g, 0) && !p.wants_places))
		return;
	const int64_t points[] = {0, -1, p.axes};
	om_value *dy = om_emit_shaped(g, om_grad_output_grad(g, 0), 3, flat);
	om_value *grid = om_emit_cast(g, om_emit_shaped(g, om_grad_forward_input(g, 1), 3, points), om_type_elem(&op->in[0]->type));
	grid = om_emit_transpose(g, grid, 3, perm);
	for (int d = 0; d < p.axes; d++)
		find_taps(&p, d, om_emit_slice(g, grid, 1, p.axes - 1 - d, p.axes - d));
	give_all(&p, dy);
}

/* ---- The table. ---- */

const om_gradient om_gradients_grid_sample[] = {
	{.name = "GridSample", .since = 16, .rule = GridSample_grad},
	{0}
};
