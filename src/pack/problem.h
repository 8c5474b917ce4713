/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the layer above the packer: whole problems, with pools, groups and
 * interference lists. */
#ifndef OM_PROBLEM_H
#define OM_PROBLEM_H

#include "pack/search_limits.h"

/* A unit of placement: a buffer, or a group of buffers. */
typedef struct om_units {
	om_buffer *buf;          /* by unit; a group is one buffer of several rectangles */
	uint32_t n;
	const uint32_t *member;  /* buffers, unit by unit */
	const uint32_t *first;   /* [n + 1]: the start of each unit in `member` */
	const uint32_t *unit_of; /* by buffer: its unit */
	const uint64_t *offset_in_unit; /* by buffer */
	const om_buffer *source; /* the buffers of the problem */
	uint32_t nsource;
	/* Packing by pairs: the neighbors of buffer k are adj[adj_start[k] ..
	 * adj_start[k + 1]), sorted, without duplicates.  NULL: lifetimes decide. */
	const uint32_t *adj;
	const uint64_t *adj_start;
	om_arena *mem;           /* of all these arrays */
} om_units;

/* rigid_groups.c: check the groups, make the units. */
om_status om_units_init(om_session *s, om_units *u, const om_problem *p, om_arena *mem);
const char *om_unit_name(const om_units *u, uint32_t k, om_arena *mem);

/* graph_packing.c: check the pairs, make `adj`. */
om_status om_graph_pack_init(om_session *s, om_units *u, const om_problem *p);
/* Pack the units of `set`; no other unit is in their pool. */
om_status om_graph_pack(om_session *s, om_units *u, const uint32_t *set, uint32_t n, uint64_t align,
	const om_search_limits *limits, om_pack_result *r);

/* problem.c: pack the units of `set`, by pairs or by lifetimes; writes their
 * offsets.  OM_INVALID when fixed offsets contradict each other. */
om_status om_units_pack(om_session *s, om_units *u, const uint32_t *set, uint32_t n, uint64_t align,
	const om_search_limits *limits, om_pack_result *r);

/* memory_pools.c: assign every unit to a pool (om_buffer.pool).  Units that fit in
 * no pool within its limit go to the last pool.  `packed`, by pool, false at
 * first: the units of that pool have offsets that keep its limit. */
void om_pools_assign(om_session *s, om_units *u, const om_pool *pool, uint32_t npool,
	const om_search_limits *limits, bool *packed);

#endif
