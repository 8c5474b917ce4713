/* SPDX-License-Identifier: Apache-2.0 */
/* The op of a step, and how ops are called in messages. */
#include <config.h>

#include <stdarg.h>
#include <stdio.h>

#include "ir/live_interval.h"
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

/* ---- Steps of a run. ---- */

static void
hide_folded(const om_block *b, bool *is_hidden)
{
	for (const om_op *op = b->first; op; op = op->next) {
		for (uint32_t t = op->step; op->is_folded && t <= op->end; t++)
			is_hidden[t] = true;
		for (uint32_t k = 0; k < op->nbody && !op->is_folded; k++)
			hide_folded(op->body[k], is_hidden);
	}
}

static void
number(om_run_steps *s, const bool *is_hidden)
{
	s->n = 0;
	for (uint32_t t = 0; t < s->nstep; t++) {
		s->before[t] = s->n;
		s->at[s->n] = t;
		s->n += !is_hidden[t];
	}
	s->before[s->nstep] = s->n;
}

/* Keep the last step of a range that has no other step of the run.  Returns whether there is one. */
static bool
keep_ranges(const om_run_steps *s, const om_plan *plan, bool *is_hidden)
{
	bool any = false;
	om_steps r;

	for (uint32_t k = 0; k < plan->nplace; k++)
		for (uint32_t i = 0; plan->place[k].where == OM_IN_ARENA && om_live_interval_range(&plan->place[k].live, i, &r); i++)
			if (r.last < s->nstep && s->before[r.first] == s->before[r.last + 1]) {
				is_hidden[r.last] = false;
				any = true;
			}
	return any;
}

om_run_steps
om_run_steps_new(const om_prog *p, om_arena *mem)
{
	om_run_steps s = {.nstep = p->nstep, .before = OM_NEWN(mem, uint32_t, (size_t)p->nstep + 1),
		.at = OM_NEWN(mem, uint32_t, p->nstep)};
	bool *is_hidden = OM_NEWN(mem, bool, p->nstep);

	hide_folded(p->first, is_hidden);
	number(&s, is_hidden);
	if (p->plan && keep_ranges(&s, p->plan, is_hidden))
		number(&s, is_hidden);
	return s;
}

uint32_t
om_run_steps_of(const om_run_steps *s, uint32_t step)
{
	return s->before[step < s->nstep ? step : s->nstep];
}

om_steps
om_run_steps_range(const om_run_steps *s, om_steps range)
{
	const uint32_t first = s->before[range.first], end = s->before[range.last + 1];

	return (om_steps){first, end > first ? end - 1 : first};
}

/* ---- Labels. ---- */

const char *
om_op_where(const om_op *op, om_arena *mem)
{
	const char *text = om_printf(mem, "%s%s%s", op->type, *op->name ? " " : "", op->name);
	const char *path = op->block ? op->block->path : "";

	if (op->node == OM_NO_NODE)
		return text;
	return om_printf(mem, "%s (node %u%s%s)", text, (unsigned)op->node, *path ? " of " : "", path);
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
