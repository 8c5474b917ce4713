/* Products of a few rows with a matrix of 4-bit integers, which is read as it is packed: MatMulNBits.
 *
 * A column of the matrix is a list of bytes of two elements, the first one in the lower bits.  A block of it has a
 * scale and a zero point. */
#ifndef OM_NBITS_H
#define OM_NBITS_H

#include <stdint.h>

enum { OM_NBITS_ROWS = 4 };       /* the most rows of a call */

typedef struct om_nbits {
	int64_t rows, columns;
	int64_t blocks, bytes;    /* of a column; bytes of a block, a multiple of 16 */
	const uint8_t *weights;
	const float *scales;      /* [columns][blocks] */
	const uint8_t *zeros;     /* [columns][zero_bytes], packed like the weights; NULL: all are 8 */
	int64_t zero_bytes;
	const float *bias;        /* by column; NULL: none */
	/* The rows, as om_nbits_split() leaves them. */
	const float *even, *odd, *sums;
	float *y;                 /* [rows][columns] */
} om_nbits;

/* Floats of even, odd, and sums for a row. */
int64_t om_nbits_half(const om_nbits *b);

/* Split row `row` of x, of k elements: even and odd elements, zero after the last one, and sums of blocks. */
void om_nbits_split(const om_nbits *b, const float *x, int64_t k, int64_t row, float *even, float *odd, float *sums);

typedef struct om_nbits_kernels {
	/* Columns [first, end). */
	void (*columns)(const om_nbits *b, int64_t first, int64_t end);
} om_nbits_kernels;

#endif
