/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include <string.h>

#include "base/shape.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "lower/expand_depthwise.h"
#include "lower/layout.h"
#include "opdef/op_context.h"
#include "opdef/rewrite_internal.h"

/* Inputs of both ops. */
enum { X, PACKED, BIAS, RESIDUAL };

enum {
	LARGE = 384 << 10,        /* bytes: a smaller image stays in a second cache from one op to the next */
	NEAR_WEIGHTS = 64 << 10,  /* bytes of the product's weights, which are read again for every few lines */
};

static bool
is_lowered(const om_op *op, const char *type)
{
	return op && strcmp(op->domain, OM_CPU_DOMAIN) == 0 && strcmp(op->type, type) == 0 && op->nout == 1 && op->out[0];
}

static bool
are_all(const om_op *op, const char *name, int64_t v)
{
	size_t n;
	const int64_t *list = om_attr_ints(op, name, &n);

	for (size_t k = 0; list && k < n; k++)
		if (list[k] != v)
			return false;
	return true;
}

/* A convolution of single pixels by the plain algorithm, without a residual. */
static bool
is_product_of_pixels(const om_op *op)
{
	return is_lowered(op, "Conv") && are_all(op, "kernel_shape", 1) && are_all(op, "strides", 1) && are_all(op, "pads", 0)
	    && om_attr_int(op, "group") == 1 && om_attr_is(op, "algorithm", "gemm")
	    && om_attr_is(op, "input_layout", "channels_last") && !om_op_input(op, RESIDUAL);
}

static bool
pays(const om_op *product)
{
	const om_shape *x = &product->in[X]->shape;

	return om_shape_is_known(x) && om_shape_is_known(&product->out[0]->shape) && x->rank == 4 && x->dim[3] <= OM_MOST_EXPANDED_DEPTH
	    && om_value_bytes(product->out[0]) / (uint64_t)(x->dim[0] > 0 ? x->dim[0] : 1) > LARGE
	    && om_value_bytes(product->in[PACKED]) <= NEAR_WEIGHTS;
}

static bool
is_expanded(const om_op *op)
{
	const om_value *v = is_lowered(op, "DepthwiseConv") ? op->in[X] : NULL;

	return v && v->nuse == 1 && !om_value_is_result(v) && is_product_of_pixels(v->def) && v->def->block == op->block
	    && om_attr_int(op, "channels") == om_attr_int(v->def, "channels") && pays(v->def);
}

/* An attribute of the product under another name. */
static void
take_attrs(om_prog *p, om_op *op, const om_op *product)
{
	const om_string name = om_attr_string(product, "activation");

	if (om_attr_has(product, "activation"))
		om_op_add_string(p, op, "expansion_activation", om_printf(p->mem, "%.*s", (int)name.size, name.data));
	if (om_attr_has(product, "alpha"))
		om_op_add_float(p, op, "expansion_alpha", om_attr_float(product, "alpha"));
	if (om_attr_has(product, "beta"))
		om_op_add_float(p, op, "expansion_beta", om_attr_float(product, "beta"));
}

om_status
om_expand_depthwise(om_session *s, om_prog *p, om_op *op, bool *done)
{
	*done = is_expanded(op);
	if (!*done)
		return OM_OK;
	om_op *product = op->in[X]->def;
	om_value *y = op->out[0], *in[] = {product->in[X], product->in[PACKED], op->in[PACKED], om_op_input(product, BIAS),
		om_op_input(op, BIAS)};
	om_op *both = om_op_new(p, OM_CPU_DOMAIN, "ExpandedDepthwiseConv", 1, 5, 1);

	om_op_set_inputs(p, both, 5, in);
	for (uint32_t k = 0; k < op->nattr; k++)
		om_op_add_attr(p, both, &op->attr[k]);
	take_attrs(p, both, product);
	both->phase = op->phase;
	both->name = op->name;
	op->out[0] = NULL;
	y->def = NULL;
	om_op_insert(op, both);
	both->index = op->index;
	om_op_remove(op);
	om_op_remove(product);
	om_op_set_out(both, 0, y);
	return om_op_infer(s, p, both);
}
