/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of softmax and related operators. */
#ifndef OM_SOFTMAX_H
#define OM_SOFTMAX_H

#include "ops/math/axis_view.h"

/* Along attribute `axis`; before version 13 all axes from `axis` on form one line.  False if it is out of range. */
bool om_softmax_lines(const om_op_context *c, struct om_lines *l);

#endif
