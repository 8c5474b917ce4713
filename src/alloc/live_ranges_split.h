/* SPDX-License-Identifier: Apache-2.0 */
/* Storages in segments with a common lifetime, for passes that order ops. */
#ifndef OM_LIVE_RANGES_SPLIT_H
#define OM_LIVE_RANGES_SPLIT_H

#include "onnxmem/plan.h"

/* Bytes with a common lifetime. */
typedef struct om_segment {
	uint64_t bytes;          /* rounded if they are a whole buffer */
	om_op *producer;         /* the first op that writes them; NULL: initialized before the block runs */
	bool is_input;           /* of an input of the graph in the arena: initialized before the run */
} om_segment;

/* The storages of a program, split into segments: every value is a sequence of segments, and a value
 * that may be computed over it is a sequence of as many segments of the same sizes. */
typedef struct om_segments {
	om_segment *piece;         /* by segment number */
	uint32_t n;              /* number of segments */
	bool is_complete;        /* the same-size property above holds for all values; false: there were
				    too many segments */
	bool *is_open;           /* by value id: may share bytes in more ways than segments express */
	struct om_segments_index *index; /* for om_segments_of() */
} om_segments;

/* The storages are those of `b`, made from an assignment that has views and no other sharing yet.  A
 * value that may be computed at its final offset in a later value is part of that from the start. */
om_segments *om_segments_new(const om_prog *p, const om_buffers *b, om_arena *mem);

/* The segments of `v`, by number, in sequence; none if it is not planned. */
const uint32_t *om_segments_of(const om_segments *q, const om_value *v, uint32_t *n);

#endif
