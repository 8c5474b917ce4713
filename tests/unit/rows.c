/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of floats, of every instruction set that this machine has, against plain loops in double. */
#include <config.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/kernels.h"
#include "unit.h"

enum { TRIALS = 150, EDGE = 17 };

static uint32_t
next(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static float
number(uint32_t *seed)
{
	return (float)(next(seed) % 20001) / 5000 - 2;
}

/* Short lines mostly, some around a block. */
static int64_t
length(uint32_t *seed)
{
	return 1 + next(seed) % (next(seed) % 8 ? 70 : 9000);
}

/* n numbers between edges of sevens, at any alignment. */
struct room {
	float *all, *at;
	int64_t n;
};

static struct room
room_of(uint32_t *seed, int64_t n)
{
	struct room r = {malloc((size_t)(n + 2 * EDGE) * sizeof(float)), NULL, n};

	for (int64_t i = 0; i < n + 2 * EDGE; i++)
		r.all[i] = 7;
	r.at = r.all + 1 + next(seed) % 16;
	for (int64_t i = 0; i < n; i++)
		r.at[i] = number(seed);
	return r;
}

/* Frees it.  False if something outside was written. */
static bool
close_room(struct room *r)
{
	const bool same = r->at[-1] == 7 && r->at[r->n] == 7;

	free(r->all);
	return same;
}

static bool
is_near(double want, double got, double slack)
{
	return (isnan(want) && isnan(got)) || want == got || fabs(want - got) <= slack * (fabs(want) + 1e-3);
}

/* ---- Reductions. ---- */

static double
reduced(int kind, const float *x, int64_t n, int64_t stride)
{
	double sum = kind == OM_REDUCE_PRODUCT ? 1 : kind == OM_REDUCE_MAX ? (double)-INFINITY : kind == OM_REDUCE_MIN ? (double)INFINITY : 0;

	for (int64_t i = 0; i < n; i++) {
		const double v = (double)x[i * stride];
		switch (kind) {
		case OM_REDUCE_PRODUCT: sum *= v; break;
		case OM_REDUCE_MAX: sum = v > sum || isnan(v) ? v : sum; break;
		case OM_REDUCE_MIN: sum = v < sum || isnan(v) ? v : sum; break;
		case OM_REDUCE_SUM_SQUARE: sum += v * v; break;
		case OM_REDUCE_SUM_ABS: sum += fabs(v); break;
		default: sum += v;
		}
	}
	return sum;
}

/* The sum of magnitudes, of which the error of a sum is a share. */
static double
size_of(int kind, const float *x, int64_t n, int64_t stride)
{
	return kind == OM_REDUCE_SUM ? reduced(OM_REDUCE_SUM_ABS, x, n, stride) : fabs(reduced(kind, x, n, stride));
}

static bool
is_reduced(int kind, const float *x, int64_t n, int64_t stride, double got)
{
	const double want = reduced(kind, x, n, stride), slack = kind == OM_REDUCE_PRODUCT ? 1e-7 * (double)n : 2e-6;

	return (isnan(want) && isnan(got)) || want == got || fabs(want - got) <= slack * size_of(kind, x, n, stride) + 1e-37;
}

static void
runs_are_reduced(void)
{
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++)
		for (int trial = 0; trial < TRIALS; trial++) {
			uint32_t seed = (uint32_t)trial;
			struct room x = room_of(&seed, length(&seed));
			for (int kind = 0; kind < OM_NREDUCE; kind++)
				CU_ASSERT(is_reduced(kind, x.at, x.n, 1, kernels->rows->run[kind](x.at, x.n)));
			close_room(&x);
		}
}

static void
columns_are_reduced(void)
{
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++)
		for (int trial = 0; trial < TRIALS; trial++) {
			uint32_t seed = (uint32_t)trial;
			const int64_t n = length(&seed) % 600 + 1, width = 1 + next(&seed) % 90, stride = width + next(&seed) % 5;
			struct room x = room_of(&seed, (n - 1) * stride + width);
			for (int kind = 0; kind < OM_NREDUCE; kind++) {
				struct room y = room_of(&seed, width);
				bool right = true;
				kernels->rows->columns[kind](y.at, x.at, n, stride, width);
				for (int64_t j = 0; j < width; j++)
					right &= is_reduced(kind, x.at + j, n, stride, (double)y.at[j]);
				CU_ASSERT(close_room(&y) && right);
			}
			close_room(&x);
		}
}

/* What float cannot hold on the way is computed in double; NaN stays NaN; maxima of what is infinite are. */
static void
reductions_leave_no_range(void)
{
	static const float huge[] = {3e38f, 3e38f, -3e38f, -3e38f, 1e38f}, tiny[] = {1e-30f, 1e-30f, 1e-30f};
	static const float nan[] = {1, NAN, 2}, infinite[] = {-INFINITY, -INFINITY};
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++) {
		const om_rows_kernels *rows = kernels->rows;
		float y;
		CU_ASSERT_DOUBLE_EQUAL(rows->run[OM_REDUCE_SUM](huge, 5), 1e38, 1e32);
		CU_ASSERT_DOUBLE_EQUAL(rows->run[OM_REDUCE_SUM_SQUARE](huge, 5), 3.7e77, 1e72);
		CU_ASSERT_DOUBLE_EQUAL(rows->run[OM_REDUCE_SUM_SQUARE](tiny, 3), 3e-60, 1e-65);
		rows->columns[OM_REDUCE_SUM](&y, huge, 5, 1, 1);
		CU_ASSERT_DOUBLE_EQUAL((double)y, 1e38, 1e32);
		for (int kind = 0; kind < OM_NREDUCE; kind++)
			CU_ASSERT(isnan(rows->run[kind](nan, 3)));
		CU_ASSERT_EQUAL(rows->run[OM_REDUCE_MAX](infinite, 2), (double)-INFINITY);
		CU_ASSERT_EQUAL(rows->moments(tiny, 3).variance, 0);
		CU_ASSERT(rows->moments(huge, 5).variance > 1e76);
	}
}

/* ---- Local response normalization. ---- */

static double
lrn_of(const float *x, const om_lrn *l, int64_t channel, int64_t column)
{
	double sum = 0;

	for (int64_t k = channel - l->below; k <= channel + l->above; k++)
		if (k >= 0 && k < l->channels)
			sum += (double)x[k * l->stride + column] * (double)x[k * l->stride + column];
	return (double)x[channel * l->stride + column] / pow(l->bias + l->alpha * sum, l->beta);
}

static bool
lrn_is_right(const om_rows_kernels *rows, int trial)
{
	static const double betas[] = {0.75, 0.75, 0.5, 1.25}, biases[] = {1, 2, 0, -3};
	static const float odd[] = {1e25f, 1e-25f, 3e38f};
	uint32_t seed = (uint32_t)trial;
	const int64_t width = 1 + next(&seed) % 90, size = 1 + next(&seed) % 7, below = (size - 1) / 2;
	const om_lrn l = {.channels = 1 + next(&seed) % 20, .stride = width + next(&seed) % 4, .below = below, .above = size - 1 - below,
		.alpha = 0.3, .beta = betas[next(&seed) % 4], .bias = biases[next(&seed) % 4]};
	struct room x = room_of(&seed, (l.channels - 1) * l.stride + width), y = room_of(&seed, x.n);
	bool right = true;

	if (trial % 4 == 0)
		x.at[next(&seed) % x.n] = odd[next(&seed) % 3];
	rows->lrn(y.at, x.at, &l, width);
	for (int64_t k = 0; k < l.channels; k++)
		for (int64_t j = 0; j < width; j++) {
			const double want = lrn_of(x.at, &l, k, j), got = (double)y.at[k * l.stride + j];
			right &= (isnan(want) && isnan(got)) || (double)(float)want == got || fabs(want - got) <= 1e-6 * fabs(want);
		}
	close_room(&x);
	return close_room(&y) && right;
}

/* Numbers whose squares float cannot hold, and sums that are negative, too. */
static void
windows_of_channels_are_right(void)
{
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++)
		for (int trial = 0; trial < 4 * TRIALS; trial++)
			CU_ASSERT(lrn_is_right(kernels->rows, trial));
}

/* ---- Softmax. ---- */

static void
softmax_of(double *y, const float *x, int64_t n, int64_t stride, bool is_log)
{
	double high = (double)-INFINITY, sum = 0;

	for (int64_t i = 0; i < n; i++)
		high = (double)x[i * stride] > high ? (double)x[i * stride] : high;
	for (int64_t i = 0; i < n; i++)
		sum += exp((double)x[i * stride] - high);
	for (int64_t i = 0; i < n; i++) {
		const double d = (double)x[i * stride] - high;
		y[i] = is_log ? d - log(sum) : exp(d) / sum;
	}
}

/* Every line of `width` adjacent ones, at once or, if there is one, as contiguous; in place in every other trial. */
static bool
softmax_is_right(const om_rows_kernels *rows, int trial, bool is_log)
{
	uint32_t seed = (uint32_t)trial;
	const int64_t n = length(&seed) % 500 + 1, width = trial % 2 ? 1 : 1 + next(&seed) % 70, stride = width == 1 ? 1 : width + next(&seed) % 4;
	struct room x = room_of(&seed, (n - 1) * stride + width), y = room_of(&seed, x.n);
	float *kept = malloc((size_t)x.n * sizeof *kept), *to = trial % 4 < 2 ? x.at : y.at;
	double *want = malloc((size_t)n * sizeof *want);
	bool right = true;

	if (trial % 5 == 0)
		x.at[next(&seed) % x.n] = trial % 10 ? -INFINITY : NAN;
	memcpy(kept, x.at, (size_t)x.n * sizeof *kept);
	if (width == 1)
		(is_log ? rows->log_softmax : rows->softmax)(to, x.at, n);
	else
		(is_log ? rows->log_softmax_columns : rows->softmax_columns)(to, x.at, n, stride, width);
	for (int64_t j = 0; j < width; j++) {
		softmax_of(want, kept + j, n, stride, is_log);
		for (int64_t i = 0; i < n; i++)
			right &= is_near(want[i], (double)to[i * stride + j], 2e-6);
	}
	free(want);
	free(kept);
	right &= close_room(&x);
	return close_room(&y) && right;
}

static void
lines_are_softmax(void)
{
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++)
		for (int trial = 0; trial < TRIALS; trial++) {
			CU_ASSERT(softmax_is_right(kernels->rows, trial, false));
			CU_ASSERT(softmax_is_right(kernels->rows, trial, true));
		}
}

/* ---- Normalizations. ---- */

/* A mean that is much larger than the deviations costs no digits. */
static void
moments_are_exact(void)
{
	static const float centers[] = {0, 1, 1000, -1e5f};
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++)
		for (int trial = 0; trial < TRIALS; trial++) {
			uint32_t seed = (uint32_t)trial;
			struct room x = room_of(&seed, length(&seed));
			double mean = 0, variance = 0;
			for (int64_t i = 0; i < x.n; i++) {
				x.at[i] += centers[trial % 4];
				mean += (double)x.at[i] / (double)x.n;
			}
			for (int64_t i = 0; i < x.n; i++)
				variance += ((double)x.at[i] - mean) * ((double)x.at[i] - mean) / (double)x.n;
			const om_moments m = kernels->rows->moments(x.at, x.n);
			CU_ASSERT(fabs((double)m.center + m.shift - mean) <= 2e-6 * (sqrt(variance) + 1e-6 * fabs(mean)));
			CU_ASSERT(fabs(m.variance - variance) <= 3e-6 * variance + 1e-12);
			close_room(&x);
		}
}

static void
rows_are_normalized(void)
{
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++)
		for (int trial = 0; trial < TRIALS; trial++) {
			uint32_t seed = (uint32_t)trial;
			const int64_t n = length(&seed) % 300 + 1;
			struct room x = room_of(&seed, n), y = room_of(&seed, n), s = room_of(&seed, n), b = room_of(&seed, n), m = room_of(&seed, n);
			const om_normalizer by = {0.25f, 1.5f, -0.125f, trial % 2 ? s.at : NULL, trial % 3 ? b.at : NULL};
			bool right = true;
			kernels->rows->normalize(y.at, x.at, n, &by);
			for (int64_t i = 0; i < n; i++)
				right &= is_near((((double)x.at[i] - 0.25) * 1.5 - 0.125) * (by.scale ? (double)s.at[i] : 1)
					+ (by.bias ? (double)b.at[i] : 0), (double)y.at[i], 1e-3);
			kernels->rows->scale(y.at, x.at, n, 1.5f, by.scale);
			for (int64_t i = 0; i < n; i++)
				right &= is_near((double)x.at[i] * 1.5 * (by.scale ? (double)s.at[i] : 1), (double)y.at[i], 1e-6);
			kernels->rows->affine_row(y.at, x.at, n, m.at, s.at, b.at);
			for (int64_t i = 0; i < n; i++)
				right &= is_near(((double)x.at[i] - (double)m.at[i]) * (double)s.at[i] + (double)b.at[i], (double)y.at[i], 1e-3);
			kernels->rows->add(y.at, x.at, s.at, n);
			for (int64_t i = 0; i < n; i++)
				right &= y.at[i] == x.at[i] + s.at[i];
			kernels->rows->affine(x.at, x.at, n, 0.5f, 2, 1);
			CU_ASSERT(right);
			for (struct room *const *r = (struct room *[]){&x, &y, &s, &b, &m, NULL}; *r; r++)
				CU_ASSERT(close_room(*r));
		}
}

static void
planes_are_transposed(void)
{
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++)
		for (int trial = 0; trial < TRIALS; trial++) {
			uint32_t seed = (uint32_t)trial;
			const int64_t m = 1 + next(&seed) % 40, n = 1 + next(&seed) % 40;
			const int64_t to_row = m + next(&seed) % 3, from_row = n + next(&seed) % 3;
			struct room x = room_of(&seed, (m - 1) * from_row + n), y = room_of(&seed, (n - 1) * to_row + m);
			float *was = malloc((size_t)y.n * sizeof *was);
			bool right = true;
			memcpy(was, y.at, (size_t)y.n * sizeof *was);
			kernels->rows->transpose(y.at, x.at, m, n, to_row, from_row);
			for (int64_t k = 0; k < y.n; k++)
				right &= y.at[k] == (k % to_row < m ? x.at[k % to_row * from_row + k / to_row] : was[k]);
			free(was);
			CU_ASSERT(right);
			CU_ASSERT(close_room(&x));
			CU_ASSERT(close_room(&y));
		}
}

/* The bits do not depend on alignment. */
static void
lines_repeat(void)
{
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++)
		for (int trial = 0; trial < TRIALS; trial++) {
			uint32_t seed = (uint32_t)trial, other = seed + 1;
			const int64_t n = length(&seed);
			struct room x = room_of(&seed, n), y = room_of(&other, n);
			memcpy(y.at, x.at, (size_t)n * sizeof(float));
			for (int kind = 0; kind < OM_NREDUCE; kind++)
				CU_ASSERT_EQUAL(kernels->rows->run[kind](x.at, n), kernels->rows->run[kind](y.at, n));
			CU_ASSERT_EQUAL(kernels->rows->moments(x.at, n).variance, kernels->rows->moments(y.at, n).variance);
			kernels->rows->softmax(x.at, x.at, n);
			kernels->rows->softmax(y.at, y.at, n);
			CU_ASSERT_EQUAL(memcmp(x.at, y.at, (size_t)n * sizeof(float)), 0);
			close_room(&x);
			close_room(&y);
		}
}

static CU_TestInfo rows_tests[] = {
	{"runs are reduced", runs_are_reduced},
	{"columns are reduced", columns_are_reduced},
	{"what leaves the range of float is reduced in double", reductions_leave_no_range},
	{"windows of channels are normalized", windows_of_channels_are_right},
	{"lines are softmax", lines_are_softmax},
	{"moments are exact", moments_are_exact},
	{"rows are normalized", rows_are_normalized},
	{"planes are transposed", planes_are_transposed},
	{"lines repeat bit for bit", lines_repeat},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("rows", rows_tests);
