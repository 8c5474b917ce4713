/* What convolutions share: operators and shapes are in conv.c, float32 in conv_floats.c and
 * conv_paint.c, bytes in conv_bytes.c; gradients and the quantised one use them. */
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

/* float32: what is computed, with which weights and bias (NULL: none), into what, and room to do it. */
struct om_images {
	const float *x, *w, *bias;
	float *out;
	void *room;
};

static inline void
om_conv_fill(float *to, int64_t n, float x)
{
	for (int64_t i = 0; i < n; i++)
		to[i] = x;
}

/* The convolution, in the way that suits it, and the bytes of room it takes. */
uint64_t om_conv_room(const struct om_conv *v);
void om_conv_floats(const struct om_conv *v, const struct om_images *p);

/* float32: the rows of the image whose columns are windows, for om_gemm; row `k` belongs to a
 * channel and a tap, a column to a place of the output. */
struct om_columns {
	const struct om_window *w;
	const float *x;               /* the first of the channels */
};
const float *om_conv_columns(const void *columns, int64_t k, int64_t n0, int64_t n, float *room);

/* float32: the sum of what lies under the window at place `o` of the output, times the taps. */
float om_conv_dot(const struct om_window *w, const float *x, const float *taps, const int64_t *o);

/* The transposed convolution: weights are (channels in, channels out of a group, kernel), windows
 * are painted from `w.in` onto `w.out`. */
uint64_t om_conv_paint_room(const struct om_conv *v);
void om_conv_paint(const struct om_conv *v, const struct om_images *p);
void om_conv_paint_doubles(const struct om_conv *v, const double *x, const double *w, const double *bias,
	double *out);

void om_conv_cost(const om_call *c, uint32_t x, uint32_t w, om_cost *cost);

#endif
