/* SPDX-License-Identifier: Apache-2.0 */
/* org.onnxmem.cpu: attention of operands that lie anywhere in their tensors.
 *
 * Attention(Q, K, V, mask?, mask2?, keep?, count?) -> Y = softmax(scale Q K^T + mask + mask2) V, where scores at which
 * `keep` is `fill_where` are `fill` before masks are added.  Only the first `count` keys take part, all if there is none.  `dims` are the batch axes, then the numbers of rows of Q,
 * of keys, of columns of Q, of columns of V.  For each operand an attribute tells where its elements are: the
 * offset of the first one, the steps along the batch axes, the step of rows, the step of columns; those of
 * masks are rows and columns of the scores.  Views of tensors, such as the parts of a joint projection, split
 * into heads and transposed, are so read and written in place.  Operands of 16 bits become floats, one head at a time:
 * nothing between them and the result is rounded to 16 bits. */
#include <config.h>

#include <math.h>

#include "base/convert_elements.h"
#include "base/shape.h"
#include "ir/query.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/kernels.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "opdef/slice.h"
#include "ops/cpu/cpu_conv.h"
#include "ops/family.h"

#define REAL (OF(FLOAT32) | OF(FLOAT16) | OF(BFLOAT16))

enum { ROWS, KEYS, DEPTH, VALUE_DEPTH, NSIZE, COUNT = OM_ATTENTION_Y };

/* Largest number of columns: parts of the workspace are products of these and constants. */
static const int64_t most_columns = INT64_C(1) << 31;
/* Largest number of elements of an operand of a head that become floats. */
static const int64_t most_widened = INT64_C(1) << 48;

static const om_attr_spec attention_attrs[] = {
	{"dims", OM_ATTR_INTS, .required = true},
	{"shape", OM_ATTR_INTS, .required = true},
	{"q", OM_ATTR_INTS, .required = true},
	{"k", OM_ATTR_INTS, .required = true},
	{"v", OM_ATTR_INTS, .required = true},
	{"y", OM_ATTR_INTS, .required = true},
	{"mask", OM_ATTR_INTS},
	{"mask2", OM_ATTR_INTS},
	{"keep", OM_ATTR_INTS},
	{"scale", OM_ATTR_FLOAT, .f = 1},
	{"fill", OM_ATTR_FLOAT},
	{"fill_where", OM_ATTR_INT},
	{"causal", OM_ATTR_INT},
	{"masked", OM_ATTR_STRING, .s = "nan"},
	{0}
};

/* The attribute of each operand, in the order of om_attention. */
static const char *const names[OM_NATTENTION] = {"q", "k", "v", "mask", "mask2", "keep", "y"};

struct attention {
	om_attention_batch b;
	int64_t offset[OM_NATTENTION];
};

/* ---- Attributes. ---- */

static void
sizes_of_operand(const om_attention *a, int k, int64_t *rows, int64_t *cols)
{
	const bool is_score = k >= OM_ATTENTION_MASK && k <= OM_ATTENTION_KEEP;

	*rows = k == OM_ATTENTION_K || k == OM_ATTENTION_V ? a->keys : a->rows;
	*cols = is_score ? a->keys : k == OM_ATTENTION_V || k == OM_ATTENTION_Y ? a->value_depth : a->depth;
}

static om_status
read_dims(const om_op_context *c, om_attention_batch *b)
{
	size_t n;
	const int64_t *v = om_attr_ints(c->op, "dims", &n);
	int64_t all = 1;

	if (n < NSIZE || n > NSIZE + OM_ATTENTION_RANK)
		return om_op_fail(c->session, OM_SHAPE, c->op, "dims has %zu elements, expected 4 to 12", n);
	for (size_t k = 0; k < n; k++)
		if (v[k] < 0 || (k + NSIZE >= n + DEPTH && v[k] > most_columns) || (v[k] && __builtin_mul_overflow(all, v[k], &all)))
			return om_op_fail(c->session, OM_SHAPE, c->op, "dims has the element %lld", (long long)v[k]);
	b->rank = (int)n - NSIZE;
	for (int d = 0; d < b->rank; d++)
		b->dim[d] = v[d];
	v += b->rank;
	b->a.rows = v[ROWS];
	b->a.keys = v[KEYS];
	b->a.depth = v[DEPTH];
	b->a.value_depth = v[VALUE_DEPTH];
	return OM_OK;
}

/* Add the index of the last of `n` elements to `*last`; false if it overflows. */
static bool
reach(int64_t n, int64_t step, int64_t *last)
{
	int64_t most;

	return n <= 1 || (!__builtin_mul_overflow(n - 1, step, &most) && !__builtin_add_overflow(*last, most, last));
}

/* Is every element of operand `k` one of the `count` of its tensor?  An operand without elements is. */
static bool
is_inside(const struct attention *s, int k, int64_t count)
{
	const om_attention_batch *b = &s->b;
	int64_t rows, cols, last = s->offset[k];
	bool fits = true, is_empty = false;

	sizes_of_operand(&b->a, k, &rows, &cols);
	fits = reach(rows, b->a.row[k], &last) && reach(cols, b->a.col[k], &last);
	for (int d = 0; d < b->rank; d++) {
		fits = fits && reach(b->dim[d], b->step[d][k], &last);
		is_empty |= b->dim[d] == 0;
	}
	return is_empty || rows == 0 || cols == 0 || (fits && last < count);
}

static om_status
read_operand(const om_op_context *c, struct attention *s, int k)
{
	size_t n;
	const int64_t *v = om_attr_ints(c->op, names[k], &n);
	om_attention_batch *b = &s->b;
	int64_t rows, cols;

	if (!v || n != (size_t)b->rank + 3)
		return om_op_fail(c->session, OM_SHAPE, c->op, "%s has %zu elements, expected %d", names[k], v ? n : 0, b->rank + 3);
	for (size_t i = 0; i < n; i++)
		if (v[i] < 0)
			return om_op_fail(c->session, OM_SHAPE, c->op, "%s has the element %lld", names[k], (long long)v[i]);
	sizes_of_operand(&b->a, k, &rows, &cols);
	if (cols && rows > most_widened / cols)
		return om_op_fail(c->session, OM_SHAPE, c->op, "%s has %lld rows of %lld elements", names[k], (long long)rows, (long long)cols);
	s->offset[k] = v[0];
	for (int d = 0; d < b->rank; d++)
		b->step[d][k] = v[1 + d];
	b->a.row[k] = v[1 + b->rank];
	b->a.col[k] = v[2 + b->rank];
	b->a.has[k] = true;
	return OM_OK;
}

static om_status
read_attention(const om_op_context *c, struct attention *s)
{
	om_attention *a = &s->b.a;

	*s = (struct attention){{{0}}};
	OM_TRY(read_dims(c, &s->b));
	for (int k = 0; k < OM_NATTENTION; k++)
		if (k == OM_ATTENTION_Y || om_has_in(c, (uint32_t)k))
			OM_TRY(read_operand(c, s, k));
	if (om_has_in(c, COUNT) && om_shape_is_known(&c->in[COUNT].shape) && c->in[COUNT].shape.rank != 0)
		return om_wrong(c, "count is no scalar");
	a->scale = om_attr_float(c->op, "scale");
	a->fill = om_attr_float(c->op, "fill");
	a->fill_where = om_attr_int(c->op, "fill_where") != 0;
	a->is_causal = om_attr_int(c->op, "causal") != 0;
	a->zero_for_masked = om_attr_is(c->op, "masked", "zero");
	a->zero_for_nan = om_attr_is(c->op, "masked", "zero_for_nan");
	if (!a->zero_for_masked && !a->zero_for_nan && !om_attr_is(c->op, "masked", "nan"))
		return om_wrong(c, "masked is neither nan nor zero nor zero_for_nan");
	return OM_OK;
}

/* ---- Inference. ---- */

/* Take the axis with step `*step` of the output out of the list; false if there is none. */
static bool
take_axis(int64_t (*axis)[2], int n, int64_t *step)
{
	for (int k = 0; k < n; k++)
		if (axis[k][0] > 1 && axis[k][1] == *step) {
			*step *= axis[k][0];
			axis[k][0] = 1;
			return true;
		}
	return false;
}

/* Is each of the `count` elements of the output computed exactly once? */
static bool
covers(const struct attention *s, int64_t count)
{
	const om_attention_batch *b = &s->b;
	int64_t axis[OM_ATTENTION_RANK + 2][2], step = 1;

	for (int d = 0; d < b->rank; d++) {
		axis[d][0] = b->dim[d];
		axis[d][1] = b->step[d][OM_ATTENTION_Y];
	}
	axis[b->rank][0] = b->a.rows;
	axis[b->rank][1] = b->a.row[OM_ATTENTION_Y];
	axis[b->rank + 1][0] = b->a.value_depth;
	axis[b->rank + 1][1] = b->a.col[OM_ATTENTION_Y];
	for (int d = 0; d < b->rank + 2; d++)
		if (axis[d][0] == 0)
			return count == 0;
	while (take_axis(axis, b->rank + 2, &step))
		;
	for (int d = 0; d < b->rank + 2; d++)
		if (axis[d][0] != 1)
			return false;
	return s->offset[OM_ATTENTION_Y] == 0 && step == count;
}

static om_status
attention_infer(om_op_context *c)
{
	struct attention s;
	size_t rank;
	const int64_t *shape = om_attr_ints(c->op, "shape", &rank);
	int64_t count = 1;

	c->out[0].type = c->in[0].type;
	if (rank > OM_MAX_RANK)
		return om_op_fail(c->session, OM_SHAPE, c->op, "shape has %zu elements, at most %d are possible", rank, OM_MAX_RANK);
	for (size_t k = 0; k < rank; k++)
		if (shape[k] < 0 || __builtin_mul_overflow(count, shape[k], &count))
			return om_op_fail(c->session, OM_SHAPE, c->op, "shape has the element %lld", (long long)shape[k]);
	OM_TRY(read_attention(c, &s));
	for (int k = 0; k < OM_ATTENTION_Y; k++)
		if (om_has_in(c, (uint32_t)k) && om_shape_is_known(&c->in[k].shape)
		    && !is_inside(&s, k, om_shape_count(&c->in[k].shape)))
			return om_op_fail(c->session, OM_SHAPE, c->op, "%s reads elements that its tensor has not", names[k]);
	if (!covers(&s, count))
		return om_wrong(c, "y does not cover the output");
	c->out[0].shape = om_shape_of((int)rank, shape);
	return OM_OK;
}

static void
attention_cost(const om_op_context *c, om_cost *cost)
{
	size_t n;
	const int64_t *v = om_attr_ints(c->op, "dims", &n);

	cost->flops = 1;
	for (size_t k = 0; k + 2 < n; k++)
		cost->flops *= (double)v[k];
	cost->flops *= 2 * (double)(v[n - 2] + v[n - 1]) + 5;
}

/* ---- Kernels. ---- */

/* One row for each of several heads that share keys and values becomes as many rows of one head, so that those are
 * read once. */
static void
join_heads(om_attention_batch *b)
{
	const int last = b->rank - 1;
	om_attention *a = &b->a;

	if (a->rows != 1 || last < 0 || b->step[last][OM_ATTENTION_K] || b->step[last][OM_ATTENTION_V])
		return;
	a->rows = b->dim[last];
	a->is_causal = false;     /* the only row has all keys */
	for (int k = 0; k < OM_NATTENTION; k++)
		if (k != OM_ATTENTION_K && k != OM_ATTENTION_V)
			a->row[k] = b->step[last][k];
	b->rank--;
}

static om_status
attention_prepare(om_op_context *c, void **state)
{
	struct attention *s = *state;

	OM_TRY(read_attention(c, s));
	join_heads(&s->b);
	return OM_OK;
}

/* How keys and values are stored, for the kernels that read them as they are: floats if they are not by rows. */
static om_stored_as
storage_of(const om_op_context *c, const om_attention *a)
{
	const bool by_rows = a->col[OM_ATTENTION_K] == 1 && a->col[OM_ATTENTION_V] == 1;

	return !by_rows || !om_is_half(c->in[0].type) ? OM_STORED_FLOAT : c->in[0].type == OM_FLOAT16 ? OM_STORED_HALF : OM_STORED_BFLOAT;
}

static om_status
fast_prepare(om_op_context *c, void **state)
{
	struct attention *s = *state;

	OM_TRY(attention_prepare(c, state));
	s->b.a.keys_as = s->b.a.values_as = storage_of(c, &s->b.a);
	return OM_OK;
}

static const float *
floats_at(const om_op_context *c, const struct attention *s, int k)
{
	return s->b.a.has[k] ? (const float *)c->in[k].data + s->offset[k] : NULL;
}

static om_attention_data
data_of(const om_op_context *c, const struct attention *s)
{
	const int keep = OM_ATTENTION_KEEP;

	return (om_attention_data){
		.q = floats_at(c, s, OM_ATTENTION_Q), .k = floats_at(c, s, OM_ATTENTION_K),
		.v = floats_at(c, s, OM_ATTENTION_V),
		.mask = {floats_at(c, s, OM_ATTENTION_MASK), floats_at(c, s, OM_ATTENTION_MASK + 1)},
		.keep = s->b.a.has[keep] ? (const uint8_t *)c->in[keep].data + s->offset[keep] : NULL,
		.y = c->out[0].data,
	};
}

/* ---- Operands of 16 bits. ---- */

/* A head whose operands are floats in a room of a worker: those that are not repeated by steps of 0, row by row.  Keys and values that
 * the kernel reads as they are stored stay where they are. */
struct wide_head {
	om_attention a;
	int64_t at[OM_NATTENTION], rows[OM_NATTENTION], cols[OM_NATTENTION];
	int64_t kernel, total;    /* where the room of the kernel begins, and where it ends */
};

static int64_t
whole_lines(int64_t floats)
{
	return (floats + 15) / 16 * 16;
}

/* `kernel`: floats that the kernel needs for a head. */
static struct wide_head
widened(const om_attention *a, int64_t kernel)
{
	struct wide_head h = {.a = *a};

	for (int k = 0; k < OM_NATTENTION; k++) {
		const bool stays = (k == OM_ATTENTION_K && a->keys_as) || (k == OM_ATTENTION_V && a->values_as);
		if (!a->has[k] || k == OM_ATTENTION_KEEP || stays)
			continue;
		sizes_of_operand(a, k, &h.rows[k], &h.cols[k]);
		h.rows[k] = a->row[k] || h.rows[k] == 0 ? h.rows[k] : 1;
		h.cols[k] = a->col[k] || h.cols[k] == 0 ? h.cols[k] : 1;
		h.a.row[k] = a->row[k] ? h.cols[k] : 0;
		h.a.col[k] = a->col[k] ? 1 : 0;
		h.at[k] = h.kernel;
		h.kernel += whole_lines(h.rows[k] * h.cols[k]);
	}
	h.total = h.kernel + whole_lines(kernel);
	return h;
}

/* The index of the first element of operand `k` of head `n`. */
static int64_t
head_at(const struct attention *s, int k, int64_t n)
{
	int64_t at = s->offset[k];

	for (int d = s->b.rank - 1; d >= 0; d--) {
		at += n % s->b.dim[d] * s->b.step[d][k];
		n /= s->b.dim[d];
	}
	return at;
}

static void
take_row(om_dtype t, const uint16_t *x, int64_t step, int64_t n, float *y)
{
	if (step == 1 && t == OM_FLOAT16)
		om_kernels_get()->half->widen(y, x, n);
	else if (step == 1)
		om_convert(OM_FLOAT32, y, t, x, n, false);
	for (int64_t j = 0; step != 1 && j < n; j++)
		y[j] = (float)om_get(t, x, j * step);
}

static void
give_row(om_dtype t, uint16_t *y, int64_t step, int64_t n, const float *x)
{
	if (step == 1)
		om_convert(t, y, OM_FLOAT32, x, n, false);
	for (int64_t j = 0; step != 1 && j < n; j++)
		om_put(t, y, j * step, (double)x[j]);
}

static const void *
stored_at(const om_op_context *c, const struct attention *s, int k, int64_t n)
{
	return (const uint16_t *)c->in[k].data + head_at(s, k, n);
}

/* The operands of head `n`, as floats but for those that stay. */
static om_attention_data
widen_head(const om_op_context *c, const struct attention *s, const struct wide_head *h, int64_t n, float *room)
{
	const om_attention *a = &s->b.a;

	for (int k = 0; k < OM_ATTENTION_Y; k++) {
		const uint16_t *x = h->rows[k] ? (const uint16_t *)c->in[k].data + head_at(s, k, n) : NULL;
		for (int64_t i = 0; i < h->rows[k]; i++)
			take_row(c->in[0].type, x + i * a->row[k], a->col[k], h->cols[k], room + h->at[k] + i * h->cols[k]);
	}
	return (om_attention_data){
		.q = room + h->at[OM_ATTENTION_Q], .k = a->keys_as ? stored_at(c, s, OM_ATTENTION_K, n) : room + h->at[OM_ATTENTION_K],
		.v = a->values_as ? stored_at(c, s, OM_ATTENTION_V, n) : room + h->at[OM_ATTENTION_V],
		.mask = {a->has[OM_ATTENTION_MASK] ? room + h->at[OM_ATTENTION_MASK] : NULL,
			a->has[OM_ATTENTION_MASK + 1] ? room + h->at[OM_ATTENTION_MASK + 1] : NULL},
		.keep = a->has[OM_ATTENTION_KEEP] ? (const uint8_t *)c->in[OM_ATTENTION_KEEP].data + head_at(s, OM_ATTENTION_KEEP, n) : NULL,
		.y = room + h->at[OM_ATTENTION_Y],
	};
}

typedef void run_head_fn(const om_attention *a, const om_attention_data *at, void *room);

struct wide_run {
	const om_op_context *c;
	struct attention s;       /* with the keys of this run */
	struct wide_head h;
	run_head_fn *run_head;
};

static void
run_wide_head(void *arg, int64_t n, uint32_t worker)
{
	const struct wide_run *w = arg;
	float *room = (float *)w->c->scratch + worker * w->h.total;
	const om_attention_data at = widen_head(w->c, &w->s, &w->h, n, room);
	const om_attention *a = &w->s.b.a;
	const int y = OM_ATTENTION_Y;

	w->run_head(&w->h.a, &at, room + w->h.kernel);
	for (int64_t i = 0; i < a->rows; i++)
		give_row(w->c->in[0].type, (uint16_t *)w->c->out[0].data + head_at(&w->s, y, n) + i * a->row[y], a->col[y], a->value_depth,
			at.y + i * w->h.cols[y]);
}

static int64_t
count_heads(const om_attention_batch *b)
{
	int64_t n = 1;

	for (int d = 0; d < b->rank; d++)
		n *= b->dim[d];
	return n;
}

static void
run_wide(const om_op_context *c, const struct attention *s, int64_t kernel, run_head_fn *run_head, om_workers *pool)
{
	struct wide_run w = {.c = c, .s = *s, .h = widened(&s->b.a, kernel), .run_head = run_head};

	om_parallel_for(pool, count_heads(&s->b), run_wide_head, &w);
}

/* ---- The fast kernel. ---- */

static int64_t
fast_floats(const om_attention *a)
{
	return om_attention_layout(a).total;
}

static void
run_fast_head(const om_attention *a, const om_attention_data *at, void *room)
{
	om_attention_run(&(om_attention_batch){.a = *a}, at, room, NULL);
}

static uint64_t
attention_workspace(const om_op_context *c)
{
	const om_attention *a = &((const struct attention *)c->state)->b.a;
	/* Rows of the room are dense. */
	const struct wide_head dense = widened(a, 0);

	return om_is_half(c->in[0].type) ? (uint64_t)widened(a, fast_floats(&dense.a)).total * sizeof(float) * c->workers
		: om_attention_workspace(a, c->workers);
}

/* The number of first elements that take part: input `in`, or all if there is none. */
static om_status
count_of(const om_op_context *c, uint32_t in, int64_t all, int64_t *count)
{
	*count = om_has_in(c, in) ? *(const int64_t *)c->in[in].data : all;
	return *count >= 0 && *count <= all ? OM_OK : om_op_fail(c->session, OM_RUN, c->op, "count is %lld, and there are %lld",
		(long long)*count, (long long)all);
}

static om_status
attention_run(om_op_context *c)
{
	struct attention s = *(const struct attention *)c->state;

	OM_TRY(count_of(c, COUNT, s.b.a.keys, &s.b.a.keys));
	if (om_is_half(c->in[0].type)) {
		const struct wide_head dense = widened(&s.b.a, 0);
		run_wide(c, &s, fast_floats(&dense.a), run_fast_head, c->pool);
	} else {
		const om_attention_data at = data_of(c, &s);
		om_attention_run(&s.b, &at, c->scratch, c->pool);
	}
	return OM_OK;
}

/* ---- The reference kernel: a row of scores in float64. ---- */

struct row {
	const om_attention *a;
	om_attention_data at;
	int64_t i;
	double *score;
};

static double
score_of(const struct row *r, int64_t j)
{
	const om_attention *a = r->a;
	const float *q = r->at.q + r->i * a->row[OM_ATTENTION_Q], *k = (const float *)r->at.k + j * a->row[OM_ATTENTION_K];
	double sum = 0;

	for (int64_t d = 0; d < a->depth; d++)
		sum += (double)q[d * a->col[OM_ATTENTION_Q]] * (double)k[d * a->col[OM_ATTENTION_K]];
	sum *= (double)a->scale;
	if (r->at.keep && (r->at.keep[r->i * a->row[OM_ATTENTION_KEEP] + j * a->col[OM_ATTENTION_KEEP]] != 0) == a->fill_where)
		sum = (double)a->fill;
	for (int m = 0; m < OM_ATTENTION_MASKS; m++)
		if (r->at.mask[m])
			sum += (double)r->at.mask[m][r->i * a->row[OM_ATTENTION_MASK + m] + j * a->col[OM_ATTENTION_MASK + m]];
	return a->is_causal && j > r->i + a->keys - a->rows ? -INFINITY : sum;
}

/* Scores become weights; true if they are to be 0. */
static bool
weigh(const struct row *r)
{
	const om_attention *a = r->a;
	double most = -INFINITY, sum = 0;

	for (int64_t j = 0; j < a->keys; j++) {
		r->score[j] = score_of(r, j);
		most = r->score[j] > most ? r->score[j] : most;
	}
	bool has_nan = false;
	for (int64_t j = 0; j < a->keys; j++) {
		has_nan |= r->score[j] != r->score[j];
		r->score[j] = exp(r->score[j] - most);
		sum += r->score[j];
	}
	for (int64_t j = 0; j < a->keys; j++)
		r->score[j] /= sum;
	return (a->zero_for_masked && most == -INFINITY && !has_nan) || (a->zero_for_nan && !(sum > 0));
}

static void
reference_row(const struct row *r)
{
	const om_attention *a = r->a;
	const float *v = r->at.v;
	const bool is_zero = weigh(r);

	for (int64_t d = 0; d < a->value_depth; d++) {
		double sum = 0;
		for (int64_t j = 0; j < a->keys && !is_zero; j++)
			sum += r->score[j] * (double)v[j * a->row[OM_ATTENTION_V] + d * a->col[OM_ATTENTION_V]];
		r->at.y[r->i * a->row[OM_ATTENTION_Y] + d * a->col[OM_ATTENTION_Y]] = (float)sum;
	}
}

static void
run_reference_head(const om_attention *a, const om_attention_data *at, void *room)
{
	struct row r = {.a = a, .at = *at, .score = room};

	for (r.i = 0; r.i < a->rows; r.i++)
		reference_row(&r);
}

/* Floats for a row of scores in float64. */
static int64_t
reference_floats(const om_attention *a)
{
	return a->keys * 2;
}

static uint64_t
reference_workspace(const om_op_context *c)
{
	const om_attention *a = &((const struct attention *)c->state)->b.a;

	return (uint64_t)(om_is_half(c->in[0].type) ? widened(a, reference_floats(a)).total : reference_floats(a)) * sizeof(float);
}

static om_status
reference_run(om_op_context *c)
{
	struct attention s = *(const struct attention *)c->state;

	OM_TRY(count_of(c, COUNT, s.b.a.keys, &s.b.a.keys));
	if (om_is_half(c->in[0].type)) {
		run_wide(c, &s, reference_floats(&s.b.a), run_reference_head, NULL);
		return OM_OK;
	}
	const om_attention_data all = data_of(c, &s);
	for (int64_t n = 0; n < count_heads(&s.b); n++) {
		const om_attention_data at = om_attention_head(&s.b, &all, n);
		run_reference_head(&s.b.a, &at, c->scratch);
	}
	return OM_OK;
}

/* ---- Softmax of the first elements. ---- */

static om_status
prefix_infer(om_op_context *c)
{
	c->out[0].type = c->in[0].type;
	c->out[0].shape = c->in[0].shape;
	if (c->in[0].shape.rank == 0 || (om_shape_is_known(&c->in[1].shape) && c->in[1].shape.rank != 0))
		return om_wrong(c, "the input is a scalar, or count is not");
	return OM_OK;
}

/* `x` and `y` have elements of type T from `at` on. */
static void
softmax_row(om_dtype t, const void *x, void *y, int64_t at, int64_t n, int64_t count)
{
	double most = -INFINITY, sum = 0;

	for (int64_t j = at; j < at + count; j++) {
		const double is = om_get(t, x, j);
		most = is > most || is != is ? is : most;
	}
	for (int64_t j = at; j < at + count; j++)
		sum += exp(om_get(t, x, j) - most);
	for (int64_t j = at; j < at + count; j++)
		om_put(t, y, j, exp(om_get(t, x, j) - most) / sum);
	for (int64_t j = at + count; j < at + n; j++)
		om_put(t, y, j, 0);
}

static om_status
prefix_run(om_op_context *c)
{
	const om_shape *s = &c->in[0].shape;
	const int64_t n = s->dim[s->rank - 1], rows = om_shape_span(s, 0, s->rank - 1);
	int64_t count;

	OM_TRY(count_of(c, 1, n, &count));
	for (int64_t i = 0; i < rows; i++)
		softmax_row(c->in[0].type, c->in[0].data, c->out[0].data, i * n, n, count);
	return OM_OK;
}

/* A row is read before it is written, element by element. */
static bool
prefix_inplace(const om_op_context *c, uint32_t out, uint32_t in)
{
	(void)c;
	return out == 0 && in == 0;
}

const om_opdef om_ops_cpu_attention[] = {
	{.domain = OM_CPU_DOMAIN, .name = "Attention", .brief = "softmax(scale Q K^T + masks) V of views of tensors", .since = 1,
	 .min_in = 3, .max_in = 7, .min_out = 1, .max_out = 1, .attrs = attention_attrs, .infer = attention_infer,
	 .cpu = reference_run, .scratch = reference_workspace, .cost = attention_cost,
	 .input_types = {REAL, LIKE(0), LIKE(0), LIKE(0), LIKE(0), OF(BOOL), OF(INT64)}},
	{.domain = OM_CPU_DOMAIN, .name = "PrefixSoftmax", .brief = "softmax of the first elements along the last axis, and 0 after them",
	 .since = 1, .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1, .infer = prefix_infer, .slice = om_slice_but_last, .inplace = prefix_inplace,
	 .cpu = prefix_run, .input_types = {REAL, OF(INT64)}},
	{0}
};

const om_kernel om_kernels_cpu_attention[] = {
	{.domain = OM_CPU_DOMAIN, .name = "Attention", .state_bytes = sizeof(struct attention), .prepare = attention_prepare,
	 .workspace = reference_workspace, .run = reference_run},
	{.domain = OM_CPU_DOMAIN, .name = "Attention", .is_fast = true, .state_bytes = sizeof(struct attention),
	 .prepare = fast_prepare, .workspace = attention_workspace, .run = attention_run},
	{0}
};
