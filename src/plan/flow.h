/* The allocation graph: who hands his bytes on to whom.
 *
 * Nodes are buffers, a source and a sink; an edge is a range of addresses that
 * passes from one to the next.  The arena is what leaves the source.
 */
#ifndef OM_FLOW_H
#define OM_FLOW_H

#include "plan/interfere.h"

enum { OM_FLOW_NONE = UINT32_MAX, OM_FLOW_TUPLE = 3 };

typedef struct om_flow_edge {
	uint32_t from, to;
	uint64_t low, high;      /* equal: used up */
} om_flow_edge;

typedef struct om_flow {
	om_interfere *g;
	om_arena *mem;
	uint32_t n;              /* the source is node n, the sink n + 1 */
	uint64_t *bytes;         /* by buffer, rounded up to the largest alignment */
	uint64_t *at;            /* by buffer: its lowest address */
	bool *is_in;             /* by buffer: inserted */
	uint64_t *in, *out;      /* by node: weight of its edges */
	om_flow_edge *edge;
	size_t nedge, capedge;
	uint64_t height;
	uint32_t regions;        /* how often the arena grew */
	bool spans;              /* a buffer may lie over several edges, side by side */
} om_flow;

void om_flow_init(om_flow *f, om_interfere *g, uint64_t align, bool spans, om_arena *mem);

/* Do these bytes pass by while `t` is not yet, or no longer, alive? */
bool om_flow_passes(const om_flow *f, const om_flow_edge *e, uint32_t t);

/* The best edge for `t`, of at least `bytes`, among those from number `first`
 * on: fewest steps between `t` and what is before and behind it. */
size_t om_flow_find(const om_flow *f, uint32_t t, uint64_t bytes, size_t first);
enum { OM_FLOW_NO_EDGE = -1 };

/* Put a tuple, none of which interferes with another, at the low end of an
 * edge; where that is OM_FLOW_NO_EDGE, where it makes the arena grow least. */
void om_flow_insert(om_flow *f, const uint32_t *tuple, uint32_t n, size_t edge);

/* Insert everything. */
void om_flow_by_size(om_flow *f);
void om_flow_by_tuples(om_flow *f);

#endif
