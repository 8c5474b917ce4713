/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of 8-bit integers: see qlayer.h.
 *
 * Rows of the product are read where they are if they are those of the input; else the windows of a block of rows are
 * copied first, which costs little as every byte is used for all output channels.  A tile is some rows by some vectors
 * of output channels, with the sums in registers over the whole depth. */
#include <config.h>

#include "kernels/cpu/qfinish.h"

enum {
	PANEL_VECS = OM_QPANEL / VL,
	MOST_ROWS = 12,           /* of a tile */
	MOST_VECS = 4,
	AHEAD = 16,               /* groups of four weights that are prefetched */
};

/* A block of rows of a group. */
struct block {
	const om_qlayer *l;
	const om_qlayer_data *d;
	const om_qlayer_plan *p;
	const uint8_t *rows;      /* the input as a matrix */
	int64_t row;              /* bytes between its rows */
	int32_t *sums;            /* of the rows, if there are zero points of weights */
	int64_t first, n;         /* rows of the output */
	int64_t group;
};

/* Where a tile is. */
struct place {
	const uint8_t *a;
	const int8_t *weights;
	const int32_t *sums;
	int64_t at;               /* element of the output */
	int64_t list;             /* element of the lists */
	int64_t n;                /* columns, of which some may be outside */
};

/* ---- Tiles. ---- */

INLINE const int8_t *
weights_at(const int8_t *b, int64_t panel, int v)
{
	return b + v / PANEL_VECS * panel + v % PANEL_VECS * VL * OM_QDEPTH;
}

/* Any kind of output. */
NOINLINE void
finish_some(const struct block *b, const struct place *p, const ivec *sums, int rows, int vecs)
{
	const int64_t c_row = b->l->shape.group * b->l->shape.channels_out;

	for (int i = 0; i < rows; i++)
		for (int v = 0; v < vecs && v * VL < p->n; v++) {
			ivec sum = sums[i * vecs + v];
			if (b->d->w_zero)
				sum = (ivec)((uvec)sum - (uvec)ivec_load(b->d->w_zero + p->list + v * VL) * (uint32_t)p->sums[i]);
			finish_sums(b->l, b->d, sum, p->at + i * c_row + v * VL, p->list + v * VL, LEAST(p->n - v * VL, VL));
		}
}

/* Bytes, if no column is outside and the zero points of the weights are 0. */
INLINE void
store_bytes(const struct block *b, const struct place *p, ivec sum[][MOST_VECS], const int rows, const int vecs)
{
	const om_qlayer_data *d = b->d;
	const int64_t c_row = b->l->shape.group * b->l->shape.channels_out;
	const vec low = vec_all((float)(d->least - d->y_zero)), high = vec_all((float)(d->most - d->y_zero));
	const ivec zero = d->y_zero - (ivec){0};
	uint8_t *y = (uint8_t *)d->y + p->at;

	UNROLL
	for (int v = 0; v < vecs; v++) {
		const ivec offset = ivec_load(d->offset + p->list + v * VL);
		const vec scale = vec_load(d->scale + p->list + v * VL);
		UNROLL
		for (int i = 0; i < rows; i++) {
			const vec x = __builtin_convertvector(sum[i][v] + offset, vec) * scale;
			vec_store_bytes(y + i * c_row + v * VL, vec_rounded(x, low, high) + zero, VL);
		}
	}
}

/* `rows` and `vecs` are compile-time constants in every call, so that the sums are registers. */
INLINE void
tile(const struct block *b, const struct place *p, const int rows, const int vecs)
{
	const int64_t panel = b->p->depth * OM_QPANEL * OM_QDEPTH, a_row = b->row, depth = b->p->depth;
	const int8_t *w = p->weights;
	const uint8_t *a = p->a;
	ivec sum[MOST_ROWS][MOST_VECS];

	UNROLL
	for (int i = 0; i < rows; i++) {
		UNROLL
		for (int v = 0; v < vecs; v++)
			sum[i][v] = (ivec){0};
	}
	for (int64_t k = 0; k < depth; k++, w += OM_QPANEL * OM_QDEPTH, a += OM_QDEPTH) {
		signed_quads wk[MOST_VECS];
		UNROLL
		for (int v = 0; v < vecs; v++)
			wk[v] = quads_load(weights_at(w, panel, v));
		/* After the last ones nothing is read. */
		for (int v = 0; v < vecs; v += MOST(16 / VL, 1))
			__builtin_prefetch(weights_at(w, panel, v) + AHEAD * OM_QPANEL * OM_QDEPTH, 0, 3);
		UNROLL
		for (int i = 0; i < rows; i++) {
			const unsigned_quads x = quads_all(a + i * a_row);
			UNROLL
			for (int v = 0; v < vecs; v++)
				sum[i][v] = quads_dot(sum[i][v], x, wk[v]);
		}
	}
	if (b->l->output == OM_QLAYER_BYTES && !b->d->w_zero && p->n >= vecs * VL) {
		store_bytes(b, p, sum, rows, vecs);
		return;
	}
	ivec some[MOST_ROWS * MOST_VECS];
	UNROLL
	for (int i = 0; i < rows; i++) {
		UNROLL
		for (int v = 0; v < vecs; v++)
			some[i * vecs + v] = sum[i][v];
	}
	finish_some(b, p, some, rows, vecs);
}

/* Tiles of 1, 2 or 4 vectors; those whose sums would not fit into the registers are not called. */
#define ROWS_FOR(vecs) LEAST(MOST_ROWS, QUADS_SUMS / (vecs) ? QUADS_SUMS / (vecs) : 1)
#define TILE(rows, vecs)                                                       \
NOINLINE void                                                                  \
tile_##rows##_##vecs(const struct block *b, const struct place *p)             \
{                                                                              \
	tile(b, p, LEAST(rows, ROWS_FOR(vecs)), vecs);                         \
}
EACH_ROWS(TILE, 1)
EACH_ROWS(TILE, 2)
EACH_ROWS(TILE, 4)

typedef void tile_fn(const struct block *b, const struct place *p);
#define NAME(rows, vecs) tile_##rows##_##vecs,
static tile_fn *const tiles[][MOST_ROWS + 1] = {
	{0, EACH_ROWS(NAME, 1)}, {0, EACH_ROWS(NAME, 2)}, {0, EACH_ROWS(NAME, 4)},
};
static const int rows_for[] = {ROWS_FOR(1), ROWS_FOR(2), ROWS_FOR(4)};

/* All rows of a block for a tile of columns. */
static void
run_columns(const struct block *b, int64_t column, int width, int64_t n)
{
	const om_layer *l = &b->l->shape;
	const int64_t c_row = l->group * l->channels_out, panel = b->p->depth * OM_QPANEL * OM_QDEPTH;
	struct place p = {.n = n, .list = b->group * b->p->panels * OM_QPANEL + column};

	p.weights = b->d->weights + (b->group * b->p->panels + column / OM_QPANEL) * panel + column % OM_QPANEL * OM_QDEPTH;
	for (int64_t i = 0, rows; i < b->n; i += rows) {
		const int64_t rest = b->n - i, most = rows_for[width];
		rows = rest <= most ? rest : rest < 2 * most ? (rest + 1) / 2 : most;
		p.a = b->rows + i * b->row;
		p.sums = b->d->w_zero ? b->sums + i : NULL;
		p.at = (b->first + i) * c_row + b->group * l->channels_out + column;
		tiles[width][rows](b, &p);
	}
}

/* A tile reads the weights of all its columns, so it must not be wider than the panels that there are. */
static void
run_panels(const struct block *b, int64_t column, int64_t end)
{
	const int64_t packed = b->p->panels * OM_QPANEL;

	while (column < end) {
		const int64_t left = end - column;
		const bool is_wide = left > 2 * VL && column + 4 * VL <= packed && QUADS_SUMS >= 2 * MOST_VECS;
		const int width = is_wide ? 2 : left > VL ? 1 : 0;
		run_columns(b, column, width, LEAST(left, VL << width));
		column += VL << width;
	}
}

/* ---- Copies of windows. ---- */

typedef uint64_t bytes16 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint64_t bytes8 __attribute__((aligned(1), may_alias));

/* Signed elements become unsigned: a bit is flipped in each byte of `flip`.  The last piece may overlap the one
 * before it. */
INLINE void
copy_bytes(uint8_t *to, const uint8_t *from, int64_t n, uint64_t flip)
{
	if (n >= 16) {
		for (int64_t k = 0; k < n - 16; k += 16)
			*(bytes16 *)(to + k) = *(const bytes16 *)(from + k) ^ flip;
		*(bytes16 *)(to + n - 16) = *(const bytes16 *)(from + n - 16) ^ flip;
	} else if (n >= 8) {
		const uint64_t first = *(const bytes8 *)from ^ flip, last = *(const bytes8 *)(from + n - 8) ^ flip;
		*(bytes8 *)to = first;
		*(bytes8 *)(to + n - 8) = last;
	} else {
		for (int64_t k = 0; k < n; k++)
			to[k] = (uint8_t)(from[k] ^ flip);
	}
}

/* Of a window, the elements of a line: `kernel` positions from `x` on, of which those in the image are at `line`. */
static uint8_t *
copy_line(const struct block *b, uint8_t *to, const uint8_t *line, int64_t x)
{
	const om_layer *l = &b->l->shape;
	const int64_t c = l->channels_in, pixel = l->group * c, step = l->dilation[2], n = l->kernel[2];
	const bool is_run = step == 1 && l->group == 1;
	const uint64_t flip = b->l->is_signed ? UINT64_C(0x8080808080808080) : 0;

	if (is_run && x >= 0 && x + n <= l->in[2]) {
		copy_bytes(to, line + x * pixel, n * c, flip);
		return to + n * c;
	}
	for (int64_t k = 0; k < n; k++, to += c) {
		const int64_t at = x + k * step;
		if (at < 0 || at >= l->in[2])
			memset(to, b->d->x_zero, (size_t)c);
		else
			copy_bytes(to, line + at * pixel, c, flip);
	}
	return to;
}

/* Is the window at these first positions, as a whole, inside of the image? */
INLINE bool
is_inside(const om_layer *l, const int64_t *first)
{
	bool inside = true;

	for (int k = 0; k < OM_LAYER_AXES; k++)
		inside = inside && first[k] >= 0 && first[k] + (l->kernel[k] - 1) * l->dilation[k] < l->in[k];
	return inside;
}

/* A window that is inside, with runs of at least 16 bytes along its lines. */
INLINE uint8_t *
copy_runs(const om_layer *l, uint8_t *to, const uint8_t *from, uint64_t flip)
{
	const int64_t line = l->in[2] * l->channels_in, run = l->kernel[2] * l->channels_in;

	for (int64_t kz = 0; kz < l->kernel[0]; kz++, from += l->dilation[0] * l->in[1] * line)
		for (int64_t ky = 0; ky < l->kernel[1]; ky++, to += run) {
			const uint8_t *x = from + ky * l->dilation[1] * line;
			for (int64_t k = 0; k < run - 16; k += 16)
				*(bytes16 *)(to + k) = *(const bytes16 *)(x + k) ^ flip;
			*(bytes16 *)(to + run - 16) = *(const bytes16 *)(x + run - 16) ^ flip;
		}
	return to;
}

/* The window of an output position, with zeros up to the next group of four. */
static void
copy_window(const struct block *b, uint8_t *to, int64_t image, const int64_t *at)
{
	const om_layer *l = &b->l->shape;
	const int64_t pixel = l->group * l->channels_in, line = l->kernel[2] * l->channels_in;
	const uint8_t *x = (const uint8_t *)b->d->x + b->group * l->channels_in, *end = to + b->p->depth * OM_QDEPTH;
	int64_t first[OM_LAYER_AXES];

	for (int k = 0; k < OM_LAYER_AXES; k++)
		first[k] = at[k] * l->stride[k] - l->begin[k];
	if (l->group == 1 && l->dilation[2] == 1 && line >= 16 && is_inside(l, first)) {
		to = copy_runs(l, to, x + (((image * l->in[0] + first[0]) * l->in[1] + first[1]) * l->in[2] + first[2]) * pixel,
			b->l->is_signed ? UINT64_C(0x8080808080808080) : 0);
		while (to < end)
			*to++ = 0;
		return;
	}
	for (int64_t kz = 0; kz < l->kernel[0]; kz++)
		for (int64_t ky = 0; ky < l->kernel[1]; ky++) {
			const int64_t z = first[0] + kz * l->dilation[0], y = first[1] + ky * l->dilation[1];
			if (z < 0 || z >= l->in[0] || y < 0 || y >= l->in[1]) {
				memset(to, b->d->x_zero, (size_t)line);
				to += line;
				continue;
			}
			to = copy_line(b, to, x + ((image * l->in[0] + z) * l->in[1] + y) * l->in[2] * pixel, first[2]);
		}
	while (to < end)
		*to++ = 0;
}

static void
copy_windows(const struct block *b, uint8_t *to)
{
	const int64_t *out = b->l->shape.out;
	int64_t at[] = {b->first / out[2] / out[1] % out[0], b->first / out[2] % out[1], b->first % out[2]};
	int64_t image = b->first / out[2] / out[1] / out[0];

	for (int64_t i = 0; i < b->n; i++, to += b->row) {
		copy_window(b, to, image, at);
		int k = OM_LAYER_AXES - 1;
		while (k >= 0 && ++at[k] == out[k])
			at[k--] = 0;
		image += k < 0;
	}
}

static void
sum_rows(const struct block *b)
{
	const int64_t n = b->p->depth * OM_QDEPTH;

	for (int64_t i = 0; i < b->n; i++) {
		const uint8_t *row = b->rows + i * b->row;
		uint32_t sum = 0;
		for (int64_t k = 0; k < n; k++)
			sum += row[k];
		b->sums[i] = (int32_t)sum;
	}
}

/* ---- The layer. ---- */

struct job {
	const om_qlayer *l;
	const om_qlayer_data *d;
	om_qlayer_plan p;
};

static void
run_piece(void *arg, int64_t piece, uint32_t worker)
{
	const struct job *j = arg;
	const om_qlayer_plan *p = &j->p;
	const om_layer *l = &j->l->shape;
	const int64_t part = piece % p->parts, block = piece / p->parts % p->blocks;
	uint8_t *scratch = (uint8_t *)j->d->scratch + worker * p->per_worker;
	struct block b = {.l = j->l, .d = j->d, .p = p, .rows = scratch, .row = p->row_bytes, .first = block * p->block,
		.sums = (int32_t *)(void *)(scratch + p->copies), .group = piece / p->parts / p->blocks};

	b.n = LEAST(p->block, p->rows - b.first);
	if (p->is_direct)
		b.rows = (const uint8_t *)j->d->x + b.first * b.row + b.group * l->channels_in;
	else
		copy_windows(&b, scratch);
	if (j->d->w_zero)
		sum_rows(&b);
	run_panels(&b, part * p->part * OM_QPANEL, LEAST((part + 1) * p->part * OM_QPANEL, l->channels_out));
}

static void
run(const om_qlayer *l, const om_qlayer_data *d)
{
	struct job j = {.l = l, .d = d};

	if (om_qlayer_plan_new(l, &j.p))
		om_parallel_for(d->pool, j.p.blocks * j.p.parts * l->shape.group, run_piece, &j);
}

extern const om_qlayer_kernels OM_TABLE(om_qlayer_kernels);

const om_qlayer_kernels OM_TABLE(om_qlayer_kernels) = {.run = run};
