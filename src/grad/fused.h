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
#include "ops/gradient_op.h"

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

#endif
