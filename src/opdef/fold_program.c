/* Constant folding of a whole program. */
#include <config.h>

#include "base/guard.h"
#include "opdef/fold.h"
#include "onnxmem/opdef.h"

static bool
is_foldable(const om_op *op)
{
	if (!op->opdef || op->opdef->control != OM_PLAIN || op->opdef->flags & (OM_RANDOM | OM_EFFECT))
		return false;
	for (uint32_t k = 0; k < op->nin; k++)
		if (op->in[k] && !op->in[k]->is_const)
			return false;
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && op->out[k]->type.kind != OM_TENSOR)
			return false;
	return true;
}

/* Computed during shape inference, from inputs that are not constants but have known shapes. */
static bool
is_known(const om_op *op)
{
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k] && !op->out[k]->data)
			return false;
	return true;
}

static om_status
fold_op(om_session *s, om_prog *p, om_op *op, uint64_t limit, uint64_t *computed, uint64_t *left)
{
	op->is_folded = is_foldable(op) || is_known(op);
	if (!op->is_folded)
		return OM_OK;
	if (!is_known(op))
		OM_TRY(om_op_fold(s, p, op, limit));
	for (uint32_t k = 0; k < op->nout; k++)
		if (op->out[k])
			op->out[k]->is_const = true;
	++*(is_known(op) ? computed : left);
	return OM_OK;
}

static om_status
prog_fold_guarded(om_session *s, om_prog *p, uint64_t limit, uint64_t *computed, uint64_t *left)
{
	*computed = *left = 0;
	for (om_block *b = p->first; b; b = b->next)
		for (om_op *op = b->first; op; op = op->next)
			OM_TRY(fold_op(s, p, op, limit, computed, left));
	return OM_OK;
}

om_status
om_prog_fold(om_session *s, om_prog *p, uint64_t limit, uint64_t *computed, uint64_t *left)
{
	OM_GUARDED(s, prog_fold_guarded(s, p, limit, computed, left));
}
