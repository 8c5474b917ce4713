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
	uint32_t first, last;    /* steps of om_timeline(), inclusive */
} om_placement;

/* The kinds of om_store, and donations, which no in-tree pass makes.  In files, a sub-buffer is a view
 * of a value that is computed later. */
typedef enum om_alias_kind {
	OM_ALIAS_VIEW, OM_ALIAS_INPLACE, OM_ALIAS_DONATE, OM_ALIAS_IO, OM_ALIAS_SUBBUFFER,
} om_alias_kind;

/* A value in the storage of another. */
typedef struct om_alias {
	om_alias_kind kind;      /* kind of sharing */
	uint32_t value, source;  /* ids */
	uint64_t offset;         /* bytes into source */
} om_alias;

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
	om_pack_status status;           /* is `bytes` proven to be minimal? */
} om_plan_arena;

/* A plan: the placement of every value.  It belongs to the program that it was made for. */
struct om_plan {
	om_arena *mem;           /* the program's arena: all parts are allocated from it */
	const char *strategy;    /* name of the packing strategy */
	bool parallel_safe;         /* valid for every order that respects data dependences; the steps of
				       placements are those of the file's order */
	om_plan_arena *arena;    /* fastest first */
	om_placement *place;         /* by value id */
	om_alias *alias;         /* at most one entry for each value */
	om_plan_multi_view *view;      /* at most one entry for each value, in order of value ids */
	om_scratch *scratch;     /* at most one entry for each op */
	om_unplanned *unplanned; /* at most one entry for each value */
	om_peak *peak;           /* for a parallel-safe plan: the buffers that require most at once in some
				    order; not written to files */
	uint32_t narena, nplace, nalias, nview, nscratch, nunplanned, npeak; /* how many of each */
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
} om_buffers;

/* Group values by storage, according to the assignment.  Planned values are tensors of known size that
 * are neither constants nor owned by the caller. The result and its parts are allocated from `mem`. */
OM_API om_buffers *om_buffers_new(const om_prog *p, const om_assignment *a, om_arena *mem);

/* The reason why a value is not planned; NULL for a value that is planned or requires no placement. */
OM_API const char *om_value_unplanned(const om_prog *p, const om_value *v);

/* Fill in om_buffer.access_bytes: the bytes that ops read from and write to a buffer in a run.
 * Accesses in a body count once per iteration if the trip count is known. */
OM_API void om_buffers_count_accesses(const om_prog *p, const om_buffers *b);

/* Make the plan for packed buffers; it becomes p->plan.  All buffers are placed in the first requested
 * arena with sufficient capacity, else in the last. */
OM_API void om_plan_new(om_prog *p, const om_buffers *b, const om_pack_result *r,
	const char *strategy);

/* The requested arenas, as pools for om_pack_solve(); at least one. */
OM_API om_pool *om_plan_wanted(const om_prog *p, om_arena *mem, uint32_t *n);

/* Make the plan for buffers packed into these pools; it becomes p->plan. */
OM_API void om_plan_pools(om_prog *p, const om_buffers *b, const om_pool *pool, const char *strategy);

/* The arena and the offset in bytes, from the start of that arena, of the value called `name`.  False, and
 * nothing is written, when no value has this name or the plan does not place it in an arena.  Either of
 * `arena` and `offset` may be NULL. */
OM_API bool om_plan_offset(const om_prog *p, const om_plan *plan, const char *name, uint32_t *arena,
	uint64_t *offset);

/* OM_BUDGET if an arena of the plan is larger than its limit or, unless `budget` is 0, if all arenas
 * together are larger than `budget`.  The message names the step and the op, and what is live there. */
OM_API om_status om_plan_limits(om_session *s, const om_prog *p, const om_plan *plan, uint64_t budget);

/* Make an empty plan, which becomes p->plan: for readers of plans.  It has capacity for one arena, for
 * a placement, an alias, a view and a reason for every value, and for the scratch of every op; all
 * placements are OM_UNUSED and all counts 0. */
OM_API om_plan *om_plan_empty(om_prog *p);

/* ---- For passes that decide on shared storage. ---- */

/* Values that share one storage. */
typedef struct om_alias_set {
	om_value *root;          /* owner of the storage, which is large enough for all members */
	om_value **member;       /* the root first */
	uint32_t *until;         /* by member: the last step of it and all members before it */
	size_t n, cap, capuntil; /* number of members; capacities of `member` and `until` */
	uint64_t bytes;          /* rounded; 0: not in an arena, or empty */
	uint32_t first, last;    /* steps in which any member is live */
	bool is_outside;         /* a constant, or memory owned by the caller */
} om_alias_set;

/* The alias sets of an assignment under construction. */
typedef struct om_alias_sets om_alias_sets;
/* Build the alias sets of `a`, allocated from `mem`.  The functions below that change them also update
 * `a`; the alias sets do not follow changes of `a` made elsewhere. */
OM_API om_alias_sets *om_alias_sets_new(const om_prog *p, om_assignment *a, om_arena *mem);

/* The alias set of `v` and, unless `offset` is NULL, the offset of `v` in its storage.  NULL if the
 * storage of `v` cannot be shared because its size is not known. */
OM_API const om_alias_set *om_alias_sets_find(const om_alias_sets *g, const om_value *v, uint64_t *offset);

/* The content of `v` is the bytes of another value from `offset` on. */
typedef struct om_alias_edge {
	om_value *v;             /* the value */
	uint64_t offset;         /* bytes */
} om_alias_edge;

/* Extend the lifetime of `v` to these steps.  Returns false, without a change, if other members of the
 * set overwrite its bytes by then; with `always`, that is not checked. */
OM_API bool om_alias_sets_extend(om_alias_sets *g, om_value *v, uint32_t first, uint32_t last, bool always);

/* Place the values `same`, all of one set, at those bytes of `source`, and move their set with them.
 * `store` is OM_VIEW: `same` is one value, the root of its set; or OM_SUBBUFFER: `source` is computed
 * later.  Returns false, without a change, if the set does not fit, or a value would lose bytes that
 * are still read. O(members of one set times members of the other). */
OM_API bool om_alias_sets_merge_at(om_alias_sets *g, om_value *source, const om_alias_edge *same, uint32_t n,
	om_store store);

/* Compute `out` over the first bytes of `in`, by one op: either one may move, with its set.  Returns
 * false if that is impossible, as above. */
OM_API bool om_alias_sets_merge_inplace(om_alias_sets *g, om_value *out, om_value *in);

/* Bytes with a common lifetime. */
typedef struct om_segment {
	uint64_t bytes;          /* rounded if they are a whole buffer */
	om_op *maker;            /* the first op that writes them; NULL: initialized before the block runs */
} om_segment;

/* The storages of a program, split into segments: every value is a sequence of segments, and a value
 * that may be computed over it is a sequence of as many segments of the same sizes. */
typedef struct om_segments {
	om_segment *piece;         /* by segment number */
	uint32_t n;              /* number of segments */
	bool is_complete;        /* the same-size property above holds for all values; false: there were
				    too many segments */
	bool *is_open;           /* by value id: may share bytes in more ways than segments express */
	struct om_segments_index *index; /* for om_segments_of() */
} om_segments;

/* The storages are those of `b`, made from an assignment that has views and no other sharing yet.  A
 * value that may be computed at its final offset in a later value is part of that from the start. */
OM_API om_segments *om_segments_new(const om_prog *p, const om_buffers *b, om_arena *mem);

/* The segments of `v`, by number, in sequence; none if it is not planned. */
OM_API const uint32_t *om_segments_of(const om_segments *q, const om_value *v, uint32_t *n);

/* How a result can be computed in the memory of the parameter that it replaces in the next run. */
typedef struct om_update_path {
	om_value *result, *param; /* aliased result and parameter of the graph */
	om_value **value;        /* the first is computed over the parameter, each other over its
				    predecessor; the last is the result */
	om_op **reader;          /* other ops of the graph that read the parameter, in order: they must run
				    before the op that computes value[0] */
	uint32_t nvalue, nreader; /* how many of each */
} om_update_path;

/* Update paths for the declared input/output aliases for which one exists; the list is allocated from
 * `mem`. `a` has views and no in-place decisions yet. */
OM_API om_update_path *om_update_paths_find(const om_prog *p, const om_assignment *a, om_arena *mem, uint32_t *n);

/* The trip count of a Loop or Scan; -1 if it is not known before the run. */
OM_API int64_t om_trip_count(const om_op *op);

/* ---- For parallel-safe plans. ---- */

/* Which op completes before which other op starts in every order that respects data dependences.  Only
 * ops of the graph are ordered; an op in a body counts as the op of the graph that contains it.  See
 * src/ir/partial_order.c for the cost; OM_MEMORY if that is too high. */
typedef struct om_partial_order om_partial_order;

/* Which buffers interfere in some order.  Two buffers do not interfere if all ops that touch the one
 * complete before any op that touches the other starts; lifetimes in steps are compared only inside of
 * one op. */
typedef struct om_interference_list {
	const uint32_t (*pair)[2];   /* buffer indices; each pair once */
	uint64_t npair;          /* how many */
	uint64_t bound;          /* total bytes of a set of buffers that all interfere: no plan is smaller */
	bool is_heaviest;        /* no other such set is larger */
	uint32_t *peak;          /* the buffers of that set */
	uint32_t npeak;          /* how many */
} om_interference_list;

/* See src/alloc/partial_order_interference.c for the cost; OM_MEMORY if that is too high. All parts
 * are allocated from `mem`. */
OM_API om_status om_buffers_interference(om_session *s, const om_prog *p, const om_buffers *b, om_arena *mem,
	om_interference_list *out);

/* Check `plan` against the program independently of the planner, by simulating a run and tracking the
 * content of all memory: every value is intact whenever it is read; sizes and alignment are right;
 * every placement is inside its arena; an output overwrites an input only if the operator definition
 * permits it; views are as the definition declares; no constant or caller-owned memory is overwritten.
 * A plan that is marked parallel-safe is checked for every order.  OM_BADPLAN with a message that
 * names values, op and bytes.  O(n log n); the dependence check of parallel-safe plans takes n * n /
 * 512 steps more. */
OM_API om_status om_plan_verify(om_session *s, const om_prog *p, const om_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
