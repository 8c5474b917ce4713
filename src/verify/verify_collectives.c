/* SPDX-License-Identifier: Apache-2.0 */
/* The order of collectives: all ranks call them in the same order, which is that of the program as it came.  A plan for another order, or
 * for every order that data permit, would let ranks wait for each other, or exchange the wrong values.
 *
 * By design it shares nothing with the pass that orders ops. */
#include <config.h>

#include "onnxmem/opdef.h"
#include "opdef/transfers.h"
#include "verify/simulator.h"
#include "verify/verify_partial_order.h"

static bool
has_collective(const om_op *op)
{
	if (op->opdef && op->opdef->flags & OM_COLLECTIVE)
		return true;
	for (uint32_t k = 0; k < op->nbody; k++)
		for (const om_op *inner = op->body[k]->first; inner; inner = inner->next)
			if (has_collective(inner))
				return true;
	return false;
}

static const om_op *
next_collective(const om_op *op)
{
	while (op && !has_collective(op))
		op = op->next;
	return op;
}

static const char *
name_of(const om_op *op)
{
	return op->nout && op->out[0] ? op->out[0]->name : op->type;
}

/* Against the order in which the ops came. */
static om_status
check_moved(struct sim *c, const om_block *b, om_op *const *was)
{
	const om_op *op = next_collective(b->first);

	for (; *was; was++) {
		if (!has_collective(*was) || (*was)->block != b)
			continue;
		if (op != *was)
			return BAD(c, "the collective %s comes before %s, but the program has them in the other order, as all ranks must",
				op ? name_of(op) : "", name_of(*was));
		op = next_collective(op->next);
	}
	return OM_OK;
}

static om_status
check_schedule(struct sim *c)
{
	const om_schedule *was = c->plan->schedule ? c->plan->schedule->original : NULL;

	for (const om_block *b = was ? c->p->first : NULL; b; b = b->next)
		if (b->id < was->nblock && was->ops[b->id])
			OM_TRY(check_moved(c, b, was->ops[b->id]));
	return OM_OK;
}

om_status
om_sim_check_collectives(struct sim *c)
{
	uint32_t last = UINT32_MAX, k = 0;

	OM_TRY(om_transfers_check(c->session, c->p));
	for (const om_op *op = c->p->first->first; c->parallel_check && op; op = op->next, k++) {
		if (!has_collective(op))
			continue;
		if (last != UINT32_MAX)
			om_parallel_check_order(c->parallel_check, last, k, OM_ORDER_COLLECTIVES);
		last = k;
	}
	return check_schedule(c);
}
