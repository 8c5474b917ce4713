/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the sizes of ranges: all combinations or, of more than a limit, a selection with the ends of all ranges. */
#ifndef OM_RANGE_SIZES_H
#define OM_RANGE_SIZES_H

#include "onnxmem/arena.h"
#include "onnxmem/plan.h"

enum { OM_MOST_SIZES = 1024 };   /* combinations for which a plan is verified */

typedef struct om_size_walk {
	const om_dim_range *range;
	uint32_t nrange;
	uint64_t most;           /* sizes of each range */
	uint64_t *at;
	int64_t *n;              /* the current combination, by range */
	bool is_all;             /* no combination is left out */
} om_size_walk;

/* At the first combination, of at most `most`. */
om_size_walk om_size_walk_new(const om_dim_range *range, uint32_t nrange, uint64_t most, om_arena *mem);

/* The next combination; false: that was the last one. */
bool om_size_walk_next(om_size_walk *w);

#endif
