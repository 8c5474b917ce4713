/* SPDX-License-Identifier: Apache-2.0 */
/* Live sets; computed by om_live_sets(). */
#ifndef OM_LIVENESS_H
#define OM_LIVENESS_H

#include "onnxmem/assignment.h"

/* Live sets at points: at the ends of basic blocks, which are runs of ops without bodies, and at the
 * start and end of an op with bodies.  A value is live in ranges of points. */
typedef struct om_live_points {
	uint32_t *before, *after; /* by op id: the point before an op with bodies; that after it, or after the
				     last op of a basic block; UINT32_MAX for other ops */
	om_steps *range;          /* of points, in order */
	size_t nrange;
	uint32_t *first;          /* by value id: its ranges start here, and end at those of the next value */
} om_live_points;

/* The values that are live before and after `op`: sorted by id, allocated from `mem`; returns their
 * number.  For an op with bodies, "after" means after the whole op.  Requires OM_HAS_LIVE. */
size_t om_live_in(const om_prog *p, const om_op *op, om_arena *mem, const om_value ***out);
size_t om_live_out(const om_prog *p, const om_op *op, om_arena *mem, const om_value ***out);

#endif
