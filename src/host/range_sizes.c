/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the sizes of ranges: see range_sizes.h. */
#include <config.h>

#include "host/range_sizes.h"

/* The sizes of a range that are visited, ascending: all or, of more than `most`, the ends and as many between them,
 * at equal distances. */
static int64_t
size_at(const om_dim_range *r, uint64_t k, uint64_t most)
{
	const uint64_t step = (uint64_t)om_dim_range_step(r), n = (uint64_t)(r->high - r->low) / step;

	if (n < most)
		return r->low + (int64_t)(k * step);
	return r->low + (int64_t)((n / (most - 1) * k + n % (most - 1) * k / (most - 1)) * step);
}

static uint64_t
count_of(const om_dim_range *r, uint64_t most)
{
	const uint64_t n = (uint64_t)((r->high - r->low) / om_dim_range_step(r)) + 1;

	return n < most ? n : most;
}

/* How many sizes of each range are visited, so that there are at most `most` combinations. */
static uint64_t
most_of_each(const om_size_walk *w, uint64_t most)
{
	for (uint64_t each = most;; each = each * 3 / 4) {
		double all = 1;
		for (uint32_t k = 0; k < w->nrange; k++)
			all *= (double)count_of(&w->range[k], each);
		if (all <= (double)most || each <= 2)
			return each < 2 ? 2 : each;
	}
}

static void
set_sizes(om_size_walk *w)
{
	for (uint32_t k = 0; k < w->nrange; k++)
		w->n[k] = size_at(&w->range[k], w->at[k], w->most);
}

om_size_walk
om_size_walk_new(const om_dim_range *range, uint32_t nrange, uint64_t most, om_arena *mem)
{
	om_size_walk w = {.range = range, .nrange = nrange, .at = OM_NEWN(mem, uint64_t, nrange),
		.n = OM_NEWN(mem, int64_t, nrange), .is_all = true};

	w.most = most_of_each(&w, most);
	for (uint32_t k = 0; k < nrange; k++)
		w.is_all &= (uint64_t)((range[k].high - range[k].low) / om_dim_range_step(&range[k])) < w.most;
	set_sizes(&w);
	return w;
}

bool
om_size_walk_next(om_size_walk *w)
{
	for (uint32_t k = 0; k < w->nrange; k++) {
		const bool is_there = ++w->at[k] < count_of(&w->range[k], w->most);
		w->at[k] = is_there ? w->at[k] : 0;
		if (is_there) {
			set_sizes(w);
			return true;
		}
	}
	return false;
}
