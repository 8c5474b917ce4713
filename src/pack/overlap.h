/* SPDX-License-Identifier: Apache-2.0 */
/* The packer's own test for overlaps; see overlap.c. */
#ifndef OM_OVERLAP_H
#define OM_OVERLAP_H

#include "onnxmem/pack.h"

/* Buffers `a` and `b`, which may be the same one, both have a byte at `step`. */
typedef struct om_overlap {
	uint32_t a, b, step;
} om_overlap;

/* Is there an overlap among these buffers, located at their fixed offsets, or at 0 without one? */
bool om_overlap_find(const om_buffer *buf, uint32_t n, om_overlap *found);

#endif
