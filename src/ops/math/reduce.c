/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions.
 *
 * The dims of the input are collapsed into groups of adjacent dims that are all kept or all reduced.  If
 * the last group is reduced, each output element is computed from contiguous runs; if it is kept, a
 * block of it is accumulated row by row.  In both cases the inner loop is contiguous.
 *
 * Floats are accumulated in double, integers modulo 2^64. */
#include <config.h>

#include <tgmath.h>

#include "base/convert_elements.h"
#include "base/shape.h"
#include "ir/query.h"
#include "ops/family.h"
#include "ops/slices.h"
#include "opdef/kernel_call.h"
#include "opdef/op_context.h"
#include "ops/math/axis_view.h"
#include "ops/math/reduce_axes.h"
#include "opdef/columns.h"
#include "opdef/numbers.h"
#include "opdef/types.h"

/* Instances of Max and Min for unsigned types compare with zero. */
#pragma GCC diagnostic ignored "-Wtype-limits"

enum { PIECE = 256, LANES = 8 };

/* ---- The axes. ---- */

struct axes {
	bool known;                   /* the axes are known */
	bool is_reduced[OM_MAX_RANK];
	bool is_noop;                 /* no axes are given and noop_with_empty_axes is set */
};

const om_attr_field om_reduce_fields[] = {
	OM_FIELD(struct om_reduce_attrs, INTS, axes),
	OM_FIELD(struct om_reduce_attrs, INT, keepdims),
	OM_FIELD(struct om_reduce_attrs, INT, noop_with_empty_axes),
	{0}
};

/* The rank must be known. */
static om_status
find_axes(const om_op_context *c, const struct om_reduce_attrs *attrs, struct axes *a)
{
	const om_tensor *in = om_has_in(c, 1) ? &c->in[1] : NULL;
	const int rank = c->in[0].shape.rank;
	int at;

	*a = (struct axes){.known = !in || (in->data && (in->type == OM_INT64 || in->type == OM_INT32))};
	if (!a->known)
		return OM_OK;
	const size_t n = in ? (size_t)om_shape_count(&in->shape) : attrs->axes.n;
	a->is_noop = n == 0 && attrs->noop_with_empty_axes;
	for (int d = 0; d < rank && n == 0; d++)
		a->is_reduced[d] = !a->is_noop;
	for (size_t k = 0; k < n; k++) {
		const int64_t axis = in ? om_int_at(in, (int64_t)k) : attrs->axes.v[k];
		if (!om_axis(axis, rank, &at))
			return om_bad_axis(c, axis);
		a->is_reduced[at] = true;
	}
	return OM_OK;
}

/* The number of axes determines the rank of the output, even if the axes themselves are unknown. */
static void
open_shape(const om_op_context *c, bool keep, om_shape *s)
{
	const om_shape *x = &c->in[0].shape, *axes = &c->in[1].shape;
	int rank = x->rank;

	if (!keep && (axes->rank != 1 || axes->dim[0] <= 0 || axes->dim[0] > rank)) {
		*s = om_shape_unknown();
		return;
	}
	rank -= keep ? 0 : (int)axes->dim[0];
	*s = (om_shape){.rank = rank};
	for (int d = 0; d < rank; d++)
		s->dim[d] = OM_DIM_UNKNOWN;
}

static void
reduced_shape(const om_shape *x, const struct axes *a, bool keep, om_shape *y)
{
	*y = om_shape_of(0, NULL);
	for (int d = 0; d < x->rank; d++) {
		if (a->is_reduced[d] && !keep)
			continue;
		y->dim[y->rank] = a->is_reduced[d] ? 1 : x->dim[d];
		y->sym[y->rank++] = a->is_reduced[d] ? NULL : x->sym[d];
	}
}

static om_status
reduce_infer(om_op_context *c)
{
	const om_shape *x = &c->in[0].shape;
	struct om_reduce_attrs attrs;
	struct axes a;

	c->out[0].type = c->in[0].type;
	if (x->rank < 0)
		return OM_OK;
	om_attr_fields(c->op, om_reduce_fields, &attrs);
	OM_TRY(find_axes(c, &attrs, &a));
	if (a.known)
		reduced_shape(x, &a, attrs.keepdims != 0, &c->out[0].shape);
	else
		open_shape(c, attrs.keepdims != 0, &c->out[0].shape);
	return OM_OK;
}

/* ---- The loops. ---- */

struct loops {
	void (*start)(void *sum, int64_t m);
	void (*run)(void *sum, const void *x, int64_t n);       /* n elements into one sum */
	void (*rows)(void *sum, const void *x, int64_t m);      /* m elements into m sums */
	void (*finish)(void *out, const void *sum, int64_t m, int64_t n);
};

/* Capacity for a block of accumulators of any operator. */
typedef struct online { double high, sum; } online;
typedef union sums {
	online any[PIECE];
	double align;
} sums;

struct walk {
	const struct loops *f;
	om_dtype type, as;
	size_t size;                     /* of an element in memory */
	struct om_reduce_groups g;
};

static void
push_group(struct om_reduce_group *g, int *n, int64_t dim, int64_t step)
{
	if (*n && g[*n - 1].step == dim * step) {
		g[*n - 1] = (struct om_reduce_group){g[*n - 1].n * dim, step};
		return;
	}
	g[(*n)++] = (struct om_reduce_group){dim, step};
}

static void
set_groups(struct om_reduce_groups *w, const om_shape *x, const struct axes *a)
{
	int64_t step[OM_MAX_RANK + 1];

	step[x->rank] = 1;
	for (int d = x->rank - 1; d >= 0; d--)
		step[d] = step[d + 1] * x->dim[d];
	w->count = 1;
	for (int d = 0; d < x->rank; d++) {
		if (a->is_reduced[d])
			w->count *= x->dim[d];
		if (x->dim[d] == 1)
			continue;
		if (a->is_reduced[d])
			push_group(w->reduced, &w->nreduced, x->dim[d], step[d + 1]);
		else
			push_group(w->kept, &w->nkept, x->dim[d], step[d + 1]);
	}
	w->last = (struct om_reduce_group){1, 1};
	w->last_is_reduced = w->nreduced && w->reduced[w->nreduced - 1].step == 1;
	if (w->last_is_reduced)
		w->last = w->reduced[--w->nreduced];
	else if (w->nkept && w->kept[w->nkept - 1].step == 1)
		w->last = w->kept[--w->nkept];
}

bool
om_reduce_advance(const struct om_reduce_group *g, int n, int64_t *index, int64_t *at)
{
	for (int d = n - 1; d >= 0; d--) {
		*at += g[d].step;
		if (++index[d] < g[d].n)
			return true;
		*at -= g[d].step * g[d].n;
		index[d] = 0;
	}
	return false;
}

/* Accumulate m contiguous elements of the input into one sum or into m sums. */
static void
take(const struct walk *w, void (*into)(void *, const void *, int64_t), void *sum, const char *x, int64_t m)
{
	float buffer[PIECE];

	if (w->as == w->type) {
		into(sum, x, m);
		return;
	}
	for (int64_t at = 0; at < m; at += PIECE) {
		const int64_t n = m - at < PIECE ? m - at : PIECE;
		om_convert(w->as, buffer, w->type, x + (size_t)at * w->size, n, true);
		into(sum, buffer, n);
	}
}

/* Compute m adjacent elements of the output; their input starts at x. */
static void
reduce_piece(const struct walk *w, char *y, const char *x, int64_t m)
{
	int64_t index[OM_MAX_RANK] = {0}, at = 0;
	float buffer[PIECE];
	sums s;

	w->f->start(&s, m);
	do {
		const char *from = x + at * (int64_t)w->size;
		if (w->g.last_is_reduced)
			take(w, w->f->run, &s, from, w->g.last.n);
		else
			take(w, w->f->rows, &s, from, m);
	} while (w->g.count && om_reduce_advance(w->g.reduced, w->g.nreduced, index, &at));
	w->f->finish(w->as == w->type ? (void *)y : buffer, &s, m, w->g.count);
	if (w->as != w->type)
		om_convert(w->type, y, w->as, buffer, m, true);
}

static void
reduce_nothing(const struct walk *w, char *y, int64_t n)
{
	float buffer[PIECE];
	sums s;

	for (int64_t at = 0; at < n; at += PIECE) {
		const int64_t m = n - at < PIECE ? n - at : PIECE;
		char *to = y + (size_t)at * w->size;
		w->f->start(&s, m);
		w->f->finish(w->as == w->type ? (void *)to : buffer, &s, m, 0);
		if (w->as != w->type)
			om_convert(w->type, to, w->as, buffer, m, true);
	}
}

static void
reduce_all(const struct walk *w, char *y, const char *x)
{
	const int64_t row = w->g.last_is_reduced ? 1 : w->g.last.n;
	int64_t index[OM_MAX_RANK] = {0}, at = 0;

	do {
		for (int64_t j = 0; j < row; j += PIECE) {
			const int64_t m = row - j < PIECE ? row - j : PIECE;
			reduce_piece(w, y, x + (at + j) * (int64_t)w->size, m);
			y += (size_t)m * w->size;
		}
	} while (om_reduce_advance(w->g.kept, w->g.nkept, index, &at));
}

struct reduction {
	struct om_reduce_attrs attrs;    /* first: om_reduce_fields */
	struct walk w;
	int64_t n;                    /* elements of the output */
	bool is_ready;                /* the axes were known when the kernel was prepared */
	bool is_whole;                /* the output has as many elements as the input */
	size_t bytes;
};

static om_status
find_walk(const om_op_context *c, const struct om_reduce_attrs *attrs, struct walk *w)
{
	struct axes a;

	OM_TRY(find_axes(c, attrs, &a));
	w->g = (struct om_reduce_groups){0};
	set_groups(&w->g, &c->in[0].shape, &a);
	return OM_OK;
}

om_status
om_reduce_groups_of(const om_op_context *c, const struct om_reduce_attrs *attrs, struct om_reduce_groups *g)
{
	struct walk w;

	OM_TRY(find_walk(c, attrs, &w));
	*g = w.g;
	return OM_OK;
}

bool
om_reduce_is_ready(const om_op_context *c)
{
	return !om_has_in(c, 1) || c->in[1].data;
}

static om_status
reduce_prepare(om_op_context *c, void **state)
{
	const om_tensor *x = &c->in[0];
	struct reduction *s = *state;

	s->w = (struct walk){.type = x->type, .as = om_is_half(x->type) ? OM_FLOAT32 : x->type,
		.size = om_dtype_bits(x->type) / 8};
	s->n = om_shape_count(&c->out[0].shape);
	s->is_whole = om_shape_count(&x->shape) == s->n;
	s->bytes = (size_t)s->n * s->w.size;
	s->is_ready = om_reduce_is_ready(c);
	return s->is_ready ? find_walk(c, &s->attrs, &s->w) : OM_OK;
}

static om_status
reduce(om_op_context *c, const struct loops loops[])
{
	const om_tensor *x = &c->in[0], *y = &c->out[0];
	struct reduction *s = c->state;
	struct walk *w = &s->w;

	w->f = &loops[w->as];
	if (!w->f->run)
		return om_no_kernel(c, c->in[0].type);
	if (!s->is_ready)
		OM_TRY(find_walk(c, &s->attrs, w));
	if (s->n && w->g.count == 0)
		reduce_nothing(w, y->data, s->n);
	else if (s->n)
		reduce_all(w, y->data, x->data);
	return OM_OK;
}

/* If nothing is accumulated, the elements are copied. */
static om_status
reduce_or_copy(om_op_context *c, const struct loops loops[])
{
	const struct reduction *s = c->state;

	if (!s->is_whole)
		return reduce(c, loops);
	if (s->bytes && c->out[0].data != c->in[0].data)
		memcpy(c->out[0].data, c->in[0].data, s->bytes);
	return OM_OK;
}

static bool
reduce_view(const om_op_context *c, uint32_t out, om_view_of *v)
{
	(void)out;
	*v = (om_view_of){0, 0};
	return om_shape_count(&c->in[0].shape) == om_shape_count(&c->out[0].shape);
}

static bool
reduce_reuse(const om_op_context *c, uint32_t out, uint32_t in)
{
	return out == 0 && in == 0
	    && om_shape_count(&c->in[0].shape) == om_shape_count(&c->out[0].shape);
}

/* ---- The reduction operators. ---- */

/* A is the type of the accumulator, S the type of its result. */
#define REDUCE_LOOPS(name, E, ATYPE, STYPE, zero, next, merged, result)        \
	static void                                                            \
	name##_start(void *sum, int64_t m)                                     \
	{                                                                      \
		typedef E T __attribute__((unused));                           \
		typedef ATYPE A;                                               \
		for (int64_t j = 0; j < m; j++)                                \
			((A *)sum)[j] = zero;                                  \
	}                                                                      \
	static void                                                            \
	name##_run(void *sum, const void *in, int64_t n)                       \
	{                                                                      \
		typedef E T;                                                   \
		typedef ATYPE A;                                               \
		const T *px = in;                                              \
		A lane[LANES], all = *(A *)sum;                                \
		int64_t i = 0;                                                 \
		for (int j = 0; j < LANES; j++)                                \
			lane[j] = zero;                                        \
		for (; i + LANES <= n; i += LANES)                             \
			for (int j = 0; j < LANES; j++) {                      \
				const A a = lane[j];                           \
				const T x = px[i + j];                         \
				lane[j] = next;                                \
			}                                                      \
		for (; i < n; i++) {                                           \
			const A a = lane[0];                                   \
			const T x = px[i];                                     \
			lane[0] = next;                                        \
		}                                                              \
		for (int j = 0; j < LANES; j++) {                              \
			const A a = all, b = lane[j];                          \
			all = merged;                                          \
		}                                                              \
		*(A *)sum = all;                                               \
	}                                                                      \
	static void                                                            \
	name##_rows(void *sum, const void *in, int64_t m)                      \
	{                                                                      \
		typedef E T;                                                   \
		typedef ATYPE A;                                               \
		A *restrict p = sum;                                           \
		const T *restrict px = in;                                     \
		for (int64_t j = 0; j < m; j++) {                              \
			const A a = p[j];                                      \
			const T x = px[j];                                     \
			p[j] = next;                                           \
		}                                                              \
	}                                                                      \
	static void                                                            \
	name##_finish(void *out, const void *sum, int64_t m, int64_t n)        \
	{                                                                      \
		typedef E T;                                                   \
		typedef ATYPE A;                                               \
		typedef STYPE S __attribute__((unused));                       \
		(void)n;                                                       \
		for (int64_t j = 0; j < m; j++) {                              \
			const A a = ((const A *)sum)[j];                       \
			((T *)out)[j] = OM_NUMBER(T, result);                  \
		}                                                              \
	}

#define HIGHER(x, y)   ((x) > (y) || IS_NAN(x) ? (x) : (y))
#define LOWER(x, y)    ((x) < (y) || IS_NAN(x) ? (x) : (y))
#define LARGEST(T)                                                             \
	(IS_FLOAT(T) ? (T)INFINITY                                             \
	    : (T)(UINT64_MAX >> (64 - 8 * sizeof(T) + IS_SIGNED(T))))
#define SMALLEST(T)    (IS_FLOAT(T) ? (T)-INFINITY : (T)(-LARGEST(T) - IS_SIGNED(T)) * IS_SIGNED(T))
#define MEAN(S, a, n)  (IS_FLOAT(S) ? (S)(a) / (S)(n) : (n) ? (S)(a) / (S)(n) : 0)

/* The sum of exp(x), kept as a sum relative to the largest x, which prevents overflow. */
static online
exp_next(online a, double x)
{
	if (x == -INFINITY || IS_NAN(a.high))
		return a;
	if (!(x > a.high))
		return (online){IS_NAN(x) ? x : a.high, x == a.high ? a.sum + 1 : a.sum + exp(x - a.high)};
	return (online){x, a.sum * exp(a.high - x) + 1};
}

static online
exp_merge(online a, online b)
{
	if (b.sum == 0 || IS_NAN(a.high))
		return a;
	if (a.sum == 0 || IS_NAN(b.high))
		return b;
	if (isinf(a.high) || isinf(b.high))
		return a.high > b.high ? a : b;
	if (a.high >= b.high)
		return (online){a.high, a.sum + b.sum * exp(b.high - a.high)};
	return (online){b.high, b.sum + a.sum * exp(a.high - b.high)};
}

static double
exp_result(online a)
{
	return isinf(a.high) || IS_NAN(a.high) ? a.high : a.high + log(a.sum);
}

/* name and reduction, for floats and integers */
#define MAGNITUDE(A, x)  ((x) < 0 ? (A)(0 - (A)(x)) : (A)(x))

#define REDUCTIONS(_, type, E, A, S)                                                                   \
	_(sum, type, E, A, S, 0, a + (A)x, a + b, (S)a)                                                \
	_(mean, type, E, A, S, 0, a + (A)x, a + b, MEAN(S, a, n))                                      \
	_(product, type, E, A, S, 1, a * (A)x, a * b, (S)a)                                            \
	_(square, type, E, A, S, 0, a + (A)x * (A)x, a + b, (S)a)                                      \
	_(l1, type, E, A, S, 0, a + MAGNITUDE(A, x), a + b, (S)a)                                      \
	_(l2, type, E, A, S, 0, a + (A)x * (A)x, a + b, sqrt((double)(S)a))                            \
	_(log_sum, type, E, A, S, 0, a + (A)x, a + b, log((double)(S)a))                               \
	_(log_sum_exp, type, E, online, S, ((online){-INFINITY, 0}), exp_next(a, (double)x), exp_merge(a, b), exp_result(a)) \
	_(highest, type, E, E, E, SMALLEST(T), HIGHER(x, a), HIGHER(b, a), a)                          \
	_(lowest, type, E, E, E, LARGEST(T), LOWER(x, a), LOWER(b, a), a)

#define REDUCE_FN(name, type, E, A, S, zero, next, merged, result)             \
	REDUCE_LOOPS(name##_##type, E, A, S, zero, next, merged, result)
#define REDUCE_FLOAT(type, T, W, _)     REDUCTIONS(REDUCE_FN, type, T, double, double)
#define REDUCE_SIGNED(type, T, W, _)    REDUCTIONS(REDUCE_FN, type, T, uint64_t, int64_t)
#define REDUCE_UNSIGNED(type, T, W, _)  REDUCTIONS(REDUCE_FN, type, T, uint64_t, uint64_t)

ON_FLOATS(REDUCE_FLOAT, )
ON_SIGNED(REDUCE_SIGNED, )
ON_UNSIGNED(REDUCE_UNSIGNED, )

REDUCE_LOOPS(highest_BOOL, uint8_t, uint8_t, uint8_t, 0, x | a, a | b, a != 0)
REDUCE_LOOPS(lowest_BOOL, uint8_t, uint8_t, uint8_t, 1, (x != 0) & a, a & b, a)

#define ENTRY(type, T, W, name)                                                \
	[OM_##type] = {name##_##type##_start, name##_##type##_run,             \
		name##_##type##_rows, name##_##type##_finish},

#define KERNEL(name, how, types)                                               \
	static om_status                                                       \
	name##_cpu(om_op_context *c)                                                 \
	{                                                                      \
		static const struct loops loops[OM_NDTYPE] = {types(ENTRY, name)}; \
		return how(c, loops);                                          \
	}

#define ON_ORDERED(_, ...)  ON_NUMBERS(_, __VA_ARGS__) ON_TRUTHS(_, __VA_ARGS__)

KERNEL(sum, reduce_or_copy, ON_NUMBERS)
KERNEL(mean, reduce_or_copy, ON_NUMBERS)
KERNEL(product, reduce_or_copy, ON_NUMBERS)
KERNEL(highest, reduce_or_copy, ON_ORDERED)
KERNEL(lowest, reduce_or_copy, ON_ORDERED)
KERNEL(square, reduce, ON_NUMBERS)
KERNEL(l1, reduce, ON_NUMBERS)
KERNEL(l2, reduce, ON_NUMBERS)
KERNEL(log_sum, reduce, ON_NUMBERS)
KERNEL(log_sum_exp, reduce, ON_NUMBERS)

/* ---- The operator definitions. ---- */

/* ---- Parts. ---- */

static bool
axes_of(const om_op_context *c, struct axes *a)
{
	struct om_reduce_attrs attrs;

	om_attr_fields(c->op, om_reduce_fields, &attrs);
	return find_axes(c, &attrs, a) == OM_OK && a->known;
}

bool
om_slice_kept(const om_op_context *c, uint32_t out, om_slice *s, const bool *is_reduced, bool keeps)
{
	const om_part *p = &s->out[out];
	int axis = 0;

	for (int left = p->axis; axis < c->in[0].shape.rank && (left > 0 || (!keeps && is_reduced[axis])); axis++)
		left -= keeps || !is_reduced[axis];
	s->in[0] = om_part_along(p, axis);
	return !is_reduced[axis];
}

static bool
reduce_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	struct axes a;

	return axes_of(c, &a) && om_slice_kept(c, out, s, a.is_reduced, om_attr_int(c->op, "keepdims") != 0);
}

void
om_slice_reduce(const om_op_context *c, om_slice *s, const char *type, const bool *is_reduced, bool keeps)
{
	const int since = strcmp(type, "ReduceSum") == 0 ? 13 : 18;
	int64_t axis[OM_MAX_RANK];
	size_t n = 0;

	for (int d = 0; d < c->in[0].shape.rank; d++)
		if (is_reduced[d])
			axis[n++] = d;
	om_slice_become(s, type, 1);
	om_slice_set_int(c, s, "keepdims", keeps);
	if (c->op->version >= since)
		om_slice_put_ints(c, s, 1, n, axis);
	else
		om_slice_set_ints(c, s, "axes", n, axis);
}

/* A reduced axis of input 0: the operator `type`, or if that is NULL the same, of each part. */
static bool
reduced_part(const om_op_context *c, uint32_t in, om_slice *s, const char *type, om_combine combine)
{
	struct axes a;

	if (in != 0 || !axes_of(c, &a) || !a.is_reduced[s->in[in].axis])
		return false;
	s->combine = combine;
	if (type)
		om_slice_reduce(c, s, type, a.is_reduced, om_attr_int(c->op, "keepdims") != 0);
	return true;
}

static bool
sum_partial(const om_op_context *c, uint32_t in, om_slice *s)
{
	return reduced_part(c, in, s, NULL, OM_COMBINE_ADD);
}

static bool
product_partial(const om_op_context *c, uint32_t in, om_slice *s)
{
	return reduced_part(c, in, s, NULL, OM_COMBINE_MUL);
}

/* Max and Min do not compare truth values. */
static bool
highest_partial(const om_op_context *c, uint32_t in, om_slice *s)
{
	return c->in[0].type != OM_BOOL && reduced_part(c, in, s, NULL, OM_COMBINE_MAX);
}

static bool
lowest_partial(const om_op_context *c, uint32_t in, om_slice *s)
{
	return c->in[0].type != OM_BOOL && reduced_part(c, in, s, NULL, OM_COMBINE_MIN);
}

/* Of integers, the mean, the root and the logarithm are rounded once, which parts cannot repeat.  A sum of float16 may
 * overflow where the mean does not. */
static bool
mean_partial(const om_op_context *c, uint32_t in, om_slice *s)
{
	if (!om_dtype_is_float(c->in[0].type) || c->in[0].type == OM_FLOAT16
	    || !reduced_part(c, in, s, "ReduceSum", OM_COMBINE_ADD))
		return false;
	s->scale = (double)om_shape_count(&c->out[0].shape) / (double)om_shape_count(&c->in[0].shape);
	return true;
}

static bool
root_partial(const om_op_context *c, uint32_t in, om_slice *s)
{
	s->finish = "Sqrt";
	return om_dtype_is_float(c->in[0].type) && reduced_part(c, in, s, "ReduceSumSquare", OM_COMBINE_ADD);
}

static bool
log_partial(const om_op_context *c, uint32_t in, om_slice *s)
{
	s->finish = "Log";
	return om_dtype_is_float(c->in[0].type) && reduced_part(c, in, s, "ReduceSum", OM_COMBINE_ADD);
}

static const om_attr_spec old_reduce_attrs[] = {
	{"axes", OM_ATTR_INTS},
	{"keepdims", OM_ATTR_INT, .i = 1},
	{0}
};

static const om_attr_spec reduce_attrs[] = {
	{"keepdims", OM_ATTR_INT, .i = 1},
	{"noop_with_empty_axes", OM_ATTR_INT, .i = 0},
	{0}
};

static void
reduce_cost(const om_op_context *c, om_cost *cost)
{
	cost->flops = (double)om_shape_count(&c->in[0].shape);
}

/* The axes became an input in version `v`. */
#define REDUCE_ROWS(label, v, kernel, types, text, ...)                        \
	{                                                                      \
		.name = label, .brief = text, .since = 1, .until = v - 1, .min_in = 1, .max_in = 1, \
		.min_out = 1, .max_out = 1, .flags = OM_MONOTONE, .attrs = old_reduce_attrs, .slice = reduce_slice, .infer = reduce_infer, \
		.inplace = reduce_reuse, .cpu = kernel, .cost = reduce_cost, \
		.input_types = {types, OF(INT64)}, __VA_ARGS__ \
	},                                                                     \
	{                                                                      \
		.name = label, .brief = text, .since = v, .min_in = 1, .max_in = 2, \
		.min_out = 1, .max_out = 1, .flags = OM_MONOTONE, .attrs = reduce_attrs, .infer = reduce_infer, .slice = reduce_slice, \
		.inplace = reduce_reuse, .cpu = kernel, .cost = reduce_cost, \
		.input_types = {types, OF(INT64)}, __VA_ARGS__ \
	}

const om_opdef om_ops_reduce[] = {
	REDUCE_ROWS("ReduceL1", 18, l1_cpu, OF_WIDE, "L1 norm over axes", .view = NULL, .partial = sum_partial),
	REDUCE_ROWS("ReduceL2", 18, l2_cpu, OF_WIDE, "L2 norm over axes", .view = NULL, .partial = root_partial),
	REDUCE_ROWS("ReduceLogSum", 18, log_sum_cpu, OF_WIDE, "logarithm of the sum over axes", .view = NULL, .partial = log_partial),
	REDUCE_ROWS("ReduceLogSumExp", 18, log_sum_exp_cpu, OF_WIDE, 
		"logarithm of the sum of exp(x) over axes", .view = NULL),
	REDUCE_ROWS("ReduceMax", 18, highest_cpu, OF_WIDE | OF_BYTES | OF(BOOL), 
		"maximum over axes", .view = reduce_view, .partial = highest_partial),
	REDUCE_ROWS("ReduceMean", 18, mean_cpu, OF_WIDE, "mean over axes", .view = reduce_view, .partial = mean_partial),
	REDUCE_ROWS("ReduceMin", 18, lowest_cpu, OF_WIDE | OF_BYTES | OF(BOOL), 
		"minimum over axes", .view = reduce_view, .partial = lowest_partial),
	REDUCE_ROWS("ReduceProd", 18, product_cpu, OF_WIDE, "product over axes", .view = reduce_view, .partial = product_partial),
	REDUCE_ROWS("ReduceSum", 13, sum_cpu, OF_WIDE, "sum over axes", .view = reduce_view, .partial = sum_partial),
	REDUCE_ROWS("ReduceSumSquare", 18, square_cpu, OF_WIDE, "sum of squares over axes", .view = NULL, .partial = sum_partial),
	{0}
};

#define PREPARED(label, runs)                                                  \
	{.name = label, .fields = om_reduce_fields, .state_bytes = sizeof(struct reduction), \
	 .prepare = reduce_prepare, .run = runs}

const om_kernel om_kernels_reduce[] = {
	PREPARED("ReduceL1", l1_cpu),
	PREPARED("ReduceL2", l2_cpu),
	PREPARED("ReduceLogSum", log_sum_cpu),
	PREPARED("ReduceLogSumExp", log_sum_exp_cpu),
	PREPARED("ReduceMax", highest_cpu),
	PREPARED("ReduceMean", mean_cpu),
	PREPARED("ReduceMin", lowest_cpu),
	PREPARED("ReduceProd", product_cpu),
	PREPARED("ReduceSum", sum_cpu),
	PREPARED("ReduceSumSquare", square_cpu),
	{0}
};
