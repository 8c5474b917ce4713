/* SPDX-License-Identifier: Apache-2.0 */
/* exp, tanh and erf for float32 without calls and branches, so that loops over them can be
 * vectorized; accurate to 1, 2 and 2 ULP.  Argument reduction and polynomials of exp and tanh
 * follow Cody and Waite, and Cephes; the polynomials of erf are fits. */
#ifndef OM_VMATH_H
#define OM_VMATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float
om_float_of(uint32_t bits)
{
	float f;
	memcpy(&f, &bits, sizeof f);
	return f;
}

static inline uint32_t
om_bits_of(float f)
{
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	return bits;
}

/* The non-negative x with the sign of y, including the sign of zero. */
static inline float
om_signed(float x, float y)
{
	return om_float_of(om_bits_of(x) | (om_bits_of(y) & 0x80000000));
}

/* exp(x) = 2^n exp(r), |r| <= log(2) / 2.  2^n is applied as two factors, because it may be
 * outside the range of normal numbers. */
static inline float
om_exp(float x)
{
	const float round = 0x1.8p23f;   /* adding it rounds to an integer */
	const float kept = x < -110 ? -110 : x > 100 ? 100 : x;
	const float t = kept * 1.44269504f + round, n = t - round;
	const uint32_t i = om_bits_of(t) - om_bits_of(round);
	const uint32_t half = (uint32_t)((int32_t)i >> 1), rest = i - half;
	const float r = (kept - n * 0.693359375f) - n * -2.12194440e-4f;
	float p = 1.9875691500e-4f;

	p = p * r + 1.3981999507e-3f;
	p = p * r + 8.3334519073e-3f;
	p = p * r + 4.1665795894e-2f;
	p = p * r + 1.6666665459e-1f;
	p = p * r + 5.0000001201e-1f;
	p = p * r * r + r + 1;
	return p * om_float_of((half + 127) << 23) * om_float_of((rest + 127) << 23);
}

static inline float
om_tanh(float x)
{
	const float z = x * x, a = x < 0 ? -x : x, e = 1 - 2 / (om_exp(2 * a) + 1);
	float p = -5.70498872745e-3f;

	p = p * z + 2.06390887954e-2f;
	p = p * z - 5.37397155531e-2f;
	p = p * z + 1.33314422036e-1f;
	p = p * z - 3.33332819422e-1f;
	p = p * z * a + a;
	return om_signed(z < 0.625f * 0.625f ? p : e, x);
}

/* Below 0.9 x P(x^2); above, 1 - exp(-x^2) Q(1 / (1 + x / 2)), which is 1 from 4 on. */
static inline float
om_erf(float x)
{
	const float a = x < 0 ? -x : x, z = x * x, kept = a > 4 ? 4 : a, t = 1 / (1 + 0.5f * kept);
	float p = -6.0903589e-4f, q = -5.0182197e-2f;

	p = p * z + 5.0119627e-3f;
	p = p * z - 2.6778908e-2f;
	p = p * z + 1.12821408e-1f;
	p = p * z - 3.76125246e-1f;
	p = p * z + 1.28379107e-1f;
	p = p * a + a;
	q = q * t - 6.6619441e-2f;
	q = q * t + 4.14363235e-1f;
	q = q * t + 9.5000036e-2f;
	q = q * t + 3.32908124e-1f;
	q = q * t + 2.73260087e-1f;
	q = q * t + 6.3185452e-4f;
	const float e = 1 - om_exp(-kept * kept) * q;
	return om_signed(a < 0.9f ? p : e, x);
}

/* Generic over the type; the parentheses suppress macros of <tgmath.h>. */
#define EXP(x)   _Generic((x), float: om_exp, default: (exp))(x)
#define ERF(x)   _Generic((x), float: om_erf, default: (erf))(x)
#define TANH(x)  _Generic((x), float: om_tanh, default: (tanh))(x)

#define GELU(T, x)        ((T)0.5 * (x) * (1 + ERF((x) * (T)0.70710678118654752440)))
#define GELU_TANH(T, x)                                                        \
	((T)0.5 * (x) * (1 + TANH((T)0.79788456080286535588                    \
	    * ((x) + (T)0.044715 * (x) * (x) * (x)))))

#endif
