/* SPDX-License-Identifier: Apache-2.0 */
/* Is the packing of a whole problem valid?  Each pool is checked by
 * om_pack_check(), pairs one by one, groups member by member.  The packer uses none
 * of this code. */
#include <config.h>

#include <inttypes.h>

#include "base/guard.h"
#include "base/options.h"
#include "onnxmem/pack.h"

struct checker {
	om_session *s;
	const om_problem *p;
	uint32_t *predecessor;        /* by buffer: the one before it in its group, + 1; 0: none */
	om_arena *mem;
};

static const char *
buffer_name(struct checker *c, uint32_t k)
{
	const char *name = c->p->buf[k].name;
	return name ? name : om_printf(c->mem, "buffer %" PRIu32, k);
}

static const char *
pool_name(struct checker *c, uint32_t k)
{
	const char *name = c->p->pool[k].name;
	return name ? om_printf(c->mem, "pool %s", name) : om_printf(c->mem, "pool %" PRIu32, k);
}

static om_status
check_group(struct checker *c, const om_pack_group *g)
{
	const om_buffer *buf = c->p->buf;

	for (uint32_t k = 0; k < g->n; k++)
		if (g->member[k] >= c->p->n)
			return om_fail(c->s, OM_INVALID,
				"a group contains buffer %" PRIu32 " but there are only %" PRIu32, g->member[k], c->p->n);
	for (uint32_t k = 1; k < g->n; k++) {
		const uint32_t a = g->member[k - 1], b = g->member[k];
		if (buf[a].pool != buf[b].pool)
			return om_fail(c->s, OM_BADPLAN, "%s and %s are in one group, but in two pools",
				buffer_name(c, a), buffer_name(c, b));
		if (buf[b].offset != buf[a].offset + buf[a].bytes)
			return om_fail(c->s, OM_BADPLAN,
				"%s is at offset %" PRIu64 ", but %s, the member before it in its group, ends at %"
				PRIu64, buffer_name(c, b), buf[b].offset, buffer_name(c, a), buf[a].offset + buf[a].bytes);
		c->predecessor[b] = a + 1;
	}
	return OM_OK;
}

static om_status
check_pools(struct checker *c)
{
	for (uint32_t k = 0; k < c->p->n; k++) {
		const om_buffer *b = &c->p->buf[k];
		if (b->pool >= c->p->npool)
			return om_fail(c->s, OM_BADPLAN, "%s is in pool %" PRIu32 ", but there are only %" PRIu32,
				buffer_name(c, k), b->pool, c->p->npool);
		if (b->fixed_pool != OM_POOL_ANY && b->fixed_pool != b->pool)
			return om_fail(c->s, OM_BADPLAN, "%s is in %s, but is fixed to %s", buffer_name(c, k),
				pool_name(c, b->pool), pool_name(c, b->fixed_pool));
		const uint64_t align = c->p->pool[b->pool].align;
		if (align > 1 && b->offset % align && !c->predecessor[k])
			return om_fail(c->s, OM_BADPLAN,
				"%s is at offset %" PRIu64 ", which is not a multiple of the alignment %"
				PRIu64 " of %s", buffer_name(c, k), b->offset, align, pool_name(c, b->pool));
	}
	return OM_OK;
}

/* Check the claims of the result.  `end`: the largest end of a buffer of the pool. */
static om_status
check_result(struct checker *c, uint32_t k, uint64_t end)
{
	const om_pool *pool = &c->p->pool[k];
	const om_pack_result *r = &pool->result;

	if (r->height != end)
		return om_fail(c->s, OM_BADPLAN,
			"%s has a stated height of %" PRIu64 " bytes, but its buffers end at %" PRIu64,
			pool_name(c, k), r->height, end);
	if (r->lower_bound > r->height || (r->status == OM_PACK_OPTIMAL) != (r->lower_bound == r->height))
		return om_fail(c->s, OM_BADPLAN, "%s takes %" PRIu64 " bytes with a lower bound of %" PRIu64
			", but its status is %s", pool_name(c, k), r->height, r->lower_bound,
			r->status == OM_PACK_OPTIMAL ? "optimal" : "feasible");
	if (pool->limit && r->height > pool->limit)
		return om_fail(c->s, OM_BADPLAN, "%s takes %" PRIu64 " bytes, but its limit is %" PRIu64, pool_name(c,
			k),
			r->height, pool->limit);
	return OM_OK;
}

/* Check the buffers of one pool against each other; packing by pairs, each one
 * alone. */
static om_status
check_pool(struct checker *c, uint32_t pool, bool has_names)
{
	static const om_interval one_step[] = {{.lower = 0, .upper = 1}};
	om_arena *mem = om_arena_new();
	om_buffer *in_pool = OM_NEWN(mem, om_buffer, c->p->n);
	uint64_t end = 0;
	uint32_t n = 0;
	om_status st = OM_OK;

	for (uint32_t k = 0; k < c->p->n; k++) {
		om_buffer b = c->p->buf[k];
		if (b.pool != pool)
			continue;
		if (b.bytes && b.offset + b.bytes > end)
			end = b.offset + b.bytes;
		if (has_names)
			b.name = buffer_name(c, k);
		if (c->p->by_pairs) {
			b.live = one_step;
			b.nlive = 1;
			if (st == OM_OK)
				st = om_pack_check(c->s, &b, 1, UINT64_MAX);
		} else {
			in_pool[n++] = b;
		}
	}
	if (st == OM_OK)
		st = om_pack_check(c->s, in_pool, n, UINT64_MAX);
	om_arena_free(mem);
	if (st != OM_OK && !has_names)       /* repeat for a message with names */
		return check_pool(c, pool, true);
	return st == OM_OK ? check_result(c, pool, end) : st;
}

static om_status
check_interference(struct checker *c)
{
	const om_problem *p = c->p;

	for (uint64_t k = 0; k < p->npair; k++) {
		if (p->pair[k][0] >= p->n || p->pair[k][1] >= p->n)
			return om_fail(c->s, OM_INVALID, "pair %" PRIu64 " has a buffer that does not exist", k);
		const om_buffer *a = &p->buf[p->pair[k][0]], *b = &p->buf[p->pair[k][1]];
		if (a->pool == b->pool && a->bytes && b->bytes && a->offset < b->offset + b->bytes
		    && b->offset < a->offset + a->bytes)
			return om_fail(c->s, OM_BADPLAN, "%s at %" PRIu64 " and %s at %" PRIu64 " overlap",
				buffer_name(c, p->pair[k][0]), a->offset, buffer_name(c, p->pair[k][1]), b->offset);
	}
	return OM_OK;
}

static om_status
check_all(struct checker *c)
{
	for (uint32_t k = 0; k < c->p->n; k++)
		if (c->p->buf[k].offset + c->p->buf[k].bytes < c->p->buf[k].offset)
			return om_fail(c->s, OM_BADPLAN, "the end of %s overflows 64 bits", buffer_name(c, k));
	for (uint32_t k = 0; k < c->p->ngroup; k++)
		OM_TRY(check_group(c, &c->p->group[k]));
	OM_TRY(check_pools(c));
	if (c->p->by_pairs)
		OM_TRY(check_interference(c));
	for (uint32_t k = 0; k < c->p->npool; k++)
		OM_TRY(check_pool(c, k, false));
	return OM_OK;
}

static om_status
pack_check_problem_guarded(om_session *s, const om_problem *problem)
{
	om_problem p;

	OM_TRY(om_options_read(s, "om_problem", "OM_PROBLEM()", &p, sizeof p, sizeof p, problem));
	struct checker c = {.s = s, .p = &p, .mem = om_arena_new()};
	c.predecessor = OM_NEWN(c.mem, uint32_t, p.n);
	om_status st = check_all(&c);
	om_arena_free(c.mem);
	return st;
}

om_status
om_pack_check_problem(om_session *s, const om_problem *problem)
{
	OM_GUARDED(s, pack_check_problem_guarded(s, problem));
}
