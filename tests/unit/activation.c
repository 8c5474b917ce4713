/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of activations of every instruction set, beside their formulas in double. */
#include <config.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/kernels.h"
#include "unit.h"

enum { MOST = 70 };

static double
between(double x, double low, double high)
{
	return x < low ? low : x > high ? high : x;
}

static double
activation(const om_epilogue *e, double x)
{
	const double alpha = (double)e->alpha, beta = (double)e->beta;

	switch (e->act) {
	case OM_ACT_RELU: return x < 0 ? 0 : x;
	case OM_ACT_CLIP: return between(x, alpha, beta);
	case OM_ACT_HARD_SWISH: return x * between(x / 6 + 0.5, 0, 1);
	case OM_ACT_HARD_SIGMOID: return between(alpha * x + beta, 0, 1);
	case OM_ACT_LEAKY_RELU: return x < 0 ? alpha * x : x;
	case OM_ACT_SIGMOID: return 1 / (1 + exp(-x));
	case OM_ACT_TANH: return tanh(x);
	case OM_ACT_SILU: return x / (1 + exp(-x));
	case OM_ACT_GELU: return 0.5 * x * (1 + erf(x * sqrt(0.5)));
	case OM_ACT_GELU_TANH: return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
	case OM_ACT_ELU: return x < 0 ? alpha * expm1(x) : x;
	default: return x;
	}
}

/* Of Gelu the digits that x has are right, and results beyond 6 are 0 or x. */
static bool
is_close(om_act act, double x, double want, double got)
{
	const double bound = act == OM_ACT_GELU && fabs(x) < 6 ? 4e-7 * fabs(x) : 0;

	return fabs(want - got) <= 2e-6 * fabs(want) + 1e-7 + bound;
}

/* `n` elements around `middle`; nothing after them is written. */
static bool
is_row_right(const om_kernels *kernels, const om_epilogue *e, int64_t n, double middle)
{
	float x[MOST + 1], got[MOST + 1];
	bool right = true;

	for (int64_t i = 0; i <= n; i++)
		x[i] = (float)(middle + (double)(i - n / 2) * 0.37);
	memcpy(got, x, sizeof x);
	kernels->epilogue->row(got, n, e);
	for (int64_t i = 0; i < n; i++)
		right &= is_close(e->act, (double)x[i], activation(e, (double)x[i]), (double)got[i]);
	return right && got[n] == x[n];
}

static void
rows_are_right(void)
{
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++)
		for (int act = 0; act < OM_NACT; act++) {
			const om_epilogue e = {(om_act)act, act == OM_ACT_CLIP ? -0.7f : 0.3f, 1.1f};
			bool right = true;
			for (int64_t n = 0; n < MOST; n++)
				right &= is_row_right(kernels, &e, n, 0) && is_row_right(kernels, &e, n, -95)
				    && is_row_right(kernels, &e, n, 95);
			CU_ASSERT(right);
		}
}

static void
nan_stays(void)
{
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++)
		for (int act = 0; act < OM_NACT; act++) {
			const om_epilogue e = {(om_act)act, 0.2f, 0.5f};
			float x[MOST];
			bool all = true;
			for (int i = 0; i < MOST; i++)
				x[i] = NAN;
			kernels->epilogue->row(x, MOST, &e);
			for (int i = 0; i < MOST; i++)
				all &= isnan(x[i]);
			CU_ASSERT(all);
		}
}

static CU_TestInfo activation_tests[] = {
	{"rows are right", rows_are_right},
	{"NaN stays NaN", nan_stays},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("activations of layers", activation_tests);
