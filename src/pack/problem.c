/* Whole problems: what is wrong with them is refused, groups become rigid
 * buffers, every one gets a pool, every pool is packed for itself. */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>

#include "base/guard.h"
#include "pack/problem.h"

/* ---- Refusing. ---- */

static om_status
check_pools(om_session *s, const om_problem *p, om_arena *mem)
{
	if (p->npool == 0)
		return om_fail(s, OM_INVALID, "a packing problem has one pool at least");
	for (uint32_t k = 0; k < p->npool; k++)
		if (p->pool[k].align & (p->pool[k].align - 1) || p->pool[k].align > INT64_MAX / 2)
			return om_fail(s, OM_INVALID, "the alignment of pool %" PRIu32 " is no power of two", k);
	for (uint32_t k = 0; k < p->n; k++)
		if (p->buf[k].fixed_pool != OM_POOL_ANY && p->buf[k].fixed_pool >= p->npool)
			return om_fail(s, OM_INVALID, "%s has to lie in pool %" PRIu32 ", but there are %" PRIu32,
				p->buf[k].name ? p->buf[k].name : om_printf(mem, "buffer %" PRIu32, k),
				p->buf[k].fixed_pool, p->npool);
	return OM_OK;
}

/* Buffers one by one.  By pairs, lifetimes stay out of it. */
static om_status
check_buffers(om_session *s, const om_problem *p, om_arena *mem)
{
	static const om_interval always[] = {{.lower = 0, .upper = 1}};

	if (!p->by_pairs)
		return om_pack_refuse(s, mem, p->buf, p->n);
	om_buffer *copy = om_memdup(mem, p->buf, p->n * sizeof *p->buf);
	for (uint32_t k = 0; k < p->n; k++) {
		copy[k].live = always;
		copy[k].nlive = 1;
	}
	return om_pack_refuse(s, mem, copy, p->n);
}

/* ---- One pool. ---- */

om_status
om_units_pack(om_session *s, om_units *u, const uint32_t *set, uint32_t n, uint64_t align,
	const om_effort *effort, om_pack_result *r)
{
	if (u->near)
		return om_graph_pack(s, u, set, n, align, effort, r);
	om_arena *mem = om_arena_new();
	om_buffer *buf = OM_NEWN(mem, om_buffer, n);
	for (uint32_t k = 0; k < n; k++) {
		buf[k] = u->buf[set[k]];
		if (align > buf[k].align)
			buf[k].align = align;
		if (buf[k].fixed >= 0)
			buf[k].name = om_unit_name(u, set[k], mem);
	}
	om_status st = om_pack_pool(s, buf, n, effort, r);
	for (uint32_t k = 0; k < n && st == OM_OK; k++)
		u->buf[set[k]].offset = buf[k].offset;
	om_arena_free(mem);
	return st;
}

static uint32_t
units_in(const om_units *u, uint32_t pool, uint32_t *set)
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

/* Where a pool is in the course of trying. */
struct course {
	bool has_packing;        /* its units have offsets */
	bool is_stuck;           /* more nodes change nothing */
	double ms;               /* that the last try took */
};

/* Pack the units of a pool; what they had stays where it is lower. */
static om_status
pack_again(om_session *s, om_units *u, const uint32_t *set, uint32_t n, om_pool *pool, const om_effort *e,
	struct course *c)
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
		r->strategy = old.strategy ? old.strategy : "room";
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
pack_one(om_session *s, om_units *u, const uint32_t *set, uint32_t n, const om_problem *p, om_pool *pool,
	const om_effort *effort, struct course *c)
{
	om_effort e = *effort;
	om_pack_result *r = &pool->result;
	const bool is_timed = e.until_ms > 0;
	const double start = is_timed ? om_now_ms() : 0;

	e.enough = p->npool == 1 ? p->proven : 0;
	OM_TRY(pack_again(s, u, set, n, pool, &e, c));
	if (p->npool == 1 && p->proven > r->lower_bound)
		r->lower_bound = p->proven < r->height ? p->proven : r->height;
	r->status = r->lower_bound == r->height ? OM_PACK_OPTIMAL : OM_PACK_FEASIBLE;
	if (is_timed) {
		const double ms = om_now_ms() - start;
		c->is_stuck = r->status == OM_PACK_OPTIMAL || ms < 1.5 * c->ms;
		c->ms = ms;
	}
	return OM_OK;
}

/* Once each.  Then, where there is time but no number of nodes, with more and more
 * nodes those whose last try took longer for them. */
static om_status
pack_pools(om_session *s, om_units *u, om_problem *p, const bool *packed, om_effort effort, om_arena *mem)
{
	enum { MORE = 4 };
	struct course *c = OM_NEWN(mem, struct course, p->npool);
	uint32_t *set = OM_NEWN(mem, uint32_t, u->n);
	bool go_on = true;

	for (uint32_t k = 0; k < p->npool; k++) {
		p->pool[k].result = (om_pack_result){.strategy = NULL};
		c[k].has_packing = packed[k];
	}
	for (uint32_t round = 0; go_on; round++) {
		go_on = false;
		for (uint32_t k = 0; k < p->npool; k++) {
			if (round && (c[k].is_stuck || om_is_late(&effort)))
				continue;
			OM_TRY(pack_one(s, u, set, units_in(u, k, set), p, &p->pool[k], &effort, &c[k]));
			go_on |= p->seconds > 0 && !p->nodes && !c[k].is_stuck;
		}
		effort.nodes *= MORE;
	}
	return OM_OK;
}

/* ---- Saying where it does not fit. ---- */

struct live_there {
	uint64_t bytes;
	uint32_t buf;
};

static int
by_bytes(const void *a, const void *b)
{
	const struct live_there *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->buf < y->buf ? -1 : x->buf > y->buf;
}

static uint64_t
bytes_at(const om_buffer *b, uint32_t step)
{
	uint64_t bytes = 0;

	for (uint32_t k = 0; k < b->nlive; k++)
		if (b->live[k].lower <= step && step < b->live[k].upper)
			bytes += (b->live[k].to ? b->live[k].to : b->bytes) - b->live[k].from;
	return bytes;
}

/* "a (64), b (32) and 3 more" */
static const char *
largest(const om_problem *p, uint32_t pool, uint32_t step, om_arena *mem)
{
	enum { SHOWN = 4 };
	struct live_there *v = OM_NEWN(mem, struct live_there, p->n);
	const char *text = "";
	size_t n = 0;

	for (uint32_t k = 0; k < p->n; k++) {
		const om_buffer *b = &p->buf[k];
		const uint64_t bytes = p->by_pairs ? b->bytes : bytes_at(b, step);
		if (b->pool == pool && bytes)
			v[n++] = (struct live_there){bytes, k};
	}
	qsort(v, n, sizeof *v, by_bytes);
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
		? om_printf(mem, "%" PRIu64 " are needed", r->lower_bound)
		: om_printf(mem, "the best packing found takes %" PRIu64, r->height);
	if (p->by_pairs)
		return om_fail(s, OM_BUDGET, "%s has %" PRIu64 " bytes, but %s; the largest in it are %s", name,
			pool->limit, need, largest(p, k, 0, mem));
	return om_fail(s, OM_BUDGET, "%s has %" PRIu64 " bytes, but %s; step %" PRIu32 " needs most, with %s", name,
		pool->limit, need, r->bound_step, largest(p, k, r->bound_step, mem));
}

/* ---- All of it. ---- */

static void
write_back(const om_units *u, om_problem *p)
{
	for (uint32_t k = 0; k < p->n; k++) {
		const om_buffer *unit = &u->buf[u->of[k]];
		p->buf[k].offset = unit->offset + u->place[k];
		p->buf[k].pool = unit->pool;
	}
}

static om_status
solve(om_session *s, om_problem *p, om_arena *mem)
{
	const om_effort effort = {
		.nodes = p->nodes ? p->nodes : OM_PACK_NODES,
		.until_ms = p->seconds > 0 ? om_now_ms() + p->seconds * 1e3 : 0,
	};
	om_units u;

	OM_TRY(check_pools(s, p, mem));
	OM_TRY(check_buffers(s, p, mem));
	OM_TRY(om_units_init(s, &u, p, mem));
	bool *packed = OM_NEWN(mem, bool, p->npool);
	om_pools_assign(s, &u, p->pool, p->npool, &effort, packed);
	OM_TRY(pack_pools(s, &u, p, packed, effort, mem));
	write_back(&u, p);
	for (uint32_t k = 0; k < p->npool; k++)
		OM_TRY(check_limit(s, p, k, mem));
	return OM_OK;
}

static om_status
pack_solve_guarded(om_session *s, om_problem *problem)
{
	om_arena *mem = om_arena_new();
	om_status st = solve(s, problem, mem);

	om_arena_free(mem);
	return st;
}

om_status
om_pack_solve(om_session *s, om_problem *problem)
{
	OM_GUARDED(s, pack_solve_guarded(s, problem));
}
