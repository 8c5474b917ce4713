/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of products: the way to compute them, and their division into pieces. */
#include <config.h>

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/product.h"

enum {
	FEW_ROWS = 3,             /* for which packing B takes longer than dot products */
	PIECES = 16,              /* wanted, for a few workers */
	PIECE_WORK = 1 << 17,     /* multiplications that are worth a piece */
};

static void
swap(int64_t *a, int64_t *b)
{
	const int64_t t = *a;

	*a = *b;
	*b = t;
}

/* A column as a row of the transposed product: C must be contiguous either way. */
static bool
is_column_of_columns(const om_product *p)
{
	return p->n == 1 && p->m > 1 && p->c_row == 1 && p->a_row == 1 && p->a_col != 1;
}

static om_product_way
way_of(const om_product *p)
{
	if (p->a_col == 1 && p->b_row == 1 && (p->n == 1 || p->m <= FEW_ROWS))
		return OM_PRODUCT_DOTS;
	return p->m == 1 && p->b_col == 1 ? OM_PRODUCT_ROW : OM_PRODUCT_PANELS;
}

void
om_product_choose(om_product_batch *b)
{
	b->p.way = way_of(&b->p);
	b->is_swapped = is_column_of_columns(&b->p);
	if (!b->is_swapped)
		return;
	swap(&b->p.m, &b->p.n);
	swap(&b->p.a_row, &b->p.b_col);
	swap(&b->p.a_col, &b->p.b_row);
	b->p.c_row = b->p.n;
	for (int k = 0; k < b->rank; k++)
		swap(&b->a[k], &b->b[k]);
	b->p.way = way_of(&b->p);
}

static uint64_t
room_of(const om_product *p)
{
	const int64_t depth = p->k < OM_PRODUCT_DEPTH ? p->k : OM_PRODUCT_DEPTH;
	const int64_t width = p->n < OM_PRODUCT_WIDTH ? (p->n + 15) / 16 * 16 : OM_PRODUCT_WIDTH;

	return p->way == OM_PRODUCT_PANELS ? (uint64_t)(depth * width) * sizeof(float) : 0;
}

uint64_t
om_product_workspace(const om_product_batch *b, uint32_t workers)
{
	return room_of(&b->p) * workers;
}

/* ---- Pieces. ---- */

struct pieces {
	const om_product_batch *b;
	om_product_fn *multiply;
	const float *x, *y;
	float *c;
	char *room;
	int64_t matrices, each;   /* all, and in a piece */
	int64_t rows, columns;    /* in a piece: multiples of those of a tile */
	int64_t row_parts, column_parts;
};

static int64_t
parts(int64_t n, int64_t of)
{
	return n > of ? (n + of - 1) / of : 1;
}

static int64_t
smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Halve the longer side until there are enough pieces. */
static void
divide_matrix(struct pieces *s)
{
	const om_product *p = &s->b->p;
	const int64_t least_rows = 48, least_columns = 2 * OM_PRODUCT_WIDTH;

	while (s->matrices * parts(p->m, s->rows) * parts(p->n, s->columns) < PIECES) {
		if (s->columns > least_columns && s->columns >= s->rows)
			s->columns = (s->columns / 2 + OM_PRODUCT_WIDTH - 1) / OM_PRODUCT_WIDTH * OM_PRODUCT_WIDTH;
		else if (s->rows > 2 * least_rows)
			s->rows = (s->rows / 2 + 11) / 12 * 12;
		else
			break;
	}
	s->row_parts = parts(p->m, s->rows);
	s->column_parts = parts(p->n, s->columns);
}

static void
divide(struct pieces *s, uint32_t workers)
{
	const om_product *p = &s->b->p;
	const double work = (double)p->m * (double)p->n * (double)p->k;

	s->row_parts = s->column_parts = s->each = 1;
	s->rows = p->m;
	s->columns = p->n;
	if (workers < 2)
		s->each = s->matrices;
	else if (work * (double)s->matrices < PIECE_WORK)
		s->each = s->matrices;
	else if (s->matrices >= PIECES)
		s->each = work < PIECE_WORK ? smaller((int64_t)(PIECE_WORK / (work + 1)) + 1, s->matrices / PIECES) : 1;
	else
		divide_matrix(s);
}

static void
multiply_part(const struct pieces *s, int64_t matrix, int64_t i, int64_t j, void *room)
{
	const om_product_batch *b = s->b;
	om_product p = b->p;
	const float *x = s->x + i * p.a_row, *y = s->y + j * p.b_col;
	float *c = s->c + i * p.c_row + j;

	for (int k = b->rank - 1; k >= 0; k--) {
		const int64_t at = matrix % b->dim[k];
		matrix /= b->dim[k];
		x += at * b->a[k];
		y += at * b->b[k];
		c += at * b->c[k];
	}
	p.m = smaller(p.m - i, s->rows);
	p.n = smaller(p.n - j, s->columns);
	s->multiply(&p, x, y, c, room);
}

static void
multiply_piece(void *arg, int64_t piece, uint32_t worker)
{
	const struct pieces *s = arg;
	const int64_t j = piece % s->column_parts * s->columns;
	const int64_t i = piece / s->column_parts % s->row_parts * s->rows;
	const int64_t first = piece / s->column_parts / s->row_parts * s->each;

	for (int64_t q = first; q < smaller(first + s->each, s->matrices); q++)
		multiply_part(s, q, i, j, s->room + worker * room_of(&s->b->p));
}

void
om_product_run(const om_product_batch *b, const float *x, const float *y, float *c, void *room, om_workers *pool)
{
	struct pieces s = {
		.b = b, .multiply = om_kernels_get()->product->multiply[b->p.way], .x = b->is_swapped ? y : x,
		.y = b->is_swapped ? x : y, .c = c, .room = room, .matrices = 1,
	};

	for (int k = 0; k < b->rank; k++)
		s.matrices *= b->dim[k];
	if (s.matrices == 0 || b->p.m == 0 || b->p.n == 0)
		return;
	divide(&s, om_worker_count(pool));
	om_parallel_for(pool, parts(s.matrices, s.each) * s.row_parts * s.column_parts, multiply_piece, &s);
}
