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

/* Steps [lower, upper): `upper` is exclusive. */
typedef struct om_interval {
	uint32_t lower, upper;
} om_interval;

enum { OM_OFFSET_FREE = -1 };

typedef struct om_buffer {
	const char *name;        /* for messages; may be NULL */
	uint64_t bytes;          /* 0: never overlaps anything, gets offset 0 */
	uint64_t align;          /* a power of two; 0 or 1: none */
	const om_interval *live; /* sorted, disjoint, none empty; at least one */
	uint32_t nlive;
	int64_t fixed;           /* offset that it must have, or OM_OFFSET_FREE */
	uint64_t offset;         /* out */
} om_buffer;

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

/* Largest sum of bytes alive at one step, each rounded up to its alignment
 * only where that is a proof.  O(n log n).  `step` may be NULL. */
OM_API uint64_t om_pack_bound(const om_buffer *buf, uint32_t n, uint32_t *step);

/* Give every buffer an offset.  Deterministic: depends on the problem alone,
 * not on names, addresses or time.  Refuses with OM_INVALID an alignment that
 * is no power of two, an empty or unsorted lifetime, fixed buffers that
 * overlap, sums that overflow. */
OM_API om_status om_pack(om_session *s, om_buffer *buf, uint32_t n, om_pack_result *result);

/* Check a packing: alignment, fixed offsets, no two buffers alive together
 * overlap, all below `height`.  Shares no code with om_pack(). */
OM_API om_status om_pack_check(om_session *s, const om_buffer *buf, uint32_t n, uint64_t height);

#endif
