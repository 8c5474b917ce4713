/* SPDX-License-Identifier: Apache-2.0 */
/* State shared by the reverse pass and the builder of gradients. */
#ifndef OM_TAPE_H
#define OM_TAPE_H

#include "base/map.h"
#include "grad/grad_builder.h"
#include "onnxmem/autodiff.h"

/* Gradients use operators of this opset version or later. */
enum { OM_GRAD_OPSET = 16 };

/* One backward pass. */
struct om_tape {
	om_session *session;
	om_prog *p;
	om_arena *mem;
	om_status status;        /* the first failure */
	om_phase phase;          /* phase of the ops that are built */
	bool copies, functions;
	om_map names;            /* all names of the program, each with its next suffix number */
	om_map constants;        /* by content */
	om_map known;            /* ops that are built once and reused, by a key: shapes, copies */
	struct om_drawn *drawn;  /* existing gradient functions: see fused.c */
	bool *has_name;          /* by value id: named after the value whose gradient it is */
	uint32_t cap;
	struct learn *step;      /* training step under construction; NULL: none */
};

struct om_grad {
	om_scope *scope;
	const om_op *op;
	bool *is_said;           /* by input: the rule set a gradient, or zero */
	uint32_t nsaid;          /* number of inputs of the op before the rule adds any */
	const char *stem;        /* prefix of the names of new values */
};

void om_tape_start(struct om_tape *t);
/* A builder context for the graph, outside of any rule. */
om_grad *om_tape_grad(struct om_tape *t);
void om_tape_fail(struct om_tape *t, om_status st);
/* A unique name derived from `stem`. */
const char *om_tape_name(struct om_tape *t, const char *stem);
om_value *om_tape_value(struct om_tape *t, om_block *b, const char *stem);
/* Mark the name of `v` as final. */
void om_tape_named(struct om_tape *t, const om_value *v);

/* Build the gradient as a single op of this form; NULL: none.  False: the rule has to be called. */
bool om_grad_fused(om_grad *g, const struct om_fused *form);

/* Add `v` to the gradient of `of` in `s`. */
void om_scope_add(om_scope *s, om_grad *g, const om_value *of, om_value *v);

#endif
