/* Assignments: decisions about values, stored outside of the program. */
#include <config.h>

#include "alloc/assign.h"
#include "onnxmem/assignment.h"

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

/* The same lifetimes, but every value has its own storage again. */
static const om_assignment *
without_storage(const om_assignment *in, om_arena *mem)
{
	om_assignment *a = om_memdup(mem, in->before_loops ? in->before_loops : in, sizeof *in);

	a->backing = OM_NEWN(mem, om_backing, in->nvalue);
	a->multi_view = OM_NEWN(mem, const om_multi_view *, in->nvalue);
	a->before_loops = NULL;
	return a;
}

void
om_assignment_settle(om_prog *p)
{
	const unsigned decided = OM_HAS_SHAPES | OM_HAS_CONST;
	const om_assignment *a = p->assignment;

	if (a && (a->nvalue < p->nvalue || a->schedule->nop < p->nop))
		p->has &= ~(unsigned)(OM_HAS_LIVE | OM_HAS_VIEWS | OM_HAS_STORE);
	if ((p->has & decided) != decided)
		p->op_facts = NULL;
	if (!(p->has & OM_HAS_LIVE))
		p->assignment = NULL;
	else if (p->assignment && !(p->has & (OM_HAS_VIEWS | OM_HAS_STORE)))
		p->assignment = without_storage(p->assignment, p->mem);
}

om_status
om_assign_schedule(om_session *s, const om_prog *p, const om_schedule *order, const om_op_facts *f, om_arena *mem,
	const om_assignment **views, const om_assignment **full)
{
	*views = om_assign_views(p, om_assign_lifetimes(p, order, f, mem), mem, NULL);
	return om_assign_inplace(s, p, om_assign_io_declared(p, *views, mem, NULL), OM_SUBBUFFERS_AUTO, mem, full);
}
