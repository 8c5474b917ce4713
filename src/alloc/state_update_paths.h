/* SPDX-License-Identifier: Apache-2.0 */
/* How results are computed in the memory of the parameters that they replace. */
#ifndef OM_STATE_UPDATE_PATHS_H
#define OM_STATE_UPDATE_PATHS_H

#include "onnxmem/plan.h"

/* How a result can be computed in the memory of the parameter that it replaces in the next run. */
typedef struct om_update_path {
	om_value *result, *param; /* aliased result and parameter of the graph */
	om_value **value;        /* the first is computed over the parameter, or in its memory without reading it, each
				    other over its predecessor; the last is the result */
	om_op **reader;          /* other ops of the graph that read the parameter, in order: they must run
				    before the op that computes value[0] */
	uint32_t nvalue, nreader; /* how many of each */
} om_update_path;

/* Update paths for the declared input/output aliases for which one exists; the list is allocated from
 * `mem`. `a` has views and no in-place decisions yet. */
om_update_path *om_update_paths_find(const om_prog *p, const om_assignment *a, om_arena *mem, uint32_t *n);

#endif
