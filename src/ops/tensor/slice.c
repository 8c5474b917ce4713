/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that select elements of a tensor: Slice, Compress. */
#include <config.h>

#include "base/strided_copy.h"
#include "opdef/columns.h"
#include "base/shape.h"
#include "ir/query.h"
#include "ops/family.h"
#include "opdef/slice.h"
#include "opdef/kernel_call.h"
#include "opdef/op_context.h"

/* ---- Slice. ---- */

/* The elements selected along each axis, if they are known. */
struct cut {
	bool known[OM_MAX_RANK], whole[OM_MAX_RANK];
	int64_t start[OM_MAX_RANK], step[OM_MAX_RANK], n[OM_MAX_RANK];
};

/* One list: its first elements. */
struct list {
	bool known;
	size_t n;
	int64_t v[OM_MAX_RANK];
};

struct lists {
	struct list start, end, axis, step;
	int64_t n;           /* number of sliced axes; -1: not known */
	bool axes_known;
};

static void
attr_list(const om_op_context *c, const char *name, struct list *l)
{
	const int64_t *a = om_attr_ints(c->op, name, &l->n);

	l->known = a != NULL;
	for (size_t k = 0; k < l->n && k < OM_MAX_RANK; k++)
		l->v[k] = a[k];
}

static void
in_list(const om_op_context *c, uint32_t k, struct list *l)
{
	l->known = om_has_in(c, k) && om_in_few(c, k, l->v, &l->n);
}

static om_status
same_length(const om_op_context *c, const struct list *list, struct lists *l)
{
	const size_t n = list->n;

	if (!list->known)
		return OM_OK;
	if (l->n >= 0 && (size_t)l->n != n)
		return om_op_fail(c->session, OM_SHAPE, c->op,
			"starts, ends, axes and steps differ in length: %lld and %zu",
			(long long)l->n, n);
	l->n = (int64_t)n;
	return OM_OK;
}

static om_status
slice_lists(const om_op_context *c, struct lists *l)
{
	const bool attrs = c->op->nin == 1;

	*l = (struct lists){.n = -1};
	if (attrs) {
		attr_list(c, "starts", &l->start);
		attr_list(c, "ends", &l->end);
		attr_list(c, "axes", &l->axis);
		if (!l->start.known || !l->end.known)
			return om_op_fail(c->session, OM_INVALID, c->op, "requires starts and ends");
		l->axes_known = l->axis.known || !om_attr_has(c->op, "axes");
	} else {
		in_list(c, 1, &l->start);
		in_list(c, 2, &l->end);
		in_list(c, 3, &l->axis);
		in_list(c, 4, &l->step);
		l->axes_known = !om_has_in(c, 3) || l->axis.known;
	}
	OM_TRY(same_length(c, &l->start, l));
	OM_TRY(same_length(c, &l->end, l));
	OM_TRY(same_length(c, &l->axis, l));
	OM_TRY(same_length(c, &l->step, l));
	if (l->n < 0 && !attrs)
		l->n = om_list_length(&c->in[1]);
	return OM_OK;
}

static int64_t
clamp(int64_t v, int64_t low, int64_t high)
{
	return v < low ? low : v > high ? high : v;
}

/* The largest integers mean the end in the direction of the step. */
static bool
is_open_end(int64_t end)
{
	return end == INT32_MAX || end == INT64_MAX;
}

/* One axis of `dim` elements; ends are exclusive and clamped to the axis. */
static void
cut_axis(struct cut *cut, int a, int64_t dim, int64_t start, int64_t end, int64_t step)
{
	const bool back = step < 0;
	const int64_t low = back ? -1 : 0, high = back ? dim - 1 : dim;

	start = clamp(start < 0 ? start + dim : start, 0, high);
	end = back && is_open_end(end) ? low : clamp(end < 0 ? end + dim : end, low, high);
	if (dim == 0)
		start = end = 0;
	/* Negated as unsigned: -step may not be representable. */
	const uint64_t stride = back ? -(uint64_t)step : (uint64_t)step;
	const int64_t span = back ? start - end : end - start;
	cut->known[a] = true;
	cut->start[a] = start;
	cut->step[a] = step;
	cut->n[a] = span > 0 ? (int64_t)((uint64_t)(span - 1) / stride) + 1 : 0;
}

/* The whole axis, whatever its dim: 0 to the largest integer. */
static bool
is_whole(int64_t start, int64_t end, int64_t step)
{
	return (step == 1 && start == 0 && end >= INT32_MAX)
	    || (step == -1 && (start == -1 || start >= INT32_MAX)
		&& (end <= -INT32_MAX || is_open_end(end)));
}

/* The last elements of an axis, as many as it has: from the negative of its symbol on, to the largest integer. */
static bool
is_from_first(const om_symbolic_elem *start, const om_symbolic_elem *end, const char *symbol)
{
	const bool wraps = strpbrk(symbol, "+-") != NULL;
	const size_t n = strlen(symbol);

	return !start->known && start->sym && strncmp(start->sym, "0-", 2) == 0 && end->known && is_open_end(end->value)
	    && strlen(start->sym) == n + (wraps ? 4 : 2) && strncmp(start->sym + (wraps ? 3 : 2), symbol, n) == 0;
}

/* The whole axis, as its end, or its start from behind, is a dim that is the same symbol: the `k`-th numbers of the lists, which inference knows in part. */
static bool
is_whole_symbol(const om_op_context *c, int64_t k, const char *symbol, int64_t step)
{
	const om_symbolic_elem *start, *end;
	size_t n[2];

	return symbol && step == 1 && c->op->nin > 2 && om_in_symbolic_elems(c, 1, &start, &n[0]) && om_in_symbolic_elems(c, 2, &end, &n[1])
	    && (size_t)k < n[0] && (size_t)k < n[1]
	    && ((start[k].known && start[k].value == 0 && !end[k].known && end[k].sym && strcmp(end[k].sym, symbol) == 0)
		|| is_from_first(&start[k], &end[k], symbol));
}

static om_status
slice_cut(const om_op_context *c, struct cut *cut)
{
	const om_shape *in = &c->in[0].shape;
	struct lists l;
	bool seen[OM_MAX_RANK] = {false};

	*cut = (struct cut){.known = {false}};
	OM_TRY(slice_lists(c, &l));
	for (int a = 0; a < in->rank; a++) {
		cut->whole[a] = l.axes_known && l.n >= 0;
		cut->step[a] = 1;
		cut->n[a] = in->dim[a];
		cut->known[a] = cut->whole[a] && in->dim[a] >= 0;
	}
	for (int64_t k = 0; k < l.n && l.axes_known; k++) {
		if (k >= in->rank)
			return om_op_fail(c->session, OM_SHAPE, c->op,
				"%lld axes are sliced, but the input has rank %d",
				(long long)l.n, in->rank);
		const int64_t step = l.step.known ? l.step.v[k] : 1;
		int a;
		if (!om_axis(l.axis.known ? l.axis.v[k] : k, in->rank, &a))
			return om_op_fail(c->session, OM_SHAPE, c->op, "axis %lld is out of range for rank %d",
				(long long)(l.axis.known ? l.axis.v[k] : k), in->rank);
		if (seen[a])
			return om_op_fail(c->session, OM_SHAPE, c->op, "axis %d is given twice", a);
		seen[a] = true;
		if (step == 0)
			return om_op_fail(c->session, OM_SHAPE, c->op, "the step of axis %d is 0", a);
		cut->known[a] = cut->whole[a] = false;
		if (om_has_in(c, 4) && !l.step.known)
			continue;
		cut->whole[a] = in->dim[a] < 0 && is_whole_symbol(c, k, in->sym[a], step);
		if (!l.start.known || !l.end.known)
			continue;
		cut->whole[a] = is_whole(l.start.v[k], l.end.v[k], step);
		cut->step[a] = step;
		if (in->dim[a] >= 0)
			cut_axis(cut, a, in->dim[a], l.start.v[k], l.end.v[k], step);
	}
	return OM_OK;
}

static om_status
slice_infer(om_op_context *c)
{
	const om_shape *in = &c->in[0].shape;
	om_shape *out = &c->out[0].shape;
	struct cut cut;

	c->out[0].type = c->in[0].type;
	if (in->rank < 0)
		return OM_OK;
	OM_TRY(slice_cut(c, &cut));
	*out = om_shape_open(in->rank);
	for (int a = 0; a < in->rank; a++) {
		if (cut.whole[a]) {
			out->dim[a] = in->dim[a];
			out->sym[a] = in->sym[a];
		} else if (cut.known[a]) {
			out->dim[a] = cut.n[a];
		}
	}
	return OM_OK;
}

/* The selected elements are contiguous: every axis after the first one that keeps more than one
 * element is kept in full. */
static bool
slice_view(const om_op_context *c, uint32_t out, om_view_of *v)
{
	const om_shape *in = &c->in[0].shape;
	const uint64_t bits = om_dtype_bits(c->in[0].type);
	int64_t stride[OM_MAX_RANK], at = 0;
	bool rows = false;
	struct cut cut;

	if (bits < 8 || om_shape_count(&c->out[0].shape) == 0 || slice_cut(c, &cut) != OM_OK)
		return false;
	om_strides(in, stride);
	for (int a = 0; a < in->rank; a++) {
		if (!cut.known[a] || (cut.n[a] > 1 && cut.step[a] != 1) || (rows && cut.n[a] != in->dim[a]))
			return false;
		rows |= cut.n[a] > 1;
		at += cut.start[a] * stride[a];
	}
	*v = (om_view_of){.in = 0, .offset = (uint64_t)at * (bits / 8)};
	return out == 0;
}

struct slice {
	bool is_ready;            /* the slice was known during preparation */
	om_copy_plan plan;
	int64_t at;               /* byte offset in the input */
};

static om_status
slice_plan(const om_op_context *c, struct slice *s)
{
	const om_shape *in = &c->in[0].shape, *out = &c->out[0].shape;
	int64_t from[OM_MAX_RANK], to[OM_MAX_RANK];
	om_copy p = {.rank = 0};
	struct cut cut;
	size_t size;

	OM_TRY(om_elem_bytes(c, c->in[0].type, &size));
	OM_TRY(slice_cut(c, &cut));
	om_strides(in, from);
	om_strides(out, to);
	s->at = 0;
	for (int a = 0; a < in->rank; a++) {
		/* A single element: its step, which may be huge, is never applied. */
		om_copy_axis(&p, out->dim[a], to[a], out->dim[a] > 1 ? from[a] * cut.step[a] : 0);
		s->at += cut.n[a] > 0 ? cut.start[a] * from[a] * (int64_t)size : 0;
	}
	s->plan = om_copy_prepare(&p, size);
	return OM_OK;
}

static om_status
slice_prepare(om_op_context *c, void **state)
{
	struct slice *s = *state;

	s->is_ready = !om_is_steered(c);
	return s->is_ready ? slice_plan(c, s) : OM_OK;
}

static om_status
slice_cpu(om_op_context *c)
{
	struct slice *s = c->state;
	bool done;

	if (!s->is_ready)
		OM_TRY(slice_plan(c, s));
	OM_TRY(om_splat_through(c, &done));
	if (!done)
		om_copy_go(&s->plan, c->out[0].data, (const char *)c->in[0].data + s->at);
	return OM_OK;
}

/* Starts and ends, for the parts of a list of axes, as attributes or as inputs.  Inputs have one type, so all are replaced. */
static void
put_lists(const om_op_context *c, om_slice *s, const struct lists *l)
{
	const struct list *list[] = {&l->start, &l->end, &l->axis, &l->step};
	static const char *const names[] = {"starts", "ends"};

	for (uint32_t k = 0; k < 2 && c->op->nin == 1; k++)
		om_slice_set_ints(c, s, names[k], list[k]->n, list[k]->v);
	for (uint32_t k = 1; k < 5 && c->op->nin > 1; k++)
		if (om_has_in(c, k))
			om_slice_put_ints(c, s, k, list[k - 1]->n, list[k - 1]->v);
}

/* Along an axis that is cut forwards, the part of the input is what remains to be cut by the step alone. */
static bool
slice_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part *p = &s->out[out];
	const int axis = p->axis, rank = c->in[0].shape.rank;
	struct lists l;
	struct cut cut;

	if (slice_cut(c, &cut) != OM_OK || !cut.known[axis] || cut.step[axis] < 0 || slice_lists(c, &l) != OM_OK)
		return false;
	s->in[0] = om_part_of(axis, cut.start[axis] + p->lo * cut.step[axis], cut.start[axis] + (p->hi - 1) * cut.step[axis] + 1);
	for (int64_t k = 0; k < l.n; k++) {
		if ((l.axis.known ? (l.axis.v[k] + rank) % rank : k) != axis)
			continue;
		l.start.v[k] = 0;
		l.end.v[k] = s->in[0].hi - s->in[0].lo;
	}
	put_lists(c, s, &l);
	return true;
}

/* ---- Compress. ---- */

/* The shape regardless of the condition: `n` elements along the axis, or of the flattened input. */
static om_status
compress_shape(const om_op_context *c, int64_t n, om_shape *out, int *axis)
{
	const om_shape *in = &c->in[0].shape;

	*axis = -1;
	if (!om_attr_has(c->op, "axis")) {
		*out = om_shape_of(1, &n);
		return OM_OK;
	}
	OM_TRY(om_attr_axis(c, "axis", in->rank, axis));
	*out = *in;
	out->dim[*axis] = n;
	out->sym[*axis] = NULL;
	return OM_OK;
}

static om_status
compress_infer(om_op_context *c)
{
	int axis;

	c->out[0].type = c->in[0].type;
	if (c->in[0].shape.rank < 0 && om_attr_has(c->op, "axis"))
		return OM_OK;
	return compress_shape(c, OM_DIM_UNKNOWN, &c->out[0].shape, &axis);
}

/* All slices, or as many as there are conditions. */
static void
compress_most(const om_op_context *c, uint32_t out, om_shape *most)
{
	const om_shape *in = &c->in[0].shape;
	const int64_t conditions = om_list_length(&c->in[1]);
	const char *sym;
	int64_t n;
	int axis = 0;

	(void)out;
	if (in->rank < 0 || !om_dim_product(in, 0, in->rank, &n, &sym))
		return;
	if (om_attr_has(c->op, "axis")) {
		if (!om_axis(om_attr_int(c->op, "axis"), in->rank, &axis))
			return;
		n = in->dim[axis];
	}
	most->dim[axis] = n < 0 || (conditions >= 0 && conditions < n) ? conditions : n;
}

struct compress {
	int axis;                 /* -1: the flattened input */
	size_t size;              /* of an element */
};

static om_status
compress_prepare(om_op_context *c, void **state)
{
	struct compress *s = *state;
	om_shape out;

	OM_TRY(om_elem_bytes(c, c->in[0].type, &s->size));
	return compress_shape(c, 0, &out, &s->axis);
}

static om_status
compress_cpu(om_op_context *c)
{
	const struct compress *s = c->state;
	const om_shape *in = &c->in[0].shape;
	const uint8_t *take = c->in[1].data;
	int64_t n = 0, len = om_shape_count(&c->in[1].shape);
	om_shape out = {.rank = 1};

	const int64_t dim = s->axis < 0 ? om_shape_count(in) : in->dim[s->axis];
	const int64_t outer = s->axis < 0 ? 1 : om_shape_span(in, 0, s->axis);
	const size_t line = s->size * (size_t)(s->axis < 0 ? 1 : om_shape_span(in, s->axis + 1, in->rank));
	len = len > dim ? dim : len;
	for (int64_t k = 0; k < len; k++)
		n += take[k] != 0;
	if (s->axis >= 0)
		out = *in;
	out.dim[s->axis < 0 ? 0 : s->axis] = n;
	OM_TRY(c->alloc(c, 0, &out));
	char *to = c->out[0].data;
	for (int64_t i = 0; i < outer; i++)
		for (int64_t k = 0; k < len; k++)
			if (take[k]) {
				memcpy(to, (const char *)c->in[0].data + (size_t)(i * dim + k) * line, line);
				to += line;
			}
	return OM_OK;
}

/* ---- The table. ---- */

static const om_attr_spec slice1_attrs[] = {
	{.name = "axes", .kind = OM_ATTR_INTS},
	{.name = "ends", .kind = OM_ATTR_INTS, .required = true},
	{.name = "starts", .kind = OM_ATTR_INTS, .required = true},
	{0}
};

static const om_attr_spec compress_attrs[] = {
	{.name = "axis", .kind = OM_ATTR_INT},
	{0}
};

#define ONE .domain = "", .min_out = 1, .max_out = 1
#define SLICE ONE, .name = "Slice", .brief = "slices along axes", \
	.flags = OM_SPLATS | OM_PART, .infer = slice_infer, .max_shape = om_most_first, .slice = slice_slice, \
	.propagate_data = om_elems_moved, .view = slice_view, .cpu = slice_cpu

const om_opdef om_ops_slice[] = {
	{SLICE, .since = 1, .until = 9, .min_in = 1, .max_in = 1, .attrs = slice1_attrs,
	 .input_types = {OF_COMMON}},
	{SLICE, .since = 10, .min_in = 3, .max_in = 5,
	 .input_types = {OF_COMMON, OF_INDICES, LIKE(1), LIKE(1), LIKE(1)}},
	{ONE, .name = "Compress", .brief = "elements or slices selected by a condition", .since = 9,
	 .min_in = 2, .max_in = 2, .flags = OM_DATA_DEPENDENT_SHAPE, .attrs = compress_attrs,
	 .infer = compress_infer, .max_shape = compress_most, .cpu = compress_cpu,
	 .cost = om_cost_of_input,
	 .input_types = {OF_COMMON, OF(BOOL)}},
	{0}
};

const om_kernel om_kernels_slice[] = {
	{.name = "Slice", .state_bytes = sizeof(struct slice), .prepare = slice_prepare, .run = slice_cpu},
	{.name = "Compress", .state_bytes = sizeof(struct compress), .prepare = compress_prepare, .run = compress_cpu},
	{0}
};
