/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers shared by the rules of larger operators: a body and its counterpart in the backward path,
 * ops whose inputs and outputs are known only when their bodies are complete, and operators that are
 * differentiated by decomposition. */
#ifndef OM_BODIES_H
#define OM_BODIES_H

#include "grad/gradients.h"
#include "grad/grad_builder.h"
#include "grad/tape.h"

struct om_values {
	om_value **v;
	size_t n, cap;
};

void om_values_push(om_grad *g, struct om_values *l, om_value *v);

struct om_stand {
	om_value *v, *by;
};

/* A body, and its counterpart in the backward path. */
struct om_body {
	om_op *op, *back;            /* the ops that own the bodies */
	om_block *from;
	om_scope *s;                 /* its `arg` belongs to the rule */
	om_grad *outer;              /* builds in the block of `back` */
	om_grad *in;                 /* builds in the body of `back` */
	struct om_stand *stand;      /* the counterparts of values of `from` */
	size_t n, cap;
};

typedef om_value *om_keeper(om_scope *s, om_grad *g, om_value *v);

/* The op to which outputs may be added: the op itself, or a copy in the backward path if the forward
 * path has to stay unchanged. */
om_op *om_body_own_op(om_grad *g);
/* Start a body of `back`, which is under construction, in its attribute `attr`. */
void om_body_start(struct om_body *b, om_grad *g, om_op *op, om_op *back, const char *attr, om_keeper *keep,
	void *arg);
om_value *om_body_known(const struct om_body *b, const om_value *v);   /* NULL: it has no counterpart yet */
om_value *om_body_stands(struct om_body *b, om_value *v, om_value *by);  /* returns `by` */
/* The value in the block of `back` for a value captured by the body, or for an output of the op. */
om_value *om_body_reach(struct om_body *b, om_value *v);
/* Append the captured values that received a gradient, unless the list has them. */
void om_body_captured(struct om_body *b, struct om_values *all);
/* Add an output to the op; name an output that was omitted; infer the types and shapes of the outputs. */
om_value *om_body_add_output(struct om_body *b, const char *name);
om_value *om_body_take_output(struct om_body *b, uint32_t k, const char *name);
void om_body_infer(struct om_body *b);

/* Where an op is inserted: in block `b`, right before `before`, or at its end if that is NULL. */
struct om_place {
	om_block *b;
	om_op *before;
	om_phase phase;              /* of the op */
};

/* Build an op of the program's opset there; its only output is `out`, a value without a definition. */
om_value *om_emit_at(om_grad *g, const struct om_place *at, const char *type, const om_attr *attrs, size_t nin,
	om_value *const *in, om_value *out);

/* Add a body to an op under construction; returns a context that builds in it. */
om_grad *om_emit_body(om_grad *g, om_op *op, const char *attr);
/* A context that builds in block `b`. */
om_grad *om_emit_inside(om_grad *g, om_block *b);
/* Add a result to the block that `g` builds in.  ONNX requires that a result is computed in its block
 * and listed once, so an Identity is inserted if necessary. */
void om_emit_result(om_grad *g, om_value *v);
/* 0, 1, ... up to the length of an axis of a value of the forward path: a list of int64. */
om_value *om_emit_positions(om_grad *g, om_value *forward, int axis);
/* The length of that axis, an int64 of rank 0. */
om_value *om_emit_length(om_grad *g, om_value *forward, int axis);
/* Zeros of a shape given as a list of integers. */
om_value *om_emit_zeros(om_grad *g, om_dtype type, om_value *shape);
/* Create a value to be used as a parameter of the block that `g` builds in. */
om_value *om_emit_param(om_grad *g, const om_value *like, const char *what);

/* Set the inputs and the number of outputs of an op under construction. */
void om_back_args(om_grad *g, om_op *op, const struct om_values *in, size_t nout);
/* Discard an op under construction, with its bodies. */
void om_back_abandon(om_op *op);

/* By value id: mark the values that an op and its bodies read; whether any output of it is read. */
void om_mark_reads(const om_op *op, bool *is_read);
bool om_is_read(const om_op *op, const bool *is_read);

/* Decompose the op: `build` builds it from operators that have rules, in the backward path, and stores
 * in `out` the outputs that have a gradient.  The new ops are then differentiated. */
void om_grad_by_decomposition(om_grad *g, void (*build)(om_grad *g, om_value **out));

#endif
