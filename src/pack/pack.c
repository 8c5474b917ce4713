/* SPDX-License-Identifier: Apache-2.0 */
/* The packer: validates the problem, splits it at steps where no buffer is live,
 * and packs each component on its own.  No component has to get below the bound of
 * the whole problem, or below the height of another component. */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>

#include "base/guard.h"
#include "base/arena_internal.h"
#include "pack/overlap.h"
#include "pack/packer.h"

/* ---- Validation. ---- */

static const char *
name_of(om_arena *mem, const om_buffer *b, uint32_t k)
{
	return b->name ? b->name : om_printf(mem, "buffer %" PRIu32, k);
}

/* Does it use a byte twice at some step?  Disjoint lifetimes, which are the rule, take no search. */
static bool
overlaps_itself(const om_buffer *b)
{
	om_overlap found;
	uint32_t k = 1;

	while (k < b->nlive && b->live[k].lower >= b->live[k - 1].upper)
		k++;
	return k < b->nlive && (b->bytes == 0 || om_overlap_find(b, 1, &found));
}

static const char *
find_error(const om_buffer *b)
{
	if (b->align & (b->align - 1))
		return "its alignment is not a power of two";
	if (b->nlive == 0)
		return "it has no lifetime";
	for (uint32_t k = 0; k < b->nlive; k++) {
		const om_interval *live = &b->live[k];
		if (live->lower >= live->upper)
			return "one of its lifetimes is empty";
		if ((live->from || live->to) && (live->from >= live->to || live->to > b->bytes))
			return "one of its lifetimes has no bytes, or bytes outside of the buffer";
		if (k && live->lower < live[-1].lower)
			return "its lifetimes are not sorted";
	}
	if (b->fixed < OM_OFFSET_FREE)
		return "its fixed offset is negative";
	if (b->fixed > 0 && b->align > 1 && (uint64_t)b->fixed % b->align)
		return "its fixed offset is not aligned";
	return NULL;
}

/* The sum of all sizes, alignments and fixed offsets has to fit in int64_t. */
static bool
sum_fits(const om_buffer *buf, uint32_t n)
{
	uint64_t sum = 0, fixed = 0;

	for (uint32_t k = 0; k < n; k++) {
		uint64_t end = buf[k].fixed > 0 ? (uint64_t)buf[k].fixed : 0;
		if (buf[k].align > INT64_MAX / 2
		    || __builtin_add_overflow(sum, buf[k].bytes, &sum)
		    || __builtin_add_overflow(sum, buf[k].align, &sum)
		    || __builtin_add_overflow(end, buf[k].bytes, &end))
			return false;
		if (end > fixed)
			fixed = end;
	}
	return !__builtin_add_overflow(sum, fixed, &sum) && sum <= INT64_MAX;
}

/* Check the buffers with fixed offsets against each other. */
static om_status
check_fixed(om_session *s, om_arena *mem, const om_buffer *buf, uint32_t n)
{
	om_buffer *fixed = OM_NEWN(mem, om_buffer, n);
	om_overlap o;
	uint32_t m = 0;

	for (uint32_t k = 0; k < n; k++) {
		if (buf[k].fixed < 0 || buf[k].bytes == 0)
			continue;
		fixed[m] = buf[k];
		fixed[m].name = name_of(mem, &buf[k], k);
		m++;
	}
	if (!om_overlap_find(fixed, m, &o))
		return OM_OK;
	return om_fail(s, OM_INVALID, "fixed offsets contradict each other: %s at %" PRId64 " and %s at %" PRId64
		" overlap at step %" PRIu32, fixed[o.a].name, fixed[o.a].fixed, fixed[o.b].name, fixed[o.b].fixed, o.step);
}

om_status
om_pack_validate(om_session *s, om_arena *mem, const om_buffer *buf, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		const char *error = find_error(&buf[k]);
		if (!error && overlaps_itself(&buf[k]))
			error = "its lifetimes overlap";
		if (error)
			return om_fail(s, OM_INVALID, "%s cannot be packed: %s", name_of(mem, &buf[k], k), error);
	}
	if (!sum_fits(buf, n))
		return om_fail(s, OM_INVALID, "the sum of the bytes of all %" PRIu32 " buffers overflows 63 bits", n);
	return OM_OK;
}

/* ---- Components. ---- */

static int
compare_lifetime(const void *a, const void *b)
{
	const om_lifetime *x = a, *y = b;

	if (x->lower != y->lower)
		return x->lower < y->lower ? -1 : 1;
	if (x->buf != y->buf)
		return x->buf < y->buf ? -1 : 1;
	return x->live < y->live ? -1 : x->live > y->live;
}

static om_lifetime *
collect_lifetimes(const om_buffer *buf, uint32_t n, om_arena *mem, uint32_t *count)
{
	size_t m = 0;

	for (uint32_t k = 0; k < n; k++)
		m += buf[k].bytes ? buf[k].nlive : 0;
	om_lifetime *lifetime = OM_NEWN(mem, om_lifetime, m);
	m = 0;
	for (uint32_t k = 0; k < n; k++)
		for (uint32_t j = 0; j < buf[k].nlive && buf[k].bytes; j++)
			lifetime[m++] = (om_lifetime){buf[k].live[j].lower, buf[k].live[j].upper, k, j};
	qsort(lifetime, m, sizeof *lifetime, compare_lifetime);
	*count = (uint32_t)m;
	return lifetime;
}

/* The end of the component that starts with lifetime `from`. A component is not
 * split between two lifetimes of a buffer. */
static uint32_t
component_end(const om_buffer *buf, const om_lifetime *lifetime, uint32_t n, uint32_t from)
{
	uint32_t end = from, latest = 0;

	for (; end < n && (end == from || lifetime[end].lower < latest); end++) {
		if (lifetime[end].live > 0)
			continue;
		const uint32_t upper = om_last_upper(&buf[lifetime[end].buf]);
		if (upper > latest)
			latest = upper;
	}
	return end;
}

static void
collect_items(om_component *component, uint32_t *item)
{
	component->item = item;
	component->nitem = 0;
	for (uint32_t k = 0; k < component->nlifetime; k++)
		if (component->lifetime[k].live == 0)
			item[component->nitem++] = component->lifetime[k].buf;
}

static void
pack_components(om_buffer *buf, uint32_t n, const om_search_limits *limits, om_arena *mem, om_pack_result *r)
{
	uint32_t nlifetime;
	const om_lifetime *lifetime = collect_lifetimes(buf, n, mem, &nlifetime);
	uint32_t *head = OM_NEWN(mem, uint32_t, n), *rank = OM_NEWN(mem, uint32_t, n);
	uint32_t *item = OM_NEWN(mem, uint32_t, n);
	om_arena *scratch = om_arena_new();
	uint64_t proven = r->lower_bound;

	for (uint32_t from = 0, end; from < nlifetime; from = end) {
		end = component_end(buf, lifetime, nlifetime, from);
		om_component component = {.buf = buf, .lifetime = lifetime + from, .nlifetime = end - from,
			.head = head, .rank = rank, .goal = proven > r->height ? proven : r->height};
		om_component_result best;
		if (component.goal < limits->target)
			component.goal = limits->target;
		collect_items(&component, item);
		om_component_pack(&component, limits, scratch, &best);
		if (best.height > r->height) {
			r->height = best.height;
			r->strategy = best.strategy;
		}
		if (best.is_proven && best.height > proven)
			proven = best.height;
		om_arena_clear(scratch);
	}
	om_arena_free(scratch);
	r->lower_bound = proven;
}

om_status
om_pack_limited(om_session *s, om_buffer *buf, uint32_t n, const om_search_limits *limits,
	om_pack_result *result)
{
	om_arena *mem = om_arena_new();
	om_status st = om_pack_validate(s, mem, buf, n);
	om_search_limits e = *limits;

	e.session = s;
	if (st == OM_OK)
		st = check_fixed(s, mem, buf, n);
	if (st == OM_OK) {
		*result = (om_pack_result){.strategy = "size"};
		result->lower_bound = om_pack_bound(buf, n, &result->bound_step);
		for (uint32_t k = 0; k < n; k++)
			buf[k].offset = buf[k].fixed > 0 ? (uint64_t)buf[k].fixed : 0;
		pack_components(buf, n, &e, mem, result);
		result->is_limited = result->height != result->lower_bound;  /* complete searches prove it */
		result->status = result->is_limited ? OM_PACK_FEASIBLE : OM_PACK_OPTIMAL;
	}
	om_arena_free(mem);
	return st;
}

static om_status
pack_guarded(om_session *s, om_buffer *buf, uint32_t n, om_pack_result *result)
{
	return om_pack_limited(s, buf, n, &(om_search_limits){.nodes = OM_PACK_NODES}, result);
}

om_status
om_pack(om_session *s, om_buffer *buf, uint32_t n, om_pack_result *result)
{
	OM_GUARDED(s, pack_guarded(s, buf, n, result));
}
