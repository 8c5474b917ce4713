/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes that a plan is read for. */
#ifndef OM_PLAN_BINDING_H
#define OM_PLAN_BINDING_H

#include <jansson.h>

#include "onnxmem/binding.h"
#include "onnxmem/plan.h"

/* A document and the program of its model. */
typedef struct om_plan_sizes {
	om_session *session;
	om_arena *mem;           /* for the time of the call */
	om_prog *prog;           /* not bound yet */
	const json_t *root;      /* the document */
	const om_binding *given; /* numbers and shapes wanted; NULL: those that the plan was made for */
	/* results: the ranges that the document states, allocated by the program; are the sizes wanted others than
	 * those that the plan was made for? */
	int64_t *wanted;         /* by range: the size that is wanted */
	om_dim_range *range;
	uint32_t nrange;
	bool is_other;
} om_plan_sizes;

/* The most bytes of an input whose value a document fixes. */
enum { OM_MOST_FIXED_BYTES = 65536 };

/* Bind the program to the sizes that the document states, but symbols with a range to those of `given`.  Inputs whose value the document fixes become constants.  OM_SHAPE if
 * a number is outside of its range, or `given` contradicts one without a range; OM_STALE if `given` has another constant for an input; OM_BADPLAN if the document is
 * malformed, or its sizes are not possible in the program. */
om_status om_plan_sizes_bind(om_plan_sizes *z);

/* Read the formulas of the document into plan->stated; `plan` has its arenas and ranges. */
om_status om_plan_read_formulas(const om_plan_sizes *z, om_plan *plan);

#endif
