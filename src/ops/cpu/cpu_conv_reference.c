/* SPDX-License-Identifier: Apache-2.0 */
/* Reference kernels of Conv and MatMul of org.onnxmem.cpu: each element of the output is a sum in double over the
 * weights, which are found in any packed format. */
#include <config.h>

#include "opdef/op_context.h"
#include "ops/cpu/activation.h"
#include "ops/cpu/cpu_conv.h"

struct call {
	om_layer l;
	const float *x, *weights, *bias, *residual;
	float *y;
};

static int64_t
panels_of(const om_layer *l)
{
	return (l->channels_out + OM_PANEL - 1) / OM_PANEL;
}

static int64_t
taps_of(const om_layer *l)
{
	return l->kernel[0] * l->kernel[1] * l->kernel[2];
}

/* ---- Weights. ---- */

/* Row `row` of the panel of output channel `out`, among matrices with `depth` rows: number `matrix` of the group. */
static double
packed_at(const struct call *v, int64_t group, int64_t matrices, int64_t matrix, int64_t depth, int64_t out, int64_t row)
{
	const int64_t panel = (group * matrices + matrix) * panels_of(&v->l) + out / OM_PANEL;

	return (double)v->weights[(panel * depth + row) * OM_PANEL + out % OM_PANEL];
}

/* Element `k` of a filter along an axis is a * u[i] + b * u[j] of its transform u. */
struct inverse {
	double a, b;
	int i, j;
};

static const struct inverse inverse4[] = {{4, 0, 0, 0}, {-3, 3, 1, 2}, {1, 0, 5, 5}};
static const struct inverse inverse2[] = {{1, 0, 0, 0}, {1, -1, 1, 2}, {1, 0, 3, 3}};

static double
winograd_weight(const struct call *v, int64_t group, int64_t out, int64_t in, int64_t tap)
{
	const bool is_large = v->l.algorithm == OM_LAYER_WINOGRAD4;
	const struct inverse *inverse = is_large ? inverse4 : inverse2;
	const struct inverse *y = inverse + tap % 9 / 3, *x = inverse + tap % 3;
	const int64_t side = is_large ? 6 : 4, depth = v->l.kernel[0] * v->l.channels_in;
	const int64_t row = tap / 9 * v->l.channels_in + in;
	double sum = 0;

	for (int p = 0; p < 2; p++)
		for (int q = 0; q < 2; q++)
			sum += (p ? y->b : y->a) * (q ? x->b : x->a) * packed_at(v, group, side * side,
				(p ? y->j : y->i) * side + (q ? x->j : x->i), depth, out, row);
	return sum;
}

static double
weight(const struct call *v, int64_t group, int64_t out, int64_t in, int64_t tap)
{
	if (v->l.algorithm != OM_LAYER_GEMM)
		return winograd_weight(v, group, out, in, tap);
	return packed_at(v, group, 1, 0, taps_of(&v->l) * v->l.channels_in, out, tap * v->l.channels_in + in);
}

/* ---- Sums. ---- */

static double
input_at(const struct call *v, int64_t image, const int64_t *at, int64_t channel)
{
	const om_layer *l = &v->l;
	const int64_t channels = l->group * l->channels_in, size = l->in[0] * l->in[1] * l->in[2];
	const int64_t position = (at[0] * l->in[1] + at[1]) * l->in[2] + at[2];

	return (double)v->x[l->is_channels_first ? (image * channels + channel) * size + position
		: (image * size + position) * channels + channel];
}

/* The position of the input for a tap at a position of the output; false outside of the image. */
static bool
find_input(const om_layer *l, int64_t position, int64_t tap, int64_t *at)
{
	for (int k = OM_LAYER_AXES - 1; k >= 0; k--) {
		at[k] = position % l->out[k] * l->stride[k] - l->begin[k] + tap % l->kernel[k] * l->dilation[k];
		if (at[k] < 0 || at[k] >= l->in[k])
			return false;
		position /= l->out[k];
		tap /= l->kernel[k];
	}
	return true;
}

static double
sum_at(const struct call *v, int64_t image, int64_t position, int64_t channel)
{
	const om_layer *l = &v->l;
	const int64_t group = channel / l->channels_out, out = channel % l->channels_out;
	double sum = v->bias ? (double)v->bias[channel] : 0;
	int64_t at[OM_LAYER_AXES];

	for (int64_t tap = 0; tap < taps_of(l); tap++)
		for (int64_t in = 0; find_input(l, position, tap, at) && in < l->channels_in; in++)
			sum += weight(v, group, out, in, tap) * input_at(v, image, at, group * l->channels_in + in);
	return sum;
}

static void
run(const struct call *v)
{
	const om_layer *l = &v->l;
	const int64_t size = l->out[0] * l->out[1] * l->out[2], channels = l->group * l->channels_out;

	for (int64_t k = 0; k < l->batch * size * channels; k++) {
		const double sum = sum_at(v, k / channels / size, k / channels % size, k % channels);
		v->y[k] = (float)om_epilogue_value(&l->epilogue, v->residual ? sum + (double)v->residual[k] : sum);
	}
}

/* ---- The kernels. ---- */

static void
find_operands(om_op_context *c, struct call *v)
{
	v->x = c->in[0].data;
	v->weights = c->in[1].data;
	v->bias = om_has_in(c, 2) ? c->in[2].data : NULL;
	v->residual = om_has_in(c, 3) ? c->in[3].data : NULL;
	v->y = c->out[0].data;
}

/* With the state of the fast kernel, if that was prepared. */
om_status
om_cpu_conv_reference(om_op_context *c)
{
	struct call v;

	if (c->state)
		v.l = *(const om_layer *)c->state;
	else
		OM_TRY(om_cpu_conv_layer(c, &v.l));
	find_operands(c, &v);
	run(&v);
	return OM_OK;
}

om_status
om_cpu_matmul_reference(om_op_context *c)
{
	struct call v;

	if (c->state)
		v.l = *(const om_layer *)c->state;
	else
		OM_TRY(om_cpu_matmul_layer(c, &v.l));
	find_operands(c, &v);
	run(&v);
	return OM_OK;
}
