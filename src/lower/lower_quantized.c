/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of 8-bit integers: see the table of layout.c.
 *
 * The kernels compute with sums of 32 bits.  The operators add a bias without loss, so that a layer is lowered only if
 * no sum can be larger than that. */
#include <config.h>

#include <math.h>

#include "base/shape.h"
#include "ir/edit.h"
#include "ir/query.h"
#include "lower/layout.h"
#include "opdef/geometry/window.h"
#include "opdef/op_context.h"

/* Inputs of the lowered layers; those of QLinearConv are these in another order. */
enum { X, W, X_SCALE, X_ZERO, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, BIAS, INPUTS };

static const uint32_t places[INPUTS] = {X, X_SCALE, X_ZERO, W, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, BIAS};

/* The largest product of two bytes minus their zero points. */
enum { MOST_PRODUCT = 255 * 255 };

/* The operands of an op whose inputs are those of QLinearConv, of which the first `n` are meant. */
static void
read_operands(const om_op *op, uint32_t n, om_value **in)
{
	for (uint32_t k = 0; k < INPUTS; k++)
		in[places[k]] = k < n ? om_op_input(op, k) : NULL;
}

/* One element, or, if that is allowed, `n` of them in one dim; none are fine, too. */
static bool
is_list(const om_value *v, int64_t n)
{
	if (!v)
		return true;
	if (!om_shape_is_known(&v->shape))
		return false;
	return om_shape_count(&v->shape) == 1 || (om_shape_count(&v->shape) == n && v->shape.rank == 1);
}

/* Does a sum of so many products, with the bias, fit into 32 bits? */
static bool
fits_sum(const om_value *bias, int64_t products)
{
	int64_t most = 0;

	if (products > INT32_MAX / 2 / MOST_PRODUCT)
		return false;
	if (!bias)
		return true;
	if (!om_lower_is_const(bias) || !bias->data || !bias->data->data || bias->data->type != OM_INT32)
		return false;
	const int32_t *b = bias->data->data;
	for (int64_t k = 0; k < (bias->data->splat ? 1 : om_shape_count(&bias->shape)); k++) {
		const int64_t size = b[k] < 0 ? -(int64_t)b[k] : b[k];
		most = size > most ? size : most;
	}
	return most <= INT32_MAX / 2;
}

/* Are the operands of the lowered layer such as the kernels take? */
static bool
takes_operands(om_value *const *in, int64_t channels, int64_t products)
{
	for (uint32_t k = 0; k < INPUTS; k++)
		if (k != X && k != W && !is_list(in[k], k == W_SCALE || k == W_ZERO || k == BIAS ? channels : 1))
			return false;
	return om_lower_is_of_bytes(in[X]) && om_lower_is_of_bytes(in[W]) && om_lower_is_const(in[W]) && om_shape_count(&in[W]->shape) > 0
	    && (in[W_ZERO] || in[W]->type.elem == OM_INT8) && fits_sum(in[BIAS], products);
}

static uint32_t
count_inputs(om_value *const *in)
{
	uint32_t n = INPUTS;

	while (!in[n - 1])
		n--;
	return n;
}

/* ---- Convolutions. ---- */

/* With an input channel for each output channel. */
static bool
is_depthwise(const om_op *op, const om_shape *w)
{
	return om_attr_int(op, "group") > 1 && w->dim[1] == 1 && w->dim[0] == om_attr_int(op, "group");
}

/* A convolution of `in` defines the output of `op`, if the kernels take it. */
static om_status
lower_convolution(struct om_layout *l, om_op *op, om_value **in, bool *done)
{
	om_value *w = in[W], *x = in[X];
	struct om_window window;
	om_form y;

	if (!om_lower_is_of_bytes(x) || !om_lower_is_of_bytes(w) || x->shape.rank != w->shape.rank || om_shape_count(&op->out[0]->shape) == 0
	    || om_attr_int(op, "group") < 1 || !takes_operands(in, w->shape.dim[0], om_shape_count(&w->shape) / w->shape.dim[0])
	    || !om_lower_window(l, op, &w->shape, false, &window))
		return OM_OK;
	const bool depthwise = is_depthwise(op, &w->shape);
	om_op *pack = om_lower_op(l, OM_CPU_DOMAIN, "PackQuantizedFilter", 1, 1, &w);
	om_op_add_int(l->p, pack, "group", depthwise ? 1 : om_attr_int(op, "group"));
	OM_TRY(om_lower_pack(l, op, pack, &in[W]));
	om_lower_channels_last(x->shape.rank, y.axis);
	OM_TRY(om_lower_read(l, op, x, y.axis, &in[X]));
	om_op *conv = om_lower_op(l, OM_CPU_DOMAIN, depthwise ? "QuantizedDepthwiseConv" : "QuantizedConv", 1, count_inputs(in), in);
	om_lower_add_window(l, conv, &window);
	if (!depthwise) {
		om_op_add_int(l->p, conv, "group", om_attr_int(op, "group"));
		om_op_add_int(l->p, conv, "channels", w->shape.dim[0]);
	}
	OM_TRY(om_lower_insert(l, op, conv, om_printf(l->mem, "%s_last", op->out[0]->name), &y.value));
	return om_lower_replace(l, op, &y, &l->n.convolutions, done);
}

om_status
om_lower_qlinear_conv(struct om_layout *l, om_op *op, bool *done)
{
	om_value *in[INPUTS];

	if (*op->domain != '\0' && om_attr_int(op, "channels_last"))
		return OM_OK;
	read_operands(op, INPUTS, in);
	return lower_convolution(l, op, in, done);
}

/* The zero point of the weights `w`, which is a constant 0 where unsigned weights have none: the kernels subtract 128. */
static om_value *
zero_of_weights(struct om_layout *l, om_op *op, const om_value *w, om_value *zero)
{
	if (zero || w->type.elem != OM_UINT8)
		return zero;
	return om_lower_list(l, om_lower_place(w, op)->block, om_printf(l->mem, "%s_zero", w->name), OM_UINT8, 1, &(uint8_t){0});
}

om_status
om_lower_conv_integer(struct om_layout *l, om_op *op, bool *done)
{
	om_value *in[INPUTS] = {[X] = op->in[0], [W] = op->in[1], [X_ZERO] = om_op_input(op, 2)};

	in[W_ZERO] = zero_of_weights(l, op, in[W], om_op_input(op, 3));
	return lower_convolution(l, op, in, done);
}

/* ---- Products. ---- */

/* A product of `in` defines the output of `op`, if the kernels take it. */
static om_status
lower_product(struct om_layout *l, om_op *op, om_value **in, bool is_transposed, bool *done)
{
	om_value *w = in[W];
	om_form y;

	if (!om_lower_is_of_bytes(in[X]) || !om_lower_is_of_bytes(w) || w->shape.rank != 2 || in[X]->shape.rank < 2
	    || om_shape_count(&op->out[0]->shape) == 0)
		return OM_OK;
	const int64_t columns = w->shape.dim[is_transposed ? 0 : 1];
	if (!takes_operands(in, columns, w->shape.dim[is_transposed ? 1 : 0]))
		return OM_OK;
	om_op *pack = om_lower_op(l, OM_CPU_DOMAIN, "PackQuantizedMatrix", 1, 1, &w);
	om_op_add_int(l->p, pack, "transB", is_transposed);
	OM_TRY(om_lower_pack(l, op, pack, &in[W]));
	om_op *product = om_lower_op(l, OM_CPU_DOMAIN, "QuantizedMatMul", 1, count_inputs(in), in);
	om_op_add_int(l->p, product, "columns", columns);
	OM_TRY(om_lower_insert(l, op, product, om_printf(l->mem, "%s_product", op->out[0]->name), &y.value));
	for (int k = 0; k < op->out[0]->shape.rank; k++)
		y.axis[k] = k;
	return om_lower_replace(l, op, &y, &l->n.products, done);
}

om_status
om_lower_qlinear_matmul(struct om_layout *l, om_op *op, bool *done)
{
	om_value *in[INPUTS];

	read_operands(op, INPUTS, in);
	return lower_product(l, op, in, false, done);
}

om_status
om_lower_matmul_integer(struct om_layout *l, om_op *op, bool *done)
{
	om_value *in[INPUTS] = {[X] = op->in[0], [W] = op->in[1], [X_ZERO] = om_op_input(op, 2)};

	in[W_ZERO] = zero_of_weights(l, op, in[W], om_op_input(op, 3));
	return lower_product(l, op, in, false, done);
}

/* A bias is added by another op. */
om_status
om_lower_matmul_integer_to_float(struct om_layout *l, om_op *op, bool *done)
{
	om_value *in[INPUTS] = {[X] = op->in[0], [W] = op->in[1], [X_SCALE] = op->in[2], [W_SCALE] = op->in[3],
		[X_ZERO] = om_op_input(op, 4)};

	if (om_op_input(op, 6) || (om_lower_is_const(op->in[1]) && in[X_SCALE]->type.elem != OM_FLOAT32))
		return OM_OK;
	in[W_ZERO] = zero_of_weights(l, op, in[W], om_op_input(op, 5));
	return lower_product(l, op, in, false, done);
}

/* C must be a list; alpha must be 1. */
om_status
om_lower_qgemm(struct om_layout *l, om_op *op, bool *done)
{
	om_value *in[INPUTS], *bias = om_op_input(op, 6);
	const int64_t n = op->out[0]->shape.rank == 2 ? op->out[0]->shape.dim[1] : -1;

	read_operands(op, 6, in);
	in[BIAS] = bias;
	in[Y_SCALE] = om_op_input(op, 7);
	in[Y_ZERO] = om_op_input(op, 8);
	if (om_attr_int(op, "transA") || om_attr_float(op, "alpha") != 1
	    || (bias && (bias->shape.rank != 1 || bias->shape.dim[0] != n)))
		return OM_OK;
	return lower_product(l, op, in, om_attr_int(op, "transB") != 0, done);
}

/* ---- Pools and elementwise ops of com.microsoft. ---- */

/* They have an attribute for the layout. */
om_status
om_lower_qlinear_pool(struct om_layout *l, om_op *op, bool *done)
{
	om_form y = *om_lower_form(l, op->in[0]);

	if (om_attr_int(op, "channels_last") || !om_lower_is_last(l, op->in[0]))
		return OM_OK;
	om_value **in = om_memdup(l->mem, op->in, op->nin * sizeof *in);
	in[0] = y.value;
	om_op *pool = om_lower_copy(l, op, op->nin, in);
	om_op_drop_attr(pool, "channels_last");
	om_op_add_int(l->p, pool, "channels_last", 1);
	OM_TRY(om_lower_insert(l, op, pool, om_printf(l->mem, "%s_last", op->out[0]->name), &y.value));
	return om_lower_replace(l, op, &y, &l->n.pools, done);
}
