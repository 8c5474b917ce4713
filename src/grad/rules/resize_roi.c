/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of image resampling.
 *
 * Resize treats each axis separately: a matrix of interpolation weights, which is known before the run,
 * and whose transpose maps the gradient back.  If every element is merely repeated, the gradients are
 * summed.
 *
 * RoiAlign is a matrix per axis as well, for each region.  Both matrices are computed by applying the
 * operator itself to unit vectors. */
#include <config.h>

#include <math.h>

#include "grad/bodies.h"
#include "grad/grad_builder.h"
#include "grad/grad_dsl.h"
#include "grad/rules/conv_geometry.h"
#include "ir/query.h"
#include "opdef/geometry/resize.h"
#include "opdef/op_context.h"

/* ---- Resize. ---- */

/* Move axis `axis` of `x` to the end, or back. */
static om_value *
with_last(om_grad *g, om_value *x, int rank, int axis, bool is_back)
{
	int64_t perm[OM_MAX_RANK];

	for (int d = 0; d < rank; d++)
		if (is_back)
			perm[d] = d < axis ? d : d == axis ? rank - 1 : d - 1;
		else
			perm[d] = d < axis ? d : d == rank - 1 ? axis : d + 1;
	return om_emit_transpose(g, x, (size_t)rank, perm);
}

/* The number of repetitions of each element; 0: the resize is not a plain repetition. */
static int64_t
repeats(const struct om_resize_axis *a, const double *share)
{
	const int64_t n = a->in > 0 ? a->out / a->in : 0;

	if (n == 0 || n * a->in != a->out)
		return 0;
	for (int64_t i = 0; i < a->in; i++)
		for (int64_t k = 0; k < a->out; k++)
			if (share[i * a->out + k] != (k / n == i))
				return 0;
	return n;
}

/* The sum of `n` neighbors.  At most one dim after the axis may be unknown. */
static om_value *
sum_of(om_grad *g, om_value *x, int axis, int64_t in, int64_t n)
{
	int64_t dim[OM_MAX_RANK + 1] = {0};
	const int64_t pick = axis + 1;
	const int rank = x->shape.rank;

	for (int d = axis + 1; d < rank; d++)
		dim[d + 1] = x->shape.dim[d] >= 0 ? x->shape.dim[d] : -1;
	dim[axis] = in;
	dim[axis + 1] = n;
	return om_emit_reduce(g, "ReduceSum", om_emit_shaped(g, x, (size_t)rank + 1, dim), 1, &pick, false);
}

static int
open_behind(const om_value *x, int axis)
{
	int n = 0;

	for (int d = axis + 1; d < x->shape.rank; d++)
		n += x->shape.dim[d] < 0;
	return n;
}

static om_value *
axis_back(om_grad *g, om_value *dy, int axis, const struct om_resize_axis *a, const double *share)
{
	const int rank = dy->shape.rank;
	const int64_t dim[] = {a->in, a->out}, swapped[] = {1, 0}, n = repeats(a, share);

	if (n && open_behind(dy, axis) <= 1)
		return sum_of(g, dy, axis, a->in, n);
	om_value *m = om_emit_numbers(g, dy, 2, dim, share);
	if (axis == rank - 2)
		return om_emit(g, "MatMul", m, dy);
	m = om_emit_transpose(g, m, 2, swapped);
	if (axis == rank - 1)
		return om_emit(g, "MatMul", dy, m);
	return with_last(g, om_emit(g, "MatMul", with_last(g, dy, rank, axis, false), m), rank, axis, true);
}

static om_status
resize_back(om_grad *g, om_op_context *c, om_value **dx)
{
	struct om_resize r;

	OM_TRY(om_resize_of(c, &r));
	/* first the axes that were enlarged: the tensor shrinks */
	for (int pass = 0; pass < 2; pass++)
		for (int d = 0; d < r.rank; d++) {
			const struct om_resize_axis *a = &r.axis[d];
			double *share;
			if (om_resize_keeps(c, &r, a) || (a->in < 0 && a->out < 0 && a->scale == 1 && r.known)
			    || (a->out > a->in) == (pass == 1))
				continue;
			if (!r.known || a->in < 1 || a->out < 1)
				return om_op_fail(c->session, OM_UNSUPPORTED, c->op,
					"its gradient requires static sizes");
			OM_TRY(om_resize_shares(c, &r, d, &share));
			*dx = axis_back(g, *dx, d, a, share);
		}
	return OM_OK;
}

static void
Resize_grad(om_grad *g)
{
	om_value *dx = om_grad_output_grad(g, 0);
	om_op_context c;

	for (uint32_t k = 1; k < 4; k++)
		om_grad_set_input_grad(g, k, NULL);
	if (om_grad_op(g)->in[0]->shape.rank < 0) {
		om_grad_fail(g, OM_UNSUPPORTED, "the rank of its input is not known");
		return;
	}
	om_op_context_init(&c, om_grad_session(g), om_grad_mem(g), om_grad_op(g));
	if (resize_back(g, &c, &dx) != OM_OK)
		om_grad_fail(g, OM_UNSUPPORTED, "its gradient requires static sizes");
	om_grad_set_input_grad(g, 0, om_emit_reshape_as(g, dx, om_grad_op(g)->in[0]));
}

/* ---- RoiAlign. ---- */

/* The interpolation weights of an axis in each region, (regions, elements, bins): of an image with the
 * length of the axis and a width of one element, in regions along it. */
static om_value *
roi_shares(om_grad *g, bool is_x, int64_t n, int64_t bins, om_value *where)
{
	const bool half = om_attr_is(om_grad_op(g), "coordinate_transformation_mode", "half_pixel");
	const double scale = om_attr_float(om_grad_op(g), "spatial_scale");
	const double low = half ? 0.5 / scale : 0, high = low + 1 / scale;
	const int64_t four = 4, image[] = {1, n, is_x ? 1 : n, is_x ? n : 1}, flat[] = {0, n, bins};
	const double keeps[] = {is_x, !is_x, is_x, !is_x};
	const double puts[] = {is_x ? 0 : low, is_x ? low : 0, is_x ? 0 : high, is_x ? high : 0};
	om_value *like = om_grad_output_grad(g, 0), *rois = om_grad_forward_input(g, 1);
	double *unit = OM_NEWN(om_grad_mem(g), double, (size_t)(n * n) + 1);

	for (int64_t k = 0; k < n; k++)
		unit[k * n + k] = 1;
	rois = om_emit(g, "Add", om_emit(g, "Mul", rois, om_emit_numbers(g, like, 1, &four, keeps)),
		om_emit_numbers(g, like, 1, &four, puts));
	om_value *shares = om_emit_attrs(g, "RoiAlign", OM_A(om_attr_make_string(g, "coordinate_transformation_mode",
		half ? "half_pixel" : "output_half_pixel"), om_attr_make_int(g, "output_height", is_x ? 1 : bins),
		om_attr_make_int(g, "output_width", is_x ? bins : 1),
		om_attr_make_int(g, "sampling_ratio", om_attr_int(om_grad_op(g), "sampling_ratio")),
		om_attr_make_float(g, "spatial_scale", om_attr_float(om_grad_op(g), "spatial_scale"))),
		om_emit_numbers(g, like, 4, image, unit), rois, where);
	return om_emit_shaped(g, shares, 3, flat);
}

/* dX of an image is the sum over its regions of (weights in y) dY (weights in x): the sum over regions
 * is merged with the sum over the bins of x, whose weights are zero in other images. */
static om_value *
roi_back(om_grad *g, const int64_t *n, const int64_t *bins, int64_t channels)
{
	const om_op *op = om_grad_op(g);
	const int64_t second = 1, swap[] = {0, 2, 1}, collect[] = {1, 2, 0, 3}, perm[] = {1, 0};
	const int64_t rows[] = {channels * n[0], -1}, lines[] = {0, -1, n[1]}, spread[] = {2, 3}, zero = 0, flat = -1;
	om_value *at = om_emit_cast(g, om_grad_forward_input(g, 2), OM_INT64);

	om_value *none = om_emit(g, "Mul", at, om_emit_int64(g, 0));
	om_value *y = om_emit_unsqueeze(g, roi_shares(g, false, n[0], bins[0], none), 1, &second);
	om_value *x = om_emit_transpose(g, roi_shares(g, true, n[1], bins[1], none), 3, swap);
	om_value *left = om_emit_transpose(g, om_emit(g, "MatMul", y, om_grad_output_grad(g, 0)), 4, collect);
	left = om_emit_shaped(g, left, 2, rows);
	om_value *onoff = om_emit(g, "OneHot", at, om_emit_shaped(g, om_emit_dim(g, op->in[0], 0), 1, &flat),
		om_emit_numbers(g, om_grad_output_grad(g, 0), 1, &(int64_t){2}, (double[]){0, 1}));
	onoff = om_emit_unsqueeze(g, om_emit_transpose(g, onoff, 2, perm), 2, spread);
	om_value *right = om_emit(g, "Mul", onoff, om_emit_unsqueeze(g, x, 1, &zero));
	return om_emit(g, "MatMul", left, om_emit_shaped(g, right, 3, lines));
}

static void
RoiAlign_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	const om_shape *x = &op->in[0]->shape;

	om_grad_set_input_grad(g, 2, NULL);
	if (om_attr_is(op, "mode", "max"))
		om_grad_fail(g, OM_UNSUPPORTED, "no gradient for mode max");
	if (om_grad_is_needed(g, 1))
		om_grad_fail(g, OM_UNSUPPORTED, "no gradient for the positions of the regions");
	if (x->rank != 4 || x->dim[1] < 1 || x->dim[2] < 1 || x->dim[3] < 1 || x->dim[2] > 1 << 14 || x->dim[3] > 1 << 14)
		om_grad_fail(g, OM_UNSUPPORTED, "its gradient requires an image of static size");
	if (!om_grad_is_needed(g, 0) || om_grad_failed(g))
		return;
	const int64_t bins[] = {om_attr_int(op, "output_height"), om_attr_int(op, "output_width")};
	om_grad_set_input_grad(g, 0, om_emit_reshape_as(g, roi_back(g, x->dim + 2, bins, x->dim[1]), op->in[0]));
}

/* ---- MaxRoiPool. ----
 *
 * The gradient of a bin goes to the first of its largest elements: the first of the largest rows, each
 * with its first largest element.  The bounds of bins are computed as the operator does, in float64,
 * because rounding affects them. */

/* Bounds of the bins along an axis, (regions, bins), integers from 0 to the length. */
static void
roi_bins(om_grad *g, om_value *rois, int64_t column, int64_t bins, om_value *length, om_value **low, om_value **high)
{
	const double scale = om_attr_float(om_grad_op(g), "spatial_scale");
	double *at = OM_NEWN(om_grad_mem(g), double, (size_t)bins + 2);
	om_value *end[2];

	for (int64_t k = 0; k <= bins; k++)
		at[k] = (double)k;
	for (int k = 0; k < 2; k++) {
		om_value *v = TIMES(om_emit_slice(g, rois, 1, column + 2 * k, column + 2 * k + 1), scale);
		end[k] = MUL(DO("Sign", v), DO("Floor", PLUS(DO("Abs", v), 0.5)));
	}
	om_value *size = om_emit(g, "Max", PLUS(SUB(end[1], end[0]), 1), om_emit_number(g, rois, 1));
	size = DIV(size, om_emit_number(g, rois, (double)bins));
	*low = ADD(end[0], DO("Floor", MUL(size, om_emit_numbers(g, rois, 1, &bins, at))));
	*high = ADD(end[0], DO("Ceil", MUL(size, om_emit_numbers(g, rois, 1, &bins, at + 1))));
	length = om_emit_cast(g, length, OM_FLOAT64);
	*low = om_emit(g, "Clip", *low, ZERO(rois), length);
	*high = om_emit(g, "Clip", *high, ZERO(rois), length);
}

/* A mask of the elements of the image in each bin: (regions, bins, length). */
static om_value *
roi_inside(om_grad *g, om_value *low, om_value *high, int axis)
{
	const int64_t last = 2;
	om_value *at = om_emit_cast(g, om_emit_positions(g, om_grad_op(g)->in[0], axis), OM_FLOAT64);

	return om_emit(g, "And", om_emit(g, "Not", om_emit(g, "Less", at, om_emit_unsqueeze(g, low, 1, &last))),
		om_emit(g, "Less", at, om_emit_unsqueeze(g, high, 1, &last)));
}

/* Indices in the flattened image of the maximum of each region, channel and bin. */
static om_value *
roi_largest(om_grad *g, om_value *image, om_value *rows, om_value *columns)
{
	om_value *x = om_grad_op(g)->in[0], *at[2], *place;
	const int64_t spread_rows[] = {1, 4}, spread_columns[] = {1, 2}, fourth = 3, third = 2, channels[] = {-1, 1, 1};
	const int64_t images[] = {-1, 1, 1, 1};
	om_value *inside = om_emit(g, "Gather", om_grad_forward_input(g, 0), image);

	/* (regions, channels, rows, bins, columns), then (regions, channels, bins, rows, bins) */
	inside = WHERE(om_emit_unsqueeze(g, columns, 2, spread_columns), om_emit_unsqueeze(g, inside, 1, &fourth),
		om_emit_number(g, x, -INFINITY));
	at[1] = om_emit_attrs(g, "ArgMax", OM_A(om_attr_make_int(g, "axis", 4), om_attr_make_int(g, "keepdims", 0)), inside);
	const int64_t last = 4;
	inside = om_emit_unsqueeze(g, om_emit_reduce(g, "ReduceMax", inside, 1, &last, false), 1, &third);
	inside = WHERE(om_emit_unsqueeze(g, rows, 2, spread_rows), inside, om_emit_number(g, x, -INFINITY));
	at[0] = om_emit_attrs(g, "ArgMax", OM_A(om_attr_make_int(g, "axis", 3), om_attr_make_int(g, "keepdims", 0)), inside);
	at[1] = om_emit_attrs(g, "GatherElements", OM_A(om_attr_make_int(g, "axis", 2)), at[1], at[0]);
	place = MUL(om_emit_shaped(g, image, 4, images), om_emit_length(g, x, 1));
	place = ADD(place, om_emit_shaped(g, om_emit_positions(g, x, 1), 3, channels));
	place = ADD(MUL(place, om_emit_length(g, x, 2)), at[0]);
	return ADD(MUL(place, om_emit_length(g, x, 3)), at[1]);
}

static void
MaxRoiPool_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	om_value *low[2], *high[2], *x = op->in[0], *inside[2], *dy = om_grad_output_grad(g, 0);
	const int64_t flat = -1, rows[] = {1, 3}, columns[] = {1, 2};
	size_t n;
	const int64_t *bins = om_attr_ints(op, "pooled_shape", &n);

	if (om_grad_is_needed(g, 1))
		om_grad_fail(g, OM_UNSUPPORTED, "no gradient for the positions of the regions");
	if (!om_grad_is_needed(g, 0) || om_grad_failed(g))
		return;
	om_value *rois = om_emit_cast(g, om_grad_forward_input(g, 1), OM_FLOAT64);
	for (int k = 0; k < 2; k++) {
		roi_bins(g, rois, k ? 1 : 2, bins[k], om_emit_length(g, x, 2 + k), &low[k], &high[k]);
		inside[k] = roi_inside(g, low[k], high[k], 2 + k);
	}
	om_value *image = om_emit(g, "Reshape", om_emit_slice(g, rois, 1, 0, 1), om_emit_list(g, 1, &flat));
	om_value *place = roi_largest(g, om_emit_cast(g, image, OM_INT64), inside[0], inside[1]);
	om_value *some = om_emit(g, "And", om_emit_unsqueeze(g, om_emit(g, "Less", low[0], high[0]), 2, rows),
		om_emit_unsqueeze(g, om_emit(g, "Less", low[1], high[1]), 2, columns));
	om_value *in[] = {om_emit_shaped(g, om_emit_zeros_as(g, x), 1, &flat), om_emit_shaped(g, place, 1, &flat),
		om_emit_shaped(g, KEEP(some, dy), 1, &flat)};
	om_grad_set_input_grad(g, 0, om_emit_reshape_as(g, om_emit_op(g, "ScatterElements",
		OM_A(om_attr_make_int(g, "axis", 0), om_attr_make_string(g, "reduction", "add")), 3, in, 1, NULL), x));
}

/* ---- DeformConv. ----
 *
 * Decomposed into a GridSample, which reads the input of every kernel element at every output position,
 * and a product with the weights of each group. */

struct deformed {
	struct om_window w;
	int64_t group, offsets, channels, kernels, taps, area;
	const int64_t *in, *out;     /* height, width */
};

/* The coordinates that each kernel element reads at each position with a zero offset, as a GridSample
 * counts: (kernel elements, height, width, 2), x first; and the length of an element in them. */
static om_value *
still_places(om_grad *g, const struct deformed *d, om_value **unit)
{
	const int a = OM_WINDOW_AXES - 2;
	const int64_t dim[] = {d->taps, d->out[0], d->out[1], 2}, two = 2;
	double *at = OM_NEWN(om_grad_mem(g), double, (size_t)(d->taps * d->area * 2) + 1);
	om_value *like = om_grad_output_grad(g, 0);
	size_t n = 0;

	for (int64_t t = 0; t < d->taps; t++)
		for (int64_t i = 0; i < d->area; i++) {
			const int64_t place[] = {i / d->out[1], i % d->out[1]};
			const int64_t tap[] = {t / d->w.kernel[a + 1], t % d->w.kernel[a + 1]};
			for (int k = 1; k >= 0; k--) {
				const int64_t p = place[k] * d->w.stride[a + k] - d->w.begin[a + k] + tap[k] * d->w.dilation[a + k];
				at[n++] = (double)(2 * p + 1) / (double)d->in[k] - 1;
			}
		}
	*unit = om_emit_numbers(g, like, 1, &two, (double[]){2 / (double)d->in[1], 2 / (double)d->in[0]});
	return om_emit_numbers(g, like, 4, dim, at);
}

static om_value *
taps_of_image(om_grad *g, const struct deformed *d)
{
	const int64_t images[] = {-1, d->channels / d->offsets, d->in[0], d->in[1]};
	const int64_t by_tap[] = {-1, d->taps, 2, d->out[0], d->out[1]}, swap[] = {1, 0};
	const int64_t grid[] = {-1, d->taps * d->out[0], d->out[1], 2}, mask[] = {-1, 1, d->taps * d->out[0], d->out[1]};
	const char *mode = om_opset_version(om_grad_prog(g), "") >= 20 ? "linear" : "bilinear";
	om_value *unit, *still = still_places(g, d, &unit);

	om_value *at = om_emit_shaped(g, om_grad_forward_input(g, 2), 5, by_tap);
	at = om_emit_transpose(g, at, 5, (const int64_t[]){0, 1, 3, 4, 2});
	at = om_emit_attrs(g, "Gather", OM_A(om_attr_make_int(g, "axis", 4)), at, om_emit_list(g, 2, swap));
	at = om_emit_shaped(g, ADD(MUL(at, unit), still), 4, grid);
	om_value *v = om_emit_attrs(g, "GridSample", OM_A(om_attr_make_string(g, "mode", mode), om_attr_make_int(g, "align_corners", 0),
		om_attr_make_string(g, "padding_mode", "zeros")), om_emit_shaped(g, om_grad_forward_input(g, 0), 4, images), at);
	return om_grad_has(g, 4) ? MUL(v, om_emit_shaped(g, om_grad_forward_input(g, 4), 4, mask)) : v;
}

static void
deformed(om_grad *g, om_value **out)
{
	const om_op *op = om_grad_op(g);
	const om_shape *w = &op->in[1]->shape;
	struct deformed d = {.group = om_attr_int(op, "group"), .offsets = om_attr_int(op, "offset_group")};

	if (w->rank != 4 || w->dim[0] < 1 || !om_grad_window(g, w->dim + 2, false, &d.w) || om_grad_dim(op->in[0], 1) < 1) {
		om_grad_fail(g, OM_UNSUPPORTED, "its gradient requires static sizes of image and kernel");
		return;
	}
	d.in = d.w.in + OM_WINDOW_AXES - 2;
	d.out = d.w.out + OM_WINDOW_AXES - 2;
	d.channels = op->in[0]->shape.dim[1];
	d.kernels = w->dim[0];
	d.taps = w->dim[2] * w->dim[3];
	d.area = d.out[0] * d.out[1];
	const int64_t each = d.channels / d.group * d.taps;
	const int64_t columns[] = {-1, d.group, each, d.area}, weights[] = {d.group, d.kernels / d.group, each};
	const int64_t image[] = {-1, d.kernels, d.out[0], d.out[1]};
	om_value *y = om_emit(g, "MatMul", om_emit_shaped(g, om_grad_forward_input(g, 1), 3, weights),
		om_emit_shaped(g, taps_of_image(g, &d), 4, columns));
	out[0] = om_emit_shaped(g, y, 4, image);
	if (om_grad_has(g, 3))
		out[0] = ADD(out[0], om_emit_per_channel(g, om_grad_forward_input(g, 3), 4));
}

static void
DeformConv_grad(om_grad *g)
{
	om_grad_by_decomposition(g, deformed);
}

/* ---- AffineGrid: positions of the identity, times the matrices. ---- */

static void
AffineGrid_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	const int rank = op->in[0]->shape.rank;
	const int64_t axes = rank == 3 ? op->in[0]->shape.dim[1] : -1;
	const int64_t first = 0, rest = INT32_MAX, dim[] = {1, axes, axes + 1}, flat[] = {0, -1, axes};
	const int64_t swap[] = {0, 2, 1};
	double unit[12] = {0};

	om_grad_set_input_grad(g, 1, NULL);
	if (!om_grad_is_needed(g, 0))
		return;
	if (axes != 2 && axes != 3) {
		om_grad_fail(g, OM_UNSUPPORTED, "its number of axes is not known");
		return;
	}
	for (int64_t k = 0; k < axes; k++)
		unit[k * (axes + 1) + k] = 1;
	om_value *dy = om_emit_shaped(g, om_grad_output_grad(g, 0), 3, flat), *one = om_emit_list(g, 1, &(int64_t){1});
	om_value *size = om_emit(g, "Slice", om_grad_forward_input(g, 1), one, om_emit_list(g, 1, &rest), om_emit_list(g, 1, &first));
	size = om_emit_attrs(g, "Concat", OM_A(om_attr_make_int(g, "axis", 0)), one, size);
	om_value *place = om_emit_attrs(g, "AffineGrid", OM_A(om_attr_make_int(g, "align_corners", om_attr_int(op, "align_corners"))),
		om_emit_numbers(g, dy, 3, dim, unit), size);
	place = om_emit_shaped(g, place, 2, flat + 1);
	om_value *dy_turned = om_emit_transpose(g, dy, 3, swap);
	const int64_t points = 2;
	om_value *shift = om_emit_reduce(g, "ReduceSum", dy_turned, 1, &points, true);
	om_grad_set_input_grad(g, 0, om_emit_attrs(g, "Concat", OM_A(om_attr_make_int(g, "axis", 2)),
		om_emit(g, "MatMul", dy_turned, place), shift));
}

/* ---- The table. ---- */

const om_gradient om_gradients_resize_roi[] = {
	{.name = "Upsample", .since = 1, .until = 9, .rule = Resize_grad},
	{.name = "Resize", .since = 10, .rule = Resize_grad},
	{.name = "AffineGrid", .since = 20, .rule = AffineGrid_grad},
	{.name = "RoiAlign", .since = 10, .rule = RoiAlign_grad},
	{.name = "MaxRoiPool", .since = 1, .rule = MaxRoiPool_grad},
	{.name = "DeformConv", .since = 19, .rule = DeformConv_grad},
	{0}
};
