/* SPDX-License-Identifier: Apache-2.0 */
/* Values that may be computed in the memory of the results of the graph.
 *
 * That memory belongs to the caller, so such a value takes no space in the arena; but where an op computes over it,
 * every other reader has to run before that op. */
#ifndef OM_RESULT_PATHS_H
#define OM_RESULT_PATHS_H

#include "onnxmem/plan.h"

/* A value, and what it may be computed in. */
typedef struct om_result_path {
	om_value *v;             /* the owner of a storage of the graph */
	om_value *into;          /* a result, or a value that has such a path itself */
	om_op *op;               /* computes `into` over `v`, or from `v` at its final offset */
	bool is_over;            /* the former */
	om_op **reader;          /* the other ops of the graph that read the storage */
	uint32_t nreader;        /* how many */
} om_result_path;

/* Those of the program, nearest to the results first; the list is allocated from `mem`.  `a` has views and no
 * in-place decisions yet. */
om_result_path *om_result_paths_find(const om_prog *p, const om_assignment *a, om_arena *mem, uint32_t *n);

/* The op that overwrites the storage of a path of the set, so that all its readers have to run before; NULL: none does. */
const om_op *om_result_paths_end(const om_result_path *path, uint32_t n, const bool *is_taken, uint32_t k);

/* Call `visit` for sets of paths that can be taken together, `is_taken` by path: those with as many values as
 * possible first, at most `most` sets, none of them empty.  It stops where `visit` returns another status than OM_OK. */
om_status om_result_paths_each(const om_result_path *path, uint32_t n, uint32_t most,
	om_status (*visit)(void *arg, const bool *is_taken), void *arg);

#endif
