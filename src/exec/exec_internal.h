/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the executor.
 *
 * Every value has a slot: its tensor in the current run.  A *fixed* value has a
 * shape that is known before the run, so type and shape of its slot are set once;
 * other values get shape and memory when they are computed.  Every op that
 * does work has a step; a step with only fixed values calls its kernel on tensors
 * that were filled when the executor was built.
 *
 * Storage owned by the caller, for inputs and outputs, may move between runs:
 * `uses` of such a value lists the tensors whose addresses must be updated.
 */
#ifndef OM_EXEC_INTERNAL_H
#define OM_EXEC_INTERNAL_H

#include "base/arena_internal.h"
#include "exec/weight_cache.h"
#include "onnxmem/executor.h"
#include "onnxmem/kernel.h"
#include "onnxmem/opdef.h"

enum { OM_ROOM_ALIGN = 64 };

/* A growable buffer that persists across runs. */
struct room {
	unsigned char *data;
	uint64_t cap;
	bool is_pages;            /* made by om_room_pages() */
	bool is_lent;             /* memory of the caller, which is not counted */
};

struct use {
	om_tensor *t;
	uint64_t offset;
};

struct uses {
	struct use *use;
	size_t n, cap;
};

/* The type and shape that a kernel was prepared for, without symbols. */
struct form {
	om_dtype type;
	int rank;
	int64_t dim[OM_MAX_RANK];
};

struct step {
	om_status (*run)(struct step *s);
	om_op_context call;       /* bound to its kernel */
	om_exec *exec;
	om_op *op;
	om_tensor *in, *out;      /* the tensors of `call` */
	struct lane *lane;        /* of the stream that it runs in; NULL: what the executor itself has */
	uint64_t scratch;         /* bytes required by the kernel */
	om_arena *state;          /* holds the kernel's state if shapes may change; else NULL */
	struct form *forms;       /* inputs, then outputs, for which the state was prepared */
	bool *ends;               /* by input: this op is its last reader; NULL: of none whose buffer an output may take */
	bool is_prepared;
	uint32_t whole;           /* for run_unless_there(): the input that is all of the output */
	bool is_steered;          /* its output shapes are checked in every run; see opdef/shape_check.c */
	struct flow *flow;        /* of an op with bodies */
	uint32_t profile;         /* 1-based index into the profile; 0: not called yet */
};

/* The steps of a block. */
struct walk {
	struct step *step;
	uint32_t n, nrun;         /* number of steps; number of those that do work */
};

struct om_exec {
	om_session *session;
	const om_prog *prog;      /* shared with other executors, possibly in other threads */
	const om_plan *plan;      /* NULL: every value has its own buffer */
	om_exec_options options;
	struct om_trainer *kept;  /* whose states are on the device, with `keep_states`; NULL: nobody's */
	struct om_workers *pool;  /* NULL: no op uses more than one thread */
	uint32_t nworker;         /* threads of an op at most, the caller included */
	struct om_kernel_registry *registry;  /* of the kernels in `options`; NULL: none */
	om_arena *mem;            /* allocations that live as long as the executor */
	om_arena *call;           /* temporary memory of the running kernel */
	om_arena *keep;           /* strings and objects of the current run, or of the innermost loop */
	om_arena *spare;          /* empty, except while `keep` is compacted */
	om_arena **parked;        /* strings and objects older than each loop that is active; outermost first */
	uint32_t nparked, depth;  /* arenas in `parked`; loops that are active */
	uint64_t parked_bytes;
	om_op **order;            /* every op, in order of steps; NULL-terminated */
	bool *is_needed;          /* by op id: a result depends on it */
	/* Same steps as om_timeline(), which modifies the program and so cannot be used here. */
	uint32_t *first_step, *last_step; /* by op id */
	uint32_t *body_end;       /* by block id: the step that reads its results */
	uint32_t nstep;
	struct room weights;      /* constants that are not read where they are */
	struct om_weight_cache cache; /* the file that they are in, if it is open */
	struct room *arena;       /* one per arena of the plan, guards included */
	uint32_t narena;
	uint64_t align;           /* alignment of all buffers: the maximum required by the plan and the
	                             program, at least OM_ROOM_ALIGN */
	uint64_t guard;           /* bytes before and after every arena, a multiple of `align`; 0: arenas are lent */

	/* By value id. */
	om_tensor *slot;
	bool *is_fixed;
	bool *is_skipped;         /* a view by the plan; not computed */
	bool *is_tied;            /* a result stored in the memory of an input */
	bool *is_spent;           /* an input that a result overwrites */
	bool *is_consumed;        /* such an input that the result does not replace in the next run */
	bool *is_used_up;         /* such an input, since a run: it has to be given again */
	const om_plan_multi_view **view; /* NULL: not rotated by the iterations of a loop */
	om_value **root;          /* the value whose address it is relative to; may be itself */
	uint64_t *offset;         /* byte offset in root */
	struct room *room;
	struct uses *uses;
	bool *is_bound;           /* parameters of the graph */
	struct arena_input {      /* an input in an arena */
		om_value *v;
		om_tensor given;      /* as the caller bound it */
		const void *source;   /* where it was put aside; NULL: nowhere */
	} *arena_input;
	uint32_t narena_input;
	struct room aside;        /* for them */

	const om_scratch **scratch; /* by op id; NULL: not in an arena */
	struct room workspace;    /* unplanned scratch, used by one op at a time */
	struct walk *walk;        /* by block id */
	struct poison *poison;    /* NULL: disabled */
	struct device_run *device; /* NULL: all ops run on the processor */
	struct worker_streams *workers; /* NULL: ops run in the order of the plan */
	struct room *spill;       /* by result: buffer for a copy, if one is required */
	om_tensor *result;
	struct room *bound;       /* by result: memory bound by the caller; data NULL: none */
	uint64_t held;            /* bytes in buffers of unplanned values and in the workspace */
	struct om_budget budget;  /* what is left of options.max_memory; of all buffers and of arenas but `mem` */
	uint64_t iterations;      /* of all loops in this run */
	om_exec_stats stats;
	om_exec_op *profile;      /* as stats.op */
};

static inline bool
om_exec_in_arena(const om_exec *e, const om_value *v)
{
	return e->plan && e->plan->place[v->id].where == OM_IN_ARENA;
}

/* ---- arena_inputs.c ---- */

/* List the inputs in arenas. */
void om_exec_find_inputs(om_exec *e);
/* Bind input `v` if it is in an arena; false: it is not. */
bool om_exec_give(om_exec *e, const om_value *v, const om_tensor *t);
/* At the start of a run: put aside inputs that poison, or a copy of another one, would overwrite; then copy all to
 * their arenas. */
om_status om_exec_save_inputs(om_exec *e);
void om_exec_load_inputs(om_exec *e);

/* ---- memory.c ---- */

/* Ensure capacity for `bytes`; the contents are lost if the buffer grows. */
om_status om_room_fit(om_exec *e, struct room *r, uint64_t bytes, const char *what);
/* The same, preserving the first `kept` bytes; capacity grows by doubling. */
om_status om_room_extend(om_exec *e, struct room *r, uint64_t kept, uint64_t bytes, const char *what);
void om_room_free(om_exec *e, struct room *r);
/* Memory of an empty room that is freed soon: pages of its own, which free() might keep in the process. */
om_status om_room_pages(om_exec *e, struct room *r, uint64_t bytes, const char *what);
/* Ensure capacity of a workspace, and update the statistics. */
om_status om_workspace_fit(om_exec *e, struct room *workspace, uint64_t bytes);
/* Ensure capacity of the buffer of an unplanned value, and update the statistics. */
om_status om_value_room(om_exec *e, const om_value *v, uint64_t bytes);
/* Set type, shape and elements of `v` from `t`. */
om_status om_value_put(om_exec *e, om_value *v, const om_tensor *t);
/* Set `v`, which is not fixed, to `t`, and swap its buffer with `from`, which contains the
 * elements of `t`. */
void om_value_take(om_exec *e, om_value *v, const om_tensor *t, struct room *from);
/* Is `v` in a buffer of its own, which another value of a planned program may take when `v` is not read any more? */
bool om_value_may_give(const om_exec *e, const om_value *v);
/* May `v` take the buffer of another value, whatever its size? */
bool om_value_may_receive(const om_exec *e, const om_value *v);
/* Set `to` to `t`, which is in the buffer of `from`: the two swap their buffers. */
void om_value_give(om_exec *e, const om_value *from, const om_value *to, const om_tensor *t);
/* Set type and shape of `v` and allocate its memory; for a fixed value, check that type
 * and shape match. */
om_status om_value_settle(om_exec *e, om_value *v, om_dtype type, const om_shape *shape);

/* ---- bind.c: addresses of values. ---- */

om_status om_exec_place(om_exec *e);
/* Register `t` to be updated when the address of `v` changes. */
void om_exec_follow(om_exec *e, const om_value *v, om_tensor *t);
/* Set the address of `v`, and update all tensors registered for it. */
void om_exec_move(om_exec *e, const om_value *v, void *data);

/* ---- constants.c: constants. ---- */

om_status om_exec_weights(om_exec *e);

/* ---- instructions.c ---- */

/* Set the workers of a call whose kernel is going to be bound.  The threads start with the first op that uses
 * them. */
void om_exec_workers(om_exec *e, om_op_context *c);

om_status om_exec_steps(om_exec *e);
/* Bind the kernels of ops with fixed shapes; constants must have been computed. */
om_status om_exec_prepare(om_exec *e);
void om_step_free(struct step *s);
om_status om_walk_run(om_exec *e, const om_block *b);
/* Update the input tensors of a step from the slots. */
void om_step_look(struct step *s);

/* ---- train.c ---- */

/* The states of the trainer come back from the device of the executor that keeps them. */
om_status om_trainer_leave(struct om_trainer *t);

/* ---- control_flow.c: ops with bodies. ---- */

om_status om_control_flow_new(struct step *s);
void om_control_flow_free(struct step *s);

/* ---- objects.c; see control_flow.h for the functions called by loops. ---- */

void om_objects_new(om_exec *e);
void om_objects_free(om_exec *e);
/* Release the strings and objects of the previous run. */
void om_objects_start(om_exec *e);
/* Update the statistics. */
void om_objects_count(om_exec *e);

/* ---- poison.c ---- */

enum { OM_GUARD = 4096 };

void om_poison_fill(void *p, uint64_t bytes);
struct poison *om_poison_new(om_exec *e);
om_status om_poison_start(om_exec *e);
om_status om_poison_at(om_exec *e, uint32_t step);
om_status om_poison_check(om_exec *e, const om_op *op);

#endif
