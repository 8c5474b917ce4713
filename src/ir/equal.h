/* SPDX-License-Identifier: Apache-2.0 */
/* Equality of elements: of tensors and attributes, bit by bit. */
#ifndef OM_EQUAL_H
#define OM_EQUAL_H

#include "onnxmem/ir.h"

/* The same type, shape and elements, which are there; both are splats, or neither is. */
bool om_tensor_equal(const om_tensor *a, const om_tensor *b);

/* The same kind and elements, whatever the names.  References and graphs are equal to nothing. */
bool om_attr_equal(const om_attr *a, const om_attr *b);

/* As many attributes, and those of one name are equal. */
bool om_op_attrs_equal(const om_op *a, const om_op *b);

/* Bytes of the elements that memory holds: of a splat, those of one. */
uint64_t om_tensor_held_bytes(const om_tensor *t);

#endif
