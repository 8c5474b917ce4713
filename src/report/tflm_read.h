/* SPDX-License-Identifier: Apache-2.0 */
/* Reads offline plans of TFLite Micro. */
#ifndef OM_TFLM_READ_H
#define OM_TFLM_READ_H

#include "report/foreign.h"

/* The words of an offline plan; see tflm.c. */
typedef struct om_tflm_plan {
	uint32_t n;              /* tensors */
	const int32_t *offset;   /* by tensor; -1: the planner of the runtime places it */
	const char *const *name; /* by tensor: the comment that follows the offset; NULL: none */
	uint32_t nfree;          /* tensors that the runtime places */
} om_tflm_plan;

/* Parse the C array in `size` bytes of text.  OM_MALFORMED if it is none, or not that of a plan. */
om_status om_tflm_parse(om_session *s, const char *path, const char *text, size_t size, om_arena *mem, om_tflm_plan *out);

/* The places of a plan for a graph: by the names in the comments or, if there are none, by the order of the tensors:
 * inputs, then the outputs of the ops. */
om_status om_tflm_places(om_session *s, const om_tflm_plan *t, om_foreign *f);

#endif
