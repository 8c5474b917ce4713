/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of every instruction set that this machine has, beside plain
 * loops, over random shapes. */
#include <config.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/kernels.h"
#include "unit.h"

enum { ROUNDS = 200, LARGEST = 330 };

/* The same numbers on every run. */
static uint32_t
next(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static float
number(uint32_t *seed)
{
	return (float)(next(seed) % 2001) / 1000 - 1;
}

/* Small shapes mostly, and some that are larger than a panel. */
static int64_t
size(uint32_t *seed)
{
	return next(seed) % (next(seed) % 4 ? 40 : LARGEST);
}

static float *
numbers(uint32_t *seed, int64_t n)
{
	float *x = malloc((size_t)(n + 1) * sizeof *x);

	for (int64_t i = 0; i < n; i++)
		x[i] = number(seed);
	return x;
}

struct problem {
	om_gemm g;
	float *a, *b, *c;
};

static void
start(struct problem *p, uint32_t *seed)
{
	const int64_t m = size(seed), n = size(seed), k = size(seed);
	const bool ta = next(seed) % 2, tb = next(seed) % 2;

	p->a = numbers(seed, m * k);
	p->b = numbers(seed, k * n);
	p->c = numbers(seed, m * n);
	p->g = (om_gemm){
		.m = m, .n = n, .k = k, .a = p->a, .a_row = ta ? 1 : k, .a_col = ta ? m : 1,
		.b = p->b, .b_row = tb ? 1 : n, .b_col = tb ? k : 1, .c_row = n,
		.alpha = next(seed) % 2 ? 1 : 0.5f, .add = next(seed) % 2,
	};
}

static void
end(struct problem *p)
{
	free(p->a);
	free(p->b);
	free(p->c);
}

/* A part of a matrix row, copied: what convolutions do. */
static const float *
copied_row(const void *rows, int64_t k, int64_t n0, int64_t n, float *room)
{
	const om_gemm *g = rows;

	for (int64_t j = 0; j < n; j++)
		room[j] = g->b[k * g->b_row + (n0 + j) * g->b_col];
	return room;
}

/* The product in `out`, which starts as the problem's C; the room is filled
 * with what must not matter. */
static void
run(const om_kernels *kernels, const struct problem *p, int garbage, bool by_rows, float *out)
{
	const uint64_t bytes = om_gemm_workspace(p->g.m, p->g.n, p->g.k);
	unsigned char *room = malloc(bytes + 1);
	om_gemm g = p->g;

	memset(room, garbage, bytes + 1);
	memcpy(out, p->c, (size_t)(g.m * g.n) * sizeof *out);
	g.c = out;
	g.row = by_rows ? copied_row : NULL;
	g.rows = &p->g;
	kernels->gemm(&g, room);
	CU_ASSERT_EQUAL(room[bytes], (unsigned char)garbage);
	free(room);
}

static bool
is_product(const struct problem *p, const float *got)
{
	const om_gemm *g = &p->g;

	for (int64_t i = 0; i < g->m; i++)
		for (int64_t j = 0; j < g->n; j++) {
			double sum = 0;
			for (int64_t k = 0; k < g->k; k++)
				sum += (double)g->a[i * g->a_row + k * g->a_col]
					* (double)g->b[k * g->b_row + j * g->b_col];
			sum = (double)g->alpha * sum + (g->add ? (double)p->c[i * g->n + j] : 0);
			if (!(fabs(sum - (double)got[i * g->n + j]) < 1e-4))
				return false;
		}
	return true;
}

static void
products_are_right(void)
{
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++) {
		uint32_t seed = 1;
		for (int round = 0; round < ROUNDS; round++) {
			struct problem p;
			start(&p, &seed);
			float *got = numbers(&seed, p.g.m * p.g.n);
			run(kernels, &p, 0xff, round % 3 == 0, got);
			CU_ASSERT(is_product(&p, got));
			free(got);
			end(&p);
		}
	}
}

/* Bit for bit, at any alignment and whatever the room holds. */
static void
products_repeat(void)
{
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++) {
		uint32_t seed = 2;
		for (int round = 0; round < ROUNDS / 4; round++) {
			struct problem p;
			start(&p, &seed);
			const size_t bytes = (size_t)(p.g.m * p.g.n) * sizeof(float);
			float *first = malloc(bytes + 64), *second = malloc(bytes + 64);
			run(kernels, &p, 0x00, false, first);
			run(kernels, &p, 0xff, false, second + 1 + round % 7);
			CU_ASSERT_EQUAL(memcmp(first, second + 1 + round % 7, bytes), 0);
			free(first);
			free(second);
			end(&p);
		}
	}
}

static void
taps_are_summed(void)
{
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++) {
		uint32_t seed = 3;
		for (int round = 0; round < ROUNDS; round++) {
			const int64_t n = size(&seed), stride = 1 + next(&seed) % 3;
			float *x = numbers(&seed, n * stride + 8), *out = numbers(&seed, n);
			const float *in[] = {x, x + 1, x + 2, x + 5}, w[] = {0.5f, -1, 0.25f, 2};
			double *want = malloc((size_t)(n + 1) * sizeof *want);
			bool right = true;
			for (int64_t j = 0; j < n; j++) {
				want[j] = (double)out[j];
				for (int t = 0; t < 4; t++)
					want[j] += (double)(w[t] * in[t][j * stride]);
			}
			kernels->taps(out, n, in, w, 4, stride);
			for (int64_t j = 0; j < n; j++)
				right &= fabs(want[j] - (double)out[j]) < 1e-5;
			CU_ASSERT(right);
			free(want);
			free(x);
			free(out);
		}
	}
}

static double
curve_of(int k, double x, double a)
{
	const double root = sqrt(0.5), cube = sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x);

	switch (k) {
	case OM_CURVE_ERF: return erf(x);
	case OM_CURVE_EXP: return exp(x);
	case OM_CURVE_GELU: return 0.5 * x * (1 + erf(x * root));
	case OM_CURVE_GELU_TANH: return 0.5 * x * (1 + tanh(cube));
	case OM_CURVE_SIGMOID: return 1 / (1 + exp(-x));
	case OM_CURVE_SWISH: return x / (1 + exp(-a * x));
	default: return tanh(x);
	}
}

/* In place, at every length around a piece, and with nothing written after the end. */
static void
curves_are_near(void)
{
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++)
		for (int k = 0; k < OM_NCURVE; k++)
			for (int64_t n = 0; n < 100; n++) {
				float x[101];
				bool right = true;
				for (int64_t i = 0; i <= n; i++)
					x[i] = (float)((double)(i - n / 2) * 0.23);
				kernels->curve[k](x, x, n, 1.5f);
				for (int64_t i = 0; i < n; i++) {
					const double want = curve_of(k, (double)(float)((double)(i - n / 2) * 0.23), 1.5);
					right &= fabs(want - (double)x[i]) <= 5e-7 * (fabs(want) + (k == OM_CURVE_EXP ? 0 : 1));
				}
				CU_ASSERT(right && x[n] == (float)((double)(n - n / 2) * 0.23));
			}
}

static void
curves_know_what_is_no_number(void)
{
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++)
		for (int k = 0; k < OM_NCURVE; k++) {
			float x[] = {NAN, INFINITY, -0.0f, 0};
			const bool is_even = k == OM_CURVE_EXP || k == OM_CURVE_SIGMOID;
			kernels->curve[k](x, x, 4, 1);
			CU_ASSERT(isnan(x[0]));
			CU_ASSERT_EQUAL((double)x[1], curve_of(k, (double)INFINITY, 1));
			CU_ASSERT((double)x[3] == curve_of(k, 0, 1) && (is_even ? x[2] == x[3] : signbit(x[2]) && x[2] == 0));
		}
}

/* The bits of an element do not depend on how many are computed with it. */
static void
few_are_like_many(void)
{
	enum { MANY = 1 << 14 };
	const om_kernels *kernels;
	float *x = malloc(MANY * sizeof *x), *all = malloc(MANY * sizeof *all), *few = malloc(MANY * sizeof *few);

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++)
		for (int k = 0; k < OM_NCURVE; k++) {
			uint32_t seed = 4;
			for (int i = 0; i < MANY; i++)
				x[i] = number(&seed) * (float)(1 << next(&seed) % 7);
			kernels->curve[k](all, x, MANY, 1.5f);
			for (int i = 0, n; i < MANY; i += n) {
				n = 1 + (int)(next(&seed) % 20);
				n = n < MANY - i ? n : MANY - i;
				kernels->curve[k](few + i, x + i, n, 1.5f);
			}
			CU_ASSERT_EQUAL(memcmp(all, few, MANY * sizeof *all), 0);
		}
	free(few);
	free(all);
	free(x);
}

static CU_TestInfo kernels_tests[] = {
	{"products are right", products_are_right},
	{"products repeat bit for bit", products_repeat},
	{"taps are summed", taps_are_summed},
	{"curves are near", curves_are_near},
	{"few elements are like many", few_are_like_many},
	{"curves know what is no number", curves_know_what_is_no_number},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("inner loops", kernels_tests);
