/* SPDX-License-Identifier: Apache-2.0 */
/* What no order of the ops gets below. */
#ifndef OM_OP_FLOOR_H
#define OM_OP_FLOOR_H

#include "onnxmem/plan.h"

/* Bytes: no plan of the program, in any order, for the request of `a` has smaller arenas than this, whatever it decides
 * about storage.  It is what one op needs while it runs: that op is `*op`, and `of_op` gets what each op needs, by id.  `a`
 * and `plan` are those of one order.  0, and `*op` is NULL, if nothing is proven. */
uint64_t om_op_floor(const om_prog *p, const om_assignment *a, const om_plan *plan, uint64_t *of_op, const om_op **op);

#endif
