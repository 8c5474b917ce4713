/* SPDX-License-Identifier: Apache-2.0 */
/* convert-opset: convert operators to a newer opset.
 *
 * The rules for each operator and version are in src/opset. */
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
	om_count(r, "converted", done.ops);
	om_count(r, "added", done.added);
	om_count(r, "opsets", done.to - done.from);
	return OM_OK;
}

static const om_pass_option options[] = {
	{"opset", "17", "opset of ai.onnx to convert to; newer operators are kept"},
	{0}
};

static const om_pass_counter counters[] = {
	{"converted", "ops that were rewritten"},
	{"added", "ops that the conversion added"},
	{"opsets", "versions between the old opset and the new one"},
	{0}
};

OM_PASS(
	.name = "convert-opset",
	.brief = "convert operators to a newer opset",
	.needs = OM_HAS_INLINE | OM_HAS_SHAPES,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES,
	.options = options,
	.counters = counters,
	.run = run)
