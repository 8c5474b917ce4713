/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of products with integers of 4 or 8 bits; see nbits.h. */
#include <config.h>

#include <math.h>
#include <string.h>

#include "kernels/cpu/nbits.h"

int64_t
om_nbits_half(const om_nbits *b)
{
	return b->blocks * b->bytes;
}

void
om_nbits_split(const om_nbits *b, const float *x, int64_t k, int64_t row, float *even, float *odd, float *sums)
{
	const int64_t half = om_nbits_half(b);

	even += row * half;
	memset(even, 0, (size_t)half * sizeof *even);
	if (b->is_8_bits) {
		memcpy(even, x, (size_t)k * sizeof *even);
	} else {
		odd += row * half;
		memset(odd, 0, (size_t)half * sizeof *odd);
		for (int64_t i = 0; i < k; i++)
			(i % 2 ? odd : even)[i / 2] = x[i];
	}
	for (int64_t i = 0; i < b->blocks; i++) {
		double sum = 0;
		for (int64_t j = i * b->bytes; j < (i + 1) * b->bytes; j++)
			sum += (double)even[j] + (b->is_8_bits ? 0 : (double)odd[j]);
		sums[row * b->blocks + i] = (float)sum;
	}
}

enum { WIDEST = 64 };             /* bytes of a vector */

int64_t
om_nbits_whole(const om_nbits *b)
{
	return (om_nbits_half(b) + WIDEST - 1) / WIDEST * WIDEST;
}

/* The largest magnitude; NaN if an element is not finite. */
static float
largest(const float *x, int64_t n)
{
	float most = 0, all = 0;

	for (int64_t i = 0; i < n; i++) {
		most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
		all += x[i] * 0;
	}
	return most + all;
}

void
om_nbits_round(const om_nbits *b, const float *x, int64_t k, int64_t row, int8_t *even, int8_t *odd, float *scales, float *sums)
{
	const int64_t whole = om_nbits_whole(b), per = b->is_8_bits ? 1 : 2, block = per * b->bytes;

	even += row * whole;
	scales += row * whole / 4;
	memset(even, 0, (size_t)whole);
	if (!b->is_8_bits)
		memset(odd += row * whole, 0, (size_t)whole);
	memset(scales, 0, (size_t)(whole / 4) * sizeof *scales);
	for (int64_t i = 0; i < b->blocks; i++) {
		const int64_t from = i * block, n = k - from < block ? k - from : block;
		const float most = largest(x + from, n), scale = most / 127, by = most > 0 ? 127 / most : 0;
		int32_t sum = 0;
		for (int64_t j = 0; j < n; j++) {
			/* Adding 1.5 * 2^23 rounds half to even. */
			const int32_t q = by > 0 && by < INFINITY ? (int32_t)((x[from + j] * by + 0x1.8p23f) - 0x1.8p23f) : 0;
			((from + j) % per ? odd : even)[(from + j) / per] = (int8_t)q;
			sum += q;
		}
		for (int64_t j = 0; j < b->bytes / 4; j++)
			scales[i * b->bytes / 4 + j] = scale;
		sums[row * b->blocks + i] = scale * (float)sum;
	}
}
