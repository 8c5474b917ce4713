/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "ir/query.h"
#include "opdef/op_time.h"

static const double flops_per_ns = 50, bytes_per_ns = 10, call_ns = 300;

double
om_cost_time(const om_cost *cost)
{
	return call_ns + cost->flops / flops_per_ns + cost->bytes / bytes_per_ns;
}

double
om_op_time(const om_op *op)
{
	om_view_of view;

	if (op->nout == 1 && op->out[0] && om_op_view(op, 0, &view))
		return 0;
	const om_cost cost = om_op_cost(op);
	return om_cost_time(&cost);
}
