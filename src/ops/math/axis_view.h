/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor viewed as lines along one of its axes. */
#ifndef OM_AXIS_VIEW_H
#define OM_AXIS_VIEW_H

#include "base/shape.h"
#include "onnxmem/opdef.h"

/* Element i of line (o, j) is at (o * n + i) * inner + j. */
struct om_lines {
	int64_t outer, n, inner;
};

static inline struct om_lines
om_lines_along(const om_shape *s, int axis)
{
	return (struct om_lines){om_shape_span(s, 0, axis), s->dim[axis], om_shape_span(s, axis + 1, s->rank)};
}

/* Report an axis that the first input does not have. */
static inline om_status
om_bad_axis(const om_op_context *c, int64_t axis)
{
	return om_op_fail(c->session, OM_INVALID, c->op, "axis %lld is out of range for rank %d",
		(long long)axis, c->in[0].shape.rank);
}

#endif
