/* The op of a step, and how ops are called in messages. */
#include <config.h>

#include <stdarg.h>
#include <stdio.h>

#include "ir/steps.h"

static const om_op *
op_at(const om_block *b, uint32_t step)
{
	for (const om_op *op = b->first; op; op = op->next) {
		if (step < op->step || step > op->end)
			continue;
		for (uint32_t k = 0; k < op->nbody; k++)
			if (step >= op->body[k]->begin && step <= op->body[k]->end) {
				const om_op *inner = op_at(op->body[k], step);
				return inner ? inner : op;
			}
		return op;
	}
	return NULL;
}

const om_op *
om_op_at_step(const om_prog *p, uint32_t step)
{
	return op_at(p->first, step);
}

const char *
om_op_label(const om_op *op)
{
	if (*op->name)
		return op->name;
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k])
			return op->out[k]->name;
	return op->type;
}

om_status
om_op_fail(om_session *s, om_status st, const om_op *op, const char *fmt, ...)
{
	char what[1024];
	va_list ap;

	if (!s)  /* a query, not a run: see om_op_query() */
		return st;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	if (*op->name)
		return om_fail(s, st, "%s (node %s): %s", op->type, op->name, what);
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k])
			return om_fail(s, st, "%s (node of %s): %s", op->type, op->out[k]->name, what);
	return om_fail(s, st, "%s: %s", op->type, what);
}
