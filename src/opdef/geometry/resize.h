/* SPDX-License-Identifier: Apache-2.0 */
/* Source elements of Resize and Upsample along each axis. */
#ifndef OM_RESIZE_GEOMETRY_H
#define OM_RESIZE_GEOMETRY_H

#include "onnxmem/opdef.h"

struct om_resize_axis {
	int64_t in, out;
	float scale, roi[2];
	bool sized;          /* the scale is derived from the sizes */
};

struct om_resize {
	int rank;
	struct om_resize_axis axis[OM_MAX_RANK];
	bool known;          /* scale and roi of every axis are known */
};

/* Computed from shapes and available data; the input's rank must be known.  OM_SHAPE if lists do not
 * match the axes or sizes are impossible. */
om_status om_resize_of(const om_op_context *c, struct om_resize *r);

/* True if every position of the axis is its own source. */
bool om_resize_keeps(const om_op_context *c, const struct om_resize *r, const struct om_resize_axis *a);

/* The source of each position of an axis, allocated from c->mem; -1: outside of the region.  `same`:
 * each position is its own source.  OM_INVALID for an unknown attribute value. */
om_status om_resize_nearest(const om_op_context *c, const struct om_resize_axis *a, bool same, int64_t **table);

/* Position k of an axis is the sum over t of weight[k * n + t] times the element at[k * n + t]. */
struct om_resize_taps {
	int axis;
	int64_t n, in, out;
	int64_t *at;
	float *weight;
	bool *outside;       /* NULL: none is */
};

/* The weights of an axis in every mode except nearest; arrays are allocated from c->mem.  OM_INVALID for
 * an unknown attribute value, OM_UNSUPPORTED or OM_MEMORY if there are too many weights. */
om_status om_resize_taps_of(const om_op_context *c, const struct om_resize_axis *a, int axis, struct om_resize_taps *t);

/* The contribution of each element of an axis to each position, at [element * positions + position],
 * allocated from c->mem.  Positions outside of the region count as zero.  OM_MEMORY if the axis is too
 * long. */
om_status om_resize_shares(const om_op_context *c, const struct om_resize *r, int axis, double **share);

/* Report that the value of the string attribute `attr` is unknown: OM_INVALID. */
om_status om_resize_unknown(const om_op_context *c, const char *attr);

#endif
