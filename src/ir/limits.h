/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that passes reached. */
#ifndef OM_LIMITS_H
#define OM_LIMITS_H

#include "onnxmem/ir.h"

/* A copy whose texts are allocated from `mem`. */
om_limit om_limit_copy(om_arena *mem, const om_limit *limit);

/* Append a copy to those of the program. */
void om_limit_add(om_prog *p, const om_limit *limit);

/* Remove those of the pass called `pass`. */
void om_limits_forget(om_prog *p, const char *pass);

#endif
