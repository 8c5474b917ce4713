/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that select elements by index. */
#include <config.h>

#include "ops/family.h"
#include "ops/slices.h"
#include "base/shape.h"
#include "base/strided_copy.h"
#include "ir/query.h"
#include "opdef/columns.h"
#include "opdef/op_context.h"
#include "ops/tensor/index.h"

om_status
om_index_type(const om_op_context *c, uint32_t k)
{
	const om_dtype t = c->in[k].type;

	if (t == OM_INT64 || t == OM_INT32 || t == OM_UNDEFINED)
		return OM_OK;
	return om_op_fail(c->session, OM_SHAPE, c->op,
		"the indices are %s, expected int32 or int64", om_dtype_text(t));
}

om_status
om_index_read(const om_op_context *c, uint32_t k, int64_t at, int64_t dim, int64_t *i)
{
	const om_tensor *t = &c->in[k];

	at = t->splat ? 0 : at;
	const int64_t v = t->type == OM_INT64 ? ((const int64_t *)t->data)[at] : ((const int32_t *)t->data)[at];
	if (v < -dim || v >= dim)
		return om_op_fail(c->session, OM_RUN, c->op, "index %lld is out of range for %lld elements",
			(long long)v, (long long)dim);
	*i = v < 0 ? v + dim : v;
	return OM_OK;
}

/* ---- Gather. ---- */

static void
append_dims(om_shape *to, const om_shape *from, int first, int end)
{
	for (int k = first; k < end; k++) {
		to->dim[to->rank] = from->dim[k];
		to->sym[to->rank++] = from->sym[k];
	}
}

static om_status
check_rank(const om_op_context *c, int rank)
{
	if (rank <= OM_MAX_RANK)
		return OM_OK;
	return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "the output has %d dims, too many", rank);
}

static om_status
gather_infer(om_op_context *c)
{
	const om_shape *in = &c->in[0].shape, *at = &c->in[1].shape;
	om_shape *out = &c->out[0].shape;
	int axis;

	c->out[0].type = c->in[0].type;
	OM_TRY(om_index_type(c, 1));
	if (in->rank < 0)
		return OM_OK;
	OM_TRY(om_attr_axis(c, "axis", in->rank, &axis));
	if (at->rank < 0)
		return OM_OK;
	OM_TRY(check_rank(c, in->rank + at->rank - 1));
	*out = (om_shape){.rank = 0};
	append_dims(out, in, 0, axis);
	append_dims(out, at, 0, at->rank);
	append_dims(out, in, axis + 1, in->rank);
	return OM_OK;
}

/* A single index and no dims before its axis: a slice of one element. */
static bool
gather_view(const om_op_context *c, uint32_t out, om_view_of *v)
{
	const om_shape *in = &c->in[0].shape;
	const uint64_t bits = om_dtype_bits(c->in[0].type);
	int64_t i;
	int axis;

	if (!c->in[1].data || bits < 8 || om_shape_count(&c->in[1].shape) != 1
	    || om_shape_count(&c->out[0].shape) == 0
	    || om_attr_axis(c, "axis", in->rank, &axis) != OM_OK || om_shape_span(in, 0, axis) != 1
	    || om_index_read(c, 1, 0, in->dim[axis], &i) != OM_OK)
		return false;
	*v = (om_view_of){.in = 0, .offset = (uint64_t)(i * om_shape_span(in, axis + 1, in->rank)) * (bits / 8)};
	return out == 0;
}

/* Slices of one element are frequent (shape arithmetic, lookup tables): they are copied without a call. */
static void
copy_line(char *to, const char *from, size_t bytes)
{
	switch (bytes) {
	case 4: memcpy(to, from, 4); break;
	case 8: memcpy(to, from, 8); break;
	default: memcpy(to, from, bytes);
	}
}

struct gather {
	int axis;                 /* index of the axis */
	size_t size;              /* bytes of an element, */
	size_t line;              /* bytes of the slice that an index selects */
	int64_t outer, dim;       /* elements before the axis; dim of the axis */
	int64_t n;                /* number of indices */
	bool is_wide;             /* they are int64, not int32 */
};

static om_status
gather_prepare(om_op_context *c, void **state)
{
	const om_shape *in = &c->in[0].shape;
	struct gather *s = *state;

	OM_TRY(om_elem_bytes(c, c->in[0].type, &s->size));
	OM_TRY(om_attr_axis(c, "axis", in->rank, &s->axis));
	s->outer = om_shape_span(in, 0, s->axis);
	s->line = s->size * (size_t)om_shape_span(in, s->axis + 1, in->rank);
	s->dim = in->dim[s->axis];
	s->n = om_shape_count(&c->in[1].shape);
	s->is_wide = c->in[1].type == OM_INT64;
	return OM_OK;
}

/* Element `k` of indices that are not repeated. */
static int64_t
index_at(const struct gather *s, const void *data, int64_t k)
{
	const int64_t i = s->is_wide ? ((const int64_t *)data)[k] : ((const int32_t *)data)[k];

	return i < 0 ? i + s->dim : i;
}

/* Every `step`th of `n` groups of four bytes; the loop with a constant step becomes vectors. */
static void
take_every(char *to, const char *from, int64_t n, int64_t step)
{
	if (step == 2)
		for (int64_t k = 0; k < n; k++)
			memcpy(to + 4 * k, from + 8 * k, 4);
	else
		for (int64_t k = 0; k < n; k++)
			memcpy(to + 4 * k, from + 4 * step * k, 4);
}

static om_status
gather_lines(const om_op_context *c, const struct gather *s)
{
	const void *index = c->in[1].data;
	const char *from = c->in[0].data;
	char *to = c->out[0].data;

	if (s->n == 1 && s->line == 4 && s->outer > 0) {
		int64_t i;
		OM_TRY(om_index_read(c, 1, 0, s->dim, &i));
		take_every(to, from + 4 * i, s->outer, s->dim);
		return OM_OK;
	}
	for (int64_t o = 0; o < s->outer; o++, from += (size_t)s->dim * s->line)
		for (int64_t k = 0; k < s->n; k++, to += s->line) {
			int64_t i = index_at(s, index, k);
			if (i < 0 || i >= s->dim)  /* refused */
				return om_index_read(c, 1, k, s->dim, &i);
			copy_line(to, from + (size_t)i * s->line, s->line);
		}
	return OM_OK;
}

static om_status
gather_cpu(om_op_context *c)
{
	const struct gather *s = c->state;
	bool done;

	if (!c->in[0].splat && !c->in[1].splat && !c->out[0].splat)
		return gather_lines(c, s);

	OM_TRY(om_splat_through(c, &done));
	if (done)
		return OM_OK;
	char *to = c->out[0].data;
	for (int64_t o = 0; o < s->outer; o++)
		for (int64_t k = 0; k < s->n; k++, to += s->line) {
			int64_t i;
			OM_TRY(om_index_read(c, 1, k, s->dim, &i));
			copy_line(to, (const char *)c->in[0].data + (size_t)(o * s->dim + i) * s->line, s->line);
		}
	return OM_OK;
}

/* ---- GatherElements. ---- */

static om_status
gather_elements_infer(om_op_context *c)
{
	const om_shape *in = &c->in[0].shape, *at = &c->in[1].shape;
	int axis;

	c->out[0].type = c->in[0].type;
	OM_TRY(om_index_type(c, 1));
	c->out[0].shape = *at;
	if (in->rank < 0)
		return OM_OK;
	OM_TRY(om_attr_axis(c, "axis", in->rank, &axis));
	if (at->rank < 0) {
		c->out[0].shape = om_shape_open(in->rank);
		return OM_OK;
	}
	if (at->rank != in->rank)
		return om_op_fail(c->session, OM_SHAPE, c->op,
			"the indices have rank %d, expected %d", at->rank, in->rank);
	for (int k = 0; k < in->rank; k++)
		if (k != axis && in->dim[k] >= 0 && at->dim[k] > in->dim[k])
			return om_op_fail(c->session, OM_SHAPE, c->op,
				"dim %d is %lld for the data and %lld for the indices", k,
				(long long)in->dim[k], (long long)at->dim[k]);
	return OM_OK;
}

static om_status
gather_elements_prepare(om_op_context *c, void **state)
{
	const om_shape *in = &c->in[0].shape;
	struct gather *s = *state;

	OM_TRY(om_elem_bytes(c, c->in[0].type, &s->size));
	s->n = om_shape_count(&c->in[1].shape);
	return s->n == 0 ? OM_OK : om_attr_axis(c, "axis", in->rank, &s->axis);
}

static om_status
gather_elements_cpu(om_op_context *c)
{
	const struct gather *s = c->state;
	const om_shape *in = &c->in[0].shape, *at = &c->in[1].shape;
	int64_t stride[OM_MAX_RANK], place[OM_MAX_RANK] = {0}, n = 0;
	char *to = c->out[0].data;

	if (s->n == 0)
		return OM_OK;
	om_strides(in, stride);
	do {
		int64_t i, from = 0;
		OM_TRY(om_index_read(c, 1, n++, in->dim[s->axis], &i));
		for (int k = 0; k < in->rank; k++)
			from += (k == s->axis ? i : place[k]) * stride[k];
		memcpy(to, (const char *)c->in[0].data + (size_t)from * s->size, s->size);
		to += s->size;
	} while (om_next_place(at, place));
	return OM_OK;
}

/* ---- GatherND. ---- */

/* The number of batch axes, and the number of axes that one index selects. */
static om_status
nd_parts(const om_op_context *c, int *batch, int *named)
{
	const om_shape *in = &c->in[0].shape, *at = &c->in[1].shape;
	const int64_t b = om_attr_int(c->op, "batch_dims");

	if (at->rank < 1 || b < 0 || b >= at->rank || b > in->rank)
		return om_op_fail(c->session, OM_SHAPE, c->op, "batch_dims is %lld for ranks %d and %d",
			(long long)b, in->rank, at->rank);
	*batch = (int)b;
	*named = -1;
	if (at->dim[at->rank - 1] < 0)
		return OM_OK;
	if (at->dim[at->rank - 1] > in->rank - b)
		return om_op_fail(c->session, OM_SHAPE, c->op, "an index tuple has %lld elements for %d axes",
			(long long)at->dim[at->rank - 1], in->rank - *batch);
	*named = (int)at->dim[at->rank - 1];
	return OM_OK;
}

static om_status
gather_nd_infer(om_op_context *c)
{
	const om_shape *in = &c->in[0].shape, *at = &c->in[1].shape;
	om_shape *out = &c->out[0].shape;
	int batch, named;

	c->out[0].type = c->in[0].type;
	OM_TRY(om_index_type(c, 1));
	if (in->rank < 0 || at->rank < 0)
		return OM_OK;
	OM_TRY(nd_parts(c, &batch, &named));
	if (named < 0)
		return OM_OK;
	for (int k = 0; k < batch; k++)
		if (in->dim[k] >= 0 && at->dim[k] >= 0 && in->dim[k] != at->dim[k])
			return om_op_fail(c->session, OM_SHAPE, c->op, "batch axis %d is %lld for the data, %lld for the indices",
				k, (long long)in->dim[k], (long long)at->dim[k]);
	OM_TRY(check_rank(c, at->rank - 1 + in->rank - batch - named));
	*out = (om_shape){.rank = 0};
	append_dims(out, at, 0, at->rank - 1);
	append_dims(out, in, batch + named, in->rank);
	return OM_OK;
}

struct gather_nd {
	int batch, named;         /* number of batch axes, and of axes that an index selects */
	size_t size;              /* of an element */
};

static om_status
gather_nd_prepare(om_op_context *c, void **state)
{
	struct gather_nd *s = *state;

	OM_TRY(om_elem_bytes(c, c->in[0].type, &s->size));
	return nd_parts(c, &s->batch, &s->named);
}

static om_status
gather_nd_cpu(om_op_context *c)
{
	const struct gather_nd *s = c->state;
	const om_shape *in = &c->in[0].shape, *at = &c->in[1].shape;
	const int batch = s->batch, named = s->named;
	const size_t size = s->size;
	int64_t stride[OM_MAX_RANK];

	om_strides(in, stride);
	const int64_t outer = om_shape_span(at, 0, batch), inner = om_shape_span(at, batch, at->rank - 1);
	const int64_t per_batch = om_shape_span(in, batch, in->rank);
	const size_t line = size * (size_t)om_shape_span(in, batch + named, in->rank);
	char *to = c->out[0].data;
	for (int64_t b = 0; b < outer; b++)
		for (int64_t k = 0; k < inner; k++, to += line) {
			int64_t from = b * per_batch;
			for (int d = 0; d < named; d++) {
				int64_t i = 0;
				OM_TRY(om_index_read(c, 1, (b * inner + k) * named + d, in->dim[batch + d], &i));
				from += i * stride[batch + d];
			}
			copy_line(to, (const char *)c->in[0].data + (size_t)from * size, line);
		}
	return OM_OK;
}

/* ---- OneHot. ---- */

static om_status
one_hot_axis(const om_op_context *c, int *axis)
{
	const int rank = c->in[0].shape.rank + 1;
	const int64_t a = om_attr_int(c->op, "axis");

	if (om_axis(a, rank, axis))
		return OM_OK;
	return om_op_fail(c->session, OM_SHAPE, c->op,
		"axis %lld is out of range for the output of rank %d", (long long)a, rank);
}

static om_status
one_hot_infer(om_op_context *c)
{
	const om_shape *in = &c->in[0].shape;
	om_shape *out = &c->out[0].shape;
	double depth;
	int axis;

	c->out[0].type = c->in[2].type;
	if (in->rank < 0)
		return OM_OK;
	OM_TRY(check_rank(c, in->rank + 1));
	OM_TRY(one_hot_axis(c, &axis));
	*out = (om_shape){.rank = 0};
	append_dims(out, in, 0, axis);
	out->dim[out->rank++] = OM_DIM_UNKNOWN;
	append_dims(out, in, axis, in->rank);
	if (!om_in_scalar(c, 1, &depth))
		return OM_OK;
	if (!(depth >= 1 && depth < 0x1p62))
		return om_op_fail(c->session, OM_SHAPE, c->op, "depth is %g, expected a positive number", depth);
	out->dim[axis] = (int64_t)depth;
	return OM_OK;
}

/* Indices may have any numeric type. */
static bool
any_index(const om_op_context *c, int64_t k, int64_t *v)
{
	const om_tensor *t = &c->in[0];
	double d;

	if (!om_number(t->type, (const char *)t->data + (size_t)k * (om_dtype_bits(t->type) / 8), &d)
	    || !(d > -0x1p62 && d < 0x1p62))
		return false;
	*v = (int64_t)d;
	return true;
}

struct one_hot {
	int axis;                 /* of the output */
	size_t size;              /* of an element */
};

static om_status
one_hot_prepare(om_op_context *c, void **state)
{
	struct one_hot *s = *state;

	OM_TRY(om_elem_bytes(c, c->out[0].type, &s->size));
	if (om_shape_count(&c->in[2].shape) != 2)
		return om_op_fail(c->session, OM_RUN, c->op, "values must have 2 elements: off and on");
	return one_hot_axis(c, &s->axis);
}

static om_status
one_hot_cpu(om_op_context *c)
{
	const struct one_hot *s = c->state;
	const om_shape *in = &c->in[0].shape, *out = &c->out[0].shape;
	const char *off = c->in[2].data;
	const size_t size = s->size;
	const int axis = s->axis;

	om_fill(c->out[0].data, om_shape_count(out), size, off);
	const int64_t depth = out->dim[axis];
	const int64_t outer = om_shape_span(in, 0, axis), inner = om_shape_span(in, axis, in->rank);
	for (int64_t o = 0; o < outer; o++)
		for (int64_t k = 0; k < inner; k++) {
			int64_t i;
			if (!any_index(c, o * inner + k, &i) || i < -depth || i >= depth)
				continue;
			i += i < 0 ? depth : 0;
			memcpy((char *)c->out[0].data + (size_t)((o * depth + i) * inner + k) * size, off + size, size);
		}
	return OM_OK;
}

/* ---- The table. ---- */

static const om_attr_spec axis_attrs[] = {
	{.name = "axis", .kind = OM_ATTR_INT},
	{0}
};

static const om_attr_spec batch_attrs[] = {
	{.name = "batch_dims", .kind = OM_ATTR_INT},
	{0}
};

static const om_attr_spec last_attrs[] = {
	{.name = "axis", .kind = OM_ATTR_INT, .i = -1},
	{0}
};

#define ONE .domain = "", .min_out = 1, .max_out = 1

const om_opdef om_ops_index[] = {
	{ONE, .name = "Gather", .brief = "slices along an axis, by indices", .since = 1,
	 .min_in = 2, .max_in = 2, .flags = OM_SPLATS | OM_UNALIGNED | OM_MONOTONE, .attrs = axis_attrs,
	 .infer = gather_infer, .slice = om_slice_gather, .propagate_data = om_elems_moved, .view = gather_view, .cpu = gather_cpu,
	 .input_types = {OF_COMMON, OF_INDICES}},
	{ONE, .name = "GatherElements", .brief = "elements along an axis, by indices",
	 .since = 11, .min_in = 2, .max_in = 2, .flags = OM_MONOTONE, .attrs = axis_attrs,
	 .infer = gather_elements_infer, .slice = om_slice_gather_elements, .cpu = gather_elements_cpu,
	 .input_types = {OF_COMMON, OF_INDICES}},
	{ONE, .name = "GatherND", .brief = "slices by index tuples", .since = 11, .until = 11,
	 .min_in = 2, .max_in = 2, .flags = OM_MONOTONE, .infer = gather_nd_infer, .slice = om_slice_gather_nd, .cpu = gather_nd_cpu,
	 .input_types = {OF_COMMON, OF(INT64)}},
	{ONE, .name = "GatherND", .brief = "slices by index tuples", .since = 12,
	 .min_in = 2, .max_in = 2, .flags = OM_MONOTONE, .attrs = batch_attrs, .infer = gather_nd_infer, .slice = om_slice_gather_nd, .cpu = gather_nd_cpu,
	 .input_types = {OF_COMMON, OF(INT64)}},
	{ONE, .name = "OneHot", .brief = "one-hot encoding of indices", .since = 9,
	 .min_in = 3, .max_in = 3, .flags = OM_MONOTONE, .attrs = last_attrs, .infer = one_hot_infer, .slice = om_slice_one_hot, .cpu = one_hot_cpu,
	 .input_types = {OF_INTEGERS | OF(FLOAT16) | OF_WIDE_FLOATS,
	    OF_INTEGERS | OF(FLOAT16) | OF_WIDE_FLOATS, OF_COMMON}},
	{0}
};

#define KERNEL(label, type, called)                                            \
	{.name = label, .state_bytes = sizeof(struct type), .prepare = called##_prepare, .run = called##_cpu}

const om_kernel om_kernels_index[] = {
	KERNEL("Gather", gather, gather),
	KERNEL("GatherElements", gather, gather_elements),
	KERNEL("GatherND", gather_nd, gather_nd),
	KERNEL("OneHot", one_hot, one_hot),
	{0}
};
