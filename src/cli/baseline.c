/* The baseline of a suite: recorded figures of its models that may not grow.
 *
 * Times are stored only if they are compared, so that a baseline changes only when a plan does. */
#include <config.h>

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
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

static uint64_t
number(const json_t *j, const char *key)
{
	const json_int_t n = json_integer_value(json_object_get(j, key));
	return n > 0 ? (uint64_t)n : 0;
}

static void
read_figures(const json_t *j, om_figures *f)
{
	const char *digest = json_string_value(json_object_get(j, "digest"));

	f->known = json_is_object(j);
	f->arena = number(j, "arena_bytes");
	f->bound = number(j, "lower_bound_bytes");
	f->naive = number(j, "naive_bytes");
	f->datasets = number(j, "data_sets");
	f->best_ms = json_number_value(json_object_get(j, "best_ms"));
	snprintf(f->digest, sizeof f->digest, "%s", digest ? digest : "");
}

om_status
om_baseline_read(om_cli *c, const om_suite *suite, om_outcome *o, bool *there)
{
	json_t *j;

	OM_TRY(load(c, suite, &j));
	*there = j != NULL;
	if (!j && suite->baseline_wanted && !om_cli_has(c, "update"))
		return om_fail(c->session, OM_IO, "%s: there is no such baseline; --update makes it", suite->baseline);
	for (size_t k = 0; j && k < suite->ntrial; k++)
		read_figures(json_object_get(json_object_get(j, "models"), suite->trial[k].name), &o[k].before);
	json_decref(j);
	return OM_OK;
}

/* ---- Comparing. ---- */

static const char *
grown(om_cli *c, const char *what, uint64_t before, uint64_t now)
{
	return om_printf(c->mem, "%s grew by %llu byte%s, from %llu to %llu", what, (unsigned long long)(now - before),
		now - before == 1 ? "" : "s", (unsigned long long)before, (unsigned long long)now);
}

static const char *
first_growth(om_cli *c, const om_suite *suite, const om_outcome *o)
{
	const om_figures *a = &o->before, *b = &o->now;

	if (!a->known)
		return "it is not in the baseline; --update adds it";
	if (b->arena > a->arena)
		return grown(c, "the arena", a->arena, b->arena);
	if (b->bound > a->bound)
		return grown(c, "the lower bound", a->bound, b->bound);
	if (b->datasets < a->datasets)
		return om_printf(c->mem, "%llu of %llu data sets of the baseline are there", (unsigned long long)b->datasets,
			(unsigned long long)a->datasets);
	if (suite->time_factor > 0 && a->best_ms > 0 && b->best_ms > a->best_ms * suite->time_factor)
		return om_printf(c->mem, "a run took %.3f ms, %.2f times the %.3f ms of the baseline", b->best_ms,
			b->best_ms / a->best_ms, a->best_ms);
	return NULL;
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
	} else if (b->arena < a->arena) {
		o->note = om_printf(c->mem, "%llu bytes less than in the baseline; --update records it%s%s",
			(unsigned long long)(a->arena - b->arena), *changed ? "; " : "", changed);
	} else {
		o->note = changed;
	}
}

/* ---- Writing. ---- */

static json_t *
figures_json(const om_suite *suite, const om_figures *f)
{
	json_t *j = json_pack("{s:I, s:I, s:I, s:I}", "arena_bytes", (json_int_t)f->arena,
		"lower_bound_bytes", (json_int_t)f->bound, "naive_bytes", (json_int_t)f->naive,
		"data_sets", (json_int_t)f->datasets);

	if (*f->digest)
		json_object_set_new(j, "digest", json_string(f->digest));
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
	json_t *j = json_pack("{s:s, s:O}", "schema", "onnxmem-baseline/1", "models", models);

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
			json_object_set_new(models, name, figures_json(suite, &o[k].now));
		else if (json_object_get(before, name))
			json_object_set(models, name, json_object_get(before, name));
	}
	om_status st = write_models(c, suite, models);
	json_decref(models);
	json_decref(old);
	return st;
}
