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

static uint64_t *
set_behind(const om_prog *p, const om_op *op, om_arena *mem)
{
	const om_op *end = op;
	const uint64_t *const *live_out = p->assignment->live_out;

	while (!live_out[end->id] && end->next)
		end = end->next;
	if (!live_out[end->id])
		return OM_NEWN(mem, uint64_t, p->nvalue / 64 + 1);
	uint64_t *set = om_memdup(mem, live_out[end->id], (p->nvalue + 63) / 64 * sizeof *set);
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
	if (p->assignment->live_in[op->id])
		return members(p, p->assignment->live_in[op->id], mem, out);
	uint64_t *set = set_behind(p, op, mem);
	step_back(set, op);
	return members(p, set, mem, out);
}
