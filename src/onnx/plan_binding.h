/* The sizes that a plan is read for. */
#ifndef OM_PLAN_BINDING_H
#define OM_PLAN_BINDING_H

#include <jansson.h>

#include "onnxmem/binding.h"

/* A document and the program of its model. */
typedef struct om_plan_sizes {
	om_session *session;
	om_arena *mem;
	const om_prog *prog;     /* not bound yet */
	const char *model;       /* in messages */
	const json_t *root;      /* the document */
	const om_binding *given; /* numbers and shapes wanted; NULL: those that the plan was made for */
} om_plan_sizes;

/* Fill `out` with the numbers that the document states, but for symbols with a range with those of `given`.
 * `is_other`: some differ from those that the plan was made for.  OM_SHAPE if a number is outside of its range,
 * or `given` contradicts one without a range; OM_BADPLAN if the document is malformed. */
om_status om_plan_sizes_bind(const om_plan_sizes *z, om_binding *out, bool *is_other);

#endif
