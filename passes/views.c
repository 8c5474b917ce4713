/* SPDX-License-Identifier: Apache-2.0 */
/* views: outputs that consist of bytes of an input get no storage of their own.
 *
 * The decisions are described in src/alloc/assign_views.c.
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
	om_count(r, "views", count.views);
	om_count(r, "slices", count.slices);
	om_count(r, "copied", count.copied);
	return OM_OK;
}

static const om_pass_counter counters[] = {
	{"views", "outputs that are a whole input in another shape"},
	{"slices", "outputs that are a part of an input"},
	{"copied", "outputs that are copied because the bytes of the input would be overwritten"},
	{0}
};

OM_PASS(
	.name = "views",
	.brief = "make outputs that consist of bytes of an input views",
	.needs = OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_LIVE,
	.gives = OM_HAS_VIEWS,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_SCHEDULE | OM_HAS_LIVE,
	.counters = counters,
	.run = run)
