/* SPDX-License-Identifier: Apache-2.0 */
/* fuse-epilogue: what follows a lowered product is a part of it.
 *
 * Kernels of org.onnxmem.cpu finish each tile of the output while it is in registers: they add a bias per channel,
 * then a residual, and apply an activation.  An addition or an activation that is the only reader of a product
 * becomes an operand or an attribute of it.  The fused op computes its output over the residual where that dies. */
#include <config.h>

#include <string.h>

#include "base/shape.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "lower/expand_depthwise.h"
#include "lower/layout.h"
#include "onnxmem/pass.h"
#include "opdef/op_context.h"
#include "opdef/rewrite_internal.h"

/* Inputs of the lowered ops. */
enum { X, PACKED, BIAS, RESIDUAL };

/* ---- What can be fused. ---- */

static bool
is_product(const om_op *op)
{
	return op && strcmp(op->domain, OM_CPU_DOMAIN) == 0 && (strcmp(op->type, "Conv") == 0 || strcmp(op->type, "MatMul") == 0
	    || strcmp(op->type, "DepthwiseConv") == 0 || strcmp(op->type, "GroupedConv") == 0
	    || strcmp(op->type, "ConvTranspose") == 0);
}

/* Depthwise and narrow grouped convolutions take no residual. */
static bool
takes_residual(const om_op *op)
{
	return strcmp(op->type, "Conv") == 0 || strcmp(op->type, "MatMul") == 0;
}

static bool
is_active(const om_op *op)
{
	return om_attr_has(op, "activation");
}

/* The product that computes `v`, if `op`, in the same block, is the only reader. */
static om_op *
product_of(const om_value *v, const om_op *op)
{
	return v && v->nuse == 1 && is_product(v->def) && v->def->block == op->block && !is_active(v->def) ? v->def : NULL;
}

/* ---- Replacing. ---- */

struct fuse {
	om_run *r;
	om_prog *p;
};

/* Move the product to the place of `op`, whose output it computes from now on. */
static void
take_over(om_op *product, om_op *op)
{
	om_value *y = op->out[0];

	op->out[0] = NULL;
	y->def = NULL;
	om_op_remove(product);
	product->out[0] = NULL;
	om_op_insert(op, product);
	product->index = op->index;
	om_op_remove(op);
	om_op_set_out(product, 0, y);
}

static void
set_input(struct fuse *f, om_op *op, uint32_t k, om_value *v)
{
	om_value *in[RESIDUAL + 1] = {NULL};

	for (uint32_t i = 0; i < op->nin; i++)
		in[i] = op->in[i];
	in[k] = v;
	om_op_set_inputs(f->p, op, op->nin > k + 1 ? op->nin : k + 1, in);
}

/* ---- Activations. ---- */

static bool
float_const(const om_value *v, float *is)
{
	if (!v || !v->data || !v->data->data || v->is_overridable || v->data->type != OM_FLOAT32
	    || om_shape_count(&v->data->shape) != 1)
		return false;
	*is = *(const float *)v->data->data;
	return true;
}

/* Relu6 and the like: bounds from attributes or from inputs, each of which may be absent. */
static bool
clip_bounds(const om_op *op, float *low, float *high)
{
	*low = -3.402823466e38f;
	*high = 3.402823466e38f;
	if (op->version < 11) {
		*low = om_attr_has(op, "min") ? om_attr_float(op, "min") : *low;
		*high = om_attr_has(op, "max") ? om_attr_float(op, "max") : *high;
		return true;
	}
	return (!om_op_input(op, 1) || float_const(op->in[1], low)) && (!om_op_input(op, 2) || float_const(op->in[2], high));
}

struct activation {
	const char *domain, *type; /* of the op; the attribute has the name of the operator */
	bool has_alpha, has_beta;
};

static const struct activation activations[] = {
	{"", "Relu", false, false},
	{"", "HardSwish", false, false},
	{"", "HardSigmoid", true, true},
	{"", "Sigmoid", false, false},
	{"", "Tanh", false, false},
	{"", "LeakyRelu", true, false},
	{"", "Elu", true, false},
	{"", "Gelu", false, false},
	{"com.microsoft", "Gelu", false, false},
	{OM_CPU_DOMAIN, "Silu", false, false},
};

static const struct activation *
activation_of(const om_op *op)
{
	for (size_t k = 0; k < sizeof activations / sizeof activations[0]; k++)
		if (strcmp(op->type, activations[k].type) == 0 && strcmp(op->domain, activations[k].domain) == 0)
			return &activations[k];
	return NULL;
}

static void
set_activation(struct fuse *f, om_op *product, const char *name, const float *alpha, const float *beta)
{
	om_op_add_string(f->p, product, "activation", name);
	if (alpha)
		om_op_add_float(f->p, product, "alpha", *alpha);
	if (beta)
		om_op_add_float(f->p, product, "beta", *beta);
}

static bool
fuse_activation(struct fuse *f, om_op *op)
{
	om_op *product = op->nin ? product_of(op->in[0], op) : NULL;
	const struct activation *a = activation_of(op);
	float low, high;

	if (!product)
		return false;
	if (strcmp(op->type, "Clip") == 0 && *op->domain == '\0' && clip_bounds(op, &low, &high)) {
		set_activation(f, product, "Clip", &low, &high);
	} else if (a) {
		const bool tanh = strcmp(op->type, "Gelu") == 0 && om_attr_is(op, "approximate", "tanh");
		const float alpha = a->has_alpha ? om_attr_float(op, "alpha") : 0, beta = a->has_beta ? om_attr_float(op, "beta") : 0;
		set_activation(f, product, tanh ? "GeluTanh" : op->type, a->has_alpha ? &alpha : NULL, a->has_beta ? &beta : NULL);
	} else {
		return false;
	}
	take_over(product, op);
	om_count(f->r, "activations", 1);
	return true;
}

/* ---- Additions. ---- */

/* One element for each channel, along the last axis. */
static bool
is_per_channel(const om_value *v, const om_value *y)
{
	const int64_t n = y->shape.dim[y->shape.rank - 1];

	return om_lower_is_float(v) && v->shape.rank >= 1 && v->shape.rank <= y->shape.rank && om_shape_count(&v->shape) == n
	    && v->shape.dim[v->shape.rank - 1] == n;
}

/* A list of the elements of `v`, which is per channel. */
static om_status
as_list(struct fuse *f, om_op *op, om_value *v, om_value **out)
{
	struct om_layout l = {.session = f->r->session, .p = f->p, .mem = f->r->scratch};
	const int64_t n = om_shape_count(&v->shape);

	*out = v;
	if (v->shape.rank == 1)
		return OM_OK;
	om_value *in[] = {v, om_lower_ints(&l, op->block, om_printf(l.mem, "%s_shape", v->name), 1, &n)};
	return om_lower_insert(&l, op, om_lower_op(&l, "", "Reshape", 14, 2, in), om_printf(l.mem, "%s_list", v->name), out);
}

static om_status
fuse_add(struct fuse *f, om_op *op, uint32_t k, bool *done)
{
	om_op *product = product_of(op->in[k], op);
	om_value *other = op->in[1 - k], *list;
	const om_value *y = op->out[0];

	if (!product || !om_lower_is_float(other) || !om_shape_equal(&op->in[k]->shape, &y->shape))
		return OM_OK;
	if (!om_op_input(product, BIAS) && !om_op_input(product, RESIDUAL) && om_lower_is_const(other) && is_per_channel(other, y)) {
		OM_TRY(as_list(f, op, other, &list));
		take_over(product, op);
		set_input(f, product, BIAS, list);
		om_count(f->r, "biases", 1);
	} else if (takes_residual(product) && !om_op_input(product, RESIDUAL) && om_shape_equal(&other->shape, &y->shape)) {
		take_over(product, op);
		set_input(f, product, RESIDUAL, other);
		om_count(f->r, "residuals", 1);
	} else {
		return OM_OK;
	}
	*done = true;
	return OM_OK;
}

/* Of two products, the later one takes the other as its residual. */
static om_status
fuse_addition(struct fuse *f, om_op *op, bool *done)
{
	const om_op *a = op->in[0] ? op->in[0]->def : NULL, *b = op->in[1] ? op->in[1]->def : NULL;
	const uint32_t first = a && b && is_product(a) && is_product(b) && b->index > a->index ? 1 : 0;

	OM_TRY(fuse_add(f, op, first, done));
	return *done ? OM_OK : fuse_add(f, op, 1 - first, done);
}

static bool
is_addition(const om_op *op)
{
	return *op->domain == '\0' && op->nin == 2 && (strcmp(op->type, "Add") == 0 || strcmp(op->type, "Sum") == 0);
}

static om_status
fuse_op(struct fuse *f, om_op *op)
{
	bool done = false;

	if (is_addition(op))
		return fuse_addition(f, op, &done);
	fuse_activation(f, op);
	return OM_OK;
}

/* A depthwise convolution takes the product that it alone reads. */
static om_status
expand_op(struct fuse *f, om_op *op)
{
	bool done;

	OM_TRY(om_expand_depthwise(f->r->session, f->p, op, &done));
	om_count(f->r, "expansions", done);
	return OM_OK;
}

/* ---- The walk. ---- */

static om_status
walk(struct fuse *f, om_block *b, om_status (*visit)(struct fuse *f, om_op *op))
{
	for (om_op *op = b->first, *next; op; op = next) {
		next = op->next;
		for (uint32_t k = 0; k < op->nbody; k++)
			OM_TRY(walk(f, op->body[k], visit));
		if (op->opdef && !op->is_folded && op->nout == 1 && op->out[0])
			OM_TRY(visit(f, op));
	}
	return OM_OK;
}

static om_status
run(om_run *r, om_prog *p)
{
	struct fuse f = {r, p};

	om_timeline(p);
	OM_TRY(walk(&f, p->first, fuse_op));
	return walk(&f, p->first, expand_op);   /* when products have their activations */
}

static const om_pass_counter counters[] = {
	{"biases", "additions of a constant per channel"},
	{"residuals", "additions of another value"},
	{"activations", "activations"},
	{"expansions", "products that a depthwise convolution computes by lines"},
	{0}
};

OM_PASS(
	.name = "fuse-epilogue",
	.brief = "make biases, residuals and activations a part of products",
	.needs = OM_HAS_INLINE | OM_HAS_SHAPES | OM_HAS_CONST,
	.keeps = OM_HAS_INLINE | OM_HAS_SHAPES,
	.counters = counters,
	.by_sizes = true,
	.run = run)
