/* SPDX-License-Identifier: Apache-2.0 */
/* The algorithm of a convolution. */
#ifndef OM_CONV_ALGORITHM_H
#define OM_CONV_ALGORITHM_H

#include <stdbool.h>
#include <stdint.h>

/* The shapes of a convolution with 1 to 3 spatial axes, which the arrays have an element for. */
typedef struct om_conv_shape {
	int64_t batch, channels_in, channels_out, group;
	int axes;
	const int64_t *in, *out, *kernel, *stride, *dilation;
} om_conv_shape;

/* "grouped" for narrow groups, "gemm", or if allowed "winograd4" or "winograd2" where that is expected to be faster. */
const char *om_conv_algorithm(const om_conv_shape *s, bool winograd);
/* Has it the kernel, the strides, and enough channels for Winograd's algorithm? */
bool om_conv_suits_winograd(const om_conv_shape *s);
/* Are there several groups, as narrow as the kernel for narrow groups takes, with more than one input channel? */
bool om_conv_suits_grouped(const om_conv_shape *s);

#endif
