/* SPDX-License-Identifier: Apache-2.0 */
/* The interference graph.
 *
 * Lifetimes are sorted by their start, and each node of a tree over them has the
 * latest end below it.  A lifetime that overlaps [lower, upper) starts before
 * `upper` and ends after `lower`: a traversal of the tree that prunes nodes where
 * no lifetime ends late enough finds k neighbors in O(k log n).
 *
 * If the plan is for any order, the pairs of the interference list interfere as
 * well.  Two buffers that are not in it, and are disjoint in time, are so in every
 * order.
 */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>

#include "pack/baselines/interference.h"
#include "pack/baselines/interference_list.h"
#include "pack/sort_keys.h"

/* ---- Lifetimes. ---- */

static int
compare_lower(const void *a, const void *b)
{
	const om_buffer_lifetime *x = a, *y = b;

	if (x->lower != y->lower)
		return x->lower < y->lower ? -1 : 1;
	return x->buf < y->buf ? -1 : x->buf > y->buf;
}

static void
list_spans(om_interference_graph *g)
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
list_lifetimes(om_interference_graph *g, om_arena *mem)
{
	size_t count = 0;

	for (uint32_t k = 0; k < g->n; k++)
		count += g->simple ? 1 : g->buf[k].nlive;
	g->lifetime = OM_NEWN(mem, om_buffer_lifetime, count);
	for (uint32_t k = 0; k < g->n; k++) {
		const om_interval *live = g->simple ? &g->span[k] : g->buf[k].live;
		for (uint32_t j = 0; j < (g->simple ? 1 : g->buf[k].nlive) && g->buf[k].bytes; j++)
			g->lifetime[g->nlifetime++] = (om_buffer_lifetime){live[j].lower, live[j].upper, k};
	}
	qsort(g->lifetime, g->nlifetime, sizeof *g->lifetime, compare_lower);
}

static void
build_tree(om_interference_graph *g, om_arena *mem)
{
	for (g->leaves = 1; g->leaves < g->nlifetime;)
		g->leaves *= 2;
	g->latest_end = OM_NEWN(mem, uint32_t, (size_t)2 * g->leaves);
	for (uint32_t k = 0; k < g->nlifetime; k++)
		g->latest_end[g->leaves + k] = g->lifetime[k].upper;
	for (uint32_t k = g->leaves - 1; k; k--)
		g->latest_end[k] = g->latest_end[2 * k] > g->latest_end[2 * k + 1] ? g->latest_end[2 * k]
			: g->latest_end[2 * k + 1];
}

/* The number of lifetimes that start before `step`. */
static uint32_t
count_started(const om_interference_graph *g, uint32_t step)
{
	uint32_t low = 0, high = g->nlifetime;

	while (low < high) {
		const uint32_t mid = low + (high - low) / 2;
		if (g->lifetime[mid].lower < step)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* All lifetimes before `end` that have not ended at `step`. Depth first, from the
 * left, without recursion: `node` moves on to the next unvisited subtree. */
static uint32_t
collect_overlaps(om_interference_graph *g, uint32_t end, uint32_t step, uint32_t *out, uint32_t n)
{
	uint32_t node = 1, first = 0, width = g->leaves;

	while (first < end) {
		if (g->latest_end[node] > step && node < g->leaves) {
			node *= 2;
			width /= 2;
			continue;
		}
		if (g->latest_end[node] > step && g->stamp[g->lifetime[first].buf] != g->now) {
			g->stamp[g->lifetime[first].buf] = g->now;
			out[n++] = g->lifetime[first].buf;
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
neighbors_in_time(om_interference_graph *g, uint32_t k, uint32_t *out)
{
	uint32_t n = 0;

	g->stamp[k] = ++g->now;
	for (uint32_t j = 0; j < (g->simple ? 1 : g->buf[k].nlive); j++) {
		const om_interval live = g->simple ? g->span[k] : g->buf[k].live[j];
		n = collect_overlaps(g, count_started(g, live.upper), live.lower, out, n);
	}
	return n;
}

/* ---- The interference list of plans for any order. ---- */

static void
list_interference(om_interference_graph *g, const om_interference_list *interference, om_arena *mem)
{
	g->start = OM_NEWN(mem, size_t, (size_t)g->n + 2);
	g->other = OM_NEWN(mem, uint32_t, 2 * interference->npair);
	for (uint64_t k = 0; k < interference->npair; k++) {
		g->start[interference->pair[k][0] + 2]++;
		g->start[interference->pair[k][1] + 2]++;
	}
	for (uint32_t k = 2; k <= g->n; k++)
		g->start[k] += g->start[k - 1];
	for (uint64_t k = 0; k < interference->npair; k++) {
		const uint32_t a = interference->pair[k][0], b = interference->pair[k][1];
		g->other[g->start[a + 1]++] = b;
		g->other[g->start[b + 1]++] = a;
	}
	for (uint32_t k = 0; k < g->n; k++)
		qsort(g->other + g->start[k], g->start[k + 1] - g->start[k], sizeof *g->other, om_compare_u32);
}

static bool
is_listed(const om_interference_graph *g, uint32_t i, uint32_t j)
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
add_listed(om_interference_graph *g, uint32_t k, uint32_t *out, uint32_t n)
{
	for (size_t i = g->start[k]; i < g->start[k + 1]; i++)
		if (g->stamp[g->other[i]] != g->now && g->buf[g->other[i]].bytes) {
			g->stamp[g->other[i]] = g->now;
			out[n++] = g->other[i];
		}
	return n;
}

uint32_t
om_interference_neighbors(om_interference_graph *g, uint32_t k, uint32_t *out)
{
	if (g->buf[k].bytes == 0)
		return 0;
	const uint32_t n = neighbors_in_time(g, k, out);
	return g->start ? add_listed(g, k, out, n) : n;
}

bool
om_always_before(const om_interference_graph *g, uint32_t i, uint32_t j)
{
	return g->span[i].upper <= g->span[j].lower && !(g->start && is_listed(g, i, j));
}

/* ---- Degrees. ---- */

/* With one lifetime each: the number that start before its end, less those that
 * have ended at its start, less itself. */
static void
count_degrees_in_time(om_interference_graph *g, om_arena *mem)
{
	uint32_t *end = OM_NEWN(mem, uint32_t, g->nlifetime);

	for (uint32_t k = 0; k < g->nlifetime; k++)
		end[k] = g->lifetime[k].upper;
	qsort(end, g->nlifetime, sizeof *end, om_compare_u32);
	for (uint32_t k = 0, ended = 0; k < g->nlifetime; k++) {
		while (ended < g->nlifetime && end[ended] <= g->lifetime[k].lower)
			ended++;
		g->degree[g->lifetime[k].buf] = count_started(g, g->lifetime[k].upper) - ended - 1;
	}
}

static void
count_degrees(om_interference_graph *g, om_arena *mem)
{
	uint32_t *out = OM_NEWN(mem, uint32_t, g->n);

	if (!g->start && g->simple) {
		count_degrees_in_time(g, mem);
		return;
	}
	for (uint32_t k = 0; k < g->n; k++)
		g->degree[k] = om_interference_neighbors(g, k, out);
}

om_interference_graph *
om_interference_graph_new(const om_buffer *buf, uint32_t n, const om_interference_list *interference,
	bool whole,
	om_arena *mem)
{
	om_interference_graph *g = OM_NEW(mem, om_interference_graph);

	*g = (om_interference_graph){.buf = buf, .n = n, .simple = true,
		.span = OM_NEWN(mem, om_interval, n), .degree = OM_NEWN(mem, uint32_t, n),
		.stamp = OM_NEWN(mem, uint32_t, n)};
	for (uint32_t k = 0; k < n && !whole; k++)
		g->simple &= buf[k].nlive == 1;
	list_spans(g);
	list_lifetimes(g, mem);
	build_tree(g, mem);
	if (interference)
		list_interference(g, interference, mem);
	count_degrees(g, mem);
	return g;
}

/* ---- Shared by the strategies. ---- */

om_status
om_baseline_check(om_session *s, const om_buffer *buf, uint32_t n, uint64_t *align)
{
	uint64_t sum = 0;

	*align = 1;
	for (uint32_t k = 0; k < n; k++) {
		if (buf[k].fixed >= 0)
			return om_fail(s, OM_INVALID, "buffer %" PRIu32 " (%s) is fixed at offset %" PRId64
				", which this strategy does not support", k, buf[k].name ? buf[k].name : "unnamed",
				buf[k].fixed);
		if (buf[k].align & (buf[k].align - 1))
			return om_fail(s, OM_INVALID, "buffer %" PRIu32 " (%s) has alignment %" PRIu64
				", which is not a power of two", k, buf[k].name ? buf[k].name : "unnamed",
				buf[k].align);
		*align = buf[k].align > *align ? buf[k].align : *align;
	}
	for (uint32_t k = 0; k < n; k++)
		if (buf[k].bytes > INT64_MAX - *align
		    || __builtin_add_overflow(sum, (buf[k].bytes + *align - 1) & ~(*align - 1), &sum)
		    || sum > INT64_MAX)
			return om_fail(s, OM_INVALID, "the sum of the bytes of all %" PRIu32 " buffers overflows 63 bits",
				n);
	return OM_OK;
}

void
om_baseline_evaluate(const om_buffer *buf, uint32_t n, const om_interference_list *interference,
	const char *strategy,
	om_baseline_result *r)
{
	om_pack_result *p = &r->pack;

	*p = (om_pack_result){.strategy = strategy};
	for (uint32_t k = 0; k < n; k++)
		if (buf[k].bytes && buf[k].offset + buf[k].bytes > p->height)
			p->height = buf[k].offset + buf[k].bytes;
	p->lower_bound = om_pack_bound(buf, n, &p->bound_step);
	if (interference && interference->bound > p->lower_bound)
		p->lower_bound = interference->bound;
	p->status = p->height == p->lower_bound ? OM_PACK_OPTIMAL : OM_PACK_FEASIBLE;
}
