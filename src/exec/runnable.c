/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that the program can be run.  Only ops that its results depend on are considered. */
#include <config.h>

#include "base/guard.h"
#include "exec/runnable.h"
#include "ir/operators.h"
#include "onnxmem/opdef.h"

static bool
is_needed(const om_op *op, const bool *wanted)
{
	if (op->opdef && op->opdef->flags & OM_EFFECT)
		return true;
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && wanted[op->out[k]->id])
			return true;
	return false;
}

/* Already computed: not executed in a run. */
static bool
is_known(const om_op *op)
{
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && !op->out[k]->data)
			return false;
	return op->is_folded;
}

static om_status
refuse(om_session *s, const om_op *op, const char *why)
{
	const char *first = "";

	for (uint32_t k = 0; k < op->nout && !*first; k++)
		if (op->out[k])
			first = op->out[k]->name;
	return om_fail(s, OM_UNSUPPORTED, "node %s%s: operator %s%s%s version %d %s",
		*op->name ? op->name : "of ", *op->name ? "" : first,
		op->domain, *op->domain ? "::" : "", op->type, op->version, why);
}

static om_status
check_op(om_session *s, const om_op *op)
{
	if (op->call && !op->opdef)
		return refuse(s, op, "is a function that was not inlined");
	if (op->opaque)
		return om_fail(s, OM_UNSUPPORTED, "%s", op->opaque);
	if (!op->opdef && op->operators->exists(op->domain, op->type))
		return refuse(s, op, "is not known, but other versions are");
	if (!op->opdef)
		return refuse(s, op, "is not known");
	if (!op->opdef->cpu && op->opdef->control == OM_PLAIN)
		return refuse(s, op, "has no kernel");
	return OM_OK;
}

/* In reverse order, so that the users of an op are visited before it.  The last unsupported op
 * visited is the first in the program. */
static om_status
check_block(om_session *s, const om_block *b, bool *wanted)
{
	om_status st = OM_OK;

	for (uint32_t k = 0; k < b->nresult; k++)
		wanted[b->result[k]->id] = true;
	for (const om_op *op = b->last; op; op = op->prev) {
		if (!is_needed(op, wanted) || is_known(op))
			continue;
		for (uint32_t k = 0; k < op->nin; k++)
			if (op->in[k])
				wanted[op->in[k]->id] = true;
		for (uint32_t k = op->nbody; k-- > 0;)
			if (check_block(s, op->body[k], wanted) != OM_OK)
				st = OM_UNSUPPORTED;
		if (check_op(s, op) != OM_OK)
			st = OM_UNSUPPORTED;
	}
	return st;
}

static om_status
prog_supported_guarded(om_session *s, const om_prog *p)
{
	om_arena *mem = om_arena_new();
	const om_status st = check_block(s, p->first, OM_NEWN(mem, bool, p->nvalue + 1));

	om_arena_free(mem);
	return st;
}

om_status
om_prog_is_runnable(om_session *s, const om_prog *p)
{
	OM_GUARDED(s, prog_supported_guarded(s, p));
}
