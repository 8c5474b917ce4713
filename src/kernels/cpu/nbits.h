/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a few rows with a matrix of integers of 4 or 8 bits, which is read as it is packed: MatMulNBits.
 *
 * A column of the matrix is a list of bytes of one element, or of two, the first one in the lower bits.  A block of it
 * has a scale and a zero point. */
#ifndef OM_NBITS_H
#define OM_NBITS_H

#include <stdbool.h>
#include <stdint.h>

enum { OM_NBITS_ROWS = 4 };       /* the most rows of a call */

typedef struct om_nbits {
	int64_t rows, columns;
	int64_t blocks, bytes;    /* of a column; bytes of a block, a multiple of 16 */
	bool is_8_bits;           /* a byte is one element, and all elements of the rows are even ones */
	const uint8_t *weights;
	const float *scales;      /* [columns][blocks] */
	const uint8_t *zeros;     /* [columns][zero_bytes], packed like the weights; NULL: all are 8, or 128 */
	int64_t zero_bytes;
	const float *bias;        /* by column; NULL: none */
	/* The rows, as om_nbits_split() leaves them. */
	const float *even, *odd;
	const float *sums;        /* [rows][blocks] */
	float *y;                 /* [rows][columns] */
} om_nbits;

/* Floats of even, odd, and sums for a row. */
int64_t om_nbits_half(const om_nbits *b);

/* Split row `row` of x, of k elements: even and odd elements, zero after the last one, and sums of blocks.  With 8 bits
 * all elements are in `even`, in order, and `odd` is not used. */
void om_nbits_split(const om_nbits *b, const float *x, int64_t k, int64_t row, float *even, float *odd, float *sums);

/* The rows as integers of 8 bits, as om_nbits_round() leaves them: an element is one of them times the scale of its
 * block. */
typedef struct om_nbits_bytes {
	const int8_t *even, *odd; /* [rows][om_nbits_whole()], zero after the last element */
	const float *scales;      /* [rows][om_nbits_whole() / 4]: for each four bytes of even and odd */
} om_nbits_bytes;

/* Bytes of a row of om_nbits_bytes: those of a column and more. */
int64_t om_nbits_whole(const om_nbits *b);

/* Round row `row` of x, of k elements.  `sums` as om_nbits_split(), of the rounded elements.  Elements that are not
 * finite make the scale and the sum of their block NaN. */
void om_nbits_round(const om_nbits *b, const float *x, int64_t k, int64_t row, int8_t *even, int8_t *odd, float *scales,
	float *sums);

typedef struct om_nbits_kernels {
	/* Columns [first, end). */
	void (*columns)(const om_nbits *b, int64_t first, int64_t end);
	/* The same of rounded rows; of `b` without even and odd. */
	void (*rounded)(const om_nbits *b, const om_nbits_bytes *r, int64_t first, int64_t end);
} om_nbits_kernels;

#endif
