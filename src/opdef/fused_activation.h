/* SPDX-License-Identifier: Apache-2.0 */
/* The activation that optimizers fuse into an operator of com.microsoft: FusedConv, FusedGemm.
 * The attribute `activation` names an operator of ai.onnx; its parameters are in
 * `activation_params`, or in `activation_alpha` and `activation_beta`. */
#ifndef OM_FUSED_ACTIVATION_H
#define OM_FUSED_ACTIVATION_H

#include "onnxmem/ir.h"

enum { OM_BEHIND_NUMBERS = 2 };

struct om_fused_activation {
	const char *type;        /* "LeakyRelu" */
	int n;                   /* number of parameters */
	const char *name[OM_BEHIND_NUMBERS];  /* names of attributes; NULL: passed as inputs after the first */
	float number[OM_BEHIND_NUMBERS];
};

/* Does the op have one?  If so, `out` describes it; its type is NULL if the activation is unknown. */
bool om_fused_activation_read(const om_op *op, struct om_fused_activation *out);

#endif
