/* SPDX-License-Identifier: Apache-2.0 */
/* The scratch of ops for all sizes of ranges. */
#ifndef OM_RANGE_SCRATCH_H
#define OM_RANGE_SCRATCH_H

#include "host/host.h"
#include "host/range_binding.h"

/* Sets in the request of the host the most scratch that each op requires for any size of the ranges, in the programs that the
 * passes `rewriting` make.  All combinations of sizes are looked at if there are at most OM_MOST_SIZES, or if their programs
 * have few ops in all; else a selection, those for which plans are verified. */
om_status om_host_find_scratch(om_host *h, const om_ranged *r, const char *rewriting);

/* Sets it to these `n`, which are not copied; NULL: each op has what it requires in its program. */
void om_host_set_scratch(om_host *h, const om_scratch_need *need, uint32_t n);

#endif
