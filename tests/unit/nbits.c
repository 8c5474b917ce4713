/* SPDX-License-Identifier: Apache-2.0 */
/* Products with integers of 4 and 8 bits of every instruction set, beside sums in double. */
#include <config.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "kernels/cpu/kernels.h"
#include "tests/fixtures.h"
#include "unit.h"

enum { CASES = 60, GUARD = 4 };

struct trial {
	om_nbits b;
	int64_t k;
	float *x, *room;
	double *want, *size;      /* of each sum; the sum of the magnitudes */
};

static void *
random_bytes(uint64_t *state, int64_t n)
{
	uint8_t *x = malloc((size_t)n);

	for (int64_t k = 0; k < n; k++)
		x[k] = (uint8_t)om_rng_below(state, 256);
	return x;
}

static float *
random_floats(uint64_t *state, int64_t n)
{
	float *x = malloc((size_t)n * sizeof *x);

	for (int64_t k = 0; k < n; k++)
		x[k] = (float)(om_rng_unit(state) * 2 - 1);
	return x;
}

/* Elements in a byte. */
static int64_t
per_byte(const om_nbits *b)
{
	return b->is_8_bits ? 1 : 2;
}

static int
element(const om_nbits *b, const uint8_t *p, int64_t k)
{
	return b->is_8_bits ? p[k] : p[k / 2] >> k % 2 * 4 & 15;
}

static void
compute(struct trial *t)
{
	const om_nbits *b = &t->b;

	for (int64_t i = 0; i < b->rows * b->columns; i++) {
		const int64_t n = i % b->columns;
		t->want[i] = b->bias ? (double)b->bias[n] : 0;
		t->size[i] = 1;
		for (int64_t k = 0; k < t->k; k++) {
			const int64_t block = k / (per_byte(b) * b->bytes);
			const int zero = b->zeros ? element(b, b->zeros + n * b->zero_bytes, block) : b->is_8_bits ? 128 : 8;
			const double w = (element(b, b->weights + n * b->blocks * b->bytes, k) - zero) * (double)b->scales[n * b->blocks + block];
			t->want[i] += w * (double)t->x[i / b->columns * t->k + k];
			t->size[i] += (b->is_8_bits ? 510 : 30) * (double)b->scales[n * b->blocks + block];
		}
	}
}

static void
split(struct trial *t)
{
	om_nbits *b = &t->b;
	float *odd = t->room + b->rows * om_nbits_half(b), *sums = odd + b->rows * om_nbits_half(b);

	for (int64_t r = 0; r < b->rows; r++)
		om_nbits_split(b, t->x + r * t->k, t->k, r, t->room, odd, sums);
	b->even = t->room;
	b->odd = odd;
	b->sums = sums;
}

static void
start(struct trial *t, uint64_t *state)
{
	om_nbits *b = &t->b;

	*t = (struct trial){.k = 1 + (int64_t)om_rng_below(state, 400)};
	*b = (om_nbits){.rows = 1 + (int64_t)om_rng_below(state, OM_NBITS_ROWS), .columns = 1 + (int64_t)om_rng_below(state, 40),
		.bytes = 16 << om_rng_below(state, 4), .is_8_bits = om_rng_below(state, 2)};
	const int64_t per = per_byte(b);
	b->blocks = (t->k + per * b->bytes - 1) / (per * b->bytes);
	b->zero_bytes = (b->blocks + per - 1) / per;
	b->weights = random_bytes(state, b->columns * b->blocks * b->bytes);
	b->zeros = om_rng_below(state, 2) ? random_bytes(state, b->columns * b->zero_bytes) : NULL;
	b->bias = om_rng_below(state, 2) ? random_floats(state, b->columns) : NULL;
	float *scales = random_floats(state, b->columns * b->blocks);
	for (int64_t k = 0; k < b->columns * b->blocks; k++)
		scales[k] = fabsf(scales[k]);
	b->scales = scales;
	t->x = random_floats(state, b->rows * t->k);
	t->want = malloc(2 * (size_t)(b->rows * b->columns) * sizeof *t->want);
	t->size = t->want + b->rows * b->columns;
	t->room = malloc((size_t)(b->rows * (2 * om_nbits_half(b) + b->blocks)) * sizeof *t->room);
	split(t);
	compute(t);
}

static void
end(struct trial *t)
{
	free((void *)t->b.weights);
	free((void *)t->b.zeros);
	free((void *)t->b.bias);
	free((void *)t->b.scales);
	free(t->x);
	free(t->want);
	free(t->room);
}

static void
check(const om_kernels *kernels, const struct trial *t)
{
	const int64_t n = t->b.rows * t->b.columns;
	float *y = malloc((size_t)(n + GUARD) * sizeof *y);
	om_nbits b = t->b;
	bool right = true;

	memset(y, 0x41, (size_t)(n + GUARD) * sizeof *y);
	b.y = y;
	kernels->nbits->columns(&b, 0, b.columns / 2);
	kernels->nbits->columns(&b, b.columns / 2, b.columns);
	for (int64_t i = 0; i < n; i++)
		right = right && fabs((double)y[i] - t->want[i]) <= 1e-6 * t->size[i];
	for (size_t k = 0; k < GUARD * sizeof *y; k++)
		right = right && ((const char *)(y + n))[k] == 0x41;
	CU_ASSERT(right);
	free(y);
}

static void
products(void)
{
	uint64_t state = 3;

	for (int k = 0; k < CASES; k++) {
		const om_kernels *kernels;
		struct trial t;
		start(&t, &state);
		for (unsigned i = 0; (kernels = om_kernels_at(i)); i++)
			check(kernels, &t);
		end(&t);
	}
}

/* Of the first row, which has an element that is infinite: infinite, too, or NaN where the integer is the zero point. */
static void
check_infinite(const om_kernels *kernels, const struct trial *t)
{
	om_nbits b = t->b;
	bool right = true;

	b.y = malloc((size_t)(b.rows * b.columns) * sizeof *b.y);
	kernels->nbits->columns(&b, 0, b.columns);
	for (int64_t n = 0; n < b.columns; n++)
		right = right && (isnan(t->want[n]) ? isnan(b.y[n]) : (double)b.y[n] == t->want[n]);
	CU_ASSERT(right);
	free(b.y);
}

static void
infinite_elements(void)
{
	uint64_t state = 5;

	for (int k = 0; k < CASES; k++) {
		const om_kernels *kernels;
		struct trial t;
		start(&t, &state);
		t.x[0] = INFINITY;
		split(&t);
		compute(&t);
		for (unsigned i = 0; t.b.is_8_bits && (kernels = om_kernels_at(i)); i++)
			check_infinite(kernels, &t);
		end(&t);
	}
}

/* ---- Rounded rows. ---- */

/* Round the rows, and make them what they were rounded to. */
static void
round_rows(struct trial *t, om_nbits_bytes *r, float *sums)
{
	const om_nbits *b = &t->b;
	const int64_t whole = om_nbits_whole(b), per = per_byte(b);
	int8_t *even = malloc((size_t)(2 * b->rows * whole));
	float *scales = malloc((size_t)(b->rows * whole / 4) * sizeof *scales);
	bool near = true;

	*r = (om_nbits_bytes){even, even + b->rows * whole, scales};
	for (int64_t row = 0; row < b->rows; row++) {
		om_nbits_round(b, t->x + row * t->k, t->k, row, even, even + b->rows * whole, scales, sums);
		for (int64_t k = 0; k < t->k; k++) {
			float *x = &t->x[row * t->k + k];
			const float scale = scales[(row * whole + k / per) / 4];
			const float is = scale * (float)(k % per ? r->odd : r->even)[row * whole + k / per];
			near = near && fabsf(*x - is) <= 0.5001f * scale;
			*x = is;
		}
	}
	CU_ASSERT(near);
}

static void
check_rounded(const om_kernels *kernels, const struct trial *t, const om_nbits_bytes *r, const float *sums)
{
	const int64_t n = t->b.rows * t->b.columns;
	float *y = malloc((size_t)(n + GUARD) * sizeof *y);
	om_nbits b = t->b;
	bool right = true;

	memset(y, 0x41, (size_t)(n + GUARD) * sizeof *y);
	b.y = y;
	b.even = b.odd = NULL;
	b.sums = sums;
	kernels->nbits->rounded(&b, r, 0, b.columns / 2);
	kernels->nbits->rounded(&b, r, b.columns / 2, b.columns);
	for (int64_t i = 0; i < n; i++)
		right = right && fabs((double)y[i] - t->want[i]) <= 1e-6 * t->size[i];
	for (size_t k = 0; k < GUARD * sizeof *y; k++)
		right = right && ((const char *)(y + n))[k] == 0x41;
	CU_ASSERT(right);
	free(y);
}

static void
rounded_products(void)
{
	uint64_t state = 4;

	for (int k = 0; k < CASES; k++) {
		const om_kernels *kernels;
		om_nbits_bytes r;
		struct trial t;
		start(&t, &state);
		float *sums = malloc((size_t)(t.b.rows * t.b.blocks) * sizeof *sums);
		round_rows(&t, &r, sums);
		compute(&t);
		for (unsigned i = 0; (kernels = om_kernels_at(i)); i++)
			check_rounded(kernels, &t, &r, sums);
		free(sums);
		free((void *)r.even);
		free((void *)r.scales);
		end(&t);
	}
}

/* A row with an element that is not finite gives NaN. */
static void
not_a_number(void)
{
	enum { K = 70, BLOCKS = 3 };
	static const uint8_t weights[BLOCKS * 16] = {0x9a, 0x27};
	static const float scales[BLOCKS] = {1, 1, 1}, odd_ones[] = {NAN, INFINITY, -INFINITY, 1e37f};
	int8_t even[64], odd[64];
	float x[K] = {0}, of_bytes[16], sums[BLOCKS], y;
	const om_nbits b = {.rows = 1, .columns = 1, .blocks = BLOCKS, .bytes = 16, .weights = weights, .scales = scales, .sums = sums, .y = &y};
	const om_nbits_bytes r = {even, odd, of_bytes};
	const om_kernels *kernels;

	for (unsigned i = 0; (kernels = om_kernels_at(i)); i++)
		for (int k = 0; k < 4; k++) {
			x[1] = odd_ones[k];
			om_nbits_round(&b, x, K, 0, even, odd, of_bytes, sums);
			kernels->nbits->rounded(&b, &r, 0, 1);
			CU_ASSERT(k < 3 ? isnan(y) : isfinite(y));
		}
}

/* The op with 20 rows, of which panels of 128 columns are multiplied; the last panel has 72, the last block of a column four elements. */
enum { ROWS = 20, LENGTH = 100, WIDTH = 200 };

static void
run_op(int bits, bool precise, float *y)
{
	const om_exec_options o = OM_EXEC_OPTIONS(.no_reuse = true, .precise = precise);
	const int64_t bytes = 4 * bits, zeros = bits / 2;
	const int64_t dims[][3] = {{ROWS, LENGTH}, {WIDTH, 4, bytes}, {WIDTH, 4}, {WIDTH, zeros}, {WIDTH}};
	static const int rank[] = {2, 3, 2, 2, 1};
	uint64_t state = 5;
	char text[600];
	om_tensor in[5];
	bench b;

	snprintf(text, sizeof text, "program \"\" ir 10 opset 22 opset com.microsoft 1\n^main(%%x: float32[%d,%d], %%w: uint8[%d,4,%d], "
		"%%s: float32[%d,4], %%z: uint8[%d,%d], %%b: float32[%d]) {\n\t%%y = com.microsoft::MatMulNBits(%%x, %%w, %%s, %%z, _, %%b) "
		"{K = %d, N = %d, bits = %d, block_size = 32}\n\tret %%y\n}\n", ROWS, LENGTH, WIDTH, (int)bytes, WIDTH, WIDTH, (int)zeros, WIDTH,
		LENGTH, WIDTH, bits);
	unit_start(&b, text, "inline,shapes,fold");
	for (int k = 0; k < 5; k++) {
		const bool is_real = k == 0 || k == 2 || k == 4;
		in[k] = (om_tensor){.type = is_real ? OM_FLOAT32 : OM_UINT8, .shape = om_shape_of(rank[k], dims[k])};
		const int64_t n = om_shape_count(&in[k].shape);
		in[k].data = is_real ? (void *)random_floats(&state, n) : random_bytes(&state, n);
	}
	CU_ASSERT_FATAL(is_ok(b.s, bench_exec(&b, &o)));
	CU_ASSERT(is_ok(b.s, om_exec_output(b.e, 0, y, ROWS * WIDTH * sizeof *y)));
	CU_ASSERT_FATAL(is_ok(b.s, bench_run(&b, in, 5)));
	for (int k = 0; k < 5; k++)
		free(in[k].data);
	bench_close(&b);
}

static void
many_rows(void)
{
	static float fast[ROWS * WIDTH], precise[ROWS * WIDTH];

	for (int bits = 4; bits <= 8; bits += 4) {
		bool agree = true;
		run_op(bits, false, fast);
		run_op(bits, true, precise);
		for (int i = 0; i < ROWS * WIDTH; i++)
			agree = agree && fabs((double)fast[i] - (double)precise[i]) < 2e-5 * (bits == 4 ? 16 : 256) * 4;
		CU_ASSERT(agree);
	}
}

static CU_TestInfo nbits_tests[] = {
	{"products of rounded rows are right", rounded_products},
	{"rounded rows that are not finite give NaN", not_a_number},
	{"products are right", products},
	{"of many rows the reference agrees", many_rows},
	{"of 8 bits and what is infinite are infinite", infinite_elements},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("nbits", nbits_tests);
