/* SPDX-License-Identifier: Apache-2.0 */
/* Values, ops, and layers that do not mind what the axes are. */
#include <config.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "base/rng.h"
#include "nn/nn_internal.h"
#include "opdef/fold.h"
#include "opdef/op_context.h"

struct om_nn {
	om_session *s;
	om_prog *p;
	uint64_t seed;
	om_status status;
};

/* ---- Errors. ---- */

om_value *
om_nn_fail(om_nn *n, om_status st, const char *fmt, ...)
{
	char text[512];
	va_list args;

	if (n->status != OM_OK)
		return NULL;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	n->status = om_fail(n->s, st, "%s", text);
	return NULL;
}

bool
om_nn_is_lost(const om_nn *n, const om_value *x)
{
	return n->status != OM_OK || !x;
}

int64_t
om_nn_size(om_nn *n, const om_value *x, int rank, int axis, const char *what)
{
	char text[256];

	if (om_nn_is_lost(n, x))
		return -1;
	const om_shape *shape = &x->shape;
	const int at = axis < 0 ? shape->rank + axis : axis;
	if ((rank && shape->rank != rank) || at < 0 || at >= shape->rank || shape->dim[at] < 1) {
		om_nn_fail(n, OM_SHAPE, "%s: %s has the shape %s, of which axis %d must be known%s", what, x->name,
			om_shape_text(shape, text, sizeof text), axis, rank == 4 ? ", and four axes" : rank == 3 ? ", and three axes" : "");
		return -1;
	}
	return shape->dim[at];
}

bool
om_nn_is_count(om_nn *n, int64_t number, const char *what)
{
	if (number < 1)
		om_nn_fail(n, OM_USAGE, "%s is at least 1, not %lld", what, (long long)number);
	return n->status == OM_OK && number >= 1;
}

/* ---- The net. ---- */

struct start {
	om_session *s;
	om_prog *p;
	uint64_t seed;
	om_nn *n;
};

static om_status
start(void *arg)
{
	struct start *t = arg;

	if (!t->p->first)
		return om_fail(t->s, OM_USAGE, "the program has no graph that a net could be built in");
	t->n = OM_NEW(t->p->mem, om_nn);
	*t->n = (om_nn){.s = t->s, .p = t->p, .seed = t->seed};
	return OM_OK;
}

om_status
om_nn_new(om_session *s, om_prog *p, uint64_t seed, om_nn **out)
{
	struct start t = {s, p, seed, NULL};
	const om_status st = om_guarded(s, start, &t);

	*out = t.n;
	return st;
}

om_status
om_nn_end(om_nn *n)
{
	return n->status != OM_OK ? n->status : om_verify(n->s, n->p);
}

/* ---- Building, which may run out of memory. ---- */

struct build {
	om_nn *n;
	const char *name;
	om_dtype type;
	int rank;
	const int64_t *dim;
	const void *data;
	double bound, offset;
	const om_attr *attrs;
	size_t nin, nout;
	om_value *const *in;
	om_value **out;
	om_value *v;
};

static om_value *
guarded(struct build *b, om_status (*make)(void *arg))
{
	if (b->n->status == OM_OK)
		b->n->status = om_guarded(b->n->s, make, b);
	return b->n->status == OM_OK ? b->v : NULL;
}

static om_status
check_shape(const struct build *b)
{
	if (b->rank < 0 || b->rank > OM_MAX_RANK)
		return om_fail(b->n->s, OM_USAGE, "%s has %d axes, and at most %d are possible", b->name, b->rank, OM_MAX_RANK);
	return OM_OK;
}

static om_status
make_input(void *arg)
{
	struct build *b = arg;

	OM_TRY(check_shape(b));
	if (om_value_find(b->n->p->first, b->name))
		return om_fail(b->n->s, OM_USAGE, "the graph has a value %s already", b->name);
	b->v = om_value_fresh(b->n->p, b->n->p->first, b->name);
	b->v->type = (om_type){.kind = OM_TENSOR, .elem = b->type};
	b->v->shape = om_shape_of(b->rank, b->dim);
	b->v->is_declared = true;
	om_block_add_param(b->n->p->first, b->v);
	return OM_OK;
}

om_value *
om_nn_input(om_nn *n, const char *name, om_dtype type, int rank, const int64_t *dim)
{
	struct build b = {.n = n, .name = name, .type = type, .rank = rank, .dim = dim};

	return guarded(&b, make_input);
}

static om_tensor *
tensor_of(const struct build *b, uint64_t *bytes)
{
	om_tensor *t = OM_NEW(b->n->p->mem, om_tensor);

	t->type = b->type;
	t->shape = om_shape_of(b->rank, b->dim);
	return om_tensor_bytes(b->type, &t->shape, bytes) ? t : NULL;
}

static om_status
make_constant(void *arg)
{
	struct build *b = arg;
	uint64_t bytes;

	OM_TRY(check_shape(b));
	om_tensor *t = tensor_of(b, &bytes);
	if (!t)
		return om_fail(b->n->s, OM_SHAPE, "the size of %s is not known, or overflows", b->name);
	t->data = om_memdup(b->n->p->mem, b->data, bytes);
	b->v = om_const_new(b->n->p, b->n->p->first, om_value_fresh(b->n->p, b->n->p->first, b->name)->name, t);
	return OM_OK;
}

static om_status
make_weight(void *arg)
{
	struct build *b = arg;
	uint64_t bytes;

	OM_TRY(check_shape(b));
	om_tensor *t = tensor_of(b, &bytes);
	if (!t)
		return om_fail(b->n->s, OM_SHAPE, "the size of weight %s is not known, or overflows", b->name);
	float *x = OM_NEWN(b->n->p->mem, float, (size_t)(bytes / sizeof(float)) + 1);
	for (int64_t k = 0; k < om_shape_count(&t->shape); k++)
		x[k] = (float)(b->offset + (b->bound > 0 ? (2 * om_rng_unit(&b->n->seed) - 1) * b->bound : 0));
	t->data = x;
	b->v = om_const_new(b->n->p, b->n->p->first, om_value_fresh(b->n->p, b->n->p->first, b->name)->name, t);
	return OM_OK;
}

om_value *
om_nn_weight(om_nn *n, const char *stem, int rank, const int64_t *dim, double bound, double offset)
{
	struct build b = {.n = n, .name = stem, .type = OM_FLOAT32, .rank = rank, .dim = dim, .bound = bound, .offset = offset};

	return guarded(&b, make_weight);
}

om_value *
om_nn_list(om_nn *n, size_t count, const int64_t *v)
{
	const int64_t dim = (int64_t)count;
	struct build b = {.n = n, .name = "list", .type = OM_INT64, .rank = 1, .dim = &dim, .data = v};

	return guarded(&b, make_constant);
}

/* A constant tensor that is made. */
struct number {
	om_nn *n;
	om_tensor *t;
	int64_t size;
	double v;
};

static om_status
make_number(void *arg)
{
	struct number *b = arg;
	float *x = OM_NEW(b->n->p->mem, float);

	*x = (float)b->v;
	b->t = OM_NEW(b->n->p->mem, om_tensor);
	*b->t = (om_tensor){.type = OM_FLOAT32, .shape = om_shape_of(0, NULL), .data = x};
	return OM_OK;
}

static om_status
make_mask(void *arg)
{
	struct number *b = arg;
	om_arena *mem = b->n->p->mem;
	uint64_t bytes;

	b->t = OM_NEW(mem, om_tensor);
	*b->t = (om_tensor){.type = OM_FLOAT32, .shape = om_shape_of(4, (int64_t[]){1, 1, b->size, b->size})};
	if (!om_tensor_bytes(b->t->type, &b->t->shape, &bytes))
		return om_fail(b->n->s, OM_SHAPE, "a mask of %lld steps is too large", (long long)b->size);
	float *x = OM_NEWN(mem, float, (size_t)(bytes / sizeof(float)));
	for (int64_t k = 0; k < b->size; k++)
		for (int64_t i = k + 1; i < b->size; i++)
			x[k * b->size + i] = -1e9f;
	b->t->data = x;
	return OM_OK;
}

/* As the value of an op, since it is not a weight. */
static om_value *
constant_op(om_nn *n, struct number b, om_status (*make)(void *arg))
{
	if (n->status == OM_OK)
		n->status = om_guarded(n->s, make, &b);
	if (n->status != OM_OK)
		return NULL;
	const om_attr attrs[] = {{.name = "value", .kind = OM_ATTR_TENSOR, .n = 1, .t = b.t}, {0}};
	return om_nn_op(n, "Constant", attrs, 0, NULL, 1, NULL);
}

om_value *
om_nn_number(om_nn *n, double v)
{
	return constant_op(n, (struct number){.n = n, .v = v}, make_number);
}

om_value *
om_nn_causal_mask(om_nn *n, int64_t size)
{
	return constant_op(n, (struct number){.n = n, .size = size}, make_mask);
}

static om_status
make_op(void *arg)
{
	struct build *b = arg;
	om_prog *p = b->n->p;
	om_op *op = om_op_new(p, "", b->name, 0, (uint32_t)b->nin, (uint32_t)b->nout);

	if (!op->opdef)
		return om_fail(b->n->s, OM_UNSUPPORTED, "%s does not exist in opset %d", b->name, op->version);
	for (const om_attr *a = b->attrs; a && a->name; a++)
		om_op_add_attr(p, op, a);
	for (size_t k = 0; k < b->nin; k++)
		om_op_set_in(op, (uint32_t)k, b->in[k]);
	for (size_t k = 0; k < b->nout; k++)
		om_op_set_out(op, (uint32_t)k, om_value_fresh(p, p->first, b->name));
	om_op_append(p->first, op);
	OM_TRY(om_op_infer(b->n->s, p, op));
	OM_TRY(om_op_fold_shape_arithmetic(b->n->s, p, op));
	if (b->out)
		memcpy(b->out, op->out, b->nout * sizeof *b->out);
	b->v = op->out[0];
	return OM_OK;
}

om_value *
om_nn_op(om_nn *n, const char *type, const om_attr *attrs, size_t nin, om_value *const *in, size_t nout, om_value **out)
{
	struct build b = {.n = n, .name = type, .attrs = attrs, .nin = nin, .in = in, .nout = nout, .out = out};

	if (out)
		memset(out, 0, nout * sizeof *out);
	return guarded(&b, make_op);
}

static om_status
make_output(void *arg)
{
	struct build *b = arg;
	om_prog *p = b->n->p;

	if (om_value_find(p->first, b->name))
		return om_fail(b->n->s, OM_USAGE, "the graph has a value %s already", b->name);
	om_op *op = om_op_new(p, "", "Identity", 0, 1, 1);
	om_op_set_in(op, 0, b->in[0]);
	om_op_set_out(op, 0, om_value_fresh(p, p->first, b->name));
	om_op_append(p->first, op);
	OM_TRY(om_op_infer(b->n->s, p, op));
	om_block_add_result(p->first, op->out[0]);
	return OM_OK;
}

void
om_nn_output(om_nn *n, const char *name, om_value *v)
{
	struct build b = {.n = n, .name = name, .in = &v};

	if (!om_nn_is_lost(n, v))
		guarded(&b, make_output);
}

/* ---- Layers. ---- */

om_value *
om_nn_activation(om_nn *n, om_value *x, const char *type)
{
	return om_nn_is_lost(n, x) ? NULL : type ? om_nn_call(n, type, NULL, x) : x;
}

om_value *
om_nn_linear(om_nn *n, om_value *x, int64_t width)
{
	const int64_t depth = om_nn_size(n, x, 0, -1, "a linear layer");

	if (depth < 0 || !om_nn_is_count(n, width, "the width of a linear layer"))
		return NULL;
	om_value *w = om_nn_weight(n, "linear_w", 2, (int64_t[]){depth, width}, sqrt(3.0 / (double)depth), 0);
	om_value *b = om_nn_weight(n, "linear_b", 1, &width, 0, 0);
	return om_nn_call(n, "Add", NULL, om_nn_call(n, "MatMul", NULL, x, w), b);
}

om_value *
om_nn_mlp(om_nn *n, om_value *x, size_t nlayer, const int64_t *width, const char *activation)
{
	for (size_t k = 0; k < nlayer; k++) {
		x = om_nn_linear(n, x, width[k]);
		if (k + 1 < nlayer)
			x = om_nn_activation(n, x, activation);
	}
	return x;
}

om_value *
om_nn_flat(om_nn *n, om_value *x)
{
	return om_nn_is_lost(n, x) ? NULL : om_nn_call(n, "Flatten", NULL, x);
}

om_value *
om_nn_layer_norm(om_nn *n, om_value *x)
{
	const int64_t width = om_nn_size(n, x, 0, -1, "a layer normalization");

	if (width < 0)
		return NULL;
	om_value *scale = om_nn_weight(n, "norm_w", 1, &width, 0, 1), *bias = om_nn_weight(n, "norm_b", 1, &width, 0, 0);
	return om_nn_call(n, "LayerNormalization", NULL, x, scale, bias);
}

om_value *
om_nn_embedding(om_nn *n, om_value *indices, int64_t count, int64_t width)
{
	if (om_nn_is_lost(n, indices) || !om_nn_is_count(n, count, "the number of rows of a table")
	    || !om_nn_is_count(n, width, "the width of a table"))
		return NULL;
	om_value *table = om_nn_weight(n, "table", 2, (int64_t[]){count, width}, 1, 0);
	return om_nn_call(n, "Gather", NULL, table, indices);
}
