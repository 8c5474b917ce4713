/* Elementwise operators, with broadcast.
 *
 * The dims of the output, together with the steps that each operand takes
 * along them, are folded into as few dims as possible.  What remains inside is
 * a strip along which every operand either stands still or goes on by one
 * element: the loops that the compiler is to vectorise.  Each element is read
 * before it is written, so an output may lie over any operand that is not
 * broadcast. */
#include <config.h>

#include <float.h>
#include <tgmath.h>

#include "ops/cast.h"
#include "ops/copy.h"
#include "grad/makers.h"
#include "ops/family.h"
#include "ops/types.h"
#include "ops/vmath.h"

/* The expressions of pointwise.def serve unsigned types, too. */
#pragma GCC diagnostic ignored "-Wtype-limits"

enum { STRIP = 256, NKNOB = 3 };

struct operand {
	const void *at;
	int64_t step;        /* 0 or 1 */
};

struct strip {
	int64_t n;
	void *out;
	uint32_t nin;
	const struct operand *in;
	const double *knob;
};

typedef void loop_fn(const struct strip *s);

/* ---- The nest of loops around the strips. ---- */

struct lane {
	char *at;
	om_dtype type, as;   /* in memory; for the loop */
	size_t size;         /* of an element in memory */
	char *buffer;        /* for a strip of `as`, where that is another type */
	int64_t step[OM_MAX_RANK];
};

struct nest {
	loop_fn *loop;
	double knob[NKNOB];
	int rank;
	int64_t dim[OM_MAX_RANK];
	uint32_t nin;
	struct lane *lane;   /* [nin], then the output */
	struct operand *in;
};

static void
set_steps(struct nest *e, struct lane *l, const om_shape *s, const om_shape *out)
{
	int64_t step = 1;

	for (int d = out->rank - 1; d >= 0; d--) {
		const int k = d - (out->rank - s->rank);
		const int64_t n = k < 0 ? 1 : s->dim[k];
		l->step[d] = n == 1 ? 0 : step;
		step *= n;
	}
	e->rank = out->rank;
}

static void
set_lane(om_call *c, struct nest *e, uint32_t k, const om_tensor *t, const om_shape *s, om_dtype as)
{
	struct lane *l = &e->lane[k];

	l->at = t->data;
	l->type = t->type;
	l->as = as;
	l->size = om_dtype_bits(t->type) / 8;
	if (l->as != l->type)
		l->buffer = om_alloc(c->mem, (size_t)STRIP * (om_dtype_bits(as) / 8));
	set_steps(e, l, s, &c->out[0].shape);
}

static void
add_lanes(om_call *c, struct nest *e)
{
	e->lane = OM_NEWN(c->mem, struct lane, (size_t)e->nin + 1);
	e->in = OM_NEWN(c->mem, struct operand, e->nin);
}

static struct nest
nest_of(om_call *c, uint32_t nin, loop_fn *loop)
{
	struct nest e = {.loop = loop, .nin = nin};

	add_lanes(c, &e);
	return e;
}

static bool
can_merge(const struct nest *e, int outer, int inner)
{
	for (uint32_t k = 0; k <= e->nin; k++)
		if (e->lane[k].step[outer] != e->lane[k].step[inner] * e->dim[inner])
			return false;
	return true;
}

/* Drop dims of one element, join dims that every lane crosses evenly. */
static void
fold_dims(struct nest *e, const om_shape *out)
{
	int r = 0;

	for (int d = 0; d < out->rank; d++) {
		if (out->dim[d] == 1)
			continue;
		e->dim[r] = out->dim[d];
		for (uint32_t k = 0; k <= e->nin; k++)
			e->lane[k].step[r] = e->lane[k].step[d];
		if (r > 0 && can_merge(e, r - 1, r)) {
			e->dim[r - 1] *= e->dim[r];
			for (uint32_t k = 0; k <= e->nin; k++)
				e->lane[k].step[r - 1] = e->lane[k].step[r];
			r--;
		}
		r++;
	}
	e->rank = r;
}

static void
run_plain(const struct nest *e, int64_t n)
{
	for (uint32_t k = 0; k < e->nin; k++)
		e->in[k].at = e->lane[k].at;
	e->loop(&(struct strip){n, e->lane[e->nin].at, e->nin, e->in, e->knob});
}

/* Through buffers: all operands of a piece are read before it is written. */
static void
run_converted(const struct nest *e, int64_t n)
{
	const struct lane *out = &e->lane[e->nin];

	for (int64_t at = 0; at < n; at += STRIP) {
		const int64_t m = n - at < STRIP ? n - at : STRIP;
		for (uint32_t k = 0; k < e->nin; k++) {
			const struct lane *l = &e->lane[k];
			const char *from = l->at + (size_t)(at * e->in[k].step) * l->size;
			if (l->buffer)
				om_convert(l->as, l->buffer, l->type, from, e->in[k].step ? m : 1, true);
			e->in[k].at = l->buffer ? l->buffer : from;
		}
		char *to = out->at + (size_t)at * out->size;
		e->loop(&(struct strip){m, out->buffer ? out->buffer : to, e->nin, e->in, e->knob});
		if (out->buffer)
			om_convert(out->type, to, out->as, out->buffer, m, true);
	}
}

static bool
is_converted(const struct nest *e)
{
	for (uint32_t k = 0; k <= e->nin; k++)
		if (e->lane[k].buffer)
			return true;
	return false;
}

/* To the next strip: an odometer over all dims but the last. */
static bool
advance(const struct nest *e, int64_t *index)
{
	for (int d = e->rank - 2; d >= 0; d--) {
		const bool carry = ++index[d] == e->dim[d];
		const int64_t by = carry ? 1 - e->dim[d] : 1;
		for (uint32_t k = 0; k <= e->nin; k++)
			e->lane[k].at += e->lane[k].step[d] * by * (int64_t)e->lane[k].size;
		if (!carry)
			return true;
		index[d] = 0;
	}
	return false;
}

static om_status
nest_run(om_call *c, struct nest *e)
{
	int64_t index[OM_MAX_RANK] = {0};

	if (om_shape_count(&c->out[0].shape) == 0)
		return OM_OK;
	fold_dims(e, &c->out[0].shape);
	const int64_t n = e->rank ? e->dim[e->rank - 1] : 1;
	for (uint32_t k = 0; k < e->nin; k++)
		e->in[k].step = e->rank ? e->lane[k].step[e->rank - 1] : 0;
	const bool converted = is_converted(e);
	do {
		if (converted)
			run_converted(e, n);
		else
			run_plain(e, n);
	} while (advance(e, index));
	return OM_OK;
}

/* ---- From a call to a nest. ---- */

/* Before version 7 the second operand lies along the dims of the first from
 * `axis` on; later, and without the attribute, their last dims go together. */
static om_shape
aligned(const om_call *c, uint32_t k)
{
	om_shape s = c->in[k].shape;
	const om_shape *first = &c->in[0].shape;

	if (k != 1 || c->op->version >= 7 || !om_attr_has(c->op, "axis") || s.rank < 0 || first->rank < 0
	    || om_attr_int(c->op, "broadcast") == 0)
		return s;
	int64_t axis = om_attr_int(c->op, "axis");
	axis += axis < 0 ? first->rank : 0;
	if (axis < 0 || axis + s.rank > first->rank)
		return s;
	while (axis + s.rank < first->rank) {
		s.dim[s.rank] = 1;
		s.sym[s.rank++] = NULL;
	}
	return s;
}

/* The type to compute in: narrow floats go through float32. */
static om_dtype
computed_as(loop_fn *const loops[], om_dtype t)
{
	const bool narrow = t == OM_FLOAT16 || t == OM_BFLOAT16 || (t >= OM_FLOAT8E4M3FN && t <= OM_FLOAT8E5M2FNUZ);

	return !loops[t] && narrow ? OM_FLOAT32 : t;
}

static om_status
no_kernel(const om_call *c, om_dtype t)
{
	return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "there is no kernel for elements of type %s",
		om_dtype_text(t));
}

static bool
has_dims(const om_shape *a, const om_shape *b)
{
	bool same = a->rank == b->rank;

	for (int d = 0; same && d < a->rank; d++)
		same = a->dim[d] == b->dim[d];
	return same;
}

/* Small tensors are many: where all operands are one element, or go along with the
 * output, there is nothing to fold.  False where there is. */
static bool
one_strip(const om_call *c, loop_fn *const loops[], const struct nest *e)
{
	enum { MOST = 4 };
	struct operand in[MOST];
	const om_tensor *out = &c->out[0];

	if (e->nin > MOST || computed_as(loops, out->type) != out->type)
		return false;
	for (uint32_t k = 0; k < e->nin; k++) {
		const om_tensor *t = &c->in[k];
		const bool along = has_dims(&t->shape, &out->shape);
		if (computed_as(loops, t->type) != t->type || (!along && om_shape_count(&t->shape) != 1))
			return false;
		in[k] = (struct operand){t->data, along};
	}
	const int64_t n = om_shape_count(&out->shape);
	if (n)
		e->loop(&(struct strip){n, out->data, e->nin, in, e->knob});
	return true;
}

/* Attributes that are a number or a letter, in the order of the row. */
static void
set_knobs(const om_call *c, struct nest *e)
{
	const om_attr_spec *a = c->op->row->attrs;

	for (int k = 0; k < NKNOB && a && a->name; k++, a++) {
		if (a->kind == OM_ATTR_FLOAT) {
			e->knob[k] = (double)om_attr_float(c->op, a->name);
		} else if (a->kind == OM_ATTR_INT) {
			e->knob[k] = (double)om_attr_int(c->op, a->name);
		} else if (a->kind == OM_ATTR_STRING) {
			const om_string s = om_attr_string(c->op, a->name);
			e->knob[k] = s.size ? s.data[0] : 0;
		}
	}
}

/* Input `key` has the type that chooses the loop. */
static om_status
map_by(om_call *c, loop_fn *const loops[], uint32_t key)
{
	const om_dtype t = c->in[key].type;
	struct nest e = {.loop = loops[computed_as(loops, t)], .nin = c->op->nin};

	if (!e.loop)
		return no_kernel(c, t);
	set_knobs(c, &e);
	if (one_strip(c, loops, &e))
		return OM_OK;
	add_lanes(c, &e);
	for (uint32_t k = 0; k < e.nin; k++) {
		const om_shape s = aligned(c, k);
		set_lane(c, &e, k, &c->in[k], &s, computed_as(loops, c->in[k].type));
	}
	set_lane(c, &e, e.nin, &c->out[0], &c->out[0].shape, computed_as(loops, c->out[0].type));
	return nest_run(c, &e);
}

static om_status
map(om_call *c, loop_fn *const loops[])
{
	return map_by(c, loops, 0);
}

/* ---- The other columns. ---- */

static om_status
infer_unary(om_call *c)
{
	c->out[0].type = c->in[0].type;
	c->out[0].shape = c->in[0].shape;
	return OM_OK;
}

static om_status
infer_test(om_call *c)
{
	c->out[0].type = OM_BOOL;
	c->out[0].shape = c->in[0].shape;
	return OM_OK;
}

static om_status
check_type(const om_call *c, om_dtype *type, uint32_t k)
{
	const om_dtype t = c->in[k].type;

	if (*type != OM_UNDEFINED && t != OM_UNDEFINED && t != *type)
		return om_op_fail(c->session, OM_SHAPE, c->op, "input %u has type %s, the ones before it %s",
			k, om_dtype_text(t), om_dtype_text(*type));
	if (t != OM_UNDEFINED)
		*type = t;
	return OM_OK;
}

static om_status
broadcast_all(om_call *c)
{
	om_shape s = aligned(c, 0);
	char a[256], b[256];

	for (uint32_t k = 1; k < c->op->nin; k++) {
		const om_shape next = aligned(c, k);
		om_shape both;
		if (!om_broadcast(&s, &next, &both))
			return om_op_fail(c->session, OM_SHAPE, c->op, "shapes %s and %s cannot be broadcast",
				om_shape_text(&s, a, sizeof a), om_shape_text(&next, b, sizeof b));
		s = both;
	}
	c->out[0].shape = s;
	return OM_OK;
}

static om_status
infer_broadcast(om_call *c)
{
	om_dtype type = OM_UNDEFINED;

	for (uint32_t k = 0; k < c->op->nin; k++) {
		if (!om_has_in(c, k))
			return om_op_fail(c->session, OM_INVALID, c->op, "input %u is left out", k);
		OM_TRY(check_type(c, &type, k));
	}
	c->out[0].type = type;
	return broadcast_all(c);
}

static om_status
infer_compare(om_call *c)
{
	OM_TRY(infer_broadcast(c));
	c->out[0].type = OM_BOOL;
	return OM_OK;
}

/* Do the dims agree, but for ones in front? */
static bool
is_whole(const om_shape *s, const om_shape *out)
{
	for (int d = 0; d < out->rank; d++) {
		const int k = d - (out->rank - s->rank);
		if ((k < 0 ? 1 : s->dim[k]) != out->dim[d])
			return false;
	}
	return s->rank <= out->rank;
}

static bool
reuse_whole(const om_call *c, uint32_t out, uint32_t in)
{
	const om_shape s = aligned(c, in);

	return out == 0 && om_dtype_bits(c->in[in].type) == om_dtype_bits(c->out[0].type)
	    && is_whole(&s, &c->out[0].shape);
}

/* ---- Loops. ---- */

#define ENTRY(type, T, W, name) [OM_##type] = name##_##type,

#define MAX(x, y)         ((x) > (y) || IS_NAN(x) ? (x) : (y))
#define MIN(x, y)         ((x) < (y) || IS_NAN(x) ? (x) : (y))
#define CLAMP(v, low, high)  ((v) < (low) ? (low) : (v) > (high) ? (high) : (v))
#define SOFTPLUS(x)       ((x) > 0 ? (x) + log1p(exp(-(x))) : log1p(exp(x)))
#define SELU(x, a, b)     ((b) * ((x) > 0 ? (x) : (a) * expm1(x)))
#define GELU(T, x)        ((T)0.5 * (x) * (1 + erf((x) * (T)0.70710678118654752440)))
#define GELU_TANH(T, x)                                                        \
	((T)0.5 * (x) * (1 + TANH((T)0.79788456080286535588                    \
	    * ((x) + (T)0.044715 * (x) * (x) * (x)))))
#define SHRINK(x, lambda, bias)                                                \
	((x) < -(lambda) ? (x) + (bias) : (x) > (lambda) ? (x) - (bias) : 0)
#define SHIFT(T, W, x, y, left)                                                \
	((uint64_t)(y) >= 8 * sizeof(T) ? (!(left) && (x) < 0 ? (T)-1 : 0)     \
	    : (left) ? (T)((W)(x) << (y)) : (T)((x) >> (y)))

/* Neither a zero nor the one overflow of division may trap. */
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

/* What the expressions of pointwise.def may speak of. */
#define NAMES(element, wrapping)                                               \
	typedef element T __attribute__((unused));                             \
	typedef wrapping W __attribute__((unused));                            \
	const double *const knob = s->knob;                                    \
	const T a = (T)knob[0], b = (T)knob[1], c = (T)knob[2];                \
	(void)a, (void)b, (void)c;

#define UNARY_LOOP(name, E, U, R, value)                                       \
	static void                                                            \
	name(const struct strip *s)                                            \
	{                                                                      \
		NAMES(E, U)                                                    \
		const T *px = s->in[0].at;                                     \
		R *out = s->out;                                               \
		for (int64_t i = 0; i < s->n; i++) {                           \
			const T x = px[i];                                     \
			out[i] = (R)(value);                                   \
		}                                                              \
	}

#define BINARY_LOOP(name, E, U, R, value)                                      \
	static void                                                            \
	name(const struct strip *s)                                            \
	{                                                                      \
		NAMES(E, U)                                                    \
		const T *px = s->in[0].at, *py = s->in[1].at;                  \
		R *out = s->out;                                               \
		if (s->in[0].step && s->in[1].step) {                          \
			for (int64_t i = 0; i < s->n; i++) {                   \
				const T x = px[i], y = py[i];                  \
				out[i] = (R)(value);                           \
			}                                                      \
		} else if (s->in[0].step) {                                    \
			const T y = *py;                                       \
			for (int64_t i = 0; i < s->n; i++) {                   \
				const T x = px[i];                             \
				out[i] = (R)(value);                           \
			}                                                      \
		} else {                                                       \
			const T x = *px;                                       \
			for (int64_t i = 0; i < s->n; i++) {                   \
				const T y = py[i];                             \
				out[i] = (R)(value);                           \
			}                                                      \
		}                                                              \
	}

/* A piece is complete before it is written: the output may lie over any one
 * of the inputs. */
#define VARIADIC_LOOP(name, E, next, finish)                                   \
	static void                                                            \
	name(const struct strip *s)                                            \
	{                                                                      \
		typedef E T;                                                   \
		T sum[STRIP];                                                  \
		const uint32_t n = s->nin;                                     \
		(void)n;                                                       \
		for (int64_t at = 0; at < s->n; at += STRIP) {                 \
			const int64_t m = s->n - at < STRIP ? s->n - at : STRIP; \
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

#define UNARY_FN(type, T, W, name, value)    UNARY_LOOP(name##_##type, T, W, T, value)
#define TEST_FN(type, T, W, name, value)     UNARY_LOOP(name##_##type, T, W, uint8_t, value)
#define BINARY_FN(type, T, W, name, value)   BINARY_LOOP(name##_##type, T, W, T, value)
#define COMPARE_FN(type, T, W, name, value)  BINARY_LOOP(name##_##type, T, W, uint8_t, value)
#define VARIADIC_FN(type, T, W, name, next, finish)  VARIADIC_LOOP(name##_##type, T, next, finish)

#define KERNEL(name, types)                                                    \
	static loop_fn *const name##_loops[OM_NDTYPE] = {ON_##types(ENTRY, name)}; \
	static om_status                                                       \
	name##_cpu(om_call *c)                                                 \
	{                                                                      \
		return map(c, name##_loops);                                   \
	}

#define UNARY(name, since, types, value, attrs, grad, brief)                   \
	ON_##types(UNARY_FN, name, value) KERNEL(name, types)
#define TEST(name, since, types, value, attrs, brief)                          \
	ON_##types(TEST_FN, name, value) KERNEL(name, types)
#define BINARY(name, since, types, value, attrs, grad, brief)                  \
	ON_##types(BINARY_FN, name, value) KERNEL(name, types)
#define COMPARE(name, since, types, value, attrs, brief)                       \
	ON_##types(COMPARE_FN, name, value) KERNEL(name, types)
#define VARIADIC(name, since, types, next, finish, grad, brief)                \
	ON_##types(VARIADIC_FN, name, next, finish) KERNEL(name, types)
#include "pointwise.def"
#undef UNARY
#undef TEST
#undef BINARY
#undef COMPARE
#undef VARIADIC

/* ---- Equal, which knows strings. ---- */

ON_NUMBERS(COMPARE_FN, Equal, x == y)
ON_TRUTHS(COMPARE_FN, Equal, !x == !y)

static bool
same_text(om_string x, om_string y)
{
	return x.size == y.size && memcmp(x.data, y.data, x.size) == 0;
}

static void
Equal_STRING(const struct strip *s)
{
	const om_string *x = s->in[0].at, *y = s->in[1].at;
	uint8_t *out = s->out;

	for (int64_t i = 0; i < s->n; i++)
		out[i] = same_text(x[i * s->in[0].step], y[i * s->in[1].step]);
}

#define ON_EQUALS(_, ...)                                                      \
	ON_NUMBERS(_, __VA_ARGS__) ON_TRUTHS(_, __VA_ARGS__) _(STRING, om_string, , __VA_ARGS__)

KERNEL(Equal, EQUALS)

/* ---- Where: moves elements, so every type will do. ---- */

#define WHERE_FN(type, T, W, name)                                             \
	static void                                                            \
	name##_##type(const struct strip *s)                                   \
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

/* Elements of 16 bytes, as they lie. */
typedef struct wide_pair {
	double re, im;
} wide_pair;

ON_CHOICES(WHERE_FN, Where)

static loop_fn *const Where_loops[OM_NDTYPE] = {ON_CHOICES(ENTRY, Where)};

static om_status
Where_cpu(om_call *c)
{
	return map_by(c, Where_loops, 1);
}

static om_status
Where_infer(om_call *c)
{
	om_dtype type = OM_UNDEFINED;

	if (c->in[0].type != OM_BOOL && c->in[0].type != OM_UNDEFINED)
		return om_op_fail(c->session, OM_SHAPE, c->op, "the condition has type %s, not bool",
			om_dtype_text(c->in[0].type));
	OM_TRY(check_type(c, &type, 1));
	OM_TRY(check_type(c, &type, 2));
	c->out[0].type = type;
	return broadcast_all(c);
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

/* Of a negative exponent only the whole part is left. */
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

static loop_fn *const Pow_loops[OM_NDTYPE] = {ON_NUMBERS(ENTRY, Pow)};

static om_status
Pow_cpu(om_call *c)
{
	const om_dtype t = c->in[0].type;
	const bool real = om_dtype_is_float(t), root = !real && om_dtype_is_float(c->in[1].type);
	const om_dtype own = computed_as(Pow_loops, t), as = root ? OM_FLOAT64 : own;
	struct nest e = nest_of(c, 2, Pow_loops[as]);

	if (!Pow_loops[own] || c->in[1].type == OM_STRING || !om_can_convert(as, c->in[1].type))
		return no_kernel(c, Pow_loops[own] ? c->in[1].type : t);
	for (uint32_t k = 0; k < 2; k++) {
		const om_shape s = aligned(c, k);
		set_lane(c, &e, k, &c->in[k], &s, as);
	}
	set_lane(c, &e, 2, &c->out[0], &c->out[0].shape, as);
	return nest_run(c, &e);
}

static om_status
Pow_infer(om_call *c)
{
	c->out[0].type = c->in[0].type;
	return broadcast_all(c);
}

/* ---- PRelu: the slope adapts to the other input only. ---- */

ON_NUMBERS(BINARY_FN, PRelu, x < 0 ? (T)((W)x * (W)y) : x)

static loop_fn *const PRelu_loops[OM_NDTYPE] = {ON_NUMBERS(ENTRY, PRelu)};

/* Before version 7 it has one element, or one a channel. */
static om_shape
slope_shape(const om_call *c)
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
PRelu_cpu(om_call *c)
{
	const om_dtype t = c->in[0].type, as = computed_as(PRelu_loops, t);
	const om_shape slope = slope_shape(c);
	struct nest e = nest_of(c, 2, PRelu_loops[as]);

	if (!e.loop)
		return no_kernel(c, t);
	set_lane(c, &e, 0, &c->in[0], &c->in[0].shape, as);
	set_lane(c, &e, 1, &c->in[1], &slope, as);
	set_lane(c, &e, 2, &c->out[0], &c->out[0].shape, as);
	return nest_run(c, &e);
}

static om_status
PRelu_infer(om_call *c)
{
	const om_shape slope = slope_shape(c);
	om_dtype type = OM_UNDEFINED;
	om_shape both;
	char a[256], b[256];

	OM_TRY(check_type(c, &type, 0));
	OM_TRY(check_type(c, &type, 1));
	const bool fits = om_broadcast(&c->in[0].shape, &slope, &both);
	if (!fits || (om_shape_is_known(&both) && om_shape_is_known(&c->in[0].shape)
	    && !om_shape_equal(&both, &c->in[0].shape)))
		return om_op_fail(c->session, OM_SHAPE, c->op, "a slope of shape %s does not fit an input of shape %s",
			om_shape_text(&slope, a, sizeof a),
			om_shape_text(&c->in[0].shape, b, sizeof b));
	return infer_unary(c);
}

static bool
PRelu_reuse(const om_call *c, uint32_t out, uint32_t in)
{
	const om_shape slope = slope_shape(c);
	return out == 0 && is_whole(in ? &slope : &c->in[0].shape, &c->out[0].shape);
}

/* ---- Clip. ---- */

#define CLIP_FN(type, T, W, name)                                              \
	static void                                                            \
	name##_##type(const struct strip *s)                                   \
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
ON_NUMBERS(UNARY_FN, Copy, x)

static loop_fn *const Clip_loops[OM_NDTYPE] = {ON_NUMBERS(ENTRY, Clip)};
static loop_fn *const Copy_loops[OM_NDTYPE] = {ON_NUMBERS(ENTRY, Copy)};

/* The largest finite number of a type, which bounds where nothing else does:
 * infinities end there. */
static double
largest_of(om_dtype t)
{
	return t == OM_FLOAT64 ? DBL_MAX : t == OM_FLOAT16 ? 65504 : t == OM_BFLOAT16 ? om_bfloat_to_float(0x7f7f)
		: FLT_MAX;
}

/* Of integers, bounds that are left out bound nothing: there is a loop for each case. */
static om_status
clip_integers(om_call *c)
{
	static loop_fn *const *const cases[] = {Copy_loops, Max_loops, Min_loops, Clip_loops};
	const bool low = om_has_in(c, 1), high = om_has_in(c, 2);
	const om_dtype t = c->in[0].type;
	struct nest e = nest_of(c, 1u + low + high, cases[low + 2 * high][t]);
	uint32_t k = 0;

	if (!e.loop)
		return no_kernel(c, t);
	set_lane(c, &e, k++, &c->in[0], &c->in[0].shape, t);
	for (uint32_t i = 1; i < 3; i++)
		if (om_has_in(c, i))
			set_lane(c, &e, k++, &c->in[i], &c->in[i].shape, t);
	set_lane(c, &e, k, &c->out[0], &c->out[0].shape, t);
	return nest_run(c, &e);
}

static om_status
Clip_cpu(om_call *c)
{
	const om_dtype t = c->in[0].type, as = computed_as(Clip_loops, t);
	const om_shape scalar = om_shape_of(0, NULL);
	double bound[2] = {-largest_of(t), largest_of(t)};
	float narrow[2] = {(float)bound[0], (float)bound[1]};

	if (as != OM_FLOAT32 && as != OM_FLOAT64)
		return clip_integers(c);
	struct nest e = nest_of(c, 3, Clip_loops[as]);
	set_lane(c, &e, 0, &c->in[0], &c->in[0].shape, as);
	for (uint32_t k = 0; k < 2; k++) {
		const om_tensor b = {.type = as, .data = as == OM_FLOAT64 ? (void *)&bound[k] : &narrow[k]};
		if (om_has_in(c, k + 1))
			set_lane(c, &e, k + 1, &c->in[k + 1], &c->in[k + 1].shape, as);
		else
			set_lane(c, &e, k + 1, &b, &scalar, as);
	}
	set_lane(c, &e, 3, &c->out[0], &c->out[0].shape, as);
	return nest_run(c, &e);
}

static om_status
Clip_infer(om_call *c)
{
	om_dtype type = OM_UNDEFINED;

	for (uint32_t k = 0; k < c->op->nin; k++) {
		if (!om_has_in(c, k))
			continue;
		OM_TRY(check_type(c, &type, k));
		if (k > 0 && om_shape_is_known(&c->in[k].shape) && om_shape_count(&c->in[k].shape) != 1)
			return om_op_fail(c->session, OM_SHAPE, c->op, "a bound has %lld elements, not one",
				(long long)om_shape_count(&c->in[k].shape));
	}
	return infer_unary(c);
}

static bool
reuse_first(const om_call *c, uint32_t out, uint32_t in)
{
	(void)c;
	return out == 0 && in == 0;
}

/* Before version 11 the bounds are attributes. */
static om_status
old_Clip_cpu(om_call *c)
{
	const om_dtype t = c->in[0].type, as = computed_as(Clip_loops, t);
	struct nest e = nest_of(c, 3, Clip_loops[as]);
	float bound[2] = {om_attr_float(c->op, "min"), om_attr_float(c->op, "max")};
	const om_shape scalar = om_shape_of(0, NULL);

	if (!e.loop)
		return no_kernel(c, t);
	set_lane(c, &e, 0, &c->in[0], &c->in[0].shape, as);
	for (uint32_t k = 0; k < 2; k++) {
		const om_tensor b = {.type = OM_FLOAT32, .data = &bound[k]};
		set_lane(c, &e, k + 1, &b, &scalar, as);
	}
	set_lane(c, &e, 3, &c->out[0], &c->out[0].shape, as);
	return nest_run(c, &e);
}

/* ---- Dropout. ---- */

static om_status
Dropout_infer(om_call *c)
{
	OM_TRY(infer_unary(c));
	if (om_has_out(c, 1)) {
		c->out[1].type = c->op->version < 10 ? c->in[0].type : OM_BOOL;
		c->out[1].shape = c->in[0].shape;
	}
	return OM_OK;
}

/* Is nothing dropped?  False when that is not known before the run. */
static bool
keeps_all(const om_call *c)
{
	double training, ratio;

	if (!om_has_in(c, 2))
		return true;
	return (om_in_scalar(c, 2, &training) && training == 0)
	    || (om_in_scalar(c, 1, &ratio) && ratio == 0);
}

static bool
Dropout_view(const om_call *c, uint32_t out, om_view_of *v)
{
	*v = (om_view_of){0, 0};
	return out == 0 && keeps_all(c);
}

static void
fill_ones(const om_tensor *t)
{
	static const uint8_t yes[STRIP] = {[0 ... STRIP - 1] = 1};
	const int64_t n = om_shape_count(&t->shape);
	const size_t size = om_dtype_bits(t->type) / 8;

	for (int64_t at = 0; at < n; at += STRIP)
		om_convert(t->type, (char *)t->data + (size_t)at * size, OM_BOOL, yes,
			n - at < STRIP ? n - at : STRIP, true);
}

/* A generator of its own for every call, so that a seed gives one mask. */
static double
random_share(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static om_status
drop(om_call *c, double ratio)
{
	const om_tensor *x = &c->in[0];
	const size_t size = om_dtype_bits(x->type) / 8;
	const double scale = ratio < 1 ? 1 / (1 - ratio) : 0;
	uint8_t *mask = om_has_out(c, 1) ? c->out[1].data : NULL;
	uint64_t state = (uint64_t)om_attr_int(c->op, "seed");
	const int64_t n = om_shape_count(&x->shape);

	if (!om_dtype_is_float(x->type))
		return no_kernel(c, x->type);
	for (int64_t i = 0; i < n; i++) {
		const bool stays = random_share(&state) >= ratio;
		double v;
		om_convert(OM_FLOAT64, &v, x->type, (char *)x->data + (size_t)i * size, 1, true);
		v = stays ? v * scale : 0;
		om_convert(x->type, (char *)c->out[0].data + (size_t)i * size, OM_FLOAT64, &v, 1, true);
		if (mask)
			mask[i] = stays;
	}
	return OM_OK;
}

static om_status
Dropout_cpu(om_call *c)
{
	double ratio = 0.5;
	uint64_t bytes = 0;

	if (!keeps_all(c)) {
		om_in_scalar(c, 1, &ratio);
		return drop(c, ratio);
	}
	if (om_has_out(c, 1) && (!om_can_convert(c->out[1].type, OM_BOOL) || om_dtype_bits(c->out[1].type) < 8))
		return no_kernel(c, c->out[1].type);
	om_tensor_bytes(c->in[0].type, &c->in[0].shape, &bytes);
	if (c->out[0].data != c->in[0].data)
		memcpy(c->out[0].data, c->in[0].data, bytes);
	if (om_has_out(c, 1))
		fill_ones(&c->out[1]);
	return OM_OK;
}

/* ---- Attributes. ---- */

#define ATTRS(name, ...) static const om_attr_spec name[] = {__VA_ARGS__, {0}};
#define A_FLOAT(label, value)  {label, OM_ATTR_FLOAT, .f = (float)(value)}
#define A_INT(label, value)    {label, OM_ATTR_INT, .i = (value)}
#define A_TEXT(label, value)   {label, OM_ATTR_STRING, .s = (value)}

ATTRS(bit_shift_attrs, {"direction", OM_ATTR_STRING, .required = true})
ATTRS(broadcast_attrs, A_INT("axis", 0), A_INT("broadcast", 0))
ATTRS(celu_attrs, A_FLOAT("alpha", 1))
ATTRS(clip_attrs, A_FLOAT("min", -0x1.fffffep127), A_FLOAT("max", 0x1.fffffep127))
ATTRS(dropout_attrs, A_INT("seed", 0))
ATTRS(elu_attrs, A_FLOAT("alpha", 1))
ATTRS(gelu_attrs, A_TEXT("approximate", "none"))
ATTRS(hard_sigmoid_attrs, A_FLOAT("alpha", 0.2), A_FLOAT("beta", 0.5))
ATTRS(is_inf_attrs, A_INT("detect_positive", 1), A_INT("detect_negative", 1))
ATTRS(leaky_relu_attrs, A_FLOAT("alpha", 0.01))
ATTRS(mod_attrs, A_INT("fmod", 0))
ATTRS(old_dropout_attrs, A_FLOAT("ratio", 0.5), A_INT("is_test", 0))
ATTRS(old_selu_attrs, A_FLOAT("alpha", 1.6732), A_FLOAT("gamma", 1.0507))
ATTRS(selu_attrs, A_FLOAT("alpha", 1.67326319217681884765625), A_FLOAT("gamma", 1.05070102214813232421875))
ATTRS(shrink_attrs, A_FLOAT("lambd", 0.5), A_FLOAT("bias", 0))
ATTRS(swish_attrs, A_FLOAT("alpha", 1))
ATTRS(thresholded_relu_attrs, A_FLOAT("alpha", 1))

/* ---- The rows. ---- */

#define ROW(label, from, least, most, list, text, infers, reuses)              \
	.name = #label, .brief = text, .since = from, .min_in = least, .max_in = most, \
	.min_out = 1, .max_out = 1, .flags = OM_POINTWISE, .attrs = list,      \
	.infer = infers, .reuse = reuses, .cpu = label##_cpu

#define UNARY(name, since, types, value, attrs, maker, brief) \
	{ROW(name, since, 1, 1, attrs, brief, infer_unary, reuse_whole), .takes = {OF_##types}, .grad = maker},
#define TEST(name, since, types, value, attrs, brief) \
	{ROW(name, since, 1, 1, attrs, brief, infer_test, reuse_whole), .takes = {OF_##types | OF_FLOAT8S}},
#define BINARY(name, since, types, value, attrs, maker, brief) \
	{ROW(name, since, 2, 2, attrs, brief, infer_broadcast, reuse_whole), .elems = om_elems_calculated, \
	 .takes = {OF_##types}, .grad = maker},
#define COMPARE(name, since, types, value, attrs, brief) \
	{ROW(name, since, 2, 2, attrs, brief, infer_compare, reuse_whole), .takes = {OF_##types}},
#define VARIADIC(name, since, types, next, finish, maker, brief) \
	{ROW(name, since, 1, OM_VARIADIC, NULL, brief, infer_broadcast, reuse_whole), .takes = {OF_##types}, \
	 .grad = maker},

const om_row om_ops_pointwise[] = {
#include "pointwise.def"
	{
		.name = "Clip", .brief = "x, kept within two bounds",
		.since = 1, .until = 10, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1,
		.takes = {OF_NUMBERS}, .flags = OM_POINTWISE, .attrs = clip_attrs,
		.infer = infer_unary, .reuse = reuse_first, .cpu = old_Clip_cpu,
	},
	{ROW(Clip, 11, 1, 3, NULL, "x, kept within two bounds", Clip_infer, reuse_first), .grad = om_grad_Clip,
	 .takes = {OF_NUMBERS}},
	{
		.name = "Dropout", .brief = "x itself, all of which is kept in inference",
		.since = 1, .until = 11, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 2,
		.flags = OM_POINTWISE, .attrs = old_dropout_attrs,
		.infer = Dropout_infer, .view = Dropout_view, .reuse = reuse_first, .cpu = Dropout_cpu,
		.takes = {OF_FLOATS | OF_FLOAT8S},
	},
	{
		.name = "Dropout", .brief = "x itself; in training, a part of it is zeroed at random",
		.since = 12, .min_in = 1, .max_in = 3, .min_out = 1, .max_out = 2,
		.flags = OM_RANDOM, .attrs = dropout_attrs, .grad = om_grad_Dropout, .train = om_train_Dropout,
		.infer = Dropout_infer, .view = Dropout_view, .reuse = reuse_first, .cpu = Dropout_cpu,
		.takes = {OF_FLOATS | OF_FLOAT8S, OF_FLOATS | OF_FLOAT8S, OF(BOOL)},
	},
	{ROW(Equal, 1, 2, 2, broadcast_attrs, "is x the same as y", infer_compare, reuse_whole),
	 .takes = {OF_NUMBERS | OF(BOOL) | OF(STRING)}},
	{ROW(Pow, 1, 2, 2, broadcast_attrs, "x to the power y", Pow_infer, reuse_whole), .grad = om_grad_Pow,
	 .takes = {OF_FLOATS | OF_INDICES, OF_NUMBERS}},
	{ROW(PRelu, 1, 2, 2, NULL, "x, or slope x below zero", PRelu_infer, PRelu_reuse), .grad = om_grad_PRelu,
	 .takes = {OF_WIDE}},
	{
		.name = "Selu", .brief = "gamma times the Elu of x",
		.since = 1, .until = 5, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1,
		.flags = OM_POINTWISE, .attrs = old_selu_attrs,
		.infer = infer_unary, .reuse = reuse_whole, .cpu = Selu_cpu,
		.takes = {OF_FLOATS},
	},
	{ROW(Where, 9, 3, 3, NULL, "x where the condition holds, y elsewhere", Where_infer, reuse_whole), .grad = om_grad_Where,
	 .takes = {OF(BOOL), OF_COMMON}},
	{0}
};
