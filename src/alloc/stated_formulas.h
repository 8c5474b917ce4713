/* SPDX-License-Identifier: Apache-2.0 */
/* Formulas as a plan document states them: texts, which a reader does not trust. */
#ifndef OM_STATED_FORMULAS_H
#define OM_STATED_FORMULAS_H

#include "onnxmem/formula.h"

/* Those of a part of the ranges. */
typedef struct om_stated_piece {
	const om_dim_range *range; /* by range of the plan */
	bool is_exact;           /* bytes; false: at most */
	const char *const *text; /* by arena */
} om_stated_piece;

struct om_stated_formulas {
	const om_stated_piece *piece;
	uint32_t npiece;
	const int64_t *n;        /* by range: the sizes that the plan was read for */
};

/* The value of the formula of an arena in the document, for the numbers `n` of the ranges; `*piece` is the part that they lie in.
 * OM_BADPLAN with a message if no part has them, or two have, or the text is no formula. */
om_status om_stated_formula_value(om_session *s, const om_plan *plan, uint32_t arena, const int64_t *n, uint64_t *bytes,
	const om_stated_piece **piece);

/* Are the formulas those that `f` has, to the letter? */
bool om_stated_formulas_equal(const om_plan *plan, const om_formulas *f);

/* OM_BADPLAN if the document promises less than `plan`, which is for the sizes that it was read for, takes. */
om_status om_stated_formulas_check(om_session *s, const om_plan *plan);

/* "N = 3, S = 4": sizes of the ranges of a plan. */
const char *om_range_sizes_text(om_arena *mem, const om_plan *plan, const int64_t *n);

#endif
