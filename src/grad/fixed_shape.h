/* SPDX-License-Identifier: Apache-2.0 */
/* Which values of a loop body have the same shape in every iteration.
 *
 * A shape is fixed if all its dims are numbers or follow from dims of inputs of the graph, or if the op
 * that computes the value reads fixed shapes only and no element that decides a shape and may differ
 * between iterations.  The analysis is conservative: a value without a fixed shape may still have the
 * same shape in all iterations of every run. */
#ifndef OM_FIXED_SHAPE_H
#define OM_FIXED_SHAPE_H

#include "base/map.h"
#include "onnxmem/ir.h"

typedef struct om_fixed {
	const om_block *body;
	om_map dims;              /* the symbolic dims of inputs of the graph */
	uint32_t nvalue;          /* number of values that were analysed */
	bool *shape, *data;       /* [nvalue], by value id: fixed shape, fixed elements */
	bool any_varies;          /* a value that a gradient may have to keep has no fixed shape */
} om_fixed;

/* Analyse a body of `p`; the result lives in `mem`. */
om_fixed om_fixed_find(const om_prog *p, const om_block *body, om_arena *mem);

/* Does `v` have the same shape in every iteration of the body?  Values that are newer than the analysis
 * are analysed by the ops that compute them. */
bool om_fixed_shape(const om_fixed *f, const om_value *v);

/* Do the known dims of a shape alone fix it? */
bool om_fixed_dims(const om_fixed *f, const om_shape *s);

#endif
