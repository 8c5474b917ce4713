/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules and assignments: results of analyses of a program.
 *
 * A plan request states what a plan has to comply with.  A schedule is an order of the ops of every block, with the steps that follow from it.  An assignment
 * holds the decisions for one schedule and one request, by value id: the lifetime of each value, its
 * backing storage, and its addresses if they change with the iterations of a loop.  None of them changes
 * the program, so any number of them can be compared.
 *
 * An assignment is immutable once it is complete.  An analysis takes one and returns a new one,
 * allocated from an arena of the caller, which must outlive the result.  Unchanged parts may be shared
 * with the input, which must outlive the result as well.  The current assignment of a program is
 * om_prog.assignment.
 */
#ifndef OM_ASSIGNMENT_H
#define OM_ASSIGNMENT_H

#include "onnxmem/opdef.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The consumer that a plan is made for. */
typedef enum om_target {
	OM_TARGET_GENERIC,  /* the ONNX program unchanged, for any consumer */
	OM_TARGET_CPU,      /* the onnxmem executor: kernel scratch is planned, too */
} om_target;

/* An arena that a plan may use. */
typedef struct om_arena_spec {
	const char *name;        /* in plans and messages */
	const char *device;      /* "cpu" */
	uint64_t limit;          /* bytes; 0: none */
	uint64_t align;          /* alignment of every placement in it, if larger than that of the request */
} om_arena_spec;

/* The memory of inputs and outputs of the graph. */
typedef enum om_io {
	OM_IO_CALLER,       /* each has memory of its own, which the caller provides */
	OM_IO_ARENA,        /* in the arena: an input from the start of the run to its last use, after which its
			       bytes are reused; an output from where it is computed to the end of the run */
	OM_IO_KEEP,         /* in the arena: an input that is intact at the end of the run; an output as above */
} om_io;

/* The memory of one input or output. */
typedef struct om_io_rule {
	const char *name;        /* of an input or output of the graph */
	om_io where;             /* its memory */
} om_io_rule;

/* The arena of one value, and of all that share memory with it. */
typedef struct om_pin {
	const char *value;       /* the name of a value of the planned program */
	const char *arena;       /* the name of an arena of the request */
} om_pin;

/* Scratch that an op is planned with at least, where it requires some. */
typedef struct om_scratch_need {
	const char *value;       /* the first output of the op */
	uint64_t bytes;          /* the scratch */
} om_scratch_need;

/* The requirements on a plan.  Allocated by the caller, initialized by OM_PLAN_REQUEST(); handed to
 * passes by om_host_request(). */
typedef struct om_plan_request {
	size_t size;             /* of this struct: set by OM_PLAN_REQUEST */
	const om_arena_spec *arena; /* fastest first; NULL: one without a limit */
	uint32_t narena;         /* how many; 0: one without a limit */
	uint64_t align;          /* bytes, a power of two; sizes of buffers are rounded up to a multiple of
				    it; 0: 64 */
	bool parallel_safe;      /* the plan must be valid for every order of the ops that respects data
				    dependences, not only for that of the blocks */
	om_target target;        /* consumer of the plan */
	uint32_t threads;        /* for OM_TARGET_CPU: workers that scratch is planned for; a run with more has the
				    scratch of what they compute outside of the arenas; 0: 1 */
	bool precise;            /* for OM_TARGET_CPU: for a precise run (onnxmem/executor.h) */
	om_io io;                /* memory of the inputs and outputs that `io_rule` does not name.  Those of unknown
				    size, inputs with a default value, and what is not a tensor are the
				    caller's in any case */
	const om_io_rule *io_rule; /* exceptions, of different names */
	uint32_t nio_rule;       /* how many */
	bool ranged;             /* the offsets must serve smaller sizes of symbols, too: no value is stored in
				    another at an offset that depends on sizes */
	uint64_t total;          /* bytes that the run may take in all: om_plan_memory.total; 0: no limit.  Passes that
				    trade work for memory aim at it; om_plan_limits() checks it */
	uint64_t search_nodes;   /* limit of each search that compares decisions by the size of their arenas, for callers
				    that plan many programs; the default finds smaller arenas; 0: the default */
	const om_pin *pin;       /* values whose arena is given, of different names */
	uint32_t npin;           /* how many */
	bool exact_sizes;        /* values whose size data decide are outside of the plan, instead of in a place for the most
				    that they may take */
	const om_scratch_need *scratch; /* ascending by names, for plans that serve more sizes than those of the program:
				    om_host_pipeline() finds them for ranges; NULL: each op has the scratch that it
				    requires in the program */
	uint32_t nscratch;       /* how many */
	uint32_t streams;        /* workers that run ops side by side, at most OM_MOST_WORKER_STREAMS: the plan has a stream for
				    each, and is valid for every order that they permit; `parallel_safe` is implied.  Not
				    with ranges.  0: one worker, or, of a parallel-safe plan, any number */
	bool keep_states;        /* inputs that outputs replace in the next run, and that are copied to a device, keep their bytes in
				    its arena for the whole run: for om_exec_options.keep_states */
} om_plan_request;

/* A request with these fields; the others are those of the default request. */
#define OM_PLAN_REQUEST(...) {.size = sizeof(om_plan_request), __VA_ARGS__}

/* A range of steps of a run, both ends inclusive. */
typedef struct om_steps {
	uint32_t first, last;    /* inclusive */
} om_steps;

/* The steps in which a value is live.  A value that only some branches of an If read is not live in the
 * others, so a lifetime may have gaps. */
typedef struct om_live_interval {
	uint32_t first, last;    /* of all its steps, inclusive */
	const om_steps *range;   /* ascending, with gaps between them; NULL: all steps from `first` to `last` */
	uint32_t nrange;         /* 0, or at least 2 */
} om_live_interval;

/* The most workers that a plan may have streams for. */
enum { OM_MOST_WORKER_STREAMS = 8 };

/* The stream of an op that does not run in the graph: it is folded, nothing depends on it, or it is in a body. */
#define OM_NO_STREAM UINT32_MAX

/* Where an op runs, and what it waits for. */
typedef struct om_worker_op {
	uint32_t stream;         /* from 0, or OM_NO_STREAM */
	const uint32_t *wait;    /* ids of ops of other streams that are done before it starts.  None follows from the others
				    and from the order of its stream */
	uint32_t nwait;          /* how many */
} om_worker_op;

/* Streams of workers: each runs its ops in the order of the schedule, one after the other, beside the others. */
typedef struct om_worker_streams {
	uint32_t n;              /* streams */
	om_worker_op *op;        /* by op id */
	uint32_t nop;            /* ids that existed when they were made */
	uint32_t nwait;          /* waits of all ops */
	double work_ns, span_ns; /* by a model of the times of ops: of one worker, and of these; not written to files */
} om_worker_streams;

/* An order of execution, and how it was found. */
typedef struct om_schedule {
	om_op ***ops;            /* by block id: its ops in order, NULL-terminated */
	om_steps *of_op;         /* by op id: as om_op.step and om_op.end */
	om_steps *of_block;      /* by block id: as om_block.begin and om_block.end */
	uint32_t nstep;          /* steps in all */
	uint32_t nop, nblock;    /* ids that existed when it was made */
	const char *method;      /* how the ops were ordered: "original", "bfs", "min-memory"; NULL: they
				    were not */
	bool is_original;        /* in the order in which they came; recomputed ops aside */
	bool is_proven;          /* "min-memory": proven that no order requires less memory, by the measure of
				    the pass */
	bool is_limited;         /* "min-memory": a search for orders ended at its limit */
	const struct om_schedule *original; /* the order in which they came; NULL: this one */
	const om_worker_streams *streams; /* that the request asks for; NULL: none */
} om_schedule;

/* Why an output of an op is computed over an input of it, or why not: what the analysis found when it decided. */
typedef enum om_overwrite {
	OM_OVERWRITE_UNDECIDED,  /* no decision was made: the op has bodies or is folded, or the analysis did not run */
	OM_OVERWRITE_DONE,       /* the output is computed over the input */
	OM_OVERWRITE_PART,       /* the input is computed in a part of the output, or in all of it */
	OM_OVERWRITE_NO_RULE,    /* the operator is not known, or permits it for no input */
	OM_OVERWRITE_CONST,      /* the input is a constant */
	OM_OVERWRITE_OUTSIDE,    /* the input is in memory of the caller, or part of a constant */
	OM_OVERWRITE_NO_SIZE,    /* the size of the input is zero or not known */
	OM_OVERWRITE_SIZE,       /* their sizes differ */
	OM_OVERWRITE_FORBIDDEN,  /* the operator definition forbids it: the input is read after the first write */
	OM_OVERWRITE_OTHER_INPUT, /* the value is another input, too, for which the definition forbids it */
	OM_OVERWRITE_CARRIED,    /* the input is stored in a parameter of a loop */
	OM_OVERWRITE_LIVE,       /* the input is live after the op */
	OM_OVERWRITE_REPEATED,   /* the value is an earlier input, too: see there */
	OM_OVERWRITE_CHOSEN,     /* the output is computed over another input, which was preferred */
	OM_OVERWRITE_SHARED,     /* they are in one storage already */
	OM_OVERWRITE_BODY,       /* the storage of the input is of another body */
	OM_OVERWRITE_ROOM,       /* the one storage has no room for the other at that offset */
	OM_OVERWRITE_ALIGNMENT,  /* elements would not be aligned */
	OM_OVERWRITE_CLASH,      /* another value in one of the storages would lose bytes that are still needed */
	OM_OVERWRITE_NO_ORDER,   /* the partial order of the ops is too large to be computed */
	OM_OVERWRITE_VIEW,       /* the output has other bytes already: it is a view, or stored in a parameter */
	OM_OVERWRITE_NO_STORAGE, /* the output has no storage to share: its size is not known, or it is a constant's */
	OM_OVERWRITE_LARGER,     /* the input would be computed in the output, but the arena would be larger */
	OM_OVERWRITE_DISABLED,   /* the same, but an option or a range of sizes rules it out */
	OM_OVERWRITE_UNDONE,     /* it was done, but loops need one of them in storage of its own */
} om_overwrite;

/* A decision about an output and an input. */
typedef struct om_overwrite_reason {
	om_overwrite why;        /* what decided */
	const om_value *by;      /* OM_OVERWRITE_CLASH: the value that would lose bytes; else NULL */
} om_overwrite_reason;

/* The storage of a value. */
typedef struct om_backing {
	om_store store;          /* kind of backing */
	om_value *source;        /* NULL if and only if `store` is OM_OWN */
	uint64_t offset;         /* bytes from the start of `source` */
} om_backing;

/* Decisions about the values of a program; arrays are indexed by value id unless noted. */
struct om_assignment {
	const om_schedule *schedule;      /* the schedule that steps refer to */
	const om_plan_request *request;   /* that decisions comply with; `align` and `narena` are not 0 */
	const om_op_facts *facts;         /* of the program */
	om_live_interval *live;                /* lifetime of each value */
	om_backing *backing;              /* OM_OWN for all values until decided */
	const om_multi_view **multi_view;     /* NULL: the value has a fixed address */
	uint32_t nvalue;                  /* ids that existed when it was made */
	const om_assignment *before_loops; /* the assignment before multi-views were added; NULL: none were */
	const struct om_live_points *live_points; /* live sets at the ends of basic blocks; NULL unless computed */
	om_overwrite_reason *const *overwrite; /* by op id, of its pairs out * nin + in, or NULL; all NULL unless recorded */
};

/* A copy of `in` whose arrays `live`, `backing` and `multi_view` the caller may modify until it
 * publishes the copy. */
OM_API om_assignment *om_assignment_copy(const om_assignment *in, om_arena *mem);

/* Why output `out` of `op` is computed over input `in`, or why not, by the assignment that the pass `inplace` made and
 * later passes changed.  Both the output and the input exist. */
OM_API om_overwrite_reason om_assignment_overwrite(const om_assignment *a, const om_op *op, uint32_t out, uint32_t in);

/* The value that owns the storage of `v` and, unless `offset` is NULL, the offset of `v` in it. */
OM_API om_value *om_storage(const om_assignment *a, const om_value *v, uint64_t *offset);

#ifdef __cplusplus
}
#endif

#endif
