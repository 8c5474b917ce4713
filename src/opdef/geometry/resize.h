/* Where the elements of a Resize or Upsample come from, along each axis. */
#ifndef OM_RESIZE_GEOMETRY_H
#define OM_RESIZE_GEOMETRY_H

#include "onnxmem/opdef.h"

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

/* Out of shapes and whatever data there is; the input's rank is known.  OM_SHAPE where lists do not
 * fit the axes or sizes are impossible. */
om_status om_resize_of(const om_op_context *c, struct om_resize *r);

/* Every place of the axis is its own source. */
bool om_resize_keeps(const om_op_context *c, const struct om_resize *r, const struct om_resize_axis *a);

/* The source of each place of an axis, from c->mem; -1: outside of the region.  `same`: each is its
 * own.  OM_INVALID where an attribute is not known. */
om_status om_resize_nearest(const om_op_context *c, const struct om_resize_axis *a, bool same, int64_t **table);

/* Place k of an axis is the sum over t of weight[k * n + t] times the element
 * at[k * n + t]. */
struct om_resize_taps {
	int axis;
	int64_t n, in, out;
	int64_t *at;
	float *weight;
	bool *outside;       /* NULL: none is */
};

/* Those of an axis, in every mode but nearest; arrays are from c->mem.  OM_INVALID where an attribute is
 * not known, OM_UNSUPPORTED or OM_MEMORY where there are too many. */
om_status om_resize_taps_of(const om_op_context *c, const struct om_resize_axis *a, int axis, struct om_resize_taps *t);

/* What each element of an axis adds to each place of it, at [element * places + place]: from
 * c->mem.  The region's outside counts for nothing.  OM_MEMORY where the axis is too long. */
om_status om_resize_shares(const om_op_context *c, const struct om_resize *r, int axis, double **share);

/* The value of attribute `attr`, a text, is not known: OM_INVALID. */
om_status om_resize_unknown(const om_op_context *c, const char *attr);

#endif
