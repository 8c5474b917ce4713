/* SPDX-License-Identifier: Apache-2.0 */
/* The choice between the direct algorithm and Winograd's, by a model of their costs; narrow groups have a kernel of their own.
 *
 * Transformed weights are 4 times (tiles of 4) or 1.8 times (tiles of 2) as large.  Where few pixels have many channels,
 * that is most of the memory of a network and little of its time, so the memory of large weights has a price. */
#include <config.h>

#include <stddef.h>

#include "lower/conv_algorithm.h"

enum { PANEL = 32, FEWEST_CHANNELS = 16, NARROW = 16 };

/* Operations that take as long as reading a byte of weights from memory, and as transforming an element of a tile;
 * and the gain that is worth the larger weights. */
static const double operations_per_byte = 8, operations_per_element = 30, least_gain = 1.25;

/* Operations that a layer may take longer to save a byte of weights, of those beyond the free ones: with these the
 * weights of U-Net are 50 MB instead of 110 for 16 % of its time, those of VGG-16 565 instead of 636 for 18 %, and
 * ResNet, GoogLeNet and SqueezeNet keep theirs. */
static const double price_per_byte = 45, free_bytes = 4.5e6;

static double
padded(int64_t channels)
{
	return (double)((channels + PANEL - 1) / PANEL * PANEL);
}

static double
product(const int64_t *v, int n)
{
	double p = 1;

	for (int k = 0; k < n; k++)
		p *= (double)v[k];
	return p;
}

/* The part of the kernel elements along an axis that is inside of the image, if the kernel is dilated: taps that
 * are outside for neighbouring outputs cost nothing. */
static double
share_inside(const om_conv_shape *s, int axis)
{
	const double far = (double)((s->kernel[axis] - 1) * s->dilation[axis]);
	const double lost = far / 4 / (double)s->out[axis];

	return s->dilation[axis] == 1 ? 1 : lost < 0.5 ? 1 - lost : 0.5;
}

/* The price of so many packed weights. */
static double
memory_cost(double weights)
{
	const double bytes = 4 * weights;

	return bytes > free_bytes ? (bytes - free_bytes) * price_per_byte : 0;
}

static double
direct_cost(const om_conv_shape *s)
{
	const double in = (double)(s->channels_in / s->group), out = padded(s->channels_out / s->group);
	const double weights = product(s->kernel, s->axes) * in * out * (double)s->group;
	double inside = 1;

	for (int k = 0; k < s->axes; k++)
		inside *= share_inside(s, k);
	return 2 * weights * inside * product(s->out, s->axes) * (double)s->batch + 4 * weights * operations_per_byte
		+ memory_cost(weights);
}

static double
tiles_of(const om_conv_shape *s, int axis, int64_t size)
{
	const int64_t step = s->dilation[axis], each = (s->out[axis] + step - 1) / step;

	return (double)((each + size - 1) / size * step);
}

/* Of tiles with size by size outputs. */
static double
winograd_cost(const om_conv_shape *s, int64_t size)
{
	const double in = (double)(s->channels_in / s->group), out = padded(s->channels_out / s->group);
	const double elements = (double)((size + 2) * (size + 2) * s->group), planes = product(s->kernel, s->axes - 2);
	const double tiles = tiles_of(s, s->axes - 1, size) * tiles_of(s, s->axes - 2, size)
		* product(s->out, s->axes - 2) * (double)s->batch;

	return elements * (2 * tiles * planes * in * out + tiles * (planes * in + out) * operations_per_element
		+ 4 * planes * in * out * operations_per_byte) + memory_cost(elements * planes * in * out);
}

bool
om_conv_suits_winograd(const om_conv_shape *s)
{
	bool suits = s->axes >= 2 && s->channels_in / s->group >= FEWEST_CHANNELS && s->channels_out / s->group >= FEWEST_CHANNELS;

	for (int k = s->axes - 2; suits && k < s->axes; k++)
		suits = s->kernel[k] == 3 && s->stride[k] == 1;
	return suits;
}

bool
om_conv_suits_grouped(const om_conv_shape *s)
{
	const int64_t in = s->channels_in / s->group, out = s->channels_out / s->group;

	return s->group > 1 && in > 1 && in <= NARROW && out <= NARROW;
}

const char *
om_conv_algorithm(const om_conv_shape *s, bool winograd)
{
	if (om_conv_suits_grouped(s))
		return "grouped";
	if (!winograd || !om_conv_suits_winograd(s))
		return "gemm";
	const double direct = direct_cost(s) / least_gain, large = winograd_cost(s, 4), small = winograd_cost(s, 2);
	if (direct <= large && direct <= small)
		return "gemm";
	return large < small ? "winograd4" : "winograd2";
}
