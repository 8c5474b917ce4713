/* SPDX-License-Identifier: Apache-2.0 */
/* Analyses that make assignments; see onnxmem/assignment.h.  Those of storage require OM_HAS_SHAPES and
 * OM_HAS_CONST. */
#ifndef OM_ASSIGN_H
#define OM_ASSIGN_H

#include "onnxmem/assignment.h"

/* After a pass: drop the parts of the current assignment that p->has no longer covers.  If values or
 * ops were added, there are no decisions about them, so lifetimes and storage become invalid
 * regardless of which facts the pass keeps. */
void om_assignment_settle(om_prog *p);

/* A copy of a request with all that it points to.  Its fields that are 0 get their defaults. */
const om_plan_request *om_plan_request_copy(const om_plan_request *r, om_arena *mem);

/* The memory of the input or output `v`, as requested. */
om_io om_plan_request_io(const om_plan_request *r, const om_value *v);

/* Do two requests have all inputs and outputs in the same memory? */
bool om_plan_request_same_io(const om_plan_request *a, const om_plan_request *b);

/* The scratch that the op with this first output is planned with at least; and do two requests have the same? */
uint64_t om_plan_request_scratch(const om_plan_request *r, const char *value);
bool om_plan_request_same_scratch(const om_plan_request *a, const om_plan_request *b);

/* Such a copy for plans of `p`: its alignment is at least the size of the widest element in `p`. */
const om_plan_request *om_plan_request_for(const om_prog *p, const om_plan_request *r, om_arena *mem);

/* Make an assignment that has no more than this schedule, in the memory of the program, the current one. */
void om_assignment_schedule(om_prog *p, const om_schedule *s);

/* Before a pipeline for this request, which is copied: the current assignment becomes one for it, or
 * invalid if decisions depend on the difference. */
void om_assignment_comply(om_prog *p, const om_plan_request *r);

/* ---- Lifetimes. ---- */

/* Compute lifetimes in a schedule; every value has its own storage.  Requires OM_HAS_CONST.  The
 * schedule, the request and the facts must outlive the result. */
om_assignment *om_assign_lifetimes(const om_prog *p, const om_schedule *s, const om_plan_request *r,
	const om_op_facts *f, om_arena *mem);

/* By value id: inputs of the graph in the arena that are intact at the end of a run. */
const bool *om_kept_inputs(const om_prog *p, const om_assignment *a, om_arena *mem);

/* Cost of computing live sets. */
typedef struct om_live_counts {
	uint64_t blocks, worklist_visits; /* basic blocks; times that one was taken from the worklist */
} om_live_counts;

/* Fill in the live sets of an assignment under construction; they are allocated from `mem`. */
void om_live_sets(const om_prog *p, om_assignment *a, om_arena *mem, om_live_counts *count);

/* ---- Storage. ---- */

/* Counts of outputs that alias an input as views. */
typedef struct om_view_counts {
	uint64_t views, slices;  /* views of a whole input; of part of an input */
	uint64_t copied;         /* copies made because the bytes would be overwritten */
} om_view_counts;

/* Make outputs that consist of bytes of an input views.  Discards all storage decisions of `in`.
 * `count` may be NULL. */
om_assignment *om_assign_views(const om_prog *p, const om_assignment *in, om_arena *mem,
	om_view_counts *count);

/* Counts of results stored over a parameter. */
typedef struct om_io_counts {
	uint64_t results, bytes; /* number of results; their size */
} om_io_counts;

/* Compute results of the graph that are declared as state (om_prog.io_alias) over the parameters that they
 * replace; none if the plan must hold for every order.  `count` may be NULL. */
om_assignment *om_assign_io_declared(const om_prog *p, const om_assignment *in, om_arena *mem,
	om_io_counts *count);

/* Compute results of the graph over any input whose last use is the op that defines the result. */
om_assignment *om_assign_io_any(const om_prog *p, const om_assignment *in, om_arena *mem,
	om_io_counts *count);

/* Whether inputs of a concatenation are sub-buffers of its output: never, always, or unless the arena
 * would be larger. */
typedef enum om_subbuffers { OM_SUBBUFFERS_NO, OM_SUBBUFFERS_YES, OM_SUBBUFFERS_AUTO } om_subbuffers;

/* Compute outputs over inputs that die, and inputs of a concatenation in its output.  Earlier
 * decisions of `in` about both, and those of om_assign_loops(), are made anew.  With `reasons`, those of
 * om_assignment_overwrite() are kept.  The result is `*out`. */
om_status om_assign_inplace(om_session *s, const om_prog *p, const om_assignment *in, om_subbuffers how,
	bool reasons, om_arena *mem, const om_assignment **out);

/* Counts of loop-carried values. */
typedef struct om_loop_counts {
	uint64_t in_place;       /* carried values with one address */
	uint64_t rotating;       /* carried values that rotate */
	uint64_t invariant;      /* carried values that no iteration computes */
	uint64_t copied;         /* chains that require a copy in every iteration */
	uint64_t dynamic;        /* loop outputs whose address depends on the number of iterations */
	uint64_t slices;         /* scan slices that are read or written in place */
	uint64_t branches;       /* branch results that are computed in the output */
	uint64_t unmerged;       /* values that were given their own storage again */
	uint64_t dropped;        /* 1: every rotation took more memory than copying, which is what is done */
	uint64_t longest;        /* buffers of the longest chain: nothing changes while `period` is at least that */
} om_loop_counts;

/* The default of the pass `loops`: see om_assign_loops(). */
enum { OM_LOOP_PERIOD = 64 };

/* Make carried values of loops rotate through a few buffers, and compute results of branches in the
 * output.  `period`: the largest number of buffers in a rotation, from 1 to 64. */
const om_assignment *om_assign_loops(const om_prog *p, const om_assignment *in, uint32_t period,
	om_arena *mem, om_loop_counts *count);

/* The same, with shorter rotations or none if the arena would be larger than without them.  The result is `*out`. */
om_status om_assign_loops_fit(om_session *s, const om_prog *p, const om_assignment *in, uint32_t period,
	om_arena *mem, const om_assignment **out, om_loop_counts *count);

/* ---- Candidates. ---- */

/* The size of the arena of an assignment, to the extent computed so far. */
typedef struct om_arena_size {
	uint64_t bound, bytes;   /* lower bound of all packings; the smallest size found */
} om_arena_size;

/* A cheap first estimate. */
om_status om_assignment_size(om_session *s, const om_prog *p, const om_assignment *a, om_arena_size *size);

/* The size after as much work as om_pack() does, or as the request allows. */
om_status om_assignment_full_size(om_session *s, const om_prog *p, const om_assignment *a, uint64_t *bytes);

/* Is the arena of `a` smaller than that of `b`?  `x` and `y` are results of om_assignment_size(). If
 * these do not decide, more work is done, up to that of om_pack(), and the sizes are updated. */
om_status om_assignment_is_smaller(om_session *s, const om_prog *p, const om_assignment *a, om_arena_size *x,
	const om_assignment *b, om_arena_size *y, bool *yes);

/* The same after less work: a few times that of the estimates. */
om_status om_assignment_seems_smaller(om_session *s, const om_prog *p, const om_assignment *a, om_arena_size *x,
	const om_assignment *b, om_arena_size *y, bool *yes);

/* Run the standard pipeline on a schedule: lifetimes and views; then declared input/output aliases and
 * in-place decisions; then om_assign_loops_fit(), after which buffers are packed, so that `packed` gives the
 * arena that a plan would have.  The results are allocated from `mem`. */
om_status om_assign_schedule(om_session *s, const om_prog *p, const om_schedule *order,
	const om_plan_request *r, const om_op_facts *f, om_arena *mem, const om_assignment **views,
	const om_assignment **full, const om_assignment **packed);

/* The storage of every value of the program, by id: as om_storage() finds it for one, but in linear
 * time, because a chain of views or of values computed in place may be as long as the program. */
typedef struct om_storages {
	om_value **root;
	uint64_t *offset;
} om_storages;
om_storages om_storages_new(const om_prog *p, const om_assignment *a, om_arena *mem);

/* For the code that builds an assignment: the bytes of `v` are those of `source` from `offset` on. For
 * OM_OWN, source is NULL. */
void om_assignment_back(om_assignment *a, const om_value *v, om_store store, om_value *source,
	uint64_t offset);

#endif
