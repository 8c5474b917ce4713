/* Products of matrices of bytes.
 *
 * A byte less its zero point is a whole number of at most 255 either way, a
 * product of two at most 65,025, and a sum of 256 of them at most 16,646,400:
 * below 2^24, so that float32 holds it and every sum on the way to it, in
 * whatever order they are added, and whether or not products are fused with
 * sums.  So the product of float32 computes pieces of that length along k, and
 * the sums of the pieces are added as integers, which wrap.  Nothing is rounded:
 * the result is that of integers, bit by bit.
 *
 * It goes by blocks of rows and columns, whose floats and sums share the second
 * cache with the panel of the product; they are all the memory that it takes,
 * however large the matrices are.  Every block ends with its last piece, and
 * there are finitely many blocks.
 */
#include <config.h>

#include <string.h>

#include "ops/math/gemm_int8.h"
#include "opdef/numbers.h"

enum {
	ROWS = 128,
	COLUMNS = OM_GEMM_N,
	SUMMED = OM_GEMM_K,
	LEAST_ROWS = 3,           /* below, making floats of the right side takes longer than its use */
};

_Static_assert(SUMMED * 255 * 255 < 1 << 24, "sums of a piece do not fit a float");

struct block {
	const struct om_bytes *p;
	int64_t i, j, k;              /* where it starts, */
	int64_t m, n;                 /* how large it is */
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

/* `k` terms of every sum of a block, from b->k on. */
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
