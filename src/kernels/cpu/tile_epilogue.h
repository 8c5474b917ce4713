/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a tile of channels-last outputs. */
#ifndef OM_TILE_EPILOGUE_H
#define OM_TILE_EPILOGUE_H

#include "kernels/cpu/activation.h"

/* Relu, Clip and nothing are one clamp, so that there is no branch for each vector. */
INLINE vec
tile_clamp(const om_epilogue *e, vec x)
{
	const int is_clip = e->act == OM_ACT_CLIP;
	const float low = e->act == OM_ACT_RELU ? 0 : is_clip ? e->alpha : -__builtin_inff();

	return vec_clamp(x, low, is_clip ? e->beta : __builtin_inff());
}

/* `n` sums become outputs, `step` floats apart. */
INLINE void
store_tile(const om_epilogue *e, const vec *sum, const int n, float *y, int64_t step)
{
	if (e->act == OM_ACT_HARD_SWISH) {
		UNROLL
		for (int i = 0; i < n; i++, y += step)
			vec_store(y, vec_activate(sum[i], OM_ACT_HARD_SWISH, 0, 0));
		return;
	}
	UNROLL
	for (int i = 0; i < n; i++, y += step)
		vec_store(y, tile_clamp(e, sum[i]));
}

/* Activations that tile_clamp() leaves to activate_row(); store_tile() also computes HardSwish. */
INLINE int
is_left_by_clamp(const om_epilogue *e)
{
	return e->act > OM_ACT_CLIP;
}

INLINE int
is_left_to_rows(const om_epilogue *e)
{
	return e->act > OM_ACT_HARD_SWISH;
}

#endif
