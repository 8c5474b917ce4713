/* One buffer after the other: find the neighbours in time that have a place,
 * sort them by offset, take a gap between them.
 *
 * Neighbours come from a tree over the pieces, sorted by their start, that
 * knows the latest end below each node: only nodes with a neighbour under them
 * are visited, and small buckets of pieces are scanned whole.  So a run takes
 * O(n log n + overlaps), and no memory for the overlaps: real training graphs
 * have 180 million of them.
 *
 * A buffer may be a rigid set of rectangles.  If one of its pieces has bytes
 * [p.from, p.to) and meets something placed at [q.offset, q.end), its own offset
 * may not lie strictly between q.offset - p.to and q.end - p.from.  For a plain
 * buffer of as many bytes, something at [q.offset + bytes - p.to, q.end - p.from)
 * would forbid exactly that.  So each such meeting is written down as such a
 * neighbour, and gaps are found as for plain buffers.  (The end of one may be
 * below its start; the sweep over the sorted starts does not mind.)
 */
#include <config.h>

#include "pack/packer.h"

enum { BUCKET = 16, STRETCHES = 4096 };

/* Bytes that are wanted in one interval: `from` before the first of them and
 * `rest` behind the last belong to the same buffer. */
struct want {
	uint32_t lower;
	uint64_t from, rest, bytes;   /* of the whole buffer */
};

/* Chains the pieces of each buffer. */
static void
link_pieces(om_greedy *g)
{
	const om_component *p = g->part;

	for (uint32_t k = 0; k < p->nitem; k++)
		p->head[p->item[k]] = UINT32_MAX;
	for (uint32_t k = p->npiece; k-- > 0;) {
		g->next[k] = p->head[p->piece[k].buf];
		p->head[p->piece[k].buf] = k;
	}
}

static bool
is_simple(const om_component *p)
{
	if (p->npiece != p->nitem)
		return false;
	for (uint32_t k = 0; k < p->nitem; k++)
		if (om_is_shaped(&p->buf[p->item[k]]))
			return false;
	return true;
}

void
om_greedy_init(om_greedy *g, const om_component *part, om_arena *mem)
{
	*g = (om_greedy){.part = part, .leaves = 1, .mem = mem};
	g->is_simple = is_simple(part);
	g->room = part->npiece + 1;
	while ((uint64_t)g->leaves * BUCKET < part->npiece)
		g->leaves *= 2;
	g->until = OM_NEWN(mem, uint32_t, part->npiece);
	g->at = OM_NEWN(mem, om_span, part->npiece);
	g->count = OM_NEWN(mem, uint32_t, STRETCHES + 1);
	g->top = OM_NEWN(mem, uint32_t, 2 * (size_t)g->leaves);
	g->next = OM_NEWN(mem, uint32_t, part->npiece);
	g->span = OM_NEWN(mem, om_span, g->room);
	g->spare = OM_NEWN(mem, om_span, g->room);
	link_pieces(g);
}

uint32_t
om_segments_before(const om_component *p, uint32_t step)
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

static const om_span *sorted(om_greedy *g, uint32_t n);

/* Forbidden stretches that overlap become one; where they only touch, an offset
 * is left between them. */
static uint32_t
merged(om_greedy *g, uint32_t n, uint64_t bytes)
{
	const om_span *s = sorted(g, n);
	uint32_t m = 0;

	for (uint32_t k = 0; k < n; k++)
		if (m && s[k].offset < g->span[m - 1].end + bytes) {
			if (s[k].end > g->span[m - 1].end)
				g->span[m - 1].end = s[k].end;
		} else {
			g->span[m++] = s[k];
		}
	return m;
}

/* Room for `more` behind the `n` that are there: a buffer of many pieces meets
 * each neighbour many times, and most of it is the same. */
static uint32_t
make_room(om_greedy *g, uint32_t n, uint32_t more, uint64_t bytes)
{
	if (n + more <= g->room)
		return n;
	n = merged(g, n, bytes);
	if (n + more > g->room / 2) {
		const uint32_t room = 2 * (g->room + more);
		om_span *span = OM_NEWN(g->mem, om_span, room);
		memcpy(span, g->span, n * sizeof *span);
		g->span = span;
		g->spare = OM_NEWN(g->mem, om_span, room);
		g->room = room;
	}
	return n;
}

/* What the neighbours in one bucket forbid to a buffer whose used bytes start
 * at `from` and end `rest` before its end. */
static uint32_t
scan_shaped(om_greedy *g, uint32_t first, uint32_t end, const struct want *w, uint32_t n)
{
	n = make_room(g, n, end - first, w->bytes);
	for (uint32_t k = first; k < end; k++) {
		if (g->until[k] <= w->lower || g->at[k].end <= w->from)
			continue;
		g->span[n] = (om_span){g->at[k].offset + w->rest, g->at[k].end - w->from};
		if (g->span[n].offset > g->highest)
			g->highest = g->span[n].offset;
		n++;
	}
	return n;
}

/* Placed pieces among the first `limit` that end behind `lower`.  The walk goes
 * down to the left, and climbs to the next subtree on the right. */
static uint32_t
neighbours(om_greedy *g, const struct want *w, uint32_t limit, uint32_t n)
{
	const uint32_t lower = w->lower;
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
			n = g->is_simple ? scan(g, first, end, lower, n) : scan_shaped(g, first, end, w, n);
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

void
om_greedy_put(om_greedy *g, uint32_t b)
{
	const om_buffer *buf = &g->part->buf[b];

	if (buf->offset + buf->bytes > g->height)
		g->height = buf->offset + buf->bytes;
	for (uint32_t k = g->part->head[b]; k != UINT32_MAX; k = g->next[k]) {
		g->until[k] = g->part->piece[k].upper;
		const om_interval *live = &buf->live[g->part->piece[k].live];
		g->at[k] = (om_span){buf->offset + live->from, buf->offset + om_live_to(buf, live)};
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
	while (g->highest >> shift >= m)
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

/* In one of the two arrays. */
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

void
om_greedy_place(om_greedy *g, uint32_t b, om_fit fit)
{
	om_buffer *buf = &g->part->buf[b];
	uint32_t n = 0;

	g->highest = g->height;
	for (uint32_t k = 0; k < buf->nlive; k++) {
		const om_interval *live = &buf->live[k];
		const struct want w = {live->lower, live->from, buf->bytes - om_live_to(buf, live), buf->bytes};
		n = neighbours(g, &w, om_segments_before(g->part, live->upper), n);
	}
	g->work += n + 1;
	buf->offset = choose(sorted(g, n), n, buf, fit);
	om_greedy_put(g, b);
}

/* The tree keeps the end of what is gone: nodes are visited in vain, no more. */
void
om_greedy_remove(om_greedy *g, uint32_t b)
{
	for (uint32_t k = g->part->head[b]; k != UINT32_MAX; k = g->next[k])
		g->until[k] = 0;
}

static void
clear(om_greedy *g)
{
	g->height = 0;
	memset(g->top, 0, 2 * (size_t)g->leaves * sizeof *g->top);
	memset(g->until, 0, g->part->npiece * sizeof *g->until);
}

void
om_greedy_load(om_greedy *g)
{
	clear(g);
	for (uint32_t k = 0; k < g->part->nitem; k++)
		om_greedy_put(g, g->part->item[k]);
}

uint64_t
om_greedy_run(om_greedy *g, const uint32_t *order, uint32_t n, om_fit fit)
{
	const om_component *p = g->part;

	clear(g);
	for (uint32_t k = 0; k < p->nitem; k++) {
		om_buffer *buf = &p->buf[p->item[k]];
		if (buf->fixed < 0)
			continue;
		buf->offset = (uint64_t)buf->fixed;
		om_greedy_put(g, p->item[k]);
	}
	for (uint32_t k = 0; k < n; k++)
		om_greedy_place(g, order[k], fit);
	return g->height;
}
