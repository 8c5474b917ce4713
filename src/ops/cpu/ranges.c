/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over rows, divided among the workers of a run. */
#include <config.h>

#include "base/parallel.h"
#include "ops/cpu/ranges.h"

enum { PIECES = 4 };              /* per worker, so that a late one is helped out */

struct ranges {
	om_range_fn *fn;
	void *arg;
	int64_t n, pieces;
};

static void
run_piece(void *arg, int64_t k, uint32_t worker)
{
	const struct ranges *r = arg;
	const int64_t each = r->n / r->pieces, longer = r->n % r->pieces;
	const int64_t from = k * each + (k < longer ? k : longer);

	r->fn(r->arg, from, from + each + (k < longer), worker);
}

uint32_t
om_call_workers(const om_op_context *c)
{
	return c->workers ? c->workers : 1;
}

void
om_for_ranges(const om_op_context *c, int64_t n, int64_t elements, om_range_fn *fn, void *arg)
{
	const int64_t pieces = (int64_t)om_call_workers(c) * PIECES;
	struct ranges r = {fn, arg, n, n < pieces ? n : pieces};

	if (n <= 1 || !c->pool || om_call_workers(c) == 1 || n < OM_PARALLEL_FROM / (elements > 0 ? elements : 1))
		fn(arg, 0, n, 0);
	else
		om_parallel_for(c->pool, r.pieces, run_piece, &r);
}
