/* SPDX-License-Identifier: Apache-2.0 */
/* Activations that are computed together with a layer, before its results are stored.
 *
 * They have the meaning of the operators of ai.onnx with these names; NaN stays NaN. */
#ifndef OM_EPILOGUE_H
#define OM_EPILOGUE_H

#include <stdint.h>

/* Those up to OM_ACT_LEAKY_RELU are a few instructions; the others are curves. */
typedef enum om_act {
	OM_ACT_NONE, OM_ACT_RELU, OM_ACT_CLIP, OM_ACT_HARD_SWISH, OM_ACT_HARD_SIGMOID, OM_ACT_LEAKY_RELU,
	OM_ACT_SIGMOID, OM_ACT_TANH, OM_ACT_SILU, OM_ACT_GELU, OM_ACT_GELU_TANH, OM_ACT_ELU,
	OM_NACT
} om_act;

/* An activation with its parameters: Clip to [alpha, beta], HardSigmoid alpha x + beta; LeakyRelu and Elu have
 * alpha. */
typedef struct om_epilogue {
	om_act act;
	float alpha, beta;
} om_epilogue;

typedef struct om_epilogue_kernels {
	/* Apply it to x[i], i < n. */
	void (*row)(float *x, int64_t n, const om_epilogue *e);
} om_epilogue_kernels;

#endif
