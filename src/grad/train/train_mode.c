/* Operators that do another thing in training than in inference: the column `train`. */
#include <config.h>

#include "grad/gradients.h"
#include "grad/train/training_step.h"

/* A layer that is used again goes on from what it was before: the last value is what is handed
 * on, and has the name for it. */
static void
goes_on(struct state *s, om_op *op, uint32_t in, om_value *next)
{
	const char *name = next->name;

	om_op_set_in(op, in, s->next);
	next->name = s->next->name;
	s->next->name = name;
	s->next = next;
}

/* The old numbers of a batch normalisation become states: they are no weights, and are moved
 * towards those of each batch. */
void
om_train_BatchNormalization(om_grad *g, om_op *op)
{
	struct om_tape *t = om_grad_scope(g)->tape;
	om_prog *p = t->p;
	om_value *out[3] = {op->out[0]};

	if (om_attr_int(op, "training_mode") || op->nout > 1)
		return;
	if (op->block != p->first) {
		om_tape_fail(t, om_op_fail(t->session, OM_UNSUPPORTED, op, "is in a body, from which its means and "
			"variances cannot be handed on: it cannot be as in training"));
		return;
	}
	om_op_drop_attr(op, "training_mode");
	om_op_add_int(p, op, "training_mode", 1);
	for (uint32_t k = 1; k < 3; k++) {
		om_value *old = op->in[k + 2];
		struct state *s = om_step_state_of(t->step, old);
		out[k] = om_tape_value(t, op->block, om_printf(t->mem, "%s_next", old->name));
		if (s)
			goes_on(s, op, k + 2, out[k]);
		else
			om_step_state(t->step, old, out[k]);
	}
	op->out = om_memdup(p->mem, out, sizeof out);
	op->nout = 3;
	op->out[1]->def = op->out[2]->def = op;
	om_tape_fail(t, om_op_infer(t->session, p, op));
}

void
om_train_Dropout(om_grad *g, om_op *op)
{
	const uint8_t yes = 1;
	om_prog *p = om_grad_prog(g);
	om_tensor t = {.type = OM_BOOL, .shape = om_shape_of(0, NULL), .data = om_memdup(p->mem, &yes, 1)};
	om_value **in = OM_NEWN(p->mem, om_value *, 3);

	memcpy(in, op->in, (op->nin < 3 ? op->nin : 2) * sizeof *in);
	in[2] = om_emit_tensor(g, &t);
	op->in = in;
	op->nin = 3;
}
