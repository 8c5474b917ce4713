/* raise: write operators as a newer opset has them.
 *
 * What became of each operator, version by version, is a table in the library; here is only
 * what the option says. */
#include <config.h>

#include "onnxmem/pass.h"
#include "opset/opset_convert.h"

static om_status
run(om_run *r, om_prog *p)
{
	om_opset_converted done;
	uint64_t opset;

	OM_TRY(om_option_number(r, "opset", &opset));
	OM_TRY(om_prog_convert_opset(r->session, p, opset < INT16_MAX ? (int)opset : INT16_MAX, &done));
	om_count(r, "ops", done.ops);
	om_count(r, "added", done.added);
	om_count(r, "opsets", done.to - done.from);
	return OM_OK;
}

static const om_pass_option options[] = {
	{"opset", "17", "the opset of ai.onnx that operators are written in, unless they are newer already"},
	{0}
};

static const om_pass_counter counters[] = {
	{"ops", "ops that say the same in another way now"},
	{"added", "ops that had to be added for that"},
	{"opsets", "how far the program was raised"},
	{0}
};

OM_PASS(
	.name = "raise",
	.brief = "write operators as a newer opset has them",
	.needs = OM_HAS_INLINE | OM_HAS_SHAPES,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES,
	.options = options,
	.counters = counters,
	.run = run)
