/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of elements, for collectives. */
#ifndef OM_SUM_H
#define OM_SUM_H

#include "onnxmem/tensor.h"

/* Can elements of the type be summed?  OM_UNSUPPORTED with a message if not. */
om_status om_sum_check(om_session *s, om_dtype type);

/* to[i] += from[i].  float16 and bfloat16 are rounded after each sum; integers wrap around. */
void om_sum_into(om_dtype type, void *to, const void *from, uint64_t n);

#endif
