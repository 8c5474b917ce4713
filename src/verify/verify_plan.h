/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier with a limit on its memory. */
#ifndef OM_VERIFY_PLAN_H
#define OM_VERIFY_PLAN_H

#include "onnxmem/plan.h"

/* Like om_plan_verify(), which calls it with a number of bytes derived from the sizes of the program
 * and of the plan: OM_BADPLAN if the simulation needs more than `bytes`. */
om_status om_plan_verify_within(om_session *s, const om_prog *p, const om_plan *plan, uint64_t bytes);

/* Like om_plan_verify(), but the loops with `any[id]`, by op id, may run any number of times, whatever the program says. */
om_status om_plan_verify_trip_counts(om_session *s, const om_prog *p, const om_plan *plan, const bool *any);

#endif
