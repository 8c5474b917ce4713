/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients that are a single op of org.onnxmem.grad.
 *
 * The inputs of such an op are what the gradient is computed from: gradients of outputs of the forward
 * op, its inputs and its outputs, in the order of the table entry; those that are not required are
 * omitted.  Shapes that only its function requires follow.  Its attributes are those of the forward op
 * and two more: `wrt`, the inputs of the forward op whose gradients are its outputs, in their order,
 * and `x_shape`, the dims of input 0 of the forward op, -1 for unknown ones. */
#ifndef OM_FUSED_H
#define OM_FUSED_H

#include "grad/gradients.h"
#include "opdef/gradient_op.h"

enum { OM_FUSED_INPUTS = 5 };

struct om_fused {
	const char *type;            /* "ConvGrad" */
	struct om_fused_input {
		const char *name;    /* NULL ends the list */
		enum { OM_GRADIENT_OF, OM_INPUT, OM_OUTPUT } what;
		uint8_t k;
		bool always;         /* passed even if the function does not use it */
	} in[OM_FUSED_INPUTS + 1];
};

#endif
