/* views: outputs that hold the very bytes of an input get no storage.
 *
 * What is decided, and why, is in src/alloc/assign_views.c.
 */
#include <config.h>

#include "alloc/assign.h"
#include "onnxmem/assignment.h"
#include "onnxmem/pass.h"

static om_status
run(om_run *r, om_prog *p)
{
	om_view_counts count;

	p->assignment = om_assign_views(p, p->assignment, p->mem, &count);
	om_count(r, "whole", count.whole);
	om_count(r, "parts", count.parts);
	om_count(r, "copied", count.copied);
	return OM_OK;
}

static const om_pass_counter counters[] = {
	{"whole", "outputs that are an input in another shape"},
	{"parts", "outputs that are a part of an input"},
	{"copied", "outputs that are copied, because bytes would be overwritten"},
	{0}
};

OM_PASS(
	.name = "views",
	.brief = "give no storage to outputs that hold the bytes of an input",
	.needs = OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_LIVE,
	.gives = OM_HAS_VIEWS,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_LIVE,
	.counters = counters,
	.run = run)
