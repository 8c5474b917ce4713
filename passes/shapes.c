/* SPDX-License-Identifier: Apache-2.0 */
/* shapes: infer type and shape of every value, forwards.
 *
 * Shape arithmetic (Shape, Gather, Concat ... on a few integers) is computed on
 * the way, because later shapes depend on it.
 *
 * In bodies, declarations may turn out to be wrong only after ops that were inferred with them: there, inference
 * is repeated, so that shapes do not depend on how often it ran.
 */
#include <config.h>

#include "base/arena_internal.h"
#include "opdef/op_context.h"
#include "onnxmem/pass.h"

enum { REPEATED = 2 };

static void
free_session(void *s)
{
	om_session_free(s);
}

/* What there is to be said has been said. */
static om_status
repeat(om_run *r, om_prog *p)
{
	om_session *quiet = om_session_new();
	om_status st = OM_OK;

	if (!quiet)
		return om_fail(r->session, OM_MEMORY, "there is no memory for a session");
	om_arena_defer(r->scratch, free_session, quiet);
	for (int k = 0; k < REPEATED && st == OM_OK; k++) {
		st = om_block_infer(quiet, p, p->first);
		if (st != OM_OK)
			om_fail(r->session, st, "%s", om_message(quiet));
	}
	return st;
}

static om_status
run(om_run *r, om_prog *p)
{
	OM_TRY(om_block_infer(r->session, p, p->first));
	if (p->first->next)
		OM_TRY(repeat(r, p));
	for (uint32_t k = 0; k < p->nvalue; k++)
		if (p->values[k]->type.kind == OM_TENSOR && !om_shape_is_known(&p->values[k]->shape))
			om_count(r, "unknown_shapes", 1);
	return OM_OK;
}

static const om_pass_counter counters[] = {
	{"unknown_shapes", "tensors whose shape is not known"},
	{0}
};

OM_PASS(
	.name = "shapes",
	.brief = "infer the type and the shape of every value",
	.needs = OM_HAS_INLINE,
	.gives = OM_HAS_SHAPES,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES,
	.counters = counters,
	.run = run)
