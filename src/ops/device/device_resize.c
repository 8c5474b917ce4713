/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for devices of Resize and Upsample: nearest and linear, along at most two axes.
 *
 * What the tables of the processor say decides: a formula of whole numbers has to give the same nearest elements, and an affine
 * function the same weights.  Other modes, and regions, stay on the processor. */
#include <config.h>

#include <math.h>

#include "base/shape.h"
#include "ir/query.h"
#include "opdef/geometry/resize.h"
#include "opdef/numbers.h"
#include "opdef/op_context.h"
#include "ops/device/launches.h"
#include "ops/family.h"

enum { AXES = 2, MOST_POSITIONS = 1 << 16 };

/* Weights that differ by less are equal. */
static const double SLACK = 1e-5;

/* An axis that is resized: position p is element (p num + add) / den, or lies at p step + first. */
struct axis {
	int64_t in, out;
	int64_t num, add, den;
	float step, first;
};

struct resized {
	struct axis axis[AXES];
	int64_t n, mid, inner;
	bool is_nearest;
};

/* ---- Nearest. ---- */

static int64_t
nearest_of(const struct axis *a, int64_t p)
{
	const int64_t at = p * a->num + a->add;

	return at < 0 ? 0 : at / a->den < a->in - 1 ? at / a->den : a->in - 1;
}

static bool
is_same(const struct axis *a, const int64_t *table)
{
	for (int64_t p = 0; p < a->out; p++)
		if (nearest_of(a, p) != table[p])
			return false;
	return true;
}

/* All ways to round all coordinates of a ratio of sizes: position p is at 2 p in / 2 out, or at (2 p + 1) in / 2 out - 1/2. */
static bool
fit_nearest(const om_op_context *c, const struct om_resize_axis *from, struct axis *a)
{
	const int64_t in = a->in, out = a->out;
	const int64_t add[] = {0, 2 * out - 1, out, out - 1, in - out, in + out - 1, in, in - 1};
	int64_t *table;

	a->num = 2 * in;
	a->den = 2 * out;
	if (om_resize_nearest(c, from, false, &table) != OM_OK)
		return false;
	for (size_t k = 0; k < sizeof add / sizeof add[0]; k++) {
		a->add = add[k];
		if (is_same(a, table))
			return true;
	}
	return false;
}

/* ---- Linear. ---- */

/* Where position p lies, by its two weights. */
static double
place_of(const struct om_resize_taps *t, int64_t p)
{
	return (double)t->at[2 * p] + (t->at[2 * p + 1] > t->at[2 * p] ? (double)t->weight[2 * p + 1] : 0);
}

/* The line through the first and the last position that do not lie at an end. */
static bool
fit_linear(const om_op_context *c, const struct om_resize_axis *from, int axis, struct axis *a)
{
	struct om_resize_taps t;
	int64_t low = 0, high = a->out - 1;

	if (om_resize_taps_of(c, from, axis, &t) != OM_OK || t.n != 2 || t.outside)
		return false;
	while (low < high && place_of(&t, low) <= 0)
		low++;
	while (low < high && place_of(&t, high) >= (double)(a->in - 1))
		high--;
	const double step = high > low ? (place_of(&t, high) - place_of(&t, low)) / (double)(high - low) : (double)a->in / (double)a->out;
	a->step = (float)step;
	a->first = (float)(place_of(&t, low) - step * (double)low);
	for (int64_t p = 0; p < a->out; p++) {
		const double at = (double)fmaf((float)p, a->step, a->first);
		if (fabs(fmin(fmax(at, 0), (double)(a->in - 1)) - place_of(&t, p)) > SLACK * (1 + place_of(&t, p)))
			return false;
	}
	return true;
}

/* ---- The op. ---- */

static bool
fit(const om_op_context *c, const struct om_resize *r, int axis, bool is_nearest, struct axis *a)
{
	*a = (struct axis){.in = r->axis[axis].in, .out = r->axis[axis].out};
	if (a->in <= 0 || a->out <= 0 || a->in > MOST_POSITIONS || a->out > MOST_POSITIONS)
		return false;
	return is_nearest ? fit_nearest(c, &r->axis[axis], a) : fit_linear(c, &r->axis[axis], axis, a);
}

/* Nearest of all elements, linear of those that kernels compute with. */
static bool
is_mode(const om_op_context *c, bool *is_nearest)
{
	const om_dtype type = c->in[0].type;

	*is_nearest = om_attr_is(c->op, "mode", "nearest");
	return *is_nearest ? om_kernel_moved_type(type) != NULL
	    : (om_attr_is(c->op, "mode", "linear") || om_attr_is(c->op, "mode", "bilinear"))
		&& om_is_real(type);
}

static bool
resized_of(const om_op_context *c, struct resized *s)
{
	const om_shape *x = &c->in[0].shape;
	struct om_resize r;
	int at[AXES], n = 0;

	*s = (struct resized){.axis = {{1, 1, 1, 0, 1, 1, 0}, {1, 1, 1, 0, 1, 1, 0}}};
	if (!is_mode(c, &s->is_nearest) || om_attr_is(c->op, "coordinate_transformation_mode", "tf_crop_and_resize")
	    || om_attr_int(c->op, "antialias") || om_resize_of(c, &r) != OM_OK || !r.known)
		return false;
	for (int k = 0; k < r.rank; k++) {
		if (om_resize_keeps(c, &r, &r.axis[k]))
			continue;
		if (n == AXES || !fit(c, &r, k, s->is_nearest, &s->axis[n]))
			return false;
		at[n++] = k;
	}
	if (n == 1) {        /* the other axis, of one element, is before it */
		s->axis[1] = s->axis[0];
		s->axis[0] = (struct axis){1, 1, 1, 0, 1, 1, 0};
	}
	s->n = om_shape_count(&c->out[0].shape);
	s->mid = n == AXES ? om_shape_span(x, at[0] + 1, at[1]) : 1;
	s->inner = n ? om_shape_span(x, at[n - 1] + 1, x->rank) : s->n;
	return true;
}

static bool
resize_supports(const om_op_context *c)
{
	struct resized s;

	return resized_of(c, &s);
}

static om_status
resize_launches(const om_op_context *c, om_launch_list *to)
{
	struct resized s;

	resized_of(c, &s);
	om_launch *l = s.is_nearest ? om_launch_typed(to, "resize_nearest", "resize_nearest", om_kernel_moved_type(c->in[0].type), s.n)
	    : om_launch_typed(to, "resize_linear", "resize_linear", om_kernel_type(c->in[0].type), s.n);
	const int64_t sizes[] = {s.n, s.axis[0].in, s.axis[0].out, s.mid, s.axis[1].in, s.axis[1].out, s.inner};
	om_launch_in(l, 0);
	om_launch_out(l, 0);
	for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
		om_launch_i64(l, sizes[k]);
	for (int k = 0; k < AXES && s.is_nearest; k++) {
		om_launch_i64(l, s.axis[k].num);
		om_launch_i64(l, s.axis[k].add);
		om_launch_i64(l, s.axis[k].den);
	}
	for (int k = 0; k < AXES && !s.is_nearest; k++) {
		om_launch_f32(l, s.axis[k].step);
		om_launch_f32(l, s.axis[k].first);
	}
	return OM_OK;
}

/* All inputs but the first are read on the host. */
#define LISTS ~UINT32_C(1)
#define RESIZE(label) \
	{.name = label, .types = {OF_DEVICE_MOVED}, .host_inputs = LISTS, .supports = resize_supports, .launches = resize_launches}

const om_device_kernel om_device_kernels_device_resize[] = {RESIZE("Resize"), RESIZE("Upsample"), {0}};
