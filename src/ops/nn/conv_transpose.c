/* SPDX-License-Identifier: Apache-2.0 */
/* Transposed convolutions: windows are scatter-added to the output (col2im).
 *
 * The values to be scattered are a matrix product: transposed weights times the image.  It is computed
 * for some output channels at a time, then added line by line to the positions of each filter element.
 * The gradient of a convolution's image is computed in the same way.
 */
#include <config.h>

#include "kernels/cpu/kernels.h"
#include "ops/nn/conv.h"
#include "opdef/numbers.h"

/* Scatter-add `factor` times the `in` image of values at one filter element. */
#define SCATTER_ADD(name, type)                                                      \
static void                                                                    \
name(const struct om_window *w, int64_t tap, const type *values, type factor, type *out) \
{                                                                              \
	const int64_t kx = tap % w->kernel[2], ky = tap / w->kernel[2] % w->kernel[1]; \
	const int64_t kz = tap / w->kernel[2] / w->kernel[1], s = w->stride[2]; \
	const int64_t o = kx * w->dilation[2] - w->begin[2];                   \
	const int64_t lo = o >= 0 ? 0 : (-o + s - 1) / s;                      \
	const int64_t end = o >= w->out[2] ? 0 : (w->out[2] - o + s - 1) / s;  \
	const int64_t hi = end < w->in[2] ? end : w->in[2];                    \
	for (int64_t z = 0; z < w->in[0]; z++)                                 \
		for (int64_t y = 0; y < w->in[1]; y++, values += w->in[2]) {   \
			const int64_t oz = z * w->stride[0] - w->begin[0] + kz * w->dilation[0]; \
			const int64_t oy = y * w->stride[1] - w->begin[1] + ky * w->dilation[1]; \
			if (oz < 0 || oz >= w->out[0] || oy < 0 || oy >= w->out[1]) \
				continue;                                      \
			type *line = out + (oz * w->out[1] + oy) * w->out[2];  \
			if (s == 1)                                            \
				for (int64_t x = lo; x < hi; x++)              \
					line[x + o] += factor * values[x];     \
			else                                                   \
				for (int64_t x = lo; x < hi; x++)              \
					line[x * s + o] += factor * values[x]; \
		}                                                              \
}
SCATTER_ADD(scatter_add_floats, float)
SCATTER_ADD(scatter_add_doubles, double)

/* Output channels per product: as many as yield about one megabyte of values to scatter. */
enum { PAINT_FLOATS = 1 << 18 };

static int64_t
channels_at_once(const struct om_conv *v)
{
	const int64_t one = om_window_volume(v->w.kernel) * om_window_volume(v->w.in);
	const int64_t n = one > 0 ? PAINT_FLOATS / one : v->kout;

	return n < 1 ? 1 : n < v->kout ? n : v->kout;
}

static uint64_t
col2im_values(const struct om_conv *v)
{
	uint64_t n = (uint64_t)om_window_volume(v->w.kernel) * sizeof(float);

	if (__builtin_mul_overflow(n, (uint64_t)channels_at_once(v), &n)
	    || __builtin_mul_overflow(n, (uint64_t)om_window_volume(v->w.in), &n))
		return UINT64_MAX;
	return om_piece_size(n);
}

/* Windows of one element: the values are the output. */
static bool
is_direct(const struct om_conv *v)
{
	return om_window_is_point(&v->w) && om_window_volume(v->w.in) == om_window_volume(v->w.out);
}

/* One input channel per group: there are no sums to compute before the scatter-add. */
static bool
is_scattered(const struct om_conv *v)
{
	return v->kin == 1;
}

uint64_t
om_conv_transpose_workspace(const struct om_conv *v)
{
	if (is_direct(v))
		return om_gemm_workspace(v->kout, om_window_volume(v->w.in), v->kin);
	return is_scattered(v) ? 0 : om_size_sum(col2im_values(v), om_gemm_workspace(channels_at_once(v)
		* om_window_volume(v->w.kernel), om_window_volume(v->w.in), v->kin));
}

static void
scatter_add_group(const struct om_conv *v, const struct om_images *p, const float *x, const float *w, float *out)
{
	const int64_t taps = om_window_volume(v->w.kernel), in = om_window_volume(v->w.in);
	const int64_t step = channels_at_once(v), volume = om_window_volume(v->w.out);
	float *values = p->room;

	if (is_direct(v)) {
		const om_gemm g = {
			.m = v->kout, .n = in, .k = v->kin, .a = w, .a_row = 1, .a_col = v->kout, .b = x, .b_row = in,
			.b_col = 1, .c = out, .c_row = in, .alpha = 1, .add = true,
		};
		om_kernels_get()->gemm(&g, p->room);
		return;
	}
	for (int64_t k = 0; k < v->kout * taps && is_scattered(v); k++)
		scatter_add_floats(&v->w, k % taps, x, w[k], out + k / taps * volume);
	if (is_scattered(v))
		return;
	for (int64_t first = 0; first < v->kout; first += step) {
		const int64_t n = step < v->kout - first ? step : v->kout - first;
		const om_gemm g = {
			.m = n * taps, .n = in, .k = v->kin, .a = w + first * taps, .a_row = 1,
			.a_col = v->kout * taps, .b = x, .b_row = in, .b_col = 1, .c = values, .c_row = in,
			.alpha = 1,
		};
		om_kernels_get()->gemm(&g, (char *)p->room + col2im_values(v));
		for (int64_t k = 0; k < n * taps; k++)
			scatter_add_floats(&v->w, k % taps, values + k * in, 1, out + (first + k / taps) * volume);
	}
}

void
om_conv_transpose_scatter(const struct om_conv *v, const struct om_images *p)
{
	const int64_t in = om_window_volume(v->w.in), out = om_window_volume(v->w.out);

	for (int64_t i = 0; i < v->batch * v->cout; i++)
		om_conv_fill(p->out + i * out, out, p->bias ? p->bias[i % v->cout] : 0);
	for (int64_t i = 0; i < v->batch * v->group; i++)
		scatter_add_group(v, p, p->x + i * v->kin * in,
			p->w + i % v->group * v->kin * v->kout * om_window_volume(v->w.kernel),
			p->out + i * v->kout * out);
}

void
om_conv_transpose_scatter_f64(const struct om_conv *v, const double *x, const double *w, const double *bias,
	double *out)
{
	const int64_t taps = om_window_volume(v->w.kernel), in = om_window_volume(v->w.in);
	const int64_t volume = om_window_volume(v->w.out);

	for (int64_t i = 0; i < v->batch * v->cout * volume; i++)
		out[i] = bias ? bias[i / volume % v->cout] : 0;
	for (int64_t i = 0; i < v->batch * v->cin; i++)
		for (int64_t k = 0; k < v->kout * taps; k++) {
			const int64_t ci = i % v->cin, co = ci / v->kin * v->kout + k / taps;
			scatter_add_doubles(&v->w, k % taps, x + i * in, w[ci * v->kout * taps + k],
				out + (i / v->cin * v->cout + co) * volume);
		}
}
