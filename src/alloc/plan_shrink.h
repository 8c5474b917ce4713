/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for ranges of sizes, shrunk to the sizes of a run. */
#ifndef OM_PLAN_SHRINK_H
#define OM_PLAN_SHRINK_H

#include "onnxmem/plan.h"

/* Lower the offsets of a plan with ranges, and the sizes of its arenas, to what the shapes of `p` require, with
 * everything that is live at once in the order in which it lies.  The plan is unchanged, and false is returned, where
 * this is not possible, or takes more. */
bool om_plan_lower_offsets(const om_prog *p, om_plan *plan);

#endif
