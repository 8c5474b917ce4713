/* SPDX-License-Identifier: Apache-2.0 */
/* depth: an analysis of a third party, which gives a fact of its own with data, and one that
 * reads it; the file is one module or the other, by READS. */
#include <onnxmem/pass.h>

#ifndef READS

/* By value id, ops on the longest way from an input. */
static om_status
run(om_run *r, om_prog *p)
{
	om_arena *mem = om_arena_new();
	uint32_t *depth = OM_NEWN(mem, uint32_t, p->nvalue);

	for (const om_op *op = p->first->first; op; op = op->next) {
		uint32_t most = 0;
		for (uint32_t k = 0; k < op->nin; k++)
			if (op->in[k] && depth[op->in[k]->id] > most)
				most = depth[op->in[k]->id];
		for (uint32_t k = 0; k < op->nout; k++)
			if (op->out[k])
				depth[op->out[k]->id] = most + 1;
	}
	om_count(r, "runs", 1);
	return om_fact_attach(r, p, "depth", mem, depth);
}

static const om_pass_counter counters[] = {{"runs", "times that it was found out"}, {0}};

OM_PASS(
	.name = "depth",
	.brief = "find the depth of values",
	.needs = OM_HAS_INLINE,
	.keeps = OM_HAS_ALL,
	.gives_facts = "depth",
	.counters = counters,
	.run = run)

#else

static om_status
run(om_run *r, om_prog *p)
{
	const uint32_t *depth = om_fact_data(p, "depth");
	uint64_t least, most = 0;

	OM_TRY(om_option_number(r, "least", &least));
	for (uint32_t k = 0; k < p->nvalue; k++)
		most = depth[k] > most ? depth[k] : most;
	om_count(r, "deepest", most >= least ? most : 0);
	return OM_OK;
}

static const om_pass_option options[] = {{"least", "0", "depth that counts"}, {0}};
static const om_pass_counter counters[] = {{"deepest", "depth of the deepest value"}, {0}};
static const om_pass_flag flags[] = {
	{.name = "least-depth", .option = "least", .arg = "N", .brief = "count depths from N on", .kind = OM_FLAG_NUMBER, .max = 100,
		.adds = true},
	{0}
};

OM_PASS(
	.name = "deepest",
	.brief = "say how deep the program is",
	.needs_facts = "depth",
	.keeps = OM_HAS_ALL,
	.options = options,
	.counters = counters,
	.flags = flags,
	.run = run)

#endif
