/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of every instruction set beside a double loop: layouts, masks, long rows, rows without a key, and how keys and
 * values are stored. */
#include <config.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/kernels.h"
#include "unit.h"

enum { ROUNDS = 200, GUARD = 16, Q = OM_ATTENTION_Q, K = OM_ATTENTION_K, V = OM_ATTENTION_V, MASK = OM_ATTENTION_MASK,
	KEEP = OM_ATTENTION_KEEP, Y = OM_ATTENTION_Y };

static uint32_t
next(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* An operand of exactly the elements that it reads, in any of four layouts. */
static float *
operand(uint32_t *seed, om_attention *a, int k, int64_t rows, int64_t cols)
{
	switch (next(seed) % 4) {
	case 0: a->row[k] = cols; a->col[k] = 1; break;
	case 1: a->row[k] = 1; a->col[k] = rows; break;
	case 2: a->row[k] = cols + 3; a->col[k] = 1; break;
	default: a->row[k] = 2 * cols; a->col[k] = 2;
	}
	const int64_t n = rows && cols ? (rows - 1) * a->row[k] + (cols - 1) * a->col[k] + 1 : 0;
	float *x = malloc((size_t)(n + 1) * sizeof *x);
	for (int64_t i = 0; i < n; i++)
		x[i] = (float)(next(seed) % 2001) / 500 - 2;
	a->has[k] = true;
	return x;
}

/* Keys or values `*x` as they are stored; they become the numbers that these are. */
static void *
stored(uint32_t *seed, om_attention *a, int k, int64_t rows, int64_t cols, float **x, om_stored_as s)
{
	const int64_t row = cols + 2 * (next(seed) % 2), n = rows ? (rows - 1) * row + cols : 0;
	uint8_t *to = malloc((size_t)om_stored_bytes(s, n) + 1);
	uint16_t *half = (uint16_t *)(void *)to;

	free(*x);
	*x = malloc((size_t)(n + 1) * sizeof **x);
	a->row[k] = row;
	a->col[k] = 1;
	for (int64_t i = 0; i < n; i++) {
		const int q = (int)(next(seed) % (s == OM_STORED_INT8 ? 256 : 16)) - (s == OM_STORED_INT8 ? 128 : 8);
		const float is = (float)(next(seed) % 2001) / 500 - 2;
		if (s == OM_STORED_HALF)
			(*x)[i] = om_half_to_float(half[i] = om_float_to_half(is));
		else if (s == OM_STORED_BFLOAT)
			(*x)[i] = om_bfloat_to_float(half[i] = om_float_to_bfloat(is));
		else
			(*x)[i] = (float)q;
		if (s == OM_STORED_INT8)
			to[i] = (uint8_t)q;
		if (s == OM_STORED_INT4)
			to[i / 2] = (uint8_t)(i % 2 ? to[i / 2] | (q + 8) << 4 : q + 8);
	}
	return to;
}

static double
score_of(const om_attention *a, const om_attention_data *at, int64_t i, int64_t j)
{
	double sum = 0;

	for (int64_t d = 0; d < a->depth; d++)
		sum += (double)at->q[i * a->row[Q] + d * a->col[Q]] * (double)((const float *)at->k)[j * a->row[K] + d * a->col[K]];
	sum *= (double)a->scale;
	if (a->cap > 0)
		sum = (double)a->cap * tanh(sum / (double)a->cap);
	if (at->keep && (at->keep[i * a->row[KEEP] + j * a->col[KEEP]] != 0) == a->fill_where)
		sum = (double)a->fill;
	for (int m = 0; m < OM_ATTENTION_MASKS; m++)
		if (at->mask[m])
			sum += (double)at->mask[m][i * a->row[MASK + m] + j * a->col[MASK + m]];
	const int64_t last = i + a->keys - a->rows;
	return (a->is_causal && j > last) || (a->window && j <= last - a->window) ? -INFINITY : sum;
}

static bool
is_near(double got, double want, double magnitude)
{
	return isnan(want) ? isnan(got) : fabs(got - want) < 2e-5 * (magnitude + fabs(want));
}

static bool
is_row(const om_attention *a, const om_attention_data *at, int64_t i)
{
	double *w = malloc((size_t)(a->keys + 1) * sizeof *w), most = at->sink ? (double)at->sink[i * a->sink_step] : -INFINITY, sum;
	const double magnitude = a->values_as == OM_STORED_INT8 ? 128 : a->values_as == OM_STORED_INT4 ? 8 : 1;
	bool same = true;

	for (int64_t j = 0; j < a->keys; j++) {
		w[j] = score_of(a, at, i, j);
		most = w[j] > most ? w[j] : most;
	}
	sum = at->sink ? exp((double)at->sink[i * a->sink_step] - most) : 0;
	for (int64_t j = 0; j < a->keys; j++)
		sum += w[j] = exp(w[j] - most);
	const bool is_zero = a->keys == 0 || (isnan(sum) && (a->zero_for_nan || (a->zero_for_masked && most == -INFINITY)));
	for (int64_t d = 0; same && d < a->value_depth; d++) {
		double want = 0;
		for (int64_t j = 0; j < a->keys && !is_zero; j++)
			want += w[j] / sum * (double)((const float *)at->v)[j * a->row[V] + d * a->col[V]];
		same = is_near((double)at->y[i * a->row[Y] + d * a->col[Y]], want, magnitude);
	}
	free(w);
	return same;
}

/* Blind some keys: with -infinity where `blind` is 1 of 3, all of a row now and then. */
static void
blind(uint32_t *seed, const om_attention *a, float *mask)
{
	for (int64_t i = 0; i < a->rows; i++) {
		const bool all = next(seed) % 4 == 0;
		for (int64_t j = 0; j < a->keys; j++)
			if (all || next(seed) % 3 == 0)
				mask[i * a->row[MASK] + j * a->col[MASK]] = -INFINITY;
	}
}

static void
try_attention(const om_kernels *kernels, uint32_t *seed, int64_t keys, bool is_stored)
{
	om_attention a = {.rows = 1 + next(seed) % (next(seed) % 3 ? 20 : 3), .keys = keys, .depth = next(seed) % 40,
		.value_depth = 1 + next(seed) % 70, .scale = 0.25f, .fill = -1.5f, .fill_where = next(seed) % 2,
		.is_causal = next(seed) % 4 == 0, .zero_for_masked = next(seed) % 3 == 0, .zero_for_nan = next(seed) % 3 == 0};
	float *x[OM_NATTENTION] = {NULL};
	uint8_t *keep = NULL;
	void *kept[2] = {NULL};

	static const float sinks[20] = {-3, 0, 2, 1, -1, 0.5f, 4};
	a.window = next(seed) % 4 ? 0 : 1 + next(seed) % 40;
	a.cap = next(seed) % 4 ? 0 : 2;
	a.sink_step = next(seed) % 2;
	a.depth = next(seed) % 2 ? a.depth : 16;
	a.value_depth = next(seed) % 2 ? a.value_depth : 32;
	x[Q] = operand(seed, &a, Q, a.rows, a.depth);
	x[K] = operand(seed, &a, K, a.keys, a.depth);
	x[V] = operand(seed, &a, V, a.keys, a.value_depth);
	x[Y] = operand(seed, &a, Y, a.rows, a.value_depth);
	if (is_stored) {
		a.keys_as = next(seed) % (a.depth % 2 ? OM_STORED_INT4 : OM_STORED_INT4 + 1);
		a.values_as = next(seed) % (a.value_depth % 2 ? OM_STORED_INT4 : OM_STORED_INT4 + 1);
		a.scale = a.keys_as > OM_STORED_BFLOAT ? 0.01f : a.scale;
		if (a.keys_as)
			kept[0] = stored(seed, &a, K, a.keys, a.depth, &x[K], a.keys_as);
		if (a.values_as)
			kept[1] = stored(seed, &a, V, a.keys, a.value_depth, &x[V], a.values_as);
	}
	for (int m = MASK; m < MASK + OM_ATTENTION_MASKS; m++)
		if (next(seed) % 2)
			x[m] = operand(seed, &a, m, a.rows, a.keys);
	if (x[MASK])
		blind(seed, &a, x[MASK]);
	if (next(seed) % 3 == 0) {
		a.has[KEEP] = true;
		a.row[KEEP] = a.keys;
		a.col[KEEP] = 1;
		keep = malloc((size_t)(a.rows * a.keys) + 1);
		for (int64_t i = 0; i < a.rows * a.keys; i++)
			keep[i] = (uint8_t)(next(seed) % 3);
	}
	const om_attention_data at = {.q = x[Q], .k = x[K], .v = x[V], .mask = {x[MASK], x[MASK + 1]}, .keep = keep, .y = x[Y],
		.sink = next(seed) % 3 ? NULL : sinks};
	om_attention_data given = at;
	given.k = kept[0] ? kept[0] : at.k;
	given.v = kept[1] ? kept[1] : at.v;
	const om_attention_room layout = om_attention_layout(&a);
	const size_t bytes = om_attention_workspace(&a, 1);
	char *room = malloc(bytes + GUARD);
	memset(room, 0xff, bytes + GUARD);
	kernels->attention->rows(&a, &given, 0, a.rows, &layout, (float *)room);
	bool same = true;
	for (int64_t i = 0; i < a.rows; i++)
		same = same && is_row(&a, &at, i);
	CU_ASSERT(same);
	for (int k = 0; k < GUARD; k++)
		CU_ASSERT_EQUAL(room[bytes + (size_t)k], (char)0xff);
	free(room);
	free(keep);
	free(kept[0]);
	free(kept[1]);
	for (int k = 0; k < OM_NATTENTION; k++)
		free(x[k]);
}

static void
short_rows_are_right(void)
{
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++) {
		uint32_t seed = 1;
		for (int round = 0; round < ROUNDS; round++)
			try_attention(kernels, &seed, next(&seed) % 150, false);
	}
}

/* Blocks of keys with a maximum of their own, or without a key. */
static void
long_rows_are_right(void)
{
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++) {
		uint32_t seed = 2;
		for (int round = 0; round < ROUNDS / 10; round++)
			try_attention(kernels, &seed, OM_ATTENTION_KEYS - 2 + next(&seed) % (2 * OM_ATTENTION_KEYS), false);
	}
}

/* Halves, and integers of 8 and 4 bits. */
static void
stored_rows_are_right(void)
{
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++) {
		uint32_t seed = 3;
		for (int round = 0; round < ROUNDS; round++)
			try_attention(kernels, &seed, next(&seed) % (round % 8 ? 150 : 2 * OM_ATTENTION_KEYS), true);
	}
}

/* A score that is NaN makes its row NaN, wherever it is; one that is infinite, too. */
static void
not_a_number_stays(void)
{
	enum { KEYS = OM_ATTENTION_KEYS + 30 };
	static const int64_t places[] = {0, 3, 17, OM_ATTENTION_KEYS - 1, OM_ATTENTION_KEYS, KEYS - 1};
	om_attention a = {.rows = 3, .keys = KEYS, .depth = 1, .value_depth = 16, .row = {1, 1, 16, KEYS}, .col = {1, 1, 1, 1},
		.has = {true, true, true, true}, .scale = 1};
	static float q[3], k[KEYS], v[KEYS * 16], mask[3 * KEYS], y[48];
	const om_attention_data at = {.q = q, .k = k, .v = v, .mask = {mask}, .y = y};
	const om_kernels *kernels;

	a.row[Y] = 16;
	a.col[Y] = 1;
	const om_attention_room layout = om_attention_layout(&a);
	float *room = malloc(om_attention_workspace(&a, 1));
	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++)
		for (size_t p = 0; p < sizeof places / sizeof places[0]; p++)
			for (int all = 0; all < 2; all++) {
				for (int64_t j = 0; j < KEYS; j++)
					mask[KEYS + j] = all ? -INFINITY : 0;
				mask[KEYS + places[p]] = p % 2 ? NAN : INFINITY;
				kernels->attention->rows(&a, &at, 0, 3, &layout, room);
				CU_ASSERT(y[0] == 0 && isnan(y[16]) && isnan(y[31]) && y[32] == 0);
			}
	free(room);
}

static CU_TestInfo attention_tests[] = {
	{"short rows are right", short_rows_are_right},
	{"long rows are right", long_rows_are_right},
	{"stored rows are right", stored_rows_are_right},
	{"not a number stays", not_a_number_stays},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("attention", attention_tests);
