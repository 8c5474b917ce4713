/* Packing by an interference list: no time, only pairs of buffers that may not
 * overlap.
 *
 * Units that are connected by pairs are packed together, one component after
 * the other: greedily in several orders, then with what sticks out of the bound
 * promoted.  The bound is the heaviest clique that is found.  Nothing is kept
 * but the list: a unit looks at its neighbours when it is placed.
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
			return om_fail(s, OM_INVALID, "pair %" PRIu64 " says that %s may not overlap itself", k,
				p->buf[a].name ? p->buf[a].name : om_printf(mem, "buffer %" PRIu32, a));
	}
	return OM_OK;
}

/* Lists of neighbours from lists of neighbours: what comes out is sorted. */
static void
transpose(uint32_t n, const uint64_t *start, const uint32_t *near, uint64_t *fill, uint32_t *out)
{
	memcpy(fill, start, n * sizeof *fill);
	for (uint32_t k = 0; k < n; k++)
		for (uint64_t i = start[k]; i < start[k + 1]; i++)
			out[fill[near[i]]++] = k;
}

om_status
om_graph_pack_init(om_session *s, om_units *u, const om_problem *p)
{
	OM_TRY(check_pairs(s, p, u->mem));
	uint64_t *start = OM_NEWN(u->mem, uint64_t, (size_t)p->n + 1), m = 0;
	uint32_t *near = OM_NEWN(u->mem, uint32_t, 2 * p->npair);
	om_arena *mem = om_arena_new();
	uint64_t *fill = OM_NEWN(mem, uint64_t, (size_t)p->n + 1);
	uint32_t *rough = OM_NEWN(mem, uint32_t, 2 * p->npair);

	for (uint64_t k = 0; k < p->npair; k++) {
		start[p->pair[k][0] + 1]++;
		start[p->pair[k][1] + 1]++;
	}
	for (uint32_t k = 0; k < p->n; k++)
		start[k + 1] += start[k];
	memcpy(fill, start, p->n * sizeof *fill);
	for (uint64_t k = 0; k < p->npair; k++) {
		rough[fill[p->pair[k][0]]++] = p->pair[k][1];
		rough[fill[p->pair[k][1]]++] = p->pair[k][0];
	}
	transpose(p->n, start, rough, fill, near);
	for (uint32_t k = 0; k < p->n; k++) {      /* each once */
		const uint64_t from = start[k], to = start[k + 1];
		start[k] = m;
		for (uint64_t i = from; i < to; i++)
			if (m == start[k] || near[m - 1] != near[i])
				near[m++] = near[i];
	}
	start[p->n] = m;
	u->near = near;
	u->start = start;
	om_arena_free(mem);
	return OM_OK;
}

/* ---- Placing one unit. ---- */

enum {
	NORDERS = 6,
	REPAIRS = 60,
	WORK = 20 * 1000 * 1000,     /* neighbours looked at; a second or less */
	CLIQUE_WORK = 10 * 1000 * 1000,
};

/* The unit may not start between these, exclusively. */
struct span {
	int64_t low, high;
};

struct packer {
	om_units *u;
	uint64_t align;
	const om_effort *effort;
	bool *in, *placed;           /* by unit */
	uint32_t *unit, n;           /* of this component */
	uint32_t *order, *rest, norder;
	uint64_t *offset;            /* best so far, in the order of `unit` */
	uint64_t height, goal, work;
	const char *strategy;
	bool is_proven;
	struct span *span;
	size_t room;
	om_arena *mem;
};

static int
by_low(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return x->high < y->high ? -1 : x->high > y->high;
}

/* Where the neighbours of unit `k` keep it from starting. */
static size_t
collect_spans(struct packer *p, uint32_t k)
{
	const om_units *u = p->u;
	size_t n = 0;

	for (uint32_t j = u->first[k]; j < u->first[k + 1]; j++) {
		const uint32_t m = u->member[j];
		const int64_t bytes = (int64_t)u->whole[m].bytes, place = (int64_t)u->place[m];
		for (uint64_t i = u->start[m]; bytes && i < u->start[m + 1]; i++) {
			const uint32_t other = u->near[i], v = u->of[other];
			if (v == k || !p->placed[v] || u->whole[other].bytes == 0)
				continue;
			const int64_t at = (int64_t)(u->buf[v].offset + u->place[other]);
			if (n == p->room)
				p->span = om_grow(p->mem, p->span, sizeof *p->span, n, &p->room);
			p->span[n++] = (struct span){at - place - bytes, at + (int64_t)u->whole[other].bytes - place};
		}
		p->work += u->start[m + 1] - u->start[m] + 1;
	}
	if (n > 1)
		qsort(p->span, n, sizeof *p->span, by_low);
	return n;
}

static int64_t
aligned(int64_t offset, uint64_t align)
{
	const uint64_t up = (uint64_t)offset + align - 1;
	return align > 1 ? (int64_t)(up & ~(align - 1)) : offset;
}

static uint64_t
align_of(const struct packer *p, uint32_t k)
{
	return p->align > p->u->buf[k].align ? p->align : p->u->buf[k].align;
}

/* The tightest gap, or the lowest. */
static void
place(struct packer *p, uint32_t k, bool tight)
{
	const uint64_t align = align_of(p, k);
	const size_t n = collect_spans(p, k);
	int64_t floor = 0, best = -1, best_slack = INT64_MAX;

	for (size_t i = 0; i < n; i++) {
		const int64_t at = aligned(floor, align);
		if (p->span[i].low >= at && p->span[i].low - floor < best_slack) {
			best = at;
			best_slack = p->span[i].low - floor;
			if (!tight)
				break;
		}
		if (p->span[i].high > floor)
			floor = p->span[i].high;
	}
	p->u->buf[k].offset = (uint64_t)(best >= 0 ? best : aligned(floor, align));
	p->placed[k] = true;
}

static uint64_t
end_of(const om_buffer *b)
{
	return b->bytes ? b->offset + b->bytes : 0;
}

static uint64_t
run(struct packer *p, bool tight)
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
		place(p, p->order[k], tight);
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

static om_rank
key_of(const struct packer *p, uint32_t k, uint32_t which)
{
	const om_units *u = p->u;
	const uint64_t bytes = u->buf[k].bytes;
	uint64_t degree = 0, weight = bytes;

	for (uint32_t j = u->first[k]; j < u->first[k + 1]; j++) {
		const uint32_t m = u->member[j];
		for (uint64_t i = u->start[m]; i < u->start[m + 1]; i++)
			if (p->in[u->of[u->near[i]]]) {
				degree++;
				weight += u->whole[u->near[i]].bytes;
			}
	}
	switch (which) {
	case 0: return (om_rank){bytes, degree, k};
	case 1: return (om_rank){weight, bytes, k};
	case 2: return (om_rank){degree, bytes, k};
	case 3: return (om_rank){bytes > UINT64_MAX / (degree + 1) ? UINT64_MAX : bytes * (degree + 1), bytes, k};
	case 4: return (om_rank){0, 0, k};
	default: return (om_rank){k, 0, k};
	}
}

static void
fill_order(struct packer *p, uint32_t which)
{
	om_arena *mem = om_arena_new();
	om_rank *key = OM_NEWN(mem, om_rank, p->n);
	uint32_t n = 0;

	for (uint32_t k = 0; k < p->n; k++)
		if (p->u->buf[p->unit[k]].fixed < 0)
			key[n++] = key_of(p, p->unit[k], which);
	qsort(key, n, sizeof *key, om_by_rank);
	for (uint32_t k = 0; k < n; k++)
		p->order[k] = key[k].id;
	p->norder = n;
	om_arena_free(mem);
}

/* ---- A component. ---- */

static void
keep(struct packer *p, uint64_t height, const char *strategy)
{
	if (height >= p->height)
		return;
	p->height = height;
	p->strategy = strategy;
	for (uint32_t k = 0; k < p->n; k++)
		p->offset[k] = p->u->buf[p->unit[k]].offset;
}

static bool
is_over(const struct packer *p)
{
	return p->height <= p->goal || (p->height < UINT64_MAX && om_is_late(p->effort));
}

static bool
promote(struct packer *p)
{
	uint32_t n = 0, m = 0;

	for (uint32_t k = 0; k < p->norder; k++)
		if (end_of(&p->u->buf[p->order[k]]) > p->goal)
			p->order[n++] = p->order[k];
		else
			p->rest[m++] = p->order[k];
	memcpy(p->order + n, p->rest, m * sizeof *p->rest);
	return n > 0 && m > 0;
}

static void
try_orders(struct packer *p, uint64_t work)
{
	for (uint32_t k = 0; k < 2 * NORDERS && !is_over(p); k++) {
		if (p->height < UINT64_MAX && p->work > work)
			return;
		fill_order(p, k / 2);
		keep(p, run(p, k % 2 == 0), order_name[k / 2][0]);
		for (uint32_t round = 0; round < REPAIRS && p->work <= work && !is_over(p) && promote(p); round++)
			keep(p, run(p, k % 2 == 0), order_name[k / 2][1]);
	}
}

static bool
is_searchable(const struct packer *p)
{
	for (uint32_t k = 0; k < p->n; k++)
		if (p->u->first[p->unit[k] + 1] - p->u->first[p->unit[k]] > 1)
			return false;
	return p->n <= OM_PAIRS_SEARCH_MOST;
}

static void
pack_component(struct packer *p)
{
	p->height = UINT64_MAX;
	p->work = 0;
	p->is_proven = false;
	try_orders(p, p->effort->work ? p->effort->work : WORK);
	if (!is_over(p) && is_searchable(p)) {
		const uint64_t before = p->height;
		p->is_proven = om_graph_branch_bound(p->u, p->unit, p->n, p->align, p->goal, p->effort, p->offset,
			&p->height) && p->height > p->goal;
		if (p->height < before)
			p->strategy = "search";
	}
	for (uint32_t k = 0; k < p->n; k++)
		p->u->buf[p->unit[k]].offset = p->offset[k];
}

/* Everything that is connected with unit `k`, which is the first of it. */
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
			for (uint64_t i = u->start[m]; i < u->start[m + 1]; i++) {
				const uint32_t v = u->of[u->near[i]];
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
		return om_fail(s, OM_INVALID, "%s is fixed at %" PRId64 ", which is no multiple of its pool's alignment %"
			PRIu64, om_unit_name(u, k, p->mem), u->buf[k].fixed, p->align);
	for (uint32_t j = u->first[k]; j < u->first[k + 1]; j++) {
		const uint32_t m = u->member[j];
		const uint64_t at = (uint64_t)u->buf[k].fixed + u->place[m];
		for (uint64_t i = u->start[m]; i < u->start[m + 1]; i++) {
			const uint32_t other = u->near[i], v = u->of[other];
			if (v == k || !p->in[v] || u->buf[v].fixed < 0)
				continue;
			const uint64_t there = (uint64_t)u->buf[v].fixed + u->place[other];
			if (at < there + u->whole[other].bytes && there < at + u->whole[m].bytes)
				return om_fail(s, OM_INVALID, "fixed offsets contradict each other: %s at %" PRId64
					" and %s at %" PRId64 " overlap", om_unit_name(u, k, p->mem), u->buf[k].fixed,
					om_unit_name(u, v, p->mem), u->buf[v].fixed);
		}
	}
	return OM_OK;
}

static uint64_t
bound_of(const struct packer *p, const uint32_t *set, uint32_t n, uint32_t *one)
{
	const uint64_t work = p->effort->work ? p->effort->work : CLIQUE_WORK;
	uint64_t bound = om_clique_bound(p->u, p->in, work, one);

	for (uint32_t k = 0; k < n; k++) {
		const om_buffer *b = &p->u->buf[set[k]];
		const uint64_t end = b->bytes + (b->fixed > 0 && b->bytes ? (uint64_t)b->fixed : 0);
		if (end > bound) {
			bound = end;
			*one = p->u->member[p->u->first[set[k]]];
		}
	}
	return bound;
}

static om_status
pack(om_session *s, struct packer *p, const uint32_t *set, uint32_t n, om_pack_result *r)
{
	bool *seen = OM_NEWN(p->mem, bool, p->u->n);

	for (uint32_t k = 0; k < n; k++)
		p->in[set[k]] = true;
	for (uint32_t k = 0; k < n; k++)
		if (p->u->buf[set[k]].fixed >= 0)
			OM_TRY(check_fixed(s, p, set[k]));
	*r = (om_pack_result){.strategy = "size"};
	r->lower_bound = bound_of(p, set, n, &r->bound_step);
	uint64_t proven = r->lower_bound;
	for (uint32_t k = 0; k < n; k++) {
		if (seen[set[k]])
			continue;
		find_component(p, seen, set[k]);
		p->goal = proven > r->height ? proven : r->height;
		p->goal = p->goal > p->effort->enough ? p->goal : p->effort->enough;
		pack_component(p);
		if (p->height > r->height) {
			r->height = p->height;
			r->strategy = p->strategy;
		}
		if (p->is_proven && p->height > proven)
			proven = p->height;
	}
	r->lower_bound = proven;
	r->status = r->height == proven ? OM_PACK_OPTIMAL : OM_PACK_FEASIBLE;
	return OM_OK;
}

om_status
om_graph_pack(om_session *s, om_units *u, const uint32_t *set, uint32_t n, uint64_t align,
	const om_effort *effort, om_pack_result *r)
{
	om_arena *mem = om_arena_new();
	struct packer p = {.u = u, .align = align, .effort = effort, .mem = mem,
		.in = OM_NEWN(mem, bool, u->n), .placed = OM_NEWN(mem, bool, u->n),
		.unit = OM_NEWN(mem, uint32_t, n), .order = OM_NEWN(mem, uint32_t, n),
		.rest = OM_NEWN(mem, uint32_t, n), .offset = OM_NEWN(mem, uint64_t, n)};
	om_status st = pack(s, &p, set, n, r);

	om_arena_free(mem);
	return st;
}
