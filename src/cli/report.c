/* report: the memory of a model, what is live at the peak, and the quality of the plan. */
#include <config.h>

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

static om_status
write_svg(om_cli *c, FILE *to, const void *r)
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

static om_status
write_draw(om_cli *c, FILE *to, const void *r)
{
	(void)c;
	putc('\n', to);
	om_report_ascii(r, to);
	return OM_OK;
}

static const struct { const char *option; om_writer *write; } forms[] = {
	{"json", write_json}, {"csv", write_csv}, {"svg", write_svg}, {"html", write_html},
};

/* A report without numbers has formulas; what is asked for may require numbers. */
static bool
wants_numbers(const om_cli *c)
{
	static const char *const options[] = {"csv", "svg", "html", "ascii", "all-strategies", "budget", "arena"};

	for (size_t k = 0; k < sizeof options / sizeof options[0]; k++)
		if (om_cli_has(c, options[k]))
			return true;
	return false;
}

static om_status
run(om_cli *c)
{
	bool taken = false;

	const om_status st = om_cli_plan(c, c->arg[0]);
	if (st != OM_OK)
		return c->open && !wants_numbers(c) ? om_cli_report_open(c) : st;
	om_report *r = om_report_new(c->prog, c->arg[0], c->mem);
	r->plan_ms = c->pass_ms;
	r->ran = c->ran;
	r->nran = c->nran;
	r->width = om_cli_width(stdout);
	if (om_cli_has(c, "all-strategies"))
		OM_TRY(om_cli_strategies(c, r));
	for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++) {
		const char *path = om_cli_option(c, forms[k].option);
		if (!path)
			continue;
		taken = taken || strcmp(path, "-") == 0;
		OM_TRY(om_cli_write(c, path, forms[k].write, r));
	}
	if (taken)
		return OM_OK;
	OM_TRY(om_cli_write(c, "-", write_text, r));
	return om_cli_has(c, "ascii") ? om_cli_write(c, "-", write_draw, r) : OM_OK;
}

static const om_opt opts[] = {
	{"json", "FILE", "write the report as JSON", .writes = OM_WRITES_FILE},
	{"csv", "FILE", "write the buffers as a packing problem with its solution", .writes = OM_WRITES_FILE},
	{"svg", "FILE", "write a memory map: steps on the x axis, addresses on the y axis", .writes = OM_WRITES_FILE},
	{"html", "FILE", "write an HTML page: the memory map with search, zoom and all figures", .writes = OM_WRITES_FILE},
	{"ascii", NULL, "also draw the arena as text"},
	{"all-strategies", NULL, "show the arena sizes of other strategies and schedules"},
	{0}
};

static const om_opt_group group = {"options", opts};

const om_cmd om_report_cmd = {
	.name = "report", .usage = "MODEL [options]", .brief = "show how much memory a model needs, and why",
	.text = "Plans the model without writing it.  If FILE is -, that format is\n"
		"written to standard output instead of the table.  If dims of inputs are open, the table\n"
		"names them, and has formulas of them instead of numbers.",
	.min_args = 1, .max_args = 1,
	.group = {&group, &om_shape_options, &om_pass_options}, .run = run,
};
