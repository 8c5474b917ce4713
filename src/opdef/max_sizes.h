/* SPDX-License-Identifier: Apache-2.0 */
/* Upper bounds for sizes that elements of a run decide. */
#ifndef OM_MAX_SIZES_H
#define OM_MAX_SIZES_H

#include "onnxmem/opdef.h"

/* By value id, from `mem`: the most bytes that a value may take whose shape is not known, where its operator and those before
 * it prove a bound; 0: the shape is known, or there is no bound. */
const uint64_t *om_max_sizes_new(const om_prog *p, om_arena *mem);

/* By value id, from `mem`: the same, for those values alone that a plan may place at their bound: outputs of ops without bodies
 * that are not results of a block. */
const uint64_t *om_planned_max_sizes_new(const om_prog *p, om_arena *mem);

#endif
