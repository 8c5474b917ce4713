/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of 16 bits, float16: they become float32, and products of a few rows read a matrix of them as it is. */
#ifndef OM_HALVES_H
#define OM_HALVES_H

#include <stdint.h>

enum {
	OM_HALF_ROWS = 4,         /* the most rows of a product */
	OM_HALF_COLUMNS = 64,     /* ranges of columns are multiples of it, but for the last one */
};

typedef struct om_half_product {
	int64_t rows, k, columns;
	const float *x;           /* [rows][k] */
	const uint16_t *w;        /* [k][columns] */
	uint16_t *y;              /* [rows][columns]: sums in float32, rounded */
} om_half_product;

typedef struct om_half_kernels {
	/* Exact: the same numbers on every machine. */
	void (*widen)(float *to, const uint16_t *from, int64_t n);
	/* Columns [first, end). */
	void (*columns)(const om_half_product *p, int64_t first, int64_t end);
} om_half_kernels;

#endif
