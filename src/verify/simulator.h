/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the verifier: the state of a simulated run, and the interfaces between its files.
 *
 * verify_plan.c performs the static checks and starts the simulation; verify_memory.c simulates reads,
 * writes and plain ops; verify_control_flow.c simulates blocks and branches; verify_loop.c simulates
 * loops; verify_reserved.c checks the reserved bytes of values that these move.
 */
#ifndef OM_SIMULATOR_H
#define OM_SIMULATOR_H

#include "base/arena_internal.h"
#include "opdef/op_context.h"
#include "onnxmem/plan.h"
#include "base/interval_map.h"
#include "verify/verify_partial_order.h"

/* Bytes [from, to) of a content: written by `owner`, starting at byte `at` of what it wrote. */
struct piece {
	uint64_t from, to;
	uint32_t owner;
	uint64_t at;
};

/* The content of a value: bytes written by `owner`, from `at` on, where `owner` is OM_NOBODY before the
 * value is computed.  If there are pieces, the content consists of those, from `at` on: an op found
 * sub-buffers of its output at their final offsets. */
struct content {
	uint32_t owner;
	uint64_t at;
	const struct piece *piece;
	size_t n;
};

/* An additional location that a value may have, if that depends on the run. */
struct other {
	uint32_t space;
	uint64_t lower;
	struct content is;
};

/* The location of a value.  Spaces are numbered: the arenas, then one for each value. */
struct home {
	bool tracked;         /* has bytes at a known location */
	bool is_io_alias;            /* its chain of aliases includes an input/output alias */
	bool fixed;           /* a constant at a fixed location: it cannot be overwritten */
	uint32_t space;
	uint64_t lower;
	uint64_t bytes;       /* bytes of its elements */
	uint64_t storage;     /* bytes that a write occupies: `bytes`, rounded up for a value with its own
			         storage */
	const struct other *other;
	uint32_t nother;
	uint32_t found;       /* with other locations: the output of a loop that it moves with.  Two values may
			         have the same possible locations, and never be at the same one */
};

/* Where the aliases of a value lead: to a value without one. */
struct chain {
	bool is_known;
	bool overflows;       /* the sum of the offsets is too large */
	bool is_io_alias;     /* includes an input/output alias */
	uint32_t root;
	uint64_t offset;      /* in the root */
};

struct log {
	om_arena *mem;
	om_owned_interval *r;
	size_t n, cap;
};

/* A branch that runs. */
struct branch {
	const struct branch *outer;     /* the branch around it, or NULL */
	uint32_t begin, chosen;         /* its first step; the step of its If */
};

struct sim {
	const om_prog *p;
	const om_plan *plan;
	om_session *session;
	om_arena *mem;
	struct om_budget *budget;       /* of all arenas of the simulation */
	om_interval_map *state;
	struct home *home;              /* by value id, like all arrays except scratch */
	struct content *content;
	const om_alias **alias;
	struct chain *chain;
	const om_plan_multi_view **view;
	const om_plan_multi_view **loop_view; /* all multi-views, grouped by the loop whose iterations they
					         follow */
	uint32_t *loop_views;           /* by op id: start of its range in loop_view */
	uint32_t *mover;                /* the first value on its alias chain that has a multi-view */
	uint64_t *delta;                /* offset in that value */
	uint32_t *follower;             /* values grouped by mover; those of value k start at follow[k] */
	uint32_t *follow;
	uint32_t *first, *last;         /* first and last step in which the value was read or written */
	uint32_t *since;                /* the step that wrote its content; for what an iteration finds written, its
					   first step */
	uint32_t *iteration_end;            /* for parameters of loops: the step in which an iteration ends; 0:
					   not a parameter of a loop */
	uint32_t *victim;               /* by output: the input that it overwrites */
	bool *is_input, *is_output;     /* of the graph */
	const om_scratch **scratch;     /* by op id */
	const uint64_t *most;           /* by value id: as om_planned_max_sizes_new(); NULL: not asked for yet */
	om_op_look look;                /* questions about the op at hand */
	uint32_t step;                  /* the next step */
	uint32_t now;
	uint32_t node;                  /* the op of the graph that runs */
	uint64_t nrun;                  /* number of ops simulated */
	const struct branch *branch;    /* the innermost branch that runs; NULL: none */
	uint32_t *gap;                  /* a step in which the value was used although its lifetime in the
					   plan does not lead there; UINT32_MAX: none */
	struct log *log;                /* records writes inside of a branch; NULL outside */
	const bool *any_trip_count;     /* by op id: the loop is simulated for any number of iterations; NULL: none is */
	om_parallel_check *parallel_check;        /* NULL: the plan is for the order of the file only */
};

#define BAD(c, ...)  om_fail((c)->session, OM_BADPLAN, __VA_ARGS__)

/* Report an error in an op or, if op is NULL, in the graph. */
#define BAD_AT(c, op, ...)                                                     \
	((op) ? om_op_fail((c)->session, OM_BADPLAN, (op), __VA_ARGS__)        \
	      : om_fail((c)->session, OM_BADPLAN, "the graph: " __VA_ARGS__))

/* A new arena within the budget. */
om_arena *om_sim_arena(const struct sim *c);

struct text { char s[256]; };

struct text om_sim_bytes_text(const struct sim *c, uint32_t space, uint64_t lower, uint64_t upper);
struct text om_sim_location_text(const struct sim *c, const om_value *v);
struct text om_sim_owner_text(const struct sim *c, uint32_t owner);

/* ---- verify_memory.c ---- */

bool om_sim_is_watched(const struct sim *c, const om_value *v);
bool om_sim_is_view(const struct sim *c, const om_value *v);
/* Is `v` intact at all of its possible locations? */
bool om_sim_is_there(const struct sim *c, const om_value *v, om_owned_interval *bad);
/* `v` is used in this step, or gets its content in it: its lifetime has to lead there. */
void om_sim_touch(struct sim *c, const om_value *v);
void om_sim_begin(struct sim *c, const om_value *v);
/* Assign bytes to a new owner. */
void om_sim_set(struct sim *c, const om_owned_interval *want);
om_owned_interval om_sim_scratch_range(const struct sim *c, const om_op *op);

/* Check that `v` is intact; om_sim_read() also records a use in this step. */
om_status om_sim_check_whole(struct sim *c, const om_op *op, const om_value *v);
om_status om_sim_read(struct sim *c, const om_op *op, const om_value *v);
/* Make `v` the owner of its bytes. */
void om_sim_take(struct sim *c, const om_value *v, bool stale);
om_status om_sim_check_writable(struct sim *c, const om_op *op, const om_value *v);
om_status om_sim_write(struct sim *c, const om_op *op, const om_value *v);
/* Check that a value written in this step was not overwritten in the same step. */
om_status om_sim_check_written(struct sim *c, const om_op *op, const om_value *v);
om_status om_sim_write_outputs(struct sim *c, const om_op *op);
om_status om_sim_run_plain(struct sim *c, const om_op *op);

/* ---- verify_control_flow.c ---- */

/* Simulate a block.  Afterwards `now` is the step in which the block's results are read. */
om_status om_sim_run_block(struct sim *c, const om_block *b);
/* Number of steps of a block, its end included. */
uint32_t om_sim_steps(const om_block *b);

/* Copies of elements between locations, all in one step and semantically parallel.  `from` is NULL if
 * the elements come from elsewhere, `to` is NULL if they are only read. */
struct moves {
	om_arena *mem;
	struct move {
		const om_value *from, *to;
		struct home home;       /* location and content of `from` when it was read */
		struct content is;
	} *move;
	size_t n, cap;
	bool is_quiet;                  /* reads are not uses: the value was live all the time */
};

/* Are two values at the same location, in every run? */
bool om_sim_is_same_place(const struct home *a, const struct home *b);
void om_sim_add_move(struct moves *m, const om_value *from, const om_value *to);
/* Read all sources before any destination is written. */
om_status om_sim_read_moves(struct sim *c, const om_op *op, struct moves *m);
/* Perform the moves: a source at the location of its destination becomes the destination; the rest is
 * copied. */
om_status om_sim_run_moves(struct sim *c, const om_op *op, struct moves *m);

/* ---- verify_loop.c ---- */

/* Performs the static checks of multi-views. */
om_status om_sim_check_views(struct sim *c);
om_status om_sim_run_loop(struct sim *c, const om_op *op);

/* ---- verify_collectives.c ---- */

/* Check that collectives keep the order of the program; for a plan that must hold in every order, note that
 * they must be ordered by data. */
om_status om_sim_check_collectives(struct sim *c);

/* ---- verify_reserved.c ---- */

/* After the run: check that placements reserve the bytes of every location that a value moved to. */
om_status om_sim_check_kept(struct sim *c);

#endif
