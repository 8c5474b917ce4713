/* tie: results of the graph in the memory of its inputs.
 *
 * A state that a program takes and gives, a cache of keys and values, a weight, is handed
 * to the next run as it comes out of this one.  Where the op that computes the
 * result may do so over that input, and nobody needs the input later, the result
 * is tied to it: it is computed in the caller's memory, and nothing is copied from
 * run to run.  The caller loses what was in the input.
 *
 * `asked` ties what the program says that it hands on, and nothing else: so it is in the
 * usual pipeline.  It comes before `inplace`, which would put gradients into the memory
 * of new weights while the old ones are still needed.  A result may be some ops away from
 * its input then; what is computed on the way lies in the input's memory, too.
 *
 * `any` ties whatever can be, one op away, and is behind `inplace`: a result in whose
 * memory something else was put before is left alone, because the input is still needed
 * then.
 */
#include <config.h>

#include <string.h>

#include "alloc/assign.h"
#include "onnxmem/assignment.h"
#include "onnxmem/pass.h"

/* In an order that may change nobody knows who reads the input last. */
static om_status
run(om_run *r, om_prog *p)
{
	const char *what = om_option(r, "what");
	const bool asked = strcmp(what, "asked") == 0;
	om_io_counts count;

	if (!asked && strcmp(what, "any") != 0)
		return om_fail(r->session, OM_USAGE, "tie: what is any or asked, not %s", what);
	if (p->parallel_safe && !asked)
		return om_fail(r->session, OM_USAGE, "tie: a plan for every order ties nothing");
	p->assignment = (asked ? om_assign_io_declared : om_assign_io_any)(p, p->assignment, p->mem, &count);
	om_count(r, "results", count.results);
	om_count(r, "bytes", count.bytes);
	return OM_OK;
}

static const om_pass_option options[] = {
	{"what", "any", "results that are tied: any that can be, or those that the model hands on (asked)"},
	{0}
};

static const om_pass_counter counters[] = {
	{"results", "results that are computed in the memory of an input"},
	{"bytes", "bytes that are not copied from run to run"},
	{0}
};

OM_PASS(
	.name = "tie",
	.brief = "compute results over the inputs that they replace",
	.needs = OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_LIVE | OM_HAS_VIEWS,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_LIVE | OM_HAS_VIEWS | OM_HAS_STORE,
	.options = options,
	.counters = counters,
	.run = run)
