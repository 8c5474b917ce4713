/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for devices of operators that move elements. */
#include <config.h>

#include <string.h>

#include "base/shape.h"
#include "base/strided_copy.h"
#include "ir/query.h"
#include "opdef/columns.h"
#include "opdef/op_context.h"
#include "ops/device/launches.h"
#include "ops/family.h"

static const om_launch_end input = {OM_OPERAND_IN, 0, 0}, output = {OM_OPERAND_OUT, 0, 0};

/* ---- One walk over an output. ---- */

/* Where the elements of output `out` come from, in input 0: the first, and the step along each axis. */
struct source {
	int64_t at, step[OM_MAX_RANK];
};

typedef bool source_fn(const om_op_context *c, uint32_t out, struct source *s);

static bool
walk_of(const om_op_context *c, source_fn *find, uint32_t out, struct source *s, om_launch_walk *w)
{
	const om_shape *y = &c->out[out].shape;
	int64_t step[2][OM_MAX_RANK];

	if (!om_kernel_moved_type(c->out[out].type) || !find(c, out, s))
		return false;
	memcpy(step[0], s->step, sizeof step[0]);
	om_strides(y, step[1]);
	return om_launch_walk_of(w, y->rank, y->dim, 2, step);
}

static bool
is_walk(const om_op_context *c, source_fn *find)
{
	struct source s;
	om_launch_walk w;

	return walk_of(c, find, 0, &s, &w);
}

static om_status
launch_walk(const om_op_context *c, om_launch_list *to, source_fn *find, uint32_t out)
{
	struct source s;
	om_launch_walk w;

	walk_of(c, find, out, &s, &w);
	om_launch_copy(to, om_kernel_moved_type(c->out[out].type), &w, (om_launch_end){OM_OPERAND_IN, 0, s.at},
		(om_launch_end){OM_OPERAND_OUT, out, 0});
	return OM_OK;
}

/* The elements in their order, whatever the shape. */
static bool
same_source(const om_op_context *c, uint32_t out, struct source *s)
{
	s->at = 0;
	om_strides(&c->out[out].shape, s->step);
	return om_shape_count(&c->in[0].shape) == om_shape_count(&c->out[out].shape);
}

static bool
transpose_source(const om_op_context *c, uint32_t out, struct source *s)
{
	const om_shape *x = &c->in[0].shape;
	int64_t step[OM_MAX_RANK];
	size_t n = 0;
	const int64_t *perm = om_attr_ints(c->op, "perm", &n);

	(void)out;
	s->at = 0;
	om_strides(x, step);
	for (int d = 0; d < x->rank; d++) {
		const int64_t from = n ? perm[d] : x->rank - 1 - d;
		s->step[d] = step[from < 0 ? from + x->rank : from];
	}
	return true;
}

static bool
expand_source(const om_op_context *c, uint32_t out, struct source *s)
{
	const om_shape *x = &c->in[0].shape, *y = &c->out[out].shape;
	const int lead = y->rank - x->rank;
	int64_t step[OM_MAX_RANK];

	s->at = 0;
	om_strides(x, step);
	for (int d = 0; d < y->rank; d++)
		s->step[d] = d < lead || x->dim[d - lead] == 1 ? 0 : step[d - lead];
	return lead >= 0;
}

/* Elements `first`, `first` + `step`, ... of an axis of `dim`, as the lists of Slice say it. */
static int64_t
first_of(int64_t start, int64_t dim, int64_t step)
{
	const int64_t high = step < 0 ? dim - 1 : dim;

	start = start < 0 ? start + dim : start;
	return start < 0 ? 0 : start > high ? high : start;
}

/* The lists are attributes before version 10. */
static bool
slice_list(const om_op_context *c, uint32_t in, const char *attr, int64_t v[OM_MAX_RANK], size_t *n)
{
	if (c->op->nin > 1)
		return om_has_in(c, in) && om_in_few(c, in, v, n);
	const int64_t *list = attr ? om_attr_ints(c->op, attr, n) : NULL;
	for (size_t k = 0; list && k < *n && k < OM_MAX_RANK; k++)
		v[k] = list[k];
	return list != NULL;
}

static bool
slice_source(const om_op_context *c, uint32_t out, struct source *s)
{
	const om_shape *x = &c->in[0].shape;
	int64_t start[OM_MAX_RANK], axis[OM_MAX_RANK], step[OM_MAX_RANK], dense[OM_MAX_RANK];
	size_t n = 0, naxis = 0, nstep = 0;

	(void)out;
	if (!slice_list(c, 1, "starts", start, &n) || n > OM_MAX_RANK)
		return false;
	const bool has_axes = slice_list(c, 3, "axes", axis, &naxis), has_steps = slice_list(c, 4, NULL, step, &nstep);
	om_strides(x, dense);
	s->at = 0;
	memcpy(s->step, dense, sizeof dense);
	for (size_t k = 0; k < n; k++) {
		int d = (int)k;
		const int64_t by = has_steps ? step[k] : 1;
		if (has_axes && !om_axis(axis[k], x->rank, &d))
			return false;
		s->at += first_of(start[k], x->dim[d], by) * dense[d];
		s->step[d] = c->out[0].shape.dim[d] > 1 ? dense[d] * by : 0;
	}
	return true;
}

/* What Split gives before output `out`. */
static bool
split_source(const om_op_context *c, uint32_t out, struct source *s)
{
	const om_shape *x = &c->in[0].shape;
	int axis;

	if (!om_axis(om_attr_int(c->op, "axis"), x->rank, &axis))
		return false;
	om_strides(x, s->step);
	s->at = 0;
	for (uint32_t k = 0; k < out; k++)
		s->at += c->out[k].shape.dim[axis] * s->step[axis];
	return true;
}

/* The rows of a table: `supports` and `launches` for each way to find the source. */
#define MOVES(name)                                                            \
	static bool                                                            \
	name##_supports(const om_op_context *c)                                \
	{                                                                      \
		return is_walk(c, name##_source);                              \
	}                                                                      \
	static om_status                                                       \
	name##_launches(const om_op_context *c, om_launch_list *to)            \
	{                                                                      \
		return launch_walk(c, to, name##_source, 0);                   \
	}
MOVES(same)
MOVES(expand)
MOVES(slice)

static om_status
split_launches(const om_op_context *c, om_launch_list *to)
{
	for (uint32_t k = 0; k < c->op->nout; k++)
		if (om_has_out(c, k) && om_shape_count(&c->out[k].shape) > 0)
			launch_walk(c, to, split_source, k);
	return OM_OK;
}

/* All outputs are there: otherwise it is not known where the others are. */
static bool
split_supports(const om_op_context *c)
{
	struct source s;
	om_launch_walk w;

	for (uint32_t k = 0; k < c->op->nout; k++)
		if (!om_has_out(c, k) || !walk_of(c, split_source, k, &s, &w))
			return false;
	return true;
}

/* ---- Transpose: matrices in tiles. ---- */

static bool
transpose_supports(const om_op_context *c)
{
	return is_walk(c, transpose_source);
}

/* Is it a transpose of matrices [rows, columns], one after the other? */
static bool
is_matrices(const om_launch_walk *w, int64_t *n, int64_t *rows, int64_t *columns)
{
	const int64_t *d = w->dim, *step = w->step[0];

	*rows = d[5];
	*columns = d[4];
	*n = d[3];
	return w->n == d[3] * d[4] * d[5] && step[4] == 1 && step[5] == d[4] && (d[3] == 1 || step[3] == d[4] * d[5])
	    && *n <= 65535 && *rows <= 65535 * 32 && *rows > 1 && *columns > 1;
}

static om_status
transpose_launches(const om_op_context *c, om_launch_list *to)
{
	const char *type = om_kernel_moved_type(c->out[0].type);
	int64_t n, rows, columns;
	struct source s;
	om_launch_walk w;

	walk_of(c, transpose_source, 0, &s, &w);
	if (!is_matrices(&w, &n, &rows, &columns)) {
		om_launch_copy(to, type, &w, input, output);
		return OM_OK;
	}
	om_launch *l = om_launch_typed_grid(to, "move", "transpose", type, (om_grid){.threads = 256,
		.blocks = {(uint32_t)((columns + 31) / 32), (uint32_t)((rows + 31) / 32), (uint32_t)n}});
	om_launch_in(l, 0);
	om_launch_out(l, 0);
	om_launch_i64(l, rows);
	om_launch_i64(l, columns);
	return OM_OK;
}

/* ---- Concat: a walk over each input. ---- */

static bool
concat_walk(const om_op_context *c, uint32_t k, int axis, om_launch_walk *w)
{
	const om_shape *x = &c->in[k].shape;
	int64_t step[2][OM_MAX_RANK];

	(void)axis;
	om_strides(x, step[0]);
	om_strides(&c->out[0].shape, step[1]);
	return om_launch_walk_of(w, x->rank, x->dim, 2, step);
}

static bool
concat_supports(const om_op_context *c)
{
	om_launch_walk w;
	int axis;

	if (!om_kernel_moved_type(c->out[0].type) || !om_axis(om_attr_int(c->op, "axis"), c->out[0].shape.rank, &axis))
		return false;
	for (uint32_t k = 0; k < c->op->nin; k++)
		if (!concat_walk(c, k, axis, &w))
			return false;
	return true;
}

static om_status
concat_launches(const om_op_context *c, om_launch_list *to)
{
	int64_t step[OM_MAX_RANK], at = 0;
	int axis = 0;
	om_launch_walk w;

	om_axis(om_attr_int(c->op, "axis"), c->out[0].shape.rank, &axis);
	om_strides(&c->out[0].shape, step);
	for (uint32_t k = 0; k < c->op->nin; k++) {
		concat_walk(c, k, axis, &w);
		if (w.n > 0)
			om_launch_copy(to, om_kernel_moved_type(c->out[0].type), &w, (om_launch_end){OM_OPERAND_IN, k, 0},
				(om_launch_end){OM_OPERAND_OUT, 0, at});
		at += c->in[k].shape.dim[axis] * step[axis];
	}
	return OM_OK;
}

/* ---- Pad with a constant: filled, then the input is copied into it. ---- */

/* Padding before and after each axis. */
static bool
pads_of(const om_op_context *c, int64_t before[OM_MAX_RANK])
{
	const int rank = c->in[0].shape.rank;
	int64_t pads[OM_MAX_RANK], axes[OM_MAX_RANK];
	size_t n = 0, naxis = (size_t)rank;

	memset(before, 0, OM_MAX_RANK * sizeof *before);
	if (!om_attr_is(c->op, "mode", "constant") || 2 * rank > OM_MAX_RANK || !om_in_few(c, 1, pads, &n))
		return false;
	const bool has_axes = om_has_in(c, 3);
	if (has_axes && !om_in_few(c, 3, axes, &naxis))
		return false;
	for (size_t k = 0; k < naxis; k++) {
		int d = (int)k;
		if (has_axes && !om_axis(axes[k], rank, &d))
			return false;
		before[d] = pads[k];
	}
	return n == 2 * naxis;
}

static bool
pad_walk(const om_op_context *c, om_launch_walk *w, int64_t *from, int64_t *dest)
{
	const om_shape *x = &c->in[0].shape, *y = &c->out[0].shape;
	int64_t before[OM_MAX_RANK], dim[OM_MAX_RANK], step[2][OM_MAX_RANK];

	*from = *dest = 0;
	if (!pads_of(c, before))
		return false;
	om_strides(x, step[0]);
	om_strides(y, step[1]);
	for (int d = 0; d < x->rank; d++) {
		const int64_t skipped = before[d] < 0 ? -before[d] : 0, at = before[d] > 0 ? before[d] : 0;
		const int64_t left = x->dim[d] - skipped, room = y->dim[d] - at;
		dim[d] = left < room ? left : room;
		dim[d] = dim[d] < 0 ? 0 : dim[d];
		*from += skipped * step[0][d];
		*dest += at * step[1][d];
	}
	return om_launch_walk_of(w, x->rank, dim, 2, step);
}

static bool
pad_supports(const om_op_context *c)
{
	om_launch_walk w;
	int64_t from, dest;

	return om_kernel_moved_type(c->out[0].type) && pad_walk(c, &w, &from, &dest) && (!om_has_in(c, 2) || c->in[2].data);
}

static om_status
pad_launches(const om_op_context *c, om_launch_list *to)
{
	const char *type = om_kernel_moved_type(c->out[0].type);
	const int64_t n = om_shape_count(&c->out[0].shape);
	om_launch_walk w;
	int64_t from, dest;
	union { uint8_t byte[8]; uint64_t all; uint8_t u8; uint16_t u16; uint32_t u32; } value = {.all = 0};

	pad_walk(c, &w, &from, &dest);
	if (om_has_in(c, 2))
		memcpy(value.byte, c->in[2].data, om_dtype_bits(c->out[0].type) / 8);
	const uint64_t bits = strcmp(type, "u8") == 0 ? value.u8 : strcmp(type, "u16") == 0 ? value.u16
	    : strcmp(type, "u32") == 0 ? value.u32 : value.all;
	om_launch *l = om_launch_typed(to, "move", "fill", type, n);
	om_launch_out(l, 0);
	om_launch_i64(l, n);
	om_launch_i64(l, (int64_t)bits);
	if (w.n > 0)
		om_launch_copy(to, type, &w, (om_launch_end){OM_OPERAND_IN, 0, from}, (om_launch_end){OM_OPERAND_OUT, 0, dest});
	return OM_OK;
}

/* ---- Gather by few constant indices: a copy for each.  Others stay on the host, which checks them. ---- */

enum { MOST_INDICES = 16 };

static bool
gather_walk(const om_op_context *c, int64_t *index, size_t *n, int *axis, om_launch_walk *w)
{
	const om_shape *x = &c->in[0].shape;
	int64_t *v, dim[OM_MAX_RANK], step[2][OM_MAX_RANK] = {{0}};

	if (!om_axis(om_attr_int(c->op, "axis"), x->rank, axis) || !om_in_ints(c, 1, &v, n) || *n > MOST_INDICES)
		return false;
	om_strides(x, step[0]);
	for (int d = 0; d < x->rank; d++) {
		dim[d] = d == *axis ? 1 : x->dim[d];
		step[1][d] = d < *axis ? step[0][d] / x->dim[*axis] * (int64_t)*n : step[0][d];
	}
	for (size_t k = 0; k < *n; k++) {
		index[k] = v[k] < 0 ? v[k] + x->dim[*axis] : v[k];
		if (index[k] < 0 || index[k] >= x->dim[*axis])
			return false;
	}
	return om_launch_walk_of(w, x->rank, dim, 2, step);
}

static bool
gather_supports(const om_op_context *c)
{
	int64_t index[MOST_INDICES];
	om_launch_walk w;
	size_t n;
	int axis;

	return om_kernel_moved_type(c->out[0].type) && om_shape_count(&c->in[0].shape) > 0 && gather_walk(c, index, &n, &axis, &w);
}

static om_status
gather_launches(const om_op_context *c, om_launch_list *to)
{
	int64_t index[MOST_INDICES], step[OM_MAX_RANK];
	om_launch_walk w;
	size_t n = 0;
	int axis = 0;

	gather_walk(c, index, &n, &axis, &w);
	om_strides(&c->in[0].shape, step);
	for (size_t k = 0; k < n; k++)
		om_launch_copy(to, om_kernel_moved_type(c->out[0].type), &w, (om_launch_end){OM_OPERAND_IN, 0, index[k] * step[axis]},
			(om_launch_end){OM_OPERAND_OUT, 0, (int64_t)k * step[axis]});
	return OM_OK;
}

/* All inputs but the first are read on the host. */
#define LISTS ~UINT32_C(1)
#define SAME(label)  {.name = label, .types = {OF_DEVICE_MOVED}, .host_inputs = LISTS, .supports = same_supports, \
	.inplace = om_device_inplace, .launches = same_launches}

const om_device_kernel om_device_kernels_device_move[] = {
	SAME("Flatten"), SAME("Identity"), SAME("Reshape"), SAME("Squeeze"), SAME("Unsqueeze"),
	{.name = "Concat", .types = {OF_DEVICE_MOVED}, .supports = concat_supports, .launches = concat_launches},
	{.name = "Expand", .types = {OF_DEVICE_MOVED}, .host_inputs = LISTS, .supports = expand_supports, .launches = expand_launches},
	{.name = "Gather", .types = {OF_DEVICE_MOVED}, .host_inputs = LISTS, .supports = gather_supports, .launches = gather_launches},
	{.name = "Pad", .since = 11, .types = {OF_DEVICE_MOVED}, .host_inputs = LISTS, .supports = pad_supports, .launches = pad_launches},
	{.name = "Slice", .types = {OF_DEVICE_MOVED}, .host_inputs = LISTS, .supports = slice_supports, .launches = slice_launches},
	{.name = "Split", .types = {OF_DEVICE_MOVED}, .host_inputs = LISTS, .supports = split_supports, .launches = split_launches},
	{.name = "Transpose", .types = {OF_DEVICE_MOVED}, .supports = transpose_supports, .launches = transpose_launches},
	{0}
};
