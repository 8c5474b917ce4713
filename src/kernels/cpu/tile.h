/* SPDX-License-Identifier: Apache-2.0 */
/* Register tiles of matrix products, for the sources that multiply: up to TILE_ROWS rows of A by TILE_VECS
 * vectors of columns of B, with the sums in registers over the whole loop in k.
 *
 * A is read as scalars with any strides.  The columns of B are contiguous, its rows any distance apart: packed
 * panels and matrices in place are read alike.  B must have whole vectors; what C has in the last one is
 * `last`.  Each element is summed over k in order, so a product does not depend on how it is divided into
 * tiles. */
#ifndef OM_TILE_H
#define OM_TILE_H

#include <stdbool.h>

#include "kernels/cpu/simd.h"

enum {
	TILE_ROWS = OM_VL == 4 ? 4 : 6,
	TILE_VECS = OM_VL == 16 ? 4 : 2,
	TILE_COLUMNS = TILE_VECS * OM_VL,
};

struct tile {
	const float *a;
	int64_t a_row, a_col;
	const float *b;
	int64_t b_row;
	int64_t k;
	float *c;
	int64_t c_row;
	int64_t last;             /* columns in the last vector, 1 to VL */
	float alpha;
	bool add;                 /* to C */
};

INLINE int64_t
least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

INLINE void
tile_store(const struct tile *t, float *c, vec sum, bool is_last)
{
	const bool is_partial = is_last && t->last < VL;

	sum *= t->alpha;
	if (t->add)
		sum += is_partial ? vec_load_some(c, t->last) : vec_load(c);
	if (is_partial)
		vec_store_some(c, sum, t->last);
	else
		vec_store(c, sum);
}

/* `rows` and `vecs` are compile-time constants in every call, so that the sums are registers. */
INLINE void
tile_run(const struct tile *t, const int rows, const int vecs)
{
	const int64_t row = t->a_row, col = t->a_col;
	const float *a0 = t->a, *a3 = rows > 3 ? t->a + 3 * row : t->a, *b = t->b;
	vec sum[6][4];

	UNROLL
	for (int i = 0; i < rows; i++) {
		UNROLL
		for (int v = 0; v < vecs; v++)
			sum[i][v] = (vec){0};
	}
	for (int64_t k = 0; k < t->k; k++, a0 += col, a3 += col, b += t->b_row) {
		vec bk[4];
		UNROLL
		for (int v = 0; v < vecs; v++)
			bk[v] = vec_load(b + v * VL);
		UNROLL
		for (int i = 0; i < rows; i++) {
			const float x = (i < 3 ? a0 : a3)[i % 3 * row];
			UNROLL
			for (int v = 0; v < vecs; v++)
				sum[i][v] += x * bk[v];
		}
	}
	UNROLL
	for (int i = 0; i < rows; i++) {
		UNROLL
		for (int v = 0; v < vecs; v++)
			tile_store(t, t->c + i * t->c_row + v * VL, sum[i][v], v == vecs - 1);
	}
}

#define TILE(rows, vecs) static void tile_##rows##_##vecs(const struct tile *t) { tile_run(t, rows, vecs); }
#define TILES_OF(rows) TILE(rows, 1) TILE(rows, 2) TILE(rows, 3) TILE(rows, 4)
TILES_OF(1)
TILES_OF(2)
TILES_OF(3)
TILES_OF(4)
TILES_OF(5)
TILES_OF(6)

typedef void tile_fn(const struct tile *);
#define TILE_ENTRIES(rows) {0, tile_##rows##_1, tile_##rows##_2, tile_##rows##_3, tile_##rows##_4}
static tile_fn *const tiles[7][5] = {
	{0}, TILE_ENTRIES(1), TILE_ENTRIES(2), TILE_ENTRIES(3), TILE_ENTRIES(4), TILE_ENTRIES(5), TILE_ENTRIES(6),
};

/* The vectors that hold `n` columns. */
INLINE int
tile_vecs(int64_t n)
{
	return (int)((n + VL - 1) / VL);
}

/* All rows of C, in columns of one panel of `n` columns, at most TILE_COLUMNS. */
INLINE void
tile_panel(struct tile t, int64_t rows, int64_t n)
{
	const int vecs = tile_vecs(n);
	const float *a = t.a;
	float *c = t.c;

	t.last = n - (vecs - 1) * VL;
	for (int64_t i = 0; i < rows; i += TILE_ROWS) {
		t.a = a + i * t.a_row;
		t.c = c + i * t.c_row;
		tiles[least(rows - i, TILE_ROWS)][vecs](&t);
	}
}

/* ---- Panels of B: k rows of `vecs` vectors; columns after `n` are zero. ---- */

INLINE void
panel_from_rows(float *to, const float *from, int64_t k, int64_t n, int64_t row)
{
	const int vecs = tile_vecs(n);
	const int64_t last = n - (vecs - 1) * VL;

	for (int64_t i = 0; i < k; i++, from += row, to += vecs * VL) {
		for (int v = 0; v < vecs - 1; v++)
			vec_store(to + v * VL, vec_load(from + v * VL));
		vec_store(to + (vecs - 1) * VL, vec_load_some(from + (vecs - 1) * VL, last));
	}
}

/* The columns of the panel are rows in memory, `col` apart. */
INLINE void
panel_from_columns(float *to, const float *from, int64_t k, int64_t n, int64_t col)
{
	const int64_t width = tile_vecs(n) * VL;

	for (int64_t j = 0; j < width; j += VL)
		for (int64_t i = 0; i < k; i += VL) {
			const int64_t some = least(k - i, VL);
			vec r[VL];
			UNROLL
			for (int e = 0; e < VL; e++) {
				const float *at = from + (j + e) * col + i;
				r[e] = j + e >= n ? (vec){0} : some == VL ? vec_load(at) : vec_load_some(at, some);
			}
			vec_transpose(r);
			UNROLL
			for (int e = 0; e < VL; e++)
				if (e < some)
					vec_store(to + (i + e) * width + j, r[e]);
		}
}

INLINE void
panel_from_any(float *to, const float *from, int64_t k, int64_t n, int64_t row, int64_t col)
{
	const int64_t width = tile_vecs(n) * VL;

	for (int64_t i = 0; i < k; i++)
		for (int64_t j = 0; j < width; j++)
			to[i * width + j] = j < n ? from[i * row + j * col] : 0;
}

#endif
