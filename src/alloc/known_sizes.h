/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of arenas that were found before.
 *
 * A search among orders compares candidates of which many give the same packing problem.  Where quick searches do not
 * decide, each comparison costs as much as packing a plan; so the last such problems are kept, with what was found.
 * The packer finds the same again for the same problem and limits, so that nothing but time depends on this.
 */
#ifndef OM_KNOWN_SIZES_H
#define OM_KNOWN_SIZES_H

#include "alloc/assign.h"
#include "pack/search_limits.h"

typedef struct om_known_sizes om_known_sizes;

/* In `mem`, as what is added later.  It takes a few megabytes at most, and a few times as much as a large problem. */
om_known_sizes *om_known_sizes_new(om_arena *mem);

/* What was found for these buffers with these limits; false if that is not known. */
bool om_known_sizes_find(const om_known_sizes *known, const om_buffer *buf, uint32_t n, const om_search_limits *limits,
	om_arena_size *size);

/* Is the problem large, so that even a quick search for it takes longer than to find out whether it is known? */
bool om_known_sizes_is_large(const om_buffer *buf, uint32_t n);

/* Keep it, in the place of what was found first; of large problems, a few are kept. */
void om_known_sizes_add(om_known_sizes *known, const om_buffer *buf, uint32_t n, const om_search_limits *limits,
	const om_arena_size *size);

#endif
