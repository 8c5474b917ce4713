/* SPDX-License-Identifier: Apache-2.0 */
/* The baseline of a suite: recorded figures of its models that may not grow.
 *
 * Times are stored only if they are compared, so that a baseline changes only when a plan does. */
#include <config.h>

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>

#include "base/output_file.h"
#include "cli/suite.h"

/* ---- Reading. ---- */

static om_status
load(om_cli *c, const om_suite *suite, json_t **j)
{
	json_error_t error;
	struct stat st;

	*j = NULL;
	if (stat(suite->baseline, &st) != 0 && errno == ENOENT)
		return OM_OK;
	*j = json_load_file(suite->baseline, 0, &error);
	if (!*j)
		return om_fail(c->session, OM_MALFORMED, "%s: line %d: %s", suite->baseline, error.line, error.text);
	const char *schema = json_string_value(json_object_get(*j, "schema"));
	if (schema && strcmp(schema, "onnxmem-baseline/1") == 0 && json_is_object(json_object_get(*j, "models")))
		return OM_OK;
	json_decref(*j);
	*j = NULL;
	return om_fail(c->session, OM_MALFORMED, "%s: not a baseline of schema onnxmem-baseline/1", suite->baseline);
}

static om_status
read_options(om_cli *c, const om_suite *suite, const json_t *list, om_baseline *b)
{
	if (!list)
		return OM_OK;
	b->option = OM_NEWN(c->mem, const char *, json_array_size(list) + 1);
	for (size_t k = 0; k < json_array_size(list); k++) {
		const char *text = json_string_value(json_array_get(list, k));
		if (!text || strncmp(text, "--", 2) != 0 || !text[2])
			return om_fail(c->session, OM_MALFORMED, "%s: \"options\" is not a list of options", suite->baseline);
		b->option[b->noption++] = om_strdup(c->mem, text);
	}
	return json_is_array(list) ? OM_OK
	     : om_fail(c->session, OM_MALFORMED, "%s: \"options\" is not a list of options", suite->baseline);
}

/* A figure that is no number would be taken for 0, and everything would have grown. */
static om_status
check_figures(om_cli *c, const om_suite *suite, const char *name, const json_t *j)
{
	static const char *const key[] = {"arena_bytes", "lower_bound_bytes", "naive_bytes", "data_sets", "total_bytes", "weights_bytes"};
	const size_t nrequired = 2;

	if (j && !json_is_object(j))
		return om_fail(c->session, OM_MALFORMED, "%s: \"%s\" is not an object", suite->baseline, name);
	for (size_t k = 0; j && k < sizeof key / sizeof key[0]; k++) {
		const json_t *n = json_object_get(j, key[k]);
		if (n ? !json_is_integer(n) || json_integer_value(n) < 0 : k < nrequired)
			return om_fail(c->session, OM_MALFORMED, "%s: \"%s\" of \"%s\" is not a number from 0 on", suite->baseline, key[k], name);
	}
	return OM_OK;
}

om_status
om_baseline_read(om_cli *c, const om_suite *suite, om_outcome *o, om_baseline *b)
{
	json_t *j;

	*b = (om_baseline){0};
	OM_TRY(load(c, suite, &j));
	b->there = j != NULL;
	if (!j && suite->baseline_wanted && !om_cli_has(c, "update"))
		return om_fail(c->session, OM_IO, "%s: there is no such baseline; --update makes it", suite->baseline);
	om_status st = read_options(c, suite, json_object_get(j, "options"), b);
	for (size_t k = 0; j && k < suite->ntrial && st == OM_OK; k++) {
		const char *name = suite->trial[k].name;
		const json_t *one = json_object_get(json_object_get(j, "models"), name);
		st = check_figures(c, suite, name, one);
		om_figures_read(c, one, &o[k].before);
	}
	json_decref(j);
	return st;
}

/* ---- Comparing. ---- */

static bool
grew(const om_suite *suite, uint64_t before, uint64_t now)
{
	return now > before && now - before > om_cli_allowed(&suite->allow, before);
}

static const char *
grown(om_cli *c, const om_suite *suite, const char *what, uint64_t before, uint64_t now)
{
	const uint64_t may = om_cli_allowed(&suite->allow, before);
	const char *limit = may ? om_printf(c->mem, ", and %llu %s allowed", (unsigned long long)may, may == 1 ? "is" : "are") : "";

	return om_printf(c->mem, "%s grew by %llu byte%s, from %llu to %llu%s", what, (unsigned long long)(now - before),
		now - before == 1 ? "" : "s", (unsigned long long)before, (unsigned long long)now, limit);
}

/* The total, and its parts. */
static const char *
total_grown(om_cli *c, const om_suite *suite, const om_figures *a, const om_figures *b)
{
	const char *text = grown(c, suite, "the total of a run", a->total, b->total);
	const uint64_t io[] = {a->total - a->arena - a->weights, b->total - b->arena - b->weights};

	return om_printf(c->mem, "%s: the arena from %llu to %llu, weights from %llu to %llu, inputs and outputs from %llu to %llu",
		text, (unsigned long long)a->arena, (unsigned long long)b->arena, (unsigned long long)a->weights,
		(unsigned long long)b->weights, (unsigned long long)io[0], (unsigned long long)io[1]);
}

static const char *
first_growth(om_cli *c, const om_suite *suite, const om_outcome *o)
{
	const om_figures *a = &o->before, *b = &o->now;

	if (!a->known)
		return "it is not in the baseline; --update adds it";
	if (grew(suite, a->arena, b->arena))
		return grown(c, suite, "the arena", a->arena, b->arena);
	if (grew(suite, a->bound, b->bound))
		return grown(c, suite, "the lower bound", a->bound, b->bound);
	if (a->total && grew(suite, a->total, b->total))
		return total_grown(c, suite, a, b);
	if (b->datasets < a->datasets && !om_cli_has(c, "plan-only"))
		return om_printf(c->mem, "%llu of %llu data sets of the baseline are there", (unsigned long long)b->datasets,
			(unsigned long long)a->datasets);
	if (suite->time_factor > 0 && a->best_ms > 0 && b->best_ms > a->best_ms * suite->time_factor)
		return om_printf(c->mem, "a run took %.3f ms, %.2f times the %.3f ms of the baseline", b->best_ms,
			b->best_ms / a->best_ms, a->best_ms);
	return NULL;
}

static const om_report_live *
find_value(const om_peak_list *peak, const char *name)
{
	for (size_t k = 0; k < peak->n; k++)
		if (strcmp(peak->value[k].name, name) == 0)
			return &peak->value[k];
	return NULL;
}

/* A value that is live at the peak, and how it was in the baseline. */
static const char *
value_text(om_cli *c, const om_report_live *now, const om_peak_list *before)
{
	const om_report_live *was = find_value(before, now->name);
	const char *text = om_printf(c->mem, "%s %llu", now->name, (unsigned long long)now->bytes);

	if (before->n == 0 || (was && was->bytes == now->bytes))
		return text;
	if (was)
		return om_printf(c->mem, "%s (%llu before)", text, (unsigned long long)was->bytes);
	return om_printf(c->mem, "%s (%s before)", text, before->all > before->n ? "not among the largest" : "not there");
}

static const char *
peak_text(om_cli *c, const om_peak_list *before, const om_peak_list *now)
{
	const char *text = om_printf(c->mem, "live at the peak%s%s:", now->op ? ", " : "", now->op ? now->op : "");

	for (size_t k = 0; k < now->n; k++)
		text = om_printf(c->mem, "%s%s %s", text, k ? "," : "", value_text(c, &now->value[k], before));
	return now->all > now->n ? om_printf(c->mem, "%s, and %zu more", text, now->all - now->n) : text;
}

/* How the arena of a model that passes differs from that of the baseline; or "". */
static const char *
change(om_cli *c, const om_suite *suite, const om_figures *a, const om_figures *b)
{
	if (b->arena < a->arena)
		return om_printf(c->mem, "%llu bytes less than in the baseline; --update records it",
			(unsigned long long)(a->arena - b->arena));
	if (b->arena > a->arena)
		return grown(c, suite, "the arena", a->arena, b->arena);
	return "";
}

void
om_baseline_compare(om_cli *c, const om_suite *suite, om_outcome *o)
{
	const om_figures *a = &o->before, *b = &o->now;
	const char *changed = a->known && strcmp(a->digest, b->digest) != 0 ? "the model is not that of the baseline" : "";

	if (o->end != OM_END_PASS)
		return;
	const char *why = first_growth(c, suite, o);
	if (why) {
		o->end = OM_END_FAIL;
		o->why = *changed ? om_printf(c->mem, "%s; %s", why, changed) : why;
		o->peak = a->known && b->peak.n && (b->arena > a->arena || b->bound > a->bound)
			? peak_text(c, &a->peak, &b->peak) : "";
	} else {
		const char *less = change(c, suite, a, b);
		o->note = om_printf(c->mem, "%s%s%s", less, *less && *changed ? "; " : "", changed);
	}
}

/* ---- Writing. ---- */

static json_t *
entry(om_cli *c, const om_suite *suite, const om_figures *f)
{
	json_t *j = om_figures_json(c, f);

	if (suite->time_factor > 0 && f->best_ms > 0)
		json_object_set_new(j, "best_ms", json_real(f->best_ms));
	return j;
}

static om_status
write_json(om_session *s, FILE *to, void *json)
{
	if (json_dumpf(json, to, JSON_INDENT(1) | JSON_REAL_PRECISION(4)) != 0 && !ferror(to))
		return om_fail(s, OM_MEMORY, "there is no memory for the baseline");
	putc('\n', to);
	return OM_OK;
}

static om_status
write_models(om_cli *c, const om_suite *suite, json_t *models)
{
	json_t *options = json_array();
	size_t n;
	const char **option = om_baseline_options(c, &n);
	for (size_t k = 0; k < n; k++)
		json_array_append_new(options, json_string(option[k]));
	json_t *j = json_pack("{s:s, s:o, s:O}", "schema", "onnxmem-baseline/1", "options", options, "models", models);
	const om_status st = j ? om_output_write(c->session, suite->baseline, write_json, j)
		: om_fail(c->session, OM_MEMORY, "there is no memory for the baseline");
	json_decref(j);
	return st;
}

/* In the order of the suite; if other entries are kept, in the order of the file. */
om_status
om_baseline_write(om_cli *c, const om_suite *suite, const om_outcome *o, bool keep)
{
	json_t *old;

	OM_TRY(load(c, suite, &old));
	json_t *before = json_object_get(old, "models"), *models = keep && before ? json_copy(before) : json_object();
	for (size_t k = 0; k < suite->ntrial; k++) {
		const char *name = suite->trial[k].name;
		if (o[k].end == OM_END_PASS && o[k].now.known)
			json_object_set_new(models, name, entry(c, suite, &o[k].now));
		else if (json_object_get(before, name))
			json_object_set(models, name, json_object_get(before, name));
	}
	om_status st = write_models(c, suite, models);
	json_decref(models);
	json_decref(old);
	return st;
}
