/* Polynomials of up to three symbols: see polynomial.h. */
#include <config.h>

#include "alloc/polynomial.h"

typedef __int128 wide;

static bool
narrow(wide x, int64_t *out)
{
	*out = (int64_t)x;
	return x <= INT64_MAX && x >= -(wide)INT64_MAX;
}

/* ---- Interpolation. ---- */

static bool
divide(wide a, wide b, wide *out)
{
	*out = a / b;
	return a % b == 0;
}

/* The factors of the polynomial of degree below `n` with the values y[0], y[step], ... at `x`; they replace the values. */
static bool
fit_line(const int64_t *x, int n, int64_t *y, int step)
{
	wide c[3] = {y[0]}, d;

	if (n > 1 && !divide((wide)y[step] - y[0], x[1] - x[0], &c[1]))
		return false;
	if (n > 2) {
		if (!divide((wide)y[2 * step] - y[step], x[2] - x[1], &d) || !divide(d - c[1], x[2] - x[0], &c[2]))
			return false;
		c[1] -= c[2] * ((wide)x[0] + x[1]);
	}
	c[0] -= c[1] * x[0] + c[2] * x[0] * x[0];
	return narrow(c[0], &y[0]) && (n < 2 || narrow(c[1], &y[step])) && (n < 3 || narrow(c[2], &y[2 * step]));
}

/* All lines in the direction of symbol `d`. */
static bool
fit_lines(const om_sample_grid *g, int d, int64_t *y)
{
	static const int step[] = {1, 3, 9};

	for (int k = 0; k < OM_FORMULA_TERMS; k++)
		if (k / step[d] % 3 == 0 && !fit_line(g->at[d], g->n[d], y + k, step[d]))
			return false;
	return true;
}

bool
om_polynomial_fit(const om_sample_grid *g, const int64_t y[OM_FORMULA_TERMS], om_polynomial *out)
{
	for (int k = 0; k < OM_FORMULA_TERMS; k++)
		out->factor[k] = k % 3 < g->n[0] && k / 3 % 3 < g->n[1] && k / 9 < g->n[2] ? y[k] : 0;
	for (int d = 0; d < OM_FORMULA_SYMBOLS; d++)
		if (!fit_lines(g, d, out->factor))
			return false;
	return true;
}

/* ---- Values. ---- */

/* The sum of factors, each times a product of one of three weights of each symbol. */
static bool
weighted(const om_polynomial *f, const int64_t w[OM_FORMULA_SYMBOLS][3], wide *out)
{
	*out = 0;
	for (int k = 0; k < OM_FORMULA_TERMS; k++) {
		wide x = f->factor[k];
		if (x == 0)
			continue;
		for (int d = 0, at = k; d < OM_FORMULA_SYMBOLS; d++, at /= 3)
			if (__builtin_mul_overflow(x, (wide)w[d][at % 3], &x))
				return false;
		if (__builtin_add_overflow(*out, x, out))
			return false;
	}
	return true;
}

bool
om_polynomial_value(const om_polynomial *f, const int64_t *n, uint64_t *out)
{
	int64_t w[OM_FORMULA_SYMBOLS][3];
	wide x;

	for (int d = 0; d < OM_FORMULA_SYMBOLS; d++) {
		w[d][0] = 1;
		w[d][1] = n[d];
		if (__builtin_mul_overflow(n[d], n[d], &w[d][2]))
			return false;
	}
	if (!weighted(f, w, &x) || x < 0 || x > INT64_MAX)
		return false;
	*out = (uint64_t)x;
	return true;
}

bool
om_polynomial_control(const om_polynomial *f, const int64_t *low, const int64_t *high, int k, int64_t *out)
{
	int64_t w[OM_FORMULA_SYMBOLS][3];
	wide x;

	for (int d = 0; d < OM_FORMULA_SYMBOLS; d++, k /= 3) {
		const int64_t a = k % 3 == 2 ? high[d] : low[d], b = k % 3 ? high[d] : low[d];
		w[d][0] = 2;
		w[d][1] = a + b;
		if (a > INT32_MAX || b > INT32_MAX)
			return false;
		w[d][2] = 2 * a * b;
	}
	return weighted(f, w, &x) && narrow(x, out);
}

bool
om_polynomial_add(om_polynomial *f, const om_polynomial *g, int64_t count)
{
	for (int k = 0; k < OM_FORMULA_TERMS; k++)
		if (!narrow((wide)f->factor[k] + (wide)g->factor[k] * count, &f->factor[k]))
			return false;
	return true;
}

bool
om_polynomial_equal(const om_polynomial *f, const om_polynomial *g)
{
	return memcmp(f->factor, g->factor, sizeof f->factor) == 0;
}

uint64_t
om_polynomial_divisor(const om_polynomial *f, uint64_t n)
{
	for (int k = 0; k < OM_FORMULA_TERMS; k++) {
		uint64_t rest = (uint64_t)(f->factor[k] < 0 ? -f->factor[k] : f->factor[k]);
		while (rest) {
			const uint64_t next = n % rest;
			n = rest;
			rest = next;
		}
	}
	return n;
}
