/* SPDX-License-Identifier: Apache-2.0 */
/* Plans in formats of other programs: `--export FORM:FILE`. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/output_file.h"
#include "cli/cli.h"
#include "report/report.h"

struct export {
	const om_report *r;
	const char *path;
	const char *source;      /* the file whose names are used; NULL: the form uses none */
	char digest[80];
};

static om_status
write_header(om_cli *c, FILE *to, const void *arg)
{
	const struct export *e = arg;

	om_report_c_header(e->r, c->mem, e->path, e->digest, to);
	return OM_OK;
}

static om_status
write_tflm(om_cli *c, FILE *to, const void *arg)
{
	return om_report_tflm(((const struct export *)arg)->r, c->session, c->mem, to);
}

static om_status
write_tflm_names(om_cli *c, FILE *to, const void *arg)
{
	const struct export *e = arg;

	return om_report_tflm_names(e->r, c->session, c->mem, e->source, to);
}

static om_status
write_csv(om_cli *c, FILE *to, const void *arg)
{
	(void)c;
	om_report_csv(((const struct export *)arg)->r, to);
	return OM_OK;
}

static om_status
write_ort(om_cli *c, FILE *to, const void *arg)
{
	const struct export *e = arg;

	return om_report_ort(e->r, c->session, c->mem, e->digest, to);
}

static const struct form {
	const char *name;
	om_writer *write;        /* NULL: the plan's own document, which `plan` writes */
	bool has_source;         /* FORM:SOURCE:FILE */
} forms[] = {
	{"c-header", write_header, false}, {"tflm", write_tflm, false}, {"tflm-names", write_tflm_names, true},
	{"csv", write_csv, false}, {"ort", write_ort, false}, {"json", NULL, false},
};

/* "FORM:FILE", or "FORM:SOURCE:FILE", where the last colon ends the source. */
static om_status
read_form(om_cli *c, const char *text, const struct form **form, const char **source, const char **path)
{
	const size_t n = strcspn(text, ":");

	for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++) {
		if (strlen(forms[k].name) != n || memcmp(forms[k].name, text, n) != 0 || !text[n] || !text[n + 1])
			continue;
		const char *colon = strrchr(text + n + 1, ':');
		if (forms[k].has_source && (!colon || colon == text + n + 1 || !colon[1]))
			return om_fail(c->session, OM_USAGE, "option --export %s requires the .tflite file with the names: %s:TFLITE:FILE, "
				"not %s", forms[k].name, forms[k].name, text);
		*form = &forms[k];
		*source = forms[k].has_source ? om_strndup(c->mem, text + n + 1, (size_t)(colon - text) - n - 1) : NULL;
		*path = forms[k].has_source ? colon + 1 : text + n + 1;
		return OM_OK;
	}
	return om_fail(c->session, OM_USAGE, "option --export requires FORM:FILE, where FORM is c-header, tflm, csv, ort or "
		"json, or tflm-names:TFLITE:FILE, not %s", text);
}

om_status
om_cli_exports(om_cli *c, const char **sidecar, size_t *others)
{
	const struct form *form = NULL;
	const char *text, *source, *path = NULL;

	*others = 0;
	for (size_t at = 0; (text = om_cli_next(c, "export", &at));) {
		OM_TRY(read_form(c, text, &form, &source, &path));
		OM_TRY(om_output_check(c->session, path, false));
		if (form->write)
			++*others;
		else if (*sidecar)
			return om_fail(c->session, OM_USAGE, "there are two paths for the plan document: %s and %s", *sidecar, path);
		else
			*sidecar = path;
	}
	return OM_OK;
}

/* These formats represent one address per value. */
static om_status
check_places(om_cli *c, const om_report *r, const struct form *form)
{
	const om_plan *plan = r->prog->plan;

	if (plan->nview == 0 || !form->write || form->write == write_csv)
		return OM_OK;
	return om_fail(c->session, OM_UNSUPPORTED, "%s: %s rotates buffers in a loop, which this format cannot "
		"express; plan with --passes without the pass loops", form->name, r->prog->values[plan->view->value]->name);
}

om_status
om_cli_export(om_cli *c, const om_report *r)
{
	const struct form *form = NULL;
	struct export e = {.r = r};
	const char *text;

	if (c->model)
		OM_TRY(om_model_digest(c->session, c->model, false, e.digest));
	for (size_t at = 0; (text = om_cli_next(c, "export", &at));) {
		OM_TRY(read_form(c, text, &form, &e.source, &e.path));
		OM_TRY(check_places(c, r, form));
		if (form->write)
			OM_TRY(om_cli_write(c, e.path, form->write, &e));
	}
	return OM_OK;
}
