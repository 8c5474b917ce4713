/* SPDX-License-Identifier: Apache-2.0 */
/* Element types and shapes: functions that only sources of the library call; see onnxmem/tensor.h. */
#ifndef OM_SHAPE_H
#define OM_SHAPE_H

#include "onnxmem/tensor.h"

om_dtype om_dtype_find(const char *text);   /* OM_UNDEFINED if there is none */

bool om_dtype_is_integer(om_dtype t);       /* signed and unsigned, not bool */

/* True if one tensor may have both shapes: no rank or dim that is known in both differs. */
bool om_shape_agree(const om_shape *a, const om_shape *b);

/* A completely unknown shape. */
om_shape om_shape_unknown(void);

/* Product of the dims [from, to) of a known shape; INT64_MAX where it is larger than that. */
int64_t om_shape_span(const om_shape *s, int from, int to);

/* Bytes of `count` elements; packed types are rounded up to a whole byte.  False when the count is
 * negative or the result overflows. */
bool om_dtype_bytes(om_dtype t, int64_t count, uint64_t *bytes);

bool om_dtype_is_float(om_dtype t);         /* float64 to float4 */

/* Where elements may lie.  Kernels read elements that are aligned for their type, and so do passes, except that
 * the elements of a large constant of floating point may lie at any address: in a mapped file, where others
 * would be copied at once.  Those are moved as bytes, or aligned before they are read. */
bool om_tensor_is_aligned(const om_tensor *t);
bool om_tensor_may_be_unaligned(om_dtype t, uint64_t bytes);
/* Copy elements that are not aligned to `mem`. */
void om_tensor_align(om_arena *mem, om_tensor *t);

/* A shape of `rank` unknown dims; completely unknown if `rank` is not a valid rank. */
om_shape om_shape_open(int64_t rank);

#endif
