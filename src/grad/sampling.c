/* Gradients of what looks up images between their elements.
 *
 * Resize treats every axis by itself: a matrix of shares, which is known before the run, and whose
 * transpose takes gradients back.  Where every element is just repeated, they are summed.
 *
 * RoiAlign is a matrix for each axis as well, of each region.  Both are had from the operator
 * itself, which is given unit vectors. */
#include <config.h>

#include "grad/windows.h"
#include "ops/resize.h"

/* ---- Resize. ---- */

/* `x` with axis `axis` last, or back from there. */
static om_value *
with_last(om_grad *g, om_value *x, int rank, int axis, bool is_back)
{
	int64_t perm[OM_MAX_RANK];

	for (int d = 0; d < rank; d++)
		if (is_back)
			perm[d] = d < axis ? d : d == axis ? rank - 1 : d - 1;
		else
			perm[d] = d < axis ? d : d == rank - 1 ? axis : d + 1;
	return om_g_transpose(g, x, (size_t)rank, perm);
}

/* How often each element is repeated; 0: it is not that simple. */
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

/* The sum of `n` neighbours.  Only one dim behind the axis may be open. */
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
	return om_g_reduce(g, "ReduceSum", om_g_shaped(g, x, (size_t)rank + 1, dim), 1, &pick, false);
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
	om_value *m = om_g_numbers(g, dy, 2, dim, share);
	if (axis == rank - 2)
		return om_g(g, "MatMul", m, dy);
	m = om_g_transpose(g, m, 2, swapped);
	if (axis == rank - 1)
		return om_g(g, "MatMul", dy, m);
	return with_last(g, om_g(g, "MatMul", with_last(g, dy, rank, axis, false), m), rank, axis, true);
}

static om_status
resize_back(om_grad *g, om_call *c, om_value **dx)
{
	struct om_resize r;

	OM_TRY(om_resize_of(c, &r));
	/* First those that grew: they get smaller. */
	for (int pass = 0; pass < 2; pass++)
		for (int d = 0; d < r.rank; d++) {
			const struct om_resize_axis *a = &r.axis[d];
			double *share;
			if (om_resize_keeps(c, &r, a) || (a->in < 0 && a->out < 0 && a->scale == 1 && r.known)
			    || (a->out > a->in) == (pass == 1))
				continue;
			if (!r.known || a->in < 1 || a->out < 1)
				return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "its gradient needs sizes that are "
					"known before the run");
			OM_TRY(om_resize_shares(c, &r, d, &share));
			*dx = axis_back(g, *dx, d, a, share);
		}
	return OM_OK;
}

void
om_grad_Resize(om_grad *g)
{
	om_value *dx = om_grad_of(g, 0);
	om_call c;

	for (uint32_t k = 1; k < 4; k++)
		om_grad_give(g, k, NULL);
	if (om_grad_op(g)->in[0]->shape.rank < 0) {
		om_grad_fail(g, OM_UNSUPPORTED, "the rank of its input is not known");
		return;
	}
	om_call_init(&c, om_grad_prog(g)->session, om_grad_mem(g), om_grad_op(g));
	if (resize_back(g, &c, &dx) != OM_OK)
		om_grad_fail(g, OM_UNSUPPORTED, "its gradient needs sizes that are known before the run");
	om_grad_give(g, 0, om_g_reshape_as(g, dx, om_grad_op(g)->in[0]));
}

/* ---- RoiAlign. ---- */

/* The shares of an axis in each region, (regions, elements, bins): of an image as long as the
 * axis and one element wide, in regions that lie on it. */
static om_value *
roi_shares(om_grad *g, bool is_x, int64_t n, int64_t bins, om_value *where)
{
	const bool half = om_attr_is(om_grad_op(g), "coordinate_transformation_mode", "half_pixel");
	const double scale = om_attr_float(om_grad_op(g), "spatial_scale");
	const double low = half ? 0.5 / scale : 0, high = low + 1 / scale;
	const int64_t four = 4, image[] = {1, n, is_x ? 1 : n, is_x ? n : 1}, flat[] = {0, n, bins};
	const double keeps[] = {is_x, !is_x, is_x, !is_x};
	const double puts[] = {is_x ? 0 : low, is_x ? low : 0, is_x ? 0 : high, is_x ? high : 0};
	om_value *like = om_grad_of(g, 0), *rois = om_grad_in(g, 1);
	double *unit = OM_NEWN(om_grad_mem(g), double, (size_t)(n * n) + 1);

	for (int64_t k = 0; k < n; k++)
		unit[k * n + k] = 1;
	rois = om_g(g, "Add", om_g(g, "Mul", rois, om_g_numbers(g, like, 1, &four, keeps)),
		om_g_numbers(g, like, 1, &four, puts));
	om_value *shares = om_g_with(g, "RoiAlign", OM_A(om_a_text(g, "coordinate_transformation_mode",
		half ? "half_pixel" : "output_half_pixel"), om_a_int(g, "output_height", is_x ? 1 : bins),
		om_a_int(g, "output_width", is_x ? bins : 1),
		om_a_int(g, "sampling_ratio", om_attr_int(om_grad_op(g), "sampling_ratio")),
		om_a_float(g, "spatial_scale", om_attr_float(om_grad_op(g), "spatial_scale"))),
		om_g_numbers(g, like, 4, image, unit), rois, where);
	return om_g_shaped(g, shares, 3, flat);
}

/* dX of an image is the sum over its regions of the shares in y, dY, the shares in x: the sum over
 * regions is one with that over the bins of x, whose shares are zero in other images. */
static om_value *
roi_back(om_grad *g, const int64_t *n, const int64_t *bins, int64_t channels)
{
	const om_op *op = om_grad_op(g);
	const int64_t second = 1, swap[] = {0, 2, 1}, collect[] = {1, 2, 0, 3}, turn[] = {1, 0};
	const int64_t rows[] = {channels * n[0], -1}, lines[] = {0, -1, n[1]}, spread[] = {2, 3}, zero = 0, flat = -1;
	om_value *at = om_g_cast(g, om_grad_in(g, 2), OM_INT64);

	om_value *none = om_g(g, "Mul", at, om_g_int64(g, 0));
	om_value *y = om_g_unsqueeze(g, roi_shares(g, false, n[0], bins[0], none), 1, &second);
	om_value *x = om_g_transpose(g, roi_shares(g, true, n[1], bins[1], none), 3, swap);
	om_value *left = om_g_transpose(g, om_g(g, "MatMul", y, om_grad_of(g, 0)), 4, collect);
	left = om_g_shaped(g, left, 2, rows);
	om_value *onoff = om_g(g, "OneHot", at, om_g_shaped(g, om_g_dim(g, op->in[0], 0), 1, &flat),
		om_g_numbers(g, om_grad_of(g, 0), 1, &(int64_t){2}, (double[]){0, 1}));
	onoff = om_g_unsqueeze(g, om_g_transpose(g, onoff, 2, turn), 2, spread);
	om_value *right = om_g(g, "Mul", onoff, om_g_unsqueeze(g, x, 1, &zero));
	return om_g(g, "MatMul", left, om_g_shaped(g, right, 3, lines));
}

void
om_grad_RoiAlign(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	const om_shape *x = &op->in[0]->shape;

	om_grad_give(g, 2, NULL);
	if (om_attr_is(op, "mode", "max"))
		om_grad_fail(g, OM_UNSUPPORTED, "there is no gradient of the mode max");
	if (om_grad_wants(g, 1))
		om_grad_fail(g, OM_UNSUPPORTED, "there is no gradient for where the regions are");
	if (x->rank != 4 || x->dim[1] < 1 || x->dim[2] < 1 || x->dim[3] < 1 || x->dim[2] > 1 << 14 || x->dim[3] > 1 << 14)
		om_grad_fail(g, OM_UNSUPPORTED, "its gradient needs an image of a size known before the run");
	if (!om_grad_wants(g, 0) || om_grad_failed(g))
		return;
	const int64_t bins[] = {om_attr_int(op, "output_height"), om_attr_int(op, "output_width")};
	om_grad_give(g, 0, om_g_reshape_as(g, roi_back(g, x->dim + 2, bins, x->dim[1]), op->in[0]));
}

/* ---- AffineGrid: the places of the identity, by the matrices. ---- */

void
om_grad_AffineGrid(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	const int rank = op->in[0]->shape.rank;
	const int64_t axes = rank == 3 ? op->in[0]->shape.dim[1] : -1;
	const int64_t first = 0, rest = INT32_MAX, dim[] = {1, axes, axes + 1}, flat[] = {0, -1, axes};
	const int64_t swap[] = {0, 2, 1};
	double unit[12] = {0};

	om_grad_give(g, 1, NULL);
	if (!om_grad_wants(g, 0))
		return;
	if (axes != 2 && axes != 3) {
		om_grad_fail(g, OM_UNSUPPORTED, "its number of axes is not known");
		return;
	}
	for (int64_t k = 0; k < axes; k++)
		unit[k * (axes + 1) + k] = 1;
	om_value *dy = om_g_shaped(g, om_grad_of(g, 0), 3, flat), *one = om_g_list(g, 1, &(int64_t){1});
	om_value *size = om_g(g, "Slice", om_grad_in(g, 1), one, om_g_list(g, 1, &rest), om_g_list(g, 1, &first));
	size = om_g_with(g, "Concat", OM_A(om_a_int(g, "axis", 0)), one, size);
	om_value *place = om_g_with(g, "AffineGrid", OM_A(om_a_int(g, "align_corners", om_attr_int(op, "align_corners"))),
		om_g_numbers(g, dy, 3, dim, unit), size);
	place = om_g_shaped(g, place, 2, flat + 1);
	om_value *dy_turned = om_g_transpose(g, dy, 3, swap);
	const int64_t points = 2;
	om_value *shift = om_g_reduce(g, "ReduceSum", dy_turned, 1, &points, true);
	om_grad_give(g, 0, om_g_with(g, "Concat", OM_A(om_a_int(g, "axis", 2)),
		om_g(g, "MatMul", dy_turned, place), shift));
}
