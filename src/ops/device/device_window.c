/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for devices of convolutions and pooling, and of their gradients. */
#include <config.h>

#include <string.h>

#include "base/shape.h"
#include "ir/equal.h"
#include "ir/query.h"
#include "opdef/gradient_op.h"
#include "opdef/op_context.h"
#include "ops/device/launches.h"
#include "ops/family.h"
#include "ops/nn/conv.h"
#include "ops/nn/pool_grad.h"

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
add_window(om_launch *l, const struct om_window *w)
{
	om_launch_i32s(l, w->in, OM_WINDOW_AXES);
	om_launch_i32s(l, w->out, OM_WINDOW_AXES);
	om_launch_i32s(l, w->kernel, OM_WINDOW_AXES);
	om_launch_i32s(l, w->stride, OM_WINDOW_AXES);
	om_launch_i32s(l, w->begin, OM_WINDOW_AXES);
	om_launch_i32s(l, w->dilation, OM_WINDOW_AXES);
}

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
	add_window(l, &v->w);
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

/* ---- Gradients of convolutions: of filters, then the bias, then the image, which may be computed over the image. ---- */

enum { GRAD_DY, GRAD_X, GRAD_W };
enum { ENOUGH_BLOCKS = 256, LEAST_PART = 256 };

static bool
conv_grad_supports(const om_op_context *c)
{
	struct om_conv v;

	return !om_conv_grad_read(c, &v) && fits(&v) && v.batch <= INT32_MAX && om_shape_count(&c->in[GRAD_DY].shape) > 0
	    && v.group <= MOST_BLOCKS && (v.kout + TILE - 1) / TILE <= MOST_BLOCKS;
}

/* How the positions are divided, so that the grid is large; tensors of partial sums are in the scratch. */
struct division {
	int64_t n, part, columns, filters;
	uint32_t wide, high;     /* blocks of a product */
};

static struct division
divide(const struct om_conv *v)
{
	const int64_t columns = v->kin * om_window_volume(v->w.kernel), depth = v->batch * om_window_volume(v->w.out);
	struct division d = {.columns = columns, .filters = v->cout * columns, .wide = (uint32_t)((columns + TILE - 1) / TILE),
		.high = (uint32_t)((v->kout + TILE - 1) / TILE)};
	const int64_t blocks = d.wide * d.high * v->group, most = (depth + LEAST_PART - 1) / LEAST_PART;

	d.n = blocks < ENOUGH_BLOCKS ? ENOUGH_BLOCKS / blocks : 1;
	d.n = d.n > most ? most : d.n;
	d.part = (depth + d.n - 1) / d.n;
	return d;
}

static uint64_t
conv_grad_scratch(const om_op_context *c)
{
	struct om_conv v;

	if (om_fused_out(c, 1) < 0 || om_conv_grad_read(c, &v))
		return 0;
	const struct division d = divide(&v);
	return d.n > 1 ? (uint64_t)(d.n * d.filters) * sizeof(float) : 0;
}

static void
launch_filters(const struct om_conv *v, om_launch_list *to, uint32_t out)
{
	const struct division d = divide(v);
	om_launch *l = om_launch_typed_grid(to, "conv_grad", "conv_filters", "f32", (om_grid){.threads = 256,
		.blocks = {d.wide, d.high, (uint32_t)(v->group * d.n)}});

	om_launch_in(l, GRAD_X);
	om_launch_in(l, GRAD_DY);
	if (d.n > 1)
		om_launch_scratch(l, OM_ARG_OUT, 0, (uint64_t)(d.n * d.filters) * sizeof(float));
	else
		om_launch_out(l, out);
	om_launch_i32(l, (int32_t)v->batch);
	om_launch_i32(l, (int32_t)v->group);
	om_launch_i32(l, (int32_t)v->kin);
	om_launch_i32(l, (int32_t)v->kout);
	om_launch_i64(l, d.part);
	add_window(l, &v->w);
	if (d.n == 1)
		return;
	l = om_launch_typed(to, "reduce", "reduce_columns", "f32", d.filters);
	om_launch_scratch(l, OM_ARG_IN, 0, (uint64_t)(d.n * d.filters) * sizeof(float));
	om_launch_out(l, out);
	om_launch_i64(l, d.filters);
	om_launch_i64(l, d.n);
	om_launch_i64(l, d.filters);
	om_launch_i32(l, 0);
}

static void
launch_bias(const struct om_conv *v, om_launch_list *to, uint32_t out)
{
	om_launch *l = om_launch_rows(to, "conv_grad", "channel_sums", "f32", v->cout);

	om_launch_in(l, GRAD_DY);
	om_launch_out(l, out);
	om_launch_i64(l, v->batch);
	om_launch_i64(l, v->cout);
	om_launch_i64(l, om_window_volume(v->w.out));
}

static void
launch_image(const struct om_conv *v, om_launch_list *to, uint32_t out, int64_t n)
{
	om_launch *l = om_launch_typed(to, "conv", "conv_transpose", "f32", n);

	om_launch_in(l, GRAD_DY);
	om_launch_in(l, GRAD_W);
	om_launch_in(l, GRAD_DY);
	om_launch_out(l, out);
	om_launch_i64(l, n);
	om_launch_i32(l, (int32_t)v->group);
	om_launch_i32(l, (int32_t)v->kin);
	om_launch_i32(l, (int32_t)v->kout);
	add_window(l, &v->w);
	om_launch_i32(l, 0);
}

static om_status
conv_grad_launches(const om_op_context *c, om_launch_list *to)
{
	const int image = om_fused_out(c, 0), filters = om_fused_out(c, 1), bias = om_fused_out(c, 2);
	struct om_conv v;

	om_conv_grad_read(c, &v);
	const struct om_conv turned = om_conv_turned(&v);
	if (filters >= 0)
		launch_filters(&v, to, (uint32_t)filters);
	if (bias >= 0)
		launch_bias(&v, to, (uint32_t)bias);
	if (image >= 0)
		launch_image(&turned, to, (uint32_t)image, om_shape_count(&c->out[image].shape));
	return OM_OK;
}

static bool
conv_grad_inplace(const om_op_context *c, uint32_t out, uint32_t in)
{
	return in == GRAD_X && om_fused_out(c, 0) == (int)out;
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
gives_indices(const om_op_context *c)
{
	return c->op->nout > 1 && om_has_out(c, 1);
}

static bool
pool_supports(const om_op_context *c)
{
	struct om_window w;

	return (!gives_indices(c) || !om_attr_int(c->op, "storage_order") || c->in[0].shape.rank == 3) && pool_window(c, &w)
	    && is_small(&w);
}

static void
add_pool_indices(const om_op_context *c, om_launch_list *to, const struct om_window *w)
{
	const int64_t n = om_shape_count(&c->out[0].shape);
	om_launch *l = om_launch_typed(to, "pool", "pool_indices", om_kernel_type(c->in[0].type), n);

	om_launch_in(l, 0);
	om_launch_out(l, 0);
	om_launch_out(l, 1);
	om_launch_i64(l, n);
	add_window(l, w);
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
	add_window(l, w);
	om_launch_i32s(l, w->end, OM_WINDOW_AXES);
}

static om_status
pool_launches(const om_op_context *c, om_launch_list *to)
{
	const bool is_max = c->op->opdef->name[0] == 'M';
	struct om_window w;

	pool_window(c, &w);
	if (gives_indices(c))
		add_pool_indices(c, to, &w);
	else
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

/* ---- The gradient of MaxPool. ---- */

/* The op that computes a value, before it was copied to or from a device. */
static const om_op *
maker_of(const om_value *v)
{
	while (v && v->def && v->def->opdef && v->def->opdef->copies)
		v = v->def->in[0];
	return v ? v->def : NULL;
}

/* Are the indices those of a MaxPool with the same windows?  Then an element of the image gathers from the windows that it is in. */
static bool
has_own_indices(const om_op_context *c)
{
	static const char *const names[] = {"auto_pad", "kernel_shape", "strides", "dilations", "pads", "ceil_mode"};
	const om_op *pool = maker_of(c->op->in[OM_POOL_GRAD_INDICES]);

	if (!pool || !pool->opdef || strcmp(pool->opdef->name, "MaxPool") != 0 || (pool->opdef->domain && *pool->opdef->domain)
	    || om_attr_int(pool, "storage_order") || om_attr_int(c->op, "storage_order"))
		return false;
	for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
		const om_attr *a = om_attr_find(pool, names[k]), *b = om_attr_find(c->op, names[k]);
		if (a != b && (!a || !b || !om_attr_equal(a, b)))
			return false;
	}
	return true;
}

static bool
pool_grad_supports(const om_op_context *c)
{
	struct om_window w;
	om_shape x;

	return !om_max_pool_grad_read(c, &x, &w) && is_small(&w) && om_shape_count(&c->in[OM_POOL_GRAD_DY].shape) > 0
	    && om_shape_equal(&c->in[OM_POOL_GRAD_DY].shape, &c->in[OM_POOL_GRAD_INDICES].shape) && has_own_indices(c);
}

static om_status
pool_grad_launches(const om_op_context *c, om_launch_list *to)
{
	const int64_t n = om_shape_count(&c->out[0].shape);
	om_launch *l = om_launch_typed(to, "pool", "pool_grad", "f32", n);
	struct om_window w;
	om_shape x;

	om_max_pool_grad_read(c, &x, &w);
	om_launch_in(l, OM_POOL_GRAD_DY);
	om_launch_in(l, OM_POOL_GRAD_INDICES);
	om_launch_out(l, 0);
	om_launch_i64(l, n);
	add_window(l, &w);
	return OM_OK;
}

const om_device_kernel om_device_kernels_device_window[] = {
	{.name = "Conv", .types = {OF_DEVICE_FLOATS}, .supports = conv_supports, .launches = conv_launches},
	{.name = "ConvTranspose", .types = {OF_DEVICE_FLOATS}, .supports = transpose_supports, .launches = transpose_launches},
	{.domain = OM_GRAD_DOMAIN, .name = "ConvGrad", .types = {OF(FLOAT32)}, .supports = conv_grad_supports, .inplace = conv_grad_inplace,
	 .scratch = conv_grad_scratch, .launches = conv_grad_launches},
	{.domain = OM_GRAD_DOMAIN, .name = "MaxPoolGrad", .types = {OF(FLOAT32)}, .supports = pool_grad_supports,
	 .launches = pool_grad_launches},
	{.name = "MaxPool", .types = {OF_DEVICE_FLOATS}, .supports = pool_supports, .launches = pool_launches},
	{.name = "AveragePool", .types = {OF_DEVICE_FLOATS}, .supports = pool_supports, .launches = pool_launches},
	{.name = "GlobalAveragePool", .types = {OF_DEVICE_FLOATS}, .supports = global_supports, .launches = global_launches},
	{.name = "GlobalMaxPool", .types = {OF_DEVICE_FLOATS}, .supports = global_supports, .launches = global_launches},
	{0}
};
