/* SPDX-License-Identifier: Apache-2.0 */
/* fuse-qdq: float ops between dequantization and quantization become ops on quantized tensors.
 *
 * A QuantizeLinear whose input has no other reader, the op that computes that input, and the DequantizeLinear ops of its
 * operands are one operator on bytes: QLinearConv, QLinearMatMul, or one of com.microsoft.  Ops that move or compare
 * elements compute on the bytes if all scales and zero points are equal.  Bounds of an activation become bounds of the
 * bytes, as quantization is monotonic; none are left where saturation has the same effect. */
#include <config.h>

#include <math.h>
#include <string.h>

#include "base/arena_internal.h"
#include "base/shape.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "lower/layout.h"
#include "onnxmem/pass.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "opdef/rewrite_internal.h"

/* ---- Quantized values. ---- */

/* A tensor of bytes or biases, its scale, its zero point (NULL: 0). */
struct quantized {
	om_value *x, *scale, *zero;
};

static bool
is_op(const om_op *op, const char *type)
{
	return op && op->opdef && op->nout >= 1 && op->out[0] && (*op->domain == '\0' || strcmp(op->domain, "com.microsoft") == 0)
	    && strcmp(op->type, type) == 0;
}

static bool
is_type(const om_value *v, om_dtype type)
{
	return v && v->type.kind == OM_TENSOR && v->type.elem == type && om_shape_is_known(&v->shape);
}

/* The elements of a constant; NULL if they are not known. */
static const void *
elements(const om_value *v)
{
	return v && om_lower_is_const(v) && v->data && v->data->data && (!v->data->splat || om_shape_count(&v->shape) == 1)
	    ? v->data->data : NULL;
}

static int64_t
count(const om_value *v)
{
	return om_shape_is_known(&v->shape) ? om_shape_count(&v->shape) : -1;
}

/* Has a scale one element, or one for each index of `axis`? */
static bool
is_scale_along(const om_op *op, int axis)
{
	const om_value *x = op->in[0], *scale = op->in[1];
	int own;

	if (!is_type(scale, OM_FLOAT32) || om_attr_int(op, "block_size"))
		return false;
	if (count(scale) == 1)
		return true;
	return axis >= 0 && scale->shape.rank == 1 && om_axis(om_attr_int(op, "axis"), x->shape.rank, &own) && own == axis
	    && count(scale) == x->shape.dim[axis];
}

/* Is `v` a dequantized tensor of float32?  With `axis` -1 it has one scale. */
static bool
is_dequantized(const om_value *v, int axis, struct quantized *q)
{
	const om_op *op = v ? v->def : NULL;

	if (!is_op(op, "DequantizeLinear") || !om_lower_is_float(v) || !om_shape_is_known(&op->in[0]->shape) || !is_scale_along(op, axis))
		return false;
	*q = (struct quantized){op->in[0], op->in[1], om_op_input(op, 2)};
	return om_lower_is_of_bytes(q->x) || is_type(q->x, OM_INT32);
}

static bool
is_dequantized_bytes(const om_value *v, int axis, struct quantized *q)
{
	return is_dequantized(v, axis, q) && om_lower_is_of_bytes(q->x);
}

static int32_t
zero_of(const om_value *v)
{
	const void *is = elements(v);

	return !is ? 0 : v->data->type == OM_UINT8 ? *(const uint8_t *)is : *(const int8_t *)is;
}

/* Have both the same type, scale and zero point? */
static bool
is_same_scale(const struct quantized *a, const struct quantized *b)
{
	if (a->x->type.elem != b->x->type.elem)
		return false;
	if (a->scale == b->scale && a->zero == b->zero)
		return true;
	const float *x = elements(a->scale), *y = elements(b->scale);
	return x && y && *x == *y && (!a->zero || elements(a->zero)) && (!b->zero || elements(b->zero))
	    && zero_of(a->zero) == zero_of(b->zero);
}

/* ---- Building. ---- */

struct fuse {
	om_run *r;
	struct om_layout l;       /* for the functions that make ops */
	om_op *q;                 /* the QuantizeLinear at hand */
	struct quantized y;       /* its result */
	om_op *op;                /* what computes its input */
	float low, high;          /* bounds of an activation after that */
};

/* The zero point, or a constant 0 where there is none. */
static om_value *
zero_value(struct fuse *f, const struct quantized *q)
{
	static const uint8_t zero;

	return q->zero ? q->zero
		: om_lower_list(&f->l, f->q->block, om_printf(f->l.mem, "%s_zero", q->x->name), q->x->type.elem, 1, &zero);
}

static int32_t
quantized_bound(const struct fuse *f, float x)
{
	return om_quantize(x / *(const float *)elements(f->y.scale), zero_of(f->y.zero), f->y.x->type.elem);
}

/* Are the bounds of the activation known as bytes? */
static bool
has_known_bounds(const struct fuse *f)
{
	const float *scale = elements(f->y.scale);

	return (f->low == -INFINITY && f->high == INFINITY) || (scale && *scale > 0 && (!f->y.zero || elements(f->y.zero)));
}

/* Apply the bounds to the bytes `*v`, if saturation has not. */
static om_status
clip_bytes(struct fuse *f, om_value **v)
{
	const om_dtype type = f->y.x->type.elem;
	int32_t least = 0, most = 0;

	om_quantized_range(type, &least, &most);
	const int32_t low = f->low == -INFINITY ? least : quantized_bound(f, f->low);
	const int32_t high = f->high == INFINITY ? most : quantized_bound(f, f->high);
	if (low == least && high == most)
		return OM_OK;
	const char *name = f->y.x->name;
	const om_shape scalar = om_shape_of(0, NULL);
	om_value *in[] = {*v,
		om_lower_const(&f->l, f->q->block, om_printf(f->l.mem, "%s_least", name), type, &scalar, &(uint8_t){(uint8_t)low}),
		om_lower_const(&f->l, f->q->block, om_printf(f->l.mem, "%s_most", name), type, &scalar, &(uint8_t){(uint8_t)high})};
	return om_lower_insert(&f->l, f->q, om_lower_op(&f->l, "", "Clip", 13, 3, in), om_printf(f->l.mem, "%s_clipped", name), v);
}

/* `op` computes the quantized result. */
static om_status
replace_by(struct fuse *f, om_op *op, const char *counter)
{
	om_value *v, *y = f->q->out[0];

	OM_TRY(om_lower_insert(&f->l, f->q, op, om_printf(f->l.mem, "%s_bytes", y->name), &v));
	op->name = f->op->name;
	OM_TRY(clip_bytes(f, &v));
	om_op *def = v->def;
	f->q->out[0] = def->out[0] = NULL;
	y->def = v->def = NULL;
	om_op_remove(f->q);
	om_op_set_out(def, 0, y);
	om_count(f->r, counter, 1);
	f->q = NULL;
	return OM_OK;
}

/* ---- Convolutions and products. ---- */

/* Is the bias, which is optional, in units of the products? */
static bool
is_bias(const om_value *v, const struct quantized *x, const struct quantized *w, int64_t channels, om_value **bias)
{
	const float *sx = elements(x->scale), *sw = elements(w->scale), *sb;
	struct quantized b;

	*bias = NULL;
	if (!v)
		return true;
	if (!is_dequantized(v, 0, &b) || !is_type(b.x, OM_INT32) || b.x->shape.rank != 1 || count(b.x) != channels || !sx || !sw
	    || !(sb = elements(b.scale)))
		return false;
	const int32_t *zero = b.zero ? elements(b.zero) : NULL;
	for (int64_t k = 0; b.zero && k < count(b.zero); k++)
		if (!zero || zero[k])
			return false;
	for (int64_t k = 0; k < channels; k++) {
		const float is = sb[count(b.scale) == 1 ? 0 : k], wanted = *sx * sw[count(w->scale) == 1 ? 0 : k];
		if (!(fabsf(is - wanted) <= 1e-6f * fabsf(wanted)))
			return false;
	}
	*bias = b.x;
	return true;
}

enum { OPERANDS = 8 };

/* The first inputs of QLinearConv, QLinearMatMul, QLinearAdd and QLinearMul. */
static void
list_operands(struct fuse *f, const struct quantized *a, const struct quantized *b, om_value **in)
{
	om_value *const all[OPERANDS] = {a->x, a->scale, zero_value(f, a), b->x, b->scale, zero_value(f, b), f->y.scale,
		zero_value(f, &f->y)};

	memcpy(in, all, sizeof all);
}

static om_status
fuse_conv(struct fuse *f, const char *type)
{
	const om_value *w_value = f->op->in[1];
	struct quantized x, w;
	om_value *in[OPERANDS + 1], **bias = &in[OPERANDS];

	if (!is_dequantized_bytes(f->op->in[0], -1, &x) || !is_dequantized_bytes(w_value, 0, &w) || !om_lower_is_const(w.x)
	    || w.x->shape.rank < 3 || !is_bias(om_op_input(f->op, 2), &x, &w, w.x->shape.dim[0], bias))
		return OM_OK;
	list_operands(f, &x, &w, in);
	om_op *op = om_lower_op(&f->l, "", type, 10, *bias ? OPERANDS + 1 : OPERANDS, in);
	om_lower_add_attrs(&f->l, op, f->op);
	return replace_by(f, op, "layers");
}

static om_status
fuse_matmul(struct fuse *f, const char *type)
{
	struct quantized a, b;
	om_value *in[OPERANDS];

	if (!is_dequantized_bytes(f->op->in[0], -1, &a) || f->op->in[1]->shape.rank != 2
	    || !is_dequantized_bytes(f->op->in[1], 1, &b) || !om_lower_is_const(b.x))
		return OM_OK;
	list_operands(f, &a, &b, in);
	return replace_by(f, om_lower_op(&f->l, "", type, 10, OPERANDS, in), "layers");
}

static om_status
fuse_gemm(struct fuse *f, const char *type)
{
	const om_op *g = f->op;
	const bool transposed = om_attr_int(g, "transB") != 0;
	struct quantized a, b;
	om_value *bias;

	if (g->version < 7 || om_attr_int(g, "transA") || om_attr_float(g, "alpha") != 1 || (om_op_input(g, 2) && om_attr_float(g, "beta") != 1)
	    || !is_dequantized_bytes(g->in[0], -1, &a) || !is_dequantized_bytes(g->in[1], transposed ? 0 : 1, &b)
	    || !om_lower_is_const(b.x) || a.x->type.elem != f->y.x->type.elem
	    || !is_bias(om_op_input(g, 2), &a, &b, b.x->shape.dim[transposed ? 0 : 1], &bias))
		return OM_OK;
	om_value *in[] = {a.x, a.scale, zero_value(f, &a), b.x, b.scale, zero_value(f, &b), bias, f->y.scale, zero_value(f, &f->y)};
	om_op *op = om_lower_op(&f->l, "com.microsoft", type, 1, 9, in);
	om_op_add_int(f->l.p, op, "transB", transposed);
	return replace_by(f, op, "layers");
}

/* ---- Elementwise ops and pools. ---- */

static om_status
fuse_binary(struct fuse *f, const char *type)
{
	struct quantized a, b;
	om_value *in[OPERANDS];

	if (f->op->version < 7 || !is_dequantized_bytes(f->op->in[0], -1, &a) || !is_dequantized_bytes(f->op->in[1], -1, &b)
	    || a.x->type.elem != b.x->type.elem || a.x->type.elem != f->y.x->type.elem)
		return OM_OK;
	list_operands(f, &a, &b, in);
	return replace_by(f, om_lower_op(&f->l, "com.microsoft", type, 1, OPERANDS, in), "elementwise");
}

static om_status
fuse_average(struct fuse *f, const char *type)
{
	struct quantized x;

	if (!is_dequantized_bytes(f->op->in[0], -1, &x) || x.x->type.elem != f->y.x->type.elem || om_attr_has(f->op, "dilations"))
		return OM_OK;
	om_value *in[] = {x.x, x.scale, zero_value(f, &x), f->y.scale, zero_value(f, &f->y)};
	om_op *op = om_lower_op(&f->l, "com.microsoft", type, 1, 5, in);
	om_lower_add_attrs(&f->l, op, f->op);
	return replace_by(f, op, "pools");
}

/* ---- Ops that move or compare elements. ---- */

/* The same op on bytes: `n` inputs are data. */
static om_status
fuse_moving(struct fuse *f, uint32_t n)
{
	const om_op *like = f->op;
	om_value **in = om_memdup(f->l.mem, like->in, like->nin * sizeof *in);
	struct quantized x;

	if (like->nout != 1 || like->nbody)
		return OM_OK;
	for (uint32_t k = 0; k < n; k++) {
		if (!is_dequantized_bytes(like->in[k], -1, &x) || !is_same_scale(&x, &f->y))
			return OM_OK;
		in[k] = x.x;
	}
	return replace_by(f, om_lower_copy(&f->l, like, like->nin, in), "moved");
}

static om_status
fuse_first(struct fuse *f, const char *type)
{
	(void)type;
	return fuse_moving(f, 1);
}

static om_status
fuse_concat(struct fuse *f, const char *type)
{
	(void)type;
	return fuse_moving(f, f->op->nin);
}

/* Of bytes since version 12. */
static om_status
fuse_max_pool(struct fuse *f, const char *type)
{
	(void)type;
	return f->op->version >= 12 ? fuse_moving(f, 1) : OM_OK;
}

/* ---- The walk. ---- */

/* By operator: the function, and the type of the op on bytes, unless that is the same. */
static const struct {
	const char *type;
	om_status (*fuse)(struct fuse *f, const char *type);
	const char *on_bytes;
} functions[] = {
	{"Conv", fuse_conv, "QLinearConv"},
	{"MatMul", fuse_matmul, "QLinearMatMul"},
	{"Gemm", fuse_gemm, "QGemm"},
	{"Add", fuse_binary, "QLinearAdd"},
	{"Mul", fuse_binary, "QLinearMul"},
	{"GlobalAveragePool", fuse_average, "QLinearGlobalAveragePool"},
	{"AveragePool", fuse_average, "QLinearAveragePool"},
	{"MaxPool", fuse_max_pool, NULL},
	{"Reshape", fuse_first, NULL},
	{"Flatten", fuse_first, NULL},
	{"Squeeze", fuse_first, NULL},
	{"Unsqueeze", fuse_first, NULL},
	{"Transpose", fuse_first, NULL},
	{"Slice", fuse_first, NULL},
	{"Gather", fuse_first, NULL},
	{"Concat", fuse_concat, NULL},
};

static bool
float_const(const om_value *v, float *is)
{
	if (!v)
		return true;
	const float *x = om_lower_is_float(v) && count(v) == 1 ? elements(v) : NULL;
	if (x)
		*is = *x;
	return x != NULL;
}

/* If `op` is an activation that only bounds its input, with this one use, the bounds. */
static bool
is_bounding(struct fuse *f, const om_op *op)
{
	if (!is_op(op, "Relu") && !is_op(op, "Clip"))
		return false;
	f->low = op->type[0] == 'R' ? 0 : -INFINITY;
	f->high = INFINITY;
	if (op->type[0] == 'C' && op->version < 11) {
		f->low = om_attr_has(op, "min") ? om_attr_float(op, "min") : f->low;
		f->high = om_attr_has(op, "max") ? om_attr_float(op, "max") : f->high;
	}
	return op->type[0] == 'R' || op->version < 11 || (float_const(om_op_input(op, 1), &f->low) && float_const(om_op_input(op, 2), &f->high));
}

static om_op *
sole_def(const om_value *v, const om_op *reader)
{
	return v && v->nuse == 1 && om_lower_is_float(v) && v->def && v->def->block == reader->block && !v->def->is_folded ? v->def : NULL;
}

static om_status
fuse_at(om_run *r, om_prog *p, om_op *q)
{
	struct fuse f = {.r = r, .l = {.session = r->session, .p = p, .mem = r->scratch}, .q = q, .low = -INFINITY, .high = INFINITY,
		.y = {q->out[0], q->in[1], om_op_input(q, 2)}};

	if (!om_lower_is_of_bytes(q->out[0]) || !is_type(q->in[1], OM_FLOAT32) || count(q->in[1]) != 1 || om_attr_int(q, "block_size"))
		return OM_OK;
	f.op = sole_def(q->in[0], q);
	if (f.op && is_bounding(&f, f.op))
		f.op = sole_def(f.op->in[0], f.op);
	for (size_t k = 0; f.op && has_known_bounds(&f) && k < sizeof functions / sizeof functions[0]; k++)
		if (is_op(f.op, functions[k].type) && *f.op->domain == '\0')
			return functions[k].fuse(&f, functions[k].on_bytes);
	return OM_OK;
}

/* Quantization of what was dequantized with the same scale. */
static bool
is_pair(const om_op *q)
{
	const struct quantized y = {q->out[0], q->in[1], om_op_input(q, 2)};
	struct quantized x;

	return om_lower_is_of_bytes(y.x) && is_type(y.scale, OM_FLOAT32) && count(y.scale) == 1 && is_dequantized_bytes(q->in[0], -1, &x)
	    && is_same_scale(&x, &y) && x.x->block == y.x->block && !om_value_is_result(y.x);
}

static om_status
fuse_block(om_run *r, om_prog *p, om_block *b)
{
	for (om_op *op = b->first, *next; op; op = next) {
		next = op->next;
		for (uint32_t k = 0; k < op->nbody; k++)
			OM_TRY(fuse_block(r, p, op->body[k]));
		if (!is_op(op, "QuantizeLinear") || op->is_folded)
			continue;
		if (is_pair(op)) {
			om_value_replace(op->out[0], op->in[0]->def->in[0]);
			om_count(r, "pairs", 1);
		} else {
			OM_TRY(fuse_at(r, p, op));
		}
	}
	return OM_OK;
}

static om_status
run(om_run *r, om_prog *p)
{
	OM_TRY(fuse_block(r, p, p->first));
	om_block_delete_dead(p->first);
	return OM_OK;
}

static const om_pass_counter counters[] = {
	{"layers", "convolutions and products"},
	{"elementwise", "sums and products of elements"},
	{"pools", "means over windows"},
	{"moved", "ops that move or compare elements"},
	{"pairs", "dequantizations that were quantized again"},
	{0}
};

OM_PASS(
	.name = "fuse-qdq",
	.brief = "ops between dequantization and quantization compute on bytes",
	.needs = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES,
	.counters = counters,
	.by_sizes = true,
	.run = run)
