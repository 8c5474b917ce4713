/* SPDX-License-Identifier: Apache-2.0 */
/* Images sampled at fractional coordinates. */
#include <config.h>

#include <math.h>

#include "base/convert_elements.h"
#include "base/shape.h"
#include "ir/query.h"
#include "opdef/op_context.h"
#include "opdef/columns.h"
#include "ops/family.h"
#include "ops/slices.h"
#include "ops/tensor/index.h"
#include "opdef/numbers.h"
#include "opdef/geometry/window.h"

enum { MOST_TAPS = 4 };

static bool
is_real(om_dtype t)
{
	return t == OM_FLOAT32 || t == OM_FLOAT64 || om_is_half(t);
}

static double
at(const om_tensor *t, int64_t k)
{
	return om_get(t->type, t->data, k);
}

/* ---- GridSample. ---- */

enum padding { ZEROS, BORDER, REFLECTION };
enum mode { NEAREST, LINEAR, CUBIC };

struct sampling {
	enum padding padding;
	enum mode mode;
	bool corners;
	int axes;                     /* number of spatial axes of the image */
};

/* The filter elements along one axis: indices (-1: the element is zero) and weights. */
struct taps {
	int n;
	int64_t at[MOST_TAPS];
	double weight[MOST_TAPS];
};

/* Version 16 and version 20 use different names for the modes. */
static om_status
sampling_of(const om_op_context *c, struct sampling *s)
{
	*s = (struct sampling){.corners = om_attr_int(c->op, "align_corners"), .axes = c->in[0].shape.rank - 2};
	if (om_attr_is(c->op, "padding_mode", "border"))
		s->padding = BORDER;
	else if (om_attr_is(c->op, "padding_mode", "reflection"))
		s->padding = REFLECTION;
	else if (!om_attr_is(c->op, "padding_mode", "zeros"))
		return om_op_fail(c->session, OM_INVALID, c->op, "unknown padding_mode");
	if (om_attr_is(c->op, "mode", "linear") || om_attr_is(c->op, "mode", "bilinear"))
		s->mode = LINEAR;
	else if (om_attr_is(c->op, "mode", "cubic") || om_attr_is(c->op, "mode", "bicubic"))
		s->mode = CUBIC;
	else if (!om_attr_is(c->op, "mode", "nearest"))
		return om_op_fail(c->session, OM_INVALID, c->op, "unknown mode");
	return OM_OK;
}

static om_status
grid_infer(om_op_context *c)
{
	const om_shape *x = &c->in[0].shape, *g = &c->in[1].shape;
	const int rank = x->rank >= 0 ? x->rank : g->rank;
	struct sampling s;

	OM_TRY(sampling_of(c, &s));
	if (s.mode != NEAREST)
		OM_TRY(om_must_be_of(c, c->in[0].type, OF_COMMON & ~OF(STRING)));
	c->out[0].type = c->in[0].type;
	if (rank < 0)
		return OM_OK;
	if (rank < 3 || (x->rank >= 0 && g->rank >= 0 && x->rank != g->rank))
		return om_wrong(c, "the image and the grid must have equal rank, at least 3");
	if (g->rank >= 0 && !om_dims_agree(g->dim[rank - 1], rank - 2))
		return om_wrong(c, "the last dim of the grid must be the number of spatial axes");
	if (g->rank >= 0 && x->rank >= 0 && !om_dims_agree(g->dim[0], x->dim[0]))
		return om_wrong(c, "the image and the grid differ in batch size");
	c->out[0].shape = om_shape_open(rank);
	for (int d = 0; d < rank; d++)
		if (d < 2 && x->rank >= 0)
			om_copy_dim(&c->out[0].shape, d, x, d);
		else if (d != 1 && g->rank >= 0)
			om_copy_dim(&c->out[0].shape, d, g, d ? d - 1 : 0);
	return OM_OK;
}

/* Reflect a coordinate at both bounds. */
static double
reflect(double x, double low, double high)
{
	const double span = high - low;

	if (span <= 0)
		return low;
	const double off = fabs(x - low), turns = floor(off / span), rest = off - turns * span;
	return fmod(turns, 2) == 0 ? low + rest : high - rest;
}

static int64_t
padded_index(const struct sampling *s, double i, int64_t n)
{
	if (i >= 0 && i <= (double)(n - 1))
		return (int64_t)i;
	if (s->padding == ZEROS)
		return -1;
	if (s->padding == REFLECTION)
		i = s->corners ? reflect(i, 0, (double)(n - 1)) : reflect(i, -0.5, (double)n - 0.5);
	return i > 0 ? i < (double)(n - 1) ? (int64_t)i : n - 1 : 0;
}

static double
cubic_weight(double x)
{
	const double a = -0.75;

	x = fabs(x);
	return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

/* The filter elements along an axis of n elements; `g` is in [-1, 1] inside the image. */
static void
taps_of(const struct sampling *s, double g, int64_t n, struct taps *t)
{
	const double length = (double)n, low = s->corners ? 0 : -0.5, high = s->corners ? length - 1 : length - 0.5;
	double x = s->corners ? (g + 1) / 2 * (length - 1) : ((g + 1) * length - 1) / 2;

	if (s->mode == NEAREST)
		x = rint(x);
	if (!(x >= low && x <= high) && s->padding == BORDER)
		x = x > 0 ? x < length - 1 ? x : length - 1 : 0;
	else if (!(x >= low && x <= high) && s->padding == REFLECTION)
		x = isfinite(x) ? reflect(x, low, high) : low;
	x = x > -4 ? x < length + 4 ? x : length + 4 : -4;  /* never NaN; all elements are outside there */
	const double first = s->mode == NEAREST ? x : floor(x) - (s->mode == CUBIC);
	t->n = s->mode == NEAREST ? 1 : s->mode == LINEAR ? 2 : 4;
	for (int k = 0; k < t->n; k++) {
		t->at[k] = padded_index(s, first + k, n);
		t->weight[k] = s->mode == NEAREST ? 1 : s->mode == LINEAR ? 1 - fabs(x - (first + k))
			: cubic_weight(x - (first + k));
	}
}

/* An element of any numeric type, or the real or imaginary part of a complex one. */
static double
part_at(const om_tensor *t, int64_t k, int part)
{
	double v = 0;

	if (is_real(t->type))
		return at(t, k);
	if (t->type == OM_COMPLEX64)
		return ((const float *)t->data)[2 * k + part];
	if (t->type == OM_COMPLEX128)
		return ((const double *)t->data)[2 * k + part];
	om_number(t->type, (const char *)t->data + (size_t)k * (om_dtype_bits(t->type) / 8), &v);
	return v;
}

/* The weighted sum over all combinations of filter elements, from axis `d` on. */
static double
blend(const om_tensor *x, const struct sampling *s, const struct taps *t, int d, int64_t base, int part)
{
	double sum = 0;

	if (d == s->axes)
		return part_at(x, base, part);
	for (int k = 0; k < t[d].n; k++)
		if (t[d].at[k] >= 0)
			sum += t[d].weight[k] * blend(x, s, t, d + 1, base * x->shape.dim[d + 2] + t[d].at[k], part);
	return sum;
}

/* Integers are truncated towards zero, as in Cast. */
static void
put_blend(const om_op_context *c, const struct sampling *s, const struct taps *t, int64_t base, int64_t to)
{
	const om_tensor *x = &c->in[0];
	const double v = blend(x, s, t, 0, base, 0);
	void *y = c->out[0].data;

	if (is_real(x->type)) {
		om_put(x->type, y, to, v);
	} else if (x->type == OM_COMPLEX64) {
		((float *)y)[2 * to] = (float)v;
		((float *)y)[2 * to + 1] = (float)blend(x, s, t, 0, base, 1);
	} else if (x->type == OM_COMPLEX128) {
		((double *)y)[2 * to] = v;
		((double *)y)[2 * to + 1] = blend(x, s, t, 0, base, 1);
	} else {
		om_convert(x->type, (char *)y + (size_t)to * (om_dtype_bits(x->type) / 8), OM_FLOAT64, &v, 1, true);
	}
}

/* The index of the nearest element; -1 if it is zero. */
static int64_t
nearest_at(const om_tensor *x, const struct sampling *s, const struct taps *t, int64_t base)
{
	for (int d = 0; d < s->axes; d++) {
		if (t[d].at[0] < 0)
			return -1;
		base = base * x->shape.dim[d + 2] + t[d].at[0];
	}
	return base;
}

static void
put_sample(const om_op_context *c, const struct sampling *s, const struct taps *t, int64_t base, int64_t to, size_t size)
{
	const om_tensor *x = &c->in[0];

	if (s->mode != NEAREST) {
		put_blend(c, s, t, base, to);
		return;
	}
	const int64_t from = nearest_at(x, s, t, base);
	char *place = (char *)c->out[0].data + (size_t)to * size;
	if (from < 0)
		memset(place, 0, size);
	else
		memcpy(place, (const char *)x->data + (size_t)from * size, size);
}

static om_status
grid_prepare(om_op_context *c, void **state)
{
	return sampling_of(c, *state);
}

static om_status
grid_cpu(om_op_context *c)
{
	const om_shape *x = &c->in[0].shape, *y = &c->out[0].shape;
	const int64_t points = om_shape_span(y, 2, y->rank), channels = x->dim[1];
	struct taps t[OM_MAX_RANK];
	const struct sampling s = *(const struct sampling *)c->state;
	size_t size;

	OM_TRY(om_elem_bytes(c, c->in[0].type, &size));
	if (!is_real(c->in[1].type) || (s.mode != NEAREST && c->in[0].type == OM_STRING))
		return om_no_kernel(c, is_real(c->in[1].type) ? c->in[0].type : c->in[1].type);
	for (int d = 2; d < x->rank; d++)
		if (x->dim[d] == 0 && points)
			return om_op_fail(c->session, OM_RUN, c->op, "the image is empty");
	for (int64_t b = 0; b < x->dim[0]; b++)
		for (int64_t p = 0; p < points; p++) {
			for (int d = 0; d < s.axes; d++)
				taps_of(&s, at(&c->in[1], (b * points + p) * s.axes + s.axes - 1 - d), x->dim[d + 2], &t[d]);
			for (int64_t k = 0; k < channels; k++)
				put_sample(c, &s, t, b * channels + k, (b * channels + k) * points + p, size);
		}
	return OM_OK;
}

static void
grid_cost(const om_op_context *c, om_cost *cost)
{
	const int axes = c->in[0].shape.rank - 2;

	cost->flops = (double)om_shape_count(&c->out[0].shape) * (double)(1 << (axes < 16 ? axes : 16)) * 4;
}

/* ---- AffineGrid. ---- */

static om_status
affine_infer(om_op_context *c)
{
	const om_shape *theta = &c->in[0].shape;
	const int64_t axes = om_list_length(&c->in[1]) >= 0 ? om_list_length(&c->in[1]) - 2
		: theta->rank == 3 ? theta->dim[1] : -1;
	om_shape *out = &c->out[0].shape;
	int64_t size[OM_MAX_RANK];
	size_t n;

	c->out[0].type = c->in[0].type;
	if (axes < 0)
		return OM_OK;
	if (axes != 2 && axes != 3)
		return om_wrong(c, "the image must have 2 or 3 spatial axes");
	if (theta->rank >= 0 && (theta->rank != 3 || !om_dims_agree(theta->dim[1], axes)
	    || !om_dims_agree(theta->dim[2], axes + 1)))
		return om_wrong(c, "the shape of theta does not match size");
	*out = om_shape_open(axes + 2);
	out->dim[axes + 1] = axes;
	if (theta->rank >= 0)
		om_copy_dim(out, 0, theta, 0);
	if (!om_in_few(c, 1, size, &n))
		return OM_OK;
	for (int64_t d = 1; d <= axes; d++)
		if ((out->dim[d] = size[d + 1]) < 0)
			return om_wrong(c, "size has a negative element");
	if (!om_dims_agree(out->dim[0], size[0]))
		return om_wrong(c, "theta must have one matrix for each batch entry");
	out->dim[0] = size[0];
	return OM_OK;
}

static double
grid_place(int64_t i, int64_t n, bool corners)
{
	if (corners)
		return n == 1 ? -1 : -1 + 2.0 * (double)i / (double)(n - 1);
	return (2.0 * (double)i + 1) / (double)n - 1;
}

struct affine {
	int64_t align_corners;
};

static const om_attr_field affine_fields[] = {OM_FIELD(struct affine, INT, align_corners), {0}};

static om_status
affine_cpu(om_op_context *c)
{
	const om_shape *y = &c->out[0].shape;
	const int axes = y->rank - 2;
	const bool corners = ((const struct affine *)c->state)->align_corners != 0;
	int64_t place[OM_MAX_RANK] = {0};

	if (!is_real(c->in[0].type))
		return om_no_kernel(c, c->in[0].type);
	for (int64_t k = 0; k < om_shape_count(y); k++) {
		const int64_t row = place[0] * axes + place[axes + 1];
		double sum = at(&c->in[0], row * (axes + 1) + axes);
		for (int d = 0; d < axes; d++)
			sum += at(&c->in[0], row * (axes + 1) + d)
				* grid_place(place[axes - d], y->dim[axes - d], corners);
		om_put(c->out[0].type, c->out[0].data, k, sum);
		om_next_place(y, place);
	}
	return OM_OK;
}

/* ---- RoiAlign. ---- */

/* Bilinear interpolation: the indices of four neighbors and their weights. */
struct corners {
	int64_t at[4];
	double weight[4];
};

static void
corners_of(double y, double x, int64_t height, int64_t width, struct corners *k)
{
	*k = (struct corners){0};
	if (!(y >= -1 && y <= (double)height && x >= -1 && x <= (double)width))
		return;
	y = y > 0 ? y < (double)(height - 1) ? y : (double)(height - 1) : 0;
	x = x > 0 ? x < (double)(width - 1) ? x : (double)(width - 1) : 0;
	const int64_t top = (int64_t)y, left = (int64_t)x;
	const int64_t down = top < height - 1 ? width : 0, right = left < width - 1;
	const double dy = y - (double)top, dx = x - (double)left;
	const int64_t first = top * width + left;

	*k = (struct corners){{first, first + right, first + down, first + down + right},
		{(1 - dy) * (1 - dx), (1 - dy) * dx, dy * (1 - dx), dy * dx}};
}

struct roi {
	double y, x, height, width;   /* of a bin */
	int64_t ny, nx;               /* samples in a bin */
	int64_t batch;
};

static om_status
roi_infer(om_op_context *c)
{
	const om_shape *x = &c->in[0].shape, *r = &c->in[1].shape, *b = &c->in[2].shape;
	om_shape *out = &c->out[0].shape;

	c->out[0].type = c->in[0].type;
	*out = om_shape_open(4);
	if ((x->rank >= 0 && x->rank != 4) || (r->rank >= 0 && r->rank != 2) || (b->rank >= 0 && b->rank != 1))
		return om_wrong(c, "X must have rank 4, rois rank 2 and batch_indices rank 1");
	if (r->rank == 2 && (!om_dims_agree(r->dim[1], 4) || (b->rank == 1 && !om_dims_agree(r->dim[0], b->dim[0]))))
		return om_wrong(c, "rois must have 4 columns and one row for each element of batch_indices");
	out->dim[2] = om_attr_int(c->op, "output_height");
	out->dim[3] = om_attr_int(c->op, "output_width");
	if (out->dim[2] < 1 || out->dim[3] < 1)
		return om_wrong(c, "output_height and output_width must be positive");
	if (r->rank == 2 && r->dim[0] >= 0)
		om_copy_dim(out, 0, r, 0);
	else if (b->rank == 1)
		om_copy_dim(out, 0, b, 0);
	if (x->rank == 4)
		om_copy_dim(out, 1, x, 1);
	return OM_OK;
}

struct regions {
	double scale;                 /* scale from regions to the input */
	int64_t samples;
	bool half, largest;
};

/* The most samples along an axis of a bin that an attribute may request: the work is their square. */
enum { MOST_SAMPLES = 1024 };

static om_status
regions_prepare(om_op_context *c, void **state)
{
	struct regions *s = *state;

	if (om_attr_int(c->op, "sampling_ratio") > MOST_SAMPLES)
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "no kernel for a sampling_ratio above %d", MOST_SAMPLES);
	s->half = c->op->version >= 16 && om_attr_is(c->op, "coordinate_transformation_mode", "half_pixel");
	s->scale = om_attr_float(c->op, "spatial_scale");
	s->samples = om_attr_int(c->op, "sampling_ratio");
	s->largest = om_attr_is(c->op, "mode", "max");
	return OM_OK;
}

static om_status
read_roi(const om_op_context *c, int64_t k, struct roi *r)
{
	const om_shape *y = &c->out[0].shape;
	const struct regions *s = c->state;
	const bool half = s->half;
	const double scale = s->scale, off = half ? 0.5 : 0;
	const int64_t samples = s->samples;
	double p[4];

	for (int i = 0; i < 4; i++)
		p[i] = at(&c->in[1], k * 4 + i) * scale - off;
	r->x = p[0];
	r->y = p[1];
	r->width = half ? p[2] - p[0] : fmax(p[2] - p[0], 1);
	r->height = half ? p[3] - p[1] : fmax(p[3] - p[1], 1);
	r->width /= (double)y->dim[3];
	r->height /= (double)y->dim[2];
	if (!(fabs(r->width) < 1e6 && fabs(r->height) < 1e6))
		return om_op_fail(c->session, OM_RUN, c->op, "region %lld is too large", (long long)k);
	r->nx = samples > 0 ? samples : (int64_t)ceil(r->width);
	r->ny = samples > 0 ? samples : (int64_t)ceil(r->height);
	return om_index_read(c, 2, k, c->in[0].shape.dim[0], &r->batch);
}

/* Of the `n` samples of bin `bin` those that may be inside an image of `size` pixels, [*low, *high): a region may be
 * much larger than the image. */
static void
samples_inside(double start, double length, int64_t bin, int64_t n, int64_t size, int64_t *low, int64_t *high)
{
	const double step = length / (double)n, first = start + ((double)bin + 0.5 / (double)n) * length;
	const double a = (-1 - first) / step, b = ((double)size - first) / step;

	*low = 0;
	*high = n;
	if (n < 1 || !(fabs(step) > 0))
		return;
	*low = OM_SATURATE(int64_t, fmin(fmax(floor(fmin(a, b)) - 1, 0), (double)n));
	*high = OM_SATURATE(int64_t, fmax(fmin(ceil(fmax(a, b)) + 2, (double)n), (double)*low));
}

/* The largest weighted neighbor, or the mean of the interpolated samples; samples outside the image are 0. */
static double
pool_bin(const om_op_context *c, const struct roi *r, int64_t base, int64_t py, int64_t px, bool largest)
{
	const om_shape *x = &c->in[0].shape;
	int64_t low[2], high[2];

	samples_inside(r->y, r->height, py, r->ny, x->dim[2], &low[0], &high[0]);
	samples_inside(r->x, r->width, px, r->nx, x->dim[3], &low[1], &high[1]);
	const bool all = high[0] - low[0] == r->ny && high[1] - low[1] == r->nx;
	double sum = 0, most = all ? -INFINITY : 0;
	for (int64_t i = low[0]; i < high[0]; i++)
		for (int64_t j = low[1]; j < high[1]; j++) {
			struct corners k;
			corners_of(r->y + ((double)py + ((double)i + 0.5) / (double)r->ny) * r->height,
				r->x + ((double)px + ((double)j + 0.5) / (double)r->nx) * r->width, x->dim[2], x->dim[3], &k);
			for (int n = 0; n < 4; n++) {
				const double v = k.weight[n] * at(&c->in[0], base + k.at[n]);
				sum += v;
				most = v > most ? v : most;
			}
		}
	if (largest)
		return r->ny > 0 && r->nx > 0 ? most : 0;
	return sum / (r->ny > 0 && r->nx > 0 ? (double)(r->ny * r->nx) : 1);
}

/* Where the regions decide how many samples are taken, as for regions as large as the image. */
static void
roi_cost(const om_op_context *c, om_cost *cost)
{
	const om_shape *x = &c->in[0].shape, *y = &c->out[0].shape;
	const double samples = (double)om_attr_int(c->op, "sampling_ratio"), bins = (double)(y->dim[2] * y->dim[3]);
	const double each = samples > 0 ? samples * samples : (double)x->dim[2] * (double)x->dim[3] / (bins > 0 ? bins : 1);

	cost->flops = 8 * (double)om_shape_count(y) * (each > 1 ? each : 1);
}

static om_status
roi_cpu(om_op_context *c)
{
	const om_shape *y = &c->out[0].shape, *x = &c->in[0].shape;
	const bool largest = ((const struct regions *)c->state)->largest;
	int64_t to = 0;

	if (!is_real(c->in[0].type) || c->in[1].type != c->in[0].type)
		return om_no_kernel(c, is_real(c->in[0].type) ? c->in[1].type : c->in[0].type);
	if (x->dim[2] == 0 || x->dim[3] == 0)
		return om_op_fail(c->session, OM_RUN, c->op, "the image is empty");
	OM_TRY(om_index_type(c, 2));
	for (int64_t n = 0; n < y->dim[0]; n++) {
		struct roi r;
		OM_TRY(read_roi(c, n, &r));
		for (int64_t k = 0; k < y->dim[1]; k++)
			for (int64_t i = 0; i < y->dim[2] * y->dim[3]; i++)
				om_put(c->out[0].type, c->out[0].data, to++, pool_bin(c, &r,
					(r.batch * y->dim[1] + k) * x->dim[2] * x->dim[3], i / y->dim[3], i % y->dim[3], largest));
	}
	return OM_OK;
}

/* ---- MaxRoiPool. ---- */

static om_status
max_roi_infer(om_op_context *c)
{
	const om_shape *x = &c->in[0].shape, *r = &c->in[1].shape;
	om_shape *out = &c->out[0].shape;
	size_t n;
	const int64_t *size = om_attr_ints(c->op, "pooled_shape", &n);

	c->out[0].type = c->in[0].type;
	*out = om_shape_open(4);
	if (n != 2 || size[0] < 1 || size[1] < 1)
		return om_wrong(c, "pooled_shape must be two positive integers");
	if ((x->rank >= 0 && x->rank != 4) || (r->rank >= 0 && (r->rank != 2 || !om_dims_agree(r->dim[1], 5))))
		return om_wrong(c, "X must have rank 4 and rois 5 columns");
	out->dim[2] = size[0];
	out->dim[3] = size[1];
	if (r->rank == 2)
		om_copy_dim(out, 0, r, 0);
	if (x->rank == 4)
		om_copy_dim(out, 1, x, 1);
	return OM_OK;
}

/* Bin `i` of `n` of a region that begins at `start`: elements [*low, *high). */
static void
bin_of(double start, double length, int64_t i, int64_t n, int64_t dim, int64_t *low, int64_t *high)
{
	const double size = length / (double)n;
	const double a = start + floor((double)i * size), b = start + ceil((double)(i + 1) * size);

	*low = a > 0 ? a < (double)dim ? (int64_t)a : dim : 0;
	*high = b > 0 ? b < (double)dim ? (int64_t)b : dim : 0;
}

static double
largest_in(const om_op_context *c, int64_t base, const int64_t low[2], const int64_t high[2])
{
	double most = -INFINITY;

	for (int64_t y = low[0]; y < high[0]; y++)
		for (int64_t x = low[1]; x < high[1]; x++)
			most = fmax(most, at(&c->in[0], base + y * c->in[0].shape.dim[3] + x));
	return low[0] < high[0] && low[1] < high[1] ? most : 0;
}

static om_status
max_roi_cpu(om_op_context *c)
{
	const om_shape *y = &c->out[0].shape, *x = &c->in[0].shape;
	const double scale = ((const struct regions *)c->state)->scale;
	const int64_t area = y->dim[2] * y->dim[3];

	if (!is_real(c->in[0].type) || c->in[1].type != c->in[0].type)
		return om_no_kernel(c, is_real(c->in[0].type) ? c->in[1].type : c->in[0].type);
	for (int64_t n = 0; n < y->dim[0]; n++) {
		const double b = at(&c->in[1], n * 5);
		double p[4];
		for (int i = 0; i < 4; i++)
			p[i] = round(at(&c->in[1], n * 5 + 1 + i) * scale);
		if (!(b >= 0 && b < (double)x->dim[0]))
			return om_op_fail(c->session, OM_RUN, c->op,
				"region %lld has an invalid batch index", (long long)n);
		for (int64_t k = 0; k < y->dim[1] * area; k++) {
			int64_t low[2], high[2];
			bin_of(p[1], fmax(p[3] - p[1] + 1, 1), k % area / y->dim[3], y->dim[2], x->dim[2], &low[0], &high[0]);
			bin_of(p[0], fmax(p[2] - p[0] + 1, 1), k % y->dim[3], y->dim[3], x->dim[3], &low[1], &high[1]);
			om_put(c->out[0].type, c->out[0].data, n * y->dim[1] * area + k, largest_in(c,
				((int64_t)b * x->dim[1] + k / area) * x->dim[2] * x->dim[3], low, high));
		}
	}
	return OM_OK;
}

/* As for regions as large as the image. */
static void
max_roi_cost(const om_op_context *c, om_cost *cost)
{
	const om_shape *x = &c->in[0].shape, *y = &c->out[0].shape;

	cost->flops = (double)y->dim[0] * (double)y->dim[1] * (double)x->dim[2] * (double)x->dim[3];
}

/* ---- DeformConv. ---- */

enum { X, W, OFFSET, BIAS, MASK };

/* Two axes: the last two of a window. */
struct deform {
	struct om_window w;
	int64_t group, offsets;       /* channel groups of the kernel, and of the offsets */
};

static om_status
deform_infer(om_op_context *c)
{
	const om_shape *x = &c->in[X].shape, *w = &c->in[W].shape;
	struct om_window v;
	const char *bad;

	c->out[0].type = c->in[X].type;
	if ((x->rank >= 0 && x->rank != 4) || (w->rank >= 0 && w->rank != 4))
		return om_op_fail(c->session, OM_UNSUPPORTED, c->op, "only 2-D images are supported");
	c->out[0].shape = om_shape_open(4);
	if (x->rank < 0 || w->rank < 0)
		return OM_OK;
	bad = om_window_read(c, 2, x, w->dim + 2, &v);
	if (!bad)
		bad = om_window_shrink(c, &v, false);
	if (bad)
		return om_wrong(c, bad);
	om_window_dims(&c->out[0].shape, x, &v);
	om_copy_dim(&c->out[0].shape, 0, x, 0);
	om_copy_dim(&c->out[0].shape, 1, w, 0);
	return OM_OK;
}

static om_status
check_deform(const om_op_context *c, const struct deform *d)
{
	const om_shape *x = &c->in[X].shape, *w = &c->in[W].shape, *y = &c->out[0].shape;
	const int64_t taps = w->dim[2] * w->dim[3];

	if (d->group < 1 || d->offsets < 1 || w->dim[0] % d->group || x->dim[1] != w->dim[1] * d->group
	    || x->dim[1] % d->offsets)
		return om_wrong(c, "group or offset_group does not divide the channels");
	for (uint32_t k = OFFSET; k <= MASK; k++) {
		const int64_t channels = d->offsets * taps * (k == OFFSET ? 2 : 1);
		const om_shape want = om_shape_of(4, (int64_t[]){x->dim[0], channels, y->dim[2], y->dim[3]});
		if (k != BIAS && om_has_in(c, k) && !om_shape_equal(&c->in[k].shape, &want))
			return om_wrong(c, k == OFFSET ?
				"the shape of offset does not match the output" :
				"the shape of mask does not match the output");
	}
	if (om_has_in(c, BIAS) && om_shape_count(&c->in[BIAS].shape) != w->dim[0])
		return om_wrong(c, "B must have one element for each output channel");
	for (uint32_t k = X; k <= MASK; k++)
		if (om_has_in(c, k) && (!is_real(c->in[k].type) || c->in[k].type != c->in[X].type))
			return om_no_kernel(c, c->in[k].type);
	return OM_OK;
}

/* Bilinear interpolation; elements outside the image are zero. */
static double
between(const om_tensor *t, int64_t base, double y, double x)
{
	const int64_t height = t->shape.dim[2], width = t->shape.dim[3];
	double sum = 0;

	if (!(y > -1 && y < (double)height && x > -1 && x < (double)width))
		return 0;
	const int64_t top = (int64_t)floor(y), left = (int64_t)floor(x);
	for (int64_t i = top; i <= top + 1; i++)
		for (int64_t j = left; j <= left + 1; j++)
			if (i >= 0 && i < height && j >= 0 && j < width)
				sum += (1 - fabs(y - (double)i)) * (1 - fabs(x - (double)j)) * at(t, base + i * width + j);
	return sum;
}

/* The output element (n, o, i, j). */
static double
deform_sum(const om_op_context *c, const struct deform *d, int64_t n, int64_t o, int64_t i, int64_t j)
{
	const om_shape *x = &c->in[X].shape, *w = &c->in[W].shape, *y = &c->out[0].shape;
	const int64_t taps = w->dim[2] * w->dim[3], area = y->dim[2] * y->dim[3], place = i * y->dim[3] + j;
	const int a = OM_WINDOW_AXES - 2;
	double sum = om_has_in(c, BIAS) ? at(&c->in[BIAS], o) : 0;

	for (int64_t k = 0; k < w->dim[1]; k++) {
		const int64_t channel = o / (w->dim[0] / d->group) * w->dim[1] + k;
		const int64_t set = n * d->offsets + channel / (x->dim[1] / d->offsets);
		for (int64_t t = 0; t < taps; t++) {
			const int64_t from = (set * taps + t) * 2 * area + place;
			const double py = (double)(i * d->w.stride[a] - d->w.begin[a] + t / w->dim[3] * d->w.dilation[a])
				+ at(&c->in[OFFSET], from);
			const double px = (double)(j * d->w.stride[a + 1] - d->w.begin[a + 1]
				+ t % w->dim[3] * d->w.dilation[a + 1]) + at(&c->in[OFFSET], from + area);
			const double v = between(&c->in[X], (n * x->dim[1] + channel) * x->dim[2] * x->dim[3], py, px);
			const double m = om_has_in(c, MASK) ? at(&c->in[MASK], (set * taps + t) * area + place) : 1;
			sum += v * m * at(&c->in[W], (o * w->dim[1] + k) * taps + t);
		}
	}
	return sum;
}

static om_status
deform_prepare(om_op_context *c, void **state)
{
	struct deform *d = *state;

	*d = (struct deform){.group = om_attr_int(c->op, "group"), .offsets = om_attr_int(c->op, "offset_group")};
	om_window_read(c, 2, &c->in[X].shape, c->in[W].shape.dim + 2, &d->w);
	om_window_shrink(c, &d->w, false);
	return check_deform(c, d);
}

static om_status
deform_cpu(om_op_context *c)
{
	const om_shape *y = &c->out[0].shape;
	const struct deform d = *(const struct deform *)c->state;
	int64_t to = 0;

	for (int64_t n = 0; n < y->dim[0]; n++)
		for (int64_t o = 0; o < y->dim[1]; o++)
			for (int64_t k = 0; k < y->dim[2] * y->dim[3]; k++)
				om_put(c->out[0].type, c->out[0].data, to++,
					deform_sum(c, &d, n, o, k / y->dim[3], k % y->dim[3]));
	return OM_OK;
}

static void
deform_cost(const om_op_context *c, om_cost *cost)
{
	cost->flops = 12 * (double)om_shape_count(&c->out[0].shape) * (double)om_shape_span(&c->in[W].shape, 1, 4);
}

/* ---- The table. ---- */

static const om_attr_spec old_grid_attrs[] = {
	{"align_corners", OM_ATTR_INT},
	{"mode", OM_ATTR_STRING, .s = "bilinear"},
	{"padding_mode", OM_ATTR_STRING, .s = "zeros"},
	{0}
};

static const om_attr_spec grid_attrs[] = {
	{"align_corners", OM_ATTR_INT},
	{"mode", OM_ATTR_STRING, .s = "linear"},
	{"padding_mode", OM_ATTR_STRING, .s = "zeros"},
	{0}
};

static const om_attr_spec affine_attrs[] = {{"align_corners", OM_ATTR_INT}, {0}};

static const om_attr_spec roi_attrs[] = {
	{"coordinate_transformation_mode", OM_ATTR_STRING, .s = "half_pixel"},
	{"mode", OM_ATTR_STRING, .s = "avg"},
	{"output_height", OM_ATTR_INT, .i = 1},
	{"output_width", OM_ATTR_INT, .i = 1},
	{"sampling_ratio", OM_ATTR_INT},
	{"spatial_scale", OM_ATTR_FLOAT, .f = 1},
	{0}
};

static const om_attr_spec max_roi_attrs[] = {
	{"pooled_shape", OM_ATTR_INTS, .required = true},
	{"spatial_scale", OM_ATTR_FLOAT, .f = 1},
	{0}
};

static const om_attr_spec deform_attrs[] = {
	OM_WINDOW_ATTRS,
	{"group", OM_ATTR_INT, .i = 1},
	{"offset_group", OM_ATTR_INT, .i = 1},
	{0}
};

const om_opdef om_ops_grid[] = {
	{.name = "GridSample", .brief = "image sampled at the positions of a grid", .since = 16, .until = 19,
	 .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1, .attrs = old_grid_attrs,
	 .infer = grid_infer, .slice = om_slice_grid_sample, .cpu = grid_cpu, .cost = grid_cost,
	 .input_types = {OF_COMMON, OF_FLOATS}},
	{.name = "GridSample", .brief = "image sampled at the positions of a grid", .since = 20,
	 .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1, .attrs = grid_attrs,
	 .infer = grid_infer, .slice = om_slice_grid_sample, .cpu = grid_cpu, .cost = grid_cost,
	 .input_types = {OF_COMMON, OF_FLOATS}},
	{.name = "AffineGrid", .brief = "sampling grid from affine matrices", .since = 20,
	 .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1, .attrs = affine_attrs,
	 .infer = affine_infer, .slice = om_slice_affine_grid, .cpu = affine_cpu,
	 .input_types = {OF_FLOATS, OF(INT64)}},
	{.name = "RoiAlign", .brief = "regions of interest pooled to one size, with bilinear interpolation",
	 .since = 10, .min_in = 3, .max_in = 3, .min_out = 1, .max_out = 1, .attrs = roi_attrs,
	 .infer = roi_infer, .slice = om_slice_regions, .cpu = roi_cpu, .cost = roi_cost,
	 .input_types = {OF_FLOATS, LIKE(0), OF(INT64)}},
	{.name = "MaxRoiPool", .brief = "regions of interest pooled to one size, by maximum", .since = 1,
	 .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1, .attrs = max_roi_attrs,
	 .infer = max_roi_infer, .slice = om_slice_regions, .cpu = max_roi_cpu, .cost = max_roi_cost,
	 .input_types = {OF_FLOATS, LIKE(0)}},
	{.name = "DeformConv", .brief = "deformable convolution", .since = 19,
	 .min_in = 3, .max_in = 5, .min_out = 1, .max_out = 1, .attrs = deform_attrs,
	 .infer = deform_infer, .slice = om_slice_deform_conv, .cpu = deform_cpu, .cost = deform_cost,
	 .input_types = {OF_FLOATS, LIKE(0), LIKE(0), LIKE(0), LIKE(0)}},
	{0}
};

const om_kernel om_kernels_grid[] = {
	{.name = "GridSample", .state_bytes = sizeof(struct sampling), .prepare = grid_prepare, .run = grid_cpu},
	{.name = "AffineGrid", .fields = affine_fields, .state_bytes = sizeof(struct affine), .run = affine_cpu},
	{.name = "RoiAlign", .state_bytes = sizeof(struct regions), .prepare = regions_prepare, .run = roi_cpu},
	{.name = "MaxRoiPool", .state_bytes = sizeof(struct regions), .prepare = regions_prepare, .run = max_roi_cpu},
	{.name = "DeformConv", .state_bytes = sizeof(struct deform), .prepare = deform_prepare, .run = deform_cpu},
	{0}
};
