/* SPDX-License-Identifier: Apache-2.0 */
/* Recipes for valid random inputs of each operator.  Elementwise operators require no recipe, unless
 * they have mandatory attributes or inputs of several types. */
#include <config.h>

#include <stdlib.h>

#include "base/rng.h"
#include "walk.h"
#include "base/arena_internal.h"
#include "base/shape.h"
#include "ir/edit.h"

#define SHAPE(...)                                                             \
	om_shape_of((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})
#define SCALAR om_shape_of(0, NULL)
#define LENGTH(array) (sizeof(array) / sizeof(array)[0])
/* A constant list of integers that controls the op: axes, sizes. */
#define STEER(t, k, ...)                                                       \
	steer(t, k, OM_INT64, SHAPE((int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))), \
		(double[]){__VA_ARGS__})
#define INTS(t, name, ...)                                                     \
	om_op_add_ints(t->prog, t->op, name, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), \
		(int64_t[]){__VA_ARGS__})
#define INT(t, name, v)     om_op_add_int(t->prog, t->op, name, v)
#define FLOAT(t, name, v)   om_op_add_float(t->prog, t->op, name, v)
#define TEXT(t, name, v)    om_op_add_string(t->prog, t->op, name, v)

static const om_dtype all_types[] = {
	OM_FLOAT32, OM_FLOAT16, OM_INT64, OM_UINT8, OM_BOOL, OM_FLOAT64, OM_BFLOAT16,
	OM_INT8, OM_INT16, OM_INT32, OM_UINT16, OM_UINT32, OM_UINT64, OM_STRING, OM_COMPLEX64, OM_COMPLEX128,
	OM_FLOAT8E4M3FN, OM_FLOAT8E4M3FNUZ, OM_FLOAT8E5M2, OM_FLOAT8E5M2FNUZ, OM_FLOAT8E8M0,
	OM_FLOAT6E2M3, OM_FLOAT6E3M2, OM_UINT4, OM_INT4, OM_FLOAT4E2M1, OM_UINT2, OM_INT2,
};

static double
random_between(struct trial *t, double low, double high)
{
	return low + om_rng_unit(&t->state) * (high - low);
}

static void
start(struct trial *t, uint32_t nin, uint32_t nout)
{
	om_prog *p = t->prog;

	t->op = om_op_new(p, t->row->domain ? t->row->domain : "", t->row->name, t->version, nin, nout);
	for (uint32_t k = 0; k < nout; k++) {
		char name[16];
		snprintf(name, sizeof name, "y%u", k);
		om_op_set_out(t->op, k, om_value_new(p, p->first, name));
	}
	om_op_append(p->first, t->op);
}

static om_tensor *
tensor(struct trial *t, om_dtype type, om_shape shape)
{
	om_tensor *x = OM_NEW(t->prog->mem, om_tensor);
	uint64_t bytes = 0;

	om_tensor_bytes(type, &shape, &bytes);
	*x = (om_tensor){.type = type, .shape = shape, .data = om_alloc(t->prog->mem, bytes + 1)};
	memset(x->data, 0, bytes + 1);
	return x;
}

static void
set_input(struct trial *t, uint32_t k, const om_tensor *x)
{
	char name[16];

	snprintf(name, sizeof name, "x%u", k);
	om_op_set_in(t->op, k, om_const_new(t->prog, t->prog->first, name, x));
}

/* Input k: random numbers from [low, high). */
static void
between(struct trial *t, uint32_t k, om_dtype type, om_shape shape, double low, double high)
{
	om_tensor *x = tensor(t, type, shape);

	for (int64_t i = 0; i < om_shape_count(&shape); i++)
		trial_put(type, x->data, i, random_between(t, low, high));
	set_input(t, k, x);
}

static void
give(struct trial *t, uint32_t k, om_dtype type, om_shape shape)
{
	if (om_dtype_is_float(type))
		between(t, k, type, shape, -2, 2);
	else if (type == OM_BOOL)
		between(t, k, type, shape, 0, 2);
	else
		between(t, k, type, shape, -9.5, 9.5);
}

static void
steer(struct trial *t, uint32_t k, om_dtype type, om_shape shape, const double *v)
{
	om_tensor *x = tensor(t, type, shape);

	for (int64_t i = 0; i < om_shape_count(&shape); i++)
		trial_put(type, x->data, i, v[i]);
	set_input(t, k, x);
	t->is_steering[k] = true;
}

/* ---- Elementwise. ---- */

/* Shapes of up to two operands; further operands have the shape of the first. */
static const struct { om_shape x, y; } pairs[] = {
	{{3, {2, 3, 5}}, {3, {2, 3, 5}}},
	{{3, {2, 3, 5}}, {1, {5}}},
	{{3, {2, 3, 5}}, {2, {3, 1}}},
	{{0, {0}}, {2, {4, 7}}},
	{{3, {2, 1, 5}}, {2, {3, 1}}},
	{{2, {3, 700}}, {2, {3, 700}}},
	{{2, {3, 700}}, {2, {1, 1}}},
	{{2, {1, 70}}, {1, {70}}},
	{{2, {0, 3}}, {1, {3}}},
};

/* The type of this variant, and, in *at, an index below `n`. */
static bool
pick(const struct trial *t, size_t n, om_dtype *type, size_t *at)
{
	if (t->variant >= n * LENGTH(all_types))
		return false;
	*type = all_types[t->variant / n];
	*at = t->variant % n;
	return true;
}

static bool
pointwise(struct trial *t)
{
	const uint32_t nin = t->row->max_in == OM_VARIADIC ? 1 + t->variant % 4 : t->row->min_in;
	om_dtype type;
	size_t at;

	if (!pick(t, LENGTH(pairs), &type, &at))
		return false;
	start(t, nin, t->row->min_out);
	for (uint32_t k = 0; k < nin; k++)
		give(t, k, type, k == 1 ? pairs[at].y : pairs[at].x);
	return true;
}

static bool
bit_shift(struct trial *t)
{
	if (!pointwise(t))
		return false;
	TEXT(t, "direction", t->variant % 2 ? "LEFT" : "RIGHT");
	return true;
}

static bool
cast(struct trial *t)
{
	const size_t n = LENGTH(all_types);

	if (t->variant >= n * n)
		return false;
	start(t, 1, 1);
	give(t, 0, all_types[t->variant / n], SHAPE(3, 171));
	if (t->version < 6)
		TEXT(t, "to", t->variant % 2 ? "FLOAT" : "INT64");
	else
		INT(t, "to", all_types[t->variant % n]);
	return true;
}

static bool
cast_like(struct trial *t)
{
	const size_t n = LENGTH(all_types);

	if (t->variant >= n * n)
		return false;
	start(t, 2, 1);
	give(t, 0, all_types[t->variant / n], SHAPE(3, 17));
	give(t, 1, all_types[t->variant % n], SHAPE(2));
	return true;
}

static bool
clip(struct trial *t)
{
	om_dtype type;
	size_t at;

	if (t->version < 11) {
		if (!pointwise(t))
			return false;
		FLOAT(t, "min", -0.5f);
		FLOAT(t, "max", 1.5f);
		return true;
	}
	if (!pick(t, 4, &type, &at))
		return false;
	start(t, at ? 3 : 1, 1);
	give(t, 0, type, SHAPE(3, 171));
	if (at & 1)
		between(t, 1, type, SCALAR, 0, 1);
	if (at & 2)
		between(t, 2, type, SCALAR, 1, 2);
	return true;
}

static bool
dropout(struct trial *t)
{
	om_dtype type;
	size_t at;

	if (!pick(t, 3, &type, &at))
		return false;
	const uint32_t nin = t->version < 12 ? 1 : 1 + (uint32_t)at;
	start(t, nin, 1 + t->variant % 2);
	give(t, 0, type, SHAPE(3, 171));
	if (nin > 1)
		steer(t, 1, OM_FLOAT32, SCALAR, (double[]){0.25});
	if (nin > 2)
		steer(t, 2, OM_BOOL, SCALAR, (double[]){0});
	return true;
}

static bool
mod(struct trial *t)
{
	if (!pointwise(t))
		return false;
	INT(t, "fmod", om_dtype_is_float(t->op->in[0]->type.elem) || t->variant % 2);
	return true;
}

static bool
power(struct trial *t)
{
	const size_t n = LENGTH(all_types);

	if (t->variant >= n * n)
		return false;
	start(t, 2, 1);
	const om_shape base = t->variant % 2 ? SHAPE(1, 171) : SHAPE(3, 171);
	if (om_dtype_is_float(all_types[t->variant % n]) && om_dtype_is_float(all_types[t->variant / n]))
		between(t, 0, all_types[t->variant / n], base, 0.5, 2);  /* fractional; no base is negative */
	else
		give(t, 0, all_types[t->variant / n], base);
	between(t, 1, all_types[t->variant % n], t->variant % 3 ? SHAPE(3, 171) : SHAPE(1), 0, 4);
	return true;
}

static bool
prelu(struct trial *t)
{
	om_dtype type;
	size_t at;

	if (!pick(t, 3, &type, &at))
		return false;
	start(t, 2, 1);
	give(t, 0, type, SHAPE(2, 3, 171));
	if (t->version < 7)
		give(t, 1, type, at ? SHAPE(3) : SHAPE(1));
	else
		give(t, 1, type, at == 0 ? SHAPE(3, 1) : at == 1 ? SHAPE(1) : SHAPE(2, 3, 171));
	return true;
}

static bool
where(struct trial *t)
{
	om_dtype type;
	size_t at;

	if (!pick(t, 2 * LENGTH(pairs), &type, &at))
		return false;
	start(t, 3, 1);
	give(t, 0, OM_BOOL, at % 2 ? pairs[at / 2].x : pairs[at / 2].y);
	give(t, 1, type, pairs[at / 2].x);
	give(t, 2, type, pairs[at / 2].y);
	return true;
}

/* ---- Reductions and operators along an axis. ---- */

static bool
reduce(struct trial *t)
{
	static const struct { om_shape x; size_t n; int64_t axis[4]; } cases[] = {
		{{4, {2, 3, 4, 5}}, 1, {-1}}, {{4, {2, 3, 4, 5}}, 1, {0}}, {{4, {2, 3, 4, 5}}, 2, {1, 2}},
		{{4, {2, 3, 4, 5}}, 2, {0, 2}}, {{4, {2, 3, 4, 5}}, 2, {1, -1}}, {{4, {2, 3, 4, 5}}, 0, {0}},
		{{4, {2, 3, 4, 5}}, 4, {0, 1, 2, 3}}, {{3, {2, 1, 5}}, 1, {1}}, {{2, {3, 700}}, 1, {0}},
		{{2, {3, 700}}, 1, {1}}, {{2, {3, 0}}, 1, {1}}, {{0, {0}}, 0, {0}},
	};
	const bool is_input = t->version >= (strcmp(t->row->name, "ReduceSum") == 0 ? 13 : 18);
	om_dtype type;
	size_t at;

	if (!pick(t, LENGTH(cases), &type, &at))
		return false;
	const size_t n = cases[at].n;
	start(t, is_input && (n || t->variant % 2) ? 2 : 1, 1);
	give(t, 0, type, cases[at].x);
	if (t->op->nin == 2) {
		double v[4];
		for (size_t k = 0; k < n; k++)
			v[k] = (double)cases[at].axis[k];
		steer(t, 1, OM_INT64, SHAPE((int64_t)n), v);
		INT(t, "noop_with_empty_axes", t->variant % 3 == 0);
	} else if (n) {
		om_op_add_ints(t->prog, t->op, "axes", n, cases[at].axis);
	}
	INT(t, "keepdims", t->variant % 5 != 0);
	return true;
}

static const struct { om_shape x; int axis; } lines[] = {
	{{3, {2, 3, 5}}, 0}, {{3, {2, 3, 5}}, 1}, {{3, {2, 3, 5}}, -1}, {{2, {3, 700}}, 0},
	{{2, {3, 700}}, 1}, {{3, {2, 17, 100}}, 1}, {{1, {1}}, 0},
};

static bool
along_axis(struct trial *t)
{
	om_dtype type;
	size_t at;

	if (!pick(t, LENGTH(lines), &type, &at))
		return false;
	start(t, 1, 1);
	give(t, 0, type, lines[at].x);
	INT(t, "axis", lines[at].axis < 0 && t->version < 11 ? 1 : lines[at].axis);
	return true;
}

static bool
arg(struct trial *t)
{
	if (!along_axis(t))
		return false;
	INT(t, "keepdims", t->variant % 2);
	INT(t, "select_last_index", t->version >= 12 && t->variant % 3 == 0);
	return true;
}

static bool
cumsum(struct trial *t)
{
	om_dtype type;
	size_t at;

	if (!pick(t, LENGTH(lines), &type, &at))
		return false;
	start(t, 2, 1);
	give(t, 0, type, lines[at].x);
	steer(t, 1, OM_INT64, SCALAR, (double[]){lines[at].axis});
	INT(t, "exclusive", t->variant % 2);
	INT(t, "reverse", t->variant % 3 == 0);
	return true;
}

static bool
topk(struct trial *t)
{
	om_dtype type;
	size_t at;

	if (!pick(t, LENGTH(lines), &type, &at))
		return false;
	const om_shape *x = &lines[at].x;
	const int axis = lines[at].axis + (lines[at].axis < 0 ? x->rank : 0);
	const int64_t k = x->dim[axis] - (t->variant % 2 && x->dim[axis] > 1);
	start(t, t->version < 10 ? 1 : 2, 2);
	give(t, 0, type, *x);
	INT(t, "axis", axis);
	if (t->version < 10)
		INT(t, "k", k);
	else
		STEER(t, 1, k);
	if (t->version >= 11)
		INT(t, "largest", t->variant % 3 != 0);
	return true;
}

/* ---- Data movement. ---- */

static bool
concat(struct trial *t)
{
	static const om_shape parts[][3] = {
		{{3, {2, 3, 5}}, {3, {2, 1, 5}}, {3, {2, 4, 5}}},
		{{3, {1, 3, 5}}, {3, {2, 3, 5}}, {3, {0, 3, 5}}},
		{{3, {2, 3, 5}}, {3, {2, 3, 1}}, {3, {2, 3, 2}}},
	};
	om_dtype type;
	size_t at;

	if (!pick(t, 4, &type, &at))
		return false;
	const uint32_t n = at == 3 ? 1 : 3;
	start(t, n, 1);
	for (uint32_t k = 0; k < n; k++)
		give(t, k, type, parts[at % 3][k]);
	INT(t, "axis", at % 3 == 0 ? 1 : at % 3 == 1 ? 0 : 2);
	return true;
}

static bool
expand(struct trial *t)
{
	om_dtype type;
	size_t at;

	if (!pick(t, 3, &type, &at))
		return false;
	start(t, 2, 1);
	give(t, 0, type, at == 0 ? SHAPE(3, 1) : at == 1 ? SHAPE(2, 3, 4) : SCALAR);
	STEER(t, 1, 2, 3, 4);
	return true;
}

static bool
flatten(struct trial *t)
{
	if (t->variant >= 5)
		return false;
	start(t, 1, 1);
	give(t, 0, OM_FLOAT32, SHAPE(2, 3, 4, 5));
	INT(t, "axis", t->variant);
	return true;
}

static bool
identity(struct trial *t)
{
	if (t->variant >= LENGTH(all_types))
		return false;
	start(t, 1, 1);
	give(t, 0, all_types[t->variant], SHAPE(2, 3));
	return true;
}

static bool
pad(struct trial *t)
{
	static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
	om_dtype type;
	size_t at;

	if (!pick(t, 5, &type, &at) || (at == 3 && t->version < 19))
		return false;
	start(t, t->version < 11 ? 1 : 2 + t->variant % 2, 1);
	give(t, 0, type, SHAPE(2, 4, 5));
	if (at < 4)
		TEXT(t, "mode", modes[at]);
	if (t->version < 2)
		INTS(t, "paddings", 0, 1, 2, 0, 3, 1);
	else if (t->version < 11)
		INTS(t, "pads", 0, 1, 2, 0, 3, 1);
	else if (at < 4)
		STEER(t, 1, 0, 1, 2, 0, 3, 1);
	else
		STEER(t, 1, 0, 0, 0, 0, 0, 0);
	if (t->op->nin > 2)
		give(t, 2, type, SCALAR);
	return true;
}

static bool
reshape(struct trial *t)
{
	if (t->variant >= 3)
		return false;
	start(t, t->version < 5 ? 1 : 2, 1);
	give(t, 0, OM_FLOAT32, SHAPE(2, 3, 4));
	if (t->version < 5)
		INTS(t, "shape", 0, -1);
	else if (t->variant == 0)
		STEER(t, 1, 0, -1);
	else
		STEER(t, 1, 4, 3, 2);
	return true;
}

static bool
slice(struct trial *t)
{
	om_dtype type;
	size_t at;

	if (!pick(t, t->version < 10 ? 2 : 4, &type, &at))
		return false;
	start(t, t->version < 10 ? 1 : 5, 1);
	give(t, 0, type, SHAPE(4, 5, 6));
	if (t->version < 10) {
		INTS(t, "starts", 1, -2);
		INTS(t, "ends", 3, INT64_MAX);
		INTS(t, "axes", 0, (int64_t)at + 1);
		return true;
	}
	if (at == 0) {
		STEER(t, 1, 1);
		STEER(t, 2, 3);
		STEER(t, 3, 0);
		STEER(t, 4, 1);
	} else {
		STEER(t, 1, 1, -2);
		STEER(t, 2, 4, -100);
		STEER(t, 3, at == 1 ? -1 : 0, 1);
		STEER(t, 4, at == 2 ? 2 : 1, -1);
	}
	return true;
}

static bool
split(struct trial *t)
{
	om_dtype type;
	size_t at;

	if (!pick(t, 4, &type, &at))
		return false;
	const bool even = at % 2;
	start(t, t->version >= 13 && !even ? 2 : 1, 2);
	give(t, 0, type, at < 2 ? SHAPE(6, 4) : SHAPE(3, 6));
	INT(t, "axis", at < 2 ? 0 : 1);
	if (even && t->version >= 18)
		INT(t, "num_outputs", 2);
	else if (t->version < 13)
		INTS(t, "split", even ? 3 : 2, even ? 3 : 4);
	else if (!even)
		STEER(t, 1, 2, 4);
	return true;
}

static bool
squeeze(struct trial *t)
{
	if (t->variant >= 3)
		return false;
	const bool all = t->variant == 2;
	start(t, t->version >= 13 && !all ? 2 : 1, 1);
	give(t, 0, OM_FLOAT32, SHAPE(1, 3, 1, 5));
	if (t->op->nin == 2)
		STEER(t, 1, t->variant ? -2 : 0);
	else if (!all)
		INTS(t, "axes", t->variant ? 2 : 0);
	return true;
}

static bool
unsqueeze(struct trial *t)
{
	if (t->variant >= 2)
		return false;
	start(t, t->version >= 13 ? 2 : 1, 1);
	give(t, 0, OM_FLOAT32, SHAPE(3, 4));
	if (t->version >= 13)
		STEER(t, 1, 0, t->variant ? -1 : 2);
	else
		INTS(t, "axes", 0, t->variant ? 3 : 2);
	return true;
}

static bool
tile(struct trial *t)
{
	om_dtype type;
	size_t at;

	if (!pick(t, 2, &type, &at))
		return false;
	if (t->version < 6) {
		start(t, 3, 1);
		give(t, 0, type, SHAPE(2, 3));
		steer(t, 1, OM_INT64, SCALAR, (double[]){2});
		steer(t, 2, OM_INT64, SCALAR, (double[]){(double)at});
		return true;
	}
	start(t, 2, 1);
	give(t, 0, type, SHAPE(2, 3));
	STEER(t, 1, at ? 1 : 3, at ? 1 : 2);
	return true;
}

static bool
transpose(struct trial *t)
{
	static const struct { om_shape x; int64_t perm[4]; } cases[] = {
		{{4, {2, 3, 4, 5}}, {0, 2, 3, 1}}, {{4, {2, 3, 4, 5}}, {3, 2, 1, 0}},
		{{4, {2, 3, 4, 5}}, {0, 1, 3, 2}}, {{4, {1, 3, 1, 5}}, {1, 0, 2, 3}},
		{{4, {2, 3, 4, 5}}, {1, 0, 2, 3}}, {{4, {2, 1, 40, 50}}, {0, 3, 2, 1}},
	};
	om_dtype type;
	size_t at;

	if (!pick(t, LENGTH(cases), &type, &at))
		return false;
	start(t, 1, 1);
	give(t, 0, type, cases[at].x);
	om_op_add_ints(t->prog, t->op, "perm", 4, cases[at].perm);
	return true;
}

static bool
trilu(struct trial *t)
{
	om_dtype type;
	size_t at;

	if (!pick(t, 4, &type, &at))
		return false;
	start(t, 1 + t->variant % 2, 1);
	give(t, 0, type, SHAPE(2, 4, 5));
	if (t->op->nin > 1)
		steer(t, 1, OM_INT64, SCALAR, (double[]){(double)at - 1});
	INT(t, "upper", at < 2);
	return true;
}

static bool
depth(struct trial *t)
{
	const bool to_space = strcmp(t->row->name, "DepthToSpace") == 0;

	if (t->variant >= 2)
		return false;
	start(t, 1, 1);
	give(t, 0, OM_FLOAT32, to_space ? SHAPE(2, 8, 2, 3) : SHAPE(2, 3, 4, 6));
	INT(t, "blocksize", 2);
	if (t->version >= (to_space ? 11 : 28))
		TEXT(t, "mode", t->variant ? "CRD" : "DCR");
	return true;
}

static bool
reverse(struct trial *t)
{
	if (t->variant >= 2)
		return false;
	start(t, 2, 1);
	give(t, 0, OM_FLOAT32, SHAPE(4, 4, 2));
	between(t, 1, OM_INT64, SHAPE(4), 1, 5);
	INT(t, "time_axis", t->variant);
	INT(t, "batch_axis", !t->variant);
	return true;
}

/* ---- Indices. ---- */

static bool
gather(struct trial *t)
{
	om_dtype type;
	size_t at;

	if (!pick(t, 4, &type, &at))
		return false;
	start(t, 2, 1);
	give(t, 0, type, SHAPE(4, 5, 6));
	const bool whole = strcmp(t->row->name, "Gather") == 0;
	between(t, 1, at % 2 ? OM_INT32 : OM_INT64, whole ? at == 3 ? SCALAR : SHAPE(2, 3) : SHAPE(3, 4, 2), 0, 4);
	INT(t, "axis", whole && at == 3 ? 0 : (int64_t)at % 3);
	return true;
}

static bool
gather_nd(struct trial *t)
{
	if (t->variant >= LENGTH(all_types))
		return false;
	start(t, 2, 1);
	give(t, 0, all_types[t->variant], SHAPE(4, 5, 6));
	between(t, 1, OM_INT64, SHAPE(4, 3, 1 + t->variant % 2), 0, 4);
	if (t->version >= 12)
		INT(t, "batch_dims", t->variant % 2);
	return true;
}

static bool
scatter(struct trial *t)
{
	static const char *const ways[] = {"none", "add", "mul", "max", "min"};
	om_dtype type;
	size_t at;

	const size_t n = t->version >= 18 ? 5 : t->version >= 16 ? 3 : 1;
	if (!pick(t, n, &type, &at))
		return false;
	start(t, 3, 1);
	give(t, 0, type, SHAPE(4, 5));
	steer(t, 1, OM_INT64, SHAPE(2, 2), (double[]){0, 1, 3, 2});
	give(t, 2, type, SHAPE(2, 2));
	INT(t, "axis", t->variant % 2);
	if (t->version >= 16)
		TEXT(t, "reduction", ways[at]);
	return true;
}

static bool
scatter_nd(struct trial *t)
{
	om_dtype type;
	size_t at;

	if (!pick(t, 2, &type, &at))
		return false;
	start(t, 3, 1);
	give(t, 0, type, SHAPE(4, 5));
	if (at) {
		steer(t, 1, OM_INT64, SHAPE(2, 1), (double[]){2, 0});
		give(t, 2, type, SHAPE(2, 5));
	} else {
		steer(t, 1, OM_INT64, SHAPE(3, 2), (double[]){2, 0, 1, 4, 3, 3});
		give(t, 2, type, SHAPE(3));
	}
	return true;
}

static bool
compress(struct trial *t)
{
	om_dtype type;
	size_t at;

	if (!pick(t, 3, &type, &at))
		return false;
	start(t, 2, 1);
	give(t, 0, type, SHAPE(3, 4));
	between(t, 1, OM_BOOL, SHAPE(3), 0, 2);
	if (at < 2)
		INT(t, "axis", (int64_t)at);
	return true;
}

static bool
nonzero(struct trial *t)
{
	if (t->variant >= LENGTH(all_types))
		return false;
	start(t, 1, 1);
	between(t, 0, all_types[t->variant], SHAPE(3, 4, 5), 0, 2);
	return true;
}

static bool
one_hot(struct trial *t)
{
	if (t->variant >= 4)
		return false;
	start(t, 3, 1);
	between(t, 0, OM_INT64, SHAPE(2, 3), -4, 4);
	steer(t, 1, OM_INT64, SHAPE(1), (double[]){4});
	give(t, 2, t->variant % 2 ? OM_FLOAT32 : OM_INT32, SHAPE(2));
	INT(t, "axis", (int64_t)t->variant - 1);
	return true;
}

static bool
suppression(struct trial *t)
{
	if (t->variant >= 2)
		return false;
	start(t, 5, 1);
	between(t, 0, OM_FLOAT32, SHAPE(2, 8, 4), 0, 1);
	between(t, 1, OM_FLOAT32, SHAPE(2, 3, 8), 0, 1);
	steer(t, 2, OM_INT64, SHAPE(1), (double[]){3});
	steer(t, 3, OM_FLOAT32, SHAPE(1), (double[]){0.5});
	steer(t, 4, OM_FLOAT32, SHAPE(1), (double[]){0.1});
	INT(t, "center_point_box", t->variant);
	return true;
}

static bool
unique(struct trial *t)
{
	if (t->variant >= 4)
		return false;
	start(t, 1, 4);
	give(t, 0, t->variant % 2 ? OM_INT64 : OM_FLOAT32, SHAPE(6, 2));
	INT(t, "sorted", t->variant < 2);
	if (t->variant % 2)
		INT(t, "axis", 0);
	return true;
}

/* ---- Shapes and constants. ---- */

static bool
shape(struct trial *t)
{
	if (t->variant >= 2)
		return false;
	start(t, 1, 1);
	give(t, 0, OM_FLOAT32, SHAPE(2, 3, 4));
	if (t->variant && t->version >= 15)
		INT(t, "start", 1);
	return true;
}

static bool
constant(struct trial *t)
{
	if (t->variant >= 1)
		return false;
	start(t, 0, 1);
	om_tensor *x = tensor(t, OM_FLOAT32, SHAPE(2, 3));
	om_op_add_attr(t->prog, t->op, &(om_attr){.name = "value", .kind = OM_ATTR_TENSOR, .n = 1, .t = x});
	return true;
}

static bool
constant_of_shape(struct trial *t)
{
	if (t->variant >= 2)
		return false;
	start(t, 1, 1);
	STEER(t, 0, 2, 3);
	if (t->variant) {
		om_tensor *x = tensor(t, OM_INT64, SHAPE(1));
		trial_put(OM_INT64, x->data, 0, 7);
		om_op_add_attr(t->prog, t->op, &(om_attr){.name = "value", .kind = OM_ATTR_TENSOR, .n = 1, .t = x});
	}
	return true;
}

static bool
eye_like(struct trial *t)
{
	if (t->variant >= 3)
		return false;
	start(t, 1, 1);
	give(t, 0, OM_FLOAT32, SHAPE(4, 5));
	INT(t, "k", (int64_t)t->variant - 1);
	return true;
}

static bool
range(struct trial *t)
{
	static const om_dtype types[] = {OM_FLOAT32, OM_INT64, OM_INT32, OM_FLOAT64, OM_INT16};

	if (t->variant >= LENGTH(types))
		return false;
	start(t, 3, 1);
	steer(t, 1, types[t->variant], SCALAR, (double[]){-3});
	if (om_dtype_is_float(types[t->variant])) {  /* seven elements for all types */
		between(t, 0, types[t->variant], SCALAR, 9.8, 10.2);
		between(t, 2, types[t->variant], SCALAR, -2.1, -1.9);
		return true;
	}
	steer(t, 0, types[t->variant], SCALAR, (double[]){10});
	steer(t, 2, types[t->variant], SCALAR, (double[]){-2});
	return true;
}

static bool
random_shape(struct trial *t)
{
	if (t->variant >= 1)
		return false;
	start(t, 0, 1);
	INTS(t, "shape", 3, 4);
	return true;
}

static bool
random_like(struct trial *t)
{
	if (t->variant >= 1)
		return false;
	start(t, 1, 1);
	between(t, 0, OM_FLOAT32, SHAPE(3, 4), 0, 1);
	return true;
}

/* ---- Matrix products. ---- */

static bool
matmul(struct trial *t)
{
	static const struct { om_shape a, b; } cases[] = {
		{{2, {5, 7}}, {2, {7, 3}}}, {{3, {2, 5, 7}}, {2, {7, 3}}}, {{4, {2, 1, 5, 7}}, {3, {4, 7, 3}}},
		{{1, {7}}, {2, {7, 3}}}, {{2, {5, 7}}, {1, {7}}}, {{1, {7}}, {1, {7}}}, {{2, {33, 65}}, {2, {65, 70}}},
	};
	om_dtype type;
	size_t at;

	if (!pick(t, LENGTH(cases), &type, &at))
		return false;
	start(t, 2, 1);
	give(t, 0, type, cases[at].a);
	give(t, 1, type, cases[at].b);
	return true;
}

static bool
matmul_integer(struct trial *t)
{
	if (t->variant >= 4)
		return false;
	const om_dtype a = t->variant % 2 ? OM_INT8 : OM_UINT8;
	start(t, t->variant < 2 ? 2 : 4, 1);
	give(t, 0, a, SHAPE(5, 7));
	give(t, 1, OM_INT8, SHAPE(7, 3));
	if (t->op->nin > 2) {
		between(t, 2, a, SCALAR, 0, 5);
		between(t, 3, OM_INT8, SCALAR, 0, 5);
	}
	return true;
}

static bool
gemm(struct trial *t)
{
	om_dtype type;
	size_t at;

	if (!pick(t, 6, &type, &at))
		return false;
	const bool a = at & 1, b = at & 2;
	start(t, at >= 4 && t->version >= 11 ? 2 : 3, 1);
	give(t, 0, type, a ? SHAPE(7, 5) : SHAPE(5, 7));
	give(t, 1, type, b ? SHAPE(3, 7) : SHAPE(7, 3));
	if (t->op->nin > 2)
		give(t, 2, type, at == 0 ? SHAPE(5, 3) : at == 1 ? SHAPE(5, 1) : SHAPE(3));
	if (t->version < 7)
		INT(t, "broadcast", 1);
	INT(t, "transA", a);
	INT(t, "transB", b);
	FLOAT(t, "alpha", 0.5f);
	FLOAT(t, "beta", at == 2 ? 1 : 0.25f);
	return true;
}

static bool
einsum(struct trial *t)
{
	if (t->variant >= 2)
		return false;
	start(t, 2, 1);
	give(t, 0, OM_FLOAT32, SHAPE(2, 3, 4));
	give(t, 1, OM_FLOAT32, SHAPE(2, 4, 5));
	TEXT(t, "equation", t->variant ? "bij,bjk->bik" : "bij,bjk->kb");
	return true;
}

/* A scale and a zero point. */
static void
quantized(struct trial *t, uint32_t k, om_dtype type)
{
	steer(t, k, OM_FLOAT32, SCALAR, (double[]){0.25});
	steer(t, k + 1, type, SCALAR, (double[]){type == OM_UINT8 ? 100 : 3});
}

static bool
qlinear_matmul(struct trial *t)
{
	if (t->variant >= 2)
		return false;
	const om_dtype type = t->variant ? OM_INT8 : OM_UINT8;
	start(t, 8, 1);
	between(t, 0, type, SHAPE(5, 7), 0, 100);
	quantized(t, 1, type);
	between(t, 3, type, SHAPE(7, 3), 0, 100);
	quantized(t, 4, type);
	quantized(t, 6, type);
	return true;
}

/* ---- Convolutions and pooling. ---- */

static const struct window {
	om_shape x, w;       /* the weights of Conv */
	int64_t group, stride, pad, dilation;
} windows[] = {
	{{4, {1, 3, 8, 9}}, {4, {4, 3, 3, 3}}, 1, 1, 1, 1},
	{{4, {2, 4, 8, 9}}, {4, {6, 2, 3, 3}}, 2, 2, 0, 1},
	{{4, {1, 4, 9, 9}}, {4, {4, 1, 3, 3}}, 4, 1, 1, 1},
	{{4, {1, 3, 9, 9}}, {4, {2, 3, 3, 3}}, 1, 1, 2, 2},
	{{3, {2, 3, 20}}, {3, {4, 3, 5}}, 1, 2, 2, 1},
	{{4, {1, 16, 7, 7}}, {4, {8, 16, 1, 1}}, 1, 1, 0, 1},
	{{5, {1, 2, 4, 5, 6}}, {5, {3, 2, 2, 2, 2}}, 1, 1, 0, 1},
};

static void
all_axes(struct trial *t, const char *name, const struct window *w, int times, int64_t v)
{
	int64_t list[2 * OM_MAX_RANK];
	const int n = (w->x.rank - 2) * times;

	for (int k = 0; k < n; k++)
		list[k] = v;
	om_op_add_ints(t->prog, t->op, name, (size_t)n, list);
}

static void
window_attrs(struct trial *t, const struct window *w)
{
	all_axes(t, "strides", w, 1, w->stride);
	all_axes(t, "pads", w, 2, w->pad);
	om_op_add_ints(t->prog, t->op, "kernel_shape", (size_t)w->x.rank - 2, w->w.dim + 2);
}

static bool
conv(struct trial *t)
{
	om_dtype type;
	size_t at;

	if (!pick(t, 2 * LENGTH(windows), &type, &at))
		return false;
	const struct window *w = &windows[at / 2];
	start(t, at % 2 ? 3 : 2, 1);
	give(t, 0, type, w->x);
	give(t, 1, type, w->w);
	if (at % 2)
		give(t, 2, type, SHAPE(w->w.dim[0]));
	window_attrs(t, w);
	all_axes(t, "dilations", w, 1, w->dilation);
	INT(t, "group", w->group);
	return true;
}

static bool
conv_transpose(struct trial *t)
{
	if (t->variant >= 2 * LENGTH(windows))
		return false;
	const struct window *w = &windows[t->variant / 2];
	om_shape weights = w->w;
	weights.dim[0] = w->x.dim[1];
	weights.dim[1] = 2;
	start(t, t->variant % 2 ? 3 : 2, 1);
	give(t, 0, OM_FLOAT32, w->x);
	give(t, 1, OM_FLOAT32, weights);
	if (t->variant % 2)
		give(t, 2, OM_FLOAT32, SHAPE(2 * w->group));
	window_attrs(t, w);
	all_axes(t, "dilations", w, 1, w->dilation);
	INT(t, "group", w->group);
	return true;
}

static bool
conv_integer(struct trial *t)
{
	if (t->variant >= LENGTH(windows))
		return false;
	const struct window *w = &windows[t->variant];
	const bool zero = t->variant % 2;
	start(t, zero ? 4 : 2, 1);
	between(t, 0, OM_UINT8, w->x, 0, 200);
	between(t, 1, t->variant % 3 ? OM_INT8 : OM_UINT8, w->w, 0, 100);
	if (zero) {
		steer(t, 2, OM_UINT8, SCALAR, (double[]){7});
		steer(t, 3, t->variant % 3 ? OM_INT8 : OM_UINT8, SCALAR, (double[]){3});
	}
	window_attrs(t, w);
	all_axes(t, "dilations", w, 1, w->dilation);
	INT(t, "group", w->group);
	return true;
}

static bool
qlinear_conv(struct trial *t)
{
	if (t->variant >= 2 * LENGTH(windows))
		return false;
	const struct window *w = &windows[t->variant / 2];
	const om_dtype type = t->variant % 2 ? OM_INT8 : OM_UINT8;
	start(t, 9, 1);
	between(t, 0, type, w->x, 0, 100);
	quantized(t, 1, type);
	between(t, 3, type, w->w, 0, 100);
	quantized(t, 4, type);
	quantized(t, 6, type);
	give(t, 8, OM_INT32, SHAPE(w->w.dim[0]));
	window_attrs(t, w);
	all_axes(t, "dilations", w, 1, w->dilation);
	INT(t, "group", w->group);
	return true;
}

static bool
pool(struct trial *t)
{
	om_dtype type;
	size_t at;

	if (!pick(t, LENGTH(windows), &type, &at))
		return false;
	struct window w = windows[at];
	if (w.pad >= w.w.dim[2])
		w.pad = w.w.dim[2] - 1;
	const bool max = strcmp(t->row->name, "MaxPool") == 0;
	start(t, 1, max && t->version >= 8 && t->variant % 2 ? 2 : 1);
	give(t, 0, type, w.x);
	window_attrs(t, &w);
	if (t->version >= 10 && strcmp(t->row->name, "LpPool") != 0)
		INT(t, "ceil_mode", t->variant % 3 == 0);
	if (t->version >= 7 && strcmp(t->row->name, "AveragePool") == 0)
		INT(t, "count_include_pad", t->variant / 2 % 2);
	return true;
}

static bool
global_pool(struct trial *t)
{
	om_dtype type;
	size_t at;

	if (!pick(t, LENGTH(windows), &type, &at))
		return false;
	start(t, 1, 1);
	give(t, 0, type, windows[at].x);
	return true;
}

static bool
max_unpool(struct trial *t)
{
	if (t->variant >= 1)
		return false;
	start(t, 2, 1);
	give(t, 0, OM_FLOAT32, SHAPE(1, 1, 2, 2));
	steer(t, 1, OM_INT64, SHAPE(1, 1, 2, 2), (double[]){1, 3, 8, 15});
	INTS(t, "kernel_shape", 2, 2);
	INTS(t, "strides", 2, 2);
	return true;
}

static bool
roi_align(struct trial *t)
{
	if (t->variant >= 2)
		return false;
	start(t, 3, 1);
	give(t, 0, OM_FLOAT32, SHAPE(2, 3, 10, 10));
	steer(t, 1, OM_FLOAT32, SHAPE(2, 4), (double[]){0, 0, 4, 5, 2, 3, 9, 8});
	steer(t, 2, OM_INT64, SHAPE(2), (double[]){0, 1});
	INT(t, "output_height", 3);
	INT(t, "output_width", 2);
	TEXT(t, "mode", t->variant ? "max" : "avg");
	return true;
}

static bool
max_roi_pool(struct trial *t)
{
	if (t->variant >= 1)
		return false;
	start(t, 2, 1);
	give(t, 0, OM_FLOAT32, SHAPE(2, 3, 10, 10));
	steer(t, 1, OM_FLOAT32, SHAPE(2, 5), (double[]){0, 0, 0, 4, 5, 1, 2, 3, 9, 8});
	INTS(t, "pooled_shape", 2, 2);
	return true;
}

/* ---- Normalizations. ---- */

static bool
batch_norm(struct trial *t)
{
	om_dtype type;
	size_t at;

	if (!pick(t, 2, &type, &at))
		return false;
	start(t, 5, 1);
	give(t, 0, type, at ? SHAPE(2, 3, 5, 7) : SHAPE(4, 3));
	for (uint32_t k = 1; k < 5; k++)
		between(t, k, type, SHAPE(3), 0.5, 2);
	if (t->version < 7)
		INT(t, "is_test", 1);
	return true;
}

static bool
scaled_norm(struct trial *t)
{
	const bool group = strcmp(t->row->name, "GroupNormalization") == 0;
	om_dtype type;
	size_t at;

	if (!pick(t, 2, &type, &at))
		return false;
	start(t, 3, 1);
	give(t, 0, type, at ? SHAPE(2, 4, 5, 7) : SHAPE(2, 4, 6));
	const om_shape c = group && t->version < 21 ? SHAPE(2) : SHAPE(4);
	give(t, 1, type, c);
	give(t, 2, type, c);
	if (group)
		INT(t, "num_groups", 2);
	return true;
}

static bool
layer_norm(struct trial *t)
{
	const bool rms = strcmp(t->row->name, "RMSNormalization") == 0;
	om_dtype type;
	size_t at;

	if (!pick(t, 4, &type, &at))
		return false;
	start(t, rms || at == 3 ? 2 : 3, rms ? 1 : 1 + 2 * (t->variant % 2));
	give(t, 0, type, SHAPE(2, 3, 40));
	const om_shape scale = at == 2 ? SHAPE(3, 40) : SHAPE(40);
	give(t, 1, type, scale);
	if (t->op->nin > 2)
		give(t, 2, type, scale);
	INT(t, "axis", at == 2 ? 1 : -1);
	return true;
}

static bool
plain_norm(struct trial *t)
{
	om_dtype type;
	size_t at;

	if (!pick(t, 2, &type, &at))
		return false;
	start(t, 1, 1);
	give(t, 0, type, SHAPE(2, 5, 4, 3));
	if (strcmp(t->row->name, "LRN") == 0)
		INT(t, "size", at ? 3 : 4);
	if (strcmp(t->row->name, "LpNormalization") == 0) {
		INT(t, "axis", at ? 1 : -1);
		INT(t, "p", at ? 1 : 2);
	}
	return true;
}

/* ---- Resize. ---- */

static bool
resize(struct trial *t)
{
	static const char *const modes[] = {"nearest", "linear", "cubic"};
	om_dtype type;
	size_t at;

	if (!pick(t, 4, &type, &at))
		return false;
	const bool old = t->version < 11;
	start(t, old ? 2 : at == 3 ? 4 : 3, 1);
	give(t, 0, type, SHAPE(1, 2, 5, 6));
	if (at == 3 && !old)
		STEER(t, 3, 1, 2, 8, 3);
	else
		steer(t, old ? 1 : 2, OM_FLOAT32, SHAPE(4), (double[]){1, 1, 2, at == 1 ? 0.5 : 1.5});
	if (t->version == 11 || t->version == 12)
		steer(t, 1, OM_FLOAT32, SHAPE(0), NULL);
	if (t->version == 11 && at == 3)
		steer(t, 2, OM_FLOAT32, SHAPE(0), NULL);
	TEXT(t, "mode", modes[old ? at % 2 : at % 3]);
	if (t->version >= 11 && t->variant % 2)
		TEXT(t, "coordinate_transformation_mode", "align_corners");
	return true;
}

static bool
upsample(struct trial *t)
{
	if (t->variant >= 2)
		return false;
	start(t, t->version < 9 ? 1 : 2, 1);
	give(t, 0, OM_FLOAT32, SHAPE(1, 2, 3, 4));
	if (t->version < 7) {
		FLOAT(t, "height_scale", 2);
		FLOAT(t, "width_scale", 3);
	} else if (t->version < 9) {
		om_op_add_attr(t->prog, t->op, &(om_attr){.name = "scales", .kind = OM_ATTR_FLOATS, .n = 4,
			.f = (float[]){1, 1, 2, 3}});
	} else {
		steer(t, 1, OM_FLOAT32, SHAPE(4), (double[]){1, 1, 2, 3});
	}
	TEXT(t, "mode", t->variant ? t->version < 7 ? "bilinear" : "linear" : "nearest");
	return true;
}

static bool
grid_sample(struct trial *t)
{
	if (t->variant >= 2)
		return false;
	start(t, 2, 1);
	give(t, 0, OM_FLOAT32, SHAPE(1, 2, 5, 6));
	between(t, 1, OM_FLOAT32, SHAPE(1, 3, 4, 2), -1.2, 1.2);
	INT(t, "align_corners", t->variant);
	return true;
}

/* ---- Recurrent. ---- */

static bool
recurrent(struct trial *t)
{
	static const char *const ways[] = {"forward", "reverse", "bidirectional"};
	const int64_t gates = t->row->name[0] == 'L' ? 4 : t->row->name[0] == 'G' ? 3 : 1;
	const bool lstm = gates == 4;
	const int64_t seq = 4, batch = 2, input = 3, hidden = 5;

	if (t->variant >= 9)
		return false;
	const size_t way = t->variant % 3;
	const int64_t dirs = way == 2 ? 2 : 1;
	const bool full = t->variant >= 3, lengths = t->variant >= 6;
	start(t, full ? lstm ? 8 : 6 : 3, lstm ? 3 : 2);
	give(t, 0, OM_FLOAT32, SHAPE(seq, batch, input));
	between(t, 1, OM_FLOAT32, SHAPE(dirs, gates * hidden, input), -0.5, 0.5);
	between(t, 2, OM_FLOAT32, SHAPE(dirs, gates * hidden, hidden), -0.5, 0.5);
	if (full)
		give(t, 3, OM_FLOAT32, SHAPE(dirs, 2 * gates * hidden));
	if (lengths)
		steer(t, 4, OM_INT32, SHAPE(batch), (double[]){4, 2});
	if (full)
		give(t, 5, OM_FLOAT32, SHAPE(dirs, batch, hidden));
	if (full && lstm) {
		give(t, 6, OM_FLOAT32, SHAPE(dirs, batch, hidden));
		give(t, 7, OM_FLOAT32, SHAPE(dirs, 3 * hidden));
	}
	TEXT(t, "direction", ways[way]);
	INT(t, "hidden_size", hidden);
	if (gates == 3 && full)
		INT(t, "linear_before_reset", !lengths);
	if (gates == 1 && lengths)
		om_op_add_attr(t->prog, t->op, &(om_attr){.name = "activations", .kind = OM_ATTR_STRINGS, .n = (size_t)dirs,
			.s = (om_string[]){{"Sigmoid", 7}, {"Affine", 6}}});
	return true;
}

/* ---- Quantization. ---- */

static bool
quantize(struct trial *t)
{
	static const om_dtype types[] = {OM_UINT8, OM_INT8, OM_UINT16, OM_INT16};

	if (t->variant >= 2 * LENGTH(types))
		return false;
	const om_dtype type = types[t->variant / 2];
	const bool axis = t->variant % 2 && t->version >= 13;
	start(t, 3, 1);
	give(t, 0, OM_FLOAT32, SHAPE(2, 3, 5));
	between(t, 1, OM_FLOAT32, axis ? SHAPE(3) : SCALAR, 0.01, 0.1);
	between(t, 2, type, axis ? SHAPE(3) : SCALAR, 0, 10);
	if (axis)
		INT(t, "axis", 1);
	return true;
}

static bool
dequantize(struct trial *t)
{
	static const om_dtype types[] = {OM_UINT8, OM_INT8, OM_INT32};

	if (t->variant >= 2 * LENGTH(types))
		return false;
	const om_dtype type = types[t->variant / 2];
	const bool axis = t->variant % 2 && t->version >= 13;
	start(t, type == OM_INT32 ? 2 : 3, 1);
	give(t, 0, type, SHAPE(2, 3, 5));
	between(t, 1, OM_FLOAT32, axis ? SHAPE(3) : SCALAR, 0.01, 0.1);
	if (type != OM_INT32)
		between(t, 2, type, axis ? SHAPE(3) : SCALAR, 0, 10);
	if (axis)
		INT(t, "axis", 1);
	return true;
}

static bool
dynamic_quantize(struct trial *t)
{
	if (t->variant >= 1)
		return false;
	start(t, 1, 3);
	give(t, 0, OM_FLOAT32, SHAPE(3, 7));
	return true;
}

/* ---- The list. ---- */

static const struct recipe recipes[] = {
	{"ArgMax", arg}, {"ArgMin", arg},
	{"AveragePool", pool},
	{"BatchNormalization", batch_norm},
	{"Bernoulli", random_like},
	{"BitShift", bit_shift},
	{"Cast", cast}, {"CastLike", cast_like},
	{"Clip", clip},
	{"Compress", compress},
	{"Concat", concat},
	{"Constant", constant}, {"ConstantOfShape", constant_of_shape},
	{"Conv", conv}, {"ConvInteger", conv_integer}, {"ConvTranspose", conv_transpose},
	{"CumSum", cumsum},
	{"DepthToSpace", depth}, {"SpaceToDepth", depth},
	{"DequantizeLinear", dequantize},
	{"Dropout", dropout},
	{"DynamicQuantizeLinear", dynamic_quantize},
	{"Einsum", einsum},
	{"Expand", expand},
	{"EyeLike", eye_like},
	{"Flatten", flatten},
	{"GRU", recurrent}, {"LSTM", recurrent}, {"RNN", recurrent},
	{"Gather", gather}, {"GatherElements", gather}, {"GatherND", gather_nd},
	{"Gemm", gemm},
	{"GlobalAveragePool", global_pool}, {"GlobalLpPool", global_pool}, {"GlobalMaxPool", global_pool},
	{"GridSample", grid_sample},
	{"GroupNormalization", scaled_norm}, {"InstanceNormalization", scaled_norm},
	{"Hardmax", along_axis}, {"LogSoftmax", along_axis}, {"Softmax", along_axis},
	{"Identity", identity}, {"ToDevice", identity}, {"ToHost", identity},
	{"LRN", plain_norm}, {"LpNormalization", plain_norm}, {"MeanVarianceNormalization", plain_norm},
	{"LayerNormalization", layer_norm}, {"RMSNormalization", layer_norm},
	{"LpPool", pool},
	{"MatMul", matmul}, {"MatMulInteger", matmul_integer},
	{"MaxPool", pool}, {"MaxRoiPool", max_roi_pool}, {"MaxUnpool", max_unpool},
	{"Mod", mod},
	{"Multinomial", random_like},
	{"NonMaxSuppression", suppression},
	{"NonZero", nonzero},
	{"OneHot", one_hot},
	{"PRelu", prelu},
	{"Pad", pad},
	{"Pow", power},
	{"QLinearConv", qlinear_conv}, {"QLinearMatMul", qlinear_matmul},
	{"QuantizeLinear", quantize},
	{"RandomNormal", random_shape}, {"RandomUniform", random_shape},
	{"RandomNormalLike", random_like}, {"RandomUniformLike", random_like},
	{"Range", range},
	{"ReduceL1", reduce}, {"ReduceL2", reduce}, {"ReduceLogSum", reduce}, {"ReduceLogSumExp", reduce},
	{"ReduceMax", reduce}, {"ReduceMean", reduce}, {"ReduceMin", reduce}, {"ReduceProd", reduce},
	{"ReduceSum", reduce}, {"ReduceSumSquare", reduce},
	{"Reshape", reshape},
	{"Resize", resize}, {"Upsample", upsample},
	{"ReverseSequence", reverse},
	{"RoiAlign", roi_align},
	{"Scatter", scatter}, {"ScatterElements", scatter}, {"ScatterND", scatter_nd},
	{"Shape", shape}, {"Size", identity},
	{"Slice", slice},
	{"Split", split},
	{"Squeeze", squeeze}, {"Unsqueeze", unsqueeze},
	{"Tile", tile},
	{"TopK", topk},
	{"Transpose", transpose},
	{"Trilu", trilu},
	{"Unique", unique},
	{"Where", where},
};

static const struct { const char *name, *reason; } excuses[] = {
	{"If", "its bodies are run by the executor"},
	{"Loop", "its body is run by the executor"},
	{"Scan", "its body is run by the executor"},
	{"Send", "it needs another rank: tests/dist/ranks.c runs it"},
	{"Recv", "it needs another rank: tests/dist/ranks.c runs it"},
	{"SequenceMap", "its body is run by the executor"},
};

recipe_fn *
recipe_of(const om_opdef *row)
{
	recipe_fn *text = text_recipe_of(row);

	if (is_of_shared_name(row))
		return text;
	for (size_t k = 0; k < LENGTH(recipes); k++)
		if (strcmp(recipes[k].name, row->name) == 0)
			return recipes[k].make;
	return text ? text : row->flags & OM_POINTWISE ? pointwise : NULL;
}

const char *
excuse_of(const om_opdef *row)
{
	for (size_t k = 0; k < LENGTH(excuses); k++)
		if (strcmp(excuses[k].name, row->name) == 0)
			return excuses[k].reason;
	if (row->flags & OM_NON_TENSOR && !recipe_of(row))
		return "its values are no tensors: tests/unit/objects.c runs it";
	return NULL;
}

bool
is_row_wanted(const om_opdef *row, int argc, char **argv)
{
	for (int k = 1; k < argc; k++)
		if (strcmp(argv[k], row->name) == 0)
			return true;
	return argc == 1;
}
