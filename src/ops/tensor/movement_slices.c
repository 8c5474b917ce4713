/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of operators that move elements. */
#include <config.h>

#include "base/shape.h"
#include "ir/query.h"
#include "opdef/columns.h"
#include "ops/slices.h"

bool
om_slice_transpose(const om_op_context *c, uint32_t out, om_slice *s)
{
	size_t n;
	const int64_t *perm = om_attr_ints(c->op, "perm", &n);
	const om_part *p = &s->out[out];

	s->in[0] = om_part_along(p, om_attr_has(c->op, "perm") ? (int)perm[p->axis] : c->in[0].shape.rank - 1 - p->axis);
	return true;
}

/* ---- Reshape. ---- */

/* The axis of the input whose elements begin where those of axis `axis` of the output do: as many elements are before one
 * position of either.  -1: there is none. */
static int
same_start(const om_shape *in, const om_shape *out, int axis)
{
	const int64_t before = om_shape_span(out, 0, axis);

	for (int k = 0; k < in->rank; k++)
		if (in->dim[k] != 1 && om_shape_span(in, 0, k) == before)
			return k;
	return -1;
}

/* The part of input 0 of an op that keeps the order of the elements.  A position of the output consists of whole
 * positions of the input, or the other way round; then a part may compute a surplus. */
static bool
reshape_part(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_shape *x = &c->in[0].shape, *y = &c->out[0].shape;
	const om_part *p = &s->out[out];

	if (y->dim[p->axis] == 1)
		return true;
	const int k = same_start(x, y, p->axis);
	if (k < 0 || om_shape_count(x) == 0)
		return false;
	const int64_t coarse = om_shape_span(y, p->axis + 1, y->rank), fine = om_shape_span(x, k + 1, x->rank);
	if (coarse % fine == 0) {
		s->in[0] = om_part_scaled(p, k, coarse / fine);
		return true;
	}
	if (fine % coarse != 0)
		return false;
	const om_part units = om_slice_units(s, p, fine / coarse);
	s->in[0] = om_part_along(&units, k);
	return true;
}

/* The requested dims: an attribute until version 4, then an input. */
bool
om_slice_reshape(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part *p = &s->out[out];
	om_shape y = c->out[0].shape;

	if (!reshape_part(c, out, s))
		return false;
	y.dim[p->axis] = p->hi - p->lo + s->before + s->after;
	if (c->op->nin >= 2)
		om_slice_put_ints(c, s, 1, (size_t)y.rank, y.dim);
	else
		om_slice_set_ints(c, s, "shape", (size_t)y.rank, y.dim);
	return true;
}

bool
om_slice_flatten(const om_op_context *c, uint32_t out, om_slice *s)
{
	return reshape_part(c, out, s);
}

/* Without a list of axes, a part of one element would lose its axis: the axes are listed. */
bool
om_slice_squeeze(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_shape *x = &c->in[0].shape;
	int64_t axes[OM_MAX_RANK];
	size_t n = 0;

	if (!reshape_part(c, out, s))
		return false;
	if (om_has_in(c, 1) || om_attr_has(c->op, "axes"))
		return true;
	for (int k = 0; k < x->rank; k++)
		if (x->dim[k] == 1)
			axes[n++] = k;
	if (c->op->opdef->max_in > 1)
		om_slice_put_ints(c, s, 1, n, axes);
	else
		om_slice_set_ints(c, s, "axes", n, axes);
	return true;
}

/* ---- Concat, Split. ---- */

bool
om_slice_concat(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part *p = &s->out[out];
	int64_t from = 0;
	int axis;

	if (!om_axis(om_attr_int(c->op, "axis"), c->out[0].shape.rank, &axis))
		return false;
	for (uint32_t k = 0; k < c->op->nin; k++) {
		const int64_t n = c->in[k].shape.dim[axis];
		s->in[k] = p->axis == axis ? om_part_within(p, axis, from, n) : *p;
		from += n;
	}
	return true;
}

/* The element at which output `out` begins; false if an output before it has no shape. */
static bool
split_start(const om_op_context *c, uint32_t out, int axis, int64_t *from)
{
	*from = 0;
	for (uint32_t k = 0; k < out; k++) {
		if (!om_has_out(c, k))
			return false;
		*from += c->out[k].shape.dim[axis];
	}
	return true;
}

bool
om_slice_split(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part p = s->out[out];
	int64_t from;
	int axis;

	if (!om_axis(om_attr_int(c->op, "axis"), c->in[0].shape.rank, &axis))
		return false;
	if (p.axis != axis)
		return om_slice_first(c, out, s);
	if (!split_start(c, out, axis, &from))
		return false;
	s->in[0] = om_part_of(axis, from + p.lo, from + p.hi);
	for (uint32_t k = 0; k < c->op->nout; k++)
		s->out[k] = k == out ? p : om_part_none();
	om_slice_become(s, "Identity", 1);
	return true;
}

/* ---- Expand, Tile. ---- */

bool
om_slice_expand(const om_op_context *c, uint32_t out, om_slice *s)
{
	om_shape y = c->out[0].shape;

	om_slice_align(c, out, s, 0);
	y.dim[s->out[out].axis] = s->out[out].hi - s->out[out].lo;
	om_slice_put_ints(c, s, 1, (size_t)y.rank, y.dim);
	return true;
}

/* One element that is repeated is repeated less often. */
bool
om_slice_tile(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_shape *x = &c->in[0].shape, *y = &c->out[0].shape;
	const om_part *p = &s->out[out];
	int64_t times[OM_MAX_RANK];

	if (x->dim[p->axis] == y->dim[p->axis])
		return om_slice_first(c, out, s);
	if (x->dim[p->axis] != 1 || c->op->nin != 2 || om_shape_count(x) == 0)
		return false;
	for (int k = 0; k < x->rank; k++)
		times[k] = k == p->axis ? p->hi - p->lo : y->dim[k] / x->dim[k];
	om_slice_put_ints(c, s, 1, (size_t)x->rank, times);
	return true;
}

/* ---- Blocks, triangles, sequences. ---- */

/* Each position of the input is `each` positions of the output. */
static bool
spread_part(om_slice *s, uint32_t out, int64_t each)
{
	s->in[0] = om_slice_units(s, &s->out[out], each);
	return true;
}

/* Each position of the output is `each` positions of the input. */
static bool
gathered_part(om_slice *s, uint32_t out, int64_t each)
{
	s->in[0] = om_part_scaled(&s->out[out], s->out[out].axis, each);
	return true;
}

/* In mode DCR the channels that become one channel are not adjacent. */
static bool
is_by_column(const om_op_context *c)
{
	return om_attr_is(c->op, "mode", "CRD");
}

bool
om_slice_depth_to_space(const om_op_context *c, uint32_t out, om_slice *s)
{
	const int64_t b = om_attr_int(c->op, "blocksize");

	if (s->out[out].axis >= 2)
		return spread_part(s, out, b);
	if (s->out[out].axis == 1)
		return is_by_column(c) && gathered_part(s, out, b * b);
	return om_slice_first(c, out, s);
}

bool
om_slice_space_to_depth(const om_op_context *c, uint32_t out, om_slice *s)
{
	const int64_t b = om_attr_int(c->op, "blocksize");

	if (s->out[out].axis >= 2)
		return gathered_part(s, out, b);
	if (s->out[out].axis == 1)
		return is_by_column(c) && spread_part(s, out, b * b);
	return om_slice_first(c, out, s);
}

/* A part begins at another place of the diagonal. */
bool
om_slice_trilu(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part *p = &s->out[out];
	const int rank = c->in[0].shape.rank;
	double k = 0;

	if (om_has_in(c, 1) && !om_in_scalar(c, 1, &k))
		return false;
	if (p->axis == rank - 2)
		om_slice_put_int(c, s, 1, (int64_t)k + p->lo);
	if (p->axis == rank - 1)
		om_slice_put_int(c, s, 1, (int64_t)k - p->lo);
	return om_slice_first(c, out, s);
}

bool
om_slice_reverse(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part *p = &s->out[out];

	if (p->axis == om_attr_int(c->op, "batch_axis"))
		s->in[1] = om_part_along(p, 0);
	return om_slice_beside(c, out, s, (int)om_attr_int(c->op, "time_axis"));
}

/* Axes that are not in the list keep their size. */
bool
om_slice_center(const om_op_context *c, uint32_t out, om_slice *s)
{
	size_t n;
	const int64_t *axes = om_attr_ints(c->op, "axes", &n);
	const int rank = c->in[0].shape.rank;

	for (size_t k = 0; k < n; k++)
		if ((axes[k] + rank) % rank == s->out[out].axis)
			return false;
	return om_attr_has(c->op, "axes") && om_slice_first(c, out, s);
}
