/* SPDX-License-Identifier: Apache-2.0 */
/* Register tiles of layers; see layer_tile.h.
 *
 * With few rows, a tile is wide: it reads several panels at a time, so that there are enough sums for the latency
 * of the additions, and enough streams of weights for the memory. */
#include <config.h>

#include "kernels/cpu/activation.h"
#include "kernels/cpu/layer_tile.h"

enum {
	NV = OM_NV,               /* vectors of a tile with many rows */
	PANEL_VECS = OM_PANEL / VL,
	WIDEST = 4 * NV,          /* vectors of a tile with a few rows */
	SHORT = 32,               /* floats of rows without half vectors */
	AHEAD = 16,               /* rows of weights that are prefetched */
	PIECE = 32,               /* of the depth: between them, weights of later tiles are prefetched */
	SUMS = TILE_ROWS * NV,    /* vectors of sums in a tile */
};

_Static_assert(OM_PANEL % (NV * VL) == 0, "a tile is a part of a panel or several panels");
_Static_assert(MOST_TILE_ROWS % TILE_ROWS == 0, "blocks of rows are made of tiles");

/* Where the columns of a tile are. */
struct place {
	int64_t first, n;         /* columns */
	const float *weights;
	const float *ahead;       /* to be prefetched */
};

/* Vector `v` from the first column on. */
INLINE const float *
weights_at(const float *b, int64_t panel, int v)
{
	return b + v / PANEL_VECS * panel + v % PANEL_VECS * VL;
}

/* The activation, unless it is the clamp. */
INLINE vec
tile_activate(const struct om_tile *t, vec x)
{
	if (t->act == OM_ACT_HARD_SWISH)
		return vec_activate(x, OM_ACT_HARD_SWISH, 0, 0);
	return t->act == OM_ACT_LEAKY_RELU ? vec_activate(x, OM_ACT_LEAKY_RELU, t->alpha, 0) : x;
}

/* Store the first `n` columns of a vector. */
INLINE void
finish_some(const struct om_tile *t, vec x, int64_t at, int64_t column, int64_t n)
{
	if (t->bias)
		x += vec_load_some(t->bias + column, n);
	if (t->residual)
		x += vec_load_some(t->residual + at, n);
	x = tile_activate(t, x);
	vec_store_some(t->c + at, t->clamps ? vec_clamp(x, t->low, t->high) : x, n);
}

/* Store a tile whose last columns are outside. */
NOINLINE void
store_some(const struct om_tile *t, const float *sums, int rows, int vecs, const struct place *p)
{
	for (int i = 0; i < rows; i++)
		for (int v = 0; v < vecs && v * VL < p->n; v++) {
			const int64_t left = p->n - v * VL, column = p->first + v * VL;
			finish_some(t, vec_load(sums + (i * vecs + v) * VL), i * t->c_row + column, column, LEAST(left, VL));
		}
}

/* The floats of a vector that is the last one of a tile, of which `last` are inside, if it is partial. */
INLINE vec
load_columns(const float *p, const bool is_partial, int64_t last)
{
	return is_partial ? vec_load_some(p, last) : vec_load(p);
}

INLINE void
store_columns(float *p, vec x, const bool is_partial, int64_t last)
{
	if (is_partial)
		vec_store_some(p, x, last);
	else
		vec_store(p, x);
}

/* Store all sums, activated: `act` is a constant. */
INLINE void
store_activated(const struct om_tile *t, vec sum[][WIDEST], const int rows, const int vecs, const bool is_partial,
	const struct place *p, const om_act act, const float alpha, const float beta)
{
	const int end = is_partial ? vecs - 1 : vecs;
	const int64_t last = p->n - (vecs - 1) * VL, step = t->c_row;
	float *c = t->c + p->first;

	UNROLL
	for (int i = 0; i < rows; i++, c += step) {
		UNROLL
		for (int v = 0; v < vecs; v++)
			store_columns(c + v * VL, vec_activate(sum[i][v], act, alpha, beta), v == end, last);
	}
}

/* Stores may change what `t` points to, for all that compilers know: it is read before them.  Of short rows, this takes as long as
 * the sums.  Without a bias the sums stay as they are: to add 0 would lose the sign of -0. */
INLINE void
store_all(const struct om_tile *t, vec sum[][WIDEST], const int rows, const int vecs, const bool is_partial,
	const struct place *p)
{
	const int end = is_partial ? vecs - 1 : vecs;
	const int64_t last = p->n - (vecs - 1) * VL;
	const float low = t->clamps ? t->low : -__builtin_inff(), high = t->clamps ? t->high : __builtin_inff();
	const int64_t step = t->c_row;

	if (t->bias) {
		UNROLL
		for (int v = 0; v < vecs; v++) {
			const vec b = load_columns(t->bias + p->first + v * VL, v == end, last);
			UNROLL
			for (int i = 0; i < rows; i++)
				sum[i][v] += b;
		}
	}
	if (t->residual) {
		const float *from = t->residual + p->first;
		UNROLL
		for (int i = 0; i < rows; i++, from += step) {
			UNROLL
			for (int v = 0; v < vecs; v++)
				sum[i][v] += load_columns(from + v * VL, v == end, last);
		}
	}
	if (t->act == OM_ACT_HARD_SWISH)
		store_activated(t, sum, rows, vecs, is_partial, p, OM_ACT_HARD_SWISH, 0, 0);
	else if (t->act == OM_ACT_LEAKY_RELU)
		store_activated(t, sum, rows, vecs, is_partial, p, OM_ACT_LEAKY_RELU, t->alpha, 0);
	else
		store_activated(t, sum, rows, vecs, is_partial, p, OM_ACT_CLIP, low, high);
}

/* Prefetch `n` floats into the second cache; returns where they end. */
INLINE const float *
fetch(const float *from, int64_t n)
{
	const float *const end = from + n;

	for (; from < end; from += 64 / sizeof *from)
		__builtin_prefetch(from, 0, 2);
	return end;
}

/* `rows` and `vecs` are compile-time constants in every call, so that the sums are registers. */
INLINE void
tile(const struct om_tile *t, const struct place *p, const int rows, const int vecs)
{
	vec sum[TILE_ROWS][WIDEST];
	const float *const *row = t->rows;
	const int64_t panel = t->panel;
	const float *ahead = p->ahead;

	UNROLL
	for (int i = 0; i < rows; i++) {
		UNROLL
		for (int v = 0; v < vecs; v++)
			sum[i][v] = (vec){0};
	}
	/* Lines that will be written, and read at the end, come from memory while the sums are computed. */
	UNROLL
	for (int i = 0; i < rows; i++)
		for (int v = 0; v < vecs; v += 16 / VL)
			__builtin_prefetch(t->c + i * t->c_row + p->first + v * VL, 1, 3);
	if (t->residual && t->residual != t->c) {
		UNROLL
		for (int i = 0; i < rows; i++)
			for (int v = 0; v < vecs; v += 16 / VL)
				__builtin_prefetch(t->residual + i * t->c_row + p->first + v * VL, 0, 3);
	}
	for (int64_t tap = 0; tap < t->taps; tap++, row += rows) {
		const float *a[TILE_ROWS], *b = p->weights + t->offset[tap];
		UNROLL
		for (int i = 0; i < rows; i++)
			a[i] = row[i] + t->from;
		if (t->is_sliced)
			ahead = p->ahead + t->offset[tap];
		for (int64_t k = 0, end; k < t->k;) {
			end = LEAST(k + PIECE, t->k);
			if (vecs <= NV)
				ahead = fetch(ahead, (end - k) * t->step);
			for (; k < end; k++, b += OM_PANEL) {
				vec bk[WIDEST];
				UNROLL
				for (int v = 0; v < vecs; v++)
					bk[v] = vec_load(weights_at(b, panel, v));
				/* Wide tiles wait for the memory anyway.  After the last row nothing is read. */
				for (int v = 0; v < vecs && vecs <= NV; v += 16 / VL)
					__builtin_prefetch(weights_at(b, panel, v) + AHEAD * OM_PANEL, 0, 3);
				UNROLL
				for (int i = 0; i < rows; i++) {
					const float x = a[i][k];
					UNROLL
					for (int v = 0; v < vecs; v++)
						sum[i][v] += x * bk[v];
				}
			}
		}
	}
	if (p->n >= vecs * VL) {
		store_all(t, sum, rows, vecs, false, p);
		return;
	}
	if (SOME_IS_FAST && p->n > (vecs - 1) * VL) {
		store_all(t, sum, rows, vecs, true, p);
		return;
	}
	float some[SUMS * VL];
	UNROLL
	for (int i = 0; i < rows; i++) {
		UNROLL
		for (int v = 0; v < vecs; v++)
			vec_store(some + (i * vecs + v) * VL, sum[i][v]);
	}
	store_some(t, some, rows, vecs, p);
}

/* A tile of 1, NV, 2 NV or 4 NV vectors; those that would not fit into the registers are not called. */
#define MOST_ROWS(vecs) LEAST(TILE_ROWS, SUMS / (vecs) ? SUMS / (vecs) : 1)
#define TILE(rows, vecs)                                                       \
NOINLINE void                                                                  \
tile_##rows##_##vecs(const struct om_tile *t, const struct place *p)           \
{                                                                              \
	tile(t, p, LEAST(rows, MOST_ROWS(vecs)), vecs);                        \
}
EACH_ROWS(TILE, 1)
EACH_ROWS(TILE, 2)
EACH_ROWS(TILE, 4)
EACH_ROWS(TILE, 8)

/* The same for at most half a vector of columns. */
INLINE void
half_tile(const struct om_tile *t, const struct place *p, const int rows)
{
	half_vec sum[TILE_ROWS];
	const float *const *row = t->rows;

	UNROLL
	for (int i = 0; i < rows; i++)
		sum[i] = (half_vec){0};
	for (int64_t tap = 0; tap < t->taps; tap++, row += rows) {
		const float *a[TILE_ROWS], *b = p->weights + t->offset[tap];
		UNROLL
		for (int i = 0; i < rows; i++)
			a[i] = row[i] + t->from;
		for (int64_t k = 0; k < t->k; k++, b += OM_PANEL) {
			const half_vec bk = *(const half_vec *)b;
			UNROLL
			for (int i = 0; i < rows; i++)
				sum[i] += a[i][k] * bk;
		}
	}
	const vec bias = t->bias ? vec_load_some(t->bias + p->first, p->n) : (vec){0};
	const float low = t->clamps ? t->low : -__builtin_inff(), high = t->clamps ? t->high : __builtin_inff();
	UNROLL
	for (int i = 0; i < rows; i++) {
		const int64_t at = i * t->c_row + p->first;
		vec x = vec_of_half(sum[i]) + bias;
		if (t->residual)
			x += vec_load_some(t->residual + at, p->n);
		x = t->act == OM_ACT_NONE ? vec_clamp(x, low, high) : tile_activate(t, x);
		if (p->n == VL / 2)
			memcpy(t->c + at, &x, sizeof(half_vec));
		else
			vec_store_some(t->c + at, x, p->n);
	}
}

#define HALF(rows, vecs)                                                       \
NOINLINE __attribute__((unused)) void                                          \
half_##rows(const struct om_tile *t, const struct place *p)                    \
{                                                                              \
	half_tile(t, p, LEAST(rows, TILE_ROWS));                               \
}
EACH_ROWS(HALF, 0)

typedef void tile_fn(const struct om_tile *t, const struct place *p);
#define NAME(rows, vecs) tile_##rows##_##vecs,
static tile_fn *const tiles[][MOST_TILE_ROWS + 1] = {
	{0, EACH_ROWS(NAME, 1)}, {0, EACH_ROWS(NAME, 2)}, {0, EACH_ROWS(NAME, 4)}, {0, EACH_ROWS(NAME, 8)},
};
#define HALF_NAME(rows, vecs) half_##rows,
static tile_fn *const halves[MOST_TILE_ROWS + 1] = {0, EACH_ROWS(HALF_NAME, 0)};

/* Are the last columns computed as half a vector?  Of short rows, other work takes longer. */
static bool
has_half(const struct om_tile *t, int64_t columns)
{
	return t->has_halves && t->taps * t->k >= SHORT && columns <= VL / 2;
}

/* The widest tile for so many rows and columns: vectors, as an index of the table. */
static int
width_for(const struct om_tile *t, int64_t rows, int64_t columns)
{
	int k = 3;

	if (columns <= VL || has_half(t, columns - VL))
		return 0;
	while (k > 1 && (rows * (1 << k) > SUMS || columns < (VL << k)))
		k--;
	return k;
}

void
OM_TABLE(om_tile_run)(const struct om_tile *t, int64_t rows, int64_t first, int64_t n)
{
	const int64_t end = first + n, share = t->step * (t->is_sliced ? 1 : t->taps) * t->k;

	for (int64_t column = first, k = 0; column < end; k++) {
		const float *weights = t->weights + column / OM_PANEL * t->panel + column % OM_PANEL;
		const int width = width_for(t, rows, end - column);
		const struct place p = {.first = column, .n = LEAST(end - column, VL << width),
			.weights = weights, .ahead = t->step ? t->ahead + k * share : weights};
		(has_half(t, end - column) ? halves : tiles[width])[rows](t, &p);
		column += VL << width;
	}
}
