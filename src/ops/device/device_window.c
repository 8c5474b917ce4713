/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for devices of convolutions and pooling. */
#include <config.h>

#include <string.h>

#include "base/shape.h"
#include "ir/query.h"
#include "opdef/op_context.h"
#include "ops/device/launches.h"
#include "ops/family.h"
#include "ops/nn/conv.h"

enum { TILE = 64, MOST_BLOCKS = 65535 };

/* Kernels have 32 bits for dims of an image. */
static bool
is_small(const struct om_window *w)
{
	for (int k = 0; k < OM_WINDOW_AXES; k++)
		if (w->in[k] > INT32_MAX || w->out[k] > INT32_MAX || w->kernel[k] > INT32_MAX || w->stride[k] > INT32_MAX
		    || w->dilation[k] > INT32_MAX || w->begin[k] > INT32_MAX || w->begin[k] < INT32_MIN)
			return false;
	return true;
}

static bool
has_one_type(const om_op_context *c)
{
	return c->in[0].type == c->in[1].type && (c->op->nin < 3 || !om_has_in(c, 2) || c->in[2].type == c->in[0].type);
}

/* ---- Convolutions. ---- */

static void
add_conv(const om_op_context *c, om_launch *l, const struct om_conv *v, bool is_tiled)
{
	const bool has_bias = c->op->nin > 2 && om_has_in(c, 2);

	om_launch_in(l, 0);
	om_launch_in(l, 1);
	om_launch_in(l, has_bias ? 2 : 0);
	om_launch_out(l, 0);
	if (!is_tiled)
		om_launch_i64(l, om_shape_count(&c->out[0].shape));
	om_launch_i32(l, (int32_t)v->group);
	om_launch_i32(l, (int32_t)v->kin);
	om_launch_i32(l, (int32_t)v->kout);
	om_launch_i32s(l, v->w.in, OM_WINDOW_AXES);
	om_launch_i32s(l, v->w.out, OM_WINDOW_AXES);
	om_launch_i32s(l, v->w.kernel, OM_WINDOW_AXES);
	om_launch_i32s(l, v->w.stride, OM_WINDOW_AXES);
	om_launch_i32s(l, v->w.begin, OM_WINDOW_AXES);
	om_launch_i32s(l, v->w.dilation, OM_WINDOW_AXES);
	om_launch_i32(l, has_bias);
}

static bool
fits(const struct om_conv *v)
{
	return is_small(&v->w) && v->cin <= INT32_MAX && v->cout <= INT32_MAX && v->kin > 0;
}

static bool
conv_supports(const om_op_context *c)
{
	if (!has_one_type(c) || c->in[0].shape.rank < 3 || c->in[0].shape.rank > 2 + OM_WINDOW_AXES)
		return false;
	const struct om_conv v = om_conv_of(c, 0, 1);
	return fits(&v);
}

/* Tiles are for groups that fill a part of them. */
static bool
is_for_tiles(const struct om_conv *v)
{
	return v->kout >= 8 && v->kin * om_window_volume(v->w.kernel) >= 8 && v->batch * v->group <= MOST_BLOCKS
	    && (v->kout + TILE - 1) / TILE <= MOST_BLOCKS;
}

static om_status
conv_launches(const om_op_context *c, om_launch_list *to)
{
	const struct om_conv v = om_conv_of(c, 0, 1);
	const char *type = om_kernel_type(c->in[0].type);
	const int64_t columns = om_window_volume(v.w.out);

	if (is_for_tiles(&v))
		add_conv(c, om_launch_typed_grid(to, "conv", "conv", type, (om_grid){.threads = 256, .blocks = {
			(uint32_t)((columns + TILE - 1) / TILE), (uint32_t)((v.kout + TILE - 1) / TILE), (uint32_t)(v.batch * v.group)}}),
			&v, true);
	else
		add_conv(c, om_launch_typed(to, "conv", "conv_direct", type, om_shape_count(&c->out[0].shape)), &v, false);
	return OM_OK;
}

static bool
transpose_supports(const om_op_context *c)
{
	if (!has_one_type(c) || c->in[0].shape.rank < 3 || c->in[0].shape.rank > 2 + OM_WINDOW_AXES)
		return false;
	const struct om_conv v = om_conv_transpose_of(c);
	return fits(&v);
}

static om_status
transpose_launches(const om_op_context *c, om_launch_list *to)
{
	const struct om_conv v = om_conv_transpose_of(c);

	add_conv(c, om_launch_typed(to, "conv", "conv_transpose", om_kernel_type(c->in[0].type), om_shape_count(&c->out[0].shape)), &v,
		false);
	return OM_OK;
}

/* ---- Pooling. ---- */

/* In the order of pool.omk. */
enum { POOLED_MAX, POOLED_MEAN, POOLED_MEAN_OF_PADDED };

static bool
pool_window(const om_op_context *c, struct om_window *w)
{
	const om_shape *x = &c->in[0].shape;

	return x->rank >= 3 && x->rank <= 2 + OM_WINDOW_AXES && !om_window_read(c, x->rank - 2, x, NULL, w)
	    && !om_window_shrink(c, w, om_attr_int(c->op, "ceil_mode") != 0);
}

static bool
pool_supports(const om_op_context *c)
{
	struct om_window w;

	return (c->op->nout < 2 || !om_has_out(c, 1)) && pool_window(c, &w) && is_small(&w);
}

static void
add_pool(const om_op_context *c, om_launch_list *to, int kind, const struct om_window *w)
{
	const int64_t n = om_shape_count(&c->out[0].shape);
	om_launch *l = om_launch_typed(to, "pool", "pool", om_kernel_type(c->in[0].type), n);

	om_launch_in(l, 0);
	om_launch_out(l, 0);
	om_launch_i64(l, n);
	om_launch_i32(l, kind);
	om_launch_i32s(l, w->in, OM_WINDOW_AXES);
	om_launch_i32s(l, w->out, OM_WINDOW_AXES);
	om_launch_i32s(l, w->kernel, OM_WINDOW_AXES);
	om_launch_i32s(l, w->stride, OM_WINDOW_AXES);
	om_launch_i32s(l, w->begin, OM_WINDOW_AXES);
	om_launch_i32s(l, w->end, OM_WINDOW_AXES);
	om_launch_i32s(l, w->dilation, OM_WINDOW_AXES);
}

static om_status
pool_launches(const om_op_context *c, om_launch_list *to)
{
	const bool is_max = c->op->opdef->name[0] == 'M';
	struct om_window w;

	pool_window(c, &w);
	add_pool(c, to, is_max ? POOLED_MAX : om_attr_int(c->op, "count_include_pad") ? POOLED_MEAN_OF_PADDED : POOLED_MEAN, &w);
	return OM_OK;
}

/* A row for each image of a channel. */
static om_status
global_launches(const om_op_context *c, om_launch_list *to)
{
	enum { MEAN = 1, MAX = 2 };
	const om_shape *x = &c->in[0].shape;
	const int64_t rows = x->dim[0] * x->dim[1];
	om_launch *l = om_launch_rows(to, "reduce", "reduce_rows", om_kernel_type(c->in[0].type), rows);

	om_launch_in(l, 0);
	om_launch_out(l, 0);
	om_launch_i64(l, rows);
	om_launch_i64(l, om_shape_span(x, 2, x->rank));
	om_launch_i32(l, strcmp(c->op->opdef->name, "GlobalMaxPool") == 0 ? MAX : MEAN);
	return OM_OK;
}

static bool
global_supports(const om_op_context *c)
{
	return c->in[0].shape.rank >= 2 && om_shape_count(&c->in[0].shape) > 0;
}

const om_device_kernel om_device_kernels_device_window[] = {
	{.name = "Conv", .types = {OF_DEVICE_FLOATS}, .supports = conv_supports, .launches = conv_launches},
	{.name = "ConvTranspose", .types = {OF_DEVICE_FLOATS}, .supports = transpose_supports, .launches = transpose_launches},
	{.name = "MaxPool", .types = {OF_DEVICE_FLOATS}, .supports = pool_supports, .launches = pool_launches},
	{.name = "AveragePool", .types = {OF_DEVICE_FLOATS}, .supports = pool_supports, .launches = pool_launches},
	{.name = "GlobalAveragePool", .types = {OF_DEVICE_FLOATS}, .supports = global_supports, .launches = global_launches},
	{.name = "GlobalMaxPool", .types = {OF_DEVICE_FLOATS}, .supports = global_supports, .launches = global_launches},
	{0}
};
