/* SPDX-License-Identifier: Apache-2.0 */
/* Groups: buffers that are placed back to back become one rigid buffer, whose
 * rectangles are those of its members, each moved by its offset in the group. */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>

#include "pack/problem.h"

static const om_interval always[] = {{.lower = 0, .upper = 1}};

static const char *
buffer_name(const om_units *u, uint32_t k)
{
	return u->source[k].name ? u->source[k].name : om_printf(u->mem, "buffer %" PRIu32, k);
}

const char *
om_unit_name(const om_units *u, uint32_t k, om_arena *mem)
{
	const uint32_t b = u->member[u->first[k]];
	const char *name = u->source[b].name ? u->source[b].name : om_printf(mem, "buffer %" PRIu32, b);

	return u->first[k + 1] - u->first[k] > 1 ? om_printf(mem, "the group of %s", name) : name;
}

static int
compare_interval(const void *a, const void *b)
{
	const om_interval *x = a, *y = b;

	if (x->lower != y->lower)
		return x->lower < y->lower ? -1 : 1;
	if (x->upper != y->upper)
		return x->upper < y->upper ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

/* The rectangles of all members; those of the same time that touch are merged. */
static void
merge_lifetimes(om_units *u, om_buffer *unit, const uint32_t *member, uint32_t n, const uint64_t *offset)
{
	uint32_t m = 0, kept = 0;

	for (uint32_t k = 0; k < n; k++)
		m += u->source[member[k]].bytes ? u->source[member[k]].nlive : 0;
	if (m == 0)
		return;
	om_interval *live = OM_NEWN(u->mem, om_interval, m);
	m = 0;
	for (uint32_t k = 0; k < n; k++) {
		const om_buffer *b = &u->source[member[k]];
		for (uint32_t j = 0; b->bytes && j < b->nlive; j++) {
			const om_interval *l = &b->live[j];
			live[m++] = (om_interval){l->lower, l->upper, offset[member[k]] + l->from,
				offset[member[k]] + (l->to ? l->to : b->bytes)};
		}
	}
	qsort(live, m, sizeof *live, compare_interval);
	for (uint32_t k = 0; k < m; k++) {
		om_interval *last = kept ? &live[kept - 1] : NULL;
		if (last && last->lower == live[k].lower && last->upper == live[k].upper && last->to == live[k].from)
			last->to = live[k].to;
		else
			live[kept++] = live[k];
	}
	unit->live = live;
	unit->nlive = kept;
}

/* Require the offset of the unit that member `k` implies. */
static om_status
add_fixed_offset(om_session *s, om_units *u, om_buffer *unit, uint32_t k, uint64_t offset)
{
	const int64_t fixed = u->source[k].fixed;

	if (fixed < 0)
		return OM_OK;
	if ((uint64_t)fixed < offset)
		return om_fail(s, OM_INVALID, "%s is fixed at %" PRId64 ", but starts at byte %" PRIu64
			" of its group", buffer_name(u, k), fixed, offset);
	if (unit->fixed >= 0 && (uint64_t)unit->fixed != (uint64_t)fixed - offset)
		return om_fail(s, OM_INVALID,
			"%s is fixed at %" PRId64 ", but its group is fixed to start at %" PRId64,
			buffer_name(u, k), fixed, unit->fixed);
	unit->fixed = fixed - (int64_t)offset;
	return OM_OK;
}

static om_status
add_member(om_session *s, om_units *u, om_buffer *unit, uint32_t k, uint64_t *offset)
{
	const om_buffer *b = &u->source[k];

	*offset = unit->bytes;
	if (b->align > 1 && *offset % b->align)
		return om_fail(s, OM_INVALID,
			"%s starts at byte %" PRIu64 " of its group, which is not a multiple of its "
			"alignment %" PRIu64, buffer_name(u, k), *offset, b->align);
	if (b->fixed_pool != OM_POOL_ANY && unit->fixed_pool != OM_POOL_ANY && b->fixed_pool != unit->fixed_pool)
		return om_fail(s, OM_INVALID, "%s is fixed to pool %" PRIu32 ", but its group to pool %" PRIu32,
			buffer_name(u, k), b->fixed_pool, unit->fixed_pool);
	if (b->fixed_pool != OM_POOL_ANY)
		unit->fixed_pool = b->fixed_pool;
	unit->bytes += b->bytes;
	unit->align = b->align > unit->align ? b->align : unit->align;
	unit->access_bytes += b->access_bytes > UINT64_MAX - unit->access_bytes ? UINT64_MAX - unit->access_bytes : b->access_bytes;
	return add_fixed_offset(s, u, unit, k, *offset);
}

static om_status
make_group(om_session *s, om_units *u, const om_pack_group *g, uint64_t *offset)
{
	om_buffer unit = {.live = always, .nlive = 1, .fixed = OM_OFFSET_FREE, .fixed_pool = OM_POOL_ANY};

	for (uint32_t k = 0; k < g->n; k++)
		OM_TRY(add_member(s, u, &unit, g->member[k], &offset[g->member[k]]));
	if (unit.fixed >= 0 && unit.align > 1 && (uint64_t)unit.fixed % unit.align)
		return om_fail(s, OM_INVALID,
			"the group of %s is fixed to start at %" PRId64 ", which is not a multiple of "
			"its alignment %" PRIu64, buffer_name(u, g->member[0]), unit.fixed, unit.align);
	if (!u->adj)
		merge_lifetimes(u, &unit, g->member, g->n, offset);
	u->buf[u->n++] = unit;
	return OM_OK;
}

/* The group of each buffer, + 1; 0: none. */
static om_status
find_groups(om_session *s, const om_units *u, const om_problem *p, uint32_t *group)
{
	for (uint32_t k = 0; k < p->ngroup; k++)
		for (uint32_t j = 0; j < p->group[k].n; j++) {
			const uint32_t b = p->group[k].member[j];
			if (b >= p->n)
				return om_fail(s, OM_INVALID,
					"group %" PRIu32 " contains buffer %" PRIu32 ", but there are only %"
					PRIu32, k, b, p->n);
			if (group[b])
				return om_fail(s, OM_INVALID, "%s is in two groups, or twice in one", buffer_name(u, b));
			group[b] = k + 1;
		}
	return OM_OK;
}

om_status
om_units_init(om_session *s, om_units *u, const om_problem *p, om_arena *mem)
{
	uint32_t *group = OM_NEWN(mem, uint32_t, p->n), *unit_of = OM_NEWN(mem, uint32_t, p->n);
	uint32_t *member = OM_NEWN(mem, uint32_t, p->n), *first = OM_NEWN(mem, uint32_t, (size_t)p->n + 1);
	uint64_t *offset = OM_NEWN(mem, uint64_t, p->n);
	uint32_t n = 0;

	*u = (om_units){.buf = OM_NEWN(mem, om_buffer, p->n), .member = member, .first = first, .unit_of = unit_of,
		.offset_in_unit = offset, .source = p->buf, .nsource = p->n, .mem = mem};
	OM_TRY(find_groups(s, u, p, group));
	if (p->by_pairs)
		OM_TRY(om_graph_pack_init(s, u, p));
	/* A unit comes at the position of its first member. */
	for (uint32_t k = 0; k < p->n; k++) {
		const om_pack_group *g = group[k] ? &p->group[group[k] - 1] : NULL;
		if (g && g->member[0] != k)
			continue;
		first[u->n] = n;
		for (uint32_t j = 0; j < (g ? g->n : 1); j++) {
			member[n] = g ? g->member[j] : k;
			unit_of[member[n++]] = u->n;
		}
		if (g) {
			OM_TRY(make_group(s, u, g, offset));
			continue;
		}
		u->buf[u->n] = p->buf[k];
		if (p->by_pairs) {
			u->buf[u->n].live = always;
			u->buf[u->n].nlive = 1;
		}
		u->n++;
	}
	first[u->n] = n;
	return OM_OK;
}
