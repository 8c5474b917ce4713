/* Whose bytes lie where: byte ranges of several spaces, each with an owner.
 *
 * Setting a range takes its bytes away from whoever had them before.  A
 * balanced tree: setting and asking take O(log n). */
#ifndef OM_INTERVAL_MAP_H
#define OM_INTERVAL_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "onnxmem/arena.h"

/* Bytes [lower, upper) of a space.  The first of them is byte `at` of what
 * `who` wrote there; `stale` bytes are nobody's any more, `who` had them. */
typedef struct om_owned_interval {
	uint32_t space;
	uint64_t lower, upper;
	uint32_t who;
	uint64_t at;
	bool stale;
} om_owned_interval;

enum { OM_NOBODY = UINT32_MAX };

typedef struct om_interval_map om_interval_map;

om_interval_map *om_interval_map_new(om_arena *mem);

/* What is equal to `r`, and changes on its own from now on. */
om_interval_map *om_interval_map_copy(const om_interval_map *r, om_arena *mem);

/* An empty range changes nothing. */
void om_interval_map_set(om_interval_map *r, const om_owned_interval *want);

/* Are all bytes of `want` there as `want` says?  If not, `*bad` is the first
 * stretch that is not; its owner is OM_NOBODY where nothing was ever set. */
bool om_interval_map_holds(const om_interval_map *r, const om_owned_interval *want, om_owned_interval *bad);

/* The range at byte `at`, or a stretch of nobody up to the next one. */
om_owned_interval om_interval_map_at(const om_interval_map *r, uint32_t space, uint64_t at);

#endif
