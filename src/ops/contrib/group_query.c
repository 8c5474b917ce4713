/* SPDX-License-Identifier: Apache-2.0 */
/* GroupQueryAttention of com.microsoft: attention of a decoder over a cache of keys and values,
 * with one length per sequence of the batch.
 *
 * For each key head its rows are collected in scratch first: those of the past, then the new keys rotated by their
 * positions.  Then its queries are processed one by one: scores, weights, and the weighted sum of values.  A present
 * cache may be computed over the past one: its rows stay in place, and rows after the new ones keep what they were.
 *
 * A cache that slides holds the last positions only, from row 0 on, as many as om_group_query_resident() says.
 * GroupQueryAttention of org.onnxmem.cpu, which the pass capacity makes, has a ring instead, whose rows do not move: the
 * row of a position is the remainder of its division by the number of rows.
 * A quantized cache holds integers, with a scale for all or for each element of a head; new rows are rounded before
 * they are used. */
#include <config.h>

#include <math.h>
#include <string.h>

#include "opdef/columns.h"
#include "opdef/cpu_domain.h"
#include "base/arena_internal.h"
#include "base/shape.h"
#include "ir/query.h"
#include "ops/contrib/group_query.h"
#include "ops/family.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"

enum { QUERY = OM_GROUP_QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE, LENGTHS, TOTAL, COSINES, SINES, PLACES, BIAS, SINK, K_SCALE, V_SCALE,
	FIRST_OTHER };
enum { Y, NEW_KEY, NEW_VALUE, SCORES };

int64_t
om_group_query_resident(const struct om_group_query *g, int64_t length)
{
	const int64_t step = g->past - g->window + 1, over = length - g->past;

	if (g->is_ring)
		return over <= 0 ? length : g->past;
	return !g->slides || over <= 0 ? length : length - step * (over / step + (over % step != 0));
}

/* How the caches are stored. */
static om_status
read_storage(const om_op_context *c, struct om_group_query *g)
{
	static const char *const type[] = {"k_quant_type", "v_quant_type"};

	for (int k = 0; k < 2; k++) {
		g->is_quantized[k] = !om_attr_is(c->op, type[k], "NONE");
		if (g->is_quantized[k] && !om_attr_is(c->op, type[k], "PER_TENSOR") && !om_attr_is(c->op, type[k], "PER_CHANNEL"))
			return om_op_fail(c->session, OM_INVALID, c->op, "%s is neither NONE nor PER_TENSOR nor PER_CHANNEL", type[k]);
	}
	g->bits = g->is_quantized[0] || g->is_quantized[1] ? om_attr_int(c->op, "kv_cache_bit_width") : 8;
	if (g->bits == 0)
		g->bits = 8;
	if (g->bits != 4 && g->bits != 8)
		return om_op_fail(c->session, OM_INVALID, c->op, "kv_cache_bit_width is neither 4 nor 8");
	return OM_OK;
}

static om_status
read_slides(const om_op_context *c, struct om_group_query *g)
{
	g->is_ring = strcmp(c->op->domain, OM_CPU_DOMAIN) == 0;
	g->slides = g->is_ring || om_attr_int(c->op, "sliding_window_cache") != 0;
	if (g->slides && (!om_has_in(c, PAST_KEY) || g->window < 1 || g->window > INT32_MAX))
		return om_wrong(c, "a cache that slides requires past_key, past_value and local_window_size");
	if (g->slides && g->past >= 0 && g->past < g->window)
		return om_op_fail(c->session, OM_SHAPE, c->op, "a cache that slides has at least local_window_size rows, which are %lld, not %lld",
			(long long)g->window, (long long)g->past);
	if (!g->is_causal && g->window > 0)
		return om_wrong(c, "attention to later keys has no window");
	return OM_OK;
}

/* Dims that are not known are OM_DIM_UNKNOWN. */
om_status
om_group_query_read(const om_op_context *c, struct om_group_query *g)
{
	const int64_t width = om_in_dim(c, QUERY, 2);
	int64_t *total;
	size_t n;

	*g = (struct om_group_query){.packed = !om_has_in(c, KEY), .batch = om_in_dim(c, QUERY, 0), .queries = om_in_dim(c, QUERY, 1),
		.heads = om_attr_int(c->op, "num_heads"), .kv = om_attr_int(c->op, "kv_num_heads"),
		.size = OM_DIM_UNKNOWN, .past = om_has_in(c, PAST_KEY) ? om_in_dim(c, PAST_KEY, 2) : 0,
		.total = OM_DIM_UNKNOWN, .rotates = om_attr_int(c->op, "do_rotary") != 0,
		.interleaved = om_attr_int(c->op, "rotary_interleaved") != 0, .is_causal = om_attr_int(c->op, "causal") != 0,
		.smooth = om_attr_int(c->op, "smooth_softmax") == 1, .scale = (double)om_attr_float(c->op, "scale"),
		.cap = (double)om_attr_float(c->op, "softcap"), .window = om_attr_int(c->op, "local_window_size")};
	if (!om_has_in(c, LENGTHS) || !om_has_in(c, TOTAL))
		return om_wrong(c, "seqlens_k and total_sequence_length are required");
	if (g->heads < 1 || g->heads > INT32_MAX || g->kv < 1 || g->heads % g->kv)
		return om_wrong(c, "the number of key/value heads must divide the number of query heads");
	if (om_has_in(c, KEY) != om_has_in(c, VALUE) || om_has_in(c, PAST_KEY) != om_has_in(c, PAST_VALUE))
		return om_wrong(c, "key and value must be given together");
	if (c->in[QUERY].shape.rank >= 0 && c->in[QUERY].shape.rank != 3)
		return om_wrong(c, "query must have rank 3");
	OM_TRY(read_storage(c, g));
	OM_TRY(read_slides(c, g));
	const int64_t all = g->packed ? g->heads + 2 * g->kv : g->heads;
	if (width >= 0 && width % all)
		return om_wrong(c, "num_heads must divide the hidden size of query");
	if (width >= 0)
		g->size = width / all;
	if (g->size >= 0 && g->bits == 4 && g->size % 2)
		return om_wrong(c, "a cache of 4 bits requires an even head size");
	if (g->slides)
		g->total = g->past;
	else if (om_in_ints(c, TOTAL, &total, &n) && n == 1 && g->past >= 0)
		g->total = total[0] > g->past ? total[0] : g->past;
	if (g->scale == 0)
		g->scale = 1 / sqrt((double)g->size);
	return OM_OK;
}

int64_t
om_group_query_row(const struct om_group_query *g, int k)
{
	return g->size >= 0 && g->is_quantized[k] && g->bits == 4 ? g->size / 2 : g->size;
}

static om_dtype
type_of_cache(const om_op_context *c, const struct om_group_query *g, int k)
{
	return !g->is_quantized[k] ? c->in[QUERY].type : g->bits == 4 ? OM_UINT8 : OM_INT8;
}

static om_status
group_infer(om_op_context *c)
{
	const om_shape *q = &c->in[QUERY].shape;
	struct om_group_query g;

	OM_TRY(om_group_query_read(c, &g));
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
		c->out[k].type = type_of_cache(c, &g, (int)(k - NEW_KEY));
		c->out[k].shape = om_shape_of(4, (const int64_t[]){g.batch, g.kv, g.total, om_group_query_row(&g, (int)(k - NEW_KEY))});
		if (g.batch < 0 && q->rank == 3)
			c->out[k].shape.sym[0] = q->sym[0];
	}
	if (om_has_out(c, SCORES))
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "no kernel for the output of the scores");
	for (uint32_t k = FIRST_OTHER; k < c->op->nin; k++)
		if (om_has_in(c, k))
			return om_op_fail(c->session, OM_UNSUPPORTED, c->op,
				"no kernel for normalized heads");
	return OM_OK;
}

/* ---- Validation of the inputs. ---- */

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
	static const uint32_t real[] = {QUERY, KEY, VALUE, COSINES, SINES, BIAS, SINK};

	for (size_t k = 0; k < sizeof real / sizeof real[0]; k++)
		if (om_has_in(c, real[k]) && (!om_is_real(c->in[real[k]].type) || c->in[real[k]].type != c->in[QUERY].type))
			return om_no_kernel(c, c->in[real[k]].type);
	if (c->in[LENGTHS].type != OM_INT32 || c->in[TOTAL].type != OM_INT32)
		return om_wrong(c, "seqlens_k and total_sequence_length must be int32");
	if (om_has_in(c, PLACES) && c->in[PLACES].type != OM_INT64)
		return om_wrong(c, "position_ids must be int64");
	return OM_OK;
}

/* Types of the caches, and their scales. */
static om_status
check_storage(const om_op_context *c, const struct om_group_query *g)
{
	for (uint32_t k = 0; k < 2; k++) {
		if (om_has_in(c, PAST_KEY + k) && c->in[PAST_KEY + k].type != type_of_cache(c, g, (int)k))
			return om_wrong(c, "the element types of the caches do not match the attributes");
		if (!g->is_quantized[k])
			continue;
		if (!om_has_in(c, K_SCALE + k) || c->in[K_SCALE + k].type != OM_FLOAT32)
			return om_wrong(c, "a quantized cache requires a scale of float32");
		const int64_t n = om_shape_count(&c->in[K_SCALE + k].shape);
		if (n != 1 && n != g->kv * g->size)
			return om_wrong(c, "the scale of a quantized cache has one element or one for each element of the heads");
	}
	return OM_OK;
}

om_status
om_group_query_check(const om_op_context *c, const struct om_group_query *g)
{
	const int64_t kv[] = {g->batch, g->queries, g->kv * g->size};
	const int64_t keys = *(const int32_t *)c->in[TOTAL].data;

	for (uint32_t k = KEY; k <= VALUE; k++)
		if (om_has_in(c, k) && !has_dims(c, k, 3, kv))
			return om_wrong(c, "the shapes of key and value do not match query");
	for (uint32_t k = 0; k < 2; k++)
		if (om_has_in(c, PAST_KEY + k)
		    && !has_dims(c, PAST_KEY + k, 4, (const int64_t[]){g->batch, g->kv, g->past, om_group_query_row(g, (int)k)}))
			return om_wrong(c, "the shapes of the caches do not match query");
	OM_TRY(check_storage(c, g));
	if (om_shape_count(&c->in[LENGTHS].shape) != g->batch)
		return om_wrong(c, "seqlens_k must have one element for each batch entry");
	if (om_has_in(c, SINK) && om_shape_count(&c->in[SINK].shape) != g->heads)
		return om_wrong(c, "head_sink must have one element for each head");
	if (om_has_in(c, BIAS) && (c->in[BIAS].shape.rank != 4 || c->in[BIAS].shape.dim[2] != g->queries
	    || c->in[BIAS].shape.dim[3] < keys || (c->in[BIAS].shape.dim[0] != 1 && c->in[BIAS].shape.dim[0] != g->batch)
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

/* The positions of sequence `b`: those before its new keys, and their number at the end. */
om_status
om_group_query_lengths(const om_op_context *c, const struct om_group_query *g, int64_t b, int64_t *before, int64_t *length)
{
	const int64_t total = *(const int32_t *)c->in[TOTAL].data;

	*length = ((const int32_t *)c->in[LENGTHS].data)[b] + INT64_C(1);
	*before = g->queries == total ? 0 : *length - g->queries;
	if (*length < 1 || *before < 0 || *length > *before + g->queries || (om_has_in(c, BIAS) && *length > om_in_dim(c, BIAS, 3))
	    || (!g->slides && (*length > g->total || *before > g->past)))
		return om_op_fail(c->session, OM_RUN, c->op, "sequence %lld has %lld keys, which does not match its cache",
			(long long)b, (long long)*length);
	return OM_OK;
}

/* ---- Scratch layout. ---- */

struct pieces {
	double *key, *value, *query, *score, *sum;
};

/* Rows of a head in scratch: those of the past, and the new ones. */
static int64_t
rows_of(const struct om_group_query *g)
{
	return g->slides ? g->past + g->queries : g->total;
}

static uint64_t
pieces_of(const struct om_group_query *g, char *base, struct pieces *p)
{
	const int64_t rows = rows_of(g), count[] = {rows * g->size, rows * g->size, g->size, rows, g->size};
	double **piece[] = {&p->key, &p->value, &p->query, &p->score, &p->sum};
	uint64_t at = 0;

	for (int k = 0; k < 5; k++) {
		if (base)
			*piece[k] = (double *)(void *)(base + at);
		at = om_size_sum(at, om_piece_size((uint64_t)(count[k] > 0 ? count[k] : 1) * sizeof(double)));
	}
	return at;
}

om_status
om_group_query_prepare(om_op_context *c, void **state)
{
	struct om_group_query *g = *state;

	OM_TRY(check_types(c));
	OM_TRY(om_group_query_read(c, g));
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
	const struct om_group_query *g = c->state;
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
read_new(const om_op_context *c, const struct om_group_query *g, int k, int64_t b, int64_t s, int64_t h, double *to)
{
	const int64_t heads = k == 0 ? g->heads : g->kv, all = g->packed ? g->heads + 2 * g->kv : heads;
	const int64_t first = !g->packed || k == 0 ? 0 : k == 1 ? g->heads : g->heads + g->kv;
	const om_tensor *t = &c->in[g->packed ? QUERY : QUERY + k];

	read_row(t, ((b * g->queries + s) * all + first + h) * g->size, g->size, to);
}

/* Rotate pairs of elements by the angle of a position. */
static om_status
rotate(const om_op_context *c, const struct om_group_query *g, int64_t place, double *x)
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
place_of(const om_op_context *c, const struct om_group_query *g, int64_t b, int64_t s, int64_t before)
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

/* ---- Caches: 0 of keys, 1 of values. ---- */

double
om_group_query_scale(const om_op_context *c, const struct om_group_query *g, int k, int64_t h, int64_t e)
{
	const om_tensor *t = &c->in[K_SCALE + k];

	return (double)((const float *)t->data)[om_shape_count(&t->shape) == 1 ? 0 : h * g->size + e];
}

double
om_group_query_quantized(const struct om_group_query *g, double x, double scale)
{
	const double most = g->bits == 4 ? 7 : 127, q = rint(x / scale);

	return q > most ? most : q >= -most - 1 ? q : -most - 1;
}

/* The numbers that a row of head `h` is kept as. */
static void
keep(const om_op_context *c, const struct om_group_query *g, int k, int64_t h, double *x)
{
	for (int64_t e = 0; e < g->size; e++) {
		const double scale = g->is_quantized[k] ? om_group_query_scale(c, g, k, h, e) : 1;
		x[e] = g->is_quantized[k] ? om_group_query_quantized(g, x[e], scale) * scale : rounded_to(c->in[QUERY].type, x[e]);
	}
}

/* Row `row` of all heads of a past cache; `h` is its head. */
static void
read_cached(const om_op_context *c, const struct om_group_query *g, int k, int64_t h, int64_t row, double *to)
{
	const om_tensor *t = &c->in[PAST_KEY + k];
	const uint8_t *p = t->data;
	const int64_t at = row * om_group_query_row(g, k);

	if (!g->is_quantized[k])
		read_row(t, at, g->size, to);
	for (int64_t e = 0; g->is_quantized[k] && e < g->size; e++)
		to[e] = om_group_query_scale(c, g, k, h, e) * (g->bits == 4 ? (p[at + e / 2] >> e % 2 * 4 & 15) - 8 : (int8_t)p[at + e]);
}

static void
write_cached(const om_op_context *c, const struct om_group_query *g, int k, int64_t h, int64_t row, const double *from)
{
	const om_tensor *t = &c->out[NEW_KEY + k];
	uint8_t *p = t->data;
	const int64_t at = row * om_group_query_row(g, k);

	for (int64_t e = 0; e < g->size; e++) {
		if (!g->is_quantized[k]) {
			om_put(t->type, t->data, at + e, from[e]);
			continue;
		}
		const int q = (int)om_group_query_quantized(g, from[e], om_group_query_scale(c, g, k, h, e));
		if (g->bits == 8)
			p[at + e] = (uint8_t)q;
		else if (e % 2 == 0)
			p[at + e / 2] = (uint8_t)(q + 8);
		else
			p[at + e / 2] = (uint8_t)(p[at + e / 2] | (q + 8) << 4);
	}
}

/* The rows of a sequence: `resident` ones of the past, of which the first has position `first`, then new ones. */
struct rows {
	int64_t b, before, length, resident, first;
};

/* The row of a cache that has the `i`-th of its positions, of which the first one is `first`. */
static int64_t
place_in(const struct om_group_query *g, int64_t first, int64_t i)
{
	return g->is_ring ? (first + i) % g->past : i;
}

/* Collect the rows of a head in scratch. */
static om_status
collect(const om_op_context *c, const struct om_group_query *g, const struct rows *r, int64_t h, const struct pieces *p)
{
	for (int k = 0; k < 2; k++) {
		double *row = k == 0 ? p->key : p->value;
		for (int64_t i = 0; i < r->resident; i++)
			read_cached(c, g, k, h, (r->b * g->kv + h) * g->past + place_in(g, r->first, i), row + i * g->size);
		for (int64_t s = 0; s < g->queries && r->resident + s < rows_of(g); s++) {
			double *x = row + (r->resident + s) * g->size;
			read_new(c, g, k + 1, r->b, s, h, x);
			if (k == 0)
				OM_TRY(rotate(c, g, place_of(c, g, r->b, s, r->before), x));
			keep(c, g, k, h, x);
		}
	}
	return OM_OK;
}

/* Rows [from, end) of a head of a present cache: as in the past one, or zeros. */
static void
leave_rows(const om_op_context *c, const struct om_group_query *g, int k, int64_t head, int64_t from, int64_t end)
{
	const om_tensor *past = &c->in[PAST_KEY + k], *t = &c->out[NEW_KEY + k];
	const size_t bytes = (size_t)(om_group_query_row(g, k) * om_dtype_bits(t->type) / 8);
	char *to = (char *)t->data + (size_t)(head * g->total + from) * bytes;
	const int64_t stays = om_has_in(c, PAST_KEY) && g->past > from ? (g->past < end ? g->past : end) - from : 0;

	if (from >= end)
		return;
	if (stays)
		memmove(to, (const char *)past->data + (size_t)(head * g->past + from) * bytes, (size_t)stays * bytes);
	memset(to + (size_t)stays * bytes, 0, (size_t)(end - from - stays) * bytes);
}

/* The present cache of a head, after its rows were collected. */
static void
update_cache(const om_op_context *c, const struct om_group_query *g, const struct rows *r, int64_t h, const struct pieces *p)
{
	const int64_t head = r->b * g->kv + h, new = g->slides ? r->length - r->before : g->queries;
	const int64_t all = r->resident + new < rows_of(g) ? r->resident + new : rows_of(g);
	const int64_t kept = g->slides ? om_group_query_resident(g, r->length) : all;
	const int64_t used = kept > r->resident ? kept : r->resident;

	for (int k = 0; k < 2; k++) {
		const double *row = k == 0 ? p->key : p->value;
		if (!om_has_out(c, NEW_KEY + (uint32_t)k))
			continue;
		leave_rows(c, g, k, head, used, g->total);
		for (int64_t i = 0; i < used; i++)
			if (i < kept)
				write_cached(c, g, k, h, head * g->total + place_in(g, r->length - kept, i), row + (all - kept + i) * g->size);
			else
				memset((char *)c->out[NEW_KEY + k].data + (size_t)((head * g->total + i) * om_group_query_row(g, k)
					* om_dtype_bits(c->out[NEW_KEY + k].type) / 8), 0,
					(size_t)(om_group_query_row(g, k) * om_dtype_bits(c->out[NEW_KEY + k].type) / 8));
	}
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

/* The output for query `s` of head `h`, over the rows [low, high). */
static void
attend(const om_op_context *c, const struct om_group_query *g, const struct rows *r, int64_t h, int64_t s, int64_t low, int64_t high,
	const struct pieces *p)
{
	const double cap = g->cap;
	const int64_t b = r->b;
	const om_tensor *bias = om_has_in(c, BIAS) ? &c->in[BIAS] : NULL;
	const int64_t row = !bias ? 0 : ((bias->shape.dim[0] == 1 ? 0 : b) * bias->shape.dim[1]
		+ (bias->shape.dim[1] == 1 ? 0 : h)) * g->queries + s;
	const bool has_sink = om_has_in(c, SINK) || g->smooth;

	for (int64_t k = low; k < high; k++) {
		double dot = 0;
		for (int64_t e = 0; e < g->size; e++)
			dot += p->query[e] * p->key[k * g->size + e];
		dot *= g->scale;
		dot = cap > 0 ? cap * tanh(dot / cap) : dot;
		p->score[k] = dot + (bias ? om_get(bias->type, bias->data, row * bias->shape.dim[3] + r->first + k) : 0);
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
run_head(const om_op_context *c, const struct om_group_query *g, const struct rows *r, int64_t h, const struct pieces *p)
{
	for (int64_t s = 0; s < g->queries; s++) {
		const int64_t last = r->resident + (g->is_causal ? s + 1 : r->length - r->before);
		const int64_t end = last < rows_of(g) ? last : rows_of(g);
		const int64_t low = g->window > 0 && end > g->window ? end - g->window : 0;
		read_new(c, g, 0, r->b, s, h, p->query);
		OM_TRY(rotate(c, g, place_of(c, g, r->b, s, r->before), p->query));
		for (int64_t e = 0; e < g->size; e++)
			p->query[e] = rounded_to(c->in[QUERY].type, p->query[e]);
		attend(c, g, r, h, s, low, end, p);
	}
	return OM_OK;
}

static om_status
run_sequence(const om_op_context *c, const struct om_group_query *g, int64_t b, const struct pieces *p)
{
	struct rows r = {.b = b};

	OM_TRY(om_group_query_lengths(c, g, b, &r.before, &r.length));
	r.resident = om_group_query_resident(g, r.before);
	r.first = r.before - r.resident;
	for (int64_t h = 0; h < g->heads; h++) {
		if (h % (g->heads / g->kv) == 0) {
			OM_TRY(collect(c, g, &r, h / (g->heads / g->kv), p));
			update_cache(c, g, &r, h / (g->heads / g->kv), p);
		}
		OM_TRY(run_head(c, g, &r, h, p));
	}
	return OM_OK;
}

static om_status
group_cpu(om_op_context *c)
{
	const int64_t total = *(const int32_t *)c->in[TOTAL].data;
	struct om_group_query g = *(const struct om_group_query *)c->state;
	struct pieces p = {0};
	void *scratch = c->scratch;

	if (!g.slides)
		g.total = total > g.past ? total : g.past;
	OM_TRY(om_group_query_check(c, &g));
	if (g.is_open && !(scratch = om_alloc_try(c->mem, pieces_of(&g, NULL, &p))))
		return om_op_fail(c->session, OM_MEMORY, c->op, "cannot allocate the scores of %lld keys",
			(long long)g.total);
	pieces_of(&g, scratch, &p);
	for (int64_t b = 0; b < g.batch; b++)
		OM_TRY(run_sequence(c, &g, b, &p));
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
	struct om_group_query g;

	if (om_group_query_read(c, &g) == OM_OK && g.total > 0)
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

#define OF_REALS (OF(BFLOAT16) | OF(FLOAT16) | OF(FLOAT32))

#define GROUP_TYPES                                                            \
	OF_REALS, LIKE(0), LIKE(0), OF_REALS | OF_BYTES, OF_REALS | OF_BYTES, OF(INT32), LIKE(5), LIKE(0), LIKE(0), OF(INT64), LIKE(0), \
	LIKE(0), OF(FLOAT32), OF(FLOAT32), LIKE(0), LIKE(0)

const om_opdef om_ops_group_query[] = {
	{.domain = "com.microsoft", .name = "GroupQueryAttention",
	 .brief = "grouped-query attention with a key/value cache", .since = 1, .flags = OM_OPEN_INPLACE, .min_in = 1, .max_in = 16,
	 .min_out = 1, .max_out = 4, .attrs = group_attrs, .infer = group_infer, .inplace = group_reuse, .cpu = group_cpu,
	 .scratch = group_scratch, .cost = group_cost,
	 .input_types = {GROUP_TYPES}},
	{.domain = OM_CPU_DOMAIN, .name = "GroupQueryAttention",
	 .brief = "grouped-query attention with a window, over a ring of as many rows", .since = 1, .flags = OM_OPEN_INPLACE, .min_in = 1, .max_in = 16,
	 .min_out = 3, .max_out = 3, .attrs = group_attrs, .infer = group_infer, .inplace = group_reuse, .cpu = group_cpu,
	 .scratch = group_scratch, .cost = group_cost,
	 .input_types = {GROUP_TYPES}},
	{0}
};

const om_kernel om_kernels_group_query[] = {
	{.domain = "com.microsoft", .name = "GroupQueryAttention", .state_bytes = sizeof(struct om_group_query),
	 .prepare = om_group_query_prepare, .workspace = group_scratch, .run = group_cpu},
	{.domain = OM_CPU_DOMAIN, .name = "GroupQueryAttention", .state_bytes = sizeof(struct om_group_query),
	 .prepare = om_group_query_prepare, .workspace = group_scratch, .run = group_cpu},
	{0}
};
