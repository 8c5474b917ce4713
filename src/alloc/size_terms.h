/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes as sums of terms of other sizes.
 *
 * A value that joins others has a size that is the sum of theirs, and so have values that are computed from it; its terms are among
 * those of the values that have polynomials. */
#ifndef OM_SIZE_TERMS_H
#define OM_SIZE_TERMS_H

#include "alloc/polynomial.h"

enum { OM_MOST_SIZE_TERMS = 64 };

/* Products of symbols and of quotients of them; each a polynomial with one factor, 1. */
typedef struct om_size_terms {
	om_polynomial term[OM_MOST_SIZE_TERMS];
	uint32_t n;
} om_size_terms;

/* The terms of `f`, as far as there is room. */
void om_size_terms_add(om_size_terms *t, const om_polynomial *f);

/* The products of some of the factors of these terms, and 1. */
void om_size_terms_add_parts(om_size_terms *t);

/* Sizes for some numbers of the symbols. */
typedef struct om_size_points {
	const int64_t *const *n; /* by point: OM_FORMULA_SYMBOLS numbers */
	uint32_t npoint;
	const int64_t *const *bytes; /* by value: by point; at least 0 */
	uint32_t nvalue;
} om_size_points;

/* By value, the sum of terms that has these sizes, in memory of `mem`; NULL: there is none. */
const om_polynomial *const *om_size_terms_fit(const om_size_terms *t, const om_size_points *x, om_arena *mem);

#endif
