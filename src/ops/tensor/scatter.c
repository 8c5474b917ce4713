/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that write elements to positions given by indices.
 *
 * The output starts as a copy of the first input, so it may be computed over it. */
#include <config.h>

#include "base/strided_copy.h"
#include "opdef/columns.h"
#include "base/half.h"
#include "base/shape.h"
#include "ir/query.h"
#include "ops/family.h"
#include "ops/slices.h"
#include "opdef/numbers.h"
#include "ops/tensor/index.h"

typedef void combine_fn(char *to, const char *from, int64_t n, size_t size);

/* ---- Reductions with the existing element. ---- */

static void
replace(char *to, const char *from, int64_t n, size_t size)
{
	memcpy(to, from, (size_t)n * size);
}

/* NaN propagates from either operand, as in Max and Min. */
#define MORE(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define LESS(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))
#define SUM(a, b)  ((a) + (b))
#define PRODUCT(a, b) ((a) * (b))

#define COMBINE(name, type, op)                                                \
	static void                                                            \
	name(char *to, const char *from, int64_t n, size_t size)               \
	{                                                                      \
		type *a = (type *)to;                                          \
		const type *b = (const type *)from;                            \
		(void)size;                                                    \
		for (int64_t k = 0; k < n; k++)                                \
			a[k] = (type)op(a[k], b[k]);                           \
	}

/* Sums and products of signed integers wrap around, so they are computed as unsigned. */
#define COMBINE_ALL(type, wrapping)                                            \
	COMBINE(add_##type, wrapping, SUM)                                     \
	COMBINE(mul_##type, wrapping, PRODUCT)                                 \
	COMBINE(max_##type, type, MORE)                                        \
	COMBINE(min_##type, type, LESS)

COMBINE_ALL(float, float)
COMBINE_ALL(double, double)
COMBINE_ALL(int64_t, uint64_t)
COMBINE_ALL(int32_t, uint32_t)
COMBINE_ALL(int16_t, uint16_t)
COMBINE_ALL(int8_t, uint8_t)
COMBINE_ALL(uint64_t, uint64_t)
COMBINE_ALL(uint32_t, uint32_t)
COMBINE_ALL(uint16_t, uint16_t)
COMBINE_ALL(uint8_t, uint8_t)

#define COMBINE_HALF(name, get, put, op)                                       \
	static void                                                            \
	name(char *to, const char *from, int64_t n, size_t size)               \
	{                                                                      \
		uint16_t *a = (uint16_t *)to;                                  \
		const uint16_t *b = (const uint16_t *)from;                    \
		(void)size;                                                    \
		for (int64_t k = 0; k < n; k++)                                \
			a[k] = put(op(get(a[k]), get(b[k])));                  \
	}

#define COMBINE_HALVES(kind, get, put)                                         \
	COMBINE_HALF(add_##kind, get, put, SUM)                                \
	COMBINE_HALF(mul_##kind, get, put, PRODUCT)                            \
	COMBINE_HALF(max_##kind, get, put, MORE)                               \
	COMBINE_HALF(min_##kind, get, put, LESS)

COMBINE_HALVES(half, om_half_to_float, om_float_to_half)
COMBINE_HALVES(bfloat, om_bfloat_to_float, om_float_to_bfloat)

/* Complex numbers are pairs of reals: they have a sum and a product but no order. */
#define COMBINE_PAIRS(type)                                                    \
	static void                                                            \
	add_pairs_##type(char *to, const char *from, int64_t n, size_t size)   \
	{                                                                      \
		add_##type(to, from, 2 * n, size);                             \
	}                                                                      \
	static void                                                            \
	mul_pairs_##type(char *to, const char *from, int64_t n, size_t size)   \
	{                                                                      \
		type *a = (type *)to;                                          \
		const type *b = (const type *)from;                            \
		(void)size;                                                    \
		for (int64_t k = 0; k < 2 * n; k += 2) {                       \
			const type re = a[k] * b[k] - a[k + 1] * b[k + 1];     \
			a[k + 1] = a[k] * b[k + 1] + a[k + 1] * b[k];          \
			a[k] = re;                                             \
		}                                                              \
	}

COMBINE_PAIRS(float)
COMBINE_PAIRS(double)

enum { ADD, MUL, MAX, MIN, NCOMBINE };

static const char *const combine_names[NCOMBINE] = {"add", "mul", "max", "min"};

#define FOUR(type) {add_##type, mul_##type, max_##type, min_##type}

static combine_fn *const combiners[OM_NDTYPE][NCOMBINE] = {
	[OM_FLOAT32] = FOUR(float), [OM_FLOAT64] = FOUR(double), [OM_FLOAT16] = FOUR(half),
	[OM_BFLOAT16] = FOUR(bfloat), [OM_INT64] = FOUR(int64_t), [OM_INT32] = FOUR(int32_t),
	[OM_INT16] = FOUR(int16_t), [OM_INT8] = FOUR(int8_t), [OM_UINT64] = FOUR(uint64_t),
	[OM_UINT32] = FOUR(uint32_t), [OM_UINT16] = FOUR(uint16_t), [OM_UINT8] = FOUR(uint8_t),
	[OM_COMPLEX64] = {[ADD] = add_pairs_float, [MUL] = mul_pairs_float},
	[OM_COMPLEX128] = {[ADD] = add_pairs_double, [MUL] = mul_pairs_double},
	/* Or, and. */
	[OM_BOOL] = {max_uint8_t, min_uint8_t, max_uint8_t, min_uint8_t},
};

static om_status
combiner(const om_op_context *c, combine_fn **f)
{
	const om_string s = om_attr_string(c->op, "reduction");

	*f = replace;
	if (s.size == 0 || om_attr_is(c->op, "reduction", "none"))
		return OM_OK;
	for (int k = 0; k < NCOMBINE; k++)
		if (om_attr_is(c->op, "reduction", combine_names[k])) {
			*f = combiners[c->in[0].type][k];
			if (*f)
				return OM_OK;
			return om_op_fail(c->session, OM_UNSUPPORTED, c->op,
				"reduction is not supported for element type %s",
				om_dtype_text(c->in[0].type));
		}
	return om_op_fail(c->session, OM_INVALID, c->op, "unknown reduction %.*s", (int)s.size, s.data);
}

/* ---- ScatterElements, Scatter. ---- */

static om_status
scatter_infer(om_op_context *c)
{
	OM_TRY(om_index_type(c, 1));
	if (c->in[2].type != c->in[0].type && c->in[2].type && c->in[0].type)
		return om_op_fail(c->session, OM_SHAPE, c->op, "cannot write %s into %s",
			om_dtype_text(c->in[2].type), om_dtype_text(c->in[0].type));
	if (c->in[0].type != OM_UNDEFINED)
		OM_TRY(combiner(c, &(combine_fn *){NULL}));
	return om_infer_same(c);
}

struct scatter {
	combine_fn *write;
	size_t size;              /* of an element */
	int axis;
};

static om_status
scatter_elements_prepare(om_op_context *c, void **state)
{
	const om_shape *in = &c->in[0].shape, *at = &c->in[1].shape;
	struct scatter *s = *state;

	OM_TRY(om_elem_bytes(c, c->in[0].type, &s->size));
	OM_TRY(combiner(c, &s->write));
	OM_TRY(om_attr_axis(c, "axis", in->rank, &s->axis));
	if (at->rank != in->rank || !om_shape_equal(at, &c->in[2].shape))
		return om_op_fail(c->session, OM_RUN, c->op,
			"the shapes of indices and updates do not match the data");
	for (int k = 0; k < in->rank; k++)
		if (k != s->axis && at->dim[k] > in->dim[k])
			return om_op_fail(c->session, OM_RUN, c->op,
				"dim %d is %lld for the indices and %lld for the data",
				k, (long long)at->dim[k], (long long)in->dim[k]);
	return OM_OK;
}

static om_status
scatter_elements_cpu(om_op_context *c)
{
	const struct scatter *s = c->state;
	const om_shape *in = &c->in[0].shape, *at = &c->in[1].shape;
	int64_t stride[OM_MAX_RANK], place[OM_MAX_RANK] = {0}, n = 0;

	OM_TRY(om_cpu_whole(c));
	if (om_shape_count(at) == 0)
		return OM_OK;
	om_strides(in, stride);
	do {
		int64_t i, to = 0;
		OM_TRY(om_index_read(c, 1, n, in->dim[s->axis], &i));
		for (int k = 0; k < in->rank; k++)
			to += (k == s->axis ? i : place[k]) * stride[k];
		s->write((char *)c->out[0].data + (size_t)to * s->size,
			(const char *)c->in[2].data + (size_t)n++ * s->size, 1, s->size);
	} while (om_next_place(at, place));
	return OM_OK;
}

/* ---- ScatterND. ---- */

static om_status
nd_fits(const om_op_context *c)
{
	const om_shape *in = &c->in[0].shape, *at = &c->in[1].shape, *new = &c->in[2].shape;
	char a[256], b[256], d[256];
	bool fits = at->rank >= 1 && at->dim[at->rank - 1] <= in->rank;
	const int named = fits ? (int)at->dim[at->rank - 1] : 0;

	fits = fits && new->rank == at->rank - 1 + in->rank - named;
	for (int k = 0; fits && k < new->rank; k++)
		fits = new->dim[k] == (k < at->rank - 1 ? at->dim[k] : in->dim[named + k - (at->rank - 1)]);
	if (fits)
		return OM_OK;
	return om_op_fail(c->session, OM_RUN, c->op, "updates of shape %s do not match indices %s into data %s",
		om_shape_text(new, a, sizeof a), om_shape_text(at, b, sizeof b), om_shape_text(in, d, sizeof d));
}

static om_status
scatter_nd_prepare(om_op_context *c, void **state)
{
	struct scatter *s = *state;

	OM_TRY(om_elem_bytes(c, c->in[0].type, &s->size));
	OM_TRY(combiner(c, &s->write));
	return nd_fits(c);
}

static om_status
scatter_nd_cpu(om_op_context *c)
{
	const struct scatter *s = c->state;
	const om_shape *in = &c->in[0].shape, *at = &c->in[1].shape;
	const size_t size = s->size;
	int64_t stride[OM_MAX_RANK];

	OM_TRY(om_cpu_whole(c));
	om_strides(in, stride);
	const int named = (int)at->dim[at->rank - 1];
	const int64_t n = om_shape_span(at, 0, at->rank - 1), line = om_shape_span(in, named, in->rank);
	const char *from = c->in[2].data;
	for (int64_t k = 0; k < n; k++) {
		int64_t to = 0;
		for (int d = 0; d < named; d++) {
			int64_t i;
			OM_TRY(om_index_read(c, 1, k * named + d, in->dim[d], &i));
			to += i * stride[d];
		}
		s->write((char *)c->out[0].data + (size_t)to * size, from, line, size);
		from += (size_t)line * size;
	}
	return OM_OK;
}

/* ---- The table. ---- */

static const om_attr_spec axis_attrs[] = {
	{.name = "axis", .kind = OM_ATTR_INT},
	{0}
};

static const om_attr_spec elements_attrs[] = {
	{.name = "axis", .kind = OM_ATTR_INT},
	{.name = "reduction", .kind = OM_ATTR_STRING, .s = "none"},
	{0}
};

static const om_attr_spec nd_attrs[] = {
	{.name = "reduction", .kind = OM_ATTR_STRING, .s = "none"},
	{0}
};

#define SCATTER .domain = "", .min_in = 3, .max_in = 3, .min_out = 1, .max_out = 1, .flags = OM_MONOTONE, \
	.infer = scatter_infer, .inplace = om_inplace_first
#define ELEMENTS .brief = "input with elements replaced along an axis, by indices", \
	.slice = om_slice_scatter, .cpu = scatter_elements_cpu
#define ND .name = "ScatterND", .brief = "input with slices replaced, by index tuples", \
	.slice = om_slice_scatter_nd, .cpu = scatter_nd_cpu

const om_opdef om_ops_scatter[] = {
	{SCATTER, ELEMENTS, .name = "Scatter", .since = 9, .until = 10, .attrs = axis_attrs,
	 .input_types = {OF_INTEGERS | OF_COMPLEX | OF(BOOL) | OF(FLOAT16) | OF_WIDE_FLOATS | OF(STRING), OF_INDICES, LIKE(0)}},
	{SCATTER, ELEMENTS, .name = "ScatterElements", .since = 11, .until = 15, .attrs = axis_attrs,
	 .input_types = {OF_COMMON, OF_INDICES, LIKE(0)}},
	{SCATTER, ELEMENTS, .name = "ScatterElements", .since = 16, .attrs = elements_attrs,
	 .input_types = {OF_COMMON, OF_INDICES, LIKE(0)}},
	{SCATTER, ND, .since = 11, .until = 15,
	 .input_types = {OF_COMMON, OF(INT64), LIKE(0)}},
	{SCATTER, ND, .since = 16, .attrs = nd_attrs,
	 .input_types = {OF_COMMON, OF(INT64), LIKE(0)}},
	{0}
};

#define KERNEL(label, called)                                                  \
	{.name = label, .state_bytes = sizeof(struct scatter), .prepare = called##_prepare, .run = called##_cpu}

const om_kernel om_kernels_scatter[] = {
	KERNEL("Scatter", scatter_elements),
	KERNEL("ScatterElements", scatter_elements),
	KERNEL("ScatterND", scatter_nd),
	{0}
};
