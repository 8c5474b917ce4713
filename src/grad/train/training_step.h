/* A step of training while it is made. */
#ifndef OM_TRAINING_STEP_H
#define OM_TRAINING_STEP_H

#include "grad/tape.h"

/* What the step hands on: a parameter, and its new value. */
struct state {
	om_value *old, *next;
	struct state *next_state;
};

struct learn {
	om_session *session;
	om_prog *p;
	const om_train_options *how;
	struct om_tape tape;
	om_grad *g;
	uint32_t known;          /* values of the program before */
	om_value *loss;
	om_value **wrt, **grad;  /* nwrt of each */
	uint32_t nwrt;
	struct state *states, *last;
	struct wish *wishes, *last_wish;
	om_value *const *result; /* of the program before, */
	const om_io_alias *before;    /* and which of them it handed on: nbefore ties */
	uint32_t nbefore;
};

void om_step_state(struct learn *l, om_value *old, om_value *next);
/* NULL where it is no state yet. */
struct state *om_step_state_of(const struct learn *l, const om_value *old);

/* step_names.c: `v`, an input or a result of the step, is to be called `name`, when all is done. */
void om_step_wish(struct learn *l, om_value *v, const char *name);
om_status om_step_settle(struct learn *l);

/* optimizers.c: the new values of all parameters. */
om_status om_step_update(struct learn *l);

#endif
