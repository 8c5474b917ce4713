/* SPDX-License-Identifier: Apache-2.0 */
/* Source elements of Resize and Upsample.
 *
 * They depend on each axis alone and are therefore computed once per position of each axis: one source
 * for nearest, several sources with weights for the other modes.
 *
 * Coordinates are computed in float32, as in the frameworks in which models are developed.
 */
#include <config.h>

#include <math.h>

#include "base/saturate.h"
#include "base/shape.h"
#include "opdef/columns.h"
#include "ir/query.h"
#include "opdef/geometry/resize.h"
#include "opdef/op_context.h"

/* ---- Sizes and scales. ---- */

static bool
is_modern(const om_op_context *c)
{
	return c->op->opdef->since >= 11;
}

/* Elements of a float input; false when not known.  An empty input counts as absent. */
static bool
float_list(const om_op_context *c, uint32_t k, const float **v, size_t *n)
{
	const om_tensor *t = &c->in[k];
	om_tensor list = *t;

	*v = NULL;
	*n = 0;
	if (!om_has_in(c, k) || om_list_length(t) == 0)
		return true;
	if (!t->data || !om_shape_is_known(&t->shape) || om_dtype_bits(t->type) < 16)
		return false;
	*n = (size_t)om_shape_count(&t->shape);
	om_tensor_align(c->mem, &list);
	float *to = OM_NEWN(c->mem, float, *n);
	for (size_t i = 0; i < *n; i++) {
		double d = 0;
		om_number(t->type, (const char *)list.data + (t->splat ? 0 : i) * (om_dtype_bits(t->type) / 8), &d);
		to[i] = (float)d;
	}
	*v = to;
	return true;
}

/* Scales of the last two axes of four. */
static bool
image_scales(const om_op_context *c, const float **v, size_t *n)
{
	float *to = OM_NEWN(c->mem, float, 4);

	to[0] = to[1] = 1;
	to[2] = om_attr_float(c->op, "height_scale");
	to[3] = om_attr_float(c->op, "width_scale");
	*v = to;
	*n = 4;
	return true;
}

static bool
scale_list(const om_op_context *c, const float **v, size_t *n)
{
	if (c->op->opdef->since == 1)
		return image_scales(c, v, n);
	if (c->op->opdef->since < 9) {
		*v = om_attr_floats(c->op, "scales", n);
		return true;
	}
	return float_list(c, is_modern(c) ? 2 : 1, v, n);
}

/* The axes that the lists refer to: all of them, or those of the attribute. */
static om_status
listed_axes(const om_op_context *c, int rank, int *axis, size_t *n)
{
	size_t count;
	const int64_t *named = om_attr_ints(c->op, "axes", &count);
	bool seen[OM_MAX_RANK] = {false};

	*n = named ? count : (size_t)rank;
	for (size_t k = 0; k < *n; k++) {
		if (!named) {
			axis[k] = (int)k;
			continue;
		}
		if (k >= (size_t)rank || !om_axis(named[k], rank, &axis[k]) || seen[axis[k]])
			return om_op_fail(c->session, OM_SHAPE, c->op,
				"axes must be distinct axes of rank %d", rank);
		seen[axis[k]] = true;
	}
	return OM_OK;
}

static om_status
check_length(const om_op_context *c, const char *what, size_t n, size_t want)
{
	if (n == want)
		return OM_OK;
	return om_op_fail(c->session, OM_SHAPE, c->op, "has %zu %s, expected %zu", n, what, want);
}

static om_status
use_scales(const om_op_context *c, struct om_resize *r, const float *scale, const int *axis, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		struct om_resize_axis *a = &r->axis[axis[k]];
		if (!(scale[k] > 0) || isinf(scale[k]))
			return om_op_fail(c->session, OM_SHAPE, c->op, "the scale of axis %d is %g", axis[k], (double)scale[k]);
		a->scale = scale[k];
		const float out = scale[k] * (float)a->in;
		if (out >= 0x1p62f)
			return om_op_fail(c->session, OM_INVALID, c->op, "the size of axis %d overflows", axis[k]);
		a->out = a->in >= 0 ? (int64_t)out : OM_DIM_UNKNOWN;
		if (scale[k] == 1)
			a->out = a->in;
	}
	return OM_OK;
}

/* One scale for all axes, such that no axis becomes larger (or smaller) than requested. */
static void
keep_aspect(struct om_resize *r, const int *axis, size_t n, bool larger)
{
	float scale = 0;

	for (size_t k = 0; k < n; k++) {
		const struct om_resize_axis *a = &r->axis[axis[k]];
		if (a->in < 0) {
			r->known = false;
			for (size_t i = 0; i < n; i++)
				r->axis[axis[i]].out = OM_DIM_UNKNOWN;
			return;
		}
		const float s = (float)a->out / (float)a->in;
		scale = k == 0 ? s : larger ? fmaxf(scale, s) : fminf(scale, s);
	}
	for (size_t k = 0; k < n; k++) {
		struct om_resize_axis *a = &r->axis[axis[k]];
		a->scale = scale;
		a->out = OM_SATURATE(int64_t, roundf(scale * (float)a->in));
	}
}

static om_status
use_sizes(const om_op_context *c, struct om_resize *r, const int64_t *size, const int *axis, size_t n)
{
	const bool smaller = om_attr_is(c->op, "keep_aspect_ratio_policy", "not_larger");
	const bool larger = om_attr_is(c->op, "keep_aspect_ratio_policy", "not_smaller");

	for (size_t k = 0; k < n; k++) {
		struct om_resize_axis *a = &r->axis[axis[k]];
		if (size[k] < 0 || size[k] > INT64_C(1) << 40)
			return om_op_fail(c->session, OM_SHAPE, c->op, "the size of axis %d is %lld", axis[k],
				(long long)size[k]);
		if (a->in == 0 && size[k] > 0)
			return om_op_fail(c->session, OM_SHAPE, c->op,
				"axis %d is empty and cannot be enlarged", axis[k]);
		a->sized = true;
		a->out = size[k];
		a->scale = a->in > 0 ? (float)size[k] / (float)a->in : 1;
	}
	if (smaller || larger)
		keep_aspect(r, axis, n, larger);
	return OM_OK;
}

static om_status
use_roi(const om_op_context *c, struct om_resize *r, const int *axis, size_t n)
{
	const float *roi;
	size_t nroi;

	if (!om_attr_is(c->op, "coordinate_transformation_mode", "tf_crop_and_resize"))
		return OM_OK;
	if (!float_list(c, 1, &roi, &nroi)) {
		r->known = false;
		return OM_OK;
	}
	OM_TRY(check_length(c, "roi elements", nroi, 2 * n));
	for (size_t k = 0; k < n; k++) {
		r->axis[axis[k]].roi[0] = roi[k];
		r->axis[axis[k]].roi[1] = roi[n + k];
	}
	return OM_OK;
}

om_status
om_resize_of(const om_op_context *c, struct om_resize *r)
{
	const om_shape *in = &c->in[0].shape;
	int axis[OM_MAX_RANK];
	const float *scale;
	int64_t *size;
	size_t n, nscale, nsize;

	*r = (struct om_resize){.rank = in->rank, .known = true};
	for (int k = 0; k < in->rank; k++)
		r->axis[k] = (struct om_resize_axis){.in = in->dim[k], .out = in->dim[k], .scale = 1, .roi = {0, 1}};
	OM_TRY(listed_axes(c, in->rank, axis, &n));
	OM_TRY(use_roi(c, r, axis, n));
	const bool sized = is_modern(c) && om_has_in(c, 3) && om_list_length(&c->in[3]) != 0;
	if (sized && om_in_ints(c, 3, &size, &nsize)) {
		OM_TRY(check_length(c, "sizes", nsize, n));
		return use_sizes(c, r, size, axis, n);
	}
	if (!sized && scale_list(c, &scale, &nscale)) {
		OM_TRY(check_length(c, "scales", nscale, n));
		return use_scales(c, r, scale, axis, n);
	}
	r->known = false;
	for (size_t k = 0; k < n; k++) {
		r->axis[axis[k]].out = OM_DIM_UNKNOWN;
		r->axis[axis[k]].sized = sized;
	}
	return OM_OK;
}

/* ---- Coordinates. ---- */

/* Input coordinate of position `x` of an output axis. */
typedef float place_fn(const struct om_resize_axis *a, float x);

static float
half_pixel(const struct om_resize_axis *a, float x)
{
	return (x + 0.5f) / a->scale - 0.5f;
}

/* The exact output length, before rounding to an integer. */
static float
exact_length(const struct om_resize_axis *a)
{
	return a->sized ? (float)a->out : a->scale * (float)a->in;
}

static float
align_corners(const struct om_resize_axis *a, float x)
{
	const float length = exact_length(a);
	return a->out == 1 || length == 1 ? 0 : x * (float)(a->in - 1) / (length - 1);
}

static float
asymmetric(const struct om_resize_axis *a, float x)
{
	return x / a->scale;
}

static float
pytorch_half_pixel(const struct om_resize_axis *a, float x)
{
	return a->out > 1 ? half_pixel(a, x) : 0;
}

static float
tf_half_pixel_for_nn(const struct om_resize_axis *a, float x)
{
	return (x + 0.5f) / a->scale;
}

static float
half_pixel_symmetric(const struct om_resize_axis *a, float x)
{
	const float adjust = (float)a->out / (a->scale * (float)a->in);
	return (float)a->in / 2 * (1 - adjust) + half_pixel(a, x);
}

static float
tf_crop_and_resize(const struct om_resize_axis *a, float x)
{
	const float last = (float)(a->in - 1), length = exact_length(a);

	if (a->out <= 1 || length == 1)
		return 0.5f * (a->roi[0] + a->roi[1]) * last;
	return a->roi[0] * last + x * (a->roi[1] - a->roi[0]) * last / (length - 1);
}

static const struct {
	const char *name;
	place_fn *place;
} places[] = {
	{"half_pixel", half_pixel},
	{"align_corners", align_corners},
	{"asymmetric", asymmetric},
	{"pytorch_half_pixel", pytorch_half_pixel},
	{"tf_half_pixel_for_nn", tf_half_pixel_for_nn},
	{"half_pixel_symmetric", half_pixel_symmetric},
	{"tf_crop_and_resize", tf_crop_and_resize},
};

om_status
om_resize_unknown(const om_op_context *c, const char *attr)
{
	const om_string s = om_attr_string(c->op, attr);
	return om_op_fail(c->session, OM_INVALID, c->op, "unknown %s %.*s", attr, (int)s.size, s.data);
}

static om_status
place_of(const om_op_context *c, place_fn **place)
{
	*place = asymmetric;
	if (!is_modern(c))
		return OM_OK;
	for (size_t k = 0; k < sizeof places / sizeof places[0]; k++)
		if (om_attr_is(c->op, "coordinate_transformation_mode", places[k].name)) {
			*place = places[k].place;
			return OM_OK;
		}
	return om_resize_unknown(c, "coordinate_transformation_mode");
}

/* Every position is its own source: scale 1 is the identity, whatever the region. */
bool
om_resize_keeps(const om_op_context *c, const struct om_resize *r, const struct om_resize_axis *a)
{
	if (a->in != a->out)
		return false;
	return a->sized && !om_attr_has(c->op, "keep_aspect_ratio_policy") ? true : r->known && a->scale == 1;
}

/* ---- Nearest. ---- */

typedef float round_fn(float x);

static float
round_prefer_floor(float x)
{
	return ceilf(x - 0.5f);
}

static float
round_prefer_ceil(float x)
{
	return floorf(x + 0.5f);
}

static om_status
rounding_of(const om_op_context *c, round_fn **f)
{
	*f = floorf;
	if (!is_modern(c) || om_attr_is(c->op, "nearest_mode", "floor"))
		return OM_OK;
	if (om_attr_is(c->op, "nearest_mode", "ceil"))
		*f = ceilf;
	else if (om_attr_is(c->op, "nearest_mode", "round_prefer_floor"))
		*f = round_prefer_floor;
	else if (om_attr_is(c->op, "nearest_mode", "round_prefer_ceil"))
		*f = round_prefer_ceil;
	else
		return om_resize_unknown(c, "nearest_mode");
	return OM_OK;
}

om_status
om_resize_nearest(const om_op_context *c, const struct om_resize_axis *a, bool same, int64_t **table)
{
	place_fn *place;
	round_fn *f;

	OM_TRY(place_of(c, &place));
	OM_TRY(rounding_of(c, &f));
	/* Before version 11 the mode is fixed: round down when upsampling, else up. */
	if (!is_modern(c) && a->scale < 1)
		f = ceilf;
	*table = OM_NEWN(c->mem, int64_t, (size_t)a->out);
	for (int64_t k = 0; k < a->out; k++) {
		if (same) {
			(*table)[k] = k;
			continue;
		}
		const float x = place(a, (float)k), near = f(x);
		(*table)[k] = near <= 0 ? 0 : near >= (float)(a->in - 1) ? a->in - 1 : OM_SATURATE(int64_t, near);
		if (place == tf_crop_and_resize && (x < 0 || x > (float)(a->in - 1)))
			(*table)[k] = -1;
	}
	return OM_OK;
}

/* ---- Weights. ---- */

static void
linear_taps(float x, int64_t in, int64_t *at, float *weight)
{
	const float last = (float)(in - 1), in_x = x > 0 ? x > last ? last : x : 0;
	const int64_t low = (int64_t)in_x < in - 1 ? (int64_t)in_x : in - 1;

	at[0] = low;
	at[1] = low + 1 < in ? low + 1 : in - 1;
	weight[0] = at[0] == at[1] ? 0.5f : fabsf(in_x - (float)at[1]);
	weight[1] = at[0] == at[1] ? 0.5f : fabsf(in_x - (float)at[0]);
}

/* Cubic interpolation kernel (Keys). */
static float
cubic(float x, float a)
{
	x = fabsf(x);
	if (x <= 1)
		return ((a + 2) * x - (a + 3)) * x * x + 1;
	return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static float
triangle(float x, float a)
{
	(void)a;
	x = fabsf(x);
	return x < 1 ? 1 - x : 0;
}

/* The elements from `first` on, weighted by a function of the distance to `center`.  Elements outside
 * count as the edge element, or not at all. */
static void
curve_taps(const om_op_context *c, float (*curve)(float, float), float center, float step, int64_t first,
	const struct om_resize_taps *t, int64_t k)
{
	const float a = om_attr_float(c->op, "cubic_coeff_a");
	const bool exclude = om_attr_int(c->op, "exclude_outside");
	int64_t *at = t->at + k * t->n;
	float *weight = t->weight + k * t->n, sum = 0;

	for (int64_t i = 0; i < t->n; i++) {
		const int64_t p = first + i;
		weight[i] = curve(((float)p - center) * step, a);
		if (exclude && (p < 0 || p >= t->in))
			weight[i] = 0;
		at[i] = p < 0 ? 0 : p >= t->in ? t->in - 1 : p;
		sum += weight[i];
	}
	for (int64_t i = 0; i < t->n && sum != 0; i++)
		weight[i] /= sum;
}

/* Far outside all elements are the same one. */
static int64_t
first_tap(float x)
{
	return OM_SATURATE(int64_t, fminf(fmaxf(floorf(x), -0x1p62f), 0x1p61f));
}

om_status
om_resize_taps_of(const om_op_context *c, const struct om_resize_axis *a, int axis, struct om_resize_taps *t)
{
	const bool is_cubic = om_attr_is(c->op, "mode", "cubic"), smooth = om_attr_int(c->op, "antialias");
	const float step = smooth && a->scale < 1 ? a->scale : 1;
	const float reach = (is_cubic ? 2 : 1) / step;
	float (*curve)(float, float) = is_cubic ? cubic : triangle;
	place_fn *place;

	OM_TRY(place_of(c, &place));
	*t = (struct om_resize_taps){.axis = axis, .in = a->in, .out = a->out};
	if (reach > 0x1p30f)
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op,
			"axis %d is reduced by too large a factor", axis);
	t->n = smooth ? 2 * (int64_t)ceilf(reach) + 1 : is_cubic ? 4 : 2;
	uint64_t bytes;
	const om_shape room = om_shape_of(2, (int64_t[]){t->out, t->n});
	if (!om_tensor_bytes(OM_INT64, &room, &bytes) || bytes > UINT64_C(1) << 32)
		return om_op_fail(c->session, OM_MEMORY, c->op, "axis %d requires too many weights", axis);
	t->at = OM_NEWN(c->mem, int64_t, (size_t)(t->out * t->n));
	t->weight = OM_NEWN(c->mem, float, (size_t)(t->out * t->n));
	if (om_attr_is(c->op, "coordinate_transformation_mode", "tf_crop_and_resize"))
		t->outside = OM_NEWN(c->mem, bool, (size_t)t->out);
	for (int64_t k = 0; k < t->out; k++) {
		const float x = place(a, (float)k);
		if (t->outside)
			t->outside[k] = x < 0 || x > (float)(a->in - 1);
		if (smooth)
			curve_taps(c, curve, x, step, first_tap(x + 0.5f - reach + 0.5f), t, k);
		else if (is_cubic)
			curve_taps(c, curve, x, 1, first_tap(x) - 1, t, k);
		else
			linear_taps(x, a->in, t->at + 2 * k, t->weight + 2 * k);
	}
	return OM_OK;
}

/* ---- Shares. ---- */

om_status
om_resize_shares(const om_op_context *c, const struct om_resize *r, int axis, double **share)
{
	const struct om_resize_axis *a = &r->axis[axis];
	const om_shape all = om_shape_of(2, (int64_t[]){a->in, a->out});
	struct om_resize_taps t;
	int64_t *from;
	uint64_t bytes;

	if (!om_tensor_bytes(OM_FLOAT64, &all, &bytes) || bytes > UINT64_C(1) << 32)
		return om_op_fail(c->session, OM_MEMORY, c->op, "axis %d is too long", axis);
	*share = OM_NEWN(c->mem, double, (size_t)(a->in * a->out + 1));
	if (om_attr_is(c->op, "mode", "nearest")) {
		OM_TRY(om_resize_nearest(c, a, om_resize_keeps(c, r, a), &from));
		for (int64_t k = 0; k < a->out; k++)
			if (from[k] >= 0)
				(*share)[from[k] * a->out + k] = 1;
		return OM_OK;
	}
	OM_TRY(om_resize_taps_of(c, a, axis, &t));
	for (int64_t k = 0; k < t.out; k++)
		for (int64_t i = k * t.n; i < (k + 1) * t.n && !(t.outside && t.outside[k]); i++)
			(*share)[t.at[i] * t.out + k] += (double)t.weight[i];
	return OM_OK;
}
