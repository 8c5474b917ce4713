/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a set as a document, "onnxmem-set-plan/1". */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "onnx/json_hold.h"
#include "set/set.h"

static const char schema[] = "onnxmem-set-plan/1";

/* ---- Writing. ---- */

static om_status
part_json(om_set *x, const struct part *p, json_t *list)
{
	char digest[80];

	OM_TRY(om_model_digest(x->session, p->model, false, digest));
	json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "name", p->pub.name, "model", p->model_name, "graph", digest,
		"sizes", (json_int_t)p->pub.nsize, "offset", (json_int_t)p->pub.offset, "bytes", (json_int_t)p->pub.bytes));
	return OM_OK;
}

static json_t *
value_json(const om_set *x, const om_set_value *v)
{
	json_t *ends = json_array(), *offsets = json_array();

	for (uint32_t k = 0; k < v->nend; k++)
		json_array_append_new(ends, json_pack("{s:s, s:s, s:b}", "part", x->part[v->end[k].part].pub.name, "name", v->end[k].name,
			"writes", v->end[k].is_output));
	for (uint32_t k = 0; k < v->nbuffer; k++)
		json_array_append_new(offsets, json_integer((json_int_t)v->offset[k]));
	return json_pack("{s:o, s:I, s:o, s:s, s:s}", "ends", ends, "bytes", (json_int_t)v->bytes, "offsets", offsets, "first",
		x->part[v->first].pub.name, "last", x->part[v->last].pub.name);
}

static om_status
write_json(om_set *x, char **out)
{
	om_arena *mem = om_arena_new();
	json_t **hold = om_json_hold(mem), *parts = json_array(), *values = json_array();
	const om_plan_request *r = &x->part[0].request;

	*hold = json_pack("{s:s, s:s, s:I, s:b, s:I, s:I, s:o, s:o}", "schema", schema, "target", r->target == OM_TARGET_CPU ? "cpu" : "generic",
		"threads", (json_int_t)r->threads, "precise", r->precise, "arena_bytes", (json_int_t)x->plan.bytes, "align",
		(json_int_t)x->plan.align, "parts", parts, "values", values);
	om_status st = OM_OK;
	for (uint32_t k = 0; k < x->npart && st == OM_OK; k++)
		st = part_json(x, &x->part[k], parts);
	for (uint32_t k = 0; k < x->nvalue; k++)
		json_array_append_new(values, value_json(x, &x->value[k]));
	*out = st || !*hold ? NULL : json_dumps(*hold, JSON_INDENT(2));
	om_arena_free(mem);
	if (st == OM_OK && !*out)
		return om_fail(x->session, OM_INVALID, "%s: a name is not valid in JSON, or memory ran out", x->path);
	return st;
}

om_status
om_set_json(om_set *x, char **json)
{
	*json = NULL;
	if (!x->is_planned)
		return om_fail(x->session, OM_USAGE, "%s has no plan", x->path);
	return write_json(x, json);
}

/* ---- Reading. ---- */

struct reader {
	om_set *x;
	const char *path;
};

#define BAD(r, ...) om_fail((r)->x->session, OM_MALFORMED, __VA_ARGS__)
#define STALE(r, ...) om_fail((r)->x->session, OM_STALE, __VA_ARGS__)

static om_status
read_bytes(const struct reader *r, json_t *j, const char *what, uint64_t *out)
{
	if (!json_is_integer(j) || json_integer_value(j) < 0)
		return BAD(r, "%s: %s is no number of bytes", r->path, what);
	*out = (uint64_t)json_integer_value(j);
	return OM_OK;
}

static bool
is_text(json_t *j, const char *key, const char *want)
{
	const char *text = json_string_value(json_object_get(j, key));

	return text && strcmp(text, want) == 0;
}

static om_status
read_part(const struct reader *r, struct part *p, json_t *j)
{
	char digest[80];
	uint64_t bytes;

	OM_TRY(om_model_digest(r->x->session, p->model, false, digest));
	if (!is_text(j, "name", p->pub.name))
		return STALE(r, "%s: the plan has other parts: %s is not where it was", r->path, p->pub.name);
	if (!is_text(j, "graph", digest))
		return STALE(r, "%s: the plan is for another model of part %s", r->path, p->pub.name);
	OM_TRY(read_bytes(r, json_object_get(j, "bytes"), "\"bytes\" of a part", &bytes));
	OM_TRY(read_bytes(r, json_object_get(j, "offset"), "\"offset\" of a part", &p->pub.offset));
	if (bytes < p->pub.bytes)
		return STALE(r, "%s: the plan has %llu bytes for part %s, whose arena needs %llu: was it made with other options or sizes?", r->path,
			(unsigned long long)bytes, p->pub.name, (unsigned long long)p->pub.bytes);
	p->pub.bytes = bytes;
	return OM_OK;
}

static bool
has_ends(const om_set *x, const om_set_value *v, json_t *ends)
{
	if (json_array_size(ends) != v->nend)
		return false;
	for (uint32_t k = 0; k < v->nend; k++) {
		json_t *j = json_array_get(ends, k);
		if (!is_text(j, "part", x->part[v->end[k].part].pub.name) || !is_text(j, "name", v->end[k].name))
			return false;
	}
	return true;
}

static om_status
read_value(const struct reader *r, om_set_value *v, json_t *j)
{
	json_t *offsets = json_object_get(j, "offsets");
	uint64_t bytes;

	if (!has_ends(r->x, v, json_object_get(j, "ends")))
		return STALE(r, "%s: the plan has other shared values: %s is not where it was", r->path, v->name);
	OM_TRY(read_bytes(r, json_object_get(j, "bytes"), "\"bytes\" of a value", &bytes));
	if (bytes < v->bytes || json_array_size(offsets) < v->nbuffer)
		return STALE(r, "%s: the plan has %zu times %llu bytes for %s, which needs %u times %llu", r->path, json_array_size(offsets),
			(unsigned long long)bytes, v->name, v->nbuffer, (unsigned long long)v->bytes);
	v->bytes = bytes;
	for (uint32_t k = 0; k < v->nbuffer; k++)
		OM_TRY(read_bytes(r, json_array_get(offsets, k), "\"offsets\" of a value", &v->offset[k]));
	return OM_OK;
}

static om_status
read_all(const struct reader *r, json_t *j)
{
	om_set *x = r->x;
	json_t *parts = json_object_get(j, "parts"), *values = json_object_get(j, "values");
	uint64_t align;

	if (!is_text(j, "schema", schema))
		return BAD(r, "%s: no plan of a set: \"schema\" is not \"%s\"", r->path, schema);
	OM_TRY(read_bytes(r, json_object_get(j, "arena_bytes"), "\"arena_bytes\"", &x->plan.bytes));
	OM_TRY(read_bytes(r, json_object_get(j, "align"), "\"align\"", &align));
	if (align < x->plan.align)
		return STALE(r, "%s: the plan is aligned to %llu bytes, not %llu", r->path, (unsigned long long)align, (unsigned long long)x->plan.align);
	if (json_array_size(parts) != x->npart || json_array_size(values) != x->nvalue)
		return STALE(r, "%s: the plan has %zu parts and %zu shared values, the set %u and %u", r->path, json_array_size(parts),
			json_array_size(values), x->npart, x->nvalue);
	for (uint32_t k = 0; k < x->npart; k++)
		OM_TRY(read_part(r, &x->part[k], json_array_get(parts, k)));
	for (uint32_t k = 0; k < x->nvalue; k++)
		OM_TRY(read_value(r, &x->value[k], json_array_get(values, k)));
	x->plan.lower_bound = 0;
	return OM_OK;
}

om_status
om_set_read_offsets(om_set *x, const char *path)
{
	const struct reader r = {x, path};
	json_error_t e;
	json_t **j = om_json_hold(x->mem);

	*j = json_load_file(path, JSON_REJECT_DUPLICATES, &e);
	if (!*j && json_error_code(&e) == json_error_cannot_open_file)
		return om_fail(x->session, OM_IO, "%s", e.text);
	return *j ? read_all(&r, *j) : om_fail(x->session, OM_MALFORMED, "%s: not JSON: %s (line %d)", path, e.text, e.line);
}
