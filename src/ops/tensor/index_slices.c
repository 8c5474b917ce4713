/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of operators that read or write elements at indices. */
#include <config.h>

#include "ir/query.h"
#include "ops/slices.h"

static bool
axis_of(const om_op_context *c, int rank, int *axis)
{
	return om_axis(om_attr_int(c->op, "axis"), rank, axis);
}

bool
om_slice_gather(const om_op_context *c, uint32_t out, om_slice *s)
{
	const int n = c->in[1].shape.rank;
	const om_part *p = &s->out[out];
	int axis;

	if (!axis_of(c, c->in[0].shape.rank, &axis))
		return false;
	if (p->axis >= axis && p->axis < axis + n)
		s->in[1] = om_part_along(p, p->axis - axis);
	else
		s->in[0] = om_part_along(p, p->axis < axis ? p->axis : p->axis - n + 1);
	return true;
}

/* The data may be longer than the indices: its other axes are read from their start. */
bool
om_slice_gather_elements(const om_op_context *c, uint32_t out, om_slice *s)
{
	int axis;

	if (!axis_of(c, c->in[0].shape.rank, &axis))
		return false;
	s->in[1] = s->out[out];
	if (s->out[out].axis != axis)
		s->in[0] = s->out[out];
	return true;
}

bool
om_slice_gather_nd(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_shape *at = &c->in[1].shape;
	const int batch = (int)om_attr_int(c->op, "batch_dims"), named = (int)at->dim[at->rank - 1];
	const om_part *p = &s->out[out];

	if (p->axis < at->rank - 1)
		s->in[1] = *p;
	if (p->axis < batch)
		s->in[0] = *p;
	if (p->axis >= at->rank - 1)
		s->in[0] = om_part_along(p, batch + named + p->axis - (at->rank - 1));
	return true;
}

bool
om_slice_one_hot(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part *p = &s->out[out];
	int axis;

	if (!axis_of(c, c->out[0].shape.rank, &axis) || p->axis == axis)
		return false;
	s->in[0] = om_part_along(p, p->axis - (p->axis > axis));
	return true;
}

bool
om_slice_scatter(const om_op_context *c, uint32_t out, om_slice *s)
{
	const int d = s->out[out].axis;
	int axis;

	if (!axis_of(c, c->in[0].shape.rank, &axis) || d == axis || c->in[1].shape.dim[d] != c->in[0].shape.dim[d])
		return false;
	s->in[0] = s->in[1] = s->in[2] = s->out[out];
	return true;
}

bool
om_slice_scatter_nd(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_shape *at = &c->in[1].shape;
	const om_part *p = &s->out[out];
	const int named = (int)at->dim[at->rank - 1];

	if (p->axis < named)
		return false;
	s->in[0] = *p;
	s->in[2] = om_part_along(p, at->rank - 1 + p->axis - named);
	return true;
}

bool
om_slice_tensor_scatter(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part *p = &s->out[out];
	int axis;

	if (!axis_of(c, c->in[0].shape.rank, &axis) || p->axis == axis)
		return false;
	s->in[0] = s->in[1] = *p;
	if (om_has_in(c, 2) && p->axis == 0)
		s->in[2] = *p;
	return true;
}
