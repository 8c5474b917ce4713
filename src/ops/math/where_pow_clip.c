/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise operators whose operands differ in type or role: Where with a bool condition, Pow with an
 * exponent of any type, PRelu with a slope that is broadcast only in one direction, and Clip with
 * optional bounds. */
#include <config.h>

#include <float.h>
#include <tgmath.h>

#include "base/convert_elements.h"
#include "base/shape.h"
#include "ir/query.h"
#include "opdef/op_context.h"
#include "opdef/columns.h"
#include "ops/family.h"
#include "opdef/slice.h"
#include "opdef/numbers.h"
#include "ops/math/broadcast_loops.h"

/* The instances of PRelu for unsigned types compare with zero. */
#pragma GCC diagnostic ignored "-Wtype-limits"

/* ---- Where: moves elements of any type. ---- */

#define WHERE_FN(type, T, W, name)                                             \
	static void                                                            \
	name##_##type(const struct om_inner_loop *s)                                \
	{                                                                      \
		const uint8_t *pc = s->in[0].at;                               \
		const T *px = s->in[1].at, *py = s->in[2].at;                  \
		T *out = s->out;                                               \
		if (s->in[0].step && s->in[1].step && s->in[2].step)           \
			for (int64_t i = 0; i < s->n; i++) {                   \
				const T x = px[i], y = py[i];                  \
				out[i] = pc[i] ? x : y;                        \
			}                                                      \
		else                                                           \
			for (int64_t i = 0; i < s->n; i++) {                   \
				const T x = px[i * s->in[1].step], y = py[i * s->in[2].step]; \
				out[i] = pc[i * s->in[0].step] ? x : y;        \
			}                                                      \
	}

#define ON_CHOICES(_, ...)                                                     \
	ON_NUMBERS(_, __VA_ARGS__) ON_TRUTHS(_, __VA_ARGS__)                   \
	_(FLOAT16, uint16_t, , __VA_ARGS__)                                    \
	_(BFLOAT16, uint16_t, , __VA_ARGS__)                                   \
	_(COMPLEX64, uint64_t, , __VA_ARGS__)                                  \
	_(COMPLEX128, wide_pair, , __VA_ARGS__)                               \
	_(STRING, om_string, , __VA_ARGS__)

/* Elements of 16 bytes, in their memory layout. */
typedef struct wide_pair {
	double re, im;
} wide_pair;

ON_CHOICES(WHERE_FN, Where)

static om_inner_loop_fn *const Where_loops[OM_NDTYPE] = {ON_CHOICES(ENTRY, Where)};

static om_status
Where_prepare(om_op_context *c, void **state)
{
	return om_map_prepare_by(c, state, Where_loops, 1);
}

static om_status
Where_infer(om_op_context *c)
{
	om_dtype type = OM_UNDEFINED;

	if (c->in[0].type != OM_BOOL && c->in[0].type != OM_UNDEFINED)
		return om_op_fail(c->session, OM_SHAPE, c->op, "the condition is %s, expected bool",
			om_dtype_text(c->in[0].type));
	OM_TRY(om_same_type(c, &type, 1));
	OM_TRY(om_same_type(c, &type, 2));
	c->out[0].type = type;
	return om_broadcast_all(c);
}

/* ---- Pow: the exponent may have another type. ---- */

static uint64_t
power(uint64_t x, uint64_t y)
{
	uint64_t r = 1;

	for (; y; y >>= 1, x *= x)
		if (y & 1)
			r *= x;
	return r;
}

/* With a negative exponent the result is truncated to an integer. */
static uint64_t
signed_power(int64_t x, int64_t y)
{
	if (y >= 0)
		return power((uint64_t)x, (uint64_t)y);
	return x == 1 || (x == -1 && y % 2 == 0) ? 1 : x == -1 ? (uint64_t)-1 : 0;
}

ON_FLOATS(BINARY_FN, Pow, y == 2 ? x * x : pow(x, y))
ON_SIGNED(BINARY_FN, Pow, signed_power(x, y))
ON_UNSIGNED(BINARY_FN, Pow, power(x, y))

static om_inner_loop_fn *const Pow_loops[OM_NDTYPE] = {ON_NUMBERS(ENTRY, Pow)};

static om_status
Pow_prepare(om_op_context *c, void **state)
{
	const om_dtype t = c->in[0].type;
	const bool real = om_dtype_is_float(t), root = !real && om_dtype_is_float(c->in[1].type);
	const om_dtype own = om_computed_as(Pow_loops, t), as = root ? OM_FLOAT64 : own;

	if (!Pow_loops[own] || c->in[1].type == OM_STRING || !om_can_convert(as, c->in[1].type))
		return om_no_kernel(c, Pow_loops[own] ? c->in[1].type : t);
	struct om_loop_nest *e = *state = om_nest_new(c, 2, Pow_loops[as]);
	for (uint32_t k = 0; k < 2; k++) {
		const om_shape s = om_aligned(c, k);
		om_nest_input(c, e, k, &s, as);
	}
	return om_nest_finish(c, e, as);
}

static om_status
Pow_infer(om_op_context *c)
{
	c->out[0].type = c->in[0].type;
	return om_broadcast_all(c);
}

/* ---- PRelu: only the slope is broadcast, to the other input. ---- */

ON_NUMBERS(BINARY_FN, PRelu, x < 0 ? (T)((W)x * (W)y) : x)

static om_inner_loop_fn *const PRelu_loops[OM_NDTYPE] = {ON_NUMBERS(ENTRY, PRelu)};

/* Before version 7 the slope has one element, or one per channel. */
static om_shape
slope_shape(const om_op_context *c)
{
	const om_shape *x = &c->in[0].shape;
	om_shape s = c->in[1].shape;

	if (c->op->version >= 7 || s.rank != 1 || x->rank < 2 || s.dim[0] == 1)
		return s;
	while (s.rank < x->rank - 1) {
		s.dim[s.rank] = 1;
		s.sym[s.rank++] = NULL;
	}
	return s;
}

static om_status
PRelu_prepare(om_op_context *c, void **state)
{
	const om_dtype t = c->in[0].type, as = om_computed_as(PRelu_loops, t);
	const om_shape slope = slope_shape(c);

	if (!PRelu_loops[as])
		return om_no_kernel(c, t);
	struct om_loop_nest *e = *state = om_nest_new(c, 2, PRelu_loops[as]);
	om_nest_input(c, e, 0, &c->in[0].shape, as);
	om_nest_input(c, e, 1, &slope, as);
	return om_nest_finish(c, e, as);
}

static om_status
PRelu_infer(om_op_context *c)
{
	const om_shape slope = slope_shape(c);
	om_dtype type = OM_UNDEFINED;
	om_shape both;
	char a[256], b[256];

	OM_TRY(om_same_type(c, &type, 0));
	OM_TRY(om_same_type(c, &type, 1));
	const bool fits = om_broadcast(&c->in[0].shape, &slope, &both);
	if (!fits || (om_shape_is_known(&both) && om_shape_is_known(&c->in[0].shape)
	    && !om_shape_equal(&both, &c->in[0].shape)))
		return om_op_fail(c->session, OM_SHAPE, c->op,
			"slope of shape %s cannot be broadcast to the input of shape %s",
			om_shape_text(&slope, a, sizeof a),
			om_shape_text(&c->in[0].shape, b, sizeof b));
	return om_infer_same(c);
}

static bool
PRelu_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_shape slope = slope_shape(c);
	const om_part *p = &s->out[out];
	const int axis = p->axis - (c->in[0].shape.rank - slope.rank);

	if (axis >= 0 && slope.dim[axis] != 1)
		s->in[1] = om_part_along(p, axis);
	return om_slice_first(c, out, s);
}

static bool
PRelu_reuse(const om_op_context *c, uint32_t out, uint32_t in)
{
	const om_shape slope = slope_shape(c);
	return out == 0 && om_is_whole(in ? &slope : &c->in[0].shape, &c->out[0].shape);
}

/* ---- Clip. ---- */

#define CLIP_FN(type, T, W, name)                                              \
	static void                                                            \
	name##_##type(const struct om_inner_loop *s)                                \
	{                                                                      \
		const T *px = s->in[0].at;                                     \
		const T low = *(const T *)s->in[1].at, high = *(const T *)s->in[2].at; \
		T *out = s->out;                                               \
		for (int64_t i = 0; i < s->n; i++) {                           \
			const T x = px[i], y = x < low ? low : x;              \
			out[i] = y > high ? high : y;                          \
		}                                                              \
	}
ON_NUMBERS(CLIP_FN, Clip)

static om_inner_loop_fn *const Clip_loops[OM_NDTYPE] = {ON_NUMBERS(ENTRY, Clip)};

/* Default bounds: the largest finite numbers of a type.  Infinities are clipped to them. */
#define SIGNED_LIMITS(type, T, W, _)    static const T limits_##type[2] = {type##_MIN, type##_MAX};
#define UNSIGNED_LIMITS(type, T, W, _)  static const T limits_##type[2] = {0, type##_MAX};
ON_SIGNED(SIGNED_LIMITS, )
ON_UNSIGNED(UNSIGNED_LIMITS, )
static const float limits_FLOAT32[2] = {-FLT_MAX, FLT_MAX};
static const double limits_FLOAT64[2] = {-DBL_MAX, DBL_MAX};

/* Limits of types that are computed as float32. */
static const float limits_FLOAT16[2] = {-65504, 65504};
static const float limits_BFLOAT16[2] = {-0x1.fep127f, 0x1.fep127f};

#define LIMIT(type, T, W, _)  case OM_##type: return &limits_##type[high];

static const void *
limit_of(om_dtype t, bool high)
{
	switch (t) {
	ON_NUMBERS(LIMIT, )
	LIMIT(FLOAT16, float, float, )
	LIMIT(BFLOAT16, float, float, )
	default: return &limits_FLOAT32[high];
	}
}

static om_status
Clip_prepare(om_op_context *c, void **state)
{
	const om_dtype t = c->in[0].type, as = om_computed_as(Clip_loops, t);

	if (!Clip_loops[as])
		return om_no_kernel(c, t);
	struct om_loop_nest *e = *state = om_nest_new(c, 3, Clip_loops[as]);
	om_nest_input(c, e, 0, &c->in[0].shape, as);
	for (uint32_t k = 1; k < 3; k++)
		if (om_has_in(c, k))
			om_nest_input(c, e, k, &c->in[k].shape, as);
		else
			om_nest_constant(c, e, k, as, limit_of(t, k == 2), as);
	return om_nest_finish(c, e, as);
}

static om_status
Clip_infer(om_op_context *c)
{
	om_dtype type = OM_UNDEFINED;

	for (uint32_t k = 0; k < c->op->nin; k++) {
		if (!om_has_in(c, k))
			continue;
		OM_TRY(om_same_type(c, &type, k));
		if (k > 0 && om_shape_is_known(&c->in[k].shape) && om_shape_count(&c->in[k].shape) != 1)
			return om_op_fail(c->session, OM_SHAPE, c->op, "min or max has %lld elements, expected 1",
				(long long)om_shape_count(&c->in[k].shape));
	}
	return om_infer_same(c);
}

/* Before version 11 the bounds are attributes. */
static om_status
old_Clip_prepare(om_op_context *c, void **state)
{
	const om_dtype t = c->in[0].type, as = om_computed_as(Clip_loops, t);
	float *bound = OM_NEWN(c->mem, float, 2);

	if (!Clip_loops[as])
		return om_no_kernel(c, t);
	bound[0] = om_attr_float(c->op, "min");
	bound[1] = om_attr_float(c->op, "max");
	struct om_loop_nest *e = *state = om_nest_new(c, 3, Clip_loops[as]);
	om_nest_input(c, e, 0, &c->in[0].shape, as);
	for (uint32_t k = 0; k < 2; k++)
		om_nest_constant(c, e, k + 1, OM_FLOAT32, &bound[k], as);
	return om_nest_finish(c, e, as);
}

/* ---- The operator definitions. ---- */

static const om_attr_spec old_clip_attrs[] = {
	{"min", OM_ATTR_FLOAT, .f = -0x1.fffffep127f},
	{"max", OM_ATTR_FLOAT, .f = 0x1.fffffep127f},
	{0}
};

static const om_attr_spec old_pow_attrs[] = {OM_ALIGN_ATTRS, {0}};

const om_opdef om_ops_where_pow_clip[] = {
	{
		.name = "Clip", .brief = "x clamped to [min, max]",
		.since = 1, .until = 10, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1,
		.flags = OM_POINTWISE, .attrs = old_clip_attrs, .input_types = {OF_NUMBERS},
		.infer = om_infer_same, .inplace = om_inplace_first, .cpu = om_loop_nest_run,
	},
	{
		.name = "Clip", .brief = "x clamped to [min, max]",
		.since = 11, .min_in = 1, .max_in = 3, .min_out = 1, .max_out = 1,
		.flags = OM_POINTWISE, .input_types = {OF_NUMBERS},
		.infer = Clip_infer, .inplace = om_inplace_first, .cpu = om_loop_nest_run,
	},
	{
		.name = "Pow", .brief = "x to the power y",
		.since = 1, .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1,
		.flags = OM_POINTWISE, .attrs = old_pow_attrs,
		.input_types = {OF_FLOATS | OF_INDICES, OF_NUMBERS},
		.infer = Pow_infer, .inplace = om_inplace_whole, .cpu = om_loop_nest_run,
	},
	{
		.name = "PRelu", .brief = "x, or slope x below zero",
		.since = 1, .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1,
		.flags = OM_POINTWISE, .input_types = {OF_WIDE},
		.infer = PRelu_infer, .slice = PRelu_slice, .inplace = PRelu_reuse, .cpu = om_loop_nest_run,
	},
	{
		.name = "Where", .brief = "x where the condition holds, y elsewhere",
		.since = 9, .min_in = 3, .max_in = 3, .min_out = 1, .max_out = 1,
		.flags = OM_POINTWISE, .input_types = {OF(BOOL), OF_COMMON},
		.infer = Where_infer, .propagate_data = om_elems_chosen, .inplace = om_inplace_whole, .cpu = om_loop_nest_run,
	},
	{0}
};

const om_kernel om_kernels_where_pow_clip[] = {
	{.name = "Clip", .until = 10, .prepare = old_Clip_prepare, .run = om_loop_nest_run},
	{.name = "Clip", .since = 11, .prepare = Clip_prepare, .run = om_loop_nest_run},
	{.name = "Pow", .prepare = Pow_prepare, .run = om_loop_nest_run},
	{.name = "PRelu", .prepare = PRelu_prepare, .run = om_loop_nest_run},
	{.name = "Where", .prepare = Where_prepare, .run = om_loop_nest_run},
	{0}
};
