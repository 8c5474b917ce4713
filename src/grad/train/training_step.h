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

/* ---- The update of one parameter. ---- */

enum { OM_UPDATE_STATES = 2 };

/* Scalars that all parameters of one element type share; t counts steps, from one. */
struct om_update_common {
	om_value *rate;          /* lr */
	om_value *left;          /* 1 - b1^t */
	om_value *step;          /* lr / (1 - b1^t) */
	om_value *root;          /* sqrt(1 - b2^t) */
};

struct om_update {
	const struct om_update_common *c;
	om_value *w, *g, *state[OM_UPDATE_STATES];           /* the parameter, its gradient, its states */
	om_value *next, *state_next[OM_UPDATE_STATES];       /* built */
};

struct om_update_rule {
	const struct optimizer *optimizer;
	const om_train_options *how;
	uint32_t nstate;
};

/* Build an update of standard operators. */
void om_update_build(om_grad *g, const struct om_update_rule *r, struct om_update *u);

/* fused_update.c: build the update as a call of org.onnxmem.grad Update, whose function is what om_update_build() builds;
 * `drawn` is by element type, for the functions that exist.  False: there is no kernel for the type. */
struct om_update_function;
bool om_update_fused(struct learn *l, const struct om_update_rule *r, struct om_update_function **drawn, struct om_update *u);

#endif
