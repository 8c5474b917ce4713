/* What the parts of the packer by pairs share. */
#ifndef OM_GRAPH_PACKING_H
#define OM_GRAPH_PACKING_H

#include "pack/problem.h"

/* Buffers, as numbers, that may not overlap each other, and are heavy together:
 * the heaviest such set there is, if the work suffices.  `in`: by unit, those
 * that count.  Gives their bytes; `one` is one of them. */
uint64_t om_clique_bound(const om_units *u, const bool *in, uint64_t work, uint32_t *one);

enum { OM_PAIRS_SEARCH_MOST = 64 };

/* Try all packings of the `n` units that may be below `best`, down to `goal`.
 * Units are single buffers; those with fixed offsets stay there.  True when the
 * search came to its end; `offset`, in the order of `unit`, and `best` are
 * updated. */
bool om_graph_branch_bound(const om_units *u, const uint32_t *unit, uint32_t n, uint64_t align, uint64_t goal,
	const om_effort *effort, uint64_t *offset, uint64_t *best);

#endif
