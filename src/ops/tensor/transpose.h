/* SPDX-License-Identifier: Apache-2.0 */
/* The copy that Transpose is. */
#ifndef OM_TRANSPOSE_H
#define OM_TRANSPOSE_H

#include "base/strided_copy.h"
#include "onnxmem/opdef.h"

/* Fails if perm is not a permutation of the axes. */
om_status om_transpose_plan(const om_op_context *c, om_copy_plan *plan);

#endif
