/* SPDX-License-Identifier: Apache-2.0 */
/* GroupQueryAttention of float32: new rows are written to the present cache, which is then read where it is.
 *
 * The queries of the heads that share keys are rows of one attention when there is one query each, so that keys and
 * values are read once.  A present cache that is computed over the past one receives nothing but the new rows.
 *
 * A ring has the rows of its positions in another order, but as many as the window has: one query reads it where it is.
 * For several queries the rows before and the new ones are collected in workspace, in order; for one, its bias is put in the order of the ring. */
#include <config.h>

#include <string.h>

#include "base/shape.h"
#include "ir/query.h"
#include "kernels/cpu/attention.h"
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
	float *turned;            /* rotated queries, (queries, heads, size); NULL: they are not rotated */
	float *lines[2];          /* rows of keys and values in order, (kv, past + queries, size); NULL: they are read in the cache */
	float *bias;              /* of a query, as the rows of a ring, (heads or 1, past) */
};

static const float no_sink = 0;   /* of a smooth softmax */

static bool
group_supports(const om_op_context *c)
{
	struct om_group_query g;

	return om_group_query_read(c, &g) == OM_OK && om_has_out(c, NEW_KEY) && om_has_out(c, NEW_VALUE) && !g.is_quantized[0]
	    && !g.is_quantized[1] && g.batch > 0 && g.queries > 0 && g.size > 0
	    && (g.is_ring ? g.past == g.window : !(g.slides && g.queries > 1));
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
	const int64_t given = g->rotates ? row : (g->packed ? g->heads + 2 * g->kv : g->heads) * size;
	const om_shape *bias = om_has_in(c, OM_GROUP_BIAS) ? &c->in[OM_GROUP_BIAS].shape : NULL;
	om_attention_batch b = {.rank = 2, .dim = {g->kv, g->queries > 1 ? group : 1}};
	om_attention *a = &b.a;

	a->rows = g->queries > 1 ? g->queries : group;
	a->depth = a->value_depth = size;
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
turned_bytes(const struct om_group_query *g)
{
	return g->rotates ? om_piece_size((uint64_t)(g->queries * g->heads * g->size) * sizeof(float)) : 0;
}

/* Of the keys or values of a sequence in order. */
static uint64_t
line_bytes(const struct om_group_query *g)
{
	return has_lines(g) ? om_piece_size((uint64_t)(g->kv * rows_of_line(g) * g->size) * sizeof(float)) : 0;
}

static uint64_t
bias_bytes(const om_op_context *c, const struct om_group_query *g)
{
	return has_ring_bias(c, g) ? om_piece_size((uint64_t)(om_in_dim(c, OM_GROUP_BIAS, 1) * g->past) * sizeof(float)) : 0;
}

/* More keys than are in a block take no more workspace. */
static uint64_t
group_workspace(const om_op_context *c)
{
	const struct om_group_query *g = c->state;
	om_attention_batch b = attention_of(c, g);

	b.a.keys = g->is_open ? OM_ATTENTION_KEYS : rows_of_line(g);
	return om_size_sum(om_size_sum(om_size_sum(turned_bytes(g), bias_bytes(c, g)), 2 * line_bytes(g)), om_attention_workspace(&b.a, om_call_workers(c)));
}

/* ---- Rows. ---- */

/* Row `s` of head `h` of operand `k`: 0 queries, 1 keys, 2 values. */
static const float *
new_row(const struct sequence *q, int k, int64_t s, int64_t h)
{
	const struct om_group_query *g = q->g;
	const int64_t heads = k == 0 ? g->heads : g->kv, all = g->packed ? g->heads + 2 * g->kv : heads;
	const int64_t first = !g->packed || k == 0 ? 0 : k == 1 ? g->heads : g->heads + g->kv;

	return (const float *)q->c->in[g->packed ? OM_GROUP_QUERY : OM_GROUP_QUERY + k].data
		+ ((q->b * g->queries + s) * all + first + h) * g->size;
}

static int64_t
place_of(const struct sequence *q, int64_t s)
{
	const om_op_context *c = q->c;

	return om_has_in(c, OM_GROUP_PLACES) ? ((const int64_t *)c->in[OM_GROUP_PLACES].data)[q->b * q->g->queries + s] : q->before + s;
}

/* Copy a row, rotated by the position of `s`. */
static void
turn(const struct sequence *q, int64_t s, const float *x, float *y)
{
	const struct om_group_query *g = q->g;
	const int64_t half = g->rotates ? q->c->in[OM_GROUP_COSINES].shape.dim[1] : 0, at = g->rotates ? place_of(q, s) * half : 0;
	const float *cosine = g->rotates ? (const float *)q->c->in[OM_GROUP_COSINES].data + at : NULL;
	const float *sine = g->rotates ? (const float *)q->c->in[OM_GROUP_SINES].data + at : NULL;
	const int64_t step = g->interleaved ? 2 : 1, other = g->interleaved ? 1 : half;

	for (int64_t k = 0; k < half; k++) {
		const float a = x[k * step], b = x[k * step + other];
		y[k * step] = cosine[k] * a - sine[k] * b;
		y[k * step + other] = sine[k] * a + cosine[k] * b;
	}
	memcpy(y + 2 * half, x + 2 * half, (size_t)(g->size - 2 * half) * sizeof *y);
}

/* Rows [from, end) of a present cache become those of the past one, and zeros. */
static void
leave_rows(const struct om_group_query *g, float *to, const float *past, int64_t from, int64_t end)
{
	const int64_t last = past ? g->past : 0, stay = last < from ? from : last < end ? last : end;

	if (from >= end)
		return;
	if (stay > from && to != past)
		memcpy(to + from * g->size, past + from * g->size, (size_t)((stay - from) * g->size) * sizeof *to);
	memset(to + stay * g->size, 0, (size_t)((end - stay) * g->size) * sizeof *to);
}

/* The rows of the past that stay, of a head of keys or values. */
static void
keep_rows(const struct sequence *q, float *to, const float *past)
{
	const struct om_group_query *g = q->g;
	const int64_t new = g->slides ? 1 : g->queries, old = q->kept - new;
	const int64_t used = q->kept > q->resident ? q->kept : q->resident;

	if (old && (to != past || old != q->resident))
		memmove(to, past + (q->resident - old) * g->size, (size_t)(old * g->size) * sizeof *to);
	memset(to + q->kept * g->size, 0, (size_t)((used - q->kept) * g->size) * sizeof *to);
	leave_rows(g, to, past, used, g->total);
}

/* Write the new rows of head `h` of operand `k`, 1 keys or 2 values, from row `first` on. */
static void
write_rows(const struct sequence *q, int k, int64_t h, int64_t first, float *y)
{
	const struct om_group_query *g = q->g;

	for (int64_t s = 0; s < g->queries; s++)
		if (k == 1)
			turn(q, s, new_row(q, k, s, h), y + (first + s) * g->size);
		else
			memcpy(y + (first + s) * g->size, new_row(q, k, s, h), (size_t)g->size * sizeof *y);
}

/* Copy the rows of the positions [position, position + n) of a ring, which begin at row `row` of the others, there and back. */
static void
copy_ring(const struct om_group_query *g, float *to, const float *from, int64_t position, int64_t n, bool is_to)
{
	for (int64_t i = 0, some; i < n; i += some) {
		const int64_t row = (position + i) % g->past;
		some = g->past - row < n - i ? g->past - row : n - i;
		memcpy(to + (is_to ? row : i) * g->size, from + (is_to ? i : row) * g->size, (size_t)(some * g->size) * sizeof *to);
	}
}

/* A ring: past rows that are elsewhere are copied, then new rows replace those of the same place. */
static void
update_ring(const struct sequence *q, int k, int64_t h, float *y, const float *past)
{
	const struct om_group_query *g = q->g;
	float *line = has_lines(g) ? q->lines[k - 1] + h * rows_of_line(g) * g->size : NULL;

	if (line) {
		copy_ring(g, line, past, q->before - q->resident, q->resident, false);
		write_rows(q, k, h, q->resident, line);
	}
	if (y != past)
		memcpy(y, past, (size_t)(g->past * g->size) * sizeof *y);
	if (line)
		copy_ring(g, y, line + (q->resident + q->length - q->before - q->kept) * g->size, q->length - q->kept, q->kept, true);
	else
		write_rows(q, k, h, (q->length - 1) % g->past, y);
}

static void
update_heads(void *arg, int64_t from, int64_t to, uint32_t worker)
{
	const struct sequence *q = arg;
	const struct om_group_query *g = q->g;
	const int64_t group = g->heads / g->kv, first = q->kept - (g->slides ? 1 : g->queries);

	(void)worker;
	for (int64_t h = from; h < to; h++) {
		for (int k = 1; k <= 2; k++) {
			const om_tensor *past = &q->c->in[OM_GROUP_PAST_KEY + k - 1];
			float *y = (float *)q->c->out[NEW_KEY + k - 1].data + (q->b * g->kv + h) * g->total * g->size;
			const float *x = om_has_in(q->c, OM_GROUP_PAST_KEY)
				? (const float *)past->data + (q->b * g->kv + h) * g->past * g->size : NULL;
			if (g->is_ring) {
				update_ring(q, k, h, y, x);
				continue;
			}
			keep_rows(q, y, x);
			write_rows(q, k, h, first, y);
		}
		for (int64_t i = h * group * g->queries; q->turned && i < (h + 1) * group * g->queries; i++) {
			const int64_t head = i / g->queries, s = i % g->queries;
			turn(q, s, new_row(q, 0, s, head), q->turned + (s * g->heads + head) * g->size);
		}
	}
}

/* ---- Attention. ---- */

/* Of the first of the keys that are read. */
static const float *
bias_of(const struct sequence *q, int64_t low)
{
	const struct om_group_query *g = q->g;
	const om_shape *s = &q->c->in[OM_GROUP_BIAS].shape;
	const float *x = (const float *)q->c->in[OM_GROUP_BIAS].data + (s->dim[0] == 1 ? 0 : q->b * s->dim[1] * g->queries * s->dim[3]);

	if (has_lines(g))
		return x + q->before - q->resident;
	if (!has_ring_bias(q->c, g))
		return x + q->before + g->queries - q->kept + low;
	for (int64_t h = 0; h < s->dim[1]; h++)
		for (int64_t at = q->length - q->kept; at < q->length; at++)
			q->bias[h * g->past + at % g->past] = x[h * s->dim[3] + at];
	return q->bias;
}

static void
attend(const struct sequence *q, void *room)
{
	const om_op_context *c = q->c;
	const struct om_group_query *g = q->g;
	om_attention_batch b = attention_of(c, g);
	const int64_t all = has_lines(g) ? q->resident + g->queries : g->is_causal ? q->kept : q->resident + q->length - q->before;
	const int64_t low = g->queries == 1 && g->window > 0 && all > g->window ? all - g->window : 0;
	const int64_t cache = q->b * g->kv * g->total * g->size + low * g->size, out = q->b * g->queries * g->heads * g->size;
	om_attention_data at = {.q = q->turned ? q->turned : new_row(q, 0, 0, 0),
		.k = has_lines(g) ? q->lines[0] : (const float *)c->out[NEW_KEY].data + cache,
		.v = has_lines(g) ? q->lines[1] : (const float *)c->out[NEW_VALUE].data + cache,
		.y = (float *)c->out[Y].data + out,
		.sink = om_has_in(c, OM_GROUP_SINK) ? c->in[OM_GROUP_SINK].data : g->smooth ? &no_sink : NULL};

	b.a.keys = all - low;
	if (om_has_in(c, OM_GROUP_BIAS))
		at.mask[0] = bias_of(q, low);
	om_attention_run(&b, &at, room, c->pool);
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

static om_status
group_run(om_op_context *c)
{
	const int64_t total = *(const int32_t *)c->in[OM_GROUP_TOTAL].data;
	struct om_group_query g = *(const struct om_group_query *)c->state;
	struct sequence q = {.c = c, .g = &g, .turned = g.rotates ? c->scratch : NULL};
	char *lines = (char *)c->scratch + turned_bytes(&g), *bias = lines + 2 * line_bytes(&g), *room = bias + bias_bytes(c, &g);

	q.lines[0] = (float *)(void *)lines;
	q.lines[1] = (float *)(void *)(lines + line_bytes(&g));
	q.bias = (float *)(void *)bias;
	if (!g.slides)
		g.total = total > g.past ? total : g.past;
	OM_TRY(om_group_query_check(c, &g));
	for (q.b = 0; q.b < g.batch; q.b++) {
		OM_TRY(om_group_query_lengths(c, &g, q.b, &q.before, &q.length));
		OM_TRY(check_places(&q));
		q.resident = om_group_query_resident(&g, q.before);
		q.kept = g.slides ? om_group_query_resident(&g, q.length) : q.before + g.queries;
		om_for_ranges(c, g.kv, g.total * g.size, update_heads, &q);
		attend(&q, room);
	}
	return OM_OK;
}

#define KERNEL_OF(domain_of)                                                   \
	{.domain = domain_of, .name = "GroupQueryAttention", .is_fast = true,  \
	 .types = {OF(FLOAT32), OF(FLOAT32), OF(FLOAT32), OF(FLOAT32), OF(FLOAT32), OF(INT32), OF(INT32)}, \
	 .state_bytes = sizeof(struct om_group_query), .supports = group_supports, .prepare = om_group_query_prepare, \
	 .workspace = group_workspace, .run = group_run}

const om_kernel om_kernels_fast_group_query[] = {
	KERNEL_OF("com.microsoft"),
	KERNEL_OF(OM_CPU_DOMAIN),
	{0}
};
