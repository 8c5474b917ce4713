/* SPDX-License-Identifier: Apache-2.0 */
/* A contiguous part of an order as a problem of its own.
 *
 * Its ops are numbered from 0; its storages are those that its ops make or use.
 * Ops are grouped into units, which run consecutively: see subproblem.c.
 */
#ifndef OM_SUBPROBLEM_H
#define OM_SUBPROBLEM_H

#include "schedule/scheduler.h"
#include "onnxmem/status.h"

/* Lists of numbers: list k is item[at[k]] .. item[at[k + 1] - 1]. */
typedef struct om_lists {
	uint32_t *at, *item;
} om_lists;

/* A problem with indices in both directions. */
typedef struct om_schedule_index {
	const om_schedule_problem *q;
	om_lists made;           /* by op: storages that have a user or are live out */
	om_lists need;           /* by op: storages that it uses, without duplicates */
	om_lists user;           /* by storage: the ops that use it, without duplicates */
	om_lists before;         /* by op: predecessors, without duplicates */
	om_lists succ;         /* by op: successors */
	uint64_t start;          /* bytes live before the first op */
	uint32_t *place;         /* by op: its position in the order of the last profile */
	uint32_t *local_op, *local_storage;  /* while a subproblem is built */
} om_schedule_index;

/* OM_INVALID for a malformed problem. */
om_status om_schedule_check(om_session *s, const om_schedule_problem *q);

om_schedule_index *om_schedule_index_new(const om_schedule_problem *q, om_arena *mem);

/* Bytes live before each op of an order, [nop + 1], and the peak while each op
 * runs, [nop]. Either may be NULL. Returns the largest of the latter, and stores
 * the position of each op in `place`. */
uint64_t om_schedule_profile(const om_schedule_index *x, const uint32_t *order, uint64_t *before,
	uint64_t *during);

/* Group ops that can run consecutively without loss: `unit_of` is set to the unit
 * of each op, `order` to the ops unit by unit.  Returns the number of units. */
uint32_t om_schedule_units(const om_schedule_index *x, uint32_t *order, uint32_t *unit_of, om_arena *mem);

typedef struct om_subproblem {
	uint32_t nop, nstorage, nunit;
	uint32_t words;          /* words of a set of ops, */
	uint32_t width;          /* and with the set of ready units after it */
	uint32_t to;             /* its end in the order it was taken from */
	uint32_t *op;            /* its number in the whole problem */
	om_lists made, need, user, over, early;  /* over: pairs, made and needed */
	om_lists prev, next;     /* by op: predecessors and successors */
	om_lists before;         /* by unit: ops of other units that precede it */
	om_lists succ;         /* by unit: units that succeed it */
	uint32_t *unit;          /* [nunit + 1]: its first op; the ops of a unit are consecutive */
	uint32_t *unit_of;       /* by op */
	uint64_t *begin, *middle;
	uint64_t *bytes;
	uint32_t *producer;
	bool *live_out;          /* live after the subproblem */
	uint64_t base;           /* bytes live before its first op */
	bool has_choice;         /* an op may compute in place of one of several storages */
} om_subproblem;

/* Positions [from, to) of the order of the last profile, with `before` bytes live
 * at the start; they must not split a unit. */
om_subproblem *om_subproblem_new(const om_schedule_index *x, const uint32_t *order, const uint32_t *unit_of,
	uint32_t from, uint32_t to, uint64_t before, om_arena *mem);

/* The peak of an order of the subproblem's ops. */
uint64_t om_subproblem_peak(const om_subproblem *g, const uint32_t *order);

/* A lower bound of the peak of any order of the subproblem. */
uint64_t om_subproblem_bound(const om_subproblem *g);

/* Sets of ops. */
static inline bool
om_set_has(const uint64_t *set, uint32_t k)
{
	return set[k / 64] >> k % 64 & 1;
}

static inline void
om_set_add(uint64_t *set, uint32_t k)
{
	set[k / 64] |= UINT64_C(1) << k % 64;
}

static inline void
om_set_remove(uint64_t *set, uint32_t k)
{
	set[k / 64] &= ~(UINT64_C(1) << k % 64);
}

/* The effect of running a unit after the ops of a set, with `live_bytes` bytes live. */
typedef struct om_move {
	uint64_t step;           /* peak while it runs */
	uint64_t live_bytes;          /* bytes live after it */
} om_move;

bool om_unit_is_ready(const om_subproblem *g, const uint64_t *set, uint32_t unit);
/* A set of `width` words also has the set of ready units.  om_set_init() makes it
 * empty, om_set_run_unit() adds a unit to it, om_set_next_ready() returns the first ready
 * unit from `unit` on, or nunit.  om_set_add(), om_set_remove() and om_set_add_unit() do not
 * update the ready units. */
void om_set_init(const om_subproblem *g, uint64_t *set);
void om_set_run_unit(const om_subproblem *g, uint64_t *set, uint32_t unit);
uint32_t om_set_next_ready(const om_subproblem *g, const uint64_t *set, uint32_t unit);
om_move om_unit_move(const om_subproblem *g, uint64_t *set, uint64_t live_bytes, uint32_t unit);
void om_set_add_unit(const om_subproblem *g, uint64_t *set, uint32_t unit);

typedef enum om_search_result { OM_SCHEDULE_FOUND, OM_SCHEDULE_NOT_BELOW, OM_SCHEDULE_NODE_LIMIT } om_search_result;

/* Find an order with a peak below `upper`. `*level` is a lower bound, which the
 * call may raise; after OM_FOUND the order found is not above it, so it is optimal.
 * `*nodes` is decremented. */
om_search_result om_subproblem_exact(const om_subproblem *g, uint64_t *level, uint64_t upper, uint64_t *nodes,
	uint32_t *order);

/* The same without proof: the `width` best sets of each size are expanded. */
om_search_result om_subproblem_beam(const om_subproblem *g, uint64_t level, uint64_t upper, uint32_t width,
	uint64_t *nodes, uint32_t *order);

#endif
