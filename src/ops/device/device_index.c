/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for devices of operators that read or write elements at computed indices.
 *
 * A device cannot report an index that is out of range.  It gives NaN: so elements are floating point. */
#include <config.h>

#include <string.h>

#include "base/shape.h"
#include "base/strided_copy.h"
#include "ir/query.h"
#include "opdef/op_context.h"
#include "ops/device/launches.h"
#include "ops/family.h"
#include "ops/math/axis_view.h"

/* As in scatter.omk. */
enum { IS_LONG = 1, WRAPS = 2, PER_LINE = 4 };
enum { REPLACE, ADD, MUL, MAX, MIN };

static int32_t
flags_of(const om_op_context *c)
{
	return WRAPS | (c->in[1].type == OM_INT64 ? IS_LONG : 0);
}

static int32_t
reduction_of(const om_op_context *c)
{
	static const char *const names[] = {[ADD] = "add", [MUL] = "mul", [MAX] = "max", [MIN] = "min"};
	int32_t kind = REPLACE;

	for (int k = ADD; k <= MIN; k++)
		if (om_attr_is(c->op, "reduction", names[k]))
			kind = k;
	return kind;
}

/* ---- Along an axis: ScatterElements, GatherElements, Gather. ---- */

static bool
axis_of(const om_op_context *c, int *axis)
{
	return om_axis(om_attr_int(c->op, "axis"), c->in[0].shape.rank, axis);
}

/* The lines of the indices, in those (operand 0) and in input 0 (1). */
static bool
line_walk(const om_op_context *c, int axis, om_launch_walk *w)
{
	const om_shape *at = &c->in[1].shape;
	int64_t dim[OM_MAX_RANK], step[2][OM_MAX_RANK];

	if (at->rank != c->in[0].shape.rank)
		return false;
	om_strides(at, step[0]);
	om_strides(&c->in[0].shape, step[1]);
	for (int d = 0; d < at->rank; d++)
		dim[d] = d == axis ? 1 : at->dim[d];
	return om_launch_walk_of(w, at->rank, dim, 2, step);
}

static bool
elements_fit(const om_op_context *c, int axis)
{
	const om_shape *x = &c->in[0].shape, *at = &c->in[1].shape;

	for (int d = 0; d < x->rank; d++)
		if (d != axis && at->dim[d] > x->dim[d])
			return false;
	return om_shape_count(x) > 0;
}

static bool
scatter_supports(const om_op_context *c)
{
	om_launch_walk w;
	int axis;

	return c->in[2].type == c->in[0].type && axis_of(c, &axis) && line_walk(c, axis, &w) && elements_fit(c, axis)
	    && om_shape_equal(&c->in[1].shape, &c->in[2].shape);
}

/* The output starts as the input. */
static void
copy_input(const om_op_context *c, om_launch_list *to)
{
	om_launch_copy_row(to, om_kernel_moved_type(c->in[0].type), om_shape_count(&c->in[0].shape), (om_launch_end){OM_OPERAND_IN, 0, 0},
		(om_launch_end){OM_OPERAND_OUT, 0, 0});
}

/* Steps along the lines of indices, elements and output. */
struct steps {
	int64_t index, element, output;
};

static void
end_scatter(om_launch *l, const om_launch_walk *w, int64_t n, int64_t m, struct steps s, int32_t kind, int32_t flags)
{
	om_launch_i64(l, w->n);
	om_launch_i64(l, n);
	om_launch_i64(l, m);
	om_launch_i64(l, s.index);
	om_launch_i64(l, s.element);
	om_launch_i64(l, s.output);
	om_launch_walk_dims(l, w);
	om_launch_walk_steps(l, w, 0);
	om_launch_walk_steps(l, w, 1);
	om_launch_i32(l, kind);
	om_launch_i32(l, flags);
}

static om_status
scatter_launches(const om_op_context *c, om_launch_list *to)
{
	om_launch_walk w;
	int axis = 0;

	copy_input(c, to);
	axis_of(c, &axis);
	line_walk(c, axis, &w);
	if (om_shape_count(&c->in[1].shape) == 0)
		return OM_OK;
	const struct om_lines at = om_lines_along(&c->in[1].shape, axis), y = om_lines_along(&c->in[0].shape, axis);
	om_launch *l = om_launch_rows(to, "scatter", "scatter", om_kernel_type(c->in[0].type), w.n);
	om_launch_in(l, 1);
	om_launch_in(l, 2);
	om_launch_part(l, OM_ARG_INOUT, OM_OPERAND_OUT, 0, 0, 0);
	end_scatter(l, &w, y.n, at.n, (struct steps){at.inner, at.inner, y.inner}, reduction_of(c), flags_of(c) | PER_LINE);
	return OM_OK;
}

static void
add_gather(const om_op_context *c, om_launch_list *to, const om_launch_walk *w, int64_t count, int64_t step, bool is_joined)
{
	om_launch *l = om_launch_typed(to, "scatter", "gather", om_kernel_type(c->in[0].type), w->n);

	om_launch_in(l, 0);
	if (is_joined)
		om_launch_scratch(l, OM_ARG_IN, 0, 0);
	else
		om_launch_in(l, 1);
	om_launch_out(l, 0);
	om_launch_i64(l, w->n);
	om_launch_i64(l, count);
	om_launch_i64(l, step);
	om_launch_walk_dims(l, w);
	om_launch_walk_steps(l, w, 0);
	om_launch_walk_steps(l, w, 1);
	om_launch_i32(l, is_joined ? IS_LONG : flags_of(c));
}

/* Of the output: steps in the input (operand 0), none along the axis, and in the indices (1). */
static bool
elements_walk(const om_op_context *c, int axis, om_launch_walk *w)
{
	const om_shape *at = &c->in[1].shape;
	int64_t step[2][OM_MAX_RANK];

	if (at->rank != c->in[0].shape.rank)
		return false;
	om_strides(&c->in[0].shape, step[0]);
	om_strides(at, step[1]);
	step[0][axis] = 0;
	return om_launch_walk_of(w, at->rank, at->dim, 2, step);
}

static bool
gather_walk(const om_op_context *c, int axis, om_launch_walk *w)
{
	const om_shape *x = &c->in[0].shape, *at = &c->in[1].shape, *y = &c->out[0].shape;
	int64_t step[2][OM_MAX_RANK] = {{0}}, of_x[OM_MAX_RANK], of_at[OM_MAX_RANK];

	om_strides(x, of_x);
	om_strides(at, of_at);
	for (int d = 0; d < y->rank; d++) {
		const bool is_index = d >= axis && d < axis + at->rank;
		step[0][d] = is_index ? 0 : of_x[d < axis ? d : d - at->rank + 1];
		step[1][d] = is_index ? of_at[d - axis] : 0;
	}
	return om_launch_walk_of(w, y->rank, y->dim, 2, step);
}

static bool
is_elements(const om_op_context *c)
{
	return strcmp(c->op->opdef->name, "GatherElements") == 0;
}

static bool
gather_supports(const om_op_context *c)
{
	om_launch_walk w;
	int axis;

	return om_shape_count(&c->in[0].shape) > 0 && axis_of(c, &axis)
	    && (is_elements(c) ? elements_walk(c, axis, &w) && elements_fit(c, axis) : gather_walk(c, axis, &w));
}

static om_status
gather_launches(const om_op_context *c, om_launch_list *to)
{
	om_launch_walk w;
	int axis = 0;

	axis_of(c, &axis);
	if (is_elements(c))
		elements_walk(c, axis, &w);
	else
		gather_walk(c, axis, &w);
	const struct om_lines x = om_lines_along(&c->in[0].shape, axis);
	add_gather(c, to, &w, x.n, x.inner, false);
	return OM_OK;
}

/* ---- By tuples of indices: ScatterND, GatherND.  Tuples are first joined to one index each, in the scratch. ---- */

struct tuples {
	int named;               /* indices of a tuple */
	int first;               /* axis of input 0 that the first one is of */
	int64_t n;               /* tuples */
	int64_t rows, line;      /* what they index, and elements of one of these */
};

static bool
tuples_of(const om_op_context *c, int batch_dims, struct tuples *t)
{
	const om_shape *x = &c->in[0].shape, *at = &c->in[1].shape;

	if (at->rank < 1 || at->dim[at->rank - 1] < 1 || at->dim[at->rank - 1] > OM_LAUNCH_DIMS || om_shape_count(x) == 0)
		return false;
	*t = (struct tuples){(int)at->dim[at->rank - 1], batch_dims, om_shape_span(at, 0, at->rank - 1), 0, 0};
	if (batch_dims + t->named > x->rank)
		return false;
	t->rows = om_shape_span(x, batch_dims, batch_dims + t->named);
	t->line = om_shape_span(x, batch_dims + t->named, x->rank);
	return true;
}

static uint64_t
tuples_scratch(const om_op_context *c)
{
	const om_shape *at = &c->in[1].shape;

	return (uint64_t)om_shape_span(at, 0, at->rank - 1) * sizeof(int64_t);
}

static void
join_tuples(const om_op_context *c, om_launch_list *to, const struct tuples *t)
{
	om_launch *l = om_launch_typed(to, "scatter", "join_indices", "f32", t->n);

	om_launch_in(l, 1);
	om_launch_scratch(l, OM_ARG_OUT, 0, 0);
	om_launch_i64(l, t->n);
	om_launch_i32(l, t->named);
	for (int k = 0; k < OM_LAUNCH_DIMS; k++)
		om_launch_i64(l, k < t->named ? c->in[0].shape.dim[t->first + k] : 1);
	om_launch_i32(l, flags_of(c));
}

static bool
scatter_nd_supports(const om_op_context *c)
{
	const om_shape *v = &c->in[2].shape;
	struct tuples t;

	return c->in[2].type == c->in[0].type && tuples_of(c, 0, &t) && om_shape_count(v) == t.n * t.line;
}

static om_status
scatter_nd_launches(const om_op_context *c, om_launch_list *to)
{
	om_launch_walk w;
	struct tuples t;

	tuples_of(c, 0, &t);
	copy_input(c, to);
	if (t.n == 0)
		return OM_OK;
	join_tuples(c, to, &t);
	om_launch_walk_of(&w, 1, &t.line, 2, (int64_t[2][OM_MAX_RANK]){{1}, {1}});
	om_launch *l = om_launch_rows(to, "scatter", "scatter", om_kernel_type(c->in[0].type), t.line);
	om_launch_scratch(l, OM_ARG_IN, 0, 0);
	om_launch_in(l, 2);
	om_launch_part(l, OM_ARG_INOUT, OM_OPERAND_OUT, 0, 0, 0);
	end_scatter(l, &w, t.rows, t.n, (struct steps){1, t.line, t.line}, reduction_of(c), IS_LONG);
	return OM_OK;
}

/* Batches, tuples of a batch, elements of a line. */
static bool
gather_nd_walk(const om_op_context *c, struct tuples *t, om_launch_walk *w)
{
	const om_shape *x = &c->in[0].shape;
	const int batch_dims = (int)om_attr_int(c->op, "batch_dims");

	if (batch_dims < 0 || batch_dims >= x->rank || !tuples_of(c, batch_dims, t))
		return false;
	const int64_t batches = om_shape_span(x, 0, batch_dims), each = batches ? t->n / batches : 0;
	const int64_t dim[] = {batches, each, t->line};
	return om_launch_walk_of(w, 3, dim, 2, (int64_t[2][OM_MAX_RANK]){{t->rows * t->line, 0, 1}, {each, 1, 0}});
}

static bool
gather_nd_supports(const om_op_context *c)
{
	om_launch_walk w;
	struct tuples t;

	return gather_nd_walk(c, &t, &w) && w.n == om_shape_count(&c->out[0].shape);
}

static om_status
gather_nd_launches(const om_op_context *c, om_launch_list *to)
{
	om_launch_walk w;
	struct tuples t;

	gather_nd_walk(c, &t, &w);
	join_tuples(c, to, &t);
	add_gather(c, to, &w, t.rows, t.line, true);
	return OM_OK;
}

/* Over the first input only, which the first launch copies in its order. */
static bool
first_inplace(const om_op_context *c, uint32_t out, uint32_t in)
{
	return in == 0 && om_device_inplace(c, out, in);
}

#define SCATTER(label) {.name = label, .types = {OF_DEVICE_FLOATS, OF_INDICES}, .supports = scatter_supports, .inplace = first_inplace, \
	.launches = scatter_launches}
#define GATHER(label) {.name = label, .types = {OF_DEVICE_FLOATS, OF_INDICES}, .supports = gather_supports, .launches = gather_launches}

const om_device_kernel om_device_kernels_device_index[] = {
	SCATTER("Scatter"), SCATTER("ScatterElements"), GATHER("Gather"), GATHER("GatherElements"),
	{.name = "ScatterND", .types = {OF_DEVICE_FLOATS, OF(INT64)}, .supports = scatter_nd_supports, .inplace = first_inplace,
	 .scratch = tuples_scratch, .launches = scatter_nd_launches},
	{.name = "GatherND", .types = {OF_DEVICE_FLOATS, OF(INT64)}, .supports = gather_nd_supports, .scratch = tuples_scratch,
	 .launches = gather_nd_launches},
	{0}
};
