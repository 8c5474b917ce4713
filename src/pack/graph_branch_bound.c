/* All packings of a few buffers by pairs that may be the lowest.
 *
 * Of the lowest packings take one whose offsets sum up least.  No buffer of it
 * can lie lower; so, with buffers placed in the order of their offsets, each is
 * at the lowest place that its neighbours placed so far, and those with fixed
 * offsets, leave.  So it is enough to try all orders, and of these only those in
 * which offsets do not fall, buffers of one offset in the order of their
 * numbers.  Two more rules: no buffer starts above the end that one still to be
 * placed would have now (that one could lie there, and be lower); and where what
 * is left of a clique does not fit above the offset reached, there is nothing to
 * find.  After Moffitt's minimalloc (ASPLOS 2023), for graphs without time.
 *
 * It ends: every step places a buffer, and steps are counted.
 */
#include <config.h>

#include "pack/graph_packing.h"

enum { MOST = OM_PAIRS_SEARCH_MOST, ASK_CLOCK = 4096 };

struct search {
	uint32_t n;
	uint64_t bytes[MOST], align[MOST];
	uint64_t near[MOST];         /* sets of buffers */
	uint64_t clique[MOST];       /* every buffer is in one */
	uint64_t fixed;              /* set of those with fixed offsets */
	uint64_t offset[MOST];       /* of those placed */
	uint64_t kept[MOST];         /* the best so far */
	uint64_t best, goal, nodes;
	const om_effort *effort;
};

static uint64_t
aligned(uint64_t offset, uint64_t align)
{
	return (offset + align - 1) & ~(align - 1);
}

/* The lowest place beside those of `placed`. */
static uint64_t
lowest(const struct search *s, uint64_t placed, uint32_t i)
{
	uint64_t at = 0;
	const uint64_t set = placed & s->near[i];

	for (uint64_t left = set; left;) {
		const uint32_t k = (uint32_t)__builtin_ctzll(left);
		left &= left - 1;
		if (s->offset[k] < at + s->bytes[i] && at < s->offset[k] + s->bytes[k]) {
			at = aligned(s->offset[k] + s->bytes[k], s->align[i]);
			left = set;              /* it may meet others now; it only rises */
		}
	}
	return at;
}

/* Could the rest of every clique still fit below the best? */
static bool
is_hopeful(const struct search *s, const uint64_t *at, uint64_t left, uint64_t last)
{
	for (uint32_t k = 0; k < s->n; k++) {
		uint64_t low = UINT64_MAX, sum = 0;
		for (uint64_t set = s->clique[k] & left; set; set &= set - 1) {
			const int i = __builtin_ctzll(set);
			sum += s->bytes[i];
			low = at[i] < low ? at[i] : low;
		}
		if (sum && (low > last ? low : last) + sum >= s->best)
			return false;
	}
	return true;
}

static void
keep(struct search *s)
{
	uint64_t height = 0;

	for (uint32_t k = 0; k < s->n; k++)
		if (s->offset[k] + s->bytes[k] > height)
			height = s->offset[k] + s->bytes[k];
	if (height >= s->best)
		return;
	s->best = height;
	memcpy(s->kept, s->offset, s->n * sizeof *s->kept);
}

static bool
is_out(struct search *s)
{
	if (s->nodes == 0)
		return true;
	if (--s->nodes % ASK_CLOCK == 0 && om_is_late(s->effort))
		s->nodes = 0;
	return false;
}

/* The lowest buffer that may come at or behind (offset, index); or s->n. */
static uint32_t
next_choice(const struct search *s, const uint64_t *at, uint64_t left, uint64_t limit, uint64_t offset,
	uint32_t index)
{
	uint32_t choice = s->n;

	for (uint64_t set = left; set; set &= set - 1) {
		const uint32_t i = (uint32_t)__builtin_ctzll(set);
		if (at[i] >= limit || at[i] < offset || (at[i] == offset && i < index))
			continue;
		if (choice == s->n || at[i] < at[choice])
			choice = i;
	}
	return choice;
}

/* As deep as there are buffers.  False when out of nodes. */
static bool
descend(struct search *s, uint64_t left, uint64_t last, uint32_t index)
{
	const uint64_t all = s->n == 64 ? UINT64_MAX : (UINT64_C(1) << s->n) - 1;
	uint64_t at[MOST], limit = UINT64_MAX;

	if (left == 0) {
		keep(s);
		return true;
	}
	if (is_out(s))
		return false;
	for (uint64_t set = left; set; set &= set - 1) {
		const uint32_t i = (uint32_t)__builtin_ctzll(set);
		at[i] = lowest(s, all & ~left, i);
		if (at[i] + s->bytes[i] < limit)
			limit = at[i] + s->bytes[i];
	}
	if (!is_hopeful(s, at, left, last))
		return true;
	for (uint32_t i; (i = next_choice(s, at, left, limit, last, index)) < s->n;) {
		s->offset[i] = at[i];
		if (at[i] + s->bytes[i] < s->best && !descend(s, left & ~(UINT64_C(1) << i), at[i], i + 1))
			return false;
		if (s->best <= s->goal)
			return true;
		last = at[i];
		index = i + 1;
	}
	return true;
}

static void
find_cliques(struct search *s)
{
	for (uint32_t k = 0; k < s->n; k++) {
		uint64_t set = s->near[k] & ~s->fixed;
		s->clique[k] = (UINT64_C(1) << k) & ~s->fixed;
		while (set && s->clique[k]) {
			uint32_t top = (uint32_t)__builtin_ctzll(set);
			for (uint64_t i = set; i; i &= i - 1)
				if (s->bytes[__builtin_ctzll(i)] > s->bytes[top])
					top = (uint32_t)__builtin_ctzll(i);
			s->clique[k] |= UINT64_C(1) << top;
			set &= s->near[top];
		}
	}
}

static void
start(struct search *s, const om_units *u, const uint32_t *unit, uint64_t align)
{
	for (uint32_t k = 0; k < s->n; k++) {
		const om_buffer *b = &u->buf[unit[k]];
		const uint32_t whole = u->member[u->first[unit[k]]];
		s->bytes[k] = b->bytes;
		s->align[k] = b->align > align ? b->align : align;
		s->align[k] += s->align[k] == 0;
		if (b->fixed >= 0) {
			s->fixed |= UINT64_C(1) << k;
			s->offset[k] = (uint64_t)b->fixed;
		}
		for (uint32_t j = 0; j < s->n; j++) {
			const uint32_t other = u->member[u->first[unit[j]]];
			for (uint64_t i = u->start[whole]; i < u->start[whole + 1]; i++)
				if (u->near[i] == other && u->buf[unit[j]].bytes && b->bytes)
					s->near[k] |= UINT64_C(1) << j;
		}
	}
	find_cliques(s);
}

bool
om_graph_branch_bound(const om_units *u, const uint32_t *unit, uint32_t n, uint64_t align, uint64_t goal,
	const om_effort *effort, uint64_t *offset, uint64_t *best)
{
	struct search s = {.n = n, .best = *best, .goal = goal, .nodes = effort->nodes, .effort = effort};

	memcpy(s.kept, offset, n * sizeof *offset);
	start(&s, u, unit, align);
	const uint64_t all = n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
	const bool done = descend(&s, all & ~s.fixed, 0, 0);
	memcpy(offset, s.kept, n * sizeof *offset);
	*best = s.best;
	return done;
}
