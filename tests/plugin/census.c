/* SPDX-License-Identifier: Apache-2.0 */
/* census: count ops.  A pass as somebody else would write it: see tests/plugin.test. */
#include <onnxmem/pass.h>

static om_status
run(om_run *r, om_prog *p)
{
	uint64_t least;

	OM_TRY(om_option_number(r, "least", &least));
	for (const om_block *b = p->first; b; b = b->next)
		for (const om_op *op = b->first; op; op = op->next) {
			om_count(r, "ops", 1);
			om_count(r, "wide", op->nin >= least);
		}
	return OM_OK;
}

static const om_pass_option options[] = {
	{"least", "3", "inputs that make an op wide"},
	{0}
};

static const om_pass_counter counters[] = {
	{"ops", "all of them"},
	{"wide", "those with many inputs"},
	{0}
};

OM_PASS(
	.name = "census",
	.brief = "count ops",
	.keeps = OM_HAS_ALL,
	.options = options,
	.counters = counters,
	.run = run)
