/* Which pool for which buffer.
 *
 * Pools are filled one after the other, the hottest bytes first.  For buffers
 * with lifetimes, those are let in while the load (what is in use at a step)
 * stays below the limit; then the real packer says whether they fit, and what
 * sticks out leaves, the coldest first, until they do.  What had to leave is
 * tried again.  What finds room in no pool goes first in the next round, as in
 * Joslin and Clements' squeaky wheel; where that does not help and buffers are
 * few, all ways to distribute them are tried.
 *
 * It ends: each try of packing is counted, and when they are used up, what
 * sticks out leaves at once, which needs no packing.
 */
#include <config.h>

#include <stdlib.h>

#include "pack/problem.h"
#include "pack/sort_keys.h"

enum {
	NO_POOL = OM_POOL_ANY,
	ROUNDS = 12,
	TRIES = 200,                 /* of packing, in each pool and round; fewer for more buffers */
	TRY_BUFFERS = 1000 * 1000,   /* in all tries of a pool and round */
	TRY_NODES = 2000,
	TRY_WORK = 200 * 1000,
	SEARCH_MOST = 14,            /* buffers to distribute in all ways */
	SEARCH_TRIES = 4000,
};

struct assign {
	om_session *session;
	om_units *u;
	const om_pool *pool;
	uint32_t npool;
	om_effort effort;
	uint32_t *order, norder;     /* units without pool, the first ones first */
	uint32_t *urgent;            /* by unit: rounds in which there was no room for it */
	uint32_t *set, nset;         /* what is in the pool so far */
	uint64_t *offset;            /* by unit: in the last packing that kept the limit */
	bool *packed;                /* by pool: all that is in it has offsets that keep its limit */
	uint32_t tries;
	om_arena *mem;
};

/* ---- The order. ---- */

struct key {
	uint32_t urgent, unit;
	uint64_t access_bytes, bytes;
};

static int
hottest_first(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	const __uint128_t left = (__uint128_t)x->access_bytes * y->bytes, right = (__uint128_t)y->access_bytes * x->bytes;

	if (x->urgent != y->urgent)
		return x->urgent > y->urgent ? -1 : 1;
	if (left != right)
		return left > right ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->urgent ? (x->bytes > y->bytes ? -1 : 1) : (x->bytes < y->bytes ? -1 : 1);
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

static void
sort_units(struct assign *w)
{
	om_arena *mem = om_arena_new();
	struct key *key = OM_NEWN(mem, struct key, w->u->n);
	uint32_t n = 0;

	for (uint32_t k = 0; k < w->u->n; k++)
		if (w->u->buf[k].fixed_pool == OM_POOL_ANY)
			key[n++] = (struct key){w->urgent[k], k, w->u->buf[k].access_bytes, w->u->buf[k].bytes};
	qsort(key, n, sizeof *key, hottest_first);
	w->norder = n;
	for (uint32_t k = 0; k < n; k++)
		w->order[k] = key[k].unit;
	om_arena_free(mem);
}

/* ---- Trying. ---- */

static bool
fits(struct assign *w, const uint32_t *set, uint32_t n, const om_pool *pool)
{
	om_effort e = w->effort;
	om_pack_result r;

	w->tries += w->tries > 0 ? -1 : 0;
	e.enough = pool->limit ? pool->limit : UINT64_MAX;
	e.nodes = e.nodes < TRY_NODES ? e.nodes : TRY_NODES;
	e.work = TRY_WORK;
	if (om_units_pack(w->session, w->u, set, n, pool->align, &e, &r) != OM_OK)
		return false;
	if (pool->limit && r.height > pool->limit)
		return false;
	for (uint32_t k = 0; k < n; k++)
		w->offset[set[k]] = w->u->buf[set[k]].offset;
	return true;
}

static void
let_in(struct assign *w, uint32_t k, uint32_t pool)
{
	w->u->buf[k].pool = pool;
	w->set[w->nset++] = k;
}

static void
leave(struct assign *w, uint32_t at)
{
	w->u->buf[w->set[at]].pool = NO_POOL;
	memmove(w->set + at, w->set + at + 1, (--w->nset - at) * sizeof *w->set);
}

static bool
is_late(const struct assign *w)
{
	return w->tries == 0 || om_is_late(&w->effort);
}

/* Buffers whose offsets are fixed, in any pool: where nothing else is fixed. */
static void
let_in_fixed(struct assign *w, uint32_t pool)
{
	for (uint32_t k = 0; k < w->norder; k++) {
		const om_buffer *b = &w->u->buf[w->order[k]];
		if (b->pool != NO_POOL || b->fixed < 0)
			continue;
		let_in(w, w->order[k], pool);
		if (!fits(w, w->set, w->nset, &w->pool[pool]))
			leave(w, w->nset - 1);
	}
}

/* ---- Load: bytes in use at each step. ---- */

struct load {
	uint32_t *at, n, leaves;     /* steps at which something begins or ends */
	uint64_t *most, *more;       /* tree over them: the most below a node; added to all below it */
};

static void
load_init(struct load *l, const om_units *u, om_arena *mem)
{
	size_t m = 0;
	uint32_t n = 0;

	*l = (struct load){.leaves = 1};
	for (uint32_t k = 0; k < u->n; k++)
		m += 2 * (size_t)u->buf[k].nlive;
	l->at = OM_NEWN(mem, uint32_t, m);
	m = 0;
	for (uint32_t k = 0; k < u->n; k++)
		for (uint32_t j = 0; j < u->buf[k].nlive; j++) {
			l->at[m++] = u->buf[k].live[j].lower;
			l->at[m++] = u->buf[k].live[j].upper;
		}
	qsort(l->at, m, sizeof *l->at, om_by_number);
	for (size_t k = 0; k < m; k++)
		if (n == 0 || l->at[n - 1] != l->at[k])
			l->at[n++] = l->at[k];
	l->n = n;
	while (l->leaves < n)
		l->leaves *= 2;
	l->most = OM_NEWN(mem, uint64_t, 2 * (size_t)l->leaves);
	l->more = OM_NEWN(mem, uint64_t, 2 * (size_t)l->leaves);
}

static uint32_t
index_of(const struct load *l, uint32_t step)
{
	const uint32_t *at = bsearch(&step, l->at, l->n, sizeof *l->at, om_by_number);
	return (uint32_t)(at - l->at);
}

/* Adds `bytes` (which may be negative, wrapped) between two leaves. */
static void
load_add(struct load *l, uint32_t node, uint32_t low, uint32_t width, uint32_t from, uint32_t to,
	uint64_t bytes)
{
	if (from >= low + width || to <= low)
		return;
	if (from <= low && low + width <= to) {
		l->most[node] += bytes;
		l->more[node] += bytes;
		return;
	}
	load_add(l, 2 * node, low, width / 2, from, to, bytes);
	load_add(l, 2 * node + 1, low + width / 2, width / 2, from, to, bytes);
	const uint64_t left = l->most[2 * node], right = l->most[2 * node + 1];
	l->most[node] = (left > right ? left : right) + l->more[node];
}

static uint64_t
load_buffer(struct load *l, const om_buffer *b, bool add)
{
	for (uint32_t k = 0; k < b->nlive; k++) {
		const uint64_t bytes = (b->live[k].to ? b->live[k].to : b->bytes) - b->live[k].from;
		load_add(l, 1, 0, l->leaves, index_of(l, b->live[k].lower), index_of(l, b->live[k].upper),
			add ? bytes : -bytes);
	}
	return l->most[1];
}

/* Everybody in order, as long as the load allows. */
static void
let_in_by_load(struct assign *w, uint32_t pool)
{
	om_arena *mem = om_arena_new();
	struct load l;

	load_init(&l, w->u, mem);
	for (uint32_t k = 0; k < w->nset; k++)
		load_buffer(&l, &w->u->buf[w->set[k]], true);
	for (uint32_t k = 0; k < w->norder; k++) {
		const om_buffer *b = &w->u->buf[w->order[k]];
		if (b->pool != NO_POOL || b->fixed >= 0 || b->bytes > w->pool[pool].limit)
			continue;
		if (load_buffer(&l, b, true) <= w->pool[pool].limit)
			let_in(w, w->order[k], pool);
		else
			load_buffer(&l, b, false);
	}
	om_arena_free(mem);
}

static void
let_in_all(struct assign *w, uint32_t pool)
{
	const uint64_t limit = w->pool[pool].limit;

	for (uint32_t k = 0; k < w->norder; k++) {
		const om_buffer *b = &w->u->buf[w->order[k]];
		if (b->pool == NO_POOL && b->fixed < 0 && (limit == 0 || b->bytes <= limit))
			let_in(w, w->order[k], pool);
	}
}

/* ---- A pool. ---- */

/* The coldest that sticks out leaves, of those behind `first`; where only the
 * others do, the coldest at all.  False when none is left. */
static bool
drop_one(struct assign *w, uint32_t first, uint64_t limit)
{
	if (w->nset == first)
		return false;
	for (uint32_t k = w->nset; k-- > first;) {
		const om_buffer *b = &w->u->buf[w->set[k]];
		if (b->offset + b->bytes > limit) {
			leave(w, k);
			return true;
		}
	}
	leave(w, w->nset - 1);
	return true;
}

/* All that sticks out; or all, where that is one of those that have to be here. */
static void
drop_all(struct assign *w, uint32_t first, uint64_t limit)
{
	bool all = false;

	for (uint32_t k = w->nset; k-- > 0;) {
		const om_buffer *b = &w->u->buf[w->set[k]];
		if (b->offset + b->bytes > limit && k >= first)
			leave(w, k);
		else
			all |= b->offset + b->bytes > limit;
	}
	while (all && w->nset > first)
		leave(w, w->nset - 1);
	for (uint32_t k = 0; k < w->nset; k++)
		w->offset[w->set[k]] = w->u->buf[w->set[k]].offset;
}

static void
try_left_out(struct assign *w, uint32_t pool)
{
	for (uint32_t k = 0; k < w->norder && !is_late(w); k++) {
		const om_buffer *b = &w->u->buf[w->order[k]];
		if (b->pool != NO_POOL || b->bytes > w->pool[pool].limit)
			continue;
		let_in(w, w->order[k], pool);
		if (!fits(w, w->set, w->nset, &w->pool[pool]))
			leave(w, w->nset - 1);
	}
}

/* True when what is in the pool then keeps its limit. */
static bool
fill(struct assign *w, uint32_t pool)
{
	const om_pool *p = &w->pool[pool];

	w->nset = 0;
	w->tries = TRY_BUFFERS / (w->u->n + 1);
	w->tries = w->tries < 2 ? 2 : w->tries > TRIES ? TRIES : w->tries;
	for (uint32_t k = 0; k < w->u->n; k++)
		if (w->u->buf[k].fixed_pool == pool)
			let_in(w, k, pool);
	let_in_fixed(w, pool);
	const uint32_t first = w->nset;
	if (p->limit == 0 || w->u->near)
		let_in_all(w, pool);
	else
		let_in_by_load(w, pool);
	if (p->limit == 0)
		return false;
	while (!fits(w, w->set, w->nset, p)) {
		if (w->nset == first)
			return false;
		if (is_late(w)) {
			drop_all(w, first, p->limit);
			break;
		}
		drop_one(w, first, p->limit);
	}
	try_left_out(w, pool);
	return true;
}

/* ---- All pools. ---- */

static void
forget(struct assign *w)
{
	for (uint32_t k = 0; k < w->norder; k++)
		w->u->buf[w->order[k]].pool = NO_POOL;
}

/* Buffers without room; they are more urgent from now on. */
static uint32_t
count_left_out(struct assign *w)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < w->norder; k++)
		if (w->u->buf[w->order[k]].pool == NO_POOL) {
			w->urgent[w->order[k]]++;
			n++;
		}
	return n;
}

static void
fill_pools(struct assign *w)
{
	sort_units(w);
	forget(w);
	for (uint32_t k = 0; k < w->npool; k++)
		w->packed[k] = fill(w, k);
}

/* Every pool for unit number `k` of the order. */
static bool
distribute(struct assign *w, uint32_t k)
{
	if (k == w->norder)
		return true;
	om_buffer *b = &w->u->buf[w->order[k]];
	for (uint32_t pool = 0; pool < w->npool; pool++) {
		if (is_late(w))
			return false;
		b->pool = pool;
		w->nset = 0;
		for (uint32_t j = 0; j < w->u->n; j++)
			if (w->u->buf[j].pool == pool)
				w->set[w->nset++] = j;
		w->packed[pool] = fits(w, w->set, w->nset, &w->pool[pool]);
		if (w->packed[pool] && distribute(w, k + 1))
			return true;
		b->pool = NO_POOL;
	}
	return false;
}

static bool
distribute_all(struct assign *w)
{
	if (w->norder > SEARCH_MOST)
		return false;
	memset(w->urgent, 0, w->u->n * sizeof *w->urgent);
	sort_units(w);
	forget(w);
	w->tries = SEARCH_TRIES;
	return distribute(w, 0);
}

static void
assign(struct assign *w)
{
	uint32_t *best = OM_NEWN(w->mem, uint32_t, w->u->n);
	uint64_t *offset = OM_NEWN(w->mem, uint64_t, w->u->n);
	bool *packed = OM_NEWN(w->mem, bool, w->npool);
	uint32_t fewest = UINT32_MAX;

	for (uint32_t round = 0; round < ROUNDS && fewest > 0; round++) {
		if (round && om_is_late(&w->effort))
			break;
		fill_pools(w);
		const uint32_t left = count_left_out(w);
		if (left >= fewest)
			continue;
		fewest = left;
		for (uint32_t k = 0; k < w->u->n; k++)
			best[k] = w->u->buf[k].pool;
		memcpy(offset, w->offset, w->u->n * sizeof *offset);
		memcpy(packed, w->packed, w->npool * sizeof *packed);
	}
	const bool found = fewest > 0 && distribute_all(w);
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
om_pools_assign(om_session *s, om_units *u, const om_pool *pool, uint32_t npool, const om_effort *effort,
	bool *packed)
{
	om_arena *mem = om_arena_new();
	struct assign w = {.session = s, .u = u, .pool = pool, .npool = npool, .effort = *effort,
		.packed = packed, .mem = mem};
	bool is_free = false;

	for (uint32_t k = 0; k < u->n; k++) {
		u->buf[k].pool = npool == 1 ? 0 : u->buf[k].fixed_pool;
		is_free |= u->buf[k].pool == OM_POOL_ANY;
	}
	if (is_free) {
		w.order = OM_NEWN(mem, uint32_t, u->n);
		w.urgent = OM_NEWN(mem, uint32_t, u->n);
		w.set = OM_NEWN(mem, uint32_t, u->n);
		w.offset = OM_NEWN(mem, uint64_t, u->n);
		assign(&w);
	}
	om_arena_free(mem);
}
