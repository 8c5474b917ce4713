/* SPDX-License-Identifier: Apache-2.0 */
/* Branch and bound for a few buffers by pairs: all packings that may be minimal.
 *
 * Of the packings of minimal height take one with the least sum of offsets.  No
 * buffer of it can be placed lower; so, if buffers are placed in the order of their
 * offsets, each is at the lowest offset that its neighbors placed before it, and
 * those with fixed offsets, leave free.  So it is enough to try all orders in which
 * offsets do not decrease, and buffers of equal offset come in the order of their
 * numbers.  Two more rules prune: no buffer starts above the end that a buffer not
 * yet placed would have now (that one could be placed there, and be lower); and a
 * branch ends when the remaining members of a clique do not fit between the current
 * offset and the best height.  After Moffitt's minimalloc (ASPLOS 2023), for graphs
 * without time.
 *
 * It terminates: every step places a buffer, and steps are counted.
 */
#include <config.h>

#include "pack/graph_packing.h"

enum { MAX_UNITS = OM_GRAPH_SEARCH_MAX, CLOCK_PERIOD = 4096 };

struct graph_search {
	uint32_t n;
	uint64_t bytes[MAX_UNITS], align[MAX_UNITS];
	uint64_t adj[MAX_UNITS];         /* by buffer: the set of its neighbors */
	uint64_t clique[MAX_UNITS];       /* by buffer: the set of a clique that contains it */
	uint64_t fixed;              /* the set of buffers with fixed offsets */
	uint64_t offset[MAX_UNITS];       /* of the placed buffers */
	uint64_t best_offset[MAX_UNITS];         /* of the best packing so far */
	uint64_t best, goal, nodes;
	const om_search_limits *limits;
};

static uint64_t
align_up(uint64_t offset, uint64_t align)
{
	return (offset + align - 1) & ~(align - 1);
}

/* The lowest offset that the neighbors in `placed` leave free. */
static uint64_t
lowest_offset(const struct graph_search *s, uint64_t placed, uint32_t i)
{
	uint64_t at = 0;
	const uint64_t set = placed & s->adj[i];

	for (uint64_t unplaced = set; unplaced;) {
		const uint32_t k = (uint32_t)__builtin_ctzll(unplaced);
		unplaced &= unplaced - 1;
		if (s->offset[k] < at + s->bytes[i] && at < s->offset[k] + s->bytes[k]) {
			at = align_up(s->offset[k] + s->bytes[k], s->align[i]);
			unplaced = set;              /* check all again; `at` only increases */
		}
	}
	return at;
}

/* Can the rest of every clique still fit below the best height? */
static bool
can_improve(const struct graph_search *s, const uint64_t *at, uint64_t unplaced, uint64_t last)
{
	for (uint32_t k = 0; k < s->n; k++) {
		uint64_t low = UINT64_MAX, sum = 0;
		for (uint64_t set = s->clique[k] & unplaced; set; set &= set - 1) {
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
keep_best(struct graph_search *s)
{
	uint64_t height = 0;

	for (uint32_t k = 0; k < s->n; k++)
		if (s->offset[k] + s->bytes[k] > height)
			height = s->offset[k] + s->bytes[k];
	if (height >= s->best)
		return;
	s->best = height;
	memcpy(s->best_offset, s->offset, s->n * sizeof *s->best_offset);
}

static bool
is_out_of_nodes(struct graph_search *s)
{
	if (s->nodes == 0)
		return true;
	if (--s->nodes % CLOCK_PERIOD == 0 && om_is_past_deadline(s->limits))
		s->nodes = 0;
	return false;
}

/* The lowest buffer at or after (offset, index) in the order of offsets; s->n if
 * none. */
static uint32_t
next_candidate(const struct graph_search *s, const uint64_t *at, uint64_t unplaced, uint64_t limit,
	uint64_t offset,
	uint32_t index)
{
	uint32_t choice = s->n;

	for (uint64_t set = unplaced; set; set &= set - 1) {
		const uint32_t i = (uint32_t)__builtin_ctzll(set);
		if (at[i] >= limit || at[i] < offset || (at[i] == offset && i < index))
			continue;
		if (choice == s->n || at[i] < at[choice])
			choice = i;
	}
	return choice;
}

/* Recursion is as deep as there are buffers.  False when out of nodes. */
static bool
search_orders(struct graph_search *s, uint64_t unplaced, uint64_t last, uint32_t index)
{
	const uint64_t all = s->n == 64 ? UINT64_MAX : (UINT64_C(1) << s->n) - 1;
	uint64_t at[MAX_UNITS], limit = UINT64_MAX;

	if (unplaced == 0) {
		keep_best(s);
		return true;
	}
	if (is_out_of_nodes(s))
		return false;
	for (uint64_t set = unplaced; set; set &= set - 1) {
		const uint32_t i = (uint32_t)__builtin_ctzll(set);
		at[i] = lowest_offset(s, all & ~unplaced, i);
		if (at[i] + s->bytes[i] < limit)
			limit = at[i] + s->bytes[i];
	}
	if (!can_improve(s, at, unplaced, last))
		return true;
	for (uint32_t i; (i = next_candidate(s, at, unplaced, limit, last, index)) < s->n;) {
		s->offset[i] = at[i];
		if (at[i] + s->bytes[i] < s->best && !search_orders(s, unplaced & ~(UINT64_C(1) << i), at[i], i + 1))
			return false;
		if (s->best <= s->goal)
			return true;
		last = at[i];
		index = i + 1;
	}
	return true;
}

static void
find_cliques(struct graph_search *s)
{
	for (uint32_t k = 0; k < s->n; k++) {
		uint64_t set = s->adj[k] & ~s->fixed;
		s->clique[k] = (UINT64_C(1) << k) & ~s->fixed;
		while (set && s->clique[k]) {
			uint32_t top = (uint32_t)__builtin_ctzll(set);
			for (uint64_t i = set; i; i &= i - 1)
				if (s->bytes[__builtin_ctzll(i)] > s->bytes[top])
					top = (uint32_t)__builtin_ctzll(i);
			s->clique[k] |= UINT64_C(1) << top;
			set &= s->adj[top];
		}
	}
}

static void
init_search(struct graph_search *s, const om_units *u, const uint32_t *unit, uint64_t align)
{
	for (uint32_t k = 0; k < s->n; k++) {
		const om_buffer *b = &u->buf[unit[k]];
		const uint32_t buffer = u->member[u->first[unit[k]]];
		s->bytes[k] = b->bytes;
		s->align[k] = b->align > align ? b->align : align;
		s->align[k] += s->align[k] == 0;
		if (b->fixed >= 0 || b->bytes == 0) {  /* an empty one overlaps no other, and ends where it starts */
			s->fixed |= UINT64_C(1) << k;
			s->offset[k] = b->fixed > 0 ? (uint64_t)b->fixed : 0;
		}
		for (uint32_t j = 0; j < s->n; j++) {
			const uint32_t other = u->member[u->first[unit[j]]];
			for (uint64_t i = u->adj_start[buffer]; i < u->adj_start[buffer + 1]; i++)
				if (u->adj[i] == other && u->buf[unit[j]].bytes && b->bytes)
					s->adj[k] |= UINT64_C(1) << j;
		}
	}
	find_cliques(s);
}

bool
om_graph_branch_bound(const om_units *u, const uint32_t *unit, uint32_t n, uint64_t align, uint64_t goal,
	const om_search_limits *limits, uint64_t *offset, uint64_t *best)
{
	struct graph_search s = {.n = n, .best = *best, .goal = goal, .nodes = limits->nodes, .limits = limits};

	memcpy(s.best_offset, offset, n * sizeof *offset);
	init_search(&s, u, unit, align);
	const uint64_t all = n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
	const bool done = search_orders(&s, all & ~s.fixed, 0, 0);
	memcpy(offset, s.best_offset, n * sizeof *offset);
	*best = s.best;
	return done;
}
