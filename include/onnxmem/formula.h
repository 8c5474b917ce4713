/* SPDX-License-Identifier: Apache-2.0 */
/* Formulas: the memory of a plan with ranges, as polynomials of its symbols.
 *
 * A plan with ranges (om_plan.range) serves all sizes in them.  The place of each value in it follows from sizes and
 * from what lies above what, so that the arena is the longest of some sums of sizes.  Where one of these sums is the longest for all
 * sizes of a range, or of a part of it, it is the formula of the arena there.  Strides divide sizes and round: such a size is
 * a polynomial of quotients of the symbols, and that of joined values a sum of several.  om_host_find_formulas() (onnxmem/pass.h) finds them.
 */
#ifndef OM_FORMULA_H
#define OM_FORMULA_H

#include "onnxmem/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Most symbols of formulas, and most terms of a polynomial: the degree in each symbol is at most 2. */
enum { OM_FORMULA_SYMBOLS = 4, OM_FORMULA_TERMS = 81 };

/* A polynomial of the symbols of om_plan.range: factor[a + 3 * b + 9 * c + 27 * d] is that of n0^a * n1^b * n2^c * n3^d.  In place of the number of
 * symbol `d` it may have a quotient of it, floor((n + add[d]) / by[d]), which is not negative in the range. */
typedef struct om_polynomial {
	int64_t factor[OM_FORMULA_TERMS]; /* integers */
	int64_t add[OM_FORMULA_SYMBOLS]; /* by symbol */
	int64_t by[OM_FORMULA_SYMBOLS]; /* by symbol; 0: the number itself */
	const struct om_polynomial *more; /* another one, of other quotients, which is added; NULL: this is the last */
} om_polynomial;

/* `count` times a polynomial that is rounded up to a multiple of an alignment. */
typedef struct om_rounded {
	uint32_t count;          /* at least 1 */
	uint64_t align;          /* at least 1 */
	om_polynomial of;        /* it has quotients, or values that are no multiples of the alignment */
} om_rounded;

/* What functions are called in texts. */
typedef struct om_formula_words {
	const char *round;       /* "round(SIZE, ALIGN)": rounded up to a multiple */
	const char *largest;     /* "largest(A, B, ...)" */
	const char *floor;       /* "floor((N + 1)/2)"; "": without a name, as in C */
} om_formula_words;

/* Bytes: the sum of a polynomial and of sizes that are rounded up or, with `other`, the largest of several sums. */
typedef struct om_formula {
	om_polynomial sum;       /* of what is a multiple of the alignment for all sizes, without quotients but by the steps of ranges */
	const om_rounded *rounded; /* the others */
	uint32_t nrounded;       /* how many */
	const struct om_formula *other; /* another sum: the value is that of the larger one; NULL: this is the last */
} om_formula;

/* The formulas of a part of the ranges. */
typedef struct om_formula_piece {
	int64_t low[OM_FORMULA_SYMBOLS];  /* by symbol, the smallest number; 0 after the last symbol */
	int64_t high[OM_FORMULA_SYMBOLS]; /* by symbol, the largest number */
	const om_formula *arena; /* by arena: its bytes or, if `least` is not NULL, an upper bound of them */
	const om_formula *least; /* by arena: a lower bound; NULL: `arena` is exact */
	const om_formula *const *offset; /* by value id: bytes from the start of its arena; NULL: no single
				    formula, or not in an arena; the list is NULL with bounds */
} om_formula_piece;

/* What a run takes for one size of each symbol. */
typedef struct om_formula_point {
	int64_t n[OM_FORMULA_SYMBOLS]; /* by symbol */
	uint64_t arenas;         /* bytes of all arenas */
} om_formula_point;

/* The formulas of a plan. */
typedef struct om_formulas {
	const char *why;         /* a sentence: why there are none; NULL: there are */
	const om_formula_point *point; /* if there are none: some sizes, from the smallest to the largest */
	uint32_t npoint;         /* how many */
	const om_formula_piece *piece; /* they cover the ranges, and do not overlap */
	uint32_t npiece;         /* how many; 0 if there are none */
	const om_polynomial *const *bytes; /* by value id: size of its elements; NULL: not in an arena */
	const om_formula *outside; /* bytes of weights, and of inputs and outputs of the caller; NULL: not known */
	uint64_t checked;        /* sizes of the ranges for which sizes of values were compared with their polynomials */
	const char *why_unproven; /* a sentence: why these polynomials may differ from sizes that were not compared; NULL: they
				    are derived for all sizes of the ranges */
} om_formulas;

/* The value of a formula for OM_FORMULA_SYMBOLS numbers, 0 after those of the plan's symbols.  UINT64_MAX if it is larger. */
OM_API uint64_t om_formula_value(const om_formula *f, const int64_t *n);

/* The piece that the numbers `n` of the symbols of om_plan.range lie in; NULL: there is none. */
OM_API const om_formula_piece *om_formulas_at(const om_plan *plan, const int64_t *n);

/* The bytes of arena `arena` for the numbers `n` of the symbols of om_plan.range, in microseconds.  False if they are outside
 * of the ranges, or there is no exact formula that is proven (om_formulas.why_unproven). */
OM_API bool om_plan_arena_at(const om_plan *plan, uint32_t arena, const int64_t *n, uint64_t *bytes);

/* As om_plan_offset() for the numbers `n`; false also where there is no formula. */
OM_API bool om_plan_offset_at(const om_prog *p, const om_plan *plan, const char *name, const int64_t *n, uint32_t *arena,
	uint64_t *offset);

/* A formula as text, "40960*N + 12288", with `symbol` by index.  `words` may be NULL: "up", "max" and "floor". */
OM_API const char *om_formula_text(om_arena *mem, const om_formula *f, const char *const *symbol, const om_formula_words *words);

/* A polynomial as text, in the same way. */
OM_API const char *om_polynomial_text(om_arena *mem, const om_polynomial *f, const char *const *symbol,
	const om_formula_words *words);

/* A symbol in formulas: in parentheses if it is called like an expression, "a + 1". */
OM_API const char *om_symbol_text(om_arena *mem, const char *symbol);

#ifdef __cplusplus
}
#endif

#endif
