/* Gradients that are one op of org.onnxmem.grad.
 *
 * Such an op is called with what the gradient is computed from: gradients of outputs of the
 * forward op, its inputs, its outputs, as the form of its row lists them; what is not needed is left
 * out.  Behind them come shapes that only its function needs.  Its attributes are those of the
 * forward op, and two more: `wrt`, the inputs of the forward op whose gradients are its outputs,
 * in their order, and `x_shape`, the dims of input 0 of the forward op, -1 where they are open. */
#ifndef OM_FUSED_H
#define OM_FUSED_H

#include "grad/gradients.h"

#define OM_GRAD_DOMAIN "org.onnxmem.grad"

/* The output of a call that is the gradient of input `of` of the forward op; -1: it is not wanted. */
static inline int
om_fused_out(const om_op_context *c, int64_t of)
{
	const int64_t *wrt = om_attr_ints(c->op, "wrt", NULL);

	for (uint32_t k = 0; k < c->op->nout; k++)
		if (wrt[k] == of && om_has_out(c, k))
			return (int)k;
	return -1;
}

/* Its elements; NULL: it is not wanted. */
static inline void *
om_fused_data(const om_op_context *c, int64_t of)
{
	const int k = om_fused_out(c, of);

	return k < 0 ? NULL : c->out[k].data;
}

enum { OM_FUSED_INPUTS = 5 };

struct om_fused {
	const char *type;            /* "ConvGrad" */
	struct om_fused_input {
		const char *name;    /* NULL ends the list */
		enum { OM_GRADIENT_OF, OM_INPUT, OM_OUTPUT } what;
		uint8_t k;
		bool always;         /* given even where the function does not need it */
	} in[OM_FUSED_INPUTS + 1];
};

/* fused.c: the maker of all of them differentiates the function. */
om_maker om_grad_fused_call;

#define OM_FUSED_ATTRS {"wrt", OM_ATTR_INTS, .required = true}, {"x_shape", OM_ATTR_INTS, .required = true}

#endif
