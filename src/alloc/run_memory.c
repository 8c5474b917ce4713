/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a run: arenas, weights, inputs and outputs. */
#include <config.h>

#include "alloc/run_memory.h"
#include "base/arena_internal.h"
#include "base/sizes.h"
#include "opdef/max_sizes.h"

static void
mark_weight(bool *seen, const om_value *v)
{
	if (v && (v->is_const || v->is_overridable))
		seen[v->id] = true;
}

/* Constants that the run reads, and inputs with a default value, which most callers do not override. */
static uint64_t
weight_bytes(const om_prog *p, om_arena *mem)
{
	bool *seen = OM_NEWN(mem, bool, p->nvalue);
	uint64_t sum = 0;

	for (const om_block *b = p->first; b; b = b->next) {
		for (const om_op *op = b->first; op; op = op->next)
			for (uint32_t k = 0; k < op->nin && !op->is_folded; k++)
				mark_weight(seen, op->in[k]);
		for (uint32_t k = 0; k < b->nresult; k++)
			mark_weight(seen, b->result[k]);
	}
	for (uint32_t k = 0; k < p->nvalue; k++)
		sum = om_size_sum(sum, seen[k] ? om_value_bytes(p->values[k]) : 0);
	return sum;
}

/* By value id: is an input without a default, or an output that a run computes, each once. */
static bool *
list_io(const om_prog *p, om_arena *mem)
{
	bool *is_io = OM_NEWN(mem, bool, p->nvalue);

	for (uint32_t k = 0; k < p->first->nparam; k++)
		is_io[p->first->param[k]->id] = !p->first->param[k]->is_overridable && !p->first->param[k]->is_const;
	for (uint32_t k = 0; k < p->first->nresult; k++)
		is_io[p->first->result[k]->id] |= !p->first->result[k]->is_const && !p->first->result[k]->is_overridable;
	return is_io;
}

const bool *
om_io_outside_arenas(const om_prog *p, const om_op_facts *f, om_arena *mem)
{
	bool *is_io = list_io(p, mem);

	for (uint32_t k = 0; k < p->nvalue; k++)
		is_io[k] &= f->is_outside[k];
	return is_io;
}

uint64_t
om_bytes_outside_arenas(const om_prog *p, const om_op_facts *f)
{
	om_arena *mem = om_arena_new();
	const bool *is_io = om_io_outside_arenas(p, f, mem);
	uint64_t sum = weight_bytes(p, mem);

	for (uint32_t k = 0; k < p->nvalue; k++)
		sum = om_size_sum(sum, is_io[k] ? f->bytes[k] + f->most[k] : 0);
	om_arena_free(mem);
	return sum;
}

uint64_t
om_bytes_left_for_arenas(const om_prog *p, const om_op_facts *f, uint64_t total)
{
	const uint64_t outside = om_bytes_outside_arenas(p, f);

	return outside < total ? total - outside : 0;
}

uint32_t
om_plan_count_bounded(const om_prog *p, const om_plan *plan)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < plan->nplace; k++)
		n += plan->place[k].where == OM_IN_ARENA && p->values[k]->type.kind == OM_TENSOR && !om_shape_is_known(&p->values[k]->shape);
	return n;
}

om_plan_memory
om_plan_memory_of(const om_prog *p, const om_plan *plan)
{
	om_arena *mem = om_arena_new();
	bool *is_io = list_io(p, mem);
	const uint64_t *most = om_max_sizes_new(p, mem);
	om_plan_memory m = {.weights = weight_bytes(p, mem)};

	for (uint32_t k = 0; k < plan->nalias; k++)
		if (om_alias_is_io(&plan->alias[k]))
			is_io[plan->alias[k].value] = false;
	for (uint32_t k = 0; k < p->nvalue; k++)
		if (is_io[k] && plan->place[k].where != OM_IN_ARENA)
			m.io = om_size_sum(m.io, most[k] ? most[k] : om_value_bytes(p->values[k]));
	for (uint32_t k = 0; k < plan->narena; k++)
		m.arenas = om_size_sum(m.arenas, plan->arena[k].bytes);
	m.total = om_size_sum(om_size_sum(m.arenas, m.io), m.weights);
	om_arena_free(mem);
	return m;
}

const om_value **
om_plan_unsized(const om_prog *p, const om_plan *plan, om_arena *mem, uint32_t *n)
{
	const bool *is_io = list_io(p, mem);
	const uint64_t *most = om_max_sizes_new(p, mem);
	const om_value **all = OM_NEWN(mem, const om_value *, p->nvalue);

	*n = 0;
	for (uint32_t k = 0; k < p->nvalue; k++) {
		const om_value *v = p->values[k];
		const bool has_size = v->type.kind == OM_TENSOR && (om_shape_is_known(&v->shape) || most[k]);
		if (is_io[k] && plan->place[k].where != OM_IN_ARENA && !has_size)
			all[(*n)++] = v;
	}
	return all;
}
