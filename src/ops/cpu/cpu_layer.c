/* SPDX-License-Identifier: Apache-2.0 */
/* Layers with packed weights: shapes; see cpu_layer.h. */
#include <config.h>

#include <string.h>

#include "base/shape.h"
#include "ir/query.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "ops/cpu/cpu_layer.h"

om_status
om_layer_read_group(const om_op_context *c, int64_t channels_out, int64_t *group)
{
	*group = om_attr_int(c->op, "group");
	if (*group < 1 || channels_out % *group)
		return om_op_fail(c->session, OM_SHAPE, c->op, "group is %lld, which does not divide %lld output channels",
			(long long)*group, (long long)channels_out);
	return OM_OK;
}

om_status
om_layer_read_filter(const om_op_context *c, om_layer *l)
{
	const om_shape *w = &c->in[0].shape;
	const int axes = w->rank - 2;
	int64_t taps = 1;

	*l = (om_layer){.kernel = {1, 1, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
	if (axes < 1 || axes > OM_LAYER_AXES)
		return om_op_fail(c->session, OM_SHAPE, c->op, "the weights have rank %d, expected 3, 4 or 5", w->rank);
	OM_TRY(om_layer_read_group(c, w->dim[0], &l->group));
	l->channels_out = w->dim[0] / l->group;
	l->channels_in = w->dim[1];
	for (int k = 0; k < axes; k++) {
		l->kernel[OM_LAYER_AXES - axes + k] = w->dim[2 + k];
		if (w->dim[2 + k] < 1 || __builtin_mul_overflow(taps, w->dim[2 + k], &taps) || taps > INT32_MAX)
			return om_op_fail(c->session, OM_SHAPE, c->op, "the weights have a kernel of size %lld",
				(long long)w->dim[2 + k]);
	}
	return OM_OK;
}

om_layer
om_layer_of_product(int64_t rows, int64_t columns)
{
	return (om_layer){.batch = 1, .group = 1, .channels_in = rows, .channels_out = columns, .in = {1, 1, 1},
		.out = {1, 1, 1}, .kernel = {1, 1, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
}

om_layer
om_layer_of_matrix(const om_shape *b, bool is_transposed)
{
	const int rows = is_transposed ? 1 : 0;

	return om_layer_of_product(b->dim[rows], b->dim[1 - rows]);
}

void
om_layer_set_window(om_layer *l, const struct om_window *w)
{
	memcpy(l->kernel, w->kernel, sizeof l->kernel);
	memcpy(l->stride, w->stride, sizeof l->stride);
	memcpy(l->dilation, w->dilation, sizeof l->dilation);
	memcpy(l->begin, w->begin, sizeof l->begin);
	memcpy(l->in, w->in, sizeof l->in);
	memcpy(l->out, w->out, sizeof l->out);
}

/* ---- Inference. ---- */

static void
start_packed(om_op_context *c, om_dtype type)
{
	c->out[0].type = type;
	c->out[0].shape = om_shape_open(1);
}

static om_status
set_packed(om_op_context *c, uint64_t n)
{
	if (n > INT64_MAX / (om_dtype_bits(c->out[0].type) / 8))
		return om_wrong(c, "the packed weights are too large");
	c->out[0].shape = om_shape_of(1, &(int64_t){(int64_t)n});
	return OM_OK;
}

om_status
om_layer_infer_filter(om_op_context *c, om_dtype type, om_status (*read)(const om_op_context *c, om_layer *l),
	uint64_t (*elements)(const om_layer *l))
{
	om_layer l;

	start_packed(c, type);
	if (!om_shape_is_known(&c->in[0].shape))
		return OM_OK;
	OM_TRY(read(c, &l));
	return set_packed(c, elements(&l));
}

om_status
om_layer_infer_matrix(om_op_context *c, om_dtype type, uint64_t (*elements)(const om_layer *l))
{
	const om_shape *b = &c->in[0].shape;

	start_packed(c, type);
	if (b->rank >= 0 && b->rank != 2)
		return om_op_fail(c->session, OM_SHAPE, c->op, "the matrix has rank %d", b->rank);
	if (!om_shape_is_known(b))
		return OM_OK;
	const om_layer l = om_layer_of_matrix(b, om_attr_int(c->op, "transB") != 0);
	return set_packed(c, elements(&l));
}

om_status
om_layer_infer_product(om_op_context *c, int64_t columns, om_status (*check)(const om_op_context *c, const om_layer *l))
{
	const om_shape *x = &c->in[0].shape;

	if (x->rank < 0)
		return OM_OK;
	if (x->rank == 0)
		return om_wrong(c, "the input is a scalar");
	const om_layer l = om_layer_of_product(x->dim[x->rank - 1], columns);
	if (l.channels_in >= 0)
		OM_TRY(check(c, &l));
	c->out[0].shape = *x;
	c->out[0].shape.dim[x->rank - 1] = columns;
	c->out[0].shape.sym[x->rank - 1] = NULL;
	return OM_OK;
}
