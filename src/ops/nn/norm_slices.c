/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of normalizations: along axes over which no moments are computed. */
#include <config.h>

#include "ir/query.h"
#include "ops/nn/norm.h"
#include "ops/slices.h"

/* Statistics are of channels or, in old versions, of all elements of a sample. */
bool
om_slice_batch_norm(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part p = s->out[out];
	const bool is_training = om_batch_norm_is_training(c);

	if (out != 0 || (p.axis != 1 && is_training) || (p.axis > 0 && om_batch_norm_is_by_element(c)))
		return false;
	s->in[0] = p;
	for (uint32_t k = 1; k < 5; k++)
		om_slice_channels(c, out, s, k, 1);
	for (uint32_t k = 1; k < c->op->nout && p.axis == 1; k++)
		s->out[k] = om_part_along(&p, 0);
	return true;
}

bool
om_slice_layer_norm(const om_op_context *c, uint32_t out, om_slice *s)
{
	int axis;

	if (!om_axis(om_attr_int(c->op, "axis"), c->in[0].shape.rank, &axis) || s->out[out].axis >= axis)
		return false;
	for (uint32_t k = 1; k < c->op->nin; k++)
		if (om_has_in(c, k))
			om_slice_align(c, out, s, k);
	return om_slice_first(c, out, s);
}

bool
om_slice_instance_norm(const om_op_context *c, uint32_t out, om_slice *s)
{
	om_slice_channels(c, out, s, 1, 1);
	om_slice_channels(c, out, s, 2, 1);
	return s->out[out].axis < 2 && om_slice_first(c, out, s);
}

/* Whole groups of channels; until version 20 scale and bias have an element for each group. */
static bool
group_part(const om_op_context *c, uint32_t out, om_slice *s)
{
	const int64_t groups = om_attr_int(c->op, "num_groups"), each = c->in[0].shape.dim[1] / groups;
	const om_part part = om_slice_units(s, &s->out[out], each);

	s->in[0] = om_part_scaled(&part, 1, each);
	s->in[1] = s->in[2] = om_part_scaled(&part, 0, c->op->version < 21 ? 1 : each);
	om_slice_set_int(c, s, "num_groups", part.hi - part.lo);
	return true;
}

bool
om_slice_group_norm(const om_op_context *c, uint32_t out, om_slice *s)
{
	if (s->out[out].axis == 1)
		return group_part(c, out, s);
	return om_slice_batch(c, out, s);
}

bool
om_slice_lp_norm(const om_op_context *c, uint32_t out, om_slice *s)
{
	int axis;

	return om_axis(om_attr_int(c->op, "axis"), c->in[0].shape.rank, &axis) && om_slice_beside(c, out, s, axis);
}

bool
om_slice_mean_variance(const om_op_context *c, uint32_t out, om_slice *s)
{
	bool over[OM_MAX_RANK];

	return om_mean_variance_axes(c, over) == OM_OK && !over[s->out[out].axis] && om_slice_first(c, out, s);
}
