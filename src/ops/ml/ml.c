/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of the domain ai.onnx.ml. */
#include <config.h>

#include "opdef/columns.h"
#include "base/arena_internal.h"
#include "base/shape.h"
#include "ir/query.h"
#include "ops/family.h"
#include "opdef/slice.h"
#include "ops/tensor/index.h"
#include "opdef/numbers.h"
#include "ops/ml/ml_post_transform.h"

/* ---- LabelEncoder. ---- */

/* Elements of an attribute of any kind. */
struct list {
	om_dtype type;
	int64_t n;
	const void *data;
};

static bool
list_of(const om_op_context *c, const char *prefix, const char *const names[], struct list *l)
{
	for (int k = 0; names[k]; k++) {
		char name[64];
		snprintf(name, sizeof name, "%s%s", prefix, names[k]);
		const om_attr *a = om_attr_find(c->op, name);
		if (!a)
			continue;
		switch (a->kind) {
		case OM_ATTR_TENSOR: *l = (struct list){a->t->type, om_shape_count(&a->t->shape), a->t->data}; break;
		case OM_ATTR_FLOAT: case OM_ATTR_FLOATS: *l = (struct list){OM_FLOAT32, (int64_t)a->n, a->f}; break;
		case OM_ATTR_STRING: case OM_ATTR_STRINGS: *l = (struct list){OM_STRING, (int64_t)a->n, a->s}; break;
		default: *l = (struct list){OM_INT64, (int64_t)a->n, a->i};
		}
		if (a->kind == OM_ATTR_TENSOR && a->t->splat && l->n > 1)
			return false;
		if (l->n > 0)
			return true;
	}
	return false;
}

struct labels {
	struct list key, value;
	const void *missing;     /* one element of the value's type */
};

static om_status
labels_of(const om_op_context *c, struct labels *l)
{
	static const char *const lists[] = {"tensor", "strings", "int64s", "floats", NULL};
	static const char *const one[] = {"tensor", NULL};
	static const float zero = -0.0f;
	static const double wide_zero = -0.0;
	static const int64_t minus_one = -1;   /* in the first bytes, too */
	static const om_string unused = {"_Unused", 7};
	const char *names[] = {NULL, NULL};
	struct list d;

	if (!list_of(c, "keys_", lists, &l->key) || !list_of(c, "values_", lists, &l->value))
		return om_wrong(c, "has no keys or no values");
	if (l->key.n != l->value.n)
		return om_wrong(c, "requires one value for each key");
	switch (l->value.type) {
	case OM_STRING: names[0] = "string"; l->missing = &unused; break;
	case OM_INT64: names[0] = "int64"; l->missing = &minus_one; break;
	case OM_FLOAT32: names[0] = "float"; l->missing = &zero; break;
	case OM_INT32: case OM_INT16: l->missing = &minus_one; break;
	case OM_FLOAT64: l->missing = &wide_zero; break;
	default: l->missing = NULL;
	}
	if ((list_of(c, "default_", one, &d) || (names[0] && list_of(c, "default_", names, &d)))
	    && d.type == l->value.type)
		l->missing = d.data;
	if (!l->missing)
		l->missing = om_alloc(c->mem, 16);  /* zero */
	return OM_OK;
}

static om_status
label_infer(om_op_context *c)
{
	struct labels l;

	OM_TRY(labels_of(c, &l));
	if (c->in[0].type != OM_UNDEFINED && c->in[0].type != l.key.type)
		return om_op_fail(c->session, OM_SHAPE, c->op, "the keys are %s, but the input is %s",
			om_dtype_text(l.key.type), om_dtype_text(c->in[0].type));
	c->out[0].type = l.value.type;
	c->out[0].shape = c->in[0].shape;
	return OM_OK;
}

/* NaN is matched like any other key. */
static bool
is_key(om_dtype t, const char *a, const char *b, size_t size)
{
	if (t == OM_STRING) {
		const om_string *x = (const om_string *)a, *y = (const om_string *)b;
		return x->size == y->size && (x->size == 0 || memcmp(x->data, y->data, x->size) == 0);
	}
	if (t == OM_FLOAT32 || t == OM_FLOAT64) {
		const double x = om_get(t, a, 0), y = om_get(t, b, 0);
		return x == y || (x != x && y != y);
	}
	return memcmp(a, b, size) == 0;
}

/* Of duplicate keys, the last one counts. */
static om_status
label_cpu(om_op_context *c)
{
	const char *x = c->in[0].data;
	const struct labels l = *(const struct labels *)c->state;
	size_t from = 0, to = 0;

	OM_TRY(om_elem_bytes(c, l.key.type, &from));
	OM_TRY(om_elem_bytes(c, l.value.type, &to));
	for (int64_t i = 0; i < om_shape_count(&c->in[0].shape); i++) {
		const char *value = l.missing;
		for (int64_t k = l.key.n - 1; k >= 0; k--)
			if (is_key(l.key.type, x + (size_t)i * from, (const char *)l.key.data + (size_t)k * from, from)) {
				value = (const char *)l.value.data + (size_t)k * to;
				break;
			}
		memcpy((char *)c->out[0].data + (size_t)i * to, value, to);
	}
	return OM_OK;
}

static om_status
label_prepare(om_op_context *c, void **state)
{
	return labels_of(c, *state);
}

/* ---- Strings to numbers or back: CategoryMapper, LabelEncoder of version 1. ---- */

/* If only strings are given, each maps to its index. */
static om_status
pairs_of(const om_op_context *c, const char *texts, const char *ints, struct labels *l)
{
	size_t ntext, nint = 0;
	const om_string *text = om_attr_texts(c->op, texts, &ntext);
	const int64_t *number = ints ? om_attr_ints(c->op, ints, &nint) : NULL;

	if (ints && nint != ntext)
		return om_wrong(c, "requires one integer for each string");
	if (!ints) {
		int64_t *places = OM_NEWN(c->mem, int64_t, ntext + 1);
		for (size_t k = 0; k < ntext; k++)
			places[k] = (int64_t)k;
		number = places;
	}
	l->key = (struct list){OM_STRING, (int64_t)ntext, text};
	l->value = (struct list){OM_INT64, (int64_t)ntext, number};
	if (c->in[0].type != OM_INT64) {
		int64_t *missing = OM_NEW(c->mem, int64_t);
		*missing = om_attr_int(c->op, "default_int64");
		l->missing = missing;
		return OM_OK;
	}
	om_string *missing = OM_NEW(c->mem, om_string);
	*missing = om_attr_string(c->op, "default_string");
	*l = (struct labels){.key = l->value, .value = l->key, .missing = missing};
	return OM_OK;
}

static om_status
pairs_infer(om_op_context *c)
{
	if (c->in[0].type != OM_INT64 && c->in[0].type != OM_STRING && c->in[0].type != OM_UNDEFINED)
		return om_no_kernel(c, c->in[0].type);
	OM_TRY(om_infer_same(c));
	if (c->in[0].type != OM_UNDEFINED)
		c->out[0].type = c->in[0].type == OM_INT64 ? OM_STRING : OM_INT64;
	return OM_OK;
}

static om_status
category_prepare(om_op_context *c, void **state)
{
	return pairs_of(c, "cats_strings", "cats_int64s", *state);
}

static om_status
classes_prepare(om_op_context *c, void **state)
{
	return pairs_of(c, "classes_strings", NULL, *state);
}

/* ---- ArrayFeatureExtractor. ---- */

static om_status
extract_infer(om_op_context *c)
{
	const om_shape *x = &c->in[0].shape, *i = &c->in[1].shape;
	om_shape *y = &c->out[0].shape;

	c->out[0].type = c->in[0].type;
	if (x->rank < 0)
		return OM_OK;
	if (x->rank == 0)
		return om_wrong(c, "the input must not be a scalar");
	*y = *x;
	if (x->rank == 1) {
		y->rank = 2;
		y->dim[0] = 1;
		y->sym[0] = NULL;
	}
	y->dim[y->rank - 1] = om_shape_is_known(i) ? om_shape_count(i) : OM_DIM_UNKNOWN;
	y->sym[y->rank - 1] = NULL;
	return OM_OK;
}

static om_status
extract_cpu(om_op_context *c)
{
	const om_shape *x = &c->in[0].shape;
	const int64_t n = x->dim[x->rank - 1], picked = om_shape_count(&c->in[1].shape);
	size_t size = 0;

	OM_TRY(om_elem_bytes(c, c->in[0].type, &size));
	OM_TRY(om_index_type(c, 1));
	for (int64_t row = 0; row < om_shape_span(x, 0, x->rank - 1); row++)
		for (int64_t k = 0; k < picked; k++) {
			int64_t i;
			OM_TRY(om_index_read(c, 1, k, n, &i));
			memcpy((char *)c->out[0].data + (size_t)(row * picked + k) * size,
				(const char *)c->in[0].data + (size_t)(row * n + i) * size, size);
		}
	return OM_OK;
}

/* ---- Binarizer. ---- */

struct binary {
	float threshold;
};

static const om_attr_field binary_fields[] = {OM_FIELD(struct binary, FLOAT, threshold), {0}};

static om_status
binary_cpu(om_op_context *c)
{
	const om_tensor *x = &c->in[0];
	const double limit = ((const struct binary *)c->state)->threshold;
	size_t size = 0;

	OM_TRY(om_elem_bytes(c, x->type, &size));
	for (int64_t k = 0; k < om_shape_count(&x->shape); k++) {
		char *to = (char *)c->out[0].data + (size_t)k * size;
		double v;
		if (!om_number(x->type, (const char *)x->data + (size_t)k * size, &v))
			return om_no_kernel(c, x->type);
		const int64_t one = v > limit;
		switch (x->type) {
		case OM_FLOAT32: *(float *)to = (float)one; break;
		case OM_FLOAT64: *(double *)to = (double)one; break;
		case OM_INT64: *(int64_t *)to = one; break;
		case OM_INT32: *(int32_t *)to = (int32_t)one; break;
		default: return om_no_kernel(c, x->type);
		}
	}
	return OM_OK;
}

/* ---- The table. ---- */

static const om_attr_spec label_attrs[] = {
	{"default_float", OM_ATTR_FLOAT, .f = -0.0f},
	{"default_int64", OM_ATTR_INT, .i = -1},
	{"default_string", OM_ATTR_STRING, .s = "_Unused"},
	{"default_tensor", OM_ATTR_TENSOR},
	{"keys_floats", OM_ATTR_FLOATS},
	{"keys_int64s", OM_ATTR_INTS},
	{"keys_strings", OM_ATTR_STRINGS},
	{"keys_tensor", OM_ATTR_TENSOR},
	{"values_floats", OM_ATTR_FLOATS},
	{"values_int64s", OM_ATTR_INTS},
	{"values_strings", OM_ATTR_STRINGS},
	{"values_tensor", OM_ATTR_TENSOR},
	{0}
};

#define DEFAULTS                                                               \
	{"default_int64", OM_ATTR_INT, .i = -1},                               \
	{"default_string", OM_ATTR_STRING, .s = "_Unused"}

static const om_attr_spec classes_attrs[] = {DEFAULTS, {"classes_strings", OM_ATTR_STRINGS}, {0}};
static const om_attr_spec category_attrs[] = {
	DEFAULTS,
	{"cats_int64s", OM_ATTR_INTS},
	{"cats_strings", OM_ATTR_STRINGS},
	{0}
};

static const om_attr_spec binary_attrs[] = {{"threshold", OM_ATTR_FLOAT}, {0}};

#define ML .domain = "ai.onnx.ml", .min_out = 1, .max_out = 1

const om_opdef om_ops_ml[] = {
	{ML, .name = "CategoryMapper", .brief =
		"maps strings to integers, or integers to strings", .since = 1, .min_in = 1,
	 .max_in = 1, .attrs = category_attrs, .infer = pairs_infer, .slice = om_slice_first, .cpu = label_cpu,
	 .input_types = {OF(INT64) | OF(STRING)}},
	{ML, .name = "LabelEncoder", .brief =
		"maps strings to indices, or indices to strings", .since = 1, .until = 1,
	 .min_in = 1, .max_in = 1, .attrs = classes_attrs, .infer = pairs_infer, .slice = om_slice_first, .cpu = label_cpu,
	 .input_types = {OF_INDICES | OF_WIDE_FLOATS | OF(INT16) | OF(STRING)}},
	{ML, .name = "LabelEncoder", .brief = "maps keys to values", .since = 2, .min_in = 1, .max_in = 1,
	 .attrs = label_attrs, .infer = label_infer, .slice = om_slice_first, .cpu = label_cpu,
	 .input_types = {OF_INDICES | OF_WIDE_FLOATS | OF(INT16) | OF(STRING)}},
	{ML, .name = "ArrayFeatureExtractor", .brief = "selected columns", .since = 1, .min_in = 2,
	 .max_in = 2, .infer = extract_infer, .slice = om_slice_rows, .cpu = extract_cpu,
	 .input_types = {OF_INDICES | OF_WIDE_FLOATS | OF(STRING), OF(INT64)}},
	{ML, .name = "Binarizer", .brief = "1 above a threshold, 0 otherwise", .since = 1, .min_in = 1,
	 .max_in = 1, .flags = OM_POINTWISE, .attrs = binary_attrs, .infer = om_infer_same, .inplace = om_inplace_first,
	 .cpu = binary_cpu,
	 .input_types = {OF_INDICES | OF_WIDE_FLOATS}},
	{0}
};

#undef ML
#define ML .domain = "ai.onnx.ml"
#define LABELS ML, .state_bytes = sizeof(struct labels), .run = label_cpu

const om_kernel om_kernels_ml[] = {
	{LABELS, .name = "CategoryMapper", .prepare = category_prepare},
	{LABELS, .name = "LabelEncoder", .until = 1, .prepare = classes_prepare},
	{LABELS, .name = "LabelEncoder", .since = 2, .prepare = label_prepare},
	{ML, .name = "Binarizer", .fields = binary_fields, .state_bytes = sizeof(struct binary), .run = binary_cpu},
	{0}
};
