/* Resize and Upsample.
 *
 * Where an output element comes from is a matter of each axis alone, so it is
 * worked out once for each place of each axis.  Nearest is then one walk over
 * the output; the other modes are in resize_separable.c.
 *
 * Places are computed in float32, as the authors of models saw them computed.
 */
#include <config.h>

#include <math.h>

#include "ops/tensor/strided_copy.h"
#include "opdef/family.h"
#include "opdef/numbers.h"
#include "ops/image/resize.h"

/* ---- What is wanted. ---- */

static bool
is_modern(const om_op_context *c)
{
	return c->op->opdef->since >= 11;
}

/* Elements of a float input; false when not known.  An empty one is like none. */
static bool
float_list(const om_op_context *c, uint32_t k, const float **v, size_t *n)
{
	const om_tensor *t = &c->in[k];

	*v = NULL;
	*n = 0;
	if (!om_has_in(c, k) || om_list_length(t) == 0)
		return true;
	if (!t->data || !om_shape_is_known(&t->shape) || om_dtype_bits(t->type) < 16)
		return false;
	*n = (size_t)om_shape_count(&t->shape);
	float *to = OM_NEWN(c->mem, float, *n);
	for (size_t i = 0; i < *n; i++) {
		double d = 0;
		om_number(t->type, (const char *)t->data + (t->splat ? 0 : i) * (om_dtype_bits(t->type) / 8), &d);
		to[i] = (float)d;
	}
	*v = to;
	return true;
}

/* Of the last two axes of four. */
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

/* The axes that the lists speak of: all of them, or those that are named. */
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
			return om_op_fail(c->session, OM_SHAPE, c->op, "its axes are not axes of rank %d, each once", rank);
		seen[axis[k]] = true;
	}
	return OM_OK;
}

static om_status
check_length(const om_op_context *c, const char *what, size_t n, size_t want)
{
	if (n == want)
		return OM_OK;
	return om_op_fail(c->session, OM_SHAPE, c->op, "has %zu %s, not %zu", n, what, want);
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
			return om_op_fail(c->session, OM_INVALID, c->op, "axis %d cannot be represented", axis[k]);
		a->out = a->in >= 0 ? (int64_t)out : OM_DIM_UNKNOWN;
		if (scale[k] == 1)
			a->out = a->in;
	}
	return OM_OK;
}

/* One scale for all axes, so that none gets larger (smaller) than wanted. */
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
		a->out = (int64_t)roundf(scale * (float)a->in);
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
			return om_op_fail(c->session, OM_SHAPE, c->op, "axis %d is empty: it cannot grow", axis[k]);
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
	OM_TRY(check_length(c, "numbers for a region", nroi, 2 * n));
	for (size_t k = 0; k < n; k++) {
		r->axis[axis[k]].roi[0] = roi[k];
		r->axis[axis[k]].roi[1] = roi[n + k];
	}
	return OM_OK;
}

/* Out of shapes and whatever data there is; the input's rank is known. */
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

static om_status
resize_infer(om_op_context *c)
{
	const om_shape *in = &c->in[0].shape;
	om_shape *out = &c->out[0].shape;
	struct om_resize r;

	if (!om_attr_is(c->op, "mode", "nearest"))
		OM_TRY(om_must_be_of(c, c->in[0].type, OF_NUMBERS));
	c->out[0].type = c->in[0].type;
	if (in->rank < 0)
		return OM_OK;
	OM_TRY(om_resize_of(c, &r));
	*out = *in;
	for (int k = 0; k < in->rank; k++) {
		if (r.axis[k].in < 0 && r.axis[k].out < 0 && r.axis[k].scale == 1 && r.known)
			continue;  /* the input's dim, whatever it is */
		out->dim[k] = r.axis[k].out;
		out->sym[k] = NULL;
	}
	return OM_OK;
}

/* ---- Places. ---- */

static float
half_pixel(const struct om_resize_axis *a, float x)
{
	return (x + 0.5f) / a->scale - 0.5f;
}

/* How long the output would be, were its length no whole number. */
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
	om_place_fn *place;
} places[] = {
	{"half_pixel", half_pixel},
	{"align_corners", align_corners},
	{"asymmetric", asymmetric},
	{"pytorch_half_pixel", pytorch_half_pixel},
	{"tf_half_pixel_for_nn", tf_half_pixel_for_nn},
	{"half_pixel_symmetric", half_pixel_symmetric},
	{"tf_crop_and_resize", tf_crop_and_resize},
};

static om_status
unknown_word(const om_op_context *c, const char *attr)
{
	const om_string s = om_attr_string(c->op, attr);
	return om_op_fail(c->session, OM_INVALID, c->op, "%s %.*s is not known", attr, (int)s.size, s.data);
}

om_status
om_resize_place(const om_op_context *c, om_place_fn **place)
{
	*place = asymmetric;
	if (!is_modern(c))
		return OM_OK;
	for (size_t k = 0; k < sizeof places / sizeof places[0]; k++)
		if (om_attr_is(c->op, "coordinate_transformation_mode", places[k].name)) {
			*place = places[k].place;
			return OM_OK;
		}
	return unknown_word(c, "coordinate_transformation_mode");
}

/* Every place is its own source: scale 1 is one to one, whatever the region. */
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
		return unknown_word(c, "nearest_mode");
	return OM_OK;
}

/* The source of each place of an axis; -1: outside of the region. */
static om_status
nearest_table(const om_op_context *c, const struct om_resize_axis *a, bool same, int64_t **table)
{
	om_place_fn *place;
	round_fn *f;

	OM_TRY(om_resize_place(c, &place));
	OM_TRY(rounding_of(c, &f));
	/* Before version 11 there was no choice: down when growing, else up. */
	if (!is_modern(c) && a->scale < 1)
		f = ceilf;
	*table = OM_NEWN(c->mem, int64_t, (size_t)a->out);
	for (int64_t k = 0; k < a->out; k++) {
		if (same) {
			(*table)[k] = k;
			continue;
		}
		const float x = place(a, (float)k), near = f(x);
		(*table)[k] = near <= 0 ? 0 : near >= (float)(a->in - 1) ? a->in - 1 : (int64_t)near;
		if (place == tf_crop_and_resize && (x < 0 || x > (float)(a->in - 1)))
			(*table)[k] = -1;
	}
	return OM_OK;
}

static void
nearest_line(char *to, const char *from, const int64_t *table, int64_t n, size_t size, const char *none)
{
	if (size == sizeof(uint32_t)) {
		for (int64_t k = 0; k < n; k++)
			memcpy(to + 4 * k, table[k] < 0 ? none : from + 4 * table[k], 4);
		return;
	}
	if (size == 1) {
		for (int64_t k = 0; k < n; k++)
			to[k] = table[k] < 0 ? *none : from[table[k]];
		return;
	}
	for (int64_t k = 0; k < n; k++)
		memcpy(to + (size_t)k * size, table[k] < 0 ? none : from + table[k] * (int64_t)size, size);
}

/* The element for places outside of the region. */
om_status
om_resize_outside(const om_op_context *c, char *one)
{
	const float f = om_attr_float(c->op, "extrapolation_value");
	size_t size;

	OM_TRY(om_elem_bytes(c, c->out[0].type, &size));
	memset(one, 0, size);
	switch (c->out[0].type) {
	case OM_FLOAT32: memcpy(one, &f, sizeof f); break;
	case OM_FLOAT64: memcpy(one, &(double){f}, sizeof(double)); break;
	case OM_FLOAT16: memcpy(one, &(uint16_t){om_float_to_half(f)}, sizeof(uint16_t)); break;
	case OM_BFLOAT16: memcpy(one, &(uint16_t){om_float_to_bfloat(f)}, sizeof(uint16_t)); break;
	case OM_INT32: memcpy(one, &(int32_t){(int32_t)f}, sizeof(int32_t)); break;
	case OM_INT64: memcpy(one, &(int64_t){(int64_t)f}, sizeof(int64_t)); break;
	default: *one = (char)(int)f; break;
	}
	return OM_OK;
}

static om_status
nearest_cpu(om_op_context *c, const struct om_resize *r)
{
	const om_shape *out = &c->out[0].shape;
	int64_t *table[OM_MAX_RANK], stride[OM_MAX_RANK], at[OM_MAX_RANK] = {0};
	char none[sizeof(om_string)];
	size_t size = 0;
	int last = r->rank - 1;

	OM_TRY(om_elem_bytes(c, c->in[0].type, &size));
	OM_TRY(om_resize_outside(c, none));
	om_strides(&c->in[0].shape, stride);
	for (int k = 0; k <= last; k++)
		OM_TRY(nearest_table(c, &r->axis[k], om_resize_keeps(c, r, &r->axis[k]), &table[k]));
	const size_t line = (size_t)out->dim[last] * size;
	char *to = c->out[0].data;
	for (int k = 0, changed = 0; k >= 0; to += line) {
		const char *from = c->in[0].data;
		bool inside = true;
		for (int d = 0; d < last; d++) {
			inside &= table[d][at[d]] >= 0;
			from += table[d][at[d]] * stride[d] * (int64_t)size;
		}
		/* The row before has the same source, but for the first. */
		const int64_t row = last > 0 ? at[last - 1] : 0;
		if (last > 0 && changed == last - 1 && row > 0 && table[last - 1][row] == table[last - 1][row - 1])
			memcpy(to, to - line, line);
		else if (inside)
			nearest_line(to, from, table[last], out->dim[last], size, none);
		else
			om_fill(to, out->dim[last], size, none);
		for (k = last - 1; k >= 0 && ++at[k] == out->dim[k]; k--)
			at[k] = 0;
		changed = k;
	}
	return OM_OK;
}

/* By resizing, along the second of two axes, the unit vectors; and zeros, of which comes what the
 * outside of the region is given. */
om_status
om_resize_shares(const om_op_context *c, const struct om_resize *r, int axis, double **share)
{
	const struct om_resize_axis *a = &r->axis[axis];
	const int64_t from[] = {a->in + 1, a->in}, to[] = {a->in + 1, a->out};
	const struct om_resize both = {.rank = 2, .known = true, .axis = {
		{.in = a->in + 1, .out = a->in + 1, .scale = 1, .roi = {0, 1}, .sized = true}, *a}};
	om_tensor x = {.type = OM_FLOAT64, .shape = om_shape_of(2, from)};
	om_tensor y = {.type = OM_FLOAT64, .shape = om_shape_of(2, to)};
	om_op_context line = *c;
	uint64_t bytes;

	if (!om_tensor_bytes(OM_FLOAT64, &x.shape, &bytes) || bytes > UINT64_C(1) << 32
	    || !om_tensor_bytes(OM_FLOAT64, &y.shape, &bytes) || bytes > UINT64_C(1) << 32)
		return om_op_fail(c->session, OM_MEMORY, c->op, "axis %d is too long", axis);
	double *unit = OM_NEWN(c->mem, double, (size_t)((a->in + 1) * a->in + 1));
	*share = OM_NEWN(c->mem, double, (size_t)((a->in + 1) * a->out + 1));
	for (int64_t i = 0; i < a->in; i++)
		unit[i * a->in + i] = 1;
	x.data = unit;
	y.data = *share;
	line.in = &x;
	line.out = &y;
	OM_TRY(om_attr_is(c->op, "mode", "nearest") ? nearest_cpu(&line, &both) : om_resize_weighted(&line, &both));
	for (int64_t i = 0; i < a->in * a->out; i++)
		(*share)[i] -= (*share)[a->in * a->out + i % a->out];
	return OM_OK;
}

static om_status
resize_cpu(om_op_context *c)
{
	struct om_resize r;

	OM_TRY(om_recheck(c));
	OM_TRY(om_resize_of(c, &r));
	if (om_shape_count(&c->out[0].shape) == 0)
		return OM_OK;
	if (!r.known || om_shape_count(&c->in[0].shape) == 0)
		return om_op_fail(c->session, OM_RUN, c->op, "there is nothing to resize");
	if (r.rank == 0)
		return om_cpu_whole(c);
	if (om_attr_is(c->op, "mode", "nearest"))
		return nearest_cpu(c, &r);
	if (om_attr_is(c->op, "mode", "linear") || om_attr_is(c->op, "mode", "bilinear")
	    || om_attr_is(c->op, "mode", "cubic"))
		return om_resize_weighted(c, &r);
	return unknown_word(c, "mode");
}

/* ---- The table. ---- */

#define MODE {.name = "mode", .kind = OM_ATTR_STRING, .s = "nearest"}
#define PLACES                                                                 \
	{.name = "coordinate_transformation_mode", .kind = OM_ATTR_STRING, .s = "half_pixel"}, \
	{.name = "cubic_coeff_a", .kind = OM_ATTR_FLOAT, .f = -0.75f},         \
	{.name = "exclude_outside", .kind = OM_ATTR_INT},                      \
	{.name = "extrapolation_value", .kind = OM_ATTR_FLOAT},                \
	{.name = "nearest_mode", .kind = OM_ATTR_STRING, .s = "round_prefer_floor"}

static const om_attr_spec upsample1_attrs[] = {
	MODE,
	{.name = "height_scale", .kind = OM_ATTR_FLOAT, .required = true},
	{.name = "width_scale", .kind = OM_ATTR_FLOAT, .required = true},
	{0}
};

static const om_attr_spec upsample7_attrs[] = {
	MODE,
	{.name = "scales", .kind = OM_ATTR_FLOATS, .required = true},
	{0}
};

static const om_attr_spec mode_attrs[] = {MODE, {0}};
static const om_attr_spec resize11_attrs[] = {MODE, PLACES, {0}};

static const om_attr_spec resize18_attrs[] = {
	MODE,
	PLACES,
	{.name = "antialias", .kind = OM_ATTR_INT},
	{.name = "axes", .kind = OM_ATTR_INTS},
	{.name = "keep_aspect_ratio_policy", .kind = OM_ATTR_STRING, .s = "stretch"},
	{0}
};

#define RESIZE .domain = "", .brief = "the input sampled on a finer or coarser grid", \
	.min_out = 1, .max_out = 1, .infer = resize_infer, .cpu = resize_cpu, \
	.scratch = om_resize_scratch, .cost = om_resize_cost

const om_opdef om_ops_resize[] = {
	{RESIZE, .name = "Upsample", .since = 1, .until = 6, .min_in = 1, .max_in = 1, .attrs = upsample1_attrs,
	 .input_types = {OF_INTEGERS | OF_COMPLEX | OF(BOOL) | OF(FLOAT16) | OF_WIDE_FLOATS | OF(STRING)}},
	{RESIZE, .name = "Upsample", .since = 7, .until = 8, .min_in = 1, .max_in = 1, .attrs = upsample7_attrs,
	 .input_types = {OF_INTEGERS | OF_COMPLEX | OF(BOOL) | OF(FLOAT16) | OF_WIDE_FLOATS | OF(STRING)}},
	{RESIZE, .name = "Upsample", .since = 9, .until = 9, .min_in = 2, .max_in = 2, .attrs = mode_attrs,
	 .input_types = {OF_INTEGERS | OF_COMPLEX | OF(BOOL) | OF(FLOAT16) | OF_WIDE_FLOATS | OF(STRING), OF(FLOAT32)}},
	{RESIZE, .name = "Resize", .since = 10, .until = 10, .min_in = 2, .max_in = 2, .attrs = mode_attrs,
	 .input_types = {OF_COMMON, OF(FLOAT16) | OF_WIDE_FLOATS}},
	{RESIZE, .name = "Resize", .since = 11, .until = 17, .min_in = 1, .max_in = 4, .attrs = resize11_attrs,
	 .input_types = {OF_COMMON, OF(FLOAT16) | OF_WIDE_FLOATS, OF(FLOAT32), OF(INT64)}},
	{RESIZE, .name = "Resize", .since = 18, .min_in = 1, .max_in = 4, .attrs = resize18_attrs,
	 .input_types = {OF_COMMON, OF(FLOAT16) | OF_WIDE_FLOATS, OF(FLOAT32), OF(INT64)}},
	{0}
};
