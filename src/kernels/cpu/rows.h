/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, softmax, normalizations and transposes of lines of float32.
 *
 * The order of every sum is fixed: lanes of vectors over blocks, then the blocks in order.  It depends neither on
 * alignment nor on the place of the line.  Sums are float within a block and double between blocks (columns:
 * float, at most 128 rows a block), so that the rounding error does not grow with the length of a line as that of
 * a single float would.  A sum that leaves the range of float is computed again in double. */
#ifndef OM_ROWS_H
#define OM_ROWS_H

#include <stdint.h>

enum om_reduce_kind {
	OM_REDUCE_SUM, OM_REDUCE_SUM_SQUARE, OM_REDUCE_SUM_ABS, OM_REDUCE_PRODUCT, OM_REDUCE_MAX, OM_REDUCE_MIN,
	OM_NREDUCE
};

/* The mean is center + shift: a float close to it, and the rest. */
typedef struct om_moments {
	float center;
	double shift, variance;
} om_moments;

/* y = ((x - center) * factor + offset) * scale[i] + bias[i]; NULL: without. */
typedef struct om_normalizer {
	float center, factor, offset;
	const float *scale, *bias;
} om_normalizer;

/* Windows of channels that are `stride` floats apart: y = x / (bias + alpha * sum of squares)^beta. */
typedef struct om_lrn {
	int64_t channels, stride;
	int64_t below, above;     /* channels of a window, besides its own */
	double alpha, beta, bias; /* alpha: for the sum, not for the mean */
} om_lrn;

typedef struct om_rows_kernels {
	/* One line of n elements; y may be x. */
	void (*softmax)(float *y, const float *x, int64_t n);
	void (*log_softmax)(float *y, const float *x, int64_t n);
	/* `width` adjacent lines, whose elements are `stride` apart; y may be x. */
	void (*softmax_columns)(float *y, const float *x, int64_t n, int64_t stride, int64_t width);
	void (*log_softmax_columns)(float *y, const float *x, int64_t n, int64_t stride, int64_t width);

	/* n contiguous elements.  Maximum and minimum are NaN if one is. */
	double (*run[OM_NREDUCE])(const float *x, int64_t n);
	/* Each of `width` adjacent columns of n rows that are `stride` apart; n > 0. */
	void (*columns[OM_NREDUCE])(float *out, const float *x, int64_t n, int64_t stride, int64_t width);

	om_moments (*moments)(const float *x, int64_t n);
	void (*normalize)(float *y, const float *x, int64_t n, const om_normalizer *by);
	/* y = x * factor * scale[i]; scale may be NULL. */
	void (*scale)(float *y, const float *x, int64_t n, float factor, const float *scale);
	/* y = (x - center) * factor + bias. */
	void (*affine)(float *y, const float *x, int64_t n, float center, float factor, float bias);
	/* y[i] = (x[i] - center[i]) * factor[i] + bias[i]. */
	void (*affine_row)(float *y, const float *x, int64_t n, const float *center, const float *factor, const float *bias);
	/* `width` adjacent columns, all channels; y is not x. */
	void (*lrn)(float *y, const float *x, const om_lrn *l, int64_t width);
	/* y = a + b, and the sum is stored; for additions before a normalization. */
	void (*add)(float *y, const float *a, const float *b, int64_t n);
	/* to[j * to_row + i] = from[i * from_row + j], i < m, j < n: bits are moved. */
	void (*transpose)(float *to, const float *from, int64_t m, int64_t n, int64_t to_row, int64_t from_row);
} om_rows_kernels;

#endif
