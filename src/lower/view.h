/* SPDX-License-Identifier: Apache-2.0 */
/* Views: axes over the elements of a value, which may be followed to the value that they come from. */
#ifndef OM_LOWER_VIEW_H
#define OM_LOWER_VIEW_H

#include "onnxmem/ir.h"

enum { OM_VIEW_AXES = 2 * OM_MAX_RANK };

/* Element (i, j, ...) of the view is element offset + i * step[0] + j * step[1] + ... of the value, whose
 * elements are counted in the order of memory.  Steps are not negative. */
typedef struct om_view {
	om_value *value;
	int rank;
	int64_t dim[OM_VIEW_AXES], step[OM_VIEW_AXES], offset;
} om_view;

/* Does the op keep the order of the elements of its first input?  Reshape and the like. */
bool om_view_keeps_order(const om_op *op);

/* If the value is computed by moving elements of another value, let the view be of that one; false, with the view
 * unchanged, if it is not, or if an axis of the view would need more than one step. */
bool om_view_back(om_view *v);

/* If `op` moves all elements of the value, let the view be of its output; false as before. */
bool om_view_forward(om_view *v, const om_op *op);

/* Divide the axes before the last two into those of `dim`; false, with the view unchanged, if they are not made of them. */
bool om_view_divide(om_view *v, int rank, const int64_t *dim);

struct om_layout;

/* Let what reads the shape of `x`, which is known, read a constant: so `x` is not needed for that. */
void om_view_settle_shape(struct om_layout *l, const om_value *x);

/* The shape of the result of an Expand of which `x` is a Reshape, apart from an exchange of its last two axes; NULL if
 * there is no such op. */
const om_shape *om_view_repeated(const om_value *x);

#endif
