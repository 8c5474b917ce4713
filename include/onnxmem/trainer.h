/* SPDX-License-Identifier: Apache-2.0 */
/* Training: repeated execution of a step that updates its states.
 *
 * A step is a program that carries states (om_prog.io_alias) from run to run: parameters and
 * optimizer state.  The trainer owns the memory of the states; programs of the same step for
 * other batch sizes share it.  A state that the plan aliases is not copied.
 */
#ifndef OM_TRAINER_H
#define OM_TRAINER_H

#include "onnxmem/executor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Roles of the inputs and outputs of a step, as indices of graph inputs and outputs. */
typedef struct om_step {
	uint32_t loss;           /* the result called "loss", else the first with one element that is
	                            not carried */
	uint32_t rate;           /* the parameter "lr"; UINT32_MAX: none */
	uint32_t *sample;        /* parameters that receive samples: all that are not carried, are not
	                            the rate, and have no default */
	uint32_t nsample;        /* number of elements of `sample` */
} om_step;

/* OM_USAGE if the program carries no state, or has no loss or no samples.  The list is
 * allocated in `mem`. */
OM_API om_status om_step_find(om_session *s, const om_prog *p, om_arena *mem, om_step *out);

/* The shape of a schedule of the learning rate. */
typedef enum om_rate_shape {
	OM_RATE_CONSTANT,        /* the rate itself */
	OM_RATE_STEP,            /* times `factor` after every `steps` steps */
	OM_RATE_COSINE,          /* half a cosine, from the rate to `factor` of it in `steps` steps; constant after these */
	OM_RATE_LINEAR,          /* a line, the same way */
} om_rate_shape;

/* How the learning rate changes from step to step. */
typedef struct om_rate_schedule {
	om_rate_shape shape;     /* after the warm-up */
	uint64_t steps;          /* of this shape */
	double factor;           /* of this shape, from 0 to 1 */
	uint64_t warmup;         /* first steps, in which the rate rises in equal parts to all of it; the shape begins after them */
} om_rate_schedule;

/* Read a schedule: "constant", "step:STEPS:FACTOR", "cosine:STEPS[:LEAST]" or "linear:STEPS[:LEAST]", where LEAST is the share of
 * the rate that is left, 0 by default.  OM_USAGE for another text. */
OM_API om_status om_rate_parse(om_session *s, const char *text, uint64_t warmup, om_rate_schedule *out);

/* The learning rate of step `step`, from 0, if it is `rate` without a schedule. */
OM_API double om_rate_at(const om_rate_schedule *s, double rate, uint64_t step);

/* A trainer: owns the states and their names. */
typedef struct om_trainer om_trainer;

/* Initialize the states from the defaults of the program; those without default are zero and
 * count as uninitialized.  Requires OM_HAS_SHAPES; OM_UNSUPPORTED if a state has an unknown shape. */
OM_API om_status om_trainer_new(om_session *s, const om_prog *p, om_trainer **out);
OM_API void om_trainer_free(om_trainer *t);    /* NULL is fine */

/* State `k` and its name; NULL after the last one.  Its elements change in each step, and may
 * be read between steps: after om_trainer_fetch(), if the executor keeps states on a device. */
OM_API const om_tensor *om_trainer_state(const om_trainer *t, uint32_t k, const char **name);

/* Copy elements into the state called `name`.  OM_USAGE if there is none, OM_SHAPE if type
 * or shape differ. */
OM_API om_status om_trainer_set(om_trainer *t, const char *name, const om_tensor *from);

/* The first uninitialized state; NULL if there is none. */
OM_API const char *om_trainer_first_uninitialized(const om_trainer *t);

/* Bind the states as inputs of an executor of the step, or of another program with the same
 * states.  States that an executor keeps on a device are fetched first: OM_RUN if the device fails. */
OM_API om_status om_trainer_bind(om_trainer *t, om_exec *e);

/* The elements of the states are in memory of the trainer, from where an executor with `keep_states` that ran the last step
 * may have moved them.  om_exec_free() of this executor fetches them, too. */
OM_API om_status om_trainer_fetch(om_trainer *t);

/* Run one step and update the states.  States that the plan does not alias are copied;
 * `*copied` counts these bytes.  The other inputs must be bound. */
OM_API om_status om_trainer_step(om_trainer *t, om_exec *e, uint64_t *copied);

#ifdef __cplusplus
}
#endif

#endif
