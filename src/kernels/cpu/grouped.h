/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of channels-last images in narrow groups of channels. */
#ifndef OM_GROUPED_H
#define OM_GROUPED_H

#include <stdbool.h>

#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/geometry.h"

/* Output channels are in panels of 16, zero after the last one: [panel][taps][inputs of a group][16].  Groups of 2,
 * 4 or 8 inputs and as many outputs share panels; any other group has a panel of its own. */
enum { OM_GROUP_MOST = 16 };

typedef struct om_grouped {
	om_geometry g;
	int64_t groups, inputs, outputs;   /* channels of a group, up to OM_GROUP_MOST */
	const float *packed;
	const float *bias;        /* a number for each output channel */
	const float *zeros;       /* a zero for each input channel, at least OM_GROUP_MOST */
	om_epilogue epilogue;
} om_grouped;

static inline bool
om_grouped_shares(int64_t inputs, int64_t outputs)
{
	return inputs == outputs && (inputs == 2 || inputs == 4 || inputs == 8);
}

static inline int64_t
om_grouped_panels(int64_t groups, int64_t inputs, int64_t outputs)
{
	return om_grouped_shares(inputs, outputs) ? groups / (OM_GROUP_MOST / outputs) + (groups % (OM_GROUP_MOST / outputs) != 0)
		: groups;
}

typedef struct om_grouped_kernels {
	/* Lines [first, end) of the output `y` of one image `x`; lines of all planes are numbered together. */
	void (*lines)(const om_grouped *d, const float *x, float *y, int64_t first, int64_t end);
} om_grouped_kernels;

#endif
