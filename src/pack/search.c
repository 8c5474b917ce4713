/* Complete search: how its walks are put to use.
 *
 * One walk (branch_bound.c) looks for a packing that is not above a goal.  Most
 * problems that can be packed at all are packed in few nodes by one of several
 * ways to go (a rule for where to go next, an order of wishes), while another
 * way takes ages.  So there are rounds, in which every way gets a small budget:
 * one for the lowest goal, the next for goals halfway between the highest that
 * was missed and the best packing so far, and so on.  After these two, wishes are
 * blurred, so that a walk never repeats another.  Which states have failed is
 * kept between walks; where failures happened, now and then.
 *
 * It ends when the budget is spent, the lowest goal is met, or everything below
 * the best packing is proven hopeless.
 */
#include <config.h>

#include <stdlib.h>

#include "pack/search.h"

enum {
	NWAY = 8,
	FIRST_BUDGET = 400,      /* nodes for a walk, besides some for each thing */
	FINENESS = 16,           /* goals between the bound and the best, at first */
	MORE = 5,                /* budgets for goals between, at first */
	MISSES = 3,              /* goals that are given up, in a round */
};

struct way {
	om_rule rule;
	uint32_t wish;
};

struct search {
	const om_component *part;
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
		if (s->round % 4 < 3)
			om_walk_forget(s->walk);
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

/* The lowest goal, which is met more often than not. */
static void
ask_for_all(struct search *s, uint64_t budget)
{
	const uint64_t goal = s->low > s->enough ? s->low : s->enough;

	if (try_goal(s, goal, budget) == OM_HOPELESS)
		s->low = sensible(s, goal) + s->t.unit;
}

/* Goals between: each that is met sets the best, and those that are not met
 * are left to a later round.  `step` is the least that is worth a try. */
static void
ask_for_less(struct search *s, uint64_t budget, uint64_t step)
{
	uint64_t missed = s->low > s->enough ? s->low : s->enough;

	for (unsigned misses = 0; misses < MISSES && !is_over(s) && s->best > missed + step;) {
		const uint64_t goal = sensible(s, missed + (s->best - missed) / 2);
		const om_outcome outcome = try_goal(s, goal, budget);
		if (outcome == OM_PACKED)
			continue;
		if (outcome == OM_HOPELESS)
			s->low = sensible(s, goal) + s->t.unit;
		missed = goal > s->low ? goal : s->low;
		misses++;
	}
}

/* 1 1 2 1 1 2 4 1 1 2 ...: what is best where nothing is known about how long
 * a try takes (Luby, Sinclair, Zuckerman, "Optimal speedup of Las Vegas
 * algorithms", 1993). */
static uint64_t
patience(uint32_t round)
{
	uint32_t size = 1;

	while (size <= round)
		size = 2 * size + 1;
	while (size - 1 != round) {
		size /= 2;
		if (round >= size)
			round -= size;
	}
	return (size + 1) / 2;
}

static void
search(struct search *s)
{
	const uint64_t budget = FIRST_BUDGET + 3 * (uint64_t)s->t.n;

	for (; !is_over(s); s->round++) {
		const uint64_t step = (s->best - s->low) / (FINENESS * (1 + s->round));
		if (s->round % 2 == 0)
			ask_for_all(s, 2 * budget * patience(s->round / 2));
		else
			ask_for_less(s, (s->round == 1 ? MORE : 1) * budget * patience(s->round / 2), step > s->t.unit ? step : s->t.unit);
	}
}

bool
om_search(const om_component *part, const om_effort *effort, uint32_t round, uint64_t *best)
{
	static const struct way ways[NWAY] = {
		{OM_TIGHT_FAILING, 1}, {OM_FAILING, 0}, {OM_TIGHTEST, 1}, {OM_FAILING, 1},
		{OM_TIGHTEST, 0}, {OM_LOWEST, 0}, {OM_LOWEST, 3}, {OM_FAILING, 2},
	};
	struct search s = {.part = part, .best = *best, .low = part->goal, .enough = effort->enough,
		.nodes = effort->nodes, .effort = effort, .round = round};
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
