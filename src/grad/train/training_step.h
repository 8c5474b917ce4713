/* SPDX-License-Identifier: Apache-2.0 */
/* A training step under construction. */
#ifndef OM_TRAINING_STEP_H
#define OM_TRAINING_STEP_H

#include "grad/tape.h"

/* Loop-carried state of the step: a parameter and its updated value. */
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
	uint32_t known;          /* number of values of the program before the step was added */
	om_value *loss;
	om_value **wrt, **grad;  /* [nwrt] each */
	uint32_t nwrt;
	struct state *states, *last;
	struct wish *wishes, *last_wish;
	om_value *const *result; /* of the original program, and */
	const om_io_alias *before;    /* its nbefore input/output aliases */
	uint32_t nbefore;
};

void om_step_state(struct learn *l, om_value *old, om_value *next);
/* NULL: it is not a state yet. */
struct state *om_step_state_of(const struct learn *l, const om_value *old);

/* step_names.c: request that `v`, an input or a result of the step, gets `name`; applied last, by
 * om_step_settle(). */
void om_step_wish(struct learn *l, om_value *v, const char *name);
om_status om_step_settle(struct learn *l);

/* optimizers.c: build the updates of all parameters. */
om_status om_step_update(struct learn *l);

#endif
