/* SPDX-License-Identifier: Apache-2.0 */
/* why: the peaks that make the arena as large as it is, or the life of one value. */
#include <config.h>

#include <string.h>

#include "cli/cli.h"
#include "onnxmem/report.h"
#include "report/why.h"

struct question {
	const om_report *report;
	const om_value *value;   /* NULL: the whole model */
};

static om_status
write_text(om_cli *c, FILE *to, const void *arg)
{
	const struct question *q = arg;

	(void)c;
	om_why_text(q->report, q->value, to);
	return OM_OK;
}

static om_status
write_json(om_cli *c, FILE *to, const void *arg)
{
	const struct question *q = arg;

	return om_why_json(q->report, q->value, c->session, to);
}

static om_status
run(om_cli *c)
{
	const char *json = om_cli_option(c, "json");
	struct question q = {.value = NULL};

	OM_TRY(om_cli_plan(c, c->arg[0]));
	if (c->narg > 1)
		OM_TRY(om_plan_find_value(c->session, c->prog, c->loaded, c->arg[1], &q.value));
	om_report *r = om_report_new(c->prog, c->arg[0], c->mem);
	r->width = om_cli_width(stdout);
	q.report = r;
	if (json)
		OM_TRY(om_cli_write(c, json, write_json, &q));
	return json && strcmp(json, "-") == 0 ? OM_OK : om_cli_write(c, "-", write_text, &q);
}

static const om_opt opts[] = {
	{"json", "FILE", "write the same as JSON", .writes = OM_WRITES_FILE},
	{0}
};

static const om_opt_group group = {"options", opts};

const om_cmd om_why_cmd = {
	.name = "why", .usage = "MODEL [TENSOR] [options]", .brief = "explain the peaks of a plan, or the place of a value",
	.text = "Plans the model as report does, and tells which values make each peak, what would have to\n"
		"change for the arena to be smaller, and what no order gets below.  With TENSOR, a value by\n"
		"its name (in a body also SCOPE/NAME): where it is, when it is live, what shares its memory,\n"
		"and for each input of its op why it is not computed over it.  If FILE is -, JSON is written\n"
		"to standard output instead of the text.",
	.min_args = 1, .max_args = 2,
	.group = {&group, &om_shape_options, &om_pass_options}, .run = run,
};
