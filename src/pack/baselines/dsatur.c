/* Colours for buffers: those that interfere get different ones, and buffers of
 * one colour share a block as large as the largest of them.
 *
 * DSATUR colours next what has the most distinct colours around it, and gives
 * it the smallest that is free (D. Brelaz, New methods to color the vertices of
 * a graph, CACM 22, 1979).  Ties go to more neighbours, then more bytes, then
 * program order.  What is left lies in a heap; a buffer rises when a neighbour
 * brings it a new colour.  Every step takes one buffer out, so it ends.
 *
 * Which colours are around a buffer is kept in bits, in planes of 64 colours
 * that are made when their first colour is: n words for every 64 blocks.
 *
 * With one lifetime each, colouring in the order of birth needs no more blocks
 * than are alive at once; that is tried when a limit was missed.  Where bytes
 * are what counts, the largest come first and take the smallest block, which
 * costs nothing; DSATUR's and that by birth stay in the contest.
 */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>

#include "base/guard.h"
#include "pack/baselines/interference.h"
#include "pack/sort_keys.h"
#include "pack/baselines/strategies.h"

enum { NONE = UINT32_MAX };

enum order { BY_COLOURS, BY_BYTES, BY_BIRTH };

struct painter {
	om_interfere *g;
	om_arena *mem;
	enum order order;
	uint32_t *rank;         /* by buffer: in that order, the first is 0 */
	bool tightest;          /* takes the last free block, not the first */
	uint32_t *colour;       /* by buffer */
	uint32_t *around;       /* by buffer: how many distinct colours */
	uint64_t **plane;
	size_t nplane, capplane;
	uint32_t *heap, *at;    /* at: by buffer, NONE when not in it */
	uint32_t nheap;
	uint32_t *near;         /* neighbours of one buffer */
	uint32_t nblock;
};

/* A colouring with what it costs. */
struct painting {
	uint32_t *colour;
	uint32_t nblock;
	uint64_t bytes;
};

/* ---- The heap of what has no colour. ---- */

static bool
is_next(const struct painter *w, uint32_t a, uint32_t b)
{
	if (w->order == BY_COLOURS && w->around[a] != w->around[b])
		return w->around[a] > w->around[b];
	return w->rank[a] < w->rank[b];
}

static void
put(struct painter *w, uint32_t k, uint32_t v)
{
	w->heap[k] = v;
	w->at[v] = k;
}

static void
rise(struct painter *w, uint32_t k)
{
	const uint32_t v = w->heap[k];

	for (; k && is_next(w, v, w->heap[(k - 1) / 2]); k = (k - 1) / 2)
		put(w, k, w->heap[(k - 1) / 2]);
	put(w, k, v);
}

static uint32_t
take_first(struct painter *w)
{
	const uint32_t first = w->heap[0], last = w->heap[--w->nheap];
	uint32_t k = 0;

	for (uint32_t child; (child = 2 * k + 1) < w->nheap; k = child) {
		if (child + 1 < w->nheap && is_next(w, w->heap[child + 1], w->heap[child]))
			child++;
		if (!is_next(w, w->heap[child], last))
			break;
		put(w, k, w->heap[child]);
	}
	put(w, k, last);
	w->at[first] = NONE;
	return first;
}

/* ---- Colours. ---- */

static uint32_t
free_colour(const struct painter *w, uint32_t v)
{
	uint32_t c = NONE;

	for (uint32_t i = 0; i < w->nplane && (w->tightest || c == NONE); i++) {
		uint64_t open = ~w->plane[i][v];
		if (w->nblock - 64 * i < 64)
			open &= (UINT64_C(1) << (w->nblock - 64 * i)) - 1;
		if (open)
			c = 64 * i + (uint32_t)(w->tightest ? 63 - __builtin_clzll(open) : __builtin_ctzll(open));
	}
	return c;
}

static uint32_t
new_colour(struct painter *w)
{
	if (w->nblock % 64 == 0) {
		uint64_t *plane = OM_NEWN(w->mem, uint64_t, w->g->n);
		OM_PUSH(w->mem, w->plane, w->nplane, w->capplane, plane);
	}
	return w->nblock++;
}

static void
paint(struct painter *w, uint32_t v)
{
	uint32_t c = free_colour(w, v);

	if (c == NONE)
		c = new_colour(w);
	w->colour[v] = c;
	for (uint32_t k = om_neighbours(w->g, v, w->near); k--;) {
		uint64_t *around = &w->plane[c / 64][w->near[k]];
		if (w->at[w->near[k]] == NONE || *around >> c % 64 & 1)
			continue;
		*around |= UINT64_C(1) << c % 64;
		w->around[w->near[k]]++;
		if (w->order == BY_COLOURS)
			rise(w, w->at[w->near[k]]);
	}
}

/* ---- Orders. ---- */

static void
rank_all(struct painter *w, const struct om_interfere *g)
{
	om_rank *key = OM_NEWN(w->mem, om_rank, g->n);

	for (uint32_t k = 0; k < g->n; k++) {
		const uint64_t bytes = g->buf[k].bytes, degree = g->degree[k];
		key[k].id = k;
		key[k].major = w->order == BY_COLOURS ? degree : w->order == BY_BYTES ? bytes
			: UINT32_MAX - g->span[k].lower;
		key[k].minor = w->order == BY_BYTES ? degree : bytes;
	}
	qsort(key, g->n, sizeof *key, om_by_rank);
	for (uint32_t k = 0; k < g->n; k++)
		w->rank[key[k].id] = k;
}

static uint64_t
block_bytes(const om_interfere *g, struct painting *p, uint64_t align, uint64_t *size)
{
	uint64_t sum = 0;

	memset(size, 0, (size_t)p->nblock * sizeof *size);
	for (uint32_t k = 0; k < g->n; k++) {
		const uint64_t bytes = (g->buf[k].bytes + align - 1) & ~(align - 1);
		if (bytes && bytes > size[p->colour[k]])
			size[p->colour[k]] = bytes;
	}
	for (uint32_t k = 0; k < p->nblock; k++)
		sum += size[k];
	return sum;
}

static struct painting
painted(om_interfere *g, enum order order, bool tightest, uint64_t align, om_arena *mem)
{
	const uint32_t n = g->n;
	struct painter w = {.g = g, .mem = mem, .order = order, .tightest = tightest,
		.rank = OM_NEWN(mem, uint32_t, n), .colour = OM_NEWN(mem, uint32_t, n),
		.around = OM_NEWN(mem, uint32_t, n), .heap = OM_NEWN(mem, uint32_t, n),
		.at = OM_NEWN(mem, uint32_t, n), .near = OM_NEWN(mem, uint32_t, n)};

	rank_all(&w, g);
	for (uint32_t k = 0; k < n; k++) {
		w.at[k] = NONE;
		if (g->buf[k].bytes == 0)
			continue;
		put(&w, w.nheap++, k);
		rise(&w, w.nheap - 1);
	}
	while (w.nheap)
		paint(&w, take_first(&w));
	struct painting p = {.colour = w.colour, .nblock = w.nblock};
	p.bytes = block_bytes(g, &p, align, OM_NEWN(mem, uint64_t, n));
	return p;
}

/* ---- Limits. ---- */

/* The most buffers alive at one step: no fewer blocks will do. */
static uint32_t
most_alive(const om_interfere *g, om_arena *mem, uint32_t *step)
{
	uint32_t *end = OM_NEWN(mem, uint32_t, g->npiece), most = 0;

	for (uint32_t k = 0; k < g->npiece; k++)
		end[k] = g->piece[k].upper;
	qsort(end, g->npiece, sizeof *end, om_by_number);
	for (uint32_t k = 0, over = 0; k < g->npiece; k++) {
		while (end[over] <= g->piece[k].lower)
			over++;
		if (k + 1 - over > most) {
			most = k + 1 - over;
			*step = g->piece[k].lower;
		}
	}
	return most;
}

static om_status
over_limit(om_session *s, const om_interfere *g, uint32_t limit, uint32_t found, om_arena *mem)
{
	uint32_t step = 0;
	const uint32_t most = g->simple ? most_alive(g, mem, &step) : 0;

	if (most > limit)
		return om_fail(s, OM_BUDGET, "%" PRIu32 " blocks cannot hold %" PRIu32
			" buffers that are alive together at step %" PRIu32, limit, most, step);
	return om_fail(s, OM_BUDGET, "found no colouring with %" PRIu32 " blocks, only one with %" PRIu32,
		limit, found);
}

/* ---- Around it. ---- */

static bool
is_better(const struct painting *a, const struct painting *b, om_color_choice choice, uint32_t limit)
{
	const bool a_fits = !limit || a->nblock <= limit, b_fits = !limit || b->nblock <= limit;

	if (a_fits != b_fits)
		return a_fits;
	if (!a_fits || choice == OM_COLOR_DSATUR)
		return a->nblock < b->nblock;
	return a->bytes < b->bytes || (a->bytes == b->bytes && a->nblock < b->nblock);
}

static void
place(om_buffer *buf, uint32_t n, const struct painting *p, uint64_t align, om_arena *mem)
{
	uint64_t *offset = OM_NEWN(mem, uint64_t, (size_t)p->nblock + 1);

	for (uint32_t k = 0; k < n; k++) {
		const uint64_t bytes = (buf[k].bytes + align - 1) & ~(align - 1);
		if (bytes && bytes > offset[p->colour[k] + 1])
			offset[p->colour[k] + 1] = bytes;
	}
	for (uint32_t k = 1; k <= p->nblock; k++)
		offset[k] += offset[k - 1];
	for (uint32_t k = 0; k < n; k++)
		buf[k].offset = buf[k].bytes ? offset[p->colour[k]] : 0;
}

static struct painting
best_painting(om_interfere *g, om_color_choice choice, uint32_t limit, uint64_t align, om_arena *mem)
{
	static const struct { enum order order; bool tightest; } more[] = {
		{BY_BYTES, true}, {BY_BYTES, false}, {BY_BIRTH, false}, {BY_BIRTH, true},
	};
	struct painting best = painted(g, BY_COLOURS, false, align, mem);

	for (size_t k = 0; k < sizeof more / sizeof more[0]; k++) {
		if (choice == OM_COLOR_DSATUR && (!limit || best.nblock <= limit))
			break;
		const struct painting p = painted(g, more[k].order, more[k].tightest, align, mem);
		if (is_better(&p, &best, choice, limit))
			best = p;
	}
	return best;
}

static om_status
share_color_guarded(om_session *s, om_buffer *buf, uint32_t n, const om_interference_list *open,
	om_color_choice choice, uint32_t limit, uint32_t *block, om_baseline_result *r)
{
	om_arena *mem = om_arena_new();
	om_status st;
	uint64_t align;

	st = om_baseline_check(s, buf, n, &align);
	if (st == OM_OK) {
		om_interfere *g = om_interfere_new(buf, n, open, false, mem);
		const struct painting p = best_painting(g, choice, limit, align, mem);
		if (limit && p.nblock > limit)
			st = over_limit(s, g, limit, p.nblock, mem);
		place(buf, n, &p, align, mem);
		om_baseline_rate(buf, n, open, "color", r);
		r->blocks = p.nblock;
		if (block)
			memcpy(block, p.colour, n * sizeof *block);
	}
	om_arena_free(mem);
	return st;
}

om_status
om_baseline_color(om_session *s, om_buffer *buf, uint32_t n, const om_interference_list *open,
	om_color_choice choice, uint32_t limit, uint32_t *block, om_baseline_result *r)
{
	OM_GUARDED(s, share_color_guarded(s, buf, n, open, choice, limit, block, r));
}

/* ---- Rows. ---- */

static om_status
few_blocks(om_session *s, const om_share_problem *p, om_baseline_result *r)
{
	return om_baseline_color(s, p->buf, p->n, p->open, OM_COLOR_DSATUR, p->limit, NULL, r);
}

static om_status
few_bytes(om_session *s, const om_share_problem *p, om_baseline_result *r)
{
	return om_baseline_color(s, p->buf, p->n, p->open, OM_COLOR_BYTES, p->limit, NULL, r);
}

const om_strategy om_strategies_dsatur[] = {
	{"color", "colours of the interference graph by DSATUR, as few blocks as it finds", true, few_blocks},
	{"color-least", "colours of the interference graph, as few bytes as it finds", true, few_bytes},
	{0}
};
