/* SPDX-License-Identifier: Apache-2.0 */
/* Products with integers of 4 or 8 bits: see nbits.h.  A column is read once for all rows, block by block: the sum of the
 * products with the integers as they are, times the scale; what the zero points add to that is known from the sums of
 * the rows.  Those of 8 bits are taken from the integers.  With rows of 8-bit integers, products of a vector of bytes are added as integers: those of integers of 8 bits
 * are the products with their lower and with their higher bits. */
#include <config.h>

#include "kernels/cpu/nbits.h"
#include "kernels/cpu/simd.h"

/* The sums of the products of a block, in lanes.  Zero points are taken from integers of 8 bits before: sums would be hundreds of
 * times as large, and infinite where x is large. */
INLINE void
add_block(const om_nbits *b, const uint8_t *w, int64_t at, const int rows, const bool is_8_bits, int32_t zero, vec *sum)
{
	const int64_t half = b->blocks * b->bytes;

	for (int64_t k = 0; k < b->bytes; k += VL) {
		const ivec q = vec_load_uint8(w + k);
		const vec low = __builtin_convertvector(is_8_bits ? q - zero : q & 15, vec), high = __builtin_convertvector(q >> 4, vec);
		UNROLL
		for (int r = 0; r < rows; r++) {
			sum[r] += low * vec_load(b->even + r * half + at + k);
			if (!is_8_bits)
				sum[r] += high * vec_load(b->odd + r * half + at + k);
		}
	}
}

INLINE float
zero_of(const om_nbits *b, int64_t column, int64_t block, const bool is_8_bits)
{
	if (is_8_bits)
		return b->zeros ? b->zeros[column * b->zero_bytes + block] : 128;
	return b->zeros ? (float)(b->zeros[column * b->zero_bytes + block / 2] >> block % 2 * 4 & 15) : 8;
}

/* What the zero points of a column take from the product of row `r`, whose terms have the integers as they are. */
INLINE float
less_of(const om_nbits *b, int64_t n, int r, const bool is_8_bits)
{
	const float *scales = b->scales + n * b->blocks, *sums = b->sums + r * b->blocks;
	vec part = {0};
	float all = 0, rest = 0;
	int64_t i = 0;

	for (; b->zeros && i < b->blocks; i++)
		all += scales[i] * zero_of(b, n, i, is_8_bits) * sums[i];
	for (; i + VL <= b->blocks; i += VL)
		part += vec_load(scales + i) * vec_load(sums + i);
	for (; VL < 16 && i < b->blocks; i++)     /* where a part of a vector is loaded element by element */
		rest += scales[i] * sums[i];
	if (i < b->blocks)
		part += vec_load_some(scales + i, b->blocks - i) * vec_load_some(sums + i, b->blocks - i);
	return all + (is_8_bits ? 128 : 8) * (vec_sum(part) + rest);
}

INLINE void
store_column(const om_nbits *b, int64_t n, const int rows, const bool is_8_bits, const bool has_zeros, const vec *sum)
{
	UNROLL
	for (int r = 0; r < rows; r++)
		b->y[r * b->columns + n] = vec_sum(sum[r]) - (has_zeros ? less_of(b, n, r, is_8_bits) : 0) + (b->bias ? b->bias[n] : 0);
}

INLINE void
column(const om_nbits *b, int64_t n, const int rows, const bool is_8_bits)
{
	const uint8_t *w = b->weights + n * b->blocks * b->bytes;
	const float *scales = b->scales + n * b->blocks;
	vec sum[OM_NBITS_ROWS] = {{0}};

	for (int64_t i = 0; i < b->blocks; i++, w += b->bytes) {
		vec part[OM_NBITS_ROWS] = {{0}};
		add_block(b, w, i * b->bytes, rows, is_8_bits, is_8_bits ? (int32_t)zero_of(b, n, i, true) : 0, part);
		__builtin_prefetch(w + 1024, 0, 3);
		UNROLL
		for (int r = 0; r < rows; r++)
			sum[r] += part[r] * scales[i];
	}
	store_column(b, n, rows, is_8_bits, !is_8_bits, sum);
}

INLINE void
columns_of(const om_nbits *b, int64_t first, int64_t end, const bool is_8_bits)
{
	for (int64_t n = first; n < end; n++)
		switch (b->rows) {
		case 1: column(b, n, 1, is_8_bits); break;
		case 2: column(b, n, 2, is_8_bits); break;
		case 3: column(b, n, 3, is_8_bits); break;
		default: column(b, n, 4, is_8_bits); break;
		}
}

static void
columns(const om_nbits *b, int64_t first, int64_t end)
{
	if (b->is_8_bits)
		columns_of(b, first, end, true);
	else
		columns_of(b, first, end, false);
}

/* ---- Rounded rows. ---- */

enum { BYTES = 4 * VL, PIECE = 16 };  /* of a vector; a block is a multiple of PIECE */

/* Each of the first floats 2^shift times. */
INLINE vec
repeated(const float *p, int64_t n, const int shift)
{
	ivec from = {0};

	UNROLL
	for (int k = 0; k < VL; k++)
		from[k] = k >> shift;
	return vec_permute(vec_load_some(p, LEAST(n, VL)), from);
}

/* The scales of the four bytes of each lane of a vector at byte `at` of a column; after the last block any of them. */
INLINE vec
lane_scales(const om_nbits *b, const float *scales, int64_t at)
{
	const int64_t block = at / b->bytes, left = b->blocks - block;
	float lanes[VL];

	if (b->bytes % BYTES == 0)
		return vec_all(scales[block]);
	if (b->bytes == PIECE && VL / 4 <= left)
		return vec_repeat_four(scales + block);
	if (b->bytes == PIECE)
		return repeated(scales + block, left, 2);
	if (b->bytes == 2 * PIECE)
		return repeated(scales + block, left, 3);
	for (int k = 0; k < VL; k++) {
		const int64_t own = (at + 4 * k) / b->bytes;
		lanes[k] = scales[own < b->blocks ? own : block];
	}
	return vec_load(lanes);
}

/* The products with the bytes of `q`, in lanes of four, and with rows at byte `at`. */
INLINE ivec
dots_of(const om_nbits_bytes *r, ivec q, int64_t at, const bool is_8_bits)
{
	const ivec low = q & 0x0f0f0f0f, high = (ivec)((uvec)q >> 4) & 0x0f0f0f0f, even = *(const ivec *)(const void *)(r->even + at);

	if (is_8_bits)
		return vec_dot_small((ivec){0}, low, even) + 16 * vec_dot_small((ivec){0}, high, even);
	return vec_dot_small(vec_dot_small((ivec){0}, low, even), high, *(const ivec *)(const void *)(r->odd + at));
}

/* `whole`: om_nbits_whole(b), which is no call for each vector. */
INLINE void
add_rounded(const om_nbits *b, const om_nbits_bytes *r, int64_t whole, ivec q, const float *scales, int64_t at, const int rows,
	const bool is_8_bits, vec *sum)
{
	const vec scale = lane_scales(b, scales, at);

	UNROLL
	for (int k = 0; k < rows; k++)
		sum[k] += __builtin_convertvector(dots_of(r, q, k * whole + at, is_8_bits), vec)
			* (scale * vec_load(r->scales + (k * whole + at) / 4));
}

INLINE void
rounded_column(const om_nbits *b, const om_nbits_bytes *r, int64_t whole, int64_t n, const int rows, const bool is_8_bits)
{
	const int64_t half = b->blocks * b->bytes;
	const uint8_t *w = b->weights + n * half;
	const float *scales = b->scales + n * b->blocks;
	vec sum[OM_NBITS_ROWS] = {{0}};
	int64_t at = 0;

	for (; at + BYTES <= half; at += BYTES) {
		__builtin_prefetch(w + at + 1024, 0, 3);
		add_rounded(b, r, whole, *(const ivec *)(const void *)(w + at), scales, at, rows, is_8_bits, sum);
	}
	if (at < half)
		add_rounded(b, r, whole, (ivec)vec_load_some((const float *)(const void *)(w + at), (half - at) / 4), scales, at, rows, is_8_bits,
			sum);
	store_column(b, n, rows, is_8_bits, true, sum);
}

INLINE void
rounded_of(const om_nbits *b, const om_nbits_bytes *r, int64_t first, int64_t end, const bool is_8_bits)
{
	const int64_t whole = om_nbits_whole(b);

	for (int64_t n = first; n < end; n++)
		switch (b->rows) {
		case 1: rounded_column(b, r, whole, n, 1, is_8_bits); break;
		case 2: rounded_column(b, r, whole, n, 2, is_8_bits); break;
		case 3: rounded_column(b, r, whole, n, 3, is_8_bits); break;
		default: rounded_column(b, r, whole, n, 4, is_8_bits); break;
		}
}

static void
rounded(const om_nbits *b, const om_nbits_bytes *r, int64_t first, int64_t end)
{
	if (b->is_8_bits)
		rounded_of(b, r, first, end, true);
	else
		rounded_of(b, r, first, end, false);
}

extern const om_nbits_kernels OM_TABLE(om_nbits_kernels);

const om_nbits_kernels OM_TABLE(om_nbits_kernels) = {.columns = columns, .rounded = rounded};
