/* SPDX-License-Identifier: Apache-2.0 */
/* Resize and Upsample.  Nearest is one pass over the output with an index table per axis; the
 * other modes are in resize_separable.c. */
#include <config.h>

#include "base/strided_copy.h"
#include "opdef/columns.h"
#include "base/half.h"
#include "ir/query.h"
#include "ops/family.h"
#include "opdef/slice.h"
#include "opdef/numbers.h"
#include "ops/image/resize.h"

/* ---- Shapes. ---- */

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
			continue;  /* the input's dim, known or not */
		out->dim[k] = r.axis[k].out;
		out->sym[k] = NULL;
	}
	return OM_OK;
}

/* ---- Parts. ----
 *
 * Along an axis that becomes longer or shorter by an integer factor, every position of the shorter one begins at a
 * position of the longer one, and parts are of such positions, with a surplus.  Coordinates of a part are those of the op
 * minus an integer: the same numbers in float32 if the factor is a power of two, or if only a position is computed from
 * them that is far from the limit of rounding. */

enum { MOST_EXACT = 1 << 20 };

static bool
has_mode(const om_op_context *c, const char *mode)
{
	return c->op->opdef->since >= 11 && om_attr_is(c->op, "coordinate_transformation_mode", mode);
}

static bool
is_half_pixel(const om_op_context *c)
{
	return has_mode(c, "half_pixel") || has_mode(c, "pytorch_half_pixel");
}

static bool
is_asymmetric(const om_op_context *c)
{
	return c->op->opdef->since < 11 || has_mode(c, "asymmetric");
}

static bool
rounds_half(const om_op_context *c)
{
	return om_attr_is(c->op, "nearest_mode", "round_prefer_floor") || om_attr_is(c->op, "nearest_mode", "round_prefer_ceil");
}

/* Of an axis that becomes longer: positions of the input next to the one that a position of the output lies in which it may
 * depend on, too; -1 if coordinates are not exact. */
static int64_t
reach_of(const om_op_context *c, int64_t factor)
{
	const bool is_power = (factor & (factor - 1)) == 0, is_half = is_half_pixel(c), is_floor = c->op->opdef->since < 11
		|| om_attr_is(c->op, "nearest_mode", "floor");

	if (!is_half && !is_asymmetric(c))
		return -1;
	if (om_attr_is(c->op, "mode", "nearest"))
		return is_half ? rounds_half(c) ? 0 : is_power ? 1 : -1 : is_floor ? 0 : is_power ? 1 : -1;
	return !is_power ? -1 : om_attr_is(c->op, "mode", "cubic") ? 2 : 1;
}

/* The sizes, if they are given, are those of the part. */
static void
put_sizes(const om_op_context *c, om_slice *s, const struct om_resize *r, int axis, int64_t n)
{
	int64_t size[OM_MAX_RANK];
	size_t count, naxes;
	const int64_t *axes = om_attr_ints(c->op, "axes", &naxes);

	if (c->op->opdef->since < 11 || !om_in_few(c, 3, size, &count) || count == 0)
		return;
	for (size_t k = 0; k < count; k++)
		if ((axes ? (axes[k] + r->rank) % r->rank : (int64_t)k) == axis)
			size[k] = n;
	om_slice_put_ints(c, s, 3, count, size);
}

static bool
longer_part(const om_op_context *c, uint32_t out, om_slice *s, const struct om_resize_axis *a)
{
	const om_part *p = &s->out[out];
	const int64_t factor = a->out / a->in, reach = reach_of(c, factor);
	const int64_t first = p->lo / factor - reach, last = (p->hi - 1) / factor + 1 + reach;

	if (reach < 0 || a->scale != (float)factor)
		return false;
	s->in[0] = om_part_of(p->axis, first > 0 ? first : 0, last < a->in ? last : a->in);
	s->before = p->lo - s->in[0].lo * factor;
	s->after = s->in[0].hi * factor - p->hi;
	return true;
}

static bool
shorter_part(const om_op_context *c, uint32_t out, om_slice *s, const struct om_resize_axis *a)
{
	const om_part *p = &s->out[out];
	const int64_t factor = a->in / a->out, reach = om_attr_is(c->op, "mode", "cubic") || has_mode(c, "pytorch_half_pixel");
	const int64_t first = p->lo - reach, last = p->hi + reach;

	if ((factor & (factor - 1)) != 0 || (!is_half_pixel(c) && !is_asymmetric(c)) || a->scale != 1 / (float)factor)
		return false;
	s->before = first > 0 ? reach : p->lo;
	s->after = last < a->out ? reach : a->out - p->hi;
	s->in[0] = om_part_of(p->axis, (p->lo - s->before) * factor, (p->hi + s->after) * factor);
	return true;
}

static bool
resize_part(const om_op_context *c, uint32_t out, om_slice *s, const struct om_resize_axis *a)
{
	if (om_attr_int(c->op, "antialias") || a->in <= 0 || a->out <= 0 || a->out > MOST_EXACT || a->in > MOST_EXACT)
		return false;
	if (a->out % a->in == 0)
		return longer_part(c, out, s, a);
	return a->in % a->out == 0 && shorter_part(c, out, s, a);
}

static bool
resize_slice(const om_op_context *c, uint32_t out, om_slice *s)
{
	const om_part *p = &s->out[out];
	struct om_resize r;

	if (om_resize_of(c, &r) != OM_OK || !r.known || om_attr_is(c->op, "keep_aspect_ratio_policy", "not_larger")
	    || om_attr_is(c->op, "keep_aspect_ratio_policy", "not_smaller"))
		return false;
	if (om_resize_keeps(c, &r, &r.axis[p->axis]))
		s->in[0] = *p;
	else if (!resize_part(c, out, s, &r.axis[p->axis]))
		return false;
	put_sizes(c, s, &r, p->axis, p->hi - p->lo + s->before + s->after);
	return true;
}

/* ---- Nearest. ---- */

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

/* The element for positions outside the region. */
om_status
om_resize_outside(const om_op_context *c, char one[sizeof(om_string)])
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
	case OM_INT32: memcpy(one, &(int32_t){OM_SATURATE(int32_t, f)}, sizeof(int32_t)); break;
	case OM_INT64: memcpy(one, &(int64_t){OM_SATURATE(int64_t, f)}, sizeof(int64_t)); break;
	case OM_INT8: memcpy(one, &(int8_t){OM_SATURATE(int8_t, f)}, 1); break;
	default: memcpy(one, &(uint8_t){OM_SATURATE(uint8_t, f)}, 1); break;
	}
	return OM_OK;
}

struct nearest {
	int64_t *table[OM_MAX_RANK], stride[OM_MAX_RANK];
	char none[sizeof(om_string)];  /* the element for positions outside the region */
	size_t size;
	int last;                 /* axis */
};

static om_status
nearest_prepare(const om_op_context *c, const struct om_resize *r, struct nearest *s)
{
	s->last = r->rank - 1;
	OM_TRY(om_elem_bytes(c, c->in[0].type, &s->size));
	OM_TRY(om_resize_outside(c, s->none));
	om_strides(&c->in[0].shape, s->stride);
	for (int k = 0; k <= s->last; k++)
		OM_TRY(om_resize_nearest(c, &r->axis[k], om_resize_keeps(c, r, &r->axis[k]), &s->table[k]));
	return OM_OK;
}

static om_status
nearest_run(om_op_context *c, const struct nearest *s)
{
	const om_shape *out = &c->out[0].shape;
	int64_t *const *table = s->table, at[OM_MAX_RANK] = {0};
	const int64_t *stride = s->stride;
	const char *none = s->none;
	const size_t size = s->size;
	const int last = s->last;

	const size_t line = (size_t)out->dim[last] * size;
	char *to = c->out[0].data;
	for (int k = 0, changed = 0; k >= 0; to += line) {
		const char *from = c->in[0].data;
		bool inside = true;
		for (int d = 0; d < last; d++) {
			inside &= table[d][at[d]] >= 0;
			from += table[d][at[d]] * stride[d] * (int64_t)size;
		}
		/* Consecutive output rows with the same source row are copied from the first of them. */
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

struct resize {
	bool is_ready;            /* scales or sizes were known during preparation */
	bool is_empty, is_whole;
	bool is_nearest;
	struct nearest nearest;
	struct om_passes *passes; /* for all other modes */
};

/* The scales or sizes are known. */
static om_status
resize_plan(const om_op_context *c, struct resize *s)
{
	struct om_resize r;

	OM_TRY(om_resize_of(c, &r));
	s->is_empty = om_shape_count(&c->out[0].shape) == 0;
	s->is_whole = r.rank == 0;
	if (s->is_empty)
		return OM_OK;
	if (!r.known || om_shape_count(&c->in[0].shape) == 0)
		return om_op_fail(c->session, OM_RUN, c->op, "the input is empty");
	if (s->is_whole)
		return OM_OK;
	return s->is_nearest ? nearest_prepare(c, &r, &s->nearest) : om_passes_prepare(c, &r, &s->passes);
}

static om_status
resize_prepare(om_op_context *c, void **state)
{
	struct resize *s = *state;

	s->is_nearest = om_attr_is(c->op, "mode", "nearest");
	if (!s->is_nearest && !om_attr_is(c->op, "mode", "linear") && !om_attr_is(c->op, "mode", "bilinear")
	    && !om_attr_is(c->op, "mode", "cubic"))
		return om_resize_unknown(c, "mode");
	s->is_ready = !om_is_steered(c) && !c->sizes_only;
	return s->is_ready ? resize_plan(c, s) : OM_OK;
}

static om_status
resize_cpu(om_op_context *c)
{
	struct resize *s = c->state;

	if (!s->is_ready)
		OM_TRY(resize_plan(c, s));
	if (s->is_empty)
		return OM_OK;
	if (s->is_whole)
		return om_cpu_whole(c);
	return s->is_nearest ? nearest_run(c, &s->nearest) : om_passes_run(c, s->passes);
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

#define RESIZE .domain = "", .brief = "input resampled to another size", \
	.min_out = 1, .max_out = 1, .infer = resize_infer, .slice = resize_slice, .cpu = resize_cpu, \
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

#define KERNEL(label)                                                          \
	{.name = label, .state_bytes = sizeof(struct resize), .prepare = resize_prepare, \
	 .workspace = om_resize_scratch, .run = resize_cpu}

const om_kernel om_kernels_resize[] = {KERNEL("Upsample"), KERNEL("Resize"), {0}};
