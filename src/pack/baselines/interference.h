/* SPDX-License-Identifier: Apache-2.0 */
/* The interference graph: which buffers may not share bytes.  It is not stored.
 *
 * Neighbors are computed on request, from lifetimes in linear memory, and from an
 * interference list if the plan is for any order.
 */
#ifndef OM_INTERFERENCE_H
#define OM_INTERFERENCE_H

#include "pack/baselines/interference_list.h"
#include "pack/baselines/baselines.h"

/* The lifetime of a buffer. */
typedef struct om_buffer_lifetime {
	uint32_t lower, upper, buf;
} om_buffer_lifetime;

typedef struct om_interference_graph {
	const om_buffer *buf;
	uint32_t n;
	bool simple;                  /* one lifetime each */
	om_interval *span;            /* by buffer: from its first step to its last */
	uint32_t *degree;             /* by buffer: the number of neighbors */
	uint32_t last;                /* the step after the last one */
	/* The interference list of plans for any order, else NULL. By buffer, sorted. */
	size_t *start;                /* [n + 1] */
	uint32_t *other;
	/* Lifetimes, sorted by their start, under a tree of their latest ends. */
	om_buffer_lifetime *lifetime;
	uint32_t nlifetime, leaves;
	uint32_t *latest_end;
	uint32_t *stamp, now;
} om_interference_graph;

/* With `whole`, a buffer counts as live from its first step to its last.  Empty
 * buffers have no neighbors. */
om_interference_graph *om_interference_graph_new(const om_buffer *buf, uint32_t n,
	const om_interference_list *interference,
	bool whole, om_arena *mem);

/* The neighbors of `k`, without duplicates; `out` has space for all buffers. */
uint32_t om_interference_neighbors(om_interference_graph *g, uint32_t k, uint32_t *out);

/* Does all of `i` end before any of `j` begins? */
bool om_always_before(const om_interference_graph *g, uint32_t i, uint32_t j);

/* Refuses what no strategy supports: fixed offsets, and sizes whose sum overflows
 * when every buffer is rounded up to `align`, which is set to the largest
 * alignment. */
om_status om_baseline_check(om_session *s, const om_buffer *buf, uint32_t n, uint64_t *align);

/* Height, bound and status of the placed buffers. */
void om_baseline_evaluate(const om_buffer *buf, uint32_t n, const om_interference_list *interference,
	const char *strategy,
	om_baseline_result *r);

#endif
