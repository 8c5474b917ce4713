/* SPDX-License-Identifier: Apache-2.0 */
/* alias-io: store results of the graph in the memory of its inputs.
 *
 * A state, such as a cache of keys and values or a weight, is an input and an output: the caller
 * passes the output of one run to the next.  If the op that computes the result may compute it
 * over the input, and the input has no later use, the result is aliased to the input: it is
 * computed in the caller's memory, and nothing is copied between runs.  The old contents of the
 * input are lost.
 *
 * With `declared`, only states that the program declares are aliased; this is part of the default
 * pipeline.  The pass runs before `inplace`, which would otherwise place gradients in the memory of
 * new weights while the old ones are still live.  Several ops may lie between the input and the
 * result; their outputs are stored in the input's memory, too.
 *
 * With `any`, every result is aliased that is computed from an input by one op.  The pass then runs
 * after `inplace`: a result whose storage is shared already is skipped, because the input is still
 * live.
 */
#include <config.h>

#include <string.h>

#include "alloc/assign.h"
#include "onnxmem/assignment.h"
#include "onnxmem/pass.h"

/* In a parallel-safe plan the last reader of the input is not known. */
static om_status
run(om_run *r, om_prog *p)
{
	const char *results = om_option(r, "results");
	const bool declared = strcmp(results, "declared") == 0;
	om_io_counts count;

	if (!declared && strcmp(results, "any") != 0)
		return om_fail(r->session, OM_USAGE, "option results must be any or declared, not %s", results);
	if (r->request->parallel_safe && !declared)
		return om_fail(r->session, OM_USAGE, "a parallel-safe plan cannot alias results that are not declared");
	p->assignment = (declared ? om_assign_io_declared : om_assign_io_any)(p, p->assignment, p->mem, &count);
	om_count(r, "results", count.results);
	om_count(r, "bytes", count.bytes);
	return OM_OK;
}

static const om_pass_option options[] = {
	{"results", "any", "results to alias: any result, or the states that the model declares (declared)"},
	{0}
};

static const om_pass_counter counters[] = {
	{"results", "results that are computed in the memory of an input"},
	{"bytes", "bytes that are not copied from run to run"},
	{0}
};

OM_PASS(
	.name = "alias-io",
	.brief = "compute results in the memory of the inputs that they replace",
	.needs = OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_LIVE | OM_HAS_VIEWS,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_SCHEDULE | OM_HAS_LIVE | OM_HAS_VIEWS | OM_HAS_STORE,
	.options = options,
	.counters = counters,
	.run = run)
