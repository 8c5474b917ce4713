/* SPDX-License-Identifier: Apache-2.0 */
/* Greedy placement of one buffer after the other: find the placed neighbors in
 * time, sort them by offset, choose a gap between them.
 *
 * Neighbors come from a tree over the lifetimes, sorted by their start, in which
 * each node has the latest end below it: only nodes with a neighbor below them are
 * visited, and small buckets of lifetimes are scanned completely.  So a run takes
 * O(n log n + overlaps), and no memory for the overlaps: real training graphs have
 * 180 million of them.
 *
 * A buffer may be a rigid set of rectangles.  If one of its lifetimes has bytes
 * [p.from, p.to) and overlaps in time a placed lifetime at [q.offset, q.end), its
 * own offset may not be strictly between q.offset - p.to and q.end - p.from.  For a
 * plain buffer of as many bytes, a neighbor at [q.offset + bytes - p.to, q.end -
 * p.from) would forbid exactly that.  So each such overlap is stored as such a
 * neighbor, and gaps are found as for plain buffers.  (The end of one may be below
 * its start; the sweep over the sorted starts is correct all the same.)
 */
#include <config.h>

#include "pack/packer.h"

enum { BUCKET = 16, NRANGE = 4096 };

/* The bytes that one interval of the buffer being placed requires: `from` bytes of
 * the buffer come before them, `rest` bytes after them. */
struct requirement {
	uint32_t lower;
	uint64_t from, rest, bytes;   /* bytes: of the whole buffer */
};

/* Link the lifetimes of each buffer. */
static void
link_lifetimes(om_greedy *g)
{
	const om_component *p = g->component;

	for (uint32_t k = 0; k < p->nitem; k++)
		p->head[p->item[k]] = UINT32_MAX;
	for (uint32_t k = p->nlifetime; k-- > 0;) {
		g->next[k] = p->head[p->lifetime[k].buf];
		p->head[p->lifetime[k].buf] = k;
	}
}

static bool
is_simple(const om_component *p)
{
	if (p->nlifetime != p->nitem)
		return false;
	for (uint32_t k = 0; k < p->nitem; k++)
		if (om_is_partially_live(&p->buf[p->item[k]]))
			return false;
	return true;
}

void
om_greedy_init(om_greedy *g, const om_component *component, om_arena *mem)
{
	*g = (om_greedy){.component = component, .leaves = 1, .mem = mem};
	g->is_simple = is_simple(component);
	g->capacity = component->nlifetime + 1;
	while ((uint64_t)g->leaves * BUCKET < component->nlifetime)
		g->leaves *= 2;
	g->until = OM_NEWN(mem, uint32_t, component->nlifetime);
	g->at = OM_NEWN(mem, om_span, component->nlifetime);
	g->count = OM_NEWN(mem, uint32_t, NRANGE + 1);
	g->latest_end = OM_NEWN(mem, uint32_t, 2 * (size_t)g->leaves);
	g->next = OM_NEWN(mem, uint32_t, component->nlifetime);
	g->span = OM_NEWN(mem, om_span, g->capacity);
	g->spare = OM_NEWN(mem, om_span, g->capacity);
	link_lifetimes(g);
}

uint32_t
om_lifetimes_before(const om_component *p, uint32_t step)
{
	uint32_t from = 0, to = p->nlifetime;

	while (from < to) {
		const uint32_t mid = from + (to - from) / 2;
		if (p->lifetime[mid].lower < step)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

/* Placed neighbors in one bucket.  Without branches: they would be unpredictable. */
static uint32_t
scan_bucket(om_greedy *g, uint32_t from, uint32_t to, uint32_t lower, uint32_t n)
{
	for (uint32_t k = from; k < to; k++) {
		g->span[n] = g->at[k];
		n += g->until[k] > lower;
	}
	return n;
}

static const om_span *sort_spans(om_greedy *g, uint32_t n);

/* Merge forbidden ranges that overlap; where they only touch, one offset is left
 * between them. */
static uint32_t
merge_spans(om_greedy *g, uint32_t n, uint64_t bytes)
{
	const om_span *s = sort_spans(g, n);
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

/* Make space for `more` spans after the first `n`: a buffer of many lifetimes
 * overlaps each neighbor many times, and most of the ranges are the same. */
static uint32_t
reserve_spans(om_greedy *g, uint32_t n, uint32_t more, uint64_t bytes)
{
	if (n + more <= g->capacity)
		return n;
	n = merge_spans(g, n, bytes);
	if (n + more > g->capacity / 2) {
		const uint32_t capacity = 2 * (g->capacity + more);
		om_span *span = OM_NEWN(g->mem, om_span, capacity);
		memcpy(span, g->span, n * sizeof *span);
		g->span = span;
		g->spare = OM_NEWN(g->mem, om_span, capacity);
		g->capacity = capacity;
	}
	return n;
}

/* The offsets that the neighbors in one bucket forbid to a buffer whose used bytes
 * start at `from` and end `rest` bytes before its end. */
static uint32_t
scan_bucket_partial(om_greedy *g, uint32_t first, uint32_t end, const struct requirement *w, uint32_t n)
{
	n = reserve_spans(g, n, end - first, w->bytes);
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

/* Placed lifetimes among the first `limit` that end after `w->lower`. The traversal
 * descends to the left, and climbs to the next subtree on the right. */
static uint32_t
collect_neighbors(om_greedy *g, const struct requirement *w, uint32_t limit, uint32_t n)
{
	const uint32_t lower = w->lower;
	uint32_t at = 1, from = 0, width = g->leaves;

	for (;;) {
		if (g->latest_end[at] > lower) {
			if (width > 1) {
				at *= 2;
				width /= 2;
				continue;
			}
			const uint32_t first = from * BUCKET;
			const uint32_t end = limit - first < BUCKET ? limit : first + BUCKET;
			n = g->is_simple ? scan_bucket(g, first, end, lower, n) : scan_bucket_partial(g, first, end, w,
				n);
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
om_greedy_insert(om_greedy *g, uint32_t b)
{
	const om_buffer *buf = &g->component->buf[b];

	if (buf->offset + buf->bytes > g->height)
		g->height = buf->offset + buf->bytes;
	for (uint32_t k = g->component->head[b]; k != UINT32_MAX; k = g->next[k]) {
		g->until[k] = g->component->lifetime[k].upper;
		const om_interval *live = &buf->live[g->component->lifetime[k].live];
		g->at[k] = (om_span){buf->offset + live->from, buf->offset + om_interval_end(buf, live)};
		for (uint32_t n = g->leaves + k / BUCKET; n && g->latest_end[n] < g->until[k]; n /= 2)
			g->latest_end[n] = g->until[k];
	}
}

/* ---- Sorting by offset, which takes most of the time. ---- */

static void
insertion_sort(om_span *a, uint32_t n)
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
merge_sort(om_span *a, om_span *b, uint32_t n)
{
	enum { RUN = 16 };

	for (uint32_t k = 0; k < n; k += RUN)
		insertion_sort(a + k, n - k < RUN ? n - k : RUN);
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

/* Distribute to equal ranges of the height, then sort within each. */
static om_span *
bucket_sort(om_greedy *g, uint32_t n)
{
	uint32_t *end = g->count, m = 64, largest = 0;
	unsigned shift = 0;

	while (m < n && m < NRANGE)
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
		return merge_sort(g->span, g->spare, n);
	for (uint32_t k = 0; k < n; k++)
		g->spare[end[g->span[k].offset >> shift]++] = g->span[k];
	for (uint32_t k = 0, from = 0; k < m; from = end[k++]) {
		const uint32_t many = end[k] - from;
		if (many <= 32)
			insertion_sort(g->spare + from, many);
		else if (merge_sort(g->spare + from, g->span, many) == g->span)
			memcpy(g->spare + from, g->span, many * sizeof *g->span);
	}
	return g->spare;
}

/* The result is in one of the two arrays. */
static const om_span *
sort_spans(om_greedy *g, uint32_t n)
{
	return n < 128 ? merge_sort(g->span, g->spare, n) : bucket_sort(g, n);
}

static uint64_t
align_up(uint64_t offset, uint64_t align)
{
	return align > 1 ? (offset + align - 1) & ~(align - 1) : offset;
}

/* The tightest gap that fits the buffer, the lowest among equals; for first fit the
 * lowest gap.  Above all neighbors if there is none. */
static uint64_t
choose_offset(const om_span *s, uint32_t n, const om_buffer *b, om_fit fit)
{
	uint64_t floor = 0, best = UINT64_MAX, best_gap = UINT64_MAX;

	for (uint32_t k = 0; k < n; k++) {
		const uint64_t at = align_up(floor, b->align);
		if (s[k].offset >= at && s[k].offset - at >= b->bytes && s[k].offset - floor < best_gap) {
			best = at;
			best_gap = s[k].offset - floor;
			if (fit == OM_FIRST_FIT || best_gap == b->bytes)
				return best;
		}
		if (s[k].end > floor)
			floor = s[k].end;
	}
	return best == UINT64_MAX ? align_up(floor, b->align) : best;
}

void
om_greedy_place(om_greedy *g, uint32_t b, om_fit fit)
{
	om_buffer *buf = &g->component->buf[b];
	uint32_t n = 0;

	g->highest = g->height;
	for (uint32_t k = 0; k < buf->nlive; k++) {
		const om_interval *live = &buf->live[k];
		const struct requirement w = {live->lower, live->from, buf->bytes - om_interval_end(buf, live),
			buf->bytes};
		n = collect_neighbors(g, &w, om_lifetimes_before(g->component, live->upper), n);
	}
	g->work += n + 1;
	buf->offset = choose_offset(sort_spans(g, n), n, buf, fit);
	om_greedy_insert(g, b);
}

/* The tree keeps the ends of removed lifetimes: that costs visits, not correctness. */
void
om_greedy_remove(om_greedy *g, uint32_t b)
{
	for (uint32_t k = g->component->head[b]; k != UINT32_MAX; k = g->next[k])
		g->until[k] = 0;
}

static void
clear_all(om_greedy *g)
{
	g->height = 0;
	memset(g->latest_end, 0, 2 * (size_t)g->leaves * sizeof *g->latest_end);
	memset(g->until, 0, g->component->nlifetime * sizeof *g->until);
}

void
om_greedy_load(om_greedy *g)
{
	clear_all(g);
	for (uint32_t k = 0; k < g->component->nitem; k++)
		om_greedy_insert(g, g->component->item[k]);
}

uint64_t
om_greedy_run(om_greedy *g, const uint32_t *order, uint32_t n, om_fit fit)
{
	const om_component *p = g->component;

	clear_all(g);
	for (uint32_t k = 0; k < p->nitem; k++) {
		om_buffer *buf = &p->buf[p->item[k]];
		if (buf->fixed < 0)
			continue;
		buf->offset = (uint64_t)buf->fixed;
		om_greedy_insert(g, p->item[k]);
	}
	for (uint32_t k = 0; k < n; k++)
		om_greedy_place(g, order[k], fit);
	return g->height;
}
