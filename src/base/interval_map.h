/* SPDX-License-Identifier: Apache-2.0 */
/* Ownership of bytes: an interval map over several address spaces.
 *
 * Setting a range replaces the previous owners of its bytes.  A balanced tree:
 * setting and querying take O(log n).
 */
#ifndef OM_INTERVAL_MAP_H
#define OM_INTERVAL_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "onnxmem/arena.h"

/* Bytes [lower, upper) of a space.  The first of them is byte `at` of the object
 * `owner` that was written there; `stale` bytes have lost that owner. */
typedef struct om_owned_interval {
	uint32_t space;
	uint64_t lower, upper;
	uint32_t owner;
	uint64_t at;
	bool stale;
} om_owned_interval;

#define OM_NOBODY UINT32_MAX

typedef struct om_interval_map om_interval_map;

om_interval_map *om_interval_map_new(om_arena *mem);

/* A copy that is independent of `r`. */
om_interval_map *om_interval_map_copy(const om_interval_map *r, om_arena *mem);

/* An empty range changes nothing. */
void om_interval_map_set(om_interval_map *r, const om_owned_interval *range);

/* Do all bytes of `range` have the owner, position and state of `range`? If not,
 * `*bad` is the first range that differs; its owner is OM_NOBODY if it was never
 * set. */
bool om_interval_map_holds(const om_interval_map *r, const om_owned_interval *range, om_owned_interval *bad);

/* The range that contains byte `at`; if it was never set, a range without owner up
 * to the next one. */
om_owned_interval om_interval_map_at(const om_interval_map *r, uint32_t space, uint64_t at);

#endif
