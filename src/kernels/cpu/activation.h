/* SPDX-License-Identifier: Apache-2.0 */
/* Activations of vectors, for the kernels of layers. */
#ifndef OM_ACTIVATION_H
#define OM_ACTIVATION_H

#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/simd.h"

/* Is it one of those that vec_activate() computes? */
INLINE int
act_is_cheap(om_act act)
{
	return act <= OM_ACT_LEAKY_RELU;
}

INLINE vec
vec_clamp(vec x, float low, float high)
{
	return vec_min(vec_all(high), vec_max(vec_all(low), x));
}

/* A cheap activation; a constant `act` leaves no branch.  Others change nothing: they are left to
 * activate_row(), because a curve inlined into every tile costs minutes of compiling and saves nothing. */
INLINE vec
vec_activate(vec x, om_act act, float alpha, float beta)
{
	switch (act) {
	case OM_ACT_RELU: return vec_max(vec_all(0), x);
	case OM_ACT_CLIP: return vec_clamp(x, alpha, beta);
	case OM_ACT_HARD_SWISH: return x * vec_clamp(x * (1 / 6.0f) + 0.5f, 0, 1);
	case OM_ACT_HARD_SIGMOID: return vec_clamp(x * alpha + beta, 0, 1);
	case OM_ACT_LEAKY_RELU: return vec_select(x < 0, x * alpha, x);
	default: return x;
	}
}

/* Apply any activation to x[i], i < n. */
void OM_TABLE(om_activate_row)(float *x, int64_t n, const om_epilogue *e);

INLINE void
activate_row(float *x, int64_t n, const om_epilogue *e)
{
	OM_TABLE(om_activate_row)(x, n, e);
}

#endif
