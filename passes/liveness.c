/* SPDX-License-Identifier: Apache-2.0 */
/* liveness: which values are live at every point.
 *
 * Lifetimes in the steps of om_timeline(), and the live sets of basic blocks, which dumps show
 * and tests compare: see src/alloc/lifetimes.c.
 */
#include <config.h>

#include "ir/schedule.h"
#include "alloc/assign.h"
#include "alloc/op_facts.h"
#include "onnxmem/assignment.h"
#include "onnxmem/pass.h"

static om_status
run(om_run *r, om_prog *p)
{
	om_live_counts count;

	om_timeline(p);
	om_assignment *a = om_assign_lifetimes(p, om_schedule_current(p, p->mem), om_plan_request_for(p, r->request, p->mem),
		om_prog_op_facts(p, r->request), p->mem);
	om_live_sets(p, a, p->mem, &count);
	om_count(r, "blocks", count.blocks);
	om_count(r, "worklist_visits", count.worklist_visits);
	p->assignment = a;
	return OM_OK;
}

static const om_pass_counter counters[] = {
	{"blocks", "basic blocks"},
	{"worklist_visits", "times that a block was taken from the worklist"},
	{0}
};

OM_PASS(
	.name = "liveness",
	.brief = "compute lifetimes and live sets of all values",
	.needs = OM_HAS_INLINE | OM_HAS_CONST,
	.gives = OM_HAS_LIVE,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_SCHEDULE,
	.counters = counters,
	.run = run)
