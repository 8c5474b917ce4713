/* exp and tanh of float32 without calls and branches, so that a loop over them
 * can be vectorised; to within 1 and 2 units in the last place.  Reduction and
 * polynomials after Cody and Waite and Cephes. */
#ifndef OM_VMATH_H
#define OM_VMATH_H

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

/* exp(x) = 2^n exp(r), |r| <= log(2) / 2.  2^n is made of two factors: on its
 * own it need not be a normal number. */
static inline float
om_exp(float x)
{
	const float round = 0x1.8p23f;   /* adding it leaves no room for a fraction */
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
	const float z = x * x, e = 1 - 2 / (om_exp(2 * (x < 0 ? -x : x)) + 1);
	float p = -5.70498872745e-3f;

	p = p * z + 2.06390887954e-2f;
	p = p * z - 5.37397155531e-2f;
	p = p * z + 1.33314422036e-1f;
	p = p * z - 3.33332819422e-1f;
	p = p * z * x + x;
	return z < 0.625f * 0.625f ? p : x < 0 ? -e : e;
}

/* For the types at hand; the parentheses keep <tgmath.h> away. */
#define EXP(x)   _Generic((x), float: om_exp, default: (exp))(x)
#define TANH(x)  _Generic((x), float: om_tanh, default: (tanh))(x)

#endif
