/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolutions of 8-bit integers: an input channel for each output channel.  The elements of a tap are
 * multiplied in lanes of 32 bits; a tap outside of the image is one of zero points. */
#include <config.h>

#include "kernels/cpu/qfinish.h"

enum {
	VECS = 4,                 /* of channels that are computed at once */
	TAPS = 64,                /* whose positions are found before */
};

struct pixel {
	const om_qlayer *l;
	const om_qlayer_data *d;
	const int32_t *wide;      /* weights minus zero points: [taps][channels of the lists] */
	const uint8_t *image;
	int64_t first[OM_LAYER_AXES];         /* of the window */
	int64_t at;               /* the first element of the output */
	const uint8_t *tap[TAPS]; /* if the window is inside of the image */
	int64_t taps;             /* 0: they are not known */
};

/* The position of a tap in the image; NULL outside of it. */
INLINE const uint8_t *
tap_at(const struct pixel *p, int64_t kz, int64_t ky, int64_t kx)
{
	const om_layer *l = &p->l->shape;
	const int64_t z = p->first[0] + kz * l->dilation[0], y = p->first[1] + ky * l->dilation[1];
	const int64_t x = p->first[2] + kx * l->dilation[2];
	const bool inside = z >= 0 && z < l->in[0] && y >= 0 && y < l->in[1] && x >= 0 && x < l->in[2];

	return inside ? p->image + ((z * l->in[1] + y) * l->in[2] + x) * l->channels_out : NULL;
}

INLINE void
finish(const struct pixel *p, const ivec *sum, int64_t c, int64_t n, const int vecs)
{
	UNROLL
	for (int v = 0; v < vecs; v++)
		finish_sums(p->l, p->d, sum[v], p->at + c + v * VL, c + v * VL, LEAST(n - v * VL, VL));
}

/* `vecs` whole vectors of channels from `c` on, of a window that is inside. */
INLINE void
inner_channels(const struct pixel *p, int64_t c, const int vecs, const bool is_signed)
{
	const int64_t wide = om_qlayer_channels(&p->l->shape);
	const int32_t *w = p->wide + c;
	ivec sum[VECS] = {{0}};

	for (int64_t t = 0; t < p->taps; t++, w += wide) {
		const uint8_t *x = p->tap[t] + c;
		UNROLL
		for (int v = 0; v < vecs; v++) {
			ivec a = vec_load_uint8(x + v * VL);
			if (is_signed)
				a ^= 128;
			sum[v] += vec_dot_pairs(a, ivec_load(w + v * VL));
		}
	}
	finish(p, sum, c, vecs * VL, vecs);
}

/* Channels [c, c + n), at most a vector, of any window. */
static void
some_channels(const struct pixel *p, int64_t c, int64_t n)
{
	const om_layer *l = &p->l->shape;
	const int64_t wide = om_qlayer_channels(l);
	const ivec outside = p->d->x_zero - (ivec){0}, flip = (p->l->is_signed ? 128 : 0) - (ivec){0};
	const int32_t *w = p->wide + c;
	ivec sum = {0};

	for (int64_t kz = 0; kz < l->kernel[0]; kz++)
		for (int64_t ky = 0; ky < l->kernel[1]; ky++)
			for (int64_t kx = 0; kx < l->kernel[2]; kx++, w += wide) {
				const uint8_t *x = tap_at(p, kz, ky, kx);
				ivec a = outside;
				if (x)
					a = flip ^ (n == VL ? vec_load_uint8(x + c) : vec_load_some_uint8(x + c, n));
				sum += vec_dot_pairs(a, ivec_load(w));
			}
	finish(p, &sum, c, n, 1);
}

INLINE void
run_pixel(const struct pixel *p, const bool is_signed)
{
	const int64_t n = p->l->shape.channels_out;
	int64_t c = 0;

	for (; p->taps && c + VECS * VL <= n; c += VECS * VL)
		inner_channels(p, c, VECS, is_signed);
	for (; p->taps && c + 2 * VL <= n; c += 2 * VL)
		inner_channels(p, c, 2, is_signed);
	for (; p->taps && c + VL <= n; c += VL)
		inner_channels(p, c, 1, is_signed);
	for (; c < n; c += VL)
		some_channels(p, c, LEAST(n - c, VL));
}

/* Find the taps of a window that is inside of the image, as a whole. */
static void
find_taps(struct pixel *p)
{
	const om_layer *l = &p->l->shape;
	bool inside = l->kernel[0] * l->kernel[1] * l->kernel[2] <= TAPS;

	p->taps = 0;
	for (int k = 0; k < OM_LAYER_AXES; k++)
		inside = inside && p->first[k] >= 0 && p->first[k] + (l->kernel[k] - 1) * l->dilation[k] < l->in[k];
	if (!inside)
		return;
	for (int64_t kz = 0; kz < l->kernel[0]; kz++)
		for (int64_t ky = 0; ky < l->kernel[1]; ky++) {
			const uint8_t *line = tap_at(p, kz, ky, 0);
			for (int64_t kx = 0; kx < l->kernel[2]; kx++, line += l->dilation[2] * l->channels_out)
				p->tap[p->taps++] = line;
		}
}

static void
lines(const om_qlayer *l, const om_qlayer_data *d, const int32_t *wide, int64_t image, int64_t first, int64_t end)
{
	const om_layer *s = &l->shape;
	struct pixel p = {.l = l, .d = d, .wide = wide,
		.image = (const uint8_t *)d->x + image * s->in[0] * s->in[1] * s->in[2] * s->channels_out};

	for (int64_t line = first; line < end; line++)
		for (int64_t x = 0; x < s->out[2]; x++) {
			const int64_t at[] = {line / s->out[1], line % s->out[1], x};
			for (int k = 0; k < OM_LAYER_AXES; k++)
				p.first[k] = at[k] * s->stride[k] - s->begin[k];
			p.at = ((image * s->out[0] * s->out[1] + line) * s->out[2] + x) * s->channels_out;
			find_taps(&p);
			if (l->is_signed)
				run_pixel(&p, true);
			else
				run_pixel(&p, false);
		}
}

extern const om_qdepthwise_kernels OM_TABLE(om_qdepthwise_kernels);

const om_qdepthwise_kernels OM_TABLE(om_qdepthwise_kernels) = {.lines = lines};
