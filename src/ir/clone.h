/* SPDX-License-Identifier: Apache-2.0 */
/* Cloning of ops and their bodies. */
#ifndef OM_CLONE_H
#define OM_CLONE_H

#include "onnxmem/builder.h"

/* Clones ops and their bodies, from a program or a function into a program. `value` maps ids in `from`
 * to counterparts: set it for values that have a counterpart already; the others are created, named
 * `prefix` followed by their old name, when the op that defines them is cloned.  `ref` returns the
 * attribute to substitute for one that refers to an attribute of the call, or NULL to leave it out; if
 * `ref` itself is NULL, references are kept. */
typedef struct om_clone {
	om_session *session;     /* receives messages */
	om_prog *p;              /* destination; not owned, like everything here */
	const om_prog *from;     /* source */
	om_arena *mem;           /* temporary memory */
	const char *prefix;      /* prefix of the names of new values */
	om_value **value;        /* by id in `from`: the counterpart, or NULL */
	om_block **block;        /* by id in `from`: the copy of a body */
	uint32_t nvalue, nblock; /* how many of each `from` has */
	const om_attr *(*ref)(void *arg, const om_attr *a); /* see above */
	void *arg;               /* of `ref` */
} om_clone;

/* Initialize a clone of parts of `from` into `to`, in which nothing has a counterpart yet; valid as
 * long as `mem`. */
om_clone om_clone_new(om_session *s, om_prog *to, const om_prog *from, om_arena *mem, const char *prefix);

/* Copy `v` into block `b` and make the copy its counterpart. */
om_value *om_clone_value(om_clone *c, const om_value *v, om_block *b);

/* The counterpart of `v`.  A constant of a block that has a copy is cloned on first use; without a counterpart, a value
 * defined outside the cloned ops maps to itself within one program, and to NULL from another one. */
om_value *om_clone_mapped(om_clone *c, om_value *v);

/* Copy `op` to the end of block `b`, or right before `before`. */
om_status om_op_clone(om_clone *c, const om_op *op, om_block *b, om_op *before, om_op **out);

/* Before the ops of `body`, a block of `from`, are cloned in the place of `op`: its outputs become those of the clones that
 * compute the results of `body`.  Returns, by output, those that no op of `body` computes, or whose result is another
 * output already, which om_clone_through() computes; the others are NULL. */
om_value **om_clone_take_outputs(om_clone *c, om_op *op, const om_block *body);

/* Compute `v` from `source`, by an Identity before `op`. */
void om_clone_through(om_clone *c, om_value *source, om_value *v, om_op *op);

#endif
