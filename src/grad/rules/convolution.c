/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of convolutions, which are convolutions.
 *
 * Y is the sum of products of W with X under windows.  dX scatter-adds every element of dY, times W, to
 * the positions of its window, which is the transposed convolution.  dW is a convolution of X with dY
 * as its kernel: dilations and strides are exchanged, the sum is over the batch, and the batch takes
 * the role of the channels.  For the transposed convolution, X and Y exchange their roles.
 *
 * dW is built first: it is the last user of X, so dX may be computed in place of X. */
#include <config.h>

#include "grad/fused.h"
#include "grad/grad_builder.h"
#include "grad/rules/conv_geometry.h"
#include "ir/query.h"

enum { AXES = OM_WINDOW_AXES };

/* The gradient of the weights: (channels of `small`, channels of `image` per group, kernel). */
struct weights {
	const struct om_window *w;
	om_value *image, *small;     /* input and output of the convolution */
	int64_t group, wide, narrow; /* `wide`: channels of `image`; `narrow`: channels of `small` */
	int64_t batch;               /* -1: unknown */
	int64_t volume_in, volume_out;
};

/* [a, b, image]: dims of a tensor with the spatial dims `image`. */
static size_t
dims(const struct om_window *w, const int64_t *size, int64_t a, int64_t b, int64_t *dim)
{
	dim[0] = a;
	dim[1] = b;
	memcpy(dim + 2, size + AXES - w->n, (size_t)w->n * sizeof *dim);
	return (size_t)w->n + 2;
}

/* Exchange the batch and the channels (of a group). */
static om_value *
exchanged(om_grad *g, om_value *x, int rank)
{
	int64_t perm[OM_MAX_RANK];

	for (int d = 0; d < rank; d++)
		perm[d] = d < 2 ? 1 - d : d;
	return om_emit_transpose(g, x, (size_t)rank, perm);
}

/* (batch, channels, image) as (channels per group, groups and batch, image). */
static om_value *
by_group(om_grad *g, const struct weights *v)
{
	const struct om_window *w = v->w;
	int64_t dim[OM_MAX_RANK] = {0, v->group, v->wide / v->group}, perm[OM_MAX_RANK] = {2, 1, 0};

	if (v->group == 1)
		return exchanged(g, v->image, w->n + 2);
	memcpy(dim + 3, w->in + AXES - w->n, (size_t)w->n * sizeof *dim);
	om_value *x = om_emit_shaped(g, v->image, (size_t)w->n + 3, dim);
	for (int d = 3; d < w->n + 3; d++)
		perm[d] = d;
	x = om_emit_transpose(g, x, (size_t)w->n + 3, perm);
	return om_emit_shaped(g, x, dims(w, w->in, v->wide / v->group, -1, dim), dim);
}

/* The convolution with the windows `w`, whose output must have the size of `w`: if the image has space
 * for more windows, they are cropped. */
static om_value *
convolved(om_grad *g, const struct om_window *w, om_value *image, om_value *weights, int64_t group)
{
	const int first = AXES - w->n;
	const size_t n = (size_t)w->n;
	int64_t pads[2 * AXES];

	for (int k = 0; k < w->n; k++) {
		const int at = first + k;
		const int64_t reach = (w->kernel[at] - 1) * w->dilation[at] + (w->out[at] - 1) * w->stride[at] + 1;
		const int64_t end = reach - w->in[at] - w->begin[at];
		pads[k] = w->begin[at];
		pads[w->n + k] = end > 0 || w->end[at] < 0 ? end : 0;
	}
	om_value *y = om_emit_attrs(g, "Conv", OM_A(om_attr_make_ints(g, "dilations", n, w->dilation + first),
		om_attr_make_int(g, "group", group), om_attr_make_ints(g, "kernel_shape", n, w->kernel + first),
		om_attr_make_ints(g, "pads", 2 * n, pads), om_attr_make_ints(g, "strides", n, w->stride + first)), image, weights);
	for (int k = 0; k < w->n; k++)
		if (y->shape.rank > k + 2 && y->shape.dim[k + 2] > w->out[first + k])
			y = om_emit_slice(g, y, k + 2, 0, w->out[first + k]);
	return y;
}

/* Convolve `image` with the kernel `by`: strides are the dilations of the forward op and dilations its
 * strides; one output position per kernel element. */
static om_value *
swept(om_grad *g, const struct om_window *w, om_value *image, om_value *by, int64_t group)
{
	struct om_window v = *w;

	memcpy(v.kernel, w->out, sizeof v.kernel);
	memcpy(v.out, w->kernel, sizeof v.out);
	memcpy(v.stride, w->dilation, sizeof v.stride);
	memcpy(v.dilation, w->stride, sizeof v.dilation);
	return convolved(g, &v, image, by, group);
}

/* One channel per group: every channel of every image is a group of its own, and no transpose is
 * required. */
static om_value *
of_single_channels(om_grad *g, const struct weights *v)
{
	const struct om_window *w = v->w;
	const int64_t batch = 0;
	int64_t dim[OM_MAX_RANK];

	om_value *x = om_emit_shaped(g, v->image, dims(w, w->in, 1, v->batch * v->wide, dim), dim);
	om_value *dy = om_emit_shaped(g, v->small, dims(w, w->out, v->batch * v->narrow, 1, dim), dim);
	om_value *sum = swept(g, w, x, dy, v->batch * v->wide);
	if (v->batch != 1) {
		dims(w, w->kernel, v->narrow, 1, dim + 1);
		dim[0] = v->batch;
		sum = om_emit_shaped(g, sum, (size_t)w->n + 3, dim);
		return om_emit_reduce(g, "ReduceSum", sum, 1, &batch, false);
	}
	return om_emit_shaped(g, sum, dims(w, w->kernel, v->narrow, 1, dim), dim);
}

/* Windows of one element: a matrix product per image, unless summing the products costs less than
 * concatenating the images. */
static bool
is_product(const struct weights *v)
{
	return v->group == 1 && om_window_is_point(v->w) && v->volume_in == v->volume_out
	    && (v->batch == 1 || v->wide * v->narrow <= (v->wide + v->narrow) * v->volume_in);
}

static om_value *
of_products(om_grad *g, const struct weights *v)
{
	const int64_t flat[] = {0, v->wide, v->volume_in}, flat_dy[] = {0, v->narrow, v->volume_out};
	const int64_t perm[] = {0, 2, 1}, batch = 0;
	int64_t dim[OM_MAX_RANK];

	om_value *x = om_emit_transpose(g, om_emit_shaped(g, v->image, 3, flat), 3, perm);
	om_value *sum = om_emit(g, "MatMul", om_emit_shaped(g, v->small, 3, flat_dy), x);
	if (v->batch != 1)
		sum = om_emit_reduce(g, "ReduceSum", sum, 1, &batch, false);
	return om_emit_shaped(g, sum, dims(v->w, v->w->kernel, v->narrow, v->wide, dim), dim);
}

static om_value *
of_weights(om_grad *g, const struct weights *v)
{
	if (is_product(v))
		return of_products(g, v);
	if (v->wide == v->group && v->batch > 0)
		return of_single_channels(g, v);
	om_value *dy = exchanged(g, v->small, v->w->n + 2);
	return exchanged(g, swept(g, v->w, by_group(g, v), dy, v->group), v->w->n + 2);
}

/* ---- Both operators. ---- */

static bool
read_window(om_grad *g, bool grows, struct om_window *w)
{
	const om_op *op = om_grad_op(g);
	const om_shape *weights = &op->in[1]->shape;

	if (weights->rank < 3 || om_grad_dim(op->in[0], 1) < 0 || om_grad_dim(op->out[0], 1) < 0) {
		om_grad_fail(g, OM_UNSUPPORTED, "its gradient requires a static number of channels");
		return false;
	}
	return om_grad_window(g, weights->dim + 2, grows, w);
}

static om_value *
weight_grad(om_grad *g, const struct om_window *w, om_value *image, om_value *small)
{
	const struct weights v = {
		.w = w, .image = image, .small = small, .group = om_attr_int(om_grad_op(g), "group"),
		.wide = om_grad_dim(image, 1), .narrow = om_grad_dim(small, 1), .batch = om_grad_dim(small, 0),
		.volume_in = om_window_volume(w->in), .volume_out = om_window_volume(w->out),
	};

	if (v.batch >= 0 && v.wide > 0 && v.batch > INT32_MAX / v.wide) {
		om_grad_fail(g, OM_UNSUPPORTED, "its batch is too large");
		return image;
	}
	return of_weights(g, &v);
}

static void
bias_grad(om_grad *g)
{
	int64_t axis[OM_MAX_RANK] = {0};
	const size_t n = om_axes_between(2, om_grad_op(g)->out[0]->shape.rank, axis + 1);

	if (om_grad_is_needed(g, 2))
		om_grad_set_input_grad(g, 2, om_emit_reduce(g, "ReduceSum", om_grad_output_grad(g, 0), n + 1, axis, false));
}

static void
Conv_grad(om_grad *g)
{
	const int64_t group = om_attr_int(om_grad_op(g), "group");
	struct om_window w;

	if (!read_window(g, false, &w))
		return;
	bias_grad(g);
	if (om_grad_is_needed(g, 1))
		om_grad_set_input_grad(g, 1, weight_grad(g, &w, om_grad_forward_input(g, 0), om_grad_output_grad(g, 0)));
	if (om_grad_is_needed(g, 0))
		om_grad_set_input_grad(g, 0, om_emit_scatter_add(g, &w, om_grad_output_grad(g, 0), om_grad_forward_input(g, 1), group));
}

/* ---- ConvTranspose. ---- */

static void
ConvTranspose_grad(om_grad *g)
{
	const int64_t group = om_attr_int(om_grad_op(g), "group");
	struct om_window w;

	if (!read_window(g, true, &w))
		return;
	w = om_window_turned(&w);
	bias_grad(g);
	if (om_grad_is_needed(g, 1))
		om_grad_set_input_grad(g, 1, weight_grad(g, &w, om_grad_output_grad(g, 0), om_grad_forward_input(g, 0)));
	if (om_grad_is_needed(g, 0))
		om_grad_set_input_grad(g, 0, convolved(g, &w, om_grad_output_grad(g, 0), om_grad_forward_input(g, 1), group));
}

/* ---- The table. ---- */

static const struct om_fused conv_fused = {"ConvGrad", {{"dY", OM_GRADIENT_OF, 0, true}, {"X", OM_INPUT, 0, false},
	{"W", OM_INPUT, 1, true}, {"B", OM_INPUT, 2, false}}};

const om_gradient om_gradients_convolution[] = {
	{.name = "Conv", .since = 1, .rule = Conv_grad, .fused = &conv_fused},
	{.name = "ConvTranspose", .since = 1, .rule = ConvTranspose_grad},
	{0}
};
