/* SPDX-License-Identifier: Apache-2.0 */
/* Scans along one axis: ArgMax and ArgMin, CumSum.
 *
 * The running result, the best element or the sum, is kept for a group of neighboring lines, and rows
 * of elements are accumulated into it one after the other.  The inner loop is therefore contiguous for
 * every axis. */
#include <config.h>

#include "base/convert_elements.h"
#include "ir/query.h"
#include "opdef/op_context.h"
#include "opdef/columns.h"
#include "ops/family.h"
#include "ops/slices.h"
#include "ops/math/axis_view.h"
#include "opdef/numbers.h"
#include "opdef/types.h"

enum { PIECE = 256 };

/* ---- ArgMax, ArgMin. ---- */

static om_status
arg_infer(om_op_context *c)
{
	const om_shape *x = &c->in[0].shape;
	const int64_t axis = om_attr_int(c->op, "axis");
	const bool keep = om_attr_int(c->op, "keepdims") != 0;
	om_shape *y = &c->out[0].shape;
	int at;

	c->out[0].type = OM_INT64;
	if (x->rank < 0)
		return OM_OK;
	if (!om_axis(axis, x->rank, &at))
		return om_bad_axis(c, axis);
	if (x->dim[at] == 0)
		return om_op_fail(c->session, OM_INVALID, c->op, "axis %lld is empty", (long long)axis);
	*y = om_shape_of(0, NULL);
	for (int d = 0; d < x->rank; d++) {
		if (d == at && !keep)
			continue;
		y->dim[y->rank] = d == at ? 1 : x->dim[d];
		y->sym[y->rank++] = d == at ? NULL : x->sym[d];
	}
	return OM_OK;
}

/* Compare one row of candidates with the best element so far of each column. */
typedef void arg_fn(int64_t *index, void *best, const void *x, int64_t i, int64_t m);

#define ARG_LOOP(name, T, better)                                              \
	static void                                                            \
	name(int64_t *index, void *best, const void *in, int64_t i, int64_t m) \
	{                                                                      \
		const T *px = in;                                              \
		T *pb = best;                                                  \
		for (int64_t j = 0; j < m; j++) {                              \
			const T x = px[j], b = pb[j];                          \
			if (i == 0 || (better)) {                              \
				pb[j] = x;                                     \
				index[j] = i;                                  \
			}                                                      \
		}                                                              \
	}
#define ARG_FN(type, T, W, _)                                                  \
	ARG_LOOP(argmax_first_##type, T, x > b || (IS_NAN(x) && !IS_NAN(b)))   \
	ARG_LOOP(argmax_last_##type, T, x >= b || IS_NAN(x))                   \
	ARG_LOOP(argmin_first_##type, T, x < b || (IS_NAN(x) && !IS_NAN(b)))   \
	ARG_LOOP(argmin_last_##type, T, x <= b || IS_NAN(x))
#define ARG_ENTRY(type, T, W, name) [OM_##type] = {name##_first_##type, name##_last_##type},

ON_NUMBERS(ARG_FN, )

static void
arg_piece(const om_op_context *c, arg_fn *f, int64_t *y, const char *x, const struct om_lines *l, int64_t m)
{
	const om_dtype t = c->in[0].type;
	const size_t size = om_dtype_bits(t) / 8;
	double best[PIECE];
	float buffer[PIECE];

	for (int64_t i = 0; i < l->n; i++) {
		const char *row = x + (size_t)(i * l->inner) * size;
		if (om_is_half(t))
			om_convert(OM_FLOAT32, buffer, t, row, m, true);
		f(y, best, om_is_half(t) ? (const void *)buffer : row, i, m);
	}
}

struct arg {
	struct om_lines l;
	bool last;                    /* of equal elements */
};

static om_status
arg_prepare(om_op_context *c, void **state)
{
	const om_shape *x = &c->in[0].shape;
	struct arg *s = *state;
	int at;

	s->last = om_attr_int(c->op, "select_last_index") != 0;
	if (!om_axis(om_attr_int(c->op, "axis"), x->rank, &at))
		return om_bad_axis(c, om_attr_int(c->op, "axis"));
	s->l = om_lines_along(x, at);
	return OM_OK;
}

static om_status
arg(om_op_context *c, arg_fn *const loops[][2])
{
	const struct arg *s = c->state;
	const om_tensor *x = &c->in[0];
	arg_fn *f = loops[om_is_half(x->type) ? OM_FLOAT32 : x->type][s->last];
	const size_t size = om_dtype_bits(x->type) / 8;
	const struct om_lines l = s->l;
	int64_t *y = c->out[0].data;

	if (!f)
		return om_no_kernel(c, c->in[0].type);
	for (int64_t o = 0; o < l.outer; o++)
		for (int64_t j = 0; j < l.inner; j += PIECE) {
			const int64_t m = l.inner - j < PIECE ? l.inner - j : PIECE;
			const char *from = (const char *)x->data + (size_t)(o * l.n * l.inner + j) * size;
			arg_piece(c, f, y + o * l.inner + j, from, &l, m);
		}
	return OM_OK;
}

static om_status
argmax_cpu(om_op_context *c)
{
	static arg_fn *const loops[OM_NDTYPE][2] = {ON_NUMBERS(ARG_ENTRY, argmax)};
	return arg(c, loops);
}

static om_status
argmin_cpu(om_op_context *c)
{
	static arg_fn *const loops[OM_NDTYPE][2] = {ON_NUMBERS(ARG_ENTRY, argmin)};
	return arg(c, loops);
}

/* ---- CumSum. ---- */

/* One row of elements: adds it to the sums of the rows before. */
typedef void cum_fn(void *out, const void *x, void *sum, int64_t m, bool exclusive);

#define CUM_LOOP(type, T, A)                                                   \
	static void                                                            \
	cumsum_##type(void *out, const void *in, void *sum, int64_t m, bool exclusive) \
	{                                                                      \
		const T *x = in;                                               \
		T *y = out;                                                    \
		A *s = sum;                                                    \
		for (int64_t j = 0; j < m; j++) {                              \
			const A before = s[j];                                 \
			s[j] += (A)x[j];                                       \
			y[j] = (T)(exclusive ? before : s[j]);                 \
		}                                                              \
	}
#define CUM_FLOAT(type, T, W, _)    CUM_LOOP(type, T, double)
#define CUM_INTEGER(type, T, W, _)  CUM_LOOP(type, T, uint64_t)
#define CUM_ENTRY(type, T, W, _)    [OM_##type] = cumsum_##type,

ON_FLOATS(CUM_FLOAT, )
ON_INTEGERS(CUM_INTEGER, )

struct cum {
	int64_t reverse, exclusive;
};

static const om_attr_field cum_fields[] = {
	OM_FIELD(struct cum, INT, reverse),
	OM_FIELD(struct cum, INT, exclusive),
	{0}
};

static void
cum_piece(const om_op_context *c, cum_fn *f, char *y, const char *x, const struct om_lines *l, int64_t m)
{
	const om_dtype t = c->in[0].type;
	const size_t size = om_dtype_bits(t) / 8;
	const struct cum *k = c->state;
	const bool reverse = k->reverse != 0, exclusive = k->exclusive != 0;
	union { double real[PIECE]; uint64_t whole[PIECE]; } sum = {.whole = {0}};
	float buffer[PIECE];

	for (int64_t i = 0; i < l->n; i++) {
		const size_t at = (size_t)((reverse ? l->n - 1 - i : i) * l->inner) * size;
		if (om_is_half(t)) {
			om_convert(OM_FLOAT32, buffer, t, x + at, m, true);
			f(buffer, buffer, &sum, m, exclusive);
			om_convert(t, y + at, OM_FLOAT32, buffer, m, true);
		} else {
			f(y + at, x + at, &sum, m, exclusive);
		}
	}
}

static om_status
cum_cpu(om_op_context *c)
{
	static cum_fn *const loops[OM_NDTYPE] = {ON_NUMBERS(CUM_ENTRY, )};
	const om_tensor *x = &c->in[0];
	const size_t size = om_dtype_bits(x->type) / 8;
	cum_fn *f = loops[om_is_half(x->type) ? OM_FLOAT32 : x->type];
	int64_t axis[OM_MAX_RANK];
	size_t n;
	int at;

	if (!f)
		return om_no_kernel(c, c->in[0].type);
	if (!om_in_few(c, 1, axis, &n) || n != 1)
		return om_op_fail(c->session, OM_RUN, c->op, "axis must be a scalar");
	if (!om_axis(*axis, x->shape.rank, &at))
		return om_bad_axis(c, *axis);
	const struct om_lines l = om_lines_along(&x->shape, at);
	for (int64_t o = 0; o < l.outer; o++)
		for (int64_t j = 0; j < l.inner; j += PIECE) {
			const int64_t m = l.inner - j < PIECE ? l.inner - j : PIECE;
			const size_t from = (size_t)(o * l.n * l.inner + j) * size;
			cum_piece(c, f, (char *)c->out[0].data + from, (const char *)x->data + from, &l, m);
		}
	return OM_OK;
}

/* ---- The rows. ---- */

static const om_attr_spec arg_attrs[] = {
	{"axis", OM_ATTR_INT, .i = 0},
	{"keepdims", OM_ATTR_INT, .i = 1},
	{"select_last_index", OM_ATTR_INT, .i = 0},
	{0}
};

static const om_attr_spec cum_attrs[] = {
	{"exclusive", OM_ATTR_INT, .i = 0},
	{"reverse", OM_ATTR_INT, .i = 0},
	{0}
};

static bool
arg_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part *p = &s->out[out];
	const bool keeps = om_attr_int(c->op, "keepdims") != 0;
	int axis;

	if (!om_axis(om_attr_int(c->op, "axis"), c->in[0].shape.rank, &axis) || (keeps && p->axis == axis))
		return false;
	s->in[0] = om_part_along(p, p->axis + (!keeps && p->axis >= axis));
	return true;
}

bool
om_slice_cumulative(const om_op_context *c, uint32_t out, om_slice *s)
{
	double axis;
	int at;

	return om_in_scalar(c, 1, &axis) && om_axis((int64_t)axis, c->in[0].shape.rank, &at) && om_slice_beside(c, out, s, at);
}

static void
arg_cost(const om_op_context *c, om_cost *cost)
{
	cost->flops = (double)om_shape_count(&c->in[0].shape);
}

const om_opdef om_ops_axis_scan[] = {
	{
		.name = "ArgMax", .brief = "index of the maximum along an axis",
		.since = 1, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .flags = OM_MONOTONE, .attrs = arg_attrs,
		.infer = arg_infer, .slice = arg_slice, .cpu = argmax_cpu, .cost = arg_cost,
		.input_types = {OF_NUMBERS},
	},
	{
		.name = "ArgMin", .brief = "index of the minimum along an axis",
		.since = 1, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .flags = OM_MONOTONE, .attrs = arg_attrs,
		.infer = arg_infer, .slice = arg_slice, .cpu = argmin_cpu, .cost = arg_cost,
		.input_types = {OF_NUMBERS},
	},
	{
		.name = "CumSum", .brief = "cumulative sum along an axis",
		.since = 11, .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1, .flags = OM_MONOTONE, .attrs = cum_attrs,
		.infer = om_infer_same, .slice = om_slice_cumulative, .inplace = om_inplace_first, .cpu = cum_cpu,
		.input_types = {OF_WIDE, OF_INDICES},
	},
	{0}
};

#define KERNEL(label, runs)  {.name = label, .state_bytes = sizeof(struct arg), .prepare = arg_prepare, .run = runs}

const om_kernel om_kernels_axis_scan[] = {
	KERNEL("ArgMax", argmax_cpu),
	KERNEL("ArgMin", argmin_cpu),
	{.name = "CumSum", .fields = cum_fields, .state_bytes = sizeof(struct cum), .run = cum_cpu},
	{0}
};
