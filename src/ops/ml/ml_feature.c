/* SPDX-License-Identifier: Apache-2.0 */
/* Feature preprocessing of ai.onnx.ml: scaling, imputation, encoding. */
#include <config.h>

#include <math.h>

#include "opdef/columns.h"
#include "base/shape.h"
#include "ir/query.h"
#include "ops/family.h"
#include "opdef/slice.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "ops/ml/ml_post_transform.h"

/* The last dim; 1 for a scalar. */
static int64_t
columns(const om_shape *s)
{
	return s->rank > 0 ? s->dim[s->rank - 1] : 1;
}

static om_status
float_infer(om_op_context *c)
{
	OM_TRY(om_check_features(c, 0));
	OM_TRY(om_infer_same(c));
	c->out[0].type = OM_FLOAT32;
	return OM_OK;
}

/* Each element is read before it is written. */
static bool
float_reuse(const om_op_context *c, uint32_t out, uint32_t in)
{
	return out == 0 && in == 0 && c->in[0].type == OM_FLOAT32;
}

/* ---- Scaler. ---- */

/* Scale and offset: one for all features, or one per feature. */
struct scaler {
	om_floats scale, offset;
};

static const om_attr_field scaler_fields[] = {
	OM_FIELD(struct scaler, FLOATS, scale),
	OM_FIELD(struct scaler, FLOATS, offset),
	{0}
};

static om_status
scaler_prepare(om_op_context *c, void **state)
{
	const struct scaler *s = *state;
	const int64_t each = columns(&c->in[0].shape);

	if ((s->scale.n == 1 || s->scale.n == (size_t)each) && (s->offset.n == 1 || s->offset.n == (size_t)each))
		return OM_OK;
	return om_op_fail(c->session, OM_SHAPE, c->op, "has %zu scales and %zu offsets for %lld features", s->scale.n,
		s->offset.n, (long long)each);
}

static om_status
scaler_cpu(om_op_context *c)
{
	const om_floats scale = ((const struct scaler *)c->state)->scale, offset = ((const struct scaler *)c->state)->offset;
	const int64_t n = om_shape_count(&c->in[0].shape), each = columns(&c->in[0].shape);

	for (int64_t k = 0; k < n; k++) {
		const size_t at = (size_t)(k % each);
		((float *)c->out[0].data)[k] = (float)((om_feature(&c->in[0], k) - offset.v[offset.n == 1 ? 0 : at])
			* scale.v[scale.n == 1 ? 0 : at]);
	}
	return OM_OK;
}

/* ---- Normalizer. ---- */

struct norm {
	bool is_largest, is_squares;  /* neither: the sum of absolute values */
};

static om_status
norm_prepare(om_op_context *c, void **state)
{
	struct norm *s = *state;

	s->is_largest = om_attr_is(c->op, "norm", "MAX");
	s->is_squares = om_attr_is(c->op, "norm", "L2");
	if (s->is_largest || s->is_squares || om_attr_is(c->op, "norm", "L1"))
		return OM_OK;
	return om_op_fail(c->session, OM_INVALID, c->op, "norm must be MAX, L1 or L2");
}

static double
norm_of(const om_op_context *c, int64_t at, int64_t n)
{
	const struct norm *s = c->state;
	double sum = 0, most = -INFINITY;

	for (int64_t k = 0; k < n; k++) {
		const double x = om_feature(&c->in[0], at + k);
		most = x > most ? x : most;  /* signed, as in the standard */
		sum += s->is_squares ? x * x : fabs(x);
	}
	return s->is_largest ? most : s->is_squares ? sqrt(sum) : sum;
}

static om_status
norm_cpu(om_op_context *c)
{
	const om_shape *s = &c->in[0].shape;
	const int64_t n = columns(s), rows = n ? om_shape_count(s) / n : 0;

	for (int64_t row = 0; row < rows; row++) {
		const double norm = norm_of(c, row * n, n);
		for (int64_t k = 0; k < n; k++) {
			const double x = om_feature(&c->in[0], row * n + k);
			((float *)c->out[0].data)[row * n + k] = (float)(norm != 0 ? x / norm : x);
		}
	}
	return OM_OK;
}

/* ---- Imputer. ---- */

struct imputer {
	om_floats imputed_value_floats;
	om_ints imputed_value_int64s;
	float replaced_value_float;
	int64_t replaced_value_int64;
};

static const om_attr_field impute_fields[] = {
	OM_FIELD(struct imputer, FLOATS, imputed_value_floats),
	OM_FIELD(struct imputer, INTS, imputed_value_int64s),
	OM_FIELD(struct imputer, FLOAT, replaced_value_float),
	OM_FIELD(struct imputer, INT, replaced_value_int64),
	{0}
};

static om_status
impute_prepare(om_op_context *c, void **state)
{
	const struct imputer *s = *state;
	const bool is_float = c->in[0].type == OM_FLOAT32 || c->in[0].type == OM_FLOAT64;
	const size_t n = is_float ? s->imputed_value_floats.n : s->imputed_value_int64s.n;

	if (n == 1 || n == (size_t)columns(&c->in[0].shape) || om_shape_count(&c->in[0].shape) == 0)
		return OM_OK;
	return om_op_fail(c->session, OM_SHAPE, c->op, "has %zu values for %lld features", n,
		(long long)columns(&c->in[0].shape));
}

OM_INLINE om_status
impute_floats(om_op_context *c, om_dtype t)
{
	const om_floats with = ((const struct imputer *)c->state)->imputed_value_floats;
	const double what = ((const struct imputer *)c->state)->replaced_value_float;
	const int64_t each = columns(&c->in[0].shape);

	for (int64_t k = 0; k < om_shape_count(&c->in[0].shape); k++) {
		const double x = om_get(t, c->in[0].data, k);
		const bool is_it = isnan(what) ? isnan(x) : x == what;
		om_put(t, c->out[0].data, k, is_it ? with.v[with.n == 1 ? 0 : k % each] : x);
	}
	return OM_OK;
}

static om_status
impute_ints(om_op_context *c)
{
	const om_ints with = ((const struct imputer *)c->state)->imputed_value_int64s;
	const int64_t what = ((const struct imputer *)c->state)->replaced_value_int64;
	const int64_t each = columns(&c->in[0].shape);
	const bool wide = c->in[0].type == OM_INT64;

	for (int64_t k = 0; k < om_shape_count(&c->in[0].shape); k++) {
		int64_t x = wide ? ((const int64_t *)c->in[0].data)[k] : ((const int32_t *)c->in[0].data)[k];
		x = x == what ? with.v[with.n == 1 ? 0 : k % each] : x;
		if (wide)
			((int64_t *)c->out[0].data)[k] = x;
		else
			((int32_t *)c->out[0].data)[k] = (int32_t)x;
	}
	return OM_OK;
}

static om_status
impute_cpu(om_op_context *c)
{
	if (om_shape_count(&c->in[0].shape) == 0)
		return OM_OK;
	switch (c->in[0].type) {
	case OM_FLOAT32: return impute_floats(c, OM_FLOAT32);
	case OM_FLOAT64: return impute_floats(c, OM_FLOAT64);
	case OM_INT64: case OM_INT32: return impute_ints(c);
	default: return om_no_kernel(c, c->in[0].type);
	}
}

/* ---- OneHotEncoder. ---- */

static om_status
hot_infer(om_op_context *c)
{
	om_shape *y = &c->out[0].shape;
	om_labels l;

	OM_TRY(om_labels_of(c, "cats_int64s", "cats_strings", &l));
	if (c->in[0].type != OM_UNDEFINED && (c->in[0].type == OM_STRING) != (l.type == OM_STRING))
		return om_wrong(c, "the categories and the input differ in type");
	c->out[0].type = OM_FLOAT32;
	if (c->in[0].shape.rank < 0)
		return OM_OK;
	if (c->in[0].shape.rank == OM_MAX_RANK)
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "the output has too many dims");
	*y = c->in[0].shape;
	y->dim[y->rank] = l.n;
	y->sym[y->rank++] = NULL;
	return OM_OK;
}

static bool
is_category(const om_labels *l, int64_t k, const om_tensor *x, int64_t i)
{
	if (l->type != OM_STRING)
		return l->i[k] == (x->type == OM_INT64 ? ((const int64_t *)x->data)[i] : OM_SATURATE(int64_t, om_feature(x, i)));
	const om_string *a = &l->s[k], *b = (const om_string *)x->data + i;
	return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

struct hot {
	om_labels labels;
	int64_t zeros;
};

static const om_attr_field hot_fields[] = {OM_FIELD(struct hot, INT, zeros), {0}};

static om_status
hot_prepare(om_op_context *c, void **state)
{
	struct hot *s = *state;

	OM_TRY(om_labels_of(c, "cats_int64s", "cats_strings", &s->labels));
	return s->labels.type == OM_STRING ? OM_OK : om_check_features(c, 0);
}

static om_status
hot_cpu(om_op_context *c)
{
	const struct hot *s = c->state;
	const om_labels l = s->labels;
	float *y = c->out[0].data;

	for (int64_t i = 0; i < om_shape_count(&c->in[0].shape); i++) {
		bool found = false;
		for (int64_t k = 0; k < l.n; k++) {
			const bool is_it = is_category(&l, k, &c->in[0], i);
			found |= is_it;
			*y++ = is_it;
		}
		if (!found && !s->zeros)
			return om_op_fail(c->session, OM_RUN, c->op, "element %lld is in no category", (long long)i);
	}
	return OM_OK;
}

/* The categories are a new last axis. */
static bool
hot_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	return s->out[out].axis < c->in[0].shape.rank && om_slice_first(c, out, s);
}

/* ---- FeatureVectorizer. ---- */

static om_status
join_infer(om_op_context *c)
{
	size_t n;
	const int64_t *dims = om_attr_ints(c->op, "inputdimensions", &n);
	int64_t rows = OM_DIM_UNKNOWN, sum = 0;

	if (n && n != c->op->nin)
		return om_op_fail(c->session, OM_INVALID, c->op,
			"inputdimensions has %zu elements for %u inputs", n, c->op->nin);
	for (uint32_t k = 0; k < c->op->nin; k++) {
		int64_t r, f;
		if (!om_has_in(c, k))
			return om_op_fail(c->session, OM_INVALID, c->op, "input %u is omitted", k);
		OM_TRY(om_check_features(c, k));
		OM_TRY(om_rows(c, k, &r, &f));
		if (r >= 0 && rows >= 0 && r != rows)
			return om_wrong(c, "the inputs differ in their number of rows");
		rows = r >= 0 ? r : rows;
		const int64_t width = n ? dims[k] : f;
		if (width >= 0 && sum >= 0 && __builtin_add_overflow(sum, width, &sum))
			return om_wrong(c, "the size of the output overflows");
		sum = width < 0 ? OM_DIM_UNKNOWN : sum;
	}
	c->out[0].type = OM_FLOAT32;
	c->out[0].shape = om_shape_open(2);
	c->out[0].shape.dim[0] = rows;
	c->out[0].shape.dim[1] = sum;
	return OM_OK;
}

struct join {
	om_ints inputdimensions;
};

static const om_attr_field join_fields[] = {OM_FIELD(struct join, INTS, inputdimensions), {0}};

/* If an input is wider than declared, its first columns are taken; if it is narrower, the rest is zero. */
static om_status
join_cpu(om_op_context *c)
{
	const int64_t rows = c->out[0].shape.dim[0], all = c->out[0].shape.dim[1];
	const om_ints dims = ((const struct join *)c->state)->inputdimensions;
	float *y = c->out[0].data;
	int64_t at = 0;

	for (uint32_t k = 0; k < c->op->nin; k++) {
		const int64_t have = columns(&c->in[k].shape), width = dims.n ? dims.v[k] : have;
		for (int64_t row = 0; row < rows; row++)
			for (int64_t i = 0; i < width; i++)
				y[row * all + at + i] = i < have ? (float)om_feature(&c->in[k], row * have + i) : 0;
		at += width;
	}
	return OM_OK;
}

/* ---- The table. ---- */

static const om_attr_spec scaler_attrs[] = {{"offset", OM_ATTR_FLOATS}, {"scale", OM_ATTR_FLOATS}, {0}};
static const om_attr_spec norm_attrs[] = {{"norm", OM_ATTR_STRING, .s = "MAX"}, {0}};
static const om_attr_spec join_attrs[] = {{"inputdimensions", OM_ATTR_INTS}, {0}};

static const om_attr_spec impute_attrs[] = {
	{"imputed_value_floats", OM_ATTR_FLOATS},
	{"imputed_value_int64s", OM_ATTR_INTS},
	{"replaced_value_float", OM_ATTR_FLOAT},
	{"replaced_value_int64", OM_ATTR_INT},
	{0}
};

static const om_attr_spec hot_attrs[] = {
	{"cats_int64s", OM_ATTR_INTS},
	{"cats_strings", OM_ATTR_STRINGS},
	{"zeros", OM_ATTR_INT, .i = 1},
	{0}
};

#define ML .domain = "ai.onnx.ml", .since = 1, .min_in = 1, .min_out = 1, .max_out = 1

/* Rows of all matrices. */
static bool
join_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	for (uint32_t k = 0; k < c->op->nin; k++) {
		s->in[k] = s->out[out];
		if (c->in[k].shape.rank != 2 || s->out[out].axis != 0)
			return false;
	}
	return true;
}

const om_opdef om_ops_ml_feature[] = {
	{ML, .name = "Scaler", .brief =
		"features with offset and scale applied", .max_in = 1, .attrs = scaler_attrs,
	 .infer = float_infer, .slice = om_slice_rows, .inplace = float_reuse, .cpu = scaler_cpu,
	 .input_types = {OF_INDICES | OF_WIDE_FLOATS}},
	{ML, .name = "Normalizer", .brief = "rows of features, divided by their norm", .max_in = 1, .attrs = norm_attrs,
	 .infer = float_infer, .slice = om_slice_rows, .inplace = float_reuse, .cpu = norm_cpu,
	 .input_types = {OF_INDICES | OF_WIDE_FLOATS}},
	{ML, .name = "Imputer", .brief = "replaces one value by others", .max_in = 1, .attrs = impute_attrs,
	 .infer = om_infer_same, .slice = om_slice_rows, .inplace = om_inplace_first, .cpu = impute_cpu,
	 .input_types = {OF_INDICES | OF_WIDE_FLOATS}},
	{ML, .name = "OneHotEncoder", .brief = "one-hot encoding of categories", .max_in = 1, .attrs = hot_attrs,
	 .infer = hot_infer, .slice = hot_slice, .cpu = hot_cpu,
	 .input_types = {OF_INDICES | OF_WIDE_FLOATS | OF(STRING)}},
	{ML, .name = "FeatureVectorizer", .brief =
		"concatenation of the features of all inputs", .max_in = OM_VARIADIC,
	 .attrs = join_attrs, .infer = join_infer, .slice = join_slice, .cpu = join_cpu,
	 .input_types = {OF_INDICES | OF_WIDE_FLOATS}},
	{0}
};

#undef ML
#define ML(type) .domain = "ai.onnx.ml", .state_bytes = sizeof(struct type)

const om_kernel om_kernels_ml_feature[] = {
	{ML(scaler), .name = "Scaler", .fields = scaler_fields, .prepare = scaler_prepare, .run = scaler_cpu},
	{ML(norm), .name = "Normalizer", .prepare = norm_prepare, .run = norm_cpu},
	{ML(imputer), .name = "Imputer", .fields = impute_fields, .prepare = impute_prepare, .run = impute_cpu},
	{ML(hot), .name = "OneHotEncoder", .fields = hot_fields, .prepare = hot_prepare, .run = hot_cpu},
	{ML(join), .name = "FeatureVectorizer", .fields = join_fields, .run = join_cpu},
	{0}
};
