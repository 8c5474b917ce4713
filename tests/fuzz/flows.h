/* Random programs with nested If, Loop and Scan: made once, then printed in two
 * languages and computed by an interpreter that has nothing in common with the
 * executor.
 *
 * All that ops compute is exact in double, so that everybody who follows IEEE
 * 754 gets the same numbers: sums, products, choices, and moves of elements. */
#ifndef OM_FLOWS_H
#define OM_FLOWS_H

#include <stdio.h>

#include "onnxmem/plan.h"

enum { MAX_DIMS = 5, MAX_ARGS = 16, MAX_RESULTS = 8 };

enum type { F32, F64, I64, BOOL, NTYPE };

/* What is not known before the run is -1. */
struct dims {
	int rank, dim[MAX_DIMS];
};

enum what {
	NEG, ABS, RELU, IDENTITY, NOT,                    /* one operand */
	ADD, SUB, MUL, MAX, MIN, LESS, AND,               /* two, broadcast */
	CLIP,                                             /* into [-LIMIT, LIMIT] */
	WHERE, CAST, TRANSPOSE, RESHAPE, CONCAT, SLICE, TURN, REDUCE_MAX,
	CONST, IF, LOOP, SCAN, NWHAT,
};

enum { LIMIT = 8 };

struct block;

/* One op.  `arg` are, by op: CAST the type; TRANSPOSE the permutation; RESHAPE
 * the dims; CONCAT the axis; SLICE axis, from, to; TURN (the rows of an axis in
 * reverse) the axis; REDUCE_MAX the axis, which stays as 1; -1 all, to a scalar;
 * SCAN: `nscan` inputs' axes and directions, then the outputs'. */
struct node {
	enum what what;
	int nin, nout, narg, nscan;
	int *in, *out;            /* variables; an input may be -1: left out */
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
	bool is_step;             /* of a Scan: its results' dims are known */
};

struct var {
	enum type type;
	struct dims dims;
	double bound;             /* no element is further from zero */
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
int64_t flow_count(const struct dims *d);

/* A smaller program that has the fault, too. */
typedef bool flow_has_fault(void *arg, struct flow *f);
struct flow *flow_shrink(om_arena *mem, struct flow *f, flow_has_fault *has_fault, void *arg);

/* The plan of the program with one fault, or what may be one; `what` it is. */
om_plan *flow_fault(const om_prog *p, uint64_t seed, om_arena *mem, const char **what);

/* As text of ours, and in the language of the onnx package's parser. */
void flow_print(const struct flow *f, FILE *to);
void flow_print_onnx(const struct flow *f, FILE *to);

struct number {
	enum type type;
	struct dims dims;
	double *x;
};

/* What happened in a run, in order: variables that were read, then others that were
 * written.  `op` is the op that did it, as it starts; NULL where values enter or
 * leave a body, and where an op with bodies ends. */
struct event {
	const struct node *op;
	const int *read, *written;
	int nread, nwritten;
};

struct trace {
	struct event *event;
	size_t n, cap;
};

/* The results of the main block, from `mem`; NULL where a loop does not end.
 * `trace` may be NULL. */
struct number *flow_eval(const struct flow *f, const struct number *in, struct trace *trace, om_arena *mem);

/* Are all values that a run with these inputs still reads live, as the pass says? */
om_status flow_check_live(om_session *s, om_prog *p, const struct flow *f, const struct number *in, om_arena *mem);

#endif
