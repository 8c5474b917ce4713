/* SPDX-License-Identifier: Apache-2.0 */
/* Suites: a JSON object that lists models, or a folder of models. */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/system.h"
#include "cli/suite.h"

enum { MAX_DEPTH = 4 };

static bool
is_folder(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool
ends_in(const char *text, const char *ending)
{
	const size_t n = strlen(text), m = strlen(ending);
	return n > m && strcmp(text + n - m, ending) == 0;
}

/* ---- Folders. ---- */

/* Two runs of digits without zeros in front, by their value. */
static int
by_value(const char *a, size_t na, const char *b, size_t nb)
{
	return na != nb ? (na > nb) - (na < nb) : memcmp(a, b, na);
}

/* Natural order: names by letters, runs of digits by their value. */
static int
natural_order(const char *a, const char *b)
{
	static const char digits[] = "0123456789";

	while (*a && *b) {
		const size_t na = strspn(a, digits), nb = strspn(b, digits);
		if (na && nb) {
			const size_t za = strspn(a, "0"), zb = strspn(b, "0");
			const int order = by_value(a + za, na - za, b + zb, nb - zb);
			if (order)
				return order;
			a += na;
			b += nb;
		} else if (*a++ != *b++) {
			return (unsigned char)a[-1] < (unsigned char)b[-1] ? -1 : 1;
		}
	}
	return (*a != '\0') - (*b != '\0');
}

/* Names that differ only in zeros have an order, too. */
static int
by_name(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;
	const int order = natural_order(*x, *y);

	return order ? order : strcmp(*x, *y);
}

static om_status
names_in(om_cli *c, const char *folder, const char ***name, size_t *n)
{
	size_t cap = 0;
	DIR *dir = opendir(folder);

	*n = 0;
	*name = NULL;
	if (!dir)
		return om_fail(c->session, OM_IO, "%s: %s", folder, strerror(errno));
	for (struct dirent *e; (e = readdir(dir));)
		if (e->d_name[0] != '.')
			OM_PUSH(c->mem, *name, *n, cap, om_strdup(c->mem, e->d_name));
	closedir(dir);
	if (*n)
		qsort(*name, *n, sizeof **name, by_name);
	return OM_OK;
}

om_status
om_suite_data(om_cli *c, const char *model, const char ***folder, size_t *n)
{
	const char *slash = om_path_slash(model);
	const char *beside = slash ? om_strndup(c->mem, model, (size_t)(slash - model)) : ".", **name;
	size_t all, cap = 0;

	*n = 0;
	*folder = NULL;
	OM_TRY(names_in(c, beside, &name, &all));
	for (size_t k = 0; k < all; k++) {
		const char *path = slash ? om_printf(c->mem, "%s/%s", beside, name[k]) : name[k];
		if (strncmp(name[k], "test_data_set_", 14) == 0 && is_folder(path))
			OM_PUSH(c->mem, *folder, *n, cap, path);
	}
	return OM_OK;
}

static const char *
model_below(om_cli *c, const char *folder, int depth)
{
	const char **name, *found = NULL;
	size_t n;

	if (depth > MAX_DEPTH || names_in(c, folder, &name, &n) != OM_OK)
		return NULL;
	for (size_t k = 0; k < n; k++)
		if (ends_in(name[k], ".onnx"))
			return om_printf(c->mem, "%s/%s", folder, name[k]);
	for (size_t k = 0; k < n && !found; k++) {
		const char *path = om_printf(c->mem, "%s/%s", folder, name[k]);
		found = is_folder(path) ? model_below(c, path, depth + 1) : NULL;
	}
	return found;
}

const char *
om_suite_model_below(om_cli *c, const char *folder)
{
	return model_below(c, folder, 0);
}

/* ---- Models. ---- */

static void
add_trial(om_cli *c, om_suite *suite, const om_regress_case *like, const char *name, const char *path)
{
	om_regress_case t = *like;

	t.name = name;
	t.path = path;
	OM_PUSH(c->mem, suite->trial, suite->ntrial, suite->captrial, t);
}

/* "a/b/model.onnx" is named a/b, "a/net.onnx" a/net. */
static const char *
name_of(om_cli *c, const char *path)
{
	const size_t n = strlen(path) - strlen(".onnx");
	const char *model = "/model.onnx";

	return ends_in(path, model) ? om_strndup(c->mem, path, strlen(path) - strlen(model))
	     : om_strndup(c->mem, path, n);
}

/* `below` is the path relative to the suite's folder, "" or ending in a slash; `at` is the
 * length of the requested prefix. */
static om_status
add_folder(om_cli *c, om_suite *suite, const om_regress_case *like, const char *below, size_t at, int depth)
{
	const char **name, *folder = om_printf(c->mem, "%s/%s", suite->folder, below);
	size_t n;

	OM_TRY(names_in(c, om_path_is_absolute(below) ? below : folder, &name, &n));
	for (size_t k = 0; k < n; k++) {
		const char *path = om_printf(c->mem, "%s%s", below, name[k]);
		const char *full = om_printf(c->mem, "%s/%s", suite->folder, path);
		if (is_folder(om_path_is_absolute(path) ? path : full)) {
			if (depth < MAX_DEPTH && strncmp(name[k], "test_data_set_", 14) != 0)
				OM_TRY(add_folder(c, suite, like, om_printf(c->mem, "%s/", path), at, depth + 1));
		} else if (ends_in(name[k], ".onnx")) {
			add_trial(c, suite, like, name_of(c, path + at), path);
		}
	}
	return OM_OK;
}

om_status
om_suite_allow(om_cli *c, const char *what, const char *text, om_suite *suite)
{
	double percent;

	suite->allow = (om_growth){0};
	if (!om_cli_percent(text, &percent))
		return om_cli_size(c, om_printf(c->mem, "%s, where it is no part such as 1%%,", what), text, &suite->allow.bytes);
	if (!(percent >= 0 && percent <= 1000))
		return om_fail(c->session, OM_USAGE, "%s requires 0%% to 1000%%, not %s", what, text);
	suite->allow.percent = percent;
	return OM_OK;
}

const char *
om_suite_file(om_cli *c, const om_suite *suite, size_t k)
{
	const char *path = suite->trial[k].path, *folder = suite->folder;

	if (!path)
		return suite->path;
	if (om_path_is_absolute(path) || strcmp(folder, ".") == 0)
		return path;
	return om_printf(c->mem, "%s%s%s", folder, ends_in(folder, "/") ? "" : "/", path);
}

/* ---- The file. ---- */

struct reader {
	om_cli *c;
	const char *where;
	om_suite *suite;
	const char **option;     /* for all models */
	size_t noption, capoption;
};

static om_status
wrong(const struct reader *r, const char *what)
{
	return om_fail(r->c->session, OM_MALFORMED, "%s: %s", r->where, what);
}

/* Unknown keys are refused as typos: otherwise a check would be silently skipped. */
static om_status
known_keys(const struct reader *r, json_t *j, const char *known)
{
	const char *key;
	json_t *value;

	json_object_foreach(j, key, value) {
		const char *at = strstr(known, om_printf(r->c->mem, " %s ", key));
		if (!at)
			return wrong(r, om_printf(r->c->mem, "there is no key \"%s\" here; there are%.*s", key,
				(int)strlen(known) - 1, known));
	}
	return OM_OK;
}

static om_status
read_words(const struct reader *r, const json_t *list, const char *key, const char ***word, size_t *n, size_t *cap)
{
	if (list && !json_is_array(list))
		return wrong(r, om_printf(r->c->mem, "\"%s\" is not a list", key));
	for (size_t k = 0; k < json_array_size(list); k++) {
		const char *text = json_string_value(json_array_get(list, k));
		if (!text)
			return wrong(r, om_printf(r->c->mem, "\"%s\" is not a list of texts", key));
		OM_PUSH(r->c->mem, *word, *n, *cap, om_strdup(r->c->mem, text));
	}
	return OM_OK;
}

static om_status
read_text(const struct reader *r, const json_t *j, const char *key, const char **out)
{
	const json_t *value = json_object_get(j, key);

	if (value && (!json_is_string(value) || !*json_string_value(value)))
		return wrong(r, om_printf(r->c->mem, "\"%s\" is not a text", key));
	*out = value ? om_strdup(r->c->mem, json_string_value(value)) : NULL;
	return OM_OK;
}

static om_status
read_real(const struct reader *r, const json_t *j, const char *key, double *out)
{
	const json_t *value = json_object_get(j, key);

	if (value && (!json_is_number(value) || json_number_value(value) < 0))
		return wrong(r, om_printf(r->c->mem, "\"%s\" is not a number of at least 0", key));
	*out = value ? json_number_value(value) : *out;
	return OM_OK;
}

static om_status
read_flag(const struct reader *r, const json_t *j, const char *key, bool *out)
{
	const json_t *value = json_object_get(j, key);

	if (value && !json_is_boolean(value))
		return wrong(r, om_printf(r->c->mem, "\"%s\" is neither true nor false", key));
	*out = value ? json_is_true(value) : *out;
	return OM_OK;
}

static om_status
read_trial(const struct reader *r, json_t *j, om_regress_case *t, const char **folder)
{
	double opset = 0;
	bool run = true;

	if (!json_is_object(j))
		return wrong(r, "a model is an object");
	OM_TRY(known_keys(r, j, " name path folder fetch opset with_data run options data rtol atol "));
	OM_TRY(read_text(r, j, "name", &t->name));
	OM_TRY(read_text(r, j, "path", &t->path));
	OM_TRY(read_text(r, j, "folder", folder));
	OM_TRY(read_text(r, j, "fetch", &t->fetch));
	OM_TRY(read_real(r, j, "opset", &opset));
	OM_TRY(read_flag(r, j, "with_data", &t->with_data));
	OM_TRY(read_flag(r, j, "run", &run));
	OM_TRY(read_real(r, j, "rtol", &t->rtol));
	OM_TRY(read_real(r, j, "atol", &t->atol));
	for (size_t k = 0; k < r->noption; k++)
		OM_PUSH(r->c->mem, t->option, t->noption, t->capoption, r->option[k]);
	OM_TRY(read_words(r, json_object_get(j, "options"), "options", &t->option, &t->noption, &t->capoption));
	OM_TRY(read_words(r, json_object_get(j, "data"), "data", &t->data, &t->ndata, &t->capdata));
	t->opset = (uint64_t)opset;
	t->plan_only = !run;
	if (!!t->path + !!*folder + !!t->fetch != 1)
		return wrong(r, "a model has one of \"path\", \"folder\" and \"fetch\"");
	return OM_OK;
}

static om_status
read_model(const struct reader *r, json_t *j)
{
	om_regress_case t = {.rtol = 1e-3, .atol = 1e-5};
	const char *folder = NULL;

	OM_TRY(read_trial(r, j, &t, &folder));
	if (folder) {
		folder = om_printf(r->c->mem, "%s%s", folder, ends_in(folder, "/") ? "" : "/");
		return add_folder(r->c, r->suite, &t, folder, strlen(folder), 0);
	}
	if (!t.name)
		t.name = t.fetch ? t.opset ? om_printf(r->c->mem, "%s-%llu", t.fetch, (unsigned long long)t.opset) : t.fetch
		       : ends_in(t.path, ".onnx") ? name_of(r->c, t.path) : t.path;
	add_trial(r->c, r->suite, &t, t.name, t.path);
	return OM_OK;
}

/* Names must be unique: figures are stored by name. */
static om_status
check_names(const struct reader *r)
{
	const om_suite *s = r->suite;

	for (size_t k = 0; k < s->ntrial; k++)
		for (size_t i = 0; i < k; i++)
			if (strcmp(s->trial[i].name, s->trial[k].name) == 0)
				return wrong(r, om_printf(r->c->mem, "two models are called %s; distinguish them by \"name\"",
					s->trial[k].name));
	return OM_OK;
}

static om_status
read_suite(struct reader *r, json_t *j)
{
	om_suite *s = r->suite;
	const char *schema, *name, *baseline, *allow;
	double repeat = (double)s->repeat;
	const json_t *models = json_object_get(j, "models");

	OM_TRY(read_text(r, j, "schema", &schema));
	if (!schema || strcmp(schema, "onnxmem-suite/1") != 0)
		return wrong(r, "\"schema\" is not \"onnxmem-suite/1\"");
	OM_TRY(known_keys(r, j, " schema name baseline allow options time_factor timeout repeat models "));
	OM_TRY(read_text(r, j, "name", &name));
	OM_TRY(read_text(r, j, "baseline", &baseline));
	OM_TRY(read_text(r, j, "allow", &allow));
	if (allow)
		OM_TRY(om_suite_allow(r->c, om_printf(r->c->mem, "%s: \"allow\"", r->where), allow, s));
	OM_TRY(read_words(r, json_object_get(j, "options"), "options", &r->option, &r->noption, &r->capoption));
	OM_TRY(read_real(r, j, "time_factor", &s->time_factor));
	OM_TRY(read_real(r, j, "timeout", &s->limit));
	OM_TRY(read_real(r, j, "repeat", &repeat));
	s->name = name ? name : s->name;
	s->repeat = repeat < 1 ? 1 : (uint64_t)repeat;
	if (baseline) {
		s->baseline = om_path_is_absolute(baseline) ? baseline : om_printf(r->c->mem, "%s/%s", s->folder, baseline);
		s->baseline_wanted = true;
	}
	if (!json_is_array(models))
		return wrong(r, "\"models\" is not a list");
	for (size_t k = 0; k < json_array_size(models); k++)
		OM_TRY(read_model(r, json_array_get(models, k)));
	return check_names(r);
}

static om_status
read_file(om_cli *c, const char *path, om_suite *suite)
{
	struct reader r = {.c = c, .where = path, .suite = suite};
	const char *slash = om_path_slash(path), *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');
	json_error_t error;

	if (dot && strcmp(dot, ".onnx") == 0)
		return om_fail(c->session, OM_USAGE, "%s is a model: regress takes a suite, or a folder with models", path);
	json_t *j = json_load_file(path, 0, &error);
	if (!j)
		return error.line > 0 ? om_fail(c->session, OM_MALFORMED, "%s: line %d: %s", path, error.line, error.text)
		     : om_fail(c->session, OM_IO, "%s: %s", path, strerror(errno));
	const size_t stem = dot ? (size_t)(dot - name) : strlen(name);
	suite->name = om_strndup(c->mem, name, stem);
	suite->folder = slash ? slash == path ? "/" : om_strndup(c->mem, path, (size_t)(slash - path)) : ".";
	suite->baseline = om_printf(c->mem, "%s/%s.baseline.json", suite->folder, suite->name);
	om_status st = read_suite(&r, j);
	json_decref(j);
	return st;
}

/* "." and "models/" have the names of their folders. */
static const char *
name_of_folder(om_cli *c, const char *path)
{
	char *full = realpath(path, NULL);
	const char *slash = full ? om_path_slash(full) : NULL;
	const char *name = slash && slash[1] ? om_strdup(c->mem, slash + 1) : path;

	free(full);
	return name;
}

om_status
om_suite_read(om_cli *c, const char *path, om_suite *suite)
{
	const om_regress_case like = {.rtol = 1e-3, .atol = 1e-5};

	*suite = (om_suite){.path = path, .limit = 600, .repeat = 3};
	if (!is_folder(path))
		return read_file(c, path, suite);
	suite->folder = path;
	suite->name = name_of_folder(c, path);
	suite->baseline = om_printf(c->mem, "%s/baseline.json", path);
	return add_folder(c, suite, &like, "", 0, 0);
}
