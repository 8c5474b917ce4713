/* SPDX-License-Identifier: Apache-2.0 */
/* The search for formulas of a plan; see formulas.c. */
#ifndef OM_FORMULA_SEARCH_H
#define OM_FORMULA_SEARCH_H

#include "alloc/formulas.h"
#include "alloc/place_order.h"

/* What a rounded size is taken for. */
enum rounding { EXACT, AT_MOST, AT_LEAST };

struct number_box {
	int64_t low[OM_FORMULA_SYMBOLS], high[OM_FORMULA_SYMBOLS];
};

struct formula_search {
	const om_plan *plan;
	const om_place_order *o;
	om_arena *mem;           /* for the time of the call */
	om_arena *tmp;           /* for the current box of numbers */
	om_polynomial *size;     /* by box of the order: its bytes */
	bool *is_rounded;        /* by box of the order: they are rounded up, or have quotients */
	enum rounding sizes;
	bool by_points;          /* compare paths at all sizes; false: at control points */
	/* in the current box of numbers */
	size_t nprobe;
	int64_t *edge;           /* [nbox][nprobe]: lengths; at control points of rounded sizes, the least ones */
	int64_t *most;           /* [nbox][nprobe]: at control points, the largest ones */
	int64_t *longest;        /* [nstorage][nprobe] */
	int64_t *path;           /* [nstorage][nprobe]: of the path that is tried */
	uint32_t *from;          /* by storage: the box before it on that path; OM_NO_VALUE: none */
	uint32_t *end;           /* by arena: the last box of its path; OM_NO_VALUE: the arena is empty */
	om_formula_piece *piece;
	uint32_t npiece;
};

/* The alignment of the arena of box `box` of the order. */
uint64_t om_formula_align(const struct formula_search *w, uint32_t box);

/* Find `edge` and `most`, with `nprobe`, for a box of numbers, in memory of w->tmp.  False: numbers are too large. */
bool om_formula_lengths(struct formula_search *w, const struct number_box *b);

/* Add to `f` the size of box `box`: to its sum, or to `list`, which has room for it.  False: numbers are too large. */
bool om_formula_add(const struct formula_search *w, om_formula *f, om_rounded *list, uint32_t box);

/* Add a piece for a box of numbers, with these formulas of the arenas, which may be written later. */
om_formula_piece *om_formula_piece_add(struct formula_search *w, const struct number_box *b, const om_formula *arena);

/* The arenas and offsets in all of `all` as the largest of a few paths, which become the only piece.  False: more would be
 * needed. */
bool om_formula_largest(struct formula_search *w, const struct number_box *all);

#endif
