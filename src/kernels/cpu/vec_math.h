/* Curves for vectors of floats; beside vec_exp() of simd.h.
 *
 * The polynomials are those of vmath.h: accurate to 2 ULP.  NaN stays NaN. */
#ifndef OM_VEC_MATH_H
#define OM_VEC_MATH_H

#include "kernels/cpu/simd.h"

/* The non-negative `x` with the sign of `y`. */
INLINE vec
vec_signed(vec x, vec y)
{
	return (vec)((ivec)x | ((ivec)y & INT32_MIN));
}

INLINE vec
vec_sigmoid(vec x)
{
	return 1 / (1 + vec_exp(-x));
}

INLINE vec
vec_tanh(vec x)
{
	const vec a = vec_abs(x), z = x * x, e = 1 - 2 / (vec_exp(2 * a) + 1);
	vec p = z * -5.70498872745e-3f + 2.06390887954e-2f;

	p = p * z - 5.37397155531e-2f;
	p = p * z + 1.33314422036e-1f;
	p = p * z - 3.33332819422e-1f;
	p = p * z * a + a;
	return vec_signed(vec_select(a < 0.625f, p, e), x);
}

/* Below 0.9 x P(x^2); above, 1 - exp(-x^2) Q(1 / (1 + x / 2)), which is 1 from 4 on. */
INLINE vec
vec_erf(vec x)
{
	const vec a = vec_abs(x), z = x * x, kept = vec_min(vec_all(4), a), t = 1 / (1 + 0.5f * kept);
	vec p = z * -6.0903589e-4f + 5.0119627e-3f, q = t * -5.0182197e-2f - 6.6619441e-2f;

	p = p * z - 2.6778908e-2f;
	p = p * z + 1.12821408e-1f;
	p = p * z - 3.76125246e-1f;
	p = p * z + 1.28379107e-1f;
	p = p * a + a;
	q = q * t + 4.14363235e-1f;
	q = q * t + 9.5000036e-2f;
	q = q * t + 3.32908124e-1f;
	q = q * t + 2.73260087e-1f;
	q = q * t + 6.3185452e-4f;
	return vec_signed(vec_select(a < 0.9f, p, 1 - vec_exp(-kept * kept) * q), x);
}

/* exp(x) - 1: near 0 by the polynomial of vec_exp() without its constant. */
INLINE vec
vec_expm1(vec x)
{
	vec p = x * 1.9875691500e-4f + 1.3981999507e-3f;

	p = p * x + 8.3334519073e-3f;
	p = p * x + 4.1665795894e-2f;
	p = p * x + 1.6666665459e-1f;
	p = p * x + 5.0000001201e-1f;
	return vec_select(vec_abs(x) < 0.34f, p * x * x + x, vec_exp(x) - 1);
}

#endif
