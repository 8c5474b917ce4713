/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of sizes in bytes and counts of elements: what does not fit is UINT64_MAX, a size that no memory has, so
 * that a single check at the end refuses it. */
#ifndef OM_SIZES_H
#define OM_SIZES_H

#include <stdint.h>

static inline uint64_t
om_size_sum(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static inline uint64_t
om_size_product(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Of counts that are not negative, b > 0. */
static inline int64_t
om_quotient_up(int64_t a, int64_t b)
{
	return a / b + (a % b != 0);
}

/* The greatest common divisor; of 0 and `b` it is `b`. */
static inline uint64_t
om_common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		const uint64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* `n` times the product of so many sizes, none of which is negative. */
static inline uint64_t
om_size_volume(uint64_t n, const int64_t *size, int count)
{
	for (int k = 0; k < count; k++)
		n = om_size_product(n, (uint64_t)size[k]);
	return n;
}

/* The least multiple of `to` that is not less than `n`. */
static inline uint64_t
om_size_rounded_up(uint64_t n, uint64_t to)
{
	return n > UINT64_MAX - (to - 1) ? UINT64_MAX : (n + (to - 1)) / to * to;
}

/* Buffers in scratch start at multiples of 64 bytes. */
static inline uint64_t
om_piece_size(uint64_t bytes)
{
	return om_size_rounded_up(bytes, 64);
}

#endif
