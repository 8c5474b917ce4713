/* SPDX-License-Identifier: Apache-2.0 */
/* TopK: the k best elements of each line along an axis.
 *
 * A heap holds the best k so far with the worst on top; at the end it is emptied from the worst to
 * the best.  Elements are mapped to keys whose order as unsigned integers is the required order, so
 * one heap serves all types.  Of equal elements, the one with the lower index is better. */
#include <config.h>

#include "ops/family.h"
#include "opdef/slice.h"
#include "base/half.h"
#include "ir/query.h"
#include "opdef/columns.h"
#include "opdef/op_context.h"
#include "ops/math/axis_view.h"
#include "opdef/numbers.h"
#include "opdef/types.h"

struct entry {
	uint64_t key;    /* higher is better */
	int64_t index;
};

static uint64_t
key_of_real(double v)
{
	uint64_t u;

	v += 0.0;        /* -0 is 0 */
	if (IS_NAN(v))
		return UINT64_MAX;
	memcpy(&u, &v, sizeof u);
	return u >> 63 ? ~u : u | UINT64_C(1) << 63;
}

static uint64_t
key_of_integer(int64_t v)
{
	return (uint64_t)v ^ UINT64_C(1) << 63;
}

/* True for types whose elements can be mapped to a key. */
static bool
key_at(om_dtype t, const void *x, int64_t i, uint64_t *key)
{
	switch (t) {
	case OM_FLOAT32: *key = key_of_real((double)((const float *)x)[i]); return true;
	case OM_FLOAT64: *key = key_of_real(((const double *)x)[i]); return true;
	case OM_FLOAT16: *key = key_of_real((double)om_half_to_float(((const uint16_t *)x)[i])); return true;
	case OM_BFLOAT16: *key = key_of_real((double)om_bfloat_to_float(((const uint16_t *)x)[i])); return true;
	case OM_INT8: *key = key_of_integer(((const int8_t *)x)[i]); return true;
	case OM_INT16: *key = key_of_integer(((const int16_t *)x)[i]); return true;
	case OM_INT32: *key = key_of_integer(((const int32_t *)x)[i]); return true;
	case OM_INT64: *key = key_of_integer(((const int64_t *)x)[i]); return true;
	case OM_UINT8: *key = ((const uint8_t *)x)[i]; return true;
	case OM_UINT16: *key = ((const uint16_t *)x)[i]; return true;
	case OM_UINT32: *key = ((const uint32_t *)x)[i]; return true;
	case OM_UINT64: *key = ((const uint64_t *)x)[i]; return true;
	default: return false;
	}
}

static bool
is_worse(const struct entry *a, const struct entry *b)
{
	return a->key != b->key ? a->key < b->key : a->index > b->index;
}

/* Sift heap[at] down until no child is worse. */
static void
sink(struct entry *heap, int64_t n, int64_t at)
{
	const struct entry e = heap[at];

	for (int64_t child; (child = 2 * at + 1) < n; at = child) {
		if (child + 1 < n && is_worse(&heap[child + 1], &heap[child]))
			child++;
		if (!is_worse(&heap[child], &e))
			break;
		heap[at] = heap[child];
	}
	heap[at] = e;
}

/* Best first. */
static void
best_of_line(struct entry *heap, int64_t k, om_dtype t, const void *x, const struct om_lines *l, uint64_t flip)
{
	for (int64_t i = 0; i < l->n; i++) {
		struct entry e = {.index = i};
		key_at(t, x, i * l->inner, &e.key);
		e.key ^= flip;
		if (i < k) {
			heap[i] = e;
			for (int64_t at = k / 2; i == k - 1 && at-- > 0; )
				sink(heap, k, at);
		} else if (is_worse(&heap[0], &e)) {
			heap[0] = e;
			sink(heap, k, 0);
		}
	}
	for (int64_t n = k; n-- > 1; ) {
		const struct entry worst = heap[0];
		heap[0] = heap[n];
		heap[n] = worst;
		sink(heap, n, 0);
	}
}

static om_status
top_axis(const om_op_context *c, int *at)
{
	const int64_t axis = om_attr_int(c->op, "axis");
	return om_axis(axis, c->in[0].shape.rank, at) ? OM_OK : om_bad_axis(c, axis);
}

/* The requested k, or OM_DIM_UNKNOWN. */
static int64_t
wanted(const om_op_context *c)
{
	int64_t *k;
	size_t n;

	if (c->op->version < 10)
		return om_attr_int(c->op, "k");
	return om_in_ints(c, 1, &k, &n) && n == 1 ? *k : OM_DIM_UNKNOWN;
}

static bool
is_wanted_known(const om_op_context *c)
{
	return c->op->version < 10 || (om_has_in(c, 1) && c->in[1].data);
}

static om_status
top_infer(om_op_context *c)
{
	om_shape s = c->in[0].shape;
	int at = 0;

	if (s.rank >= 0) {
		OM_TRY(top_axis(c, &at));
		const int64_t k = wanted(c);
		if (is_wanted_known(c) && (k < 0 || (s.dim[at] >= 0 && k > s.dim[at])))
			return om_op_fail(c->session, OM_INVALID, c->op,
				"K is %lld, but the axis has %lld elements",
				(long long)k, (long long)s.dim[at]);
		s.dim[at] = k;
		s.sym[at] = NULL;
	}
	for (uint32_t k = 0; k < c->op->nout; k++) {
		c->out[k].type = k ? OM_INT64 : c->in[0].type;
		c->out[k].shape = s;
	}
	return OM_OK;
}

/* The output dim already gives k, both at run time and while planning. */
static int64_t
top_count(const om_op_context *c)
{
	int at;

	for (uint32_t k = 0; k < c->op->nout; k++)
		if (om_has_out(c, k) && om_axis(om_attr_int(c->op, "axis"), c->out[k].shape.rank, &at))
			return c->out[k].shape.dim[at];
	return 0;
}

static uint64_t
top_scratch(const om_op_context *c)
{
	uint64_t bytes;

	if (__builtin_mul_overflow((uint64_t)top_count(c), sizeof(struct entry), &bytes))
		return 0;
	return bytes;
}

static void
write_best(om_op_context *c, const struct entry *best, int64_t k, const char *x, int64_t inner, int64_t to)
{
	const size_t size = om_dtype_bits(c->in[0].type) / 8;

	for (int64_t i = 0; i < k; i++) {
		const size_t at = (size_t)(to + i * inner);
		if (om_has_out(c, 0))
			memcpy((char *)c->out[0].data + at * size,
				x + (size_t)(best[i].index * inner) * size, size);
		if (om_has_out(c, 1))
			((int64_t *)c->out[1].data)[at] = best[i].index;
	}
}

struct top {
	struct om_lines l;
	uint64_t flip;
	int64_t k;
};

static om_status
top_prepare(om_op_context *c, void **state)
{
	struct top *s = *state;
	int at;

	OM_TRY(top_axis(c, &at));
	s->l = om_lines_along(&c->in[0].shape, at);
	s->flip = om_attr_int(c->op, "largest") ? 0 : UINT64_MAX;
	s->k = top_count(c);
	return OM_OK;
}

static om_status
top_cpu(om_op_context *c)
{
	const struct top *s = c->state;
	const om_tensor *x = &c->in[0];
	const size_t size = om_dtype_bits(x->type) / 8;
	const struct om_lines l = s->l;
	const uint64_t flip = s->flip;
	const int64_t k = s->k;
	uint64_t unused;

	if (k == 0 || om_shape_count(&x->shape) == 0)
		return OM_OK;
	if (!key_at(x->type, x->data, 0, &unused))
		return om_no_kernel(c, c->in[0].type);
	for (int64_t o = 0; o < l.outer; o++)
		for (int64_t j = 0; j < l.inner; j++) {
			const char *from = (const char *)x->data + (size_t)(o * l.n * l.inner + j) * size;
			best_of_line(c->scratch, k, x->type, from, &l, flip);
			write_best(c, c->scratch, k, from, l.inner, o * k * l.inner + j);
		}
	return OM_OK;
}

/* ---- Operator definitions. ---- */

static bool
top_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	int axis;

	return om_axis(om_attr_int(c->op, "axis"), c->in[0].shape.rank, &axis) && om_slice_beside(c, out, s, axis);
}

static const om_attr_spec old_top_attrs[] = {
	{"axis", OM_ATTR_INT, .i = -1},
	{"k", OM_ATTR_INT, .required = true},
	{"largest", OM_ATTR_INT, .i = 1},
	{0}
};

static const om_attr_spec top_attrs[] = {
	{"axis", OM_ATTR_INT, .i = -1},
	{"largest", OM_ATTR_INT, .i = 1},
	{"sorted", OM_ATTR_INT, .i = 1},
	{0}
};

const om_opdef om_ops_topk[] = {
	{
		.name = "TopK", .brief = "largest or smallest elements along an axis, and their indices",
		.since = 1, .until = 9, .min_in = 1, .max_in = 1, .min_out = 2, .max_out = 2,
		.attrs = old_top_attrs, .infer = top_infer, .slice = top_slice, .cpu = top_cpu, .scratch = top_scratch,
		.cost = om_cost_of_input, .input_types = {OF_NUMBERS},
	},
	{
		.name = "TopK", .brief = "largest or smallest elements along an axis, and their indices",
		.since = 10, .min_in = 2, .max_in = 2, .min_out = 2, .max_out = 2,
		.attrs = top_attrs, .infer = top_infer, .max_shape = om_most_first, .slice = top_slice, .cpu = top_cpu, .scratch = top_scratch,
		.cost = om_cost_of_input, .input_types = {OF_NUMBERS, OF(INT64)},
	},
	{0}
};

const om_kernel om_kernels_topk[] = {
	{.name = "TopK", .state_bytes = sizeof(struct top), .prepare = top_prepare, .workspace = top_scratch, .run = top_cpu},
	{0}
};
