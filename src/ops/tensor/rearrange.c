/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that rearrange the elements of blocks, sequences and triangles. */
#include <config.h>

#include "base/strided_copy.h"
#include "opdef/columns.h"
#include "base/shape.h"
#include "ir/query.h"
#include "ops/family.h"
#include "ops/slices.h"
#include "opdef/kernel_call.h"
#include "opdef/op_context.h"

/* ---- DepthToSpace, SpaceToDepth. ---- */

static om_status
block_size(const om_op_context *c, int64_t *b)
{
	*b = om_attr_int(c->op, "blocksize");
	if (*b < 1 || *b > INT32_MAX)
		return om_op_fail(c->session, OM_INVALID, c->op,
			"blocksize is %lld, expected a positive number", (long long)*b);
	if (c->in[0].shape.rank >= 0 && c->in[0].shape.rank != 4)
		return om_op_fail(c->session, OM_SHAPE, c->op,
			"the input has rank %d, expected 4", c->in[0].shape.rank);
	return OM_OK;
}

static om_status
blocks_infer(om_op_context *c, bool deep)
{
	const om_shape *in = &c->in[0].shape;
	om_shape *out = &c->out[0].shape;
	int64_t b;

	c->out[0].type = c->in[0].type;
	*out = om_shape_open(4);
	OM_TRY(block_size(c, &b));
	if (in->rank < 0)
		return OM_OK;
	out->dim[0] = in->dim[0];
	out->sym[0] = in->sym[0];
	for (int k = 1; k < 4; k++) {
		const bool up = (k == 1) == deep;
		const int64_t f = k == 1 ? b * b : b;
		if (in->dim[k] < 0)
			continue;
		if (up ? __builtin_mul_overflow(in->dim[k], f, &out->dim[k]) : in->dim[k] % f != 0)
			return om_op_fail(c->session, OM_SHAPE, c->op,
				"dim %d is %lld, not a multiple of blocksize %lld",
				k, (long long)in->dim[k], (long long)b);
		if (!up)
			out->dim[k] = in->dim[k] / f;
	}
	return OM_OK;
}

static om_status
depth_to_space_infer(om_op_context *c)
{
	return blocks_infer(c, false);
}

static om_status
space_to_depth_infer(om_op_context *c)
{
	return blocks_infer(c, true);
}

/* Six axes: batch, block row, block column, channel, row, column, with their strides in the deep
 * and in the wide tensor. */
static om_status
blocks_prepare(om_op_context *c, const om_shape *deep, bool to_deep, bool crd, om_copy_plan *plan)
{
	const int64_t b = om_attr_int(c->op, "blocksize");
	const int64_t h = deep->dim[2], w = deep->dim[3], ch = deep->dim[1] / (b * b);
	const int64_t dim[6] = {deep->dim[0], b, b, ch, h, w};
	const int64_t in_deep[6] = {
		deep->dim[1] * h * w, (crd ? b : b * ch) * h * w, (crd ? 1 : ch) * h * w,
		(crd ? b * b : 1) * h * w, w, 1,
	};
	const int64_t in_wide[6] = {deep->dim[1] * h * w, w * b, 1, b * b * h * w, b * b * w, b};
	om_copy p = {.rank = 0};
	size_t size;

	OM_TRY(om_elem_bytes(c, c->in[0].type, &size));
	/* Target order: the target's dense axis comes last. */
	static const int order[6] = {0, 3, 4, 1, 5, 2}, deep_order[6] = {0, 1, 2, 3, 4, 5};
	for (int k = 0; k < 6; k++) {
		const int a = to_deep ? deep_order[k] : order[k];
		om_copy_axis(&p, dim[a], to_deep ? in_deep[a] : in_wide[a], to_deep ? in_wide[a] : in_deep[a]);
	}
	*plan = om_copy_prepare(&p, size);
	return OM_OK;
}

static om_status
depth_to_space_prepare(om_op_context *c, void **state)
{
	return blocks_prepare(c, &c->in[0].shape, false, om_attr_is(c->op, "mode", "CRD"), *state);
}

static om_status
space_to_depth_prepare(om_op_context *c, void **state)
{
	return blocks_prepare(c, &c->out[0].shape, true, c->op->version >= 28 && om_attr_is(c->op, "mode", "CRD"), *state);
}

static om_status
blocks_cpu(om_op_context *c)
{
	om_copy_go(c->state, c->out[0].data, c->in[0].data);
	return OM_OK;
}

/* ---- ReverseSequence. ---- */

static om_status
reverse_axes(const om_op_context *c, int rank, int *batch, int *time)
{
	OM_TRY(om_attr_axis(c, "batch_axis", rank, batch));
	OM_TRY(om_attr_axis(c, "time_axis", rank, time));
	if (*batch + *time != 1)
		return om_op_fail(c->session, OM_INVALID, c->op,
			"batch_axis and time_axis must be 0 and 1, in either order");
	return OM_OK;
}

static om_status
reverse_infer(om_op_context *c)
{
	int batch, time;

	if (c->in[0].shape.rank >= 0)
		OM_TRY(reverse_axes(c, c->in[0].shape.rank, &batch, &time));
	return om_infer_same(c);
}

struct reverse {
	int batch, time;          /* axes */
};

static om_status
reverse_prepare(om_op_context *c, void **state)
{
	struct reverse *s = *state;
	const om_tensor *len = &c->in[1];

	OM_TRY(reverse_axes(c, c->in[0].shape.rank, &s->batch, &s->time));
	const int64_t n = c->in[0].shape.dim[s->batch];
	if ((len->type != OM_INT64 && len->type != OM_INT32) || om_shape_count(&len->shape) != n)
		return om_op_fail(c->session, OM_RUN, c->op, "sequence_lens must have %lld elements", (long long)n);
	return OM_OK;
}

static om_status
reverse_cpu(om_op_context *c)
{
	const struct reverse *s = c->state;
	const om_shape *in = &c->in[0].shape;
	int64_t stride[OM_MAX_RANK];
	const int batch = s->batch, time = s->time;
	size_t size;

	OM_TRY(om_elem_bytes(c, c->in[0].type, &size));
	om_strides(in, stride);
	for (int64_t b = 0; b < in->dim[batch]; b++) {
		const int64_t len = om_int_at(&c->in[1], b);
		if (len < 0 || len > in->dim[time])
			return om_op_fail(c->session, OM_RUN, c->op,
				"sequence %lld has length %lld, more than %lld",
				(long long)b, (long long)len, (long long)in->dim[time]);
		for (int64_t t = 0; t < in->dim[time]; t++) {
			const int64_t from = t < len ? len - 1 - t : t;
			memcpy((char *)c->out[0].data + (size_t)(b * stride[batch] + t * stride[time]) * size,
				(const char *)c->in[0].data + (size_t)(b * stride[batch] + from * stride[time]) * size,
				(size_t)stride[1] * size);
		}
	}
	return OM_OK;
}

/* ---- Trilu. ---- */

static om_status
trilu_infer(om_op_context *c)
{
	if (c->in[0].shape.rank >= 0 && c->in[0].shape.rank < 2)
		return om_op_fail(c->session, OM_SHAPE, c->op,
			"the input must have rank 2 or more, not %d", c->in[0].shape.rank);
	return om_infer_same(c);
}

static int64_t
clamp(int64_t v, int64_t low, int64_t high)
{
	return v < low ? low : v > high ? high : v;
}

struct triangle {
	int64_t upper;
};

static const om_attr_field triangle_fields[] = {OM_FIELD(struct triangle, INT, upper), {0}};

static om_status
trilu_cpu(om_op_context *c)
{
	const om_shape *s = &c->in[0].shape;
	const int64_t rows = s->dim[s->rank - 2], cols = s->dim[s->rank - 1];
	const int64_t lines = om_shape_span(s, 0, s->rank - 1);
	const bool upper = ((const struct triangle *)c->state)->upper != 0;
	int64_t k[OM_MAX_RANK], diagonal = 0;
	size_t size, n;

	OM_TRY(om_elem_bytes(c, c->in[0].type, &size));
	if (om_in_few(c, 1, k, &n) && n == 1)
		diagonal = clamp(*k, -rows - 1, cols + 1);
	for (int64_t i = 0; i < lines && cols; i++) {
		const size_t line = (size_t)cols * size;
		char *to = (char *)c->out[0].data + (size_t)i * line;
		const char *from = (const char *)c->in[0].data + (size_t)i * line;
		/* [0, edge) is below the diagonal, [edge, cols) on or above it. */
		const size_t edge = (size_t)clamp(i % rows + diagonal + !upper, 0, cols) * size;
		if (to != from)
			memcpy(to, from, line);
		memset(upper ? to : to + edge, 0, upper ? edge : line - edge);
	}
	return OM_OK;
}

/* ---- CenterCropPad. ---- */

struct center {
	om_copy_plan plan;
	size_t from, to;          /* byte offsets in the input and the output */
};

/* The axis of dim `k` of the requested shape. */
static om_status
center_axis(const om_op_context *c, const om_ints *axes, size_t k, size_t n, int *axis)
{
	const int rank = c->in[0].shape.rank;

	if (n != (axes->n ? axes->n : (size_t)rank))
		return om_op_fail(c->session, OM_SHAPE, c->op, "shape has %zu elements for %zu axes", n,
			axes->n ? axes->n : (size_t)rank);
	if (!om_axis(axes->n ? axes->v[k] : (int64_t)k, rank, axis))
		return om_op_fail(c->session, OM_SHAPE, c->op, "axis %lld is out of range", (long long)axes->v[k]);
	return OM_OK;
}

static om_status
center_infer(om_op_context *c)
{
	om_shape *out = &c->out[0].shape;
	const int64_t length = om_list_length(&c->in[1]);
	int64_t size[OM_MAX_RANK];
	om_ints axes;
	size_t n;
	int axis = 0;

	OM_TRY(om_infer_same(c));
	axes.v = om_attr_ints(c->op, "axes", &axes.n);
	if (out->rank < 0)
		return OM_OK;
	if (length < 0)
		*out = om_shape_open(out->rank);
	for (int64_t k = 0; k < length; k++) {
		OM_TRY(center_axis(c, &axes, (size_t)k, (size_t)length, &axis));
		out->dim[axis] = OM_DIM_UNKNOWN;
		out->sym[axis] = NULL;
	}
	if (!om_in_few(c, 1, size, &n))
		return OM_OK;
	for (size_t k = 0; k < n; k++) {
		OM_TRY(center_axis(c, &axes, k, n, &axis));
		if (size[k] < 0)
			return om_op_fail(c->session, OM_SHAPE, c->op,
				"shape has the negative element %lld", (long long)size[k]);
		out->dim[axis] = size[k];
	}
	return OM_OK;
}

/* An odd remainder is cropped, or padded, at the end. */
static om_status
center_prepare(om_op_context *c, void **state)
{
	struct center *s = *state;
	const om_shape *x = &c->in[0].shape, *y = &c->out[0].shape;
	int64_t from[OM_MAX_RANK], to[OM_MAX_RANK], first = 0, at = 0;
	om_copy p = {.rank = 0};
	size_t size = 0;

	OM_TRY(om_elem_bytes(c, c->in[0].type, &size));
	om_strides(x, from);
	om_strides(y, to);
	for (int d = 0; d < x->rank; d++) {
		const bool cut = x->dim[d] > y->dim[d];
		om_copy_axis(&p, cut ? y->dim[d] : x->dim[d], to[d], from[d]);
		first += cut ? (x->dim[d] - y->dim[d]) / 2 * from[d] : 0;
		at += cut ? 0 : (y->dim[d] - x->dim[d]) / 2 * to[d];
	}
	s->plan = om_copy_prepare(&p, size);
	s->from = (size_t)first * size;
	s->to = (size_t)at * size;
	return OM_OK;
}

static om_status
center_cpu(om_op_context *c)
{
	const struct center *s = c->state;
	uint64_t bytes = 0;

	om_tensor_bytes(c->out[0].type, &c->out[0].shape, &bytes);
	memset(c->out[0].data, 0, bytes);
	om_copy_go(&s->plan, (char *)c->out[0].data + s->to, (const char *)c->in[0].data + s->from);
	return OM_OK;
}

/* ---- The table. ---- */

static const om_attr_spec block_attrs[] = {
	{.name = "blocksize", .kind = OM_ATTR_INT, .required = true},
	{0}
};

static const om_attr_spec block11_attrs[] = {
	{.name = "blocksize", .kind = OM_ATTR_INT, .required = true},
	{.name = "mode", .kind = OM_ATTR_STRING, .s = "DCR"},
	{0}
};

static const om_attr_spec reverse_attrs[] = {
	{.name = "batch_axis", .kind = OM_ATTR_INT, .i = 1},
	{.name = "time_axis", .kind = OM_ATTR_INT, .i = 0},
	{0}
};

static const om_attr_spec trilu_attrs[] = {
	{.name = "upper", .kind = OM_ATTR_INT, .i = 1},
	{0}
};

#define ONE .domain = "", .min_out = 1, .max_out = 1
#define DEPTH_TO_SPACE .name = "DepthToSpace", .brief = "rearranges channels into spatial blocks", \
	.min_in = 1, .max_in = 1, .infer = depth_to_space_infer, .slice = om_slice_depth_to_space, .cpu = blocks_cpu
#define SPACE_TO_DEPTH .name = "SpaceToDepth", .brief = "rearranges spatial blocks into channels", \
	.min_in = 1, .max_in = 1, .infer = space_to_depth_infer, .slice = om_slice_space_to_depth, .cpu = blocks_cpu

static const om_attr_spec center_attrs[] = {
	{.name = "axes", .kind = OM_ATTR_INTS},
	{0}
};

const om_opdef om_ops_rearrange[] = {
	{.domain = "", .name = "CenterCropPad", .brief = "center crop or zero padding", .since = 18,
	 .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1, .attrs = center_attrs,
	 .infer = center_infer, .slice = om_slice_center, .cpu = center_cpu,
	 .input_types = {OF_COMMON, OF_INDICES}},
	{ONE, DEPTH_TO_SPACE, .since = 1, .until = 10, .attrs = block_attrs,
	 .input_types = {OF_COMMON}},
	{ONE, DEPTH_TO_SPACE, .since = 11, .attrs = block11_attrs,
	 .input_types = {OF_COMMON}},
	{ONE, SPACE_TO_DEPTH, .since = 1, .until = 27, .attrs = block_attrs,
	 .input_types = {OF_COMMON}},
	{ONE, SPACE_TO_DEPTH, .since = 28, .attrs = block11_attrs,
	 .input_types = {OF_COMMON}},
	{ONE, .name = "ReverseSequence", .brief = "reverses each sequence of a batch", .since = 10,
	 .min_in = 2, .max_in = 2, .attrs = reverse_attrs, .infer = reverse_infer, .slice = om_slice_reverse, .cpu = reverse_cpu,
	 .input_types = {OF_COMMON, OF(INT64)}},
	{ONE, .name = "Trilu", .brief = "upper or lower triangle of matrices", .since = 14,
	 .min_in = 1, .max_in = 2, .attrs = trilu_attrs,
	 .infer = trilu_infer, .slice = om_slice_trilu, .inplace = om_inplace_first, .cpu = trilu_cpu,
	 .input_types = {OF_COMMON, OF(INT64)}},
	{0}
};

const om_kernel om_kernels_rearrange[] = {
	{.name = "DepthToSpace", .state_bytes = sizeof(om_copy_plan), .prepare = depth_to_space_prepare,
	 .run = blocks_cpu},
	{.name = "SpaceToDepth", .state_bytes = sizeof(om_copy_plan), .prepare = space_to_depth_prepare,
	 .run = blocks_cpu},
	{.name = "ReverseSequence", .state_bytes = sizeof(struct reverse), .prepare = reverse_prepare, .run = reverse_cpu},
	{.name = "Trilu", .fields = triangle_fields, .state_bytes = sizeof(struct triangle), .run = trilu_cpu},
	{.name = "CenterCropPad", .state_bytes = sizeof(struct center), .prepare = center_prepare, .run = center_cpu},
	{0}
};
