/* SPDX-License-Identifier: Apache-2.0 */
/* Splits storages into segments whose bytes have a common lifetime.
 *
 * A storage is cut wherever a value begins or ends in it, and wherever another storage is cut that may
 * be computed over it or be a sub-buffer of it.  So a value is a sequence of segments, and a value
 * that is computed over it is a sequence of as many segments of the same sizes.
 *
 * A value that may be computed as a sub-buffer of a later value shares the segments of that part from
 * the start: the op that computes the sub-buffer is the first writer of the segment.  This never
 * requires more than separate storage, whatever the order: while the sub-buffer is live, so is the
 * segment, and both at once count once.
 *
 * Cuts only propagate between values of equal size, to offsets that are cut in one of them already.  A
 * limit on the number of cuts bounds cyclic propagation, and values that contain another one twice, which
 * contains another one twice, and so on: it holds for each cut.
 */
#include <config.h>

#include <string.h>

#include "alloc/live_ranges_split.h"
#include "alloc/op_facts.h"
#include "onnxmem/plan.h"

#define NONE UINT32_MAX
enum { MAX_PASSES = 64 };

/* The storage of a value that is not stored in another. */
struct store {
	const om_value *root;
	uint64_t *cut;           /* sorted */
	size_t ncut, capcut;
	uint32_t first;          /* index of its first segment */
};

/* Byte ranges of equal size in two stores: the first value may be computed over, or into, the second. */
struct pair {
	uint32_t s[2];
	uint64_t at[2], bytes;
	const om_value *v[2];
};

struct pairs {
	struct pair *list;
	size_t n, cap;
};

struct cutter {
	const om_prog *p;
	const om_buffers *b;
	om_arena *mem;
	om_segments *q;
	struct pairs over, into;
	size_t ncut;
	size_t most;             /* cuts; with more, the segments are not complete */
};

struct om_segments_index {
	const om_buffers *b;
	struct store *store;
	uint32_t nstore;
	uint32_t *of_value;      /* by id of a root: index of its store */
	uint32_t *same;          /* by segment: union-find link to its representative */
};

/* The store that contains `v`, and the offset in it; NONE: not planned. */
static uint32_t
store_of(const struct om_segments_index *x, const om_value *v, uint64_t *at)
{
	if (x->b->of_value[v->id] == NONE)
		return NONE;
	*at = x->b->offset[v->id];
	return x->of_value[x->b->root[v->id]->id];
}

static void
add_stores(struct cutter *c)
{
	const om_prog *p = c->p;
	struct om_segments_index *x = c->q->index;

	x->store = OM_NEWN(c->mem, struct store, p->nvalue);
	x->of_value = OM_NEWN(c->mem, uint32_t, p->nvalue);
	for (uint32_t k = 0; k < p->nvalue; k++) {
		const om_value *v = p->values[k];
		x->of_value[k] = NONE;
		if (c->b->of_value[k] == NONE || c->b->assignment->backing[k].source)
			continue;
		x->of_value[k] = x->nstore;
		x->store[x->nstore++] = (struct store){.root = v};
	}
}

/* ---- Pairs that may share bytes. ---- */

static void
add_pair(struct cutter *c, struct pairs *to, const om_value *a, const om_value *b, uint64_t offset)
{
	struct pair pair = {.bytes = om_value_bytes(a), .v = {a, b}};

	pair.s[0] = store_of(c->q->index, a, &pair.at[0]);
	pair.s[1] = store_of(c->q->index, b, &pair.at[1]);
	pair.at[1] += offset;
	if (pair.s[0] == NONE || pair.s[1] == NONE || pair.s[0] == pair.s[1])
		return;
	if (to == &c->over && om_value_bytes(b) != pair.bytes)
		c->q->is_open[a->id] = true;
	else
		OM_PUSH(c->mem, to->list, to->n, to->cap, pair);
}

/* Is `v` stored in a value that is computed by an op of the block? */
static bool
is_made_in(const struct cutter *c, const om_block *b, const om_value *v)
{
	const om_value *root = c->b->root[v->id];

	return !v->is_const && root->def && root->block == b;
}

static void
add_pairs_of(struct cutter *c, const om_op *op)
{
	const om_op_facts *f = c->b->assignment->facts;
	uint64_t offset;

	for (uint32_t i = 0; i < op->nin; i++) {
		if (!op->in[i])
			continue;
		if (om_op_facts_subbuffer(f, op, i, &offset) && is_made_in(c, op->block, op->in[i]))
			add_pair(c, &c->into, op->in[i], op->out[0], offset);
		for (uint32_t k = 0; k < op->nout; k++)
			if (op->out[k] && om_op_facts_inplace(f, op, k, i))
				add_pair(c, &c->over, op->out[k], op->in[i], 0);
	}
}

static void
add_pairs(struct cutter *c)
{
	for (const om_block *b = c->p->first; b; b = b->next)
		for (const om_op *op = b->first; op; op = op->next)
			if (!op->is_folded)
				add_pairs_of(c, op);
}

/* ---- Cuts. ---- */

/* Number of cuts below `at`. */
static size_t
cuts_before(const struct store *t, uint64_t at)
{
	size_t lo = 0, hi = t->ncut;

	while (lo < hi) {
		const size_t mid = (lo + hi) / 2;
		if (t->cut[mid] < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool
cut(struct cutter *c, uint32_t s, uint64_t at)
{
	struct store *t = &c->q->index->store[s];
	const size_t k = cuts_before(t, at);

	if (k < t->ncut && t->cut[k] == at)
		return false;
	OM_PUSH(c->mem, t->cut, t->ncut, t->capcut, 0);
	memmove(&t->cut[k + 1], &t->cut[k], (t->ncut - 1 - k) * sizeof *t->cut);
	t->cut[k] = at;
	c->ncut++;
	return true;
}

static void
cut_at_values(struct cutter *c)
{
	for (uint32_t k = 0; k < c->p->nvalue; k++) {
		uint64_t at;
		const uint32_t s = store_of(c->q->index, c->p->values[k], &at);
		if (s == NONE)
			continue;
		cut(c, s, at);
		cut(c, s, at + om_value_bytes(c->p->values[k]));
	}
	for (size_t k = 0; k < c->into.n; k++) {
		const struct pair *pair = &c->into.list[k];
		cut(c, pair->s[1], pair->at[1]);
		cut(c, pair->s[1], pair->at[1] + pair->bytes);
	}
}

static bool
spread(struct cutter *c, const struct pair *pair, int from)
{
	const struct store *t = &c->q->index->store[pair->s[from]];
	const int to = !from;
	bool changed = false;

	for (size_t k = cuts_before(t, pair->at[from] + 1); k < t->ncut; k++) {
		if (t->cut[k] >= pair->at[from] + pair->bytes || c->ncut > c->most)
			break;
		changed |= cut(c, pair->s[to], t->cut[k] - pair->at[from] + pair->at[to]);
	}
	return changed;
}

static bool
spread_all(struct cutter *c, const struct pairs *pairs)
{
	bool changed = false;

	for (size_t k = 0; k < pairs->n; k++) {
		changed |= spread(c, &pairs->list[k], 0);
		changed |= spread(c, &pairs->list[k], 1);
	}
	return changed;
}

static void
spread_cuts(struct cutter *c)
{
	bool changed = true;

	c->most = 4 * c->ncut + 1024;
	for (int pass = 0; changed && pass < MAX_PASSES && c->ncut <= c->most; pass++) {
		changed = spread_all(c, &c->over);
		changed |= spread_all(c, &c->into);
	}
	c->q->is_complete = !changed && c->ncut <= c->most;
}

/* ---- Segments. ---- */

static void
add_pieces(struct cutter *c)
{
	struct om_segments_index *x = c->q->index;
	om_segments *q = c->q;

	q->piece = OM_NEWN(c->mem, om_segment, c->ncut);
	for (uint32_t s = 0; s < x->nstore; s++) {
		struct store *t = &x->store[s];
		t->first = q->n;
		for (size_t k = 1; k < t->ncut; k++)
			q->piece[q->n++] = (om_segment){.bytes = t->cut[k] - t->cut[k - 1]};
		if (t->ncut == 2)
			q->piece[t->first].bytes = c->b->buf[c->b->of_value[t->root->id]].bytes;
	}
	x->same = OM_NEWN(c->mem, uint32_t, q->n);
	for (uint32_t k = 0; k < q->n; k++)
		x->same[k] = k;
}

static uint32_t
stands_for(struct om_segments_index *x, uint32_t k)
{
	for (; x->same[k] != k; k = x->same[k])
		x->same[k] = x->same[x->same[k]];
	return k;
}

/* A value can be a sub-buffer of one other value only. */
static bool
is_part(const struct cutter *c, const bool *up, const struct pair *pair)
{
	const struct store *t = &c->q->index->store[pair->s[0]];
	const size_t from = cuts_before(t, pair->at[0]), to = cuts_before(t, pair->at[0] + pair->bytes);

	for (size_t k = from; k < to; k++)
		if (up[t->first + k])
			return true;
	return false;
}

static void
join(struct cutter *c, bool *up, const struct pair *pair)
{
	struct om_segments_index *x = c->q->index;
	const struct store *part = &x->store[pair->s[0]], *whole = &x->store[pair->s[1]];
	const uint32_t a = part->first + (uint32_t)cuts_before(part, pair->at[0]);
	const uint32_t b = whole->first + (uint32_t)cuts_before(whole, pair->at[1]);
	const uint32_t end = part->first + (uint32_t)cuts_before(part, pair->at[0] + pair->bytes);

	for (uint32_t k = 0; a + k < end; k++) {
		const uint32_t of = stands_for(x, b + k), at = stands_for(x, a + k);
		up[a + k] = true;
		x->same[of] = at;
		if (c->q->piece[of].bytes < c->q->piece[at].bytes)
			c->q->piece[at].bytes = c->q->piece[of].bytes;
	}
}

static void
join_parts(struct cutter *c)
{
	bool *up = OM_NEWN(c->mem, bool, c->q->n);

	for (size_t k = 0; k < c->into.n && c->q->is_complete; k++) {
		const struct pair *pair = &c->into.list[k];
		if (is_part(c, up, pair))
			c->q->is_open[pair->v[0]->id] = true;
		else
			join(c, up, pair);
	}
	for (uint32_t k = 0; k < c->q->n; k++)
		c->q->index->same[k] = stands_for(c->q->index, k);
}

/* A value has as many bytes as the one it overwrites: equalize the segment sizes, dropping the
 * rounding if one of them is not rounded. */
static bool
level(struct cutter *c, const struct pair *pair)
{
	struct om_segments_index *x = c->q->index;
	const struct store *a = &x->store[pair->s[0]], *b = &x->store[pair->s[1]];
	const size_t i = a->first + cuts_before(a, pair->at[0]), j = b->first + cuts_before(b, pair->at[1]);
	const size_t end = a->first + cuts_before(a, pair->at[0] + pair->bytes);
	bool changed = false;

	for (size_t k = 0; i + k < end; k++) {
		om_segment *made = &c->q->piece[x->same[i + k]], *needed = &c->q->piece[x->same[j + k]];
		if (made->bytes == needed->bytes)
			continue;
		changed = true;
		if (made->bytes < needed->bytes)
			needed->bytes = made->bytes;
		else
			made->bytes = needed->bytes;
	}
	return changed;
}

static void
level_all(struct cutter *c)
{
	bool changed = c->q->is_complete;

	while (changed) {
		changed = false;
		for (size_t k = 0; k < c->over.n; k++)
			changed |= level(c, &c->over.list[k]);
	}
}

/* The producer of a segment is the first op that computes a value containing it. */
static void
add_producers(struct cutter *c)
{
	const om_assignment *a = c->b->assignment;
	const om_block *graph = c->p->first;

	for (uint32_t k = 0; k < graph->nparam; k++) {
		uint32_t n;
		for (const uint32_t *piece = om_segments_of(c->q, graph->param[k], &n); n; n--)
			c->q->piece[piece[n - 1]].is_input = true;
	}
	for (const om_block *b = c->p->first; b; b = b->next) {
		om_op **ops = a->schedule->ops[b->id];
		for (uint32_t at = b->nop; at-- > 0;)
			for (uint32_t k = 0; k < ops[at]->nout; k++) {
				const om_value *v = ops[at]->out[k];
				uint32_t n;
				if (!v || a->backing[v->id].source)
					continue;
				for (const uint32_t *piece = om_segments_of(c->q, v, &n); n; n--)
					c->q->piece[piece[n - 1]].producer = ops[at];
			}
	}
}

const uint32_t *
om_segments_of(const om_segments *q, const om_value *v, uint32_t *n)
{
	uint64_t at;
	const uint32_t s = store_of(q->index, v, &at);

	*n = 0;
	if (s == NONE)
		return NULL;
	const struct store *t = &q->index->store[s];
	const size_t from = cuts_before(t, at);
	*n = (uint32_t)(cuts_before(t, at + om_value_bytes(v)) - from);
	return &q->index->same[t->first + from];
}

om_segments *
om_segments_new(const om_prog *p, const om_buffers *b, om_arena *mem)
{
	om_segments *q = OM_NEW(mem, om_segments);
	struct cutter c = {.p = p, .b = b, .mem = mem, .q = q};

	q->index = OM_NEW(mem, struct om_segments_index);
	q->index->b = b;
	q->is_open = OM_NEWN(mem, bool, p->nvalue);
	add_stores(&c);
	add_pairs(&c);
	cut_at_values(&c);
	spread_cuts(&c);
	add_pieces(&c);
	join_parts(&c);
	level_all(&c);
	add_producers(&c);
	return q;
}
