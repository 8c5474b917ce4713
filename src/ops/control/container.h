/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are not tensors: sequences, optionals, maps. */
#ifndef OM_CONTAINER_H
#define OM_CONTAINER_H

#include "onnxmem/opdef.h"

/* Types of unlimited lifetime: tensors of elements `t`; sequences, optionals and optional
 * sequences of these; maps from `key`, int64 or string, to `t`, and sequences of such maps. */
const om_type *om_tensor_of(om_dtype t);
const om_type *om_sequence_of(om_dtype t);
const om_type *om_optional_of(om_dtype t);
const om_type *om_optional_sequence_of(om_dtype t);
const om_type *om_map_of(om_dtype key, om_dtype t);
const om_type *om_maps_of(om_dtype key, om_dtype t);

/* Set the type of output `k`, a tensor or not. */
void om_out_type(om_op_context *c, uint32_t k, const om_type *type);

/* The container held by input `k`. */
const om_container *om_in_container(const om_op_context *c, uint32_t k);

/* A container of `n` items; the caller fills them in through `*item`. */
om_container *om_container_new(om_arena *mem, size_t n, om_tensor **item);

/* The items of `o` followed by `item`.  Memory is shared with `o` and with all containers
 * derived from it by this function: a growing sequence is not copied at each step. */
om_container *om_container_append(om_arena *mem, const om_container *o, const om_tensor *item);

/* A tensor with its own copy of the elements, in c->keep. */
om_status om_tensor_keep(om_op_context *c, const om_tensor *from, om_tensor *to);

#endif
