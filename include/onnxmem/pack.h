/* The packer: buffers with lifetimes in, offsets out.
 *
 * It knows no operator, no tensor and no ONNX, and is usable alone: by another
 * converter for its own buffers, or for a problem read from a file.
 */
#ifndef OM_PACK_H
#define OM_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "onnxmem/arena.h"

/* Bytes [from, to) of a buffer, in use in steps [lower, upper): `upper` and
 * `to` are exclusive.  `to` 0, with `from` 0, means all bytes of the buffer. */
typedef struct om_interval {
	uint32_t lower, upper;
	uint64_t from, to;
} om_interval;

enum { OM_OFFSET_FREE = -1 };

typedef struct om_buffer {
	const char *name;        /* for messages; may be NULL */
	uint64_t bytes;          /* 0: never overlaps anything, gets offset 0 */
	uint64_t align;          /* a power of two; 0 or 1: none */
	const om_interval *live; /* see below; at least one */
	uint32_t nlive;
	int64_t fixed;           /* offset that it must have, or OM_OFFSET_FREE */
	uint64_t offset;         /* out */
} om_buffer;

/* When, and which part of, a buffer is in use.  Intervals are sorted by `lower`,
 * none is empty, and two that overlap in time are disjoint in bytes.  So a
 * buffer is a rigid set of rectangles, steps by bytes: all of them move with
 * its one offset, and other buffers may lie in the bytes that it does not use
 * at the time.  That expresses
 *
 *   - a plain buffer: one interval;
 *   - one that is needed again later: several intervals of all bytes;
 *   - one of which only a part is still read: bytes 0 to 4096 in steps 3 to 5,
 *     then bytes 0 to 512 in steps 5 to 9;
 *   - buffers that have to lie one behind the other (the operands of a concat,
 *     each born at its own time): one buffer with an interval for each.
 *
 * Bytes that are in no interval still belong to the buffer: its end counts for
 * the height. */

typedef enum om_pack_status {
	OM_PACK_OPTIMAL,         /* height equals a proven lower bound */
	OM_PACK_FEASIBLE,        /* a valid packing; the gap to the bound is open */
} om_pack_status;

typedef struct om_pack_result {
	uint64_t height;         /* bytes: the largest end of a buffer */
	uint64_t lower_bound;    /* bytes: no packing is lower */
	uint32_t bound_step;     /* a step at which the bound is alive */
	om_pack_status status;
	const char *strategy;    /* what found it: "size", "area", ... */
} om_pack_result;

/* Largest sum of bytes in use at one step, rounded up to the alignment only
 * where that is a proof.  O(n log n) for n intervals.  `step` may be NULL. */
OM_API uint64_t om_pack_bound(const om_buffer *buf, uint32_t n, uint32_t *step);

/* Give every buffer an offset.  Deterministic: depends on the problem alone,
 * not on names, addresses or time.  Refuses with OM_INVALID an alignment that
 * is no power of two, intervals that are empty, unsorted, outside of the buffer or
 * that overlap in time and bytes, fixed buffers that overlap, sums that
 * overflow. */
OM_API om_status om_pack(om_session *s, om_buffer *buf, uint32_t n, om_pack_result *result);

/* Check a packing: alignment, fixed offsets, no byte is used twice at a step,
 * all below `height`.  Shares no code with om_pack(). */
OM_API om_status om_pack_check(om_session *s, const om_buffer *buf, uint32_t n, uint64_t height);

#endif
