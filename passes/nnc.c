/* nnc: partial reuse by an allocation graph.
 *
 * After L. Liu, NNC tensor allocation, 2018, in one arena with offsets: what
 * dies hands its bytes on, to several that fit beside each other or one after
 * the other.  The text and the code of that system differ; both orders of
 * insertion are here.
 */
#include <config.h>

#include <errno.h>

#include "onnxmem/pass.h"
#include "onnxmem/baselines.h"

static om_status
share(om_run *r, om_prog *p, om_buffers *b, FILE *graph, om_baseline_result *result)
{
	const char *text = om_option(r, "rule");
	om_interference_list open;

	if (strcmp(text, "text") != 0 && strcmp(text, "flow") != 0)
		return om_fail(r->session, OM_USAGE, "nnc: rule is text or flow, not %s", text);
	const om_nnc_rule rule = strcmp(text, "text") == 0 ? OM_NNC_PAPER : OM_NNC_BY_SIZE;
	if (p->parallel_safe)
		OM_TRY(om_buffers_interference(r->session, p, b, r->scratch, &open));
	return om_baseline_nnc(r->session, b->buf, b->n, p->parallel_safe ? &open : NULL, rule, graph, result);
}

static om_status
share_and_dump(om_run *r, om_prog *p, om_buffers *b, om_baseline_result *result)
{
	const char *path = om_option(r, "dump");
	FILE *graph = *path ? fopen(path, "w") : NULL;

	if (*path && !graph)
		return om_fail(r->session, OM_IO, "%s: %s", path, strerror(errno));
	const om_status st = share(r, p, b, graph, result);
	if (graph && fclose(graph) != 0 && st == OM_OK)
		return om_fail(r->session, OM_IO, "%s: %s", path, strerror(errno));
	return st;
}

static om_status
run(om_run *r, om_prog *p)
{
	om_buffers *b = om_buffers_new(p, r->scratch);
	om_baseline_result result;

	OM_TRY(share_and_dump(r, p, b, &result));
	om_plan_new(p, b, &result.pack, result.pack.strategy);
	om_count(r, "buffers", b->n);
	om_count(r, "regions", result.blocks);
	om_count(r, "bytes", result.pack.height);
	return OM_OK;
}

static const om_pass_option options[] = {
	{"rule", "flow", "flow: the largest first; text: the most interference first, in tuples"},
	{"dump", "", "a file for the allocation graph, for Graphviz"},
	{0}
};

static const om_pass_counter counters[] = {
	{"buffers", "buffers that were placed"},
	{"regions", "how often the arena had to grow"},
	{"bytes", "size of the arena"},
	{0}
};

OM_PASS(
	.name = "nnc",
	.brief = "share parts of memory along an allocation graph",
	.needs = OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_LIVE,
	.gives = OM_HAS_PLAN,
	.keeps = OM_HAS_ALL,
	.options = options,
	.counters = counters,
	.run = run)
