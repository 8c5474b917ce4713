/* Uses of values, as the builder keeps them.
 *
 * A record stands beside each input of an op and each result of a block, and is linked into the
 * list of the value while that place is part of a block.  So to link what is linked, and to drop
 * what is not, does nothing. */
#ifndef OM_USES_H
#define OM_USES_H

#include "onnxmem/ir.h"

/* Input `k` of an op, if that is in a block; result `k` of a block. */
void om_use_input(om_op *op, uint32_t k);
void om_use_result(om_block *b, uint32_t k);
/* Take a record out of the list that it is in. */
void om_use_drop(om_use *u);

/* All that an op reads, its bodies included. */
void om_uses_of_op(om_op *op);
void om_uses_drop_op(om_op *op);
/* All that is read in a block, at any depth. */
void om_uses_drop_block(om_block *b);

#endif
