/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows each op computes in each band, planned forward: the sources are there up to an even share of their rows, and each
 * op goes as far as its inputs allow.  So from band to band an op continues where it stopped, and deep ops have no rows in
 * most bands. */
#include <config.h>

#include "lower/tile/tile_internal.h"

/* `there`: by value, the rows that are there after a band. */
static bool
suffices(const om_tile_region *r, const int64_t *there, om_tile_rule *rule, int64_t hi)
{
	for (uint32_t k = 0; k < rule->op->nin; k++) {
		if (!om_tile_is_divided(rule, k))
			continue;
		const int64_t to = om_tile_to(rule, k, hi);
		if (to < 0 || to > there[r->of[rule->op->in[k]->id] - 1])
			return false;
	}
	return true;
}

static bool
is_driven(const om_tile_rule *rule)
{
	for (uint32_t k = 0; k < rule->op->nin; k++)
		if (om_tile_is_divided(rule, k))
			return true;
	return false;
}

/* How far the op can go, from `lo` on. */
static int64_t
reach(const om_tile_region *r, const int64_t *there, om_tile_rule *rule, int64_t lo)
{
	int64_t least = lo, most = rule->length;

	while (least < most) {
		const int64_t mid = (least + most + 1) / 2;
		if (suffices(r, there, rule, mid))
			least = mid;
		else
			most = mid - 1;
	}
	return least;
}

bool
om_tile_rows(const om_tile_region *r, uint32_t bands, om_arena *mem, int64_t **done)
{
	int64_t *there = OM_NEWN(mem, int64_t, r->nvalue);
	bool is_complete = true;

	*done = OM_NEWN(mem, int64_t, (size_t)(bands + 1) * r->nband);
	for (uint32_t p = 0; p < bands; p++) {
		const int64_t *before = &(*done)[p * r->nband];
		int64_t *after = &(*done)[(p + 1) * r->nband];
		for (size_t k = 0; k < r->nvalue; k++)
			if (r->value[k].is_source)
				there[k] = r->value[k].v->shape.dim[r->value[k].axis] * (p + 1) / bands;
		for (uint32_t b = 0; b < r->nband; b++) {
			om_tile_rule *rule = r->band[b];
			after[b] = is_driven(rule) ? reach(r, there, rule, before[b]) : rule->length * (p + 1) / bands;
			for (uint32_t k = 0; k < rule->op->nout && !rule->is_sum; k++)
				if (rule->op->out[k])
					there[r->of[rule->op->out[k]->id] - 1] = after[b];
			is_complete &= p + 1 < bands || after[b] == rule->length;
		}
	}
	return is_complete;
}
