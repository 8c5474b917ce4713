/* SPDX-License-Identifier: Apache-2.0 */
/* Maps: created from rows of scores, and converted into rows of features. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "base/strided_copy.h"
#include "opdef/columns.h"
#include "base/shape.h"
#include "ir/query.h"
#include "ir/type.h"
#include "ops/family.h"
#include "opdef/numbers.h"
#include "ops/control/container.h"
#include "ops/ml/ml_post_transform.h"

static om_status
want_map(const om_op_context *c)
{
	const om_kind kind = c->op->in[0]->type.kind;

	if (kind == OM_MAP)
		return OM_OK;
	return om_op_fail(c->session, OM_SHAPE, c->op, "the input must be a map, not a %s", om_kind_text(kind));
}

static om_shape
row_shape(int64_t n)
{
	return om_shape_of(2, (const int64_t[]){1, n});
}

/* ---- ZipMap. ---- */

static om_status
zip_infer(om_op_context *c)
{
	int64_t rows, n;
	om_labels l;

	if (c->op->in[0]->type.kind != OM_TENSOR)
		return om_op_fail(c->session, OM_SHAPE, c->op, "the input must be a tensor, not a %s",
			om_kind_text(c->op->in[0]->type.kind));
	if (c->in[0].type != OM_UNDEFINED && c->in[0].type != OM_FLOAT32)
		return om_no_kernel(c, c->in[0].type);
	OM_TRY(om_labels_of(c, "classlabels_int64s", "classlabels_strings", &l));
	OM_TRY(om_rows(c, 0, &rows, &n));
	if (l.n == 0 || (n >= 0 && n != l.n))
		return om_op_fail(c->session, OM_SHAPE, c->op, "has %lld labels for %lld columns", (long long)l.n, (long long)n);
	if (c->out_type)
		c->out_type[0] = *om_maps_of(l.type, OM_FLOAT32);
	c->out[0].type = OM_FLOAT32;
	return OM_OK;
}

static om_status
zip_prepare(om_op_context *c, void **state)
{
	return om_labels_of(c, "classlabels_int64s", "classlabels_strings", *state);
}

static om_status
zip_cpu(om_op_context *c)
{
	const om_labels l = *(const om_labels *)c->state;
	int64_t rows, n;
	om_tensor *item;

	OM_TRY(om_rows(c, 0, &rows, &n));
	c->out[0].data = om_container_new(c->keep, (size_t)rows, &item);
	for (int64_t row = 0; row < rows; row++) {
		om_container *map = OM_NEW(c->keep, om_container);
		map->n = (size_t)n;
		map->key = (om_tensor){.type = l.type, .shape = om_shape_of(1, &n),
			.data = l.type == OM_STRING ? (void *)l.s : (void *)l.i};
		map->value = (om_tensor){.type = OM_FLOAT32, .shape = om_shape_of(1, &n),
			.data = om_memdup(c->keep, (const float *)c->in[0].data + row * n, (size_t)n * sizeof(float))};
		item[row] = (om_tensor){.type = OM_FLOAT32, .shape = om_shape_unknown(), .data = map};
	}
	return OM_OK;
}

/* ---- DictVectorizer. ---- */

static om_status
dict_infer(om_op_context *c)
{
	om_labels l;

	OM_TRY(want_map(c));
	OM_TRY(om_labels_of(c, "int64_vocabulary", "string_vocabulary", &l));
	if (l.type != c->op->in[0]->type.elem)
		return om_op_fail(c->session, OM_SHAPE, c->op,
			"the vocabulary and the keys of the map differ in type");
	c->out[0].type = c->in[0].type;
	c->out[0].shape = row_shape(l.n);
	return OM_OK;
}

static bool
is_key(const om_labels *l, int64_t k, const om_tensor *key, size_t i)
{
	if (l->type != OM_STRING)
		return l->i[k] == ((const int64_t *)key->data)[i];
	const om_string *a = &l->s[k], *b = (const om_string *)key->data + i;
	return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

static om_status
dict_prepare(om_op_context *c, void **state)
{
	return om_labels_of(c, "int64_vocabulary", "string_vocabulary", *state);
}

static om_status
dict_cpu(om_op_context *c)
{
	const om_labels l = *(const om_labels *)c->state;
	const om_container *map = om_in_container(c, 0);
	size_t size;

	OM_TRY(om_elem_bytes(c, c->out[0].type, &size));
	for (int64_t k = 0; k < l.n; k++) {
		char *to = (char *)c->out[0].data + (size_t)k * size;
		memset(to, 0, size);
		for (size_t i = 0; i < map->n; i++)
			if (is_key(&l, k, &map->key, i)) {
				memcpy(to, (const char *)map->value.data + i * size, size);
				break;
			}
	}
	return OM_OK;
}

/* ---- CastMap. ---- */

static bool
is_sparse(const om_op_context *c)
{
	return om_attr_is(c->op, "map_form", "SPARSE");
}

static om_status
cast_infer(om_op_context *c)
{
	static const struct { const char *name; om_dtype type; } to[] = {
		{"TO_FLOAT", OM_FLOAT32}, {"TO_STRING", OM_STRING}, {"TO_INT64", OM_INT64},
	};

	OM_TRY(want_map(c));
	if (c->op->in[0]->type.elem != OM_INT64)
		return om_op_fail(c->session, OM_SHAPE, c->op, "the keys of the map must be int64");
	if (c->in[0].type != OM_FLOAT32 && c->in[0].type != OM_STRING)
		return om_no_kernel(c, c->in[0].type);
	for (size_t k = 0; k < sizeof to / sizeof to[0]; k++)
		if (om_attr_is(c->op, "cast_to", to[k].name))
			c->out[0].type = to[k].type;
	if (c->out[0].type == OM_UNDEFINED)
		return om_op_fail(c->session, OM_INVALID, c->op, "unknown cast_to");
	if (is_sparse(c) && om_attr_int(c->op, "max_map") < 0)
		return om_op_fail(c->session, OM_INVALID, c->op, "max_map is negative");
	c->out[0].shape = row_shape(is_sparse(c) ? om_attr_int(c->op, "max_map") : OM_DIM_UNKNOWN);
	return OM_OK;
}

static om_status
parse(const om_op_context *c, om_string s, float *x)
{
	char text[64], *end = text;

	if (s.size > 0 && s.size < sizeof text) {
		memcpy(text, s.data, s.size);
		text[s.size] = '\0';
		*x = strtof(text, &end);
	}
	if (end == text)
		return om_op_fail(c->session, OM_RUN, c->op,
			"\"%.*s\" is not a number", (int)(s.size < 64 ? s.size : 64),
			s.size ? s.data : "");
	return OM_OK;
}

/* Write value `i` of the map as element `at` of the output. */
static om_status
cast_value(om_op_context *c, const om_tensor *value, size_t i, int64_t at)
{
	float x = 0;

	if (value->type == OM_FLOAT32)
		x = ((const float *)value->data)[i];
	else if (c->out[0].type != OM_STRING)
		OM_TRY(parse(c, ((const om_string *)value->data)[i], &x));
	switch (c->out[0].type) {
	case OM_FLOAT32: ((float *)c->out[0].data)[at] = x; break;
	case OM_INT64: ((int64_t *)c->out[0].data)[at] = OM_SATURATE(int64_t, x); break;
	default:
		if (value->type == OM_STRING) {
			((om_string *)c->out[0].data)[at] = ((const om_string *)value->data)[i];
		} else {
			char *text = om_printf(c->keep, "%f", (double)x);
			((om_string *)c->out[0].data)[at] = (om_string){text, strlen(text)};
		}
	}
	return OM_OK;
}

/* The rank of a key: the number of smaller keys, and of equal keys before it. */
static int64_t
rank_of(const om_container *map, size_t i)
{
	const int64_t *key = map->key.data;
	int64_t n = 0;

	for (size_t k = 0; k < map->n; k++)
		n += key[k] < key[i] || (key[k] == key[i] && k < i);
	return n;
}

struct cast {
	bool is_sparse;
	int64_t max_map;
};

static const om_attr_field cast_fields[] = {OM_FIELD(struct cast, INT, max_map), {0}};

static om_status
cast_prepare(om_op_context *c, void **state)
{
	((struct cast *)*state)->is_sparse = is_sparse(c);
	return OM_OK;
}

static om_status
cast_cpu(om_op_context *c)
{
	const struct cast *s = c->state;
	const om_container *map = om_in_container(c, 0);
	const int64_t n = s->is_sparse ? s->max_map : (int64_t)map->n;
	const om_shape shape = row_shape(n);
	size_t size;

	OM_TRY(c->alloc(c, 0, &shape));
	OM_TRY(om_elem_bytes(c, c->out[0].type, &size));
	if (c->out[0].type == OM_STRING)  /* as in ONNX Runtime; the standard does not specify it */
		om_fill(c->out[0].data, n, size, &(om_string){"0.f", 3});
	else if (n)
		memset(c->out[0].data, 0, (size_t)n * size);
	for (size_t i = 0; i < map->n; i++) {
		const int64_t key = ((const int64_t *)map->key.data)[i];
		if (key < 0)
			return om_op_fail(c->session, OM_RUN, c->op, "a key is negative");
		const int64_t at = s->is_sparse ? key : rank_of(map, i);
		if (at < n)
			OM_TRY(cast_value(c, &map->value, i, at));
	}
	return OM_OK;
}

/* ---- The table. ---- */

static const om_attr_spec zip_attrs[] = {
	{"classlabels_int64s", OM_ATTR_INTS},
	{"classlabels_strings", OM_ATTR_STRINGS},
	{0}
};

static const om_attr_spec dict_attrs[] = {
	{"int64_vocabulary", OM_ATTR_INTS},
	{"string_vocabulary", OM_ATTR_STRINGS},
	{0}
};

static const om_attr_spec cast_attrs[] = {
	{"cast_to", OM_ATTR_STRING, .s = "TO_FLOAT"},
	{"map_form", OM_ATTR_STRING, .s = "DENSE"},
	{"max_map", OM_ATTR_INT, .i = 1},
	{0}
};

#define ML .domain = "ai.onnx.ml", .since = 1, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1

const om_opdef om_ops_ml_map[] = {
	{ML, .name = "ZipMap", .brief = "map from labels to scores, one for each row", .flags = OM_NON_TENSOR,
	 .attrs = zip_attrs, .infer = zip_infer, .cpu = zip_cpu},
	{ML, .name = "DictVectorizer", .brief = "values of a map at the indices given by its keys",
	 .flags = OM_NON_TENSOR, .attrs = dict_attrs, .infer = dict_infer, .cpu = dict_cpu},
	{ML, .name = "CastMap", .brief = "values of a map in the order of a vocabulary",
	 .flags = OM_NON_TENSOR | OM_DATA_DEPENDENT_SHAPE, .attrs = cast_attrs, .infer = cast_infer, .cpu = cast_cpu},
	{0}
};

#undef ML
#define ML(type) .domain = "ai.onnx.ml", .state_bytes = sizeof(type)

const om_kernel om_kernels_ml_map[] = {
	{ML(om_labels), .name = "ZipMap", .prepare = zip_prepare, .run = zip_cpu},
	{ML(om_labels), .name = "DictVectorizer", .prepare = dict_prepare, .run = dict_cpu},
	{ML(struct cast), .name = "CastMap", .fields = cast_fields, .prepare = cast_prepare, .run = cast_cpu},
	{0}
};
