/* Which buffers may not share bytes: the interference graph, not written down.
 *
 * Neighbours are listed when they are asked for, from lifetimes in linear
 * memory, and from a list of conflicts where the order is open.
 */
#ifndef OM_INTERFERENCE_H
#define OM_INTERFERENCE_H

#include "onnxmem/baselines.h"

typedef struct om_segment_of {
	uint32_t lower, upper, buf;
} om_segment_of;

typedef struct om_interfere {
	const om_buffer *buf;
	uint32_t n;
	bool simple;                  /* one lifetime each */
	om_interval *span;            /* by buffer: from its first step to its last */
	uint32_t *degree;             /* by buffer: how many neighbours */
	uint32_t last;                /* behind the last step */
	/* Conflicts, where the order is open; else NULL.  By buffer, sorted. */
	size_t *start;                /* [n + 1] */
	uint32_t *other;
	/* Lifetimes, sorted by their start, under a tree of their latest ends. */
	om_segment_of *piece;
	uint32_t npiece, leaves;
	uint32_t *top;
	uint32_t *stamp, now;
} om_interfere;

/* With `whole`, a buffer is alive from its first step to its last, whatever is
 * between.  Empty buffers have no neighbours. */
om_interfere *om_interfere_new(const om_buffer *buf, uint32_t n, const om_interference_list *open,
	bool whole, om_arena *mem);

/* The neighbours of `k`, each once; `out` has room for all buffers. */
uint32_t om_neighbours(om_interfere *g, uint32_t k, uint32_t *out);

/* Is all of `i` over before any of `j` begins? */
bool om_interfere_before(const om_interfere *g, uint32_t i, uint32_t j);

/* What all strategies refuse: fixed offsets, and sums that no number holds when
 * every buffer is rounded up to `align`, which is the largest alignment. */
om_status om_baseline_check(om_session *s, const om_buffer *buf, uint32_t n, uint64_t *align);

/* Height, bound and status of what has been placed. */
void om_baseline_rate(const om_buffer *buf, uint32_t n, const om_interference_list *open, const char *strategy,
	om_baseline_result *r);

#endif
