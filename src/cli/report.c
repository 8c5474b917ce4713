/* SPDX-License-Identifier: Apache-2.0 */
/* report: the memory of a model, what is live at the peak, and the quality of the plan. */
#include <config.h>

#include <inttypes.h>
#include <string.h>

#include "cli/report_pipeline.h"
#include "cli/report_ranks.h"
#include "cli/cli.h"
#include "report/report.h"

static om_status
write_text(om_cli *c, FILE *to, const void *r)
{
	(void)c;
	om_report_text(r, to);
	return OM_OK;
}

static om_status
write_json(om_cli *c, FILE *to, const void *r)
{
	return om_report_json(r, c->session, to);
}

static om_status
write_csv(om_cli *c, FILE *to, const void *r)
{
	(void)c;
	om_report_csv(r, to);
	return OM_OK;
}

om_status
om_cli_write_svg(om_cli *c, FILE *to, const void *r)
{
	(void)c;
	om_report_svg(r, to);
	return OM_OK;
}

static om_status
write_html(om_cli *c, FILE *to, const void *r)
{
	return om_report_html(r, c->session, c->mem, to);
}

om_status
om_cli_write_ascii(om_cli *c, FILE *to, const void *r)
{
	(void)c;
	putc('\n', to);
	om_report_ascii(r, to);
	return OM_OK;
}

static const om_form forms[] = {
	{"json", write_json}, {"csv", write_csv}, {"svg", om_cli_write_svg}, {"html", write_html}, {0}
};

/* A report without numbers has formulas; what is asked for may require numbers. */
static bool
wants_numbers(const om_cli *c)
{
	static const char *const options[] = {"csv", "svg", "html", "ascii", "all-strategies", "all-streams", "budget", "arena"};

	for (size_t k = 0; k < sizeof options / sizeof options[0]; k++)
		if (om_cli_has(c, options[k]))
			return true;
	return false;
}

/* ---- The plan. ---- */

/* What a plan that was made elsewhere is not made with. */
static om_status
check_options(om_cli *c, const char *option)
{
	if (om_cli_plan_options(c) || om_cli_has(c, "all-strategies") || om_cli_has(c, "all-streams"))
		return om_fail(c->session, OM_USAGE, "option --%s shows a plan as it is: options for planning have no effect on it",
			option);
	return OM_OK;
}

/* Note why the plan of c->prog is not valid, if it can be shown all the same. */
static om_status
take_fault(om_cli *c, om_status st, const char **fault)
{
	if (st != OM_BADPLAN)
		return st;
	*fault = om_strdup(c->mem, om_message(c->session));
	st = om_report_check(c->session, c->prog);
	if (st == OM_BADPLAN)
		return om_fail(c->session, OM_BADPLAN, "the plan is not valid: %s; %s", *fault, om_strdup(c->mem, om_message(c->session)));
	return st;
}

/* The bounds in a file are not proven again, but a plan that is smaller contradicts them. */
static om_status
check_bounds(om_cli *c, const om_plan *plan)
{
	for (uint32_t k = 0; k < plan->narena; k++) {
		const om_plan_arena *a = &plan->arena[k];
		const uint64_t bound = a->lower_bound > a->order_bound ? a->lower_bound : a->order_bound;
		if (bound > a->bytes)
			return om_fail(c->session, OM_BADPLAN, "it states that no plan is below %" PRIu64 " bytes, and arena %s has %" PRIu64,
				bound, a->name, a->bytes);
	}
	return OM_OK;
}

static om_status
report_stored(om_cli *c, om_report **out)
{
	const char *sidecar = om_cli_option(c, "sidecar"), *fault = NULL;

	OM_TRY(check_options(c, "stored"));
	OM_TRY(om_cli_stored(c, c->arg[0], sidecar));
	om_status st = om_plan_verify(c->session, c->prog, c->prog->plan);
	if (st == OM_OK)
		st = om_host_check_sizes(c->host, c->model, sidecar, c->prog->plan);
	if (st == OM_OK)
		st = check_bounds(c, c->prog->plan);
	OM_TRY(take_fault(c, st, &fault));
	*out = om_report_new(c->prog, c->arg[0], c->mem);
	(*out)->origin = sidecar ? om_printf(c->mem, "in the document %s", sidecar) : "stored in the model";
	(*out)->fault = fault;
	return OM_OK;
}

static om_status
report_other(om_cli *c, om_report **out)
{
	om_report_ours *ours = OM_NEW(c->mem, om_report_ours);
	const char *fault = NULL;

	OM_TRY(check_options(c, "plan-of"));
	OM_TRY(om_cli_plan_of(c, c->arg[0], ours));
	OM_TRY(take_fault(c, om_plan_verify(c->session, c->prog, c->prog->plan), &fault));
	*out = om_report_new(c->prog, c->arg[0], c->mem);
	(*out)->origin = om_printf(c->mem, "that of %s", c->prog->plan->strategy);
	(*out)->fault = fault;
	(*out)->ours = ours;
	return OM_OK;
}

static om_status
report_new(om_cli *c, om_report **out)
{
	OM_TRY(om_cli_plan(c, c->arg[0]));
	*out = om_report_new(c->prog, c->arg[0], c->mem);
	(*out)->plan_ms = c->pass_ms;
	(*out)->ran = c->ran;
	(*out)->nran = c->nran;
	if (om_cli_has(c, "all-streams"))
		OM_TRY(om_cli_streams(c, *out));
	return om_cli_has(c, "all-strategies") ? om_cli_strategies(c, *out) : OM_OK;
}

/* ---- Output. ---- */

static om_status
write_all(om_cli *c, const om_report *r)
{
	bool taken;

	OM_TRY(om_cli_write_forms(c, forms, r, &taken));
	if (taken)
		return OM_OK;
	OM_TRY(om_cli_write(c, "-", write_text, r));
	c->told = r->fault != NULL;
	return om_cli_has(c, "ascii") ? om_cli_write(c, "-", om_cli_write_ascii, r) : OM_OK;
}

static const om_opt rank_opts[] = {
	{"ranks", "N,..", "of a training step: the memory of each of so many ranks, as 1,2,8 or 1..64"},
	{"batch", "N", "samples of all ranks together, also of a pipeline [32]"},
	{"shard", "MODE", "as of `train`: what is divided, data, state, gradient or parameter [data]"},
	{"overlap", "N", "as of `train`: sums of gradients that go on while the step computes later ones [0]"},
	{"bucket", "SIZE", "as of `train`: gradients that are reduced together, at least [4M]"},
	{"pipeline", "N", "as of `run` and `train`: the memory of each rank of N parts, and what goes between them"},
	{"micro-batches", "M", "as of `run` and `train`: parts of a batch that go through them one after the other [1]"},
	{0}
};

/* Plans of ranks are for the target of `run` and `train`, unless --target is given. */
static om_status
report_ranks(om_cli *c, const char *option, om_status (*report)(om_cli *))
{
	static const char *const others[] = {"csv", "svg", "html", "ascii", "all-strategies", "stored", "sidecar", "plan-of"};
	const om_cmd *was = c->cmd;
	om_cmd cmd = *was;

	for (size_t k = 0; k < sizeof others / sizeof others[0]; k++)
		if (om_cli_has(c, others[k]))
			return om_fail(c->session, OM_USAGE, "options --%s and --%s do not go together", option, others[k]);
	cmd.target = OM_TARGET_CPU;
	c->cmd = &cmd;
	const om_status st = report(c);
	c->cmd = was;
	return st;
}

static om_status
report_pipeline(om_cli *c)
{
	static const char *const others[] = {"ranks", "shard", "overlap", "bucket"};

	for (size_t k = 0; k < sizeof others / sizeof others[0]; k++)
		if (om_cli_has(c, others[k]))
			return om_fail(c->session, OM_USAGE, "options --pipeline and --%s do not go together", others[k]);
	return report_ranks(c, "pipeline", om_cli_report_pipeline);
}

static om_status
run(om_cli *c)
{
	const bool is_stored = om_cli_has(c, "stored"), is_other = om_cli_has(c, "plan-of");
	om_report *r = NULL;

	if (om_cli_has(c, "pipeline") || om_cli_has(c, "micro-batches"))
		return report_pipeline(c);
	if (om_cli_has(c, "ranks"))
		return report_ranks(c, "ranks", om_cli_report_ranks);
	for (const om_opt *o = rank_opts; o->name; o++)
		if (om_cli_has(c, o->name))
			return om_fail(c->session, OM_USAGE, "option --%s requires --ranks%s", o->name, strcmp(o->name, "batch") == 0 ? " or --pipeline" : "");
	if (om_cli_has(c, "sidecar") && !is_stored)
		return om_fail(c->session, OM_USAGE, "option --sidecar requires --stored");
	if (is_stored && is_other)
		return om_fail(c->session, OM_USAGE, "options --stored and --plan-of name two plans");
	const om_status st = is_stored ? report_stored(c, &r) : is_other ? report_other(c, &r) : report_new(c, &r);
	if (st != OM_OK)
		return c->open && !is_stored && !is_other && !wants_numbers(c) ? om_cli_report_open(c) : st;
	r->width = om_cli_width(stdout);
	OM_TRY(write_all(c, r));
	return r->fault ? om_fail(c->session, OM_BADPLAN, "the plan is not valid: %s", r->fault) : OM_OK;
}

static const om_opt opts[] = {
	{"json", "FILE", "write the report as JSON", .writes = OM_WRITES_FILE},
	{"csv", "FILE", "write the buffers as a packing problem with its solution", .writes = OM_WRITES_FILE},
	{"svg", "FILE", "write a memory map: steps on the x axis, addresses on the y axis", .writes = OM_WRITES_FILE},
	{"html", "FILE", "write an HTML page: the memory map with search, zoom and all figures", .writes = OM_WRITES_FILE},
	{"ascii", NULL, "also draw the arena as text"},
	{"all-strategies", NULL, "show the arena sizes of other strategies and schedules"},
	{"all-streams", NULL, "show the arenas of plans for 1, 2 and 4 workers that run ops side by side"},
	{"stored", NULL, "show the plan in the model as it is, after it is verified"},
	{"sidecar", "FILE", "with --stored: the plan in this document"},
	OM_CLI_PLAN_OF,
	{0}
};

static const om_opt_group group = {"options", opts}, rank_group = {"ranks and pipelines", rank_opts};

const om_cmd om_report_cmd = {
	.name = "report", .usage = "MODEL [options]", .brief = "show how much memory a model needs, and why",
	.text = "Plans the model without writing it, or shows the plan that is in it.  If FILE is -, that format is\n"
		"written to standard output instead of the table.  If dims of inputs are open, the table\n"
		"names them, and has formulas of them instead of numbers.",
	.min_args = 1, .max_args = 1,
	.group = {&group, &rank_group, &om_shape_options, &om_pass_options}, .run = run,
};
