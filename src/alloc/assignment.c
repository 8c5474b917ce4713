/* SPDX-License-Identifier: Apache-2.0 */
/* Assignments: decisions about values, stored outside of the program. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "alloc/assign.h"
#include "ir/facts.h"
#include "onnxmem/assignment.h"

/* ---- Requests. ---- */

const om_plan_request *
om_plan_request_copy(const om_plan_request *r, om_arena *mem)
{
	static const om_arena_spec one = {.name = "arena", .device = "cpu"};
	om_plan_request *to = om_memdup(mem, r, sizeof *r);
	om_arena_spec *arena;

	to->align = r->align ? r->align : 64;
	to->narena = r->narena ? r->narena : 1;
	to->threads = r->threads ? r->threads : 1;
	to->parallel_safe = r->parallel_safe || r->streams;
	to->arena = arena = om_memdup(mem, r->narena ? r->arena : &one, to->narena * sizeof *arena);
	for (uint32_t k = 0; k < to->narena; k++) {
		arena[k].name = om_strdup(mem, arena[k].name);
		arena[k].device = om_strdup(mem, arena[k].device);
	}
	om_io_rule *rule = om_memdup(mem, r->io_rule, r->nio_rule * sizeof *rule);
	to->io_rule = rule;
	for (uint32_t k = 0; k < r->nio_rule; k++)
		rule[k].name = om_strdup(mem, rule[k].name);
	om_pin *pin = om_memdup(mem, r->pin, r->npin * sizeof *pin);
	to->pin = pin;
	for (uint32_t k = 0; k < r->npin; k++)
		pin[k] = (om_pin){om_strdup(mem, pin[k].value), om_strdup(mem, pin[k].arena)};
	om_scratch_need *need = om_memdup(mem, r->scratch, r->nscratch * sizeof *need);
	to->scratch = need;
	for (uint32_t k = 0; k < r->nscratch; k++)
		need[k].value = om_strdup(mem, need[k].value);
	return to;
}

static int
by_name(const void *name, const void *need)
{
	return strcmp(name, ((const om_scratch_need *)need)->value);
}

uint64_t
om_plan_request_scratch(const om_plan_request *r, const char *value)
{
	const om_scratch_need *x = r->nscratch ? bsearch(value, r->scratch, r->nscratch, sizeof *x, by_name) : NULL;

	return x ? x->bytes : 0;
}

bool
om_plan_request_same_scratch(const om_plan_request *a, const om_plan_request *b)
{
	if (a->nscratch != b->nscratch)
		return false;
	for (uint32_t k = 0; k < a->nscratch; k++)
		if (a->scratch[k].bytes != b->scratch[k].bytes || strcmp(a->scratch[k].value, b->scratch[k].value) != 0)
			return false;
	return true;
}

om_io
om_plan_request_io(const om_plan_request *r, const om_value *v)
{
	for (uint32_t k = 0; k < r->nio_rule; k++)
		if (strcmp(r->io_rule[k].name, v->name) == 0)
			return r->io_rule[k].where;
	return r->io;
}

bool
om_plan_request_same_io(const om_plan_request *a, const om_plan_request *b)
{
	if (a->io != b->io || a->nio_rule != b->nio_rule)
		return false;
	for (uint32_t k = 0; k < a->nio_rule; k++)
		if (strcmp(a->io_rule[k].name, b->io_rule[k].name) != 0 || a->io_rule[k].where != b->io_rule[k].where)
			return false;
	return true;
}

/* The alignment that a plan of `p` needs at least: that of its widest elements, because views, sub-buffers
 * and multi-views place values of every type in one buffer. */
static uint64_t
effective_align(const om_prog *p, uint64_t align)
{
	for (uint32_t k = 0; k < p->nvalue; k++) {
		const uint64_t each = om_dtype_bits(p->values[k]->type.elem) / 8;
		align = each > align ? each : align;
	}
	return align;
}

const om_plan_request *
om_plan_request_for(const om_prog *p, const om_plan_request *r, om_arena *mem)
{
	om_plan_request raised = *om_plan_request_copy(r, mem);

	raised.align = effective_align(p, raised.align);
	return om_memdup(mem, &raised, sizeof raised);
}

/* Are decisions for the one request valid for the other?  No analysis before packing depends on arenas. */
static bool
is_equivalent(const om_prog *p, const om_plan_request *a, const om_plan_request *b)
{
	return a->align == effective_align(p, b->align ? b->align : 64) && a->parallel_safe == (b->parallel_safe || b->streams) && a->streams == b->streams
	    && a->target == b->target && a->threads == (b->threads ? b->threads : 1) && a->precise == b->precise
	    && a->ranged == b->ranged && a->exact_sizes == b->exact_sizes && a->keep_states == b->keep_states
	    && om_plan_request_same_io(a, b)
	    && om_plan_request_same_scratch(a, b);
}

void
om_assignment_comply(om_prog *p, const om_plan_request *r)
{
	const om_plan_request *was = p->assignment ? p->assignment->request : NULL;

	if (!was)
		return;
	if (is_equivalent(p, was, r)) {
		om_assignment *a = om_memdup(p->mem, p->assignment, sizeof *a);
		a->request = om_plan_request_for(p, r, p->mem);
		p->assignment = a;
	} else {
		om_facts_set(p, p->has & ~(unsigned)(OM_HAS_LIVE | OM_HAS_VIEWS | OM_HAS_STORE | OM_HAS_PLAN), 0);
		om_assignment_settle(p);
	}
}

/* ---- Assignments. ---- */

om_assignment *
om_assignment_copy(const om_assignment *in, om_arena *mem)
{
	om_assignment *a = om_memdup(mem, in, sizeof *in);

	a->live = om_memdup(mem, in->live, in->nvalue * sizeof *in->live);
	a->backing = om_memdup(mem, in->backing, in->nvalue * sizeof *in->backing);
	a->multi_view = om_memdup(mem, in->multi_view, in->nvalue * sizeof *in->multi_view);
	return a;
}

void
om_assignment_back(om_assignment *a, const om_value *v, om_store store, om_value *source, uint64_t offset)
{
	a->backing[v->id] = (om_backing){store, source, offset};
}

om_value *
om_storage(const om_assignment *a, const om_value *v, uint64_t *offset)
{
	uint64_t at = 0;

	for (; a->backing[v->id].source; v = a->backing[v->id].source)
		at += a->backing[v->id].offset;
	if (offset)
		*offset = at;
	return (om_value *)v;
}

om_storages
om_storages_new(const om_prog *p, const om_assignment *a, om_arena *mem)
{
	om_storages all = {OM_NEWN(mem, om_value *, p->nvalue), OM_NEWN(mem, uint64_t, p->nvalue)};
	om_value **hop = OM_NEWN(mem, om_value *, p->nvalue);

	for (uint32_t k = 0; k < p->nvalue; k++) {
		om_value *v = p->values[k];
		uint32_t n = 0;
		for (; !all.root[v->id] && a->backing[v->id].source; v = a->backing[v->id].source)
			hop[n++] = v;
		if (!all.root[v->id])
			all.root[v->id] = v;
		for (; n; v = hop[n]) {
			const om_value *at = hop[--n];
			all.root[at->id] = all.root[v->id];
			all.offset[at->id] = all.offset[v->id] + a->backing[at->id].offset;
		}
	}
	return all;
}

/* The same lifetimes, but every value has its own storage again. */
static const om_assignment *
without_storage(const om_assignment *in, om_arena *mem)
{
	om_assignment *a = om_memdup(mem, in->before_loops ? in->before_loops : in, sizeof *in);

	a->backing = OM_NEWN(mem, om_backing, in->nvalue);
	a->multi_view = OM_NEWN(mem, const om_multi_view *, in->nvalue);
	a->overwrite = NULL;
	a->before_loops = NULL;
	a->request = in->request;
	return a;
}

void
om_assignment_schedule(om_prog *p, const om_schedule *s)
{
	p->assignment = om_memdup(p->mem, &(om_assignment){.schedule = s}, sizeof *p->assignment);
}

void
om_assignment_settle(om_prog *p)
{
	const unsigned decided = OM_HAS_SHAPES | OM_HAS_CONST;
	const om_assignment *a = p->assignment;

	if (a && a->schedule->nop < p->nop)
		p->has &= ~(unsigned)(OM_HAS_SCHEDULE | OM_HAS_LIVE | OM_HAS_VIEWS | OM_HAS_STORE);
	if (a && a->live && a->nvalue < p->nvalue)
		p->has &= ~(unsigned)(OM_HAS_LIVE | OM_HAS_VIEWS | OM_HAS_STORE);
	if ((p->has & decided) != decided)
		p->op_facts = NULL;
	if (!(p->has & (OM_HAS_LIVE | OM_HAS_SCHEDULE)))
		p->assignment = NULL;
	else if (!(p->has & OM_HAS_LIVE))
		om_assignment_schedule(p, p->assignment->schedule);
	else if (p->assignment && !(p->has & (OM_HAS_VIEWS | OM_HAS_STORE)))
		p->assignment = without_storage(p->assignment, p->mem);
}

om_status
om_assign_schedule(om_session *s, const om_prog *p, const om_schedule *order, const om_plan_request *r,
	const om_op_facts *f, om_arena *mem, const om_assignment **views, const om_assignment **full,
	const om_assignment **packed)
{
	om_loop_counts counts;

	*views = om_assign_views(p, om_assign_lifetimes(p, order, r, f, mem), mem, NULL);
	OM_TRY(om_assign_inplace(s, p, om_assign_io_declared(p, *views, mem, NULL), OM_SUBBUFFERS_AUTO, false, mem, full));
	*packed = *full;
	return p->nblock > 1 ? om_assign_loops_fit(s, p, *full, OM_LOOP_PERIOD, mem, packed, &counts) : OM_OK;
}
