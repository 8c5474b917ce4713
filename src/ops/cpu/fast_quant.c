/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for quantized tensors with one scale and one zero point: QuantizeLinear, DynamicQuantizeLinear,
 * DequantizeLinear, and those of com.microsoft for sums, products and means. */
#include <config.h>

#include "base/shape.h"
#include "ir/query.h"
#include "kernels/cpu/kernels.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "ops/cpu/ranges.h"
#include "ops/family.h"
#include "ops/math/gemm_int8.h"

enum { PIECE = 4096 };            /* elements that are processed at a time */

/* Has input `k` one element? */
static bool
is_single(const om_op_context *c, uint32_t k)
{
	return !om_has_in(c, k) || om_shape_count(&c->in[k].shape) == 1;
}

/* The scale that is input `k`; the zero point follows it. */
static om_qscale
scale_at(const om_op_context *c, uint32_t k, om_dtype type)
{
	return (om_qscale){*(const float *)c->in[k].data, om_has_in(c, k + 1) ? om_byte_at(&c->in[k + 1], 0) : 0, type == OM_INT8};
}

/* Elements [*at, *at + *n) of piece `k` of the output. */
static void
piece_of(const om_op_context *c, int64_t k, int64_t *at, int64_t *n)
{
	const int64_t left = om_shape_count(&c->in[0].shape) - k * PIECE;

	*at = k * PIECE;
	*n = left < PIECE ? left : PIECE;
}

static void
for_pieces(om_op_context *c, om_range_fn *fn, void *arg)
{
	om_for_ranges(c, (om_shape_count(&c->out[0].shape) + PIECE - 1) / PIECE, PIECE, fn, arg);
}

/* ---- QuantizeLinear, DequantizeLinear. ---- */

struct linear {
	const om_op_context *c;
	om_qscale s;
};

static bool
linear_supports(const om_op_context *c)
{
	const om_dtype narrow = c->out[0].type == OM_FLOAT32 ? c->in[0].type : c->out[0].type;

	return is_single(c, 1) && is_single(c, 2) && (narrow == OM_INT8 || narrow == OM_UINT8);
}

static void
quantize_pieces(void *arg, int64_t from, int64_t to, uint32_t worker)
{
	const struct linear *l = arg;
	int64_t at, n;

	(void)worker;
	for (int64_t k = from; k < to; k++) {
		piece_of(l->c, k, &at, &n);
		om_kernels_get()->qrows->quantize((uint8_t *)l->c->out[0].data + at, (const float *)l->c->in[0].data + at, n, &l->s);
	}
}

static om_status
quantize_run(om_op_context *c)
{
	struct linear l = {c, scale_at(c, 1, c->out[0].type)};

	for_pieces(c, quantize_pieces, &l);
	return OM_OK;
}

static void
dequantize_pieces(void *arg, int64_t from, int64_t to, uint32_t worker)
{
	const struct linear *l = arg;
	int64_t at, n;

	(void)worker;
	for (int64_t k = from; k < to; k++) {
		piece_of(l->c, k, &at, &n);
		om_kernels_get()->qrows->dequantize((float *)l->c->out[0].data + at, (const uint8_t *)l->c->in[0].data + at, n, &l->s);
	}
}

static om_status
dequantize_run(om_op_context *c)
{
	struct linear l = {c, scale_at(c, 1, c->in[0].type)};

	for_pieces(c, dequantize_pieces, &l);
	return OM_OK;
}

/* ---- DynamicQuantizeLinear. ---- */

/* The bounds that a worker has found. */
struct bounds {
	float least, most;
	char apart[64 - 2 * sizeof(float)];  /* from those of the next worker */
};

struct search {
	const om_op_context *c;
	struct bounds *found;     /* by worker */
};

static uint64_t
dynamic_workspace(const om_op_context *c)
{
	return om_piece_size(om_call_workers(c) * sizeof(struct bounds));
}

static void
range_pieces(void *arg, int64_t from, int64_t to, uint32_t worker)
{
	const struct search *s = arg;
	struct bounds *b = &s->found[worker];
	int64_t at, n;
	float least, most;

	for (int64_t k = from; k < to; k++) {
		piece_of(s->c, k, &at, &n);
		om_kernels_get()->qrows->range((const float *)s->c->in[0].data + at, n, &least, &most);
		b->least = least < b->least ? least : b->least;
		b->most = most > b->most ? most : b->most;
	}
}

static om_status
dynamic_run(om_op_context *c)
{
	struct search s = {c, c->scratch};
	float least = 0, most = 0;

	memset(c->scratch, 0, om_call_workers(c) * sizeof(struct bounds));
	for_pieces(c, range_pieces, &s);
	for (uint32_t k = 0; k < om_call_workers(c); k++) {
		least = s.found[k].least < least ? s.found[k].least : least;
		most = s.found[k].most > most ? s.found[k].most : most;
	}
	const float scale = most == least ? 1 : (most - least) / 255;
	struct linear l = {c, {scale, om_quantize(0 - least / scale, 0, OM_UINT8), false}};
	if (om_has_out(c, 0))
		for_pieces(c, quantize_pieces, &l);
	if (om_has_out(c, 1))
		*(float *)c->out[1].data = scale;
	if (om_has_out(c, 2))
		*(uint8_t *)c->out[2].data = (uint8_t)l.s.zero;
	return OM_OK;
}

/* ---- QLinearAdd, QLinearMul: of tensors of the same shape. ---- */

enum { A, A_SCALE, B = 3, B_SCALE, Y_SCALE = 6, Y_ZERO };

static bool
binary_supports(const om_op_context *c)
{
	for (uint32_t k = 0; k < c->op->nin; k++)
		if (k != A && k != B && !is_single(c, k))
			return false;
	return om_has_in(c, Y_SCALE) && om_shape_equal(&c->in[A].shape, &c->in[B].shape);
}

struct binary {
	const om_op_context *c;
	om_qscale a, b, y;
	bool is_sum;
};

static void
binary_pieces(void *arg, int64_t from, int64_t to, uint32_t worker)
{
	const om_qrows_kernels *kernels = om_kernels_get()->qrows;
	const struct binary *s = arg;
	int64_t at, n;

	(void)worker;
	for (int64_t k = from; k < to; k++) {
		piece_of(s->c, k, &at, &n);
		(s->is_sum ? kernels->add : kernels->mul)((uint8_t *)s->c->out[0].data + at, (const uint8_t *)s->c->in[A].data + at,
			(const uint8_t *)s->c->in[B].data + at, n, &s->a, &s->b, &s->y);
	}
}

static om_status
binary_run(om_op_context *c, bool is_sum)
{
	const om_dtype type = c->out[0].type;
	struct binary s = {c, scale_at(c, A_SCALE, type), scale_at(c, B_SCALE, type), scale_at(c, Y_SCALE, type), is_sum};

	for_pieces(c, binary_pieces, &s);
	return OM_OK;
}

static om_status
add_run(om_op_context *c)
{
	return binary_run(c, true);
}

static om_status
mul_run(om_op_context *c)
{
	return binary_run(c, false);
}

/* ---- QLinearGlobalAveragePool of channels-last images. ---- */

static bool
mean_supports(const om_op_context *c)
{
	const om_shape *x = &c->in[0].shape;

	return om_attr_int(c->op, "channels_last") && x->rank >= 3 && om_shape_count(x) > 0
	    && om_shape_span(x, 1, x->rank - 1) < 1 << 23 && is_single(c, 1) && is_single(c, 2) && is_single(c, 3) && is_single(c, 4);
}

static uint64_t
mean_workspace(const om_op_context *c)
{
	return om_piece_size((uint64_t)c->in[0].shape.dim[c->in[0].shape.rank - 1] * sizeof(int32_t));
}

static om_status
mean_run(om_op_context *c)
{
	const om_shape *x = &c->in[0].shape;
	const int64_t channels = x->dim[x->rank - 1], size = om_shape_span(x, 1, x->rank - 1);
	const om_qscale of = scale_at(c, 1, c->in[0].type), to = scale_at(c, 3, c->in[0].type);
	int32_t *sums = c->scratch;

	for (int64_t i = 0; i < x->dim[0]; i++) {
		om_kernels_get()->qrows->sum(sums, (const uint8_t *)c->in[0].data + i * size * channels, size, channels, channels, of.is_signed);
		for (int64_t k = 0; k < channels; k++) {
			const double mean = (double)(sums[k] - size * of.zero) / (double)size * (double)of.scale;
			((uint8_t *)c->out[0].data)[i * channels + k] = (uint8_t)om_quantize((float)mean / to.scale, to.zero, c->out[0].type);
		}
	}
	return OM_OK;
}

/* ---- The kernels. ---- */

const om_kernel om_kernels_fast_quant[] = {
	{.name = "QuantizeLinear", .is_fast = true, .types = {OF(FLOAT32), OF(FLOAT32)}, .supports = linear_supports, .run = quantize_run},
	{.name = "DequantizeLinear", .is_fast = true, .types = {OF_BYTES, OF(FLOAT32)}, .supports = linear_supports,
	 .run = dequantize_run},
	{.name = "DynamicQuantizeLinear", .is_fast = true, .types = {OF(FLOAT32)}, .workspace = dynamic_workspace, .run = dynamic_run},
	{.domain = "com.microsoft", .name = "QLinearAdd", .is_fast = true, .supports = binary_supports, .run = add_run},
	{.domain = "com.microsoft", .name = "QLinearMul", .is_fast = true, .supports = binary_supports, .run = mul_run},
	{.domain = "com.microsoft", .name = "QLinearGlobalAveragePool", .is_fast = true, .supports = mean_supports,
	 .workspace = mean_workspace, .run = mean_run},
	{0}
};
