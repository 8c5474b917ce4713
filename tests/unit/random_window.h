/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of random layers, and where their elements are in the image: for the references that kernels of layers are
 * compared with. */
#ifndef RANDOM_WINDOW_H
#define RANDOM_WINDOW_H

#include "base/rng.h"
#include "kernels/cpu/layer.h"

static inline int64_t
volume(const int64_t *size)
{
	return size[0] * size[1] * size[2];
}

/* The position of output element `p` of an image. */
static inline void
position_of(const om_layer *l, int64_t p, int64_t *o)
{
	o[0] = p / l->out[2] / l->out[1];
	o[1] = p / l->out[2] % l->out[1];
	o[2] = p % l->out[2];
}

/* Where element `tap` of the kernel is in the image, for the output at `o`; false: outside of it. */
static inline bool
find_tap(const om_layer *l, const int64_t *o, int64_t tap, int64_t *at)
{
	const int64_t k[] = {tap / l->kernel[2] / l->kernel[1], tap / l->kernel[2] % l->kernel[1], tap % l->kernel[2]};
	bool inside = true;

	for (int a = 0; a < OM_LAYER_AXES; a++) {
		at[a] = o[a] * l->stride[a] - l->begin[a] + k[a] * l->dilation[a];
		inside = inside && at[a] >= 0 && at[a] < l->in[a];
	}
	return inside;
}

/* A window with kernels of up to `most` elements along an axis, and the sizes of the images.  `crops`: the image may
 * begin before its padding. */
static inline void
choose_window(om_layer *l, uint64_t *state, uint64_t most, bool crops)
{
	const int axes = 1 + (int)om_rng_below(state, OM_LAYER_AXES);

	for (int k = 0; k < OM_LAYER_AXES; k++) {
		l->in[k] = l->out[k] = l->kernel[k] = l->stride[k] = l->dilation[k] = 1;
		if (k < OM_LAYER_AXES - axes)
			continue;
		l->kernel[k] = om_rng_below(state, 3) ? 1 + (int64_t)om_rng_below(state, most) : 1;
		l->stride[k] = om_rng_below(state, 2) ? 1 + (int64_t)om_rng_below(state, 3) : 1;
		l->dilation[k] = om_rng_below(state, 3) ? 1 : 1 + (int64_t)om_rng_below(state, 7);
		l->begin[k] = (int64_t)om_rng_below(state, 4) - (crops && om_rng_below(state, 9) == 0);
		const int64_t span = (l->kernel[k] - 1) * l->dilation[k] + 1, end = (int64_t)om_rng_below(state, 3);
		l->in[k] = 1 + (int64_t)om_rng_below(state, axes == 1 ? 60 : axes == 2 ? 15 : 6);
		if (l->in[k] + l->begin[k] + end < span)
			l->in[k] = span - l->begin[k] - end;
		l->out[k] = (l->in[k] + l->begin[k] + end - span) / l->stride[k] + 1;
	}
}

#endif
