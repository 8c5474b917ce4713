/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's algorithm for kernels of 3 by 3 elements: tiles of R by R outputs from R + 2 by R + 2 inputs
 * (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015).
 *
 * A block of tiles is transformed into scratch; for each element of the transformed tiles there is a product with
 * the transformed weights, over the input channels and the positions of the kernel along the leading axis; and the
 * results of one panel at a time are transformed into outputs, with bias, residual and activation.
 *
 * A dilated kernel sees images that consist of every n-th position of the input: their tiles are listed one image
 * after another.  An element is the same sum whatever block it belongs to. */
#include <config.h>

#include "kernels/cpu/activation.h"
#include "kernels/cpu/layer_plan.h"
#include "kernels/cpu/layer_tile.h"

enum { MOST_SIDE = 6, MOST_ELEMENTS = MOST_SIDE * MOST_SIDE };

struct winograd {
	const om_layer *l;
	const om_layer_data *d;
	om_layer_plan p;
	int64_t side;             /* of a transformed tile */
	int64_t depth;            /* rows of a panel */
	int64_t row;              /* floats of a row of transformed inputs */
	int64_t input, output;    /* floats between elements of transformed inputs, and of outputs */
};

/* A block of tiles, for a group. */
struct block {
	const struct winograd *w;
	int64_t group, first, n;
	float *input;             /* [elements][leading axis of the kernel][tiles][row] */
	float *output;            /* [elements][tiles][OM_PANEL] */
	const float **rows;
	int64_t *offset;
};

/* The first output of a tile; its others are `dilation` apart. */
struct spot {
	int64_t image, z, y, x;
};

static struct spot
spot_of(const struct winograd *w, int64_t tile)
{
	const om_layer *l = w->l;
	const int64_t *step = l->dilation, size = w->side - 2;
	const int64_t x = tile % w->p.tiles[1], y = tile / w->p.tiles[1] % w->p.tiles[0];
	const int64_t image = tile / w->p.tiles[1] / w->p.tiles[0], px = image % step[2], py = image / step[2] % step[1];
	const int64_t plane = image / step[2] / step[1];

	return (struct spot){.image = plane / l->out[0], .z = plane % l->out[0], .y = py + y * size * step[1],
		.x = px + x * size * step[2]};
}

/* ---- Inputs. ---- */

INLINE void
input6(vec *d, const int s)
{
	const vec d0 = d[0], d1 = d[s], d2 = d[2 * s], d3 = d[3 * s], d4 = d[4 * s], d5 = d[5 * s];
	const vec a = d4 - 4 * d2, b = d3 - 4 * d1, c = d4 - d2, e = d3 - d1;

	d[0] = 4 * d0 - 5 * d2 + d4;
	d[s] = a + b;
	d[2 * s] = a - b;
	d[3 * s] = c + 2 * e;
	d[4 * s] = c - 2 * e;
	d[5 * s] = 4 * d1 - 5 * d3 + d5;
}

INLINE void
input4(vec *d, const int s)
{
	const vec d0 = d[0], d1 = d[s], d2 = d[2 * s], d3 = d[3 * s];

	d[0] = d0 - d2;
	d[s] = d1 + d2;
	d[2 * s] = d2 - d1;
	d[3 * s] = d1 - d3;
}

/* `side` is a compile-time constant in every call.  Channels after the last one are zero. */
INLINE void
transform_vector(const float *const *from, int64_t k, int64_t n, float *to, int64_t element, const int side)
{
	vec d[MOST_ELEMENTS];

	UNROLL
	for (int p = 0; p < side * side; p++)
		d[p] = n >= VL ? vec_load(from[p] + k) : vec_load_some(from[p] + k, n);
	UNROLL
	for (int i = 0; i < side; i++) {
		if (side == 6)
			input6(d + i, 6);
		else
			input4(d + i, 4);
	}
	UNROLL
	for (int i = 0; i < side; i++) {
		if (side == 6)
			input6(d + 6 * i, 1);
		else
			input4(d + 4 * i, 1);
	}
	UNROLL
	for (int p = 0; p < side * side; p++)
		vec_store(to + p * element, d[p]);
}

#define TRANSFORM(side)                                                        \
NOINLINE void                                                                  \
transform_##side(const float *const *from, int64_t channels, float *to, int64_t element) \
{                                                                              \
	int64_t k = 0;                                                         \
	for (; k + VL <= channels; k += VL)                                    \
		transform_vector(from, k, VL, to + k, element, side);          \
	if (k < channels)                                                      \
		transform_vector(from, k, channels - k, to + k, element, side); \
}
TRANSFORM(6)
TRANSFORM(4)

INLINE bool
is_inside(int64_t at, int64_t size)
{
	return (uint64_t)at < (uint64_t)size;
}

/* Pointers to the inputs of a tile, to zeros where they are outside of the image. */
static void
find_inputs(const struct block *b, const struct spot *s, int64_t kz, const float **from)
{
	const struct winograd *w = b->w;
	const om_layer *l = w->l;
	const float *x = w->d->x + b->group * l->channels_in;
	const int64_t z = s->z * l->stride[0] - l->begin[0] + kz * l->dilation[0], pixel = l->group * l->channels_in;
	const int64_t plane = s->image * l->in[0] + z;

	for (int64_t i = 0; i < w->side; i++)
		for (int64_t j = 0; j < w->side; j++) {
			const int64_t iy = s->y - l->begin[1] + i * l->dilation[1], ix = s->x - l->begin[2] + j * l->dilation[2];
			const bool inside = is_inside(z, l->in[0]) && is_inside(iy, l->in[1]) && is_inside(ix, l->in[2]);
			from[i * w->side + j] = inside ? x + ((plane * l->in[1] + iy) * l->in[2] + ix) * pixel : w->d->scratch;
		}
}

static void
transform_inputs(const struct block *b)
{
	const struct winograd *w = b->w;
	const float *from[MOST_ELEMENTS];

	for (int64_t kz = 0; kz < w->l->kernel[0]; kz++)
		for (int64_t t = 0; t < b->n; t++) {
			const struct spot s = spot_of(w, b->first + t);
			float *to = b->input + (kz * w->p.block + t) * w->row;
			find_inputs(b, &s, kz, from);
			if (w->side == 6)
				transform_6(from, w->l->channels_in, to, w->input);
			else
				transform_4(from, w->l->channels_in, to, w->input);
		}
}

/* ---- Products. ---- */

/* The outputs of one panel, for all elements. */
static void
multiply(const struct block *b, int64_t panel, int64_t columns)
{
	const struct winograd *w = b->w;
	const int64_t elements = w->side * w->side, panels = (w->l->channels_out + OM_PANEL - 1) / OM_PANEL;
	const int64_t taps = w->l->kernel[0], size = w->depth * OM_PANEL;
	struct om_tile t = {.rows = b->rows, .offset = b->offset, .taps = taps, .k = w->l->channels_in, .panel = size,
		.c_row = OM_PANEL, .has_halves = has_halves(w->l)};

	for (int64_t e = 0; e < elements; e++) {
		const float *weights = w->d->weights + b->group * elements * panels * size;
		const float *next = e + 1 < elements ? weights + ((e + 1) * panels + panel) * size : weights + (panel + 1) % panels * size;
		t.weights = weights + (e * panels + panel) * size;
		for (int64_t i = 0, k = 0, n; i < b->n; i += n, k++) {
			n = tile_rows_of(b->n - i);
			set_ahead(&t, t.k * taps, next, k, tiles_of(b->n));
			for (int64_t kz = 0; kz < taps; kz++)
				for (int64_t r = 0; r < n; r++)
					b->rows[kz * n + r] = b->input + e * w->input + (kz * w->p.block + i + r) * w->row;
			t.c = b->output + e * w->output + i * OM_PANEL;
			OM_TABLE(om_tile_run)(&t, n, 0, columns);
		}
	}
}

/* ---- Outputs. ---- */

/* to[k], k < 4, of six elements. */
INLINE void
output6(const vec *m, const int s, vec *to, const int step)
{
	const vec a = m[s] + m[2 * s], b = m[s] - m[2 * s], c = m[3 * s] + m[4 * s], d = m[3 * s] - m[4 * s];

	to[0] = m[0] + a + c;
	to[step] = b + 2 * d;
	to[2 * step] = a + 4 * c;
	to[3 * step] = b + 8 * d + m[5 * s];
}

/* to[k], k < 2, of four elements. */
INLINE void
output4(const vec *m, const int s, vec *to, const int step)
{
	to[0] = m[0] + m[s] + m[2 * s];
	to[step] = m[s] - m[2 * s] - m[3 * s];
}

/* The outputs of VL channels of a tile: y[i][j] at y + i * side + j. */
INLINE void
restore_vector(const float *from, int64_t element, vec *y, const int side)
{
	const int size = side - 2;
	vec half[MOST_ELEMENTS];

	UNROLL
	for (int j = 0; j < side; j++) {
		vec m[MOST_SIDE];
		UNROLL
		for (int i = 0; i < side; i++)
			m[i] = vec_load(from + (i * side + j) * element);
		if (side == 6)
			output6(m, 1, half + j, 6);
		else
			output4(m, 1, half + j, 4);
	}
	UNROLL
	for (int i = 0; i < size; i++) {
		if (side == 6)
			output6(half + 6 * i, 1, y + 4 * i, 1);
		else
			output4(half + 4 * i, 1, y + 2 * i, 1);
	}
}

NOINLINE void
restore_6(const float *from, int64_t element, vec *y)
{
	restore_vector(from, element, y, 6);
}

NOINLINE void
restore_4(const float *from, int64_t element, vec *y)
{
	restore_vector(from, element, y, 4);
}

/* Where the outputs of a tile are, for channels of one panel. */
struct place {
	const struct winograd *w;
	int64_t at;               /* of y: its first output, first channel */
	int64_t line, pixel;      /* floats between outputs */
	int64_t lines, pixels;    /* outputs that are inside of the image */
	int64_t channel;          /* of the bias */
	bool clamps;
	float low, high;
};

/* Bias, residual and cheap activations, for channels [k, k + n), n <= VL. */
INLINE void
finish(const struct place *p, vec x, int64_t at, int64_t k, int64_t n)
{
	const om_layer_data *d = p->w->d;

	if (d->bias)
		x += n >= VL ? vec_load(d->bias + p->channel + k) : vec_load_some(d->bias + p->channel + k, n);
	if (d->residual)
		x += n >= VL ? vec_load(d->residual + at + k) : vec_load_some(d->residual + at + k, n);
	if (p->clamps)
		x = vec_clamp(x, p->low, p->high);
	if (n >= VL)
		vec_store(d->y + at + k, x);
	else
		vec_store_some(d->y + at + k, x, n);
}

static void
store_outputs(const struct place *p, const vec *y, int64_t k, int64_t n)
{
	const int64_t size = p->w->side - 2;

	for (int64_t i = 0; i < p->lines; i++)
		for (int64_t j = 0; j < p->pixels; j++) {
			const int64_t at = p->at + i * p->line + j * p->pixel;
			if (n >= VL)
				finish(p, y[i * size + j], at, k, VL);
			else
				finish(p, y[i * size + j], at, k, n);
		}
}

static void
activate_outputs(const struct place *p, int64_t columns)
{
	const om_epilogue *e = &p->w->l->epilogue;

	if (p->clamps || e->act == OM_ACT_NONE)
		return;
	for (int64_t i = 0; i < p->lines; i++)
		for (int64_t j = 0; j < p->pixels; j++)
			activate_row(p->w->d->y + p->at + i * p->line + j * p->pixel, columns, e);
}

/* How many of the outputs from `at` on, `step` apart, are below `size`. */
static int64_t
inside_of(int64_t at, int64_t step, int64_t size, int64_t most)
{
	const int64_t n = at < size ? (size - at + step - 1) / step : 0;

	return n < most ? n : most;
}

static struct place
place_of(const struct block *b, int64_t tile, int64_t panel)
{
	const struct winograd *w = b->w;
	const om_layer *l = w->l;
	const om_epilogue *e = &l->epilogue;
	const struct spot s = spot_of(w, tile);
	const int64_t channels = l->group * l->channels_out, channel = b->group * l->channels_out + panel * OM_PANEL;
	const int64_t plane = s.image * l->out[0] + s.z;

	return (struct place){.w = w, .at = ((plane * l->out[1] + s.y) * l->out[2] + s.x) * channels + channel,
		.line = l->dilation[1] * l->out[2] * channels, .pixel = l->dilation[2] * channels,
		.lines = inside_of(s.y, l->dilation[1], l->out[1], w->side - 2),
		.pixels = inside_of(s.x, l->dilation[2], l->out[2], w->side - 2), .channel = channel,
		.clamps = e->act == OM_ACT_RELU || e->act == OM_ACT_CLIP, .low = e->act == OM_ACT_RELU ? 0 : e->alpha,
		.high = e->act == OM_ACT_RELU ? __builtin_inff() : e->beta};
}

static void
restore_outputs(const struct block *b, int64_t panel, int64_t columns)
{
	const struct winograd *w = b->w;
	vec y[16];

	for (int64_t t = 0; t < b->n; t++) {
		const struct place p = place_of(b, b->first + t, panel);
		for (int64_t k = 0; k < columns; k += VL) {
			const float *from = b->output + t * OM_PANEL + k;
			if (w->side == 6)
				restore_6(from, w->output, y);
			else
				restore_4(from, w->output, y);
			store_outputs(&p, y, k, columns - k);
		}
		activate_outputs(&p, columns);
	}
}

/* ---- The layer. ---- */

static void
run_piece(void *arg, int64_t piece, uint32_t worker)
{
	const struct winograd *w = arg;
	const om_layer_plan *p = &w->p;
	const int64_t part = piece % p->parts, block = piece / p->parts % p->blocks;
	char *scratch = (char *)w->d->scratch + p->zeros + worker * p->per_worker, *tables = scratch + p->image + p->outputs;
	struct block b = {.w = w, .group = piece / p->parts / p->blocks, .first = block * p->block,
		.input = (float *)(void *)scratch, .output = (float *)(void *)(scratch + p->image),
		.rows = (const float **)(void *)tables, .offset = (int64_t *)(void *)(tables + p->pointers)};

	b.n = p->rows - b.first < p->block ? p->rows - b.first : p->block;
	for (int64_t kz = 0; kz < w->l->kernel[0]; kz++)
		b.offset[kz] = kz * w->l->channels_in * OM_PANEL;
	transform_inputs(&b);
	for (int64_t j = part * p->part; j < (part + 1) * p->part && j * OM_PANEL < w->l->channels_out; j++) {
		const int64_t left = w->l->channels_out - j * OM_PANEL, columns = left < OM_PANEL ? left : OM_PANEL;
		multiply(&b, j, columns);
		restore_outputs(&b, j, columns);
	}
}

void
OM_TABLE(om_layer_winograd)(const om_layer *l, const om_layer_data *d, const om_layer_plan *p)
{
	struct winograd w = {.l = l, .d = d, .p = *p, .side = l->algorithm == OM_LAYER_WINOGRAD4 ? 6 : 4,
		.depth = l->kernel[0] * l->channels_in, .row = p->k, .input = p->between_inputs, .output = p->between_outputs};

	memset(d->scratch, 0, p->zeros);
	om_parallel_for(d->pool, p->blocks * p->parts * l->group, run_piece, &w);
}
