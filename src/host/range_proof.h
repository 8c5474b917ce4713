/* SPDX-License-Identifier: Apache-2.0 */
/* Proves that a plan with ranges is valid for all of their sizes. */
#ifndef OM_RANGE_PROOF_H
#define OM_RANGE_PROOF_H

#include "host/range_binding.h"
#include "onnxmem/pass.h"

/* `r->bound` has `plan`, which om_plan_verify() accepted for the largest sizes.  `*why` becomes a sentence, in memory of `mem`, that tells
 * why the plan may not be valid for others; NULL: it is valid for all.  OM_BADPLAN: it is not valid for some. */
om_status om_host_prove_range(om_host *h, const om_ranged *r, const om_plan *plan, om_arena *mem, const char **why);

#endif
