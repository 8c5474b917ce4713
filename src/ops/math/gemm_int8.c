/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of 8-bit integers.
 *
 * An 8-bit integer minus its zero point is an integer in [-255, 255], a product of two is at most 65,025
 * in magnitude, and a sum of 256 of them at most 16,646,400, which is below 2^24. float32 therefore
 * represents it and every partial sum exactly, whatever the order of summation and whether or not
 * multiply-adds are fused.  The float32 GEMM computes blocks of this length along k, whose results are
 * added as integers, which wrap around.  Nothing is rounded: the result is bit-identical to integer
 * arithmetic.
 *
 * The product is computed in blocks of rows and columns, whose floats and sums share the L2 cache with
 * the panel of the GEMM; they are the only workspace, however large the matrices are.
 */
#include <config.h>

#include <string.h>

#include "ops/math/gemm_int8.h"
#include "opdef/numbers.h"

enum {
	ROWS = 128,
	COLUMNS = OM_GEMM_N,
	SUMMED = OM_GEMM_K,
	LEAST_ROWS = 3,           /* with fewer rows, converting the right side costs more than it saves */
};

_Static_assert(SUMMED * 255 * 255 < 1 << 24, "the sums of a block do not fit a float");

struct block {
	const struct om_bytes *p;
	int64_t i, j, k;              /* first row, column and term of the block */
	int64_t m, n;                 /* size of the block */
	float *left, *product;
	int32_t *sums;
	void *room;
};

static int64_t
least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

bool
om_gemm_int8_suits(int64_t m)
{
	return m >= LEAST_ROWS;
}

static uint64_t
piece_of(int64_t rows, int64_t columns)
{
	return om_piece_size((uint64_t)(rows * columns) * sizeof(float));
}

uint64_t
om_gemm_int8_workspace(int64_t m, int64_t n, int64_t k)
{
	m = least(m, ROWS);
	n = least(n, COLUMNS);
	k = least(k, SUMMED);
	return om_piece_size(om_gemm_workspace(m, n, k)) + piece_of(m, k) + 2 * piece_of(m, n);
}

static const float *
right_row(const void *rows, int64_t k, int64_t n0, int64_t n, float *room)
{
	const struct block *b = rows;

	return b->p->right(b->p->of, b->k + k, b->j + n0, n, room);
}

/* Add `k` terms to every sum of a block, from b->k on. */
static void
add_piece(const struct block *b, int64_t k)
{
	const om_kernels *kernels = om_kernels_get();
	const om_gemm g = {
		.m = b->m, .n = b->n, .k = k, .a = b->left, .a_row = k, .a_col = 1,
		.row = right_row, .rows = b, .c = b->product, .c_row = b->n, .alpha = 1,
	};

	for (int64_t i = 0; i < b->m; i++)
		b->p->left(b->p->of, b->i + i, b->k, k, b->left + i * k);
	kernels->gemm(&g, b->room);
	kernels->add_whole(b->sums, b->product, b->m * b->n);
}

static void
multiply_block(struct block *b)
{
	memset(b->sums, 0, (size_t)(b->m * b->n) * sizeof *b->sums);
	for (b->k = 0; b->k < b->p->k; b->k += SUMMED)
		add_piece(b, least(b->p->k - b->k, SUMMED));
	for (int64_t i = 0; i < b->m; i++)
		b->p->put(b->p->of, b->i + i, b->j, b->n, b->sums + i * b->n);
}

void
om_gemm_int8(const struct om_bytes *p, void *room)
{
	const int64_t m = least(p->m, ROWS), n = least(p->n, COLUMNS), k = least(p->k, SUMMED);
	struct block b = {.p = p, .room = room};
	char *at = (char *)room + om_piece_size(om_gemm_workspace(m, n, k));

	b.left = (float *)at;
	b.product = (float *)(at += piece_of(m, k));
	b.sums = (int32_t *)(at + piece_of(m, n));
	for (b.i = 0; b.i < p->m; b.i += ROWS)
		for (b.j = 0; b.j < p->n; b.j += COLUMNS) {
			b.m = least(p->m - b.i, ROWS);
			b.n = least(p->n - b.j, COLUMNS);
			multiply_block(&b);
		}
}
