/* What the quantised convolution shares with the others. */
#ifndef OM_CONV_H
#define OM_CONV_H

#include "ops/window.h"

struct om_conv {
	struct om_window w;
	int64_t batch, cin, cout, group;
	int64_t kin, kout;            /* channels of a group */
};

#define OM_CONV_ATTRS OM_WINDOW_ATTRS, {"group", OM_ATTR_INT, .i = 1}

/* Check input `x` and weights `w` (numbers of inputs) and set the output's
 * shape, as far as it is known. */
om_status om_conv_infer(om_call *c, uint32_t x, uint32_t w);

/* At run time, after om_conv_infer(): every number is known. */
struct om_conv om_conv_of(const om_call *c, uint32_t x, uint32_t w);

/* Sums of one image and output channel of bytes: out[i] is the sum of
 * (x - x_zero) * (w - w_zero). */
void om_conv_bytes(const struct om_conv *v, const om_tensor *x, int32_t x_zero, const om_tensor *w,
	int32_t w_zero, int64_t image, int64_t channel, int32_t *out);

void om_conv_cost(const om_call *c, const struct om_conv *v, om_cost *cost);

#endif
