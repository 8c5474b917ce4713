/* SPDX-License-Identifier: Apache-2.0 */
/* Polynomials of up to four symbols, or of quotients of them, of degree 2 in each, and sums of them (om_polynomial.more). */
#ifndef OM_POLYNOMIAL_H
#define OM_POLYNOMIAL_H

#include "onnxmem/formula.h"

/* Up to three sizes of each symbol, ascending; others count as one size, 0. */
typedef struct om_sample_grid {
	int64_t at[OM_FORMULA_SYMBOLS][3];
	int n[OM_FORMULA_SYMBOLS];
} om_sample_grid;

/* The polynomial without quotients that has the values y[a + 3 * b + ...] at the sizes at[0][a], at[1][b], ...  False: its
 * factors are no integers, or too large. */
bool om_polynomial_fit(const om_sample_grid *g, const int64_t y[OM_FORMULA_TERMS], om_polynomial *out);

/* Its value; false: it is negative, or too large. */
bool om_polynomial_value(const om_polynomial *f, const int64_t *n, uint64_t *out);

/* The number, or the quotient, of symbol `d` for the number `n`. */
int64_t om_polynomial_variable(const om_polynomial *f, int d, int64_t n);

bool om_polynomial_has_quotients(const om_polynomial *f);

/* Control points are multiplied by this, so that they are integers. */
enum { OM_CONTROL_SCALE = 1 << OM_FORMULA_SYMBOLS };

/* OM_CONTROL_SCALE times its value at control point `k`, below OM_FORMULA_TERMS, of a box: the factors of its Bernstein form.  At each
 * point of the box, a polynomial is a mean of these, with weights that do not depend on it and are not
 * negative.  With quotients, the control points of two polynomials without them, of which one is never more, the other never
 * less.  False: too large. */
bool om_polynomial_control(const om_polynomial *f, const int64_t *low, const int64_t *high, int k, int64_t *least, int64_t *most);

/* A polynomial without quotients that is at most, or at least, `f` for all numbers from `low` on.  False: too large. */
bool om_polynomial_bound(const om_polynomial *f, const int64_t *low, bool at_least, om_polynomial *out);

/* f + count * g, both without quotients; false: too large. */
bool om_polynomial_add(om_polynomial *f, const om_polynomial *g, int64_t count);

bool om_polynomial_equal(const om_polynomial *f, const om_polynomial *g);

/* count * f, with any quotients, in memory of `mem`; false: too large. */
bool om_polynomial_times(om_arena *mem, const om_polynomial *f, int64_t count, om_polynomial *out);

/* The greatest common divisor of `n` and all its factors. */
uint64_t om_polynomial_divisor(const om_polynomial *f, uint64_t n);

#endif
