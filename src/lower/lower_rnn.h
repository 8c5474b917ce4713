/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent layers for the kernels of org.onnxmem.cpu. */
#ifndef OM_LOWER_RNN_H
#define OM_LOWER_RNN_H

#include "onnxmem/ir.h"

/* If the kernels compute the layer `op`, replace it: the products of the input with W become a MatMul, R is packed.
 * `*done` tells whether it was. */
om_status om_lower_rnn(om_session *s, om_prog *p, om_arena *mem, om_op *op, bool *done);

#endif
