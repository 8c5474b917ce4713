/* What the files of the complete search share. */
#ifndef OM_SEARCH_H
#define OM_SEARCH_H

#include "pack/packer.h"

/* Sections [first, last]. */
typedef struct om_offset_reach {
	uint32_t first, last;
} om_offset_reach;

/* A buffer as the search sees it. */
typedef struct om_thing {
	uint64_t bytes;          /* rounded up to what all offsets are multiples of */
	uint64_t raw;            /* not rounded */
	uint64_t align;
	uint64_t steps;          /* how long it is alive */
	const om_offset_reach *reach;   /* the sections it is alive in, ascending */
	uint32_t nreach;
	const uint32_t *near;    /* the things alive together with it */
	uint32_t nnear;
	uint32_t twin;           /* one just like it that lies lower, or OM_NO_THING */
	uint32_t wish;           /* the lower, the sooner it is tried */
	uint64_t seed;           /* for hashes */
	bool is_fixed;           /* at offset `fixed` */
	uint64_t fixed;
} om_thing;

enum { OM_NO_THING = UINT32_MAX };

/* A part in tables.  Sections are the largest sets of buffers alive at once:
 * all others are within one of them. */
typedef struct om_tables {
	om_thing *thing;         /* numbered as part->item */
	uint32_t n;
	uint32_t nsection;
	uint64_t *spare;         /* by section: what rounding may add to the topmost */
	uint64_t unit;           /* every height is a multiple */
	bool has_fixed;
} om_tables;

/* False where the tables would be too large, or a buffer is shaped. */
bool om_tables_fill(om_tables *t, const om_component *part, om_arena *mem);

/* Which thing is looked at next: one of the section that ... */
typedef enum om_rule {
	OM_LOWEST,               /* (no section: the lowest thing of all) */
	OM_FEWEST,               /* has the fewest things that may be its lowest */
	OM_TIGHTEST,             /* has little room besides */
	OM_FAILING,              /* has few such things and has failed often */
	OM_TIGHT_FAILING,        /* all of that */
} om_rule;

enum { OM_NWISH = 6 };

/* Fill om_thing.wish: from order number `k`, blurred where `noise` is not 0. */
void om_tables_wish(om_tables *t, uint32_t k, uint64_t noise, om_arena *mem);

typedef enum om_outcome { OM_HOPELESS, OM_PACKED, OM_SPENT } om_outcome;

typedef struct om_walk om_walk;

/* `nodes`: not more than these in all, about. */
om_walk *om_walk_new(const om_tables *t, uint64_t nodes, om_arena *mem);
/* Look for a packing not above `goal` with at most `nodes` nodes, of which what
 * is left is given back; not after `until`, a time of om_now_ms(), if that is not 0. */
om_outcome om_walk_seek(om_walk *w, om_rule rule, uint64_t goal, uint64_t *nodes, double until);
/* Forget where failures were; failed states are kept. */
void om_walk_forget(om_walk *w);
uint64_t om_walk_offset(const om_walk *w, uint32_t thing);

#endif
