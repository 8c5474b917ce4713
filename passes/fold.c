/* fold: find what is computed from constants alone.
 *
 * Such values are weights: they take no part in a run and no room in the
 * arena.  Small ones are computed here; large ones keep their op, which the
 * executor runs once when it is built.  Nothing is removed from the program:
 * other runtimes get the file as it was.
 */
#include <config.h>

#include "onnxmem/pass.h"

static bool
is_foldable(const om_op *op)
{
	if (!op->row || op->row->control != OM_PLAIN || op->row->flags & (OM_RANDOM | OM_EFFECT))
		return false;
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] && !op->in[k]->is_const)
			return false;
	return true;
}

/* Computed in `shapes` already: of inputs that are no constants, but whose
 * shapes are known. */
static bool
is_known(const om_op *op)
{
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && !op->out[k]->data)
			return false;
	return true;
}

static om_status
fold_op(om_run *r, om_prog *p, om_op *op, uint64_t limit)
{
	op->is_folded = is_foldable(op) || is_known(op);
	if (!op->is_folded)
		return OM_OK;
	if (!is_known(op))
		OM_TRY(om_op_fold(p, op, limit));
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k])
			op->out[k]->is_const = true;
	om_count(r, is_known(op) ? "computed" : "left", 1);
	return OM_OK;
}

static om_status
run(om_run *r, om_prog *p)
{
	uint64_t limit;

	OM_TRY(om_option_number(r, "limit", &limit));
	for (om_block *b = p->first; b; b = b->next)
		for (om_op *op = b->first; op; op = op->next)
			OM_TRY(fold_op(r, p, op, limit));
	return OM_OK;
}

static const om_pass_option options[] = {
	{"limit", "65536", "bytes: larger results are left to the executor"},
	{0}
};

static const om_pass_counter counters[] = {
	{"computed", "ops that were computed"},
	{"left", "ops left to the executor"},
	{0}
};

OM_PASS(
	.name = "fold",
	.brief = "find what is computed from constants alone, compute what is small",
	.needs = OM_HAS_SHAPES,
	.gives = OM_HAS_CONST,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.options = options,
	.counters = counters,
	.run = run)
