/* SPDX-License-Identifier: Apache-2.0 */
/* verify: check that the plan in a model is valid and belongs to that model. */
#include <config.h>

#include <inttypes.h>

#include "cli/cli.h"
#include "report/report.h"

static om_status
check(om_cli *c, om_range_check *found)
{
	const char *sidecar = om_cli_option(c, "sidecar");

	OM_TRY(om_cli_stored(c, c->arg[0], sidecar));
	OM_TRY(om_plan_verify(c->session, c->prog, c->prog->plan));
	return om_host_check_ranges(c->host, c->model, sidecar, c->prog->plan, om_cli_has(c, "every-size") ? UINT64_MAX : 0, c->mem, found);
}

/* For which sizes the plan is valid, and by what. */
static void
print_ranges(const om_range_check *f)
{
	if (f->verified == f->sizes)
		printf("ranges: verified for each of %" PRIu64 " sizes\n", f->sizes);
	else if (f->sizes == UINT64_MAX)
		printf("ranges: verified for %" PRIu64 " of 2^64 or more sizes, one by one; ", f->verified);
	else
		printf("ranges: verified for %" PRIu64 " of %" PRIu64 " sizes, one by one; ", f->verified, f->sizes);
	if (f->verified < f->sizes && !f->why_unproven)
		puts("proven for the others");
	else if (f->why_unproven)
		printf("not proven for the others: %s (--every-size verifies each)\n", f->why_unproven);
	if (f->has_formulas && !f->why_formulas_unproven)
		puts("formulas: they follow from the places of the plan, for all sizes");
	else if (f->has_formulas)
		printf("formulas: compared for %" PRIu64 " sizes; not proven for the others: %s\n", f->compared, f->why_formulas_unproven);
}

static void
print_range(om_cli *c, const char *before, const om_dim_range *r)
{
	printf("%s %s = %lld..%lld", before, om_clean_text(c->mem, r->symbol), (long long)r->low, (long long)r->high);
	if (om_dim_range_step(r) > 1)
		printf(" in steps of %lld", (long long)r->step);
}

static om_status
run(om_cli *c)
{
	om_range_check found;
	om_status st = check(c, &found);

	if (st != OM_OK)
		return om_status_exit(st) == 2 ? st : om_cli_failed(c, st);
	const om_plan *plan = c->prog->plan;
	for (uint32_t k = 0; k < plan->narena; k++) {
		const om_plan_arena *a = &plan->arena[k];
		printf("%s on %s: %" PRIu64 " bytes, lower bound %" PRIu64 ", aligned to %" PRIu64 "\n",
			a->name, a->device, a->bytes, a->lower_bound, a->align);
	}
	if (plan->nrange)
		print_ranges(&found);
	om_report_op_rules(c->prog, c->mem, stdout);   /* the plan is valid under these assumptions, which it states itself */
	printf("PASSED %" PRIu32 " placements, %" PRIu32 " aliases", plan->nplace - plan->nunplanned, plan->nalias);
	const uint32_t bounded = om_plan_count_bounded(c->prog, plan);
	if (bounded)
		printf(", %s", om_bounded_text(c->mem, bounded));
	if (plan->nunplanned)
		printf(", %" PRIu32 " value%s outside of the plan", plan->nunplanned, plan->nunplanned == 1 ? "" : "s");
	for (uint32_t k = 0; k < plan->nrange; k++)
		print_range(c, k ? "," : "; for", &plan->range[k]);
	putchar('\n');
	return OM_OK;
}

static const om_opt opts[] = {
	{"sidecar", "FILE", "verify the plan in this document instead"},
	{"every-size", NULL, "verify a plan with ranges for each size, however many there are"},
	OM_CLI_OP_RULES,
	OM_CLI_MAX_MEMORY,
	{"plugin", "FILE", "load a pass that a plan for cpu was made with; repeatable"},
	{0}
};

static const om_opt_group group = {"options", opts};

const om_cmd om_verify_cmd = {
	.name = "verify", .usage = "MODEL [options]", .brief = "check the plan in a model",
	.text = "Checks that the plan belongs to this model, and simulates a run to check that no value\n"
		"is overwritten while it is live.  A plan with ranges is verified for each of up to 1,024\n"
		"sizes, or for as many, and proven for the others; where there is no proof, each size is\n"
		"verified, if their programs have at most 4,194,304 ops together.  Formulas of the document\n"
		"are derived again.  The last line is PASSED or FAILED; the exit status is 4 if the plan is\n"
		"stale or invalid.",
	.min_args = 1, .max_args = 1, .group = {&group}, .run = run,
};
