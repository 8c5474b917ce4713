/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of activations: one loop for each. */
#include <config.h>

#include "kernels/cpu/activation.h"
#include "kernels/cpu/vec_math.h"

#define ROW(name, value)                                                       \
NOINLINE void                                                                  \
name(float *p, int64_t n, float alpha, float beta)                             \
{                                                                              \
	(void)alpha;                                                           \
	(void)beta;                                                            \
	for (; n >= VL; n -= VL, p += VL) {                                    \
		const vec x = vec_load(p);                                     \
		vec_store(p, value);                                           \
	}                                                                      \
	if (n > 0) {                                                           \
		const vec x = vec_load_some(p, n);                             \
		vec_store_some(p, value, n);                                   \
	}                                                                      \
}
ROW(relu, vec_activate(x, OM_ACT_RELU, alpha, beta))
ROW(clip, vec_activate(x, OM_ACT_CLIP, alpha, beta))
ROW(hard_swish, vec_activate(x, OM_ACT_HARD_SWISH, alpha, beta))
ROW(hard_sigmoid, vec_activate(x, OM_ACT_HARD_SIGMOID, alpha, beta))
ROW(leaky_relu, vec_activate(x, OM_ACT_LEAKY_RELU, alpha, beta))
ROW(sigmoid, vec_sigmoid(x))
ROW(hyperbolic_tangent, vec_tanh(x))
ROW(silu, vec_silu(x))
ROW(gelu, vec_gelu(x))
ROW(gelu_tanh, vec_gelu_tanh(x))
ROW(elu, vec_select(x < 0, alpha * vec_expm1(x), x))

void
OM_TABLE(om_activate_row)(float *x, int64_t n, const om_epilogue *e)
{
	static void (*const row[OM_NACT])(float *, int64_t, float, float) = {
		[OM_ACT_RELU] = relu, [OM_ACT_CLIP] = clip, [OM_ACT_HARD_SWISH] = hard_swish,
		[OM_ACT_HARD_SIGMOID] = hard_sigmoid, [OM_ACT_LEAKY_RELU] = leaky_relu, [OM_ACT_SIGMOID] = sigmoid,
		[OM_ACT_TANH] = hyperbolic_tangent, [OM_ACT_SILU] = silu, [OM_ACT_GELU] = gelu,
		[OM_ACT_GELU_TANH] = gelu_tanh, [OM_ACT_ELU] = elu,
	};

	if (e->act != OM_ACT_NONE)
		row[e->act](x, n, e->alpha, e->beta);
}

extern const om_epilogue_kernels OM_TABLE(om_epilogue_kernels);

const om_epilogue_kernels OM_TABLE(om_epilogue_kernels) = {.row = OM_TABLE(om_activate_row)};
