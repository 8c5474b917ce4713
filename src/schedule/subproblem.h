/* A stretch of an order as a problem of its own.
 *
 * Ops are numbered from 0 in the stretch; storages are those that its ops make
 * or need.  Ops are grouped into units, which run in one go: see subproblem.c.
 */
#ifndef OM_SUBPROBLEM_H
#define OM_SUBPROBLEM_H

#include "onnxmem/schedule.h"
#include "onnxmem/status.h"

/* Lists of numbers: those of k are item[at[k]] .. item[at[k + 1] - 1]. */
typedef struct om_lists {
	uint32_t *at, *item;
} om_lists;

/* What a problem says the other way round. */
typedef struct om_order_index {
	const om_order_problem *q;
	om_lists made;           /* by op: storages that somebody needs */
	om_lists need;           /* by op: storages, each once */
	om_lists user;           /* by storage: ops, each once */
	om_lists before;         /* by op: ops before it, each once */
	om_lists behind;         /* by op: ops behind it */
	uint64_t start;          /* bytes alive before the first op */
	uint32_t *place;         /* by op: in the order that was walked last */
	uint32_t *local_op, *local_storage;  /* while a segment is made */
} om_order_index;

/* Refuses with OM_INVALID what is no problem. */
om_status om_order_check(om_session *s, const om_order_problem *q);

om_order_index *om_order_index_new(const om_order_problem *q, om_arena *mem);

/* Bytes alive before each op of an order, [nop + 1], and the most alive while
 * one runs, [nop].  Either may be NULL.  Returns the largest of the latter, and
 * notes where in this order each op is. */
uint64_t om_order_profile(const om_order_index *x, const uint32_t *order, uint64_t *before,
	uint64_t *during);

/* Group ops that lose nothing by running in one go: `unit_of` gives the number of
 * each op's unit, `order` the ops unit by unit.  Returns the number of units. */
uint32_t om_order_units(const om_order_index *x, uint32_t *order, uint32_t *unit_of, om_arena *mem);

typedef struct om_subproblem {
	uint32_t nop, nstorage, nunit;
	uint32_t words;          /* of a set of ops, */
	uint32_t width;          /* and with those of the set of units that can run next, behind it */
	uint32_t to;             /* where it ends in the order it was taken from */
	uint32_t *op;            /* its number in the problem */
	om_lists made, need, user, over, early;  /* over: pairs, made and needed */
	om_lists prev, next;     /* by op: those before and behind it */
	om_lists before;         /* by unit: ops of other units that come before it */
	om_lists behind;         /* by unit: units that come behind it */
	uint32_t *unit;          /* [nunit + 1]: its first op; those of a unit follow each other */
	uint32_t *unit_of;       /* by op */
	uint64_t *begin, *middle;
	uint64_t *bytes;
	uint32_t *maker;
	bool *live_out;             /* needed behind the segment, too */
	uint64_t base;           /* bytes alive before its first op */
	bool has_choice;         /* an op may compute over one or another storage */
} om_subproblem;

/* Positions [from, to) of the order that was walked last, where `before` bytes
 * are alive at the start; units must not be cut. */
om_subproblem *om_subproblem_new(const om_order_index *x, const uint32_t *order, const uint32_t *unit_of,
	uint32_t from, uint32_t to, uint64_t before, om_arena *mem);

/* The peak of an order of the segment's ops. */
uint64_t om_subproblem_peak(const om_subproblem *g, const uint32_t *order);

/* No order of the segment has a lower peak. */
uint64_t om_subproblem_bound(const om_subproblem *g);

/* Sets of ops. */
static inline bool
om_has(const uint64_t *set, uint32_t k)
{
	return set[k / 64] >> k % 64 & 1;
}

static inline void
om_put(uint64_t *set, uint32_t k)
{
	set[k / 64] |= UINT64_C(1) << k % 64;
}

static inline void
om_drop(uint64_t *set, uint32_t k)
{
	set[k / 64] &= ~(UINT64_C(1) << k % 64);
}

/* What it takes to run a unit when `set` has run and `alive` bytes are alive. */
typedef struct om_move {
	uint64_t step;           /* most bytes alive meanwhile */
	uint64_t alive;          /* bytes alive behind it */
} om_move;

bool om_unit_is_ready(const om_subproblem *g, const uint64_t *set, uint32_t unit);
/* A set of `width` words knows which units are ready: it starts empty, units are run in it, and the
 * next one from `unit` on that is ready is asked for; nunit: none is.  What is only put into it or
 * dropped is not noted there. */
void om_set_start(const om_subproblem *g, uint64_t *set);
void om_unit_run(const om_subproblem *g, uint64_t *set, uint32_t unit);
uint32_t om_next_ready(const om_subproblem *g, const uint64_t *set, uint32_t unit);
om_move om_unit_move(const om_subproblem *g, uint64_t *set, uint64_t alive, uint32_t unit);
void om_unit_put(const om_subproblem *g, uint64_t *set, uint32_t unit);

typedef enum om_found { OM_FOUND, OM_NONE_BELOW, OM_GAVE_UP } om_found;

/* An order with a peak below `upper`.  `*level` is a bound that is known before,
 * and known afterwards; where OM_FOUND, no order is below it, and that which
 * was found is not above it.  `*nodes` is used up. */
om_found om_subproblem_exact(const om_subproblem *g, uint64_t *level, uint64_t upper, uint64_t *nodes,
	uint32_t *order);

/* The same without proof: the `width` best sets of each size are followed. */
om_found om_subproblem_beam(const om_subproblem *g, uint64_t level, uint64_t upper, uint32_t width,
	uint64_t *nodes, uint32_t *order);

#endif
