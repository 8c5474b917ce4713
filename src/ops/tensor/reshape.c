/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that move no bytes: the output is a view. */
#include <config.h>

#include "opdef/columns.h"
#include "base/shape.h"
#include "ir/query.h"
#include "ops/family.h"
#include "ops/slices.h"
#include "opdef/kernel_call.h"
#include "opdef/op_context.h"

/* ---- Reshape. ---- */

/* The requested dims: an attribute until version 4, then an input. */
static bool
wanted_dims(const om_op_context *c, om_symbolic_elem want[OM_MAX_RANK], size_t *n)
{
	if (c->op->nin >= 2)
		return om_in_few_elems(c, 1, want, n);
	const int64_t *dims = om_attr_ints(c->op, "shape", n);
	for (size_t k = 0; k < *n && k < OM_MAX_RANK; k++)
		want[k] = (om_symbolic_elem){.known = true, .value = dims[k]};
	return true;
}

/* Write the dims that are given or copied from the input.  `*hole` is the index of the dim given
 * as -1; it is -1 if there is none, or if an unknown dim may be another. */
static om_status
fill_dims(const om_op_context *c, bool zero_copies, const om_symbolic_elem *elem, int n, om_shape *out, int *hole)
{
	const om_shape *in = &c->in[0].shape;
	bool may_have_more = false;
	int64_t want[OM_MAX_RANK];

	*hole = -1;
	for (int k = 0; k < n; k++) {
		if (!elem[k].known) {
			may_have_more |= !om_dim_of_elem(&elem[k], out, k);
			continue;
		}
		want[k] = elem[k].value;
		out->dim[k] = want[k];
		if (want[k] < -1 || (want[k] == -1 && *hole >= 0))
			return om_op_fail(c->session, OM_SHAPE, c->op,
				"the requested shape has %s", want[k] < -1 ? "a dim below -1" : "-1 twice");
		if (want[k] == -1) {
			*hole = k;
		} else if (want[k] == 0 && zero_copies) {
			if (in->rank >= 0 && k >= in->rank)
				return om_op_fail(c->session, OM_SHAPE, c->op,
					"dim %d is 0 (copy from the input), but the input has rank %d", k, in->rank);
			out->dim[k] = in->rank >= 0 ? in->dim[k] : OM_DIM_UNKNOWN;
			out->sym[k] = in->rank >= 0 ? in->sym[k] : NULL;
		}
	}
	*hole = may_have_more ? -1 : *hole;
	return OM_OK;
}

/* How many of the first `n` dims are open and called like this. */
static int
count_open(const om_shape *s, int n, const char *sym)
{
	int count = 0;

	for (int k = 0; k < n; k++)
		count += s->dim[k] < 0 && s->sym[k] && strcmp(s->sym[k], sym) == 0;
	return count;
}

/* The product of the known dims of a shape, and its open dims, except for those that the other shape has, too. */
struct parts {
	int64_t known;
	int nopen;
	const char *sym;   /* the product of the open dims; NULL: one has no symbol */
};

static bool
part(const om_op_context *c, const om_shape *s, const om_shape *other, int hole, struct parts *p)
{
	*p = (struct parts){.known = 1};
	for (int k = 0; k < s->rank; k++) {
		if (k == hole)
			continue;
		if (s->dim[k] >= 0) {
			if (__builtin_mul_overflow(p->known, s->dim[k], &p->known))
				return false;
		} else if (!s->sym[k] || count_open(s, k, s->sym[k]) >= count_open(other, other->rank, s->sym[k])) {
			p->sym = p->nopen++ ? om_dim_text(c, p->sym, '*', s->sym[k]) : s->sym[k];
		}
	}
	return true;
}

/* Compute the dim given as -1. */
static om_status
fill_hole(const om_op_context *c, om_shape *out, int hole)
{
	const om_shape *in = &c->in[0].shape;
	struct parts have, used;
	om_shape rest = *out;

	out->sym[hole] = NULL;
	if (in->rank < 0)
		return OM_OK;
	rest.dim[hole] = 1;
	if (!part(c, in, &rest, -1, &have) || !part(c, &rest, in, hole, &used))
		return om_op_fail(c->session, OM_INVALID, c->op, "the number of elements overflows");
	if (used.nopen)
		return OM_OK;
	if (have.nopen) {
		if (have.known == used.known)
			out->sym[hole] = have.sym;
		else if (used.known && have.known % used.known == 0)
			out->sym[hole] = om_dim_text_number(c, have.sym, '*', have.known / used.known);
		else if (have.known && used.known % have.known == 0)
			out->sym[hole] = om_dim_text_number(c, have.sym, '/', used.known / have.known);
		return OM_OK;
	}
	if (used.known == 0 ? have.known != 0 : have.known % used.known != 0)
		return om_op_fail(c->session, OM_SHAPE, c->op,
			"%lld elements are not a multiple of %lld",
			(long long)have.known, (long long)used.known);
	out->dim[hole] = used.known ? have.known / used.known : 0;
	return OM_OK;
}

static om_status
check_count(const om_op_context *c, const om_shape *out)
{
	const om_shape *in = &c->in[0].shape;
	char from[256], to[256];
	int64_t a, b;
	const char *sym;

	if (!om_shape_is_known(in) || !om_shape_is_known(out))
		return OM_OK;
	if (!om_dim_product(in, 0, in->rank, &a, &sym) || !om_dim_product(out, 0, out->rank, &b, &sym)
	    || a != b)
		return om_op_fail(c->session, OM_SHAPE, c->op, "cannot reshape %s to %s",
			om_shape_text(in, from, sizeof from), om_shape_text(out, to, sizeof to));
	return OM_OK;
}

static om_status
reshape_infer(om_op_context *c)
{
	om_shape *out = &c->out[0].shape;
	om_symbolic_elem want[OM_MAX_RANK];
	size_t n;
	int hole;

	c->out[0].type = c->in[0].type;
	if (!wanted_dims(c, want, &n)) {
		*out = om_shape_open(om_list_length(&c->in[1]));
		return OM_OK;
	}
	if (n > OM_MAX_RANK)
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, 
			"the requested shape has %zu dims, too many", n);
	*out = om_shape_open((int64_t)n);
	OM_TRY(fill_dims(c, !om_attr_int(c->op, "allowzero"), want, (int)n, out, &hole));
	if (hole >= 0)
		OM_TRY(fill_hole(c, out, hole));
	return check_count(c, out);
}

static om_status
reshape_prepare(om_op_context *c, void **state)
{
	uint64_t *bytes = *state, from;

	if (!om_tensor_bytes(c->in[0].type, &c->in[0].shape, &from)
	    || !om_tensor_bytes(c->out[0].type, &c->out[0].shape, bytes) || from != *bytes)
		return om_op_fail(c->session, OM_RUN, c->op, 
			"the input and the output differ in their number of elements");
	return OM_OK;
}

static om_status
reshape_cpu(om_op_context *c)
{
	const uint64_t *bytes = c->state;

	if (*bytes && c->in[0].data != c->out[0].data)
		memmove(c->out[0].data, c->in[0].data, *bytes);
	return OM_OK;
}

/* ---- Flatten. ---- */

static om_status
flatten_infer(om_op_context *c)
{
	const om_shape *in = &c->in[0].shape;
	om_shape *out = &c->out[0].shape;
	int64_t axis = om_attr_int(c->op, "axis");

	c->out[0].type = c->in[0].type;
	*out = om_shape_open(2);
	if (in->rank < 0)
		return OM_OK;
	if (axis < -in->rank || axis > in->rank)
		return om_op_fail(c->session, OM_SHAPE, c->op, "axis %lld is out of range for rank %d",
			(long long)axis, in->rank);
	axis += axis < 0 ? in->rank : 0;
	if (!om_dim_product(in, 0, (int)axis, &out->dim[0], &out->sym[0])
	    || !om_dim_product(in, (int)axis, in->rank, &out->dim[1], &out->sym[1]))
		return om_op_fail(c->session, OM_INVALID, c->op, "the number of elements overflows");
	if (out->dim[0] < 0 && !out->sym[0])
		out->sym[0] = om_dim_product_text(c, in, 0, (int)axis);
	if (out->dim[1] < 0 && !out->sym[1])
		out->sym[1] = om_dim_product_text(c, in, (int)axis, in->rank);
	return OM_OK;
}

/* ---- Squeeze, Unsqueeze. ---- */

/* The axes, an attribute until version 12, as flags per index.  `*known` is false if they are an
 * input without data; `*n` is -1 if there is no list. */
static om_status
axes_of(const om_op_context *c, int rank, bool flag[OM_MAX_RANK], int64_t *n, bool *known)
{
	const int64_t *axes = om_attr_ints(c->op, "axes", NULL);
	size_t count = 0;
	int64_t *v;

	*known = true;
	*n = -1;
	if (om_has_in(c, 1)) {
		*known = om_in_ints(c, 1, &v, &count);
		*n = *known ? (int64_t)count : om_list_length(&c->in[1]);
		axes = v;
	} else if (axes) {
		om_attr_ints(c->op, "axes", &count);
		*n = (int64_t)count;
	}
	for (size_t k = 0; *known && rank >= 0 && k < count; k++) {
		int axis;
		if (!om_axis(axes[k], rank, &axis) || flag[axis])
			return om_op_fail(c->session, OM_SHAPE, c->op,
				"axis %lld is %s for rank %d", (long long)axes[k],
				axes[k] < -rank || axes[k] >= rank ? "out of range" : "given twice", rank);
		flag[axis] = true;
	}
	return OM_OK;
}

static om_status
squeeze_named(om_op_context *c, const bool flag[OM_MAX_RANK])
{
	const om_shape *in = &c->in[0].shape;
	om_shape out = {.rank = 0};

	for (int k = 0; k < in->rank; k++) {
		if (flag[k] && in->dim[k] >= 0 && in->dim[k] != 1)
			return om_op_fail(c->session, OM_SHAPE, c->op, "dim %d is %lld, expected 1", k,
				(long long)in->dim[k]);
		if (flag[k])
			continue;
		out.dim[out.rank] = in->dim[k];
		out.sym[out.rank++] = in->sym[k];
	}
	c->out[0].shape = out;
	return OM_OK;
}

static om_status
squeeze_infer(om_op_context *c)
{
	const om_shape *in = &c->in[0].shape;
	bool flag[OM_MAX_RANK] = {false}, known;
	int64_t n;

	c->out[0].type = c->in[0].type;
	OM_TRY(axes_of(c, in->rank, flag, &n, &known));
	if (in->rank < 0)
		return OM_OK;
	if (!known) {
		if (n >= 0)
			c->out[0].shape = om_shape_open(in->rank - n);
		return OM_OK;
	}
	for (int k = 0; n < 0 && k < in->rank; k++) {
		if (in->dim[k] < 0)
			return OM_OK;
		flag[k] = in->dim[k] == 1;
	}
	return squeeze_named(c, flag);
}

static om_status
unsqueeze_infer(om_op_context *c)
{
	const om_shape *in = &c->in[0].shape;
	om_shape *out = &c->out[0].shape;
	bool flag[OM_MAX_RANK] = {false}, known;
	int64_t n;

	c->out[0].type = c->in[0].type;
	OM_TRY(axes_of(c, OM_RANK_UNKNOWN, flag, &n, &known));
	if (in->rank < 0 || n < 0)
		return OM_OK;
	if (n > OM_MAX_RANK - in->rank)
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "the output has %lld dims, too many",
			(long long)n + in->rank);
	*out = om_shape_open(in->rank + n);
	if (!known)
		return OM_OK;
	OM_TRY(axes_of(c, out->rank, flag, &n, &known));
	for (int k = 0, from = 0; k < out->rank; k++) {
		out->dim[k] = flag[k] ? 1 : in->dim[from];
		out->sym[k] = flag[k] ? NULL : in->sym[from];
		from += !flag[k];
	}
	return OM_OK;
}

/* ---- Identity. ---- */

static om_status
identity_infer(om_op_context *c)
{
	if (c->out_type && c->op->in[0]->type.kind != OM_TENSOR)
		c->out_type[0] = c->op->in[0]->type;
	return om_infer_same(c);
}

static om_status
identity_cpu(om_op_context *c)
{
	if (c->op->in[0]->type.kind == OM_TENSOR)
		return om_cpu_whole(c);
	c->out[0].data = c->in[0].data;
	return OM_OK;
}

/* ---- The table. ---- */

static const om_attr_spec reshape1_attrs[] = {
	{.name = "shape", .kind = OM_ATTR_INTS},
	{.name = "consumed_inputs", .kind = OM_ATTR_INTS},
	{0}
};

static const om_attr_spec reshape14_attrs[] = {
	{.name = "allowzero", .kind = OM_ATTR_INT},
	{0}
};

static const om_attr_spec flatten_attrs[] = {
	{.name = "axis", .kind = OM_ATTR_INT, .i = 1},
	{0}
};

static const om_attr_spec axes_attrs[] = {
	{.name = "axes", .kind = OM_ATTR_INTS},
	{0}
};

static const om_attr_spec needed_axes_attrs[] = {
	{.name = "axes", .kind = OM_ATTR_INTS, .required = true},
	{0}
};

#define NAMED .domain = "", .min_out = 1, .max_out = 1, .view = om_view_whole, .propagate_data = om_elems_moved
#define WHOLE NAMED, .flags = OM_MONOTONE

const om_opdef om_ops_reshape[] = {
	{WHOLE, .name = "Reshape", .brief = "input in another shape",
	 .since = 1, .until = 4, .min_in = 1, .max_in = 1, .attrs = reshape1_attrs,
	 .infer = reshape_infer, .slice = om_slice_reshape, .cpu = reshape_cpu,
	 .input_types = {OF_ANY}},
	{WHOLE, .name = "Reshape", .brief = "input in another shape",
	 .since = 5, .until = 13, .min_in = 2, .max_in = 2,
	 .infer = reshape_infer, .slice = om_slice_reshape, .cpu = reshape_cpu,
	 .input_types = {OF_ANY, OF(INT64)}},
	{WHOLE, .name = "Reshape", .brief = "input in another shape",
	 .since = 14, .min_in = 2, .max_in = 2, .attrs = reshape14_attrs,
	 .infer = reshape_infer, .slice = om_slice_reshape, .cpu = reshape_cpu,
	 .input_types = {OF_ANY, OF(INT64)}},
	{WHOLE, .name = "Flatten", .brief = "input flattened to a matrix at an axis",
	 .since = 1, .min_in = 1, .max_in = 1, .attrs = flatten_attrs,
	 .infer = flatten_infer, .slice = om_slice_flatten, .cpu = om_cpu_whole,
	 .input_types = {OF_ANY}},
	{WHOLE, .name = "Squeeze", .brief = "removes dims of size 1",
	 .since = 1, .until = 12, .min_in = 1, .max_in = 1, .attrs = axes_attrs,
	 .infer = squeeze_infer, .slice = om_slice_squeeze, .cpu = om_cpu_whole,
	 .input_types = {OF_ANY}},
	{WHOLE, .name = "Squeeze", .brief = "removes dims of size 1",
	 .since = 13, .min_in = 1, .max_in = 2,
	 .infer = squeeze_infer, .slice = om_slice_squeeze, .cpu = om_cpu_whole,
	 .input_types = {OF_ANY, OF(INT64)}},
	{WHOLE, .name = "Unsqueeze", .brief = "inserts dims of size 1",
	 .since = 1, .until = 12, .min_in = 1, .max_in = 1, .attrs = needed_axes_attrs,
	 .infer = unsqueeze_infer, .slice = om_slice_flatten, .cpu = om_cpu_whole,
	 .input_types = {OF_ANY}},
	{WHOLE, .name = "Unsqueeze", .brief = "inserts dims of size 1",
	 .since = 13, .min_in = 2, .max_in = 2,
	 .infer = unsqueeze_infer, .slice = om_slice_flatten, .cpu = om_cpu_whole,
	 .input_types = {OF_ANY, OF(INT64)}},
	{NAMED, .name = "Identity", .brief = "identity",
	 .since = 1, .min_in = 1, .max_in = 1,
	 .flags = OM_NON_TENSOR | OM_MONOTONE, .infer = identity_infer, .slice = om_slice_first, .cpu = identity_cpu},
	{0}
};

const om_kernel om_kernels_reshape[] = {
	{.name = "Reshape", .state_bytes = sizeof(uint64_t), .prepare = reshape_prepare, .run = reshape_cpu},
	{0}
};
