/* Plans: where every value of a program lives.
 *
 * Buffers are made from a program whose storage is decided (om_buffers_new),
 * a packer gives them offsets, om_plan_new() makes the plan, om_plan_verify()
 * checks it.  A verified plan is what the executor takes.
 */
#ifndef OM_PLAN_H
#define OM_PLAN_H

#include "onnxmem/assignment.h"
#include "onnxmem/pack.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whose memory a value is in. */
typedef enum om_location {
	OM_UNUSED,      /* takes part in no run: dead, or of a folded op */
	OM_IN_ARENA,
	OM_EXTERNAL,     /* caller-owned: graph inputs and outputs */
	OM_WEIGHT,       /* a constant */
	OM_UNPLANNED,    /* found a place at run time: size not known before */
} om_location;

/* Stands for: not relative to a value. */
#define OM_NO_VALUE UINT32_MAX

/* Some bytes: from `offset` on of an arena, or, unless `base` is OM_NO_VALUE, of where
 * the value `base` lies when the loop starts.  A base is defined around the body: it
 * may be a constant, in the caller's memory, or move with the rounds of an outer
 * loop. */
typedef struct om_region {
	uint32_t base;           /* id */
	uint32_t arena;          /* by number, where there is no base */
	uint64_t offset;         /* bytes */
} om_region;

/* Where a value lies that moves with the rounds of a Loop or Scan.  In round `i`, from
 * 0: in first[i] while i < nprologue, then in off[i % period]; moved up by i * stride
 * bytes.
 *
 * The value is one of the body: a parameter, or the output of an op.  Or it is a
 * carried output of the loop itself, and `i` is the number of rounds that ran: the
 * parameter of that round would lie there, had it come.  Whatever has an alias chain that leads to such
 * a value moves with it; the first one on the chain that has a view decides.  Its place
 * is what it contributes: bytes that are kept in its lifetime for all that take turns
 * there. */
typedef struct om_plan_multi_view {
	uint32_t value;          /* id */
	bool is_output;          /* of the loop; false: a value of its body */
	uint32_t period;         /* at least 1 */
	uint32_t nprologue;         /* 0: it turns from the start */
	const om_region *off;    /* [period] */
	const om_region *first;  /* [nprologue] */
	int64_t stride;          /* slices of a scan; else 0 */
} om_plan_multi_view;

/* Where a value lies, and when. */
typedef struct om_placement {
	om_location where;          /* arena and offset: for OM_IN_ARENA */
	uint32_t arena;          /* by number */
	uint64_t offset;         /* bytes */
	uint64_t bytes;          /* storage: rounded up to the alignment for a value with
	                            storage of its own, exact for one inside another's */
	uint32_t first, last;    /* steps of om_timeline(), inclusive */
} om_placement;

/* What om_store says, and donations, which no pass of ours makes.  In files a part
 * is a view, of a value that is computed later. */
typedef enum om_alias_kind {
	OM_ALIAS_VIEW, OM_ALIAS_INPLACE, OM_ALIAS_DONATE, OM_ALIAS_IO, OM_ALIAS_SUBBUFFER,
} om_alias_kind;

/* A value in the storage of another. */
typedef struct om_alias {
	om_alias_kind kind;      /* how it got there */
	uint32_t value, source;  /* ids */
	uint64_t offset;         /* bytes into source */
} om_alias;

/* Bytes that a kernel works in. */
typedef struct om_scratch {
	uint32_t op;             /* id */
	uint32_t arena;          /* by number */
	uint64_t offset, bytes;  /* in the arena */
} om_scratch;

/* A value without a place, and the reason. */
typedef struct om_unplanned {
	uint32_t value;          /* id */
	const char *why;         /* a phrase for reports */
} om_unplanned;

/* One of those that are needed at once. */
typedef struct om_peak {
	const char *name;        /* a buffer's */
	uint64_t bytes;          /* that it takes */
} om_peak;

/* A piece of memory: its size, and how low that is. */
typedef struct om_plan_arena {
	const char *name, *device;       /* as wanted; "cpu" */
	uint64_t bytes, align, limit;    /* limit 0: none */
	uint64_t naive;                  /* every value on its own, rounded */
	uint64_t lower_bound;            /* bytes: none is smaller with these buffers */
	uint32_t bound_step;             /* a step at which the bound is alive */
	om_pack_status status;           /* are `bytes` proven to be the least? */
} om_plan_arena;

/* Where everything lies.  It belongs to the program that it was made for. */
struct om_plan {
	om_arena *mem;           /* the program's: all parts come from it */
	const char *strategy;    /* what placed the buffers */
	bool parallel_safe;         /* holds for every order that respects the data; the steps
	                            of places are those of the file's */
	om_plan_arena *arena;    /* the fastest first */
	om_placement *place;         /* by value id */
	om_alias *alias;         /* each value once */
	om_plan_multi_view *view;      /* each value once; in order of value ids */
	om_scratch *scratch;     /* each op once */
	om_unplanned *unplanned; /* each value once */
	om_peak *peak;           /* of an order-free plan: what needs most at once in some order
	                            or other; not in files */
	uint32_t narena, nplace, nalias, nview, nscratch, nunplanned, npeak; /* how many of each */
};

/* Buffers of a program and what lies in them. */
typedef struct om_buffers {
	const om_assignment *assignment; /* that they are made of */
	om_buffer *buf;          /* by number */
	uint32_t n;              /* buffers */
	uint32_t *of_value;      /* [nvalue] buffer, or UINT32_MAX */
	uint64_t *offset;        /* [nvalue] bytes into the buffer */
	uint32_t *of_op;         /* [nop] buffer of its scratch, or UINT32_MAX */
	uint64_t naive;          /* bytes: every planned value and scratch on its own */
} om_buffers;

/* Group values by storage, as far as the assignment decides on it.  Planned are
 * tensors of known size that are neither constants nor owned by the caller.
 * The result and its parts come from `mem`. */
OM_API om_buffers *om_buffers_new(const om_prog *p, const om_assignment *a, om_arena *mem);

/* Why a value is not planned; NULL for one that is, or that needs no place. */
OM_API const char *om_value_unplanned(const om_prog *p, const om_value *v);

/* Fill in om_buffer.access_bytes: the bytes that ops read from and write to a buffer in a
 * run; those of a body once for each round, where the number of rounds is known. */
OM_API void om_buffers_count_accesses(const om_prog *p, const om_buffers *b);

/* The plan that follows from packed buffers; becomes p->plan.  All of them lie in
 * the first wanted arena that has room, else in the last. */
OM_API void om_plan_new(om_prog *p, const om_buffers *b, const om_pack_result *r,
	const char *strategy);

/* The arenas that are wanted, as pools for om_pack_solve(); at least one. */
OM_API om_pool *om_plan_wanted(const om_prog *p, om_arena *mem, uint32_t *n);

/* The plan that follows from buffers in these pools; becomes p->plan. */
OM_API void om_plan_pools(om_prog *p, const om_buffers *b, const om_pool *pool, const char *strategy);

/* The arena and the offset in bytes, from the start of that arena, of the value called `name`.  False, and
 * nothing is written, when no value has this name or the plan does not place it in an arena.  Either of
 * `arena` and `offset` may be NULL. */
OM_API bool om_plan_offset(const om_prog *p, const om_plan *plan, const char *name, uint32_t *arena,
	uint64_t *offset);

/* OM_BUDGET where an arena of the plan is larger than its limit or, where
 * `budget` is not 0, all of them together are larger than that.  The message says
 * at which step, in which op, and what is alive there. */
OM_API om_status om_plan_limits(om_session *s, const om_prog *p, const om_plan *plan, uint64_t budget);

/* An empty plan, becomes p->plan: for readers of plans.  It has room for one
 * arena, for a place, an alias, a view and a reason of every value, and for scratch of
 * every op; all is OM_UNUSED and counted 0. */
OM_API om_plan *om_plan_empty(om_prog *p);

/* ---- For passes that decide who shares whose storage. ---- */

/* Values in one storage. */
typedef struct om_alias_set {
	om_value *root;          /* whose storage it is: of a size for all */
	om_value **member;       /* the root first */
	uint32_t *until;         /* by member: the last step of it and of those before it */
	size_t n, cap, capuntil; /* members; room in `member`, in `until` */
	uint64_t bytes;          /* rounded; 0: not in the arena, or empty */
	uint32_t first, last;    /* steps in which any of them is alive */
	bool is_outside;         /* constants, and what belongs to the caller */
} om_alias_set;

/* The groups of an assignment that is being made. */
typedef struct om_alias_sets om_alias_sets;
/* Read them from `a`; they come from `mem`.  The functions below that decide write it into
 * `a`; the groups do not follow changes made by others. */
OM_API om_alias_sets *om_alias_sets_new(const om_prog *p, om_assignment *a, om_arena *mem);

/* The group of `v` and, unless NULL, where in it `v` lies.  NULL where the
 * storage of `v` cannot be shared: its size is not known. */
OM_API const om_alias_set *om_alias_sets_find(const om_alias_sets *g, const om_value *v, uint64_t *offset);

/* What `v` holds are the bytes of another value, from `offset` on. */
typedef struct om_alias_edge {
	om_value *v;             /* which one */
	uint64_t offset;         /* bytes */
} om_alias_edge;

/* `v` needs its bytes in these steps, too: they become part of its lifetime.  False,
 * and nothing changes, where others in the group write over these bytes by then;
 * with `always` nobody asks. */
OM_API bool om_alias_sets_extend(om_alias_sets *g, om_value *v, uint32_t first, uint32_t last, bool always);

/* Put the values `same`, all of one group, where those bytes of `source` are, and
 * their group with them.  `store` is OM_VIEW: `same` is one value, the root of its
 * group; or OM_SUBBUFFER: `source` is computed later.  False, and nothing changes, where
 * the group does not fit, or a value would lose bytes that are still read.
 * O(members of one group times members of the other). */
OM_API bool om_alias_sets_merge_at(om_alias_sets *g, om_value *source, const om_alias_edge *same, uint32_t n,
	om_store store);

/* `out` is computed over the first bytes of `in`, by one op: either may move, with
 * its group.  False where that cannot be, as above. */
OM_API bool om_alias_sets_merge_inplace(om_alias_sets *g, om_value *out, om_value *in);

/* Bytes that live and die together. */
typedef struct om_segment {
	uint64_t bytes;          /* rounded where they are all that is in a buffer */
	om_op *maker;            /* the first op that writes them; NULL: there before the block runs */
} om_segment;

/* The storages of a program, cut: every value is some pieces in a row, and what may
 * be computed over it as many of the same sizes. */
typedef struct om_segments {
	om_segment *piece;         /* by number */
	uint32_t n;              /* pieces */
	bool is_complete;        /* the last is true of all values; else there were too many pieces */
	bool *is_open;           /* by value id: may share bytes in more ways than pieces tell */
	struct om_segments_index *index; /* for om_segments_of() */
} om_segments;

/* Storages are those of `b`: of an assignment that has views, but nothing else yet.  What may be computed where it goes to is a part of that from the start. */
OM_API om_segments *om_segments_new(const om_prog *p, const om_buffers *b, om_arena *mem);

/* The pieces of `v`, by number, in a row; none where it is not planned. */
OM_API const uint32_t *om_segments_of(const om_segments *q, const om_value *v, uint32_t *n);

/* How a result can be computed in the memory of the parameter that it replaces in the
 * next run. */
typedef struct om_update_path {
	om_value *result, *param; /* of the graph, tied */
	om_value **value;        /* the first is computed over the parameter, each of the others over
	                            the one before; the last is the result */
	om_op **reader;          /* other ops of the graph that read the parameter, in their order:
	                            they have to come before that which makes value[0] */
	uint32_t nvalue, nreader; /* how many of each */
} om_update_path;

/* Ways for the program's ties, as many as there are; the list comes from `mem`.  `a` has
 * views, and nothing in place yet. */
OM_API om_update_path *om_update_paths_find(const om_prog *p, const om_assignment *a, om_arena *mem, uint32_t *n);

/* How many rounds a Loop or Scan runs, known before the run; -1 where it is not. */
OM_API int64_t om_trip_count(const om_op *op);

/* ---- For plans that hold in every order of the ops. ---- */

/* Which op is over before which other one starts, whatever the order, as long as
 * nothing is read before it is computed.  Only ops of the graph have an order; an
 * op in a body counts as the op of the graph that holds it.  See src/ir/partial_order.c
 * for what it costs; OM_MEMORY where that is too much. */
typedef struct om_partial_order om_partial_order;
/* Find out for all ops; the result comes from `mem`. */
OM_API om_status om_partial_order_new(om_session *s, const om_prog *p, om_arena *mem, om_partial_order **out);

/* False where the two are the same, or in the same op of the graph. */
OM_API bool om_partial_order_before(const om_partial_order *r, const om_op *a, const om_op *b);

/* Is everybody who defines or uses `v`, but for `op`, over before `op` starts?
 * Within one op of the graph the order is fixed: there it is for the caller to
 * look at steps. */
OM_API bool om_partial_order_is_over(const om_partial_order *r, const om_value *v, const om_op *op);

/* Who may not share bytes with whom, in some order or other.  Two buffers may
 * where all ops that touch the one are over before all that touch the other
 * start; lifetimes in steps are not looked at, but inside of one op. */
typedef struct om_interference_list {
	const uint32_t (*pair)[2];   /* buffers, by number; each pair once */
	uint64_t npair;          /* how many */
	uint64_t bound;          /* bytes of buffers which all conflict: no plan takes less */
	bool is_heaviest;        /* no other such set has more bytes */
	uint32_t *peak;          /* these buffers */
	uint32_t npeak;          /* how many */
} om_interference_list;

/* See src/alloc/partial_order_interference.c for what it costs; OM_MEMORY where that is too much.
 * All parts come from `mem`. */
OM_API om_status om_buffers_interference(om_session *s, const om_prog *p, const om_buffers *b, om_arena *mem,
	om_interference_list *out);

/* Check `plan` against the program from scratch, by walking a run and watching
 * whose bytes lie where: every value is whole whenever it is read; sizes and
 * alignment; all inside the arena; an output over an input only where the
 * operator's row allows it; views where the row says so; nothing over
 * constants or caller-owned memory.  A plan that says that it is order-free is
 * held to that.  OM_BADPLAN with a sentence naming values, op and bytes.  O(n log
 * n); what depends on what takes n * n / 512 steps more. */
OM_API om_status om_plan_verify(om_session *s, const om_prog *p, const om_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
