/* SPDX-License-Identifier: Apache-2.0 */
/* Pad: a tensor with padding, or cropped. */
#include <config.h>

#include "base/strided_copy.h"
#include "opdef/columns.h"
#include "base/half.h"
#include "base/shape.h"
#include "ir/query.h"
#include "ops/family.h"
#include "opdef/kernel_call.h"
#include "opdef/op_context.h"
#include "opdef/slice.h"

static int64_t
clamp(int64_t v, int64_t low, int64_t high)
{
	return v < low ? low : v > high ? high : v;
}

/* ---- How much is padded. ---- */

struct pads {
	int64_t before[OM_MAX_RANK], after[OM_MAX_RANK];
	bool known;
};

/* The attributes that tell how much is padded. */
struct pad_attrs {
	om_ints pads, paddings;   /* paddings: in version 1 */
};

static const om_attr_field pad_fields[] = {
	OM_FIELD(struct pad_attrs, INTS, pads),
	OM_FIELD(struct pad_attrs, INTS, paddings),
	{0}
};

static om_status
pad_axes(const om_op_context *c, int rank, size_t n, int axis[OM_MAX_RANK], bool *known)
{
	int64_t v[OM_MAX_RANK];
	size_t count = (size_t)rank;

	*known = true;
	for (int k = 0; k < rank; k++)
		axis[k] = k;
	if (om_has_in(c, 3)) {
		bool seen[OM_MAX_RANK] = {false};
		*known = om_in_few(c, 3, v, &count);
		for (size_t k = 0; *known && k < count; k++) {
			if (k >= (size_t)rank || !om_axis(v[k], rank, &axis[k]) || seen[axis[k]])
				return om_op_fail(c->session, OM_SHAPE, c->op,
					"axes must be distinct axes of rank %d", rank);
			seen[axis[k]] = true;
		}
	}
	if (*known && n != 2 * count)
		return om_op_fail(c->session, OM_SHAPE, c->op, "pads has %zu elements for %zu axes", n, count);
	return OM_OK;
}

static om_status
pads_of(const om_op_context *c, const struct pad_attrs *attrs, struct pads *p)
{
	const om_tensor *in = om_has_in(c, 1) ? &c->in[1] : NULL;
	const om_ints *list = attrs->paddings.v ? &attrs->paddings : &attrs->pads;
	int axis[OM_MAX_RANK];

	*p = (struct pads){.known = false};
	if (in ? !in->data || (in->type != OM_INT64 && in->type != OM_INT32) : !list->v)
		return OM_OK;
	const size_t n = in ? (size_t)om_shape_count(&in->shape) : list->n;
	OM_TRY(pad_axes(c, c->in[0].shape.rank, n, axis, &p->known));
	for (size_t k = 0; p->known && k < n / 2; k++) {
		p->before[axis[k]] = in ? om_int_at(in, (int64_t)k) : list->v[k];
		p->after[axis[k]] = in ? om_int_at(in, (int64_t)(k + n / 2)) : list->v[k + n / 2];
	}
	return OM_OK;
}

/* The padded dim of an axis of `n` elements; false if it is invalid.  Constants may replace
 * elements where more is cropped than there is; mirrored elements may not. */
static bool
padded_length(bool is_constant, int64_t n, int64_t before, int64_t after, int64_t *length)
{
	const int64_t most = is_constant ? INT64_MAX / 4 : n;

	return before >= -most && after >= -most && !__builtin_add_overflow(n, before, length)
		&& !__builtin_add_overflow(*length, after, length) && *length >= 0;
}

static om_status
pad_infer(om_op_context *c)
{
	const om_shape *in = &c->in[0].shape;
	const bool is_constant = om_attr_is(c->op, "mode", "constant");
	om_shape *out = &c->out[0].shape;
	struct pad_attrs attrs;
	struct pads p;

	c->out[0].type = c->in[0].type;
	if (in->rank < 0)
		return OM_OK;
	om_attr_fields(c->op, pad_fields, &attrs);
	OM_TRY(pads_of(c, &attrs, &p));
	*out = om_shape_open(in->rank);
	for (int k = 0; k < in->rank && p.known; k++) {
		if (p.before[k] == 0 && p.after[k] == 0) {
			out->dim[k] = in->dim[k];
			out->sym[k] = in->sym[k];
		} else if (in->dim[k] >= 0 && !padded_length(is_constant, in->dim[k], p.before[k], p.after[k], &out->dim[k])) {
			return om_op_fail(c->session, OM_SHAPE, c->op, "dim %d is %lld, too small for pads of %lld and %lld",
				k, (long long)in->dim[k], (long long)p.before[k], (long long)p.after[k]);
		}
	}
	return OM_OK;
}

/* The part of an axis that is padded by constants; one element is read and cropped where the part is padding alone. */
static void
pad_part(const om_op_context *c, uint32_t out, om_slice *s, struct pads *p)
{
	const om_part *part = &s->out[out];
	const int axis = part->axis;
	const int64_t n = c->in[0].shape.dim[axis], lo = part->lo - p->before[axis], hi = part->hi - p->before[axis];
	const int64_t first = lo < 0 ? 0 : lo < n ? lo : n - 1, end = hi <= first ? first + 1 : hi < n ? hi : n;
	const bool is_before = hi <= first, is_after = lo >= end;

	s->in[0] = om_part_of(axis, first, end);
	p->before[axis] = is_before ? part->hi - part->lo : is_after ? -1 : first - lo;
	p->after[axis] = is_before ? -1 : is_after ? part->hi - part->lo : hi - end;
}

static void
put_pads(const om_op_context *c, om_slice *s, const struct pads *p)
{
	const int rank = c->in[0].shape.rank;
	int64_t v[2 * OM_MAX_RANK];

	for (int k = 0; k < rank; k++) {
		v[k] = p->before[k];
		v[rank + k] = p->after[k];
	}
	if (c->op->nin > 1)
		om_slice_put_ints(c, s, 1, 2 * (size_t)rank, v);
	else
		om_slice_set_ints(c, s, om_attr_has(c->op, "paddings") ? "paddings" : "pads", 2 * (size_t)rank, v);
	if (om_has_in(c, 3))
		s->in[3] = om_part_none();
}

/* Padding that repeats elements is of whole axes. */
static bool
pad_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	const int axis = s->out[out].axis;
	struct pad_attrs attrs;
	struct pads p;

	om_attr_fields(c->op, pad_fields, &attrs);
	if (pads_of(c, &attrs, &p) != OM_OK || !p.known)
		return false;
	if (p.before[axis] == 0 && p.after[axis] == 0)
		return om_slice_first(c, out, s);
	if (!om_attr_is(c->op, "mode", "constant") || c->in[0].shape.dim[axis] == 0)
		return false;
	pad_part(c, out, s, &p);
	put_pads(c, s, &p);
	return true;
}

static bool
pad_view(const om_op_context *c, uint32_t out, om_view_of *v)
{
	struct pad_attrs attrs;
	struct pads p;

	om_attr_fields(c->op, pad_fields, &attrs);
	if (pads_of(c, &attrs, &p) != OM_OK || !p.known)
		return false;
	for (int k = 0; k < c->in[0].shape.rank; k++)
		if (p.before[k] || p.after[k])
			return false;
	return om_view_whole(c, out, v);
}

enum pad_mode { CONSTANT, REFLECT, EDGE, WRAP };

struct pad {
	struct pad_attrs attrs;   /* first: pad_fields */
	bool is_ready;            /* the pads were known during preparation */
	enum pad_mode mode;
	float value;              /* if no input provides it */
	size_t size;              /* of an element */
	struct pads p;
	int64_t *table[OM_MAX_RANK];  /* source offsets of mirrored elements */
	om_copy_plan plan;        /* copies the elements kept between constants */
	size_t from, to;          /* byte offsets in the input and the output */
	bool has_rest;            /* is any element kept? */
};

/* The element to pad with: an input, an attribute, zero. */
static om_status
pad_element(const om_op_context *c, size_t size, float f, void *one)
{
	const om_dtype t = c->in[0].type;

	memset(one, 0, size);
	if (om_has_in(c, 2)) {
		if (c->in[2].type != t)
			return om_op_fail(c->session, OM_SHAPE, c->op, "cannot pad %s with %s",
				om_dtype_text(t), om_dtype_text(c->in[2].type));
		if (om_shape_count(&c->in[2].shape) > 0)
			memcpy(one, c->in[2].data, size);
	} else if (t == OM_FLOAT32) {
		memcpy(one, &f, sizeof f);
	} else if (t == OM_FLOAT64) {
		memcpy(one, &(double){f}, sizeof(double));
	} else if (t == OM_FLOAT16) {
		memcpy(one, &(uint16_t){om_float_to_half(f)}, sizeof(uint16_t));
	}
	return OM_OK;
}

static int64_t
positive_modulo(int64_t v, int64_t n)
{
	return (v % n + n) % n;
}

/* Which element of [low, high) is at position `i`, counted from low. */
static int64_t
mirror(enum pad_mode mode, int64_t i, int64_t n)
{
	if (mode == EDGE)
		return clamp(i, 0, n - 1);
	if (mode == WRAP)
		return positive_modulo(i, n);
	if (n == 1)
		return 0;
	i = positive_modulo(i, 2 * (n - 1));
	return i < n ? i : 2 * (n - 1) - i;
}

/* For each position of each axis, the offset of its source element.  Negative pads crop first;
 * the remaining elements are mirrored. */
static om_status
pad_table(const om_op_context *c, const struct pads *p, enum pad_mode mode, int64_t *const table[OM_MAX_RANK])
{
	const om_shape *in = &c->in[0].shape, *out = &c->out[0].shape;
	int64_t stride[OM_MAX_RANK];

	om_strides(in, stride);
	for (int k = 0; k < in->rank; k++) {
		const int64_t low = p->before[k] < 0 ? -p->before[k] : 0;
		const int64_t n = in->dim[k] - low + (p->after[k] < 0 ? p->after[k] : 0);
		const int64_t before = p->before[k] > 0 ? p->before[k] : 0;
		if (n <= 0)
			return om_op_fail(c->session, OM_RUN, c->op,
				"axis %d is empty and cannot be padded in this mode", k);
		for (int64_t i = 0; i < out->dim[k]; i++)
			table[k][i] = (low + mirror(mode, i - before, n)) * stride[k];
	}
	return OM_OK;
}

static om_status
pad_mirrored(om_op_context *c, const struct pad *s)
{
	const om_shape *out = &c->out[0].shape;
	const int last = out->rank - 1;
	int64_t *const *table = s->table, at[OM_MAX_RANK] = {0};
	char *to = c->out[0].data;

	for (int k = 0; k >= 0;) {
		const char *from = c->in[0].data;
		for (int d = 0; d < last; d++)
			from += table[d][at[d]] * (int64_t)s->size;
		for (int64_t i = 0; i < out->dim[last]; i++, to += s->size)
			memcpy(to, from + table[last][i] * (int64_t)s->size, s->size);
		for (k = last - 1; k >= 0 && ++at[k] == out->dim[k]; k--)
			at[k] = 0;
	}
	return OM_OK;
}

static om_status
pad_constant(om_op_context *c, const struct pad *s)
{
	char one[sizeof(om_string)];

	OM_TRY(pad_element(c, s->size, s->value, one));
	om_fill(c->out[0].data, om_shape_count(&c->out[0].shape), s->size, one);
	if (s->has_rest)
		om_copy_go(&s->plan, (char *)c->out[0].data + s->to, (const char *)c->in[0].data + s->from);
	return OM_OK;
}

static void
plan_rest(const om_op_context *c, struct pad *s)
{
	const om_shape *in = &c->in[0].shape, *out = &c->out[0].shape;
	int64_t from[OM_MAX_RANK], to[OM_MAX_RANK], at = 0, start = 0;
	const struct pads *p = &s->p;
	om_copy all = {.rank = 0};

	om_strides(in, from);
	om_strides(out, to);
	s->has_rest = true;
	for (int k = 0; k < out->rank && s->has_rest; k++) {
		const int64_t cut = p->before[k] < 0 ? -p->before[k] : 0;
		const int64_t n = in->dim[k] - cut + (p->after[k] < 0 ? p->after[k] : 0);
		s->has_rest = n > 0;
		om_copy_axis(&all, n, to[k], from[k]);
		start += cut * from[k];
		at += (p->before[k] > 0 ? p->before[k] : 0) * to[k];
	}
	s->plan = om_copy_prepare(&all, s->size);
	s->from = (size_t)start * s->size;
	s->to = (size_t)at * s->size;
}

/* The pads are known. */
static om_status
pad_plan(const om_op_context *c, struct pad *s)
{
	OM_TRY(pads_of(c, &s->attrs, &s->p));
	if (om_shape_count(&c->out[0].shape) == 0)
		return OM_OK;
	if (s->mode == CONSTANT)
		plan_rest(c, s);
	else if (c->in[0].shape.rank > 0 && !c->sizes_only)
		OM_TRY(pad_table(c, &s->p, s->mode, s->table));
	return OM_OK;
}

static om_status
pad_mode_of(const om_op_context *c, enum pad_mode *mode)
{
	static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
	const om_string s = om_attr_string(c->op, "mode");

	for (int k = CONSTANT; k <= WRAP; k++)
		if (om_attr_is(c->op, "mode", names[k])) {
			*mode = (enum pad_mode)k;
			return OM_OK;
		}
	return om_op_fail(c->session, OM_INVALID, c->op, "unknown mode %.*s", (int)s.size, s.data);
}

static bool
are_pads_known(const om_op_context *c)
{
	return (!om_has_in(c, 1) || c->in[1].data) && (!om_has_in(c, 3) || c->in[3].data);
}

static om_status
pad_prepare(om_op_context *c, void **state)
{
	const om_shape *out = &c->out[0].shape;
	struct pad *s = *state;

	s->size = om_moved_bytes(c->in[0].type);
	s->value = om_attr_float(c->op, "value");
	if (om_shape_count(&c->out[0].shape) != 0)
		OM_TRY(pad_mode_of(c, &s->mode));
	for (int k = 0; k < out->rank && s->mode != CONSTANT && !c->sizes_only; k++)
		s->table[k] = OM_NEWN(c->mem, int64_t, (size_t)out->dim[k]);
	s->is_ready = are_pads_known(c);
	return s->is_ready ? pad_plan(c, s) : OM_OK;
}

static om_status
pad_bytes(om_op_context *c)
{
	struct pad *s = c->state;

	if (!s->is_ready)
		OM_TRY(pad_plan(c, s));
	if (om_shape_count(&c->out[0].shape) == 0 || c->out[0].data == c->in[0].data)  /* not padded: see pad_view() */
		return OM_OK;
	if (s->mode == CONSTANT)
		return pad_constant(c, s);
	return c->in[0].shape.rank == 0 ? om_cpu_whole(c) : pad_mirrored(c, s);
}

static om_status
pad_cpu(om_op_context *c)
{
	return om_run_unpacked(c, pad_bytes);
}

/* ---- The table. ---- */

static const om_attr_spec pad1_attrs[] = {
	{.name = "mode", .kind = OM_ATTR_STRING, .s = "constant"},
	{.name = "paddings", .kind = OM_ATTR_INTS, .required = true},
	{.name = "value", .kind = OM_ATTR_FLOAT},
	{0}
};

static const om_attr_spec pad2_attrs[] = {
	{.name = "mode", .kind = OM_ATTR_STRING, .s = "constant"},
	{.name = "pads", .kind = OM_ATTR_INTS, .required = true},
	{.name = "value", .kind = OM_ATTR_FLOAT},
	{0}
};

static const om_attr_spec pad11_attrs[] = {
	{.name = "mode", .kind = OM_ATTR_STRING, .s = "constant"},
	{0}
};

#define PAD .min_out = 1, .max_out = 1, .name = "Pad", .brief = "input with padding", \
	.infer = pad_infer, .slice = pad_slice, .view = pad_view, .cpu = pad_cpu

const om_opdef om_ops_pad[] = {
	{PAD, .since = 1, .until = 1, .min_in = 1, .max_in = 1, .attrs = pad1_attrs,
	 .input_types = {OF_ANY}},
	{PAD, .since = 2, .until = 10, .min_in = 1, .max_in = 1, .attrs = pad2_attrs,
	 .input_types = {OF_ANY}},
	{PAD, .since = 11, .until = 17, .min_in = 2, .max_in = 3, .attrs = pad11_attrs,
	 .input_types = {OF_ANY, OF(INT64), LIKE(0)}},
	{PAD, .since = 18, .min_in = 2, .max_in = 4, .attrs = pad11_attrs,
	 .input_types = {OF_ANY, OF(INT64), LIKE(0), OF_INDICES}},
	{0}
};

const om_kernel om_kernels_pad[] = {
	{.name = "Pad", .fields = pad_fields, .state_bytes = sizeof(struct pad), .prepare = pad_prepare, .run = pad_cpu},
	{0}
};
