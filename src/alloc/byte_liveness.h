/* SPDX-License-Identifier: Apache-2.0 */
/* Byte-precise liveness of a buffer. */
#ifndef OM_BYTE_LIVENESS_H
#define OM_BYTE_LIVENESS_H

#include "onnxmem/pack.h"

/* Consecutive time slices, each with the byte ranges that are in use: sorted by `lower`, then by
 * `from`.  The intervals of one slice have the same steps and are separated by gaps; adjacent slices
 * differ. */
typedef struct om_usage {
	om_interval *r;
	size_t n, cap;
} om_usage;

/* The usage of all of these intervals, empty ones among them: added in halves, which takes a time near-linear
 * in their number where few ranges are in use at a step.  A result that would have too many intervals becomes one
 * interval that covers all of it. */
om_usage om_usage_union(om_arena *mem, const om_interval *r, size_t n);

/* The same usage as few rectangles, rounded outwards to `align`, as om_buffer.live requires. */
om_usage om_usage_rounded(const om_usage *u, om_arena *mem, uint64_t align);

#endif
