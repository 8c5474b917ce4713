/* Schedules and assignments: what analyses find out about a program.
 *
 * A schedule is an order of the ops of every block, with the steps that follow from it.  An
 * assignment says for one schedule, by value id, when each value requires its storage,
 * whose bytes these are, and where a value lies that moves with the iterations of a loop.
 * Neither changes the program, so any number of them can be compared.
 *
 * An assignment is immutable once it is made.  An analysis takes one and gives a new one,
 * from an arena of the caller, which has to live as long as the result.  What it takes
 * over unchanged it may share with the one that it was given, so that has to live as
 * long, too.  The current one of a program is om_prog.assignment.
 */
#ifndef OM_ASSIGNMENT_H
#define OM_ASSIGNMENT_H

#include "onnxmem/op_facts.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Steps of a run, both inclusive. */
typedef struct om_steps {
	uint32_t first, last;    /* the first one, and the last */
} om_steps;

/* An order of execution. */
typedef struct om_schedule {
	om_op ***ops;            /* by block id: its ops in order; NULL ends each list */
	om_steps *of_op;         /* by op id: as om_op.step and om_op.end */
	om_steps *of_block;      /* by block id: as om_block.begin and om_block.end */
	uint32_t nstep;          /* steps in all */
	uint32_t nop, nblock;    /* ids that there were */
} om_schedule;

/* The ops in the order of their blocks, with the steps of om_timeline(). */
OM_API const om_schedule *om_schedule_new(const om_prog *p, om_arena *mem);

/* The same as `s` but for block `b`, which runs its ops in the order `ops`: all of them, NULL
 * ends the list, which is not copied. */
OM_API const om_schedule *om_schedule_reorder(const om_prog *p, const om_schedule *s, const om_block *b,
	om_op **ops, om_arena *mem);

/* Whose bytes a value is. */
typedef struct om_backing {
	om_store store;          /* how it comes to them */
	om_value *source;        /* NULL exactly for OM_OWN */
	uint64_t offset;         /* bytes into the storage of source */
} om_backing;

/* What is decided about the values of a program; all arrays are by value id, if not by op id. */
struct om_assignment {
	const om_schedule *schedule;      /* that steps are of */
	const om_op_facts *facts;         /* of the program */
	om_steps *live;                   /* when each value requires its storage */
	om_backing *backing;              /* OM_OWN for all, as long as nothing is decided */
	const om_multi_view **multi_view;     /* NULL: the value stays where it is */
	uint32_t nvalue;                  /* ids that there were */
	const om_assignment *before_loops; /* the one that multi-views were added to; NULL: none were */
	/* Bit sets by value id; NULL where nobody computed them, see om_live_sets().  Basic
	 * blocks are runs of ops without bodies; an op with bodies is one by itself. */
	const uint64_t **live_out;        /* by op id: on the last op of a basic block; else NULL */
	const uint64_t **live_in;         /* by op id: on ops with bodies; else NULL */
};

/* A copy of `in` whose arrays `live`, `backing` and `multi_view` its maker may write, until it
 * hands it on. */
OM_API om_assignment *om_assignment_copy(const om_assignment *in, om_arena *mem);

/* For a maker: the bytes of `v` are those of `source` from `offset` on; OM_OWN: its own,
 * source is NULL. */
OM_API void om_assignment_back(om_assignment *a, const om_value *v, om_store store, om_value *source,
	uint64_t offset);

/* Where the bytes of `v` are: the value that owns its storage and, unless NULL, the
 * offset in it. */
OM_API om_value *om_storage(const om_assignment *a, const om_value *v, uint64_t *offset);

/* After a pass: what p->has does not vouch for any more is dropped from the current
 * assignment.  Where values or ops were added, nothing is decided about them, so lifetimes
 * and storage are not known any more, whatever the pass keeps. */
OM_API void om_assignment_settle(om_prog *p);

/* ---- Lifetimes. ---- */

/* Lifetimes in a schedule; every value has storage of its own.  Requires OM_HAS_CONST. */
OM_API om_assignment *om_assign_lifetimes(const om_prog *p, const om_schedule *s, const om_op_facts *f,
	om_arena *mem);

/* What it takes to find live sets. */
typedef struct om_live_counts {
	uint64_t blocks, visits; /* basic blocks; how often one was looked at */
} om_live_counts;

/* Fill in the live sets of an assignment that is being made; they come from `mem`.  OM_MEMORY
 * where they would take more than half a gigabyte. */
OM_API om_status om_live_sets(om_session *s, const om_prog *p, om_assignment *a, om_arena *mem,
	om_live_counts *count);

/* Which values are live before and after `op`: sorted by id, from `mem`; their number is
 * returned.  For an op with bodies, after means after the whole op.  Requires OM_HAS_LIVE. */
OM_API size_t om_live_in(const om_prog *p, const om_op *op, om_arena *mem, const om_value ***out);
OM_API size_t om_live_out(const om_prog *p, const om_op *op, om_arena *mem, const om_value ***out);

/* ---- Storage.  All of these require OM_HAS_SHAPES and OM_HAS_CONST. ---- */

/* Outputs that hold the bytes of an input. */
typedef struct om_view_counts {
	uint64_t whole, parts;   /* views of a whole input; of a part of one */
	uint64_t copied;         /* copies, because bytes would be overwritten */
} om_view_counts;

/* Outputs that hold the bytes of an input become views.  Anything that `in` says of storage
 * is forgotten.  `count` may be NULL. */
OM_API om_assignment *om_assign_views(const om_prog *p, const om_assignment *in, om_arena *mem,
	om_view_counts *count);

/* Results in the memory of a parameter. */
typedef struct om_io_counts {
	uint64_t results, bytes; /* how many; what they take */
} om_io_counts;

/* Results of the graph that the program hands on to its next run (om_prog.tie) are computed over
 * the parameters that they replace; none where the plan has to hold for every order. `count` may
 * be NULL. */
OM_API om_assignment *om_assign_io_declared(const om_prog *p, const om_assignment *in, om_arena *mem,
	om_io_counts *count);

/* Results of the graph are computed over any input whose last use they are. */
OM_API om_assignment *om_assign_io_any(const om_prog *p, const om_assignment *in, om_arena *mem,
	om_io_counts *count);

/* Inputs of a concatenation as sub-buffers of its output: never, always, or unless the arena
 * would be larger. */
typedef enum om_subbuffers { OM_SUBBUFFERS_NO, OM_SUBBUFFERS_YES, OM_SUBBUFFERS_TRY } om_subbuffers;

/* Outputs are computed over inputs that die, inputs of a concatenation in its output.  What `in`
 * says of either is decided anew, as what om_assign_loops() found.  The result is `*out`. */
OM_API om_status om_assign_inplace(om_session *s, const om_prog *p, const om_assignment *in, om_subbuffers how,
	om_arena *mem, const om_assignment **out);

/* What is carried by loops. */
typedef struct om_loop_counts {
	uint64_t together;       /* carried values that stay in one place */
	uint64_t turning;        /* carried values that take turns */
	uint64_t through;        /* carried values that are never computed */
	uint64_t copied;         /* chains into which a value is copied in every iteration */
	uint64_t found;          /* outputs of loops whose place depends on the number of iterations */
	uint64_t slices;         /* slices that are read or written in place */
	uint64_t branches;       /* results of branches that are computed in the output */
	uint64_t apart;          /* values that were given storage of their own again */
} om_loop_counts;

/* Carried values of loops rotate through a few buffers, results of branches are computed in
 * the output.  `period`: most buffers that take part in a rotation, from 1 to 64. */
OM_API const om_assignment *om_assign_loops(const om_prog *p, const om_assignment *in, uint32_t period,
	om_arena *mem, om_loop_counts *count);

/* ---- Candidates. ---- */

/* How large the arena of an assignment is, as far as that was looked at. */
typedef struct om_arena_size {
	uint64_t bound, bytes;   /* no packing is smaller; the smallest that was found */
} om_arena_size;

/* A first look, which is cheap. */
OM_API om_status om_assignment_size(om_session *s, const om_prog *p, const om_assignment *a, om_arena_size *size);

/* Is the arena of `a` smaller than that of `b`?  `x` and `y` are what om_assignment_size() said of
 * them; where that does not decide, more work is done, up to that of om_pack(), and the sizes
 * are updated. */
OM_API om_status om_assignment_is_smaller(om_session *s, const om_prog *p, const om_assignment *a, om_arena_size *x,
	const om_assignment *b, om_arena_size *y, bool *yes);

/* What the usual pipeline makes of a schedule: lifetimes and views, then declared ties and what is
 * computed in place.  Both come from `mem`. */
OM_API om_status om_assign_schedule(om_session *s, const om_prog *p, const om_schedule *order,
	const om_op_facts *f, om_arena *mem, const om_assignment **views, const om_assignment **full);

#ifdef __cplusplus
}
#endif

#endif
