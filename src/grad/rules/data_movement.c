/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of data movement: the gradient of each element returns to the position that the element was
 * read from, and is summed if the element was read several times. */
#include <config.h>

#include "grad/bodies.h"
#include "grad/grad_builder.h"
#include "grad/grad_dsl.h"
#include "grad/sums.h"
#include "ir/query.h"
#include "ir/type.h"
#include "opdef/op_context.h"

#define DY  om_grad_output_grad(g, 0)

/* The elements of an input, if they are constant. */
static const int64_t *
known_list(const om_grad *g, uint32_t k, size_t *n)
{
	const om_value *v = om_grad_has(g, k) ? om_grad_op(g)->in[k] : NULL;
	int64_t *out;

	if (!v || !v->data || !v->data->data || v->is_overridable)
		return NULL;
	const om_tensor *t = v->data;
	*n = (size_t)om_shape_count(&t->shape);
	out = OM_NEWN(om_grad_mem(g), int64_t, *n + 1);
	for (size_t i = 0; i < *n; i++) {
		const size_t at = t->splat ? 0 : i;
		out[i] = t->type == OM_INT64 ? ((const int64_t *)t->data)[at] : ((const int32_t *)t->data)[at];
	}
	return t->type == OM_INT64 || t->type == OM_INT32 ? out : NULL;
}

static int
rank_of(om_grad *g, const om_value *v)
{
	if (v->shape.rank == OM_RANK_UNKNOWN)
		om_grad_fail(g, OM_UNSUPPORTED, "the rank of %s is not known", v->name);
	return v->shape.rank;
}

static int64_t
axis_of(int64_t axis, int rank)
{
	int at = 0;

	om_axis(axis, rank, &at);
	return at;
}

/* ---- Reshaping. ---- */

static void
Reshape_grad(om_grad *g)
{
	om_grad_set_input_grad(g, 0, om_emit_reshape_as(g, DY, om_grad_op(g)->in[0]));
}

static void
Transpose_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	const int rank = rank_of(g, op->in[0]);
	int64_t back[OM_MAX_RANK] = {0};
	size_t n;
	const int64_t *perm = om_attr_ints(op, "perm", &n);

	if (rank < 0)
		return;
	for (int d = 0; d < rank; d++)
		back[!n ? rank - 1 - d : perm[d] < 0 ? perm[d] + rank : perm[d]] = d;  /* checked by inference */
	om_grad_set_input_grad(g, 0, om_emit_transpose(g, DY, (size_t)rank, back));
}

/* ---- Repeating. ---- */

static void
Expand_grad(om_grad *g)
{
	om_grad_set_broadcast_grad(g, 0, DY);
}

/* Split each axis into repeats and length, and sum over the repeats. */
static void
Tile_grad(om_grad *g)
{
	om_value *x = om_grad_op(g)->in[0];
	const int rank = rank_of(g, x);
	int64_t dims[2 * OM_MAX_RANK], summed[OM_MAX_RANK];
	size_t n, ndim = 0, nsum = 0;
	const int64_t *repeats = known_list(g, 1, &n), one = 1, all = -1;

	if (rank <= 0) {
		om_grad_set_input_grad(g, 0, DY);
		return;
	}
	if (repeats && om_shape_is_known(&x->shape)) {
		for (int d = 0; d < rank; d++) {
			if (repeats[d] != 1) {
				summed[nsum++] = (int64_t)ndim;
				dims[ndim++] = repeats[d];
			}
			dims[ndim++] = x->shape.dim[d];
		}
		if (ndim > OM_MAX_RANK)
			om_grad_fail(g, OM_UNSUPPORTED, "its gradient supports %zu axes", ndim);
		else
			om_grad_set_input_grad(g, 0, nsum == 0 ? DY : om_emit_reduce(g, "ReduceSum", om_emit_attrs(g, "Reshape",
				OM_A(om_attr_make_int(g, "allowzero", 1)), DY, om_emit_list(g, ndim, dims)), nsum, summed, false));
		return;
	}
	for (int d = 0; d < rank; d++)
		summed[d] = 2 * d;
	if (2 * rank > OM_MAX_RANK)
		om_grad_fail(g, OM_UNSUPPORTED, "its gradient supports %d axes", 2 * rank);
	om_value *both = om_emit_attrs(g, "Concat", OM_A(om_attr_make_int(g, "axis", 1)),
		om_emit_unsqueeze(g, om_grad_forward_input(g, 1), 1, &one), om_emit_unsqueeze(g, om_emit_shape(g, x), 1, &one));
	om_value *dy = om_emit_attrs(g, "Reshape", OM_A(om_attr_make_int(g, "allowzero", 1)), DY,
		om_emit(g, "Reshape", both, om_emit_list(g, 1, &all)));
	om_grad_set_input_grad(g, 0, om_emit_reshape_as(g,
		om_emit_reduce(g, "ReduceSum", dy, (size_t)rank, summed, false), x));
}

/* ---- Concatenation and splitting. ---- */

/* The lengths of the inputs along an axis, as a list. */
static om_value *
lengths(om_grad *g, int axis)
{
	const om_op *op = om_grad_op(g);
	om_value **dim = OM_NEWN(om_grad_mem(g), om_value *, op->nin);
	int64_t *known = OM_NEWN(om_grad_mem(g), int64_t, op->nin);
	bool all = true;

	for (uint32_t k = 0; k < op->nin; k++) {
		known[k] = op->in[k]->shape.rank > axis ? op->in[k]->shape.dim[axis] : -1;
		all = all && known[k] >= 0;
	}
	if (all)
		return om_emit_list(g, op->nin, known);
	for (uint32_t k = 0; k < op->nin; k++)
		dim[k] = om_emit_dim(g, op->in[k], axis);
	return om_emit_op(g, "Concat", OM_A(om_attr_make_int(g, "axis", 0)), op->nin, dim, 1, NULL);
}

static uint32_t
count_wanted(const om_grad *g)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < om_grad_op(g)->nin; k++)
		n += om_grad_is_needed(g, k);
	return n;
}

static void
Concat_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	const int rank = rank_of(g, op->out[0]);
	const int64_t axis = axis_of(om_attr_int(op, "axis"), rank);
	int64_t at = 0;

	if (rank < 0)
		return;
	bool known = true;
	for (uint32_t k = 0; k < op->nin; k++)
		known = known && op->in[k]->shape.rank > axis && op->in[k]->shape.dim[axis] >= 0;
	if (known && count_wanted(g) < op->nin) {
		for (uint32_t k = 0; k < op->nin; k++) {
			const int64_t n = op->in[k]->shape.dim[axis];
			if (om_grad_is_needed(g, k))
				om_grad_set_input_grad(g, k, om_emit_slice(g, DY, axis, at, at + n));
			at += n;
		}
		return;
	}
	om_value **part = OM_NEWN(om_grad_mem(g), om_value *, op->nin);
	om_emit_op(g, "Split", OM_A(om_attr_make_int(g, "axis", axis)), 2, (om_value *[]){DY, lengths(g, (int)axis)}, op->nin,
		part);
	for (uint32_t k = 0; k < op->nin; k++)
		om_grad_set_input_grad(g, k, part[k]);
}

static void
Split_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	om_value **part = OM_NEWN(om_grad_mem(g), om_value *, op->nout);

	for (uint32_t k = 0; k < op->nout; k++) {
		part[k] = om_grad_output_grad(g, k);
		if (!part[k] && !op->out[k]) {
			om_grad_fail(g, OM_UNSUPPORTED, "output %u is omitted", k);
			return;
		}
		if (!part[k])
			part[k] = om_emit_zeros_as(g, op->out[k]);
	}
	om_grad_set_input_grad(g, 0, om_emit_op(g, "Concat", OM_A(om_attr_make_int(g, "axis", om_attr_int(op, "axis"))), op->nout, part, 1,
		NULL));
}

/* ---- Indexing along one axis. ---- */

/* Sum the slices of `v` along an axis that have the same entry in the list of indices; the result has
 * the length `dim`, a list of one element. */
om_value *
om_emit_put_along(om_grad *g, om_value *v, om_value *index, int64_t axis, om_value *dim)
{
	const int rank = v->shape.rank;
	int64_t front[OM_MAX_RANK], back[OM_MAX_RANK] = {0};
	const int64_t one = 1, first = 0, end = rank;

	front[0] = axis;
	for (int d = 0, k = 1; d < rank; d++)
		if (d != axis)
			front[k++] = d;
	for (int d = 0; d < rank; d++)
		back[front[d]] = d;
	if (axis)
		v = om_emit_transpose(g, v, (size_t)rank, front);
	om_value *shape = rank == 1 ? dim : om_emit_attrs(g, "Concat", OM_A(om_attr_make_int(g, "axis", 0)), dim,
		om_emit(g, "Slice", om_emit(g, "Shape", v), om_emit_list(g, 1, &one), om_emit_list(g, 1, &end), om_emit_list(g, 1, &first)));
	om_value *zero = om_emit(g, "Expand", om_emit_number(g, v, 0), shape);
	if (index->type.elem != OM_INT64)  /* the only index type of ScatterND */
		index = om_emit_cast(g, index, OM_INT64);
	v = om_emit_attrs(g, "ScatterND", OM_A(om_attr_make_string(g, "reduction", "add")), zero,
		om_emit_unsqueeze(g, index, 1, &one), v);
	return axis ? om_emit_transpose(g, v, (size_t)rank, back) : v;
}

/* 0, 1 ... up to the length of `x` along an axis. */
static om_value *
counting(om_grad *g, om_value *x, int axis)
{
	const int64_t first = 0;

	return om_emit(g, "Range", om_emit_int64(g, 0), om_emit_squeeze(g, om_emit_dim(g, x, axis), 1, &first),
		om_emit_int64(g, 1));
}

/* ---- Slices. ---- */

/* Get the sliced axes; false if they are not constant. */
static bool
cut_axes(om_grad *g, int rank, int64_t *axis, size_t *n)
{
	const om_op *op = om_grad_op(g);
	const int64_t *given;

	if (om_grad_has(g, 3)) {
		given = known_list(g, 3, n);
		for (size_t k = 0; given && k < *n && k < OM_MAX_RANK; k++)
			axis[k] = axis_of(given[k], rank);
		return given != NULL && *n <= OM_MAX_RANK;
	}
	if (!om_shape_is_known(&op->in[1]->shape) || om_shape_count(&op->in[1]->shape) > rank)
		return false;
	*n = (size_t)om_shape_count(&op->in[1]->shape);
	for (size_t k = 0; k < *n; k++)
		axis[k] = (int64_t)k;
	return true;
}

/* Does the slice read every element of a contiguous range with constant bounds?  Then the gradient is
 * zero-padded on both sides. */
static bool
is_plain(om_grad *g, const int64_t *axis, size_t n, int64_t *pads, int rank)
{
	const om_op *op = om_grad_op(g);
	size_t m;
	const int64_t *from = known_list(g, 1, &m), *step = om_grad_has(g, 4) ? known_list(g, 4, &m) : NULL;

	if (!from || (om_grad_has(g, 4) && !step))
		return false;
	for (int k = 0; k < 2 * rank; k++)
		pads[k] = 0;
	for (size_t k = 0; k < n; k++) {
		const int64_t dim = op->in[0]->shape.dim[axis[k]], left = op->out[0]->shape.dim[axis[k]];
		int64_t at = from[k] < 0 ? from[k] + dim : from[k];
		if (dim < 0 || left < 0 || (step && step[k] != 1))
			return false;
		at = at < 0 ? 0 : at > dim ? dim : at;
		pads[axis[k]] = at;
		pads[rank + axis[k]] = dim - at - left;
	}
	return true;
}

/* Element `k` of a list, as a list of one element. */
static om_value *
element(om_grad *g, om_value *list, size_t k)
{
	return om_emit_slice(g, list, 0, (int64_t)k, (int64_t)k + 1);
}

/* Element 0 of input `k`, as a position from 0 to the length of the axis. */
static om_value *
position(om_grad *g, uint32_t k, om_value *length)
{
	om_value *zero = om_emit_int64(g, 0), *at = om_emit_squeeze(g, om_emit_cast(g, om_grad_forward_input(g, k), OM_INT64), 1, &(int64_t){0});

	at = om_emit(g, "Where", om_emit(g, "Less", at, zero), om_emit(g, "Add", at, length), at);
	return om_emit(g, "Min", om_emit(g, "Max", at, zero), length);
}

/* The rows that a slice of axis 0 takes, in time that does not depend on how many `x` has: a loop may slice a few of them
 * in each iteration. */
static om_value *
rows_between(om_grad *g, om_value *x)
{
	om_value *length = om_emit_squeeze(g, om_emit_dim(g, x, 0), 1, &(int64_t){0});

	return om_emit(g, "Range", position(g, 1, length), position(g, 2, length), om_emit_int64(g, 1));
}

/* One axis after the other, the last one first: the op applied to 0, 1, 2 ... gives the indices that it
 * reads along the axis. */
static void
slice_by_index(om_grad *g, const int64_t *axis, size_t n)
{
	om_value *dy = DY, *x = om_grad_op(g)->in[0];
	const int64_t first = 0;

	if (n == 1 && axis[0] == 0 && !om_grad_has(g, 4) && x->block != om_grad_op(g)->block) {
		om_value *dx = om_emit_put_along(g, dy, rows_between(g, x), 0, om_emit_dim(g, x, 0));
		om_grad_set_input_grad(g, 0, om_grad_note_scattered(g, dx, dx));
		return;
	}
	for (size_t k = n; k-- > 0;) {
		om_value *index = om_emit(g, "Slice", counting(g, x, (int)axis[k]), element(g, om_grad_forward_input(g, 1), k),
			element(g, om_grad_forward_input(g, 2), k), om_emit_cast(g, om_emit_list(g, 1, &first),
				om_type_elem(&om_grad_op(g)->in[1]->type)),
			om_grad_has(g, 4) ? element(g, om_grad_forward_input(g, 4), k) : NULL);
		dy = om_emit_put_along(g, dy, index, axis[k], om_emit_dim(g, x, (int)axis[k]));
	}
	om_grad_set_input_grad(g, 0, dy);
}

static void
Slice_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	const int rank = rank_of(g, op->in[0]);
	int64_t axis[OM_MAX_RANK], pads[2 * OM_MAX_RANK];
	size_t n;

	if (rank < 0)
		return;
	if (!cut_axes(g, rank, axis, &n)) {
		om_grad_fail(g, OM_UNSUPPORTED, "its gradient requires static axes");
		return;
	}
	if (is_plain(g, axis, n, pads, rank))
		om_grad_set_input_grad(g, 0, om_emit(g, "Pad", DY, om_emit_list(g, 2 * (size_t)rank, pads), ZERO(DY)));
	else
		slice_by_index(g, axis, n);
}

/* ---- Padding. ---- */

/* The begin and end pad of axis `k`, of the 2n pads of n axes. */
static om_value *
pads_of(om_grad *g, size_t k, size_t n)
{
	const int64_t both[] = {(int64_t)k, (int64_t)(k + n)};

	return om_emit_attrs(g, "Gather", OM_A(om_attr_make_int(g, "axis", 0)), om_grad_forward_input(g, 1), om_emit_list(g, 2, both));
}

static bool
padded_axes(om_grad *g, int rank, int64_t *axis, size_t *n)
{
	if (om_grad_has(g, 3)) {
		const int64_t *given = known_list(g, 3, n);
		for (size_t k = 0; given && k < *n && k < OM_MAX_RANK; k++)
			axis[k] = axis_of(given[k], rank);
		return given != NULL && *n <= OM_MAX_RANK;
	}
	*n = (size_t)rank;
	for (int d = 0; d < rank; d++)
		axis[d] = d;
	return true;
}

/* An element is copied to several positions: the op applied to 0, 1, 2 ... gives the source of each
 * output position. */
static void
pad_by_index(om_grad *g, int rank)
{
	const om_op *op = om_grad_op(g);
	const om_string mode = om_attr_string(op, "mode");
	const char *text = om_strndup(om_grad_mem(g), mode.data, mode.size);
	om_value *dy = DY, *x = op->in[0];
	int64_t axis[OM_MAX_RANK];
	size_t n, npads;
	const int64_t *pads = known_list(g, 1, &npads);

	if (!padded_axes(g, rank, axis, &n)) {
		om_grad_fail(g, OM_UNSUPPORTED, "its gradient requires static axes");
		return;
	}
	for (size_t k = n; k-- > 0;) {
		if (pads && pads[k] == 0 && pads[k + n] == 0)
			continue;
		om_value *index = om_emit_attrs(g, "Pad", OM_A(om_attr_make_string(g, "mode", text)), counting(g, x, (int)axis[k]),
			pads_of(g, k, n));
		dy = om_emit_put_along(g, dy, index, axis[k], om_emit_dim(g, x, (int)axis[k]));
	}
	om_grad_set_input_grad(g, 0, dy);
}

/* Constant padding is cropped, negative padding is filled with zeros; the gradient of the constant is
 * the remainder. */
static void
unpad(om_grad *g)
{
	om_value *in[] = {DY, DO("Neg", om_grad_forward_input(g, 1)), ZERO(DY), om_grad_forward_input(g, 3)};
	om_value *back = om_emit_op(g, "Pad", NULL, in[3] ? 4 : 3, in, 1, NULL);

	if (om_grad_is_needed(g, 2)) {
		const om_attr no = om_attr_make_int(g, "keepdims", 0);
		om_value *rest = SUB(om_emit_attrs(g, "ReduceSum", OM_A(no), DY), om_emit_attrs(g, "ReduceSum", OM_A(no), back));
		om_grad_set_input_grad(g, 2, om_emit_reshape_as(g, rest, om_grad_op(g)->in[2]));
	}
	om_grad_set_input_grad(g, 0, back);
}

static void
Pad_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	const int rank = rank_of(g, op->in[0]);

	if (rank < 0)
		return;
	if (om_attr_is(op, "mode", "constant")) {
		unpad(g);
		return;
	}
	om_grad_set_input_grad(g, 2, NULL);
	if (om_grad_is_needed(g, 0))
		pad_by_index(g, rank);
}

/* ---- Blocks, sequences, triangles. ---- */

/* Channels come back as blocks first, then depth, which is the order of the mode DCR; in
 * that of CRD depth is first. */
static void
DepthToSpace_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	const int64_t size = om_attr_int(op, "blocksize"), swap[] = {0, 2, 1, 3};
	om_value *dx = om_emit_attrs(g, "SpaceToDepth", OM_A(om_attr_make_int(g, "blocksize", size)), DY);

	if (!om_attr_is(op, "mode", "DCR")) {
		const int64_t dims[] = {0, size * size, op->out[0]->shape.rank == 4 ? op->out[0]->shape.dim[1] : -1, -1};
		if (dims[2] < 0)
			om_grad_fail(g, OM_UNSUPPORTED, "its number of channels is not known");
		dx = om_emit_transpose(g, om_emit(g, "Reshape", dx, om_emit_list(g, 4, dims)), 4, swap);
	}
	om_grad_set_input_grad(g, 0, om_emit_reshape_as(g, dx, op->in[0]));
}

static void
SpaceToDepth_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	const bool depth_first = om_attr_is(op, "mode", "CRD");  /* attribute of later versions */

	om_grad_set_input_grad(g, 0, om_emit_attrs(g, "DepthToSpace",
		OM_A(om_attr_make_int(g, "blocksize", om_attr_int(op, "blocksize")),
			om_attr_make_string(g, "mode", depth_first ? "CRD" : "DCR")), DY));
}

/* Reversal is its own inverse. */
static void
ReverseSequence_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);

	om_grad_set_input_grad(g, 0, om_emit_attrs(g, "ReverseSequence",
		OM_A(om_attr_make_int(g, "batch_axis", om_attr_int(op, "batch_axis")),
			om_attr_make_int(g, "time_axis", om_attr_int(op, "time_axis"))),
		DY, om_grad_forward_input(g, 1)));
}

static void
Trilu_grad(om_grad *g)
{
	om_grad_set_input_grad(g, 0, om_emit_attrs(g, "Trilu", OM_A(om_attr_make_int(g, "upper", om_attr_int(om_grad_op(g), "upper"))),
		DY, om_grad_forward_input(g, 1)));
}

/* The gradient is padded with zeros where the input was cropped, and cropped where it was padded: on
 * the same sides. */
static void
CenterCropPad_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	om_value *x = op->in[0];
	size_t n;
	const int64_t *axes = om_attr_ints(op, "axes", &n);
	int64_t at[OM_MAX_RANK];

	if (rank_of(g, x) < 0)
		return;
	if (n == 0) {
		om_grad_set_input_grad(g, 0, om_emit(g, "CenterCropPad", DY, om_emit_shape(g, x)));
		return;
	}
	for (size_t k = 0; k < n; k++)
		at[k] = axis_of(axes[k], x->shape.rank);
	om_grad_set_input_grad(g, 0, om_emit_attrs(g, "CenterCropPad", OM_A(om_attr_make_ints(g, "axes", n, at)), DY,
		om_emit(g, "Gather", om_emit_shape(g, x), om_emit_list(g, n, at))));
}

/* ---- Ranges. ---- */

/* Where it ends is a matter of how many there are. */
static void
Range_grad(om_grad *g)
{
	om_value *dy = DY, *y = om_grad_op(g)->out[0];
	const om_attr no = om_attr_make_int(g, "keepdims", 0);

	om_grad_set_input_grad(g, 1, NULL);
	if (om_grad_is_needed(g, 0))
		om_grad_set_input_grad(g, 0, om_emit_reshape_as(g, om_emit_attrs(g, "ReduceSum", OM_A(no), dy), om_grad_op(g)->in[0]));
	if (om_grad_is_needed(g, 2)) {
		om_value *count = om_emit_cast(g, om_emit_positions(g, y, 0), om_type_elem(&dy->type));
		om_grad_set_input_grad(g, 2, om_emit_reshape_as(g, om_emit_attrs(g, "ReduceSum", OM_A(no), MUL(dy, count)),
			om_grad_op(g)->in[2]));
	}
}

/* ---- The table. ---- */

const om_gradient om_gradients_data_movement[] = {
	{.name = "Reshape", .since = 1, .rule = Reshape_grad},
	{.name = "Flatten", .since = 1, .rule = Reshape_grad},
	{.name = "Squeeze", .since = 1, .rule = Reshape_grad},
	{.name = "Unsqueeze", .since = 1, .rule = Reshape_grad},
	{.name = "Transpose", .since = 1, .rule = Transpose_grad},
	{.name = "Concat", .since = 1, .rule = Concat_grad},
	{.name = "Split", .since = 1, .rule = Split_grad},
	{.name = "Expand", .since = 8, .rule = Expand_grad},
	{.name = "Tile", .since = 6, .rule = Tile_grad},
	{.name = "CenterCropPad", .since = 18, .rule = CenterCropPad_grad},
	{.name = "DepthToSpace", .since = 1, .rule = DepthToSpace_grad},
	{.name = "SpaceToDepth", .since = 1, .rule = SpaceToDepth_grad},
	{.name = "ReverseSequence", .since = 10, .rule = ReverseSequence_grad},
	{.name = "Trilu", .since = 14, .rule = Trilu_grad},
	{.name = "Slice", .since = 10, .rule = Slice_grad},
	{.name = "Pad", .since = 11, .rule = Pad_grad},
	{.name = "Range", .since = 11, .rule = Range_grad},
	{.name = "EyeLike", .since = 9, .rule = om_grad_set_zero},
	{.name = "RandomNormalLike", .since = 1, .rule = om_grad_set_zero},
	{.name = "RandomUniformLike", .since = 1, .rule = om_grad_set_zero},
	{.name = "Bernoulli", .since = 15, .rule = om_grad_set_zero},
	{0}
};
