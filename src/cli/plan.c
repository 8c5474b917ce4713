/* SPDX-License-Identifier: Apache-2.0 */
/* plan: write the plan of a model into a copy of it. */
#include <config.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/json_memory.h"
#include "cli/read_back.h"
#include "base/split.h"
#include "report/report.h"

/* Parse --annotate: "model", "value", or both separated by a comma; without the option, value_info is
 * annotated too from IR version 10 on. */
static om_status
how_to_annotate(om_cli *c, unsigned *how)
{
	const char *places = om_cli_option(c, "annotate"), *compat = om_cli_option(c, "compat");

	*how = OM_ANNOTATE_MODEL | (places ? 0 : OM_ANNOTATE_AUTO) | (om_cli_option(c, "no-original") ? 0 : OM_ANNOTATE_ORIGINAL);
	size_t n;
	const char **place = om_split(c->mem, places ? places : "", ",", &n);
	for (size_t k = 0; k < n; k++) {
		if (strcmp(place[k], "value") == 0)
			*how |= OM_ANNOTATE_VALUE;
		else if (strcmp(place[k], "model") != 0)
			return om_fail(c->session, OM_USAGE, "option --annotate requires model or model,value, not %s", places);
	}
	if (compat && strcmp(compat, "onnxsim") != 0)
		return om_fail(c->session, OM_USAGE, "option --compat must be onnxsim, not %s", compat);
	if (compat)
		*how |= OM_ANNOTATE_ONNXSIM;
	return OM_OK;
}

static om_status
write_string(om_cli *c, FILE *to, const void *text)
{
	(void)c;
	fprintf(to, "%s\n", (const char *)text);
	return OM_OK;
}

static om_status
write_sidecar(om_cli *c, const char *path)
{
	char *json = NULL;

	OM_TRY(om_plan_json(c->session, c->model, c->prog, &json));
	om_status st = om_cli_write(c, path, write_string, json);
	free(json);
	return st;
}

om_status
om_cli_read_back(om_cli *c, const char *path)
{
	om_prog *again = NULL;
	om_status st = om_model_import(c->session, c->model, &again);

	if (st == OM_OK)
		st = om_host_read_plan(c->host, c->model, again, path, NULL);
	if (st == OM_OK)
		st = om_plan_verify(c->session, again, again->plan);
	om_prog_free(again);
	if (st == OM_OK)
		st = om_host_check_sizes(c->host, c->model, path, c->prog->plan);
	return om_cli_json_status(c->session, st);
}

/* A document for an unmodified model: in the order of its nodes or with a list of them. */
static om_status
write_alone(om_cli *c, const char *path)
{
	struct stat of;

	OM_TRY(write_sidecar(c, path));
	if (strcmp(path, "-") == 0 || stat(path, &of) != 0 || !S_ISREG(of.st_mode))
		return OM_OK;    /* pipes and devices give nothing back */
	const om_status st = om_cli_read_back(c, path);
	if (st == OM_OK)
		return st;
	if (lstat(path, &of) == 0 && S_ISREG(of.st_mode))
		unlink(path);    /* not a link, such as /dev/stdout */
	return om_note(c->session, st, "reading the plan again: the passes changed more than the order, "
		"so it must be written into a copy of the model");
}

/* On standard error if a file goes to standard output. */
static void
summary(const om_cli *c, const om_report *r, const char *out)
{
	char arena[32], naive[32];
	bool taken = strcmp(out, "-") == 0;
	const char *text;

	if (c->quiet)
		return;
	for (size_t at = 0; (text = om_cli_next(c, "export", &at));)
		taken = taken || om_cli_ends_in(text, ":-");
	FILE *to = taken ? stderr : stdout;
	const om_plan *plan = c->prog->plan;
	fprintf(to, "%s: %s %" PRIu64 " (%s), naive %" PRIu64 " (%s), lower bound %" PRIu64 ", %s", out,
		plan->narena > 1 ? "arenas" : "arena", r->arena_bytes, om_bytes_text(r->arena_bytes, arena), r->naive_bytes,
		om_bytes_text(r->naive_bytes, naive), r->lower_bound_bytes,
		r->status_text);
	for (uint32_t k = 0; k < plan->narena && plan->narena > 1; k++)
		fprintf(to, "%s %s %" PRIu64, k ? "," : ";", om_clean_text(c->mem, plan->arena[k].name), plan->arena[k].bytes);
	if (r->bounded)
		fprintf(to, "; %s", om_bounded_text(c->mem, r->bounded));
	if (plan->nunplanned)
		fprintf(to, "; %" PRIu32 " value%s outside of the plan", plan->nunplanned, plan->nunplanned == 1 ? "" : "s");
	if (plan->streams)
		fprintf(to, "; %" PRIu32 " streams\n", plan->streams->n);
	else
		fputs(plan->parallel_safe ? "; in any order\n" : "\n", to);
}

/* Write the plan's document and the copy of the model. */
static om_status
write_plan(om_cli *c, const char *out, const char *sidecar, unsigned how)
{
	if (!out)
		return sidecar ? write_alone(c, sidecar) : OM_OK;
	const struct om_formulas *formulas = c->prog->plan->formulas;

	OM_TRY(om_model_annotate(c->session, c->model, c->prog, how));
	const om_status st = om_cli_read_back(c, NULL);
	if (st != OM_OK)
		return om_cli_note_ranges(c, om_note(c->session, st, "reading the plan again, before it is written"));
	if (c->prog->plan->formulas != formulas)  /* they do not hold */
		OM_TRY(om_model_annotate(c->session, c->model, c->prog, how));
	OM_TRY(om_model_save(c->session, c->model, out));
	return sidecar ? write_sidecar(c, sidecar) : OM_OK;
}

/* A plan is verified when it is written, and not before, unless it is not written or formulas are found for it. */
static om_status
make_plan(om_cli *c, const char *in, bool is_written)
{
	OM_TRY(om_cli_load(c, in));
	OM_TRY(om_cli_make_plan(c));
	return is_written && !c->nrange ? OM_OK : om_cli_check_plan(c);
}

static om_status
run(om_cli *c)
{
	const char *in = c->arg[0], *out = c->narg > 1 ? c->arg[1] : NULL, *sidecar = om_cli_option(c, "sidecar");
	size_t others;
	unsigned how;

	if (om_cli_has(c, "rings"))
		return om_fail(c->session, OM_USAGE, "--rings is for run: a plan in a file is one for the caches of the model, and a ring is none of them");
	OM_TRY(how_to_annotate(c, &how));
	OM_TRY(om_cli_exports(c, &sidecar, &others));
	if (!out && !sidecar && !others)
		return om_fail(c->session, OM_USAGE, "plan requires a path for the copy of the model, or --sidecar or --export");
	if (out)
		OM_TRY(om_cli_own_path(c, in, out));
	OM_TRY(make_plan(c, in, out || sidecar));
	if (!c->model && (out || sidecar))
		return om_fail(c->session, OM_USAGE, "%s is a text: there is no model to write the plan into", in);
	om_cli_tell_states(c);
	OM_TRY(write_plan(c, out, sidecar, how));
	const om_report *r = om_report_new(c->prog, in, c->mem);
	OM_TRY(om_cli_export(c, r));
	summary(c, r, out ? out : sidecar ? sidecar : in);
	return OM_OK;
}

static const om_opt opts[] = {
	{"annotate", "model,value", "where to write the plan: the model only, or also its values\n"
		"                            [both from IR version 10 on]"},
	{"compat", "onnxsim", "also write the metadata keys of onnxsim"},
	{"export", "FORM:FILE", "also write the plan in another format: c-header, tflm, csv, ort, json, or\n"
		"                            tflm-names:TFLITE; see docs/export-formats.md; repeatable"},
	{"no-original", NULL, "do not keep in OUT what `strip` needs to give IN back byte for byte"},
	{"sidecar", "FILE", "also write the plan to a separate document; without OUT, it is the plan of IN", .writes = OM_WRITES_FILE},
	{0}
};

static const om_opt_group group = {"options", opts};

const om_cmd om_plan_cmd = {
	.name = "plan", .usage = "IN [OUT] [options]", .brief = "write a memory plan into a model",
	.text = "IN is not changed; OUT is the same model with the plan in its metadata.  Before it is\n"
		"written, the plan is verified, read back, and verified again.  With --target cpu the graph\n"
		"of OUT is that of IN: the plan is for what `run` makes of it.",
	.min_args = 1, .max_args = 2, .output_arg = 2,
	.group = {&group, &om_shape_options, &om_pass_options}, .run = run,
};
