/* What convolutions share: operators and shapes are in conv.c, float32 in conv_f32.c and
 * conv_transpose.c, bytes in conv_int8.c; gradients and the quantised one use them. */
#ifndef OM_CONV_H
#define OM_CONV_H

#include "ops/math/gemm_int8.h"
#include "opdef/geometry/window.h"

struct om_conv {
	struct om_window w;
	int64_t batch, cin, cout, group;
	int64_t kin, kout;            /* channels of a group */
};

#define OM_CONV_ATTRS OM_WINDOW_ATTRS, {"group", OM_ATTR_INT, .i = 1}

/* Check input `x` and weights `w` (numbers of inputs) and set the output's
 * shape, as far as it is known. */
om_status om_conv_infer(om_op_context *c, uint32_t x, uint32_t w);

/* At run time, after om_conv_infer(): every number is known. */
struct om_conv om_conv_of(const om_op_context *c, uint32_t x, uint32_t w);

/* Bytes: the sums of (x - x_zero) * (w - w_zero). */
struct om_byte_images {
	const om_tensor *x, *w;
	const om_tensor *x_zero, *w_zero;   /* NULL for none; that of w is one, or one for each channel */
	/* Takes places [at, at + n) of a channel of an image, number image * cout + channel. */
	om_bytes_put *put;
	const void *of;
	void *room;
};

/* Do these go through om_conv_int8(), else channel by channel? */
bool om_conv_int8_suits(const struct om_conv *v);
uint64_t om_conv_int8_workspace(const struct om_conv *v);
void om_conv_int8(const struct om_conv *v, const struct om_byte_images *p);

/* Number `i` of the images of channels, as above, the plain way. */
void om_conv_int8_channel(const struct om_conv *v, const struct om_byte_images *p, int64_t i, int32_t *out);

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
uint64_t om_conv_workspace(const struct om_conv *v);
void om_conv_f32(const struct om_conv *v, const struct om_images *p);

/* float32: the rows of the image whose columns are windows, for om_gemm; row `k` belongs to a
 * channel and a tap, a column to a place of the output. */
struct om_columns {
	const struct om_window *w;
	const void *x;                /* the first of the channels */
	bool of_bytes, is_signed;     /* int8 or uint8 instead of float32, */
	int32_t zero;                 /* less their zero point */
};
const float *om_conv_im2col(const void *columns, int64_t k, int64_t n0, int64_t n, float *room);

/* float32: the sum of what lies under the window at place `o` of the output, times the taps. */
float om_conv_dot(const struct om_window *w, const float *x, const float *taps, const int64_t *o);

/* The transposed convolution: weights are (channels in, channels out of a group, kernel), windows
 * are painted from `w.in` onto `w.out`. */
uint64_t om_conv_transpose_workspace(const struct om_conv *v);
void om_conv_transpose_scatter(const struct om_conv *v, const struct om_images *p);
void om_conv_transpose_scatter_f64(const struct om_conv *v, const double *x, const double *w, const double *bias,
	double *out);

void om_conv_cost(const om_op_context *c, uint32_t x, uint32_t w, om_cost *cost);

#endif
