/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes that elements of inputs decide.
 *
 * A plan has a size for every output.  Where that size follows from types, shapes and constants, inference has proven
 * it.  Otherwise it rests on what the file declares, and the elements may imply another one: the kernel would then
 * write past its output, or leave a part of it unwritten.  So the shapes of such an op are inferred again once the
 * elements are known, before its kernel is called or a view taken, and no kernel has to defend itself. */
#include <config.h>

#include "base/shape.h"
#include "opdef/op_context.h"

static bool
is_planned_as(const om_shape *found, const om_shape *planned)
{
	bool same = found->rank == planned->rank;

	for (int d = 0; same && d < planned->rank; d++)
		same = found->dim[d] == planned->dim[d];
	return same;
}

om_status
om_op_check_shapes(const om_op_context *planned)
{
	const om_op *op = planned->op;
	om_op_context c = *planned;
	char want[256], got[256];

	if (!op->opdef->infer || op->opdef->flags & OM_DATA_DEPENDENT_SHAPE)
		return OM_OK;
	c.keep = c.mem;
	c.out = OM_NEWN(c.mem, om_tensor, op->nout);
	c.out_type = OM_NEWN(c.mem, om_type, op->nout);
	for (uint32_t k = 0; k < op->nout; k++)
		c.out[k] = (om_tensor){.shape = om_shape_unknown()};
	OM_TRY(op->opdef->infer(&c));
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && op->out[k]->type.kind == OM_TENSOR && !is_planned_as(&c.out[k].shape, &planned->out[k].shape))
			return om_op_fail(c.session, OM_RUN, op, "output %u was planned as %s, but the inputs make it %s", k,
				om_shape_text(&planned->out[k].shape, want, sizeof want),
				om_shape_text(&c.out[k].shape, got, sizeof got));
	return OM_OK;
}
