/* SPDX-License-Identifier: Apache-2.0 */
/* The op of a step, and how ops are called in messages. */
#ifndef OM_STEPS_H
#define OM_STEPS_H

#include "onnxmem/plan.h"

/* The innermost op that executes in `step`; NULL for the end of the graph.  Valid after om_timeline(). */
const om_op *om_op_at_step(const om_prog *p, uint32_t step);

/* Steps of a run, as reports, pictures and messages number them.  The steps of om_timeline(), which plans and their
 * documents have, also count folded ops, which do not run: their steps, and those of their bodies, are left out. */
typedef struct om_run_steps {
	uint32_t *before;        /* [nstep + 1] by step of om_timeline(): steps of the run that come before it */
	uint32_t *at;            /* [n] by step of the run: that of om_timeline() */
	uint32_t n, nstep;       /* steps of a run; of om_timeline() */
} om_run_steps;

/* The steps of a run of `p`, allocated from `mem`; valid after om_timeline().  A step in which no op runs is kept if a
 * value of the plan is live in no other: an input that nothing reads. */
om_run_steps om_run_steps_new(const om_prog *p, om_arena *mem);

/* The number of a step of om_timeline(); one that is left out has the number of the next step of the run. */
uint32_t om_run_steps_of(const om_run_steps *s, uint32_t step);

/* The steps of a run among these steps of om_timeline(); if there is none, the one that follows. */
om_steps om_run_steps_range(const om_run_steps *s, om_steps range);

/* The operator, the name and the place of `op` in the file: "Conv conv3 (node 4)", "Add (node 2 of y/body)". */
const char *om_op_where(const om_op *op, om_arena *mem);

/* A label for `op`: its name, or that of its first output, or its type. */
const char *om_op_label(const om_op *op);

#endif
