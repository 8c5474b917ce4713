/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions: shapes, and the operators Conv and ConvTranspose.
 *
 * The algorithms for float32 are in conv_f32.c and conv_transpose.c.  16-bit floats are computed as
 * float32; double uses the direct algorithm, which is the reference for the tests.
 */
#include <config.h>

#include "ops/nn/conv.h"
#include "ir/query.h"
#include "ops/family.h"
#include "ops/slices.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"

/* ---- Shapes. ---- */

static int64_t
dim_of(const om_shape *s, int k)
{
	return s->rank < 0 ? OM_DIM_UNKNOWN : s->dim[k];
}

static om_status
check_channels(const om_op_context *c, int64_t cin, int64_t cout, int64_t per_group)
{
	const int64_t group = om_attr_int(c->op, "group");

	if (group < 1 || (cin >= 0 && cin % group) || (cout >= 0 && cout % group))
		return om_op_fail(c->session, OM_SHAPE, c->op,
			"group is %lld, which does not divide %lld input and %lld output channels",
			(long long)group, (long long)cin, (long long)cout);
	if (cin >= 0 && per_group >= 0 && cin / group != per_group)
		return om_op_fail(c->session, OM_SHAPE, c->op,
			"W has %lld channels per group, but the input has %lld channels in %lld groups",
			(long long)per_group, (long long)cin, (long long)group);
	return OM_OK;
}

static om_status
read_conv(const om_op_context *c, uint32_t xk, uint32_t wk, struct om_window *w)
{
	const om_shape *x = &c->in[xk].shape, *weights = &c->in[wk].shape;
	const int rank = x->rank >= 0 ? x->rank : weights->rank;
	int64_t kernel[OM_MAX_RANK];

	if (x->rank >= 0 && weights->rank >= 0 && x->rank != weights->rank)
		return om_op_fail(c->session, OM_SHAPE, c->op, "the input has rank %d, W has rank %d",
			x->rank, weights->rank);
	for (int k = 2; k < rank; k++)
		kernel[k - 2] = dim_of(weights, k);
	const char *wrong = om_window_read(c, rank - 2, x, kernel, w);
	return wrong ? om_wrong(c, wrong) : OM_OK;
}

om_status
om_conv_infer(om_op_context *c, uint32_t xk, uint32_t wk)
{
	const om_shape *x = &c->in[xk].shape, *weights = &c->in[wk].shape;
	om_shape *out = &c->out[0].shape;
	struct om_window w;
	const char *wrong;

	if (x->rank < 0 && weights->rank < 0)
		return OM_OK;
	OM_TRY(read_conv(c, xk, wk, &w));
	OM_TRY(check_channels(c, dim_of(x, 1), dim_of(weights, 0), dim_of(weights, 1)));
	if ((wrong = om_window_shrink(c, &w, false)))
		return om_wrong(c, wrong);
	*out = (om_shape){.rank = w.n + 2, .dim = {OM_DIM_UNKNOWN, OM_DIM_UNKNOWN}};
	if (x->rank >= 0)
		om_copy_dim(out, 0, x, 0);
	if (weights->rank >= 0)
		om_copy_dim(out, 1, weights, 0);
	om_window_dims(out, x, &w);
	return OM_OK;
}

struct om_conv
om_conv_of(const om_op_context *c, uint32_t xk, uint32_t wk)
{
	const om_shape *x = &c->in[xk].shape;
	struct om_conv v = {.batch = x->dim[0], .cin = x->dim[1], .cout = c->in[wk].shape.dim[0]};

	om_window_read(c, x->rank - 2, x, c->in[wk].shape.dim + 2, &v.w);
	om_window_shrink(c, &v.w, false);
	om_window_pack(&v.w);
	v.group = om_attr_int(c->op, "group");
	v.kin = v.cin / v.group;
	v.kout = v.cout / v.group;
	return v;
}

void
om_conv_cost(const om_op_context *c, uint32_t xk, uint32_t wk, om_cost *cost)
{
	const struct om_conv v = om_conv_of(c, xk, wk);

	cost->flops = 2.0 * (double)om_shape_count(&c->out[0].shape) * (double)v.kin
		* (double)om_window_volume(v.w.kernel);
}

/* ---- double. ---- */

static double
conv_at(const struct om_conv *v, const double *x, const double *taps, const int64_t *o)
{
	const struct om_window *w = &v->w;
	double sum = 0;

	for (int64_t k = 0; k < om_window_volume(w->kernel); k++) {
		const int64_t kz = k / w->kernel[2] / w->kernel[1], ky = k / w->kernel[2] % w->kernel[1];
		const int64_t iz = o[0] * w->stride[0] - w->begin[0] + kz * w->dilation[0];
		const int64_t iy = o[1] * w->stride[1] - w->begin[1] + ky * w->dilation[1];
		const int64_t ix = o[2] * w->stride[2] - w->begin[2] + k % w->kernel[2] * w->dilation[2];
		if (iz >= 0 && iz < w->in[0] && iy >= 0 && iy < w->in[1] && ix >= 0 && ix < w->in[2])
			sum += taps[k] * x[(iz * w->in[1] + iy) * w->in[2] + ix];
	}
	return sum;
}

static void
conv_doubles(const om_op_context *c, const struct om_conv *v)
{
	const int64_t taps = om_window_volume(v->w.kernel), in = om_window_volume(v->w.in);
	const double *x = c->in[0].data, *w = c->in[1].data;
	double *out = c->out[0].data;

	for (int64_t i = 0; i < v->batch * v->cout; i++) {
		const int64_t channel = i % v->cout;
		const int64_t first = i / v->cout * v->cin + channel / v->kout * v->kin;
		for (int64_t at = 0, n = om_window_volume(v->w.out); at < n; at++) {
			const int64_t o[] = {at / v->w.out[2] / v->w.out[1], at / v->w.out[2] % v->w.out[1],
				at % v->w.out[2]};
			double sum = om_has_in(c, 2) ? ((const double *)c->in[2].data)[channel] : 0;
			for (int64_t k = 0; k < v->kin; k++)
				sum += conv_at(v, x + (first + k) * in, w + (channel * v->kin + k) * taps, o);
			*out++ = sum;
		}
	}
}

/* ---- Conv. ---- */

static const om_attr_spec conv_attrs[] = {OM_CONV_ATTRS, {0}};

static om_status
same_types(const om_op_context *c)
{
	for (uint32_t k = 1; k < c->op->nin; k++)
		if (om_has_in(c, k) && c->in[k].type != c->in[0].type && c->in[k].type != OM_UNDEFINED
		    && c->in[0].type != OM_UNDEFINED)
			return om_op_fail(c->session, OM_SHAPE, c->op, "input %u is %s, expected %s", k,
				om_dtype_text(c->in[k].type), om_dtype_text(c->in[0].type));
	return OM_OK;
}

static om_status
check_bias(const om_op_context *c, int64_t channels)
{
	char text[128];
	const om_shape *s = &c->in[2].shape;

	if (!om_has_in(c, 2) || s->rank < 0
	    || (s->rank == 1 && om_dims_agree(s->dim[0], channels)))
		return OM_OK;
	return om_op_fail(c->session, OM_SHAPE, c->op, "the bias has shape %s, expected %lld elements",
		om_shape_text(s, text, sizeof text), (long long)channels);
}

static om_status
conv_infer(om_op_context *c)
{
	OM_TRY(same_types(c));
	c->out[0].type = c->in[0].type;
	OM_TRY(om_conv_infer(c, 0, 1));
	return c->in[1].shape.rank < 0 ? OM_OK : check_bias(c, c->in[1].shape.dim[0]);
}

/* Workspace for float32 copies of all inputs and of the output, after `room` bytes. */
static uint64_t
wide_scratch(const om_op_context *c, uint64_t room)
{
	uint64_t bytes = om_piece_size(room);

	if (!om_is_half(c->in[0].type))
		return bytes;
	for (uint32_t k = 0; k < c->op->nin; k++)
		if (om_has_in(c, k))
			bytes = om_size_sum(bytes, om_floats_of(&c->in[k]));
	return om_size_sum(bytes, om_floats_of(&c->out[0]));
}

static void
widen(const om_op_context *c, uint64_t room, struct om_images *p)
{
	const float *in[3] = {NULL, NULL, NULL};
	const bool is_half = om_is_half(c->in[0].type);
	char *at = is_half ? (char *)c->scratch + om_piece_size(room) : NULL;

	for (uint32_t k = 0; k < 3; k++) {
		if (!om_has_in(c, k))
			continue;
		in[k] = is_half ? (float *)at : c->in[k].data;
		if (!is_half)
			continue;
		om_widen(c->in[k].type, c->in[k].data, om_shape_count(&c->in[k].shape), (float *)at);
		at += om_floats_of(&c->in[k]);
	}
	*p = (struct om_images){.x = in[0], .w = in[1], .bias = in[2], .room = c->scratch,
		.out = is_half ? (float *)at : c->out[0].data};
}

static void
narrow(const om_op_context *c, const struct om_images *p)
{
	if (om_is_half(c->out[0].type))
		om_narrow(c->out[0].type, p->out, om_shape_count(&c->out[0].shape), c->out[0].data);
}

/* The state that both operators prepare. */
struct prepared {
	struct om_conv v;
	uint64_t room;            /* bytes of workspace, without float32 copies */
};

static om_status
check_type(const om_op_context *c)
{
	const om_dtype t = c->in[0].type;

	return t == OM_FLOAT32 || t == OM_FLOAT64 || om_is_half(t) ? OM_OK : om_no_kernel(c, t);
}

static om_status
conv_prepare(om_op_context *c, void **state)
{
	struct prepared *s = *state;

	s->v = om_conv_of(c, 0, 1);
	s->room = om_conv_workspace(&s->v);
	return check_type(c);
}

static uint64_t
conv_scratch(const om_op_context *c)
{
	const struct prepared *s = c->state;

	return wide_scratch(c, s->room);
}

static om_status
conv_cpu(om_op_context *c)
{
	const struct prepared *s = c->state;
	struct om_images p;

	if (c->in[0].type == OM_FLOAT64) {
		conv_doubles(c, &s->v);
		return OM_OK;
	}
	widen(c, s->room, &p);
	om_conv_f32(&s->v, &p);
	narrow(c, &p);
	return OM_OK;
}

static void
conv_cost(const om_op_context *c, om_cost *cost)
{
	om_conv_cost(c, 0, 1, cost);
}

/* ---- ConvTranspose. ---- */

static const om_attr_spec transpose_attrs[] = {
	OM_CONV_ATTRS,
	{"output_padding", OM_ATTR_INTS},
	{"output_shape", OM_ATTR_INTS},
	{0}
};

/* The weights are (input channels, output channels per group, kernel). */
static om_status
transpose_infer(om_op_context *c)
{
	const om_shape *x = &c->in[0].shape, *weights = &c->in[1].shape;
	om_shape *out = &c->out[0].shape;
	const int64_t group = om_attr_int(c->op, "group");
	struct om_window w;
	const char *wrong;

	OM_TRY(same_types(c));
	c->out[0].type = c->in[0].type;
	if (x->rank < 0 && weights->rank < 0)
		return OM_OK;
	OM_TRY(read_conv(c, 0, 1, &w));
	OM_TRY(check_channels(c, dim_of(x, 1), OM_DIM_UNKNOWN, OM_DIM_UNKNOWN));
	if (!om_dims_agree(dim_of(x, 1), dim_of(weights, 0)))
		return om_op_fail(c->session, OM_SHAPE, c->op, "W has %lld input channels, but the input has %lld",
			(long long)dim_of(weights, 0), (long long)dim_of(x, 1));
	if ((wrong = om_window_grow(c, &w)))
		return om_wrong(c, wrong);
	*out = (om_shape){.rank = w.n + 2, .dim = {OM_DIM_UNKNOWN, OM_DIM_UNKNOWN}};
	if (x->rank >= 0)
		om_copy_dim(out, 0, x, 0);
	if (dim_of(weights, 1) >= 0 && __builtin_mul_overflow(dim_of(weights, 1), group, &out->dim[1]))
		return om_op_fail(c->session, OM_SHAPE, c->op, "group is %lld, too large", (long long)group);
	for (int k = 0; k < w.n; k++)
		out->dim[k + 2] = w.out[OM_WINDOW_AXES - w.n + k];
	return check_bias(c, out->dim[1]);
}

struct om_conv
om_conv_transpose_of(const om_op_context *c)
{
	const om_shape *x = &c->in[0].shape, *w = &c->in[1].shape;
	struct om_conv v = {.batch = x->dim[0], .cin = x->dim[1], .group = om_attr_int(c->op, "group")};

	om_window_read(c, x->rank - 2, x, w->dim + 2, &v.w);
	om_window_grow(c, &v.w);
	om_window_pack(&v.w);
	v.kout = w->dim[1];
	v.cout = v.kout * v.group;
	v.kin = v.cin / v.group;
	return v;
}

static om_status
transpose_prepare(om_op_context *c, void **state)
{
	struct prepared *s = *state;

	s->v = om_conv_transpose_of(c);
	s->room = om_conv_transpose_workspace(&s->v);
	return check_type(c);
}

static uint64_t
transpose_scratch(const om_op_context *c)
{
	const struct prepared *s = c->state;

	return c->in[0].type == OM_FLOAT64 ? 0 : wide_scratch(c, s->room);
}

static om_status
transpose_cpu(om_op_context *c)
{
	const struct prepared *s = c->state;
	struct om_images p;

	if (c->in[0].type == OM_FLOAT64) {
		om_conv_transpose_scatter_f64(&s->v, c->in[0].data, c->in[1].data, om_has_in(c, 2) ? c->in[2].data : NULL,
			c->out[0].data);
		return OM_OK;
	}
	widen(c, s->room, &p);
	om_conv_transpose_scatter(&s->v, &p);
	narrow(c, &p);
	return OM_OK;
}

static void
transpose_cost(const om_op_context *c, om_cost *cost)
{
	const struct om_conv v = om_conv_transpose_of(c);

	cost->flops = 2.0 * (double)om_shape_count(&c->in[0].shape) * (double)v.kout
		* (double)om_window_volume(v.w.kernel);
}

/* ---- The operator definitions. ---- */

#define CONV(from, to)                                                         \
	{.name = "Conv", .brief = "convolution, with optional bias",                     \
	 .since = from, .until = to, .min_in = 2, .max_in = 3, .min_out = 1, .max_out = 1, \
	 .attrs = conv_attrs, .infer = conv_infer, .cpu = conv_cpu, \
	 .slice = om_slice_conv, .partial = om_partial_conv, .cost = conv_cost, \
	 .input_types = {OF_FLOATS, LIKE(0), LIKE(0)}}

#define TRANSPOSE(from, to)                                                    \
	{.name = "ConvTranspose", .brief = "transposed convolution, with optional bias", \
	 .since = from, .until = to, .min_in = 2, .max_in = 3, .min_out = 1, .max_out = 1, \
	 .attrs = transpose_attrs, .infer = transpose_infer, .slice = om_slice_conv_transpose, .partial = om_partial_conv_transpose, .cpu = transpose_cpu, \
	 .scratch = transpose_scratch, .cost = transpose_cost, \
	 .input_types = {OF_FLOATS, LIKE(0), LIKE(0)}}

const om_opdef om_ops_conv[] = {
	CONV(1, 10),
	CONV(11, 0),
	TRANSPOSE(1, 10),
	TRANSPOSE(11, 0),
	{0}
};

#define KERNEL(label, called)                                                  \
	{.name = label, .state_bytes = sizeof(struct prepared), .prepare = called##_prepare, \
	 .workspace = called##_scratch, .run = called##_cpu}

const om_kernel om_kernels_conv[] = {KERNEL("Conv", conv), KERNEL("ConvTranspose", transpose), {0}};
