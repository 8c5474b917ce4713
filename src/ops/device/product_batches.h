/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of matrix products for devices: kernels have two dims of them. */
#ifndef OM_PRODUCT_BATCHES_H
#define OM_PRODUCT_BATCHES_H

#include "opdef/device_kernel.h"

/* Product z has batch indices z / batches and z % batches, by which the operands advance. */
typedef struct om_product_batches {
	int64_t pairs, batches;
	int64_t a[2], b[2];
} om_product_batches;

/* Of inputs 0 and 1, whose leading dims are broadcast; false if more than two dims are left. */
bool om_product_batches_of(const om_op_context *c, om_product_batches *p);

#endif
