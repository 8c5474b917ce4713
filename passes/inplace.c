/* SPDX-License-Identifier: Apache-2.0 */
/* inplace: compute outputs over dead inputs, and inputs of a concatenation in its output.
 *
 * The decisions are described in src/alloc/assign_inplace.c.
 */
#include <config.h>

#include <string.h>

#include "alloc/assign.h"
#include "onnxmem/assignment.h"
#include "onnxmem/pass.h"

/* Is the value part of a result that is aliased to an input?  The pass alias-io counts it. */
static bool
is_in_alias(const om_assignment *a, const om_backing *b)
{
	return b->store == OM_SUBBUFFER && a->backing[b->source->id].store == OM_IO_ALIAS;
}

static void
count(om_run *r, const om_prog *p)
{
	const om_assignment *a = p->assignment;

	for (uint32_t k = 0; k < a->nvalue; k++) {
		const om_backing *b = &a->backing[k];
		if ((b->store != OM_INPLACE && b->store != OM_SUBBUFFER) || is_in_alias(a, b))
			continue;
		om_count(r, b->store == OM_SUBBUFFER ? "subbuffers" : "outputs", 1);
		om_count(r, "bytes", om_value_bytes(p->values[k]));
	}
}

static om_status
run(om_run *r, om_prog *p)
{
	static const char *const texts[] = {
		[OM_SUBBUFFERS_NO] = "no", [OM_SUBBUFFERS_YES] = "yes", [OM_SUBBUFFERS_AUTO] = "auto",
	};
	const char *concat = om_option(r, "concat");
	unsigned how = OM_SUBBUFFERS_NO;

	while (how <= OM_SUBBUFFERS_AUTO && strcmp(concat, texts[how]) != 0)
		how++;
	if (how > OM_SUBBUFFERS_AUTO)
		return om_fail(r->session, OM_USAGE, "option concat must be yes, no or auto, not %s", concat);
	OM_TRY(om_assign_inplace(r->session, p, p->assignment, (om_subbuffers)how, true, p->mem, &p->assignment));
	count(r, p);
	return OM_OK;
}

static const om_pass_option options[] = {
	{"concat", "auto", "compute inputs of a concatenation in its output: yes, no, or unless the arena gets larger (auto)"},
	{0}
};

static const om_pass_counter counters[] = {
	{"subbuffers", "inputs of a concatenation that are computed in its output"},
	{"outputs", "outputs that are computed over an input"},
	{"bytes", "bytes of storage saved by both"},
	{0}
};

OM_PASS(
	.name = "inplace",
	.brief = "compute outputs over dead inputs, and inputs of a concatenation in its output",
	.needs = OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_LIVE | OM_HAS_VIEWS,
	.gives = OM_HAS_STORE,
	.keeps = OM_HAS_ALL & ~OM_HAS_PLAN,
	.options = options,
	.counters = counters,
	.run = run)
