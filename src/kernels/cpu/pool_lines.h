/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of channels-last images. */
#ifndef OM_POOL_LINES_H
#define OM_POOL_LINES_H

#include <stdbool.h>

#include "kernels/cpu/geometry.h"

typedef struct om_pooling {
	om_geometry g;
	int64_t channels;
	bool with_padding;        /* the mean includes the padding */
} om_pooling;

/* Lines [first, end) of the output `y` of one image `x`; lines of all planes are numbered together.  `room` has
 * om_pool_room() floats. */
typedef void om_pool_lines(const om_pooling *p, const float *x, float *y, int64_t first, int64_t end, float *room);

typedef struct om_pool_kernels {
	om_pool_lines *max;       /* -infinity for an empty window, NaN for one that contains NaN */
	om_pool_lines *mean;      /* 0 for an empty window */
} om_pool_kernels;

/* Channels that are reduced at a time where windows overlap. */
enum { OM_POOL_CHANNELS = 64 };

static inline int64_t
om_pool_room(const om_pooling *p)
{
	return p->g.in[2] * (p->channels < OM_POOL_CHANNELS ? p->channels : OM_POOL_CHANNELS);
}

#endif
