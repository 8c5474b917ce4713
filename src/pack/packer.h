/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the packer. */
#ifndef OM_PACKER_H
#define OM_PACKER_H

#include "onnxmem/pack.h"
#include "pack/search_limits.h"

/* One lifetime of one buffer: interval number `live`. */
typedef struct om_lifetime {
	uint32_t lower, upper, buf, live;
} om_lifetime;

/* The end of the bytes that are in use in one of its intervals. */
static inline uint64_t
om_interval_end(const om_buffer *b, const om_interval *live)
{
	return live->to ? live->to : b->bytes;
}

/* Is there an interval in which some of its bytes are not in use? */
static inline bool
om_is_partially_live(const om_buffer *b)
{
	for (uint32_t k = 0; k < b->nlive; k++)
		if (b->live[k].from || om_interval_end(b, &b->live[k]) != b->bytes)
			return true;
	return false;
}

/* The step after its last use. */
static inline uint32_t
om_last_upper(const om_buffer *b)
{
	uint32_t upper = 0;

	for (uint32_t k = 0; k < b->nlive; k++)
		if (b->live[k].upper > upper)
			upper = b->live[k].upper;
	return upper;
}

/* A set of buffers that is packed on its own: none of them is live at the same
 * time as a buffer outside of the set. */
typedef struct om_component {
	om_buffer *buf;          /* of the whole problem */
	const om_lifetime *lifetime;   /* sorted by lower */
	uint32_t nlifetime;
	uint32_t *item;          /* the buffers of the component */
	uint32_t nitem;
	uint64_t goal;           /* a lower height has no use */
	uint32_t *head, *rank;   /* workspace: a number per buffer of the problem */
} om_component;

/* ---- greedy.c: place one buffer after the other in the best free gap. ---- */

typedef enum om_fit { OM_BEST_FIT, OM_FIRST_FIT } om_fit;

typedef struct om_span {
	uint64_t offset, end;
} om_span;

typedef struct om_greedy {
	const om_component *component;
	uint64_t height;         /* of the placed buffers */
	uint32_t leaves;
	uint32_t *latest_end;    /* tree over buckets of lifetimes: the latest end of a placed one */
	uint32_t *until;         /* by lifetime: its end; 0 while it is not placed */
	om_span *at;             /* by lifetime: the bytes that it occupies */
	uint32_t *next;          /* by lifetime: the next one of its buffer, or UINT32_MAX */
	bool is_simple;          /* every buffer is one rectangle */
	om_span *span, *spare;
	uint32_t capacity;       /* of `span` and of `spare` */
	uint64_t highest;        /* offset of a span */
	om_arena *mem;
	uint32_t *count;
	uint64_t work;           /* neighbors visited, in all runs */
} om_greedy;

void om_greedy_init(om_greedy *g, const om_component *component, om_arena *mem);
/* Place the buffers with fixed offsets, then `order`; returns the height.  Writes
 * om_buffer.offset. */
uint64_t om_greedy_run(om_greedy *g, const uint32_t *order, uint32_t n, om_fit fit);

/* Single operations: insert all buffers at their current om_buffer.offset, insert
 * one of them there, remove one, place one in the best gap. */
void om_greedy_load(om_greedy *g);
void om_greedy_insert(om_greedy *g, uint32_t b);
void om_greedy_remove(om_greedy *g, uint32_t b);
void om_greedy_place(om_greedy *g, uint32_t b, om_fit fit);
/* The number of lifetimes that start before `step`. */
uint32_t om_lifetimes_before(const om_component *p, uint32_t step);

/* ---- skyline.c: fill the lowest line of the skyline first. ---- */

typedef struct om_skyline om_skyline;

/* True if every buffer is one rectangle and none has a fixed offset. */
bool om_skyline_supports(const om_component *component);
om_skyline *om_skyline_new(const om_component *component, om_arena *mem);
/* Where several buffers fit, the first in the order is placed; returns the
 * height.  Writes om_buffer.offset. */
uint64_t om_skyline_run(om_skyline *s, const uint32_t *order, uint32_t n);

/* ---- large_neighborhood.c: repack the buffers around those above the goal. ---- */

/* The offsets are a valid packing; returns its height after the improvement,
 * which may be none. */
uint64_t om_large_neighborhood(om_greedy *g, uint64_t work);

/* ---- hill_climb.c: local search over orders. ---- */

/* The offsets are a packing of that height; as om_large_neighborhood(). */
uint64_t om_hill_climb(om_greedy *g, const om_search_limits *limits, uint64_t work, uint64_t height);

/* ---- priority_orders.c: the orders in which buffers are placed. ---- */

enum { OM_NORDER = 12, OM_BY_SIZE = 1 };

/* Order number `k` of the component's buffers without fixed offset. */
void om_order_fill(const om_component *component, uint32_t k, uint32_t *order);
/* How the packing of an order was refined. */
typedef enum om_refinement { OM_REFINE_NONE, OM_REFINE_REPAIR, OM_REFINE_LNS } om_refinement;
const char *om_order_name(uint32_t k, bool skyline, om_refinement refinement);

/* ---- search.c: complete search. ---- */

/* Search for a packing lower than `best`, down to component->goal or to the
 * target height of the limits; true when no lower height is possible or useful.
 * `best` and the offsets are updated.  False at once for components with
 * partially live buffers, and for very large ones.  `iteration`: where the
 * sequence of attempts starts. */
bool om_complete_search(const om_component *component, const om_search_limits *limits, uint32_t iteration,
	uint64_t *best);

/* ---- portfolio.c: which packers run, and for how long. ---- */

typedef struct om_component_result {
	uint64_t height;
	bool is_proven;          /* the height is minimal, although above the goal */
	const char *strategy;
} om_component_result;

void om_component_pack(const om_component *component, const om_search_limits *limits, om_arena *mem,
	om_component_result *best);

#endif
