/* The allocation graph: who hands his bytes on to whom.
 *
 * Nodes are buffers, a source and a sink; an edge is a range of addresses that
 * passes from one to the next.  The arena is what leaves the source.
 */
#ifndef OM_NNC_GRAPH_H
#define OM_NNC_GRAPH_H

#include "pack/baselines/interference.h"

enum { OM_NNC_NONE = UINT32_MAX, OM_NNC_TUPLE = 3 };

typedef struct om_nnc_edge {
	uint32_t from, to;
	uint64_t low, high;      /* equal: used up */
} om_nnc_edge;

typedef struct om_nnc_graph {
	om_interfere *g;
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
	bool spans;              /* a buffer may lie over several edges, side by side */
} om_nnc_graph;

void om_nnc_graph_init(om_nnc_graph *f, om_interfere *g, uint64_t align, bool spans, om_arena *mem);

/* Do these bytes pass by while `t` is not yet, or no longer, alive? */
bool om_nnc_graph_passes(const om_nnc_graph *f, const om_nnc_edge *e, uint32_t t);

/* The best edge for `t`, of at least `bytes`, among those from number `first`
 * on: fewest steps between `t` and what is before and behind it. */
size_t om_nnc_graph_find(const om_nnc_graph *f, uint32_t t, uint64_t bytes, size_t first);
enum { OM_NNC_NO_EDGE = -1 };

/* Put a tuple, none of which interferes with another, at the low end of an
 * edge; where that is OM_NNC_NO_EDGE, where it makes the arena grow least. */
void om_nnc_graph_insert(om_nnc_graph *f, const uint32_t *tuple, uint32_t n, size_t edge);

/* Insert everything. */
void om_nnc_by_size(om_nnc_graph *f);
void om_nnc_by_tuples(om_nnc_graph *f);

#endif
