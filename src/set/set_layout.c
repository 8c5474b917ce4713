/* SPDX-License-Identifier: Apache-2.0 */
/* The arena of a set: arenas of parts and shared values as buffers, in the order in which parts run. */
#include <config.h>

#include "base/sizes.h"
#include "onnxmem/pack.h"
#include "set/set.h"

static bool
is_in(const struct set_loop *l, uint32_t at)
{
	return l->first <= at && at <= l->last;
}

/* Is it read in the loop before, or without, being written there?  Then it comes from an earlier iteration, or from before. */
static bool
is_carried(const om_set_value *v, const struct set_loop *l)
{
	for (uint32_t k = 0; k < v->nend; k++) {
		bool is_written = false;
		if (v->end[k].is_output || !is_in(l, v->end[k].part))
			continue;
		for (uint32_t w = 0; w < v->nend; w++)
			is_written |= v->end[w].is_output && is_in(l, v->end[w].part) && v->end[w].part < v->end[k].part;
		if (!is_written)
			return true;
	}
	return false;
}

/* Between which positions a value has to be intact. */
static void
find_life(const om_set *x, om_set_value *v)
{
	v->first = UINT32_MAX;
	v->last = 0;
	for (uint32_t k = 0; k < v->nend; k++) {
		v->first = v->end[k].part < v->first ? v->end[k].part : v->first;
		v->last = v->end[k].part > v->last ? v->end[k].part : v->last;
	}
	for (uint32_t k = 0; k < x->nloop; k++)
		if (is_carried(v, &x->loop[k])) {
			v->first = x->loop[k].first < v->first ? x->loop[k].first : v->first;
			v->last = x->loop[k].last > v->last ? x->loop[k].last : v->last;
		}
}

/* A part that reads and writes it needs two buffers, unless it always writes it where it reads it. */
static uint32_t
count_buffers(const om_set *x, const om_set_value *v)
{
	for (uint32_t w = 0; w < v->nend; w++)
		for (uint32_t r = 0; r < v->nend; r++)
			if (v->end[w].is_output && !v->end[r].is_output && v->end[w].part == v->end[r].part
			    && !x->part[v->end[w].part].in_place[v->end[w].index])
				return 2;
	return 1;
}

om_status
om_set_pack(om_set *x)
{
	const uint32_t n = x->npart + 2 * x->nvalue;
	om_buffer *buf = OM_NEWN(x->mem, om_buffer, n);
	om_interval *live = OM_NEWN(x->mem, om_interval, n);
	om_pack_result result;
	uint32_t i = 0;

	for (uint32_t k = 0; k < x->npart; k++, i++) {
		live[i] = (om_interval){k, k + 1, 0, 0};
		buf[i] = (om_buffer){.name = x->part[k].pub.name, .bytes = x->part[k].pub.bytes};
	}
	for (uint32_t k = 0; k < x->nvalue; k++)
		for (uint32_t b = 0; b < x->value[k].nbuffer; b++, i++) {
			live[i] = (om_interval){x->value[k].first, x->value[k].last + 1, 0, 0};
			buf[i] = (om_buffer){.name = x->value[k].name, .bytes = x->value[k].bytes};
		}
	for (uint32_t k = 0; k < i; k++) {
		buf[k].align = x->plan.align;
		buf[k].live = &live[k];
		buf[k].nlive = 1;
		buf[k].fixed = OM_OFFSET_FREE;
		buf[k].fixed_pool = OM_POOL_ANY;
	}
	OM_TRY(om_pack(x->session, buf, i, &result));
	OM_TRY(om_pack_check(x->session, buf, i, result.height));
	x->plan.bytes = result.height;
	x->plan.lower_bound = result.lower_bound;
	i = 0;
	for (uint32_t k = 0; k < x->npart; k++)
		x->part[k].pub.offset = buf[i++].offset;
	for (uint32_t k = 0; k < x->nvalue; k++)
		for (uint32_t b = 0; b < x->value[k].nbuffer; b++)
			x->value[k].offset[b] = buf[i++].offset;
	return OM_OK;
}

om_status
om_set_plan_parts(om_set *x)
{
	x->is_planned = false;
	for (uint32_t k = 0; k < x->nvalue; k++)
		x->value[k].bytes = 0;
	for (uint32_t k = 0; k < x->npart; k++)
		OM_TRY(om_set_plan_part(x, &x->part[k]));
	x->plan.crossing = 0;
	for (uint32_t k = 0; k < x->nvalue; k++) {
		find_life(x, &x->value[k]);
		x->value[k].nbuffer = count_buffers(x, &x->value[k]);
		x->plan.crossing += x->value[k].nbuffer * om_size_rounded_up(x->value[k].bytes, x->plan.align);
	}
	return OM_OK;
}
