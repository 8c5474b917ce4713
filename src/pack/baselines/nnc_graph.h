/* SPDX-License-Identifier: Apache-2.0 */
/* The allocation graph: which buffer passes its bytes to which.
 *
 * Nodes are buffers, a source and a sink; an edge is a range of addresses that
 * passes from one to the next.  The arena is the sum of the edges that leave the
 * source.
 */
#ifndef OM_NNC_GRAPH_H
#define OM_NNC_GRAPH_H

#include "pack/baselines/interference.h"

#define OM_NNC_NONE UINT32_MAX
enum { OM_NNC_TUPLE = 3 };

typedef struct om_nnc_edge {
	uint32_t from, to;
	uint64_t low, high;      /* equal: used up */
} om_nnc_edge;

typedef struct om_nnc_graph {
	om_interference_graph *g;
	om_arena *mem;
	uint32_t n;              /* the source is node n, the sink n + 1 */
	uint64_t *bytes;         /* by buffer, rounded up to the largest alignment */
	uint64_t *at;            /* by buffer: its lowest address */
	bool *is_in;             /* by buffer: inserted */
	uint64_t *in, *out;      /* by node: weight of its edges */
	om_nnc_edge *edge;
	size_t nedge, capedge;
	uint64_t height;
	uint32_t regions;        /* how often the arena grew */
	bool is_limited;         /* the search for tuples ended at its limit */
	bool spans;              /* a buffer may be placed over several adjacent edges */
} om_nnc_graph;

void om_nnc_graph_init(om_nnc_graph *f, om_interference_graph *g, uint64_t align, bool spans, om_arena *mem);

/* True if the bytes of the edge are free while `t` is live. */
bool om_nnc_graph_passes(const om_nnc_graph *f, const om_nnc_edge *e, uint32_t t);

/* The best edge for `t`, of at least `bytes`, among the edges from `first` on: the
 * one with the fewest idle steps before and after `t`. */
size_t om_nnc_graph_find(const om_nnc_graph *f, uint32_t t, uint64_t bytes, size_t first);
enum { OM_NNC_NO_EDGE = -1 };

/* Insert a tuple of buffers that do not interfere with each other at the low end of
 * an edge; if that is OM_NNC_NO_EDGE, where the arena grows least. */
void om_nnc_graph_insert(om_nnc_graph *f, const uint32_t *tuple, uint32_t n, size_t edge);

/* Insert all buffers. */
void om_nnc_by_size(om_nnc_graph *f);

/* At most `work` candidates and edges are looked at; 0: a default. */
void om_nnc_by_tuples(om_nnc_graph *f, uint64_t work);

#endif
