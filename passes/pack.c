/* pack: give every buffer its place in the arena, as low as can be. */
#include <config.h>

#include "onnxmem/pass.h"
#include "onnxmem/plan.h"

static om_status
run(om_run *r, om_prog *p)
{
	om_buffers *b = om_buffers_new(p, r->scratch);
	om_pack_result result;

	OM_TRY(om_pack(r->session, b->buf, b->n, &result));
	om_plan_new(p, b, &result, result.strategy);
	om_count(r, "buffers", b->n);
	om_count(r, "bytes", result.height);
	om_count(r, "bound", result.lower_bound);
	return OM_OK;
}

static const om_pass_counter counters[] = {
	{"buffers", "buffers that were placed"},
	{"bytes", "size of the arena"},
	{"bound", "bytes below which no placement can get"},
	{0}
};

OM_PASS(
	.name = "pack",
	.brief = "place all buffers in one arena",
	.needs = OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_LIVE,
	.gives = OM_HAS_PLAN,
	.keeps = OM_HAS_ALL,
	.counters = counters,
	.run = run)
