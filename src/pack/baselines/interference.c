/* The interference graph.
 *
 * Lifetimes lie sorted by their start, and a tree over them knows the latest
 * end below each of its nodes.  Whoever overlaps [lower, upper) starts before
 * `upper` and ends behind `lower`: a walk down the tree that turns back where
 * nothing ends late enough finds k neighbours in O(k log n).
 *
 * Where the order is open, who is in a list of conflicts interferes as well.
 * Whoever is not, and is apart in time, is so in every order.
 */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>

#include "pack/baselines/interference.h"
#include "pack/sort_keys.h"

/* ---- Lifetimes. ---- */

static int
by_lower(const void *a, const void *b)
{
	const om_segment_of *x = a, *y = b;

	if (x->lower != y->lower)
		return x->lower < y->lower ? -1 : 1;
	return x->buf < y->buf ? -1 : x->buf > y->buf;
}

static void
list_spans(om_interfere *g)
{
	for (uint32_t k = 0; k < g->n; k++) {
		om_interval *span = &g->span[k];
		*span = (om_interval){.lower = UINT32_MAX};
		for (uint32_t j = 0; j < g->buf[k].nlive; j++) {
			const om_interval *live = &g->buf[k].live[j];
			span->lower = live->lower < span->lower ? live->lower : span->lower;
			span->upper = live->upper > span->upper ? live->upper : span->upper;
		}
		g->last = span->upper > g->last ? span->upper : g->last;
	}
}

static void
list_pieces(om_interfere *g, om_arena *mem)
{
	size_t most = 0;

	for (uint32_t k = 0; k < g->n; k++)
		most += g->simple ? 1 : g->buf[k].nlive;
	g->piece = OM_NEWN(mem, om_segment_of, most);
	for (uint32_t k = 0; k < g->n; k++) {
		const om_interval *live = g->simple ? &g->span[k] : g->buf[k].live;
		for (uint32_t j = 0; j < (g->simple ? 1 : g->buf[k].nlive) && g->buf[k].bytes; j++)
			g->piece[g->npiece++] = (om_segment_of){live[j].lower, live[j].upper, k};
	}
	qsort(g->piece, g->npiece, sizeof *g->piece, by_lower);
}

static void
plant(om_interfere *g, om_arena *mem)
{
	for (g->leaves = 1; g->leaves < g->npiece;)
		g->leaves *= 2;
	g->top = OM_NEWN(mem, uint32_t, (size_t)2 * g->leaves);
	for (uint32_t k = 0; k < g->npiece; k++)
		g->top[g->leaves + k] = g->piece[k].upper;
	for (uint32_t k = g->leaves - 1; k; k--)
		g->top[k] = g->top[2 * k] > g->top[2 * k + 1] ? g->top[2 * k] : g->top[2 * k + 1];
}

/* How many start before `step`. */
static uint32_t
started(const om_interfere *g, uint32_t step)
{
	uint32_t low = 0, high = g->npiece;

	while (low < high) {
		const uint32_t mid = low + (high - low) / 2;
		if (g->piece[mid].lower < step)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* All pieces before `end` that are not over at `step`.  Depth first, from the
 * left, without recursion: `node` moves on to the next subtree not yet seen. */
static uint32_t
collect(om_interfere *g, uint32_t end, uint32_t step, uint32_t *out, uint32_t n)
{
	uint32_t node = 1, first = 0, width = g->leaves;

	while (first < end) {
		if (g->top[node] > step && node < g->leaves) {
			node *= 2;
			width /= 2;
			continue;
		}
		if (g->top[node] > step && g->stamp[g->piece[first].buf] != g->now) {
			g->stamp[g->piece[first].buf] = g->now;
			out[n++] = g->piece[first].buf;
		}
		first += width;
		for (; node & 1 && node > 1; node /= 2)
			width *= 2;
		node++;
		if (node == 2)
			break;
	}
	return n;
}

static uint32_t
neighbours_in_time(om_interfere *g, uint32_t k, uint32_t *out)
{
	uint32_t n = 0;

	g->stamp[k] = ++g->now;
	for (uint32_t j = 0; j < (g->simple ? 1 : g->buf[k].nlive); j++) {
		const om_interval live = g->simple ? g->span[k] : g->buf[k].live[j];
		n = collect(g, started(g, live.upper), live.lower, out, n);
	}
	return n;
}

/* ---- Conflicts where the order is open. ---- */

static void
list_conflicts(om_interfere *g, const om_interference_list *open, om_arena *mem)
{
	g->start = OM_NEWN(mem, size_t, (size_t)g->n + 2);
	g->other = OM_NEWN(mem, uint32_t, 2 * open->npair);
	for (uint64_t k = 0; k < open->npair; k++) {
		g->start[open->pair[k][0] + 2]++;
		g->start[open->pair[k][1] + 2]++;
	}
	for (uint32_t k = 2; k <= g->n; k++)
		g->start[k] += g->start[k - 1];
	for (uint64_t k = 0; k < open->npair; k++) {
		const uint32_t a = open->pair[k][0], b = open->pair[k][1];
		g->other[g->start[a + 1]++] = b;
		g->other[g->start[b + 1]++] = a;
	}
	for (uint32_t k = 0; k < g->n; k++)
		qsort(g->other + g->start[k], g->start[k + 1] - g->start[k], sizeof *g->other, om_by_number);
}

static bool
is_in_conflict(const om_interfere *g, uint32_t i, uint32_t j)
{
	size_t low = g->start[i], high = g->start[i + 1];

	while (low < high) {
		const size_t mid = low + (high - low) / 2;
		if (g->other[mid] < j)
			low = mid + 1;
		else
			high = mid;
	}
	return low < g->start[i + 1] && g->other[low] == j;
}

static uint32_t
add_conflicts(om_interfere *g, uint32_t k, uint32_t *out, uint32_t n)
{
	for (size_t i = g->start[k]; i < g->start[k + 1]; i++)
		if (g->stamp[g->other[i]] != g->now && g->buf[g->other[i]].bytes) {
			g->stamp[g->other[i]] = g->now;
			out[n++] = g->other[i];
		}
	return n;
}

uint32_t
om_neighbours(om_interfere *g, uint32_t k, uint32_t *out)
{
	if (g->buf[k].bytes == 0)
		return 0;
	const uint32_t n = neighbours_in_time(g, k, out);
	return g->start ? add_conflicts(g, k, out, n) : n;
}

bool
om_interfere_before(const om_interfere *g, uint32_t i, uint32_t j)
{
	return g->span[i].upper <= g->span[j].lower && !(g->start && is_in_conflict(g, i, j));
}

/* ---- Degrees. ---- */

/* Of one lifetime each: all that start before its end, less those that are over
 * at its start, less itself. */
static void
count_spans(om_interfere *g, om_arena *mem)
{
	uint32_t *end = OM_NEWN(mem, uint32_t, g->npiece);

	for (uint32_t k = 0; k < g->npiece; k++)
		end[k] = g->piece[k].upper;
	qsort(end, g->npiece, sizeof *end, om_by_number);
	for (uint32_t k = 0, over = 0; k < g->npiece; k++) {
		while (over < g->npiece && end[over] <= g->piece[k].lower)
			over++;
		g->degree[g->piece[k].buf] = started(g, g->piece[k].upper) - over - 1;
	}
}

static void
count_degrees(om_interfere *g, om_arena *mem)
{
	uint32_t *out = OM_NEWN(mem, uint32_t, g->n);

	if (!g->start && g->simple) {
		count_spans(g, mem);
		return;
	}
	for (uint32_t k = 0; k < g->n; k++)
		g->degree[k] = om_neighbours(g, k, out);
}

om_interfere *
om_interfere_new(const om_buffer *buf, uint32_t n, const om_interference_list *open, bool whole,
	om_arena *mem)
{
	om_interfere *g = OM_NEW(mem, om_interfere);

	*g = (om_interfere){.buf = buf, .n = n, .simple = true,
		.span = OM_NEWN(mem, om_interval, n), .degree = OM_NEWN(mem, uint32_t, n),
		.stamp = OM_NEWN(mem, uint32_t, n)};
	for (uint32_t k = 0; k < n && !whole; k++)
		g->simple &= buf[k].nlive == 1;
	list_spans(g);
	list_pieces(g, mem);
	plant(g, mem);
	if (open)
		list_conflicts(g, open, mem);
	count_degrees(g, mem);
	return g;
}

/* ---- What the strategies share. ---- */

om_status
om_baseline_check(om_session *s, const om_buffer *buf, uint32_t n, uint64_t *align)
{
	uint64_t sum = 0;

	*align = 1;
	for (uint32_t k = 0; k < n; k++) {
		if (buf[k].fixed >= 0)
			return om_fail(s, OM_INVALID, "buffer %" PRIu32 " (%s) has to lie at %" PRId64
				", which this strategy cannot promise", k, buf[k].name ? buf[k].name : "unnamed",
				buf[k].fixed);
		if (buf[k].align & (buf[k].align - 1))
			return om_fail(s, OM_INVALID, "buffer %" PRIu32 " (%s) is to be aligned to %" PRIu64
				", which is no power of two", k, buf[k].name ? buf[k].name : "unnamed",
				buf[k].align);
		*align = buf[k].align > *align ? buf[k].align : *align;
	}
	for (uint32_t k = 0; k < n; k++)
		if (buf[k].bytes > INT64_MAX - *align
		    || __builtin_add_overflow(sum, (buf[k].bytes + *align - 1) & ~(*align - 1), &sum)
		    || sum > INT64_MAX)
			return om_fail(s, OM_INVALID, "the bytes of all %" PRIu32 " buffers do not add up to a number", n);
	return OM_OK;
}

void
om_baseline_rate(const om_buffer *buf, uint32_t n, const om_interference_list *open, const char *strategy,
	om_baseline_result *r)
{
	om_pack_result *p = &r->pack;

	*p = (om_pack_result){.strategy = strategy};
	for (uint32_t k = 0; k < n; k++)
		if (buf[k].bytes && buf[k].offset + buf[k].bytes > p->height)
			p->height = buf[k].offset + buf[k].bytes;
	p->lower_bound = om_pack_bound(buf, n, &p->bound_step);
	if (open && open->bound > p->lower_bound)
		p->lower_bound = open->bound;
	p->status = p->height == p->lower_bound ? OM_PACK_OPTIMAL : OM_PACK_FEASIBLE;
}
