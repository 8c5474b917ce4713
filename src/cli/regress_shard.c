/* SPDX-License-Identifier: Apache-2.0 */
/* Suites that run on several machines: the outcomes of a part of the models, in a file, and files that are merged. */
#include <config.h>

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/suite.h"
#include "onnxmem/version.h"
#include "report/json.h"

static const char schema[] = "onnxmem-outcomes/1";

/* ---- Selection. ---- */

om_status
om_shard_select(om_cli *c, om_suite *suite)
{
	const char *text = om_cli_option(c, "shard");
	uint64_t at, of;
	char rest;
	size_t n = 0;

	if (!text)
		return OM_OK;
	if (sscanf(text, "%" SCNu64 "/%" SCNu64 "%c", &at, &of, &rest) != 2 || at < 1 || at > of || strchr(text, '-'))
		return om_fail(c->session, OM_USAGE, "option --shard requires I/N, as in 1/4, with I from 1 to N, not %s", text);
	if (om_cli_has(c, "update"))
		return om_fail(c->session, OM_USAGE, "a shard does not update the baseline: give --outcomes FILE, then merge the files "
			"of all shards with --merge and --update");
	for (size_t k = at - 1; k < suite->ntrial; k = of < suite->ntrial - k ? k + of : suite->ntrial)
		suite->trial[n++] = suite->trial[k];
	suite->ntrial = n;
	return OM_OK;
}

/* ---- Writing. ---- */

static json_t *
outcome_json(om_cli *c, const om_job *job)
{
	json_t *j = json_object(), *result = job->died ? NULL : json_loadb(job->text ? job->text : "", job->n, 0, NULL);

	json_object_set_new(j, "result", result ? result : json_null());
	json_object_set_new(j, "died", om_json_text(c->mem, job->died));
	json_object_set_new(j, "ms", json_real(job->ms));
	return j;
}

om_status
om_outcomes_write(om_cli *c, FILE *to, const void *arg)
{
	const om_outcomes *r = arg;
	json_t *j = json_object(), *options = json_array(), *models = json_object();
	size_t n;
	const char **option = om_baseline_options(c, &n);

	for (size_t k = 0; k < n; k++)
		json_array_append_new(options, om_json_text(c->mem, option[k]));
	for (size_t k = 0; k < r->suite->ntrial; k++)
		json_object_set_new(models, om_clean_text(c->mem, r->suite->trial[k].name), outcome_json(c, &r->job[k]));
	json_object_set_new(j, "schema", json_string(schema));
	json_object_set_new(j, "version", json_string(OM_VERSION_TEXT));
	json_object_set_new(j, "suite", om_json_text(c->mem, r->suite->name));
	json_object_set_new(j, "options", options);
	json_object_set_new(j, "models", models);
	return om_json_write(c->session, j, JSON_INDENT(1), to);
}

/* ---- Merging. ---- */

struct merge {
	om_cli *c;
	const om_outcomes *r;
	const char **from;       /* by model: the file that it is in */
	const char *path;
};

static om_status
check_text(const struct merge *m, const json_t *j, const char *key, const char *want)
{
	const char *text = json_string_value(json_object_get(j, key));

	if (text && strcmp(text, want) == 0)
		return OM_OK;
	return om_fail(m->c->session, OM_INVALID, "%s: its %s is %s, not %s", m->path, key, text ? text : "missing", want);
}

/* Outcomes that were made with other options are outcomes of another run. */
static om_status
check_options(const struct merge *m, const json_t *list)
{
	size_t n;
	const char **option = om_baseline_options(m->c, &n);

	for (size_t k = 0; k < n || k < json_array_size(list); k++) {
		const char *was = json_string_value(json_array_get(list, k)), *now = k < n ? option[k] : NULL;
		if (!was || !now || strcmp(was, now) != 0)
			return om_fail(m->c->session, OM_USAGE, "%s was made with %s, and this run has %s: the options have to be the same",
				m->path, was ? was : "fewer options", now ? now : "fewer options");
	}
	return OM_OK;
}

static size_t
model_of(const struct merge *m, const char *name)
{
	const om_suite *suite = m->r->suite;
	size_t k = 0;

	while (k < suite->ntrial && strcmp(om_clean_text(m->c->mem, suite->trial[k].name), name) != 0)
		k++;
	return k;
}

static om_status
take_outcome(const struct merge *m, const char *name, const json_t *j)
{
	const size_t k = model_of(m, name);
	const char *died = json_string_value(json_object_get(j, "died"));
	const json_t *result = json_object_get(j, "result");

	if (k == m->r->suite->ntrial)
		return om_fail(m->c->session, OM_INVALID, "%s: %s is no model of this run of the suite", m->path, name);
	if (m->from[k])
		return om_fail(m->c->session, OM_INVALID, "%s: the outcome of %s is in %s, too", m->path, name, m->from[k]);
	char *text = json_is_object(result) ? json_dumps(result, 0) : NULL;
	m->from[k] = m->path;
	m->r->job[k].text = text ? om_strdup(m->c->mem, text) : NULL;
	m->r->job[k].n = text ? strlen(text) : 0;
	m->r->job[k].died = died ? om_strdup(m->c->mem, died) : NULL;
	m->r->job[k].ms = json_number_value(json_object_get(j, "ms"));
	free(text);
	return OM_OK;
}

static om_status
take_file(const struct merge *m, json_t *j)
{
	const char *name;
	json_t *one;

	OM_TRY(check_text(m, j, "schema", schema));
	OM_TRY(check_text(m, j, "version", OM_VERSION_TEXT));
	OM_TRY(check_text(m, j, "suite", m->r->suite->name));
	OM_TRY(check_options(m, json_object_get(j, "options")));
	json_object_foreach(json_object_get(j, "models"), name, one)
		OM_TRY(take_outcome(m, name, one));
	return OM_OK;
}

om_status
om_outcomes_merge(om_cli *c, const om_outcomes *r)
{
	struct merge m = {.c = c, .r = r, .from = OM_NEWN(c->mem, const char *, r->suite->ntrial)};
	size_t at = 0;

	while ((m.path = om_cli_next(c, "merge", &at))) {
		json_error_t error;
		json_t *j = json_load_file(m.path, 0, &error);
		if (!j)
			return om_fail(c->session, error.line < 0 ? OM_IO : OM_MALFORMED, "%s: %s", m.path, error.text);
		const om_status st = take_file(&m, j);
		json_decref(j);
		OM_TRY(st);
	}
	for (size_t k = 0; k < r->suite->ntrial; k++)
		if (!m.from[k])
			return om_fail(c->session, OM_INVALID, "the outcome of %s is in none of the merged files", r->suite->trial[k].name);
	return OM_OK;
}
