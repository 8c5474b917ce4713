/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and related operators: each line of elements along an axis is independent.
 *
 * A line is read completely before its first element is written, and afterwards each element is read
 * before it is written.  The output may therefore be computed in place over the input.  16-bit floats
 * are computed in scratch. */
#include <config.h>

#include <tgmath.h>

#include "kernels/cpu/vmath.h"
#include "base/shape.h"
#include "ir/query.h"
#include "opdef/op_context.h"
#include "base/convert_elements.h"
#include "opdef/columns.h"
#include "ops/family.h"
#include "opdef/slice.h"
#include "ops/math/axis_view.h"
#include "ops/nn/softmax.h"
#include "opdef/numbers.h"
#include "opdef/types.h"

/* Lines that are not contiguous are processed in groups of adjacent lines. */
enum { COLUMNS = 64, LANES = 8 };

bool
om_softmax_lines(const om_op_context *c, struct om_lines *l)
{
	const om_shape *s = &c->in[0].shape;
	const bool old = c->op->version < 13;
	int64_t axis = om_attr_int(c->op, "axis");
	int at;

	axis += axis < 0 ? s->rank : 0;
	if (old && axis == s->rank) {
		*l = (struct om_lines){om_shape_count(s), 1, 1};
		return true;
	}
	if (s->rank == 0 && axis >= -1 && axis <= 1) {
		*l = (struct om_lines){1, 1, 1};
		return true;
	}
	if (!om_axis(axis, s->rank, &at))
		return false;
	*l = (struct om_lines){
		.outer = om_shape_span(s, 0, at),
		.n = old ? om_shape_span(s, at, s->rank) : s->dim[at],
		.inner = old ? 1 : om_shape_span(s, at + 1, s->rank),
	};
	return true;
}

typedef void line_fn(void *out, const void *in, int64_t n);
typedef void column_fn(void *out, const void *in, int64_t n, int64_t stride, int64_t width);

/* The largest element, and the sum of exp(x - largest): in several accumulators, which the compiler can
 * vectorize and whose rounding error is smaller than that of one. */
#define SUMS(type, T)                                                          \
	static T                                                               \
	largest_##type(const T *x, int64_t n)                                  \
	{                                                                      \
		T best[LANES];                                                 \
		int64_t i = 0;                                                 \
		for (int j = 0; j < LANES; j++)                                \
			best[j] = -INFINITY;                                   \
		for (; i + LANES <= n; i += LANES)                             \
			for (int j = 0; j < LANES; j++)                        \
				best[j] = x[i + j] > best[j] ? x[i + j] : best[j]; \
		for (; i < n; i++)                                             \
			best[0] = x[i] > best[0] ? x[i] : best[0];             \
		for (int j = 1; j < LANES; j++)                                \
			best[0] = best[j] > best[0] ? best[j] : best[0];       \
		return best[0];                                                \
	}                                                                      \
	static T                                                               \
	folded_##type(const T *lane)                                           \
	{                                                                      \
		T sum = 0;                                                     \
		for (int j = 0; j < LANES; j++)                                \
			sum += lane[j];                                        \
		return sum;                                                    \
	}

/* A line with fewer elements than accumulators: each would have one element, so the sum is the same. */
#define SHORT_SOFTMAX(type, T)                                                 \
	static void                                                            \
	softmax_short_##type(T *y, const T *x, int n)                          \
	{                                                                      \
		T high = -INFINITY, sum = 0;                                   \
		for (int i = 0; i < n; i++)                                    \
			high = x[i] > high ? x[i] : high;                      \
		for (int i = 0; i < n; i++) {                                  \
			const T e = EXP(x[i] - high);                          \
			y[i] = e;                                              \
			sum += e;                                              \
		}                                                              \
		const T scale = 1 / sum;                                       \
		for (int i = 0; i < n; i++)                                    \
			y[i] *= scale;                                         \
	}

#define SOFTMAX(type, T)                                                       \
	static void                                                            \
	softmax_line_##type(void *out, const void *in, int64_t n)              \
	{                                                                      \
		if (n < LANES) {                                               \
			softmax_short_##type(out, in, (int)n);                 \
			return;                                                \
		}                                                              \
		const T *x = in;                                               \
		const T high = largest_##type(x, n);                           \
		T *y = out, lane[LANES] = {0};                                 \
		for (int64_t i = 0; i < n; i++)                                \
			y[i] = EXP(x[i] - high);                               \
		for (int64_t i = 0; i < n; i++)                                \
			lane[i % LANES] += y[i];                               \
		const T scale = 1 / folded_##type(lane);                       \
		for (int64_t i = 0; i < n; i++)                                \
			y[i] *= scale;                                         \
	}                                                                      \
	static void                                                            \
	softmax_columns_##type(void *out, const void *in, int64_t n, int64_t stride, int64_t width) \
	{                                                                      \
		const T *x = in;                                               \
		T *y = out, high[COLUMNS], sum[COLUMNS] = {0};                 \
		columns_high_##type(high, x, n, stride, width);                \
		for (int64_t i = 0; i < n; i++)                                \
			for (int64_t j = 0; j < width; j++) {                  \
				const T e = EXP(x[i * stride + j] - high[j]);  \
				sum[j] += e;                                   \
				y[i * stride + j] = e;                         \
			}                                                      \
		for (int64_t i = 0; i < n; i++)                                \
			for (int64_t j = 0; j < width; j++)                    \
				y[i * stride + j] /= sum[j];                   \
	}

#define LOG_SOFTMAX(type, T)                                                   \
	static void                                                            \
	log_softmax_line_##type(void *out, const void *in, int64_t n)          \
	{                                                                      \
		const T *x = in;                                               \
		const T high = largest_##type(x, n);                           \
		T *y = out, lane[LANES] = {0};                                 \
		for (int64_t i = 0; i < n; i++)                                \
			lane[i % LANES] += EXP(x[i] - high);                   \
		const T by = log(folded_##type(lane));                         \
		for (int64_t i = 0; i < n; i++)                                \
			y[i] = x[i] - high - by;                               \
	}                                                                      \
	static void                                                            \
	log_softmax_columns_##type(void *out, const void *in, int64_t n, int64_t stride, int64_t width) \
	{                                                                      \
		const T *x = in;                                               \
		T *y = out, high[COLUMNS], sum[COLUMNS] = {0};                 \
		columns_high_##type(high, x, n, stride, width);                \
		for (int64_t i = 0; i < n; i++)                                \
			for (int64_t j = 0; j < width; j++)                    \
				sum[j] += EXP(x[i * stride + j] - high[j]);    \
		for (int64_t j = 0; j < width; j++)                            \
			sum[j] = log(sum[j]);                                  \
		for (int64_t i = 0; i < n; i++)                                \
			for (int64_t j = 0; j < width; j++)                    \
				y[i * stride + j] = x[i * stride + j] - high[j] - sum[j]; \
	}

/* One at the first of the largest elements. */
#define HARDMAX(type, T)                                                       \
	static void                                                            \
	hardmax_columns_##type(void *out, const void *in, int64_t n, int64_t stride, int64_t width) \
	{                                                                      \
		const T *x = in;                                               \
		T *y = out;                                                    \
		for (int64_t j = 0; j < width; j++) {                          \
			int64_t best = 0;                                      \
			for (int64_t i = 1; i < n; i++)                        \
				if (x[i * stride + j] > x[best * stride + j])  \
					best = i;                              \
			for (int64_t i = 0; i < n; i++)                        \
				y[i * stride + j] = i == best;                 \
		}                                                              \
	}                                                                      \
	static void                                                            \
	hardmax_line_##type(void *out, const void *in, int64_t n)              \
	{                                                                      \
		hardmax_columns_##type(out, in, n, 1, 1);                      \
	}

#define COLUMNS_HIGH(type, T)                                                  \
	static void                                                            \
	columns_high_##type(T *high, const T *x, int64_t n, int64_t stride, int64_t width) \
	{                                                                      \
		for (int64_t j = 0; j < width; j++)                            \
			high[j] = -INFINITY;                                   \
		for (int64_t i = 0; i < n; i++)                                \
			for (int64_t j = 0; j < width; j++)                    \
				high[j] = x[i * stride + j] > high[j] ? x[i * stride + j] : high[j]; \
	}

#define ALL_OF(type, T, W, _) SUMS(type, T) COLUMNS_HIGH(type, T) SHORT_SOFTMAX(type, T) SOFTMAX(type, T) LOG_SOFTMAX(type, T) HARDMAX(type, T)

ON_FLOATS(ALL_OF, )

struct loops {
	line_fn *line;
	column_fn *columns;
};

#define LOOPS(type, T, W, name) [OM_##type] = {name##_line_##type, name##_columns_##type},

static const struct loops softmax_loops[OM_NDTYPE] = {ON_FLOATS(LOOPS, softmax)};
static const struct loops log_softmax_loops[OM_NDTYPE] = {ON_FLOATS(LOOPS, log_softmax)};
static const struct loops hardmax_loops[OM_NDTYPE] = {ON_FLOATS(LOOPS, hardmax)};

struct softmax {
	struct om_lines l;
	size_t size;              /* of an element */
	om_dtype as;              /* type of the computation */
};

static om_status
softmax_prepare(om_op_context *c, void **state)
{
	const om_dtype t = c->in[0].type;
	struct softmax *s = *state;

	s->as = om_is_half(t) ? OM_FLOAT32 : t;
	s->size = om_dtype_bits(t) / 8;
	if (!softmax_loops[s->as].line)
		return om_no_kernel(c, t);
	if (!om_softmax_lines(c, &s->l))
		return om_op_fail(c->session, OM_INVALID, c->op,
			"axis is out of range for rank %d", c->in[0].shape.rank);
	return OM_OK;
}

static uint64_t
softmax_scratch(const om_op_context *c)
{
	struct om_lines l;
	uint64_t bytes;

	if (!om_is_half(c->in[0].type) || !om_softmax_lines(c, &l)
	    || __builtin_mul_overflow((uint64_t)l.n, COLUMNS * sizeof(float), &bytes))
		return 0;
	return bytes;
}

/* Process a group of adjacent lines as float32 in scratch. */
static void
by_scratch(om_op_context *c, const struct loops *f, char *y, const char *x, const struct om_lines *l, int64_t width)
{
	const om_dtype t = c->in[0].type;
	const size_t stride = (size_t)l->inner * 2;
	float *work = c->scratch;

	for (int64_t i = 0; i < l->n; i++)
		om_convert(OM_FLOAT32, work + i * width, t, x + (size_t)i * stride, width, true);
	if (width == 1)
		f->line(work, work, l->n);
	else
		f->columns(work, work, l->n, width, width);
	for (int64_t i = 0; i < l->n; i++)
		om_convert(t, y + (size_t)i * stride, OM_FLOAT32, work + i * width, width, true);
}

static om_status
along_last_axis(om_op_context *c, const struct softmax *s, line_fn *line)
{
	const size_t bytes = (size_t)s->l.n * s->size;
	const char *x = c->in[0].data;
	char *y = c->out[0].data;

	for (int64_t o = 0; o < s->l.outer && bytes; o++, x += bytes, y += bytes)
		line(y, x, s->l.n);
	return OM_OK;
}

static om_status
along_lines(om_op_context *c, const struct loops *loops)
{
	const struct softmax *s = c->state;
	const struct loops *f = &loops[s->as];
	const bool small = s->as != c->in[0].type;

	if (!small && s->l.inner == 1)
		return along_last_axis(c, s, f->line);
	const struct om_lines l = s->l;
	for (int64_t o = 0; o < l.outer && l.n; o++)
		for (int64_t j = 0; j < l.inner; j += COLUMNS) {
			const int64_t width = l.inner - j < COLUMNS ? l.inner - j : COLUMNS;
			const size_t at = (size_t)(o * l.n * l.inner + j) * s->size;
			const char *x = (const char *)c->in[0].data + at;
			char *y = (char *)c->out[0].data + at;
			if (small)
				by_scratch(c, f, y, x, &l, width);
			else
				f->columns(y, x, l.n, l.inner, width);
		}
	return OM_OK;
}

static om_status
softmax_cpu(om_op_context *c)
{
	return along_lines(c, softmax_loops);
}

static om_status
log_softmax_cpu(om_op_context *c)
{
	return along_lines(c, log_softmax_loops);
}

static om_status
hardmax_cpu(om_op_context *c)
{
	return along_lines(c, hardmax_loops);
}

static om_status
softmax_infer(om_op_context *c)
{
	struct om_lines l;

	if (om_shape_is_known(&c->in[0].shape) && !om_softmax_lines(c, &l))
		return om_bad_axis(c, om_attr_int(c->op, "axis"));
	return om_infer_same(c);
}

/* Until version 12 the axis and those after it are one. */
static bool
softmax_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	int64_t axis = om_attr_int(c->op, "axis");

	axis += axis < 0 ? c->in[0].shape.rank : 0;
	return c->op->version < 13 ? s->out[out].axis < axis && om_slice_first(c, out, s)
	    : om_slice_beside(c, out, s, (int)axis);
}

static void
softmax_cost(const om_op_context *c, om_cost *cost)
{
	cost->flops = 8 * (double)om_shape_count(&c->in[0].shape);
}

static const om_attr_spec old_attrs[] = {{"axis", OM_ATTR_INT, .i = 1}, {0}};
static const om_attr_spec new_attrs[] = {{"axis", OM_ATTR_INT, .i = -1}, {0}};

#define ROW(label, from, to, list, text, kernel)                               \
	{                                                                      \
		.name = label, .brief = text, .since = from, .until = to,      \
		.min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1,          \
		.flags = OM_MONOTONE, .attrs = list, .infer = softmax_infer, .slice = softmax_slice, .inplace = om_inplace_first, \
		.cpu = kernel, .scratch = softmax_scratch, .cost = softmax_cost, \
		.input_types = {OF_FLOATS}                                           \
	}

const om_opdef om_ops_softmax[] = {
	ROW("Softmax", 1, 12, old_attrs, "softmax over the input flattened to 2-D at an axis", softmax_cpu),
	ROW("Softmax", 13, 0, new_attrs, "softmax along an axis", softmax_cpu),
	ROW("LogSoftmax", 1, 12, old_attrs,
		"logarithm of softmax over the input flattened to 2-D at an axis", log_softmax_cpu),
	ROW("LogSoftmax", 13, 0, new_attrs, "logarithm of softmax along an axis", log_softmax_cpu),
	ROW("Hardmax", 1, 12, old_attrs,
		"one-hot of the first maximum over the input flattened to 2-D at an axis", hardmax_cpu),
	ROW("Hardmax", 13, 0, new_attrs, "one-hot of the first maximum along an axis", hardmax_cpu),
	{0}
};

#define KERNEL(label, runs)                                                    \
	{.name = label, .state_bytes = sizeof(struct softmax), .prepare = softmax_prepare, \
	 .workspace = softmax_scratch, .run = runs}

const om_kernel om_kernels_softmax[] = {
	KERNEL("Softmax", softmax_cpu),
	KERNEL("LogSoftmax", log_softmax_cpu),
	KERNEL("Hardmax", hardmax_cpu),
	{0}
};
