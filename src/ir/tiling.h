/* SPDX-License-Identifier: Apache-2.0 */
/* What tiling did to a program: see onnxmem/tiling.h. */
#ifndef OM_IR_TILING_H
#define OM_IR_TILING_H

#include "onnxmem/ir.h"
#include "onnxmem/tiling.h"

/* A copy that is allocated from `mem`, with its texts. */
om_tiling *om_tiling_copy(om_arena *mem, const om_tiling *t);

#endif
