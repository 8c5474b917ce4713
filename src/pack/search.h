/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the complete search. */
#ifndef OM_SEARCH_H
#define OM_SEARCH_H

#include "pack/packer.h"

/* Sections [first, last]. */
typedef struct om_section_range {
	uint32_t first, last;
} om_section_range;

/* A buffer in the tables of the search. */
typedef struct om_search_item {
	uint64_t bytes;          /* rounded up to the common alignment of all offsets */
	uint64_t raw;            /* not rounded */
	uint64_t align;
	uint64_t steps;          /* the length of its lifetimes */
	const om_section_range *range;   /* the sections it is live in, ascending */
	uint32_t nrange;
	uint32_t *adj;     /* the items that are live at the same time */
	uint32_t nadj;
	uint32_t symmetric;      /* an interchangeable item that must be below it, or OM_NO_ITEM */
	uint32_t priority;       /* branching order: the lowest is tried first */
	uint64_t seed;           /* for hashes */
	bool is_fixed;           /* at offset `fixed` */
	uint64_t fixed;
} om_search_item;

#define OM_NO_ITEM UINT32_MAX

/* A component as tables.  Sections are the maximal sets of buffers that are live
 * at one step: the set of any other step is a subset of one of them. */
typedef struct om_search_tables {
	om_search_item *item;    /* numbered as component->item */
	uint32_t n;
	uint32_t nsection;
	uint64_t *slack;         /* by section: the most bytes that rounding adds to an item */
	uint64_t granule;        /* every height is a multiple */
	bool has_fixed;
} om_search_tables;

/* False if the tables would be too large, or a buffer is partially live. */
bool om_search_tables_init(om_search_tables *t, const om_component *component, om_arena *mem);

/* Which item is branched on: the first one of the section that ... */
typedef enum om_branch_rule {
	OM_BRANCH_LOWEST,        /* (of no section: the lowest item of all) */
	OM_BRANCH_FEWEST,        /* has the fewest items that may be its lowest */
	OM_BRANCH_TIGHTEST,      /* has the least free space under the goal */
	OM_BRANCH_FAILING,       /* has few such items and has failed often */
	OM_BRANCH_TIGHT_FAILING, /* combines the three */
} om_branch_rule;

enum { OM_NPRIORITY = 6 };

/* Set the priorities of the items by order number `k`, randomized by `noise` if
 * that is not 0. */
void om_search_tables_prioritize(om_search_tables *t, uint32_t k, uint64_t noise, om_arena *mem);

typedef enum om_search_outcome {
	OM_SEARCH_INFEASIBLE, OM_SEARCH_FOUND, OM_SEARCH_LIMIT
} om_search_outcome;

typedef struct om_branch_bound om_branch_bound;

/* `nodes`: about the number of nodes of all runs, for the size of the hash table. */
om_branch_bound *om_branch_bound_new(const om_search_tables *t, uint64_t nodes, om_arena *mem);
/* Search for a packing not above `goal` within `*nodes` nodes; the unused ones are
 * returned there.  Stops at `deadline`, a time of om_now_ms(), if that is not 0. */
om_search_outcome om_branch_bound_run(om_branch_bound *w, om_branch_rule rule, uint64_t goal, uint64_t *nodes,
	double deadline);
/* Reset the failure counts of the sections; the table of failed states is kept. */
void om_branch_bound_reset_failures(om_branch_bound *w);
uint64_t om_branch_bound_offset(const om_branch_bound *w, uint32_t item);

#endif
