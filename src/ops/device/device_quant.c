/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for devices of quantization. */
#include <config.h>

#include <string.h>

#include "base/shape.h"
#include "ir/query.h"
#include "opdef/op_context.h"
#include "ops/device/launches.h"
#include "ops/device/product_batches.h"
#include "ops/family.h"
#include "ops/math/axis_view.h"

enum { TILE = 32, MOST_BLOCKS = 65535 };

/* ---- QuantizeLinear, DequantizeLinear. ---- */

/* Scales are one, or one for each element of an axis. */
static bool
scale_lines(const om_op_context *c, struct om_lines *s)
{
	const om_shape *x = &c->in[0].shape;
	int axis;

	if (om_shape_count(&c->in[1].shape) == 1) {
		*s = (struct om_lines){1, 1, om_shape_count(x)};
		return true;
	}
	if (c->op->version < 13 || (c->op->version >= 21 && om_attr_int(c->op, "block_size") != 0)
	    || !om_axis(om_attr_int(c->op, "axis"), x->rank, &axis))
		return false;
	*s = om_lines_along(x, axis);
	return om_shape_count(&c->in[1].shape) == s->n;
}

static bool
is_byte(om_dtype t)
{
	return t == OM_INT8 || t == OM_UINT8;
}

static bool
quantize_supports(const om_op_context *c)
{
	struct om_lines s;

	return is_byte(c->out[0].type) && c->in[1].type == c->in[0].type && scale_lines(c, &s)
	    && (c->op->version < 23 || om_attr_int(c->op, "precision") == 0);
}

static bool
dequantize_supports(const om_op_context *c)
{
	struct om_lines s;

	return is_byte(c->in[0].type) && c->out[0].type == c->in[1].type && scale_lines(c, &s);
}

static om_status
add_linear(const om_op_context *c, om_launch_list *to, const char *kernel, om_dtype real, om_dtype byte)
{
	const int64_t n = om_shape_count(&c->in[0].shape);
	const bool has_zero = c->op->nin > 2 && om_has_in(c, 2);
	om_launch *l = om_launch_pair(to, "quantize", kernel, om_kernel_type(real), om_kernel_type(byte),
		om_grid_of(to, (uint64_t)n));
	struct om_lines s;

	scale_lines(c, &s);
	om_launch_in(l, 0);
	om_launch_in(l, 1);
	om_launch_in(l, has_zero ? 2 : 0);
	om_launch_out(l, 0);
	om_launch_i64(l, n);
	om_launch_i64(l, s.n);
	om_launch_i64(l, s.inner);
	om_launch_i32(l, has_zero);
	return OM_OK;
}

static om_status
quantize_launches(const om_op_context *c, om_launch_list *to)
{
	return add_linear(c, to, "quantize", c->in[0].type, c->out[0].type);
}

static om_status
dequantize_launches(const om_op_context *c, om_launch_list *to)
{
	return add_linear(c, to, "dequantize", c->out[0].type, c->in[0].type);
}

/* ---- DynamicQuantizeLinear: scale and zero point first. ---- */

static bool
dynamic_supports(const om_op_context *c)
{
	return om_has_out(c, 0) && om_has_out(c, 1) && om_has_out(c, 2);
}

static om_status
dynamic_launches(const om_op_context *c, om_launch_list *to)
{
	const int64_t n = om_shape_count(&c->in[0].shape);
	om_launch *range = om_launch_typed_grid(to, "dynamic_scale", "dynamic_scale", "f32", (om_grid){.threads = 256, .blocks = {1, 1, 1}});

	om_launch_in(range, 0);
	om_launch_out(range, 1);
	om_launch_out(range, 2);
	om_launch_i64(range, n);
	om_launch *l = om_launch_pair(to, "quantize", "quantize", "f32", "u8", om_grid_of(to, (uint64_t)n));
	om_launch_in(l, 0);
	om_launch_part(l, OM_ARG_IN, OM_OPERAND_OUT, 1, 0, 0);
	om_launch_part(l, OM_ARG_IN, OM_OPERAND_OUT, 2, 0, 0);
	om_launch_out(l, 0);
	om_launch_i64(l, n);
	om_launch_i64(l, 1);
	om_launch_i64(l, n);
	om_launch_i32(l, 1);
	return OM_OK;
}

/* ---- MatMulInteger. ---- */

static bool
is_one_or_absent(const om_op_context *c, uint32_t k)
{
	return k >= c->op->nin || !om_has_in(c, k) || om_shape_count(&c->in[k].shape) == 1;
}

static bool
product_of(const om_op_context *c, int64_t dims[3], om_product_batches *b)
{
	const om_shape *x = &c->in[0].shape, *w = &c->in[1].shape;

	if (x->rank < 2 || w->rank < 2 || !om_product_batches_of(c, b))
		return false;
	dims[0] = x->dim[x->rank - 2];
	dims[1] = w->dim[w->rank - 1];
	dims[2] = x->dim[x->rank - 1];
	return (dims[0] + TILE - 1) / TILE <= MOST_BLOCKS && (dims[1] + TILE - 1) / TILE <= INT32_MAX && b->pairs <= MOST_BLOCKS;
}

static bool
product_supports(const om_op_context *c)
{
	int64_t dims[3];
	om_product_batches b;

	return is_one_or_absent(c, 2) && is_one_or_absent(c, 3) && product_of(c, dims, &b);
}

static om_status
product_launches(const om_op_context *c, om_launch_list *to)
{
	int64_t d[3] = {0};
	om_product_batches b;

	product_of(c, d, &b);
	om_launch *l = om_launch_pair(to, "byte_product", "byte_product", om_kernel_type(c->in[0].type), om_kernel_type(c->in[1].type),
		(om_grid){.threads = 256, .blocks = {(uint32_t)((d[1] + TILE - 1) / TILE), (uint32_t)((d[0] + TILE - 1) / TILE), (uint32_t)b.pairs}});
	const int64_t numbers[] = {d[0], d[1], d[2], b.batches, b.a[0], b.a[1], b.b[0], b.b[1]};
	const bool has_a = c->op->nin > 2 && om_has_in(c, 2), has_b = c->op->nin > 3 && om_has_in(c, 3);

	om_launch_in(l, 0);
	om_launch_in(l, 1);
	om_launch_in(l, has_a ? 2 : 0);
	om_launch_in(l, has_b ? 3 : 1);
	om_launch_out(l, 0);
	for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
		om_launch_i64(l, numbers[k]);
	om_launch_i32(l, has_a);
	om_launch_i32(l, has_b);
	return OM_OK;
}

#define QUANTIZED (OF(FLOAT32) | OF(FLOAT16))

const om_device_kernel om_device_kernels_device_quant[] = {
	{.name = "QuantizeLinear", .types = {QUANTIZED, QUANTIZED}, .supports = quantize_supports, .launches = quantize_launches},
	{.name = "DequantizeLinear", .types = {OF_BYTES, QUANTIZED}, .supports = dequantize_supports, .launches = dequantize_launches},
	{.name = "DynamicQuantizeLinear", .types = {OF(FLOAT32)}, .supports = dynamic_supports, .launches = dynamic_launches},
	{.name = "MatMulInteger", .types = {OF_BYTES, OF_BYTES}, .supports = product_supports, .launches = product_launches},
	{0}
};
