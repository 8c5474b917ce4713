/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of plans for programs that run on devices in part: an op finds its inputs in the memory where it runs, and every
 * value is in an arena of the memory that it is computed in. */
#include <config.h>

#include "ir/query.h"
#include "verify/simulator.h"
#include "verify/verify_devices.h"

static bool
is_same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static const char *
text(const char *device)
{
	return device ? device : "the processor";
}

static const char *
device_of(const struct sim *c, uint32_t arena)
{
	return c->plan->arena[arena].device ? c->plan->arena[arena].device : "cpu";
}

/* Where an op reads its inputs. */
static const char *
reads_from(const om_op *op)
{
	return op->opdef && op->opdef->copies == OM_COPIES_TO_DEVICE ? NULL : op->device;
}

/* Constants are in every memory that needs them. */
static om_status
check_input(struct sim *c, const om_op *op, const om_value *v)
{
	const char *from = reads_from(op), *at = om_value_device(v);
	const bool reads = !op->opdef || !(op->opdef->flags & OM_SHAPE_ONLY);

	if (!reads || (v->is_const && !v->is_overridable) || is_same(from, at))
		return OM_OK;
	return BAD_AT(c, op, "it reads the memory of %s, but %s is in that of %s", text(from), v->name, text(at));
}

static om_status
check_place(struct sim *c, const om_value *v)
{
	const om_placement *at = &c->plan->place[v->id];
	const char *device = om_value_device(v);
	const char *arena = at->where == OM_IN_ARENA ? device_of(c, at->arena) : "cpu";

	if (c->home[v->id].bytes == 0 || v->is_const || at->where == OM_UNUSED || is_same(arena, device ? device : "cpu"))
		return OM_OK;
	return BAD(c, "%s is in the memory of %s, but is planned in that of %s", v->name, text(device), arena);
}

static om_status
check_scratch(struct sim *c, const om_op *op)
{
	const om_scratch *s = c->scratch[op->id];

	if (!s || s->bytes == 0 || is_same(device_of(c, s->arena), op->device ? op->device : "cpu"))
		return OM_OK;
	return BAD_AT(c, op, "runs on %s, but its scratch is planned in the memory of %s", text(op->device),
		device_of(c, s->arena));
}

static om_status
check_op(struct sim *c, const om_op *op)
{
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k])
			OM_TRY(check_input(c, op, op->in[k]));
	for (uint32_t k = 0; k < op->nout; k++) {
		if (op->out[k] && om_value_device(op->out[k]) && c->mover[op->out[k]->id] != OM_NOBODY)
			return BAD_AT(c, op, "%s moves with the iterations of a loop, which values on devices do not", op->out[k]->name);
		if (op->out[k])
			OM_TRY(check_place(c, op->out[k]));
	}
	return check_scratch(c, op);
}

om_status
om_sim_check_devices(struct sim *c)
{
	for (const om_block *b = c->p->first; b; b = b->next) {
		if (!om_block_is_reached(c->p, b))
			continue;
		for (const om_op *op = b->first; op; op = op->next)
			if (!op->is_folded)
				OM_TRY(check_op(c, op));
		for (uint32_t k = 0; k < b->nparam; k++)
			OM_TRY(check_place(c, b->param[k]));
		for (uint32_t k = 0; k < b->nresult; k++)
			if (om_value_device(b->result[k]))
				return BAD(c, "the result %s is in the memory of %s", b->result[k]->name, om_value_device(b->result[k]));
	}
	return OM_OK;
}
