/* SPDX-License-Identifier: Apache-2.0 */
/* fetch: download models by name into the cache, or list the available models. */
#include <config.h>

#include <inttypes.h>
#include <jansson.h>
#include <strings.h>

#include "cli/model_source.h"
#include "report/json.h"

/* ---- The list. ---- */

struct filter {
	om_cli *c;
	const om_manifest *m;
	uint64_t opset, least, most;
};

static bool
has_tag(const om_hub_model *m, const char *tag)
{
	for (size_t k = 0; k < m->ntag; k++)
		if (strcasecmp(m->tag[k], tag) == 0)
			return true;
	return false;
}

static bool
holds(const char *text, const char *word)
{
	for (; *text; text++)
		if (strncasecmp(text, word, strlen(word)) == 0)
			return true;
	return false;
}

/* All tags, the opset, the sizes, and one of the words if any are given. */
static bool
is_listed(const struct filter *f, const om_hub_model *m)
{
	const char *tag;
	bool named = f->c->narg == 0;

	if (f->opset && m->opset != f->opset)
		return false;
	if (m->model.bytes < f->least || (f->most && m->model.bytes > f->most))
		return false;
	for (size_t at = 0; (tag = om_cli_next(f->c, "tag", &at));)
		if (!has_tag(m, tag))
			return false;
	for (size_t k = 0; k < f->c->narg; k++)
		named = named || holds(m->name, f->c->arg[k]);
	return named;
}

static void
print_model(om_cli *c, const om_hub_model *m, int width)
{
	char size[32];
	const char *tags = "";

	for (size_t k = 0; k < m->ntag; k++)
		tags = om_printf(c->mem, "%s%s%s", tags, k ? ", " : "", m->tag[k]);
	om_cli_line(c, om_cli_width(stdout), "%-*s  %5" PRIu64 "  %10s  %s", width, om_clean_text(c->mem, m->name),
		m->opset, om_bytes_text(m->model.bytes, size), om_clean_text(c->mem, tags));
}

static om_status
list_as_table(const struct filter *f)
{
	int width = 5;
	size_t n = 0;

	for (size_t k = 0; k < f->m->nmodel; k++)
		if (is_listed(f, &f->m->model[k]) && (int)strlen(f->m->model[k].name) > width)
			width = (int)strlen(f->m->model[k].name);
	printf("%-*s  %5s  %10s  %s\n", width, "model", "opset", "size", "tags");
	for (size_t k = 0; k < f->m->nmodel; k++) {
		if (!is_listed(f, &f->m->model[k]))
			continue;
		print_model(f->c, &f->m->model[k], width);
		n++;
	}
	printf("%zu of %zu models\n", n, f->m->nmodel);
	return OM_OK;
}

static json_t *
file_json(const om_hub_file *f)
{
	return json_pack("{s:s, s:I, s:s}", "path", f->path, "bytes", (json_int_t)f->bytes, "sha256", f->sha256);
}

static om_status
write_list(om_cli *c, FILE *to, const void *arg)
{
	const struct filter *f = arg;
	json_t *list = json_array();

	for (size_t k = 0; k < f->m->nmodel; k++) {
		const om_hub_model *m = &f->m->model[k];
		if (!is_listed(f, m))
			continue;
		json_t *tags = json_array();
		for (size_t i = 0; i < m->ntag; i++)
			json_array_append_new(tags, json_string(m->tag[i]));
		json_t *one = json_pack("{s:s, s:I, s:o, s:o}", "name", m->name, "opset", (json_int_t)m->opset,
			"model", file_json(&m->model), "tags", tags);
		if (m->data.path)
			json_object_set_new(one, "data", file_json(&m->data));
		json_array_append_new(list, one);
	}
	return om_json_write(c->session, list, JSON_INDENT(1), to);
}

static om_status
list_models(om_cli *c, const om_manifest *m)
{
	struct filter f = {.c = c, .m = m};
	const char *least = om_cli_option(c, "min-size"), *most = om_cli_option(c, "max-size");
	const char *json = om_cli_option(c, "json");

	OM_TRY(om_cli_number(c, "opset", 1, 1000, &f.opset));
	if (least)
		OM_TRY(om_cli_size(c, "option --min-size", least, &f.least));
	if (most)
		OM_TRY(om_cli_size(c, "option --max-size", most, &f.most));
	return json ? om_cli_write(c, json, write_list, &f) : list_as_table(&f);
}

/* ---- Fetching. ---- */

static om_status
tell_path(const char *path)
{
	puts(path);
	fflush(stdout);
	return OM_OK;
}

static om_status
fetch_direct(om_cli *c, om_hub *h, const char *name)
{
	om_hub_file file;
	const char *path;

	if (om_cli_has(c, "with-data") || om_cli_has(c, "opset"))
		return om_fail(c->session, OM_USAGE, "%s: --with-data and --opset are for models of a manifest",
			om_url_for_messages(c->mem, name));
	OM_TRY(om_cli_direct(c, h, name, om_cli_option(c, "sha256"), &file));
	OM_TRY(om_hub_fetch(h, &file, &path));
	return tell_path(path);
}

static om_status
fetch_one(om_cli *c, om_hub *h, const om_manifest *m, const char *name)
{
	const char *path;
	uint64_t opset = 0;

	if (om_hub_is_direct(name))
		return fetch_direct(c, h, name);
	OM_TRY(om_cli_number(c, "opset", 1, 1000, &opset));
	OM_TRY(om_hub_model_of(h, m, name, opset, om_cli_has(c, "with-data"), &path));
	return tell_path(path);
}

/* A failure does not prevent the other downloads. */
static om_status
fetch_all(om_cli *c, om_hub *h, const om_manifest *m)
{
	om_status first = OM_OK;
	const char *why = "";
	size_t nfailed = 0;

	for (size_t k = 0; k < c->narg; k++) {
		const om_status st = fetch_one(c, h, m, c->arg[k]);
		if (st == OM_OK)
			continue;
		if (nfailed++ == 0) {
			first = st;
			why = om_strdup(c->mem, om_message(c->session));
		} else {
			om_warn(c->session, "%s", om_message(c->session));
		}
	}
	if (first == OM_OK)
		return OM_OK;
	return nfailed == 1 ? om_fail(c->session, first, "%s", why)
	     : om_fail(c->session, first, "%s; %zu of %zu models failed", why, nfailed, c->narg);
}

/* Does no name need a manifest? */
static bool
all_direct(const om_cli *c)
{
	for (size_t k = 0; k < c->narg; k++)
		if (!om_hub_is_direct(c->arg[k]))
			return false;
	return c->narg > 0 && !om_cli_has(c, "list");
}

static om_status
run(om_cli *c)
{
	om_manifest m = {0};
	om_hub h;

	if (c->narg == 0 && !om_cli_has(c, "list"))
		return om_fail(c->session, OM_USAGE, "fetch requires the name of a model, or --list");
	if (om_cli_has(c, "sha256") && (c->narg != 1 || !all_direct(c)))
		return om_fail(c->session, OM_USAGE, "option --sha256 is for one name that is an address; the manifest has the others");
	om_status st = om_cli_hub(c, &h, all_direct(c) ? NULL : &m);
	if (st == OM_OK && om_cli_has(c, "list"))
		return list_models(c, &m);
	if (st == OM_OK)
		st = fetch_all(c, &h, &m);
	if (st != OM_OK)
		return om_status_exit(st) == 2 ? st : om_cli_failed(c, st);
	printf("PASSED %" PRIu64 " fetched, %" PRIu64 " from the cache\n", h.nfetched, h.ncached);
	return OM_OK;
}

static const om_opt opts[] = {
	{"sha256", "SUM", "the checksum of a file that is named by its address"},
	{"opset", "N", "fetch the model for opset N [the highest available]"},
	{"with-data", NULL, "fetch and unpack the archive with test data; prints the path of its folder"},
	{"list", NULL, "list models, or those whose names contain one of the WORDs; fetch nothing"},
	{"tag", "TAG", "with --list: only models with this tag; repeatable"},
	{"min-size", "SIZE", "with --list: only models of at least SIZE"},
	{"max-size", "SIZE", "with --list: only models of at most SIZE"},
	{"json", "FILE", "write the list as JSON, with paths and checksums", .writes = OM_WRITES_FILE},
	{0}
};

static const om_opt_group group = {"options", opts};

const om_cmd om_fetch_cmd = {
	.name = "fetch", .usage = "NAME... | --list [WORD]... [options]", .brief = "fetch models from the public model zoo",
	.text = "A NAME is that of a model in the manifest, an address with a checksum, such as\n"
		"https://HOST/FILE#sha256=SUM, or hf:ORG/REPO/FILE[@REV], with or without #sha256=SUM.\n"
		"Prints the path of each model; the last line is PASSED or FAILED.  A cached file is\n"
		"used if its SHA-256 matches.  Mirrors are taken from the options, else from\n"
		"ONNXMEM_MIRRORS, else from ~/.config/onnxmem/config, else from the manifest.",
	.max_args = OM_CMD_ANY,
	.group = {&group, &om_hub_options}, .run = run,
};
