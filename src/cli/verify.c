/* SPDX-License-Identifier: Apache-2.0 */
/* verify: check that the plan in a model is valid and belongs to that model. */
#include <config.h>

#include <inttypes.h>

#include "cli/cli.h"
#include "report/report.h"

static om_status
check(om_cli *c)
{
	OM_TRY(om_cli_stored(c, c->arg[0], om_cli_option(c, "sidecar")));
	OM_TRY(om_plan_verify(c->session, c->prog, c->prog->plan));
	return om_host_check_sizes(c->host, c->model, om_cli_option(c, "sidecar"), c->prog->plan);
}

static om_status
run(om_cli *c)
{
	om_status st = check(c);

	if (st != OM_OK)
		return om_status_exit(st) == 2 ? st : om_cli_failed(c, st);
	const om_plan *plan = c->prog->plan;
	for (uint32_t k = 0; k < plan->narena; k++) {
		const om_plan_arena *a = &plan->arena[k];
		printf("%s on %s: %" PRIu64 " bytes, lower bound %" PRIu64 ", aligned to %" PRIu64 "\n",
			a->name, a->device, a->bytes, a->lower_bound, a->align);
	}
	om_report_op_rules(c->prog, c->mem, stdout);   /* the plan is valid under these assumptions, which it states itself */
	printf("PASSED %" PRIu32 " placements, %" PRIu32 " aliases", plan->nplace - plan->nunplanned, plan->nalias);
	const uint32_t bounded = om_plan_count_bounded(c->prog, plan);
	if (bounded)
		printf(", %s", om_bounded_text(c->mem, bounded));
	if (plan->nunplanned)
		printf(", %" PRIu32 " value%s outside of the plan", plan->nunplanned, plan->nunplanned == 1 ? "" : "s");
	for (uint32_t k = 0; k < plan->nrange; k++)
		printf("%s %s = %lld..%lld", k ? "," : "; for", plan->range[k].symbol, (long long)plan->range[k].low,
			(long long)plan->range[k].high);
	putchar('\n');
	return OM_OK;
}

static const om_opt opts[] = {
	{"sidecar", "FILE", "verify the plan in this document instead"},
	OM_CLI_OP_RULES,
	OM_CLI_MAX_MEMORY,
	{"plugin", "FILE", "load a pass that a plan for cpu was made with; repeatable"},
	{0}
};

static const om_opt_group group = {"options", opts};

const om_cmd om_verify_cmd = {
	.name = "verify", .usage = "MODEL [options]", .brief = "check the plan in a model",
	.text = "Checks that the plan belongs to this model, and simulates a run to check that no value\n"
		"is overwritten while it is live.  The last line is PASSED or FAILED; the exit status is 4\n"
		"if the plan is stale or invalid.",
	.min_args = 1, .max_args = 1, .group = {&group}, .run = run,
};
