/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of floats from numbers that are stored in fewer bits; for the sources that are built per instruction set. */
#ifndef OM_STORED_H
#define OM_STORED_H

#include "kernels/cpu/attention.h"
#include "kernels/cpu/simd.h"

/* VL numbers of float16, the bits of NaN among them as om_half_to_float() has them.  The exponent of float32 is larger by 112, that of infinity and NaN
 * by 224.  Below 2^-14 the fraction counts units of 2^-24: it is that of a number from 2^-14 on, from which 2^-14 is taken. */
INLINE vec
vec_load_halves(const uint16_t *p)
{
	const ivec h = vec_load_uint16(p), sign = (ivec)((uvec)(h & 0x8000) << 16), is = (h & 0x7fff) << 13;
	const vec least = (vec)(is + (113 << 23)) - 0x1p-14f;
	const vec other = (vec)(is + (112 << 23) + ((is >= 31 << 23) & 112 << 23));

	return (vec)((ivec)vec_select(is < 1 << 23, least, other) | sign);
}

/* The same numbers, but a NaN may have other bits. */
INLINE vec
vec_load_half_numbers(const uint16_t *p)
{
#if OM_VL == 16
	return (vec)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
#else
	return vec_load_halves(p);
#endif
}

/* VL elements of storage `s`, a constant, that begin at `p`. */
INLINE vec
vec_load_stored(const void *p, const om_stored_as s)
{
	switch (s) {
	case OM_STORED_HALF: return vec_load_half_numbers(p);
	case OM_STORED_BFLOAT: return (vec)((uvec)vec_load_uint16(p) << 16);
	case OM_STORED_INT8: return __builtin_convertvector(vec_load_int8(p), vec);
	case OM_STORED_INT4: return __builtin_convertvector(vec_load_uint4(p) - 8, vec);
	default: return vec_load(p);
	}
}

/* The first `n` of them, 0 < n < VL; an even number with 4 bits.  The others are 0 and are not read. */
INLINE vec
vec_load_some_stored(const void *p, int64_t n, const om_stored_as s)
{
	const bool is_int4 = s == OM_STORED_INT4;
	uint8_t some[VL * sizeof(float)];

	memset(some, is_int4 ? 0x88 : 0, sizeof some);
	memcpy(some, p, (size_t)om_stored_bytes(s, n));
	return vec_load_stored(some, s);
}

#endif
