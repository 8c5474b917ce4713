/* color: buffers that interfere get different blocks, by DSATUR.
 *
 * After S. Zhu and N. Xu, Buffer allocation algorithm for Symbolic Compiler,
 * 2016: storage units are coloured as registers are; a colour is a block.
 */
#include <config.h>

#include "onnxmem/pass.h"
#include "onnxmem/baselines.h"

static om_status
read_options(om_run *r, om_color_choice *choice, uint64_t *limit)
{
	const char *text = om_option(r, "choice");

	if (strcmp(text, "dsatur") != 0 && strcmp(text, "bytes") != 0)
		return om_fail(r->session, OM_USAGE, "color: choice is dsatur or bytes, not %s", text);
	*choice = strcmp(text, "bytes") == 0 ? OM_COLOR_BYTES : OM_COLOR_DSATUR;
	OM_TRY(om_option_number(r, "limit", limit));
	if (*limit > UINT32_MAX)
		*limit = UINT32_MAX;
	return OM_OK;
}

static om_status
run(om_run *r, om_prog *p)
{
	om_buffers *b = om_buffers_new(p, r->scratch);
	om_baseline_result result;
	om_interference_list open;
	om_color_choice choice = OM_COLOR_DSATUR;
	uint64_t limit = 0;

	OM_TRY(read_options(r, &choice, &limit));
	if (p->parallel_safe)
		OM_TRY(om_buffers_interference(r->session, p, b, r->scratch, &open));
	OM_TRY(om_baseline_color(r->session, b->buf, b->n, p->parallel_safe ? &open : NULL, choice, (uint32_t)limit, NULL, &result));
	om_plan_new(p, b, &result.pack, "color");
	om_count(r, "buffers", b->n);
	om_count(r, "blocks", result.blocks);
	om_count(r, "bytes", result.pack.height);
	return OM_OK;
}

static const om_pass_option options[] = {
	{"choice", "dsatur", "dsatur: as few blocks as it finds; bytes: as few bytes"},
	{"limit", "0", "how many blocks there are; 0: as many as needed"},
	{0}
};

static const om_pass_counter counters[] = {
	{"buffers", "buffers that were coloured"},
	{"blocks", "blocks that they share"},
	{"bytes", "size of the arena"},
	{0}
};

OM_PASS(
	.name = "color",
	.brief = "share blocks by colouring the interference graph",
	.needs = OM_HAS_SHAPES | OM_HAS_CONST | OM_HAS_LIVE,
	.gives = OM_HAS_PLAN,
	.keeps = OM_HAS_ALL,
	.options = options,
	.counters = counters,
	.run = run)
