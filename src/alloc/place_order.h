/* SPDX-License-Identifier: Apache-2.0 */
/* What keeps the values of a plan apart: which storage lies above which other.
 *
 * A plan for the largest sizes has two values in different bytes where both are live.  Of such a pair one is above
 * the other.  If that one stays above, whatever the sizes are, no two of them ever overlap: every assignment of offsets
 * with offset(above) >= offset(below) + size(below) for all these pairs is a plan.  The least such offsets are the
 * longest paths.  om_plan_lower_offsets() computes them for numbers, formulas.c for polynomials. */
#ifndef OM_PLACE_ORDER_H
#define OM_PLACE_ORDER_H

#include "onnxmem/plan.h"

/* Bytes that are in use in some steps, from the start of a piece of storage on: of a value, or of scratch. */
typedef struct om_place_box {
	uint32_t storage;        /* index */
	const om_value *value;   /* NULL: the scratch of an op */
	bool is_own;             /* the value has storage of its own */
	uint64_t bytes;          /* of scratch, in the plan */
	om_live_interval live;
} om_place_box;

/* Storage `above` starts after the end of box `box`, which lies in other storage. */
typedef struct om_place_edge {
	uint32_t box, above;
} om_place_edge;

typedef struct om_place_order {
	om_place_box *box;
	uint32_t nbox;
	uint32_t *arena;         /* by storage */
	uint64_t *offset;        /* by storage, in the plan */
	uint32_t nstorage;       /* storage is numbered by ascending offset, so that edges lead to larger numbers */
	om_place_edge *edge;     /* grouped by `above`, ascending */
	size_t nedge;
	uint32_t *storage_of_value;  /* by value id, and by index of scratch; OM_NO_VALUE: none */
	uint32_t *storage_of_scratch;
	uint32_t *storage_of_region; /* of all multi-views, in their order: first those of `off`, then those of `first` */
} om_place_order;

/* The order of the placements of a plan, whose sizes are those of `p`; NULL if there is none, because values are inside
 * others at offsets that may depend on sizes, or overlap while both are live.  Allocated from `mem`. */
om_place_order *om_place_order_new(const om_prog *p, const om_plan *plan, om_arena *mem);

/* The bytes of a box for the shapes of the program, rounded up to the alignment of its arena. */
uint64_t om_place_box_bytes(const om_place_order *o, const om_plan *plan, const om_place_box *x);

/* The least offsets, by storage, and the arenas that they take, for boxes of `bytes` bytes, which are multiples of the
 * alignment.  Both are 0 before. */
void om_place_offsets(const om_place_order *o, const uint64_t *bytes, uint64_t *offset, uint64_t *height);

#endif
