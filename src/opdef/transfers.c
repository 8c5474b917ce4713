/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives that are only started; see transfers.h. */
#include <config.h>

#include <string.h>

#include "ir/query.h"
#include "onnxmem/opdef.h"
#include "opdef/dist_domain.h"
#include "opdef/op_context.h"
#include "opdef/transfers.h"

static bool
is_wait(const om_op *op)
{
	return op && strcmp(op->type, "Wait") == 0 && strcmp(op->domain, OM_DIST_DOMAIN) == 0;
}

/* The input that a transfer reads beside its output: that of an AllReduce is copied to the output first. */
static const om_value *
read_by_transfer(const om_op *op)
{
	return strcmp(op->type, "AllReduce") == 0 ? NULL : op->in[0];
}

static bool
reads(const om_op *op, const om_value *v)
{
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] == v)
			return true;
	return false;
}

static om_status
check_transfer(om_session *s, const om_op *start)
{
	const om_value *v = start->out[0], *input = read_by_transfer(start);
	uint32_t n = 0;

	for (const om_use *u = v->first_use; u; u = u->next, n++) {
		if (!is_wait(u->op) || u->index != 0 || u->op->block != start->block)
			return om_op_fail(s, OM_INVALID, start, "%s is read before the end of its transfer: only a Wait of the same block may "
				"read it", v->name);
		if (input && !reads(u->op, input))
			return om_op_fail(s, OM_INVALID, start, "the transfer reads %s, which has to be an input of the Wait for %s, too",
				input->name, v->name);
	}
	return n == 1 ? OM_OK : om_op_fail(s, OM_INVALID, start, "a transfer is ended by one Wait, and that of %s by %u", v->name, n);
}

om_status
om_transfers_check(om_session *s, const om_prog *p)
{
	for (const om_block *b = p->first; b; b = b->next)
		for (const om_op *op = b->first; op; op = op->next)
			if (op->opdef && op->opdef->flags & OM_COLLECTIVE && om_attr_int(op, OM_ATTR_ASYNC))
				OM_TRY(check_transfer(s, op));
	return OM_OK;
}
