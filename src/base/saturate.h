/* SPDX-License-Identifier: Apache-2.0 */
/* Floating-point numbers as integers: truncated towards zero; NaN becomes 0, and numbers out of range become the bound
 * that they exceed.  C leaves such conversions undefined, so all casts of numbers from models go through these. */
#ifndef OM_SATURATE_H
#define OM_SATURATE_H

#include <stdint.h>

static inline int64_t
om_saturate_signed(double x, unsigned bits)
{
	const int64_t most = INT64_MAX >> (64 - bits);

	if (x != x)
		return 0;
	return x >= (double)most ? most : x <= -(double)most - 1 ? -most - 1 : (int64_t)x;
}

static inline uint64_t
om_saturate_unsigned(double x, unsigned bits)
{
	const uint64_t most = UINT64_MAX >> (64 - bits);

	return x >= (double)most ? most : x > 0 ? (uint64_t)x : 0;
}

/* As a number of the integer type T. */
#define OM_SATURATE(T, x)                                                       \
	((T)-1 < (T)1 ? (T)om_saturate_signed((double)(x), 8 * sizeof(T)) : (T)om_saturate_unsigned((double)(x), 8 * sizeof(T)))

/* An expression of any number type as T, which is any number type. */
#define OM_NUMBER(T, x)                                                         \
	_Generic((x), float: (T)0.5 != 0 ? (T)(x) : OM_SATURATE(T, x), double: (T)0.5 != 0 ? (T)(x) : OM_SATURATE(T, x), \
		default: (T)(x))

#endif
