/* Inside the search for what to do twice. */
#ifndef OM_AGAIN_H
#define OM_AGAIN_H

#include "onnxmem/recompute.h"
#include "order/segment.h"

/* A run with some storages dropped. */
typedef struct om_again {
	const om_recompute_want *w;
	const om_order_problem *q;
	om_arena *mem;
	om_lists made;           /* by op: all storages that it makes */
	uint32_t *gone, *back;   /* by storage: ops between which it is not needed for longest; without
	                            such a gap, the last to need it, and OM_ORDER_NONE */
	uint32_t *end;           /* the last op to need it */
	bool *may;               /* be made again */
	bool *drop;              /* is, where it is needed behind `gone` */

	/* The run: ops, bytes alive before each, most while it runs. */
	uint32_t *run, n;
	uint64_t *before, *during;
	uint64_t peak;
	double cost;
	bool is_bad;             /* an op would have to run again when it may not */
	uint64_t looked;         /* at ops, in all runs */
	uint64_t *seen, visits;  /* by storage: in which visit */

	bool *is_new;            /* by storage: made again in this run */
	uint32_t *instance;      /* by storage: the latest one */
	uint32_t *last;          /* by instance: the place in the run that needs it last */
	size_t ninstance, capinstance;
} om_again;

om_again *om_again_new(const om_recompute_want *w, om_arena *mem);

/* Fill in the run for `drop` as it is. */
void om_again_run(om_again *g);

/* Would it help to drop it?  Else it is dropped at most for the sake of others. */
bool om_again_is_main(const om_again *g, uint32_t s);

/* Storages that have to be made again with `s`, as they are gone when it is: `visit` each,
 * and `s` itself. */
void om_again_needs(om_again *g, uint32_t s, void (*visit)(void *arg, uint32_t s), void *arg);

/* The cheapest set for this budget where the storages form a chain, written to g->drop: true,
 * though none may do.  False, and nothing is changed, where they form none. */
bool om_again_chain(om_again *g, uint64_t budget, bool *found);

#endif
