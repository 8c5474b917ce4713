/* SPDX-License-Identifier: Apache-2.0 */
/* The equation of Einsum, for its kernel and its gradient. */
#ifndef OM_EINSUM_H
#define OM_EINSUM_H

#include "onnxmem/opdef.h"

/* Every index of the equation is a loop axis: those of the output first, then those that are summed
 * over.  The axes of an ellipsis count from the right, as in broadcasting; they follow the letters, a to
 * z, then A to Z. */
enum { OM_EINSUM_TERMS = 16, OM_EINSUM_LETTERS = 52, OM_EINSUM_AXES = OM_EINSUM_LETTERS + OM_MAX_RANK };

struct om_einsum {
	uint32_t nin;
	int term[OM_EINSUM_TERMS + 1][OM_MAX_RANK];  /* axis of each dim; the output's are last */
	int rank[OM_EINSUM_TERMS + 1];
	om_shape size[OM_EINSUM_AXES];               /* of rank 1; rank 0: the axis does not occur */
};

/* The ranks of the inputs must be known. */
om_status om_einsum_read(const om_op_context *c, struct om_einsum *e);

#endif
