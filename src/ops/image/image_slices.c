/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of operators that sample images: those of other images, channels, regions or grid points. */
#include <config.h>

#include "ir/query.h"
#include "opdef/columns.h"
#include "ops/slices.h"

bool
om_slice_grid_sample(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part *p = &s->out[out];

	(void)c;
	if (p->axis < 2)
		s->in[0] = *p;
	if (p->axis != 1)
		s->in[1] = om_part_along(p, p->axis < 1 ? 0 : p->axis - 1);
	return true;
}

bool
om_slice_affine_grid(const om_op_context *c, uint32_t out, om_slice *s)
{
	int64_t size[OM_MAX_RANK];
	size_t n;

	if (s->out[out].axis != 0 || !om_in_few(c, 1, size, &n))
		return false;
	size[0] = s->out[out].hi - s->out[out].lo;
	om_slice_put_ints(c, s, 1, n, size);
	s->in[0] = s->out[out];
	return true;
}

/* Each region says which image it is of. */
bool
om_slice_regions(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part *p = &s->out[out];

	for (uint32_t k = 1; k < c->op->nin && p->axis == 0; k++)
		s->in[k] = *p;
	if (p->axis == 1)
		s->in[0] = *p;
	return p->axis < 2;
}

/* Images, and channels of the output if there is one group of the weights. */
bool
om_slice_deform_conv(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part *p = &s->out[out];

	if (p->axis == 1) {
		s->in[1] = om_part_along(p, 0);
		if (om_has_in(c, 3))
			s->in[3] = om_part_along(p, 0);
		return om_attr_int(c->op, "group") == 1;
	}
	s->in[0] = s->in[2] = *p;
	if (om_has_in(c, 4))
		s->in[4] = *p;
	return p->axis == 0;
}
