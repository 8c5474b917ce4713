/* loops: what goes round a loop is not copied, nor what leaves a branch.
 *
 * What is decided, and why, is in src/alloc/assign_loops.c.
 */
#include <config.h>

#include "alloc/assign.h"
#include "onnxmem/assignment.h"
#include "onnxmem/pass.h"

static void
count(om_run *r, const om_loop_counts *n)
{
	const uint64_t all[] = {n->together, n->turning, n->through, n->copied, n->found, n->slices, n->branches,
		n->apart};

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
		return om_fail(r->session, OM_USAGE, "loops: option period wants a number from 1 to 64");
	p->assignment = om_assign_loops(p, p->assignment, (uint32_t)period, p->mem, &counts);
	count(r, &counts);
	return OM_OK;
}

static const om_pass_option options[] = {
	{"period", "8", "most regions that take turns; longer chains are cut, with a copy a round"},
	{0}
};

static const om_pass_counter counters[] = {
	{"together", "carried values that stay in one place"},
	{"turning", "carried values that take turns"},
	{"through", "carried values that are never computed"},
	{"copied", "chains into which a value is copied in every round"},
	{"found", "outputs of loops whose place depends on the number of rounds"},
	{"slices", "slices that are read or written in place"},
	{"branches", "results of branches that are computed in the output"},
	{"apart", "values that were given storage of their own again"},
	{0}
};

OM_PASS(
	.name = "loops",
	.brief = "let what goes round a loop, or leaves a branch, stay where it is",
	.needs = OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_LIVE | OM_HAS_VIEWS | OM_HAS_STORE,
	.gives = 0,
	.keeps = OM_HAS_ALL & ~OM_HAS_PLAN,
	.options = options,
	.counters = counters,
	.run = run)
