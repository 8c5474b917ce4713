/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of a plan: one struct of numbers, several output formats.
 *
 * Everything is derived from the program and its plan; nothing is packed again.  All steps of a report are those of
 * a run (om_run_steps): ops that are folded have none.
 */
#ifndef OM_REPORT_H
#define OM_REPORT_H

#include <stdio.h>

#include "ir/steps.h"
#include "onnxmem/pass.h"
#include "onnxmem/plan.h"

typedef enum om_box_kind { OM_BOX_OWN, OM_BOX_INPLACE, OM_BOX_VIEW, OM_BOX_SCRATCH } om_box_kind;

/* An address interval of a value that rotates buffers in a loop. */
typedef struct om_loop_view {
	uint32_t arena;
	uint64_t offset, bytes;
	double from, to;         /* steps: those of the loop, divided among the iterations shown */
	const char *when;        /* "iterations 1, 3, 5…" */
} om_loop_view;

/* A value in a range of its lifetime, or the scratch of an operator, at its address in the arena. */
typedef struct om_box {
	const char *name;
	om_box_kind kind;
	uint32_t arena;
	uint64_t offset, bytes;
	uint32_t first, last;    /* steps, inclusive */
	bool is_later;           /* there is a box for an earlier range of the value */
	uint32_t buffer;         /* index */
	const om_value *value;   /* NULL for scratch, */
	const om_op *op;         /* the op that uses it; else NULL */
	const om_value *source;  /* the value it is a view of, or computed over; else NULL */
	/* its addresses by iteration of a loop; its own range is reserved for all values that
	 * rotate through it */
	om_loop_view *view;
	uint32_t nview;
} om_box;

/* Storage that boxes share. */
typedef struct om_report_buffer {
	const char *name;        /* of the value that owns it */
	uint32_t arena;
	uint64_t offset, bytes;
	om_interval *live;       /* bytes in use, as in om_usage: the intervals of a slice have the same steps */
	uint32_t nlive;
} om_report_buffer;

typedef struct om_report_live {
	const char *name;
	uint64_t bytes;
} om_report_live;

/* The peak of one phase of a training step. */
typedef struct om_report_phase {
	om_phase phase;
	uint32_t ops, step;      /* step: the first at which the peak is reached */
	const om_op *op;         /* the op at that step */
	uint64_t bytes;
} om_report_phase;

/* The arena size of another strategy, for one order of the ops, in one arena. */
typedef struct om_report_strategy {
	const char *schedule;    /* "original"; "parallel-safe" if the plan is valid for every order */
	const char *name;
	uint64_t bytes, bound;
	om_pack_status status;
	bool is_limited;         /* its search ended at its limit */
	double ms;               /* of this strategy */
	double schedule_ms;      /* shared by the strategies of an order: the order, views, in-place */
} om_report_strategy;

/* The plan for a number of workers. */
typedef struct om_report_streams {
	uint32_t workers, waits;
	uint64_t bytes, bound;   /* of its arenas */
	double speedup;          /* times one worker, by the model of times */
} om_report_streams;

/* The same for the buffers of the plan: a key of the JSON, "pool_best_fit_bytes". */
typedef struct om_report_other {
	const char *key;
	uint64_t bytes;
} om_report_other;

/* A pass that ran, and what it counted. */
typedef struct om_report_pass {
	const om_pass *pass;
	const uint64_t *counter; /* by place in pass->counters */
} om_report_pass;

/* The sizes of another plan of the same model. */
typedef struct om_report_ours {
	uint64_t arena_bytes, lower_bound_bytes, total_bytes;
	const char *status;      /* see om_plan_arena_status() */
} om_report_ours;

/* A state: an output that replaces an input in the next run. */
typedef struct om_report_state {
	const om_value *input, *output;
	const char *reason;      /* why the output is not in the memory of the input: a clause; NULL: it is */
	uint64_t copied_bytes;   /* of the previous contents, which a run writes again; in the memory of the input, of the rows
	                            of a buffer that are copied for ops which read them one after the other */
} om_report_state;

typedef struct om_report om_report;
struct om_report {
	const om_prog *prog;     /* NULL: buffers of a table, which have only a picture */
	const om_plan *plan;     /* that of the program; of a table, its arenas alone */
	const char *model;       /* the file's name, without its folder */
	uint32_t ops, values;
	uint64_t weights_bytes, io_bytes;   /* an output in the memory of an input counts once */
	uint64_t io_alias_bytes; /* of such outputs */
	om_report_state *state;  /* states that the program declares */
	uint32_t nstate;
	uint64_t state_bytes, state_copied_bytes; /* of their inputs; of these, copied by each run */
	uint64_t arena_io_bytes; /* inputs and outputs in the arenas */
	uint64_t total_bytes;    /* arenas, weights, inputs and outputs */
	const om_value **unsized; /* inputs and outputs that are not in the total, as om_plan_unsized() */
	uint32_t nunsized;
	uint32_t bounded;        /* values whose size a run decides, in the arenas with the most that they may take */
	uint64_t scratch_bytes;  /* the largest scratch of an operator; in the arena */
	uint64_t naive_bytes, original_order_bytes, arena_bytes, lower_bound_bytes;
	uint64_t order_bound_bytes; /* that of the only arena; 0: not known */
	om_traffic *traffic;     /* as om_plan_traffic() */
	uint64_t *base;          /* by arena: its start if the arenas are stacked */
	om_pack_status status;   /* of all arenas */
	const char *status_text; /* of all arenas: see om_plan_arena_status() */
	bool is_limited;         /* a search of the packing ended at its limit */
	double gap;              /* arena over bound, minus one */
	om_run_steps run;        /* the steps of a run, and what they are in the plan */
	uint32_t steps;          /* how many */

	uint32_t peak_step;
	const om_op *peak_op;    /* NULL: at the end of the graph */
	bool parallel_safe;      /* valid in any order: there is no peak step, and `live` may be live at once */
	om_report_live *live;    /* the buffers live at the peak, largest first */
	uint32_t nlive;

	uint32_t rematerialized; /* rematerialized ops */
	double rematerialized_flops, flops;   /* of these; of all others */
	om_report_phase phase[OM_UPDATE];
	uint32_t nphase;         /* 0: no op has a phase, or the plan is valid in any order */

	om_box *box;             /* sorted by first step */
	om_box *visitor;         /* values that are in the arena only in some iterations; no buffer */
	uint32_t nvisitor;
	om_report_buffer *buffer;
	uint32_t nbox, nbuffer;
	uint32_t *box_of_value;  /* by value id; UINT32_MAX: none */
	uint32_t *first_of_buffer, *next_of_buffer;   /* the boxes of a buffer; UINT32_MAX ends */

	om_report_streams *streams;     /* other plans, for numbers of workers */
	uint32_t nstreams;
	om_report_strategy *strategy;   /* grouped by order */
	uint32_t nstrategy;
	om_report_other *other;
	uint32_t nother;
	const om_report_pass *ran;      /* passes that made the plan, in order; may be NULL */
	size_t nran;
	double plan_ms;
	const char *origin;      /* where the plan comes from: "stored in the model"; NULL: it was made now */
	const char *fault;       /* of such a plan: why it is not valid; NULL: it is */
	const om_report_ours *ours; /* of a plan by another planner: a plan that was made now; NULL: none */
	unsigned width;          /* columns of the terminal; 0: unlimited */
};

/* The states that `p` declares, of which `*n` are stored, as p->plan has them; allocated from `mem`. */
om_report_state *om_report_states(const om_prog *p, om_arena *mem, uint32_t *n);

/* "valid in any order", or "valid for 2 streams", of a plan that is parallel-safe. */
const char *om_report_orders(const om_report *r, om_arena *mem);

/* Times that streams are as fast as one worker, by the model of times; 0: not known. */
double om_streams_speedup(const om_worker_streams *s);

/* Requires p->plan.  The report and its parts are allocated from `mem`. */
om_report *om_report_new(om_prog *p, const char *path, om_arena *mem);

/* A report for om_report_svg() and om_report_ascii() alone: buffers with offsets in pools with results, each with a
 * name and a lifetime.  It refers to all of them. */
om_report *om_report_of_packing(const om_problem *o, const char *const *name, const char *path, om_arena *mem);

/* Can a report be made of the plan of `p`, which is not valid?  OM_BADPLAN if it has a placement outside of its arenas,
 * or a value that is not within the storage that it shares. */
om_status om_report_check(om_session *s, const om_prog *p);

void om_report_text(const om_report *r, FILE *to);   /* human-readable */
/* What operators without a definition were taken for, a line each. */
void om_report_op_rules(const om_prog *p, om_arena *mem, FILE *to);
om_status om_report_json(const om_report *r, om_session *s, FILE *to);
void om_report_csv(const om_report *r, FILE *to);    /* a packing problem and its solution */
void om_report_svg(const om_report *r, FILE *to);    /* x is the step, y the address */
/* The plan and all numbers as an HTML page. */
om_status om_report_html(const om_report *r, om_session *s, om_arena *mem, FILE *to);
void om_report_ascii(const om_report *r, FILE *to);   /* the picture as ASCII art */

/* For other programs.  `path` is that of the header, from which its names are
 * derived; `digest` is that of the model, or "". */
void om_report_c_header(const om_report *r, om_arena *mem, const char *path, const char *digest, FILE *to);
om_status om_report_tflm(const om_report *r, om_session *s, om_arena *mem, FILE *to);
/* In the order of the tensors of the .tflite file `path`, by their names.  OM_UNSUPPORTED if none has the name of a value in
 * the arena, if sizes differ, or if tensors of the file that are in use at the same time share memory in the plan. */
om_status om_report_tflm_names(const om_report *r, om_session *s, om_arena *mem, const char *path, FILE *to);
om_status om_report_ort(const om_report *r, om_session *s, om_arena *mem, const char *digest, FILE *to);

/* `text` as part of an identifier of C, in capitals or unchanged. */
const char *om_c_name(om_arena *mem, const char *text, bool capitals);

/* The `most` largest values of a plan with formulas, with the formulas of their sizes. */
void om_report_largest(const om_report *r, om_arena *mem, uint32_t most, FILE *to);
/* Formulas of the sizes of a plan with ranges; nothing if none were looked for. */
void om_report_formulas(const om_report *r, om_arena *mem, FILE *to);
/* The same as macros of a C header whose names begin with `upper`; `name` has those of values, by value id. */
void om_report_c_formulas(const om_report *r, om_arena *mem, const char *upper, const char *const *name, FILE *to);
/* The steps of `op`: with bodies, from that in which it reads its inputs to that in which its outputs are complete. */
om_steps om_report_steps(const om_report *r, const om_op *op);

/* The steps in which a value of the plan is live, from the first to the last. */
om_steps om_report_life(const om_report *r, const om_value *v);

/* The op that runs in a step; NULL: results of the graph are read. */
const om_op *om_report_op(const om_report *r, uint32_t step);

/* Fill in om_box.view and om_report.visitor. */
void om_report_loop_views(om_report *r, om_arena *mem);

/* The location of a value by iteration, in words. */
const char *om_report_moving(const om_prog *p, const om_plan_multi_view *v, om_arena *mem);

/* Bytes in use in all arenas, by step. */
uint64_t *om_report_in_use(const om_report *r, om_arena *mem);

/* Does the use take place in a run, and in which step? */
bool om_report_use_step(const om_report *r, const om_use *u, uint32_t *step);

/* The first step after `after` in which `v` is read, and the op that reads it: NULL for a result.  UINT32_MAX: none. */
uint32_t om_report_reads(const om_report *r, const om_value *v, uint32_t after, const om_op **op);

/* The first step after the last one before `step` in which `v` is computed or read: 0 if there is none. */
uint32_t om_report_idle_since(const om_report *r, const om_value *v, uint32_t step);

/* Which output of its op `v` is. */
uint32_t om_report_output(const om_value *v);

/* Why output `out` of `op` is not computed over input `in`, or that it is: a phrase about the input. */
const char *om_report_overwrite(const om_report *r, om_arena *mem, const om_op *op, uint32_t out, uint32_t in);

/* A word for the same reason, for programs. */
const char *om_report_overwrite_key(const om_report *r, const om_op *op, uint32_t out, uint32_t in);

/* Why a value has storage of its own, or which storage it shares. */
const char *om_report_explain(const om_report *r, om_arena *mem, const om_box *x);

/* The excess of `bytes` over the bound, as a fraction of the bound. */
double om_report_gap(uint64_t bytes, uint64_t bound);

/* That `n` values have a place for the most that their operators may give, as data decide their size. */
const char *om_bounded_text(om_arena *mem, uint32_t n);

/* What an optimal plan is optimal for. */
const char *om_report_scope(const om_report *r);

/* "9.19 MiB"; written to `out`. */
const char *om_bytes_text(uint64_t bytes, char out[32]);

/* Write `text` broken at `width`, starting at column `at`; further lines start at `indent`. */
void om_wrap(FILE *to, const char *text, unsigned at, unsigned indent, unsigned width);

/* A name in a table, cut to fit on the terminal after `before` columns. */
const char *om_report_name(const om_report *r, om_arena *mem, const char *name, unsigned before);

/* Characters of UTF-8, not bytes. */
size_t om_letters(const char *s);

/* `s`, or its start and end with an ellipsis between them, in at most `most` characters. */
const char *om_text_shorter(om_arena *mem, const char *s, size_t most);

/* `s` with invalid UTF-8 and control characters replaced. */
const char *om_clean_text(om_arena *mem, const char *s);

#endif
