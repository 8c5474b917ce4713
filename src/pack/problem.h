/* What the layer above the packer shares: whole problems, with pools, groups
 * and interference lists. */
#ifndef OM_PROBLEM_H
#define OM_PROBLEM_H

#include "pack/search_limits.h"

/* What is placed as one: a buffer, or a group of them. */
typedef struct om_units {
	om_buffer *buf;          /* copies; a group is one buffer of several rectangles */
	uint32_t n;
	const uint32_t *member;  /* buffers, unit by unit */
	const uint32_t *first;   /* [n + 1]: of each unit in `member` */
	const uint32_t *of;      /* by buffer: its unit */
	const uint64_t *place;   /* by buffer: where it starts in its unit */
	const om_buffer *whole;  /* the buffers */
	uint32_t nwhole;
	/* By pairs: the neighbours of buffer k are near[start[k] .. start[k + 1]),
	 * sorted, each once.  NULL: lifetimes count. */
	const uint32_t *near;
	const uint64_t *start;
	om_arena *mem;           /* of all this */
} om_units;

/* rigid_groups.c: check the groups, make the units. */
om_status om_units_init(om_session *s, om_units *u, const om_problem *p, om_arena *mem);
const char *om_unit_name(const om_units *u, uint32_t k, om_arena *mem);

/* graph_packing.c: check the list, make `near`. */
om_status om_graph_pack_init(om_session *s, om_units *u, const om_problem *p);
/* Pack the units of `set`, which can lie where nothing else does. */
om_status om_graph_pack(om_session *s, om_units *u, const uint32_t *set, uint32_t n, uint64_t align,
	const om_effort *effort, om_pack_result *r);

/* problem.c: pack some of the units, by pairs or by lifetimes; writes their
 * offsets.  OM_INVALID where fixed offsets do not go together. */
om_status om_units_pack(om_session *s, om_units *u, const uint32_t *set, uint32_t n, uint64_t align,
	const om_effort *effort, om_pack_result *r);

/* memory_pools.c: give every unit a pool (om_buffer.pool).  Limits are met if that can
 * be done; if not, what found no room is in the last pool.  `packed`, by pool and
 * false at first: is what lies in it within its limit at the offsets it has now? */
void om_pools_assign(om_session *s, om_units *u, const om_pool *pool, uint32_t npool,
	const om_effort *effort, bool *packed);

#endif
