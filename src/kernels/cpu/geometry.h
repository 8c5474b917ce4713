/* SPDX-License-Identifier: Apache-2.0 */
/* Windows that slide over channels-last images: [axes..., channels].
 *
 * There are three axes, the last one along a line of pixels; missing ones are leading axes of size 1.  Tap k of
 * output o is pixel o * stride - begin + k * dilation of an axis; what lies outside of the image is padding. */
#ifndef OM_GEOMETRY_H
#define OM_GEOMETRY_H

#include <stdint.h>

typedef struct om_geometry {
	int64_t in[3], out[3], kernel[3], stride[3], dilation[3], begin[3], end[3];
} om_geometry;

/* Of output `o` of axis `a`: the taps [*lo, *hi) that are inside of the image with `before` and `after` pixels
 * around it. */
static inline void
om_taps_inside(const om_geometry *g, int a, int64_t o, int64_t before, int64_t after, int64_t *lo, int64_t *hi)
{
	const int64_t d = g->dilation[a], first = o * g->stride[a] - g->begin[a];
	const int64_t under = -before - first, over = g->in[a] + after - first;

	*lo = under <= 0 ? 0 : d == 1 ? under : (under + d - 1) / d;
	*hi = over <= 0 ? 0 : d == 1 ? over : (over + d - 1) / d;
	*lo = *lo < g->kernel[a] ? *lo : g->kernel[a];
	*hi = *hi < *lo ? *lo : *hi < g->kernel[a] ? *hi : g->kernel[a];
}

#endif
