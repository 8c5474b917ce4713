/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the rematerialization search. */
#ifndef OM_REMAT_SCHEDULE_H
#define OM_REMAT_SCHEDULE_H

#include "schedule/rematerialize.h"
#include "schedule/subproblem.h"

/* An interval in which a storage has no use: between two ops that use it, with
 * others between them, or after the last. */
typedef struct om_remat_gap {
	uint32_t s, gone, back;  /* back: OM_SCHEDULE_NONE after the last use */
} om_remat_gap;

/* A schedule with some storages dropped. */
typedef struct om_remat {
	const om_remat_request *w;
	const om_schedule_problem *q;
	om_arena *mem;
	om_lists made;           /* by op: all storages that it makes */
	om_remat_gap *gap;             /* by storage, then by time; the one after the last use comes last */
	uint32_t ngap;
	uint32_t *first;         /* by storage: the index of its first gap */
	uint32_t *end;           /* by storage: the last op that uses it */
	bool *may;               /* by storage: it may be recomputed */
	bool *drop;              /* by gap: dropped, and recomputed if it is used in the gap or at its end */

	/* The schedule: ops, bytes live before each, peak while it runs. */
	uint32_t *run, n;
	uint64_t *before, *during;
	uint64_t peak;
	double cost;
	bool is_bad;             /* an op would have to run again after its limit */
	uint64_t looked;         /* ops visited, in all evaluations */
	uint64_t *seen, visits;  /* by gap: the last visit */

	bool *is_new;            /* by gap: recomputed in it in this schedule */
	uint32_t *instance;      /* by storage: its latest instance */
	uint32_t *last;          /* by instance: the position of its last use */
	size_t ninstance, capinstance;
} om_remat;

om_remat *om_remat_new(const om_remat_request *w, om_arena *mem);

/* Evaluate `drop`: compute the schedule, its peak and its cost. */
void om_remat_run(om_remat *g);

/* May the search drop it in this gap?  Other gaps are dropped only if a dropped
 * storage depends on them. */
bool om_remat_is_candidate(const om_remat *g, uint32_t gap);

/* The gap of `s` that contains op `i` or ends at it; the one after the last use is
 * the last; OM_SCHEDULE_NONE: `s` is live at `i`. */
uint32_t om_remat_gap_at(const om_remat *g, uint32_t s, uint32_t i);

/* Call `visit` for this gap, and for the gaps of all storages that have to be
 * recomputed for it because they are dead at its end. */
void om_remat_for_each_dependence(om_remat *g, uint32_t gap, void (*visit)(void *arg, uint32_t gap),
	void *arg);

/* If the storages form a chain, write the cheapest set for this budget to g->drop,
 * `*found` false if there is none, and return true.  Otherwise return false and
 * change nothing. */
bool om_remat_chain(om_remat *g, uint64_t budget, bool *found);

#endif
