/* SPDX-License-Identifier: Apache-2.0 */
/* The axes of a reduction, and the groups of adjacent dims that are all kept or all reduced. */
#ifndef OM_REDUCE_AXES_H
#define OM_REDUCE_AXES_H

#include "onnxmem/kernel.h"

/* The axes are an attribute, or an input since version 13 or 18. */
struct om_reduce_attrs {
	om_ints axes;
	int64_t keepdims, noop_with_empty_axes;
};

extern const om_attr_field om_reduce_fields[];

struct om_reduce_group {
	int64_t n, step;     /* in elements of the input */
};

struct om_reduce_groups {
	struct om_reduce_group kept[OM_MAX_RANK], reduced[OM_MAX_RANK];
	int nkept, nreduced;             /* without the last group of the input */
	struct om_reduce_group last;
	bool last_is_reduced;
	int64_t count;                   /* input elements per output element */
};

/* The groups of an op, once om_reduce_is_ready(); in a run it always is. */
om_status om_reduce_groups_of(const om_op_context *c, const struct om_reduce_attrs *attrs, struct om_reduce_groups *g);

/* Are the axes known before a run? */
bool om_reduce_is_ready(const om_op_context *c);

/* Advances an odometer, and the offset `at` by the steps of the groups; false after the last position. */
bool om_reduce_advance(const struct om_reduce_group *g, int n, int64_t *index, int64_t *at);

#endif
