/* Schedules and assignments: results of analyses of a program.
 *
 * A schedule is an order of the ops of every block, with the steps that follow from it.  An assignment
 * holds the decisions for one schedule, by value id: the lifetime of each value, its backing storage,
 * and its addresses if they change with the iterations of a loop.  Neither changes the program, so any
 * number of them can be compared.
 *
 * An assignment is immutable once it is complete.  An analysis takes one and returns a new one,
 * allocated from an arena of the caller, which must outlive the result.  Unchanged parts may be shared
 * with the input, which must outlive the result as well.  The current assignment of a program is
 * om_prog.assignment.
 */
#ifndef OM_ASSIGNMENT_H
#define OM_ASSIGNMENT_H

#include "onnxmem/op_facts.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A range of steps of a run, both ends inclusive. */
typedef struct om_steps {
	uint32_t first, last;    /* inclusive */
} om_steps;

/* An order of execution. */
typedef struct om_schedule {
	om_op ***ops;            /* by block id: its ops in order, NULL-terminated */
	om_steps *of_op;         /* by op id: as om_op.step and om_op.end */
	om_steps *of_block;      /* by block id: as om_block.begin and om_block.end */
	uint32_t nstep;          /* steps in all */
	uint32_t nop, nblock;    /* ids that existed when it was made */
} om_schedule;

/* The storage of a value. */
typedef struct om_backing {
	om_store store;          /* kind of backing */
	om_value *source;        /* NULL if and only if `store` is OM_OWN */
	uint64_t offset;         /* bytes from the start of `source` */
} om_backing;

/* Decisions about the values of a program; arrays are indexed by value id unless noted. */
struct om_assignment {
	const om_schedule *schedule;      /* the schedule that steps refer to */
	const om_op_facts *facts;         /* of the program */
	om_steps *live;                   /* lifetime of each value */
	om_backing *backing;              /* OM_OWN for all values until decided */
	const om_multi_view **multi_view;     /* NULL: the value has a fixed address */
	uint32_t nvalue;                  /* ids that existed when it was made */
	const om_assignment *before_loops; /* the assignment before multi-views were added; NULL: none were */
	/* Bit sets by value id; NULL unless computed, see om_live_sets().  Basic blocks are runs of
	 * ops without bodies; an op with bodies is a basic block of its own. */
	const uint64_t **live_out;        /* by op id: set for the last op of a basic block; else NULL */
	const uint64_t **live_in;         /* by op id: set for ops with bodies; else NULL */
};

/* A copy of `in` whose arrays `live`, `backing` and `multi_view` the caller may modify until it
 * publishes the copy. */
OM_API om_assignment *om_assignment_copy(const om_assignment *in, om_arena *mem);

/* For the code that builds an assignment: the bytes of `v` are those of `source` from `offset` on. For
 * OM_OWN, source is NULL. */
OM_API void om_assignment_back(om_assignment *a, const om_value *v, om_store store, om_value *source,
	uint64_t offset);

/* The value that owns the storage of `v` and, unless `offset` is NULL, the offset of `v` in it. */
OM_API om_value *om_storage(const om_assignment *a, const om_value *v, uint64_t *offset);

/* After a pass: drop the parts of the current assignment that p->has no longer covers.  If values or
 * ops were added, there are no decisions about them, so lifetimes and storage become invalid
 * regardless of which facts the pass keeps. */
OM_API void om_assignment_settle(om_prog *p);

/* ---- Lifetimes. ---- */

/* Compute lifetimes in a schedule; every value has its own storage.  Requires OM_HAS_CONST. */
OM_API om_assignment *om_assign_lifetimes(const om_prog *p, const om_schedule *s, const om_op_facts *f,
	om_arena *mem);

/* Cost of computing live sets. */
typedef struct om_live_counts {
	uint64_t blocks, visits; /* basic blocks; visits of them in all */
} om_live_counts;

/* Fill in the live sets of an assignment under construction; they are allocated from `mem`. OM_MEMORY
 * if they would take more than half a gigabyte. */
OM_API om_status om_live_sets(om_session *s, const om_prog *p, om_assignment *a, om_arena *mem,
	om_live_counts *count);

/* The values that are live before and after `op`: sorted by id, allocated from `mem`; returns their
 * number.  For an op with bodies, "after" means after the whole op.  Requires OM_HAS_LIVE. */
OM_API size_t om_live_in(const om_prog *p, const om_op *op, om_arena *mem, const om_value ***out);
OM_API size_t om_live_out(const om_prog *p, const om_op *op, om_arena *mem, const om_value ***out);

/* ---- Storage.  All of these require OM_HAS_SHAPES and OM_HAS_CONST. ---- */

/* Counts of outputs that alias an input as views. */
typedef struct om_view_counts {
	uint64_t whole, parts;   /* views of a whole input; of part of an input */
	uint64_t copied;         /* copies made because the bytes would be overwritten */
} om_view_counts;

/* Make outputs that consist of bytes of an input views.  Discards all storage decisions of `in`.
 * `count` may be NULL. */
OM_API om_assignment *om_assign_views(const om_prog *p, const om_assignment *in, om_arena *mem,
	om_view_counts *count);

/* Counts of results stored over a parameter. */
typedef struct om_io_counts {
	uint64_t results, bytes; /* number of results; their size */
} om_io_counts;

/* Compute results of the graph that are declared as state (om_prog.tie) over the parameters that they
 * replace; none if the plan must hold for every order.  `count` may be NULL. */
OM_API om_assignment *om_assign_io_declared(const om_prog *p, const om_assignment *in, om_arena *mem,
	om_io_counts *count);

/* Compute results of the graph over any input whose last use is the op that defines the result. */
OM_API om_assignment *om_assign_io_any(const om_prog *p, const om_assignment *in, om_arena *mem,
	om_io_counts *count);

/* Whether inputs of a concatenation are sub-buffers of its output: never, always, or unless the arena
 * would be larger. */
typedef enum om_subbuffers { OM_SUBBUFFERS_NO, OM_SUBBUFFERS_YES, OM_SUBBUFFERS_TRY } om_subbuffers;

/* Compute outputs over inputs that die, and inputs of a concatenation in its output.  Earlier
 * decisions of `in` about both, and those of om_assign_loops(), are made anew.  The result is `*out`. */
OM_API om_status om_assign_inplace(om_session *s, const om_prog *p, const om_assignment *in, om_subbuffers how,
	om_arena *mem, const om_assignment **out);

/* Counts of loop-carried values. */
typedef struct om_loop_counts {
	uint64_t together;       /* carried values with one address */
	uint64_t turning;        /* carried values that rotate */
	uint64_t through;        /* carried values that only pass through */
	uint64_t copied;         /* chains that require a copy in every iteration */
	uint64_t found;          /* loop outputs whose address depends on the number of iterations */
	uint64_t slices;         /* scan slices that are read or written in place */
	uint64_t branches;       /* branch results that are computed in the output */
	uint64_t apart;          /* values that were given their own storage again */
} om_loop_counts;

/* Make carried values of loops rotate through a few buffers, and compute results of branches in the
 * output.  `period`: the largest number of buffers in a rotation, from 1 to 64. */
OM_API const om_assignment *om_assign_loops(const om_prog *p, const om_assignment *in, uint32_t period,
	om_arena *mem, om_loop_counts *count);

/* ---- Candidates. ---- */

/* The size of the arena of an assignment, to the extent computed so far. */
typedef struct om_arena_size {
	uint64_t bound, bytes;   /* lower bound of all packings; the smallest size found */
} om_arena_size;

/* A cheap first estimate. */
OM_API om_status om_assignment_size(om_session *s, const om_prog *p, const om_assignment *a, om_arena_size *size);

/* Is the arena of `a` smaller than that of `b`?  `x` and `y` are results of om_assignment_size(). If
 * these do not decide, more work is done, up to that of om_pack(), and the sizes are updated. */
OM_API om_status om_assignment_is_smaller(om_session *s, const om_prog *p, const om_assignment *a, om_arena_size *x,
	const om_assignment *b, om_arena_size *y, bool *yes);

/* Run the standard pipeline on a schedule: lifetimes and views, then declared input/output aliases and
 * in-place decisions.  Both results are allocated from `mem`. */
OM_API om_status om_assign_schedule(om_session *s, const om_prog *p, const om_schedule *order,
	const om_op_facts *f, om_arena *mem, const om_assignment **views, const om_assignment **full);

#ifdef __cplusplus
}
#endif

#endif
