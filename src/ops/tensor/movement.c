/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that permute, join, split and repeat. */
#include <config.h>

#include "base/strided_copy.h"
#include "opdef/columns.h"
#include "base/shape.h"
#include "ir/query.h"
#include "ops/family.h"
#include "ops/slices.h"
#include "opdef/kernel_call.h"
#include "opdef/op_context.h"
#include "ops/tensor/transpose.h"

/* ---- Transpose. ---- */

/* Output axis k is input axis perm[k], which the standard counts from the start alone; the default reverses the axes. */
static om_status
perm_of(const om_op_context *c, int rank, int perm[OM_MAX_RANK])
{
	size_t n;
	const int64_t *p = om_attr_ints(c->op, "perm", &n);
	bool seen[OM_MAX_RANK] = {false};

	for (int k = 0; k < rank; k++)
		perm[k] = rank - 1 - k;
	if (!om_attr_has(c->op, "perm"))
		return OM_OK;
	if (n != (size_t)rank)
		return om_op_fail(c->session, OM_SHAPE, c->op,
			"perm has %zu elements, but the input has rank %d", n, rank);
	for (int k = 0; k < rank; k++) {
		if (p[k] < 0 || p[k] >= rank || seen[p[k]])
			return om_op_fail(c->session, OM_SHAPE, c->op, "perm is not a permutation of the axes");
		perm[k] = (int)p[k];
		seen[perm[k]] = true;
	}
	return OM_OK;
}

static om_status
transpose_infer(om_op_context *c)
{
	const om_shape *in = &c->in[0].shape;
	om_shape *out = &c->out[0].shape;
	int perm[OM_MAX_RANK];

	c->out[0].type = c->in[0].type;
	if (in->rank < 0)
		return OM_OK;
	OM_TRY(perm_of(c, in->rank, perm));
	out->rank = in->rank;
	for (int k = 0; k < in->rank; k++) {
		out->dim[k] = in->dim[perm[k]];
		out->sym[k] = in->sym[perm[k]];
	}
	return OM_OK;
}

/* Only axes of size 1 are moved. */
static bool
transpose_view(const om_op_context *c, uint32_t out, om_view_of *v)
{
	const om_shape *in = &c->in[0].shape;
	int perm[OM_MAX_RANK], last = -1;

	if (perm_of(c, in->rank, perm) != OM_OK)
		return false;
	for (int k = 0; k < in->rank; k++) {
		if (in->dim[perm[k]] == 1)
			continue;
		if (perm[k] < last)
			return false;
		last = perm[k];
	}
	return om_view_whole(c, out, v);
}

om_status
om_transpose_plan(const om_op_context *c, om_copy_plan *plan)
{
	const om_shape *in = &c->in[0].shape, *out = &c->out[0].shape;
	int64_t from[OM_MAX_RANK], to[OM_MAX_RANK];
	int perm[OM_MAX_RANK];
	om_copy p = {.rank = 0};

	OM_TRY(perm_of(c, in->rank, perm));
	om_strides(in, from);
	om_strides(out, to);
	for (int k = 0; k < out->rank; k++)
		om_copy_axis(&p, out->dim[k], to[k], from[perm[k]]);
	*plan = om_copy_prepare(&p, om_moved_bytes(c->in[0].type));
	return OM_OK;
}

static om_status
transpose_prepare(om_op_context *c, void **state)
{
	return om_transpose_plan(c, *state);
}

static om_status
transpose_bytes(om_op_context *c)
{
	bool done;

	OM_TRY(om_splat_through(c, &done));
	if (!done)
		om_copy_go(c->state, c->out[0].data, c->in[0].data);
	return OM_OK;
}

static om_status
transpose_cpu(om_op_context *c)
{
	return om_run_unpacked(c, transpose_bytes);
}

/* ---- Concat. ---- */

/* The symbol of a sum of dims; NULL: it is a number, or has none. */
static const char *
sum_text(const om_op_context *c, const om_shape *x, const om_shape *y, int axis)
{
	if (x->dim[axis] >= 0 && y->dim[axis] >= 0)
		return NULL;
	if (x->dim[axis] >= 0)
		return om_dim_text_number(c, y->sym[axis], '+', x->dim[axis]);
	if (y->dim[axis] >= 0)
		return om_dim_text_number(c, x->sym[axis], '+', y->dim[axis]);
	return om_dim_text(c, x->sym[axis], '+', y->sym[axis]);
}

static om_status
concat_join(const om_op_context *c, uint32_t k, int axis, om_shape *out)
{
	const om_shape *in = &c->in[k].shape;
	char a[256], b[256];

	for (int d = 0; d < out->rank; d++) {
		if (d == axis || om_dim_join(&out->dim[d], &out->sym[d], in->dim[d], in->sym[d]))
			continue;
		return om_op_fail(c->session, OM_SHAPE, c->op, "input %u is %s, expected %s", k,
			om_shape_text(in, a, sizeof a), om_shape_text(&c->in[0].shape, b, sizeof b));
	}
	out->sym[axis] = sum_text(c, out, in, axis);
	if (in->dim[axis] < 0 || out->dim[axis] < 0)
		out->dim[axis] = OM_DIM_UNKNOWN;
	else if (__builtin_add_overflow(out->dim[axis], in->dim[axis], &out->dim[axis]))
		return om_op_fail(c->session, OM_INVALID, c->op, "the sum of the dims overflows");
	return OM_OK;
}

static om_status
concat_infer(om_op_context *c)
{
	om_shape *out = &c->out[0].shape;
	bool open = false;
	int axis, rank = OM_RANK_UNKNOWN;

	for (uint32_t k = 0; k < c->op->nin; k++) {
		const om_tensor *in = &c->in[k];
		if (c->out[0].type == OM_UNDEFINED)
			c->out[0].type = in->type;
		else if (in->type != c->out[0].type && in->type != OM_UNDEFINED)
			return om_op_fail(c->session, OM_SHAPE, c->op, "cannot concatenate %s with %s",
				om_dtype_text(c->out[0].type), om_dtype_text(in->type));
		if (rank >= 0 && in->shape.rank >= 0 && in->shape.rank != rank)
			return om_op_fail(c->session, OM_SHAPE, c->op,
				"cannot concatenate tensors of rank %d and %d",
				rank, in->shape.rank);
		if (in->shape.rank >= 0)
			rank = in->shape.rank;
		else
			open = true;
	}
	if (rank < 0)
		return OM_OK;
	OM_TRY(om_attr_axis(c, "axis", rank, &axis));
	*out = open ? om_shape_open(rank) : c->in[0].shape;
	for (uint32_t k = open ? 0 : 1; k < c->op->nin; k++)
		if (c->in[k].shape.rank >= 0)
			OM_TRY(concat_join(c, k, axis, out));
	return OM_OK;
}

/* All other inputs are empty. */
static bool
concat_view(const om_op_context *c, uint32_t out, om_view_of *v)
{
	uint32_t full = 0, n = 0;

	for (uint32_t k = 0; k < c->op->nin; k++)
		if (om_has_in(c, k) && om_shape_count(&c->in[k].shape) > 0) {
			full = k;
			n++;
		}
	*v = (om_view_of){.in = full};
	return n == 1 && out == 0;
}

#define NO_OFFSET UINT64_MAX

/* The offset of each input, NO_OFFSET after one of unknown size. */
static const uint64_t *
concat_offsets(const om_op_context *c)
{
	uint64_t *at = c->memo ? *c->memo : NULL, bytes, sum = 0;

	if (at)
		return at;
	at = OM_NEWN(c->mem, uint64_t, c->op->nin);
	for (uint32_t k = 0; k < c->op->nin; k++) {
		at[k] = sum;
		if (sum == NO_OFFSET || !om_tensor_bytes(c->in[k].type, &c->in[k].shape, &bytes))
			sum = NO_OFFSET;
		else
			sum += bytes;
	}
	if (c->memo)
		*c->memo = at;
	return at;
}

/* Along the outermost axis larger than 1, the inputs are stored one after another. */
static bool
concat_into(const om_op_context *c, uint32_t in, uint64_t *offset)
{
	const om_shape *out = &c->out[0].shape;
	const unsigned bits = om_dtype_bits(c->out[0].type);
	int axis;

	if (bits < 8 || !om_axis(om_attr_int(c->op, "axis"), out->rank, &axis)
	    || om_shape_span(out, 0, axis) != 1)
		return false;
	*offset = concat_offsets(c)[in];
	return *offset != NO_OFFSET && c->in[in].type == c->out[0].type;
}

/* In the fold: every element is the same. */
static bool
concat_splats(om_op_context *c, size_t size)
{
	for (uint32_t k = 0; k < c->op->nin; k++)
		if (!c->in[k].splat || memcmp(c->in[k].data, c->in[0].data, size) != 0)
			return false;
	memcpy(c->out[0].data, c->in[0].data, size);
	return true;
}

/* An input and its position in the output. */
struct joined {
	om_copy_plan plan;
	size_t at;                /* byte offset in the output */
};

static om_status
concat_prepare(om_op_context *c, void **state)
{
	const om_shape *out = &c->out[0].shape;
	struct joined *j = *state = OM_NEWN(c->mem, struct joined, c->op->nin);
	int64_t to[OM_MAX_RANK];
	size_t size, at = 0;
	int axis;

	OM_TRY(om_elem_bytes(c, c->out[0].type, &size));
	OM_TRY(om_attr_axis(c, "axis", out->rank, &axis));
	om_strides(out, to);
	for (uint32_t k = 0; k < c->op->nin; k++) {
		const om_tensor *in = &c->in[k];
		const int64_t outer = om_shape_span(&in->shape, 0, axis);
		const int64_t line = om_shape_span(&in->shape, axis, in->shape.rank);
		om_copy p = {.rank = 0};
		om_copy_axis(&p, outer, to[axis] * out->dim[axis], in->splat ? 0 : line);
		om_copy_axis(&p, line, 1, !in->splat);
		j[k] = (struct joined){om_copy_prepare(&p, size), at};
		at += (size_t)(to[axis] * in->shape.dim[axis]) * size;
	}
	return OM_OK;
}

static om_status
concat_cpu(om_op_context *c)
{
	const struct joined *j = c->state;

	if (c->out[0].splat && concat_splats(c, j[0].plan.size))
		return OM_OK;
	OM_TRY(om_dense_out(c, 0));
	for (uint32_t k = 0; k < c->op->nin; k++) {
		char *to = (char *)c->out[0].data + j[k].at;
		if (to != c->in[k].data)
			om_copy_go(&j[k].plan, to, c->in[k].data);
	}
	return OM_OK;
}

/* ---- Split. ---- */

struct split_attrs {
	om_ints split;
	int64_t num_outputs;
	bool has_num_outputs;
};

static const om_attr_field split_fields[] = {
	OM_FIELD(struct split_attrs, INTS, split),
	OM_FIELD(struct split_attrs, INT, num_outputs),
	OM_FIELD_HAS(struct split_attrs, has_num_outputs, "num_outputs"),
	{0}
};

static om_status
split_even(const om_op_context *c, const struct split_attrs *attrs, int64_t dim, int64_t *size)
{
	const int64_t n = c->op->nout, each = dim / n + (dim % n != 0);

	if (attrs->has_num_outputs && attrs->num_outputs != n)
		return om_op_fail(c->session, OM_INVALID, c->op, "num_outputs is %lld, but there are %lld outputs",
			(long long)attrs->num_outputs, (long long)n);
	if (dim % n && (!attrs->has_num_outputs || each * (n - 1) > dim))
		return om_op_fail(c->session, OM_SHAPE, c->op, "cannot split %lld elements into %lld outputs",
			(long long)dim, (long long)n);
	for (int64_t k = 0; k < n; k++)
		size[k] = k < n - 1 ? each : dim - each * (n - 1);
	return OM_OK;
}

static void
split_unknown(const om_op_context *c, int64_t *size)
{
	for (uint32_t k = 0; k < c->op->nout; k++)
		size[k] = OM_DIM_UNKNOWN;
}

/* The size of each of the nout parts; OM_DIM_UNKNOWN if it is not known. */
static om_status
split_sizes(const om_op_context *c, const struct split_attrs *attrs, int axis, int64_t *size)
{
	const uint32_t nout = c->op->nout;
	const int64_t dim = c->in[0].shape.dim[axis];
	const om_tensor *in = om_has_in(c, 1) ? &c->in[1] : NULL;
	int64_t sum = 0;

	split_unknown(c, size);
	if (in ? !in->data || (in->type != OM_INT64 && in->type != OM_INT32) : !attrs->split.v)
		return in || dim < 0 ? OM_OK : split_even(c, attrs, dim, size);
	const size_t n = in ? (size_t)om_shape_count(&in->shape) : attrs->split.n;
	if (n != nout)
		return om_op_fail(c->session, OM_SHAPE, c->op, "split has %zu elements for %u outputs", n, nout);
	for (size_t k = 0; k < n; k++) {
		size[k] = in ? om_int_at(in, (int64_t)k) : attrs->split.v[k];
		if (size[k] < 0 || __builtin_add_overflow(sum, size[k], &sum))
			return om_op_fail(c->session, OM_SHAPE, c->op, "split has a negative element");
	}
	if (dim >= 0 && sum != dim)
		return om_op_fail(c->session, OM_SHAPE, c->op, "split sums to %lld, expected %lld",
			(long long)sum, (long long)dim);
	return OM_OK;
}

static om_status
split_infer(om_op_context *c)
{
	const om_shape *in = &c->in[0].shape;
	int64_t *size = OM_NEWN(c->mem, int64_t, c->op->nout);
	struct split_attrs attrs;
	int axis;

	for (uint32_t k = 0; k < c->op->nout; k++)
		c->out[k].type = c->in[0].type;
	if (in->rank < 0)
		return OM_OK;
	om_attr_fields(c->op, split_fields, &attrs);
	OM_TRY(om_attr_axis(c, "axis", in->rank, &axis));
	OM_TRY(split_sizes(c, &attrs, axis, size));
	for (uint32_t k = 0; k < c->op->nout; k++) {
		c->out[k].shape = *in;
		if (c->op->nout == 1)
			continue;
		c->out[k].shape.dim[axis] = size[k];
		c->out[k].shape.sym[axis] = NULL;
	}
	return OM_OK;
}

/* The offset of each part, -1 where it is not known; the shapes of the outputs may have sizes that
 * are not known here. */
static const int64_t *
split_starts(const om_op_context *c, int axis)
{
	int64_t *at = c->memo ? *c->memo : NULL, sum = 0;
	struct split_attrs attrs;

	if (at)
		return at;
	at = OM_NEWN(c->mem, int64_t, c->op->nout);
	om_attr_fields(c->op, split_fields, &attrs);
	if (split_sizes(c, &attrs, axis, at) != OM_OK)
		sum = -1;
	for (uint32_t k = 0; k < c->op->nout; k++) {
		const om_shape *part = &c->out[k].shape;
		const int64_t n = at[k] >= 0 ? at[k] : part->rank > axis ? part->dim[axis] : -1;
		at[k] = sum;
		sum = sum < 0 || n < 0 ? -1 : sum + n;
	}
	if (c->memo)
		*c->memo = at;
	return at;
}

static bool
split_view(const om_op_context *c, uint32_t out, om_view_of *v)
{
	const om_shape *in = &c->in[0].shape;
	const uint64_t bits = om_dtype_bits(c->in[0].type);
	int axis;

	if (!om_axis(om_attr_int(c->op, "axis"), in->rank, &axis) || bits < 8
	    || om_shape_span(in, 0, axis) != 1 || om_shape_count(&c->out[out].shape) == 0)
		return false;
	const int64_t start = split_starts(c, axis)[out];
	if (start < 0)
		return false;
	*v = (om_view_of){.in = 0, .offset = (uint64_t)(start * om_shape_span(in, axis + 1, in->rank)) * (bits / 8)};
	return true;
}

struct split {
	struct split_attrs attrs; /* first: split_fields */
	int axis;
	bool is_ready;            /* the sizes were known during preparation */
	int64_t *sizes;           /* [nout] */
	struct joined *part;      /* [nout], one copy per part */
};

/* The sizes are known. */
static om_status
split_parts(const om_op_context *c, const struct split *s)
{
	const om_tensor *in = &c->in[0];
	const int axis = s->axis;
	int64_t from[OM_MAX_RANK];
	size_t size, at = 0;

	OM_TRY(om_elem_bytes(c, in->type, &size));
	OM_TRY(split_sizes(c, &s->attrs, axis, s->sizes));
	om_strides(&in->shape, from);
	for (uint32_t k = 0; k < c->op->nout; k++) {
		const int64_t line = from[axis] * s->sizes[k];
		om_copy p = {.rank = 0};
		om_copy_axis(&p, om_shape_span(&in->shape, 0, axis), line, from[axis] * in->shape.dim[axis]);
		om_copy_axis(&p, line, 1, 1);
		s->part[k] = (struct joined){om_copy_prepare(&p, size), at};
		at += (size_t)line * size;
	}
	return OM_OK;
}

static om_status
split_prepare(om_op_context *c, void **state)
{
	struct split *s = *state;

	OM_TRY(om_attr_axis(c, "axis", c->in[0].shape.rank, &s->axis));
	s->sizes = OM_NEWN(c->mem, int64_t, c->op->nout);
	s->part = OM_NEWN(c->mem, struct joined, c->op->nout);
	s->is_ready = !om_is_steered(c);
	return s->is_ready ? split_parts(c, s) : OM_OK;
}

static om_status
split_cpu(om_op_context *c)
{
	const struct split *s = c->state;

	if (!s->is_ready)
		OM_TRY(split_parts(c, s));
	for (uint32_t k = 0; k < c->op->nout; k++)
		if (om_has_out(c, k))
			om_copy_go(&s->part[k].plan, c->out[k].data, (const char *)c->in[0].data + s->part[k].at);
	return OM_OK;
}

/* ---- Expand, Tile. ---- */

static om_status
expand_infer(om_op_context *c)
{
	const om_shape *in = &c->in[0].shape;
	om_shape want = om_shape_open(om_list_length(&c->in[1]));
	om_symbolic_elem dims[OM_MAX_RANK];
	size_t n;
	char a[256], b[256];

	c->out[0].type = c->in[0].type;
	if (om_in_few_elems(c, 1, dims, &n)) {
		if (n > OM_MAX_RANK)
			return om_op_fail(c->session, OM_UNSUPPORTED, c->op,
				"the requested shape has %zu dims, too many", n);
		want = om_shape_open((int64_t)n);
		for (size_t k = 0; k < n; k++)
			if (!om_dim_of_elem(&dims[k], &want, (int)k) && dims[k].known)
				return om_op_fail(c->session, OM_SHAPE, c->op,
					"the requested shape has a negative dim");
	}
	if (!om_broadcast(in, &want, &c->out[0].shape))
		return om_op_fail(c->session, OM_SHAPE, c->op, "cannot broadcast %s to %s",
			om_shape_text(in, a, sizeof a), om_shape_text(&want, b, sizeof b));
	return OM_OK;
}

static bool
same_count_view(const om_op_context *c, uint32_t out, om_view_of *v)
{
	const int64_t n = om_shape_count(&c->in[0].shape);
	return n > 0 && n == om_shape_count(&c->out[0].shape) && om_view_whole(c, out, v);
}

/* The state of Expand and Tile. */
struct repeated {
	om_copy_plan plan;
};

static om_status
expand_prepare(om_op_context *c, void **state)
{
	const om_shape *in = &c->in[0].shape, *out = &c->out[0].shape;
	const int shift = out->rank - in->rank;
	int64_t from[OM_MAX_RANK], to[OM_MAX_RANK];
	struct repeated *s = *state;
	om_copy p = {.rank = 0};
	size_t size;

	OM_TRY(om_elem_bytes(c, c->in[0].type, &size));
	om_strides(in, from);
	om_strides(out, to);
	for (int k = 0; k < out->rank; k++)
		om_copy_axis(&p, out->dim[k], to[k],
			k >= shift && in->dim[k - shift] != 1 ? from[k - shift] : 0);
	s->plan = om_copy_prepare(&p, size);
	return OM_OK;
}

static om_status
expand_cpu(om_op_context *c)
{
	const struct repeated *s = c->state;
	bool done;

	OM_TRY(om_splat_through(c, &done));
	if (!done)
		om_copy_go(&s->plan, c->out[0].data, c->in[0].data);
	return OM_OK;
}

/* The repeats of each axis: a list; in version 1 one number and its axis. */
static om_status
tile_repeats(const om_op_context *c, int64_t *rep, bool *known)
{
	const int rank = c->in[0].shape.rank;
	int64_t v[OM_MAX_RANK], axis[OM_MAX_RANK];
	size_t n, one;

	for (int k = 0; k < rank; k++)
		rep[k] = 1;
	*known = om_in_few(c, 1, v, &n);
	if (c->op->nin == 3) {
		int a;
		*known = *known && om_in_few(c, 2, axis, &one);
		if (!*known)
			return OM_OK;
		if (n != 1 || one != 1 || !om_axis(*axis, rank, &a))
			return om_op_fail(c->session, OM_SHAPE, c->op, "axis and tiles must be scalars");
		rep[a] = *v;
	} else if (*known) {
		if (n != (size_t)rank)
			return om_op_fail(c->session, OM_SHAPE, c->op,
				"repeats has %zu elements for rank %d", n, rank);
		memcpy(rep, v, n * sizeof *rep);
	}
	return OM_OK;
}

/* Dims that follow from repeats of which some are symbols. */
static void
tile_symbols(const om_op_context *c, om_shape *out)
{
	const om_shape *in = &c->in[0].shape;
	om_symbolic_elem rep[OM_MAX_RANK];
	size_t n;

	if (c->op->nin != 2 || !om_in_few_elems(c, 1, rep, &n) || n != (size_t)in->rank)
		return;
	for (int k = 0; k < in->rank; k++) {
		om_shape of = om_shape_open(1);
		if (rep[k].known && rep[k].value == 1) {
			out->dim[k] = in->dim[k];
			out->sym[k] = in->sym[k];
		} else if (!rep[k].known && om_dim_of_elem(&rep[k], &of, 0)) {
			out->sym[k] = in->dim[k] >= 1 ? om_dim_text_number(c, of.sym[0], '*', in->dim[k])
				: in->dim[k] < 0 ? om_dim_text(c, in->sym[k], '*', of.sym[0]) : NULL;
		}
	}
}

static om_status
tile_infer(om_op_context *c)
{
	const om_shape *in = &c->in[0].shape;
	om_shape *out = &c->out[0].shape;
	int64_t rep[OM_MAX_RANK];
	bool known;

	c->out[0].type = c->in[0].type;
	if (in->rank < 0) {
		*out = om_shape_open(c->op->nin == 2 ? om_list_length(&c->in[1]) : -1);
		return OM_OK;
	}
	*out = om_shape_open(in->rank);
	OM_TRY(tile_repeats(c, rep, &known));
	if (!known)
		tile_symbols(c, out);
	for (int k = 0; known && k < in->rank; k++) {
		if (rep[k] < 0)
			return om_op_fail(c->session, OM_SHAPE, c->op, "the repeat count of axis %d is %lld", k,
				(long long)rep[k]);
		if (rep[k] == 1) {
			out->dim[k] = in->dim[k];
			out->sym[k] = in->sym[k];
		} else if (in->dim[k] >= 0 && __builtin_mul_overflow(in->dim[k], rep[k], &out->dim[k])) {
			return om_op_fail(c->session, OM_INVALID, c->op, "dim %d overflows", k);
		}
	}
	return OM_OK;
}

/* The repeats of an axis are the ratio of its output and input dims. */
static om_status
tile_prepare(om_op_context *c, void **state)
{
	const om_shape *in = &c->in[0].shape, *out = &c->out[0].shape;
	int64_t from[OM_MAX_RANK], to[OM_MAX_RANK];
	struct repeated *s = *state;
	om_copy p = {.rank = 0};
	size_t size;

	OM_TRY(om_elem_bytes(c, c->in[0].type, &size));
	om_strides(in, from);
	om_strides(out, to);
	for (int k = 0; k < out->rank; k++) {
		om_copy_axis(&p, in->dim[k] ? out->dim[k] / in->dim[k] : 0, to[k] * in->dim[k], 0);
		om_copy_axis(&p, in->dim[k], to[k], from[k]);
	}
	s->plan = om_copy_prepare(&p, size);
	return OM_OK;
}

/* ---- The table. ---- */

static const om_attr_spec transpose_attrs[] = {
	{.name = "perm", .kind = OM_ATTR_INTS},
	{0}
};

static const om_attr_spec concat1_attrs[] = {
	{.name = "axis", .kind = OM_ATTR_INT, .i = 1},
	{0}
};

static const om_attr_spec concat4_attrs[] = {
	{.name = "axis", .kind = OM_ATTR_INT, .required = true},
	{0}
};

static const om_attr_spec split1_attrs[] = {
	{.name = "axis", .kind = OM_ATTR_INT},
	{.name = "split", .kind = OM_ATTR_INTS},
	{0}
};

static const om_attr_spec split13_attrs[] = {
	{.name = "axis", .kind = OM_ATTR_INT},
	{0}
};

static const om_attr_spec split18_attrs[] = {
	{.name = "axis", .kind = OM_ATTR_INT},
	{.name = "num_outputs", .kind = OM_ATTR_INT},
	{0}
};

#define ONE .domain = "", .min_out = 1, .max_out = 1
#define CONCAT .name = "Concat", .brief = "concatenation along an axis", \
	.min_in = 1, .max_in = OM_VARIADIC, .flags = OM_SPLATS | OM_MONOTONE, \
	.infer = concat_infer, .slice = om_slice_concat, .propagate_data = om_elems_moved, .view = concat_view, .subbuffer = concat_into, .cpu = concat_cpu
#define SPLIT .domain = "", .name = "Split", .brief = "split along an axis", \
	.min_out = 1, .max_out = OM_VARIADIC, \
	.infer = split_infer, .max_shape = om_most_first, .slice = om_slice_split, .view = split_view, .cpu = split_cpu
#define TILE .name = "Tile", .brief = "input repeated along its axes", .flags = OM_SPLATS, \
	.infer = tile_infer, .slice = om_slice_tile, .view = same_count_view, .cpu = expand_cpu

const om_opdef om_ops_movement[] = {
	{ONE, .name = "Transpose", .brief = "permutation of the axes", .since = 1,
	 .min_in = 1, .max_in = 1, .flags = OM_SPLATS | OM_MONOTONE, .attrs = transpose_attrs,
	 .infer = transpose_infer, .slice = om_slice_transpose, .view = transpose_view, .cpu = transpose_cpu,
	 .input_types = {OF_ANY}},
	{ONE, CONCAT, .since = 1, .until = 3, .attrs = concat1_attrs,
	 .input_types = {OF_COMMON | OF_FLOAT8S | OF(FLOAT8E8M0)}},
	{ONE, CONCAT, .since = 4, .attrs = concat4_attrs,
	 .input_types = {OF_COMMON | OF_FLOAT8S | OF(FLOAT8E8M0)}},
	{SPLIT, .since = 1, .until = 1, .min_in = 1, .max_in = 2, .attrs = split1_attrs,
	 .input_types = {OF_COMMON, OF(INT64)}},
	{SPLIT, .since = 2, .until = 12, .min_in = 1, .max_in = 1, .attrs = split1_attrs,
	 .input_types = {OF_COMMON}},
	{SPLIT, .since = 13, .until = 17, .min_in = 1, .max_in = 2, .attrs = split13_attrs,
	 .input_types = {OF_COMMON, OF(INT64)}},
	{SPLIT, .since = 18, .min_in = 1, .max_in = 2, .attrs = split18_attrs,
	 .input_types = {OF_COMMON, OF(INT64)}},
	{ONE, .name = "Expand", .brief = "input broadcast to a shape",
	 .since = 8, .min_in = 2, .max_in = 2, .flags = OM_SPLATS,
	 .infer = expand_infer, .slice = om_slice_expand, .view = same_count_view, .cpu = expand_cpu,
	 .input_types = {OF_COMMON, OF(INT64)}},
	{ONE, TILE, .since = 1, .until = 5, .min_in = 3, .max_in = 3,
	 .input_types = {OF_COMMON, OF(INT64), OF(INT64)}},
	{ONE, TILE, .since = 6, .min_in = 2, .max_in = 2,
	 .input_types = {OF_COMMON, OF(INT64)}},
	{0}
};

const om_kernel om_kernels_movement[] = {
	{.name = "Transpose", .state_bytes = sizeof(om_copy_plan), .prepare = transpose_prepare, .run = transpose_cpu},
	{.name = "Concat", .prepare = concat_prepare, .run = concat_cpu},
	{.name = "Split", .fields = split_fields, .state_bytes = sizeof(struct split), .prepare = split_prepare, .run = split_cpu},
	{.name = "Expand", .state_bytes = sizeof(struct repeated), .prepare = expand_prepare, .run = expand_cpu},
	{.name = "Tile", .state_bytes = sizeof(struct repeated), .prepare = tile_prepare, .run = expand_cpu},
	{0}
};
