/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise functions of every instruction set that this machine has, against those of C in double. */
#include <config.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/kernels.h"
#include "unit.h"

/* What an error is a share of: the result, the larger of result and argument, or 1 at least. */
enum scale { RESULT, ARGUMENT, UNIT };

static double
expm1_scaled(double x, double a)
{
	return a * expm1(x);
}

static double
clamped(double x, double low, double high)
{
	return x < low ? low : x > high ? high : x;
}

/* The bounds in ULP are those that the headers state, with a margin of a half. */
static const struct curve {
	const char *name;
	enum om_map_kind kind;
	double ulp;
	enum scale scale;
	float a, b;
} curves[] = {
	{"Abs", OM_MAP_ABS, 0, RESULT, 0, 0},
	{"Ceil", OM_MAP_CEIL, 0, RESULT, 0, 0},
	{"Celu", OM_MAP_CELU, 4.5, RESULT, 1.5f, 0},
	{"Clip", OM_MAP_CLIP, 0, RESULT, -1, 6},
	{"Cos", OM_MAP_COS, 2.5, UNIT, 0, 0},
	{"cube", OM_MAP_CUBE, 1.5, RESULT, 0, 0},
	{"Elu", OM_MAP_ELU, 3.5, RESULT, 1.5f, 0},
	{"Erf", OM_MAP_ERF, 3.5, RESULT, 0, 0},
	{"Exp", OM_MAP_EXP, 2.5, RESULT, 0, 0},
	{"Floor", OM_MAP_FLOOR, 0, RESULT, 0, 0},
	{"Gelu", OM_MAP_GELU, 3.5, ARGUMENT, 0, 0},
	{"Gelu by tanh", OM_MAP_GELU_TANH, 3, ARGUMENT, 0, 0},
	{"HardSigmoid", OM_MAP_HARD_SIGMOID, 1.5, UNIT, 0.2f, 0.5f},
	{"HardSwish", OM_MAP_HARD_SWISH, 2.5, ARGUMENT, 0, 0},
	{"LeakyRelu", OM_MAP_LEAKY_RELU, 0.5, RESULT, 0.01f, 0},
	{"Log", OM_MAP_LOG, 2.5, RESULT, 0, 0},
	{"Mish", OM_MAP_MISH, 5.5, RESULT, 0, 0},
	{"Neg", OM_MAP_NEG, 0, RESULT, 0, 0},
	{"Pow, -1/2", OM_MAP_POW_MINUS_HALF, 1.5, RESULT, 0, 0},
	{"Pow, 1/2", OM_MAP_POW_HALF, 0.5, RESULT, 0, 0},
	{"Reciprocal", OM_MAP_RECIPROCAL, 0.5, RESULT, 0, 0},
	{"Relu", OM_MAP_RELU, 0, RESULT, 0, 0},
	{"Round", OM_MAP_ROUND, 0, RESULT, 0, 0},
	{"Selu", OM_MAP_SELU, 4.5, RESULT, 1.67326324f, 1.05070102f},
	{"Sigmoid", OM_MAP_SIGMOID, 3.5, RESULT, 0, 0},
	{"Sign", OM_MAP_SIGN, 0, RESULT, 0, 0},
	{"Silu", OM_MAP_SILU, 3, ARGUMENT, 0, 0},
	{"Sin", OM_MAP_SIN, 2.5, UNIT, 0, 0},
	{"Softplus", OM_MAP_SOFTPLUS, 3.5, RESULT, 0, 0},
	{"Softsign", OM_MAP_SOFTSIGN, 1.5, RESULT, 0, 0},
	{"Sqrt", OM_MAP_SQRT, 0.5, RESULT, 0, 0},
	{"square", OM_MAP_SQUARE, 0.5, RESULT, 0, 0},
	{"Swish", OM_MAP_SWISH, 4.5, RESULT, 0.5f, 0},
	{"Tanh", OM_MAP_TANH, 3.5, RESULT, 0, 0},
	{"ThresholdedRelu", OM_MAP_THRESHOLDED_RELU, 0, RESULT, 1, 0},
};

enum { NCURVE = sizeof curves / sizeof curves[0] };

static double
value_of(const struct curve *f, double x)
{
	const double a = (double)f->a, b = (double)f->b;

	switch (f->kind) {
	case OM_MAP_ABS: return fabs(x);
	case OM_MAP_CEIL: return ceil(x);
	case OM_MAP_CELU: return x > 0 ? x : expm1_scaled(x / a, a);
	case OM_MAP_CLIP: return clamped(x, a, b);
	case OM_MAP_COS: return cos(x);
	case OM_MAP_CUBE: return x * x * x;
	case OM_MAP_ELU: return x < 0 ? expm1_scaled(x, a) : x;
	case OM_MAP_ERF: return erf(x);
	case OM_MAP_EXP: return exp(x);
	case OM_MAP_FLOOR: return floor(x);
	case OM_MAP_GELU: return 0.5 * x * (1 + erf(x * sqrt(0.5)));
	case OM_MAP_GELU_TANH: return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
	case OM_MAP_HARD_SIGMOID: return clamped(a * x + b, 0, 1);
	case OM_MAP_HARD_SWISH: return x * clamped(x / 6 + 0.5, 0, 1);
	case OM_MAP_LEAKY_RELU: return x < 0 ? a * x : x;
	case OM_MAP_LOG: return log(x);
	case OM_MAP_MISH: return x * tanh(log1p(exp(x)));
	case OM_MAP_NEG: return -x;
	case OM_MAP_POW_HALF: return pow(x, 0.5);
	case OM_MAP_POW_MINUS_HALF: return pow(x, -0.5);
	case OM_MAP_RECIPROCAL: return 1 / x;
	case OM_MAP_RELU: return x < 0 ? 0 : x;
	case OM_MAP_ROUND: return rint(x);
	case OM_MAP_SELU: return b * (x > 0 ? x : expm1_scaled(x, a));
	case OM_MAP_SIGMOID: return 1 / (1 + exp(-x));
	case OM_MAP_SIGN: return isnan(x) ? x : (double)((x > 0) - (x < 0));
	case OM_MAP_SILU: return x / (1 + exp(-x));
	case OM_MAP_SIN: return sin(x);
	case OM_MAP_SOFTPLUS: return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
	case OM_MAP_SOFTSIGN: return x / (1 + fabs(x));
	case OM_MAP_SQRT: return sqrt(x);
	case OM_MAP_SQUARE: return x * x;
	case OM_MAP_SWISH: return x / (1 + exp(-a * x));
	case OM_MAP_TANH: return tanh(x);
	case OM_MAP_THRESHOLDED_RELU: return x > a ? x : 0;
	default: return (double)NAN;
	}
}

/* One unit in the last place of a float near x; of the smallest normal number where x is smaller. */
static double
ulp_of(double x)
{
	int e;

	frexp(fabs(x), &e);
	return ldexp(1, (e < -125 ? -125 : e > 128 ? 128 : e) - 24);
}

/* In ULP; infinite where one is NaN or infinite and the other is not. */
static double
error_of(const struct curve *f, float x, float got)
{
	const double want = value_of(f, (double)x), size = fabs(want);
	const double scale = f->scale == UNIT ? fmax(size, 1) : f->scale == ARGUMENT ? fmax(size, fabs((double)x)) : size;

	if (isnan(want) || isnan(got))
		return isnan(want) && isnan(got) ? 0 : (double)INFINITY;
	if (isinf((float)want) || isinf(got))
		return (float)want == got || (isinf(got) && size > 0x1.fffffp127) ? 0 : (double)INFINITY;
	return fabs(want - (double)got) / ulp_of(scale);
}

/* Within the range in which functions that double has, too, do not leave what float computes with: products
 * of the argument overflow, exp(-x) of a sigmoid does. */
static bool
is_in_range(const struct curve *f, float x)
{
	switch (f->kind) {
	case OM_MAP_GELU_TANH: return fabsf(x) < 1e12f;
	case OM_MAP_MISH: case OM_MAP_SIGMOID: return x > -87;
	case OM_MAP_SWISH: return x > -174;
	default: return true;
	}
}

enum { SAMPLE = 1024, STEP = 20011 };

static double
worst_of(const om_kernels *kernels, const struct curve *f)
{
	const float p[] = {f->a, f->b};
	double worst = 0;
	float x[SAMPLE], y[SAMPLE];

	for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += (uint64_t)STEP * SAMPLE) {
		for (int i = 0; i < SAMPLE; i++) {
			const uint32_t b = (uint32_t)(bits + (uint64_t)STEP * (uint64_t)i);
			memcpy(&x[i], &b, sizeof b);
		}
		kernels->elementwise->map[f->kind][OM_MAP_X](y, x, x, SAMPLE, p);
		for (int i = 0; i < SAMPLE; i++)
			if (is_in_range(f, x[i]))
				worst = fmax(worst, error_of(f, x[i], y[i]));
	}
	return worst;
}

static void
curves_are_accurate(void)
{
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++)
		for (int k = 0; k < NCURVE; k++) {
			const double worst = worst_of(kernels, &curves[k]);
			if (!(worst <= curves[k].ulp + 0.5))
				printf("# %s, %s: %g ULP, expected %g\n", kernels->isa, curves[k].name, worst, curves[k].ulp);
			CU_ASSERT(worst <= curves[k].ulp + 0.5);
		}
}

static void
zeros_keep_their_sign(void)
{
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++)
		for (int k = 0; k < NCURVE; k++) {
			const float x[] = {0, -0.0f}, p[] = {curves[k].a, curves[k].b};
			float y[2];
			kernels->elementwise->map[curves[k].kind][OM_MAP_X](y, x, x, 2, p);
			for (int i = 0; i < 2; i++) {
				const double want = value_of(&curves[k], (double)x[i]);
				const bool same = want != 0 || (y[i] == 0 && !signbit(want) == !signbit(y[i]));
				if (!same)
					printf("# %s, %s of %g: %g\n", kernels->isa, curves[k].name, (double)x[i], (double)y[i]);
				CU_ASSERT(same);
			}
		}
}

static uint32_t
next(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Most of them ordinary, some not. */
static float
number(uint32_t *seed)
{
	static const float special[] = {NAN, INFINITY, -INFINITY, 0, -0.0f, 1e-42f, -1e-42f, 3e38f, -3e38f, 1e5f};

	if (next(seed) % 16 == 0)
		return special[next(seed) % (sizeof special / sizeof special[0])];
	return ((float)(next(seed) % 2001) / 1000 - 1) * (float)(1 << next(seed) % 5);
}

static bool
is_same(float a, float b)
{
	return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

/* The bits of an element depend on its operands alone: not on its place, not on how many are computed with it, not
 * on where the output lies; and nothing around the output is written. */
static void
elements_are_independent(void)
{
	enum { MOST = 70, EDGE = 17 };
	static const float p[] = {0.5f, 2};
	const om_kernels *kernels;

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++)
		for (int kind = 0; kind < OM_NMAP; kind++)
			for (int trial = 0; trial < 3 * (MOST + 1); trial++) {
				const int n = trial / 3, steps = trial % 3;
				uint32_t seed = (uint32_t)(kind * 1000 + trial);
				float x[MOST + 1], y[MOST + 1], room[MOST + 2 * EDGE];
				for (int i = 0; i <= MOST; i++) {
					x[i] = number(&seed);
					y[i] = number(&seed);
				}
				for (int i = 0; i < MOST + 2 * EDGE; i++)
					room[i] = 7;
				float *out = room + 1 + next(&seed) % 16;
				const int over = (int)(next(&seed) % 3);
				if (over && (over == 1 ? steps != OM_MAP_Y : steps != OM_MAP_X))
					memcpy(out, over == 1 ? x : y, (size_t)n * sizeof *out);
				const float *px = over == 1 && steps != OM_MAP_Y ? out : x;
				const float *py = over == 2 && steps != OM_MAP_X ? out : y;
				kernels->elementwise->map[kind][steps](out, px, py, n, p);
				bool right = out[-1] == 7 && out[n] == 7;
				for (int i = 0; i < n; i++) {
					float one;
					kernels->elementwise->map[kind][OM_MAP_BOTH](&one, x + (steps == OM_MAP_Y ? 0 : i),
						y + (steps == OM_MAP_X ? 0 : i), 1, p);
					/* Functions of x alone advance in it. */
					float alone;
					kernels->elementwise->map[kind][OM_MAP_BOTH](&alone, x + i, y + i, 1, p);
					right &= is_same(out[i], one) || (kind < OM_MAP_ADD && (is_same(out[i], alone) || over == 2));
				}
				CU_ASSERT(right);
			}
}

static float
binary_of(int kind, float x, float y)
{
	switch (kind) {
	case OM_MAP_ADD: return x + y;
	case OM_MAP_DIV: return x / y;
	case OM_MAP_MAX: return x > y || isnan(x) ? x : y;
	case OM_MAP_MIN: return x < y || isnan(x) ? x : y;
	case OM_MAP_MUL: return x * y;
	case OM_MAP_PRELU: return x < 0 ? x * y : x;
	default: return x - y;
	}
}

static void
operators_are_those_of_c(void)
{
	enum { N = 500 };
	static const float p[2];
	const om_kernels *kernels;
	float x[N], y[N], out[N];

	for (unsigned isa = 0; (kernels = om_kernels_at(isa)); isa++)
		for (int kind = OM_MAP_ADD; kind < OM_NMAP; kind++) {
			uint32_t seed = (uint32_t)kind;
			bool right = true;
			for (int i = 0; i < N; i++) {
				x[i] = number(&seed);
				y[i] = number(&seed);
			}
			kernels->elementwise->map[kind][OM_MAP_BOTH](out, x, y, N, p);
			for (int i = 0; i < N; i++)
				right &= is_same(out[i], binary_of(kind, x[i], y[i]));
			CU_ASSERT(right);
		}
}

static CU_TestInfo elementwise_tests[] = {
	{"curves are as accurate as they say", curves_are_accurate},
	{"zeros keep their sign", zeros_keep_their_sign},
	{"an element depends on its operands alone", elements_are_independent},
	{"operators are those of C", operators_are_those_of_c},
	CU_TEST_INFO_NULL,
};
UNIT_SUITE("elementwise", elementwise_tests);
