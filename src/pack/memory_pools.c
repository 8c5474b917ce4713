/* SPDX-License-Identifier: Apache-2.0 */
/* Assigns a pool to every buffer.
 *
 * Pools are filled one after the other; buffers with the most accesses per byte
 * come first.  Buffers with lifetimes are assigned while the load (the bytes in use
 * at a step) stays within the limit; then the packer decides whether they fit, and
 * buffers above the limit are evicted, those with the fewest accesses per byte
 * first, until they do.  Evicted buffers are tried once more.  Buffers that fit in
 * no pool come first in the next iteration, as in Joslin and Clements' squeaky
 * wheel optimization; if that does not help and buffers are few, all assignments
 * are tried.
 *
 * It terminates: each attempt to pack is counted, and when none is left, all
 * buffers above the limit are evicted at once, which requires no packing.
 */
#include <config.h>

#include <stdlib.h>

#include "pack/problem.h"
#include "pack/sort_keys.h"

#define NO_POOL OM_POOL_ANY
enum {
	ASSIGN_MAX_ITERATIONS = 12,
	MAX_ATTEMPTS = 200,                 /* to pack, in each pool and iteration; fewer for more buffers */
	ATTEMPT_BUFFERS = 1000 * 1000,   /* packed in all attempts of a pool and iteration */
	ATTEMPT_NODES = 2000,
	ATTEMPT_WORK = 200 * 1000,
	SEARCH_MAX_UNITS = 14,            /* buffers for which all assignments are tried */
	SEARCH_ATTEMPTS = 4000,
};

struct assignment_state {
	om_session *session;
	om_units *u;
	const om_pool *pool;
	uint32_t npool;
	om_search_limits limits;
	uint32_t *order, norder;     /* units without a fixed pool, in order of assignment */
	uint32_t *urgency;            /* by unit: iterations in which it fitted in no pool */
	uint32_t *set, nset;         /* units assigned to the current pool */
	uint64_t *offset;            /* by unit: in the last packing that kept the limit */
	bool *packed;                /* by pool: its units have offsets that keep its limit */
	uint32_t attempts;
	om_arena *mem;
};

/* ---- The order. ---- */

struct unit_key {
	uint32_t urgency, unit;
	uint64_t access_bytes, bytes;
};

static int
compare_access_density(const void *a, const void *b)
{
	const struct unit_key *x = a, *y = b;
	const __uint128_t left = (__uint128_t)x->access_bytes * y->bytes,
		right = (__uint128_t)y->access_bytes * x->bytes;

	if (x->urgency != y->urgency)
		return x->urgency > y->urgency ? -1 : 1;
	if (left != right)
		return left > right ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->urgency ? (x->bytes > y->bytes ? -1 : 1) : (x->bytes < y->bytes ? -1 : 1);
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

static void
sort_units(struct assignment_state *w)
{
	om_arena *mem = om_arena_new();
	struct unit_key *key = OM_NEWN(mem, struct unit_key, w->u->n);
	uint32_t n = 0;

	for (uint32_t k = 0; k < w->u->n; k++)
		if (w->u->buf[k].fixed_pool == OM_POOL_ANY)
			key[n++] = (struct unit_key){w->urgency[k], k, w->u->buf[k].access_bytes, w->u->buf[k].bytes};
	qsort(key, n, sizeof *key, compare_access_density);
	w->norder = n;
	for (uint32_t k = 0; k < n; k++)
		w->order[k] = key[k].unit;
	om_arena_free(mem);
}

/* ---- Assignment and eviction. ---- */

static bool
try_pack(struct assignment_state *w, const uint32_t *set, uint32_t n, const om_pool *pool)
{
	om_search_limits e = w->limits;
	om_pack_result r;

	w->attempts += w->attempts > 0 ? -1 : 0;
	e.target = pool->limit ? pool->limit : UINT64_MAX;
	e.nodes = e.nodes < ATTEMPT_NODES ? e.nodes : ATTEMPT_NODES;
	e.work = ATTEMPT_WORK;
	if (om_units_pack(w->session, w->u, set, n, pool->align, &e, &r) != OM_OK)
		return false;
	if (pool->limit && r.height > pool->limit)
		return false;
	for (uint32_t k = 0; k < n; k++)
		w->offset[set[k]] = w->u->buf[set[k]].offset;
	return true;
}

static void
assign_unit(struct assignment_state *w, uint32_t k, uint32_t pool)
{
	w->u->buf[k].pool = pool;
	w->set[w->nset++] = k;
}

static void
evict_unit(struct assignment_state *w, uint32_t at)
{
	w->u->buf[w->set[at]].pool = NO_POOL;
	memmove(w->set + at, w->set + at + 1, (--w->nset - at) * sizeof *w->set);
}

static bool
is_out_of_attempts(const struct assignment_state *w)
{
	return w->attempts == 0 || om_is_past_deadline(&w->limits);
}

/* Buffers with fixed offsets go to any pool in which no other fixed buffer
 * conflicts. */
static void
assign_fixed(struct assignment_state *w, uint32_t pool)
{
	for (uint32_t k = 0; k < w->norder; k++) {
		const om_buffer *b = &w->u->buf[w->order[k]];
		if (b->pool != NO_POOL || b->fixed < 0)
			continue;
		assign_unit(w, w->order[k], pool);
		if (!try_pack(w, w->set, w->nset, &w->pool[pool]))
			evict_unit(w, w->nset - 1);
	}
}

/* ---- Load: bytes in use at each step. ---- */

struct load_tree {
	uint32_t *at, n, leaves;     /* steps at which a lifetime starts or ends */
	uint64_t *max, *added;       /* tree over them: maximum below a node; amount added to the whole subtree */
};

static void
load_tree_init(struct load_tree *l, const om_units *u, om_arena *mem)
{
	size_t m = 0;
	uint32_t n = 0;

	*l = (struct load_tree){.leaves = 1};
	for (uint32_t k = 0; k < u->n; k++)
		m += 2 * (size_t)u->buf[k].nlive;
	l->at = OM_NEWN(mem, uint32_t, m);
	m = 0;
	for (uint32_t k = 0; k < u->n; k++)
		for (uint32_t j = 0; j < u->buf[k].nlive; j++) {
			l->at[m++] = u->buf[k].live[j].lower;
			l->at[m++] = u->buf[k].live[j].upper;
		}
	qsort(l->at, m, sizeof *l->at, om_compare_u32);
	for (size_t k = 0; k < m; k++)
		if (n == 0 || l->at[n - 1] != l->at[k])
			l->at[n++] = l->at[k];
	l->n = n;
	while (l->leaves < n)
		l->leaves *= 2;
	l->max = OM_NEWN(mem, uint64_t, 2 * (size_t)l->leaves);
	l->added = OM_NEWN(mem, uint64_t, 2 * (size_t)l->leaves);
}

static uint32_t
index_of(const struct load_tree *l, uint32_t step)
{
	const uint32_t *at = bsearch(&step, l->at, l->n, sizeof *l->at, om_compare_u32);
	return (uint32_t)(at - l->at);
}

/* Add `bytes` (which may be negative, wrapped) to leaves [from, to). */
static void
load_tree_add(struct load_tree *l, uint32_t node, uint32_t low, uint32_t width, uint32_t from, uint32_t to,
	uint64_t bytes)
{
	if (from >= low + width || to <= low)
		return;
	if (from <= low && low + width <= to) {
		l->max[node] += bytes;
		l->added[node] += bytes;
		return;
	}
	load_tree_add(l, 2 * node, low, width / 2, from, to, bytes);
	load_tree_add(l, 2 * node + 1, low + width / 2, width / 2, from, to, bytes);
	const uint64_t left = l->max[2 * node], right = l->max[2 * node + 1];
	l->max[node] = (left > right ? left : right) + l->added[node];
}

static uint64_t
load_tree_add_buffer(struct load_tree *l, const om_buffer *b, bool add)
{
	for (uint32_t k = 0; k < b->nlive; k++) {
		const uint64_t bytes = (b->live[k].to ? b->live[k].to : b->bytes) - b->live[k].from;
		load_tree_add(l, 1, 0, l->leaves, index_of(l, b->live[k].lower), index_of(l, b->live[k].upper),
			add ? bytes : -bytes);
	}
	return l->max[1];
}

/* Assign units in order, as long as the load keeps the limit. */
static void
assign_by_load(struct assignment_state *w, uint32_t pool)
{
	om_arena *mem = om_arena_new();
	struct load_tree l;

	load_tree_init(&l, w->u, mem);
	for (uint32_t k = 0; k < w->nset; k++)
		load_tree_add_buffer(&l, &w->u->buf[w->set[k]], true);
	for (uint32_t k = 0; k < w->norder; k++) {
		const om_buffer *b = &w->u->buf[w->order[k]];
		if (b->pool != NO_POOL || b->fixed >= 0 || b->bytes > w->pool[pool].limit)
			continue;
		if (load_tree_add_buffer(&l, b, true) <= w->pool[pool].limit)
			assign_unit(w, w->order[k], pool);
		else
			load_tree_add_buffer(&l, b, false);
	}
	om_arena_free(mem);
}

static void
assign_all(struct assignment_state *w, uint32_t pool)
{
	const uint64_t limit = w->pool[pool].limit;

	for (uint32_t k = 0; k < w->norder; k++) {
		const om_buffer *b = &w->u->buf[w->order[k]];
		if (b->pool == NO_POOL && b->fixed < 0 && (limit == 0 || b->bytes <= limit))
			assign_unit(w, w->order[k], pool);
	}
}

/* ---- A pool. ---- */

/* Evict the last unit in the order that is above the limit, of those after `first`;
 * if only others are, the last one.  False if none is left. */
static bool
evict_one(struct assignment_state *w, uint32_t first, uint64_t limit)
{
	if (w->nset == first)
		return false;
	for (uint32_t k = w->nset; k-- > first;) {
		const om_buffer *b = &w->u->buf[w->set[k]];
		if (b->offset + b->bytes > limit) {
			evict_unit(w, k);
			return true;
		}
	}
	evict_unit(w, w->nset - 1);
	return true;
}

/* Evict all units above the limit; all but the fixed ones if a fixed one is above
 * it. */
static void
evict_high(struct assignment_state *w, uint32_t first, uint64_t limit)
{
	bool all = false;

	for (uint32_t k = w->nset; k-- > 0;) {
		const om_buffer *b = &w->u->buf[w->set[k]];
		if (b->offset + b->bytes > limit && k >= first)
			evict_unit(w, k);
		else
			all |= b->offset + b->bytes > limit;
	}
	while (all && w->nset > first)
		evict_unit(w, w->nset - 1);
	for (uint32_t k = 0; k < w->nset; k++)
		w->offset[w->set[k]] = w->u->buf[w->set[k]].offset;
}

static void
retry_evicted(struct assignment_state *w, uint32_t pool)
{
	for (uint32_t k = 0; k < w->norder && !is_out_of_attempts(w); k++) {
		const om_buffer *b = &w->u->buf[w->order[k]];
		if (b->pool != NO_POOL || b->bytes > w->pool[pool].limit)
			continue;
		assign_unit(w, w->order[k], pool);
		if (!try_pack(w, w->set, w->nset, &w->pool[pool]))
			evict_unit(w, w->nset - 1);
	}
}

/* True if the units of the pool then keep its limit. */
static bool
fill_pool(struct assignment_state *w, uint32_t pool)
{
	const om_pool *p = &w->pool[pool];

	w->nset = 0;
	w->attempts = ATTEMPT_BUFFERS / (w->u->n + 1);
	w->attempts = w->attempts < 2 ? 2 : w->attempts > MAX_ATTEMPTS ? MAX_ATTEMPTS : w->attempts;
	for (uint32_t k = 0; k < w->u->n; k++)
		if (w->u->buf[k].fixed_pool == pool)
			assign_unit(w, k, pool);
	assign_fixed(w, pool);
	const uint32_t first = w->nset;
	if (p->limit == 0 || w->u->adj)
		assign_all(w, pool);
	else
		assign_by_load(w, pool);
	if (p->limit == 0)
		return false;
	while (!try_pack(w, w->set, w->nset, p)) {
		if (w->nset == first)
			return false;
		if (is_out_of_attempts(w)) {
			evict_high(w, first, p->limit);
			break;
		}
		evict_one(w, first, p->limit);
	}
	retry_evicted(w, pool);
	return true;
}

/* ---- All pools. ---- */

static void
unassign_all(struct assignment_state *w)
{
	for (uint32_t k = 0; k < w->norder; k++)
		w->u->buf[w->order[k]].pool = NO_POOL;
}

/* Count the units that fitted in no pool; they get more urgent. */
static uint32_t
count_unassigned(struct assignment_state *w)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < w->norder; k++)
		if (w->u->buf[w->order[k]].pool == NO_POOL) {
			w->urgency[w->order[k]]++;
			n++;
		}
	return n;
}

static void
fill_pools(struct assignment_state *w)
{
	sort_units(w);
	unassign_all(w);
	for (uint32_t k = 0; k < w->npool; k++)
		w->packed[k] = fill_pool(w, k);
}

/* Try every pool for unit number `k` of the order. */
static bool
search_assignments(struct assignment_state *w, uint32_t k)
{
	if (k == w->norder)
		return true;
	om_buffer *b = &w->u->buf[w->order[k]];
	for (uint32_t pool = 0; pool < w->npool; pool++) {
		if (is_out_of_attempts(w))
			return false;
		b->pool = pool;
		w->nset = 0;
		for (uint32_t j = 0; j < w->u->n; j++)
			if (w->u->buf[j].pool == pool)
				w->set[w->nset++] = j;
		w->packed[pool] = try_pack(w, w->set, w->nset, &w->pool[pool]);
		if (w->packed[pool] && search_assignments(w, k + 1))
			return true;
		b->pool = NO_POOL;
	}
	return false;
}

static bool
search_all(struct assignment_state *w)
{
	if (w->norder > SEARCH_MAX_UNITS)
		return false;
	memset(w->urgency, 0, w->u->n * sizeof *w->urgency);
	sort_units(w);
	unassign_all(w);
	w->attempts = SEARCH_ATTEMPTS;
	return search_assignments(w, 0);
}

static void
assign_pools(struct assignment_state *w)
{
	uint32_t *best = OM_NEWN(w->mem, uint32_t, w->u->n);
	uint64_t *offset = OM_NEWN(w->mem, uint64_t, w->u->n);
	bool *packed = OM_NEWN(w->mem, bool, w->npool);
	uint32_t fewest = UINT32_MAX;

	for (uint32_t iteration = 0; iteration < ASSIGN_MAX_ITERATIONS && fewest > 0; iteration++) {
		if (iteration && om_is_past_deadline(&w->limits))
			break;
		fill_pools(w);
		const uint32_t unassigned = count_unassigned(w);
		if (unassigned >= fewest)
			continue;
		fewest = unassigned;
		for (uint32_t k = 0; k < w->u->n; k++)
			best[k] = w->u->buf[k].pool;
		memcpy(offset, w->offset, w->u->n * sizeof *offset);
		memcpy(packed, w->packed, w->npool * sizeof *packed);
	}
	const bool found = fewest > 0 && search_all(w);
	for (uint32_t k = 0; k < w->u->n; k++) {
		if (!found)
			w->u->buf[k].pool = best[k] == NO_POOL ? w->npool - 1 : best[k];
		w->u->buf[k].offset = found ? w->offset[k] : offset[k];
	}
	if (!found)
		memcpy(w->packed, packed, w->npool * sizeof *packed);
	w->packed[w->npool - 1] &= found || fewest == 0;
}

void
om_pools_assign(om_session *s, om_units *u, const om_pool *pool, uint32_t npool,
	const om_search_limits *limits,
	bool *packed)
{
	om_arena *mem = om_arena_new();
	struct assignment_state w = {.session = s, .u = u, .pool = pool, .npool = npool, .limits = *limits,
		.packed = packed, .mem = mem};
	bool is_free = false;

	for (uint32_t k = 0; k < u->n; k++) {
		u->buf[k].pool = npool == 1 ? 0 : u->buf[k].fixed_pool;
		is_free |= u->buf[k].pool == OM_POOL_ANY;
	}
	if (is_free) {
		w.order = OM_NEWN(mem, uint32_t, u->n);
		w.urgency = OM_NEWN(mem, uint32_t, u->n);
		w.set = OM_NEWN(mem, uint32_t, u->n);
		w.offset = OM_NEWN(mem, uint64_t, u->n);
		assign_pools(&w);
	}
	om_arena_free(mem);
}
