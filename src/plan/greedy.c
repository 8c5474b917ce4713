/* One buffer after the other: find the neighbours in time that have a place,
 * sort them by offset, take a gap between them.
 *
 * Neighbours come from a tree over the pieces, sorted by their start, that
 * knows the latest end below each node: only nodes with a neighbour under them
 * are visited, and small buckets of pieces are scanned whole.  So a run takes O(n log n + overlaps), and no memory for the
 * overlaps: real training graphs have 180 million of them.
 */
#include <config.h>

#include "plan/packer.h"

enum { BUCKET = 16, STRETCHES = 4096 };

/* Chains the pieces of each buffer. */
static void
link_pieces(om_greedy *g)
{
	const om_part *p = g->part;

	for (uint32_t k = 0; k < p->nitem; k++)
		g->head[p->item[k]] = UINT32_MAX;
	for (uint32_t k = p->npiece; k-- > 0;) {
		g->next[k] = g->head[p->piece[k].buf];
		g->head[p->piece[k].buf] = k;
	}
}

void
om_greedy_init(om_greedy *g, const om_part *part, om_arena *mem, uint32_t *head, uint32_t *stamp)
{
	*g = (om_greedy){.part = part, .leaves = 1, .head = head, .stamp = stamp};
	g->is_simple = part->npiece == part->nitem;
	while ((uint64_t)g->leaves * BUCKET < part->npiece)
		g->leaves *= 2;
	g->until = OM_NEWN(mem, uint32_t, part->npiece);
	g->at = OM_NEWN(mem, om_span, part->npiece);
	g->count = OM_NEWN(mem, uint32_t, STRETCHES + 1);
	g->top = OM_NEWN(mem, uint32_t, 2 * (size_t)g->leaves);
	g->next = OM_NEWN(mem, uint32_t, part->npiece);
	g->span = OM_NEWN(mem, om_span, (size_t)part->npiece + 1);
	g->spare = OM_NEWN(mem, om_span, (size_t)part->npiece + 1);
	link_pieces(g);
}

/* Pieces before this one start below `step`. */
static uint32_t
pieces_before(const om_part *p, uint32_t step)
{
	uint32_t from = 0, to = p->npiece;

	while (from < to) {
		const uint32_t mid = from + (to - from) / 2;
		if (p->piece[mid].lower < step)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

/* Placed neighbours in one bucket.  Without branches: whether a piece counts is
 * as good as random. */
static uint32_t
scan(om_greedy *g, uint32_t from, uint32_t to, uint32_t lower, uint32_t n)
{
	for (uint32_t k = from; k < to; k++) {
		g->span[n] = g->at[k];
		n += g->until[k] > lower;
	}
	return n;
}

/* The same where buffers have several lifetimes: each counts once. */
static uint32_t
scan_once(om_greedy *g, uint32_t from, uint32_t to, uint32_t lower, uint32_t n)
{
	for (uint32_t k = from; k < to; k++) {
		const uint32_t b = g->part->piece[k].buf;
		if (g->until[k] <= lower || g->stamp[b] == g->now)
			continue;
		g->stamp[b] = g->now;
		g->span[n++] = g->at[k];
	}
	return n;
}

/* Placed pieces among the first `limit` that end behind `lower`.  The walk goes
 * down to the left, and climbs to the next subtree on the right. */
static uint32_t
neighbours(om_greedy *g, uint32_t lower, uint32_t limit, uint32_t n)
{
	uint32_t at = 1, from = 0, width = g->leaves;

	for (;;) {
		if (g->top[at] > lower) {
			if (width > 1) {
				at *= 2;
				width /= 2;
				continue;
			}
			const uint32_t first = from * BUCKET;
			const uint32_t end = limit - first < BUCKET ? limit : first + BUCKET;
			n = g->is_simple ? scan(g, first, end, lower, n) : scan_once(g, first, end, lower, n);
		}
		while (at & 1) {
			if (at == 1)
				return n;
			at /= 2;
			from -= width;
			width *= 2;
		}
		at++;
		from += width;
		if ((uint64_t)from * BUCKET >= limit)
			return n;
	}
}

static void
put(om_greedy *g, uint32_t b)
{
	const om_buffer *buf = &g->part->buf[b];

	for (uint32_t k = g->head[b]; k != UINT32_MAX; k = g->next[k]) {
		g->until[k] = g->part->piece[k].upper;
		g->at[k] = (om_span){buf->offset, buf->offset + buf->bytes};
		for (uint32_t n = g->leaves + k / BUCKET; n && g->top[n] < g->until[k]; n /= 2)
			g->top[n] = g->until[k];
	}
}

/* ---- Sorting by offset: most of the time goes here. ---- */

static void
sort_short(om_span *a, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		const om_span x = a[i];
		uint32_t k = i;
		for (; k > 0 && a[k - 1].offset > x.offset; k--)
			a[k] = a[k - 1];
		a[k] = x;
	}
}

/* Merge sort from runs of 16; the result may end up in either array. */
static om_span *
merge_sorted(om_span *a, om_span *b, uint32_t n)
{
	enum { RUN = 16 };

	for (uint32_t k = 0; k < n; k += RUN)
		sort_short(a + k, n - k < RUN ? n - k : RUN);
	for (uint32_t width = RUN; width < n; width *= 2) {
		for (uint32_t from = 0; from < n; from += 2 * width) {
			const uint32_t mid = n - from < width ? n : from + width;
			const uint32_t end = n - mid < width ? n : mid + width;
			uint32_t x = from, y = mid;
			for (uint32_t k = from; k < end; k++) {
				const bool left = y == end || (x < mid && a[x].offset <= a[y].offset);
				b[k] = a[left ? x : y];
				x += left;
				y += !left;
			}
		}
		om_span *t = a;
		a = b;
		b = t;
	}
	return a;
}

/* Spread over equal stretches of the height, then sort within each. */
static om_span *
spread_sorted(om_greedy *g, uint32_t n)
{
	uint32_t *end = g->count, m = 64, largest = 0;
	unsigned shift = 0;

	while (m < n && m < STRETCHES)
		m *= 2;
	while (g->height >> shift >= m)
		shift++;
	memset(end, 0, (m + 1) * sizeof *end);
	for (uint32_t k = 0; k < n; k++)
		end[g->span[k].offset >> shift]++;
	for (uint32_t k = 0, sum = 0; k < m; k++) {
		largest = end[k] > largest ? end[k] : largest;
		sum += end[k];
		end[k] = sum - end[k];
	}
	if (largest > n / 4)
		return merge_sorted(g->span, g->spare, n);
	for (uint32_t k = 0; k < n; k++)
		g->spare[end[g->span[k].offset >> shift]++] = g->span[k];
	for (uint32_t k = 0, from = 0; k < m; from = end[k++]) {
		const uint32_t many = end[k] - from;
		if (many <= 32)
			sort_short(g->spare + from, many);
		else if (merge_sorted(g->spare + from, g->span, many) == g->span)
			memcpy(g->spare + from, g->span, many * sizeof *g->span);
	}
	return g->spare;
}

static const om_span *
sorted(om_greedy *g, uint32_t n)
{
	return n < 128 ? merge_sorted(g->span, g->spare, n) : spread_sorted(g, n);
}

static uint64_t
aligned(uint64_t offset, uint64_t align)
{
	return align > 1 ? (offset + align - 1) & ~(align - 1) : offset;
}

/* The tightest gap that takes the buffer, the lowest among equals; or simply
 * the lowest.  Above all neighbours when there is none. */
static uint64_t
choose(const om_span *s, uint32_t n, const om_buffer *b, om_fit fit)
{
	uint64_t floor = 0, best = UINT64_MAX, best_gap = UINT64_MAX;

	for (uint32_t k = 0; k < n; k++) {
		const uint64_t at = aligned(floor, b->align);
		if (s[k].offset >= at && s[k].offset - at >= b->bytes && s[k].offset - floor < best_gap) {
			best = at;
			best_gap = s[k].offset - floor;
			if (fit == OM_FIRST_FIT || best_gap == b->bytes)
				return best;
		}
		if (s[k].end > floor)
			floor = s[k].end;
	}
	return best == UINT64_MAX ? aligned(floor, b->align) : best;
}

static void
place(om_greedy *g, uint32_t b, om_fit fit)
{
	om_buffer *buf = &g->part->buf[b];
	uint32_t n = 0;

	g->now++;
	for (uint32_t k = 0; k < buf->nlive; k++)
		n = neighbours(g, buf->live[k].lower, pieces_before(g->part, buf->live[k].upper), n);
	g->work += n + 1;
	buf->offset = choose(sorted(g, n), n, buf, fit);
}

static void
take(om_greedy *g, uint32_t b)
{
	const om_buffer *buf = &g->part->buf[b];

	if (buf->offset + buf->bytes > g->height)
		g->height = buf->offset + buf->bytes;
	put(g, b);
}

uint64_t
om_greedy_run(om_greedy *g, const uint32_t *order, uint32_t n, om_fit fit)
{
	const om_part *p = g->part;

	g->height = 0;
	memset(g->top, 0, 2 * (size_t)g->leaves * sizeof *g->top);
	memset(g->until, 0, p->npiece * sizeof *g->until);
	for (uint32_t k = 0; k < p->nitem; k++) {
		om_buffer *buf = &p->buf[p->item[k]];
		if (buf->fixed < 0)
			continue;
		buf->offset = (uint64_t)buf->fixed;
		take(g, p->item[k]);
	}
	for (uint32_t k = 0; k < n; k++) {
		place(g, order[k], fit);
		take(g, order[k]);
	}
	return g->height;
}
