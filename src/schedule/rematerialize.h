/* SPDX-License-Identifier: Apache-2.0 */
/* Rematerialization: recompute storages to lower the peak.
 *
 * A storage without use for many ops may be dropped after a use and recomputed
 * before the next one, by running its op once more, in each gap between uses.  The
 * storages which that op uses, if they are dead by then, are kept or recomputed in
 * turn.  Ops, storages and in-place pairs are those of schedule/scheduler.h, in
 * their original order.  Like the packer, this is independent of operators and
 * tensors, and can be used alone.
 */
#ifndef OM_REMATERIALIZE_H
#define OM_REMATERIALIZE_H

#include "schedule/scheduler.h"
#include "onnxmem/status.h"

/* The candidates for recomputation, and the limits of the search. */
typedef struct om_remat_request {
	const om_schedule_problem *q; /* ops and storages */
	const double *cost;      /* by op: the cost of running it once more */
	const uint32_t *until;   /* by op: it may run again before that op; 0: never; OM_SCHEDULE_NONE: always */
	uint64_t budget;         /* bytes: a peak that need not be lowered */
	double most;             /* limit of the total cost of recomputation */
	uint64_t effort;         /* ops visited before the search returns its best result */
} om_remat_request;

/* Ops in the order in which they run.  An op that occurs again makes new instances
 * of its storages, which the ops after it use. */
typedef struct om_remat_result {
	uint32_t *run;           /* allocated from the arena of the call */
	uint32_t n;              /* length: each op once, and those that run again */
	uint64_t given, peak;    /* bytes: without recomputation, and of this order */
	double cost;             /* of all recomputation */
	/* for a chain: no set of storages, each recomputed at most once, costs less at this peak */
	bool is_exact;
} om_remat_result;

/* Find the cheapest recomputation with a peak of at most `budget`; if there is none
 * within the cost limit, the lowest peak found.  Deterministic: depends on the
 * problem alone.  OM_INVALID as for om_schedule_solve(). */
om_status om_remat_solve(om_session *s, const om_remat_request *w, om_arena *mem,
	om_remat_result *r);

/* The peak, in bytes, if exactly these storages are dropped in their longest gap,
 * and the cost; UINT64_MAX if an op would have to run again after its limit
 * `until`. For tests. */
uint64_t om_remat_peak(const om_remat_request *w, const bool *dropped, double *cost);

#endif
