/* The packer: checks the problem, cuts it where nothing is alive, and packs each
 * part on its own.  No part needs to get below the bound of the whole, or below
 * what another part needed.
 */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>

#include "base/guard.h"
#include "pack/packer.h"

/* ---- Refusing what makes no sense. ---- */

static const char *
name_of(om_arena *mem, const om_buffer *b, uint32_t k)
{
	return b->name ? b->name : om_printf(mem, "buffer %" PRIu32, k);
}

/* Does it use a byte twice at some step?  Sorted plain lifetimes are looked at
 * in passing; rectangles are what the check of packings is for. */
static bool
meets_itself(om_session *s, const om_buffer *b)
{
	om_buffer alone = {.bytes = b->bytes, .live = b->live, .nlive = b->nlive, .fixed = OM_OFFSET_FREE};
	uint32_t k = 1;

	while (k < b->nlive && b->live[k].lower >= b->live[k - 1].upper)
		k++;
	return k < b->nlive && (b->bytes == 0 || om_pack_check(s, &alone, 1, INT64_MAX) != OM_OK);
}

static const char *
what_is_wrong(const om_buffer *b)
{
	if (b->align & (b->align - 1))
		return "its alignment is no power of two";
	if (b->nlive == 0)
		return "it is never alive";
	for (uint32_t k = 0; k < b->nlive; k++) {
		const om_interval *live = &b->live[k];
		if (live->lower >= live->upper)
			return "a lifetime of it is empty";
		if ((live->from || live->to) && (live->from >= live->to || live->to > b->bytes))
			return "a lifetime of it has no bytes, or some that are not its own";
		if (k && live->lower < live[-1].lower)
			return "its lifetimes are not sorted";
	}
	if (b->fixed < OM_OFFSET_FREE)
		return "its fixed offset is negative";
	if (b->fixed > 0 && b->align > 1 && (uint64_t)b->fixed % b->align)
		return "its fixed offset is not aligned";
	return NULL;
}

/* Everything stacked has to be a number of int64. */
static bool
adds_up(const om_buffer *buf, uint32_t n)
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

/* The buffers with fixed offsets among themselves. */
static om_status
check_fixed(om_session *s, om_arena *mem, const om_buffer *buf, uint32_t n)
{
	om_buffer *fixed = OM_NEWN(mem, om_buffer, n);
	uint32_t m = 0;

	for (uint32_t k = 0; k < n; k++) {
		if (buf[k].fixed < 0 || buf[k].bytes == 0)
			continue;
		fixed[m] = buf[k];
		fixed[m].name = name_of(mem, &buf[k], k);
		fixed[m++].offset = (uint64_t)buf[k].fixed;
	}
	if (m == 0 || om_pack_check(s, fixed, m, INT64_MAX) == OM_OK)
		return OM_OK;
	return om_fail(s, OM_INVALID, "fixed offsets contradict each other: %s",
		om_strdup(mem, om_message(s)));
}

om_status
om_pack_refuse(om_session *s, om_arena *mem, const om_buffer *buf, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		const char *wrong = what_is_wrong(&buf[k]);
		if (!wrong && meets_itself(s, &buf[k]))
			wrong = "its lifetimes overlap";
		if (wrong)
			return om_fail(s, OM_INVALID, "%s cannot be packed: %s", name_of(mem, &buf[k], k), wrong);
	}
	if (!adds_up(buf, n))
		return om_fail(s, OM_INVALID, "the bytes of all %" PRIu32 " buffers do not add up to a number", n);
	return OM_OK;
}

/* ---- The parts. ---- */

static int
by_lower(const void *a, const void *b)
{
	const om_component_part *x = a, *y = b;

	if (x->lower != y->lower)
		return x->lower < y->lower ? -1 : 1;
	if (x->buf != y->buf)
		return x->buf < y->buf ? -1 : 1;
	return x->live < y->live ? -1 : x->live > y->live;
}

static om_component_part *
pieces_of(const om_buffer *buf, uint32_t n, om_arena *mem, uint32_t *count)
{
	size_t m = 0;

	for (uint32_t k = 0; k < n; k++)
		m += buf[k].bytes ? buf[k].nlive : 0;
	om_component_part *piece = OM_NEWN(mem, om_component_part, m);
	m = 0;
	for (uint32_t k = 0; k < n; k++)
		for (uint32_t j = 0; j < buf[k].nlive && buf[k].bytes; j++)
			piece[m++] = (om_component_part){buf[k].live[j].lower, buf[k].live[j].upper, k, j};
	qsort(piece, m, sizeof *piece, by_lower);
	*count = (uint32_t)m;
	return piece;
}

/* Pieces from `from` on that belong together.  Between two lifetimes of a
 * buffer there is no cut. */
static uint32_t
part_end(const om_buffer *buf, const om_component_part *piece, uint32_t n, uint32_t from)
{
	uint32_t end = from, reach = 0;

	for (; end < n && (end == from || piece[end].lower < reach); end++) {
		if (piece[end].live > 0)
			continue;
		const uint32_t upper = om_last_upper(&buf[piece[end].buf]);
		if (upper > reach)
			reach = upper;
	}
	return end;
}

static void
collect_items(om_component *part, uint32_t *item)
{
	part->item = item;
	part->nitem = 0;
	for (uint32_t k = 0; k < part->npiece; k++)
		if (part->piece[k].live == 0)
			item[part->nitem++] = part->piece[k].buf;
}

static void
pack_parts(om_buffer *buf, uint32_t n, const om_effort *effort, om_arena *mem, om_pack_result *r)
{
	uint32_t npiece;
	const om_component_part *piece = pieces_of(buf, n, mem, &npiece);
	uint32_t *head = OM_NEWN(mem, uint32_t, n), *rank = OM_NEWN(mem, uint32_t, n);
	uint32_t *item = OM_NEWN(mem, uint32_t, n);
	om_arena *scratch = om_arena_new();
	uint64_t proven = r->lower_bound;

	for (uint32_t from = 0, end; from < npiece; from = end) {
		end = part_end(buf, piece, npiece, from);
		om_component part = {.buf = buf, .piece = piece + from, .npiece = end - from,
			.head = head, .rank = rank, .goal = proven > r->height ? proven : r->height};
		om_best best;
		if (part.goal < effort->enough)
			part.goal = effort->enough;
		collect_items(&part, item);
		om_solve(&part, effort, scratch, &best);
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
om_pack_pool(om_session *s, om_buffer *buf, uint32_t n, const om_effort *effort, om_pack_result *result)
{
	om_arena *mem = om_arena_new();
	om_status st = om_pack_refuse(s, mem, buf, n);
	om_effort e = *effort;

	e.session = s;
	if (st == OM_OK)
		st = check_fixed(s, mem, buf, n);
	if (st == OM_OK) {
		*result = (om_pack_result){.strategy = "size"};
		result->lower_bound = om_pack_bound(buf, n, &result->bound_step);
		for (uint32_t k = 0; k < n; k++)
			buf[k].offset = buf[k].fixed > 0 ? (uint64_t)buf[k].fixed : 0;
		pack_parts(buf, n, &e, mem, result);
		if (result->height == result->lower_bound)
			result->status = OM_PACK_OPTIMAL;
		else
			result->status = OM_PACK_FEASIBLE;
	}
	om_arena_free(mem);
	return st;
}

static om_status
pack_guarded(om_session *s, om_buffer *buf, uint32_t n, om_pack_result *result)
{
	return om_pack_pool(s, buf, n, &(om_effort){.nodes = OM_PACK_NODES}, result);
}

om_status
om_pack(om_session *s, om_buffer *buf, uint32_t n, om_pack_result *result)
{
	OM_GUARDED(s, pack_guarded(s, buf, n, result));
}
