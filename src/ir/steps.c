/* The op of a step, and how ops are called in messages. */
#include <config.h>

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
