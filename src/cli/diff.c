/* SPDX-License-Identifier: Apache-2.0 */
/* diff: what differs in the memory of two models, and which tensors make the difference. */
#include <config.h>

#include <ctype.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/npy.h"
#include "report/diff.h"

/* ---- Input. ---- */

/* A file that is compared: a model, the report of one, or a document with a plan. */
struct input {
	const char *path;
	json_t *json;            /* NULL: a model */
	bool is_plan;            /* a document with a plan, for the model of the other input */
};

/* Does the text of a file begin as an object in JSON? */
static bool
begins_object(const char *path)
{
	FILE *in = fopen(path, "r");
	int first = EOF;

	if (!in)
		return false;
	while ((first = getc(in)) != EOF && isspace(first))
		continue;
	fclose(in);
	return first == '{';
}

static om_status
read_input(om_cli *c, const char *path, struct input *in)
{
	const bool is_stdin = strcmp(path, "-") == 0;
	const char *name = is_stdin ? "standard input" : path;
	json_error_t e;
	char *data;
	size_t size;

	*in = (struct input){.path = name};
	if (!is_stdin && !begins_object(path))
		return OM_OK;
	OM_TRY(om_file_read(c->session, is_stdin ? "/dev/stdin" : path, c->mem, &data, &size));
	in->json = json_loadb(data, size, JSON_REJECT_DUPLICATES, &e);
	if (!in->json)
		return om_fail(c->session, OM_MALFORMED, "%s: it is not JSON: %s (line %d); a model has to be a file", name, e.text,
			e.line);
	const char *schema = json_string_value(json_object_get(in->json, "schema"));
	in->is_plan = schema && strcmp(schema, "memplan/1") == 0;
	return OM_OK;
}

/* Make c->prog the planned program of an input that is not a report: by the passes, or as it is stored. */
static om_status
plan_input(om_cli *c, const struct input *in, const struct input *other)
{
	if (!in->is_plan && !om_cli_has(c, "stored"))
		return om_cli_plan(c, in->path);
	if (in->is_plan && other->json)
		return om_fail(c->session, OM_USAGE, "%s is a plan: the other file has to be its model, not %s", in->path, other->path);
	OM_TRY(om_cli_stored(c, in->is_plan ? other->path : in->path, in->is_plan ? in->path : NULL));
	return om_plan_verify(c->session, c->prog, c->prog->plan);
}

/* Replace an input that is not a report by the report of it. */
static om_status
make_report(om_cli *c, struct input *in, const struct input *other, json_t **out)
{
	if (in->json && !in->is_plan) {
		*out = json_incref(in->json);
		return OM_OK;
	}
	const om_status st = plan_input(c, in, other);
	if (st != OM_OK)
		return c->prog ? om_note(c->session, st, "reading or planning %s", in->path) : st;
	om_report *r = om_report_new(c->prog, in->path, c->mem);
	r->plan_ms = c->pass_ms;
	*out = om_report_object(r, c->mem);
	om_cli_unload(c);
	return OM_OK;
}

/* ---- The limit. ---- */

struct limit {
	om_size_kind of;
	bool is_set;
	om_growth growth;
};

static om_status
read_limit(om_cli *c, struct limit *l)
{
	const char *text = om_cli_option(c, "allow"), *of = om_cli_option(c, "of");

	*l = (struct limit){.of = OM_SIZE_ARENA, .is_set = text != NULL};
	if (of && strcmp(of, "arena") != 0 && strcmp(of, "total") != 0)
		return om_fail(c->session, OM_USAGE, "option --of requires arena or total, not %s", of);
	l->of = of && strcmp(of, "total") == 0 ? OM_SIZE_TOTAL : OM_SIZE_ARENA;
	if (of && !text)
		return om_fail(c->session, OM_USAGE, "option --of tells what --allow limits, which is missing");
	if (!text)
		return OM_OK;
	if (!om_cli_ends_in(text, "%"))
		return om_cli_size(c, "option --allow", text, &l->growth.bytes);
	if (!isdigit((unsigned char)*text) || !om_cli_percent(text, &l->growth.percent) || !(l->growth.percent <= 1e6))
		return om_fail(c->session, OM_USAGE, "option --allow requires a size or a percentage such as 1%%, not %s", text);
	return OM_OK;
}

static om_status
check_limit(om_cli *c, const struct limit *l, const om_diff *d)
{
	const uint64_t before = d->old->size[l->of], after = d->now->size[l->of];
	const uint64_t most = om_cli_allowed(&l->growth, before);
	const char *what = l->of == OM_SIZE_TOTAL ? "total" : "arena";

	if (!l->is_set || after <= before || after - before <= most)
		return OM_OK;
	return om_fail(c->session, OM_INVALID, "the %s of %s has %" PRIu64 " bytes, %" PRIu64 " more than before: --allow %s is %"
		PRIu64, what, d->now->model, after, after - before, om_cli_option(c, "allow"), most);
}

/* ---- Output. ---- */

static om_status
write_text(om_cli *c, FILE *to, const void *d)
{
	om_diff_text(d, c->mem, to);
	return OM_OK;
}

static om_status
write_markdown(om_cli *c, FILE *to, const void *d)
{
	om_diff_markdown(d, c->mem, to);
	return OM_OK;
}

static om_status
write_json(om_cli *c, FILE *to, const void *d)
{
	return om_diff_json(d, c->session, to);
}

static const om_form forms[] = {{"json", write_json}, {"markdown", write_markdown}, {0}};

static om_status
write_all(om_cli *c, const om_diff *d)
{
	bool taken;

	for (const om_form *form = forms; form->option; form++)
		if (om_cli_has(c, form->option))
			OM_TRY(om_cli_own_path(c, c->arg[1], om_cli_option(c, form->option)));
	OM_TRY(om_cli_write_forms(c, forms, d, &taken));
	return taken ? OM_OK : om_cli_write(c, "-", write_text, d);
}

static om_status
compare(om_cli *c, struct input *in, json_t **report, om_diff **d)
{
	for (size_t k = 0; k < 2; k++)
		OM_TRY(read_input(c, c->arg[k], &in[k]));
	for (size_t k = 0; k < 2; k++)
		OM_TRY(make_report(c, &in[k], &in[1 - k], &report[k]));
	return om_diff_new(c->session, report[0], in[0].path, report[1], in[1].path, c->mem, d);
}

static om_status
run(om_cli *c)
{
	struct input in[2] = {{0}};
	json_t *report[2] = {NULL};
	struct limit limit;
	om_diff *d = NULL;

	OM_TRY(read_limit(c, &limit));
	om_status st = compare(c, in, report, &d);
	for (size_t k = 0; k < 2; k++) {
		json_decref(in[k].json);
		json_decref(report[k]);
	}
	OM_TRY(st);
	d->width = om_cli_width(stdout);
	OM_TRY(write_all(c, d));
	return check_limit(c, &limit, d);
}

static const om_opt opts[] = {
	{"json", "FILE", "write the comparison as JSON, with all tensors", .writes = OM_WRITES_FILE},
	{"markdown", "FILE", "write the comparison as Markdown", .writes = OM_WRITES_FILE},
	{"stored", NULL, "compare the plans that are in the models, as they are"},
	{"allow", "SIZE", "status 1 if the arena grows by more: a size, or a percentage such\n"
		"                            as 1%"},
	{"of", "WHAT", "what --allow limits: arena or total [arena]"},
	{0}
};

static const om_opt_group group = {"options", opts};

const om_cmd om_diff_cmd = {
	.name = "diff", .usage = "OLD NEW [options]", .brief = "show what differs in the memory of two models",
	.text = "OLD and NEW are models, which are planned with the same options, or reports that\n"
		"`onnxmem report --json` wrote.  One of them may be a document with a plan\n"
		"(`onnxmem plan --sidecar`) for the other one, a model: then that plan is compared with a\n"
		"new one.  If FILE is -, that format is written to standard output instead of the table.",
	.min_args = 2, .max_args = 2,
	.group = {&group, &om_shape_options, &om_pass_options}, .run = run,
};
