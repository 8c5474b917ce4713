/* SPDX-License-Identifier: Apache-2.0 */
/* Reading indices: int32 or int64; negative indices count from the end. */
#ifndef OM_INDEX_H
#define OM_INDEX_H

#include "onnxmem/opdef.h"

/* Refuse an input whose type cannot hold indices. */
om_status om_index_type(const om_op_context *c, uint32_t k);

/* Element `at` of the index tensor `k`, for an axis of `dim` elements. */
om_status om_index_read(const om_op_context *c, uint32_t k, int64_t at, int64_t dim, int64_t *i);

/* Advance to the next position of a shape, last axis first; false at the end. */
static inline bool
om_next_place(const om_shape *s, int64_t *at)
{
	int k = s->rank - 1;

	for (; k >= 0 && ++at[k] == s->dim[k]; k--)
		at[k] = 0;
	return k >= 0;
}

#endif
