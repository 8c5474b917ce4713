/* SPDX-License-Identifier: Apache-2.0 */
/* org.onnxmem.cpu: a depthwise convolution of what a product has expanded, as in MobileNets.
 *
 * The expanded image is many times as large as both ends, and is written and read once.  So it is never in memory as a
 * whole: each worker has a buffer of some lines, which stays in a near cache.  For a few lines of the output, the lines
 * under the windows are expanded that are not in the buffer yet, then they are convolved. */
#include <config.h>

#include "ir/query.h"
#include "kernels/cpu/kernels.h"
#include "opdef/columns.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "ops/cpu/activation.h"
#include "ops/cpu/channels_last.h"
#include "ops/cpu/cpu_layer.h"
#include "ops/family.h"

enum { X, EXPANSION, PACKED, EXPANSION_BIAS, B };

enum { BUFFER_BYTES = 256 << 10 };  /* half of a second cache */

static const om_attr_spec expanded_attrs[] = {
	OM_LAST_WINDOW_ATTRS(true),
	{"channels", OM_ATTR_INT, .required = true},
	OM_ACTIVATION_ATTRS,
	OM_EXPANSION_ATTRS,
	{0}
};

/* ---- Shapes. ---- */

static om_status
check_expansion(const om_op_context *c, int64_t channels)
{
	const om_shape *x = &c->in[X].shape, *w = &c->in[EXPANSION].shape;
	const om_layer l = om_layer_of_product(x->dim[3], channels);

	if (x->dim[3] < 0)
		return OM_OK;
	if (x->dim[3] > OM_MOST_EXPANDED_DEPTH)
		return om_op_fail(c->session, OM_SHAPE, c->op, "the input has %lld channels, expected at most %d",
			(long long)x->dim[3], OM_MOST_EXPANDED_DEPTH);
	if (om_layer_weights(&l) > INT64_MAX)
		return om_wrong(c, "the packed weights are too large");
	return w->rank < 0 ? OM_OK : om_last_list(c, EXPANSION, "the weights of the expansion", (int64_t)om_layer_weights(&l));
}

static om_status
check_taps(const om_op_context *c, int64_t taps, int64_t channels)
{
	int64_t n;

	if (__builtin_mul_overflow(taps, channels, &n))
		return om_op_fail(c->session, OM_SHAPE, c->op, "%lld taps of %lld weights are too many", (long long)taps,
			(long long)channels);
	return om_last_list(c, PACKED, "the packed weights", n);
}

static om_status
read_expanded(const om_op_context *c, struct om_window *w)
{
	const int64_t channels = om_attr_int(c->op, "channels");
	const om_shape *x = &c->in[X].shape;

	if (x->rank != 4)
		return om_op_fail(c->session, OM_SHAPE, c->op, "the input has rank %d, expected 4", x->rank);
	if (channels < 1)
		return om_op_fail(c->session, OM_SHAPE, c->op, "channels is %lld", (long long)channels);
	const char *wrong = om_last_window(c, false, w);
	if (wrong)
		return om_wrong(c, wrong);
	OM_TRY(check_expansion(c, channels));
	OM_TRY(om_last_list(c, EXPANSION_BIAS, "the bias of the expansion", channels));
	OM_TRY(check_taps(c, om_window_volume(w->kernel), channels));
	return om_last_list(c, B, "the bias", channels);
}

static om_status
read_activations(const om_op_context *c, om_epilogue *expansion, om_epilogue *e)
{
	OM_TRY(om_epilogue_read_expansion(c, expansion));
	return om_epilogue_read(c, e);
}

static om_status
expanded_infer(om_op_context *c)
{
	struct om_window w;
	om_epilogue expansion, e;

	c->out[0].type = OM_FLOAT32;
	OM_TRY(read_activations(c, &expansion, &e));
	if (c->in[X].shape.rank < 0)
		return OM_OK;
	OM_TRY(read_expanded(c, &w));
	c->out[0].shape = om_last_shape(c, &w, om_attr_int(c->op, "channels"));
	return OM_OK;
}

static void
expanded_cost(const om_op_context *c, om_cost *cost)
{
	const om_shape *x = &c->in[X].shape;
	const double channels = (double)om_attr_int(c->op, "channels");
	struct om_window w;

	if (!om_last_window(c, false, &w))
		cost->flops = 2.0 * (double)om_shape_count(x) * channels
			+ 2.0 * (double)om_shape_count(&c->out[0].shape) * (double)om_window_volume(w.kernel);
}

/* ---- The kernel. ---- */

struct expanded {
	om_depthwise d;
	om_layer l;               /* of a line; its `in` and `out` are set for each call */
	const om_kernels *kernels;
	int64_t batch;
	int64_t strip;            /* lines of the output that are computed at once */
	int64_t reach;            /* lines under a window */
	int64_t line;             /* floats of an expanded line */
	uint64_t zeros, buffer, product;      /* bytes of scratch: once; for each worker, lines, and that of the product */
	const float *x, *weights, *bias;
	float *y;
	char *scratch;
};

static int64_t
within(int64_t v, int64_t low, int64_t high)
{
	return v < low ? low : v > high ? high : v;
}

static void
set_lines(om_layer *l, int64_t lines, int64_t width)
{
	l->in[2] = l->out[2] = lines * width;
}

/* The most lines that are in a buffer. */
static int64_t
set_strip(struct expanded *s)
{
	const om_geometry *g = &s->d.g;
	const uint64_t bytes = om_size_product((uint64_t)s->line, sizeof(float));
	const int64_t fit = bytes > BUFFER_BYTES ? 1 : BUFFER_BYTES / (int64_t)(bytes ? bytes : 1);

	s->reach = (g->kernel[1] - 1) * g->dilation[1] + 1;
	s->strip = within(fit < s->reach ? 1 : (fit - s->reach) / g->stride[1] + 1, 1, g->out[1] ? g->out[1] : 1);
	return within((s->strip - 1) * g->stride[1] + s->reach, 0, g->in[1]);
}

/* The scratch of a product does not only grow with its rows. */
static void
set_scratch(struct expanded *s, int64_t lines)
{
	s->zeros = om_piece_size(om_size_product((uint64_t)s->d.channels, sizeof(float)));
	s->buffer = om_piece_size(om_size_product(om_size_product((uint64_t)lines, (uint64_t)s->line), sizeof(float)));
	s->product = 0;
	for (int64_t k = 1; k <= lines; k++) {
		set_lines(&s->l, k, s->d.g.in[2]);
		const uint64_t bytes = om_piece_size(om_layer_workspace(&s->l, 1));
		s->product = bytes > s->product ? bytes : s->product;
	}
}

static om_status
expanded_prepare(om_op_context *c, void **state)
{
	struct expanded *s = *state;
	const om_shape *x = &c->in[X].shape;
	struct om_window w;

	OM_TRY(read_expanded(c, &w));
	s->d = (om_depthwise){.g = om_last_geometry(&w), .channels = om_attr_int(c->op, "channels")};
	s->l = om_layer_of_product(x->dim[3], s->d.channels);
	s->kernels = om_kernels_get();
	s->batch = x->dim[0];
	s->line = (int64_t)om_size_product((uint64_t)x->dim[2], (uint64_t)s->d.channels);
	if (s->line < 0)
		return om_wrong(c, "an expanded line is too large");
	set_scratch(s, set_strip(s));
	return read_activations(c, &s->l.epilogue, &s->d.epilogue);
}

static uint64_t
expanded_workspace(const om_op_context *c)
{
	const struct expanded *s = c->state;
	const uint64_t each = om_size_sum(s->buffer, s->product);

	return om_size_sum(s->zeros, om_size_product(c->workers ? c->workers : 1, each));
}

/* Expand `n` lines of an image from `from` on. */
static void
expand(const struct expanded *s, const float *image, int64_t from, int64_t n, float *to, void *scratch)
{
	const int64_t width = s->d.g.in[2];
	om_layer l = s->l;
	const om_layer_data d = {.x = image + from * width * l.channels_in, .weights = s->weights, .bias = s->bias, .y = to,
		.scratch = scratch};

	if (n < 1)
		return;
	set_lines(&l, n, width);
	s->kernels->layer->run(&l, &d);
}

/* Lines [first, end) of the output of an image. */
static void
expanded_lines(void *arg, int64_t image, int64_t first, int64_t end, uint32_t worker)
{
	const struct expanded *s = arg;
	const om_geometry *g = &s->d.g;
	const float *x = s->x + image * g->in[1] * g->in[2] * s->l.channels_in;
	float *y = s->y + image * g->out[1] * g->out[2] * s->d.channels;
	char *scratch = s->scratch + s->zeros + worker * (s->buffer + s->product);
	float *buffer = (float *)(void *)scratch;
	om_depthwise d = s->d;
	int64_t from = 0, to = 0;     /* lines in the buffer */

	for (int64_t o = first; o < end; o += s->strip) {
		const int64_t n = end - o < s->strip ? end - o : s->strip, top = o * g->stride[1] - g->begin[1];
		const int64_t start = within(top, 0, g->in[1]), stop = within(top + (n - 1) * g->stride[1] + s->reach, start, g->in[1]);
		const int64_t kept = to > start ? to - start : 0;
		if (kept)
			memmove(buffer, buffer + (start - from) * s->line, (size_t)(kept * s->line) * sizeof *buffer);
		expand(s, x, start + kept, stop - start - kept, buffer + kept * s->line, scratch + s->buffer);
		from = start;
		to = stop;
		d.g.in[1] = stop - start;
		d.g.out[1] = n;
		d.g.begin[1] = start - top;
		s->kernels->depthwise->lines(&d, buffer, y + o * g->out[2] * s->d.channels, 0, n);
	}
}

static om_status
expanded_cpu(om_op_context *c)
{
	struct expanded s = *(const struct expanded *)c->state;

	memset(c->scratch, 0, s.zeros);
	s.scratch = c->scratch;
	s.d.zeros = c->scratch;
	s.d.packed = c->in[PACKED].data;
	s.d.bias = om_has_in(c, B) ? c->in[B].data : s.d.zeros;
	s.weights = c->in[EXPANSION].data;
	s.bias = om_has_in(c, EXPANSION_BIAS) ? c->in[EXPANSION_BIAS].data : NULL;
	s.x = c->in[X].data;
	s.y = c->out[0].data;
	om_last_parallel(c, &(struct om_last_lines){s.batch, s.d.g.out[1], expanded_lines, &s});
	return OM_OK;
}

/* ---- The operator definition. ---- */

const om_opdef om_ops_cpu_expanded[] = {
	{.domain = OM_CPU_DOMAIN, .name = "ExpandedDepthwiseConv",
	 .brief = "depthwise convolution of the product of a channels-last image, which is computed by lines",
	 .since = 1, .min_in = 3, .max_in = 5, .min_out = 1, .max_out = 1, .attrs = expanded_attrs,
	 .infer = expanded_infer, .slice = om_last_slice, .cpu = expanded_cpu, .scratch = expanded_workspace, .cost = expanded_cost,
	 .input_types = {OF(FLOAT32), OF(FLOAT32), OF(FLOAT32), OF(FLOAT32), OF(FLOAT32)}},
	{0}
};

const om_kernel om_kernels_cpu_expanded[] = {
	{.domain = OM_CPU_DOMAIN, .name = "ExpandedDepthwiseConv", .state_bytes = sizeof(struct expanded),
	 .prepare = expanded_prepare, .workspace = expanded_workspace, .run = expanded_cpu},
	{0}
};
