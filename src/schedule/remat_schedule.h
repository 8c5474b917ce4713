/* Inside the search for what to do twice. */
#ifndef OM_REMAT_SCHEDULE_H
#define OM_REMAT_SCHEDULE_H

#include "onnxmem/rematerialize.h"
#include "schedule/subproblem.h"

/* Where a storage is not needed: between two ops that need it, with others between them, or behind
 * the last. */
typedef struct om_gap {
	uint32_t s, gone, back;  /* back: OM_ORDER_NONE behind the last */
} om_gap;

/* A run with some storages dropped. */
typedef struct om_remat {
	const om_remat_request *w;
	const om_order_problem *q;
	om_arena *mem;
	om_lists made;           /* by op: all storages that it makes */
	om_gap *gap;             /* of all storages, in a row; those of one by time, the last behind all uses */
	uint32_t ngap;
	uint32_t *first;         /* by storage: its gaps are from here up to those of the next one */
	uint32_t *end;           /* by storage: the last op to need it */
	bool *may;               /* by storage: be made again */
	bool *drop;              /* by gap: it goes, and is made again where it is needed in the gap or
	                            at its end */

	/* The run: ops, bytes alive before each, most while it runs. */
	uint32_t *run, n;
	uint64_t *before, *during;
	uint64_t peak;
	double cost;
	bool is_bad;             /* an op would have to run again when it may not */
	uint64_t looked;         /* at ops, in all runs */
	uint64_t *seen, visits;  /* by gap: in which visit */

	bool *is_new;            /* by gap: made again in it in this run */
	uint32_t *instance;      /* by storage: the latest one */
	uint32_t *last;          /* by instance: the place in the run that needs it last */
	size_t ninstance, capinstance;
} om_remat;

om_remat *om_remat_new(const om_remat_request *w, om_arena *mem);

/* Fill in the run for `drop` as it is. */
void om_remat_run(om_remat *g);

/* Would it help to drop it in this gap?  Else it is dropped at most for the sake of others. */
bool om_remat_is_main(const om_remat *g, uint32_t gap);

/* The gap of `s` that op `i` lies in or ends, where it is the first to need `s` again; the last
 * one behind all uses; OM_ORDER_NONE: `s` is there. */
uint32_t om_remat_gap_at(const om_remat *g, uint32_t s, uint32_t i);

/* Gaps of storages that have to be made again with that of this gap, as they are gone when it is:
 * `visit` each, and the gap itself. */
void om_remat_needs(om_remat *g, uint32_t gap, void (*visit)(void *arg, uint32_t gap), void *arg);

/* The cheapest set for this budget where the storages form a chain, written to g->drop: true,
 * though none may do.  False, and nothing is changed, where they form none. */
bool om_remat_chain(om_remat *g, uint64_t budget, bool *found);

#endif
