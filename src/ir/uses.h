/* SPDX-License-Identifier: Apache-2.0 */
/* Uses of values, maintained by the builder.
 *
 * Each input of an op and each result of a block has a use record, which is linked into the list of
 * the value while that operand is part of a block.  Linking a linked record, and dropping an unlinked
 * one, has no effect.
 */
#ifndef OM_USES_H
#define OM_USES_H

#include "onnxmem/ir.h"

/* Link input `k` of an op, if the op is in a block, or result `k` of a block. */
void om_use_input(om_op *op, uint32_t k);
void om_use_result(om_block *b, uint32_t k);
/* Append an unlinked record to the list of `v`. */
void om_use_link(om_use *u, om_value *v);
/* Unlink a record from its list. */
void om_use_drop(om_use *u);

/* Link or unlink everything that an op reads, its bodies included. */
void om_uses_of_op(om_op *op);
void om_uses_drop_op(om_op *op);
/* Unlink everything that is read in a block, at any depth. */
void om_uses_drop_block(om_block *b);

#endif
