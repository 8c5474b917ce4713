/* SPDX-License-Identifier: Apache-2.0 */
/* Formulas of plans with ranges, from the sizes of values; see onnxmem/formula.h. */
#ifndef OM_FORMULAS_H
#define OM_FORMULAS_H

#include "onnxmem/formula.h"

/* The formulas of a plan whose values have these sizes, by value id: of all that are in an arena.  They are allocated
 * by the plan. */
om_formulas *om_formulas_new(const om_prog *p, const om_plan *plan, const om_polynomial *const *bytes,
	const om_formula *outside);

/* Formulas that there are none of, with the reason. */
om_formulas *om_formulas_none(const om_plan *plan, const char *why);

#endif
