/* SPDX-License-Identifier: Apache-2.0 */
/* See batch_mean.h. */
#include <config.h>

#include <string.h>

#include "ir/query.h"
#include "onnxmem/opdef.h"
#include "opdef/batch_mean.h"

bool
om_op_mean_is_of_samples(const om_op *op)
{
	bool may_ignore = false;

	for (const om_attr_spec *a = op->opdef ? op->opdef->attrs : NULL; a && a->name; a++)
		may_ignore |= strcmp(a->name, "ignore_index") == 0;
	return !may_ignore || !om_attr_is(op, "reduction", "mean") || (!om_attr_has(op, "ignore_index") && !om_op_input(op, 2));
}
