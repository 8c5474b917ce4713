/* What the walk and the language share. */
#ifndef OM_TAPE_H
#define OM_TAPE_H

#include "base/map.h"
#include "onnxmem/autodiff.h"

/* Gradients are built of operators as this opset has them, or a newer one. */
enum { OM_GRAD_OPSET = 16 };

/* One backward pass. */
struct om_tape {
	om_session *session;
	om_prog *p;
	om_arena *mem;
	om_status status;        /* the first failure */
	om_phase phase;          /* of what is built */
	bool copies, functions;
	om_map names;            /* all names of the program: the number that the next one gets */
	om_map constants;        /* by what they hold */
	om_map known;            /* ops of which one is enough, by what they do: shapes, copies */
	struct om_drawn *drawn;  /* functions that are there already: see fused.c */
	bool *has_name;          /* by value id: named after what it is the gradient of */
	uint32_t cap;
	struct learn *step;      /* that is made; NULL: none */
};

struct om_grad {
	om_scope *scope;
	const om_op *op;
	bool *is_said;           /* by input: the maker gave a gradient, or said there is none */
	const char *stem;        /* of the names of what is built */
};

void om_tape_start(struct om_tape *t);
/* The language for the graph, outside of any maker. */
om_grad *om_tape_grad(struct om_tape *t);
void om_tape_fail(struct om_tape *t, om_status st);
/* A name that nothing has, made from `stem`. */
const char *om_tape_name(struct om_tape *t, const char *stem);
om_value *om_tape_value(struct om_tape *t, om_block *b, const char *stem);
/* `v` has its last name. */
void om_tape_named(struct om_tape *t, const om_value *v);

/* Differentiate in one op of this form; NULL: there is none.  False: the maker has to be asked. */
bool om_grad_fused(om_grad *g, const struct om_fused *form);

/* One more gradient that came into `s` for `of`: it is added to those before. */
void om_scope_add(om_scope *s, om_grad *g, const om_value *of, om_value *v);

#endif
