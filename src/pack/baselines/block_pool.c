/* SPDX-License-Identifier: Apache-2.0 */
/* Memory sharing by a pool of free blocks.
 *
 * The steps are processed in order.  A buffer that begins takes a block from the
 * pool, the smallest that fits, or else a new one; the block of a buffer that has
 * ended returns to the pool.  Blocks are never split, merged or moved.
 */
#include <config.h>

#include <stdlib.h>

#include "base/guard.h"
#include "pack/baselines/baselines.h"
#include "pack/baselines/interference.h"
#include "pack/baselines/strategies.h"

struct block {
	uint64_t bytes, offset;
	uint32_t kind;          /* of its current buffer */
	uint32_t free_at;       /* the step after the last one of its buffer */
};

struct block_pool {
	const om_interference_graph *g;
	const uint32_t *kind;
	uint64_t align;
	struct block *block;
	uint32_t nblock;
	uint32_t *block_of;     /* by buffer: its block */
	uint32_t *slot;         /* the free blocks */
	uint32_t nslot;
	uint32_t *busy;         /* the others, as a heap by free_at */
	uint32_t nbusy;
};

/* ---- Blocks in use; the one that gets free first is on top. ---- */

static bool
is_sooner(const struct block_pool *w, uint32_t a, uint32_t b)
{
	if (w->block[a].free_at != w->block[b].free_at)
		return w->block[a].free_at < w->block[b].free_at;
	return a < b;
}

static void
push_busy(struct block_pool *w, uint32_t block)
{
	uint32_t k = w->nbusy++;

	for (; k && is_sooner(w, block, w->busy[(k - 1) / 2]); k = (k - 1) / 2)
		w->busy[k] = w->busy[(k - 1) / 2];
	w->busy[k] = block;
}

static uint32_t
pop_busy(struct block_pool *w)
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
round_up(const struct block_pool *w, uint32_t buf)
{
	return (w->g->buf[buf].bytes + w->align - 1) & ~(w->align - 1);
}

static bool
fits(const struct block_pool *w, const struct block *block, uint32_t buf)
{
	if (w->kind && block->kind != w->kind[buf])
		return false;
	return block->bytes >= round_up(w, buf);
}

static uint32_t
take_block(struct block_pool *w, uint32_t buf)
{
	uint32_t best = w->nslot;

	for (uint32_t k = 0; k < w->nslot; k++) {
		const struct block *block = &w->block[w->slot[k]];
		if (fits(w, block, buf) && (best == w->nslot || block->bytes < w->block[w->slot[best]].bytes))
			best = k;
	}
	if (best == w->nslot) {
		w->block[w->nblock].bytes = round_up(w, buf);
		return w->nblock++;
	}
	const uint32_t block = w->slot[best];
	w->slot[best] = w->slot[--w->nslot];
	return block;
}

static void
assign_blocks(struct block_pool *w)
{
	for (uint32_t k = 0; k < w->g->nlifetime; k++) {
		const om_buffer_lifetime *p = &w->g->lifetime[k];
		while (w->nbusy && w->block[w->busy[0]].free_at <= p->lower)
			w->slot[w->nslot++] = pop_busy(w);
		w->block_of[p->buf] = take_block(w, p->buf);
		struct block *block = &w->block[w->block_of[p->buf]];
		block->kind = w->kind ? w->kind[p->buf] : 0;
		block->free_at = p->upper;
		push_busy(w, w->block_of[p->buf]);
	}
}

static void
set_offsets(struct block_pool *w, om_buffer *buf)
{
	uint64_t height = 0;

	for (uint32_t k = 0; k < w->nblock; k++) {
		w->block[k].offset = height;
		height += w->block[k].bytes;
	}
	for (uint32_t k = 0; k < w->g->n; k++)
		buf[k].offset = buf[k].bytes ? w->block[w->block_of[k]].offset : 0;
}

static om_status
pool_guarded(om_session *s, om_buffer *buf, uint32_t n, const uint32_t *kind, om_baseline_result *r)
{
	om_arena *mem = om_arena_new();
	uint64_t align;
	const om_status st = om_baseline_check(s, buf, n, &align);

	if (st == OM_OK) {
		struct block_pool w = {.kind = kind, .align = align,
			.g = om_interference_graph_new(buf, n, NULL, true, mem),
			.block = OM_NEWN(mem, struct block, n), .block_of = OM_NEWN(mem, uint32_t, n),
			.slot = OM_NEWN(mem, uint32_t, n), .busy = OM_NEWN(mem, uint32_t, n)};
		assign_blocks(&w);
		set_offsets(&w, buf);
		om_baseline_evaluate(buf, n, NULL, "pool", r);
		r->blocks = w.nblock;
	}
	om_arena_free(mem);
	return st;
}

om_status
om_baseline_pool(om_session *s, om_buffer *buf, uint32_t n, const uint32_t *kind, om_baseline_result *r)
{
	OM_GUARDED(s, pool_guarded(s, buf, n, kind, r));
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
	{"pool-exact", "pool of free blocks, reused for the same shape and type", false, by_kind},
	{"pool-best-fit", "pool of free blocks, the smallest that is large enough", false, by_size},
	{0}
};
