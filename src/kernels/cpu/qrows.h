/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise functions of quantized bytes, with one scale and one zero point for each tensor; results are those of the
 * reference kernels in all bits.  Pools of channels-last images. */
#ifndef OM_QROWS_H
#define OM_QROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/cpu/geometry.h"

/* How bytes stand for numbers: (byte - zero) * scale. */
typedef struct om_qscale {
	float scale;
	int32_t zero;
	bool is_signed;
} om_qscale;

typedef struct om_qrows_kernels {
	void (*quantize)(uint8_t *y, const float *x, int64_t n, const om_qscale *to);
	/* The least and the largest of the numbers and 0; NaNs are left out. */
	void (*range)(const float *x, int64_t n, float *least, float *most);
	void (*dequantize)(float *y, const uint8_t *x, int64_t n, const om_qscale *of);
	/* y = a + b, or a * b; y may be a or b. */
	void (*add)(uint8_t *y, const uint8_t *a, const uint8_t *b, int64_t n, const om_qscale *of_a, const om_qscale *of_b,
		const om_qscale *to);
	void (*mul)(uint8_t *y, const uint8_t *a, const uint8_t *b, int64_t n, const om_qscale *of_a, const om_qscale *of_b,
		const om_qscale *to);
	/* sums[c] = the sum of x[r * row + c] over the rows: c < n.  At most 2^23 rows. */
	void (*sum)(int32_t *sums, const uint8_t *x, int64_t rows, int64_t row, int64_t n, bool is_signed);
	/* Lines [first, end) of the maxima over windows of an image with so many channels; windows overlap the image. */
	void (*max_lines)(const om_geometry *g, int64_t channels, bool is_signed, const uint8_t *x, uint8_t *y, int64_t first,
		int64_t end);
	/* to[j * to_row + i] = from[i * from_row + j], i < m, j < n. */
	void (*transpose)(uint8_t *to, const uint8_t *from, int64_t m, int64_t n, int64_t to_row, int64_t from_row);
} om_qrows_kernels;

#endif
