/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of linear transforms, and of the determinant. */
#include <config.h>

#include "base/saturate.h"
#include "grad/bodies.h"
#include "grad/grad_builder.h"
#include "grad/rules/conv_geometry.h"
#include "ir/query.h"
#include "opdef/op_context.h"

/* ---- Col2Im: scatter-add of blocks to an image. ----
 *
 * The gradient of an element of a block is the gradient of the image at its position: a convolution
 * that selects, for every position in a block, one element. */

static bool
list_of(om_grad *g, uint32_t k, size_t want, const int64_t **v)
{
	om_op_context c;
	int64_t *list;
	size_t n;

	om_op_context_init(&c, om_grad_session(g), om_grad_mem(g), om_grad_op(g));
	if (!om_in_ints(&c, k, &list, &n) || (want && n != want)) {
		om_grad_fail(g, OM_UNSUPPORTED, "its gradient requires static sizes");
		return false;
	}
	*v = list;
	return true;
}

static void
Col2Im_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	const int rank = op->out[0]->shape.rank;
	const size_t n = rank > 2 ? (size_t)rank - 2 : 0;
	const int64_t *image, *block;
	int64_t dim[OM_MAX_RANK] = {-1, 1}, taps = 1;

	om_grad_set_input_grad(g, 1, NULL);
	om_grad_set_input_grad(g, 2, NULL);
	if (!om_grad_is_needed(g, 0) || !list_of(g, 1, n, &image) || !list_of(g, 2, n, &block))
		return;
	if (n == 0) {
		om_grad_fail(g, OM_UNSUPPORTED, "the rank of its output is not known");
		return;
	}
	for (size_t d = 0; d < n; d++)
		taps *= block[d];
	memcpy(dim + 2, image, n * sizeof *dim);
	om_value *dy = om_emit_shaped(g, om_grad_output_grad(g, 0), n + 2, dim);
	double *pick = OM_NEWN(om_grad_mem(g), double, (size_t)(taps * taps) + 1);
	for (int64_t k = 0; k < taps; k++)
		pick[k * taps + k] = 1;
	dim[0] = taps;
	memcpy(dim + 2, block, n * sizeof *dim);
	om_attr attrs[5] = {om_attr_make_ints(g, "kernel_shape", n, block)};
	static const char *const kept[] = {"dilations", "pads", "strides"};
	for (int k = 0, to = 1; k < 3; k++)
		if (om_attr_has(op, kept[k]))
			attrs[to++] = om_attr_make_copy(g, kept[k], kept[k]);
	om_value *in[] = {dy, om_emit_numbers(g, dy, (int)n + 2, dim, pick)};
	om_grad_set_input_grad(g, 0, om_emit_reshape_as(g, om_emit_op(g, "Conv", attrs, 2, in, 1, NULL), op->in[0]));
}

/* ---- DFT. ----
 *
 * With n the length: the gradient of the forward transform is the inverse transform times n; the
 * inverse divides by n, so its gradient is the forward transform divided by n.  The gradient of cropped
 * elements is zero, and that of padding is cropped; a one-sided spectrum is padded with zeros; for a
 * real signal, the real part is used.  The one-sided inverse counts every element twice, except the
 * first one and, if the length is even, the last one. */

struct dft {
	int axis, rank;
	int64_t n, have, want;
	bool is_real, is_inverse, is_mirrored;
};

static bool
read_dft(om_grad *g, struct dft *f)
{
	const om_op *op = om_grad_op(g);
	const om_shape *x = &op->in[0]->shape, *y = &op->out[0]->shape;
	om_op_context c;
	double v = op->version < 20 ? (double)om_attr_int(op, "axis") : -2;

	om_op_context_init(&c, om_grad_session(g), om_grad_mem(g), op);
	const bool has_axis = !om_has_in(&c, 2) || om_in_scalar(&c, 2, &v);
	*f = (struct dft){.rank = x->rank, .is_inverse = om_attr_int(op, "inverse") != 0};
	if (!has_axis || x->rank < 2 || y->rank != x->rank || !om_axis(OM_SATURATE(int64_t, v), x->rank, &f->axis)
	    || x->dim[f->axis] < 1 || y->dim[f->axis] < 1 || x->dim[x->rank - 1] < 0) {
		om_grad_fail(g, OM_UNSUPPORTED, "its gradient requires static sizes");
		return false;
	}
	f->have = f->n = x->dim[f->axis];
	f->want = y->dim[f->axis];
	f->is_real = x->dim[x->rank - 1] == 1;
	f->is_mirrored = f->is_inverse && om_attr_int(op, "onesided") != 0;
	v = (double)(f->is_mirrored ? 2 * (f->have - 1) : f->have);
	if (om_has_in(&c, 1) && !om_in_scalar(&c, 1, &v))
		om_grad_fail(g, OM_UNSUPPORTED, "its gradient requires a static length");
	f->n = OM_SATURATE(int64_t, v);
	return !om_grad_failed(g);
}

/* Resize `x` from length `from` along the axis to length `to`. */
static om_value *
fitted(om_grad *g, om_value *x, const struct dft *f, int64_t from, int64_t to)
{
	int64_t pads[2 * OM_MAX_RANK] = {0};

	if (from > to)
		return om_emit_slice(g, x, f->axis, 0, to);
	pads[f->rank + f->axis] = to - from;
	return from == to ? x : om_emit(g, "Pad", x, om_emit_list(g, 2 * (size_t)f->rank, pads));
}

/* Along the axis, in either direction. */
static om_value *
transformed(om_grad *g, om_value *x, const struct dft *f, bool inverse, bool onesided)
{
	const om_attr how = om_attr_make_int(g, "inverse", inverse), half = om_attr_make_int(g, "onesided", onesided);

	if (om_opset_version(om_grad_prog(g), "") < 20)
		return om_emit_attrs(g, "DFT", OM_A(om_attr_make_int(g, "axis", f->axis), how, half), x);
	return om_emit_attrs(g, "DFT", OM_A(how, half), x, NULL, om_emit_int64(g, f->axis));
}

/* The multiplicity of each element of a one-sided spectrum, divided by the length. */
static om_value *
shares_of_half(om_grad *g, const om_value *like, const struct dft *f)
{
	const int64_t half = f->n / 2 + 1;
	int64_t dim[OM_MAX_RANK];
	double *v = OM_NEWN(om_grad_mem(g), double, (size_t)half);

	for (int64_t k = 0; k < half; k++)
		v[k] = (k == 0 || 2 * k == f->n ? 1 : 2) / (double)f->n;
	for (int d = 0; d < f->rank - f->axis; d++)
		dim[d] = d ? 1 : half;
	return om_emit_numbers(g, like, f->rank - f->axis, dim, v);
}

static void
DFT_grad(om_grad *g)
{
	om_value *dy = om_grad_output_grad(g, 0), *dx;
	struct dft f;

	om_grad_set_input_grad(g, 1, NULL);
	om_grad_set_input_grad(g, 2, NULL);
	if (!om_grad_is_needed(g, 0) || !read_dft(g, &f))
		return;
	if (f.is_mirrored) {
		dx = transformed(g, dy, &f, false, true);
		dx = om_emit(g, "Mul", dx, shares_of_half(g, dx, &f));
	} else {
		dx = transformed(g, fitted(g, dy, &f, f.want, f.n), &f, !f.is_inverse, false);
		dx = om_emit_scalar(g, "Mul", dx, f.is_inverse ? 1 / (double)f.n : (double)f.n);
	}
	if (f.is_real)
		dx = om_emit_slice(g, dx, f.rank - 1, 0, 1);
	om_grad_set_input_grad(g, 0, fitted(g, dx, &f, f.is_mirrored ? f.n / 2 + 1 : f.n, f.have));
}

/* ---- STFT: gathered, windowed and transformed frames. ---- */

/* (frames, length): the position in the signal of each element of each frame. */
static om_value *
places_of_frames(om_grad *g, int64_t length)
{
	const om_op *op = om_grad_op(g);
	const int64_t second = 1;
	om_value *first = om_emit(g, "Mul", om_emit_positions(g, op->out[0], 1), om_emit_cast(g, om_grad_forward_input(g, 1), OM_INT64));
	om_value *within = om_emit(g, "Range", om_emit_int64(g, 0), om_emit_int64(g, length), om_emit_int64(g, 1));

	return om_emit(g, "Add", om_emit_unsqueeze(g, first, 1, &second), within);
}

static void
short_time(om_grad *g, om_value **out)
{
	const om_op *op = om_grad_op(g);
	const struct dft f = {.axis = 2};
	const bool is_flat = op->in[0]->shape.rank == 2, is_real = is_flat || om_grad_dim(op->in[0], 2) == 1, onesided = om_attr_int(op, "onesided") != 0;
	const int64_t last = 1, trailing = 2;
	int64_t length = om_grad_dim(op->in[0], 1);
	om_op_context c;
	double v;

	om_op_context_init(&c, om_grad_session(g), om_grad_mem(g), op);
	if (om_has_in(&c, 3))
		length = om_in_scalar(&c, 3, &v) ? OM_SATURATE(int64_t, v) : -1;
	else if (om_has_in(&c, 2))
		length = om_grad_dim(op->in[2], 0);
	if (length < 1 || (!is_flat && om_grad_dim(op->in[0], 2) < 1)) {
		om_grad_fail(g, OM_UNSUPPORTED, "its gradient requires a static frame length");
		return;
	}
	om_value *x = is_flat ? om_emit_unsqueeze(g, om_grad_forward_input(g, 0), 1, &trailing) : om_grad_forward_input(g, 0);
	x = om_emit_attrs(g, "Gather", OM_A(om_attr_make_int(g, "axis", 1)), x, places_of_frames(g, length));
	if (om_grad_has(g, 2))
		x = om_emit(g, "Mul", x, om_emit_unsqueeze(g, om_grad_forward_input(g, 2), 1, &last));
	x = transformed(g, x, &f, false, is_real && onesided);
	out[0] = onesided && !is_real ? om_emit_slice(g, x, 2, 0, length / 2 + 1) : x;
}

static void
STFT_grad(om_grad *g)
{
	om_grad_by_decomposition(g, short_time);
}

/* ---- Det. ----
 *
 * The derivative with respect to element (i, j) is the cofactor: (-1)^(i + j) times the determinant of
 * the matrix without its row i and column j.  All minors are computed at once, by gathering rows and
 * then columns. */
static void
Det_grad(om_grad *g)
{
	om_value *x = om_grad_op(g)->in[0], *dy = om_grad_output_grad(g, 0);
	const int rank = x->shape.rank;
	const int64_t n = rank >= 2 ? x->shape.dim[rank - 1] : -1, dim[] = {n, n - 1}, square[] = {n, n};
	const int64_t axes[] = {rank - 2, rank - 1};
	int64_t perm[OM_MAX_RANK + 2];

	if (n < 0 || n > 64 || rank + 2 > OM_MAX_RANK) {
		om_grad_fail(g, OM_UNSUPPORTED, n > 64 ? "no gradient for matrices of this size"
			: "its gradient requires matrices of static size");
		return;
	}
	dy = om_emit_unsqueeze(g, dy, 2, axes);
	if (n <= 1) {
		om_grad_set_input_grad(g, 0, n ? dy : NULL);
		return;
	}
	int64_t *others = OM_NEWN(om_grad_mem(g), int64_t, (size_t)(n * n));
	double *sign = OM_NEWN(om_grad_mem(g), double, (size_t)(n * n));
	for (int64_t i = 0; i < n; i++)
		for (int64_t k = 0; k < n; k++) {
			sign[i * n + k] = (i + k) % 2 ? -1 : 1;
			if (k < n - 1)
				others[i * (n - 1) + k] = k + (k >= i);
		}
	om_value *at = om_emit_tensor(g, &(om_tensor){.type = OM_INT64, .shape = om_shape_of(2, dim), .data = others});
	om_value *m = om_emit_attrs(g, "Gather", OM_A(om_attr_make_int(g, "axis", rank - 2)), om_grad_forward_input(g, 0), at);
	m = om_emit_attrs(g, "Gather", OM_A(om_attr_make_int(g, "axis", rank)), m, at);
	/* (..., i, rows, j, columns) to (..., i, j, rows, columns) */
	for (int d = 0; d < rank + 2; d++)
		perm[d] = d == rank - 1 ? rank : d == rank ? rank - 1 : d;
	m = om_emit(g, "Det", om_emit_transpose(g, m, (size_t)rank + 2, perm));
	om_grad_set_input_grad(g, 0, om_emit(g, "Mul", om_emit(g, "Mul", m, om_emit_numbers(g, dy, 2, square, sign)), dy));
}

/* ---- The table. ---- */

const om_gradient om_gradients_transforms[] = {
	{.name = "Det", .since = 11, .rule = Det_grad},
	{.name = "DFT", .since = 17, .rule = DFT_grad},
	{.name = "STFT", .since = 17, .rule = STFT_grad},
	{.name = "Col2Im", .since = 18, .rule = Col2Im_grad},
	{0}
};
