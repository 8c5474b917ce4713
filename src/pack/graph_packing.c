/* SPDX-License-Identifier: Apache-2.0 */
/* Packing by an interference list: pairs of buffers that may not overlap, no time.
 *
 * Units that are connected by pairs are packed together, one component after the
 * other: greedily in several orders, then again with the units above the bound
 * promoted in the order.  The bound is the heaviest clique found.  Only the list is
 * stored: a unit visits its neighbors when it is placed.
 */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>

#include "pack/graph_packing.h"
#include "pack/sort_keys.h"

/* ---- The list. ---- */

static om_status
check_pairs(om_session *s, const om_problem *p, om_arena *mem)
{
	for (uint64_t k = 0; k < p->npair; k++) {
		const uint32_t a = p->pair[k][0], b = p->pair[k][1];
		if (a >= p->n || b >= p->n)
			return om_fail(s, OM_INVALID, "pair %" PRIu64 " has buffer %" PRIu32 ", but there are %" PRIu32,
				k, a >= p->n ? a : b, p->n);
		if (a == b)
			return om_fail(s, OM_INVALID, "pair %" PRIu64 " is %s with itself", k,
				p->buf[a].name ? p->buf[a].name : om_printf(mem, "buffer %" PRIu32, a));
	}
	return OM_OK;
}

/* Transpose adjacency lists; the resulting lists are sorted. */
static void
transpose_adj(uint32_t n, const uint64_t *start, const uint32_t *adj, uint64_t *fill, uint32_t *out)
{
	memcpy(fill, start, n * sizeof *fill);
	for (uint32_t k = 0; k < n; k++)
		for (uint64_t i = start[k]; i < start[k + 1]; i++)
			out[fill[adj[i]]++] = k;
}

om_status
om_graph_pack_init(om_session *s, om_units *u, const om_problem *p)
{
	OM_TRY(check_pairs(s, p, u->mem));
	uint64_t *start = OM_NEWN(u->mem, uint64_t, (size_t)p->n + 1), m = 0;
	uint32_t *adj = OM_NEWN(u->mem, uint32_t, 2 * p->npair);
	om_arena *mem = om_arena_new();
	uint64_t *fill = OM_NEWN(mem, uint64_t, (size_t)p->n + 1);
	uint32_t *unsorted = OM_NEWN(mem, uint32_t, 2 * p->npair);

	for (uint64_t k = 0; k < p->npair; k++) {
		start[p->pair[k][0] + 1]++;
		start[p->pair[k][1] + 1]++;
	}
	for (uint32_t k = 0; k < p->n; k++)
		start[k + 1] += start[k];
	memcpy(fill, start, p->n * sizeof *fill);
	for (uint64_t k = 0; k < p->npair; k++) {
		unsorted[fill[p->pair[k][0]]++] = p->pair[k][1];
		unsorted[fill[p->pair[k][1]]++] = p->pair[k][0];
	}
	transpose_adj(p->n, start, unsorted, fill, adj);
	for (uint32_t k = 0; k < p->n; k++) {      /* remove duplicates */
		const uint64_t from = start[k], to = start[k + 1];
		start[k] = m;
		for (uint64_t i = from; i < to; i++)
			if (m == start[k] || adj[m - 1] != adj[i])
				adj[m++] = adj[i];
	}
	start[p->n] = m;
	u->adj = adj;
	u->adj_start = start;
	om_arena_free(mem);
	return OM_OK;
}

/* ---- Placing one unit. ---- */

enum {
	NORDERS = 6,
	MAX_REPAIRS = 60,
	PLACE_WORK = 20 * 1000 * 1000,     /* neighbors visited; a second or less */
	CLIQUE_WORK = 10 * 1000 * 1000,
};

/* The unit may not start between these, both exclusive. */
struct forbidden_span {
	int64_t low, high;
};

struct packer {
	om_units *u;
	uint64_t align;
	const om_search_limits *limits;
	bool *in, *placed;           /* by unit */
	uint32_t *unit, n;           /* of this component */
	uint32_t *order, *others, norder;
	uint64_t *offset;            /* of the best packing so far, in the order of `unit` */
	uint64_t height, goal, work;
	const char *strategy;
	bool is_proven;
	struct forbidden_span *span;
	size_t capacity;
	om_arena *mem;
};

static int
compare_low(const void *a, const void *b)
{
	const struct forbidden_span *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return x->high < y->high ? -1 : x->high > y->high;
}

/* The spans in which unit `k` may not start because of its neighbors. */
static size_t
collect_forbidden(struct packer *p, uint32_t k)
{
	const om_units *u = p->u;
	size_t n = 0;

	for (uint32_t j = u->first[k]; j < u->first[k + 1]; j++) {
		const uint32_t m = u->member[j];
		const int64_t bytes = (int64_t)u->source[m].bytes, place_unit = (int64_t)u->offset_in_unit[m];
		for (uint64_t i = u->adj_start[m]; bytes && i < u->adj_start[m + 1]; i++) {
			const uint32_t other = u->adj[i], v = u->unit_of[other];
			if (v == k || !p->placed[v] || u->source[other].bytes == 0)
				continue;
			const int64_t at = (int64_t)(u->buf[v].offset + u->offset_in_unit[other]);
			if (n == p->capacity)
				p->span = om_grow(p->mem, p->span, sizeof *p->span, n, &p->capacity);
			p->span[n++] = (struct forbidden_span){at - place_unit - bytes,
				at + (int64_t)u->source[other].bytes - place_unit};
		}
		p->work += u->adj_start[m + 1] - u->adj_start[m] + 1;
	}
	if (n > 1)
		qsort(p->span, n, sizeof *p->span, compare_low);
	return n;
}

static int64_t
align_up(int64_t offset, uint64_t align)
{
	const uint64_t up = (uint64_t)offset + align - 1;
	return align > 1 ? (int64_t)(up & ~(align - 1)) : offset;
}

static uint64_t
align_of(const struct packer *p, uint32_t k)
{
	return p->align > p->u->buf[k].align ? p->align : p->u->buf[k].align;
}

/* Place a unit in the tightest gap, or in the lowest. */
static void
place_unit(struct packer *p, uint32_t k, bool best_fit)
{
	const uint64_t align = align_of(p, k);
	const size_t n = collect_forbidden(p, k);
	int64_t floor = 0, best = -1, best_slack = INT64_MAX;

	for (size_t i = 0; i < n; i++) {
		const int64_t at = align_up(floor, align);
		if (p->span[i].low >= at && p->span[i].low - floor < best_slack) {
			best = at;
			best_slack = p->span[i].low - floor;
			if (!best_fit)
				break;
		}
		if (p->span[i].high > floor)
			floor = p->span[i].high;
	}
	p->u->buf[k].offset = (uint64_t)(best >= 0 ? best : align_up(floor, align));
	p->placed[k] = true;
}

static uint64_t
end_of(const om_buffer *b)
{
	return b->bytes ? b->offset + b->bytes : 0;
}

static uint64_t
place_all(struct packer *p, bool best_fit)
{
	uint64_t height = 0;

	for (uint32_t k = 0; k < p->n; k++) {
		om_buffer *b = &p->u->buf[p->unit[k]];
		p->placed[p->unit[k]] = b->fixed >= 0;
		if (b->fixed < 0)
			continue;
		b->offset = (uint64_t)b->fixed;
		height = end_of(b) > height ? end_of(b) : height;
	}
	for (uint32_t k = 0; k < p->norder; k++) {
		place_unit(p, p->order[k], best_fit);
		const uint64_t end = end_of(&p->u->buf[p->order[k]]);
		height = end > height ? end : height;
	}
	return height;
}

/* ---- Orders. ---- */

static const char *const order_name[NORDERS][2] = {
	{"size", "size+repair"}, {"weight", "weight+repair"}, {"degree", "degree+repair"},
	{"area", "area+repair"}, {"given", "given+repair"}, {"reverse", "reverse+repair"},
};

static om_sort_key
order_key(const struct packer *p, uint32_t k, uint32_t which)
{
	const om_units *u = p->u;
	const uint64_t bytes = u->buf[k].bytes;
	uint64_t degree = 0, weight = bytes;

	for (uint32_t j = u->first[k]; j < u->first[k + 1]; j++) {
		const uint32_t m = u->member[j];
		for (uint64_t i = u->adj_start[m]; i < u->adj_start[m + 1]; i++)
			if (p->in[u->unit_of[u->adj[i]]]) {
				degree++;
				weight += u->source[u->adj[i]].bytes;
			}
	}
	switch (which) {
	case 0: return (om_sort_key){bytes, degree, k};
	case 1: return (om_sort_key){weight, bytes, k};
	case 2: return (om_sort_key){degree, bytes, k};
	case 3: return (om_sort_key){bytes > UINT64_MAX / (degree + 1) ? UINT64_MAX : bytes * (degree + 1), bytes,
		k};
	case 4: return (om_sort_key){0, 0, k};
	default: return (om_sort_key){k, 0, k};
	}
}

static void
fill_order(struct packer *p, uint32_t which)
{
	om_arena *mem = om_arena_new();
	om_sort_key *key = OM_NEWN(mem, om_sort_key, p->n);
	uint32_t n = 0;

	for (uint32_t k = 0; k < p->n; k++)
		if (p->u->buf[p->unit[k]].fixed < 0)
			key[n++] = order_key(p, p->unit[k], which);
	qsort(key, n, sizeof *key, om_compare_sort_keys);
	for (uint32_t k = 0; k < n; k++)
		p->order[k] = key[k].id;
	p->norder = n;
	om_arena_free(mem);
}

/* ---- A component. ---- */

static void
keep_best(struct packer *p, uint64_t height, const char *strategy)
{
	if (height >= p->height)
		return;
	p->height = height;
	p->strategy = strategy;
	for (uint32_t k = 0; k < p->n; k++)
		p->offset[k] = p->u->buf[p->unit[k]].offset;
}

static bool
is_finished(const struct packer *p)
{
	return p->height <= p->goal || (p->height < UINT64_MAX && om_is_past_deadline(p->limits));
}

static bool
promote_high(struct packer *p)
{
	uint32_t n = 0, m = 0;

	for (uint32_t k = 0; k < p->norder; k++)
		if (end_of(&p->u->buf[p->order[k]]) > p->goal)
			p->order[n++] = p->order[k];
		else
			p->others[m++] = p->order[k];
	memcpy(p->order + n, p->others, m * sizeof *p->others);
	return n > 0 && m > 0;
}

static void
try_orders(struct packer *p, uint64_t work)
{
	for (uint32_t k = 0; k < 2 * NORDERS && !is_finished(p); k++) {
		if (p->height < UINT64_MAX && p->work > work)
			return;
		fill_order(p, k / 2);
		keep_best(p, place_all(p, k % 2 == 0), order_name[k / 2][0]);
		for (uint32_t iteration = 0; iteration < MAX_REPAIRS && p->work <= work && !is_finished(p)
			&& promote_high(p); iteration++)
			keep_best(p, place_all(p, k % 2 == 0), order_name[k / 2][1]);
	}
}

static bool
is_searchable(const struct packer *p)
{
	for (uint32_t k = 0; k < p->n; k++)
		if (p->u->first[p->unit[k] + 1] - p->u->first[p->unit[k]] > 1)
			return false;
	return p->n <= OM_GRAPH_SEARCH_MAX;
}

static void
pack_component(struct packer *p)
{
	p->height = UINT64_MAX;
	p->work = 0;
	p->is_proven = false;
	try_orders(p, p->limits->work ? p->limits->work : PLACE_WORK);
	if (!is_finished(p) && is_searchable(p)) {
		const uint64_t before = p->height;
		p->is_proven = om_graph_branch_bound(p->u, p->unit, p->n, p->align, p->goal, p->limits, p->offset,
			&p->height) && p->height > p->goal;
		if (p->height < before)
			p->strategy = "search";
	}
	for (uint32_t k = 0; k < p->n; k++)
		p->u->buf[p->unit[k]].offset = p->offset[k];
}

/* Collect the component of unit `k`, which is the first unit of it. */
static void
find_component(struct packer *p, bool *seen, uint32_t k)
{
	const om_units *u = p->u;

	p->n = 0;
	p->unit[p->n++] = k;
	seen[k] = true;
	for (uint32_t at = 0; at < p->n; at++)
		for (uint32_t j = u->first[p->unit[at]]; j < u->first[p->unit[at] + 1]; j++) {
			const uint32_t m = u->member[j];
			for (uint64_t i = u->adj_start[m]; i < u->adj_start[m + 1]; i++) {
				const uint32_t v = u->unit_of[u->adj[i]];
				if (!p->in[v] || seen[v])
					continue;
				seen[v] = true;
				p->unit[p->n++] = v;
			}
		}
}

/* ---- A pool. ---- */

static om_status
check_fixed(om_session *s, const struct packer *p, uint32_t k)
{
	const om_units *u = p->u;

	if (p->align > 1 && u->buf[k].fixed > 0 && (uint64_t)u->buf[k].fixed % p->align)
		return om_fail(s, OM_INVALID,
			"%s is fixed at %" PRId64 ", which is not a multiple of its pool's alignment %"
			PRIu64, om_unit_name(u, k, p->mem), u->buf[k].fixed, p->align);
	for (uint32_t j = u->first[k]; j < u->first[k + 1]; j++) {
		const uint32_t m = u->member[j];
		const uint64_t at = (uint64_t)u->buf[k].fixed + u->offset_in_unit[m];
		for (uint64_t i = u->adj_start[m]; i < u->adj_start[m + 1]; i++) {
			const uint32_t other = u->adj[i], v = u->unit_of[other];
			if (v == k || !p->in[v] || u->buf[v].fixed < 0)
				continue;
			const uint64_t there = (uint64_t)u->buf[v].fixed + u->offset_in_unit[other];
			if (at < there + u->source[other].bytes && there < at + u->source[m].bytes)
				return om_fail(s, OM_INVALID, "fixed offsets contradict each other: %s at %" PRId64
					" and %s at %" PRId64 " overlap", om_unit_name(u, k, p->mem), u->buf[k].fixed,
					om_unit_name(u, v, p->mem), u->buf[v].fixed);
		}
	}
	return OM_OK;
}

static uint64_t
lower_bound(const struct packer *p, const uint32_t *set, uint32_t n, uint32_t *member)
{
	const uint64_t work = p->limits->work ? p->limits->work : CLIQUE_WORK;
	uint64_t bound = om_clique_bound(p->u, p->in, work, member);

	for (uint32_t k = 0; k < n; k++) {
		const om_buffer *b = &p->u->buf[set[k]];
		const uint64_t end = b->bytes + (b->fixed > 0 && b->bytes ? (uint64_t)b->fixed : 0);
		if (end > bound) {
			bound = end;
			*member = p->u->member[p->u->first[set[k]]];
		}
	}
	return bound;
}

static om_status
pack_units(om_session *s, struct packer *p, const uint32_t *set, uint32_t n, om_pack_result *r)
{
	bool *seen = OM_NEWN(p->mem, bool, p->u->n);

	for (uint32_t k = 0; k < n; k++)
		p->in[set[k]] = true;
	for (uint32_t k = 0; k < n; k++)
		if (p->u->buf[set[k]].fixed >= 0)
			OM_TRY(check_fixed(s, p, set[k]));
	*r = (om_pack_result){.strategy = "size"};
	r->lower_bound = lower_bound(p, set, n, &r->bound_step);
	uint64_t proven = r->lower_bound;
	for (uint32_t k = 0; k < n; k++) {
		if (seen[set[k]])
			continue;
		find_component(p, seen, set[k]);
		p->goal = proven > r->height ? proven : r->height;
		p->goal = p->goal > p->limits->target ? p->goal : p->limits->target;
		pack_component(p);
		if (p->height > r->height) {
			r->height = p->height;
			r->strategy = p->strategy;
		}
		if (p->is_proven && p->height > proven)
			proven = p->height;
	}
	r->lower_bound = proven;
	r->is_limited = r->height != proven;
	r->status = r->is_limited ? OM_PACK_FEASIBLE : OM_PACK_OPTIMAL;
	return OM_OK;
}

om_status
om_graph_pack(om_session *s, om_units *u, const uint32_t *set, uint32_t n, uint64_t align,
	const om_search_limits *limits, om_pack_result *r)
{
	om_arena *mem = om_arena_new();
	struct packer p = {.u = u, .align = align, .limits = limits, .mem = mem,
		.in = OM_NEWN(mem, bool, u->n), .placed = OM_NEWN(mem, bool, u->n),
		.unit = OM_NEWN(mem, uint32_t, n), .order = OM_NEWN(mem, uint32_t, n),
		.others = OM_NEWN(mem, uint32_t, n), .offset = OM_NEWN(mem, uint64_t, n)};
	om_status st = pack_units(s, &p, set, n, r);

	om_arena_free(mem);
	return st;
}
