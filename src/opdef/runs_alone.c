/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "opdef/runs_alone.h"

static bool
has_place(const om_value *v)
{
	uint64_t bytes;

	return v->type.kind == OM_TENSOR && v->type.elem != OM_UNDEFINED && v->type.elem != OM_STRING
		&& om_tensor_bytes(v->type.elem, &v->shape, &bytes);
}

bool
om_op_runs_alone(const om_op *op)
{
	const unsigned ordered = OM_RANDOM | OM_EFFECT | OM_COLLECTIVE | OM_DATA_DEPENDENT_SHAPE | OM_NON_TENSOR;

	if (!op->opdef || op->opaque || op->nbody || op->device || op->opdef->control != OM_PLAIN || op->opdef->flags & ordered)
		return true;
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] && !has_place(op->in[k]))
			return true;
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && !has_place(op->out[k]))
			return true;
	return false;
}
