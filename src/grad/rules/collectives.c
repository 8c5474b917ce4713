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
static void
through(om_grad *g, const char *type, bool sums)
{
	const om_op *op = om_grad_op(g);
	om_value *dy = om_grad_output_grad(g, 0);
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
	om_grad_set_input_grad(g, 0, back->out[0]);
}

static void
AllReduce_grad(om_grad *g)
{
	through(g, "AllReduce", true);
}

static void
ReduceScatter_grad(om_grad *g)
{
	through(g, "AllGather", false);
}

static void
AllGather_grad(om_grad *g)
{
	if (om_op_input(om_grad_op(g), 1))
		om_grad_fail(g, OM_UNSUPPORTED, "it gathers in the shape of its second input");
	else
		through(g, "ReduceScatter", true);
}

/* ---- The table. ---- */

const om_gradient om_gradients_collectives[] = {
	{.domain = OM_DIST_DOMAIN, .name = "AllReduce", .since = 1, .rule = AllReduce_grad},
	{.domain = OM_DIST_DOMAIN, .name = "ReduceScatter", .since = 1, .rule = ReduceScatter_grad},
	{.domain = OM_DIST_DOMAIN, .name = "AllGather", .since = 1, .rule = AllGather_grad},
	{0}
};
