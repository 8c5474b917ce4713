/* SPDX-License-Identifier: Apache-2.0 */
/* Formulas of plans with ranges, from the sizes of values; see onnxmem/formula.h. */
#ifndef OM_FORMULAS_H
#define OM_FORMULAS_H

#include "onnxmem/formula.h"

/* The formulas of a plan whose values have these sizes, by value id: of all that are in an arena; in numbers of sizes.  They are
 * allocated by the plan. */
om_formulas *om_formulas_new(const om_prog *p, const om_plan *plan, const om_polynomial *const *bytes,
	const om_formula *outside);

/* The sizes of a range by their number: `k` stands for step * k + the rest that all sizes leave.  Polynomials are found in these
 * numbers, so that a model that is possible at multiples only has integer factors; om_polynomial_of_sizes() makes them
 * polynomials of the sizes. */
om_dim_range om_range_of_steps(const om_dim_range *r);

/* The size that `k` stands for. */
int64_t om_size_of_step(const om_dim_range *r, int64_t k);

/* The polynomial of sizes of a polynomial of their numbers, in memory of the plan. */
om_polynomial om_polynomial_of_sizes(const om_plan *plan, const om_polynomial *f);

/* The same, of all that is in a formula. */
void om_formula_of_sizes(const om_plan *plan, om_formula *f, om_rounded *rounded);

/* Formulas that there are none of, with the reason. */
om_formulas *om_formulas_none(const om_plan *plan, const char *why);

#endif
