/* SPDX-License-Identifier: Apache-2.0 */
/* Graph coloring: buffers that interfere get different colors, and buffers of one
 * color share a block as large as the largest of them.
 *
 * DSATUR colors next the buffer with the most distinct colors among its neighbors,
 * with the smallest free color (D. Brelaz, New methods to color the vertices of a
 * graph, CACM 22, 1979). Ties go to more neighbors, then more bytes, then program
 * order.  Uncolored buffers are in a heap; a buffer rises when a neighbor gets a
 * color that is new to it.  Every step removes one buffer, so it terminates.
 *
 * The colors of the neighbors are stored as bits, in planes of 64 colors that are
 * allocated with their first color: n words for every 64 blocks.
 *
 * With one lifetime each, coloring in the order of first use needs no more blocks
 * than the most buffers live at once; it is tried when a limit is exceeded.  To
 * minimize bytes, the largest buffers come first and take the smallest block, which
 * costs nothing; the colorings by DSATUR and by first use are also candidates.
 */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>

#include "base/guard.h"
#include "pack/baselines/baselines.h"
#include "pack/baselines/interference.h"
#include "pack/baselines/interference_list.h"
#include "pack/sort_keys.h"
#include "pack/baselines/strategies.h"

#define NONE UINT32_MAX

enum order { BY_SATURATION, BY_BYTES, BY_FIRST_USE };

struct coloring {
	om_interference_graph *g;
	om_arena *mem;
	enum order order;
	uint32_t *rank;         /* by buffer: its position in that order */
	bool tightest;          /* take the last free block, not the first */
	uint32_t *color;       /* by buffer */
	uint32_t *saturation;       /* by buffer: the number of distinct colors of its neighbors */
	uint64_t **plane;
	size_t nplane, capplane;
	uint32_t *heap, *at;    /* at: by buffer, its index in the heap, or NONE */
	uint32_t nheap;
	uint32_t *adj;         /* neighbors of one buffer */
	uint32_t nblock;
};

/* A coloring and its cost. */
struct color_result {
	uint32_t *color;
	uint32_t nblock;
	uint64_t bytes;
};

/* ---- The heap of uncolored buffers. ---- */

static bool
precedes(const struct coloring *w, uint32_t a, uint32_t b)
{
	if (w->order == BY_SATURATION && w->saturation[a] != w->saturation[b])
		return w->saturation[a] > w->saturation[b];
	return w->rank[a] < w->rank[b];
}

static void
set_heap(struct coloring *w, uint32_t k, uint32_t v)
{
	w->heap[k] = v;
	w->at[v] = k;
}

static void
sift_up(struct coloring *w, uint32_t k)
{
	const uint32_t v = w->heap[k];

	for (; k && precedes(w, v, w->heap[(k - 1) / 2]); k = (k - 1) / 2)
		set_heap(w, k, w->heap[(k - 1) / 2]);
	set_heap(w, k, v);
}

static uint32_t
pop_first(struct coloring *w)
{
	const uint32_t first = w->heap[0], last = w->heap[--w->nheap];
	uint32_t k = 0;

	for (uint32_t child; (child = 2 * k + 1) < w->nheap; k = child) {
		if (child + 1 < w->nheap && precedes(w, w->heap[child + 1], w->heap[child]))
			child++;
		if (!precedes(w, w->heap[child], last))
			break;
		set_heap(w, k, w->heap[child]);
	}
	set_heap(w, k, last);
	w->at[first] = NONE;
	return first;
}

/* ---- Colors. ---- */

static uint32_t
find_free_color(const struct coloring *w, uint32_t v)
{
	uint32_t c = NONE;

	for (uint32_t i = 0; i < w->nplane && (w->tightest || c == NONE); i++) {
		uint64_t free_bits = ~w->plane[i][v];
		if (w->nblock - 64 * i < 64)
			free_bits &= (UINT64_C(1) << (w->nblock - 64 * i)) - 1;
		if (free_bits)
			c = 64 * i + (uint32_t)(w->tightest ? 63 - __builtin_clzll(free_bits)
				: __builtin_ctzll(free_bits));
	}
	return c;
}

static uint32_t
add_color(struct coloring *w)
{
	if (w->nblock % 64 == 0) {
		uint64_t *plane = OM_NEWN(w->mem, uint64_t, w->g->n);
		OM_PUSH(w->mem, w->plane, w->nplane, w->capplane, plane);
	}
	return w->nblock++;
}

static void
assign_color(struct coloring *w, uint32_t v)
{
	uint32_t c = find_free_color(w, v);

	if (c == NONE)
		c = add_color(w);
	w->color[v] = c;
	for (uint32_t k = om_interference_neighbors(w->g, v, w->adj); k--;) {
		uint64_t *saturation = &w->plane[c / 64][w->adj[k]];
		if (w->at[w->adj[k]] == NONE || *saturation >> c % 64 & 1)
			continue;
		*saturation |= UINT64_C(1) << c % 64;
		w->saturation[w->adj[k]]++;
		if (w->order == BY_SATURATION)
			sift_up(w, w->at[w->adj[k]]);
	}
}

/* ---- Orders. ---- */

static void
rank_all(struct coloring *w, const struct om_interference_graph *g)
{
	om_sort_key *key = OM_NEWN(w->mem, om_sort_key, g->n);

	for (uint32_t k = 0; k < g->n; k++) {
		const uint64_t bytes = g->buf[k].bytes, degree = g->degree[k];
		key[k].id = k;
		key[k].major = w->order == BY_SATURATION ? degree : w->order == BY_BYTES ? bytes
			: UINT32_MAX - g->span[k].lower;
		key[k].minor = w->order == BY_BYTES ? degree : bytes;
	}
	qsort(key, g->n, sizeof *key, om_compare_sort_keys);
	for (uint32_t k = 0; k < g->n; k++)
		w->rank[key[k].id] = k;
}

static uint64_t
block_bytes(const om_interference_graph *g, struct color_result *p, uint64_t align, uint64_t *size)
{
	uint64_t sum = 0;

	memset(size, 0, (size_t)p->nblock * sizeof *size);
	for (uint32_t k = 0; k < g->n; k++) {
		const uint64_t bytes = (g->buf[k].bytes + align - 1) & ~(align - 1);
		if (bytes && bytes > size[p->color[k]])
			size[p->color[k]] = bytes;
	}
	for (uint32_t k = 0; k < p->nblock; k++)
		sum += size[k];
	return sum;
}

static struct color_result
color_buffers(om_interference_graph *g, enum order order, bool tightest, uint64_t align, om_arena *mem)
{
	const uint32_t n = g->n;
	struct coloring w = {.g = g, .mem = mem, .order = order, .tightest = tightest,
		.rank = OM_NEWN(mem, uint32_t, n), .color = OM_NEWN(mem, uint32_t, n),
		.saturation = OM_NEWN(mem, uint32_t, n), .heap = OM_NEWN(mem, uint32_t, n),
		.at = OM_NEWN(mem, uint32_t, n), .adj = OM_NEWN(mem, uint32_t, n)};

	rank_all(&w, g);
	for (uint32_t k = 0; k < n; k++) {
		w.at[k] = NONE;
		if (g->buf[k].bytes == 0)
			continue;
		set_heap(&w, w.nheap++, k);
		sift_up(&w, w.nheap - 1);
	}
	while (w.nheap)
		assign_color(&w, pop_first(&w));
	struct color_result p = {.color = w.color, .nblock = w.nblock};
	p.bytes = block_bytes(g, &p, align, OM_NEWN(mem, uint64_t, n));
	return p;
}

/* ---- Limits. ---- */

/* The most buffers live at one step: a lower bound for the number of blocks. */
static uint32_t
max_live(const om_interference_graph *g, om_arena *mem, uint32_t *step)
{
	uint32_t *end = OM_NEWN(mem, uint32_t, g->nlifetime), max = 0;

	for (uint32_t k = 0; k < g->nlifetime; k++)
		end[k] = g->lifetime[k].upper;
	qsort(end, g->nlifetime, sizeof *end, om_compare_u32);
	for (uint32_t k = 0, ended = 0; k < g->nlifetime; k++) {
		while (end[ended] <= g->lifetime[k].lower)
			ended++;
		if (k + 1 - ended > max) {
			max = k + 1 - ended;
			*step = g->lifetime[k].lower;
		}
	}
	return max;
}

static om_status
fail_limit(om_session *s, const om_interference_graph *g, uint32_t limit, uint32_t found, om_arena *mem)
{
	uint32_t step = 0;
	const uint32_t max = g->simple ? max_live(g, mem, &step) : 0;

	if (max > limit)
		return om_fail(s, OM_BUDGET, "%" PRIu32 " blocks cannot hold %" PRIu32
			" buffers that are live at step %" PRIu32, limit, max, step);
	return om_fail(s, OM_BUDGET, "found no coloring with %" PRIu32 " blocks, only one with %" PRIu32,
		limit, found);
}

/* ---- Entry point. ---- */

static bool
is_better(const struct color_result *a, const struct color_result *b, om_color_choice choice, uint32_t limit)
{
	const bool a_fits = !limit || a->nblock <= limit, b_fits = !limit || b->nblock <= limit;

	if (a_fits != b_fits)
		return a_fits;
	if (!a_fits || choice == OM_COLOR_DSATUR)
		return a->nblock < b->nblock;
	return a->bytes < b->bytes || (a->bytes == b->bytes && a->nblock < b->nblock);
}

static void
set_offsets(om_buffer *buf, uint32_t n, const struct color_result *p, uint64_t align, om_arena *mem)
{
	uint64_t *offset = OM_NEWN(mem, uint64_t, (size_t)p->nblock + 1);

	for (uint32_t k = 0; k < n; k++) {
		const uint64_t bytes = (buf[k].bytes + align - 1) & ~(align - 1);
		if (bytes && bytes > offset[p->color[k] + 1])
			offset[p->color[k] + 1] = bytes;
	}
	for (uint32_t k = 1; k <= p->nblock; k++)
		offset[k] += offset[k - 1];
	for (uint32_t k = 0; k < n; k++)
		buf[k].offset = buf[k].bytes ? offset[p->color[k]] : 0;
}

static struct color_result
find_best_coloring(om_interference_graph *g, om_color_choice choice, uint32_t limit, uint64_t align,
	om_arena *mem)
{
	static const struct { enum order order; bool tightest; } more[] = {
		{BY_BYTES, true}, {BY_BYTES, false}, {BY_FIRST_USE, false}, {BY_FIRST_USE, true},
	};
	struct color_result best = color_buffers(g, BY_SATURATION, false, align, mem);

	for (size_t k = 0; k < sizeof more / sizeof more[0]; k++) {
		if (choice == OM_COLOR_DSATUR && (!limit || best.nblock <= limit))
			break;
		const struct color_result p = color_buffers(g, more[k].order, more[k].tightest, align, mem);
		if (is_better(&p, &best, choice, limit))
			best = p;
	}
	return best;
}

static om_status
color_guarded(om_session *s, om_buffer *buf, uint32_t n, const om_interference_list *interference,
	om_color_choice choice, uint32_t limit, uint32_t *block, om_baseline_result *r)
{
	om_arena *mem = om_arena_new();
	om_status st;
	uint64_t align;

	st = om_baseline_check(s, buf, n, &align);
	if (st == OM_OK) {
		om_interference_graph *g = om_interference_graph_new(buf, n, interference, false, mem);
		const struct color_result p = find_best_coloring(g, choice, limit, align, mem);
		if (limit && p.nblock > limit)
			st = fail_limit(s, g, limit, p.nblock, mem);
		set_offsets(buf, n, &p, align, mem);
		om_baseline_evaluate(buf, n, interference, "color", r);
		r->blocks = p.nblock;
		if (block)
			memcpy(block, p.color, n * sizeof *block);
	}
	om_arena_free(mem);
	return st;
}

om_status
om_baseline_color(om_session *s, om_buffer *buf, uint32_t n, const om_interference_list *interference,
	om_color_choice choice, uint32_t limit, uint32_t *block, om_baseline_result *r)
{
	OM_GUARDED(s, color_guarded(s, buf, n, interference, choice, limit, block, r));
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
	{"color", "DSATUR coloring of the interference graph, fewest blocks", true, few_blocks},
	{"color-least", "coloring of the interference graph, fewest bytes", true, few_bytes},
	{0}
};
