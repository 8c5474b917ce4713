/* Operators that crop or pad a tensor. */
#include <config.h>

#include "base/strided_copy.h"
#include "opdef/columns.h"
#include "base/half.h"
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
		if (!l.start.known || !l.end.known || (om_has_in(c, 4) && !l.step.known))
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

/* ---- Pad. ---- */

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

static const om_attr_spec compress_attrs[] = {
	{.name = "axis", .kind = OM_ATTR_INT},
	{0}
};

#define ONE .domain = "", .min_out = 1, .max_out = 1
#define SLICE ONE, .name = "Slice", .brief = "slices along axes", \
	.flags = OM_SPLATS, .infer = slice_infer, .slice = slice_slice, .propagate_data = om_elems_moved, .view = slice_view, .cpu = slice_cpu
#define PAD ONE, .name = "Pad", .brief = "input with padding", \
	.infer = pad_infer, .slice = pad_slice, .view = pad_view, .cpu = pad_cpu

const om_opdef om_ops_slice[] = {
	{SLICE, .since = 1, .until = 9, .min_in = 1, .max_in = 1, .attrs = slice1_attrs,
	 .input_types = {OF_COMMON}},
	{SLICE, .since = 10, .min_in = 3, .max_in = 5,
	 .input_types = {OF_COMMON, OF_INDICES, LIKE(1), LIKE(1), LIKE(1)}},
	{PAD, .since = 1, .until = 1, .min_in = 1, .max_in = 1, .attrs = pad1_attrs,
	 .input_types = {OF_ANY}},
	{PAD, .since = 2, .until = 10, .min_in = 1, .max_in = 1, .attrs = pad2_attrs,
	 .input_types = {OF_ANY}},
	{PAD, .since = 11, .until = 17, .min_in = 2, .max_in = 3, .attrs = pad11_attrs,
	 .input_types = {OF_ANY, OF(INT64), LIKE(0)}},
	{PAD, .since = 18, .min_in = 2, .max_in = 4, .attrs = pad11_attrs,
	 .input_types = {OF_ANY, OF(INT64), LIKE(0), OF_INDICES}},
	{ONE, .name = "Compress", .brief = "elements or slices selected by a condition", .since = 9,
	 .min_in = 2, .max_in = 2, .flags = OM_DATA_DEPENDENT_SHAPE, .attrs = compress_attrs,
	 .infer = compress_infer, .max_shape = compress_most, .cpu = compress_cpu,
	 .cost = om_cost_of_input,
	 .input_types = {OF_COMMON, OF(BOOL)}},
	{0}
};

const om_kernel om_kernels_slice[] = {
	{.name = "Slice", .state_bytes = sizeof(struct slice), .prepare = slice_prepare, .run = slice_cpu},
	{.name = "Pad", .fields = pad_fields, .state_bytes = sizeof(struct pad), .prepare = pad_prepare, .run = pad_cpu},
	{.name = "Compress", .state_bytes = sizeof(struct compress), .prepare = compress_prepare, .run = compress_cpu},
	{0}
};
