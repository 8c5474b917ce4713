/* What the two kernels of resizing share: nearest (resize.c), and weighted sums (resize_separable.c). */
#ifndef OM_RESIZE_H
#define OM_RESIZE_H

#include "ops/tensor/strided_copy.h"
#include "opdef/geometry/resize.h"

/* The element for places outside of the region; `one` has room for any. */
om_status om_resize_outside(const om_op_context *c, char *one);

/* Every mode but nearest. */
om_status om_resize_weighted(om_op_context *c, const struct om_resize *r);
uint64_t om_resize_scratch(const om_op_context *c);
void om_resize_cost(const om_op_context *c, om_cost *cost);

#endif
