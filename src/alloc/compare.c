/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two assignments by the size of their arenas.
 *
 * A full search for the best packing costs far more than the analyses before it, and most comparisons
 * are decided by less: by a lower bound, and by a packing found by a fast heuristic. More work is done
 * only if these do not decide, and it stops as soon as it does.
 */
#include <config.h>

#include "onnxmem/plan.h"
#include "alloc/assign.h"
#include "alloc/known_sizes.h"
#include "alloc/op_facts.h"
#include "pack/search_limits.h"

/* Sufficient to reach the bound on most networks. */
enum { QUICK_NODES = 2000, SHORT_NODES = 20000, WORK_PER_NODE = 50 };

/* What the packer finds for the buffers.  A search that was stopped finds less than it would otherwise. */
static om_status
find_size(om_session *s, const om_buffers *b, om_known_sizes *known, const om_search_limits *limits, om_arena_size *size)
{
	om_pack_result result;

	if (om_known_sizes_find(known, b->buf, b->n, limits, size))
		return OM_OK;
	OM_TRY(om_pack_limited(s, b->buf, b->n, limits, &result));
	*size = (om_arena_size){result.lower_bound, result.height};
	if ((result.is_limited || om_known_sizes_is_large(b->buf, b->n)) && !om_session_is_stopped(s))
		om_known_sizes_add(known, b->buf, b->n, limits, size);
	return OM_OK;
}

/* Pack `a` as small as possible within the limits. */
static om_status
pack(om_session *s, const om_prog *p, const om_assignment *a, const om_search_limits *limits, om_arena_size *size)
{
	om_arena *tmp = om_arena_new();
	om_arena_size found;
	const om_status st = find_size(s, om_buffers_new(p, a, tmp), a->facts->known_sizes, limits, &found);

	if (st == OM_OK) {
		size->bound = found.bound > size->bound ? found.bound : size->bound;
		size->bytes = found.bytes < size->bytes ? found.bytes : size->bytes;
	}
	om_arena_free(tmp);
	return st;
}

/* The limits of a search of so many nodes, or of fewer if the request says so, with as much heuristic work as
 * is usual for them. */
static om_search_limits
limits_for(const om_assignment *a, uint64_t nodes)
{
	const uint64_t most = a->request->search_nodes;

	nodes = most && most < nodes ? most : nodes;
	return (om_search_limits){.nodes = nodes, .work = nodes * WORK_PER_NODE};
}

/* The same for a full search, whose heuristic work has the limits of its phases by default. */
static om_search_limits
full_search(const om_assignment *a)
{
	om_search_limits limits = limits_for(a, OM_PACK_NODES);

	limits.work = a->request->search_nodes ? limits.work : 0;
	return limits;
}

om_status
om_assignment_size(om_session *s, const om_prog *p, const om_assignment *a, om_arena_size *size)
{
	const om_search_limits limits = limits_for(a, QUICK_NODES);

	*size = (om_arena_size){0, UINT64_MAX};
	return pack(s, p, a, &limits, size);
}

om_status
om_assignment_full_size(om_session *s, const om_prog *p, const om_assignment *a, uint64_t *bytes)
{
	const om_search_limits limits = full_search(a);
	om_arena_size size = {0, UINT64_MAX};
	const om_status st = pack(s, p, a, &limits, &size);

	*bytes = size.bytes;
	return st;
}

static bool
is_decided(const om_arena_size *x, const om_arena_size *y)
{
	return x->bytes < y->bound || y->bytes <= x->bound;
}

/* Pack `a` and `b` with these limits until they decide. */
static om_status
decide(om_session *s, const om_prog *p, const om_assignment *a, om_arena_size *x, const om_assignment *b, om_arena_size *y,
	om_search_limits limits, bool *yes)
{
	limits.target = x->bound;
	if (!is_decided(x, y))
		OM_TRY(pack(s, p, b, &limits, y));
	limits.target = y->bytes - 1;
	if (!is_decided(x, y))
		OM_TRY(pack(s, p, a, &limits, x));
	*yes = x->bytes < y->bytes;
	return OM_OK;
}

om_status
om_assignment_is_smaller(om_session *s, const om_prog *p, const om_assignment *a, om_arena_size *x,
	const om_assignment *b, om_arena_size *y, bool *yes)
{
	return decide(s, p, a, x, b, y, full_search(a), yes);
}

om_status
om_assignment_seems_smaller(om_session *s, const om_prog *p, const om_assignment *a, om_arena_size *x,
	const om_assignment *b, om_arena_size *y, bool *yes)
{
	return decide(s, p, a, x, b, y, limits_for(a, SHORT_NODES), yes);
}
