/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of org.onnxmem.grad: gradients of one operator, computed in one op.
 *
 * Such an op reads what the gradient is computed from: gradients of outputs of the forward op, its
 * inputs, its outputs; what is not needed is left out.  Its attributes are those of the forward op,
 * and two more: `wrt`, the inputs of the forward op whose gradients are its outputs, in their
 * order, and `x_shape`, the dims of input 0 of the forward op, -1 where they are open. */
#ifndef OM_GRADIENT_OP_H
#define OM_GRADIENT_OP_H

#include "opdef/op_context.h"
#include "ir/query.h"
#include "onnxmem/opdef.h"

#define OM_GRAD_DOMAIN "org.onnxmem.grad"

#define OM_FUSED_ATTRS {"wrt", OM_ATTR_INTS, .required = true}, {"x_shape", OM_ATTR_INTS, .required = true}

/* The output of a call that is the gradient of input `of` of the forward op; -1: it is not requested. */
static inline int
om_fused_out(const om_op_context *c, int64_t of)
{
	const int64_t *wrt = om_attr_ints(c->op, "wrt", NULL);

	for (uint32_t k = 0; k < c->op->nout; k++)
		if (wrt[k] == of && om_has_out(c, k))
			return (int)k;
	return -1;
}

/* What is wrong with `wrt`: it has an entry for each output, inputs 0 to 2, each once.  An output whose entry is there
 * before would not be written. */
static inline const char *
om_fused_wrong_wrt(const om_op_context *c)
{
	size_t n;
	const int64_t *wrt = om_attr_ints(c->op, "wrt", &n);
	unsigned seen = 0;

	if (n != c->op->nout)
		return "requires one output for each entry of wrt";
	for (size_t k = 0; k < n; k++) {
		if (wrt[k] < 0 || wrt[k] > 2)
			return "wrt has an entry whose gradient the operator does not compute";
		if (seen >> wrt[k] & 1)
			return "wrt has an entry twice";
		seen |= 1U << wrt[k];
	}
	return NULL;
}

/* The outputs of om_fused_out() for inputs 0 to 2, found while preparing. */
typedef struct om_fused_outs {
	int out[3];
} om_fused_outs;

static inline om_fused_outs
om_fused_find(const om_op_context *c)
{
	return (om_fused_outs){{om_fused_out(c, 0), om_fused_out(c, 1), om_fused_out(c, 2)}};
}

/* Elements of the gradient of input `of`; NULL: it is not requested. */
static inline void *
om_fused_data(const om_op_context *c, const om_fused_outs *f, int of)
{
	return f->out[of] < 0 ? NULL : c->out[f->out[of]].data;
}

#endif
