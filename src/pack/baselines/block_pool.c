/* Memory sharing by a pool of blocks whose buffers are dead.
 *
 * Walk the steps in order.  What begins at a step takes a block from the pool,
 * the tightest that will do, or else a new one; what is over before goes back.
 * Blocks are whole: they are never split, joined or moved.
 */
#include <config.h>

#include <stdlib.h>

#include "base/guard.h"
#include "pack/baselines/interference.h"
#include "pack/baselines/strategies.h"

struct block {
	uint64_t bytes, offset;
	uint32_t kind;          /* of what it holds */
	uint32_t free_at;       /* step after the last one of what it holds */
};

struct pool {
	const om_interfere *g;
	const uint32_t *kind;
	uint64_t align;
	struct block *block;
	uint32_t nblock;
	uint32_t *of;           /* by buffer: its block */
	uint32_t *slot;         /* blocks in the pool */
	uint32_t nslot;
	uint32_t *busy;         /* the others, as a heap by free_at */
	uint32_t nbusy;
};

/* ---- Blocks in use, those that get free first on top. ---- */

static bool
is_sooner(const struct pool *w, uint32_t a, uint32_t b)
{
	if (w->block[a].free_at != w->block[b].free_at)
		return w->block[a].free_at < w->block[b].free_at;
	return a < b;
}

static void
push_busy(struct pool *w, uint32_t block)
{
	uint32_t k = w->nbusy++;

	for (; k && is_sooner(w, block, w->busy[(k - 1) / 2]); k = (k - 1) / 2)
		w->busy[k] = w->busy[(k - 1) / 2];
	w->busy[k] = block;
}

static uint32_t
pop_busy(struct pool *w)
{
	const uint32_t top = w->busy[0], last = w->busy[--w->nbusy];
	uint32_t k = 0;

	for (uint32_t child; (child = 2 * k + 1) < w->nbusy; k = child) {
		if (child + 1 < w->nbusy && is_sooner(w, w->busy[child + 1], w->busy[child]))
			child++;
		if (!is_sooner(w, w->busy[child], last))
			break;
		w->busy[k] = w->busy[child];
	}
	w->busy[k] = last;
	return top;
}

/* ---- The pool. ---- */

static uint64_t
rounded(const struct pool *w, uint32_t buf)
{
	return (w->g->buf[buf].bytes + w->align - 1) & ~(w->align - 1);
}

static bool
will_do(const struct pool *w, const struct block *block, uint32_t buf)
{
	if (w->kind && block->kind != w->kind[buf])
		return false;
	return block->bytes >= rounded(w, buf);
}

static uint32_t
take(struct pool *w, uint32_t buf)
{
	uint32_t best = w->nslot;

	for (uint32_t k = 0; k < w->nslot; k++) {
		const struct block *block = &w->block[w->slot[k]];
		if (will_do(w, block, buf) && (best == w->nslot || block->bytes < w->block[w->slot[best]].bytes))
			best = k;
	}
	if (best == w->nslot) {
		w->block[w->nblock].bytes = rounded(w, buf);
		return w->nblock++;
	}
	const uint32_t block = w->slot[best];
	w->slot[best] = w->slot[--w->nslot];
	return block;
}

static void
walk(struct pool *w)
{
	for (uint32_t k = 0; k < w->g->npiece; k++) {
		const om_segment_of *p = &w->g->piece[k];
		while (w->nbusy && w->block[w->busy[0]].free_at <= p->lower)
			w->slot[w->nslot++] = pop_busy(w);
		w->of[p->buf] = take(w, p->buf);
		struct block *block = &w->block[w->of[p->buf]];
		block->kind = w->kind ? w->kind[p->buf] : 0;
		block->free_at = p->upper;
		push_busy(w, w->of[p->buf]);
	}
}

static void
place(struct pool *w, om_buffer *buf)
{
	uint64_t height = 0;

	for (uint32_t k = 0; k < w->nblock; k++) {
		w->block[k].offset = height;
		height += w->block[k].bytes;
	}
	for (uint32_t k = 0; k < w->g->n; k++)
		buf[k].offset = buf[k].bytes ? w->block[w->of[k]].offset : 0;
}

static om_status
share_pool_guarded(om_session *s, om_buffer *buf, uint32_t n, const uint32_t *kind, om_baseline_result *r)
{
	om_arena *mem = om_arena_new();
	uint64_t align;
	const om_status st = om_baseline_check(s, buf, n, &align);

	if (st == OM_OK) {
		struct pool w = {.kind = kind, .align = align,
			.g = om_interfere_new(buf, n, NULL, true, mem),
			.block = OM_NEWN(mem, struct block, n), .of = OM_NEWN(mem, uint32_t, n),
			.slot = OM_NEWN(mem, uint32_t, n), .busy = OM_NEWN(mem, uint32_t, n)};
		walk(&w);
		place(&w, buf);
		om_baseline_rate(buf, n, NULL, "pool", r);
		r->blocks = w.nblock;
	}
	om_arena_free(mem);
	return st;
}

om_status
om_baseline_pool(om_session *s, om_buffer *buf, uint32_t n, const uint32_t *kind, om_baseline_result *r)
{
	OM_GUARDED(s, share_pool_guarded(s, buf, n, kind, r));
}

/* ---- Rows. ---- */

static om_status
by_kind(om_session *s, const om_share_problem *p, om_baseline_result *r)
{
	return om_baseline_pool(s, p->buf, p->n, p->kind, r);
}

static om_status
by_size(om_session *s, const om_share_problem *p, om_baseline_result *r)
{
	return om_baseline_pool(s, p->buf, p->n, NULL, r);
}

const om_strategy om_strategies_block_pool[] = {
	{"pool0", "blocks of dead variables of the same shape and type", false, by_kind},
	{"pool", "blocks of dead variables of at least the size, the tightest first", false, by_size},
	{0}
};
