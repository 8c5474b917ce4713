/* What is told about a plan: one struct of numbers, several ways to show it.
 *
 * Everything is taken from the program and its plan; how it was packed is not
 * asked again. */
#ifndef OM_REPORT_H
#define OM_REPORT_H

#include <stdio.h>

#include "onnxmem/pass.h"
#include "onnxmem/plan.h"

typedef enum om_box_kind { OM_BOX_OWN, OM_BOX_INPLACE, OM_BOX_VIEW, OM_BOX_SCRATCH } om_box_kind;

/* Where a value lies for a while that moves with the rounds of a loop. */
typedef struct om_loop_view {
	uint32_t arena;
	uint64_t offset, bytes;
	double from, to;         /* steps: the loop's, divided among the rounds that are shown */
	const char *when;        /* "rounds 1, 3, 5…" */
} om_loop_view;

/* A value, or the scratch of an operator, at its place in the arena. */
typedef struct om_box {
	const char *name;
	om_box_kind kind;
	uint32_t arena;
	uint64_t offset, bytes;
	uint32_t first, last;    /* steps, inclusive */
	uint32_t buffer;         /* index */
	const om_value *value;   /* NULL for scratch, */
	const om_op *op;         /* whose op this is; else NULL */
	const om_value *source;  /* what it is a view of, or computed over; else NULL */
	om_loop_view *turn;           /* where it goes with the rounds of a loop: its own place is what is
	                            kept for all that take turns there */
	uint32_t nturn;
} om_box;

/* Storage that boxes share. */
typedef struct om_report_buffer {
	const char *name;        /* of the value that owns it */
	uint32_t arena;
	uint64_t offset, bytes;
	om_interval *live;       /* bytes in use, as in om_usage: those of a slice have the same steps */
	uint32_t nlive;
} om_report_buffer;

typedef struct om_report_live {
	const char *name;
	uint64_t bytes;
} om_report_live;

/* The most in use while the ops of one part of a training step run. */
typedef struct om_report_phase {
	om_phase phase;
	uint32_t ops, step;      /* step: the first in which it is */
	const om_op *op;         /* that runs then */
	uint64_t bytes;
} om_report_phase;

/* What another way of sharing would need, in an order of the ops, in one arena. */
typedef struct om_report_strategy {
	const char *order;       /* "file"; "any" where the plan holds in all of them */
	const char *name;
	uint64_t bytes, bound;
	om_pack_status status;
	double ms;               /* of this strategy */
	double order_ms;         /* of what all of an order share: the order, views, in-place */
} om_report_strategy;

/* The same on the buffers of the plan: a key of the JSON, "pool_bytes". */
typedef struct om_report_other {
	const char *key;
	uint64_t bytes;
} om_report_other;

/* A pass that ran, and what it counted. */
typedef struct om_report_pass {
	const om_pass *pass;
	const uint64_t *counter; /* by place in pass->counters */
} om_report_pass;

typedef struct om_report om_report;
struct om_report {
	const om_prog *prog;
	const char *model;       /* the file's name, without its folder */
	uint32_t ops, values;
	uint64_t weights_bytes, io_bytes;   /* a result in the memory of an input counts once */
	uint64_t tied_bytes;     /* of such results */
	uint64_t scratch_bytes;  /* of the operator that wants most; in the arena */
	uint64_t naive_bytes, file_order_bytes, arena_bytes, lower_bound_bytes;
	uint64_t *base;          /* by arena: where it starts, were they one behind the other */
	om_pack_status status;
	double gap;              /* arena over bound, less one */
	uint32_t steps;

	uint32_t peak_step;
	const om_op *peak_op;    /* NULL: where the graph ends */
	bool parallel_safe;         /* there is no such step: `live` is what is needed at once
	                            in some order or other */
	om_report_live *live;    /* what is alive there, largest first */
	uint32_t nlive;

	uint32_t again;          /* ops that run again */
	double again_flops, flops;   /* of these; of all others */
	om_report_phase phase[OM_UPDATE];
	uint32_t nphase;         /* 0: no op says what part it is, or the plan is for all orders */

	om_box *box;             /* by first step */
	om_box *visitor;         /* values that are in the arena in some rounds of a loop, but not
	                            at home in it: no buffer, only turns */
	uint32_t nvisitor;
	om_report_buffer *buffer;
	uint32_t nbox, nbuffer;
	uint32_t *box_of_value;  /* by value id; UINT32_MAX: none */
	uint32_t *first_of_buffer, *next_of_buffer;   /* the boxes of a buffer; UINT32_MAX ends */

	om_report_strategy *strategy;   /* those of an order in a row */
	uint32_t nstrategy;
	om_report_other *other;
	uint32_t nother;
	const om_report_pass *ran;      /* passes that made the plan, in order; may be NULL */
	size_t nran;
	double plan_ms;
	unsigned width;          /* columns of the terminal that it is shown on; 0: any number */
};

/* Needs p->plan.  The report and its parts come from `mem`. */
om_report *om_report_new(om_prog *p, const char *path, om_arena *mem);

void om_report_text(const om_report *r, FILE *to);   /* for people */
om_status om_report_json(const om_report *r, om_session *s, FILE *to);
void om_report_csv(const om_report *r, FILE *to);    /* a packing problem and its solution */
void om_report_svg(const om_report *r, FILE *to);    /* x is the step, y the address */
/* The same and all the numbers as a page for a browser. */
om_status om_report_html(const om_report *r, om_session *s, om_arena *mem, FILE *to);
void om_report_ascii(const om_report *r, FILE *to);   /* the same in letters */

/* For other programs.  `path` is that of the header, after which its names are called;
 * `digest` that of the model, or "". */
void om_report_c_header(const om_report *r, om_arena *mem, const char *path, const char *digest, FILE *to);
om_status om_report_tflm(const om_report *r, om_session *s, om_arena *mem, FILE *to);
om_status om_report_ort(const om_report *r, om_session *s, om_arena *mem, const char *digest, FILE *to);

/* Fill in om_box.turn, and find visitors. */
void om_report_loop_views(om_report *r, om_arena *mem);

/* Where a value lies from round to round, in words. */
const char *om_report_moving(const om_prog *p, const om_plan_multi_view *v, om_arena *mem);

/* Bytes of the arenas in use, by step. */
uint64_t *om_report_in_use(const om_report *r, om_arena *mem);

/* Why a value has storage of its own, or whose. */
const char *om_report_explain(const om_report *r, om_arena *mem, const om_box *x);

/* By what part `bytes` are more than the bound. */
double om_report_gap(uint64_t bytes, uint64_t bound);

/* "9.19 MiB"; written to `out`. */
const char *om_bytes_text(uint64_t bytes, char out[32]);

/* Characters of UTF-8, not bytes. */
size_t om_letters(const char *s);

/* `s` with whatever is no UTF-8, or no character for a text, replaced. */
const char *om_clean_text(om_arena *mem, const char *s);

#endif
