/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of ranks: the loss is the sum of the losses of all ranks.
 *
 * An element of a rank contributes to the sums of all ranks, so that the gradient of AllReduce is the sum of the gradients of
 * all ranks, which AllReduce computes.  AllGather and ReduceScatter are the gradients of each other. */
#include <config.h>

#include "grad/grad_builder.h"
#include "grad/gradients.h"
#include "ir/query.h"
#include "opdef/dist_domain.h"

/* The operator `type` with the group, the number of ranks and the order of the forward op. */
static om_value *
through(om_grad *g, const char *type, bool sums, om_value *dy)
{
	const om_op *op = om_grad_op(g);
	om_attr attr[4] = {0};
	size_t n = 0, ngroup;
	const int64_t *group = om_attr_ints(op, "group", &ngroup), ranks = om_attr_int(op, "ranks");

	if (om_attr_has(op, "group"))
		attr[n++] = OM_MAKE_INTS("group", ngroup, group);
	attr[n] = (om_attr){.name = "ranks", .kind = OM_ATTR_INT, .n = 1, .i = &ranks};
	n++;
	const int64_t ordered = om_attr_has(op, "ordered") && om_attr_int(op, "ordered");
	if (sums)
		attr[n++] = (om_attr){.name = "ordered", .kind = OM_ATTR_INT, .n = 1, .i = &ordered};
	om_op *back = om_emit_open(g, OM_DIST_DOMAIN, type, attr, 1, &dy, 1);
	om_emit_done(g, back);
	return back->out[0];
}

static void
AllReduce_grad(om_grad *g)
{
	om_grad_set_input_grad(g, 0, through(g, "AllReduce", true, om_grad_output_grad(g, 0)));
}

static void
ReduceScatter_grad(om_grad *g)
{
	om_grad_set_input_grad(g, 0, through(g, "AllGather", false, om_grad_output_grad(g, 0)));
}

static void
AllGather_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);
	om_value *dy = om_grad_output_grad(g, 0);

	/* In the shape of a second input, whose elements are not read, the rows of ranks are flat. */
	if (!om_op_input(op, 1)) {
		om_grad_set_input_grad(g, 0, through(g, "ReduceScatter", true, dy));
		return;
	}
	dy = om_emit_reshape(g, dy, om_emit_list(g, 1, &(int64_t){-1}));
	om_grad_set_input_grad(g, 0, om_emit_reshape_as(g, through(g, "ReduceScatter", true, dy), op->in[0]));
	om_grad_set_input_grad(g, 1, om_emit_zeros_as(g, op->in[1]));
}

/* The gradient of a collective that was only started is a whole one.  Elements of further inputs are not read. */
static void
Wait_grad(om_grad *g)
{
	const om_op *op = om_grad_op(g);

	om_grad_set_input_grad(g, 0, om_grad_output_grad(g, 0));
	for (uint32_t k = 1; k < op->nin; k++)
		if (op->in[k])
			om_grad_set_input_grad(g, k, om_emit_zeros_as(g, op->in[k]));
}

/* ---- The table. ---- */

const om_gradient om_gradients_collectives[] = {
	{.domain = OM_DIST_DOMAIN, .name = "AllReduce", .since = 1, .rule = AllReduce_grad},
	{.domain = OM_DIST_DOMAIN, .name = "ReduceScatter", .since = 1, .rule = ReduceScatter_grad},
	{.domain = OM_DIST_DOMAIN, .name = "AllGather", .since = 1, .rule = AllGather_grad},
	{.domain = OM_DIST_DOMAIN, .name = "Wait", .since = 1, .rule = Wait_grad},
	{0}
};
