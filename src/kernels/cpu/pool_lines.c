/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of channels-last images: a vector is some channels of a pixel.
 *
 * Where windows do not overlap along a line, each is reduced on its own.  Otherwise columns of pixels are reduced
 * first, and then the windows: an output takes as many loads as the window is high and wide, instead of their
 * product.  For windows 3 wide, the last columns are in registers, else a line of them is in memory, for some
 * channels at a time. */
#include <config.h>

#include "kernels/cpu/pool_lines.h"
#include "kernels/cpu/simd.h"

enum kind { MAX, SUM };

/* What is reduced: `ny` lines, `line` floats apart, of `nx` pixels, `pixel` floats apart; in `nz` planes. */
struct box {
	int64_t nz, ny, nx;
	int64_t plane, line, pixel;
};

INLINE vec
nothing(const enum kind kind)
{
	return vec_all(kind == MAX ? -__builtin_inff() : 0);
}

INLINE vec
join(const enum kind kind, vec a, vec b)
{
	if (kind == MAX)
		return vec_max_nan(a, b);
	return a + b;
}

/* A vector, or only so many of its floats. */
INLINE vec
load(const float *p, const int64_t some)
{
	return some ? vec_load_some(p, some) : vec_load(p);
}

/* `nv` vectors of channels from `x` on; if `some`, only so many channels.  Sums of lines are added, so that errors
 * do not grow with the size of the window. */
INLINE void
reduce(const enum kind kind, const struct box *b, const float *x, float by, const int nv, const int64_t some, float *y)
{
	vec all[4];

	UNROLL
	for (int v = 0; v < nv; v++)
		all[v] = nothing(kind);
	for (int64_t k = 0; k < b->nz * b->ny; k++) {
		const float *at = x + k / b->ny * b->plane + k % b->ny * b->line;
		vec line[4];
		UNROLL
		for (int v = 0; v < nv; v++)
			line[v] = nothing(kind);
		for (int64_t i = 0; i < b->nx; i++, at += b->pixel)
			UNROLL
			for (int v = 0; v < nv; v++)
				line[v] = join(kind, line[v], load(at + v * VL, some));
		UNROLL
		for (int v = 0; v < nv; v++)
			all[v] = join(kind, all[v], line[v]);
	}
	UNROLL
	for (int v = 0; v < nv; v++) {
		if (kind == SUM)
			all[v] /= by;
		if (some)
			vec_store_some(y, all[v], some);
		else
			vec_store(y + v * VL, all[v]);
	}
}

/* `n` channels; the last vector overlaps the one before. */
INLINE void
reduce_channels(const enum kind kind, const struct box *b, const float *x, float by, int64_t n, float *y)
{
	int64_t c = 0;

	if (n < VL) {
		reduce(kind, b, x, by, 1, n, y);
		return;
	}
	for (; c + 4 * VL <= n; c += 4 * VL)
		reduce(kind, b, x + c, by, 4, 0, y + c);
	for (; c < n; c += VL) {
		const int64_t at = c + VL <= n ? c : n - VL;
		reduce(kind, b, x + at, by, 1, 0, y + at);
	}
}

NOINLINE void
max_channels(const struct box *b, const float *x, float by, int64_t n, float *y)
{
	reduce_channels(MAX, b, x, by, n, y);
}

NOINLINE void
mean_channels(const struct box *b, const float *x, float by, int64_t n, float *y)
{
	reduce_channels(SUM, b, x, by, n, y);
}

typedef void channels_fn(const struct box *b, const float *x, float by, int64_t n, float *y);

/* Pixels of a window along an axis that are counted; inside of the image, or including the padding. */
static int64_t
counted(const om_pooling *p, int axis, int64_t o)
{
	int64_t lo, hi;

	om_taps_inside(&p->g, axis, o, p->with_padding ? p->g.begin[axis] : 0, p->with_padding ? p->g.end[axis] : 0, &lo, &hi);
	return hi - lo;
}

/* The divisor of a mean. */
static float
divisor(int64_t n)
{
	return n ? (float)n : 1;
}

/* The taps of an axis that are inside of the image: their number, and the first pixel. */
static int64_t
inside(const om_geometry *g, int axis, int64_t o, int64_t *first)
{
	int64_t lo, hi;

	om_taps_inside(g, axis, o, 0, 0, &lo, &hi);
	*first = o * g->stride[axis] - g->begin[axis] + lo * g->dilation[axis];
	return hi - lo;
}

/* Each window of a line on its own. */
static void
windows(const om_pooling *p, channels_fn *fn, const float *x, struct box b, int64_t count, float *y)
{
	const om_geometry *g = &p->g;

	b.pixel = g->dilation[2] * p->channels;
	for (int64_t ox = 0; ox < g->out[2]; ox++, y += p->channels) {
		int64_t ix;
		b.nx = inside(g, 2, ox, &ix);
		fn(&b, x + (b.nx ? ix : 0) * p->channels, divisor(count * counted(p, 2, ox)), p->channels, y);
	}
}

/* ---- Windows 3 wide that overlap: the last three columns stay in registers. ---- */

enum { MOST_LINES = 49 };

/* The lines under a window. */
struct few_lines {
	int64_t n;
	const float *x[MOST_LINES];
};

/* A column of pixels, `at` from the start of each line; 3 lines if `is_three`. */
INLINE void
column(const enum kind kind, const struct few_lines *l, int64_t at, vec *sum, const int nv, const int is_three)
{
	const int64_t n = is_three ? 3 : l->n;

	UNROLL
	for (int v = 0; v < nv; v++)
		sum[v] = vec_load(l->x[0] + at + v * VL);
	for (int64_t r = 1; r < n; r++)
		UNROLL
		for (int v = 0; v < nv; v++)
			sum[v] = join(kind, sum[v], vec_load(l->x[r] + at + v * VL));
}

INLINE void
three(const enum kind kind, const om_pooling *p, const struct few_lines *l, int64_t count, int64_t c, float *y, const int nv,
	const int is_three)
{
	const om_geometry *g = &p->g;
	int64_t next = -g->begin[2];
	vec last[3][4];

	UNROLL
	for (int v = 0; v < nv; v++)
		last[0][v] = last[1][v] = last[2][v] = nothing(kind);
	for (int64_t ox = 0; ox < g->out[2]; ox++, y += p->channels) {
		for (const int64_t end = ox * g->stride[2] - g->begin[2] + 3; next < end; next++) {
			UNROLL
			for (int v = 0; v < nv; v++) {
				last[0][v] = last[1][v];
				last[1][v] = last[2][v];
				last[2][v] = nothing(kind);
			}
			if (next >= 0 && next < g->in[2])
				column(kind, l, next * p->channels + c, last[2], nv, is_three);
		}
		const float by = kind == SUM ? divisor(count * counted(p, 2, ox)) : 1;
		UNROLL
		for (int v = 0; v < nv; v++) {
			vec all = join(kind, join(kind, last[0][v], last[1][v]), last[2][v]);
			if (kind == SUM)
				all /= by;
			vec_store(y + c + v * VL, all);
		}
	}
}

INLINE void
three_channels(const enum kind kind, const om_pooling *p, const struct few_lines *l, int64_t count, float *y, const int is_three)
{
	const int64_t n = p->channels;
	int64_t c = 0;

	for (; c + 4 * VL <= n; c += 4 * VL)
		three(kind, p, l, count, c, y, 4, is_three);
	for (; c < n; c += VL)
		three(kind, p, l, count, c + VL <= n ? c : n - VL, y, 1, is_three);
}

#define THREE_FN(name, kind, is_three)                                         \
NOINLINE void                                                                  \
name(const om_pooling *p, const struct few_lines *l, int64_t count, float *y)  \
{                                                                              \
	three_channels(kind, p, l, count, y, is_three);                        \
}
THREE_FN(max_three_by_three, MAX, 1)
THREE_FN(max_three, MAX, 0)
THREE_FN(mean_three_by_three, SUM, 1)
THREE_FN(mean_three, SUM, 0)

typedef void three_fn(const om_pooling *p, const struct few_lines *l, int64_t count, float *y);

static bool
is_three_wide(const om_pooling *p, const struct box *b)
{
	const om_geometry *g = &p->g;

	return g->kernel[2] == 3 && g->stride[2] < 3 && g->dilation[2] == 1 && p->channels >= VL && b->nz * b->ny > 0
	    && b->nz * b->ny <= MOST_LINES;
}

static void
threes(const om_pooling *p, enum kind kind, const float *x, const struct box *b, int64_t count, float *y)
{
	static three_fn *const fn[2][2] = {{max_three, max_three_by_three}, {mean_three, mean_three_by_three}};
	struct few_lines l = {0};

	for (int64_t z = 0; z < b->nz; z++)
		for (int64_t k = 0; k < b->ny; k++)
			l.x[l.n++] = x + z * b->plane + k * b->line;
	fn[kind == SUM][l.n == 3](p, &l, count, y);
}

/* ---- Lines. ---- */

/* The lines are reduced first, `n` channels from `c` on. */
static void
by_columns(const om_pooling *p, channels_fn *fn, const float *x, const struct box *b, int64_t count, int64_t c, int64_t n,
	float *y, float *room)
{
	const om_geometry *g = &p->g;
	struct box column = *b, line = {.nz = 1, .ny = 1, .pixel = g->dilation[2] * n};

	column.nx = 1;
	for (int64_t ix = 0; ix < g->in[2]; ix++)
		fn(&column, x + ix * p->channels + c, 1, n, room + ix * n);
	for (int64_t ox = 0; ox < g->out[2]; ox++, y += p->channels) {
		int64_t ix;
		line.nx = inside(g, 2, ox, &ix);
		fn(&line, room + (line.nx ? ix : 0) * n, divisor(count * counted(p, 2, ox)), n, y + c);
	}
}

static void
by_blocks(const om_pooling *p, channels_fn *fn, const float *x, const struct box *b, int64_t count, float *y, float *room)
{
	for (int64_t c = 0, n; c < p->channels; c += n) {
		n = p->channels - c < OM_POOL_CHANNELS ? p->channels - c : OM_POOL_CHANNELS;
		by_columns(p, fn, x, b, count, c, n, y, room);
	}
}

static bool
do_overlap(const om_geometry *g)
{
	return g->kernel[2] > g->stride[2] && g->kernel[0] * g->kernel[1] > 1;
}

static void
lines(const om_pooling *p, enum kind kind, const float *x, float *y, int64_t first, int64_t end, float *room)
{
	channels_fn *const fn = kind == MAX ? max_channels : mean_channels;
	const om_geometry *g = &p->g;
	const int64_t line = g->in[2] * p->channels;

	for (int64_t k = first; k < end && p->channels > 0; k++) {
		const int64_t oz = k / g->out[1], oy = k % g->out[1], count = counted(p, 0, oz) * counted(p, 1, oy);
		float *to = y + k * g->out[2] * p->channels;
		int64_t iz, iy;
		struct box b = {.nz = inside(g, 0, oz, &iz), .ny = inside(g, 1, oy, &iy)};
		const float *from = b.nz && b.ny ? x + (iz * g->in[1] + iy) * line : x;
		b.plane = g->dilation[0] * g->in[1] * line;
		b.line = g->dilation[1] * line;
		if (b.ny == 0)
			b.nz = 0;
		if (is_three_wide(p, &b))
			threes(p, kind, from, &b, count, to);
		else if (do_overlap(g))
			by_blocks(p, fn, from, &b, count, to, room);
		else
			windows(p, fn, from, b, count, to);
	}
}

static void
max_lines(const om_pooling *p, const float *x, float *y, int64_t first, int64_t end, float *room)
{
	lines(p, MAX, x, y, first, end, room);
}

static void
mean_lines(const om_pooling *p, const float *x, float *y, int64_t first, int64_t end, float *room)
{
	lines(p, SUM, x, y, first, end, room);
}

extern const om_pool_kernels OM_TABLE(om_pool_kernels);

const om_pool_kernels OM_TABLE(om_pool_kernels) = {.max = max_lines, .mean = mean_lines};
