/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions, and blocks of them. */
#include <config.h>

#include <math.h>

#include "nn/nn_internal.h"

static om_value *
batch_norm(om_nn *n, om_value *x, int64_t channels)
{
	om_value *in[] = {x, om_nn_weight(n, "bn_w", 1, &channels, 0, 1), om_nn_weight(n, "bn_b", 1, &channels, 0, 0),
		om_nn_weight(n, "bn_mean", 1, &channels, 0, 0), om_nn_weight(n, "bn_var", 1, &channels, 0, 1)};

	return om_nn_op(n, "BatchNormalization", NULL, 5, in, 1, NULL);
}

static int64_t
or_one(int64_t v)
{
	return v ? v : 1;
}

static om_value *
convolve(om_nn *n, om_value *x, const om_nn_convolution *c, int64_t depth)
{
	const int64_t groups = or_one(c->groups), stride = or_one(c->stride), dilation = or_one(c->dilation);
	const int64_t dim[] = {c->channels, depth / groups, c->kernel, c->kernel}, pad = dilation * (c->kernel - 1) / 2;
	const int64_t pads[] = {pad, pad, pad, pad}, strides[] = {stride, stride}, dilations[] = {dilation, dilation};
	om_value *w = om_nn_weight(n, "conv_w", 4, dim, sqrt(6.0 / (double)(dim[1] * c->kernel * c->kernel)), 0);
	om_value *in[] = {x, w, c->norm ? NULL : om_nn_weight(n, "conv_b", 1, &c->channels, 0, 0)};
	const om_attr attrs[] = {OM_MAKE_INTS("pads", 4, pads), OM_MAKE_INTS("strides", 2, strides), OM_MAKE_INTS("dilations", 2, dilations),
		OM_MAKE_INT("group", groups), {0}};

	return om_nn_op(n, "Conv", attrs, c->norm ? 2 : 3, in, 1, NULL);
}

static bool
is_convolution(om_nn *n, const om_nn_convolution *c, int64_t depth)
{
	const int64_t groups = or_one(c->groups);

	if (depth < 0 || !om_nn_is_count(n, c->channels, "the number of channels of a convolution")
	    || !om_nn_is_count(n, c->kernel, "the kernel of a convolution") || !om_nn_is_count(n, or_one(c->stride), "the stride of a convolution")
	    || !om_nn_is_count(n, groups, "the number of groups of a convolution")
	    || !om_nn_is_count(n, or_one(c->dilation), "the dilation of a convolution"))
		return false;
	if (c->kernel % 2 == 0)
		om_nn_fail(n, OM_USAGE, "the kernel of a convolution is odd, not %lld", (long long)c->kernel);
	else if (depth % groups || c->channels % groups)
		om_nn_fail(n, OM_USAGE, "%lld groups do not divide the channels of a convolution, %lld and %lld", (long long)groups,
			(long long)depth, (long long)c->channels);
	else
		return true;
	return false;
}

om_value *
om_nn_conv(om_nn *n, om_value *x, const om_nn_convolution *c)
{
	const int64_t depth = om_nn_size(n, x, 4, 1, "a convolution");

	if (!is_convolution(n, c, depth))
		return NULL;
	x = convolve(n, x, c, depth);
	if (c->norm)
		x = batch_norm(n, x, c->channels);
	return om_nn_activation(n, x, c->activation);
}

om_value *
om_nn_residual(om_nn *n, om_value *x, int64_t channels, int64_t stride)
{
	const int64_t depth = om_nn_size(n, x, 4, 1, "a residual block");

	if (depth < 0)
		return NULL;
	om_value *y = om_nn_conv(n, x, OM_NN_CONV(.channels = channels, .kernel = 3, .stride = stride, .norm = true, .activation = "Relu"));
	y = om_nn_conv(n, y, OM_NN_CONV(.channels = channels, .kernel = 3, .norm = true));
	if (depth != channels || or_one(stride) != 1)
		x = om_nn_conv(n, x, OM_NN_CONV(.channels = channels, .kernel = 1, .stride = stride, .norm = true));
	return om_nn_is_lost(n, y) ? NULL : om_nn_activation(n, om_nn_call(n, "Add", NULL, y, x), "Relu");
}

/* A convolution of 1 x 1, then one of `kernel`. */
static om_value *
branch(om_nn *n, om_value *x, int64_t reduce, int64_t wide, int64_t kernel, bool norm)
{
	x = om_nn_conv(n, x, OM_NN_CONV(.channels = reduce, .kernel = 1, .norm = norm, .activation = "Relu"));
	return om_nn_conv(n, x, OM_NN_CONV(.channels = wide, .kernel = kernel, .norm = norm, .activation = "Relu"));
}

om_value *
om_nn_inception(om_nn *n, om_value *x, const om_nn_branches *b)
{
	static const int64_t three[] = {3, 3}, ones[] = {1, 1, 1, 1};
	om_value *part[4];
	size_t k = 0;

	if (om_nn_size(n, x, 4, 1, "an Inception module") < 0)
		return NULL;
	if (b->point)
		part[k++] = om_nn_conv(n, x, OM_NN_CONV(.channels = b->point, .kernel = 1, .norm = b->norm, .activation = "Relu"));
	if (b->wide3)
		part[k++] = branch(n, x, b->reduce3, b->wide3, 3, b->norm);
	if (b->wide5)
		part[k++] = branch(n, x, b->reduce5, b->wide5, 5, b->norm);
	if (b->pool) {
		const om_attr attrs[] = {OM_MAKE_INTS("kernel_shape", 2, three), OM_MAKE_INTS("pads", 4, ones), {0}};
		om_value *most = om_nn_call(n, "MaxPool", attrs, x);
		part[k++] = om_nn_conv(n, most, OM_NN_CONV(.channels = b->pool, .kernel = 1, .norm = b->norm, .activation = "Relu"));
	}
	if (!k)
		return om_nn_fail(n, OM_USAGE, "an Inception module has a branch");
	const om_attr axis[] = {OM_MAKE_INT("axis", 1), {0}};
	return om_nn_op(n, "Concat", axis, k, part, 1, NULL);
}

om_value *
om_nn_global_pool(om_nn *n, om_value *x)
{
	return om_nn_size(n, x, 4, 1, "a global pool") < 0 ? NULL : om_nn_flat(n, om_nn_call(n, "GlobalAveragePool", NULL, x));
}
