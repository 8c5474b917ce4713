/* SPDX-License-Identifier: Apache-2.0 */
/* org.onnxmem.cpu: transposed convolutions of channels-last images.
 *
 * A product of the pixels of an image with the weights gives, for each pixel, what it adds to the pixels of the
 * output under its window.  A line of the output is the sum of all that falls on it, so that lines are computed in
 * parallel.  Weights are packed for a convolution with a kernel of size 1, whose output channels are those of all
 * taps. */
#include <config.h>

#include "ir/query.h"
#include "kernels/cpu/kernels.h"
#include "opdef/columns.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "ops/cpu/activation.h"
#include "ops/cpu/channels_last.h"
#include "ops/family.h"
#include "ops/slices.h"

enum { X, P, B };

/* The product: `outputs` channels of each group for each tap. */
static om_layer
product(int64_t groups, int64_t inputs, int64_t outputs, int64_t taps, int64_t pixels)
{
	return (om_layer){.batch = 1, .group = groups, .channels_in = inputs, .channels_out = taps * outputs,
		.in = {1, 1, pixels}, .out = {1, 1, pixels}, .kernel = {1, 1, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
}

/* Check channels and groups; those that are negative are unknown.  Sizes that overflow are refused. */
static om_status
check_groups(const om_op_context *c, int64_t groups, int64_t channels_in, int64_t outputs, int64_t taps)
{
	int64_t n = 0;

	if (groups < 1 || channels_in % groups != 0)
		return om_op_fail(c->session, OM_SHAPE, c->op, "group is %lld, which does not divide %lld input channels",
			(long long)groups, (long long)channels_in);
	if (channels_in == 0 || outputs == 0 || taps == 0)
		return om_wrong(c, "there are no weights");
	if (outputs > 0 && taps > 0 && (__builtin_mul_overflow(outputs, taps, &n) || __builtin_mul_overflow(n, groups, &n)
	    || n > INT64_MAX >> 8))
		return om_wrong(c, "the number of weights overflows");
	return OM_OK;
}

/* The list of packed weights, when all is known. */
static om_status
packed_size(const om_op_context *c, const om_layer *l, int64_t *n)
{
	const uint64_t floats = om_layer_weights(l);

	if (floats > INT64_MAX >> 3)
		return om_wrong(c, "the number of packed weights overflows");
	*n = (int64_t)floats;
	return OM_OK;
}

/* ---- PackTransposed. ---- */

static const om_attr_spec pack_attrs[] = {{"group", OM_ATTR_INT, .i = 1}, {0}};

struct pack {
	om_layer layer;
	int64_t outputs, taps;
};

static om_status
pack_read(const om_op_context *c, struct pack *s)
{
	const om_shape *w = &c->in[0].shape;
	const int64_t groups = om_attr_int(c->op, "group");
	const char *sym;

	if (w->rank < 3 || w->rank > 2 + OM_WINDOW_AXES)
		return om_op_fail(c->session, OM_SHAPE, c->op, "W has rank %d, expected 3 to 5", w->rank);
	if (!om_dim_product(w, 2, w->rank, &s->taps, &sym))
		return om_wrong(c, "the number of taps overflows");
	s->outputs = w->dim[1];
	OM_TRY(check_groups(c, groups, w->dim[0] < 0 ? -groups : w->dim[0], s->outputs, s->taps));
	s->layer = product(groups, w->dim[0] < 0 ? -1 : w->dim[0] / groups, s->outputs, s->taps, 1);
	return OM_OK;
}

static om_status
pack_infer(om_op_context *c)
{
	struct pack s;
	int64_t n = 0;

	c->out[0].type = OM_FLOAT32;
	c->out[0].shape = (om_shape){.rank = 1, .dim = {OM_DIM_UNKNOWN}};
	if (c->in[0].shape.rank < 0)
		return OM_OK;
	OM_TRY(pack_read(c, &s));
	if (s.layer.channels_in < 0 || s.outputs < 0 || s.taps < 0)
		return OM_OK;
	OM_TRY(packed_size(c, &s.layer, &n));
	c->out[0].shape.dim[0] = n;
	return OM_OK;
}

static om_status
pack_prepare(om_op_context *c, void **state)
{
	return pack_read(c, *state);
}

static uint64_t
pack_workspace(const om_op_context *c)
{
	return om_floats_of(&c->in[0]);
}

/* W[group][input][output][tap] becomes [group][tap][output][input]. */
static om_status
pack_cpu(om_op_context *c)
{
	const struct pack *s = c->state;
	const int64_t inputs = s->layer.channels_in;
	const float *w = c->in[0].data;
	float *filters = c->scratch;

	for (int64_t g = 0; g < s->layer.group; g++)
		for (int64_t i = 0; i < inputs; i++)
			for (int64_t o = 0; o < s->outputs; o++)
				for (int64_t t = 0; t < s->taps; t++)
					filters[((g * s->taps + t) * s->outputs + o) * inputs + i] = *w++;
	om_layer_pack(&s->layer, (om_layer_source){.data = filters}, c->out[0].data);
	return OM_OK;
}

/* ---- ConvTranspose. ---- */

static const om_attr_spec transpose_attrs[] = {
	OM_LAST_WINDOW_ATTRS(true),
	{"output_padding", OM_ATTR_INTS},
	{"group", OM_ATTR_INT, .i = 1},
	{"channels", OM_ATTR_INT, .required = true},
	OM_ACTIVATION_ATTRS,
	{0}
};

struct transpose {
	om_layer product;
	om_geometry g;
	om_epilogue epilogue;
	int64_t batch, channels, outputs, taps;
	int64_t strip;                 /* rows of the image whose sums are in memory at once */
	const float *bias, *sums;
	float *y;
	int64_t row, line;             /* of the strip: its first row, and the first line of the output that reads it */
};

static om_status
read_transpose(const om_op_context *c, struct om_window *w, struct transpose *s)
{
	const om_shape *x = &c->in[X].shape;
	const int64_t groups = om_attr_int(c->op, "group"), channels = om_attr_int(c->op, "channels");
	int64_t n = 0;

	if (x->rank < 3)
		return om_op_fail(c->session, OM_SHAPE, c->op, "the input has rank %d and no spatial axes", x->rank);
	const om_shape first = om_last_to_first(x);
	const char *wrong = om_window_read(c, x->rank - 2, &first, NULL, w);
	if (wrong || (wrong = om_window_grow(c, w)))
		return om_wrong(c, wrong);
	if (channels < 1 || groups < 1 || channels % groups != 0)
		return om_op_fail(c->session, OM_SHAPE, c->op, "group is %lld, which does not divide %lld output channels",
			(long long)groups, (long long)channels);
	s->taps = om_window_volume(w->kernel);
	s->channels = channels;
	s->outputs = channels / groups;
	OM_TRY(check_groups(c, groups, first.dim[1] < 0 ? -groups : first.dim[1], s->outputs, s->taps));
	if (first.dim[1] >= 0) {
		s->product = product(groups, first.dim[1] / groups, s->outputs, s->taps, 1);
		OM_TRY(packed_size(c, &s->product, &n));
		OM_TRY(om_last_list(c, P, "the packed weights", n));
	}
	return om_last_list(c, B, "the bias", channels);
}

static om_status
transpose_infer(om_op_context *c)
{
	const om_shape *x = &c->in[X].shape;
	struct transpose s;
	struct om_window w;

	c->out[0].type = OM_FLOAT32;
	OM_TRY(om_epilogue_read(c, &s.epilogue));
	if (x->rank < 0)
		return OM_OK;
	OM_TRY(read_transpose(c, &w, &s));
	om_shape *y = &c->out[0].shape;
	*y = (om_shape){.rank = x->rank};
	om_copy_dim(y, 0, x, 0);
	for (int k = 0; k < w.n; k++)
		y->dim[k + 1] = w.out[OM_WINDOW_AXES - w.n + k];
	y->dim[x->rank - 1] = s.channels;
	return OM_OK;
}

/* Images of the batch, and axes of the image. */
static bool
transpose_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	const int axis = s->out[out].axis;
	struct transpose state;
	struct om_window w;

	if (axis + 1 == c->out[out].shape.rank)
		return false;
	s->in[X] = s->out[out];
	return axis == 0 || (read_transpose(c, &w, &state) == OM_OK && om_slice_scatter_window(c, s, axis - 1, &w));
}

static void
transpose_cost(const om_op_context *c, om_cost *cost)
{
	struct transpose s;
	struct om_window w;

	if (read_transpose(c, &w, &s) == OM_OK)
		cost->flops = 2.0 * (double)om_shape_count(&c->in[X].shape) * (double)s.outputs * (double)s.taps;
}

/* Each row of a plane is a part of its own lines only if windows do not overlap: then the sums of a strip of rows are
 * all that is required at once. */
static int64_t
strip_of(const struct transpose *s)
{
	enum { SUMS = 512 << 10 };     /* bytes, to stay in the L2 cache */
	const om_geometry *g = &s->g;
	const double row = (double)g->in[2] * (double)s->taps * (double)s->channels * sizeof(float);

	if (g->in[0] != 1 || g->out[0] != 1 || (g->kernel[1] - 1) * g->dilation[1] >= g->stride[1])
		return 0;
	return row * (double)g->in[1] <= SUMS ? 0 : row >= SUMS ? 1 : (int64_t)(SUMS / row);
}

static om_status
transpose_prepare(om_op_context *c, void **state)
{
	struct transpose *s = *state;
	struct om_window w;

	OM_TRY(read_transpose(c, &w, s));
	om_window_pack(&w);
	s->g = om_last_geometry(&w);
	s->batch = c->in[X].shape.dim[0];
	s->product.in[2] = s->product.out[2] = om_window_volume(w.in);
	s->strip = strip_of(s);
	if (s->strip)
		s->product.in[2] = s->product.out[2] = s->strip * s->g.in[2];
	return om_epilogue_read(c, &s->epilogue);
}

/* The sums of one image, or of a strip. */
static uint64_t
sums_bytes(const struct transpose *s)
{
	const om_shape sums = {.rank = 3, .dim = {s->product.in[2], s->taps, s->channels}};
	uint64_t bytes;

	return om_tensor_bytes(OM_FLOAT32, &sums, &bytes) ? om_piece_size(bytes) : UINT64_MAX;
}

/* The product of a strip with fewer rows, as the last one. */
static om_layer
product_of_rows(const struct transpose *s, int64_t rows)
{
	om_layer l = s->product;

	l.in[2] = l.out[2] = rows * s->g.in[2];
	return l;
}

/* A strip with fewer rows may be divided differently, and need more. */
static uint64_t
transpose_workspace(const om_op_context *c)
{
	const struct transpose *s = c->state;
	const uint32_t workers = c->workers ? c->workers : 1;
	const om_layer last = product_of_rows(s, s->strip ? s->g.in[1] % s->strip : 0);
	const uint64_t all = om_layer_workspace(&s->product, workers), rest = s->strip ? om_layer_workspace(&last, workers) : 0;

	return om_size_sum(sums_bytes(s), all > rest ? all : rest);
}

/* The pixel of axis `a` whose tap `k` falls on output `o`; -1: there is none. */
static int64_t
source(const om_geometry *g, int a, int64_t o, int64_t k)
{
	const int64_t at = o + g->begin[a] - k * g->dilation[a];

	return at >= 0 && at % g->stride[a] == 0 && at / g->stride[a] < g->in[a] ? at / g->stride[a] : -1;
}

/* Add tap `tap` of the pixels from `sums` on to the pixels of a line: those that are in it. */
static void
add_tap(const struct transpose *s, const float *sums, int64_t tap, float *line)
{
	const om_geometry *g = &s->g;
	const int64_t groups = s->product.group, step = g->stride[2];
	const int64_t first = tap % g->kernel[2] * g->dilation[2] - g->begin[2];
	const int64_t lo = first >= 0 ? 0 : (step - 1 - first) / step;

	for (int64_t ix = lo; ix < g->in[2] && first + ix * step < g->out[2]; ix++)
		for (int64_t k = 0; k < groups; k++) {
			const float *from = sums + ((ix * groups + k) * s->taps + tap) * s->outputs;
			float *to = line + (first + ix * step) * s->channels + k * s->outputs;
			for (int64_t i = 0; i < s->outputs; i++)
				to[i] += from[i];
		}
}

static void
start_line(const struct transpose *s, float *line)
{
	for (int64_t ox = 0; ox < s->g.out[2]; ox++, line += s->channels) {
		if (s->bias)
			memcpy(line, s->bias, (size_t)s->channels * sizeof *line);
		else
			memset(line, 0, (size_t)s->channels * sizeof *line);
	}
}

static void
transpose_lines(void *arg, int64_t image, int64_t first, int64_t end, uint32_t worker)
{
	const struct transpose *s = arg;
	const om_geometry *g = &s->g;
	const int64_t pixel = s->taps * s->channels;

	(void)image;
	(void)worker;
	for (int64_t n = s->line + first; n < s->line + end; n++) {
		float *line = s->y + n * g->out[2] * s->channels;
		start_line(s, line);
		for (int64_t tap = 0; tap < s->taps; tap++) {
			const int64_t k = tap / g->kernel[2];
			const int64_t iz = source(g, 0, n / g->out[1], k / g->kernel[1]), iy = source(g, 1, n % g->out[1], k % g->kernel[1]);
			if (iz >= 0 && iy >= 0)
				add_tap(s, s->sums + (iz * g->in[1] + iy - s->row) * g->in[2] * pixel, tap, line);
		}
		om_kernels_get()->epilogue->row(line, g->out[2] * s->channels, &s->epilogue);
	}
}

/* The lines of the output that rows from `row` on are the first to be read for. */
static int64_t
line_of(const struct transpose *s, int64_t row)
{
	const om_geometry *g = &s->g;
	const int64_t line = row * g->stride[1] - g->begin[1];

	return row >= g->in[1] || line > g->out[1] ? g->out[1] : line < 0 ? 0 : line;
}

/* One image, in strips. */
static void
transpose_image(const om_op_context *c, struct transpose *s, om_layer_data *d)
{
	const om_geometry *g = &s->g;
	const int64_t row = g->in[2] * s->product.group * s->product.channels_in;
	const float *x = d->x;

	for (s->row = 0; s->row < g->in[1]; s->row += s->strip) {
		const int64_t rows = s->strip < g->in[1] - s->row ? s->strip : g->in[1] - s->row;
		const om_layer product = product_of_rows(s, rows);
		d->x = x + s->row * row;
		om_kernels_get()->layer->run(&product, d);
		s->line = line_of(s, s->row);
		om_last_parallel(c, &(struct om_last_lines){1, line_of(s, s->row + rows) - s->line, transpose_lines, s});
	}
}

static om_status
transpose_cpu(om_op_context *c)
{
	struct transpose s = *(const struct transpose *)c->state;
	const int64_t in = om_window_volume(s.g.in) * s.product.group * s.product.channels_in, out = om_window_volume(s.g.out) * s.channels;
	om_layer_data d = {.weights = c->in[P].data, .y = c->scratch, .scratch = (char *)c->scratch + sums_bytes(&s), .pool = c->pool};

	s.bias = om_has_in(c, B) ? c->in[B].data : NULL;
	s.sums = c->scratch;
	for (int64_t k = 0; k < s.batch; k++) {
		d.x = (const float *)c->in[X].data + k * in;
		s.y = (float *)c->out[0].data + k * out;
		if (s.strip) {
			transpose_image(c, &s, &d);
			continue;
		}
		if (in > 0)
			om_kernels_get()->layer->run(&s.product, &d);
		om_last_parallel(c, &(struct om_last_lines){1, s.g.out[0] * s.g.out[1], transpose_lines, &s});
	}
	return OM_OK;
}

/* ---- The operator definitions. ---- */

const om_opdef om_ops_cpu_conv_transpose[] = {
	{.domain = OM_CPU_DOMAIN, .name = "PackTransposed", .brief = "weights of a transposed convolution, for ConvTranspose",
	 .since = 1, .min_in = 1, .max_in = 1, .min_out = 1, .max_out = 1, .attrs = pack_attrs, .infer = pack_infer,
	 .cpu = pack_cpu, .scratch = pack_workspace, .input_types = {OF(FLOAT32)}},
	{.domain = OM_CPU_DOMAIN, .name = "ConvTranspose", .brief = "transposed convolution of a channels-last image",
	 .since = 1, .min_in = 2, .max_in = 3, .min_out = 1, .max_out = 1, .attrs = transpose_attrs, .infer = transpose_infer,
	 .slice = transpose_slice, .cpu = transpose_cpu, .scratch = transpose_workspace, .cost = transpose_cost,
	 .input_types = {OF(FLOAT32), OF(FLOAT32), OF(FLOAT32)}},
	{0}
};

const om_kernel om_kernels_cpu_conv_transpose[] = {
	{.domain = OM_CPU_DOMAIN, .name = "PackTransposed", .state_bytes = sizeof(struct pack), .prepare = pack_prepare,
	 .workspace = pack_workspace, .run = pack_cpu},
	{.domain = OM_CPU_DOMAIN, .name = "ConvTranspose", .state_bytes = sizeof(struct transpose), .prepare = transpose_prepare,
	 .workspace = transpose_workspace, .run = transpose_cpu},
	{0}
};
