/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of operators of com.microsoft: as of the operators of ai.onnx that they are composed of. */
#include <config.h>

#include "base/shape.h"
#include "ir/query.h"
#include "ops/slices.h"

/* ---- Normalizations. ---- */

/* Input, skip, lists of the last axis.  The skip may be broadcast. */
bool
om_slice_skip_norm(const om_op_context *c, uint32_t out, om_slice *s)
{
	if (s->out[out].axis >= c->in[0].shape.rank - 1)
		return false;
	om_slice_align(c, out, s, 1);
	return om_slice_first(c, out, s);
}

/* Positions that are not given count from the first one, so there are no parts of sequences. */
bool
om_slice_embed_norm(const om_op_context *c, uint32_t out, om_slice *s)
{
	static const uint32_t per_sample[] = {1, 7, 8};

	for (int k = 0; k < 3; k++)
		if (om_has_in(c, per_sample[k]) && c->in[per_sample[k]].shape.dim[0] != 1)
			s->in[per_sample[k]] = s->out[out];
	return om_slice_batch(c, out, s);
}

/* ---- Attention. ---- */

/* A mask has a row for each sample, or is one of all. */
static bool
mask_part(const om_op_context *c, om_slice *s, uint32_t k, const om_part *p)
{
	if (!om_has_in(c, k))
		return true;
	s->in[k] = *p;
	return c->in[k].shape.rank > 0 && c->in[k].shape.dim[0] == c->in[0].shape.dim[0];
}

static void
bias_part(const om_op_context *c, om_slice *s, uint32_t k, const om_part *p, int axis)
{
	if (om_has_in(c, k) && c->in[k].shape.rank > axis && c->in[k].shape.dim[axis] != 1)
		s->in[k] = om_part_along(p, axis);
}

/* Attention and QAttention have a cache of keys and values, (2, batch, ...), and different numbers of inputs before it. */
bool
om_slice_self_attention(const om_op_context *c, uint32_t out, om_slice *s)
{
	const bool is_quantized = c->op->opdef->min_in > 2;
	const uint32_t mask = is_quantized ? 5 : 3, past = is_quantized ? 8 : 4;
	const om_part p = s->out[out];

	if (out != 0 || p.axis != 0 || !mask_part(c, s, mask, &p))
		return false;
	s->in[0] = p;
	if (om_has_in(c, past))
		s->in[past] = om_part_along(&p, 1);
	if (!is_quantized)
		bias_part(c, s, 5, &p, 0);
	if (om_has_out(c, 1))
		s->out[1] = om_part_along(&p, 1);
	return true;
}

/* Samples: keys, values and caches have a part, too; the bias of the projection is shared. */
static bool
multi_head_batch(const om_op_context *c, om_slice *s)
{
	static const uint32_t per_sample[] = {0, 1, 2, 6, 7};
	const om_part p = s->out[0];

	for (int k = 0; k < 5; k++)
		if (om_has_in(c, per_sample[k]))
			s->in[per_sample[k]] = p;
	bias_part(c, s, 5, &p, 0);
	for (uint32_t k = 1; k < c->op->nout; k++)
		s->out[k] = p;
	return mask_part(c, s, 4, &p);
}

/* Queries that have keys and values of their own, which a mask of queries and keys does not tell apart. */
bool
om_slice_multi_head(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part p = s->out[out];
	const bool is_apart = om_has_in(c, 1) && c->in[0].shape.rank == 3;

	if (out != 0)
		return false;
	if (p.axis == 0)
		return multi_head_batch(c, s);
	if (p.axis != 1 || !is_apart || om_attr_int(c->op, "unidirectional") || (om_has_in(c, 4) && c->in[4].shape.rank > 2))
		return false;
	s->in[0] = p;
	bias_part(c, s, 5, &p, 2);
	return true;
}

/* One position for all is that of the first element. */
bool
om_slice_rotary_contrib(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part p = s->out[out];
	const bool is_flat = c->in[0].shape.rank == 3, is_each = c->in[1].shape.rank == 2;

	if (p.axis == 0 && is_each)
		s->in[1] = p;
	if (p.axis == (is_flat ? 1 : 2)) {
		s->in[1] = om_part_along(&p, 1);
		return is_each && om_slice_first(c, out, s);
	}
	return (p.axis == 0 || (p.axis == 1 && !is_flat)) && om_slice_first(c, out, s);
}

/* ---- Products. ---- */

static int
is_transposed(const om_op_context *c, const char *attr)
{
	return om_attr_int(c->op, attr) != 0;
}

/* Matrices whose batches are not moved. */
static bool
are_matrices(const om_op_context *c)
{
	return c->in[0].shape.rank >= 2 && c->in[1].shape.rank >= 2 && !om_attr_int(c->op, "transBatchA")
	    && !om_attr_int(c->op, "transBatchB");
}

bool
om_slice_matmul_fused(const om_op_context *c, uint32_t out, om_slice *s)
{
	const int a = c->in[0].shape.rank, b = c->in[1].shape.rank, rank = c->out[0].shape.rank;
	const om_part *p = &s->out[out];

	if (!are_matrices(c))
		return false;
	om_slice_operands(c, s, 0, 1);
	if (p->axis == rank - 2)
		s->in[0] = om_part_along(p, is_transposed(c, "transA") ? a - 1 : a - 2);
	if (p->axis == rank - 1)
		s->in[1] = om_part_along(p, is_transposed(c, "transB") ? b - 2 : b - 1);
	return true;
}

bool
om_partial_matmul_fused(const om_op_context *c, uint32_t in, om_slice *s)
{
	const int a = c->in[0].shape.rank - (is_transposed(c, "transA") ? 2 : 1);
	const int b = c->in[1].shape.rank - (is_transposed(c, "transB") ? 1 : 2);

	return are_matrices(c) && om_partial_operands(s, in, 0, a, 1, b);
}

/* Columns have scales one after another, or a row of them; zero points of a column may be packed into bytes of their own. */
bool
om_slice_matmul_nbits(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part *p = &s->out[out];
	const int64_t n = om_attr_int(c->op, "N"), each = om_shape_count(&c->in[2].shape) / n;

	if (p->axis < c->out[0].shape.rank - 1)
		return om_slice_first(c, out, s);
	if (om_has_in(c, 3) || c->in[1].shape.dim[0] != n)
		return false;
	s->in[1] = om_part_along(p, 0);
	s->in[2] = c->in[2].shape.rank == 1 ? om_part_of(0, p->lo * each, p->hi * each) : om_part_along(p, 0);
	if (om_has_in(c, 5))
		s->in[5] = om_part_along(p, 0);
	om_slice_set_int(c, s, "N", p->hi - p->lo);
	return c->in[2].shape.rank == 1 || c->in[2].shape.dim[0] == n;
}

/* The left operand is quantized by its largest and smallest elements: it has no parts. */
bool
om_slice_matmul_dynamic(const om_op_context *c, uint32_t out, om_slice *s)
{
	const int columns = c->out[0].shape.rank - 1;
	const int64_t n = c->out[0].shape.dim[columns];

	if (s->out[out].axis != columns || c->in[1].shape.rank < 2)
		return false;
	om_slice_operands(c, s, 0, 1);
	return om_slice_each(c, s, 2, columns, n) && om_slice_each(c, s, 3, columns, n) && om_slice_each(c, s, 4, columns, n);
}

bool
om_slice_matmul_to_float(const om_op_context *c, uint32_t out, om_slice *s)
{
	const int columns = c->out[0].shape.rank - 1;
	const int64_t n = c->out[0].shape.dim[columns];

	(void)out;
	if (c->in[0].shape.rank < 2 || c->in[1].shape.rank < 2)
		return false;
	om_slice_operands(c, s, 0, 1);
	return om_slice_each(c, s, 2, -1, 1) && om_slice_each(c, s, 3, columns, n) && om_slice_each(c, s, 4, -1, 1)
	    && om_slice_each(c, s, 5, columns, n) && om_slice_each(c, s, 6, columns, n);
}

/* ---- Images. ---- */

bool
om_slice_images(const om_op_context *c, uint32_t out, om_slice *s)
{
	if (om_has_in(c, 3))
		s->in[3] = s->out[out];
	return om_slice_batch(c, out, s);
}

/* ---- Quantized tensors. ---- */

/* Inputs [from, to) are scales and zero points of whole tensors. */
static bool
are_single(const om_op_context *c, uint32_t from, uint32_t to)
{
	for (uint32_t k = from; k < to; k++)
		if (om_has_in(c, k) && om_shape_count(&c->in[k].shape) != 1)
			return false;
	return true;
}

bool
om_slice_quantized_unary(const om_op_context *c, uint32_t out, om_slice *s)
{
	return are_single(c, 1, 5) && om_slice_first(c, out, s);
}

bool
om_slice_quantized_binary(const om_op_context *c, uint32_t out, om_slice *s)
{
	om_slice_align(c, out, s, 0);
	om_slice_align(c, out, s, 3);
	return are_single(c, 1, 3) && are_single(c, 4, 8);
}

bool
om_slice_quantized_where(const om_op_context *c, uint32_t out, om_slice *s)
{
	om_slice_align(c, out, s, 0);
	om_slice_align(c, out, s, 1);
	om_slice_align(c, out, s, 4);
	return are_single(c, 2, 4) && are_single(c, 5, 9);
}

bool
om_slice_quantized_softmax(const om_op_context *c, uint32_t out, om_slice *s)
{
	int axis;

	if (!om_axis(om_attr_int(c->op, "axis"), c->in[0].shape.rank, &axis) || !are_single(c, 1, 5))
		return false;
	if (om_attr_int(c->op, "opset") < 13)
		return s->out[out].axis < axis && om_slice_first(c, out, s);
	return om_slice_beside(c, out, s, axis);
}

/* Each tensor is followed by its scale and zero point, which are left out with it. */
bool
om_slice_quantized_concat(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part *p = &s->out[out];
	int64_t from = 0;
	int axis;

	if (!om_axis(om_attr_int(c->op, "axis"), c->out[0].shape.rank, &axis) || !are_single(c, 0, 2))
		return false;
	for (uint32_t k = 2; k + 2 < c->op->nin; k += 3) {
		const int64_t n = c->in[k].shape.dim[axis];
		s->in[k] = p->axis == axis ? om_part_within(p, axis, from, n) : *p;
		if (om_part_is_none(&s->in[k]))
			s->in[k + 1] = s->in[k + 2] = om_part_none();
		if (!are_single(c, k + 1, k + 3))
			return false;
		from += n;
	}
	return true;
}

bool
om_slice_quantized_global_pool(const om_op_context *c, uint32_t out, om_slice *s)
{
	const int channels = om_attr_int(c->op, "channels_last") ? c->in[0].shape.rank - 1 : 1;

	return (s->out[out].axis == 0 || s->out[out].axis == channels) && om_slice_quantized_unary(c, out, s);
}

bool
om_slice_quantized_pool(const om_op_context *c, uint32_t out, om_slice *s)
{
	if (!are_single(c, 1, 5))
		return false;
	return om_attr_int(c->op, "channels_last") ? om_slice_batch(c, out, s) : om_slice_pool(c, out, s);
}

bool
om_slice_quantized_conv(const om_op_context *c, uint32_t out, om_slice *s)
{
	return om_attr_int(c->op, "channels_last") ? om_slice_batch(c, out, s) : om_slice_conv_quantized(c, out, s);
}

/* The axes that are kept. */
bool
om_slice_quantized_mean(const om_op_context *c, uint32_t out, om_slice *s)
{
	size_t n;
	const int64_t *axes = om_attr_ints(c->op, "axes", &n);
	const int rank = c->in[0].shape.rank;
	const bool keeps = om_attr_int(c->op, "keepdims") != 0;
	bool is_reduced[OM_MAX_RANK] = {false};

	for (size_t k = 0; k < n; k++)
		is_reduced[(axes[k] + rank) % rank] = true;
	return om_slice_kept(c, out, s, is_reduced, keeps) && are_single(c, 1, 5);
}
