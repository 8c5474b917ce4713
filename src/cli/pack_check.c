/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include <inttypes.h>

#include "cli/pack_check.h"

static om_status
take_buffer(om_session *s, om_packfile *f, uint32_t row, om_buffer *b)
{
	uint64_t end;

	if (b->fixed_pool == OM_POOL_ANY && f->problem.npool > 1)
		return om_fail(s, OM_INVALID, "%s:%zu: buffer %s has an offset, but no pool", f->table.path, f->table.line[row], b->name);
	b->offset = (uint64_t)b->fixed;
	b->pool = b->fixed_pool == OM_POOL_ANY ? 0 : b->fixed_pool;
	om_pack_result *r = &f->problem.pool[b->pool].result;
	if (__builtin_add_overflow(b->offset, b->bytes, &end) || end > INT64_MAX)
		return om_fail(s, OM_MALFORMED, "%s:%zu: buffer %s ends beyond 2^63 bytes", f->table.path, f->table.line[row], b->name);
	r->height = b->bytes && end > r->height ? end : r->height;
	return OM_OK;
}

/* The largest number of bytes of a pool that are in use at once, wherever they are. */
static void
find_bound(om_problem *o, uint32_t pool, om_buffer *some)
{
	om_pack_result *r = &o->pool[pool].result;
	uint32_t n = 0;

	for (uint32_t k = 0; k < o->n; k++)
		if (o->buf[k].pool == pool) {
			some[n] = o->buf[k];
			some[n++].fixed = OM_OFFSET_FREE;
		}
	r->lower_bound = o->by_pairs ? 0 : om_pack_bound(some, n, &r->bound_step);
	r->status = r->height == r->lower_bound ? OM_PACK_OPTIMAL : OM_PACK_FEASIBLE;
	r->strategy = "the table";
}

om_status
om_packfile_take(om_session *s, om_packfile *f, om_arena *mem, uint32_t *nfree)
{
	static const om_interval never = {0, 1, 0, 0};
	om_problem *o = &f->problem;

	*nfree = 0;
	for (uint32_t k = 0; k < o->n; k++) {
		om_buffer *b = &o->buf[k];
		if (b->fixed != OM_OFFSET_FREE) {
			OM_TRY(take_buffer(s, f, k, b));
			continue;
		}
		b->bytes = 0;            /* overlaps nothing */
		b->pool = 0;
		b->live = &never;
		b->nlive = 1;
		++*nfree;
	}
	if (*nfree == o->n)
		return om_fail(s, OM_INVALID, "%s: no buffer has an offset", f->table.path);
	om_buffer *some = OM_NEWN(mem, om_buffer, o->n);
	for (uint32_t k = 0; k < o->npool; k++)
		find_bound(o, k, some);
	return OM_OK;
}
