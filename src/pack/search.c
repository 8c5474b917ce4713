/* SPDX-License-Identifier: Apache-2.0 */
/* Complete search: iterations of branch and bound.
 *
 * One run (branch_bound.c) searches for a packing that is not above a goal.  Most
 * problems that can be packed at all are packed in few nodes by one of several
 * configurations (a branching rule and a branching order), while other
 * configurations take very long.  So there are iterations, in which every
 * configuration gets a small budget: in one for the lowest goal, in the next for
 * goals halfway between the highest that was missed and the best packing so far,
 * and so on.  After these two, priorities are randomized, so that no run repeats
 * another.  The failed states are kept between runs; the failure counts are reset
 * in most of them.
 *
 * It terminates when the budget is used up, the lowest goal is met, or everything
 * below the best packing is proven infeasible.
 */
#include <config.h>

#include <stdlib.h>

#include "pack/search.h"
#include "base/arena_internal.h"

enum {
	NCONFIG = 8,
	FIRST_BUDGET = 400,      /* nodes for a run, besides some for each item */
	GOAL_FRACTION = 16,           /* goals between the bound and the best, at first */
	FIRST_FACTOR = 5,                /* budgets for goals between, at first */
	MAX_MISSES = 3,              /* missed goals before an iteration ends */
};

struct config {
	om_branch_rule rule;
	uint32_t priority;
};

struct complete_search {
	const om_component *component;
	om_search_tables t;
	om_branch_bound *tree;
	om_arena *scratch;
	struct config config[NCONFIG];    /* those that found a packing come first */
	uint64_t low;            /* no height below is useful, or possible */
	uint64_t best, target;
	uint64_t nodes;
	const om_search_limits *limits;
	uint32_t iteration;
};

static void
keep_best(struct complete_search *s)
{
	uint64_t height = 0;

	for (uint32_t k = 0; k < s->t.n; k++) {
		const uint64_t offset = om_branch_bound_offset(s->tree, k), end = offset + s->t.item[k].raw;
		s->component->buf[s->component->item[k]].offset = offset;
		if (end > height)
			height = end;
	}
	s->best = height;
}

static void
move_to_front(struct complete_search *s, uint32_t k)
{
	const struct config config = s->config[k];

	memmove(s->config + 1, s->config, k * sizeof config);
	s->config[0] = config;
}

static uint64_t
noise_seed(const struct complete_search *s, uint32_t config)
{
	return s->iteration < 2 ? 0 : s->iteration * 1000 + config;
}

/* Is there a packing up to `goal`? OM_SEARCH_LIMIT: no configuration decided it. */
static om_search_outcome
try_goal(struct complete_search *s, uint64_t goal, uint64_t budget)
{
	for (uint32_t k = 0; k < NCONFIG && s->nodes > 0; k++) {
		uint64_t granted = budget < s->nodes ? budget : s->nodes, left = granted;
		om_search_tables_prioritize(&s->t, s->config[k].priority, noise_seed(s, k), s->scratch);
		om_arena_clear(s->scratch);
		if (s->iteration % 4 < 3)
			om_branch_bound_reset_failures(s->tree);
		const om_search_outcome outcome = om_branch_bound_run(s->tree, s->config[k].rule, goal, &left,
			s->limits->deadline_ms);
		s->nodes = om_is_past_deadline(s->limits) ? 0 : s->nodes - (granted - left);
		if (outcome == OM_SEARCH_FOUND) {
			keep_best(s);
			move_to_front(s, k);
		}
		if (outcome != OM_SEARCH_LIMIT)
			return outcome;
	}
	return OM_SEARCH_LIMIT;
}

/* The largest multiple of the granule that is not above `goal`. */
static uint64_t
round_to_granule(const struct complete_search *s, uint64_t goal)
{
	return goal / s->t.granule * s->t.granule;
}

static bool
is_finished(const struct complete_search *s)
{
	return s->nodes == 0 || s->best <= s->low || s->best <= s->target;
}

/* Try the lowest goal, which is met in most problems. */
static void
try_lowest_goal(struct complete_search *s, uint64_t budget)
{
	const uint64_t goal = s->low > s->target ? s->low : s->target;

	if (try_goal(s, goal, budget) == OM_SEARCH_INFEASIBLE)
		s->low = round_to_granule(s, goal) + s->t.granule;
}

/* Try goals between: one that is met becomes the best height, one that is missed is
 * left to a later iteration.  `step` is the least improvement worth an attempt. */
static void
try_goals_between(struct complete_search *s, uint64_t budget, uint64_t step)
{
	uint64_t missed = s->low > s->target ? s->low : s->target;

	for (unsigned misses = 0; misses < MAX_MISSES && !is_finished(s) && s->best > missed + step;) {
		const uint64_t goal = round_to_granule(s, missed + (s->best - missed) / 2);
		const om_search_outcome outcome = try_goal(s, goal, budget);
		if (outcome == OM_SEARCH_FOUND)
			continue;
		if (outcome == OM_SEARCH_INFEASIBLE)
			s->low = round_to_granule(s, goal) + s->t.granule;
		missed = goal > s->low ? goal : s->low;
		misses++;
	}
}

/* 1 1 2 1 1 2 4 1 1 2 ...: the optimal sequence of budgets if the distribution of
 * run times is unknown (Luby, Sinclair, Zuckerman, "Optimal speedup of Las Vegas
 * algorithms", 1993). */
static uint64_t
luby(uint32_t iteration)
{
	uint32_t size = 1;

	while (size <= iteration)
		size = 2 * size + 1;
	while (size - 1 != iteration) {
		size /= 2;
		if (iteration >= size)
			iteration -= size;
	}
	return (size + 1) / 2;
}

static void
run_iterations(struct complete_search *s)
{
	const uint64_t budget = FIRST_BUDGET + 3 * (uint64_t)s->t.n;

	for (; !is_finished(s); s->iteration++) {
		const uint64_t step = (s->best - s->low) / (GOAL_FRACTION * (1 + s->iteration));
		if (s->iteration % 2 == 0)
			try_lowest_goal(s, 2 * budget * luby(s->iteration / 2));
		else
			try_goals_between(s, (s->iteration == 1 ? FIRST_FACTOR : 1) * budget * luby(s->iteration / 2),
				step > s->t.granule ? step : s->t.granule);
	}
}

bool
om_complete_search(const om_component *component, const om_search_limits *limits, uint32_t iteration,
	uint64_t *best)
{
	static const struct config configs[NCONFIG] = {
		{OM_BRANCH_TIGHT_FAILING, 1}, {OM_BRANCH_FAILING, 0}, {OM_BRANCH_TIGHTEST, 1}, {OM_BRANCH_FAILING, 1},
		{OM_BRANCH_TIGHTEST, 0}, {OM_BRANCH_LOWEST, 0}, {OM_BRANCH_LOWEST, 3}, {OM_BRANCH_FAILING, 2},
	};
	struct complete_search s = {.component = component, .best = *best, .low = component->goal,
		.target = limits->target,
		.nodes = limits->nodes, .limits = limits, .iteration = iteration};
	om_arena *mem = om_arena_new();

	const bool is_supported = om_search_tables_init(&s.t, component, mem);
	if (is_supported) {
		s.scratch = om_arena_new();
		s.tree = om_branch_bound_new(&s.t, s.nodes, mem);
		memcpy(s.config, configs, sizeof configs);
		run_iterations(&s);
		*best = s.best;
		om_arena_free(s.scratch);
	}
	om_arena_free(mem);
	return is_supported && s.low >= s.best;
}
