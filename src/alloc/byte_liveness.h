/* Which bytes of a buffer are in use, when. */
#ifndef OM_BYTE_LIVENESS_H
#define OM_BYTE_LIVENESS_H

#include "onnxmem/pack.h"

/* Slices of time, one behind another, each with the ranges of bytes that are in
 * use: sorted by `lower`, then by `from`.  Intervals of one slice have the same
 * steps, and a hole between them; neighbours in time differ. */
typedef struct om_usage {
	om_interval *r;
	size_t n, cap;
} om_usage;

/* What one value uses. */
om_usage om_usage_of(om_arena *mem, uint64_t bytes, uint32_t first, uint32_t last);

/* Add what `more` uses, moved up by `shift` bytes.  Linear in both.  What would
 * get too intricate becomes one interval around all of it. */
void om_usage_add(om_usage *u, om_arena *mem, const om_usage *more, uint64_t shift);

/* The same as few rectangles, rounded outwards to `align`, as om_buffer.live
 * wants them. */
om_usage om_usage_rounded(const om_usage *u, om_arena *mem, uint64_t align);

#endif
