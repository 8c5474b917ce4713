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
	const uint8_t *end;       /* of the image, if windows are copied */
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
typedef uint32_t bytes4 __attribute__((aligned(1), may_alias));

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

/* Both write up to 15 bytes more, over which the rest of the row follows: rows are apart by more than that. */
INLINE void
fill_on(uint8_t *to, int64_t n, uint8_t x)
{
	const bytes16 all = UINT64_C(0x0101010101010101) * x - (bytes16){0};

	for (int64_t k = 0; k < n; k += 16)
		*(bytes16 *)(to + k) = all;
}

INLINE void
copy_on(const struct block *b, uint8_t *to, const uint8_t *from, int64_t n, uint64_t flip)
{
	if (b->end - from < n + 15) {
		copy_bytes(to, from, n, flip);
		return;
	}
	for (int64_t k = 0; k < n; k += 16)
		*(bytes16 *)(to + k) = *(const bytes16 *)(from + k) ^ flip;
}

/* Of a window, the elements of a line: `kernel` positions from `x` on, of which those in the image are at `line`. */
INLINE uint8_t *
copy_line(const struct block *b, uint8_t *to, const uint8_t *line, int64_t x)
{
	const om_layer *l = &b->l->shape;
	const int64_t c = l->channels_in, pixel = l->group * c, step = l->dilation[2], n = l->kernel[2];
	const uint64_t flip = b->l->is_signed ? UINT64_C(0x8080808080808080) : 0;
	const uint8_t outside = (uint8_t)b->d->x_zero;

	if (step == 1 && l->group == 1) {
		const int64_t before = LEAST(MOST(-x, 0), n), end = MOST(LEAST(l->in[2] - x, n), before);
		fill_on(to, before * c, outside);
		copy_on(b, to + before * c, line + (x + before) * c, (end - before) * c, flip);
		fill_on(to + end * c, (n - end) * c, outside);
		return to + n * c;
	}
	for (int64_t k = 0; k < n; k++, to += c) {
		const int64_t at = x + k * step;
		if (at < 0 || at >= l->in[2])
			fill_on(to, c, outside);
		else
			copy_on(b, to, line + at * pixel, c, flip);
	}
	return to;
}

/* Positions [ox, ox + n) of a line of the output. */
struct span {
	uint8_t *to;              /* the row of the first one */
	int64_t image, oz, oy, ox, n;
};

/* The first elements of those windows, which begin at `x` in a line of the image, and further ones `step` bytes apart. */
INLINE void
copy_runs(const struct block *b, uint8_t *to, const uint8_t *x, int64_t n, int64_t step, int64_t run)
{
	const uint64_t flip = b->l->is_signed ? UINT64_C(0x8080808080808080) : 0;
	const int64_t row = b->row;

	if (run <= 16) {
		for (int64_t i = 0; i < n; i++)
			*(bytes16 *)(to + i * row) = *(const bytes16 *)(x + i * step) ^ flip;
		return;
	}
	for (int64_t i = 0; i < n; i++, to += row, x += step)
		for (int64_t k = 0; k < run; k += 16)
			*(bytes16 *)(to + k) = *(const bytes16 *)(x + k) ^ flip;
}

/* Positions [*lo, *hi) of a span whose runs are inside of `line`, with 15 bytes more in the image. */
INLINE void
find_inside(const struct block *b, const struct span *s, const uint8_t *line, int64_t *lo, int64_t *hi)
{
	const om_layer *l = &b->l->shape;
	const int64_t stride = l->stride[2], run = l->kernel[2] * l->channels_in;
	const int64_t last = LEAST(l->in[2] - l->kernel[2], (b->end - line - run - 15) / l->channels_in) + l->begin[2];

	*lo = LEAST(MOST((l->begin[2] + stride - 1) / stride - s->ox, 0), s->n);
	*hi = last < 0 || b->end - line < run + 15 ? *lo : MOST(LEAST(last / stride + 1 - s->ox, s->n), *lo);
}

/* A line of the windows of a span. */
INLINE void
copy_lines(const struct block *b, const struct span *s, uint8_t *to, const uint8_t *line)
{
	const om_layer *l = &b->l->shape;
	const int64_t stride = l->stride[2], c = l->channels_in;
	int64_t lo = s->n, hi = s->n;

	if (l->dilation[2] == 1 && l->group == 1)
		find_inside(b, s, line, &lo, &hi);
	for (int64_t i = 0; i < lo; i++)
		copy_line(b, to + i * b->row, line, (s->ox + i) * stride - l->begin[2]);
	if (lo < hi)
		copy_runs(b, to + lo * b->row, line + ((s->ox + lo) * stride - l->begin[2]) * c, hi - lo, stride * c, l->kernel[2] * c);
	for (int64_t i = hi; i < s->n; i++)
		copy_line(b, to + i * b->row, line, (s->ox + i) * stride - l->begin[2]);
}

/* The windows of a span, with zeros up to the next group of four. */
static void
copy_span(const struct block *b, const struct span *s)
{
	const om_layer *l = &b->l->shape;
	const int64_t pixel = l->group * l->channels_in, line = l->kernel[2] * l->channels_in;
	const uint8_t *x = (const uint8_t *)b->d->x + b->group * l->channels_in;
	uint8_t *to = s->to;

	for (int64_t kz = 0; kz < l->kernel[0]; kz++)
		for (int64_t ky = 0; ky < l->kernel[1]; ky++, to += line) {
			const int64_t z = s->oz * l->stride[0] - l->begin[0] + kz * l->dilation[0];
			const int64_t y = s->oy * l->stride[1] - l->begin[1] + ky * l->dilation[1];
			if (z >= 0 && z < l->in[0] && y >= 0 && y < l->in[1]) {
				copy_lines(b, s, to, x + ((s->image * l->in[0] + z) * l->in[1] + y) * l->in[2] * pixel);
				continue;
			}
			for (int64_t i = 0; i < s->n; i++)
				fill_on(to + i * b->row, line, (uint8_t)b->d->x_zero);
		}
	for (int64_t i = 0; i < s->n; i++)
		fill_on(to + i * b->row, s->to + b->p->depth * OM_QDEPTH - to, 0);
}

static void
copy_windows(const struct block *b, uint8_t *to)
{
	const int64_t *out = b->l->shape.out;

	for (int64_t i = b->first, end = b->first + b->n; i < end;) {
		const int64_t line = i / out[2];
		const struct span s = {.to = to + (i - b->first) * b->row, .image = line / out[1] / out[0], .oz = line / out[1] % out[0],
			.oy = line % out[1], .ox = i % out[2], .n = LEAST(out[2] - i % out[2], end - i)};
		copy_span(b, &s);
		i += s.n;
	}
}

/* The sum of bytes, whose number is a multiple of four: a word adds pairs of them into four sums of 16 bits. */
INLINE uint32_t
sum_bytes(const uint8_t *row, int64_t n)
{
	enum { ONCE = 8 * 128 };  /* bytes before one of the four sums could be larger than 16 bits */
	const uint64_t even = UINT64_C(0x00ff00ff00ff00ff);
	uint32_t sum = 0;

	for (int64_t from = 0; from < n; from += ONCE) {
		const int64_t end = LEAST(from + ONCE, n);
		uint64_t four = 0;
		int64_t k = from;
		for (; k + 8 <= end; k += 8) {
			const uint64_t x = *(const bytes8 *)(row + k);
			four += (x & even) + (x >> 8 & even);
		}
		if (k < end) {
			const uint64_t x = *(const bytes4 *)(row + k);
			four += (x & even) + (x >> 8 & even);
		}
		sum += (uint32_t)((four & 0xffff) + (four >> 16 & 0xffff) + (four >> 32 & 0xffff) + (four >> 48));
	}
	return sum;
}

static void
sum_rows(const struct block *b)
{
	for (int64_t i = 0; i < b->n; i++)
		b->sums[i] = (int32_t)sum_bytes(b->rows + i * b->row, b->p->depth * OM_QDEPTH);
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
	b.end = (const uint8_t *)j->d->x + l->batch * l->in[0] * l->in[1] * l->in[2] * l->group * l->channels_in;
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
