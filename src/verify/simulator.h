/* Inside the verifier: the state of a run, and what its files tell each other.
 *
 * verify.c checks what can be seen without a run and starts the walk; verify_memory.c
 * reads, writes and runs plain ops; verify_control_flow.c goes through blocks and branches;
 * verify_loop.c goes round loops; verify_reserved.c looks at what they moved. */
#ifndef OM_SIMULATOR_H
#define OM_SIMULATOR_H

#include "onnxmem/opdef.h"
#include "onnxmem/plan.h"
#include "base/interval_map.h"
#include "verify/verify_partial_order.h"

/* Bytes [from, to) of a content, which `who` wrote: from its byte `at` on. */
struct piece {
	uint64_t from, to;
	uint32_t who;
	uint64_t at;
};

/* What the elements of a value are: bytes that `who` wrote, from `at` on, where
 * who is OM_NOBODY before it is computed.  Or, where there are pieces, those from
 * `at` on: an op found parts of its output where they go. */
struct content {
	uint32_t who;
	uint64_t at;
	const struct piece *piece;
	size_t n;
};

/* One more place in which a value may lie, where that depends on the run. */
struct other {
	uint32_t space;
	uint64_t lower;
	struct content is;
};

/* Where a value lies.  Spaces are the arenas, then one for each value. */
struct home {
	bool tracked;         /* has bytes whose place is known */
	bool tied;            /* on the way to its storage lies a tie */
	bool fixed;           /* a constant that stays where it is: nothing can happen to it */
	uint32_t space;
	uint64_t lower;
	uint64_t bytes;       /* its elements */
	uint64_t storage;     /* what a write takes: bytes, rounded up for an own place */
	const struct other *other;
	uint32_t nother;
};

struct log {
	om_owned_interval *r;
	size_t n, cap;
};

struct sim {
	const om_prog *p;
	const om_plan *plan;
	om_session *session;
	om_arena *mem;
	om_interval_map *state;
	struct home *home;              /* by value id, like all but scratch */
	struct content *content;
	const om_alias **alias;
	const om_plan_multi_view **view;
	const om_plan_multi_view **loop_view; /* all of them, by the loop whose rounds they follow */
	uint32_t *loop_views;           /* by op id: where its own start in loop_view */
	uint32_t *mover;                /* the first on its chain of aliases that has a view */
	uint64_t *delta;                /* bytes into that */
	uint32_t *follower;             /* values by mover, those of value k from follow[k] on */
	uint32_t *follow;
	uint32_t *first, *last;         /* steps in which it was read or written */
	uint32_t *round_end;            /* of parameters: the step in which a round of theirs
	                                   ends; 0: they have none */
	uint32_t *victim;               /* of an output: the input that it lies over */
	bool *is_input, *is_output;     /* of the graph */
	const om_scratch **scratch;     /* by op id */
	uint32_t step;                  /* the next one */
	uint32_t now;
	uint32_t node;                  /* which op of the graph runs */
	uint64_t nrun;                  /* ops that were walked */
	struct log *log;                /* what is written inside of a branch; NULL outside */
	om_parallel_check *any_order;        /* NULL: the plan is for the order of the file */
};

#define BAD(c, ...)  om_fail((c)->session, OM_BADPLAN, __VA_ARGS__)

/* In the name of an op, or, where op is NULL, of the graph. */
#define BAD_AT(c, op, ...)                                                     \
	((op) ? om_op_fail((c)->session, OM_BADPLAN, (op), __VA_ARGS__)        \
	      : om_fail((c)->session, OM_BADPLAN, "the graph: " __VA_ARGS__))

struct text { char s[256]; };

struct text om_sim_bytes_text(const struct sim *c, uint32_t space, uint64_t lower, uint64_t upper);
struct text om_sim_location_text(const struct sim *c, const om_value *v);
struct text om_sim_owner_text(const struct sim *c, uint32_t who);

/* ---- verify_memory.c ---- */

bool om_sim_is_watched(const struct sim *c, const om_value *v);
bool om_sim_is_view(const struct sim *c, const om_value *v);
/* Is `v` whole where it lies, wherever that may be? */
bool om_sim_is_there(const struct sim *c, const om_value *v, om_owned_interval *bad);
void om_sim_touch(struct sim *c, const om_value *v);
/* Bytes get another owner. */
void om_sim_set(struct sim *c, const om_owned_interval *want);
om_owned_interval om_sim_scratch_range(const struct sim *c, const om_op *op);

/* `v` is whole; a read is also a use in this step. */
om_status om_sim_check_whole(struct sim *c, const om_op *op, const om_value *v);
om_status om_sim_read(struct sim *c, const om_op *op, const om_value *v);
/* The bytes of `v` become its own. */
void om_sim_take(struct sim *c, const om_value *v, bool stale);
om_status om_sim_check_writable(struct sim *c, const om_op *op, const om_value *v);
om_status om_sim_write(struct sim *c, const om_op *op, const om_value *v);
/* What was written in this step is still there. */
om_status om_sim_check_written(struct sim *c, const om_op *op, const om_value *v);
om_status om_sim_write_outputs(struct sim *c, const om_op *op);
om_status om_sim_run_plain(struct sim *c, const om_op *op);

/* ---- verify_control_flow.c ---- */

/* Afterwards `now` is the step in which the block's results are read. */
om_status om_sim_run_block(struct sim *c, const om_block *b);
/* Steps of a block, its end included. */
uint32_t om_sim_steps(const om_block *b);

/* Elements that go from one place to another: all in one step, as if at once.  `from`
 * NULL where they come from elsewhere, `to` NULL where they are only read. */
struct moves {
	om_arena *mem;                  /* NULL: that of the whole walk */
	struct move {
		const om_value *from, *to;
		struct home home;       /* of `from`, and what it held, when it was read */
		struct content is;
	} *move;
	size_t n, cap;
	bool is_quiet;                  /* reading is no use: the value was there all the time */
};

void om_sim_add_move(struct sim *c, struct moves *m, const om_value *from, const om_value *to);
/* First all are looked at, as they lie then. */
om_status om_sim_read_moves(struct sim *c, const om_op *op, struct moves *m);
/* What lies where it goes becomes the other value; the rest is copied. */
om_status om_sim_run_moves(struct sim *c, const om_op *op, struct moves *m);

/* ---- verify_loop.c ---- */

/* Views that can be checked without a run. */
om_status om_sim_check_views(struct sim *c);
om_status om_sim_run_loop(struct sim *c, const om_op *op);

/* ---- verify_reserved.c ---- */

/* After the run: wherever a value moved to, places hold its bytes. */
om_status om_sim_check_kept(struct sim *c);

#endif
