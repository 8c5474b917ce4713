/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of pooling.
 *
 * The gradient of a maximum is scattered to the position of the maximum: the indices are kept, not the
 * image.  The gradient of a window sum is passed to every element of the window, which is a transposed
 * convolution with ones. */
#include <config.h>

#include "grad/fused.h"
#include "grad/grad_builder.h"
#include "grad/rules/conv_geometry.h"
#include "ir/query.h"

enum { AXES = OM_WINDOW_AXES };

/* ---- MaxPool. ---- */

static bool
overlaps(const struct om_window *w)
{
	for (int k = AXES - w->n; k < AXES; k++)
		if (w->kernel[k] > 1 && w->stride[k] < (w->kernel[k] - 1) * w->dilation[k] + 1)
			return true;
	return false;
}

/* Scatter, or scatter-add, `dy` to positions of a tensor of zeros; all tensors are flattened. */
static om_value *
put_back(om_grad *g, om_value *zeros, om_value *index, om_value *dy, bool adds)
{
	const int64_t flat = -1;
	om_value *in[] = {om_emit_shaped(g, zeros, 1, &flat), om_emit_shaped(g, index, 1, &flat),
		om_emit_shaped(g, dy, 1, &flat)};

	return om_emit_op(g, "ScatterElements", adds ? OM_A(om_attr_make_int(g, "axis", 0), om_attr_make_string(g, "reduction", "add"))
		: OM_A(om_attr_make_int(g, "axis", 0)), 3, in, 1, NULL);
}

/* Indices in column-major order: transpose the image, and transpose the result back. */
static om_value *
turned_back(om_grad *g, om_value *flat, const struct om_window *w)
{
	int64_t dim[OM_MAX_RANK] = {-1, om_grad_dim(om_grad_op(g)->in[0], 1)}, perm[OM_MAX_RANK] = {0, 1};

	for (int k = 0; k < w->n; k++) {
		dim[2 + k] = w->in[AXES - 1 - k];
		perm[2 + k] = w->n + 1 - k;
	}
	if (dim[1] < 0)
		om_grad_fail(g, OM_UNSUPPORTED, "its gradient requires a static number of channels");
	return om_emit_transpose(g, om_emit_shaped(g, flat, (size_t)w->n + 2, dim), (size_t)w->n + 2, perm);
}

/* Does the window of output `i` overlap the image?  A window that reads padding only selects no
 * element: its index is -1. */
static bool
sees(const struct om_window *w, int64_t i)
{
	const int64_t place[] = {i / w->out[2] / w->out[1], i / w->out[2] % w->out[1], i % w->out[2]};

	for (int k = 0; k < AXES; k++)
		if (om_window_taps(w, k, place[k], false) == 0)
			return false;
	return true;
}

/* A boolean mask of the windows of an image that overlap it; NULL: all do. */
static om_value *
seeing(om_grad *g, const struct om_window *w)
{
	const int64_t n = om_window_volume(w->out);
	uint8_t *is = OM_NEWN(om_grad_mem(g), uint8_t, (size_t)n + 1);
	bool all = true;

	for (int64_t i = 0; i < n; i++) {
		is[i] = sees(w, i);
		all &= is[i];
	}
	return all ? NULL : om_emit_tensor(g, &(om_tensor){.type = OM_BOOL,
		.shape = om_shape_of(w->n, w->out + AXES - w->n), .data = is});
}

static void
MaxPool_grad(om_grad *g)
{
	om_value *x = om_grad_op(g)->in[0];
	struct om_window w;

	if (!om_grad_output_grad(g, 0)) {
		om_grad_set_zero(g);
		return;
	}
	if (!om_grad_window(g, NULL, false, &w))
		return;
	om_value *index = om_grad_forward_output(g, 1), *dy = om_grad_output_grad(g, 0), *some = seeing(g, &w);
	if (some) {
		dy = om_emit(g, "Where", some, dy, om_emit_number(g, dy, 0));
		index = om_emit(g, "Where", some, index, om_emit_int64(g, 0));
	}
	om_value *dx = put_back(g, om_emit_zeros_as(g, x), index, dy, some || overlaps(&w));
	if (om_attr_int(om_grad_op(g), "storage_order") != 0 && w.n > 1)
		om_grad_set_input_grad(g, 0, turned_back(g, dx, &w));
	else
		om_grad_set_input_grad(g, 0, om_emit_reshape_as(g, dx, x));
}

/* The indices refer to the shape that the kernel implies; if another output shape was requested, that
 * one is a corner of it. */
static void
MaxUnpool_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	const int64_t flat = -1, zero = 0;
	const int rank = op->in[0]->shape.rank;
	om_value *dy = om_grad_output_grad(g, 0);
	size_t n;

	om_grad_set_input_grad(g, 1, NULL);
	om_grad_set_input_grad(g, 2, NULL);
	if (!om_grad_is_needed(g, 0))
		return;
	const int64_t *kernel = om_attr_ints(op, "kernel_shape", &n);
	for (int k = 0; k < rank - 2 && om_grad_has(g, 2); k++) {
		size_t ns, np;
		const int64_t *stride = om_attr_ints(op, "strides", &ns), *pads = om_attr_ints(op, "pads", &np);
		const int64_t in = op->in[0]->shape.dim[k + 2];
		const int64_t size = (in - 1) * (ns ? stride[k] : 1) + kernel[k]
			- (np ? pads[k] + pads[k + rank - 2] : 0);
		if (in < 0)
			om_grad_fail(g, OM_UNSUPPORTED, "its gradient requires an image of static size");
		if (op->out[0]->shape.dim[k + 2] != size)
			dy = om_emit_slice(g, dy, k + 2, 0, size);
	}
	om_value *at = om_emit_shaped(g, om_grad_forward_input(g, 1), 1, &flat);
	om_value *dx = om_emit_attrs(g, "GatherElements", OM_A(om_attr_make_int(g, "axis", zero)), om_emit_shaped(g, dy, 1, &flat), at);
	om_grad_set_input_grad(g, 0, om_emit_reshape_as(g, dx, op->in[0]));
}

/* ---- AveragePool. ---- */

/* The number of elements that each output averages: a scalar if it is the same for all. */
static om_value *
counts(om_grad *g, const struct om_window *w, bool with_padding)
{
	const int64_t n = om_window_volume(w->out);
	double *count = OM_NEWN(om_grad_mem(g), double, (size_t)n + 1);
	bool is_even = true;

	for (int64_t i = 0; i < n; i++) {
		const int64_t x = i % w->out[2], y = i / w->out[2] % w->out[1], z = i / w->out[2] / w->out[1];
		const int64_t all = om_window_taps(w, 0, z, with_padding) * om_window_taps(w, 1, y, with_padding)
			* om_window_taps(w, 2, x, with_padding);
		count[i] = all ? (double)all : 1;
		is_even &= count[i] == count[0];
	}
	om_value *dy = om_grad_output_grad(g, 0);
	return is_even ? om_emit_number(g, dy, count[0]) : om_emit_numbers(g, dy, w->n, w->out + AXES - w->n, count);
}

/* Non-overlapping windows that cover the image exactly: the gradient of each is repeated. */
static bool
is_tiled(const struct om_window *w)
{
	for (int k = AXES - w->n; k < AXES; k++)
		if (w->begin[k] || w->end[k] || w->stride[k] != w->kernel[k] || w->out[k] * w->kernel[k] != w->in[k]
		    || w->dilation[k] != 1)
			return false;
	return true;
}

static om_value *
tiled(om_grad *g, const struct om_window *w, om_value *dy)
{
	int64_t axis[AXES], size[2 * AXES];
	om_value *x = om_grad_op(g)->in[0];

	for (int k = 0; k < w->n; k++) {
		axis[k] = 3 + 2 * k;
		size[2 * k] = 1;
		size[2 * k + 1] = w->kernel[AXES - w->n + k];
	}
	dy = om_emit_unsqueeze(g, dy, (size_t)w->n, axis);
	dy = om_emit(g, "Expand", dy, om_emit_list(g, 2 * (size_t)w->n, size));
	return om_emit_reshape_as(g, dy, x);
}

static om_value *
scattered(om_grad *g, const struct om_window *w, om_value *dy)
{
	return is_tiled(w) ? tiled(g, w, dy) : om_emit_scatter_ones(g, w, dy);
}

static void
AveragePool_grad(om_grad *g)
{
	struct om_window w;

	if (!om_grad_window(g, NULL, false, &w))
		return;
	om_value *count = counts(g, &w, om_attr_int(om_grad_op(g), "count_include_pad") != 0);
	om_grad_set_input_grad(g, 0, scattered(g, &w, om_emit(g, "Div", om_grad_output_grad(g, 0), count)));
}

/* ---- Lp pooling: y is the sum of |x|^p, to the power 1/p. ---- */

/* dy y^(1-p); if a norm is zero, so are its elements, and their gradient is zero. */
static om_value *
norm_outer(om_grad *g, double p)
{
	om_value *dy = om_grad_output_grad(g, 0);

	if (p == 1)
		return dy;
	om_value *y = om_grad_forward_output(g, 0), *zero = om_emit_number(g, y, 0);
	om_value *power = p == 2 ? om_emit(g, "Div", dy, y) : om_emit(g, "Mul", dy, om_emit_scalar(g, "Pow", y, 1 - p));
	return om_emit(g, "Where", om_emit(g, "Equal", y, zero), zero, power);
}

/* The sign of x, times |x|^(p-1). */
static om_value *
norm_inner(om_grad *g, double p)
{
	om_value *x = om_grad_forward_input(g, 0);

	if (p == 2)
		return x;
	om_value *sign = om_emit(g, "Sign", x);
	return p == 1 ? sign : om_emit(g, "Mul", sign, om_emit_scalar(g, "Pow", om_emit(g, "Abs", x), p - 1));
}

static void
LpPool_grad(om_grad *g)
{
	const double p = (double)om_attr_int(om_grad_op(g), "p");
	struct om_window w;

	if (!om_grad_window(g, NULL, false, &w))
		return;
	om_value *back = scattered(g, &w, norm_outer(g, p));
	om_grad_set_input_grad(g, 0, om_emit(g, "Mul", back, norm_inner(g, p)));
}

static void
GlobalLpPool_grad(om_grad *g)
{
	const double p = (double)om_attr_int(om_grad_op(g), "p");

	om_grad_set_input_grad(g, 0, om_emit(g, "Mul", norm_inner(g, p), norm_outer(g, p)));
}

/* ---- Global pooling. ---- */

static void
GlobalAveragePool_grad(om_grad *g)
{
	int64_t axis[OM_MAX_RANK];
	om_value *x = om_grad_op(g)->in[0], *dy = om_grad_output_grad(g, 0);

	if (x->shape.rank < 0)
		om_grad_fail(g, OM_UNSUPPORTED, "the rank of its input is not known");
	const int n = (int)om_axes_between(2, x->shape.rank, axis);
	om_grad_set_input_grad(g, 0, om_emit_expand_as(g, om_emit(g, "Div", dy, om_emit_count(g, dy, x, n, axis)), x));
}

/* The first of the largest elements.  Its position can be computed as soon as x is, so that x need not
 * be kept. */
static void
GlobalMaxPool_grad(om_grad *g)
{
	const int64_t flat[] = {0, 0, -1};
	om_value *x = om_grad_op(g)->in[0];

	if (x->shape.rank < 0)
		om_grad_fail(g, OM_UNSUPPORTED, "the rank of its input is not known");
	if (x->shape.rank == 2) {
		om_grad_set_input_grad(g, 0, om_grad_output_grad(g, 0));
		return;
	}
	om_value *at = om_emit_attrs(g, "ArgMax", OM_A(om_attr_make_int(g, "axis", 2), om_attr_make_int(g, "keepdims", 1)),
		om_emit_shaped(g, om_grad_forward_input(g, 0), 3, flat));
	om_value *dx = om_emit_attrs(g, "ScatterElements", OM_A(om_attr_make_int(g, "axis", 2)),
		om_emit_shaped(g, om_emit_zeros_as(g, x), 3, flat), at, om_emit_shaped(g, om_grad_output_grad(g, 0), 3, flat));
	om_grad_set_input_grad(g, 0, om_emit_reshape_as(g, dx, x));
}

/* ---- The table. ---- */

static const struct om_fused max_pool_fused = {"MaxPoolGrad", {{"dY", OM_GRADIENT_OF, 0, true}, {"Indices", OM_OUTPUT, 1, true}}};

const om_gradient om_gradients_pooling[] = {
	{.name = "MaxPool", .since = 1, .until = 7, .rule = MaxPool_grad},
	{.name = "MaxPool", .since = 8, .rule = MaxPool_grad, .fused = &max_pool_fused},
	{.name = "AveragePool", .since = 1, .rule = AveragePool_grad},
	{.name = "LpPool", .since = 1, .rule = LpPool_grad},
	{.name = "GlobalMaxPool", .since = 1, .rule = GlobalMaxPool_grad},
	{.name = "GlobalAveragePool", .since = 1, .rule = GlobalAveragePool_grad},
	{.name = "GlobalLpPool", .since = 1, .rule = GlobalLpPool_grad},
	{.name = "MaxUnpool", .since = 9, .rule = MaxUnpool_grad},
	{0}
};
