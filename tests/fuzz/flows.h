/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs with nested If, Loop and Scan: generated once, then printed in two languages and
 * computed by an interpreter that shares no code with the executor.
 *
 * All results are exact in double precision, so that every implementation of IEEE 754 gets the same
 * numbers: sums, products, selection, and data movement. */
#ifndef OM_FLOWS_H
#define OM_FLOWS_H

#include <stdio.h>

#include "onnxmem/plan.h"

enum { MAX_DIMS = 5, MAX_ARGS = 16, MAX_RESULTS = 8 };

enum type { F32, F64, I64, BOOL, NTYPE };

/* -1: unknown before the run. */
struct dims {
	int rank, dim[MAX_DIMS];
};

enum what {
	NEG, ABS, RELU, IDENTITY, NOT,                    /* one operand */
	ADD, SUB, MUL, MAX, MIN, LESS, AND,               /* two, with broadcasting */
	CLIP,                                             /* into [-LIMIT, LIMIT] */
	WHERE, CAST, TRANSPOSE, RESHAPE, CONCAT, SLICE, TURN, REDUCE_MAX,
	CONST, IF, LOOP, SCAN, NWHAT,
};

enum { LIMIT = 8 };

struct block;

/* One op.  `arg` holds, by op: CAST the type; TRANSPOSE the permutation; RESHAPE the dims; CONCAT the
 * axis; SLICE axis, from, to; TURN (reversal of an axis) the axis; REDUCE_MAX the axis, which is kept
 * with length 1, or -1: all axes, to a scalar; SCAN: axes and directions of the `nscan` inputs, then of
 * the outputs. */
struct node {
	enum what what;
	int nin, nout, narg, nscan;
	int *in, *out;            /* variables; an input may be -1: omitted */
	int *arg;
	double *data;             /* of CONST */
	struct block *body[2];
	struct node *next;
};

struct block {
	int nparam, nresult;
	int *param, *result;
	struct node *first, *last;
	struct block *outer;
	bool is_step;             /* of a Scan: the dims of its results are known */
};

struct var {
	enum type type;
	struct dims dims;
	double bound;             /* maximum magnitude of the elements */
	bool is_declared;         /* a parameter that is printed with its dims */
	const struct block *home;
};

struct flow {
	om_arena *mem;
	struct var *var;
	size_t nvar, cap;
	struct block *main;
};

struct flow *flow_make(om_arena *mem, uint64_t seed);
/* The same with few ops, of which at most two have bodies. */
struct flow *flow_make_small(om_arena *mem, uint64_t seed);
int64_t flow_count(const struct dims *d);

/* Whether a smaller program shows the fault, too. */
typedef bool flow_has_fault(void *arg, struct flow *f);
struct flow *flow_shrink(om_arena *mem, struct flow *f, flow_has_fault *has_fault, void *arg);

/* A copy of the program's plan with one, possibly harmless, fault; `what` receives its description. */
om_plan *flow_fault(const om_prog *p, uint64_t seed, om_arena *mem, const char **what);

/* Print in this project's language, and in the language of the onnx package's parser. */
void flow_print(const struct flow *f, FILE *to);
void flow_print_onnx(const struct flow *f, FILE *to);

struct number {
	enum type type;
	struct dims dims;
	double *x;
};

/* The element type of each of the types, and a number as a tensor. */
extern const om_dtype flow_dtype[NTYPE];
om_tensor flow_tensor(const struct number *x, om_arena *mem);

/* The events of a run, in order: variables that were read, then variables that were written.  `op` is
 * the op, at its start; NULL if values enter or leave a body, and at the end of an op with bodies. */
struct event {
	const struct node *op;
	const int *read, *written;
	int nread, nwritten;
};

struct trace {
	struct event *event;
	size_t n, cap;
};

/* Compute the results of the main block, allocated in `mem`; NULL: a loop does not terminate. `trace`
 * may be NULL. */
struct number *flow_eval(const struct flow *f, const struct number *in, struct trace *trace, om_arena *mem);

/* Whether the `live` pass reports all values as live that a run with these inputs still reads. */
om_status flow_check_live(om_session *s, om_prog *p, const struct flow *f, const struct number *in, om_arena *mem);

#endif
