/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of 8-bit integers: ConvInteger, and the sums that QLinearConv scales.
 *
 * As with float32 (conv_f32.c), a convolution is a product of the weights and the im2col matrix, parts
 * of whose rows are computed on request; gemm_int8.c has the product.  If a group has few output
 * channels, each filter element of each input channel is accumulated into a whole image of int32 sums,
 * line by line; filter elements of weight zero are skipped.
 */
#include <config.h>

#include "ops/nn/conv.h"
#include "ops/family.h"
#include "ops/slices.h"
#include "opdef/op_context.h"

static void
add_line(int32_t *out, int64_t lo, int64_t hi, const om_tensor *x, int64_t at, int64_t first, int64_t stride,
	int32_t zero, int32_t factor)
{
	const char *line = (const char *)x->data + at;

	if (stride == 1 && x->type == OM_INT8) {
		for (int64_t k = lo; k < hi; k++)
			out[k] += factor * (((const int8_t *)line)[first + k] - zero);
	} else if (stride == 1) {
		for (int64_t k = lo; k < hi; k++)
			out[k] += factor * (((const uint8_t *)line)[first + k] - zero);
	} else if (x->type == OM_INT8) {
		for (int64_t k = lo; k < hi; k++)
			out[k] += factor * (((const int8_t *)line)[first + k * stride] - zero);
	} else {
		for (int64_t k = lo; k < hi; k++)
			out[k] += factor * (((const uint8_t *)line)[first + k * stride] - zero);
	}
}

/* Accumulate one filter element of one input channel. */
static void
add_tap(const struct om_window *w, int64_t tap, const om_tensor *x, int64_t base, int32_t zero,
	int32_t factor, int32_t *out)
{
	const int64_t kx = tap % w->kernel[2], ky = tap / w->kernel[2] % w->kernel[1];
	const int64_t kz = tap / w->kernel[2] / w->kernel[1];
	int64_t z0, z1, y0, y1, x0, x1;

	om_window_range(w, 0, kz, &z0, &z1);
	om_window_range(w, 1, ky, &y0, &y1);
	om_window_range(w, 2, kx, &x0, &x1);
	for (int64_t z = z0; z < z1; z++)
		for (int64_t y = y0; y < y1; y++) {
			const int64_t iz = z * w->stride[0] - w->begin[0] + kz * w->dilation[0];
			const int64_t iy = y * w->stride[1] - w->begin[1] + ky * w->dilation[1];
			add_line(out + (z * w->out[1] + y) * w->out[2], x0, x1, x,
				base + (iz * w->in[1] + iy) * w->in[2],
				kx * w->dilation[2] - w->begin[2], w->stride[2], zero, factor);
		}
}

static int32_t
w_zero(const struct om_byte_images *p, int64_t channel)
{
	return p->w_zero ? om_byte_at(p->w_zero, om_shape_count(&p->w_zero->shape) > 1 ? channel : 0) : 0;
}

void
om_conv_int8_channel(const struct om_conv *v, const struct om_byte_images *p, int64_t i, int32_t *out)
{
	const int64_t taps = om_window_volume(v->w.kernel), in = om_window_volume(v->w.in);
	const int64_t channel = i % v->cout, first = i / v->cout * v->cin + channel / v->kout * v->kin;
	const int32_t x_zero = p->x_zero ? om_byte_at(p->x_zero, 0) : 0;

	memset(out, 0, (size_t)om_window_volume(v->w.out) * sizeof *out);
	for (int64_t k = 0; k < v->kin * taps; k++) {
		const int32_t factor = om_byte_at(p->w, channel * v->kin * taps + k) - w_zero(p, channel);
		if (factor)
			add_tap(&v->w, k % taps, p->x, (first + k / taps) * in, x_zero, factor, out);
	}
}

/* ---- Matrix product. ---- */

bool
om_conv_int8_suits(const struct om_conv *v)
{
	return om_gemm_int8_suits(v->kout);
}

uint64_t
om_conv_int8_workspace(const struct om_conv *v)
{
	return om_gemm_int8_workspace(v->kout, om_window_volume(v->w.out), v->kin * om_window_volume(v->w.kernel));
}

/* A group of one image. */
struct group {
	const struct om_conv *v;
	const struct om_byte_images *p;
	struct om_columns columns;
	int64_t number;               /* image * groups + group */
};

static void
weights(const void *of, int64_t i, int64_t k0, int64_t k, float *to)
{
	const struct group *g = of;
	const int64_t channel = g->number % g->v->group * g->v->kout + i;
	const int64_t per = g->v->kin * om_window_volume(g->v->w.kernel);

	om_bytes_floats(g->p->w, channel * per + k0, k, w_zero(g->p, channel), to);
}

static const float *
windows(const void *of, int64_t k, int64_t n0, int64_t n, float *room)
{
	const struct group *g = of;

	return om_conv_im2col(&g->columns, k, n0, n, room);
}

static void
put(const void *of, int64_t i, int64_t j, int64_t n, const int32_t *sums)
{
	const struct group *g = of;

	g->p->put(g->p->of, g->number * g->v->kout + i, j, n, sums);
}

void
om_conv_int8(const struct om_conv *v, const struct om_byte_images *p)
{
	struct group g = {.v = v, .p = p};
	const struct om_bytes all = {.m = v->kout, .n = om_window_volume(v->w.out),
		.k = v->kin * om_window_volume(v->w.kernel), .left = weights, .right = windows, .put = put, .of = &g};

	g.columns = (struct om_columns){.w = &v->w, .of_bytes = true, .is_signed = p->x->type == OM_INT8,
		.zero = p->x_zero ? om_byte_at(p->x_zero, 0) : 0};
	for (g.number = 0; g.number < v->batch * v->group; g.number++) {
		g.columns.x = (const char *)p->x->data + g.number * v->kin * om_window_volume(v->w.in);
		om_gemm_int8(&all, p->room);
	}
}

/* ---- ConvInteger. ---- */

static om_status
integer_infer(om_op_context *c)
{
	for (uint32_t k = 0; k < c->op->nin; k++)
		if (om_has_in(c, k) && c->in[k].type != OM_INT8 && c->in[k].type != OM_UINT8
		    && c->in[k].type != OM_UNDEFINED)
			return om_op_fail(c->session, OM_SHAPE, c->op,
				"the element type must be int8 or uint8, not %s",
				om_dtype_text(c->in[k].type));
	c->out[0].type = OM_INT32;
	return om_conv_infer(c, 0, 1);
}

static om_status
integer_prepare(om_op_context *c, void **state)
{
	const int64_t nzero = om_has_in(c, 3) ? om_shape_count(&c->in[3].shape) : 0;
	struct om_conv *v = *state;

	*v = om_conv_of(c, 0, 1);
	if ((nzero > 1 && nzero != v->cout) || (om_has_in(c, 2) && om_shape_count(&c->in[2].shape) != 1))
		return om_op_fail(c->session, OM_SHAPE, c->op,
			"w_zero_point must have one element or %lld, the number of output channels",
			(long long)v->cout);
	return OM_OK;
}

static uint64_t
integer_scratch(const om_op_context *c)
{
	const struct om_conv *v = c->state;

	return om_conv_int8_suits(v) ? om_conv_int8_workspace(v) : 0;
}

static void
integer_put(const void *of, int64_t i, int64_t at, int64_t n, const int32_t *sums)
{
	const om_op_context *c = of;
	const om_shape *s = &c->out[0].shape;
	int64_t volume = 1;

	for (int k = 2; k < s->rank; k++)
		volume *= s->dim[k];
	memcpy((int32_t *)c->out[0].data + i * volume + at, sums, (size_t)n * sizeof *sums);
}

static om_status
integer_cpu(om_op_context *c)
{
	const struct om_conv *v = c->state;
	const int64_t nzero = om_has_in(c, 3) ? om_shape_count(&c->in[3].shape) : 0;
	const struct om_byte_images p = {.x = &c->in[0], .w = &c->in[1],
		.x_zero = om_has_in(c, 2) ? &c->in[2] : NULL, .w_zero = nzero ? &c->in[3] : NULL,
		.put = integer_put, .of = c, .room = c->scratch};

	if (om_conv_int8_suits(v))
		om_conv_int8(v, &p);
	for (int64_t i = 0; i < v->batch * v->cout && !om_conv_int8_suits(v); i++)
		om_conv_int8_channel(v, &p, i, (int32_t *)c->out[0].data + i * om_window_volume(v->w.out));
	return OM_OK;
}

static void
integer_cost(const om_op_context *c, om_cost *cost)
{
	om_conv_cost(c, 0, 1, cost);
}

static const om_attr_spec integer_attrs[] = {OM_CONV_ATTRS, {0}};

const om_opdef om_ops_conv_int8[] = {
	{.name = "ConvInteger", .brief = "convolution of int8 or uint8 tensors, int32 result",
	 .since = 10, .min_in = 2, .max_in = 4, .min_out = 1, .max_out = 1,
	 .attrs = integer_attrs, .infer = integer_infer, .slice = om_slice_conv_integer, .partial = om_partial_conv_integer, .cpu = integer_cpu,
	 .cost = integer_cost,
	 .input_types = {OF_BYTES, OF_BYTES, LIKE(0), LIKE(1)}},
	{0}
};

const om_kernel om_kernels_conv_int8[] = {
	{.name = "ConvInteger", .state_bytes = sizeof(struct om_conv), .prepare = integer_prepare,
	 .workspace = integer_scratch, .run = integer_cpu},
	{0}
};
