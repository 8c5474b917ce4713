/* SPDX-License-Identifier: Apache-2.0 */
/* Layers as products: the rows of the input are read where they are, through pointers; nothing is copied but the
 * images of first layers. */
#include <config.h>

#include "kernels/cpu/activation.h"
#include "kernels/cpu/layer_plan.h"
#include "kernels/cpu/layer_tile.h"

/* A channels-last image that windows slide over. */
struct grid {
	const float *x, *zeros;
	int64_t pixel;            /* floats between positions */
	int64_t in[3], out[3], kernel[3], stride[3], dilation[3], begin[3];
};

/* Of an output. */
struct position {
	int64_t image, z, y, x;
};

/* A tile whose windows are inside of the image: taps of a line, which are adjacent in the image as they are in the weights,
 * are one. */
enum { WHOLE = -1 };

/* A product of a group, for a block of rows. */
struct block {
	const om_layer *l;
	const om_layer_data *d;
	const om_layer_plan *p;
	struct grid grid;
	struct om_tile tile;      /* `rows` and `offset` are those of the worker */
	const float *weights, *bias;          /* of the group */
	bool clamps;              /* the activation is limits, which the tile applies */
	const float **rows;       /* [tiles][taps][rows of the tile] */
	int64_t *offset;          /* [tiles][taps + 1]: the last one is the number of taps, or WHOLE */
	int64_t first, n;         /* rows of y */
	struct position next;     /* of the grid, whose pointers have not been set yet */
	int64_t column, columns;  /* of the group */
	int64_t depth;            /* floats of a tap of the plan that are summed now, from tile.from on */
	float *y;                 /* column 0 of the group, row 0 */
};

/* ---- Pointers to rows. ---- */

static int64_t
least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t
most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* The first elements of the windows of a tile, which may be outside of the image. */
struct corners {
	int64_t z[MOST_TILE_ROWS], y[MOST_TILE_ROWS], x[MOST_TILE_ROWS];
	const float *at[MOST_TILE_ROWS];
	bool are_inside;          /* all windows are, as a whole */
};

INLINE bool
is_inside(int64_t at, int64_t size)
{
	return (uint64_t)at < (uint64_t)size;
}

/* The position after this one. */
INLINE void
advance(const struct grid *g, struct position *p)
{
	if (++p->x < g->out[2])
		return;
	p->x = 0;
	if (++p->y < g->out[1])
		return;
	p->y = 0;
	if (++p->z < g->out[0])
		return;
	p->z = 0;
	p->image++;
}

/* Is a window inside along an axis? */
INLINE bool
is_window_inside(const struct grid *g, int axis, int64_t at)
{
	return at >= 0 && at + (g->kernel[axis] - 1) * g->dilation[axis] < g->in[axis];
}

/* `by` floats after a pointer, which may leave the image: nothing is read there. */
INLINE const float *
moved(const float *from, int64_t by)
{
	return (const float *)((uintptr_t)from + (uintptr_t)by * sizeof *from);
}

static void
set_corner(const struct grid *g, const struct position *p, struct corners *c, int64_t r)
{
	c->z[r] = p->z * g->stride[0] - g->begin[0];
	c->y[r] = p->y * g->stride[1] - g->begin[1];
	c->x[r] = p->x * g->stride[2] - g->begin[2];
	c->at[r] = moved(g->x, (((p->image * g->in[0] + c->z[r]) * g->in[1] + c->y[r]) * g->in[2] + c->x[r]) * g->pixel);
}

INLINE bool
is_corner_inside(const struct grid *g, const struct corners *c, int64_t r)
{
	return is_window_inside(g, 0, c->z[r]) && is_window_inside(g, 1, c->y[r]) && is_window_inside(g, 2, c->x[r]);
}

/* Of `n` positions from `p` on, which becomes the next one. */
static void
find_corners(const struct grid *g, struct position *p, int64_t n, struct corners *c)
{
	c->are_inside = true;
	for (int64_t r = 0; r < n; r++, advance(g, p)) {
		set_corner(g, p, c, r);
		c->are_inside = c->are_inside && is_corner_inside(g, c, r);
	}
}

/* The rows of one tap, at these distances from the corners; false if all are outside of the image. */
INLINE bool
tap_rows(const struct grid *g, const struct corners *c, int64_t n, const int64_t *d, const float **to)
{
	const int64_t by = ((d[0] * g->in[1] + d[1]) * g->in[2] + d[2]) * g->pixel;
	bool any = c->are_inside;

	for (int64_t r = 0; r < n && c->are_inside; r++)
		to[r] = moved(c->at[r], by);
	for (int64_t r = 0; r < n && !c->are_inside; r++) {
		const bool inside = is_inside(c->z[r] + d[0], g->in[0]) && is_inside(c->y[r] + d[1], g->in[1])
			&& is_inside(c->x[r] + d[2], g->in[2]);
		to[r] = inside ? moved(c->at[r], by) : g->zeros;
		any |= inside;
	}
	return any;
}

/* Are the taps of a line of a window one, where the window is inside? */
INLINE bool
are_joined(const struct block *b)
{
	const struct grid *g = &b->grid;

	return g->kernel[2] > 1 && g->dilation[2] == 1 && g->pixel == b->p->k && !b->tile.is_sliced;
}

/* The rows of a tile in several lines of the output. */
static int64_t
spread_rows(struct block *b, int64_t n, const float **to, int64_t *offset)
{
	const struct grid *g = &b->grid;
	const int64_t weights = b->p->k * OM_PANEL;
	struct corners c;
	int64_t taps = 0, tap = 0;

	find_corners(g, &b->next, n, &c);
	const bool is_whole = c.are_inside && are_joined(b);
	const int64_t step = is_whole ? g->kernel[2] : 1;
	for (int64_t kz = 0; kz < g->kernel[0]; kz++)
		for (int64_t ky = 0; ky < g->kernel[1]; ky++)
			for (int64_t kx = 0; kx < g->kernel[2]; kx += step, tap += step) {
				const int64_t d[] = {kz * g->dilation[0], ky * g->dilation[1], kx * g->dilation[2]};
				offset[taps] = tap * weights;
				taps += tap_rows(g, &c, n, d, to + taps * n);
			}
	return is_whole ? WHOLE : taps;
}

/* Rows `step` floats apart. */
INLINE bool
row_run(const float *from, int64_t step, int64_t n, const float **to)
{
	for (int64_t r = 0; r < n; r++)
		to[r] = moved(from, r * step);
	return true;
}

/* The same, of which those are outside whose positions, x and `stride` further each, are; false if all are. */
INLINE bool
row_run_at(const struct grid *g, const float *from, int64_t step, int64_t x, int64_t n, const float **to)
{
	bool any = false;

	for (int64_t r = 0; r < n; r++, x += g->stride[2]) {
		const bool inside = is_inside(x, g->in[2]);
		to[r] = inside ? moved(from, r * step) : g->zeros;
		any |= inside;
	}
	return any;
}

/* The rows of a tile in one line of the output: windows are the same distance apart, and lines of the image outside of all of
 * them or of none. */
static int64_t
line_rows(struct block *b, int64_t n, const float **to, int64_t *offset)
{
	const struct grid *g = &b->grid;
	struct position *p = &b->next;
	const int64_t weights = b->p->k * OM_PANEL, step = g->stride[2] * g->pixel;
	const int64_t z = p->z * g->stride[0] - g->begin[0], y = p->y * g->stride[1] - g->begin[1], x = p->x * g->stride[2] - g->begin[2];
	const bool across = is_window_inside(g, 2, x) && is_window_inside(g, 2, x + (n - 1) * g->stride[2]);
	const bool is_whole = across && is_window_inside(g, 0, z) && is_window_inside(g, 1, y) && are_joined(b);
	const int64_t each = is_whole ? g->kernel[2] : 1;
	int64_t taps = 0, tap = 0;

	for (int64_t kz = 0; kz < g->kernel[0]; kz++)
		for (int64_t ky = 0; ky < g->kernel[1]; ky++, tap += g->kernel[2]) {
			const int64_t iz = z + kz * g->dilation[0], iy = y + ky * g->dilation[1];
			if (!is_inside(iz, g->in[0]) || !is_inside(iy, g->in[1]))
				continue;
			const float *line = moved(g->x, (((p->image * g->in[0] + iz) * g->in[1] + iy) * g->in[2] + x) * g->pixel);
			for (int64_t kx = 0; kx < g->kernel[2]; kx += each) {
				const int64_t dx = kx * g->dilation[2];
				const float *from = moved(line, dx * g->pixel);
				offset[taps] = (tap + kx) * weights;
				taps += across ? row_run(from, step, n, to + taps * n) : row_run_at(g, from, step, x + dx, n, to + taps * n);
			}
		}
	p->x += n - 1;
	advance(g, p);
	return is_whole ? WHOLE : taps;
}

/* The rows of a tile, without the taps that are outside of the image for all of them; returns the number of taps. */
static int64_t
tile_rows(struct block *b, int64_t n, const float **to, int64_t *offset)
{
	return b->next.x + n <= b->grid.out[2] ? line_rows(b, n, to, offset) : spread_rows(b, n, to, offset);
}

static int64_t
direct_rows(const struct grid *g, int64_t first, int64_t n, const float **to, int64_t *offset)
{
	for (int64_t r = 0; r < n; r++)
		to[r] = g->x + (first + r) * g->pixel;
	offset[0] = 0;
	return 1;
}

/* A tile of a block: rows [first, first + n) of it. */
struct rows {
	int64_t first, n;
	const float **rows;       /* [taps][n] */
	int64_t *offset;          /* [taps], and the number of taps or WHOLE */
};

/* Tile `k`, whose pointers are at row `at` of the table. */
static struct rows
rows_of(const struct block *b, int64_t k, int64_t at, int64_t first)
{
	return (struct rows){.first = first, .n = tile_rows_of(b->n - first), .rows = b->rows + at * b->p->taps,
		.offset = b->offset + k * (b->p->taps + 1)};
}

/* Set the pointers of a tile, the one after that of the last call. */
static void
set_rows(struct block *b, const struct rows *r)
{
	r->offset[b->p->taps] = b->p->is_direct ? direct_rows(&b->grid, b->first + r->first, r->n, r->rows, r->offset)
		: tile_rows(b, r->n, r->rows, r->offset);
}

/* ---- Blocks. ---- */

/* Is the activation one of those that tiles apply, besides the clamp? */
static bool
is_of_tiles(om_act act)
{
	return act == OM_ACT_HARD_SWISH || act == OM_ACT_LEAKY_RELU;
}

static void
activate(const struct block *b, const struct rows *r, int64_t column, int64_t columns)
{
	const om_epilogue *e = &b->l->epilogue;

	if (b->clamps || e->act == OM_ACT_NONE || is_of_tiles(e->act))
		return;
	for (int64_t k = 0; k < r->n; k++)
		activate_row(b->y + (b->first + r->first + k) * b->tile.c_row + column, columns, e);
}

/* Compute columns of a tile: its sums over the current part of the depth, which are added to those of the parts before. */
static void
run_tile(struct block *b, const struct rows *r, int64_t column, int64_t columns)
{
	const int64_t at = (b->first + r->first) * b->tile.c_row;
	const int64_t taps = r->offset[b->p->taps];
	const bool is_first = b->tile.from == 0, is_last = b->tile.from + b->depth == b->p->k;

	b->tile.offset = r->offset;
	b->tile.taps = taps == WHOLE ? b->p->taps / b->grid.kernel[2] : taps;
	b->tile.k = taps == WHOLE ? b->p->k * b->grid.kernel[2] : b->depth;
	b->tile.rows = r->rows;
	b->tile.c = b->y + at;
	b->tile.residual = !is_first ? b->tile.c : b->d->residual ? b->d->residual + (b->y - b->d->y) + at : NULL;
	b->tile.bias = is_first ? b->bias : NULL;
	b->tile.clamps = is_last && b->clamps;
	b->tile.act = is_last && is_of_tiles(b->l->epilogue.act) ? b->l->epilogue.act : OM_ACT_NONE;
	OM_TABLE(om_tile_run)(&b->tile, r->n, column, columns);
	if (is_last)
		activate(b, r, column, columns);
}

/* All columns of a tile, then the next tile. */
static void
run_by_tiles(struct block *b)
{
	for (int64_t i = 0; i < b->n; ) {
		const struct rows r = rows_of(b, 0, 0, i);
		set_rows(b, &r);
		run_tile(b, &r, b->column, b->columns);
		i += r.n;
	}
}

/* Weights that are read after those of the panel at `column`: of the next panel, of the first one for the next part of the depth,
 * or of the next piece. */
static const float *
next_weights(const struct block *b, int64_t column)
{
	const int64_t next = column / OM_PANEL + 1, panels = (b->l->channels_out + OM_PANEL - 1) / OM_PANEL;

	if (next * OM_PANEL < b->column + b->columns)
		return b->tile.weights + next * b->tile.panel;
	if (b->tile.from + b->depth < b->p->k)
		return b->tile.weights + b->column / OM_PANEL * b->tile.panel + b->depth * OM_PANEL;
	return b->weights + (next < panels ? next * b->tile.panel : 0);
}

/* All tiles for some panels of weights, then the next panels. */
static void
run_by_panels(struct block *b, int64_t width)
{
	const int64_t end = b->column + b->columns, tiles = tiles_of(b->n);

	for (int64_t column = b->column; column < end; column += width) {
		const float *next = next_weights(b, column);
		for (int64_t i = 0, k = 0; i < b->n; k++) {
			const struct rows r = rows_of(b, k, i, i);
			if (column == b->column && b->tile.from == 0)
				set_rows(b, &r);
			set_ahead(&b->tile, b->tile.is_sliced ? b->depth : b->depth * b->p->taps, next, k, tiles);
			run_tile(b, &r, column, least(end - column, width));
			i += r.n;
		}
	}
}

/* The same for each part of the depth. */
static void
run_by_parts(struct block *b, int64_t width)
{
	int64_t from = 0;

	do {
		b->tile.from = from;
		b->depth = least(b->p->depth, b->p->k - from);
		b->tile.weights = b->weights + from * OM_PANEL;
		run_by_panels(b, width);
		from += b->depth;
	} while (from < b->p->k);
}

static void
run_block(struct block *b)
{
	if (b->p->by_tiles)
		run_by_tiles(b);
	else
		run_by_parts(b, b->n <= TILE_ROWS ? b->columns : OM_PANEL);
}

/* ---- Strips of images that are channels-first. ---- */

/* Element e of three interleaved vectors is element e / 3 of vector e % 3; lane k of vector j, first of the first two
 * vectors, then of their elements and the third. */
#define ELEMENT(k, j) ((j) * OM_VL + (k))
#define OF_TWO(k, j) (ELEMENT(k, j) % 3 == 1 ? OM_VL + ELEMENT(k, j) / 3 : ELEMENT(k, j) / 3)
#define OF_THREE(k, j) (ELEMENT(k, j) % 3 == 2 ? OM_VL + ELEMENT(k, j) / 3 : (k))
#define INTERLEAVED(a, b, c, j) SHUFFLE(SHUFFLE(a, b, OF_TWO, j), c, OF_THREE, j)

static void
interleave_3(float *to, const float *a, const float *b, const float *c, int64_t n)
{
	int64_t i = 0;

	for (; i + VL <= n; i += VL) {
		const vec x = vec_load(a + i), y = vec_load(b + i), z = vec_load(c + i);
		vec_store(to + 3 * i, INTERLEAVED(x, y, z, 0));
		vec_store(to + 3 * i + VL, INTERLEAVED(x, y, z, 1));
		vec_store(to + 3 * i + 2 * VL, INTERLEAVED(x, y, z, 2));
	}
	for (; i < n; i++) {
		to[3 * i] = a[i];
		to[3 * i + 1] = b[i];
		to[3 * i + 2] = c[i];
	}
}

/* Interleave `n` elements of each channel; `plane` floats are between channels. */
static void
interleave(float *to, const float *from, int64_t n, int64_t channels, int64_t plane)
{
	if (channels == 3) {
		interleave_3(to, from, from + plane, from + 2 * plane, n);
		return;
	}
	for (int64_t k = 0; k < channels; k++)
		for (int64_t i = 0; i < n; i++)
			to[i * channels + k] = from[k * plane + i];
}

/* A padded line of the input; NULL: one of zeros. */
static void
pad_line(const om_layer *l, float *to, const float *from, int64_t width)
{
	const int64_t c = l->channels_in, lo = least(most(l->begin[2], 0), width);
	const int64_t hi = most(least(l->begin[2] + l->in[2], width), lo), plane = l->in[0] * l->in[1] * l->in[2];

	if (!from) {
		memset(to, 0, (size_t)(width * c) * sizeof *to);
		return;
	}
	memset(to, 0, (size_t)(lo * c) * sizeof *to);
	interleave(to + lo * c, from + lo - l->begin[2], hi - lo, c, plane);
	memset(to + hi * c, 0, (size_t)((width - hi) * c) * sizeof *to);
}

/* The strip for lines from `y` on of plane `z` of the output of an image. */
static void
fill_strip(const om_layer *l, const om_layer_plan *p, const float *x, int64_t z, int64_t y, int64_t lines, float *to)
{
	const int64_t line = p->in[2] * l->channels_in;

	for (int64_t kz = 0; kz < p->in[0]; kz++)
		for (int64_t k = 0; k < lines; k++) {
			const int64_t iz = z * l->stride[0] - l->begin[0] + kz * l->dilation[0];
			const int64_t iy = y * l->stride[1] - l->begin[1] + k;
			const bool inside = is_inside(iz, l->in[0]) && is_inside(iy, l->in[1]);
			pad_line(l, to + (kz * p->in[1] + k) * line,
				inside ? x + (iz * l->in[1] + iy) * l->in[2] : NULL, p->in[2]);
		}
}

static void
set_strip(struct block *b, int64_t block, float *strip)
{
	const om_layer *l = b->l;
	const om_layer_plan *p = b->p;
	const int64_t strips = l->out[1] / p->strip + (l->out[1] % p->strip != 0);
	const int64_t y = block % strips * p->strip, z = block / strips % l->out[0], image = block / strips / l->out[0];
	const int64_t lines = least(p->strip, l->out[1] - y), tall = (l->kernel[1] - 1) * l->dilation[1] + 1;
	const float *x = b->d->x + image * l->channels_in * l->in[0] * l->in[1] * l->in[2];
	struct grid *g = &b->grid;

	fill_strip(l, p, x, z, y, (lines - 1) * l->stride[1] + tall, strip);
	*g = (struct grid){.x = strip, .pixel = l->channels_in, .in = {p->in[0], p->in[1], p->in[2]},
		.out = {1, lines, l->out[2]}, .kernel = {l->kernel[0], l->kernel[1], l->dilation[2] == 1 ? 1 : l->kernel[2]},
		.stride = {1, l->stride[1], l->stride[2]}, .dilation = {1, l->dilation[1], l->dilation[2]}};
	b->first = (block / strips * l->out[1] + y) * l->out[2];
	b->n = lines * l->out[2];
}

/* ---- The layer. ---- */

struct job {
	const om_layer *l;
	const om_layer_data *d;
	om_layer_plan p;
};

static void
set_image(struct block *b, int64_t block, int64_t group)
{
	const om_layer *l = b->l;

	b->grid = (struct grid){.x = b->d->x + group * l->channels_in, .zeros = b->d->scratch,
		.pixel = l->group * l->channels_in};
	memcpy(b->grid.in, l->in, sizeof l->in);
	memcpy(b->grid.out, l->out, sizeof l->out);
	memcpy(b->grid.kernel, l->kernel, sizeof l->kernel);
	memcpy(b->grid.stride, l->stride, sizeof l->stride);
	memcpy(b->grid.dilation, l->dilation, sizeof l->dilation);
	memcpy(b->grid.begin, l->begin, sizeof l->begin);
	b->first = block * b->p->block;
	b->next = (struct position){.image = b->first / l->out[2] / l->out[1] / l->out[0],
		.z = b->first / l->out[2] / l->out[1] % l->out[0], .y = b->first / l->out[2] % l->out[1],
		.x = b->first % l->out[2]};
	b->n = least(b->p->block, b->p->rows - b->first);
}

/* What all tiles of a group have in common. */
static void
set_tile(struct block *b, int64_t group)
{
	const om_layer *l = b->l;
	const om_epilogue *e = &l->epilogue;
	const int64_t panels = (l->channels_out + OM_PANEL - 1) / OM_PANEL;
	const int64_t panel = l->channels_in * l->kernel[0] * l->kernel[1] * l->kernel[2] * OM_PANEL;

	b->weights = b->d->weights + group * panels * panel;
	b->depth = b->p->k;
	b->tile = (struct om_tile){.alpha = e->alpha, .panel = panel, .weights = b->weights, .is_sliced = b->p->depth < b->p->k, .has_halves = has_halves(l),
		.c_row = l->group * l->channels_out,
		.low = e->act == OM_ACT_RELU ? 0 : e->alpha, .high = e->act == OM_ACT_RELU ? __builtin_inff() : e->beta};
	b->bias = b->d->bias ? b->d->bias + group * l->channels_out : NULL;
	b->clamps = e->act == OM_ACT_RELU || e->act == OM_ACT_CLIP;
	b->y = b->d->y + group * l->channels_out;
}

static void
run_piece(void *arg, int64_t piece, uint32_t worker)
{
	const struct job *j = arg;
	const om_layer_plan *p = &j->p;
	const int64_t part = piece % p->parts, block = piece / p->parts % p->blocks, group = piece / p->parts / p->blocks;
	char *scratch = (char *)j->d->scratch + p->zeros + worker * p->per_worker;
	struct block b = {.l = j->l, .d = j->d, .p = p, .rows = (const float **)(void *)(scratch + p->image),
		.offset = (int64_t *)(void *)(scratch + p->image + p->pointers), .column = part * p->part * OM_PANEL};

	b.columns = least(p->part * OM_PANEL, j->l->channels_out - b.column);
	set_tile(&b, group);
	if (j->l->is_channels_first)
		set_strip(&b, block, (float *)(void *)scratch);
	else
		set_image(&b, block, group);
	run_block(&b);
}

static void
run(const om_layer *l, const om_layer_data *d)
{
	struct job j = {.l = l, .d = d};

	if (!om_layer_plan_new(l, &j.p))
		return;
	if (l->algorithm != OM_LAYER_GEMM) {
		OM_TABLE(om_layer_winograd)(l, d, &j.p);
		return;
	}
	if (j.p.zeros)
		memset(d->scratch, 0, j.p.zeros);
	om_parallel_for(d->pool, j.p.blocks * j.p.parts * l->group, run_piece, &j);
}

extern const om_layer_kernels OM_TABLE(om_layer_kernels);

const om_layer_kernels OM_TABLE(om_layer_kernels) = {.run = run};
