/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout: the identity in inference; random elements are zeroed in training. */
#include <config.h>

#include "base/convert_elements.h"
#include "base/shape.h"
#include "opdef/op_context.h"
#include "opdef/columns.h"
#include "ops/family.h"
#include "opdef/slice.h"
#include "opdef/numbers.h"

static om_status
Dropout_infer(om_op_context *c)
{
	OM_TRY(om_infer_same(c));
	if (om_has_out(c, 1)) {
		c->out[1].type = c->op->version < 10 ? c->in[0].type : OM_BOOL;
		c->out[1].shape = c->in[0].shape;
	}
	return OM_OK;
}

/* True if nothing is dropped; false if that is not known before the run. */
static bool
keeps_all(const om_op_context *c)
{
	double training, ratio;

	if (!om_has_in(c, 2))
		return true;
	return (om_in_scalar(c, 2, &training) && training == 0)
	    || (om_in_scalar(c, 1, &ratio) && ratio == 0);
}

static bool
Dropout_view(const om_op_context *c, uint32_t out, om_view_of *v)
{
	*v = (om_view_of){0, 0};
	return out == 0 && keeps_all(c);
}

static bool
Dropout_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	return keeps_all(c) && om_slice_first(c, out, s);
}

enum { PIECE = 256 };

static void
fill_ones(const om_tensor *t)
{
	uint8_t yes[PIECE];
	const int64_t n = om_shape_count(&t->shape);
	const size_t size = om_dtype_bits(t->type) / 8;

	memset(yes, 1, sizeof yes);
	for (int64_t at = 0; at < n; at += PIECE)
		om_convert(t->type, (char *)t->data + (size_t)at * size, OM_BOOL, yes,
			n - at < PIECE ? n - at : PIECE, true);
}

/* Every call has its own generator, so that a seed determines the mask. */
static double
random_share(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

struct dropout {
	int64_t seed;
};

static const om_attr_field dropout_fields[] = {OM_FIELD(struct dropout, INT, seed), {0}};

static om_status
drop(om_op_context *c, double ratio)
{
	const om_tensor *x = &c->in[0];
	const size_t size = om_dtype_bits(x->type) / 8;
	const double scale = ratio < 1 ? 1 / (1 - ratio) : 0;
	uint8_t *mask = om_has_out(c, 1) ? c->out[1].data : NULL;
	uint64_t state = (uint64_t)((const struct dropout *)c->state)->seed;
	const int64_t n = om_shape_count(&x->shape);

	if (!om_dtype_is_float(x->type))
		return om_no_kernel(c, x->type);
	for (int64_t i = 0; i < n; i++) {
		const bool stays = random_share(&state) >= ratio;
		double v;
		om_convert(OM_FLOAT64, &v, x->type, (char *)x->data + (size_t)i * size, 1, true);
		v = stays ? v * scale : 0;
		om_convert(x->type, (char *)c->out[0].data + (size_t)i * size, OM_FLOAT64, &v, 1, true);
		if (mask)
			mask[i] = stays;
	}
	return OM_OK;
}

static om_status
Dropout_cpu(om_op_context *c)
{
	double ratio = 0.5;
	uint64_t bytes = 0;

	if (!keeps_all(c)) {
		om_in_scalar(c, 1, &ratio);
		return drop(c, ratio);
	}
	if (om_has_out(c, 1) && (!om_can_convert(c->out[1].type, OM_BOOL) || om_dtype_bits(c->out[1].type) < 8))
		return om_no_kernel(c, c->out[1].type);
	om_tensor_bytes(c->in[0].type, &c->in[0].shape, &bytes);
	if (c->out[0].data != c->in[0].data)
		memcpy(c->out[0].data, c->in[0].data, bytes);
	if (om_has_out(c, 1))
		fill_ones(&c->out[1]);
	return OM_OK;
}

/* ---- The operator definitions. ---- */

static const om_attr_spec old_dropout_attrs[] = {
	{"ratio", OM_ATTR_FLOAT, .f = 0.5f},
	{"is_test", OM_ATTR_INT, .i = 0},
	{0}
};

static const om_attr_spec dropout_attrs[] = {
	{"seed", OM_ATTR_INT, .i = 0},
	{0}
};

const om_opdef om_ops_dropout[] = {
	{
		.name = "Dropout", .brief = "identity in inference",
		.since = 1, .until = 11, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 2,
		.flags = OM_POINTWISE, .attrs = old_dropout_attrs,
		.infer = Dropout_infer, .slice = Dropout_slice, .view = Dropout_view, .inplace = om_inplace_first, .cpu = Dropout_cpu,
		.input_types = {OF_FLOATS | OF_FLOAT8S},
	},
	{
		.name = "Dropout", .brief = "identity in inference; in training, zeroes elements at random",
		.since = 12, .min_in = 1, .max_in = 3, .min_out = 1, .max_out = 2,
		.flags = OM_RANDOM, .attrs = dropout_attrs,
		.infer = Dropout_infer, .slice = Dropout_slice, .view = Dropout_view, .inplace = om_inplace_first, .cpu = Dropout_cpu,
		.input_types = {OF_FLOATS | OF_FLOAT8S, OF_FLOATS | OF_FLOAT8S, OF(BOOL)},
	},
	{0}
};

const om_kernel om_kernels_dropout[] = {
	{.name = "Dropout", .fields = dropout_fields, .state_bytes = sizeof(struct dropout), .run = Dropout_cpu},
	{0}
};
