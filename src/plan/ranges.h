/* Whose bytes lie where: byte ranges of several spaces, each with an owner.
 *
 * Setting a range takes its bytes away from whoever had them before.  A
 * balanced tree: setting and asking take O(log n). */
#ifndef OM_RANGES_H
#define OM_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "onnxmem/arena.h"

/* Bytes [lower, upper) of a space.  The first of them is byte `at` of what
 * `who` wrote there; `stale` bytes are nobody's any more, `who` had them. */
typedef struct om_range {
	uint32_t space;
	uint64_t lower, upper;
	uint32_t who;
	uint64_t at;
	bool stale;
} om_range;

enum { OM_NOBODY = UINT32_MAX };

typedef struct om_ranges om_ranges;

om_ranges *om_ranges_new(om_arena *mem);

/* What is equal to `r`, and changes on its own from now on. */
om_ranges *om_ranges_copy(const om_ranges *r, om_arena *mem);

/* An empty range changes nothing. */
void om_ranges_set(om_ranges *r, const om_range *want);

/* Are all bytes of `want` there as `want` says?  If not, `*bad` is the first
 * stretch that is not; its owner is OM_NOBODY where nothing was ever set. */
bool om_ranges_hold(const om_ranges *r, const om_range *want, om_range *bad);

/* The range at byte `at`, or a stretch of nobody up to the next one. */
om_range om_ranges_at(const om_ranges *r, uint32_t space, uint64_t at);

#endif
