/* SPDX-License-Identifier: Apache-2.0 */
/* org.onnxmem.cpu: depthwise convolutions of channels-last images.
 *
 * Packed weights are [taps][output channels].  With several output channels for each input channel, the channels
 * of the image are repeated first. */
#include <config.h>

#include "ir/query.h"
#include "kernels/cpu/kernels.h"
#include "opdef/columns.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "ops/cpu/activation.h"
#include "ops/cpu/channels_last.h"
#include "ops/family.h"

enum { X, P, B };

/* ---- PackDepthwise. ---- */

static om_status
pack_infer(om_op_context *c)
{
	const om_shape *w = &c->in[0].shape;

	c->out[0].type = OM_FLOAT32;
	c->out[0].shape = (om_shape){.rank = 1, .dim = {OM_DIM_UNKNOWN}};
	if (w->rank < 0)
		return OM_OK;
	if (w->rank < 3 || w->rank > 2 + OM_WINDOW_AXES)
		return om_op_fail(c->session, OM_SHAPE, c->op, "W has rank %d, expected 3 to 5", w->rank);
	if (!om_dims_agree(w->dim[1], 1))
		return om_op_fail(c->session, OM_SHAPE, c->op, "W has %lld channels per group, expected 1",
			(long long)w->dim[1]);
	if (!om_dim_product(w, 0, w->rank, &c->out[0].shape.dim[0], &c->out[0].shape.sym[0]))
		return om_op_fail(c->session, OM_SHAPE, c->op, "the number of weights overflows");
	return OM_OK;
}

static om_status
pack_cpu(om_op_context *c)
{
	const int64_t m = c->in[0].shape.dim[0], n = om_shape_count(&c->in[0].shape), taps = m ? n / m : 0;
	const float *w = c->in[0].data;
	float *p = c->out[0].data;

	for (int64_t t = 0; t < taps; t++)
		for (int64_t i = 0; i < m; i++)
			p[t * m + i] = w[i * taps + t];
	return OM_OK;
}

/* ---- DepthwiseConv. ---- */

static const om_attr_spec depthwise_attrs[] = {
	OM_LAST_WINDOW_ATTRS(true),
	{"channels", OM_ATTR_INT, .required = true},
	OM_ACTIVATION_ATTRS,
	{0}
};

/* Input channels are known, positive, and divide those of the output. */
static om_status
check_channels(const om_op_context *c, int64_t channels)
{
	const om_shape *x = &c->in[X].shape;
	const int64_t n = x->dim[x->rank - 1];

	if (channels < 1)
		return om_op_fail(c->session, OM_SHAPE, c->op, "channels is %lld", (long long)channels);
	if (n == 0 || (n > 0 && channels % n != 0))
		return om_op_fail(c->session, OM_SHAPE, c->op,
			"channels is %lld, which is not a multiple of the %lld channels of the input", (long long)channels,
			(long long)n);
	return OM_OK;
}

static om_status
read_depthwise(const om_op_context *c, struct om_window *w)
{
	const int64_t channels = om_attr_int(c->op, "channels");
	const char *wrong = om_last_window(c, false, w);

	if (wrong)
		return om_wrong(c, wrong);
	OM_TRY(check_channels(c, channels));
	OM_TRY(om_last_packed(c, om_window_volume(w->kernel), channels));
	return om_last_list(c, B, "the bias", channels);
}

static om_status
depthwise_infer(om_op_context *c)
{
	struct om_window w;
	om_epilogue e;

	c->out[0].type = OM_FLOAT32;
	OM_TRY(om_epilogue_read(c, &e));
	if (c->in[X].shape.rank < 0)
		return OM_OK;
	OM_TRY(read_depthwise(c, &w));
	c->out[0].shape = om_last_shape(c, &w, om_attr_int(c->op, "channels"));
	return OM_OK;
}

static void
depthwise_cost(const om_op_context *c, om_cost *cost)
{
	struct om_window w;

	if (!om_last_window(c, false, &w))
		cost->flops = 2.0 * (double)om_shape_count(&c->out[0].shape) * (double)om_window_volume(w.kernel);
}

struct depthwise {
	om_depthwise d;
	const om_depthwise_kernels *kernels;
	int64_t batch, channels, times;   /* input channels, and how often each is repeated */
	const float *x;
	float *y;
};

static om_status
depthwise_prepare(om_op_context *c, void **state)
{
	struct depthwise *s = *state;
	const om_shape *x = &c->in[X].shape;
	struct om_window w;

	OM_TRY(read_depthwise(c, &w));
	om_window_pack(&w);
	s->d = (om_depthwise){.g = om_last_geometry(&w), .channels = om_attr_int(c->op, "channels")};
	s->kernels = om_kernels_get()->depthwise;
	s->batch = x->dim[0];
	s->channels = x->dim[x->rank - 1];
	s->times = s->d.channels / s->channels;
	return om_epilogue_read(c, &s->d.epilogue);
}

/* Bytes of zeros for one pixel. */
static uint64_t
zero_bytes(const struct depthwise *s)
{
	return om_piece_size((uint64_t)s->d.channels * sizeof(float));
}

static uint64_t
depthwise_workspace(const om_op_context *c)
{
	const struct depthwise *s = c->state;
	const om_geometry *g = &s->d.g;
	const om_shape image = {.rank = 4, .dim = {g->in[0], g->in[1], g->in[2], s->d.channels}};
	uint64_t bytes = 0;

	if (s->times > 1 && !om_tensor_bytes(OM_FLOAT32, &image, &bytes))
		return UINT64_MAX;
	return om_size_sum(zero_bytes(s), om_piece_size(bytes));
}

/* Lines of the image with all channels repeated. */
static void
repeat_lines(void *arg, int64_t image, int64_t first, int64_t end, uint32_t worker)
{
	const struct depthwise *s = arg;
	const int64_t pixels = s->d.g.in[2];
	const float *x = s->x + (image * s->d.g.in[0] * s->d.g.in[1] + first) * pixels * s->channels;
	float *to = s->y + first * pixels * s->d.channels;

	(void)worker;
	for (int64_t i = 0; i < (end - first) * pixels * s->channels; i++)
		for (int64_t k = 0; k < s->times; k++)
			*to++ = x[i];
}

static void
conv_lines(void *arg, int64_t image, int64_t first, int64_t end, uint32_t worker)
{
	const struct depthwise *s = arg;

	(void)worker;
	s->kernels->lines(&s->d, s->x + image * om_window_volume(s->d.g.in) * s->d.channels,
		s->y + image * om_window_volume(s->d.g.out) * s->d.channels, first, end);
}

/* One image after the other: the repeated channels are those of one. */
static void
repeated_images(const om_op_context *c, struct depthwise *s)
{
	const int64_t lines_in = s->d.g.in[0] * s->d.g.in[1], lines_out = s->d.g.out[0] * s->d.g.out[1];
	float *image = (float *)((char *)c->scratch + zero_bytes(s));

	for (int64_t k = 0; k < s->batch; k++) {
		struct depthwise repeat = *s, conv = *s;
		repeat.x = (const float *)c->in[X].data + k * lines_in * s->d.g.in[2] * s->channels;
		repeat.y = image;
		om_last_parallel(c, &(struct om_last_lines){1, lines_in, repeat_lines, &repeat});
		conv.x = image;
		conv.y = (float *)c->out[0].data + k * lines_out * s->d.g.out[2] * s->d.channels;
		om_last_parallel(c, &(struct om_last_lines){1, lines_out, conv_lines, &conv});
	}
}

static om_status
depthwise_cpu(om_op_context *c)
{
	struct depthwise s = *(const struct depthwise *)c->state;

	memset(c->scratch, 0, zero_bytes(&s));
	s.d.zeros = c->scratch;
	s.d.packed = c->in[P].data;
	s.d.bias = om_has_in(c, B) ? c->in[B].data : s.d.zeros;
	s.x = c->in[X].data;
	s.y = c->out[0].data;
	if (s.times > 1)
		repeated_images(c, &s);
	else
		om_last_parallel(c, &(struct om_last_lines){s.batch, s.d.g.out[0] * s.d.g.out[1], conv_lines, &s});
	return OM_OK;
}

/* ---- The operator definitions. ---- */

const om_opdef om_ops_cpu_depthwise[] = {
	{.domain = OM_CPU_DOMAIN, .name = "PackDepthwise", .brief = "weights of a depthwise convolution, for DepthwiseConv",
	 .since = 1, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .infer = pack_infer, .cpu = pack_cpu,
	 .input_types = {OF(FLOAT32)}},
	{.domain = OM_CPU_DOMAIN, .name = "DepthwiseConv", .brief = "depthwise convolution of a channels-last image",
	 .since = 1, .min_in = 2, .max_in = 3, .min_out = 1, .max_out = 1, .attrs = depthwise_attrs,
	 .infer = depthwise_infer, .slice = om_last_slice, .cpu = depthwise_cpu, .scratch = depthwise_workspace, .cost = depthwise_cost,
	 .input_types = {OF(FLOAT32), OF(FLOAT32), OF(FLOAT32)}},
	{0}
};

const om_kernel om_kernels_cpu_depthwise[] = {
	{.domain = OM_CPU_DOMAIN, .name = "DepthwiseConv", .state_bytes = sizeof(struct depthwise),
	 .prepare = depthwise_prepare, .workspace = depthwise_workspace, .run = depthwise_cpu},
	{0}
};
