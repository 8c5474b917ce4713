/* SPDX-License-Identifier: Apache-2.0 */
/* Orders of execution, stored outside of the program. */
#include <config.h>

#include "ir/schedule.h"
#include "onnxmem/assignment.h"

/* As om_timeline().  Recursion is as deep as bodies are nested; loaders limit that. */
static uint32_t
number(om_schedule *s, const om_block *b, uint32_t step)
{
	s->of_block[b->id].first = step;
	for (om_op *const *at = s->ops[b->id]; *at; at++) {
		om_steps *own = &s->of_op[(*at)->id];
		own->first = step++;
		for (uint32_t k = 0; k < (*at)->nbody; k++)
			step = number(s, (*at)->body[k], step);
		own->last = (*at)->nbody ? step++ : own->first;
	}
	s->of_block[b->id].last = step++;
	return step;
}

static om_schedule *
new_schedule(const om_prog *p, om_arena *mem)
{
	om_schedule *s = OM_NEW(mem, om_schedule);

	*s = (om_schedule){.nop = p->nop, .nblock = p->nblock, .ops = OM_NEWN(mem, om_op **, p->nblock),
		.of_op = OM_NEWN(mem, om_steps, p->nop), .of_block = OM_NEWN(mem, om_steps, p->nblock)};
	return s;
}

om_schedule *
om_schedule_new(const om_prog *p, om_arena *mem)
{
	om_schedule *s = new_schedule(p, mem);

	for (const om_block *b = p->first; b; b = b->next) {
		om_op **to = s->ops[b->id] = OM_NEWN(mem, om_op *, (size_t)b->nop + 1);
		for (om_op *op = b->first; op; op = op->next)
			*to++ = op;
	}
	s->nstep = number(s, p->first, 0);
	return s;
}

static bool
is_in_order(const om_schedule *s, const om_block *b)
{
	om_op *const *at = s->ops[b->id];

	for (const om_op *op = b->first; op; op = op->next)
		if (*at++ != op)
			return false;
	return !*at;
}

const om_schedule *
om_schedule_current(const om_prog *p, om_arena *mem)
{
	const om_schedule *s = p->assignment ? p->assignment->schedule : NULL;

	if (s && (s->nop != p->nop || s->nblock != p->nblock))
		s = NULL;
	for (const om_block *b = p->first; b && s; b = b->next)
		s = is_in_order(s, b) ? s : NULL;
	return s ? s : om_schedule_new(p, mem);
}

const om_schedule *
om_schedule_reorder(const om_prog *p, const om_schedule *old, om_op **const *ops, om_arena *mem)
{
	om_schedule *s = new_schedule(p, mem);

	for (uint32_t k = 0; k < p->nblock; k++)
		s->ops[k] = ops[k] ? ops[k] : old->ops[k];
	s->nstep = number(s, p->first, 0);
	return s;
}
