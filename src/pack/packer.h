/* What the parts of the packer share. */
#ifndef OM_PACKER_H
#define OM_PACKER_H

#include "onnxmem/pack.h"
#include "pack/search_limits.h"

/* One lifetime of one buffer: interval number `live`. */
typedef struct om_component_part {
	uint32_t lower, upper, buf, live;
} om_component_part;

/* The end of the bytes that are in use in one of its intervals. */
static inline uint64_t
om_live_to(const om_buffer *b, const om_interval *live)
{
	return live->to ? live->to : b->bytes;
}

/* Is there an interval in which some of its bytes are not in use? */
static inline bool
om_is_shaped(const om_buffer *b)
{
	for (uint32_t k = 0; k < b->nlive; k++)
		if (b->live[k].from || om_live_to(b, &b->live[k]) != b->bytes)
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

/* Buffers that have to be packed together: none of them is alive with one
 * outside. */
typedef struct om_component {
	om_buffer *buf;          /* of the whole problem */
	const om_component_part *piece;   /* sorted by lower */
	uint32_t npiece;
	uint32_t *item;          /* the buffers of the part */
	uint32_t nitem;
	uint64_t goal;           /* no need to get below */
	uint32_t *head, *rank;   /* room for a number per buffer of the problem */
} om_component;

/* ---- greedy.c: one buffer after the other, each at the best place left. ---- */

typedef enum om_fit { OM_BEST_FIT, OM_FIRST_FIT } om_fit;

typedef struct om_span {
	uint64_t offset, end;
} om_span;

typedef struct om_greedy {
	const om_component *part;
	uint64_t height;         /* of what is placed */
	uint32_t leaves;
	uint32_t *top;           /* tree over buckets of pieces: latest end of one placed */
	uint32_t *until;         /* by piece: its end; 0 while it has no place */
	om_span *at;             /* by piece: its place */
	uint32_t *next;          /* by piece: the next one of its buffer, or UINT32_MAX */
	bool is_simple;          /* every buffer is one rectangle */
	om_span *span, *spare;
	uint32_t room;           /* for spans */
	uint64_t highest;        /* offset of a span */
	om_arena *mem;
	uint32_t *count;
	uint64_t work;           /* neighbours looked at, in all runs */
} om_greedy;

void om_greedy_init(om_greedy *g, const om_component *part, om_arena *mem);
/* Place the buffers with fixed offsets, then `order`; gives the height.  Writes
 * om_buffer.offset. */
uint64_t om_greedy_run(om_greedy *g, const uint32_t *order, uint32_t n, om_fit fit);

/* One by one: all where om_buffer.offset says, one of them there, one nowhere,
 * one at the best place that is left. */
void om_greedy_load(om_greedy *g);
void om_greedy_put(om_greedy *g, uint32_t b);
void om_greedy_remove(om_greedy *g, uint32_t b);
void om_greedy_place(om_greedy *g, uint32_t b, om_fit fit);
/* Pieces that start before `step`. */
uint32_t om_segments_before(const om_component *p, uint32_t step);

/* ---- skyline.c: the lowest place first. ---- */

typedef struct om_skyline om_skyline;

/* Only for buffers that are one rectangle each, none fixed. */
bool om_skyline_serves(const om_component *part);
om_skyline *om_skyline_new(const om_component *part, om_arena *mem);
/* Where several buffers fit, the first in the order is put; gives the height.
 * Writes om_buffer.offset. */
uint64_t om_skyline_run(om_skyline *s, const uint32_t *order, uint32_t n);

/* ---- large_neighbourhood.c: other places for what sticks out, and for what is near. ---- */

/* The offsets are a packing; gives the height of the better one that it finds,
 * or of the same one. */
uint64_t om_large_neighbourhood(om_greedy *g, uint64_t work);

/* ---- hill_climb.c: small changes of an order. ---- */

/* The offsets are a packing of that height; as om_large_neighbourhood(). */
uint64_t om_hill_climb(om_greedy *g, const om_effort *effort, uint64_t work, uint64_t height);

/* ---- priority_orders.c: in which order. ---- */

enum { OM_NORDER = 12, OM_BY_SIZE = 1 };

/* Order number `k` of the part's buffers without fixed offset. */
void om_order_fill(const om_component *part, uint32_t k, uint32_t *order);
typedef enum om_care { OM_PLAIN, OM_REPAIRED, OM_MENDED } om_care;
const char *om_order_name(uint32_t k, bool skyline, om_care care);

/* ---- search.c: all packings that matter. ---- */

/* Look for a packing below `best`, down to part->goal or what the effort says is
 * enough; true when nothing lower is possible or asked for by the goal.  `best`
 * and the offsets are updated.  False at once for parts with shaped buffers, and
 * for very large ones.  Another `round` searches elsewhere first. */
bool om_search(const om_component *part, const om_effort *effort, uint32_t round, uint64_t *best);

/* ---- portfolio.c: what is tried, and how long. ---- */

typedef struct om_best {
	uint64_t height;
	bool is_proven;          /* this part cannot be lower, though above the goal */
	const char *strategy;
} om_best;

void om_solve(const om_component *part, const om_effort *effort, om_arena *mem, om_best *best);

#endif
