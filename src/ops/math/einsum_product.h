/* SPDX-License-Identifier: Apache-2.0 */
/* An Einsum of float32 operands as products of matrices. */
#ifndef OM_EINSUM_PRODUCT_H
#define OM_EINSUM_PRODUCT_H

#include "opdef/geometry/einsum.h"

typedef struct om_einsum_products om_einsum_products;

/* The products of the operands from left to right, allocated in c->mem; NULL where they do not suit: a summed
 * index that occurs in one operand only, a single operand, intermediate results much larger than the
 * operands, or matrices of a few elements. */
om_einsum_products *om_einsum_products_new(const om_op_context *c, const struct om_einsum *e);

/* Bytes of workspace. */
uint64_t om_einsum_products_workspace(const om_einsum_products *p, uint32_t workers);

/* Compute the output of the call that they were made for. */
void om_einsum_products_run(const om_einsum_products *p, om_op_context *c);

#endif
