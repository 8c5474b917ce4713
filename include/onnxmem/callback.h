/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that functions of the caller compute, with gradients of their own.
 *
 *     om_callbacks_new(s, &all);
 *     om_callbacks_add(s, all, &(om_callback)OM_CALLBACK(.name = "my.domain:Clamp", .nin = 1, .nout = 1,
 *             .is_pure = true, .run = clamp, .backward = clamp_backward, .backward_inputs = 1));
 *     om_prog_use_callbacks(s, p, all);                     ops my.domain::Clamp of a program, or
 *     om_eager_new(s, &(om_eager_options)OM_EAGER_OPTIONS(.callbacks = all), &e);
 *     om_eager_call(e, &y, "my.domain:Clamp", NULL, x);
 *
 * In a program such an operator is one as any other: it is planned, run, and differentiated by om_prog_backward().  Its
 * gradient is an op NAME_backward, which reads what `backward_inputs` and `backward_outputs` say, so that the rest need not stay
 * in memory.
 *
 * A pure function depends on nothing but its inputs and attributes, and changes nothing else.  Its calls may be computed later,
 * together with others, again, or not at all: a dynamic graph defers them, replays them as a part of planned
 * programs, and remembers their results; a program folds them over constants.  A function that is not pure is called exactly
 * where the caller calls it, in the order of the calls, and never again: in a dynamic graph, a sequence of calls ends before it.
 */
#ifndef OM_CALLBACK_H
#define OM_CALLBACK_H

#include "onnxmem/opdef.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { OM_CALLBACK_MOST = 64 };

/* A call of a function.  An input that is omitted has the type OM_UNDEFINED. */
typedef struct om_callback_call {
	void *arg;                   /* of the om_callback */
	om_session *session;         /* for om_fail() */
	const om_op *op;             /* for its attributes */
	uint32_t nin, nout;          /* length of `in` and `out` */
	const om_tensor *in;         /* elements are row major; NULL in `infer`, except for constants */
	om_tensor *out;              /* data NULL: it is not asked for */
} om_callback_call;

/* A function as an operator; initialized by OM_CALLBACK(). */
typedef struct om_callback {
	size_t size;                 /* of this struct: set by OM_CALLBACK */
	const char *name;            /* DOMAIN:NAME; copied */
	uint32_t nin, nout;          /* exactly; at most OM_CALLBACK_MOST */
	bool is_pure;                /* see above */

	/* Set type and shape of every output; those of an input may have unknown dims.  NULL: each output is like input 0. */
	om_status (*infer)(om_callback_call *c);

	/* Compute all outputs, whose type, shape and memory are set.  Inputs must not be changed.  After a failure, om_fail() has set
	 * the message. */
	om_status (*run)(om_callback_call *c);

	/* Compute the gradients of the inputs from those of the outputs.  The inputs of this call are the inputs of the
	 * forward call, its outputs, and the gradients of its outputs, `nin + 2 * nout` in all; OM_UNDEFINED is what is not read, or
	 * an output that no gradient reaches.  The outputs are the gradients of the inputs, each of the type and shape of
	 * that input; only floating-point inputs have one.  It is pure.  NULL: the operator has no gradient, and a loss that
	 * follows from it is refused. */
	om_status (*backward)(om_callback_call *c);
	uint64_t backward_inputs;    /* those whose elements `backward` reads: a bit for each */
	uint64_t backward_outputs;   /* the same of the outputs */

	void *arg;                   /* of the functions */
	void (*release)(void *arg);  /* called by om_callbacks_free(); NULL: nothing to do */
} om_callback;

/* The initializer of om_callback. */
#define OM_CALLBACK(...) {.size = sizeof(om_callback), __VA_ARGS__}

/* A set of functions. */
typedef struct om_callbacks om_callbacks;

/* A new, empty set. */
OM_API om_status om_callbacks_new(om_session *s, om_callbacks **out);
/* It must outlive the programs, with their copies, and the contexts that use it; NULL is fine. */
OM_API void om_callbacks_free(om_callbacks *all);

/* Add a function.  Programs that use the set already do not have it, contexts of dynamic graphs have it from now on.
 * OM_USAGE, with a message, if a member is wrong, or there is an operator with this name, of the library or of the set; then
 * `release` is not called. */
OM_API om_status om_callbacks_add(om_session *s, om_callbacks *all, const om_callback *f);

/* The functions of the set compute those operators of the program that have no definition, and those that are added later.
 * Another set that it used is forgotten for new ops.  A wrong number of inputs or outputs is found when shapes are inferred. */
OM_API om_status om_prog_use_callbacks(om_session *s, om_prog *p, const om_callbacks *all);

#ifdef __cplusplus
}
#endif

#endif
