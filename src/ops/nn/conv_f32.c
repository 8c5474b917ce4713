/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of float32.
 *
 * A convolution is a matrix product: weights (output channels by input channels and filter elements)
 * times the im2col matrix of the image.  That matrix is never materialized: the GEMM requests parts of
 * its rows.  If every group has a single input channel, each row of the output is summed directly.
 */
#include <config.h>

#include "kernels/cpu/kernels.h"
#include "ops/nn/conv.h"
#include "opdef/numbers.h"

/* ---- Matrix product. ---- */

/* Copy elements first, first + stride, ... at offset `at` from the start of the channels. */
static void
copy_elements(const struct om_columns *c, float *to, int64_t n, int64_t at, int64_t stride)
{
	const float *x = c->x;
	const char *bytes = c->x;

	if (c->of_bytes && stride == 1)
		om_kernels_get()->bytes(to, bytes + at, n, c->is_signed, c->zero);
	else if (c->of_bytes && c->is_signed)
		for (int64_t j = 0; j < n; j++)
			to[j] = (float)(((const int8_t *)bytes)[at + j * stride] - c->zero);
	else if (c->of_bytes)
		for (int64_t j = 0; j < n; j++)
			to[j] = (float)(((const uint8_t *)bytes)[at + j * stride] - c->zero);
	else if (stride == 1)
		memcpy(to, x + at, (size_t)n * sizeof *to);
	else
		for (int64_t j = 0; j < n; j++)
			to[j] = x[at + j * stride];
}

/* Copy n elements of a line of `width` that starts at `line`, from `first` on, `stride` apart; elements
 * outside of the line are 0. */
static void
copy_line(const struct om_columns *c, float *to, int64_t n, int64_t line, int64_t width, int64_t first,
	int64_t stride)
{
	int64_t lo = first >= 0 ? 0 : (-first + stride - 1) / stride;
	int64_t hi = first >= width ? 0 : (width - first + stride - 1) / stride;

	lo = lo < n ? lo : n;
	hi = hi < lo ? lo : hi < n ? hi : n;
	memset(to, 0, (size_t)lo * sizeof *to);
	if (lo < hi)
		copy_elements(c, to + lo, hi - lo, line + first + lo * stride, stride);
	memset(to + hi, 0, (size_t)(n - hi) * sizeof *to);
}

const float *
om_conv_im2col(const void *columns, int64_t k, int64_t n0, int64_t n, float *room)
{
	const struct om_columns *c = columns;
	const struct om_window *w = c->w;
	const int64_t kx = k % w->kernel[2], ky = k / w->kernel[2] % w->kernel[1];
	const int64_t kz = k / w->kernel[2] / w->kernel[1] % w->kernel[0];
	const int64_t channel = k / om_window_volume(w->kernel) * om_window_volume(w->in);
	int64_t ox = n0 % w->out[2], oy = n0 / w->out[2] % w->out[1], oz = n0 / w->out[2] / w->out[1];
	float *to = room;

	while (n > 0) {
		const int64_t len = n < w->out[2] - ox ? n : w->out[2] - ox;
		const int64_t iz = oz * w->stride[0] - w->begin[0] + kz * w->dilation[0];
		const int64_t iy = oy * w->stride[1] - w->begin[1] + ky * w->dilation[1];
		if (iz < 0 || iz >= w->in[0] || iy < 0 || iy >= w->in[1])
			memset(to, 0, (size_t)len * sizeof *to);
		else
			copy_line(c, to, len, channel + (iz * w->in[1] + iy) * w->in[2], w->in[2],
				ox * w->stride[2] - w->begin[2] + kx * w->dilation[2], w->stride[2]);
		to += len;
		n -= len;
		ox = 0;
		if (++oy == w->out[1]) {
			oy = 0;
			oz++;
		}
	}
	return room;
}

static void
conv_by_product(const struct om_conv *v, const struct om_images *p)
{
	const int64_t taps = om_window_volume(v->w.kernel), in = om_window_volume(v->w.in);
	const int64_t out = om_window_volume(v->w.out);
	const om_kernels *kernels = om_kernels_get();
	om_gemm g = {
		.m = v->kout, .n = out, .k = v->kin * taps, .a_row = v->kin * taps, .a_col = 1,
		.b_row = in, .b_col = 1, .c_row = out, .alpha = 1, .add = p->bias != NULL,
		.row = om_window_is_point(&v->w) ? NULL : om_conv_im2col,
	};

	for (int64_t i = 0; i < v->batch * v->group; i++) {
		const int64_t channel = i % v->group * v->kout;
		const struct om_columns columns = {.w = &v->w, .x = p->x + i * v->kin * in};
		g.a = p->w + channel * g.k;
		g.b = columns.x;
		g.rows = &columns;
		g.c = p->out + i * v->kout * out;
		for (int64_t k = 0; k < v->kout && p->bias; k++)
			om_conv_fill(g.c + k * out, out, p->bias[channel + k]);
		kernels->gemm(&g, p->room);
	}
}

/* ---- One input channel per group. ---- */

enum { MAX_TAPS = 32 };

struct line {
	const struct om_window *w;
	const float *x, *taps;        /* the channel, its filter */
	float *out;                   /* the line of the output */
	int64_t oy, oz;
	int64_t lo, hi;               /* outputs for which all filter elements along the line are inside */
	const om_kernels *kernels;
};

/* The line of the input under filter elements (kz, ky), or NULL. */
static const float *
line_under(const struct line *l, int64_t kz, int64_t ky)
{
	const struct om_window *w = l->w;
	const int64_t iz = l->oz * w->stride[0] - w->begin[0] + kz * w->dilation[0];
	const int64_t iy = l->oy * w->stride[1] - w->begin[1] + ky * w->dilation[1];

	if (iz < 0 || iz >= w->in[0] || iy < 0 || iy >= w->in[1])
		return NULL;
	return l->x + (iz * w->in[1] + iy) * w->in[2];
}

/* Compute outputs [from, to) one by one. */
static void
line_edge(const struct line *l, int64_t from, int64_t to, const float *in, const float *taps)
{
	const struct om_window *w = l->w;

	for (int64_t ox = from; ox < to; ox++)
		for (int64_t kx = 0; kx < w->kernel[2]; kx++) {
			const int64_t ix = ox * w->stride[2] - w->begin[2] + kx * w->dilation[2];
			if (ix >= 0 && ix < w->in[2])
				l->out[ox] += taps[kx] * in[ix];
		}
}

static void
line_middle(const struct line *l, const float *const *in, const float *taps, int ntap)
{
	l->kernels->taps(l->out + l->lo, l->hi - l->lo, in, taps, ntap, l->w->stride[2]);
}

static void
sum_line(const struct line *l)
{
	const struct om_window *w = l->w;
	const int64_t first = l->lo * w->stride[2] - w->begin[2];
	const float *in[MAX_TAPS];
	float taps[MAX_TAPS];
	int n = 0;

	for (int64_t kz = 0; kz < w->kernel[0]; kz++)
		for (int64_t ky = 0; ky < w->kernel[1]; ky++) {
			const float *under = line_under(l, kz, ky);
			const float *row = l->taps + (kz * w->kernel[1] + ky) * w->kernel[2];
			if (!under)
				continue;
			line_edge(l, 0, l->lo, under, row);
			line_edge(l, l->hi, w->out[2], under, row);
			for (int64_t kx = 0; kx < w->kernel[2] && l->lo < l->hi; kx++) {
				if (n == MAX_TAPS) {
					line_middle(l, in, taps, n);
					n = 0;
				}
				in[n] = under + first + kx * w->dilation[2];
				taps[n++] = row[kx];
			}
		}
	if (n)
		line_middle(l, in, taps, n);
}

static void
conv_by_lines(const struct om_conv *v, const struct om_images *p)
{
	const struct om_window *w = &v->w;
	const int64_t taps = om_window_volume(w->kernel), in = om_window_volume(w->in);
	struct line l = {.w = w, .out = p->out, .kernels = om_kernels_get()};
	int64_t none;

	om_window_range(w, 2, 0, &l.lo, &none);
	om_window_range(w, 2, w->kernel[2] - 1, &none, &l.hi);
	if (l.hi < l.lo)
		l.hi = l.lo;
	for (int64_t i = 0; i < v->batch * v->cout; i++) {
		const int64_t channel = i % v->cout;
		l.x = p->x + (i / v->cout * v->cin + channel / v->kout) * in;
		l.taps = p->w + channel * taps;
		for (l.oz = 0; l.oz < w->out[0]; l.oz++)
			for (l.oy = 0; l.oy < w->out[1]; l.oy++, l.out += w->out[2]) {
				om_conv_fill(l.out, w->out[2], p->bias ? p->bias[channel] : 0);
				sum_line(&l);
			}
	}
}

static bool
is_by_lines(const struct om_conv *v)
{
	return v->kin == 1 && v->kout <= 2;
}

/* ---- Outputs smaller than the kernel. ----
 *
 * These include gradients of weights, which are convolutions with images as kernels.  The outputs of
 * all images of the batch are columns of one product; with one input channel per group, each position
 * of the output is a sum computed line by line. */

enum { SMALL = 32 };

static bool
is_small(const struct om_conv *v)
{
	return om_window_volume(v->w.out) <= SMALL && v->w.kernel[2] > v->w.out[2];
}

struct batch {
	const struct om_window *w;
	const float *x;               /* channels of the group in the first image */
	int64_t step, volume;         /* elements between images, positions of an output */
};

/* The offsets of the input elements under filter element `k` for all positions of the output; -1:
 * outside. */
static void
places_under(const struct batch *b, int64_t k, int64_t at[SMALL])
{
	const struct om_window *w = b->w;
	const int64_t kx = k % w->kernel[2], ky = k / w->kernel[2] % w->kernel[1];
	const int64_t kz = k / w->kernel[2] / w->kernel[1] % w->kernel[0];
	const int64_t channel = k / om_window_volume(w->kernel) * om_window_volume(w->in);
	int64_t n = 0;

	for (int64_t oz = 0; oz < w->out[0]; oz++)
		for (int64_t oy = 0; oy < w->out[1]; oy++)
			for (int64_t ox = 0; ox < w->out[2]; ox++) {
				const int64_t iz = oz * w->stride[0] - w->begin[0] + kz * w->dilation[0];
				const int64_t iy = oy * w->stride[1] - w->begin[1] + ky * w->dilation[1];
				const int64_t ix = ox * w->stride[2] - w->begin[2] + kx * w->dilation[2];
				const bool inside = iz >= 0 && iz < w->in[0] && iy >= 0 && iy < w->in[1]
					&& ix >= 0 && ix < w->in[2];
				at[n++] = inside ? channel + (iz * w->in[1] + iy) * w->in[2] + ix : -1;
			}
}

static const float *
batch_row(const void *rows, int64_t k, int64_t n0, int64_t n, float *room)
{
	const struct batch *b = rows;
	int64_t at[SMALL], place = n0 % b->volume;
	const float *x = b->x + n0 / b->volume * b->step;

	places_under(b, k, at);
	for (int64_t j = 0; j < n; x += b->step, place = 0)
		for (; place < b->volume && j < n; place++)
			room[j++] = at[place] < 0 ? 0 : x[at[place]];
	return room;
}

/* Bytes of the output columns of a group, which precede the workspace of the product. */
static uint64_t
batch_columns(const struct om_conv *v)
{
	return om_piece_size((uint64_t)(v->kout * v->batch * om_window_volume(v->w.out)) * sizeof(float));
}

static void
conv_by_batch(const struct om_conv *v, const struct om_images *p)
{
	const int64_t taps = om_window_volume(v->w.kernel), in = om_window_volume(v->w.in);
	const int64_t volume = om_window_volume(v->w.out), n = v->batch * volume;
	float *columns = p->room;

	for (int64_t i = 0; i < v->group; i++) {
		const struct batch b = {&v->w, p->x + i * v->kin * in, v->cin * in, volume};
		const om_gemm g = {
			.m = v->kout, .n = n, .k = v->kin * taps, .a = p->w + i * v->kout * v->kin * taps,
			.a_row = v->kin * taps, .a_col = 1, .row = batch_row, .rows = &b, .c = columns, .c_row = n,
			.alpha = 1,
		};
		om_kernels_get()->gemm(&g, (char *)p->room + batch_columns(v));
		for (int64_t k = 0; k < v->kout * n; k++) {
			const int64_t channel = i * v->kout + k / n, image = k % n / volume;
			p->out[(image * v->cout + channel) * volume + k % volume] = columns[k]
				+ (p->bias ? p->bias[channel] : 0);
		}
	}
}

/* Dot product of a line of the filter and the input, whose elements are `step` apart. */
static float
dot_line(const float *x, int64_t step, const float *taps, int64_t n)
{
	float sum = 0;

	if (step == 1)
		return om_kernels_get()->dot(x, taps, n);
	for (int64_t k = 0; k < n; k++)
		sum += x[k * step] * taps[k];
	return sum;
}

float
om_conv_dot(const struct om_window *w, const float *x, const float *taps, const int64_t *o)
{
	const int64_t step = w->dilation[2], first = o[2] * w->stride[2] - w->begin[2];
	const int64_t lo = first >= 0 ? 0 : (-first + step - 1) / step;
	const int64_t end = first >= w->in[2] ? 0 : (w->in[2] - first + step - 1) / step;
	const int64_t n = (end < w->kernel[2] ? end : w->kernel[2]) - lo;
	double sum = 0;

	for (int64_t kz = 0; kz < w->kernel[0] && n > 0; kz++)
		for (int64_t ky = 0; ky < w->kernel[1]; ky++) {
			const int64_t iz = o[0] * w->stride[0] - w->begin[0] + kz * w->dilation[0];
			const int64_t iy = o[1] * w->stride[1] - w->begin[1] + ky * w->dilation[1];
			if (iz >= 0 && iz < w->in[0] && iy >= 0 && iy < w->in[1])
				sum += dot_line(x + (iz * w->in[1] + iy) * w->in[2] + first + lo * step, step,
					taps + (kz * w->kernel[1] + ky) * w->kernel[2] + lo, n);
		}
	return (float)sum;
}

static void
conv_by_dots(const struct om_conv *v, const struct om_images *p)
{
	const struct om_window *w = &v->w;
	const int64_t taps = om_window_volume(w->kernel), in = om_window_volume(w->in);
	float *out = p->out;

	for (int64_t i = 0; i < v->batch * v->cout; i++) {
		const int64_t channel = i % v->cout;
		const float *x = p->x + (i / v->cout * v->cin + channel / v->kout) * in;
		for (int64_t at = 0, n = om_window_volume(w->out); at < n; at++) {
			const int64_t o[] = {at / w->out[2] / w->out[1], at / w->out[2] % w->out[1], at % w->out[2]};
			*out++ = om_conv_dot(w, x, p->w + channel * taps, o) + (p->bias ? p->bias[channel] : 0);
		}
	}
}

/* ---- Selection of the algorithm. ---- */

static bool
is_by_batch(const struct om_conv *v)
{
	return is_small(v) && v->batch > 1 && !is_by_lines(v);
}

void
om_conv_f32(const struct om_conv *v, const struct om_images *p)
{
	if (is_by_batch(v))
		conv_by_batch(v, p);
	else if (!is_by_lines(v))
		conv_by_product(v, p);
	else if (is_small(v))
		conv_by_dots(v, p);
	else
		conv_by_lines(v, p);
}

uint64_t
om_conv_workspace(const struct om_conv *v)
{
	const int64_t n = om_window_volume(v->w.out), k = v->kin * om_window_volume(v->w.kernel);

	if (is_by_lines(v))
		return 0;
	return is_by_batch(v) ? om_size_sum(batch_columns(v), om_gemm_workspace(v->kout, v->batch * n, k))
		: om_gemm_workspace(v->kout, n, k);
}
