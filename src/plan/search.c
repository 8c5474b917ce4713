/* Complete search for small parts.
 *
 * Every packing can be pushed down until each buffer lies at 0 or on a
 * neighbour, without getting higher.  Such a packing is found by placing the
 * buffers by increasing offset, each on the highest of its neighbours that are
 * placed.  So the search goes through the orders of the buffers, offsets never
 * decreasing, equal ones by index.  A branch ends when
 *
 *   - at some step what is still to be placed does not fit under the goal;
 *   - a buffer could have been put, whole, below the next offset: then putting
 *     it there first is never worse;
 *   - the nodes that were granted are spent.
 */
#include <config.h>

#include <stdlib.h>

#include "plan/packer.h"

struct search {
	const om_part *part;
	uint32_t n;
	uint64_t near[OM_SEARCH_MOST];      /* neighbours in time, as a set */
	uint64_t bytes[OM_SEARCH_MOST], align[OM_SEARCH_MOST];
	uint64_t offset[OM_SEARCH_MOST];
	uint64_t *stretch;                  /* sets of buffers alive together */
	uint32_t nstretch;
	uint64_t nodes;
	uint64_t best;
};

static bool
alive_together(const om_buffer *a, const om_buffer *b)
{
	for (uint32_t i = 0, k = 0; i < a->nlive && k < b->nlive;) {
		if (a->live[i].lower < b->live[k].upper && b->live[k].lower < a->live[i].upper)
			return true;
		if (a->live[i].upper <= b->live[k].upper)
			i++;
		else
			k++;
	}
	return false;
}

static bool
is_alive(const om_buffer *b, uint32_t step)
{
	for (uint32_t k = 0; k < b->nlive; k++)
		if (b->live[k].lower <= step && step < b->live[k].upper)
			return true;
	return false;
}

/* The sets at the births: all others are parts of these. */
static void
find_stretches(struct search *s, om_arena *mem)
{
	const om_part *p = s->part;

	s->stretch = OM_NEWN(mem, uint64_t, p->npiece);
	for (uint32_t k = 0; k < p->npiece; k++) {
		uint64_t set = 0;
		if (k + 1 < p->npiece && p->piece[k + 1].lower == p->piece[k].lower)
			continue;
		for (uint32_t i = 0; i < s->n; i++)
			if (is_alive(&p->buf[p->item[i]], p->piece[k].lower))
				set |= UINT64_C(1) << i;
		s->stretch[s->nstretch++] = set;
	}
}

static void
search_init(struct search *s, om_arena *mem)
{
	const om_part *p = s->part;

	for (uint32_t i = 0; i < s->n; i++) {
		const om_buffer *a = &p->buf[p->item[i]];
		s->bytes[i] = a->bytes;
		s->align[i] = a->align > 1 ? a->align : 1;
		s->offset[i] = a->offset;
		for (uint32_t k = 0; k < s->n; k++)
			if (i != k && alive_together(a, &p->buf[p->item[k]]))
				s->near[i] |= UINT64_C(1) << k;
	}
	find_stretches(s, mem);
}

static uint64_t
aligned(uint64_t offset, uint64_t align)
{
	return (offset + align - 1) & ~(align - 1);
}

static uint64_t
floor_of(const struct search *s, const uint64_t *offset, uint64_t placed, uint32_t i)
{
	uint64_t floor = 0;

	for (uint64_t set = placed & s->near[i]; set; set &= set - 1) {
		const int k = __builtin_ctzll(set);
		if (offset[k] + s->bytes[k] > floor)
			floor = offset[k] + s->bytes[k];
	}
	return aligned(floor, s->align[i]);
}

/* Could everything still fit below s->best? */
static bool
is_hopeful(const struct search *s, const uint64_t *floor, uint64_t left, uint64_t last)
{
	for (uint32_t k = 0; k < s->nstretch; k++) {
		uint64_t low = UINT64_MAX, sum = 0;
		for (uint64_t set = s->stretch[k] & left; set; set &= set - 1) {
			const int i = __builtin_ctzll(set);
			sum += s->bytes[i];
			if (floor[i] < low)
				low = floor[i];
		}
		if (sum && (low > last ? low : last) + sum >= s->best)
			return false;
	}
	return true;
}

static void
keep(struct search *s, const uint64_t *offset)
{
	uint64_t height = 0;

	for (uint32_t i = 0; i < s->n; i++)
		if (offset[i] + s->bytes[i] > height)
			height = offset[i] + s->bytes[i];
	memcpy(s->offset, offset, s->n * sizeof *offset);
	s->best = height;
}

/* The next buffer at or behind (offset, index) that may come next: the lowest
 * first.  Gives the index, or s->n. */
static uint32_t
next_choice(const struct search *s, const uint64_t *floor, uint64_t left, uint64_t limit,
	uint64_t after, uint32_t index)
{
	uint32_t found = s->n;

	for (uint64_t set = left; set; set &= set - 1) {
		const uint32_t i = (uint32_t)__builtin_ctzll(set);
		if (floor[i] >= limit || floor[i] < after || (floor[i] == after && i < index))
			continue;
		if (found == s->n || floor[i] < floor[found])
			found = i;
	}
	return found;
}

/* As deep as there are buffers.  True when all below was looked at. */
static bool
descend(struct search *s, uint64_t *offset, uint64_t left, uint64_t last, uint32_t index)
{
	uint64_t floor[OM_SEARCH_MOST], limit = UINT64_MAX;

	if (left == 0) {
		keep(s, offset);
		return true;
	}
	if (s->nodes == 0)
		return false;
	s->nodes--;
	const uint64_t all = s->n == 64 ? UINT64_MAX : (UINT64_C(1) << s->n) - 1;
	for (uint64_t set = left; set; set &= set - 1) {
		const uint32_t i = (uint32_t)__builtin_ctzll(set);
		floor[i] = floor_of(s, offset, all & ~left, i);
		if (floor[i] + s->bytes[i] < limit)
			limit = floor[i] + s->bytes[i];
	}
	if (!is_hopeful(s, floor, left, last))
		return true;
	for (uint32_t i; (i = next_choice(s, floor, left, limit, last, index)) < s->n;) {
		offset[i] = floor[i];
		if (floor[i] + s->bytes[i] < s->best
		    && !descend(s, offset, left & ~(UINT64_C(1) << i), floor[i], i + 1))
			return false;
		if (s->best <= s->part->goal)
			return true;
		last = floor[i];
		index = i + 1;
	}
	return true;
}

bool
om_search(const om_part *part, uint64_t nodes, uint64_t *best)
{
	struct search s = {.part = part, .n = part->nitem, .nodes = nodes, .best = *best};
	uint64_t offset[OM_SEARCH_MOST];
	om_arena *mem = om_arena_new();

	search_init(&s, mem);
	const bool done = descend(&s, offset,
		s.n == 64 ? UINT64_MAX : (UINT64_C(1) << s.n) - 1, 0, 0);
	for (uint32_t i = 0; i < s.n; i++)
		part->buf[part->item[i]].offset = s.offset[i];
	*best = s.best;
	om_arena_free(mem);
	return done;
}
