/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolutions of channels-last images: a vector is some channels of a pixel.
 *
 * Up to 8 outputs of a line are a tile, whose sums stay in registers while the taps pass; the loop over channels
 * is inside of a tile, and at the edges of an image the pixels of a tile are in a table in which padding is a
 * pixel of zeros.  Kernels 3, 5 and 7 wide with stride 1 or 2 are unrolled, and each pixel is loaded once for all
 * taps of its line; any other window has smaller tiles.  Where lines are short, blocks of channels are the
 * outermost loop, so that the lines under a window stay in the first cache. */
#include <config.h>

#include "kernels/cpu/depthwise.h"
#include "kernels/cpu/tile_epilogue.h"

enum { MOST_LINES = 49, WIDEST = 7, TILE = 8, MOST_PIXELS = (TILE - 1) * 2 + WIDEST, BLOCK = 128 };

/* The lines under the window of an output line, with their weights. */
struct lines {
	int64_t n;
	const float *x[MOST_LINES], *w[MOST_LINES];
};

static void
lines_of(const om_depthwise *d, const float *x, int64_t oz, int64_t oy, struct lines *l)
{
	const om_geometry *g = &d->g;
	int64_t z0, z1, y0, y1;

	l->n = 0;
	om_taps_inside(g, 0, oz, 0, 0, &z0, &z1);
	om_taps_inside(g, 1, oy, 0, 0, &y0, &y1);
	for (int64_t z = z0; z < z1; z++)
		for (int64_t y = y0; y < y1; y++, l->n++) {
			const int64_t iz = oz * g->stride[0] - g->begin[0] + z * g->dilation[0];
			const int64_t iy = oy * g->stride[1] - g->begin[1] + y * g->dilation[1];
			l->x[l->n] = x + (iz * g->in[1] + iy) * g->in[2] * d->channels;
			l->w[l->n] = d->packed + (z * g->kernel[1] + y) * g->kernel[2] * d->channels;
		}
}

/* ---- Tiles of unrolled kernels. ---- */

struct tile {
	const om_depthwise *d;
	const struct lines *l;
	const float **at;         /* pixels of each line; `is_inner`: only the first, the others follow it */
	int64_t c0, c1;           /* channels, at least VL */
};

INLINE void
line_taps(const struct tile *t, const float **at, const float *w, int64_t c, vec *sum, const int nx, const int k, const int s,
	const int is_inner)
{
	const int64_t step = t->d->channels;
	const float *next = at[0] + c;
	vec tap[WIDEST];

	UNROLL
	for (int j = 0; j < k; j++, w += step)
		tap[j] = vec_load(w + c);
	UNROLL
	for (int i = 0; i < (nx - 1) * s + k; i++) {
		const vec x = vec_load(is_inner ? next : at[i] + c);
		if (is_inner) {
			next += step;
			OPAQUE(next);
		}
		UNROLL
		for (int j = 0; j < k; j++)
			if (i >= j && (i - j) % s == 0 && (i - j) / s < nx)
				sum[(i - j) / s] += x * tap[j];
	}
}

INLINE void
tile_of(const struct tile *t, float *y, const int nx, const int k, const int s, const int is_inner)
{
	const om_depthwise *d = t->d;

	for (int64_t c = t->c0; c < t->c1; c += VL) {
		const float **at = t->at;
		vec sum[TILE];
		if (c + VL > t->c1)
			c = t->c1 - VL;
		UNROLL
		for (int i = 0; i < nx; i++)
			sum[i] = vec_load(d->bias + c);
		for (int64_t r = 0; r < t->l->n; r++, at += (nx - 1) * s + k)
			line_taps(t, at, t->l->w[r], c, sum, nx, k, s, is_inner);
		store_tile(&d->epilogue, sum, nx, y + c, d->channels);
	}
}

typedef void tile_fn(const struct tile *t, float *y);

#define TILE_FN(nx, k, s)                                                      \
NOINLINE void                                                                  \
inner_##nx##_##k##_##s(const struct tile *t, float *y)                         \
{                                                                              \
	tile_of(t, y, nx, k, s, 1);                                            \
}                                                                              \
NOINLINE void                                                                  \
outer_##nx##_##k##_##s(const struct tile *t, float *y)                         \
{                                                                              \
	tile_of(t, y, nx, k, s, 0);                                            \
}
#define TILE_FNS(k, s)                                                         \
	TILE_FN(1, k, s) TILE_FN(2, k, s) TILE_FN(3, k, s) TILE_FN(4, k, s)    \
	TILE_FN(5, k, s) TILE_FN(6, k, s) TILE_FN(7, k, s) TILE_FN(8, k, s)
TILE_FNS(3, 1)
TILE_FNS(3, 2)
TILE_FNS(5, 1)
TILE_FNS(5, 2)
TILE_FNS(7, 1)
TILE_FNS(7, 2)

#define ENTRY(kind, k, s)                                                      \
	{kind##_1_##k##_##s, kind##_2_##k##_##s, kind##_3_##k##_##s, kind##_4_##k##_##s, \
	 kind##_5_##k##_##s, kind##_6_##k##_##s, kind##_7_##k##_##s, kind##_8_##k##_##s}
#define ENTRIES(k, s)  {ENTRY(outer, k, s), ENTRY(inner, k, s)}

/* By half the width of the kernel, the stride, the place; and the number of outputs. */
static tile_fn *const tile_fns[3][2][2][TILE] = {
	{ENTRIES(3, 1), ENTRIES(3, 2)},
	{ENTRIES(5, 1), ENTRIES(5, 2)},
	{ENTRIES(7, 1), ENTRIES(7, 2)},
};

static int
is_unrolled(const om_depthwise *d)
{
	const int64_t k = d->g.kernel[2];

	return (k == 3 || k == 5 || k == 7) && d->g.stride[2] <= 2 && d->g.dilation[2] == 1
	    && d->g.kernel[0] * d->g.kernel[1] <= MOST_LINES && d->channels >= VL;
}

/* The pixels under outputs [ox, ox + nx) of a line; true if all are in the image. */
static int
pixels_of(const om_depthwise *d, const struct lines *l, int64_t ox, int64_t nx, const float **at)
{
	const om_geometry *g = &d->g;
	const int64_t n = (nx - 1) * g->stride[2] + g->kernel[2], first = ox * g->stride[2] - g->begin[2];
	const int is_inner = first >= 0 && first + n <= g->in[2];

	const int64_t lo = first < 0 ? -first : 0, hi = g->in[2] - first, lines = l->n, channels = d->channels;
	const float *const zeros = d->zeros;

	for (int64_t r = 0; r < lines; r++, at += n) {
		const float *x = l->x[r] + first * channels;
		at[0] = lo == 0 && hi > 0 ? x : zeros;
		for (int64_t i = 1; i < n && !is_inner; i++) {
			x += channels;
			at[i] = i >= lo && i < hi ? x : zeros;
		}
	}
	return is_inner;
}

static void
unrolled_line(const om_depthwise *d, const struct lines *l, int64_t c0, int64_t c1, float *y)
{
	const float *at[MOST_LINES * MOST_PIXELS];
	const int64_t n = (d->g.out[2] + TILE - 1) / TILE;

	for (int64_t k = 0; k < n; k++) {
		const int64_t ox = d->g.out[2] * k / n, nx = d->g.out[2] * (k + 1) / n - ox;
		const int is_inner = pixels_of(d, l, ox, nx, at);
		const struct tile t = {d, l, at, c0, c1};
		float *to = y + ox * d->channels;
		tile_fns[d->g.kernel[2] / 2 - 1][d->g.stride[2] - 1][is_inner][nx - 1](&t, to);
		for (int64_t i = 0; i < nx && is_left_to_rows(&d->epilogue); i++)
			activate_row(to + i * d->channels + c0, c1 - c0, &d->epilogue);
	}
}

/* Blocks of channels for which the lines under a window take about half of the first cache. */
static int64_t
blocks_of(const om_depthwise *d)
{
	const int64_t n = d->channels / BLOCK;

	return d->g.out[2] >= 56 || n < 1 ? 1 : n;
}

static void
unrolled_lines(const om_depthwise *d, const float *x, float *y, int64_t first, int64_t end)
{
	const int64_t blocks = blocks_of(d), vectors = d->channels / VL;
	struct lines l;

	for (int64_t b = 0; b < blocks; b++) {
		const int64_t c0 = vectors * b / blocks * VL;
		const int64_t c1 = b + 1 < blocks ? vectors * (b + 1) / blocks * VL : d->channels;
		for (int64_t k = first; k < end; k++) {
			lines_of(d, x, k / d->g.out[1], k % d->g.out[1], &l);
			unrolled_line(d, &l, c0, c1, y + k * d->g.out[2] * d->channels);
		}
	}
}

/* ---- Any window. ---- */

enum { FEW = 4 };

struct few {
	const om_depthwise *d;
	const float *x;
	int64_t oz, oy, ox, n;    /* the first of `n` outputs, 0 < n <= FEW */
};

/* Tap kx of a line: its pixel for each output; after the last output, the pixel of the last one again. */
INLINE void
few_pixels(const struct few *f, const float *line, int64_t kx, const float **at)
{
	const om_geometry *g = &f->d->g;

	UNROLL
	for (int i = 0; i < FEW; i++) {
		const int64_t o = f->ox + (i < f->n ? i : f->n - 1);
		const int64_t ix = o * g->stride[2] - g->begin[2] + kx * g->dilation[2];
		at[i] = ix >= 0 && ix < g->in[2] ? line + ix * f->d->channels : f->d->zeros;
	}
}

/* `nv` vectors of channels from `c` on; if `some`, only so many channels. */
INLINE void
few_outputs(const struct few *f, int64_t c, const int nv, const int64_t some, float *y)
{
	const om_depthwise *d = f->d;
	const om_geometry *g = &d->g;
	int64_t z0, z1, y0, y1;
	vec sum[2][FEW];

	om_taps_inside(g, 0, f->oz, 0, 0, &z0, &z1);
	om_taps_inside(g, 1, f->oy, 0, 0, &y0, &y1);
	UNROLL
	for (int v = 0; v < nv; v++)
		UNROLL
		for (int i = 0; i < FEW; i++)
			sum[v][i] = some ? vec_load_some(d->bias, some) : vec_load(d->bias + c + v * VL);
	for (int64_t k = z0 * g->kernel[1]; k < z1 * g->kernel[1]; k++) {
		const int64_t ky = k % g->kernel[1];
		if (ky < y0 || ky >= y1)
			continue;
		const int64_t iz = f->oz * g->stride[0] - g->begin[0] + k / g->kernel[1] * g->dilation[0];
		const int64_t iy = f->oy * g->stride[1] - g->begin[1] + ky * g->dilation[1];
		const float *line = f->x + (iz * g->in[1] + iy) * g->in[2] * d->channels;
		const float *w = d->packed + k * g->kernel[2] * d->channels + c;
		for (int64_t kx = 0; kx < g->kernel[2]; kx++, w += d->channels) {
			const float *at[FEW];
			few_pixels(f, line, kx, at);
			UNROLL
			for (int v = 0; v < nv; v++) {
				const vec tap = some ? vec_load_some(w, some) : vec_load(w + v * VL);
				UNROLL
				for (int i = 0; i < FEW; i++)
					sum[v][i] += tap * (some ? vec_load_some(at[i], some) : vec_load(at[i] + c + v * VL));
			}
		}
	}
	UNROLL
	for (int v = 0; v < nv; v++)
		UNROLL
		for (int i = 0; i < FEW; i++) {
			float *to = y + i * d->channels + c + v * VL;
			if (i >= f->n)
				break;
			if (some)
				vec_store_some(to, sum[v][i], some);
			else
				vec_store(to, sum[v][i]);
		}
}

NOINLINE void
few_by_two(const struct few *f, int64_t c, float *y)
{
	few_outputs(f, c, 2, 0, y);
}

NOINLINE void
few_by_one(const struct few *f, int64_t c, float *y)
{
	few_outputs(f, c, 1, 0, y);
}

NOINLINE void
few_by_some(const struct few *f, float *y)
{
	few_outputs(f, 0, 1, f->d->channels, y);
}

static void
few_channels(const struct few *f, float *y)
{
	const int64_t n = f->d->channels;
	int64_t c = 0;

	if (n < VL) {
		few_by_some(f, y);
		return;
	}
	for (; c + 2 * VL <= n; c += 2 * VL)
		few_by_two(f, c, y);
	for (; c < n; c += VL)
		few_by_one(f, c + VL <= n ? c : n - VL, y);
}

static void
any_lines(const om_depthwise *d, const float *x, float *y, int64_t first, int64_t end)
{
	const int64_t n = d->g.out[2];

	for (int64_t k = first; k < end; k++)
		for (int64_t ox = 0; ox < n; ox += FEW) {
			const struct few f = {d, x, k / d->g.out[1], k % d->g.out[1], ox, ox + FEW < n ? FEW : n - ox};
			float *to = y + (k * n + ox) * d->channels;
			few_channels(&f, to);
			activate_row(to, f.n * d->channels, &d->epilogue);
		}
}

static void
lines(const om_depthwise *d, const float *x, float *y, int64_t first, int64_t end)
{
	if (is_unrolled(d))
		unrolled_lines(d, x, y, first, end);
	else
		any_lines(d, x, y, first, end);
}

extern const om_depthwise_kernels OM_TABLE(om_depthwise_kernels);

const om_depthwise_kernels OM_TABLE(om_depthwise_kernels) = {.lines = lines};
