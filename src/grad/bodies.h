/* What makers of larger operators share: a body and its counterpart in the backward
 * path, ops whose inputs and outputs are known only when their bodies are complete,
 * and operators that are differentiated as what they consist of. */
#ifndef OM_BODIES_H
#define OM_BODIES_H

#include "grad/gradients.h"
#include "grad/tape.h"

struct om_values {
	om_value **v;
	size_t n, cap;
};

void om_values_push(om_grad *g, struct om_values *l, om_value *v);

struct om_stand {
	om_value *v, *by;
};

/* One body, and its counterpart in the backward path. */
struct om_body {
	om_op *op, *back;            /* whose bodies they are */
	om_block *from;
	om_scope *s;                 /* its `arg` is the maker's */
	om_grad *outer;              /* builds around `back` */
	om_grad *in;                 /* builds in it */
	struct om_stand *stand;      /* what stands there for values of `from` */
	size_t n, cap;
};

typedef om_value *om_keeper(om_scope *s, om_grad *g, om_value *v);

/* The op whose outputs may be added to: where the forward path has to stay as it is,
 * a copy in the backward path. */
om_op *om_body_own_op(om_grad *g);
/* `back` is open, and gets a body in its attribute `attr`. */
void om_body_start(struct om_body *b, om_grad *g, om_op *op, om_op *back, const char *attr, om_keeper *keep,
	void *arg);
om_value *om_body_known(const struct om_body *b, const om_value *v);   /* NULL: nothing stands for it yet */
om_value *om_body_stands(struct om_body *b, om_value *v, om_value *by);  /* returns `by` */
/* What stands around `back` for a value from around the body, or an output of the op. */
om_value *om_body_reach(struct om_body *b, om_value *v);
/* Values from around that a gradient flowed into, behind those in the list. */
void om_body_captured(struct om_body *b, struct om_values *all);
/* One more output of the op; one that nobody took; what they are, then. */
om_value *om_body_add_output(struct om_body *b, const char *name);
om_value *om_body_take_output(struct om_body *b, uint32_t k, const char *name);
void om_body_infer(struct om_body *b);

/* A new body of an op that is open, and a language that builds in it. */
om_grad *om_emit_body(om_grad *g, om_op *op, const char *attr);
/* A language that builds in block `b`. */
om_grad *om_emit_inside(om_grad *g, om_block *b);
/* A result of the block that `g` builds in.  ONNX wants each to be computed there, and to
 * stand there once. */
void om_emit_result(om_grad *g, om_value *v);
/* 0, 1, ... along an axis of a value of the forward path: a list of int64. */
om_value *om_emit_positions(om_grad *g, om_value *forward, int axis);
/* The length of that axis, an int64 of rank 0. */
om_value *om_emit_length(om_grad *g, om_value *forward, int axis);
/* Zeros of a shape that is a list of integers. */
om_value *om_emit_zeros(om_grad *g, om_dtype type, om_value *shape);
/* A value for a parameter of the block that `g` builds in. */
om_value *om_emit_param(om_grad *g, const om_value *like, const char *what);

/* Its inputs, and how many outputs it has. */
void om_back_args(om_grad *g, om_op *op, const struct om_values *in, size_t nout);
/* Nothing came of it. */
void om_back_abandon(om_op *op);

/* By value id: what an op, and its bodies, read; is any output of it read? */
void om_mark_reads(const om_op *op, bool *is_read);
bool om_is_read(const om_op *op, const bool *is_read);

/* `build` builds the op once more, in the backward path, of operators that have makers;
 * `out` are its outputs, those that have a gradient.  They are differentiated. */
void om_grad_by_decomposition(om_grad *g, void (*build)(om_grad *g, om_value **out));

#endif
