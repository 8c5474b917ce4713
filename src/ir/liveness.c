/* SPDX-License-Identifier: Apache-2.0 */
/* Live sets at an op, derived from those that the `live` pass recorded at the ends of basic blocks:
 * one backward walk over the block for each query.
 */
#include <config.h>

#include "ir/liveness.h"
#include "onnxmem/assignment.h"

static void
add(uint64_t *set, const om_value *v)
{
	set[v->id / 64] |= UINT64_C(1) << v->id % 64;
}

static void
del(uint64_t *set, const om_value *v)
{
	set[v->id / 64] &= ~(UINT64_C(1) << v->id % 64);
}

/* From the live set after `op` to the one before it; op has no bodies. */
static void
step_back(uint64_t *set, const om_op *op)
{
	if (op->is_folded)
		return;
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k])
			del(set, op->out[k]);
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] && !op->in[k]->is_const)
			add(set, op->in[k]);
}

/* The bit set at a point; empty for UINT32_MAX. */
static uint64_t *
set_at(const om_prog *p, uint32_t point, om_arena *mem)
{
	const om_live_points *live = p->assignment->live_points;
	uint64_t *set = OM_NEWN(mem, uint64_t, p->nvalue / 64 + 1);

	for (uint32_t v = 0; v < p->assignment->nvalue && point != UINT32_MAX; v++)
		for (uint32_t k = live->first[v]; k < live->first[v + 1]; k++)
			if (live->range[k].first <= point && point <= live->range[k].last)
				add(set, p->values[v]);
	return set;
}

static uint64_t *
set_behind(const om_prog *p, const om_op *op, om_arena *mem)
{
	const om_op *end = op;
	const uint32_t *after = p->assignment->live_points->after;

	while (after[end->id] == UINT32_MAX && end->next)
		end = end->next;
	uint64_t *set = set_at(p, after[end->id], mem);
	for (; end != op; end = end->prev)
		step_back(set, end);
	return set;
}

static size_t
members(const om_prog *p, const uint64_t *set, om_arena *mem, const om_value ***out)
{
	size_t n = 0;

	*out = OM_NEWN(mem, const om_value *, p->nvalue);
	for (uint32_t k = 0; k < p->nvalue; k++)
		if (set[k / 64] >> k % 64 & 1)
			(*out)[n++] = p->values[k];
	return n;
}

size_t
om_live_out(const om_prog *p, const om_op *op, om_arena *mem, const om_value ***out)
{
	return members(p, set_behind(p, op, mem), mem, out);
}

size_t
om_live_in(const om_prog *p, const om_op *op, om_arena *mem, const om_value ***out)
{
	const uint32_t before = p->assignment->live_points->before[op->id];

	if (before != UINT32_MAX)
		return members(p, set_at(p, before, mem), mem, out);
	uint64_t *set = set_behind(p, op, mem);
	step_back(set, op);
	return members(p, set, mem, out);
}
