/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of several arenas, and empty plans; see onnxmem/plan.h. */
#ifndef OM_PLAN_ARENAS_H
#define OM_PLAN_ARENAS_H

#include "onnxmem/plan.h"

/* The requested arenas, as pools for om_pack_solve(). */
om_pool *om_plan_wanted(const om_plan_request *r, om_arena *mem);

/* Make the plan for buffers packed into these pools; it becomes p->plan. */
void om_plan_pools(om_prog *p, const om_buffers *b, const om_pool *pool, const char *strategy);

/* Make an empty plan, which becomes p->plan: for readers of plans.  It has capacity for one arena, for
 * a placement, an alias, a view and a reason for every value, and for the scratch of every op; all
 * placements are OM_UNUSED and all counts 0. */
om_plan *om_plan_empty(om_prog *p);

#endif
