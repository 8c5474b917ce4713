/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of channels-last images in narrow groups of channels.
 *
 * Groups of 2, 4 or 8 channels in and out that fit into a vector: a vector is some channels of a pixel, and each
 * input channel is spread over its group by a shuffle.  Kernels 3 wide are unrolled, so that a spread vector serves
 * all taps of its line.
 *
 * Any other group is a matrix product of the pixels under a tile with the weights of the group: rows are pixels,
 * columns are output channels, of which 16 are computed, and an input channel is broadcast. */
#include <config.h>

#include "kernels/cpu/grouped.h"
#include "kernels/cpu/tile_epilogue.h"

enum { PANEL = OM_GROUP_MOST, TILE = 8, MOST_LINES = 49, MOST_PIXELS = (TILE - 1) * 2 + 3 };

static int64_t
channels_in(const om_grouped *d)
{
	return d->groups * d->inputs;
}

static int64_t
channels_out(const om_grouped *d)
{
	return d->groups * d->outputs;
}

/* An output line. */
struct place {
	const om_grouped *d;
	const float *x;           /* the image */
	int64_t oz, oy;
};

/* The line under line `k` of the window; NULL outside of the image. */
static const float *
line_at(const struct place *p, int64_t k)
{
	const om_geometry *g = &p->d->g;
	const int64_t iz = p->oz * g->stride[0] - g->begin[0] + k / g->kernel[1] * g->dilation[0];
	const int64_t iy = p->oy * g->stride[1] - g->begin[1] + k % g->kernel[1] * g->dilation[1];

	if (iz < 0 || iz >= g->in[0] || iy < 0 || iy >= g->in[1])
		return NULL;
	return p->x + (iz * g->in[1] + iy) * g->in[2] * channels_in(p->d);
}

/* The lines in the image under a window, with the index of their first tap. */
struct lines {
	int64_t n;
	const float *x[MOST_LINES];
	int64_t tap[MOST_LINES];
};

static void
lines_of(const struct place *p, struct lines *l)
{
	const om_geometry *g = &p->d->g;

	l->n = 0;
	for (int64_t k = 0; k < g->kernel[0] * g->kernel[1]; k++)
		if ((l->x[l->n] = line_at(p, k)))
			l->tap[l->n++] = k * g->kernel[2];
}

/* ---- Groups in a vector. ---- */

/* For vec_permute(): lane i becomes the first input of its group of `n` lanes; adding k makes it input k. */
INLINE ivec
firsts(const int n)
{
	ivec from;

	for (int i = 0; i < VL; i++)
		from[i] = i / n * n;
	return from;
}

/* Store `n` of the lanes. */
INLINE void
store(float *y, vec x, int64_t n)
{
	if (n >= VL)
		vec_store(y, x);
	else
		vec_store_some(y, x, n);
}

INLINE vec
load(const float *x, int64_t n)
{
	return n >= VL ? vec_load(x) : vec_load_some(x, n);
}

/* Lane i becomes input `k` of its group of 4 lanes; these shuffles stay within 128 bits. */
INLINE vec
in_fours(vec x, const int k)
{
#define IN_FOURS(i, k) ((i) / 4 * 4 + (k))
	switch (k) {
	case 0: return SHUFFLE(x, x, IN_FOURS, 0);
	case 1: return SHUFFLE(x, x, IN_FOURS, 1);
	case 2: return SHUFFLE(x, x, IN_FOURS, 2);
	default: return SHUFFLE(x, x, IN_FOURS, 3);
	}
}

/* Input `k` of each group of `n` channels, of `left` at x, for all lanes of the group.  A group that is a vector needs no shuffle. */
INLINE vec
spread(const float *x, int64_t left, const int k, const int n)
{
	if (n == VL)
		return vec_all(x[k]);
	return n == 4 ? in_fours(load(x, left), k) : vec_permute(load(x, left), firsts(n) + k);
}

/* `nx` outputs of a kernel 3 wide, VL channels from `c` on, of which `left` exist.  The pixels are in at[]. */
INLINE void
tile3(const om_grouped *d, const struct lines *l, const float *const *at, int64_t c, int64_t left, float *y, const int nx,
	const int s, const int n)
{
	const int ni = (nx - 1) * s + 3;
	const int64_t taps = d->g.kernel[0] * d->g.kernel[1] * d->g.kernel[2];
	const float *panel = d->packed + c / PANEL * taps * n * PANEL + c % PANEL;
	vec sum[TILE];

	UNROLL
	for (int i = 0; i < nx; i++)
		sum[i] = load(d->bias + c, left);
	for (int64_t r = 0; r < l->n; r++, at += ni) {
		const float *w = panel + l->tap[r] * n * PANEL;
		UNROLL
		for (int k = 0; k < n; k++, w += PANEL) {
			const vec w0 = vec_load(w), w1 = vec_load(w + n * PANEL), w2 = vec_load(w + 2 * n * PANEL);
			UNROLL
			for (int i = 0; i < ni; i++) {
				const vec x = spread(at[i] + c, left, k, n);
				if (i % s == 0 && i / s < nx)
					sum[i / s] += x * w0;
				if (i >= 1 && (i - 1) % s == 0 && (i - 1) / s < nx)
					sum[(i - 1) / s] += x * w1;
				if (i >= 2 && (i - 2) % s == 0 && (i - 2) / s < nx)
					sum[(i - 2) / s] += x * w2;
			}
		}
	}
	UNROLL
	for (int i = 0; i < nx; i++)
		store(y + i * channels_out(d) + c, tile_clamp(&d->epilogue, sum[i]), left);
}

typedef void tile_fn(const om_grouped *d, const struct lines *l, const float *const *at, float *y);

#define TILE_FN(nx, s, n)                                                      \
NOINLINE void                                                                  \
tile_##nx##_##s##_##n(const om_grouped *d, const struct lines *l, const float *const *at, float *y) \
{                                                                              \
	const int64_t channels = channels_in(d);                               \
	int64_t c = 0;                                                         \
	for (; c + VL <= channels; c += VL)                                    \
		tile3(d, l, at, c, VL, y, nx, s, n);                           \
	if (c < channels)                                                      \
		tile3(d, l, at, c, channels - c, y, nx, s, n);                 \
}
#define TILE_FNS(s, n)                                                         \
	TILE_FN(1, s, n) TILE_FN(2, s, n) TILE_FN(3, s, n) TILE_FN(4, s, n)    \
	TILE_FN(5, s, n) TILE_FN(6, s, n) TILE_FN(7, s, n) TILE_FN(8, s, n)    \
	static tile_fn *const tiles_##s##_##n[TILE] = {tile_1_##s##_##n, tile_2_##s##_##n, tile_3_##s##_##n, \
		tile_4_##s##_##n, tile_5_##s##_##n, tile_6_##s##_##n, tile_7_##s##_##n, tile_8_##s##_##n};
/* Eight channels do not fit into the shortest vectors: there, what is made for them is never called. */
enum { EIGHT = VL < 8 ? VL : 8 };
TILE_FNS(1, 4)
TILE_FNS(2, 4)
TILE_FNS(1, EIGHT)
TILE_FNS(2, EIGHT)

static int
is_unrolled(const om_grouped *d)
{
	return om_grouped_shares(d->inputs, d->outputs) && d->inputs >= 4 && d->inputs <= VL && d->g.kernel[2] == 3
	    && d->g.stride[2] <= 2 && d->g.dilation[2] == 1 && d->g.kernel[0] * d->g.kernel[1] <= MOST_LINES;
}

/* The pixels under outputs [ox, ox + nx) of a line. */
static void
pixels_of(const om_grouped *d, const struct lines *l, int64_t ox, int64_t nx, const float **at)
{
	const om_geometry *g = &d->g;
	const int64_t n = (nx - 1) * g->stride[2] + 3, first = ox * g->stride[2] - g->begin[2];

	for (int64_t r = 0; r < l->n; r++)
		for (int64_t i = first; i < first + n; i++)
			*at++ = i >= 0 && i < g->in[2] ? l->x[r] + i * channels_in(d) : d->zeros;
}

static void
unrolled_line(const om_grouped *d, const struct lines *l, float *y)
{
	tile_fn *const *fns = d->inputs == 4 ? d->g.stride[2] == 1 ? tiles_1_4 : tiles_2_4
		: d->g.stride[2] == 1 ? tiles_1_EIGHT : tiles_2_EIGHT;
	const float *at[MOST_LINES * MOST_PIXELS];
	const int64_t n = (d->g.out[2] + TILE - 1) / TILE;

	for (int64_t k = 0; k < n; k++) {
		const int64_t ox = d->g.out[2] * k / n, nx = d->g.out[2] * (k + 1) / n - ox;
		pixels_of(d, l, ox, nx, at);
		fns[nx - 1](d, l, at, y + ox * channels_out(d));
	}
}

static void
unrolled_lines(const om_grouped *d, const float *x, float *y, int64_t first, int64_t end)
{
	struct lines l;

	for (int64_t k = first; k < end; k++) {
		lines_of(&(struct place){d, x, k / d->g.out[1], k % d->g.out[1]}, &l);
		unrolled_line(d, &l, y + k * d->g.out[2] * channels_out(d));
	}
}

/* ---- Some outputs of a line, for any window. ---- */

/* Pixels of a tile of broadcasts, and vectors of a panel; pixels of a tile of shuffles. */
enum { NV = PANEL / VL, ROWS = VL == 16 ? 14 : VL == 8 ? 6 : 3, FEW = 4 };

struct rows {
	struct place at;
	int64_t ox, n;            /* the first of `n` outputs */
};

/* The pixels of tap `kx` of a line for `most` outputs; after the last one, its pixel again. */
INLINE void
row_pixels(const struct rows *t, const float *line, int64_t kx, const int most, const float **at)
{
	const om_grouped *d = t->at.d;
	const om_geometry *g = &d->g;
	const int64_t first = t->ox * g->stride[2] - g->begin[2] + kx * g->dilation[2];
	const int64_t last = first + (t->n - 1) * g->stride[2], step = channels_in(d);
	const int is_inner = first >= 0 && last < g->in[2];

	for (int i = 0; i < most; i++) {
		const int64_t ix = i < t->n ? first + i * g->stride[2] : last;
		at[i] = is_inner || (ix >= 0 && ix < g->in[2]) ? line + ix * step : d->zeros;
	}
}

/* ---- Groups in a vector, any window. ---- */

INLINE void
few(const struct rows *t, int64_t c, int64_t left, float *y, const int n)
{
	const om_grouped *d = t->at.d;
	const int64_t high = d->g.kernel[0] * d->g.kernel[1], wide = d->g.kernel[2];
	vec sum[FEW];

	UNROLL
	for (int i = 0; i < FEW; i++)
		sum[i] = load(d->bias + c, left);
	for (int64_t r = 0; r < high; r++) {
		const float *line = line_at(&t->at, r), *at[FEW];
		const float *w = d->packed + (c / PANEL * high + r) * wide * n * PANEL + c % PANEL;
		for (int64_t kx = 0; line && kx < wide; kx++) {
			vec x[FEW];
			row_pixels(t, line, kx, FEW, at);
			UNROLL
			for (int i = 0; i < FEW; i++)
				x[i] = load(at[i] + c, left);
			ivec from = firsts(n);
			for (int k = 0; k < n; k++, w += PANEL, from += 1)
				UNROLL
				for (int i = 0; i < FEW; i++)
					sum[i] += vec_permute(x[i], from) * vec_load(w);
		}
	}
	for (int i = 0; i < t->n; i++)
		store(y + i * channels_out(d) + c, tile_clamp(&d->epilogue, sum[i]), left);
}

#define FEW_FN(n)                                                              \
NOINLINE void                                                                  \
few_##n(const struct rows *t, float *y)                                        \
{                                                                              \
	const int64_t channels = channels_in(t->at.d);                         \
	for (int64_t c = 0; c < channels; c += VL)                             \
		few(t, c, channels - c, y, n);                                 \
}
FEW_FN(2)
FEW_FN(4)
FEW_FN(EIGHT)

static void
few_outputs(const struct rows *t, float *y)
{
	if (t->at.d->inputs == 2)
		few_2(t, y);
	else if (t->at.d->inputs == 4)
		few_4(t, y);
	else
		few_EIGHT(t, y);
}

/* ---- Groups by broadcasts. ---- */

/* Panel `p`, whose inputs are from channel `c` on: one group, or groups of `width` lanes. */
INLINE void
row_sums(const struct rows *t, int64_t p, int64_t c, vec sum[ROWS][NV], const int width)
{
	const om_grouped *d = t->at.d;
	const int64_t high = d->g.kernel[0] * d->g.kernel[1], wide = d->g.kernel[2];

	for (int64_t r = 0; r < high; r++) {
		const float *line = line_at(&t->at, r), *at[ROWS];
		const float *w = d->packed + (p * high + r) * wide * d->inputs * PANEL;
		for (int64_t kx = 0; line && kx < wide; kx++) {
			row_pixels(t, line + c, kx, ROWS, at);
			for (int64_t k = 0; k < d->inputs; k++, w += PANEL) {
				vec tap[NV];
				UNROLL
				for (int v = 0; v < NV; v++)
					tap[v] = vec_load(w + v * VL);
				UNROLL
				for (int i = 0; i < ROWS; i++)
					UNROLL
					for (int v = 0; v < NV; v++)
						sum[i][v] += at[i][v * VL / width * width + k] * tap[v];
			}
		}
	}
}

/* Panel `p`; its outputs are `n` channels from `o` on. */
INLINE void
panel_rows(const struct rows *t, int64_t p, int64_t c, int64_t o, int64_t n, float *y, const int width)
{
	const om_grouped *d = t->at.d;
	vec sum[ROWS][NV];

	UNROLL
	for (int v = 0; v < NV; v++) {
		const int64_t left = n - v * VL;
		const vec bias = left > 0 ? load(d->bias + o + v * VL, left) : vec_all(0);
		UNROLL
		for (int i = 0; i < ROWS; i++)
			sum[i][v] = bias;
	}
	row_sums(t, p, c, sum, width);
	UNROLL
	for (int i = 0; i < ROWS; i++)
		UNROLL
		for (int v = 0; v < NV; v++)
			if (i < t->n && n > v * VL)
				store(y + i * channels_out(d) + o + v * VL, tile_clamp(&d->epilogue, sum[i][v]), n - v * VL);
}

NOINLINE void
panel_of_one(const struct rows *t, int64_t p, float *y)
{
	panel_rows(t, p, p * t->at.d->inputs, p * t->at.d->outputs, t->at.d->outputs, y, PANEL);
}

/* Two groups of 8, where a vector has no room for one. */
NOINLINE void
panel_of_eights(const struct rows *t, int64_t p, float *y)
{
	panel_rows(t, p, p * PANEL, p * PANEL, PANEL, y, 8);
}

/* The last panel may have one group of 8. */
NOINLINE void
panel_of_eight(const struct rows *t, int64_t p, float *y)
{
	panel_rows(t, p, p * PANEL, p * PANEL, 8, y, PANEL);
}

static void
panel_outputs(const struct rows *t, float *y)
{
	const om_grouped *d = t->at.d;
	const int64_t panels = om_grouped_panels(d->groups, d->inputs, d->outputs);

	for (int64_t p = 0; p < panels; p++) {
		if (!om_grouped_shares(d->inputs, d->outputs))
			panel_of_one(t, p, y);
		else if (2 * p + 1 < d->groups)
			panel_of_eights(t, p, y);
		else
			panel_of_eight(t, p, y);
	}
}

/* ---- Lines. ---- */

static void
lines(const om_grouped *d, const float *x, float *y, int64_t first, int64_t end)
{
	const bool fits = om_grouped_shares(d->inputs, d->outputs) && d->inputs <= VL;
	const int64_t n = d->g.out[2], most = fits ? FEW : ROWS, tiles = (n + most - 1) / most;

	if (is_unrolled(d)) {
		unrolled_lines(d, x, y, first, end);
	} else {
		for (int64_t k = first * tiles; k < end * tiles; k++) {
			const int64_t line = k / tiles, ox = n * (k % tiles) / tiles;
			const struct rows t = {{d, x, line / d->g.out[1], line % d->g.out[1]}, ox, n * (k % tiles + 1) / tiles - ox};
			(fits ? few_outputs : panel_outputs)(&t, y + (line * n + ox) * channels_out(d));
		}
	}
	for (int64_t k = first * n; k < end * n && is_left_by_clamp(&d->epilogue); k++)
		activate_row(y + k * channels_out(d), channels_out(d), &d->epilogue);
}

extern const om_grouped_kernels OM_TABLE(om_grouped_kernels);

const om_grouped_kernels OM_TABLE(om_grouped_kernels) = {.lines = lines};
