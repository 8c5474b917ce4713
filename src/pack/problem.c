/* SPDX-License-Identifier: Apache-2.0 */
/* Whole problems: validate them, merge groups into rigid buffers, assign buffers to
 * pools, pack every pool on its own. */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>

#include "base/guard.h"
#include "base/options.h"
#include "pack/problem.h"

/* ---- Validation. ---- */

static om_status
check_pools(om_session *s, const om_problem *p, om_arena *mem)
{
	if (p->npool == 0)
		return om_fail(s, OM_INVALID, "a packing problem requires at least one pool");
	for (uint32_t k = 0; k < p->npool; k++)
		if (p->pool[k].align & (p->pool[k].align - 1) || p->pool[k].align > INT64_MAX / 2)
			return om_fail(s, OM_INVALID, "the alignment of pool %" PRIu32 " is not a power of two", k);
	for (uint32_t k = 0; k < p->n; k++)
		if (p->buf[k].fixed_pool != OM_POOL_ANY && p->buf[k].fixed_pool >= p->npool)
			return om_fail(s, OM_INVALID, "%s is fixed to pool %" PRIu32 ", but there are only %" PRIu32,
				p->buf[k].name ? p->buf[k].name : om_printf(mem, "buffer %" PRIu32, k),
				p->buf[k].fixed_pool, p->npool);
	return OM_OK;
}

/* Each buffer on its own.  Packing by pairs ignores lifetimes. */
static om_status
check_buffers(om_session *s, const om_problem *p, om_arena *mem)
{
	static const om_interval always[] = {{.lower = 0, .upper = 1}};

	if (!p->by_pairs)
		return om_pack_validate(s, mem, p->buf, p->n);
	om_buffer *copy = om_memdup(mem, p->buf, p->n * sizeof *p->buf);
	for (uint32_t k = 0; k < p->n; k++) {
		copy[k].live = always;
		copy[k].nlive = 1;
	}
	return om_pack_validate(s, mem, copy, p->n);
}

/* ---- One pool. ---- */

om_status
om_units_pack(om_session *s, om_units *u, const uint32_t *set, uint32_t n, uint64_t align,
	const om_search_limits *limits, om_pack_result *r)
{
	if (u->adj)
		return om_graph_pack(s, u, set, n, align, limits, r);
	om_arena *mem = om_arena_new();
	om_buffer *buf = OM_NEWN(mem, om_buffer, n);
	for (uint32_t k = 0; k < n; k++) {
		buf[k] = u->buf[set[k]];
		if (align > buf[k].align)
			buf[k].align = align;
		if (buf[k].fixed >= 0)
			buf[k].name = om_unit_name(u, set[k], mem);
	}
	om_status st = om_pack_limited(s, buf, n, limits, r);
	for (uint32_t k = 0; k < n && st == OM_OK; k++)
		u->buf[set[k]].offset = buf[k].offset;
	om_arena_free(mem);
	return st;
}

static uint32_t
collect_units(const om_units *u, uint32_t pool, uint32_t *set)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < u->n; k++)
		if (u->buf[k].pool == pool)
			set[n++] = k;
	return n;
}

static uint64_t
height_of(const om_units *u, const uint32_t *set, uint32_t n)
{
	uint64_t height = 0;

	for (uint32_t k = 0; k < n; k++) {
		const om_buffer *b = &u->buf[set[k]];
		if (b->bytes && b->offset + b->bytes > height)
			height = b->offset + b->bytes;
	}
	return height;
}

/* The state of a pool during the iterations. */
struct pool_state {
	bool has_packing;        /* its units have offsets */
	bool is_stuck;           /* more nodes bring no improvement */
	double ms;               /* the time of the last attempt */
};

/* Pack the units of a pool; keep their previous offsets if these are lower. */
static om_status
pack_if_lower(om_session *s, om_units *u, const uint32_t *set, uint32_t n, om_pool *pool,
	const om_search_limits *e,
	struct pool_state *c)
{
	const om_pack_result old = pool->result;
	const uint64_t before = c->has_packing ? height_of(u, set, n) : UINT64_MAX;
	om_arena *mem = om_arena_new();
	uint64_t *offset = OM_NEWN(mem, uint64_t, n);

	for (uint32_t k = 0; k < n; k++)
		offset[k] = u->buf[set[k]].offset;
	om_status st = om_units_pack(s, u, set, n, pool->align, e, &pool->result);
	om_pack_result *r = &pool->result;
	if (st == OM_OK && r->height > before) {
		r->height = before;
		r->strategy = old.strategy ? old.strategy : "assignment";
		for (uint32_t k = 0; k < n; k++)
			u->buf[set[k]].offset = offset[k];
	}
	if (old.lower_bound > r->lower_bound)
		r->lower_bound = old.lower_bound;
	om_arena_free(mem);
	c->has_packing = true;
	return st;
}

static om_status
pack_pool(om_session *s, om_units *u, const uint32_t *set, uint32_t n, const om_problem *p, om_pool *pool,
	const om_search_limits *limits, struct pool_state *c)
{
	om_search_limits e = *limits;
	om_pack_result *r = &pool->result;
	const bool is_timed = e.deadline_ms > 0;
	const double start = is_timed ? om_now_ms() : 0;

	e.target = p->npool == 1 ? p->proven : 0;
	OM_TRY(pack_if_lower(s, u, set, n, pool, &e, c));
	if (p->npool == 1 && p->proven > r->lower_bound)
		r->lower_bound = p->proven < r->height ? p->proven : r->height;
	r->is_limited = r->lower_bound != r->height;
	r->status = r->is_limited ? OM_PACK_FEASIBLE : OM_PACK_OPTIMAL;
	if (is_timed) {
		const double ms = om_now_ms() - start;
		c->is_stuck = r->status == OM_PACK_OPTIMAL || ms < 1.5 * c->ms;
		c->ms = ms;
	}
	return OM_OK;
}

/* Pack each pool once.  Then, if there is a time limit but no node limit, repeat
 * with more and more nodes the pools whose last attempt took longer than the one
 * before. */
static om_status
pack_pools(om_session *s, om_units *u, om_problem *p, const bool *packed, om_search_limits limits,
	om_arena *mem)
{
	enum { GROWTH = 4 };
	struct pool_state *c = OM_NEWN(mem, struct pool_state, p->npool);
	uint32_t *set = OM_NEWN(mem, uint32_t, u->n);
	bool continues = true;

	for (uint32_t k = 0; k < p->npool; k++) {
		p->pool[k].result = (om_pack_result){.strategy = NULL};
		c[k].has_packing = packed[k];
	}
	for (uint32_t iteration = 0; continues; iteration++) {
		continues = false;
		for (uint32_t k = 0; k < p->npool; k++) {
			if (iteration && (c[k].is_stuck || om_is_past_deadline(&limits)))
				continue;
			OM_TRY(pack_pool(s, u, set, collect_units(u, k, set), p, &p->pool[k], &limits, &c[k]));
			continues |= p->seconds > 0 && !p->nodes && !c[k].is_stuck;
		}
		limits.nodes *= GROWTH;
	}
	return OM_OK;
}

/* ---- Messages about exceeded limits. ---- */

struct live_buffer {
	uint64_t bytes;
	uint32_t buf;
};

static int
compare_bytes(const void *a, const void *b)
{
	const struct live_buffer *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->buf < y->buf ? -1 : x->buf > y->buf;
}

static uint64_t
live_bytes(const om_buffer *b, uint32_t step)
{
	uint64_t bytes = 0;

	for (uint32_t k = 0; k < b->nlive; k++)
		if (b->live[k].lower <= step && step < b->live[k].upper)
			bytes += (b->live[k].to ? b->live[k].to : b->bytes) - b->live[k].from;
	return bytes;
}

/* "a (64), b (32) and 3 more" */
static const char *
list_largest(const om_problem *p, uint32_t pool, uint32_t step, om_arena *mem)
{
	enum { SHOWN = 4 };
	struct live_buffer *v = OM_NEWN(mem, struct live_buffer, p->n);
	const char *text = "";
	size_t n = 0;

	for (uint32_t k = 0; k < p->n; k++) {
		const om_buffer *b = &p->buf[k];
		const uint64_t bytes = p->by_pairs ? b->bytes : live_bytes(b, step);
		if (b->pool == pool && bytes)
			v[n++] = (struct live_buffer){bytes, k};
	}
	qsort(v, n, sizeof *v, compare_bytes);
	for (size_t k = 0; k < n && k < SHOWN; k++) {
		const char *name = p->buf[v[k].buf].name;
		text = om_printf(mem, "%s%s%s (%" PRIu64 ")", text, k == 0 ? "" : k + 1 == n ? " and " : ", ",
			name ? name : om_printf(mem, "buffer %" PRIu32, v[k].buf), v[k].bytes);
	}
	return n > SHOWN ? om_printf(mem, "%s and %zu more", text, n - SHOWN) : text;
}

static om_status
check_limit(om_session *s, const om_problem *p, uint32_t k, om_arena *mem)
{
	const om_pool *pool = &p->pool[k];
	const om_pack_result *r = &pool->result;
	const bool proven = r->lower_bound > pool->limit;

	if (pool->limit == 0 || r->height <= pool->limit)
		return OM_OK;
	const char *name = pool->name ? om_printf(mem, "pool %s", pool->name) : om_printf(mem, "pool %" PRIu32, k);
	const char *need = proven
		? om_printf(mem, "%" PRIu64 " are required", r->lower_bound)
		: om_printf(mem, "the best packing found takes %" PRIu64, r->height);
	if (p->by_pairs)
		return om_fail(s, OM_BUDGET, "%s has %" PRIu64 " bytes, but %s; the largest in it are %s", name,
			pool->limit, need, list_largest(p, k, 0, mem));
	return om_fail(s, OM_BUDGET, "%s has %" PRIu64 " bytes, but %s; step %" PRIu32 " has the peak, with %s",
		name,
		pool->limit, need, r->bound_step, list_largest(p, k, r->bound_step, mem));
}

/* ---- The whole problem. ---- */

static void
write_back(const om_units *u, om_problem *p)
{
	for (uint32_t k = 0; k < p->n; k++) {
		const om_buffer *unit = &u->buf[u->unit_of[k]];
		p->buf[k].offset = unit->offset + u->offset_in_unit[k];
		p->buf[k].pool = unit->pool;
	}
}

static om_status
solve_problem(om_session *s, om_problem *p, om_arena *mem)
{
	const om_search_limits limits = {
		.nodes = p->nodes ? p->nodes : OM_PACK_NODES,
		.deadline_ms = p->seconds > 0 ? om_now_ms() + p->seconds * 1e3 : 0,
		.session = s,
	};
	om_units u;

	OM_TRY(check_pools(s, p, mem));
	OM_TRY(check_buffers(s, p, mem));
	OM_TRY(om_units_init(s, &u, p, mem));
	bool *packed = OM_NEWN(mem, bool, p->npool);
	om_pools_assign(s, &u, p->pool, p->npool, &limits, packed);
	OM_TRY(pack_pools(s, &u, p, packed, limits, mem));
	write_back(&u, p);
	for (uint32_t k = 0; k < p->npool; k++)
		OM_TRY(check_limit(s, p, k, mem));
	return OM_OK;
}

static om_status
pack_solve_guarded(om_session *s, const om_problem *problem)
{
	om_problem p;

	OM_TRY(om_options_read(s, "om_problem", "OM_PROBLEM()", &p, sizeof p, sizeof p, problem));
	om_arena *mem = om_arena_new();
	om_status st = solve_problem(s, &p, mem);

	om_arena_free(mem);
	return st;
}

om_status
om_pack_solve(om_session *s, const om_problem *problem)
{
	OM_GUARDED(s, pack_solve_guarded(s, problem));
}
