/* SPDX-License-Identifier: Apache-2.0 */
/* org.onnxmem.cpu: convolutions of channels-last images and matrix products, with weights that an op of their own
 * has packed and with what follows the layer: bias, residual, activation.  The formats are described in
 * kernels/cpu/layer.h. */
#include <config.h>

#include "base/shape.h"
#include "ir/query.h"
#include "kernels/cpu/kernels.h"
#include "opdef/geometry/window.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "ops/cpu/activation.h"
#include "ops/cpu/cpu_conv.h"
#include "ops/cpu/cpu_layer.h"
#include "ops/family.h"
#include "ops/slices.h"

/* Inputs of Conv and MatMul. */
enum { IMAGE, WEIGHTS, BIAS, RESIDUAL };

/* ---- Attributes. ---- */

static om_status
read_algorithm(const om_op_context *c, om_layer_algorithm *a)
{
	static const char *const names[] = {
		[OM_LAYER_GEMM] = "gemm", [OM_LAYER_WINOGRAD4] = "winograd4", [OM_LAYER_WINOGRAD2] = "winograd2",
	};

	for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
		if (om_attr_is(c->op, "algorithm", names[k])) {
			*a = (om_layer_algorithm)k;
			return OM_OK;
		}
	return om_wrong(c, "algorithm is neither gemm nor winograd4 nor winograd2");
}

static om_status
read_block(const om_op_context *c, int64_t *block)
{
	*block = om_attr_int(c->op, "block");
	return *block >= OM_LEAST_BLOCK && *block <= OM_MOST_BLOCK ? OM_OK
		: om_wrong(c, "block, the size of blocks in percent, is not from 10 to 1000");
}

/* Winograd's algorithm is for kernels of 3 by 3 elements, in images of 2 or 3 axes. */
static om_status
check_winograd(const om_op_context *c, const om_layer *l, int axes)
{
	bool fits = axes >= 2 && !l->is_channels_first;

	for (int k = 1; k < OM_LAYER_AXES; k++)
		fits = fits && l->kernel[k] == 3 && l->stride[k] == 1;
	return fits || l->algorithm == OM_LAYER_GEMM ? OM_OK
		: om_wrong(c, "the algorithm is for channels-last images and kernels of 3 by 3 elements without strides");
}

/* ---- Packing. ---- */

static om_status
read_filter(const om_op_context *c, om_layer *l)
{
	om_layer_algorithm a;

	OM_TRY(read_algorithm(c, &a));
	OM_TRY(om_layer_read_filter(c, l));
	l->algorithm = a;
	return check_winograd(c, l, c->in[0].shape.rank - 2);
}

static om_status
pack_filter_infer(om_op_context *c)
{
	return om_layer_infer_filter(c, OM_FLOAT32, read_filter, om_layer_weights);
}

static om_status
pack_filter_prepare(om_op_context *c, void **state)
{
	return read_filter(c, *state);
}

static void
consumed(void *arg, uint64_t bytes)
{
	om_op_context *c = arg;

	if (c->consumed)
		c->consumed(c, 0, bytes);
}

static om_layer_source
source_of(om_op_context *c)
{
	return (om_layer_source){c->in[0].data, consumed, c};
}

static om_status
pack_filter_cpu(om_op_context *c)
{
	om_layer_pack(c->state, source_of(c), c->out[0].data);
	return OM_OK;
}

static om_status
pack_matrix_infer(om_op_context *c)
{
	return om_layer_infer_matrix(c, OM_FLOAT32, om_layer_weights);
}

struct pack_matrix {
	int64_t is_transposed;
	float alpha;
};

static const om_attr_field pack_matrix_fields[] = {
	OM_FIELD_AS(struct pack_matrix, INT, is_transposed, "transB"), OM_FIELD(struct pack_matrix, FLOAT, alpha), {0}};

static om_status
pack_matrix_cpu(om_op_context *c)
{
	const struct pack_matrix *s = c->state;
	const om_shape *b = &c->in[0].shape;
	const int rows = s->is_transposed ? 1 : 0;

	om_layer_pack_matrix(source_of(c), b->dim[rows], b->dim[1 - rows], rows == 1, s->alpha, c->out[0].data);
	return OM_OK;
}

/* ---- What Conv and MatMul have in common. ---- */

static om_status
check_length(const om_op_context *c, uint32_t in, const char *what, uint64_t n)
{
	const om_shape *s = &c->in[in].shape;
	char text[128];

	if (!om_has_in(c, in) || s->rank < 0 || (s->rank == 1 && (s->dim[0] < 0 || (uint64_t)s->dim[0] == n)))
		return OM_OK;
	return om_op_fail(c->session, OM_SHAPE, c->op, "%s have shape %s, expected %llu elements", what,
		om_shape_text(s, text, sizeof text), (unsigned long long)n);
}

/* Bias and residual of a layer with so many output channels. */
static om_status
check_operands(const om_op_context *c, int64_t channels, const om_shape *y)
{
	char is[128], wanted[128];

	OM_TRY(check_length(c, BIAS, "the biases", (uint64_t)channels));
	if (om_has_in(c, RESIDUAL) && !om_shape_agree(&c->in[RESIDUAL].shape, y))
		return om_op_fail(c->session, OM_SHAPE, c->op, "the residual has shape %s, expected %s",
			om_shape_text(&c->in[RESIDUAL].shape, is, sizeof is), om_shape_text(y, wanted, sizeof wanted));
	return OM_OK;
}

/* If they are known. */
static om_status
check_weights(const om_op_context *c, const om_layer *l)
{
	const uint64_t n = om_layer_weights(l);

	if (n == UINT64_MAX)
		return om_wrong(c, "the packed weights are too large");
	return check_length(c, WEIGHTS, "the packed weights", n);
}

static bool
is_over_residual(const om_op_context *c, uint32_t out, uint32_t in)
{
	return out == 0 && in == RESIDUAL && om_is_sole_use(c, in);
}

/* ---- Conv. ---- */

/* The shape of the image with the channels first. */
static om_status
image_of(const om_op_context *c, int axes, bool is_channels_first, om_shape *image)
{
	const om_shape *x = &c->in[IMAGE].shape;

	*image = *x;
	if (x->rank < 0) {
		*image = om_shape_open(axes + 2);
		return OM_OK;
	}
	if (x->rank != axes + 2)
		return om_op_fail(c->session, OM_SHAPE, c->op, "the input has rank %d for %d spatial axes", x->rank, axes);
	for (int k = 1; k < x->rank && !is_channels_first; k++)
		om_copy_dim(image, k, x, k == 1 ? x->rank - 1 : k - 1);
	return OM_OK;
}

/* The window, the shape of the image with the channels first, and all of the layer that attributes alone decide. */
static om_status
read_conv(const om_op_context *c, om_layer *l, struct om_window *w, om_shape *image)
{
	size_t axes;
	const char *wrong;
	const int64_t channels = om_attr_int(c->op, "channels");

	om_attr_ints(c->op, "kernel_shape", &axes);
	if (axes < 1 || axes > OM_LAYER_AXES)
		return om_op_fail(c->session, OM_SHAPE, c->op, "kernel_shape has %zu elements, expected 1, 2 or 3", axes);
	if (channels < 1)
		return om_op_fail(c->session, OM_SHAPE, c->op, "channels is %lld", (long long)channels);
	*l = (om_layer){.is_channels_first = om_attr_is(c->op, "input_layout", "channels_first")};
	if (!l->is_channels_first && !om_attr_is(c->op, "input_layout", "channels_last"))
		return om_wrong(c, "input_layout is neither channels_last nor channels_first");
	OM_TRY(read_algorithm(c, &l->algorithm));
	OM_TRY(read_block(c, &l->block));
	OM_TRY(om_epilogue_read(c, &l->epilogue));
	OM_TRY(om_layer_read_group(c, channels, &l->group));
	if (l->is_channels_first && l->group > 1)
		return om_wrong(c, "an input that is channels_first cannot have groups");
	l->channels_out = channels / l->group;
	OM_TRY(image_of(c, (int)axes, l->is_channels_first, image));
	if ((wrong = om_window_read(c, (int)axes, image, NULL, w)) || (wrong = om_window_shrink(c, w, false)))
		return om_wrong(c, wrong);
	om_layer_set_window(l, w);
	return check_winograd(c, l, (int)axes);
}

/* The input channels of a group; without a number of channels, -1. */
static om_status
read_channels(const om_op_context *c, const om_shape *image, om_layer *l)
{
	const int64_t n = image->dim[1];

	l->batch = image->dim[0];
	l->channels_in = n < 0 ? -1 : n / l->group;
	if (n >= 0 && n % l->group)
		return om_op_fail(c->session, OM_SHAPE, c->op, "group is %lld, which does not divide %lld input channels",
			(long long)l->group, (long long)n);
	return n < 0 ? OM_OK : check_weights(c, l);
}

/* The output, channels-last. */
static om_shape
conv_shape(const om_op_context *c, const om_shape *image, const struct om_window *w)
{
	om_shape first = *image, y = *image;

	om_window_dims(&first, image, w);
	for (int k = 1; k + 1 < image->rank; k++)
		om_copy_dim(&y, k, &first, k + 1);
	y.dim[image->rank - 1] = om_attr_int(c->op, "channels");
	y.sym[image->rank - 1] = NULL;
	return y;
}

static om_status
read_all(const om_op_context *c, om_layer *l, om_shape *y)
{
	struct om_window w;
	om_shape image;

	OM_TRY(read_conv(c, l, &w, &image));
	OM_TRY(read_channels(c, &image, l));
	*y = conv_shape(c, &image, &w);
	return check_operands(c, om_attr_int(c->op, "channels"), y);
}

om_status
om_cpu_conv_layer(const om_op_context *c, om_layer *l)
{
	om_shape y;

	return read_all(c, l, &y);
}

static om_status
conv_infer(om_op_context *c)
{
	om_layer l;

	c->out[0].type = OM_FLOAT32;
	return read_all(c, &l, &c->out[0].shape);
}

/* ---- MatMul. ---- */

om_status
om_cpu_matmul_layer(const om_op_context *c, om_layer *l)
{
	const om_shape *x = &c->in[IMAGE].shape;

	*l = om_layer_of_product(x->dim[x->rank - 1], om_attr_int(c->op, "columns"));
	l->in[2] = l->out[2] = om_shape_span(x, 0, x->rank - 1);
	OM_TRY(read_block(c, &l->block));
	OM_TRY(om_epilogue_read(c, &l->epilogue));
	return check_weights(c, l);
}

static om_status
matmul_infer(om_op_context *c)
{
	const int64_t columns = om_attr_int(c->op, "columns");
	om_epilogue e;
	int64_t block;

	c->out[0].type = OM_FLOAT32;
	OM_TRY(read_block(c, &block));
	OM_TRY(om_epilogue_read(c, &e));
	if (columns < 1)
		return om_op_fail(c->session, OM_SHAPE, c->op, "columns is %lld", (long long)columns);
	OM_TRY(check_length(c, BIAS, "the biases", (uint64_t)columns));
	OM_TRY(om_layer_infer_product(c, columns, check_weights));
	return c->in[IMAGE].shape.rank < 0 ? OM_OK : check_operands(c, columns, &c->out[0].shape);
}

/* ---- Parts. ----
 *
 * Weights are packed in panels of output channels: there are parts along the other axes. */

static void
residual_part(const om_op_context *c, om_slice *s)
{
	if (om_has_in(c, RESIDUAL))
		s->in[RESIDUAL] = s->out[0];
}

static bool
conv_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	const int axis = s->out[out].axis;
	struct om_window w;
	om_shape image;
	om_layer l;

	if (axis + 1 == c->out[out].shape.rank)
		return false;
	residual_part(c, s);
	s->in[IMAGE] = s->out[out];
	return axis == 0 || (read_conv(c, &l, &w, &image) == OM_OK
		&& om_slice_window(c, s, axis - 1, l.is_channels_first ? axis + 1 : axis, &w));
}

static bool
matmul_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	residual_part(c, s);
	return om_slice_but_last(c, out, s);
}

/* ---- Kernels. ---- */

static om_status
conv_prepare(om_op_context *c, void **state)
{
	return om_cpu_conv_layer(c, *state);
}

static om_status
matmul_prepare(om_op_context *c, void **state)
{
	return om_cpu_matmul_layer(c, *state);
}

static uint64_t
layer_workspace(const om_op_context *c)
{
	return om_layer_workspace(c->state, c->workers ? c->workers : 1);
}

static const float *
floats_in(const om_op_context *c, uint32_t k)
{
	return om_has_in(c, k) ? c->in[k].data : NULL;
}

static om_status
layer_run(om_op_context *c)
{
	const om_layer_data d = {.x = c->in[IMAGE].data, .weights = c->in[WEIGHTS].data, .bias = floats_in(c, BIAS),
		.residual = floats_in(c, RESIDUAL), .y = c->out[0].data, .scratch = c->scratch, .pool = c->pool};

	om_kernels_get()->layer->run(c->state, &d);
	return OM_OK;
}

static void
conv_cost(const om_op_context *c, om_cost *cost)
{
	om_layer l;

	if (om_cpu_conv_layer(c, &l) != OM_OK)
		return;
	cost->flops = 2.0 * (double)om_shape_count(&c->out[0].shape) * (double)l.channels_in * (double)om_window_volume(l.kernel);
	cost->rows = l.algorithm == OM_LAYER_WINOGRAD4 ? 4 : l.algorithm == OM_LAYER_WINOGRAD2 ? 2 : 0;
}

static void
matmul_cost(const om_op_context *c, om_cost *cost)
{
	const om_shape *x = &c->in[IMAGE].shape;

	cost->flops = 2.0 * (double)om_shape_count(&c->out[0].shape) * (double)x->dim[x->rank - 1];
}

/* ---- The operator definitions. ---- */

static const om_attr_spec pack_filter_attrs[] = {
	{"algorithm", OM_ATTR_STRING, .s = "gemm"}, {"group", OM_ATTR_INT, .i = 1}, {0}};

static const om_attr_spec pack_matrix_attrs[] = {{"transB", OM_ATTR_INT}, {"alpha", OM_ATTR_FLOAT, .f = 1}, {0}};

static const om_attr_spec conv_attrs[] = {
	{"kernel_shape", OM_ATTR_INTS, .required = true},
	{"strides", OM_ATTR_INTS},
	{"dilations", OM_ATTR_INTS},
	{"pads", OM_ATTR_INTS},
	{"group", OM_ATTR_INT, .i = 1},
	{"channels", OM_ATTR_INT, .required = true},
	{"algorithm", OM_ATTR_STRING, .s = "gemm"},
	{"input_layout", OM_ATTR_STRING, .s = "channels_last"},
	{"block", OM_ATTR_INT, .i = 100},
	OM_ACTIVATION_ATTRS,
	{0}
};

static const om_attr_spec matmul_attrs[] = {
	{"columns", OM_ATTR_INT, .required = true}, {"block", OM_ATTR_INT, .i = 100}, OM_ACTIVATION_ATTRS, {0}
};

#define PACK(label, called, text)                                              \
	{.domain = OM_CPU_DOMAIN, .name = label, .brief = text, .since = 1, .min_in = 1, .max_in = 1, \
	 .min_out = 1, .max_out = 1, .flags = OM_UNALIGNED, .attrs = called##_attrs, .infer = called##_infer, \
	 .cpu = called##_cpu, .input_types = {OF(FLOAT32)}}

#define LAYER(label, called, text)                                             \
	{.domain = OM_CPU_DOMAIN, .name = label, .brief = text, .since = 1, .min_in = 2, .max_in = 4, \
	 .min_out = 1, .max_out = 1, .attrs = called##_attrs, .infer = called##_infer, .slice = called##_slice, .inplace = is_over_residual, \
	 .cpu = om_cpu_##called##_reference, .cost = called##_cost, \
	 .input_types = {OF(FLOAT32), OF(FLOAT32), OF(FLOAT32), OF(FLOAT32)}}

const om_opdef om_ops_cpu_conv[] = {
	PACK("PackFilter", pack_filter, "weights of Conv as panels of output channels"),
	PACK("PackMatrix", pack_matrix, "a matrix as panels of columns, for MatMul"),
	LAYER("Conv", conv, "convolution of a channels-last image with packed weights, bias, residual, activation"),
	LAYER("MatMul", matmul, "product with a packed matrix, bias, residual, activation"),
	{0}
};

#define KERNEL(label, called)                                                  \
	{.domain = OM_CPU_DOMAIN, .name = label, .is_fast = true, .state_bytes = sizeof(om_layer), .prepare = called##_prepare, \
	 .workspace = layer_workspace, .run = layer_run}

const om_kernel om_kernels_cpu_conv[] = {
	{.domain = OM_CPU_DOMAIN, .name = "PackFilter", .state_bytes = sizeof(om_layer), .prepare = pack_filter_prepare,
	 .run = pack_filter_cpu},
	{.domain = OM_CPU_DOMAIN, .name = "PackMatrix", .state_bytes = sizeof(struct pack_matrix), .fields = pack_matrix_fields,
	 .run = pack_matrix_cpu},
	KERNEL("Conv", conv),
	KERNEL("MatMul", matmul),
	{0}
};
