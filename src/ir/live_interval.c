/* SPDX-License-Identifier: Apache-2.0 */
/* Lifetimes: sets of steps. */
#include <config.h>

#include "ir/live_interval.h"

bool
om_live_interval_range(const om_live_interval *l, uint32_t k, om_steps *range)
{
	if (k >= (l->nrange ? l->nrange : 1))
		return false;
	*range = l->nrange ? l->range[k] : (om_steps){l->first, l->last};
	return true;
}

bool
om_live_interval_covers(const om_live_interval *l, uint32_t first, uint32_t last)
{
	om_steps r;

	for (uint32_t k = 0; om_live_interval_range(l, k, &r); k++)
		if (r.first <= first && last <= r.last)
			return true;
	return false;
}

bool
om_live_interval_meets(const om_live_interval *l, uint32_t first, uint32_t last)
{
	om_steps r;

	for (uint32_t k = 0; om_live_interval_range(l, k, &r); k++)
		if (r.first <= last && first <= r.last)
			return true;
	return false;
}

bool
om_live_intervals_meet(const om_live_interval *a, const om_live_interval *b)
{
	om_steps r;

	if (a->first > b->last || b->first > a->last)
		return false;
	for (uint32_t k = 0; om_live_interval_range(a, k, &r); k++)
		if (om_live_interval_meets(b, r.first, r.last))
			return true;
	return false;
}

uint32_t
om_live_interval_until(const om_live_interval *l, uint32_t step)
{
	om_steps r;

	for (uint32_t k = 0; om_live_interval_range(l, k, &r); k++)
		if (r.first <= step && step <= r.last)
			return r.last;
	return step;
}

/* Ranges that overlap or adjoin the new one become part of it. */
void
om_live_interval_add(om_live_interval *l, uint32_t first, uint32_t last, om_arena *mem)
{
	const uint32_t most = (l->nrange ? l->nrange : 1) + 1;
	om_steps *all, r;
	uint32_t n = 0, k = 0;

	if (l->nrange == 0 && first <= (uint64_t)l->last + 1 && l->first <= (uint64_t)last + 1) {
		l->first = first < l->first ? first : l->first;
		l->last = last > l->last ? last : l->last;
	}
	if (om_live_interval_covers(l, first, last))
		return;
	all = OM_NEWN(mem, om_steps, most);
	for (; om_live_interval_range(l, k, &r) && (uint64_t)r.last + 1 < first; k++)
		all[n++] = r;
	for (; om_live_interval_range(l, k, &r) && r.first <= (uint64_t)last + 1; k++) {
		first = r.first < first ? r.first : first;
		last = r.last > last ? r.last : last;
	}
	all[n++] = (om_steps){first, last};
	for (; om_live_interval_range(l, k, &r); k++)
		all[n++] = r;
	*l = (om_live_interval){all[0].first, all[n - 1].last, n > 1 ? all : NULL, n > 1 ? n : 0};
}
