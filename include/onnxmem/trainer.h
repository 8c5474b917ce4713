/* Training: a step that is run over and over, in the memory of what it changes.
 *
 * A step is a program that hands on (om_prog.tie) parameters, and whatever else it keeps
 * from run to run: its states.  They lie in memory of the trainer, which programs of
 * the same step for other numbers of samples share.  Where a plan ties a state, nothing is
 * copied.
 */
#ifndef OM_TRAINER_H
#define OM_TRAINER_H

#include "onnxmem/executor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the inputs and outputs of a step are, by place in those of the graph. */
typedef struct om_step {
	uint32_t loss;           /* the result called "loss", else the first of one element that is
	                            not handed on */
	uint32_t rate;           /* the parameter "lr"; UINT32_MAX: there is none */
	uint32_t *sample;        /* parameters of the graph with data of samples: all that are not
	                            handed on, nor the rate, and have no default */
	uint32_t nsample;        /* how many */
} om_step;

/* OM_USAGE where the program hands on nothing, or has no loss or no samples.  The list
 * comes from `mem`. */
OM_API om_status om_step_find(om_session *s, const om_prog *p, om_arena *mem, om_step *out);

/* Whoever trains: the states, and what they are called. */
typedef struct om_trainer om_trainer;

/* States as the defaults of the program say; those without default start as zeros and
 * count as missing.  Needs OM_HAS_SHAPES; OM_UNSUPPORTED where the shape of a state is open. */
OM_API om_status om_trainer_new(om_session *s, const om_prog *p, om_trainer **out);
OM_API void om_trainer_free(om_trainer *t);    /* NULL is fine */

/* State `k`, and what it is called; NULL behind the last one.  Its elements change with
 * each step, and may be read between steps. */
OM_API const om_tensor *om_trainer_state(const om_trainer *t, uint32_t k, const char **name);

/* Copy elements into the state called `name`.  OM_USAGE when there is none, OM_SHAPE when
 * type or shape differ. */
OM_API om_status om_trainer_set(om_trainer *t, const char *name, const om_tensor *from);

/* The first state that has no elements yet; NULL when there is none. */
OM_API const char *om_trainer_first_uninitialized(const om_trainer *t);

/* Give an executor of the step, or of another program with the same states, those of
 * the trainer as inputs. */
OM_API om_status om_trainer_bind(om_trainer *t, om_exec *e);

/* One run, after which the states are the new ones.  Of those that the plan does not tie
 * the bytes are copied: `*copied` counts them.  The other inputs are bound already. */
OM_API om_status om_trainer_step(om_trainer *t, om_exec *e, uint64_t *copied);

#ifdef __cplusplus
}
#endif

#endif
