/* Pools of channels-last images: a vector is some channels of a pixel.
 *
 * Where windows do not overlap along a line, each is reduced on its own.  Otherwise the lines under a window are
 * reduced to one line first, for some channels at a time, and then the windows of that line: an output takes as
 * many loads as the window is high and wide, instead of their product. */
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

static bool
do_overlap(const om_geometry *g)
{
	return g->kernel[2] > g->stride[2] && g->kernel[0] * g->kernel[1] > 1;
}

static void
lines(const om_pooling *p, channels_fn *fn, const float *x, float *y, int64_t first, int64_t end, float *room)
{
	const om_geometry *g = &p->g;
	const int64_t line = g->in[2] * p->channels;

	for (int64_t k = first; k < end; k++) {
		const int64_t oz = k / g->out[1], oy = k % g->out[1], count = counted(p, 0, oz) * counted(p, 1, oy);
		float *to = y + k * g->out[2] * p->channels;
		int64_t iz, iy;
		struct box b = {.nz = inside(g, 0, oz, &iz), .ny = inside(g, 1, oy, &iy)};
		const float *from = b.nz && b.ny ? x + (iz * g->in[1] + iy) * line : x;
		b.plane = g->dilation[0] * g->in[1] * line;
		b.line = g->dilation[1] * line;
		if (b.ny == 0)
			b.nz = 0;
		if (!do_overlap(g)) {
			windows(p, fn, from, b, count, to);
			continue;
		}
		for (int64_t c = 0, n; c < p->channels; c += n) {
			n = p->channels - c < OM_POOL_CHANNELS ? p->channels - c : OM_POOL_CHANNELS;
			by_columns(p, fn, from, &b, count, c, n, to, room);
		}
	}
}

static void
max_lines(const om_pooling *p, const float *x, float *y, int64_t first, int64_t end, float *room)
{
	lines(p, max_channels, x, y, first, end, room);
}

static void
mean_lines(const om_pooling *p, const float *x, float *y, int64_t first, int64_t end, float *room)
{
	lines(p, mean_channels, x, y, first, end, room);
}

extern const om_pool_kernels OM_TABLE(om_pool_kernels);

const om_pool_kernels OM_TABLE(om_pool_kernels) = {.max = max_lines, .mean = mean_lines};
