/* SPDX-License-Identifier: Apache-2.0 */
/* Inverses of pooling and of im2col: MaxUnpool, Col2Im. */
#include <config.h>

#include "base/strided_copy.h"
#include "opdef/columns.h"
#include "base/shape.h"
#include "ir/query.h"
#include "ops/family.h"
#include "opdef/slice.h"
#include "opdef/kernel_call.h"
#include "opdef/op_context.h"
#include "ops/tensor/index.h"
#include "opdef/numbers.h"

struct lists {
	om_ints kernel_shape, strides, dilations, pads;
};

static const om_attr_field list_fields[] = {
	OM_FIELD(struct lists, INTS, kernel_shape),
	OM_FIELD(struct lists, INTS, strides),
	OM_FIELD(struct lists, INTS, dilations),
	OM_FIELD(struct lists, INTS, pads),
	{0}
};

/* Element `k` of a list that may be absent. */
static int64_t
listed(const om_ints *list, int k, int64_t missing)
{
	return (size_t)k < list->n ? list->v[k] : missing;
}

static om_status
check_lists(const om_op_context *c, const struct lists *l, int axes)
{
	static const char *const names[] = {"strides", "dilations", "pads"};
	const om_ints lists[] = {l->strides, l->dilations, l->pads};

	for (int k = 0; k < 3; k++) {
		const size_t n = lists[k].n;
		const int64_t *v = lists[k].v;
		if (n && n != (size_t)axes * (k == 2 ? 2 : 1))
			return om_op_fail(c->session, OM_SHAPE, c->op,
				"%s has %zu elements for %d spatial axes", names[k], n, axes);
		for (size_t i = 0; i < n; i++)
			if (v[i] > INT32_MAX || v[i] < (k == 2 ? INT32_MIN : 1))
				return om_op_fail(c->session, OM_SHAPE, c->op,
					"%s contains the invalid value %lld", names[k], (long long)v[i]);
	}
	return OM_OK;
}

/* ---- MaxUnpool. ---- */

/* The size of the pooled tensor if `output_shape` is absent. */
static om_status
unpooled_shape(const om_op_context *c, const struct lists *l, om_shape *s)
{
	const om_shape *x = &c->in[0].shape;
	const int n = (int)l->kernel_shape.n;

	*s = *x;
	if (x->rank != n + 2)
		return om_wrong(c, "kernel_shape does not match the rank of the input");
	OM_TRY(check_lists(c, l, n));
	for (int k = 0; k < n; k++) {
		const int64_t pads = listed(&l->pads, k, 0) + listed(&l->pads, k + n, 0);
		int64_t *d = &s->dim[k + 2];
		s->sym[k + 2] = NULL;
		if (*d < 0)
			continue;
		if (__builtin_mul_overflow(*d - 1, listed(&l->strides, k, 1), d)
		    || __builtin_add_overflow(*d, l->kernel_shape.v[k] - pads, d) || *d < 0)
			return om_wrong(c, "kernel_shape, strides and pads give an invalid output size");
	}
	return OM_OK;
}

static om_status
unpool_infer(om_op_context *c)
{
	const om_shape *x = &c->in[0].shape;
	om_shape *y = &c->out[0].shape;
	int64_t want[OM_MAX_RANK];
	struct lists l;
	size_t n;

	c->out[0].type = c->in[0].type;
	if (x->rank < 0)
		return OM_OK;
	om_attr_fields(c->op, list_fields, &l);
	OM_TRY(unpooled_shape(c, &l, y));
	if (!om_has_in(c, 2))
		return OM_OK;
	*y = om_shape_open(x->rank);
	if (!om_in_few(c, 2, want, &n))
		return OM_OK;
	if ((int64_t)n != x->rank)
		return om_wrong(c, "output_shape and the input differ in rank");
	for (size_t k = 0; k < n; k++)
		if ((y->dim[k] = want[k]) < 0)
			return om_wrong(c, "the requested shape has a negative dim");
	return OM_OK;
}

struct unpool {
	struct lists lists;           /* first: list_fields */
	om_shape inner;               /* of the pooled tensor */
};

static om_status
unpool_prepare(om_op_context *c, void **state)
{
	const om_shape *x = &c->in[0].shape, *y = &c->out[0].shape;
	struct unpool *s = *state;

	OM_TRY(unpooled_shape(c, &s->lists, &s->inner));
	if (c->in[1].type != OM_INT64 || !om_shape_equal(&c->in[1].shape, x))
		return om_wrong(c, "the indices must be int64 and have the shape of the input");
	for (int d = 0; d < y->rank; d++)
		if (y->dim[d] < s->inner.dim[d])
			return om_wrong(c,
				"output_shape is smaller than the shape given by kernel_shape, strides and pads");
	return OM_OK;
}

/* Indices refer to the shape derived from the kernel, which is stored in a corner of the requested
 * shape. */
static om_status
unpool_cpu(om_op_context *c)
{
	const struct unpool *s = c->state;
	const om_shape *x = &c->in[0].shape, *y = &c->out[0].shape, inner = s->inner;
	const int64_t *index = c->in[1].data;
	int64_t stride[OM_MAX_RANK];
	size_t size = 0;

	OM_TRY(om_elem_bytes(c, c->in[0].type, &size));
	om_strides(y, stride);
	memset(c->out[0].data, 0, (size_t)om_shape_count(y) * size);
	for (int64_t k = 0; k < om_shape_count(x); k++) {
		int64_t rest = index[k], to = 0;
		if (rest < 0 || rest >= om_shape_count(&inner))
			return om_op_fail(c->session, OM_RUN, c->op, "index %lld is out of range", (long long)rest);
		for (int d = y->rank - 1; d >= 0; rest /= inner.dim[d--])
			to += rest % inner.dim[d] * stride[d];
		memcpy((char *)c->out[0].data + (size_t)to * size, (const char *)c->in[0].data + (size_t)k * size, size);
	}
	return OM_OK;
}

/* ---- Col2Im: scatter-add of blocks to an image. ---- */

struct blocks {
	int axes;
	int64_t image[OM_MAX_RANK], block[OM_MAX_RANK], count[OM_MAX_RANK];
	int64_t stride[OM_MAX_RANK], dilation[OM_MAX_RANK], pad[OM_MAX_RANK];  /* pad: before */
	int64_t taps, blocks;
};

static om_status
read_blocks(const om_op_context *c, const struct lists *l, struct blocks *b, bool *known)
{
	int64_t image[OM_MAX_RANK], block[OM_MAX_RANK];
	size_t n, m;

	*known = om_in_few(c, 1, image, &n) && om_in_few(c, 2, block, &m);
	if (!*known)
		return OM_OK;
	if (n != m || n < 1 || n > OM_MAX_RANK - 2)
		return om_wrong(c, "image_shape and block_shape differ in length");
	OM_TRY(check_lists(c, l, (int)n));
	*b = (struct blocks){.axes = (int)n, .taps = 1, .blocks = 1};
	for (int k = 0; k < b->axes; k++) {
		int64_t span;
		b->image[k] = image[k];
		b->block[k] = block[k];
		b->stride[k] = listed(&l->strides, k, 1);
		b->dilation[k] = listed(&l->dilations, k, 1);
		b->pad[k] = listed(&l->pads, k, 0);
		if (image[k] < 1 || block[k] < 1 || image[k] > INT32_MAX || block[k] > INT32_MAX)
			return om_wrong(c, "image_shape and block_shape must be positive");
		if (__builtin_mul_overflow(block[k] - 1, b->dilation[k], &span))
			return om_wrong(c, "the size of a block overflows");
		span = image[k] + b->pad[k] + listed(&l->pads, k + b->axes, 0) - span - 1;
		if (span < 0)
			return om_wrong(c, "a dilated block is larger than the padded image");
		b->count[k] = span / b->stride[k] + 1;
		if (__builtin_mul_overflow(b->taps, block[k], &b->taps)
		    || __builtin_mul_overflow(b->blocks, b->count[k], &b->blocks))
			return om_wrong(c, "the number of blocks overflows");
	}
	return OM_OK;
}

static om_status
fold_infer(om_op_context *c)
{
	const om_shape *x = &c->in[0].shape;
	om_shape *out = &c->out[0].shape;
	const int64_t axes = om_list_length(&c->in[1]) >= 0 ? om_list_length(&c->in[1]) : om_list_length(&c->in[2]);
	struct lists l;
	struct blocks b;
	bool known;

	c->out[0].type = c->in[0].type;
	om_attr_fields(c->op, list_fields, &l);
	if (x->rank >= 0 && x->rank != 3)
		return om_wrong(c, "the input must have rank 3");
	if (axes < 0)
		return OM_OK;
	*out = om_shape_open(axes + 2);
	if (x->rank == 3 && out->rank > 0)
		om_copy_dim(out, 0, x, 0);
	OM_TRY(read_blocks(c, &l, &b, &known));
	for (int k = 0; known && k < b.axes; k++)
		out->dim[k + 2] = b.image[k];
	if (!known || x->rank < 0)
		return OM_OK;
	if (!om_dims_agree(x->dim[2], b.blocks) || (x->dim[1] >= 0 && x->dim[1] % b.taps))
		return om_wrong(c, "the shape of the input does not match image_shape and block_shape");
	out->dim[1] = x->dim[1] < 0 ? x->dim[1] : x->dim[1] / b.taps;
	return OM_OK;
}

/* The offset of element `t` of block `k` in the image; -1 if it is outside. */
static int64_t
block_place(const struct blocks *b, int64_t t, int64_t k)
{
	int64_t at = 0, step = 1;

	for (int d = b->axes - 1; d >= 0; d--) {
		const int64_t i = k % b->count[d] * b->stride[d] - b->pad[d] + t % b->block[d] * b->dilation[d];
		if (i < 0 || i >= b->image[d])
			return -1;
		at += i * step;
		step *= b->image[d];
		k /= b->count[d];
		t /= b->block[d];
	}
	return at;
}

/* Add element `from` to element `to`: integers wrap around, bool is a logical or. */
OM_INLINE void
add_element(om_dtype t, void *y, int64_t to, const void *x, int64_t from)
{
	switch (t) {
	case OM_BOOL: ((uint8_t *)y)[to] |= ((const uint8_t *)x)[from]; break;
	case OM_INT8: case OM_UINT8: ((uint8_t *)y)[to] += ((const uint8_t *)x)[from]; break;
	case OM_INT16: case OM_UINT16: ((uint16_t *)y)[to] += ((const uint16_t *)x)[from]; break;
	case OM_INT32: case OM_UINT32: ((uint32_t *)y)[to] += ((const uint32_t *)x)[from]; break;
	case OM_INT64: case OM_UINT64: ((uint64_t *)y)[to] += ((const uint64_t *)x)[from]; break;
	case OM_COMPLEX64:
		for (int k = 0; k < 2; k++)
			((float *)y)[2 * to + k] += ((const float *)x)[2 * from + k];
		break;
	case OM_COMPLEX128:
		for (int k = 0; k < 2; k++)
			((double *)y)[2 * to + k] += ((const double *)x)[2 * from + k];
		break;
	default: om_put(t, y, to, om_get(t, y, to) + om_get(t, x, from));
	}
}

OM_INLINE void
add_blocks(om_dtype t, const om_op_context *c, const struct blocks *b)
{
	const int64_t planes = c->out[0].shape.dim[0] * c->out[0].shape.dim[1];
	const int64_t area = om_shape_span(&c->out[0].shape, 2, c->out[0].shape.rank);

	for (int64_t tap = 0; tap < b->taps; tap++)
		for (int64_t k = 0; k < b->blocks; k++) {
			const int64_t at = block_place(b, tap, k);
			for (int64_t p = 0; at >= 0 && p < planes; p++)
				add_element(t, c->out[0].data, p * area + at, c->in[0].data, (p * b->taps + tap) * b->blocks + k);
		}
}

struct fold {
	struct lists lists;           /* first: list_fields */
	struct blocks blocks;
	bool is_known;                /* image and block, while preparing; otherwise only in a run */
};

static om_status
fold_prepare(om_op_context *c, void **state)
{
	struct fold *s = *state;

	if (c->in[0].type == OM_STRING || om_dtype_bits(c->in[0].type) < 8)
		return om_no_kernel(c, c->in[0].type);
	return read_blocks(c, &s->lists, &s->blocks, &s->is_known);
}

static om_status
fold_cpu(om_op_context *c)
{
	const struct fold *s = c->state;
	struct blocks b = s->blocks;
	bool known = s->is_known;
	uint64_t bytes = 0;

	if (!known)
		OM_TRY(read_blocks(c, &s->lists, &b, &known));
	om_tensor_bytes(c->out[0].type, &c->out[0].shape, &bytes);
	memset(c->out[0].data, 0, bytes);
	EACH_FLOAT(c->in[0].type, add_blocks(T, c, &b), add_blocks(c->in[0].type, c, &b))
	return OM_OK;
}

/* ---- The table. ---- */

/* Images and channels, each of which is a column of blocks. */
static bool
fold_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part *p = &s->out[out];
	const int64_t each = c->out[0].shape.dim[1] ? c->in[0].shape.dim[1] / c->out[0].shape.dim[1] : 0;

	s->in[0] = p->axis == 0 ? *p : om_part_of(1, p->lo * each, p->hi * each);
	return p->axis < 2;
}

static const om_attr_spec unpool_attrs[] = {
	{"kernel_shape", OM_ATTR_INTS, .required = true},
	{"pads", OM_ATTR_INTS},
	{"strides", OM_ATTR_INTS},
	{0}
};

static const om_attr_spec fold_attrs[] = {
	{"dilations", OM_ATTR_INTS},
	{"pads", OM_ATTR_INTS},
	{"strides", OM_ATTR_INTS},
	{0}
};

const om_opdef om_ops_col2im_unpool[] = {
	{.name = "MaxUnpool", .brief =
		"inverse of MaxPool: elements at the positions that its indices give", .since = 9,
	 .min_in = 2, .max_in = 3, .min_out = 1, .max_out = 1, .attrs = unpool_attrs,
	 .infer = unpool_infer, .cpu = unpool_cpu,
	 .input_types = {OF_FLOATS, OF(INT64), LIKE(1)}},
	{.name = "Col2Im", .brief = "scatter-add of columns into an image", .since = 18,
	 .min_in = 3, .max_in = 3, .min_out = 1, .max_out = 1, .attrs = fold_attrs,
	 .infer = fold_infer, .slice = fold_slice, .cpu = fold_cpu,
	 .input_types = {OF_COMMON & ~OF(STRING), OF(INT64), OF(INT64)}},
	{0}
};

const om_kernel om_kernels_col2im_unpool[] = {
	{.name = "MaxUnpool", .fields = list_fields, .state_bytes = sizeof(struct unpool), .prepare = unpool_prepare,
	 .run = unpool_cpu},
	{.name = "Col2Im", .fields = list_fields, .state_bytes = sizeof(struct fold), .prepare = fold_prepare,
	 .run = fold_cpu},
	{0}
};
