/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of elements between types.
 *
 * Elements are converted in blocks through the widest type of their kind, which represents each of
 * them exactly: integers through int64 or uint64, floats through double.  This requires one loader
 * per type and one writer per type and kind, instead of one loop per pair.  The few pairs that are
 * frequent in models have loops of their own. */
#include <config.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/convert_elements.h"
#include "base/half.h"
#include "base/saturate.h"
#include "base/shape.h"

enum { STRIP = 256 };

typedef enum wide_kind { NOTHING, SIGNED, UNSIGNED, REAL } wide_kind;

struct strip {
	wide_kind kind;
	union {
		int64_t i[STRIP];
		uint64_t u[STRIP];
		double r[STRIP];
	};
};

/* ---- Floats of eight bits and less. ---- */

struct mini {
	int exponent, fraction;   /* bits */
	int bias;
	enum { IEEE, FN, FNUZ, FINITE } special;
};

static const struct mini minis[OM_NDTYPE] = {
	[OM_FLOAT8E4M3FN] = {4, 3, 7, FN},
	[OM_FLOAT8E4M3FNUZ] = {4, 3, 8, FNUZ},
	[OM_FLOAT8E5M2] = {5, 2, 15, IEEE},
	[OM_FLOAT8E5M2FNUZ] = {5, 2, 16, FNUZ},
	[OM_FLOAT4E2M1] = {2, 1, 1, FINITE},
	[OM_FLOAT6E2M3] = {2, 3, 1, FINITE},
	[OM_FLOAT6E3M2] = {3, 2, 3, FINITE},
};

static double
mini_to_double(const struct mini *m, unsigned bits)
{
	const int top = m->exponent + m->fraction;
	const unsigned magnitude = bits & ((1u << top) - 1), sign = bits >> top & 1;
	const int e = (int)(magnitude >> m->fraction);
	const unsigned f = magnitude & ((1u << m->fraction) - 1), all = (1u << top) - 1;
	double v;

	if (m->special == FNUZ && sign && magnitude == 0)
		return NAN;
	if (m->special == FN && magnitude == all)
		return NAN;
	if (m->special == IEEE && e == (1 << m->exponent) - 1)
		v = f ? NAN : INFINITY;
	else if (e == 0)
		v = ldexp(f, 1 - m->bias - m->fraction);
	else
		v = ldexp((1 << m->fraction) + (int)f, e - m->bias - m->fraction);
	return sign ? -v : v;
}

/* The code of the largest finite number. */
static unsigned
mini_largest(const struct mini *m)
{
	const unsigned all = (1u << (m->exponent + m->fraction)) - 1;

	switch (m->special) {
	case IEEE: return all - (1u << m->fraction);
	case FN: return all - 1;
	case FNUZ: case FINITE: break;
	}
	return all;
}

static unsigned
mini_nan(const struct mini *m, unsigned sign)
{
	const int top = m->exponent + m->fraction;

	if (m->special == FNUZ)
		return 1u << top;
	if (m->special == IEEE)  /* quiet NaN */
		return sign << top | (mini_largest(m) + 1) | 1u << (m->fraction - 1);
	return sign << top | ((1u << top) - 1);
}

static unsigned
mini_overflow(const struct mini *m, unsigned sign, bool saturate)
{
	const int top = m->exponent + m->fraction;

	if (saturate || m->special == FINITE)
		return sign << top | mini_largest(m);
	if (m->special == IEEE)
		return sign << top | (mini_largest(m) + 1);
	return mini_nan(m, sign);
}

/* Round to nearest, ties to even.  Magnitudes are counted in units in the last place, in which
 * neighboring codes differ by one. */
static unsigned
mini_of_double(const struct mini *m, double v, bool saturate)
{
	const unsigned sign = signbit(v) != 0;
	int e;

	if (isnan(v))
		return m->special == FINITE ? 1u << (m->exponent + m->fraction) : mini_nan(m, sign);
	if (v == 0)
		return m->special == FNUZ ? 0 : sign << (m->exponent + m->fraction);
	if (isinf(v))
		return mini_overflow(m, sign, saturate);
	frexp(v, &e);
	e = e - 1 < 1 - m->bias ? 1 - m->bias : e - 1;
	if (e > 64)
		return mini_overflow(m, sign, saturate);
	const double units = nearbyint(ldexp(fabs(v), m->fraction - e));
	const unsigned code = (unsigned)units + ((unsigned)(e + m->bias - 1) << m->fraction);
	if (code > mini_largest(m))
		return mini_overflow(m, sign, saturate);
	if (code == 0 && m->special == FNUZ)
		return 0;
	return sign << (m->exponent + m->fraction) | code;
}

/* Powers of two, without sign: 2^(bits - 127). */
static double
scale_to_double(uint8_t bits)
{
	return bits == 255 ? NAN : ldexp(1, bits - 127);
}

static uint8_t
scale_of_double(double v, bool saturate)
{
	int e;

	if (isnan(v))
		return 255;
	v = fabs(v);
	if (v == 0)
		return 0;
	if (isinf(v))
		return saturate ? 254 : 255;
	const double f = frexp(v, &e);  /* v = f * 2^e, f in [1/2, 1) */
	e += f > 0.5 ? 127 : 126;       /* rounds up: the default round_mode of Cast */
	if (e > 254)
		return saturate ? 254 : 255;
	return e < 0 ? 0 : (uint8_t)e;
}

/* ---- Loading. ---- */

static unsigned
packed(const uint8_t *in, int64_t i, unsigned bits)
{
	const unsigned at = (unsigned)((uint64_t)i * bits % 8);
	return in[(uint64_t)i * bits / 8] >> at & ((1u << bits) - 1);
}

static int
sign_extended(unsigned v, unsigned bits)
{
	return v >> (bits - 1) ? (int)v - (1 << bits) : (int)v;
}

static double
parsed(om_string text)
{
	char small[64];

	if (text.size >= sizeof small)
		return NAN;
	memcpy(small, text.data, text.size);
	small[text.size] = 0;
	return strtod(small, NULL);
}

#define LOAD(type, T, sort, field)                                             \
	case OM_##type:                                                        \
		for (int k = 0; k < n; k++)                                    \
			s->field[k] = ((const T *)in)[at + k];                 \
		return sort;
#define LOAD_AS(type, sort, field, expr)                                       \
	case OM_##type:                                                        \
		for (int k = 0; k < n; k++)                                    \
			s->field[k] = (expr);                                  \
		return sort;

static wide_kind
load(struct strip *s, om_dtype from, const void *in, int64_t at, int n)
{
	const uint8_t *bytes = in;
	const uint16_t *words = in;

	switch (from) {
	LOAD(FLOAT32, float, REAL, r)
	LOAD(FLOAT64, double, REAL, r)
	LOAD(INT8, int8_t, SIGNED, i)
	LOAD(INT16, int16_t, SIGNED, i)
	LOAD(INT32, int32_t, SIGNED, i)
	LOAD(INT64, int64_t, SIGNED, i)
	LOAD(UINT8, uint8_t, SIGNED, i)
	LOAD(UINT16, uint16_t, SIGNED, i)
	LOAD(UINT32, uint32_t, SIGNED, i)
	LOAD(UINT64, uint64_t, UNSIGNED, u)
	LOAD_AS(BOOL, SIGNED, i, bytes[at + k] != 0)
	LOAD_AS(FLOAT16, REAL, r, om_half_to_float(words[at + k]))
	LOAD_AS(BFLOAT16, REAL, r, om_bfloat_to_float(words[at + k]))
	LOAD_AS(UINT4, SIGNED, i, packed(bytes, at + k, 4))
	LOAD_AS(INT4, SIGNED, i, sign_extended(packed(bytes, at + k, 4), 4))
	LOAD_AS(UINT2, SIGNED, i, packed(bytes, at + k, 2))
	LOAD_AS(INT2, SIGNED, i, sign_extended(packed(bytes, at + k, 2), 2))
	LOAD_AS(FLOAT4E2M1, REAL, r, mini_to_double(&minis[from], packed(bytes, at + k, 4)))
	LOAD_AS(FLOAT8E8M0, REAL, r, scale_to_double(bytes[at + k]))
	LOAD_AS(STRING, REAL, r, parsed(((const om_string *)in)[at + k]))
	case OM_FLOAT8E4M3FN: case OM_FLOAT8E4M3FNUZ: case OM_FLOAT8E5M2: case OM_FLOAT8E5M2FNUZ:
	case OM_FLOAT6E2M3: case OM_FLOAT6E3M2:
		for (int k = 0; k < n; k++)
			s->r[k] = mini_to_double(&minis[from], bytes[at + k]);
		return REAL;
	default:
		return NOTHING;
	}
}

/* ---- Writing. ---- */

/* Anything but a floating-point number is an integer from here on. */
static void
make_integers(struct strip *s, int n)
{
	if (s->kind != REAL)
		return;
	for (int k = 0; k < n; k++)
		s->i[k] = OM_SATURATE(int64_t, s->r[k]);
	s->kind = SIGNED;
}

static void
make_reals(struct strip *s, int n)
{
	for (int k = 0; k < n && s->kind == SIGNED; k++)
		s->r[k] = (double)s->i[k];
	for (int k = 0; k < n && s->kind == UNSIGNED; k++)
		s->r[k] = (double)s->u[k];
	s->kind = REAL;
}

static void
write_packed(uint8_t *out, int64_t i, unsigned bits, unsigned v)
{
	const unsigned at = (unsigned)((uint64_t)i * bits % 8), mask = ((1u << bits) - 1) << at;
	uint8_t *byte = &out[(uint64_t)i * bits / 8];

	/* The first element of a byte clears the rest of the byte, which may be padding. */
	*byte = (uint8_t)((at ? *byte & ~mask : 0) | (v << at & mask));
}

#define WRITE_INTEGER(type, T)                                                 \
	case OM_##type:                                                        \
		if (s->kind == REAL)                                           \
			for (int k = 0; k < n; k++)                            \
				((T *)out)[at + k] = OM_SATURATE(T, s->r[k]);  \
		else                                                           \
			for (int k = 0; k < n; k++)                            \
				((T *)out)[at + k] = (T)s->u[k];               \
		return;
#define WRITE_PACKED(type, bits)                                               \
	case OM_##type:                                                        \
		make_integers(s, n);                                           \
		for (int k = 0; k < n; k++)                                    \
			write_packed(out, at + k, bits, (unsigned)s->u[k]);    \
		return;
#define WRITE_FLOAT(type, T)                                                   \
	case OM_##type:                                                        \
		if (s->kind == REAL)                                           \
			for (int k = 0; k < n; k++)                            \
				((T *)out)[at + k] = (T)s->r[k];               \
		else if (s->kind == SIGNED)                                    \
			for (int k = 0; k < n; k++)                            \
				((T *)out)[at + k] = (T)s->i[k];               \
		else                                                           \
			for (int k = 0; k < n; k++)                            \
				((T *)out)[at + k] = (T)s->u[k];               \
		return;
#define WRITE_REAL(type, expr)                                                 \
	case OM_##type:                                                        \
		make_reals(s, n);                                              \
		for (int k = 0; k < n; k++)                                    \
			expr;                                                  \
		return;

static void
write_small_reals(struct strip *s, om_dtype to, void *out, int64_t at, int n, bool saturate)
{
	uint8_t *bytes = out;
	uint16_t *words = out;

	make_reals(s, n);
	switch (to) {
	WRITE_REAL(FLOAT16, words[at + k] = om_float_to_half((float)s->r[k]))
	WRITE_REAL(BFLOAT16, words[at + k] = om_float_to_bfloat((float)s->r[k]))
	WRITE_REAL(FLOAT4E2M1, write_packed(out, at + k, 4, mini_of_double(&minis[to], s->r[k], saturate)))
	WRITE_REAL(FLOAT8E8M0, bytes[at + k] = scale_of_double(s->r[k], saturate))
	default:
		for (int k = 0; k < n; k++)
			bytes[at + k] = (uint8_t)mini_of_double(&minis[to], s->r[k], saturate);
	}
}

static void
write_strip(struct strip *s, om_dtype to, void *out, int64_t at, int n, bool saturate)
{
	switch (to) {
	WRITE_FLOAT(FLOAT32, float)
	WRITE_FLOAT(FLOAT64, double)
	WRITE_INTEGER(INT8, int8_t)
	WRITE_INTEGER(INT16, int16_t)
	WRITE_INTEGER(INT32, int32_t)
	WRITE_INTEGER(INT64, int64_t)
	WRITE_INTEGER(UINT8, uint8_t)
	WRITE_INTEGER(UINT16, uint16_t)
	WRITE_INTEGER(UINT32, uint32_t)
	WRITE_INTEGER(UINT64, uint64_t)
	WRITE_PACKED(UINT4, 4)
	WRITE_PACKED(INT4, 4)
	WRITE_PACKED(UINT2, 2)
	WRITE_PACKED(INT2, 2)
	case OM_BOOL:
		for (int k = 0; k < n; k++)
			((uint8_t *)out)[at + k] = s->kind == REAL ? s->r[k] != 0 : s->u[k] != 0;
		return;
	default:
		write_small_reals(s, to, out, at, n, saturate);
	}
}

/* ---- Pairs with loops of their own. ---- */

#define PAIR(from_type, F, to_type, T, expr)                                   \
	if (from == OM_##from_type && to == OM_##to_type) {                    \
		const F *x = in;                                               \
		T *y = out;                                                    \
		for (int64_t k = 0; k < n; k++)                                \
			y[k] = (expr);                                         \
		return true;                                                   \
	}

static bool
convert_often(om_dtype to, void *out, om_dtype from, const void *in, int64_t n)
{
	PAIR(FLOAT16, uint16_t, FLOAT32, float, om_half_to_float(x[k]))
	PAIR(FLOAT32, float, FLOAT16, uint16_t, om_float_to_half(x[k]))
	PAIR(BFLOAT16, uint16_t, FLOAT32, float, om_bfloat_to_float(x[k]))
	PAIR(FLOAT32, float, BFLOAT16, uint16_t, om_float_to_bfloat(x[k]))
	PAIR(UINT8, uint8_t, FLOAT32, float, x[k])
	PAIR(INT8, int8_t, FLOAT32, float, x[k])
	PAIR(BOOL, uint8_t, FLOAT32, float, x[k] != 0)
	PAIR(INT32, int32_t, FLOAT32, float, (float)x[k])
	PAIR(INT64, int64_t, FLOAT32, float, (float)x[k])
	PAIR(FLOAT32, float, INT64, int64_t, OM_SATURATE(int64_t, x[k]))
	PAIR(INT64, int64_t, INT32, int32_t, (int32_t)x[k])
	PAIR(INT32, int32_t, INT64, int64_t, x[k])
	return false;
}

/* ---- Text. ---- */

/* 64-bit integers are parsed as integers: a double cannot represent all of them. */
static void
read_integers(om_dtype to, void *out, const om_string *text, int64_t n)
{
	char small[64];

	for (int64_t k = 0; k < n; k++) {
		const size_t length = text[k].size < sizeof small ? text[k].size : 0;
		if (length)
			memcpy(small, text[k].data, length);
		small[length] = 0;
		if (strpbrk(small, ".eEnN"))
			((int64_t *)out)[k] = to == OM_UINT64 ? (int64_t)OM_SATURATE(uint64_t, parsed(text[k]))
				: OM_SATURATE(int64_t, parsed(text[k]));
		else if (to == OM_UINT64)
			((uint64_t *)out)[k] = strtoull(small, NULL, 10);
		else
			((int64_t *)out)[k] = strtoll(small, NULL, 10);
	}
}

int
om_number_text(om_dtype t, const void *data, int64_t k, char *out, size_t size)
{
	struct strip s;

	s.kind = load(&s, t, data, k, 1);
	if (s.kind == SIGNED)
		return snprintf(out, size, "%lld", (long long)s.i[0]);
	if (s.kind == UNSIGNED)
		return snprintf(out, size, "%llu", (unsigned long long)s.u[0]);
	if (isnan(s.r[0]))
		return snprintf(out, size, "NaN");
	if (isinf(s.r[0]))
		return snprintf(out, size, s.r[0] < 0 ? "-INF" : "INF");
	return snprintf(out, size, t == OM_FLOAT64 ? "%.17g" : "%.8g", s.r[0]);
}

/* ---- All pairs. ---- */

bool
om_can_convert(om_dtype to, om_dtype from)
{
	const bool number = om_dtype_is_float(to) || om_dtype_is_integer(to) || to == OM_BOOL;

	return number && (from == OM_STRING || from == OM_BOOL || om_dtype_is_float(from)
	    || om_dtype_is_integer(from));
}

void
om_convert(om_dtype to, void *out, om_dtype from, const void *in, int64_t n, bool saturate)
{
	struct strip s;

	if (convert_often(to, out, from, in, n))
		return;
	if (from == OM_STRING && (to == OM_INT64 || to == OM_UINT64)) {
		read_integers(to, out, in, n);
		return;
	}
	for (int64_t at = 0; at < n; at += STRIP) {
		const int m = n - at < STRIP ? (int)(n - at) : STRIP;
		s.kind = load(&s, from, in, at, m);
		write_strip(&s, to, out, at, m, saturate);
	}
}
