/* Compares two assignments by the size of their arenas.
 *
 * A full search for the best packing costs far more than the analyses before it, and most comparisons
 * are decided by less: by a lower bound, and by a packing found by a fast heuristic. More work is done
 * only if these do not decide, and it stops as soon as it does.
 */
#include <config.h>

#include "onnxmem/plan.h"
#include "alloc/assign.h"
#include "pack/search_limits.h"

/* Sufficient to reach the bound on most networks. */
enum { QUICK_NODES = 2000, QUICK_WORK = 100 * 1000 };

/* Pack `a` as small as possible, stopping at a size of `enough`. */
static om_status
pack(om_session *s, const om_prog *p, const om_assignment *a, const om_search_limits *limits, om_arena_size *size)
{
	om_arena *tmp = om_arena_new();
	om_buffers *b = om_buffers_new(p, a, tmp);
	om_pack_result result;
	const om_status st = om_pack_limited(s, b->buf, b->n, limits, &result);

	if (st == OM_OK) {
		size->bound = result.lower_bound > size->bound ? result.lower_bound : size->bound;
		size->bytes = result.height < size->bytes ? result.height : size->bytes;
	}
	om_arena_free(tmp);
	return st;
}

om_status
om_assignment_size(om_session *s, const om_prog *p, const om_assignment *a, om_arena_size *size)
{
	*size = (om_arena_size){0, UINT64_MAX};
	return pack(s, p, a, &(om_search_limits){.nodes = QUICK_NODES, .work = QUICK_WORK}, size);
}

static bool
is_decided(const om_arena_size *x, const om_arena_size *y)
{
	return x->bytes < y->bound || y->bytes <= x->bound;
}

om_status
om_assignment_is_smaller(om_session *s, const om_prog *p, const om_assignment *a, om_arena_size *x,
	const om_assignment *b, om_arena_size *y, bool *yes)
{
	if (!is_decided(x, y))
		OM_TRY(pack(s, p, b, &(om_search_limits){.nodes = OM_PACK_NODES, .target = x->bound}, y));
	if (!is_decided(x, y))
		OM_TRY(pack(s, p, a, &(om_search_limits){.nodes = OM_PACK_NODES, .target = y->bytes - 1}, x));
	*yes = x->bytes < y->bytes;
	return OM_OK;
}
