/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that pack by an interference graph. */
#ifndef OM_GRAPH_PACKING_H
#define OM_GRAPH_PACKING_H

#include "pack/problem.h"

/* The weight in bytes of the heaviest clique of the interference graph that is
 * found within `work`; the heaviest of all if `work` suffices.  Only buffers of
 * units with `in[unit]` count.  `*member` is one buffer of that clique. */
uint64_t om_clique_bound(const om_units *u, const bool *in, uint64_t work, uint32_t *member);

enum { OM_GRAPH_SEARCH_MAX = 64 };

/* Search all packings of the `n` units that may be lower than `best`, down to
 * `goal`.  Units are single buffers; fixed offsets are kept.  True when the
 * search was complete; `offset`, in the order of `unit`, and `best` are updated. */
bool om_graph_branch_bound(const om_units *u, const uint32_t *unit, uint32_t n, uint64_t align, uint64_t goal,
	const om_search_limits *limits, uint64_t *offset, uint64_t *best);

#endif
