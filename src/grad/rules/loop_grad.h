/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the sources that build gradients of Loop and Scan. */
#ifndef OM_LOOP_GRAD_H
#define OM_LOOP_GRAD_H

#include "grad/bodies.h"
#include "grad/fixed_shape.h"

/* A value of which each iteration of the backward op gets a slice. */
struct series {
	om_value *all, *param;
	int64_t axis, is_backward;
};

/* The rows of each iteration in a flat stack, as parameters of the backward op. */
struct row_range {
	const char *key;             /* values with this key have as many rows in every iteration */
	om_value *lengths, *first, *last;
};

struct loop_grad {
	struct om_body b;
	bool is_scan;
	bool by_loop;                /* the backward op is a Loop: gradients of states may differ in shape */
	uint32_t nin;                /* inputs of the forward op, before any is added */
	uint32_t in;                 /* the first loop-carried input */
	uint32_t first;              /* the first loop-carried parameter and result */
	uint32_t nstate;             /* of the forward op, before any is added */
	uint32_t nextra;             /* states added after those: flat stacks; scan outputs follow */
	om_fixed fixed;              /* which values of the body have a fixed shape */
	bool *is_constant;           /* by value id: it is loop-invariant */
	uint32_t nvalue;
	struct series *series;       /* read by the iterations of the backward op */
	size_t n, cap;
	struct row_range *range;     /* of flat stacks */
	size_t nrange, cap_range;
	bool *flows;                 /* by value id: a gradient may reach it */
};

/* A loop-carried value of the backward op: `param` before an iteration, `result` after it. */
struct carried {
	om_value *of;                /* a value of the forward path */
	om_value *start, *param, *result;
	uint32_t state;              /* the state whose gradient it is; UINT32_MAX: a captured value */
};

struct back {
	struct carried *carried;
	size_t n, cap;
	struct om_values result;     /* gradients of scanned inputs */
	uint32_t *input;             /* [result.n]: the input that each belongs to */
	bool is_scattered;           /* slices are added to sums: what they were computed by may have no users */
};

/* A parameter of an iteration of the backward op that receives slices of `all`; it is like `each`. */
om_value *om_loop_add_series(struct loop_grad *r, om_value *all, const om_value *each, int64_t axis, int64_t is_backward);

/* The scan output of the forward op that stacks `v`, as a value of the backward path; a new output if there
 * is none.  `*out` receives its index. */
om_value *om_loop_stack(struct loop_grad *r, om_value *v, uint32_t *out);

/* The value of an iteration of the backward op that holds `v`, which is stored on the tape. */
om_value *om_loop_keep(struct loop_grad *r, om_value *v);

/* The same for a value whose shape differs between iterations: see ragged_tape.c. */
om_value *om_loop_keep_ragged(struct loop_grad *r, om_value *v);

/* Seed the gradient of the value that each iteration appends to state `k`, a sequence; `dy`, a value of the
 * backward path, is the gradient of their concatenation along axis 0. */
void om_loop_seed_rows(struct loop_grad *r, uint32_t k, om_value *dy);

/* The rule of ConcatFromSequence. */
void om_concat_from_sequence_grad(om_grad *g);

/* Complete the backward op as a Loop, which carries values whose shape may differ between iterations. */
void om_loop_finish(struct loop_grad *r, om_grad *g, const struct back *back);

/* The gradient of a Scan whose tape would be ragged: it becomes a Loop. */
void om_scan_grad_as_loop(om_grad *g);

#endif
