/* One look at an op, for several columns of its definition. */
#ifndef OM_LOOK_H
#define OM_LOOK_H

#include "onnxmem/opdef.h"

/* The call of `op` as it is known while planning; what it holds comes from `mem`.  False where
 * the columns view, reuse, into and scratch may not be called: a shape is not known, or
 * something is no tensor. */
bool om_op_query(om_op_context *c, om_arena *mem, const om_op *op);

#endif
