/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolutions of channels-last images. */
#ifndef OM_DEPTHWISE_H
#define OM_DEPTHWISE_H

#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/geometry.h"

typedef struct om_depthwise {
	om_geometry g;
	int64_t channels;
	const float *packed;      /* [taps][channels] */
	const float *bias;        /* a number for each channel */
	const float *zeros;       /* a zero for each channel */
	om_epilogue epilogue;
} om_depthwise;

typedef struct om_depthwise_kernels {
	/* Lines [first, end) of the output `y` of one image `x`; lines of all planes are numbered together. */
	void (*lines)(const om_depthwise *d, const float *x, float *y, int64_t first, int64_t end);
} om_depthwise_kernels;

#endif
