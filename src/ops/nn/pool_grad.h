/* SPDX-License-Identifier: Apache-2.0 */
/* What MaxPoolGrad is the gradient of. */
#ifndef OM_POOL_GRAD_H
#define OM_POOL_GRAD_H

#include "opdef/geometry/window.h"

/* Its inputs. */
enum { OM_POOL_GRAD_DY, OM_POOL_GRAD_INDICES };

/* The shape of the image, and the windows over it.  NULL, or what is wrong. */
const char *om_max_pool_grad_read(const om_op_context *c, om_shape *x, struct om_window *w);

#endif
