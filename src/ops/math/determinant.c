/* SPDX-License-Identifier: Apache-2.0 */
/* Det and CumProd. */
#include <config.h>

#include <math.h>

#include "opdef/columns.h"
#include "base/shape.h"
#include "ops/family.h"
#include "ops/slices.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "opdef/types.h"

/* ---- Det. ---- */

static om_status
det_infer(om_op_context *c)
{
	const om_shape *x = &c->in[0].shape;

	c->out[0].type = c->in[0].type;
	if (x->rank < 0)
		return OM_OK;
	if (x->rank < 2 || !om_dims_agree(x->dim[x->rank - 1], x->dim[x->rank - 2]))
		return om_op_fail(c->session, OM_SHAPE, c->op, "the input must consist of square matrices");
	c->out[0].shape = *x;
	c->out[0].shape.rank = x->rank - 2;
	return OM_OK;
}

static uint64_t
det_scratch(const om_op_context *c)
{
	const om_shape *x = &c->in[0].shape;
	const uint64_t n = (uint64_t)x->dim[x->rank - 1];

	return om_piece_size(n * n * sizeof(double));
}

/* Gaussian elimination with partial pivoting; `m` is overwritten. */
static double
determinant(double *m, int64_t n)
{
	double det = 1;

	for (int64_t k = 0; k < n; k++) {
		int64_t best = k;
		for (int64_t r = k + 1; r < n; r++)
			if (fabs(m[r * n + k]) > fabs(m[best * n + k]))
				best = r;
		for (int64_t i = k; i < n && best != k; i++) {
			const double v = m[k * n + i];
			m[k * n + i] = m[best * n + i];
			m[best * n + i] = v;
		}
		det *= best != k ? -m[k * n + k] : m[k * n + k];
		if (m[k * n + k] == 0)
			return 0;
		for (int64_t r = k + 1; r < n; r++) {
			const double by = m[r * n + k] / m[k * n + k];
			for (int64_t i = k; i < n; i++)
				m[r * n + i] -= by * m[k * n + i];
		}
	}
	return det;
}

static om_status
det_cpu(om_op_context *c)
{
	const om_tensor *x = &c->in[0];
	const int64_t n = x->shape.dim[x->shape.rank - 1];
	double *m = c->scratch;

	if (x->type != OM_FLOAT32 && x->type != OM_FLOAT64 && !om_is_half(x->type))
		return om_no_kernel(c, x->type);
	for (int64_t k = 0; k < om_shape_count(&c->out[0].shape); k++) {
		for (int64_t i = 0; i < n * n; i++)
			m[i] = om_get(x->type, x->data, k * n * n + i);
		om_put(x->type, c->out[0].data, k, determinant(m, n));
	}
	return OM_OK;
}

static void
det_cost(const om_op_context *c, om_cost *cost)
{
	const om_shape *x = &c->in[0].shape;

	cost->flops = (double)om_shape_count(x) * (double)x->dim[x->rank - 1];
}

/* ---- CumProd. ---- */

/* `n` elements, `step` apart; a negative step runs from the last to the first. */
typedef void line_fn(char *y, const char *x, int64_t n, int64_t step, bool exclusive);

#define LINE(type, T, W, P)                                                    \
	static void                                                            \
	product_##type(char *to, const char *from, int64_t n, int64_t step, bool exclusive) \
	{                                                                      \
		const T *x = (const T *)from;                                  \
		T *y = (T *)to;                                                \
		P product = 1;                                                 \
		for (int64_t k = 0; k < n; k++) {                              \
			const P before = product;                              \
			product *= (P)x[k * step];                             \
			y[k * step] = (T)(exclusive ? before : product);       \
		}                                                              \
	}
#define LINE_ENTRY(type, T, W, _)  [OM_##type] = product_##type,

ON_FLOATS(LINE, double)
ON_INTEGERS(LINE, uint64_t)

#define HALF_LINE(type)                                                        \
	static void                                                            \
	product_##type(char *to, const char *from, int64_t n, int64_t step, bool exclusive) \
	{                                                                      \
		double product = 1;                                            \
		for (int64_t k = 0; k < n; k++) {                              \
			const double before = product;                         \
			product *= om_get(OM_##type, from, k * step);          \
			om_put(OM_##type, to, k * step, exclusive ? before : product); \
		}                                                              \
	}
HALF_LINE(FLOAT16)
HALF_LINE(BFLOAT16)

struct product {
	int64_t reverse, exclusive;
};

static const om_attr_field product_fields[] = {
	OM_FIELD(struct product, INT, reverse),
	OM_FIELD(struct product, INT, exclusive),
	{0}
};

static om_status
product_cpu(om_op_context *c)
{
	static line_fn *const lines[OM_NDTYPE] = {ON_NUMBERS(LINE_ENTRY, )
		[OM_FLOAT16] = product_FLOAT16, [OM_BFLOAT16] = product_BFLOAT16};
	const om_tensor *x = &c->in[0];
	line_fn *f = lines[x->type];
	const struct product *s = c->state;
	const bool reverse = s->reverse != 0, exclusive = s->exclusive != 0;
	const size_t size = om_dtype_bits(x->type) / 8;
	int64_t axis[OM_MAX_RANK];
	size_t naxis;
	int at;

	if (!f)
		return om_no_kernel(c, x->type);
	if (!om_in_few(c, 1, axis, &naxis) || naxis != 1 || !om_axis(*axis, x->shape.rank, &at))
		return om_op_fail(c->session, OM_RUN, c->op, "axis is out of range");
	const int64_t n = x->shape.dim[at], inner = om_shape_span(&x->shape, at + 1, x->shape.rank);
	for (int64_t k = 0; k < om_shape_span(&x->shape, 0, at) * inner && n; k++) {
		const int64_t first = k / inner * n * inner + k % inner + (reverse ? (n - 1) * inner : 0);
		f((char *)c->out[0].data + (size_t)first * size, (const char *)x->data + (size_t)first * size, n,
			reverse ? -inner : inner, exclusive);
	}
	return OM_OK;
}

static const om_attr_spec product_attrs[] = {
	{"exclusive", OM_ATTR_INT},
	{"reverse", OM_ATTR_INT},
	{0}
};

const om_opdef om_ops_determinant[] = {
	{.name = "CumProd", .brief = "cumulative product along an axis", .since = 26,
	 .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1, .attrs = product_attrs,
	 .infer = om_infer_same, .slice = om_slice_cumulative, .inplace = om_inplace_first, .cpu = product_cpu,
	 .input_types = {OF_WIDE, OF_INDICES}},
	{.name = "Det", .brief = "the determinant of each matrix", .since = 11, .min_in = 1, .max_in = 1,
	 .min_out = 1, .max_out = 1, .infer = det_infer, .slice = om_slice_first, .cpu = det_cpu, .scratch = det_scratch,
	 .cost = det_cost,
	 .input_types = {OF_FLOATS}},
	{0}
};

const om_kernel om_kernels_determinant[] = {
	{.name = "CumProd", .fields = product_fields, .state_bytes = sizeof(struct product), .run = product_cpu},
	{0}
};
