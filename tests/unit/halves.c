/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of float16 of every instruction set: conversion is exact, and products are those of the numbers in double. */
#include <config.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/rng.h"
#include "kernels/cpu/kernels.h"
#include "unit.h"

enum { ALL = 1 << 16, MOST_K = 40, MOST_COLUMNS = 150 };

static void
all_become_floats(void)
{
	uint16_t *from = malloc(ALL * sizeof *from);
	float *to = malloc(ALL * sizeof *to);
	const om_kernels *kernels;

	for (int k = 0; k < ALL; k++)
		from[k] = (uint16_t)k;
	for (unsigned i = 0; (kernels = om_kernels_at(i)); i++) {
		bool same = true;
		kernels->half->widen(to, from, ALL - 3);
		kernels->half->widen(to + ALL - 3, from + ALL - 3, 3);
		for (int k = 0; k < ALL; k++) {
			const float is = om_half_to_float((uint16_t)k);
			same = same && memcmp(&is, &to[k], sizeof is) == 0;
		}
		CU_ASSERT(same);
	}
	free(from);
	free(to);
}

static bool
is_product(const om_half_product *p)
{
	for (int64_t r = 0; r < p->rows; r++)
		for (int64_t n = 0; n < p->columns; n++) {
			double sum = 0;
			for (int64_t k = 0; k < p->k; k++)
				sum += (double)p->x[r * p->k + k] * (double)om_half_to_float(p->w[k * p->columns + n]);
			if (fabs((double)om_half_to_float(p->y[r * p->columns + n]) - sum) > 1e-3 * (fabs(sum) + 0.1))
				return false;
		}
	return true;
}

static void
products_are_rounded_once(void)
{
	float x[OM_HALF_ROWS * MOST_K];
	uint16_t w[MOST_K * MOST_COLUMNS], y[OM_HALF_ROWS * MOST_COLUMNS + 1];
	const om_kernels *kernels;
	uint64_t state = 5;

	for (int k = 0; k < 60; k++) {
		om_half_product p = {.rows = 1 + k % OM_HALF_ROWS, .k = 1 + (int64_t)om_rng_below(&state, MOST_K),
			.columns = 1 + (int64_t)om_rng_below(&state, MOST_COLUMNS), .x = x, .w = w, .y = y};
		for (int64_t i = 0; i < p.rows * p.k; i++)
			x[i] = (float)om_rng_unit(&state) - 0.5f;
		for (int64_t i = 0; i < p.k * p.columns; i++)
			w[i] = om_float_to_half((float)om_rng_unit(&state) - 0.5f);
		const int64_t middle = p.columns / 2 / OM_HALF_COLUMNS * OM_HALF_COLUMNS;
		for (unsigned i = 0; (kernels = om_kernels_at(i)); i++) {
			y[p.rows * p.columns] = 0x1234;
			kernels->half->columns(&p, 0, middle);
			kernels->half->columns(&p, middle, p.columns);
			CU_ASSERT(is_product(&p));
			CU_ASSERT(y[p.rows * p.columns] == 0x1234);
		}
	}
}

static CU_TestInfo halves_tests[] = {
	{"all become floats", all_become_floats},
	{"products are rounded once", products_are_rounded_once},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("halves", halves_tests);
