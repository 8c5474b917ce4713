/* Cast and CastLike.
 *
 * Elements are converted in blocks through the widest type of their kind, which represents each of
 * them exactly: integers through int64 or uint64, floats through double.  This requires one loader
 * per type and one writer per type and kind, instead of one loop per pair.  The few pairs that are
 * frequent in models have loops of their own. */
#include <config.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ops/tensor/cast.h"
#include "base/half.h"
#include "base/shape.h"
#include "ir/query.h"
#include "opdef/family.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"

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

static int64_t
truncated(double r)
{
	if (r >= 0x1p63)
		return r < 0x1p64 ? (int64_t)(uint64_t)r : INT64_MAX;
	return r >= -0x1p63 ? (int64_t)r : isnan(r) ? 0 : INT64_MIN;
}

/* Anything but a floating-point number is an integer from here on. */
static void
make_integers(struct strip *s, int n)
{
	if (s->kind != REAL)
		return;
	for (int k = 0; k < n; k++)
		s->i[k] = truncated(s->r[k]);
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
		make_integers(s, n);                                           \
		for (int k = 0; k < n; k++)                                    \
			((T *)out)[at + k] = (T)s->u[k];                       \
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
write(struct strip *s, om_dtype to, void *out, int64_t at, int n, bool saturate)
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
	PAIR(FLOAT32, float, INT64, int64_t, truncated(x[k]))
	PAIR(INT64, int64_t, INT32, int32_t, (int32_t)x[k])
	PAIR(INT32, int32_t, INT64, int64_t, x[k])
	return false;
}

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
	for (int64_t at = 0; at < n; at += STRIP) {
		const int m = n - at < STRIP ? (int)(n - at) : STRIP;
		s.kind = load(&s, from, in, at, m);
		write(&s, to, out, at, m, saturate);
	}
}

/* ---- Operator definitions. ---- */

#define CASTABLE  (OF_NUMBERS | OF_PACKED | OF_FLOAT8S | OF(BOOL) | OF(FLOAT8E8M0) | OF(STRING))

static om_status
type_infer(om_op_context *c)
{
	const int64_t to = om_attr_int(c->op, "to");

	if (to <= OM_UNDEFINED || to >= OM_NDTYPE)
		return om_op_fail(c->session, OM_INVALID, c->op, "attribute to is %lld, which is no element type",
			(long long)to);
	c->out[0].type = (om_dtype)to;
	c->out[0].shape = c->in[0].shape;
	return OM_OK;
}

static om_status
cast_infer(om_op_context *c)
{
	OM_TRY(type_infer(c));
	return om_must_be_of(c, c->out[0].type, CASTABLE | OF_FLOAT6S);
}

/* Before version 6 the attribute holds the name of the type in the schema. */
static om_status
named_cast_infer(om_op_context *c)
{
	static const struct { const char *name; om_dtype type; } names[] = {
		{"FLOAT", OM_FLOAT32}, {"DOUBLE", OM_FLOAT64}, {"FLOAT16", OM_FLOAT16}, {"BOOL", OM_BOOL},
		{"INT8", OM_INT8}, {"INT16", OM_INT16}, {"INT32", OM_INT32}, {"INT64", OM_INT64},
		{"STRING", OM_STRING}, {"UINT8", OM_UINT8}, {"UINT16", OM_UINT16}, {"UINT32", OM_UINT32}, {"UINT64", OM_UINT64},
	};
	const om_string to = om_attr_string(c->op, "to");

	c->out[0].shape = c->in[0].shape;
	for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
		if (om_attr_is(c->op, "to", names[k].name)) {
			c->out[0].type = names[k].type;
			return OM_OK;
		}
	return om_op_fail(c->session, OM_INVALID, c->op, "attribute to is %.*s, which is no element type",
		(int)(to.size < 64 ? to.size : 64), to.data);
}

static om_status
cast_like_infer(om_op_context *c)
{
	c->out[0].type = c->in[1].type;
	c->out[0].shape = c->in[0].shape;
	return OM_OK;
}

/* Conversions between integers of 32 and 64 bits preserve symbolic dims. */
static void
cast_elems(const om_op_context *c, om_symbolic_elem *e)
{
	const om_symbolic_elem *from;
	size_t n;

	if ((c->in[0].type == OM_INT64 || c->in[0].type == OM_INT32) && om_in_symbolic_elems(c, 0, &from, &n))
		memcpy(e, from, n * sizeof *e);
}

static bool
cast_view(const om_op_context *c, uint32_t out, om_view_of *v)
{
	(void)out;
	*v = (om_view_of){0, 0};
	return c->in[0].type == c->out[0].type;
}

/* The second input of CastLike is never read; only its width matters. */
static bool
cast_reuse(const om_op_context *c, uint32_t out, uint32_t in)
{
	(void)out;
	return in == 0 && om_dtype_bits(c->in[0].type) == om_dtype_bits(c->out[0].type);
}

/* A number as text: `%.8g` for float32 and smaller, exact for all other types; NaN and
 * infinities are written as exporters write them. */
static int
print_number(om_dtype t, const void *data, int64_t k, char *out, size_t size)
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

static om_status
cast_to_text(om_op_context *c)
{
	const om_tensor *x = &c->in[0];
	om_string *to = c->out[0].data;
	char text[64];

	if (!om_can_convert(OM_FLOAT32, x->type))
		return om_no_kernel(c, x->type);
	for (int64_t k = 0; k < om_shape_count(&x->shape); k++) {
		const int n = print_number(x->type, x->data, k, text, sizeof text);
		to[k] = (om_string){om_strndup(c->keep, text, (size_t)n), (size_t)n};
	}
	return OM_OK;
}

/* 64-bit integers are parsed as integers: a double cannot represent all of them. */
static void
read_whole(const om_tensor *x, om_tensor *y)
{
	const om_string *text = x->data;
	char small[64];

	for (int64_t k = 0; k < om_shape_count(&y->shape); k++) {
		const size_t n = text[k].size < sizeof small ? text[k].size : 0;
		if (n)
			memcpy(small, text[k].data, n);
		small[n] = 0;
		if (strpbrk(small, ".eEnN"))
			((int64_t *)y->data)[k] = truncated(parsed(text[k]));
		else if (y->type == OM_UINT64)
			((uint64_t *)y->data)[k] = strtoull(small, NULL, 10);
		else
			((int64_t *)y->data)[k] = strtoll(small, NULL, 10);
	}
}

struct cast {
	int64_t saturate;
	int64_t n;                /* elements */
	uint64_t bytes;           /* of the output */
};

static const om_attr_field cast_fields[] = {OM_FIELD(struct cast, INT, saturate), {0}};

static om_status
cast_prepare(om_op_context *c, void **state)
{
	const om_tensor *x = &c->in[0], *y = &c->out[0];
	struct cast *s = *state;

	s->n = om_shape_count(&y->shape);
	om_dtype_bytes(y->type, s->n, &s->bytes);
	if (x->type == y->type || y->type == OM_STRING)
		return OM_OK;
	if (!om_can_convert(y->type, x->type))
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "there is no kernel from %s to %s",
			om_dtype_text(x->type), om_dtype_text(y->type));
	if (y->type == OM_FLOAT8E8M0 && !om_attr_is(c->op, "round_mode", "up"))
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "there is no kernel for this round_mode");
	return OM_OK;
}

static om_status
cast_cpu(om_op_context *c)
{
	const struct cast *s = c->state;
	const om_tensor *x = &c->in[0];
	om_tensor *y = &c->out[0];

	if (x->type == y->type) {
		memmove(y->data, x->data, s->bytes);
		return OM_OK;
	}
	if (y->type == OM_STRING)
		return cast_to_text(c);
	if (x->type == OM_STRING && (y->type == OM_INT64 || y->type == OM_UINT64)) {
		read_whole(x, y);
		return OM_OK;
	}
	om_convert(y->type, y->data, x->type, x->data, s->n, s->saturate != 0);
	return OM_OK;
}

/* ---- BitCast. ---- */

static om_status
bits_infer(om_op_context *c)
{
	const om_dtype from = c->in[0].type;

	OM_TRY(type_infer(c));
	const om_dtype to = c->out[0].type;
	if (from != OM_UNDEFINED && (from == OM_STRING || to == OM_STRING || om_dtype_bits(from) != om_dtype_bits(to)))
		return om_op_fail(c->session, OM_SHAPE, c->op, "the bits of %s are none of %s", om_dtype_text(from),
			om_dtype_text(to));
	return OM_OK;
}

static om_status
bits_cpu(om_op_context *c)
{
	uint64_t bytes = 0;

	om_tensor_bytes(c->out[0].type, &c->out[0].shape, &bytes);
	memmove(c->out[0].data, c->in[0].data, bytes);
	return OM_OK;
}

static bool
bits_view(const om_op_context *c, uint32_t out, om_view_of *v)
{
	(void)c;
	*v = (om_view_of){0, 0};
	return out == 0;
}

static const om_attr_spec cast_attrs[] = {
	{"to", OM_ATTR_INT, .required = true},
	{"saturate", OM_ATTR_INT, .i = 1},
	{"round_mode", OM_ATTR_STRING, .s = "up"},
	{0}
};

static const om_attr_spec named_cast_attrs[] = {
	{"to", OM_ATTR_STRING, .required = true},
	{0}
};

static const om_attr_spec cast_like_attrs[] = {
	{"saturate", OM_ATTR_INT, .i = 1},
	{"round_mode", OM_ATTR_STRING, .s = "up"},
	{0}
};

static const om_attr_spec bits_attrs[] = {{"to", OM_ATTR_INT, .required = true}, {0}};

const om_opdef om_ops_cast[] = {
	{
		.name = "BitCast", .brief = "the same bits as elements of another type",
		.since = 26, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .attrs = bits_attrs,
		.infer = bits_infer, .view = bits_view, .inplace = cast_reuse, .cpu = bits_cpu,
		.input_types = {OF_NUMBERS | OF_PACKED | OF_FLOAT8S | OF_COMPLEX | OF(BOOL) | OF(FLOAT8E8M0)},
	},
	{
		.name = "Cast", .brief = "the same numbers in another element type",
		.since = 1, .until = 5, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1,
		.flags = OM_POINTWISE, .attrs = named_cast_attrs, .infer = named_cast_infer,
		.view = cast_view, .inplace = cast_reuse, .cpu = cast_cpu,
		.input_types = {CASTABLE | OF_FLOAT6S},
	},
	{
		.name = "Cast", .brief = "the same numbers in another element type",
		.since = 6, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1,
		.flags = OM_POINTWISE, .attrs = cast_attrs, .infer = cast_infer, .propagate_data = cast_elems,
		.view = cast_view, .inplace = cast_reuse, .cpu = cast_cpu,
		.input_types = {CASTABLE | OF_FLOAT6S},
	},
	{
		.name = "CastLike", .brief = "the same numbers in the element type of a second input",
		.since = 15, .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1,
		.flags = OM_POINTWISE, .attrs = cast_like_attrs, .infer = cast_like_infer,
		.view = cast_view, .inplace = cast_reuse, .cpu = cast_cpu,
		.input_types = {CASTABLE, CASTABLE},
	},
	{0}
};

#define CAST(label)                                                            \
	{.name = label, .fields = cast_fields, .state_bytes = sizeof(struct cast), \
	 .prepare = cast_prepare, .run = cast_cpu}

const om_kernel om_kernels_cast[] = {CAST("Cast"), CAST("CastLike"), {0}};
