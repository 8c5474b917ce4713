/* SPDX-License-Identifier: Apache-2.0 */
/* passes: list the passes and the contract of each. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

static const struct { unsigned bit; const char *name; } facts[] = {
	{OM_HAS_INLINE, "inline"}, {OM_HAS_SHAPES, "shapes"}, {OM_HAS_CONST, "const"},
	{OM_HAS_LIVE, "liveness"}, {OM_HAS_VIEWS, "views"}, {OM_HAS_STORE, "store"},
	{OM_HAS_PLAN, "plan"},
};

static const char *
facts_text(om_arena *mem, unsigned has)
{
	const char *text = "";

	if (has == OM_HAS_ALL)
		return "all";
	for (size_t k = 0; k < sizeof facts / sizeof facts[0]; k++)
		if (has & facts[k].bit)
			text = om_printf(mem, "%s%s%s", text, *text ? " " : "", facts[k].name);
	return *text ? text : "-";
}

static void
list(om_cli *c)
{
	const om_pass *const *all = om_host_passes(c->host, true);
	const unsigned width = om_cli_width(stdout);

	printf("%-13s %-33s %-8s %s\n", "pass", "needs", "gives", "description");
	for (; *all; all++)
		om_cli_line(c, width, "%-13s %-33s %-8s %s", (*all)->name, facts_text(c->mem, (*all)->needs),
			facts_text(c->mem, (*all)->gives), (*all)->brief);
	printf("\ndefault: %s\n", om_default_pipeline());
	if (strcmp(om_target_pipeline(OM_TARGET_CPU), om_default_pipeline()) != 0)
		printf("for cpu: %s\n", om_target_pipeline(OM_TARGET_CPU));
}

static void
show(om_cli *c, const om_pass *pass)
{
	printf("%s: %s\n\nneeds     %s\ngives     %s\nkeeps     %s\n", pass->name, pass->brief,
		facts_text(c->mem, pass->needs), facts_text(c->mem, pass->gives),
		facts_text(c->mem, pass->keeps));
	for (const om_pass_option *o = pass->options; o && o->name; o++)
		printf("%s %s=%s  %s\n", o == pass->options ? "options  " : "         ", o->name, o->value,
			o->brief);
	for (const om_pass_counter *o = pass->counters; o && o->name; o++)
		printf("%s %s  %s\n", o == pass->counters ? "counters " : "         ", o->name, o->brief);
}

/* The documentation page installed with a built-in pass.  Other passes have none. */
static void
show_page(om_cli *c, const char *name)
{
	FILE *page = getenv("ONNXMEM_PASS_PATH") ? NULL : fopen(om_printf(c->mem, "%s/%s.md", OM_PAGEDIR, name), "r");
	char line[1024];

	if (!page)
		return;
	putchar('\n');
	while (fgets(line, sizeof line, page))
		fputs(line, stdout);
	fclose(page);
}

static om_status
run(om_cli *c)
{
	OM_TRY(om_cli_host(c));
	if (c->narg == 0) {
		list(c);
		return OM_OK;
	}
	const om_pass *pass = om_host_pass(c->host, c->arg[0]);
	if (!pass)
		return OM_NOPASS;
	show(c, pass);
	show_page(c, pass->name);
	return OM_OK;
}

static const om_opt opts[] = {
	{"plugin", "FILE", "load a pass from a shared object; repeatable"},
	{0}
};

static const om_opt_group group = {"options", opts};

const om_cmd om_passes_cmd = {
	.name = "passes", .usage = "[NAME]", .brief = "list the passes, or show one",
	.max_args = 1, .group = {&group}, .run = run,
};
