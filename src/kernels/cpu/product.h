/* SPDX-License-Identifier: Apache-2.0 */
/* Products of float32 matrices that are both computed: nothing is known before the run but shapes.
 *
 * A batch is divided into pieces that workers run in any order.  The way to sum is chosen from the shape of the
 * whole product, so the result depends neither on the number of workers nor on alignment. */
#ifndef OM_PRODUCT_H
#define OM_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/parallel.h"

enum {
	OM_PRODUCT_RANK = 16,
	OM_PRODUCT_DEPTH = 4096,  /* rows of B that are packed at a time */
	OM_PRODUCT_WIDTH = 64,    /* columns, on the machine with the widest panels */
};

/* How a product is computed; om_product_way() chooses. */
typedef enum om_product_way { OM_PRODUCT_PANELS, OM_PRODUCT_DOTS, OM_PRODUCT_ROW, OM_NPRODUCT } om_product_way;

/* C = alpha A B, or C += alpha A B.  A is m by k, B is k by n; element (i, j) of A is a[i * a_row + j * a_col].
 * Columns of C are contiguous. */
typedef struct om_product {
	int64_t m, n, k;
	int64_t a_row, a_col, b_row, b_col, c_row;
	float alpha;
	bool add;
	om_product_way way;
} om_product;

/* A product for every index of the batch axes, with the steps of the operands along them; 0 repeats an operand.
 * No two products write the same elements of C. */
typedef struct om_product_batch {
	om_product p;
	int rank;
	int64_t dim[OM_PRODUCT_RANK], a[OM_PRODUCT_RANK], b[OM_PRODUCT_RANK], c[OM_PRODUCT_RANK];
	bool is_swapped;          /* A and B, with their steps */
} om_product_batch;

typedef void om_product_fn(const om_product *p, const float *a, const float *b, float *c, float *room);

typedef struct om_product_kernels {
	om_product_fn *multiply[OM_NPRODUCT];
} om_product_kernels;

/* Choose the way, and swap the operands of a product whose transpose is faster. */
void om_product_choose(om_product_batch *b);

/* Bytes of workspace for so many workers; UINT64_MAX if they overflow.  The same on every machine. */
uint64_t om_product_workspace(const om_product_batch *b, uint32_t workers);

/* Compute a batch that om_product_choose() has seen.  `room` is aligned to 64. */
void om_product_run(const om_product_batch *b, const float *x, const float *y, float *c, void *room, om_workers *pool);

#endif
