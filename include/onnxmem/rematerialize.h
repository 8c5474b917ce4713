/* Doing things twice to keep less alive.
 *
 * A storage that nobody needs for long may be dropped after a use and made again before
 * the next one, by running its op once more, in each gap between uses; what that op needs and is gone by
 * then is kept, or made again in turn.  Ops, storages and what may be computed over what are those of
 * <onnxmem/schedule.h>, in the order that they have.  As the packer, this knows no
 * operator and no tensor, and is usable alone.
 */
#ifndef OM_REMATERIALIZE_H
#define OM_REMATERIALIZE_H

#include "onnxmem/schedule.h"
#include "onnxmem/status.h"

/* What may be done, and how far to go. */
typedef struct om_remat_request {
	const om_order_problem *q; /* ops and storages */
	const double *cost;      /* by op: of running it once more */
	const uint32_t *until;   /* by op: it may run again before that op; 0: never;
	                            OM_ORDER_NONE: at any time */
	uint64_t budget;         /* bytes: no need to go below */
	double most;             /* cost of all that is done again */
	uint64_t effort;         /* ops looked at, before good is good enough */
} om_remat_request;

/* Ops in the order in which they run.  One that occurs again makes its storages anew,
 * and whoever comes after it takes the new ones. */
typedef struct om_remat_result {
	uint32_t *run;           /* from the arena that was given */
	uint32_t n;              /* how many: each op once, and those that run again */
	uint64_t given, peak;    /* bytes: when nothing is done again, and in this order */
	double cost;             /* of all that is done again */
	bool is_exact;           /* for a chain: no set of storages, each made again at most once,
	                            costs less at this peak */
} om_remat_result;

/* The cheapest way that is found to a peak of `budget`; where that cannot be had for `most`,
 * or at all, the lowest peak.  Deterministic: depends on the problem alone.  Refuses with
 * OM_INVALID what om_order_solve() refuses. */
OM_API om_status om_remat_solve(om_session *s, const om_remat_request *w, om_arena *mem,
	om_remat_result *r);

/* The peak when exactly these storages are dropped where they are not needed for longest,
 * and what it costs; UINT64_MAX where an op may not run again when it has to.  For tests. */
OM_API uint64_t om_remat_peak(const om_remat_request *w, const bool *dropped, double *cost);

#endif
