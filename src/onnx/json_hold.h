/* JSON that ends with an arena, also where memory runs out before it is complete. */
#ifndef OM_JSON_HOLD_H
#define OM_JSON_HOLD_H

#include <jansson.h>

#include "onnxmem/arena.h"

static inline void
om_json_release(void *at)
{
	json_decref(*(json_t **)at);
}

/* A place for JSON that the arena releases.  Made first: nothing may fail between the JSON and
 * its place. */
static inline json_t **
om_json_hold(om_arena *mem)
{
	json_t **at = OM_NEW(mem, json_t *);

	om_arena_defer(mem, om_json_release, at);
	return at;
}

#endif
