/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of indexed access: gathering and scattering are adjoint.  The gradients of elements that
 * were read several times are summed. */
#include <config.h>

#include "grad/bodies.h"
#include "grad/grad_builder.h"
#include "grad/grad_dsl.h"
#include "grad/rules/conv_geometry.h"
#include "grad/sums.h"
#include "ir/query.h"
#include "opdef/op_context.h"

#define DY  om_grad_output_grad(g, 0)

static om_value *
scatter(om_grad *g, const char *type, om_value *to, om_value *index, om_value *v)
{
	const om_attr add = om_attr_make_string(g, "reduction", "add");

	if (strcmp(type, "ScatterND") == 0)
		return om_emit_attrs(g, type, OM_A(add), to, index, v);
	return om_emit_attrs(g, type, OM_A(add, om_attr_make_int(g, "axis", om_attr_int(om_grad_op(g), "axis"))), to, index, v);
}

/* ---- Gathering. ---- */

/* The number of indices, as a list of one element. */
static om_value *
count_of(om_grad *g, om_value *index)
{
	const int64_t one = 1, n = om_shape_is_known(&index->shape) ? om_shape_count(&index->shape) : -1;

	return n >= 0 ? om_emit_list(g, 1, &n) : om_emit(g, "Reshape", om_emit(g, "Size", index), om_emit_list(g, 1, &one));
}

/* Indices of any rank replace the axis: as a list, their dims are one dim. */
static void
Gather_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	om_value *data = op->in[0], *dy = DY, *index = om_grad_forward_input(g, 1);
	const int rank = data->shape.rank, ri = op->in[1]->shape.rank;
	const int64_t all = -1;
	int axis;

	if (!om_grad_is_needed(g, 0))
		return;
	if (rank < 0 || ri < 0 || !om_axis(om_attr_int(op, "axis"), rank, &axis)) {
		om_grad_fail(g, OM_UNSUPPORTED, "the rank of an input is not known");
		return;
	}
	if (ri == 0) {
		dy = om_emit_unsqueeze(g, dy, 1, &(int64_t){axis});
	} else if (ri > 1) {
		om_value *parts[3], **part = parts;
		const int64_t zero = 0, from = axis + ri, to = rank + ri - 1, begin = axis;
		om_value *shape = om_emit_shape(g, op->out[0]);
		if (axis)
			*part++ = om_emit_slice(g, shape, zero, 0, begin);
		*part++ = count_of(g, index);
		if (from < to)
			*part++ = om_emit_slice(g, shape, zero, from, to);
		dy = om_emit_reshape(g, dy, om_emit_op(g, "Concat", OM_A(om_attr_make_int(g, "axis", 0)), (size_t)(part - parts),
			parts, 1, NULL));
	}
	if (ri != 1)
		index = om_emit(g, "Reshape", index, om_emit_list(g, 1, &all));
	om_value *put = om_emit_put_along(g, dy, index, axis, om_emit_dim(g, data, axis)), *dx = om_emit_reshape_as(g, put, data);
	om_grad_set_input_grad(g, 0, axis ? dx : om_grad_note_scattered(g, dx, put));
}

static void
GatherElements_grad(om_grad *g)
{
	om_value *dx = scatter(g, "ScatterElements", om_emit_zeros_as(g, om_grad_op(g)->in[0]), om_grad_forward_input(g, 1), DY);

	om_grad_set_input_grad(g, 0, om_grad_note_scattered(g, dx, dx));
}

/* Prepend to the indices the positions in the `batch` leading dims, which are iterated independently. */
static om_value *
with_batch(om_grad *g, om_value *index, int batch)
{
	const om_op *op = om_grad_op(g);
	om_value *part[OM_MAX_RANK + 1];
	const int rank = op->in[1]->shape.rank;
	const int64_t first = 0, zero = 0, before = rank - 1;
	const int64_t one = 1;

	om_value *shape = om_emit_attrs(g, "Concat", OM_A(om_attr_make_int(g, "axis", 0)),
		om_emit_slice(g, om_emit_shape(g, op->in[1]), zero, 0, before), om_emit_list(g, 1, &one));
	for (int d = 0; d < batch; d++) {
		int64_t dims[OM_MAX_RANK];
		for (int k = 0; k < rank; k++)
			dims[k] = k == d ? -1 : 1;
		om_value *count = om_emit(g, "Range", om_emit_int64(g, 0),
			om_emit_squeeze(g, om_emit_dim(g, op->in[1], d), 1, &first), om_emit_int64(g, 1));
		part[d] = om_emit(g, "Expand", om_emit(g, "Reshape", count, om_emit_list(g, (size_t)rank, dims)), shape);
	}
	part[batch] = index;
	return om_emit_op(g, "Concat", OM_A(om_attr_make_int(g, "axis", before)), (size_t)batch + 1, part, 1, NULL);
}

static void
GatherND_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	const int batch = (int)om_attr_int(op, "batch_dims");
	om_value *index;

	if (!om_grad_is_needed(g, 0))
		return;
	if (batch && op->in[1]->shape.rank == OM_RANK_UNKNOWN) {
		om_grad_fail(g, OM_UNSUPPORTED, "the rank of its indices is not known");
		return;
	}
	index = om_grad_forward_input(g, 1);
	om_value *dx = scatter(g, "ScatterND", om_emit_zeros_as(g, op->in[0]), batch ? with_batch(g, index, batch) : index, DY);
	om_grad_set_input_grad(g, 0, om_grad_note_scattered(g, dx, dx));
}

/* The positions where the condition is true; it may be longer than the data that it selects from. */
static void
Compress_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	om_value *x = op->in[0], *from = om_emit_list(g, 1, &(int64_t){0}), *take;
	const int64_t flat = -1;
	int axis = 0;

	if (!om_grad_is_needed(g, 0))
		return;
	if (x->shape.rank < 0 || (om_attr_has(op, "axis") && !om_axis(om_attr_int(op, "axis"), x->shape.rank, &axis))) {
		om_grad_fail(g, OM_UNSUPPORTED, "the rank of its input is not known");
		return;
	}
	om_value *dim = om_attr_has(op, "axis") ? om_emit_dim(g, x, axis)
		: om_emit_attrs(g, "ReduceProd", OM_A(om_attr_make_int(g, "keepdims", 1)), om_emit_shape(g, x));
	take = om_emit(g, "Slice", om_grad_forward_input(g, 1), from, dim, from);
	om_value *index = om_emit(g, "Reshape", om_emit(g, "NonZero", take), om_emit_list(g, 1, &flat));
	om_value *dx = om_emit_put_along(g, DY, index, axis, dim);
	om_grad_set_input_grad(g, 0, om_attr_has(op, "axis") ? dx : om_emit_reshape(g, dx, om_emit_shape(g, x)));
}

/* Each of the two values gets the sum over the positions that hold it. */
static void
OneHot_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	const int64_t two = 2, one = 1;
	om_value *part[2];

	if (!om_grad_is_needed(g, 2))
		return;
	for (int k = 0; k < 2; k++) {
		om_value *is_it = om_emit_attrs(g, "OneHot", OM_A(om_attr_make_int(g, "axis", om_attr_int(op, "axis"))), om_grad_forward_input(g, 0),
			om_grad_forward_input(g, 1), om_emit_numbers(g, DY, 1, &two, k ? (double[]){0, 1} : (double[]){1, 0}));
		part[k] = om_emit_attrs(g, "ReduceSum", OM_A(om_attr_make_int(g, "keepdims", 0)), MUL(DY, is_it));
		part[k] = om_emit(g, "Reshape", part[k], om_emit_list(g, 1, &one));
	}
	om_grad_set_input_grad(g, 2, om_emit_attrs(g, "Concat", OM_A(om_attr_make_int(g, "axis", 0)), part[0], part[1]));
}

/* ---- Scattering. ---- */

static om_value *
gather(om_grad *g, bool is_nd, om_value *from, om_value *index)
{
	if (is_nd)
		return om_emit(g, "GatherND", from, index);
	return om_emit_attrs(g, "GatherElements", OM_A(om_attr_make_int(g, "axis", om_attr_int(om_grad_op(g), "axis"))), from, index);
}

static om_value *
scatter_reduce(om_grad *g, bool is_nd, const char *how, om_value *to, om_value *index, om_value *v)
{
	const om_attr reduction = om_attr_make_string(g, "reduction", how);

	if (is_nd)
		return om_emit_attrs(g, "ScatterND", OM_A(reduction), to, index, v);
	return om_emit_attrs(g, "ScatterElements",
		OM_A(reduction, om_attr_make_int(g, "axis", om_attr_int(om_grad_op(g), "axis"))), to, index, v);
}

/* Overwritten elements have a zero gradient. */
static void
scatter_over(om_grad *g, bool is_nd)
{
	om_value *index = om_grad_forward_input(g, 1), *dy = DY;

	if (om_grad_is_needed(g, 0))
		om_grad_set_input_grad(g, 0, scatter_reduce(g, is_nd, "none", dy, index, om_emit_zeros_as(g, om_grad_op(g)->in[2])));
	if (om_grad_is_needed(g, 2))
		om_grad_set_input_grad(g, 2, gather(g, is_nd, dy, index));
}

/* Equal elements share the gradient of their maximum. */
static void
scatter_share(om_grad *g, bool is_nd)
{
	om_value *index = om_grad_forward_input(g, 1), *y = om_grad_forward_output(g, 0), *dy = DY;
	om_value *old = AS_NUMBER(om_emit(g, "Equal", om_grad_forward_input(g, 0), y), dy);
	om_value *new = AS_NUMBER(om_emit(g, "Equal", om_grad_forward_input(g, 2), gather(g, is_nd, y, index)), dy);

	dy = DIV(dy, scatter_reduce(g, is_nd, "add", old, index, new));
	if (om_grad_is_needed(g, 0))
		om_grad_set_input_grad(g, 0, MUL(dy, old));
	if (om_grad_is_needed(g, 2))
		om_grad_set_input_grad(g, 2, MUL(gather(g, is_nd, dy, index), new));
}

/* The gradient of an update is the product of all others at the same position: computed as in
 * ReduceProd, because some of them may be zero. */
static void
scatter_factors(om_grad *g, bool is_nd)
{
	om_value *index = om_grad_forward_input(g, 1), *v = om_grad_forward_input(g, 2), *dy = DY;

	if (om_grad_is_needed(g, 0))
		om_grad_set_input_grad(g, 0, scatter_reduce(g, is_nd, "mul", dy, index, v));
	if (!om_grad_is_needed(g, 2))
		return;
	om_value *is_zero = om_emit(g, "Equal", v, ZERO(v)), *data = om_grad_op(g)->in[0];
	om_value *zeros = gather(g, is_nd,
		scatter_reduce(g, is_nd, "add", om_emit_zeros_as(g, data), index, AS_NUMBER(is_zero, v)), index);
	om_value *factors = WHERE(is_zero, om_emit_number(g, v, 1), v);
	om_value *product = MUL(dy, scatter_reduce(g, is_nd, "mul", om_grad_forward_input(g, 0), index, factors));
	product = gather(g, is_nd, product, index);
	om_value *but_one = KEEP(om_emit(g, "And", ABOVE(zeros, 0.5), BELOW(zeros, 1.5)), product);
	om_grad_set_input_grad(g, 2, WHERE(is_zero, but_one, DIV(KEEP(BELOW(zeros, 0.5), product), factors)));
}

static void
scatter_back(om_grad *g, bool is_nd)
{
	const om_op *op = om_grad_op(g);

	if (om_attr_is(op, "reduction", "add")) {
		om_grad_set_input_grad(g, 0, DY);
		if (om_grad_is_needed(g, 2))
			om_grad_set_input_grad(g, 2, gather(g, is_nd, DY, om_grad_forward_input(g, 1)));
	} else if (om_attr_is(op, "reduction", "max") || om_attr_is(op, "reduction", "min")) {
		scatter_share(g, is_nd);
	} else if (om_attr_is(op, "reduction", "mul")) {
		scatter_factors(g, is_nd);
	} else {
		scatter_over(g, is_nd);
	}
}

static void ScatterElements_grad(om_grad *g)  { scatter_back(g, false); }
static void ScatterND_grad(om_grad *g)        { scatter_back(g, true); }

/* The position along the axis of each element of the update. */
static om_value *
places_in_cache(om_grad *g, int rank, int axis)
{
	const om_op *op = om_grad_op(g);
	int64_t along[OM_MAX_RANK], batch[OM_MAX_RANK];
	om_value *at = om_emit_positions(g, op->in[1], axis);

	for (int d = 0; d < rank; d++) {
		along[d] = d == axis ? -1 : 1;
		batch[d] = d == 0 ? -1 : 1;
	}
	at = om_emit(g, "Reshape", at, om_emit_list(g, (size_t)rank, along));
	if (om_grad_has(g, 2))
		at = ADD(at, om_emit(g, "Reshape", om_grad_forward_input(g, 2), om_emit_list(g, (size_t)rank, batch)));
	if (om_attr_is(op, "mode", "circular"))
		at = om_emit(g, "Mod", at, om_emit_length(g, op->in[0], axis));
	return om_emit(g, "Expand", at, om_emit_shape(g, op->in[1]));
}

/* Overwritten elements have a zero gradient: the positions of an update are unique. */
static void
TensorScatter_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	const int rank = op->in[0]->shape.rank;
	int axis;

	if (rank < 0 || !om_axis(om_attr_int(op, "axis"), rank, &axis)) {
		om_grad_fail(g, OM_UNSUPPORTED, "the rank of its cache is not known");
		return;
	}
	const om_attr along = om_attr_make_int(g, "axis", axis);
	om_value *at = places_in_cache(g, rank, axis);
	if (om_grad_is_needed(g, 0))
		om_grad_set_input_grad(g, 0, om_emit_attrs(g, "ScatterElements", OM_A(along), DY, at, om_emit_zeros_as(g, op->in[1])));
	if (om_grad_is_needed(g, 1))
		om_grad_set_input_grad(g, 1, om_emit_attrs(g, "GatherElements", OM_A(along), DY, at));
}

/* ---- The table. ---- */

const om_gradient om_gradients_gather_scatter[] = {
	{.name = "Compress", .since = 9, .rule = Compress_grad},
	{.name = "Gather", .since = 1, .rule = Gather_grad},
	{.name = "GatherElements", .since = 11, .rule = GatherElements_grad},
	{.name = "GatherND", .since = 12, .rule = GatherND_grad},
	{.name = "OneHot", .since = 9, .rule = OneHot_grad},
	{.name = "ScatterElements", .since = 16, .rule = ScatterElements_grad},
	{.name = "ScatterND", .since = 16, .rule = ScatterND_grad},
	{.name = "TensorScatter", .since = 24, .rule = TensorScatter_grad},
	{0}
};
