/* SPDX-License-Identifier: Apache-2.0 */
/* Regular elementwise operators: those of pointwise.def, and Equal.
 *
 * A line of that file is an operator: its loops and its definition are generated from it here.
 * broadcast_loops.c applies the loops to tensors of arbitrary shapes. */
#include <config.h>

#include <tgmath.h>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/vmath.h"
#include "opdef/op_context.h"
#include "opdef/columns.h"
#include "ops/family.h"
#include "ops/math/broadcast_loops.h"

/* The expressions of pointwise.def are also instantiated for unsigned types. */
#pragma GCC diagnostic ignored "-Wtype-limits"

/* ---- Shapes and types. ---- */

static om_status
infer_test(om_op_context *c)
{
	c->out[0].type = OM_BOOL;
	c->out[0].shape = c->in[0].shape;
	return OM_OK;
}

static om_status
infer_broadcast(om_op_context *c)
{
	om_dtype type = OM_UNDEFINED;

	for (uint32_t k = 0; k < c->op->nin; k++) {
		if (!om_has_in(c, k))
			return om_op_fail(c->session, OM_INVALID, c->op, "input %u is omitted", k);
		OM_TRY(om_same_type(c, &type, k));
	}
	c->out[0].type = type;
	return om_broadcast_all(c);
}

static om_status
infer_compare(om_op_context *c)
{
	OM_TRY(infer_broadcast(c));
	c->out[0].type = OM_BOOL;
	return OM_OK;
}

/* ---- Loops. ---- */

#define MAX(x, y)         ((x) > (y) || IS_NAN(x) ? (x) : (y))
#define MIN(x, y)         ((x) < (y) || IS_NAN(x) ? (x) : (y))
/* The type-generic functions of a C library need not take every integer type. */
#define FLOATING(x)       (true ? (x) : 0.0F)
#define CLAMP(v, low, high)  ((v) < (low) ? (low) : (v) > (high) ? (high) : (v))
#define SOFTPLUS(x)       ((x) > 0 ? (x) + log1p(exp(-(x))) : log1p(exp(x)))
#define SELU(x, a, b)     ((b) * ((x) > 0 ? (x) : (a) * expm1(x)))
#define SHRINK(T, x, lambda, bias)                                                \
	OM_NUMBER(T, (x) < -(lambda) ? (x) + (bias) : (x) > (lambda) ? (x) - (bias) : 0)
#define SHIFT(T, W, x, y, left)                                                \
	((uint64_t)(y) >= 8 * sizeof(T) ? (!(left) && (x) < 0 ? (T)-1 : 0)     \
	    : (left) ? (T)((W)(x) << (y)) : (T)((x) >> (y)))

/* Neither division by zero nor the single overflow case of division may trap. */
#define QUOTIENT(T, W, x, y)                                                   \
	(IS_FLOAT(T) ? (x) / (y) : (y) == 0 ? 0                                \
	    : IS_SIGNED(T) && (y) == (T)-1 ? (T)(0 - (W)(x)) : (T)((x) / (y)))

#define REMAINDER(T, x, y, like_c)                                             \
	(IS_FLOAT(T) ? (T)real_remainder((double)(x), (double)(y), like_c)     \
	    : IS_SIGNED(T) ? (T)signed_remainder((int64_t)(x), (int64_t)(y), like_c) \
	    : (y) == 0 ? 0 : (T)((uint64_t)(x) % (uint64_t)(y)))

/* As in C the result has the sign of x, otherwise that of y. */
static double
real_remainder(double x, double y, bool like_c)
{
	const double r = fmod(x, y);
	return !like_c && r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static int64_t
signed_remainder(int64_t x, int64_t y, bool like_c)
{
	if (y == 0 || y == -1)
		return 0;
	const int64_t r = x % y;
	return !like_c && r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

/* A strip is complete before it is written: the output may be computed in place over any input. */
#define VARIADIC_LOOP(name, E, next, finish)                                   \
	static void                                                            \
	name(const struct om_inner_loop *s)                                         \
	{                                                                      \
		typedef E T;                                                   \
		T sum[OM_STRIP];                                               \
		const uint32_t n = s->nin;                                     \
		(void)n;                                                       \
		for (int64_t at = 0; at < s->n; at += OM_STRIP) {              \
			const int64_t m = s->n - at < OM_STRIP ? s->n - at : OM_STRIP; \
			T *out = (T *)s->out + at;                             \
			const T *first = s->in[0].at;                          \
			for (int64_t i = 0; i < m; i++)                        \
				sum[i] = first[(at + i) * s->in[0].step];      \
			for (uint32_t k = 1; k < s->nin; k++) {                \
				const T *py = s->in[k].at;                     \
				const int64_t step = s->in[k].step;            \
				for (int64_t i = 0; i < m; i++) {              \
					const T x = sum[i], y = py[(at + i) * step]; \
					sum[i] = (T)(next);                    \
				}                                              \
			}                                                      \
			for (int64_t i = 0; i < m; i++) {                      \
				const T x = sum[i];                            \
				out[i] = (T)(finish);                          \
			}                                                      \
		}                                                              \
	}

#define VARIADIC_FN(type, T, W, name, next, finish)  VARIADIC_LOOP(name##_##type, T, next, finish)

/* float32 is computed by a vector kernel, all other types by a loop as above. */
#define CURVE_FN(name, which)                                                  \
	static void                                                            \
	name##_FLOAT32(const struct om_inner_loop *s)                               \
	{                                                                      \
		const double a = s->knob[0];                                   \
		(void)a;                                                       \
		om_kernels_get()->curve[which](s->out, s->in[0].at, s->n, (float)a); \
	}

#define KERNEL(name, types)                                                    \
	static om_inner_loop_fn *const name##_loops[OM_NDTYPE] = {ON_##types(ENTRY, name)}; \
	static om_status                                                       \
	name##_prepare(om_op_context *c, void **state)                               \
	{                                                                      \
		return om_map_prepare(c, state, name##_loops);                 \
	}

#define UNARY(name, since, types, value, attrs, brief)                         \
	ON_##types(UNARY_FN, name, value) KERNEL(name, types)
#define CURVE(name, since, types, which, value, attrs, brief)                  \
	CURVE_FN(name, which) ON_OTHER_##types(UNARY_FN, name, value) KERNEL(name, types)
#define TEST(name, since, types, value, attrs, brief)                          \
	ON_##types(TEST_FN, name, value) KERNEL(name, types)
#define BINARY(name, since, types, value, attrs, brief)                        \
	ON_##types(BINARY_FN, name, value) KERNEL(name, types)
#define COMMUTES BINARY
#define COMPARE(name, since, types, value, attrs, brief)                       \
	ON_##types(COMPARE_FN, name, value) KERNEL(name, types)
#define VARIADIC(name, since, types, next, finish, brief)                      \
	ON_##types(VARIADIC_FN, name, next, finish) KERNEL(name, types)
#include "pointwise.def"
#undef UNARY
#undef CURVE
#undef TEST
#undef BINARY
#undef COMMUTES
#undef COMPARE
#undef VARIADIC

/* ---- Equal, which also supports strings. ---- */

ON_NUMBERS(COMPARE_FN, Equal, x == y)
ON_TRUTHS(COMPARE_FN, Equal, !x == !y)

static bool
same_text(om_string x, om_string y)
{
	return x.size == y.size && memcmp(x.data, y.data, x.size) == 0;
}

static void
Equal_STRING(const struct om_inner_loop *s)
{
	const om_string *x = s->in[0].at, *y = s->in[1].at;
	uint8_t *out = s->out;

	for (int64_t i = 0; i < s->n; i++)
		out[i] = same_text(x[i * s->in[0].step], y[i * s->in[1].step]);
}

#define ON_EQUALS(_, ...)                                                      \
	ON_NUMBERS(_, __VA_ARGS__) ON_TRUTHS(_, __VA_ARGS__) _(STRING, om_string, , __VA_ARGS__)

KERNEL(Equal, EQUALS)

/* ---- Attributes. ---- */

#define ATTRS(name, ...) static const om_attr_spec name[] = {__VA_ARGS__, {0}};
#define A_FLOAT(label, value)  {label, OM_ATTR_FLOAT, .f = (float)(value)}
#define A_INT(label, value)    {label, OM_ATTR_INT, .i = (value)}
#define A_TEXT(label, value)   {label, OM_ATTR_STRING, .s = (value)}

ATTRS(bit_shift_attrs, {"direction", OM_ATTR_STRING, .required = true})
ATTRS(broadcast_attrs, OM_ALIGN_ATTRS)
ATTRS(celu_attrs, A_FLOAT("alpha", 1))
ATTRS(elu_attrs, A_FLOAT("alpha", 1))
ATTRS(gelu_attrs, A_TEXT("approximate", "none"))
ATTRS(hard_sigmoid_attrs, A_FLOAT("alpha", 0.2), A_FLOAT("beta", 0.5))
ATTRS(is_inf_attrs, A_INT("detect_positive", 1), A_INT("detect_negative", 1))
ATTRS(leaky_relu_attrs, A_FLOAT("alpha", 0.01))
ATTRS(mod_attrs, A_INT("fmod", 0))
ATTRS(old_selu_attrs, A_FLOAT("alpha", 1.6732), A_FLOAT("gamma", 1.0507))
ATTRS(selu_attrs, A_FLOAT("alpha", 1.67326319217681884765625), A_FLOAT("gamma", 1.05070102214813232421875))
ATTRS(shrink_attrs, A_FLOAT("lambd", 0.5), A_FLOAT("bias", 0))
ATTRS(swish_attrs, A_FLOAT("alpha", 1))
ATTRS(thresholded_relu_attrs, A_FLOAT("alpha", 1))

/* ---- The operator definitions. ---- */

#define ROW_OF(bits, label, from, least, most, list, text, infers, reuses)      \
	.name = #label, .brief = text, .since = from, .min_in = least, .max_in = most, \
	.min_out = 1, .max_out = 1, .flags = bits, .attrs = list,              \
	.infer = infers, .inplace = reuses, .cpu = om_loop_nest_run
#define ROW(...)  ROW_OF(OM_POINTWISE, __VA_ARGS__)

#define UNARY(name, since, types, value, attrs, brief) \
	{ROW(name, since, 1, 1, attrs, brief, om_infer_same, om_inplace_whole), .propagate_data = om_elems_negated, .input_types = {OF_##types}},
#define CURVE(name, since, types, which, value, attrs, brief) \
	UNARY(name, since, types, value, attrs, brief)
#define TEST(name, since, types, value, attrs, brief) \
	{ROW(name, since, 1, 1, attrs, brief, infer_test, om_inplace_whole), .input_types = {OF_##types | OF_FLOAT8S}},
#define BINARY(name, since, types, value, attrs, brief) \
	{ROW(name, since, 2, 2, attrs, brief, infer_broadcast, om_inplace_whole), .propagate_data = om_elems_calculated, \
	 .input_types = {OF_##types}},
#define COMMUTES(name, since, types, value, attrs, brief) \
	{ROW_OF(OM_POINTWISE | OM_COMMUTES, name, since, 2, 2, attrs, brief, infer_broadcast, om_inplace_whole), \
	 .propagate_data = om_elems_calculated, .input_types = {OF_##types}},
#define COMPARE(name, since, types, value, attrs, brief) \
	{ROW(name, since, 2, 2, attrs, brief, infer_compare, om_inplace_whole), .input_types = {OF_##types}},
#define VARIADIC(name, since, types, next, finish, brief) \
	{ROW(name, since, 1, OM_VARIADIC, NULL, brief, infer_broadcast, om_inplace_whole), .input_types = {OF_##types}},

const om_opdef om_ops_pointwise[] = {
#include "pointwise.def"
	{ROW_OF(OM_POINTWISE | OM_COMMUTES, Equal, 1, 2, 2, broadcast_attrs,
		"x == y", infer_compare, om_inplace_whole),
	 .propagate_data = om_elems_equal, .input_types = {OF_NUMBERS | OF(BOOL) | OF(STRING)}},
	{
		.name = "Selu", .brief = "gamma times Elu of x",
		.since = 1, .until = 5, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1,
		.flags = OM_POINTWISE, .attrs = old_selu_attrs,
		.infer = om_infer_same, .inplace = om_inplace_whole, .cpu = om_loop_nest_run,
		.input_types = {OF_FLOATS},
	},
	{0}
};

/* ---- The kernels. ---- */

#undef UNARY
#undef CURVE
#undef TEST
#undef BINARY
#undef COMMUTES
#undef COMPARE
#undef VARIADIC
#define KERNEL_ROW(label)  {.name = #label, .prepare = label##_prepare, .run = om_loop_nest_run},
#define UNARY(name, ...)     KERNEL_ROW(name)
#define CURVE(name, ...)     KERNEL_ROW(name)
#define TEST(name, ...)      KERNEL_ROW(name)
#define BINARY(name, ...)    KERNEL_ROW(name)
#define COMMUTES(name, ...)  KERNEL_ROW(name)
#define COMPARE(name, ...)   KERNEL_ROW(name)
#define VARIADIC(name, ...)  KERNEL_ROW(name)

const om_kernel om_kernels_pointwise[] = {
#include "pointwise.def"
	KERNEL_ROW(Equal)
	{0}
};
