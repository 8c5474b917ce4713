/* SPDX-License-Identifier: Apache-2.0 */
/* JSON owned by an arena, so that it is released also if memory runs out during construction. */
#ifndef OM_JSON_HOLD_H
#define OM_JSON_HOLD_H

#include <jansson.h>

#include "base/arena_internal.h"
#include "onnxmem/arena.h"

static inline void
om_json_release(void *at)
{
	json_decref(*(json_t **)at);
}

/* A slot for JSON that the arena releases.  Create it before the JSON, so that no failure can
 * occur between creating the JSON and storing it. */
static inline json_t **
om_json_hold(om_arena *mem)
{
	json_t **at = OM_NEW(mem, json_t *);

	om_arena_defer(mem, om_json_release, at);
	return at;
}

#endif
