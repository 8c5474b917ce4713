/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two resize kernels: nearest (resize.c) and weighted sums (resize_separable.c). */
#ifndef OM_RESIZE_H
#define OM_RESIZE_H

#include "opdef/geometry/resize.h"

/* The element for positions outside the region; `one` can hold any type. */
om_status om_resize_outside(const om_op_context *c, char one[sizeof(om_string)]);

/* All modes but nearest: prepare the passes, in c->mem, and run them. */
struct om_passes;
om_status om_passes_prepare(const om_op_context *c, const struct om_resize *r, struct om_passes **out);
om_status om_passes_run(om_op_context *c, const struct om_passes *p);
uint64_t om_resize_scratch(const om_op_context *c);
void om_resize_cost(const om_op_context *c, om_cost *cost);

#endif
