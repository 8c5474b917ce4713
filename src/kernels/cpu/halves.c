/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of 16 bits: see halves.h.  A product reads the rows of the matrix one after the other, and adds to the sums of a
 * range of columns, which stay in registers. */
#include <config.h>

#include "base/half.h"
#include "kernels/cpu/halves.h"
#include "kernels/cpu/stored.h"

INLINE vec
vec_load_some_halves(const uint16_t *p, int64_t n)
{
	uint16_t some[VL] = {0};

	memcpy(some, p, (size_t)n * sizeof *p);
	return vec_load_halves(some);
}

static void
widen(float *to, const uint16_t *from, int64_t n)
{
	int64_t k = 0;

	for (; k + VL <= n; k += VL)
		vec_store(to + k, vec_load_halves(from + k));
	if (k < n)
		vec_store_some(to + k, vec_load_some_halves(from + k, n - k), n - k);
}

enum { MOST_VECS = 4 };           /* of a piece of a row */

INLINE void
store_halves(uint16_t *y, vec sum, int64_t n)
{
	float lanes[VL];

	vec_store(lanes, sum);
	for (int64_t k = 0; k < n; k++)
		y[k] = om_float_to_half(lanes[k]);
}

/* Columns [j, j + n), where n is vecs * VL, or less with one vector. */
INLINE void
add_rows(const om_half_product *p, int64_t j, int64_t n, const int rows, const int vecs)
{
	vec sum[OM_HALF_ROWS][MOST_VECS] = {{{0}}};

	for (int64_t k = 0; k < p->k; k++) {
		const uint16_t *w = p->w + k * p->columns + j;
		UNROLL
		for (int v = 0; v < vecs; v++) {
			const vec is = n < VL ? vec_load_some_halves(w, n) : vec_load_halves(w + v * VL);
			UNROLL
			for (int r = 0; r < rows; r++)
				sum[r][v] += vec_all(p->x[r * p->k + k]) * is;
		}
	}
	UNROLL
	for (int r = 0; r < rows; r++)
		UNROLL
		for (int v = 0; v < vecs; v++)
			store_halves(p->y + r * p->columns + j + v * VL, sum[r][v], LEAST(n, VL));
}

INLINE void
columns_of(const om_half_product *p, int64_t first, int64_t end, const int rows)
{
	int64_t j = first;

	for (; j + MOST_VECS * VL <= end; j += MOST_VECS * VL)
		add_rows(p, j, MOST_VECS * VL, rows, MOST_VECS);
	for (; j + VL <= end; j += VL)
		add_rows(p, j, VL, rows, 1);
	if (j < end)
		add_rows(p, j, end - j, rows, 1);
}

static void
columns(const om_half_product *p, int64_t first, int64_t end)
{
	switch (p->rows) {
	case 1: columns_of(p, first, end, 1); break;
	case 2: columns_of(p, first, end, 2); break;
	case 3: columns_of(p, first, end, 3); break;
	default: columns_of(p, first, end, 4); break;
	}
}

extern const om_half_kernels OM_TABLE(om_half_kernels);

const om_half_kernels OM_TABLE(om_half_kernels) = {.widen = widen, .columns = columns};
