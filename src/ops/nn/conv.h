/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of convolutions: operators and shapes are in conv.c, float32 in conv_f32.c and
 * conv_transpose.c, 8-bit integers in conv_int8.c.  Gradients and QLinearConv use them, too. */
#ifndef OM_CONV_H
#define OM_CONV_H

#include "ops/math/gemm_int8.h"
#include "opdef/geometry/window.h"

struct om_conv {
	struct om_window w;
	int64_t batch, cin, cout, group;
	int64_t kin, kout;            /* channels per group */
};

#define OM_CONV_ATTRS OM_WINDOW_ATTRS, {"group", OM_ATTR_INT, .i = 1}

/* Check input `x` and weights `w` (indices of inputs) and set the output's shape, as far as it is known. */
om_status om_conv_infer(om_op_context *c, uint32_t x, uint32_t w);

/* At run time, after om_conv_infer(): all sizes are known. */
struct om_conv om_conv_of(const om_op_context *c, uint32_t x, uint32_t w);

/* The same for ConvTranspose: input 0 and weights 1. */
struct om_conv om_conv_transpose_of(const om_op_context *c);

/* ConvGrad: what it is the gradient of.  NULL, or what is wrong. */
const char *om_conv_grad_read(const om_op_context *c, struct om_conv *v);

/* The scatter-add of an output to the image: the same windows with input and output exchanged. */
struct om_conv om_conv_turned(const struct om_conv *v);

/* 8-bit integers: the sums of (x - x_zero) * (w - w_zero). */
struct om_byte_images {
	const om_tensor *x, *w;
	const om_tensor *x_zero, *w_zero;   /* NULL for none; w_zero has one element, or one per channel */
	/* Receives positions [at, at + n) of channel image * cout + channel. */
	om_bytes_put *put;
	const void *of;
	void *room;
};

/* True if om_conv_int8() is used; otherwise the convolution is computed channel by channel. */
bool om_conv_int8_suits(const struct om_conv *v);
uint64_t om_conv_int8_workspace(const struct om_conv *v);
void om_conv_int8(const struct om_conv *v, const struct om_byte_images *p);

/* Compute channel `i`, numbered as above, directly. */
void om_conv_int8_channel(const struct om_conv *v, const struct om_byte_images *p, int64_t i, int32_t *out);

/* float32: input, weights, bias (NULL: none), output, and workspace. */
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

/* The convolution, with the algorithm selected for its geometry, and the bytes of workspace it requires. */
uint64_t om_conv_workspace(const struct om_conv *v);
void om_conv_f32(const struct om_conv *v, const struct om_images *p);

/* float32: rows of the im2col matrix, for om_gemm.  Row `k` corresponds to a channel and a filter
 * element, a column to a position of the output. */
struct om_columns {
	const struct om_window *w;
	const void *x;                /* the first channel */
	bool of_bytes, is_signed;     /* int8 or uint8 instead of float32, */
	int32_t zero;                 /* minus their zero point */
};
const float *om_conv_im2col(const void *columns, int64_t k, int64_t n0, int64_t n, float *room);

/* float32: the dot product of the filter and the input window at position `o` of the output. */
float om_conv_dot(const struct om_window *w, const float *x, const float *taps, const int64_t *o);

/* Transposed convolution: the weights are (input channels, output channels per group, kernel); windows
 * are scatter-added from `w.in` to `w.out`. */
uint64_t om_conv_transpose_workspace(const struct om_conv *v);
void om_conv_transpose_scatter(const struct om_conv *v, const struct om_images *p);
void om_conv_transpose_scatter_f64(const struct om_conv *v, const double *x, const double *w, const double *bias,
	double *out);

void om_conv_cost(const om_op_context *c, uint32_t x, uint32_t w, om_cost *cost);

#endif
