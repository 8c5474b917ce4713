/* SPDX-License-Identifier: Apache-2.0 */
/* GroupQueryAttention: new rows are written to the present cache, which is then read where it is, in the type that it is stored in.
 *
 * Everything else is computed with floats: of another type, rows of queries, keys and values become floats, and the result is rounded at the end.  The
 * scales of a quantized cache are no part of its elements: queries are multiplied by those of keys, the result by those of values.
 *
 * The queries of the heads that share keys are rows of one attention when there is one query each, so that keys and
 * values are read once.  A present cache that is computed over the past one receives nothing but the new rows.
 *
 * A ring has the rows of its positions in another order, but as many as the window has: one query reads it where it is.
 * For several queries the rows before and the new ones are collected in workspace, in order; for one, its bias is put in the order of the ring. */
#include <config.h>

#include <string.h>

#include "base/convert_elements.h"
#include "base/half.h"
#include "base/shape.h"
#include "ir/query.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/kernels.h"
#include "opdef/columns.h"
#include "opdef/cpu_domain.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "ops/contrib/group_query.h"
#include "ops/cpu/ranges.h"
#include "ops/family.h"

enum { Y, NEW_KEY, NEW_VALUE };

/* One sequence of a run. */
struct sequence {
	const om_op_context *c;
	const struct om_group_query *g;
	int64_t b, before, length;
	int64_t resident, kept;   /* rows of the cache before, and after */
	float *turned;            /* queries as floats, rotated and scaled, (queries, heads, size); NULL: they are read where they are */
	float *result;            /* of the same shape; NULL: it is the output */
	char *lines[2];           /* rows of keys and values in order, (kv, past + queries, size), as they are stored; NULL: they are read in the cache */
	float *bias;              /* as floats; that of a query as the rows of a ring, (heads or 1, past) */
	float *sink;
	float *rows;              /* three rows of floats for each worker */
};

/* Where its parts are in the workspace. */
struct room {
	uint64_t turned, result, lines[2], bias, sink, rows, attention;
};

static const float no_sink = 0;   /* of a smooth softmax */

static bool
has_floats(const om_op_context *c)
{
	return c->in[OM_GROUP_QUERY].type == OM_FLOAT32;
}

/* Bias of floats is read where it is; else its size has to be known. */
static bool
is_bias_known(const om_op_context *c)
{
	return has_floats(c) || !om_has_in(c, OM_GROUP_BIAS) || om_shape_is_known(&c->in[OM_GROUP_BIAS].shape);
}

static bool
group_supports(const om_op_context *c)
{
	struct om_group_query g;

	return om_group_query_read(c, &g) == OM_OK && om_has_out(c, NEW_KEY) && om_has_out(c, NEW_VALUE) && is_bias_known(c)
	    && g.batch > 0 && g.queries > 0 && g.size > 0
	    && (g.is_ring ? g.past == g.window : !(g.slides && g.queries > 1));
}

/* How the cache of keys, 0, or of values, 1, is stored. */
static om_stored_as
storage_of(const om_op_context *c, const struct om_group_query *g, int k)
{
	if (g->is_quantized[k])
		return g->bits == 4 ? OM_STORED_INT4 : OM_STORED_INT8;
	return has_floats(c) ? OM_STORED_FLOAT : c->in[OM_GROUP_QUERY].type == OM_FLOAT16 ? OM_STORED_HALF : OM_STORED_BFLOAT;
}

/* Bytes of so many rows of a head of that cache. */
static int64_t
bytes_of_rows(const om_op_context *c, const struct om_group_query *g, int k, int64_t rows)
{
	return om_stored_bytes(storage_of(c, g, k), rows * g->size);
}

/* Are queries other numbers than those of the input, or of another type? */
static bool
has_turned(const om_op_context *c, const struct om_group_query *g)
{
	return g->rotates || !has_floats(c) || g->is_quantized[0];
}

static bool
has_result(const om_op_context *c, const struct om_group_query *g)
{
	return !has_floats(c) || g->is_quantized[1];
}

/* Are the rows of a ring put in order? */
static bool
has_lines(const struct om_group_query *g)
{
	return g->is_ring && g->queries > 1;
}

static int64_t
rows_of_line(const struct om_group_query *g)
{
	return has_lines(g) ? g->past + g->queries : g->total;
}

/* Is the bias of a query put in the order of a ring? */
static bool
has_ring_bias(const om_op_context *c, const struct om_group_query *g)
{
	return g->is_ring && g->queries == 1 && om_has_in(c, OM_GROUP_BIAS);
}

/* Attention of a sequence, without its number of keys. */
static om_attention_batch
attention_of(const om_op_context *c, const struct om_group_query *g)
{
	const int64_t group = g->heads / g->kv, size = g->size, row = g->heads * size;
	const int64_t given = has_turned(c, g) ? row : (g->packed ? g->heads + 2 * g->kv : g->heads) * size;
	const om_shape *bias = om_has_in(c, OM_GROUP_BIAS) ? &c->in[OM_GROUP_BIAS].shape : NULL;
	om_attention_batch b = {.rank = 2, .dim = {g->kv, g->queries > 1 ? group : 1}};
	om_attention *a = &b.a;

	a->rows = g->queries > 1 ? g->queries : group;
	a->depth = a->value_depth = size;
	a->keys_as = storage_of(c, g, 0);
	a->values_as = storage_of(c, g, 1);
	a->scale = (float)g->scale;
	a->cap = (float)g->cap;
	a->is_causal = g->is_causal && g->queries > 1;
	a->window = g->queries > 1 && g->window > 0 ? g->window : 0;
	a->row[OM_ATTENTION_K] = a->row[OM_ATTENTION_V] = size;
	a->row[OM_ATTENTION_Q] = g->queries > 1 ? given : size;
	a->row[OM_ATTENTION_Y] = g->queries > 1 ? row : size;
	a->col[OM_ATTENTION_Q] = a->col[OM_ATTENTION_K] = a->col[OM_ATTENTION_V] = a->col[OM_ATTENTION_Y] = 1;
	b.step[0][OM_ATTENTION_Q] = b.step[0][OM_ATTENTION_Y] = group * size;
	b.step[1][OM_ATTENTION_Q] = b.step[1][OM_ATTENTION_Y] = size;
	b.step[0][OM_ATTENTION_K] = b.step[0][OM_ATTENTION_V] = rows_of_line(g) * size;
	if (bias) {
		const int64_t head = bias->dim[1] == 1 ? 0 : has_ring_bias(c, g) ? g->past : g->queries * bias->dim[3];
		a->has[OM_ATTENTION_MASK] = true;
		a->row[OM_ATTENTION_MASK] = g->queries > 1 ? bias->dim[3] : head;
		a->col[OM_ATTENTION_MASK] = 1;
		b.step[0][OM_ATTENTION_MASK] = group * head;
		b.step[1][OM_ATTENTION_MASK] = head;
	}
	if (om_has_in(c, OM_GROUP_SINK)) {
		a->sink_step = g->queries == 1;
		b.sink_step[0] = group;
		b.sink_step[1] = 1;
	}
	return b;
}

static uint64_t
take(uint64_t *at, bool is, uint64_t bytes)
{
	const uint64_t here = *at;

	if (is)
		*at = om_size_sum(here, om_piece_size(bytes));
	return here;
}

static uint64_t
bias_count(const om_op_context *c, const struct om_group_query *g)
{
	const om_shape *s = &c->in[OM_GROUP_BIAS].shape;

	return (uint64_t)(s->dim[1] * (has_ring_bias(c, g) ? g->past : g->queries * s->dim[3]));
}

static bool
copies_bias(const om_op_context *c, const struct om_group_query *g)
{
	return om_has_in(c, OM_GROUP_BIAS) && (has_ring_bias(c, g) || !has_floats(c));
}

/* Floats of a row in the room of a worker. */
static int64_t
row_room(const struct om_group_query *g)
{
	return (g->size + 15) / 16 * 16;
}

static struct room
room_of(const om_op_context *c, const struct om_group_query *g)
{
	const uint64_t queries = (uint64_t)(g->queries * g->heads * g->size) * sizeof(float);
	uint64_t at = 0;
	struct room r = {.turned = take(&at, has_turned(c, g), queries), .result = take(&at, has_result(c, g), queries)};

	for (int k = 0; k < 2; k++)
		r.lines[k] = take(&at, has_lines(g), (uint64_t)bytes_of_rows(c, g, k, g->kv * rows_of_line(g)));
	r.bias = take(&at, copies_bias(c, g), copies_bias(c, g) ? bias_count(c, g) * sizeof(float) : 0);
	r.sink = take(&at, om_has_in(c, OM_GROUP_SINK) && !has_floats(c), (uint64_t)g->heads * sizeof(float));
	r.rows = take(&at, true, 3 * (uint64_t)row_room(g) * sizeof(float) * om_call_workers(c));
	r.attention = at;
	return r;
}

/* More keys than are in a block take no more workspace. */
static uint64_t
group_workspace(const om_op_context *c)
{
	const struct om_group_query *g = c->state;
	om_attention_batch b = attention_of(c, g);

	b.a.keys = g->is_open ? OM_ATTENTION_KEYS : rows_of_line(g);
	return om_size_sum(room_of(c, g).attention, om_attention_workspace(&b.a, om_call_workers(c)));
}

/* ---- Rows. ---- */

/* Elements of the type of the queries as floats: where they are, or in `room`. */
static const float *
floats_at(const om_op_context *c, uint32_t in, int64_t at, int64_t n, float *room)
{
	const om_tensor *t = &c->in[in];

	if (t->type == OM_FLOAT32)
		return (const float *)t->data + at;
	if (t->type == OM_FLOAT16)
		om_kernels_get()->half->widen(room, (const uint16_t *)t->data + at, n);
	else
		om_convert(OM_FLOAT32, room, t->type, (const uint16_t *)t->data + at, n, false);
	return room;
}

/* Row `s` of head `h` of operand `k`: 0 queries, 1 keys, 2 values. */
static const float *
new_row(const struct sequence *q, int k, int64_t s, int64_t h, float *room)
{
	const struct om_group_query *g = q->g;
	const int64_t heads = k == 0 ? g->heads : g->kv, all = g->packed ? g->heads + 2 * g->kv : heads;
	const int64_t first = !g->packed || k == 0 ? 0 : k == 1 ? g->heads : g->heads + g->kv;

	return floats_at(q->c, g->packed ? OM_GROUP_QUERY : OM_GROUP_QUERY + (uint32_t)k, ((q->b * g->queries + s) * all + first + h) * g->size, g->size,
		room);
}

static int64_t
place_of(const struct sequence *q, int64_t s)
{
	const om_op_context *c = q->c;

	return om_has_in(c, OM_GROUP_PLACES) ? ((const int64_t *)c->in[OM_GROUP_PLACES].data)[q->b * q->g->queries + s] : q->before + s;
}

/* Copy a row, rotated by the position of `s`; `room` has a row. */
static void
turn(const struct sequence *q, int64_t s, const float *x, float *y, float *room)
{
	const struct om_group_query *g = q->g;
	const int64_t half = g->rotates ? q->c->in[OM_GROUP_COSINES].shape.dim[1] : 0, at = g->rotates ? place_of(q, s) * half : 0;
	const float *cosine = g->rotates ? floats_at(q->c, OM_GROUP_COSINES, at, half, room) : NULL;
	const float *sine = g->rotates ? floats_at(q->c, OM_GROUP_SINES, at, half, room + half) : NULL;
	const int64_t step = g->interleaved ? 2 : 1, other = g->interleaved ? 1 : half;

	for (int64_t k = 0; k < half; k++) {
		const float a = x[k * step], b = x[k * step + other];
		y[k * step] = cosine[k] * a - sine[k] * b;
		y[k * step + other] = sine[k] * a + cosine[k] * b;
	}
	memcpy(y + 2 * half, x + 2 * half, (size_t)(g->size - 2 * half) * sizeof *y);
}

/* Queries are of the type of the model before they are multiplied by the scales of keys. */
static void
finish_query(const struct sequence *q, int64_t h, float *x)
{
	const struct om_group_query *g = q->g;
	const om_dtype t = q->c->in[OM_GROUP_QUERY].type;

	for (int64_t e = 0; g->rotates && t != OM_FLOAT32 && e < g->size; e++)
		x[e] = t == OM_FLOAT16 ? om_half_to_float(om_float_to_half(x[e])) : om_bfloat_to_float(om_float_to_bfloat(x[e]));
	for (int64_t e = 0; g->is_quantized[0] && e < g->size; e++)
		x[e] *= (float)om_group_query_scale(q->c, g, 0, h, e);
}

/* Write a row of cache `k`. */
static void
store_row(const struct sequence *q, int k, int64_t h, const float *x, char *to)
{
	const struct om_group_query *g = q->g;
	uint8_t *bytes = (uint8_t *)to;

	if (!g->is_quantized[k]) {
		om_convert(q->c->in[OM_GROUP_QUERY].type, to, OM_FLOAT32, x, g->size, false);
		return;
	}
	for (int64_t e = 0; e < g->size; e++) {
		const int is = (int)om_group_query_quantized(g, (double)x[e], om_group_query_scale(q->c, g, k, h, e));
		if (g->bits == 8)
			bytes[e] = (uint8_t)is;
		else
			bytes[e / 2] = (uint8_t)(e % 2 ? bytes[e / 2] | (is + 8) << 4 : is + 8);
	}
}

/* Rows [from, end) of a present cache become those of the past one, and zeros. */
static void
leave_rows(const struct sequence *q, int k, char *to, const char *past, int64_t from, int64_t end)
{
	const struct om_group_query *g = q->g;
	const int64_t last = past ? g->past : 0, stay = last < from ? from : last < end ? last : end;
	const int64_t row = bytes_of_rows(q->c, g, k, 1);

	if (from >= end)
		return;
	if (stay > from && to != past)
		memcpy(to + from * row, past + from * row, (size_t)((stay - from) * row));
	memset(to + stay * row, 0, (size_t)((end - stay) * row));
}

/* The rows of the past that stay, of a head of keys or values. */
static void
keep_rows(const struct sequence *q, int k, char *to, const char *past)
{
	const struct om_group_query *g = q->g;
	const int64_t new = g->slides ? 1 : g->queries, old = q->kept - new;
	const int64_t used = q->kept > q->resident ? q->kept : q->resident, row = bytes_of_rows(q->c, g, k, 1);

	if (old && (to != past || old != q->resident))
		memmove(to, past + (q->resident - old) * row, (size_t)(old * row));
	memset(to + q->kept * row, 0, (size_t)((used - q->kept) * row));
	leave_rows(q, k, to, past, used, g->total);
}

/* Write the new rows of head `h` of cache `k` from row `first` on; `room` has three rows. */
static void
write_rows(const struct sequence *q, int k, int64_t h, int64_t first, char *y, float *room)
{
	const struct om_group_query *g = q->g;
	float *turned = room + row_room(g);

	for (int64_t s = 0; s < g->queries; s++) {
		const float *x = new_row(q, k + 1, s, h, room);
		char *to = y + bytes_of_rows(q->c, g, k, first + s);
		if (k == 0) {
			turn(q, s, x, turned, turned + row_room(g));
			x = turned;
		}
		store_row(q, k, h, x, to);
	}
}

/* Copy the rows of the positions [position, position + n) of a ring, which begin at row `row` of the others, there and back. */
static void
copy_ring(const struct sequence *q, int k, char *to, const char *from, int64_t position, int64_t n, bool is_to)
{
	const int64_t past = q->g->past, size = bytes_of_rows(q->c, q->g, k, 1);

	for (int64_t i = 0, some; i < n; i += some) {
		const int64_t row = (position + i) % past;
		some = past - row < n - i ? past - row : n - i;
		memcpy(to + (is_to ? row : i) * size, from + (is_to ? i : row) * size, (size_t)(some * size));
	}
}

/* A ring: past rows that are elsewhere are copied, then new rows replace those of the same place. */
static void
update_ring(const struct sequence *q, int k, int64_t h, char *y, const char *past, float *room)
{
	const om_op_context *c = q->c;
	const struct om_group_query *g = q->g;
	char *line = has_lines(g) ? q->lines[k] + bytes_of_rows(c, g, k, h * rows_of_line(g)) : NULL;

	if (line) {
		copy_ring(q, k, line, past, q->before - q->resident, q->resident, false);
		write_rows(q, k, h, q->resident, line, room);
	}
	if (y != past)
		memcpy(y, past, (size_t)bytes_of_rows(c, g, k, g->past));
	if (line)
		copy_ring(q, k, y, line + bytes_of_rows(c, g, k, q->resident + q->length - q->before - q->kept), q->length - q->kept, q->kept, true);
	else
		write_rows(q, k, h, (q->length - 1) % g->past, y, room);
}

static void
update_heads(void *arg, int64_t from, int64_t to, uint32_t worker)
{
	const struct sequence *q = arg;
	const om_op_context *c = q->c;
	const struct om_group_query *g = q->g;
	const int64_t group = g->heads / g->kv, first = q->kept - (g->slides ? 1 : g->queries);
	float *room = q->rows + 3 * row_room(g) * worker;

	for (int64_t h = from; h < to; h++) {
		for (int k = 0; k < 2; k++) {
			const uint32_t in = OM_GROUP_PAST_KEY + (uint32_t)k;
			char *y = (char *)c->out[NEW_KEY + k].data + bytes_of_rows(c, g, k, (q->b * g->kv + h) * g->total);
			const char *x = om_has_in(c, in) ? (const char *)c->in[in].data + bytes_of_rows(c, g, k, (q->b * g->kv + h) * g->past) : NULL;
			if (g->is_ring) {
				update_ring(q, k, h, y, x, room);
				continue;
			}
			keep_rows(q, k, y, x);
			write_rows(q, k, h, first, y, room);
		}
		for (int64_t i = h * group * g->queries; q->turned && i < (h + 1) * group * g->queries; i++) {
			const int64_t head = i / g->queries, s = i % g->queries;
			float *turned = q->turned + (s * g->heads + head) * g->size;
			turn(q, s, new_row(q, 0, s, head, room), turned, room + row_room(g));
			finish_query(q, h, turned);
		}
	}
}

/* ---- Attention. ---- */

/* The bias of a query in the order of a ring. */
static const float *
ring_bias(const struct sequence *q, int64_t at_sequence)
{
	const om_tensor *t = &q->c->in[OM_GROUP_BIAS];

	for (int64_t h = 0; h < t->shape.dim[1]; h++)
		for (int64_t at = q->length - q->kept; at < q->length; at++)
			q->bias[h * q->g->past + at % q->g->past] = (float)om_get(t->type, t->data, at_sequence + h * t->shape.dim[3] + at);
	return q->bias;
}

/* Of the first of the keys that are read. */
static const float *
bias_of(const struct sequence *q, int64_t low)
{
	const struct om_group_query *g = q->g;
	const om_shape *s = &q->c->in[OM_GROUP_BIAS].shape;
	const int64_t count = s->dim[1] * g->queries * s->dim[3], at = s->dim[0] == 1 ? 0 : q->b * count;

	if (has_ring_bias(q->c, g))
		return ring_bias(q, at);
	return floats_at(q->c, OM_GROUP_BIAS, at, count, q->bias)
		+ (has_lines(g) ? q->before - q->resident : q->before + g->queries - q->kept + low);
}

static const float *
sink_of(const struct sequence *q)
{
	if (!om_has_in(q->c, OM_GROUP_SINK))
		return q->g->smooth ? &no_sink : NULL;
	return floats_at(q->c, OM_GROUP_SINK, 0, q->g->heads, q->sink);
}

/* The result of queries [from, to): multiplied by the scales of values, and rounded. */
static void
give_rows(void *arg, int64_t from, int64_t to, uint32_t worker)
{
	const struct sequence *q = arg;
	const struct om_group_query *g = q->g;
	const int64_t row = g->heads * g->size, group = g->heads / g->kv;
	const om_tensor *y = &q->c->out[Y];

	(void)worker;
	for (int64_t s = from; s < to; s++) {
		float *x = q->result + s * row;
		for (int64_t i = 0; g->is_quantized[1] && i < row; i++)
			x[i] *= (float)om_group_query_scale(q->c, g, 1, i / g->size / group, i % g->size);
		om_convert(y->type, (char *)y->data + (size_t)((q->b * g->queries + s) * row) * om_dtype_bits(y->type) / 8, OM_FLOAT32, x, row, false);
	}
}

static void
attend(struct sequence *q, void *room)
{
	const om_op_context *c = q->c;
	const struct om_group_query *g = q->g;
	om_attention_batch b = attention_of(c, g);
	const int64_t all = has_lines(g) ? q->resident + g->queries : g->is_causal ? q->kept : q->resident + q->length - q->before;
	const int64_t low = g->queries == 1 && g->window > 0 && all > g->window ? all - g->window : 0;
	const int64_t row = q->b * g->kv * g->total + low, out = q->b * g->queries * g->heads * g->size;
	om_attention_data at = {.q = q->turned ? q->turned : new_row(q, 0, 0, 0, NULL),
		.k = has_lines(g) ? q->lines[0] : (const char *)c->out[NEW_KEY].data + bytes_of_rows(c, g, 0, row),
		.v = has_lines(g) ? q->lines[1] : (const char *)c->out[NEW_VALUE].data + bytes_of_rows(c, g, 1, row),
		.y = q->result ? q->result : (float *)c->out[Y].data + out, .sink = sink_of(q)};

	b.a.keys = all - low;
	if (om_has_in(c, OM_GROUP_BIAS))
		at.mask[0] = bias_of(q, low);
	om_attention_run(&b, &at, room, c->pool);
	if (q->result)
		om_for_ranges(c, g->queries, g->heads * g->size, give_rows, q);
}

/* Is every position a row of the caches of angles? */
static om_status
check_places(const struct sequence *q)
{
	for (int64_t s = 0; q->g->rotates && s < q->g->queries; s++) {
		const int64_t place = place_of(q, s);
		if (place < 0 || place >= q->c->in[OM_GROUP_COSINES].shape.dim[0])
			return om_op_fail(q->c->session, OM_RUN, q->c->op, "position %lld is out of range for cos_cache", (long long)place);
	}
	return OM_OK;
}

static float *
floats_in(char *room, uint64_t at)
{
	return (float *)(void *)(room + at);
}

static om_status
group_run(om_op_context *c)
{
	const int64_t total = *(const int32_t *)c->in[OM_GROUP_TOTAL].data;
	struct om_group_query g = *(const struct om_group_query *)c->state;
	const struct room at = room_of(c, &g);
	char *room = c->scratch;
	struct sequence q = {.c = c, .g = &g, .turned = has_turned(c, &g) ? floats_in(room, at.turned) : NULL,
		.result = has_result(c, &g) ? floats_in(room, at.result) : NULL, .lines = {room + at.lines[0], room + at.lines[1]},
		.bias = floats_in(room, at.bias), .sink = floats_in(room, at.sink), .rows = floats_in(room, at.rows)};

	if (!g.slides)
		g.total = total > g.past ? total : g.past;
	OM_TRY(om_group_query_check(c, &g));
	for (q.b = 0; q.b < g.batch; q.b++) {
		OM_TRY(om_group_query_lengths(c, &g, q.b, &q.before, &q.length));
		OM_TRY(check_places(&q));
		q.resident = om_group_query_resident(&g, q.before);
		q.kept = g.slides ? om_group_query_resident(&g, q.length) : q.before + g.queries;
		om_for_ranges(c, g.kv, g.total * g.size, update_heads, &q);
		attend(&q, room + at.attention);
	}
	return OM_OK;
}

#define KERNEL_OF(domain_of)                                                   \
	{.domain = domain_of, .name = "GroupQueryAttention", .is_fast = true,  \
	 .types = {OF(FLOAT32) | OF(FLOAT16) | OF(BFLOAT16)},                  \
	 .state_bytes = sizeof(struct om_group_query), .supports = group_supports, .prepare = om_group_query_prepare, \
	 .workspace = group_workspace, .run = group_run}

const om_kernel om_kernels_fast_group_query[] = {
	KERNEL_OF("com.microsoft"),
	KERNEL_OF(OM_CPU_DOMAIN),
	{0}
};
