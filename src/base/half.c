/* SPDX-License-Identifier: Apache-2.0 */
/* 16-bit floating-point numbers. */
#include <config.h>

#include "base/half.h"

static float
float_of_bits(uint32_t u)
{
	float f;
	memcpy(&f, &u, sizeof f);
	return f;
}

static uint32_t
bits_of_float(float f)
{
	uint32_t u;
	memcpy(&u, &f, sizeof u);
	return u;
}

float
om_half_to_float(uint16_t h)
{
	const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
	const uint32_t exponent = h >> 10 & 0x1f, fraction = h & 0x3ff;

	if (exponent == 0x1f)
		return float_of_bits(sign | 0x7f800000 | fraction << 13);
	if (exponent)
		return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
	const float small = (float)fraction * 0x1p-24f;
	return sign ? -small : small;
}

uint16_t
om_float_to_half(float f)
{
	const uint32_t u = bits_of_float(f);
	const uint16_t sign = (uint16_t)(u >> 16 & 0x8000);
	const uint32_t magnitude = u & 0x7fffffff;

	if (magnitude > 0x7f800000)
		return sign | 0x7e00 | (uint16_t)(magnitude >> 13 & 0x3ff);
	if (magnitude >= 0x477ff000)    /* rounds to 65536 or more */
		return sign | 0x7c00;
	if (magnitude < 0x38800000) {   /* below 2^-14: the sum rounds to units of 2^-24 */
		const float shifted = float_of_bits(magnitude) + 0.5f;
		return sign | (uint16_t)(bits_of_float(shifted) - 0x3f000000);
	}
	const uint32_t odd = magnitude >> 13 & 1;
	return sign | (uint16_t)((magnitude + 0xfff + odd - (UINT32_C(112) << 23)) >> 13);
}

float
om_bfloat_to_float(uint16_t h)
{
	return float_of_bits((uint32_t)h << 16);
}

uint16_t
om_float_to_bfloat(float f)
{
	const uint32_t u = bits_of_float(f);

	if ((u & 0x7fffffff) > 0x7f800000)
		return (uint16_t)(u >> 16 | 0x40);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
