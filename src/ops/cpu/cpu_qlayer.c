/* SPDX-License-Identifier: Apache-2.0 */
/* org.onnxmem.cpu: convolutions of channels-last images of 8-bit integers and matrix products, with weights that an op
 * of their own has packed.  The formats are described in kernels/cpu/qlayer.h.  Sums are exact, and they are scaled and
 * rounded as by QLinearConv: kernels of all instruction sets and the reference agree in all bits. */
#include <config.h>

#include "base/arena_internal.h"
#include "base/shape.h"
#include "ir/query.h"
#include "kernels/cpu/kernels.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "ops/cpu/channels_last.h"
#include "ops/cpu/cpu_layer.h"
#include "ops/cpu/cpu_qlayer.h"
#include "ops/family.h"
#include "ops/math/gemm_int8.h"

/* ---- Packing. ---- */

static om_status
pack_filter_infer(om_op_context *c)
{
	return om_layer_infer_filter(c, OM_INT8, om_layer_read_filter, om_qlayer_weights);
}

static om_status
pack_filter_prepare(om_op_context *c, void **state)
{
	return om_layer_read_filter(c, *state);
}

static om_status
pack_filter_cpu(om_op_context *c)
{
	om_qlayer_pack(c->state, c->in[0].data, c->in[0].type == OM_INT8, false, c->out[0].data);
	return OM_OK;
}

static om_status
pack_matrix_infer(om_op_context *c)
{
	return om_layer_infer_matrix(c, OM_INT8, om_qlayer_weights);
}

struct matrix {
	int64_t is_transposed;
};

static const om_attr_field matrix_fields[] = {OM_FIELD_AS(struct matrix, INT, is_transposed, "transB"), {0}};

static om_status
pack_matrix_cpu(om_op_context *c)
{
	const bool is_transposed = ((const struct matrix *)c->state)->is_transposed != 0;
	const om_layer l = om_layer_of_matrix(&c->in[0].shape, is_transposed);

	om_qlayer_pack(&l, c->in[0].data, c->in[0].type == OM_INT8, !is_transposed, c->out[0].data);
	return OM_OK;
}

/* ---- Operands. ---- */

/* Filter elements of an output channel. */
static int64_t
elements_of(const om_layer *l)
{
	return l->channels_in * om_window_volume(l->kernel);
}

static om_status
check_count(const om_op_context *c, uint32_t k, int64_t channels)
{
	const om_shape *s = &c->in[k].shape;
	const bool per_channel = k == OM_QW_SCALE || k == OM_QW_ZERO || k == OM_QBIAS;

	if (!om_has_in(c, k) || !om_shape_is_known(s))
		return OM_OK;
	const int64_t n = om_shape_count(s);
	if ((n == 1 && k != OM_QBIAS) || (per_channel && n == channels))
		return OM_OK;
	return om_op_fail(c->session, OM_SHAPE, c->op, "input %u has %lld elements, expected 1 or %lld", k, (long long)n,
		(long long)channels);
}

om_status
om_qlayer_check(om_op_context *c, int64_t channels)
{
	const bool scaled = om_has_in(c, OM_QX_SCALE), is_float = scaled && !om_has_in(c, OM_QY_SCALE);

	if (scaled != om_has_in(c, OM_QW_SCALE) || (om_has_in(c, OM_QY_SCALE) && !scaled)
	    || (om_has_in(c, OM_QY_ZERO) && !om_has_in(c, OM_QY_SCALE)))
		return om_wrong(c, "scales of input, weights and output do not fit together");
	for (uint32_t k = OM_QX_SCALE; k < OM_QINPUTS; k++)
		OM_TRY(check_count(c, k, channels));
	c->out[0].type = !scaled ? OM_INT32 : is_float ? OM_FLOAT32 : om_has_in(c, OM_QY_ZERO) ? c->in[OM_QY_ZERO].type : OM_UINT8;
	return OM_OK;
}

static int32_t
byte_at(const om_op_context *c, uint32_t k, int64_t i)
{
	return om_has_in(c, k) ? om_byte_at(&c->in[k], om_shape_count(&c->in[k].shape) == 1 ? 0 : i) : 0;
}

static uint64_t
list_bytes(const om_layer *l)
{
	return om_piece_size((uint64_t)om_qlayer_channels(l) * sizeof(int32_t));
}

uint64_t
om_qlayer_operand_bytes(const om_layer *l)
{
	return 3 * list_bytes(l);
}

/* The bounds of a quantized output, between the attributes. */
static void
read_bounds(const om_op_context *c, int64_t least, int64_t most, om_qlayer_operands *o)
{
	om_quantized_range(c->out[0].type, &o->least, &o->most);
	o->y_zero = byte_at(c, OM_QY_ZERO, 0);
	o->least = least > o->least ? least > o->most ? o->most : (int32_t)least : o->least;
	o->most = most < o->most ? most < o->least ? o->least : (int32_t)most : o->most;
}

/* A list of an operand: elements `step` apart, 0 if there is one for all channels. */
struct list {
	const void *at;           /* NULL: the operand is omitted */
	om_dtype type;
	int64_t step;
};

static struct list
list_of(const om_op_context *c, uint32_t k)
{
	if (!om_has_in(c, k))
		return (struct list){NULL, OM_UNDEFINED, 0};
	return (struct list){c->in[k].data, c->in[k].type, om_shape_count(&c->in[k].shape) != 1};
}

/* Zero points of packed weights, of `n` channels from `first` on. */
static void
read_zeros(const struct list *z, int64_t first, int64_t n, int32_t *to)
{
	for (int64_t k = 0; z->at && k < n; k++) {
		const int64_t at = (first + k) * z->step;
		to[k] = z->type == OM_UINT8 ? ((const uint8_t *)z->at)[at] - 128 : ((const int8_t *)z->at)[at];
	}
}

static void
read_scales(const om_op_context *c, const struct list *w, int64_t first, int64_t n, float *to)
{
	const float x = om_has_in(c, OM_QX_SCALE) ? *(const float *)c->in[OM_QX_SCALE].data : 0;
	const float y = om_has_in(c, OM_QY_SCALE) ? *(const float *)c->in[OM_QY_SCALE].data : 1;

	for (int64_t k = 0; w->at && k < n; k++)
		to[k] = x * ((const float *)w->at)[(first + k) * w->step] / y;
}

/* Numbers [at, at + n) of the lists, which belong to output channels from `first` on.  Sums wrap around. */
static void
read_group(const om_op_context *c, const int8_t *sums, int64_t elements, int64_t at, int64_t first, int64_t n,
	om_qlayer_operands *o)
{
	const struct list zeros = list_of(c, OM_QW_ZERO), scales = list_of(c, OM_QW_SCALE), bias = list_of(c, OM_QBIAS);
	const uint32_t x_zero = (uint32_t)o->x_zero;

	read_zeros(&zeros, first, n, o->w_zero + at);
	read_scales(c, &scales, first, n, o->scale + at);
	for (int64_t k = 0; k < n; k++) {
		const uint32_t added = bias.at ? (uint32_t)((const int32_t *)bias.at)[first + k] : 0;
		const int32_t zero = o->w_zero[at + k];
		int32_t sum;
		memcpy(&sum, sums + (at + k) * (int64_t)sizeof sum, sizeof sum);
		o->has_w_zero |= zero != 0;
		o->offset[at + k] = (int32_t)(added - x_zero * (uint32_t)sum + (uint32_t)elements * (x_zero * (uint32_t)zero));
	}
}

void
om_qlayer_read(const om_op_context *c, const om_qlayer_state *s, void *room, om_qlayer_operands *o)
{
	const om_layer *l = &s->l.shape;
	const int64_t wide = om_qlayer_channels(l) / l->group;
	const int8_t *sums = (const int8_t *)c->in[OM_QW].data + om_qlayer_panels(l);
	char *at = room;

	*o = (om_qlayer_operands){.offset = room, .w_zero = (int32_t *)(void *)(at + list_bytes(l)),
		.scale = (float *)(void *)(at + 2 * list_bytes(l)),
		.x_zero = byte_at(c, OM_QX_ZERO, 0) + (c->in[OM_QX].type == OM_INT8 ? 128 : 0)};
	memset(room, 0, om_qlayer_operand_bytes(l));
	for (int64_t g = 0; g < l->group; g++)
		read_group(c, sums, elements_of(l), g * wide, g * l->channels_out, l->channels_out, o);
	read_bounds(c, s->least, s->most, o);
}

/* ---- The layers. ---- */

static om_status
check_weights(const om_op_context *c, const om_layer *l)
{
	const uint64_t n = om_qlayer_weights(l);
	const om_shape *s = &c->in[OM_QW].shape;

	if (n > INT64_MAX)
		return om_wrong(c, "the packed weights are too large");
	if (s->rank < 0 || (s->rank == 1 && om_dims_agree(s->dim[0], (int64_t)n)))
		return OM_OK;
	return om_op_fail(c->session, OM_SHAPE, c->op, "the packed weights do not have %llu elements", (unsigned long long)n);
}

/* Everything about a convolution whose image has a known rank; unknown dims are negative. */
static om_status
read_conv(const om_op_context *c, om_layer *l, struct om_window *w)
{
	const om_shape *x = &c->in[OM_QX].shape;
	const int64_t channels = om_attr_int(c->op, "channels"), group = om_attr_int(c->op, "group"), n = x->dim[x->rank - 1];
	const char *wrong = om_last_window(c, false, w);

	if (wrong)
		return om_wrong(c, wrong);
	if (channels < 1 || group < 1 || channels % group || (n >= 0 && n % group))
		return om_op_fail(c->session, OM_SHAPE, c->op, "group is %lld, for %lld input channels and %lld output channels",
			(long long)group, (long long)n, (long long)channels);
	*l = (om_layer){.batch = x->dim[0], .group = group, .channels_in = n < 0 ? -1 : n / group, .channels_out = channels / group};
	om_layer_set_window(l, w);
	return n < 0 ? OM_OK : check_weights(c, l);
}

/* The function that reads a kind of layer. */
typedef om_status read_layer(const om_op_context *c, om_layer *l, struct om_window *w);

/* `channels` of the output; OM_DIM_UNKNOWN: as many as the input has. */
static om_status
infer_window(om_op_context *c, read_layer *read, int64_t channels)
{
	const om_shape *x = &c->in[OM_QX].shape;
	struct om_window w;
	om_layer l;

	OM_TRY(om_qlayer_check(c, channels < 0 && x->rank > 0 ? x->dim[x->rank - 1] : channels));
	if (x->rank < 0)
		return OM_OK;
	OM_TRY(read(c, &l, &w));
	c->out[0].shape = om_last_shape(c, &w, channels);
	return OM_OK;
}

static om_status
conv_infer(om_op_context *c)
{
	return infer_window(c, read_conv, om_attr_int(c->op, "channels"));
}

static om_status
matmul_infer(om_op_context *c)
{
	const int64_t columns = om_attr_int(c->op, "columns");

	OM_TRY(om_qlayer_check(c, columns));
	if (columns < 1)
		return om_op_fail(c->session, OM_SHAPE, c->op, "columns is %lld", (long long)columns);
	return om_layer_infer_product(c, columns, check_weights);
}

/* What all layers have in common. */
static void
set_state(const om_op_context *c, om_qlayer_state *s)
{
	om_qlayer *l = &s->l;

	s->least = om_attr_int(c->op, "least");
	s->most = om_attr_int(c->op, "most");
	l->is_signed = c->in[OM_QX].type == OM_INT8;
	l->output = c->out[0].type == OM_INT32 ? OM_QLAYER_INT32 : c->out[0].type == OM_FLOAT32 ? OM_QLAYER_FLOAT : OM_QLAYER_BYTES;
}

static om_status
prepare_window(om_op_context *c, read_layer *read, om_qlayer_state *s)
{
	struct om_window w;

	OM_TRY(read(c, &s->l.shape, &w));
	set_state(c, s);
	return OM_OK;
}

static om_status
conv_prepare(om_op_context *c, void **state)
{
	return prepare_window(c, read_conv, *state);
}

static om_status
matmul_prepare(om_op_context *c, void **state)
{
	const om_shape *x = &c->in[OM_QX].shape;
	om_qlayer_state *s = *state;
	om_layer *l = &s->l.shape;

	*l = om_layer_of_product(x->dim[x->rank - 1], om_attr_int(c->op, "columns"));
	l->in[2] = l->out[2] = om_shape_span(x, 0, x->rank - 1);
	set_state(c, s);
	return check_weights(c, l);
}

static uint64_t
layer_workspace(const om_op_context *c)
{
	const om_qlayer *l = &((const om_qlayer_state *)c->state)->l;

	return om_size_sum(om_qlayer_operand_bytes(&l->shape), om_qlayer_workspace(l, c->workers ? c->workers : 1));
}

static om_status
layer_run(om_op_context *c)
{
	const om_qlayer *l = &((const om_qlayer_state *)c->state)->l;
	const int8_t *weights = c->in[OM_QW].data;
	om_qlayer_operands o;

	if (om_shape_count(&c->out[0].shape) == 0)
		return OM_OK;
	om_qlayer_read(c, c->state, c->scratch, &o);
	const om_qlayer_data d = {.x = c->in[OM_QX].data, .weights = weights, .x_zero = o.x_zero, .offset = o.offset,
		.w_zero = o.has_w_zero ? o.w_zero : NULL, .scale = o.scale, .y_zero = o.y_zero, .least = o.least, .most = o.most,
		.y = c->out[0].data, .scratch = (char *)c->scratch + om_qlayer_operand_bytes(&l->shape), .pool = c->pool};
	om_kernels_get()->qlayer->run(l, &d);
	return OM_OK;
}

/* ---- Depthwise convolutions. ---- */

/* The layer has a group, in which an output channel has its own input channel. */
static om_status
read_depthwise(const om_op_context *c, om_layer *l, struct om_window *w)
{
	const om_shape *x = &c->in[OM_QX].shape;
	const int64_t n = x->dim[x->rank - 1];
	const char *wrong = om_last_window(c, false, w);

	if (wrong)
		return om_wrong(c, wrong);
	*l = (om_layer){.batch = x->dim[0], .group = 1, .channels_in = 1, .channels_out = n};
	om_layer_set_window(l, w);
	return n < 0 ? OM_OK : check_weights(c, l);
}

static om_status
depthwise_infer(om_op_context *c)
{
	return infer_window(c, read_depthwise, OM_DIM_UNKNOWN);
}

static om_status
depthwise_prepare(om_op_context *c, void **state)
{
	return prepare_window(c, read_depthwise, *state);
}

static uint64_t
wide_bytes(const om_layer *l)
{
	const uint64_t bytes = om_qlayer_weights(l);

	return bytes > INT64_MAX / 8 ? UINT64_MAX : om_piece_size(4 * bytes);
}

static uint64_t
depthwise_workspace(const om_op_context *c)
{
	const om_qlayer *l = &((const om_qlayer_state *)c->state)->l;

	return om_size_sum(om_qlayer_operand_bytes(&l->shape), wide_bytes(&l->shape));
}

/* Weights minus zero points: [taps][channels of the lists]. */
static void
widen(const om_layer *l, const int8_t *weights, const om_qlayer_operands *o, int32_t *wide)
{
	const int64_t channels = om_qlayer_channels(l), taps = elements_of(l), depth = (taps + OM_QDEPTH - 1) / OM_QDEPTH;

	for (int64_t p = 0; p < channels; p += OM_QPANEL)
		for (int64_t t = 0; t < taps; t++) {
			const int8_t *from = weights + (p / OM_QPANEL * depth + t / OM_QDEPTH) * OM_QPANEL * OM_QDEPTH + t % OM_QDEPTH;
			for (int64_t k = 0; k < OM_QPANEL; k++)
				wide[t * channels + p + k] = from[k * OM_QDEPTH] - o->w_zero[p + k];
		}
}

struct depthwise {
	const om_qlayer *l;
	om_qlayer_data d;
	int32_t *wide;
};

static void
depthwise_lines(void *arg, int64_t image, int64_t first, int64_t end, uint32_t worker)
{
	const struct depthwise *s = arg;

	(void)worker;
	om_kernels_get()->qdepthwise->lines(s->l, &s->d, s->wide, image, first, end);
}

static om_status
depthwise_run(om_op_context *c)
{
	const om_qlayer *l = &((const om_qlayer_state *)c->state)->l;
	const int8_t *weights = c->in[OM_QW].data;
	struct depthwise s = {.l = l, .wide = (int32_t *)(void *)((char *)c->scratch + om_qlayer_operand_bytes(&l->shape))};
	om_qlayer_operands o;

	if (om_shape_count(&c->out[0].shape) == 0)
		return OM_OK;
	om_qlayer_read(c, c->state, c->scratch, &o);
	widen(&l->shape, weights, &o, s.wide);
	s.d = (om_qlayer_data){.x = c->in[OM_QX].data, .x_zero = o.x_zero, .offset = o.offset, .scale = o.scale, .y_zero = o.y_zero,
		.least = o.least, .most = o.most, .y = c->out[0].data};
	om_last_parallel(c, &(struct om_last_lines){l->shape.batch, l->shape.out[0] * l->shape.out[1], depthwise_lines, &s});
	return OM_OK;
}

/* ---- The reference. ---- */

struct call {
	const om_op_context *c;
	const om_qlayer *l;
	bool is_depthwise;
	om_qlayer_operands o;
};

/* An element of the unsigned input; the zero point outside of the image. */
static int32_t
input_at(const struct call *v, int64_t image, const int64_t *at, int64_t channel)
{
	const om_layer *l = &v->l->shape;

	for (int k = 0; k < OM_LAYER_AXES; k++)
		if (at[k] < 0 || at[k] >= l->in[k])
			return v->o.x_zero;
	const int64_t position = ((image * l->in[0] + at[0]) * l->in[1] + at[1]) * l->in[2] + at[2];
	return om_byte_at(&v->c->in[OM_QX], position * (v->is_depthwise ? l->channels_out : l->group * l->channels_in) + channel)
		+ (v->l->is_signed ? 128 : 0);
}

/* The sum for number `list` of the lists, as unsigned. */
static uint32_t
sum_at(const struct call *v, int64_t image, int64_t position, int64_t group, int64_t list)
{
	const om_layer *l = &v->l->shape;
	const int64_t depth = (elements_of(l) + OM_QDEPTH - 1) / OM_QDEPTH;
	const int8_t *panel = (const int8_t *)v->c->in[OM_QW].data + list / OM_QPANEL * depth * OM_QPANEL * OM_QDEPTH;
	const int64_t out[] = {position / l->out[2] / l->out[1], position / l->out[2] % l->out[1], position % l->out[2]};
	uint32_t sum = (uint32_t)v->o.offset[list];

	for (int64_t e = 0; e < elements_of(l); e++) {
		const int64_t tap = e / l->channels_in, in = v->is_depthwise ? list : group * l->channels_in + e % l->channels_in;
		const int64_t k[] = {tap / l->kernel[2] / l->kernel[1], tap / l->kernel[2] % l->kernel[1], tap % l->kernel[2]};
		int64_t at[OM_LAYER_AXES];
		for (int a = 0; a < OM_LAYER_AXES; a++)
			at[a] = out[a] * l->stride[a] - l->begin[a] + k[a] * l->dilation[a];
		const int32_t w = panel[(e / OM_QDEPTH * OM_QPANEL + list % OM_QPANEL) * OM_QDEPTH + e % OM_QDEPTH];
		sum += (uint32_t)(input_at(v, image, at, in) * (w - v->o.w_zero[list]));
	}
	return sum;
}

static void
put(const struct call *v, int64_t k, int32_t sum, float scale)
{
	void *y = v->c->out[0].data;

	if (v->l->output == OM_QLAYER_INT32)
		((int32_t *)y)[k] = sum;
	else if (v->l->output == OM_QLAYER_FLOAT)
		((float *)y)[k] = (float)sum * scale;
	else
		((uint8_t *)y)[k] = (uint8_t)om_quantize_into((float)sum * scale, v->o.y_zero, v->o.least, v->o.most);
}

static om_status
run_reference(om_op_context *c, const om_qlayer_state *state, bool is_depthwise)
{
	const om_qlayer *l = &state->l;
	const om_layer *s = &l->shape;
	const int64_t size = s->out[0] * s->out[1] * s->out[2], channels = s->group * s->channels_out;
	const int64_t wide = om_qlayer_channels(s) / s->group;
	struct call v = {.c = c, .l = l, .is_depthwise = is_depthwise};

	om_qlayer_read(c, state, om_alloc(c->mem, om_qlayer_operand_bytes(s)), &v.o);
	for (int64_t k = 0; k < om_shape_count(&c->out[0].shape); k++) {
		const int64_t group = k % channels / s->channels_out, list = group * wide + k % s->channels_out;
		put(&v, k, (int32_t)sum_at(&v, k / channels / size, k / channels % size, group, list), v.o.scale[list]);
	}
	return OM_OK;
}

/* With the state of the fast kernel, if that was prepared. */
#define REFERENCE(called, is_depthwise)                                        \
static om_status                                                               \
called##_cpu(om_op_context *c)                                                 \
{                                                                              \
	om_qlayer_state s;                                                     \
	void *state = &s;                                                      \
	if (!c->state)                                                         \
		OM_TRY(called##_prepare(c, &state));                           \
	return run_reference(c, c->state ? c->state : &s, is_depthwise);       \
}
REFERENCE(conv, false)
REFERENCE(matmul, false)
REFERENCE(depthwise, true)

/* ---- The operator definitions. ---- */

static void
window_cost(const om_op_context *c, read_layer *read, om_cost *cost)
{
	struct om_window w;
	om_layer l;

	if (read(c, &l, &w) == OM_OK)
		cost->flops = 2.0 * (double)om_shape_count(&c->out[0].shape) * (double)elements_of(&l);
}

static void
conv_cost(const om_op_context *c, om_cost *cost)
{
	window_cost(c, read_conv, cost);
}

static void
matmul_cost(const om_op_context *c, om_cost *cost)
{
	const om_shape *x = &c->in[OM_QX].shape;

	cost->flops = 2.0 * (double)om_shape_count(&c->out[0].shape) * (double)x->dim[x->rank - 1];
}

static void
depthwise_cost(const om_op_context *c, om_cost *cost)
{
	window_cost(c, read_depthwise, cost);
}

static const om_attr_spec pack_filter_attrs[] = {{"group", OM_ATTR_INT, .i = 1}, {0}};
static const om_attr_spec pack_matrix_attrs[] = {{"transB", OM_ATTR_INT}, {0}};
static const om_attr_spec conv_attrs[] = {
	OM_LAST_WINDOW_ATTRS(true),
	{"group", OM_ATTR_INT, .i = 1},
	{"channels", OM_ATTR_INT, .required = true},
	OM_QLAYER_ATTRS,
	{0}
};
static const om_attr_spec depthwise_attrs[] = {OM_LAST_WINDOW_ATTRS(true), OM_QLAYER_ATTRS, {0}};
static const om_attr_spec matmul_attrs[] = {{"columns", OM_ATTR_INT, .required = true}, OM_QLAYER_ATTRS, {0}};

#define PACK(label, called, text)                                              \
	{.domain = OM_CPU_DOMAIN, .name = label, .brief = text, .since = 1, .min_in = 1, .max_in = 1, \
	 .min_out = 1, .max_out = 1, .attrs = called##_attrs, .infer = called##_infer, .cpu = called##_cpu, \
	 .input_types = {OF_BYTES}}

#define LAYER(label, called, sliced, text)                                             \
	{.domain = OM_CPU_DOMAIN, .name = label, .brief = text, .since = 1, .min_in = 2, .max_in = OM_QINPUTS, \
	 .min_out = 1, .max_out = 1, .attrs = called##_attrs, .infer = called##_infer, .slice = sliced, .cpu = called##_cpu, \
	 .cost = called##_cost, .input_types = OM_QLAYER_TYPES}

const om_opdef om_ops_cpu_qlayer[] = {
	PACK("PackQuantizedFilter", pack_filter, "weights of QuantizedConv as panels of output channels"),
	PACK("PackQuantizedMatrix", pack_matrix, "a matrix as panels of columns, for QuantizedMatMul"),
	LAYER("QuantizedConv", conv, om_last_slice, "convolution of a quantized channels-last image with packed weights"),
	LAYER("QuantizedDepthwiseConv", depthwise, om_last_slice, "depthwise convolution of a quantized channels-last image"),
	LAYER("QuantizedMatMul", matmul, om_slice_but_last, "product of a quantized tensor with a packed matrix"),
	{0}
};

#define KERNEL(label, called, kind)                                            \
	{.domain = OM_CPU_DOMAIN, .name = label, .is_fast = true, .state_bytes = sizeof(om_qlayer_state), \
	 .prepare = called##_prepare, .workspace = kind##_workspace, .run = kind##_run}

const om_kernel om_kernels_cpu_qlayer[] = {
	{.domain = OM_CPU_DOMAIN, .name = "PackQuantizedFilter", .state_bytes = sizeof(om_layer), .prepare = pack_filter_prepare,
	 .run = pack_filter_cpu},
	{.domain = OM_CPU_DOMAIN, .name = "PackQuantizedMatrix", .state_bytes = sizeof(struct matrix), .fields = matrix_fields,
	 .run = pack_matrix_cpu},
	KERNEL("QuantizedConv", conv, layer),
	KERNEL("QuantizedDepthwiseConv", depthwise, depthwise),
	KERNEL("QuantizedMatMul", matmul, layer),
	{0}
};
