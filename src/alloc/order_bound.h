/* SPDX-License-Identifier: Apache-2.0 */
/* A lower bound of the arena for all storage decisions. */
#ifndef OM_ORDER_BOUND_H
#define OM_ORDER_BOUND_H

#include "onnxmem/plan.h"

/* Bytes: no plan for the schedule of `a` that has the same values and scratch in its arena as `plan`, which has
 * one arena, is smaller, whatever lifetimes, views, sub-buffers and in-place choices it has.  The search ends
 * early where the bound is at least `enough`.  0 if nothing is proven. */
uint64_t om_order_bound(const om_prog *p, const om_assignment *a, const om_plan *plan, uint64_t enough);

#endif
