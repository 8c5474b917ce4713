/* Values that are no tensors. */
#ifndef OM_CONTAINER_H
#define OM_CONTAINER_H

#include "onnxmem/opdef.h"

/* Types that last: of tensors of elements `t`; of sequences, optionals,
 * optional sequences of them; of maps from `key`, int64 or string, to `t`, and
 * of sequences of those. */
const om_type *om_tensor_of(om_dtype t);
const om_type *om_sequence_of(om_dtype t);
const om_type *om_optional_of(om_dtype t);
const om_type *om_optional_sequence_of(om_dtype t);
const om_type *om_map_of(om_dtype key, om_dtype t);
const om_type *om_maps_of(om_dtype key, om_dtype t);

/* Output `k` is of this type, a tensor or not. */
void om_out_type(om_op_context *c, uint32_t k, const om_type *type);

/* The object that input `k` stands for. */
const om_container *om_in_container(const om_op_context *c, uint32_t k);

/* An object of `n` items, to be filled in: `*item` gets them. */
om_container *om_container_new(om_arena *mem, size_t n, om_tensor **item);

/* The items of `o` and one more behind them.  Memory is shared with `o`, and
 * with whatever else is made of it by this function: a sequence that grows is
 * not copied each time. */
om_container *om_container_append(om_arena *mem, const om_container *o, const om_tensor *item);

/* A tensor with elements of its own, in c->keep. */
om_status om_tensor_keep(om_op_context *c, const om_tensor *from, om_tensor *to);

#endif
