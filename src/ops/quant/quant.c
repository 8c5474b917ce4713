/* SPDX-License-Identifier: Apache-2.0 */
/* Quantization: floating-point numbers as low-precision values with a scale and a zero point. */
#include <config.h>

#include <math.h>

#include "base/convert_elements.h"
#include "base/shape.h"
#include "ir/query.h"
#include "opdef/op_context.h"
#include "ops/nn/conv.h"
#include "ops/family.h"
#include "ops/slices.h"
#include "opdef/numbers.h"

/* ---- Elements. ---- */

/* 4-bit and 2-bit types are packed, the first element in the lowest bits. */
static int32_t
integer_at(const om_tensor *t, int64_t i)
{
	switch (t->type) {
	case OM_INT8: return ((const int8_t *)t->data)[i];
	case OM_UINT8: return ((const uint8_t *)t->data)[i];
	case OM_INT16: return ((const int16_t *)t->data)[i];
	case OM_UINT16: return ((const uint16_t *)t->data)[i];
	case OM_INT32: return ((const int32_t *)t->data)[i];
	case OM_UINT4: return ((const uint8_t *)t->data)[i / 2] >> i % 2 * 4 & 15;
	case OM_INT4: return ((((const uint8_t *)t->data)[i / 2] >> i % 2 * 4 & 15) ^ 8) - 8;
	case OM_UINT2: return ((const uint8_t *)t->data)[i / 4] >> i % 4 * 2 & 3;
	case OM_INT2: return ((((const uint8_t *)t->data)[i / 4] >> i % 4 * 2 & 3) ^ 2) - 2;
	default: return 0;
	}
}

/* Elements must be written in order: the bits above an element in its byte are cleared. */
static void
put_packed(const om_tensor *t, int64_t i, int32_t v)
{
	const unsigned bits = om_dtype_bits(t->type), shift = (unsigned)(i % (8 / bits)) * bits;
	uint8_t *byte = (uint8_t *)t->data + i / (8 / bits);
	const unsigned before = shift ? *byte & ((1u << shift) - 1) : 0;

	*byte = (uint8_t)(before | ((unsigned)v & ((1u << bits) - 1)) << shift);
}

static void
put_integer(const om_tensor *t, int64_t i, int32_t v)
{
	switch (t->type) {
	case OM_INT8: case OM_UINT8: ((uint8_t *)t->data)[i] = (uint8_t)v; break;
	case OM_INT16: case OM_UINT16: ((uint16_t *)t->data)[i] = (uint16_t)v; break;
	default: put_packed(t, i, v);
	}
}

static float
float_at(const om_tensor *t, int64_t i)
{
	float x;

	if (t->type == OM_INT32)
		return (float)((const int32_t *)t->data)[i];
	if (t->type != OM_FLOAT8E8M0)
		return (float)om_get(t->type, t->data, i);
	om_convert(OM_FLOAT32, &x, t->type, (const uint8_t *)t->data + i, 1, true);
	return x;
}

static bool
is_float(om_dtype t)
{
	return t == OM_FLOAT32 || t == OM_FLOAT64 || om_is_half(t);
}

/* Allowed types of scales: integers and powers of two (float8e8m0), too, but not double. */
static bool
is_scale(om_dtype t)
{
	return (is_float(t) && t != OM_FLOAT64) || t == OM_INT32 || t == OM_FLOAT8E8M0;
}

/* ---- Locating the scale of an element. ---- */

static const om_attr_spec linear_attrs[] = {
	{"axis", OM_ATTR_INT, .i = 1},
	{"block_size", OM_ATTR_INT},
	{"output_dtype", OM_ATTR_INT},
	{"precision", OM_ATTR_INT},
	{"saturate", OM_ATTR_INT, .i = 1},
	{0}
};

/* Elements are viewed as (outer, n, inner); scales likewise, with n or the number of blocks. */
struct grid {
	int64_t outer, n, inner;
	int64_t block;                /* elements along the axis that share a scale */
	bool by_element;              /* scales also have the outer and inner axes */
};

static om_status
check_scale(const om_op_context *c)
{
	const om_shape *x = &c->in[0].shape, *s = &c->in[1].shape;
	const int64_t axis = om_attr_int(c->op, "axis"), block = om_attr_int(c->op, "block_size");
	bool ok = true;
	int at = 0;

	if (block < 0)
		return om_op_fail(c->session, OM_SHAPE, c->op,
			"block_size is %lld, expected a non-negative number", (long long)block);
	if (x->rank < 0 || s->rank < 0 || s->rank == 0 || (s->rank == 1 && om_dims_agree(s->dim[0], 1)))
		return OM_OK;  /* a single scale, as far as is known: the axis is irrelevant */
	if (!om_axis(axis, x->rank, &at))
		return om_op_fail(c->session, OM_SHAPE, c->op, "axis %lld is out of range for rank %d",
			(long long)axis, x->rank);
	if (block == 0) {
		ok = s->rank == 1 && om_dims_agree(s->dim[0], x->dim[at]);
	} else {
		ok = s->rank == x->rank;
		for (int d = 0; d < x->rank && ok; d++) {
			const int64_t want = d != at || x->dim[d] < 0 ? x->dim[d]
				: x->dim[d] / block + (x->dim[d] % block != 0);
			ok = om_dims_agree(s->dim[d], want);
		}
	}
	if (!ok)
		return om_op_fail(c->session, OM_SHAPE, c->op, "the scale does not match axis %d of the input", at);
	return OM_OK;
}

static struct grid
grid_of(const om_op_context *c)
{
	const om_shape *x = &c->in[0].shape;
	const int64_t count = om_shape_count(x);
	int axis = 0;

	if (om_shape_count(&c->in[1].shape) == 1)
		return (struct grid){1, 1, count, 1, false};
	om_axis(om_attr_int(c->op, "axis"), x->rank, &axis);
	const int64_t block = om_attr_int(c->op, "block_size");
	return (struct grid){om_shape_span(x, 0, axis), x->dim[axis], om_shape_span(x, axis + 1, x->rank),
		block ? block : 1, block != 0};
}

/* The index of the scale of element (o, i, k). */
static int64_t
scale_at(const struct grid *g, int64_t o, int64_t i, int64_t k)
{
	if (!g->by_element)
		return i;
	return (o * ((g->n + g->block - 1) / g->block) + i / g->block) * g->inner + k;
}

static om_status
check_zero(const om_op_context *c)
{
	if (om_has_in(c, 2) && om_shape_count(&c->in[2].shape) != om_shape_count(&c->in[1].shape))
		return om_op_fail(c->session, OM_SHAPE, c->op, "%lld scales do not match %lld zero points",
			(long long)om_shape_count(&c->in[1].shape), (long long)om_shape_count(&c->in[2].shape));
	return OM_OK;
}

struct quantized {
	struct grid g;
	bool saturate;
	bool has_zero;                /* there are zero points */
	bool is_small;                /* the quantized type is a float of eight, six or four bits */
	bool is_plain;                /* elements that share a scale are adjacent, and have a loop */
	int32_t least, most;          /* range of the quantized type */
};

static float
scale_number(const om_op_context *c, int64_t k)
{
	return c->in[1].type == OM_FLOAT32 ? ((const float *)c->in[1].data)[k] : float_at(&c->in[1], k);
}

static int32_t
zero_point(const om_op_context *c, const struct quantized *s, int64_t k)
{
	return s->has_zero ? integer_at(&c->in[2], k) : 0;
}

/* The index of the scale of element `k`. */
static int64_t
scale_of(const struct grid *g, int64_t k)
{
	return scale_at(g, k / (g->n * g->inner), k / g->inner % g->n, k % g->inner);
}

/* Floats of eight, six and four bits are converted in chunks of `CHUNK` elements, which start at byte
 * boundaries. */
enum { CHUNK = 256 };

static bool
is_small_float(om_dtype t)
{
	return (t >= OM_FLOAT8E4M3FN && t <= OM_FLOAT8E5M2FNUZ) || t == OM_FLOAT4E2M1 || t == OM_FLOAT6E2M3
	    || t == OM_FLOAT6E3M2;
}

/* `narrow` is the quantized type; `is_fast`: there is a loop for the types. */
static om_status
points_prepare(const om_op_context *c, struct quantized *s, om_dtype narrow, bool is_fast)
{
	s->g = grid_of(c);
	s->has_zero = om_has_in(c, 2);
	s->is_small = is_small_float(narrow);
	s->is_plain = is_fast && !s->g.by_element;
	return check_zero(c);
}

static void *
piece_at(const om_tensor *t, int64_t k)
{
	return (char *)t->data + (size_t)k * om_dtype_bits(t->type) / 8;
}

/* The zero points as floats; NULL: none. */
static float *
small_zeros(const om_op_context *c)
{
	const int64_t n = om_has_in(c, 2) ? om_shape_count(&c->in[2].shape) : 0;
	float *zero = n ? OM_NEWN(c->mem, float, (size_t)n) : NULL;

	if (n)
		om_convert(OM_FLOAT32, zero, c->in[2].type, c->in[2].data, n, true);
	return zero;
}

static om_status
quantize_small(const om_op_context *c, const struct grid *g)
{
	const int64_t n = om_shape_count(&c->in[0].shape);
	const float *zero = small_zeros(c);
	float piece[CHUNK];

	for (int64_t at = 0; at < n; at += CHUNK) {
		const int64_t m = n - at < CHUNK ? n - at : CHUNK;
		for (int64_t k = 0; k < m; k++) {
			const int64_t s = scale_of(g, at + k);
			piece[k] = float_at(&c->in[0], at + k) / float_at(&c->in[1], s) + (zero ? zero[s] : 0);
		}
		om_convert(c->out[0].type, piece_at(&c->out[0], at), OM_FLOAT32, piece, m,
			((const struct quantized *)c->state)->saturate);
	}
	return OM_OK;
}

static om_status
dequantize_small(const om_op_context *c, const struct grid *g)
{
	const int64_t n = om_shape_count(&c->in[0].shape);
	const float *zero = small_zeros(c);
	float piece[CHUNK];

	for (int64_t at = 0; at < n; at += CHUNK) {
		const int64_t m = n - at < CHUNK ? n - at : CHUNK;
		om_convert(OM_FLOAT32, piece, c->in[0].type, piece_at(&c->in[0], at), m, true);
		for (int64_t k = 0; k < m; k++) {
			const int64_t s = scale_of(g, at + k);
			om_put(c->out[0].type, c->out[0].data, at + k,
				(double)(piece[k] - (zero ? zero[s] : 0)) * (double)float_at(&c->in[1], s));
		}
	}
	return OM_OK;
}

/* ---- QuantizeLinear. ---- */

static om_status
quantize_infer(om_op_context *c)
{
	const int64_t type = om_attr_int(c->op, "output_dtype");

	c->out[0].type = om_has_in(c, 2) ? c->in[2].type : type > 0 && type < OM_NDTYPE ? (om_dtype)type
		: OM_UINT8;
	c->out[0].shape = c->in[0].shape;
	return check_scale(c);
}

/* Elements that share a scale, from float32 to 8 bits: the most frequent case. */
static void
quantize_run(const float *x, int64_t n, float scale, int32_t zero, int32_t least, int32_t most, uint8_t *y)
{
	for (int64_t i = 0; i < n; i++)
		y[i] = (uint8_t)om_quantize_into(x[i] / scale, zero, least, most);
}

static om_status
quantize_prepare(om_op_context *c, void **state)
{
	const om_tensor *x = &c->in[0], *out = &c->out[0];
	struct quantized *s = *state;

	if (!om_quantized_range(out->type, &s->least, &s->most) && !is_small_float(out->type))
		return om_no_kernel(c, out->type);
	if ((!is_float(x->type) && x->type != OM_INT32) || !is_scale(c->in[1].type))
		return om_no_kernel(c, is_scale(c->in[1].type) ? x->type : c->in[1].type);
	s->saturate = om_attr_int(c->op, "saturate") != 0;
	return points_prepare(c, s, out->type, x->type == OM_FLOAT32 && om_dtype_bits(out->type) == 8);
}

static om_status
quantize_cpu(om_op_context *c)
{
	const struct quantized *s = c->state;
	const om_tensor *x = &c->in[0], *out = &c->out[0];
	const struct grid *g = &s->g;

	if (s->is_small)
		return quantize_small(c, g);
	for (int64_t o = 0, at = 0; o < g->outer; o++)
		for (int64_t i = 0; i < g->n; i++, at += g->inner) {
			if (s->is_plain) {
				quantize_run((const float *)x->data + at, g->inner, scale_number(c, i), zero_point(c, s, i),
					s->least, s->most, (uint8_t *)out->data + at);
				continue;
			}
			for (int64_t k = 0; k < g->inner; k++) {
				const int64_t place = scale_at(g, o, i, k);
				put_integer(out, at + k, om_quantize_into(float_at(x, at + k) / scale_number(c, place),
					zero_point(c, s, place), s->least, s->most));
			}
		}
	return OM_OK;
}

/* ---- DequantizeLinear. ---- */

static om_status
dequantize_infer(om_op_context *c)
{
	const int64_t type = om_attr_int(c->op, "output_dtype");

	c->out[0].type = type > 0 && type < OM_NDTYPE ? (om_dtype)type : c->in[1].type;
	c->out[0].shape = c->in[0].shape;
	OM_TRY(om_must_be_of(c, c->out[0].type, OF_FLOATS));
	return check_scale(c);
}

static void
dequantize_run(const om_tensor *x, int64_t at, int64_t n, float scale, int32_t zero, float *y)
{
	if (x->type == OM_INT8)
		for (int64_t i = 0; i < n; i++)
			y[at + i] = (float)(((const int8_t *)x->data)[at + i] - zero) * scale;
	else if (x->type == OM_UINT8)
		for (int64_t i = 0; i < n; i++)
			y[at + i] = (float)(((const uint8_t *)x->data)[at + i] - zero) * scale;
	else
		for (int64_t i = 0; i < n; i++)
			y[at + i] = (float)((int64_t)integer_at(x, at + i) - zero) * scale;
}

static om_status
dequantize_prepare(om_op_context *c, void **state)
{
	const om_tensor *x = &c->in[0], *out = &c->out[0];
	struct quantized *s = *state;

	if (x->type != OM_INT32 && !om_quantized_range(x->type, &s->least, &s->most) && !is_small_float(x->type))
		return om_no_kernel(c, x->type);
	if (!is_float(out->type) || !is_scale(c->in[1].type))
		return om_no_kernel(c, is_scale(c->in[1].type) ? out->type : c->in[1].type);
	return points_prepare(c, s, x->type, out->type == OM_FLOAT32);
}

static om_status
dequantize_cpu(om_op_context *c)
{
	const struct quantized *s = c->state;
	const om_tensor *x = &c->in[0], *out = &c->out[0];
	const struct grid *g = &s->g;

	if (s->is_small)
		return dequantize_small(c, g);
	for (int64_t o = 0, at = 0; o < g->outer; o++)
		for (int64_t i = 0; i < g->n; i++, at += g->inner) {
			if (s->is_plain) {
				dequantize_run(x, at, g->inner, scale_number(c, i), zero_point(c, s, i), out->data);
				continue;
			}
			for (int64_t k = 0; k < g->inner; k++) {
				const int64_t place = scale_at(g, o, i, k);
				om_put(out->type, out->data, at + k, (double)((int64_t)integer_at(x, at + k)
					- zero_point(c, s, place)) * (double)scale_number(c, place));
			}
		}
	return OM_OK;
}

/* ---- DynamicQuantizeLinear. ---- */

static om_status
dynamic_infer(om_op_context *c)
{
	c->out[0].type = OM_UINT8;
	c->out[0].shape = c->in[0].shape;
	for (uint32_t k = 1; k < c->op->nout; k++) {
		c->out[k].type = k == 1 ? OM_FLOAT32 : OM_UINT8;
		c->out[k].shape = om_shape_of(0, NULL);
	}
	return OM_OK;
}

/* The range always includes 0, so that 0 is represented exactly. */
static om_status
dynamic_cpu(om_op_context *c)
{
	const float *x = c->in[0].data;
	const int64_t n = om_shape_count(&c->in[0].shape);
	float least = 0, most = 0;

	if (c->in[0].type != OM_FLOAT32)
		return om_no_kernel(c, c->in[0].type);
	for (int64_t i = 0; i < n; i++) {
		least = x[i] < least ? x[i] : least;
		most = x[i] > most ? x[i] : most;
	}
	const float scale = most == least ? 1 : (most - least) / 255;
	const int32_t zero = om_quantize(0 - least / scale, 0, OM_UINT8);
	if (om_has_out(c, 0))
		quantize_run(x, n, scale, zero, 0, 255, c->out[0].data);
	if (om_has_out(c, 1))
		*(float *)c->out[1].data = scale;
	if (om_has_out(c, 2))
		*(uint8_t *)c->out[2].data = (uint8_t)zero;
	return OM_OK;
}

/* ---- QLinearConv. ---- */

static const om_attr_spec conv_attrs[] = {OM_CONV_ATTRS, {0}};

enum { X, X_SCALE, X_ZERO, W, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, BIAS };

static om_status
conv_infer(om_op_context *c)
{
	static const uint32_t bytes[] = {X, X_ZERO, W, W_ZERO, Y_ZERO};

	for (int k = 0; k < 5; k++) {
		const om_dtype t = c->in[bytes[k]].type;
		if (t != OM_INT8 && t != OM_UINT8 && t != OM_UNDEFINED)
			return om_op_fail(c->session, OM_SHAPE, c->op, "input %u is %s, expected int8 or uint8",
				bytes[k], om_dtype_text(t));
	}
	c->out[0].type = c->in[Y_ZERO].type;
	return om_conv_infer(c, X, W);
}

/* One element, or one per output channel. */
static om_status
check_channels(const om_op_context *c, const struct om_conv *v)
{
	for (uint32_t k = X_SCALE; k < c->op->nin; k++) {
		if (k == W || !om_has_in(c, k))
			continue;
		const int64_t n = om_shape_count(&c->in[k].shape);
		const bool per_channel = k == W_SCALE || k == W_ZERO || k == BIAS;
		if ((n != 1 || k == BIAS) && !(per_channel && n == v->cout))
			return om_op_fail(c->session, OM_SHAPE, c->op,
				"input %u has %lld elements, expected 1 or %lld",
				k, (long long)n, (long long)v->cout);
	}
	if (om_has_in(c, BIAS) && c->in[BIAS].type != OM_INT32)
		return om_op_fail(c->session, OM_SHAPE, c->op, "the bias is %s, expected int32",
			om_dtype_text(c->in[BIAS].type));
	return OM_OK;
}

static om_status
conv_prepare(om_op_context *c, void **state)
{
	struct om_conv *v = *state;

	*v = om_conv_of(c, X, W);
	return check_channels(c, v);
}

static uint64_t
conv_scratch(const om_op_context *c)
{
	const struct om_conv *v = c->state;

	return om_conv_int8_suits(v) ? om_conv_int8_workspace(v) : (uint64_t)om_window_volume(v->w.out) * sizeof(int32_t);
}

static int64_t
channel_at(const om_tensor *t, int64_t channel)
{
	return om_shape_count(&t->shape) == 1 ? 0 : channel;
}

struct images {
	const om_op_context *c;
	const struct om_conv *v;
};

/* Convert sums to 8-bit results: see om_byte_images. */
static void
conv_put(const void *of, int64_t i, int64_t at, int64_t n, const int32_t *sums)
{
	const struct images *p = of;
	const om_op_context *c = p->c;
	const om_tensor *w_scale = &c->in[W_SCALE];
	const int64_t channel = i % p->v->cout;
	const float scale = float_at(&c->in[X_SCALE], 0) * float_at(w_scale, channel_at(w_scale, channel))
		/ float_at(&c->in[Y_SCALE], 0);
	const int32_t bias = om_has_in(c, BIAS) ? integer_at(&c->in[BIAS], channel) : 0;
	const int32_t zero = integer_at(&c->in[Y_ZERO], 0);
	uint8_t *y = (uint8_t *)c->out[0].data + i * om_window_volume(p->v->w.out) + at;
	int32_t least = 0, most = 0;

	om_quantized_range(c->out[0].type, &least, &most);
	for (int64_t k = 0; k < n; k++)
		y[k] = (uint8_t)om_quantize_into((float)((int64_t)sums[k] + bias) * scale, zero, least, most);
}

static om_status
conv_cpu(om_op_context *c)
{
	const struct om_conv *v = c->state;
	const struct images images = {c, v};
	const struct om_byte_images p = {.x = &c->in[X], .w = &c->in[W], .x_zero = &c->in[X_ZERO],
		.w_zero = &c->in[W_ZERO], .put = conv_put, .of = &images, .room = c->scratch};

	if (om_conv_int8_suits(v))
		om_conv_int8(v, &p);
	for (int64_t i = 0; i < v->batch * v->cout && !om_conv_int8_suits(v); i++) {
		om_conv_int8_channel(v, &p, i, c->scratch);
		conv_put(&images, i, 0, om_window_volume(v->w.out), c->scratch);
	}
	return OM_OK;
}

static void
conv_cost(const om_op_context *c, om_cost *cost)
{
	om_conv_cost(c, X, W, cost);
}

/* A part along the axis that is divided into blocks consists of whole blocks. */
static bool
block_part(const om_op_context *c, uint32_t out, om_slice *s, int64_t block)
{
	const om_part *p = &s->out[out];
	const int64_t n = c->in[0].shape.dim[p->axis], first = p->lo / block, last = (p->hi - 1) / block + 1;

	s->in[0] = om_part_of(p->axis, first * block, last * block < n ? last * block : n);
	s->before = p->lo - s->in[0].lo;
	s->after = s->in[0].hi - p->hi;
	s->in[1] = om_part_of(p->axis, first, last);
	if (om_has_in(c, 2))
		s->in[2] = s->in[1];
	return true;
}

/* Scales and zero points: one for all, one for each position of an axis, or one for each block. */
bool
om_slice_linear(const om_op_context *c, uint32_t out, om_slice *s)
{
	const int64_t block = om_attr_int(c->op, "block_size");
	int axis;

	if (om_shape_count(&c->in[1].shape) == 1)
		return om_slice_first(c, out, s);
	if (!om_axis(om_attr_int(c->op, "axis"), c->in[0].shape.rank, &axis))
		return false;
	if (block > 0 && s->out[out].axis == axis)
		return block_part(c, out, s, block);
	for (uint32_t k = 1; k < c->op->nin && om_has_in(c, k); k++)
		if (block > 0)
			s->in[k] = s->out[out];
		else
			om_slice_channels(c, out, s, k, axis);
	return om_slice_first(c, out, s);
}

const om_opdef om_ops_quant[] = {
	{.name = "QuantizeLinear", .brief = "quantization by scale and zero point", .since = 10,
	 .min_in = 2, .max_in = 3, .min_out = 1, .max_out = 1, .attrs = linear_attrs,
	 .infer = quantize_infer, .slice = om_slice_linear, .cpu = quantize_cpu,
	 .input_types = {OF(BFLOAT16) | OF(FLOAT16) | OF(FLOAT32) | OF(INT32),
	    OF(BFLOAT16) | OF(FLOAT16) | OF(FLOAT32) | OF(FLOAT8E8M0) | OF(INT32), OF_PACKED | OF_FLOAT8S | OF_FLOAT6S | OF_BYTES | OF(INT16) | OF(UINT16)}},
	{.name = "DequantizeLinear", .brief = "dequantization by scale and zero point", .since = 10,
	 .min_in = 2, .max_in = 3, .min_out = 1, .max_out = 1, .attrs = linear_attrs,
	 .infer = dequantize_infer, .slice = om_slice_linear, .cpu = dequantize_cpu,
	 .input_types = {OF_PACKED | OF_FLOAT8S | OF_FLOAT6S | OF_BYTES | OF(INT16) | OF(INT32) | OF(UINT16), OF(BFLOAT16) | OF(FLOAT16) | OF(FLOAT32) | OF(FLOAT8E8M0), LIKE(0)}},
	{.name = "DynamicQuantizeLinear", .brief = "quantization to uint8, with computed scale and zero point",
	 .since = 11, .min_in = 1, .max_in = 1, .min_out = 3, .max_out = 3,
	 .infer = dynamic_infer, .cpu = dynamic_cpu,
	 .input_types = {OF(FLOAT32)}},
	{.name = "QLinearConv", .brief = "convolution of quantized images, quantized", .since = 10,
	 .min_in = 8, .max_in = 9, .min_out = 1, .max_out = 1, .attrs = conv_attrs, .infer = conv_infer, .slice = om_slice_conv_quantized,
	 .cpu = conv_cpu, .scratch = conv_scratch, .cost = conv_cost,
	 .input_types = {OF_BYTES, OF(FLOAT32), LIKE(0), OF_BYTES, OF(FLOAT32), LIKE(3), OF(FLOAT32),
	    OF_BYTES, OF(INT32)}},
	{0}
};

const om_kernel om_kernels_quant[] = {
	{.name = "QuantizeLinear", .state_bytes = sizeof(struct quantized), .prepare = quantize_prepare, .run = quantize_cpu},
	{.name = "DequantizeLinear", .state_bytes = sizeof(struct quantized), .prepare = dequantize_prepare,
	 .run = dequantize_cpu},
	{.name = "QLinearConv", .state_bytes = sizeof(struct om_conv), .prepare = conv_prepare,
	 .workspace = conv_scratch, .run = conv_cpu},
	{0}
};
