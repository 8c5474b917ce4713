/* inplace: compute values where they go, or over what is not needed any more.
 *
 * What is decided, and why, is in src/alloc/assign_inplace.c.
 */
#include <config.h>

#include <string.h>

#include "alloc/assign.h"
#include "onnxmem/assignment.h"
#include "onnxmem/pass.h"

/* What is on the way to a result in the memory of an input counts there. */
static bool
is_tied(const om_assignment *a, const om_backing *b)
{
	return b->store == OM_SUBBUFFER && a->backing[b->source->id].store == OM_IO_ALIAS;
}

static void
count(om_run *r, const om_prog *p)
{
	const om_assignment *a = p->assignment;

	for (uint32_t k = 0; k < a->nvalue; k++) {
		const om_backing *b = &a->backing[k];
		if ((b->store != OM_INPLACE && b->store != OM_SUBBUFFER) || is_tied(a, b))
			continue;
		om_count(r, b->store == OM_SUBBUFFER ? "parts" : "outputs", 1);
		om_count(r, "bytes", om_value_bytes(p->values[k]));
	}
}

static om_status
run(om_run *r, om_prog *p)
{
	static const char *const texts[] = {
		[OM_SUBBUFFERS_NO] = "no", [OM_SUBBUFFERS_YES] = "yes", [OM_SUBBUFFERS_TRY] = "try",
	};
	const char *parts = om_option(r, "parts");
	unsigned how = OM_SUBBUFFERS_NO;

	while (how <= OM_SUBBUFFERS_TRY && strcmp(parts, texts[how]) != 0)
		how++;
	if (how > OM_SUBBUFFERS_TRY)
		return om_fail(r->session, OM_USAGE, "inplace: parts is yes, no or try, not %s", parts);
	OM_TRY(om_assign_inplace(r->session, p, p->assignment, (om_subbuffers)how, p->mem, &p->assignment));
	count(r, p);
	return OM_OK;
}

static const om_pass_option options[] = {
	{"parts", "try", "inputs of a join, right in its output: yes, no, or unless the arena is larger (try)"},
	{0}
};

static const om_pass_counter counters[] = {
	{"parts", "inputs that are computed right in the output"},
	{"outputs", "outputs that lie over an input"},
	{"bytes", "bytes of their own that these do without"},
	{0}
};

OM_PASS(
	.name = "inplace",
	.brief = "compute values where they go, or over what is not needed any more",
	.needs = OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_LIVE | OM_HAS_VIEWS,
	.gives = OM_HAS_STORE,
	.keeps = OM_HAS_ALL & ~OM_HAS_PLAN,
	.options = options,
	.counters = counters,
	.run = run)
