/* GroupQueryAttention of com.microsoft: attention of a decoder over a cache of keys and values,
 * with one length per sequence of the batch.
 *
 * For each key head the cache is updated first: the past rows, the new keys rotated by their
 * positions, then zeros.  Then its queries are processed one by one: scores, weights, and the
 * weighted sum of values.  A present cache may be computed over the past one: its rows stay in
 * place. */
#include <config.h>

#include <math.h>

#include "opdef/columns.h"
#include "base/arena_internal.h"
#include "base/shape.h"
#include "ir/query.h"
#include "ops/family.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"

enum { QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE, LENGTHS, TOTAL, COSINES, SINES, PLACES, BIAS, SINK, FIRST_OTHER };
enum { Y, NEW_KEY, NEW_VALUE, SCORES };

struct group {
	bool packed;              /* queries, keys and values are packed in one input */
	int64_t batch, queries, heads, kv, size, past, total;
	bool rotates, interleaved, smooth;
	double scale, cap;
	int64_t window;           /* attention window in keys; 0 or less: unlimited */
	bool is_open;             /* the total length is known only at run time, from neither input nor output */
};

/* Dims that are not known are OM_DIM_UNKNOWN. */
static om_status
read_group(const om_op_context *c, struct group *g)
{
	const int64_t width = om_in_dim(c, QUERY, 2);
	int64_t *total;
	size_t n;

	*g = (struct group){.packed = !om_has_in(c, KEY), .batch = om_in_dim(c, QUERY, 0), .queries = om_in_dim(c, QUERY, 1),
		.heads = om_attr_int(c->op, "num_heads"), .kv = om_attr_int(c->op, "kv_num_heads"),
		.size = OM_DIM_UNKNOWN, .past = om_has_in(c, PAST_KEY) ? om_in_dim(c, PAST_KEY, 2) : 0,
		.total = OM_DIM_UNKNOWN, .rotates = om_attr_int(c->op, "do_rotary") != 0,
		.interleaved = om_attr_int(c->op, "rotary_interleaved") != 0,
		.smooth = om_attr_int(c->op, "smooth_softmax") == 1, .scale = om_attr_float(c->op, "scale"),
		.cap = om_attr_float(c->op, "softcap"), .window = om_attr_int(c->op, "local_window_size")};
	if (!om_has_in(c, LENGTHS) || !om_has_in(c, TOTAL))
		return om_wrong(c, "seqlens_k and total_sequence_length are required");
	if (g->heads < 1 || g->heads > INT32_MAX || g->kv < 1 || g->heads % g->kv)
		return om_wrong(c, "the number of key/value heads must divide the number of query heads");
	if (om_has_in(c, KEY) != om_has_in(c, VALUE) || om_has_in(c, PAST_KEY) != om_has_in(c, PAST_VALUE))
		return om_wrong(c, "key and value must be given together");
	if (c->in[QUERY].shape.rank >= 0 && c->in[QUERY].shape.rank != 3)
		return om_wrong(c, "query must have rank 3");
	const int64_t all = g->packed ? g->heads + 2 * g->kv : g->heads;
	if (width >= 0 && width % all)
		return om_wrong(c, "num_heads must divide the hidden size of query");
	if (width >= 0)
		g->size = width / all;
	if (om_in_ints(c, TOTAL, &total, &n) && n == 1 && g->past >= 0)
		g->total = total[0] > g->past ? total[0] : g->past;
	return OM_OK;
}

static om_status
group_infer(om_op_context *c)
{
	const om_shape *q = &c->in[QUERY].shape;
	struct group g;

	OM_TRY(read_group(c, &g));
	c->out[Y].type = c->in[QUERY].type;
	c->out[Y].shape = om_shape_unknown();
	if (q->rank == 3) {
		c->out[Y].shape = *q;
		if (g.packed) {
			c->out[Y].shape.dim[2] = g.size < 0 ? OM_DIM_UNKNOWN : g.heads * g.size;
			c->out[Y].shape.sym[2] = NULL;
		}
	}
	for (uint32_t k = NEW_KEY; k <= NEW_VALUE; k++) {
		if (!om_has_out(c, k))
			continue;
		c->out[k].type = c->in[QUERY].type;
		c->out[k].shape = om_shape_of(4, (const int64_t[]){g.batch, g.kv, g.total, g.size});
		if (g.batch < 0 && q->rank == 3)
			c->out[k].shape.sym[0] = q->sym[0];
	}
	if (om_has_out(c, SCORES))
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "no kernel for the output of the scores");
	for (uint32_t k = FIRST_OTHER; k < c->op->nin; k++)
		if (om_has_in(c, k))
			return om_op_fail(c->session, OM_UNSUPPORTED, c->op,
				"no kernel for a quantized cache or for normalized heads");
	return OM_OK;
}

/* ---- Validation of the inputs. ---- */

static bool
is_real(om_dtype t)
{
	return t == OM_FLOAT32 || om_is_half(t);
}

static bool
has_dims(const om_op_context *c, uint32_t k, int rank, const int64_t *want)
{
	if (c->in[k].shape.rank != rank)
		return false;
	for (int d = 0; d < rank; d++)
		if (want[d] >= 0 && c->in[k].shape.dim[d] != want[d])
			return false;
	return true;
}

static om_status
check_types(const om_op_context *c)
{
	static const uint32_t real[] = {QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE, COSINES, SINES, BIAS, SINK};

	for (size_t k = 0; k < sizeof real / sizeof real[0]; k++)
		if (om_has_in(c, real[k]) && (!is_real(c->in[real[k]].type) || c->in[real[k]].type != c->in[QUERY].type))
			return om_no_kernel(c, c->in[real[k]].type);
	if (c->in[LENGTHS].type != OM_INT32 || c->in[TOTAL].type != OM_INT32)
		return om_wrong(c, "seqlens_k and total_sequence_length must be int32");
	if (om_has_in(c, PLACES) && c->in[PLACES].type != OM_INT64)
		return om_wrong(c, "position_ids must be int64");
	if (!om_attr_int(c->op, "causal") || om_attr_int(c->op, "sliding_window_cache"))
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op,
			"no kernel for a sliding cache or for attention to later keys");
	return OM_OK;
}

static om_status
check_shapes(const om_op_context *c, const struct group *g)
{
	const int64_t kv[] = {g->batch, g->queries, g->kv * g->size}, past[] = {g->batch, g->kv, g->past, g->size};

	for (uint32_t k = KEY; k <= VALUE; k++)
		if (om_has_in(c, k) && !has_dims(c, k, 3, kv))
			return om_wrong(c, "the shapes of key and value do not match query");
	for (uint32_t k = PAST_KEY; k <= PAST_VALUE; k++)
		if (om_has_in(c, k) && !has_dims(c, k, 4, past))
			return om_wrong(c, "the shapes of the caches do not match query");
	if (om_shape_count(&c->in[LENGTHS].shape) != g->batch)
		return om_wrong(c, "seqlens_k must have one element for each batch entry");
	if (om_has_in(c, SINK) && om_shape_count(&c->in[SINK].shape) != g->heads)
		return om_wrong(c, "head_sink must have one element for each head");
	if (om_has_in(c, BIAS) && (c->in[BIAS].shape.rank != 4 || c->in[BIAS].shape.dim[2] != g->queries
	    || c->in[BIAS].shape.dim[3] < g->total || (c->in[BIAS].shape.dim[0] != 1 && c->in[BIAS].shape.dim[0] != g->batch)
	    || (c->in[BIAS].shape.dim[1] != 1 && c->in[BIAS].shape.dim[1] != g->heads)))
		return om_wrong(c, "attention_bias cannot be broadcast to the scores");
	if (om_has_in(c, PLACES) && !has_dims(c, PLACES, 2, (const int64_t[]){g->batch, g->queries}))
		return om_wrong(c, "position_ids must have one element for each query position");
	if (g->rotates && (!om_has_in(c, COSINES) || !om_has_in(c, SINES)
	    || c->in[COSINES].shape.rank != 2 || !om_shape_equal(&c->in[COSINES].shape, &c->in[SINES].shape)
	    || 2 * c->in[COSINES].shape.dim[1] > g->size))
		return om_wrong(c, "cos_cache and sin_cache are omitted or do not match the head size");
	return OM_OK;
}

/* ---- Scratch layout. ---- */

struct pieces {
	double *key, *value, *query, *score, *sum;
};

static uint64_t
pieces_of(const struct group *g, char *base, struct pieces *p)
{
	const int64_t count[] = {g->total * g->size, g->total * g->size, g->size, g->total, g->size};
	double **piece[] = {&p->key, &p->value, &p->query, &p->score, &p->sum};
	uint64_t at = 0;

	for (int k = 0; k < 5; k++) {
		if (base)
			*piece[k] = (double *)(void *)(base + at);
		at = om_size_sum(at, om_piece_size((uint64_t)(count[k] > 0 ? count[k] : 1) * sizeof(double)));
	}
	return at;
}

static om_status
group_prepare(om_op_context *c, void **state)
{
	struct group *g = *state;

	OM_TRY(check_types(c));
	OM_TRY(read_group(c, g));
	if (om_shape_count(&c->in[TOTAL].shape) != 1)
		return om_wrong(c, "total_sequence_length must have one element");
	/* The total may be known only at run time; then it is taken from the output. */
	if (g->total < 0 && om_has_out(c, NEW_KEY))
		g->total = c->out[NEW_KEY].shape.dim[2];
	g->is_open = g->total < 0;
	return OM_OK;
}

static uint64_t
group_scratch(const om_op_context *c)
{
	const struct group *g = c->state;
	struct pieces none;

	return g->is_open ? 0 : pieces_of(g, NULL, &none);
}

/* ---- Rows of heads. ---- */

static void
read_row(const om_tensor *t, int64_t at, int64_t n, double *to)
{
	for (int64_t k = 0; k < n; k++)
		to[k] = om_get(t->type, t->data, at + k);
}

/* Row `s` of head `h` of operand `k`: 0 queries, 1 keys, 2 values. */
static void
read_new(const om_op_context *c, const struct group *g, int k, int64_t b, int64_t s, int64_t h, double *to)
{
	const int64_t heads = k == 0 ? g->heads : g->kv, all = g->packed ? g->heads + 2 * g->kv : heads;
	const int64_t first = !g->packed || k == 0 ? 0 : k == 1 ? g->heads : g->heads + g->kv;
	const om_tensor *t = &c->in[g->packed ? QUERY : QUERY + k];

	read_row(t, ((b * g->queries + s) * all + first + h) * g->size, g->size, to);
}

/* Rotate pairs of elements by the angle of a position. */
static om_status
rotate(const om_op_context *c, const struct group *g, int64_t place, double *x)
{
	const bool interleaved = g->interleaved;
	const int64_t half = om_in_dim(c, COSINES, 1);

	if (!g->rotates)
		return OM_OK;
	if (place < 0 || place >= om_in_dim(c, COSINES, 0))
		return om_op_fail(c->session, OM_RUN, c->op,
			"position %lld is out of range for cos_cache", (long long)place);
	for (int64_t k = 0; k < half; k++) {
		double *a = &x[interleaved ? 2 * k : k], *b = &x[interleaved ? 2 * k + 1 : k + half];
		const double cosine = om_get(c->in[COSINES].type, c->in[COSINES].data, place * half + k);
		const double sine = om_get(c->in[SINES].type, c->in[SINES].data, place * half + k), first = *a;
		*a = cosine * first - sine * *b;
		*b = sine * first + cosine * *b;
	}
	return OM_OK;
}

static int64_t
place_of(const om_op_context *c, const struct group *g, int64_t b, int64_t s, int64_t before)
{
	return om_has_in(c, PLACES) ? ((const int64_t *)c->in[PLACES].data)[b * g->queries + s] : before + s;
}

static double
rounded_to(om_dtype t, double x)
{
	char room[sizeof(double)] = {0};

	om_put(t, room, 0, x);
	return om_get(t, room, 0);
}

/* Fill the cache of a head: `before` past rows, the new rows, then zeros. */
static om_status
update_cache(const om_op_context *c, const struct group *g, int64_t b, int64_t h, int64_t before, const struct pieces *p)
{
	const int64_t base = (b * g->kv + h) * g->total * g->size, from = (b * g->kv + h) * g->past * g->size;
	const om_dtype t = c->in[QUERY].type;

	for (int k = 1; k <= 2; k++) {
		double *row = k == 1 ? p->key : p->value;
		const uint32_t past = k == 1 ? PAST_KEY : PAST_VALUE;
		if (before)
			read_row(&c->in[past], from, before * g->size, row);
		for (int64_t s = 0; s < g->queries && before + s < g->total; s++) {
			double *x = row + (before + s) * g->size;
			read_new(c, g, k, b, s, h, x);
			if (k == 1)
				OM_TRY(rotate(c, g, place_of(c, g, b, s, before), x));
			for (int64_t e = 0; e < g->size; e++)
				x[e] = rounded_to(t, x[e]);
		}
		const int64_t end = before + g->queries < g->total ? before + g->queries : g->total;
		memset(row + end * g->size, 0, (size_t)((g->total - end) * g->size) * sizeof *row);
		for (int64_t e = 0; e < g->total * g->size && om_has_out(c, NEW_KEY + (uint32_t)k - 1); e++)
			om_put(t, c->out[NEW_KEY + k - 1].data, base + e, row[e]);
	}
	return OM_OK;
}

/* ---- Attention. ---- */

/* Softmax of the scores.  A sink takes part in the sum but has no value. */
static void
weigh(double *score, int64_t n, bool has_sink, double sink)
{
	double high = has_sink ? sink : -INFINITY, sum;

	for (int64_t k = 0; k < n; k++)
		high = score[k] > high ? score[k] : high;
	sum = has_sink ? exp(sink - high) : 0;
	for (int64_t k = 0; k < n; k++)
		sum += score[k] = exp(score[k] - high);
	for (int64_t k = 0; k < n; k++)
		score[k] /= sum;
}

/* The output for query `s` of head `h`, over keys [low, high). */
static void
attend(const om_op_context *c, const struct group *g, int64_t b, int64_t h, int64_t s, int64_t low, int64_t high,
	const struct pieces *p)
{
	const double scale = g->scale, cap = g->cap;
	const om_tensor *bias = om_has_in(c, BIAS) ? &c->in[BIAS] : NULL;
	const int64_t row = !bias ? 0 : ((bias->shape.dim[0] == 1 ? 0 : b) * bias->shape.dim[1]
		+ (bias->shape.dim[1] == 1 ? 0 : h)) * g->queries + s;
	const bool has_sink = om_has_in(c, SINK) || g->smooth;

	for (int64_t k = low; k < high; k++) {
		double dot = 0;
		for (int64_t e = 0; e < g->size; e++)
			dot += p->query[e] * p->key[k * g->size + e];
		dot *= scale != 0 ? scale : 1 / sqrt((double)g->size);
		dot = cap > 0 ? cap * tanh(dot / cap) : dot;
		p->score[k] = dot + (bias ? om_get(bias->type, bias->data, row * bias->shape.dim[3] + k) : 0);
	}
	weigh(p->score + low, high - low, has_sink,
		om_has_in(c, SINK) ? om_get(c->in[SINK].type, c->in[SINK].data, h) : 0);
	memset(p->sum, 0, (size_t)g->size * sizeof *p->sum);
	for (int64_t k = low; k < high; k++)
		for (int64_t e = 0; e < g->size; e++)
			p->sum[e] += p->score[k] * p->value[k * g->size + e];
	for (int64_t e = 0; e < g->size; e++)
		om_put(c->out[Y].type, c->out[Y].data, ((b * g->queries + s) * g->heads + h) * g->size + e, p->sum[e]);
}

static om_status
run_head(const om_op_context *c, const struct group *g, int64_t b, int64_t h, int64_t before, const struct pieces *p)
{
	const int64_t window = g->window;

	for (int64_t s = 0; s < g->queries; s++) {
		const int64_t end = before + s + 1 < g->total ? before + s + 1 : g->total;
		const int64_t low = window > 0 && end > window ? end - window : 0;
		read_new(c, g, 0, b, s, h, p->query);
		OM_TRY(rotate(c, g, place_of(c, g, b, s, before), p->query));
		for (int64_t e = 0; e < g->size; e++)
			p->query[e] = rounded_to(c->in[QUERY].type, p->query[e]);
		attend(c, g, b, h, s, low, end, p);
	}
	return OM_OK;
}

static om_status
group_cpu(om_op_context *c)
{
	const int64_t total = *(const int32_t *)c->in[TOTAL].data;
	struct group g = *(const struct group *)c->state;
	struct pieces p = {0};
	void *scratch = c->scratch;

	g.total = total > g.past ? total : g.past;
	OM_TRY(check_shapes(c, &g));
	if (g.is_open && !(scratch = om_alloc_try(c->mem, pieces_of(&g, NULL, &p))))
		return om_op_fail(c->session, OM_MEMORY, c->op, "cannot allocate the scores of %lld keys",
			(long long)g.total);
	pieces_of(&g, scratch, &p);
	for (int64_t b = 0; b < g.batch; b++) {
		const int64_t length = ((const int32_t *)c->in[LENGTHS].data)[b] + INT64_C(1);
		const int64_t before = g.queries == total ? 0 : length - g.queries;
		if (length > g.total || length < 1 || before < 0 || before > g.past)
			return om_op_fail(c->session, OM_RUN, c->op,
				"sequence %lld has %lld keys, which does not match its cache",
				(long long)b, (long long)length);
		for (int64_t h = 0; h < g.heads; h++) {
			if (h % (g.heads / g.kv) == 0)
				OM_TRY(update_cache(c, &g, b, h / (g.heads / g.kv), before, &p));
			OM_TRY(run_head(c, &g, b, h, before, &p));
		}
	}
	return OM_OK;
}

/* Each head of the past is read before the same head of the present is written. */
static bool
group_reuse(const om_op_context *c, uint32_t out, uint32_t in)
{
	return ((out == NEW_KEY && in == PAST_KEY) || (out == NEW_VALUE && in == PAST_VALUE))
	    && om_shape_equal(&c->in[in].shape, &c->out[out].shape) && om_is_sole_use(c, in);
}

static void
group_cost(const om_op_context *c, om_cost *cost)
{
	struct group g;

	if (read_group(c, &g) == OM_OK && g.total > 0)
		cost->flops = 4.0 * (double)g.batch * (double)g.heads * (double)g.queries * (double)g.total * (double)g.size;
}

static const om_attr_spec group_attrs[] = {
	{"causal", OM_ATTR_INT, .i = 1},
	{"do_rotary", OM_ATTR_INT},
	{"k_quant_type", OM_ATTR_STRING, .s = "NONE"},
	{"kv_cache_bit_width", OM_ATTR_INT},
	{"kv_num_heads", OM_ATTR_INT, .required = true},
	{"local_window_size", OM_ATTR_INT, .i = -1},
	{"num_heads", OM_ATTR_INT, .required = true},
	{"qk_norm_epsilon", OM_ATTR_FLOAT, .f = 1e-6f},
	{"qk_output", OM_ATTR_INT},
	{"rotary_interleaved", OM_ATTR_INT},
	{"scale", OM_ATTR_FLOAT},
	{"sliding_window_cache", OM_ATTR_INT},
	{"smooth_softmax", OM_ATTR_INT, .i = -1},
	{"softcap", OM_ATTR_FLOAT},
	{"v_quant_type", OM_ATTR_STRING, .s = "NONE"},
	{0}
};

const om_opdef om_ops_group_query[] = {
	{.domain = "com.microsoft", .name = "GroupQueryAttention",
	 .brief = "grouped-query attention with a key/value cache", .since = 1, .min_in = 1, .max_in = 16,
	 .min_out = 1, .max_out = 4, .attrs = group_attrs, .infer = group_infer, .inplace = group_reuse, .cpu = group_cpu,
	 .scratch = group_scratch, .cost = group_cost,
	 .input_types = {OF(BFLOAT16) | OF(FLOAT16) | OF(FLOAT32), LIKE(0), LIKE(0), LIKE(0), LIKE(0),
	    OF(INT32), LIKE(5), LIKE(0), LIKE(0), OF(INT64), LIKE(0), LIKE(0), OF(FLOAT32), OF(FLOAT32), LIKE(0), LIKE(0)}},
	{0}
};

const om_kernel om_kernels_group_query[] = {
	{.domain = "com.microsoft", .name = "GroupQueryAttention", .state_bytes = sizeof(struct group),
	 .prepare = group_prepare, .workspace = group_scratch, .run = group_cpu},
	{0}
};
