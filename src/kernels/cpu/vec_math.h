/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of vectors of floats, for the builds of each instruction set.
 *
 * Largest error in ULP, over a dense sample of all floats (tests/unit/elementwise.c measures it with a margin):
 *
 *     vec_exp 2      vec_log 2       vec_log1p_of_unit 2   vec_expm1 2
 *     vec_tanh 3     vec_erf 3       vec_sigmoid 3         vec_softplus 3
 *     vec_gelu 3.5, vec_silu 3, vec_gelu_tanh 3 of its argument
 *     vec_sin, vec_cos: 2 ULP of 1 (absolute error 1.2e-7), as results close to 0 keep fewer digits
 *
 * Infinities, NaN and zeros are mapped as by the functions of C.  Argument reduction and polynomials follow
 * Cody and Waite, and Cephes; those of erf are fits. */
#ifndef OM_VEC_MATH_H
#define OM_VEC_MATH_H

#include <math.h>

#include "kernels/cpu/simd.h"

/* The non-negative `a` with the signs of `b`. */
INLINE vec
vec_signed(vec a, vec b)
{
	return (vec)((ivec)a | ((ivec)b & INT32_MIN));
}

/* Integers as floats. */
INLINE vec
vec_of_ints(ivec i)
{
	typedef float floats __attribute__((vector_size(OM_VL * 4)));
	typedef int32_t ints __attribute__((vector_size(OM_VL * 4)));

	return (vec)__builtin_convertvector((ints)i, floats);
}

/* Rounds to an integer, halves to even. */
INLINE vec
vec_round(vec x)
{
	const vec round = vec_all(0x1p23f), a = vec_abs(x), whole = (a + round) - round;

	return vec_signed(vec_select(a < round, whole, a), x);
}

INLINE vec
vec_floor(vec x)
{
	const vec whole = vec_round(x);
	return vec_signed(vec_abs(whole - vec_select(whole > x, vec_all(1), vec_all(0))), vec_select(x < 0, x, whole));
}

INLINE vec
vec_ceil(vec x)
{
	return -vec_floor(-x);
}

/* x = 2^e m with m in [sqrt(1/2), sqrt(2)). */
INLINE vec
vec_log(vec x)
{
	const ivec is_small = x < 0x1p-126f;
	const vec scaled = vec_select(is_small, x * 0x1p23f, x);
	const ivec e = (ivec)((uvec)scaled - 0x3f3504f3) >> 23;
	const vec n = vec_of_ints(e) - vec_select(is_small, vec_all(23), vec_all(0));
	const vec f = (vec)((uvec)scaled - ((uvec)e << 23)) - 1, z = f * f;
	vec p = f * 7.0376836292e-2f - 1.1514610310e-1f;

	p = p * f + 1.1676998740e-1f;
	p = p * f - 1.2420140846e-1f;
	p = p * f + 1.4249322787e-1f;
	p = p * f - 1.6668057665e-1f;
	p = p * f + 2.0000714765e-1f;
	p = p * f - 2.4999993993e-1f;
	p = p * f + 3.3333331174e-1f;
	p = p * f * z - n * 2.12194440e-4f - z * 0.5f;
	p = n * 0.693359375f + (f + p);
	p = vec_select(x == 0, vec_all(-INFINITY), p);
	p = vec_select(x < INFINITY, p, x);
	return vec_select(x >= 0, p, vec_all(NAN));
}

/* log(1 + x) for x in [0, 1]: the part of x that is lost in 1 + x is added. */
INLINE vec
vec_log1p_of_unit(vec x)
{
	const vec u = 1 + x;
	return vec_log(u) + (x - (u - 1)) / u;
}

/* exp(x) - 1 = 2^n (exp(r) - 1) + (2^n - 1); beyond 20 as exp(x) - 1. */
INLINE vec
vec_expm1(vec x)
{
	const vec kept = vec_max(vec_min(vec_all(20.0f), x), vec_all(-30.0f));
	const vec safe = vec_select(x == x, kept, x);
	const vec round = vec_all(0x1.8p23f), t = safe * 1.44269504f + round, n = t - round;
	const vec scale = (vec)((((uvec)t - (uvec)round) + 127) << 23);
	const vec r = (safe - n * 0.693359375f) + n * 2.12194440e-4f;
	vec p = r * 1.9875691500e-4f + 1.3981999507e-3f;

	p = p * r + 8.3334519073e-3f;
	p = p * r + 4.1665795894e-2f;
	p = p * r + 1.6666665459e-1f;
	p = p * r + 5.0000001201e-1f;
	p = p * r * r + r;
	p = vec_select(n == 0, p, p * scale + (scale - 1));
	p = vec_select(x > 20, vec_exp(x) - 1, p);
	return vec_select(x == 0, x, p);
}

INLINE vec
vec_tanh(vec x)
{
	const vec z = x * x, a = vec_abs(x), e = 1 - 2 / (vec_exp(2 * a) + 1);
	vec p = z * -5.70498872745e-3f + 2.06390887954e-2f;

	p = p * z - 5.37397155531e-2f;
	p = p * z + 1.33314422036e-1f;
	p = p * z - 3.33332819422e-1f;
	p = p * z * a + a;
	return vec_signed(vec_select(z < 0.625f * 0.625f, p, e), x);
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

INLINE vec
vec_sigmoid(vec x)
{
	return 1 / (1 + vec_exp(-x));
}

/* x / (1 + 2^y).  The integer n nearest to y is in the low bits of t, with the bias of exponents, so that these bits are the
 * power of n: infinity for 128, which stands for all larger numbers.  2^(y - n) is a fit, within 1e-7. */
INLINE vec
vec_gated(vec x, vec y)
{
	const vec kept = vec_max(vec_all(-126), vec_min(vec_all(128), y));
	const vec t = kept + (0x1.8p23f + 127), r = kept - (t - (0x1.8p23f + 127));
	vec p = r * 1.326472875e-3f + 9.671513182e-3f;

	p = p * r + 5.550733745e-2f;
	p = p * r + 2.402224208e-1f;
	p = p * r + 6.931469776e-1f;
	p = p * r + 1;
	return x / (p * (vec)((uvec)t << 23) + 1);
}

/* x sigmoid(x).  The error of the product with log2(e) grows with x, but there the result is close to 0, or to x. */
INLINE vec
vec_silu(vec x)
{
	return vec_gated(x, x * -1.44269504f);
}

/* x Phi(x), where the distribution Phi(x) is 1/2 + x P(x^2) / Q(x^2), and 0 or 1 beyond 5.4: the quotient exceeds 1/2 there. */
INLINE vec
vec_gelu(vec x)
{
	const vec kept = vec_max(vec_all(-5.4f), vec_min(vec_all(5.4f), x)), z = kept * kept;
	vec p = z * 2.62476583e-8f + 6.43334852e-6f, q = z * 1.30416799e-6f + 6.77917997e-5f;

	p = p * z + 1.47067301e-4f;
	p = p * z + 4.55306051e-3f;
	p = p * z + 3.14995497e-2f;
	p = p * z + 3.98942292e-1f;
	q = q * z + 1.76270329e-3f;
	q = q * z + 2.73499675e-2f;
	q = q * z + 2.45624557e-1f;
	q = q * z + 1;
	return x * (0.5f + vec_max(vec_all(-0.5f), vec_min(vec_all(0.5f), kept * p / q)));
}

/* x (1 + tanh(u)) / 2 is x sigmoid(2 u). */
INLINE vec
vec_gelu_tanh(vec x)
{
	return vec_gated(x, -2.30220818f * (x + 0.044715f * x * x * x));
}

/* log(1 + exp(x)). */
INLINE vec
vec_softplus(vec x)
{
	return vec_max(vec_all(0), x) + vec_log1p_of_unit(vec_exp(-vec_abs(x)));
}

/* x tanh(log(1 + e)) with e = exp(x) is x e (e + 2) / (e (e + 2) + 2): 1 beyond 20. */
INLINE vec
vec_mish(vec x)
{
	const vec e = vec_exp(vec_min(vec_all(20), x)), n = e * (e + 2);
	return x * (n / (n + 2));
}

/* Lanes that the reduction of vec_sine() does not serve: large numbers, infinities and NaN. */
NOINLINE __attribute__((unused)) vec
vec_sine_by_lane(vec x, vec y, int is_cosine)
{
	float from[OM_VL], to[OM_VL];

	memcpy(from, &x, sizeof from);
	memcpy(to, &y, sizeof to);
	for (int k = 0; k < OM_VL; k++)
		if (!(from[k] >= -8192 && from[k] <= 8192))
			to[k] = is_cosine ? cosf(from[k]) : sinf(from[k]);
	memcpy(&y, to, sizeof to);
	return y;
}

INLINE int
vec_any(ivec mask)
{
	int32_t m[OM_VL], any = 0;

	memcpy(m, &mask, sizeof m);
	for (int k = 0; k < OM_VL; k++)
		any |= m[k];
	return any != 0;
}

/* The remainder r of x = n pi / 2 + r; of sin(r) and cos(r), the quadrant selects one and its sign. */
INLINE vec
vec_sine(vec x, const int is_cosine)
{
	const vec round = vec_all(0x1.8p23f), t = x * 0.63661977236758134f + round, n = t - round;
	const uvec quadrant = (uvec)t + (uint32_t)is_cosine;
	const vec r = ((x - n * 1.5703125f) - n * 4.837512969970703125e-4f) - n * 7.549789948768648e-8f;
	const vec z = r * r;
	vec s = z * -1.9515295891e-4f + 8.3321608736e-3f, c = z * 2.443315711809948e-5f - 1.388731625493765e-3f;

	s = s * z - 1.6666654611e-1f;
	s = s * z * r + r;
	c = c * z + 4.166664568298827e-2f;
	c = c * z * z - 0.5f * z + 1;
	const vec part = vec_select(-(ivec)(quadrant & 1), c, s);
	vec y = (vec)((uvec)part ^ ((quadrant & 2) << 30));
	const ivec is_served = vec_abs(x) <= 8192;
	if (!is_cosine)
		y = vec_select(x == 0, x, y);
	return vec_any(~is_served) ? vec_sine_by_lane(x, y, is_cosine) : y;
}

INLINE vec
vec_sin(vec x)
{
	return vec_sine(x, 0);
}

INLINE vec
vec_cos(vec x)
{
	return vec_sine(x, 1);
}

/* Other powers, by the library of C. */
NOINLINE __attribute__((unused)) vec
vec_pow(vec x, float exponent)
{
	float v[OM_VL];

	memcpy(v, &x, sizeof v);
	for (int k = 0; k < OM_VL; k++)
		v[k] = powf(v[k], exponent);
	memcpy(&x, v, sizeof v);
	return x;
}

/* x^0.5 as pow() has it: of zeros +0, of -infinity +infinity. */
INLINE vec
vec_pow_half(vec x)
{
	return vec_select(x == -INFINITY, vec_all(INFINITY), vec_sqrt(x) + 0);
}

#endif
