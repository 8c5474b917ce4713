/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that create tensors from shapes, attributes and a few numbers. */
#include <config.h>

#include <math.h>

#include "base/rng.h"
#include "base/half.h"
#include "base/shape.h"
#include "ir/query.h"
#include "opdef/op_context.h"
#include "base/strided_copy.h"
#include "opdef/columns.h"
#include "ops/family.h"
#include "opdef/numbers.h"

/* ---- Constant. ---- */

static const char *const constant_forms[] = {
	"value", "value_float", "value_floats", "value_int", "value_ints", "value_string",
	"value_strings", "sparse_value", NULL,
};

static const om_attr *
constant_attr(const om_op *op)
{
	for (const char *const *name = constant_forms; *name; name++) {
		const om_attr *a = om_attr_find(op, *name);
		if (a)
			return a;
	}
	return NULL;
}

/* The attribute as a tensor; its elements are not copied.  Sparse attributes were made dense on loading. */
static om_status
constant_tensor(const om_op_context *c, om_tensor *t)
{
	const om_attr *a = constant_attr(c->op);
	const int64_t n = a ? (int64_t)a->n : 0;
	static const om_dtype elem[] = {
		[OM_ATTR_FLOAT] = OM_FLOAT32, [OM_ATTR_FLOATS] = OM_FLOAT32, [OM_ATTR_INT] = OM_INT64,
		[OM_ATTR_INTS] = OM_INT64, [OM_ATTR_STRING] = OM_STRING, [OM_ATTR_STRINGS] = OM_STRING,
		[OM_ATTR_TYPES] = OM_UNDEFINED,
	};

	if (!a)
		return om_op_fail(c->session, OM_INVALID, c->op, "has no value");
	if ((a->kind == OM_ATTR_TENSOR || a->kind == OM_ATTR_SPARSE) && a->t) {
		*t = *a->t;
		return OM_OK;
	}
	if (elem[a->kind] == OM_UNDEFINED)
		return om_op_fail(c->session, OM_INVALID, c->op, "%s has the wrong attribute type", a->name);
	const bool list = a->kind == OM_ATTR_FLOATS || a->kind == OM_ATTR_INTS || a->kind == OM_ATTR_STRINGS;
	*t = (om_tensor){.type = elem[a->kind], .shape = om_shape_of(list, &n), .data = (void *)a->f};
	return OM_OK;
}

static om_status
constant_infer(om_op_context *c)
{
	om_tensor t;

	OM_TRY(constant_tensor(c, &t));
	c->out[0].type = t.type;
	c->out[0].shape = t.shape;
	return OM_OK;
}

struct constant {
	om_tensor value;
	uint64_t bytes;
};

static om_status
constant_prepare(om_op_context *c, void **state)
{
	struct constant *s = *state;

	OM_TRY(constant_tensor(c, &s->value));
	if (!om_tensor_bytes(s->value.type, &s->value.shape, &s->bytes))
		return om_op_fail(c->session, OM_INVALID, c->op, "the size of the output overflows");
	if (s->bytes && !s->value.data)
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "the elements are not known");
	return OM_OK;
}

/* In the fold the attribute itself is the data. */
static om_status
constant_cpu(om_op_context *c)
{
	const struct constant *s = c->state;
	const om_tensor t = s->value;

	if (c->out[0].splat) {
		if (t.data)
			c->out[0].data = t.data;
		c->out[0].splat = t.splat;
	} else if (t.splat) {
		om_fill_type(c->out[0].data, om_shape_count(&t.shape), t.type, t.data);
	} else if (s->bytes) {
		memcpy(c->out[0].data, t.data, s->bytes);
	}
	return OM_OK;
}

/* ---- ConstantOfShape. ---- */

static om_status
filled_shape(const om_op_context *c, om_shape *out)
{
	const om_symbolic_elem *dims;
	size_t n;

	*out = om_shape_open(om_list_length(&c->in[0]));
	if (!om_in_symbolic_elems(c, 0, &dims, &n))
		return OM_OK;
	if (n > OM_MAX_RANK)
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op,
			"the requested shape has %zu dims, too many", n);
	*out = om_shape_open((int64_t)n);
	for (size_t k = 0; k < n; k++)
		if (!om_dim_of_elem(&dims[k], out, (int)k) && dims[k].known)
			return om_op_fail(c->session, OM_SHAPE, c->op, "the requested shape has a negative dim");
	return OM_OK;
}

static om_status
filled_infer(om_op_context *c)
{
	const om_tensor *value = om_attr_tensor(c->op, "value");

	if (value && (!om_shape_is_known(&value->shape) || om_shape_count(&value->shape) != 1))
		return om_op_fail(c->session, OM_INVALID, c->op, "value must have one element");
	c->out[0].type = value ? value->type : OM_FLOAT32;
	return filled_shape(c, &c->out[0].shape);
}

struct filled {
	const om_tensor *value;   /* NULL: zeros */
};

static const om_attr_field filled_fields[] = {OM_FIELD(struct filled, TENSOR, value), {0}};

static om_status
filled_cpu(om_op_context *c)
{
	static const float zero = 0;
	const struct filled *s = c->state;
	const void *one = s->value ? s->value->data : &zero;

	if (!one)
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "the value is not known");
	om_fill_type(c->out[0].data, c->out[0].splat ? 1 : om_shape_count(&c->out[0].shape), c->out[0].type, one);
	return OM_OK;
}

/* ---- Shape, Size. ---- */

/* The dims from `start` to `end`, clamped to the rank. */
static void
shape_range(const om_op_context *c, int *start, int *end)
{
	const int rank = c->in[0].shape.rank;
	int64_t a = om_attr_int(c->op, "start");
	int64_t b = om_attr_has(c->op, "end") ? om_attr_int(c->op, "end") : rank;

	a += a < 0 ? rank : 0;
	b += b < 0 ? rank : 0;
	a = a < 0 ? 0 : a > rank ? rank : a;
	b = b < a ? a : b > rank ? rank : b;
	*start = (int)a;
	*end = (int)b;
}

static om_status
shape_infer(om_op_context *c)
{
	int start, end;

	c->out[0].type = OM_INT64;
	c->out[0].shape = om_shape_open(1);
	if (c->in[0].shape.rank < 0)
		return OM_OK;
	shape_range(c, &start, &end);
	c->out[0].shape.dim[0] = end - start;
	return OM_OK;
}

struct range {
	int start, end;           /* dims */
};

static om_status
shape_prepare(om_op_context *c, void **state)
{
	struct range *s = *state;

	shape_range(c, &s->start, &s->end);
	return OM_OK;
}

static om_status
shape_cpu(om_op_context *c)
{
	const struct range *s = c->state;
	int64_t *to = c->out[0].data;

	for (int k = s->start; k < s->end; k++)
		*to++ = c->in[0].shape.dim[k];
	return OM_OK;
}

static void
shape_elems(const om_op_context *c, om_symbolic_elem *e)
{
	int start, end;

	if (c->in[0].shape.rank < 0)
		return;
	shape_range(c, &start, &end);
	for (int d = start; d < end; d++)
		e[d - start] = om_elem_of_dim(&c->in[0].shape, d);
}

static om_status
size_infer(om_op_context *c)
{
	c->out[0].type = OM_INT64;
	c->out[0].shape = om_shape_of(0, NULL);
	return OM_OK;
}

static void
size_elems(const om_op_context *c, om_symbolic_elem *e)
{
	const om_shape *s = &c->in[0].shape;

	if (s->rank < 0 || !om_dim_product(s, 0, s->rank, &e->value, &e->sym))
		return;
	e->known = e->value >= 0;
	if (!e->known && !e->sym)
		e->sym = om_dim_product_text(c, s, 0, s->rank);
}

static om_status
size_cpu(om_op_context *c)
{
	int64_t n;
	const char *sym;

	if (!om_dim_product(&c->in[0].shape, 0, c->in[0].shape.rank, &n, &sym))
		return om_op_fail(c->session, OM_INVALID, c->op, "the number of elements overflows");
	*(int64_t *)c->out[0].data = n;
	return OM_OK;
}

/* ---- Range. ---- */

/* An integer input, read exactly: a double cannot represent all of them. */
static bool
int_in(const om_op_context *c, uint32_t k, int64_t *v)
{
	const om_tensor *t = &c->in[k];
	int64_t *known;
	size_t n;

	if (!t->data && om_in_ints(c, k, &known, &n) && n == 1) {  /* one of a list that inference knows in part */
		*v = *known;
		return true;
	}
	if (!t->data || !om_shape_is_known(&t->shape) || om_shape_count(&t->shape) != 1)
		return false;
	switch (t->type) {
	case OM_INT16: *v = *(const int16_t *)t->data; return true;
	case OM_INT32: *v = *(const int32_t *)t->data; return true;
	case OM_INT64: *v = *(const int64_t *)t->data; return true;
	default: return false;
	}
}

/* How many numbers from `start` on precede `limit`; false if there are too many. */
static bool
int_steps(int64_t start, int64_t limit, int64_t delta, int64_t *n)
{
	const bool up = delta > 0;
	const uint64_t span = up ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
	const uint64_t step = up ? (uint64_t)delta : -(uint64_t)delta;
	uint64_t count = 0;

	if (up ? limit > start : limit < start)
		count = (span - 1) / step + 1;
	*n = (int64_t)count;
	return count <= INT64_MAX;
}

static om_status
range_length(const om_op_context *c, int64_t *n)
{
	const om_dtype t = c->in[0].type;
	int64_t v[3];
	double f[3];
	bool fits = true, zero = false;

	*n = OM_DIM_UNKNOWN;
	if (om_dtype_is_integer(t)) {
		if (!int_in(c, 0, &v[0]) || !int_in(c, 1, &v[1]) || !int_in(c, 2, &v[2]))
			return OM_OK;
		zero = v[2] == 0;
		fits = zero || int_steps(v[0], v[1], v[2], n);
	} else {
		if (!om_in_scalar(c, 0, &f[0]) || !om_in_scalar(c, 1, &f[1]) || !om_in_scalar(c, 2, &f[2]))
			return OM_OK;
		const double span = t == OM_FLOAT32 ? (double)((float)f[1] - (float)f[0]) : f[1] - f[0];
		const double count = ceil(span / f[2]);
		zero = f[2] == 0;
		fits = zero || (count < 0x1p62 && count > -0x1p62);
		if (!zero && fits)
			*n = count > 0 ? (int64_t)count : 0;
	}
	if (zero || !fits)
		return om_op_fail(c->session, OM_SHAPE, c->op, zero ? "delta is 0" : "the range is infinite");
	return OM_OK;
}

/* As a dim of symbols, in steps of 1. */
static void
range_symbol(om_op_context *c)
{
	const om_symbolic_elem *from, *to;
	om_symbolic_elem length;
	int64_t delta;
	size_t n[2];

	if (int_in(c, 2, &delta) && delta == 1 && om_in_symbolic_elems(c, 0, &from, &n[0]) && om_in_symbolic_elems(c, 1, &to, &n[1])
	    && n[0] == 1 && n[1] == 1 && om_elem_between(c, from, to, &length))
		om_dim_of_elem(&length, &c->out[0].shape, 0);
}

static om_status
range_infer(om_op_context *c)
{
	c->out[0].type = c->in[0].type;
	c->out[0].shape = om_shape_open(1);
	for (uint32_t k = 1; k < 3; k++)
		if (c->in[k].type != c->in[0].type)
			return om_op_fail(c->session, OM_SHAPE, c->op, "the inputs differ in type");
	OM_TRY(range_length(c, &c->out[0].shape.dim[0]));
	if (c->out[0].shape.dim[0] < 0)
		range_symbol(c);
	return OM_OK;
}

static void
range_ints(const om_op_context *c, int64_t start, int64_t delta, int64_t n)
{
	for (int64_t k = 0; k < n; k++) {
		const int64_t v = (int64_t)((uint64_t)start + (uint64_t)k * (uint64_t)delta);
		switch (c->out[0].type) {
		case OM_INT16: ((int16_t *)c->out[0].data)[k] = (int16_t)v; break;
		case OM_INT32: ((int32_t *)c->out[0].data)[k] = (int32_t)v; break;
		default: ((int64_t *)c->out[0].data)[k] = v; break;
		}
	}
}

static om_status
range_floats(const om_op_context *c, double start, double delta, int64_t n)
{
	for (int64_t k = 0; k < n; k++)
		switch (c->out[0].type) {
		case OM_FLOAT32:
			((float *)c->out[0].data)[k] = (float)start + (float)k * (float)delta;
			break;
		case OM_FLOAT64:
			((double *)c->out[0].data)[k] = start + (double)k * delta;
			break;
		case OM_FLOAT16:
			((uint16_t *)c->out[0].data)[k] = om_float_to_half((float)(start + (double)k * delta));
			break;
		case OM_BFLOAT16:
			((uint16_t *)c->out[0].data)[k] = om_float_to_bfloat((float)(start + (double)k * delta));
			break;
		default:
			return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "no kernel for %s",
				om_dtype_text(c->out[0].type));
		}
	return OM_OK;
}

static om_status
range_cpu(om_op_context *c)
{
	const int64_t n = c->out[0].shape.dim[0];
	int64_t i, step;
	double f, delta;

	if (int_in(c, 0, &i) && int_in(c, 2, &step)) {
		range_ints(c, i, step, n);
		return OM_OK;
	}
	if (!om_in_scalar(c, 0, &f) || !om_in_scalar(c, 2, &delta))
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "no kernel for %s",
			om_dtype_text(c->in[0].type));
	return range_floats(c, f, delta, n);
}

/* ---- EyeLike. ---- */

static om_status
dtype_attr(const om_op_context *c, om_dtype otherwise, om_dtype *t)
{
	const int64_t code = om_attr_int(c->op, "dtype");

	*t = otherwise;
	if (!om_attr_has(c->op, "dtype"))
		return OM_OK;
	if (code <= 0 || code >= OM_NDTYPE || om_dtype_bits((om_dtype)code) == 0)
		return om_op_fail(c->session, OM_INVALID, c->op, "unknown element type %lld", (long long)code);
	*t = (om_dtype)code;
	return OM_OK;
}

static om_status
eye_infer(om_op_context *c)
{
	if (c->in[0].shape.rank >= 0 && c->in[0].shape.rank != 2)
		return om_op_fail(c->session, OM_SHAPE, c->op,
			"the input must be a matrix, not rank %d", c->in[0].shape.rank);
	c->out[0].shape = c->in[0].shape;
	OM_TRY(dtype_attr(c, c->in[0].type, &c->out[0].type));
	return om_must_be_of(c, c->out[0].type, OF_NUMBERS | OF(BOOL));
}

/* A number as an element of a number type. */
static bool
put(om_dtype t, void *to, double v)
{
	switch (t) {
	case OM_FLOAT32: *(float *)to = (float)v; return true;
	case OM_FLOAT64: *(double *)to = v; return true;
	case OM_FLOAT16: *(uint16_t *)to = om_float_to_half((float)v); return true;
	case OM_BFLOAT16: *(uint16_t *)to = om_float_to_bfloat((float)v); return true;
	case OM_INT64: *(int64_t *)to = OM_SATURATE(int64_t, v); return true;
	case OM_UINT64: *(uint64_t *)to = OM_SATURATE(uint64_t, v); return true;
	case OM_INT32: *(int32_t *)to = OM_SATURATE(int32_t, v); return true;
	case OM_UINT32: *(uint32_t *)to = OM_SATURATE(uint32_t, v); return true;
	case OM_INT16: *(int16_t *)to = OM_SATURATE(int16_t, v); return true;
	case OM_UINT16: *(uint16_t *)to = OM_SATURATE(uint16_t, v); return true;
	case OM_INT8: *(int8_t *)to = OM_SATURATE(int8_t, v); return true;
	case OM_UINT8: case OM_BOOL: *(uint8_t *)to = OM_SATURATE(uint8_t, v); return true;
	default: return false;
	}
}

static om_status
no_kernel(const om_op_context *c, om_dtype t)
{
	return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "no kernel for %s", om_dtype_text(t));
}

struct eye {
	int64_t k;                /* index of the diagonal */
};

static const om_attr_field eye_fields[] = {OM_FIELD(struct eye, INT, k), {0}};

static om_status
eye_cpu(om_op_context *c)
{
	const om_tensor *out = &c->out[0];
	const int64_t rows = out->shape.dim[0], cols = out->shape.dim[1];
	const int64_t k = ((const struct eye *)c->state)->k;
	char one[sizeof(om_string)] = {0};
	size_t size;

	OM_TRY(om_elem_bytes(c, out->type, &size));
	om_fill(out->data, rows * cols, size, one);
	if (!put(out->type, one, 1))
		return no_kernel(c, out->type);
	for (int64_t r = 0; r < rows; r++)
		if (k > -rows && k < cols && r + k >= 0 && r + k < cols)
			memcpy((char *)out->data + (size_t)(r * cols + r + k) * size, one, size);
	return OM_OK;
}

/* ---- Random numbers. ----
 *
 * Runs are repeatable: without a seed, the op's position in the program is the seed. */

struct random {
	uint64_t state;
};

/* The attributes that are present. */
struct drawn {
	float seed, scale, mean, low, high;
	bool has_seed;
};

static const om_attr_field drawn_fields[] = {
	OM_FIELD(struct drawn, FLOAT, seed),
	OM_FIELD(struct drawn, FLOAT, scale),
	OM_FIELD(struct drawn, FLOAT, mean),
	OM_FIELD(struct drawn, FLOAT, low),
	OM_FIELD(struct drawn, FLOAT, high),
	OM_FIELD_HAS(struct drawn, has_seed, "seed"),
	{0}
};

static struct random
random_start(const om_op_context *c)
{
	const struct drawn *s = c->state;
	uint32_t bits;

	memcpy(&bits, &s->seed, sizeof bits);
	return (struct random){s->has_seed ? bits : (uint64_t)c->op->id << 32 | 1};
}

/* In [0, 1). */
static double
random_unit(struct random *r)
{
	return om_rng_unit(&r->state);
}

/* Box-Muller transform. */
static double
random_normal(struct random *r)
{
	const double u = 1 - random_unit(r), v = random_unit(r);
	return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static om_status
random_infer(om_op_context *c)
{
	size_t n;
	const int64_t *dims = om_attr_ints(c->op, "shape", &n);

	OM_TRY(dtype_attr(c, OM_FLOAT32, &c->out[0].type));
	if (n > OM_MAX_RANK)
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op,
			"the requested shape has %zu dims, too many", n);
	for (size_t k = 0; k < n; k++)
		if (dims[k] < 0)
			return om_op_fail(c->session, OM_INVALID, c->op, "the requested shape has a negative dim");
	c->out[0].shape = om_shape_of((int)n, dims);
	return OM_OK;
}

static om_status
random_like_infer(om_op_context *c)
{
	c->out[0].shape = c->in[0].shape;
	OM_TRY(dtype_attr(c, c->in[0].type, &c->out[0].type));
	return om_must_be_of(c, c->out[0].type, OF_NUMBERS | OF(BOOL));
}

static om_status
random_fill(om_op_context *c, double (*next)(struct random *), double scale, double shift)
{
	const om_tensor *out = &c->out[0];
	const int64_t n = om_shape_count(&out->shape);
	struct random r = random_start(c);
	size_t size;

	OM_TRY(om_elem_bytes(c, out->type, &size));
	for (int64_t k = 0; k < n; k++)
		if (!put(out->type, (char *)out->data + (size_t)k * size, next(&r) * scale + shift))
			return no_kernel(c, out->type);
	return OM_OK;
}

static om_status
random_normal_cpu(om_op_context *c)
{
	return random_fill(c, random_normal, ((const struct drawn *)c->state)->scale,
		((const struct drawn *)c->state)->mean);
}

static om_status
random_uniform_cpu(om_op_context *c)
{
	const struct drawn *s = c->state;
	const double low = s->low, high = s->high;

	return random_fill(c, random_unit, high - low, low);
}

static bool
get(const om_tensor *t, int64_t k, double *v)
{
	return om_number(t->type, (const char *)t->data + (size_t)k * (om_dtype_bits(t->type) / 8), v);
}

static om_status
bernoulli_cpu(om_op_context *c)
{
	const om_tensor *out = &c->out[0];
	const int64_t n = om_shape_count(&out->shape);
	struct random r = random_start(c);
	size_t size;

	OM_TRY(om_elem_bytes(c, out->type, &size));
	for (int64_t k = 0; k < n; k++) {
		double p;
		if (!get(&c->in[0], k, &p))
			return no_kernel(c, c->in[0].type);
		if (!put(out->type, (char *)out->data + (size_t)k * size, random_unit(&r) < p))
			return no_kernel(c, out->type);
	}
	return OM_OK;
}

static om_status
multinomial_infer(om_op_context *c)
{
	const om_shape *in = &c->in[0].shape;

	OM_TRY(dtype_attr(c, OM_INT32, &c->out[0].type));
	c->out[0].shape = om_shape_open(2);
	if (in->rank >= 0 && in->rank != 2)
		return om_op_fail(c->session, OM_SHAPE, c->op, "the input must be a matrix, not rank %d", in->rank);
	if (in->rank == 2) {
		c->out[0].shape.dim[0] = in->dim[0];
		c->out[0].shape.sym[0] = in->sym[0];
	}
	c->out[0].shape.dim[1] = om_attr_int(c->op, "sample_size");
	if (c->out[0].shape.dim[1] < 0)
		return om_op_fail(c->session, OM_INVALID, c->op, "sample_size is negative");
	return OM_OK;
}

/* Turn logarithms of weights into weights, of which the largest is 1; return their sum. */
static om_status
weights_of(const om_op_context *c, int64_t row, int64_t n, double *w, double *sum)
{
	double most = -INFINITY;

	for (int64_t k = 0; k < n; k++) {
		if (!get(&c->in[0], row * n + k, &w[k]))
			return no_kernel(c, c->in[0].type);
		most = w[k] > most ? w[k] : most;
	}
	*sum = 0;
	for (int64_t k = 0; k < n; k++)
		*sum += w[k] = exp(w[k] - most);
	return OM_OK;
}

struct multinomial {
	struct drawn drawn;       /* first: drawn_fields */
	double *weight;           /* of the classes of a row */
};

static om_status
multinomial_prepare(om_op_context *c, void **state)
{
	struct multinomial *s = *state;

	if (!c->sizes_only)
		s->weight = OM_NEWN(c->mem, double, (size_t)c->in[0].shape.dim[1]);
	return OM_OK;
}

static om_status
multinomial_cpu(om_op_context *c)
{
	const om_tensor *out = &c->out[0];
	const int64_t classes = c->in[0].shape.dim[1], samples = out->shape.dim[1];
	double *w = ((const struct multinomial *)c->state)->weight, sum = 0;
	struct random r = random_start(c);
	size_t size;

	OM_TRY(om_elem_bytes(c, out->type, &size));
	if (classes == 0 && om_shape_count(&out->shape))
		return om_op_fail(c->session, OM_RUN, c->op, "the input has no classes");
	for (int64_t row = 0; row < out->shape.dim[0]; row++) {
		OM_TRY(weights_of(c, row, classes, w, &sum));
		for (int64_t s = 0; s < samples; s++) {
			double rest = random_unit(&r) * sum;
			int64_t k = 0;
			while (k < classes - 1 && (rest -= w[k]) >= 0)
				k++;
			if (!put(out->type, (char *)out->data + (size_t)(row * samples + s) * size, (double)k))
				return no_kernel(c, out->type);
		}
	}
	return OM_OK;
}

/* ---- The table. ---- */

static const om_attr_spec constant1_attrs[] = {
	{.name = "value", .kind = OM_ATTR_TENSOR, .required = true},
	{0}
};

static const om_attr_spec range_attrs[] = {
	{.name = "stash_type", .kind = OM_ATTR_INT, .i = OM_FLOAT32},
	{0}
};

static const om_attr_spec constant_attrs[] = {
	{.name = "value", .kind = OM_ATTR_TENSOR},
	{.name = "sparse_value", .kind = OM_ATTR_SPARSE},
	{.name = "value_float", .kind = OM_ATTR_FLOAT},
	{.name = "value_floats", .kind = OM_ATTR_FLOATS},
	{.name = "value_int", .kind = OM_ATTR_INT},
	{.name = "value_ints", .kind = OM_ATTR_INTS},
	{.name = "value_string", .kind = OM_ATTR_STRING},
	{.name = "value_strings", .kind = OM_ATTR_STRINGS},
	{0}
};

static const om_attr_spec filled_attrs[] = {
	{.name = "value", .kind = OM_ATTR_TENSOR},
	{0}
};

static const om_attr_spec shape_attrs[] = {
	{.name = "start", .kind = OM_ATTR_INT},
	{.name = "end", .kind = OM_ATTR_INT},
	{0}
};

static const om_attr_spec eye_attrs[] = {
	{.name = "dtype", .kind = OM_ATTR_INT},
	{.name = "k", .kind = OM_ATTR_INT},
	{0}
};

#define SEEDED(t) {.name = "dtype", .kind = OM_ATTR_INT, .i = t}, {.name = "seed", .kind = OM_ATTR_FLOAT}
#define NORMAL {.name = "mean", .kind = OM_ATTR_FLOAT, .f = 0}, {.name = "scale", .kind = OM_ATTR_FLOAT, .f = 1}
#define UNIFORM {.name = "low", .kind = OM_ATTR_FLOAT, .f = 0}, {.name = "high", .kind = OM_ATTR_FLOAT, .f = 1}
#define SHAPED {.name = "shape", .kind = OM_ATTR_INTS, .required = true}

static const om_attr_spec normal_attrs[] = {SEEDED(OM_FLOAT32), NORMAL, SHAPED, {0}};
static const om_attr_spec normal_like_attrs[] = {SEEDED(OM_UNDEFINED), NORMAL, {0}};
static const om_attr_spec uniform_attrs[] = {SEEDED(OM_FLOAT32), UNIFORM, SHAPED, {0}};
static const om_attr_spec uniform_like_attrs[] = {SEEDED(OM_UNDEFINED), UNIFORM, {0}};
static const om_attr_spec bernoulli_attrs[] = {SEEDED(OM_UNDEFINED), {0}};
static const om_attr_spec multinomial_attrs[] = {
	SEEDED(OM_INT32), {.name = "sample_size", .kind = OM_ATTR_INT, .i = 1}, {0}
};

#define ONE .domain = "", .min_out = 1, .max_out = 1

const om_opdef om_ops_shape_constant[] = {
	{ONE, .name = "Constant", .brief = "constant tensor", .since = 1, .until = 10,
	 .flags = OM_SPLATS, .attrs = constant1_attrs, .infer = constant_infer, .cpu = constant_cpu},
	{ONE, .name = "Constant", .brief = "constant tensor", .since = 11,
	 .flags = OM_SPLATS, .attrs = constant_attrs, .infer = constant_infer, .cpu = constant_cpu},
	{ONE, .name = "ConstantOfShape", .brief = "tensor of a shape filled with one value", .since = 9,
	 .min_in = 1, .max_in = 1, .flags = OM_SPLATS, .attrs = filled_attrs,
	 .infer = filled_infer, .cpu = filled_cpu,
	 .input_types = {OF(INT64)}},
	{ONE, .name = "Shape", .brief = "shape of the input", .since = 1, .until = 14,
	 .min_in = 1, .max_in = 1, .flags = OM_SHAPE_ONLY, .infer = shape_infer, .propagate_data = shape_elems, .cpu = shape_cpu,
	 .input_types = {OF_ANY}},
	{ONE, .name = "Shape", .brief = "shape of the input, or a range of its dims", .since = 15,
	 .min_in = 1, .max_in = 1, .flags = OM_SHAPE_ONLY, .attrs = shape_attrs,
	 .infer = shape_infer, .propagate_data = shape_elems, .cpu = shape_cpu,
	 .input_types = {OF_ANY}},
	{ONE, .name = "Size", .brief = "number of elements of the input", .since = 1,
	 .min_in = 1, .max_in = 1, .flags = OM_SHAPE_ONLY, .infer = size_infer, .propagate_data = size_elems, .cpu = size_cpu,
	 .input_types = {OF_ANY}},
	{ONE, .name = "Range", .brief = "numbers from start to limit by delta", .since = 11,
	 .min_in = 3, .max_in = 3, .attrs = range_attrs, .infer = range_infer, .cpu = range_cpu,
	 .input_types = {OF_FLOATS | OF_INDICES | OF(INT16), LIKE(0), LIKE(0)}},
	{ONE, .name = "EyeLike", .brief = "matrix with ones on a diagonal", .since = 9,
	 .min_in = 1, .max_in = 1, .attrs = eye_attrs, .flags = OM_SHAPE_ONLY, .infer = eye_infer, .cpu = eye_cpu,
	 .input_types = {OF_NUMBERS | OF(BOOL)}},
	{ONE, .name = "RandomNormal", .brief = "normally distributed random numbers", .since = 1,
	 .flags = OM_RANDOM, .attrs = normal_attrs, .infer = random_infer, .cpu = random_normal_cpu},
	{ONE, .name = "RandomUniform", .brief = "uniformly distributed random numbers", .since = 1,
	 .flags = OM_RANDOM, .attrs = uniform_attrs, .infer = random_infer, .cpu = random_uniform_cpu},
	{ONE, .name = "RandomNormalLike", .brief = "normally distributed random numbers in the shape of the input",
	 .since = 1, .min_in = 1, .max_in = 1, .flags = OM_RANDOM | OM_SHAPE_ONLY, .attrs = normal_like_attrs,
	 .infer = random_like_infer, .cpu = random_normal_cpu,
	 .input_types = {OF_COMMON}},
	{ONE, .name = "RandomUniformLike", .brief =
		"uniformly distributed random numbers in the shape of the input",
	 .since = 1, .min_in = 1, .max_in = 1, .flags = OM_RANDOM | OM_SHAPE_ONLY, .attrs = uniform_like_attrs,
	 .infer = random_like_infer, .cpu = random_uniform_cpu,
	 .input_types = {OF_COMMON}},
	{ONE, .name = "Bernoulli", .brief = "samples of Bernoulli distributions", .since = 15,
	 .min_in = 1, .max_in = 1, .flags = OM_RANDOM, .attrs = bernoulli_attrs,
	 .infer = random_like_infer, .cpu = bernoulli_cpu,
	 .input_types = {OF_FLOATS}},
	{ONE, .name = "Multinomial", .brief = "samples of multinomial distributions", .since = 7,
	 .min_in = 1, .max_in = 1, .flags = OM_RANDOM, .attrs = multinomial_attrs,
	 .infer = multinomial_infer, .cpu = multinomial_cpu,
	 .input_types = {OF_FLOATS}},
	{0}
};

#define DRAWN(label, runs)                                                     \
	{.name = label, .fields = drawn_fields, .state_bytes = sizeof(struct drawn), .run = runs}

const om_kernel om_kernels_shape_constant[] = {
	{.name = "ConstantOfShape", .fields = filled_fields, .state_bytes = sizeof(struct filled),
	 .run = filled_cpu},
	{.name = "Shape", .state_bytes = sizeof(struct range), .prepare = shape_prepare, .run = shape_cpu},
	{.name = "EyeLike", .fields = eye_fields, .state_bytes = sizeof(struct eye), .run = eye_cpu},
	DRAWN("RandomNormal", random_normal_cpu),
	DRAWN("RandomNormalLike", random_normal_cpu),
	DRAWN("RandomUniform", random_uniform_cpu),
	DRAWN("RandomUniformLike", random_uniform_cpu),
	DRAWN("Bernoulli", bernoulli_cpu),
	{.name = "Multinomial", .fields = drawn_fields, .state_bytes = sizeof(struct multinomial),
	 .prepare = multinomial_prepare, .run = multinomial_cpu},
	{.name = "Constant", .state_bytes = sizeof(struct constant), .prepare = constant_prepare, .run = constant_cpu},
	{0}
};
