/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include "base/arena_internal.h"
#include "ir/tiling.h"

static const char *
text(om_arena *mem, const char *s)
{
	return s ? om_strdup(mem, s) : NULL;
}

static om_tiled_step
step_copy(om_arena *mem, const om_tiled_step *s)
{
	return (om_tiled_step){text(mem, s->op), text(mem, s->why), s->bytes};
}

static om_tiled_region *
regions_copy(om_arena *mem, const om_tiling *t)
{
	om_tiled_region *all = om_memdup(mem, t->region, t->n * sizeof *all);

	for (uint32_t k = 0; k < t->n; k++) {
		all[k].first = text(mem, all[k].first);
		all[k].last = text(mem, all[k].last);
		all[k].axis = text(mem, all[k].axis);
		all[k].join = text(mem, all[k].join);
	}
	return all;
}

om_tiling *
om_tiling_copy(om_arena *mem, const om_tiling *t)
{
	om_tiling *all = om_memdup(mem, t, sizeof *t);

	all->region = regions_copy(mem, t);
	all->copy = om_memdup(mem, t->copy, t->ncopy * sizeof *t->copy);
	for (uint32_t k = 0; k < t->ncopy; k++)
		all->copy[k].value = text(mem, t->copy[k].value);
	all->outside = om_memdup(mem, t->outside, t->noutside * sizeof *t->outside);
	for (uint32_t k = 0; k < t->noutside; k++)
		all->outside[k] = step_copy(mem, &t->outside[k]);
	all->peak = om_memdup(mem, t->peak, t->npeak * sizeof *t->peak);
	all->stop = step_copy(mem, &t->stop);
	all->floor_op = text(mem, t->floor_op);
	return all;
}
