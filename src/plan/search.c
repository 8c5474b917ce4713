/* Complete search: how its walks are put to use.
 *
 * One walk (search_walk.c) looks for a packing that is not above a goal.  Most
 * problems that can be packed at all are packed in few nodes by one of several
 * ways to go (a rule for where to go next, an order of wishes), while another
 * way takes ages.  So there are rounds: in each, every way gets a small budget,
 * first for the lowest goal, then for goals halfway between the lowest that may
 * still be met and the best packing so far.  The next round has larger budgets.
 * Where failures happen, and which states have failed, is kept between walks.
 *
 * It ends when the budget is spent, the lowest goal is met, or everything below
 * the best packing is proven hopeless.
 */
#include <config.h>

#include <stdlib.h>

#include "plan/search.h"

enum {
	NWAY = 8,
	FIRST_BUDGET = 400,      /* nodes for a walk, besides some for each thing */
	FINENESS = 16,           /* goals between the bound and the best, at first */
};

struct way {
	om_rule rule;
	uint32_t wish;
};

struct search {
	const om_part *part;
	om_tables t;
	om_walk *walk;
	om_arena *scratch;
	struct way way[NWAY];    /* those that did well come first */
	uint64_t low;            /* nothing below is asked for, or possible */
	uint64_t best, enough;
	uint64_t nodes;
	const om_effort *effort;
	uint32_t round;
};

static void
keep(struct search *s)
{
	uint64_t height = 0;

	for (uint32_t k = 0; k < s->t.n; k++) {
		const uint64_t offset = om_walk_offset(s->walk, k), end = offset + s->t.thing[k].raw;
		s->part->buf[s->part->item[k]].offset = offset;
		if (end > height)
			height = end;
	}
	s->best = height;
}

static void
bring_forward(struct search *s, uint32_t k)
{
	const struct way way = s->way[k];

	memmove(s->way + 1, s->way, k * sizeof way);
	s->way[0] = way;
}

static uint64_t
noise_of(const struct search *s, uint32_t way)
{
	return s->round < 2 ? 0 : s->round * 1000 + way;
}

/* Is there a packing up to `goal`?  OM_SPENT: no way found out. */
static om_outcome
try_goal(struct search *s, uint64_t goal, uint64_t budget)
{
	for (uint32_t k = 0; k < NWAY && s->nodes > 0; k++) {
		uint64_t grant = budget < s->nodes ? budget : s->nodes, left = grant;
		om_tables_wish(&s->t, s->way[k].wish, noise_of(s, k), s->scratch);
		om_arena_clear(s->scratch);
		const om_outcome outcome = om_walk_seek(s->walk, s->way[k].rule, goal, &left, s->effort->until_ms);
		s->nodes = om_is_late(s->effort) ? 0 : s->nodes - (grant - left);
		if (outcome == OM_PACKED) {
			keep(s);
			bring_forward(s, k);
		}
		if (outcome != OM_SPENT)
			return outcome;
	}
	return OM_SPENT;
}

/* The largest height that makes sense and is not above `goal`. */
static uint64_t
sensible(const struct search *s, uint64_t goal)
{
	return goal / s->t.unit * s->t.unit;
}

static bool
is_over(const struct search *s)
{
	return s->nodes == 0 || s->best <= s->low || s->best <= s->enough;
}

/* Goals from the lowest up: each that is met sets the best, each that is not
 * met within the budget is left to the next round. */
static void
one_round(struct search *s, uint64_t budget, uint64_t step)
{
	uint64_t goal = s->low > s->enough ? s->low : s->enough, missed = goal;

	while (!is_over(s)) {
		const om_outcome outcome = try_goal(s, goal, budget);
		if (outcome == OM_HOPELESS)
			s->low = sensible(s, goal) + s->t.unit;
		if (outcome != OM_PACKED)
			missed = goal;
		if (missed < s->low)
			missed = s->low;
		if (s->best <= missed || s->best - missed <= step)
			return;
		goal = sensible(s, missed + (s->best - missed) / 2);
		if (goal <= missed && missed > s->low)
			return;
	}
}

static void
search(struct search *s)
{
	uint64_t budget = FIRST_BUDGET + 4 * (uint64_t)s->t.n;
	uint64_t fineness = FINENESS;

	while (!is_over(s)) {
		uint64_t step = (s->best - s->low) / fineness;
		one_round(s, budget, step > s->t.unit ? step : s->t.unit);
		s->round++;
		budget *= 2;
		fineness *= 2;
	}
}

bool
om_search(const om_part *part, const om_effort *effort, uint64_t *best)
{
	static const struct way ways[NWAY] = {
		{OM_FEWEST, 0}, {OM_TIGHTEST, 1}, {OM_FAILING, 1}, {OM_LOWEST, 0},
		{OM_FAILING, 2}, {OM_FEWEST, 1}, {OM_TIGHTEST, 3}, {OM_LOWEST, 3},
	};
	struct search s = {.part = part, .best = *best, .low = part->goal, .enough = effort->enough,
		.nodes = effort->nodes, .effort = effort};
	om_arena *mem = om_arena_new();

	const bool is_known = om_tables_fill(&s.t, part, mem);
	if (is_known) {
		s.scratch = om_arena_new();
		s.walk = om_walk_new(&s.t, s.nodes, mem);
		memcpy(s.way, ways, sizeof ways);
		search(&s);
		*best = s.best;
		om_arena_free(s.scratch);
	}
	om_arena_free(mem);
	return is_known && s.low >= s.best;
}
