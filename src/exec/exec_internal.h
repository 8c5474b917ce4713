/* Inside the executor.
 *
 * Every value has a slot: its tensor as it stands in the run.  A *fixed* value
 * has a shape that is known before the run, so its slot says type, shape and
 * address once and for all; other values find shape and memory as they are
 * computed.  Every op that does something has a step; a step whose values are
 * all fixed calls its kernel on tensors that were filled when the executor was
 * built.
 *
 * Storage that belongs to the caller, inputs and outputs, may move between
 * runs: `uses` of such a value are the tensors whose address follows it.
 */
#ifndef OM_EXEC_INTERNAL_H
#define OM_EXEC_INTERNAL_H

#include "onnxmem/executor.h"
#include "onnxmem/kernel.h"
#include "onnxmem/opdef.h"

enum { OM_ROOM_ALIGN = 64 };

/* Memory that is kept from run to run, and grows. */
struct room {
	unsigned char *data;
	uint64_t cap;
};

struct use {
	om_tensor *t;
	uint64_t offset;
};

struct uses {
	struct use *use;
	size_t n, cap;
};

/* What a kernel was prepared for: a tensor without elements and symbols. */
struct form {
	om_dtype type;
	int rank;
	int64_t dim[OM_MAX_RANK];
};

struct step {
	om_exec *exec;
	om_op *op;
	om_status (*run)(struct step *s);
	om_tensor *in, *out;      /* those of call */
	om_op_context call;             /* bound to its kernel */
	uint64_t scratch;         /* bytes that the kernel requires */
	om_arena *state;          /* of the kernel's state where shapes may change; else NULL */
	struct form *forms;       /* inputs, then outputs, that the state was prepared for */
	bool is_prepared;
	struct flow *flow;        /* of an op with bodies */
	uint32_t profile;         /* place in the profile, from 1; 0: not called yet */
};

/* The steps of a block. */
struct walk {
	struct step *step;
	uint32_t n, nrun;         /* all; those that do something */
};

struct om_exec {
	om_session *session;
	const om_prog *prog;      /* shared with other executors, perhaps of other threads */
	const om_plan *plan;      /* NULL: every value in a room of its own */
	om_exec_options options;
	om_arena *mem;            /* of all that is made when the executor is built */
	om_arena *call;           /* of the kernel that runs */
	om_arena *keep;           /* of the strings of a run */
	om_op **order;            /* every op, in the order of the steps; NULL ends */
	bool *is_needed;          /* by op id: the results depend on it */
	/* The steps of om_timeline(), which is not called here: it writes into the program. */
	uint32_t *first_step, *last_step; /* by op id */
	uint32_t *body_end;       /* by block id: the step in which its results are read */
	uint32_t nstep;
	struct room *arena;       /* by the plan's arenas, guards included */
	uint32_t narena;
	uint64_t align;           /* of every address that is given out: the most that the plan or the program
	                             says, and no less than OM_ROOM_ALIGN */
	uint64_t guard;           /* bytes before and after every arena, a multiple of `align` */

	/* By value id. */
	om_tensor *slot;
	bool *is_fixed;
	bool *is_skipped;         /* a view by the plan: nothing to compute */
	bool *is_tied;            /* a result in the memory of an input */
	bool *is_spent;           /* an input: a result is computed there */
	const om_plan_multi_view **view; /* NULL: does not move with the rounds of a loop */
	om_value **root;          /* whose address it follows; itself */
	uint64_t *offset;         /* bytes into root */
	struct room *room;
	struct uses *uses;
	bool *is_bound;           /* parameters of the graph */

	const om_scratch **scratch; /* by op id; NULL: not in the arena */
	struct room workspace;    /* scratch that is not planned, of one op at a time */
	struct walk *walk;        /* by block id */
	struct poison *poison;    /* NULL without */
	struct room *spill;       /* by result: copies, where one is needed */
	om_tensor *result;
	struct room *bound;       /* by result: memory of the caller; data NULL: none */
	uint64_t held;            /* bytes in rooms of values without a place */
	om_exec_stats stats;
	om_exec_op *profile;
	uint32_t nprofile;
};

/* ---- memory.c ---- */

/* Room for `bytes`; what was in it is lost when it has to grow. */
om_status om_room_fit(om_exec *e, struct room *r, uint64_t bytes, const char *what);
/* The same, keeping the first `kept` bytes, growing by doubling. */
om_status om_room_extend(om_exec *e, struct room *r, uint64_t kept, uint64_t bytes, const char *what);
void om_room_free(struct room *r);
/* Room for a value outside the arena, which is counted. */
om_status om_value_room(om_exec *e, const om_value *v, uint64_t bytes);
/* Copy elements; a splat is written out.  Sizes agree. */
void om_elements_copy(void *to, const om_tensor *from, uint64_t bytes);
/* Give `v` the type, shape and elements of `t`. */
om_status om_value_put(om_exec *e, om_value *v, const om_tensor *t);
/* `v`, which is not fixed, gets this tensor together with the room that it lies in, for
 * the one that it had. */
void om_value_take(om_exec *e, om_value *v, const om_tensor *t, struct room *from);
/* Give `v`, which is not fixed, this type and shape, and memory for it; of one
 * that is, check them. */
om_status om_value_settle(om_exec *e, om_value *v, om_dtype type, const om_shape *shape);

/* ---- place.c: where values are. ---- */

om_status om_exec_place(om_exec *e);
/* The tensor follows the address of `v`. */
void om_exec_follow(om_exec *e, const om_value *v, om_tensor *t);
/* Everything that follows `v` gets its new address. */
void om_exec_move(om_exec *e, const om_value *v, void *data);

/* ---- constants.c: constants. ---- */

om_status om_exec_weights(om_exec *e);

/* ---- step.c ---- */

om_status om_exec_steps(om_exec *e);
/* Bind the kernels of ops whose shapes are fixed, when constants are there. */
om_status om_exec_prepare(om_exec *e);
void om_step_free(struct step *s);
om_status om_walk_run(om_exec *e, const om_block *b);
/* The inputs of a step as they are now. */
void om_step_look(struct step *s);

/* ---- flow.c: ops with bodies. ---- */

om_status om_control_flow_new(struct step *s);
void om_control_flow_free(struct step *s);

/* ---- poison.c ---- */

enum { OM_GUARD = 4096 };

void om_poison_fill(void *p, uint64_t bytes);
struct poison *om_poison_new(om_exec *e);
void om_poison_start(om_exec *e);
void om_poison_at(om_exec *e, uint32_t step);
om_status om_poison_check(om_exec *e, const om_op *op);

#endif
