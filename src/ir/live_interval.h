/* SPDX-License-Identifier: Apache-2.0 */
/* Lifetimes: sets of steps; see onnxmem/assignment.h. */
#ifndef OM_LIVE_INTERVAL_H
#define OM_LIVE_INTERVAL_H

#include "onnxmem/assignment.h"

/* Range `k` of a lifetime.  Returns false after the last one. */
bool om_live_interval_range(const om_live_interval *l, uint32_t k, om_steps *range);

/* Does the lifetime contain all of these steps? */
bool om_live_interval_covers(const om_live_interval *l, uint32_t first, uint32_t last);

/* Does the lifetime contain any of these steps? */
bool om_live_interval_meets(const om_live_interval *l, uint32_t first, uint32_t last);

/* Do the lifetimes have a step in common? */
bool om_live_intervals_meet(const om_live_interval *a, const om_live_interval *b);

/* The end of the range that contains `step`, or `step` if none does. */
uint32_t om_live_interval_until(const om_live_interval *l, uint32_t step);

/* Add the steps from `first` to `last`; ranges are allocated from `mem`. */
void om_live_interval_add(om_live_interval *l, uint32_t first, uint32_t last, om_arena *mem);

#endif
