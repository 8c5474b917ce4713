/* SPDX-License-Identifier: Apache-2.0 */
/* Attention and related operators: rotary embeddings, caches.
 *
 * Attention is computed query by query: the dot products with all keys are one row of scores, which are
 * normalized to weights of the values.  Keys and values of a head are held in scratch while its queries
 * are processed, and no more than one row of scores is stored. */
#include <config.h>

#include <math.h>

#include "kernels/cpu/vmath.h"
#include "base/half.h"
#include "base/shape.h"
#include "ir/query.h"
#include "opdef/op_context.h"
#include "base/strided_copy.h"
#include "opdef/columns.h"
#include "ops/family.h"
#include "ops/nn/attention.h"
#include "ops/slices.h"
#include "ops/tensor/index.h"
#include "opdef/numbers.h"

/* ---- Attention: sizes. ---- */

static int64_t
product(int64_t a, int64_t b)
{
	return a < 0 || b < 0 ? -1 : a * b;
}

static int64_t
share(int64_t n, int64_t heads)
{
	return n < 0 || heads <= 0 ? -1 : n / heads;
}

static int64_t
known_dim(const om_tensor *t, int k)
{
	return t->shape.rank > k ? t->shape.dim[k] : -1;
}

static int64_t
either(int64_t a, int64_t b)
{
	return a >= 0 ? a : b;
}

static om_status
check_ranks(const om_op_context *c)
{
	for (uint32_t k = Q; k <= V; k++) {
		const int rank = c->in[k].shape.rank, first = c->in[Q].shape.rank;
		if (rank >= 0 && rank != 3 && rank != 4)
			return om_wrong(c, "Q, K and V must have rank 3 or 4");
		if (rank >= 0 && first >= 0 && rank != first)
			return om_wrong(c, "Q, K and V differ in rank");
	}
	for (uint32_t k = PAST_K; k <= PAST_V; k++)
		if (om_has_in(c, k) && c->in[k].shape.rank >= 0 && c->in[k].shape.rank != 4)
			return om_wrong(c, "past_key and past_value must have rank 4");
	if (om_has_in(c, PAST_K) != om_has_in(c, PAST_V))
		return om_wrong(c, "past_key and past_value must be given together");
	if (om_has_in(c, PAST_K) && om_has_in(c, LENGTHS))
		return om_wrong(c, "nonpad_kv_seqlen cannot be combined with past_key");
	return OM_OK;
}

struct om_attention
om_attention_sizes(const om_op_context *c)
{
	const om_tensor *in = c->in;
	struct om_attention a = {.batch = -1};

	for (uint32_t k = Q; k <= V; k++)
		a.batch = either(a.batch, known_dim(&in[k], 0));
	a.flat = in[Q].shape.rank == 3 || in[K].shape.rank == 3 || in[V].shape.rank == 3;
	if (a.flat) {
		a.qheads = om_attr_int(c->op, "q_num_heads");
		a.heads = om_attr_int(c->op, "kv_num_heads");
		a.qlen = known_dim(&in[Q], 1);
		a.len = either(known_dim(&in[K], 1), known_dim(&in[V], 1));
		a.size = either(share(known_dim(&in[Q], 2), a.qheads), share(known_dim(&in[K], 2), a.heads));
		a.vsize = share(known_dim(&in[V], 2), a.heads);
	} else {
		a.qheads = known_dim(&in[Q], 1);
		a.heads = either(known_dim(&in[K], 1), known_dim(&in[V], 1));
		a.qlen = known_dim(&in[Q], 2);
		a.len = either(known_dim(&in[K], 2), known_dim(&in[V], 2));
		a.size = either(known_dim(&in[Q], 3), known_dim(&in[K], 3));
		a.vsize = known_dim(&in[V], 3);
	}
	a.past = !om_has_in(c, PAST_K) ? 0 : either(known_dim(&in[PAST_K], 2), known_dim(&in[PAST_V], 2));
	a.total = a.past < 0 || a.len < 0 ? -1 : a.past + a.len;
	return a;
}

static bool
has_dims(const om_tensor *t, int rank, const int64_t *want)
{
	if (t->shape.rank < 0)
		return true;
	if (t->shape.rank != rank)
		return false;
	for (int d = 0; d < rank; d++)
		if (!om_dims_agree(t->shape.dim[d], want[d]))
			return false;
	return true;
}

static om_status
check_sizes(const om_op_context *c, const struct om_attention *a)
{
	const int rank = a->flat ? 3 : 4;
	const int64_t heads[] = {a->qheads, a->heads, a->heads}, length[] = {a->qlen, a->len, a->len};
	const int64_t size[] = {a->size, a->size, a->vsize};

	if (a->flat && (a->qheads <= 0 || a->heads <= 0))
		return om_wrong(c, "q_num_heads and kv_num_heads are required when the inputs have rank 3");
	if (a->qheads >= 0 && a->heads >= 0 && (a->heads == 0 ? a->qheads != 0 : a->qheads % a->heads != 0))
		return om_wrong(c, "the number of key/value heads must divide the number of query heads");
	for (uint32_t k = Q; k <= V; k++) {
		const int64_t flat[] = {a->batch, length[k], product(heads[k], size[k])};
		const int64_t deep[] = {a->batch, heads[k], length[k], size[k]};
		if (!has_dims(&c->in[k], rank, a->flat ? flat : deep))
			return om_wrong(c, "the dims of Q, K and V do not match");
	}
	for (uint32_t k = PAST_K; k <= PAST_V; k++) {
		const int64_t past[] = {a->batch, a->heads, a->past, k == PAST_K ? a->size : a->vsize};
		if (om_has_in(c, k) && !has_dims(&c->in[k], 4, past))
			return om_wrong(c, "the dims of past_key and past_value do not match K and V");
	}
	return OM_OK;
}

static om_status
check_mask(const om_op_context *c, const struct om_attention *a)
{
	const int64_t full[] = {a->batch, a->qheads, a->qlen, a->total};

	if (om_has_in(c, LENGTHS) && !has_dims(&c->in[LENGTHS], 1, &a->batch))
		return om_wrong(c, "nonpad_kv_seqlen must have one element for each batch entry");
	if (!om_has_in(c, MASK) || c->in[MASK].shape.rank < 0)
		return OM_OK;
	const om_shape *m = &c->in[MASK].shape;
	if (m->rank > 4 || m->rank < 1)
		return om_wrong(c, "attn_mask must have rank 1 to 4");
	for (int d = 0; d < m->rank; d++) {
		const int64_t n = m->dim[d], want = full[4 - m->rank + d];
		const bool last = d == m->rank - 1;
		if (n >= 0 && want >= 0 && n != want && n != 1 && !(last && n < want))
			return om_wrong(c, "attn_mask cannot be broadcast to the scores");
	}
	return OM_OK;
}

static void
set_dim(om_shape *to, int k, int64_t n, const om_shape *from, int j)
{
	to->dim[k] = n;
	to->sym[k] = n < 0 && from && from->rank > j ? from->sym[j] : NULL;
}

static void
infer_caches(om_op_context *c, const struct om_attention *a)
{
	for (uint32_t k = NEW_K; k <= SCORES; k++) {
		om_shape *s = &c->out[k].shape;
		if (!om_has_out(c, k))
			continue;
		c->out[k].type = k == SCORES ? c->in[Q].type : c->in[k].type;
		*s = om_shape_open(4);
		set_dim(s, 0, a->batch, &c->in[Q].shape, 0);
		set_dim(s, 1, k == SCORES ? a->qheads : a->heads, NULL, 0);
		set_dim(s, 2, k == SCORES ? a->qlen : a->total, NULL, 0);
		set_dim(s, 3, k == SCORES ? a->total : k == NEW_K ? a->size : a->vsize, NULL, 0);
	}
}

static om_status
attention_infer(om_op_context *c)
{
	om_shape *y = &c->out[Y].shape;
	const om_shape *q = &c->in[Q].shape;

	OM_TRY(check_ranks(c));
	const struct om_attention a = om_attention_sizes(c);
	c->out[Y].type = c->in[Q].type;
	if (q->rank < 0 && c->in[K].shape.rank < 0 && c->in[V].shape.rank < 0)
		return infer_caches(c, &a), OM_OK;
	OM_TRY(check_sizes(c, &a));
	OM_TRY(check_mask(c, &a));
	*y = om_shape_open(a.flat ? 3 : 4);
	set_dim(y, 0, a.batch, q, 0);
	set_dim(y, 1, a.flat ? a.qlen : a.qheads, q, 1);
	set_dim(y, 2, a.flat ? product(a.qheads, a.vsize) : a.qlen, a.flat ? NULL : q, 2);
	if (!a.flat)
		set_dim(y, 3, a.vsize, &c->in[V].shape, 3);
	infer_caches(c, &a);
	return OM_OK;
}

/* ---- Attention: masks and windows. ---- */

/* Strides of the mask over batch, head, query and key. */
struct mask {
	const om_tensor *t;
	int64_t step[4];
	int64_t length;          /* of its last dim */
};

static struct mask
mask_of(const om_op_context *c)
{
	struct mask m = {0};
	int64_t stride[OM_MAX_RANK];

	if (!om_has_in(c, MASK))
		return m;
	m.t = &c->in[MASK];
	const int rank = m.t->shape.rank;
	om_strides(&m.t->shape, stride);
	for (int d = 0; d < rank; d++)
		m.step[4 - rank + d] = m.t->shape.dim[d] == 1 ? 0 : stride[d];
	m.length = m.t->shape.dim[rank - 1];
	return m;
}

struct knobs {
	double scale, cap;
	int64_t mode;
	om_dtype as;             /* the type in which softmax is computed */
	int64_t left, right;     /* window of a query; negative: unbounded */
	bool causal;
};

/* Keys that are no padding. */
static int64_t
valid_keys(const om_op_context *c, const struct om_attention *a, int64_t b)
{
	const int64_t length = om_has_in(c, LENGTHS) ? ((const int64_t *)c->in[LENGTHS].data)[b] : a->total;

	return length < 0 ? 0 : length < a->total ? length : a->total;
}

/* Keys that query `i` of batch `b` may attend to: [*low, *high). */
static void
window_of(const om_op_context *c, const struct om_attention *a, const struct knobs *o, int64_t b, int64_t i, int64_t *low, int64_t *high)
{
	const bool lengths = om_has_in(c, LENGTHS);
	const int64_t valid = valid_keys(c, a, b);
	const int64_t at = i + (lengths ? valid - a->qlen : a->past);
	const int64_t left = o->left, right = o->right;

	*low = left >= 0 && at > left ? at - left : 0;
	*high = valid;
	if (o->causal && at + 1 < *high)
		*high = at + 1;
	if (right >= 0 && right < *high && at + right + 1 < *high)
		*high = at + right + 1;
	*high = *high < 0 ? 0 : *high;
	*low = *low < *high ? *low : *high;
}

/* The terms added to the scores of a query. */
static void
biases_of(const struct mask *m, int64_t at, int64_t low, int64_t high, int64_t total, double *bias)
{
	const size_t size = m->t ? om_dtype_bits(m->t->type) / 8 : 0;

	for (int64_t k = 0; k < total; k++) {
		const int64_t i = at + k * m->step[3];
		if (k < low || k >= high || (m->t && k >= m->length && m->length != 1))
			bias[k] = -INFINITY;
		else if (!m->t)
			bias[k] = 0;
		else if (m->t->type == OM_BOOL)
			bias[k] = ((const uint8_t *)m->t->data)[i] ? 0 : -INFINITY;
		else
			om_number(m->t->type, (const char *)m->t->data + (size_t)i * size, &bias[k]);
	}
}

/* ---- Attention: the kernel. ---- */

static bool
is_real(om_dtype t)
{
	return t == OM_FLOAT32 || t == OM_FLOAT64 || om_is_half(t);
}

OM_INLINE void
widen_as(om_dtype t, const void *from, int64_t at, int64_t n, double *to)
{
	for (int64_t k = 0; k < n; k++)
		to[k] = om_get(t, from, at + k);
}

OM_INLINE void
narrow_as(om_dtype t, const double *from, int64_t n, void *to, int64_t at)
{
	for (int64_t k = 0; k < n; k++)
		om_put(t, to, at + k, from[k]);
}

static void
read_row(const om_tensor *t, int64_t at, int64_t n, double *to)
{
	EACH_FLOAT(t->type, widen_as(T, t->data, at, n, to), break)
}

static void
write_row(const double *from, int64_t n, const om_tensor *t, int64_t at)
{
	EACH_FLOAT(t->type, narrow_as(T, from, n, t->data, at), break)
}

/* The offset of row `i` of head `h`, in elements. */
static int64_t
row_at(const struct om_attention *a, int64_t b, int64_t heads, int64_t h, int64_t len, int64_t i, int64_t size)
{
	return a->flat ? ((b * len + i) * heads + h) * size : ((b * heads + h) * len + i) * size;
}

static void
copy_row(om_tensor *to, int64_t at, const om_tensor *from, int64_t from_at, int64_t n)
{
	const size_t size = om_dtype_bits(from->type) / 8;

	memcpy((char *)to->data + (size_t)at * size, (const char *)from->data + (size_t)from_at * size,
		(size_t)n * size);
}

/* Where rows have no elements, nothing bounds the number of heads. */
static bool
is_nothing(const om_op_context *c, uint32_t out)
{
	return !om_has_out(c, out) || om_shape_count(&c->out[out].shape) == 0;
}

static void
make_caches(const om_op_context *c, const struct om_attention *a)
{
	for (uint32_t k = K; k <= V; k++) {
		const int64_t size = k == K ? a->size : a->vsize;
		if (is_nothing(c, k))
			continue;
		for (int64_t bh = 0; bh < a->batch * a->heads; bh++) {
			const int64_t b = bh / a->heads, h = bh % a->heads;
			if (a->past)
				copy_row(&c->out[k], bh * a->total * size, &c->in[k + PAST_K - K],
					bh * a->past * size, a->past * size);
			for (int64_t i = 0; i < a->len; i++)
				copy_row(&c->out[k], (bh * a->total + a->past + i) * size, &c->in[k],
					row_at(a, b, a->heads, h, a->len, i, size), size);
		}
	}
}

/* Keys or values of a head, cached ones first.  Padding may be anything, as NaN, and counts as 0, unless scores of it are
 * requested. */
static void
gather_head(const om_op_context *c, const struct om_attention *a, uint32_t k, int64_t b, int64_t h, double *to)
{
	const int64_t size = k == K ? a->size : a->vsize;
	const om_tensor *past = &c->in[k + PAST_K - K], *new = &c->in[k];
	const int64_t rows = om_has_out(c, SCORES) ? a->total : valid_keys(c, a, b);

	memset(to + rows * size, 0, (size_t)((a->total - rows) * size) * sizeof *to);
	for (int64_t i = 0; i < rows; i++) {
		const bool old = i < a->past;
		const om_tensor *t = old ? past : new;
		const int64_t at = old ? ((b * a->heads + h) * a->past + i) * size
			: row_at(a, b, a->heads, h, a->len, i - a->past, size);
		read_row(t, at, size, to + i * size);
	}
}

struct pieces {
	double *key, *value, *query, *score, *bias, *sum;
};

static uint64_t
pieces_of(const struct om_attention *a, char *base, struct pieces *p)
{
	const int64_t count[] = {a->total * a->size, a->total * a->vsize, a->size, a->total, a->total, a->vsize};
	double **piece[] = {&p->key, &p->value, &p->query, &p->score, &p->bias, &p->sum};
	uint64_t at = 0;

	for (int k = 0; k < 6; k++) {
		if (base)
			*piece[k] = (double *)(base + at);
		at = om_size_sum(at, om_piece_size((uint64_t)count[k] * sizeof(double)));
	}
	return at;
}

static uint64_t
attention_scratch(const om_op_context *c)
{
	const struct om_attention a = om_attention_sizes(c);
	struct pieces none;

	return pieces_of(&a, NULL, &none);
}

static double
rounded_to(om_dtype t, double x)
{
	switch (t) {
	case OM_FLOAT16: return om_half_to_float(om_float_to_half((float)x));
	case OM_BFLOAT16: return om_bfloat_to_float(om_float_to_bfloat((float)x));
	case OM_FLOAT32: return (float)x;
	default: return x;
	}
}

/* Softmax of the scores; all weights are zero if no key may be attended to. */
static void
weigh(double *score, const double *bias, int64_t n, om_dtype as)
{
	double high = -INFINITY, least = -INFINITY, sum = 0;

	for (int64_t k = 0; k < n; k++) {
		least = bias[k] > least || isnan(bias[k]) ? bias[k] : least;
		score[k] = rounded_to(as, score[k]);
		high = score[k] > high || isnan(score[k]) ? score[k] : high;
	}
	for (int64_t k = 0; k < n; k++)
		sum += score[k] = least == -INFINITY || score[k] == -INFINITY ? 0 : exp(score[k] - high);
	for (int64_t k = 0; k < n && sum != 0; k++)
		score[k] = rounded_to(as, score[k] / sum);
}

static void
put_scores(const om_op_context *c, const double *score, int64_t row, int64_t n)
{
	if (om_has_out(c, SCORES))
		write_row(score, n, &c->out[SCORES], row * n);
}

/* `row` counts queries over all heads; the result is stored at offset `to`. */
static void
attend(const om_op_context *c, const struct om_attention *a, const struct pieces *p, const struct knobs *o, int64_t row,
	int64_t to)
{
	for (int64_t k = 0; k < a->total; k++) {
		double dot = 0;
		for (int64_t e = 0; e < a->size; e++)
			dot += p->query[e] * p->key[k * a->size + e];
		p->score[k] = dot * o->scale;
	}
	if (o->mode == 0)
		put_scores(c, p->score, row, a->total);
	for (int64_t k = 0; k < a->total && o->cap != 0; k++)
		p->score[k] = o->cap * tanh(p->score[k] / o->cap);
	if (o->mode == 1)
		put_scores(c, p->score, row, a->total);
	for (int64_t k = 0; k < a->total; k++)
		p->score[k] += p->bias[k];
	if (o->mode == 2)
		put_scores(c, p->score, row, a->total);
	weigh(p->score, p->bias, a->total, o->as);
	if (o->mode == 3)
		put_scores(c, p->score, row, a->total);
	memset(p->sum, 0, (size_t)a->vsize * sizeof *p->sum);
	for (int64_t k = 0; k < a->total; k++)
		for (int64_t e = 0; e < a->vsize && p->score[k] != 0; e++)
			p->sum[e] += p->score[k] * p->value[k * a->vsize + e];
	write_row(p->sum, a->vsize, &c->out[Y], to);
}

static om_status
attention_check(const om_op_context *c)
{
	double any;

	for (uint32_t k = Q; k <= PAST_V; k++)
		if (om_has_in(c, k) && (k == MASK ? !om_number(c->in[k].type, &(om_string){0}, &any) : !is_real(c->in[k].type)))
			return om_no_kernel(c, c->in[k].type);
	if (om_has_in(c, LENGTHS) && c->in[LENGTHS].type != OM_INT64)
		return om_wrong(c, "nonpad_kv_seqlen must be int64");
	const int64_t mode = om_attr_int(c->op, "qk_matmul_output_mode");
	if (mode < 0 || mode > 3)
		return om_op_fail(c->session, OM_INVALID, c->op,
			"qk_matmul_output_mode is %lld, expected 0 to 3", (long long)mode);
	return OM_OK;
}

struct prepared {
	struct om_attention a;
	struct knobs o;
};

static om_status
attention_prepare(om_op_context *c, void **state)
{
	const int64_t as = om_attr_int(c->op, "softmax_precision");
	struct prepared *s = *state;

	s->a = om_attention_sizes(c);
	s->o = (struct knobs){.cap = om_attr_float(c->op, "softcap"), .as = as ? (om_dtype)as : OM_FLOAT64,
		.mode = om_attr_int(c->op, "qk_matmul_output_mode"),
		.scale = om_attr_has(c->op, "scale") ? om_attr_float(c->op, "scale") : 1 / sqrt((double)s->a.size),
		.left = om_attr_int(c->op, "left_window_size"), .right = om_attr_int(c->op, "right_window_size"),
		.causal = om_attr_int(c->op, "is_causal") != 0};
	return attention_check(c);
}

static om_status
attention_cpu(om_op_context *c)
{
	const struct prepared *s = c->state;
	const struct om_attention a = s->a;
	const struct knobs o = s->o;
	const struct mask m = mask_of(c);
	const int64_t group = a.heads ? a.qheads / a.heads : 0;
	struct pieces p = {0};

	pieces_of(&a, c->scratch, &p);
	make_caches(c, &a);
	if (is_nothing(c, Y) && is_nothing(c, SCORES))
		return OM_OK;
	for (int64_t bh = 0; bh < a.batch * a.qheads; bh++) {
		const int64_t b = bh / a.qheads, h = bh % a.qheads;
		if (h % group == 0) {
			gather_head(c, &a, K, b, h / group, p.key);
			gather_head(c, &a, V, b, h / group, p.value);
		}
		for (int64_t i = 0; i < a.qlen; i++) {
			const int64_t at = row_at(&a, b, a.qheads, h, a.qlen, i, a.size);
			int64_t low, high;
			read_row(&c->in[Q], at, a.size, p.query);
			window_of(c, &a, &o, b, i, &low, &high);
			biases_of(&m, b * m.step[0] + h * m.step[1] + i * m.step[2], low, high, a.total, p.bias);
			attend(c, &a, &p, &o, bh * a.qlen + i, row_at(&a, b, a.qheads, h, a.qlen, i, a.vsize));
		}
	}
	return OM_OK;
}

/* Each query is read before its result is written, to the same position. */
static bool
attention_reuse(const om_op_context *c, uint32_t out, uint32_t in)
{
	return out == Y && in == Q && om_shape_equal(&c->in[Q].shape, &c->out[Y].shape) && om_is_sole_use(c, Q);
}

static void
attention_cost(const om_op_context *c, om_cost *cost)
{
	const struct om_attention a = om_attention_sizes(c);

	cost->flops = 2.0 * (double)a.batch * (double)a.qheads * (double)a.qlen * (double)a.total
		* (double)(a.size + a.vsize + 4);
}

/* ---- RotaryEmbedding. ---- */

struct om_rotary
om_rotary_sizes(const om_op_context *c)
{
	const om_shape *x = &c->in[X].shape;
	struct om_rotary r = {.batch = x->dim[0], .flat = x->rank == 3,
		.interleaved = om_attr_int(c->op, "interleaved") != 0};

	r.heads = r.flat ? om_attr_int(c->op, "num_heads") : x->dim[1];
	r.len = x->dim[r.flat ? 1 : 2];
	r.size = r.flat ? share(x->dim[2], r.heads) : x->dim[3];
	r.turned = om_attr_int(c->op, "rotary_embedding_dim");
	if (r.turned == 0)
		r.turned = r.size;
	r.step = c->in[COS].shape.rank > 0 ? c->in[COS].shape.dim[c->in[COS].shape.rank - 1] : -1;
	return r;
}

static om_status
rotary_infer(om_op_context *c)
{
	const om_shape *x = &c->in[X].shape;

	OM_TRY(om_infer_same(c));
	if (x->rank >= 0 && x->rank != 3 && x->rank != 4)
		return om_wrong(c, "the input must have rank 3 or 4");
	if (x->rank == 3 && om_attr_int(c->op, "num_heads") <= 0)
		return om_wrong(c, "num_heads is required for an input of rank 3");
	if (x->rank == 3 && x->dim[2] >= 0 && x->dim[2] % om_attr_int(c->op, "num_heads"))
		return om_wrong(c, "num_heads must divide the last dim of the input");
	if (!om_shape_is_known(x))
		return OM_OK;
	const struct om_rotary r = om_rotary_sizes(c);
	if (r.turned < 0 || r.turned > r.size || r.turned % 2)
		return om_wrong(c, "rotary_embedding_dim must be even and at most the head size");
	for (uint32_t k = COS; k <= SIN; k++) {
		const om_shape *s = &c->in[k].shape;
		const int rank = om_has_in(c, PLACES) ? 2 : 3;
		if (s->rank >= 0 && (s->rank != rank || (s->dim[rank - 1] >= 0 && s->dim[rank - 1] < r.turned / 2)))
			return om_wrong(c, "the shapes of cos_cache and sin_cache do not match the input");
		if (s->rank == 3 && (!om_dims_agree(s->dim[0], r.batch) || !om_dims_agree(s->dim[1], r.len)))
			return om_wrong(c, "the shapes of cos_cache and sin_cache do not match the input");
	}
	if (om_has_in(c, PLACES) && !has_dims(&c->in[PLACES], 2, (int64_t[]){r.batch, r.len}))
		return om_wrong(c, "position_ids must have one element for each position of the sequences");
	return OM_OK;
}

/* Both elements of a pair are read before either is written. */
OM_INLINE void
turn_as(om_dtype t, const om_op_context *c, const struct om_rotary *r, int64_t at, int64_t cache)
{
	const int64_t half = r->turned / 2;
	const bool interleaved = r->interleaved;

	for (int64_t k = 0; k < half; k++) {
		const int64_t i = at + (interleaved ? 2 * k : k), j = interleaved ? i + 1 : i + half;
		const double x = om_get(t, c->in[X].data, i), y = om_get(t, c->in[X].data, j);
		const double cosine = om_get(t, c->in[COS].data, cache + k), sine = om_get(t, c->in[SIN].data, cache + k);
		om_put(t, c->out[0].data, i, cosine * x - sine * y);
		om_put(t, c->out[0].data, j, sine * x + cosine * y);
	}
	for (int64_t k = r->turned; k < r->size; k++)
		om_put(t, c->out[0].data, at + k, om_get(t, c->in[X].data, at + k));
}

static void
turn_row(const om_op_context *c, const struct om_rotary *r, int64_t at, int64_t cache)
{
	EACH_FLOAT(c->in[X].type, turn_as(T, c, r, at, cache), break)
}

static om_status
rotary_prepare(om_op_context *c, void **state)
{
	*(struct om_rotary *)*state = om_rotary_sizes(c);
	if (!is_real(c->in[X].type))
		return om_no_kernel(c, c->in[X].type);
	if (c->in[COS].type != c->in[X].type || c->in[SIN].type != c->in[X].type)
		return om_wrong(c, "cos_cache and sin_cache must have the element type of the input");
	if (!om_shape_equal(&c->in[COS].shape, &c->in[SIN].shape))
		return om_wrong(c, "cos_cache and sin_cache differ in shape");
	return OM_OK;
}

static om_status
rotary_cpu(om_op_context *c)
{
	const struct om_rotary r = *(const struct om_rotary *)c->state;

	for (int64_t b = 0; b < r.batch; b++)
		for (int64_t i = 0; i < r.len; i++) {
			int64_t place = b * r.len + i;
			if (om_has_in(c, PLACES))
				OM_TRY(om_index_read(c, PLACES, place, c->in[COS].shape.dim[0], &place));
			for (int64_t h = 0; h < r.heads; h++)
				turn_row(c, &r, r.flat ? ((b * r.len + i) * r.heads + h) * r.size
					: ((b * r.heads + h) * r.len + i) * r.size, place * r.step);
		}
	return OM_OK;
}

static bool
first_reuse(const om_op_context *c, uint32_t out, uint32_t in)
{
	return out == 0 && in == 0 && om_is_sole_use(c, 0);
}

/* ---- TensorScatter: new entries of a cache. ---- */

static om_status
cache_infer(om_op_context *c)
{
	const om_shape *cache = &c->in[0].shape, *update = &c->in[1].shape;
	int axis;

	OM_TRY(om_infer_same(c));
	if (!om_attr_is(c->op, "mode", "linear") && !om_attr_is(c->op, "mode", "circular"))
		return om_op_fail(c->session, OM_INVALID, c->op, "mode must be linear or circular");
	if (cache->rank < 0)
		return OM_OK;
	OM_TRY(om_attr_axis(c, "axis", cache->rank, &axis));
	if (axis == 0)
		return om_wrong(c, "axis must not be the batch axis");
	if (update->rank < 0)
		return OM_OK;
	if (update->rank != cache->rank)
		return om_wrong(c, "the cache and the update differ in rank");
	for (int d = 0; d < cache->rank; d++)
		if (d == axis ? cache->dim[d] >= 0 && update->dim[d] > cache->dim[d]
			: !om_dims_agree(cache->dim[d], update->dim[d]))
			return om_wrong(c, "the shape of the update does not match the cache");
	return OM_OK;
}

struct cache {
	bool circular;
	int axis;
	size_t size;             /* of an element */
};

static om_status
cache_prepare(om_op_context *c, void **state)
{
	const om_shape *s = &c->in[0].shape;
	struct cache *k = *state;

	k->circular = om_attr_is(c->op, "mode", "circular");
	k->size = om_moved_bytes(c->in[0].type);
	OM_TRY(om_attr_axis(c, "axis", s->rank, &k->axis));
	if (om_has_in(c, 2) && (c->in[2].type != OM_INT64 || om_shape_count(&c->in[2].shape) != s->dim[0]))
		return om_wrong(c, "write_indices must be int64, with one element for each batch entry");
	return OM_OK;
}

static om_status
cache_bytes(om_op_context *c)
{
	const struct cache *k = c->state;
	const om_shape *s = &c->in[0].shape;
	const bool circular = k->circular;
	const size_t size = k->size;
	const int axis = k->axis;

	const int64_t max = s->dim[axis], len = c->in[1].shape.dim[axis];
	const int64_t outer = om_shape_span(s, 0, axis), group = om_shape_span(s, 1, axis);
	const size_t line = (size_t)om_shape_span(s, axis + 1, s->rank) * size;
	if (c->out[0].data != c->in[0].data)
		memcpy(c->out[0].data, c->in[0].data, (size_t)(outer * max) * line);
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < len; i++) {
			int64_t at = om_has_in(c, 2) ? ((const int64_t *)c->in[2].data)[o / group] : 0;
			if (at < 0 || __builtin_add_overflow(at, i, &at) || (!circular && at >= max))
				return om_op_fail(c->session, OM_RUN, c->op,
					"the update is out of the bounds of the cache");
			memcpy((char *)c->out[0].data + (size_t)(o * max + at % max) * line,
				(const char *)c->in[1].data + (size_t)(o * len + i) * line, line);
		}
	return OM_OK;
}

static om_status
cache_cpu(om_op_context *c)
{
	return om_run_unpacked(c, cache_bytes);
}

/* ---- The table. ---- */

static const om_attr_spec attention_attrs[] = {
	{"is_causal", OM_ATTR_INT},
	{"kv_num_heads", OM_ATTR_INT},
	{"left_window_size", OM_ATTR_INT, .i = -1},
	{"q_num_heads", OM_ATTR_INT},
	{"qk_matmul_output_mode", OM_ATTR_INT},
	{"right_window_size", OM_ATTR_INT, .i = -1},
	{"scale", OM_ATTR_FLOAT},
	{"softcap", OM_ATTR_FLOAT},
	{"softmax_precision", OM_ATTR_INT},
	{0}
};

static const om_attr_spec rotary_attrs[] = {
	{"interleaved", OM_ATTR_INT},
	{"num_heads", OM_ATTR_INT},
	{"rotary_embedding_dim", OM_ATTR_INT},
	{0}
};

static const om_attr_spec cache_attrs[] = {
	{"axis", OM_ATTR_INT, .i = -2},
	{"mode", OM_ATTR_STRING, .s = "linear"},
	{0}
};

#define ATTENTION                                                              \
	.name = "Attention", .brief = "scaled dot-product attention, multi-head", .min_in = 3, \
	.min_out = 1, .max_out = 4, .attrs = attention_attrs, .infer = attention_infer, .slice = om_slice_attention, .inplace = attention_reuse, \
	.cpu = attention_cpu, .scratch = attention_scratch, .cost = attention_cost, \
	.input_types = {OF_FLOATS, LIKE(0), OF_FLOATS, OF_NUMBERS | OF(BOOL), LIKE(0), LIKE(2), OF(INT64)}

const om_opdef om_ops_attention[] = {
	{ATTENTION, .since = 23, .until = 23, .max_in = 6},
	{ATTENTION, .since = 24, .max_in = 7},
	{.name = "RotaryEmbedding", .brief = "rotary position embedding", .since = 23,
	 .min_in = 3, .max_in = 4, .min_out = 1, .max_out = 1, .attrs = rotary_attrs,
	 .infer = rotary_infer, .slice = om_slice_rotary, .inplace = first_reuse, .cpu = rotary_cpu,
	 .input_types = {OF_FLOATS, LIKE(0), LIKE(0), OF(INT64)}},
	{.name = "TensorScatter", .brief = "key/value cache with new entries written along an axis", .since = 24,
	 .min_in = 2, .max_in = 3, .min_out = 1, .max_out = 1, .attrs = cache_attrs,
	 .infer = cache_infer, .slice = om_slice_tensor_scatter, .inplace = first_reuse, .cpu = cache_cpu,
	 .input_types = {OF_COMMON | OF_FLOAT8S | OF(FLOAT4E2M1) | OF(FLOAT8E8M0) | OF(INT4) | OF(UINT4), LIKE(0), OF(INT64)}},
	{0}
};

const om_kernel om_kernels_attention[] = {
	{.name = "Attention", .state_bytes = sizeof(struct prepared), .prepare = attention_prepare,
	 .workspace = attention_scratch, .run = attention_cpu},
	{.name = "RotaryEmbedding", .state_bytes = sizeof(struct om_rotary), .prepare = rotary_prepare, .run = rotary_cpu},
	{.name = "TensorScatter", .state_bytes = sizeof(struct cache), .prepare = cache_prepare, .run = cache_cpu},
	{0}
};
