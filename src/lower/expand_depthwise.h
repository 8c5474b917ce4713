/* SPDX-License-Identifier: Apache-2.0 */
/* A product of pixels that only a depthwise convolution reads becomes a part of it. */
#ifndef OM_EXPAND_DEPTHWISE_H
#define OM_EXPAND_DEPTHWISE_H

#include "onnxmem/builder.h"

/* If `op` is such a convolution, and the image between both is so large that it pays, replace both by one op, before which
 * `*done` is set.  Fails with the message of the new op if it is not valid. */
om_status om_expand_depthwise(om_session *s, om_prog *p, om_op *op, bool *done);

#endif
