/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests: the available models, their locations, sizes and checksums.
 *
 * Two formats are read.  The format of onnxmem is an object:
 *   {"schema": "onnxmem-manifest/1", "mirrors": [URL...], "models": [{"name", "opset",
 *    "path", "bytes", "sha256", "tags": [...], "data": {"path", "bytes", "sha256"}}]}
 *
 * That of the ONNX Hub is an array of objects with model, model_path, opset_version
 * and metadata.  Manifests are untrusted: a path outside of the cache, or an
 * invalid checksum, is refused here and nowhere else.
 */
#include <config.h>

#include <ctype.h>
#include <jansson.h>
#include <string.h>
#include <strings.h>

#include "hub/hub.h"

/* ---- Validation. ---- */

bool
om_is_sha256(const char *text)
{
	return strlen(text) == 64 && strspn(text, "0123456789abcdefABCDEF") == 64;
}

static const char *
to_lower(om_arena *mem, const char *text)
{
	char *out = om_strdup(mem, text);

	for (char *at = out; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	return out;
}

/* ---- Reading. ---- */

struct reader {
	om_session *s;
	om_arena *mem;
	const char *where;
	const char *name;        /* of the current model */
};

static om_status
fail_model(const struct reader *r, const char *what)
{
	return om_fail(r->s, OM_MALFORMED, "%s: model %s: %s", r->where, r->name, what);
}

static om_status
read_file(const struct reader *r, const json_t *path, const json_t *bytes, const json_t *sum, om_hub_file *f)
{
	if (!json_is_string(path) || !om_path_is_safe(json_string_value(path)))
		return fail_model(r, "its path is missing, or not a safe relative path");
	if (!json_is_string(sum) || !om_is_sha256(json_string_value(sum)))
		return fail_model(r, "its SHA-256 is missing, or not 64 hexadecimal digits");
	if (bytes && (!json_is_integer(bytes) || json_integer_value(bytes) < 0))
		return fail_model(r, "its size is not a number of bytes");
	f->path = om_strdup(r->mem, json_string_value(path));
	f->bytes = (uint64_t)json_integer_value(bytes);
	f->sha256 = to_lower(r->mem, json_string_value(sum));
	return OM_OK;
}

static void
read_tags(const struct reader *r, const json_t *tags, om_hub_model *m)
{
	m->tag = OM_NEWN(r->mem, const char *, json_array_size(tags) + 1);
	for (size_t k = 0; k < json_array_size(tags); k++)
		if (json_is_string(json_array_get(tags, k)))
			m->tag[m->ntag++] = om_strdup(r->mem, json_string_value(json_array_get(tags, k)));
}

static om_status
read_own_format(const struct reader *r, const json_t *j, om_hub_model *m)
{
	const json_t *data = json_object_get(j, "data");

	OM_TRY(read_file(r, json_object_get(j, "path"), json_object_get(j, "bytes"), json_object_get(j, "sha256"),
		&m->model));
	if (data)
		OM_TRY(read_file(r, json_object_get(data, "path"), json_object_get(data, "bytes"),
			json_object_get(data, "sha256"), &m->data));
	read_tags(r, json_object_get(j, "tags"), m);
	return OM_OK;
}

static om_status
read_hub(const struct reader *r, const json_t *j, om_hub_model *m)
{
	const json_t *meta = json_object_get(j, "metadata");
	const json_t *data = json_object_get(meta, "model_with_data_path");

	OM_TRY(read_file(r, json_object_get(j, "model_path"), json_object_get(meta, "model_bytes"),
		json_object_get(meta, "model_sha"), &m->model));
	if (data)
		OM_TRY(read_file(r, data, json_object_get(meta, "model_with_data_bytes"),
			json_object_get(meta, "model_with_data_sha"), &m->data));
	read_tags(r, json_object_get(meta, "tags"), m);
	return OM_OK;
}

static om_status
read_models(struct reader *r, const json_t *list, bool is_ours, om_manifest *m)
{
	for (size_t k = 0; k < json_array_size(list); k++) {
		const json_t *j = json_array_get(list, k);
		const json_t *name = json_object_get(j, is_ours ? "name" : "model");
		const json_t *opset = json_object_get(j, is_ours ? "opset" : "opset_version");
		om_hub_model one = {0};
		if (!json_is_string(name) || !*json_string_value(name))
			return om_fail(r->s, OM_MALFORMED, "%s: model %zu has no name", r->where, k);
		one.name = r->name = om_strdup(r->mem, json_string_value(name));
		if (!json_is_integer(opset) || json_integer_value(opset) < 1)
			return fail_model(r, "its opset is missing, or not a number");
		one.opset = (uint64_t)json_integer_value(opset);
		OM_TRY(is_ours ? read_own_format(r, j, &one) : read_hub(r, j, &one));
		OM_PUSH(r->mem, m->model, m->nmodel, m->capmodel, one);
	}
	return OM_OK;
}

static om_status
read_mirrors(const struct reader *r, const json_t *list, om_manifest *m)
{
	for (size_t k = 0; k < json_array_size(list); k++) {
		const char *url = json_string_value(json_array_get(list, k));
		if (!url || !om_is_url(url))
			return om_fail(r->s, OM_MALFORMED, "%s: mirror %zu is not an address", r->where, k);
		OM_PUSH(r->mem, m->mirror, m->nmirror, m->capmirror, om_strdup(r->mem, url));
	}
	return OM_OK;
}

static om_status
read_json(struct reader *r, const json_t *j, om_manifest *m)
{
	const char *schema = json_string_value(json_object_get(j, "schema"));

	if (json_is_array(j))
		return read_models(r, j, false, m);
	if (!schema || strcmp(schema, "onnxmem-manifest/1") != 0)
		return om_fail(r->s, OM_MALFORMED, "%s: neither a manifest of schema onnxmem-manifest/1 nor one of the "
			"ONNX Hub", r->where);
	OM_TRY(read_mirrors(r, json_object_get(j, "mirrors"), m));
	return read_models(r, json_object_get(j, "models"), true, m);
}

om_status
om_manifest_read(om_session *s, om_arena *mem, const char *text, size_t n, const char *where, om_manifest *m)
{
	struct reader r = {s, mem, where, ""};
	json_error_t error;
	json_t *j = json_loadb(text, n, 0, &error);

	if (!j)
		return om_fail(s, OM_MALFORMED, "%s: line %d: %s", where, error.line, error.text);
	*m = (om_manifest){0};
	om_status st = read_json(&r, j, m);
	json_decref(j);
	return st;
}

/* ---- Looking up. ---- */

static bool
contains(const char *text, const char *part)
{
	const size_t n = strlen(part);

	for (; *text; text++)
		if (strncasecmp(text, part, n) == 0)
			return true;
	return false;
}

/* Up to six names that contain the word, or its first letters. */
static const char *
names_like(om_arena *mem, const om_manifest *m, const char *name)
{
	enum { SHOWN = 6 };
	const char *list = "", *last = "";
	size_t n = 0, len = strlen(name);

	for (; len > 2 && n == 0; len--) {
		const char *part = om_strndup(mem, name, len);
		for (size_t k = 0; k < m->nmodel && n < SHOWN; k++) {
			const char *one = m->model[k].name;
			if (!contains(one, part) || strcasecmp(one, last) == 0)
				continue;
			list = om_printf(mem, "%s%s%s", list, n ? ", " : "", one);
			last = one;
			n++;
		}
	}
	return n ? om_printf(mem, "; there are %s", list) : "; `onnxmem fetch --list` shows all";
}

static const char *
opsets_of(om_arena *mem, const om_manifest *m, const char *name)
{
	const char *list = "";

	for (size_t k = 0; k < m->nmodel; k++)
		if (strcasecmp(m->model[k].name, name) == 0)
			list = om_printf(mem, "%s%s%llu", list, *list ? ", " : "", (unsigned long long)m->model[k].opset);
	return list;
}

om_status
om_manifest_find(om_session *s, om_arena *mem, const om_manifest *m, const char *name, uint64_t opset,
	const om_hub_model **found)
{
	*found = NULL;
	for (size_t k = 0; k < m->nmodel; k++) {
		const om_hub_model *one = &m->model[k];
		if (strcasecmp(one->name, name) == 0 && (opset ? one->opset == opset
		    : !*found || one->opset > (*found)->opset))
			*found = one;
	}
	if (*found)
		return OM_OK;
	const char *opsets = opsets_of(mem, m, name);
	if (*opsets)
		return om_fail(s, OM_USAGE, "the manifest has %s with opset %s, not %llu", name, opsets,
			(unsigned long long)opset);
	return om_fail(s, OM_USAGE, "the manifest has no model called %s%s", name, names_like(mem, m, name));
}
