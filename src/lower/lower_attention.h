/* SPDX-License-Identifier: Apache-2.0 */
/* Recognition of attention. */
#ifndef OM_LOWER_ATTENTION_H
#define OM_LOWER_ATTENTION_H

#include "onnxmem/ir.h"

/* If `softmax` is that of attention, replace the last op of it by one of org.onnxmem.cpu; the others are left for
 * pruning.  `*done` tells whether it was. */
om_status om_lower_attention(om_session *s, om_prog *p, om_arena *mem, om_op *softmax, bool *done);

#endif
