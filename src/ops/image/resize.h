/* What the two halves of resizing share: where places come from (resize.c), and
 * sums over them (resize_separable.c). */
#ifndef OM_RESIZE_H
#define OM_RESIZE_H

#include "ops/tensor/strided_copy.h"

struct om_resize_axis {
	int64_t in, out;
	float scale, roi[2];
	bool sized;          /* scale follows from the sizes */
};

struct om_resize {
	int rank;
	struct om_resize_axis axis[OM_MAX_RANK];
	bool known;          /* scale and roi of each axis are */
};

/* Where in the input the place `x` of an output axis lies. */
typedef float om_place_fn(const struct om_resize_axis *a, float x);

/* Out of shapes and whatever data there is; the input's rank is known. */
om_status om_resize_of(const om_op_context *c, struct om_resize *r);

om_status om_resize_place(const om_op_context *c, om_place_fn **place);

/* Every place of the axis is its own source. */
bool om_resize_keeps(const om_op_context *c, const struct om_resize *r, const struct om_resize_axis *a);

/* The element for places outside of the region; `one` has room for any. */
om_status om_resize_outside(const om_op_context *c, char *one);

/* What each element of an axis adds to each place of it, at [element * places + place]: from
 * c->mem.  The region's outside counts for nothing. */
om_status om_resize_shares(const om_op_context *c, const struct om_resize *r, int axis, double **share);

/* Every mode but nearest. */
om_status om_resize_weighted(om_op_context *c, const struct om_resize *r);
uint64_t om_resize_scratch(const om_op_context *c);
void om_resize_cost(const om_op_context *c, om_cost *cost);

#endif
