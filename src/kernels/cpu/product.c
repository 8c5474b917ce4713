/* SPDX-License-Identifier: Apache-2.0 */
/* One product of two computed matrices, per instruction set; see product.h. */
#include <config.h>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/product.h"
#include "kernels/cpu/tile.h"

/* ---- Panels. ---- */

/* Columns [j, j + n) of rows [i, i + k) of B as a panel: in place where that costs less than a copy. */
static void
take_panel(const om_product *p, const float *b, int64_t n, struct tile *t, float *room)
{
	if (p->b_col == 1 && p->m <= 2 * TILE_ROWS && n % VL == 0) {
		t->b = b;
		t->b_row = p->b_row;
		return;
	}
	if (p->b_col == 1)
		panel_from_rows(room, b, t->k, n, p->b_row);
	else if (p->b_row == 1)
		panel_from_columns(room, b, t->k, n, p->b_col);
	else
		panel_from_any(room, b, t->k, n, p->b_row, p->b_col);
	t->b = room;
	t->b_row = tile_vecs(n) * VL;
}

static void
by_panels(const om_product *p, const float *a, const float *b, float *c, float *room)
{
	struct tile t = {.a_row = p->a_row, .a_col = p->a_col, .c_row = p->c_row, .alpha = p->alpha};

	for (int64_t j = 0; j < p->n; j += TILE_COLUMNS) {
		const int64_t n = least(p->n - j, TILE_COLUMNS);
		for (int64_t k = 0; k == 0 || k < p->k; k += OM_PRODUCT_DEPTH) {
			t.k = least(p->k - k, OM_PRODUCT_DEPTH);
			t.add = p->add || k > 0;
			take_panel(p, b + k * p->b_row + j * p->b_col, n, &t, room);
			t.a = a + k * p->a_col;
			t.c = c + j;
			tile_panel(t, p->m, n);
		}
	}
}

/* ---- Few rows or one column, with both operands contiguous along k. ---- */

INLINE void
dots_of(const om_product *p, const float *a, const float *b, float *c, const int rows)
{
	vec sum[4] = {{0}};
	int64_t k = 0;

	for (; k + VL <= p->k; k += VL) {
		const vec y = vec_load(b + k);
		UNROLL
		for (int i = 0; i < rows; i++)
			sum[i] += vec_load(a + i * p->a_row + k) * y;
	}
	if (k < p->k) {
		const vec y = vec_load_some(b + k, p->k - k);
		UNROLL
		for (int i = 0; i < rows; i++)
			sum[i] += vec_load_some(a + i * p->a_row + k, p->k - k) * y;
	}
	UNROLL
	for (int i = 0; i < rows; i++) {
		const float dot = p->alpha * vec_sum(sum[i]);
		c[i * p->c_row] = p->add ? c[i * p->c_row] + dot : dot;
	}
}

static void
by_dots(const om_product *p, const float *a, const float *b, float *c, float *room)
{
	(void)room;
	for (int64_t i = 0; i < p->m; i += 4)
		for (int64_t j = 0; j < p->n; j++) {
			const float *x = a + i * p->a_row, *y = b + j * p->b_col;
			float *to = c + i * p->c_row + j;
			switch (p->m - i) {
			case 1: dots_of(p, x, y, to, 1); break;
			case 2: dots_of(p, x, y, to, 2); break;
			case 3: dots_of(p, x, y, to, 3); break;
			default: dots_of(p, x, y, to, 4);
			}
		}
}

/* ---- One row of C, from rows of B in the order of memory. ---- */

INLINE vec
row_part(const float *b, int64_t row, const float *x, vec sum, int64_t n, const int rows)
{
	UNROLL
	for (int i = 0; i < rows; i++)
		sum += x[i] * (n == VL ? vec_load(b + i * row) : vec_load_some(b + i * row, n));
	return sum;
}

INLINE void
add_rows(const float *b, int64_t row, const float *x, float *c, int64_t n, const int rows)
{
	int64_t j = 0;

	for (; j + VL <= n; j += VL)
		vec_store(c + j, row_part(b + j, row, x, vec_load(c + j), VL, rows));
	if (j < n)
		vec_store_some(c + j, row_part(b + j, row, x, vec_load_some(c + j, n - j), n - j, rows), n - j);
}

static void
by_row(const om_product *p, const float *a, const float *b, float *c, float *room)
{
	int64_t k = 0;

	(void)room;
	if (!p->add && p->n)
		memset(c, 0, (size_t)p->n * sizeof *c);
	for (; k + 4 <= p->k; k += 4) {
		float x[4];
		for (int i = 0; i < 4; i++)
			x[i] = p->alpha * a[(k + i) * p->a_col];
		add_rows(b + k * p->b_row, p->b_row, x, c, p->n, 4);
	}
	for (; k < p->k; k++) {
		const float x = p->alpha * a[k * p->a_col];
		add_rows(b + k * p->b_row, p->b_row, &x, c, p->n, 1);
	}
}

extern const om_product_kernels OM_TABLE(om_product_kernels);

const om_product_kernels OM_TABLE(om_product_kernels) = {
	.multiply = {[OM_PRODUCT_PANELS] = by_panels, [OM_PRODUCT_DOTS] = by_dots, [OM_PRODUCT_ROW] = by_row},
};
