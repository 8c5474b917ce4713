/* The activation that optimizers put behind an operator of com.microsoft: FusedConv, FusedGemm.
 * The attribute `activation` names an operator of ai.onnx, `activation_params`, or
 * `activation_alpha` and `activation_beta`, have its numbers. */
#ifndef OM_FUSED_ACTIVATION_H
#define OM_FUSED_ACTIVATION_H

#include "onnxmem/ir.h"

enum { OM_BEHIND_NUMBERS = 2 };

struct om_fused_activation {
	const char *type;        /* "LeakyRelu" */
	int n;                   /* its numbers */
	const char *name[OM_BEHIND_NUMBERS];  /* attributes; NULL: inputs behind the first */
	float number[OM_BEHIND_NUMBERS];
};

/* Is there one?  Then `out` says which; its type is NULL where it is not known. */
bool om_fused_activation_read(const om_op *op, struct om_fused_activation *out);

#endif
