/* Functions for the columns `slice` and `partial` of operator definitions, by the kind of operator; what an operator
 * shares with others is in opdef/slice.h.  A function says in its comment along which axes there are parts. */
#ifndef OM_OPS_SLICES_H
#define OM_OPS_SLICES_H

#include "opdef/slice.h"

/* ---- Windows (nn/window_slices.c). ---- */

/* Conv: batches, channels of the output, rows.  Partial: channels of the input, if there is one group. */
bool om_slice_conv(const om_op_context *c, uint32_t out, om_slice *s);
bool om_partial_conv(const om_op_context *c, uint32_t in, om_slice *s);
/* MaxPool without indices, AveragePool, LpPool: batches, channels, rows. */
bool om_slice_pool(const om_op_context *c, uint32_t out, om_slice *s);
/* Global pools: batches and channels.  Partial: rows. */
bool om_slice_global_pool(const om_op_context *c, uint32_t out, om_slice *s);

/* ---- Products (math/product_slices.c). ---- */

/* MatMul: batches, rows of the left, columns of the right operand.  Partial: what is summed over. */
bool om_slice_matmul(const om_op_context *c, uint32_t out, om_slice *s);
bool om_partial_matmul(const om_op_context *c, uint32_t in, om_slice *s);
bool om_slice_gemm(const om_op_context *c, uint32_t out, om_slice *s);
bool om_partial_gemm(const om_op_context *c, uint32_t in, om_slice *s);

/* ---- Movement of elements (tensor/movement_slices.c). ---- */

bool om_slice_transpose(const om_op_context *c, uint32_t out, om_slice *s);
/* Reshape: axes that are split or joined, too. */
bool om_slice_reshape(const om_op_context *c, uint32_t out, om_slice *s);
/* Flatten, Unsqueeze: the same without an operand. */
bool om_slice_flatten(const om_op_context *c, uint32_t out, om_slice *s);
bool om_slice_squeeze(const om_op_context *c, uint32_t out, om_slice *s);

#endif
