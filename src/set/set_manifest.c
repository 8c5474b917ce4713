/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest of a set: parts with their sizes and constants, and the order in which they run. */
#include <config.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system.h"
#include "alloc/assign.h"
#include "ir/dim_expression.h"
#include "ir/query.h"
#include "onnx/json_hold.h"
#include "set/set.h"

#define BAD(x, ...) om_fail((x)->session, OM_INVALID, __VA_ARGS__)

/* ---- Parts. ---- */

static bool
any_number(const void *arg, const char *name, size_t n, int64_t *out)
{
	(void)arg, (void)name, (void)n;
	*out = 1 << 20;
	return true;
}

/* A sum, as "past + 1".  A single dim is one, too. */
static om_status
read_sum(om_set *x, const struct part *p, const char *text, struct set_dim *d)
{
	int64_t n;

	d->sum = om_printf(x->mem, "(%s) + 0", text);
	if (!om_dim_expression(d->sum, any_number, NULL, &n))
		return BAD(x, "%s: part %s: dim %s: \"%s\" is no sum of dims and numbers", x->path, p->pub.name, d->symbol, text);
	return OM_OK;
}

static om_status
read_dim(om_set *x, const struct part *p, const char *symbol, json_t *j, struct set_dim *d)
{
	*d = (struct set_dim){.symbol = symbol};
	if (json_is_string(j))
		return read_sum(x, p, json_string_value(j), d);
	if (json_is_integer(j))
		d->low = d->high = json_integer_value(j);
	else if (json_is_array(j) && json_array_size(j) == 2 && json_is_integer(json_array_get(j, 0))
	    && json_is_integer(json_array_get(j, 1))) {
		d->low = json_integer_value(json_array_get(j, 0));
		d->high = json_integer_value(json_array_get(j, 1));
	} else
		return BAD(x, "%s: part %s: dim %s is no number, no pair of numbers and no sum", x->path, p->pub.name, symbol);
	if (d->low < 0 || d->high < d->low)
		return BAD(x, "%s: part %s: dim %s has no sizes", x->path, p->pub.name, symbol);
	return OM_OK;
}

static om_status
read_dims(om_set *x, struct part *p, json_t *dims)
{
	const char *symbol;
	json_t *j;

	if (dims && !json_is_object(dims))
		return BAD(x, "%s: part %s: \"dims\" is no object", x->path, p->pub.name);
	p->dim = OM_NEWN(x->mem, struct set_dim, json_object_size(dims));
	json_object_foreach(dims, symbol, j)
		OM_TRY(read_dim(x, p, symbol, j, &p->dim[p->ndim++]));
	return OM_OK;
}

static om_status
read_shape(om_set *x, struct part *p, const char *input, json_t *j)
{
	om_shape shape = {.rank = (int)json_array_size(j)};
	size_t k;
	json_t *dim;

	if (!json_is_array(j) || json_array_size(j) > OM_MAX_RANK)
		return BAD(x, "%s: part %s: the shape of %s is no list of dims", x->path, p->pub.name, input);
	json_array_foreach(j, k, dim) {
		if (!json_is_integer(dim) || json_integer_value(dim) < 0)
			return BAD(x, "%s: part %s: dim %zu of %s is no number", x->path, p->pub.name, k, input);
		shape.dim[k] = json_integer_value(dim);
	}
	return om_binding_shape(x->session, p->fixed, input, &shape);
}

static om_status
read_shapes(om_set *x, struct part *p, json_t *shapes)
{
	const char *input;
	json_t *j;

	if (shapes && !json_is_object(shapes))
		return BAD(x, "%s: part %s: \"shapes\" is no object", x->path, p->pub.name);
	json_object_foreach(shapes, input, j)
		OM_TRY(read_shape(x, p, input, j));
	return OM_OK;
}

/* Element `k` of a constant; false: the JSON value is not of its type. */
static bool
put_element(const om_tensor *t, size_t k, const json_t *j)
{
	const json_int_t n = json_integer_value(j);

	switch (t->type) {
	case OM_BOOL: ((bool *)t->data)[k] = json_is_true(j); return json_is_boolean(j);
	case OM_INT32: ((int32_t *)t->data)[k] = (int32_t)n; return json_is_integer(j) && n >= INT32_MIN && n <= INT32_MAX;
	case OM_INT64: ((int64_t *)t->data)[k] = n; return json_is_integer(j);
	case OM_FLOAT32: ((float *)t->data)[k] = (float)json_number_value(j); return json_is_number(j) && isfinite(((float *)t->data)[k]);
	default: return false;
	}
}

/* An input as a constant of the shape that the model declares: one value fills all elements, and a list has each. */
static om_status
read_value(om_set *x, struct part *p, om_binding *b, const char *input, const json_t *j)
{
	const om_value *v = om_block_param(p->loaded->first, input);
	om_tensor t = {0};
	uint64_t bytes;

	if (!v)
		return BAD(x, "%s: part %s has no input %s", x->path, p->pub.name, input);
	t.type = v->type.elem;
	t.shape = v->shape;
	if (v->type.kind != OM_TENSOR || !om_tensor_bytes(t.type, &t.shape, &bytes))
		return BAD(x, "%s: part %s: input %s has no known size, so it has no value", x->path, p->pub.name, input);
	const size_t n = (size_t)om_shape_count(&t.shape);
	if (json_is_array(j) && json_array_size(j) != n)
		return BAD(x, "%s: part %s: input %s has %zu elements, and its value %zu", x->path, p->pub.name, input, n, json_array_size(j));
	t.data = om_alloc(x->mem, bytes + 1);
	for (size_t k = 0; k < n; k++)
		if (!put_element(&t, k, json_is_array(j) ? json_array_get(j, k) : j))
			return BAD(x, "%s: part %s: the value of input %s is no %s, or of a type that a manifest cannot have", x->path, p->pub.name,
				input, om_dtype_text(t.type));
	return om_binding_value(x->session, b, input, &t);
}

static om_status
read_values(om_set *x, struct part *p, json_t *values)
{
	om_binding *b = values ? om_binding_new() : NULL;
	om_status st = values && !b ? OM_MEMORY : OM_OK;
	const char *input;
	json_t *j;

	if (!values)
		return OM_OK;
	if (st == OM_OK && !json_is_object(values))
		st = BAD(x, "%s: part %s: \"values\" is no object", x->path, p->pub.name);
	json_object_foreach(values, input, j)
		if (st == OM_OK)
			st = read_value(x, p, b, input, j);
	if (st == OM_OK)
		st = om_prog_bind(x->session, p->loaded, b, &p->prog);
	om_binding_free(b);
	return st;
}

static void
free_binding(void *b)
{
	om_binding_free(*(om_binding **)b);
}

static const char *
text_of(json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static om_status
read_part(om_set *x, json_t *j, struct part *p)
{
	static const char *const keys[] = {"name", "model", "dims", "shapes", "values"};
	const char *key;
	json_t *value;

	p->pub.name = text_of(j, "name");
	p->model_name = text_of(j, "model");
	if (!p->pub.name || !*p->pub.name || strchr(p->pub.name, '.') || !p->model_name)
		return BAD(x, "%s: each part has a \"name\", without dots, and a \"model\"", x->path);
	json_object_foreach(j, key, value) {
		bool is_known = false;
		for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
			is_known |= strcmp(key, keys[k]) == 0;
		if (!is_known)
			return BAD(x, "%s: part %s: \"%s\" is not known", x->path, p->pub.name, key);
	}
	om_binding **at = OM_NEW(x->mem, om_binding *);
	om_arena_defer(x->mem, free_binding, at);
	if (!(p->fixed = *at = om_binding_new()))
		return om_fail(x->session, OM_MEMORY, "no memory for a part");
	p->pub.path = om_path_is_absolute(p->model_name) ? p->model_name : om_printf(x->mem, "%s%s", x->folder, p->model_name);
	OM_TRY(read_dims(x, p, json_object_get(j, "dims")));
	OM_TRY(read_shapes(x, p, json_object_get(j, "shapes")));
	const om_status st = om_model_load(x->session, p->pub.path, &p->model);
	if (st)
		return om_note(x->session, st, "loading part %s", p->pub.name);
	OM_TRY(om_model_import(x->session, p->model, &p->loaded));
	p->prog = p->loaded;
	OM_TRY(read_values(x, p, json_object_get(j, "values")));
	p->pub.prog = p->prog;
	p->pipeline = om_host_decided(x->host, p->prog, x->pipeline);
	return OM_OK;
}

/* ---- The order. ---- */

static om_status
find_listed(om_set *x, json_t *parts, json_t *name, json_t **out)
{
	size_t k;
	json_t *j;

	json_array_foreach(parts, k, j)
		if (json_is_string(name) && text_of(j, "name") && strcmp(text_of(j, "name"), json_string_value(name)) == 0) {
			*out = j;
			return OM_OK;
		}
	return BAD(x, "%s: \"order\" has \"%s\", which is no part", x->path, json_is_string(name) ? json_string_value(name) : "something");
}

static om_status
append_part(om_set *x, json_t *parts, json_t *name)
{
	json_t *j = NULL;

	OM_TRY(find_listed(x, parts, name, &j));
	for (uint32_t k = 0; k < x->npart; k++)
		if (strcmp(x->part[k].pub.name, json_string_value(name)) == 0)
			return BAD(x, "%s: part %s is in \"order\" twice", x->path, x->part[k].pub.name);
	return read_part(x, j, &x->part[x->npart++]);
}

static om_status
append_loop(om_set *x, json_t *parts, json_t *names)
{
	const uint32_t first = x->npart;
	size_t k;
	json_t *name;

	json_array_foreach(names, k, name)
		OM_TRY(append_part(x, parts, name));
	if (x->npart == first)
		return BAD(x, "%s: \"order\" has an empty loop", x->path);
	x->loop[x->nloop++] = (struct set_loop){first, x->npart - 1};
	return OM_OK;
}

static om_status
read_order(om_set *x, json_t *parts, json_t *order)
{
	size_t k;
	json_t *j;

	if (!json_is_array(parts) || json_array_size(parts) == 0 || json_array_size(parts) > OM_SET_MOST_PARTS)
		return BAD(x, "%s: \"parts\" is no list of parts", x->path);
	if (!json_is_array(order))
		return BAD(x, "%s: \"order\" is no list of the names of parts", x->path);
	x->part = OM_NEWN(x->mem, struct part, json_array_size(parts));
	x->loop = OM_NEWN(x->mem, struct set_loop, json_array_size(order));
	json_array_foreach(order, k, j)
		OM_TRY(json_is_array(j) ? append_loop(x, parts, j) : append_part(x, parts, j));
	json_array_foreach(parts, k, j)
		if (k >= x->npart)
			return BAD(x, "%s: a part is not in \"order\"", x->path);
	return OM_OK;
}

om_status
om_set_read_manifest(om_set *x)
{
	json_error_t e;
	const char *slash = om_path_slash(x->path);

	x->folder = slash ? om_strndup(x->mem, x->path, (size_t)(slash + 1 - x->path)) : "";
	x->json = om_json_hold(x->mem);
	*x->json = json_load_file(x->path, JSON_REJECT_DUPLICATES, &e);
	if (!*x->json && json_error_code(&e) == json_error_cannot_open_file)
		return om_fail(x->session, OM_IO, "%s", e.text);
	if (!*x->json)
		return om_fail(x->session, OM_MALFORMED, "%s: not JSON: %s (line %d)", x->path, e.text, e.line);
	const char *schema = text_of(*x->json, "schema");
	if (!schema || strcmp(schema, "onnxmem-set/1") != 0)
		return om_fail(x->session, OM_MALFORMED, "%s: no manifest of a set: \"schema\" is not \"onnxmem-set/1\"", x->path);
	return read_order(x, json_object_get(*x->json, "parts"), json_object_get(*x->json, "order"));
}
