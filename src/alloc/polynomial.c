/* SPDX-License-Identifier: Apache-2.0 */
/* Polynomials of up to four symbols: see polynomial.h. */
#include <config.h>

#include "alloc/polynomial.h"
#include "base/sizes.h"

__extension__ typedef __int128 wide;

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
	static const int step[OM_FORMULA_SYMBOLS] = {1, 3, 9, 27};

	for (int k = 0; k < OM_FORMULA_TERMS; k++)
		if (k / step[d] % 3 == 0 && !fit_line(g->at[d], g->n[d], y + k, step[d]))
			return false;
	return true;
}

/* Has the grid a point that decides term `k`? */
static bool
has_point(const om_sample_grid *g, int k)
{
	for (int d = 0; d < OM_FORMULA_SYMBOLS; d++, k /= 3)
		if (k % 3 >= g->n[d])
			return false;
	return true;
}

bool
om_polynomial_fit(const om_sample_grid *g, const int64_t y[OM_FORMULA_TERMS], om_polynomial *out)
{
	*out = (om_polynomial){{0}};
	for (int k = 0; k < OM_FORMULA_TERMS; k++)
		out->factor[k] = has_point(g, k) ? y[k] : 0;
	for (int d = 0; d < OM_FORMULA_SYMBOLS; d++)
		if (!fit_lines(g, d, out->factor))
			return false;
	return true;
}

/* ---- Values. ---- */

int64_t
om_polynomial_variable(const om_polynomial *f, int d, int64_t n)
{
	return f->by[d] ? (n + f->add[d]) / f->by[d] : n;
}

bool
om_polynomial_has_quotients(const om_polynomial *f)
{
	for (; f; f = f->more)
		for (int d = 0; d < OM_FORMULA_SYMBOLS; d++)
			if (f->by[d])
				return true;
	return false;
}

/* The sum of factors, each times a product of one of three weights of each symbol. */
static bool
weighted(const om_polynomial *f, int64_t w[OM_FORMULA_SYMBOLS][3], wide *out)
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

/* The value of one polynomial of a sum, which may be negative. */
static bool
value_of_one(const om_polynomial *f, const int64_t *n, wide *out)
{
	int64_t w[OM_FORMULA_SYMBOLS][3];

	for (int d = 0; d < OM_FORMULA_SYMBOLS; d++) {
		w[d][0] = 1;
		w[d][1] = om_polynomial_variable(f, d, n[d]);
		if (__builtin_mul_overflow(w[d][1], w[d][1], &w[d][2]))
			return false;
	}
	return weighted(f, w, out);
}

bool
om_polynomial_value(const om_polynomial *f, const int64_t *n, uint64_t *out)
{
	wide sum = 0, x;

	for (; f; f = f->more)
		if (!value_of_one(f, n, &x) || __builtin_add_overflow(sum, x, &sum))
			return false;
	if (sum < 0 || sum > INT64_MAX)
		return false;
	*out = (uint64_t)sum;
	return true;
}

/* ---- Control points and bounds. ----
 *
 * A quotient is at most (n + add) / by, and at least (n + add - by + 1) / by, where that is not negative. */

/* What is added to the number before it is divided. */
static int64_t
shift(const om_polynomial *f, int d, bool is_most)
{
	return f->by[d] ? f->add[d] - (is_most ? 0 : f->by[d] - 1) : 0;
}

/* May the least quotient be taken for term `k` from `low` on?  If not, the term is at least 0. */
static bool
is_bounded(const om_polynomial *f, const int64_t *low, int k)
{
	for (int d = 0; d < OM_FORMULA_SYMBOLS; d++, k /= 3)
		if (k % 3 && low[d] + shift(f, d, false) < 0)
			return false;
	return true;
}

/* Terms with a negative factor are largest where their quotients are least. */
static bool
takes_most(const om_polynomial *f, int k, bool is_most)
{
	return is_most == (f->factor[k] > 0);
}

static wide
divided(wide a, wide b, bool up)
{
	const wide q = a / b, rest = a % b;

	return q + (up ? rest > 0 : -(rest < 0));
}

/* OM_CONTROL_SCALE times term `k` at control point `at`, rounded up for an upper bound, down for a lower one. */
static bool
control_of_term(const om_polynomial *f, const int64_t *low, const int64_t *high, int k, int at, bool up, wide *out)
{
	wide by = 1;

	*out = f->factor[k];
	if (!takes_most(f, k, up) && !is_bounded(f, low, k)) {
		*out = 0;
		return true;
	}
	for (int d = 0, e = k; d < OM_FORMULA_SYMBOLS; d++, at /= 3, e /= 3) {
		const int64_t s = shift(f, d, takes_most(f, k, up));
		const int64_t a = (at % 3 == 2 ? high[d] : low[d]) + s, b = (at % 3 ? high[d] : low[d]) + s;
		const wide w[] = {2, (wide)a + b, (wide)2 * a * b};
		if (a > INT32_MAX || b > INT32_MAX || __builtin_mul_overflow(*out, w[e % 3], out))
			return false;
		for (int i = 0; i < e % 3 && f->by[d]; i++)
			by *= f->by[d];
	}
	*out = divided(*out, by, up);
	return true;
}

static bool
control(const om_polynomial *f, const int64_t *low, const int64_t *high, int at, bool up, int64_t *out)
{
	wide sum = 0, x;

	for (; f; f = f->more)
		for (int k = 0; k < OM_FORMULA_TERMS; k++)
			if (f->factor[k] && (!control_of_term(f, low, high, k, at, up, &x) || __builtin_add_overflow(sum, x, &sum)))
				return false;
	return narrow(sum, out);
}

bool
om_polynomial_control(const om_polynomial *f, const int64_t *low, const int64_t *high, int k, int64_t *least, int64_t *most)
{
	if (!control(f, low, high, k, false, least))
		return false;
	*most = *least;
	return !om_polynomial_has_quotients(f) || control(f, low, high, k, true, most);
}

/* The factor of n^i in (n + s)^e. */
static int64_t
power_factor(int64_t s, int e, int i)
{
	static const int64_t binomial[3][3] = {{1}, {1, 1}, {1, 2, 1}};
	int64_t x = i <= e ? binomial[e][i] : 0;

	for (int k = i; k < e; k++)
		x *= s;
	return x;
}

/* The factor of term `i` in term `k` whose quotients are written out. */
static bool
factor_of_bound(const om_polynomial *f, int k, int i, bool up, int64_t *out)
{
	const bool is_most = takes_most(f, k, up);
	wide x = f->factor[k], by = 1;

	for (int d = 0; d < OM_FORMULA_SYMBOLS; d++, k /= 3, i /= 3) {
		if (__builtin_mul_overflow(x, (wide)power_factor(shift(f, d, is_most), k % 3, i % 3), &x))
			return false;
		for (int j = 0; j < k % 3 && f->by[d]; j++)
			by *= f->by[d];
	}
	return narrow(divided(x, by, up), out);
}

/* Add the bound of one polynomial of a sum. */
static bool
add_bound(const om_polynomial *f, const int64_t *low, bool at_least, om_polynomial *sum)
{
	for (int k = 0; k < OM_FORMULA_TERMS; k++) {
		if (f->factor[k] == 0 || (!takes_most(f, k, at_least) && !is_bounded(f, low, k)))
			continue;
		for (int i = 0; i < OM_FORMULA_TERMS; i++) {
			int64_t x;
			if (!factor_of_bound(f, k, i, at_least, &x) || __builtin_add_overflow(sum->factor[i], x, &sum->factor[i]))
				return false;
		}
	}
	return true;
}

bool
om_polynomial_bound(const om_polynomial *f, const int64_t *low, bool at_least, om_polynomial *out)
{
	om_polynomial sum = {{0}};

	for (; f; f = f->more)
		if (!add_bound(f, low, at_least, &sum))
			return false;
	*out = sum;
	return true;
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
	for (; f && g; f = f->more, g = g->more)
		if (memcmp(f->factor, g->factor, sizeof f->factor) || memcmp(f->add, g->add, sizeof f->add)
		    || memcmp(f->by, g->by, sizeof f->by))
			return false;
	return f == g;
}

bool
om_polynomial_times(om_arena *mem, const om_polynomial *f, int64_t count, om_polynomial *out)
{
	om_polynomial one = *f;

	for (int k = 0; k < OM_FORMULA_TERMS; k++)
		if (!narrow((wide)f->factor[k] * count, &one.factor[k]))
			return false;
	if (f->more) {
		om_polynomial *more = OM_NEW(mem, om_polynomial);
		if (!om_polynomial_times(mem, f->more, count, more))
			return false;
		one.more = more;
	}
	*out = one;
	return true;
}

uint64_t
om_polynomial_divisor(const om_polynomial *f, uint64_t n)
{
	for (; f; f = f->more)
		for (int k = 0; k < OM_FORMULA_TERMS; k++)
			n = om_common_divisor(n, (uint64_t)(f->factor[k] < 0 ? -f->factor[k] : f->factor[k]));
	return n;
}
