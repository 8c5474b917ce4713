/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for devices of operators along an axis: ArgMax, ArgMin, CumSum, TopK. */
#include <config.h>

#include <string.h>

#include "base/shape.h"
#include "ir/query.h"
#include "opdef/columns.h"
#include "opdef/op_context.h"
#include "ops/device/launches.h"
#include "ops/family.h"
#include "ops/math/axis_view.h"

/* Elements that a block sorts. */
enum { MOST_SORTED = 1024 };

static void
add_lines(om_launch *l, const struct om_lines *s)
{
	om_launch_i64(l, s->outer * s->inner);
	om_launch_i64(l, s->n);
	om_launch_i64(l, s->inner);
}

/* ---- ArgMax, ArgMin. ---- */

static bool
attr_lines(const om_op_context *c, struct om_lines *s)
{
	int axis;

	if (!om_axis(om_attr_int(c->op, "axis"), c->in[0].shape.rank, &axis))
		return false;
	*s = om_lines_along(&c->in[0].shape, axis);
	return s->n > 0;
}

static bool
arg_supports(const om_op_context *c)
{
	struct om_lines s;

	return attr_lines(c, &s);
}

static om_status
arg_launches(const om_op_context *c, om_launch_list *to)
{
	struct om_lines s;

	attr_lines(c, &s);
	om_launch *l = om_launch_typed(to, "scan", "arg", om_kernel_type(c->in[0].type), s.outer * s.inner);
	om_launch_in(l, 0);
	om_launch_out(l, 0);
	add_lines(l, &s);
	om_launch_i32(l, strcmp(c->op->opdef->name, "ArgMin") == 0);
	om_launch_i32(l, c->op->version >= 12 && om_attr_int(c->op, "select_last_index") != 0);
	return OM_OK;
}

/* ---- CumSum. ---- */

static bool
sum_lines(const om_op_context *c, struct om_lines *s)
{
	int64_t axis[OM_MAX_RANK];
	size_t n;
	int at;

	if (!om_in_few(c, 1, axis, &n) || n != 1 || !om_axis(axis[0], c->in[0].shape.rank, &at))
		return false;
	*s = om_lines_along(&c->in[0].shape, at);
	return true;
}

static bool
sum_supports(const om_op_context *c)
{
	struct om_lines s;

	return sum_lines(c, &s);
}

static om_status
sum_launches(const om_op_context *c, om_launch_list *to)
{
	struct om_lines s;

	sum_lines(c, &s);
	om_launch *l = om_launch_typed(to, "scan", "cumulate", om_kernel_type(c->in[0].type), s.outer * s.inner);
	om_launch_in(l, 0);
	om_launch_out(l, 0);
	add_lines(l, &s);
	om_launch_i32(l, om_attr_int(c->op, "exclusive") != 0);
	om_launch_i32(l, om_attr_int(c->op, "reverse") != 0);
	return OM_OK;
}

/* ---- TopK. ---- */

static bool
top_supports(const om_op_context *c)
{
	struct om_lines s;

	return om_has_out(c, 0) && om_has_out(c, 1) && attr_lines(c, &s) && s.n <= MOST_SORTED;
}

static om_status
top_launches(const om_op_context *c, om_launch_list *to)
{
	const bool is_smallest = c->op->version >= 11 && !om_attr_int(c->op, "largest");
	struct om_lines s;
	int axis = 0;

	attr_lines(c, &s);
	om_axis(om_attr_int(c->op, "axis"), c->in[0].shape.rank, &axis);
	om_launch *l = om_launch_rows(to, "top", "top", om_kernel_type(c->in[0].type), s.outer * s.inner);
	om_launch_in(l, 0);
	om_launch_out(l, 0);
	om_launch_out(l, 1);
	add_lines(l, &s);
	om_launch_i64(l, c->out[0].shape.dim[axis]);
	om_launch_i32(l, is_smallest ? -1 : 0);
	return OM_OK;
}

#define LISTS ~UINT32_C(1)
#define SCANNED (OF_DEVICE_FLOATS | OF(INT32) | OF(INT64))

const om_device_kernel om_device_kernels_device_scan[] = {
	{.name = "ArgMax", .types = {SCANNED}, .supports = arg_supports, .launches = arg_launches},
	{.name = "ArgMin", .types = {SCANNED}, .supports = arg_supports, .launches = arg_launches},
	{.name = "CumSum", .types = {SCANNED}, .host_inputs = LISTS, .supports = sum_supports, .launches = sum_launches},
	{.name = "TopK", .since = 10, .types = {OF_DEVICE_FLOATS}, .host_inputs = LISTS, .supports = top_supports, .launches = top_launches},
	{0}
};
