/* SPDX-License-Identifier: Apache-2.0 */
/* loops: avoid copies of loop-carried values and of results of branches.
 *
 * The decisions are described in src/alloc/assign_loops.c.
 */
#include <config.h>

#include "alloc/assign.h"
#include "onnxmem/assignment.h"
#include "onnxmem/pass.h"

static void
count(om_run *r, const om_loop_counts *n)
{
	const uint64_t all[] = {n->in_place, n->rotating, n->invariant, n->copied, n->dynamic, n->slices, n->branches,
		n->unmerged, n->dropped};

	for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
		om_count(r, r->pass->counters[k].name, all[k]);
}

static om_status
run(om_run *r, om_prog *p)
{
	om_loop_counts counts;
	uint64_t period;

	OM_TRY(om_option_number(r, "period", &period));
	if (period < 1 || period > 64)
		return om_fail(r->session, OM_USAGE, "option period must be a number from 1 to 64");
	OM_TRY(om_assign_loops_fit(r->session, p, p->assignment, (uint32_t)period, p->mem, &p->assignment, &counts));
	count(r, &counts);
	return OM_OK;
}

static const om_pass_option options[] = {
	{"period", "64", "maximum number of buffers in a rotation; longer chains are split, with one copy per iteration"},
	{0}
};

static const om_pass_counter counters[] = {
	{"in_place", "carried values with one address"},
	{"rotating", "carried values that rotate through several buffers"},
	{"invariant", "carried values that no iteration computes"},
	{"copied", "chains that require a copy in every iteration"},
	{"dynamic", "loop outputs whose address depends on the number of iterations"},
	{"slices", "scan slices that are read or written in place"},
	{"branches", "results of branches that are computed in the output of the If"},
	{"unmerged", "values that got separate storage again"},
	{"dropped", "1 if rotations would take more memory than copies"},
	{0}
};

OM_PASS(
	.name = "loops",
	.brief = "avoid copies of loop-carried values and of results of branches",
	.needs = OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_LIVE | OM_HAS_VIEWS | OM_HAS_STORE,
	.gives = 0,
	.keeps = OM_HAS_ALL & ~OM_HAS_PLAN,
	.options = options,
	.counters = counters,
	.run = run)
