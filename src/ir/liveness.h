/* Live sets; computed by om_live_sets(). */
#ifndef OM_LIVENESS_H
#define OM_LIVENESS_H

#include "onnxmem/assignment.h"

/* The values that are live before and after `op`: sorted by id, allocated from `mem`; returns their
 * number.  For an op with bodies, "after" means after the whole op.  Requires OM_HAS_LIVE. */
size_t om_live_in(const om_prog *p, const om_op *op, om_arena *mem, const om_value ***out);
size_t om_live_out(const om_prog *p, const om_op *op, om_arena *mem, const om_value ***out);

#endif
