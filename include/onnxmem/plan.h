/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: the placement of every value of a program.
 *
 * om_buffers_new() makes buffers from a program with decided storage, a packer assigns offsets,
 * om_plan_new() makes the plan, and om_plan_verify() checks it.  The executor runs verified plans.
 */
#ifndef OM_PLAN_H
#define OM_PLAN_H

#include "onnxmem/assignment.h"
#include "onnxmem/pack.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The memory that a value is stored in. */
typedef enum om_location {
	OM_UNUSED,      /* takes part in no run: dead, or an output of a folded op */
	OM_IN_ARENA,
	OM_EXTERNAL,     /* caller-owned: graph inputs and outputs */
	OM_WEIGHT,       /* a constant */
	OM_UNPLANNED,    /* allocated at run time: size not known before */
} om_location;

/* Sentinel: not relative to a value. */
#define OM_NO_VALUE UINT32_MAX

/* The address of some bytes: `offset` bytes into an arena or, unless `base` is OM_NO_VALUE, into the
 * location of the value `base` when the loop starts.  A base is defined outside the body: it may be a
 * constant, be in the caller's memory, or move with the iterations of an outer loop. */
typedef struct om_region {
	uint32_t base;           /* id */
	uint32_t arena;          /* index of the arena; valid if there is no base */
	uint64_t offset;         /* bytes */
} om_region;

/* Addresses of a value that moves with the iterations of a Loop or Scan.  Iteration `i`, from 0, uses
 * first[i] if i < nprologue, else off[i % period], plus i * stride bytes.
 *
 * The value is a value of the body: a parameter, or an output of an op.  Or it is a carried output of
 * the loop itself, and `i` is the number of iterations that ran: the address is the one that the
 * parameter of that iteration would have.  A value whose alias chain leads to such a value moves with
 * it; the first value on the chain that has a multi-view determines the address.  The placement of
 * such a value is reserved for its whole lifetime, for every value rotating through it. */
typedef struct om_plan_multi_view {
	uint32_t value;          /* id */
	bool is_output;          /* a carried output of the loop; false: a value of its body */
	uint32_t period;         /* at least 1 */
	uint32_t nprologue;         /* 0: it rotates from the start */
	const om_region *off;    /* [period] */
	const om_region *first;  /* [nprologue] */
	int64_t stride;          /* bytes per iteration for slices of a scan; else 0 */
} om_plan_multi_view;

/* The placement and the lifetime of a value. */
typedef struct om_placement {
	om_location where;          /* arena and offset are valid for OM_IN_ARENA */
	uint32_t arena;          /* index of the arena */
	uint64_t offset;         /* bytes */
	uint64_t bytes;          /* size: rounded up to the alignment for a value with its own storage,
				    exact for a value inside another's */
	om_live_interval live;        /* steps of om_timeline() */
} om_placement;

/* The kinds of om_store, and donations, which no in-tree pass makes.  In files, a sub-buffer is a view
 * of a value that is computed later.  An output in the memory of an input is OM_ALIAS_IO if it replaces the input in the
 * next run (om_prog.io_alias), else OM_ALIAS_CONSUME: the next run needs the input anew. */
typedef enum om_alias_kind {
	OM_ALIAS_VIEW, OM_ALIAS_INPLACE, OM_ALIAS_DONATE, OM_ALIAS_IO, OM_ALIAS_SUBBUFFER, OM_ALIAS_CONSUME,
} om_alias_kind;

/* A value in the storage of another. */
typedef struct om_alias {
	om_alias_kind kind;      /* kind of sharing */
	uint32_t value, source;  /* ids */
	uint64_t offset;         /* bytes into source */
} om_alias;

/* Is it an output of the graph in the memory of an input, which a run overwrites: OM_ALIAS_IO or OM_ALIAS_CONSUME? */
OM_API bool om_alias_is_io(const om_alias *a);

/* The workspace of a kernel. */
typedef struct om_scratch {
	uint32_t op;             /* id */
	uint32_t arena;          /* index of the arena */
	uint64_t offset, bytes;  /* in the arena */
} om_scratch;

/* A value without a placement, and the reason. */
typedef struct om_unplanned {
	uint32_t value;          /* id */
	const char *why;         /* a phrase for reports */
} om_unplanned;

/* A buffer that is live at the peak. */
typedef struct om_peak {
	const char *name;        /* name of the buffer */
	uint64_t bytes;          /* size of the buffer */
} om_peak;

/* An arena: its size, and how close that is to optimal. */
typedef struct om_plan_arena {
	const char *name, *device;       /* as requested; "cpu" */
	uint64_t bytes, align, limit;    /* limit 0: none */
	uint64_t naive;                  /* total if every value had its own storage, rounded */
	uint64_t lower_bound;            /* bytes: no packing of these buffers is smaller */
	uint32_t bound_step;             /* a step at which live bytes equal the bound */
	uint64_t order_bound;            /* bytes: no plan for this order with these values in its only arena
					    is smaller, whatever lifetimes, views, sub-buffers and in-place
					    choices it has; 0: not known */
	bool is_limited;                 /* a search of the packing ended at its limit */
	om_pack_status status;           /* is `bytes` proven to be minimal for these buffers? */
} om_plan_arena;

/* The sizes of a dim that a plan serves. */
typedef struct om_dim_range {
	const char *symbol;      /* of the program, bound to `high` */
	int64_t low, high;       /* inclusive */
	int64_t step;            /* of a model that is possible at multiples only: the sizes are low, low + step, ..., high; 0: as 1 */
} om_dim_range;

/* Is `n` one of the sizes? */
OM_API bool om_dim_range_has(const om_dim_range *r, int64_t n);

/* The distance of the sizes, at least 1. */
OM_API int64_t om_dim_range_step(const om_dim_range *r);

/* The sizes as text, "320 to 1280 in steps of 32". */
OM_API const char *om_dim_range_text(om_arena *mem, const om_dim_range *r);

/* A plan: the placement of every value.  It belongs to the program that it was made for. */
struct om_plan {
	om_arena *mem;           /* the program's arena: all parts are allocated from it */
	const char *strategy;    /* name of the packing strategy */
	bool parallel_safe;         /* valid for every order that respects data dependences or, with `streams`, that
				       they permit; the steps of placements are those of the file's order */
	const om_schedule *schedule; /* the order that it was made for: that of the program */
	om_target target;        /* the consumer that it was made for, as the following: */
	uint32_t threads;        /* workers that the scratch is for */
	bool precise;            /* for a precise run */
	uint64_t align;          /* bytes: alignment of all placements, and of their sizes */
	om_plan_arena *arena;    /* fastest first */
	const om_dim_range *range; /* of symbols: the plan is for the largest sizes, and its arenas and offsets serve
				    smaller ones too */
	om_placement *place;         /* by value id */
	om_alias *alias;         /* at most one entry for each value */
	om_plan_multi_view *view;      /* at most one entry for each value, in order of value ids */
	om_scratch *scratch;     /* at most one entry for each op */
	om_unplanned *unplanned; /* at most one entry for each value */
	uint64_t floor;          /* bytes: no plan of the program for the same request has smaller arenas, in whatever
				    order; 0: not known.  Not written to files, nor is: */
	const om_op *floor_op;   /* the op that needs them while it runs */
	const uint64_t *op_floor; /* [nop] by op id: bytes that the op needs while it runs, in whatever order; 0: not
				     known */
	om_peak *peak;           /* for a parallel-safe plan: the buffers that require most at once in some
				    order; not written to files */
	const struct om_formulas *formulas; /* its memory as formulas of the symbols of `range` (onnxmem/formula.h); NULL: not
				    looked for */
	uint32_t narena, nplace, nalias, nview, nscratch, nunplanned, npeak, nrange; /* how many of each */
	const om_pin *pin;       /* values whose arena was given */
	uint32_t npin;           /* how many */
	const struct om_stated_formulas *stated; /* formulas that the document has which the plan was read from: claims, compared with the model by
				    om_host_check_ranges(); NULL: none */
	const om_worker_streams *streams; /* of the workers that run it side by side; NULL: none */
};

/* The buffers of a program and the values stored in them. */
typedef struct om_buffers {
	const om_assignment *assignment; /* the assignment that they are made from */
	om_buffer *buf;          /* by buffer index */
	uint32_t n;              /* buffers */
	uint32_t *of_value;      /* [nvalue] buffer, or UINT32_MAX */
	uint64_t *offset;        /* [nvalue] bytes into the buffer */
	uint32_t *of_op;         /* [nop] buffer of the op's scratch, or UINT32_MAX */
	uint64_t naive;          /* total bytes if every planned value and scratch had its own storage */
	om_value **root;         /* [nvalue] the owner of the value's storage */
} om_buffers;

/* Group values by storage, according to the assignment.  Planned values are tensors of known size that
 * are neither constants nor owned by the caller. The result and its parts are allocated from `mem`. */
OM_API om_buffers *om_buffers_new(const om_prog *p, const om_assignment *a, om_arena *mem);

/* Make the plan for packed buffers; it becomes p->plan.  All buffers are placed in the first requested
 * arena with sufficient capacity, else in the last. */
OM_API void om_plan_new(om_prog *p, const om_buffers *b, const om_pack_result *r,
	const char *strategy);

/* The arena and the offset in bytes, from the start of that arena, of the value called `name`.  False, and
 * nothing is written, when no value has this name or the plan does not place it in an arena.  Either of
 * `arena` and `offset` may be NULL. */
OM_API bool om_plan_offset(const om_prog *p, const om_plan *plan, const char *name, uint32_t *arena,
	uint64_t *offset);

/* What is proven about the size of an arena: "optimal": no plan for this order with these values in the arena
 * is smaller; "optimal packing": no packing of these buffers is smaller, but one of other buffers may be, that
 * is, one with other lifetimes, views or in-place choices; "feasible": neither. */
OM_API const char *om_plan_arena_status(const om_plan_arena *a);

/* The memory of a run, in bytes.  Not counted: what values outside of the plan take, and code. */
typedef struct om_plan_memory {
	uint64_t arenas;         /* all arenas, with the scratch of the target */
	uint64_t io;             /* inputs and outputs in the memory of the caller, the most that they may take; an output in the memory of an input
				    counts once */
	uint64_t weights;        /* constants that ops read, and inputs with a default value */
	uint64_t total;          /* the sum; UINT64_MAX if it is larger */
} om_plan_memory;

/* The memory that a run takes by `plan`, which is of `p`. */
OM_API om_plan_memory om_plan_memory_of(const om_prog *p, const om_plan *plan);

/* What the total leaves out, beside values outside of the plan: inputs and outputs in the memory of the caller whose
 * size elements decide in a run, without a bound, and those that are no tensors: `n` of them, allocated from `mem`. */
OM_API const om_value **om_plan_unsized(const om_prog *p, const om_plan *plan, om_arena *mem, uint32_t *n);

/* How many values have a place in an arena for the most that they may take, since elements decide their size in a run: the
 * bounds are those of operators (om_opdef.max_shape, OM_MONOTONE), never what a file declares. */
OM_API uint32_t om_plan_count_bounded(const om_prog *p, const om_plan *plan);

/* Bytes of a memory that the ops of a run read and write. */
typedef struct om_traffic {
	uint64_t read;           /* UINT64_MAX if it is larger */
	uint64_t written;        /* the same */
} om_traffic;

/* Memories other than arenas: weights, that of the caller, and values outside of the plan. */
enum { OM_TRAFFIC_WEIGHTS, OM_TRAFFIC_CALLER, OM_TRAFFIC_UNPLANNED, OM_TRAFFIC_OTHERS };

/* Count what the ops of a run read and write: to[k] for arena k of the plan, to[plan->narena + OM_TRAFFIC_...] for the
 * other memories.  An op reads each of its inputs and writes each of its outputs once, whole, and its scratch once each
 * way; bodies count once per iteration where the number is known, else once. */
OM_API void om_plan_traffic(const om_prog *p, const om_plan *plan, om_traffic *to);

/* OM_BUDGET if an arena of the plan is larger than its limit or if, unless 0, all arenas together are larger than
 * `arenas`, or the memory of the run is larger than `total`.  The message names the step and the op, and what is
 * live there. */
OM_API om_status om_plan_limits(om_session *s, const om_prog *p, const om_plan *plan, uint64_t arenas, uint64_t total);

/* Shrink a plan with ranges, read for smaller sizes than the largest, to what the shapes of `p` need: offsets and arenas become
 * smaller, with everything that is live at once in the order in which it lies.  It is a plan for these sizes alone then;
 * verify it again.  A plan in which that is not possible stays as it is. */
OM_API om_status om_plan_shrink(om_session *s, const om_prog *p, om_plan *plan);

/* The trip count of a Loop or Scan; -1 if it is not known before the run. */
OM_API int64_t om_trip_count(const om_op *op);

/* Check `plan` against the program independently of the planner, by simulating a run and tracking the
 * content of all memory: every value is intact whenever it is read; sizes and alignment are right;
 * every placement is inside its arena; an output overwrites an input only if the operator definition
 * permits it; views are as the definition declares; no constant or caller-owned memory is overwritten.
 * A plan that is marked parallel-safe is checked for every order.  OM_BADPLAN with a message that
 * names values, op and bytes.  O(n log n); the dependence check of parallel-safe plans takes n * n /
 * 512 steps more.  Memory is limited to 64 MiB and 4 KiB for each value, operand, op, and entry of the
 * plan; a plan whose views need more is refused. */
OM_API om_status om_plan_verify(om_session *s, const om_prog *p, const om_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
