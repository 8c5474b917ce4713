/* SPDX-License-Identifier: Apache-2.0 */
/* The allocation graph of NNC tensor allocation (L. Liu, 2018), in one arena.
 *
 * Every edge of the graph is one range of addresses.  All buffers of an inserted
 * tuple start at one address, so each of them gets contiguous bytes: the bytes that
 * the first one does not cover pass to the next ones from the same predecessor, at
 * higher addresses.  Offsets are therefore known from the start, and no flow has to
 * be decomposed at the end.
 *
 * Invariants after every insertion, which are asserted: the bytes that flow into a
 * buffer flow out again and are its size; edges have positive weight; an edge goes
 * forward in time, so two buffers on one path never interfere.
 *
 * NNC gives a buffer that fits on no edge a region of its own, never merged with
 * another.  In one arena a buffer may also be placed over several adjacent edges,
 * or over the free bytes at the top and new ones; whether that helps depends on the
 * graph, so both are tried and the smaller arena is kept.
 */
#include <config.h>

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/guard.h"
#include "pack/baselines/baselines.h"
#include "pack/baselines/interference_list.h"
#include "pack/baselines/nnc_graph.h"
#include "pack/sort_keys.h"
#include "pack/baselines/strategies.h"

static uint32_t
source(const om_nnc_graph *f)
{
	return f->n;
}

static uint32_t
sink(const om_nnc_graph *f)
{
	return f->n + 1;
}

void
om_nnc_graph_init(om_nnc_graph *f, om_interference_graph *g, uint64_t align, bool spans, om_arena *mem)
{
	*f = (om_nnc_graph){.g = g, .mem = mem, .n = g->n, .spans = spans,
		.bytes = OM_NEWN(mem, uint64_t, g->n), .at = OM_NEWN(mem, uint64_t, g->n),
		.is_in = OM_NEWN(mem, bool, g->n), .in = OM_NEWN(mem, uint64_t, (size_t)g->n + 2),
		.out = OM_NEWN(mem, uint64_t, (size_t)g->n + 2)};
	for (uint32_t k = 0; k < g->n; k++) {
		f->bytes[k] = (g->buf[k].bytes + align - 1) & ~(align - 1);
		f->is_in[k] = f->bytes[k] == 0;
	}
}

/* ---- Edges. ---- */

bool
om_nnc_graph_passes(const om_nnc_graph *f, const om_nnc_edge *e, uint32_t t)
{
	return (e->from == source(f) || om_always_before(f->g, e->from, t))
	    && (e->to == sink(f) || om_always_before(f->g, t, e->to));
}

/* The steps for which the bytes are idle; the ends of the program count as far
 * away. */
static uint64_t
idle(const om_nnc_graph *f, const om_nnc_edge *e, uint32_t t)
{
	const om_interval *span = f->g->span;
	uint64_t steps = 0;

	steps += e->from == source(f) ? f->g->last + UINT64_C(1) : span[t].lower - span[e->from].upper;
	steps += e->to == sink(f) ? f->g->last + UINT64_C(1) : span[e->to].lower - span[t].upper;
	return steps;
}

size_t
om_nnc_graph_find(const om_nnc_graph *f, uint32_t t, uint64_t bytes, size_t first)
{
	size_t best = OM_NNC_NO_EDGE;
	uint64_t least = UINT64_MAX;

	for (size_t k = first; k < f->nedge; k++) {
		const om_nnc_edge *e = &f->edge[k];
		if (e->high - e->low < bytes || !om_nnc_graph_passes(f, e, t) || idle(f, e, t) >= least)
			continue;
		least = idle(f, e, t);
		best = k;
	}
	return best;
}

static void
add_edge(om_nnc_graph *f, uint32_t from, uint32_t to, uint64_t low, uint64_t high)
{
	const om_nnc_edge e = {from, to, low, high};

	assert(low < high);
	assert(from == source(f) || to == sink(f) || om_always_before(f->g, from, to));
	f->out[from] += high - low;
	f->in[to] += high - low;
	for (size_t k = f->nedge; k-- && f->nedge - k <= 2 * OM_NNC_TUPLE + 2;) {
		om_nnc_edge *last = &f->edge[k];
		if (last->from == from && last->to == to && last->high == low && last->low < last->high) {
			last->high = high;
			return;
		}
	}
	OM_PUSH(f->mem, f->edge, f->nedge, f->capedge, e);
}

/* Remove [low, high) from edge `k`; the ranges on both sides remain. */
static void
remove_range(om_nnc_graph *f, size_t k, uint64_t low, uint64_t high)
{
	const om_nnc_edge e = f->edge[k];

	assert(e.low <= low && low < high && high <= e.high);
	f->out[e.from] -= high - low;
	f->in[e.to] -= high - low;
	if (e.low == low) {
		f->edge[k].low = high;
		return;
	}
	f->edge[k].high = low;
	if (high < e.high) {
		const om_nnc_edge rest = {e.from, e.to, high, e.high};
		OM_PUSH(f->mem, f->edge, f->nedge, f->capedge, rest);
	}
}

/* ---- Insertion. ---- */

static void
sort_by_access(const om_nnc_graph *f, uint32_t *tuple, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		for (uint32_t k = i; k && om_always_before(f->g, tuple[k], tuple[k - 1]); k--) {
			const uint32_t other = tuple[k];
			tuple[k] = tuple[k - 1];
			tuple[k - 1] = other;
		}
}

static uint64_t
max_bytes(const om_nnc_graph *f, const uint32_t *tuple, uint32_t n)
{
	uint64_t max = 0;

	for (uint32_t k = 0; k < n; k++)
		max = f->bytes[tuple[k]] > max ? f->bytes[tuple[k]] : max;
	return max;
}

/* The lowest end of a member above `at`, at most `high`. */
static uint64_t
next_end(const om_nnc_graph *f, const uint32_t *tuple, uint32_t n, uint64_t base, uint64_t at, uint64_t high)
{
	for (uint32_t k = 0; k < n; k++) {
		const uint64_t end = base + f->bytes[tuple[k]];
		if (end > at && end < high)
			high = end;
	}
	return high;
}

/* Route bytes [low, high) of edge `k` through the tuple, which starts at `base`:
 * through those of its members that are large enough. */
static void
reroute(om_nnc_graph *f, size_t k, const uint32_t *tuple, uint32_t n, uint64_t base, uint64_t low,
	uint64_t high)
{
	const om_nnc_edge e = f->edge[k];

	remove_range(f, k, low, high);
	for (uint64_t at = low, end; at < high; at = end) {
		uint32_t prev = e.from;
		end = next_end(f, tuple, n, base, at, high);
		for (uint32_t i = 0; i < n; i++) {
			if (base + f->bytes[tuple[i]] < end)
				continue;
			add_edge(f, prev, tuple[i], at, end);
			prev = tuple[i];
		}
		add_edge(f, prev, e.to, at, end);
	}
}

static size_t
add_region(om_nnc_graph *f, uint64_t bytes)
{
	const om_nnc_edge e = {source(f), sink(f), f->height, f->height + bytes};

	f->out[e.from] += bytes;
	f->in[e.to] += bytes;
	f->height += bytes;
	f->regions++;
	OM_PUSH(f->mem, f->edge, f->nedge, f->capedge, e);
	return f->nedge - 1;
}

static void
check_insertion(const om_nnc_graph *f, const uint32_t *tuple, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		assert(f->in[tuple[k]] == f->bytes[tuple[k]]);
		assert(f->out[tuple[k]] == f->bytes[tuple[k]]);
	}
	assert(f->out[source(f)] == f->height && f->in[sink(f)] == f->height);
	(void)f, (void)tuple, (void)n;
}

/* ---- Several adjacent edges. ---- */

struct free_range {
	uint64_t low, high;
	size_t edge;
};

static int
compare_address(const void *a, const void *b)
{
	const struct free_range *x = a, *y = b;
	return x->low < y->low ? -1 : x->low > y->low;
}

static bool
passes_all(const om_nnc_graph *f, const om_nnc_edge *e, const uint32_t *tuple, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		if (!om_nnc_graph_passes(f, e, tuple[k]))
			return false;
	return true;
}

/* All edges that are free during the tuple, sorted by address; they are disjoint,
 * since no two edges have the same byte at one step. */
static struct free_range *
collect_free_ranges(const om_nnc_graph *f, const uint32_t *tuple, uint32_t n, om_arena *mem, size_t *count)
{
	struct free_range *range = NULL;
	size_t m = 0, cap = 0;

	for (size_t k = 0; k < f->nedge; k++) {
		const om_nnc_edge *e = &f->edge[k];
		if (e->low == e->high || !passes_all(f, e, tuple, n))
			continue;
		const struct free_range r = {e->low, e->high, k};
		OM_PUSH(mem, range, m, cap, r);
	}
	if (m)
		qsort(range, m, sizeof *range, compare_address);
	*count = m;
	return range;
}

/* The tightest run of ranges that holds `bytes`; otherwise the one at the top. */
static uint64_t
find_run(const om_nnc_graph *f, const struct free_range *r, size_t n, uint64_t bytes)
{
	uint64_t base = f->height, tightest = UINT64_MAX;

	for (size_t k = 0, next; k < n; k = next) {
		for (next = k + 1; next < n && r[next].low == r[next - 1].high;)
			next++;
		const uint64_t low = r[k].low, size = r[next - 1].high - low;
		if ((size >= bytes && size < tightest) || (tightest == UINT64_MAX && low + size == f->height)) {
			base = low;
			tightest = size >= bytes ? size : tightest;
		}
	}
	return base;
}

static void
insert_over_edges(om_nnc_graph *f, const uint32_t *tuple, uint32_t n, uint64_t bytes)
{
	om_arena *mem = om_arena_new();
	size_t m;
	struct free_range *r = collect_free_ranges(f, tuple, n, mem, &m);
	const uint64_t base = find_run(f, r, m, bytes), end = base + bytes;

	for (uint32_t k = 0; k < n; k++)
		f->at[tuple[k]] = base;
	for (size_t k = 0; k < m; k++)
		if (r[k].low >= base && r[k].low < end)
			reroute(f, r[k].edge, tuple, n, base, r[k].low, r[k].high < end ? r[k].high : end);
	if (end > f->height) {
		const uint64_t low = f->height;
		reroute(f, add_region(f, end - low), tuple, n, base, low, end);
	}
	om_arena_free(mem);
}

void
om_nnc_graph_insert(om_nnc_graph *f, const uint32_t *members, uint32_t n, size_t edge)
{
	uint32_t tuple[OM_NNC_TUPLE];
	const uint64_t bytes = max_bytes(f, members, n);

	memcpy(tuple, members, n * sizeof *tuple);
	sort_by_access(f, tuple, n);
	if (edge == (size_t)OM_NNC_NO_EDGE && f->spans) {
		insert_over_edges(f, tuple, n, bytes);
	} else {
		edge = edge == (size_t)OM_NNC_NO_EDGE ? add_region(f, bytes) : edge;
		const uint64_t base = f->edge[edge].low;
		for (uint32_t k = 0; k < n; k++)
			f->at[tuple[k]] = base;
		reroute(f, edge, tuple, n, base, base, base + bytes);
	}
	for (uint32_t k = 0; k < n; k++)
		f->is_in[tuple[k]] = true;
	check_insertion(f, tuple, n);
}

/* ---- Insertion by size. ---- */

/* Insert all buffers of one size, [from, to) of `list`. The first that fits on an
 * edge is inserted; if none does, the first gets new bytes.  Edges only get
 * smaller, so a buffer that fitted on none tries only new ones: `seen`. */
static void
insert_class(om_nnc_graph *f, const om_sort_key *list, uint32_t from, uint32_t to, size_t *seen)
{
	for (uint32_t left = to - from; left; left--) {
		uint32_t first = to, k;
		size_t edge = OM_NNC_NO_EDGE;
		for (k = from; k < to; k++) {
			const uint32_t t = list[k].id;
			if (f->is_in[t])
				continue;
			first = first == to ? k : first;
			edge = om_nnc_graph_find(f, t, f->bytes[t], seen[t]);
			if (edge != (size_t)OM_NNC_NO_EDGE)
				break;
			seen[t] = f->nedge;
		}
		om_nnc_graph_insert(f, &list[edge == (size_t)OM_NNC_NO_EDGE ? first : k].id, 1, edge);
		while (from < to && f->is_in[list[from].id])
			from++;
	}
}

void
om_nnc_by_size(om_nnc_graph *f)
{
	om_sort_key *list = OM_NEWN(f->mem, om_sort_key, f->n);
	size_t *seen = OM_NEWN(f->mem, size_t, f->n);
	uint32_t n = 0;

	for (uint32_t k = 0; k < f->n; k++)
		if (!f->is_in[k])
			list[n++] = (om_sort_key){f->bytes[k], f->g->degree[k], k};
	qsort(list, n, sizeof *list, om_compare_sort_keys);
	for (uint32_t from = 0, to; from < n; from = to) {
		for (to = from + 1; to < n && list[to].major == list[from].major;)
			to++;
		insert_class(f, list, from, to, seen);
	}
}

/* ---- Output and entry point. ---- */

static const char *
node_name(const om_nnc_graph *f, uint32_t node, om_arena *mem)
{
	if (node == source(f))
		return "source";
	if (node == sink(f))
		return "sink";
	const om_buffer *b = &f->g->buf[node];
	return b->name ? b->name : om_printf(mem, "%" PRIu32, node);
}

static void
write_quoted(FILE *to, const char *text)
{
	fputc('"', to);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', to);
		fputc(*text, to);
	}
	fputc('"', to);
}

static void
write_graph(const om_nnc_graph *f, FILE *to, om_arena *mem)
{
	fprintf(to, "digraph allocation {\n\trankdir=LR;\n\tnode [shape=box];\n");
	for (uint32_t k = 0; k < f->n; k++) {
		if (f->bytes[k] == 0)
			continue;
		fprintf(to, "\tn%" PRIu32 " [label=", k);
		write_quoted(to, om_printf(mem, "%s, %" PRIu64 " at %" PRIu64, node_name(f, k, mem),
			f->bytes[k], f->at[k]));
		fprintf(to, "];\n");
	}
	fprintf(to, "\tn%" PRIu32 " [label=source];\n\tn%" PRIu32 " [label=sink];\n", source(f), sink(f));
	for (size_t k = 0; k < f->nedge; k++)
		if (f->edge[k].low < f->edge[k].high)
			fprintf(to, "\tn%" PRIu32 " -> n%" PRIu32 " [label=\"%" PRIu64 "\"];\n", f->edge[k].from,
				f->edge[k].to, f->edge[k].high - f->edge[k].low);
	fprintf(to, "}\n");
}

static void
build_graph(om_nnc_graph *f, om_interference_graph *g, om_nnc_rule rule, uint64_t work, uint64_t align, bool spans,
	om_arena *mem)
{
	om_nnc_graph_init(f, g, align, spans, mem);
	if (rule == OM_NNC_PAPER)
		om_nnc_by_tuples(f, work);
	else
		om_nnc_by_size(f);
}

static om_status
nnc_guarded(om_session *s, om_buffer *buf, uint32_t n, const om_interference_list *interference,
	om_nnc_rule rule, uint64_t work, FILE *graph, om_baseline_result *r)
{
	om_arena *mem = om_arena_new();
	uint64_t align;
	const om_status st = om_baseline_check(s, buf, n, &align);

	if (st == OM_OK) {
		om_interference_graph *g = om_interference_graph_new(buf, n, interference, true, mem);
		om_nnc_graph regions, spans;
		build_graph(&regions, g, rule, work, align, false, mem);
		build_graph(&spans, g, rule, work, align, true, mem);
		const om_nnc_graph *best = spans.height < regions.height ? &spans : &regions;
		for (uint32_t k = 0; k < n; k++)
			buf[k].offset = best->at[k];
		om_baseline_evaluate(buf, n, interference, rule == OM_NNC_PAPER ? "nnc=text" : "nnc=flow", r);
		r->blocks = best->regions;
		r->pack.is_limited = regions.is_limited || spans.is_limited;
		if (graph)
			write_graph(best, graph, mem);
	}
	om_arena_free(mem);
	return st;
}

om_status
om_baseline_nnc(om_session *s, om_buffer *buf, uint32_t n, const om_interference_list *interference,
	om_nnc_rule rule, uint64_t work, FILE *graph, om_baseline_result *r)
{
	OM_GUARDED(s, nnc_guarded(s, buf, n, interference, rule, work, graph, r));
}

/* ---- Rows. ---- */

static om_status
by_text(om_session *s, const om_share_problem *p, om_baseline_result *r)
{
	return om_baseline_nnc(s, p->buf, p->n, p->open, OM_NNC_PAPER, p->work, p->graph, r);
}

static om_status
by_size(om_session *s, const om_share_problem *p, om_baseline_result *r)
{
	return om_baseline_nnc(s, p->buf, p->n, p->open, OM_NNC_BY_SIZE, 0, p->graph, r);
}

const om_strategy om_strategies_nnc_graph[] = {
	{"nnc-paper", "partial reuse along NNC's allocation graph, tuples with most interference first", true, by_text},
	{"nnc-code", "partial reuse along NNC's allocation graph, largest first", true, by_size},
	{0}
};
